"""The threads behind `asyncio.to_thread`: one that never returns holds up neither the run nor the program's end."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_Job = Callable[[], None]


class Threads(ThreadPoolExecutor):
    """As the standard library's, but with daemon threads, for which Python does not wait when it ends.

    It descends from the standard one because an event loop takes no other; it uses nothing of it.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)  # starts no thread before its own `submit` is called
        self._most = min(32, (os.cpu_count() or 1) + 4)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._n_threads = 0
        self._n_idle = 0
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in a thread.

        Raises: RuntimeError after `shutdown`.
        """
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._guard:
            if self._closed:
                raise RuntimeError("cannot start a thread after the run has ended")
            self._jobs.put(job)
            if self._n_idle:
                self._n_idle -= 1
            elif self._n_threads < self._most:
                self._n_threads += 1
                threading.Thread(target=self._work, name=f"interbench-{self._n_threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end once their work is done; waits for none."""
        with self._guard:
            self._closed = True
            for _ in range(self._n_threads):
                self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._guard:
                self._n_idle += 1
