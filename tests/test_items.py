"""Rows -> episodes, and data files -> rows."""

from __future__ import annotations

import io
import json
from pathlib import Path

import datasets
import pytest
from PIL import Image

from interbench_tasks.config import CommonOptions
from interbench_tasks.errors import DataError, PictureError
from interbench_tasks.items import ItemReader, options_from, target_from
from interbench_tasks.prompts import PromptError
from interbench_tasks.rows import DataSet, Rows, load_rows


def png(colour: str = "red", size: tuple[int, int] = (8, 6)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def reader(rows: list[dict], folder: Path | None = None, **options) -> ItemReader:
    return ItemReader(
        DataSet(rows=Rows(rows), source="data.jsonl", folder=folder), CommonOptions(protocol="feedback_loop", **options)
    )


ROW = {"id": "q7", "question": "Which?", "options": ["red", "blue"], "answer": "blue", "category": "colour"}


def test_a_row_becomes_an_episode():
    episode = reader([ROW]).episode(0, 2)
    assert (episode.id, episode.doc_id, episode.repeat) == ("q7", 0, 2)
    assert episode.options == {"A": "red", "B": "blue"}
    assert episode.target == "B"
    assert episode.category == "colour"
    assert episode.cluster is None
    assert episode.question.text.startswith("Which?\nA. red\nB. blue\n\n")
    assert 'a line of the form "Answer: X"' in episode.question.text


def test_a_free_form_row_has_no_options():
    episode = reader([{"question": "How many?", "answer": 7}]).episode(0, 0)
    assert (episode.id, episode.options, episode.target) == ("0", {}, "7")


def test_columns_can_have_any_name():
    row = {"q": "Which?", "gold": "A", "o": "['x', 'y']", "fam": "c1", "first": "B", "hint": "h"}
    columns = {"question": "q", "answer": "gold", "options": "o", "first_answer": "first", "extra": ["hint"]}
    episode = reader([row], columns=columns, cluster="fam").episode(0, 0)
    assert (episode.target, episode.cluster, episode.first_answer, episode.extra) == ("A", "c1", "B", {"hint": "h"})


def test_missing_columns_are_named_with_what_there_is():
    with pytest.raises(DataError, match=r"columns.question: 'q'; cluster: 'fam'\n  it has: question, answer"):
        reader([{"question": "?", "answer": "1"}], columns={"question": "q"}, cluster="fam")


def test_the_picture_comes_first_and_relative_paths_start_at_the_data_file(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png())
    episode = reader([ROW | {"image": "images/a.png"}], folder=tmp_path).episode(0, 0)
    picture, text = episode.question.content
    assert (picture.width, picture.height, picture.mime) == (8, 6, "image/png")
    assert text.startswith("Which?")
    assert picture.data == png()


def test_several_pictures_keep_their_order():
    row = ROW | {
        "image_1": {"bytes": png("red"), "path": None},
        "image_2": None,
        "image_3": {"bytes": png("blue"), "path": None},
    }
    columns = {"pictures": ["image_1", "image_2", "image_3"]}
    episode = reader([row], columns=columns).episode(0, 0)
    assert [picture.data for picture in episode.question.pictures] == [png("red"), png("blue")]


def test_a_list_of_pictures_in_one_column():
    row = ROW | {"image": [png("red"), png("blue")]}
    assert [p.data for p in reader([row]).episode(0, 0).question.pictures] == [png("red"), png("blue")]


def test_an_empty_recorded_answer_stays_recorded():
    rows = [ROW | {"id": "a", "first": ""}, ROW | {"id": "b", "first": "A"}]
    made = reader(rows, columns={"first_answer": "first"})
    assert [made.episode(i, 0).first_answer for i in (0, 1)] == ["", "A"]


@pytest.mark.parametrize("row", [ROW | {"first": None}, ROW])
def test_a_missing_recorded_answer_is_neither_wrong_nor_asked_for(row):
    made = reader([row, ROW | {"id": "b", "first": "A"}], columns={"first_answer": "first"})
    with pytest.raises(DataError, match="row 0, column first: is empty"):
        made.episode(0, 0)


@pytest.mark.parametrize("cell", [{"url": "a.png"}, {"x": 1}, {"bytes": None, "path": None, "url": "a.png"}])
def test_a_picture_in_an_unknown_form_is_an_error_and_not_a_question_without_picture(cell):
    with pytest.raises(PictureError, match="row 0, column image"):
        reader([ROW | {"image": cell}]).episode(0, 0)


@pytest.mark.parametrize("answer", [["red", "crimson"], {"v": 46}, float("nan")])
def test_an_answer_that_is_no_text_is_an_error(answer):
    with pytest.raises(DataError, match="row 0, column answer: must be one text or number"):
        reader([{"question": "?", "answer": answer}]).episode(0, 0)


@pytest.mark.parametrize("cell", [{"a": "p", "A": "q"}, {"first": "p", "second": "q"}, {"1": "p"}, ["x", None]])
def test_options_whose_labels_clash_or_that_are_missing_are_an_error(cell):
    with pytest.raises(DataError, match="row 1: (labels of options must be|an option must be a text)"):
        options_from(cell, "row 1")


def test_an_extra_column_may_be_missing_in_a_row():
    rows = [ROW | {"note": "n"}, {key: value for key, value in ROW.items() if key != "id"} | {"id": "b"}]
    made = reader(rows, columns={"extra": ["note"]})
    assert [made.episode(i, 0).extra for i in (0, 1)] == [{"note": "n"}, {}]


def test_a_prompt_that_cannot_be_filled_for_a_row_is_our_error():
    with pytest.raises(PromptError, match="prompts.question cannot be filled: ZeroDivisionError"):
        reader([ROW | {"k": 0}], prompts={"question": "{{ 1 // row.k }}"}).episode(0, 0)


def test_a_prompt_never_sees_the_answers():
    row = ROW | {"first": "A", "hint": "h"}
    prompts = {"question": "{{ row | list | sort | join(' ') }}"}
    episode = reader([row], prompts=prompts, columns={"first_answer": "first"}).episode(0, 0)
    assert episode.question.text == "category hint id options question"


def test_a_row_that_cannot_be_played_still_has_its_category():
    assert reader([{"id": "q", "category": "c", "question": None, "answer": "x"}]).identity(0) == ("q", "c", None)


def test_pictures_are_made_smaller_where_the_yaml_says_so(tmp_path):
    (tmp_path / "a.png").write_bytes(png(size=(80, 40)))
    pictures = {"max_side": 20, "root": str(tmp_path)}
    (picture,) = reader([ROW | {"image": "a.png"}], pictures=pictures).episode(0, 0).question.pictures
    assert (picture.width, picture.height) == (20, 10)


def test_a_missing_picture_names_row_and_column(tmp_path):
    with pytest.raises(PictureError, match=r"data\.jsonl, row 0, column image"):
        reader([ROW | {"image": "nowhere.png"}], folder=tmp_path).episode(0, 0)


def test_ids_that_stand_twice_are_named_with_their_rows():
    with pytest.raises(DataError, match=r"data\.jsonl, column id: ids must be unique, but 'q7' in rows 0, 2\n"):
        reader([ROW, ROW | {"id": "q8"}, ROW])
    assert reader([ROW, ROW], columns={"id": None}).episode(1, 0).id == "1"
    assert reader([ROW | {"id": None}, ROW | {"id": ""}]).episode(1, 0).id == "1"


def test_a_prompt_of_the_yaml_replaces_ours():
    episode = reader([ROW | {"hint": "look up"}], prompts={"question": "{{ row.hint }}: {{ question }}"}).episode(0, 0)
    assert episode.question.text == "look up: Which?"


def test_a_prompt_with_an_unknown_name_is_an_error():
    with pytest.raises(
        PromptError, match=r"prompts.question: 'qestion' is undefined; there is: options, question, row"
    ):
        reader([ROW], prompts={"question": "{{ qestion }}"}).episode(0, 0)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (["x", "y"], {"A": "x", "B": "y"}),
        ([1, 2.5], {"A": "1", "B": "2.5"}),
        ("['x', \"it's\"]", {"A": "x", "B": "it's"}),
        ('["x", "y"]', {"A": "x", "B": "y"}),
        ({"A": "x", "C": "y", "D": None}, {"A": "x", "C": "y"}),
        (None, {}),
        ("", {}),
        ([], {}),
    ],
)
def test_options_are_read_in_every_usual_form(cell, expected):
    assert options_from(cell, "row 1") == expected


@pytest.mark.parametrize("cell", ["red or blue", "__import__('os')", 7, ["x"] * 27])
def test_unreadable_options_name_the_row(cell):
    with pytest.raises(DataError, match="row 1"):
        options_from(cell, "row 1")


@pytest.mark.parametrize(
    ("answer", "options", "answer_is", "target"),
    [
        ("B", {"A": "red", "B": "blue"}, "auto", "B"),
        ("(b)", {"A": "red", "B": "blue"}, "auto", "B"),
        ("blue", {"A": "red", "B": "blue"}, "auto", "B"),
        ("4", {"A": "6", "B": "4"}, "auto", "B"),
        ("A", {"A": "B", "B": "A"}, "letter", "A"),
        ("A", {"A": "B", "B": "A"}, "text", "B"),
        ("A", {"A": "A", "B": "B"}, "auto", "A"),
        ("7 cm", {}, "auto", "7 cm"),
        ("(b)", {"A": "red", "B": "blue"}, "as_is", "B"),
        ("red and blue", {"A": "red", "B": "blue"}, "as_is", "red and blue"),
    ],
)
def test_targets(answer, options, answer_is, target):
    assert target_from(answer, options, answer_is, "row 1") == target


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        ("E", {"A": "red", "B": "blue"}, "none of the options"),
        ("A", {"A": "B", "B": "A"}, "fits several options"),
        ("same", {"A": "same", "B": "same"}, "fits several options"),
    ],
)
def test_a_target_is_never_guessed(answer, options, message):
    with pytest.raises(DataError, match=message):
        target_from(answer, options, "auto", "row 1")


# --- files --------------------------------------------------------------------------------------------------------


def test_json_lines_may_mix_types_in_a_column(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_text('{"question": "a", "options": [1, 2]}\n\n{"question": "b", "options": ["x"], "more": null}\n')
    data = load_rows(str(file), name=None, split="test", options={})
    assert [row["options"] for row in data.rows] == [[1, 2], ["x"]]
    assert list(data.rows.features) == ["question", "options", "more"]
    assert data.folder == tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "x.jsonl, line 1: no valid JSON"), ("[1]\n", "line 1: a row must be an object"), ("", "holds no rows")],
)
def test_broken_json_lines_name_the_line(tmp_path, text, message):
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        load_rows(str(file), name=None, split="test", options={})


def test_parquet_pictures_stay_undecoded(tmp_path):
    rows = {
        "question": ["?"],
        "image": [{"bytes": png(), "path": "a.png"}],
        "images": [[{"bytes": png("blue"), "path": None}]],
    }
    features = datasets.Features(
        {"question": datasets.Value("string"), "image": datasets.Image(), "images": datasets.List(datasets.Image())}
    )
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "x.parquet")
    data = load_rows("parquet", name=None, split="test", options={"data_files": str(tmp_path / "x.parquet")})
    assert data.picture_columns == ("image", "images")
    assert data.rows[0]["image"]["bytes"] == png()
    assert data.rows[0]["images"][0]["bytes"] == png("blue")


def test_a_saved_folder_is_read_and_an_unknown_split_is_named(tmp_path):
    datasets.DatasetDict({"dev": datasets.Dataset.from_dict({"question": ["?"]})}).save_to_disk(tmp_path / "d")
    assert len(load_rows(str(tmp_path / "d"), name=None, split="dev", options={}).rows) == 1
    with pytest.raises(DataError, match="has no split 'test'; it has: dev"):
        load_rows(str(tmp_path / "d"), name=None, split="test", options={})


def test_the_users_own_file_comes_from_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps(ROW))
    monkeypatch.setenv("INTERBENCH_DATA", str(file))
    assert load_rows("INTERBENCH_DATA", name=None, split="test", options={}).source == str(file)
    monkeypatch.setenv("INTERBENCH_DATA", "/nowhere.jsonl")
    with pytest.raises(DataError, match=r"INTERBENCH_DATA = /nowhere.jsonl: there is no such file"):
        load_rows("INTERBENCH_DATA", name=None, split="test", options={})
    monkeypatch.delenv("INTERBENCH_DATA")
    with pytest.raises(DataError, match="set the environment variable INTERBENCH_DATA"):
        load_rows("INTERBENCH_DATA", name=None, split="test", options={})


def test_an_offline_hub_data_set_says_what_was_wanted_and_how_to_get_a_copy():
    with pytest.raises(
        DataError, match=r"data set 'nobody/nothing' \(configuration 'c'\), split 'test'.*\n  offline: copy it"
    ):
        load_rows("nobody/nothing", name="c", split="test", options={})


def test_a_missing_file_is_named():
    with pytest.raises(DataError, match=r"data file nowhere\.parquet not found"):
        load_rows("nowhere.parquet", name=None, split="test", options={})


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"question": "a"}\r\n{"question": "b"}\r\n')
    assert [row["question"] for row in load_rows(str(file), name=None, split="test", options={}).rows] == ["a", "b"]
