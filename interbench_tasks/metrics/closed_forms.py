"""95% intervals that have a formula: for rows that are independent, or clusters that count as one row each."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """A closed range; compares equal to a plain `(low, high)`."""

    low: float
    high: float


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


def newcombe(first: float, n_first: float, second: float, n_second: float, level: float = 0.95) -> Interval:
    """Hybrid score interval of first/n_first - second/n_second, of different independent rows; within [-1, 1].

    Source: Newcombe (1998), Statistics in Medicine 17(8), 873-890, method 10, as statsmodels has it.
    Args: first in [0, n_first], second in [0, n_second], both n > 0; fractions are allowed.
    Raises: ValueError outside these ranges.

    >>> tuple(round(end, 4) for end in newcombe(56, 70, 48, 80))  # the paper's first example
    (0.0524, 0.3339)
    """
    if not (n_first > 0 and n_second > 0 and 0 <= first <= n_first and 0 <= second <= n_second):
        raise ValueError(
            f"newcombe: need 0 <= successes <= n, n > 0, in both, got {first}/{n_first} and {second}/{n_second}"
        )
    from statsmodels.stats.proportion import confint_proportions_2indep  # see wilson

    low, high = confint_proportions_2indep(first, n_first, second, n_second, method="newcomb", alpha=1 - level)
    return Interval(max(-1.0, float(low)), min(1.0, float(high)))


def student(mean: float, deviation: float, n: float, level: float = 0.95) -> Interval:
    """Student's t interval of the mean of values in [0, 1], cut to [0, 1]; all of [0, 1] where n = 1.

    Formula: mean +- t_{n-1} * deviation / sqrt(n).
    Args: deviation = the values' standard deviation (n - 1 in the denominator); n = independent values, at least 1.
    Raises: ValueError where n is below 1.
    """
    if n < 1:
        raise ValueError(f"student: need n >= 1, got {n}")
    if n == 1:
        return Interval(0.0, 1.0)  # one value does not tell how much values differ
    from scipy.stats import t  # type: ignore[import-untyped]  # has no stubs; imported late, as statsmodels is

    half = float(t.ppf(0.5 + level / 2, n - 1)) * deviation / math.sqrt(n)
    return Interval(max(0.0, mean - half), min(1.0, mean + half))
