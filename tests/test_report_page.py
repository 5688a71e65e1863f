"""The page: everything is there, escaped, and nothing is loaded from anywhere; also the other formats."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from interbench_tasks.errors import InterbenchError
from interbench_tasks.report.main_table import as_table, cell_of, main_tables
from interbench_tasks.report.svg_checks import safe_svg
from interbench_tasks.report.writing import report_text, write_report
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable, Section
from interbench_tasks.runs.score import score_folder
from tests.report_runs import HOSTILE, OFFERS, PICTURE, estimate, loop, loops, run_of_loops, talk, thumbnail, write_run

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path id="p" d="M0 0h9"/></svg>'
TABLE = ReportTable(caption="all numbers", columns=("arm", "rate"), rows=(("detail", "50.0"),))


def chart(svg=SVG, **changes):
    return Chart(**{"title": "Rates", "svg": svg, "alt": "detail 50.0%", "table": TABLE, **changes})


def offers(**sections):
    return replace(OFFERS, report_sections=sections)


def page_of(*folders, **sections):
    return report_text(list(folders), offers(**sections))[0]


class Tags(HTMLParser):
    """What a page asks a browser to do."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.attributes = []
        self.texts = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_data(self, data):
        if self.tags and self.tags[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture
def folder(tmp_path):
    made = run_of_loops(tmp_path / "run")
    score_folder(made, OFFERS)
    return made


# --- what is there ------------------------------------------------------------------------------------------------


def test_the_parts_come_in_their_order(folder):
    section = Section(title="Arms", intro="How to read it.", parts=("A word.", TABLE, chart()))
    page = page_of(folder, arms=lambda runs: section)
    order = ['id="runs"', 'id="numbers"', 'id="s1"', 'id="transcripts"', 'id="made"']
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    text = Tags(page).text
    for said in ("Arms", "How to read it.", "A word.", "all numbers", "Rates", "detail 50.0%", "finished", "pupil"):
        assert said in text
    assert text.index("How to read it.") < text.index("A word.") < text.index("The numbers of this chart")


def test_every_metric_is_there_headline_first(folder):
    metrics = json.loads((folder / "metrics.json").read_text())["metrics"]
    page = page_of(folder)
    shown = re.findall(r'<th scope="row"><code>([^<]+)</code>', page)
    assert sorted(shown) == sorted(metrics)
    metric_set = OFFERS.metrics["feedback_loop"]
    assert metric_set is not None
    headline = page[: page.index("more metrics")].count('<th scope="row"><code>')
    assert 0 < headline < len(metrics)
    assert "40.0" in page
    assert "11.8 to 76.9" in page


def test_a_section_that_raises_is_named_and_the_others_are_shown(folder):
    def broken(runs):
        raise KeyError("no such metric")

    sections = {
        "broken": broken,
        "silent": lambda runs: None,
        "odd": lambda runs: "text",
        "uneven": lambda runs: Section(
            title="U", parts=(ReportTable(caption="c", columns=("a",), rows=(("1", "2"),)),)
        ),
        "good": lambda runs: Section(title="Good one"),
    }
    page = page_of(folder, **sections)
    text = Tags(page).text
    assert "the section 'broken' is missing: KeyError: 'no such metric'" in text
    assert "the section 'odd' is missing" in text
    assert "table 'c' has 1 columns, and a row of 2 cells" in text
    assert "silent" not in text
    assert 'id="s1"' in page
    assert 'id="s2"' not in page
    assert "Good one" in text


def test_sections_get_the_runs_with_their_numbers_and_summaries(folder):
    seen = []
    page_of(folder, watcher=lambda runs: seen.extend(runs))
    (run,) = seen
    assert (run.name, run.task, run.protocol, run.folder) == ("pupil", "loops", "feedback_loop", folder)
    assert run.metrics["accuracy"].n == 5
    assert run.categories["odd"]["accuracy"].n == 2
    assert [summary["id"] for summary in run.summaries] == [f"loop{n}" for n in range(6)]


def test_an_unfinished_run_carries_a_mark(tmp_path):
    page = page_of(run_of_loops(tmp_path / "run", data__n_episodes=40))
    text = Tags(page).text
    assert "UNFINISHED" in text
    assert "only 6 of 40 episodes are here" in text
    assert "6 of 40" in text
    assert page.count(">UNFINISHED</") == 2  # among the runs, and above the numbers


def test_what_cannot_be_read_is_named_in_the_page(folder):
    with (folder / "episodes.jsonl").open("a") as file:
        file.write('{"torn')
    assert "episodes.jsonl, line 7 cannot be read" in Tags(page_of(folder)).text


def test_simulated_models_are_marked(tmp_path):
    assert "say nothing about a real one" not in page_of(run_of_loops(tmp_path / "a"))
    assert "say nothing about a real one" in page_of(run_of_loops(tmp_path / "b", simulated=["provider"]))


def test_several_runs_stand_side_by_side(tmp_path):
    run_of_loops(tmp_path / "1", receiver="one", generation__receiver__temperature=0.0)
    run_of_loops(tmp_path / "2", receiver="two", generation__receiver__temperature=1.0)
    page = page_of(tmp_path)
    row = re.search(r"<tr><th scope=\"row\"><code>accuracy</code></th>(.*?)</tr>", page)[1]
    assert row.count('class="run num"') == 2
    settings = page[page.index("what differs stands first") :]
    assert settings.index("generation.receiver.temperature") < settings.index("protocol")


def test_costs_are_told_and_what_is_unknown_is_not_zero(folder):
    role = {"model": "m", "calls": 1200, "failed_calls": 0, "failed_attempts": 3, "calls_without_usage": 2}
    tokens = {"input_tokens": 5000, "cached_input_tokens": 0, "output_tokens": 70, "reasoning_tokens": 0}
    used = {**role, **tokens, "cost_usd": None, "price": None, "from_ledger": {"replies": 4, **tokens, "cost_usd": 0.5}}
    content = {"roles": {"receiver": used}, "limits": {}, "stopped": None}
    (folder / "usage.json").write_text(json.dumps(content))
    text = Tags(page_of(folder)).text
    for said in ("1,200", "5,000 (+ 2 calls unknown)", "unknown", "0.50 USD"):
        assert said in text
    (folder / "usage.json").unlink()
    assert "do not tell what was used" in page_of(folder)


# --- nothing but what is there ------------------------------------------------------------------------------------


def hostile_page(tmp_path):
    records = [loop(0, "A", "B", said=HOSTILE), loop(1, "B")]
    records = [replace(record, category=HOSTILE, episode_id=f"{HOSTILE}{n}") for n, record in enumerate(records)]
    folder = write_run(tmp_path / "run", records, receiver=HOSTILE)
    section = Section(
        title=HOSTILE,
        intro=HOSTILE,
        parts=(HOSTILE, replace(TABLE, caption=HOSTILE, rows=((HOSTILE, HOSTILE),)), chart(title=HOSTILE, alt=HOSTILE)),
    )
    return page_of(folder, odd=lambda runs: section)


def test_nothing_that_was_said_becomes_markup(tmp_path):
    tags = Tags(hostile_page(tmp_path))
    assert tags.tags.count("img") == 0
    inline = [attribute for attribute in tags.attributes if attribute[1].startswith("on")]
    assert inline == []
    page = hostile_page(tmp_path)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    assert "document.title='owned'</script>" not in page
    assert "&lt;script&gt;document.title=" in page


def test_the_page_can_be_written_whatever_was_said(tmp_path):
    assert "\ufffd" in hostile_page(tmp_path)
    hostile_page(tmp_path).encode("utf-8")


def test_the_page_loads_nothing_and_its_policy_forbids_it(folder):
    page = page_of(folder, arms=lambda runs: Section(title="Arms", parts=(chart(),)))
    tags = Tags(page)
    loading = [a for a in tags.attributes if a[1] in ("src", "href", "srcset", "action", "data", "poster")]
    assert all(value.startswith(("#", "data:")) for _, _, value in loading)
    policy = next(value for tag, key, value in tags.attributes if tag == "meta" and value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    css = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in css
    assert "@import" not in css
    assert set(re.findall(r"https?://[\w.]+", page)) <= {"http://www.w3.org"}


def test_the_policy_is_the_digest_of_the_only_script(folder):
    import base64
    import hashlib

    page = page_of(folder)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.replace("&#39;", "'")


def test_a_picture_stands_in_the_page_once(tmp_path):
    run_of_loops(tmp_path / "1", receiver="one")
    run_of_loops(tmp_path / "2", receiver="two")
    page = page_of(tmp_path)
    assert page.count(f'id="p-{PICTURE.digest}"') == 1
    assert "Pictures are shown small" in page


def test_without_pictures_the_page_says_so(tmp_path):
    page = page_of(write_run(tmp_path / "run", loops()))
    assert "The run folders hold no pictures" in page
    assert f'id="p-{PICTURE.digest}"' not in page


# --- size ---------------------------------------------------------------------------------------------------------


def test_a_thousand_episodes_with_pictures_are_under_5_mb(tmp_path):
    import random

    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(4000)]
    files = [thumbnail(256, f"hsl({n}, 50%, 50%)") + bytes(3000) for n in range(20)]
    records, pictures = [], {}
    for number in range(1000):
        digest = f"{number:032x}"
        pictures[digest] = files[number % 20]
        record = loop(number, "A", "C", said=" ".join(dice.choices(words, k=80)) + " ")
        shown = replace(
            record.turns[0], user=replace(record.turns[0].user, content=(replace(PICTURE, digest=digest), "?"))
        )
        records.append(replace(record, turns=(shown, *record.turns[1:])))
    folder = write_run(tmp_path / "run", records, pictures=pictures)
    written = write_report([folder], tmp_path / "r.html", offers())
    assert written.n_episodes == 1000
    assert written.n_bytes == (tmp_path / "r.html").stat().st_size < 5_000_000
    assert (tmp_path / "r.html").read_text().count('id="p-') == 1000


# --- drawings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("<script>1</script>", "<script>"),
        ("<g onclick='x()'/>", "event handler"),
        ("<image href='http://x.org/a.png'/>", "a reference to http"),
        ("<use xmlns:xlink='http://www.w3.org/1999/xlink' xlink:href='other.svg#a'/>", "a reference to other.svg"),
        ("<rect fill='url(http://x.org/a)'/>", "a reference in fill"),
        ("<style>@import 'x.css'</style>", "style sheet"),
        ("<style>a{fill:url(x)}</style>", "style sheet"),
        ("<foreignObject/>", "<foreignobject>"),
        ("<a href='#x'/>", "<a>"),
        ("<g>", "no well-formed SVG"),
    ],
)
def test_a_drawing_that_is_not_safe_is_refused(inside, why):
    with pytest.raises(InterbenchError, match=re.escape(why)):
        safe_svg(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>', "c-")


def test_what_is_no_drawing_is_refused():
    for text in ("", "hello", "<!DOCTYPE svg [<!ENTITY a 'b'>]><svg/>"):
        with pytest.raises(InterbenchError):
            safe_svg(text, "c-")


def test_ids_of_two_drawings_do_not_meet():
    svg = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" aria-labelledby="t d">'
        '<title id="t">id="t"</title>'
        '<defs><clipPath id="a"/></defs><g clip-path="url(#a)"><use href="#d"/></g></svg>'
    )
    safe = safe_svg(svg, "c1-")
    assert safe.startswith("<svg ")
    for part in ('aria-labelledby="c1-t c1-d"', '<title id="c1-t">id="t"<', 'id="c1-a"', "url(#c1-a)", 'href="#c1-d"'):
        assert part in safe


def test_a_drawing_that_is_refused_leaves_its_numbers(folder):
    bad = chart(svg="<svg onload='x()'/>")
    page = page_of(folder, arms=lambda runs: Section(title="Arms", parts=(bad,)))
    text = Tags(page).text
    assert "The drawing is left out: the drawing holds the event handler onload" in text
    assert "all numbers" in text


# --- the main table -----------------------------------------------------------------------------------------------


def run(name, **metrics):
    from pathlib import Path

    return ReportRun(name=name, folder=Path(name), task="t", protocol="p", manifest={}, metrics=metrics)


def test_a_metric_that_a_run_lacks_is_a_dash_never_a_zero():
    (main,) = main_tables([run("a", x=estimate(), y=estimate()), run("b", y=estimate(0.25))], {"a": ["y"], "b": ["y"]})
    assert [(row.name, row.headline) for row in main.rows] == [("y", True), ("x", False)]
    assert main.rows[1].cells[1].value == "-"
    assert as_table(main).rows[0] == ("y", "50.0 [20.0 to 80.0]", "10", "0", "25.0 [20.0 to 80.0]", "10", "0")


def test_unscored_rows_are_counted_and_bounded():
    cell = cell_of(estimate(unscored=3, bounds=(0.4, 0.7)))
    assert (cell.unscored, cell.bounds) == ("3", "40.0 to 70.0")
    assert cell_of(estimate(bounds=(0.5, 0.5))).bounds == ""
    count = cell_of(estimate(4.0, method="count", ci95=None, unscored=2))
    assert (count.value, count.interval, count.unscored) == ("4", "", "2")


def test_scores_are_in_points():
    (main,) = main_tables([run("a", s=estimate(3.25, points=5.0, ci95=(2.0, 4.0)))], {})
    assert main.rows[0].cells[0].value == "3.25"
    assert "points up to 5" in main.units
    assert main.n_headline == 1


def test_main_metrics_stand_by_category_with_their_n(folder):
    page = Tags(page_of(folder)).text
    table = page[page.index("main metrics by category") :]
    assert "even 66.7 [20.8, 93.9] n=3" in table
    assert "odd 0.0 [0.0, 65.8] n=2 (u 1)" in table


def test_without_several_categories_there_is_no_such_table(tmp_path):
    records = [replace(record, category="one") for record in loops()]
    assert "by category" not in page_of(write_run(tmp_path / "run", records))


# --- other formats ------------------------------------------------------------------------------------------------


@pytest.fixture
def with_section():
    section = Section(title="Arms | all", intro="Read *this*.", parts=("A word.", TABLE, chart()))
    return offers(arms=lambda runs: section)


def test_markdown_has_all_tables_and_escapes(folder, with_section):
    text, _ = report_text([folder], with_section, "md")
    assert "## Arms \\| all" in text
    assert "Read \\*this\\*." in text
    assert text.count("| detail | 50.0 |") == 2
    assert "| accuracy | 40.0 \\[11.8 to 76.9\\] | 5 | 1 |" in text


def test_csv_has_one_value_a_line(folder, with_section):
    rows = list(csv.DictReader(io.StringIO(report_text([folder], with_section, "csv")[0])))
    of_all = [row for row in rows if row["row"] == "accuracy" and row["table"] == "metrics"]
    assert [row["category"] for row in of_all] == ["", "even", "odd"]
    accuracy = of_all[0]
    assert (float(accuracy["value"]), accuracy["n"], accuracy["unscored"]) == (0.4, "5", "1")
    assert accuracy["method"] == "wilson"
    cells = [row for row in rows if row["table"] == "Arms | all: all numbers"]
    assert [(row["row"], row["column"], row["text"]) for row in cells] == [("detail", "rate", "50.0")] * 2


def test_json_has_everything_but_drawings(folder, with_section):
    content = json.loads(report_text([folder], with_section, "json")[0])
    (one,) = content["runs"]
    assert one["metrics"] == json.loads((folder / "metrics.json").read_text())["metrics"]
    assert (one["n_episodes"], one["unfinished"], content["problems"]) == (6, [], [])
    parts = content["sections"][0]["parts"]
    assert parts[0] == "A word."
    assert parts[2] == {
        "chart": "Rates",
        "alt": "detail 50.0%",
        "caption": "all numbers",
        "columns": ["arm", "rate"],
        "rows": [["detail", "50.0"]],
    }
    assert "<svg" not in json.dumps(content)


def test_latex_has_all_tables(folder, with_section):
    text, _ = report_text([folder], with_section, "latex")
    assert text.count(r"\begin{tabular}") == 4
    assert "accuracy & 40.0 [11.8 to 76.9] & 5 & 1 \\\\" in text


@pytest.mark.parametrize("format", ["md", "csv", "json", "latex"])
def test_every_format_says_what_is_missing(tmp_path, format):
    folder = run_of_loops(tmp_path / "run", data__n_episodes=40)
    with (folder / "episodes.jsonl").open("a") as file:
        file.write("torn")
    text, _ = report_text([folder], OFFERS, format)
    if format != "csv":  # which has room for values only; the command tells it
        assert "line 7" in text
        assert "UNFINISHED" in text


@pytest.mark.parametrize("format", ["html", "md", "csv", "json", "latex"])
def test_every_format_can_be_written_whatever_was_said(tmp_path, format):
    folder = write_run(tmp_path / "run", [replace(talk(), category=HOSTILE)], receiver=HOSTILE, task="talks")
    written = write_report([folder], tmp_path / "out", OFFERS, format)
    assert (tmp_path / "out").stat().st_size == written.n_bytes > 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_report_that_cannot_be_written_says_so_and_leaves_nothing(folder, tmp_path):
    with pytest.raises(InterbenchError, match=r"nowhere/r\.html: cannot be written: No such file"):
        write_report([folder], tmp_path / "nowhere" / "r.html", OFFERS)
