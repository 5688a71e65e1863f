"""Runs of one task as a ranking, and category by category: both over the episodes that all runs have.

Each metric is ranked by the mean of the episodes' own values (`MetricSet.contributions`); an episode that does not
count for a run, or that failed there, is left out of that run's mean alone, and is counted as unscored. A metric that
is no mean over episodes (`runs.parts`: scores of conversations, `overall`, PCQ) is ranked by what its run's table shows
over these episodes; the episodes are resampled, with all the questions that they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.errors import InterbenchError
from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.composed import Part, quality
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.ranking import Ranking, across_models, rankings_from
from interbench_tasks.runs.comparable import Key, by_key, names_of
from interbench_tasks.runs.compare import Comparison
from interbench_tasks.runs.parts import parts_over
from interbench_tasks.runs.score import ScoredRun

QUALITY = "q"
"""dp/2 + se/2 of MMPCBench, over the items that were detected: how good, whatever the rate."""
MOST_CORRELATED = 4
"""Metrics that are correlated with each other, the first ones; all pairs of many would be a table of their own."""
_SAME = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRuns:
    """The runs of one task, ranked."""

    tasks: tuple[str, ...]
    runs: tuple[str, ...]
    n_common: int
    """Episodes that all runs have."""
    rankings: tuple[Ranking, ...]
    """One a metric; differences of scores are in points."""
    points: Mapping[str, float]
    """Metric -> highest score, of those that are scores and no shares."""
    across: Mapping[str, Estimate]
    """`cv.<metric>` and `r.<first>.<second>` over the runs; of three runs and more."""
    unranked: Mapping[str, str]
    """Metric that was asked for -> why it has no ranking."""
    notes: tuple[str, ...]
    unscored: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Metric -> run -> common episodes (`weighted`: questions) that it leaves out, because a call or judges failed."""
    weighted: bool = False
    """Whether `n` counts what episodes weigh by: their questions."""


def ranked_runs(comparison: Comparison, runs: Sequence[ScoredRun]) -> RankedRuns:
    """The compared runs, ranked by each metric that was compared.

    Args: runs = those of the comparison.
    Raises: InterbenchError where no episode is in all runs.
    """
    named = {name: by_key(run) for name, run in zip(names_of(runs), runs, strict=True)}
    common = sorted(set.intersection(*(set(rows) for rows in named.values())))
    if not common:
        raise InterbenchError("no episode is in all of these runs, so they have no ranking; compare fewer of them")
    left_out = {name: len(rows) - len(common) for name, rows in named.items() if len(rows) > len(common)}
    tables = _tables(comparison, runs, named, common, changed=bool(left_out))
    estimates = {m: [own[m] for own in tables.values() if m in own] for m in comparison.metrics}
    points = {m: found[0].points for m, found in estimates.items() if found and found[0].points is not None}
    composed = comparison.composed
    parts = _parts(comparison, common)
    values = {m: own for m, own in _values(comparison, common, points).items() if m not in composed}
    unranked = dict(_unranked(values, estimates))
    plain = {metric: own for metric, own in values.items() if metric not in unranked}
    told = [metric for metric in comparison.metrics if metric not in unranked]
    clusters = _clusters(next(iter(named.values())), common)
    weighted = any(own.parts.weighted for own in comparison.values.values())
    found = rankings_from(plain, list(named), further=parts, composed=composed, of=told, clusters=clusters)
    unranked |= {metric: "fewer than two runs have it" for metric in told if metric not in found}
    notes = [f"{name}: {n} episodes that not all runs have are left out of the ranking" for name, n in left_out.items()]
    return RankedRuns(
        tasks=comparison.tasks,
        runs=tuple(named),
        n_common=len(common),
        rankings=tuple(_in_points(ranking, points.get(metric)) for metric, ranking in found.items()),
        points=points,
        across=_across(plain, parts, composed, list(found), clusters, len(named)),
        unranked=unranked,
        notes=(*notes, *_lacking(found), *_other_means(found, tables)),
        unscored={m: {name: own[m].unscored for name, own in tables.items() if m in own} for m in found},
        weighted=weighted,
    )


def _tables(
    comparison: Comparison,
    runs: Sequence[ScoredRun],
    named: Mapping[str, Mapping[Key, Mapping[str, object]]],
    common: Sequence[Key],
    *,
    changed: bool,
) -> Mapping[str, Mapping[str, Estimate]]:
    """Run -> metric -> what the run's own table has of it, over the common episodes."""
    if not changed:
        return comparison.own
    return {
        name: run.metric_set.table([rows[key] for key in common])
        for (name, rows), run in zip(named.items(), runs, strict=True)
    }


def common_episodes(runs: Sequence[ScoredRun]) -> dict[str, list[Mapping[str, object]]]:
    """Run -> its summaries of the episodes that all runs have."""
    named = {name: by_key(run) for name, run in zip(names_of(runs), runs, strict=True)}
    common = sorted(set.intersection(*(set(rows) for rows in named.values())))
    return {name: [rows[key] for key in common] for name, rows in named.items()}


def categories_of(
    runs: Sequence[ScoredRun], metrics: Sequence[str]
) -> tuple[dict[str, dict[str, dict[str, Estimate]]], tuple[str, ...]]:
    """Category -> run -> metric -> value, over the episodes of that category that all runs have.

    Returns: {} where there are no categories; and a sentence for each run of which episodes are left out.
    Raises: InterbenchError where no episode is in all runs.
    """
    found: dict[str, dict[str, dict[str, Estimate]]] = {}
    common = common_episodes(runs)
    if not any(common.values()):
        raise InterbenchError("no episode is in all of these runs, so they have no common categories; compare fewer")
    notes = []
    for (name, rows), run in zip(common.items(), runs, strict=True):
        by_category: dict[str, list[Mapping[str, object]]] = {}
        for summary in rows:
            if summary.get("category") is not None:
                by_category.setdefault(str(summary["category"]), []).append(summary)
        for category, own in by_category.items():
            table = run.metric_set.table(own)
            found.setdefault(category, {})[name] = {metric: table[metric] for metric in metrics if metric in table}
        n_out = len(run.summaries) - len(rows)
        if n_out:
            notes.append(f"{name}: {n_out} episodes that not all runs have are left out of the categories")
    return dict(sorted(found.items())), tuple(notes)


def _values(
    comparison: Comparison, common: Sequence[Key], points: Mapping[str, float]
) -> dict[str, NDArray[np.float64]]:
    """Metric -> each episode's own value in each run, [runs, episodes], in points; NaN where it does not count."""
    by_run = [own.values[[own.row_of[key] for key in common]] for own in comparison.values.values()]
    stacked = np.stack(by_run)  # [runs, episodes, metrics]; scores as shares of the highest one
    return {metric: stacked[..., place] * points.get(metric, 1.0) for place, metric in enumerate(comparison.metrics)}


def _parts(comparison: Comparison, common: Sequence[Key]) -> dict[str, Part]:
    """What metrics that are no mean over episodes are made of."""
    rows = [[own.row_of[key] for key in common] for own in comparison.values.values()]
    return parts_over([own.parts for own in comparison.values.values()], rows, list(comparison.composed.values()))


def _clusters(rows: Mapping[Key, Mapping[str, object]], common: Sequence[Key]) -> list[str]:
    """What episodes share that are not independent; repeats of an item are not."""
    told = [rows[key].get("cluster") for key in common]
    return [f"id {key[0]}" if own is None else f"cluster {own}" for key, own in zip(common, told, strict=True)]


def _unranked(
    values: Mapping[str, NDArray[np.float64]], estimates: Mapping[str, Sequence[Estimate]]
) -> Iterator[tuple[str, str]]:
    for metric, own in values.items():
        if any(estimate.method == "count" for estimate in estimates[metric]):
            yield metric, "it is a count"
        elif np.isnan(own).all():
            yield metric, "it is no mean over episodes"


def _lacking(found: Mapping[str, Ranking]) -> list[str]:
    """Runs that a ranking leaves out."""
    return [
        f"{metric}: {', '.join(ranking.left_out)} left out of the ranking, without a value on these episodes"
        for metric, ranking in found.items()
        if ranking.left_out
    ]


def _other_means(found: Mapping[str, Ranking], tables: Mapping[str, Mapping[str, Estimate]]) -> list[str]:
    """Metrics whose value over the common episodes is another one than what is ranked."""
    told = []
    for metric, ranking in found.items():
        known = [(row.value, tables[row.model][metric].value) for row in ranking.models if metric in tables[row.model]]
        if any(abs(value - own) > _SAME for value, own in known):
            told.append(f"{metric}: ranked by the mean over episodes, which is not the metric's own value")
    return told


def _in_points(ranking: Ranking, points: float | None) -> Ranking:
    steps = [replace(step, difference=replace(step.difference, points=points)) for step in ranking.steps]
    return replace(ranking, steps=tuple(steps))


def _across(
    plain: Mapping[str, NDArray[np.float64]],
    parts: Mapping[str, Part],
    composed: Mapping[str, Composed],
    found: Sequence[str],
    clusters: Sequence[str],
    n_runs: int,
) -> dict[str, Estimate]:
    """Args: found = the metrics that have a ranking, in the order to show; plain, parts = their values, or parts'."""
    if n_runs < 3:
        return {}
    told = list(found[:MOST_CORRELATED])
    pairs = list(combinations(told, 2))
    further = dict(composed)
    if {"dp", "se"} <= {*plain, *parts} and "pcq" in told:
        further[QUALITY] = Composed(parts=("dp", "se"), make=quality)
        told.append(QUALITY)
        pairs.append((QUALITY, "pcq"))
    return across_models(plain, pairs, further=parts, composed=further, of=told, clusters=clusters)
