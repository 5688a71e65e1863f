"""The feedback loop's script, with fakes for models and feedback."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from interbench_tasks import EpisodeRecord, Feedback, Message, Parts, history
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from interbench_tasks.runs.keeper import failures_of
from tests.testing import (
    Asked,
    AskedHint,
    FakeRoles,
    Hint,
    LetterVerifier,
    ScriptedRole,
    error,
    make_episode,
    ok,
    parts,
)


def play(receiver, provider="B", *, arms=("simple",), max_rounds=1, episode=None, feedback=None) -> tuple:
    protocol = FeedbackLoop(
        FeedbackLoopOptions(arms=arms, max_rounds=max_rounds), parts(**(feedback or {arm: Hint(arm) for arm in arms}))
    )
    roles = FakeRoles(_role(receiver, "receiver"), _role(provider, "provider"))
    record = asyncio.run(protocol.play(episode or make_episode(), roles))
    return record, roles


def _role(answers, name) -> ScriptedRole:
    if isinstance(answers, str) or not callable(answers):
        return ScriptedRole(lambda asked: answers, name=name)
    return ScriptedRole(answers, name=name)


def by_round(*answers):
    return lambda asked: answers[asked.round]


def receiver_turns(record: EpisodeRecord, branch: str) -> list:
    return [turn for turn in record.turns if turn.role == "receiver" and turn.branch == branch]


def test_a_right_first_answer_ends_the_episode_and_nobody_else_is_paid():
    record, roles = play("B")
    assert record.stop_reason == "right"
    assert record.status == "finished"
    assert roles.provider.asked == []
    assert len(record.turns) == 1


def test_an_unreadable_first_answer_is_wrong_but_gets_no_feedback():
    record, roles = play("no idea")
    assert record.stop_reason == "invalid"
    assert record.turns[0].judgement.correct is False
    assert roles.provider.asked == []


def test_a_failed_first_answer_is_no_answer():
    record, roles = play(error("HTTP 500: out of order"))
    assert (record.status, record.stop_reason, record.error) == ("failed", "reply_failed", "HTTP 500: out of order")
    assert record.turns[0].judgement is None
    assert roles.provider.asked == []


@pytest.mark.parametrize(
    ("provider", "reason"),
    [("A", "provider_wrong"), ("well...", "provider_unparsed"), (error(), "provider_failed")],
)
def test_without_a_right_solution_of_the_provider_there_is_no_feedback(provider, reason):
    record, roles = play("A", provider)
    assert record.stop_reason == reason
    assert len(roles.receiver.asked) == 1
    assert record.turns[1].role == "provider"


def test_the_provider_solves_the_same_prompt_without_seeing_the_receivers_answer():
    episode = make_episode(system="Be brief.")
    _, roles = play("A", episode=episode)
    solve = roles.provider.asked[0]
    assert solve.purpose == "solve"
    assert solve.messages == (Message(role="system", content=("Be brief.",)), episode.question)


def test_each_arm_continues_the_same_first_answer():
    record, roles = play(by_round("A", "B"), arms=("detail", "simple"))
    assert roles.receiver.prompts("simple") == [["What animal?", "A", "simple: 'A' is wrong"]]
    assert roles.receiver.prompts("detail") == [["What animal?", "A", "detail: 'A' is wrong"]]
    assert [turn.parent for turn in record.turns] == [None, None, 0, 0]
    assert record.stop_reason == "played"
    assert {end.branch: end.reason for end in record.ends} == {"detail": "solved", "simple": "solved"}


def test_rounds_go_on_until_the_answer_is_right():
    record, roles = play(by_round("A", "C", "B", "A"), max_rounds=3)
    turns = receiver_turns(record, "simple")
    assert [turn.round for turn in turns] == [1, 2]
    assert record.ends[0].reason == "solved"
    assert roles.receiver.prompts("simple")[1] == [
        "What animal?",
        "A",
        "simple: 'A' is wrong",
        "C",
        "simple: 'C' is wrong",
    ]


def test_rounds_end_where_the_yaml_says():
    record, roles = play("A", max_rounds=2)
    assert record.ends[0].reason == "rounds_used"
    assert len(roles.receiver.asked) == 3


def test_an_unreadable_answer_in_a_round_is_wrong_and_the_rounds_go_on():
    record, _ = play(by_round("A", "hm", "B"), max_rounds=2)
    assert [turn.judgement.correct for turn in receiver_turns(record, "simple")] == [False, True]


def test_a_failing_arm_hurts_no_other_arm():
    def receiver(asked: Asked):
        return error("HTTP 503") if asked.branch == "detail" else ["A", "B"][asked.round]

    record, _ = play(receiver, arms=("detail", "simple"))
    assert {end.branch: end.reason for end in record.ends} == {"detail": "reply_failed", "simple": "solved"}
    assert record.status == "finished"
    assert receiver_turns(record, "detail")[0].judgement is None


def test_failed_feedback_is_kept_and_is_no_wrong_answer():
    def provider(asked: Asked):
        return error("HTTP 429") if asked.purpose == "feedback" else "B"

    record, _ = play("A", provider, arms=("detail",), feedback={"detail": AskedHint("detail")})
    end = record.ends[0]
    assert (end.reason, end.feedback.status, end.feedback.reply.error) == ("feedback_failed", "failed", "HTTP 429")
    assert receiver_turns(record, "detail") == []
    assert record.usage()["provider"].calls == 2


class Picky(LetterVerifier):
    """Raises on one text."""

    def judge(self, text, target, options):
        if text.strip() == "C":
            raise RuntimeError("no idea")
        return super().judge(text, target, options)


def picky_loop(*arms: str) -> FeedbackLoop:
    made = Parts(verifier=Picky(), feedback_providers={arm: Hint(arm) for arm in arms})
    return FeedbackLoop(FeedbackLoopOptions(arms=arms), made)


def test_a_verifier_that_raises_in_an_arm_loses_no_first_answer():
    protocol = FeedbackLoop(
        FeedbackLoopOptions(arms=("one", "two")),
        Parts(verifier=Picky(), feedback_providers={a: Hint(a) for a in ("one", "two")}),
    )
    receiver = ScriptedRole(lambda asked: {"": "A", "one": "C", "two": "B"}[asked.branch])
    record = asyncio.run(protocol.play(make_episode(), FakeRoles(receiver, ScriptedRole(lambda asked: "B"))))
    assert {end.branch: end.reason for end in record.ends} == {"one": "judge_failed", "two": "solved"}
    assert "RuntimeError('no idea')" in record.ends[0].error
    assert record.turns[0].judgement.correct is False
    assert failures_of(record) == {record.ends[0].error}
    summary = FeedbackLoopMetrics(FeedbackLoopOptions(arms=("one", "two"))).summary(record)
    assert summary["first"]["correct"] is False


def test_a_verifier_that_raises_at_the_providers_try_leaves_the_membership_unknown():
    protocol = FeedbackLoop(
        FeedbackLoopOptions(arms=("one",)), Parts(verifier=Picky(), feedback_providers={"one": Hint("one")})
    )
    roles = FakeRoles(ScriptedRole(lambda asked: "A"), ScriptedRole(lambda asked: "C"))
    record = asyncio.run(protocol.play(make_episode(), roles))
    assert (record.stop_reason, record.ends[0].reason) == ("provider_failed", "judge_failed")
    assert FeedbackLoopMetrics(FeedbackLoopOptions(arms=("one",))).summary(record)["in_test"] is None


@pytest.mark.parametrize("odd", ["a text", None, Feedback(text=None, kind="odd", author="x")])
def test_feedback_of_another_kind_fails_its_arm_and_names_it(odd):
    class Odd(Hint):
        async def give(self, episode, turn, provider):
            return odd

    record, _ = play(by_round("A", "B"), arms=("odd", "simple"), feedback={"odd": Odd("odd"), "simple": Hint("simple")})
    assert {end.branch: end.reason for end in record.ends} == {"odd": "feedback_failed", "simple": "solved"}
    assert "feedback 'odd' gave no Feedback with a text" in record.ends[0].feedback.reply.error


def test_feedback_that_raises_fails_its_arm_only():
    class Broken(Hint):
        async def give(self, episode, turn, provider):
            raise KeyError("api_key=sk-test-0123456789abcdef")

    feedback = {"broken": Broken("broken"), "simple": Hint("simple")}
    record, _ = play(by_round("A", "B"), arms=("broken", "simple"), feedback=feedback)
    assert {end.branch: end.reason for end in record.ends} == {"broken": "feedback_failed", "simple": "solved"}
    assert "feedback 'broken' raised KeyError" in record.ends[0].feedback.reply.error
    assert "0123456789abcdef" not in record.ends[0].feedback.reply.error


def test_an_empty_recorded_answer_is_unreadable_and_the_receiver_is_not_asked():
    record, roles = play("B", episode=make_episode(first_answer=""))
    assert record.stop_reason == "invalid"
    assert roles.receiver.asked == []


def test_recorded_first_answers_cost_nothing():
    episode = make_episode(first_answer="A")
    record, roles = play(lambda asked: "B", episode=episode)
    assert [asked.round for asked in roles.receiver.asked] == [1]
    assert record.turns[0].reply.model == "recorded"
    assert record.turns[0].reply.usage.calls == 0
    assert record.usage()["receiver"].calls == 1


def test_turns_are_numbered_by_the_yaml_and_not_by_arrival():
    class Slow(Hint):
        async def give(self, episode, turn, provider):
            await asyncio.sleep(0.02)
            return await super().give(episode, turn, provider)

    arms = ("first", "second")
    slow_first, _ = play(
        by_round("A", "C", "C"), arms=arms, max_rounds=2, feedback={"first": Slow("first"), "second": Hint("second")}
    )
    slow_second, _ = play(
        by_round("A", "C", "C"), arms=arms, max_rounds=2, feedback={"first": Hint("first"), "second": Slow("second")}
    )
    assert slow_first == slow_second
    assert [(turn.index, turn.parent, turn.branch, turn.round) for turn in slow_first.turns] == [
        (0, None, "", 0),
        (1, None, "solve", 0),
        (2, 0, "first", 1),
        (3, 2, "first", 2),
        (4, 0, "second", 1),
        (5, 4, "second", 2),
    ]


def test_the_record_gives_back_every_history():
    record, roles = play(by_round("A", "C", "C"), arms=("simple",), max_rounds=2, episode=make_episode(system="Brief."))
    for asked, turn in zip(roles.receiver.asked[1:], receiver_turns(record, "simple"), strict=True):
        assert history(record.turns, turn.index, record.system)[:-1] == asked.messages


def test_the_feedback_stands_with_the_turn_it_led_to():
    record, _ = play(by_round("A", "B"))
    turn = receiver_turns(record, "simple")[0]
    assert turn.feedback.kind == "simple"
    assert turn.user.text == turn.feedback.text


def test_models_are_named_in_the_record():
    record, _ = play("B")
    assert record.models == {"receiver": "receiver", "provider": "provider"}


def test_replies_are_kept_byte_for_byte():
    text = "<think>A?</think>\n\n B \r\n</think>"
    record, _ = play(ok(text))
    assert record.turns[0].reply.text == text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": ()}, "at least 1 item"),
        ({"arms": ("a", "a")}, "named twice: a"),
        ({"max_rounds": 0}, "greater than or equal to 1"),
        ({"rounds": 1}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        FeedbackLoopOptions(**changes)
