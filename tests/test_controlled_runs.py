"""Runs with all controls against a planted server: in any order of arrival, and killed in the second pass."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.score import score_folder
from tests.controlled_run import LINEUP, N, brain, items, play_into, records_in
from tests.planted_controls import assert_controlled_metrics, controlled_expected, second_pass_of, without_run
from tests.servers.chat_requests import ParsedRequest
from tests.servers.controlled_brain import ControlledBrain
from tests.servers.openai_server import OpenAIServer, PlantedReply

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


@pytest.mark.parametrize(("max_live", "slowest_s"), [(1, 0), (N, 0.01)])
def test_metrics_pairs_and_requests_are_exactly_the_planted_ones(tmp_path, without_ledger, max_live, slowest_s):
    planted = brain(slowest_s=slowest_s)
    with OpenAIServer(planted) as server:
        metrics = play_into(tmp_path / "run", server.url, max_live=max_live)
    assert server.violations == []
    lent = second_pass_of(records_in(tmp_path / "run"), LINEUP)
    assert len(lent.flips) == LINEUP.flip_sample
    expected = controlled_expected(planted, items(), LINEUP, lent)
    assert min(len(found) for found in (*expected.test.values(), *expected.flip.values())) >= 3
    assert_controlled_metrics(metrics["metrics"], expected)
    assert planted.counts == expected.asked
    assert set(expected.asked.values()) == {1}
    assert metrics["finished"] is True


def test_one_that_is_alone_in_its_category_has_no_partner_and_is_left_out_of_that_arm_alone(tmp_path, without_ledger):
    with OpenAIServer(brain()) as server:
        metrics = play_into(tmp_path / "run", server.url)["metrics"]
    alone, *_ = records_in(tmp_path / "run")
    ends = {end["branch"]: end["reason"] for end in alone["ends"]}
    assert alone["stop_reason"] == "played"
    left_out = [branch for branch, reason in ends.items() if reason == "no_partner"]
    assert left_out == [branch for branch in ends if branch.startswith("mismatched")] != []
    label = left_out[0].partition("@")[2]
    assert metrics[f"correction_rate.mismatched@{label}"]["n"] == metrics[f"n_test@{label}"]["value"] - 1
    assert metrics[f"correction_rate.detail@{label}"]["n"] == metrics[f"n_test@{label}"]["value"]
    assert metrics[f"correction_rate.mismatched@{label}"]["unscored"] == 0


class LastFirst:
    """Answers like the brain, the first question of the data last."""

    def __init__(self, planted: ControlledBrain) -> None:
        self.planted = planted

    def __call__(self, request: ParsedRequest) -> PlantedReply:
        reply = self.planted(request)
        asked = self.planted.log[-1]
        waits = asked.model == LINEUP.receiver and not asked.arm
        return replace(reply, delay_s=0.02 * (N - int(asked.item[1:]))) if waits else reply


def test_pairs_and_samples_are_the_same_in_any_order_of_arrival(tmp_path, without_ledger):
    found = []
    for number, answer in enumerate([brain(), brain(slowest_s=0.02), LastFirst(brain())]):
        folder, at_once = tmp_path / f"run{number}", N if number else 1
        with OpenAIServer(answer) as server:
            metrics = play_into(folder, server.url, max_live=at_once, at_once=at_once)
        found.append((without_run(records_in(folder)), metrics))
        assert [record.doc_id for record in read_records(folder)] == list(range(N))
    assert found[0] == found[1] == found[2]


# --- kill -9 ------------------------------------------------------------------------------------------------------


class Killing:
    """Answers like the brain, but kills the process that asks, once, at the n-th request of the second pass."""

    def __init__(self, planted: ControlledBrain, at: int) -> None:
        self.planted = planted
        self.pid: int | None = None
        self._left = at

    def __call__(self, request: ParsedRequest) -> PlantedReply:
        reply = self.planted(request)
        if self.pid is not None and self.planted.log[-1].arm == "mismatched":
            self._left -= 1
            if self._left == 0:
                os.kill(self.pid, signal.SIGKILL)
                self.pid = None
        return reply


def play_in_a_process(folder: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.controlled_run", str(folder), url, "4"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_a_run_killed_in_its_second_pass_and_started_again_equals_an_unbroken_one(tmp_path, monkeypatch):
    with OpenAIServer(brain(), keep_requests=False) as server:
        monkeypatch.setenv("INTERBENCH_LEDGER", "off")
        unbroken = play_into(tmp_path / "unbroken", server.url)
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    planted = brain()
    killing = Killing(planted, at=20)
    with OpenAIServer(killing, keep_requests=False) as server:
        process = play_in_a_process(tmp_path / "killed", server.url)
        killing.pid = process.pid
        assert process.wait(timeout=60) == -signal.SIGKILL
        asked_before = planted.counts
        killed = score_folder(tmp_path / "killed", offers_from(build_plugin_manager()))
        again = play_into(tmp_path / "again", server.url)
        assert server.violations == []

    assert again == unbroken
    assert without_run(records_in(tmp_path / "again")) == without_run(records_in(tmp_path / "unbroken"))
    lent = second_pass_of(records_in(tmp_path / "again"), LINEUP)
    expected = controlled_expected(planted, items(), LINEUP, lent)
    assert planted.counts.keys() == expected.asked.keys()
    twice = Counter({asked: n for asked, n in planted.counts.items() if n > 1})
    assert set(twice.values()) <= {2}
    assert len(twice) <= 12  # only what was in flight: four calls at each of three models
    assert planted.counts.total() - asked_before.total() < expected.asked.total() / 2

    assert killed["finished"] is False
    assert killed["metrics"]["n"]["value"] == N
    for label in LINEUP.providers:
        for arm, whole in (("detail", True), ("simple", True), ("reask", True), ("mismatched", False)):
            rate, right = (m["metrics"][f"correction_rate.{arm}@{label}"] for m in (killed, unbroken))
            assert rate["n"] + rate["unscored"] == right["n"]  # the one without a partner was played on before
            assert (rate == right) if whole else (rate["unscored"] > 0)
