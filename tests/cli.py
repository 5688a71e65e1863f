"""Runs command lines as a user would, in a process of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finished:
    exit_code: int
    output: str
    """stdout and stderr, in order."""

    def check(self) -> Finished:
        assert self.exit_code == 0, self.output
        return self


def run(*command: str | Path, cwd: Path | None = None, timeout_s: float = 300, **environment: str) -> Finished:
    """Run a command; the environment is the test's own plus what is given."""
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except BaseException:  # Ctrl-C too: ranks that wait for each other must not outlive the test
        process.terminate()  # torch's launcher then ends its ranks, which are in sessions of their own
        try:
            process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise
    return Finished(process.returncode, output)


def lmms_eval(*arguments: str | Path, **more: Any) -> Finished:
    """The harness's real command line."""
    return run(sys.executable, "-m", "lmms_eval", *arguments, **more)


def interbench(*arguments: str | Path, **more: Any) -> Finished:
    """Our own command line."""
    return run(sys.executable, "-c", "from interbench_tasks.cli import main; main()", *arguments, **more)


def harness_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Task -> metric -> value, from the only results file that the harness wrote below `folder`."""
    (path,) = folder.rglob("*_results.json")
    results = json.loads(path.read_text())["results"]
    return {
        task: {name.removesuffix(",none"): value for name, value in table.items()} for task, table in results.items()
    }


def metrics(folder: Path) -> dict[str, dict[str, Any]]:
    """The metrics of the only run below `folder`."""
    (path,) = folder.rglob("metrics.json")
    return json.loads(path.read_text())["metrics"]


def records(folder: Path) -> list[dict[str, Any]]:
    """The transcript of the only run below `folder`."""
    (path,) = folder.rglob("episodes.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
