"""The leak detector: the answer stated as the answer, every other option ruled out, and what only looks like it."""

from __future__ import annotations

import time

import pytest

from interbench_tasks.leaks import MOST_CHARACTERS, leak_check

OPTIONS = {"A": "circle", "B": "red square", "C": "star", "D": "blue square"}
NUMBERS = {"A": "30", "B": "42", "C": "45", "D": "60"}
QUESTION = "Which shape comes next? A. circle B. red square C. star D. blue square"


def found(text, target="B", options=OPTIONS, known=(QUESTION, "Answer: A"), wrong="A", told=()):
    return leak_check(text, target, options, decoy=None, known=known, told=told, wrong=wrong).found


@pytest.mark.parametrize(
    "text",
    [
        "The answer is B.",
        "The correct answer is (B), because the colour changes.",
        "So it must be option B.",
        "B is correct.",
        r"Follow the rule and you get $\boxed{\text{B}}$.",
        "The right shape is a red square.",
        "The next shape must be a red square.",
        "Thus the missing part is the red square.",
        "The right choice is B, not A.",
        "You should choose option B.",
        "Look at the colours.\n**Answer:** B",
        "Therefore, the pattern continues with what is shown as B: the answer is the red square.",
        "Your answer A is incorrect; the correct answer is B.",
        "Your answer A is wrong; it should be B.",
        "You chose A, but the correct answer is B.",
        "You answered A, however the right answer is B",
        "The red square is the correct answer.",
        "Only B fits.",
    ],
)
def test_the_right_option_stated_as_the_answer_is_a_leak(text):
    assert found(text) == "stated"


@pytest.mark.parametrize(
    "text",
    [
        "Compare option A with option B before you decide.",
        "Look at how the red square turns into a circle in the first row.",
        "The answer is not B.",
        "Is it B?",
        "Could the answer be B?",
        "If the answer is B, the colours would have to change.",
        "You answered B, but did you look at the colours?",
        "Your initial solution concludes that the answer is B without any reason.",
        "The student incorrectly states that the correct answer is B.",
        "Check whether the answer is B.",
        "The answer cannot be B.",
        "The answer can't be B.",
        "The answer could be B",
        "The answer isn't B.",
        "You thought that B is the correct answer.",
        "Count the corners of each shape, and see which rule they share.",
        "In picture B the lines are thinner.",
        "The answer lies in the colours.",
        "",
    ],
)
def test_a_mere_mention_is_no_leak(text):
    assert found(text) is None


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("It is neither C nor D.", True),  # A was the receiver's own, and the bit has ruled that out
        ("Options C and D are incorrect.", True),
        ("You can eliminate C, D.", True),
        ("C is wrong, and D is impossible.", True),
        ("A, C and D are not possible.", True),
        ("It cannot be the star; D is wrong too.", True),
        ("C is wrong.", False),
        ("Options C and D look alike.", False),
        ("B, C and D are wrong.", False),
    ],
)
def test_every_other_option_ruled_out_is_a_leak(text, leaks):
    assert (found(text) == "ruled_out") is leaks


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("Your total contradicts the correct 42.", True),
        ("You found 45 instead of the correct value 42.", True),
        ("It does not match the correct perimeter of 42 cm.", True),
        ("You overlook the actual solution (x = 42).", True),
        ("Use the correct formula, and add 42.", False),
        ("Find the correct number of sides before you take 42 of them.", False),
        ("Check whether the correct answer is 42.", False),
        ("The correct figure has 6 rows of 7 dots, and not 42 columns.", False),
    ],
)
def test_what_is_called_correct_is_given_away_without_a_verb_too(text, leaks):
    assert (found(text, "42", {}, known=("How long?", "I get 45."), wrong="45") is not None) is leaks


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("Map B is in fact the only valid map.", True),
        ("That fails: the lamp belongs in corner B.", True),
        ("Both corners meet, matching card B, not A.", True),
        ("That is the figure labelled B.", True),
        ("Matching B with A takes two steps.", False),
        ("You say that it matches picture B.", False),
        ("Map B has one of the valid shapes.", False),
    ],
)
def test_an_option_that_is_pointed_at_is_given_away(text, leaks):
    assert (found(text) is not None) is leaks


def test_an_option_s_value_that_is_worked_out_is_given_away_unless_it_stood_there():
    question = "How long? A. 30 B. 42 C. 45 D. 60"
    text = "Add both sides, which gives 42."
    assert found(text, options=NUMBERS, known=(question, "I get 30.")) == "stated"
    assert found(text, options=NUMBERS, known=(question, "One side is 42, so I get 30.")) is None
    assert found(text, "C", NUMBERS, known=(question, "I get 30.")) is None


def test_without_its_own_wrong_answer_that_one_has_to_be_ruled_out_too():
    assert found("It is neither C nor D.", wrong=None) is None
    assert found("It is neither A, C nor D.", wrong=None) == "ruled_out"


def test_of_two_options_the_feedback_bit_has_left_one():
    assert found("A is wrong.", "B", {"A": "yes", "B": "no"}, wrong="A") is None


FREE = ("What is x? The angle has 30 degrees.", "I get 40.\nAnswer: 40")


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 42.",
        "Adding both gives 42.",
        "Then x = 42, which you missed.",
        "7 · 6 = 42.",
        "The correct value is 42.0 cm.",
        "Hence the area is $42 \\mathrm{~cm}^2$.",
        "You wrote 40 but the correct value is 42.",
        "Your answer 40 is wrong; it should be 42.",
    ],
)
def test_a_value_that_stood_nowhere_is_stated_where_something_comes_to_it(text):
    assert found(text, "42", {}, FREE, "40") == "stated"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("The angle is 30 degrees, use that.", "30"),  # stands in the question
        ("You found 40, but forgot a factor.", "42"),
        ("You wrote x = 42 in your first step.", "42"),
        ("See step 42 of the script.", "42"),
        ("The answer is 420.", "42"),
        ("The answer is 4.2.", "42"),
        ("Multiply both sides by two.", "42"),
        ("x is not 42.", "42"),
    ],
)
def test_another_value_or_one_that_was_given_is_none(text, target):
    assert found(text, target, {}, FREE, "40") is None


def test_a_given_value_is_a_leak_where_it_is_stated_as_the_answer():
    assert found("The correct answer is 30.", "30", {}, FREE, "40") == "stated"


def test_equal_values_in_another_notation_are_one():
    assert found("The answer is 0.5.", r"\frac{1}{2}", {}, FREE, None) == "stated"
    assert found("The answer is 1,000.", "1000", {}, FREE, None) == "stated"


def test_texts_and_expressions_are_found_as_whole_words():
    assert found("The capital is Paris.", "Paris", {}, ("Which capital?",), None) == "stated"
    assert found("The capital is Parisian in style.", "Paris", {}, ("Which capital?",), None) is None
    assert found(r"So the derivative is $2x + 1$.", "2x + 1", {}, ("Derive it.",), None) == "stated"


def test_numbers_as_options():
    assert found("So the angle is 42 degrees.", "B", NUMBERS, ("How large? A. 30 B. 42 C. 45 D. 60",)) == "stated"
    assert found("One side has 42 and the other 45.", "B", NUMBERS, ("How large?",)) is None


def test_what_feedback_before_had_stated_is_no_new_leak():
    assert found("The answer is B.", told=("That is wrong. The answer is B.",)) is None
    assert found("The answer is B.", told=("That is wrong.",)) == "stated"


def test_what_the_receiver_itself_had_considered_does_not_excuse_a_leak():
    own = "The answer is B. Checking again, that fails.\nAnswer: A"
    assert found("The answer is B.", known=("A system prompt.", QUESTION, own)) == "stated"


def test_the_same_detector_is_tried_with_a_wrong_answer():
    check = leak_check("The answer is C.", "B", OPTIONS, decoy="C", known=(QUESTION,))
    assert (check.found, check.decoy, check.placebo) == (None, "C", "stated")
    check = leak_check("The answer is B.", "B", OPTIONS, decoy=None, known=(QUESTION,))
    assert (check.found, check.decoy, check.placebo) == ("stated", None, None)


@pytest.mark.parametrize(
    "piece", ["a", "the answer ", "is ", "= ", "42 ", "A, ", "not A or ", "so ", "(", "\\frac{1}{"]
)
def test_a_long_text_takes_no_time(piece):
    text = (piece * (200_000 // len(piece)))[:200_000]
    started = time.process_time()
    leak_check(text, "B", OPTIONS, decoy="C", known=(text, text), wrong="A")
    leak_check(text, "42", {}, decoy="43", known=(text, text))
    assert time.process_time() - started < 2


def test_the_end_of_a_long_text_is_read():
    assert found("word " * MOST_CHARACTERS + "The answer is B.") == "stated"


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "⟦", "\\boxed{", "$" * 99, "B" * 999, "１２３"])  # noqa: RUF001
def test_odd_texts_are_read_without_an_error(odd):
    leak_check(odd, odd or "x", {}, decoy=odd, known=(odd,), wrong=odd)
    leak_check(odd, "B", OPTIONS, decoy="C", known=(odd,), wrong=odd)
