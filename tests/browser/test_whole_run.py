"""A whole run with people: the harness's command line, the page, two annotators, three rounds; both are killed."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interbench_tasks.people.desk import Desk
from tests.people_desks import HOSTILE
from tests.people_runs import MARKED, N, Process, beginning, command, rounds_of, student, until, write_people_task
from tests.servers.openai_server import OpenAIServer

pytestmark = [pytest.mark.browser, pytest.mark.integration]


@pytest.fixture
def begin(tmp_path) -> Iterator[Callable[..., Process]]:
    with beginning(tmp_path) as start:
        yield start


def open_page(begin, folder: Path, port: int = 0) -> tuple[Process, list[str], int]:
    """The page by its command, its links and its port."""
    cli = "from interbench_tasks.cli import main; main()"
    served = ["serve", str(folder / "out"), "--links", "2", "--port", str(port)]
    page = begin([sys.executable, "-c", cli, *served], f"page-{time.monotonic()}", PYTHONUNBUFFERED="1")
    until(lambda: page.said.count("open: ") == 2, "the page starts", page, 30)
    links = re.findall(r"open: (\S+)", page.said)
    return page, links, int(re.search(r":(\d+)/", links[0])[1])


def come_in(tab, link: str, annotator: str) -> None:
    tab.goto(link)
    tab.locator("#annotator:focus").wait_for()
    tab.keyboard.type(annotator)
    tab.keyboard.press("Enter")
    tab.wait_for_url(re.compile(r"/(item/|next)"))


def answer_one(tab) -> None:
    """One item, by keyboard alone."""
    tab.wait_for_url(re.compile(r"/item/"), timeout=60_000)
    shown = tab.inner_text("main")
    assert "hacked" not in tab.title()
    assert HOSTILE.split(">")[0] in shown
    before = tab.url.partition("?")[0]
    if f"number {MARKED}:" in shown:
        with tab.expect_navigation():
            tab.keyboard.press("r")
        if tab.get_by_text("Mark it as right once more").count():  # it contradicts the answer that is shown
            tab.keyboard.press("r")
    else:
        level = re.search(r"level (\d)", shown)[1]
        tab.keyboard.press("w")
        tab.keyboard.type(f"Feedback of level {level}: look at the ears.")
        tab.keyboard.press("Control+Enter")
    tab.wait_for_url(lambda url: url.partition("?")[0] != before)


@pytest.mark.slow
def test_two_annotators_three_rounds_a_killed_page_and_a_killed_run(tmp_path, visitor, begin):
    write_people_task(tmp_path)
    place = tmp_path / "out" / "interbench" / "people.sqlite"
    with OpenAIServer(student) as server:
        run = begin(command(tmp_path, server), "run")
        until(place.exists, "the run opens its desk", run)
        page, links, port = open_page(begin, tmp_path)
        desk = Desk(place)
        until(lambda: len(desk.waiting()) == N - 1, "all that are wrong wait for people", run)
        assert server.requests == N, "every first answer was played, although nobody has answered"
        one, two = visitor(), visitor()
        come_in(one, links[0], "simulated-1")
        come_in(two, links[1], "simulated-2")
        answer_one(one)
        answer_one(two)

        # The page is killed while somebody writes.
        one.wait_for_url(re.compile(r"/item/"))
        page.kill()
        one.keyboard.press("w")
        one.keyboard.type("Look at")
        one.keyboard.press("Control+Enter")
        one.get_by_text("Not sent: the server does not answer").wait_for()
        page, _, _ = open_page(begin, tmp_path, port)
        one.reload()
        assert one.input_value("textarea") == "Look at"

        # The run is killed while people work; they go on.
        run.kill()
        until(lambda: desk.counts("x").runs == 0, "people are told that the run is gone", page, 40)
        one.reload()
        assert "The run that asks this is not there" in one.inner_text("main")
        one.fill("textarea", "")
        one.keyboard.press("Escape")
        answer_one(one)
        answer_one(two)

        run = begin(command(tmp_path, server), "run-2")
        tabs = [one, two]
        while run.process.poll() is None:
            for tab in tabs:
                if "/item/" in tab.url:
                    answer_one(tab)
                else:
                    tab.wait_for_timeout(100)
        assert run.end() == 0, run.said[-3000:]
        assert server.violations == []
        asked = server.requests
    check_records(tmp_path, desk)
    assert asked == N + sum(rounds_of(number) for number in range(N)), "nothing was asked or paid for twice"
    desk.close()


def check_records(folder: Path, desk: Desk) -> None:
    path = max(folder.rglob("episodes.jsonl"), key=lambda one: one.stat().st_mtime)
    records = {one["episode_id"]: one for one in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    assert len(records) == N
    people = []
    for number in range(N):
        record = records[f"q{number}"]
        told = [turn["feedback"] for turn in record["turns"] if turn.get("feedback")]
        assert len(told) == rounds_of(number), record["stop_reason"]
        people += [feedback["reply"]["model"] for feedback in told]
        assert all("look at the ears" in feedback["text"] for feedback in told)
    assert records[f"q{MARKED}"]["stop_reason"] == "marked_right"
    assert set(people) == {"human:simulated-1", "human:simulated-2"}
    items = desk.items("feedback")
    assert len(items) == sum(rounds_of(number) for number in range(N)) + 1
    assert [len(desk.answers(item.id)) for item in items] == [1] * len(items), "no item went to two people"
    assert all(item.taken_at for item in items)
