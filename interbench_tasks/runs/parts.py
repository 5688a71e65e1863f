"""Metrics of runs that are no mean over episodes: ratios of sums, and functions of several (`metrics.composed`).

What is compared is what the runs report, on the paired episodes. Formula: over the episodes i that both runs count a
part in, first = sum_i(v_1i) / sum_i(w_1i), second likewise, the difference first - second; (v, w) =
`WeightedMetrics.parts`, so a conversation of ten questions weighs ten, or (`MetricSet.contributions`, 1). Where the
metrics tell of units (`UnitMetrics`: questions), the sums are over those that all of the runs have scored. `overall` is
the unweighted mean of its parts' differences, and needs all of them. PCQ is made of each run's own parts over the
episodes in which both count its first one (whether something was detected): where an item's strategy is undecided, its
detection still counts. Intervals: `metrics.paired_sums`, whole clusters resampled for both runs together.
Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.hookspecs import Composed, ComposedMetrics, MetricSet, WeightedMetrics
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.composed import Part
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.paired_sums import PairedSums, paired_from_sums
from interbench_tasks.metrics.sums import Sums

Rows = tuple[Sequence[int], Sequence[int]]
"""The common episodes' rows in each of two runs, in one order."""
Units = Mapping[str, Mapping[str, tuple[float, float]]]
"""What the units of an episode add (`UnitMetrics.units`): metric -> unit -> (value, weight)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What a run's metrics are made of, in the rows of its `EpisodeValues`; empty where all are means over episodes."""

    n_rows: int = 0
    totals: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Part -> float64 [rows]; 0 where the episode is not counted."""
    weights: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Part -> float64 [rows], >= 0."""
    composites: Mapping[str, Composed] = field(default_factory=dict)
    weighted: bool = False
    """Whether episodes have weights: then each part is a metric, too."""
    units: Sequence[Units] = ()
    """Of each row what its units (questions) add; empty where nobody knows."""

    @classmethod
    def of(
        cls,
        metric_set: MetricSet,
        summaries: Sequence[Mapping[str, Any]],
        own: Sequence[Mapping[str, float]],
        wanted: Collection[str],
        units: Sequence[Units] = (),
    ) -> RunParts:
        """What the metric set tells of a run.

        Args: own = contributions of `summaries`; wanted = metrics to compare; units = of each summary.
        """
        told = metric_set.composites() if isinstance(metric_set, ComposedMetrics) else {}
        composites = {name: how for name, how in told.items() if name in wanted}
        weighted = isinstance(metric_set, WeightedMetrics)
        if isinstance(metric_set, WeightedMetrics):
            cells = [metric_set.parts(summary) for summary in summaries]
            names = dict.fromkeys(name for row in cells for name in row)
        else:
            names = dict.fromkeys(part for how in composites.values() for part in how.parts)
            cells = [{name: (row[name], 1.0) for name in names if name in row} for row in own]
        columns = {name: np.array([row.get(name, (0.0, 0.0)) for row in cells]) for name in names}
        return cls(
            n_rows=len(summaries),
            totals={name: column[:, 0] for name, column in columns.items()},
            weights={name: column[:, 1] for name, column in columns.items()},
            composites=composites,
            weighted=weighted,
            units=units,
        )

    def how(self, metric: str) -> Composed | None:
        """How a metric is made of parts; None where it is a mean over episodes."""
        if self.weighted and metric in self.totals:
            return Composed.of(metric)
        return self.composites.get(metric)

    def over(self, part: str, rows: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A part's totals and weights in some rows; zeros where the run does not have it."""
        if part not in self.totals:
            return np.zeros(len(rows)), np.zeros(len(rows))
        return self.totals[part][list(rows)], self.weights[part][list(rows)]


def with_common_units(
    runs: Sequence[RunParts], rows: Sequence[Sequence[int]], hows: Collection[Composed]
) -> list[RunParts]:
    """The same parts, of the common episodes only the units that all of the runs have scored.

    A question that a judge failed on in one run counts in none. Where a run does not know its units, nothing changes.
    Args: rows = the common episodes' rows in each run, in one order.
    """
    if not all(run.units for run in runs):
        return list(runs)
    totals = [dict(run.totals) for run in runs]
    weights = [dict(run.weights) for run in runs]
    for name in dict.fromkeys(part for how in hows for part in how.parts):
        if not all(name in own for own in totals):
            continue
        for sums in (*totals, *weights):
            sums[name] = sums[name].copy()
        for places in zip(*rows, strict=True):
            told = [run.units[place].get(name, {}) for run, place in zip(runs, places, strict=True)]
            common = [unit for unit in told[0] if all(unit in own for own in told[1:])]
            for own, value, weight, place in zip(told, totals, weights, places, strict=True):
                value[name][place] = math.fsum(own[unit][0] for unit in common)
                weight[name][place] = math.fsum(own[unit][1] for unit in common)
    return [
        replace(run, totals=value, weights=weight) for run, value, weight in zip(runs, totals, weights, strict=True)
    ]


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


def made_of_parts(runs: Sequence[RunParts], metrics: Sequence[str]) -> dict[str, Composed]:
    """Those of the metrics that some run makes of parts, each with how."""
    found = {metric: [how for run in runs if (how := run.how(metric)) is not None] for metric in metrics}
    return {metric: told[0] for metric, told in found.items() if told}


def paired_parts(
    first: RunParts,
    second: RunParts,
    rows: Rows,
    wanted: Mapping[str, Composed],
    scales: Mapping[str, Scale],
    clusters: Sequence[str],
) -> dict[str, PairedSums]:
    """Each metric paired; absent where no episode is. Args: clusters = of the common episodes."""
    columns: tuple[dict[str, Sums], dict[str, Sums]] = ({}, {})
    for name in dict.fromkeys(part for how in wanted.values() for part in how.parts):
        both = [run.over(name, own) for run, own in zip((first, second), rows, strict=True)]
        scale = scales.get(name, Scale(graded=True))
        high = scale.points if scale.points is not None else 1.0
        low = -high if min(totals.min(initial=0) for totals, _ in both) < 0 else 0.0
        for side, (totals, weights) in zip(columns, both, strict=True):
            side[name] = Sums(
                totals=totals,
                squares=totals**2,  # read only where each row is one question
                counted=weights,
                span=Interval(low, high),
                graded=scale.graded,
                points=scale.points,
            )
    found = paired_from_sums(*columns, clusters, wanted)
    return {metric: _in_points(pair, scales.get(metric)) for metric, pair in found.items()}


def _in_points(pair: PairedSums, scale: Scale | None) -> PairedSums:
    points = scale.points if scale is not None else None
    first, second, difference = (replace(own, points=points) for own in (pair.first, pair.second, pair.difference))
    return PairedSums(first=first, second=second, difference=difference)


def left_out(own: RunParts, other: RunParts, rows: Rows, how: Composed) -> tuple[int, int]:
    """Episodes counted in a run's metric and left out of a pair: not there in the other run; there, and not counted.

    An episode that is left out of one part that says where the metric counts is left out.
    Args: rows = the common episodes' rows in this run and in the other.
    """
    shared = np.zeros(own.n_rows, dtype=np.bool_)
    shared[list(rows[0])] = True
    gone, lacking = np.zeros_like(shared), np.zeros_like(shared)
    for part in how.counting:
        counted = own.over(part, range(own.n_rows))[1] > 0
        there = np.zeros_like(shared)
        there[list(rows[0])] = other.over(part, rows[1])[1] > 0
        gone |= counted & ~shared
        lacking |= counted & shared & ~there
    return int(gone.sum()), int(lacking.sum())


def unpaired_parts(runs: Sequence[RunParts], rows: Sequence[Rows], how: Composed) -> tuple[str, ...]:
    """The parts that no two runs have an episode in common in. Args: rows = of each two of the runs, in order."""

    def paired(part: str) -> bool:
        return any(
            bool(((one.over(part, own)[1] > 0) & (other.over(part, others)[1] > 0)).any())
            for (one, other), (own, others) in zip(combinations(runs, 2), rows, strict=True)
        )

    return tuple(part for part in how.counting if not paired(part))


def parts_over(runs: Sequence[RunParts], rows: Sequence[Sequence[int]], hows: Collection[Composed]) -> dict[str, Part]:
    """What metrics are made of, over the same episodes of all runs. Args: rows = their rows in each run."""
    found = {}
    for name in dict.fromkeys(part for how in hows for part in how.parts):
        columns = [run.over(name, own) for run, own in zip(runs, rows, strict=True)]
        found[name] = Part(totals=np.stack([own for own, _ in columns]), weights=np.stack([own for _, own in columns]))
    return found
