"""How far judges agree beyond chance, how strict each is, and whether one prefers a strategy.

Every coefficient is 1 - observed / expected disagreement, both as shares in [0, 1]: 1 where the judges always agree, 0
where they agree as often as chance has it, below 0 where less often. It is undefined, and absent, where no item can be
counted, and where chance alone leaves nothing to disagree about, e.g. where all labels are the same.

| coefficient                      | chance                                | an item counts where        |
|----------------------------------|---------------------------------------|-----------------------------|
| raw agreement                    | none                                  | two judges gave a label     |
| Fleiss' kappa                    | all judges draw from the pooled labels| all judges gave one         |
| Cohen's kappa (two judges)       | each judge draws from its own labels  | both gave one               |
| Krippendorff's alpha             | as Fleiss, without replacement        | two judges gave a label     |

An item that does not count, and would where a judge that failed had given a label, is `unscored`; one to which the
label does not apply (nobody detected anything: no diagnosis) is neither. What a judge that failed would have said is
never guessed, so there are no bounds.
Values equal those of statsmodels and scikit-learn (a test holds them to it); theirs take one table at a time, and
10,000 resamples need all of them at once. The library for alpha is GPL-3.0, which we cannot require.

Intervals: percentile bootstrap of whole clusters, `bootstrap` where no two counted items share one. Where all draws are
the same (the judges never disagreed), `wilson_by_agreement`: Wilson's interval of the observed agreement, a cluster for
one item, with the expected one held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.closed_forms import Interval, wilson
from interbench_tasks.metrics.intervals import DRAWS, Estimate, Resamples

Label = str | int | float
Weights = Literal["plain", "linear", "quadratic"]
Level = Literal["nominal", "ordinal"]
MISSING = -1
_NO_WIDTH = 1e-9
"""A bootstrap interval up to this wide has collapsed; sums that are added in another order differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What several judges called the same items."""

    codes: NDArray[np.int64]
    """int64 [items, judges]: index into `categories`, -1 where the judge gave no label."""
    categories: tuple[Label, ...]
    """All labels that there can be; where they have an order, the lowest first."""
    judges: tuple[str, ...]
    clusters: tuple[str, ...]
    """By item: what items share that are not independent."""
    inapplicable: NDArray[np.bool_] | None = None
    """bool [items, judges]: where the label does not apply to what the judge said; None: it applies everywhere."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where a judge failed, bool [items, judges]: no label, though one could have been given."""
        absent: NDArray[np.bool_] = self.codes == MISSING
        return absent if self.inapplicable is None else absent & ~self.inapplicable

    def column(self, judge: str) -> NDArray[np.int64]:
        """One judge's codes, int64 [items].

        Raises: ValueError for an unknown judge.
        """
        if judge not in self.judges:
            raise ValueError(f"no judge is called {judge!r}; there are: {', '.join(self.judges)}")
        return self.codes[:, self.judges.index(judge)]


def labels_from(
    rows: Sequence[Sequence[Label | None]],
    *,
    judges: Sequence[str] | None = None,
    categories: Sequence[Label] | None = None,
    clusters: Sequence[str] | None = None,
    inapplicable: Sequence[Sequence[bool]] | None = None,
) -> Labels:
    """A matrix of labels, checked.

    Args: rows[i][j] = what judge j called item i, None where it gave no label; judges = their names (default `judge 0`,
        ...); categories = all labels in their order (default: those that are there, sorted, all texts or all numbers);
        clusters[i] = cluster of item i (default: all independent); inapplicable[i][j] = whether judge j has no label
        because there is none to give (default: nowhere, so no label is a failure).
    Raises: ValueError for no row, less than two judges, one name twice, ragged rows, and labels that are not in
        `categories`, are no number (nan), or cannot be sorted.

    >>> labels_from([["yes", "no"], ["yes", None]]).codes.tolist()
    [[1, 0], [1, -1]]
    """
    width = len(rows[0]) if rows else 0
    if width < 2 or any(len(row) != width for row in rows):
        raise ValueError(
            f"labels_from: need one row at least, all of the same two or more judges; the first has {width}"
        )
    names = tuple(judges) if judges is not None else tuple(f"judge {number}" for number in range(width))
    if len(names) != width or len(set(names)) < width:
        raise ValueError(f"labels_from: need a name of its own for each of {width} judges, got {', '.join(names)}")
    groups = tuple(clusters) if clusters is not None else tuple(str(row) for row in range(len(rows)))
    if len(groups) != len(rows):
        raise ValueError(f"labels_from: {len(rows)} items, but {len(groups)} clusters")
    known = tuple(categories) if categories is not None else _sorted_labels(rows)
    code = {label: number for number, label in enumerate(known)} | {None: MISSING}
    if len(code) < len(known) + 1:
        raise ValueError(f"labels_from: a category is there twice: {known}")
    foreign = {label for row in rows for label in row if label not in code}
    if foreign:
        raise ValueError(f"labels_from: {sorted(map(str, foreign))} are not among the categories {list(known)}")
    codes = np.array([[code[label] for label in row] for row in rows], dtype=np.int64)
    silent = None if inapplicable is None else np.array(inapplicable, dtype=np.bool_).reshape(codes.shape)
    return Labels(codes=codes, categories=known, judges=names, clusters=groups, inapplicable=silent)


def _sorted_labels(rows: Sequence[Sequence[Label | None]]) -> tuple[Label, ...]:
    found = {label for row in rows for label in row if label is not None}
    if any(isinstance(label, float) and math.isnan(label) for label in found):
        raise ValueError("labels_from: a label is nan; a judge without a label is None")
    try:
        return tuple(sorted(found))
    except TypeError as error:
        raise ValueError("labels_from: labels are texts and numbers; say `categories`, in their order") from error


# --- coefficients ---------------------------------------------------------------------------------------------------


class Disagreement(NamedTuple):
    """Of each draw, float64 [draws]: shares in [0, 1]; NaN where nothing is counted."""

    observed: NDArray[np.float64]
    expected: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A coefficient before its interval: sums over items, and what is made of them."""

    columns: NDArray[np.float64]
    """float64 [items, columns]; 0 where an item does not count."""
    counted: NDArray[np.bool_]
    """bool [items]."""
    possible: NDArray[np.bool_] | None = None
    """bool [items]: those that would count if each judge that failed had given a label; None: all."""
    from_sums: Callable[[NDArray[np.float64]], Disagreement]
    """Column sums of each draw, [draws, columns] -> observed and expected disagreement."""
    share: bool = False
    """True for a share (shown in percent), False for a coefficient (shown as it is)."""


def raw_agreement(labels: Labels) -> Coefficient:
    """Share of pairs of judges that give an item the same label, mean over items, in [0, 1].

    Formula: mean_i( sum_j n_ij (n_ij - 1) / (m_i (m_i - 1)) ); n_ij = judges that chose label j, m_i = judges with a
        label; items with m_i < 2 do not count.
    Source: P_i of Fleiss (1971), Psychological Bulletin 76(5), 378-382.
    """
    counts = _counts(labels)
    judged = counts.sum(axis=1)
    counted = judged >= 2
    possible = judged + labels.missing.sum(axis=1) >= 2
    pairs = np.where(counted, judged * (judged - 1), 1.0)
    unlike = np.where(counted, 1 - (counts * (counts - 1)).sum(axis=1) / pairs, 0.0)
    columns = np.stack([unlike, counted], axis=1)

    def from_sums(sums: NDArray[np.float64]) -> Disagreement:
        return Disagreement(_ratio(sums[:, 0], sums[:, 1]), np.ones(len(sums)))

    return Coefficient(columns=columns, counted=counted, possible=possible, from_sums=from_sums, share=True)


def fleiss_kappa(labels: Labels) -> Coefficient:
    """Agreement of a fixed number of judges beyond what pooled chance gives; items that a judge left out do not count.

    Formula: (P - P_e) / (1 - P_e); P = raw agreement, P_e = sum_j p_j^2, p_j = share of label j among all labels.
    Source: Fleiss (1971), Psychological Bulletin 76(5), 378-382.
    """
    n_judges = len(labels.judges)
    counted = (labels.codes != MISSING).all(axis=1)
    possible = ((labels.codes != MISSING) | labels.missing).all(axis=1)
    counts = np.where(counted[:, None], _counts(labels), 0.0)
    unlike = np.where(counted, 1 - (counts * (counts - 1)).sum(axis=1) / (n_judges * (n_judges - 1)), 0.0)
    columns = np.concatenate([unlike[:, None], counts], axis=1)

    def from_sums(sums: NDArray[np.float64]) -> Disagreement:
        total = sums[:, 1:].sum(axis=1)
        shares = _ratio(sums[:, 1:], total[:, None])
        return Disagreement(_ratio(sums[:, 0] * n_judges, total), 1 - (shares**2).sum(axis=1))

    return Coefficient(columns=columns, counted=counted, possible=possible, from_sums=from_sums)


def cohens_kappa(labels: Labels, first: str, second: str, weights: Weights = "plain") -> Coefficient:
    """Agreement of two judges beyond what their own habits give; weighted: near labels disagree less.

    Formula: 1 - sum_jk w_jk p_jk / sum_jk w_jk p_j. p_.k; p_jk = share of items that the first calls j and the second
        k; w_jk = [j != k], |j - k| or (j - k)^2 of the labels' places in `categories`, the largest scaled to 1.
    Source: Cohen (1960), Educational and Psychological Measurement 20(1), 37-46; weighted: Cohen (1968),
        Psychological Bulletin 70(4), 213-220.
    Raises: ValueError for an unknown judge.
    """
    one, other = labels.column(first), labels.column(second)
    size = max(len(labels.categories), 1)
    counted = (one != MISSING) & (other != MISSING)
    places = [labels.judges.index(judge) for judge in (first, second)]
    possible = ((labels.codes != MISSING) | labels.missing)[:, places].all(axis=1)
    columns = np.zeros((len(one), size * size))
    columns[np.flatnonzero(counted), one[counted] * size + other[counted]] = 1
    apart = np.abs(np.arange(size)[:, None] - np.arange(size)[None, :]) / max(size - 1, 1)
    weight = {"plain": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[weights]

    def from_sums(sums: NDArray[np.float64]) -> Disagreement:
        shares = _ratio(sums, sums.sum(axis=1, keepdims=True)).reshape(-1, size, size)
        expected = np.einsum("dj,dk,jk->d", shares.sum(axis=2), shares.sum(axis=1), weight)
        return Disagreement(np.einsum("djk,jk->d", shares, weight), expected)

    return Coefficient(columns=columns, counted=counted, possible=possible, from_sums=from_sums)


def krippendorffs_alpha(labels: Labels, level: Level = "nominal") -> Coefficient:
    """Agreement of any number of judges beyond chance, also where some gave no label.

    Formula: 1 - (n - 1) sum_jk o_jk d_jk / sum_jk n_j n_k d_jk; o_jk = sum over items of their pairs (j, k) of two
        judges / (m_i - 1), n_j = sum_k o_jk, n = sum_j n_j; d_jk = [j != k], or, ordinal,
        (sum_{g=j..k} n_g - (n_j + n_k)/2)^2. An item with less than two labels does not count.
    Source: Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.
    """
    counts = _counts(labels)
    judged = counts.sum(axis=1)
    counted = judged >= 2
    possible = judged + labels.missing.sum(axis=1) >= 2
    counts = np.where(counted[:, None], counts, 0.0)
    pairs = counts[:, :, None] * counts[:, None, :]
    size = counts.shape[1]
    pairs[:, np.arange(size), np.arange(size)] -= counts
    columns = (pairs / np.where(counted, judged - 1, 1.0)[:, None, None]).reshape(len(counts), -1)

    def from_sums(sums: NDArray[np.float64]) -> Disagreement:
        together = sums.reshape(-1, size, size)
        each = together.sum(axis=2)
        total = each.sum(axis=1)
        apart = _distances(each, level)
        by_chance = np.einsum("dj,dk,djk->d", each, each, apart)
        return Disagreement(
            _ratio(np.einsum("djk,djk->d", together, apart), total), _ratio(by_chance, total * (total - 1))
        )

    return Coefficient(columns=columns, counted=counted, possible=possible, from_sums=from_sums)


def _distances(each: NDArray[np.float64], level: Level) -> NDArray[np.float64]:
    """How much two labels differ in each draw, [draws, labels, labels], the largest scaled to 1.

    Args: each = how often a label is there, [draws, labels].
    """
    if level == "nominal":
        size = each.shape[1]
        return np.broadcast_to(1 - np.eye(size), (len(each), size, size))
    middles = np.cumsum(each, axis=1) - each / 2  # between two labels: what lies between, and half of each
    apart = (middles[:, :, None] - middles[:, None, :]) ** 2
    largest = apart.max(axis=(1, 2), keepdims=True)
    return _ratio(apart, largest, otherwise=0.0)


def _counts(labels: Labels) -> NDArray[np.float64]:
    """How many judges gave an item each label, float64 [items, labels]."""
    codes = np.arange(max(len(labels.categories), 1))
    counted: NDArray[np.float64] = (labels.codes[:, :, None] == codes).sum(axis=1).astype(np.float64)
    return counted


def _ratio(top: NDArray[np.float64], bottom: NDArray[np.float64], otherwise: float = np.nan) -> NDArray[np.float64]:
    """Quotients; `otherwise` where the denominator is 0."""
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    out: NDArray[np.float64] = np.divide(top, bottom, out=np.full(shape, otherwise), where=bottom > 0)
    return out


# --- with their intervals -------------------------------------------------------------------------------------------


def agreement_of(labels: Labels, *, ordinal: bool = False, draws: int = DRAWS, seed: int = 0) -> dict[str, Estimate]:
    """Every coefficient that is defined, from one set of resamples.

    Args: ordinal = whether `categories` are in an order that means something, which adds the weighted ones.
    Returns: `raw_agreement`, `fleiss_kappa`, `krippendorffs_alpha` (and `.ordinal`), then for each pair of judges
        `cohens_kappa.<first>.<second>` (and `.linear`, `.quadratic`).
    """
    wanted: dict[str, Coefficient] = {
        "raw_agreement": raw_agreement(labels),
        "fleiss_kappa": fleiss_kappa(labels),
        "krippendorffs_alpha": krippendorffs_alpha(labels),
    }
    if ordinal:
        wanted["krippendorffs_alpha.ordinal"] = krippendorffs_alpha(labels, "ordinal")
    for first, second in combinations(labels.judges, 2):
        name = f"cohens_kappa.{first}.{second}"
        wanted[name] = cohens_kappa(labels, first, second)
        if ordinal:
            wanted[f"{name}.linear"] = cohens_kappa(labels, first, second, "linear")
            wanted[f"{name}.quadratic"] = cohens_kappa(labels, first, second, "quadratic")
    return estimates_from_coefficients(wanted, labels.clusters, draws=draws, seed=seed)


def estimates_from_coefficients(
    coefficients: Mapping[str, Coefficient], clusters: Sequence[str], *, draws: int = DRAWS, seed: int = 0
) -> dict[str, Estimate]:
    """Coefficients of the same items with their intervals; one that is undefined is absent.

    Args: clusters[i] = cluster of item i.
    """
    values = {name: _values(one, _sums(one.columns)) for name, one in coefficients.items()}
    defined = {name: one for name, one in coefficients.items() if not np.isnan(values[name][0])}
    if not defined:
        return {}
    resamples = Resamples(clusters, draws=draws, seed=seed)
    totals = resamples.totals(np.concatenate([one.columns for one in defined.values()], axis=1))
    found: dict[str, Estimate] = {}
    at = 0
    for name, one in defined.items():
        drawn = _values(one, totals[:, at : at + one.columns.shape[1]])
        at += one.columns.shape[1]
        found[name] = _estimate(one, float(values[name][0]), drawn, resamples.n_clusters(one.counted))
    return found


def _sums(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of each column, [1, columns], the same for any order of items."""
    return np.array([[math.fsum(column) for column in columns.T.tolist()]])


def _values(one: Coefficient, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coefficient in each draw, [draws]; NaN where it is undefined there."""
    observed, expected = one.from_sums(sums)
    known = ~np.isnan(observed) & (expected > _NO_WIDTH)
    share: NDArray[np.float64] = np.divide(observed, expected, out=np.full(len(sums), np.nan), where=known)
    return 1 - share


def _estimate(one: Coefficient, value: float, drawn: NDArray[np.float64], n_clusters: int) -> Estimate:
    n = int(one.counted.sum())
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, [0.025, 0.975]) if known.size else (value, value)
    ends, method = Interval(float(low), float(high)), "bootstrap" if n_clusters == n else "cluster_bootstrap"
    if high - low <= _NO_WIDTH:
        observed, expected = one.from_sums(_sums(one.columns))
        agreed = min(max(1 - float(observed[0]), 0.0), 1.0)
        by_agreement = wilson(agreed * n_clusters, n_clusters)
        ends = Interval(*(1 - (1 - end) / float(expected[0]) for end in by_agreement))
        method = "wilson_by_agreement"
    return Estimate(
        value=value,
        n=n,
        unscored=(len(one.counted) if one.possible is None else int(one.possible.sum())) - n,
        ci95=ends,
        method=method,
        points=None if one.share else 1.0,
    )
