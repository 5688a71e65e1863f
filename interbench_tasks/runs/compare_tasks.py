"""Runs of several tasks, compared task by task; what fits no other run, or no metric that was asked for, is named."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from interbench_tasks.errors import InterbenchError
from interbench_tasks.runs.comparable import refuse_doubles
from interbench_tasks.runs.compare import Comparison, compared, refuse_unknown, tables_of
from interbench_tasks.runs.score import ScoredRun


def comparisons_from(
    runs: Sequence[ScoredRun], patterns: Sequence[str] = (), *, pair_labels: bool = False
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """The runs of each task compared; where no two are of one task, all of them with each other.

    Returns: the comparisons, and a sentence for each run, or task, that is in none.
    Raises: InterbenchError as `compared` does, but that a pattern only has to fit a metric of one of the tasks.
    """
    refuse_doubles(runs)
    by_task: dict[str, list[ScoredRun]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run)
    groups = [own for own in by_task.values() if len(own) > 1]
    if not groups:
        _refuse_one_of_each(runs)
        return (compared(runs, patterns, pair_labels=pair_labels),), ()
    alone = [own[0] for own in by_task.values() if len(own) == 1]
    told = tuple(f"{run.folder}: is left out, no other run here is of the task {run.task}" for run in alone)
    if not patterns or len(groups) == 1:
        return tuple(compared(own, patterns, pair_labels=pair_labels) for own in groups), told
    made, unfit = _compared_by_task(groups, patterns, pair_labels=pair_labels)
    return made, (*told, *unfit)


def _compared_by_task(
    groups: Sequence[Sequence[ScoredRun]], patterns: Sequence[str], *, pair_labels: bool
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """Each task's runs by the patterns that fit it, and a sentence for each task that none fits."""
    tables = [tables_of(own) for own in groups]
    refuse_unknown([table for own in tables for table in own.values()], patterns)
    made: list[Comparison] = []
    unfit: list[str] = []
    for own, known in zip(groups, tables, strict=True):
        names = {metric for table in known.values() for metric in table}
        fitting = [pattern for pattern in patterns if any(fnmatchcase(metric, pattern) for metric in names)]
        if fitting:
            made.append(compared(own, fitting, pair_labels=pair_labels, tables=known))
        else:
            asked = ", ".join(patterns)
            unfit.append(f"{own[0].task}: is left out, --metric {asked} fits no metric of it ({len(own)} runs)")
    return tuple(made), tuple(unfit)


def _refuse_one_of_each(runs: Sequence[ScoredRun]) -> None:
    """Refuse runs of tasks that have nothing in common. Raises: InterbenchError naming the tasks."""
    if len({run.manifest["metrics"] for run in runs}) > 1:
        tasks = ", ".join(f"{run.task} ({run.folder})" for run in runs)
        raise InterbenchError(f"compare needs two runs of a task at least; here is one run of each task: {tasks}")
