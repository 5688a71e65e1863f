"""What a run used: calls, failed attempts, tokens and money of each role, and what the ledger saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.prices import Price
from interbench_tasks.records import Reply, RoleName


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What limits are held against. Tokens and money are those that are known: a lower bound."""

    requests: float = 0
    """Calls really made, failed attempts before them included."""
    tokens: float = 0
    """Input and output."""
    cost: float = 0
    """USD; 0 for roles without a known price."""

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(
            requests=self.requests + other.requests, tokens=self.tokens + other.tokens, cost=self.cost + other.cost
        )


NOTHING = Spent()


@dataclass(slots=True, kw_only=True)
class Tokens:
    """Tokens of some replies, as far as they are known."""

    input: int = 0
    cached_input: int = 0
    """Of `input`, those that the server read from its own cache."""
    output: int = 0
    """Reasoning included."""
    reasoning: int = 0

    def add(self, reply: Reply) -> bool:
        """Count a reply's tokens. Returns: whether the backend told both input and output."""
        usage = reply.usage
        self.input += usage.input_tokens or 0
        self.cached_input += min(reply.run.cached_input_tokens or 0, usage.input_tokens or 0)
        self.output += usage.output_tokens or 0
        self.reasoning += usage.reasoning_tokens or 0
        return usage.input_tokens is not None and usage.output_tokens is not None

    def cost(self, price: Price | None) -> float | None:
        """USD; None where no price is known."""
        return None if price is None else price.cost(self.input, self.output, self.cached_input)


@dataclass(slots=True, kw_only=True)
class RoleUsage:
    """What one role used so far; lives on the engine's loop thread."""

    role: str
    """`receiver`, `provider`, or `provider@LABEL` where there are several."""
    model: str
    address: str | None = None
    """URL of its server; None where there is none."""
    price: Price | None = None
    calls: int = 0
    """Replies really asked for, those that failed for good included; not those from the ledger."""
    failed_calls: int = 0
    """Of `calls`, those without a usable reply."""
    failed_attempts: int = 0
    """Requests that failed before a call's last one."""
    calls_without_usage: int = 0
    """Of `calls`, those whose tokens nobody told: they are missing in `tokens`."""
    tokens: Tokens = field(default_factory=Tokens)
    ledger_replies: int = 0
    saved: Tokens = field(default_factory=Tokens)
    """What the replies from the ledger once took."""

    def count(self, reply: Reply) -> None:
        """One more reply, made or from the ledger."""
        if reply.run.from_ledger:
            self.ledger_replies += 1
            self.saved.add(reply)
            return
        self.calls += 1
        self.failed_calls += not reply.usable
        self.failed_attempts += reply.run.retries
        self.calls_without_usage += not self.tokens.add(reply)

    @property
    def spent(self) -> Spent:
        """What limits are held against."""
        tokens = self.tokens
        return Spent(
            requests=self.calls + self.failed_attempts,
            tokens=tokens.input + tokens.output,
            cost=tokens.cost(self.price) or 0,
        )

    def to_json(self) -> dict[str, Any]:
        """The role's part of `usage.json`; `cost_usd` is null where no price is known."""
        price = self.price
        return {
            "model": self.model,
            "calls": self.calls,
            "failed_calls": self.failed_calls,
            "failed_attempts": self.failed_attempts,
            "calls_without_usage": self.calls_without_usage,
            **_tokens_json(self.tokens, price),
            "price": None
            if price is None
            else {"line": price.pattern, "file": price.source, "input": price.input}
            | {"cached_input": price.cached_input, "output": price.output},
            "from_ledger": {"replies": self.ledger_replies, **_tokens_json(self.saved, price)},
        }


def _tokens_json(tokens: Tokens, price: Price | None) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input,
        "cached_input_tokens": tokens.cached_input,
        "output_tokens": tokens.output,
        "reasoning_tokens": tokens.reasoning,
        "cost_usd": tokens.cost(price),
    }


class Meter:
    """Counts the replies of all roles of one run on one rank; lives on the engine's loop thread."""

    def __init__(self) -> None:
        self._by_client: dict[tuple[RoleName, int], RoleUsage] = {}

    def add(self, backend: Backend, role: RoleName, usage: RoleUsage) -> None:
        """Count what `backend` answers as `role` in `usage`; one backend may play several roles."""
        self._by_client[role, id(backend)] = usage

    @property
    def roles(self) -> tuple[RoleUsage, ...]:
        """All roles, in the order in which they were added."""
        return tuple(self._by_client.values())

    def count(self, backend: Backend, call: Call, reply: Reply) -> RoleUsage:
        """One more reply, made or from the ledger. Returns: the role that it was counted for."""
        usage = self._by_client.get((call.role, id(backend)))
        if usage is None:  # a stranger's protocol may ask a backend that nobody named
            usage = RoleUsage(role=call.role, model=backend.name)
            self.add(backend, call.role, usage)
        usage.count(reply)
        return usage

    @property
    def spent(self) -> Spent:
        """What all roles used."""
        total = Spent()
        for usage in self.roles:
            total = total.plus(usage.spent)
        return total

    def to_json(self) -> dict[str, Any]:
        """Role -> its part of `usage.json`."""
        return {usage.role: usage.to_json() for usage in self.roles}
