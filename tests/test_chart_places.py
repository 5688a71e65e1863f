"""What is drawn stands where its number says: marks, whiskers, bars and corners are measured against the ticks."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.chart_dots import dots
from interbench_tasks.report.chart_heat import DEEPEST, heat
from interbench_tasks.report.chart_lines import bars, lines
from interbench_tasks.report.chart_numbers import Numbers, numbers_from
from interbench_tasks.report.chart_radar import radar
from interbench_tasks.report.drawing import LOOKS, Axis, Box, axis_over, legend_rows, looks_of

TICK = re.compile(r"([+\N{MINUS SIGN}]?)(\d+(?:\.\d+)?)(%?)")
NEAR = 0.11
"""Pixels: places are written in tenths."""


def share(value: float, low: float, high: float, **more) -> Estimate:
    return Estimate(**{"value": value, "n": 20, "ci95": Interval(low, high), "method": "wilson", **more})


def drawn_at_random(seed: int, *, signed: bool = False, series=("a", "b"), rows=("p", "q", "r")) -> Numbers:
    dice = random.Random(seed)
    cells = []
    for one in series:
        for row in rows:
            low, value, high = sorted(dice.uniform(-0.9 if signed else 0.0, 0.95) for _ in range(3))
            cells.append(((one, row), share(value, low, high)))
    return numbers_from("share", ["series", "row"], cells, signed=signed)


def root_of(svg: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def scale_of(svg: str, along: str) -> Callable[[float], float]:
    """Pixel of a value, from the places of ticks. Args: along = `x` or `y`."""
    found: dict[float, float] = {}
    for element in root_of(svg).iter("text"):
        read = TICK.fullmatch(element.text or "")
        if read and (read[1] or read[3]):
            value = float(read[2]) / 100 * (-1 if read[1] == "\N{MINUS SIGN}" else 1)
            # A text's y is that of its base line, a little below the middle of its letters.
            found.setdefault(value, float(element.get(along)) - (3.6 if along == "y" else 0))
    assert len(found) >= 2
    (low, start), *_, (high, end) = sorted(found.items())
    return lambda value: start + (value - low) / (high - low) * (end - start)


def marks_of(svg: str, colour: str) -> list[tuple[float, float]]:
    """Places of the marks of a series, legend's included, in the order in which they were drawn."""
    found = []
    for group in root_of(svg).iter():
        own = [element for element in group if element.tag == "use"]
        if group.get("fill") == colour:
            found += [(float(use.get("x")), float(use.get("y"))) for use in own]
        else:
            found += [(float(use.get("x")), float(use.get("y"))) for use in own if use.get("fill") == colour]
    return found


def strokes_of(svg: str, colour: str, width: str) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Straight lines of a colour and width, each by its two ends."""
    found = []
    for path in root_of(svg).iter("path"):
        if path.get("stroke") == colour and path.get("stroke-width", "1") == width and path.get("fill") == "none":
            found += strokes_in(path.get("d"))
    return found


def strokes_in(data: str) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    found, at = [], (0.0, 0.0)
    for letter, numbers in re.findall(r"([MLHV])([-\d. ]+)", data):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        to = {"M": values, "L": values, "H": [values[0], at[1]], "V": [at[0], values[0]]}[letter]
        if letter != "M":
            found.append((at, (to[0], to[1])))
        at = (to[0], to[1])
    return found


# --- dots -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_dots_and_their_whiskers_stand_at_their_values(seed, signed):
    numbers = drawn_at_random(seed, signed=signed)
    svg = dots(numbers, id="c", label="x", rows="row", series="series")
    pixel = scale_of(svg, "x")
    for name, look in looks_of(["a", "b"]).items():
        own = [estimate for key, estimate in numbers.cells.items() if key[0] == name]
        marks = marks_of(svg, look.colour)[1:]  # the first is the legend's
        whiskers = strokes_of(svg, look.colour, "1.8")
        assert len(marks) == len(whiskers) == len(own)
        for (x, y), ((left, at), (right, _)), estimate in zip(marks, whiskers, own, strict=True):
            assert x == pytest.approx(pixel(estimate.value), abs=NEAR * 2)
            assert left == pytest.approx(pixel(estimate.ci95.low), abs=NEAR * 2)
            assert right == pytest.approx(pixel(estimate.ci95.high), abs=NEAR * 2)
            assert y == at


def test_each_dot_has_its_own_line_and_rows_keep_their_order():
    numbers = drawn_at_random(1, series=("a", "b", "c"))
    svg = dots(numbers, id="c", label="x", rows="row", series="series")
    heights = [[y for _, y in marks_of(svg, look.colour)[1:]] for look in LOOKS[:3]]
    assert all(own == sorted(own) for own in heights)
    assert len({y for own in heights for y in own}) == 9
    labels = [float(e.get("y")) for e in root_of(svg).iter("text") if e.text in ("p", "q", "r")]
    assert labels == sorted(labels)
    for row in range(3):
        middle = sum(own[row] for own in heights) / 3
        assert middle == pytest.approx(labels[row] - 0.36 * 11.5, abs=0.2)


def test_a_value_stands_beside_its_own_line():
    numbers = drawn_at_random(2, series=("a",))
    svg = dots(numbers, id="c", label="x", rows="row")
    texts = {element.text: float(element.get("y")) for element in root_of(svg).iter("text")}
    for (_, y), estimate in zip(marks_of(svg, LOOKS[0].colour), numbers.cells.values(), strict=True):
        assert texts[f"{estimate.value * 100:.1f}"] == pytest.approx(y + 3.6, abs=0.1)


def test_small_multiples_share_one_axis():
    cells = [((str(run), "row"), share(run / 10, run / 10, run / 10)) for run in range(9)]
    svg = dots(numbers_from("share", ["run", "row"], cells), id="c", label="x", rows="row", panels="run")
    zeros = sorted({float(e.get("x")) for e in root_of(svg).iter("text") if e.text == "0" and e.get("y")} - {0.0})
    assert len(zeros) == 3
    ticks = [float(e.get("x")) for e in root_of(svg).iter("text") if e.text == "50%"]
    assert len(ticks) == 9
    width = sorted(set(ticks))[0] - zeros[0]
    for (x, _), run in zip(marks_of(svg, LOOKS[0].colour), range(9), strict=True):
        assert x == pytest.approx(zeros[run % 3] + width / 0.5 * run / 10, abs=0.3)


# --- lines and bars ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_lines_go_through_their_values(seed):
    numbers = drawn_at_random(seed)
    svg = lines(numbers, id="c", label="x", bins="row", series="series")
    pixel = scale_of(svg, "y")
    own = [estimate for key, estimate in numbers.cells.items() if key[0] == "a"]
    marks = [mark for mark in marks_of(svg, LOOKS[0].colour)[1:]]
    assert [y for _, y in marks] == pytest.approx([pixel(estimate.value) for estimate in own], abs=NEAR * 2)
    steps = [stroke for stroke in strokes_of(svg, LOOKS[0].colour, "1.4") if stroke[0][0] != stroke[1][0]]
    assert [start for start, _ in steps] == marks[:-1]
    assert [end for _, end in steps] == marks[1:]
    upright = [stroke for stroke in strokes_of(svg, LOOKS[0].colour, "1.4") if stroke[0][0] == stroke[1][0]]
    for ((x, low), (_, high)), (at, _), estimate in zip(upright, marks, own, strict=True):
        assert (low, high) == pytest.approx((pixel(estimate.ci95.low), pixel(estimate.ci95.high)), abs=NEAR * 2)
        assert x == at


def test_the_whiskers_of_several_lines_stand_beside_each_other():
    numbers = drawn_at_random(0, series=tuple("abcdef"), rows=tuple("pqrstuv"))
    svg = lines(numbers, id="c", label="x", bins="row", series="series")
    places = [[x for x, _ in marks_of(svg, look.colour)[1:]] for look in LOOKS]
    for bin in range(7):
        assert len({own[bin] for own in places}) == 6


@pytest.mark.parametrize("seed", range(4))
def test_bars_reach_from_0_to_their_values(seed):
    numbers = drawn_at_random(seed)
    svg = bars(numbers, id="c", label="x", bins="row", series="series")
    pixel = scale_of(svg, "y")
    (filled,) = (
        path.get("d")
        for path in root_of(svg).iter("path")
        if path.get("fill") == LOOKS[0].colour and path.get("fill-opacity") == "0.8" and path.get("d").count("M") == 3
    )
    boxes = [re.findall(r"-?[\d.]+", one) for one in filled.split("z") if one]
    own = [estimate for key, estimate in numbers.cells.items() if key[0] == "a"]
    for (_, top, _, bottom, _), estimate in zip(boxes, own, strict=True):
        assert float(top) == pytest.approx(pixel(estimate.value), abs=NEAR * 2)
        assert float(bottom) == pytest.approx(pixel(0.0), abs=NEAR * 2)


def test_bars_of_one_bin_do_not_cover_each_other():
    numbers = drawn_at_random(3, series=tuple("abcdef"), rows=tuple("pqrstuv"))
    svg = bars(numbers, id="c", label="x", bins="row", series="series")
    spans = []
    for path in root_of(svg).iter("path"):
        if path.get("fill", "").startswith("#") and path.get("fill-opacity"):
            for one in path.get("d").split("z"):
                found = [float(number) for number in re.findall(r"-?[\d.]+", one)]
                if found and found[3] > 60:  # below the legend
                    spans.append((min(found[0], found[2]), max(found[0], found[2])))
    spans.sort()
    assert len(spans) == 42
    assert all(left[1] <= right[0] + 1e-6 for left, right in pairwise(spans))


def test_ns_are_written_once_where_all_series_have_the_same_and_else_by_series():
    same = drawn_at_random(0)
    texts = [
        element.text for element in root_of(lines(same, id="c", label="x", bins="row", series="series")).iter("text")
    ]
    assert (texts.count("20"), texts.count("n")) == (3, 1)
    cells = {key: (estimate if key[0] == "a" else share(0.5, 0.4, 0.6, n=7)) for key, estimate in same.cells.items()}
    other = numbers_from("share", ["series", "row"], cells.items())
    texts = [
        element.text for element in root_of(bars(other, id="c", label="x", bins="row", series="series")).iter("text")
    ]
    assert (texts.count("20"), texts.count("7"), texts.count("n")) == (3, 3, 0)


# --- radar and heat map -----------------------------------------------------------------------------------------------


def test_a_corner_of_the_radar_is_as_far_out_as_its_value():
    values = (5.0, 2.5, 1.0, 4.0, 0.0, 3.0)
    cells = [
        ((name,), Estimate(value=v, n=9, method="t", points=5.0)) for name, v in zip("abcdef", values, strict=True)
    ]
    svg = radar(numbers_from("score", ["ability"], cells), id="c", label="x", spokes="ability")
    marks = marks_of(svg, LOOKS[0].colour)
    centre = marks[4]
    out = [math.dist(centre, mark) for mark in marks]
    assert out == pytest.approx([value / 5 * out[0] for value in values], abs=0.2)
    angles = [math.degrees(math.atan2(x - centre[0], centre[1] - y)) % 360 for x, y in marks]
    assert [angles[place] for place in (0, 1, 2, 3, 5)] == pytest.approx([0, 60, 120, 180, 300], abs=0.5)


def test_an_outline_is_open_where_a_score_is_missing():
    cells = [((name,), None if name == "c" else Estimate(value=3.0, n=9, method="t", points=5.0)) for name in "abcdef"]
    cells.append((("c",), None))
    numbers = numbers_from("score", ["ability"], cells)
    svg = radar(numbers, id="c", label="x", spokes="ability")
    assert len(marks_of(svg, LOOKS[0].colour)) == 5
    assert "fill-opacity" not in "".join(re.findall(r"<path[^>]*>", radar_with_a_gap()))


def radar_with_a_gap() -> str:
    """Two series, of which one lacks a score that the other has."""
    cells = [
        ((series, name), None if (series, name) == ("one", "c") else Estimate(value=3.0, n=9, method="t", points=5.0))
        for series in ("one",)
        for name in "abcdef"
    ]
    more = [(("two", name), Estimate(value=1.0, n=9, method="t", points=5.0)) for name in "c"]
    return radar(
        numbers_from("score", ["memory", "ability"], [*cells, *more]),
        id="c",
        label="x",
        spokes="ability",
        series="memory",
    )


def test_a_gap_breaks_both_sides_that_lead_to_it():
    sides = strokes_of(radar_with_a_gap(), LOOKS[0].colour, "1.8")
    assert len(sides) == 4


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_the_depth_of_a_cell_is_its_share_of_the_scale(value):
    cells = [(("a", "m"), share(value, value, value)), (("b", "m"), share(1.0, 1.0, 1.0))]
    svg = heat(numbers_from("PCQ", ["type", "run"], cells), id="c", label="x", rows="type", columns="run")
    found = [
        float(path.get("fill-opacity")) for path in root_of(svg).iter("path") if path.get("fill") == LOOKS[0].colour
    ]
    assert min(found if value else [0.0]) == pytest.approx(value * DEEPEST, abs=0.006)
    assert max(found) == pytest.approx(DEEPEST)


def test_a_matrix_of_pairs_is_blank_where_no_pair_is():
    cells = [(("b", "a"), share(0.5, 0.4, 0.6)), (("c", "a"), share(0.5, 0.4, 0.6)), (("c", "b"), share(0.5, 0.4, 0.6))]
    numbers = numbers_from("kappa", ["judge", "other"], cells)
    where = {"id": "c", "label": "x", "rows": "judge", "columns": "other"}
    assert "\N{EN DASH}" not in heat(numbers, dashes=False, **where)
    assert heat(numbers, **where).count("\N{EN DASH}") == 1


# --- the parts that they are made of ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_an_axis_holds_what_it_is_of_and_has_few_ticks(seed):
    dice = random.Random(seed)
    values = [dice.uniform(-1, 1) * 10 ** dice.randint(-3, 0) for _ in range(dice.randint(1, 6))]
    axis = axis_over(values, top=1.0)
    assert axis.low <= min(*values, 0) + 1e-9
    assert axis.high >= max(*values, 0) - 1e-9
    assert 2 <= len(axis.ticks) <= 8
    assert 0.0 in axis.ticks
    steps = {round(b - a, 9) for a, b in pairwise(axis.ticks)}
    assert len(steps) == 1


def test_a_value_off_the_axis_stays_at_its_end():
    axis = Axis(low=0, high=5, ticks=(0, 5), start=100, end=200)
    assert [axis.at(value) for value in (-1, 0, 2.5, 5, 9)] == [100, 100, 150, 200, 200]
    assert axis.moved(50, 0).at(5) == 0


def test_a_legend_goes_to_a_new_line_where_there_is_no_room():
    names = [f"memory number {number}" for number in range(6)]
    rows = legend_rows(names, 400)
    assert [name for row in rows for name in row] == names
    assert len(rows) > 1
    assert legend_rows(["x" * 500], 100) == [["x" * 500]]


def test_more_series_than_looks_have_none():
    assert len(looks_of([str(number) for number in range(9)])) == len(LOOKS)


def test_a_box_knows_its_edges():
    assert (Box(10, 20, 30, 40).right, Box(10, 20, 30, 40).bottom) == (40, 60)


def test_a_legend_shows_series_as_the_drawing_does():
    numbers = drawn_at_random(0)
    where = {"id": "c", "label": "x", "series": "series"}
    assert "stroke-dasharray" in lines(numbers, bins="row", **where)
    assert "stroke-dasharray" not in dots(numbers, rows="row", **where)
    assert "stroke-dasharray" not in bars(numbers, bins="row", **where)
    assert "<use " not in bars(numbers, bins="row", **where)
