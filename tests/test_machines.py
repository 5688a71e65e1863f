"""Two machines as the README shows them: one run, a ledger each; the same commands again pay for nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import metrics, records
from tests.harness_fakes import question_rows, write_task
from tests.planted import assert_metrics, expected_of
from tests.servers.openai_server import OpenAIServer
from tests.test_faults import planted

pytestmark = [pytest.mark.integration, pytest.mark.slow]
N = 11
LAUNCHERS = {
    "torchrun": (
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", "{rank}"),
        *("--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", "{port}"),
    ),
    "accelerate": (
        *(sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "2"),
        *("--machine_rank", "{rank}", "--num_processes", "2"),
        *("--main_process_ip", "127.0.0.1", "--main_process_port", "{port}"),
    ),
}


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def on_two_machines(launcher: str, folder: Path, server: OpenAIServer) -> None:
    """Both commands at once, each with the ledger of its own machine."""
    port, processes = free_port(), []
    for rank in ("0", "1"):
        launch = [word.format(rank=rank, port=port) for word in LAUNCHERS[launcher]]
        command = [
            *(*launch, "-m", "lmms_eval", "--model", "interbench_api"),
            *("--model_args", f"model=openai:student@{server.url}", "--tasks", "machines_task"),
            *("--include_path", str(folder), "--output_path", str(folder / "out")),
        ]
        own = {
            "INTERBENCH_LEDGER": str(folder / f"ledger{rank}"),
            "INTERBENCH_PROVIDER": f"openai:teacher@{server.url}",
        }
        with (folder / f"log{rank}.txt").open("w") as log:
            started = subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=subprocess.STDOUT)
        processes.append(started)
    try:
        for rank, process in enumerate(processes):
            assert process.wait(timeout=240) == 0, (folder / f"log{rank}.txt").read_text()
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_machines_play_one_run_and_go_on_for_free(tmp_path, launcher):
    write_task(tmp_path, question_rows(N), name="machines_task")
    brain, items = planted(N)
    expected = expected_of(brain, items, receiver="student", provider="teacher")
    with OpenAIServer(brain) as server:
        on_two_machines(launcher, tmp_path, server)
        assert server.requests == expected.requests  # nothing twice, nothing for padding
        assert_metrics(metrics(tmp_path / "out"), expected)
        assert [record["doc_id"] for record in records(tmp_path / "out")] == list(range(N))
        shutil.rmtree(tmp_path / "out")
        on_two_machines(launcher, tmp_path, server)
        assert server.requests == expected.requests
        assert_metrics(metrics(tmp_path / "out"), expected)
        assert server.violations == []
