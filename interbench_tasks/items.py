"""A row of a data set -> an `Episode`: prompt, pictures in order, options, target."""

from __future__ import annotations

import ast
import json
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interbench_tasks.config import Columns, CommonOptions
from interbench_tasks.errors import DataError
from interbench_tasks.images import Picture, PictureSource, picture_from
from interbench_tasks.prompts import render
from interbench_tasks.records import Episode, Message
from interbench_tasks.rows import DataSet

LETTERS = string.ascii_uppercase
QUESTION_PROMPT = """{{ question }}
{%- if options %}
{%- for letter, text in options.items() %}
{{ letter }}. {{ text }}
{%- endfor %}

Think it through, then end with a line of the form "Answer: X", where X is the letter of your choice.
{%- else %}

Think it through, then end with a line of the form "Answer: X", where X is your answer.
{%- endif %}"""
"""OURS: the paper does not print its prompt. A YAML replaces it with `prompts.question`."""


class ItemReader:
    """Makes episodes of the rows of one data set."""

    def __init__(self, data: DataSet, options: CommonOptions) -> None:
        self._data = data
        self._options = options
        self._columns = options.columns
        self._prompt = options.prompts.get("question", QUESTION_PROMPT)
        self._folder = Path(options.pictures.root).expanduser() if options.pictures.root else data.folder
        check_columns(data, options)

    def episode(self, doc_id: int, repeat: int) -> Episode:
        """The episode of one row.

        Raises: DataError (PictureError for a picture) naming file, row and column.
        """
        row = self._data.rows[doc_id]
        where = f"{self._data.source}, row {doc_id}"
        columns = self._columns
        question = self._text(row, columns.question, where)
        options = options_from(
            row.get(columns.options) if columns.options else None, f"{where}, column {columns.options}"
        )
        answer = self._text(row, columns.answer, where)
        pictures = tuple(self._pictures(row, where))
        prompt = render(self._prompt, "question", question=question, options=options, row=row)
        return Episode(
            id=_optional(row, columns.id) or str(doc_id),
            doc_id=doc_id,
            repeat=repeat,
            question=Message(role="user", content=(*pictures, prompt)),
            system=self._options.system,
            target=target_from(answer, options, self._options.answer_is, f"{where}, column {columns.answer}"),
            options=options,
            raw_question=question,
            category=_optional(row, columns.category),
            cluster=_optional(row, self._options.cluster),
            first_answer=_optional(row, columns.first_answer),
            extra={name: str(row[name]) for name in columns.extra if row[name] is not None},
        )

    def _text(self, row: Mapping[str, Any], column: str, where: str) -> str:
        value = row.get(column)
        if value is None:
            raise DataError(f"{where}, column {column}: is empty")
        return str(value)

    def _pictures(self, row: Mapping[str, Any], where: str) -> Iterator[Picture]:
        for column in picture_columns(self._columns):
            cell = row.get(column)
            for source in cell if isinstance(cell, list | tuple) else [cell]:
                if source is None or source == "":
                    continue  # a row without this picture: text-only rows and unused image_2..image_7 columns
                yield picture_from(
                    self._resolved(source), max_side=self._options.pictures.max_side, where=f"{where}, column {column}"
                )

    def _resolved(self, source: Any) -> PictureSource:  # noqa: ANN401 - a cell of a data set
        """A relative path starts from the data file's folder; `datasets` cells keep their bytes."""
        if isinstance(source, Mapping) and source.get("bytes") is None and source.get("path"):
            source = str(source["path"])
        if isinstance(source, str) and self._folder is not None and not source.startswith(("http://", "https://")):
            return self._folder / source
        found: PictureSource = source  # picture_from refuses what it cannot read
        return found


def picture_columns(columns: Columns) -> tuple[str, ...]:
    """The columns that hold pictures, in the order to show."""
    if columns.pictures is None:
        return ()
    return (columns.pictures,) if isinstance(columns.pictures, str) else tuple(columns.pictures)


REQUIRED = ("question", "answer")


def check_columns(data: DataSet, options: CommonOptions) -> None:
    """Every column that the YAML names exists; a default name may be absent unless it is required.

    Raises: DataError naming all missing columns and what there is.
    """
    columns = options.columns
    there = list(data.rows.features)
    named = {
        name: getattr(columns, name) for name in ("id", "question", "options", "answer", "category", "first_answer")
    }
    must = [
        (f"columns.{name}", column)
        for name, column in named.items()
        if column is not None and (name in REQUIRED or name in columns.model_fields_set)
    ]
    if "pictures" in columns.model_fields_set:
        must += [("columns.pictures", column) for column in picture_columns(columns)]
    must += [("columns.extra", column) for column in columns.extra]
    if options.cluster is not None:
        must.append(("cluster", options.cluster))
    missing = [f"{key}: {column!r}" for key, column in must if column not in there]
    if missing:
        raise DataError(
            f"{data.source}: has no column for {'; '.join(missing)}\n  it has: {', '.join(there)}\n"
            "  name your columns under metadata.interbench.columns"
        )


def _optional(row: Mapping[str, Any], column: str | None) -> str | None:
    value = row.get(column) if column is not None else None
    return None if value is None or value == "" else str(value)


def options_from(cell: object, where: str) -> dict[str, str]:
    """Letter -> text, from a list, a mapping, or a string that holds a Python or JSON list (MMMU-Pro).

    Raises: DataError for anything else, for more than 26 options and for two options with the same text.

    >>> options_from("['red', 'blue']", "row 1")
    {'A': 'red', 'B': 'blue'}
    """
    if cell is None or cell == "" or (isinstance(cell, Sequence) and len(cell) == 0):
        return {}
    if isinstance(cell, str):
        cell = _list_in_text(cell, where)
    if isinstance(cell, Mapping):
        options = {str(letter).strip().upper(): str(text) for letter, text in cell.items() if text is not None}
    elif isinstance(cell, list | tuple):
        if len(cell) > len(LETTERS):
            raise DataError(f"{where}: {len(cell)} options, at most {len(LETTERS)} can be lettered")
        options = {LETTERS[index]: str(text) for index, text in enumerate(cell)}
    else:
        raise DataError(f"{where}: options must be a list or a mapping of letter to text, got {cell!r}")
    return options


def _list_in_text(text: str, where: str) -> object:
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, list | tuple | dict):
            return found
    raise DataError(f"{where}: options are a text that holds no list: {text[:80]!r}")


def target_from(answer: str, options: Mapping[str, str], answer_is: str, where: str) -> str:
    """The target: an option's letter where there are options, else the answer's text.

    Raises: DataError where the answer is no option, fits two options, or (`auto`) is one option's letter and another
        option's text.

    >>> target_from("blue", {"A": "red", "B": "blue"}, "auto", "row 1")
    'B'
    """
    if not options:
        return answer
    letter = answer.strip().strip("().").upper()
    as_letter = [letter] if letter in options and answer_is != "text" else []
    as_text = [key for key, text in options.items() if text.strip() == answer.strip()] if answer_is != "letter" else []
    found = {*as_letter, *as_text}
    if len(found) == 1:
        return found.pop()
    shown = ", ".join(f"{key}: {text}" for key, text in options.items())
    if not found:
        raise DataError(f"{where}: answer {answer!r} is none of the options ({shown})")
    raise DataError(
        f"{where}: answer {answer!r} fits several options ({shown}); say metadata.interbench.answer_is: letter or text"
    )
