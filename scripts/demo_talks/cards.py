"""Pictures for conversations: cards with text, bar charts and signs; what each shows is known in words."""

from __future__ import annotations

from dataclasses import dataclass

from demo_items.canvas import BLUE, GREY, INK, ORANGE, PALE, WHITE, Canvas, Colour

COLOURS: dict[str, Colour] = {"blue": BLUE, "orange": ORANGE, "grey": GREY, "white": WHITE}
WIDTH = 420
LETTERS_PER_LINE = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A picture, and what it shows."""

    canvas: Canvas
    shows: str
    """In words; for checks and simulations, no model is told."""


def card(title: str, *lines: str, colour: str = "blue") -> Card:
    """A card with a coloured head and lines of text, as on a ticket or a note."""
    if any(len(line) > LETTERS_PER_LINE for line in (title, *lines)):
        raise ValueError(f"at most {LETTERS_PER_LINE} letters a line: {title}, {lines}")
    height = 84 + 44 * len(lines)
    canvas = Canvas(WIDTH, height)
    canvas.box(10, 10, WIDTH - 20, height - 20, fill=PALE)
    canvas.box(10, 10, WIDTH - 20, 46, fill=COLOURS[colour])
    canvas.text((WIDTH / 2, 33), title.upper(), size=20, colour=WHITE if colour == "blue" else INK)
    for number, line in enumerate(lines):
        canvas.text((WIDTH / 2, 82 + 44 * number), line.upper(), size=18)
    return Card(canvas=canvas, shows=f"a {colour} card {title}: {'; '.join(lines)}")


def bars(title: str, values: dict[str, int], colour: str = "blue") -> Card:
    """A bar chart; each bar has its label below and its value above it."""
    canvas = Canvas(WIDTH, 300)
    canvas.text((WIDTH / 2, 26), title.upper(), size=20)
    step, top = (WIDTH - 40) / len(values), max(values.values())
    for number, (label, value) in enumerate(values.items()):
        middle, height = 20 + step * (number + 0.5), 170 * value / top
        canvas.box(middle - step * 0.3, 250 - height, step * 0.6, height, fill=COLOURS[colour])
        canvas.text((middle, 234 - height), str(value), size=15)
        canvas.text((middle, 274), label.upper(), size=15)
    told = "; ".join(f"{label} {value}" for label, value in values.items())
    return Card(canvas=canvas, shows=f"a bar chart {title}: {told}")


def sign(shape: str, colour: str, word: str) -> Card:
    """A large shape with a word below it, as on a door or a badge."""
    canvas = Canvas(260, 260)
    canvas.shape(shape, (130, 110), 74, fill=COLOURS[colour])
    canvas.text((130, 226), word.upper(), size=22)
    return Card(canvas=canvas, shows=f"a {colour} {shape} with the word {word}")
