"""A run that is stopped by Ctrl-C or killed: what is finished stays, and the same command goes on from there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli import lmms_eval, metrics
from tests.harness_fakes import question_rows, write_task
from tests.planted import expected_of
from tests.servers.openai_server import OpenAIServer
from tests.servers.planted_brain import PlantedBrain, PlantedItem, PlantedRates

pytestmark = pytest.mark.integration
N = 40


def planted(tmp_path: Path) -> tuple[PlantedBrain, list[PlantedItem]]:
    rows = question_rows(N)
    write_task(tmp_path, rows, name="long_task", extra="    engine: {max_live_episodes: 4}\n")
    options = {"A": "w", "B": "x", "C": "y", "D": "z"}
    items = [PlantedItem(id=row["id"], question=row["question"], target="B", options=options) for row in rows]
    return PlantedBrain(items, models={"teacher": PlantedRates(accuracy=0.9)}, accuracy=0.3, correction=0.5), items


def command(tmp_path: Path, server: OpenAIServer) -> tuple[str, ...]:
    return (
        *("--model", "interbench_api", "--model_args", f"model=openai:student@{server.url},max_concurrency=4"),
        *("--tasks", "long_task", "--include_path", str(tmp_path), "--output_path", str(tmp_path / "out")),
    )


def finished_lines(tmp_path: Path) -> list[str]:
    return [line for path in tmp_path.rglob("episodes.jsonl") for line in path.read_text().splitlines()]


def start_and_stop(tmp_path: Path, server: OpenAIServer, sign: signal.Signals, variables: dict) -> tuple[str, float]:
    """Start the command, stop it once some episodes are on disk; what it said, and after how long it said so."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *command(tmp_path, server)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **variables},
    )
    deadline = time.monotonic() + 120
    while len(finished_lines(tmp_path)) < 5:
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(sign)
    began = time.monotonic()
    output, stopped_s = [], 60.0
    with process:
        for line in process.stdout:
            output.append(line)
            if "finished episodes are in" in line:
                stopped_s = time.monotonic() - began
    return "".join(output), stopped_s


@pytest.mark.parametrize("sign", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL])
def test_the_same_command_goes_on_and_pays_for_nothing_twice(tmp_path, sign):
    brain, items = planted(tmp_path)
    expected = expected_of(brain, items, receiver="student", provider="teacher")
    with OpenAIServer(brain, latency_s=0.15) as server:
        variables = {"INTERBENCH_PROVIDER": f"openai:teacher@{server.url}"}
        output, took_s = start_and_stop(tmp_path, server, sign, variables)
        kept = finished_lines(tmp_path)
        assert 5 <= len(kept) < N
        assert all(json.loads(line)["status"] == "finished" for line in kept)
        if sign == signal.SIGINT:
            assert took_s < 1.5  # a second, on a machine with other work
            assert "Run the same command" in output
        lmms_eval(*command(tmp_path, server), **variables).check()
        assert server.violations == []
        asked_twice = server.requests - expected.requests
    assert asked_twice <= 8  # what was in flight when it stopped: two arms of four live episodes
    (path,) = [path for path in tmp_path.rglob("metrics.json")]
    found = json.loads(path.read_text())["metrics"]
    assert found == metrics(tmp_path)
    assert found["n_test"]["value"] == expected.test
    assert found["accuracy"]["count"] == expected.right
