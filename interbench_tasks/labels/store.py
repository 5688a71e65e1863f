"""What people said, beside the run: `labels.jsonl`, one label a line, only ever added to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from interbench_tasks.errors import RunFolderError

LABELS = "labels.jsonl"
LOCK_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What one person said of one reply."""

    item: str
    annotator: str
    """A pseudonym."""
    values: Mapping[str, str] = field(hash=False)
    """Field -> what was given, as it is written."""
    source: Literal["csv", "page"]
    seconds: float | None = None
    """Time spent; None where nobody measured it."""
    at: str = ""
    """When it was stored: ISO 8601, UTC."""


def now() -> str:
    """The time as a label has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_labels(folder: Path) -> list[Label]:
    """All labels of a run folder, in the order in which they came.

    Raises: RunFolderError naming the line that cannot be read, or a person's second label of one reply.
    """
    path = folder / LABELS
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}") from error
    found: list[Label] = []
    seen: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            label = _label_from(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise RunFolderError(f"{path}, line {number}: is no label: {error}; mend or remove this line") from error
        first = seen.setdefault((label.item, label.annotator), number)
        if first != number:
            raise RunFolderError(
                f"{path}, line {number}: {label.annotator} has labelled {label.item} in line {first} already; "
                "keep one of them"
            )
        found.append(label)
    return found


def _label_from(raw: Mapping[str, Any]) -> Label:
    values = {str(name): str(value) for name, value in dict(raw["values"]).items()}
    return Label(
        item=str(raw["item"]),
        annotator=str(raw["annotator"]),
        values=values,
        source=raw["source"],
        seconds=raw.get("seconds"),
        at=str(raw.get("at", "")),
    )


def add_labels(folder: Path, labels: Sequence[Label]) -> int:
    """Add labels; those that are there already, word for word, are left out. All or nothing.

    Returns: how many were added.
    Raises: RunFolderError where somebody's label of a reply is there already and says something else, or the file
        cannot be read or written, or another process holds it.
    """
    path = folder / LABELS
    try:
        with FileLock(path.with_suffix(".lock"), timeout=LOCK_S):
            before = {(label.item, label.annotator): label for label in read_labels(folder)}
            new: dict[tuple[str, str], Label] = {}
            for label in labels:
                key = (label.item, label.annotator)
                other = before.get(key) or new.get(key)
                if other is not None and dict(other.values) != dict(label.values):
                    raise RunFolderError(f"{path}: {label.annotator} has labelled {label.item} otherwise already")
                if other is None:
                    new[key] = label
            if new:
                _append(path, "".join(_line(label) for label in new.values()).encode("utf-8"))
            return len(new)
    except Timeout as error:
        raise RunFolderError(f"{path}: another process holds it; try again") from error
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}; nothing was added") from error


def _line(label: Label) -> str:
    content = {
        "item": label.item,
        "annotator": label.annotator,
        "values": dict(label.values),
        "seconds": label.seconds,
        "at": label.at or now(),
        "source": label.source,
    }
    return json.dumps(content, ensure_ascii=True) + "\n"


def _append(path: Path, data: bytes) -> None:
    """Add whole lines, or nothing: a disk that fills up in the middle leaves no half of them."""
    with path.open("ab", buffering=0) as file:
        start = file.tell()
        view = memoryview(data if _ends_a_line(path) else b"\n" + data)
        try:
            while view:
                view = view[file.write(view) :]
        except OSError:
            file.truncate(start)
            raise


def _ends_a_line(path: Path) -> bool:
    """Whether what is added begins a line of its own: somebody may have saved the file without its last line feed."""
    with path.open("rb") as file:
        if file.seek(0, 2) == 0:
            return True
        file.seek(-1, 2)
        return file.read(1) == b"\n"
