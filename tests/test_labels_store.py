"""Labels beside the run: only ever added, whole lines, nobody's twice."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from interbench_tasks.errors import RunFolderError
from interbench_tasks.labels.store import LABELS, Label, add_labels, read_labels

ONE = Label(item="i1", annotator="a1", values={"score": "3"}, source="csv", at="2026-11-30T12:00:00+00:00")


def test_labels_are_read_as_they_were_added_and_in_that_order(tmp_path):
    more = [replace(ONE, annotator="a2", source="page", seconds=12.5), replace(ONE, item="i2", values={"score": "0"})]
    assert add_labels(tmp_path, [ONE]) == 1
    assert add_labels(tmp_path, more) == 2
    assert read_labels(tmp_path) == [ONE, *more]


def test_without_a_file_there_are_none(tmp_path):
    assert read_labels(tmp_path) == []


def test_adding_never_touches_what_is_there(tmp_path):
    add_labels(tmp_path, [ONE])
    before = (tmp_path / LABELS).read_bytes()
    add_labels(tmp_path, [replace(ONE, annotator="a2")])
    assert (tmp_path / LABELS).read_bytes().startswith(before)


def test_the_time_is_written_where_it_is_not_given(tmp_path):
    add_labels(tmp_path, [replace(ONE, at="")])
    (label,) = read_labels(tmp_path)
    assert label.at.endswith("+00:00")


def test_the_same_label_again_is_left_out(tmp_path):
    add_labels(tmp_path, [ONE])
    assert add_labels(tmp_path, [replace(ONE, at="later", source="page"), replace(ONE, annotator="a2")]) == 1
    assert len(read_labels(tmp_path)) == 2


def test_another_label_of_the_same_person_is_refused_and_nothing_is_added(tmp_path):
    add_labels(tmp_path, [ONE])
    other = replace(ONE, values={"score": "4"})
    with pytest.raises(RunFolderError, match="a1 has labelled i1 otherwise already"):
        add_labels(tmp_path, [replace(ONE, item="i9"), other])
    assert read_labels(tmp_path) == [ONE]


def test_two_labels_of_one_person_in_one_go_are_refused(tmp_path):
    with pytest.raises(RunFolderError, match="otherwise already"):
        add_labels(tmp_path, [ONE, replace(ONE, values={"score": "4"})])
    assert not (tmp_path / LABELS).exists()


def test_a_file_saved_without_its_last_line_feed_is_added_to_all_the_same(tmp_path):
    add_labels(tmp_path, [ONE])
    path = tmp_path / LABELS
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    add_labels(tmp_path, [replace(ONE, annotator="a2")])
    assert len(read_labels(tmp_path)) == 2


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"item": "i1"}', '{"item": "i1", "annotator": "a", "values": 3, "source": "csv"}']
)
def test_a_damaged_line_is_named(tmp_path, line):
    add_labels(tmp_path, [ONE])
    with (tmp_path / LABELS).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RunFolderError, match=r"labels\.jsonl, line 2: is no label"):
        read_labels(tmp_path)
    with pytest.raises(RunFolderError, match="line 2"):
        add_labels(tmp_path, [replace(ONE, annotator="a2")])


def test_a_second_label_in_the_file_is_named(tmp_path):
    add_labels(tmp_path, [ONE])
    path = tmp_path / LABELS
    path.write_text(path.read_text() * 2)
    with pytest.raises(RunFolderError, match="line 2: a1 has labelled i1 in line 1 already"):
        read_labels(tmp_path)


def test_a_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / LABELS).write_bytes(b"\xff\xfe")
    with pytest.raises(RunFolderError, match="cannot be read"):
        read_labels(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(RunFolderError, match="cannot be written.*nothing was added"):
        add_labels(tmp_path / "file", [ONE])


def test_several_writers_lose_nothing(tmp_path):
    def write(name: str) -> None:
        for number in range(20):
            add_labels(tmp_path, [replace(ONE, item=f"i{number}", annotator=name)])

    writers = [threading.Thread(target=write, args=(f"a{number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_labels(tmp_path)) == 80


def test_any_text_survives(tmp_path):
    odd = replace(ONE, item="i\u2028\ud800", values={"score": "3"})
    add_labels(tmp_path, [odd])
    assert read_labels(tmp_path) == [odd]
    assert len((tmp_path / LABELS).read_text(encoding="ascii").splitlines()) == 1
    json.loads((tmp_path / LABELS).read_text())
