"""`interbench report`, and the report that a run with --output_path leaves behind."""

from __future__ import annotations

import json
import re

import pytest
from loguru import logger
from typer.testing import CliRunner

from interbench_tasks.cli import app
from interbench_tasks.errors import InterbenchError, RunFolderError
from interbench_tasks.runs.pictures import kept_pictures
from tests.harness_fakes import ChatModel, cli_args, evaluate, question_rows, write_task
from tests.report_runs import run_of_loops


def report(*arguments):
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def folder(tmp_path):
    return run_of_loops(tmp_path / "run")


def test_a_page_is_written_and_named_with_size_and_time(folder, tmp_path):
    done = report(folder, "-o", tmp_path / "r.html")
    assert re.fullmatch(rf"wrote {tmp_path}/r\.html \(\d+\.\d MB, 6 episodes, \d+\.\d s\)\n", done.stdout)
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_without_a_name_the_page_is_report_html(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report(folder)
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("r.md", "# Interbench report"),
        ("r.csv", "table,"),
        ("r.json", "{"),
        ("r.tex", "\\begin{tabular}"),
        ("r", "<!doc"),
    ],
)
def test_the_files_name_says_the_format(folder, tmp_path, name, begins):
    report(folder, "-o", tmp_path / name)
    text = (tmp_path / name).read_text()
    assert begins in text[:2000]
    assert (begins == "<!doc") == text.startswith("<!doctype")


def test_an_ending_of_another_kind_of_file_is_refused_unless_the_format_is_named(folder, tmp_path):
    allowed = r"no format ends in \.pdf: allowed: \.html, \.htm, \.md, \.csv, \.json, \.tex; or name the --format"
    with pytest.raises(InterbenchError, match=allowed):
        report(folder, "-o", tmp_path / "rep.pdf")
    assert not (tmp_path / "rep.pdf").exists()
    report(folder, "-o", tmp_path / "rep.txt", "--format", "md")
    assert (tmp_path / "rep.txt").read_text().startswith("# Interbench report")


def test_labels_name_the_runs_of_a_report_and_the_page_then_shows_who_was_tested(folder, tmp_path):
    other = run_of_loops(tmp_path / "other")
    runs = json.loads(report(folder, other, "--label", "ours", "--label", "theirs", "--format", "json").stdout)["runs"]
    assert [run["name"] for run in runs] == ["ours", "theirs"]
    report(folder, other, "--label", "ours", "--label", "theirs", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert '<th scope="row">theirs<small>' in page
    assert page.count('<span class="role">receiver</span><span>pupil</span>') == 2
    with pytest.raises(InterbenchError, match="--label: 1 labels for 2 RUN arguments"):
        report(folder, other, "--label", "ours", "--format", "json")
    with pytest.raises(InterbenchError, match="--label x: 2 runs of loops have it"):
        report(tmp_path, "--label", "x", "--format", "json")


def test_the_receiver_is_not_called_another_model_of_any_run(folder, tmp_path):
    run_of_loops(tmp_path / "other", receiver="other")
    run_of_loops(tmp_path / "third")
    report(tmp_path, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert '<span class="role">receiver</span>' not in page
    assert '<span class="role">provider</span>' in page


def test_tables_go_to_the_terminal_where_no_file_is_named(folder):
    assert json.loads(report(folder, "--format", "json").stdout)["runs"][0]["name"] == "pupil"
    assert report(folder, "--format", "md").stdout.startswith("# Interbench report")


def test_an_unknown_format_is_refused_with_those_that_exist(folder):
    with pytest.raises(
        InterbenchError, match=r"--format htm \(did you mean 'html'\?\): allowed: html, md, csv, json, latex"
    ):
        report(folder, "--format", "htm")


def test_what_cannot_be_read_is_told_on_stderr_too(folder, tmp_path):
    with (folder / "episodes.jsonl").open("a") as file:
        file.write("torn")
    done = report(folder, "-o", tmp_path / "r.csv")
    assert done.stderr.startswith("warning: pupil: episodes.jsonl, line 7 cannot be read")


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match="there is no such folder; name a run folder"):
        report(tmp_path / "nowhere")


# --- after a run --------------------------------------------------------------------------------------------------


@pytest.fixture
def said():
    lines: list[str] = []
    sink = logger.add(lines.append, format="{level} {message}", level="INFO")
    yield lines
    logger.remove(sink)


def played(tmp_path, **more):
    write_task(tmp_path, question_rows(4))
    evaluate(ChatModel(lambda conversation: "Answer: B"), tmp_path, **more)
    (path,) = tmp_path.rglob("metrics.json")
    return path.parent


def test_a_run_with_an_output_path_leaves_its_report(tmp_path, said):
    folder = played(tmp_path)
    page = (folder / "report.html").read_text()
    assert "bridge_task" in page
    assert "UNFINISHED" not in page
    assert re.search(rf"INFO interbench: the report is {folder}/report\.html \(0\.\d MB, \d+\.\d s\)", "".join(said))


def test_a_run_without_an_output_path_or_told_not_to_leaves_none(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_RUNS", str(tmp_path / "runs"))
    assert not (played(tmp_path, args=cli_args(None)) / "report.html").exists()
    monkeypatch.setenv("INTERBENCH_REPORT", "off")
    for path in tmp_path.rglob("metrics.json"):
        path.unlink()
    assert not (played(tmp_path) / "report.html").exists()


def test_a_report_that_fails_harms_no_run_and_is_told_with_the_command_to_repeat_it(tmp_path, said, monkeypatch):
    def broken(*_):
        raise RuntimeError("no page today")

    monkeypatch.setattr("interbench_tasks.harness.task.write_report", broken)
    folder = played(tmp_path)
    assert json.loads((folder / "metrics.json").read_text())["metrics"]["accuracy"]["value"] == 1.0
    text = "".join(said)
    assert (
        f"WARNING interbench: no report: RuntimeError('no page today'). Later: interbench report {folder} -o " in text
    )


def test_a_run_without_pictures_keeps_none(tmp_path):
    assert kept_pictures(played(tmp_path)) == {}
