"""The desk as files: what waits as JSONL, and answers that come as JSONL, for people without a page."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interbench_tasks.errors import PeopleError
from interbench_tasks.people.desk import Desk, Entry, Item
from interbench_tasks.people.forms import Form, form_of

MIME_ENDINGS: Mapping[str, str] = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
}
MOST_TOLD = 50
"""Problems that are listed; of more, their number is told."""
_NOT_SHOWN = ("hide_target",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What an import did."""

    n_handed_in: int
    n_empty: int
    """Lines that nobody filled in; they were left out."""


def write_waiting(desk: Desk, forms: Mapping[str, Form], target: Path, *, hide_answer: bool = False) -> int:
    """Write what waits, one item a line, with empty fields to fill in; pictures go into a folder beside.

    Returns: how many items. Raises: PeopleError where the files cannot be written, or the file is there and somebody
        has filled in what still waits.
    """
    pictures = target.with_name(f"{target.stem}_pictures")
    items = desk.waiting()
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        _refuse_to_lose(target, desk, forms, items)
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(_line(desk, forms, item, pictures, hide_answer), ensure_ascii=False) for item in items]
        draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="replace")
        draft.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise PeopleError(f"{target}: cannot be written ({error}); name another file") from error
    return len(items)


def _refuse_to_lose(target: Path, desk: Desk, forms: Mapping[str, Form], items: Sequence[Item]) -> None:
    """Raises: PeopleError where the file holds words for items that still wait, or a line that is none of ours."""
    if not target.is_file():
        return
    waiting = {item.id: item for item in items}
    unread: list[str] = []
    for number, line in _lines(target, unread):
        item = waiting.get(str(line.get("id")))
        if item is None or any(own.annotator == line.get("annotator") for own in desk.answers(item.id)):
            continue
        names = [field.name for field in form_of(item.kind, forms).fields(item.payload)]
        if line.get("marked_right") is True or any(_text(line.get(name)).strip() for name in names):
            unread.append(f"line {number}: item {item.id} is filled in, and was not handed in")
    if unread:
        raise PeopleError(
            f"{target}: is there already, and would be lost: {unread[0]}; hand it in first (interbench people import), "
            "or name another file"
        )


def _line(desk: Desk, forms: Mapping[str, Form], item: Item, folder: Path, hide_answer: bool) -> dict[str, Any]:
    form = form_of(item.kind, forms)
    payload = dict(item.payload)
    if hide_answer:
        payload.pop("target", None)
    shown = {name: value for name, value in payload.items() if name not in _NOT_SHOWN}
    paths = [path for digest in payload.get("pictures", ()) if (path := saved_picture(desk, digest, folder))]
    actions = [action.name for action in form.actions(payload)]
    empty = {field.name: "" for field in form.fields(payload)}
    own = {"id": item.id, "kind": item.kind, "pictures": paths, "annotator": "", **empty, "actions": actions}
    return {**own, **shown, **own}  # ours first, and ours where an item has something of the same name


def saved_picture(desk: Desk, digest: str, folder: Path) -> str | None:
    """Where a picture of the desk was written to; None where the desk has it not."""
    found = desk.picture(digest)
    if found is None or not digest.isalnum():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest}{MIME_ENDINGS.get(found.mime, '.bin')}"
    if not path.exists():
        path.write_bytes(found.data)
    return str(path)


def read_answers(desk: Desk, forms: Mapping[str, Form], source: Path, *, annotator: str | None = None) -> Answers:
    """Hand in the answers of a file: all of them, or none and every problem with its line.

    A line needs `id`, `annotator` (unless `annotator` is given here) and the form's fields; `action` may be left out
    where the usual one is meant, and `"marked_right": true` stands for that action. Lines that nobody filled in, as
    they were exported, are left out.

    Raises: PeopleError that names every line that is wrong; nothing is handed in then.
    """
    problems: list[str] = []
    entries: list[tuple[int, Entry]] = []
    n_empty = 0
    for number, line in _lines(source, problems):
        entry = _entry(desk, forms, line, annotator, number, problems)
        if entry is None:
            n_empty += 1
        elif isinstance(entry, Entry):
            entries.append((number, entry))
    problems += _twice(entries)
    if not problems:
        refusals = desk.submit_all([entry for _, entry in entries])
        problems = [f"line {number}: {why}" for (number, _), why in zip(entries, refusals, strict=True) if why]
    if problems:
        raise PeopleError(_told(source, problems))
    return Answers(n_handed_in=len(entries), n_empty=n_empty)


def _lines(source: Path, problems: list[str]) -> list[tuple[int, dict[str, Any]]]:
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PeopleError(f"{source}: cannot be read ({error}); it must be JSONL in UTF-8") from error
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            read = json.loads(line)
        except ValueError as error:
            problems.append(f"line {number}: is no JSON ({error})")
            continue
        if isinstance(read, dict):
            found.append((number, read))
        else:
            problems.append(f"line {number}: must be an object, one item a line")
    return found


def _entry(
    desk: Desk,
    forms: Mapping[str, Form],
    line: Mapping[str, Any],
    annotator: str | None,
    number: int,
    problems: list[str],
) -> Entry | str | None:
    """The answer of a line; None where nobody filled it in, '' where it is wrong (a problem was added)."""
    missing = [name for name in ("id", "annotator") if name not in line and not (name == "annotator" and annotator)]
    if missing:
        problems.append(f"line {number}: the column {' and '.join(missing)} is missing")
        return ""
    try:
        item = desk.item(str(line["id"]))
        form = form_of(item.kind, forms)
    except PeopleError as error:
        problems.append(f"line {number}: {error}")
        return ""
    fields = form.fields(item.payload)
    absent = [field.name for field in fields if field.name not in line and not field.optional]
    marked = line.get("marked_right") is True
    if absent and not (marked or line.get("action")):
        problems.append(f"line {number}: the column {' and '.join(absent)} is missing")
        return ""
    odd = [field.name for field in fields if isinstance(line.get(field.name), list | dict | bool)]
    if odd:
        problems.append(f"line {number}: {' and '.join(odd)} must be a text, in quotes")
        return ""
    name = str(line.get("annotator") or annotator or "")
    content = {field.name: _text(line.get(field.name)) for field in fields}
    if not name and not any(value.strip() for value in content.values()) and not marked:
        return None
    action = "marked_right" if marked else str(line.get("action") or form.actions(item.payload)[0].name)
    content["action"] = action
    wrong = form.problems(item.payload, content)
    problems += [f"line {number}: {problem}" for problem in wrong]
    return "" if wrong else Entry(item=item.id, annotator=name, content=content, seconds=_seconds(line.get("seconds")))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _seconds(value: object) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 86_400
    return float(value) if usable and isinstance(value, int | float) else 0.0


def _twice(entries: Sequence[tuple[int, Entry]]) -> list[str]:
    first: dict[tuple[str, str], int] = {}
    problems = []
    for number, entry in entries:
        before = first.setdefault((entry.item, entry.annotator), number)
        if before != number:
            problems.append(f"line {number}: {entry.annotator} answers item {entry.item} twice, first in line {before}")
    return problems


def _told(source: Path, problems: Sequence[str]) -> str:
    shown = "\n  ".join(problems[:MOST_TOLD])
    more = f"\n  and {len(problems) - MOST_TOLD} more" if len(problems) > MOST_TOLD else ""
    return f"{source}: nothing was handed in; {len(problems)} problem(s):\n  {shown}{more}"
