"""A radar: one spoke an ability, one outline a series. Without intervals: bars beside it show those."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
    Look,
    Point,
    Sheet,
    columns_of,
    draw_legend,
    fitted,
    legend_rows,
    looks_of,
    title_of,
)

RADII = {1: 130.0, 2: 115.0, 3: 86.0, 4: 62.0}
"""Panels beside each other -> radius, pixels."""
AROUND = 26.0
"""Room for the names of spokes."""


def radar(
    numbers: Numbers,
    *,
    id: str,
    label: str,
    spokes: str,
    series: str | None = None,
    panels: str | None = None,
) -> str:
    """A drawing of scores that share a scale; an outline is open where a score is missing.

    Args: as of `chart_dots.dots`; spokes = the dimension that goes round.
    """
    panel_values = numbers.values(panels) if panels is not None else [""]
    looks = looks_of(numbers.values(series)[: len(LOOKS)] if series is not None else [""])
    across = columns_of(len(panel_values), 4)
    radius, titled = RADII[across], panels is not None and panel_values != [""]
    legend = LEGEND_LINE * len(legend_rows(list(looks), WIDTH - 4)) + 6 if len(looks) > 1 else 0.0
    step = 2 * (radius + AROUND) + (22 if titled else 0)
    sheet = Sheet(legend + step * -(-len(panel_values) // across))
    if len(looks) > 1:
        draw_legend(sheet, looks, Point(4, 0), "lines")
    axis = axis_of(numbers).moved(0, radius)
    spoke_values = numbers.values(spokes)
    for number, panel in enumerate(panel_values):
        down, column = divmod(number, across)
        x = WIDTH / across * (column + 0.5)
        centre = Point(x, legend + step * down + (22 if titled else 0) + radius + AROUND)
        if titled:
            at = Point(x, legend + step * down + 10)
            sheet.text(at, title_of(panel, WIDTH / across - 20), bold=True, align="center")
        _draw_web(sheet, numbers, centre, axis, spoke_values)
        filled = len(panel_values) <= 4
        for name, look in looks.items():
            own = _own(numbers, {panels: panel, series: name}, spokes, spoke_values)
            _draw_outline(sheet, centre, axis, look, own, filled=filled)
    return sheet.svg(id=id, label=label)


def _own(numbers: Numbers, of: Mapping[str | None, str], spokes: str, values: Sequence[str]) -> list[Estimate | None]:
    """The estimates of one outline, by spoke."""
    found = {}
    for key, estimate in numbers.cells.items():
        parts = dict(zip(numbers.dims, key, strict=True))
        if all(dim is None or parts[dim] == value for dim, value in of.items()):
            found[parts[spokes]] = estimate
    return [found.get(value) for value in values]


def _place(centre: Point, radius: float, spoke: int, count: int) -> Point:
    angle = 2 * math.pi * spoke / count
    return Point(centre.x + radius * math.sin(angle), centre.y - radius * math.cos(angle))


def _draw_web(sheet: Sheet, numbers: Numbers, centre: Point, axis: Axis, spokes: Sequence[str]) -> None:
    count = len(spokes)
    for tick in axis.ticks[1:]:
        ring = [_place(centre, axis.at(tick), spoke, count) for spoke in range(count)]
        sheet.segments(zip(ring, [*ring[1:], ring[0]], strict=True), opacity=GRID)
    sheet.segments([(centre, _place(centre, axis.end, spoke, count)) for spoke in range(count)], opacity=GRID)
    for spoke, name in enumerate(spokes):
        at = _place(centre, axis.end + 14, spoke, count)
        sheet.text(at, fitted(name, 60), align="center", bold=True)
    end = _place(centre, axis.end, 0, count)
    sheet.text(Point(end.x + 4, end.y + 7), tick_text(numbers, axis.ticks[-1]), size=SMALL - 1, faint=True)


def _draw_outline(
    sheet: Sheet, centre: Point, axis: Axis, look: Look, own: Sequence[Estimate | None], *, filled: bool
) -> None:
    count = len(own)
    points = [None if e is None else _place(centre, axis.at(e.value), i, count) for i, e in enumerate(own)]
    there = [point for point in points if point is not None]
    if filled and len(there) == count:
        sheet.shape(there, fill=look.colour, opacity=0.08)
    sides = [(a, b) for a, b in zip(points, [*points[1:], points[0]], strict=True) if a is not None and b is not None]
    sheet.segments(sides, colour=look.colour, width=1.8, dashes=look.dashes)
    sheet.markers(there, look, 6)
