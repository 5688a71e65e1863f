"""The questions after a conversation: each asked of the same history, answered, and scored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from interbench_tasks.abilities import PICTURES
from interbench_tasks.hookspecs import Parts, Roles
from interbench_tasks.memories import MemoryArm
from interbench_tasks.protocols.conversation_history import asked, cut_to, end_of
from interbench_tasks.protocols.conversation_judging import PanelJudge
from interbench_tasks.protocols.conversation_limits import Limits
from interbench_tasks.protocols.verifying import verified
from interbench_tasks.records import BranchEnd, Episode, Judgement, Message, Notes, Question, Seen, Turn, Verdict
from interbench_tasks.redaction import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question, answered or not."""

    turn: Turn
    """`parent` is -1 for the last turn of the history, else the number of the question before it."""
    end: BranchEnd | None
    """Why its answer has no score; None where it has one, or a judge says why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The questions of one memory arm."""

    arm: MemoryArm
    episode: Episode
    roles: Roles
    parts: Parts
    limits: Limits
    judge: PanelJudge | None
    """None where nobody judges: open answers are then kept and not scored."""
    accumulate: bool
    """Whether each question follows the ones before it and their answers."""

    async def ask_all(self, history: Sequence[Message], notes: dict[str, Notes]) -> list[Answered]:
        """Every question answered, in the order of the data set. Independent ones leave together."""
        if self.accumulate:
            return await self._one_after_the_other(history, notes)
        return await asyncio.gather(*[self._ask(question, history, notes, -1) for question in self.episode.questions])

    async def _one_after_the_other(self, history: Sequence[Message], notes: dict[str, Notes]) -> list[Answered]:
        answered: list[Answered] = []
        before = list(history)
        parent = -1
        for number, question in enumerate(self.episode.questions):
            found = await self._ask(question, before, notes, parent)
            answered.append(found)
            if found.turn.reply.usable:  # an answer that never came is not part of the conversation
                before += [question.message, Message(role="assistant", content=(found.turn.reply.text,))]
                parent = number
        return answered

    async def _ask(
        self, question: Question, history: Sequence[Message], notes: dict[str, Notes], parent: int
    ) -> Answered:
        branch = f"{self.arm.name}/{question.id}"
        acting = self.arm.acting(at_question=True)
        view = partial(_shown, partial(cut_to, self.limits, acting, notes, (*history, question.message)), question)
        user, reply, seen = await asked(self.roles.receiver, view, question.message, branch=branch)
        end = None if reply.usable else end_of(branch, reply)
        judgement: Judgement | None = None
        verdicts: tuple[Verdict, ...] = ()
        verdict: Verdict | None = None
        if reply.usable and question.options:
            judgement, why = await verified(self.parts.verifier, reply, question.target, question.options)
            end = BranchEnd(branch=branch, reason="judge_failed", error=why) if why else None
        elif reply.usable and self.judge is not None:
            try:
                verdicts, verdict = await self.judge.judge(question, reply, self.episode, branch)
            except Exception as error:  # noqa: BLE001 - a panel rule may be a stranger's; the answer stays, unscored
                end = BranchEnd(branch=branch, reason="judge_failed", error=redact(f"judging raised {error!r}")[:500])
        turn = Turn(
            index=0,
            parent=parent,
            branch=branch,
            user=user,
            reply=reply,
            judgement=judgement,
            question=question.id,
            verdicts=verdicts,
            verdict=verdict,
            seen=seen,
        )
        return Answered(turn=turn, end=end)


CUT_PICTURES = "The first {n} of the pictures are not shown any more; the numbers count them all the same."
"""OURS: whoever sees pictures 3 and 4 alone cannot know that they are not 1 and 2."""


def _shown(
    view: Callable[[], tuple[tuple[Message, ...], Seen]], question: Question
) -> tuple[tuple[Message, ...], Seen]:
    """What is sent; where pictures were cut, a question that wants their numbers says how many."""
    sent, seen = view()
    if not seen.cut_pictures or question.ability != PICTURES or question.options:
        return sent, seen
    told = f"\n\n{CUT_PICTURES.format(n=seen.cut_pictures)}"
    *before, last = sent[-1].content
    end = (last + told,) if isinstance(last, str) else (last, told.strip())
    return (*sent[:-1], replace(sent[-1], content=(*before, *end))), seen
