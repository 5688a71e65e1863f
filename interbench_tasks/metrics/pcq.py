"""PCQ: how often a model challenges a flawed input, times how well."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Combine = Literal["arithmetic", "geometric", "harmonic"]
TOP = 2.0


def pcq(eda: float, dp: float | None, se: float | None, combine: Combine = "arithmetic") -> float:
    """PCQ as a share, in [0, 1]; times 100 as it is published. 0 where nothing was detected (`dp`, `se` are None).

    Formula: arithmetic: eda * (dp/2 + se/2) / 2; geometric: eda * sqrt(dp/2 * se/2); harmonic: eda * 2 (dp/2) (se/2) /
        (dp/2 + se/2), 0 where both are 0.
    Source: reconstructed. MMPCBench's formula is not printed; of the forms tried, these three fit every number that is,
        and differ by less than 0.1 points for the one model of which all inputs are known. The value for nothing
        detected is ours.
    Args: eda = in [0, 1]; dp, se = in [0, 2].

    >>> round(100 * pcq(0.317, 1.79, 1.95), 4)
    29.6395
    """
    if dp is None or se is None:
        return 0.0
    diagnosis, strategy = dp / TOP, se / TOP
    if combine == "arithmetic":
        return eda * (diagnosis + strategy) / 2
    if combine == "geometric":
        return eda * math.sqrt(diagnosis * strategy)
    return eda * 2 * diagnosis * strategy / (diagnosis + strategy) if diagnosis + strategy else 0.0


def pcq_of_draws(
    eda: NDArray[np.float64], dp: NDArray[np.float64], se: NDArray[np.float64], combine: Combine = "arithmetic"
) -> NDArray[np.float64]:
    """The same for arrays of draws, float64 [draws]; 0 where a draw's dp or se is NaN, NaN where its eda is."""
    diagnosis, strategy = dp / TOP, se / TOP
    if combine == "arithmetic":
        quality = (diagnosis + strategy) / 2
    elif combine == "geometric":
        quality = np.sqrt(diagnosis * strategy)
    else:
        total = diagnosis + strategy
        quality = np.divide(2 * diagnosis * strategy, total, out=np.zeros_like(total), where=total > 0)
        quality = np.where(np.isnan(total), np.nan, quality)
    # A draw without any item (of a rare type, say) has no PCQ; it is not one in which nothing was detected.
    return np.where(np.isnan(eda), np.nan, np.where(np.isnan(quality), 0.0, eda * quality))
