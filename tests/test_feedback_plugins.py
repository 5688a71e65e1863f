"""The feedback that ships with Interbench: what the receiver and the provider are told, word for word."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from interbench_tasks import FeedbackRound, Message, Reply, Turn
from interbench_tasks.metrics.feedback_names import BORROWING_ARMS, UNWRITTEN_ARMS
from interbench_tasks.plugins import feedback
from interbench_tasks.prompts import PromptError
from interbench_tasks.records import PictureRef
from tests.testing import error, make_episode, ok

SENTENCE = "Your previous answer is incorrect. Try again, and end with an answer in the same format."
PICTURE = PictureRef(digest="d", width=4, height=4, mime="image/png")


@dataclass
class FakeProvider:
    answer: Reply = field(default_factory=lambda: ok("  Count again.\n"))
    name: str = "teacher"
    solution: Turn | None = None
    history: Sequence[Message] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    sees_target: bool = False
    round: FeedbackRound = field(default_factory=FeedbackRound)
    asked: list[list[Message]] = field(default_factory=list)

    async def reply(self, messages):
        self.asked.append(list(messages))
        return self.answer


def test_the_metrics_know_which_arms_no_model_writes_and_which_borrow():
    offered = feedback.interbench_feedback_providers()
    unwritten = {name for name, plugin in offered.items() if not getattr(plugin, "uses_provider", True)}
    borrowing = {name for name, plugin in offered.items() if getattr(plugin, "borrows", None) is not None}
    assert unwritten - borrowing == set(UNWRITTEN_ARMS)
    assert borrowing == set(BORROWING_ARMS)


def wrong_turn(text: str = "I say cat.\nAnswer: A") -> Turn:
    return Turn(index=0, parent=None, user=Message(role="user", content=("What animal?",)), reply=ok(text))


def solved(text: str = "It barks.\nAnswer: B") -> Turn:
    return Turn(
        index=1, parent=None, user=Message(role="user", content=("What animal?",)), reply=ok(text), role="provider"
    )


def give(kind: str, provider: FakeProvider, **episode):
    made = feedback.interbench_feedback_providers()[kind]()
    return asyncio.run(made.give(make_episode(**episode), wrong_turn(), provider))


def test_simple_is_one_fixed_sentence_and_asks_nobody():
    provider = FakeProvider()
    given = give("simple", provider)
    assert (given.text, given.kind, given.author, given.status) == (SENTENCE, "simple", "template", "given")
    assert provider.asked == []


def test_detail_is_the_sentence_and_the_providers_explanation():
    given = give("detail", FakeProvider())
    assert given.text == f"{SENTENCE}\n\nCount again."
    assert (given.kind, given.author, given.status) == ("detail", "teacher", "given")
    assert given.reply.text == "  Count again.\n"


def test_the_providers_prompt_word_for_word(golden):
    provider = FakeProvider(solution=solved())
    question = Message(role="user", content=(PICTURE, "What animal?\nA. cat"))
    give("detail", provider, question=question)
    (message,) = provider.asked[0]
    assert message.pictures == (PICTURE,)
    golden("detail_prompt.txt", message.text)


def test_the_provider_sees_its_own_solution_but_not_the_target():
    provider = FakeProvider(solution=solved("My way: it barks."))
    give("detail", provider)
    text = provider.asked[0][0].text
    assert "My way: it barks." in text
    assert "right answer is" not in text


def test_the_target_is_shown_only_where_the_task_says_so():
    provider = FakeProvider(sees_target=True)
    give("detail", provider)
    assert "The right answer is: B" in provider.asked[0][0].text


@pytest.mark.parametrize("answer", [error("HTTP 500"), ok(""), ok(" \n")])
def test_without_a_usable_explanation_the_feedback_failed(answer):
    given = give("detail", FakeProvider(answer=answer))
    assert given.status == "failed"
    assert given.reply is answer


def test_the_providers_thinking_is_not_shown_to_the_receiver():
    given = give("detail", FakeProvider(answer=ok("<think>The correct answer is B.</think>\nLook again.")))
    assert given.text == f"{SENTENCE}\n\nLook again."
    assert given.reply.text.startswith("<think>")


@pytest.mark.parametrize("answer", ["<think>The correct answer is B", "<think>B</think> "])
def test_thinking_alone_is_no_feedback(answer):
    assert give("detail", FakeProvider(answer=ok(answer))).status == "failed"


def test_prompts_of_the_yaml_replace_ours():
    prompts = {"simple": "No. {{ answer }} is not it.", "detail": "Help: {{ question }} / {{ solution }}"}
    provider = FakeProvider(prompts=prompts, solution=solved("S"))
    given = give("detail", provider)
    assert provider.asked[0][0].text == "Help: What animal? / S"
    assert given.text == "No. I say cat.\nAnswer: A is not it.\n\nCount again."


def test_an_unknown_name_in_a_prompt_is_an_error():
    with pytest.raises(PromptError, match=r"prompts.detail: 'hint' is undefined; there is: answer, options, question"):
        give("detail", FakeProvider(prompts={"detail": "{{ hint }}"}))


def test_braces_in_a_reply_are_not_a_template():
    provider = FakeProvider(prompts={"simple": "No: {{ answer }}"})
    made = feedback.interbench_feedback_providers()["simple"]()
    given = asyncio.run(made.give(make_episode(), wrong_turn("{{ 7 * 7 }} {% raw %}"), provider))
    assert given.text == "No: {{ 7 * 7 }} {% raw %}"
