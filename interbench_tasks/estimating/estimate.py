"""A task, its models and what is known of them -> what a run will take."""

from __future__ import annotations

from interbench_tasks.estimating.forecasts import Estimated, forecast_of
from interbench_tasks.estimating.given import Given
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.task import Task
from interbench_tasks.prices import PriceList


def estimate(task: Task, played: Played, *, given: Given, prices: PriceList, seed: int = 0) -> Estimated:
    """What a run of the task will take.

    Raises: BudgetError where its protocol does not say what calls it makes, or `given` says what the task does not ask.
    """
    found: Estimated = forecast_of(task).estimate(played, given=given, prices=prices, seed=seed)
    return found
