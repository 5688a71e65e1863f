"""What becomes of a run, noted line by line in the file that `interbench run` names: its folders, and what went wrong.

The harness's own command exits with 0 after an error, so nobody outside can tell. A run that notes nothing finished
nothing. Without such a file (a plain `lmms-eval`) nothing is noted.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from interbench_tasks import settings
from interbench_tasks.redaction import redact

Kind: TypeAlias = Literal["begun", "problem", "evaluated", "failed", "refused", "stopped"]
"""A task of ours began to be played; something of it went wrong; the harness finished one entry of its list, or an
error ended it, or it refused the command line; the whole command was stopped from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One line of the file."""

    kind: Kind
    text: str = ""
    """What went wrong, redacted, on one line."""
    task: str = ""
    """Empty where it is about the whole command."""
    folder: Path | None = None
    """The folder of the run and task; of `begun` only."""
    metrics: bool = True
    """Whether metrics are to be computed at the end (not with `--predict_only`); of `begun` only."""

    @property
    def folder_has_begun(self) -> bool:
        """Whether anything was written there: what stops a run before its first call leaves no folder."""
        return self.folder is not None and self.folder.exists()


def note(kind: Kind, text: str = "", *, task: str = "", folder: Path | None = None, metrics: bool = True) -> None:
    """Add a line to the file that was asked for, if any. One that cannot be written does not end the run.

    Nothing is hidden by that: without its last line, `evaluated`, a run counts as failed.
    """
    path = settings.status_file()
    if path is None:
        return
    content = {
        "kind": kind,
        "text": " ".join(redact(text).split()),
        "task": task,
        "folder": None if folder is None else str(folder.absolute()),
        "metrics": metrics,
    }
    with contextlib.suppress(OSError), path.open("a", encoding="utf-8", errors="surrogatepass") as file:
        file.write(json.dumps(content, ensure_ascii=False) + "\n")  # one write: a line is whole or not there


def notes_in(path: Path) -> list[Note]:
    """All lines of the file, in their order; none where it is not there. A torn last line is no line."""
    try:
        lines = path.read_text(encoding="utf-8", errors="surrogatepass").split("\n")
    except FileNotFoundError:
        return []
    return [found for line in lines if (found := _note_from(line)) is not None]


def _note_from(line: str) -> Note | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    if not isinstance(content, dict) or content.get("kind") not in get_args(Kind):
        return None
    folder = content["folder"]
    return Note(
        kind=content["kind"],
        text=content["text"],
        task=content["task"],
        folder=None if folder is None else Path(folder),
        metrics=content["metrics"],
    )
