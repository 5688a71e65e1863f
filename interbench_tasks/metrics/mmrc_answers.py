"""What became of each question of a conversation, in each memory arm: the one place where an answer is counted.

| the answer                       | open                 | mc, tf   | EP, IMP, RP (open only)              |
|----------------------------------|----------------------|----------|--------------------------------------|
| reply, and a verdict             | its score            | -        | counted                              |
| reply, and no verdict            | unscored             | -        | counted; RP where its words decline  |
| reply, read by the verifier      | -                    | 0 or 1   | -                                    |
| reply that could not be compared | -                    | unscored | -                                    |
| no reply (failed, never asked)   | unscored             | unscored | unscored                             |

A reply that was cut at its token limit is an answer. Without judges (`rubric: null`) open answers have no score, and
are not unscored either. Scores of judges and exact accuracies are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interbench_tasks.abilities import PICTURES, REFUSAL
from interbench_tasks.answers.item_lists import ItemCounts, has_words, item_counts
from interbench_tasks.answers.picture_numbers import picture_numbers
from interbench_tasks.answers.refusals import refuses
from interbench_tasks.records import CONTEXT_OVERFLOW, EpisodeRecord, Question, Turn

ITEMS = "IE"
"""The ability whose answers list items."""
DECLINED = "declined"
"""The label by which a judge says that a reply declines (`rubrics/mmrc.yaml`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureCounts:
    """The pictures that a reply names beside the right ones."""

    hits: int
    named: int
    wanted: int

    @property
    def precision(self) -> float:
        """Hits / named; 0 where none is named. In [0, 1]."""
        return self.hits / self.named if self.named else 0.0

    @property
    def recall(self) -> float:
        """Hits / wanted. In [0, 1]."""
        return self.hits / self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question in one arm."""

    question: Question
    arm: str
    turn: Turn | None
    """None where it was never asked."""
    n_pictures: int
    """Pictures of the conversation."""

    @property
    def text(self) -> str | None:
        """The reply; None where there is none."""
        return self.turn.reply.text if self.turn is not None and self.turn.reply.usable else None

    @property
    def is_open(self) -> bool:
        """Whether it is judged, and not compared with an option."""
        return self.question.format == "open"

    @property
    def score(self) -> float | None:
        """What the panel gave; None where it is unscored, and for `mc` and `tf`."""
        verdict = self.turn.verdict if self.turn is not None and self.text is not None else None
        return verdict.score if self.is_open and verdict is not None and verdict.status == "scored" else None

    @property
    def correct(self) -> bool | None:
        """Whether the right option was chosen; None where it is unscored, and for an open question."""
        judgement = self.turn.judgement if self.turn is not None and self.text is not None else None
        return None if self.is_open or judgement is None else judgement.correct

    @property
    def overflowed(self) -> bool:
        """Whether the server said that the conversation does not fit the model."""
        return self.turn is not None and self.turn.reply.finish_reason == CONTEXT_OVERFLOW

    @property
    def wants_items(self) -> bool:
        """Whether EP counts it: an open question for information, with a list of what a complete answer names."""
        return self.is_open and self.question.ability == ITEMS and any(map(has_words, self.question.items))

    @property
    def wants_pictures(self) -> bool:
        """Whether IMP counts it: an open question about pictures whose right ones are known."""
        return self.is_open and self.question.ability == PICTURES and bool(self.question.pictures)

    @property
    def wants_refusal(self) -> bool:
        """Whether RP counts it: an open question that nothing answers; the same items as the judged ones."""
        return self.is_open and self.question.ability == REFUSAL

    def items(self) -> ItemCounts | None:
        """The items that the reply names; None where there is no reply."""
        return None if self.text is None else item_counts(self.text, self.question.items)

    def pictures(self) -> PictureCounts | None:
        """The pictures that the reply names; None where there is no reply."""
        if self.text is None:
            return None
        named, wanted = set(picture_numbers(self.text, self.n_pictures)), set(self.question.pictures)
        return PictureCounts(hits=len(named & wanted), named=len(named), wanted=len(wanted))

    def refused(self) -> bool | None:
        """Whether the reply declines, by its words, else by the judges' label; None where it is unscored.

        Where nobody judges, or by a rubric without labels, the words alone decide: a reply in which no pattern of
        declining is found has answered. Where judges were asked and failed, or their labels do not agree, such a reply
        is unscored.
        """
        if self.text is None:
            return None
        assert self.turn is not None
        verdict = self.turn.verdict
        if refuses(self.text):
            return True
        if verdict is None:
            return False
        if verdict.status != "scored":
            return None
        if verdict.label is None:
            return None if any(own.label is not None for own in self.turn.verdicts) else False
        return verdict.label == DECLINED


def answers_from_record(record: EpisodeRecord, arms: Sequence[str]) -> Iterator[Answer]:
    """Every question in every arm, in their order; of an episode that was never started none is known."""
    turns = {turn.branch: turn for turn in record.turns if turn.question is not None and turn.role == "receiver"}
    n_pictures = pictures_in(record)
    for arm in arms:
        for question in record.questions:
            turn = turns.get(f"{arm}/{question.id}")
            yield Answer(question=question, arm=arm, turn=turn, n_pictures=n_pictures)


def history_of(record: EpisodeRecord, arm: str) -> list[Turn]:
    """The turns of the conversation that an arm's questions follow: its own, or the one that arms share."""
    own = [turn for turn in record.turns if turn.role == "receiver" and turn.question is None and turn.branch == arm]
    shared = [turn for turn in record.turns if turn.role == "receiver" and turn.question is None and not turn.branch]
    return sorted(own or shared, key=lambda turn: turn.index)


def pictures_in(record: EpisodeRecord) -> int:
    """Pictures of the conversation; where an arm's broke off, those of the longest one."""
    branches: dict[str, int] = {}
    for turn in record.turns:
        if turn.role == "receiver" and turn.question is None:
            branches[turn.branch] = branches.get(turn.branch, 0) + len(turn.user.pictures)
    return max(branches.values(), default=0)
