"""Models side by side on the same items: their ranks, how sure the ranks are, and how metrics go together.

One set of resamples of items serves all models and metrics, so that what models share (easy and hard items) does not
count as uncertainty about who is better.

- **Rank**: 1 + number of models with a larger value; equal values share a rank. It says nothing of what is good: of a
  rate that should be low, the largest value has rank 1 too.
- **Rank interval**, simultaneous: with 95% confidence *all* true ranks lie in their intervals at once. A model's best
  rank is 1 + number of models that are larger beyond doubt, its worst one by those that are smaller.
- **Adjacent ranks**: the p-value of each step of the ranking, also adjusted (Holm) for their number. The steps were
  chosen by the same data: a ranking with many near models has some step that looks large. The rank intervals are not
  touched by that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.composed import Part, made_from
from interbench_tasks.metrics.intervals import DRAWS, Estimate, Resamples
from interbench_tasks.metrics.sums import ONE_CLUSTER

LEVEL = 0.95
_NOTHING = 1e-12
"""A deviation or difference up to this is none: sums in another order differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRank:
    """One model's place."""

    model: str
    rank: int
    """1 is the largest value; equal values share the smaller number."""
    best: int
    worst: int
    """The simultaneous 95% interval of the rank, `best <= rank <= worst`."""
    value: float
    """Mean over the items that count for it; of a composed metric, what its parts come to."""
    n: int
    """How many these are; where they have weights (conversations: questions), the weights' sum, rounded; of a composed
    metric that of the parts that say where it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStep:
    """Two models that stand one after the other."""

    above: str
    below: str
    difference: Estimate
    """Value of `above` - value of `below`, >= 0; its interval is one of its own, not adjusted. n = items that count for
    both. By the method `one_cluster` without interval, and with p = 1: a part of the metric rests on one cluster in one
    of the two, which no resampling varies."""
    p_bootstrap: float
    """Two-sided, in (0, 1]."""
    p_bootstrap_holm: float
    """Adjusted for the number of steps."""
    p_mcnemar: float | None
    """Two-sided and exact, over the items that count for both; None where a value is no 0 or 1, or items share
    clusters: it takes items for independent."""
    p_mcnemar_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Models by one metric."""

    metric: str
    models: tuple[ModelRank, ...]
    """The largest value first; equal ones by name."""
    steps: tuple[RankStep, ...]
    """One less than models."""
    left_out: tuple[str, ...]
    """Models for which no item counts."""
    n_items: int
    n_clusters: int


def rankings_from(
    metrics: Mapping[str, NDArray[np.float64]],
    models: Sequence[str],
    *,
    further: Mapping[str, Part] | None = None,
    composed: Mapping[str, Composed] | None = None,
    of: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Ranking]:
    """The ranking by each metric, then by each composed one; one that counts for less than two models has none.

    Formula: value = sum of totals / sum of weights over the items that count, which is their mean where none has a
        weight; rank interval: pairs whose simultaneous interval d +- c * s leaves 0 outside, d = difference of values,
        s = its bootstrap deviation, c = 95% quantile over the draws of the largest |d* - d| / s of all pairs;
        p = (1 + #{|d* - d| >= |d|}) / (1 + draws).
    Source: rank intervals as in Mogstad, Romano, Shaikh and Wilhelm (2024), Review of Economic Studies 91(1), 476-518;
        McNemar (1947), Psychometrika 12, 153-157; Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.
    Args: metrics = name -> float64 [models, items], NaN where the item does not count for the model; the same models
        and items in all; further = ratios of sums over these items; composed = name -> how it is made of metrics that
        are there, also of further ones; of = those that are ranked, None: all, also what others are made of;
        clusters[i] = cluster of item i, None: all independent.
    Raises: ValueError for shapes that do not fit, one name twice, or less than two models.
    """
    parts, groups = _checked(metrics, further or {}, models, clusters)
    if not parts:
        return {}
    resamples = Resamples(groups, draws=draws, seed=seed)
    drawn = _drawn(parts, resamples)
    found: dict[str, Ranking] = {}
    for name in (*parts, *(composed or {})) if of is None else of:
        how = (composed or {}).get(name) or Composed.of(name)
        means = made_from(parts, how)
        there = [index for index in range(len(models)) if not np.isnan(means[index])]
        if len(there) >= 2:
            kept = _Kept(
                how,
                {part: parts[part].of_models(there) for part in how.parts},
                means[there],
                how.make(*(drawn[part] for part in how.parts))[:, there],
                [models[index] for index in there],
                resamples,
            )
            found[name] = Ranking(
                metric=name,
                models=kept.ranks(),
                steps=kept.steps(),
                left_out=tuple(model for index, model in enumerate(models) if index not in there),
                n_items=len(groups),
                n_clusters=len(set(groups)),
            )
    return found


def _drawn(parts: Mapping[str, Part], resamples: Resamples) -> dict[str, NDArray[np.float64]]:
    """Part -> each model's value in each draw, [draws, models]; NaN where a draw has no item that counts."""
    # One pass for all parts; [models, items] of each become columns.
    totals = np.concatenate([part.totals for part in parts.values()], axis=0).T
    weights = np.concatenate([part.weights for part in parts.values()], axis=0).T
    drawn = resamples.ratios(totals, weights)
    n = len(next(iter(parts.values())).totals)
    return {name: drawn[:, place * n : (place + 1) * n] for place, name in enumerate(parts)}


def _checked(
    metrics: Mapping[str, NDArray[np.float64]],
    further: Mapping[str, Part],
    models: Sequence[str],
    clusters: Sequence[str] | None,
) -> tuple[dict[str, Part], Sequence[str]]:
    """All as parts, and the cluster of each item."""
    if len(models) < 2 or len(set(models)) < len(models):
        raise ValueError(f"rankings_from: need two models at least, each with a name of its own: {', '.join(models)}")
    shapes = {own.shape for own in (*metrics.values(), *(part.totals for part in further.values()))}
    if any(len(shape) != 2 or shape[0] != len(models) or shape[1] == 0 for shape in shapes) or len(shapes) > 1:
        raise ValueError(f"rankings_from: each metric must be [{len(models)} models, items], got {sorted(shapes)}")
    n_items = next(iter(shapes), (0, 0))[1]
    groups = clusters if clusters is not None else [str(item) for item in range(n_items)]
    if shapes and len(groups) != n_items:
        raise ValueError(f"rankings_from: {n_items} items, but {len(groups)} clusters")
    return {name: Part.of_values(values) for name, values in metrics.items()} | dict(further), groups


class _Kept:
    """The models that one metric counts for."""

    def __init__(
        self,
        how: Composed,
        parts: Mapping[str, Part],
        means: NDArray[np.float64],
        drawn: NDArray[np.float64],
        models: Sequence[str],
        resamples: Resamples,
    ) -> None:
        """Take what it is made of, the metric [models], and the metric in each draw, [draws, models]."""
        self._means, self._drawn = means, drawn
        self._models, self._resamples = models, resamples
        counting = [parts[part] for part in how.counting]
        self._counted: NDArray[np.bool_] = np.any([part.counted for part in counting], axis=0)
        self._n = np.sum([part.weights for part in counting], axis=(0, 2))
        self._weighted = any(bool((part.weights != part.counted).any()) for part in counting)
        self._values = counting[0].totals if len(how.parts) == 1 and not self._weighted else None
        self._order = sorted(range(len(models)), key=lambda index: (-self._means[index], models[index]))
        self._varies = [
            all(resamples.n_clusters(part.counted[model]) > 1 for part in counting) for model in range(len(models))
        ]

    def ranks(self) -> tuple[ModelRank, ...]:
        """Every model with its rank and the rank's interval, the largest value first."""
        larger = self._larger_beyond_doubt()
        means = self._means
        return tuple(
            ModelRank(
                model=self._models[index],
                rank=1 + int((means > means[index] + _NOTHING).sum()),
                best=1 + int(larger[:, index].sum()),
                worst=len(means) - int(larger[index].sum()),
                value=float(means[index]),
                n=round(float(self._n[index])),
            )
            for index in self._order
        )

    def _larger_beyond_doubt(self) -> NDArray[np.bool_]:
        """[models, models]: whether the first is larger than the second, all pairs at once.

        Where the draws of a pair are all the same, their deviation says nothing: such a pair has the sign test of its
        clusters, with its p times the number of pairs.
        """
        n = len(self._models)
        apart = self._means[:, None] - self._means[None, :]
        deviation = np.full((n, n), np.nan)
        surely = np.zeros((n, n), dtype=np.bool_)
        largest = np.zeros(len(self._drawn))
        for one in range(n - 1):  # row by row: all pairs of many models at once would take gigabytes
            for other in range(one + 1, n):
                if not self._known(one, other):
                    continue
                moved = np.abs(self._drawn[:, one] - self._drawn[:, other] - apart[one, other])
                spread = float(np.nanstd(self._drawn[:, one] - self._drawn[:, other]))
                if spread > _NOTHING:
                    deviation[one, other] = deviation[other, one] = spread
                    largest = np.fmax(largest, moved / spread)
                else:
                    p = self._sign_p(one, other) * n * (n - 1) / 2
                    surely[one, other] = surely[other, one] = p <= 1 - LEVEL
        critical = float(np.quantile(largest, LEVEL))
        larger: NDArray[np.bool_] = (apart > _NOTHING) & (surely | (apart > critical * deviation))
        return larger

    def _known(self, one: int, other: int) -> bool:
        """Whether each part of both rests on two clusters at least, so that its draws vary."""
        return self._varies[one] and self._varies[other]

    def _sign_p(self, one: int, other: int) -> float:
        """Two-sided p where all clusters that count for both say the same."""
        return float(2.0 ** (1 - self._n_clusters(one, other)))

    def _n_clusters(self, one: int, other: int) -> int:
        return max(1, self._resamples.n_clusters(self._counted[one] & self._counted[other]))

    def steps(self) -> tuple[RankStep, ...]:
        """Each model against the next one."""
        pairs = list(zip(self._order, self._order[1:], strict=False))
        tested = [self._tested(above, below) for above, below in pairs]
        bootstrapped = holm([p for _, p, _ in tested])
        exact = iter(holm([p for _, _, p in tested if p is not None]))
        return tuple(
            RankStep(
                above=self._models[above],
                below=self._models[below],
                difference=difference,
                p_bootstrap=p,
                p_bootstrap_holm=adjusted,
                p_mcnemar=mcnemar,
                p_mcnemar_holm=None if mcnemar is None else next(exact),
            )
            for (above, below), (difference, p, mcnemar), adjusted in zip(pairs, tested, bootstrapped, strict=True)
        )

    def _tested(self, above: int, below: int) -> tuple[Estimate, float, float | None]:
        """Difference, bootstrap p and exact p of two models."""
        apart = float(self._means[above] - self._means[below])
        drawn = self._drawn[:, above] - self._drawn[:, below]
        drawn = drawn[~np.isnan(drawn)]
        both = self._counted[above] & self._counted[below]
        n, n_clusters = int(both.sum()), self._n_clusters(above, below)
        if not self._known(above, below):
            return Estimate(value=apart, n=n, ci95=None, method=ONE_CLUSTER), 1.0, None
        collapsed = drawn.size == 0 or float(np.std(drawn)) <= _NOTHING
        if collapsed:  # what could be drawn is always the same: p is that of a sign test of the clusters
            p, ends = 1.0 if apart <= _NOTHING else self._sign_p(above, below), None
        else:
            # A margin, because a draw that should be equal may differ in its last bit.
            p = (1 + int((np.abs(drawn - apart) >= apart - _NOTHING).sum())) / (1 + drawn.size)
            low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            ends = Interval(float(low), float(high))
        independent = n_clusters >= n
        method = "paired_bootstrap" if independent and not self._weighted else "cluster_bootstrap"
        difference = Estimate(value=apart, n=n, ci95=ends, method=method)
        exact = None
        if independent and self._values is not None:
            exact = exact_mcnemar(self._values[above][both], self._values[below][both])
        return difference, max(p, 1 / (1 + len(self._drawn))), exact


def exact_mcnemar(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Two-sided exact p of two models' successes on the same independent items; None where a value is no 0 or 1.

    Formula: binomial test of the items that only the first got, among those that only one got, against 1/2.
    Source: McNemar (1947), Psychometrika 12, 153-157; exact form as scipy's binomtest.
    Args: first, second = float64 [items].

    >>> exact_mcnemar(np.ones(5), np.zeros(5))
    0.0625
    """
    if not (np.isin(first, (0, 1)).all() and np.isin(second, (0, 1)).all()):
        return None
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # has no stubs; slow to import

    only_first, only_second = int((first > second).sum()), int((second > first).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number, in their order.

    Formula: the k-th smallest of m becomes the largest (m - j + 1) p_j of j <= k, at most 1.
    Source: Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70. Not statsmodels' `multipletests`, which
        collects all garbage of the process at each call: 0.3 s.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted


# --- how metrics go together ------------------------------------------------------------------------------------------


def across_models(
    metrics: Mapping[str, NDArray[np.float64]],
    pairs: Sequence[tuple[str, str]] = (),
    *,
    further: Mapping[str, Part] | None = None,
    composed: Mapping[str, Composed] | None = None,
    of: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Estimate]:
    """How much each metric varies over the models, and how metrics go together over them.

    Formula: `cv.<metric>` = standard deviation / mean of the models' values (n - 1 in the denominator);
        `r.<first>.<second>` = Pearson's correlation of the models' values.
    Source: MMPCBench (arXiv 2608.29286), r(EDA, PCQ), r(Q, PCQ) and CVs; which deviation it takes is not said.
    Args: metrics = name -> float64 [models, items], NaN where the item does not count for the model; further, composed
        and clusters as in `rankings_from`; of = those that are told, None: all.
    Returns: estimates, n = models; the interval resamples items, for these models: it says nothing of other models. A
        CV of less than two models or of mean 0 is absent, so is an r of less than three, or of a metric that is the
        same for all.
    Raises: ValueError for a pair that names no metric.
    """
    parts = {name: Part.of_values(values) for name, values in metrics.items()} | dict(further or {})
    made = composed or {}
    unknown = [name for pair in pairs for name in pair if name not in parts and name not in made]
    if unknown:
        raise ValueError(f"across_models: no metric {', '.join(unknown)}; there are: {', '.join([*parts, *made])}")
    if not parts:
        return {}
    n_items = next(iter(parts.values())).totals.shape[1]
    groups = clusters if clusters is not None else [str(item) for item in range(n_items)]
    drawn = _drawn(parts, Resamples(groups, draws=draws, seed=seed))
    by_metric = {name: np.concatenate([part.ratios()[None], drawn[name]]) for name, part in parts.items()}
    by_metric |= {name: how.make(*(by_metric[part] for part in how.parts)) for name, how in made.items()}
    told = [*parts, *made] if of is None else of
    independent = len(set(groups)) == len(groups)
    method = "bootstrap" if independent else "cluster_bootstrap"
    return dict(_across(by_metric, told, pairs, method))


def _across(
    by_metric: Mapping[str, NDArray[np.float64]], told: Sequence[str], pairs: Sequence[tuple[str, str]], method: str
) -> Iterator[tuple[str, Estimate]]:
    """Args: by_metric = name -> [1 + draws, models]; the first row holds the values themselves."""
    for name in told:
        own = by_metric[name]
        kept = own[:, ~np.isnan(own[0])]
        if kept.shape[1] >= 2 and abs(kept[0].mean()) > _NOTHING:
            means = kept.mean(axis=1)
            cv = np.divide(kept.std(axis=1, ddof=1), means, out=np.full(len(kept), np.nan), where=means > _NOTHING)
            yield f"cv.{name}", _of_models(cv, kept.shape[1], method)
    for first, second in pairs:
        both = ~np.isnan(by_metric[first][0]) & ~np.isnan(by_metric[second][0])
        one, other = by_metric[first][:, both], by_metric[second][:, both]
        if both.sum() >= 3 and one[0].std() > _NOTHING and other[0].std() > _NOTHING:
            yield f"r.{first}.{second}", _of_models(_pearson(one, other), int(both.sum()), method)


def _pearson(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correlation of each row, [rows, models] -> [rows]; NaN where a side is the same for all models."""
    left, right = one - one.mean(axis=1, keepdims=True), other - other.mean(axis=1, keepdims=True)
    spread = np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    found: NDArray[np.float64] = np.divide(
        (left * right).sum(axis=1), spread, out=np.full(len(one), np.nan), where=spread > _NOTHING
    )
    return np.clip(found, -1.0, 1.0)


def _of_models(rows: NDArray[np.float64], n: int, method: str) -> Estimate:
    """The first row's value, with the interval of the others."""
    known = rows[1:][~np.isnan(rows[1:])]
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if known.size else (np.nan, np.nan)
    ends = Interval(float(low), float(high)) if high - low > _NOTHING else None
    return Estimate(value=float(rows[0]), n=n, ci95=ends, method=method, points=1.0)
