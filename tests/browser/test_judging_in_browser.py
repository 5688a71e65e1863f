"""Judging stored replies in a real browser, by keyboard alone: two people, a third where they differ, the labels."""

from __future__ import annotations

import re

import pytest

from interbench_tasks.labels.items import label_run
from interbench_tasks.labels.judging import JudgingDesk
from interbench_tasks.labels.opinions import labelled_run
from interbench_tasks.labels.sampling import Design, drawn, keep_sample
from interbench_tasks.labels.store import read_labels
from tests.browser.test_page_in_browser import SEND, come_in
from tests.critiques import YES, record
from tests.labelled_runs import critique_manifest, talk_run, write_run

pytestmark = pytest.mark.browser
CHECKED = "[...document.querySelectorAll('input:checked')].map(one => `${one.name}=${one.value}`)"
HOSTILE = "<script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\"> No scale."


def judging(folder, served, n: int) -> JudgingDesk:
    run = label_run(folder)
    keep_sample(folder, drawn(run, Design(n=n, strata="none")), labelled=())
    one = JudgingDesk(labelled_run(folder), served.desk, grace_s=0)
    one.lay()
    return one


@pytest.fixture
def critiques(tmp_path, served) -> JudgingDesk:
    rows = [record(number, [YES] * 3, text=HOSTILE) for number in range(3)]
    return judging(write_run(tmp_path / "run", rows, critique_manifest()), served, n=3)


def item_of(tab) -> str:
    return re.search(r"/item/([^?]+)", tab.url)[1]


def on_the_next(tab, before: str) -> str:
    tab.wait_for_url(lambda url: "/item/" in url and before not in url)
    return item_of(tab)


def test_a_critique_is_judged_by_keys_and_a_digit_means_the_first_open_question(served, visitor, critiques):
    tab = visitor()
    come_in(tab, served, "p1")
    item = item_of(tab)
    for key in "y2r1":
        tab.keyboard.press(key)
    assert tab.evaluate(CHECKED) == [
        "field.detected=yes",
        "field.diag=2",
        "field.strategy=refusal",
        "field.strategy_score=1",
    ]
    tab.keyboard.press("0")  # all are answered: the one with the focus is changed
    assert "field.strategy_score=0" in tab.evaluate(CHECKED)
    tab.keyboard.press(SEND)
    on_the_next(tab, item)
    (answer,) = served.desk.answers(item)
    assert (answer.content["diag"], answer.content["strategy_score"]) == ("2", "0")


def test_n_says_no_and_does_not_leave_the_item(served, visitor, critiques):
    tab = visitor()
    come_in(tab, served, "p1")
    item = item_of(tab)
    tab.keyboard.press("n")
    assert item_of(tab) == item
    assert tab.evaluate(CHECKED) == ["field.detected=no"]
    assert tab.locator("header kbd", has_text="n").count() == 0, "a key that the form needs is not shown as the page's"
    tab.keyboard.press(SEND)
    on_the_next(tab, item)


def test_two_people_differ_and_a_third_gets_the_item_and_all_become_labels(served, visitor, critiques):
    first = None
    for name, keys in (("p1", "y2r1"), ("p2", "n")):
        tab = visitor()
        come_in(tab, served, name)
        first = first or item_of(tab)
        assert item_of(tab) == first
        tab.keyboard.type(keys)
        tab.keyboard.press(SEND)
        on_the_next(tab, first)
        critiques.collect()
    assert served.desk.item(first).needs == 3
    third = visitor()
    come_in(third, served, "p3")
    assert item_of(third) == first
    third.keyboard.type("n")
    third.keyboard.press(SEND)
    on_the_next(third, first)
    assert critiques.collect() == 3
    folder = served.desk.path.parent / "run"
    assert [(label.annotator, label.values["detected"]) for label in read_labels(folder)] == [
        ("p1", "yes"),
        ("p2", "no"),
        ("p3", "no"),
    ]


def test_a_reply_with_script_stays_text_and_a_choice_survives_a_reload(served, visitor, critiques):
    tab = visitor()
    come_in(tab, served, "p1")
    assert "No scale." in tab.locator(".reply .text").inner_text()
    assert "<script>" in tab.locator(".reply .text").inner_text()
    assert "broken" not in tab.title()
    tab.keyboard.type("y2")
    tab.get_by_text("Draft saved").wait_for()
    tab.reload()
    assert tab.evaluate(CHECKED) == ["field.detected=yes", "field.diag=2"]


def test_an_answer_is_scored_from_0_to_5_with_the_bands_beside(tmp_path, served, visitor):
    one = judging(talk_run(tmp_path / "talks", 10), served, n=15)
    tab = visitor()
    come_in(tab, served, "p1")
    item = item_of(tab)
    assert tab.locator(".choice").count() == 6
    assert "as 3" in tab.locator(".choice").nth(4).inner_text()  # they share a band, which is told once
    tab.keyboard.press("4")
    tab.keyboard.press(SEND)
    on_the_next(tab, item)
    assert one.collect(all_there_is=True) == 1
    (label,) = read_labels(tmp_path / "talks")
    assert dict(label.values) == {"score": "4"}
    assert label.seconds is not None
    assert label.seconds > 0
