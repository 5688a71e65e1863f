"""A sheet to draw on in pixels, with one look a series, that becomes a small <svg> (see `svg`).

Series are told apart by marker, line style and hatch as well as by colour; the colours are Okabe and Ito's, a little
lighter or darker, so that each has a contrast of 3:1 and more with white paper and with a dark page.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from matplotlib.artist import Artist
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.text import Text
from matplotlib.transforms import Affine2D

from interbench_tasks.report.svg import INK, plain, svg_from

WIDTH = 720
"""Of every chart, in pixels: a page of 800 has room for it."""
SMALL, NORMAL, TITLE = 10.0, 11.5, 12.5
"""Sizes of letters, in pixels."""
FAINT, GRID = 0.75, 0.18
"""Opacity of what is said aside, and of lines to read along."""
_WIDE, _BROAD, _CAPITAL, _NARROW, _OTHER = 1.02, 0.95, 0.72, 0.36, 0.63
"""Width of letters, in their size; those of the widest common font, so that no text is longer than we think."""

BOLD = 1.14
"""How much wider bold letters are."""

Align = Literal["left", "center", "right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a series is drawn."""

    colour: str
    marker: str
    dashes: tuple[float, ...]
    """On, off, ... in pixels; empty: a line without gaps."""
    hatch: str
    """Of its bars; empty: filled."""


LOOKS = (
    Look(colour="#1a80bf", marker="o", dashes=(), hatch=""),
    Look(colour="#d55e00", marker="s", dashes=(6, 2), hatch="////"),
    Look(colour="#009e73", marker="^", dashes=(2, 2), hatch="\\\\\\\\"),
    Look(colour="#cc79a7", marker="D", dashes=(7, 2, 2, 2), hatch="xxxx"),
    Look(colour="#b87a00", marker="v", dashes=(10, 3), hatch="----"),
    Look(colour="#808080", marker="P", dashes=(1, 3), hatch="||||"),
)
"""In the order in which series take them; more cannot be told apart."""


class Point(NamedTuple):
    """A place on a sheet, in pixels from its upper left corner."""

    x: float
    y: float


class Box(NamedTuple):
    """A rectangle on a sheet, in pixels."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height


class Sheet:
    """Draws in pixels from the upper left corner."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        self._width, self._height = width, height
        self._artists: list[Callable[[], Artist]] = []

    def _figure(self) -> Figure:
        """All that was drawn. No axes: with their ticks and spines they take longer than all the rest."""
        figure = Figure(figsize=(self._width / 72, self._height / 72), dpi=72)
        pixels = Affine2D().scale(1, -1).translate(0, self._height)
        for make in self._artists:
            artist = make()
            artist.set_transform(pixels)
            figure.add_artist(artist)
        return figure

    def text(
        self,
        at: Point,
        text: str,
        *,
        size: float = NORMAL,
        align: Align = "left",
        bold: bool = False,
        faint: bool = False,
        turned: float = 0,
    ) -> None:
        """A line of text, its middle at the height of `at`. Args: turned = degrees against the clock."""
        self._artists.append(
            lambda: Text(
                at.x,
                at.y + (0.36 * size if not turned else 0),
                plain(text),
                fontsize=size,
                horizontalalignment=align,
                verticalalignment="baseline",
                fontweight="bold" if bold else "normal",
                color=INK,
                alpha=FAINT if faint else None,
                rotation=turned,
                rotation_mode="anchor",
                parse_math=False,  # a name with dollars is no formula
            )
        )

    def segments(
        self,
        ends: Iterable[tuple[Point, Point]],
        *,
        colour: str = INK,
        width: float = 1.0,
        opacity: float | None = None,
        dashes: Sequence[float] = (),
    ) -> None:
        """Straight lines of one look. Args: width, dashes in pixels."""
        style = (0, [length / width for length in dashes]) if dashes else "solid"
        lines = list(ends)
        self._artists.append(
            lambda: LineCollection(lines, colors=[colour], linewidths=[width], alpha=opacity, linestyles=[style])
        )

    def markers(self, points: Sequence[Point], look: Look, size: float = 7.0) -> None:
        """The marker of a series at each point."""
        if not points:
            return
        xs, ys = zip(*points, strict=True)
        self._artists.append(
            lambda: Line2D(
                xs, ys, linestyle="none", marker=look.marker, markersize=size, color=look.colour, markeredgewidth=0
            )
        )

    def shape(
        self,
        points: Sequence[Point],
        *,
        fill: str | None = None,
        opacity: float = 1.0,
        edge: str | None = None,
        width: float = 1.0,
        hatch: str = "",
        dashes: Sequence[float] = (),
    ) -> None:
        """A closed shape. Args: opacity = of the fill; width, dashes = of the edge, whose colour a hatch has too."""
        self._artists.append(
            lambda: Polygon(
                list(points),
                closed=True,
                facecolor=(fill, opacity) if fill is not None else "none",
                edgecolor=edge if edge is not None else "none",
                linewidth=width if edge is not None else 0,
                hatch=hatch or None,
                linestyle=(0, [length / width for length in dashes]) if dashes else "solid",
            )
        )

    def box(self, box: Box, **look: object) -> None:
        """A rectangle; `look` as of `shape`."""
        corners = (Point(x, y) for x, y in ((box.left, box.top), (box.right, box.top), (box.right, box.bottom),
                                            (box.left, box.bottom)))  # fmt: skip
        self.shape(list(corners), **look)  # type: ignore[arg-type]  # they are handed on as they came

    def svg(self, *, id: str, label: str) -> str:
        """The drawing. Args: id = unique in a page; label = what a screen reader says."""
        return svg_from(self._figure, id=id, label=plain(label))


# --- texts that fit ---------------------------------------------------------------------------------------------------


def width_of(text: str, size: float = NORMAL) -> float:
    """About how wide a text is, in pixels; rather too wide than too narrow."""
    return size * sum(map(_width_of_letter, text))


def _width_of_letter(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return _WIDE
    if unicodedata.category(letter) in ("Mn", "Cf"):
        return 0.0
    if letter in "il.,:;|!'()[]/ ":
        return _NARROW
    if letter in "mwMW%@…":
        return _BROAD
    return _CAPITAL if letter.isupper() else _OTHER


def fitted(text: str, width: float, size: float = NORMAL) -> str:
    """The text, its middle left out where it is longer than `width` pixels.

    >>> fitted("a very long name of a model", 90)
    'a very…model'
    """
    shown = plain(text)
    if width_of(shown, size) <= width:
        return shown
    for kept in range(len(shown) - 1, 1, -1):
        short = f"{shown[: (kept + 1) // 2].rstrip()}…{shown[len(shown) - kept // 2 :].lstrip()}"
        if width_of(short, size) <= width:
            return short
    return shown[:1] + "…"


def title_of(text: str, width: float) -> str:
    """The text as a bold title that fits; bold letters are wider."""
    return fitted(text, width / BOLD)


def columns_of(count: int, most: int) -> int:
    """How many of `count` panels stand beside each other, at most `most`: as many in each line as can be.

    >>> [columns_of(count, 3) for count in (1, 2, 3, 4, 5, 7, 12)]
    [1, 2, 3, 2, 3, 3, 3]
    """
    lines = -(-count // most)
    return -(-count // lines)


def labels_of(names: Sequence[str], width: float, size: float = NORMAL) -> dict[str, str]:
    """Each name as a label that fits; where two would look the same, they are numbered.

    >>> labels_of(["a very long name of it", "a very short name of it"], 60)
    {'a very long name of it': 'a ve…it 1', 'a very short name of it': 'a ve…it 2'}
    """
    found = {name: fitted(name, width, size) for name in names}
    for label in {label for label in found.values() if list(found.values()).count(label) > 1}:
        same = [name for name in names if found[name] == label]
        for number, name in enumerate(same, 1):
            found[name] = f"{fitted(name, width - width_of(f' {number}', size), size)} {number}"
    return found


# --- axes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Values along a line of pixels."""

    low: float
    high: float
    ticks: tuple[float, ...]
    start: float
    """Pixel of `low`."""
    end: float
    """Pixel of `high`."""

    def at(self, value: float) -> float:
        """The pixel of a value; one off the axis stays at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def moved(self, start: float, end: float) -> Axis:
        """The same values along another line."""
        return Axis(low=self.low, high=self.high, ticks=self.ticks, start=start, end=end)


def axis_over(values: Sequence[float], *, top: float | None = None, most_ticks: int = 6, zero: bool = True) -> Axis:
    """An axis of round numbers that holds all values, without a place yet.

    Args: top = no value can be higher, and none lower than its negative; zero = whether 0 is on it.
    """
    low, high = min([*values, *([0.0] if zero else [])]), max([*values, *([0.0] if zero else [])])
    if top is not None:
        low, high = max(low, -top), min(high, top)
    if high - low < 1e-9:
        low, high = low - (0.1 if low else 0.0) * (top or 1), high + 0.1 * (top or 1)
    step = _step((high - low) / (most_ticks - 1))
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    ticks = tuple(round(number * step, 10) for number in range(first, last + 1))
    return Axis(low=ticks[0], high=ticks[-1], ticks=ticks, start=0, end=1)


def _step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, ... times a power of ten that is not under `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 2.5, 5, 10, 20) if step * power >= least * (1 - 1e-9))


# --- legends ----------------------------------------------------------------------------------------------------------

LEGEND_LINE = 18.0
"""Pixels."""


def looks_of(series: Sequence[str]) -> dict[str, Look]:
    """A look for each series; the drawings refuse more series than there are looks."""
    return dict(zip(series, LOOKS, strict=False))


def legend_rows(names: Sequence[str], width: float) -> list[list[str]]:
    """The names of series, as many a line as there is room for."""
    rows: list[list[str]] = [[]]
    used = 0.0
    for name in names:
        wide = _legend_width(name)
        if rows[-1] and used + wide > width:
            rows.append([])
            used = 0.0
        rows[-1].append(name)
        used += wide
    return rows


def _legend_width(name: str) -> float:
    return 30 + min(width_of(name), 300) + 18


def draw_legend(sheet: Sheet, looks: Mapping[str, Look], at: Point, kind: Literal["lines", "dots", "bars"]) -> None:
    """What each look stands for, in lines from `at` downwards; the whiskers of dots have no dashes."""
    labels = labels_of(list(looks), 300)
    for number, row in enumerate(legend_rows(list(looks), WIDTH - at.x)):
        x, y = at.x, at.y + LEGEND_LINE * (number + 0.5)
        for name in row:
            look = looks[name]
            if kind == "bars":
                draw_bars(sheet, [Box(x, y - 5, 22, 10)], look)
            else:
                dashes = look.dashes if kind == "lines" else ()
                sheet.segments([(Point(x, y), Point(x + 22, y))], colour=look.colour, width=1.6, dashes=dashes)
                sheet.markers([Point(x + 11, y)], look)
            sheet.text(Point(x + 28, y), labels[name])
            x += _legend_width(name)


def draw_bars(sheet: Sheet, boxes: Sequence[Box], look: Look) -> None:
    """Bars in the look of a series: filled, or hatched."""
    for box in boxes:
        sheet.box(box, fill=look.colour, opacity=0.8 if not look.hatch else 0.12, edge=look.colour)
    for box in boxes if look.hatch else ():  # apart, for one opacity is of both
        sheet.box(box, edge=look.colour, hatch=look.hatch)
