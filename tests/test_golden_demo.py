"""Whole records and prompts of the demo task, made from the real YAML: a change that moves them shows here."""

from __future__ import annotations

import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.config import task_options_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.record_json import record_to_json
from interbench_tasks.runs.folder import read_json, read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import PlayedRun, play_run
from interbench_tasks.runs.score import metrics_from
from interbench_tasks.task_files import data_of, own_tasks
from interbench_tasks.yaml_files import config_from_file


def no_harness(role):
    raise AssertionError("the demo needs no model of the harness")


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> PlayedRun:
    manager = build_plugin_manager()
    offers = offers_from(manager)
    path = own_tasks()["interfeedback_demo"]
    config = config_from_file(path)
    data = data_of(config, path)
    plan = RunPlan(
        task="interfeedback_demo",
        options=task_options_from(config, where=str(path), offers=offers),
        data=data,
        wanted=[(doc_id, 0) for doc_id in range(len(data.rows))],
        n_total=len(data.rows),
        run_id="golden",
        folder=tmp_path_factory.mktemp("golden"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERBENCH_LEDGER", "off")
        patch.setenv("INTERBENCH_PROGRESS", "off")
        return play_run(plan, receiver=SimulatedBackend(), manager=manager, offers=offers, harness_model=no_harness)


def test_the_first_records_of_the_demo(played, golden):
    records = [record_to_json(record) for record in read_records(played.folder)][:4]
    for record in records:
        del record["run"]
    assert {record["stop_reason"] for record in records} >= {"played"}
    golden("interfeedback_demo_records.json", records)


def test_the_metrics_of_the_demo(played, golden):
    from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
    from interbench_tasks.protocols.feedback_loop import FeedbackLoopOptions

    metrics = metrics_from(
        FeedbackLoopMetrics(FeedbackLoopOptions()),
        list(played.summaries.values()),
        task="interfeedback_demo",
        n_wanted=60,
    )
    assert metrics["finished"]
    golden("interfeedback_demo_metrics.json", metrics["metrics"])


def test_the_manifest_says_what_was_simulated(played):
    manifest = read_json(played.folder / "manifest.json")
    assert manifest["simulated"] == ["provider", "receiver"]
    assert manifest["data"]["n_episodes"] == 60
    assert manifest["packages"]["lmms-eval"]


def test_every_episode_of_the_demo_ends_as_a_record(played):
    assert (played.report.n_finished, played.n_failed, len(played.summaries)) == (60, 0, 60)
