"""What is a judge's own, and no matter of the reply: how strict it is, and whether it prefers a strategy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import DRAWS, Contrast, Estimate, Ratio, estimates_from_ratios
from interbench_tasks.metrics.sums import Sums, estimates_from_sums


def judge_strictness(
    scores: Mapping[str, Sequence[float | None]],
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
    _check(scores, span)
    if len(scores) < 2:
        raise ValueError("judge_strictness: need two judges at least: strict is who is stricter than the others")
    width = span[1] - span[0]
    columns = {}
    for judge in scores:
        others = [own for name, own in scores.items() if name != judge]
        differences = [
            None if own is None else _less_than(own, given)
            for own, given in zip(scores[judge], zip(*others, strict=True), strict=True)
        ]
        columns[judge] = _sums_of(differences, span=Interval(-width, width), points=_points(span))
    groups = clusters if clusters is not None else [str(item) for item in range(len(next(iter(scores.values()))))]
    found = estimates_from_sums(columns, groups, draws=draws)
    # Nobody knows what a judge that failed would have said, so there are no bounds.
    return {judge: replace(estimate, bounds=None) for judge, estimate in found.items()}


def _less_than(own: float, others: Sequence[float | None]) -> float | None:
    known = [other for other in others if other is not None]
    return math.fsum(known) / len(known) - own if len(known) == len(others) else None


def _sums_of(values: Sequence[float | None], *, span: Interval, points: float | None) -> Sums:
    """A column of values, one an item; None where it is unscored."""
    totals = np.array([value or 0.0 for value in values], dtype=np.float64)
    return Sums(
        totals=totals,
        squares=totals**2,
        counted=np.array([value is not None for value in values], dtype=np.int64),
        unscored=sum(value is None for value in values),
        span=span,
        graded=True,
        points=points,
    )


def strategy_bias(
    scores: Sequence[float | None],
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
    _check({"scores": scores}, span)
    if len(scores) != len(strategies):
        raise ValueError(f"strategy_bias: {len(scores)} scores, but {len(strategies)} strategies")
    low, width = span[0], span[1] - span[0]
    taken = np.array([0.0 if score is None else (score - low) / width for score in scores])
    ratios = {}
    for name in (first, second):
        counted = np.array(
            [s is not None and own == name for s, own in zip(scores, strategies, strict=True)], dtype=bool
        )
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
        unscored=sum(s is None or own is None for s, own in zip(scores, strategies, strict=True)),
        points=_points(span),
    )


def _points(span: tuple[float, float]) -> float | None:
    """The highest score; None for yes and no, whose differences are shares."""
    return None if span == (0.0, 1.0) else span[1]


def _check(scores: Mapping[str, Sequence[float | None]], span: tuple[float, float]) -> None:
    if not span[0] < span[1]:
        raise ValueError(f"the span must have a width, got {span[0]:g} to {span[1]:g}")
    if len({len(own) for own in scores.values()}) > 1:
        raise ValueError(
            "every judge needs an entry for each item: " + ", ".join(f"{k} {len(v)}" for k, v in scores.items())
        )
    for judge, own in scores.items():
        wrong = [score for score in own if score is not None and not span[0] <= score <= span[1]]
        if wrong:
            raise ValueError(f"{judge}: a score of {wrong[0]} is not from {span[0]:g} to {span[1]:g}")
