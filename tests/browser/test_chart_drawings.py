"""Charts as a browser shows them: every text on its sheet and on no other, in the page's colour, under any policy."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pytest

from interbench_tasks.offers import interbench_report_sections
from interbench_tasks.report.drawing import WIDTH
from interbench_tasks.report.svg import SHOWN
from interbench_tasks.report_parts import Chart, ReportRun
from tests.chart_runs import conversation_run, critique_run, feedback_run
from tests.feedback_records import ALL_ARMS

pytestmark = pytest.mark.browser

LONG = "openai:a-model-with-a-long-name-of-2026-11-30-version-"
STRICT = "default-src 'none'"
"""A page that allows nothing, not even a style that stands at an element."""
BOXES = """() => [...document.querySelectorAll('svg')].map(svg => {
    const sheet = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter(text => !text.getAttribute('transform'));
    return {id: svg.id, width: sheet.width, height: sheet.height, texts: texts.map(text => {
        const box = text.getBoundingClientRect();
        return [text.textContent, box.left - sheet.left, box.top - sheet.top, box.width, box.height];
    })};
})"""
"""What stands where, in pixels from each drawing's corner; turned texts, whose boxes are larger than they, left out."""


def charts_page(runs: list[ReportRun], folder: Any) -> tuple[str, list[Chart]]:
    """A page with all charts of the runs."""
    sections = [section(runs) for section in interbench_report_sections().values()]
    charts = [part for section in sections if section for part in section.parts if isinstance(part, Chart)]
    path = folder / "charts.html"
    policy = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(STRICT)}">'
    head = f"<!doctype html><meta charset=utf-8><meta name=color-scheme content='light dark'>{policy}"
    path.write_text(head + "".join(chart.svg for chart in charts), encoding="utf-8")
    return path.as_uri(), charts


@pytest.fixture
def opened(chromium) -> Callable[..., Any]:
    """`opened(url, scheme)`: the page, and what its console said."""
    contexts = []

    def open_page(url: str, scheme: str = "light") -> tuple[Any, list[str]]:
        context = chromium.new_context(viewport={"width": 800, "height": 600}, color_scheme=scheme)
        contexts.append(context)
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(url)
        return page, said

    yield open_page
    for context in contexts:
        context.close()


def runs_of(folder: Any, n: int, names: Callable[[int], str]) -> list[ReportRun]:
    found = []
    for number in range(n):
        name = names(number)
        found.append(feedback_run(name, arms=ALL_ARMS, rounds=3, flips=4, seed=number, task="loops"))
        found.append(critique_run(name, task="flaws", more_styles=("formal",)))
        talk = conversation_run(folder, f"run{number}", judges=("judge one", "judge two", "three"), task="talks")
        found.append(ReportRun(**{**{f: getattr(talk, f) for f in talk.__dataclass_fields__}, "name": name}))
    return found


def overlapping(texts: list[list[Any]]) -> list[tuple[str, str]]:
    """Texts whose boxes share more than a hair: letters do not fill their boxes."""
    found = []
    for place, (one, left, top, width, height) in enumerate(texts):
        for other, left2, top2, width2, height2 in texts[place + 1 :]:
            across = min(left + width, left2 + width2) - max(left, left2)
            down = min(top + height, top2 + height2) - max(top, top2)
            if across > 1 and down > 0.35 * min(height, height2):
                found.append((one, other))
    return found


@pytest.mark.parametrize(
    ("n", "names"),
    [
        (1, lambda number: "simulated:default"),
        (3, lambda number: f"{LONG}{number}"),
        (12, lambda number: f"{LONG}{number}"),
        (2, lambda number: f"{'模型' * 30}{number}<script>&amp;"),
    ],
    ids=["one", "three", "twelve", "wide letters"],
)
def test_every_text_is_on_its_sheet_and_on_no_other_text(tmp_path, opened, n, names):
    url, charts = charts_page(runs_of(tmp_path, n, names), tmp_path)
    page, said = opened(url)
    assert not said
    drawings = page.evaluate(BOXES)
    assert len(drawings) == len(charts) > 25
    for drawing in drawings:
        assert drawing["texts"], drawing["id"]
        for text, left, top, width, height in drawing["texts"]:
            assert left >= -1, (drawing["id"], text)
            assert top >= -1, (drawing["id"], text)
            assert left + width <= drawing["width"] + 1, (drawing["id"], text)
            assert top + height <= drawing["height"] + 1, (drawing["id"], text)
        assert not overlapping(drawing["texts"]), drawing["id"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_have_the_pages_colour_and_marks_that_of_their_series_under_the_strictest_policy(
    tmp_path, opened, scheme
):
    url, _ = charts_page([feedback_run(arms=ALL_ARMS)], tmp_path)
    page, said = opened(url, scheme)
    assert not said
    colours = page.evaluate(
        """() => ['text', 'use'].map(tag => [...new Set([...document.querySelectorAll(`svg ${tag}`)].map(
            element => getComputedStyle(element).fill))])"""
    )
    ink = page.evaluate("() => getComputedStyle(document.body).color")
    assert colours[0] == [ink]
    assert ink == {"light": "rgb(0, 0, 0)", "dark": "rgb(255, 255, 255)"}[scheme]
    assert set(colours[1]) <= {"rgb(26, 128, 191)", "rgb(213, 94, 0)"}
    assert len(colours[1]) == 2


def test_a_drawing_shrinks_with_its_page_and_is_read_out_as_one_picture(tmp_path, opened):
    url, charts = charts_page([feedback_run()], tmp_path)
    page, _ = opened(url)
    picture = page.get_by_role("img", name=f"{charts[0].title}. {charts[0].alt}")
    assert picture.count() == 1
    assert picture.bounding_box()["width"] == WIDTH * SHOWN
    page.evaluate("() => document.querySelectorAll('svg').forEach(s => s.setAttribute('width', '360'))")
    half = picture.bounding_box()
    assert half["width"] == 360
