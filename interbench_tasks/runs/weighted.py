"""Two runs in the metrics that are ratios of sums: what is compared is what the runs report, on what both have scored.

Formula: over the episodes i that both runs count a metric in, first = sum_i(v_1i) / sum_i(w_1i), second likewise, the
difference first - second; (v, w) = `WeightedMetrics.parts`, so a conversation of ten questions weighs ten. Where the
metrics tell of units (`UnitMetrics`: questions), the sums are over those that both runs have scored. A composite
(`overall`) is the unweighted mean of its parts' differences, and needs all of them. Intervals: `metrics.sums`, whole
clusters resampled for both runs together.
Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.hookspecs import WeightedMetrics
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.sums import PairedSums, Sums, paired_from_sums
from interbench_tasks.runs.comparable import by_key, key_of
from interbench_tasks.runs.score import ScoredRun

Counted = NDArray[np.bool_]
"""bool [rows]: the episodes that a metric is counted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedValues:
    """A run's episodes with their sums and weights, in the order of `EpisodeValues`."""

    totals: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Metric -> float64 [rows]; 0 where the episode is not counted."""
    weights: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Metric -> float64 [rows], >= 0."""
    composites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Metric -> those whose unweighted mean it is."""
    units: Sequence[Mapping[str, Mapping[str, tuple[float, float]]]] = ()
    """Of each row what its units add: metric -> unit -> (value, weight); empty where nobody knows."""

    @classmethod
    def from_run(cls, run: ScoredRun) -> WeightedValues:
        """What the run's metric set tells; empty where its metrics have no weights."""
        metric_set = run.metric_set
        if not isinstance(metric_set, WeightedMetrics):
            return cls()
        found = by_key(run)
        rows = [metric_set.parts(summary) for summary in found.values()]
        units = dict(zip(map(key_of, run.summaries), run.units, strict=True)) if run.units else {}
        names = list(dict.fromkeys(name for own in rows for name in own))
        return cls(
            totals={name: np.array([own.get(name, (0.0, 0.0))[0] for own in rows]) for name in names},
            weights={name: np.array([own.get(name, (0.0, 0.0))[1] for own in rows]) for name in names},
            composites={name: tuple(parts) for name, parts in metric_set.composites().items()},
            units=[units[key] for key in found] if units else (),
        )

    def scored_also_in(
        self, other: WeightedValues, rows: tuple[Sequence[int], Sequence[int]], metrics: Collection[str]
    ) -> WeightedValues:
        """The same, of the common episodes only the units that the other run has scored too.

        Args: rows = the common episodes' rows in this run and in the other; metrics = those that matter.
        """
        if not self.units or not other.units:
            return self
        totals, weights = dict(self.totals), dict(self.weights)
        for name in dict.fromkeys(part for metric in metrics for part in self.parts_of(metric)):
            if name not in totals:
                continue
            totals[name], weights[name] = totals[name].copy(), weights[name].copy()
            for row, of_other in zip(*rows, strict=True):
                there = other.units[of_other].get(name, {})
                both = [unit for one, unit in self.units[row].get(name, {}).items() if one in there]
                totals[name][row] = math.fsum(value for value, _ in both)
                weights[name][row] = math.fsum(weight for _, weight in both)
        return replace(self, totals=totals, weights=weights)

    def __contains__(self, metric: str) -> bool:
        """Whether the metric is a ratio of sums, or a mean of such."""
        return metric in self.totals or metric in self.composites

    def parts_of(self, metric: str) -> tuple[str, ...]:
        """The ratios of sums that a metric is made of: itself, where it is no composite."""
        return self.composites.get(metric, (metric,))

    def counted(self, metric: str, n_rows: int) -> list[Counted]:
        """The episodes that are counted in each part of a metric."""
        nowhere = np.zeros(n_rows)
        return [self.weights.get(part, nowhere) > 0 for part in self.parts_of(metric)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What the values of a metric are."""

    graded: bool
    """Whether they are scores or fractions, not successes."""
    points: float | None = None
    """The highest score; None: 1."""

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> Scale:
        """Args: estimates = the metric in the tables of the runs that have it."""
        points = [estimate.points for estimate in estimates if estimate.points is not None]
        return cls(graded=any(own.count is None for own in estimates), points=points[0] if points else None)


def weighted_pairs(
    first: WeightedValues,
    second: WeightedValues,
    rows: tuple[Sequence[int], Sequence[int]],
    metrics: Collection[str],
    scales: Mapping[str, Scale],
    clusters: Sequence[str],
) -> dict[str, PairedSums]:
    """Those of `metrics` that are ratios of sums in both runs, each paired; absent where no episode is.

    Args: rows = the common episodes' rows in each run; clusters = of these episodes.
    """
    wanted = [metric for metric in metrics if metric in first and metric in second]
    means = {m: first.composites[m] for m in wanted if m in first.composites}
    names = dict.fromkeys(part for metric in wanted for part in first.parts_of(metric))
    names = dict.fromkeys(name for name in names if name in first.totals and name in second.totals)
    columns: tuple[dict[str, Sums], dict[str, Sums]] = ({}, {})
    for name in names:
        totals, weights = (
            [of_run[name][list(own)] for of_run, own in zip(both, rows, strict=True)]
            for both in ((first.totals, second.totals), (first.weights, second.weights))
        )
        scale = scales.get(name, Scale(graded=True))
        high = scale.points if scale.points is not None else 1.0
        low = -high if min(own.min(initial=0) for own in totals) < 0 else 0.0
        for side, own, weight in zip(columns, totals, weights, strict=True):
            side[name] = Sums(
                totals=own,
                squares=own**2,  # read only where each row is one question
                counted=weight,
                span=Interval(low, high),
                graded=scale.graded,
                points=scale.points,
            )
    found = paired_from_sums(*columns, clusters, means=means)
    return {metric: found[metric] for metric in wanted if metric in found}


def left_out(
    own: WeightedValues, other: WeightedValues, rows: tuple[Sequence[int], Sequence[int]], metric: str, n_rows: int
) -> tuple[int, int]:
    """Episodes counted in a run's metric and left out of a pair: not there in the other run; there, and not counted.

    An episode that is left out of one part of a composite is left out.
    Args: rows = the common episodes' rows in this run and in the other; n_rows = all of this run.
    """
    shared = np.zeros(n_rows, dtype=np.bool_)
    shared[list(rows[0])] = True
    n_other = max(rows[1], default=-1) + 1
    gone, lacking = np.zeros(n_rows, dtype=np.bool_), np.zeros(n_rows, dtype=np.bool_)
    nowhere = np.zeros(n_other)
    for part, counted in zip(own.parts_of(metric), own.counted(metric, n_rows), strict=True):
        there = np.zeros(n_rows, dtype=np.bool_)
        there[list(rows[0])] = other.weights.get(part, nowhere)[list(rows[1])] > 0
        gone |= counted & ~shared
        lacking |= counted & shared & ~there
    return int(gone.sum()), int(lacking.sum())


def unpaired_parts(
    couples: Sequence[tuple[WeightedValues, WeightedValues]],
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
    metric: str,
) -> tuple[str, ...]:
    """The parts of a metric that no couple of runs has an episode in common in. Args: rows as in `weighted_pairs`."""

    def paired(part: str) -> bool:
        for (one, other), (own, others) in zip(couples, rows, strict=True):
            if part in one.weights and part in other.weights:
                both = (one.weights[part][list(own)] > 0) & (other.weights[part][list(others)] > 0)
                if both.any():
                    return True
        return False

    return tuple(part for part in couples[0][0].parts_of(metric) if not paired(part))
