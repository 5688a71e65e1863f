"""Reading choices, free-form answers and reasoning; the tables of hostile replies are in data/choice_cases.json."""
# ruff: noqa: RUF001  (characters that look like others are what is tested)

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from interbench_tasks.answers import (
    ChoiceOrExactVerifier,
    ChoiceVerifier,
    extract_choice,
    extract_text,
    same_answer,
    without_reasoning,
)
from interbench_tasks.answers.choice import READERS
from interbench_tasks.answers.plain import boxes, canonical, plain_text
from interbench_tasks.errors import DataError
from interbench_tasks.records import Extraction

HERE = Path(__file__).resolve().parent
TABLE = json.loads((HERE / "data" / "choice_cases.json").read_text(encoding="utf-8"))
FOUR = {letter: f"choice {letter}" for letter in "ABCD"}
TEN = {letter: f"choice {letter}" for letter in "ABCDEFGHIJ"}
PLACES = {"A": "The Colosseum", "B": "The Great Wall", "C": "Machu Picchu", "D": "Petra"}
SLOW_S = 5.0
"""For 200 KB, on a machine under load; it takes under 1 s."""


CASES = [
    pytest.param(text, TABLE["options"][options], expected, id=f"{group}-{number}")
    for group, rows in TABLE["cases"].items()
    for number, (text, options, expected) in enumerate(rows)
]


@pytest.mark.parametrize(("text", "options", "expected"), CASES)
def test_a_reply_is_read_as_a_careful_reader_reads_it(text, options, expected):
    assert extract_choice(text, options).answer == expected


@pytest.mark.parametrize("letter", "ABCDEFGHIJKL")
@pytest.mark.parametrize(
    "pattern",
    [
        "{}",
        "({})",
        "**{}**",
        "Answer: {}",
        "The answer is {}.",
        r"\boxed{{{}}}",
        "答案是{}",
        "So the answer is ({}).",
        "{}.",
    ],
)
def test_every_letter_can_be_chosen_also_the_words_a_and_i(letter, pattern):
    options = {c: f"choice {c}" for c in "ABCDEFGHIJKL"}
    assert extract_choice(pattern.format(letter), options).answer == letter


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("Answer: C", "declared"),
        (r"\boxed{C}", "boxed"),
        ("| Question | Answer |\n|---|---|\n| 1 | C |", "table"),
        ("It is C.", "stated"),
        ("C", "letter"),
        ("C. choice C", "letter"),
        ("Based on the slope, option C fits the line.", "mentioned"),
        ("No idea what this is.", "none"),
        ("Answer: A or C", "several"),
        ("Answer: F", "outside"),
        ("Answer: cannot be determined", "declined"),
        ("The answer is not C.", "rejected"),
        ("<think>The answer is C", "unfinished_reasoning"),
    ],
)
def test_the_method_names_the_reader_or_why_there_is_no_answer(text, method):
    assert extract_choice(text, FOUR).method == method


def test_an_option_named_by_its_text_has_its_own_method():
    assert extract_choice("In the picture one sees Petra at night.", PLACES) == Extraction(
        answer="D", method="option_text"
    )


def test_the_letter_comes_back_as_the_caller_wrote_it():
    assert extract_choice("Answer: B", {"a": "red", "b": "blue"}).answer == "b"


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u200b", "***", "$$", "?", "<think></think>"])
def test_a_reply_without_words_is_no_choice(text):
    assert extract_choice(text, FOUR) == Extraction(answer=None, method="none")


@pytest.mark.parametrize("labels", [["AA", "B"], ["1", "2"], ["", "A"], ["a", "A"]])
def test_labels_that_are_not_single_letters_are_an_error(labels):
    with pytest.raises(DataError, match="each label must be one letter"):
        extract_choice("A", dict.fromkeys(labels, "x"))


def test_the_order_of_the_options_does_not_matter():
    backwards = dict(reversed(PLACES.items()))
    for text in ("Answer: C", "It is the Great Wall.", "The Colosseum or Petra"):
        assert extract_choice(text, PLACES) == extract_choice(text, backwards)


def test_each_reader_says_what_it_reads():
    assert all(reader.__doc__ for reader in READERS)
    assert len({reader.__name__ for reader in READERS}) == len(READERS)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("no tags", "no tags"),
        ("<think>a</think>b", "b"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<reasoning><think>a</think>b</reasoning>c", "c"),
        ("a</think>b", "b"),
        ("a</think>b</think>c", "c"),
        ("a</think>b<think>c</think>d", "bd"),
        ("<THINK>a</Think >b", "b"),
        ('<think budget="5">a</think>b', "b"),
        ("<thinking>a</thinking>b", "b"),
        ("[THINK]a[/THINK]b", "b"),
        ("◁think▷a◁/think▷b", "b"),
        ("<think>a", None),
        ("b<think>a", None),
        ("<think>a</think>b<think>c", None),
        ("<think><think>a</think>b", None),
        ("", ""),
        ("1 < 2 and <b>bold</b>", "1 < 2 and <b>bold</b>"),
        ("<thinker>a</thinker>", "<thinker>a</thinker>"),
    ],
)
def test_reasoning_is_taken_out(text, visible):
    assert without_reasoning(text) == visible


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("**Answer:** `C`", "Answer: C"),
        (r"$\text{(C)}$", "(C)"),
        (r"\(\mathbf{C}\)", "C"),
        (r"\boxed{\text{C}}", "⟦C⟧"),
        (r"\boxed{\frac{1}{2}}", "⟦1/2⟧"),
        (r"\frac{x+1}{2}", "(x+1)/2"),
        ("７{,}２５０", "7,250"),
        ("x² + 1½", "x^2 + 1 1/2"),
        ("−5 – 3", "-5 - 3"),
        ("<b>C</b><br>next", "C\nnext"),
        ("<answer>C</answer>", "\nanswer: C\n"),
        ("#### C", "answer: C"),
        ("~~A~~ B", " B"),
        ("a_1 _C_", "a_1 C"),
        ("A\u200bB\ufeff", "AB"),
        ("a\r\nb\rc", "a\nb\nc"),
    ],
)
def test_plain_text_is_what_a_reader_sees(text, plain):
    assert plain_text(text) == plain


def test_only_complete_boxes_are_boxes():
    text = r"\boxed{a} \boxed{b{c}} \boxed{\boxed{d}} } \boxed{e"
    assert [text[start:end] for _, start, end, _ in boxes(text)] == ["a", "b{c}", r"\boxed{d}", "d"]


def test_a_canonical_text_keeps_articles_inside():
    assert canonical("The pressure stays the same.") == "pressure stays the same"


@pytest.mark.parametrize(
    ("text", "answer", "method"),
    [
        ("Answer: 46", "46", "declared"),
        ("We add.\n**Answer:** $46$.", "46", "declared"),
        ("Answer:\n46", "46", "declared"),
        ("Answer:\n\\[\n\\boxed{46}\n\\]", "46", "declared"),
        ("### Answer\n46", "46", "declared"),
        ("Answer: 4\nAnswer: 5", "5", "declared"),
        (r"Answer: \boxed{5} cm", "5", "declared"),
        (r"\boxed{4}" + "\nAnswer: 5", "5", "declared"),
        ("Answer: St. Peter's Square", "St. Peter's Square", "declared"),
        ('{"answer": "46"}', "46", "declared"),
        ('{"final_answer": 46, "unit": "cm"}', "46", "declared"),
        ("<answer>46</answer>", "46", "declared"),
        ("答案：46", "46", "declared"),
        ("Réponse : 46", "46", "declared"),
        ("Antwort: 46", "46", "declared"),
        ("Respuesta: 46", "46", "declared"),
        ("정답: 46", "46", "declared"),
        ("Ответ: 46", "46", "declared"),
        ("<think>Answer: 4</think>Answer: 5", "5", "declared"),
        (r"So \boxed{\frac{1}{2}}.", r"\frac{1}{2}", "boxed"),
        (r"\boxed{4} then \boxed{5}", "5", "boxed"),
        ("The answer is 3.5.", "3.5", "stated"),
        ("Therefore, the final answer is **46**.", "46", "stated"),
        ("答案是46。", "46", "stated"),
        ("答えは46です", "46", "stated"),
        ("46", "46", "short"),
        ("a dog", "a dog", "short"),
        ("That makes 46 cm.", "That makes 46 cm", "short"),
        ("", None, "none"),
        ("Line one.\nLine two.", None, "none"),
        ("x" * 150, None, "none"),
        ("Answer:", None, "none"),
        ("The answer is not 5.", None, "none"),
        (r"\boxed{46", None, "none"),
        (r"\boxed{}", None, "none"),
        ("I'm sorry, I can't help with that.", None, "none"),
        ("Could you send the picture?", None, "none"),
        ("<think>Answer: 4", None, "unfinished_reasoning"),
    ],
)
def test_a_free_form_answer_is_read_where_it_is_announced(text, answer, method):
    assert extract_text(text) == Extraction(answer=answer, method=method)


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        ("46", "46"), ("$46.00", "46"), ("46 dollars", "46"), ("€46", "46"), ("6,000", "6000"), ("1,00,000", "100000"),
        ("7{,}250", "7250"), (r"$7{,}250", "7250"), ("1 234", "1234"), (r"1\,234", "1234"), ("−5", "-5"), ("-$5", "-5"),
        ("+5", "5"), ("(5)", "5"), ("5 cm", "5"), ("5", "5 cm"), ("5cm", "5"), ("5 centimeters", "5 cm"),
        ("5 cm^2", "5 cm²"), ("5 square centimeters", "5 cm²"), ("30°", "30"), (r"30^\circ", "30"),
        ("30 degrees", "30°"), ("50%", "50"),
        (r"\frac{3}{4}", "0.75"), ("3/4", "0.75"), (r"\frac34", "3/4"), (r"-\frac{1}{2}", "-0.5"), ("1½", "1.5"),
        ("1 1/2", "1.5"), ("x = 5", "5"), ("2+3=5", "5"), ("the ratio is 3/4", "0.75"), (".3", "0.3"), ("0,3", "0.3"),
        ("0.30", "0.3"), ("1e3", "1000"), (r"1.2\times10^3", "1200"), ("1.2 × 10^{-3}", "0.0012"), ("12 apples", "12"),
        ("５", "5"), ("\u200b5", "5"), ("**5**", "5"), ("≈ 5", "5"), ("-0", "0"), ("Dog", "a dog."), ("x^2", "x²"),
        (r"\text{dog}", "dog"), (r"\sqrt{2}", r"$\sqrt{2}$"), ("(3,4)", "(3, 4)"), ("5 m/s", "5 m/s"), (r"2\pi", "2π"),
    ],
)  # fmt: skip
def test_notations_of_one_answer_are_the_same(answer, target):
    assert same_answer(answer, target)


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        ("-5", "5"), ("5", "-5"), ("7{,}250", "250"), ("5 cm", "5 m"), ("5 km/h", "5 m/s"), ("50%", "0.5"),
        ("", ""), ("", "5"), ("5", ""), ("between 3 and 5", "5"), ("5 or 6", "5"), ("not 5", "5"), ("Room 12B", "12"),
        ("3x", "3"), (r"\sqrt 2", "2"), (r"2\pi", "2"), ("x > 5", "5"), ("5.0.1", "5"), ("1.5", "15"), ("1,5", "15"),
        ("12,34", "1234"), ("0.333", "1/3"), ("(3, 4)", "3"), ("5^2", "5"), ("1/0", "0"), ("five", "5"),
        ("9,999", "9.999"), ("3-5", "-5"),
        ("dogs", "dog"), ("3:45", "3"), ("inf", "5"), ("1e999999999", "5"), ("9" * 5000, "9"),
        ("2 hours", "120 minutes"),
        ("__import__('os')", "0"), (r"9^{9^{9}}", "9"),
    ],
)  # fmt: skip
def test_other_answers_are_not_the_same(answer, target):
    assert not same_answer(answer, target)


def test_a_choice_is_judged_by_its_letter():
    judgement = ChoiceVerifier().judge("Answer: B", "B", PLACES)
    assert judgement.correct
    assert judgement.extraction == Extraction(answer="B", method="declared")
    assert not ChoiceVerifier().judge("Answer: B", "A", PLACES).correct


def test_an_unreadable_choice_is_wrong_and_says_so():
    judgement = ChoiceVerifier().judge("I can't see the picture.", "A", PLACES)
    assert not judgement.correct
    assert judgement.extraction.answer is None


@pytest.mark.parametrize("target", ["B", "b", "(B)", " B. ", "The Great Wall", "great wall"])
def test_the_target_may_be_a_letter_or_an_options_text(target):
    assert ChoiceVerifier().judge("It is the Great Wall.", target, PLACES).correct


@pytest.mark.parametrize("target", ["E", "", "A\nC", "False"])
def test_a_target_that_is_no_option_is_an_error_that_names_it(target):
    with pytest.raises(DataError, match="is not exactly one of the options"):
        ChoiceVerifier().judge("A", target, PLACES)


def test_a_choice_without_options_is_an_error_that_names_the_other_verifier():
    with pytest.raises(DataError, match="choice_or_exact"):
        ChoiceVerifier().judge("A", "A", {})


def test_choice_or_exact_reads_a_choice_where_there_are_options():
    assert ChoiceOrExactVerifier().judge("Answer: The Great Wall", "B", PLACES).correct


def test_choice_or_exact_reads_a_value_where_there_are_none():
    judgement = ChoiceOrExactVerifier().judge("We add.\nAnswer: $46.00", "46", {})
    assert judgement.correct
    assert judgement.extraction == Extraction(answer="$46.00", method="declared")
    assert not ChoiceOrExactVerifier().judge("Answer: -46", "46", {}).correct
    assert ChoiceOrExactVerifier().judge("I'm sorry, I can't.", "46", {}).extraction.answer is None


def test_an_empty_target_is_an_error_and_never_right():
    with pytest.raises(DataError, match="the target is empty"):
        ChoiceOrExactVerifier().judge("", " ", {})


REPEATED = [
    "the line falls ", "answer ", "answer: ", "the answer is not ", "A ", "A, B, ", "A or B or ", " ", "\n", "A\n", "*",
    "\\boxed{", "\\boxed{A} ", "(", "(A) ", "{", "}", "\\frac{1}{2} ", "<think></think>", "</think>", "<", "$", "_",
    "`", "|",
    "wait, B. ", "it is A. ", "so ", "B is correct ", "1,000", "9", "a", "aa ", "答案", "选", "答えは", "A? ",
    "neither A nor ",
    "option A ", "A. choice A\nB. choice B\n", '{"answer": ', "\\", "1/", "²", "½", ",", '"', "! ", "10^",
]  # fmt: skip


@pytest.mark.parametrize("piece", REPEATED, ids=repr)
def test_a_very_long_reply_is_read_in_linear_time(piece):
    text = piece * (50_000 // len(piece))
    started = time.process_time()
    extract_choice(text, TEN)
    extract_choice(text + "\nAnswer: B", {"A": "The Colosseum", "B": "a", "C": "4", "D": "aa aa"})
    extract_text(text)
    same_answer(text, "5")
    assert time.process_time() - started < SLOW_S


def test_200_kilobytes_of_reasoning_take_a_moment():
    text = "Let me look at option A and (B). The value is 4, so it is not C. " * 3100 + "\nAnswer: B"
    started = time.process_time()
    assert extract_choice(text, FOUR).answer == "B"
    assert time.process_time() - started < SLOW_S
