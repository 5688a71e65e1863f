"""The episodes that run now: how many may, and where their calls are. Everything here lives on the loop thread.

An episode is **parked** while at least one of its calls waits for a batch and none of its calls runs elsewhere. It can
have several calls at once (arms side by side), so calls are counted in each episode, and parked episodes on the floor.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from interbench_tasks.records import Reply

Place = Literal["parked", "queued", "elsewhere", "person"]
"""Where a call waits: for a batch (or shares one that does), for a slot of another backend, at that backend or the
ledger, for a person."""

LEAST_LIVE = 64
BATCHES_LIVE = 8
MOST_BATCHES_LIVE = 64
MOST_LIVE = 2048
ROUNDS_OF_SLOTS = 2
MOST_WITH_PEOPLE = 5000
"""Most episodes that wait for people and nothing else, beside those that run."""


@dataclass(slots=True, eq=False)
class Live:
    """One episode that runs now."""

    counted: bool = True
    """False for calls made outside any episode: they are served, but nobody waits for them."""
    calls: dict[Place, int] = field(default_factory=lambda: {"parked": 0, "queued": 0, "elsewhere": 0, "person": 0})
    fresh: bool = True
    """No call made yet."""
    ended: bool = False
    futures: set[asyncio.Future[Reply]] = field(default_factory=set)
    """What its coroutines wait for."""
    spent_s: float = 0.0
    """What its clock shows; see `Overseer`."""
    late: Literal["", "call", "own code"] = ""
    """What it was doing when it was told to end because it is over its time limit; '' while it is not."""

    @property
    def rests(self) -> bool:
        """True where no call of it can come before a batch or a person answers."""
        calls = self.calls
        return not (calls["elsewhere"] or calls["queued"]) and bool(calls["parked"] or calls["person"])

    @property
    def away(self) -> bool:
        """True where it waits for people and nothing else: for hours perhaps, so it takes no other episode's place."""
        calls = self.calls
        return bool(calls["person"]) and not (calls["elsewhere"] or calls["queued"] or calls["parked"])

    @property
    def waits(self) -> bool:
        """True where one of its calls waits for something that is no fault of the episode's: its clock stands still."""
        return bool(self.calls["parked"] or self.calls["queued"] or self.calls["person"])


CURRENT: contextvars.ContextVar[Live] = contextvars.ContextVar("interbench_episode")
"""The episode that the running coroutine belongs to; child tasks (gather, task groups) inherit it."""


class Floor:
    """Counts live and resting episodes, and says how many may be live.

    By default 64, or more where that cannot keep the backends busy. With batched models: 8 x the largest batch. It
    grows while the calling thread idles, and to as many batches as could be made while the slowest call to another
    backend runs (else a slow call of an episode that started late runs on alone in the end); up to 64 batches or 2,048
    episodes, whichever is less. Without batched models: twice the slots of all asynchronous backends. Episodes that
    wait for people are not among these; there may be `most_with_people` of them.
    """

    def __init__(
        self,
        max_live: int | None,
        may_be_live: Callable[[], int | None] | None = None,
        most_with_people: int = MOST_WITH_PEOPLE,
    ) -> None:
        self.watch: Callable[[], None] = _nobody
        """Called after each change of a count: any of them can be the one after which all are parked."""
        self._room = asyncio.Event()
        self.exhausted = False
        """True when no further episode will be started."""
        self.n_live = 0
        self.n_fresh = 0
        self.n_away = 0
        """Live episodes that wait for people and nothing else."""
        self.most_live = 0
        """Most episodes at a time that did not wait for people."""
        self._n_resting = 0
        self._most_with_people = most_with_people
        self._fixed = max_live
        self._may_be_live = may_be_live or _anything
        self._largest_batch = 0
        self._n_slots = 0
        self._grown = 0
        self._slowest_s = 0.0
        self._running: dict[object, float] = {}  # calls at asynchronous backends, oldest first -> time.monotonic()

    def expect_batches(self, size: int) -> None:
        """Take note of a batched model."""
        self._largest_batch = max(self._largest_batch, size)

    def expect_slots(self, n_slots: int) -> None:
        """Take note of an asynchronous backend that answers `n_slots` calls at a time."""
        self._n_slots += n_slots
        self._room.set()

    @property
    def limit(self) -> int:
        """Most episodes that may be live now."""
        if self._fixed is not None:
            return self._fixed
        wanted = BATCHES_LIVE * self._largest_batch if self._largest_batch else ROUNDS_OF_SLOTS * self._n_slots
        base = max(LEAST_LIVE, wanted)
        cap = max(base, min(MOST_BATCHES_LIVE * self._largest_batch, MOST_LIVE))
        return min(base + self._grown, cap)

    @property
    def full(self) -> bool:
        """True where as many episodes run as may; those that wait for people take no place."""
        return self.n_live - self.n_away >= self.limit

    @property
    def can_start(self) -> bool:
        """True where a further episode exists and may start."""
        if self.exhausted or self.full or self.n_away >= self._most_with_people:
            return False
        most = self._may_be_live()
        return most is None or self.n_live < max(1, most)

    @property
    def all_rest(self) -> bool:
        """True where every live episode is parked, or waits for a person."""
        return self._n_resting >= self.n_live

    async def room_after_a_change(self) -> None:
        """Returns when an episode ended or the limit rose since this was called; one coroutine at a time."""
        self._room.clear()
        await self._room.wait()

    def grow(self, n_episodes: int) -> None:
        """Let up to `n_episodes` more be live, for the calling thread idles."""
        if self._fixed is None and not self.exhausted and self.full:
            self._grown += n_episodes
            self._room.set()

    def outlast_slow_calls(self, batch_size: int, batch_s: float) -> None:
        """Let as many be live as keep the calling thread busy while the slowest call so far runs elsewhere."""
        if self._fixed is None and not self.exhausted:
            slowest_s = max(self._slowest_s, time.monotonic() - next(iter(self._running.values()), math.inf))
            n_batches = min(slowest_s / max(batch_s, 1e-3), MOST_BATCHES_LIVE)
            lacking = batch_size * math.ceil(n_batches) - self.limit
            if lacking > 0:
                self.grow(lacking)

    @contextlib.contextmanager
    def call_elsewhere(self) -> Iterator[None]:
        """Around a call to an asynchronous backend, its wait for a slot not included."""
        token = object()
        began = self._running[token] = time.monotonic()
        try:
            yield
        finally:
            del self._running[token]
            self._slowest_s = max(self._slowest_s, time.monotonic() - began)

    def start(self) -> Live:
        """A further live episode."""
        self.n_live += 1
        self.n_fresh += 1
        self.most_live = max(self.most_live, self.n_live - self.n_away)
        self.watch()
        return Live()

    def end(self, live: Live) -> None:
        """The episode is over; what its left-over coroutines wait for is cancelled. A second call does nothing."""
        if live.ended:
            return
        live.ended = True
        self.n_live -= 1
        self.n_fresh -= live.fresh
        self._n_resting -= live.rests
        self.n_away -= live.away
        live.counted = False
        for future in tuple(live.futures):
            future.cancel()
        self._room.set()
        self.watch()

    def enter(self, live: Live, place: Place) -> None:
        """A call of `live` now waits at `place`."""
        self.n_fresh -= live.fresh and live.counted
        live.fresh = False
        self._shift(live, place, 1)

    def leave(self, live: Live, place: Place) -> None:
        """A call of `live` no longer waits at `place`."""
        self._shift(live, place, -1)

    def _shift(self, live: Live, place: Place, change: int) -> None:
        before, was_away = live.rests, live.away
        live.calls[place] += change
        if live.counted:
            self._n_resting += live.rests - before
            self.n_away += live.away - was_away
            if live.away and not was_away:
                self._room.set()
            self.watch()


def _nobody() -> None:
    """Stands for the watcher that a floor without batches does not have."""


def _anything() -> int | None:
    """Stands for the further limit that a run without a budget does not have."""
    return None
