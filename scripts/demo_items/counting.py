"""Counting with a condition: shapes inside a region, in two regions, of a kind; crossings of lines."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from demo_items.canvas import BLUE, COLOURS, INK, ORANGE, WHITE, Canvas
from demo_items.glyphs import Point
from demo_items.puzzle import Builder, Puzzle, number_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One shape of the picture."""

    shape: str
    fill: str
    radius: float
    """Pixels."""
    x: float
    y: float


def scattered(
    rng: random.Random, count: int, *, gap: float, allowed: Callable[[Point], bool], side: int = 360
) -> list[Point]:
    """Points that `allowed` accepts, at least `gap` pixels apart and 24 from the picture's edge."""
    points: list[Point] = []
    while len(points) < count:
        point = (float(rng.randrange(24, side - 24)), float(rng.randrange(24, side - 24)))
        if allowed(point) and all(math.dist(point, other) >= gap for other in points):
            points.append(point)
    return points


def from_box(point: Point, left: float, top: float, right: float, bottom: float) -> float:
    """How deep the point lies in the box, in pixels; negative outside."""
    return min(point[0] - left, right - point[0], point[1] - top, bottom - point[1])


def inside_box(counted: str, plural: str) -> Builder:
    """Circles, squares and triangles; those of one kind in a large frame are counted."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        left, top = rng.randrange(56, 90), rng.randrange(56, 90)
        frame = (left, top, left + 212, top + 212)
        points = scattered(rng, 26, gap=40, allowed=lambda p: abs(from_box(p, *frame)) > 19)
        shapes = [("circle", "square", "triangle")[i % 3] for i in range(26)]
        rng.shuffle(shapes)
        things = [Thing(shape=s, fill="blue", radius=12, x=x, y=y) for s, (x, y) in zip(shapes, points, strict=True)]
        canvas = Canvas(360, 360)
        canvas.box(frame[0], frame[1], 212, 212, line=4)
        for thing in things:
            canvas.shape(thing.shape, (thing.x, thing.y), thing.radius, fill=BLUE, width=2)
        of_kind = [t for t in things if t.shape == counted]
        right = sum(from_box((t.x, t.y), *frame) > 0 for t in of_kind)
        question = f"How many {plural} are inside the large frame?"
        options = number_options(right, [len(of_kind), len(of_kind) - right, right + 1], letter)
        params = {"kind": "inside_box", "counted": counted, "frame": frame, "things": [asdict(t) for t in things]}
        return Puzzle(canvas=canvas, question=question, options=options, params=params)

    return build


def two_regions(wanted: Sequence[tuple[bool, bool]], words: str) -> Builder:
    """Dots in a circle, in a square, in both or in neither; `wanted` says (in circle, in square) of those counted."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        centre, radius, box = (138.0, 150.0), 106.0, (142.0, 136.0, 334.0, 328.0)

        def where(p: Point) -> tuple[bool, bool]:
            return math.dist(p, centre) < radius, from_box(p, *box) > 0

        def clear(p: Point) -> bool:
            return abs(math.dist(p, centre) - radius) > 13 and abs(from_box(p, *box)) > 13

        counts: dict[tuple[bool, bool], int] = {}
        points: list[Point] = []
        regions = [(True, True), (True, False), (False, True), (False, False)]
        while len(set(counts.values())) < 4 or min(counts.values()) < 3:
            points = scattered(rng, 22, gap=24, allowed=clear)
            counts = {region: sum(where(p) == region for p in points) for region in regions}
        canvas = Canvas(360, 360)
        canvas.disc(centre, radius, outline=BLUE, width=4)
        canvas.polygon([(142, 136), (334, 136), (334, 328), (142, 328)], outline=ORANGE, width=4)
        for point in points:
            canvas.disc(point, 6.5, fill=INK)
        right = sum(counts[w] for w in wanted)
        likely = [*rng.sample([counts[w] for w in regions], 4), right + 1, right - 1]
        params = {
            "kind": "two_regions",
            "circle": [*centre, radius],
            "box": box,
            "points": points,
            "wanted": [list(w) for w in wanted],
        }
        options = number_options(right, likely, letter)
        return Puzzle(canvas=canvas, question=f"How many dots are {words}?", options=options, params=params)

    return build


def of_kind(condition: dict[str, str], question: str) -> Builder:
    """A grid of shapes in three colours and two sizes; `condition` maps attribute to the value, `!value` for not it."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        canvas, things = Canvas(400, 330), []
        for i in range(20):
            shape, fill = rng.choice(["circle", "square", "triangle"]), rng.choice(sorted(COLOURS))
            x, y = 40 + i % 5 * 80.0, 42 + i // 5 * 82.0
            things.append(Thing(shape=shape, fill=fill, radius=rng.choice([13, 27]), x=x, y=y))
        for thing in things:
            canvas.shape(thing.shape, (thing.x, thing.y), thing.radius, fill=COLOURS[thing.fill])
        partial = [sum(holds(t, {k: v}) for t in things) for k, v in condition.items()]
        right = sum(holds(t, condition) for t in things)
        options = number_options(right, [*partial, right + 1, right - 1], letter)
        params = {"kind": "of_kind", "condition": condition, "things": [asdict(t) for t in things]}
        return Puzzle(canvas=canvas, question=question, options=options, params=params)

    return build


def holds(thing: Thing, condition: dict[str, str]) -> bool:
    """Whether the thing has every value of the condition."""
    values = {"shape": thing.shape, "fill": thing.fill, "size": "large" if thing.radius > 20 else "small"}
    return all((values[k] != v[1:]) if v.startswith("!") else (values[k] == v) for k, v in condition.items())


def crossing(a: tuple[Point, Point], b: tuple[Point, Point]) -> Point | None:
    """The point where two segments cross, None where they do not."""
    (x1, y1), (x2, y2) = a
    (x3, y3), (x4, y4) = b
    down = (x1 - x2) * (y3 - y4) - (y1 - y2) * (x3 - x4)
    if down == 0:
        return None
    t = ((x1 - x3) * (y3 - y4) - (y1 - y3) * (x3 - x4)) / down
    u = ((x1 - x3) * (y1 - y2) - (y1 - y3) * (x1 - x2)) / down
    return (x1 + t * (x2 - x1), y1 + t * (y2 - y1)) if 0 < t < 1 and 0 < u < 1 else None


def from_segment(point: Point, segment: tuple[Point, Point]) -> float:
    """Distance of a point from a segment, in pixels."""
    (x1, y1), (x2, y2) = segment
    along = ((point[0] - x1) * (x2 - x1) + (point[1] - y1) * (y2 - y1)) / math.dist(*segment) ** 2
    t = max(0.0, min(1.0, along))
    return math.dist(point, (x1 + t * (x2 - x1), y1 + t * (y2 - y1)))


def angle_between(a: tuple[Point, Point], b: tuple[Point, Point]) -> float:
    """Degrees in [0, 90]."""
    first, second = (math.atan2(s[1][1] - s[0][1], s[1][0] - s[0][0]) for s in (a, b))
    apart = abs(math.degrees(first - second)) % 180
    return min(apart, 180 - apart)


def clear_crossings(segments: Sequence[tuple[Point, Point]]) -> list[Point] | None:
    """All crossings; None where one is hard to see: flat angles, two close together, ends close to a line."""
    found: list[Point] = []
    for a, b in itertools.combinations(segments, 2):
        ends = [from_segment(p, b) for p in a] + [from_segment(p, a) for p in b]
        point = crossing(a, b)
        if min(ends) < 20 or (point is not None and angle_between(a, b) < 30):
            return None
        if point is not None:
            found.append(point)
    close = any(math.dist(p, q) < 26 for p, q in itertools.combinations(found, 2))
    return None if close else found


def clear_segments(rng: random.Random, n_lines: int) -> tuple[list[tuple[Point, Point]], int]:
    """Segments longer than 140 pixels whose crossings are easy to see, and the number of crossings."""
    segments: list[tuple[Point, Point]] = []
    n_crossings = 0
    while len(segments) < n_lines:
        x1, y1, x2, y2 = (float(rng.randrange(20, 341)) for _ in range(4))
        tried = [*segments, ((x1, y1), (x2, y2))]
        found = clear_crossings(tried) if math.dist((x1, y1), (x2, y2)) > 140 else None
        if found is not None:
            segments, n_crossings = tried, len(found)
    return segments, n_crossings


def crossings(n_lines: int, count: int) -> Builder:
    """Straight lines with `count` crossings."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        segments, found = clear_segments(rng, n_lines)
        while found != count:
            segments, found = clear_segments(rng, n_lines)
        canvas = Canvas(360, 360)
        for segment in segments:
            canvas.line(segment, width=4, colour=BLUE)
        for point in itertools.chain.from_iterable(segments):
            canvas.disc(point, 5, fill=WHITE, outline=INK, width=2)
        question = "Each line runs straight from one ring to another. At how many points do two lines cross?"
        options = number_options(count, rng.sample([count - 1, count + 1, count + 2, count - 2], 3), letter)
        return Puzzle(
            canvas=canvas, question=question, options=options, params={"kind": "crossings", "segments": segments}
        )

    return build


BUILDERS: tuple[Builder, ...] = (
    inside_box("circle", "circles"),
    inside_box("triangle", "triangles"),
    inside_box("square", "small squares"),
    two_regions([(True, False)], "inside the blue circle but outside the orange square"),
    two_regions([(True, True)], "inside both the blue circle and the orange square"),
    of_kind({"fill": "blue", "shape": "!circle"}, "How many blue shapes are not circles?"),
    of_kind({"shape": "triangle", "fill": "!white"}, "How many triangles are not white?"),
    of_kind({"size": "large", "fill": "orange"}, "How many large orange shapes are there?"),
    crossings(5, 5),
    crossings(6, 8),
)
