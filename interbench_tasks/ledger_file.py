"""One SQLite file of the ledger: its table, its rows, and what to do when the disk or the file is not well."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self, cast

import filelock

from interbench_tasks.errors import InterbenchError, LedgerError
from interbench_tasks.records import Reply, ReplyRun, Usage

SCHEMA_VERSION = 1
"""Of the table; kept in the file's `user_version`. Raised by any change of the table."""
BUSY_TIMEOUT_S = 30.0
"""How long a process waits for another one that writes the same file."""

Row = tuple[bytes | int | float | None, ...]
"""A reply as the table holds it, in the order of its columns. Texts are bytes: what a model says may hold lone
surrogates, which sqlite3 refuses as str."""

_TABLE = """
CREATE TABLE reply (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, status TEXT NOT NULL, finish_reason TEXT, reasoning TEXT, model TEXT,
    calls INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER,
    checksum INTEGER NOT NULL, created_at REAL NOT NULL
)"""
_INSERT = f"INSERT OR REPLACE INTO reply VALUES ({'CAST(? AS TEXT), ' * 6}?, ?, ?, ?, ?, ?)"
_SELECT = """
SELECT text, status, finish_reason, reasoning, model, calls, input_tokens, output_tokens, reasoning_tokens, checksum
FROM reply WHERE key = ?"""
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_ELSEWHERE = "point INTERBENCH_LEDGER to another folder"
_ADVICE = {
    sqlite3.SQLITE_FULL: f"the disk is full. Free space, or {_ELSEWHERE}",
    sqlite3.SQLITE_READONLY: f"it is read-only. Make it writable, or {_ELSEWHERE}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened. Make file and folder writable, or {_ELSEWHERE}",
    sqlite3.SQLITE_BUSY: f"another process has held it for {BUSY_TIMEOUT_S:.0f} s. End that one, or {_ELSEWHERE}",
    sqlite3.SQLITE_IOERR: f"the disk failed: full, over quota, or gone. Repair that, or {_ELSEWHERE}",
}
_WITHOUT = "INTERBENCH_LEDGER=off runs without a ledger, and pays for every call again."


class DamageError(InterbenchError):
    """The file, or a row of it, is not what was written. The ledger answers it; it never reaches a caller."""


class LedgerFile:
    """An open file. Used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained(path, "opened"):
            # Opened on one thread and used on another, never on two at once: sqlite3's own check is in the way.
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
        self._connection.text_factory = bytes

    @classmethod
    def open_to_write(cls, path: Path) -> Self:
        """The file, made where there is none. The caller holds the folder's lock.

        Raises: LedgerError where it cannot be written or is of another version; DamageError.
        """
        file = cls(path)
        with file._closed_on_error(), explained(path, "opened"):
            file._prepare()
        return file

    @classmethod
    def open_to_read(cls, path: Path) -> Self | None:
        """The file for reading only; None where its rank died before it held anything.

        Raises: LedgerError where it cannot be read or is of another version; DamageError.
        """
        file = cls(path)
        with file._closed_on_error(), explained(path, "opened"):
            file._connection.execute("PRAGMA query_only = ON")
            if file._has_table():
                return file
        file.close()
        return None

    def get(self, key: str) -> Reply | None:
        """The reply stored under `key`, equal to what was stored but for `run`; None where there is none.

        Raises: LedgerError where the file cannot be read; DamageError.
        """
        try:
            row = self._connection.execute(_SELECT, (key,)).fetchone()
        except sqlite3.Error as error:
            raise _translated(self.path, "read", error) from error
        return None if row is None else _reply_from_row(key, row)

    def put_all(self, rows: Sequence[Row]) -> None:
        """Store all rows in one transaction, or none of them.

        Raises: LedgerError where the file cannot be written; DamageError.
        """
        with explained(self.path, "written"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_INSERT, rows)
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:  # it failed; after some errors SQLite has rolled back by itself
                    self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._connection.close()

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            yield
            undo.pop_all()

    def _prepare(self) -> None:
        """Make the file a ledger that can be written, or find that it is one."""
        run = self._connection.execute
        self._has_table()  # before the journal mode: a file that is not ours must not be changed
        (mode,) = run("PRAGMA journal_mode = WAL").fetchone()
        if mode != b"wal":
            raise LedgerError(
                f"{self.path}: the disk does not support SQLite's write-ahead log; network file systems often do not.\n"
                f"  Use a local disk: {_ELSEWHERE}. {_WITHOUT}"
            )
        run("PRAGMA synchronous = NORMAL")  # see ledger.py for what this means
        run("BEGIN IMMEDIATE")
        if not self._has_table():
            run(_TABLE)
        # Written also where it is right already: a read-only file is refused now, and not after something was paid.
        run(f"PRAGMA user_version = {SCHEMA_VERSION}")
        run("COMMIT")

    def _has_table(self) -> bool:
        """True for a ledger of our version, False for an empty file.

        Raises: LedgerError where it is something else.
        """
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (n_tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and n_tables == 0:
            return False
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"{self.path}: a ledger of schema version {version}; this version of Interbench reads "
                f"{SCHEMA_VERSION}.\n  Install the version that wrote it, or {_ELSEWHERE}, or move the file away to "
                "begin a fresh one."
            )
        return True


def set_aside(path: Path) -> Path:
    """Give a damaged file another name, its log with it, and return that name. The caller holds the folder's lock."""
    taken = set(os.listdir(path.parent))
    number = next(n for n in range(1, len(taken) + 2) if f"{path.name}.damaged-{n}" not in taken)
    aside = path.with_name(f"{path.name}.damaged-{number}")
    with explained(path, "set aside"):
        path.rename(aside)
        with contextlib.suppress(FileNotFoundError):  # there is no log after a clean end
            path.with_name(f"{path.name}-wal").rename(f"{aside}-wal")
        path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return aside


def row_from_reply(key: str, reply: Reply) -> Row:
    """A reply as the table holds it. `run` is left out, but for the time: now."""
    usage = reply.usage
    texts = [_bytes(text) for text in (reply.text, reply.status, reply.finish_reason, reply.reasoning, reply.model)]
    values = (*texts, usage.calls, usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)
    return (key.encode(), *values, _checksum(key, values), time.time())


def _reply_from_row(key: str, row: tuple[object, ...]) -> Reply:
    if _checksum(key, row[:-1]) != row[-1]:
        raise DamageError("a row's checksum is wrong")
    text, _, finish_reason, reasoning, model = (_text(cast("bytes | None", raw)) for raw in row[:5])
    calls, *tokens = cast("tuple[int, int | None, int | None, int | None]", row[5:9])
    return Reply(
        text=text or "",
        finish_reason=finish_reason,
        reasoning=reasoning,
        usage=Usage(calls=calls, input_tokens=tokens[0], output_tokens=tokens[1], reasoning_tokens=tokens[2]),
        model=model,
        run=ReplyRun(from_ledger=True),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", "surrogatepass")


def _checksum(key: str, values: Sequence[object]) -> int:
    # SQLite notices a broken page, not a changed letter inside of one, and a changed letter would move a score.
    parts = [value if isinstance(value, bytes) else repr(value).encode() for value in values]
    return zlib.crc32(b"\0".join([key.encode(), *parts]))


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
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGE:
        return DamageError(str(error))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        code = sqlite3.SQLITE_FULL
    elif isinstance(error, filelock.Timeout):
        code = sqlite3.SQLITE_BUSY
    advice = _ADVICE.get(code, f"make sure that it lies on a local disk and can be written, or {_ELSEWHERE}")
    return LedgerError(
        f"{path}: the ledger cannot be {doing} ({error}): {advice}, and start the same command again: "
        f"what is stored is not paid for twice.\n  {_WITHOUT}"
    )
