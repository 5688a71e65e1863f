"""Dots with whiskers: a line a number, its value and n beside it. Many runs become small multiples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.chart_numbers import Numbers
from interbench_tasks.report.drawing import (
    FAINT,
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
    axis_over,
    columns_of,
    draw_legend,
    labels_of,
    legend_rows,
    looks_of,
    title_of,
    width_of,
)

LINE, LINES_APART, ROWS_APART = 18.0, 14.0, 9.0
"""Pixels from row to row; from series to series in a row; between such rows."""
TITLE_LINE, TICKS_LINE = 20.0, 30.0
PANEL_GAP = 14.0
NO_ASIDE = 18.0
"""Room for half of the last tick, where no text stands beside the whiskers."""
NARROWEST = 64.0
"""Of the part of a panel that is drawn in, pixels."""
MOST_VALUES = 90
"""Above this many numbers, only their n stand beside them."""
LABELS = {1: 250.0, 2: 200.0}
"""Panels beside each other -> most pixels for the names of rows; else `NARROW_LABELS`."""
NARROW_LABELS = 180.0


def ends_of(estimates: Sequence[Estimate]) -> list[float]:
    """What an axis must hold: values and the ends of their intervals."""
    return [value for e in estimates for value in (e.value, *(e.ci95 if e.ci95 is not None else ()))]


def axis_of(numbers: Numbers, most_ticks: int = 6) -> Axis:
    """An axis for all the numbers of a chart, without a place yet."""
    ends = ends_of(list(numbers.cells.values()))
    points = numbers.points
    if points is not None and points > 1 and not numbers.signed:  # a scale of scores is always shown whole
        ends += [0.0, points]
    return axis_over(ends, top=points if points is not None else 1.0, most_ticks=most_ticks)


def tick_text(numbers: Numbers, value: float) -> str:
    """A tick: `20%`, `+5` (percentage points), `3` or `0.4`."""
    if numbers.points is None:
        shown = f"{value * 100:+g}" if numbers.signed else f"{value * 100:g}%"
    else:
        shown = f"{value:+g}" if numbers.signed else f"{value:g}"
    return ("0" if value == 0 else shown).replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Where everything goes."""

    panels: Sequence[str]
    rows: Sequence[str]
    series: Sequence[str]
    looks: Mapping[str, Look]
    labels: float
    """Width of the names of rows."""
    aside: float
    """Width of the texts beside the whiskers."""
    valued: bool
    """Whether values stand there, and not only n."""
    columns: int
    legend: float
    """Height of the legend."""
    titled: bool

    @property
    def line(self) -> float:
        return LINES_APART if len(self.series) > 1 else LINE

    @property
    def row(self) -> float:
        """Height of a row with all its series."""
        return self.line * len(self.series) + (ROWS_APART if len(self.series) > 1 else 0)

    @property
    def panel(self) -> Box:
        """The first panel, with its title, texts and ticks."""
        width = (WIDTH - self.labels - PANEL_GAP * (self.columns - 1)) / self.columns
        height = (TITLE_LINE if self.titled else 4) + self.row * len(self.rows) + TICKS_LINE
        return Box(self.labels, self.legend, width, height)

    @property
    def height(self) -> float:
        """Of the whole drawing."""
        return self.legend + self.panel.height * -(-len(self.panels) // self.columns)

    def body(self, number: int) -> Box:
        """What of a panel is drawn in."""
        first = self.panel
        down, across = divmod(number, self.columns)
        top = first.top + down * first.height + (TITLE_LINE if self.titled else 4)
        left = first.left + across * (first.width + PANEL_GAP)
        return Box(left, top, first.width - self.aside, self.row * len(self.rows))

    def y(self, body: Box, row: int, series: int) -> float:
        """The height of a line."""
        return body.top + self.row * row + (self.row - self.line * len(self.series)) / 2 + self.line * (series + 0.5)


def dots(
    numbers: Numbers,
    *,
    id: str,
    label: str,
    rows: str,
    series: str | None = None,
    panels: str | None = None,
    columns: int = 3,
) -> str:
    """A drawing of all numbers.

    Args: id, label = as of `Sheet.svg`; rows, series, panels = dimensions; series = up to 6, each with a look of its
        own; columns = panels beside each other, at most.
    """
    plan = _plan(numbers, rows, series, panels, columns)
    sheet = Sheet(plan.height)
    if len(plan.series) > 1:
        draw_legend(sheet, plan.looks, Point(plan.labels, 0), "dots")
    axis = axis_of(numbers, most_ticks=4 if plan.columns > 2 else 6)
    row_labels = labels_of(plan.rows, plan.labels - 10)
    dims = (panels, rows, series)
    for number, panel in enumerate(plan.panels):
        body = plan.body(number)
        if plan.titled:
            at = Point(body.left, body.top - TITLE_LINE / 2 - 2)
            sheet.text(at, title_of(panel, plan.panel.width - 4), bold=True)
        placed = axis.moved(body.left, body.right)
        _draw_frame(sheet, numbers, body, placed)
        if number % plan.columns == 0:
            _draw_row_labels(sheet, plan, body, [row_labels[row] for row in plan.rows])
        _draw_panel(sheet, numbers, plan, body, placed, _found(numbers, dims, panel))
    return sheet.svg(id=id, label=label)


def _plan(numbers: Numbers, rows: str, series: str | None, panels: str | None, columns: int) -> _Plan:
    panel_values = numbers.values(panels) if panels is not None else [""]
    row_values = numbers.values(rows)
    series_values = numbers.values(series)[: len(LOOKS)] if series is not None else [""]
    across = columns_of(len(panel_values), columns)
    labels = min(LABELS.get(across, NARROW_LABELS), max(width_of(row) for row in row_values)) + 12
    room = (WIDTH - labels - PANEL_GAP * (across - 1)) / across
    valued = len(numbers.cells) <= MOST_VALUES
    estimates = numbers.cells.values()
    aside = 12 + max(width_of(_n_text(e), SMALL) for e in estimates)
    aside += max(_value_width(numbers, e) for e in estimates) if valued else 0
    if room - aside < NARROWEST:
        aside = NO_ASIDE
    legend = LEGEND_LINE * len(legend_rows(series_values, WIDTH - labels)) + 4
    return _Plan(
        panels=panel_values,
        rows=row_values,
        series=series_values,
        looks=looks_of(series_values),
        labels=labels,
        aside=aside,
        valued=valued,
        columns=across,
        legend=legend if len(series_values) > 1 else 0.0,
        titled=panels is not None and (len(panel_values) > 1 or panel_values != [""]),
    )


def drawn_value(numbers: Numbers, estimate: Estimate) -> str:
    """A value as a drawing has it."""
    return numbers.shown(estimate.value).replace("-", "\N{MINUS SIGN}")


def _value_width(numbers: Numbers, estimate: Estimate) -> float:
    return width_of(drawn_value(numbers, estimate), SMALL) + 6


def _n_text(estimate: Estimate) -> str:
    return f"n {estimate.n}" + (f" (u {estimate.unscored})" if estimate.unscored else "")


def _found(numbers: Numbers, dims: tuple[str | None, ...], panel: str) -> dict[tuple[str, str], Estimate]:
    """(row, series) -> estimate, of one panel."""
    places = [numbers.dims.index(dim) if dim is not None else None for dim in dims]
    found = {}
    for key, estimate in numbers.cells.items():
        of_panel, row, series = (key[place] if place is not None else "" for place in places)
        if of_panel == panel:
            found[(row, series)] = estimate
    return found


def _draw_frame(sheet: Sheet, numbers: Numbers, body: Box, axis: Axis) -> None:
    """Lines to read along, and their values."""
    top, bottom = body.top, body.bottom + 2
    lines = [(Point(axis.at(tick), top), Point(axis.at(tick), bottom)) for tick in axis.ticks]
    sheet.segments(lines, opacity=GRID)
    sheet.segments([(Point(axis.at(0), top), Point(axis.at(0), bottom))], opacity=FAINT if numbers.signed else 0.5)
    last = float("-inf")
    for tick in axis.ticks:
        text, at = tick_text(numbers, tick), axis.at(tick)
        if at - width_of(text, SMALL) / 2 > last + 2:
            sheet.text(Point(at, body.bottom + 11), text, size=SMALL, align="center", faint=True)
            last = at + width_of(text, SMALL) / 2


def _draw_row_labels(sheet: Sheet, plan: _Plan, body: Box, labels: Sequence[str]) -> None:
    for row, label in enumerate(labels):
        top = body.top + plan.row * row
        sheet.text(Point(plan.labels - 10, top + plan.row / 2), label, align="right")
    if len(plan.series) > 1:
        heights = (body.top + plan.row * row for row in range(1, len(labels)))
        sheet.segments([(Point(8, y), Point(WIDTH, y)) for y in heights], opacity=GRID)


def _draw_panel(
    sheet: Sheet, numbers: Numbers, plan: _Plan, body: Box, axis: Axis, found: Mapping[tuple[str, str], Estimate]
) -> None:
    for place, name in enumerate(plan.series):
        look = plan.looks[name]
        own = [(plan.y(body, row, place), found.get((value, name))) for row, value in enumerate(plan.rows)]
        there = [(y, estimate) for y, estimate in own if estimate is not None]
        whiskers = [
            (Point(axis.at(e.ci95.low), y), Point(axis.at(e.ci95.high), y)) for y, e in there if e.ci95 is not None
        ]
        sheet.segments(whiskers, colour=look.colour, width=1.8)
        sheet.markers([Point(axis.at(e.value), y) for y, e in there], look)
        if plan.aside > NO_ASIDE:
            _draw_asides(sheet, numbers, plan, body, there)
        for y in (y for y, estimate in own if estimate is None):
            sheet.text(Point(body.left + 4, y), "\N{EN DASH}", size=SMALL, faint=True)


def _draw_asides(
    sheet: Sheet, numbers: Numbers, plan: _Plan, body: Box, there: Sequence[tuple[float, Estimate]]
) -> None:
    """Values and n beside the whiskers."""
    left = body.right + 8
    if plan.valued:
        for y, estimate in there:
            sheet.text(Point(left, y), drawn_value(numbers, estimate), size=SMALL)
        left += max((_value_width(numbers, estimate) for _, estimate in there), default=0.0)
    for y, estimate in there:
        sheet.text(Point(left, y), _n_text(estimate), size=SMALL, faint=True)
