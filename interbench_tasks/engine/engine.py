"""Plays many episodes at once: the loop in a helper thread, the models on the calling one."""

from __future__ import annotations

import asyncio
import contextlib
import operator
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from interbench_tasks.engine.batcher import Batcher, Dispatcher, Job
from interbench_tasks.engine.clients import Client, Desk
from interbench_tasks.engine.contracts import BatchedModel, EngineReport, LedgerLike
from interbench_tasks.engine.failures import text_of_failure
from interbench_tasks.engine.feeder import Feeder
from interbench_tasks.engine.floor import CURRENT, Floor, Live
from interbench_tasks.engine.halving import replies_from
from interbench_tasks.engine.overseer import BLOCKED_AFTER_S, Overseer, place_in
from interbench_tasks.engine.progress import Counts, Progress
from interbench_tasks.engine.threads import Threads
from interbench_tasks.errors import BackendError, InterbenchError
from interbench_tasks.hookspecs import Backend, Call, RoleClient
from interbench_tasks.records import Episode, EpisodeRecord, GenerationSettings, Reply, RoleName

T = TypeVar("T")
Play = Callable[[Episode], Awaitable[EpisodeRecord]]
Failed = Callable[[Episode, str, Literal["failed", "skipped"]], EpisodeRecord]

LOOK_AT_SIGNALS_S = 0.2
"""Where a blocked thread does not notice Ctrl-C (Windows), it looks this often."""
STOP_WITHIN_S = 0.8
CANCEL_WITHIN_S = 0.4
CLOSE_WITHIN_S = 0.3
CLOSE_PATIENTLY_S = 10.0


def _never() -> str | None:
    return None


class Engine:
    """Runs episodes side by side, once. Make a fresh engine for each run.

    Args:
        max_live: most episodes at a time; None: see `Floor`.
        max_wait_s: longest wait of a call for a full batch while the calling thread is free, in seconds.
        max_episode_s: most seconds that an episode may take, waits in our own queues not counted (see `Overseer`);
            None: no limit.
        blocked_after_s: seconds after which code that holds the event loop is warned about.
        ledger: where replies are kept; None: nowhere.
        progress: whether one bar is drawn to stderr.
        stop_reason: asked on the loop thread before each episode starts; a text stops further starts for good.
        may_be_live: how many episodes may run at a time beside all other limits, asked on the loop thread; None: any
            number. One may always run.
        on_reply: told on the loop thread of each call that was really made, failed ones included, and of each reply
            from the ledger (`reply.run.from_ledger`).
    """

    def __init__(
        self,
        *,
        max_live: int | None = None,
        max_wait_s: float = 0.5,
        max_episode_s: float | None = None,
        blocked_after_s: float = BLOCKED_AFTER_S,
        ledger: LedgerLike | None = None,
        progress: bool = True,
        stop_reason: Callable[[], str | None] = _never,
        may_be_live: Callable[[], int | None] | None = None,
        on_reply: Callable[[Backend, Call, Reply], None] | None = None,
    ) -> None:
        if max_live is not None and max_live < 1:
            raise InterbenchError(f"max_live = {max_live}: at least one episode must run at a time")
        self._progress_wanted = progress
        self._stop_reason = stop_reason
        self._reason: str | None = None
        self._jobs: queue.SimpleQueue[Job | _Errand | None] = queue.SimpleQueue()
        self._counts = Counts()
        self._floor = Floor(max_live, may_be_live)
        self._overseer = Overseer(max_episode_s=max_episode_s, blocked_after_s=blocked_after_s)
        self._dispatcher = Dispatcher(self._floor, self._jobs.put, max_wait_s)
        self._desk = Desk(self._floor, ledger, self._counts, on_reply)
        self._desk.fail = self._stop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done = asyncio.Event()
        self._interrupted = threading.Event()
        self._stopping = False
        self._error: BaseException | None = None
        self._problems: list[str] = []
        self._used = False

    def batched(self, model: BatchedModel) -> Backend:
        """A backend whose replies come from batches of `model`; the same one for the same model."""
        for batcher in self._dispatcher.batchers:
            if batcher.model is model:
                return batcher
        batcher = Batcher(model, self._dispatcher)
        self._dispatcher.batchers.append(batcher)
        self._floor.expect_batches(batcher.size)
        return batcher

    def client(self, backend: Backend, role: RoleName, settings: GenerationSettings, episode: Episode) -> RoleClient:
        """A role of one episode. Calls through it obey the backend's limit, the ledger and the batches.

        Raises: BackendError where `backend` is a batched one of another engine.
        """
        if isinstance(backend, Batcher) and backend.dispatcher is not self._dispatcher:
            raise BackendError(f"{backend.name} was batched by another engine; call batched() of this one")
        self._desk.meet(backend)
        return Client(
            desk=self._desk, backend=backend, role=role, settings=settings, episode=episode, name=backend.name
        )

    @property
    def stopping(self) -> bool:
        """Whether the run is coming to its end; an iterable that waits for something should wait no longer."""
        return self._stopping or self._interrupted.is_set()

    def on_calling_thread(self, function: Callable[[], T]) -> T | None:
        """What `function` returns, called on the thread that called `run`; for the iterable of episodes only.

        Returns: None where the run was stopped before.
        Raises: what `function` raised.
        """
        errand = _Errand(function)
        self._jobs.put(errand)
        while not errand.done.wait(LOOK_AT_SIGNALS_S):
            if self.stopping:
                return None
        if errand.error is not None:
            raise errand.error
        return cast("T", errand.result)

    def run(
        self,
        episodes: Iterable[Episode | EpisodeRecord],
        play: Play,
        *,
        on_record: Callable[[EpisodeRecord], None],
        failed: Failed,
    ) -> EngineReport:
        """Play all episodes; returns when each has its record. Batches are generated on the calling thread.

        Args:
            episodes: advanced lazily, in a thread of its own; a ready record stands for an episode that could not be
                made. Where the iterable itself raises, running episodes finish and the error is raised.
            play: the script; what it raises fails its own episode only.
            on_record: called once an episode, in the order of their ends, on the loop thread.
            failed: makes the record of an episode that raised or was skipped; called on the loop thread.

        Raises: what on_record, failed or the ledger raised, after the rest was cancelled; KeyboardInterrupt and
            SystemExit, within a second of a Ctrl-C unless the model itself holds it back.
        """
        if self._used:
            raise InterbenchError("an engine runs once: make a fresh Engine for each run")
        self._used = True
        started = time.monotonic()
        script = _Script(play=play, on_record=on_record, failed=failed)
        thread = threading.Thread(target=self._helper, args=(episodes, script), name="interbench-engine", daemon=True)
        try:
            thread.start()
            self._serve()
            thread.join(STOP_WITHIN_S if self._overseer.gave_up else CLOSE_PATIENTLY_S)
        except BaseException:
            self._interrupt()
            if thread.is_alive():
                thread.join(STOP_WITHIN_S)  # a second Ctrl-C ends this wait; the thread is a daemon
            raise
        if self._error is not None:
            raise self._error
        return self._report(time.monotonic() - started)

    # ---------------------------------------------------------------- on the calling thread

    def _serve(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=LOOK_AT_SIGNALS_S)
            except queue.Empty:
                continue
            if job is None:
                return
            if isinstance(job, _Errand):
                job.run()
                continue
            began = time.monotonic()
            replies = replies_from(job.batcher.model, job.calls, lambda: self._stopping)
            seconds = time.monotonic() - began
            assert self._loop is not None
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run was stopped meanwhile
                self._loop.call_soon_threadsafe(self._dispatcher.answered, job, replies, seconds)

    def _interrupt(self) -> None:
        self._interrupted.set()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._stop, None)

    def _report(self, wall_s: float) -> EngineReport:
        counts = self._counts
        return EngineReport(
            n_finished=counts.finished,
            n_failed=counts.failed,
            n_skipped=counts.skipped,
            calls=counts.calls,
            failed_calls=counts.failed_calls,
            ledger_hits=counts.ledger_hits,
            shared_calls=counts.shared_calls,
            wall_s=wall_s,
            most_live=self._floor.most_live,
            idle_s=self._dispatcher.idle_s if self._dispatcher.batchers else 0.0,
            batches=tuple(batcher.report() for batcher in self._dispatcher.batchers),
            problems=tuple(self._problems),
        )

    # ---------------------------------------------------------------- on the loop thread

    def _helper(self, episodes: Iterable[Episode | EpisodeRecord], script: _Script) -> None:
        with asyncio.Runner() as runner:
            try:
                loop = runner.get_loop()
                loop.set_default_executor(Threads())
                _run_to_its_end(loop.create_task(self._main(episodes, script)))
            except BaseException as error:  # noqa: BLE001 - raised again on the calling thread
                self._error = self._error or error
            finally:
                self._jobs.put(None)

    async def _main(self, episodes: Iterable[Episode | EpisodeRecord], script: _Script) -> None:
        self._loop = asyncio.get_running_loop()
        if self._interrupted.is_set():
            return
        feeder = Feeder(episodes)
        progress = Progress(
            self._counts,
            operator.length_hint(episodes) or None,
            wanted=self._progress_wanted,
            n_with_people=lambda: self._floor.n_away,
        )
        progress.start()
        self._overseer.start()
        self._dispatcher.start()
        feeder.start()
        self._desk.spawn(self._start_episodes(feeder, script))
        try:
            await self._done.wait()
        finally:
            self._stopping = True
            feeder.stop()
            self._dispatcher.stop()
            self._overseer.stop()
            await self._cancel_tasks()
            await asyncio.gather(*map(self._close, self._desk.backends.values()))
            progress.stop()

    def _stop(self, error: BaseException | None) -> None:
        """End the run: everything that still runs is cancelled. The first error is the one that `run` raises."""
        self._error = self._error or (None if error is None else _never_an_exit(error))
        self._stopping = True
        self._done.set()

    async def _cancel_tasks(self) -> None:
        tasks = set(self._desk.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_WITHIN_S)

    async def _close(self, backend: Backend) -> None:
        try:
            async with asyncio.timeout(CLOSE_WITHIN_S if self._interrupted.is_set() else CLOSE_PATIENTLY_S):
                await backend.close()
        except Exception as error:  # noqa: BLE001 - the results are complete; a stranger's close must not take them away
            self._problems.append(f"{backend.name} could not be closed: {text_of_failure(error)}")

    async def _start_episodes(self, feeder: Feeder[Episode | EpisodeRecord], script: _Script) -> None:
        error: BaseException | None = None
        try:
            async for item in feeder:
                if isinstance(item, EpisodeRecord):
                    self._finish(item, script)
                else:
                    await self._start(item, script)
        except (Exception, SystemExit, KeyboardInterrupt) as raised:  # noqa: BLE001 - no further episode can be had; those that run are paid for and may finish
            error = raised
        self._dispatcher.exhausted()
        while self._floor.n_live:
            await self._floor.room_after_a_change()
        self._stop(error)

    async def _start(self, episode: Episode, script: _Script) -> None:
        while not self._floor.can_start:
            await self._floor.room_after_a_change()
        self._reason = self._reason or self._stop_reason()
        if self._reason is not None:
            self._finish(script.failed(episode, self._reason, "skipped"), script)
        else:
            self._desk.spawn(self._play(episode, self._floor.start(), script))

    async def _play(self, episode: Episode, live: Live, script: _Script) -> None:
        CURRENT.set(live)
        task = asyncio.current_task()
        assert task is not None
        self._overseer.watch(live, task, lambda: self._give_up(episode, live, script))
        try:
            record = await self._played(episode, live, script)  # raises only where `failed` does: that stops the run
        finally:
            given_up = live.ended
            self._overseer.forget(live)
            self._floor.end(live)
        if not given_up:
            self._finish(record, script)

    async def _played(self, episode: Episode, live: Live, script: _Script) -> EpisodeRecord:
        try:
            return await script.play(episode)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if live.late and not self._stopping:
                why = self._overseer.why(live, error)
            elif task is None or task.cancelling():  # the run stops
                raise
            else:
                why = text_of_failure(error)  # the script cancelled itself
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever an episode raises hurts no other, sys.exit() included: Ctrl-C never arrives here
            why = self._overseer.why(live, error) if live.late else text_of_failure(_never_an_exit(error))
        return script.failed(episode, why, "failed")

    def _give_up(self, episode: Episode, live: Live, script: _Script) -> None:
        """Go on without an episode that does not end although it was cancelled."""
        try:
            record = script.failed(episode, self._overseer.why(live), "failed")
        except Exception as error:  # noqa: BLE001 - as everywhere: a record that cannot be made stops the run
            self._stop(error)
            return
        self._floor.end(live)
        self._finish(record, script)

    def _finish(self, record: EpisodeRecord, script: _Script) -> None:
        if self._stopping:
            return
        self._counts.count_record(record)
        try:
            script.on_record(record)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - e.g. a full disk: going on would lose what is paid for
            self._stop(error)


def _run_to_its_end(main: asyncio.Task[None]) -> None:
    """Run the loop until `main` is done.

    A plugin that calls sys.exit() in a task of its own stops the loop itself; going on lets the error reach whoever
    awaits that task. Ctrl-C is no concern here: signals arrive on the main thread, this is another one.

    Raises: what `main` raised.
    """
    while not main.done():
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            main.get_loop().run_until_complete(main)
    main.result()


def _never_an_exit(error: BaseException) -> BaseException:
    """The error, or one that says what happened where somebody's code tried to end the whole program."""
    if not isinstance(error, SystemExit | KeyboardInterrupt):
        return error
    where = place_in(error.__traceback__)
    told = InterbenchError(
        f"something tried to end the whole program ({text_of_failure(error)}){f' in {where}' if where else ''}; "
        "a plugin must raise an error instead"
    )
    told.__cause__ = error
    return told


class _Errand:
    """A function for the calling thread, e.g. one that talks to the other ranks."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self.done = threading.Event()
        self.result: object = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Call it; Ctrl-C goes through."""
        try:
            self.result = self._function()
        except Exception as error:  # noqa: BLE001 - raised again where it was asked for
            self.error = error
        self.done.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """What the caller of `run` wants done with each episode."""

    play: Play
    on_record: Callable[[EpisodeRecord], None]
    failed: Failed
