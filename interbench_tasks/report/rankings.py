"""Rankings, categories and panels as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.ranking import Ranking
from interbench_tasks.metrics.sums import ONE_CLUSTER
from interbench_tasks.report.cells import ABSENT, cell_from, flat_from, shown_value
from interbench_tasks.report.formats import Grid
from interbench_tasks.runs.ranked import RankedRuns

Categories = Mapping[str, Mapping[str, Mapping[str, Estimate]]]
"""Category -> run -> metric -> value."""


def ranking_grids(ranked: RankedRuns) -> list[Grid]:
    """A table for each metric, and one of how they go together over the runs."""
    grids = [ranking_grid(ranking, ranked) for ranking in ranked.rankings]
    if ranked.across:
        rows = [[name, f"{one.value:z.2f}", _ends(one), str(one.n)] for name, one in ranked.across.items()]
        title = "Across the runs: coefficients of variation (cv), correlations (r) [95% interval over items]"
        grids.append(Grid(title=title, headers=["", "value", "interval", "runs"], rows=rows))
    return grids


def ranking_grid(ranking: Ranking, ranked: RankedRuns) -> Grid:
    """Runs by one metric, each with the step to the next one."""
    points = ranked.points.get(ranking.metric)
    rows = []
    for place, row in enumerate(ranking.models):
        step = ranking.steps[place] if place < len(ranking.steps) else None
        rows.append(
            [
                row.model,
                str(row.rank),
                f"{row.best} .. {row.worst}",
                shown_value(row.value, points),
                _n(row.n, ranked.unscored.get(ranking.metric, {}).get(row.model, 0)),
                *(
                    [""] * 5
                    if step is None
                    else [
                        cell_from(step.difference, signed=True),
                        _p(step.p_bootstrap),
                        _p(step.p_bootstrap_holm),
                        _p(step.p_mcnemar),
                        _p(step.p_mcnemar_holm),
                    ]
                ),
            ]
        )
    unit = "in percent" if points is None else f"in points up to {points:g}"
    return Grid(
        title=(
            f"{', '.join(ranked.tasks)}: ranking by {ranking.metric}, the largest first, {unit}; {ranked.n_common} "
            "episodes that all runs have"
        ),
        headers=["run", "rank", "95% of ranks", "value", "n", "difference", "p", "Holm", "McNemar", "Holm"],
        rows=rows,
        groups=[("", 5), ("to the next one [95% interval]", 5)],
    )


def category_grids(categories: Categories, metrics: Sequence[str], *, tasks: Sequence[str]) -> list[Grid]:
    """A table for each metric: categories by runs."""
    runs = list(dict.fromkeys(run for own in categories.values() for run in own))
    grids = []
    for metric in metrics:
        rows = [
            [category, *(cell_from(own.get(run, {}).get(metric), n=True) for run in runs)]
            for category, own in categories.items()
        ]
        rows = [row for row in rows if set(row[1:]) != {ABSENT}]
        if rows:
            title = f"{', '.join(tasks)}: {metric} by category [95% interval]"
            grids.append(Grid(title=title, headers=["category", *runs], rows=rows))
    return grids


def ranking_lines(ranked: RankedRuns) -> Iterator[str]:
    """What has to be said below the rankings."""
    for metric, why in ranked.unranked.items():
        yield f"{metric}: not ranked, {why}."
    yield from (f"{note}." for note in ranked.notes)
    if any(n for own in ranked.unscored.values() for n in own.values()):
        what = "questions of the episodes" if ranked.weighted else "episodes"
        yield (
            f"(u k): k more {what} that all runs have are unscored in this run: calls or judges failed there. A step "
            "is the difference of the two values shown; --show pairs has it over what both runs have scored."
        )
    if ranked.weighted:
        yield (
            "n counts the questions (or pictures) of these episodes; each weighs alike, as in the runs' own tables. An "
            "overall is the mean of its abilities' values. Resampled are episodes, with all their questions."
        )
    alone = [one.metric for one in ranked.rankings if any(step.difference.method == ONE_CLUSTER for step in one.steps)]
    if alone:
        yield (
            f"{', '.join(alone)}: a step without interval, and with p = 1: a part of it rests on one conversation or "
            "cluster, so nobody knows how much it varies."
        )
    yield (
        "Rank 1 is the largest value, whether that is good or not. 95% of ranks: all true ranks lie in their intervals "
        "at once. p: two-sided, paired bootstrap over items; McNemar: exact, of values 0 and 1 on independent items. "
        "Holm: adjusted for the steps of this ranking. Steps were chosen by the same data; the rank intervals were not."
    )


def flat_ranking(ranked: RankedRuns) -> Iterator[dict[str, object]]:
    """Every run of every ranking, one a row, with the step to the next one; values are shares or points."""
    for ranking in ranked.rankings:
        for place, row in enumerate(ranking.models):
            flat: dict[str, object] = {
                "task": ", ".join(ranked.tasks),
                "metric": ranking.metric,
                "run": row.model,
                "rank": row.rank,
                "rank_best": row.best,
                "rank_worst": row.worst,
                "value": row.value,
                "n": row.n,
                "unscored": ranked.unscored.get(ranking.metric, {}).get(row.model, 0),
            }
            if place < len(ranking.steps):
                step = ranking.steps[place]
                low, high = step.difference.ci95 if step.difference.ci95 is not None else (None, None)
                flat |= {
                    "next": step.below,
                    "difference": step.difference.value,
                    "difference_ci95_low": low,
                    "difference_ci95_high": high,
                    "n_both": step.difference.n,
                    "p_bootstrap": step.p_bootstrap,
                    "p_bootstrap_holm": step.p_bootstrap_holm,
                    "p_mcnemar": step.p_mcnemar,
                    "p_mcnemar_holm": step.p_mcnemar_holm,
                }
            yield flat


def flat_categories(categories: Categories, tasks: Sequence[str]) -> Iterator[dict[str, object]]:
    """Every category of every run, one a row."""
    for category, by_run in categories.items():
        for run, own in by_run.items():
            flat: dict[str, object] = {"task": ", ".join(tasks), "category": category, "run": run}
            for metric, estimate in own.items():
                flat |= flat_from(estimate, metric)
            yield flat


def ranked_as_json(ranked: RankedRuns) -> dict[str, Any]:
    """Everything, JSON-able."""
    return {
        "n_common": ranked.n_common,
        "rankings": [
            {
                "metric": ranking.metric,
                "n_items": ranking.n_items,
                "n_clusters": ranking.n_clusters,
                "left_out": list(ranking.left_out),
                "runs": [
                    {**asdict(row), "unscored": ranked.unscored.get(ranking.metric, {}).get(row.model, 0)}
                    for row in ranking.models
                ],
                "steps": [{**asdict(step), "difference": step.difference.to_json()} for step in ranking.steps],
            }
            for ranking in ranked.rankings
        ],
        "across": {name: one.to_json() for name, one in ranked.across.items()},
        "unranked": dict(ranked.unranked),
        "notes": list(ranking_lines(ranked)),
    }


def categories_as_json(categories: Categories) -> dict[str, Any]:
    """Category -> run -> metric -> estimate, JSON-able."""
    return {
        category: {run: {metric: one.to_json() for metric, one in own.items()} for run, own in by_run.items()}
        for category, by_run in categories.items()
    }


def _n(n: int, unscored: int) -> str:
    return f"{n} (u {unscored})" if unscored else str(n)


def _p(p: float | None) -> str:
    if p is None:
        return ABSENT
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _ends(estimate: Estimate) -> str:
    return f"{estimate.ci95.low:z.2f} .. {estimate.ci95.high:z.2f}" if estimate.ci95 is not None else ABSENT
