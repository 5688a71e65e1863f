"""The one progress bar of a run, and its counts."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Never

from tqdm import tqdm

from interbench_tasks.records import EpisodeRecord, Reply

EVERY_S = 1.0
EVERY_S_IN_A_LOG = 10.0


@dataclass(slots=True)
class Counts:
    """What happened so far."""

    played_on: int = 0
    """Episodes that have a second record, because they were played on; they are counted once in all the others."""
    calls: int = 0
    failed_calls: int = 0
    ledger_hits: int = 0
    shared_calls: int = 0
    _status: dict[tuple[int, int], str] = field(default_factory=dict)
    """(doc_id, repeat) -> what the last record of the episode says."""
    _of_status: Counter[str] = field(default_factory=Counter)

    @property
    def finished(self) -> int:
        """Episodes whose last record says `finished`."""
        return self._of_status["finished"]

    @property
    def failed(self) -> int:
        """Likewise `failed`."""
        return self._of_status["failed"]

    @property
    def skipped(self) -> int:
        """Likewise `skipped`."""
        return self._of_status["skipped"]

    @property
    def episodes(self) -> int:
        """Episodes that have their record."""
        return len(self._status)

    def count_record(self, record: EpisodeRecord) -> None:
        """One more episode has its record, or another one instead of its first."""
        key = (record.doc_id, record.repeat)
        if key in self._status:
            self.played_on += 1
            self._of_status[self._status[key]] -= 1
        self._status[key] = record.status
        self._of_status[record.status] += 1

    def count_call(self, reply: Reply) -> None:
        """One more call was really made."""
        self.calls += 1
        self.failed_calls += reply.status == "error"


class Progress:
    """Draws the counts to stderr once a second, into a file every ten seconds; lives on the loop thread."""

    def __init__(
        self, counts: Counts, total: int | None, *, wanted: bool, n_with_people: Callable[[], int] = int
    ) -> None:
        self._counts = counts
        self._n_with_people = n_with_people
        self._total = total
        self._wanted = wanted
        self._started = time.monotonic()
        self._bar: tqdm[Never] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._every_s = EVERY_S

    def start(self) -> None:
        """Show the bar, where it is wanted."""
        if not self._wanted:
            return
        self._every_s = EVERY_S if sys.stderr.isatty() else EVERY_S_IN_A_LOG
        self._bar = tqdm(total=self._total, desc="interbench", unit="episode", file=sys.stderr, mininterval=EVERY_S)
        self._tick()

    def stop(self) -> None:
        """Draw the final counts and leave the bar standing."""
        if self._timer is not None:
            self._timer.cancel()
        if self._bar is not None:
            self._draw(self._bar)
            self._bar.close()

    def _tick(self) -> None:
        if self._bar is not None:
            self._draw(self._bar)
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._tick)

    def _draw(self, bar: tqdm[Never]) -> None:
        counts = self._counts
        rate = counts.calls / max(time.monotonic() - self._started, 1e-9)
        text = f"{counts.calls} calls, {rate:.1f} calls/s, {counts.failed} failed"
        if counts.played_on:
            text += f", {counts.played_on} played on"
        if counts.failed_calls:
            text += f", {counts.failed_calls} calls failed"
        if n_with_people := self._n_with_people():
            text += f", {n_with_people} wait for people"
        bar.n = counts.episodes
        bar.set_postfix_str(text, refresh=True)
