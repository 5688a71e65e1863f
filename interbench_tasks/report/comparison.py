"""A comparison of runs as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from interbench_tasks.metrics.sums import ONE_CLUSTER
from interbench_tasks.report.cells import cell_from
from interbench_tasks.report.formats import Grid
from interbench_tasks.runs.compare import MOST_ALL_PAIRS, Comparison, Overlap, PairedMetric, Side


def grids_from(comparison: Comparison) -> list[Grid]:
    """What a reader sees: each run by itself, then each pair on what both have."""
    return [own_grid(comparison), *(pair_grid(comparison, overlap) for overlap in comparison.overlaps)]


def own_grid(comparison: Comparison) -> Grid:
    """Each run's own values, over all of its own episodes."""
    metrics = list(dict.fromkeys(metric for table in comparison.own.values() for metric in table))
    rows = [
        [metric, *(cell_from(table.get(metric), n=True) for table in comparison.own.values())] for metric in metrics
    ]
    units = f"{_units(comparison)} [95% interval]{_of_what(comparison.pairs)}"
    return Grid(
        title=f"{', '.join(comparison.tasks)}: each run over all of its own episodes, {units}",
        headers=["metric", *comparison.own],
        rows=rows,
    )


def pair_grid(comparison: Comparison, overlap: Overlap) -> Grid:
    """Two runs, A and B, each metric on the episodes that both are scored in."""
    pairs = [pair for pair in comparison.pairs if (pair.first.run, pair.second.run) == (overlap.first, overlap.second)]
    rows = [
        [
            pair.metric,
            str(pair.n),
            cell_from(pair.first.value, n=pair.weighted),
            cell_from(pair.second.value, n=pair.weighted),
            cell_from(pair.difference, signed=True),
            *(str(n) for side in (pair.first, pair.second) for n in (side.n_not_there, side.n_not_scored)),
        ]
        for pair in pairs
    ]
    return Grid(
        title=(
            f"A = {overlap.first}, B = {overlap.second}: {overlap.n_common} episodes in both, "
            f"{overlap.n_only_first} only in A, {overlap.n_only_second} only in B{_other_providers(overlap)}"
        ),
        headers=[
            "metric",
            "episodes" if _of_what(pairs) else "n",
            *("A", "B", "A - B", "not in B", "no score in B", "not in A", "no score in A"),
        ],
        rows=rows,
        groups=[
            ("", 1),
            (f"scored in both, {_units(comparison)} [95% interval]{_of_what(pairs)}", 4),
            ("episodes left out of A" if _of_what(pairs) else "left out of A", 2),
            ("episodes left out of B" if _of_what(pairs) else "left out of B", 2),
        ],
    )


def _of_what(pairs: Iterable[PairedMetric]) -> str:
    """What `n=` beside a value counts, where that is not episodes, as the column of episodes does."""
    return ", n = questions (or pictures)" if any(pair.weighted for pair in pairs) else ""


def _points(comparison: Comparison) -> list[float]:
    """Highest scores of the metrics that are no shares, each once."""
    every = [e.points for table in comparison.own.values() for e in table.values() if e.points is not None]
    return list(dict.fromkeys(every))


def _units(comparison: Comparison) -> str:
    return "scores in points, rates in percent" if _points(comparison) else "in percent"


def _other_providers(overlap: Overlap) -> str:
    """What the title says where feedback came from two models."""
    told = [
        f"; {f'provider {other.label!r}' if other.label else 'the provider'} is {other.first} in A, {other.second} in B"
        + ("" if other.paired else " (not paired)")
        for other in overlap.providers
    ]
    return "".join(told)


def foot_lines(comparison: Comparison) -> Iterator[str]:
    """What has to be said below the tables."""
    for metric, why in comparison.unpaired.items():
        yield f"{metric}: not compared, {why}."
    for top in _points(comparison):
        yield f"Scores of judges, with two decimals, are in points up to {top:g}, and not in percent."
    if any(pair.weighted for pair in comparison.pairs):
        yield (
            "A value with its own n counts each question that both have scored alike, as the runs' own tables do; an "
            "overall is the mean of its abilities' values. Where nothing is left out of either run, the difference is "
            "that of their own values."
        )
    alone = dict.fromkeys(pair.metric for pair in comparison.pairs if pair.difference.method == ONE_CLUSTER)
    if alone:
        yield f"{', '.join(alone)}: a difference without interval: what it rests on is of one conversation or cluster."
    yield (
        f"{len(comparison.pairs)} differences; each interval is a 95% interval of its own, none is adjusted for their "
        "number: of 20 differences that are truly zero, one is expected to leave zero outside."
    )
    yield (
        "A metric is compared on the episodes that both runs are scored in: a correction rate on the items in both "
        'test sets. "no score": a call failed there, or the item does not count there.'
    )
    if len(comparison.own) > 2:
        which = "each with each" if len(comparison.own) <= MOST_ALL_PAIRS else "each with the first"
        yield f"The runs are compared {which}; every pair has its own common episodes, not those that all runs share."


def flat_pairs(comparison: Comparison) -> Iterator[dict[str, object]]:
    """Every paired difference, one a row, for a machine; rates are shares, not percent."""
    for pair in comparison.pairs:
        low, high = pair.difference.ci95 if pair.difference.ci95 is not None else (None, None)
        yield {
            "task": ", ".join(comparison.tasks),
            "metric": pair.metric,
            "first": pair.first.run,
            "second": pair.second.run,
            "n": pair.n,
            "difference": pair.difference.value,
            "ci95_low": low,
            "ci95_high": high,
            "method": pair.difference.method,
            **_flat_side(comparison, pair, pair.first, "first"),
            **_flat_side(comparison, pair, pair.second, "second"),
        }


def _flat_side(comparison: Comparison, pair: PairedMetric, side: Side, name: str) -> dict[str, object]:
    own = comparison.own[side.run][pair.metric]
    found: dict[str, object] = {f"{name}_n": side.value.n}
    for prefix, estimate in ((name, side.value), (f"{name}_own", own)):
        low, high = estimate.ci95 if estimate.ci95 is not None else (None, None)
        found |= {f"{prefix}_value": estimate.value, f"{prefix}_ci95_low": low, f"{prefix}_ci95_high": high}
    return found | {
        f"{name}_own_n": own.n,
        f"{name}_own_unscored": own.unscored,
        f"{name}_not_there": side.n_not_there,
        f"{name}_not_scored": side.n_not_scored,
    }


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything, JSON-able."""
    return {
        "tasks": list(comparison.tasks),
        "own": {
            name: {metric: value.to_json() for metric, value in table.items()} for name, table in comparison.own.items()
        },
        "pairs": [
            {
                "metric": pair.metric,
                "first": _side_as_json(pair.first),
                "second": _side_as_json(pair.second),
                "difference": pair.difference.to_json(),
                **({"weighted": True} if pair.weighted else {}),
            }
            for pair in comparison.pairs
        ],
        "overlaps": [
            {
                "first": overlap.first,
                "second": overlap.second,
                "n_common": overlap.n_common,
                "n_only_first": overlap.n_only_first,
                "n_only_second": overlap.n_only_second,
                "other_providers": [
                    {"label": other.label, "first": other.first, "second": other.second, "paired": other.paired}
                    for other in overlap.providers
                ],
            }
            for overlap in comparison.overlaps
        ],
        "unpaired": dict(comparison.unpaired),
        "warnings": list(comparison.warnings),
        "notes": list(foot_lines(comparison)),
    }


def _side_as_json(side: Side) -> dict[str, Any]:
    return {
        "run": side.run,
        "value": side.value.to_json(),
        "n_not_there": side.n_not_there,
        "n_not_scored": side.n_not_scored,
    }
