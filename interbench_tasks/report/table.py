"""Metrics -> a text table: each number with its interval, n and unscored count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

HEADERS = ("metric", "value", "95% interval", "n", "unscored", "if unscored failed / held", "interval by")


def table_text(metrics: Mapping[str, Mapping[str, Any]], *, title: str = "") -> str:
    """A table of `metrics.json`'s metrics, one a line, columns aligned.

    >>> print(table_text({"n_test": {"value": 3, "n": 3, "unscored": 0, "method": "count"}}))
    metric  value  95% interval  n  unscored  if unscored failed / held  interval by
    n_test  3
    """
    rows = [HEADERS, *[_row(name, estimate) for name, estimate in metrics.items()]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([title, *lines] if title else lines)


def unfinished_lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """What has to be said before the table of a run that was stopped: what is not there, and which metrics lack it.

    Args: metrics = the content of `metrics.json` of a run that is not finished.
    """
    found, wanted = metrics["episodes"]["found"], metrics["episodes"]["wanted"]
    first_pass_is_there = wanted is not None and found >= wanted
    what = (
        "not every episode was played to its end"
        if first_pass_is_there
        else f"only {found} of {'?' if wanted is None else wanted} episodes are here"
    )
    yield (
        f"UNFINISHED: {what}. What ends first is no fair sample (right answers end early): run the same command again "
        "before you use these numbers."
    )
    by_reason: dict[str, list[str]] = {}
    for name, why in metrics.get("lacking", {}).items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        state, _, reason = why.partition(": ")
        yield f"  {state}, because {reason}: {', '.join(names)}"


def _row(name: str, estimate: Mapping[str, Any]) -> Sequence[str]:
    if estimate.get("method") == "count":
        return (name, str(int(estimate["value"])), "", "", "", "", "")
    points = estimate.get("points")
    return (
        name,
        _shown(estimate["value"], points),
        _pair(estimate.get("ci95"), points),
        str(estimate["n"]),
        str(estimate.get("unscored", 0)),
        _pair(estimate.get("bounds"), points) if estimate.get("unscored") else "",
        str(estimate.get("method", "")),
    )


def _shown(value: float, points: float | None) -> str:
    """A share in percent, a judge's score as it is."""
    return f"{100 * value:z.1f}%" if points is None else f"{value:z.2f}"


def _pair(pair: Sequence[float] | None, points: float | None) -> str:
    return f"{_shown(pair[0], points)} .. {_shown(pair[1], points)}" if pair else ""
