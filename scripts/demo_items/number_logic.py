"""Number logic: dots, wheels, pyramids, scales and clocks with one number to work out."""

from __future__ import annotations

import random
from collections.abc import Sequence

from demo_items.canvas import BLUE, INK, ORANGE, PALE, WHITE, Canvas, around
from demo_items.glyphs import Point
from demo_items.puzzle import Builder, Puzzle, in_order, number_options


def draw_card(canvas: Canvas, centre: Point, dots: int) -> None:
    """A card of 66 x 104 pixels with `dots` dots in columns of three."""
    canvas.box(centre[0] - 33, centre[1] - 52, 66, 104, line=2)
    for i in range(dots):
        row = i // 3
        in_row = min(3, dots - row * 3)
        x = centre[0] + (i % 3 - (in_row - 1) / 2) * 19
        canvas.disc((x, centre[1] + (row - (-(-dots // 3) - 1) / 2) * 19), 6.5, fill=INK)


def dot_row(numbers: Sequence[int], rule: str) -> Builder:
    """Five cards; the last one's number of dots is asked for."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        canvas = Canvas(400, 140)
        for i, number in enumerate(numbers):
            centre = (44 + i * 78.0, 70.0)
            draw_card(canvas, centre, number if i < len(numbers) - 1 else 0)
        canvas.text((44 + (len(numbers) - 1) * 78.0, 70), "?", size=34)
        last = numbers[-2]
        likely = [last + (last - numbers[-3]), last + 1, 2 * last - 1, sum(numbers[-3:-1]) + 1]
        question = f"{rule} How many dots belong on the card with the question mark?"
        params = {"kind": "dot_row", "shown": list(numbers[:-1])}
        options = number_options(numbers[-1], likely, letter)
        return Puzzle(canvas=canvas, question=question, options=options, params=params)

    return build


def wheel(rng: random.Random, letter: str) -> Puzzle:
    """Eight sectors; numbers that lie opposite each other have the same sum."""
    total = rng.randrange(21, 36)
    half = rng.sample(range(3, total - 2), 4)
    while len({*half, *(total - n for n in half)}) < 8:
        half = rng.sample(range(3, total - 2), 4)
    numbers: list[int] = [*half, *(total - n for n in half)]
    gap = rng.randrange(8)
    canvas, centre = Canvas(340, 340), (170.0, 170.0)
    for i, number in enumerate(numbers):
        fill = ORANGE if i == gap else (WHITE, PALE)[i % 2]
        canvas.sector(centre, 150, 45 * i, 45 * i + 45, fill=fill)
        text = "?" if i == gap else str(number)
        canvas.text(around(centre, 102, 45 * i + 22.5), text, size=26)
    canvas.disc(centre, 9, fill=INK)
    question = (
        "In the wheel, two numbers that lie opposite each other always add up to the same total. "
        "Which number belongs at the question mark?"
    )
    right, shown = numbers[gap], [None if i == gap else n for i, n in enumerate(numbers)]
    likely = [right + rng.choice([-10, 10]), numbers[gap - 4] + rng.choice([-1, 1]), total - numbers[gap - 1]]
    options = number_options(right, likely, letter)
    return Puzzle(canvas=canvas, question=question, options=options, params={"kind": "wheel", "shown": shown})


def pyramid_numbers(base: Sequence[int]) -> list[list[int]]:
    """All rows of a pyramid of sums, the top first."""
    rows = [list(base)]
    while len(rows[0]) > 1:
        rows.insert(0, [a + b for a, b in zip(rows[0], rows[0][1:], strict=False)])
    return rows


def pyramid(size: int, known: Sequence[tuple[int, int]], asked: tuple[int, int]) -> Builder:
    """A pyramid of sums where only the bricks at `known` (row from the top, place) show their numbers."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        rows = pyramid_numbers([rng.randrange(2, 10) for _ in range(size)])
        canvas, width, height = Canvas(360, 60 * size + 20), 340 / size, 60.0
        shown: list[list[int | str | None]] = [[None] * len(row) for row in rows]
        for r, row in enumerate(rows):
            for c, number in enumerate(row):
                left = 180 - len(row) * width / 2 + c * width
                is_asked = (r, c) == asked
                canvas.box(left, 10 + r * height, width, height, fill=ORANGE if is_asked else WHITE)
                if is_asked or (r, c) in known:
                    shown[r][c] = "?" if is_asked else number
                    canvas.text((left + width / 2, 10 + (r + 0.5) * height), str(shown[r][c]), size=26)
        right = rows[asked[0]][asked[1]]
        likely = [right + rng.choice([-1, 1]), right + rng.choice([-2, 2]), right + rng.choice([3, 4])]
        question = (
            "Each brick holds the sum of the two bricks that it stands on. Which number belongs at the question mark?"
        )
        options = number_options(right, likely, letter)
        return Puzzle(canvas=canvas, question=question, options=options, params={"kind": "pyramid", "shown": shown})

    return build


def draw_weight(canvas: Canvas, bottom: Point, weight: str) -> None:
    """A square, triangle, ball, or the question mark, standing on `bottom`."""
    x, y = bottom
    if weight == "ball":
        canvas.disc((x, y - 9), 8, fill=INK)
    elif weight == "square":
        canvas.box(x - 15, y - 31, 30, 30, fill=BLUE)
    elif weight == "triangle":
        canvas.polygon([(x - 18, y - 1.5), (x + 18, y - 1.5), (x, y - 34)], fill=ORANGE)
    else:
        canvas.text((x, y - 20), "?", size=28)


def draw_pan(canvas: Canvas, middle: Point, weights: Sequence[str]) -> None:
    """Weights on a pan of 150 pixels: the big ones side by side, balls in rows of five beside or above each other."""
    canvas.line([(middle[0] - 75, middle[1]), (middle[0] + 75, middle[1])], width=4)
    big = [w for w in weights if w != "ball"]
    balls = len(weights) - len(big)
    columns = min(balls, 5 if not big else 3)
    total = 42 * len(big) + 18 * columns
    x = middle[0] - total / 2
    for weight in big:
        draw_weight(canvas, (x + 21, middle[1] - 2), weight)
        x += 42
    for i in range(balls):
        draw_weight(canvas, (x + 9 + i % columns * 18, middle[1] - 2 - i // columns * 18), "ball")


def draw_scale(canvas: Canvas, y: float, left: Sequence[str], right: Sequence[str]) -> None:
    """A level scale whose pans lie at height `y`."""
    for x, weights in ((100.0, left), (300.0, right)):
        draw_pan(canvas, (x, y), weights)
        canvas.line([(x, y), (x, y + 14)], width=3)
    canvas.line([(100, y + 14), (300, y + 14)], width=4)
    canvas.polygon([(200, y + 14), (184, y + 42), (216, y + 42)], fill=PALE, width=2.5)


def balance(scales: Sequence[tuple[Sequence[str], Sequence[str]]], asked: str, weights: dict[str, int]) -> Builder:
    """Two level scales, and a third with the asked weight against a question mark."""
    for left, right in scales:
        if sum(weights[w] for w in left) != sum(weights[w] for w in right):
            raise ValueError(f"not level: {left} against {right}")

    def build(rng: random.Random, letter: str) -> Puzzle:
        canvas = Canvas(400, 360)
        for i, (left, right) in enumerate(scales):
            draw_scale(canvas, 66 + i * 116, left, right)
        draw_scale(canvas, 66 + len(scales) * 116, [asked], ["?"])
        question = f"All scales are level. How many black balls weigh as much as one {asked}?"
        drawn = [weights[w] for w in weights if w not in (asked, "ball")]
        likely = [*drawn, weights[asked] + rng.choice([-1, 1])]
        params = {"kind": "balance", "scales": [[list(left), list(right)] for left, right in scales], "asked": asked}
        options = number_options(weights[asked], likely, letter)
        return Puzzle(canvas=canvas, question=question, options=options, params=params)

    return build


def clock_text(minutes: int) -> str:
    """The time as a clock face shows it, e.g. 4:05.

    >>> clock_text(725)
    '12:05'
    """
    return f"{minutes // 60 % 12 or 12}:{minutes % 60:02d}"


def draw_clock(canvas: Canvas, centre: Point, minutes: int | None) -> None:
    """A clock of radius 58 with hour numbers around it; without a time, a question mark instead of hands."""
    canvas.disc(centre, 58, fill=WHITE, outline=INK)
    for i in range(60):
        inner = 48 if i % 15 == 0 else 50 if i % 5 == 0 else 54
        width = 2.5 if i % 5 == 0 else 1.0
        canvas.line([around(centre, inner, 6 * i), around(centre, 57, 6 * i)], width=width)
    for hour in (3, 6, 9, 12):
        canvas.text(around(centre, 70, 30 * hour), str(hour), size=13)
    if minutes is None:
        canvas.text(centre, "?", size=44)
        return
    canvas.line([centre, around(centre, 27, minutes / 2)], width=6, colour=BLUE)
    canvas.line([centre, around(centre, 46, minutes * 6)], width=3)
    canvas.disc(centre, 5, fill=INK)


def hands_apart(minutes: int) -> float:
    """Degrees between the two hands, in [0, 180]."""
    apart = abs(minutes * 5.5) % 360
    return min(apart, 360 - apart)


def clocks(start: int, step: int) -> Builder:
    """Three clocks, each `step` minutes after the one before; the fourth is asked for."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        times = [start + i * step for i in range(3)]
        if min(map(hands_apart, times)) < 25:
            raise ValueError(f"hands lie over each other: {times}")
        canvas = Canvas(380, 344)
        for i, centre in enumerate([(96.0, 86.0), (284.0, 86.0), (96.0, 258.0), (284.0, 258.0)]):
            draw_clock(canvas, centre, times[i] if i < 3 else None)
            canvas.box(centre[0] - 84, centre[1] - 76, 24, 26, fill=PALE, line=1.5)
            canvas.text((centre[0] - 72, centre[1] - 63), str(i + 1), size=15)
        right = start + 3 * step
        wrong = [clock_text(right + d) for d in rng.sample([-60, 60, -step, 10, -10, 30], 3)]
        question = (
            "Clocks 1, 2, 3 and 4 are read in this order, and the same time passes from each clock to the next. "
            "The short blue hand shows the hour. What time should clock 4 show?"
        )
        options = tuple(in_order(clock_text(right), wrong, letter))
        params = {"kind": "clocks", "shown": [t % 720 for t in times]}
        return Puzzle(canvas=canvas, question=question, options=options, params=params)

    return build


BUILDERS: tuple[Builder, ...] = (
    dot_row(
        [1, 2, 4, 7, 11],
        "Each card has more dots than the one before it, and the increase grows by one from card to card.",
    ),
    dot_row([1, 4, 5, 9, 14], "From the third card on, each card has as many dots as the two before it together."),
    wheel,
    wheel,
    pyramid(4, [(3, 0), (3, 1), (2, 1), (3, 3)], (0, 0)),
    pyramid(3, [(0, 0), (2, 0), (2, 2)], (2, 1)),
    balance(
        [(["square", "ball"], ["ball"] * 5), (["triangle", "square"], ["ball"] * 10)],
        "triangle",
        {"ball": 1, "square": 4, "triangle": 6},
    ),
    balance(
        [(["square"], ["triangle", "triangle"]), (["square", "triangle"], ["ball"] * 9)],
        "square",
        {"ball": 1, "square": 6, "triangle": 3},
    ),
    clocks(2 * 60 + 30, 85),
    clocks(10 * 60 + 45, 50),
)
