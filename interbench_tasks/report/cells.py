"""An estimate as the cell of a table, and as flat values for a machine."""

from __future__ import annotations

from interbench_tasks.metrics.intervals import Estimate

ABSENT = "-"
"""Where a run does not have the metric, or it is undefined."""


def cell_from(estimate: Estimate | None, *, intervals: bool = True, signed: bool = False, n: bool = False) -> str:
    """A rate in percent, a count as it is; `(u k)` where k rows are unscored.

    Args: intervals = show the 95% interval; signed = show a plus; n = show on how many rows it rests.

    >>> cell_from(Estimate(value=0.362, n=373, unscored=2, ci95=(0.315, 0.412), method="wilson"))
    '36.2 [31.5, 41.2] (u 2)'
    """
    if estimate is None:
        return ABSENT
    if estimate.method == "count":
        text = str(int(estimate.value))
    else:
        text = f"{100 * estimate.value:+z.1f}" if signed else f"{100 * estimate.value:z.1f}"
        if intervals and estimate.ci95 is not None:
            low, high = estimate.ci95
            text += f" [{100 * low:z.1f}, {100 * high:z.1f}]"
        if n:
            text += f" n={estimate.n}"
    return text + (f" (u {estimate.unscored})" if estimate.unscored else "")


def flat_from(estimate: Estimate | None, name: str, at: str = "") -> dict[str, object]:
    """Columns `<name>`, `<name>.ci95_low`, `.ci95_high`, `.n` and `.unscored`, each ending in `at`.

    Rates are shares, not percent. A count has only its value and `.unscored`; what is absent is None.

    >>> flat_from(Estimate(value=3.0, n=4, method="count"), "n_test", "@gpt-4o")
    {'n_test@gpt-4o': 3, 'n_test.unscored@gpt-4o': 0}
    """
    if estimate is None:
        return {f"{name}{at}": None}
    if estimate.method == "count":
        return {f"{name}{at}": int(estimate.value), f"{name}.unscored{at}": estimate.unscored}
    low, high = estimate.ci95 if estimate.ci95 is not None else (None, None)
    return {
        f"{name}{at}": estimate.value,
        f"{name}.ci95_low{at}": low,
        f"{name}.ci95_high{at}": high,
        f"{name}.n{at}": estimate.n,
        f"{name}.unscored{at}": estimate.unscored,
    }
