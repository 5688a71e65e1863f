"""Runs of one task as a ranking, and category by category.

Each metric is ranked by the mean of the episodes' own values (`MetricSet.contributions`) over the episodes that all
runs have; an episode that does not count for a run, or that failed there, is left out of that run's mean alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.ranking import Ranking, across_models, rankings_from
from interbench_tasks.runs.comparable import Key, by_key, names_of
from interbench_tasks.runs.compare import Comparison
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


def ranked_runs(comparison: Comparison, runs: Sequence[ScoredRun]) -> RankedRuns:
    """The compared runs, ranked by each metric that was compared.

    Args: runs = those of the comparison.
    Raises: InterbenchError where no episode is in all runs.
    """
    named = {name: by_key(run) for name, run in zip(names_of(runs), runs, strict=True)}
    common = sorted(set.intersection(*(set(rows) for rows in named.values())))
    if not common:
        raise InterbenchError("no episode is in all of these runs, so they have no ranking; compare fewer of them")
    estimates = {m: [own[m] for own in comparison.own.values() if m in own] for m in comparison.metrics}
    points = {m: found[0].points for m, found in estimates.items() if found and found[0].points is not None}
    values = _values(comparison, common, points)
    unranked = dict(_unranked(values, estimates))
    ranked = {metric: own for metric, own in values.items() if metric not in unranked}
    clusters = _clusters(next(iter(named.values())), common)
    found = rankings_from(ranked, list(named), clusters=clusters)
    unranked |= {metric: "it is there in one run only" for metric in ranked if metric not in found}
    left_out = {name: len(rows) - len(common) for name, rows in named.items() if len(rows) > len(common)}
    notes = [f"{name}: {n} episodes that not all runs have are left out of the ranking" for name, n in left_out.items()]
    notes += _other_means(ranked, comparison) if not left_out else []
    return RankedRuns(
        tasks=comparison.tasks,
        runs=tuple(named),
        n_common=len(common),
        rankings=tuple(_in_points(found[metric], points.get(metric)) for metric in found),
        points=points,
        across=_across({metric: ranked[metric] for metric in found}, clusters, len(named)),
        unranked=unranked,
        notes=tuple(notes),
    )


def categories_of(runs: Sequence[ScoredRun], metrics: Sequence[str]) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Category -> run -> metric -> value over the run's episodes of that category; {} where there are no categories."""
    found: dict[str, dict[str, dict[str, Estimate]]] = {}
    for name, run in zip(names_of(runs), runs, strict=True):
        by_category: dict[str, list[Mapping[str, object]]] = {}
        for summary in run.summaries:
            if summary.get("category") is not None:
                by_category.setdefault(str(summary["category"]), []).append(summary)
        for category, rows in by_category.items():
            table = run.metric_set.table(rows)
            found.setdefault(category, {})[name] = {metric: table[metric] for metric in metrics if metric in table}
    return dict(sorted(found.items()))


def _values(
    comparison: Comparison, common: Sequence[Key], points: Mapping[str, float]
) -> dict[str, NDArray[np.float64]]:
    """Metric -> each episode's own value in each run, [runs, episodes], in points; NaN where it does not count."""
    by_run = [own.values[[own.row_of[key] for key in common]] for own in comparison.values.values()]
    stacked = np.stack(by_run)  # [runs, episodes, metrics]; scores as shares of the highest one
    return {metric: stacked[..., place] * points.get(metric, 1.0) for place, metric in enumerate(comparison.metrics)}


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


def _other_means(ranked: Mapping[str, NDArray[np.float64]], comparison: Comparison) -> list[str]:
    """Metrics whose own value is no plain mean over episodes."""
    found = []
    for metric, values in ranked.items():
        for own, row in zip(comparison.own.values(), values, strict=True):
            if metric in own and not np.isnan(row).all() and abs(np.nanmean(row) - own[metric].value) > _SAME:
                found.append(f"{metric}: ranked by the mean over episodes, which is not the metric's own value")
                break
    return found


def _in_points(ranking: Ranking, points: float | None) -> Ranking:
    steps = [replace(step, difference=replace(step.difference, points=points)) for step in ranking.steps]
    return replace(ranking, steps=tuple(steps))


def _across(ranked: Mapping[str, NDArray[np.float64]], clusters: Sequence[str], n_runs: int) -> dict[str, Estimate]:
    if n_runs < 3:
        return {}
    metrics = dict(list(ranked.items())[:MOST_CORRELATED])
    pairs = list(combinations(metrics, 2))
    if {"dp", "se", "pcq"} <= metrics.keys():
        metrics[QUALITY] = metrics["dp"] / 2 + metrics["se"] / 2
        pairs.append((QUALITY, "pcq"))
    return across_models(metrics, pairs, clusters=clusters)
