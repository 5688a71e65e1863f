"""Versions of the ledger's tables: an older file is brought up to date, a newer one is left alone."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import pytest

from interbench_tasks import ledger_rows
from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_file import LedgerFile
from interbench_tasks.ledger_rows import MIGRATIONS, SCHEMA_VERSION
from tests.ledgers import REPLY, count, filled, key, put_all

VERSION_1 = """
CREATE TABLE reply (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, status TEXT NOT NULL, finish_reason TEXT, reasoning TEXT, model TEXT,
    calls INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER,
    checksum INTEGER NOT NULL, created_at REAL NOT NULL
)"""
INSERT_1 = f"INSERT OR REPLACE INTO reply VALUES ({'CAST(? AS TEXT), ' * 6}?, ?, ?, ?, ?, ?)"
"""As version 0.1.0 of this package wrote them, word for word."""


def file_of_version_1(folder: Path, *, rank: int = 0, start: int = 0, n: int = 3) -> Path:
    """What version 0.1.0 left, with replies `old 0`, `old 1`, ..."""
    folder.mkdir(exist_ok=True)
    path = folder / f"ledger-rank{rank}.sqlite3"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(VERSION_1)
    connection.execute("PRAGMA user_version = 1")
    connection.execute("COMMIT")
    connection.executemany(INSERT_1, [row_of_version_1(number) for number in range(start, start + n)])
    connection.close()
    return path


def row_of_version_1(number: int) -> tuple:
    values = (f"old {number}".encode(), b"ok", b"stop", None, b"gpt-4o-2024-08-06", 1, 812, 5, None)
    parts = [value if isinstance(value, bytes) else repr(value).encode() for value in values]
    return (key(number).encode(), *values, zlib.crc32(b"\0".join([key(number).encode(), *parts])), 1.7e9 + number)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


def schema(path: Path) -> tuple:
    connection = sqlite3.connect(path)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return version, [(name, connection.execute(f"PRAGMA table_info({name})").fetchall()) for (name,) in tables]
    finally:
        connection.close()


def test_a_ledger_of_version_1_is_brought_up_to_date_and_loses_nothing(folder):
    path = file_of_version_1(folder)
    ledger = Ledger.open(folder)
    assert [ledger.get(key(n)).text for n in range(3)] == ["old 0", "old 1", "old 2"]
    put_all(ledger, {key(3): REPLY}, "openai:gpt-4o")
    assert ledger.get(key(3)).text == REPLY.text
    assert ledger.warnings == []
    ledger.close()
    assert count(path) == 4
    fresh = filled(folder.parent / "fresh", n=1)
    assert schema(path) == schema(fresh)
    assert schema(path)[0] == SCHEMA_VERSION == 2


def test_an_old_reply_keeps_its_time_and_has_no_backend(folder):
    path = file_of_version_1(folder, n=1)
    Ledger.open(folder).close()
    file = LedgerFile.open_to_read(path)
    found = file.get(key(0))
    assert (found.backend, found.model, found.created_at) == (None, "gpt-4o-2024-08-06", 1.7e9)
    file.close()


def test_an_old_file_of_another_rank_is_read_as_it_is_and_not_written(folder):
    path = file_of_version_1(folder, rank=1)
    before = path.read_bytes()
    ledger = Ledger.open(folder)
    assert ledger.get(key(1)).text == "old 1"
    ledger.close()
    assert path.read_bytes() == before
    assert schema(path)[0] == 1


def test_hits_on_an_old_file_are_counted_under_the_models_name(folder):
    file_of_version_1(folder, rank=1)
    ledger = Ledger.open(folder)
    ledger.get(key(1))
    ledger.close()
    own = LedgerFile.open_to_read(folder / "ledger-rank0.sqlite3")
    assert {model: saved.hits for model, saved in own.saved().items()} == {"gpt-4o-2024-08-06": 1}
    own.close()


def test_a_migration_that_fails_leaves_the_old_file_as_it_was(folder, monkeypatch):
    path = file_of_version_1(folder)
    broken = (*MIGRATIONS[:1], (*MIGRATIONS[1], "CREATE TABLE reply (key TEXT)"))
    monkeypatch.setattr("interbench_tasks.ledger_file.MIGRATIONS", broken)
    with pytest.raises(LedgerError, match=r"ledger-rank0\.sqlite3: the ledger cannot be opened \(table reply already"):
        Ledger.open(folder)
    assert (schema(path)[0], count(path)) == (1, 3)
    monkeypatch.undo()
    ledger = Ledger.open(folder)
    assert ledger.get(key(2)).text == "old 2"
    ledger.close()


def test_every_step_from_an_empty_file_is_there_once():
    assert len(MIGRATIONS) == SCHEMA_VERSION == ledger_rows.SCHEMA_VERSION
    assert all(MIGRATIONS)


def as_version(path: Path, version: int) -> bytes:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize("rank", [0, 1], ids=["its own file", "another rank's"])
@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 99])
def test_a_ledger_of_a_newer_version_is_refused_unchanged(folder, rank, version):
    path = filled(folder, n=1)
    before = as_version(path, version)
    with pytest.raises(
        LedgerError, match=rf"schema version {version}; this one knows up to {SCHEMA_VERSION}"
    ) as caught:
        Ledger.open(folder, rank=rank)
    assert "pip install -U interbench-tasks" in str(caught.value)
    assert "INTERBENCH_LEDGER to another folder" in str(caught.value)
    assert path.read_bytes() == before
    as_version(path, SCHEMA_VERSION)
    Ledger.open(folder, rank=rank).close()  # the failed try holds no lock


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_database_that_is_no_ledger_is_refused_unchanged(folder, version):
    folder.mkdir()
    path = folder / "ledger-rank0.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE savings (account TEXT)")
    connection.close()
    before = as_version(path, version)
    with pytest.raises(LedgerError, match=r"(?s)a database, but no ledger of Interbench.*Move the file away"):
        Ledger.open(folder)
    assert path.read_bytes() == before
