"""Next shape: a row or a table of figures follows a rule; which figure belongs at the question mark?"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from demo_items.canvas import BLUE, COLOURS, INK, ORANGE, Canvas, around
from demo_items.glyphs import Point
from demo_items.puzzle import Builder, Puzzle, draw_option_row, figure_options, in_order

ROW_QUESTION = "The figures in the row follow a rule. Which of the figures A to D belongs at the question mark?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a row; what a kind of row does not use keeps its default."""

    shape: str = "circle"
    fill: str = "white"
    size: int = 3
    """1 to 3."""
    angle: int = 0
    """Degrees, clockwise, 0 is up."""
    dots: int = 0


def draw_flag(canvas: Canvas, centre: Point, figure: Figure, unit: float) -> None:
    """A pointer with one filled half head: no turn but a whole one leaves it as it is."""
    tip, tail = around(centre, unit, figure.angle), around(centre, unit, figure.angle + 180)
    canvas.line([tail, tip], width=4)
    elbow = around(centre, unit * 0.06, figure.angle)
    side = around(elbow, unit * 0.72, figure.angle + 90)
    canvas.polygon([tip, side, elbow], fill=COLOURS[figure.fill])
    canvas.disc(tail, unit * 0.17, fill=INK)


def draw_plain(canvas: Canvas, centre: Point, figure: Figure, unit: float) -> None:
    """A shape of the figure's size."""
    canvas.shape(figure.shape, centre, unit * (0.3 + 0.2 * figure.size), fill=COLOURS[figure.fill])


def draw_ring(canvas: Canvas, centre: Point, figure: Figure, unit: float) -> None:
    """A shape with a ring of dots in it."""
    canvas.shape(figure.shape, centre, unit * 0.95, fill=COLOURS[figure.fill])
    for i in range(figure.dots):
        at = centre if figure.dots == 1 else around(centre, unit * 0.56, 360 * i / figure.dots)
        canvas.disc(at, unit * 0.13, fill=INK)


def draw_walk(canvas: Canvas, centre: Point, cells: tuple[int, int], unit: float) -> None:
    """A 3 x 3 grid with a blue disc and an orange square, each in one of the eight cells at the border."""
    step = unit * 0.64
    left, top = centre[0] - 1.5 * step, centre[1] - 1.5 * step
    for i in range(4):
        canvas.line([(left, top + i * step), (left + 3 * step, top + i * step)], width=1.5)
        canvas.line([(left + i * step, top), (left + i * step, top + 3 * step)], width=1.5)
    columns, rows = (0, 1, 2, 2, 2, 1, 0, 0), (0, 0, 0, 1, 2, 2, 2, 1)
    disc, square = (
        (left + (columns[cell] + 0.5) * step, top + (rows[cell] + 0.5) * step) for cell in (cells[0] % 8, cells[1] % 8)
    )
    canvas.disc(disc, step * 0.36, fill=BLUE, outline=INK, width=1.5)
    half = step * 0.32
    canvas.box(square[0] - half, square[1] - half, 2 * half, 2 * half, fill=ORANGE, line=1.5)


def nearest(right: Figure, values: dict[str, Sequence[object]], rng: random.Random) -> list[Figure]:
    """Three other figures that differ from `right` in as few of the given attributes as possible."""
    combinations = [dict(zip(values, choice, strict=True)) for choice in itertools.product(*values.values())]
    others = [replace(right, **choice) for choice in combinations]  # type: ignore[arg-type]  # values are the fields' own
    rng.shuffle(others)
    apart = sorted((sum(getattr(o, k) != getattr(right, k) for k in values), i) for i, o in enumerate(others))
    chosen = [others[i] for distance, i in apart if distance > 0][:3]
    rng.shuffle(chosen)
    return chosen


def row_canvas(count: int, *, framed: bool = True) -> tuple[Canvas, list[Point]]:
    """A canvas with `count` places in a row, the last one with a question mark; and the places' centres."""
    canvas = Canvas(400, 236)
    gap = 7.0
    size = (400 - 2 * 12 - gap * (count - 1)) / count
    centres = [(12 + size / 2 + i * (size + gap), 42.0) for i in range(count)]
    for x, y in centres if framed else centres[-1:]:
        canvas.box(x - size / 2, y - size / 2, size, size, line=2)
    canvas.text(centres[-1], "?", size=30)
    return canvas, centres


def as_params(kind: str, shown: Sequence[Figure], options: Sequence[Figure]) -> dict[str, object]:
    """What was drawn, for a solver."""
    return {"kind": kind, "shown": [asdict(f) for f in shown], "options": [asdict(f) for f in options]}


def turning(step: int, fills: Sequence[str]) -> Builder:
    """A flag turns by `step` degrees each time while its fill goes through `fills`."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        start = rng.randrange(0, 360, 45)
        row = [Figure(shape="flag", angle=(start + step * i) % 360, fill=fills[i % len(fills)]) for i in range(6)]
        right = row[-1]
        angles = [(right.angle + d) % 360 for d in (0, 180, step, -step)]
        values: dict[str, Sequence[object]] = {"angle": sorted(set(angles)), "fill": sorted(set(fills))}
        options = in_order(right, nearest(right, values, rng), letter)
        canvas, centres = row_canvas(6)
        for centre, figure in zip(centres, row[:-1], strict=False):
            draw_flag(canvas, centre, figure, 20)
        draw_option_row(canvas, options, lambda at, figure: draw_flag(canvas, at, figure, 27), top=108)
        params = as_params("turning", row[:-1], options)
        return Puzzle(canvas=canvas, question=ROW_QUESTION, options=figure_options(), params=params)

    return build


def walking(disc_step: int, square_step: int) -> Builder:
    """A disc and a square walk round the border of a grid, each with its own step."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        start = rng.choice([(a, b) for a in range(8) for b in range(8) if _stay_apart(a, b, disc_step, square_step)])
        row = [((start[0] + disc_step * i) % 8, (start[1] + square_step * i) % 8) for i in range(6)]
        right = row[-1]
        near = [(right[0] + a, right[1] + b) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1), (0, 2), (2, 0))]
        near = [(a % 8, b % 8) for a, b in near if a % 8 != b % 8]
        options = in_order(right, rng.sample(near, 3), letter)
        canvas, centres = row_canvas(6, framed=False)
        for centre, cells in zip(centres, row[:-1], strict=False):
            draw_walk(canvas, centre, cells, 28.5)
        draw_option_row(canvas, options, lambda at, cells: draw_walk(canvas, at, cells, 40), top=108, framed=False)
        params = {"kind": "walking", "shown": row[:-1], "options": options}
        return Puzzle(canvas=canvas, question=ROW_QUESTION, options=figure_options(), params=params)

    return build


def _stay_apart(disc: int, square: int, disc_step: int, square_step: int) -> bool:
    return all((disc + disc_step * i - square - square_step * i) % 8 for i in range(6))


def cycling(shapes: int, fills: int) -> Builder:
    """Shapes repeat after `shapes` figures and fills after `fills`."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        names = rng.sample(["triangle", "square", "circle", "hexagon"], shapes)
        colours = rng.sample(sorted(COLOURS), fills)
        count = 7
        row = [Figure(shape=names[i % shapes], fill=colours[i % fills], size=3) for i in range(count)]
        right = row[-1]
        options = in_order(right, nearest(right, {"shape": names, "fill": colours}, rng), letter)
        canvas, centres = row_canvas(count)
        for centre, figure in zip(centres, row[:-1], strict=False):
            draw_plain(canvas, centre, figure, 17.5)
        draw_option_row(canvas, options, lambda at, figure: draw_plain(canvas, at, figure, 28), top=108)
        params = as_params("cycling", row[:-1], options)
        return Puzzle(canvas=canvas, question=ROW_QUESTION, options=figure_options(), params=params)

    return build


def growing(start: int, step: int) -> Builder:
    """The number of dots changes by `step` each time while two outer shapes take turns."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        names = rng.sample(["square", "circle", "hexagon"], 2)
        row = [Figure(shape=names[i % 2], dots=start + step * i) for i in range(6)]
        right = row[-1]
        values: dict[str, Sequence[object]] = {"shape": names, "dots": [right.dots - 1, right.dots, right.dots + 1]}
        options = in_order(right, nearest(right, values, rng), letter)
        canvas, centres = row_canvas(6)
        for centre, figure in zip(centres, row[:-1], strict=False):
            draw_ring(canvas, centre, figure, 22)
        draw_option_row(canvas, options, lambda at, figure: draw_ring(canvas, at, figure, 30), top=108)
        params = as_params("growing", row[:-1], options)
        return Puzzle(canvas=canvas, question=ROW_QUESTION, options=figure_options(), params=params)

    return build


def table(rng: random.Random, letter: str) -> Puzzle:
    """A 3 x 3 table: each row and column holds each shape once; fill goes by diagonal, size by column."""
    shapes = rng.sample(["triangle", "square", "circle", "hexagon"], 3)
    fills, sizes = rng.sample(sorted(COLOURS), 3), rng.sample([1, 2, 3], 3)
    cells = [
        Figure(shape=shapes[(r + c) % 3], fill=fills[(r - c) % 3], size=sizes[c]) for r in range(3) for c in range(3)
    ]
    right = cells[-1]
    values: dict[str, Sequence[object]] = {"shape": shapes, "fill": fills, "size": sizes}
    options = in_order(right, nearest(right, values, rng), letter)
    canvas, size, left, top = Canvas(400, 370), 66.0, 101.0, 14.0
    for i, figure in enumerate(cells):
        column, line = left + i % 3 * size, top + i // 3 * size
        canvas.box(column, line, size, size, line=2)
        if i < 8:
            draw_plain(canvas, (column + size / 2, line + size / 2), figure, 26)
        else:
            canvas.text((column + size / 2, line + size / 2), "?", size=30)
    draw_option_row(canvas, options, lambda at, figure: draw_plain(canvas, at, figure, 28), top=246)
    question = (
        "In the table, shape, colour and size each follow a rule along rows and columns. "
        "Which of the figures A to D belongs at the question mark?"
    )
    params = as_params("table", cells[:-1], options)
    return Puzzle(canvas=canvas, question=question, options=figure_options(), params=params)


BUILDERS: tuple[Builder, ...] = (
    turning(45, ["blue"]),
    turning(135, ["blue"]),
    turning(-90, ["blue", "orange", "white"]),
    walking(1, -1),
    walking(2, 1),
    cycling(3, 2),
    cycling(2, 3),
    growing(1, 1),
    growing(11, -2),
    table,
)
