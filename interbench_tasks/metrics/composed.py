"""Metrics that are a function of several means: their value over some items is none of a mean over these items.

PCQ is one: the rate of detection times the mean quality of what was detected. Where an item's strategy is undecided its
detection still counts, so the mean of the items' own PCQ, which leaves such an item out, is another number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.pcq import TOP, Combine, pcq_of_draws

Means = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """How a metric comes from the means of others."""

    parts: tuple[str, ...]
    """Metrics that an episode has a value of its own for. Where the first one counts, this one does."""
    make: Callable[..., Means]
    """Their means, arrays of one shape, NaN where none of the items counts -> its values; NaN: it has none."""


def composed_pcq(suffix: str, combine: Combine) -> Composed:
    """PCQ of the items of a type, a style or a variant. Args: suffix = of its metrics, e.g. `.MP`."""

    def make(eda: Means, dp: Means, se: Means) -> Means:
        return pcq_of_draws(eda, dp, se, combine)

    return Composed(parts=(f"eda{suffix}", f"dp{suffix}", f"se{suffix}"), make=make)


def quality(dp: Means, se: Means) -> Means:
    """Q = dp/2 + se/2, in [0, 2]. Source: MMPCBench (arXiv 2608.29286)."""
    return dp / TOP + se / TOP


def means_of(values: Sequence[NDArray[np.float64]]) -> list[Means]:
    """The mean of each row over the items that count, exactly summed; NaN where none does.

    Args: values = float64 [models, items] each.
    """
    return [np.array([_mean(row) for row in matrix]) for matrix in values]


def _mean(row: NDArray[np.float64]) -> float:
    known = row[~np.isnan(row)]
    return math.fsum(known.tolist()) / known.size if known.size else float("nan")
