"""One branch of a feedback loop: feedback and a new try, until it is right, fails, or the rounds are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interbench_tasks.hookspecs import Parts, RoleClient
from interbench_tasks.protocols.feedback_guard import LeakGuard
from interbench_tasks.protocols.verifying import verified
from interbench_tasks.records import BranchEnd, Episode, Feedback, Judgement, Message, Reply, Turn, Usage, history
from interbench_tasks.redaction import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPlan:
    """Which branch to play, and with whom."""

    arm: str
    branch: str
    """The arm, with `@label` where several providers each have their own."""
    first: Turn
    """Round 0."""
    solution: Turn
    """The provider's own try."""
    provider: RoleClient
    uses_provider: bool
    max_rounds: int
    borrowed: Sequence[Mapping[str, Any]] | None = None
    """What other episodes were told, one a round; None for an arm that borrows nothing."""
    sees_target: bool = False
    guard: LeakGuard


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A branch that was played."""

    turns: tuple[Turn, ...]
    """Numbered from 0 and chained to each other; the first one's parent is the first answer."""
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
    client: RoleClient | None
    branch: str
    round: int

    async def reply(self, messages: Sequence[Message]) -> Reply:
        if self.client is None:
            raise ValueError("it says uses_provider = False, but asks the provider")
        return await self.client.reply(messages, branch=self.branch, round=self.round, purpose="feedback")


async def judged(parts: Parts, episode: Episode, reply: Reply) -> tuple[Judgement | None, str | None]:
    """The judgement of a usable reply, or why there is none; what was judged before stays judged."""
    return await verified(parts.verifier, reply, episode.target, episode.options)


async def play_branch(plan: BranchPlan, episode: Episode, receiver: RoleClient, parts: Parts) -> Played:
    """Play one branch. A right first answer is told once that it is wrong, and either kept or flipped."""
    right_before = plan.first.judgement is not None and plan.first.judgement.correct
    turns: list[Turn] = [plan.first]
    for number in range(1, plan.max_rounds + 1):
        last = turns[-1]
        seen = history(turns, last.index, episode.system)
        if plan.borrowed is not None and not plan.borrowed:
            return _played(turns, BranchEnd(branch=plan.branch, reason="no_partner"))
        feedback = await _feedback(plan, number, episode, last, seen, parts)
        if feedback.status == "failed":
            return _played(turns, BranchEnd(branch=plan.branch, reason="feedback_failed", feedback=feedback))
        if plan.guard.dropped(feedback):
            return _played(turns, BranchEnd(branch=plan.branch, reason="leak_dropped", feedback=feedback))
        user = Message(role="user", content=(feedback.text,))
        reply = await receiver.reply((*seen, user), branch=plan.branch, round=number)
        judgement, unjudged = await judged(parts, episode, reply)
        turns.append(
            Turn(
                index=last.index + 1,
                parent=last.index,
                branch=plan.branch,
                round=number,
                user=user,
                reply=reply,
                judgement=judgement,
                feedback=feedback,
            )
        )
        if judgement is None:
            reason = "judge_failed" if unjudged else "reply_failed"
            return _played(turns, BranchEnd(branch=plan.branch, reason=reason, error=unjudged))
        if right_before:
            return _played(turns, BranchEnd(branch=plan.branch, reason="kept" if judgement.correct else "flipped"))
        if judgement.correct:
            return _played(turns, BranchEnd(branch=plan.branch, reason="solved"))
    return _played(turns, BranchEnd(branch=plan.branch, reason="rounds_used"))


async def _feedback(
    plan: BranchPlan, number: int, episode: Episode, last: Turn, seen: Sequence[Message], parts: Parts
) -> Feedback:
    provider = _Provider(
        name=plan.provider.name,
        solution=plan.solution,
        history=seen,
        prompts=parts.prompts,
        sees_target=plan.sees_target,
        borrowed=_borrowed(plan, number),
        client=plan.provider if plan.uses_provider else None,
        branch=plan.branch,
        round=number,
    )
    try:
        given = await parts.feedback_providers[plan.arm].give(episode, last, provider)
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


def _played(turns: Sequence[Turn], end: BranchEnd) -> Played:
    own = [replace(turn, index=index, parent=index - 1) for index, turn in enumerate(turns[1:])]
    return Played(turns=tuple(own), end=end)


def renumbered(turns: Sequence[Turn], offset: int) -> list[Turn]:
    """The branch's turns behind `offset` others, in the order of the YAML: two runs compare equal."""
    return [
        replace(turn, index=turn.index + offset, parent=0 if turn.parent == -1 else (turn.parent or 0) + offset)
        for turn in turns
    ]
