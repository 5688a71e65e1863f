"""Who forecasts a task: what its protocol says of its calls decides, not its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any, Protocol

from interbench_tasks.config import TaskOptions
from interbench_tasks.errors import BudgetError
from interbench_tasks.estimating.given import Given
from interbench_tasks.estimating.loops import LoopForecast
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.ranges import RunEstimate
from interbench_tasks.estimating.rehearsed import RehearsedForecast
from interbench_tasks.estimating.task import Task
from interbench_tasks.prices import PriceList
from interbench_tasks.protocols.feedback_calls import LoopCalls
from interbench_tasks.protocols.rehearsed import RehearsedCalls


class Estimated(Protocol):
    """What a run will take, and what that rests on."""

    @property
    def run(self) -> RunEstimate:
        """Ranges of every role."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said of the episodes that were played."""
        ...

    @property
    def to_probe(self) -> int | None:
        """Episodes to play first, so that the ranges get narrow; None where they are, or cannot."""
        ...

    @property
    def n_known(self) -> int:
        """Episodes that are counted as they were played."""
        ...

    @property
    def n_known_calls(self) -> int:
        """Their calls."""
        ...


class Forecast(Protocol):
    """What a run of one task will take. Its estimates are its own: only it puts them into words."""

    @property
    def matters(self) -> Sequence[str]:
        """The protocol's options that change the calls."""
        ...

    @property
    def playable(self) -> TaskOptions:
        """The options by which single episodes can be played ahead of the run, so that it need not play them again."""
        ...

    def estimate(self, played: Played, *, given: Given, prices: PriceList, seed: int = 0) -> Any:  # noqa: ANN401 - an `Estimated` of its own
        """What a run of the task will take."""
        ...

    def headline(self) -> str:
        """What is played, in one line."""
        ...

    def basis(self, found: Any, given: Given) -> Iterator[str]:  # noqa: ANN401 - its own `Estimated`
        """What the ranges rest on, a line each."""
        ...

    def advice(self, found: Any) -> Iterator[str]:  # noqa: ANN401 - its own `Estimated`
        """How to narrow the ranges."""
        ...


@singledispatch
def _forecast(calls: object, task: Task) -> Forecast:
    raise BudgetError(
        f"{task.options.where}: the protocol {task.protocol} does not say what calls it makes, so interbench estimate "
        "knows nothing of it\n  Play some episodes (lmms-eval --limit 20): usage.json in the run's folder says what "
        "they took"
    )


@_forecast.register
def _(calls: LoopCalls, task: Task) -> Forecast:
    return LoopForecast(calls, task)


@_forecast.register
def _(calls: RehearsedCalls, task: Task) -> Forecast:
    return RehearsedForecast(calls, task)


def forecast_of(task: Task) -> Forecast:
    """Who forecasts the task.

    Raises: BudgetError where its protocol does not say what calls it makes.
    """
    return _forecast(getattr(task.offers.protocols[task.protocol], "calls", None), task)
