"""Conversations of a data set -> episodes: the user turns to replay, and the questions after them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from interbench_tasks.config import CommonOptions, TaskOptions
from interbench_tasks.conversation_mapping import canonical_from, unknown_keys
from interbench_tasks.conversation_rows import TRUE_OR_FALSE, ConversationRow, QuestionRow, TurnRow, row_from
from interbench_tasks.errors import ConfigError, DataError, Problem
from interbench_tasks.flawed_reader import FlawedItemReader
from interbench_tasks.images import Picture
from interbench_tasks.items import ItemReader, options_from, picture_of_cell, target_from
from interbench_tasks.prompts import render
from interbench_tasks.records import Episode, Message, Question, ScriptedTurn
from interbench_tasks.rows import DataSet, Rows

QUESTION_PROMPT = """{{ question }}
{%- if ability == "IM" and not options %}

Where you refer to a picture, give its number: the pictures of this conversation are numbered from 1 in the order in \
which they appeared.
{%- endif %}
{%- if options %}
{%- for letter, text in options.items() %}
{{ letter }}. {{ text }}
{%- endfor %}

End with a line of the form "Answer: X", where X is the letter of your choice.
{%- endif %}"""
"""OURS: the paper's prompts are not printed. A YAML replaces it with `prompts.question`."""
QUESTION_VARIABLES = ("question", "options", "ability", "format", "n_pictures")
SHOWN_PROBLEMS = 20


class Reader(Protocol):
    """Makes episodes of the rows of one data set."""

    def episode(self, doc_id: int, repeat: int) -> Episode:
        """The episode of one row. Raises: DataError naming file and row."""
        ...

    def identity(self, doc_id: int) -> tuple[str, str | None, str | None]:
        """Id, category and cluster of a row, also of one that cannot become an episode."""
        ...


def reader_from(data: DataSet, options: TaskOptions) -> Reader:
    """What reads the data set of a task, as its protocol says.

    Raises: DataError for a data set that is no such data set.
    """
    if options.reads == "flawed_items":
        return FlawedItemReader(data, options.common, options.protocol_options)
    if options.reads == "conversations":
        return ConversationReader(data, options.common, options.protocol_options)
    return ItemReader(data, options.common)


class ConversationReader:
    """Makes episodes of conversations. A file's rows are all checked at once, before anything is played.

    Args: options = the protocol's; their `history` says whether replies must be recorded, their `mapping` which names
        the data set's columns have.
    """

    def __init__(self, data: DataSet, common: CommonOptions, options: BaseModel) -> None:
        self._data = data
        self._common = common
        self._mapping: Mapping[str, tuple[str, ...]] = getattr(options, "mapping", {})
        self._recorded = getattr(options, "history", "live") == "recorded"
        self._prompt = common.prompts.get("question", QUESTION_PROMPT)
        self._folder = Path(common.pictures.root).expanduser() if common.pictures.root else data.folder
        wrong = unknown_keys(self._mapping)
        if wrong:
            raise ConfigError(
                data.source, [Problem(key="metadata.interbench.mapping", message=f": {one}") for one in wrong]
            )
        self._check()

    def episode(self, doc_id: int, repeat: int) -> Episode:
        """The episode of one conversation.

        Raises: DataError (PictureError for a picture) naming file, line, id and key.
        """
        row = self._row(doc_id)
        where = self._where(doc_id, row.id)
        script = tuple(self._turn(turn, f"{where}, turns[{number}]") for number, turn in enumerate(row.turns))
        n_pictures = sum(len(turn.user.pictures) for turn in script)
        questions = tuple(
            self._question(question, n_pictures, f"{where}, questions[{number}]")
            for number, question in enumerate(row.questions)
        )
        return Episode(
            id=row.id,
            doc_id=doc_id,
            repeat=repeat,
            question=script[0].user,
            system=self._common.system,
            target="",
            raw_question=script[0].user.text,
            category=row.topic,
            cluster=row.cluster,
            extra=row.extra,
            script=script,
            questions=questions,
        )

    def identity(self, doc_id: int) -> tuple[str, str | None, str | None]:
        """Id, topic and cluster of a row, also of one that cannot become an episode."""
        try:
            row = self._row(doc_id)
        except DataError:
            return str(self._data.rows[doc_id].get("id") or doc_id), None, None
        return row.id, row.topic, row.cluster

    # --- its parts ----------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """All rows of a file; of a data set from the hub, whose pictures are in its rows, the first one."""
        rows = self._data.rows
        problems: list[str] = []
        ids: dict[str, list[int]] = {}
        for doc_id in range(len(rows) if isinstance(rows, Rows) else min(1, len(rows))):
            try:
                ids.setdefault(self._row(doc_id).id, []).append(doc_id)
            except DataError as error:
                problems.append(str(error))
        for one, found in ids.items():
            if len(found) > 1:
                problems.append(f"{self._where(found[1], one)}: key 'id' is also that of {self._place(found[0])}")
        if problems:
            more = f"\nand {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
            raise DataError("\n".join(problems[:SHOWN_PROBLEMS]) + more)

    def _row(self, doc_id: int) -> ConversationRow:
        raw: Mapping[str, Any] = self._data.rows[doc_id]
        where = self._where(doc_id, raw.get("id"))
        if self._mapping:  # a stranger's rows may have no id
            raw = {"id": str(doc_id), **canonical_from(raw, self._mapping, where)}
        found = row_from(raw, recorded=self._recorded)
        if isinstance(found, list):
            raise DataError("\n".join(f"{where}: {problem}" for problem in found))
        return found

    def _place(self, doc_id: int) -> str:
        lines = getattr(self._data.rows, "lines", ())
        return f"line {lines[doc_id]}" if lines else f"row {doc_id}"

    def _where(self, doc_id: int, own_id: object) -> str:
        return f"{self._data.source}, {self._place(doc_id)}, id {own_id!r}"

    def _turn(self, turn: TurnRow, where: str) -> ScriptedTurn:
        pictures = [self._picture(cell, f"{where}.images[{number}]") for number, cell in enumerate(turn.images)]
        text = (turn.user_text,) if turn.user_text else ()
        return ScriptedTurn(
            user=Message(role="user", content=(*pictures, *text)), reply=turn.ref_response, extra=turn.extra
        )

    def _picture(self, cell: Any, where: str) -> Picture:  # noqa: ANN401 - a cell of a data set
        return picture_of_cell(cell, folder=self._folder, max_side=self._common.pictures.max_side, where=where)

    def _question(self, row: QuestionRow, n_pictures: int, where: str) -> Question:
        options: Mapping[str, str] = {}
        target = row.answer
        if row.format == "tf":
            options = TRUE_OR_FALSE
            target = "A" if row.answer.strip().lower() == "true" else "B"
        elif row.format == "mc":
            options = options_from(row.options, f"{where}.options")
            answer_is: Literal["auto", "letter", "text"] = (
                "auto" if self._common.answer_is == "as_is" else self._common.answer_is
            )
            target = target_from(row.answer, options, answer_is, f"{where}.answer")
        prompt = render(
            self._prompt,
            "question",
            question=row.question,
            options=options,
            ability=row.ability,
            format=row.format,
            n_pictures=n_pictures,
        )
        return Question(
            id=row.qid,
            ability=row.ability,
            format=row.format,
            message=Message(role="user", content=(prompt,)),
            text=row.question,
            target=target,
            options=options,
            items=row.items,
            pictures=row.image_ids,
            should_refuse=row.refuses,
            evidence=row.evidence_turns,
            extra=row.extra,
        )
