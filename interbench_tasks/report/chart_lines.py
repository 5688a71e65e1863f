"""Lines over ordered bins, and bars side by side, both with whiskers and n below. Many runs become small multiples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.chart_dots import axis_of, tick_text
from interbench_tasks.report.chart_numbers import Numbers
from interbench_tasks.report.drawing import (
    GRID,
    LEGEND_LINE,
    LOOKS,
    SMALL,
    WIDTH,
    Axis,
    Box,
    Look,
    Point,
    Sheet,
    columns_of,
    draw_bars,
    draw_legend,
    labels_of,
    legend_rows,
    looks_of,
    title_of,
    width_of,
)

Kind = Literal["lines", "bars"]
TITLE_LINE, BIN_LINE, N_LINE, GAP = 22.0, 17.0, 13.0, 22.0
HEIGHTS = {1: 200.0, 2: 150.0, 3: 110.0}
"""Panels beside each other -> how high each is drawn, pixels."""
WIDEST = 110.0
"""Of one bin, pixels: few bins do not fill the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Where everything goes."""

    panels: Sequence[str]
    bins: Sequence[str]
    looks: Mapping[str, Look]
    columns: int
    ticks: float
    """Width of the values of the axis."""
    n_rows: int
    """Lines of n below the bins."""
    legend: float
    titled: bool
    wide: float
    """Of what is drawn in."""
    high: float

    @property
    def step(self) -> float:
        """Height of a panel with all that is around it."""
        return (TITLE_LINE if self.titled else 8) + self.high + BIN_LINE + N_LINE * self.n_rows + 14

    @property
    def height(self) -> float:
        """Of the whole drawing."""
        return self.legend + self.step * -(-len(self.panels) // self.columns)

    def body(self, number: int) -> Box:
        """What of a panel is drawn in."""
        down, across = divmod(number, self.columns)
        left = self.ticks + across * (self.wide + GAP)
        return Box(left, self.legend + down * self.step + (TITLE_LINE if self.titled else 8), self.wide, self.high)

    def x(self, body: Box, place: int) -> float:
        """The middle of a bin."""
        return body.left + body.width / len(self.bins) * (place + 0.5)


def lines(numbers: Numbers, **where: object) -> str:
    """Values over ordered bins; arguments as of `bars`."""
    return _drawn(numbers, "lines", **where)  # type: ignore[arg-type]  # handed on as they came


def bars(numbers: Numbers, **where: object) -> str:
    """Bars side by side for each bin, one a series.

    Args: id, label = as of `Sheet.svg`; bins, series, panels = dimensions (series, panels: None for none);
        columns = panels beside each other, at most 3.
    """
    return _drawn(numbers, "bars", **where)  # type: ignore[arg-type]  # handed on as they came


def _drawn(
    numbers: Numbers,
    kind: Kind,
    *,
    id: str,
    label: str,
    bins: str,
    series: str | None = None,
    panels: str | None = None,
    columns: int = 3,
) -> str:
    found = _by_place(numbers, (panels, series, bins))
    plan = _plan(numbers, found, bins, series, panels, columns)
    sheet = Sheet(plan.height)
    if len(plan.looks) > 1:
        legend = plan.looks
        draw_legend(sheet, legend, Point(plan.ticks, 0), kind)
    axis = axis_of(numbers)
    for number, panel in enumerate(plan.panels):
        body = plan.body(number)
        if plan.titled:
            at = Point(body.left, body.top - TITLE_LINE / 2 - 3)
            sheet.text(at, title_of(panel, body.width), bold=True)
        placed = axis.moved(body.bottom, body.top)
        _draw_frame(sheet, numbers, plan, body, placed, valued=number % plan.columns == 0)
        _draw_bins(sheet, plan, body)
        for place, (name, look) in enumerate(plan.looks.items()):
            own = [found.get((panel, name, one)) for one in plan.bins]
            draw = _draw_bars if kind == "bars" else _draw_line
            draw(sheet, plan, body, placed, look, place, own)
        _draw_ns(sheet, plan, body, list(_ns(found, panel, plan)), kind)
    return sheet.svg(id=id, label=label)


def _by_place(numbers: Numbers, dims: tuple[str | None, ...]) -> dict[tuple[str, str, str], Estimate]:
    """(panel, series, bin) -> estimate."""
    places = [numbers.dims.index(dim) if dim is not None else None for dim in dims]
    found = {}
    for key, estimate in numbers.cells.items():
        panel, series, of_bin = (key[place] if place is not None else "" for place in places)
        found[(panel, series, of_bin)] = estimate
    return found


def _plan(
    numbers: Numbers,
    found: Mapping[tuple[str, str, str], Estimate],
    bins: str,
    series: str | None,
    panels: str | None,
    columns: int,
) -> _Plan:
    panel_values = numbers.values(panels) if panels is not None else [""]
    series_values = numbers.values(series)[: len(LOOKS)] if series is not None else [""]
    bin_values = numbers.values(bins)
    across = columns_of(len(panel_values), columns)
    ticks = max(width_of(tick_text(numbers, tick), SMALL) for tick in axis_of(numbers).ticks) + 10
    wide = min((WIDTH - ticks - GAP * (across - 1)) / across, WIDEST * len(bin_values))
    legend = LEGEND_LINE * len(legend_rows(series_values, WIDTH - ticks)) + 4
    plan = _Plan(
        panels=panel_values,
        bins=bin_values,
        looks=looks_of(series_values),
        columns=across,
        ticks=ticks,
        n_rows=0,
        legend=legend if len(series_values) > 1 else 0.0,
        titled=panels is not None and panel_values != [""],
        wide=wide,
        high=HEIGHTS[across],
    )
    n_rows = max(len(list(_ns(found, panel, plan))) for panel in panel_values)
    return replace(plan, n_rows=n_rows)


def _ns(found: Mapping[tuple[str, str, str], Estimate], panel: str, plan: _Plan) -> Iterator[tuple[str, list[str]]]:
    """Each line of n: the series that it is of ('' for all alike), and the n of each bin."""
    own = {
        name: ["" if (e := found.get((panel, name, one))) is None else str(e.n) for one in plan.bins]
        for name in plan.looks
    }
    there = {name: ns for name, ns in own.items() if any(ns)}
    if len({tuple(ns) for ns in there.values()}) == 1:
        yield "", next(iter(there.values()))
    else:
        yield from there.items()


def _draw_frame(sheet: Sheet, numbers: Numbers, plan: _Plan, body: Box, axis: Axis, *, valued: bool) -> None:
    sheet.segments([(Point(body.left, axis.at(t)), Point(body.right, axis.at(t))) for t in axis.ticks], opacity=GRID)
    sheet.segments([(Point(body.left, axis.at(0)), Point(body.right, axis.at(0)))], opacity=0.75)
    for tick in axis.ticks if valued else ():
        sheet.text(
            Point(plan.ticks - 6, axis.at(tick)), tick_text(numbers, tick), size=SMALL, align="right", faint=True
        )


def _draw_bins(sheet: Sheet, plan: _Plan, body: Box) -> None:
    room = body.width / len(plan.bins) - 4
    for place, label in enumerate(labels_of(plan.bins, room, SMALL).values()):
        sheet.text(Point(plan.x(body, place), body.bottom + 10), label, size=SMALL, align="center")


def _draw_ns(sheet: Sheet, plan: _Plan, body: Box, rows: Sequence[tuple[str, list[str]]], kind: Kind) -> None:
    size = SMALL - 1
    for line, (name, ns) in enumerate(rows):
        y = body.bottom + BIN_LINE + N_LINE * (line + 0.5)
        if name and kind == "bars":
            draw_bars(sheet, [Box(body.left - 12, y - 4, 12, 8)], plan.looks[name])
        elif name:
            sheet.markers([Point(body.left - 4, y)], plan.looks[name], 5)
        else:
            sheet.text(Point(body.left - 4, y), "n", size=size, align="center", faint=True)
        for place, n in enumerate(ns):
            if n:
                sheet.text(Point(plan.x(body, place), y), n, size=size, align="center", faint=True)


def _draw_line(
    sheet: Sheet, plan: _Plan, body: Box, axis: Axis, look: Look, place: int, own: Sequence[Estimate | None]
) -> None:
    """One series: a line from bin to bin, broken where one is missing."""
    apart = min(8.0, body.width / len(plan.bins) / (len(plan.looks) + 1))
    moved = (place - (len(plan.looks) - 1) / 2) * apart
    there = [(plan.x(body, number) + moved, e) for number, e in enumerate(own) if e is not None]
    points = [None if e is None else Point(plan.x(body, i) + moved, axis.at(e.value)) for i, e in enumerate(own)]
    steps = [(a, b) for a, b in pairwise(points) if a is not None and b is not None]
    sheet.segments(steps, colour=look.colour, width=1.4, dashes=look.dashes)
    whiskers = [(Point(x, axis.at(e.ci95.low)), Point(x, axis.at(e.ci95.high))) for x, e in there if e.ci95 is not None]
    sheet.segments(whiskers, colour=look.colour, width=1.4, opacity=0.7)
    sheet.markers([point for point in points if point is not None], look)


def _draw_bars(
    sheet: Sheet, plan: _Plan, body: Box, axis: Axis, look: Look, place: int, own: Sequence[Estimate | None]
) -> None:
    """One series: a bar a bin; a dash where there is no number, which is no 0."""
    room = body.width / len(plan.bins)
    wide = min(34.0, 0.8 * room / len(plan.looks))
    boxes, whiskers = [], []
    for number, estimate in enumerate(own):
        x = plan.x(body, number) + (place - (len(plan.looks) - 1) / 2) * wide
        if estimate is None:
            sheet.text(Point(x, axis.at(0) - 6), "\N{EN DASH}", size=SMALL, align="center", faint=True)
            continue
        top, zero = axis.at(estimate.value), axis.at(0)
        boxes.append(Box(x - wide / 2 + 1, min(top, zero), wide - 2, abs(top - zero)))
        if estimate.ci95 is not None:
            whiskers.append((Point(x, axis.at(estimate.ci95.low)), Point(x, axis.at(estimate.ci95.high))))
    draw_bars(sheet, boxes, look)
    sheet.segments(whiskers, width=1.4)
