"""The harness's real command line, with our tasks: its options do what a user of the harness expects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import harness_results, interbench, lmms_eval, metrics, records
from tests.harness_fakes import question_rows, write_task

pytestmark = pytest.mark.integration
SIMULATED = ("--model", "interbench_simulated", "--tasks", "interfeedback_demo")


def test_limit_offset_and_log_samples(tmp_path):
    done = lmms_eval(*SIMULATED, "--limit", "7", "--offset", "50", "--log_samples", "--output_path", tmp_path).check()
    assert [record["doc_id"] for record in records(tmp_path)] == list(range(50, 57))
    assert harness_results(tmp_path)["interfeedback_demo"]["N"] == 7
    (samples,) = tmp_path.glob("**/*_samples_interfeedback_demo.jsonl")
    assert [json.loads(line)["doc_id"] for line in samples.read_text().splitlines()] == list(range(50, 57))
    assert "correction_rate.detail" in done.output
    assert "simulated" in json.loads(next(tmp_path.rglob("manifest.json")).read_text())["models"]["receiver"]["name"]


def test_score_gives_the_same_numbers_again(tmp_path):
    lmms_eval(*SIMULATED, "--output_path", tmp_path).check()
    first = metrics(tmp_path)
    (path,) = tmp_path.rglob("metrics.json")
    text = path.read_text()
    path.unlink()
    done = interbench("score", tmp_path).check()
    assert path.read_text() == text
    assert metrics(tmp_path) == first
    assert "accuracy" in done.output
    table = harness_results(tmp_path)["interfeedback_demo"]
    for name, estimate in first.items():
        if name in table:
            assert table[name] == estimate["value"]
            if estimate["method"] != "count":
                assert [table[f"{name}.ci95_low"], table[f"{name}.ci95_high"]] == estimate["ci95"]
                assert (table[f"{name}.n"], table[f"{name}.unscored"]) == (estimate["n"], estimate["unscored"])


def test_a_config_file_and_several_tasks(tmp_path):
    write_task(tmp_path, question_rows(3), name="second_task")
    config = tmp_path / "run.yaml"
    config.write_text(
        "model: interbench_simulated\nmodel_args: accuracy=1,invalid=0\n"
        f"tasks: interfeedback_demo,second_task\ninclude_path: {tmp_path}\noutput_path: {tmp_path / 'out'}\nlimit: 5\n"
    )
    lmms_eval("--config", config).check()
    results = harness_results(tmp_path)
    assert results["interfeedback_demo"]["accuracy"] == 1.0
    assert results["second_task"]["N"] == 3


def test_max_tokens_stops_new_episodes_and_says_so(tmp_path):
    write_task(tmp_path, question_rows(30), extra="    engine: {max_live_episodes: 2}\n")
    arguments = ("--model", "interbench_simulated", "--tasks", "bridge_task", "--include_path", tmp_path)
    done = lmms_eval(*arguments, "--max_tokens", "600", "--output_path", tmp_path / "out").check()
    kept = records(tmp_path)
    assert len(kept) == 30
    skipped = [record for record in kept if record["status"] == "skipped"]
    assert 0 < len(skipped) < 30
    assert {record["error"] for record in skipped} == {"the token budget is used up (--max_tokens)"}
    assert "have no score" in done.output
    assert metrics(tmp_path)["accuracy"]["unscored"] == len(skipped)
    assert metrics(tmp_path)["accuracy"]["bounds"] is not None


@pytest.mark.slow
def test_predict_only(tmp_path):
    lmms_eval(*SIMULATED, "--predict_only", "--limit", "4", "--output_path", tmp_path).check()
    assert len(records(tmp_path)) == 4
    assert not list(tmp_path.rglob("metrics.json"))
    interbench("score", tmp_path).check()
    assert metrics(tmp_path)["accuracy"]["n"] == 4


@pytest.mark.slow
def test_without_an_output_path_the_transcript_still_has_a_home(tmp_path):
    done = lmms_eval(*SIMULATED, "--limit", "2", INTERBENCH_RUNS=str(tmp_path)).check()
    assert len(records(tmp_path)) == 2
    assert str(tmp_path) in done.output


def test_the_harness_lists_our_tasks(tmp_path):
    done = lmms_eval("--tasks", "list")
    assert "interfeedback_demo" in done.output
    assert "interfeedback_local" in done.output


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"INTERBENCH_PROVIDR": "x"}, "unknown environment variable: INTERBENCH_PROVIDR"),
        ({"INTERBENCH_PROVIDER": "openai:gpt-4o", "OPENAI_API_KEY": ""}, "OPENAI_API_KEY"),
        ({"INTERBENCH_PROVIDER": "opnai:gpt-4o"}, "did you mean 'openai'?"),
    ],
)
def test_a_wrong_environment_is_one_clear_error(tmp_path, environment, message):
    done = lmms_eval(*SIMULATED, "--limit", "1", "--output_path", tmp_path, **environment)
    assert message in done.output
    assert not list(tmp_path.rglob("*_results.json"))


def test_an_unwritable_output_folder_is_one_clear_error(tmp_path):
    (tmp_path / "interbench").write_text("in the way")
    done = lmms_eval(*SIMULATED, "--limit", "1", "--output_path", tmp_path)
    assert "cannot be written" in done.output


def test_no_task_of_ours_is_named_like_one_of_the_harness():
    """The harness would drop ours without a word."""
    from interbench_tasks.task_files import harness_task_names, own_tasks

    theirs = harness_task_names()
    assert len(theirs) > 1000
    assert "mathverse_testmini" in theirs
    assert not theirs & set(own_tasks())


def test_the_tasks_folder_can_be_named(tmp_path):
    folder = Path(interbench("tasks", "--path").check().output.strip())
    assert (folder / "interfeedback" / "interfeedback_demo.yaml").exists()
