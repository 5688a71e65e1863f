"""Takes episodes from a slow iterable in a thread of its own, so that making pictures never holds up a reply."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
AHEAD = 2


class Feeder(AsyncIterator[T], Generic[T]):
    """The items of an iterable, at most two of them made before they are wanted.

    The iterable is advanced, and a generator is closed, in a daemon thread: one that never returns cannot hold up the
    end of the program.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self._ready: asyncio.Queue[T | _End] = asyncio.Queue()
        self._slots = threading.Semaphore(AHEAD)
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to take items; called on the loop thread."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, name="interbench-episodes", daemon=True).start()

    def stop(self) -> None:
        """Take no further item."""
        self._stopped = True
        self._slots.release()

    async def __anext__(self) -> T:
        """The next item.

        Raises: what the iterable raised, after the items before it.
        """
        item = await self._ready.get()
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            raise StopAsyncIteration
        self._slots.release()
        return item

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            iterator = iter(self._items)
            try:
                self._hand_over(iterator)
            finally:
                _close(iterator)
        except BaseException as raised:  # noqa: BLE001 - handed to the loop thread, which raises it again
            error = raised
        self._post(_End(error))

    def _hand_over(self, iterator: Iterator[T]) -> None:
        end = _End(None)
        while True:
            self._slots.acquire()
            if self._stopped:
                return
            item = next(iterator, end)
            if isinstance(item, _End) or not self._post(item):
                return

    def _post(self, item: T | _End) -> bool:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._ready.put_nowait, item)
        except RuntimeError:  # the loop is closed: the run was stopped meanwhile
            return False
        return True


class _End:
    """Stands after the last item."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def _close(iterator: object) -> None:
    close = getattr(iterator, "close", None)
    if callable(close):
        close()
