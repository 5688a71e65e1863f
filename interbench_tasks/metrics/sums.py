"""Means over the questions of conversations, each with its n, its unscored count and its 95% interval.

A row is a conversation, and holds sums over its questions, so that a row of any number of questions stays small. Which
interval a mean gets follows `metrics.intervals`:

| counted questions             | successes         | scores                                             |
|-------------------------------|-------------------|----------------------------------------------------|
| no two of one cluster         | wilson            | t, or wilson where all scores are equal            |
| some share a cluster          | cluster_bootstrap | cluster_bootstrap                                  |
| ... but it collapses          | wilson_by_cluster | wilson_by_cluster                                  |

Wilson's interval of scores takes their share of the scale for a share of successes: of all scores with that mean, those
at the ends of the scale vary most, so the interval is never too narrow. A mean of means (`overall`) is drawn with its
parts from the same resamples; where its bootstrap collapses, or a part rests on one cluster, which no resampling
varies, its ends are the means of its parts' ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.closed_forms import Interval, student, wilson
from interbench_tasks.metrics.intervals import DRAWS, Estimate, Resamples

ZERO_TO_ONE = Interval(0.0, 1.0)
ONE_CLUSTER = "one_cluster"
"""Method of an estimate that has no interval, because all it rests on is of one cluster."""
_NO_WIDTH = 1e-9
"""A bootstrap interval up to this wide, or a deviation up to this, is none: sums in another order differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """One metric over the rows of a table, before its interval."""

    totals: NDArray[np.float64]
    """float64 [rows]: sum of the values of the row's scored questions."""
    squares: NDArray[np.float64]
    """float64 [rows]: sum of their squares."""
    counted: NDArray[Any]
    """int64 [rows]: how many questions that are; or float64, what they weigh."""
    unscored: int = 0
    lowest: float = 0.0
    """Sum of the smallest values that the unscored questions may have."""
    highest: float = 0.0
    """Sum of the largest ones."""
    span: Interval = ZERO_TO_ONE
    """Smallest and largest value of one question."""
    graded: bool = False
    """False where every value is 0 or 1, or -1, 0 or 1."""
    points: float | None = None
    open_ended: bool = False
    """True where nobody knows how much an unscored question would have counted: the bounds are then the whole span."""

    @property
    def n(self) -> int:
        """Scored questions; where these have weights, the sum of the weights, rounded."""
        return round(self.weight)

    @property
    def weight(self) -> float:
        """The denominator."""
        return math.fsum(self.counted.tolist())

    @property
    def value(self) -> float:
        """Their mean; the same for any order of rows. Undefined where n is 0."""
        return math.fsum(self.totals.tolist()) / self.weight

    def only(self, rows: NDArray[np.bool_]) -> Sums:
        """The same of some rows alone, without what is unscored: nobody knows in which row that is."""
        return replace(
            self,
            totals=np.where(rows, self.totals, 0.0),
            squares=np.where(rows, self.squares, 0.0),
            counted=np.where(rows, self.counted, 0),
            unscored=0,
            lowest=0.0,
            highest=0.0,
        )

    @property
    def bounds(self) -> Interval | None:
        """Range of the mean over all outcomes of the unscored questions, `value` included; None where none is."""
        if not self.unscored:
            return None
        if self.open_ended:
            return self.span
        total, n = math.fsum(self.totals.tolist()), self.n + self.unscored
        low, high = (total + self.lowest) / n, (total + self.highest) / n
        return Interval(min(low, self.value), max(high, self.value))

    def closed_form(self, n_clusters: int) -> tuple[Interval, str]:
        """The interval without a bootstrap, and its name; where questions share clusters, a cluster counts as one."""
        low, width = self.span.low, self.span.high - self.span.low
        independent = n_clusters == self.n
        share = min(max((self.value - low) / width, 0.0), 1.0)
        deviation = self._deviation() / width
        if self.graded and independent and deviation > _NO_WIDTH:
            ends, method = student(share, deviation, self.n), "t"
        else:
            ends, method = wilson(share * n_clusters, n_clusters), "wilson" if independent else "wilson_by_cluster"
        return Interval(low + width * ends.low, low + width * ends.high), method

    @property
    def deviates(self) -> bool:
        """Whether not all scored values are the same; of rows with one question each."""
        return self._deviation() > _NO_WIDTH * (self.span.high - self.span.low)

    def _deviation(self) -> float:
        """Standard deviation of the scored values, n - 1 in the denominator; 0 for a single one."""
        if self.n < 2:
            return 0.0
        spread = math.fsum(self.squares.tolist()) - self.n * self.value**2
        return math.sqrt(max(0.0, spread) / (self.n - 1))


def estimates_from_sums(
    columns: Mapping[str, Sums],
    clusters: Sequence[str],
    *,
    means: Mapping[str, Sequence[str]] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Estimate]:
    """All metrics of a table with their intervals, from one set of resamples.

    Args: clusters[i] = cluster of row i; means = metric -> the columns whose unweighted mean it is.
    Returns: name -> estimate, means last; a column that counts nothing is absent, and a mean that lacks a part of it.
    """
    defined = {name: column for name, column in columns.items() if column.weight > 0}
    wanted = {name: parts for name, parts in (means or {}).items() if parts and all(part in defined for part in parts)}
    if not defined:
        return {}
    resamples = Resamples(clusters, draws=draws, seed=seed)
    n_clusters = {name: resamples.n_clusters(column.counted > 0) for name, column in defined.items()}
    needed = {name for name, column in defined.items() if n_clusters[name] < column.n}
    needed |= {part for parts in wanted.values() for part in parts}
    drawn = drawn_ratios({name: column for name, column in defined.items() if name in needed}, resamples)
    return with_means(defined, wanted, n_clusters, drawn)


def with_means(
    columns: Mapping[str, Sums],
    means: Mapping[str, Sequence[str]],
    n_clusters: Mapping[str, int],
    drawn: Mapping[str, NDArray[np.float64]],
) -> dict[str, Estimate]:
    """Each column's estimate, then the means of some.

    Args: means = metric -> its columns; drawn = column -> its mean in each draw, where it is needed.
    """
    found = {name: _estimate(column, n_clusters[name], drawn.get(name)) for name, column in columns.items()}
    for name, parts in means.items():
        varied = all(n_clusters[part] > 1 for part in parts)
        found[name] = mean_of([found[part] for part in parts], [drawn[part] for part in parts] if varied else [])
    return found


def mean_of_scored(
    values: Sequence[float | None],
    *,
    clusters: Sequence[str] | None = None,
    span: Interval | None = None,
    points: float | None = None,
    draws: int = DRAWS,
) -> Estimate | None:
    """The mean of the values that are there; None where none is.

    Args: values[i] = None where question i is unscored; clusters[i] = its cluster, None: all independent; span =
        smallest and largest value that a question can have; None: not known, so there are no interval and no bounds.

    >>> mean_of_scored([4, None, 5])
    Estimate(value=4.5, n=2, unscored=1, count=None, ci95=None, bounds=None, method='mean', points=None)
    """
    known = [value for value in values if value is not None]
    unscored = len(values) - len(known)
    if not known:
        return None
    if span is None:
        return Estimate(value=math.fsum(known) / len(known), n=len(known), unscored=unscored, method="mean")
    totals = np.array([value or 0.0 for value in values], dtype=np.float64)
    column = Sums(
        totals=totals,
        squares=totals**2,
        counted=np.array([value is not None for value in values], dtype=np.int64),
        unscored=unscored,
        lowest=unscored * span.low,
        highest=unscored * span.high,
        span=span,
        graded=points is not None,
        points=points,
    )
    labels = clusters if clusters is not None else [str(row) for row in range(len(values))]
    return estimates_from_sums({"mean": column}, labels, draws=draws)["mean"]


def drawn_ratios(columns: Mapping[str, Sums], resamples: Resamples) -> dict[str, NDArray[np.float64]]:
    """Each column's mean in each draw, float64 [draws]; NaN where a draw counts nothing."""
    if not columns:
        return {}
    totals = np.stack([column.totals for column in columns.values()], axis=1)
    counted = np.stack([column.counted for column in columns.values()], axis=1)
    return dict(zip(columns, resamples.ratios(totals, counted).T, strict=True))


def _estimate(column: Sums, n_clusters: int, drawn: NDArray[np.float64] | None) -> Estimate:
    interval, method = None, "cluster_bootstrap"
    if n_clusters < column.n and drawn is not None:
        interval = middle(drawn)
    if interval is None:
        interval, method = column.closed_form(n_clusters)
    return Estimate(
        value=column.value,
        n=column.n,
        unscored=column.unscored,
        count=None if column.graded else round(math.fsum(column.totals.tolist())),
        ci95=interval,
        bounds=column.bounds,
        method=method,
        points=column.points,
    )


def mean_of(parts: Sequence[Estimate], drawn: Sequence[NDArray[np.float64]]) -> Estimate:
    """The unweighted mean of metrics, drawn together. Args: drawn = empty where they cannot be."""
    ends = [part.ci95 for part in parts if part.ci95 is not None]
    interval, method = middle(np.mean(np.stack(drawn), axis=0)) if drawn else None, "cluster_bootstrap"
    if len(ends) < len(parts):
        interval, method = None, ONE_CLUSTER
    elif interval is None:
        interval, method = _mean_ends(ends), "mean_of_intervals"
    bounds = [part.bounds or Interval(part.value, part.value) for part in parts]
    unscored = sum(part.unscored for part in parts)
    return Estimate(
        value=math.fsum(part.value for part in parts) / len(parts),
        n=sum(part.n for part in parts),
        unscored=unscored,
        ci95=interval,
        bounds=_mean_ends(bounds) if unscored else None,
        method=method,
        points=parts[0].points,
    )


def _mean_ends(intervals: Sequence[Interval]) -> Interval:
    low, high = (math.fsum(interval[end] for interval in intervals) / len(intervals) for end in (0, 1))
    return Interval(low, high)


def middle(drawn: NDArray[np.float64]) -> Interval | None:
    """The middle 95% of the draws that are known; None where all are unknown, or the same."""
    known = drawn[~np.isnan(drawn)]
    if known.size == 0:
        return None
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(float(low), float(high)) if high - low > _NO_WIDTH else None
