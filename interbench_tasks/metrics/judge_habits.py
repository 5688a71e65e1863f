"""What is a judge's own, and no matter of the reply: how strict it is, and whether it prefers a strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import DRAWS, Contrast, Estimate, Ratio, estimates_from_ratios
from interbench_tasks.metrics.sums import Sums, estimates_from_sums

Scores = Sequence[float | None] | NDArray[np.float64]
"""One judge's scores, one an item; None or NaN where it gave none."""


def judge_strictness(
    scores: Mapping[str, Scores],
    *,
    span: tuple[float, float] = (0.0, 1.0),
    clusters: Sequence[str] | None = None,
    draws: int = DRAWS,
) -> dict[str, Estimate]:
    """By how much each judge scores lower than the others do on the same items; below 0: it is more lenient.

    Formula: mean_i( mean_{k != j} s_ik - s_ij ), over the items that all judges scored; the others are unscored.
    Source: ours.
    Args: scores = judge -> its score of each item, None where it gave none; span = lowest and highest score, (0, 1) for
        yes and no; clusters[i] = cluster of item i, None: all independent.
    Returns: judge -> estimate in [-width, width] of the span, on the scale of the scores; without an item that all
        scored, none.
    Raises: ValueError for less than two judges, lists of different length, and a score off the span.
    """
    given = _checked(scores, span)
    if len(given) < 2:
        raise ValueError("judge_strictness: need two judges at least: strict is who is stricter than the others")
    width = span[1] - span[0]
    total = np.sum(list(given.values()), axis=0)  # NaN where a judge gave none
    columns = {
        judge: _sums_of((total - own) / (len(given) - 1) - own, span=Interval(-width, width), points=_points(span))
        for judge, own in given.items()
    }
    groups = clusters if clusters is not None else [str(item) for item in range(len(total))]
    found = estimates_from_sums(columns, groups, draws=draws)
    # Nobody knows what a judge that failed would have said, so there are no bounds.
    return {judge: replace(estimate, bounds=None) for judge, estimate in found.items()}


def judge_means(
    scores: Mapping[str, Scores],
    *,
    span: tuple[float, float],
    clusters: Sequence[str] | None = None,
    draws: int = DRAWS,
) -> dict[str, Estimate]:
    """The mean score that each judge gives, over the items that it scored itself; the others are unscored.

    Source: ours. Args: as in `judge_strictness`.
    Returns: judge -> estimate on the scale of the scores; without a judge that scored nothing.
    """
    given = _checked(scores, span)
    columns = {judge: _sums_of(own, span=Interval(*span), points=_points(span)) for judge, own in given.items()}
    groups = clusters if clusters is not None else [str(item) for item in range(len(next(iter(given.values()))))]
    found = estimates_from_sums(columns, groups, draws=draws)
    return {judge: replace(estimate, bounds=None) for judge, estimate in found.items()}


def _sums_of(values: NDArray[np.float64], *, span: Interval, points: float | None) -> Sums:
    """A column of values, one an item; NaN where it is unscored."""
    counted = ~np.isnan(values)
    totals = np.where(counted, values, 0.0)
    return Sums(
        totals=totals,
        squares=totals**2,
        counted=counted.astype(np.int64),
        unscored=int((~counted).sum()),
        span=span,
        graded=True,
        points=points,
    )


def strategy_bias(
    scores: Scores,
    strategies: Sequence[str | None],
    *,
    first: str = "clarification",
    second: str = "refusal",
    span: tuple[float, float] = (0.0, 2.0),
    clusters: Sequence[str] | None = None,
    draws: int = DRAWS,
) -> Estimate | None:
    """By how much higher one judge scores replies of the first strategy than replies of the second.

    They are different replies: what the bias is of, the judge or the replies, only several judges of the same replies
    can tell.
    Formula: mean of the scores with strategy `first` - mean of those with strategy `second`.
    Source: MMPCBench (arXiv 2608.29286), SE of clarification minus SE of refusal, for each judge.
    Args: scores, strategies = of one judge, by item; None where it gave none; clusters[i] = cluster of item i.
    Returns: the difference on the scale of the scores; None where one of the two strategies has no score. `unscored`
        are the items whose score or strategy is missing.
    Raises: ValueError for lists of different length and a score off the span.
    """
    own = _checked({"scores": scores}, span)["scores"]
    if len(own) != len(strategies):
        raise ValueError(f"strategy_bias: {len(own)} scores, but {len(strategies)} strategies")
    low, width = span[0], span[1] - span[0]
    scored = ~np.isnan(own)
    taken = np.where(scored, (own - low) / width, 0.0)
    ratios = {}
    for name in (first, second):
        counted = scored & np.array([strategy == name for strategy in strategies], dtype=np.bool_)
        ratios[name] = Ratio(values=np.where(counted, taken, 0.0), counted=counted, graded=True)
    labels = clusters if clusters is not None else [str(row) for row in range(len(scores))]
    contrasts = {"bias": Contrast(first=first, second=second)}
    bias = estimates_from_ratios(ratios, labels, contrasts=contrasts, draws=draws).get("bias")
    if bias is None:
        return None
    assert bias.ci95 is not None  # a contrast always has one
    return replace(
        bias,
        value=bias.value * width,
        ci95=Interval(bias.ci95.low * width, bias.ci95.high * width),
        unscored=int((~scored | np.array([strategy is None for strategy in strategies], dtype=np.bool_)).sum()),
        points=_points(span),
    )


def _points(span: tuple[float, float]) -> float | None:
    """The highest score; None for yes and no, whose differences are shares."""
    return None if span == (0.0, 1.0) else span[1]


def _checked(scores: Mapping[str, Scores], span: tuple[float, float]) -> dict[str, NDArray[np.float64]]:
    """The scores as arrays, float64 [items]; NaN where a judge gave none."""
    if not span[0] < span[1]:
        raise ValueError(f"the span must have a width, got {span[0]:g} to {span[1]:g}")
    given = {judge: np.array(own, dtype=np.float64) for judge, own in scores.items()}  # None becomes NaN
    if len({len(own) for own in given.values()}) > 1:
        told = ", ".join(f"{judge} {len(own)}" for judge, own in given.items())
        raise ValueError(f"every judge needs an entry for each item: {told}")
    for judge, own in given.items():
        wrong = own[(own < span[0]) | (own > span[1])]
        if wrong.size:
            raise ValueError(f"{judge}: a score of {wrong[0]:g} is not from {span[0]:g} to {span[1]:g}")
    return given
