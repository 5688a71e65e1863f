"""The report in a real Chromium: from a disk, without a network, by keyboard, with filters, search and print."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace

import pytest

from interbench_tasks.record_json import record_to_json
from interbench_tasks.report.writing import write_report
from interbench_tasks.report_parts import Chart, ReportTable, Section
from interbench_tasks.runs.score import score_folder
from tests.report_damage import damaged
from tests.report_runs import HOSTILE, OFFERS, PICTURE, loop, loops, run_of_loops, talk, thumbnail, write_run

pytestmark = pytest.mark.browser
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 9"><path stroke="currentColor" d="M0 4h90"/></svg>'
TABLE = ReportTable(caption="rates", columns=("arm", "rate"), rows=(("detail", "50.0"),))
SECTION = Section(title="Arms", parts=(Chart(title="Rates", svg=SVG, alt="detail 50.0%", table=TABLE),))
SECTIONS = replace(OFFERS, report_sections={"arms": lambda runs: SECTION})


@pytest.fixture(scope="module")
def report_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run_of_loops(folder / "1", receiver="one")
    second = [replace(record, turns=tuple(_worded(turn) for turn in record.turns)) for record in loops()]
    write_run(folder / "2", second, receiver="two", pictures={PICTURE.digest: thumbnail()})
    write_run(
        folder / "3",
        [talk()],
        receiver="two",
        task="talks",
        protocol="conversation",
        metrics="mmrc",
        protocol_options={},
    )
    write_report([folder], folder / "r.html", SECTIONS)
    return folder / "r.html"


def _worded(turn):
    return replace(turn, reply=replace(turn.reply, text=f"{turn.reply.text} SECOND", reasoning="let me think"))


class Opened:
    """A page that is open, and everything that it asked for or complained of."""

    def __init__(self, browser, file, **context):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.page = self.context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.goto(f"file://{file}")
        self.page.wait_for_selector("body[data-ready]")

    def __enter__(self):
        return self.page, self

    def __exit__(self, *_):
        self.context.close()


def pick(page, label, text):
    box = page.locator(f"select[name={label}]")
    options = box.locator("option").all_text_contents()
    box.select_option(label=next(option for option in options if option.startswith(text)))


def count(page):
    """How many episodes are listed, once all transcripts that a search needs are read."""
    page.wait_for_function("() => !document.querySelector('#count').textContent.includes('reading')")
    return page.locator("#count").text_content()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def shown(page):
    page.wait_for_selector("body.reading")
    return page.locator("#episode")


def test_the_page_works_from_a_disk_and_asks_for_nothing(chromium, report_file):
    with Opened(chromium, report_file) as (page, opened):
        press(page, "j", "j", "j")
        shown(page)
        outside = [url for url in opened.requests if not url.startswith("data:")]
        assert outside == [f"file://{report_file}"]
        assert opened.errors == []


def test_filters_and_search_find_what_is_asked_for(chromium, report_file):
    with Opened(chromium, report_file) as (page, _):
        assert count(page) == "13 of 13 episodes"
        pick(page, "run", "one")
        assert count(page) == "6 of 13 episodes"
        pick(page, "outcome", "corrected (")
        assert count(page) == "2 of 13 episodes"
        pick(page, "round", "round 1")
        assert count(page) == "2 of 13 episodes"
        pick(page, "category", "even")
        assert count(page) == "0 of 13 episodes"
        page.get_by_role("button", name="Clear").click()
        for label, n in (("judges disagree", 1), ("answer leaked", 2), ("error", 2)):
            page.get_by_label(label).check()
            assert count(page) == f"{n} of 13 episodes"
            page.get_by_label(label).uncheck()
        page.get_by_label("Search what was said").fill("ZUGZWANG")
        page.get_by_text("2 of 13 episodes").wait_for()
        page.get_by_label("Search what was said").fill("judge-2 says so")
        assert count(page) == "1 of 13 episodes"


def test_an_episode_is_shown_with_everything(chromium, report_file):
    with Opened(chromium, report_file) as (page, _):
        pick(page, "run", "two (loops)")
        press(page, "Escape", "j", "j", "j")
        episode = shown(page)
        text = episode.inner_text()
        for said in ("loop2", "not corrected", "answer leaked", "C. owl", "I think A SECOND", "Branch detail",
                     "Feedback (detail) by teacher", "Look again.", "✗ wrong", "answer read: C (declared)",
                     "What the provider answered (1 of 1 right)", "Reasoning (12 characters)"):  # fmt: skip
            assert said in text, said
        assert not episode.get_by_text("let me think").first.is_visible()
        episode.get_by_text("Reasoning (12 characters)").first.click()
        assert episode.get_by_text("let me think").first.is_visible()
        picture = episode.locator("img").first
        assert picture.evaluate("image => image.complete && image.naturalWidth") == 48
        assert picture.get_attribute("alt") == "Picture of 640 x 480 pixels"


def test_a_conversation_is_shown_with_notes_and_verdicts(chromium, report_file):
    with Opened(chromium, report_file) as (page, _):
        page.get_by_label("judges disagree").check()
        press(page, "j")
        episode = shown(page)
        episode.get_by_text("Notes after this turn (note_taking)").nth(1).click()
        assert episode.locator("ins").filter(has_text="Tofu is 4").count() == 1
        assert episode.locator("del").filter(has_text="Tofu is 3").count() == 1
        text = episode.inner_text()
        for said in ("Question q1 · IE", "She is 4.", "judge-1 says so", "score 5", "judge-2 says so", "score 3"):
            assert said in text
        assert text.index("Tofu is 3.") < text.index("No, she is 4.") < text.index("Question q1")
        assert text.count("How old is Tofu?") == 1


def test_the_browser_is_used_by_keyboard_alone(chromium, report_file):
    with Opened(chromium, report_file) as (page, _):
        press(page, "j")
        assert shown(page).locator("h3").text_content() == "loop0"
        press(page, "j", "k", "k")
        assert shown(page).locator("h3").text_content() == "loop0"
        selected = page.locator("[role=option][aria-selected=true]")
        assert selected.get_attribute("id") == page.locator("#list").get_attribute("aria-activedescendant")
        assert selected.get_attribute("aria-setsize") == "13"
        press(page, "End")
        page.get_by_role("heading", name="talk0").wait_for()
        press(page, "Enter")
        assert page.evaluate("() => document.activeElement.id") == "episode"
        press(page, "Escape")
        assert page.evaluate("() => document.activeElement.id") == "list"
        assert page.locator("body.reading").count() == 0
        press(page, "/")
        page.keyboard.type("jk/")
        assert page.get_by_label("Search what was said").input_value() == "jk/"
        assert count(page) == "0 of 13 episodes"
        press(page, "Escape")
        assert count(page) == "13 of 13 episodes"
        press(page, "Escape", "j")
        assert shown(page).locator("h3").text_content() == "loop0"


def test_the_same_item_of_another_run_is_one_step_away(chromium, report_file):
    with Opened(chromium, report_file) as (page, _):
        press(page, "j", "j", "j")
        episode = shown(page)
        assert "two (loops) not corrected" in " ".join(episode.locator("dl").first.inner_text().split())
        episode.get_by_role("button", name="two (loops)").click()
        episode.get_by_text("I think A SECOND").wait_for()
        assert episode.locator("h3").text_content() == "loop2"


def test_a_link_to_an_episode_opens_it(chromium, report_file):
    with Opened(chromium, f"{report_file}#episode-3") as (page, _):
        assert shown(page).locator("h3").text_content() == "loop3"
        assert page.url.endswith("#episode-3")


def test_nothing_that_was_said_is_run(chromium, tmp_path):
    records = [
        replace(
            loop(0, "A", "C", said=HOSTILE), episode_id=HOSTILE, category=HOSTILE, options={"A": HOSTILE, "B": "x"}
        ),
        loop(1, "B"),
    ]
    folder = write_run(tmp_path / "run", records, receiver=HOSTILE)
    section = replace(SECTION, title=HOSTILE, intro=HOSTILE)
    write_report([folder], tmp_path / "r.html", replace(OFFERS, report_sections={"x": lambda runs: section}))
    with Opened(chromium, tmp_path / "r.html") as (page, opened):
        press(page, "j")
        episode = shown(page)
        assert "<script>document.title='owned'</script>" in episode.inner_text()
        assert page.title() != "owned"
        assert page.locator("#episode script, #episode img[onerror], main img[onerror]").count() == 0
        assert opened.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800, 480])
def test_the_page_fits_its_width_in_light_and_dark(chromium, report_file, scheme, width):
    with Opened(chromium, report_file, viewport={"width": width, "height": 800}, color_scheme=scheme) as (page, _):
        press(page, "j")
        shown(page)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        ink, paper = page.evaluate(
            "() => [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        )
        brightness = [sum(map(int, colour[4:-1].split(","))) for colour in (ink, paper)]
        assert (brightness[0] > brightness[1]) == (scheme == "dark")


def test_print_has_tables_charts_and_the_open_transcript(chromium, report_file):
    with Opened(chromium, report_file) as (page, _):
        page.emulate_media(media="print")
        assert page.locator("#numbers table").first.is_visible()
        assert page.locator(".chart svg").is_visible()
        assert not page.locator("#transcripts").is_visible()
        page.emulate_media(media="screen")
        press(page, "j", "j")
        shown(page)
        page.emulate_media(media="print")
        assert page.locator("#episode").is_visible()
        assert not page.locator("#list").is_visible()
        assert not page.locator("#filters").is_visible()
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#numbers details.more table").first.is_visible()
        assert page.pdf()[:4] == b"%PDF"


def test_metrics_can_be_found_by_name(chromium, report_file):
    with Opened(chromium, report_file) as (page, _):
        more = page.locator("details.more").first
        more.locator("summary").click()
        more.get_by_label("Find a metric").fill("n_flip")
        visible = more.locator("tbody tr:visible").all_text_contents()
        assert all("n_flip" in text for text in visible)


def test_a_page_of_5000_episodes_answers_at_once(chromium, tmp_path):
    dice = random.Random(2)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(2000)]
    records = [
        loop(number, dice.choice("ABC"), dice.choice("BC"), said=" ".join(dice.choices(words, k=40)) + " ")
        for number in range(5000)
    ]
    folder = write_run(tmp_path / "run", records, pictures={PICTURE.digest: thumbnail()})
    score_folder(folder, OFFERS)
    began = time.perf_counter()
    write_report([folder], tmp_path / "r.html", OFFERS)
    assert time.perf_counter() - began < 30
    measure = """([label, value]) => new Promise((done) => {
        const input = [...document.querySelectorAll('#filters label')].find((l) => l.textContent.startsWith(label))
            .querySelector('select, input');
        input.value = value;
        const began = performance.now();
        input.dispatchEvent(new Event(input.tagName === 'SELECT' ? 'change' : 'input'));
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
    })"""
    with Opened(chromium, tmp_path / "r.html") as (page, _):
        taken = [page.evaluate(measure, [label, "1"]) for label in ("Outcome", "Solved in", "Category")]
        page.get_by_role("button", name="Clear").click()
        page.get_by_label("Search what was said").fill(words[5])
        while "reading" in count(page).lower():
            time.sleep(0.02)
        taken.append(page.evaluate(measure, ["Search", words[7]]))
        assert 0 < int(count(page).split()[0].replace(",", "")) < 5000
        assert page.locator(".item").count() < 60
    assert sorted(taken)[-1] < 200


def test_damaged_episodes_are_shown_as_far_as_they_can_be_read(chromium, tmp_path):
    dice = random.Random(7)
    whole = [record_to_json(record) for record in (*loops(), talk())]
    objs = [damaged(dice.choice(whole), dice, 2) | {"episode_id": f"e{n}", "doc_id": n} for n in range(60)]
    folder = run_of_loops(tmp_path / "run")
    (folder / "episodes.jsonl").write_text("".join(json.dumps(obj) + "\n" for obj in objs), encoding="utf-8")
    write_report([folder], tmp_path / "r.html", OFFERS)
    with Opened(chromium, tmp_path / "r.html") as (page, opened):
        n = int(count(page).split()[0])
        assert n > 30
        refused = 0
        for _ in range(n):
            before = page.locator("#episode h3").all_text_contents()
            press(page, "j")
            while page.locator("#episode h3").all_text_contents() == before:
                if page.get_by_text("This transcript cannot be shown").count():
                    break
                time.sleep(0.005)
            refused += page.get_by_text("This transcript cannot be shown").count()
        assert opened.errors == []
        assert refused <= n // 4
        page.get_by_label("Search what was said").fill("zugzwang")
        while "reading" in count(page).lower():
            time.sleep(0.02)
        assert opened.errors == []


def test_turns_that_continue_nothing_are_shown_too(chromium, tmp_path):
    record = loop(0, "A", "C")
    lost = replace(
        record.turns[2], index=7, parent=8, branch="lost", reply=replace(record.turns[2].reply, text="LOST 1")
    )
    ring = replace(lost, index=8, parent=7, reply=replace(lost.reply, text="LOST 2"))
    folder = write_run(tmp_path / "run", [replace(record, turns=(*record.turns, lost, ring)), loop(1, "B")])
    write_report([folder], tmp_path / "r.html", OFFERS)
    with Opened(chromium, tmp_path / "r.html") as (page, opened):
        press(page, "j")
        episode = shown(page)
        episode.get_by_text("Turns that continue none of the others").click()
        text = episode.inner_text()
        assert text.count("LOST 1") == text.count("LOST 2") == 1
        assert opened.errors == []
