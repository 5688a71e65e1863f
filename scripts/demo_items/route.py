"""Route: shortest ways, tangled lines, arrows to follow and a robot to steer."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence

from demo_items.canvas import BLUE, INK, ORANGE, PALE, WHITE, Canvas, around
from demo_items.glyphs import Point
from demo_items.puzzle import LETTERS, Builder, Puzzle, in_order, number_options

TOWNS: dict[str, Point] = {
    "P": (36, 160),
    "Q": (126, 46),
    "R": (126, 274),
    "S": (200, 160),
    "T": (274, 46),
    "U": (274, 274),
    "V": (364, 160),
}
# Letters from P on: A to D are the options' names.
ROADS = ("PQ", "PR", "PS", "QS", "RS", "QT", "RU", "ST", "SU", "SV", "TV", "UV")


def all_routes(lengths: dict[str, int], start: str, end: str) -> dict[str, int]:
    """Every route that visits no town twice, as its towns' letters, with its length."""

    def onward(route: str, length: int) -> Iterator[tuple[str, int]]:
        if route[-1] == end:
            yield route, length
            return
        for road, more in lengths.items():
            if route[-1] in road:
                following = road.replace(route[-1], "")
                if following not in route:
                    yield from onward(route + following, length + more)

    return dict(onward(start, 0))


def road_map(rng: random.Random) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """Lengths of roads with one shortest route of at least three roads, and all routes, the shortest first."""
    while True:
        lengths = {road: rng.randrange(2, 10) for road in ROADS}
        ranked = sorted((length, route) for route, length in all_routes(lengths, "P", "V").items())
        if len(ranked[0][1]) > 3 and ranked[1][0] > ranked[0][0] + 1:
            return lengths, ranked


def draw_map(lengths: dict[str, int]) -> Canvas:
    """Towns as rings with letters, roads with their lengths."""
    canvas = Canvas(400, 320)
    for road in lengths:
        canvas.line([TOWNS[road[0]], TOWNS[road[1]]], width=3)
    for road, length in lengths.items():
        (x1, y1), (x2, y2) = TOWNS[road[0]], TOWNS[road[1]]
        middle = ((x1 + x2) / 2, (y1 + y2) / 2)
        canvas.disc(middle, 14, fill=WHITE)
        canvas.text(middle, str(length), size=17)
    for town, point in TOWNS.items():
        canvas.disc(point, 19, fill=ORANGE if town in "PV" else PALE, outline=INK, width=2.5)
        canvas.text(point, town, size=17)
    return canvas


def shortest_length(rng: random.Random, letter: str) -> Puzzle:
    """How long is the shortest route?"""
    lengths, ranked = road_map(rng)
    question = (
        "The numbers are the lengths of the roads between towns. How long is the shortest route from town P to town V?"
    )
    likely = list(dict.fromkeys(length for length, _ in ranked[1:]))[:3]
    options = number_options(ranked[0][0], likely, letter)
    params = {"kind": "shortest_length", "roads": lengths}
    return Puzzle(canvas=draw_map(lengths), question=question, options=options, params=params)


def shortest_route(rng: random.Random, letter: str) -> Puzzle:
    """Which towns does the shortest route visit?"""
    lengths, ranked = road_map(rng)
    routes = ["-".join(route) for _, route in ranked[:4]]
    wrong = rng.sample(routes[1:], 3)
    question = (
        "The numbers are the lengths of the roads between towns. Which route from town P to town V is the shortest?"
    )
    options = tuple(in_order(routes[0], wrong, letter))
    params = {"kind": "shortest_route", "roads": lengths}
    return Puzzle(canvas=draw_map(lengths), question=question, options=options, params=params)


def draw_tangle(canvas: Canvas, swaps: Sequence[tuple[int, int]]) -> None:
    """Four lines from left to right that change lanes at each swap; at a crossing one visibly passes below."""
    lanes = [44.0, 116.0, 188.0, 260.0]
    left, step = 50.0, 300.0 / len(swaps)
    for i, swap in enumerate(swaps):
        x = left + i * step
        ways = [(lane, swap[1 - swap.index(lane)] if lane in swap else lane) for lane in range(4)]
        for start, end in sorted(ways, key=lambda way: way[0] != way[1]):
            points = []
            for k in range(25):
                eased = (1 - math.cos(math.pi * k / 24)) / 2
                points.append((x + step * k / 24, lanes[start] + (lanes[end] - lanes[start]) * eased))
            if start != end:
                canvas.line(points[5:-5], width=14, colour=WHITE)
            canvas.line(points, width=4, colour=BLUE)


def tangle(n_swaps: int) -> Builder:
    """Four lines change places; the one that leads to the wanted letter is asked for."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        pairs = list(itertools.combinations(range(4), 2))
        start, swaps = None, [pairs[0]]
        while start is None:
            swaps = [rng.choice(pairs)]
            while len(swaps) < n_swaps:
                swaps.append(rng.choice([p for p in pairs if p != swaps[-1]]))
            ends, changes = list(range(4)), [0, 0, 0, 0]  # by lane: where its line began, how often that changed lanes
            for a, b in swaps:
                ends[a], ends[b] = ends[b], ends[a]
                changes[a], changes[b] = changes[b] + 1, changes[a] + 1
            lane = LETTERS.index(letter)
            if changes[lane] >= n_swaps // 2 + 1 and ends[lane] != lane:
                start = ends[lane]
        canvas = Canvas(400, 304)
        draw_tangle(canvas, swaps)
        for i, y in enumerate((44.0, 116.0, 188.0, 260.0)):
            canvas.text((26, y), str(i + 1), size=22)
            canvas.text((374, y), LETTERS[i], size=22)
        question = f"Follow the line that begins at number {start + 1}. At which letter does it end?"
        params = {"kind": "tangle", "swaps": swaps, "start": start + 1}
        return Puzzle(canvas=canvas, question=question, options=tuple(LETTERS), params=params)

    return build


def arrows(n_steps: int) -> Builder:
    """Eight towns on a ring, one arrow leaving each."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        names = "PQRSTUVW"
        while True:
            following = {a: rng.choice([b for b in names if _far(names, a, b)]) for a in names}
            walk = ["P"]
            while len(walk) <= n_steps + 1:
                walk.append(following[walk[-1]])
            both_ways = any(following[following[a]] == a for a in names)
            if len(set(walk)) == len(walk) and not both_ways and _spread(names, following):
                break
        centre = (180.0, 180.0)
        points = {name: around(centre, 148, 45 * i) for i, name in enumerate(names)}
        canvas = Canvas(360, 360)
        for a, b in following.items():
            ax, ay = points[a]
            bx, by = points[b]
            far = math.dist(points[a], points[b])
            ux, uy = (bx - ax) / far, (by - ay) / far
            canvas.arrow((ax + ux * 20, ay + uy * 20), (bx - ux * 22, by - uy * 22), head=15)
        for name, point in points.items():
            canvas.disc(point, 20, fill=ORANGE if name == "P" else PALE, outline=INK, width=2.5)
            canvas.text(point, name, size=17)
        right = walk[n_steps]
        wrong = [walk[n_steps - 1], walk[n_steps + 1], rng.choice([n for n in names if n not in walk[n_steps - 1 :]])]
        rng.shuffle(wrong)
        question = f"Start at P and follow {n_steps} arrows, one after the other. Where do you arrive?"
        options = tuple(in_order(right, wrong, letter))
        params = {"kind": "arrows", "following": following, "steps": n_steps}
        return Puzzle(canvas=canvas, question=question, options=options, params=params)

    return build


def _far(names: str, a: str, b: str) -> bool:
    """Not the same and not neighbours on the ring: short arrows would be hard to see."""
    return min((names.index(a) - names.index(b)) % 8, (names.index(b) - names.index(a)) % 8) >= 2


def _spread(names: str, following: dict[str, str]) -> bool:
    """Whether no two arrows meet at a narrow angle: their other ends are no neighbours on the ring."""
    for town in names:
        others = {b if a == town else a for a, b in following.items() if town in (a, b)}
        if any((names.index(a) - names.index(b)) % 8 == 1 for a in others for b in others):
            return False
    return True


HEADINGS = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""(column, row) steps: up, right, down, left."""


def driven(place: tuple[int, int], heading: int, commands: Sequence[str]) -> tuple[int, int] | None:
    """The robot's last cell, None where it leaves the 6 x 6 board."""
    x, y = place
    for command in commands:
        if command in ("left", "right"):
            heading = (heading + (1 if command == "right" else -1)) % 4
        else:
            x, y = x + HEADINGS[heading][0] * int(command), y + HEADINGS[heading][1] * int(command)
            if not (0 <= x < 6 and 0 <= y < 6):
                return None
    return x, y


def robot(n_legs: int) -> Builder:
    """A robot drives over a board with four marked cells."""

    def build(rng: random.Random, letter: str) -> Puzzle:
        end: tuple[int, int] | None = None
        start, heading, commands = (0, 0), 0, [""]
        while end is None or end == start:
            start, heading = (rng.randrange(6), rng.randrange(6)), rng.randrange(4)
            commands = [str(rng.randrange(1, 5))]
            for _ in range(n_legs - 1):
                commands += [rng.choice(["left", "right"]), str(rng.randrange(1, 4))]
            end = driven(start, heading, commands)
        flipped = [{"left": "right", "right": "left"}.get(c, c) for c in commands]
        likely = [driven(start, heading, flipped), driven(start, (heading + 2) % 4, commands)]
        likely += [(end[0] + dx, end[1] + dy) for dx, dy in rng.sample([*HEADINGS, (1, 1), (-1, 1)], 6)]
        cells = [c for c in likely if c is not None and c not in (start, end) and min(c) >= 0 and max(c) < 6]
        wrong = list(dict.fromkeys(cells))[:3]
        rng.shuffle(wrong)
        marked = in_order(end, wrong, letter)
        words = [f"turn {c}" if c in ("left", "right") else f"forward {c}" for c in commands]
        question = (
            "The robot is the orange arrow, which points where it looks. It drives: "
            + ", ".join(words)
            + ". A number says how many squares it moves. On which letter does it stop?"
        )
        params = {"kind": "robot", "start": start, "heading": heading, "commands": commands, "marked": marked}
        return Puzzle(
            canvas=draw_board(start, heading, marked), question=question, options=tuple(LETTERS), params=params
        )

    return build


def draw_board(start: tuple[int, int], heading: int, marked: Sequence[tuple[int, int]]) -> Canvas:
    """A board of 6 x 6 squares with the robot and the letters A to D."""
    canvas, unit = Canvas(360, 360), 56.0
    for y, x in itertools.product(range(6), range(6)):
        canvas.box(12 + x * unit, 12 + y * unit, unit, unit, fill=WHITE, line=2)

    def middle(cell: tuple[int, int]) -> Point:
        return 12 + (cell[0] + 0.5) * unit, 12 + (cell[1] + 0.5) * unit

    centre, turn = middle(start), 90 * heading
    corners = [around(centre, 23, turn), around(centre, 22, turn + 140), around(centre, 8, turn + 180)]
    canvas.polygon([*corners, around(centre, 22, turn - 140)], fill=ORANGE, width=2.5)
    for letter, cell in zip(LETTERS, marked, strict=True):
        canvas.text(middle(cell), letter, size=26)
    return canvas


BUILDERS: tuple[Builder, ...] = (
    shortest_length,
    shortest_length,
    shortest_route,
    tangle(4),
    tangle(5),
    tangle(6),
    arrows(3),
    arrows(4),
    robot(3),
    robot(4),
)
