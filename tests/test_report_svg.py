"""Drawings as one <svg> element: it fits into any page, says the same every time, and lets nothing in or out."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import pytest

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.chart_dots import axis_of, dots, tick_text
from interbench_tasks.report.chart_heat import heat
from interbench_tasks.report.chart_lines import bars, lines
from interbench_tasks.report.chart_numbers import Numbers, numbers_from, table_of, told_in_words
from interbench_tasks.report.chart_radar import radar
from interbench_tasks.report.drawing import LOOKS, WIDTH, axis_over, fitted, labels_of, width_of
from interbench_tasks.report.svg import SHOWN, plain

ODD = 'a<script>alert("1")</script> & $x_1$ 模型\u202e \x00\ud800\n' + "é" * 60
DRAWINGS = {
    "dots": lambda n, **more: dots(n, rows="ability", series="memory", panels="run", **more),
    "lines": lambda n, **more: lines(n, bins="ability", series="memory", panels="run", **more),
    "bars": lambda n, **more: bars(n, bins="ability", series="memory", panels="run", **more),
    "radar": lambda n, **more: radar(n, spokes="ability", series="memory", panels="run", **more),
    "heat": lambda n, **more: heat(n, rows="ability", columns="run", **more),
}


def score(value: float = 2.0, *, n: int = 9, low: float | None = None, high: float | None = None, **more) -> Estimate:
    ends = Interval(value - 0.5 if low is None else low, value + 0.5 if high is None else high)
    return Estimate(**{"value": value, "n": n, "ci95": ends, "method": "t", "points": 5.0, **more})


def share(value: float, low: float, high: float, n: int = 20, **more) -> Estimate:
    return Estimate(value=value, n=n, ci95=Interval(low, high), method="wilson", **more)


def cube(runs=("m",), memories=("none", "notes"), abilities=("IE", "CR", "IU", "IM"), leave_out=()) -> Numbers:
    cells = (
        ((run, memory, ability), None if (run, memory, ability) in leave_out else score(1 + (i + j + k) % 4))
        for i, run in enumerate(runs)
        for j, memory in enumerate(memories)
        for k, ability in enumerate(abilities)
    )
    return numbers_from("score", ["run", "memory", "ability"], cells)


@pytest.fixture(params=sorted(DRAWINGS))
def drawing(request):
    return DRAWINGS[request.param]


# --- one element that fits into any page ------------------------------------------------------------------------------


def test_a_drawing_is_one_svg_with_its_text_alternative(drawing):
    root = ElementTree.fromstring(drawing(cube(), id="c1", label="What it shows."))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("id"), root.get("role"), root.get("aria-label")) == ("c1", "img", "What it shows.")
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == WIDTH
    assert (float(root.get("width")), float(root.get("height"))) == (width * SHOWN, height * SHOWN)


def test_nothing_of_it_reaches_outside_or_into_the_page_around_it(drawing):
    svg = drawing(cube(runs=("a", "b")), id="c1", label="x")
    for never in ("<style", "style=", "<script", "http://www.w3.org/1999", "<!", "<?", "font-family: ", "metadata"):
        assert never not in svg
    references = re.findall(r'href="([^"]*)"|url\(([^)]*)\)', svg)
    assert all("".join(found).startswith("#c1-") for found in references)


def test_ids_are_the_charts_own_and_each_reference_leads_to_one(drawing):
    first, second = (drawing(cube(), id=name, label="x") for name in ("c1", "c2"))
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (first, second)]
    assert not ids[0] & ids[1]
    assert all(name == "c1" or name.startswith("c1-") for name in ids[0])
    assert set(re.findall(r"#(c1-[^)\"]+)", first)) <= ids[0]


def test_the_same_numbers_give_the_same_text(drawing):
    assert drawing(cube(), id="c1", label="x") == drawing(cube(), id="c1", label="x")


def test_settings_of_the_users_own_matplotlib_change_nothing(drawing):
    plain_one = drawing(cube(), id="c1", label="x")
    own = {
        "text.usetex": True,
        "text.parse_math": True,
        "text.color": "red",
        "path.sketch": (1.0, 100.0, 2.0),
        "font.family": "serif",
        "font.size": 30.0,
        "svg.fonttype": "path",
        "svg.hashsalt": "other",
        "figure.dpi": 200.0,
        "figure.facecolor": "black",
        "savefig.facecolor": "black",
        "savefig.bbox": "tight",
        "savefig.pad_inches": 1.0,
        "savefig.dpi": 300.0,
        "hatch.linewidth": 9.0,
        "hatch.color": "red",
        "lines.linewidth": 9.0,
        "lines.markeredgewidth": 5.0,
        "lines.dash_capstyle": "round",
        "lines.solid_capstyle": "round",
        "lines.scale_dashes": False,
        "markers.fillstyle": "none",
        "patch.linewidth": 9.0,
        "patch.force_edgecolor": True,
        "axes.unicode_minus": False,
    }
    with matplotlib.rc_context(own):
        assert drawing(cube(), id="c1", label="x") == plain_one


def test_another_process_draws_the_same(tmp_path):
    code = (
        "from tests.test_report_svg import DRAWINGS, cube\n"
        "import sys; sys.stdout.write(''.join(d(cube(), id='c', label='x') for d in DRAWINGS.values()))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "".join(draw(cube(), id="c", label="x") for draw in DRAWINGS.values())


def test_texts_and_axes_take_the_pages_colour_and_series_those_that_both_themes_can_show(drawing):
    svg = drawing(cube(), id="c1", label="x")
    colours = set(re.findall(r"#[0-9a-f]{6}\b", svg))
    assert "currentColor" in svg
    assert colours <= {look.colour for look in LOOKS}
    assert 'fill="white"' not in svg
    assert 'fill="#' not in " ".join(re.findall(r"<text[^>]*>", svg))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.colour)
def test_every_look_has_contrast_with_white_and_with_a_dark_page(look):
    own = luminance(look.colour)
    assert 1.05 / (own + 0.05) >= 3
    assert (own + 0.05) / (luminance("#1e2126") + 0.05) >= 3


def test_series_differ_also_without_colour():
    for part in ("marker", "dashes", "hatch", "colour"):
        assert len({getattr(look, part) for look in LOOKS}) == len(LOOKS), part


# --- names of any kind ------------------------------------------------------------------------------------------------


def test_odd_names_are_texts_and_nothing_else(drawing):
    svg = drawing(cube(runs=(ODD, "b"), memories=(ODD, "notes")), id="c1", label=ODD)
    root = ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert not [element for element in root.iter() if "script" in element.tag]
    svg.encode("utf-8")
    assert not re.search("[\x00-\x08\u202a-\u202e]", svg)


def test_a_name_with_dollars_is_no_formula():
    svg = dots(numbers_from("share", ["run"], [(("$x$",), share(0.5, 0.2, 0.8))]), id="c", label="x", rows="run")
    assert ">$x$</text>" in svg


def test_control_characters_and_those_that_turn_text_round_are_replaced():
    assert plain("a\x1b[0m\u202eb\ud83d") == "a\ufffd[0m\ufffdb\ufffd"


def test_a_long_name_is_cut_in_its_middle_and_fits():
    label = fitted("openai:a-model-with-a-very-long-name-2026-11-30", 120)
    assert width_of(label) <= 120
    assert label.startswith("openai")
    assert label.endswith("30")


def test_labels_that_would_look_the_same_are_numbered():
    names = [f"model-of-{middle * 20}-the-same" for middle in "abc"]
    labels = labels_of(names, 80)
    assert len(set(labels.values())) == 3
    assert all(width_of(label) <= 80 for label in labels.values())


# --- small, whatever is drawn -----------------------------------------------------------------------------------------


def test_twelve_runs_side_by_side_stay_under_forty_kilobytes(drawing):
    runs = [f"openai:model-with-a-long-name-{number}" for number in range(12)]
    many = cube(runs=runs, memories=("none", "notes", "both"), abilities=("IE", "CR", "IU", "IM", "MR", "AR"))
    assert len(many.cells) == 216
    assert len(drawing(many, id="mmrc1-abilities", label="x" * 250).encode()) < 40_000


def test_everything_lies_on_the_sheet(drawing):
    many = cube(runs=[f"model-{number}" for number in range(7)], memories=("none", "notes", "both"))
    root = ElementTree.fromstring(drawing(many, id="c", label="x"))
    height = float(root.get("viewBox").split()[3])
    for element in root.iter():
        if element.tag.endswith(("text", "use")):
            x, y = float(element.get("x", 0)), float(element.get("y", 0))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= height


# --- nothing that is not there ----------------------------------------------------------------------------------------


def marks(svg: str) -> int:
    return len(re.findall("<use ", svg))


@pytest.mark.parametrize("kind", ["dots", "lines", "radar"])
def test_a_number_that_is_not_defined_has_no_mark(kind):
    gone = [("m", memory, "CR") for memory in ("none", "notes")]
    whole = DRAWINGS[kind](cube(runs=("m", "k")), id="c", label="x")
    gap = DRAWINGS[kind](cube(runs=("m", "k"), leave_out=gone), id="c", label="x")
    assert marks(whole) - marks(gap) == 2


@pytest.mark.parametrize("kind", ["dots", "bars", "heat"])
def test_where_a_number_is_missing_stands_a_dash(kind):
    gone = [("m", "none", "CR"), ("m", "notes", "CR")] if kind == "heat" else [("m", "notes", "CR")]
    runs = ("m", "k")
    svg = DRAWINGS[kind](cube(runs=runs, leave_out=gone), id="c", label="x")
    assert ">\N{EN DASH}</text>" in svg
    assert "\N{EN DASH}" not in DRAWINGS[kind](cube(runs=runs), id="c", label="x")


def test_a_line_is_broken_where_a_bin_is_missing():
    where = {"id": "c", "label": "x", "bins": "ability", "series": "memory"}
    for numbers, steps in ((cube(), 3), (cube(leave_out=[("m", "none", "CR")]), 1)):
        drawn = re.search(
            r'<path d="([^"]*)" fill="none" stroke="#1a80bf" stroke-width="1.4"/>', lines(numbers, **where)
        )
        assert drawn[1].count("M") == steps


def test_bins_keep_their_order_where_the_first_series_lacks_one():
    numbers = cube(leave_out=[("m", "none", "IE"), ("m", "none", "CR")])
    assert numbers.values("ability") == ["IE", "CR", "IU", "IM"]
    assert numbers.where("memory", ["notes"]).values("ability") == ["IE", "CR", "IU", "IM"]


def test_n_stands_beside_each_number_and_unscored_where_there_are_some():
    numbers = numbers_from(
        "share", ["arm"], [(("a",), share(0.5, 0.2, 0.8, n=7)), (("b",), share(0.1, 0, 0.4, n=9, unscored=2))]
    )
    svg = dots(numbers, id="c", label="x", rows="arm")
    assert ">n 7</text>" in svg
    assert ">n 9 (u 2)</text>" in svg
    assert ">50.0</text>" in svg


def test_few_items_give_a_cell_a_dashed_frame():
    cells = [(("a", "m"), share(0.5, 0.1, 0.9, n=3)), (("b", "m"), share(0.5, 0.45, 0.55, n=300))]
    svg = heat(numbers_from("PCQ", ["type", "run"], cells), id="c", label="x", rows="type", columns="run")
    framed = re.findall(r'<path d="([^"]*)"[^>]*stroke-dasharray', svg)
    assert len(framed) == 1
    assert framed[0].count("M") == 1


def test_a_higher_value_has_a_deeper_cell():
    cells = [((name, "m"), share(value, value, value)) for name, value in (("a", 0.9), ("b", 0.1), ("c", 0.5))]
    svg = heat(numbers_from("PCQ", ["type", "run"], cells), id="c", label="x", rows="type", columns="run")
    found = re.findall(r'd="M[\d.]+ ([\d.]+)[^"]*" fill="#1a80bf" fill-opacity="([\d.]+)"', svg)
    a, b, c = (opacity for _, opacity in sorted((float(top), float(opacity)) for top, opacity in found))
    assert b < c < a < 0.65


# --- axes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "top", "ticks"),
    [
        ([0.1, 0.55], 1.0, (0.0, 0.2, 0.4, 0.6)),
        ([0.0, 0.0], 1.0, (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)),
        ([0.97, 1.2], 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([-0.3, 0.1], 1.0, (-0.3, -0.2, -0.1, 0.0, 0.1)),
        ([1.0, 5.0], 5.0, (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)),
    ],
)
def test_an_axis_has_round_numbers_and_holds_0_and_all_values(values, top, ticks):
    axis = axis_over(values, top=top)
    assert axis.ticks == pytest.approx(ticks)
    assert axis.low <= min(*values, 0)
    assert axis.high >= min(max(values), top)


def test_a_scale_of_scores_is_shown_whole_and_ticks_say_their_unit():
    numbers = cube()
    assert axis_of(numbers).ticks == (0, 1, 2, 3, 4, 5)
    assert tick_text(numbers, 3.0) == "3"
    shares = numbers_from("share", ["a"], [(("x",), share(0.3, 0.1, 0.5))])
    assert tick_text(shares, 0.2) == "20%"
    difference = numbers_from("difference", ["a"], [(("x",), share(-0.3, -0.5, 0.1))], signed=True)
    assert [tick_text(difference, value) for value in (-0.2, 0.0, 0.2)] == ["\N{MINUS SIGN}20", "0", "+20"]


# --- numbers as a table, and in words ---------------------------------------------------------------------------------


def test_the_table_has_every_number_with_interval_n_unscored_and_bounds():
    cells = [
        (("m", "a"), share(0.5, 0.25, 0.75, n=8, unscored=2, bounds=Interval(0.4, 0.6))),
        (("m", "b"), share(0.125, 0.0, 0.5, n=8)),
        (("m", "c"), None),
    ]
    table = table_of(numbers_from("rate", ["run", "arm"], cells), "Rates")
    assert table.columns == ("run", "arm", "rate (%)", "95% interval", "n", "unscored", "bounds")
    assert table.rows == (
        ("m", "a", "50.0", "25.0 to 75.0", "8", "2", "40.0 to 60.0"),
        ("m", "b", "12.5", "0.0 to 50.0", "8", "0", "-"),
    )


def test_a_few_numbers_are_all_told_and_of_many_the_ends():
    few = numbers_from("rate", ["arm"], [((name,), share(0.5, 0.2, 0.8)) for name in "ab"])
    assert told_in_words(few) == "Rate. a: 50.0% (20.0 to 80.0, n 20); b: 50.0% (20.0 to 80.0, n 20)."
    many = numbers_from("rate", ["arm"], [((str(i),), share(i / 10, 0, 1)) for i in range(10)])
    assert told_in_words(many) == (
        "Rate, 10 numbers. Lowest: 0: 0.0% (0.0 to 100.0, n 20). Highest: 9: 90.0% (0.0 to 100.0, n 20)."
    )


def test_differences_are_told_with_their_sign_in_percentage_points():
    numbers = numbers_from("difference", ["arms"], [(("a-b",), share(0.125, -0.1, 0.3))], signed=True)
    assert told_in_words(numbers) == "Difference. a-b: +12.5 percentage points (-10.0 to +30.0, n 20)."
    assert table_of(numbers, "x").columns[1] == "difference (percentage points)"
