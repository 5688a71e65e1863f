"""`interbench people sample, labels, agreement, calibrate`, as a person uses them one after the other."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from interbench_tasks.cli import app
from interbench_tasks.errors import InterbenchError
from interbench_tasks.labels.items import label_run
from interbench_tasks.labels.store import LABELS, read_labels
from tests.labelled_runs import critique_run, fill_sheet, number_of, talk_run, truth_of, vote_texts

pytest.importorskip("ppi_py", reason="the extra `calibration` is not installed")


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, words)), terminal_width=200)
    if isinstance(result.exception, InterbenchError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


def truthful(run):
    return lambda row: vote_texts(truth_of(number_of(run, row["item"])))


def lenient(run):
    """Who sees nothing wrong in every fifth item."""

    def say(row):
        number = number_of(run, row["item"])
        return {"detected": "no"} if number % 5 == 0 else vote_texts(truth_of(number))

    return say


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Path:
    folder = critique_run(tmp_path_factory.mktemp("command") / "run")
    out = folder.parent / "labels.csv"
    said("people", "sample", folder, "-o", out, "--n", 120)
    run = label_run(folder)
    sheets = [out.with_name(f"labels-a{n}.csv") for n in (1, 2)]
    for sheet in sheets:
        fill_sheet(sheet, truthful(run))
    said("people", "labels", folder, *sheets)
    return folder


def test_from_a_run_to_a_corrected_rate(tmp_path):
    folder, out = critique_run(tmp_path / "run"), tmp_path / "labels.csv"
    told = said("people", "sample", folder, "-o", out, "--n", 120, "--seed", 3)
    sheets = [tmp_path / f"labels-a{n}.csv" for n in (1, 2)]
    assert "drew 120 of 240 replies in 4 strata" in told
    assert f"then: interbench people labels {folder} {sheets[0]} {sheets[1]}" in told
    assert not out.exists()
    run = label_run(folder)
    fill_sheet(sheets[0], truthful(run))
    fill_sheet(sheets[1], lenient(run))
    told = said("people", "labels", folder, *sheets)
    assert "240 labels added" in told
    third = tmp_path / "third.csv"
    assert "wait for a third person: interbench people sample" in told
    said("people", "sample", folder, "--third", "-o", third)
    fill_sheet(third, truthful(run))
    assert "wait for a third" not in said("people", "labels", folder, third)
    assert {label.annotator for label in read_labels(folder)} == {"a1", "a2", "third"}
    told = said("people", "calibrate", folder)
    eda = next(line for line in told.splitlines() if line.startswith("eda"))
    assert " 240 " in eda
    assert " 120 " in eda
    assert "120 of 120 sampled replies are labelled" in told
    assert "people with each other" in said("people", "agreement", folder)


def test_two_sheets_hold_the_same_replies_and_one_person_gets_one_sheet(tmp_path):
    folder = critique_run(tmp_path / "run", 60)
    said("people", "sample", folder, "-o", tmp_path / "two.csv", "--n", 30)
    rows = [rows_of(tmp_path / f"two-a{n}.csv") for n in (1, 2)]
    assert [row["item"] for row in rows[0]] == [row["item"] for row in rows[1]]
    assert [{row["annotator"] for row in own} for own in rows] == [{"a1"}, {"a2"}]
    said("people", "sample", folder, "-o", tmp_path / "one.csv", "--n", 30, "--annotators", 1)
    assert (tmp_path / "one.csv").exists()


def test_a_sheet_that_may_be_filled_in_stops_the_command_before_anything_is_written(tmp_path):
    folder = critique_run(tmp_path / "run", 60)
    (tmp_path / "x-a2.csv").write_text("mine")
    with pytest.raises(InterbenchError, match=r"x-a2\.csv: is there already"):
        said("people", "sample", folder, "-o", tmp_path / "x.csv", "--n", 30)
    assert not (tmp_path / "x-a1.csv").exists()
    assert not (folder / "sample.json").exists()


def test_a_sample_grows_and_leaves_out_what_is_labelled(labelled, tmp_path):
    told = said("people", "sample", labelled, "-o", tmp_path / "more.csv", "--n", 140)
    assert "more-a1.csv: 20 replies" in told
    with pytest.raises(InterbenchError, match="can only be made larger; this changes seed 0 -> 1"):
        said("people", "sample", labelled, "-o", tmp_path / "other.csv", "--n", 140, "--seed", 1)


def test_conversations_are_sampled_by_ability(tmp_path):
    folder = talk_run(tmp_path / "run", 40)
    told = said("people", "sample", folder, "-o", tmp_path / "x.csv", "--n", 45, "--annotators", 1)
    assert "drew 45 of 120 replies in 3 strata" in told
    said("people", "sample", folder, "-o", tmp_path / "y.csv", "--n", 20, "--annotators", 1, "--abilities", "ie,cr")
    kinds = {row["kind"] for row in rows_of(tmp_path / "y.csv")}
    assert kinds == {"IE", "CR"}


def test_one_wrong_file_of_two_leaves_both_untaken(tmp_path):
    folder = critique_run(tmp_path / "run", 60)
    said("people", "sample", folder, "-o", tmp_path / "x.csv", "--n", 30)
    run, (good, bad) = label_run(folder), (tmp_path / "x-a1.csv", tmp_path / "x-a2.csv")
    fill_sheet(good, truthful(run))
    fill_sheet(bad, lambda row: {"detected": "perhaps"})
    with pytest.raises(InterbenchError, match="line 2: detected = 'perhaps'"):
        said("people", "labels", folder, good, bad)
    assert not (folder / LABELS).exists()
    assert "30 labels added" in said("people", "labels", folder, good)
    assert "0 labels added" in said("people", "labels", folder, good)
    assert "30 were there already" in said("people", "labels", folder, good)


def test_labels_without_a_sample_are_refused(tmp_path):
    folder = critique_run(tmp_path / "run", 20)
    (tmp_path / "x.csv").write_text("item\n")
    with pytest.raises(InterbenchError, match="no sample was drawn here: interbench people sample"):
        said("people", "labels", folder, tmp_path / "x.csv")


def test_nothing_for_a_third_person_is_told(labelled, tmp_path):
    assert "no two labels differ" in said("people", "sample", labelled, "--third", "-o", tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("command", ["agreement", "calibrate"])
def test_every_format_can_be_written_and_read(labelled, tmp_path, command):
    for name, begins in [
        ("text", "mmpcbench_local: "),
        ("md", "**mmpcbench\\_local: "),
        ("latex", "% mmpcbench_local"),
    ]:
        assert said("people", command, labelled, "--format", name).startswith(begins)
    out = tmp_path / "x.csv"
    said("people", command, labelled, "--format", "csv", "--out", out)
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert {"task", "run", "what", "value", "ci95_low", "ci95_high", "n", "unscored"} <= set(rows[0])
    said("people", command, labelled, "--format", "json", "--out", tmp_path / "x.json")
    (one,) = json.loads((tmp_path / "x.json").read_text())
    assert one["task"] == "mmpcbench_local"
    assert one["notes"]


def test_markdown_is_a_table(labelled):
    lines = said("people", "calibrate", labelled, "--format", "md").splitlines()
    assert lines[2].startswith("| metric | panel | corrected |")
    assert lines[3] == "|:--|" + "--:|" * 7


def test_an_unknown_format_is_refused_with_what_there_is(labelled):
    with pytest.raises(InterbenchError, match=r"--format jsn \(did you mean 'json'\?\): allowed: text, md"):
        said("people", "calibrate", labelled, "--format", "jsn")


def test_a_file_that_cannot_be_written_is_named(labelled, tmp_path):
    with pytest.raises(InterbenchError, match="--out .* cannot be written"):
        said("people", "agreement", labelled, "--out", tmp_path / "nowhere" / "x.txt")


def test_of_several_runs_those_without_labels_are_left_out_and_said(labelled, tmp_path):
    other = critique_run(labelled.parent / "second", 20)
    told = said("people", "agreement", labelled.parent)
    assert f"warning: {other}: has no labels; left out" in told
    with pytest.raises(InterbenchError, match="holds 2 runs; name one of them"):
        said("people", "sample", labelled.parent, "-o", tmp_path / "x.csv")
    with pytest.raises(InterbenchError, match="none of these runs has a sample"):
        said("people", "calibrate", other)


def test_labels_of_one_run_serve_another_of_the_same_replies(labelled, tmp_path):
    again = critique_run(tmp_path / "again")
    told = said("people", "calibrate", again, "--labels", labelled)
    assert "sampled replies are labelled" in told
