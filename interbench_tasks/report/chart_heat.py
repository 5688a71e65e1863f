"""A heat map: the deeper a cell, the higher its value, which is printed in it with its n."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.chart_dots import drawn_value
from interbench_tasks.report.chart_numbers import Numbers
from interbench_tasks.report.drawing import (
    BOLD,
    LOOKS,
    NORMAL,
    SMALL,
    WIDTH,
    Axis,
    Box,
    Point,
    Sheet,
    axis_over,
    labels_of,
    width_of,
)
from interbench_tasks.report.svg import INK

CELL = 30.0
"""Height of a row, pixels."""
WIDEST, FEW, LABELS = 150.0, 4, 230.0
DEEPEST = 0.62
"""Opacity of the highest value: the page's text can be read on it in light and dark."""
UNSURE = 0.5
"""A cell whose interval is wider than this share of the scale looks unsure: a dashed frame."""


def heat(
    numbers: Numbers,
    *,
    id: str,
    label: str,
    rows: str,
    columns: str,
    bold: Collection[str] = (),
    dashes: bool = True,
) -> str:
    """A drawing of all numbers.

    Args: as of `chart_dots.dots`; rows, columns = dimensions; bold = rows that sum up others; dashes = whether a cell
        without a number has a dash, for one could be there.
    """
    row_values, column_values = numbers.values(rows), numbers.values(columns)
    left = min(LABELS, max(width_of(row) * (BOLD if row in bold else 1) for row in row_values) + 14)
    wide = min(WIDEST, (WIDTH - left - (0 if len(column_values) <= FEW else 90)) / len(column_values))
    flat = len(column_values) <= FEW
    heads = labels_of(column_values, (wide - 6) / BOLD if flat else 150)
    top = 22.0 if flat else max(width_of(head) for head in heads.values()) * math.sqrt(0.5) + 16
    sheet = Sheet(top + CELL * len(row_values) + 4)
    for place, head in enumerate(heads.values()):
        x = left + wide * (place + 0.5)
        if flat:
            sheet.text(Point(x, top - 12), head, align="center", bold=True)
        else:
            sheet.text(Point(x, top - 6), head, turned=45)
    row_labels = labels_of(row_values, left - 12)
    values = [estimate.value for estimate in numbers.cells.values()]
    depth = axis_over(values, top=numbers.points or 1.0).moved(0.0, DEEPEST)
    places = numbers.dims.index(rows), numbers.dims.index(columns)
    found = {(key[places[0]], key[places[1]]): estimate for key, estimate in numbers.cells.items()}
    cells: list[tuple[Box, Estimate | None]] = []
    for number, row in enumerate(row_values):
        y = top + CELL * number
        sheet.text(Point(left - 10, y + CELL / 2), row_labels[row], align="right", bold=row in bold)
        for place, column in enumerate(column_values):
            cells.append((Box(left + wide * place + 2, y + 2, wide - 4, CELL - 4), found.get((row, column))))
    _draw_cells(sheet, numbers, depth, cells)
    for box in (box for box, estimate in cells if estimate is None and dashes):
        sheet.text(Point(box.left + box.width / 2, box.top + box.height / 2), "\N{EN DASH}", align="center", faint=True)
    return sheet.svg(id=id, label=label)


def _draw_cells(sheet: Sheet, numbers: Numbers, depth: Axis, cells: Sequence[tuple[Box, Estimate | None]]) -> None:
    """Layer by layer, those of one look together: neighbours share what is said of them."""
    there = [(box, estimate) for box, estimate in cells if estimate is not None]
    for opacity, box in sorted((round(depth.at(estimate.value), 2), box) for box, estimate in there):
        sheet.box(box, fill=LOOKS[0].colour, opacity=opacity)
    for box in (box for box, estimate in there if _is_unsure(estimate)):
        sheet.box(box, edge=INK, dashes=(2, 2), width=0.8)
    for box, estimate in there:
        text = drawn_value(numbers, estimate)
        at = Point(box.left + box.width / 2, box.top + box.height / 2 - 5)
        sheet.text(at, text, align="center", size=NORMAL if box.width > 40 else SMALL)
    for box, estimate in there:
        at = Point(box.left + box.width / 2, box.top + box.height / 2 + 7)
        sheet.text(at, f"n {estimate.n}", size=SMALL - 1, align="center", faint=True)


def _is_unsure(estimate: Estimate) -> bool:
    interval = estimate.ci95
    return interval is not None and interval.high - interval.low > UNSURE * (estimate.points or 1.0)
