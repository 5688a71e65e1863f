"""The file that this process writes, and the thread that commits to it."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger_claims import Claim, folder_lock, free_claim
from interbench_tasks.ledger_file import LedgerFile, explained, set_aside
from interbench_tasks.ledger_rows import DamageError, Row, Saved
from interbench_tasks.ledger_salvage import take_over

HITS_IN_MEMORY = 1000
"""So many hits are counted before they are written, where no reply is stored meanwhile."""
MOST_MOVES = 20
"""So often the file may vanish under a run before the run is stopped."""
SETTLE_S = (0.05, 0.15, 0.5)
"""Before each try to write a file again that vanished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A reply that waits for its commit."""

    row: Row
    done: asyncio.Future[None]


class Writer:
    """Commits replies in groups; notices where its file is damaged or gone, and goes on with another one."""

    path: Path
    """Of the file that is written now."""
    _file: LedgerFile
    _thread: threading.Thread

    def __init__(self, folder: Path, rank: int, warnings: list[str]) -> None:
        """Not for callers: `Writer.open` makes one that can be used. Args: warnings = where they are added."""
        self.moved = threading.Event()
        """Set where `path` is another one than before."""
        self._folder = folder
        self._rank = rank
        self._warnings = warnings
        self._queue: queue.SimpleQueue[_Pending | bool] = queue.SimpleQueue()  # True: write the hits; False: the end
        self._saved_lock = threading.Lock()
        self._saved: dict[str, Saved] = {}
        self._n_hits = 0
        self._n_moves = 0
        self._claim: Claim | None = None
        self._closed = False

    @classmethod
    def open(cls, folder: Path, rank: int, warnings: list[str]) -> Self:
        """A writer with a file of its own. The caller holds the folder's lock.

        Raises: LedgerError where the file cannot be written, or is of a newer version; OSError.
        """
        writer = cls(folder, rank, warnings)
        writer._go_on_with(*writer._claimed_file())
        writer.moved.clear()
        writer._thread = threading.Thread(target=writer._write_until_closed, name="interbench-ledger", daemon=True)
        writer._thread.start()
        return writer

    async def put(self, row: Row) -> None:
        """Store a row; returns when it is committed.

        Raises: LedgerError where it cannot be written.
        """
        if self._closed:
            raise LedgerError(f"{self.path}: the ledger is closed")
        pending = _Pending(row=row, done=asyncio.get_running_loop().create_future())
        self._queue.put(pending)
        await pending.done

    def count(self, model: str, saved: Saved) -> None:
        """One more hit; it is written with the next replies, after many hits, or in the end."""
        with self._saved_lock:
            before = self._saved.get(model)
            self._saved[model] = saved if before is None else before.plus(saved)
            self._n_hits += 1
            full = self._n_hits == HITS_IN_MEMORY
        if full:
            self._queue.put(True)

    def close(self) -> None:
        """Commit what waits, then close the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(False)
        self._thread.join()
        self._file.close()
        if self._claim is not None:
            self._claim.release()

    # ---------------------------------------------------------------- on the writer's thread

    def _write_until_closed(self) -> None:
        closing = False
        while not closing:
            taken = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    taken.append(self._queue.get_nowait())
            closing = False in taken
            self._commit([pending for pending in taken if isinstance(pending, _Pending)])

    def _commit(self, batch: Sequence[_Pending]) -> None:
        problem: str | None = None
        try:
            self._write([pending.row for pending in batch], self._taken_hits())
        except LedgerError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must reach those who wait, not hang them
            problem = f"{self.path}: a reply cannot be stored: {error!r}"
        if problem is not None and not batch:  # nobody waits who could be told
            what = "The replies that this run stored are lost" if self._file.is_gone else "Some hits were not counted"
            self._warnings.append(f"{problem}\n  {what}.")
        for loop in {pending.done.get_loop() for pending in batch}:
            waiting = [pending.done for pending in batch if pending.done.get_loop() is loop]
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, waiting, problem)

    def _taken_hits(self) -> Mapping[str, Saved]:
        with self._saved_lock:
            taken, self._saved, self._n_hits = self._saved, {}, 0
        return taken

    def _write(self, rows: Sequence[Row], saved: Mapping[str, Saved]) -> None:
        if self._file.is_gone:
            self._write_again()
        if not rows and not saved:
            return
        try:
            self._file.put_all(rows, saved)
        except DamageError as error:
            if self._file.is_gone:
                self._write_again()
            else:
                self._begin_afresh(error)
            self._file.put_all(rows, saved)

    def _begin_afresh(self, cause: DamageError) -> None:
        self._file.close()
        with explained(self._folder, "replaced"), folder_lock(self._folder):
            aside = set_aside(self.path)
            damaged = self.path
            claim, file = self._claimed_file()
        self._take_over(damaged, aside, file, cause)
        self._go_on_with(claim, file)

    def _write_again(self) -> None:
        """Our file was deleted or moved: what it held still hangs on the open connection, and goes into another."""
        self._n_moves += 1
        if self._n_moves > MOST_MOVES:
            raise LedgerError(
                f"{self.path}: the ledger's file vanished {self._n_moves} times during this run. Find out what removes "
                "it, or point INTERBENCH_LEDGER to another folder, and start the same command again."
            )
        old, lost = self._file, self.path
        for wait_s in SETTLE_S:
            time.sleep(wait_s)  # whoever removes the files may not have ended
            try:
                claim, file, n_rows = self._copied(old)
                break
            except LedgerError:
                if wait_s == SETTLE_S[-1]:
                    raise
        self._go_on_with(claim, file)
        old.close()
        self._warnings.append(
            f"{lost}: deleted, moved or replaced while this run was using it. Its {n_rows} replies were written again "
            f"into {self.path}, so nothing is lost; leave the ledger's files alone during a run."
        )

    def _copied(self, old: LedgerFile) -> tuple[Claim, LedgerFile, int]:
        """Another file with all that `old` holds, and how many replies that are."""
        with explained(self._folder, "written again"):
            self._folder.mkdir(parents=True, exist_ok=True)
            with folder_lock(self._folder):
                old.clear_away()
                claim, file = self._claimed_file()
        with contextlib.ExitStack() as undo:  # where the disk is full, the old connection stays: it holds everything
            undo.callback(claim.release)
            undo.callback(file.close)
            n_rows = file.copy_from(old)
            undo.pop_all()
        return claim, file, n_rows

    def _go_on_with(self, claim: Claim, file: LedgerFile) -> None:
        self._claim, self._file, self.path = claim, file, claim.path
        self.moved.set()

    def _claimed_file(self) -> tuple[Claim, LedgerFile]:
        """A file of our own, a fresh one where it is damaged, instead of the present one. The folder's lock is held."""
        if self._claim is not None:
            self._claim.release()
        claim = free_claim(self._folder, self._rank)
        with contextlib.ExitStack() as undo:
            undo.callback(claim.release)
            try:
                file = LedgerFile.open_to_write(claim.path)
            except DamageError as error:
                aside = set_aside(claim.path)
                file = LedgerFile.open_to_write(claim.path)
                self._take_over(claim.path, aside, file, error)
            undo.pop_all()
        return claim, file

    def _take_over(self, damaged: Path, aside: Path, file: LedgerFile, cause: DamageError) -> None:
        """Store what can be read of a file that was set aside, and tell what became of it."""
        try:
            told = f"with the {take_over(aside, file):,} replies that can still be read of it"
        except LedgerError as error:  # e.g. a full disk: who stores the next reply is told so
            told = f"without most of its replies, which could not be stored again ({error})"
        self._warnings.append(
            f"{damaged}: damaged ({cause}). It was set aside as {aside.name} and a fresh ledger was begun, {told}. "
            "What only the damaged file holds is asked for, and paid for, again."
        )


def _settle(waiting: Sequence[asyncio.Future[None]], problem: str | None) -> None:
    for future in waiting:
        if future.done():
            continue  # its caller was cancelled
        if problem is None:
            future.set_result(None)
        else:
            future.set_exception(LedgerError(problem))
