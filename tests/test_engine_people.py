"""Episodes that wait for people: the engine goes on with all others, and nothing that limits models limits them."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from interbench_tasks.engine import Engine
from interbench_tasks.engine import floor as floor_module
from interbench_tasks.engine.floor import Floor
from interbench_tasks.engine.progress import Counts, Progress
from interbench_tasks.records import Reply
from tests.engine_fakes import Api, Ledger, Local, Person, asks, episodes, play_all, within


class Absent:
    """People who do not answer before they are told to."""

    person = True
    max_concurrency = 1

    def __init__(self) -> None:
        self.name = self.fingerprint = "human"
        self.came = threading.Event()
        self.waiting = self.most = 0

    async def reply(self, call) -> Reply:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        while not self.came.is_set():
            await asyncio.sleep(0.01)
        self.waiting -= 1
        return Reply(text=f"look again at {call.messages[-1].text}")

    async def close(self) -> None:
        pass


def come_when(absent: Absent, what) -> threading.Thread:
    """Lets people answer once `what` holds, or after ten seconds."""

    def wait() -> None:
        end = time.monotonic() + 10
        while not what() and time.monotonic() < end:
            time.sleep(0.01)
        absent.came.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_all_first_answers_are_played_while_nobody_answers():
    engine = Engine(progress=False, max_live=16, max_episode_s=0.4)
    model, absent, before = Local(8), Absent(), []

    def all_wait() -> bool:
        if absent.waiting < 200:
            return False
        time.sleep(0.6)  # longer than max_episode_s: waiting for a person is not counted
        before.append(model.n_calls)
        return True

    come_when(absent, all_wait)
    backend = engine.batched(model)
    played = within(30, lambda: play_all(engine, episodes(200), asks(engine, backend, absent, backend)))
    assert before == [200], "every first answer was there before anybody had answered"
    assert absent.most == 200
    assert played.report.n_finished == 200
    assert played.report.most_live <= 16
    assert model.n_calls == 400


def test_people_use_up_no_slots_of_any_backend():
    engine = Engine(progress=False)
    api, absent = Api(0.001, slots=2), Absent()
    come_when(absent, lambda: absent.waiting == 100)
    played = within(20, lambda: play_all(engine, episodes(100), asks(engine, api, absent, api)))
    assert (played.report.n_finished, absent.most, api.most) == (100, 100, 2)


def test_so_many_may_wait_for_people_and_no_more(monkeypatch):
    engine = Engine(progress=False, max_live=4)
    monkeypatch.setattr(engine._floor, "_most_with_people", 10)
    absent = Absent()
    came = []

    def wait_a_little() -> bool:
        if absent.waiting >= 10:
            time.sleep(0.2)
            came.append(absent.waiting)
            return True
        return False

    come_when(absent, wait_a_little)
    played = within(20, lambda: play_all(engine, episodes(50), asks(engine, absent, Api())))
    assert 10 <= came[0] <= 14, "those that were started already may still come"
    assert played.report.n_finished == 50


def test_the_most_that_may_wait_is_in_the_thousands():
    assert floor_module.MOST_WITH_PEOPLE == 5000


def test_an_answer_of_a_person_is_kept_like_any_other():
    ledger, first, second = Ledger(), Person(), Person()
    within(10, lambda: play_all(Engine(progress=False, ledger=ledger), [], None))
    for person in (first, second):
        engine = Engine(progress=False, ledger=ledger)
        played = within(10, lambda e=engine, p=person: play_all(e, episodes(5), asks(e, p)))
        assert played.texts()["3"] == ["[question 3]"]
    assert (len(first.calls), len(second.calls)) == (5, 0)


@pytest.mark.parametrize("place", ["parked", "queued", "elsewhere"])
def test_an_episode_is_away_while_it_waits_for_people_alone(place):
    floor = Floor(1)
    live = floor.start()
    floor.enter(live, "person")
    assert (floor.n_away, floor.full, floor.can_start) == (1, False, True)
    floor.enter(live, place)
    assert (floor.n_away, floor.full) == (0, True)
    floor.leave(live, place)
    other = floor.start()
    assert (floor.n_away, floor.full, floor.most_live) == (1, True, 1)
    floor.end(live)
    floor.end(live)
    assert (floor.n_away, floor.n_live) == (0, 1)
    floor.leave(live, "person")
    floor.end(other)
    assert (floor.n_away, floor.n_live) == (0, 0)


def test_a_run_that_is_stopped_waits_for_no_person():
    absent = Absent()
    engine = Engine(progress=False)
    began = time.monotonic()

    def stop(record) -> None:
        raise RuntimeError("the disk is full")

    async def play(one):
        return await asks(engine, Api() if one.doc_id == 3 else absent)(one)

    with pytest.raises(RuntimeError, match="disk is full"):
        engine.run(episodes(4), play, on_record=stop, failed=lambda *_: None)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("waiting", "said"), [(7, ", 7 wait for people"), (0, "0 failed")])
def test_the_progress_bar_says_how_many_wait_for_people(capsys, waiting, said):
    async def draw() -> None:
        bar = Progress(Counts(), 9, wanted=True, n_with_people=lambda: waiting)
        bar.start()
        bar.stop()

    asyncio.run(draw())
    shown = capsys.readouterr().err
    assert said in shown
    assert ("people" in shown) == (waiting > 0)
