"""Who writes which file of a ledger's folder: each process its own, held by a lock that ends with the process."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import filelock

from interbench_tasks.ledger_file import BUSY_TIMEOUT_S

_FILE_NAME = re.compile(r"ledger-rank\d+(?:-\d+)?\.sqlite3")
_ASIDE_NAME = re.compile(r"ledger-rank\d+(?:-\d+)?\.sqlite3\.damaged-\d+")


def is_ledger_name(name: str) -> bool:
    """Whether a file of that name holds replies."""
    return _FILE_NAME.fullmatch(name) is not None


def ledger_paths(folder: Path) -> list[Path]:
    """The files of a ledger, in the order of their names; empty where there are none."""
    return sorted(folder / name for name in _names_in(folder) if is_ledger_name(name))


def damaged_paths(folder: Path) -> list[Path]:
    """The files that were set aside."""
    return sorted(folder / name for name in _names_in(folder) if _ASIDE_NAME.fullmatch(name))


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def folder_lock(folder: Path) -> filelock.BaseFileLock:
    """The lock under which files are made, claimed and set aside; held for moments only."""
    return filelock.FileLock(folder / "ledger.lock", timeout=BUSY_TIMEOUT_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A file that nobody else writes until it is released, or until this process is dead."""

    path: Path
    _lock: filelock.BaseFileLock

    def release(self) -> None:
        """Let another process have the file."""
        self._lock.release()


def claim_of(path: Path) -> Claim | None:
    """The file as ours, None where another process has it. The caller holds the folder's lock.

    Raises: OSError where the lock's file cannot be made.
    """
    # Not bound to a thread: the ledger may be closed by another one than opened it.
    lock = filelock.FileLock(path.with_suffix(".lock"), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        return None
    return Claim(path=path, _lock=lock)


def free_claim(folder: Path, rank: int) -> Claim:
    """A file of that rank that nobody has: the rank's first one, or a further one while other runs have those.

    The caller holds the folder's lock.

    Raises: OSError where the lock's file cannot be made.
    """
    for number in itertools.count(1):
        suffix = "" if number == 1 else f"-{number}"
        claim = claim_of(folder / f"ledger-rank{rank}{suffix}.sqlite3")
        if claim is not None:
            return claim
    raise AssertionError("unreachable")  # counting never ends
