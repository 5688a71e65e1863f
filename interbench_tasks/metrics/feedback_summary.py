"""An episode of a feedback loop in under 4 KB: the part that the harness keeps, and all that the metrics read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interbench_tasks.records import EpisodeRecord, Turn

MAX_SUMMARY_BYTES = 4_000
"""Below 4 KB, whatever the alphabet: counted as ASCII JSON, with `<` as \\u003c, which is how the harness gets it."""
ANSWER_LENGTHS = (200, 80, 24, 8, 0)
"""Characters to which answers are cut; shorter ones are tried only where the summary would be too big."""


def summary_from_record(record: EpisodeRecord, arms: Sequence[str]) -> dict[str, Any]:
    """What the metrics need of a record, and what a reader of the harness's samples wants to see.

    Keys: `first` = round 0, None where its call failed; `provider` = its own try, None where it was not asked;
    `in_test` = whether the episode is in the test set, None where a failed call hides it; `arms` = the arms that were
    started, with `correct` None for a round whose call failed. A text that was cut has `<key>_cut: true` beside it.
    """
    for length in ANSWER_LENGTHS:
        summary = _summary(record, arms, length)
        if _size(summary) < MAX_SUMMARY_BYTES:
            break
    return summary


def _size(summary: Mapping[str, Any]) -> int:
    text = json.dumps(summary)
    return len(text) + text.count("<") * len("u003c")


def _summary(record: EpisodeRecord, arms: Sequence[str], length: int) -> dict[str, Any]:
    finished = record.status == "finished"
    first = _find(record, role="receiver", branch="") if finished else None
    solution = _find(record, role="provider", branch="solve") if finished else None
    played = {arm: entry for arm in arms if finished and (entry := _arm(record, arm, length)) is not None}
    return {
        "id": record.episode_id,
        "doc_id": record.doc_id,
        "repeat": record.repeat,
        "category": record.category,
        "cluster": record.cluster,
        "status": record.status,
        "stop_reason": record.stop_reason,
        "passes": record.passes,
        **_text("target", record.target, length),
        "first": _answer(first, length) if first is not None and first.judgement is not None else None,
        "provider": None if solution is None else {"status": solution.reply.status} | _answer(solution, length),
        "in_test": _in_test(first, solution, played=bool(played)),
        "arms": played,
        "usage": {
            role: {"calls": used.calls, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            for role, used in record.usage().items()
        },
    }


def _find(record: EpisodeRecord, *, role: str, branch: str) -> Turn | None:
    return next((turn for turn in record.turns if turn.role == role and turn.branch == branch), None)


def _in_test(first: Turn | None, solution: Turn | None, *, played: bool) -> bool | None:
    """Whether the episode is in the test set: wrong, parseable, and solved by the provider; None where not known."""
    if first is None or first.judgement is None:
        return None
    if first.judgement.correct or first.judgement.extraction.answer is None:
        return False
    if solution is None:
        return True if played else None
    return solution.judgement.correct if solution.judgement is not None else None


def _arm(record: EpisodeRecord, arm: str, length: int) -> dict[str, Any] | None:
    """The arm's rounds in order, and how it ended; None where it was never started."""
    turns = sorted((t for t in record.turns if t.role == "receiver" and t.branch == arm), key=lambda turn: turn.round)
    ends = [end.reason for end in record.ends if end.branch == arm]
    if not turns and not ends:
        return None
    rounds = [_answer(turn, length) | {"status": turn.reply.status} for turn in turns]
    return {"rounds": rounds, "end": ends[0] if ends else None}


def _answer(turn: Turn, length: int) -> dict[str, Any]:
    """The turn's answer as read; all None where the reply is not usable."""
    if turn.judgement is None:
        return {"answer": None, "method": None, "correct": None}
    read = turn.judgement.extraction
    return {**_text("answer", read.answer, length), "method": read.method, "correct": turn.judgement.correct}


def _text(key: str, text: str | None, length: int) -> dict[str, Any]:
    if text is None or len(text) <= length:
        return {key: text}
    return {key: text[:length], f"{key}_cut": True}
