"""Refusals, pictures and lists in texts that nobody here wrote: LoCoMo's answers, and replies of real models."""

from __future__ import annotations

import json
import zipfile

import pytest

from interbench_tasks.answers.item_lists import item_counts
from interbench_tasks.answers.picture_numbers import picture_numbers
from interbench_tasks.answers.refusals import refuses

UNANSWERABLE = 5
"""LoCoMo's category of questions that the conversation does not answer."""


@pytest.fixture(scope="module")
def questions(shared_data):
    """All questions of the ten conversations."""
    path = shared_data / "locomo" / "locomo10.zip"
    if not path.is_file():
        pytest.skip(f"no LoCoMo at {path}")
    with zipfile.ZipFile(path) as archive:
        files = [name for name in archive.namelist() if name.endswith(".json")]
        return [question for name in files for question in json.loads(archive.read(name))["qa"]]


def test_no_real_answer_is_taken_for_a_refusal(questions):
    answers = [str(question["answer"]) for question in questions if question["category"] != UNANSWERABLE]
    assert len(answers) == 1540
    assert [answer for answer in answers if refuses(answer)] == []


def test_invented_answers_to_unanswerable_questions_are_none_either(questions):
    invented = [
        str(q["adversarial_answer"]) for q in questions if q["category"] == UNANSWERABLE and "adversarial_answer" in q
    ]
    assert len(invented) > 440
    assert {answer for answer in invented if refuses(answer)} <= {"Not mentioned"}


def test_a_real_list_names_exactly_its_own_items(questions):
    lists = [str(question["answer"]) for question in questions if "," in str(question.get("answer", ""))]
    checked, off = 0, []
    for text in lists:
        items = [item.strip() for item in text.split(",") if any(map(str.isalnum, item))]
        if len(text) > 120 or len(items) < 2 or len({item.casefold() for item in items}) < len(items):
            continue
        counts = item_counts(f"They are: {', '.join(items)}.", items)
        checked += 1
        if (counts.precision, counts.recall) != (1, 1):
            off.append((text, counts))
    assert checked > 100
    assert off == []


def test_real_replies_of_three_models_are_read_without_a_crash(shared_data):
    path = shared_data / "iseval" / "test.jsonl"
    if not path.is_file():
        pytest.skip(f"no ISEval at {path}")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    replies = [
        str(text)
        for row in rows
        for of_model in row["responses"].values()
        for text in (of_model.values() if isinstance(of_model, dict) else [of_model])
    ]
    assert len(replies) >= 3 * 175
    for text in replies:
        picture_numbers(text, 5)
        counts = item_counts(text, ["the square"])
        assert 0 <= counts.hits <= counts.named
    # They answer mathematical questions: hardly any declines for want of information.
    assert sum(map(refuses, replies)) / len(replies) < 0.1
