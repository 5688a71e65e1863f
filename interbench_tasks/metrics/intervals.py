"""A number with its n, its unscored count and its 95% interval.

Which interval a ratio gets is decided from the rows that it counts, and written into `Estimate.method`:

| counted rows                                 | proportion         | paired difference      |
|----------------------------------------------|--------------------|------------------------|
| no two of one cluster                        | wilson             | paired_agresti_min     |
| some share a cluster                         | cluster_bootstrap  | cluster_bootstrap      |
| ... but the bootstrap collapses to one point | wilson_by_cluster  | agresti_min_by_cluster |

A bootstrap collapses where all clusters agree, e.g. where nothing was corrected: resampling equal clusters gives the
same number again and again, an interval of width 0 that claims certainty. The last row of the table then counts each
cluster as one observation, the most cautious reading of rows that may all say the same.

All functions are deterministic and give the same for any order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
"""Bootstrap resamples; more would move a bound by less than the last digit that is printed."""

_WEIGHTS_AT_ONCE = 2_000_000
"""Resample weights held in memory at one time (16 MB of float64)."""


class Interval(NamedTuple):
    """A closed range; compares equal to a plain `(low, high)`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number, how many rows it rests on, and how sure it is."""

    value: float
    """A rate in [0, 1], a difference of rates in [-1, 1], or a count."""
    n: int
    """Scored rows: the denominator of a rate; of a count, the rows for which it is known."""
    unscored: int = 0
    """Rows that may belong here, but a failed call hides whether and how."""
    count: int | None = None
    """The numerator, where it is a count."""
    ci95: Interval | None = None
    """95% confidence interval, from the scored rows; None for a count."""
    bounds: Interval | None = None
    """Smallest and largest value over every possible outcome of the unscored rows; None where none is unscored. `value`
    lies within, except where unscored rows are known in part."""
    method: str
    """Where `ci95` comes from (see the module's table), or `count`."""

    def to_json(self) -> dict[str, Any]:
        """All fields; JSON-able, and equal after a trip through a JSON file."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Estimate:
        """The estimate that `to_json` wrote.

        >>> Estimate.from_json(Estimate(value=3.0, n=4, unscored=1, bounds=Interval(3, 4), method="count").to_json())
        Estimate(value=3.0, n=4, unscored=1, count=None, ci95=None, bounds=Interval(low=3, high=4), method='count')
        """
        ranges = {key: Interval(*data[key]) if data.get(key) is not None else None for key in ("ci95", "bounds")}
        return cls(**{**data, **ranges})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One metric over the rows of a table, before its interval: sum of values / number of counted rows."""

    values: NDArray[np.int64]
    """int64 [rows]: 0 or 1, in a paired difference -1, 0 or 1; must be 0 where the row is not counted."""
    counted: NDArray[np.bool_]
    """bool [rows]: which rows are in the denominator."""
    paired: bool = False
    """True for a paired difference."""
    unscored: int = 0
    bounds: Interval | None = None

    @property
    def n(self) -> int:
        """Counted rows."""
        return int(self.counted.sum())

    @property
    def count(self) -> int:
        """Sum of the values."""
        return int(self.values.sum())


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion, for independent rows; within [0, 1].

    Source: Wilson (1927), JASA 22(158), 209-212, as statsmodels has it.
    Args: successes in [0, n], n > 0; both may be fractions where n stands for clusters.
    Raises: ValueError outside these ranges.

    >>> round(wilson(0, 10).high, 3)
    0.278
    """
    if not (n > 0 and 0 <= successes <= n):
        raise ValueError(f"wilson: need n > 0 and 0 <= successes <= n, got successes={successes}, n={n}")
    # Imported late: statsmodels takes longer to import than everything else here together.
    from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]  # has no stubs

    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    # The exact ends, where rounding leaves 1e-17.
    return Interval(0.0 if successes == 0 else max(0.0, float(low)), 1.0 if successes == n else min(1.0, float(high)))


def agresti_min(plus: float, minus: float, n: float, level: float = 0.95) -> Interval:
    """Adjusted Wald interval of the difference of two proportions of the same independent rows; within [-1, 1].

    Formula: with 0.5 added to each cell of the 2x2 table: b = plus + .5, c = minus + .5, m = n + 2,
        (b - c)/m +- z * sqrt(b + c - (b - c)^2/m)/m.
    Source: Agresti and Min (2005), Statistics in Medicine 24(5), 729-740.
    Args: plus = rows right in the first only, minus = in the second only, n = all rows > 0; fractions are allowed.
    Raises: ValueError outside these ranges.
    """
    if not (n > 0 and plus >= 0 and minus >= 0 and plus + minus <= n * (1 + 1e-12)):
        raise ValueError(f"agresti_min: need plus, minus >= 0 and plus + minus <= n > 0, got {plus}, {minus}, {n}")
    b, c, m = plus + 0.5, minus + 0.5, n + 2
    half = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(b + c - (b - c) ** 2 / m) / m
    return Interval(max(-1.0, (b - c) / m - half), min(1.0, (b - c) / m + half))


class Resamples:
    """Bootstrap resamples of whole clusters, drawn once for all metrics over the same rows."""

    def __init__(self, clusters: Sequence[str], *, draws: int = DRAWS, seed: int = 0) -> None:
        """Take the rows' clusters.

        Args: clusters[i] = cluster of row i; draws > 0.
        Raises: ValueError where there is no row or no draw.
        """
        if len(clusters) == 0 or draws < 1:
            raise ValueError(f"Resamples: need at least one row and one draw, got {len(clusters)} rows, {draws} draws")
        labels, self._cluster_of_row = np.unique(np.asarray(clusters), return_inverse=True)
        self._n_clusters, self._draws, self._seed = len(labels), draws, seed

    def n_clusters(self, counted: NDArray[np.bool_]) -> int:
        """How many clusters have a row where `counted` (bool [rows]) is True."""
        return len(np.unique(self._cluster_of_row[counted]))

    def intervals(
        self, numerators: NDArray[Any], denominators: NDArray[Any], level: float = 0.95
    ) -> list[Interval | None]:
        """The percentile interval of each metric's ratio of sums.

        Formula: quantiles (1 -+ level)/2 over the draws of sum_g w_g num_g / sum_g w_g den_g; g = clusters of the
            table, w = how often each was drawn; a draw whose denominator is 0 is skipped.
        Source: percentile cluster bootstrap; Davison and Hinkley (1997), section 3.8.
        Args: numerators, denominators = [rows, metrics].
        Returns: one interval a metric; None where every draw was skipped.
        """
        n_metrics = numerators.shape[1]
        totals = self._totals(np.concatenate([numerators, denominators], axis=1))
        tails = [(1 - level) / 2, (1 + level) / 2]
        found: list[Interval | None] = []
        for metric in range(n_metrics):
            top, bottom = totals[:, metric], totals[:, n_metrics + metric]
            drawn = bottom > 0
            if not drawn.any():
                found.append(None)
                continue
            low, high = np.quantile(top[drawn] / bottom[drawn], tails)
            found.append(Interval(float(low), float(high)))
        return found

    def _totals(self, columns: NDArray[Any]) -> NDArray[np.float64]:
        """Sum of each column in each draw: [rows, columns] -> [draws, columns]."""
        by_cluster = np.zeros((self._n_clusters, columns.shape[1]))
        np.add.at(by_cluster, self._cluster_of_row, columns)
        return np.concatenate([weights @ by_cluster for weights in self._weights()])

    def _weights(self) -> Iterator[NDArray[np.float64]]:
        """How often each cluster is in each draw, in pieces: [some draws, clusters]."""
        random = np.random.default_rng(self._seed)
        most = max(1, _WEIGHTS_AT_ONCE // self._n_clusters)
        for start in range(0, self._draws, most):
            size = min(most, self._draws - start)
            picks = random.integers(0, self._n_clusters, size=(size, self._n_clusters))
            picks += np.arange(size)[:, None] * self._n_clusters
            counts = np.bincount(picks.ravel(), minlength=size * self._n_clusters)
            yield counts.reshape(size, self._n_clusters).astype(np.float64)


def cluster_bootstrap(
    numerators: NDArray[Any],
    denominators: NDArray[Any],
    clusters: Sequence[str],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """95% percentile interval of sum(numerators) / sum(denominators), resampling whole clusters.

    Of width 0 where all clusters agree; `estimates_from_ratios` then takes another interval.

    Args: numerators, denominators = [rows]; clusters[i] = cluster of row i.
    Raises: ValueError where no draw has a denominator.
    """
    resamples = Resamples(clusters, draws=draws, seed=seed)
    (found,) = resamples.intervals(np.asarray(numerators)[:, None], np.asarray(denominators)[:, None])
    if found is None:
        raise ValueError("cluster_bootstrap: the denominators are 0 in every draw")
    return found


def estimates_from_ratios(
    ratios: Mapping[str, Ratio], clusters: Sequence[str], *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Estimate]:
    """All metrics of a table with their intervals, from one set of resamples, in the order given.

    Args: clusters[i] = cluster of row i; rows of one cluster are not independent.
    Returns: name -> estimate; a ratio that counts no row is undefined, and absent.
    """
    defined = {name: ratio for name, ratio in ratios.items() if ratio.n > 0}
    if not defined:
        return {}
    resamples = Resamples(clusters, draws=draws, seed=seed)
    n_clusters = {name: resamples.n_clusters(ratio.counted) for name, ratio in defined.items()}
    drawn = _bootstrapped({k: r for k, r in defined.items() if n_clusters[k] < r.n}, resamples)
    return {name: _estimate(ratio, n_clusters[name], drawn.get(name)) for name, ratio in defined.items()}


def paired_difference(
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    clusters: Sequence[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """Share right in `first` minus share right in `second`, on the same rows, in [-1, 1].

    Formula: sum_i(first_i - second_i) / rows.
    Source: interval as in the module's table.
    Args: first, second = bool [rows], at least one row; clusters[i] = cluster of row i, None: all independent.
    Raises: ValueError where the lengths differ or there is no row.
    """
    if len(first) != len(second) or len(first) == 0:
        raise ValueError(f"paired_difference: need as many rows in both, and one at least: {len(first)}, {len(second)}")
    values = np.asarray(first, dtype=np.int64) - np.asarray(second, dtype=np.int64)
    ratio = Ratio(values=values, counted=np.ones(len(values), dtype=np.bool_), paired=True)
    labels = clusters if clusters is not None else [str(row) for row in range(len(values))]
    return estimates_from_ratios({"difference": ratio}, labels, draws=draws, seed=seed)["difference"]


def _bootstrapped(ratios: Mapping[str, Ratio], resamples: Resamples) -> dict[str, Interval]:
    """The bootstrap interval of each ratio, in one pass; without those that collapse to a point."""
    if not ratios:
        return {}
    numerators = np.stack([ratio.values for ratio in ratios.values()], axis=1)
    denominators = np.stack([ratio.counted for ratio in ratios.values()], axis=1)
    found = zip(ratios, resamples.intervals(numerators, denominators), strict=True)
    return {name: interval for name, interval in found if interval is not None and interval.low < interval.high}


def _estimate(ratio: Ratio, n_clusters: int, bootstrapped: Interval | None) -> Estimate:
    interval, method = bootstrapped, "cluster_bootstrap"
    if interval is None:
        shrink = n_clusters / ratio.n  # 1 where rows are independent, else a cluster stands for one row
        if ratio.paired:
            plus, minus = (float((ratio.values == sign).sum()) * shrink for sign in (1, -1))
            interval = agresti_min(plus, minus, n_clusters)
            method = "paired_agresti_min" if n_clusters == ratio.n else "agresti_min_by_cluster"
        else:
            interval = wilson(min(ratio.count * shrink, n_clusters), n_clusters)
            method = "wilson" if n_clusters == ratio.n else "wilson_by_cluster"
    return Estimate(
        value=ratio.count / ratio.n,
        n=ratio.n,
        unscored=ratio.unscored,
        count=ratio.count,
        ci95=interval,
        bounds=ratio.bounds,
        method=method,
    )
