"""A short sentence without a value answers nothing; words that may be an answer do."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from interbench_tasks.answers import ChoiceOrMathVerifier, extract_text
from interbench_tasks.answers.notation import is_prose, notation
from interbench_tasks.answers.short_replies import is_statement
from interbench_tasks.records import Extraction

HOLDS_A_VALUE = re.compile(r"\d|\\[a-z]+|[π∞√=<>≤≥±°%^]")


@pytest.fixture(scope="module")
def verifier():
    made = ChoiceOrMathVerifier()
    yield made
    made.close()


@pytest.mark.parametrize(
    "text",
    [
        "Nothing here settles the question.",
        "It depends.",
        "The lines are parallel.",
        "We compare both angles first.",
        "Nothing in figure 2 settles this.",
        "None of the 4 angles fits.",
        "The picture shows two circles with one tangent line",
        "No entiendo la imagen.",
        "Ich kann das Bild leider nicht sehen.",
        "Je ne vois pas la figure.",
    ],
)
@pytest.mark.parametrize("target", ["2", "7", "even", r"\frac{1}{2}"])
def test_a_short_sentence_that_answers_nothing_is_unreadable_and_not_wrong(verifier, text, target):
    judgement = verifier.judge(text, target, {})
    assert judgement.extraction == Extraction(answer=None, method="none")
    assert not judgement.correct


@pytest.mark.parametrize(
    ("text", "target", "correct"),
    [
        ("46", "46", True),
        ("46", "45", False),
        ("even", "even", True),
        ("Bugs Bunny", "even", False),
        ("None", "5", False),
        ("Yes, it is", "No", False),
        ("true.", "True", True),
        ("x + y", "y + x", True),
        ("AB", "CD", False),
        ("twenty-five", "25", True),
        ("It makes forty-six.", "46", True),
        ("It makes forty-six.", "45", False),
        ("That makes 46 cm.", "46", True),
        ("That makes 46 cm.", "45", False),
        ("The line is y = 3", "y = 3", True),
        ("the longer diagonal", "the shorter diagonal", False),
        (r"increasing on (1, \infty), and it is constant elsewhere", "5", False),
        ("答案不明", "3", False),
    ],
)
def test_a_value_or_a_few_words_are_an_answer_right_or_wrong(verifier, text, target, correct):
    judgement = verifier.judge(text, target, {})
    assert judgement.extraction.answer is not None
    assert judgement.extraction.method == "short"
    assert judgement.correct == correct


@pytest.mark.parametrize(
    "text", ["Every point lies on the circle", "It is the longest side of the triangle", "Nobody wins"]
)
def test_a_sentence_that_is_the_target_is_right(verifier, text):
    assert verifier.judge(f"{text}.", text, {}).correct
    assert verifier.judge(f"{text}.", "5", {}).extraction.answer is None


def test_an_announced_sentence_is_an_answer_as_it_was(verifier):
    assert verifier.judge("Answer: It depends", "5", {}).extraction == Extraction(
        answer="It depends", method="declared"
    )


def test_a_multiple_choice_reply_is_read_as_before(verifier):
    options = {"A": "It depends.", "B": "They are parallel."}
    assert verifier.judge("They are parallel.", "B", options).correct


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("nothing", False),
        ("Nothing fits", True),
        ("one two three four five", False),
        ("red green blue black white", False),
        ("red green blue black white pink", True),
        ("they don't", True),
        ("No it never stops", True),
        ("No", False),
        (r"\text{even}", False),
    ],
)
def test_the_rule_at_its_edges(text, expected):
    assert is_statement(text) == expected


# --- real texts -----------------------------------------------------------------------------------------------------


def wordy(text: str) -> bool:
    return is_prose(notation(text)) and not HOLDS_A_VALUE.search(text)


@pytest.fixture
def mmrefine(shared_data):
    from datasets import Dataset

    rows = Dataset.from_parquet(str(shared_data / "mmrefine/test.parquet")).remove_columns("image")
    return list(rows)


def replies(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_no_right_answer_of_the_free_form_data_sets_is_a_statement(shared_data, mmrefine):
    mathverse = json.loads((shared_data / "mathverse/testmini_text_only.json").read_text(encoding="utf-8"))
    golds = {row["answer"] for row in mathverse if row["question_type"] != "multi-choice"}
    golds |= {str(row["answer"]) for row in mmrefine if not row["options"]}
    assert len(golds) > 400
    assert not [gold for gold in golds if is_statement(gold)]


def test_sentences_out_of_real_solutions_are_statements(shared_data, mmrefine):
    texts = [row["initial_solution"] for row in mmrefine]
    texts += [row["response"] for row in replies(shared_data / "mmmu_pro_outputs/gpt-4o_standard10_cot.jsonl")]
    found = {
        sentence.strip()
        for text in texts
        for line in text.split("\n")
        for sentence in re.split(r"(?<=[.!?])\s+", line)
        if re.fullmatch(r"\s*[A-Z][^*:#$`()]{7,98}\.\s*", sentence)
    }
    sentences = [text for text in found if wordy(text) and extract_text(text).method == "short"]
    assert len(sentences) > 3_000
    assert sum(map(is_statement, sentences)) / len(sentences) > 0.96


def test_most_answers_in_words_are_none(shared_data):
    rows = replies(shared_data / "mmmu_pro_outputs/gpt-4o_standard10_cot.jsonl")
    listed = [ast.literal_eval(row["options"]) if isinstance(row["options"], str) else row["options"] for row in rows]
    options = {str(text).strip() for options in listed for text in options}
    short = [text for text in options if len(text) <= 100 and "\n" not in text and "<image" not in text and wordy(text)]
    assert len(short) > 6_000
    assert sum(not is_statement(text) for text in short) / len(short) > 0.65
