"""Conversations through the harness's own command line."""

from __future__ import annotations

import json

import pytest

from tests.cli import harness_results, interbench, lmms_eval, metrics, records

pytestmark = pytest.mark.integration
SIMULATED = ("--model", "interbench_simulated", "--tasks", "mmrc_demo", "--model_args")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's folder, and what was printed."""
    folder = tmp_path_factory.mktemp("mmrc_demo")
    done = lmms_eval(*SIMULATED, "accuracy=0.9,forget_after=3", "--log_samples", "--output_path", folder).check()
    return folder, done.output


def test_the_demo_runs_offline_and_shows_what_notes_are_worth(demo):
    folder, output = demo
    table = harness_results(folder)["mmrc_demo"]
    assert table["N"] == 16
    assert table["overall.note_taking"] > table["overall.none"] + 1
    assert metrics(folder)["difference.overall.note_taking-none"]["ci95"][0] > 0
    assert "overall.note_taking" in output
    manifest = json.loads(next(folder.rglob("manifest.json")).read_text())
    assert "simulated" in manifest["models"]["judge"]["name"]
    own = "recent_turns+note_taking"
    assert manifest["conversations"] == {"none": "shared", "note_taking": "shared", own: own}


def test_every_arm_has_its_answers_and_own_conversations_are_told_apart(demo):
    folder, _ = demo
    kept = records(folder)
    assert len(kept) == 16
    for record in kept:
        branches = {turn.get("branch", "").partition("/")[0] for turn in record["turns"] if turn.get("question")}
        assert branches == {"none", "note_taking", "recent_turns+note_taking"}
        played = {
            turn.get("branch", "") for turn in record["turns"] if "question" not in turn and turn["role"] == "receiver"
        }
        assert played == {"", "recent_turns+note_taking"}


def test_score_gives_the_same_numbers_again_and_the_samples_hold_no_pictures(demo):
    folder, _ = demo
    first = metrics(folder)
    interbench("score", folder).check()
    assert metrics(folder) == first
    (samples,) = folder.glob("**/*_samples_mmrc_demo.jsonl")
    text = samples.read_text(encoding="utf-8")
    assert len(text.splitlines()) == 16
    assert "user_text" not in text


def test_check_says_what_the_first_conversation_holds():
    from interbench_tasks.task_files import own_tasks

    done = interbench("check", own_tasks()["mmrc_demo"]).check()
    assert "protocol conversation, metrics mmrc" in done.output
    assert "first conversation: 12 turns, 3 pictures, 8 questions" in done.output


def test_check_takes_the_name_of_a_task_and_reads_your_data(tmp_path):
    path = tmp_path / "mine.jsonl"
    question = {"qid": "q1", "ability": "MR", "question": "What is my dog called?", "answer": "Rex"}
    row = {"id": "a", "turns": [{"user_text": "My dog is called Rex."}], "questions": [question]}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = interbench("check", "mmrc_local", INTERBENCH_DATA=str(path)).check()
    assert "first conversation: 1 turn, no picture, 1 question" in done.output


def test_an_estimate_of_a_conversation_says_each_roles_calls():
    output = interbench("estimate", "mmrc_demo", "--receiver", "openai:gpt-4o", "--limit", "2").check().output
    assert "mmrc_demo: 2 episodes of the protocol conversation" in output
    assert [line.split()[0] for line in output.splitlines()[3:7]] == ["receiver", "judge", "notetaker", "all"]
    assert "calls: all are certain, as long as none fails" in output
    refused = interbench("estimate", "mmrc_demo", "--share", "clarification=0.2")
    assert refused.exit_code != 0
    assert "mmrc_demo has no such share" in refused.output


def test_a_file_of_your_own_and_mistakes_in_it(tmp_path):
    path = tmp_path / "mine.jsonl"
    turns = [{"user_text": "My dog is called Rex."}]
    question = {
        "qid": "q1",
        "ability": "MR",
        "question": "What is my dog called?",
        "answer": "Rex",
        "evidence_turns": [0],
    }
    path.write_text(json.dumps({"id": "a", "turns": turns, "questions": [question]}) + "\n", encoding="utf-8")
    arguments = ("--model", "interbench_simulated", "--model_args", "accuracy=1", "--tasks", "mmrc_local")
    environment = {"INTERBENCH_DATA": str(path), "INTERBENCH_JUDGES": "simulated:judge"}
    lmms_eval(*arguments, "--output_path", tmp_path / "out", **environment).check()
    assert metrics(tmp_path / "out")["score.MR.none"]["value"] == 5
    path.write_text(
        json.dumps({"id": "a", "turns": turns, "questions": [{**question, "ability": "XX"}]}), encoding="utf-8"
    )
    wrong = lmms_eval(*arguments, "--output_path", tmp_path / "wrong", **environment)
    assert "line 1, id 'a': questions[0].ability = 'XX' is unknown" in wrong.output
    assert not list(tmp_path.glob("wrong/**/*_results.json"))


def test_two_conversations_of_locomo_end_to_end(tmp_path, shared_data):
    source = shared_data / "locomo" / "locomo10.zip"
    if not source.is_file():
        pytest.skip(f"no LoCoMo data at {source}")
    path = tmp_path / "two.jsonl"
    interbench("convert", "locomo", source, path, "--limit", "2").check()
    environment = {
        "INTERBENCH_DATA": str(path),
        "INTERBENCH_JUDGES": "simulated:judge",
    }
    lmms_eval(
        "--model",
        "interbench_simulated",
        "--model_args",
        "accuracy=1,forget_after=60",
        "--tasks",
        "mmrc_recorded",
        "--output_path",
        tmp_path / "out",
        **environment,
    ).check()
    kept = records(tmp_path / "out")
    assert [len(record["questions"]) for record in kept] == [199, 105]
    found = metrics(tmp_path / "out")
    assert found["n_questions"]["value"] == 304
    assert 0 < found["score.MR.none"]["value"] < 5
    assert found["rp.none"]["value"] == 1
    assert {turn["reply"]["finish_reason"] for turn in kept[0]["turns"] if "question" not in turn} == {"recorded"}


def test_a_feedback_loop_takes_notes_from_yaml_alone(tmp_path):
    from interbench_tasks.task_files import own_tasks
    from interbench_tasks.yaml_files import config_from_file

    interbench("new-task", "--from", "interfeedback_demo", "--name", "noted", "--out", tmp_path).check()
    path = tmp_path / "noted.yaml"
    text = path.read_text(encoding="utf-8")
    assert config_from_file(own_tasks()["interfeedback_demo"])["metadata"]["interbench"]["max_rounds"] == 1
    text = text.replace("    max_rounds: 1\n", "    max_rounds: 3\n    memory: [recent_turns, note_taking]\n")
    path.write_text(text, encoding="utf-8")
    lmms_eval(
        "--model",
        "interbench_simulated",
        "--tasks",
        "noted",
        "--include_path",
        tmp_path,
        "--limit",
        "12",
        "--output_path",
        tmp_path / "out",
        INTERBENCH_NOTETAKER="simulated:taker",
    ).check()
    turns = [turn for record in records(tmp_path / "out") for turn in record["turns"]]
    noted = [turn for turn in turns if turn["role"] == "notetaker"]
    assert noted
    shown = [turn for turn in turns if turn.get("seen", {}).get("notes_chars")]
    assert shown
    assert all("Notes on the conversation so far" in turn["user"]["content"][0] for turn in shown)
    assert metrics(tmp_path / "out")["correction_rate.detail"]["n"] > 0
