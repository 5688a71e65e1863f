"""`interbench judge`: stored replies before judges, without asking the model under test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interbench_tasks.cli import app
from interbench_tasks.errors import InterbenchError
from interbench_tasks.record_json import record_to_json
from interbench_tasks.records import EpisodeRecord, Reply
from interbench_tasks.runs.folder import read_json, read_records
from interbench_tasks.runs.judge import Wanted, judge_replies, judge_run
from interbench_tasks.runs.outcome import outcome_of
from interbench_tasks.runs.score import run_from_folder
from interbench_tasks.runs.stored import replies_from_file
from tests.judged_runs import MANAGER, OFFERS, PlayedTask, Speaker, flawed, play, talk, write_task
from tests.servers.judge_brain import JudgeBrain
from tests.servers.openai_server import OpenAIServer, refusal

SIMULATED = "simulated:j1,simulated:j2,sensitivity=0.8"
CRITIQUE = {"protocol": "critique", "judges": ["simulated:j1", "simulated:j2,sensitivity=0.8"]}


def objector(call) -> str:
    """Objects to every second item, and thinks first."""
    objects = int(call.episode.id.removeprefix("item")) % 2
    return "<think>Two numbers.</think>" + ("They contradict each other. Which one?" if objects else "There are 3.")


def played_critique(folder: Path, n: int = 6, **block: Any) -> PlayedTask:
    yaml = write_task(folder, [flawed(i) for i in range(n)], CRITIQUE | block)
    return play(yaml, Speaker(objector))


def again(task: PlayedTask, /, **wanted: Any):
    wanted = {"out": task.yaml.parent / "again", "task": str(task.yaml)} | wanted
    return judge_run(task.folder, Wanted(**wanted), manager=MANAGER, offers=OFFERS)


def records(folder: Path) -> list[EpisodeRecord]:
    return list(read_records(folder))


def without_times(folder: Path) -> list[dict[str, object]]:
    """The records as they are kept, without what differs between two runs of them."""
    kept = [dict(record_to_json(record)) for record in read_records(folder)]
    for record in kept:
        del record["run"]
    return kept


def servers_judges(server: OpenAIServer, *names: str) -> str:
    return ",".join(f"openai:{name}@{server.url},max_retries=0" for name in names)


# --- a run of ours --------------------------------------------------------------------------------------------------


def test_the_same_judges_say_the_same_again(tmp_path):
    task = played_critique(tmp_path)
    judged = again(task)
    assert without_times(judged.folder) == without_times(task.folder)
    before, after = (read_json(folder / "metrics.json") for folder in (task.folder, judged.folder))
    assert before == after
    assert after["metrics"]["eda"]["n"] == 6


def test_other_judges_give_other_verdicts_on_the_same_replies_and_the_receiver_is_not_asked(tmp_path):
    speaker = Speaker(objector)
    task = play(write_task(tmp_path, [flawed(i) for i in range(6)], CRITIQUE), speaker)
    asked = speaker.asked
    with OpenAIServer(JudgeBrain()) as server:
        judged = again(task, judges=servers_judges(server, "a", "b", "c"))
        assert server.violations == []
        assert server.counts.by_model == {"a": 12, "b": 12, "c": 12}, "answer and reasoning of six items"
    assert speaker.asked == asked
    for old, new in zip(records(task.folder), records(judged.folder), strict=True):
        assert [turn.reply for turn in new.turns] == [turn.reply for turn in old.turns]
        assert [verdict.judge for verdict in new.turns[0].verdicts] == ["a", "b", "c"]
        detected = new.turns[0].verdict.fields["detected"]
        assert detected == ("true" if "contradict" in new.turns[0].reply.text else "false")


def test_the_new_run_says_what_was_judged_and_counts_the_judges_only(tmp_path):
    task = played_critique(tmp_path)
    with OpenAIServer(JudgeBrain()) as server:
        judged = again(task, judges=servers_judges(server, "a"))
    manifest, usage = (read_json(judged.folder / name) for name in ("manifest.json", "usage.json"))
    assert manifest["judged"]["run_id"] == "first"
    assert len(manifest["judged"]["sha256"]) == len(manifest["judged"]["rubric_sha256"]) == 64
    assert manifest["models"]["receiver"] == {"name": "speaker:one", "fingerprint": "speaker:one"}
    assert manifest["generation"]["receiver"]["temperature"] == 0.5
    assert manifest["run_id"].startswith("first-judged-")
    assert list(usage["roles"]) == ["judge"]
    assert usage["roles"]["judge"]["calls"] == 12
    assert usage["roles"]["judge"]["input_tokens"] == 12 * 11


def test_a_conversation_is_judged_again_turn_by_turn(tmp_path):
    """Turns that say the same ("Go on.") are told apart, notes are not taken again, and each arm keeps its answers."""
    block = {
        "protocol": "conversation",
        "verifier": "choice",
        "memories": ["none", "note_taking"],
        "roles": {"judge": "simulated:j1", "notetaker": "simulated:notes"},
    }
    said = iter(range(1000))
    speaker = Speaker(lambda call: f"Tom{call.episode.id[-1]}, for the {next(said)}. time")
    task = play(write_task(tmp_path, [talk(i) for i in range(2)], block), speaker)
    asked = speaker.asked
    judged = again(task)
    assert speaker.asked == asked == 2 * (4 + 2 * 2)
    assert without_times(judged.folder) == without_times(task.folder)
    assert list(read_json(judged.folder / "usage.json")["roles"]) == ["judge"], "the notetaker costs nothing"
    with OpenAIServer(JudgeBrain()) as server:
        other = again(task, judges=servers_judges(server, "a", "b"), rule="median_of_valid", rubric="mmrc")
        assert server.counts.requests == 2 * 2 * 4, "two talks, two arms, two questions, two judges"
    verdict = records(other.folder)[0].turns[-1].verdict
    assert (verdict.judge, verdict.score) == ("panel:median_of_valid", 0)


def test_a_rubric_of_ones_own_is_what_judges_are_asked(tmp_path):
    task = played_critique(tmp_path)
    shipped = Path(__file__).parent.parent / "interbench_tasks" / "rubrics" / "mmpcbench.yaml"
    own = tmp_path / "own.yaml"
    own.write_text(shipped.read_text(encoding="utf-8").replace("You judge one response", "As a strict reader, judge"))
    with OpenAIServer(JudgeBrain()) as server:
        judged = again(task, judges=servers_judges(server, "a"), rubric=str(own))
        assert all("As a strict reader" in request.messages[-1].text for request in server.log)
    manifest = read_json(judged.folder / "manifest.json")
    assert manifest["protocol_options"]["rubric"] == str(own)
    other = again(task)
    assert other.folder != judged.folder
    assert read_json(other.folder / "manifest.json")["judged"]["rubric_sha256"] != manifest["judged"]["rubric_sha256"]


def test_the_same_command_pays_for_nothing_twice(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    task = played_critique(tmp_path)
    with OpenAIServer(JudgeBrain()) as server:
        first = again(task, judges=servers_judges(server, "a", "b"))
        asked = server.requests
        second = again(task, judges=servers_judges(server, "a", "b"))
        assert (asked, server.requests) == (24, 24)
    assert first.folder == second.folder
    usage = read_json(second.folder / "usage.json")["roles"]
    assert {name: (own["calls"], own["from_ledger"]["replies"]) for name, own in usage.items()} == {
        "judge@a": (0, 12),
        "judge@b": (0, 12),
    }


def test_stored_replies_are_never_put_into_the_ledger(tmp_path, monkeypatch):
    """They would stand there as what the model said now; a real run must ask it."""
    task = played_critique(tmp_path)
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    again(task, judges="simulated:j1")
    speaker = Speaker(objector)
    play(task.yaml, speaker, run_id="second")
    assert speaker.asked == 6


def test_a_budget_that_is_used_up_leaves_the_rest_for_the_same_command(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    task = played_critique(tmp_path)
    with OpenAIServer(JudgeBrain()) as server:
        command = ["judge", str(task.folder), "-o", str(tmp_path / "out"), "--task", str(task.yaml)]
        command += ["--judges", servers_judges(server, "a")]
        monkeypatch.setenv("INTERBENCH_MAX_CALLS", "4")
        code, output = run_cli(command)
        assert code == 4
        assert "UNFINISHED" in output
        monkeypatch.setenv("INTERBENCH_MAX_CALLS", "off")
        code, output = run_cli(command)
        assert code == 0
        assert "6 episodes, 0 failed, finished" in output
        assert server.requests == 12


def test_what_failed_stays_failed_and_what_was_not_played_is_missing(tmp_path):
    def sometimes(call) -> Reply | str:
        return Reply(text="", status="error", error="HTTP 500") if call.episode.id == "item2" else objector(call)

    yaml = write_task(tmp_path, [flawed(i) for i in range(6)], CRITIQUE)
    task = play(yaml, Speaker(sometimes), rows=range(4))
    judged = again(task)
    found = records(judged.folder)
    assert [(record.episode_id, record.status) for record in found][2] == ("item2", "failed")
    assert without_times(judged.folder) == without_times(task.folder)
    metrics = read_json(judged.folder / "metrics.json")
    assert (metrics["finished"], metrics["episodes"]) == (False, {"found": 4, "wanted": 6})
    assert metrics["metrics"]["eda"]["unscored"] == 1


def test_a_judge_that_fails_is_no_low_score(tmp_path):
    task = played_critique(tmp_path)
    with OpenAIServer(lambda request: refusal(400)) as server:
        judged = again(task, judges=servers_judges(server, "a"))
    metrics = read_json(judged.folder / "metrics.json")["metrics"]
    assert "eda" not in metrics
    assert metrics["n_judge_missing"]["value"] > 0
    assert judged.played.n_failed == 6


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_a_panel_without_one_clear_verdict_failed_and_says_why(tmp_path):
    task = played_critique(tmp_path)
    judged = again(task, judges="simulated:j1,garble=1,simulated:j2,garble=1")
    outcome = outcome_of(judged.folder)
    assert (outcome.n_failed, outcome.exit_code) == (6, 3)
    assert any("judge j1 gave no verdict" in told for told in judged.played.errors)


def test_one_unclear_judge_of_three_fails_nothing_that_the_others_decide(tmp_path):
    task = played_critique(tmp_path)
    judged = again(task, judges="simulated:j1,simulated:j2,simulated:j3,garble=1")
    assert outcome_of(judged.folder).n_failed == 0


def test_a_judge_that_fails_at_the_reasoning_only_is_told(tmp_path):
    task = played_critique(tmp_path)
    brain = JudgeBrain()

    def answer(request):
        return brain(request) if "- strategy is" in request.messages[-1].text else refusal(400, "no reasoning, please")

    with OpenAIServer(answer) as server:
        judged = again(task, judges=servers_judges(server, "j1"))
    assert outcome_of(judged.folder).n_failed == 6
    assert any("no reasoning, please" in told for told in judged.played.errors)


def test_data_that_has_changed_is_refused(tmp_path):
    task = played_critique(tmp_path)
    write_task(tmp_path, [flawed(i) for i in range(1, 7)], CRITIQUE)
    with pytest.raises(InterbenchError, match=r"6 of its episodes are not where they were .*'item0'"):
        again(task)


def test_a_question_that_has_changed_is_never_judged_with_the_old_answer(tmp_path):
    task = played_critique(tmp_path)
    write_task(tmp_path, [flawed(i, Q="How many dogs?") if i == 3 else flawed(i) for i in range(6)], CRITIQUE)
    judged = again(task)
    failed = [record for record in records(judged.folder) if record.status == "failed"]
    assert [record.episode_id for record in failed] == ["item3"]
    assert "answers another message; data, prompts or options differ" in failed[0].error


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"version": "2.0"}, "version was '1.0' and is '2.0' now"),
        ({"block": {"more_styles": ["formal"]}}, r"more_styles was \[\] and is \['formal'\] now"),
    ],
)
def test_another_form_of_the_task_is_refused(tmp_path, changed, told):
    task = played_critique(tmp_path)
    yaml = write_task(tmp_path, [flawed(i) for i in range(6)], CRITIQUE | changed.get("block", {}))
    yaml.write_text(yaml.read_text().replace("version: 1.0", f"version: {changed.get('version', '1.0')}"))
    with pytest.raises(InterbenchError, match=told):
        again(task)


def test_a_protocol_without_judges_has_nothing_to_judge(tmp_path):
    yaml = write_task(tmp_path, [flawed(0)], {"protocol": "feedback_loop", "roles": {"provider": "simulated:p"}})
    with pytest.raises(InterbenchError, match="feedback_loop asks no judges"):
        again(played_critique(tmp_path / "other"), task=str(yaml))


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"rule": "mean_of_valid"}, "the protocol critique has a rule of its own"),
        ({"judges": "simulated:a,simulated:a"}, "two are called 'a'"),
        ({"judges": "nobody:x"}, "--judges = 'nobody'"),
        ({"judges": "harness:qwen2_5_vl,pretrained=x"}, "cannot load a model of the harness"),
        ({"quorum": 3, "judges": "simulated:a"}, "quorum = 3: must be from 1 to the number of judges"),
        ({"rubric": "mmpcbenc"}, r"did you mean 'mmpcbench'"),
        ({"rubric": "mmrc"}, "has no entry for flawed"),
        ({"task": "mmpcbench_dmo"}, "no task of ours is called mmpcbench_dmo"),
    ],
)
def test_wrong_wishes_are_told_before_anybody_is_asked(tmp_path, wanted, told):
    task = played_critique(tmp_path, n=1)
    with pytest.raises(InterbenchError, match=told):
        again(task, **wanted)


def test_the_command_lines_judges_win_over_the_environments(tmp_path, monkeypatch):
    task = played_critique(tmp_path, n=2)
    monkeypatch.setenv("INTERBENCH_JUDGES", "simulated:env")
    assert records(again(task).folder)[0].models["judge"] == "simulated:env"
    assert records(again(task, judges="simulated:line").folder)[0].models["judge"] == "simulated:line"


# --- replies of others ----------------------------------------------------------------------------------------------


def write_replies(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def judge_file(task_yaml: Path, file: Path, **more: Any):
    receiver = more.pop("receiver", None)
    wanted = Wanted(out=task_yaml.parent / "theirs", task=str(task_yaml), **more)
    return judge_replies(file, wanted, receiver=receiver, manager=MANAGER, offers=OFFERS)


def test_replies_that_never_came_from_us_are_judged(tmp_path):
    yaml = write_task(tmp_path, [flawed(i) for i in range(5)], CRITIQUE)
    file = write_replies(
        tmp_path / "their-model.jsonl",
        {"id": "item3", "reply": "The two numbers contradict each other.", "reasoning": "I see an inconsistency."},
        {"id": "item1", "reply": "There are 3.", "extra": "left alone"},
        {"id": "item4", "reply": None},
    )
    with OpenAIServer(JudgeBrain()) as server:
        judged = judge_file(yaml, file, judges=servers_judges(server, "a", "b", "c"))
    found = {record.episode_id: record for record in records(judged.folder)}
    assert list(found) == ["item1", "item3", "item4"], "in the order of the data"
    assert found["item3"].turns[0].verdict.fields["detected"] == "true"
    assert found["item3"].turns[0].reasoning_verdict.fields["detected"] == "true"
    assert found["item1"].turns[0].verdict.fields["detected"] == "false"
    assert found["item4"].status == "failed"
    metrics = read_json(judged.folder / "metrics.json")
    assert metrics["finished"]
    assert (metrics["metrics"]["eda"]["value"], metrics["metrics"]["eda"]["unscored"]) == (0.5, 1)
    manifest = read_json(judged.folder / "manifest.json")
    assert manifest["models"]["receiver"]["name"] == "their-model"
    assert manifest["judged"]["replies"] == str(file)


def test_an_empty_reply_is_unscored_because_nobody_knows_why(tmp_path):
    file = write_replies(tmp_path / "m.jsonl", {"id": "a", "reply": " "}, {"id": "b", "reply": "", "reasoning": "hm"})
    replies = {place.episode_id: stored[0].reply for place, stored in replies_from_file(file).replies.items()}
    assert replies["a"].status == "empty"
    assert replies["b"].status == "ok", "it thought and said nothing"


def test_replies_to_the_questions_of_a_conversation_name_their_branch(tmp_path):
    block = {"protocol": "conversation", "verifier": "choice", "history": "recorded", "roles": {"judge": "simulated:j"}}
    yaml = write_task(tmp_path, [talk(0)], block)
    file = write_replies(
        tmp_path / "m.jsonl",
        {"id": "talk0", "branch": "none/q1", "reply": "Tom0"},
        {"id": "talk0", "branch": "none/q2", "reply": "I forgot."},
    )
    judged = judge_file(yaml, file)
    answers = [turn for turn in records(judged.folder)[0].turns if turn.question]
    assert [(turn.question, turn.verdict.status) for turn in answers] == [("q1", "scored"), ("q2", "scored")]
    assert answers[0].verdict.score > answers[1].verdict.score


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "holds no replies"),
        ("{", "line 1: no valid JSON"),
        ("[1]", "line 1: must be an object with `id` and `reply`"),
        ('{"reply": "x", "text": 1}', "line 1: lacks the key `id`; it has: reply, text"),
        ('{"id": "item0"}', "lacks the key `reply`"),
        ('{"id": "item0", "reply": ["x"]}', "`reply`: Input should be a valid string"),
        ('{"id": "item0", "reply": "x"}\n\n{"id": "item0", "reply": "y"}', "line 3: id 'item0' is also that of line 1"),
        ('{"id": "item9", "reply": "x"}', r"1 ids are not in .*: 'item9'\n  ids there look like: 'item0', 'item1'"),
    ],
)
def test_a_file_that_cannot_be_judged_says_where_and_why(tmp_path, content, told):
    yaml = write_task(tmp_path, [flawed(i) for i in range(2)], CRITIQUE)
    file = tmp_path / "m.jsonl"
    file.write_text(content)
    with pytest.raises(InterbenchError, match=told):
        judge_file(yaml, file)


def test_all_problems_of_a_file_are_told_at_once(tmp_path):
    file = tmp_path / "m.jsonl"
    file.write_text("{\n" * 30)
    with pytest.raises(InterbenchError, match="and 10 more"):
        replies_from_file(file)
    with pytest.raises(InterbenchError, match="cannot be read"):
        replies_from_file(tmp_path / "none.jsonl")


def test_a_task_that_takes_notes_cannot_judge_replies_alone(tmp_path):
    roles = {"judge": "simulated:j", "notetaker": "simulated:n"}
    block = {"protocol": "conversation", "verifier": "choice", "memories": ["note_taking"], "roles": roles}
    yaml = write_task(tmp_path, [talk(0)], block)
    with pytest.raises(InterbenchError, match="take notes along the conversation"):
        judge_file(yaml, write_replies(tmp_path / "m.jsonl", {"id": "talk0", "reply": "x"}))


# --- the command line -------------------------------------------------------------------------------------------------


def run_cli(arguments: list[str]) -> tuple[int, str]:
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        if isinstance(result.exception, InterbenchError):  # `main` tells it and exits with 1
            return 1, str(result.exception)
        raise result.exception
    return result.exit_code, result.output


def test_several_runs_are_judged_by_one_command_and_compared(tmp_path):
    yaml = write_task(tmp_path, [flawed(i) for i in range(6)], CRITIQUE)
    for name in ("one", "two"):
        play(yaml, Speaker(objector), run_id=name)
    code, output = run_cli(
        ["judge", str(tmp_path / "runs"), "-o", str(tmp_path / "out"), "--task", str(yaml), "--judges", SIMULATED]
    )
    assert code == 0, output
    assert output.count("6 episodes, 0 failed, finished") == 2
    assert "judge@j1" in output
    code, output = run_cli(["compare", str(tmp_path / "out"), "--metric", "eda"])
    assert code == 0, output
    assert "6 episodes in both" in output


def test_a_command_whose_output_lies_among_its_runs_never_judges_that_again(tmp_path):
    task = played_critique(tmp_path, n=2)
    command = ["judge", str(tmp_path / "runs"), "-o", str(tmp_path / "runs"), "--task", str(task.yaml)]
    for told in (0, 1):
        code, output = run_cli([*command, "--judges", SIMULATED])
        assert code == 0, output
        assert output.count("left out: ") == told
        assert output.count("2 episodes, 0 failed") == 1
    written = [one.parent for one in (tmp_path / "runs" / "interbench").rglob("manifest.json")]
    assert len(written) == 1
    own = str(tmp_path / "runs" / "interbench")
    code, output = run_cli(["judge", own, *command[2:], "--judges", SIMULATED])
    assert (code, "name the runs that it judged" in output) == (1, True)
    code, output = run_cli(["judge", str(written[0]), *command[2:], "--judges", SIMULATED])
    assert code == 0, "a run that is named itself is judged"
    assert "left out: " not in output


def test_items_that_a_file_of_replies_says_nothing_of_are_told(tmp_path):
    yaml = write_task(tmp_path, [flawed(i) for i in range(3)], CRITIQUE)
    file = write_replies(tmp_path / "m.jsonl", {"id": "item0", "reply": "There are 3."})
    command = ["judge", "--replies", str(file), "--task", str(yaml), "-o", str(tmp_path / "o"), "--judges", SIMULATED]
    code, output = run_cli(command)
    assert code == 0, output
    assert "2 items of the task's data have no reply in the file" in output


def test_a_clarification_that_only_the_new_judges_ask_for_is_counted_and_is_no_failure(tmp_path):
    item = {"gold": {"defect": "two numbers", "fix": "2 cats"}, "answer": "2"}
    yaml = write_task(tmp_path, [flawed(0, **item), flawed(1)], CRITIQUE | {"clarify": True})
    lines = [{"id": "item0", "reply": "They contradict each other. Which one?"}, {"id": "item1", "reply": "2"}]
    file = write_replies(tmp_path / "m.jsonl", *lines)
    with OpenAIServer(JudgeBrain()) as server:
        judged = judge_file(yaml, file, judges=servers_judges(server, "a"))
    assert (judged.played.n_failed, judged.played.errors) == (0, {})
    found = run_from_folder(judged.folder, OFFERS)
    table = found.metric_set.table(found.summaries)
    assert (table["eda"].value, table["n_never_told"].value) == (0.5, 1)
    assert "solved_after_clarification" not in table
    first = next(record for record in records(judged.folder) if record.episode_id == "item0")
    assert [(end.branch, end.reason) for end in first.ends] == [("clarification", "never_told")]
    assert (first.status, len(first.turns)) == ("finished", 1)


def test_a_clarification_of_the_run_is_judged_again_where_the_new_judges_see_it_too(tmp_path):
    item = {"gold": {"defect": "two numbers", "fix": "2 cats"}, "answer": "2"}
    yaml = write_task(tmp_path, [flawed(0, **item)], CRITIQUE | {"clarify": True})
    lines = [
        {"id": "item0", "reply": "They contradict each other. Which one?"},
        {"id": "item0", "branch": "clarification", "round": 1, "reply": "Answer: 2"},
    ]
    file = write_replies(tmp_path / "m.jsonl", *lines)
    with OpenAIServer(JudgeBrain()) as server:
        judged = judge_file(yaml, file, judges=servers_judges(server, "a"))
    found = run_from_folder(judged.folder, OFFERS)
    table = found.metric_set.table(found.summaries)
    assert (table["solved_after_clarification"].value, table["n_never_told"].value) == (1, 0)


# --- a file of the user's own ---------------------------------------------------------------------------------------


@pytest.fixture
def local_run(tmp_path, monkeypatch):
    """A run of a task that reads the file in INTERBENCH_DATA, which is not set any more; the file, and its task."""
    yaml = write_task(tmp_path / "task", [flawed(i) for i in range(3)], CRITIQUE)
    text = yaml.read_text(encoding="utf-8").replace("dataset_path: json\n", "dataset_path: INTERBENCH_DATA\n")
    yaml.write_text(text.replace("dataset_kwargs: {data_files: items.jsonl}\n", ""), encoding="utf-8")
    items = (tmp_path / "task" / "items.jsonl").rename(tmp_path / "mine.jsonl")
    monkeypatch.setenv("INTERBENCH_DATA", str(items))
    task = play(yaml, Speaker(lambda call: "There are 3."))
    monkeypatch.delenv("INTERBENCH_DATA")
    return task, items


def judge_local(task, tmp_path, *more):
    return run_cli(
        ["judge", str(task.folder), "-o", str(tmp_path / "o"), "--task", str(task.yaml), "--judges", SIMULATED, *more]
    )


def test_a_run_of_a_local_file_is_judged_with_the_file_that_its_manifest_names(local_run, tmp_path):
    task, items = local_run
    code, output = judge_local(task, tmp_path)
    assert code == 0, output
    [manifest] = (tmp_path / "o").rglob("manifest.json")
    assert json.loads(manifest.read_text(encoding="utf-8"))["data"]["source"] == str(items)


def test_data_wins_over_the_manifests_file(local_run, tmp_path):
    task, items = local_run
    moved = items.rename(tmp_path / "moved.jsonl")
    code, output = judge_local(task, tmp_path, "--data", str(moved))
    assert code == 0, output
    items.write_text("no JSON at all", encoding="utf-8")
    assert judge_local(task, tmp_path, "--data", str(moved))[0] == 0


def test_a_file_that_is_gone_is_named_with_what_to_do(local_run, tmp_path, monkeypatch):
    task, items = local_run
    moved = items.rename(tmp_path / "moved.jsonl")
    code, output = judge_local(task, tmp_path)
    assert code == 1
    assert f"the run was played with {items}" in " ".join(output.split())
    assert "--data FILE" in output
    monkeypatch.setenv("INTERBENCH_DATA", str(moved))
    assert judge_local(task, tmp_path)[0] == 0


def test_items_that_were_corrected_are_judged_into_a_folder_of_their_own(tmp_path):
    yaml = write_task(tmp_path, [flawed(0)], CRITIQUE)
    file = write_replies(tmp_path / "m.jsonl", {"id": "item0", "reply": "There are 3."})
    first, same = (judge_file(yaml, file, judges=SIMULATED).folder for _ in range(2))
    write_task(tmp_path, [flawed(0, gold={"defect": "It says two numbers."})], CRITIQUE)
    corrected = judge_file(yaml, file, judges=SIMULATED).folder
    assert first == same
    assert corrected != first
    assert "It says two numbers." in records(corrected)[0].turns[0].verdicts[0].prompt.text
    assert "It says two numbers." not in records(first)[0].turns[0].verdicts[0].prompt.text


def test_a_judge_of_the_task_whose_key_is_missing_says_how_to_name_others(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "INTERBENCH_JUDGES"):
        monkeypatch.delenv(name, raising=False)
    block = CRITIQUE | {"judges": [{"backend": "openai", "model": "gpt-5.2"}, {"backend": "simulated", "model": "j"}]}
    yaml = write_task(tmp_path, [flawed(0)], block)
    file = write_replies(tmp_path / "m.jsonl", {"id": "item0", "reply": "x"})
    with pytest.raises(InterbenchError, match="OPENAI_API_KEY is not set") as caught:
        judge_file(yaml, file)
    assert "Other judges for one run: INTERBENCH_JUDGES=" in str(caught.value)


def test_a_run_in_which_much_failed_exits_with_3(tmp_path):
    task = played_critique(tmp_path, n=2)
    with OpenAIServer(lambda request: refusal(400, "no such model")) as server:
        command = ["judge", str(task.folder), "-o", str(tmp_path / "o"), "--task", str(task.yaml)]
        code, output = run_cli([*command, "--judges", servers_judges(server, "a")])
    assert code == 3
    assert "failed in 2 episodes: judge a failed" in output or "no such model" in output


def test_a_relative_of_the_model_on_the_panel_is_told(tmp_path):
    yaml = write_task(tmp_path, [flawed(0)], CRITIQUE)
    file = write_replies(tmp_path / "m.jsonl", {"id": "item0", "reply": "x"})
    with OpenAIServer(JudgeBrain()) as server:
        command = ["judge", "--replies", str(file), "--task", str(yaml), "-o", str(tmp_path / "o")]
        command += ["--receiver", "gpt-4o", "--judges", servers_judges(server, "gpt-5.2", "claude-x")]
        code, output = run_cli(command)
    assert code == 0, output
    assert "openai:gpt-5.2 judged gpt-4o, which is of the same family (gpt)" in output
    assert "claude-x judged" not in output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["x"], "-o FOLDER"),
        (["-o", "out"], "name run folders, or --replies"),
        (["x", "--replies", "y", "-o", "out"], "one of the two"),
        (["x", "-o", "out", "--receiver", "me"], "--receiver belongs to --replies"),
        (["--replies", "y.jsonl", "-o", "out"], "Name it with --task"),
        (["nowhere", "-o", "out"], "no run folder here"),
    ],
)
def test_a_command_that_cannot_work_says_what_to_do(arguments, told):
    code, output = run_cli(["judge", *arguments])
    assert code == 1
    assert told in output
