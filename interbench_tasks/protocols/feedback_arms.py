"""One branch of a feedback loop: feedback and a new try, until it is right, fails, or the rounds are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from interbench_tasks.feedback_rounds import FeedbackRound
from interbench_tasks.hookspecs import Parts, RoleClient
from interbench_tasks.protocols.feedback_guard import LeakGuard
from interbench_tasks.protocols.feedback_memory import Remembering
from interbench_tasks.protocols.verifying import verified
from interbench_tasks.records import (
    MARKED_RIGHT,
    BranchEnd,
    Episode,
    Feedback,
    Judgement,
    Message,
    Reply,
    Turn,
    Usage,
    history,
)
from interbench_tasks.redaction import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPlan:
    """Which branch to play, and with whom."""

    arm: str
    branch: str
    """The arm, with `@label` where several providers each have their own."""
    first: Turn
    """Round 0."""
    solution: Turn | None
    """The provider's own try; None where it did not have to solve the question first."""
    provider: RoleClient | None
    """None where the task needs none."""
    uses_provider: bool
    max_rounds: int
    data_texts: bool = False
    """Whether the data set brings the feedback of each round."""
    level3_without_answer: bool = False
    borrowed: Sequence[Mapping[str, Any]] | None = None
    """What other episodes were told, one a round; None for an arm that borrows nothing."""
    sees_target: bool = False
    guard: LeakGuard
    remembering: Remembering | None = None
    """What is remembered of round 0; None where the task names no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A branch that was played."""

    turns: tuple[Turn, ...]
    """Numbered from 0 and chained to each other; the first one's parent is the first answer. A notetaker's are last."""
    end: BranchEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class _Provider:
    """The role provider bound to one reply; what a feedback plugin sees."""

    name: str
    solution: Turn | None
    history: Sequence[Message]
    prompts: Mapping[str, str]
    sees_target: bool
    borrowed: Feedback | None
    round: FeedbackRound
    client: RoleClient | None
    branch: str
    marks: list[Reply] = field(default_factory=list)
    """What a person said who marked the receiver's reply as right instead of writing feedback."""

    async def reply(self, messages: Sequence[Message]) -> Reply:
        if self.client is None:
            raise ValueError("it says uses_provider = False, but asks the provider")
        if self.round.by_person:  # shown what was said, not a prompt that quotes it; what is asked comes last
            messages = (*self.history, Message(role="user", content=(messages[-1].text,)))
        reply = await self.client.reply(messages, branch=self.branch, round=self.round.number, purpose="feedback")
        if reply.usable and reply.finish_reason == MARKED_RIGHT:
            self.marks.append(reply)
        return reply


async def judged(parts: Parts, episode: Episode, reply: Reply) -> tuple[Judgement | None, str | None]:
    """The judgement of a usable reply, or why there is none; what was judged before stays judged."""
    return await verified(parts.verifier, reply, episode.target, episode.options)


async def play_branch(plan: BranchPlan, episode: Episode, receiver: RoleClient, parts: Parts) -> Played:
    """Play one branch. A right first answer is told once that it is wrong, and either kept or flipped.

    Where a person marks the last reply as right, its judgement says so; that of the first answer is left to the caller.
    """
    right_before = plan.first.judgement is not None and plan.first.judgement.correct
    turns: list[Turn] = [plan.first]
    told: list[Turn] = [plan.first]
    """The same without what a memory adds: the history that all branches have in common."""
    remembering = plan.remembering

    def played(reason: str, feedback: Feedback | None = None, error: str | None = None) -> Played:
        end = BranchEnd(branch=plan.branch, reason=reason, feedback=feedback, error=error)
        return _played(turns, end, remembering.turns if remembering is not None else ())

    for number in range(1, plan.max_rounds + 1):
        last = told[-1]
        seen = history(told, last.index, episode.system)
        if plan.borrowed is not None and not plan.borrowed:
            return played("no_partner")
        feedback = await _feedback(plan, number, episode, last, seen, parts)
        if feedback.status == "failed":
            return played("feedback_failed", feedback)
        if is_mark(feedback):
            turns[1:] = marked_right(turns[1:])
            return played(MARKED_RIGHT, feedback)
        if plan.guard.dropped(feedback):
            return played("leak_dropped", feedback)
        remembering = await _remembered(plan, remembering, last, seen)
        if remembering is not None and remembering.error is not None:
            return played("notes_failed", error=remembering.error)
        turn, unjudged = await _turn(plan, number, episode, seen, feedback, remembering, receiver, parts)
        turns.append(turn)
        told.append(replace(turn, user=Message(role="user", content=(feedback.text,))))
        reason = _reason_to_stop(turn, unjudged, right_before=right_before)
        if reason is not None:
            return played(reason, error=unjudged)
    return played("rounds_used")


def is_mark(feedback: Feedback) -> bool:
    """Whether a person says that the reply is right, instead of giving feedback."""
    return feedback.reply is not None and feedback.reply.usable and feedback.reply.finish_reason == MARKED_RIGHT


def marked_right(turns: Sequence[Turn]) -> list[Turn]:
    """The turns, of which a person marked the last one as right; what the verifier said stays in its judgement."""
    if not turns:
        return []
    last = turns[-1]
    judgement = last.judgement.by_person() if last.judgement is not None else None
    return [*turns[:-1], replace(last, judgement=judgement)]


def _reason_to_stop(turn: Turn, unjudged: str | None, *, right_before: bool) -> str | None:
    """Why a branch ends with this try; None where it goes on."""
    if turn.judgement is None:
        return "judge_failed" if unjudged else "reply_failed"
    if right_before:
        return "kept" if turn.judgement.correct else "flipped"
    return "solved" if turn.judgement.correct else None


async def _remembered(
    plan: BranchPlan, remembering: Remembering | None, last: Turn, seen: Sequence[Message]
) -> Remembering | None:
    """With the notes after the last answer; those after the first one are there already."""
    if remembering is None or last.round == 0:
        return remembering
    pictures = sum(len(message.pictures) for message in seen[:-2])
    return await remembering.after(last, branch=plan.branch, pictures_before=pictures)


async def _turn(
    plan: BranchPlan,
    number: int,
    episode: Episode,
    seen: Sequence[Message],
    feedback: Feedback,
    remembering: Remembering | None,
    receiver: RoleClient,
    parts: Parts,
) -> tuple[Turn, str | None]:
    """The new try, and why it could not be judged, where it could not."""
    sent: tuple[Message, ...] = (*seen, Message(role="user", content=(feedback.text,)))
    shown = None
    if remembering is not None:
        sent, shown = remembering.sent(sent)
    reply = await receiver.reply(sent, branch=plan.branch, round=number)
    judgement, unjudged = await judged(parts, episode, reply)
    turn = Turn(
        index=plan.first.index + number,
        parent=plan.first.index + number - 1,
        branch=plan.branch,
        round=number,
        user=sent[-1],
        reply=reply,
        judgement=judgement,
        feedback=feedback,
        seen=shown,
    )
    return turn, unjudged


async def _feedback(
    plan: BranchPlan, number: int, episode: Episode, last: Turn, seen: Sequence[Message], parts: Parts
) -> Feedback:
    text = episode.levels[number - 1] if plan.data_texts and number <= len(episode.levels) else None
    provider = _Provider(
        name=plan.provider.name if plan.provider is not None else "",
        solution=plan.solution,
        history=seen,
        prompts=parts.prompts,
        sees_target=plan.sees_target,
        borrowed=_borrowed(plan, number),
        client=plan.provider if plan.uses_provider else None,
        branch=plan.branch,
        round=FeedbackRound(
            number=number,
            text=text,
            by_person=plan.uses_provider and bool(getattr(plan.provider, "is_person", False)),
            without_answer=plan.level3_without_answer,
        ),
    )
    try:
        given = await parts.feedback_providers[plan.arm].give(episode, last, provider)
        if provider.marks:
            mark = provider.marks[-1]
            return Feedback(text="", kind=plan.arm, author=mark.model or provider.name, reply=mark)
        if not isinstance(given, Feedback) or not isinstance(given.text, str):
            return _failed(plan.arm, provider.name, f"gave no Feedback with a text but {given!r}")
        return await plan.guard.guarded(given, episode, last, seen, provider)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; this arm fails, what was paid for stays
        return _failed(plan.arm, provider.name, f"raised {error!r}")


def _borrowed(plan: BranchPlan, number: int) -> Feedback | None:
    if plan.borrowed is None:
        return None
    told = plan.borrowed[number - 1]
    return Feedback(text=told["text"], kind=told["kind"], author=told["author"], source=told["source"])


def _failed(arm: str, author: str, what: str) -> Feedback:
    why = redact(f"feedback '{arm}' {what}")[:500]
    reply = Reply(text="", status="error", error=why, usage=Usage())
    return Feedback(text="", kind=arm, author=author, status="failed", reply=reply)


def _played(turns: Sequence[Turn], end: BranchEnd, notes: Sequence[Turn] = ()) -> Played:
    own = [replace(turn, index=index, parent=index - 1) for index, turn in enumerate(turns[1:])]
    first = turns[0].index
    taken = [
        replace(turn, index=len(own) + place, parent=(turn.parent or 0) - first - 1) for place, turn in enumerate(notes)
    ]
    return Played(turns=(*own, *taken), end=end)


def renumbered(turns: Sequence[Turn], offset: int) -> list[Turn]:
    """The branch's turns behind `offset` others, in the order of the YAML: two runs compare equal."""
    return [
        replace(turn, index=turn.index + offset, parent=0 if turn.parent == -1 else (turn.parent or 0) + offset)
        for turn in turns
    ]
