"""How often a stored reply saved a call: counted for good, in a process's own file, and at no cost to reading."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks import ledger_writer
from interbench_tasks.engine import Engine
from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_file import LedgerFile
from interbench_tasks.ledger_rows import Saved, saved_by
from interbench_tasks.records import Reply, Usage
from tests.engine_fakes import Api, asks, episodes, play_all
from tests.ledgers import REPLY, ROOT, filled, key, put_all


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


def saved_in(folder: Path, rank: int = 0) -> dict[str, Saved]:
    file = LedgerFile.open_to_read(folder / f"ledger-rank{rank}.sqlite3")
    try:
        return file.saved()
    finally:
        file.close()


def test_hits_are_counted_by_who_answered_with_the_tokens_that_they_saved(folder):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(1): REPLY, key(2): REPLY}, "openai:gpt-4o")
    put_all(ledger, {key(3): REPLY}, "anthropic:claude")
    for number in (1, 1, 2, 3, 4):
        ledger.get(key(number))
    ledger.close()
    assert saved_in(folder) == {
        "openai:gpt-4o": Saved(hits=3, input_tokens=3 * 812, output_tokens=15, reasoning_tokens=9),
        "anthropic:claude": Saved(hits=1, input_tokens=812, output_tokens=5, reasoning_tokens=3),
    }


def test_hits_of_several_runs_add_up(folder):
    for _ in range(3):
        ledger = Ledger.open(folder)
        put_all(ledger, {key(1): REPLY}, "m")
        ledger.get(key(1))
        ledger.close()
    assert saved_in(folder)["m"].hits == 3


@pytest.mark.parametrize(("tokens", "unknown"), [((None, 5), 1), ((5, None), 1), ((None, None), 1), ((5, 0), 0)])
def test_unknown_tokens_are_counted_as_unknown_not_as_zero(tokens, unknown):
    usage = Usage(calls=1, input_tokens=tokens[0], output_tokens=tokens[1], reasoning_tokens=None)
    found = saved_by(usage)
    assert (found.hits, found.unknown) == (1, unknown)
    assert (found.input_tokens, found.output_tokens) == (tokens[0] or 0, tokens[1] or 0)


def test_a_reply_without_any_name_is_counted_too(folder):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(1): Reply(text="a")})
    ledger.get(key(1))
    ledger.close()
    assert saved_in(folder) == {"": Saved(hits=1, unknown=1)}


def test_a_hit_in_another_ranks_file_is_counted_in_ones_own(folder):
    path = filled(folder, n=2, backend="m")
    before = path.read_bytes()
    ledger = Ledger.open(folder, rank=1)
    ledger.get(key(0))
    ledger.get(key(1))
    ledger.close()
    assert (saved_in(folder, 0), saved_in(folder, 1)["m"].hits) == ({}, 2)
    assert path.read_bytes() == before


READ = """
    import asyncio, sys, time
    from pathlib import Path
    from interbench_tasks.ledger import Ledger
    from interbench_tasks.records import Reply

    ledger = Ledger.open(Path(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        assert ledger.get("0" * 64)
    if sys.argv[3] == "put":
        asyncio.run(ledger.put("f" * 64, Reply(text="x")))
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


def killed_after_reading(folder: Path, n_hits: int, then: str) -> int:
    """Hits on disk after a process that found `n_hits` replies, and maybe stored one, was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(READ), str(folder), str(n_hits), then], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout.readline() == b"ready\n"
    deadline = time.monotonic() + 5
    while (found := saved_in(folder).get("m", Saved()).hits) == 0 and n_hits >= 1000 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    return found


def test_hits_are_on_disk_with_the_next_reply_that_is_stored(folder):
    filled(folder, n=1, backend="m")
    assert killed_after_reading(folder, 7, "put") == 7


def test_many_hits_are_on_disk_also_where_nothing_is_stored(folder):
    filled(folder, n=1, backend="m")
    assert killed_after_reading(folder, 1500, "nothing") >= ledger_writer.HITS_IN_MEMORY == 1000


def test_hits_that_cannot_be_written_are_told_and_end_no_run(folder, monkeypatch):
    filled(folder, n=1)
    ledger = Ledger.open(folder)
    ledger.get(key(0))
    ledger._writer._file._connection.execute("PRAGMA query_only = ON")  # a disk that turned read-only
    ledger.close()
    (warning,) = ledger.warnings
    assert "it is read-only" in warning
    assert warning.endswith("Some hits were not counted.")


def test_the_engine_says_who_answered_and_a_second_run_is_all_hits(folder):
    for expected in ({}, {"api": 12}):
        ledger = Ledger.open(folder)
        engine, api = Engine(progress=False, ledger=ledger), Api()
        play_all(engine, episodes(12), asks(engine, api))
        ledger.close()
        assert {model: saved.hits for model, saved in saved_in(folder).items()} == expected


def test_counting_does_not_slow_reading(folder):
    """A hit costs what it did before hits were counted, give or take: both are measured in turn, the best of each."""
    ledger = Ledger.open(folder)
    put_all(ledger, {key(n): replace(REPLY, text="word " * 100) for n in range(500)}, "m")
    counted, bare = [], []
    for _ in range(7):
        started = time.thread_time()
        for number in range(500):
            ledger.get(key(number))
        middle = time.thread_time()
        for number in range(500):
            ledger._reader.get(key(number))
        bare.append(time.thread_time() - middle)
        counted.append(middle - started)
    ledger.close()
    assert min(counted) < 3 * min(bare)  # measured: 1.2


def test_get_waits_for_no_disk(folder):
    filled(folder, n=1)
    ledger = Ledger.open(folder)
    other = LedgerFile.open_to_write(folder / "ledger-rank0.sqlite3")
    with other._transaction():  # another process's write lock
        started = time.perf_counter()
        for _ in range(3 * ledger_writer.HITS_IN_MEMORY):
            assert ledger.get(key(0)) is not None
        assert time.perf_counter() - started < 5
    other.close()
    ledger.close()
    assert sum(saved.hits for saved in saved_in(folder).values()) == 3 * ledger_writer.HITS_IN_MEMORY


def test_hits_are_counted_right_while_replies_are_stored(folder):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(0): REPLY}, "m")

    async def store_and_find() -> None:
        for number in range(1, 400):
            ledger.get(key(0))
            waiting = asyncio.create_task(ledger.put(key(number), REPLY, "m"))
            await asyncio.sleep(0)
            ledger.get(key(0))
            if number % 7 == 0:
                await waiting

    asyncio.run(store_and_find())
    ledger.close()
    assert saved_in(folder)["m"].hits == 798
