"""What the tests of the ledger share: keys and replies, ledgers with something in them, and looks from outside."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from interbench_tasks.ledger import Ledger
from interbench_tasks.records import Reply, ReplyRun, Usage

ROOT = Path(__file__).parents[1]
REPLY = Reply(
    text="It is a cat.",
    finish_reason="stop",
    reasoning="Whiskers.",
    usage=Usage(calls=1, input_tokens=812, output_tokens=5, reasoning_tokens=3),
    model="gpt-4o-2024-08-06",
    run=ReplyRun(latency_s=1.5, waited_s=0.5, retries=2, started_at=1_700_000_000.0),
)
FROM_LEDGER = ReplyRun(from_ledger=True)


def key(number: int) -> str:
    return f"{number:064x}"


def put_all(ledger: Ledger, replies: dict[str, Reply], backend: str | None = None) -> None:
    async def put_side_by_side() -> None:
        await asyncio.gather(*[ledger.put(name, reply, backend) for name, reply in replies.items()])

    asyncio.run(put_side_by_side())


def filled(folder: Path, n: int = 200, *, backend: str | None = None, start: int = 0) -> Path:
    """A ledger of one file with `n` replies; the file."""
    ledger = Ledger.open(folder)
    numbers = range(start, start + n)
    put_all(ledger, {key(n): replace(REPLY, text=f"reply {n} " + "x" * 3000) for n in numbers}, backend)
    ledger.close()
    return folder / "ledger-rank0.sqlite3"


def hold(path: Path) -> sqlite3.Connection:
    """Another process's write lock."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def count(path: Path) -> int:
    """The replies in a file that is not broken."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute("SELECT count(*) FROM reply").fetchone()[0]
    finally:
        connection.close()


def in_child(code: str, *args: object, as_nobody: bool = False) -> str:
    """What `code` says in a process of its own, which may have less rights than we have."""
    head = "import os, sys, asyncio; from pathlib import Path; sys.dont_write_bytecode = True\n"
    head += "from interbench_tasks.ledger import Ledger; from interbench_tasks.records import Reply\n"
    head += "from interbench_tasks.errors import LedgerError\n"
    if as_nobody:
        head += "os.setgid(65534); os.setuid(65534)\n"
    run = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code), *map(str, args)],
        capture_output=True, text=True, timeout=60, cwd=ROOT,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


OPEN = """
    try:
        Ledger.open(Path(sys.argv[1])).close()
    except LedgerError as error:
        sys.stdout.write(str(error))
"""

WRITER = """
    import asyncio, sys
    from pathlib import Path
    from interbench_tasks.ledger import Ledger
    from interbench_tasks.records import Reply

    folder, rank, start, n = Path(sys.argv[1]), *map(int, sys.argv[2:])
    ledger = Ledger.open(folder, rank=rank)
    numbers = iter(range(start, start + n))

    async def write():
        for number in numbers:
            await ledger.put(f"{number:064x}", Reply(text=f"reply {number} " + "x" * (number * 37 % 6000)))
            sys.stdout.write(f"{number}\\n")
            sys.stdout.flush()

    async def main():
        await asyncio.gather(*[write() for _ in range(32)])

    asyncio.run(main())
    ledger.close()
"""


def start_writer(folder: Path, *, rank: int = 0, start: int = 0, n: int = 10**9) -> subprocess.Popen[str]:
    """A process that stores replies and says which are safe."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(folder), str(rank), str(start), str(n)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def kill_writer(writer: subprocess.Popen[str], lines: Iterable[str] = ()) -> list[int]:
    """Kill a writer from outside; the numbers of all replies that it said are safe. Args: lines = read before."""
    writer.send_signal(signal.SIGKILL)
    said = [*lines, *writer.stdout]
    writer.stdout.close()
    assert writer.wait(timeout=30) == -signal.SIGKILL
    return [int(line) for line in said if line.endswith("\n")]
