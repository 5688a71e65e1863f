"""Every answer of the demo items is found again, by other means than the script's: from parameters or from pixels."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage
from scipy.sparse import csgraph

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "task_yamls" / "interfeedback" / "demo"
LETTERS = "ABCD"


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


ITEMS = rows_of(SHIPPED / "items.jsonl")
PARAMS_BY_ID = {row["id"]: row for row in rows_of(ROOT / "tests" / "data" / "interfeedback_demo_params.jsonl")}


def items(*kinds):
    """The items of some kinds of puzzle, as test parameters."""
    return [pytest.param(i, id=i["id"]) for i in ITEMS if PARAMS_BY_ID[i["id"]]["kind"] in kinds]


def pixels(item):
    with Image.open(SHIPPED / item["image"]) as picture:
        return np.asarray(picture.convert("RGB"), dtype=int)


def right_text(item):
    return item["options"][LETTERS.index(item["answer"])]


def is_blue(rgb):
    return rgb[..., 2] - rgb[..., 0] > 100


# Answers from the parameters


def next_in_cycle(values):
    """The value that continues the shortest cycle that is seen at least once and once more in part."""
    n = len(values)
    period = next(p for p in range(1, n) if all(values[i] == values[i - p] for i in range(p, n)))
    return values[n - period]


def next_by_step(values, modulus=10**6):
    """The value that continues equal steps."""
    steps = {(b - a) % modulus for a, b in itertools.pairwise(values)}
    assert len(steps) == 1
    return (values[-1] + steps.pop()) % modulus


def solve_next_shape(p):
    shown, options = p["shown"], p["options"]
    if p["kind"] == "walking":
        wanted = [next_by_step([cells[k] for cells in shown], 8) for k in (0, 1)]
    elif p["kind"] == "table":
        wanted = {"angle": 0, "dots": 0}
        cells = [*shown, None]
        wanted["size"] = cells[2]["size"]
        assert cells[2]["size"] == cells[5]["size"]
        for name in ("shape", "fill"):
            values = {cell[name] for cell in shown}
            (wanted[name],) = values - {cells[i][name] for i in (6, 7)} & values - {cells[i][name] for i in (2, 5)}
    else:
        wanted = {name: next_in_cycle([f[name] for f in shown]) for name in ("shape", "fill", "size")}
        wanted["angle"] = next_by_step([f["angle"] for f in shown], 360)
        wanted["dots"] = next_by_step([f["dots"] for f in shown])
    (place,) = [i for i, option in enumerate(options) if option == wanted]
    return f"Figure {LETTERS[place]}"


@pytest.mark.parametrize("item", items("turning", "walking", "cycling", "growing", "table"))
def test_the_next_shape_is_found_again_by_the_rule_of_the_row(item):
    assert solve_next_shape(PARAMS_BY_ID[item["id"]]) == right_text(item)


def solve_pyramid(shown):
    """Try all bases; the shown numbers must leave one value for the question mark."""
    answers = set()
    for base in itertools.product(range(1, 20), repeat=len(shown[-1])):
        rows = [list(base)]
        while len(rows[0]) > 1:
            rows.insert(0, [rows[0][i] + rows[0][i + 1] for i in range(len(rows[0]) - 1)])
        pairs = [(s, v) for s_row, v_row in zip(shown, rows, strict=True) for s, v in zip(s_row, v_row, strict=True)]
        if all(s == v for s, v in pairs if isinstance(s, int)):
            answers |= {v for s, v in pairs if s == "?"}
    (answer,) = answers
    return answer


def solve_balance(p):
    """Try all weights of square and triangle; the level scales must leave one value."""
    answers = set()
    for square, triangle in itertools.product(range(1, 30), repeat=2):
        weights = {"ball": 1, "square": square, "triangle": triangle}
        if all(sum(weights[w] for w in left) == sum(weights[w] for w in right) for left, right in p["scales"]):
            answers.add(weights[p["asked"]])
    (answer,) = answers
    return answer


def solve_number(p):
    shown = p.get("shown")
    if p["kind"] == "dot_row":
        a, b, c, d = shown
        by_growth, by_sum = d + (d - c) + 1, c + d
        grows = (c - b, d - c) == (b - a + 1, b - a + 2)
        sums = (c, d) == (a + b, b + c)
        assert grows != sums
        return str(by_growth if grows else by_sum)
    if p["kind"] == "wheel":
        (total,) = {shown[i] + shown[i + 4] for i in range(4) if None not in (shown[i], shown[i + 4])}
        return str(total - shown[(shown.index(None) + 4) % 8])
    if p["kind"] == "clocks":
        minutes = next_by_step(shown, 720)
        return f"{(minutes // 60 + 11) % 12 + 1}:{minutes % 60:02d}"
    return str(solve_pyramid(shown) if p["kind"] == "pyramid" else solve_balance(p))


@pytest.mark.parametrize("item", items("dot_row", "wheel", "clocks", "pyramid", "balance"))
def test_the_number_is_the_only_one_that_fits(item):
    assert solve_number(PARAMS_BY_ID[item["id"]]) == right_text(item)


def bitmap(cells):
    grid = np.zeros((3, 3), dtype=int)
    for x, y in cells:
        grid[y, x] = 1
    return cropped(grid)


def cropped(grid):
    ys, xs = np.nonzero(grid)
    return grid[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]


def up_to_turning(grid):
    """The same for all turned copies of a form, wherever they lie, and another one for its mirror image."""
    turned = [np.rot90(cropped(grid), k) for k in range(4)]
    return min((g.shape, g.tolist()) for g in turned)


def odd_traits(p):
    """What the rule is about, for each of the nine figures: eight traits are good, one is not."""
    cells = p["cells"]
    if p["kind"] == "mirrored":
        return [str(up_to_turning(bitmap(cell["grid"]))) for cell in cells]
    if p["kind"] == "half":
        return [len(cell["blue"]) / cell["slices"] for cell in cells]
    if p["kind"] == "corners":
        corners = ["triangle", "square", "pentagon", "hexagon"]
        return [cell["dots"] - corners.index(cell["shape"]) for cell in cells]
    if p["kind"] == "nested":
        return [cell["inner"] == cell["outer"] for cell in cells]
    usual = {cell["shape"]: Counter(c["fill"] for c in cells if c["shape"] == cell["shape"]) for cell in cells}
    return [usual[cell["shape"]].most_common(1)[0][0] == cell["fill"] for cell in cells]


@pytest.mark.parametrize("item", items("mirrored", "half", "corners", "nested", "coloured"))
def test_exactly_one_figure_of_nine_breaks_the_rule(item):
    traits = odd_traits(PARAMS_BY_ID[item["id"]])
    counts = Counter(traits)
    assert sorted(counts.values()) == [1, 8]
    assert f"Figure {traits.index(min(counts, key=counts.get)) + 1}" == right_text(item)


def side(p, q, r):
    return math.copysign(1, (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))


def solve_count(p):
    if p["kind"] == "crossings":
        pairs = itertools.combinations(p["segments"], 2)
        return sum(side(a, b, c) != side(a, b, d) and side(c, d, a) != side(c, d, b) for (a, b), (c, d) in pairs)
    if p["kind"] == "two_regions":
        (cx, cy, r), (left, top, right, bottom) = p["circle"], p["box"]
        where = [[(x - cx) ** 2 + (y - cy) ** 2 < r * r, left < x < right and top < y < bottom] for x, y in p["points"]]
        return sum(w in p["wanted"] for w in where)
    tests = {
        "shape": lambda t, v: t["shape"] == v,
        "fill": lambda t, v: t["fill"] == v,
        "size": lambda t, v: (t["radius"] == max(u["radius"] for u in p["things"])) == (v == "large"),
    }
    hits = p["things"]
    for name, value in p["condition"].items():
        hits = [t for t in hits if tests[name](t, value.lstrip("!")) != value.startswith("!")]
    return len(hits)


@pytest.mark.parametrize("item", items("crossings", "two_regions", "of_kind"))
def test_the_count_is_right(item):
    assert str(solve_count(PARAMS_BY_ID[item["id"]])) == right_text(item)


def solve_route(p):
    towns = sorted({town for road in p["roads"] for town in road})
    graph = np.zeros((len(towns), len(towns)))
    for (a, b), length in p["roads"].items():
        graph[towns.index(a), towns.index(b)] = length
    far, before = csgraph.dijkstra(graph, directed=False, indices=towns.index("P"), return_predecessors=True)
    route = [towns.index("V")]
    while before[route[0]] >= 0:
        route.insert(0, before[route[0]])
    return round(far[towns.index("V")]), "-".join(towns[i] for i in route)


def length_of(route, roads):
    return sum(roads.get(a + b) or roads[b + a] for a, b in itertools.pairwise(route.split("-")))


@pytest.mark.parametrize("item", items("shortest_length", "shortest_route"))
def test_the_shortest_route_is_found_again_and_the_only_one(item):
    p = PARAMS_BY_ID[item["id"]]
    length, route = solve_route(p)
    assert right_text(item) == (str(length) if p["kind"] == "shortest_length" else route)
    if p["kind"] == "shortest_route":
        assert [o for o in item["options"] if length_of(o, p["roads"]) <= length] == [route]


def solve_walk(p):
    if p["kind"] == "tangle":
        lane = p["start"] - 1
        for a, b in p["swaps"]:
            lane = {a: b, b: a}.get(lane, lane)
        return LETTERS[lane]
    if p["kind"] == "arrows":
        town = "P"
        for _ in range(p["steps"]):
            town = p["following"][town]
        return town
    place, heading = complex(*p["start"]), [-1j, 1, 1j, -1][p["heading"]]
    for command in p["commands"]:
        if command.isdigit():
            place += heading * int(command)
        else:
            heading *= {"right": 1j, "left": -1j}[command]
    return LETTERS[[complex(*cell) for cell in p["marked"]].index(place)]


@pytest.mark.parametrize("item", items("tangle", "arrows", "robot"))
def test_following_the_way_leads_to_the_answer(item):
    assert solve_walk(PARAMS_BY_ID[item["id"]]) == right_text(item)


# Answers from the pixels: what is drawn is what was meant


def grid_seen(rgb, centre, unit):
    """A 4 x 4 pattern read at the middles of its cells."""
    at = [(k - 1.5) * unit for k in range(4)]
    return np.array([[is_blue(rgb[round(centre[1] + dy), round(centre[0] + dx)]) for dx in at] for dy in at])


MOVES = {
    "clockwise": lambda g: np.rot90(g, -1),
    "anticlockwise": lambda g: np.rot90(g, 1),
    "half_turn": lambda g: g[::-1, ::-1],
    "left_right": lambda g: g[:, ::-1],
    "up_down": lambda g: g[::-1],
}


@pytest.mark.parametrize("item", items(*MOVES, "not_turned", "overlaid"))
def test_the_transformed_pattern_is_found_again_in_the_picture(item):
    p, rgb = PARAMS_BY_ID[item["id"]], pixels(item)
    options = [grid_seen(rgb, (56 + 96 * i, 216), 20) for i in range(4)]
    assert len({o.tobytes() for o in options}) == 4
    if p["kind"] == "overlaid":
        wanted = grid_seen(rgb, (110, 76), 28) | grid_seen(rgb, (290, 76), 28)
        fits = [np.array_equal(o, wanted) for o in options]
    elif p["kind"] == "not_turned":
        form = up_to_turning(grid_seen(rgb, (200, 76), 28))
        fits = [up_to_turning(o) != form for o in options]
    else:
        wanted = MOVES[p["kind"]](grid_seen(rgb, (200, 76), 28))
        fits = [np.array_equal(o, wanted) for o in options]
    assert [letter for letter, fit in zip(LETTERS, fits, strict=True) if fit] == [item["answer"]]


@pytest.mark.parametrize("item", items("punched"))
def test_the_unfolded_sheet_has_each_hole_and_its_mirror_image(item):
    p = PARAMS_BY_ID[item["id"]]
    wanted = [row[:2] + row[:2][::-1] for row in p["holes"]]
    assert [letter for letter, o in zip(LETTERS, p["options"], strict=True) if o == wanted] == [item["answer"]]


def shapes_seen(rgb):
    """Every blue shape: its name, by how much of its box it fills, and its middle."""
    labels, n = ndimage.label(is_blue(rgb))
    for index, (rows, columns) in enumerate(ndimage.find_objects(labels, n), start=1):
        share = np.mean(labels[rows, columns] == index)
        name = "triangle" if share < 0.65 else "circle" if share < 0.9 else "square"
        yield name, ((columns.start + columns.stop) / 2, (rows.start + rows.stop) / 2)


@pytest.mark.parametrize("item", items("inside_box"))
def test_shapes_inside_the_frame_are_counted_again_in_the_picture(item):
    rgb, p = pixels(item), PARAMS_BY_ID[item["id"]]
    dark = rgb.sum(axis=2) < 150
    lines, columns = np.nonzero(dark.sum(axis=1) > 200)[0], np.nonzero(dark.sum(axis=0) > 200)[0]
    seen = list(shapes_seen(rgb))
    assert Counter(name for name, _ in seen) == Counter(t["shape"] for t in p["things"])
    inside = [n for n, (x, y) in seen if columns[0] < x < columns[-1] and lines[0] < y < lines[-1]]
    assert p["counted"] in item["question"]
    assert str(inside.count(p["counted"])) == right_text(item)


def test_every_item_is_solved_by_one_of_the_tests_above():
    solved = {"turning", "walking", "cycling", "growing", "table", "dot_row", "wheel", "clocks", "pyramid", "balance"}
    solved |= {"mirrored", "half", "corners", "nested", "coloured", "crossings", "two_regions", "of_kind", "inside_box"}
    solved |= {"shortest_length", "shortest_route", "tangle", "arrows", "robot", *MOVES}
    solved |= {"not_turned", "overlaid", "punched"}
    assert {p["kind"] for p in PARAMS_BY_ID.values()} == solved
