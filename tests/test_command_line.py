"""`interbench ...`, as a user types it."""

from __future__ import annotations

import json
import socket

import pytest
from typer.testing import CliRunner

from interbench_tasks import __version__
from interbench_tasks.cli import app, main
from interbench_tasks.errors import RunFolderError
from interbench_tasks.runs.folder import RunFolder
from interbench_tasks.task_files import own_tasks
from tests.servers.openai_server import OpenAIServer

ROWS = [{"prompt": f"Question {i}?", "choices": ["x", "y"], "gold": "y"} for i in range(3)]


def interbench(*words) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-real-key-0123456789")


COLUMNS = ("--column", "question=prompt", "--column", "options=choices", "--column", "answer=gold")


def test_version_and_tasks():
    assert interbench("version") == (0, f"{__version__}\n")
    code, text = interbench("tasks")
    assert code == 0
    assert "interfeedback_demo" in text


def test_a_new_task_is_self_contained_and_ready(tmp_path, data):
    code, text = interbench("new-task", "--name", "my_task", "--data", data, *COLUMNS, "--out", tmp_path / "tasks")
    assert code == 0, text
    assert f"lmms-eval --tasks my_task --include_path {tmp_path / 'tasks'}" in text
    written = (tmp_path / "tasks" / "my_task.yaml").read_text()
    assert "include:" not in written
    assert "class: !function interbench_tasks.harness.task.InteractiveTask" in written
    code, text = interbench("check", tmp_path / "tasks" / "my_task.yaml")
    assert (code, "ok (protocol feedback_loop" in text) == (0, True)


def test_a_copy_of_a_task_with_its_own_data_may_lie_anywhere(tmp_path):
    code, text = interbench("new-task", "--name", "my_demo", "--from", "interfeedback_demo", "--out", tmp_path)
    assert code == 0, text
    assert interbench("check", tmp_path / "my_demo.yaml")[0] == 0


def test_score_says_where_a_run_was_stopped(tmp_path):
    from tests.test_runs import MANIFEST, record

    folder = RunFolder(tmp_path)
    folder.append(record(0))
    folder.finish()
    folder.write_json("manifest.json", MANIFEST | {"data": {"n_episodes": 3}})
    code, text = interbench("score", tmp_path)
    assert (code, "UNFINISHED: only 1 of 3 episodes are here" in text) == (0, True)


def run_folder(path, *doc_ids: int):
    from tests.test_runs import MANIFEST, record

    folder = RunFolder(path)
    for doc_id in doc_ids:
        folder.append(record(doc_id))
    folder.finish()
    folder.write_json("manifest.json", MANIFEST | {"data": {"n_episodes": 2}, "models": {"receiver": {"name": "m"}}})
    return path


@pytest.mark.parametrize("command", ["score", "table"])
def test_a_run_that_was_stopped_at_once_does_not_hide_the_others(tmp_path, command):
    empty = run_folder(tmp_path / "a")
    run_folder(tmp_path / "b", 0, 1)
    code, text = interbench(command, tmp_path)
    assert code == 0
    assert "#Neg" in text or "n_negative" in text
    assert f"{empty}: was stopped before its first episode ended" in text
    with pytest.raises(RunFolderError, match=r"no episode has ended here yet; .* run the same command again"):
        interbench(command, empty)


def test_a_damaged_run_does_not_hide_the_others_and_ends_with_1(tmp_path):
    good, torn = run_folder(tmp_path / "b", 0, 1), run_folder(tmp_path / "a", 0, 1)
    lines = torn / "episodes.jsonl"
    lines.write_bytes(lines.read_bytes()[:-30])
    code, text = interbench("score", tmp_path)
    assert code == 1
    assert f"\n{good}\n" in text
    assert f"{lines}, line 2: not JSON" in text
    with pytest.raises(RunFolderError, match="line 2: not JSON"):
        interbench("score", torn)


def test_check_shows_what_becomes_of_the_columns(tmp_path):
    data = tmp_path / "mine.jsonl"
    data.write_text(json.dumps({"question": "?", "answer": "y", "picture": "a.png", "choices": ["x", "y"]}) + "\n")
    code, text = interbench("new-task", "--name", "my_task", "--data", data, "--out", tmp_path)
    assert code == 0
    assert "first item: no picture, no options (its answer is compared as a text)" in text
    assert "columns that nothing uses: choices, picture" in text
    warning, ready = text.index("warning: column picture looks like pictures"), text.index("It is ready")
    assert warning < ready
    assert "`--column pictures=picture`" in text[warning:ready]


@pytest.mark.parametrize(
    ("column", "cell", "warned"),
    [
        ("image_2", None, True),
        ("Images", "x", True),
        ("scan", "a/b.JPG", True),
        ("scans", ["1.png", "2.png"], True),
        ("image_caption", "A cat on a mat.", False),
        ("source", "book.pdf", False),
        ("year", 1999, False),
    ],
)
def test_a_column_that_looks_like_pictures_and_is_not_used_is_warned_of(tmp_path, column, cell, warned):
    data = tmp_path / "mine.jsonl"
    rows = [{"question": "?", "answer": "y"}, {"question": "?", "answer": "y", column: cell}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, text = interbench("new-task", "--name", "my_task", "--data", data, "--out", tmp_path)
    assert code == 0
    assert (f"warning: column {column} looks like pictures" in text) == warned
    _, checked = interbench("check", tmp_path / "my_task.yaml")
    assert (f"`--column pictures={column}`" in checked) == warned


def test_a_new_task_with_missing_columns_says_what_there_is(tmp_path, data):
    code, text = interbench("new-task", "--name", "my_task", "--data", data, "--out", tmp_path)
    assert code == 1
    assert "columns.question: 'question'" in text
    assert "it has: prompt, choices, gold" in text
    assert f"interbench check {tmp_path / 'my_task.yaml'}" in text


def test_a_task_is_never_overwritten(tmp_path, data):
    interbench("new-task", "--name", "my_task", "--data", data, *COLUMNS, "--out", tmp_path)
    with pytest.raises(Exception, match="already exists"):
        interbench("new-task", "--name", "my_task", "--data", data, *COLUMNS, "--out", tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "interfeedback_lcal"), "no such task .did you mean 'interfeedback_local'"),
        (("--column", "question"), "must be ours=yours"),
        (("--data", "nowhere.jsonl"), "there is no such file"),
        (("--data", __file__), "unknown kind of file"),
    ],
)
def test_wrong_words_for_a_new_task(tmp_path, words, message):
    with pytest.raises(Exception, match=message):
        interbench("new-task", "--name", "my_task", "--out", tmp_path, *words)


def test_check_tells_every_problem_of_every_file(tmp_path, data):
    interbench("new-task", "--name", "my_task", "--data", data, *COLUMNS, "--out", tmp_path)
    good = (tmp_path / "my_task.yaml").read_text()
    (tmp_path / "one.yaml").write_text(good.replace("- simple", "- simpel").replace("  temperature: 0\n", "", 1))
    (tmp_path / "two.yaml").write_text(good.replace("task: my_task", "task: mme") + "nonsense: 1\n")
    code, text = interbench("check", tmp_path / "one.yaml", tmp_path / "two.yaml", tmp_path / "my_task.yaml")
    assert code == 1
    assert "one.yaml: metadata.interbench.arms = 'simpel' (did you mean 'simple'?)" in text
    assert "one.yaml: generation_kwargs.temperature is missing" in text
    assert "two.yaml: task = 'mme' is a task of the harness" in text
    assert "two.yaml: nonsense is no known key" in text
    assert "my_task.yaml: ok" in text


def test_check_names_the_file_whose_data_is_wrong(tmp_path, data):
    interbench("new-task", "--name", "my_task", "--data", data, *COLUMNS, "--out", tmp_path)
    data.write_text(json.dumps(ROWS[0] | {"gold": "z"}) + "\n")
    code, text = interbench("check", tmp_path / "my_task.yaml")
    assert code == 1
    assert "my_task.yaml: " in text
    assert "row 0, column gold: answer 'z' is none of the options (A: x, B: y)" in text


def test_every_task_that_ships_passes_the_check():
    code, text = interbench("check", "--no-data", *own_tasks().values())
    assert code == 0, text


def test_our_errors_are_text_and_not_a_traceback(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["interbench", "score", "/nowhere"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    shown = capsys.readouterr()
    assert "no run folder here" in shown.err
    assert "Traceback" not in shown.err


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.integration
def test_the_doctor_finds_this_installation_healthy_and_shows_no_key(monkeypatch):
    with OpenAIServer(lambda request: "x") as server:
        monkeypatch.setenv("INTERBENCH_PROVIDER", f"openai:m@{server.url}")
        code, text = interbench("doctor")
    assert code == 0, text
    assert "all is well" in text
    assert f"{server.url}: answers" in text
    assert "OPENAI_API_KEY: is set" in text
    assert "not-a-real-key" not in text


@pytest.mark.integration
def test_the_doctor_names_each_problem_with_its_cure(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INTERBENCH_PROVIDR", "x")
    monkeypatch.setenv("INTERBENCH_RUNS", str(tmp_path / "file" / "runs"))
    url = f"http://127.0.0.1:{free_port()}/v1"
    code, text = interbench("doctor", "--server", url)
    assert code == 1
    assert "WRONG INTERBENCH_PROVIDR: is set but means nothing to us" in text
    assert "WRONG runs:" in text
    assert f"WRONG {url}: does not answer" in text
    assert text.count("cure:") >= 3
    assert "3 problem(s) found" in text
