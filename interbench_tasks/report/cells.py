"""An estimate as the cell of a table, and as flat values for a machine."""

from __future__ import annotations

from interbench_tasks.metrics.intervals import Estimate

ABSENT = "-"
"""Where a run does not have the metric, or it is undefined."""


def cell_from(estimate: Estimate | None, *, intervals: bool = True, signed: bool = False, n: bool = False) -> str:
    """A rate in percent, a judge's score in points, a count as it is; `(u k)` where k rows are unscored.

    Args: intervals = show the 95% interval; signed = show a plus; n = show on how many rows it rests.

    >>> cell_from(Estimate(value=0.362, n=373, unscored=2, ci95=(0.315, 0.412), method="wilson"))
    '36.2 [31.5, 41.2] (u 2)'
    """
    if estimate is None:
        return ABSENT
    if estimate.method == "count":
        text = str(int(estimate.value))
    else:
        text = shown_value(estimate.value, estimate.points, signed=signed)
        if intervals and estimate.ci95 is not None:
            text += f" [{', '.join(shown_value(end, estimate.points) for end in estimate.ci95)}]"
        if n:
            text += f" n={estimate.n}"
    return text + (f" (u {estimate.unscored})" if estimate.unscored else "")


def shown_value(value: float, points: float | None, *, signed: bool = False) -> str:
    """A share in percent; where `points` is there, a score as it is.

    >>> shown_value(0.362, None), shown_value(3.516, 5.0), shown_value(0.4, 5.0, signed=True)
    ('36.2', '3.52', '+0.40')
    """
    if points is None:
        value *= 100
    digits = 1 if points is None else 2
    return f"{value:+z.{digits}f}" if signed else f"{value:z.{digits}f}"


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


def flat_estimate(estimate: Estimate) -> dict[str, object]:
    """An estimate as the columns of a row for a machine."""
    low, high = estimate.ci95 if estimate.ci95 is not None else (None, None)
    return {
        "value": estimate.value,
        "ci95_low": low,
        "ci95_high": high,
        "n": estimate.n,
        "unscored": estimate.unscored,
        "method": estimate.method,
    }
