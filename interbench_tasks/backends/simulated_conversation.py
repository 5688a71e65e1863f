"""What the simulated backend says in a conversation: a receiver that forgets, a notetaker, and a judge.

The truth is known: a receiver remembers what stands in the last turns that it is shown, or in the notes that it is
shown, and nothing else. It can tell a turn only if the turn is really among its messages, so a cut is felt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interbench_tasks.hookspecs import Call
    from interbench_tasks.records import Message, Question

Draw = Callable[["Call", str], float]
"""A number in [0, 1) that depends on what is asked, and on nothing else."""
_LISTENING = ("Noted, thank you.", "Thanks, I will keep that in mind.", "I see. Go on.", "All right, understood.")
_FORGOTTEN = "I do not remember that part of our conversation."
_REFUSAL = "You have not told me that in this conversation, so I cannot say."
_INVENTED = "It is the one that you have mentioned before."
_NONCE = re.compile(r"\bnonce is the word (\w+)")
_FENCED = r"\[begin {name} (\w+)\]\n(.*)\n\[end {name} \1\]"
_WORD = re.compile(r"[^\W_]+")
_MESSAGE = re.compile(r"<message>\n(.*)\n</message>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSimulation:
    """Answers the calls of conversations; every rate lies in [0, 1]."""

    draw: Draw
    accuracy: float
    """Share of right answers to what it remembers."""
    refuse: float
    """Share of unanswerable questions that it declines."""
    forget_after: int | None
    """Turns that it remembers, counted from the end; None: all that it is shown."""
    miss: float
    """Share of turns that its notes leave out."""

    def replies_to(self, call: Call) -> bool:
        """Whether the call is one of a conversation."""
        return call.purpose in ("judge", "notes") or (call.purpose == "answer" and bool(call.episode.script))

    def text(self, call: Call) -> str | None:
        """The reply; None for a judge that is asked in words that it cannot read: it makes no verdict up."""
        if call.purpose == "judge":
            return _verdict(call.messages[-1].text, _question_of(call))
        if call.purpose == "notes":
            return self._notes(call)
        question = _question_of(call)
        if question is None:
            return _LISTENING[int(self.draw(call, "text") * len(_LISTENING))]
        return self._answer(call, question)

    def _answer(self, call: Call, question: Question) -> str:
        right = self.draw(call, "outcome") < (self.refuse if question.should_refuse else self.accuracy)
        if question.options:
            known = right and self._remembers(call, question)
            return f"Answer: {question.target if known else self._other_option(call, question)}"
        if question.should_refuse:
            return _REFUSAL if right else _INVENTED
        if not self._remembers(call, question):
            return _FORGOTTEN
        return question.target if right else self._other_answer(call, question)

    def _remembers(self, call: Call, question: Question) -> bool:
        """Whether every turn that holds the answer is in mind, or in the notes."""
        script = call.episode.script
        shown = {message.content for message in call.messages[:-1] if message.role == "user"}
        oldest = 0 if self.forget_after is None else len(script) - self.forget_after
        notes = _notes_in(call.messages)
        return all(
            (turn >= oldest and script[turn].user.content in shown) or f"turn {turn + 1}: " in notes
            for turn in question.evidence
        )

    def _other_option(self, call: Call, question: Question) -> str:
        others = [letter for letter in question.options if letter != question.target]
        return others[int(self.draw(call, "wrong") * len(others))]

    def _other_answer(self, call: Call, question: Question) -> str:
        """The answer to another question; it says nothing of this one."""
        others = [
            other.target
            for other in call.episode.questions
            if not other.options and not other.should_refuse and not _says(other.target, question.target)
        ]
        return others[int(self.draw(call, "wrong") * len(others))] if others else _INVENTED

    def _notes(self, call: Call) -> str:
        """Notes on all turns so far but those that it misses; a JSON object where it is asked for one."""
        facts = [
            f"turn {number + 1}: {text}"
            for number, text in enumerate(_texts_so_far(call))
            if self.draw(call, f"miss {number}") >= self.miss
        ]
        if "JSON" not in call.messages[-1].text:
            return "\n".join(facts) or "Nothing yet."
        return json.dumps({"user_info": {}, "preferences": {}, "purpose": "", "facts": facts}, ensure_ascii=False)


def _question_of(call: Call) -> Question | None:
    """The question that is asked; None for a turn of the conversation itself."""
    _, _, name = call.branch.partition("/")
    return next((question for question in call.episode.questions if question.id == name), None) if name else None


def _notes_in(messages: Sequence[Message]) -> str:
    """Where notes can stand: in a system message, or before the question."""
    return "\n".join(message.text for message in messages if message.role == "system" or message is messages[-1])


def _texts_so_far(call: Call) -> list[str]:
    """What the user said in each turn up to this one."""
    script = call.episode.script
    if script:
        return [_short(turn.user.text) for turn in script[: call.round + 1]]
    told = _MESSAGE.search(call.messages[-1].text)
    return [""] * call.round + [_short(told.group(1)) if told else ""]


def _short(text: str) -> str:
    return " ".join(text.split())[:120]


def _verdict(prompt: str, question: Question | None) -> str | None:
    """The best score where the response says what the reference says, or declines what it should; else the worst."""
    nonce, reference, response = _NONCE.search(prompt), _fenced(prompt, "reference"), _fenced(prompt, "response")
    if nonce is None or reference is None or response is None:
        return None
    right = _REFUSAL in response if question is not None and question.should_refuse else _says(response, reference)
    reason = "It says what the reference says." if right else "It does not say what the reference says."
    return json.dumps({"nonce": nonce.group(1), "score": 5 if right else 0, "reason": reason})


def _fenced(prompt: str, name: str) -> str | None:
    found = re.search(_FENCED.format(name=name), prompt, re.DOTALL)
    return found.group(2) if found else None


def _says(text: str, part: str) -> bool:
    return _plain(part) in _plain(text)


def _plain(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
