"""InterFeedback's script: answer; where wrong and the provider right, feedback and a new try, one branch per arm."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from interbench_tasks.hookspecs import Parts, PatientVerifier, RoleClient, Roles
from interbench_tasks.records import (
    BranchEnd,
    Episode,
    EpisodeRecord,
    Feedback,
    Judgement,
    Message,
    Reply,
    RoleName,
    Turn,
    Usage,
    history,
)
from interbench_tasks.redaction import redact

RECORDED = "recorded"
"""Model name of a first answer that came with the data set."""


class FeedbackLoopOptions(BaseModel):
    """Keys of `metadata.interbench` that belong to the feedback loop."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_rounds: Annotated[int, Field(ge=1, le=10)] = 1
    """Feedback rounds after the first answer; the paper's automatic part has 1."""
    arms: Annotated[tuple[str, ...], Field(min_length=1)] = ("detail", "simple")
    """Kinds of feedback; each continues the same first answer."""
    provider_sees_gt: bool = False
    """Whether the provider is shown the right answer when it writes feedback. OURS; the paper does not say."""
    flip_sample: Annotated[int, Field(ge=0)] = 0
    """How many right first answers are tried with every arm, as a control: drawn by seed. OURS."""
    leak_guard: Literal["observe", "rewrite", "off"] = "observe"
    """What happens where model-written feedback gives the answer away: it is counted; or written again once, and the
    arm dropped if that leaks too; or nobody looks. OURS."""
    seed: int = 0
    """Of the draws: whose feedback is borrowed, which right answers are tried."""
    providers: tuple[str, ...] = ()
    """Labels of several providers; filled in from metadata.interbench.providers."""

    @field_validator("arms")
    @classmethod
    def _no_arm_twice(cls, arms: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({arm for arm in arms if arms.count(arm) > 1})
        if twice:
            raise ValueError(f"named twice: {', '.join(twice)}")
        return arms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Provider:
    """The role provider bound to one wrong reply; what a feedback plugin sees."""

    name: str
    solution: Turn | None
    history: Sequence[Message]
    prompts: Mapping[str, str]
    sees_target: bool
    client: RoleClient
    branch: str
    round: int

    async def reply(self, messages: Sequence[Message]) -> Reply:
        return await self.client.reply(messages, branch=self.branch, round=self.round, purpose="feedback")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arm:
    turns: tuple[Turn, ...]
    """Numbered from 0 and chained to each other; the first one's parent is the first answer."""
    end: BranchEnd


class FeedbackLoop:
    """Plays one question: round 0, the provider's own try, and one branch of feedback rounds per arm.

    Source: InterFeedback (arXiv 2502.15027v3), section 3; the items where both answers can be read, the receiver is
    wrong and the provider right form the test set of this receiver and provider.
    """

    Options: ClassVar[type[BaseModel]] = FeedbackLoopOptions
    roles: ClassVar[tuple[RoleName, ...]] = ("provider",)
    metrics: ClassVar[str] = "feedback_loop"

    def __init__(self, options: FeedbackLoopOptions, parts: Parts) -> None:
        self._options = options
        self._parts = parts

    async def play(self, episode: Episode, roles: Roles) -> EpisodeRecord:
        """The episode's record; `stop_reason` says why it ended where it did."""
        if roles.provider is None:
            raise ValueError("the feedback loop needs the role provider")
        first, unjudged = await self._first_answer(episode, roles.receiver)
        if first.judgement is None:
            return self._record(episode, roles, [first], "reply_failed", error=unjudged or first.reply.error)
        if first.judgement.correct:
            return self._record(episode, roles, [first], "right")
        if first.judgement.extraction.answer is None:
            return self._record(episode, roles, [first], "invalid")
        solution, unjudged = await self._solve(episode, roles.provider)
        if solution.judgement is None:
            ends = [BranchEnd(branch="solve", reason="judge_failed", error=unjudged)] if unjudged else []
            return self._record(episode, roles, [first, solution], "provider_failed", ends=ends)
        if not solution.judgement.correct:
            unread = solution.judgement.extraction.answer is None
            return self._record(episode, roles, [first, solution], "provider_unparsed" if unread else "provider_wrong")
        arms = await asyncio.gather(*[self._arm(arm, episode, first, solution, roles) for arm in self._options.arms])
        return self._record(episode, roles, [first, solution], "played", arms)

    async def _first_answer(self, episode: Episode, receiver: RoleClient) -> tuple[Turn, str | None]:
        """Round 0, and why it could not be judged, where it could not."""
        if episode.first_answer is not None:
            reply = Reply(text=episode.first_answer, model=RECORDED, usage=Usage())
        else:
            reply = await receiver.reply(_opening(episode))
        judgement, unjudged = await self._judge(episode, reply)
        return Turn(index=0, parent=None, user=episode.question, reply=reply, judgement=judgement), unjudged

    async def _solve(self, episode: Episode, provider: RoleClient) -> tuple[Turn, str | None]:
        """The provider's own try at the same prompt (it may only teach what it can do), and why it is not judged."""
        reply = await provider.reply(_opening(episode), branch="solve", purpose="solve")
        judgement, unjudged = await self._judge(episode, reply)
        turn = Turn(
            index=1,
            parent=None,
            branch="solve",
            role="provider",
            user=episode.question,
            reply=reply,
            judgement=judgement,
        )
        return turn, unjudged

    async def _arm(self, arm: str, episode: Episode, first: Turn, solution: Turn, roles: Roles) -> _Arm:
        """One branch: feedback and a new try until it is right, fails, or the rounds are used."""
        turns: list[Turn] = [first]
        for number in range(1, self._options.max_rounds + 1):
            last = turns[-1]
            seen = history(turns, last.index, episode.system)
            feedback = await self._feedback(arm, number, episode, last, solution, seen, roles)
            if feedback.status == "failed":
                return _arm_from(turns, BranchEnd(branch=arm, reason="feedback_failed", feedback=feedback))
            user = Message(role="user", content=(feedback.text,))
            reply = await roles.receiver.reply((*seen, user), branch=arm, round=number)
            judgement, unjudged = await self._judge(episode, reply)
            turns.append(
                Turn(
                    index=last.index + 1,
                    parent=last.index,
                    branch=arm,
                    round=number,
                    user=user,
                    reply=reply,
                    judgement=judgement,
                    feedback=feedback,
                )
            )
            if judgement is None:
                reason = "judge_failed" if unjudged else "reply_failed"
                return _arm_from(turns, BranchEnd(branch=arm, reason=reason, error=unjudged))
            if judgement.correct:
                return _arm_from(turns, BranchEnd(branch=arm, reason="solved"))
        return _arm_from(turns, BranchEnd(branch=arm, reason="rounds_used"))

    async def _feedback(
        self,
        arm: str,
        number: int,
        episode: Episode,
        last: Turn,
        solution: Turn,
        seen: Sequence[Message],
        roles: Roles,
    ) -> Feedback:
        assert roles.provider is not None  # play() refused it otherwise
        provider = _Provider(
            name=roles.provider.name,
            solution=solution,
            history=seen,
            prompts=self._parts.prompts,
            sees_target=self._options.provider_sees_gt,
            client=roles.provider,
            branch=arm,
            round=number,
        )
        try:
            given = await self._parts.feedback_providers[arm].give(episode, last, provider)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything; this arm fails, what was paid for stays
            return _failed_feedback(arm, provider.name, f"raised {error!r}")
        if not isinstance(given, Feedback) or not isinstance(given.text, str):
            return _failed_feedback(arm, provider.name, f"gave no Feedback with a text but {given!r}")
        return given

    async def _judge(self, episode: Episode, reply: Reply) -> tuple[Judgement | None, str | None]:
        """The judgement of a usable reply, or why there is none; what was judged before stays judged."""
        if not reply.usable:
            return None, None
        verifier = self._parts.verifier
        try:
            if isinstance(verifier, PatientVerifier):
                judgement = await verifier.judge_later(reply.text, episode.target, episode.options)
            else:
                judgement = verifier.judge(reply.text, episode.target, episode.options)
        except Exception as error:  # noqa: BLE001 - a verifier may be a stranger's; a failing one is no wrong answer
            return None, redact(f"the verifier raised {error!r}")[:500]
        if not isinstance(judgement, Judgement):
            return None, f"the verifier gave no Judgement but {type(judgement).__name__}"
        return judgement, None

    def _record(
        self,
        episode: Episode,
        roles: Roles,
        common: Sequence[Turn],
        reason: str,
        arms: Sequence[_Arm] = (),
        *,
        ends: Sequence[BranchEnd] = (),
        error: str | None = None,
    ) -> EpisodeRecord:
        turns = list(common)
        for arm in arms:
            turns += _renumbered(arm.turns, len(turns))
        models = {"receiver": roles.receiver.name}
        if roles.provider is not None:
            models["provider"] = roles.provider.name
        failed = reason == "reply_failed"
        return EpisodeRecord(
            task="",
            protocol="feedback_loop",
            episode_id=episode.id,
            doc_id=episode.doc_id,
            repeat=episode.repeat,
            category=episode.category,
            cluster=episode.cluster,
            target=episode.target,
            options=episode.options,
            system=episode.system,
            turns=tuple(turns),
            ends=(*ends, *[arm.end for arm in arms]),
            status="failed" if failed else "finished",
            stop_reason=reason,
            error=error,
            models=models,
        )


def _failed_feedback(arm: str, author: str, what: str) -> Feedback:
    why = redact(f"feedback '{arm}' {what}")[:500]
    reply = Reply(text="", status="error", error=why, usage=Usage())
    return Feedback(text="", kind=arm, author=author, status="failed", reply=reply)


def _opening(episode: Episode) -> tuple[Message, ...]:
    system = (Message(role="system", content=(episode.system,)),) if episode.system else ()
    return (*system, episode.question)


def _arm_from(turns: Sequence[Turn], end: BranchEnd) -> _Arm:
    own = [replace(turn, index=turn.index - 1, parent=(turn.parent or 0) - 1) for turn in turns[1:]]
    return _Arm(turns=tuple(own), end=end)


def _renumbered(turns: Sequence[Turn], offset: int) -> list[Turn]:
    """The arm's turns behind `offset` others, in the order of the YAML and not of arrival: two runs compare equal."""
    return [
        replace(turn, index=turn.index + offset, parent=0 if turn.parent == -1 else (turn.parent or 0) + offset)
        for turn in turns
    ]
