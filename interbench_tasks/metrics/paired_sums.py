"""Two tables in metrics that are made of ratios of sums: both values and their difference, on the rows that both count.

A difference is drawn for both tables together, from the same resamples of clusters:

| paired rows                                    | interval                                                |
|------------------------------------------------|---------------------------------------------------------|
| one question each, no two of one cluster       | t; of successes paired_agresti_min                      |
| otherwise                                      | cluster_bootstrap                                       |
| ... but it collapses                           | agresti_min_by_cluster, of the share of the scale       |
| all of one cluster                             | none (`one_cluster`): one does not tell how much it varies |

A mean of parts (`overall`) is drawn with its parts; where its bootstrap collapses, or has no parts' ends, as `sums`
says. Another function of parts (PCQ) has the middle 95% of the draws, or no interval where they are all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.closed_forms import Interval, agresti_min
from interbench_tasks.metrics.intervals import DRAWS, Estimate, Resamples
from interbench_tasks.metrics.sums import ONE_CLUSTER, Sums, drawn_ratios, mean_of, middle, with_means


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedSums:
    """One metric of two tables, over the rows that both count it in."""

    first: Estimate
    """Its `n` counts questions, as that of `second` does."""
    second: Estimate
    difference: Estimate
    """first - second; its `n` counts rows, of a composed metric those that are paired in a part that says where it
    counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Both:
    """Columns of two tables over the same rows, each with the rows that are paired in it, and drawn together."""

    sides: tuple[Mapping[str, Sums], Mapping[str, Sums]]
    rows: Mapping[str, NDArray[np.bool_]]
    n_clusters: Mapping[str, int]
    drawn: tuple[Mapping[str, NDArray[np.float64]], Mapping[str, NDArray[np.float64]]]

    @classmethod
    def of(
        cls,
        first: Mapping[str, Sums],
        second: Mapping[str, Sums],
        rows: Mapping[str, NDArray[np.bool_]],
        resamples: Resamples,
    ) -> _Both:
        one, other = ({name: table[name].only(own) for name, own in rows.items()} for table in (first, second))
        return cls(
            sides=(one, other),
            rows=rows,
            n_clusters={name: resamples.n_clusters(own) for name, own in rows.items()},
            drawn=(drawn_ratios(one, resamples), drawn_ratios(other, resamples)),
        )


def paired_from_sums(
    first: Mapping[str, Sums],
    second: Mapping[str, Sums],
    clusters: Sequence[str],
    wanted: Mapping[str, Composed],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, PairedSums]:
    """Both tables' metrics and their differences, over the rows that both count, from one set of resamples.

    Formula: of a metric of one part sum(first totals) / sum(first counted) - the same of second, over the rows where
        both count something; of a mean the unweighted mean of its parts' differences; of another composed metric
        make(first's parts) - make(second's parts), `Composed.by_first` over the rows where both count the first part.
    Args: first, second = columns over the same rows, the same ones in both; clusters[i] = cluster of row i; wanted =
        metric -> how it is made of columns.
    Returns: name -> pair, in the order of `wanted`; absent where no row is paired in one of its parts.
    """
    both = {name: (first[name].counted > 0) & (second[name].counted > 0) for name in first}
    both = {name: rows for name, rows in both.items() if rows.any()}
    wanted = {name: how for name, how in wanted.items() if all(part in both for part in how.counting)}
    if not wanted:
        return {}
    resamples = Resamples(clusters, draws=draws, seed=seed)
    alone = dict.fromkeys(part for how in wanted.values() if not how.by_first for part in how.parts)
    paired = _Both.of(first, second, {part: both[part] for part in alone}, resamples)
    singles = _pairs_of(paired)
    means = {name: how.parts for name, how in wanted.items() if how.is_mean and how.parts != (name,)}
    sides = [
        with_means(side, means, paired.n_clusters, drawn)
        for side, drawn in zip(paired.sides, paired.drawn, strict=True)
    ]
    found: dict[str, PairedSums] = {}
    for name, how in wanted.items():
        if how.by_first:
            rows = dict.fromkeys(how.parts, both[how.parts[0]])
            found[name] = _made(_Both.of(first, second, rows, resamples), how)
        elif how.is_mean:
            difference = _mean_difference(paired, how.parts, singles) if name in means else singles[name]
            found[name] = PairedSums(first=sides[0][name], second=sides[1][name], difference=difference)
        else:
            found[name] = _made(paired, how)
    return found


def _pairs_of(paired: _Both) -> dict[str, Estimate]:
    """Each column's difference."""
    return {
        name: _difference(
            paired.sides[0][name],
            paired.sides[1][name],
            paired.n_clusters[name],
            paired.drawn[0][name] - paired.drawn[1][name],
            n=int(rows.sum()),
        )
        for name, rows in paired.rows.items()
    }


def _mean_difference(paired: _Both, parts: Sequence[str], singles: Mapping[str, Estimate]) -> Estimate:
    apart = [paired.drawn[0][part] - paired.drawn[1][part] for part in parts]
    n = int(np.any([paired.rows[part] for part in parts], axis=0).sum())
    return replace(mean_of([singles[part] for part in parts], apart), n=n)


def _made(paired: _Both, how: Composed) -> PairedSums:
    """A metric that is no mean of its parts, by the draws alone."""
    values, drawn, weights = [], [], []
    for side, own in zip(paired.sides, paired.drawn, strict=True):
        parts = [np.array([side[part].value if side[part].weight > 0 else np.nan]) for part in how.parts]
        values.append(float(how.make(*parts)[0]))
        drawn.append(how.make(*(own[part] for part in how.parts)))
        weights.append(sum(side[part].n for part in how.counting))
    n = int(np.any([paired.rows[part] for part in how.counting], axis=0).sum())
    sides = [
        Estimate(value=value, n=weight, ci95=middle(own), method="cluster_bootstrap")
        for value, own, weight in zip(values, drawn, weights, strict=True)
    ]
    apart = Estimate(value=values[0] - values[1], n=n, ci95=middle(drawn[0] - drawn[1]), method="cluster_bootstrap")
    return PairedSums(first=sides[0], second=sides[1], difference=apart)


def _difference(first: Sums, second: Sums, n_clusters: int, drawn: NDArray[np.float64], *, n: int) -> Estimate:
    """One column's difference. Args: first, second = of the paired rows alone; drawn = differences in the resamples."""
    value = first.value - second.value
    most = first.span.high - first.span.low
    interval, method = (None, ONE_CLUSTER) if n_clusters == 1 else (middle(drawn), "cluster_bootstrap")
    apart = first.totals - second.totals
    graded = first.graded or second.graded
    if n_clusters > 1 and n_clusters == n and first.counted.max() == second.counted.max() == 1:
        column = replace(
            first,
            totals=apart,
            squares=apart**2,
            counted=(first.counted > 0).astype(np.int64),
            span=Interval(-most, most),
            graded=graded,
        )
        if graded and column.deviates:
            interval, method = column.closed_form(n_clusters)
        elif not graded and most == 1:
            plus, minus = float((apart == 1).sum()), float((apart == -1).sum())
            interval, method = agresti_min(plus, minus, n), "paired_agresti_min"
    if interval is None and n_clusters > 1:
        share = min(max(value / most, -1.0), 1.0)
        ends = agresti_min(n_clusters * max(share, 0.0), n_clusters * max(-share, 0.0), n_clusters)
        interval, method = Interval(most * ends.low, most * ends.high), "agresti_min_by_cluster"
    return Estimate(value=value, n=n, ci95=interval, method=method, points=first.points)
