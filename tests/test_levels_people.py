"""People write the levels of `interfeedback_human_demo`, through the engine, the desk and the files of a run."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.config import task_options_from
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.people.desk import Desk
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.task_files import data_of, own_tasks
from interbench_tasks.yaml_files import config_from_file

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)
RECEIVER = {"accuracy": 0.3, "invalid": 0.1, "correction_hierarchical": 0.3, "seed": 3}


@contextlib.contextmanager
def annotating(place, answer):
    """Somebody who answers whatever waits. Args: answer = payload -> content."""
    stop = threading.Event()
    desk = Desk(place)
    refused: list[BaseException] = []

    def work():
        try:
            while not stop.is_set():
                for item in desk.waiting():
                    desk.submit(item.id, "simulated-1", answer(item.payload), 2.0)
                time.sleep(0.01)
        except Exception as error:  # noqa: BLE001 - told by the test
            refused.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        desk.close()
        assert not refused


@pytest.fixture
def played(tmp_path, monkeypatch):
    """A run of the demo whose levels people write; answer as for `annotating`."""
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")
    monkeypatch.setenv("INTERBENCH_PROVIDER", "human:study,grace_s=0,poll_s=0.02")
    path = own_tasks()["interfeedback_human_demo"]
    config = config_from_file(path)
    options = task_options_from(config, where=str(path), offers=OFFERS)

    def play(answer):
        data, place = data_of(config, path), tmp_path / "people.sqlite"
        n = len(data.rows)
        plan = RunPlan(
            task="interfeedback_human_demo",
            options=options,
            data=data,
            wanted=[(doc, 0) for doc in range(n)],
            n_total=n,
            run_id="r",
            folder=tmp_path / "run",
            people=place,
        )
        with annotating(place, answer):
            play_run(
                plan, receiver=SimulatedBackend("m", **RECEIVER), manager=MANAGER, offers=OFFERS,
                harness_model=lambda role: None,
            )  # fmt: skip
        metrics = FeedbackLoopMetrics(options.protocol_options)
        records = list(read_records(plan.folder))
        return records, metrics.table([metrics.summary(record) for record in records])

    return play


def test_people_write_levels_and_mark_replies_as_right(played):
    asked: dict[tuple[str, int], str] = {}

    def answer(payload):
        asked[payload["episode"], payload["level"]] = payload["instruction"]
        number = int(payload["episode"].rpartition("_")[2])
        if number % 4 == 0 or (number % 4 == 1 and payload["level"] == 2):
            return {"action": "marked_right", "text": ""}
        return {"action": "send", "text": f"Look again ({payload['level']})."}

    records, table = played(answer)
    assert {level: asked[name, level][:8] for name, level in asked} == {1: "Level 1:", 2: "Level 2:", 3: "Level 3:"}
    ends = {record.episode_id: record.ends[0].reason for record in records if record.ends}
    marked_first = {record.episode_id for record in records if record.stop_reason == "marked_right"}
    marked_later = {name for name, reason in ends.items() if reason == "marked_right"} - marked_first
    assert marked_first == {name for name, level in asked if level == 1 and int(name[-2:]) % 4 == 0}
    assert marked_later == {name for name, level in asked if level == 2 and int(name[-2:]) % 4 == 1}
    assert marked_first
    assert marked_later
    assert table["n_marked_right"].value == len(marked_first) + len(marked_later)
    by_verifier = sum(record.stop_reason == "right" for record in records)
    assert table["accuracy"].count == by_verifier + len(marked_first)
    assert table["n_test"].value == 40 - by_verifier - len(marked_first)
    assert table["n_failed"].value == table["correction_rate.hierarchical"].unscored == 0
    solved_in_1 = {r.episode_id for r in records for t in r.turns if t.round == 1 and t.judgement.correct}
    assert marked_later <= solved_in_1  # level 2 was asked of the reply of round 1
    assert table["n_solved.hierarchical.round1"].value == len(solved_in_1)
    authors = {turn.feedback.author for record in records for turn in record.turns if turn.feedback is not None}
    assert authors == {"human:simulated-1"}


def test_what_a_person_wrote_is_what_the_receiver_was_told(played):
    records, table = played(lambda payload: {"action": "send", "text": f"Level {payload['level']} for you."})
    told = [turn for record in records for turn in record.turns if turn.round]
    assert told
    assert all(turn.user.text.endswith(f"\n\nLevel {turn.round} for you.") for turn in told)
    assert table["n_marked_right"].value == 0
    assert table["n_test"].value == table["n_negative"].value
