"""Every role on a localhost server that counts tokens in a way of its own, with replies of very different lengths."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.judge_fakes import nonce_in
from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import PlantedReply

TOKEN = re.compile(r"[A-Za-z]{1,5}|[0-9]|[^\sA-Za-z0-9]")
"""Words in pieces, digits and marks alone: about a third more than the rule of thumb says."""
PER_MESSAGE, PER_PICTURE = 4, 255
WORDS = ("the", "picture", "shows", "a", "small", "remarkable", "dog", "beside", "two", "chairs", "and", "it", "says")


def n_tokens(text: str) -> int:
    return len(TOKEN.findall(text))


@dataclass
class WordyBrain:
    """Answers as long as a draw says, one for each request; sums what it was asked and said, by model."""

    said_of: Mapping[str, tuple[int, int]] = field(default_factory=lambda: {"turn": (10, 60), "question": (30, 300)})
    """Words of an answer, shortest and longest, after a turn and to a question."""
    asks_back: float = 0.0
    """Share of verdicts that say: it asks back."""
    calls: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: ParsedRequest) -> PlantedReply:
        texts = [message.text for message in request.messages]
        pictures = sum(len(message.pictures) for message in request.messages)
        seen = [picture.sha256 for message in request.messages for picture in message.pictures]
        rng = random.Random(hashlib.sha256("\0".join([request.model, *texts, *seen]).encode()).hexdigest())
        text = self._text(request, rng)
        used = sum(map(n_tokens, texts)) + PER_MESSAGE * len(texts) + PER_PICTURE * pictures
        self.calls[request.model] += 1
        self.asked[request.model] += used
        self.said[request.model] += n_tokens(text)
        return PlantedReply(text=text, usage={"prompt_tokens": used, "completion_tokens": n_tokens(text)})

    def _text(self, request: ParsedRequest, rng: random.Random) -> str:
        prompt = request.messages[-1].text
        if "nonce is the word" in prompt:
            return json.dumps(self._verdict(prompt, rng))
        if "You take notes" in prompt:
            notes = re.search(r"Your notes so far:\n(.*)\n\nThe user", prompt, re.DOTALL)
            facts = json.loads(notes[1]).get("facts", []) if notes else []
            return json.dumps({"facts": [*facts, self._words(rng, 5, 30)]})
        last_line = (prompt.splitlines() or [""])[-1]
        kind = "question" if "?" in last_line or "number" in prompt else "turn"
        return self._words(rng, *self.said_of[kind])

    def _verdict(self, prompt: str, rng: random.Random) -> dict[str, object]:
        reason = {"reason": self._words(rng, 5, 30)}
        if "- score is" in prompt:
            return {"nonce": nonce_in(prompt), "score": rng.randint(0, 5)} | reason
        back = rng.random() < self.asks_back
        told = {"detected": back, "diag": int(back), "strategy": "clarification" if back else "none"}
        told |= {"strategy_score": int(back), "identified": [], "refuses_whole_task": False, "false_alarm": back}
        keys = re.search(r"in exactly this order: ([\w, ]+)\.", prompt)
        assert keys is not None
        return {"nonce": nonce_in(prompt)} | {k: told[k] for k in keys[1].split(", ") if k in told} | reason

    @staticmethod
    def _words(rng: random.Random, low: int, high: int) -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(low, high)))
