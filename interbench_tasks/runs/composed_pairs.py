"""Two runs in a metric that is a function of several means, such as PCQ: compared is what the runs' tables show.

Formula: over the episodes in which both runs count the metric's first part (of PCQ: whether something was detected),
first = make(means of the first run's parts), second likewise, the difference first - second. A part's mean is over the
episodes that have it: where an item's strategy is undecided, its detection still counts.
Intervals: percentiles of a bootstrap of whole clusters, drawn for both runs together.
Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.composed import Composed, means_of
from interbench_tasks.metrics.intervals import Estimate, Resamples
from interbench_tasks.metrics.ranking import drawn_means
from interbench_tasks.runs.comparable import Key
from interbench_tasks.runs.score import ScoredRun

_NO_WIDTH = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedPair:
    """A composed metric of two runs."""

    first: Estimate
    second: Estimate
    difference: Estimate
    left_out: tuple[tuple[int, int], tuple[int, int]]
    """Per run, episodes in which it counts the metric that are left out: (not there in the other run, not counted
    there)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartValues:
    """What composed metrics are made of: each episode's own value of each part."""

    names: tuple[str, ...]
    """Of the parts."""
    by_run: Mapping[str, Mapping[Key, NDArray[np.float64]]]
    """Run -> episode -> values in the order of `names`; NaN where it has none."""

    @classmethod
    def from_rows(
        cls,
        rows: Mapping[str, tuple[Mapping[Key, int], NDArray[np.float64]]],
        columns: Sequence[str],
        composed: Mapping[str, Composed],
        points: Mapping[str, float],
    ) -> PartValues:
        """Taken from each run's values.

        Args: rows = run -> (episode -> row, values [rows, columns] as shares of the highest score, which is in points).
        """
        names = with_parts((), composed)
        places = [columns.index(name) for name in names]
        scale = np.array([points.get(name, 1.0) for name in names])
        scaled = {run: (row_of, values[:, places] * scale) for run, (row_of, values) in rows.items() if names}
        by_run = {run: {key: values[row] for key, row in row_of.items()} for run, (row_of, values) in scaled.items()}
        return cls(names=names, by_run=by_run)

    def matrices(self, runs: Sequence[str], episodes: Sequence[Key]) -> dict[str, NDArray[np.float64]]:
        """Part -> float64 [runs, episodes]."""
        if not self.names:
            return {}
        stacked = np.array([[self.by_run[run][key] for key in episodes] for run in runs])
        return {name: stacked[..., place] for place, name in enumerate(self.names)}


def composed_of(runs: Sequence[ScoredRun]) -> Mapping[str, Composed]:
    """The composed metrics that all runs have."""
    own: Sequence[Mapping[str, Composed]] = [getattr(run.metric_set, "composed", {}) for run in runs]
    return {name: how for name, how in own[0].items() if all(name in one for one in own)}


def with_parts(metrics: Sequence[str], composed: Mapping[str, Composed]) -> tuple[str, ...]:
    """The metrics, and the parts of composed ones that are not among them."""
    return tuple(dict.fromkeys((*metrics, *(part for how in composed.values() for part in how.parts))))


def composed_pairs(
    first: str, second: str, parts: PartValues, composed: Mapping[str, Composed], clusters: Mapping[Key, str]
) -> dict[str, ComposedPair]:
    """Each metric that some episode counts in for both runs. Args: clusters = of the first run's episodes."""
    if not composed:
        return {}
    runs = [parts.by_run[run] for run in (first, second)]
    common = sorted(runs[0].keys() & runs[1].keys())
    matrices = parts.matrices((first, second), common)
    groups = [clusters[key] for key in common]
    found: dict[str, ComposedPair] = {}
    for name, how in composed.items():
        place = parts.names.index(how.parts[0])
        counted = [{key for key, row in own.items() if not math.isnan(row[place])} for own in runs]
        both = ~np.isnan(matrices[how.parts[0]]).any(axis=0)
        n = int(both.sum())
        if n:
            # All common episodes are drawn from: of as many clusters, the draws of one couple serve the next one too.
            values, drawn = _drawn({part: np.where(both, matrices[part], np.nan) for part in how.parts}, how, groups)
            left_out = [
                (len(mine - theirs.keys()), len(mine & theirs.keys()) - n)
                for mine, theirs in zip(counted, reversed(runs), strict=True)
            ]
            found[name] = ComposedPair(
                first=_estimate(values[0], drawn[:, 0], n),
                second=_estimate(values[1], drawn[:, 1], n),
                difference=_estimate(values[0] - values[1], drawn[:, 0] - drawn[:, 1], n),
                left_out=(left_out[0], left_out[1]),
            )
    return found


def _drawn(
    parts: Mapping[str, NDArray[np.float64]], how: Composed, clusters: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The metric of both runs, [2], and in each draw, [draws, 2]. Args: parts = name -> [2, episodes]."""
    means = drawn_means(parts, Resamples(clusters))
    values = how.make(*means_of([parts[part] for part in how.parts]))
    return values, how.make(*(means[part] for part in how.parts))


def _estimate(value: float, drawn: NDArray[np.float64], n: int) -> Estimate:
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, [0.025, 0.975]) if known.size else (np.nan, np.nan)
    ends = Interval(float(low), float(high)) if high - low > _NO_WIDTH else None
    return Estimate(value=float(value), n=n, ci95=ends, method="cluster_bootstrap")
