"""The way of one call: identical call in flight, ledger, slot or batch, ledger again, hand-over."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interbench_tasks.engine.batcher import Batcher
from interbench_tasks.engine.contracts import LedgerLike
from interbench_tasks.engine.failures import checked_reply, failed_reply, text_of_failure
from interbench_tasks.engine.floor import CURRENT, Floor, Live, Place
from interbench_tasks.engine.progress import Counts
from interbench_tasks.errors import BackendError
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.ledger import call_key
from interbench_tasks.records import Episode, GenerationSettings, Message, Purpose, Reply, RoleName

DEFAULT_CONCURRENCY = 16


class Flight:
    """One call that is being made, and everybody who waits for its reply."""

    def __init__(self, floor: Floor, place: Place, give_up: Callable[[], None]) -> None:
        self._floor = floor
        self._place = place
        self._give_up = give_up
        self._waiters: dict[asyncio.Future[Reply], Live] = {}

    async def wait(self, live: Live) -> Reply:
        """The reply. A waiter that is cancelled hurts no other; after the last one the call itself is given up."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiters[future] = live
        self._floor.enter(live, self._place)
        live.futures.add(future)
        try:
            return await future
        finally:
            live.futures.discard(future)
            if self._waiters.pop(future, None) is not None:
                self._floor.leave(live, self._place)
                if not self._waiters:
                    self._give_up()

    def move(self, place: Place) -> None:
        """The call goes on at another place, e.g. from the batch to the ledger."""
        for live in self._waiters.values():
            self._floor.leave(live, self._place)
            self._floor.enter(live, place)
        self._place = place

    def land(self, reply: Reply) -> None:
        """Hand the reply over. The counts go down here, not when the coroutines resume."""
        waiters, self._waiters = self._waiters, {}
        for future, live in waiters.items():
            self._floor.leave(live, self._place)
            if not future.done():
                future.set_result(reply)


class Desk:
    """Where all calls of a run pass; lives on the loop thread."""

    def __init__(
        self,
        floor: Floor,
        ledger: LedgerLike | None,
        counts: Counts,
        on_reply: Callable[[Backend, Call, Reply], None] | None = None,
    ) -> None:
        self.backends: dict[int, Backend] = {}
        """All backends that a client was made for, by identity."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.fail: Callable[[BaseException], None] = _raise
        """Called with an error that must stop the run."""
        self._floor = floor
        self._ledger = ledger
        self._counts = counts
        self._on_reply = on_reply or _nobody
        self._flights: dict[str, Flight] = {}
        self._slots: dict[int, asyncio.Semaphore] = {}
        self._unshared = itertools.count()

    def meet(self, backend: Backend) -> None:
        """Take note of a backend: its slots count towards the number of live episodes; it is closed in the end."""
        if id(backend) not in self.backends:
            self.backends[id(backend)] = backend
            if not isinstance(backend, Batcher) and not _is_person(backend):  # people are as slow as they are many
                n_slots = max(1, getattr(backend, "max_concurrency", DEFAULT_CONCURRENCY))
                self._slots[id(backend)] = asyncio.Semaphore(n_slots)
                self._floor.expect_slots(n_slots)

    async def reply(self, backend: Backend, call: Call) -> Reply:
        """The reply to a call, made, shared or remembered."""
        live = CURRENT.get(None) or Live(counted=False)
        if live.ended:
            raise BackendError(
                f"episode {call.episode.id} has ended, but a task that it left behind asks {backend.name}"
            )
        if getattr(backend, "recorded", False):  # what was said in another run: no call, so nothing to count or keep
            return checked_reply(await backend.reply(call), backend.name)
        if getattr(backend, "simulated", False):  # it also looks at the episode, which is not part of the key
            return await self._take_off(f"simulated {next(self._unshared)}", backend, call, keep=False).wait(live)
        key = call_key(backend.fingerprint, call, call.episode.repeat)
        flight = self._flights.get(key)
        if flight is not None:
            self._counts.shared_calls += 1
            return await flight.wait(live)
        known = self._remembered(key)
        if known is not None:
            self._on_reply(backend, call, known)
            return known
        return await self._take_off(key, backend, call).wait(live)

    def _remembered(self, key: str) -> Reply | None:
        if self._ledger is None:
            return None
        try:
            known = self._ledger.get(key)
        except Exception as error:  # whatever it raises: going on without the ledger would pay for everything twice
            self.fail(error)
            raise
        if known is None:
            return None
        self._counts.ledger_hits += 1
        return replace(known, run=replace(known.run, from_ledger=True))

    def _take_off(self, key: str, backend: Backend, call: Call, *, keep: bool = True) -> Flight:
        place: Place = "elsewhere"
        if isinstance(backend, Batcher):
            place = "parked"
        elif _is_person(backend):
            place = "person"

        def give_up() -> None:
            del self._flights[key]  # at once: nobody may join a call that is being given up
            task.cancel()

        flight = Flight(self._floor, place, give_up)
        self._flights[key] = flight
        task = self.spawn(self._fly(key, flight, backend, call, keep=keep))
        return flight

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` as a task that the run cancels when it stops; an error that escapes from it stops the run."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)

    async def _fly(self, key: str, flight: Flight, backend: Backend, call: Call, *, keep: bool) -> None:
        # What escapes from here is the ledger's, or our bug; it stops the run, for the waiters would wait for ever.
        reply = await self._made(backend, call, flight)
        self._counts.count_call(reply)
        self._on_reply(backend, call, reply)
        if self._ledger is not None and reply.usable and keep:
            flight.move("elsewhere")
            await self._ledger.put(key, reply, backend.name)
        self._flights.pop(key, None)
        flight.land(reply)

    async def _made(self, backend: Backend, call: Call, flight: Flight) -> Reply:
        if isinstance(backend, Batcher):
            return await backend.reply(call)
        if _is_person(backend):
            return await _answered(backend, call)
        asked = time.monotonic()
        slots = self._slots[id(backend)]
        queued = slots.locked()
        if queued:
            flight.move("queued")
        async with slots:
            if queued:
                flight.move("elsewhere")
            waited_s = time.monotonic() - asked
            with self._floor.call_elsewhere():
                reply = await _answered(backend, call)
        return replace(reply, run=replace(reply.run, waited_s=waited_s))


async def _answered(backend: Backend, call: Call) -> Reply:
    try:
        reply = await backend.reply(call)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():  # we gave the call up
            raise
        return failed_reply(text_of_failure(error))  # the backend cancelled itself
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a stranger's backend may raise anything; it must not take the run with it
        return failed_reply(text_of_failure(error))
    return checked_reply(reply, backend.name)


def _is_person(backend: Backend) -> bool:
    return bool(getattr(backend, "person", False))


def _nobody(backend: Backend, call: Call, reply: Reply) -> None:
    """Stands for the listener that a run without one does not have."""


def _raise(error: BaseException) -> None:
    raise error


@dataclass(slots=True, kw_only=True)
class Client:
    """One role, bound to one episode. Not frozen, because the protocol `RoleClient` declares a settable name."""

    desk: Desk
    backend: Backend
    role: RoleName
    settings: GenerationSettings
    episode: Episode
    name: str

    @property
    def is_person(self) -> bool:
        """Whether people answer."""
        return _is_person(self.backend)

    async def reply(
        self, messages: Sequence[Message], *, branch: str = "", round: int = 0, purpose: Purpose = "answer"
    ) -> Reply:
        """Ask; waits for a free slot or a batch. A failing call is a reply with status `error`.

        Raises: BackendError where the episode has ended already.
        """
        call = Call(
            messages=tuple(messages),
            settings=self.settings,
            role=self.role,
            purpose=purpose,
            episode=self.episode,
            branch=branch,
            round=round,
        )
        return await self.desk.reply(self.backend, call)
