"""The ledger on real disks that are full or read-only; needs the right to mount, which mostly root has."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger import Ledger
from tests.ledgers import OPEN, REPLY, filled, in_child, key, put_all

Disk = Callable[[str], Path]


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    """`disk("size=1m")`: the folder of a disk in memory, changed by a second call; gone after the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = []

    def mount(options: str) -> Path:
        words = ["-o", f"remount,{options}"] if mounted else ["-t", "tmpfs", "-o", options, "none"]
        done = subprocess.run(["mount", *words, str(folder)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"needs the right to mount: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    if mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def put_until_it_fails(ledger: Ledger, most: int = 200) -> tuple[int, str]:
    """Replies that were stored, and what was said of the first that was not."""

    async def put() -> tuple[int, str]:
        for number in range(most):
            try:
                await ledger.put(key(number), replace(REPLY, text=f"reply {number} " + "x" * 10_000))
            except LedgerError as error:
                return number, str(error)
        return most, ""

    return asyncio.run(put())


def test_a_full_disk_is_a_sentence_and_what_was_stored_is_found_again(disk):
    folder = disk("size=300k") / "ledger"
    ledger = Ledger.open(folder)
    n_stored, said = put_until_it_fails(ledger)
    assert n_stored > 3
    assert "ledger-rank0.sqlite3: the ledger cannot be written (database or disk is full): the disk is full." in said
    assert "Free space, or point INTERBENCH_LEDGER to another folder, and start the same command again" in said
    assert ledger.get(key(n_stored)) is None
    ledger.close()
    again = Ledger.open(folder)
    assert [again.get(key(n)).text.split(" x")[0] for n in range(n_stored)] == [f"reply {n}" for n in range(n_stored)]
    assert again.warnings == []
    again.close()


def test_a_disk_that_has_room_again_is_written_again_by_the_same_run(disk):
    ledger = Ledger.open(disk("size=300k") / "ledger")
    n_stored, _ = put_until_it_fails(ledger)
    disk("size=10m")
    put_all(ledger, {key(n_stored): REPLY})
    assert ledger.get(key(n_stored)).text == REPLY.text
    ledger.close()


def test_a_disk_without_any_room_is_refused_before_anything_is_paid(disk):
    folder = disk("size=64k")
    (folder / "filler").write_bytes(b"x" * 4096 * 15)
    with pytest.raises(LedgerError, match=r"the ledger cannot be opened \(.*\): the disk (is|failed:) full") as caught:
        Ledger.open(folder / "ledger")
    assert "INTERBENCH_LEDGER to another folder" in str(caught.value)


@pytest.mark.parametrize("as_nobody", [False, True])
def test_a_read_only_disk_is_refused_before_anything_is_paid(disk, as_nobody):
    folder = disk("size=1m,mode=777") / "ledger"
    filled(folder, n=1)
    disk("ro")
    said = in_child(OPEN, folder, as_nobody=as_nobody)
    assert "the ledger cannot be opened" in said
    assert "it is read-only. Make it writable, or point INTERBENCH_LEDGER to another folder" in said
    assert "INTERBENCH_LEDGER=off runs without a ledger, and pays for every call again." in said


def test_a_disk_that_is_full_when_the_file_must_be_written_again_loses_nothing_that_has_room_later(disk):
    folder = disk("size=1m") / "ledger"
    ledger = Ledger.open(folder)
    put_all(ledger, {key(n): replace(REPLY, text="x" * 10_000) for n in range(60)})
    for path in folder.glob("ledger-rank0.sqlite3*"):
        path.unlink()  # the space is not free: the run still has the files open
    with pytest.raises(LedgerError, match="the disk is full"):
        put_all(ledger, {key(60): REPLY})
    disk("size=10m")
    put_all(ledger, {key(61): REPLY})
    ledger.close()
    assert len(ledger.warnings) == 1
    again = Ledger.open(folder)
    assert [n for n in range(62) if again.get(key(n)) is None] == [60]
    again.close()
