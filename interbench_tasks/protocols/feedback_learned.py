"""What episodes that were played tell of those that were not: how often things happen, and what is known already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from interbench_tasks.protocols.feedback_calls import ArmKind, Known, LoopShape, Pattern, Rate, Rates
from interbench_tasks.records import BranchEnd, EpisodeRecord, Feedback, Reply, Turn

CallKind = tuple[Literal["first", "solve", "feedback", "shared", "written", "borrowed", "notes"], int, int]
"""(what is asked, round, provider): an arm's kind for the receiver's rounds, for notes the round of the answer that
they follow; provider 0 where it is the receiver or the notetaker."""
BROKEN = ("feedback_failed", "reply_failed", "judge_failed", "notes_failed")
"""Ends of branches that a failed call has."""
RECORDED = "recorded"
"""Model of a first answer that came with the data set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What some episodes of a task tell."""

    rates: Rates
    """As seen; those of which nothing was seen are as wide as ever."""
    known: Known
    tokens: Mapping[CallKind, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """(input, output) tokens of the calls of each kind, where they are known."""


def learned_from(records: Iterable[EpisodeRecord], *, shape: LoopShape, labels: Sequence[str], rates: Rates) -> Learned:
    """What the records tell. Episodes that failed, or in which something could not be judged, are left out.

    Args: labels = of the providers, `("",)` for one; rates = what is assumed where nothing was seen.
    """
    told = [record for record in records if _whole(record, labels, shape)]
    firsts = [record.turns[0] for record in told]
    right = [turn for turn in firsts if _correct(turn)]
    unreadable = sum(not _correct(turn) and not _readable(turn) for turn in firsts)
    solved = Counter(_pattern(record, labels, shape) for record in told if _is_tested(record, shape))
    tried = [_pattern(record, labels, shape) for record in told if record.stop_reason == "flip_played"]
    seen = Rates(
        right=_rate(len(right), len(firsts), rates.right),
        unreadable=_rate(unreadable, len(firsts) - len(right), rates.unreadable),
        solved=rates.solved,
        solved_together=solved,
        solved_where_right=_rate(sum(map(sum, tried)), len(tried) * len(labels), rates.solved_where_right),
        corrected={arm: rate for arm in shape.arms if (rate := _corrected(told, arm, shape)) is not None},
        corrected_elsewhere=rates.corrected_elsewhere,
        leaked=_rewritten(told, rates.leaked) if shape.rewrite else rates.leaked,
        dropped=_dropped(told, rates.dropped),
    )
    calls = [(kind, reply) for record in told for kind, reply in _first_pass(record, shape, labels)]
    counts = Counter(kind for kind, _ in calls)
    known = Known(
        n=len(told),
        right=len(right),
        solved=solved,
        first=counts["first", 0, 0],
        rounds={(what, number): n for (what, number, _), n in counts.items() if what in ("shared", "written")},
        solves=tuple(counts["solve", 0, index] for index in range(len(labels))),
        feedback={(index, number): n for (what, number, index), n in counts.items() if what == "feedback"},
        notes={number: n for (what, number, _), n in counts.items() if what == "notes"},
    )
    return Learned(rates=seen, known=known, tokens=_tokens(calls))


def _rate(hits: int, trials: int, otherwise: Rate) -> Rate:
    return Rate(hits=hits, trials=trials) if trials else otherwise


def _correct(turn: Turn) -> bool:
    return turn.judgement is not None and turn.judgement.correct


def _readable(turn: Turn) -> bool:
    return turn.judgement is not None and turn.judgement.extraction.answer is not None


def _is_tested(record: EpisodeRecord, shape: LoopShape) -> bool:
    """Whether the episode's first answer is wrong, and not left out because nobody can read it."""
    return not _correct(record.turns[0]) and (shape.all_wrong or _readable(record.turns[0]))


def _whole(record: EpisodeRecord, labels: Sequence[str], shape: LoopShape) -> bool:
    """Whether the first pass of the episode was played to its end, without a failure."""
    if record.status != "finished" or not record.turns or record.turns[0].judgement is None:
        return False
    solves = [turn for turn in record.turns if turn.role == "provider"]
    n_solves = 0 if shape.all_wrong else len(labels)
    judged = [turn for turn in record.turns if turn.role != "notetaker"]
    failed = any(not turn.reply.usable for turn in record.turns) or any(turn.judgement is None for turn in judged)
    broken = any(end.reason in BROKEN for end in record.ends)
    return not failed and not broken and (not _is_tested(record, shape) or len(solves) == n_solves)


def _pattern(record: EpisodeRecord, labels: Sequence[str], shape: LoopShape) -> Pattern:
    """Which providers may teach, in the order of the labels: all, or those that solved the question."""
    if shape.all_wrong:
        return (True,) * len(labels)
    solved = {_label(turn.branch) for turn in record.turns if turn.role == "provider" and _correct(turn)}
    return tuple(label in solved for label in labels)


def _label(branch: str) -> str:
    return branch.partition("@")[2]


def _corrected(records: Sequence[EpisodeRecord], arm: str, shape: LoopShape) -> Rate | None:
    """How often a round of this arm made a wrong answer right; None where it was not played."""
    turns = [
        turn
        for record in records
        if _is_tested(record, shape)
        for turn in record.turns
        if turn.role == "receiver" and turn.branch.partition("@")[0] == arm
    ]
    return Rate(hits=sum(_correct(turn) for turn in turns), trials=len(turns)) if turns else None


def _feedback(record: EpisodeRecord) -> list[Feedback]:
    """All feedback that a model wrote for this episode."""
    found = [turn.feedback for turn in record.turns] + [end.feedback for end in record.ends]
    return [feedback for feedback in found if feedback is not None and feedback.paid_for()]


def _rewritten(records: Sequence[EpisodeRecord], otherwise: Rate) -> Rate:
    written = [feedback for record in records for feedback in _feedback(record)]
    return _rate(sum(feedback.draft is not None for feedback in written), len(written), otherwise)


def _dropped(records: Sequence[EpisodeRecord], otherwise: Rate) -> Rate:
    drafted = [feedback for record in records for feedback in _feedback(record) if feedback.draft is not None]
    again = sum(feedback.leak is not None and feedback.leak.found is not None for feedback in drafted)
    return _rate(again, len(drafted), otherwise)


def _first_pass(record: EpisodeRecord, shape: LoopShape, labels: Sequence[str]) -> Iterator[tuple[CallKind, Reply]]:
    """The calls of the episode's first pass; those of the second depend on which episodes are played with it."""
    if record.turns[0].reply.model != RECORDED:
        yield ("first", 0, 0), record.turns[0].reply
    if record.stop_reason != "flip_played":
        for turn in record.turns[1:]:
            yield from _of_turn(turn, shape, labels)
        for end in record.ends:
            yield from _of_end(end, record, shape, labels)


def _of_turn(turn: Turn, shape: LoopShape, labels: Sequence[str]) -> Iterator[tuple[CallKind, Reply]]:
    """The calls of one turn, where it is of the first pass."""
    if turn.role == "notetaker":
        if _noted_in_first_pass(turn, shape):
            yield ("notes", turn.round, 0), turn.reply
        return
    arm, _, label = turn.branch.partition("@")
    if turn.role == "receiver" and shape.arms.get(arm, "borrowed") == "borrowed":
        return
    index = labels.index(label) if label in labels else 0
    if turn.role == "provider":
        yield ("solve", 0, index), turn.reply
        return
    kind: ArmKind = shape.arms[arm]
    yield (kind, turn.round, 0), turn.reply
    for reply in _written(turn.feedback):
        yield ("feedback", turn.round, index), reply


def _of_end(
    end: BranchEnd, record: EpisodeRecord, shape: LoopShape, labels: Sequence[str]
) -> Iterator[tuple[CallKind, Reply]]:
    """Feedback that leaked again: the receiver was not asked."""
    arm, _, label = end.branch.partition("@")
    if shape.arms.get(arm) == "written":
        number = 1 + sum(turn.branch == end.branch for turn in record.turns)
        for reply in _written(end.feedback):
            yield ("feedback", number, labels.index(label) if label in labels else 0), reply


def _noted_in_first_pass(turn: Turn, shape: LoopShape) -> bool:
    """Whether a notetaker was asked in it: a memory may take notes by itself."""
    branch, _, _ = turn.branch.rpartition("/")
    borrowed = bool(branch) and shape.arms.get(branch.partition("@")[0], "borrowed") == "borrowed"
    return turn.reply.usage.calls > 0 and not borrowed


def _written(feedback: Feedback | None) -> tuple[Reply, ...]:
    return feedback.paid_for() if feedback is not None else ()


def _tokens(calls: Sequence[tuple[CallKind, Reply]]) -> dict[CallKind, list[tuple[int, int]]]:
    found: dict[CallKind, list[tuple[int, int]]] = {}
    for kind, reply in calls:
        used = reply.usage
        if used.input_tokens is not None and used.output_tokens is not None:
            found.setdefault(kind, []).append((used.input_tokens, used.output_tokens))
    return found
