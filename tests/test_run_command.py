"""`interbench run`: passes everything on to lmms-eval, and exits non-zero where that would hide an error."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from interbench_tasks.cli import app
from interbench_tasks.cli_run import _told
from interbench_tasks.errors import HarnessError, RunFolderError
from interbench_tasks.harness import watched
from interbench_tasks.harness.running import Ended, _ended, run_harness
from interbench_tasks.records import BranchEnd, Message, Reply, Turn, Usage, Verdict
from interbench_tasks.runs.episodes import SECOND_PASS
from interbench_tasks.runs.folder import RunFolder, write_json
from interbench_tasks.runs.outcome import outcome_of
from interbench_tasks.runs.status import Note, note, notes_in
from tests.cli import harness_results, interbench, records, run
from tests.harness_fakes import question_rows, write_task
from tests.plugin_package import install_plugin
from tests.servers.openai_server import OpenAIServer
from tests.test_interrupt_cli import planted
from tests.test_runs import record

ROOT = Path(__file__).resolve().parents[1]


def command_line(*words) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["run", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


# --- the command line -------------------------------------------------------------------------------------------


def test_every_option_is_passed_on_in_its_order():
    words = (
        "--model x -b 4 --limit -1 --model_args a=1,b={2} --tasks=a,b -n 2 -x --gen_kwargs temperature=0 --log_samples"
    )
    code, text = command_line("--dry-run", *words.split())
    assert code == 0
    passed_on = words.replace("a=1,b={2}", "'a=1,b={2}'").split()
    assert text.split()[1:] == ["-m", "interbench_tasks.harness.watched", *passed_on]


def test_a_key_in_the_arguments_is_not_shown():
    code, text = command_line("--model_args", "model=a,api_key=hush-hush", "--dry-run")
    assert (code, "hush" in text, "api_key=[redacted]" in text) == (0, False, True)


def test_help_tells_the_exit_codes():
    code, text = command_line("--help")
    assert code == 0
    for line in ("1    an error", "2    wrong usage", "3    done, but", "4    unfinished", "130  stopped"):
        assert line in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Exit codes"),
        (("tasks", "list"), "got 'tasks'; for other commands call lmms-eval itself"),
        (("eval",), "got 'eval'"),
        (("--tui",), "got '--tui'"),
    ],
)
def test_what_is_no_run_is_wrong_usage(words, said):
    code, text = command_line(*words)
    assert (code, said in text) == (2, True)


def config_file(folder: Path, *entries: object) -> Path:
    path = folder / "run.txt"  # no *.yaml: the harness would take it for a task
    path.write_text(yaml.safe_dump(entries[0] if len(entries) == 1 else list(entries)), encoding="utf-8")
    return path


@pytest.mark.parametrize("option", ["--config", "--conf", "--config="])
def test_a_list_whose_entries_set_a_variable_of_ours_differently_is_refused(tmp_path, option):
    one, two = {"env": {"INTERBENCH_PROVIDER": "openai:a", "X": 1}}, {"env": {"X": 2}}
    path = config_file(tmp_path, one, two)
    words = [f"{option}{path}"] if option.endswith("=") else [option, path]
    code, text = command_line(*words, "--dry-run")
    assert code == 2
    assert "its entries set INTERBENCH_PROVIDER differently" in text


@pytest.mark.parametrize(
    "entries",
    [
        [{"env": {"INTERBENCH_PROVIDER": "openai:a"}}],
        [{"env": {"INTERBENCH_PROVIDER": "openai:a", "X": 1}}, {"env": {"INTERBENCH_PROVIDER": "openai:a", "X": 2}}],
        [{"tasks": "a"}, {"tasks": "b"}],
        [{"env": "no mapping"}, "no entry"],
    ],
)
def test_other_lists_are_the_harness_s_matter(tmp_path, entries):
    assert command_line("--config", config_file(tmp_path, *entries), "--dry-run")[0] == 0


def test_a_config_that_cannot_be_read_is_the_harness_s_matter(tmp_path):
    (tmp_path / "bad.yaml").write_text("a: [", encoding="utf-8")
    assert command_line("--config", tmp_path / "bad.yaml", "--dry-run")[0] == 0
    assert command_line("--config", tmp_path / "none.yaml", "--dry-run")[0] == 0
    assert command_line("--dry-run", "--model", "x", "--config")[0] == 0


# --- what a folder tells ----------------------------------------------------------------------------------------


def run_folder(path: Path, *episodes, n: int | None = None, share: float = 0.05, metrics: bool = True, **more) -> Path:
    """A run folder with these records, of `n` that were wanted."""
    folder = RunFolder(path)
    for episode in episodes:
        folder.append(episode)
    folder.finish()
    wanted = len(episodes) if n is None else n
    content = {"task": "t", "data": {"n_episodes": wanted}, "options": {"max_failed_share": share}, **more}
    write_json(path / "manifest.json", content)
    if metrics:
        write_json(path / "metrics.json", {})
    return path


def fine(doc_id: int, **more):
    return record(doc_id, status="finished", error=None, **more)


def skipped(doc_id: int):
    return record(doc_id, status="skipped", error="the token budget is used up (--max_tokens)")


STOPPED_LATER = replace(fine(1), ends=(BranchEnd(branch=SECOND_PASS, reason="failed", error="used up"),))
FAILED_LATER = replace(STOPPED_LATER, passes=2)


@pytest.mark.parametrize(
    ("episodes", "more", "code", "said"),
    [
        ([fine(0), fine(1)], {}, 0, "t: 2 episodes, 0 failed, finished; interbench score "),
        ([record(0), *map(fine, range(1, 20))], {}, 0, "20 episodes, 1 failed, finished"),
        (
            [record(0), *map(fine, range(1, 19))],
            {},
            3,
            "1 failed (5.3% of those played, MORE than max_failed_share 5",
        ),
        ([record(0), fine(1)], {"share": 0.5}, 0, "1 failed, finished"),
        ([fine(0), FAILED_LATER], {}, 3, "1 failed"),
        ([fine(0), STOPPED_LATER], {}, 4, "0 failed, UNFINISHED (1 not played)"),
        ([fine(0), skipped(1)], {}, 4, "0 failed, UNFINISHED (1 not played)"),
        ([fine(0)], {"n": 3}, 4, "UNFINISHED (2 not played)"),
        ([], {"n": 3}, 4, "UNFINISHED (3 not played)"),
        ([], {}, 0, "0 episodes, 0 failed, finished"),
        ([record(0), skipped(1)], {}, 3, "1 failed (100.0% of those played"),
        ([fine(0)], {"metrics": False}, 3, "finished, NO METRICS"),
        ([fine(0)], {"second_pass": {"n_episodes": None}}, 4, "UNFINISHED (1 not played)"),
        ([fine(0)], {"second_pass": {"n_episodes": 0}}, 0, "finished"),
    ],
)
def test_a_folder_tells_what_came_of_its_run(tmp_path, episodes, more, code, said):
    outcome = outcome_of(run_folder(tmp_path / "run", *episodes, **more))
    assert outcome.exit_code == code
    assert said in outcome.text
    assert outcome.text.endswith(f"interbench score {tmp_path / 'run'}")


def judged(panel: Verdict):
    """An episode of whose three judges one failed."""
    said = [Verdict(judge=f"j{n}", status="scored", score=4) for n in range(2)]
    failed = Verdict(judge="j2", status="error", score=None, reason="HTTP 400")
    turn = Turn(
        index=0,
        parent=None,
        branch="",
        user=Message(role="user", content=("?",)),
        reply=Reply(text="4", usage=Usage()),
        verdicts=(*said, failed),
        verdict=panel,
    )
    return fine(0, turns=(turn,))


def test_a_judge_that_the_others_decide_without_fails_no_run(tmp_path):
    decided = outcome_of(run_folder(tmp_path / "a", judged(Verdict(judge="panel", status="scored", score=4))))
    assert (decided.n_failed, decided.exit_code) == (0, 0)
    undecided = outcome_of(run_folder(tmp_path / "b", judged(Verdict(judge="panel", status="undecided", score=None))))
    assert (undecided.n_failed, undecided.exit_code) == (1, 3)


def test_without_metrics_on_purpose_none_is_missed(tmp_path):
    assert outcome_of(run_folder(tmp_path, fine(0), metrics=False), metrics=False).exit_code == 0


def test_a_folder_without_or_with_an_odd_manifest_says_so(tmp_path):
    with pytest.raises(RunFolderError, match="no such file"):
        outcome_of(tmp_path)
    write_json(tmp_path / "manifest.json", {"task": "t"})
    with pytest.raises(RunFolderError, match="lacks 'data'; was it written by another version"):
        outcome_of(tmp_path)


# --- what a run notes -------------------------------------------------------------------------------------------


def test_what_is_noted_is_read_back_redacted_and_a_torn_line_is_none(tmp_path, monkeypatch):
    path = tmp_path / "status"
    assert notes_in(path) == []
    note("failed", "said to nobody")
    monkeypatch.setenv("INTERBENCH_STATUS", str(path))
    monkeypatch.setenv("SOME_API_KEY", "hush-hush-hush")
    note("begun", task="t", folder=tmp_path / "a\u2028b", metrics=False)
    note("failed", "line 1\n  line 2 hush-hush-hush", task="t")
    path.write_text(f'{path.read_text()}{{"kind": "strange"}}\n{{"kind": "eval', encoding="utf-8")
    begun, failed = notes_in(path)
    assert begun == Note(kind="begun", task="t", folder=tmp_path / "a\u2028b", metrics=False)
    assert failed == Note(kind="failed", task="t", text="line 1 line 2 [redacted]")


def test_a_note_that_cannot_be_written_does_not_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_STATUS", str(tmp_path / "no such folder" / "status"))
    note("evaluated")


DONE, FAILED, PROBLEM = Note(kind="evaluated"), Note(kind="failed", text="F"), Note(kind="problem", text="P", task="t")


@pytest.mark.parametrize(
    ("code", "notes", "received", "exit_code", "why"),
    [
        (0, [DONE], [], 0, ""),
        (0, [DONE], [2], 0, ""),  # it was done before the signal came
        (0, [], [], 1, "the harness ended before it was done, and did not say why"),
        (0, [Note(kind="refused"), DONE], [], 2, ""),  # an entry before `--tasks list`
        (0, [FAILED, DONE], [], 1, ""),  # e.g. a plugin that watches
        (1, [FAILED], [], 1, ""),
        (1, [], [], 1, "the harness ended with exit code 1"),
        (7, [], [], 1, "the harness ended with exit code 7"),
        (2, [], [], 2, ""),
        (2, [FAILED], [], 1, ""),
        (-9, [], [], 1, "the harness was killed by SIGKILL; was memory short?"),
        (-11, [], [], 1, "the harness was killed by SIGSEGV"),
        (-2, [], [], 130, ""),
        (-15, [], [], 143, ""),
        (130, [], [], 130, ""),
        (130, [], [15], 143, ""),
        (-9, [], [15], 143, ""),  # killed after its time of grace
    ],
)
def test_how_the_harness_ended(code, notes, received, exit_code, why):
    assert _ended(code, notes, received) == Ended(exit_code=exit_code, notes=notes, why=why)


@pytest.mark.parametrize(
    ("ended", "exit_code"),
    [
        (Ended(exit_code=0, notes=[DONE]), 0),
        (Ended(exit_code=0, notes=[PROBLEM, DONE]), 3),
        (Ended(exit_code=1, notes=[PROBLEM, FAILED]), 1),
        (Ended(exit_code=2, notes=[PROBLEM]), 2),
        (Ended(exit_code=130, notes=[PROBLEM]), 130),
    ],
)
def test_the_worst_decides(ended, exit_code):
    assert _told(ended) == exit_code


def test_each_task_is_told_on_a_line_and_the_worst_decides(tmp_path, capsys):
    good = run_folder(tmp_path / "good", fine(0))
    short = run_folder(tmp_path / "short", fine(0), skipped(1))
    begun = [Note(kind="begun", task="t", folder=folder) for folder in (good, short)]
    assert _told(Ended(exit_code=0, notes=[*begun, DONE])) == 4
    output, errors = capsys.readouterr()
    assert [line.rpartition(" ")[2] for line in output.splitlines()] == [str(good), str(short)]
    assert errors == ""
    gone = Note(kind="begun", task="gone", folder=tmp_path / "gone")
    assert _told(Ended(exit_code=0, notes=[*begun, gone, PROBLEM, DONE])) == 1
    errors = capsys.readouterr().err
    assert errors == "interbench: t: P\n"
    assert _told(Ended(exit_code=0, notes=[*begun, gone, DONE])) == 1
    assert f"interbench: gone: {tmp_path / 'gone' / 'manifest.json'}: there is no such file" in capsys.readouterr().err


def test_only_the_first_rank_speaks_of_folders(tmp_path, capsys, monkeypatch):
    begun = Note(kind="begun", task="t", folder=run_folder(tmp_path, fine(0), skipped(1)))
    monkeypatch.setenv("RANK", "1")
    assert _told(Ended(exit_code=0, notes=[begun, DONE])) == 0
    assert capsys.readouterr() == ("", "")


# --- the process that it starts ---------------------------------------------------------------------------------


def fake_harness(folder: Path, body: str) -> str:
    """A module that stands for the watched harness; it is found once `folder` is on PYTHONPATH."""
    lines = ["import os, signal, sys, time", "from interbench_tasks.runs.status import note", *body.splitlines()]
    (folder / "fake_harness.py").write_text("\n".join(lines), encoding="utf-8")
    return "fake_harness"


@pytest.fixture
def importable(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    return tmp_path


def test_it_gets_the_arguments_and_its_notes_come_back(importable):
    module = fake_harness(importable, "note('failed', ' '.join(sys.argv[1:]))\nsys.exit(1)")
    ended = run_harness(["--model", "a b"], module=module)
    assert (ended.exit_code, [found.text for found in ended.notes]) == (1, ["--model a b"])


def test_a_process_that_just_ends_or_is_killed_is_an_error(importable):
    assert run_harness([], module=fake_harness(importable, "os._exit(0)")).why.startswith("the harness ended before")
    killed = run_harness([], module=fake_harness(importable, "os.kill(os.getpid(), signal.SIGKILL)"))
    assert (killed.exit_code, killed.why) == (1, "the harness was killed by SIGKILL; was memory short?")


SLEEPER = """\
def stopped(number, frame):
    open('{folder}/got', 'a').write(f'{{number}} ')
    sys.exit(130)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, {handler})
open('{folder}/ready', 'w').close()
time.sleep(60)
"""


def started(folder: Path, body: str, grace_s: float = 10.0) -> subprocess.Popen[str]:
    """Our process with the fake as its child, both in a group of their own, once the child is ready."""
    fake_harness(folder, body)
    code = (
        "import sys; from interbench_tasks.harness.running import run_harness\n"
        f"ended = run_harness([], module='fake_harness', grace_s={grace_s})\n"
        "print(ended.exit_code, ended.why); sys.exit(ended.exit_code)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (folder / "ready").exists():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_passed_on(importable, sign, code):
    with started(importable, SLEEPER.format(folder=importable, handler="stopped")) as process:
        process.send_signal(sign)
        assert process.wait(timeout=20) == code
    assert (importable / "got").read_text().split() == [str(sign.value)]


def test_a_harness_that_does_not_end_is_killed_after_sigterm(importable):
    body = SLEEPER.format(folder=importable, handler="lambda number, frame: None")
    with started(importable, body, grace_s=0.2) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143


def test_the_harness_ends_with_the_process_that_started_it(tmp_path):
    child = "import os; from interbench_tasks.harness.watched import _end_with; print(1, flush=True); _end_with({})"
    parent = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}.format(os.getpid())])\n"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "1\n"
        process.kill()  # by nothing that could be passed on
        began = time.monotonic()
        assert process.stdout.read() == ""  # the child held the other end too
    assert time.monotonic() - began < 20


def test_signals_that_come_together_are_one():
    handler = watched._interrupted_once()
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)
    handler(signal.SIGINT, None)
    time.sleep(watched.SAME_KEY_PRESS_S)
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)


def test_a_harness_of_another_shape_is_refused():
    with pytest.raises(HarnessError, match="json has an unknown shape; pip install 'lmms-eval"):
        watched.watched_command(watched.Evaluations(), "json")


def test_what_is_printed_shows_no_key_of_the_environment(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "hush-hush-hush")
    stream = io.StringIO()
    printed = watched.WithoutKeys(stream)
    assert printed.write("token=abc hush-hush-hush\n") == 25
    print("plain", file=printed, flush=True)
    assert stream.getvalue() == "token=abc [redacted]\nplain\n"
    assert printed.isatty() is False


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x")])
def test_an_error_of_the_harness_is_noted(tmp_path, monkeypatch, error):
    monkeypatch.setenv("INTERBENCH_STATUS", str(tmp_path / "status"))
    evaluations = watched.Evaluations()

    def broken(args):
        raise error

    with pytest.raises(type(error)):
        evaluations.watching(broken)(None)
    [found] = notes_in(tmp_path / "status")
    assert (found.kind, found.text) == ("failed", f"lmms-eval failed: {type(error).__name__}: {error}")
    assert evaluations.worst == 1


def test_a_sys_exit_in_the_middle_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_STATUS", str(tmp_path / "status"))

    def leaving(args):
        sys.exit(0)

    with pytest.raises(SystemExit) as ended:
        watched.Evaluations().watching(leaving)(SimpleNamespace(tasks="a,b"))
    assert ended.value.code == 1
    [found] = notes_in(tmp_path / "status")
    assert (found.kind, found.text) == ("failed", "something ended the process with sys.exit(0)")


# --- the harness itself -----------------------------------------------------------------------------------------

FOREIGN = """\
task: foreign_task
dataset_path: json
dataset_kwargs: {{data_files: {data}}}
test_split: train
output_type: generate_until
doc_to_text: question
doc_to_target: answer
doc_to_visual: !function foreign_parts.no_pictures
generation_kwargs: {{until: [], max_new_tokens: 8, temperature: 0}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


def write_foreign_task(folder: Path) -> None:
    """A plain task of the harness on the rows of `ok_task`."""
    (folder / "foreign_parts.py").write_text("def no_pictures(doc):\n    return []\n", encoding="utf-8")
    text = FOREIGN.format(data=folder / "ok_task.jsonl")
    (folder / "foreign_task.yaml").write_text(text, encoding="utf-8")


@pytest.mark.integration
def test_a_good_run_ends_with_0_and_a_line_for_each_task_of_ours(tmp_path):
    write_task(tmp_path, question_rows(4), name="ok_task")
    write_foreign_task(tmp_path)
    arguments = ("--model", "interbench_simulated", "--tasks", "ok_task,foreign_task", "--include_path", tmp_path)
    token = "hf_fake0123456789fake0123456789"
    done = interbench("run", *arguments, "--output_path", tmp_path / "out", HF_TOKEN=token).check()
    (metrics_file,) = tmp_path.rglob("metrics.json")
    assert done.output.splitlines()[-1] == (
        f"ok_task: 4 episodes, 0 failed, finished; interbench score {metrics_file.parent}"
    )
    assert set(harness_results(tmp_path)) == {"ok_task", "foreign_task"}
    assert "'token': '[redacted]'" in done.output  # the harness itself prints it
    assert token not in done.output


PLUGIN = """\
from interbench_tasks import hookimpl

class Unmeasured:
    def __init__(self, options):
        pass
    def summary(self, record):
        return {"id": record.episode_id, "doc_id": record.doc_id, "repeat": record.repeat, "status": record.status}
    def contributions(self, summary):
        return {}
    def headline(self, names):
        return names
    def table(self, summaries):
        raise ZeroDivisionError("nothing to measure")

@hookimpl
def interbench_metrics():
    return {"unmeasured": Unmeasured}

@hookimpl
def interbench_episode_finished(record):
    if record.task == "watched_task":
        raise RuntimeError("the watcher is blind")
"""


def play_each(command_lines: list[list[str]]) -> None:
    """Each command line in turn, in this process, as the watched harness plays it; writes what came of each.

    Runs in a process of its own: one start of the harness for all of them.
    """
    from interbench_tasks.harness.watched import exit_code_of

    for number, arguments in enumerate(command_lines):
        os.environ["INTERBENCH_STATUS"] = str(Path("status") / f"{number}.jsonl")
        try:
            code = exit_code_of(arguments)
        except SystemExit as ended:
            code = ended.code or 0
        Path("status", f"{number}.code").write_text(str(code), encoding="utf-8")


def ends_of(folder: Path, *command_lines: list[str]) -> list[tuple[int, list[Note]]]:
    """Exit code and notes of each command line."""
    (folder / "status").mkdir()
    code = f"from tests.test_run_command import play_each; play_each({list(command_lines)!r})"
    done = run(sys.executable, "-c", code, cwd=folder, PYTHONPATH=os.pathsep.join([str(folder), str(ROOT)]))
    assert done.exit_code == 0, done.output
    numbers = range(len(command_lines))
    codes = [int((folder / "status" / f"{number}.code").read_text()) for number in numbers]
    return [(codes[number], notes_in(folder / "status" / f"{number}.jsonl")) for number in numbers]


@pytest.mark.slow
@pytest.mark.integration
def test_what_the_harness_hides_is_noted(tmp_path):
    install_plugin(tmp_path, "interbench_blind", PLUGIN)
    write_task(tmp_path, [row | {"answer": "Q"} for row in question_rows(3)], name="broken_task")
    write_task(tmp_path, question_rows(3), name="unmeasured_task", extra="    metrics: unmeasured\n")
    write_task(tmp_path, question_rows(3), name="watched_task")
    write_task(tmp_path, question_rows(30), name="short_task", extra="    engine: {max_live_episodes: 2}\n")
    base = ["--model", "interbench_simulated", "--include_path", str(tmp_path), "--output_path", str(tmp_path / "out")]
    shared = {"model": "interbench_simulated", "include_path": str(tmp_path), "output_path": str(tmp_path / "out")}
    config = config_file(
        tmp_path, {**shared, "tasks": "no_such_task"}, {**shared, "tasks": "broken_task,unmeasured_task,watched_task"}
    )
    option, nothing, listed, unlucky, short = ends_of(
        tmp_path,
        [*base, "--no_such_option", "1"],
        base,
        [*base, "--tasks", "list"],
        ["eval", "--config", str(config)],
        [*base, "--tasks", "short_task", "--max_tokens", "600"],
    )
    assert option == (2, [])
    assert nothing == (2, [Note(kind="refused", text="no --tasks was given")])
    assert listed == (0, [DONE])
    check_the_unlucky(*unlucky)
    code, (begun, done) = short
    assert (code, done) == (0, DONE)
    assert outcome_of(begun.folder).exit_code == 4


def check_the_unlucky(code: int, notes: list[Note]) -> None:
    """An entry with an unknown task, then one whose three tasks each have something else that is wrong."""
    kinds = [(found.kind, found.task) for found in notes]
    assert code == 2
    assert ("refused", "") in kinds
    assert "Tasks not found: no_such_task" in notes[0].text
    folders = {found.task: found.folder for found in notes if found.kind == "begun"}
    assert set(folders) == {"broken_task", "unmeasured_task", "watched_task"}
    assert (outcome_of(folders["broken_task"]).n_failed, outcome_of(folders["broken_task"]).exit_code) == (3, 3)
    assert (outcome_of(folders["unmeasured_task"]).n_failed, outcome_of(folders["unmeasured_task"]).exit_code) == (0, 3)
    assert outcome_of(folders["watched_task"]).exit_code == 0
    told = {found.task: (found.kind, found.text) for found in notes if found.text and found.task}
    assert told["unmeasured_task"][0] == "problem"
    assert "the metrics cannot be computed: ZeroDivisionError('nothing to measure')" in told["unmeasured_task"][1]
    assert told["watched_task"][0] == "failed"
    assert "the watcher is blind" in told["watched_task"][1]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("sign", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_ends_at_once_and_says_how_to_go_on(tmp_path, sign, code):
    brain, _ = planted(tmp_path)
    with OpenAIServer(brain, latency_s=0.15) as server:
        arguments = (
            "--model",
            "interbench_api",
            "--model_args",
            f"model=openai:student@{server.url},max_concurrency=4",
        )
        places = ("--tasks", "long_task", "--include_path", str(tmp_path), "--output_path", str(tmp_path / "out"))
        process = subprocess.Popen(
            [sys.executable, "-c", "from interbench_tasks.cli import main; main()", "run", *arguments, *places],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "INTERBENCH_PROVIDER": f"openai:teacher@{server.url}"},
        )
        deadline = time.monotonic() + 120
        while not any(path.read_text().count("\n") >= 5 for path in tmp_path.rglob("episodes.jsonl")):
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # As a terminal does it: to both processes; what we pass on must not be taken for a second Ctrl-C.
        os.killpg(process.pid, sign) if sign != signal.SIGTERM else process.send_signal(sign)
        began = time.monotonic()
        output, _ = process.communicate(timeout=60)
        took_s = time.monotonic() - began
    assert process.returncode == code, output
    assert took_s < 20  # a second or two; a busy machine takes ten to end Python
    assert "Run the same command to go on" in output
    assert "Traceback" not in output
    kept = records(tmp_path)
    assert 5 <= len(kept) < 40
    assert f"long_task: 40 episodes, 0 failed, UNFINISHED ({40 - len(kept)} not played), NO METRICS" in output
    assert all(json.loads(json.dumps(one))["status"] == "finished" for one in kept)


@pytest.mark.integration
@pytest.mark.slow
def test_under_torchrun_each_rank_tells_how_it_ended(tmp_path):
    write_task(tmp_path, question_rows(5), name="ranked_task")
    write_task(tmp_path, [row | {"answer": "Q"} for row in question_rows(5)], name="broken_task")
    (tmp_path / "interbench").write_text(
        f"#!{sys.executable}\nfrom interbench_tasks.cli import main\nmain()\n", encoding="utf-8"
    )
    (tmp_path / "interbench").chmod(0o755)
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--no-python")
    arguments = ("--model", "interbench_simulated", "--include_path", tmp_path, "--output_path", tmp_path / "out")
    command = (*launcher, tmp_path / "interbench", "run", *arguments, "--tasks")
    done = run(*command, "ranked_task", cwd=ROOT).check()
    assert done.output.count("ranked_task: 5 episodes, 0 failed, finished") == 1
    failed = run(*command, "broken_task", cwd=ROOT)
    assert failed.exit_code != 0
    assert "broken_task: 5 episodes, 5 failed" in failed.output
