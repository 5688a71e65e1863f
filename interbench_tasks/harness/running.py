"""Starts the harness's command in a process of its own, passes signals on to it, and says how it ended."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from interbench_tasks import settings
from interbench_tasks.runs.outcome import ERROR, OK, USAGE
from interbench_tasks.runs.status import Note, notes_in

WATCHED = "interbench_tasks.harness.watched"
PASSED_ON = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
GRACE_S = 10.0
"""How long the harness may take to end after SIGTERM or SIGHUP before it is killed. Ctrl-C has no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the harness's command ended."""

    exit_code: int
    """0 where it did all that it was told, whatever that is worth; 1, 2, or 128 + signal where it was stopped."""
    notes: Sequence[Note]
    """What it noted on its way."""
    why: str = ""
    """What nobody noted, because the process could not."""


def command_of(arguments: Sequence[str], module: str = WATCHED) -> list[str]:
    """The command line that is run."""
    return [sys.executable, "-m", module, *arguments]


def run_harness(arguments: Sequence[str], *, module: str = WATCHED, grace_s: float = GRACE_S) -> Ended:
    """Run the harness's command with these arguments to its end; its output goes where ours goes.

    Args: module = what stands for the harness's command; grace_s = seconds until it is killed after SIGTERM.
    """
    with tempfile.TemporaryDirectory(prefix="interbench-") as folder:
        status = Path(folder) / "status.jsonl"
        process = subprocess.Popen(command_of(arguments, module), env=settings.environment_with_status(status))
        with _signals_passed_on(process, grace_s) as received:
            code = process.wait()
        return _ended(code, notes_in(status), received)


@contextlib.contextmanager
def _signals_passed_on(process: subprocess.Popen[bytes], grace_s: float) -> Iterator[list[int]]:
    """Meanwhile every signal that asks us to end goes to the process too; gives the list that they are added to."""
    received: list[int] = []
    killer = threading.Timer(grace_s, process.kill)
    killer.daemon = True

    def pass_on(number: int, frame: object) -> None:
        received.append(number)
        process.send_signal(number)
        if number != signal.SIGINT and not killer.is_alive() and not killer.finished.is_set():
            killer.start()

    handlers = {number: signal.getsignal(number) for number in PASSED_ON}
    ours = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]  # e.g. under nohup
    for number in ours:
        signal.signal(number, pass_on)
    try:
        yield received
    finally:
        for number in ours:
            signal.signal(number, handlers[number])
        killer.cancel()


def _ended(code: int, notes: Sequence[Note], received: Sequence[int]) -> Ended:
    noted = {note.kind for note in notes}
    if code == 0:
        if "evaluated" in noted:
            worst = ERROR if "failed" in noted else USAGE if "refused" in noted else OK
            return Ended(exit_code=worst, notes=notes)
        return Ended(exit_code=ERROR, notes=notes, why="the harness ended before it was done, and did not say why")
    if received:
        return Ended(exit_code=128 + received[0], notes=notes)
    if -code in PASSED_ON or code == 128 + signal.SIGINT:
        return Ended(exit_code=128 + max(-code, signal.SIGINT), notes=notes)
    if code < 0:
        hint = "; was memory short?" if -code == signal.SIGKILL else ""
        return Ended(exit_code=ERROR, notes=notes, why=f"the harness was killed by {_signal_name(-code)}{hint}")
    if code == USAGE:
        return Ended(exit_code=ERROR if "failed" in noted else USAGE, notes=notes)
    why = "" if noted & {"failed", "refused"} else f"the harness ended with exit code {code}"
    return Ended(exit_code=ERROR, notes=notes, why=why)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
