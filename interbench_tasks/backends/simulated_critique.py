"""What the simulated backend says of flawed inputs: a receiver that may challenge them, and a judge that may err.

The truth is known: a receiver that challenges an input says so in a mark that holds how well it does, and a judge reads
the mark, with the sensitivity and specificity that were planted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interbench_tasks.flaws import BOTH

if TYPE_CHECKING:
    from interbench_tasks.hookspecs import Call

Draw = Callable[["Call", str], float]
"""A number in [0, 1) that depends on what is asked, and on nothing else."""
_DIAGNOSES = ((2, 0.5), (1, 0.3), (0, 0.2))
_STRATEGIES = (("correction", 0.4), ("clarification", 0.35), ("refusal", 0.25))
_SCORES = ((2, 0.6), (1, 0.3), (0, 0.1))
"""Value -> share, of the inputs that are challenged."""
_PARTS = (("first+second", 0.3), ("first", 0.3), ("second", 0.2), ("", 0.2))
_SAYS: Mapping[str, str] = {
    "correction": "I read it the way it must be meant, and go on from there.",
    "clarification": "Could you tell me what is meant?",
    "refusal": "As it stands I cannot answer it.",
}
_MARK = re.compile(r"\[simulated: challenged, diag=(\d) strategy=(\w+) score=(\d) parts=([\w+]*)\]")
_NONCE = re.compile(r"\bnonce is the word (\w+)")
_KEYS = re.compile(r"in exactly this order: ([\w, ]+)\.")
_RESPONSE = re.compile(r"\[begin response (\w+)\]\n(.*)\n\[end response \1\]", re.DOTALL)
_GARBLED = "It is hard to say; the response has strong and weak sides."


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueSimulation:
    """Answers the calls of critiques; every rate lies in [0, 1]."""

    draw: Draw
    accuracy: float
    """Share of right answers once it was told what was missing."""
    detect: float
    """Share of flawed inputs that it challenges."""
    think: float | None = None
    """Share of flawed inputs whose defect its reasoning notices; None: it has no reasoning."""
    alarm: float = 0.0
    """Share of valid inputs that it challenges."""
    sensitivity: float = 1.0
    """As a judge: share of challenges that it sees."""
    specificity: float = 1.0
    """As a judge: share of other replies that it does not take for a challenge."""
    garble: float = 0.0
    """As a judge: share of its replies that cannot be read."""

    def replies_to(self, call: Call) -> bool:
        """Whether the call is one of a critique."""
        return "kind" in call.episode.extra

    def text(self, call: Call) -> str | None:
        """The reply; None for a judge that is asked in words that it cannot read: it makes no verdict up."""
        if call.purpose == "judge":
            return self._verdict(call)
        if call.round:
            target = call.episode.extra.get("answer", "")
            return f"Answer: {target if self.draw(call, 'solved') < self.accuracy else 'something else'}"
        valid = call.episode.extra["kind"] == "valid"
        thoughts = ""
        if self.think is not None:
            notices = not valid and self.draw(call, "think") < self.think
            thoughts = (
                f"<think>{self._challenge(call, 'think ') if notices else 'This looks straightforward.'}</think>\n"
            )
        challenges = self.draw(call, "detect") < (self.alarm if valid else self.detect)
        return thoughts + (self._challenge(call, "") if challenges else "That can be read off at once.\nAnswer: 42")

    def _challenge(self, call: Call, prefix: str) -> str:
        diag, strategy, score, parts = (
            _drawn(self.draw(call, f"{prefix}{name}"), table)
            for name, table in (("diag", _DIAGNOSES), ("strategy", _STRATEGIES), ("score", _SCORES), ("parts", _PARTS))
        )
        mark = f"[simulated: challenged, diag={diag} strategy={strategy} score={score} parts={parts}]"
        return f"Something is wrong with this input. {_SAYS[str(strategy)]} {mark}"

    def _verdict(self, call: Call) -> str | None:
        prompt = call.messages[-1].text
        nonce, keys, response = _NONCE.search(prompt), _KEYS.search(prompt), _RESPONSE.search(prompt)
        if nonce is None or keys is None or response is None:
            return None
        # Each try of a judge has a nonce of its own: the draw of whether it can be read is independent.
        if self.draw(call, f"garble {nonce.group(1)}") < self.garble:
            return _GARBLED
        said = self._said(call, _MARK.search(response.group(2)))
        return json.dumps({key: nonce.group(1) if key == "nonce" else said[key] for key in keys.group(1).split(", ")})

    def _said(self, call: Call, mark: re.Match[str] | None) -> dict[str, Any]:
        """Every value that a rubric may ask for."""
        right = self.draw(call, "judge") < (self.specificity if mark is None else self.sensitivity)
        detected = (mark is not None) == right
        diag, strategy, score, parts = mark.groups() if mark is not None else ("1", "correction", "1", "")
        identified = [part for part in parts.split(BOTH) if part] if detected else []
        return {
            "detected": detected,
            "diag": int(diag) if detected else 0,
            "strategy": strategy if detected else "none",
            "strategy_score": int(score) if detected else 0,
            "identified": identified,
            "refuses_whole_task": detected and strategy == "refusal",
            "false_alarm": detected,
            "reason": "It challenges the input." if detected else "It does not challenge the input.",
        }


def _drawn(draw: float, table: Sequence[tuple[str | int, float]]) -> str | int:
    for value, share in table:
        draw -= share
        if draw < 0:
            return value
    return table[-1][0]
