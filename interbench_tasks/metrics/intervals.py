"""A number with its n, its unscored count and its 95% interval.

Which interval a metric gets is decided from the rows that it counts, and written into `Estimate.method`:

| counted rows                 | proportion        | paired difference      | contrast            | mean of fractions |
|------------------------------|-------------------|------------------------|---------------------|-------------------|
| no two of one cluster        | wilson            | paired_agresti_min     | newcombe            | t                 |
| some share a cluster         | cluster_bootstrap | cluster_bootstrap      | cluster_bootstrap   | cluster_bootstrap |
| ... but it collapses         | wilson_by_cluster | agresti_min_by_cluster | newcombe_by_cluster | t_by_cluster      |
| all values are equal         | as above          | as above               | as above            | constant          |

A contrast is the difference of two proportions of different rows. A bootstrap collapses to one point where all clusters
agree, e.g. where nothing was corrected: resampling equal clusters gives the same number again and again, an interval of
width 0 that claims certainty. The third line of the table then counts each cluster as one observation, the most
cautious reading of rows that may all say the same. `constant` is a width of 0 on purpose: such a mean is made of known
properties of the items (how many options they have), and where all items are alike nothing is left to be unsure of.

All functions are deterministic and give the same for any order of rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.closed_forms import Interval, agresti_min, newcombe, student, wilson

__all__ = [
    "Contrast",
    "Estimate",
    "Interval",
    "Ratio",
    "Resamples",
    "agresti_min",
    "cluster_bootstrap",
    "estimates_from_ratios",
    "newcombe",
    "paired_difference",
    "student",
    "wilson",
]

DRAWS = 10_000
"""Bootstrap resamples; more would move a bound by less than the last digit that is printed."""

_WEIGHTS_AT_ONCE = 2_000_000
"""Resample weights held in memory at one time (16 MB of float64)."""

_WEIGHTS_KEPT = 50_000_000
"""Resample weights kept for the next table (100 MB of uint16); more are drawn again."""

_SMALL = 4_000_000
"""Resample weights of a small table, e.g. of one category (8 MB of uint16): of these several are kept."""

_NO_WIDTH = 1e-12
"""A bootstrap interval up to this wide has collapsed: fractions that are added in another order differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number, how many rows it rests on, and how sure it is."""

    value: float
    """A rate or a mean in [0, 1], a difference of rates in [-1, 1], or a count; where `points` is there a mean score in
    [0, points], or a difference of such means."""
    n: int
    """Scored rows: the denominator of a rate, of a contrast both denominators together; of a count, the rows for which
    it is known."""
    unscored: int = 0
    """Rows that may belong here, but a failed call hides whether and how."""
    count: int | None = None
    """The numerator, where it is a count; None for a contrast and a mean of fractions."""
    ci95: Interval | None = None
    """95% confidence interval, from the scored rows; None for a count."""
    bounds: Interval | None = None
    """Smallest and largest value over every possible outcome of the unscored rows, and `value` itself, which does not
    know what is half known of them; None where none is unscored."""
    method: str
    """Where `ci95` comes from (see the module's table), or `count`."""
    points: float | None = None
    """The highest score that a judge can give, where the value is a mean of scores; None for a share or a count."""

    def to_json(self) -> dict[str, Any]:
        """All fields; JSON-able, and equal after a trip through a JSON file. `points` only where it is there.

        No number is -0.0.
        """
        fields = asdict(self)
        if self.points is None:
            del fields["points"]
        pairs = {key: [end + 0.0 for end in value] for key, value in fields.items() if isinstance(value, tuple)}
        return fields | {"value": self.value + 0.0} | pairs  # -0.0 + 0.0 is 0.0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Estimate:
        """The estimate that `to_json` wrote.

            >>> counted = Estimate(value=3.0, n=4, unscored=1, bounds=Interval(3, 4), method="count")
        >>> Estimate.from_json(counted.to_json()) == counted
        True
        """
        ranges = {key: Interval(*data[key]) if data.get(key) is not None else None for key in ("ci95", "bounds")}
        return cls(**{**data, **ranges})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One metric over the rows of a table, before its interval: sum of values / number of counted rows."""

    values: NDArray[Any]
    """int64 [rows]: 0 or 1, in a paired difference -1, 0 or 1; float64 [rows] in [0, 1] where `graded`; must be 0 where
    the row is not counted."""
    counted: NDArray[np.bool_]
    """bool [rows]: which rows are in the denominator."""
    paired: bool = False
    """True for a paired difference."""
    graded: bool = False
    """True where the values are fractions, not successes."""
    unscored: int = 0
    bounds: Interval | None = None

    @property
    def n(self) -> int:
        """Counted rows."""
        return int(self.counted.sum())

    @property
    def total(self) -> float:
        """Sum of the values, the same for any order of rows."""
        return math.fsum(self.values.tolist())

    @property
    def count(self) -> int | None:
        """Sum of the values; None where they are fractions."""
        return None if self.graded else int(self.values.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A metric that is the difference of two proportions of one table; no row is counted in both."""

    first: str
    """Name of the ratio that is subtracted from."""
    second: str
    """Name of the ratio that is subtracted."""


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
        drawn = self.ratios(numerators, denominators)
        return [_percentiles(drawn[:, metric], level) for metric in range(drawn.shape[1])]

    def ratios(self, numerators: NDArray[Any], denominators: NDArray[Any]) -> NDArray[np.float64]:
        """Each metric's ratio of sums in each draw, [draws, metrics]; NaN where a draw's denominator is 0."""
        n_metrics = numerators.shape[1]
        totals = self.totals(np.concatenate([numerators, denominators], axis=1))
        top, bottom = totals[:, :n_metrics], totals[:, n_metrics:]
        return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)

    def totals(self, columns: NDArray[Any]) -> NDArray[np.float64]:
        """Sum of each column in each draw: [rows, columns] -> [draws, columns]."""
        by_cluster = np.zeros((self._n_clusters, columns.shape[1]))
        np.add.at(by_cluster, self._cluster_of_row, columns)
        # Metrics over the same rows share their denominator: it is summed once.
        places: dict[bytes, int] = {}
        place = [places.setdefault(column.tobytes(), len(places)) for column in by_cluster.T]
        different = by_cluster[:, [place.index(number) for number in range(len(places))]]
        return np.concatenate([weights @ different for weights in self._weights()])[:, place]

    def _weights(self) -> Iterator[NDArray[np.float64]]:
        """How often each cluster is in each draw, in pieces: [some draws, clusters]."""
        pieces: Iterable[NDArray[np.uint16]]
        if self._n_clusters * self._draws <= _SMALL:
            pieces = _kept_small_weights(self._n_clusters, self._draws, self._seed)
        elif self._n_clusters * self._draws <= _WEIGHTS_KEPT:
            pieces = _kept_weights(self._n_clusters, self._draws, self._seed)
        else:
            pieces = _drawn_weights(self._n_clusters, self._draws, self._seed)
        for piece in pieces:
            yield piece.astype(np.float64)


@functools.lru_cache(maxsize=1)
def _kept_weights(n_clusters: int, draws: int, seed: int) -> tuple[NDArray[np.uint16], ...]:
    """The weights of the last table: the runs of one task have as many clusters, and drawing them takes longest."""
    return tuple(_drawn_weights(n_clusters, draws, seed))


@functools.lru_cache(maxsize=16)
def _kept_small_weights(n_clusters: int, draws: int, seed: int) -> tuple[NDArray[np.uint16], ...]:
    """Those of categories, beside which the whole table's are kept."""
    return tuple(_drawn_weights(n_clusters, draws, seed))


def _drawn_weights(n_clusters: int, draws: int, seed: int) -> Iterator[NDArray[np.uint16]]:
    random = np.random.default_rng(seed)
    most = max(1, _WEIGHTS_AT_ONCE // n_clusters)
    for start in range(0, draws, most):
        size = min(most, draws - start)
        picks = random.integers(0, n_clusters, size=(size, n_clusters))
        picks += np.arange(size)[:, None] * n_clusters
        counts = np.bincount(picks.ravel(), minlength=size * n_clusters)
        # No cluster is ever drawn 65,536 times: above that many clusters, it would have to be every one of them.
        yield counts.reshape(size, n_clusters).astype(np.uint16)


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
    ratios: Mapping[str, Ratio],
    clusters: Sequence[str],
    *,
    contrasts: Mapping[str, Contrast] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Estimate]:
    """All metrics of a table with their intervals, from one set of resamples, in the order given.

    Args: clusters[i] = cluster of row i; rows of one cluster are not independent.
    Returns: name -> estimate, contrasts last; a ratio that counts no row is undefined, and absent, as is a contrast of
        such a ratio.
    """
    defined = {name: ratio for name, ratio in ratios.items() if ratio.n > 0}
    pairs = {name: c for name, c in (contrasts or {}).items() if c.first in defined and c.second in defined}
    if not defined:
        return {}
    resamples = Resamples(clusters, draws=draws, seed=seed)
    n_clusters = {name: resamples.n_clusters(ratio.counted) for name, ratio in defined.items()}
    shared = {k: c for k, c in pairs.items() if _share_a_cluster(defined[c.first], defined[c.second], resamples)}
    drawn = _bootstrapped(defined, {k for k, r in defined.items() if n_clusters[k] < r.n}, shared, resamples)
    found = {name: _estimate(ratio, n_clusters[name], drawn.get(name)) for name, ratio in defined.items()}
    for name, pair in pairs.items():
        sides = [(defined[side], n_clusters[side]) for side in (pair.first, pair.second)]
        found[name] = _contrast(*sides, bootstrapped=drawn.get(name), independent=name not in shared)
    return found


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


def _percentiles(drawn: NDArray[np.float64], level: float = 0.95) -> Interval | None:
    """The middle `level` of the draws that are not NaN; None where all are."""
    known = drawn[~np.isnan(drawn)]
    if known.size == 0:
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _share_a_cluster(first: Ratio, second: Ratio, resamples: Resamples) -> bool:
    counted = first.counted | second.counted
    return resamples.n_clusters(counted) < int(counted.sum())


def _bootstrapped(
    ratios: Mapping[str, Ratio], clustered: set[str], contrasts: Mapping[str, Contrast], resamples: Resamples
) -> dict[str, Interval]:
    """The bootstrap interval of each clustered ratio and of each contrast, in one pass; without those that collapse."""
    sides = {side for pair in contrasts.values() for side in (pair.first, pair.second)}
    names = [name for name in ratios if name in clustered or name in sides]
    if not names:
        return {}
    numerators = np.stack([ratios[name].values for name in names], axis=1)
    denominators = np.stack([ratios[name].counted for name in names], axis=1)
    drawn = dict(zip(names, resamples.ratios(numerators, denominators).T, strict=True))
    found = {name: _percentiles(drawn[name]) for name in names if name in clustered}
    found |= {name: _percentiles(drawn[pair.first] - drawn[pair.second]) for name, pair in contrasts.items()}
    return {name: interval for name, interval in found.items() if interval and interval.high - interval.low > _NO_WIDTH}


def _estimate(ratio: Ratio, n_clusters: int, bootstrapped: Interval | None) -> Estimate:
    interval, method = bootstrapped, "cluster_bootstrap"
    if interval is None:
        interval, method = _closed_form(ratio, n_clusters)
    return Estimate(
        value=ratio.total / ratio.n,
        n=ratio.n,
        unscored=ratio.unscored,
        count=ratio.count,
        ci95=interval,
        bounds=ratio.bounds,
        method=method,
    )


def _closed_form(ratio: Ratio, n_clusters: int) -> tuple[Interval, str]:
    """The interval without a bootstrap, and its name; where rows share clusters, a cluster stands for one row."""
    shrink = n_clusters / ratio.n  # 1 where rows are independent
    independent = n_clusters == ratio.n
    if ratio.graded:
        values = np.sort(ratio.values[ratio.counted])
        if values[0] == values[-1]:
            return Interval(float(values[0]), float(values[0])), "constant"
        interval = student(ratio.total / ratio.n, float(values.std(ddof=1)), n_clusters)
        return interval, "t" if independent else "t_by_cluster"
    if ratio.paired:
        plus, minus = (float((ratio.values == sign).sum()) * shrink for sign in (1, -1))
        interval = agresti_min(plus, minus, n_clusters)
        return interval, "paired_agresti_min" if independent else "agresti_min_by_cluster"
    interval = wilson(min(ratio.total * shrink, n_clusters), n_clusters)
    return interval, "wilson" if independent else "wilson_by_cluster"


def _contrast(
    first: tuple[Ratio, int], second: tuple[Ratio, int], *, bootstrapped: Interval | None, independent: bool
) -> Estimate:
    """The difference of two proportions, each given with the number of its clusters."""
    (one, n_one), (other, n_other) = first, second
    interval, method = bootstrapped, "cluster_bootstrap"
    if interval is None:
        successes = [min(ratio.total * n / ratio.n, n) for ratio, n in (first, second)]
        interval = newcombe(successes[0], n_one, successes[1], n_other)
        method = "newcombe" if independent else "newcombe_by_cluster"
    values = one.total / one.n, other.total / other.n
    bounds = None
    if one.unscored or other.unscored:
        of_one, of_other = (r.bounds or Interval(v, v) for r, v in zip((one, other), values, strict=True))
        bounds = Interval(of_one.low - of_other.high, of_one.high - of_other.low)
    return Estimate(
        value=values[0] - values[1],
        n=one.n + other.n,
        unscored=one.unscored + other.unscored,
        ci95=interval,
        bounds=bounds,
        method=method,
    )
