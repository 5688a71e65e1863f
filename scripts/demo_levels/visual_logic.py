"""Visual logic: hands that turn, rows of dots, patterns that are turned, and the one that is mirrored."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from demo_items.canvas import BLUE, INK, ORANGE, Canvas, around
from demo_items.glyphs import Point
from demo_items.puzzle import draw_option_row, figure_options, in_order, number_options

from demo_levels.item import Builder, Item, checked

Pattern = tuple[tuple[int, ...], ...]
"""Rows of a 3 x 3 pattern; 1 is a filled cell."""


def draw_dial(canvas: Canvas, centre: Point, hour: int, radius: float) -> None:
    """A dial with twelve marks and one hand; 0 is up."""
    canvas.disc(centre, radius, outline=INK, width=2)
    for mark in range(12):
        at = around(centre, radius * 0.85, 30 * mark)
        canvas.disc(at, radius * (0.1 if mark % 3 == 0 else 0.05), fill=INK)
    canvas.arrow(centre, around(centre, radius * 0.72, 30 * hour), width=3, colour=BLUE, head=radius * 0.4)


def dials(start: int, step: int) -> Builder:
    """A hand turns by the same angle each time."""

    def build(letter: str) -> Item:
        row = [(start + step * number) % 12 for number in range(5)]
        right = (start + step * 5) % 12
        checked(right, (2 * row[-1] - row[-2]) % 12, "the next dial")
        options = in_order(right, [(right + 1) % 12, (right - 1) % 12, (right + 6) % 12], letter)
        canvas = Canvas(400, 236)
        for number, hour in enumerate(row):
            draw_dial(canvas, (40 + 64 * number, 46), hour, 28)
        canvas.box(332, 18, 56, 56, line=2)
        canvas.text((360, 46), "?", size=30)
        draw_option_row(canvas, options, lambda at, hour: draw_dial(canvas, at, hour, 32), top=108)
        way = f"{abs(step)} mark{'' if abs(step) == 1 else 's'} {'clockwise' if step > 0 else 'anticlockwise'}"
        return Item(
            question="The hand turns by the same angle from dial to dial. "
            "Which of the figures A to D belongs at the question mark?",
            options=figure_options(),
            answer=letter,
            hint="Compare the first two dials: how far, and which way, does the hand turn?",
            explanation="Count the marks on the rim. From each dial to the next the hand goes "
            f"{abs(step)} marks {way}. "
            "Check this for all five dials, then go on once more from the last one.",
            request="say by how many marks the hand turns and which way, and follow it through all dials.",
            canvas=canvas,
        )

    return build


def dots(numbers: Sequence[int], right: int, rule: str) -> Builder:
    """Boxes with dots whose number follows a rule."""

    def build(letter: str) -> Item:
        canvas = Canvas(400, 116)
        for place, number in enumerate([*numbers, 0]):
            left = 8 + 78 * place
            canvas.box(left, 10, 70, 96, line=2)
            for dot in range(number):
                canvas.disc(
                    (left + 13 + 14.6 * (dot % 4), 22 + 14.6 * (dot // 4)), 4.6, fill=ORANGE, outline=INK, width=1
                )
        canvas.text((8 + 78 * len(numbers) + 35, 58), "?", size=34)
        last, before = numbers[-1], numbers[-2]
        return Item(
            question="The number of dots follows a rule from box to box. How many dots belong in the box with the "
            "question mark?",
            options=number_options(right, [2 * last - before, last + 1], letter),
            answer=letter,
            hint="Count the dots of each box, and write the numbers down in a row.",
            explanation=f"The boxes hold {', '.join(map(str, numbers))} dots. {rule} Do the same once more.",
            request="give the number of dots in each box, and the rule that leads from one to the next.",
            canvas=canvas,
        )

    return build


def growing(start: int, step: int, more: int) -> Builder:
    """The number of dots changes by `step`, and the step itself by `more` each time."""
    numbers = [start]
    for number in range(4):
        numbers.append(numbers[-1] + step + more * number)
    checked(numbers[4], _continued(numbers[:4]), "the next number of dots")
    word = "grows" if step > 0 else "falls"
    rule = (
        f"The number {word} by {abs(step)} each time."
        if not more
        else "Look at the differences: each is larger by one."
    )
    return dots(numbers[:4], numbers[4], rule)


def doubling(start: int) -> Builder:
    """The number of dots doubles."""
    numbers = [start * 2**place for place in range(5)]
    checked(numbers[4], sum(numbers[:4]) + start, "the next number of dots")  # 1 + 2 + 4 + 8 = 16 - 1
    return dots(numbers[:4], numbers[4], "Compare each number with the one before: how many times as large is it?")


def _continued(numbers: Sequence[int]) -> int:
    """The next number, from a table of differences whose last row stays as it is."""
    if len(set(numbers)) == 1:
        return numbers[0]
    return numbers[-1] + _continued([b - a for a, b in itertools.pairwise(numbers)])


def turned(pattern: Pattern) -> Pattern:
    """The pattern after a quarter turn clockwise."""
    return tuple(tuple(pattern[2 - column][row] for column in range(3)) for row in range(3))


def mirrored(pattern: Pattern) -> Pattern:
    """The pattern, left and right exchanged."""
    return tuple(tuple(reversed(row)) for row in pattern)


def draw_pattern(canvas: Canvas, centre: Point, pattern: Pattern, cell: float) -> None:
    """Filled and empty cells."""
    for row, column in itertools.product(range(3), range(3)):
        left, top = centre[0] + (column - 1.5) * cell, centre[1] + (row - 1.5) * cell
        canvas.box(left, top, cell, cell, fill=BLUE if pattern[row][column] else None, line=1.5)


def pattern_of(seed: str) -> Pattern:
    """A pattern whose four turns and their mirror images are all different."""
    rng = random.Random(seed)
    while True:
        filled = rng.sample(range(9), 4)
        made = tuple(tuple(int(3 * row + column in filled) for column in range(3)) for row in range(3))
        turns = [made]
        for _ in range(3):
            turns.append(turned(turns[-1]))
        if len({*turns, *map(mirrored, turns)}) == 8:
            return made


def quarter_turn(seed: str, *, clockwise: bool) -> Builder:
    """Which figure is the pattern after a quarter turn?"""

    def build(letter: str) -> Item:
        pattern = pattern_of(seed)
        once, twice, thrice = turned(pattern), turned(turned(pattern)), turned(turned(turned(pattern)))
        right, other = (once, thrice) if clockwise else (thrice, once)
        moved = {(c, 2 - r) if clockwise else (2 - c, r) for r, c in _cells(pattern)}
        checked(set(_cells(right)), moved, "the turned pattern")
        options = in_order(right, [mirrored(pattern), twice, other], letter)
        canvas = Canvas(400, 250)
        draw_pattern(canvas, (200, 58), pattern, 30)
        draw_option_row(canvas, options, lambda at, own: draw_pattern(canvas, at, own, 24), top=124, framed=False)
        way, side, end = ("clockwise", "right", "top") if clockwise else ("anticlockwise", "left", "bottom")
        return Item(
            question=f"Which of the figures A to D is the pattern at the top after a quarter turn {way}?",
            options=figure_options(),
            answer=letter,
            hint=f"Follow one corner: where does the upper left cell go in a quarter turn {way}?",
            explanation=f"In a quarter turn {way} the top row becomes the {side} column, and the cell "
            "that was at its left "
            f"comes to the {end}. The other rows follow in the same way. Nothing is mirrored.",
            request="say where each of the four filled cells goes.",
            canvas=canvas,
        )

    return build


def odd_one(seed: str) -> Builder:
    """Three figures are one pattern, turned; the fourth is its mirror image."""

    def build(letter: str) -> Item:
        pattern = pattern_of(seed)
        turns = [pattern, turned(pattern), turned(turned(pattern))]
        random.Random(seed).shuffle(turns)
        odd = mirrored(turned(pattern))
        options = in_order(odd, turns, letter)
        classes = [min(own, turned(own), turned(turned(own)), turned(turned(turned(own)))) for own in options]
        (alone,) = [place for place, own in enumerate(classes) if classes.count(own) == 1]
        checked("ABCD"[alone], letter, "the figure that stands alone")
        canvas = Canvas(400, 152)
        draw_option_row(canvas, options, lambda at, own: draw_pattern(canvas, at, own, 25), top=32, framed=False)
        return Item(
            question="Three of the figures A to D are the same pattern, only turned. Which one is not?",
            options=figure_options(),
            answer=letter,
            hint="Turn the figures in your mind, without flipping them over.",
            explanation="Turn each figure until a cell that stands out lies at the same place as in "
            "another figure, then "
            "compare the other cells. Three agree in this way; the fourth would have to be flipped over first.",
            request="say how the three figures are turned into each other, and why the fourth cannot be.",
            canvas=canvas,
        )

    return build


def _cells(pattern: Pattern) -> list[tuple[int, int]]:
    return [(row, column) for row in range(3) for column in range(3) if pattern[row][column]]


BUILDERS: tuple[Builder, ...] = (
    dials(1, 2),
    dials(10, -3),
    dials(4, 5),
    dials(7, -1),
    growing(1, 1, 1),
    growing(2, 3, 0),
    growing(15, -3, 0),
    doubling(1),
    quarter_turn("levels a", clockwise=True),
    quarter_turn("levels b", clockwise=True),
    quarter_turn("levels c", clockwise=False),
    quarter_turn("levels d", clockwise=False),
    odd_one("levels e"),
    odd_one("levels f"),
    odd_one("levels g"),
    odd_one("levels h"),
)
