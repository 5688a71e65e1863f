"""Rows of another layout -> canonical conversations, by a table that a task YAML holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.conversation_rows import ConversationRow, QuestionRow, TurnRow
from interbench_tasks.errors import DataError, near_miss

PARTS: Mapping[str, type[ConversationRow] | type[TurnRow] | type[QuestionRow]] = {
    "": ConversationRow,
    "turns": TurnRow,
    "questions": QuestionRow,
}
REQUIRED = (
    "turns",
    "questions",
    "turns.user_text",
    "questions.ability",
    "questions.question",
    "questions.answer",
)

Mapped = Mapping[str, Sequence[str]]
"""Canonical key (`id`, `turns`, `turns.user_text`, `questions.qid`, ...) -> names it may have in the data set."""


def canonical_keys() -> list[str]:
    """Every key that a mapping may name."""
    return [f"{part}.{name}".removeprefix(".") for part, model in PARTS.items() for name in model.model_fields]


def unknown_keys(mapping: Mapped) -> list[str]:
    """What is wrong with the keys of a mapping, each with its near miss."""
    known = canonical_keys()
    return [f"{key!r} is no key of a conversation{near_miss(key, known)}" for key in mapping if key not in known]


def canonical_from(raw: Mapping[str, Any], mapping: Mapped, where: str) -> dict[str, Any]:
    """A row in canonical form; keys that the mapping does not name keep their own name.

    Raises: DataError with what was looked for and the columns that there are, where the layout is an unknown one.
    """
    row = _renamed(raw, "", mapping, where)
    for part in ("turns", "questions"):
        cells = _rows_of(row[part])
        if cells is None:
            raise DataError(f"{where}: column {part!r} must hold a list of objects, got {row[part]!r:.200}")
        row[part] = [_renamed(cell, part, mapping, f"{where}, {part}[{index}]") for index, cell in enumerate(cells)]
    for index, question in enumerate(row["questions"]):
        question["ability"] = _code_of(question["ability"])
        question.setdefault("qid", f"q{index}")
    return row


def _rows_of(cell: object) -> list[Mapping[str, Any]] | None:
    """A list of objects; also from an object of lists, which is how older `datasets` give a list of objects."""
    if isinstance(cell, Mapping) and cell and all(isinstance(column, list) for column in cell.values()):
        n = {len(column) for column in cell.values()}
        return (
            [dict(zip(cell, values, strict=True)) for values in zip(*cell.values(), strict=True)]
            if len(n) == 1
            else None
        )
    if isinstance(cell, list | tuple) and all(isinstance(one, Mapping) for one in cell):
        return list(cell)
    return None


def _renamed(raw: Mapping[str, Any], part: str, mapping: Mapped, where: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in PARTS[part].model_fields:
        key = f"{part}.{name}".removeprefix(".")
        candidates = mapping.get(key, (name,))
        found = next((one for one in candidates if raw.get(one) is not None), None)
        if found is not None:
            row[name] = raw[found]
        elif key in REQUIRED:
            raise DataError(
                f"{where}: no column for '{key}'; looked for {', '.join(candidates)}\n"
                f"  it has: {', '.join(map(str, raw)) or 'nothing'}\n"
                f"  not the layout that the task knows: name the columns under metadata.interbench.mapping, "
                f"e.g. {key}: [its_name], in a YAML of your own"
            )
    return row


def _code_of(ability: object) -> object:
    """The code of an ability that is given by its name."""
    text = str(ability).strip()
    return next((code for code, name in ABILITIES.items() if text.casefold() in (code.casefold(), name)), ability)
