"""PCQ and F1: functions of several means, whose intervals are drawn, and whose bounds come from their sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.critique_votes import Panel
from interbench_tasks.metrics.cases import Column, with_value
from interbench_tasks.metrics.closed_forms import Interval, wilson
from interbench_tasks.metrics.intervals import Estimate, Resamples
from interbench_tasks.metrics.mmpcbench_cases import item_pcq
from interbench_tasks.metrics.pcq import Combine, pcq, pcq_of_draws
from interbench_tasks.metrics.sums import ZERO_TO_ONE, Sums

_NO_WIDTH = 1e-9
Means = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""EDA, DP and SE in each draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Flawed items with what the panel made of each: row -> panel."""

    panels: Mapping[int, Panel]
    base: Mapping[int, Panel] = field(default_factory=dict)
    """The same items in the task's own style (or with another variant's options), where these are of another one."""
    shift_only: bool = False
    """Whether only the difference is wanted."""

    @classmethod
    def of(
        cls, panels: Mapping[int, Panel], *, base: Mapping[int, Panel] | None = None, shift_only: bool = False
    ) -> Items:
        """Items, and those that they are compared with."""
        return cls(panels=panels, base=base or {}, shift_only=shift_only)


def pcq_estimates(
    items: Mapping[str, Items], clusters: Sequence[str], combine: Combine, *, seed: int = 0
) -> dict[str, Estimate]:
    """`pcq` and, with their suffixes, those of types and styles, and the shifts of styles.

    Args: items = suffix -> items; clusters[i] = cluster of row i.
    """
    groups = {suffix: one.panels for suffix, one in items.items()}
    for suffix, one in items.items():
        both = [row for row, panel in one.base.items() if None not in (panel.detected, one.panels[row].detected)]
        groups[f"{suffix} first"] = {row: one.panels[row] for row in both}
        groups[f"{suffix} base"] = {row: one.base[row] for row in both}
    groups = {name: panels for name, panels in groups.items() if _means_of(panels) is not None}
    if not groups:
        return {}
    drawn = _drawn(groups, clusters, seed)
    draws = {name: pcq_of_draws(*means, combine) for name, means in drawn.items()}
    found: dict[str, Estimate] = {}
    for suffix, one in items.items():
        if suffix in groups and not one.shift_only:
            found[f"pcq{suffix}"] = _estimate(one.panels, draws[suffix], clusters, combine)
        first, base = f"{suffix} first", f"{suffix} base"
        if base in groups:
            scored, apart = (groups[first], groups[base]), draws[first] - draws[base]
            found[f"shift_pcq{suffix}"] = _shift(one, scored, apart, clusters, combine)
    return found


def _means_of(panels: Mapping[int, Panel]) -> tuple[float, float | None, float | None] | None:
    """EDA, DP and SE over the scored items; None where none is."""
    d = [float(panel.detected) for panel in panels.values() if panel.detected is not None]
    if not d:
        return None
    dp = [panel.dp for panel in panels.values() if panel.dp is not None]
    se = [panel.se for panel in panels.values() if panel.se is not None]
    return math.fsum(d) / len(d), _mean(dp), _mean(se)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _drawn(groups: Mapping[str, Mapping[int, Panel]], clusters: Sequence[str], seed: int) -> dict[str, Means]:
    """Each group's EDA, DP and SE in each draw; NaN where a draw has nothing to count."""
    n = len(clusters)
    tops, bottoms = np.zeros((n, 3 * len(groups))), np.zeros((n, 3 * len(groups)))
    for place, panels in enumerate(groups.values()):
        for row, panel in panels.items():
            for offset, value in enumerate((panel.detected, panel.dp, panel.se)):
                if value is not None:
                    tops[row, 3 * place + offset] = float(value)
                    bottoms[row, 3 * place + offset] = 1.0
    ratios = Resamples(clusters, seed=seed).ratios(tops, bottoms)
    return {
        name: (ratios[:, 3 * place], ratios[:, 3 * place + 1], ratios[:, 3 * place + 2])
        for place, name in enumerate(groups)
    }


def _estimate(
    panels: Mapping[int, Panel], draws: NDArray[np.float64], clusters: Sequence[str], combine: Combine
) -> Estimate:
    means = _means_of(panels)
    assert means is not None  # pcq_estimates has looked
    value = pcq(*means, combine)
    scored = sum(item_pcq(panel)[0] is not None for panel in panels.values())
    rows = [row for row, panel in panels.items() if panel.detected is not None]
    interval, method = _interval(value, draws, [clusters[row] for row in rows], ZERO_TO_ONE)
    return Estimate(
        value=value,
        n=len(rows),
        unscored=len(panels) - scored,
        ci95=interval,
        bounds=with_value(_bounds(panels, combine), value),
        method=method,
    )


def _bounds(panels: Mapping[int, Panel], combine: Combine) -> Interval | None:
    """PCQ with every missing judge at its worst, and at its best; None where no judge is missing.

    Formula: with D = sum of dp and S = sum of se over the detected of N items, PCQ is (D + S) / 4N (arithmetic),
        sqrt(D S) / 2N (geometric), D S / ((D + S) N) (harmonic): in each it rises with D and with S.
    """
    parts = [item_pcq(panel) for panel in panels.values()]
    if all(value == low == high for value, low, high in parts):
        return None
    n = len(parts)
    ends = []
    for place in (1, 2):
        sums = [math.fsum(part[place][side] for part in parts) for side in (0, 1)]  # type: ignore[index] # never the value
        ends.append(pcq(1.0, sums[0] / n, sums[1] / n, combine))
    return Interval(*ends)


def _shift(
    items: Items,
    scored: tuple[Mapping[int, Panel], Mapping[int, Panel]],
    draws: NDArray[np.float64],
    clusters: Sequence[str],
    combine: Combine,
) -> Estimate:
    """PCQ of items - PCQ of the same ones in the other style or variant.

    Args: scored = those of which both know whether something was detected, which are all that value and interval are
        of; the bounds are of all items.
    """
    one, other = _means_of(scored[0]), _means_of(scored[1])
    assert one is not None  # pcq_estimates has looked
    assert other is not None
    value, n = pcq(*one, combine) - pcq(*other, combine), len(scored[0])
    interval, method = _interval(value, draws, [clusters[row] for row in scored[0]], Interval(-1.0, 1.0))
    pairs = [(item_pcq(panel)[0], item_pcq(items.base[row])[0]) for row, panel in items.panels.items()]
    return Estimate(
        value=value,
        n=n,
        unscored=sum(None in pair for pair in pairs),
        ci95=interval,
        bounds=with_value(_shift_bounds(items, combine), value),
        method=method,
    )


def _shift_bounds(items: Items, combine: Combine) -> Interval | None:
    """The difference with every missing judge at its worst, and at its best; None where no judge is missing."""
    first, second = (_bounds(panels, combine) for panels in (items.panels, items.base))
    if first is None and second is None:
        return None
    first, second = first or _exactly(items.panels, combine), second or _exactly(items.base, combine)
    return Interval(first.low - second.high, first.high - second.low)


def _exactly(panels: Mapping[int, Panel], combine: Combine) -> Interval:
    """PCQ of items of which no judge is missing, as bounds."""
    means = _means_of(panels)
    assert means is not None  # no judge is missing
    value = pcq(*means, combine)
    return Interval(value, value)


def f1_estimate(
    sums: Mapping[str, Sums], columns: Mapping[str, Column], clusters: Sequence[str]
) -> dict[str, Estimate]:
    """F1 of detection over flawed and valid items.

    Formula: 2 TP / (TP + flawed items + FA).
    """
    flawed, valid = sums["eda"], sums["far_v"]
    tops = 2 * flawed.totals
    bottoms = flawed.totals + flawed.counted + valid.totals
    if not flawed.n or not valid.n:
        return {}
    drawn = Resamples(clusters).ratios(tops[:, None], bottoms[:, None])[:, 0]
    n = flawed.n + valid.n
    value = float(tops.sum() / bottoms.sum())
    counted = (flawed.counted > 0) | (valid.counted > 0)
    interval, method = _interval(value, drawn, [clusters[row] for row in np.flatnonzero(counted).tolist()], ZERO_TO_ONE)
    return {
        "f1": Estimate(
            value=value,
            n=n,
            unscored=flawed.unscored + valid.unscored,
            ci95=interval,
            bounds=with_value(_f1_bounds(columns["eda"], columns["far_v"]), value),
            method=method,
        )
    }


def _f1_bounds(flawed: Column, valid: Column) -> Interval | None:
    if all(case.exact for case in (*flawed.cases, *valid.cases)):
        return None
    n = len(flawed.cases)
    tp_low, tp_high = sum(case.low for case in flawed.cases), sum(case.high for case in flawed.cases)
    fa_low, fa_high = sum(case.low for case in valid.cases), sum(case.high for case in valid.cases)
    return Interval(2 * tp_low / (tp_low + n + fa_high), 2 * tp_high / (tp_high + n + fa_low))


def _interval(
    value: float, drawn: NDArray[np.float64], clusters: Sequence[str], span: Interval
) -> tuple[Interval, str]:
    """The interval of the draws, and its name; where all are the same, Wilson's, in which a cluster counts once.

    Args: clusters = of the rows that count, an entry a row; span = smallest and largest value.
    """
    found = _middle(drawn)
    if found is not None:
        return found, "cluster_bootstrap"
    n, width = len(set(clusters)), span.high - span.low
    ends = wilson(min(max((value - span.low) / width, 0.0), 1.0) * n, n)
    method = "wilson" if n == len(clusters) else "wilson_by_cluster"
    return Interval(span.low + width * ends.low, span.low + width * ends.high), method


def _middle(drawn: NDArray[np.float64]) -> Interval | None:
    """The middle 95% of the draws that are known; None where all are unknown, or the same."""
    known = drawn[~np.isnan(drawn)]
    if known.size == 0:
        return None
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(float(low), float(high)) if high - low > _NO_WIDTH else None
