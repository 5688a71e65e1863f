"""A conversation in under 4 KB, however many questions it has: sums, which are all that the metrics read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.metrics.mmrc_answers import Answer, answers_from_record
from interbench_tasks.metrics.mmrc_names import LOSSES, Lineup
from interbench_tasks.records import EpisodeRecord

DECIMALS = 4
"""Sums of fractions are rounded: a summary stays short, and equal whatever the order of adding."""


def summary_from_record(record: EpisodeRecord, lineup: Lineup) -> dict[str, Any]:
    """What the metrics need of a record.

    Keys: `arms` = per arm `score`, `accuracy` (per ability), `ep`, `ep_recall`, `ep_f1`, `imp`, `imp_precision`, `rp`,
    each [scored questions, unscored ones, sum, and where that is another number sum of squares]; `pictures` = [named
    and right, right, named, right ones of unscored questions]; `lost` = the counts of `mmrc_names.LOSSES`.
    `differences` = per further arm and ability [questions scored in both, others, sum, sum of squares, and where
    there are others the least and the greatest sum that those may have]. `notes` = [taken, unreadable, cut]. What has
    no question is absent.
    """
    by_arm: dict[str, list[Answer]] = {arm: [] for arm in lineup.arms}
    for answer in answers_from_record(record, lineup.arms):
        by_arm[answer.arm].append(answer)
    taken = [turn for turn in record.turns if turn.role == "notetaker" and turn.notes is not None]
    return {
        "id": record.episode_id,
        "doc_id": record.doc_id,
        "repeat": record.repeat,
        "category": record.category,
        "cluster": record.cluster,
        "status": record.status,
        "stop_reason": record.stop_reason,
        "n_questions": len(record.questions),
        "arms": {arm: _arm(answers, lineup) for arm, answers in by_arm.items() if answers},
        "differences": {
            arm: found
            for arm, base in lineup.pairs
            if lineup.scale is not None and (found := _differences(by_arm[arm], by_arm[base], lineup))
        },
        "notes": [
            len(taken),
            sum(turn.notes is not None and turn.notes.status == "kept" for turn in taken),
            sum(turn.notes is not None and turn.notes.cut for turn in taken),
        ],
        "usage": {
            role: {"calls": used.calls, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            for role, used in record.usage().items()
        },
    }


def _arm(answers: Sequence[Answer], lineup: Lineup) -> dict[str, Any]:
    judged = [answer for answer in answers if answer.is_open] if lineup.scale is not None else []
    chosen = [answer for answer in answers if not answer.is_open]
    found: dict[str, Any] = {
        "score": _by_ability(judged, lambda answer: answer.score),
        "accuracy": _by_ability(chosen, lambda answer: answer.correct),
    }
    items = [answer.items() for answer in answers if answer.wants_items]
    pictures = [answer.pictures() for answer in answers if answer.wants_pictures]
    found |= {
        "ep": _sums(None if counts is None else counts.precision for counts in items),
        "ep_recall": _sums(None if counts is None else counts.recall for counts in items),
        "ep_f1": _sums(None if counts is None else counts.f1 for counts in items),
        "imp": _sums(None if counts is None else counts.recall for counts in pictures),
        "imp_precision": _sums(None if counts is None else counts.precision for counts in pictures),
        "rp": _sums(answer.refused() for answer in answers if answer.wants_refusal),
    }
    known = [counts for counts in pictures if counts is not None]
    lost = [len(set(answer.question.pictures)) for answer in answers if answer.wants_pictures and answer.text is None]
    sums = [sum(c.hits for c in known), sum(c.wanted for c in known), sum(c.named for c in known), sum(lost)]
    return {name: value for name, value in found.items() if value} | {
        **({"pictures": sums} if pictures else {}),
        "lost": _losses(answers, lineup),
    }


def _by_ability(answers: Iterable[Answer], value: Callable[[Answer], float | None]) -> dict[str, list[float]]:
    found: dict[str, list[float | None]] = {}
    for answer in answers:
        found.setdefault(answer.question.ability, []).append(value(answer))
    return {ability: sums for ability in ABILITIES if (sums := _sums(found.get(ability, ())))}


def _sums(values: Iterable[float | None]) -> list[float] | None:
    """[scored, unscored, sum, sum of squares]; None where there is no question."""
    given = list(values)
    known = [float(value) for value in given if value is not None]
    if not given:
        return None
    total, squares = sum(known), sum(value**2 for value in known)
    same = all(value in (0, 1) for value in known)
    return [len(known), len(given) - len(known), _short(total), *([] if same else [_short(squares)])]


def _short(value: float) -> float:
    short = round(value, DECIMALS)
    return int(short) if short == int(short) else short


def _losses(answers: Sequence[Answer], lineup: Lineup) -> list[int]:
    """The counts of LOSSES, in their order."""
    assert len(LOSSES) == 4
    judged = lineup.scale is not None
    return [
        sum(answer.text is None for answer in answers),
        sum(answer.text is not None and (_unread(answer, judged=judged)) for answer in answers),
        sum(answer.turn is not None and answer.turn.reply.finish_reason == "length" for answer in answers),
        sum(answer.overflowed for answer in answers),
    ]


def _unread(answer: Answer, *, judged: bool) -> bool:
    """Whether a reply has neither score nor judgement, and should have."""
    return answer.score is None and judged if answer.is_open else answer.correct is None


def _differences(answers: Sequence[Answer], base: Sequence[Answer], lineup: Lineup) -> dict[str, list[float]]:
    """Per ability [scored in both, others, sum of score - base's, sum of squares, others' least, greatest sum]."""
    assert lineup.scale is not None
    low, high = lineup.scale
    of_base = {answer.question.id: answer.score for answer in base}
    found: dict[str, list[float]] = {}
    for answer in (answer for answer in answers if answer.is_open):
        sums = found.setdefault(answer.question.ability, [0, 0, 0, 0, 0, 0])
        one, other = answer.score, of_base[answer.question.id]
        if one is not None and other is not None:
            sums[0] += 1
            sums[2] += one - other
            sums[3] += (one - other) ** 2
        else:
            sums[1] += 1
            sums[4] += (low if one is None else one) - (high if other is None else other)
            sums[5] += (high if one is None else one) - (low if other is None else other)
    return {
        ability: [_short(value) for value in (found[ability] if found[ability][1] else found[ability][:4])]
        for ability in ABILITIES
        if ability in found
    }
