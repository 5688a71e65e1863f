"""What a chart is made of before it is drawn: numbers in their order, runs by task, texts that fit, one clean <svg>."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.text import Text

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.chart_dots import axis_of, drawn_value, ends_of, tick_text
from interbench_tasks.report.chart_numbers import Numbers, numbers_from, table_of, told_in_words
from interbench_tasks.report.drawing import (
    BOLD,
    LOOKS,
    Point,
    Sheet,
    columns_of,
    fitted,
    labels_of,
    legend_rows,
    title_of,
    width_of,
)
from interbench_tasks.report.section_parts import MOST_NUMBERS, MOST_RUNS, options_of, runs_by_task, united
from interbench_tasks.report.svg import INK, svg_from
from tests.chart_runs import feedback_run


def share(value: float = 0.5, n: int = 10, **more) -> Estimate:
    return Estimate(**{"value": value, "n": n, "ci95": Interval(0.25, 0.75), "method": "wilson", **more})


def grid(runs: int = 2, arms: int = 3, **more) -> Numbers:
    cells = [((f"run {i}", f"arm {j}"), share((i + j) / 20)) for i in range(runs) for j in range(arms)]
    return numbers_from("rate", ["run", "arm"], cells, **more)


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_values_of_a_dimension_come_in_the_order_in_which_they_were_given_undefined_ones_too():
    cells = [(("b", "x"), None), (("b", "y"), share()), (("a", "y"), share()), (("a", "x"), share())]
    numbers = numbers_from("rate", ["run", "arm"], cells)
    assert numbers.values("run") == ["b", "a"]
    assert numbers.values("arm") == ["x", "y"]
    assert list(numbers.cells) == [("b", "y"), ("a", "x"), ("a", "y")]


def test_an_order_that_is_given_stands_above_that_of_the_cells():
    numbers = grid(orders={"arm": ["arm 2", "arm 0", "arm 1", "arm 9"]})
    assert numbers.values("arm") == ["arm 2", "arm 0", "arm 1"]
    assert [key[1] for key in numbers.cells][:3] == ["arm 2", "arm 0", "arm 1"]


def test_a_value_that_an_order_does_not_know_comes_last():
    numbers = grid(orders={"arm": ["arm 2"]})
    assert numbers.values("arm") == ["arm 2", "arm 0", "arm 1"]


def test_where_keeps_what_is_asked_for_and_the_order():
    numbers = grid().where("arm", ["arm 2", "arm 0", "no such arm"])
    assert numbers.values("arm") == ["arm 0", "arm 2"]
    assert len(numbers.cells) == 4
    assert not grid().where("run", [])


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_order_of_cells_gives_the_same_numbers_where_orders_are_given(seed):
    orders = {"run": ["run 0", "run 1"], "arm": ["arm 0", "arm 1", "arm 2"]}
    cells = list(grid().cells.items())
    random.Random(seed).shuffle(cells)
    assert numbers_from("rate", ["run", "arm"], cells, orders=orders) == grid(orders=orders)


def test_numbers_without_any_are_false():
    assert not numbers_from("rate", ["run"], [(("a",), None)])
    assert grid()


@pytest.mark.parametrize(
    ("points", "signed", "unit", "value"),
    [
        (None, False, "%", "12.5"),
        (None, True, "percentage points", "+12.5"),
        (5.0, False, "points", "0.12"),
        (1.0, False, "1 at most", "0.12"),
        (2.0, True, "points", "+0.12"),
    ],
)
def test_numbers_know_their_unit(points, signed, unit, value):
    numbers = numbers_from("x", ["a"], [(("b",), share(0.125, points=points))], signed=signed)
    assert (numbers.unit, numbers.shown(0.125)) == (unit, value)
    assert table_of(numbers, "x").columns[1] == f"x ({unit})"


def test_a_table_has_a_row_for_each_number_and_its_caption():
    table = table_of(grid(), "Rates by arm")
    assert table.caption == "Rates by arm"
    assert len(table.rows) == 6
    assert table.rows[0] == ("run 0", "arm 0", "0.0", "25.0 to 75.0", "10", "0")


def test_words_name_each_key_as_it_is_told():
    numbers = grid(runs=1, arms=2)
    assert told_in_words(numbers, lambda key: key[1].upper()) == (
        "Rate. ARM 0: 0.0% (25.0 to 75.0, n 10); ARM 1: 5.0% (25.0 to 75.0, n 10)."
    )


def test_words_of_a_number_without_an_interval_have_none():
    numbers = numbers_from("rate", ["arm"], [(("a",), share(ci95=None))])
    assert told_in_words(numbers) == "Rate. a: 50.0% (n 10)."


def test_the_first_of_equal_numbers_is_told():
    cells = [((name,), share(0.5)) for name in "abcdef"]
    assert told_in_words(numbers_from("rate", ["arm"], cells)).count("a: 50.0%") == 2


def test_what_an_axis_must_hold_are_values_and_ends():
    assert ends_of([share(0.5), share(0.1, ci95=None)]) == [0.5, 0.25, 0.75, 0.1]


def test_an_axis_of_differences_holds_0_and_both_signs():
    cells = [(("a",), share(-0.2, ci95=Interval(-0.4, -0.1))), (("b",), share(0.1, ci95=Interval(0.0, 0.2)))]
    axis = axis_of(numbers_from("difference", ["a"], cells, signed=True))
    assert axis.ticks == pytest.approx((-0.4, -0.2, 0.0, 0.2))


def test_a_negative_value_is_drawn_with_a_minus_sign_and_a_tick_too():
    numbers = numbers_from("difference", ["a"], [(("b",), share(-0.125))], signed=True)
    assert drawn_value(numbers, share(-0.125)) == "\N{MINUS SIGN}12.5"
    assert tick_text(numbers, -0.025) == "\N{MINUS SIGN}2.5"


# --- runs by task -----------------------------------------------------------------------------------------------------


def test_runs_are_taken_task_by_task_in_the_order_in_which_they_come_up():
    runs = [feedback_run(name, task=task, n=4) for name, task in (("a", "one"), ("b", "two"), ("c", "one"))]
    tasks = runs_by_task(runs, "x", lambda run: True)
    assert [(task.task, [run.name for run in task.runs], task.id, task.suffix) for task in tasks] == [
        ("one", ["a", "c"], "x1", " (one)"),
        ("two", ["b"], "x2", " (two)"),
    ]
    (alone,) = runs_by_task(runs, "x", lambda run: run.task == "two")
    assert alone.suffix == ""
    assert runs_by_task(runs, "x", lambda run: False) == []


@pytest.mark.parametrize("manifest", [{}, {"protocol_options": None}, {"protocol_options": ["arms"]}])
def test_a_manifest_that_does_not_tell_its_options_has_none(manifest):
    assert options_of(replace(feedback_run(n=4), manifest=manifest)) == {}


def test_lists_are_united_in_the_order_in_which_values_come_up():
    assert united([["b", "a"], ["c", "a"], []]) == ["b", "a", "c"]


def chart_of(numbers: Numbers, **where):
    (task,) = runs_by_task([feedback_run(n=4)], "x", lambda run: True)
    return next(task.chart("name", "Title", numbers, lambda drawn, **more: f"{len(drawn.cells)} {more}", **where), None)


def test_a_chart_of_nothing_is_none():
    assert chart_of(numbers_from("rate", ["run"], []), rows="run") is None


@pytest.mark.parametrize(
    ("runs", "arms", "title", "drawn"),
    [
        (12, 3, "Title", 36),
        (13, 3, "Title (the first 12 of 13 runs)", 36),
        (11, 40, "Title (the first 5 of 11 runs)", 200),
        (1, 300, "Title (the first 220 of 300 arms)", 220),
    ],
)
def test_a_chart_shows_what_it_can_hold_and_says_so(runs, arms, title, drawn):
    chart = chart_of(grid(runs, arms), rows="arm")
    assert chart.title == title
    assert int(chart.svg.split()[0]) == drawn <= MOST_NUMBERS
    assert len(chart.table.rows) == runs * arms
    assert MOST_RUNS == 12


def test_more_series_than_looks_are_limited_too():
    chart = chart_of(grid(2, 8), rows="run", series="arm")
    assert chart.title == f"Title (the first {len(LOOKS)} of 8 arms)"


def test_one_run_needs_no_panel_of_its_own_and_is_not_named_in_words():
    chart = chart_of(grid(1, 2), rows="arm", panels="run")
    assert "panels" not in chart.svg
    assert "run 0" not in chart.alt
    both = chart_of(grid(2, 1), rows="arm", panels="run")
    assert "'panels': 'run'" in both.svg
    assert "run 0, arm 0" in both.alt


# --- texts that fit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_every_label_fits_and_no_two_are_alike(seed):
    dice = random.Random(seed)
    letters = "abcWM01-.:/ \N{GREEK SMALL LETTER ALPHA}\u6a21\u578b"
    names = list(dict.fromkeys("".join(dice.choices(letters, k=dice.randint(1, 60))).strip() or "x" for _ in range(12)))
    width = dice.uniform(60, 200)
    labels = labels_of(names, width)
    assert all(width_of(label) <= width for label in labels.values())
    shown = [labels[name] for name in names]
    assert len(set(shown)) == len({" ".join(name.split()) for name in names})


def test_a_text_that_fits_stays_as_it_is_and_one_that_cannot_is_its_first_letter():
    assert fitted("short", 200) == "short"
    assert fitted("a  b\nc", 200) == "a b c"
    assert fitted("WWWWWWWW", 5) == "W…"


def test_a_bold_title_takes_less_letters():
    text = "a title that is just about as wide"
    width = width_of(text)
    assert fitted(text, width) == text
    assert title_of(text, width) != text
    assert title_of(text, width * BOLD) == text


@pytest.mark.parametrize(("count", "most", "columns"), [(1, 3, 1), (4, 3, 2), (5, 4, 3), (8, 4, 4), (9, 4, 3)])
def test_panels_fill_their_lines(count, most, columns):
    assert columns_of(count, most) == columns


def test_a_very_long_name_has_a_line_of_the_legend_for_itself():
    assert legend_rows(["x" * 200, "y", "z"], 360) == [["x" * 200], ["y", "z"]]


# --- one clean svg ----------------------------------------------------------------------------------------------------


def figure_of(*artists) -> Figure:
    figure = Figure(figsize=(1, 1), dpi=72)
    for artist in artists:
        figure.add_artist(artist)
    return figure


def drawn(*artists, id: str = "c", label: str = "x") -> ElementTree.Element:
    return ElementTree.fromstring(svg_from(lambda: figure_of(*artists), id=id, label=label))


def test_neighbours_of_one_look_become_one_path():
    lines = LineCollection([[(0, 0), (1, 1)], [(0, 1), (1, 0)]], colors=["#112233"])
    root = drawn(lines, LineCollection([[(0, 0.5), (1, 0.5)]], colors=["#445566"]))
    paths = [element for element in root if element.tag.endswith("path")]
    assert [path.get("stroke") for path in paths] == ["#112233", "#445566"]
    assert paths[0].get("d").count("M") == 2
    assert paths[1].get("d") == "M0 36H72"


def test_texts_of_one_look_share_a_group_that_says_it_once():
    root = drawn(*[Text(0.5, 0.1 * number, f"t{number}", color=INK, fontsize=9) for number in range(4)])
    (group,) = [element for element in root if element.tag.endswith("g")]
    assert group.get("fill") == "currentColor"
    assert group.get("font-size") == "9px"
    assert [text.text for text in group] == ["t0", "t1", "t2", "t3"]
    assert all(set(text.attrib) == {"x", "y"} for text in group)


def test_faint_letters_are_faint_by_their_fill():
    root = drawn(Text(0.5, 0.5, "t", color=INK, alpha=0.75))
    (text,) = [element for element in root.iter() if element.tag.endswith("text")]
    assert (text.get("fill-opacity"), text.get("opacity")) == ("0.75", None)


def test_markers_refer_to_an_id_of_the_chart():
    root = drawn(Line2D([0.1, 0.9], [0.5, 0.5], marker="o", linestyle="none"), id="mine")
    uses = [element for element in root.iter() if element.tag.endswith("use")]
    assert {use.get("href") for use in uses} == {"#mine-0"}
    assert [element.get("id") for element in root.iter() if element.get("id")] == ["mine", "mine-0"]


def test_a_hatch_is_a_pattern_of_the_chart():
    root = drawn(Polygon([(0, 0), (1, 0), (1, 1)], facecolor="none", edgecolor="#112233", hatch="//"), id="mine")
    (shape,) = [element for element in root if element.tag.endswith("path")]
    (pattern,) = [element for element in root.iter() if element.tag.endswith("pattern")]
    assert shape.get("fill") == f"url(#{pattern.get('id')})"
    assert pattern.get("id").startswith("mine-")


def test_a_label_may_hold_anything():
    label = '"quotes" & <tags> \N{GREEK SMALL LETTER ALPHA}'
    root = drawn(Text(0.5, 0.5, "t"), label=label)
    assert root.get("aria-label") == label


def test_numbers_have_a_tenth_at_most():
    root = drawn(LineCollection([[(1 / 3, 1 / 7), (2 / 3, 5 / 7)]], colors=["#112233"]))
    (path,) = [element for element in root if element.tag.endswith("path")]
    assert re.fullmatch(r"M[\d.]+ [\d.]+L[\d.]+ [\d.]+", path.get("d"))
    assert all(len(number.partition(".")[2]) <= 1 for number in re.findall(r"[\d.]+", path.get("d")))


def test_a_sheet_is_drawn_each_time_anew():
    sheet = Sheet(100)
    sheet.text(Point(10, 10), "t")
    first = sheet.svg(id="c", label="x")
    assert sheet.svg(id="c", label="x") == first
    sheet.text(Point(10, 30), "u")
    assert "u</text>" in sheet.svg(id="c", label="x")
