"""The leak guard of a feedback loop: does what the provider wrote give the answer away, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from interbench_tasks.config import REWRITE_VARIABLES
from interbench_tasks.hookspecs import Provider
from interbench_tasks.leaks import REWRITE_PROMPT, leak_check
from interbench_tasks.prompts import render
from interbench_tasks.reasoning import said_in_the_end
from interbench_tasks.records import Draft, Episode, Feedback, LeakCheck, Message, Turn

Mode = Literal["observe", "rewrite", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakGuard:
    """Looks at feedback before the receiver sees it.

    `observe` only notes what it finds. `rewrite` has leaking feedback written again, once; what leaks then too carries
    a leak and a draft, and the arm is dropped. Never masked: to mask only the answer reveals it.
    """

    mode: Mode
    prompts: Mapping[str, str]

    async def guarded(
        self, feedback: Feedback, episode: Episode, turn: Turn, seen: Sequence[Message], provider: Provider
    ) -> Feedback:
        """The feedback with its `leak`, or what was written instead; as it is where no model wrote it for this episode.

        Args: turn = the answer that it is about; seen = what the receiver saw and said up to it.
        """
        if self.mode == "off" or feedback.status == "failed" or feedback.reply is None or feedback.source is not None:
            return feedback
        said = said_in_the_end(feedback.reply.text)
        found = _check(said, episode, turn, seen)
        if self.mode == "observe" or found.found is None:
            return replace(feedback, leak=found)
        draft = Draft(text=feedback.text, prompt=feedback.prompt, reply=feedback.reply, leak=found)
        prompt = self._rewrite_prompt(episode, said)
        before = () if feedback.prompt is None else (feedback.prompt, _answer(feedback.reply.text))
        reply = await provider.reply([*before, prompt])
        again = said_in_the_end(reply.text)
        if not reply.usable or not again:
            return replace(feedback, status="failed", prompt=prompt, reply=reply, draft=draft)
        start, found_it, end = feedback.text.rpartition(said)
        text = start + again + end if found_it else again
        leak = _check(again, episode, turn, seen)
        return replace(feedback, text=text, prompt=prompt, reply=reply, leak=leak, draft=draft)

    def dropped(self, feedback: Feedback) -> bool:
        """Whether its arm is not played on: it leaks although it was written again."""
        return self.mode == "rewrite" and feedback.leak is not None and feedback.leak.found is not None

    def _rewrite_prompt(self, episode: Episode, said: str) -> Message:
        template = self.prompts.get("rewrite", REWRITE_PROMPT)
        named = dict(zip(REWRITE_VARIABLES, (episode.raw_question, episode.options, said), strict=True))
        return Message(role="user", content=(render(template, "rewrite", **named),))


def _check(said: str, episode: Episode, turn: Turn, seen: Sequence[Message]) -> LeakCheck:
    wrong = turn.judgement.extraction.answer if turn.judgement is not None and not turn.judgement.correct else None
    shown = [message for message in seen if message.role != "system"]
    return leak_check(
        said,
        episode.target,
        episode.options,
        decoy=episode.decoy,
        known=[message.text for message in shown],
        told=[message.text for message in shown[1:] if message.role == "user"],
        wrong=wrong,
    )


def _answer(text: str) -> Message:
    return Message(role="assistant", content=(text,))
