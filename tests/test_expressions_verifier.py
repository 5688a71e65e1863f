"""The verifier choice_or_math: options, sets of letters, odd targets, values in sentences, and MathVerse's golds."""
# ruff: noqa: RUF001  (signs that look like ASCII are what is compared here)

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import time

import pytest

from interbench_tasks import PatientVerifier
from interbench_tasks.answers import ChoiceOrMathVerifier, ChoiceVerifier, extract_value
from interbench_tasks.answers.choice_or_math import FAILED, STOPPED, judged, letters_from
from interbench_tasks.errors import DataError
from interbench_tasks.expressions import ExpressionPool, Limits
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.records import Extraction
from tests import test_answers

TRUE_FALSE = {"A": "True", "B": "False"}
TANGENTS = {
    "A": r"$\tan (\pi+\theta)$",
    "B": r"$\tan \left(\frac{\pi}{2}-\theta\right)$",
    "C": r"$\tan (2 \pi-\theta)$",
    "D": r"$\tan (\pi-\theta)$",
}
BEARINGS = {"A": r"090^\circ T", "B": r"180^\circ T", "C": r"049^\circ T"}
ANGLES = {"A": "40°", "B": "60°", "C": "120°", "D": "140°"}
SAME = test_answers.test_notations_of_one_answer_are_the_same.pytestmark[0].args[1]
OTHER = test_answers.test_other_answers_are_not_the_same.pytestmark[0].args[1]
BY_VALUE_NOW = {("50%", "0.5"), ("five", "5"), ("2 hours", "120 minutes")}
"""Pairs that the cheap comparison of `choice_or_exact` takes for different."""


@pytest.fixture(scope="module")
def verifier():
    made = ChoiceOrMathVerifier(ExpressionPool(limits=Limits(seconds=2.0)))
    yield made
    made.close()


def test_a_task_yaml_can_name_it():
    made = offers_from(build_plugin_manager()).verifiers["choice_or_math"]()
    assert isinstance(made, ChoiceOrMathVerifier)
    assert isinstance(made, PatientVerifier)
    assert not isinstance(ChoiceVerifier(), PatientVerifier)


@pytest.mark.parametrize("target", ["B", "(B)", "b", " B. ", "60°", "60.0", r"60^\circ", "x = 60"])
def test_the_target_may_be_a_letter_or_what_exactly_one_option_says(verifier, target):
    for text in ("Answer: B", "(B)", "The answer is 60°"):
        judgement = verifier.judge(text, target, ANGLES)
        assert judgement.correct
        assert judgement.extraction.answer == "B"
    assert not verifier.judge("Answer: C", target, ANGLES).correct


@pytest.mark.parametrize(
    ("text", "target", "options", "correct"),
    [
        ("Answer: B", "False", TRUE_FALSE, True),
        ("It is false.", "False", TRUE_FALSE, True),
        ("Answer: A", "False", TRUE_FALSE, False),
        ("The answer is A", r"090^\circ T", BEARINGS, True),
        ("The answer is C", r"090^\circ T", BEARINGS, False),
        ("Answer: B", "77", ANGLES, False),
        (r"\boxed{77}", "77", {"A": "1", "B": "2"}, True),
        ("Answer: A", "1", {"A": "1", "B": "1.0", "C": "2"}, True),
        ("Answer: C", "1.00", {"A": "1", "B": "1.0", "C": "2"}, False),
        ("Answer: False", "False", {}, True),
        ("Answer: True", "False", {}, False),
        ("Answer: B", "False", {}, False),
        ("Answer: 90°T", r"090^\circ T", {}, True),
    ],
)
def test_a_target_that_is_no_letter_is_compared_as_a_text_and_by_value(verifier, text, target, options, correct):
    assert verifier.judge(text, target, options).correct == correct


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("C and D", "C, D"),
        ("D) and C)", "C, D"),
        ("Answer: C, D", "C, D"),
        ("Answer: (C) & (D)", "C, D"),
        ("Therefore **C** and **D** .", None),
        ("We compare.\nThe correct answers are C and D.", "C, D"),
        ("The correct options are: C and D", "C, D"),
        (r"\boxed{C, D}", "C, D"),
        (r"\boxed{C} and \boxed{D}", "C, D"),
        (r"\boxed{\text{C and D}}", "C, D"),
        ("C: tan(2π-θ)\nD: tan(π-θ)", "C, D"),
        ("C\nD", "C, D"),
        ("<think>A and B</think>C, D", "C, D"),
        ("Answer: C", "C"),
        (r"\boxed{C}", "C"),
        ("Answer: B, C, D", "B, C, D"),
        ("Answer: A, D", "A, D"),
        ("I cannot tell.", None),
        ("<think>C, D", None),
        ("C, D and Z", None),
    ],
)
@pytest.mark.parametrize("options", [TANGENTS, {}], ids=["options", "no options"])
def test_a_target_of_several_letters_needs_exactly_that_set(verifier, text, named, options):
    judgement = verifier.judge(text, "C\nD", options)
    assert judgement.correct == (named == "C, D")
    assert judgement.extraction.answer in (named, None) if named is None else judgement.extraction.answer == named


def test_one_letter_of_a_set_target_is_never_half_right(verifier):
    assert not verifier.judge("Answer: D", "C\nD", TANGENTS).correct
    assert not verifier.judge("Answer: C and D", "C", TANGENTS).correct


@pytest.mark.parametrize(
    ("text", "letters"),
    [("C\nD", ["C", "D"]), ("(B)", ["B"]), ("B, A", ["A", "B"]), ("B & A", ["A", "B"]), ("False", None), ("", None),
     ("BC", None), ("A or", None), ("12", None), ("options A and C", ["A", "C"])],
)  # fmt: skip
def test_letters_are_read_only_where_nothing_else_stands(text, letters):
    assert letters_from(text) == letters


@pytest.mark.parametrize(
    ("text", "target", "correct"),
    [
        ("Adding the tip, she pays $46.00.", "46", True),
        ("Adding the tip, she pays $46.00.", "-46", False),
        ("That makes the ratio 0.3", "0.7", False),
        ("Each of 4 friends pays $11.50, so the total is $46.00.", "46", True),
        ("Each of 4 friends pays $11.50, so the total is $46.00.", "11.5", False),
        ("I think 46 is not right", "46", False),
        ("Is it 46?", "46", False),
        ("We get it.\n#### 1,046", "1046", True),
        ("The total is 46,00 €", "46", True),
        ("between 45 and 47", "46", False),
        ("The answer is 7 or 8.", "7", False),
        ("46 minutes and 20 seconds", "46", False),
        ("Therefore she has 12 - 5 = 7 apples left.", "7", True),
        ("Therefore she has 12 - 5 = 7 apples left.", "12", False),
        ("The value of x is 3, so 2x = 6.", "3", False),
        ("The total is -46.", "46", False),
        ("We add.\n\nSo the area is $12 \\text{ cm}^2$.", "12", True),
        ("We add.\n\nSo the area is 12 cm^2 in all.", "12", False),
        ("Steps...\n3+4 = 7", "7", True),
        ("Steps...\n$$x = 5$$", "5", True),
        ("first\nHence the ratio = 3:4", "3:4", True),
        ("x = 3 = 3.0", "3", True),
        ("The circle x^2+y^2=49", "49", False),
        ("Hm.\nThe circle is x^2+y^2=49", "49", False),
        ("Hm.\nThe circle is $x^2+y^2=49$.", "y^2+x^2=49", True),
        ("Thus the equation is $y = x - 5$.", "y=x-5", True),
        ("a\nTherefore, $\\boxed{\\frac{1}{2}}$", "0.5", True),
        ("The answer is 50%", "0.5", True),
        ("The answer is twelve.", "12", True),
        ("**Final Answer**\n$$\\frac{4}{3}$$", r"\frac{4}{3}", True),
        ("<think>46</think> 47", "46", False),
        ("<think>46", "46", False),
        ("Answer: N 34° W", "34", False),
        ("So Area = $113.097$ units$^{2}$", r"Area $=113.097$ units $^{2}$", True),
        ("No number here.\nNor here.", "5", False),
    ],
)
def test_a_value_is_read_where_a_reply_announces_or_ends_with_it(verifier, text, target, correct):
    assert verifier.judge(text, target, {}).correct == correct


@pytest.mark.parametrize(
    "text",
    [
        "One.\nI cannot tell whether it is 5",
        "One.\nIs it 5?",
        "One.\nIt is not 5",
        "One.\nIt is red",
        "One.\n" + "5 " * 200,
    ],
)
def test_a_last_line_that_concludes_nothing_is_no_answer(text):
    assert extract_value(text) == Extraction(answer=None, method="none")


def test_a_comparison_that_ran_out_of_time_is_not_equal_and_says_so(verifier):
    judgement = verifier.judge("The answer is $9^{9^{9}}$", "3", {})
    assert not judgement.correct
    assert judgement.extraction == Extraction(answer="9^{9^{9}}", method=f"stated, {STOPPED}")


def test_a_comparison_that_failed_is_not_equal_and_says_so(verifier):
    judgement = verifier.judge("The answer is $1/0 + x$", "3", {})
    assert not judgement.correct
    assert judgement.extraction.method in (f"stated, {FAILED}", "stated")
    judging = judged("The answer is $2x$", "3y", {})
    next(judging)
    with pytest.raises(StopIteration) as finished:
        judging.send("failed")
    assert finished.value.value.extraction == Extraction(answer="2x", method=f"stated, {FAILED}")


def test_an_empty_target_is_an_error(verifier):
    with pytest.raises(DataError, match="the target is empty"):
        verifier.judge("5", " ", {})


def test_judging_later_says_the_same(verifier):
    for text, target in [("Answer: 2(x+1)", "2x+2"), ("Answer: 3", "x"), ("Answer: 5", "5")]:
        assert asyncio.run(verifier.judge_later(text, target, {})) == verifier.judge(text, target, {})


@pytest.mark.parametrize(("answer", "target"), [pair for pair in SAME if pair[1]])
def test_it_takes_for_the_same_whatever_choice_or_exact_does(verifier, answer, target):
    assert verifier.judge(f"Answer: {answer}", target, {}).correct


@pytest.mark.parametrize(("answer", "target"), [pair for pair in OTHER if pair[1] and pair not in BY_VALUE_NOW])
def test_it_takes_for_different_what_choice_or_exact_does_but_for_equal_values(verifier, answer, target):
    assert not verifier.judge(f"Answer: {answer}", target, {}).correct


@pytest.mark.parametrize(
    "piece", [*test_answers.REPEATED, "x=", r"\text{", "f(x)=", "∪", "x, ", "± ", "= ", "twenty ", "A\n"], ids=repr
)
def test_a_very_long_reply_is_judged_in_linear_time(verifier, piece):
    text = piece * (50_000 // len(piece))
    started = time.process_time()
    for target in ("5", "C\nD"):
        with contextlib.suppress(StopIteration):  # else it asks math-verify, which does not matter here
            next(judged(text, target, {}))
    assert time.process_time() - started < test_answers.SLOW_S


# --- MathVerse -----------------------------------------------------------------------------------------------------

REWRITTEN = {
    "boxed": lambda gold: f"We compute.\n\\boxed{{{gold}}}",
    "announced": lambda gold: "We compute.\nAnswer: " + gold.replace("\n", ", "),
    "spaces around commas and plus": lambda gold: "Answer: " + re.sub(r"([+,])", r" \1 ", gold).replace("\n", ", "),
    "other commands": lambda gold: "Answer: " + gold.replace(r"\frac", r"\dfrac").replace("\n", " and "),
    "no wrappers": lambda gold: "Answer: " + re.sub(r"\\left|\\right|\$", "", gold).replace("\n", ", "),
    "no unit": lambda gold: "Answer: " + re.sub(r"\s*\\mathrm\s?\{[^}]*\}(\^\{?\d\}?)?", "", gold).replace("\n", ", "),
    "no name": lambda gold: "Answer: " + re.sub(r"^\$*\s?[A-Za-z. ]+\$?=", "", gold).replace("\n", ", "),
}


def options_in(question: str) -> dict[str, str]:
    """The options that stand inside a MathVerse question; crude, for these tests only."""
    parts = re.split(r"\nChoices?:\n?", question)
    found = re.findall(r"(?:^|\n)\s*\(?([A-H])\s*[:.)]\s*(.*?)(?=\n\s*\(?[A-H]\s*[:.)]|\Z)", parts[-1], re.DOTALL)
    return {letter: text.strip() for letter, text in found} if len(parts) > 1 else {}


@pytest.fixture(scope="module")
def mathverse(shared_data):
    path = shared_data / "mathverse" / "testmini_text_only.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {path.parent}")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", REWRITTEN, ids=str)
@pytest.mark.parametrize("with_options", [True, False], ids=["options", "no options"])
def test_every_gold_of_mathverse_equals_itself_lightly_rewritten(verifier, mathverse, form, with_options):
    assert len(mathverse) == 788
    wrong = []
    for row in mathverse:
        choice = row["question_type"] == "multi-choice"
        options = options_in(row["question"]) if choice and with_options else {}
        judgement = verifier.judge(REWRITTEN[form](row["answer"]), row["answer"], options)
        if not judgement.correct:
            wrong.append((row["sample_index"], row["answer"], judgement.extraction))
    assert wrong == []


def test_no_gold_of_mathverse_equals_another_one(verifier, mathverse):
    golds = list(dict.fromkeys(row["answer"].strip() for row in mathverse if row["question_type"] == "free-form"))
    equal = [
        (left, right)
        for left, right in itertools.pairwise(golds[::3])
        if verifier.judge(f"Answer: {left}", right, {}).correct
    ]
    assert equal == [(r"y=\sin x=\left(90^\circ ,5\right)", r"$(x, y)=\left(90^{\circ}, 5\right)$")], (
        "one point, named twice"
    )


def test_a_gold_with_the_other_sign_is_wrong(verifier, mathverse):
    numbers = [row["answer"] for row in mathverse if re.fullmatch(r"-?[\d.]+", row["answer"])]
    assert len(numbers) > 50
    flipped = [gold[1:] if gold.startswith("-") else f"-{gold}" for gold in numbers]
    pairs = zip(numbers, flipped, strict=True)
    assert [(g, f) for g, f in pairs if verifier.judge(f"Answer: {f}", g, {}).correct and float(g)] == []
