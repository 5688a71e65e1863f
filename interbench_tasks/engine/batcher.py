"""Collects calls to batched models and decides when a batch leaves. Everything here lives on the loop thread.

There is one calling thread, so at most one batch is out at a time, whichever model it is for. One rule over all
batchers; while no batch is out, one leaves when

- it is full;
- its oldest call has waited long enough: as long as this model's batches take, at most `max_wait_s` (waiting longer
  than a batch takes cannot pay, the next one could be done by then). While further episodes start, only the time in
  which the calling thread is free counts, so that they can fill the batch;
- all live episodes are parked or wait for a person, and no further episode can start now.

Of several the one with the oldest call leaves. A full batch goes before a half empty one of another model, but not for
longer than `max_wait_s` or eight batches. So a call waits at most `max_wait_s` while the calling thread is free, no
model starves, and no order of events can lock the run up.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from interbench_tasks.engine.contracts import BatchedModel, BatchReport
from interbench_tasks.engine.floor import Floor
from interbench_tasks.hookspecs import Call
from interbench_tasks.records import Reply

QUIET_PASSES = 8
"""Loop passes without news before 'all are parked' is believed: an answered arm needs some to make its next call."""
LEAST_WAIT_S = 0.02
PATIENT_BATCHES = 8
"""As many batches may leave before a rarer model's half empty one, which more calls may fill meanwhile."""


@dataclass(frozen=True, slots=True, eq=False)
class Parked:
    """One call that waits for a batch."""

    call: Call
    future: asyncio.Future[Reply]
    since: float
    """time.monotonic()"""


class Batcher:
    """The backend of one batched model: its calls wait here for a batch."""

    def __init__(self, model: BatchedModel, dispatcher: Dispatcher) -> None:
        self.model = model
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.size = max(1, model.batch_size)
        self.dispatcher = dispatcher
        self.waiting: dict[Parked, None] = {}  # in order of arrival; a given-up call leaves in O(1)
        self.n_batches = 0
        self.n_calls = 0
        self.busy_s = 0.0
        self._last_s: float | None = None

    async def reply(self, call: Call) -> Reply:
        """The model's reply, once a batch with this call came back."""
        parked = Parked(call, asyncio.get_running_loop().create_future(), time.monotonic())
        self.waiting[parked] = None
        self.dispatcher.changed()
        try:
            return await parked.future
        finally:
            self.waiting.pop(parked, None)

    async def close(self) -> None:
        """Nothing to free: the model is the harness's."""

    @property
    def full(self) -> bool:
        """True where a whole batch waits."""
        return len(self.waiting) >= self.size

    @property
    def oldest(self) -> float:
        """When the oldest waiting call came (time.monotonic()); only asked where one waits."""
        return next(iter(self.waiting)).since

    def wait_s(self, max_wait_s: float) -> float:
        """How long the oldest call waits for company."""
        return max_wait_s if self._last_s is None else min(max_wait_s, max(LEAST_WAIT_S, self._last_s))

    def take(self) -> tuple[Parked, ...]:
        """At most a batch of the waiting calls: the earliest rounds first, the oldest of these first.

        An episode that has just begun has the longest way to go, so the last one to end ends sooner.
        """
        batch = tuple(heapq.nsmallest(self.size, self.waiting, key=lambda parked: parked.call.round))
        for parked in batch:
            del self.waiting[parked]
        return batch

    def count(self, n_calls: int, seconds: float) -> None:
        """Take note of a batch that came back."""
        self.n_batches += 1
        self.n_calls += n_calls
        self.busy_s += seconds
        self._last_s = seconds

    def report(self) -> BatchReport:
        """How full the batches were."""
        return BatchReport(
            model=self.name,
            batch_size=self.size,
            n_batches=self.n_batches,
            n_calls=self.n_calls,
            busy_s=self.busy_s,
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One batch on its way to the calling thread."""

    batcher: Batcher
    batch: tuple[Parked, ...]
    sent: float
    """time.monotonic()"""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls, in the batch's order."""
        return tuple(parked.call for parked in self.batch)


class Dispatcher:
    """Sends batches to the calling thread, one at a time, and hands the replies over."""

    def __init__(self, floor: Floor, post: Callable[[Job], None], max_wait_s: float) -> None:
        self.batchers: list[Batcher] = []
        self.idle_s = 0.0
        floor.watch = self.changed
        self._floor = floor
        self._post = post
        self._max_wait_s = max_wait_s
        self._busy = False
        self._last_s = 0.0
        self._idle_since = time.monotonic()
        self._quiet = 0
        self._settling = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """The run begins: the calling thread idles from now on."""
        self._idle_since = time.monotonic()

    def stop(self) -> None:
        """Send nothing more."""
        self._busy = True
        if self._timer is not None:
            self._timer.cancel()

    def changed(self) -> None:
        """A call came, went or moved, an episode started or ended: see whether a batch should leave."""
        if not self._busy and self.batchers and not self._send_if_due(only_full=True):
            self._quiet = 0
            if not self._settling:
                self._settling = True
                asyncio.get_running_loop().call_soon(self._settle)

    def exhausted(self) -> None:
        """No further episode will start; idling from now on is no longer counted."""
        if not self._busy:
            self._count_idle(time.monotonic())
        self._floor.exhausted = True
        self.changed()

    def answered(self, job: Job, replies: Sequence[Reply], seconds: float) -> None:
        """A batch came back. The next full one leaves first, so that the model need not wait for our bookkeeping."""
        job.batcher.count(len(job.batch), seconds)
        self._last_s = seconds
        self._busy = False
        self._idle_since = time.monotonic()
        self._floor.outlast_slow_calls(job.batcher.size, seconds)
        self._send_if_due(only_full=True)
        for parked, reply in zip(job.batch, replies, strict=True):
            if not parked.future.done():
                parked.future.set_result(_timed(reply, job.sent - parked.since, seconds))
        self.changed()

    def _settle(self) -> None:
        self._quiet += 1
        if self._quiet < QUIET_PASSES and not self._busy:
            asyncio.get_running_loop().call_soon(self._settle)
            return
        self._settling = False
        self._judge()

    def _judge(self) -> None:
        if self._busy or self._send_if_due(only_full=True):
            return
        self._fill_the_floor()  # before a half empty batch leaves: it may be filled at once
        waiting = [batcher for batcher in self.batchers if batcher.waiting]
        if not waiting or self._send_if_due(only_full=False):
            return
        if self._floor.all_rest and not self._floor.can_start:
            self._send(max(waiting, key=lambda batcher: len(batcher.waiting) / batcher.size))
            return
        if self._timer is not None:
            self._timer.cancel()
        due = min(map(self._due, waiting))
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self._judge)

    def _due(self, batcher: Batcher) -> float:
        """When the waiting calls leave without further company (time.monotonic())."""
        since = batcher.oldest
        if self._floor.can_start or self._floor.n_fresh:  # company is on its way, so time spent busy does not count
            since = max(since, self._idle_since)
        return since + batcher.wait_s(self._max_wait_s)

    def _fill_the_floor(self) -> None:
        """The calling thread idles: let as many episodes start as would fill a batch, those just started counted."""
        if self.batchers:
            lacking = max(batcher.size - len(batcher.waiting) for batcher in self.batchers) - self._floor.n_fresh
            if lacking > 0:
                self._floor.grow(lacking)

    def _send_if_due(self, *, only_full: bool) -> bool:
        if self._busy:
            return False
        now = time.monotonic()
        waiting = [batcher for batcher in self.batchers if batcher.waiting]
        due = [batcher for batcher in waiting if batcher.full or (not only_full and now >= self._due(batcher))]
        if not due:
            return False
        patient_s = max(self._max_wait_s, PATIENT_BATCHES * self._last_s)
        due += [batcher for batcher in waiting if now - batcher.oldest >= patient_s]
        self._send(min(due, key=lambda batcher: batcher.oldest))
        return True

    def _send(self, batcher: Batcher) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = time.monotonic()
        self._count_idle(now)
        self._busy = True
        self._post(Job(batcher, batcher.take(), now))

    def _count_idle(self, now: float) -> None:
        if not self._floor.exhausted:
            self.idle_s += now - self._idle_since
        self._idle_since = now


def _timed(reply: Reply, waited_s: float, latency_s: float) -> Reply:
    run = reply.run
    return replace(
        reply,
        run=replace(
            run,
            waited_s=waited_s,
            latency_s=run.latency_s or latency_s,
            started_at=run.started_at or time.time() - latency_s,
        ),
    )
