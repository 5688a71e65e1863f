"""The page for people: who may come in, what they see, and that nothing they write is lost."""

from __future__ import annotations

import html
import re
import socket
import time

import pytest
from starlette.testclient import TestClient

from interbench_tasks.errors import PeopleError
from interbench_tasks.people.desk import Desk
from interbench_tasks.people.forms import Action, Choice, FeedbackForm, Field, own_forms
from interbench_tasks.people_page.app import MOST_BYTES, Page
from interbench_tasks.people_page.door import Door, allowed_hosts, host_of, same_origin
from interbench_tasks.people_page.serving import free_address
from tests.people_desks import HOSTILE, lay, png

HOST = "http://127.0.0.1"


class Browser:
    """One browser: keeps its cookie, and sends forms with their hidden fields."""

    def __init__(self, page: Page) -> None:
        self.client = TestClient(page.app(), base_url=HOST)
        self.last = None

    def get(self, path: str, **options):
        self.last = self.client.get(path, **options)
        return self.last

    def post(self, path: str, **fields):
        csrf = re.search(r'name="csrf" value="(\w+)"', self.last.text).group(1)
        data = {"csrf": csrf, **{name.replace("__", "."): value for name, value in fields.items()}}
        self.last = self.client.post(path, data=data)
        return self.last

    def come_in(self, token: str, annotator: str | None = None):
        self.get(f"/enter?token={token}")
        self.get("/")
        return self.post("/name", annotator=annotator) if annotator else self.last


@pytest.fixture
def desk(tmp_path):
    with Desk(tmp_path / "people.sqlite") as desk:
        yield desk


@pytest.fixture
def door():
    return Door(hosts=allowed_hosts("127.0.0.1"))


@pytest.fixture
def page(desk, door):
    return Page(desk, own_forms(), door)


def browser(page: Page, door: Door, annotator: str | None = "simulated-1") -> Browser:
    one = Browser(page)
    one.come_in(door.new_token(), annotator)
    return one


# --- who may come in --------------------------------------------------------------------------------------------


def test_without_a_link_nobody_comes_in(page):
    one = Browser(page)
    for path in ("/", "/next", "/queue", "/item/a", "/picture/picture1", "/status", "/enter", "/enter?token=guess"):
        answer = one.get(path)
        assert (answer.status_code, "interbench serve" in answer.text) == (403, True), path
    assert one.client.post("/item/a", data={"action": "send"}).status_code == 403


def test_a_link_lets_one_browser_in_once(page, door):
    token = door.new_token()
    first, second = Browser(page), Browser(page)
    answer = first.get(f"/enter?token={token}")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert token not in cookie
    assert first.get("/").status_code == 200
    assert first.get(f"/enter?token={token}").status_code == 200, "the same browser may open its link again"
    answer = second.get(f"/enter?token={token}")
    assert (answer.status_code, "used already" in answer.text) == (403, True)


def test_a_preview_of_a_link_does_not_use_it_up(page, door):
    token = door.new_token()
    one = Browser(page)
    assert "set-cookie" not in one.client.head(f"/enter?token={token}").headers
    assert "set-cookie" in one.get(f"/enter?token={token}").headers


def test_who_is_in_can_invite_another_browser(page, door, desk):
    first = browser(page, door)
    path = re.search(r'value="(/enter\?token=[\w-]+)"', html.unescape(first.post("/invite").text)).group(1)
    second = Browser(page)
    second.get(path)
    assert "Who are you?" in second.get("/").text


def test_a_browser_that_is_in_stays_in_when_the_page_is_started_again(desk, door, page):
    one = browser(page, door)
    again = Page(desk, own_forms(), Door(hosts=allowed_hosts("127.0.0.1")))
    other = TestClient(again.app(), base_url=HOST, cookies=one.client.cookies)
    assert "Nothing waits for you" in other.get("/next").text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1"])
def test_the_page_does_not_answer_to_a_strangers_name(page, door, host):
    one = browser(page, door)
    for path in ("/next", f"/enter?token={door.new_token()}"):
        assert one.get(path, headers={"host": host}).status_code == 421
    assert one.get("/next", headers={"host": "localhost:9999"}).status_code == 200, "a tunnel changes the port"


def test_a_form_of_another_page_is_refused_and_its_words_are_shown(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    csrf = re.search(r'name="csrf" value="(\w+)"', one.last.text).group(1)
    sent = {"action": "send", "field.text": "my words"}
    wrong = one.client.post("/item/a", data={**sent, "csrf": "x" * 32})
    assert (wrong.status_code, "my words" in wrong.text) == (403, True)
    foreign = one.client.post("/item/a", data={**sent, "csrf": csrf}, headers={"origin": "http://evil.example"})
    assert foreign.status_code == 403
    assert desk.answers("a") == ()


def test_browsers_are_told_to_trust_nothing_but_this_page(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    for path in ("/item/a", "/picture/picture1", "/static/page.js", "/nowhere", "/status", "/queue"):
        headers = one.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in one.get("/item/a").text
    assert "style=" not in one.last.text
    assert not re.search(r'(?:src|href)="(?:https?:)?//', one.last.text)


def test_the_names_of_hosts_are_read_without_port():
    assert (host_of("a.b:1"), host_of("[::1]:2"), host_of("[::1"), host_of("x:y")) == ("a.b", "::1", "", "x")
    assert same_origin(None, "a:1")
    assert same_origin("http://a:1", "a:1")
    assert not same_origin("null", "a:1")
    assert not same_origin("http://a:2", "a:1")


# --- who are you ------------------------------------------------------------------------------------------------


def test_the_annotator_says_once_who_they_are(page, door, desk):
    lay(desk, "a")
    one = Browser(page)
    one.come_in(door.new_token())
    assert one.get("/next").url.path == "/"
    wrong = one.post("/name", annotator="ann@example.org")
    assert (wrong.status_code, "pseudonym" in wrong.text, 'value="ann@example.org"' in wrong.text) == (422, True, True)
    assert one.post("/name", annotator="simulated-1").url.path == "/item/a"
    assert one.get("/").url.path == "/item/a"
    assert "Who are you?" in one.post("/leave").text


def test_a_form_that_somebody_else_opened_in_this_browser_is_not_handed_in(page, door, desk):
    lay(desk, "a")
    one = browser(page, door, "simulated-1")
    shown = one.last
    one.post("/leave")
    for name in (None, "simulated-2"):
        if name:
            one.get("/")
            one.post("/name", annotator=name)
        one.last = shown
        answer = one.post("/item/a", action="send", field__text="words of one", opened_by="simulated-1")
        assert (answer.status_code, "words of one" in answer.text) == (409, True)
        assert f"this browser is {name or 'nobody'} now" in answer.text
    assert desk.answers("a") == ()


# --- what people see --------------------------------------------------------------------------------------------


def test_an_item_shows_all_that_was_said_and_what_is_wanted(page, door, desk):
    lay(desk, "a", level=2, rounds=[{"told": "", "reply": "It is A"}, {"told": "Look again", "reply": "Still A"}])
    shown = html.unescape(browser(page, door).get("/item/a").text)
    for text in ("Which shape comes next", "a star", "B. a star", "It is A", "Look again", "Still A", "simple hint"):
        assert text in shown
    assert shown.index("It is A") < shown.index("Look again") < shown.index("Still A")
    assert "<kbd>s</kbd>" in shown


def test_the_right_answer_can_be_hidden(desk, door):
    lay(desk, "a")
    one = browser(Page(desk, own_forms(), door, hide_answer=True), door)
    assert "Right answer" not in one.get("/item/a").text


def test_html_in_a_reply_is_shown_as_text(page, door, desk):
    lay(
        desk,
        HOSTILE.replace("/", ""),
        "a",
        question=HOSTILE,
        target=HOSTILE,
        instruction=HOSTILE,
        options={HOSTILE: HOSTILE},
        rounds=[{"told": HOSTILE, "reply": HOSTILE}],
    )
    one = browser(page, door)
    for path in ("/item/a", "/queue"):
        text = one.get(path).text
        assert "<script>document" not in text
        assert "<img src=x" not in text
        assert "&lt;script&gt;" in text


def test_half_characters_of_a_model_hurt_nothing(page, door, desk):
    lay(desk, "a", rounds=[{"told": "", "reply": "half \ud83d, nul \x00"}])
    one = browser(page, door)
    assert "half ?" in one.get("/item/a").text
    desk.save_draft("a", "simulated-1", {"text": "\ud83d"})
    assert one.get("/item/a").status_code == 200
    assert desk.submit("a", "simulated-1", {"text": "\ud83d"}).content == {"text": "\ud83d"}


def test_pictures_come_from_the_desk_and_nothing_else_does(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    answer = one.get("/picture/picture1")
    assert (answer.content, answer.headers["content-type"]) == (png(), "image/png")
    assert one.get("/picture/other").status_code == 404
    from interbench_tasks.people.desk import StoredPicture

    desk.put([], {"svg": StoredPicture(mime="image/svg+xml", data=b"<svg onload='alert(1)'/>")})
    assert one.get("/picture/svg").status_code == 404, "a picture type that can hold script is not served"


def test_the_queue_tells_who_is_on_what(page, door, desk):
    lay(desk, *[f"item-{number}" for number in range(120)])
    desk.claim("item-1", "simulated-2")
    desk.save_draft("item-2", "simulated-1", {"text": "begun"})
    one = browser(page, door)
    first = one.get("/queue").text
    assert "somebody is on it (simulated-2)" in first
    assert "your draft" in first
    assert "Page 1 of 3" in first
    assert "item-110" in one.get("/queue?page=3").text
    for odd in ("0", "-1", "x", "9" * 30, "²"):
        assert one.get(f"/queue?page={odd}").status_code == 200


def test_a_run_that_is_gone_is_told(page, door, desk):
    desk.begin_run("r", "t")
    lay(desk, "a", run="r")
    one = browser(page, door)
    assert "not there at the moment" not in one.get("/item/a").text
    desk.end_run("r")
    assert "The run that asks this is not there at the moment" in one.get("/item/a").text
    one.post("/item/a", action="send", field__text="kept for it")
    assert "run that asks this is not there" in one.last.text
    assert desk.answers("a")[0].content["text"] == "kept for it"


def test_who_has_nothing_to_do_is_told_of_items_of_runs_that_are_gone(page, door, desk):
    desk.begin_run("gone", "t")
    lay(desk, "a", run="gone")
    desk.end_run("gone")
    desk.begin_run("here", "t")
    one = browser(page, door)
    assert "1 item belongs to a run that is not there" in one.last.text
    assert one.get("/status").json()["for_you"] == 0, "else the page would go round in circles"
    assert "its run is not there" in one.get("/queue").text
    desk.end_run("here")
    assert one.get("/next").url.path == "/item/a"


def test_a_note_in_an_address_is_one_of_ours_or_nothing(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    assert "Skipped. It comes again" in one.get("/item/a?note=skipped").text
    assert "evil" not in one.get("/item/a?note=evil").text
    assert one.get("/next?note=evil").url.query == b""


# --- what people do ---------------------------------------------------------------------------------------------


def test_feedback_is_handed_in_and_the_next_item_comes(page, door, desk):
    lay(desk, "a", "b")
    one = browser(page, door)
    one.post("/item/a", action="send", field__text="Look at\r\nthe corners.", seconds="12.5", counted="1")
    assert one.last.url.path == "/item/b"
    assert "Handed in." in one.last.text
    (answer,) = desk.answers("a")
    assert answer.content == {"action": "send", "text": "Look at\nthe corners."}
    assert (answer.annotator, answer.seconds) == ("simulated-1", 12.5)
    one.post("/item/b", action="marked_right", field__text="", asked="yes")
    assert desk.answers("b")[0].content["action"] == "marked_right"
    assert "Nothing waits for you" in one.last.text


def test_what_waits_falls_with_each_answer_also_where_an_item_needs_another_ones_too(page, door, desk):
    lay(desk, "a", "b", needs=2)
    one, other = browser(page, door), browser(page, door, "simulated-2")
    assert "<strong>2</strong> waiting" in one.get("/queue").text
    one.post("/item/a", action="send", field__text="Look.")
    assert "<strong>1</strong> waiting" in one.last.text
    status = one.get("/status").json()
    assert (status["waiting"], status["to_do"]) == (2, 1)
    assert "<strong>2</strong> waiting" in other.get("/queue").text


def test_that_a_run_may_take_an_answer_is_said_only_where_a_run_asks(page, door, desk):
    lay(desk, "a", "b")
    one = browser(page, door)
    one.post("/item/a", action="send", field__text="Look.")
    assert "`Undo last` takes it back.<" in html.unescape(one.last.text)
    desk.begin_run("r", "t")
    one.post("/item/b", action="send", field__text="Look.")
    assert "takes it back, as long as no run has taken it." in html.unescape(one.last.text)


def test_a_reply_that_contradicts_the_shown_answer_is_marked_right_only_when_asked_once_more(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    answer = one.post("/item/a", action="marked_right", field__text="")
    assert (answer.status_code, desk.answers("a")) == (422, ())
    assert "The reply says A, and the right answer is B. Mark it as right once more" in html.unescape(answer.text)
    assert '<input type="hidden" name="asked" value="yes">' in answer.text
    assert one.post("/item/a", action="marked_right", field__text="", asked="yes").status_code == 200
    assert desk.answers("a")[0].content["action"] == "marked_right"


def test_whoever_does_not_see_the_answer_is_not_told_it_by_a_question(desk, door):
    lay(desk, "a")
    one = browser(Page(desk, own_forms(), door, hide_answer=True), door)
    assert one.post("/item/a", action="marked_right", field__text="").status_code == 200
    assert len(desk.answers("a")) == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"action": "send", "field__text": "  "}, "The feedback is empty"),
        ({"action": "marked_right", "field__text": "my words"}, "gets no feedback"),
        ({"action": "wave", "field__text": "my words"}, "none of this form"),
        ({"field__text": "my words"}, "none of this form"),
    ],
)
def test_what_cannot_be_handed_in_is_told_beside_the_words(page, door, desk, fields, said):
    lay(desk, "a")
    one = browser(page, door)
    answer = one.post("/item/a", **fields)
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    if "my words" in fields["field__text"]:
        assert ">my words</textarea>" in answer.text
    assert desk.answers("a") == ()


def test_an_item_that_was_answered_meanwhile_is_told_and_the_words_stay(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    desk.submit("a", "simulated-2", {"action": "send", "text": "quicker"})
    answer = one.post("/item/a", action="send", field__text="my long words")
    assert answer.status_code == 409
    assert "answered meanwhile by simulated-2" in answer.text
    assert "my long words" in answer.text
    assert "my long words" in one.get("/item/a").text, "also when the page is opened again"
    assert "quicker" not in answer.text


def test_a_second_answer_to_ones_own_item_is_told(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    one.post("/item/a", action="send", field__text="first")
    again = one.post("/item/a", action="send", field__text="second")
    assert (again.status_code, "You have answered this item" in again.text) == (409, True)
    assert "What you wrote is kept: see below." in again.text, "the words of a second tab are not lost"
    assert ">second\n</textarea>" in one.get("/item/a").text
    desk.save_draft("a", "simulated-1", {"text": "first", "action": ""})
    assert "it was not handed in" not in one.post("/item/a", action="send", field__text="first").text
    assert [answer.content["text"] for answer in desk.answers("a")] == ["first"]
    desk.take(["a"])
    assert "The run has taken the answer" in one.get("/item/a").text


def test_an_item_that_another_works_on_is_not_given(page, door, desk):
    lay(desk, "a")
    browser(page, door, "simulated-2")
    one = browser(page, door)
    assert "1 item is with other annotators" in one.last.text
    shown = one.get("/item/a").text
    assert "simulated-2 is working on this item" in shown
    assert '<form method="post" action="/item/a"' not in shown


def test_undo_brings_the_last_answer_back_until_the_run_took_it(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    assert 'action="/undo"' not in one.last.text
    one.post("/item/a", action="send", field__text="too fast")
    assert one.post("/undo").url.path == "/item/a"
    assert "too fast" in one.last.text
    one.post("/item/a", action="send", field__text="better")
    csrf = {"csrf": re.search(r'name="csrf" value="(\w+)"', one.last.text).group(1)}
    desk.take(["a"])
    refused = one.client.post("/undo", data=csrf)
    assert (refused.status_code, "the run has taken it" in refused.text) == (409, True)


def test_a_draft_saves_itself_and_comes_back(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    shown = one.last
    saved = one.post("/item/a/draft", field__text="half a thou", seconds="3.5", counted="1")
    assert saved.json() == {"saved": True, "state": "yours"}
    assert ">half a thou</textarea>" in one.get("/item/a").text
    assert 'name="seconds" value="3.5"' in one.last.text
    one.last = shown
    one.post("/item/a", action="send", field__text="half a thou")
    one.last = shown
    one.post("/item/a/draft", field__text="half a thou")
    assert desk.draft("a", "simulated-1") is None, "a page that is left saves once more"


def test_a_skipped_item_comes_last_with_its_draft(page, door, desk):
    lay(desk, "a", "b")
    one = browser(page, door)
    one.post("/item/a/skip", field__text="an idea", action="")
    assert (one.last.url.path, "Skipped." in one.last.text) == ("/item/b", True)
    one.post("/item/b/skip", field__text="")
    assert one.last.url.path == "/item/a"
    assert "an idea" in one.last.text
    assert desk.draft("b", "simulated-1") is None


def test_time_is_counted_without_javascript_too(page, door, desk):
    lay(desk, "a", "b", "c")
    one = browser(page, door)
    one.post("/item/a", action="send", field__text="x", seconds="2", shown_at=str(time.time() - 30), counted="0")
    assert desk.answers("a")[0].seconds == pytest.approx(32, abs=2)
    one.post("/item/b", action="send", field__text="x", seconds="nan", counted="1")
    one.post("/item/c", action="send", field__text="x", seconds="much")
    assert [desk.answers(name)[0].seconds for name in "bc"] == [0.0, 0.0]


def test_status_tells_an_open_page_what_waits(page, door, desk):
    one = browser(page, door)
    assert one.get("/status").json() == {"waiting": 0, "to_do": 0, "for_you": 0, "runs": 0}
    lay(desk, "a", "b")
    assert one.get("/status").json()["for_you"] == 2


def test_what_is_not_there_is_a_clear_page(page, door, desk):
    one = browser(page, door)
    assert (one.get("/item/zzz").status_code, "no item 'zzz'" in html.unescape(one.last.text)) == (404, True)
    assert one.get("/nowhere").status_code == 404
    assert one.get("/static/secrets").status_code == 404
    assert one.get("/favicon.ico").status_code == 204


def test_a_text_that_is_too_long_is_told(page, door, desk):
    lay(desk, "a")
    one = browser(page, door)
    assert one.post("/item/a", action="send", field__text="x" * (MOST_BYTES + 1)).status_code == 413
    many = "&".join(f"f{number}=1" for number in range(500))
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert one.client.post("/item/a", content=many, headers=headers).status_code == 413


def test_a_full_disk_shows_the_words_to_copy(page, door, desk, monkeypatch):
    lay(desk, "a")
    one = browser(page, door)

    def full(*_, **__):
        raise PeopleError("the disk is full. Free space")

    monkeypatch.setattr(desk, "submit", full)
    answer = one.post("/item/a", action="send", field__text="an hour of work")
    assert answer.status_code == 507
    assert "the disk is full" in answer.text
    assert "an hour of work" in answer.text


def test_a_form_of_another_kind_has_choices_with_keys(desk, door):
    class Scale(FeedbackForm):
        kind = "scale"

        def fields(self, payload):
            choices = (
                Choice(value="5", label="5", key="5", help="all of it"),
                Choice(value="0", label="0", key="0"),
            )
            return (Field(name="score", label="Score", kind="choice", choices=choices, hint="by the bands"),)

        def actions(self, payload):
            return (Action(name="send", label="Hand in"),)

        def problems(self, payload, content):
            from interbench_tasks.people.forms import field_problems

            return field_problems(self, payload, content)

    from interbench_tasks.people.desk import NewItem

    desk.put([NewItem(id="s", kind="scale", payload={"question": "q"})])
    one = browser(Page(desk, {"scale": Scale()}, door), door)
    shown = one.get("/item/s").text
    assert 'type="radio" name="field.score" value="5" data-key="5"' in shown
    assert "all of it" in shown
    assert one.post("/item/s", action="send", field__score="7").status_code == 422
    assert "not on the scale" in one.last.text
    one.post("/item/s", action="send", field__score="5")
    assert desk.answers("s")[0].content == {"score": "5", "action": "send"}


def test_an_item_of_an_unknown_kind_is_a_clear_page(desk, door):
    lay(desk, "a")
    one = browser(Page(desk, {}, door), door)
    assert (one.last.status_code, "no form for items of the kind" in html.unescape(one.last.text)) == (500, True)
    assert "feedback" in one.get("/queue").text


# --- speed ------------------------------------------------------------------------------------------------------


def test_pages_with_two_thousand_waiting_items_take_less_than_a_tenth_of_a_second(page, door, desk):
    lay(desk, *[f"item-{number}" for number in range(2000)])
    for number in range(0, 2000, 3):
        desk.save_draft(f"item-{number}", f"p{number % 7}", {"text": "x"})
    one = browser(page, door)
    for path in ("/next", "/item/item-1000", "/queue?page=20", "/status"):
        began = time.process_time()
        for _ in range(5):
            assert one.get(path).status_code == 200
        assert (time.process_time() - began) / 5 < 0.1, path


# --- where it is served -----------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told_and_the_next_one_is_found():
    first = free_address("127.0.0.1", 0)
    first.socket.listen()
    with pytest.raises(PeopleError, match=f"port {first.port}: it is in use; name another --port"):
        free_address("127.0.0.1", first.port)
    assert first.url == f"http://127.0.0.1:{first.port}"
    assert first.is_local
    assert first.names(["me"]) == ("127.0.0.1", "me")
    first.socket.close()
    usual = free_address("127.0.0.1", None)
    usual.socket.listen()
    following = free_address("127.0.0.1", None)
    assert following.port > usual.port
    for one in (usual, following):
        one.socket.close()


def test_small_answers_are_sent_at_once():
    address = free_address("127.0.0.1", 0)
    assert address.socket.proto == socket.IPPROTO_TCP, "else asyncio leaves Nagle's algorithm on, which costs 40 ms"
    address.socket.close()


def test_served_everywhere_it_answers_to_the_names_of_this_machine():
    address = free_address("0.0.0.0", 0)
    assert not address.is_local
    assert len(address.names()) >= 2
    assert "0.0.0.0" not in address.url
    address.socket.close()


def test_an_address_that_is_not_of_this_machine_is_told():
    with pytest.raises(PeopleError, match="cannot be served at 203.0.113.9"):
        free_address("203.0.113.9", 0)
