"""A row of a data set -> an `Episode`: prompt, pictures in order, options, target."""

from __future__ import annotations

import ast
import json
import string
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from interbench_tasks.choices_in_text import choices_in_text
from interbench_tasks.config import Columns, CommonOptions
from interbench_tasks.decoys import decoy_from
from interbench_tasks.errors import DataError, PictureError
from interbench_tasks.images import Picture, PictureSource, picture_from
from interbench_tasks.picture_grid import picture_grid
from interbench_tasks.pictures_in_text import numbered_texts, placed
from interbench_tasks.prompts import render
from interbench_tasks.records import Episode, Message
from interbench_tasks.rows import DataSet, Rows

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
        self._all_answers: tuple[str, ...] | None = None
        check_columns(data, options)
        check_ids(data, options)
        check_levels(data, options)

    def episode(self, doc_id: int, repeat: int) -> Episode:
        """The episode of one row.

        Raises: DataError (PictureError for a picture) naming file, row and column.
        """
        row = self._data.rows[doc_id]
        where = f"{self._data.source}, row {doc_id}"
        columns = self._columns
        question = self._text(row, columns.question, where)
        options = self._read_options(row, where)
        if not options and self._options.verifier == "choice":  # told here, before a reply is paid for
            named = columns.options if columns.options_in_text is None else columns.options_in_text
            raise DataError(f"{where}, column {named}: there are no options, and the verifier 'choice' needs them")
        target = self._target(row, options, where)
        content, question, options = self._content(row, question, options, where)
        if self._options.pictures.required and not any(isinstance(part, Picture) for part in content):
            named = ", ".join(picture_columns(columns))
            raise DataError(
                f"{where}, column {named}: there is no picture, and this task needs one (pictures.required)"
            )
        own_id = _optional(row, columns.id) or str(doc_id)
        return Episode(
            id=own_id,
            doc_id=doc_id,
            repeat=repeat,
            question=Message(role="user", content=content),
            system=self._options.system,
            target=target,
            options=options,
            raw_question=self._stem(question, where),
            category=_optional(row, columns.category),
            cluster=_optional(row, self._options.cluster),
            # an empty recorded answer is an unreadable one: asking the receiver instead would mix two models
            first_answer=None if columns.first_answer is None else self._text(row, columns.first_answer, where),
            decoy=decoy_from(own_id, target, options, () if options else self._answers()),
            levels=tuple(self._text(row, column, where) for column in columns.levels or ()),
            extra={name: str(row[name]) for name in columns.extra if row.get(name) is not None},
        )

    def identity(self, doc_id: int) -> tuple[str, str | None, str | None]:
        """Id, category and cluster of a row, also of one that cannot become an episode."""
        row = self._data.rows[doc_id]
        columns = self._columns
        own_id = _optional(row, columns.id) or str(doc_id)
        return own_id, _optional(row, columns.category), _optional(row, self._options.cluster)

    def _answers(self) -> Sequence[str]:
        """All answers of the data set that are one text; read once."""
        if self._all_answers is None:
            cells = column_of(self._data, self._columns.answer)
            self._all_answers = tuple(str(cell) for cell in cells if isinstance(cell, str | int | float))
        return self._all_answers

    def _shown(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """What a prompt template sees of the row: everything but the answers, and feedback that gives them away."""
        hidden = (self._columns.answer, self._columns.first_answer, *(self._columns.levels or ()))
        return {column: value for column, value in row.items() if column not in hidden}

    def _text(self, row: Mapping[str, Any], column: str, where: str) -> str:
        value = row.get(column)
        if value is None:
            raise DataError(f"{where}, column {column}: is empty")
        if isinstance(value, list | tuple | dict) or value != value:  # NaN is how an empty number comes out of CSV
            raise DataError(f"{where}, column {column}: must be one text or number, got {value!r}")
        return str(value)

    def _read_options(self, row: Mapping[str, Any], where: str) -> dict[str, str]:
        columns = self._columns
        if columns.options_in_text is None:
            cell = row.get(columns.options) if columns.options else None
            return options_from(cell, f"{where}, column {columns.options}")
        for column in named_columns(columns.options_in_text):
            found = choices_in_text(str(row.get(column) or ""), f"{where}, column {column}").options
            if found:
                return found
        return {}

    def _stem(self, question: str, where: str) -> str:
        """The question without its choices: feedback prompts list the options themselves."""
        if self._columns.options_in_text is None:
            return question
        return choices_in_text(question, f"{where}, column {self._columns.question}").stem

    def _target(self, row: Mapping[str, Any], options: Mapping[str, str], where: str) -> str:
        answer = self._text(row, self._columns.answer, where)
        return target_from(answer, options, self._options.answer_is, f"{where}, column {self._columns.answer}")

    def _content(
        self, row: Mapping[str, Any], question: str, options: dict[str, str], where: str
    ) -> tuple[tuple[str | Picture, ...], str, dict[str, str]]:
        """The message's texts and pictures in order, and question and options as feedback prompts quote them."""
        style = self._options.pictures
        if not style.tokens:
            found = tuple(self._pictures(row, where))
            if style.multi_image == "first":
                found = found[:1]
            elif style.multi_image == "grid" and len(found) > 1:
                labels = [f"image {number}" for number in range(1, len(found) + 1)]
                found = (picture_grid(found, labels, max_side=style.max_side, where=where),)
            prompt = render(self._prompt, "question", question=question, options=options, row=self._shown(row))
            return (*found, prompt), question, options
        texts = numbered_texts(question, options)
        named = tuple(self._named_picture(row, number, where) for number in texts.numbers)
        # A template that quotes the row must not bring back the data set's own numbers.
        row = {**row, self._columns.question: texts.question}
        if self._columns.options is not None:
            row[self._columns.options] = list(texts.options.values())
        prompt = render(self._prompt, "question", question=texts.question, options=texts.options, row=self._shown(row))
        grid = partial(picture_grid, max_side=style.max_side, where=where)
        try:
            return placed(prompt, named, style.multi_image, grid=grid), texts.question, texts.options
        except PictureError:
            raise
        except DataError as error:
            raise DataError(f"{where}: {error}") from error

    def _pictures(self, row: Mapping[str, Any], where: str) -> Iterator[Picture]:
        for column in picture_columns(self._columns):
            cell = row.get(column)
            for source in cell if isinstance(cell, list | tuple) else [cell]:
                if not _is_empty(source):  # text-only rows and unused image_2..image_7 columns
                    yield self._picture(source, f"{where}, column {column}")

    def _named_picture(self, row: Mapping[str, Any], number: int, where: str) -> Picture:
        """The picture of a token. Raises: DataError where no column, or an empty one, belongs to it."""
        columns = picture_columns(self._columns)
        token = f"question or options have <image {number}>"
        if not 1 <= number <= len(columns):
            raise DataError(f"{where}: {token}, but columns.pictures names {len(columns)}: {', '.join(columns)}")
        column = columns[number - 1]
        if _is_empty(row.get(column)):
            raise DataError(f"{where}, column {column}: is empty, but {token}")
        return self._picture(row[column], f"{where}, column {column}")

    def _picture(self, source: Any, where: str) -> Picture:  # noqa: ANN401 - a cell of a data set
        return picture_of_cell(source, folder=self._folder, max_side=self._options.pictures.max_side, where=where)


def picture_of_cell(cell: Any, *, folder: Path | None, max_side: int | None, where: str) -> Picture:  # noqa: ANN401 - a data set's
    """The picture in a cell: a relative path starts from `folder`; cells of `datasets` keep their bytes.

    Raises: PictureError naming `where`.
    """
    if isinstance(cell, Mapping) and cell.get("bytes") is None and cell.get("path"):
        cell = str(cell["path"])
    source: PictureSource = cell  # picture_from refuses what it cannot read
    if isinstance(cell, str) and folder is not None and not cell.startswith(("http://", "https://")):
        source = folder / cell
    return picture_from(source, max_side=max_side, where=where)


def _is_empty(cell: object) -> bool:
    """Whether a cell holds no picture: nothing, an empty text, or what `datasets` makes of one."""
    if isinstance(cell, Mapping):
        return set(cell) <= {"bytes", "path"} and cell.get("bytes") is None and not cell.get("path")
    return cell is None or cell == ""


def named_columns(named: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns that one key of `columns` names, in the order of the YAML."""
    if named is None:
        return ()
    return (named,) if isinstance(named, str) else tuple(named)


def picture_columns(columns: Columns) -> tuple[str, ...]:
    """The columns that hold pictures, in the order to show."""
    return named_columns(columns.pictures)


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
    must += [("columns.options_in_text", column) for column in named_columns(columns.options_in_text)]
    must += [("columns.levels", column) for column in columns.levels or ()]
    must += [("columns.extra", column) for column in columns.extra]
    if options.cluster is not None:
        must.append(("cluster", options.cluster))
    missing = [f"{key}: {column!r}" for key, column in must if column not in there]
    if missing:
        raise DataError(
            f"{data.source}: has no column for {'; '.join(missing)}\n  it has: {', '.join(there)}\n"
            "  name your columns under metadata.interbench.columns"
        )


def check_ids(data: DataSet, options: CommonOptions) -> None:
    """No id stands in two rows: results of the one would be taken for those of the other.

    Raises: DataError naming the column, an id and its rows; rows without an id are known by their number.
    """
    column = options.columns.id
    if column is None or column not in data.rows.features:
        return
    rows: dict[str, list[int]] = {}
    for doc_id, value in enumerate(column_of(data, column)):
        if value is not None and value != "":
            rows.setdefault(str(value), []).append(doc_id)
    doubled = {value: found for value, found in rows.items() if len(found) > 1}
    if doubled:
        shown = "; ".join(
            f"{value!r} in rows {', '.join(map(str, found))}" for value, found in islice(doubled.items(), 5)
        )
        more = f"; and {len(doubled) - 5} more ids" if len(doubled) > 5 else ""
        raise DataError(
            f"{data.source}, column {column}: ids must be unique, but {shown}{more}\n"
            "  name another column under metadata.interbench.columns.id, or `id: null` to use row numbers"
        )


def check_levels(data: DataSet, options: CommonOptions) -> None:
    """Every row has a text for each level: one that turns out missing later would cost the answers before it.

    Raises: DataError naming the columns and their first rows without a text.
    """
    empty: list[str] = []
    for column in options.columns.levels or ():
        cells = enumerate(column_of(data, column))
        rows = [number for number, cell in cells if not isinstance(cell, str) or not cell.strip()]
        if rows:
            more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
            empty.append(f"column {column}, row {', '.join(map(str, rows[:5]))}{more}")
    if empty:
        raise DataError(
            f"{data.source}: feedback of a level must be a text, but there is none in {'; '.join(empty)}\n"
            "  write it, or leave these rows out; columns: metadata.interbench.columns.levels"
        )


def column_of(data: DataSet, column: str) -> Iterator[Any]:
    """A column's values, without touching the others: pictures would be read for nothing."""
    if isinstance(data.rows, Rows):
        return (row.get(column) for row in data.rows)
    return iter(data.rows[column])


def _optional(row: Mapping[str, Any], column: str | None) -> str | None:
    value = row.get(column) if column is not None else None
    return None if value is None or value == "" else str(value)


def options_from(cell: object, where: str) -> dict[str, str]:
    """Letter -> text, from a list, a mapping, or a string that holds a Python or JSON list (MMMU-Pro).

    Raises: DataError for anything else, for more than 26 options, an empty one, and labels that are no letter or clash.

    >>> options_from("['red', 'blue']", "row 1")
    {'A': 'red', 'B': 'blue'}
    """
    if cell is None or cell == "" or (isinstance(cell, Sequence) and len(cell) == 0):
        return {}
    if isinstance(cell, str):
        cell = _list_in_text(cell, where)
    if isinstance(cell, Mapping):
        # None is how a column of mappings with other letters in other rows comes out of parquet
        given = [(str(letter).strip().upper(), text) for letter, text in cell.items() if text is not None]
        options = {letter: str(text) for letter, text in given}
        if len(options) < len(given) or not all(len(letter) == 1 and letter in LETTERS for letter in options):
            raise DataError(
                f"{where}: labels of options must be different single letters, got {', '.join(map(str, cell))}"
            )
    elif isinstance(cell, list | tuple):
        if len(cell) > len(LETTERS):
            raise DataError(f"{where}: {len(cell)} options, at most {len(LETTERS)} can be lettered")
        nested = [text for text in cell if text is None or isinstance(text, list | tuple | dict)]
        if nested:
            raise DataError(f"{where}: an option must be a text, got {nested[0]!r}")
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

    With `as_is`, an answer that is no option stays as it stands, for the verifier to decide.

    Raises: DataError where the answer is no option (but with `as_is`), fits two options, or (`auto`, `as_is`) is one
        option's letter and another option's text.

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
    if not found and answer_is == "as_is":
        return answer
    if not found:
        raise DataError(f"{where}: answer {answer!r} is none of the options ({shown})")
    raise DataError(
        f"{where}: answer {answer!r} fits several options ({shown}); say metadata.interbench.answer_is: letter or text"
    )
