"""A comparison of runs as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.formats import Grid
from interbench_tasks.runs.compare import Comparison


def own_grid(comparison: Comparison) -> Grid:
    """Each run's own values, over all of its own episodes."""
    metrics = list(dict.fromkeys(metric for table in comparison.own.values() for metric in table))
    rows = [
        [metric, *[_own(table.get(metric)) for table in comparison.own.values()]] for metric in metrics
    ]  # fmt: skip
    title = "Each run over all of its own episodes, in percent [95% interval] n"
    return Grid(title=title, headers=["metric", *comparison.own], rows=rows)


def pairs_grid(comparison: Comparison) -> Grid:
    """The paired differences, on the episodes that both runs have the metric on."""
    rows = [
        [
            pair.metric,
            pair.first,
            pair.second,
            str(pair.n),
            _percent(pair.first_value),
            _percent(pair.second_value),
            _difference(pair.difference),
            str(pair.only_first),
            str(pair.only_second),
        ]
        for pair in comparison.pairs
    ]
    headers = ["metric", "A", "B", "n in both", "A %", "B %", "A - B [95%]", "left out of A", "left out of B"]
    return Grid(title="Paired, on the episodes that are scored in both", headers=headers, rows=rows)


def foot_lines(comparison: Comparison) -> Iterator[str]:
    """What has to be said below the tables."""
    for (first, second), (only_first, only_second) in comparison.missing.items():
        if only_first or only_second:
            yield f"Only {first} has {only_first} episodes, only {second} has {only_second}; these are left out."
    yield (
        f"{len(comparison.pairs)} comparisons; each interval is its own 95%, none is adjusted for their number. "
        "A metric counts where it is scored: correction rates on the items in both test sets."
    )


def flat_pairs(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Every paired difference, one a row, for a machine."""
    for pair in comparison.pairs:
        low, high = pair.difference.ci95 or (None, None)
        yield {
            "metric": pair.metric,
            "first": pair.first,
            "second": pair.second,
            "n": pair.n,
            "first_value": pair.first_value,
            "second_value": pair.second_value,
            "difference": pair.difference.value,
            "ci95_low": low,
            "ci95_high": high,
            "method": pair.difference.method,
            "only_first": pair.only_first,
            "only_second": pair.only_second,
        }


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything, JSON-able."""
    return {
        "own": {
            name: {metric: value.to_json() for metric, value in table.items()} for name, table in comparison.own.items()
        },
        "pairs": list(flat_pairs(comparison)),
        "missing": [
            {"first": first, "second": second, "only_first": counts[0], "only_second": counts[1]}
            for (first, second), counts in comparison.missing.items()
        ],
        "warnings": list(comparison.warnings),
    }


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _own(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    interval = f" [{_percent(estimate.ci95.low)}, {_percent(estimate.ci95.high)}]" if estimate.ci95 else ""
    unscored = f" (u {estimate.unscored})" if estimate.unscored else ""
    return f"{_percent(estimate.value)}{interval} n={estimate.n}{unscored}"


def _difference(estimate: Estimate) -> str:
    interval = f" [{_percent(estimate.ci95.low)}, {_percent(estimate.ci95.high)}]" if estimate.ci95 else ""
    return f"{100 * estimate.value:+.1f}{interval}"
