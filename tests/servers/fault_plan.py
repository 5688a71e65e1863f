"""A bad day of a server: some requests fail, decided by seed, whatever the order in which they come.

What becomes of a request depends on its body and on how often it came before, so a run against the same plan meets the
same faults each time.
"""

from __future__ import annotations

import collections
import email.utils
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import DROPPED, HTML, MALFORMED, Answerer, Fault, PlantedReply

RATES = {"429": 0.10, "500": 0.05, "dropped": 0.02, "malformed": 0.01}
"""Share of requests that fail so."""
WAITS: tuple[Callable[[], Mapping[str, str]], ...] = (
    dict,
    lambda: {"Retry-After": "0.05"},
    lambda: {"Retry-After-Ms": "20"},
    lambda: {"Retry-After": email.utils.formatdate(time.time() + 1, usegmt=True)},
)
"""How a server may ask to wait: not at all, a fraction of a second, milliseconds, a date."""


@dataclass
class FaultPlan:
    """Use as `OpenAIServer(FaultPlan(brain))`.

    Args:
        answer: what is said where nothing fails.
        seed: of all draws.
        rates: kind -> share of requests.
    """

    answer: Answerer
    seed: int = 0
    rates: Mapping[str, float] = field(default_factory=lambda: RATES)
    injected: collections.Counter[str] = field(default_factory=collections.Counter)
    """Kind -> how often."""
    _came: collections.Counter[str] = field(default_factory=collections.Counter)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: ParsedRequest) -> str | PlantedReply | Fault:
        """The answer, or a fault in its place."""
        with self._guard:
            attempt = self._came[request.body_digest]
            self._came[request.body_digest] += 1
        kind = self._kind(request.body_digest, attempt)
        if kind is None:
            return self.answer(request)
        self.injected[kind] += 1
        which = self._draw(request.body_digest, attempt, "which")
        if kind == "dropped":
            return DROPPED
        if kind == "malformed":
            return MALFORMED if which < 0.5 else HTML
        return http_fault(int(kind), WAITS[int(which * len(WAITS))]())

    @property
    def n_injected(self) -> int:
        return sum(self.injected.values())

    def _kind(self, digest: str, attempt: int) -> str | None:
        draw = self._draw(digest, attempt, "kind")
        for kind, rate in self.rates.items():
            if draw < rate:
                return kind
            draw -= rate
        return None

    def _draw(self, *what: object) -> float:
        digest = hashlib.sha256("|".join(map(str, (self.seed, *what))).encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


def http_fault(status: int, headers: Mapping[str, str] | None = None, message: str = "planted") -> Fault:
    """An HTTP error in a shape that both SDKs read."""
    body = {"type": "error", "error": {"type": "planted", "message": message}}
    return Fault(status=status, body=json.dumps(body).encode(), headers=headers or {})
