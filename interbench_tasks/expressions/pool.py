"""A small pool of child processes that compare expressions; one that takes too long is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

from interbench_tasks import settings
from interbench_tasks.errors import VerifierError

Outcome = Literal["equal", "different", "unreadable", "timeout", "failed"]
"""`unreadable`: one side is no expression. `timeout`: killed at the limit. `failed`: an error, or out of memory."""

WORKER = Path(__file__).with_name("worker.py")
CLOSED = "expressions cannot be compared: the pool is closed"
REMEMBERED = 8192
"""Pairs whose outcome is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one comparison may use."""

    seconds: float = 3.0
    memory_bytes: int = 2 << 30
    """Address space of a child process."""
    start_s: float = 120.0
    """Until a child is up; importing math-verify takes about a second on a free machine."""


@dataclass(frozen=True, slots=True)
class _Job:
    left: str
    right: str
    future: Future[Outcome]


def _undecided(future: Future[Outcome]) -> bool:
    return (
        future.done()
        and not future.cancelled()
        and future.exception() is None
        and (future.result() in ("timeout", "failed"))
    )


class ExpressionPool:
    """Compares expressions, safe to call from any thread. Nothing starts before the first comparison.

    The children are fresh interpreters (not forks, and not multiprocessing's, which run the caller's main program
    again). They end with `close()`, with the pool, and at the latest with this process.
    """

    def __init__(
        self, *, n_workers: int = 2, limits: Limits | None = None, command: Sequence[str] | None = None
    ) -> None:
        """Prepare a pool.

        Args:
            n_workers: processes at most.
            limits: of each comparison.
            command: what to start instead of our worker; for tests.
        """
        self._n_workers = n_workers
        self._shared = _Shared(limits or Limits(), tuple(command or (sys.executable, "-P", str(WORKER))))
        self._threads: list[threading.Thread] = []
        self._known: OrderedDict[tuple[str, str], Future[Outcome]] = OrderedDict()
        self._retried: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, self._shared.stop)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the children that run."""
        return tuple(child.pid for child in self._shared.children)

    def compare(self, left: str, right: str) -> Outcome:
        """Whether two expressions (LaTeX without delimiters) are equal; waits for it.

        Raises: VerifierError where no child can be started at all.
        """
        return self._submit(left, right).result()

    async def compare_later(self, left: str, right: str) -> Outcome:
        """Like `compare`, without holding up the loop. A cancelled waiter leaves the comparison to the others."""
        future = self._submit(left, right)
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def wake(_: Future[Outcome]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
                loop.call_soon_threadsafe(done.set)

        future.add_done_callback(wake)
        await done.wait()
        return future.result()

    def close(self) -> None:
        """End the children; comparisons that wait raise VerifierError."""
        self._finalizer()
        for thread in self._threads:
            thread.join(timeout=5.0)

    def _submit(self, left: str, right: str) -> Future[Outcome]:
        pair = (min(left, right), max(left, right))
        with self._lock:
            known = self._known.get(pair)
            if known is not None and pair not in self._retried and _undecided(known):
                self._retried.add(pair)  # a busy machine is no verdict: try once more, then believe it
                known = None
            if known is not None and not (known.done() and known.exception() is not None):
                self._known.move_to_end(pair)
                return known
            if self._shared.stopped:
                raise VerifierError(CLOSED)
            future: Future[Outcome] = Future()
            self._known[pair] = future
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            self._shared.jobs.put(_Job(*pair, future))
            if len(self._threads) < self._n_workers:
                thread = threading.Thread(target=_serve, args=(self._shared,), name="expressions", daemon=True)
                self._threads.append(thread)
                thread.start()
            return future


class _Shared:
    """What the pool and its threads share; holds no reference to the pool, so that the pool can be collected."""

    def __init__(self, limits: Limits, command: tuple[str, ...]) -> None:
        self.limits = limits
        self.command = command
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.children: set[_Child] = set()
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        self.jobs.put(None)
        for child in list(self.children):
            child.kill()


def _serve(shared: _Shared) -> None:
    """A thread of the pool: hands one job after the other to its own child."""
    child: _Child | None = None
    while (job := shared.jobs.get()) is not None:
        outcome: Outcome | None = None
        problem: BaseException | None = None
        try:
            child = child or _Child(shared)
            outcome = child.ask(job.left, job.right)
        except BaseException as error:  # noqa: BLE001 - goes to who waits; else that one would wait for ever
            problem = error
        if child is not None and child.ended:
            child.clear()
            child = None
        if outcome is not None:
            job.future.set_result(outcome)
        else:
            job.future.set_exception(problem or VerifierError(CLOSED))
    shared.jobs.put(None)  # for the other threads
    if child is not None:
        child.clear()


class _Child:
    """One child process; used by one thread, killed by any."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self.ended = False
        self._process = self._started()
        self.pid = self._process.pid
        shared.children.add(self)
        if shared.stopped:  # between the two lines above, nobody would have killed it
            self.kill()
        ready, timed_out = self._line(shared.limits.start_s)
        if ready is None:
            self.clear()
            if shared.stopped:
                raise VerifierError(CLOSED)
            code = "was killed" if timed_out else f"ended with {self._process.returncode}"
            raise VerifierError(
                f"math-verify does not start: {' '.join(shared.command)} {code} within {shared.limits.start_s:g} s. "
                f"Try `{sys.executable} -c 'import math_verify'`; `interbench doctor` looks at the versions."
            )

    def ask(self, left: str, right: str) -> Outcome:
        request = json.dumps({"left": left, "right": right}) + "\n"
        with contextlib.suppress(OSError):  # it died: reading says so too
            self._stdin.write(request.encode())
            self._stdin.flush()
        answer, timed_out = self._line(self._shared.limits.seconds)
        if answer is not None:
            return cast("Outcome", answer["outcome"])
        if self._shared.stopped:
            raise VerifierError(CLOSED)
        return "timeout" if timed_out else "failed"

    def kill(self) -> None:
        self._process.kill()

    def clear(self) -> None:
        """Free what the process holds; only from the thread that uses it."""
        self.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # an unwritten request of a process that is gone
            self._stdin.close()
        self._stdout.close()
        self._shared.children.discard(self)

    @property
    def _stdin(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdin)

    @property
    def _stdout(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdout)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._shared.stopped:
            raise VerifierError(CLOSED)
        limits = self._shared.limits
        try:
            return subprocess.Popen(
                [*self._shared.command, str(limits.seconds), str(limits.memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=settings.environment_without_secrets(),
                start_new_session=True,  # Ctrl-C is for us: a comparison that it killed would look like a failed one
            )
        except OSError as error:
            raise VerifierError(f"math-verify does not start: {self._shared.command[0]}: {error.strerror}") from error

    def _line(self, seconds: float) -> tuple[dict[str, str] | None, bool]:
        """The next answer, None where the process ended instead; and whether that was our doing."""
        fired = threading.Event()

        def stop() -> None:
            fired.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            line = self._stdout.readline()
        finally:
            timer.cancel()
        self.ended = fired.is_set() or not line.endswith(b"\n")
        return (json.loads(line) if line.endswith(b"\n") else None), fired.is_set()
