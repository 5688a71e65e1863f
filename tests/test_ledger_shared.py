"""Several processes on one ledger folder, and hands that remove its files: nothing is lost, nothing is silent."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks import ledger_writer
from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_file import LedgerFile
from tests.ledgers import REPLY, count, filled, key, kill_writer, put_all, start_writer
from tests.test_ledger_schema import file_of_version_1

OWN = "ledger-rank0.sqlite3"
SECOND = "ledger-rank0-2.sqlite3"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


def named(ledger: Ledger, numbers) -> list[str | None]:
    found = [ledger.get(key(n)) for n in numbers]
    return [None if reply is None else reply.text.split(" x")[0].strip() for reply in found]


def sqlite_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".sqlite3")


# --- two runs at the same time ---


def test_two_runs_at_once_write_files_of_their_own_and_a_third_finds_all(folder):
    writers = [start_writer(folder, start=start) for start in (0, 10**6)]
    lines = [[writer.stdout.readline() for _ in range(300)] for writer in writers]
    assert sqlite_files(folder) == [SECOND, OWN]
    safe = [number for writer, said in zip(writers, lines, strict=True) for number in kill_writer(writer, said)]
    third = Ledger.open(folder)
    assert named(third, safe) == [f"reply {n}" for n in safe]
    assert third.warnings == []
    third.close()
    assert sqlite_files(folder) == [SECOND, OWN]
    assert count(folder / OWN) + count(folder / SECOND) >= len(set(safe)) == len(safe) >= 600


def test_what_one_run_has_stored_the_other_finds_while_both_go_on(folder):
    one, two = Ledger.open(folder), Ledger.open(folder)
    assert two.get(key(1)) is None
    put_all(one, {key(1): replace(REPLY, text="of one")})
    put_all(two, {key(2): replace(REPLY, text="of two")})
    assert named(one, [1, 2]) == named(two, [1, 2]) == ["of one", "of two"]
    three = Ledger.open(folder)
    put_all(three, {key(3): replace(REPLY, text="of three")})
    assert named(one, [3]) == named(two, [3]) == ["of three"]
    for ledger in (one, two, three):
        ledger.close()
        assert ledger.warnings == []
    assert sqlite_files(folder) == [SECOND, "ledger-rank0-3.sqlite3", OWN]


def test_a_run_takes_the_first_file_again_once_it_is_free(folder):
    one, two = Ledger.open(folder), Ledger.open(folder)
    one.close()
    three = Ledger.open(folder)
    two.close()
    three.close()
    assert sqlite_files(folder) == [SECOND, OWN]


def test_damage_that_a_second_run_finds_does_not_touch_the_file_of_the_first(folder):
    one = Ledger.open(folder)
    put_all(one, {key(1): REPLY})
    (folder / SECOND).write_bytes(b"This is not a database." * 1000)
    two = Ledger.open(folder)
    assert [w for w in two.warnings if f"{SECOND}: damaged" in w]
    put_all(two, {key(2): REPLY})
    put_all(one, {key(3): REPLY})
    assert named(two, [1, 2, 3]) == ["It is a cat."] * 3
    one.close()
    two.close()
    assert one.warnings == []


def test_a_file_of_another_run_that_is_replaced_is_opened_again(folder):
    path = filled(folder, n=1)
    one = Ledger.open(folder, rank=1)
    assert named(one, [0]) == ["reply 0"]
    path.rename(folder / "elsewhere")  # as a third run does that finds it damaged
    two = Ledger.open(folder)
    put_all(two, {key(5): REPLY})
    assert named(one, [5, 0]) == ["It is a cat.", None]
    one.close()
    put_all(two, {key(6): REPLY})
    assert named(two, [5, 6]) == ["It is a cat."] * 2
    two.close()
    assert (one.warnings, two.warnings) == ([], [])


def test_reading_another_runs_file_changes_nothing_of_it(folder):
    """Not even its log: a reader that is the last to close a file would otherwise write the log into it."""
    writer = start_writer(folder)
    kill_writer(writer, [writer.stdout.readline() for _ in range(50)])
    paths = [folder / OWN, folder / f"{OWN}-wal"]
    before = [path.read_bytes() for path in paths]
    assert len(before[1]) > 0
    reader = Ledger.open(folder, rank=1)
    assert named(reader, [0]) == ["reply 0"]
    reader.close()
    assert [path.read_bytes() for path in paths] == before


# --- files that vanish during a run ---


def remove_all(folder: Path) -> None:
    shutil.rmtree(folder)


def remove_contents(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def remove_the_file(folder: Path) -> None:
    (folder / OWN).unlink()


def remove_the_log(folder: Path) -> None:
    (folder / f"{OWN}-wal").unlink()


def move_away(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def replace_by_a_copy(folder: Path) -> None:
    copy = folder / "copy"
    shutil.copyfile(folder / OWN, copy)
    copy.rename(folder / OWN)


def replace_by_garbage(folder: Path) -> None:
    remove_contents(folder)
    (folder / OWN).write_bytes(b"This is not a database." * 1000)


def replace_by_an_old_one(folder: Path) -> None:
    remove_contents(folder)
    file_of_version_1(folder, start=100)


REMOVALS = [
    remove_all,
    remove_contents,
    remove_the_file,
    remove_the_log,
    move_away,
    replace_by_a_copy,
    replace_by_garbage,
    replace_by_an_old_one,
]


@pytest.mark.parametrize("remove", REMOVALS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("read_first", [True, False])
def test_files_that_vanish_during_a_run_are_written_again_and_it_is_told(folder, remove, read_first):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(n): replace(REPLY, text=f"reply {n}") for n in range(50)}, "openai:gpt-4o")
    assert ledger.get(key(1)) is not None if read_first else True
    remove(folder)
    put_all(ledger, {key(n): replace(REPLY, text=f"reply {n}") for n in range(50, 100)})
    assert named(ledger, range(100)) == [f"reply {n}" for n in range(100)]
    assert named(ledger, [200]) == [None]
    (told,) = [w for w in ledger.warnings if "was using it" in w]
    assert told.startswith(f"{folder / OWN}: deleted, moved or replaced")
    assert "Its 50 replies were written again" in told
    ledger.close()
    again = Ledger.open(folder)
    assert named(again, range(100)) == [f"reply {n}" for n in range(100)]
    assert again.warnings == []
    again.close()


def test_what_vanishes_is_not_lost_either_where_nothing_is_stored_after_it(folder):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(n): replace(REPLY, text=f"reply {n}") for n in range(10)})
    remove_all(folder)
    assert named(ledger, [3, 99]) == ["reply 3", None]
    ledger.close()
    assert len(ledger.warnings) == 1
    again = Ledger.open(folder)
    assert named(again, range(10)) == [f"reply {n}" for n in range(10)]
    again.close()


def test_hits_and_backends_survive_a_vanished_file(folder):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(1): REPLY}, "openai:gpt-4o")
    ledger.get(key(1))
    put_all(ledger, {key(2): REPLY}, "openai:gpt-4o")
    remove_contents(folder)
    ledger.get(key(2))
    ledger.close()
    file = LedgerFile.open_to_read(folder / OWN)
    assert (file.get(key(1)).backend, file.saved()["openai:gpt-4o"].hits) == ("openai:gpt-4o", 2)
    file.close()


def test_another_run_that_took_the_name_of_a_vanished_file_is_not_disturbed(folder):
    one = Ledger.open(folder)
    put_all(one, {key(n): replace(REPLY, text=f"one {n}") for n in range(20)})
    remove_contents(folder)
    two = Ledger.open(folder)  # the same name, because the lock is gone too
    put_all(two, {key(n): replace(REPLY, text=f"two {n}") for n in range(100, 120)})
    put_all(one, {key(20): replace(REPLY, text="one 20")})
    put_all(two, {key(120): replace(REPLY, text="two 120")})
    expected = [*(f"one {n}" for n in range(21)), *(f"two {n}" for n in range(100, 121))]
    for ledger in (one, two):
        assert named(ledger, [*range(21), *range(100, 121)]) == expected
    one.close()
    two.close()
    assert (len(one.warnings), two.warnings) == (1, [])
    third = Ledger.open(folder)
    assert named(third, [*range(21), *range(100, 121)]) == expected
    third.close()


def test_a_file_that_vanishes_again_and_again_stops_the_run(folder, monkeypatch):
    monkeypatch.setattr(ledger_writer, "MOST_MOVES", 3)
    ledger = Ledger.open(folder)
    for number in range(3):
        remove_contents(folder)
        put_all(ledger, {key(number): REPLY})
    remove_contents(folder)
    with pytest.raises(LedgerError, match="vanished 4 times during this run. Find out what removes it"):
        put_all(ledger, {key(9): REPLY})
    ledger.close()
    assert "The replies that this run stored are lost" in ledger.warnings[-1]


def test_a_folder_that_cannot_be_made_again_is_an_error_for_those_who_wait(folder):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(1): REPLY})
    remove_all(folder)
    folder.write_text("in the way")
    with pytest.raises(LedgerError, match="the ledger cannot be written again"):
        put_all(ledger, {key(2): REPLY})
    folder.unlink()
    put_all(ledger, {key(3): REPLY})
    ledger.close()
    assert count(folder / OWN) == 2


def test_looking_whether_the_file_is_there_costs_microseconds(folder):
    filled(folder, n=1)
    file = LedgerFile.open_to_write(folder / OWN)

    async def look() -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        for _ in range(1000):
            assert not file.is_gone
        return loop.time() - started

    assert asyncio.run(look()) < 0.2  # measured: 8 us each
    file.close()


def test_the_lock_ends_with_the_process_and_is_not_inherited(folder):
    """A child that outlives its killed parent must not keep the file."""
    ledger = Ledger.open(folder)
    fds = [int(fd) for fd in os.listdir("/proc/self/fd")] if os.path.exists("/proc/self/fd") else []
    inherited = []
    for fd in fds:
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if str(folder) in target and os.get_inheritable(fd):
            inherited.append(target)
    ledger.close()
    assert inherited == []


def test_the_log_is_written_into_the_file_when_the_last_process_ends(folder):
    one, two = Ledger.open(folder), Ledger.open(folder)
    put_all(one, {key(1): REPLY})
    put_all(two, {key(2): REPLY})
    assert named(two, [1]) == ["It is a cat."]
    one.close()
    two.close()
    Ledger.open(folder).close()
    for name in (OWN, SECOND):
        connection = sqlite3.connect(f"file:{folder / name}?immutable=1", uri=True)
        n_rows = connection.execute("SELECT count(*) FROM reply").fetchone()[0]
        connection.close()
        log = folder / f"{name}-wal"
        assert n_rows == 1 or log.stat().st_size > 0


def test_files_removed_at_any_moment_lose_nothing_that_was_acknowledged(folder):
    chance = random.Random(11)
    ledger = Ledger.open(folder)
    safe: list[int] = []

    async def write(numbers: Iterator[int]) -> None:
        for number in numbers:
            await ledger.put(key(number), replace(REPLY, text=f"reply {number} " + "x" * 2000))
            safe.append(number)

    async def write_and_remove() -> None:
        numbers = iter(range(3000))
        writing = [asyncio.create_task(write(numbers)) for _ in range(16)]
        for _ in range(8):
            await asyncio.sleep(chance.random() * 0.05)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await asyncio.gather(*writing)

    asyncio.run(write_and_remove())
    ledger.close()
    assert len(safe) == 3000
    again = Ledger.open(folder)
    assert [n for n in safe if again.get(key(n)) is None] == []
    assert (again.warnings, len(ledger.warnings) >= 1) == ([], True)
    again.close()
