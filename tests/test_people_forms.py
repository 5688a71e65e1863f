"""Forms: what a person sees of an item, and what can be handed in."""

from __future__ import annotations

import pytest

from interbench_tasks.errors import InterbenchError
from interbench_tasks.people.forms import Action, Choice, FeedbackForm, Field, field_problems, form_of, own_forms

PAYLOAD = {
    "task": "t",
    "episode": "7",
    "level": 2,
    "instruction": "Explain more.",
    "question": "Which <b>shape</b>?",
    "options": {"A": "circle", "B": "star"},
    "target": "B",
    "pictures": ["d1"],
    "rounds": [{"told": "", "reply": "A"}, {"told": "Look at the corners.", "reply": "A again"}],
}


def test_the_feedback_form_shows_everything_in_the_order_of_the_conversation():
    parts = FeedbackForm().parts(PAYLOAD)
    assert [(part.title, part.tone) for part in parts] == [
        ("Question", "question"),
        ("Options", "options"),
        ("Right answer", "answer"),
        ("First reply", "reply"),
        ("Feedback, round 1", "told"),
        ("Reply after round 1", "reply"),
        ("Your feedback: level 2", "task"),
    ]
    assert parts[0].pictures == ("d1",)
    assert parts[0].text == "Which <b>shape</b>?", "texts are never changed; whoever shows them escapes them"
    assert parts[1].rows == (("A", "circle"), ("B", "star"))
    assert (parts[2].text, parts[2].secret) == ("B. star", True)
    assert FeedbackForm().title(PAYLOAD) == "7 · level 2"


def test_the_right_answer_is_not_there_where_it_is_hidden():
    parts = FeedbackForm().parts({**PAYLOAD, "hide_target": True})
    assert "star" not in " ".join(part.text for part in parts)
    assert [part.text for part in FeedbackForm().parts({"target": "42"})][1] == "42"


def test_an_empty_form_shows_what_there_is():
    assert [part.title for part in FeedbackForm().parts({})] == ["Question", "Your feedback"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"action": "send", "text": " \n"}, "The feedback is empty"),
        ({"action": "send"}, "The feedback is empty"),
        ({"action": "marked_right", "text": "no"}, "gets no feedback"),
        ({"action": "wave", "text": "x"}, "action = 'wave' is none of this form; allowed: send, marked_right"),
        ({"text": "x"}, "action = None"),
    ],
)
def test_what_cannot_be_handed_in_is_said_in_a_sentence(content, said):
    (problem,) = FeedbackForm().problems(PAYLOAD, content)
    assert said in problem


@pytest.mark.parametrize("content", [{"action": "send", "text": "Look."}, {"action": "marked_right", "text": ""}])
def test_feedback_or_the_mark_can_be_handed_in(content):
    assert FeedbackForm().problems(PAYLOAD, content) == []


class Scale(FeedbackForm):
    def fields(self, payload):
        choices = (Choice(value="0", label="0"), Choice(value="1", label="1"))
        return (
            Field(name="score", label="Score", kind="choice", choices=choices),
            Field(name="why", label="Why", optional=True),
        )

    def actions(self, payload):
        return (Action(name="send", label="Send"),)


def test_a_value_that_is_not_on_the_scale_is_refused():
    form = Scale()
    assert field_problems(form, {}, {"action": "send", "score": "1"}) == []
    assert field_problems(form, {}, {"action": "send", "score": "6"}) == [
        "Score: '6' is not on the scale; allowed: 0, 1"
    ]
    assert field_problems(form, {}, {"action": "send"}) == ["Score: nothing was filled in"]


def test_a_kind_without_a_form_is_a_clear_error():
    assert form_of("feedback", own_forms()).kind == "feedback"
    with pytest.raises(InterbenchError, match="'feedbak' \\(did you mean 'feedback'\\?\\)"):
        form_of("feedbak", own_forms())


@pytest.mark.parametrize("text", ["", "  ", "\u200b", "\x00\n", "\ud800", "\u202e \ufeff"])
def test_a_feedback_of_which_nothing_can_be_seen_is_empty(text):
    assert "The feedback is empty" in FeedbackForm().problems(PAYLOAD, {"action": "send", "text": text})[0]


@pytest.mark.parametrize("text", ["B", "?", "\U0001f440", "\u05d0", " \u200bx"])
def test_a_feedback_of_one_sign_is_one(text):
    assert FeedbackForm().problems(PAYLOAD, {"action": "send", "text": text}) == []


@pytest.mark.parametrize(
    ("reply", "changes", "asked"),
    [
        ("Answer: A", {}, True),
        ("Answer: B", {}, False),
        ("I cannot tell.", {}, False),
        ("Answer: A", {"hide_target": True}, False),
        ("Answer: A", {"options": {}, "target": "a star"}, False),
        ("Answer: A", {"rounds": []}, False),
    ],
)
def test_only_a_reply_that_picks_another_option_than_the_shown_answer_is_asked_about(reply, changes, asked):
    shown = PAYLOAD | {"rounds": [{"told": "", "reply": reply}]} | changes
    assert bool(FeedbackForm().doubts(shown, {"action": "marked_right"})) == asked
    assert FeedbackForm().doubts(shown, {"action": "send"}) == []
