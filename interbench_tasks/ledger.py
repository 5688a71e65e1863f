"""Every reply, durably, before anyone uses it: a run that was killed goes on without paying twice.

One folder, in which each process has an SQLite file of its own, held by a lock that ends with the process: ranks, and
runs at the same time. A process writes its own file and reads all of them, so a reply that one has stored is found by
all at once; only a call that two processes have in flight at the same time is paid twice. Writes go through one thread
that commits whatever has queued up (group commit), so that many calls share one transaction.

How durable: write-ahead log with `synchronous=NORMAL`. What `put` returned for survives the death of the process at
any moment (kill -9, out of memory). A power failure can lose the replies of the last moments, never the file.
`synchronous=FULL` would save those too, for a disk sync at every commit (up to 10 ms on network disks) that each call
has to wait for.

Damage: a file that cannot be used is set aside and a fresh one begun with all that can still be read of it; a row that
cannot be read whole is a miss; a file that somebody deletes during a run is written again. All are told in `warnings`,
and the run goes on. A disk that is full or read-only is an error: without a ledger the run would pay for replies that
it then loses.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from interbench_tasks.errors import LedgerError
from interbench_tasks.hookspecs import Call
from interbench_tasks.ledger_claims import folder_lock, is_ledger_name
from interbench_tasks.ledger_file import LedgerFile, explained
from interbench_tasks.ledger_rows import DamageError, Stored, row_from_reply, saved_by
from interbench_tasks.ledger_writer import Writer
from interbench_tasks.records import PictureRef, Reply

KEY_VERSION = 1
"""Part of every key. Raised by any change of what a key is made of: older replies are then not found any more."""


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


class Ledger:
    """The replies of all runs that use one folder.

    `get` and `put` belong to one thread (the engine's loop), `open` and `close` to any.
    """

    warnings: list[str]
    """What the user has to know although the run goes on, each a sentence; grows while the ledger is open."""
    _writer: Writer

    def __init__(self, folder: Path) -> None:
        """Not for callers: `Ledger.open` makes one that can be used."""
        self.warnings = []
        self._folder = folder
        self._known_names: set[str] = set()
        self._reader: LedgerFile | None = None
        self._others: list[LedgerFile] = []
        self._reported: set[Path] = set()

    @classmethod
    def open(cls, folder: Path, *, rank: int = 0) -> Self:
        """The ledger in `folder`, made where there is none, with a file of this process's own ready to be written.

        Raises: LedgerError where it cannot be written, or was written by a newer version of Interbench.
        """
        ledger = cls(folder)
        with contextlib.ExitStack() as undo:
            undo.callback(ledger._close_readers)
            with explained(folder, "opened"):
                folder.mkdir(parents=True, exist_ok=True)
                with folder_lock(folder):
                    ledger._writer = Writer.open(folder, rank, ledger.warnings)
                    undo.callback(ledger._writer.close)
                    ledger._open_own()
                    ledger._open_new_ranks()
            undo.pop_all()
        return ledger

    def get(self, key: str) -> Reply | None:
        """The stored reply of any rank or run, with `run.from_ledger`; None where there is none that can be read whole.

        Raises: LedgerError where a file cannot be read.
        """
        if self._writer.moved.is_set():
            self._writer.moved.clear()
            self._open_own()
        found = self._stored_in(self._reader, key) or self._stored_by_others(key)
        if found is None:
            return None
        self._writer.count(found.model, saved_by(found.reply.usage))
        return found.reply

    async def put(self, key: str, reply: Reply, backend: str | None = None) -> None:
        """Store a reply, in place of an older one of that key; returns when it is committed.

        Cancelled while it waits, the reply is stored nevertheless.

        Args: backend = the name of who answered, as shown in results.
        Raises: ValueError where the reply is not `ok`: only what a model said is stored. LedgerError where it cannot
            be written; the run must stop then, because it would pay for what it loses.
        """
        if not reply.usable or reply.error is not None:
            raise ValueError(f"only a reply with status ok is stored, got status {reply.status}, error {reply.error}")
        await self._writer.put(row_from_reply(key, reply, backend))

    def close(self) -> None:
        """Commit what waits, then close all files. A second call does nothing."""
        self._close_readers()  # first: only the last to close a file tidies up its log, and a reader may not
        self._writer.close()

    def _close_readers(self) -> None:
        for file in [*self._others, *([self._reader] if self._reader else [])]:
            file.close()

    def _open_own(self) -> None:
        """Read the file that is written now."""
        path = self._writer.path
        if self._reader is not None:
            self._known_names.discard(self._reader.path.name)  # it may be another process's now
            self._reader.close()
        self._known_names.add(path.name)
        self._others = [other for other in self._others if other.path != path]
        self._reader = LedgerFile.open_to_read(path)

    def _stored_by_others(self, key: str) -> Stored | None:
        # After a miss a model is called; next to that the microseconds of looking for new files are nothing.
        for other in [other for other in self._others if other.is_another]:
            self._others.remove(other)
            self._known_names.discard(other.path.name)
            other.close()
        with contextlib.suppress(FileNotFoundError):  # the folder was deleted: the writer finds it out and tells
            if not self._known_names.issuperset(os.listdir(self._folder)):
                with explained(self._folder, "read"), folder_lock(self._folder):
                    self._open_new_ranks()
        for other in self._others:
            found = self._stored_in(other, key)
            if found is not None:
                return found
        return None

    def _stored_in(self, file: LedgerFile | None, key: str) -> Stored | None:
        if file is None:
            return None
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
            if not is_ledger_name(name):
                continue
            path = self._folder / name
            try:
                file = LedgerFile.open_to_read(path)
            except DamageError as error:
                self.warnings.append(f"{path}: damaged ({error}). Its replies are not used.")
                continue
            if file is not None:
                self._others.append(file)
