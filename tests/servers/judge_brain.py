"""Judges on a localhost server: they read a response by its words, and each has habits of its own, by its name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from tests.judge_fakes import nonce_in
from tests.servers.chat_requests import ParsedRequest

RESPONSE = re.compile(r"\[begin response (\w+)\]\n(.*?)\n\[end response \1\]", re.DOTALL)
OBJECTIONS = re.compile(
    r"contradict|inconsisten|incorrect|mistake|error|not (?:clear|possible|provided|shown|visible|specified|enough)"
    r"|ambigu|unclear|missing|insufficient|cannot be determined|typo|flaw|does(?:n't| not) (?:match|show|contain)",
    re.IGNORECASE,
)
"""Words by which somebody objects to a question."""


class JudgeBrain:
    """Says that a flaw was detected where the response objects to something; a judge errs in its share of replies.

    Args: errs = model -> share of verdicts that are turned round; the same for the same model and response.
    """

    def __init__(self, errs: Mapping[str, float] | None = None) -> None:
        self._errs = errs or {}

    def __call__(self, request: ParsedRequest) -> str:
        prompt = request.messages[-1].text
        found = RESPONSE.search(prompt)
        assert found is not None, "no response in the prompt"
        return json.dumps(self._verdict(request.model, found[2], prompt))

    def _verdict(self, model: str, response: str, prompt: str) -> dict[str, object]:
        nonce = {"nonce": nonce_in(prompt)}
        objects = bool(OBJECTIONS.search(response)) != (chance_of(model, response) < self._errs.get(model, 0))
        if "- score is" in prompt:  # a rubric of one score
            return nonce | {"score": 5 if objects else 0, "reason": "by its words"}
        if "refuses_whole_task" in prompt:
            return nonce | {"refuses_whole_task": False, "false_alarm": objects, "reason": "by its words"}
        strategy = ("clarification" if "?" in response else "correction") if objects else "none"
        fields = {"detected": objects, "diag": int(objects)}
        if "- strategy is" in prompt:
            fields |= {"strategy": strategy, "strategy_score": int(objects)}
        return nonce | fields | {"reason": "by its words"}


def chance_of(*words: str) -> float:
    """A number in [0, 1) that is the same for the same words."""
    return int(hashlib.sha256("\0".join(words).encode()).hexdigest()[:8], 16) / 16**8
