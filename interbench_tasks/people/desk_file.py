"""The SQLite file of a desk: its tables, and what to do where disk or file are not well."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from interbench_tasks.errors import PeopleError

_LOG = logging.getLogger(__name__)
DESK_FILE = "people.sqlite"
SCHEMA_VERSION = 1
BUSY_TIMEOUT_S = 20.0
"""How long one process waits for another that writes at the same time."""
_TABLES = """
CREATE TABLE item (
    place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, payload TEXT NOT NULL,
    needs INTEGER NOT NULL, created REAL NOT NULL, run TEXT NOT NULL, taken_at REAL
);
CREATE TABLE picture (digest TEXT PRIMARY KEY, mime TEXT NOT NULL, data BLOB NOT NULL);
CREATE TABLE claim (item TEXT NOT NULL, annotator TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (item, annotator));
CREATE TABLE skip (item TEXT NOT NULL, annotator TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (item, annotator));
CREATE TABLE draft (
    item TEXT NOT NULL, annotator TEXT NOT NULL, content TEXT NOT NULL, seconds REAL NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (item, annotator)
);
CREATE TABLE submission (
    id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL, annotator TEXT NOT NULL, content TEXT NOT NULL,
    seconds REAL NOT NULL, at REAL NOT NULL, undone_at REAL
);
CREATE UNIQUE INDEX one_answer_each ON submission (item, annotator) WHERE undone_at IS NULL;
CREATE INDEX of_annotator ON submission (annotator, id) WHERE undone_at IS NULL;
CREATE INDEX not_taken ON item (place) WHERE taken_at IS NULL;
CREATE TABLE run (id TEXT PRIMARY KEY, task TEXT NOT NULL, seen_at REAL NOT NULL, ended_at REAL);
CREATE TABLE session (digest TEXT PRIMARY KEY, annotator TEXT, created REAL NOT NULL);
"""
_COPIED: tuple[tuple[str, str], ...] = (
    (
        "SELECT id, kind, payload, needs, created, run, taken_at FROM item ORDER BY place",
        "INSERT INTO item (id, kind, payload, needs, created, run, taken_at) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET needs = max(needs, excluded.needs), "
        "taken_at = coalesce(taken_at, excluded.taken_at)",
    ),
    ("SELECT digest, mime, data FROM picture", "INSERT OR IGNORE INTO picture VALUES (?, ?, ?)"),
    ("SELECT item, annotator, at FROM claim", "INSERT OR IGNORE INTO claim VALUES (?, ?, ?)"),
    ("SELECT item, annotator, at FROM skip", "INSERT OR IGNORE INTO skip VALUES (?, ?, ?)"),
    ("SELECT item, annotator, content, seconds, at FROM draft", "INSERT OR IGNORE INTO draft VALUES (?, ?, ?, ?, ?)"),
    (
        "SELECT item, annotator, content, seconds, at, undone_at FROM submission ORDER BY id",
        "INSERT OR IGNORE INTO submission (item, annotator, content, seconds, at, undone_at) "
        "SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS "
        "(SELECT 1 FROM submission WHERE item = ?1 AND annotator = ?2 AND at = ?5)",
    ),
    ("SELECT id, task, seen_at, ended_at FROM run", "INSERT OR IGNORE INTO run VALUES (?, ?, ?, ?)"),
    ("SELECT digest, annotator, created FROM session", "INSERT OR IGNORE INTO session VALUES (?, ?, ?)"),
)
"""What a desk holds, and how it goes into another one that may hold some of it."""
_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full. Free space",
    sqlite3.SQLITE_READONLY: "it is read-only. Make file and folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Make the folder and make it writable",
    sqlite3.SQLITE_BUSY: f"another process has held it for {BUSY_TIMEOUT_S:.0f} s. End that one",
    sqlite3.SQLITE_NOTADB: "it is no desk, or it is damaged. Move it away",
    sqlite3.SQLITE_CORRUPT: "it is damaged. Move it away; `sqlite3 FILE .recover` reads what is left of it",
    sqlite3.SQLITE_IOERR: "the disk failed, or it is a network disk. Use a local disk",
    sqlite3.SQLITE_PROTOCOL: "SQLite's log does not work there, as on most network disks. Use a local disk",
}


class DeskFile:
    """An open file; several threads may use it, one at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file, made where there is none.

        Raises: PeopleError where it cannot be opened or written, or is no desk of ours.
        """
        self.path = path
        self._lock = threading.RLock()
        self._connection, self._identity = self._opened()

    def _opened(self) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        """A connection to the file, made where there is none, and which file that is."""
        with self.explained("opened"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
        try:
            with self.explained("opened"):
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection, _identity_of(self.path)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        run = connection.execute
        (version,) = run("PRAGMA user_version").fetchone()
        tables = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if version > SCHEMA_VERSION or (tables and "submission" not in tables):
            raise PeopleError(
                f"{self.path}: is no desk of this version of Interbench (found version {version}, tables "
                f"{', '.join(sorted(tables)) or 'none'}); it is left as it is.\n"
                "  Upgrade Interbench, or name another place: INTERBENCH_PEOPLE=FILE"
            )
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")  # a person's work is not lost in a power failure either
        with _transaction(connection):
            if not run("PRAGMA user_version").fetchone()[0]:
                for statement in _TABLES.split(";"):
                    run(statement)
            run(f"PRAGMA user_version = {SCHEMA_VERSION}")  # also where it is right: a read-only file is found out now

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction, whole or not at all; in a file that is there, also where somebody deleted ours meanwhile.

        Raises: PeopleError where the file cannot be written.
        """
        with self._lock, self.explained("written"):
            with _transaction(self._connection):
                if self._identity is not None and self._identity == _identity_of(self.path):
                    yield self._connection
                    return
                # Whoever else has the vanished file open waits for this transaction, and then sees the new file.
                vanished, connection = self._connection, self._written_again()
            self._connection, self._identity = connection
            vanished.close()
            with _transaction(self._connection):
                yield self._connection

    def _written_again(self) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        """The file of that name now, made where there is none, with all that hangs on our connection to the old one."""
        if not self.path.exists():
            for suffix in ("-wal", "-shm"):  # the old file's, which SQLite would take for the new one's
                self.path.with_name(f"{self.path.name}{suffix}").unlink(missing_ok=True)
        connection, identity = self._opened()
        try:
            with _transaction(connection):
                for query, insert in _COPIED:
                    connection.executemany(insert, self._connection.execute(query))
        except BaseException:
            connection.close()
            raise
        _LOG.warning(
            "%s: deleted or replaced while it was in use; everything that it held was written again, so nothing is "
            "lost. Leave the file alone while a run or `interbench serve` uses it.",
            self.path,
        )
        return connection, identity

    @contextlib.contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """The connection, to read only.

        Raises: PeopleError where the file cannot be read.
        """
        with self._lock, self.explained("read"):
            yield self._connection

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def explained(self, doing: str) -> Iterator[None]:
        """Turn what SQLite and the system raise into a PeopleError that says where, what and what to do."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            advice = _ADVICE.get(code, "make sure that it lies on a local disk and can be written")
            raise PeopleError(
                f"{self.path}: the desk cannot be {doing} ({error}): {advice}, or name another place "
                "(INTERBENCH_PEOPLE=FILE), and start the same command again: what is on the desk stays there."
            ) from error


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _identity_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from others of the same name; None where there is none."""
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def desk_path(place: Path) -> Path:
    """The file of a desk at a place: the place itself, or the file in that folder.

    >>> desk_path(Path("runs")).as_posix(), desk_path(Path("runs/study.sqlite")).as_posix()
    ('runs/people.sqlite', 'runs/study.sqlite')
    """
    return place if place.suffix in (".sqlite", ".db") and not place.is_dir() else place / DESK_FILE


def existing_desk(place: Path, folder: str = "interbench") -> Path:
    """The desk that a run has made at or above a place (its output path, or any folder of it).

    Raises: PeopleError that says where it was looked for.
    """
    inside = [desk_path(place), desk_path(place / folder)]
    above = [desk_path(parent) for parent in place.absolute().parents[:4]]
    for path in [*inside, *above]:
        if path.is_file():
            return path
    raise PeopleError(
        f"{place}: there is no desk; looked for {', '.join(map(str, inside))}, and above.\n"
        "  A run makes it when it starts with people in it (INTERBENCH_PROVIDER=human): give its --output_path, or "
        "what INTERBENCH_PEOPLE says."
    )
