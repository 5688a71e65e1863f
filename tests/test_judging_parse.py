"""A judge's value is read where it is clear, in any of the three shapes; anything else is a failure of the judge."""

from __future__ import annotations

import time

import pytest

from interbench_tasks.judging_json import MAX_REPLY_CHARACTERS, label_in_json, number_in_json, objects_in
from interbench_tasks.judging_parse import (
    NumberScale,
    ScaleError,
    bare_label,
    bare_number,
    label_after,
    label_from,
    number_after,
    plain,
)

FIVE = NumberScale(low=1, high=5)
WHOLE = NumberScale(low=0, high=5, integer=True)
TEN = NumberScale(low=0, high=10)
SHARE = NumberScale(low=0, high=1)
HUNDRED = NumberScale(low=0, high=100)
TWO = ("correct", "incorrect")
GRADES = ("C", "P", "I")


# --- the scale ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [
        (0, WHOLE, 0.0),
        (5, WHOLE, 5.0),
        (4.0, WHOLE, 4.0),
        ("3", WHOLE, 3.0),
        (" **3** ", WHOLE, 3.0),
        ("3.", WHOLE, 3.0),
        ("+3", WHOLE, 3.0),
        ("4/5", WHOLE, 4.0),
        ("4 out of 5", WHOLE, 4.0),
        ("4 points", WHOLE, 4.0),
        ("0 out of 10", TEN, 0.0),
        (4.5, FIVE, 4.5),
        ("1e0", FIVE, 1.0),
    ],
)
def test_a_number_of_the_scale_is_taken_however_it_is_written(value, scale, expected):
    assert scale.number(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        6,
        -1,
        4.5,
        "4/10",
        "8/10",
        "0.8",
        True,
        False,
        None,
        [],
        [4],
        {"score": 4},
        "",
        "four",
        "4-5",
        "3 or 4",
        "4,5",
        "NaN",
        float("nan"),
        float("inf"),
        "-inf",
        "1e400",
        "4 seconds",
        "~4",
        ">3",
        "10%",
        "½",
        "4²",
        "0x4",
        "\uff11\uff10",
    ],
    ids=repr,
)
def test_what_is_no_whole_number_from_0_to_5_is_nothing_and_is_never_moved_onto_the_scale(value):
    assert WHOLE.number(value) is None


@pytest.mark.parametrize(("low", "high"), [(5, 5), (5, 0), (0, float("nan"))])
def test_a_scale_without_numbers_is_an_error(low, high):
    with pytest.raises(ScaleError, match="low < high"):
        NumberScale(low=low, high=high)


def test_width_and_unseen_characters_do_not_matter():
    assert plain("\uff33\uff43\uff4f\uff52\uff45\u200b\uff1a\ufeff\uff14") == "Score:4"
    assert label_from("\u2060CORRECT.", TWO) == "correct"
    assert label_from("partially_correct", ("partially correct",)) == "partially correct"
    assert label_from(["correct"], TWO) is None


# --- JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"score": 4}', 4),
        ('{"score": "4"}', 4),
        ('{"score": 4.0}', 4),
        ('{"score": "4/5"}', 4),
        ('{"Score": 4}', 4),
        ("{'score': 4}", 4),
        ("{score: 4}", 4),
        ("{score: 4 out of 5, reason: x}", 4),
        ("{score: 4 points, reason: x}", 4),
        ('{"score": 4,}', 4),
        ('{"score" : 4 , "reason": "a"}', 4),
        ('{"score": 4 "reason": "a"}', 4),
        ('{"score": 4 // good\n}', 4),
        ('{"score": 4, "reason": "He said "great" twice"}', 4),
        ('{"reason": "He said "great" twice", "score": 4}', 4),
        ('{"reason": "uses \\d{a}{b}", "score": 4}', 4),
        ('{"reason": "two\nlines", "score": 4}', 4),
        ("{\u201cscore\u201d: 4}", 4),
        ('{"score"\uff1a4}', 4),
        ('{"score": \uff14}', 4),
        ('{"score": True, "points": 1} {"score": 4}', 4),
        ('[{"score": 4}]', 4),
        ('{"result": {"score": 4}}', 4),
        ('{"results": [{"score": 4}]}', 4),
        ('{"score": 4, "parts": {"score": 2}}', 4),
        ('The set {1, 2} is fine. {"score": 4}', 4),
        ('```json\n{"score": 4}\n```', 4),
        ('Sure! {"score": 4} Anything else?', 4),
        ('{"score": 2}\nOn second thought:\n{"score": 4}', 4),
        ('{"score": 4}\n{"score": ', 4),
        ('{"score": 4}\n{"score": 2, "reason": "cut', 4),
        ('{"score": 4, "reason": "cut', 4),
        ('{"reason": "the brace is missing", "score": 4', 4),
        ('<think>{"score": 2}</think>{"score": 4}', 4),
        ('It is weak. {"score": 2}</think>{"score": 4}', 4),
        ('{"reason": "{\\"score\\": 2} is what it asks for", "score": 4}', 4),
    ],
)
def test_a_score_in_json_is_read_where_it_is_clear(reply, expected):
    assert number_in_json(reply, FIVE) == expected


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "   ",
        "null",
        "[]",
        "{}",
        "4",
        "score: 4",
        '{"scores": 4}',
        '{"my_score": 4}',
        '{"rating": 4}',
        '{"score": null}',
        '{"score": ""}',
        '{"score": "N/A"}',
        '{"score": "four"}',
        '{"score": "4 or 5"}',
        '{"score": 4-5}',
        '{"score": 4,5}',
        '{"score": "4,5"}',
        '{"score": 4.5.1}',
        '{"score": 4%}',
        '{"score": 8/10}',
        '{"score": [4]}',
        '{"score": {"value": 4}}',
        '{"score": true}',
        '{"score": NaN}',
        '{"score": Infinity}',
        '{"score": -1}',
        '{"score": 0}',
        '{"score": 6}',
        '{"score": 1e9}',
        '{"score":',
        '{"score": "',
        '{"reason": "The score',
        '{"reason": "score: 4',
        '{"score": 2, "score": 4}',
        '{"score": 2, "reason": "it wrote {"score": 5}"}',
        '{"reason": "it wrote "score": 5, no", "score": 2}',
        '<think>{"score": 4}',
        '<think>{"score": 4}</think>',
        '{"error": {"code": 429, "message": "rate limit, retry after 4 s"}}',
        "[LMMS_EVAL_REQUEST_FAILED after 4 retries]",
        '{"type": "object", "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}}}',
        '{"score": <1-5>, "reason": "..."}',
        '{"score": X}',
        "{score: 4 or 5, reason: x}",
        "{score: 4 to 5, reason: x}",
        "{score: 4 - 5, reason: x}",
        "{score: 4 (or 5), reason: x}",
        "{score: 4 out of 10, reason: x}",
        "{score: about 4, reason: x}",
        "{score: 4 is too much, reason: x}",
    ],
    ids=repr,
)
def test_a_reply_without_a_clear_score_in_json_is_a_failure_and_no_zero(reply):
    assert number_in_json(reply, FIVE) is None


def test_a_number_that_may_have_been_cut_short_is_not_taken():
    assert number_in_json('{"score": 7', HUNDRED) is None
    assert number_in_json('{"score": 7,', HUNDRED) == 7
    assert number_in_json('{"score": 0', SHARE) is None
    assert number_in_json('{"score": 1', SHARE) == 1
    assert number_in_json('{"score": 4', WHOLE) == 4


def test_a_label_in_json():
    assert label_in_json('{"score": "INCORRECT", "why": "units"}', TWO) == "incorrect"
    assert label_in_json('{"label": "incorrect"}', TWO, "label") == "incorrect"
    assert label_in_json('{"label": incorrect}', TWO, "label") == "incorrect"
    assert label_in_json('{"label": "not correct"}', TWO, "label") is None
    assert label_in_json('{"label": "correct', TWO, "label") is None
    assert label_in_json('{"label": "correct | incorrect"}', TWO, "label") is None


@pytest.mark.parametrize(
    "reply",
    [
        "{" * 50_000 + '"score": 4',
        '{"score": ' * 20_000,
        '{"a":' * 20_000 + "4" + "}" * 20_000,
        "[" * 50_000 + '{"score": 4}',
        '{"a": "' + "\\" * 50_000,
        '{"score": 4} ' * 10_000,
        '"score": ' * 20_000,
        "x" * (MAX_REPLY_CHARACTERS + 1) + '{"score": 4}',
    ],
    ids=["braces", "unclosed", "deep", "brackets", "backslashes", "many", "keys", "too long"],
)
def test_a_monster_of_a_reply_neither_hangs_nor_raises(reply):
    began = time.process_time()
    assert number_in_json(reply, FIVE) in (None, 4)
    assert time.process_time() - began < 3


def test_objects_are_told_apart_by_where_they_stand():
    first, second = objects_in('a {"score": 1} b {score: 2} {"other": 3}', "score")
    assert (first.strict, second.strict) == (True, False)
    assert first.end <= second.start
    assert (first.only("score"), second.only("score")) == (1, 2)
    assert first.only("nothing") is None


# --- after a marker -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("[RESULT] 3", 3),
        ("[RESULT]3", 3),
        ("[RESULT]: 3/5", 3),
        ("**[RESULT]** **3**", 3),
        ("[RESULT]\n\n3", 3),
        ("[result] 3.5", 3.5),
        ("[RESULT] 3 out of 5", 3),
        ("[RESULT] = 3.", 3),
        ("[RESULT] - 3", 3),
        ("[RESULT] 2 ... [RESULT] 3", 3),
        ("[RESULT] 3. That is my [RESULT] (a whole number from 1 to 5)", 3),
        ("[RESULT] 3, because 2 of 5 gaps are missed", 3),
        ("[RESULT] \uff13", 3),
        ("<think>[RESULT] 5</think> [RESULT] 3", 3),
    ],
)
def test_a_number_after_its_marker(reply, expected):
    assert number_after(reply, "[RESULT]", FIVE) == expected


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "3",
        "RESULT 3",
        "[RESULT]",
        "[RESULT] none",
        "[RESULT] three",
        "[RESULT] 6",
        "[RESULT] -1",
        "[RESULT] 3 ... [RESULT] 9",
        "[RESULT] 1-5",
        "[RESULT] 3 to 4",
        "[RESULT] 3 or 4",
        "[RESULT] 3/10",
        "[RESULT] 3,5",
        "[RESULT] 3%",
        "[RESULT] 3rd",
        "[RESULT] 45",
        "<think>[RESULT] 3",
    ],
    ids=repr,
)
def test_a_marker_without_a_clear_number_is_a_failure(reply):
    assert number_after(reply, "[RESULT]", FIVE) is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Verdict: correct", "correct"),
        ("verdict - **Incorrect**", "incorrect"),
        ("Verdict: correct, although short", "correct"),
        ("Verdict: 'incorrect'.", "incorrect"),
        ("The verdict is correct", "correct"),
        ("Verdict: correct or incorrect\nVerdict: incorrect", "incorrect"),
        ("Verdict: correct. I stand by this Verdict: it is final.", "correct"),
    ],
)
def test_a_label_after_its_marker(reply, expected):
    assert label_after(reply, "Verdict:", TWO) == expected


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "correct",
        "Verdict: not correct",
        "Verdict: correct or incorrect",
        "Verdict: correct/incorrect",
        "Verdict: correct | incorrect",
        "Verdict: correct, incorrect",
        "Verdict: correct? Hardly.",
        "Verdict: correctly derived",
        "Verdicts: correct",
        "Verdict: I cannot tell",
    ],
    ids=repr,
)
def test_a_marker_without_a_clear_label_is_a_failure(reply):
    assert label_after(reply, "Verdict", TWO) is None


def test_the_longest_label_is_meant_and_a_pronoun_is_none():
    assert label_after("Grade: partially correct", "Grade", ("correct", "partially correct")) == "partially correct"
    assert label_after("GRADE: I", "GRADE", GRADES) == "I"
    assert label_after("GRADE: I would say it fails", "GRADE", GRADES) is None
    assert label_after("DOWNGRADE: P", "GRADE", GRADES) is None


# --- the bare value -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("4", 4),
        (" 4.\n", 4),
        ("**4**", 4),
        ("`4`", 4),
        ("4/5", 4),
        ("4 out of 5", 4),
        ("4.5", 4.5),
        ("Score: 4", 4),
        ("My score is 4.", 4),
        ("I would rate this a 4 because one gap is missed.", 4),
        ("I give it 4 points.", 4),
        ("I'd say 4.", 4),
        ("Overall: 4", 4),
        ("**Score:** 4 / 5", 4),
        ("4 stars", 4),
        ("The answer deserves a 4 out of 5, since it misses a unit.", 4),
        ("<think>2? 3?</think>4", 4),
    ],
)
def test_a_bare_number_or_a_plain_sentence_that_gives_one(reply, expected):
    assert bare_number(reply, FIVE) == expected


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "-4",
        "6",
        "four",
        "4 5",
        "4 or 5",
        "3-4",
        "Error 4",
        "Error code: 4, rate limit exceeded",
        "HTTP 4",
        "Rate limited, retry after 4 seconds.",
        "The judge timed out after 4 s.",
        "I cannot give this a 4.",
        "I can't score this; it has 4 pictures.",
        "I'm sorry, no score for picture 4.",
        "I would not give this a 4.",
        "There are 4 pictures.",
        "It names 4 of 5 items.",
        "The score is between 4 and 5.",
        "The score is at least 4.",
        "A score above 4.",
        "Score 4 of the items.",
        "It is good. The score is 4. Then again it is a 2.",
        "Picture 2 is right. I give it 4.",
        "Scored 4 seconds ago",
        "<think>4",
        "Unable to score: 4 tokens left",
    ],
    ids=repr,
)
def test_digits_in_other_texts_are_no_score(reply):
    assert bare_number(reply, FIVE) is None


@pytest.mark.parametrize(
    ("reply", "labels", "expected"),
    [
        ("correct", TWO, "correct"),
        ("**Incorrect**.", TWO, "incorrect"),
        ("The response is incorrect.", TWO, "incorrect"),
        ("Label: correct", TWO, "correct"),
        ("C", GRADES, "C"),
        ("(P)", GRADES, "P"),
        ("My grade is C.", GRADES, "C"),
        ("Grade: I", GRADES, "I"),
    ],
)
def test_a_bare_label_or_a_plain_sentence_that_names_one(reply, labels, expected):
    assert bare_label(reply, labels) == expected


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        (None, TWO),
        ("", TWO),
        ("not correct", TWO),
        ("It isn't correct.", TWO),
        ("It is neither.", TWO),
        ("correct/incorrect", TWO),
        ("correct or incorrect", TWO),
        ("Is it correct?", TWO),
        ("I cannot say that it is correct.", TWO),
        ("Whether it is correct is hard to say.", TWO),
        ("It is correct. No, it is incorrect.", TWO),
        ("correctness", TWO),
        ("error: correct", TWO),
        ("I would rather pass.", GRADES),
        ("A C major chord is played.", GRADES),
        ("I", TWO),
        ("IC", GRADES),
    ],
    ids=repr,
)
def test_a_label_that_is_denied_doubted_or_one_of_several_is_none(reply, labels):
    assert bare_label(reply, labels) is None
