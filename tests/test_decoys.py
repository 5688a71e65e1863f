"""The wrong answer that the leak guard's placebo is tried with."""

from __future__ import annotations

from collections import Counter

import pytest

from interbench_tasks.config import Columns, CommonOptions
from interbench_tasks.decoys import decoy_from
from interbench_tasks.items import ItemReader
from interbench_tasks.rows import load_rows

OPTIONS = {"A": "x", "B": "y", "C": "z", "D": "w"}


def test_every_other_option_is_as_likely():
    drawn = Counter(decoy_from(f"q{i}", "B", OPTIONS, ()) for i in range(3000))
    assert set(drawn) == {"A", "C", "D"}
    assert all(900 < count < 1100 for count in drawn.values())


def test_it_is_the_same_each_time_and_does_not_depend_on_the_order_of_options():
    one = [decoy_from(f"q{i}", "B", OPTIONS, ()) for i in range(20)]
    assert one == [decoy_from(f"q{i}", "B", dict(reversed(OPTIONS.items())), ()) for i in range(20)]


def test_a_free_form_question_gets_another_rows_answer():
    answers = ["1", "2", "2 ", "3"]
    drawn = {decoy_from(f"q{i}", "2", {}, answers) for i in range(50)}
    assert drawn == {"1", "3"}


@pytest.mark.parametrize("others", [[], ["2"], ["2", " 2 "], ["", " "]])
def test_where_there_is_no_other_answer_there_is_no_decoy(others):
    assert decoy_from("q", "2", {}, others) is None


def test_episodes_carry_one(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"question": "a?", "answer": "1"}\n{"question": "b?", "answer": "2"}\n{"question": "c?", "answer": null}\n'
    )
    options = CommonOptions(protocol="feedback_loop", columns=Columns(pictures=None))
    reader = ItemReader(load_rows("json", name=None, split="test", options={"data_files": str(path)}), options)
    assert [reader.episode(doc, 0).decoy for doc in (0, 1)] == ["2", "1"]
