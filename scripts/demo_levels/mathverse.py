"""Geometry with a figure, in the manner of MathVerse; our own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from demo_items.canvas import BLUE, GREY, INK, PALE, Canvas, around
from demo_items.glyphs import Point
from demo_items.puzzle import number_options

from demo_levels.item import Builder, Item, checked


def angle_at(corner: Point, one: Point, other: Point) -> int:
    """The angle between two sides, in whole degrees, measured in the figure itself."""
    first, second = (math.atan2(point[1] - corner[1], point[0] - corner[0]) for point in (one, other))
    degrees = abs(math.degrees(first - second)) % 360
    return round(min(degrees, 360 - degrees))


def named(canvas: Canvas, points: dict[str, Point], middle: Point) -> None:
    """Corners with their letters outside."""
    for name, point in points.items():
        length = math.dist(point, middle)
        at = (point[0] + 18 * (point[0] - middle[0]) / length, point[1] + 18 * (point[1] - middle[1]) / length)
        canvas.text(at, name, size=16)


def inside(corner: Point, others: Sequence[Point], distance: float) -> Point:
    """A place within a corner, for the angle's number."""
    dx = sum((x - corner[0]) / math.dist(corner, (x, y)) for x, y in others)
    dy = sum((y - corner[1]) / math.dist(corner, (x, y)) for x, y in others)
    length = math.hypot(dx, dy)
    return corner[0] + distance * dx / length, corner[1] + distance * dy / length


def third_angle(letter: str) -> Item:
    """The third angle of a triangle."""
    low, high = 48, 67
    base = 280.0
    foot = base * math.tan(math.radians(high)) / (math.tan(math.radians(low)) + math.tan(math.radians(high)))
    height = foot * math.tan(math.radians(low))
    points = {"A": (50.0, 270.0), "B": (50 + base, 270.0), "C": (50 + foot, 270 - height)}
    a, b, c = points.values()
    canvas = Canvas(380, 300)
    canvas.polygon([a, b, c], fill=PALE)
    named(canvas, points, (50 + foot, 270 - height / 3))
    canvas.text(inside(a, (b, c), 48), str(low), size=15)
    canvas.text(inside(b, (a, c), 44), str(high), size=15)
    canvas.text(inside(c, (a, b), 46), "?", size=18)
    right = int(checked(180 - low - high, angle_at(c, a, b), "third angle"))
    return Item(
        question="The figure shows triangle ABC with angles in degrees. How large is the angle at C, in degrees?",
        options=number_options(right, [low, high, 75, 55], letter),
        answer=letter,
        hint="What do the three angles of a triangle add up to?",
        explanation=f"The angles at A and B are {low} and {high} degrees. Add them, and see what is "
        "missing to 180 degrees.",
        request="name the rule about the angles of a triangle, and calculate with it.",
        canvas=canvas,
    )


def hypotenuse(letter: str) -> Item:
    """The longest side of a right triangle; a free answer."""
    legs = (9, 12)
    a, b, c = (60.0, 250.0), (60.0 + 20 * legs[1], 250.0), (60.0, 250.0 - 20 * legs[0])
    canvas = Canvas(360, 300)
    canvas.polygon([a, b, c], fill=PALE)
    canvas.line([(a[0], a[1] - 18), (a[0] + 18, a[1] - 18), (a[0] + 18, a[1])], width=2)
    canvas.text((36, 160), str(legs[0]), size=18)
    canvas.text((180, 274), str(legs[1]), size=18)
    canvas.text((200, 140), "X", size=18, colour=BLUE)
    right = checked(math.isqrt(sum(leg**2 for leg in legs)), round(math.dist(b, c) / 20), "hypotenuse")
    return Item(
        question="The figure shows a right triangle. How long is the side x?",
        answer=right,
        hint="The side x lies opposite the right angle.",
        explanation=f"In a right triangle the square of the longest side is the sum of the squares of the two others: "
        f"{legs[0]} times {legs[0]} plus {legs[1]} times {legs[1]}. Then take the root.",
        request="name the theorem, and calculate the squares, their sum and its root.",
        canvas=canvas,
    )


def inscribed(letter: str) -> Item:
    """An angle at the rim of a circle, from that at its middle."""
    central, middle, radius = 104, (180.0, 165.0), 120.0
    a, b = around(middle, radius, 180 - central / 2), around(middle, radius, 180 + central / 2)
    c = around(middle, radius, 12)
    canvas = Canvas(360, 320)
    canvas.disc(middle, radius, outline=INK)
    canvas.line([a, middle, b], colour=BLUE)
    canvas.line([a, c, b])
    canvas.disc(middle, 4, fill=INK)
    named(canvas, {"A": a, "B": b, "C": c}, middle)
    canvas.text((middle[0], middle[1] + 34), str(central), size=15, colour=BLUE)
    canvas.text(inside(c, (a, b), 48), "?", size=18)
    canvas.text((middle[0] + 16, middle[1] - 10), "M", size=15)
    right = int(checked(central // 2, angle_at(c, a, b), "angle at the rim"))
    return Item(
        question="M is the centre of the circle, and the blue angle at M is 104 degrees. How large "
        "is the angle at C, in "
        "degrees?",
        options=number_options(right, [central, 76, 38, 42], letter),
        answer=letter,
        hint="Both angles stand over the same arc AB.",
        explanation="An angle at the rim of a circle is half as large as the angle at the centre "
        "over the same arc. Here the "
        "one at the centre is given.",
        request="name the theorem about angles over the same arc, and apply it.",
        canvas=canvas,
    )


def l_shape(letter: str) -> Item:
    """The area of an L; a free answer."""
    width, height, notch_width, notch_height = 9, 7, 5, 4
    unit, left, top = 28.0, 60.0, 40.0
    corners = [(0, 0), (width - notch_width, 0), (width - notch_width, notch_height), (width, notch_height),
               (width, height), (0, height)]  # fmt: skip
    canvas = Canvas(370, 290)
    canvas.polygon([(left + unit * x, top + unit * y) for x, y in corners], fill=PALE)
    canvas.text((left - 24, top + unit * height / 2), str(height), size=18)
    canvas.text((left + unit * width / 2, top + unit * height + 24), str(width), size=18)
    canvas.text((left + unit * (width - notch_width) / 2, top - 22), str(width - notch_width), size=18)
    canvas.text(
        (left + unit * width + 22, top + unit * (height + notch_height) / 2), str(height - notch_height), size=18
    )
    twice = sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True))
    right = checked(width * height - notch_width * notch_height, abs(twice) // 2, "area")
    return Item(
        question="All angles of the figure are right angles; the numbers are lengths. How large is its area?",
        answer=right,
        hint="Cut the figure into two rectangles.",
        explanation=f"A cut straight down gives one rectangle of {width - notch_width} by {height} and one of "
        f"{notch_width} by {height - notch_height}; the {notch_width} is what is left of {width}. Add their areas.",
        request="say how the figure is cut, and calculate both parts.",
        canvas=canvas,
    )


def parallels(letter: str) -> Item:
    """An angle at the second of two parallel lines."""
    tilt = 62
    canvas = Canvas(380, 270)
    for y in (80, 190):
        canvas.line([(30, y), (350, y)])
    upper = (150 + 110 / math.tan(math.radians(tilt)), 80.0)
    lower, slope = (150.0, 190.0), math.tan(math.radians(tilt))
    canvas.line([(150 - 50 / slope, 240), (upper[0] + 50 / slope, 30)], colour=BLUE)
    canvas.text((upper[0] + 34, 62), str(tilt), size=16)
    canvas.text((lower[0] - 22, 172), "?", size=20)
    canvas.text((362, 66), "G", size=15, colour=GREY)
    canvas.text((362, 176), "H", size=15, colour=GREY)
    right = int(checked(180 - tilt, angle_at(lower, (30, 190), upper), "angle"))
    return Item(
        question="The lines G and H are parallel; the number is an angle in degrees. How large is "
        "the angle at the question "
        "mark, in degrees?",
        options=number_options(right, [tilt, 90 - tilt, 128, 108], letter),
        answer=letter,
        hint="First find the angle at H that is as large as the given one.",
        explanation=f"The blue line meets both parallel lines at the same angle, so {tilt} degrees "
        "are found at H too, to the "
        "right of the blue line. The angle that is asked for lies beside it, and both together are a straight line.",
        request="say which angles are equal, and which make a straight line together.",
        canvas=canvas,
    )


def isosceles(letter: str) -> Item:
    """The angle at the base of a triangle with two equal sides; a free answer."""
    top_angle, side = 44, 230.0
    top = (180.0, 30.0)
    left, right_corner = around(top, side, 180 + top_angle / 2), around(top, side, 180 - top_angle / 2)
    canvas = Canvas(360, 290)
    canvas.polygon([top, left, right_corner], fill=PALE)
    for corner in (left, right_corner):
        middle = ((top[0] + corner[0]) / 2, (top[1] + corner[1]) / 2)
        canvas.line([(middle[0] - 9, middle[1]), (middle[0] + 9, middle[1])], width=3, colour=BLUE)
    canvas.text((180, 84), str(top_angle), size=15)
    canvas.text(inside(left, (top, right_corner), 42), "?", size=18)
    right = checked((180 - top_angle) // 2, angle_at(left, top, right_corner), "angle at the base")
    return Item(
        question="The two marked sides of the triangle are equally long; the number is an angle in "
        "degrees. How large is the "
        "angle at the question mark, in degrees?",
        answer=right,
        hint="Two of the angles are equally large. Which?",
        explanation=f"The two angles at the base are equal. Together with the {top_angle} degrees at "
        "the top they make 180, so "
        "take the difference and share it between them.",
        request="say why two angles are equal, and calculate.",
        canvas=canvas,
    )


BUILDERS: tuple[Builder, ...] = (third_angle, hypotenuse, inscribed, l_shape, parallels, isosceles)
