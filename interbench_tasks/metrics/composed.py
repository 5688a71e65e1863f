"""Metrics that are no mean over episodes: functions of ratios of sums.

A *part* is sum(values) / sum(weights) over the items that count. A conversation weighs as many questions as it has, a
critique 1. A metric is one part, the mean of several (`overall`), or any function of them. PCQ is one: the rate of
detection times the mean quality of what was detected. Where an item's strategy is undecided its detection still
counts, so the mean of the items' own PCQ, which leaves such an item out, is another number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.pcq import TOP, Combine, pcq_of_draws

Means = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of several models, over the same items."""

    totals: NDArray[np.float64]
    """float64 [models, items]: the item's value times its weight; 0 where it does not count."""
    weights: NDArray[np.float64]
    """float64 [models, items], >= 0; 0 where it does not count."""

    @classmethod
    def of_values(cls, values: NDArray[np.float64]) -> Part:
        """Values of one weight. Args: values = float64 [models, items], NaN where an item does not count."""
        counted = ~np.isnan(values)
        return cls(totals=np.where(counted, values, 0.0), weights=counted.astype(np.float64))

    def of_models(self, places: list[int]) -> Part:
        """Of some models alone."""
        return Part(totals=self.totals[places], weights=self.weights[places])

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Where it counts, [models, items]."""
        return self.weights > 0

    def ratios(self) -> Means:
        """Each model's value, exactly summed; NaN where no item counts."""
        return np.array([_ratio(*row) for row in zip(self.totals, self.weights, strict=True)])


def composed_pcq(suffix: str, combine: Combine) -> Composed:
    """PCQ of the items of a type, a style or a variant. Args: suffix = of its metrics, e.g. `.MP`."""

    def make(eda: Means, dp: Means, se: Means) -> Means:
        return pcq_of_draws(eda, dp, se, combine)

    return Composed(parts=(f"eda{suffix}", f"dp{suffix}", f"se{suffix}"), make=make, by_first=True)


def quality(dp: Means, se: Means) -> Means:
    """Q = dp/2 + se/2, in [0, 2]. Source: MMPCBench (arXiv 2608.29286)."""
    return dp / TOP + se / TOP


def made_from(parts: Mapping[str, Part], how: Composed) -> Means:
    """Each model's value of a metric, [models]."""
    return how.make(*(parts[part].ratios() for part in how.parts))


def _ratio(totals: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    weight = math.fsum(weights.tolist())
    return math.fsum(totals.tolist()) / weight if weight else float("nan")
