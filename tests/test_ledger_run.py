"""Whole runs on one ledger: two at a time, with files that vanish, on disks that cannot be used."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from interbench_tasks.errors import LedgerError
from tests import soak_child
from tests.ledgers import count
from tests.soak import CONCURRENCY, Soak, committed, planted_server, write_task

N = 25


@pytest.fixture
def driver(tmp_path):
    write_task(tmp_path, N)
    with planted_server(N) as server:
        yield Soak(tmp_path, server, seed=0)


def ended(driver: Soak, process, out: Path):
    process.wait(timeout=120)
    return driver.played(process, out)


def test_two_runs_at_once_both_end_well_and_a_third_pays_for_nothing(driver):
    outs = [driver.folder / "one", driver.folder / "two"]
    processes = [driver.start(out, driver.ledger) for out in outs]
    one, two = (ended(driver, process, out) for process, out in zip(processes, outs, strict=True))
    assert one == two
    n_both, distinct = driver.server.requests, len({request.body_digest for request in driver.server.log})
    files = sorted(path.name for path in driver.ledger.glob("*.sqlite3"))
    assert files == ["ledger-rank0-2.sqlite3", "ledger-rank0.sqlite3"]
    assert distinct <= sum(count(driver.ledger / name) for name in files) == n_both <= 2 * distinct
    assert driver.finish(driver.folder / "three", driver.ledger) == one
    assert driver.server.requests == n_both


def test_a_run_that_starts_later_finds_what_the_other_one_stores_meanwhile(driver):
    first = driver.start(driver.folder / "one", driver.ledger)
    driver.until(first, time.monotonic() + 60, lambda: driver.server.requests >= 40)
    second = driver.start(driver.folder / "two", driver.ledger)
    assert ended(driver, first, driver.folder / "one") == ended(driver, second, driver.folder / "two")
    distinct = len({request.body_digest for request in driver.server.log})
    # It catches up at once; after that both ask side by side, and may pay twice for what is in flight.
    assert driver.server.requests < 2 * distinct - 20


def test_a_ledger_that_is_deleted_during_a_run_is_told_and_nothing_is_paid_twice(driver):
    process = driver.start(driver.folder / "one", driver.ledger)
    driver.until(process, time.monotonic() + 60, lambda: driver.server.requests >= 40)
    shutil.rmtree(driver.ledger)
    process.wait(timeout=120)
    assert process.returncode == 0, driver.said(process)
    assert "deleted, moved or replaced while this run was using it" in driver.said(process)
    paid = driver.server.requests
    assert len(committed(driver.ledger)) == paid
    driver.finish(driver.folder / "two", driver.ledger)
    assert driver.server.requests == paid


def play(driver: Soak, monkeypatch, ledger: Path) -> None:
    """A run in this process."""
    monkeypatch.setenv("INTERBENCH_LEDGER", str(ledger))
    monkeypatch.setenv("INTERBENCH_PROVIDER", f"openai:teacher@{driver.server.url}")
    receiver = f"openai:student@{driver.server.url},max_concurrency={CONCURRENCY}"
    soak_child.main(str(driver.folder / "soak.yaml"), str(driver.folder / "out"), receiver)


def in_the_way(ledger: Path, monkeypatch) -> str:
    ledger.write_text("")
    return "the ledger cannot be opened"


def newer(ledger: Path, monkeypatch) -> str:
    ledger.mkdir()
    connection = sqlite3.connect(ledger / "ledger-rank0.sqlite3")
    connection.execute("CREATE TABLE reply (key TEXT)")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    return "schema version 99"


def without_a_log(ledger: Path, monkeypatch) -> str:
    class Refusing(sqlite3.Connection):
        def execute(self, sql, *args):
            return super().execute("PRAGMA journal_mode" if "WAL" in sql else sql, *args)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **options: connect(path, factory=Refusing, **options))
    return "Use a local disk"


@pytest.mark.parametrize("spoil", [in_the_way, newer, without_a_log], ids=lambda f: f.__name__)
def test_a_ledger_that_cannot_be_used_stops_a_run_before_anything_is_asked(driver, monkeypatch, spoil):
    message = spoil(driver.ledger, monkeypatch)
    with pytest.raises(LedgerError, match=message):
        play(driver, monkeypatch, driver.ledger)
    assert driver.server.requests == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "interbench-ledger"]


def test_a_disk_that_fills_up_stops_the_run_and_the_same_command_goes_on(driver, monkeypatch):
    from interbench_tasks.ledger_file import LedgerFile

    real, n_put = LedgerFile.put_all, 0

    def full(file, rows, saved):
        nonlocal n_put
        n_put += len(rows)
        if n_put > 30:
            file._connection.execute("PRAGMA max_page_count = 1")  # only SQLite's own limit fills a disk without one
        real(file, [(*row[:1], row[1] + b" " * 200_000 if n_put > 30 else row[1], *row[2:]) for row in rows], saved)

    monkeypatch.setattr(LedgerFile, "put_all", full)
    with pytest.raises(LedgerError, match="the disk is full. Free space, or point INTERBENCH_LEDGER to another folder"):
        play(driver, monkeypatch, driver.ledger)
    monkeypatch.undo()
    stored, asked = committed(driver.ledger), driver.server.requests
    assert 0 < len(stored) <= 30 < asked
    play(driver, monkeypatch, driver.ledger)
    again = [request.body_digest for request in driver.server.log[asked:]]
    assert not set(again) & stored
    assert len(committed(driver.ledger)) == len({request.body_digest for request in driver.server.log})
