"""A few episodes of a task, played ahead of its run: they tell how often things happen, and the ledger keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from interbench_tasks import settings
from interbench_tasks.engine import BatchedModel
from interbench_tasks.errors import BudgetError
from interbench_tasks.estimating.estimate import estimate
from interbench_tasks.estimating.forecasts import Estimated, forecast_of
from interbench_tasks.estimating.given import Given
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.prompts import sampled
from interbench_tasks.estimating.task import UNNAMED, Task
from interbench_tasks.prices import PriceList
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.runs.folder import new_run_id, read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.task_roles import HARNESS_BACKEND, Role, backend_from


def probed_estimate(
    task: Task, played: Played, *, n: int | None, given: Given, prices: PriceList, manager: pluggy.PluginManager
) -> Estimated:
    """An estimate that rests on `n` episodes of the run, played now in a random order; those of `played` count.

    Args: n = None: none, but where all roles are simulations, which costs nothing, as many as it takes until the ranges
        are narrow enough.
    Raises: BudgetError where the receiver is a model of the harness, which only lmms-eval can load; as `play_run`.
    """
    found = estimate(task, played, given=given, prices=prices)
    while (wanted := n if n is not None else found.to_probe if task.simulated else None) is not None:
        own = {record.doc_id for record in played.records} if played.same else set()
        missing = [doc_id for doc_id in sampled(task.rows, wanted) if doc_id not in own]
        if not missing:
            break
        before = played.records if played.same else ()
        played = Played(records=(*before, *_play(task, missing, manager)))
        found = estimate(task, played, given=given, prices=prices)
        if n is not None:
            break
    return found


def _play(task: Task, rows: Sequence[int], manager: pluggy.PluginManager) -> list[EpisodeRecord]:
    if task.receiver.words.backend == HARNESS_BACKEND:
        raise _unloadable(task.receiver)
    if task.receiver.words.backend == UNNAMED:
        raise BudgetError("--probe asks the receiver: name it with --receiver, e.g. --receiver openai:gpt-4o")
    run_id = new_run_id("estimate")
    plan = RunPlan(
        task=task.name,
        options=forecast_of(task).playable,
        data=task.data,
        wanted=[(doc_id, 0) for doc_id in sorted(rows)],
        n_total=len(rows),
        run_id=run_id,
        folder=settings.runs_folder() / "interbench" / run_id / task.name,
    )
    receiver = backend_from(task.receiver, task.offers)
    play_run(plan, receiver=receiver, manager=manager, offers=task.offers, harness_model=_refused)
    return list(read_records(plan.folder))


def _refused(role: Role) -> BatchedModel:
    raise _unloadable(role)


def _unloadable(role: Role) -> BudgetError:
    return BudgetError(
        f"{role.named_in}: --probe cannot load a model of the harness; play some episodes with lmms-eval ... --limit "
        "20, and give the run's folder with --from"
    )
