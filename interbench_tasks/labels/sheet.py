"""Labels on paper: a CSV of replies for one annotator to fill in, and what comes back of it."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from interbench_tasks.errors import DataError, RefusedError, near_miss
from interbench_tasks.labels.items import Judgeable, LabelRun, picture_file
from interbench_tasks.labels.scales import Asked
from interbench_tasks.labels.store import Label, now
from interbench_tasks.people.desk_items import checked_annotator

SHOWN_PROBLEMS = 50
SHOWN = ("kind", "question", "reference", "conversation", "reply", "pictures", "guide")
"""Columns to read, between the ids and those to fill in."""
MOST_CHARS = 30_000
"""Of a cell: spreadsheets cut off what is longer than 32,767."""
_SAID_SEPARATOR = re.compile(r"sep=([,;\t])\r?\n")
"""How some spreadsheets begin a file, or are told to read it."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these is a formula to a spreadsheet, and a model may write one."""


def fields_of(run: LabelRun, items: Sequence[Judgeable]) -> tuple[str, ...]:
    """The columns to fill in for these replies."""
    kinds = dict.fromkeys(item.kind for item in items)
    return tuple(dict.fromkeys(one.name for kind in kinds for one in run.asked[kind].fields))


def sheet_text(run: LabelRun, items: Sequence[Judgeable], *, annotator: str, beside: Path) -> str:
    """The CSV for one annotator: what is to be labelled, without a judge's verdict or a model's name, and empty cells.

    Args: beside = the folder that the CSV is for; pictures are named from there.
    """
    names = fields_of(run, items)
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(["item", "annotator", *SHOWN, *names])
    for item in items:
        told = [item.kind, item.question, item.reference, item.excerpt, item.reply, _pictures(run, item, beside)]
        shown = [_as_text(text) for text in (*told, run.asked[item.kind].guide())]
        writer.writerow([item.id, annotator, *shown, *[""] * len(names)])
    return target.getvalue()


def _as_text(text: str) -> str:
    if len(text) > MOST_CHARS:
        text = f"{text[:MOST_CHARS]}\n[... {len(text) - MOST_CHARS} characters more ...]"
    return f"'{text}" if text.startswith(_FORMULA) else text


def _pictures(run: LabelRun, item: Judgeable, beside: Path) -> str:
    lines = []
    for picture in item.pictures:
        file = picture_file(run.folder, picture.digest)
        missing = f"(not kept: {picture.width}x{picture.height}, {picture.digest})"
        lines.append(missing if file is None else os.path.relpath(file, beside))
    return "\n".join(lines)


def write_sheet(path: Path, text: str) -> None:
    """Write a CSV as spreadsheets like it.

    Raises: DataError where it is there already (somebody may have filled it in) or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            file.write(text)
    except FileExistsError as error:
        raise DataError(f"{path}: is there already, and may be filled in; name another file") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error


# --- what comes back --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A checked sheet."""

    labels: tuple[Label, ...]
    """Those that are new."""
    n_there: int
    """Rows whose label was stored before, word for word."""
    n_empty: int
    """Rows without any value."""


def labels_from_sheet(
    path: Path, run: LabelRun, *, sample: Sequence[str], stored: Sequence[Label], annotator: str = ""
) -> Filled:
    """The labels of a filled-in CSV.

    Args: sample = ids of the sample; stored = labels that are there already; annotator = who filled in rows that name
        nobody.
    Raises: DataError with every problem of the file by line: a missing column, an unknown reply, one that is not in the
        sample, a value off the scale or missing, a name that is no pseudonym, a second label of somebody. Nothing of
        the file is taken then.
    """
    header, rows = _rows(path)
    missing = [name for name in ("item", *_needed(run, sample)) if name not in header]
    if missing:
        told = "".join(near_miss(name, header) for name in missing[:1])
        raise DataError(f"{path}, line 1: lacks the column {', '.join(missing)}{told}; it has: {', '.join(header)}")
    before = {(own.item, own.annotator): own for own in stored}
    check = _Check(run=run, items=run.by_id(), sample=frozenset(sample), stored=before)
    problems: list[str] = []
    labels: dict[tuple[str, str], Label] = {}
    line_of: dict[tuple[str, str], int] = {}
    n_there = n_empty = 0
    for line, row in rows:
        if not any(row.get(name, "").strip() for name in _all_fields(run)):
            n_empty += 1
            continue
        label, wrong = check.label(row, row.get("annotator", "").strip() or annotator)
        if label is not None:
            key = (label.item, label.annotator)
            first = line_of.setdefault(key, line)
            if first != line:
                wrong.append(f"{label.annotator} has labelled {label.item} in line {first} already")
            elif key in check.stored and dict(check.stored[key].values) == dict(label.values):
                n_there += 1
            elif key in check.stored:
                wrong.append(
                    f"{label.annotator} has labelled {label.item} otherwise before: {_told(check.stored[key])}"
                )
            else:
                labels[key] = label
        problems += [f"{path}, line {line}: {one}" for one in wrong]
    if problems:
        more = f"\nand {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        raise DataError("\n".join(problems[:SHOWN_PROBLEMS]) + more + "\nnothing of this file was taken")
    return Filled(labels=tuple(labels.values()), n_there=n_there, n_empty=n_empty)


def _told(label: Label) -> str:
    return ", ".join(f"{name} {value}" for name, value in label.values.items())


def _all_fields(run: LabelRun) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.name for asked in run.asked.values() for one in asked.fields))


def _needed(run: LabelRun, sample: Sequence[str]) -> tuple[str, ...]:
    chosen = set(sample)
    return fields_of(run, [item for item in run.items if item.id in chosen])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    run: LabelRun
    items: Mapping[str, Judgeable]
    sample: frozenset[str]
    stored: Mapping[tuple[str, str], Label]

    def label(self, row: Mapping[str, str], annotator: str) -> tuple[Label | None, list[str]]:
        """A row's label, and what is wrong with it."""
        name = row["item"].strip()
        item = self.items.get(name)
        problems: list[str] = []
        if not annotator:
            problems.append("names no annotator: fill in the column `annotator`, or say --annotator")
        else:
            try:
                annotator = checked_annotator(annotator)
            except RefusedError as error:
                problems.append(str(error))
        if item is None:
            problems.append(f"item {name!r} is no reply of this run")
        elif name not in self.sample:
            problems.append(f"item {name!r} is not in the sample; labels that were not drawn by chance correct nothing")
        if item is None:
            return None, problems
        asked: Asked = self.run.asked[item.kind]
        opinion, wrong = asked.opinion({one.name: row.get(one.name, "") for one in asked.fields})
        foreign = [
            field
            for field in _all_fields(self.run)
            if field not in {one.name for one in asked.fields} and row.get(field, "").strip()
        ]
        problems += [*wrong, *(f"{field} is not asked of {item.kind}: leave it empty" for field in foreign)]
        if problems:
            return None, problems
        return Label(item=name, annotator=annotator, values=asked.texts(opinion), source="csv", at=now()), []


def _rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The header, and each row with the line that it begins in; separated by what the header is separated by."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8: {error}; save it as CSV (UTF-8)") from error
    said = _SAID_SEPARATOR.match(text)
    first = text.split("\n", 1)[0]
    separator = said[1] if said else max((",", ";", "\t"), key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    if said:
        next(reader)
    try:
        header = [name.strip() for name in next(reader, [])]
        rows = list(_numbered(reader, header))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: is no valid CSV: {error}") from error
    if not header:
        raise DataError(f"{path}: is empty")
    return header, rows


def _numbered(reader: Iterator[list[str]], header: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    line = reader.line_num + 1  # type: ignore[attr-defined]  # of csv.reader
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield line, dict(zip(header, cells, strict=False))
        line = reader.line_num + 1  # type: ignore[attr-defined]
