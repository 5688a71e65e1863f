"""What every puzzle is made of, and the layout that all share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from demo_items.canvas import INK, Canvas
from demo_items.glyphs import Point

LETTERS = "ABCD"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """One puzzle, drawn."""

    canvas: Canvas
    question: str
    options: tuple[str, ...]
    """Four, distinct; the one at the wanted letter is right."""
    params: Mapping[str, object]
    """What was drawn, as JSON types: enough to solve the puzzle without the picture, and without our answer."""


Builder = Callable[[random.Random, str], Puzzle]
"""Makes one puzzle whose right option has the given letter."""


def in_order(right: T, wrong: Sequence[T], letter: str) -> list[T]:
    """Four options with the right one at `letter`.

    Raises:
        ValueError: There are not exactly three wrong ones, or two options are equal.
    """
    place = LETTERS.index(letter)
    options = [*wrong[:place], right, *wrong[place:]]
    if len(options) != len(LETTERS) or any(a == b for i, a in enumerate(options) for b in options[:i]):
        raise ValueError(f"want three wrong options that differ from {right!r} and each other, got {wrong!r}")
    return options


def number_options(right: int, likely: Iterable[int], letter: str) -> tuple[str, ...]:
    """Four numbers as text in rising order, so that the right one comes at `letter`; no wrong one is below 1.

    Wrong numbers are the likely mistakes in their order, then the nearest numbers.

    Raises:
        ValueError: There is no room for as many smaller numbers as the letter asks for.
    """
    n_below = LETTERS.index(letter)
    candidates = list(dict.fromkeys([*likely, *(right + d for d in (-1, 1, -2, 2, -3, 3))]))
    below = [n for n in candidates if 1 <= n < right][:n_below]
    above = [n for n in candidates if n > right][: len(LETTERS) - 1 - n_below]
    return tuple(str(n) for n in in_order(right, [*sorted(below), *sorted(above)], letter))


def figure_options() -> tuple[str, ...]:
    """The options where the picture itself shows figures A to D."""
    return tuple(f"Figure {letter}" for letter in LETTERS)


def draw_option_row(
    canvas: Canvas,
    options: Sequence[T],
    draw: Callable[[Point, T], None],
    *,
    top: float,
    size: float = 80,
    framed: bool = True,
) -> None:
    """Four figures in boxes at the bottom with their letters under them, cut off from the question by a line."""
    canvas.line([(14, top - 16), (canvas.width - 14, top - 16)], width=1.5, colour=INK)
    gap = (canvas.width - 4 * size) / 5
    for i, option in enumerate(options):
        left = gap + i * (size + gap)
        if framed:
            canvas.box(left, top, size, size, line=2)
        draw((left + size / 2, top + size / 2), option)
        canvas.text((left + size / 2, top + size + 20), LETTERS[i], size=18)
