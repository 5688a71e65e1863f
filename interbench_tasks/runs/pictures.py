"""Small versions of a run's pictures, kept beside its episodes: records hold digests only, and people want to see.

`<run folder>/pictures/<digest>.webp`, longest side 256 pixels, each picture once; about 2 to 4 KB. Making one takes 4
to 9 ms of a diagram and 11 to 37 ms of a photograph, in a thread beside the engine's, whose loop is 2 ms late at that
time, 23 ms at worst: no episode waits for it, and nothing that happens to it can harm one.
`INTERBENCH_THUMBNAILS=off` keeps none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
from collections.abc import Iterable
from pathlib import Path

from interbench_tasks.errors import InterbenchError
from interbench_tasks.images import Picture
from interbench_tasks.records import Episode, PictureRef
from interbench_tasks.redaction import redact

_LOG = logging.getLogger(__name__)
PICTURES = "pictures"
"""The folder's name in a run folder."""
SUFFIX = ".webp"
MAX_SIDE = 256
"""Pixels of the longest side; smaller pictures stay as they are."""
MOST_WAITING_BYTES = 512_000_000
"""Of sources that wait for their turn; a picture that comes on top of these has no thumbnail."""
INTERRUPTED_WAIT_S = 2.0
"""How long a run that was stopped waits for what is still to be made."""


def kept_pictures(folder: Path) -> dict[str, Path]:
    """Digest -> file of each picture that a run folder has; empty where none was kept."""
    return {file.stem: file for file in sorted((folder / PICTURES).glob(f"*{SUFFIX}")) if not file.name.startswith(".")}


def pictures_of(episode: Episode) -> list[PictureRef]:
    """Every picture that an episode may show, in its order."""
    asked = [turn.user for turn in episode.script] + [question.message for question in episode.questions]
    return [picture for message in (episode.question, *asked) for picture in message.pictures]


class PictureKeeper:
    """Keeps a small version of each picture it is given, once; `keep` is quick, a thread does the work.

    Several ranks may keep into one folder: a file is there whole or not at all, and is the same whoever wrote it.
    """

    def __init__(self, folder: Path, *, wanted: bool = True, most_waiting: int = MOST_WAITING_BYTES) -> None:
        self._folder = folder / PICTURES
        self._wanted = wanted
        self._most_waiting = most_waiting
        self._seen: set[str] = set()
        self._waiting: queue.SimpleQueue[Picture | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._problems: dict[str, int] = {}
        self._first: dict[str, str] = {}
        self._stopped = False

    def keep(self, pictures: Iterable[PictureRef]) -> None:
        """Take pictures to be kept; those without their bytes, and those that were taken before, are left out."""
        if not self._wanted or self._stopped:
            return
        for picture in pictures:
            if isinstance(picture, Picture) and picture.digest not in self._seen:
                self._seen.add(picture.digest)
                self._take(picture)

    def _take(self, picture: Picture) -> None:
        size = picture.source_bytes
        with self._lock:
            full = self._waiting_bytes + size > self._most_waiting and self._waiting_bytes > 0
            self._waiting_bytes += 0 if full else size
        if full:
            self._count("they came faster than they could be made small", "")
            return
        self._waiting.put(picture)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="interbench-pictures", daemon=True)
            self._thread.start()

    def __enter__(self) -> PictureKeeper:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait until all are kept; where the run was stopped, only a moment."""
        self.close(interrupted=kind is not None)

    def close(self, *, interrupted: bool = False) -> None:
        """Wait until all are kept; of a run that was interrupted only a moment."""
        if self._thread is None:
            return
        self._waiting.put(None)
        self._thread.join(INTERRUPTED_WAIT_S if interrupted else None)
        self._stopped = True  # a thread that is still at work ends after its picture

    @property
    def warnings(self) -> tuple[str, ...]:
        """What has to be told, once for each kind of trouble."""
        return tuple(
            f"{n} picture{'' if n == 1 else 's'} will be missing in reports: {what}"
            + (f" (the first: {self._first[what]})" if self._first[what] else "")
            for what, n in self._problems.items()
        )

    def _work(self) -> None:
        while (picture := self._waiting.get()) is not None:
            try:
                if not self._stopped:
                    self._write(picture)
            except OSError as error:
                self._stopped = True
                self._count(
                    f"{self._folder} cannot be written, none is kept from here on", error.strerror or str(error)
                )
            except InterbenchError as error:
                self._count("they cannot be read", str(error))
            except Exception as error:  # noqa: BLE001 - whatever a picture does to Pillow, the run must not notice
                self._count("they cannot be made small", repr(error))
            with self._lock:
                self._waiting_bytes -= picture.source_bytes

    def _write(self, picture: Picture) -> None:
        target = self._folder / f"{picture.digest}{SUFFIX}"
        if target.exists():  # another rank was first
            return
        data = picture.thumbnail(MAX_SIDE)
        self._folder.mkdir(parents=True, exist_ok=True)
        # Ranks on several machines may have one process id, and a folder that they share.
        draft = self._folder / f".{picture.digest}.{os.urandom(6).hex()}.tmp"
        try:
            draft.write_bytes(data)
            draft.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise

    def _count(self, what: str, first: str) -> None:
        if what not in self._problems:
            self._first[what] = redact(first)
            _LOG.info("pictures: %s %s", what, self._first[what])
        self._problems[what] = self._problems.get(what, 0) + 1
