"""Runs of the harness's command line with people in them: the task, a planted student, processes to kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from tests.harness_fakes import write_task
from tests.people_desks import HOSTILE
from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import OpenAIServer

N = 8
SOLVED_IN = [0, 1, 2, 3, 4, 1, 2, 3]
"""Question -> the round whose reply is right; 4: none is. Question 5 is marked as right by a person instead."""
MARKED = 5
EXTRA = """\
    arms: [hierarchical]
    max_rounds: 3
    test_on: all_wrong
    roles: {provider: {backend: human, model: study, grace_s: 0.3, poll_s: 0.05}}
"""


def student(request: ParsedRequest) -> str:
    """Right in the round that is planned; each reply holds what would be a script, were it no text."""
    number = int(re.search(r"number (\d+)", request.messages[0].text)[1])
    told = sum(message.role == "user" for message in request.messages) - 1
    right = told >= SOLVED_IN[number] and number != MARKED
    return f"{HOSTILE} I looked again {told} times.\nAnswer: {'B' if right else 'C'}"


def command(folder: Path, server: OpenAIServer) -> list[str]:
    return [
        *(sys.executable, "-m", "lmms_eval", "--model", "interbench_api"),
        *("--model_args", f"model=openai:student@{server.url}", "--tasks", "people_task"),
        *("--include_path", str(folder), "--output_path", str(folder / "out")),
    ]


def write_people_task(folder: Path) -> None:
    rows = []
    for number in range(N):
        picture = folder / f"{number}.png"
        Image.new("RGB", (200, 100), (30 * number, 90, 160)).save(picture)
        options = ["cat", "dog", "owl", "fox"]
        question = {"id": f"q{number}", "question": f"Question number {number}: which animal?", "answer": "B"}
        rows.append({**question, "options": options, "image": str(picture)})
    path = write_task(folder, rows, name="people_task", extra=EXTRA)
    text = path.read_text(encoding="utf-8")
    own = ("arms: [detail, simple]", 'roles: {provider: "simulated:helper,solve=1,invalid=0"}')
    path.write_text("\n".join(line for line in text.split("\n") if line.strip() not in own), encoding="utf-8")


class Process:
    """A command in the background, whose output goes to a file."""

    def __init__(self, arguments: list[str], log: Path, **variables: str) -> None:
        self.log = log
        self.file = log.open("a")
        self.process = subprocess.Popen(
            arguments, stdout=self.file, stderr=subprocess.STDOUT, env={**os.environ, **variables}
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.file.close()

    def end(self) -> int:
        code = self.process.wait(timeout=120)
        self.file.close()
        return code

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def until(holds: Callable[[], object], what: str, process: Process, timeout_s: float = 120) -> None:
    end = time.monotonic() + timeout_s
    while not holds():
        assert process.process.poll() is None, f"{what}: it ended\n{process.said[-3000:]}"
        assert time.monotonic() < end, f"{what}: waited too long\n{process.said[-3000:]}"
        time.sleep(0.05)


@contextmanager
def beginning(folder: Path) -> Iterator[Callable[..., Process]]:
    """Starts commands; what still runs in the end is killed."""
    started: list[Process] = []

    def start(arguments: list[str], name: str, **variables: str) -> Process:
        started.append(Process(arguments, folder / f"{name}.log", **variables))
        return started[-1]

    yield start
    for process in started:
        if process.process.poll() is None:
            process.kill()


def rounds_of(number: int) -> int:
    """Replies after feedback."""
    return 0 if number == MARKED else min(SOLVED_IN[number], 3)
