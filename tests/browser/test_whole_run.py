"""A whole run with people: the harness's command line, the page, two annotators, three rounds; both are killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from interbench_tasks.people.desk import Desk
from tests.cli import interbench, metrics
from tests.harness_fakes import write_task
from tests.people_desks import HOSTILE
from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import OpenAIServer

pytestmark = [pytest.mark.browser, pytest.mark.integration]
N = 8
SOLVED_IN = [0, 1, 2, 3, 4, 1, 2, 3]
"""Question -> the round whose reply is right; 4: none is. Question 5 is marked as right by a person instead."""
MARKED = 5
EXTRA = """\
    arms: [hierarchical]
    max_rounds: 3
    test_on: all_wrong
    roles: {provider: {backend: human, model: study, grace_s: 0.3, poll_s: 0.05}}
"""


def student(request: ParsedRequest) -> str:
    """Right in the round that is planned; each reply holds what would be a script, were it no text."""
    number = int(re.search(r"number (\d+)", request.messages[0].text)[1])
    told = sum(message.role == "user" for message in request.messages) - 1
    right = told >= SOLVED_IN[number] and number != MARKED
    return f"{HOSTILE} I looked again {told} times.\nAnswer: {'B' if right else 'C'}"


def command(folder: Path, server: OpenAIServer) -> list[str]:
    return [
        *(sys.executable, "-m", "lmms_eval", "--model", "interbench_api"),
        *("--model_args", f"model=openai:student@{server.url}", "--tasks", "people_task"),
        *("--include_path", str(folder), "--output_path", str(folder / "out")),
    ]


def write_people_task(folder: Path) -> None:
    rows = []
    for number in range(N):
        picture = folder / f"{number}.png"
        Image.new("RGB", (200, 100), (30 * number, 90, 160)).save(picture)
        options = ["cat", "dog", "owl", "fox"]
        question = {"id": f"q{number}", "question": f"Question number {number}: which animal?", "answer": "B"}
        rows.append({**question, "options": options, "image": str(picture)})
    path = write_task(folder, rows, name="people_task", extra=EXTRA)
    text = path.read_text(encoding="utf-8")
    own = ("arms: [detail, simple]", 'roles: {provider: "simulated:helper,solve=1,invalid=0"}')
    path.write_text("\n".join(line for line in text.split("\n") if line.strip() not in own), encoding="utf-8")


class Process:
    """A command in the background, whose output goes to a file."""

    def __init__(self, arguments: list[str], log: Path, **variables: str) -> None:
        self.log = log
        self.file = log.open("a")
        self.process = subprocess.Popen(
            arguments, stdout=self.file, stderr=subprocess.STDOUT, env={**os.environ, **variables}
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.file.close()

    def end(self) -> int:
        code = self.process.wait(timeout=120)
        self.file.close()
        return code

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def until(holds: Callable[[], object], what: str, process: Process, timeout_s: float = 120) -> None:
    end = time.monotonic() + timeout_s
    while not holds():
        assert process.process.poll() is None, f"{what}: it ended\n{process.said[-3000:]}"
        assert time.monotonic() < end, f"{what}: waited too long\n{process.said[-3000:]}"
        time.sleep(0.05)


@pytest.fixture
def begin(tmp_path) -> Iterator[Callable[..., Process]]:
    """Starts commands; what still runs in the end is killed."""
    started: list[Process] = []

    def start(arguments: list[str], name: str, **variables: str) -> Process:
        started.append(Process(arguments, tmp_path / f"{name}.log", **variables))
        return started[-1]

    yield start
    for process in started:
        if process.process.poll() is None:
            process.kill()


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


def rounds_of(number: int) -> int:
    """Replies after feedback."""
    return 0 if number == MARKED else min(SOLVED_IN[number], 3)


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


def test_a_run_without_a_browser_goes_through_files(tmp_path, begin):
    write_people_task(tmp_path)
    place = tmp_path / "out" / "interbench" / "people.sqlite"
    waiting = tmp_path / "waiting.jsonl"
    with OpenAIServer(student) as server:
        run = begin(command(tmp_path, server), "run")
        until(place.exists, "the run opens its desk", run)
        with Desk(place) as desk:
            for wanted in (7, 5, 3):  # rounds 1, 2 and 3: those that are still wrong
                until(lambda n=wanted: len(desk.waiting()) == n, f"{wanted} wait", run)
                interbench("people", "export", tmp_path / "out", "-o", waiting).check()
                lines = [json.loads(line) for line in waiting.read_text(encoding="utf-8").splitlines()]
                assert Path(lines[0]["pictures"][0]).stat().st_size > 0
                filled = [
                    {"id": line["id"], "marked_right": True}
                    if f"number {MARKED}:" in line["question"]
                    else {"id": line["id"], "text": f"Level {line['level']}: look at the ears."}
                    for line in lines
                ]
                waiting.write_text("\n".join(map(json.dumps, filled)), encoding="utf-8")
                interbench("people", "import", tmp_path / "out", waiting, "--annotator", "simulated-1").check()
        assert run.end() == 0, run.said[-3000:]
    assert f"interbench serve {tmp_path / 'out'}" in run.said
    found = metrics(tmp_path)
    assert found["accuracy"]["value"] == pytest.approx(2 / N), "one was right, one is right by a person"
