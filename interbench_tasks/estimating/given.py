"""What a user says of a run before it: rates, lengths of replies, and how the options that say it are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from interbench_tasks.errors import BudgetError, near_miss
from interbench_tasks.estimating.ranges import Assumed
from interbench_tasks.protocols.feedback_calls import Rate, Rates

TARGET_WIDTH = 0.25
"""A range of calls at most this wide, in relation to its mean, is good enough to decide by."""
PROBES = (10, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80, 100, 130, 170, 220, 300, 400, 550, 750, 1000)
"""Numbers of questions to try out, of which the smallest that is enough is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the user says of rates and lengths; None: not said."""

    accuracy: Rate | None = None
    provider_accuracy: Rate | None = None
    reply: tuple[float, float] | None = None
    """Tokens."""
    shares: Mapping[str, Rate] = field(default_factory=dict)
    """Kind of call -> share of those that may be made; of protocols whose calls have chances."""

    def over(self, rates: Rates) -> Rates:
        """The rates, with what was said in place of what was seen or assumed."""
        if self.accuracy is not None:
            rates = replace(rates, right=self.accuracy)
        if self.provider_accuracy is not None:
            rates = replace(rates, solved=(self.provider_accuracy,), solved_together={})
        return rates

    @property
    def assumed(self) -> Assumed:
        """Lengths of replies."""
        return Assumed() if self.reply is None else Assumed(reply=self.reply)


def shares_given(texts: Sequence[str], option: str) -> dict[str, Rate]:
    """Shares as a user writes them: `clarification=0.2`.

    Raises: BudgetError that shows what it may look like.

    >>> shares_given(["clarification=0-20%"], "--share")
    {'clarification': Rate(low=0.0, high=0.2, hits=None, trials=0)}
    """
    found = {}
    for text in texts:
        name, equals, share = text.partition("=")
        if not equals or not name.strip():
            raise BudgetError(f"{option} {text}: must be a kind of call and its share, e.g. clarification=0.2")
        found[name.strip()] = rate_given(share, f"{option} {name}=")
    return found


def check_shares(given: Given, allowed: Sequence[str], task: str) -> None:
    """Refuse a share of what the task's calls do not depend on.

    Raises: BudgetError naming what is allowed.
    """
    for name in given.shares:
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            raise BudgetError(f"--share {name}: {task} has no such share{near_miss(name, allowed)}; it has: {known}")


def rate_given(text: str, option: str) -> Rate:
    """A rate as a user writes it: `0.4`, `40%`, or `0.3-0.5`.

    Raises: BudgetError that shows what it may look like.

    >>> rate_given("40%", "--accuracy") == rate_given("0.4", "--accuracy") == Rate(low=0.4, high=0.4)
    True
    """
    low, high = _pair(text, option, "a share from 0 to 1, e.g. 0.4 or 0.3-0.5")
    if not 0 <= low <= high <= 1:
        raise BudgetError(f"{option} {text}: must be a share from 0 to 1, e.g. 0.4 or 0.3-0.5")
    return Rate(low=low, high=high)


def lengths_given(text: str, option: str) -> tuple[float, float]:
    """Tokens as a user writes them: `300`, or `200-600`.

    Raises: BudgetError that shows what it may look like.
    """
    low, high = _pair(text, option, "tokens, e.g. 300 or 200-600")
    if not 0 < low <= high:
        raise BudgetError(f"{option} {text}: must be tokens, e.g. 300 or 200-600")
    return low, high


def _pair(text: str, option: str, what: str) -> tuple[float, float]:
    parts = [part.strip() for part in text.split("-")]
    try:
        values = [float(part.removesuffix("%")) / (100 if part.endswith("%") else 1) for part in parts]
    except ValueError as error:
        raise BudgetError(f"{option} {text}: must be {what}") from error
    if len(values) > 2:
        raise BudgetError(f"{option} {text}: must be {what}")
    return values[0], values[-1]
