"""Items with a truth, a panel that errs, and a stratified sample that people labelled without a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.calibration import Said


@dataclass(frozen=True)
class Sampled:
    truth: NDArray[np.float64]
    """float64 [items]: what people would say of each."""
    panel: NDArray[np.float64]
    strata: NDArray[np.str_]
    labelled: NDArray[np.bool_]

    @cached_property
    def judge(self) -> Said:
        everywhere = np.ones(len(self.truth), dtype=np.bool_)
        return Said(values=self.panel, counts=everywhere, known=everywhere)

    @cached_property
    def people(self) -> Said:
        return Said(values=np.where(self.labelled, self.truth, 0.0), counts=self.labelled, known=self.labelled)


def sampled(
    random: np.random.Generator,
    rates: Sequence[float],
    *,
    n: int = 3146,
    each: int = 15,
    sensitivity: float = 0.8,
    specificity: float = 0.95,
) -> Sampled:
    """Items of as many strata as there are rates. Args: each = labels a stratum."""
    strata = np.arange(n) % len(rates)
    truth = random.random(n) < np.asarray(rates)[strata]
    panel = np.where(truth, random.random(n) < sensitivity, random.random(n) >= specificity)
    return Sampled(
        truth=truth.astype(np.float64),
        panel=panel.astype(np.float64),
        strata=strata.astype(np.str_),
        labelled=drawn(random, strata, each),
    )


def drawn(random: np.random.Generator, strata: NDArray[np.int64], each: int) -> NDArray[np.bool_]:
    """bool [items]: a sample of `each` items of every stratum."""
    order = np.lexsort((random.random(len(strata)), strata))
    starts = np.searchsorted(strata[order], np.unique(strata))
    chosen = np.zeros(len(strata), dtype=np.bool_)
    chosen[order[(starts[:, None] + np.arange(each)).ravel()]] = True
    return chosen
