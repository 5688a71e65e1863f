"""One conversation of a data set in its canonical form, checked; every problem of a row at once."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from interbench_tasks.abilities import ABILITIES, REFUSAL
from interbench_tasks.errors import Problem, near_miss
from interbench_tasks.records import QuestionFormat

Row = TypeVar("Row", bound=BaseModel)
ARTICLES = frozenset(("a", "an", "the"))
"""Words that name nothing: the comparison of items leaves them out."""
TRUE_OR_FALSE: Mapping[str, str] = {"A": "True", "B": "False"}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False, coerce_numbers_to_str=True)


class TurnRow(_Strict):
    """One user turn, with the reply that was recorded."""

    user_text: str = ""
    images: tuple[Any, ...] = ()
    """Paths relative to the file, or what `datasets` has of a picture."""
    ref_response: str | None = None
    """The recorded reply; None where there is none."""
    extra: dict[str, str] = {}


class QuestionRow(_Strict):
    """One question about the conversation."""

    qid: Annotated[str, Field(min_length=1)]
    ability: str
    format: QuestionFormat = "open"
    question: Annotated[str, Field(min_length=1)]
    options: tuple[str, ...] | dict[str, str] | None = None
    """Of `mc` only."""
    answer: str
    """An option's letter or text (`mc`), true or false (`tf`), the reference answer (`open`)."""
    items: tuple[str, ...] = ()
    """What a complete answer names."""
    image_ids: tuple[int, ...] = ()
    """The pictures that a right answer names: 1-based, by their order in the conversation."""
    should_refuse: bool | None = None
    """None: True for the ability AR, else False."""
    evidence_turns: tuple[int, ...] = ()
    """0-based numbers of the turns that hold the answer."""
    extra: dict[str, str] = {}

    @field_validator("answer", mode="before")
    @classmethod
    def _truth_as_text(cls, answer: object) -> object:
        return str(answer).lower() if isinstance(answer, bool) else answer

    @property
    def refuses(self) -> bool:
        """Whether nothing in the conversation holds the answer."""
        return self.ability == REFUSAL if self.should_refuse is None else self.should_refuse


class ConversationRow(_Strict):
    """One line of a file of conversations."""

    id: Annotated[str, Field(min_length=1)]
    topic: str | None = None
    cluster: str | None = None
    """Conversations with equal values are not independent, e.g. twins; None: it stands alone."""
    turns: Annotated[tuple[TurnRow, ...], Field(min_length=1)]
    questions: Annotated[tuple[QuestionRow, ...], Field(min_length=1)]
    extra: dict[str, str] = {}


def row_from(raw: Mapping[str, Any], *, recorded: bool) -> ConversationRow | list[Problem]:
    """A conversation in canonical form, or everything that is wrong with it.

    Args: recorded = whether every turn must have its reply.
    """
    try:
        row = ConversationRow.model_validate({key: value for key, value in raw.items() if value is not None})
    except ValidationError as error:
        details = error.errors()
        details = [detail for detail in details if not _follows(detail, details)]
        wrong = [_problem_from(detail, ConversationRow) for detail in details]
        return [*wrong, *_further_problems(raw, details, recorded)]
    problems = [*_turn_problems(row, recorded), *_question_problems(row)]
    return problems or row


_ANY_ABILITY = next(iter(ABILITIES))
STAND_INS: Mapping[str, Any] = {
    "id": "?",
    "turns": ({"user_text": "?", "ref_response": "?"},),
    "questions": ({"qid": "?", "ability": _ANY_ABILITY, "question": "?", "answer": "?"},),
    "ability": _ANY_ABILITY,
    "question": "?",
    "answer": "?",
    "user_text": "?",
    "ref_response": "?",
}
"""Key -> a value that nothing is wrong with, in place of one that is."""
FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "turns": ("turns", ".evidence_turns", ".image_ids"),
    "images": (".image_ids",),
    "format": (".options", ".answer"),
}
"""Key -> what cannot be said of other keys while it is wrong."""


def _further_problems(
    raw: Mapping[str, Any], details: Sequence[Mapping[str, Any]], recorded: bool
) -> Iterator[Problem]:
    """What else is wrong with a row some of whose keys are: a user wants to hear of all at once."""
    wrong = {_place_of(detail["loc"]) for detail in details}
    repaired = _repaired({key: value for key, value in raw.items() if value is not None}, wrong)
    try:
        row = ConversationRow.model_validate(repaired)
    except ValidationError:
        return
    known = {_path(place) for place in wrong}
    cannot = {follows for place in wrong for follows in FOLLOWS.get(str(place[-1]), ())}
    for problem in (*_turn_problems(row, recorded), *_question_problems(row)):
        key = problem.key
        within = any(key == path or key.startswith((f"{path}.", f"{path}[")) for path in known)
        around = any(path.startswith(f"{key}.") for path in known)
        if not within and not around and not any(part in key for part in cannot):
            yield problem


def _place_of(loc: Sequence[object]) -> tuple[object, ...]:
    """The key of the row, or of one of its turns or questions, in which something is wrong."""
    inner = loc[0] in ("turns", "questions") and len(loc) > 1 and isinstance(loc[1], int)
    return tuple(loc[:3]) if inner else tuple(loc[:1])


def _path(place: Sequence[object]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")


def _repaired(raw: Mapping[str, Any], wrong: Iterable[Sequence[object]]) -> dict[str, Any]:
    """The row with stand-ins for what is wrong, and without it where it can be missing."""
    row = dict(raw)
    for place in sorted(wrong, key=len):
        if len(place) == 1:
            _replace(row, str(place[0]))
            continue
        part, number = str(place[0]), place[1]
        assert isinstance(number, int)
        entries = row[part] = list(row[part])
        stand_in = dict(STAND_INS[part][0])
        entry = dict(entries[number]) if len(place) == 3 and isinstance(entries[number], Mapping) else stand_in
        if len(place) == 3:
            _replace(entry, str(place[2]))
        entries[number] = entry
        if part == "questions" and entry.get("qid", "?") == "?":
            entry["qid"] = f"? {number}"  # no other question has it
    return row


def _replace(values: dict[str, Any], key: str) -> None:
    if key in STAND_INS or key == "qid":
        values[key] = STAND_INS.get(key, "?")
    else:
        values.pop(key, None)


def _follows(detail: Mapping[str, Any], details: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a list is too short only because something is wrong with each of its entries, as others say."""
    n = len(detail["loc"])
    inner = [other for other in details if len(other["loc"]) > n and other["loc"][:n] == detail["loc"]]
    return detail["type"] == "too_short" and bool(inner)


def _problem_from(detail: Mapping[str, Any], model: type[BaseModel]) -> Problem:
    steps = [step for step in detail["loc"] if not _is_union_branch(step)]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    if detail["type"] == "extra_forbidden":
        known = sorted(_fields_at(steps))
        return Problem(key=path, message=f" is no known key{near_miss(steps[-1], known)}", allowed=tuple(known))
    if detail["type"] == "missing":
        allowed = tuple(ABILITIES) if steps[-1] == "ability" else ()
        return Problem(key=path, message=" is missing", allowed=allowed)
    if detail["type"] == "too_short" and steps[-1] in ("turns", "questions"):
        return Problem(key=path, message=f" holds none: a conversation needs at least one of its {steps[-1]}")
    if detail["type"] == "tuple_type":
        return Problem(key=path, message=f" = {detail['input']!r:.120}: must be a list")
    return Problem(key=path, message=f" = {detail['input']!r:.120}: {detail['msg']}")


def _is_union_branch(step: object) -> bool:
    return isinstance(step, str) and (step in ("str", "bool", "constrained-str") or "[" in step)


def _fields_at(steps: Sequence[object]) -> Iterator[str]:
    inner: Mapping[str, type[BaseModel]] = {"turns": TurnRow, "questions": QuestionRow} if len(steps) > 1 else {}
    yield from inner.get(str(steps[0]), ConversationRow).model_fields


def _turn_problems(row: ConversationRow, recorded: bool) -> Iterator[Problem]:
    for number, turn in enumerate(row.turns):
        if not turn.user_text.strip() and not turn.images:
            yield Problem(key=f"turns[{number}]", message=" has neither text nor picture")
        if recorded and not (turn.ref_response or "").strip():
            message = " is missing: `history: recorded` replays the recorded replies (or use `history: live`)"
            yield Problem(key=f"turns[{number}].ref_response", message=message)


def _question_problems(row: ConversationRow) -> Iterator[Problem]:
    n_turns, n_pictures = len(row.turns), sum(len(turn.images) for turn in row.turns)
    ids = [question.qid for question in row.questions]
    for number, question in enumerate(row.questions):
        key = f"questions[{number}]"
        if ids.index(question.qid) < number:
            yield Problem(key=f"{key}.qid", message=f" = {question.qid!r} is there twice")
        if question.ability not in ABILITIES:
            hint = near_miss(question.ability, ABILITIES)
            yield Problem(
                key=f"{key}.ability", message=f" = {question.ability!r} is unknown{hint}", allowed=tuple(ABILITIES)
            )
        for turn in question.evidence_turns:
            if not 0 <= turn < n_turns:
                message = f" = {turn}: the conversation has the turns 0 to {n_turns - 1}"
                yield Problem(key=f"{key}.evidence_turns", message=message)
        for picture in question.image_ids:
            if not 1 <= picture <= n_pictures:
                there = f"the pictures 1 to {n_pictures}" if n_pictures else "no picture"
                yield Problem(key=f"{key}.image_ids", message=f" = {picture}: the conversation has {there}")
        yield from _answer_problems(question, key)


def _answer_problems(question: QuestionRow, key: str) -> Iterator[Problem]:
    yield from _option_problems(question, key)
    if question.format == "mc" and not question.options:
        yield Problem(key=f"{key}.options", message=" is missing: format mc needs them")
    if question.format != "mc" and question.options:
        yield Problem(key=f"{key}.options", message=f" are there, but the format is {question.format}, not mc")
    if not question.question.strip():
        yield Problem(key=f"{key}.question", message=" is empty")
    for place, item in enumerate(question.items):
        if not set(re.findall(r"[^\W_]+", item.casefold())) - ARTICLES:
            message = f" = {item!r}: has no word or number that a reply could name"
            yield Problem(key=f"{key}.items[{place}]", message=message)
    truth = question.answer.strip().lower()
    if question.format == "tf" and truth not in ("true", "false"):
        yield Problem(key=f"{key}.answer", message=f" = {question.answer!r}", allowed=("true", "false"))
    if not truth:
        yield Problem(key=f"{key}.answer", message=" is empty")


def _option_problems(question: QuestionRow, key: str) -> Iterator[Problem]:
    """Options with one text: nobody could say which of them a reply means."""
    options = question.options or ()
    texts = list(options.values()) if isinstance(options, dict) else list(options)
    names = list(options) if isinstance(options, dict) else list(string.ascii_uppercase)
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        earlier = first.setdefault(" ".join(text.split()), place)
        if earlier != place and place < len(names):
            told = f" = {text!r} stands for {names[earlier]} and {names[place]}: options need different texts"
            yield Problem(key=f"{key}.options", message=told)
