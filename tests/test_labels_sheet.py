"""Labels on paper: a CSV that gives nothing away, and what comes back of it, with every problem by line."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from interbench_tasks.errors import DataError
from interbench_tasks.labels.items import Judgeable, label_run
from interbench_tasks.labels.sampling import Design, drawn
from interbench_tasks.labels.sheet import MOST_CHARS, labels_from_sheet, sheet_text, write_sheet
from interbench_tasks.labels.store import Label
from tests.critiques import YES, record
from tests.labelled_runs import critique_manifest, critique_run, fill_sheet, talk_run, with_pictures, write_run

YES_CELLS = {"detected": "yes", "diag": "2", "strategy": "refusal", "strategy_score": "1"}


@pytest.fixture
def run(tmp_path):
    return label_run(critique_run(tmp_path / "run", 40))


@pytest.fixture
def sheet(tmp_path, run):
    """An empty sheet of the whole run."""
    path = tmp_path / "labels.csv"
    write_sheet(path, sheet_text(run, run.items, annotator="a1", beside=tmp_path))
    return path


def ids(run) -> list[str]:
    return [item.id for item in run.items]


def taken(path, run, *, stored=(), annotator=""):
    return labels_from_sheet(path, run, sample=ids(run), stored=stored, annotator=annotator)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def of_a_reply(run, reply: str, **changes) -> dict[str, str]:
    item: Judgeable = replace(run.items[0], reply=reply, **changes)
    return rows_of(sheet_text(run, [item], annotator="a1", beside=run.folder))[0]


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_a_sheet_has_all_that_is_needed_and_empty_cells(run, sheet):
    first = rows_of(sheet.read_text(encoding="utf-8-sig"))[0]
    item = run.items[0]
    assert (first["item"], first["annotator"], first["reply"]) == (item.id, "a1", item.reply)
    assert first["reference"] == item.reference
    assert "Precise" in first["guide"]
    assert [first[name] for name in ("detected", "diag", "strategy", "strategy_score")] == [""] * 4


def test_a_sheet_shows_no_verdict_and_no_models_name(run, sheet):
    text = sheet.read_text(encoding="utf-8-sig")
    assert "secret-model" not in text
    names = {"item", "annotator", "kind", "question", "reference", "conversation", "reply", "pictures", "guide"}
    assert set(rows_of(text)[0]) - names == {"detected", "diag", "strategy", "strategy_score"}
    judged = label_run(write_run(run.folder.parent / "other", [record(0, [YES] * 3)], critique_manifest()))
    unjudged = replace(judged, items=tuple(replace(one, panel=None, judges={}) for one in judged.items))
    sheets = [sheet_text(one, one.items, annotator="a1", beside=run.folder) for one in (judged, unjudged)]
    assert sheets[0] == sheets[1]


def test_conversations_are_scored_with_the_bands_of_their_ability(tmp_path):
    run = label_run(talk_run(tmp_path, 5))
    rows = rows_of(sheet_text(run, run.items, annotator="a1", beside=tmp_path))
    recall = next(row for row in rows if row["kind"] == "MR")
    assert "3-4: Recalls it with a small imprecision (4)" in recall["guide"]
    assert "score" in recall
    assert "detected" not in recall
    assert "User: turn 0" in recall["conversation"]
    assert "none" not in {row["kind"] for row in rows}, "the arm is not told"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_a_reply_is_no_formula(run, start):
    assert of_a_reply(run, f"{start}HYPERLINK(1)")["reply"] == f"'{start}HYPERLINK(1)"


def test_a_reply_that_a_spreadsheet_would_cut_is_cut_and_says_so(run):
    reply = of_a_reply(run, "x" * 200_000)["reply"]
    assert len(reply) < 32_767
    assert reply.endswith(f"[... {200_000 - MOST_CHARS} characters more ...]")


def test_pictures_are_named_from_the_sheets_folder_and_missing_ones_said_to_be_missing(tmp_path):
    folder = write_run(tmp_path / "run", [with_pictures(record(0, [YES] * 3), 1, 2)], critique_manifest())
    (folder / "pictures").mkdir()
    (folder / "pictures" / f"{1:032x}.webp").write_bytes(b"x")
    run = label_run(folder)
    (row,) = rows_of(sheet_text(run, run.items, annotator="a1", beside=tmp_path / "sheets"))
    assert row["pictures"].split("\n") == [
        f"../run/pictures/{1:032x}.webp",
        f"(not kept: 40x30, {2:032x})",
    ]


def test_a_sheet_that_is_there_is_not_written_over(run, sheet):
    before = sheet.read_bytes()
    with pytest.raises(DataError, match="is there already, and may be filled in"):
        write_sheet(sheet, "x")
    assert sheet.read_bytes() == before


def test_half_an_emoji_can_be_written(run, tmp_path):
    text = sheet_text(run, [replace(run.items[0], reply="\ud83d!")], annotator="a1", beside=tmp_path)
    write_sheet(tmp_path / "odd.csv", text)
    assert "\\ud83d!" in (tmp_path / "odd.csv").read_text(encoding="utf-8-sig")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        write_sheet(tmp_path / "nowhere" / "x.csv", "x")


# --- what comes back --------------------------------------------------------------------------------------------------


def test_a_filled_sheet_gives_labels(run, sheet):
    fill_sheet(sheet, lambda row: YES_CELLS if row["item"] == ids(run)[0] else {"detected": "N"})
    filled = taken(sheet, run)
    assert len(filled.labels) == 40
    assert dict(filled.labels[0].values) == YES_CELLS
    assert dict(filled.labels[1].values) == {"detected": "no"}
    assert {(label.annotator, label.source) for label in filled.labels} == {("a1", "csv")}


def test_rows_that_are_not_filled_in_are_left_for_later(run, sheet):
    fill_sheet(sheet, lambda row: {"detected": "no"} if row["item"] in ids(run)[:3] else {})
    filled = taken(sheet, run)
    assert (len(filled.labels), filled.n_empty) == (3, 37)


def test_what_was_taken_before_is_not_taken_again(run, sheet):
    fill_sheet(sheet, lambda row: {"detected": "no"} if row["item"] in ids(run)[:3] else {})
    stored = taken(sheet, run).labels
    fill_sheet(sheet, lambda row: {"detected": "no"} if row["item"] in ids(run)[:5] else {})
    filled = taken(sheet, run, stored=stored)
    assert (len(filled.labels), filled.n_there) == (2, 3)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_spreadsheets_may_separate_as_they_like(run, sheet, separator):
    rows = rows_of(fill_sheet(sheet, lambda row: {"detected": "no"}).read_text(encoding="utf-8"))
    target = io.StringIO()
    writer = csv.DictWriter(target, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    sheet.write_text(target.getvalue(), encoding="utf-8-sig")
    assert len(taken(sheet, run).labels) == 40
    sheet.write_bytes(b"\xef\xbb\xbfsep=" + separator.encode() + b"\r\n" + target.getvalue().encode("utf-8"))
    assert len(taken(sheet, run).labels) == 40, "the separator may be said in a line of its own"


def test_columns_may_be_moved_and_those_to_read_left_out(run, tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("strategy_score,strategy,diag,detected,item,annotator\n" + f",,,no,{ids(run)[0]},me\n")
    assert len(taken(path, run).labels) == 1


def test_who_filled_it_in_can_be_said_outside(run, tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("item,detected,diag,strategy,strategy_score\n" + f"{ids(run)[0]},no,,,\n")
    (label,) = taken(path, run, annotator="p7").labels
    assert label.annotator == "p7"
    with pytest.raises(DataError, match="line 2: names no annotator"):
        taken(path, run)


def test_every_problem_is_named_by_line_and_nothing_is_taken(run, tmp_path):
    known = ids(run)
    path = tmp_path / "bad.csv"
    rows = [
        "strange,a1,no,,,",
        f"{known[0]},a1,maybe,,,",
        f'{known[1]},a1,"n\no",,,',
        f"{known[2]},a1,yes,7,refusal,1",
        f"{known[3]},some.one@example.org,no,,,",
        f"{known[4]},a1,no,,,",
        f"{known[4]},a1,yes,2,refusal,1",
        f"{known[5]},a1,no,,,",
    ]
    path.write_text("item,annotator,detected,diag,strategy,strategy_score\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError) as caught:
        taken(path, run)
    told = str(caught.value).split("\n")
    assert "line 2: item 'strange' is no reply of this run" in told[0]
    assert "line 3: detected = 'maybe' is not on the scale; allowed: yes, no" in told[1]
    assert "line 4: detected = 'n" in str(caught.value)
    assert "line 6: diag = '7' is not on the scale; allowed: 0, 1, 2" in str(caught.value), "after a cell of two lines"
    assert "line 7: 'some.one@example.org' cannot be an annotator's id" in str(caught.value)
    assert f"line 9: a1 has labelled {known[4]} in line 8 already" in str(caught.value)
    assert told[-1] == "nothing of this file was taken"


def test_a_label_that_says_something_else_than_before_is_refused(run, sheet):
    stored = [Label(item=ids(run)[0], annotator="a1", values=YES_CELLS, source="page")]
    fill_sheet(sheet, lambda row: {"detected": "no"} if row["item"] == ids(run)[0] else {})
    with pytest.raises(DataError, match="otherwise before: detected yes, diag 2"):
        taken(sheet, run, stored=stored)


def test_a_reply_outside_of_the_sample_is_refused(run, sheet):
    fill_sheet(sheet, lambda row: {"detected": "no"})
    sample = drawn(run, Design(n=20, strata="none")).items
    with pytest.raises(DataError, match="is not in the sample; labels that were not drawn by chance") as caught:
        labels_from_sheet(sheet, run, sample=sample, stored=())
    assert str(caught.value).count("not in the sample") == 20


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("item,annotator,detected,diag,strategy", "lacks the column strategy_score"),
        ("annotator,detected,diag,strategy,strategy_score", "lacks the column item"),
        ("item,annotator,detcted,diag,strategy,strategy_score", r"lacks the column detected \(did you mean 'detcted'"),
    ],
)
def test_a_missing_column_is_named(run, tmp_path, header, told):
    path = tmp_path / "x.csv"
    path.write_text(header + "\n")
    with pytest.raises(DataError, match=f"line 1: {told}"):
        taken(path, run)


def test_a_score_of_another_kind_is_refused(tmp_path):
    run = label_run(talk_run(tmp_path / "run", 6))
    path = tmp_path / "x.csv"
    path.write_text(f"item,annotator,score\n{run.items[0].id},a1,6\n{run.items[1].id},a1,4.5\n")
    with pytest.raises(DataError) as caught:
        taken(path, run)
    assert str(caught.value).count("is not on the scale; allowed: 0, 1, 2, 3, 4, 5") == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\xff\xfeitem", "cannot be read as UTF-8"),
        (b'item,annotator,detected,diag,strategy,strategy_score\n"a', "no valid CSV"),
    ],
)
def test_a_file_that_is_no_sheet_is_named(run, tmp_path, content, told):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=told):
        taken(path, run)


def test_a_file_that_is_not_there_is_named(run, tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv: cannot be read"):
        taken(tmp_path / "nothing.csv", run)


def test_many_problems_are_cut_and_counted(run, sheet):
    fill_sheet(sheet, lambda row: {"detected": "yes", "diag": "9", "strategy": "x", "strategy_score": "9"})
    with pytest.raises(DataError, match="and 70 more\nnothing of this file was taken"):
        taken(sheet, run)
