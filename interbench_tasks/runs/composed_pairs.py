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
from interbench_tasks.runs.comparable import Key, by_key
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
    by_run: Mapping[str, Mapping[Key, Sequence[float]]]
    """Run -> episode -> values in the order of `names`; NaN where it has none."""

    @classmethod
    def from_runs(cls, runs: Mapping[str, ScoredRun], composed: Mapping[str, Composed]) -> PartValues:
        """The values of all runs. Args: composed = metrics whose parts are wanted."""
        names = tuple(dict.fromkeys(part for how in composed.values() for part in how.parts))
        return cls(names=names, by_run={name: _values(run, names) for name, run in runs.items()} if names else {})

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


def composed_pairs(
    first: str, second: str, parts: PartValues, composed: Mapping[str, Composed], clusters: Mapping[Key, str]
) -> dict[str, ComposedPair]:
    """Each metric that some episode counts in for both runs. Args: clusters = of the first run's episodes."""
    if not composed:
        return {}
    runs = [parts.by_run[run] for run in (first, second)]
    common = sorted(runs[0].keys() & runs[1].keys())
    matrices = parts.matrices((first, second), common)
    found: dict[str, ComposedPair] = {}
    for name, how in composed.items():
        place = parts.names.index(how.parts[0])
        counted = [{key for key, row in own.items() if not math.isnan(row[place])} for own in runs]
        both = np.flatnonzero((~np.isnan(matrices[how.parts[0]])).all(axis=0))
        if both.size:
            own = {part: matrices[part][:, both] for part in how.parts}
            values, drawn = _drawn(own, how, [clusters[common[place]] for place in both])
            left_out = [
                (len(mine - theirs.keys()), len(mine & theirs.keys()) - int(both.size))
                for mine, theirs in zip(counted, reversed(runs), strict=True)
            ]
            found[name] = ComposedPair(
                first=_estimate(values[0], drawn[:, 0], int(both.size)),
                second=_estimate(values[1], drawn[:, 1], int(both.size)),
                difference=_estimate(values[0] - values[1], drawn[:, 0] - drawn[:, 1], int(both.size)),
                left_out=(left_out[0], left_out[1]),
            )
    return found


def _values(run: ScoredRun, parts: Sequence[str]) -> dict[Key, list[float]]:
    """Each episode's own value of each part; NaN where it has none."""
    rows = {key: run.metric_set.contributions(summary) for key, summary in by_key(run).items()}
    return {key: [own.get(part, float("nan")) for part in parts] for key, own in rows.items()}


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
