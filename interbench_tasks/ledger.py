"""Every reply, durably, before anyone uses it: a run that was killed goes on without paying twice.

One SQLite file a rank, all in one folder. A rank writes its own file and reads all of them. Writes go through one
thread that commits whatever has queued up (group commit), so that many calls share one transaction.

How durable: write-ahead log with `synchronous=NORMAL`. What `put` returned for survives the death of the process at
any moment (kill -9, out of memory). A power failure can lose the replies of the last moments, never the file.
`synchronous=FULL` would save those too, for a disk sync at every commit (up to 10 ms on network disks) that each call
has to wait for.

Damage: a file that cannot be used is set aside and a fresh one begun; a row that cannot be read whole is a miss. Both
are told in `warnings`, and the run goes on. A disk that is full or read-only is an error: without a ledger the run
would pay for replies that it then loses.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import filelock

from interbench_tasks.errors import LedgerError
from interbench_tasks.hookspecs import Call
from interbench_tasks.ledger_file import (
    BUSY_TIMEOUT_S,
    DamageError,
    LedgerFile,
    Row,
    explained,
    row_from_reply,
    set_aside,
)
from interbench_tasks.records import PictureRef, Reply

KEY_VERSION = 1
"""Part of every key. Raised by any change of what a key is made of: older replies are then not found any more."""
_FILE_NAME = re.compile(r"ledger-rank\d+\.sqlite3")


def call_key(fingerprint: str, call: Call, repeat: int) -> str:
    """The name under which a call's reply is stored: 64 hex digits, equal for calls that ask a model the same.

    The SHA-256 of the backend's fingerprint, the messages in order (a picture by its digest, and size and type as
    sent), the generation settings and the repeat index, as canonical JSON followed by the texts. Not of episode,
    role, branch and round: whoever asks the same shares the reply. The repeat index always counts, also at
    temperature 0: APIs are not deterministic there either, and `--repeats` asks for that spread.

    But for one purpose: a provider's own try is no reply to the receiver's first question, also where both are one
    model; it is shared by all receivers, and independent of the reply that it is to judge.

    Args: fingerprint = the backend's; repeat = 0-based.
    Raises: LedgerError where an option of the settings is not a JSON value.
    """
    settings = call.settings
    texts: list[str] = []
    messages = [(message.role, [_part_for_key(part, texts) for part in message.content]) for message in call.messages]
    content = (
        KEY_VERSION,
        fingerprint,
        messages,
        settings.max_new_tokens,
        float(settings.temperature),  # 0 and 0.0 are one setting
        None if settings.top_p is None else float(settings.top_p),
        settings.until,
        settings.options,
        repeat,
        *(["solve"] if call.purpose == "solve" else []),
    )
    try:
        canonical = _CANONICAL.encode(content)
    except (TypeError, ValueError) as error:
        raise LedgerError(
            f"generation settings of the {call.role}: an option cannot be part of a ledger key ({error}): "
            f"{dict(settings.options)!r}\n  Use texts, numbers, true, false, null, lists and mappings of them."
        ) from error
    return hashlib.sha256("\n".join([canonical, *texts]).encode("utf-8", "surrogatepass")).hexdigest()


def _part_for_key(part: str | PictureRef, texts: list[str]) -> object:
    """A picture by what is sent; a text by its length, the text itself goes to `texts`.

    Escaping long texts for JSON takes twice as long as hashing them. With all lengths known, no two lists of texts
    give the same bytes.
    """
    if isinstance(part, str):
        texts.append(part)
        return len(part)
    return part.digest, part.width, part.height, part.mime


def _dict_from_mapping(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=_dict_from_mapping
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A reply that waits for its commit."""

    row: Row
    done: asyncio.Future[None]


class Ledger:
    """The replies of all runs that use one folder.

    `get` and `put` belong to one thread (the engine's loop), `open` and `close` to any.
    """

    warnings: list[str]
    """What the user has to know although the run goes on, each a sentence; grows while the ledger is open."""
    _reader: LedgerFile
    _writer: LedgerFile
    _thread: threading.Thread

    def __init__(self, folder: Path, rank: int) -> None:
        """Not for callers: `Ledger.open` makes one that can be used."""
        self.warnings = []
        self._folder = folder
        self._path = folder / f"ledger-rank{rank}.sqlite3"
        self._lock = filelock.FileLock(folder / "ledger.lock", timeout=BUSY_TIMEOUT_S)
        self._known_names = {self._path.name}
        self._others: list[LedgerFile] = []
        self._opened: list[LedgerFile] = []
        self._reported: set[Path] = set()
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._closed = False
        self._replaced = threading.Event()  # set by the writer when the reader looks at a file that was set aside

    @classmethod
    def open(cls, folder: Path, *, rank: int = 0) -> Self:
        """The ledger in `folder`, made where there is none, with its rank's file ready to be written.

        Raises: LedgerError where it cannot be written, or was written by another version of Interbench.
        """
        ledger = cls(folder, rank)
        with contextlib.ExitStack() as undo:
            undo.callback(ledger._close_files)
            with explained(folder, "opened"):
                folder.mkdir(parents=True, exist_ok=True)
                with ledger._lock:
                    ledger._writer = ledger._own_file()
                    ledger._reader = ledger._kept(LedgerFile(ledger._path))
                    ledger._open_new_ranks()
            undo.pop_all()
        ledger._thread = threading.Thread(target=ledger._write_until_closed, name="interbench-ledger", daemon=True)
        ledger._thread.start()
        return ledger

    def get(self, key: str) -> Reply | None:
        """The stored reply of any rank, with `run.from_ledger`; None where there is none that can be read whole.

        Raises: LedgerError where a file cannot be read.
        """
        if self._replaced.is_set():
            self._replaced.clear()
            self._reader.close()
            self._reader = self._kept(LedgerFile(self._path))
        found = self._reply_in(self._reader, key)
        if found is not None:
            return found
        # After a miss a model is called; next to that the microseconds of looking for new files are nothing.
        if not self._known_names.issuperset(os.listdir(self._folder)):
            with explained(self._folder, "read"), self._lock:
                self._open_new_ranks()
        for other in self._others:
            found = self._reply_in(other, key)
            if found is not None:
                return found
        return None

    async def put(self, key: str, reply: Reply) -> None:
        """Store a reply, in place of an older one of that key; returns when it is committed.

        Cancelled while it waits, the reply is stored nevertheless.

        Raises: ValueError where the reply is not `ok`: only what a model said is stored. LedgerError where it cannot
            be written; the run must stop then, because it would pay for what it loses.
        """
        if not reply.usable or reply.error is not None:
            raise ValueError(f"only a reply with status ok is stored, got status {reply.status}, error {reply.error}")
        if self._closed:
            raise LedgerError(f"{self._path}: the ledger is closed")
        pending = _Pending(row=row_from_reply(key, reply), done=asyncio.get_running_loop().create_future())
        self._queue.put(pending)
        await pending.done

    def close(self) -> None:
        """Commit what waits, then close all files. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._close_files()

    def _close_files(self) -> None:
        for file in self._opened:
            file.close()

    def _kept(self, file: LedgerFile) -> LedgerFile:
        self._opened.append(file)
        return file

    def _reply_in(self, file: LedgerFile, key: str) -> Reply | None:
        try:
            return file.get(key)
        except DamageError as error:
            if file.path not in self._reported:
                self._reported.add(file.path)
                self.warnings.append(
                    f"{file.path}: damaged ({error}). Replies that cannot be read whole are asked for, and paid for, "
                    "again; the others are used."
                )
            return None

    def _open_new_ranks(self) -> None:
        """Open the files that have appeared since the last look. The folder's lock is held."""
        for name in sorted(set(os.listdir(self._folder)) - self._known_names):
            self._known_names.add(name)
            if not _FILE_NAME.fullmatch(name):
                continue
            path = self._folder / name
            try:
                file = LedgerFile.open_to_read(path)
            except DamageError as error:
                self.warnings.append(f"{path}: damaged ({error}). The replies of that rank are not used.")
                continue
            if file is not None:
                self._others.append(self._kept(file))

    def _own_file(self) -> LedgerFile:
        """This rank's file, a fresh one where it is damaged. The folder's lock is held."""
        try:
            return self._kept(LedgerFile.open_to_write(self._path))
        except DamageError as error:
            return self._fresh_file(error)

    def _fresh_file(self, cause: DamageError) -> LedgerFile:
        aside = set_aside(self._path)
        self.warnings.append(
            f"{self._path}: damaged ({cause}). It was set aside as {aside.name} and a fresh ledger was begun: replies "
            "that only the damaged file holds are asked for, and paid for, again."
        )
        return self._kept(LedgerFile.open_to_write(self._path))

    def _write_until_closed(self) -> None:
        closing = False
        while not closing:
            taken = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    taken.append(self._queue.get_nowait())
            closing = None in taken
            self._commit([pending for pending in taken if pending is not None])

    def _commit(self, batch: Sequence[_Pending]) -> None:
        problem: str | None = None
        try:
            self._write([pending.row for pending in batch])
        except LedgerError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must reach those who wait, not hang them
            problem = f"{self._path}: a reply cannot be stored: {error!r}"
        for loop in {pending.done.get_loop() for pending in batch}:
            waiting = [pending.done for pending in batch if pending.done.get_loop() is loop]
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, waiting, problem)

    def _write(self, rows: Sequence[Row]) -> None:
        try:
            self._writer.put_all(rows)
        except DamageError as error:
            self._writer.close()
            with explained(self._path, "replaced"), self._lock:
                self._writer = self._fresh_file(error)
            self._replaced.set()
            self._writer.put_all(rows)


def _settle(waiting: Sequence[asyncio.Future[None]], problem: str | None) -> None:
    for future in waiting:
        if future.done():
            continue  # its caller was cancelled
        if problem is None:
            future.set_result(None)
        else:
            future.set_exception(LedgerError(problem))
