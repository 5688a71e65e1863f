"""Odd one out: nine numbered figures, eight of which follow one rule."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from demo_items.canvas import BLUE, COLOURS, INK, SIDES, WHITE, Canvas, around
from demo_items.glyphs import Point
from demo_items.puzzle import LETTERS, Builder, Puzzle, in_order

Cell = dict[str, object]
Grid = tuple[tuple[int, int], ...]

CHIRAL: dict[str, Grid] = {
    "F": ((1, 0), (2, 0), (0, 1), (1, 1), (1, 2)),
    "L": ((0, 0), (0, 1), (0, 2), (1, 2)),
    "P": ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2)),
}
"""Cells (column, row) of figures that no turn takes to their mirror image."""


def turned(cells: Grid, quarters: int, *, mirrored: bool) -> Grid:
    """The cells mirrored left to right, then turned clockwise by quarter turns; in a 3 x 3 box."""
    points = [(2 - x, y) if mirrored else (x, y) for x, y in cells]
    for _ in range(quarters % 4):
        points = [(2 - y, x) for x, y in points]
    return tuple(points)


def nine(
    kind: str, question: str, make: Callable[[random.Random, int], list[Cell]], draw: Callable[..., None]
) -> Builder:
    """A puzzle of nine cells: `make` gives them with the odd one at a place, `draw` draws one."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        n_before = LETTERS.index(letter)
        odd = rng.randrange(n_before, n_before + 6)
        cells = make(rng, odd)
        canvas, size = Canvas(360, 360), 114.0
        for i, cell in enumerate(cells):
            left, top = 9 + i % 3 * size, 9 + i // 3 * size
            canvas.box(left, top, size, size, line=2)
            canvas.text((left + 14, top + 15), str(i + 1), size=14)
            draw(canvas, (left + size / 2 + 4, top + size / 2 + 4), cell)
        wrong = [*sorted(rng.sample(range(odd), n_before)), *sorted(rng.sample(range(odd + 1, 9), 3 - n_before))]
        options = tuple(f"Figure {i + 1}" for i in in_order(odd, wrong, letter))
        return Puzzle(canvas=canvas, question=question, options=options, params={"kind": kind, "cells": cells})

    return build


def shuffled(values: Sequence[object], rng: random.Random) -> list[object]:
    """The values in a random order."""
    return rng.sample(list(values), len(values))


def mirrored_cells(name: str) -> Callable[[random.Random, int], list[Cell]]:
    """Nine turned copies of a figure, one of them of its mirror image; every turn occurs at least twice."""

    def make(rng: random.Random, odd: int) -> list[Cell]:
        quarters = [0, 0, 1, 1, 2, 2, 3, 3, rng.randrange(4)]
        rng.shuffle(quarters)
        return [{"grid": turned(CHIRAL[name], q, mirrored=i == odd)} for i, q in enumerate(quarters)]

    return make


def draw_grid_figure(canvas: Canvas, centre: Point, cell: dict[str, Grid]) -> None:
    """Squares of 25 pixels."""
    grid, unit = cell["grid"], 25.0
    xs, ys = [x for x, _ in grid], [y for _, y in grid]
    left = centre[0] - (min(xs) + max(xs) + 1) / 2 * unit
    top = centre[1] - (min(ys) + max(ys) + 1) / 2 * unit
    for x, y in grid:
        canvas.box(left + x * unit, top + y * unit, unit, unit, fill=BLUE, line=2)


def half_cells(rng: random.Random, odd: int) -> list[Cell]:
    """Discs cut into 4, 6 or 8 equal slices, half of them blue; in one disc a slice more or less."""
    slices = [4, 4, 4, 6, 6, 6, 8, 8, 8]
    rng.shuffle(slices)
    cells: list[Cell] = []
    for i, n in enumerate(slices):
        blue = n // 2 + (rng.choice([-1, 1]) if i == odd else 0)
        cells.append({"slices": n, "blue": sorted(rng.sample(range(n), blue))})
    return cells


def draw_disc(canvas: Canvas, centre: Point, cell: dict[str, object]) -> None:
    """A disc of slices."""
    n, blue = cell["slices"], cell["blue"]
    if not isinstance(n, int) or not isinstance(blue, list):
        raise TypeError(f"not a disc: {cell!r}")
    for i in range(n):
        canvas.sector(centre, 39, 360 * i / n, 360 * (i + 1) / n, fill=BLUE if i in blue else WHITE, width=2)


def corner_cells(rng: random.Random, odd: int) -> list[Cell]:
    """Polygons with as many dots inside as corners; one has a dot more or less."""
    shapes = shuffled(["triangle", "triangle", *["square"] * 2, *["pentagon"] * 2, *["hexagon"] * 3], rng)
    off = rng.choice([-1, 1])
    return [{"shape": s, "dots": SIDES[str(s)] + (off if i == odd else 0)} for i, s in enumerate(shapes)]


def draw_dotted(canvas: Canvas, centre: Point, cell: dict[str, object]) -> None:
    """A polygon with dots in a ring inside."""
    shape, dots = str(cell["shape"]), int(str(cell["dots"]))
    canvas.shape(shape, centre, 37, fill=WHITE)
    middle = (centre[0], centre[1] + (6 if shape == "triangle" else 0))
    for i in range(dots):
        canvas.disc(around(middle, 13 if shape == "triangle" else 18, 360 * i / dots), 4.8, fill=INK)


def nested_cells(rng: random.Random, odd: int) -> list[Cell]:
    """A small shape in a large one of the same kind, in two colours; one pair differs in kind."""
    names = ["circle", "square", "triangle"]
    outer = shuffled(names * 3, rng)
    fills = shuffled(["blue"] * 3 + ["orange"] * 3 + ["white"] * 3, rng)
    cells: list[Cell] = []
    for i, (shape, fill) in enumerate(zip(outer, fills, strict=True)):
        inner = rng.choice([n for n in names if n != shape]) if i == odd else shape
        cells.append({"outer": shape, "inner": inner, "fill": fill})
    return cells


def draw_nested(canvas: Canvas, centre: Point, cell: dict[str, str]) -> None:
    """A large shape with a small filled one inside."""
    canvas.shape(cell["outer"], centre, 38, fill=WHITE)
    down = 4 if cell["outer"] == "triangle" else 0
    canvas.shape(cell["inner"], (centre[0], centre[1] + down), 15, fill=COLOURS[cell["fill"]])


def coloured_cells(rng: random.Random, odd: int) -> list[Cell]:
    """Each kind of shape has a colour of its own; one figure has the colour of another kind."""
    names, fills = ["circle", "square", "triangle"], shuffled(["blue", "orange", "white"], rng)
    own = dict(zip(names, fills, strict=True))
    sizes = [22, 22, 22, 30, 30, 30, 38, 38, 38]
    rng.shuffle(sizes)
    cells: list[Cell] = []
    for i, (shape, size) in enumerate(zip(shuffled(names * 3, rng), sizes, strict=True)):
        fill = rng.choice([f for f in fills if f != own[str(shape)]]) if i == odd else own[str(shape)]
        cells.append({"shape": shape, "fill": fill, "size": size})
    return cells


def draw_coloured(canvas: Canvas, centre: Point, cell: dict[str, object]) -> None:
    """A filled shape."""
    canvas.shape(str(cell["shape"]), centre, int(str(cell["size"])), fill=COLOURS[str(cell["fill"])])


SAME_FIGURE = "Eight of the nine figures are the same figure, only turned. Which one is not?"
SAME_SHARE = "In eight of the nine discs the same share of the disc is blue. In which one is it not?"
SAME_CORNERS = (
    "In eight of the nine figures one rule ties the number of dots to the outer shape. Which one breaks the rule?"
)
SAME_KIND = "In eight of the nine figures one rule ties the inner shape to the outer shape. Which one breaks the rule?"
SAME_COLOUR = (
    "In eight of the nine figures one rule ties the colour to the shape; size does not matter. "
    "Which one breaks the rule?"
)

BUILDERS: tuple[Builder, ...] = (
    *(nine("mirrored", SAME_FIGURE, mirrored_cells(name), draw_grid_figure) for name in ("F", "L", "P")),
    *(nine("half", SAME_SHARE, half_cells, draw_disc) for _ in range(2)),
    *(nine("corners", SAME_CORNERS, corner_cells, draw_dotted) for _ in range(2)),
    nine("nested", SAME_KIND, nested_cells, draw_nested),
    *(nine("coloured", SAME_COLOUR, coloured_cells, draw_coloured) for _ in range(2)),
)
