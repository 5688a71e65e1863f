"""Transformation: a pattern is turned, mirrored, laid over another one or unfolded; which figure results?"""

from __future__ import annotations

import random
from collections.abc import Callable

from demo_items.canvas import BLUE, INK, PALE, WHITE, Canvas
from demo_items.glyphs import Point
from demo_items.puzzle import Builder, Puzzle, draw_option_row, figure_options, in_order

SIDE = 4
Pattern = frozenset[tuple[int, int]]
"""Filled cells (column, row) of a 4 x 4 grid."""
Move = Callable[[Pattern], Pattern]


def clockwise(pattern: Pattern) -> Pattern:
    """A quarter turn clockwise."""
    return frozenset((SIDE - 1 - y, x) for x, y in pattern)


def half_turn(pattern: Pattern) -> Pattern:
    """A half turn."""
    return clockwise(clockwise(pattern))


def anticlockwise(pattern: Pattern) -> Pattern:
    """A quarter turn anticlockwise."""
    return clockwise(half_turn(pattern))


def left_right(pattern: Pattern) -> Pattern:
    """Mirrored in an upright line."""
    return frozenset((SIDE - 1 - x, y) for x, y in pattern)


def up_down(pattern: Pattern) -> Pattern:
    """Mirrored in a level line."""
    return half_turn(left_right(pattern))


TURNS: tuple[Move, ...] = (clockwise, half_turn, anticlockwise)
ALL_MOVES: tuple[Move, ...] = (
    frozenset,
    *TURNS,
    left_right,
    up_down,
    lambda p: clockwise(left_right(p)),
    lambda p: anticlockwise(left_right(p)),
)


def at_corner(pattern: Pattern) -> Pattern:
    """The pattern moved to the upper left corner: its form, wherever it lies."""
    left, top = min(x for x, _ in pattern), min(y for _, y in pattern)
    return frozenset((x - left, y - top) for x, y in pattern)


def connected(pattern: Pattern) -> bool:
    """Whether one can walk over all filled cells from side to side."""
    reached = {min(pattern)}
    while True:
        more = {(x + dx, y + dy) for x, y in reached for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))} & pattern
        if more <= reached:
            return reached == pattern
        reached |= more


def lopsided(rng: random.Random, filled: int) -> Pattern:
    """A connected pattern, and no turning or mirroring of it gives the same form, even elsewhere."""
    cells = [(x, y) for x in range(SIDE) for y in range(SIDE)]
    while True:
        pattern = frozenset(rng.sample(cells, filled))
        if connected(pattern) and len({at_corner(move(pattern)) for move in ALL_MOVES}) == len(ALL_MOVES):
            return pattern


def one_cell_off(pattern: Pattern, rng: random.Random) -> Pattern:
    """The pattern with one filled cell moved to a free cell."""
    free = [(x, y) for x in range(SIDE) for y in range(SIDE) if (x, y) not in pattern]
    return (pattern - {rng.choice(sorted(pattern))}) | {rng.choice(free)}


def draw_pattern(canvas: Canvas, centre: Point, pattern: Pattern, unit: float) -> None:
    """A grid with cells of `unit` pixels, filled cells blue."""
    left, top = centre[0] - SIDE / 2 * unit, centre[1] - SIDE / 2 * unit
    for y in range(SIDE):
        for x in range(SIDE):
            fill = BLUE if (x, y) in pattern else WHITE
            canvas.box(left + x * unit, top + y * unit, unit, unit, fill=fill, line=1.5)


def as_rows(pattern: Pattern) -> list[str]:
    """The pattern as text, `#` for filled."""
    return ["".join("#" if (x, y) in pattern else "." for x in range(SIDE)) for y in range(SIDE)]


def finished(canvas: Canvas, question: str, options: list[Pattern], params: dict[str, object]) -> Puzzle:
    """The puzzle with its four patterns at the bottom."""
    draw_option_row(canvas, options, lambda at, p: draw_pattern(canvas, at, p, 20), top=176, framed=False)
    params = {**params, "options": [as_rows(o) for o in options], "option_centres": option_centres(canvas), "unit": 20}
    return Puzzle(canvas=canvas, question=question, options=figure_options(), params=params)


def option_centres(canvas: Canvas) -> list[Point]:
    """Where `draw_option_row` puts its four boxes at the default size."""
    gap = (canvas.width - 4 * 80) / 5
    return [(gap + 40 + i * (80 + gap), 176 + 40.0) for i in range(4)]


def moved(name: str, move: Move, words: str, mirror_line: str = "") -> Builder:
    """One pattern that is turned or mirrored; wrong are other moves and a near miss."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        pattern = lopsided(rng, 6)
        right = move(pattern)
        others = [p for p in (m(pattern) for m in ALL_MOVES) if p != right]
        near = one_cell_off(right, rng)
        while near in others or not connected(near):
            near = one_cell_off(right, rng)
        wrong = [*rng.sample(others, 2), near]
        rng.shuffle(wrong)
        canvas, centre = Canvas(400, 300), (200.0, 76.0)
        draw_pattern(canvas, centre, pattern, 28)
        if mirror_line == "upright":
            canvas.dashed((278, 12), (278, 140))
        elif mirror_line == "level":
            canvas.dashed((128, 142), (272, 142))
        params: dict[str, object] = {"kind": name, "pattern": as_rows(pattern), "centre": centre, "pattern_unit": 28}
        question = f"The pattern at the top is {words}. Which of the figures A to D shows the result?"
        return finished(canvas, question, in_order(right, wrong, letter), params)

    return build


def not_turned(rng: random.Random, letter: str) -> Puzzle:
    """Three options are turned copies, the right one is a turned mirror image."""
    pattern = lopsided(rng, 6)
    right = rng.choice([move(left_right(pattern)) for move in TURNS])
    wrong = [move(pattern) for move in TURNS]
    rng.shuffle(wrong)
    canvas, centre = Canvas(400, 300), (200.0, 76.0)
    draw_pattern(canvas, centre, pattern, 28)
    params: dict[str, object] = {"kind": "not_turned", "pattern": as_rows(pattern), "centre": centre}
    question = (
        "Three of the figures A to D are the pattern at the top, only turned. "
        "Which figure cannot be obtained by turning the pattern?"
    )
    return finished(canvas, question, in_order(right, wrong, letter), {**params, "pattern_unit": 28})


def overlaid(rng: random.Random, letter: str) -> Puzzle:
    """Two see-through sheets with filled cells are laid on top of each other."""
    cells = [(x, y) for x in range(SIDE) for y in range(SIDE)]
    first, second = frozenset(rng.sample(cells, 5)), frozenset(rng.sample(cells, 5))
    while not 2 <= len(first & second) <= 3:
        second = frozenset(rng.sample(cells, 5))
    right = first | second
    lost, added = right - {rng.choice(sorted(first - second))}, one_cell_off(right, rng)
    wrong = [first ^ second, lost, added]
    rng.shuffle(wrong)
    canvas, centres = Canvas(400, 300), [(110.0, 76.0), (290.0, 76.0)]
    for centre, pattern in zip(centres, (first, second), strict=True):
        draw_pattern(canvas, centre, pattern, 28)
    canvas.text((200, 76), "+", size=30)
    params: dict[str, object] = {"kind": "overlaid", "sheets": [as_rows(first), as_rows(second)]}
    question = (
        "Two see-through sheets with blue squares are laid exactly on top of each other, without turning them. "
        "Which of the figures A to D shows what you see?"
    )
    return finished(canvas, question, in_order(right, wrong, letter), params)


def draw_holes(canvas: Canvas, centre: Point, holes: Pattern, unit: float, columns: int = SIDE) -> None:
    """A sheet, `columns` cells wide, with round holes at the middles of cells."""
    left, top = centre[0] - columns / 2 * unit, centre[1] - SIDE / 2 * unit
    canvas.box(left, top, columns * unit, SIDE * unit, fill=PALE, line=2)
    for x, y in sorted(holes):
        canvas.disc((left + (x + 0.5) * unit, top + (y + 0.5) * unit), unit * 0.3, fill=WHITE, outline=INK, width=2)


def punched(rng: random.Random, letter: str) -> Puzzle:
    """A sheet is folded to its left half, holes are punched, and it is unfolded."""
    left_cells = [(x, y) for x in range(2) for y in range(SIDE)]
    holes: Pattern = frozenset(rng.sample(left_cells, 3))
    shifted = frozenset((x + 2, y) for x, y in holes)
    while left_right(holes) == shifted or up_down(holes) == holes:
        holes = frozenset(rng.sample(left_cells, 3))
        shifted = frozenset((x + 2, y) for x, y in holes)
    right = holes | left_right(holes)
    wrong = [holes | shifted, holes | half_turn(holes), up_down(right)]
    rng.shuffle(wrong)
    options = in_order(right, wrong, letter)
    canvas = Canvas(400, 300)
    draw_holes(canvas, (164, 76), holes, 30, columns=2)
    canvas.dashed((194, 8), (194, 144), width=3.5)
    canvas.line([(194, 16), (254, 16), (254, 136), (194, 136)], width=1.5)
    canvas.arrow((236, 76), (206, 76))
    draw_option_row(canvas, options, lambda at, p: draw_holes(canvas, at, p, 20), top=176, framed=False)
    question = (
        "A sheet was folded once along the dashed line, its right half onto its left half, as the arrow shows. "
        "Then the holes were punched through both layers. Which of the figures A to D shows the sheet unfolded again?"
    )
    params = {"kind": "punched", "holes": as_rows(holes), "options": [as_rows(o) for o in options]}
    return Puzzle(canvas=canvas, question=question, options=figure_options(), params=params)


BUILDERS: tuple[Builder, ...] = (
    moved("clockwise", clockwise, "turned a quarter turn clockwise"),
    moved("anticlockwise", anticlockwise, "turned a quarter turn anticlockwise"),
    moved("half_turn", half_turn, "turned a half turn (180 degrees)"),
    moved("left_right", left_right, "mirrored in the dashed line", "upright"),
    moved("up_down", up_down, "mirrored in the dashed line", "level"),
    not_turned,
    not_turned,
    overlaid,
    overlaid,
    punched,
)
