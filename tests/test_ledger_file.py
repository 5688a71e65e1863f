"""The ledger where disk or file are not well: nothing wrong is read, and what is to be done is said."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import filelock
import pytest

from interbench_tasks import ledger_file
from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_file import LedgerFile
from interbench_tasks.ledger_rows import row_from_reply
from interbench_tasks.records import Usage
from tests.ledgers import OPEN, REPLY, count, filled, hold, in_child, key, put_all


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def ledger(folder):
    opened = Ledger.open(folder)
    yield opened
    opened.close()


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
        assert (ledger.get(key(1)) is None) == (damage is not cut)
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
    assert "ledger-rank0.sqlite3: damaged (file is not a database). Its replies are not used." in warning
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
    writer = ledger._writer._file._connection  # only SQLite's own limit makes a full disk without a disk
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
    monkeypatch.setattr("interbench_tasks.ledger_claims.BUSY_TIMEOUT_S", 0.05)
    folder.mkdir()
    with filelock.FileLock(folder / "ledger.lock"), pytest.raises(LedgerError, match="another process has held it"):
        Ledger.open(folder)
    Ledger.open(folder).close()


def test_the_file_of_another_rank_is_never_written(folder):
    path = filled(folder, n=1)
    other = LedgerFile.open_to_read(path)
    with pytest.raises(LedgerError, match="it is read-only"):
        other.put_all([row_from_reply(key(2), REPLY, None)], {})
    other.close()
    assert count(path) == 1


class Refusing(sqlite3.Connection):
    """As SQLite answers on a network file system: the log is refused without an error, or with one of several."""

    code: int | None = None

    def execute(self, sql, *args):
        if "WAL" not in sql:
            return super().execute(sql, *args)
        if self.code is None:
            return super().execute("PRAGMA journal_mode", *args)
        error = sqlite3.OperationalError(
            "locking protocol" if self.code == sqlite3.SQLITE_PROTOCOL else "disk I/O error"
        )
        error.sqlite_errorcode = self.code
        raise error


@pytest.mark.parametrize(
    "answer", [None, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_LOCK]
)
def test_a_disk_without_a_write_ahead_log_is_refused_and_what_to_do_is_said(folder, monkeypatch, answer):
    monkeypatch.setattr(Refusing, "code", answer)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **options: connect(path, factory=Refusing, **options))
    with pytest.raises(LedgerError, match=r"(?s)as on most network file systems\. Use a local disk.*=off") as caught:
        Ledger.open(folder)
    assert str(caught.value).startswith(f"{folder / 'ledger-rank0.sqlite3'}: the ledger cannot be opened")
    monkeypatch.undo()
    Ledger.open(folder).close()  # nothing of the failure is left, no lock either


def test_a_value_that_no_column_holds_fails_its_put_and_no_later_one(ledger):
    for impossible in (2**70, object()):
        with pytest.raises(LedgerError, match=r"ledger-rank0\.sqlite3: "):
            put_all(ledger, {key(1): replace(REPLY, usage=Usage(calls=impossible))})
        put_all(ledger, {key(2): REPLY})
    assert ledger.get(key(1)) is None
    assert ledger.get(key(2)).text == REPLY.text


def test_a_bug_in_the_writer_reaches_those_who_wait(ledger, monkeypatch):
    def broken(file, rows, saved):
        raise TypeError("a bug")

    monkeypatch.setattr(LedgerFile, "put_all", broken)
    with pytest.raises(LedgerError, match=r"cannot be stored: TypeError\('a bug'\)"):
        put_all(ledger, {key(1): REPLY})
