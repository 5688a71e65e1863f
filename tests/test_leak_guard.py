"""What the leak guard does in a feedback loop: look, have it written again, drop the arm."""

from __future__ import annotations

import asyncio

import pytest

from interbench_tasks import Extraction, Judgement, Message, Parts
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from tests.testing import FakeRoles, LetterVerifier, ScriptedRole, error, make_episode

PLUGINS = offers_from(build_plugin_manager()).feedback_providers
LEAK, FINE = "The answer is B.", "Look at the ears."


def played(mode, *written, prompts=None, first="A", arms=("detail", "simple")):
    """The record, and what the provider was asked for feedback; `written` = what it writes, call by call."""
    options = FeedbackLoopOptions(arms=arms, leak_guard=mode)
    parts = Parts(
        verifier=LetterVerifier(), feedback_providers={arm: PLUGINS[arm]() for arm in arms}, prompts=prompts or {}
    )
    said = iter(written)
    provider = ScriptedRole(lambda asked: "B" if asked.purpose == "solve" else next(said), name="p")
    roles = FakeRoles(ScriptedRole(lambda asked: "C" if asked.round else first), provider)
    record = asyncio.run(FeedbackLoop(options, parts).play(make_episode(decoy="D"), roles))
    return record, [asked for asked in provider.asked if asked.purpose == "feedback"]


def turn_of(record, branch):
    return next((turn for turn in record.turns if turn.branch == branch), None)


def test_observe_notes_a_leak_and_changes_nothing():
    record, asked = played("observe", LEAK)
    feedback = turn_of(record, "detail").feedback
    assert (feedback.leak.found, feedback.leak.placebo, feedback.leak.decoy) == ("stated", None, "D")
    assert feedback.text.endswith(LEAK)
    assert (feedback.draft, len(asked)) == (None, 1)


def test_observe_notes_that_there_is_none():
    assert turn_of(played("observe", FINE)[0], "detail").feedback.leak.found is None


def test_what_no_model_wrote_is_not_looked_at():
    assert turn_of(played("observe", LEAK)[0], "simple").feedback.leak is None


def test_off_does_not_look():
    assert turn_of(played("off", LEAK)[0], "detail").feedback.leak is None


def test_rewrite_has_a_leak_written_again_and_the_receiver_sees_that_only():
    record, asked = played("rewrite", LEAK, FINE)
    turn = turn_of(record, "detail")
    assert LEAK not in turn.user.text
    assert turn.user.text.endswith(FINE)
    assert turn.user.text.startswith("Your previous answer is incorrect.")
    assert (turn.feedback.leak.found, turn.feedback.draft.leak.found) == (None, "stated")
    assert turn.feedback.draft.text.endswith(LEAK)
    assert [message.role for message in asked[1].messages] == ["user", "assistant", "user"]
    assert LEAK in asked[1].messages[-1].text
    assert record.usage()["provider"].calls == 3


def test_rewrite_leaves_alone_what_does_not_leak():
    record, asked = played("rewrite", FINE)
    assert (len(asked), turn_of(record, "detail").feedback.draft) == (1, None)


def test_what_leaks_again_drops_its_arm_and_no_other():
    record, asked = played("rewrite", LEAK, "B is correct.")
    assert turn_of(record, "detail") is None
    [end] = [end for end in record.ends if end.branch == "detail"]
    assert (end.reason, end.feedback.leak.found, end.feedback.draft.leak.found) == ("leak_dropped", "stated", "stated")
    assert turn_of(record, "simple") is not None
    assert len(asked) == 2
    assert record.usage()["provider"].calls == 3


@pytest.mark.parametrize("again", [error(), "", "<think>hm</think>"])
def test_a_rewrite_that_fails_is_failed_feedback(again):
    record, _ = played("rewrite", LEAK, again)
    [end] = [end for end in record.ends if end.branch == "detail"]
    assert (end.reason, end.feedback.draft.leak.found) == ("feedback_failed", "stated")


def test_a_yaml_replaces_the_rewrite_prompt():
    _, asked = played("rewrite", LEAK, FINE, prompts={"rewrite": "Shorter: {{ feedback }} ({{ options.A }})"})
    assert asked[1].messages[-1].text == f"Shorter: {LEAK} (cat)"


def test_thinking_is_not_what_leaks():
    record, _ = played("observe", f"<think>{LEAK}</think>{FINE}")
    assert turn_of(record, "detail").feedback.leak.found is None


def test_the_summary_of_a_leaking_episode_stays_small():
    record, _ = played("rewrite", LEAK, "B is correct.")
    summary = FeedbackLoopMetrics(FeedbackLoopOptions()).summary(record)
    assert summary["arms"]["detail"]["end"] == "leak_dropped"


def test_a_guard_that_cannot_read_the_options_fails_its_arm_and_not_the_episode():
    options = FeedbackLoopOptions(arms=("detail", "simple"))
    parts = Parts(verifier=NumberVerifier(), feedback_providers={arm: PLUGINS[arm]() for arm in ("detail", "simple")})
    provider = ScriptedRole(lambda asked: "2" if asked.purpose == "solve" else FINE, name="p")
    roles = FakeRoles(ScriptedRole(lambda asked: "1"), provider)
    episode = make_episode(target="2", options={"1": "cat", "2": "dog"})
    record = asyncio.run(FeedbackLoop(options, parts).play(episode, roles))
    assert record.status == "finished"
    assert [end.reason for end in record.ends] == ["feedback_failed", "rounds_used"]
    assert "each label must be one letter" in record.ends[0].feedback.reply.error


class NumberVerifier:
    """Options that are numbered, which only a stranger's task has."""

    def judge(self, text, target, options):
        return Judgement(extraction=Extraction(answer=text, method="number"), correct=text == target)


def test_a_system_prompt_changes_nothing():
    first = "The answer is B. Checking again, that fails."

    class LastWord(NumberVerifier):
        def judge(self, text, target, options):
            answer = "A" if text == first else text
            return Judgement(extraction=Extraction(answer=answer, method="letter"), correct=answer == target)

    found = []
    for system in (None, "Be brief."):
        parts = Parts(verifier=LastWord(), feedback_providers={"detail": PLUGINS["detail"]()})
        provider = ScriptedRole(lambda asked: "B" if asked.purpose == "solve" else LEAK, name="p")
        roles = FakeRoles(ScriptedRole(lambda asked: "C" if asked.round else first), provider)
        loop = FeedbackLoop(FeedbackLoopOptions(arms=("detail",)), parts)
        question = Message(role="user", content=("Somebody wrote: The answer is B. What animal?",))
        record = asyncio.run(loop.play(make_episode(system=system, question=question), roles))
        found.append(turn_of(record, "detail").feedback.leak.found)
    assert found == ["stated", "stated"]
