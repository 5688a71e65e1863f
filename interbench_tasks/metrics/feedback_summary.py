"""An episode of a feedback loop in under 4 KB: the part that the harness keeps, and all that the metrics read."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from interbench_tasks.metrics.feedback_names import Lineup
from interbench_tasks.records import BranchEnd, EpisodeRecord, Judgement, Turn

MAX_SUMMARY_BYTES = 4_000
"""Below 4 KB, whatever the alphabet: counted as ASCII JSON, with `<` as \\u003c, which is how the harness gets it."""
DRAWN = ("flip_played", "flip_drawn")
"""Stop reasons of a right answer that was drawn for the flip sample: tried, or not because something failed."""
ANSWER_LENGTHS = (200, 80, 24, 8, 0, None)
"""Characters to which answers are cut; shorter ones are tried only where the summary would be too big. None: of the
rounds only what the metrics need."""


def summary_from_record(record: EpisodeRecord, lineup: Lineup) -> dict[str, Any]:
    """What the metrics need of a record, and what a reader of the harness's samples wants to see.

    Keys: `first` = round 0, None where its call failed; `provider` = its own try, None where it was not asked;
    `in_test` = whether the episode is in the test set, None where a failed call hides it; `in_flip` = whether a right
    answer is in the flip set, likewise, absent where it was not drawn; `arms` = the branches that were started, with
    `correct` None for a round whose call failed. A text that was cut has `<key>_cut: true` beside it. With several
    providers `providers` (plural), `in_test` and `in_flip` are mappings of their labels, and a branch that one of them
    wrote is called `ARM@LABEL`.
    An answer that a person marked as right is `marked`, here and in `first`.
    Of a branch: `leak` = what the leak guard said of the text that was written first in round 1, absent where it did
    not look, `placebo` absent where it had no wrong answer to try; `rewritten` where any text was written again.
    With controls, for `first` and round 1: `answer_id`, equal where two answers of the episode are the same (None where
    unreadable); and `n_options`.
    """
    ids = _answer_ids(record, lineup) if lineup.controlled and record.status == "finished" else {}
    for length in ANSWER_LENGTHS:
        summary = _summary(record, lineup, ids, length)
        if _size(summary) < MAX_SUMMARY_BYTES:
            break
    return summary


def normalised(text: str) -> str:
    """A free-form answer as it is compared: without case, white space, `$` and a full stop at its end.

    >>> normalised("$X = 3$."), normalised("x=3")
    ('x=3', 'x=3')
    """
    bare = "".join(unicodedata.normalize("NFKC", text).casefold().split()).replace("$", "")
    return bare.removesuffix(".") or text


def _size(summary: Mapping[str, Any]) -> int:
    text = json.dumps(summary)
    return len(text) + text.count("<") * len("u003c")


def _summary(
    record: EpisodeRecord, lineup: Lineup, ids: Mapping[int, int | None], length: int | None
) -> dict[str, Any]:
    finished = record.status == "finished"
    first = _find(record, role="receiver", branch="") if finished else None
    arms = {branch: arm for branch, arm in _arms(record, lineup, ids, length)} if finished else {}
    shown = length or 0
    return {
        "id": record.episode_id,
        "doc_id": record.doc_id,
        "repeat": record.repeat,
        "category": record.category,
        "cluster": record.cluster,
        "status": record.status,
        "stop_reason": record.stop_reason,
        **({"passes": record.passes} if record.passes > 1 else {}),
        **_text("target", record.target, shown),
        **({"n_options": len(record.options)} if lineup.controlled else {}),
        "first": _answer(first, shown, ids) if first is not None and first.judgement is not None else None,
        **_of_providers(record, lineup, first, shown, started=frozenset(arms)),
        "arms": arms,
        "usage": {
            role: {"calls": used.calls, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            for role, used in record.usage().items()
        },
    }


def _of_providers(
    record: EpisodeRecord, lineup: Lineup, first: Turn | None, length: int, *, started: frozenset[str]
) -> dict[str, Any]:
    """Each provider's own try, and the sets that the episode is in with it."""
    finished = record.status == "finished"
    tries: dict[str, Any] = {}
    in_test: dict[str, bool | None] = {}
    in_flip: dict[str, bool | None] = {}
    for label in lineup.labels:
        branch = f"solve@{label}" if lineup.several else "solve"
        solution = _find(record, role="provider", branch=branch) if finished else None
        tries[label] = None if solution is None else {"status": solution.reply.status} | _answer(solution, length, {})
        own = {f"{arm}@{label}" if lineup.several else arm for arm in lineup.arms}
        in_test[label] = _is_wrong(first) if lineup.all_wrong else _in_test(first, solution, played=bool(own & started))
        if record.stop_reason in DRAWN:
            in_flip[label] = True if lineup.all_wrong else _solved(solution)
    flips = {"in_flip": in_flip} if in_flip else {}
    found = {"provider": tries, "in_test": in_test, **flips}
    if lineup.several:
        return {"providers" if key == "provider" else key: by_label for key, by_label in found.items()}
    return {key: by_label[""] for key, by_label in found.items()}


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
    return _solved(solution)


def _is_wrong(first: Turn | None) -> bool | None:
    """Whether round 0 is wrong, unreadable or not; None where not known."""
    return None if first is None or first.judgement is None else not first.judgement.correct


def _solved(solution: Turn | None) -> bool | None:
    return solution.judgement.correct if solution is not None and solution.judgement is not None else None


# --- arms -------------------------------------------------------------------------------------------------------


def _arms(
    record: EpisodeRecord, lineup: Lineup, ids: Mapping[int, int | None], length: int | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every branch that was started: its rounds in order, how it ended, and what the leak guard saw."""
    for branch in (branch for arm in lineup.arms for branch in lineup.branches(arm)):
        turns = _rounds(record, branch)
        end = next((end for end in record.ends if end.branch == branch), None)
        if not turns and end is None:
            continue
        yield (
            branch,
            {
                "rounds": [_round(turn, length, ids) for turn in turns],
                "end": end.reason if end is not None else None,
                **_guard(turns, end),
            },
        )


def _rounds(record: EpisodeRecord, branch: str) -> list[Turn]:
    return sorted((t for t in record.turns if t.role == "receiver" and t.branch == branch), key=lambda turn: turn.round)


def _round(turn: Turn, length: int | None, ids: Mapping[int, int | None]) -> dict[str, Any]:
    if length is not None:
        return _answer(turn, length, ids) | {"status": turn.reply.status}
    lean = {"correct": turn.judgement.correct if turn.judgement is not None else None, **_marked(turn)}
    return lean | ({"answer_id": ids[turn.index]} if turn.index in ids else {})


def _guard(turns: list[Turn], end: BranchEnd | None) -> dict[str, Any]:
    """What the leak guard said and did; what another episode was told was looked at there."""
    given = [turn.feedback for turn in turns if turn.feedback is not None]
    given += [end.feedback] if end is not None and end.feedback is not None else []
    own = [feedback for feedback in given if feedback.source is None]
    found: dict[str, Any] = {}
    written_first = own[0].draft or own[0] if own else None
    if written_first is not None and written_first.leak is not None:
        leak = written_first.leak
        found["leak"] = {"found": leak.found} | ({"placebo": leak.placebo} if leak.decoy is not None else {})
    if any(feedback.draft is not None for feedback in own):
        found["rewritten"] = True
    return found


# --- answers ----------------------------------------------------------------------------------------------------


def _answer_ids(record: EpisodeRecord, lineup: Lineup) -> dict[int, int | None]:
    """Turn index -> number of its answer, for round 0 and each round 1; only usable replies are in it."""
    first = _find(record, role="receiver", branch="")
    turns = [first] if first is not None else []
    for branch in (branch for arm in lineup.arms for branch in lineup.branches(arm)):
        turns += [turn for turn in _rounds(record, branch) if turn.round == 1]
    numbers: dict[tuple[str, str], int] = {}
    ids: dict[int, int | None] = {}
    for turn in turns:
        if turn.judgement is not None:
            key = _answer_key(turn.judgement, record)
            ids[turn.index] = None if key is None else numbers.setdefault(key, len(numbers))
    return ids


def _answer_key(judgement: Judgement, record: EpisodeRecord) -> tuple[str, str] | None:
    """Equal for two answers of the episode that are the same; None where nothing could be read.

    Two right answers are the same, since both equal the target, and a right and a wrong one never are. Wrong ones:
    option letters as they are, other texts `normalised`. Wrong free-form answers of one value in two notations (`1/2`,
    `0.5`) are therefore told apart: a share of same answers is a lower bound there.
    """
    answer = judgement.extraction.answer
    if answer is None:
        return None
    if judgement.correct:
        return ("right", "")
    return ("option", answer) if answer in record.options else ("text", normalised(answer))


def _answer(turn: Turn, length: int, ids: Mapping[int, int | None]) -> dict[str, Any]:
    """The turn's answer as read; all None where the reply is not usable."""
    if turn.judgement is None:
        return {"answer": None, "method": None, "correct": None}
    read = turn.judgement.extraction
    own = {**_text("answer", read.answer, length), "method": read.method, "correct": turn.judgement.correct}
    own |= _marked(turn)
    return own | ({"answer_id": ids[turn.index]} if turn.index in ids else {})


def _marked(turn: Turn) -> dict[str, Any]:
    """Whether a person says that the reply is right, though the verifier does not."""
    overruled = turn.judgement is not None and turn.judgement.overruled is not None
    return {"marked": True} if overruled else {}


def _text(key: str, text: str | None, length: int) -> dict[str, Any]:
    if text is None or len(text) <= length:
        return {key: text}
    return {key: text[:length], f"{key}_cut": True}
