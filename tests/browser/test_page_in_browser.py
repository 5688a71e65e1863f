"""The page in a real browser: keys alone, drafts, a server that dies, replies that hold HTML and script."""

from __future__ import annotations

import re

import pytest

from interbench_tasks.people.desk import StoredPicture
from tests.people_desks import HOSTILE, lay, png

pytestmark = pytest.mark.browser
SEND = "Control+Enter"


def come_in(tab, served, annotator: str = "simulated-1") -> None:
    """By keyboard alone."""
    tab.goto(served.link)
    tab.wait_for_url(f"{served.url}/")
    tab.locator("#annotator:focus").wait_for()  # by itself
    tab.keyboard.type(annotator)
    tab.keyboard.press("Enter")
    tab.wait_for_url(re.compile(r"/(item/|next)"))


def at(tab, item: str) -> None:
    tab.wait_for_url(re.compile(rf"/item/{item}(\?|$)"))


def path_of(url: str) -> str:
    return url.partition("?")[0]


def test_everything_is_done_by_keyboard_alone(served, visitor):
    lay(served.desk, "a", "b", "c")
    tab = visitor()
    come_in(tab, served)
    at(tab, "a")
    tab.keyboard.press("w")
    tab.keyboard.type("Look at the corners. r s u n q")  # in a text, keys are letters
    tab.keyboard.press(SEND)
    at(tab, "b")
    assert served.desk.answers("a")[0].content["text"] == "Look at the corners. r s u n q"
    tab.keyboard.press("r")
    tab.get_by_text("Mark it as right once more").wait_for()  # the reply says A, the answer shown is B
    tab.keyboard.press("r")
    at(tab, "c")
    assert served.desk.answers("b")[0].content["action"] == "marked_right"
    tab.keyboard.press("u")
    at(tab, "b")
    tab.keyboard.press("s")
    at(tab, "c")
    tab.keyboard.press("w")
    tab.keyboard.type("x")
    tab.keyboard.press("Escape")
    tab.keyboard.press("q")
    tab.wait_for_url("**/queue")
    tab.keyboard.press("n")
    at(tab, "c")
    assert tab.input_value("textarea") == "x"
    for _ in range(12):  # every control can be reached by Tab too
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.textContent").startswith("Send feedback"):
            break
    tab.keyboard.press("Enter")
    at(tab, "b")
    assert served.desk.answers("c")[0].content["text"] == "x"


def test_a_picture_is_enlarged_and_closed_by_keyboard_and_by_mouse(served, visitor):
    lay(served.desk, "a")
    tab = visitor()
    come_in(tab, served)
    picture = tab.locator("a.picture img")
    assert picture.evaluate("image => image.naturalWidth") == 320
    is_open = "document.getElementById('zoom').open"
    tab.keyboard.press("z")
    assert tab.evaluate(is_open)
    assert tab.locator("#zoom img").evaluate(
        "image => image.complete || new Promise(r => image.onload = () => r(true))"
    )
    tab.keyboard.press("Enter")
    assert "full" in tab.locator(".frame").get_attribute("class")
    tab.keyboard.press("s")  # keys of the page below do nothing
    tab.keyboard.press("Escape")
    assert not tab.evaluate(is_open)
    tab.locator("a.picture:focus").wait_for()
    tab.keyboard.press("Enter")  # the link has the focus again
    assert tab.evaluate(is_open)
    tab.get_by_role("button", name="Close").click()
    assert not tab.evaluate(is_open)
    picture.click()
    assert tab.evaluate(is_open)
    assert tab.url.endswith("/item/a?note=named")


def test_arrows_lead_through_several_pictures(served, visitor):
    lay(served.desk, "a", pictures=["picture1", "picture2", "picture3"])
    served.desk.put([], {name: StoredPicture(mime="image/png", data=png(name)) for name in ("picture2", "picture3")})
    tab = visitor()
    come_in(tab, served)
    tab.keyboard.press("z")
    shown = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.keyboard.press(key)
        shown.append(tab.locator("#zoom img").get_attribute("src")[-1])
    assert shown == ["2", "3", "1", "3"]
    tab.keyboard.press("Escape")
    tab.locator("a.picture[href$=picture3]:focus").wait_for()


def test_html_and_script_in_a_reply_are_text(served, visitor):
    lay(
        served.desk,
        "a",
        question=HOSTILE,
        instruction=HOSTILE,
        options={"A": HOSTILE},
        rounds=[{"told": "", "reply": HOSTILE}, {"told": HOSTILE, "reply": HOSTILE}],
    )
    tab = visitor()
    come_in(tab, served)
    assert tab.locator(".reply .text").first.inner_text() == HOSTILE
    assert "hacked" not in tab.title()
    assert tab.locator("main script, main img:not([alt^=Picture])").count() == 0
    tab.fill("textarea", HOSTILE)
    tab.keyboard.press("Escape")
    tab.get_by_text("Draft saved").wait_for()
    tab.reload()
    assert tab.input_value("textarea") == HOSTILE
    assert "hacked" not in tab.title()


def test_a_draft_and_its_time_survive_a_reload(served, visitor):
    lay(served.desk, "a")
    tab = visitor()
    come_in(tab, served)
    tab.fill("textarea", "half a thought")
    tab.get_by_text("Draft saved").wait_for()
    assert served.desk.draft("a", "simulated-1").content["text"] == "half a thought"
    tab.fill("textarea", "half a thought, and more")
    tab.reload()  # before it saved itself
    assert tab.input_value("textarea") == "half a thought, and more"
    tab.get_by_text("Draft saved").wait_for()
    assert float(tab.input_value("[name=seconds]")) > 0.5
    tab.keyboard.press("w")
    tab.keyboard.press(SEND)
    tab.wait_for_url("**/next?note=sent")
    (answer,) = served.desk.answers("a")
    assert answer.content["text"] == "half a thought, and more"
    assert 0.5 < answer.seconds < 30
    assert served.desk.draft("a", "simulated-1") is None


def test_nothing_is_lost_while_the_server_is_gone(served, visitor):
    lay(served.desk, "a", "b")
    tab = visitor()
    come_in(tab, served)
    served.stop()
    tab.fill("textarea", "written while nobody listened")
    tab.keyboard.press(SEND)
    tab.get_by_text("Not sent: the server does not answer").wait_for()
    assert tab.locator("#offline").is_visible()
    assert tab.input_value("textarea") == "written while nobody listened"
    served.start()
    tab.locator("#offline").wait_for(state="hidden")
    tab.reload()
    assert tab.input_value("textarea") == "written while nobody listened", "from this browser's own store"
    tab.keyboard.press("w")
    tab.keyboard.press(SEND)
    at(tab, "b")
    assert served.desk.answers("a")[0].content["text"] == "written while nobody listened"


def test_an_answer_that_was_lost_on_its_way_is_still_there(served, visitor):
    lay(served.desk, "a", "b")
    tab = visitor()
    come_in(tab, served)
    lost = []

    def lose_the_first(route) -> None:
        if route.request.method == "POST" and route.request.url.endswith("/item/a") and not lost:
            lost.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    tab.route("**/item/**", lose_the_first)
    served.desk.save_draft = lambda *_: "yours"  # nor does the server have a draft
    tab.fill("textarea", "an hour of work")
    tab.keyboard.press(SEND)
    tab.wait_for_timeout(500)
    assert lost
    tab.goto(f"{served.url}/item/a")
    assert tab.input_value("textarea") == "an hour of work"
    tab.keyboard.press("w")
    tab.keyboard.press(SEND)
    at(tab, "b")
    assert tab.evaluate("Object.keys(localStorage)") == [], "what the server has is not kept twice"


def test_two_annotators_never_get_the_same_item(served, visitor):
    lay(served.desk, *[f"i{number}" for number in range(6)])
    one, two = visitor(), visitor()
    come_in(one, served, "simulated-1")
    come_in(two, served, "simulated-2")
    for number in range(3):
        for tab in (one, two):
            tab.keyboard.press("w")
            tab.keyboard.type(f"feedback {number}")
            before = path_of(tab.url)
            tab.keyboard.press(SEND)
            tab.wait_for_url(lambda url, old=before: path_of(url) != old)
    answers = [served.desk.answers(f"i{number}") for number in range(6)]
    assert [len(each) for each in answers] == [1] * 6
    assert sorted(each[0].annotator for each in answers) == ["simulated-1"] * 3 + ["simulated-2"] * 3
    one.get_by_text("Everything on this desk is answered").wait_for()


def test_an_item_that_was_answered_meanwhile_is_told_and_the_words_stay(served, visitor):
    lay(served.desk, "a")
    tab = visitor()
    come_in(tab, served)
    served.desk.submit("a", "simulated-2", {"action": "send", "text": "quicker"})
    tab.fill("textarea", "my own words")
    tab.get_by_text("somebody else has answered this item meanwhile").wait_for()
    tab.get_by_role("button", name="Send feedback").click()
    tab.get_by_text("answered meanwhile by simulated-2").wait_for()
    assert "my own words" in tab.input_value("#kept")


def test_a_page_with_nothing_goes_on_by_itself_when_something_comes(served, visitor):
    tab = visitor()
    come_in(tab, served)
    tab.get_by_text("Nothing waits for you").wait_for()
    lay(served.desk, "late")
    at(tab, "late")


def test_an_empty_feedback_is_told_beside_the_field_and_in_view(served, visitor):
    lay(served.desk, "a", rounds=[{"told": "", "reply": "line\n" * 80}])
    tab = visitor(viewport={"width": 1280, "height": 800})
    come_in(tab, served)
    tab.keyboard.press("w")
    tab.keyboard.press(SEND)
    tab.get_by_text("The feedback is empty").wait_for()
    box = tab.get_by_text("The feedback is empty").bounding_box()
    assert 60 < box["y"] < 780, "below the bar, above the end of the window"
    assert tab.evaluate("document.activeElement.tagName") == "TEXTAREA"
    assert served.desk.answers("a") == ()


def test_the_page_works_without_javascript(served, visitor):
    lay(served.desk, "a", "b")
    tab = visitor(java_script_enabled=False)
    come_in(tab, served)
    tab.fill("textarea", "plain")
    tab.get_by_role("button", name="Send feedback").click()
    at(tab, "b")
    assert served.desk.answers("a")[0].content["text"] == "plain"
    tab.get_by_role("button", name="Skip").click()
    at(tab, "b")
    tab.get_by_role("button", name="Undo last").click()
    at(tab, "a")
    assert tab.input_value("textarea") == "plain"


def test_who_has_no_link_sees_a_clear_page(served, visitor):
    tab = visitor()
    answer = tab.goto(f"{served.url}/enter?token=guessed")
    assert answer.status == 403
    assert "You need a link" in tab.inner_text("main")
    used = served.link
    tab.goto(used)
    other = visitor()
    assert other.goto(used).status == 403
    assert "used already" in other.inner_text("main")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800, 400])
def test_nothing_is_cut_off_at_any_width_and_texts_have_contrast(served, visitor, scheme, width):
    lay(served.desk, "a", rounds=[{"told": "", "reply": "word" * 200}, {"told": "x" * 300, "reply": "B"}])
    lay(served.desk, "b")
    tab = visitor(viewport={"width": width, "height": 800}, color_scheme=scheme)
    come_in(tab, served)
    tab.keyboard.press("r")  # from now on there is something to undo, so the bar is full
    at(tab, "b")
    tab.goto(f"{served.url}/item/a")
    tab.goto(f"{served.url}/item/b")
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    tab.evaluate("document.querySelector('.who').open = true")
    menu = tab.locator(".menu").bounding_box()
    assert menu["x"] >= 0
    assert menu["x"] + menu["width"] <= width
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.evaluate(CONTRAST, ".text, button, label, h1, h2, .counts, kbd") >= 4.5


CONTRAST = """selector => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const contrast = (element) => {
    const opacity = Number(getComputedStyle(element).opacity);
    const below = ground(element);
    const ink = numbers(getComputedStyle(element).color).map((v, i) => v * opacity + (below[i] ?? 0) * (1 - opacity));
    const [a, b] = [light(ink), light(below)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  return Math.min(...[...document.querySelectorAll(selector)].filter((e) => e.offsetParent).map(contrast));
}"""
"""The lowest contrast of what a selector finds, by WCAG 2's formula."""
