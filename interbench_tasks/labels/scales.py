"""What people are asked about a reply, by the scales of the judges' rubric, and how several labels become one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from interbench_tasks.critique_votes import SPLIT
from interbench_tasks.errors import RunFolderError, near_miss
from interbench_tasks.judging_rubrics import Rubric, Scale

Opinion = Mapping[str, float | str]
"""What somebody, a judge, the panel or a person, says of a reply: field -> number (1 and 0 for yes and no) or word.
Where nothing was detected, `detected` is all there is. A field that is missing is not known."""
DETECTED = "detected"
FLAWED = "flawed"
YES, NO = "yes", "no"
_YES = (YES, "y", "true", "1")
_NO = (NO, "n", "false", "0")
_WHOLE = re.compile(r"[0-9]+[.,]0+")
"""A whole number, as programs write a column that has empty cells."""
_TITLES = {
    DETECTED: "Does the reply say that something is wrong with the input?",
    "diag": "How well does it name the cause?",
    "strategy": "What does it do about the problem?",
    "strategy_score": "How explicit and useful is that?",
    "score": "Score",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelField:
    """One value that a person gives."""

    name: str
    """As in the rubric, e.g. `diag`; `score` where the rubric has a single one."""
    title: str
    values: tuple[str, ...]
    """All that can be given; where they have an order the lowest first."""
    ordinal: bool
    """Whether they are numbers whose order means something."""
    apart: float = 1.0
    """Two labels that differ by so much need a third; ones that differ by less are averaged. Of words: any difference.

    Ours: on a scale from 0 to 5 two points, because its bands hold two scores each (3-4); on one from 0 to 2 one."""
    needs_detection: bool = False
    """Whether it is given only where something was detected."""
    meaning: str = ""
    help: Mapping[str, str] | None = None
    """Value, or band of values such as `3-4` -> what deserves it."""

    def from_text(self, text: str) -> float | str | None:
        """A value as a person, or their spreadsheet (`2.0`), wrote it; None where it is not on the scale."""
        said = text.strip().casefold()
        if self.name == DETECTED:
            return 1.0 if said in _YES else 0.0 if said in _NO else None
        if self.ordinal and _WHOLE.fullmatch(said):
            said = said.split(".")[0].split(",")[0]
        if said not in self.values:
            return None
        return float(said) if self.ordinal else said

    def to_text(self, value: float | str) -> str:
        """A value as it is written."""
        if self.name == DETECTED:
            return YES if value else NO
        return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about one kind of reply."""

    kind: str
    """`flawed`, or an ability."""
    task: str
    """What the reply is looked at for."""
    fields: tuple[LabelField, ...]

    @property
    def detects(self) -> bool:
        """Whether the other fields are asked only where something was detected."""
        return self.fields[0].name == DETECTED

    def guide(self) -> str:
        """The scales in words, a line each."""
        lines = [self.task]
        for one in self.fields:
            lines.append(f"{one.name}: {one.meaning or one.title} ({', '.join(one.values)})")
            lines += [f"  {value}: {text}" for value, text in (one.help or {}).items()]
        return "\n".join(lines)

    def opinion(self, texts: Mapping[str, str]) -> tuple[dict[str, float | str], list[str]]:
        """What a person filled in, and everything that is wrong with it, each a sentence.

        Args: texts = field -> what was written; '' or absent where nothing was.
        """
        found: dict[str, float | str] = {}
        problems: list[str] = []
        for one in self.fields:
            text = texts.get(one.name, "").strip()
            if one.needs_detection and found.get(DETECTED) != 1.0:
                if found.get(DETECTED) == 0.0 and text not in ("", "0", "none", "-"):
                    problems.append(f"{one.name} = {text!r}, but nothing was detected: leave it empty")
                continue
            if one.name == "strategy_score" and found.get("strategy") == "none":
                if text not in ("", "0"):
                    problems.append(f"{one.name} = {text!r}, but the strategy is none: leave it empty")
                found[one.name] = 0.0
                continue
            value = one.from_text(text)
            if value is not None:
                found[one.name] = value
            elif not text:
                problems.append(f"{one.name} is empty; allowed: {', '.join(one.values)}")
            else:
                told = near_miss(text, one.values) if not one.ordinal else ""
                problems.append(f"{one.name} = {text!r} is not on the scale{told}; allowed: {', '.join(one.values)}")
        return found, problems

    def texts(self, opinion: Opinion) -> dict[str, str]:
        """An opinion as it is written; the other way round of `opinion`."""
        return {one.name: one.to_text(opinion[one.name]) for one in self.fields if one.name in opinion}

    def differ(self, first: Opinion, second: Opinion) -> tuple[str, ...]:
        """The fields in which two labels of one item differ so much that a third person has to look."""
        found = []
        for one in self.fields:
            if one.name not in first or one.name not in second:
                continue
            here, there = first[one.name], second[one.name]
            if isinstance(here, float) and isinstance(there, float) and one.ordinal:
                far = abs(here - there) >= one.apart
            else:
                far = here != there
            found += [one.name] if far else []
        return tuple(found)

    def agreed(self, opinions: Sequence[Opinion]) -> dict[str, float | str]:
        """What people say of an item together; a field that is still open is missing.

        One label stands for itself. Two that differ enough for a third (see `LabelField.apart`) leave the field open,
        else they give the mean of numbers. From three on: the majority of yes and no, and of strategies (`split`
        without one); the median of numbers. What needs detection is taken from those who detected something.
        """
        found: dict[str, float | str] = {}
        for one in self.fields:
            if one.needs_detection and found.get(DETECTED) != 1.0:
                continue
            voices = [own for own in opinions if not one.needs_detection or own.get(DETECTED) == 1.0]
            values = [own[one.name] for own in voices if one.name in own]
            open_pair = len(opinions) == 2 and len(values) == 2 and one.name in self.differ(*opinions)
            if values and not open_pair:
                together = _together(one, values)
                found |= {one.name: together} if together is not None else {}
        return found


def _together(field: LabelField, values: Sequence[float | str]) -> float | str | None:
    """One value of several; None where yes and no are even."""
    if field.ordinal:
        return float(median(float(value) for value in values))
    value, times = Counter(values).most_common(1)[0]
    if 2 * times > len(values):
        return value
    return None if field.name == DETECTED else SPLIT


def asked_from(rubrics: Mapping[str, Rubric], kinds: Sequence[str]) -> dict[str, Asked]:
    """What people are asked, for each kind: what the judges were asked, by the same rubric.

    Raises: RunFolderError where a rubric has no whole-number scale, which people can be asked by.
    """
    return {kind: _flawed(rubrics[kind]) if kind == FLAWED else _scored(kind, rubrics[kind]) for kind in kinds}


def _flawed(rubric: Rubric) -> Asked:
    fields = [
        LabelField(
            name=DETECTED,
            title=_TITLES[DETECTED],
            values=(YES, NO),
            ordinal=False,
            meaning=rubric.fields[DETECTED].meaning,
        )
    ]
    for name in ("diag", "strategy", "strategy_score"):
        own = rubric.fields[name]
        fields.append(
            LabelField(
                name=name,
                title=_TITLES[name],
                values=_whole_numbers(rubric, own.scale) if own.scale is not None else tuple(own.labels),
                ordinal=own.scale is not None,
                apart=_apart(own.scale) if own.scale is not None else 1.0,
                needs_detection=True,
                meaning=own.meaning,
                help=dict(own.labels or own.bands),
            )
        )
    return Asked(kind=FLAWED, task=rubric.task, fields=tuple(fields))


def _scored(kind: str, rubric: Rubric) -> Asked:
    field = LabelField(
        name="score",
        title=_TITLES["score"],
        values=_whole_numbers(rubric, rubric.scale),
        ordinal=True,
        apart=_apart(rubric.scale) if rubric.scale is not None else 1.0,
        help=dict(rubric.bands),
    )
    return Asked(kind=kind, task=rubric.task, fields=(field,))


def _whole_numbers(rubric: Rubric, scale: Scale | None) -> tuple[str, ...]:
    if scale is None or not scale.integer or scale.high - scale.low > 20:
        raise RunFolderError(f"rubric {rubric.name}: people label on a scale of whole numbers, and it has none")
    return tuple(str(number) for number in range(math.ceil(scale.low), math.floor(scale.high) + 1))


def _apart(scale: Scale | None) -> float:
    return 1.0 if scale is None or scale.high - scale.low < 4 else 2.0
