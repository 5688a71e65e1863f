"""The ledger where disk or file are not well: nothing wrong is read, and what is to be done is said."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import filelock
import pytest

from interbench_tasks import ledger_file
from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_file import LedgerFile, row_from_reply
from interbench_tasks.records import Reply, Usage

ROOT = Path(__file__).parents[1]
REPLY = Reply(text="It is a cat.", usage=Usage(calls=1, input_tokens=812, output_tokens=5, reasoning_tokens=3))


def key(number: int) -> str:
    return f"{number:064x}"


def put_all(ledger: Ledger, replies: dict[str, Reply]) -> None:
    async def put_side_by_side() -> None:
        await asyncio.gather(*[ledger.put(name, reply) for name, reply in replies.items()])

    asyncio.run(put_side_by_side())


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def ledger(folder):
    opened = Ledger.open(folder)
    yield opened
    opened.close()


def hold(path: Path) -> sqlite3.Connection:
    """Another process's write lock."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def count(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute("SELECT count(*) FROM reply").fetchone()[0]
    finally:
        connection.close()


def test_a_ledger_of_another_schema_version_is_refused_unchanged(folder):
    Ledger.open(folder).close()
    path = folder / "ledger-rank0.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    for rank in (0, 1):  # its own, and another rank's
        with pytest.raises(
            LedgerError, match=r"(?s)ledger-rank0.sqlite3: a ledger of schema version 99.*move the file"
        ):
            Ledger.open(folder, rank=rank)
    assert path.read_bytes() == before


def test_a_database_that_is_no_ledger_is_refused_unchanged(folder):
    folder.mkdir()
    path = folder / "ledger-rank0.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE savings (account TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="a ledger of schema version 0"):
        Ledger.open(folder)
    assert path.read_bytes() == before


def filled(folder: Path, n: int = 200) -> Path:
    ledger = Ledger.open(folder)
    put_all(ledger, {key(number): replace(REPLY, text=f"reply {number} " + "x" * 3000) for number in range(n)})
    ledger.close()
    return folder / "ledger-rank0.sqlite3"


def garbage(path: Path) -> None:
    path.write_bytes(b"This is not a database." * 1000)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scratched_schema(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)


@pytest.mark.parametrize("damage", [garbage, cut, scratched_schema], ids=lambda f: f.__name__)
def test_a_damaged_file_is_set_aside_with_a_warning_and_the_run_goes_on(folder, damage):
    for number in (1, 2):
        path = filled(folder)
        damage(path)
        damaged = path.read_bytes()
        ledger = Ledger.open(folder)
        assert [w for w in ledger.warnings if f"set aside as ledger-rank0.sqlite3.damaged-{number}" in w]
        assert ledger.get(key(1)) is None
        put_all(ledger, {key(1): REPLY})
        ledger.close()
        assert (folder / f"ledger-rank0.sqlite3.damaged-{number}").read_bytes() == damaged
        again = Ledger.open(folder)
        assert again.get(key(1)).text == REPLY.text
        assert again.warnings == []
        again.close()


def change_letter(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


def test_a_changed_letter_in_the_file_is_a_miss_and_told_never_a_reply(folder):
    path = filled(folder)
    change_letter(path, b"reply 17 ", b"reply 71 ")
    ledger = Ledger.open(folder)
    assert [n for n in range(200) if ledger.get(key(n)) is None] == [17]
    assert ledger.get(key(17)) is None
    (warning,) = ledger.warnings
    assert "damaged (a row's checksum is wrong)" in warning
    put_all(ledger, {key(17): REPLY})
    assert ledger.get(key(17)).text == REPLY.text
    ledger.close()


def test_broken_utf8_in_the_file_is_a_miss(folder):
    path = filled(folder)
    change_letter(path, b"reply 17 ", b"reply \xff\xfe ")
    ledger = Ledger.open(folder)
    assert [n for n in range(200) if ledger.get(key(n)) is None] == [17]
    ledger.close()


def break_pages(path: Path) -> None:
    """Everything behind the first page, so that the file opens, and breaks when it is used."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))


def test_damage_found_while_the_run_goes_on_is_set_aside_and_loses_no_later_reply(folder):
    break_pages(filled(folder))
    ledger = Ledger.open(folder)
    assert ledger.warnings == []
    assert ledger.get(key(1)) is None
    put_all(ledger, {key(n): replace(REPLY, text=f"new {n}") for n in range(50)})
    assert ledger.get(key(1)).text == "new 1"
    put_all(ledger, {key(n): replace(REPLY, text=f"new {n}") for n in range(50, 100)})
    assert len([w for w in ledger.warnings if "set aside" in w]) == 1
    assert (folder / "ledger-rank0.sqlite3.damaged-1-wal").exists()  # what it holds may still be saved
    ledger.close()
    again = Ledger.open(folder)
    assert [again.get(key(n)).text for n in range(100)] == [f"new {n}" for n in range(100)]
    assert again.warnings == []
    again.close()


def test_a_damaged_file_of_another_rank_is_told_and_left_alone(folder):
    path = filled(folder)
    garbage(path)
    ledger = Ledger.open(folder, rank=1)
    assert ledger.get(key(1)) is None
    put_all(ledger, {key(1): REPLY})
    assert ledger.get(key(1)).text == REPLY.text
    (warning,) = ledger.warnings
    assert "ledger-rank0.sqlite3: damaged (file is not a database). The replies of that rank are not used." in warning
    ledger.close()
    assert path.exists()


ADVICE = "(?s)INTERBENCH_LEDGER to another folder, and start the same command again.*INTERBENCH_LEDGER=off"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=ADVICE) as caught:
        Ledger.open(tmp_path / "file" / "ledger")
    assert "file/ledger: the ledger cannot be opened" in str(caught.value)


def test_a_file_that_cannot_be_opened_is_a_sentence(folder):
    (folder / "ledger-rank0.sqlite3").mkdir(parents=True)
    with pytest.raises(LedgerError, match=ADVICE) as caught:
        Ledger.open(folder)
    assert "ledger-rank0.sqlite3: the ledger cannot be opened (unable to open database file)" in str(caught.value)


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


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_read_only_place_is_refused_before_anything_is_paid(what):
    with tempfile.TemporaryDirectory() as outer:  # not tmp_path, which only its owner may enter
        folder = Path(outer) / "ledger"
        filled(folder, n=1)
        for path in [Path(outer), folder, *folder.iterdir()]:
            path.chmod(0o777)
        read_only = folder if what == "folder" else folder / "ledger-rank0.sqlite3"
        read_only.chmod(0o555)
        said = in_child(OPEN, folder, as_nobody=os.getuid() == 0)
        folder.chmod(0o777)
    assert "the ledger cannot be opened" in said
    assert "INTERBENCH_LEDGER to another folder" in said


FILL = """
    import resource
    ledger = Ledger.open(Path(sys.argv[1]))
    async def main():
        await ledger.put("a", Reply(text="stored"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        for n in range(100):
            try:
                await ledger.put(f"b{n}", Reply(text="x" * 10_000))
            except LedgerError as error:
                sys.stdout.write(str(error))
                return
    asyncio.run(main())
    ledger.close()
"""


def test_a_disk_that_takes_no_more_is_a_sentence_and_what_is_stored_stays(folder):
    said = in_child(FILL, folder)
    assert "ledger-rank0.sqlite3: the ledger cannot be written" in said
    assert "INTERBENCH_LEDGER to another folder" in said
    ledger = Ledger.open(folder)
    assert ledger.get("a").text == "stored"
    assert ledger.warnings == []
    ledger.close()


def test_a_full_disk_is_told_to_every_put_that_waits_and_the_ledger_can_write_when_there_is_room_again(folder, ledger):
    writer = ledger._writer._connection  # only SQLite's own limit makes a full disk without a disk
    writer.execute("PRAGMA max_page_count = 20")

    async def put_two() -> list[object]:
        puts = [ledger.put(key(n), replace(REPLY, text="x" * 200_000)) for n in range(2)]
        return await asyncio.gather(*puts, return_exceptions=True)

    for error in asyncio.run(put_two()):
        assert isinstance(error, LedgerError)
        assert "cannot be written (database or disk is full): the disk is full. Free space, or" in str(error)
    writer.execute("PRAGMA max_page_count = 100000")
    assert asyncio.run(put_two()) == [None, None]
    assert ledger.get(key(1)).text == "x" * 200_000


def test_a_file_that_another_process_holds_too_long_is_a_sentence(folder, monkeypatch):
    monkeypatch.setattr(ledger_file, "BUSY_TIMEOUT_S", 0.05)
    ledger = Ledger.open(folder)
    other = hold(folder / "ledger-rank0.sqlite3")
    with pytest.raises(LedgerError, match=r"(?s)cannot be written \(database is locked\): another process has held it"):
        put_all(ledger, {key(1): REPLY})
    other.close()
    put_all(ledger, {key(1): REPLY})
    ledger.close()


def test_opening_waits_for_another_process_that_opens_the_same_folder(folder, monkeypatch):
    monkeypatch.setattr("interbench_tasks.ledger.BUSY_TIMEOUT_S", 0.05)
    folder.mkdir()
    with filelock.FileLock(folder / "ledger.lock"), pytest.raises(LedgerError, match="another process has held it"):
        Ledger.open(folder)
    Ledger.open(folder).close()


def test_the_file_of_another_rank_is_never_written(folder):
    path = filled(folder, n=1)
    other = LedgerFile.open_to_read(path)
    with pytest.raises(LedgerError, match="it is read-only"):
        other.put_all([row_from_reply(key(2), REPLY)])
    other.close()
    assert count(path) == 1


def test_a_disk_without_a_write_ahead_log_is_refused(folder, monkeypatch):
    class Disk(sqlite3.Connection):
        """As SQLite answers where it cannot share memory."""

        def execute(self, sql, *args):
            return super().execute("PRAGMA journal_mode" if "WAL" in sql else sql, *args)

    monkeypatch.setattr(sqlite3, "connect", lambda path, **options: Disk(path, **options))
    with pytest.raises(LedgerError, match="network file systems often do not"):
        Ledger.open(folder)


def test_a_value_that_no_column_holds_fails_its_put_and_no_later_one(ledger):
    for impossible in (2**70, object()):
        with pytest.raises(LedgerError, match=r"ledger-rank0\.sqlite3: "):
            put_all(ledger, {key(1): replace(REPLY, usage=Usage(calls=impossible))})
        put_all(ledger, {key(2): REPLY})
    assert ledger.get(key(1)) is None
    assert ledger.get(key(2)).text == REPLY.text


def test_a_bug_in_the_writer_reaches_those_who_wait(ledger, monkeypatch):
    def broken(file, rows):
        raise TypeError("a bug")

    monkeypatch.setattr(LedgerFile, "put_all", broken)
    with pytest.raises(LedgerError, match=r"cannot be stored: TypeError\('a bug'\)"):
        put_all(ledger, {key(1): REPLY})
