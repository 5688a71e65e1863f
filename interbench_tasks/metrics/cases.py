"""Means over cases that may not be known: where a judge is missing, what a case is worth, or whether it counts at all.

A case is one row's part in one metric. Its value is what the judges that spoke make of it; its range is everything that
the missing ones could have made of it. The bounds of a mean are exact: cases that certainly count are taken at their
ends, and one that may count is taken exactly where that moves the mean outwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.sums import ZERO_TO_ONE, Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row's part in one metric."""

    counts: bool | None
    """Whether it is in the denominator whatever the missing judges would have said; None: that depends on them."""
    value: float | None
    """None where it is not known, and where the row does not count."""
    low: float = 0.0
    """Least value, where it counts."""
    high: float = 0.0
    """Largest value, where it counts."""

    @property
    def scored(self) -> bool:
        """Whether it is in the mean."""
        return self.counts is not False and self.value is not None

    @property
    def unscored(self) -> bool:
        """Whether it may belong to the mean and is not in it."""
        return self.counts is not False and self.value is None

    @property
    def exact(self) -> bool:
        """Whether no missing judge can change anything about it."""
        return self.counts is False or (self.counts is True and self.low == self.high and self.value is not None)


OUT = Case(counts=False, value=None)


def known(value: float) -> Case:
    """A case that nobody is missing from."""
    return Case(counts=True, value=value, low=value, high=value)


def truth(value: bool | None) -> Case:
    """A case that is 1 or 0; None: nobody knows."""
    return Case(counts=True, value=None, low=0.0, high=1.0) if value is None else known(float(value))


def mean_bounds(cases: Iterable[Case]) -> Interval | None:
    """Least and largest mean over everything that the missing judges could have said; None where no case can count.

    >>> mean_bounds([known(1.0), known(0.0), Case(counts=None, value=None, low=0.0, high=2.0)])
    Interval(low=0.3333333333333333, high=1.0)
    """
    given = [case for case in cases if case.counts is not False]
    if not given:
        return None
    low = 0.0 - _largest([(-case.low, case.counts is True) for case in given])  # 0.0 - 0.0 is no -0.0
    return Interval(low, _largest([(case.high, case.counts is True) for case in given]))


def _largest(ends: Sequence[tuple[float, bool]]) -> float:
    """The largest mean: of those that need not count, the best ones are taken while they raise it."""
    fixed = [end for end, must in ends if must]
    total, n = math.fsum(fixed), len(fixed)
    for end in sorted((end for end, must in ends if not must), reverse=True):
        if n and end <= total / n:
            break
        total, n = total + end, n + 1
    return total / n


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One metric's cases, each with the row that it belongs to; a row may have several, or none."""

    rows: Sequence[int]
    cases: Sequence[Case]
    span: Interval = ZERO_TO_ONE
    graded: bool = False
    """False where every value is 0 or 1."""
    points: float | None = None
    """The highest score, where the mean is one of scores."""

    @property
    def unscored(self) -> int:
        """Cases that may belong to the mean and are not in it."""
        return sum(case.unscored for case in self.cases)

    def sums(self, n_rows: int) -> Sums:
        """The scored cases as sums over rows."""
        totals, squares, counted = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows, dtype=np.int64)
        for row, case in zip(self.rows, self.cases, strict=True):
            if case.scored and case.value is not None:
                totals[row] += case.value
                squares[row] += case.value**2
                counted[row] += 1
        return Sums(
            totals=totals,
            squares=squares,
            counted=counted,
            unscored=self.unscored,
            span=self.span,
            graded=self.graded,
            points=self.points,
        )

    def with_bounds(self, estimate: Estimate) -> Estimate:
        """The estimate with the bounds of these cases; without any where no judge is missing."""
        return replace(estimate, bounds=with_value(self.bounds(), estimate.value))

    def bounds(self) -> Interval | None:
        """None where no judge is missing."""
        return None if all(case.exact for case in self.cases) else mean_bounds(self.cases)


def with_value(bounds: Interval | None, value: float) -> Interval | None:
    """Bounds that hold the value itself, which does not know what is half known of the unscored."""
    return None if bounds is None else Interval(min(bounds.low, value), max(bounds.high, value))
