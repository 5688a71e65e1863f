"""A picture to draw on: everything is a filled polygon, drawn large and then averaged down to smooth edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from PIL import Image, ImageDraw

from demo_items.glyphs import GLYPH_HEIGHT, GLYPH_WIDTH, Point, glyph_strokes

SCALE = 3
"""Pixels drawn per pixel kept, along each axis."""

Colour = tuple[int, int, int]
WHITE: Colour = (255, 255, 255)
INK: Colour = (24, 24, 28)
GREY: Colour = (150, 150, 156)
PALE: Colour = (226, 228, 232)
# Blue and orange of Okabe and Ito's palette: they differ for every kind of colour vision, also in lightness.
BLUE: Colour = (0, 114, 178)
ORANGE: Colour = (240, 165, 0)
COLOURS: dict[str, Colour] = {"white": WHITE, "blue": BLUE, "orange": ORANGE}

SIDES = {"triangle": 3, "square": 4, "pentagon": 5, "hexagon": 6}


def around(centre: Point, radius: float, degrees: float) -> Point:
    """The point at `radius` pixels from `centre`; 0 degrees is up, growing clockwise."""
    angle = math.radians(degrees)
    return centre[0] + radius * math.sin(angle), centre[1] - radius * math.cos(angle)


def shape_points(shape: str, centre: Point, radius: float) -> list[Point]:
    """The corners of a circle (as a polygon) or of a regular polygon that stands on a side; pixels."""
    if shape == "circle":
        return [around(centre, radius, 5 * i) for i in range(72)]
    n = SIDES[shape]
    # Small numbers of corners look smaller at the same radius; the triangle's middle is lifted to look centred.
    grown = radius * {3: 1.22, 4: 1.2, 5: 1.1, 6: 1.06}[n]
    middle = (centre[0], centre[1] + (0.18 * radius if n == 3 else 0))
    turn = 0 if n % 2 else 180 / n
    return [around(middle, grown, turn + 360 * i / n) for i in range(n)]


def _pixel(value: float) -> int:
    """A coordinate on the large picture; rounded twice, so that a last bit of sin or cos cannot move a half pixel."""
    return round(round(value * SCALE, 6))


class Canvas:
    """A white picture of `width` x `height` pixels; all coordinates are pixels from the upper left corner."""

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), WHITE)
        self._draw = ImageDraw.Draw(self._image)
        self.width = width
        self.height = height

    def polygon(
        self, points: Sequence[Point], *, fill: Colour | None = None, outline: Colour | None = INK, width: float = 3
    ) -> None:
        """A closed polygon, filled, outlined, or both."""
        if fill is not None:
            self._draw.polygon([(_pixel(x), _pixel(y)) for x, y in points], fill=fill)
        if outline is not None:
            self.line([*points, points[0]], width=width, colour=outline)

    def line(self, points: Sequence[Point], *, width: float = 3, colour: Colour = INK) -> None:
        """A line through all points, with round ends and joints."""
        half = width / 2
        for start, end in itertools.pairwise(points):
            length = math.dist(start, end)
            if length > 0:
                dx, dy = (end[0] - start[0]) / length * half, (end[1] - start[1]) / length * half
                corners = [
                    (start[0] - dy, start[1] + dx),
                    (end[0] - dy, end[1] + dx),
                    (end[0] + dy, end[1] - dx),
                    (start[0] + dy, start[1] - dx),
                ]
                self.polygon(corners, fill=colour, outline=None)
        for point in points:
            self.disc(point, half, fill=colour)

    def dashed(self, start: Point, end: Point, *, width: float = 2.5, colour: Colour = INK) -> None:
        """A dashed line; dashes of 8 pixels."""
        n = max(1, round(math.dist(start, end) / 14))
        dx, dy = (end[0] - start[0]) / n, (end[1] - start[1]) / n
        for i in range(n):
            at = (start[0] + dx * (i + 0.2), start[1] + dy * (i + 0.2))
            self.line([at, (at[0] + dx * 0.55, at[1] + dy * 0.55)], width=width, colour=colour)

    def arrow(self, start: Point, end: Point, *, width: float = 3, colour: Colour = INK, head: float = 13) -> None:
        """A straight arrow whose tip is at `end`."""
        length = math.dist(start, end)
        ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        base = (end[0] - ux * head, end[1] - uy * head)
        self.line([start, base], width=width, colour=colour)
        side = head * 0.5
        tip = [end, (base[0] - uy * side, base[1] + ux * side), (base[0] + uy * side, base[1] - ux * side)]
        # The outline rounds the head, and hides the corner pixels that Pillow 11.0 fills otherwise than later ones.
        self.polygon(tip, fill=colour, outline=colour, width=1.5)

    def disc(
        self,
        centre: Point,
        radius: float,
        *,
        fill: Colour | None = None,
        outline: Colour | None = None,
        width: float = 3,
    ) -> None:
        """A circle, filled, outlined, or both."""
        n = max(12, min(96, round(radius * SCALE)))
        points = [around(centre, radius, 360 * i / n) for i in range(n)]
        self.polygon(points, fill=fill, outline=outline, width=width)

    def sector(
        self, centre: Point, radius: float, start: float, end: float, *, fill: Colour, width: float = 2.5
    ) -> None:
        """A slice of a disc from `start` to `end` degrees (0 is up, clockwise), outlined."""
        n = max(2, round((end - start) / 5))
        rim = [around(centre, radius, start + (end - start) * i / n) for i in range(n + 1)]
        self.polygon([centre, *rim], fill=fill, width=width)

    def box(
        self, left: float, top: float, width: float, height: float, *, fill: Colour | None = None, line: float = 2.5
    ) -> None:
        """An upright rectangle with an outline of `line` pixels."""
        corners = [(left, top), (left + width, top), (left + width, top + height), (left, top + height)]
        self.polygon(corners, fill=fill, width=line)

    def shape(self, shape: str, centre: Point, radius: float, *, fill: Colour, width: float = 3) -> None:
        """A circle or a regular polygon with an outline."""
        self.polygon(shape_points(shape, centre, radius), fill=fill, width=width)

    def text(self, centre: Point, text: str, *, size: float = 18, colour: Colour = INK, weight: float = 0.14) -> None:
        """Letters and digits, `size` pixels high, strokes `weight` x size wide, centred on `centre`."""
        unit = size / GLYPH_HEIGHT
        step = (GLYPH_WIDTH + 1.6) * unit
        left = centre[0] - (len(text) * step - 1.6 * unit) / 2
        top = centre[1] - size / 2
        for i, character in enumerate(text):
            for stroke in glyph_strokes(character):
                points = [(left + i * step + x * unit, top + y * unit) for x, y in stroke]
                self.line(points, width=size * weight, colour=colour)

    def finished(self) -> Image.Image:
        """The picture at its final size; as a palette picture, without loss, where it has at most 256 colours."""
        small = self._image.reduce(SCALE)
        found = small.getcolors(maxcolors=256)
        if found is None:
            return small
        # getcolors types a pixel loosely; an RGB picture's are triples.
        colours = sorted(colour for _, colour in found if isinstance(colour, tuple))
        numbers = {bytes(colour): i for i, colour in enumerate(colours)}
        raw = small.tobytes()
        flat = Image.frombytes("P", small.size, bytes(numbers[raw[i : i + 3]] for i in range(0, len(raw), 3)))
        flat.putpalette([value for colour in colours for value in colour])
        return flat
