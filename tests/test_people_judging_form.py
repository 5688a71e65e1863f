"""The form by which people judge a stored reply: what it shows, what it asks, and what can be handed in."""

from __future__ import annotations

from typing import Any

import pytest

from interbench_tasks.people.forms import own_forms
from interbench_tasks.people.judging_form import HAND_IN, KIND, JudgementForm, asked_values

FORM = JudgementForm()


def choices(*values: str) -> list[dict[str, str]]:
    return [{"value": value, "label": value, "key": value[0], "help": f"what {value} means"} for value in values]


def payload(**changes: Any) -> dict[str, Any]:
    yes = {"detected": ["yes"]}
    fields = [
        {"name": "detected", "label": "Seen?", "hint": "", "choices": choices("yes", "no"), "only_if": {}},
        {"name": "diag", "label": "How well?", "hint": "only then", "choices": choices("0", "1", "2"), "only_if": yes},
        {"name": "strategy", "label": "What?", "choices": choices("refusal", "none"), "only_if": yes},
        {
            "name": "score",
            "label": "Useful?",
            "choices": choices("0", "1"),
            "only_if": {**yes, "strategy": ["refusal"]},
        },
    ]
    return {
        "task": "Whether it challenges the input.",
        "number": 3,
        "what": "flawed input",
        "question": "How far?",
        "excerpt": "",
        "reference": "There is no scale.",
        "reply": "<b>12 km</b>",
        "pictures": ["aa"],
        "missing": [],
        "fields": fields,
        **changes,
    }


def handed_in(**values: str) -> dict[str, str]:
    return {"action": HAND_IN, **values}


def test_it_is_one_of_the_forms_of_the_page():
    assert own_forms()[KIND].kind == KIND


def test_it_shows_question_reference_and_reply_and_what_to_look_for():
    parts = {part.title: part for part in FORM.parts(payload())}
    assert list(parts) == ["Question", "Reference", "Reply to judge", "Your judgement"]
    assert parts["Question"].pictures == ("aa",)
    assert parts["Reply to judge"].text == "<b>12 km</b>"
    assert parts["Your judgement"].tone == "task"
    assert not any(part.secret for part in parts.values()), "nobody can judge without the reference"


def test_the_conversation_and_missing_pictures_are_shown_where_there_are_some():
    parts = {part.title: part for part in FORM.parts(payload(excerpt="[turn 1] ...", missing=["40x30 pixels"]))}
    assert parts["From the conversation"].text == "[turn 1] ..."
    assert "not kept with the run" in parts["Missing pictures"].text
    assert "40x30 pixels" in parts["Missing pictures"].text


def test_the_title_says_what_is_judged_and_nothing_of_the_model():
    assert FORM.title(payload()) == "3 · flawed input"
    assert FORM.title({}) == ""


def test_every_value_is_a_choice_with_its_key_and_meaning():
    detected, diag, *_ = FORM.fields(payload())
    assert [(choice.value, choice.key) for choice in detected.choices] == [("yes", "y"), ("no", "n")]
    assert diag.choices[2].help == "what 2 means"
    assert diag.hint == "only then"
    assert [action.name for action in FORM.actions(payload())] == [HAND_IN]


@pytest.mark.parametrize(
    "values",
    [
        {"detected": "no"},
        {"detected": "yes", "diag": "2", "strategy": "refusal", "score": "1"},
        {"detected": "yes", "diag": "0", "strategy": "none"},
        {"detected": "no", "diag": "2", "strategy": "refusal"},
    ],
)
def test_what_is_complete_can_be_handed_in(values):
    assert FORM.problems(payload(), handed_in(**values)) == []


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, ["Seen? Nothing was chosen."]),
        ({"detected": "yes"}, ["How well? Nothing was chosen.", "What? Nothing was chosen."]),
        ({"detected": "yes", "diag": "2", "strategy": "refusal"}, ["Useful? Nothing was chosen."]),
        ({"detected": "maybe"}, ["Seen? 'maybe' is not on the scale; allowed: yes, no."]),
        (
            {"detected": "yes", "diag": "3", "strategy": "none"},
            ["How well? '3' is not on the scale; allowed: 0, 1, 2."],
        ),
    ],
)
def test_what_is_missing_or_off_the_scale_is_told(values, told):
    assert FORM.problems(payload(), handed_in(**values)) == told


def test_an_unknown_action_is_refused():
    assert FORM.problems(payload(), {"action": "send", "detected": "no"}) == [
        "action = 'send' is none of this form; allowed: judge"
    ]


def test_what_was_chosen_before_a_change_of_mind_is_left_out():
    """A choice cannot be taken back on a page: who says `no` after all has still chosen a diagnosis."""
    content = handed_in(detected="no", diag="2", strategy="refusal", score="1")
    assert asked_values(payload(), content) == {"detected": "no"}
    content = handed_in(detected="yes", diag="2", strategy="none", score="1")
    assert asked_values(payload(), content) == {"detected": "yes", "diag": "2", "strategy": "none"}


def test_a_band_of_several_scores_is_told_once():
    told = [("2", "some"), ("3", "most"), ("4", "most"), ("5", ""), ("6", "")]
    own = [{"value": value, "label": value, "key": value, "help": text} for value, text in told]
    [field] = FORM.fields(payload(fields=[{"name": "score", "label": "How well?", "choices": own}]))
    assert [choice.help for choice in field.choices] == ["some", "most", "as 3", "", ""]
