"""A task, its models and what is known of them -> what a run will take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from interbench_tasks.errors import BudgetError
from interbench_tasks.estimating.learning import Played, learned
from interbench_tasks.estimating.prompts import PromptSizes, prompt_sizes
from interbench_tasks.estimating.ranges import Assumed, RunEstimate, range_of, run_estimate
from interbench_tasks.estimating.task import Task
from interbench_tasks.prices import PriceList
from interbench_tasks.protocols.feedback_calls import ArmKind, Known, LoopShape, Rate, Rates, drawn_calls, rates_in
from interbench_tasks.protocols.feedback_learned import Learned

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will take, and what that rests on."""

    run: RunEstimate
    rates: Rates
    sizes: PromptSizes
    known: Known
    """What was played already."""
    notes: tuple[str, ...] = ()
    to_probe: int | None = None
    """Questions to play first, so that the range of calls gets narrow enough; None where it is, or cannot."""


def estimate(task: Task, played: Played, *, given: Given, prices: PriceList, seed: int = 0) -> Estimate:
    """What a run of the task will take."""
    models = task.models(prices)
    sizes = prompt_sizes(task.data, task.options.common, [shown for _, shown in models], rows=task.rows)
    told = learned(task, played)
    rates = given.over(told.rates)
    drawn = drawn_calls(task.shape, rates, told.known, seed=seed)
    run = run_estimate(drawn, [model for model, _ in models], sizes, assumed=given.assumed, seen=told.tokens, seed=seed)
    return Estimate(
        run=run,
        rates=rates,
        sizes=sizes,
        known=told.known,
        notes=played.notes,
        to_probe=_to_probe(task.shape, rates, told.known.n, given) if run.calls.width > TARGET_WIDTH else None,
    )


def width_of_calls(shape: LoopShape, rates: Rates, known: Known, *, seed: int = 0) -> float:
    """How wide the range of all calls is, in relation to its mean."""
    return range_of(drawn_calls(shape, rates, known, n_draws=2_000, seed=seed).total).width


def _to_probe(shape: LoopShape, rates: Rates, n_known: int, given: Given) -> int | None:
    """The fewest questions to play first, so that the range of calls is narrow enough, if they turn out as expected."""
    for n in (*PROBES, shape.n_episodes):
        if n_known < n <= shape.n_episodes:
            then = _as_if(shape, rates, n)
            if width_of_calls(shape, given.over(then.rates), then.known) <= TARGET_WIDTH:
                return n
    return None


def _as_if(shape: LoopShape, rates: Rates, n: int) -> Learned:
    """What `n` questions would tell, where each thing happens as often as its rate's middle value says."""
    rates = rates_in(shape, rates)
    right = round(n * rates.right.middle)
    unreadable = round((n - right) * rates.unreadable.middle)
    wrong = n - right - unreadable
    everyone, nobody = (True,) * shape.n_providers, (False,) * shape.n_providers
    solve = _any_middle(rates, shape)
    solved = {everyone: round(wrong * solve), nobody: wrong - round(wrong * solve)}
    rounds: dict[tuple[ArmKind, int], int] = {
        (kind, 1): solved[everyone] for kind in shape.arms.values() if kind != "borrowed"
    }
    n_solves = 0 if shape.all_wrong else wrong
    return Learned(
        rates=replace(
            rates,
            right=Rate(hits=right, trials=n),
            unreadable=Rate(hits=unreadable, trials=max(n - right, 1)),
            solved_together=solved,
            corrected={
                arm: Rate(hits=round(solved[everyone] * _corrected(rates, arm)), trials=max(solved[everyone], 1))
                for arm in shape.arms
            },
        ),
        known=Known(n=n, right=right, solved=solved, first=n, rounds=rounds, solves=(n_solves,) * shape.n_providers),
    )


def _corrected(rates: Rates, arm: str) -> float:
    return rates.corrected.get(arm, rates.corrected_elsewhere).middle


def _any_middle(rates: Rates, shape: LoopShape) -> float:
    """The mean share of wrong answers that a provider solves."""
    if rates.solved_together:
        n = sum(rates.solved_together.values())
        hits = sum(sum(pattern) * count for pattern, count in rates.solved_together.items())
        return hits / (n * shape.n_providers)
    return sum(rate.middle for rate in rates.solved) / len(rates.solved)


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
