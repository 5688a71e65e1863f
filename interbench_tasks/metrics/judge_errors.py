"""What people's labels tell of the judges: how many independent ones they amount to; and another aggregate of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import DRAWS, Estimate, Interval, Resamples

LEAST_JUDGES = 3
"""Judges that Dawid-Skene needs: with two, their disagreements can be laid at the door of either."""
_NO_SPREAD = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgesWorth:
    """How many independent judges a panel amounts to."""

    estimate: Estimate | None
    """None where it is undefined."""
    why: str = ""
    """Why it is undefined."""


def effective_judges(
    errors: Mapping[str, Sequence[float | None]],
    *,
    clusters: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> JudgesWorth:
    """The number of independent judges whose mean errs as much as that of these.

    Formula: k / (1 + (k - 1) r); r = mean, over pairs of judges, of the correlation of their errors over the items that
        both judged; error = judge - people. A pair of which one never varies (no error at all, or always the same) has
        no correlation and is left out. k where errors have nothing in common, 1 where all judges err alike, above k
        where one errs up when the other errs down.
    Source: the design effect of Kish (1965), Survey Sampling, section 5.4, with judges as the members of a cluster.
    Args: errors = judge -> its error on each labelled item, None where it or the label is missing; clusters[i] = what
        items share that are not independent.
    Returns: `n` = items that all judges judged; the interval is a percentile bootstrap of clusters, of the draws in
        which it is defined. Undefined for one judge, and where no pair has a correlation, e.g. where there is no error.

    >>> effective_judges({"a": [1, 0, 0, 0], "b": [1, 0, 0, 0]}).estimate.value
    1.0
    >>> effective_judges({"a": [0, 0], "b": [0, 0]}).why
    'no two judges err on the labelled items in a way that varies'
    """
    if len(errors) < 2:
        return JudgesWorth(estimate=None, why="there is one judge only")
    given = np.array([[np.nan if one is None else one for one in own] for own in errors.values()], dtype=np.float64).T
    if not len(given):
        return JudgesWorth(estimate=None, why="no item is labelled")
    columns = _pair_columns(given)
    value = float(_worth(columns.sum(axis=0)[None], len(errors))[0])
    if np.isnan(value):
        varies = int((np.nanstd(given, axis=0) > _NO_SPREAD).sum()) >= 2
        alone = "no two judges err on the labelled items in a way that varies"
        return JudgesWorth(estimate=None, why="the judges' errors cancel each other out" if varies else alone)
    groups = list(clusters) if clusters is not None else [str(item) for item in range(len(given))]
    drawn = _worth(Resamples(groups, draws=draws, seed=seed).totals(columns), len(errors))
    known = drawn[~np.isnan(drawn)]
    ends = np.quantile(known, [0.025, 0.975]) if known.size else (value, value)
    whole = ~np.isnan(given).any(axis=1)
    return JudgesWorth(
        estimate=Estimate(
            value=value,
            n=int(whole.sum()),
            unscored=int((~whole).sum()),
            ci95=Interval(float(ends[0]), float(ends[1])),
            method="bootstrap" if len(set(groups)) == len(groups) else "cluster_bootstrap",
            points=float(len(errors)),
        )
    )


def _pair_columns(given: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64 [items, 6 * pairs]: of each pair count, sums, squares and product, 0 where one of the two is missing."""
    found = []
    for first, second in combinations(range(given.shape[1]), 2):
        both = ~np.isnan(given[:, first]) & ~np.isnan(given[:, second])
        x, y = (np.where(both, given[:, place], 0.0) for place in (first, second))
        found += [both.astype(np.float64), x, y, x * x, y * y, x * y]
    return np.stack(found, axis=1)


def _worth(sums: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """[draws, 6 * pairs] -> [draws]; NaN where it is undefined."""
    n, x, y, xx, yy, xy = np.moveaxis(sums.reshape(len(sums), -1, 6), 2, 0)
    at_least = np.maximum(n, 1)
    spread = (xx / at_least - (x / at_least) ** 2) * (yy / at_least - (y / at_least) ** 2)
    together = xy / at_least - x * y / at_least**2
    defined = (n > 1) & (spread > _NO_SPREAD)
    r = np.divide(together, np.sqrt(np.maximum(spread, 0)), out=np.zeros_like(together), where=defined)
    pairs = defined.sum(axis=1)
    below = 1 + (k - 1) * np.divide(r.sum(axis=1), pairs, out=np.zeros(len(sums)), where=pairs > 0)
    defined_sums = (pairs > 0) & (below > _NO_SPREAD)
    out: NDArray[np.float64] = np.divide(k, below, out=np.full(len(sums), np.nan), where=defined_sums)
    return out


# --- Dawid-Skene ------------------------------------------------------------------------------------------------------


class AggregateError(InterbenchError):
    """Dawid-Skene cannot be computed: a library is missing, or there are too few judges."""


def dawid_skene(votes: NDArray[np.int64], n_labels: int) -> NDArray[np.float64]:
    """How likely each label of each item is, as the judges' votes alone tell.

    Each judge's habits of mistaking one label for another are estimated together with the labels, by expectation and
    maximisation, begun from the majority.
    Source: Dawid and Skene (1979), Applied Statistics 28(1), 20-28, as crowd-kit has it. It supposes that judges err
    independently of each other, which judges that are models do not; it is an aggregate beside the panel's own rule.
    Args: votes = int64 [items, judges], -1 where a judge gave none; n_labels = labels that there are, from 0.
    Returns: float64 [items, labels]; NaN for an item without a vote.
    Raises: AggregateError where crowd-kit is missing, or there are less than three judges.
    """
    if votes.shape[1] < LEAST_JUDGES:
        raise AggregateError(f"Dawid-Skene needs {LEAST_JUDGES} judges, there are {votes.shape[1]}")
    pandas, model = _library()
    items, judges = np.nonzero(votes >= 0)
    out: NDArray[np.float64] = np.full((len(votes), n_labels), np.nan)
    if not items.size:
        return out
    frame = pandas.DataFrame({"task": items, "worker": judges, "label": votes[items, judges]})
    with warnings.catch_warnings():
        # crowd-kit 1.4 uses what pandas 3 is about to drop; nothing of it changes a number.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = model(n_iter=100, tol=1e-6).fit_predict_proba(frame)
    out[found.index.to_numpy()] = 0.0
    for label in found.columns:
        out[found.index.to_numpy(), int(label)] = found[label].to_numpy()
    return out


def _library() -> tuple[Any, Any]:
    """Imported late: an extra, and slow to import."""
    try:
        import pandas  # type: ignore[import-untyped]  # has no stubs here
        from crowdkit.aggregation import DawidSkene
    except ImportError as error:
        raise AggregateError(
            f"Dawid-Skene needs crowd-kit, which is missing: pip install 'interbench-tasks[calibration]' ({error})"
        ) from error
    return pandas, DawidSkene
