"""Browsers that were let in to a desk's page; they stay in when the page is stopped and started again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from interbench_tasks.people.desk_file import DeskFile


class Sessions:
    """The sessions in a desk's file. Args: clock = the time, in seconds."""

    def __init__(self, file: DeskFile, clock: Callable[[], float]) -> None:
        self._file = file
        self._clock = clock

    def begin(self, secret: str) -> None:
        """Let the browser in that holds `secret`, of which only a digest is kept."""
        with self._file.change() as db:
            db.execute("INSERT OR REPLACE INTO session VALUES (?, NULL, ?)", (_digest(secret), self._clock()))

    def name(self, secret: str, annotator: str) -> None:
        """The session is that of one annotator from now on; '': of nobody."""
        with self._file.change() as db:
            db.execute("UPDATE session SET annotator = ? WHERE digest = ?", (annotator, _digest(secret)))

    def annotator(self, secret: str) -> str | None:
        """Whose session it is, '' for nobody's yet; None where there is none."""
        with self._file.look() as db:
            row = db.execute("SELECT annotator FROM session WHERE digest = ?", (_digest(secret),)).fetchone()
        return None if row is None else str(row[0] or "")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
