"""How far two raters agree who give numbers, also ones that lie between the labels, such as the mean of a panel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.agreement import Coefficient, Disagreement

Numbers = Sequence[float | None]
"""One rater's number for each item; None where it gave none."""


def concordance(first: Numbers, second: Numbers) -> Coefficient:
    """Cohen's kappa with quadratic weights, for numbers of any kind: agreement beyond what their own habits give.

    Formula: 1 - mean (x - y)^2 / (mean x^2 + mean y^2 - 2 mean x mean y). Of whole numbers it equals
        `agreement.cohens_kappa(..., "quadratic")`; of any numbers it is Lin's concordance correlation coefficient.
    Source: Cohen (1968), Psychological Bulletin 70(4), 213-220; Lin (1989), Biometrics 45(1), 255-268.
    """
    x, y, counted = _both(first, second)
    columns = np.stack([counted, x, y, x * x, y * y, (x - y) ** 2], axis=1).astype(np.float64)

    def from_sums(sums: NDArray[np.float64]) -> Disagreement:
        n = np.where(sums[:, 0] > 0, sums[:, 0], np.nan)
        mean_x, mean_y, square_x, square_y, apart = (sums[:, place] / n for place in range(1, 6))
        return Disagreement(apart, square_x + square_y - 2 * mean_x * mean_y)

    return Coefficient(columns=columns, counted=counted, from_sums=from_sums)


def exact_agreement(first: Numbers, second: Numbers) -> Coefficient:
    """Share of items on which two raters say the same, in [0, 1]: numbers that differ by less than half a point.

    Formula: mean [|x - y| < 1/2]. Of whole numbers that is equality; the mean of a panel agrees with the label that it
        lies next to, and one that lies halfway between two labels agrees with neither.
    Source: ours.
    """
    x, y, counted = _both(first, second)
    unlike = np.where(counted, np.abs(x - y) >= 0.5, 0.0)
    columns = np.stack([unlike, counted], axis=1).astype(np.float64)

    def from_sums(sums: NDArray[np.float64]) -> Disagreement:
        n = np.where(sums[:, 1] > 0, sums[:, 1], np.nan)
        return Disagreement(sums[:, 0] / n, np.ones(len(sums)))

    return Coefficient(columns=columns, counted=counted, from_sums=from_sums, share=True)


def _both(first: Numbers, second: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Both raters' numbers, 0 where one of the two is missing, and where none is.

    Raises: ValueError for lists of different length.
    """
    x, y = (np.array([np.nan if one is None else one for one in own], dtype=np.float64) for own in (first, second))
    if len(x) != len(y):
        raise ValueError(f"two raters need an entry for each item: {len(x)} and {len(y)}")
    counted = ~np.isnan(x) & ~np.isnan(y)
    return np.where(counted, x, 0.0), np.where(counted, y, 0.0), counted
