"""Looks after what never ends: episodes over their time limit, and code that does not give the event loop back.

An episode's clock runs while its own code (protocol, plugins, verifier) or one of its calls to a backend runs. It
stands still while one of its calls waits for a batch, a free slot of a backend, or a person: a slow local model or a
long queue of ours is no fault of the episode. The clock is read once a second, so it costs a call nothing; time in
which somebody else held the loop is not charged.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

from interbench_tasks.engine.floor import Live
from interbench_tasks.redaction import redact

_LOG = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0
GRACE_S = 3.0
"""A cancelled episode may clean up for so long; then its record is made without it."""
BLOCKED_AFTER_S = 20.0
SHOWN_FRAMES = 3
_MACHINERY = (str(Path(asyncio.__file__).parent), str(Path(__file__).parent), threading.__file__)
"""Folders and files whose code says nothing about what an episode was doing."""


@dataclass(slots=True)
class _Watched:
    """One live episode."""

    task: asyncio.Task[None]
    give_up: Callable[[], None]
    cancelled_at: float | None = None
    """time.monotonic() of when it was told to end; None while it is within its limit."""


class Overseer:
    """Cancels episodes over their limit, and warns once where the loop is held; `start` and `stop` on the loop thread.

    Args:
        max_episode_s: most seconds on an episode's clock; None: no limit.
        blocked_after_s: seconds without a turn of the loop after which the warning comes.
    """

    def __init__(self, *, max_episode_s: float | None, blocked_after_s: float = BLOCKED_AFTER_S) -> None:
        self.max_episode_s = max_episode_s
        self.gave_up = False
        """True once an episode was left behind that does not end."""
        self._every_s = min(LOOK_EVERY_S, blocked_after_s / 4, (max_episode_s or LOOK_EVERY_S * 10) / 10)
        self._blocked_after_s = blocked_after_s
        self._watched: dict[Live, _Watched] = {}
        self._last = 0.0  # time.monotonic() of the last look, also the sign that the loop runs
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to look; called on the loop thread."""
        self._last = time.monotonic()
        self._look()
        watch = threading.Thread(
            target=self._watch_the_loop, args=(threading.get_ident(),), name="interbench-watchdog", daemon=True
        )
        watch.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def watch(self, live: Live, task: asyncio.Task[None], give_up: Callable[[], None]) -> None:
        """Look after an episode.

        Args: give_up = called where its task does not end although it was cancelled.
        """
        self._watched[live] = _Watched(task, give_up)

    def forget(self, live: Live) -> None:
        """The episode has ended."""
        self._watched.pop(live, None)

    def why(self, live: Live, error: BaseException | None = None) -> str:
        """Why an episode over its limit has no result. Args: error = the cancellation as it came out of its code."""
        where = place_in(error.__traceback__) if error is not None else ""
        doing = f"; it was in {where}" if where else ""
        if live.late == "call":
            doing = "; it was waiting for a backend's reply (timeout_s limits one call)"
        return (
            f"the episode took longer than {self.max_episode_s:g} s, waits for a batch, a free slot or a person not "
            f"counted{doing}. Cure what hangs, or raise metadata.interbench.engine.max_episode_s, and run the same "
            "command again"
        )

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._every_s, self._look)
        now = time.monotonic()
        passed = min(now - self._last, 2 * self._every_s)  # more: somebody held the loop, and nobody could go on
        self._last = now
        for live, watched in tuple(self._watched.items()):
            if watched.cancelled_at is not None:
                if now - watched.cancelled_at > GRACE_S:
                    self.forget(live)
                    self.gave_up = True
                    watched.give_up()
            elif self.max_episode_s is not None and not live.waits:
                live.spent_s += passed
                if live.spent_s > self.max_episode_s:
                    live.late = "call" if live.calls["elsewhere"] else "own code"
                    watched.cancelled_at = now
                    watched.task.cancel()

    def _watch_the_loop(self, loop_thread: int) -> None:
        every_s = self._blocked_after_s / 4
        looked = time.monotonic()
        while not self._stopped.wait(every_s):
            now = time.monotonic()
            held_up_too, looked = now - looked > 2 * every_s, now  # e.g. a suspended machine: says nothing of the loop
            if held_up_too or now - self._last < self._blocked_after_s:
                continue
            frame = sys._current_frames().get(loop_thread)
            _LOG.warning(
                "nothing has moved for %.0f s: %s does not give the event loop back, and all other episodes wait for "
                "it. Code that computes or waits for long belongs into `await asyncio.to_thread(...)`. It cannot be "
                "stopped from outside; Ctrl-C ends the run and keeps what is finished.",
                now - self._last,
                place_of(frame) or "some code",
            )
            return  # once a run


def place_in(trace: TracebackType | None) -> str:
    """The innermost code of a traceback that is nobody's machinery: `give (/a/plugin.py, line 3)`; '' for none."""
    return _told(traceback.extract_tb(trace))


def place_of(frame: FrameType | None) -> str:
    """What a thread is doing, innermost first."""
    return _told(traceback.extract_stack(frame), SHOWN_FRAMES) if frame is not None else ""


def _told(stack: traceback.StackSummary, most: int = 1) -> str:
    own = [frame for frame in stack if not frame.filename.startswith(_MACHINERY)]
    shown = [f"{frame.name} ({frame.filename}, line {frame.lineno})" for frame in reversed(own[-most:])]
    return redact(", called from ".join(shown))
