"""A damaged ledger costs what is damaged, not the rest."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_file import LedgerFile
from interbench_tasks.ledger_salvage import take_over
from tests.ledgers import REPLY, put_all

N = 400
NEW = range(1000, 1040)


def hashed(number: int) -> str:
    """A key as they are in life: in no order."""
    return hashlib.sha256(str(number).encode()).hexdigest()


def filled(folder: Path, size: int = 300) -> Path:
    ledger = Ledger.open(folder)
    put_all(ledger, {hashed(n): replace(REPLY, text=f"reply {n} " + "x" * size) for n in range(N)}, "openai:m")
    for n in range(5):
        assert ledger.get(hashed(n)) is not None
    ledger.close()
    return folder / "ledger-rank0.sqlite3"


def break_page(path: Path, page: int, seed: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(random.Random(seed).randbytes(4096))


def missing(ledger: Ledger) -> list[int]:
    return [n for n in range(N) if ledger.get(hashed(n)) is None]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


@pytest.mark.parametrize("size", [300, 5000])
@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.85])
def test_one_broken_page_costs_its_own_replies_and_no_other(folder, size, share):
    path = filled(folder, size)
    n_pages = path.stat().st_size // 4096
    break_page(path, 2 + int((n_pages - 2) * share))
    ledger = Ledger.open(folder)
    lost = missing(ledger)
    assert len(lost) < N / 5
    put_all(ledger, {hashed(n): replace(REPLY, text=f"again {n}") for n in [*lost, *NEW]})  # the run asks again
    assert missing(ledger) == []
    ledger.close()
    again = Ledger.open(folder)
    assert missing(again) == []
    for n in range(N):
        text = again.get(hashed(n)).text
        assert text.startswith(f"reply {n} ") or (n in lost and text == f"again {n}")
    assert [again.get(hashed(n)).text for n in NEW] == [f"again {n}" for n in NEW]
    assert again.warnings == []
    again.close()


def test_a_file_that_was_cut_gives_what_is_left_of_it(folder):
    path = filled(folder)
    os.truncate(path, path.stat().st_size // 2)
    ledger = Ledger.open(folder)
    found = N - len(missing(ledger))
    assert N / 4 < found < N
    (warning,) = ledger.warnings
    assert f"with the {found} replies that can still be read of it" in warning
    ledger.close()


def test_a_changed_letter_is_not_taken_over(folder):
    path = filled(folder)
    path.write_bytes(path.read_bytes().replace(b"reply 17 ", b"reply 71 "))
    fresh = LedgerFile.open_to_write(folder / "fresh.sqlite3")
    assert take_over(path, fresh) == N - 1
    assert fresh.get(hashed(17)) is None
    assert fresh.get(hashed(18)).backend == "openai:m"
    assert fresh.saved()["openai:m"].hits == 5
    fresh.close()


def test_of_what_is_no_database_nothing_is_taken_over(tmp_path):
    path = tmp_path / "x.sqlite3"
    fresh = LedgerFile.open_to_write(tmp_path / "fresh.sqlite3")
    for content in (b"", b"no database at all" * 500, bytes(9000)):
        path.write_bytes(content)
        assert take_over(path, fresh) == 0
        assert path.read_bytes() == content
    fresh.close()


def test_a_broken_last_page_does_not_end_the_search(folder):
    path = filled(folder)
    connection = sqlite3.connect(path)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'saved'").fetchone()
    connection.close()
    break_page(path, root - 1)  # the count of hits is gone too
    last = path.read_bytes().rindex(f"reply {N - 1} ".encode()) // 4096
    break_page(path, last, seed=1)
    fresh = LedgerFile.open_to_write(folder / "fresh.sqlite3")
    assert N - 60 < take_over(path, fresh) < N
    assert fresh.saved() == {}
    fresh.close()
