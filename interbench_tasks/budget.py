"""Limits on what a command may use: money, tokens, requests. A used-up limit stops new episodes, never a running one.

A limit in the task's YAML holds for that task; one in the environment takes its place and holds for all tasks of the
command together. Replies from the ledger cost nothing. With several ranks each has an equal share.

So that a run does not end far above its limit, no more episodes run at a time than the rest of the budget will pay
for, judged by what those before have used; so it ends above it by about one episode, if at all.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from interbench_tasks import settings
from interbench_tasks.errors import ConfigError, Problem
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.prices import no_price_known
from interbench_tasks.records import EpisodeRecord, Reply
from interbench_tasks.usage import NOTHING, Meter, Spent

_LOG = logging.getLogger(__name__)
KEY = "metadata.interbench.budget"
LimitName = Literal["max_cost", "max_tokens", "max_calls"]
FIRST_LIVE = 8
"""Episodes at a time until the first one that used something has ended, and so said what one takes."""
NO_LIMIT = "off"
MOST_AMOUNT = 10**15
"""A larger limit is none: most likely a typing error."""


class BudgetOptions(BaseModel):
    """The keys of `metadata.interbench.budget`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_cost: Annotated[float, Field(gt=0, le=MOST_AMOUNT, allow_inf_nan=False)] | None = None
    """USD."""
    max_tokens: Annotated[int, Field(gt=0, le=MOST_AMOUNT)] | None = None
    """Input and output tokens of all roles."""
    max_calls: Annotated[int, Field(gt=0, le=MOST_AMOUNT)] | None = None
    """Requests of all roles, failed attempts included."""
    prices: str | None = None
    """File of prices, from the folder in which the command runs; its lines come before those of INTERBENCH_PRICES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit, and where it was named."""

    name: LimitName
    amount: float
    """USD, tokens or requests, > 0."""
    named_in: str
    """`metadata.interbench.budget.max_cost` or `INTERBENCH_MAX_COST`."""
    whole_command: bool
    """True where the environment named it: it holds for all tasks of the command together."""

    def of(self, spent: Spent) -> float:
        """The part of what was spent that this limit is about."""
        return {"max_cost": spent.cost, "max_tokens": spent.tokens, "max_calls": spent.requests}[self.name]

    def shown(self, amount: float) -> str:
        """An amount with its unit.

        >>> Limit(name="max_cost", amount=5, named_in="", whole_command=False).shown(5)
        '5.00 USD'
        """
        if self.name == "max_cost":
            return f"{amount:.2f} USD" if amount >= 0.1 or amount == 0 else f"{amount:.2g} USD"
        return f"{amount:,.0f} {'tokens' if self.name == 'max_tokens' else 'requests'}"


def limits_from(options: BudgetOptions) -> tuple[Limit, ...]:
    """The limits of the YAML, each replaced by the environment's where it names one (`off`: no such limit).

    Raises: ConfigError with every variable that is no limit.
    """
    limits: list[Limit] = []
    problems: list[Problem] = []
    for name in get_args(LimitName):
        variable = settings.limit_variable(name)
        text = settings.variable(variable)
        own = getattr(options, name)
        if text is None:
            if own is not None:
                limits.append(Limit(name=name, amount=own, named_in=f"{KEY}.{name}", whole_command=False))
        elif text.lower() != NO_LIMIT:
            amount = _amount(text, whole=name != "max_cost")
            if amount is None:
                huge = f", at most {MOST_AMOUNT:,}" if len(text) > 15 else ""
                kind = "a number" if name == "max_cost" else "a whole number"
                told = f" = {text!r}: must be {kind} above 0 ({NO_LIMIT}: no limit){huge}"
                problems.append(Problem(key=variable, message=told))
            else:
                limits.append(Limit(name=name, amount=amount, named_in=variable, whole_command=True))
    if problems:
        raise ConfigError("environment", problems)
    return tuple(limits)


def _amount(text: str, *, whole: bool) -> float | None:
    try:
        amount = int(text) if whole else float(text)
    except ValueError:
        return None
    return amount if 0 < amount <= MOST_AMOUNT else None  # NaN is neither


class Budget:
    """Counts what a run uses, and says when no new episode may start; lives on the engine's loop thread.

    Args:
        limits: as `limits_from` gives them; none: everything is counted and nothing stopped.
        meter: knows all roles of the run and their prices.
        before: what earlier tasks of the same command used on this rank.
        n_ranks: each has an equal share of the limits.
    """

    def __init__(self, limits: Sequence[Limit], meter: Meter, *, before: Spent = NOTHING, n_ranks: int = 1) -> None:
        self._limits = tuple(limits)
        self.meter = meter
        self.stopped: str | None = None
        """Why an episode could not start; None where every one could."""
        self._before = before
        self._n_ranks = n_ranks
        self._paying: set[tuple[int, int]] = set()
        """Episodes that run and made a request."""
        self._n_paid = 0
        """Episodes that have ended and made a request."""
        self._warned: set[str] = set()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of all ranks together."""
        return self._limits

    @property
    def spent(self) -> Spent:
        """What all roles used."""
        return self.meter.spent

    def check_prices(self) -> None:
        """Called once all roles are known.

        Raises: BudgetError where money is limited and some role's model has no known price.
        """
        money = next((limit for limit in self._limits if limit.name == "max_cost"), None)
        unpriced = [(role.role, role.model, role.address) for role in self.meter.roles if role.price is None]
        if money is not None and unpriced:
            raise no_price_known(unpriced, f"{money.named_in} = {money.amount:g}")

    def count(self, backend: Backend, call: Call, reply: Reply) -> None:
        """One more reply, made or from the ledger."""
        usage = self.meter.count(backend, call, reply)
        if reply.run.from_ledger:
            return
        self._paying.add((call.episode.doc_id, call.episode.repeat))
        if usage.calls_without_usage and usage.role not in self._warned:
            blind = [limit.named_in for limit in self._limits if limit.name != "max_calls"]
            if blind:
                self._warned.add(usage.role)
                _LOG.warning(
                    "the %s %s does not say how many tokens a call took: %s counts only what is known; "
                    "max_calls limits such a model",
                    usage.role,
                    usage.model,
                    " and ".join(blind),
                )

    def episode_ended(self, record: EpisodeRecord) -> None:
        """Take note of an episode's end: what an episode takes is known better now."""
        key = (record.doc_id, record.repeat)
        if key in self._paying:
            self._paying.discard(key)
            self._n_paid += 1

    def stop_reason(self) -> str | None:
        """Why no new episode may start; None where one may. Also asked by the thread that makes episodes.

        The text stays as it was the first time: episodes that run then use some more.
        """
        if self.stopped is None:
            self.stopped = self.used_up()
        return self.stopped

    def used_up(self) -> str | None:
        """Which limit is used up, and how much is used now; None where none is."""
        for limit, share, used in self._states():
            if used >= share:
                of_ranks = f" / {self._n_ranks} ranks" if self._n_ranks > 1 else ""
                return (
                    f"the budget is used up: {limit.name} = {limit.shown(limit.amount)}{of_ranks} "
                    f"({limit.named_in}), {limit.shown(used)} used"
                )
        return None

    def most_live(self) -> int | None:
        """How many episodes the rest of the budget will pay for, at least 1; None where nothing is limited."""
        most: float = math.inf
        spent = self.meter.spent if self._limits else NOTHING
        for limit, share, used in self._states():
            if self._n_paid == 0:
                most = min(most, FIRST_LIVE, share - used if limit.name == "max_calls" else math.inf)
                continue
            one = limit.of(spent) / self._n_paid  # too much rather than too little: those that still run are in it
            if one > 0:
                most = min(most, (share - used) / one)
        return None if math.isinf(most) else max(1, int(most))

    def _states(self) -> Iterator[tuple[Limit, float, float]]:
        """Each limit with this rank's share of it, and what is used of that."""
        spent = self.meter.spent if self._limits else NOTHING
        for limit in self._limits:
            used = limit.of(spent.plus(self._before)) if limit.whole_command else limit.of(spent)
            yield limit, limit.amount / self._n_ranks, used


def limits_text(limits: Sequence[Limit], n_ranks: int = 1) -> str:
    """What the limits are and how they work, in a sentence or two; '' where there is none."""
    if not limits:
        return ""
    told = ", ".join(f"{limit.name} = {limit.shown(limit.amount)} ({limit.named_in})" for limit in limits)
    ranks = f"; each of {n_ranks} ranks has an equal share" if n_ranks > 1 else ""
    return (
        f"budget: {told}{ranks}. Once it is used up no new episode starts and those that run are finished, so a run "
        f"can end above it by about one episode (by up to {FIRST_LIVE}, where the first ones use all of it)"
    )


def stopped_text(used_up: str, *, n_skipped: int, n_wanted: int, ledger: bool) -> str:
    """What a run says at its end where its budget stopped it.

    Args: n_skipped = episodes that were not started, of `n_wanted`; 0 where the second pass was cut short; ledger =
        whether replies were kept.
    """
    if n_skipped:
        left = (
            f"{n_skipped:,} of {n_wanted:,} episodes were not started, so the results are partial (of the first rows, "
            "which is no fair sample)"
        )
    else:
        left = "the second pass (borrowed feedback, right answers tried) is not complete, so the results are partial"
    kept = "what was paid for comes from the ledger" if ledger else "the ledger is off: it would pay for all again"
    return f"{used_up}. {left}. Run the same command again to go on, best with a larger budget ({kept})"
