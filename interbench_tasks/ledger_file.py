"""One SQLite file of the ledger: how it is opened, read and written, and what to do when disk or file are not well."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self, cast

import filelock

from interbench_tasks.errors import InterbenchError, LedgerError
from interbench_tasks.ledger_rows import (
    INSERT,
    INSERT_SAVED,
    MIGRATIONS,
    SCHEMA_VERSION,
    SELECT_SAVED,
    DamageError,
    Row,
    Saved,
    Stored,
    row_from_saved,
    saved_from_row,
    select_rows,
    stored_from_row,
)

BUSY_TIMEOUT_S = 30.0
"""How long a process waits for another one that writes the same file."""
SIDE_FILES = ("", "-wal", "-shm")
"""What SQLite keeps beside the name of an open file, and the file itself."""
COPIED_AT_ONCE = 500

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_ELSEWHERE = "point INTERBENCH_LEDGER to another folder"
_NETWORK = (
    "SQLite's write-ahead log does not work there, as on most network file systems. "
    f"Use a local disk of this machine: {_ELSEWHERE}"
)
_SHARED_MEMORY = {
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
}
"""Kinds of SQLITE_IOERR that a healthy disk gives where processes cannot share memory or locks."""
_ADVICE = {
    sqlite3.SQLITE_FULL: f"the disk is full. Free space, or {_ELSEWHERE}",
    sqlite3.SQLITE_READONLY: f"it is read-only. Make it writable, or {_ELSEWHERE}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened. Make file and folder writable, or {_ELSEWHERE}",
    sqlite3.SQLITE_BUSY: f"another process has held it for {BUSY_TIMEOUT_S:.0f} s. End that one, or {_ELSEWHERE}",
    sqlite3.SQLITE_PROTOCOL: _NETWORK,
    sqlite3.SQLITE_IOERR: f"the disk failed: full, over quota, or gone. Repair that, or {_ELSEWHERE}",
}
_SYSTEM = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EROFS: sqlite3.SQLITE_READONLY,
    errno.EACCES: sqlite3.SQLITE_READONLY,
    errno.EPERM: sqlite3.SQLITE_READONLY,
    errno.ENOLCK: sqlite3.SQLITE_PROTOCOL,
    errno.ENOSYS: sqlite3.SQLITE_PROTOCOL,
}
"""What the system says -> the kind of SQLite's error that needs the same cure."""
_WITHOUT = "INTERBENCH_LEDGER=off runs without a ledger, and pays for every call again."


class LedgerFile:
    """An open file. Used by one thread at a time."""

    version = 0
    """Of its tables; 0 while it has none."""

    def __init__(self, path: Path, *, mode: str) -> None:
        """Not for callers: `open_to_write` and `open_to_read` make one that can be used. Args: mode = as in SQLite."""
        self.path = path
        self._identity: tuple[object, ...] = ()
        address = f"{path.absolute().as_uri()}?mode={mode}"
        with explained(path, "opened"):
            # Opened on one thread and used on another, never on two at once: sqlite3's own check is in the way.
            self._connection = sqlite3.connect(
                address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
        self._connection.text_factory = bytes

    @classmethod
    def open_to_write(cls, path: Path) -> Self:
        """The file, made where there is none, brought to our version where it is of an older one.

        Raises: LedgerError where it cannot be written or is of a newer version; DamageError.
        """
        file = cls(path, mode="rwc")
        with file._closed_on_error(), explained(path, "opened"):
            file._prepare()
            file._identity = _identity_of(path)
        return file

    @classmethod
    def open_to_read(cls, path: Path) -> Self | None:
        """The file for reading only, of our version or an older one; None where it holds nothing yet or is not there.

        Nothing is written into it, no log of a dead process either.

        Raises: LedgerError where it cannot be read or is of a newer version; DamageError.
        """
        if not path.exists():
            return None
        file = cls(path, mode="ro")
        with file._closed_on_error(), explained(path, "opened"):
            file.version = file._found_version()
            file._identity = _identity_of(path)
            if file.version:
                return file
        file.close()
        return None

    @classmethod
    def open_damaged(cls, path: Path) -> Self:
        """A damaged file for reading, also where a part of it is missing.

        Raises: LedgerError where it cannot be read at all or is of a newer version; DamageError.
        """
        file = cls(path, mode="ro")
        with file._closed_on_error(), explained(path, "opened"):
            file._connection.execute("PRAGMA writable_schema = ON")  # else SQLite refuses a file that was cut
            file.version = file._found_version()
            if file.version:
                return file
        file.close()
        raise DamageError("it holds nothing")

    @property
    def is_gone(self) -> bool:
        """Whether the file or its log lies no longer where it was opened: deleted, moved or replaced by another one."""
        return None in self._identity or _identity_of(self.path) != self._identity

    @property
    def is_another(self) -> bool:
        """Whether another file has the name now, or none; whatever became of the log."""
        return _identity_of(self.path)[:1] != self._identity[:1]

    def get(self, key: str) -> Stored | None:
        """What is stored under `key`; None where there is nothing.

        Raises: LedgerError where the file cannot be read; DamageError.
        """
        try:
            row = self._connection.execute(f"{select_rows(self.version)} WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise _translated(self.path, "read", error) from error
        return None if row is None else stored_from_row(row)

    def put_all(self, rows: Sequence[Row], saved: Mapping[str, Saved]) -> None:
        """Store all rows in one transaction, or none of them.

        Args: saved = model -> what is added to the count of what was saved.
        Raises: LedgerError where the file cannot be written; DamageError.
        """
        with explained(self.path, "written"), self._transaction():
            self._connection.executemany(INSERT, rows)
            if saved:
                self._connection.executemany(INSERT_SAVED, [row_from_saved(*item) for item in saved.items()])

    def select(self, query: str, parameters: Sequence[object] = ()) -> Iterator[tuple[object, ...]]:
        """Rows of any query, texts as bytes.

        Raises: LedgerError where the file cannot be read; DamageError.
        """
        with explained(self.path, "read"):
            yield from self._connection.execute(query, parameters)

    def saved(self) -> dict[str, Saved]:
        """Model -> what this file's writers were saved."""
        return dict(saved_from_row(row) for row in self.select(SELECT_SAVED)) if self.version >= 2 else {}

    def copy_from(self, other: LedgerFile) -> int:
        """Take over everything that `other` holds; the number of its replies."""
        rows = other.select(select_rows(other.version))
        self.put_all([], other.saved())
        n_rows = 0
        while batch := list(itertools.islice(rows, COPIED_AT_ONCE)):
            self.put_all(cast("list[Row]", batch), {})
            n_rows += len(batch)
        return n_rows

    def delete(self, condition: str, parameters: Sequence[object]) -> int:
        """Delete the replies that meet a condition and give their space back to the disk; how many they were.

        Raises: LedgerError where the file cannot be written; DamageError.
        """
        with explained(self.path, "written"), self._transaction():
            n_deleted = self._connection.execute(f"DELETE FROM reply WHERE {condition}", parameters).rowcount
        with explained(self.path, "made smaller, but the replies are deleted"):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return n_deleted

    def clear_away(self) -> None:
        """Free the name of a file that is gone: what is left of it must not be taken for another one's log.

        The caller holds the folder's lock.
        """
        if not self.is_another:  # only its log is gone: nobody may read the rest as if it were all
            set_aside(self.path)
            return
        left = zip(SIDE_FILES, self._identity, _identity_of(self.path), strict=True)
        for suffix in [suffix for suffix, ours, now in left if ours == now]:
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._connection.close()

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            yield
            undo.pop_all()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:  # it failed; after some errors SQLite has rolled back by itself
                self._connection.execute("ROLLBACK")

    def _prepare(self) -> None:
        """Make the file a ledger of our version that can be written, or find that it is one."""
        run = self._connection.execute
        self._found_version()  # before the journal mode: a file that is not ours must not be changed
        (mode,) = run("PRAGMA journal_mode = WAL").fetchone()
        if mode != b"wal":
            raise LedgerError(f"{self.path}: the ledger cannot be opened: {_NETWORK}.\n  {_WITHOUT}")
        run("PRAGMA synchronous = NORMAL")  # see ledger.py for what this means
        with self._transaction():
            for statements in MIGRATIONS[self._found_version() :]:
                for statement in statements:
                    run(statement)
            # Written also where it is right already: a read-only file is refused now, not after something was paid.
            run(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self.version = SCHEMA_VERSION

    def _found_version(self) -> int:
        """The version of the tables, 0 for an empty file.

        Raises: LedgerError where it is a newer one, or something else.
        """
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        names = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"{self.path}: a newer version of Interbench wrote this ledger (schema version {version}; this one "
                f"knows up to {SCHEMA_VERSION}).\n  Upgrade Interbench (pip install -U interbench-tasks), or "
                f"{_ELSEWHERE}, or move the file away to begin a fresh one."
            )
        if (version < 1 and names) or (version >= 1 and b"reply" not in names):
            raise LedgerError(
                f"{self.path}: a database, but no ledger of Interbench; it is left as it is.\n"
                f"  Move the file away, or {_ELSEWHERE}."
            )
        return max(int(version), 0)


def _identity_of(path: Path) -> tuple[object, ...]:
    """What tells the file and its log from others of the same name; None in the place of what is not there."""
    found: list[object] = []
    for suffix in SIDE_FILES:
        try:
            stat = os.stat(f"{path}{suffix}")
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_dev, stat.st_ino))
    return tuple(found)


def set_aside(path: Path) -> Path:
    """Give a damaged file another name, its log with it, and return that name. The caller holds the folder's lock."""
    taken = set(os.listdir(path.parent))
    number = next(n for n in range(1, len(taken) + 2) if f"{path.name}.damaged-{n}" not in taken)
    aside = path.with_name(f"{path.name}.damaged-{number}")
    with explained(path, "set aside"):
        with contextlib.suppress(FileNotFoundError):  # somebody has removed it meanwhile
            path.rename(aside)
        with contextlib.suppress(FileNotFoundError):  # there is no log after a clean end
            path.with_name(f"{path.name}-wal").rename(f"{aside}-wal")
        path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return aside


@contextlib.contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn what SQLite and the system raise into a LedgerError that says where, what and what to do.

    Raises: LedgerError; DamageError where the file is not what was written.
    """
    try:
        yield
    except (sqlite3.Error, OSError, NotImplementedError) as error:
        raise _translated(path, doing, error) from error


def _translated(path: Path, doing: str, error: Exception) -> InterbenchError:
    # The low byte is the kind of error; the others tell more exactly where it happened.
    exact = getattr(error, "sqlite_errorcode", 0)
    code = exact & 0xFF
    if code in _DAMAGE:
        return DamageError(str(error))
    if exact in _SHARED_MEMORY:
        code = sqlite3.SQLITE_PROTOCOL
    elif isinstance(error, filelock.Timeout):
        code = sqlite3.SQLITE_BUSY
    elif isinstance(error, OSError):
        code = _SYSTEM.get(error.errno or 0, 0)
    advice = _ADVICE.get(code, f"make sure that it lies on a local disk and can be written, or {_ELSEWHERE}")
    return LedgerError(
        f"{path}: the ledger cannot be {doing} ({error}): {advice}, and start the same command again: "
        f"what is stored is not paid for twice.\n  {_WITHOUT}"
    )
