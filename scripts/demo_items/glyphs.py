"""Letters and digits as strokes: a picture then depends neither on a font nor on the version of a font renderer."""

from __future__ import annotations

import math

Point = tuple[float, float]
Stroke = tuple[Point, ...]

GLYPH_WIDTH = 4.0
"""Units; every glyph lies in [0, 4] x [0, 6], y downwards."""
GLYPH_HEIGHT = 6.0
"""Units."""


def _arc(cx: float, cy: float, rx: float, ry: float, start: float, end: float) -> Stroke:
    """Points of an ellipse's arc; degrees, 0 to the right, growing clockwise on the screen."""
    n = max(4, round(abs(end - start) / 8))
    angles = (math.radians(start + (end - start) * i / n) for i in range(n + 1))
    return tuple((cx + rx * math.cos(a), cy + ry * math.sin(a)) for a in angles)


def _digits() -> dict[str, tuple[Stroke, ...]]:
    return {
        "0": (_arc(2, 3, 1.75, 3, 0, 360),),
        "1": (((0.7, 1.3), (2.2, 0), (2.2, 6)),),
        "2": ((*_arc(2, 1.7, 1.7, 1.7, 195, 390), (0.2, 6), (3.8, 6)),),
        "3": (_arc(1.9, 1.5, 1.6, 1.5, 205, 450), _arc(1.9, 4.45, 1.8, 1.55, 270, 515)),
        "4": (((3.0, 6), (3.0, 0), (0.1, 4.2), (4, 4.2)),),
        "5": (((3.5, 0), (0.7, 0), (0.4, 2.7)), ((0.4, 2.7), *_arc(1.9, 4.05, 1.8, 1.95, 222, 510))),
        "6": (_arc(2, 4.2, 1.75, 1.8, 0, 360), ((0.25, 4.2), *_arc(2.4, 2.9, 2.15, 2.9, 170, 315))),
        "7": (((0.2, 0), (3.8, 0), (1.5, 6)),),
        "8": (_arc(2, 1.5, 1.45, 1.5, 0, 360), _arc(2, 4.5, 1.75, 1.5, 0, 360)),
        "9": (_arc(2, 1.8, 1.75, 1.8, 0, 360), ((3.75, 1.8), *_arc(1.6, 3.1, 2.15, 2.9, -10, 135))),
    }


def _letters() -> dict[str, tuple[Stroke, ...]]:
    bowl = _arc(2.2, 1.6, 1.6, 1.6, -90, 90)
    return {
        "A": (((0, 6), (2, 0), (4, 6)), ((0.75, 4.0), (3.25, 4.0))),
        "B": (
            ((2.1, 0), (0.4, 0), (0.4, 6), (2.2, 6)),
            _arc(2.1, 1.45, 1.4, 1.45, -90, 90),
            ((0.4, 2.9), (2.2, 2.9)),
            _arc(2.2, 4.45, 1.6, 1.55, -90, 90),
        ),
        "C": (_arc(2.2, 3, 2, 3, 310, 50),),
        "D": (((1.6, 0), (0.4, 0), (0.4, 6), (1.6, 6)), _arc(1.6, 3, 2.2, 3, -90, 90)),
        "P": (((0.4, 6), (0.4, 0), (2.2, 0)), bowl, ((2.2, 3.2), (0.4, 3.2))),
        "Q": (_arc(2, 3, 2, 3, 0, 360), ((2.4, 4.4), (3.9, 6.2))),
        "R": (((0.4, 6), (0.4, 0), (2.2, 0)), bowl, ((2.2, 3.2), (0.4, 3.2)), ((2.0, 3.2), (3.8, 6))),
        "S": (_arc(2, 1.55, 1.65, 1.55, 325, 90), _arc(2, 4.5, 1.75, 1.5, -90, 150)),
        "T": (((0, 0), (4, 0)), ((2, 0), (2, 6))),
        "U": (((0.3, 0), (0.3, 4.2), *_arc(2, 4.2, 1.7, 1.8, 180, 0), (3.7, 0)),),
        "V": (((0, 0), (2, 6), (4, 0)),),
        "W": (((-0.3, 0), (0.9, 6), (2, 1.5), (3.1, 6), (4.3, 0)),),
    }


def _signs() -> dict[str, tuple[Stroke, ...]]:
    return {
        "?": ((*_arc(2, 1.6, 1.6, 1.6, 190, 405), (2, 3.6), (2, 4.2)), ((2, 5.9), (2, 6))),
        "+": (((2, 1.2), (2, 5)), ((0.1, 3.1), (3.9, 3.1))),
    }


def glyph_strokes(character: str) -> tuple[Stroke, ...]:
    """The strokes of one character.

    Raises:
        KeyError: The character has no strokes here; there are digits, A-D, P-W, `?` and `+`.
    """
    return (_digits() | _letters() | _signs())[character]
