"""Questions about charts and diagrams of several subjects, in the manner of MMMU-Pro; our own."""

from __future__ import annotations

import itertools
from fractions import Fraction

from demo_items.canvas import BLUE, GREY, INK, ORANGE, PALE, WHITE, Canvas
from demo_items.glyphs import Point
from demo_items.puzzle import number_options

from demo_levels.item import Builder, Item, checked, text_options


def growth(letter: str) -> Item:
    """Percent of growth, read off a bar chart."""
    values = {"Q1": 40, "Q2": 60, "Q3": 50, "Q4": 70}
    canvas = Canvas(360, 250)
    for tick in range(0, 81, 20):
        canvas.line([(50, 210 - 2.3 * tick), (345, 210 - 2.3 * tick)], width=1, colour=GREY)
        canvas.text((28, 210 - 2.3 * tick), str(tick), size=13)
    for place, (name, value) in enumerate(values.items()):
        left = 70 + 70 * place
        canvas.box(left, 210 - 2.3 * value, 44, 2.3 * value, fill=BLUE, line=1.5)
        canvas.text((left + 22, 228), name, size=14)
    first, third = values["Q1"], values["Q3"]
    percent = checked(100 * (third - first) // first, 100 * Fraction(third, first) - 100, "growth")
    return Item(
        question="The chart shows a company's revenue in millions by quarter. By how many percent "
        "was the revenue of Q3 "
        "above that of Q1?",
        options=number_options(int(percent), [10, 20, 50, 125], letter),
        answer=letter,
        hint="Growth in percent is measured against the value at the beginning.",
        explanation="Read both bars off the scale: Q1 is 40 and Q3 is 50. Take the difference, and "
        "divide it by the value "
        "of Q1, not by that of Q3. Then multiply by 100.",
        request="name the two values, the difference and what it is divided by.",
        canvas=canvas,
    )


def resistors(letter: str) -> Item:
    """Two resistors side by side, followed by a third."""
    side_by_side, after = (6, 3), 4
    canvas = Canvas(400, 200)
    canvas.line([(20, 100), (80, 100)])
    for y, value in zip((55, 145), side_by_side, strict=True):
        canvas.line([(80, 100), (80, y), (115, y)])
        _resistor(canvas, (150, y), str(value))
        canvas.line([(185, y), (220, y), (220, 100)])
    canvas.line([(220, 100), (255, 100)])
    _resistor(canvas, (290, 100), str(after))
    canvas.line([(325, 100), (380, 100)])
    one, other = side_by_side
    whole = Fraction(one * other, one + other) + after
    right = int(checked(whole, 1 / sum(Fraction(1, value) for value in side_by_side) + after, "resistance"))
    return Item(
        question="The numbers are resistances in ohms. What is the resistance of the whole circuit, in ohms?",
        options=number_options(right, [one + other + after, one + after, after + 1], letter),
        answer=letter,
        hint="Replace the two resistors that stand side by side by a single one first.",
        explanation="For two resistors side by side, 1/R = 1/6 + 1/3, which gives the one that "
        "replaces them. It is in line "
        "with the third resistor, and resistances in line add up.",
        request="calculate the part that is side by side, then the whole.",
        canvas=canvas,
    )


def _resistor(canvas: Canvas, centre: Point, label: str) -> None:
    canvas.box(centre[0] - 35, centre[1] - 18, 70, 36, fill=PALE, line=2)
    canvas.text(centre, label, size=18)


TREE = {"M": ("H", "T"), "H": ("E", "K"), "T": ("P", "W"), "K": ("J", "")}
"""Node -> left and right child, '' where there is none."""


def walked(node: str, order: str) -> str:
    """The nodes below and with `node`; order = where the node itself comes: pre, in or post."""
    if not node:
        return ""
    left, right = (walked(child, order) for child in TREE.get(node, ("", "")))
    return {"pre": node + left + right, "in": left + node + right, "post": left + right + node}[order]


def traversal(letter: str) -> Item:
    """The order in which a binary tree is walked through."""
    places = {"M": (200, 34), "H": (110, 92), "T": (290, 92), "E": (60, 150), "K": (160, 150), "P": (240, 150)}
    places |= {"W": (340, 150), "J": (125, 206)}
    canvas = Canvas(400, 236)
    for node, children in TREE.items():
        for child in filter(None, children):
            canvas.line([places[node], places[child]], width=2.5)
    for node, place in places.items():
        canvas.disc(place, 19, fill=PALE, outline=INK, width=2)
        canvas.text(place, node, size=17)
    levels = "".join(sorted(places, key=lambda node: (places[node][1], places[node][0])))
    stack: list[str] = []
    node, again = "M", ""
    while stack or node:
        while node:
            stack.append(node)
            node = TREE.get(node, ("", ""))[0]
        last = stack.pop()
        again += last
        node = TREE.get(last, ("", ""))[1]
    right = checked(walked("M", "in"), again, "in-order walk")
    wrong = [" ".join(other) for other in (walked("M", "pre"), walked("M", "post"), levels)]
    return Item(
        question="In which order does an in-order traversal visit the nodes of this binary tree?",
        options=text_options(" ".join(right), wrong, letter),
        answer=letter,
        hint="In an in-order traversal a node comes after everything on its left.",
        explanation="Start at the root, and go left as far as you can: the last node there is "
        "visited first. At each node: "
        "first its whole left part, then the node itself, then its whole right part. The root stands in the middle.",
        request="go through the left part, the root and the right part.",
        canvas=canvas,
    )


def equilibrium(letter: str) -> Item:
    """Where supply meets demand."""
    canvas, unit = Canvas(360, 320), 24.0

    def at(amount: float, price: float) -> Point:
        return 50 + unit * amount, 280 - unit * price

    for tick in range(0, 12, 2):
        canvas.line([at(0, tick), at(11, tick)], width=1, colour=PALE)
        canvas.line([at(tick, 0), at(tick, 11)], width=1, colour=PALE)
        canvas.text((30, at(0, tick)[1]), str(tick), size=13)
        canvas.text((at(tick, 0)[0], 298), str(tick), size=13)
    canvas.line([at(0, 11), at(0, 0), at(11, 0)], width=2)
    canvas.line([at(1, 10), at(10, 1)], colour=ORANGE, width=4)
    canvas.line([at(1, 4), at(8, 11)], colour=BLUE, width=4)
    canvas.text((at(10, 2)[0], at(10, 2.2)[1]), "D", size=18)
    canvas.text((at(8.6, 10.6)[0], at(8.6, 10.6)[1]), "S", size=18)
    found = [(q, 11 - q) for q in range(1, 11) if 11 - q == q + 3]
    amount, price = found[0]
    right = int(checked(price, Fraction(11 + 3, 2), "price"))
    return Item(
        question="The figure shows demand (D, orange) and supply (S, blue): the amount to the right, "
        "the price upwards. At "
        "which price are they in balance?",
        options=number_options(right, [amount, 11, 3], letter),
        answer=letter,
        hint="They are in balance where the two lines meet.",
        explanation=f"The lines meet at the amount {amount}. From there go straight to the left, to "
        "the axis of the price: "
        "the point lies between 6 and 8. The amount itself is not what is asked for.",
        request="say what holds at the point where the lines meet, and how its price is read off.",
        canvas=canvas,
    )


def lever(letter: str) -> Item:
    """What balances a lever."""
    load, arm, other_arm = 6, 2, 3
    unit, support, left = 58.0, 176.0, 176.0 - 58 * arm
    right_end = support + unit * other_arm
    canvas = Canvas(400, 190)
    canvas.line([(left, 110), (right_end, 110)], width=6)
    canvas.polygon([(support, 114), (support - 20, 160), (support + 20, 160)], fill=ORANGE)
    for place, label, size in ((left, f"{load} KG", 14.0), (right_end, "?", 24.0)):
        canvas.box(place - 32, 60, 64, 46, fill=PALE if label != "?" else WHITE)
        canvas.text((place, 83), label, size=size)
    for start, end, label in ((left, support - 24, f"{arm} M"), (support + 24, right_end, f"{other_arm} M")):
        canvas.line([(start, 132), (end, 132)], width=1.5, colour=GREY)
        canvas.text(((start + end) / 2, 150), label, size=14)
    (mass,) = [kg for kg in range(1, 50) if kg * other_arm == load * arm]
    right = int(checked(mass, Fraction(load * arm, other_arm), "mass"))
    return Item(
        question="The beam has no mass and rests on the orange support. Which mass, in kg, belongs "
        "at the question mark so "
        "that it is in balance?",
        options=number_options(right, [6, 9, 12], letter),
        answer=letter,
        hint="What counts is the mass times its distance from the support.",
        explanation="On the left the product is 6 kg times 2 m. On the right it has to be the same, "
        "at a distance of 3 m: "
        "the longer the arm, the smaller the mass.",
        request="write down the products of both sides.",
        canvas=canvas,
    )


def gates(letter: str) -> Item:
    """Which inputs switch the output on."""
    canvas = Canvas(400, 190)
    for y, name in ((40, "P"), (80, "Q"), (145, "R")):
        canvas.text((22, y), name, size=18)
    canvas.line([(40, 40), (90, 40)])
    canvas.line([(40, 80), (90, 80)])
    canvas.line([(40, 145), (90, 145)])
    _gate(canvas, (125, 60), "AND")
    _gate(canvas, (125, 145), "NOT")
    canvas.line([(160, 60), (215, 60), (215, 85), (240, 85)])
    canvas.line([(160, 145), (215, 145), (215, 120), (240, 120)])
    _gate(canvas, (275, 102), "AND")
    canvas.line([(310, 102), (350, 102)])
    canvas.text((372, 102), "X", size=18)
    rows = [row for row in itertools.product((0, 1), repeat=3) if (row[0] & row[1]) & (1 - row[2])]
    by_words = [row for row in itertools.product((0, 1), repeat=3) if row[:2] == (1, 1) and row[2] == 0]
    checked(rows, by_words, "the row of the table")
    right, wrong = _shown(rows[0]), [_shown(row) for row in ((1, 1, 1), (1, 0, 0), (0, 1, 1))]
    return Item(
        question="For which inputs is the output X of this circuit 1?",
        options=text_options(right, wrong, letter),
        answer=letter,
        hint="Go backwards from X: what must the last gate get?",
        explanation="The last gate is an AND: it gives 1 only where both of its inputs are 1. So the "
        "first AND has to give 1, "
        "and the NOT as well. Work out what each of these two needs.",
        request="say what each of the three gates gives.",
        canvas=canvas,
    )


def _gate(canvas: Canvas, centre: Point, name: str) -> None:
    canvas.box(centre[0] - 35, centre[1] - 30, 70, 60, fill=PALE, line=2)
    canvas.text(centre, name, size=16)


def _shown(row: tuple[int, ...]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in zip("PQR", row, strict=True))


BUILDERS: tuple[Builder, ...] = (growth, resistors, traversal, equilibrium, lever, gates)
