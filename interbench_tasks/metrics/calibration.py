"""A panel's rate, corrected by what people said of a sample of the same items.

Judges err, and more of them do not err less: they err alike. A sample of items that people labelled says by how much,
and moves the panel's rate over all items. Prediction-powered inference, stratified:

    corrected = sum_h W_h * (lam * F_h + y_h - lam * f_h)

h = strata, W_h = share of the items in h, F_h = panel's mean over all items of h, f_h and y_h = panel's and people's
mean over the labelled ones. `lam` in [0, 1] is how far the panel is trusted: the one with the least variance, as it is
estimated; 0 is the people's sample alone. A mean over the items that count (DP over the detected ones) is a ratio of
two such sums, with one `lam`; which items count is corrected too, for people may detect something where the panel did
not.

The interval is Wilson's with as many observations as the estimate is worth, p (1 - p) / V, and Student's t for z:

- V = delete-one jackknife over the labels, `lam` estimated anew each time, times 1 - n_h/N_h: that is what drawing the
  sample does, and clusters have no part in it, for items are drawn one by one. Plus what the N items themselves vary
  by: people's variance / N_h, times a design effect where items share clusters.
- The jackknife is never below the variance of one more label that differs by one step: a sample without any error of
  the panel does not prove that there is none.

Why not the interval of `ppi_py` (normal, 1.96 standard errors; the estimate itself is taken from that library)? 3,146
items, 180 labelled in 12 strata, sensitivity 0.8, specificity 0.95; share of intervals that hold the truth, and their
mean width, measured over 10,000 samples (of the third and fourth line 20,000):

| interval                                                    | rate 0.05    | 0.33         | 0.9          |
|-------------------------------------------------------------|--------------|--------------|--------------|
| `ppi_py`, lam = 1 (plain)                                   | 0.943, 0.071 | 0.947, 0.097 | 0.948, 0.119 |
| `ppi_py`, lam estimated                                     | 0.918, 0.052 | 0.945, 0.091 | 0.932, 0.076 |
| t for the normal quantile                                   | 0.920, 0.052 | 0.949, 0.091 | 0.935, 0.076 |
| Wilson with t, variance as if lam were known                | 0.933, 0.053 | 0.950, 0.091 | 0.944, 0.077 |
| this one                                                    | 0.952, 0.056 | 0.953, 0.092 | 0.949, 0.078 |

At 0.05 an estimated `lam` makes the interval a quarter narrower than lam = 1 does, but its variance looks smaller than
it is, for the few labels that it is estimated from are those that it is applied to; the jackknife sees that. Measured
beside it: strata whose rates differ 19-fold 0.948 and 0.952, judges of 0.99 and 0.99 0.946 to 0.960 (0.923 at a rate
of 0.02, where one label in 50 is a hit), of 0.6 and 0.8 0.950 and 0.963, 45 labels in 3 strata 0.948 and 0.955; 600
items in clusters of 5 or 10 that share half or all of their variance, 200 labelled, 0.938 to 0.955 (0.60 to 0.84 where
the clusters are ignored). A mean over detected items (DP) at rates of detection from 0.02 to 0.9: 0.935 to 0.967.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.closed_forms import Interval, wilson
from interbench_tasks.metrics.intervals import Estimate

METHOD = "ppi_wilson_t"
LEAST_LABELS = 5
"""Labels that a stratum needs; fewer do not tell how far judges and people differ in it."""
MERGED = "merged strata"


class CalibrationError(InterbenchError):
    """A rate cannot be corrected: too few labels, or a library is missing; says which, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one side, the panel or the people, says of every item, for one metric."""

    values: NDArray[np.float64]
    """float64 [items]: the item's value; 0 where it does not count or is not known."""
    counts: NDArray[np.bool_]
    """bool [items]: whether the item is in the mean, e.g. for DP whether something was detected."""
    known: NDArray[np.bool_]
    """bool [items]: whether this side said anything: the panel has a verdict, people have labelled it."""

    @classmethod
    def from_values(cls, values: Sequence[float | None], counts: Sequence[bool | None] | None = None) -> Said:
        """One side from lists, an entry an item.

        Args: values[i] = None where it is not known, or does not count; counts[i] = None where nobody knows whether it
            counts; without `counts`, every item with a value does.
        """
        there = [None if value is None else True for value in values] if counts is None else list(counts)
        known = np.array([one is not None for one in there], dtype=np.bool_)
        counted = np.array([bool(one) for one in there], dtype=np.bool_)
        taken = [value if one and value is not None else 0.0 for value, one in zip(values, counted, strict=True)]
        return cls(values=np.array(taken, dtype=np.float64), counts=counted, known=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """A part of the items that was sampled by itself."""

    name: str
    n: int
    """Items of which the panel has a verdict."""
    n_labelled: int
    """Of them, those that people labelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A rate or mean, corrected."""

    estimate: Estimate
    """Of all items; `n` = items that count by the panel's verdict, as under the panel's own value (where it lets none
    count: the labelled ones that count for people); `unscored` = items without a verdict, which the correction says
    nothing of: `bounds` has the range over all that they could be. `ci95` is of the items with a verdict."""
    n_labelled: int
    """Labels used, also of items that do not count: they say how many do."""
    trust: float
    """`lam`, in [0, 1]: 0 where the panel's verdicts are of no use, so that the labels speak alone."""
    worth: float
    """Independent labels that would give as narrow an interval without any judge."""
    strata: tuple[Stratum, ...]
    merged: tuple[str, ...] = ()
    """Strata with too few labels that were taken as one."""


def corrected_mean(
    judge: Said,
    people: Said,
    *,
    strata: Sequence[str],
    clusters: Sequence[str] | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    step: float | None = None,
    points: float | None = None,
    merge_small: bool = False,
) -> Corrected:
    """The panel's rate over all items, corrected by people's labels on some of them.

    Formula: the module's; `ppi_py.ppi_mean_pointestimate` with the weight W_h / n_h for a labelled item.
    Source: Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv 2311.01453; strata: Fisch et al. (2024), arXiv
        2406.04291; jackknife by strata: Wolter (2007), Introduction to Variance Estimation, section 4.5; Wilson's
        interval with an effective n: Kott and Carr (1997), Journal of Official Statistics 13(1). Put together by us.
    Args: judge, people = of the same items, in one order; strata[i] = stratum of item i, within which the labelled
        items were drawn by chance; clusters[i] = what items share that are not independent (None: all are); span =
        smallest and largest value; step = least difference of two values (None: the span, as of yes and no);
        merge_small = take strata with less than LEAST_LABELS labels as one, which supposes that judges err alike
        in them.
    Returns: the corrected estimate; an item without a verdict of the panel is unscored.
    Raises: CalibrationError where `ppi_py` is missing, no item is labelled, none of the labelled ones counts, or a
        stratum has less than LEAST_LABELS labels (and not all of its items are labelled); it names all of them.
    """
    names = np.asarray(strata, dtype=np.str_)
    used = judge.known
    labelled = used & people.known
    if not labelled.any():
        raise CalibrationError("no item has both a verdict of the panel and a label of people; label some first")
    codes, parts, merged = _strata(names, used, labelled, merge_small=merge_small)
    groups = np.arange(len(names)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    data = _Data.from_sides(judge, people, codes, parts, groups)
    tuned = data.estimates()
    whole = _one(tuned, 0)
    if not math.isfinite(whole.value):
        raise CalibrationError("nothing that people labelled counts for this metric, so there is nothing to correct by")
    value, worth, ci95 = data.interval(tuned, span=span, step=step if step is not None else span[1] - span[0])
    n, unscored = int(used.sum()), int((~used).sum())
    bounds = _bounds(value, n * whole.counted, unscored, span)
    counting = int((used & judge.counts).sum()) or int((labelled & people.counts).sum())
    return Corrected(
        estimate=Estimate(
            value=value, n=counting, unscored=unscored, ci95=ci95, bounds=bounds, method=METHOD, points=points
        ),
        n_labelled=int(labelled.sum()),
        trust=whole.trust,
        worth=worth,
        strata=parts,
        merged=merged,
    )


def _bounds(value: float, n: float, unscored: int, span: tuple[float, float]) -> Interval | None:
    """Range of the mean over all that the unscored items could be. Args: n = items that count."""
    if not unscored:
        return None
    low, high = ((n * value + unscored * end) / (n + unscored) for end in span)
    return Interval(min(low, value), max(high, value))


def _wilson_t(share: float, worth: float, degrees: int) -> Interval:
    """Wilson's interval with Student's quantile for the normal one."""
    from scipy.stats import t  # type: ignore[import-untyped]  # has no stubs; imported late, it takes long

    quantile = float(t.ppf(0.975, degrees))
    return wilson(share * worth, worth, level=2 * NormalDist().cdf(quantile) - 1)


# --- strata -----------------------------------------------------------------------------------------------------------


def _strata(
    names: NDArray[np.str_], used: NDArray[np.bool_], labelled: NDArray[np.bool_], *, merge_small: bool
) -> tuple[NDArray[np.int64], tuple[Stratum, ...], tuple[str, ...]]:
    """Each item's stratum by number (-1: no verdict), the strata, and the names of those that were merged."""
    listed, place_of = np.unique(names, return_inverse=True)
    sizes, taken = (np.bincount(place_of[chosen], minlength=len(listed)).tolist() for chosen in (used, labelled))
    found = {str(name): (n, own) for name, n, own in zip(listed, sizes, taken, strict=True) if n}
    small = [name for name, (n, n_labelled) in found.items() if n_labelled < min(LEAST_LABELS, n)]
    if small and not merge_small:
        told = ", ".join(f"{name} ({found[name][1]} of {found[name][0]} labelled)" for name in small)
        raise CalibrationError(
            f"too few labels in {len(small)} of {len(found)} strata: {told}; each needs {LEAST_LABELS}, or all of its "
            "items. Label more, or have these strata taken as one (--merge-small), which supposes that judges err "
            "alike in them"
        )
    as_one = tuple(small) if small else ()
    if as_one and sum(found[name][1] for name in as_one) < min(LEAST_LABELS, sum(found[name][0] for name in as_one)):
        # Still too few: the one with the fewest labels of the others joins them.
        others = sorted((own[1], name) for name, own in found.items() if name not in as_one)
        if not others:
            n_labelled = sum(own[1] for own in found.values())
            raise CalibrationError(f"{n_labelled} labels in all are too few to correct anything; label more")
        as_one = (*as_one, others[0][1])
    place = {name: MERGED if name in as_one else name for name in found}
    kept = list(dict.fromkeys(place.values()))
    parts = tuple(
        Stratum(
            name=one,
            n=sum(found[name][0] for name in found if place[name] == one),
            n_labelled=sum(found[name][1] for name in found if place[name] == one),
        )
        for one in kept
    )
    code = np.array([kept.index(place[str(name)]) if str(name) in place else -1 for name in listed], dtype=np.int64)
    return np.where(used, code[place_of], -1), parts, as_one


# --- the estimate -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tuned:
    """The estimate, and what it would be without each label; float64 [1 + labels]."""

    value: NDArray[np.float64]
    trust: NDArray[np.float64]
    counted: NDArray[np.float64]
    """Corrected share of the items that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    value: float
    trust: float
    counted: float


def _one(tuned: _Tuned, row: int) -> _Whole:
    return _Whole(value=float(tuned.value[row]), trust=float(tuned.trust[row]), counted=float(tuned.counted[row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """Items as numbers. Columns of a label: people's value, whether it counts, the panel's, whether that counts."""

    labels: NDArray[np.float64]
    """float64 [labelled, 4]."""
    stratum: NDArray[np.int64]
    """int64 [labelled]."""
    cluster: NDArray[np.int64]
    """int64 [labelled]: as in `cluster_of_all`."""
    everything: NDArray[np.float64]
    """float64 [items, 2]: the panel's value, and whether the item counts."""
    stratum_of_all: NDArray[np.int64]
    cluster_of_all: NDArray[np.int64]
    size: NDArray[np.float64]
    """float64 [strata]: items."""
    n: NDArray[np.float64]
    """float64 [strata]: labelled items."""
    n_clusters: int
    """Of all items."""
    weight: NDArray[np.float64] = field(repr=False)
    """float64 [strata]: share of the items."""
    panel: NDArray[np.float64] = field(repr=False)
    """float64 [strata, 2]: the panel's means over all items."""

    @classmethod
    def from_sides(
        cls,
        judge: Said,
        people: Said,
        codes: NDArray[np.int64],
        parts: Sequence[Stratum],
        groups: NDArray[np.int64],
    ) -> _Data:
        used = codes >= 0
        chosen = used & people.known
        columns = [people.values, people.counts, judge.values, judge.counts]
        everything = np.stack([judge.values[used], judge.counts[used]], axis=1).astype(np.float64)
        cluster_of_all = np.full(len(used), -1, dtype=np.int64)
        cluster_of_all[used] = np.unique(groups[used], return_inverse=True)[1]
        size = np.array([part.n for part in parts], dtype=np.float64)
        return cls(
            labels=np.stack([column[chosen] for column in columns], axis=1).astype(np.float64),
            stratum=codes[chosen],
            cluster=cluster_of_all[chosen],
            everything=everything,
            stratum_of_all=codes[used],
            cluster_of_all=cluster_of_all[used],
            size=size,
            n=np.array([part.n_labelled for part in parts], dtype=np.float64),
            n_clusters=int(cluster_of_all.max()) + 1,
            weight=size / size.sum(),
            panel=_sums(everything, codes[used], len(parts)) / size[:, None],
        )

    def estimates(self) -> _Tuned:
        """The estimate from all labels, then without each of them."""
        products = (self.labels[:, :, None] * self.labels[:, None, :]).reshape(len(self.labels), 16)
        columns = np.concatenate([np.ones((len(self.labels), 1)), self.labels, products], axis=1)
        whole = _sums(columns, self.stratum, len(self.size))
        left = np.broadcast_to(whole, (1 + len(columns), *whole.shape)).copy()
        left[1 + np.arange(len(columns)), self.stratum] -= columns
        return self._from_sums(left)

    def _from_sums(self, sums: NDArray[np.float64]) -> _Tuned:
        """Args: sums = [replicates, strata, 21]: labels, their four columns, and the columns' sixteen products."""
        n = np.maximum(sums[..., 0], 1)
        means = sums[..., 1:5] / n[..., None]
        between = sums[..., 5:].reshape(*sums.shape[:2], 4, 4) / n[..., None, None]
        between = (between - means[..., :, None] * means[..., None, :]) * (n / np.maximum(n - 1, 1))[..., None, None]
        w = self.weight
        plain = np.einsum("h,rhc->rc", w, means[..., :2])
        start = _ratio(plain[:, 0], plain[:, 1], otherwise=0.0)  # people's own mean; what lam is tuned around
        along = np.stack([np.ones_like(start), -start], axis=1)
        a = w**2 * np.maximum(1 / n - 1 / self.size, 0)
        of_both = np.einsum("rh,rc,rhcd,rd->r", a, along, between[..., :2, 2:], along)
        of_panel = np.einsum("rh,rc,rhcd,rd->r", a, along, between[..., 2:, 2:], along)
        trust = np.clip(_ratio(of_both, of_panel, otherwise=0.0), 0, 1)
        corrected = plain + trust[:, None] * np.einsum("h,rhc->rc", w, self.panel - means[..., 2:])
        value = _ratio(corrected[:, 0], corrected[:, 1], otherwise=np.nan)
        return _Tuned(value=value, trust=trust, counted=corrected[:, 1])

    def interval(self, tuned: _Tuned, *, span: tuple[float, float], step: float) -> tuple[float, float, Interval]:
        """The value (within its span), how many independent labels it is worth, and its 95% interval."""
        low, width = span[0], span[1] - span[0]
        whole = _one(tuned, 0)
        share = min(max((_library_value(self, whole.trust) - low) / width, 0.0), 1.0)
        worth = self.worth(share, self.variance(tuned, step=step) / width**2, whole.counted)
        ends = _wilson_t(share, worth, max(len(self.labels) - len(self.size), 1))
        return low + width * share, worth, Interval(low + width * ends.low, low + width * ends.high)

    def variance(self, tuned: _Tuned, *, step: float) -> float:
        """Variance of the estimate: of drawing the labels, and of the items themselves."""
        whole = _one(tuned, 0)
        moved = tuned.value[1:] - whole.value
        known = np.isfinite(moved)
        weight = ((self.n - 1) / self.n * (1 - self.n / self.size))[self.stratum]
        drawn = float((weight[known] * moved[known] ** 2).sum())
        taken = 1 - self.n / self.size  # 0 where all items of a stratum are labelled
        open_share = float((self.weight**2 / self.n * taken).sum() / (self.weight**2 / self.n).sum())
        least = (step / (self.independent() * whole.counted)) ** 2 * open_share
        return max(drawn, least) + self._own_variance(whole)

    def _own_variance(self, whole: _Whole) -> float:
        """What people's mean over all items varies by: s^2/N by strata, times the design effect."""
        apart = (self.labels[:, 0] - whole.value * self.labels[:, 1]) / whole.counted
        n_strata = len(self.size)
        apart = apart - (_sums(apart[:, None], self.stratum, n_strata)[:, 0] / self.n)[self.stratum]
        spread = _sums((apart**2)[:, None], self.stratum, n_strata)[:, 0] / np.maximum(self.n - 1, 1)
        effect = max(_design_effect(apart, self.cluster, self._crowd), self._panels_design_effect())
        return float((self.weight**2 * spread / self.size).sum()) * effect

    def _panels_design_effect(self) -> float:
        apart = self.everything[:, 0] - self.panel[self.stratum_of_all, 0]
        return _design_effect(apart, self.cluster_of_all, self._crowd)

    @property
    def _crowd(self) -> float:
        """In how large a cluster an item is, on average: the design effect of items that all say the same."""
        return float((np.bincount(self.cluster_of_all) ** 2).sum()) / len(self.everything)

    def independent(self) -> float:
        """As many labels drawn from all items alike would weigh as much: 1 / sum_h W_h^2 / n_h."""
        return 1 / float((self.weight**2 / self.n).sum())

    def worth(self, share: float, variance: float, counted: float) -> float:
        """Independent labels with this variance; where all are equal, as many as there are."""
        if variance <= 0 or not 0 < share < 1:
            return min(self.independent() * min(max(counted, 0.0), 1.0), self.n_clusters)
        return share * (1 - share) / variance


def _design_effect(apart: NDArray[np.float64], cluster: NDArray[np.int64], crowd: float) -> float:
    """How much more a mean varies because items share clusters, from 1 to `crowd`.

    Formula: 1 + r (crowd - 1); r = mean product of two items of one cluster / mean square, cut to [0, 1].
    Args: apart = deviations from the mean, of some of the items.
    """
    size, total, alone = (np.bincount(cluster, weights=column) for column in (np.ones(len(apart)), apart, apart**2))
    n_pairs = float((size * (size - 1)).sum())
    square = float(alone.sum()) / len(apart)
    if n_pairs == 0 or square <= 0:
        return 1.0
    together = float((total**2 - alone).sum()) / n_pairs
    return 1 + min(max(together / square, 0.0), 1.0) * (crowd - 1)


def _sums(columns: NDArray[np.float64], place: NDArray[np.int64], n_places: int) -> NDArray[np.float64]:
    """Sum of each column by place: [rows, columns] -> [places, columns]."""
    return np.stack([np.bincount(place, weights=column, minlength=n_places) for column in columns.T], axis=1)


def _ratio(top: NDArray[np.float64], bottom: NDArray[np.float64], *, otherwise: float) -> NDArray[np.float64]:
    out: NDArray[np.float64] = np.divide(top, bottom, out=np.full_like(top, otherwise), where=bottom > 1e-12)
    return out


def _library_value(data: _Data, trust: float) -> float:
    """The estimate by `ppi_py`: a mean, or a ratio of two."""
    ppi = _library()
    weights = (data.weight / data.n)[data.stratum]
    sides = [
        ppi.ppi_mean_pointestimate(
            data.labels[:, place], data.labels[:, 2 + place], data.everything[:, place], lam=trust, w=weights
        )
        for place in (0, 1)
    ]
    top, bottom = (float(np.asarray(side).ravel()[0]) for side in sides)
    return top / bottom


def _library() -> Any:  # noqa: ANN401 - an untyped library
    """Imported late: it is an extra, and compiles for a second."""
    try:
        import ppi_py
    except ImportError as error:
        raise CalibrationError(
            f"a rate is corrected with ppi-python, which is missing ({error}): "
            "pip install 'interbench-tasks[calibration]'"
        ) from error
    return ppi_py
