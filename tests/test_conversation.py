"""The protocol `conversation`: what is sent, what is kept, and what a failure does."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from interbench_tasks import Message, history
from interbench_tasks.record_json import line_from_record, record_from_line
from interbench_tasks.records import CONTEXT_OVERFLOW, Reply, without_run
from tests.dialogues import (
    answers,
    conversation,
    conversation_protocol,
    failing,
    fake_roles,
    listener,
    note_writer,
    play,
    question,
    sent_to,
)

SYSTEM = "Be brief."


# --- the history ------------------------------------------------------------------------------------------------------


def test_a_live_history_is_what_the_receiver_itself_said():
    roles = fake_roles()
    record = play(conversation(3, system=SYSTEM), roles)
    assert sent_to(roles, "none/q0") == [
        SYSTEM,
        "This is fact 0.",
        "live 0",
        "This is fact 1.",
        "live 1",
        "This is fact 2.",
        "live 2",
        "What is fact 0?",
    ]
    assert [asked.round for asked in roles.receiver.asked if asked.branch == ""] == [0, 1, 2]
    assert (record.status, record.stop_reason, record.ends) == ("finished", "played", ())


def test_a_recorded_history_asks_the_receiver_for_nothing_but_answers():
    roles = fake_roles()
    record = play(conversation(3), roles, history="recorded")
    assert [asked.branch for asked in roles.receiver.asked] == ["none/q0", "none/q1", "none/q2"]
    assert sent_to(roles, "none/q1")[:4] == ["This is fact 0.", "Recorded 0.", "This is fact 1.", "Recorded 1."]
    first = record.turns[0]
    assert (first.reply.text, first.reply.finish_reason, first.reply.model) == ("Recorded 0.", "recorded", "recorded")
    assert record.usage()["receiver"].calls == 3


def test_the_record_chains_every_answer_to_the_history_it_was_given():
    roles = fake_roles()
    record = play(conversation(3, system=SYSTEM), roles, memories=("none", "note_taking"))
    for branch, turn in answers(record).items():
        asked = next(asked for asked in roles.receiver.asked if asked.branch == branch)
        assert history(record.turns, turn.index, SYSTEM) == (
            *asked.messages,
            Message(role="assistant", content=(turn.reply.text,)),
        )
    assert [turn.index for turn in record.turns] == list(range(len(record.turns)))
    assert {turn.round for turn in record.turns if turn.role == "receiver"} == {0}


def test_two_runs_of_a_conversation_are_equal_whatever_ends_first():
    async def slow_receiver(order):
        class Uneven:
            name = "uneven"

            async def reply(self, messages, *, branch="", round=0, purpose="answer"):
                for _ in range(order(branch)):
                    await asyncio.sleep(0)
                return Reply(text=f"said in {branch}", status="ok")

        roles = fake_roles()
        roles.receiver = Uneven()
        made = conversation_protocol(memories=("none", ("recent_turns", "note_taking"), "note_taking"))
        return await made.play(conversation(4), roles)

    first = asyncio.run(slow_receiver(lambda branch: len(branch) % 5))
    second = asyncio.run(slow_receiver(lambda branch: 7 - len(branch) % 3))
    assert without_run(first) == without_run(second)


def test_pictures_of_a_turn_are_sent_with_it_and_stay_in_the_history():
    roles = fake_roles()
    play(conversation(3, pictures={0: 2, 2: 1}), roles)
    asked = next(asked for asked in roles.receiver.asked if asked.branch == "none/q0")
    assert [len(message.pictures) for message in asked.messages] == [2, 0, 0, 0, 1, 0, 0]


def test_a_reply_that_was_cut_at_the_token_limit_is_an_answer():
    def cut(asked):
        return Reply(text="It is the fact th", finish_reason="length")

    record = play(conversation(2), fake_roles(cut))
    assert {turn.reply.finish_reason for turn in record.turns} == {"length"}
    assert len(answers(record)) == 2
    assert record.ends == ()


# --- the questions ----------------------------------------------------------------------------------------------------


def test_independent_questions_do_not_see_each_other():
    roles = fake_roles()
    record = play(conversation(2), roles)
    assert sent_to(roles, "none/q1")[-2:] == ["live 1", "What is fact 1?"]
    assert {turn.parent for turn in answers(record).values()} == {1}


def test_all_questions_share_one_prefix_to_the_byte():
    roles = fake_roles()
    play(conversation(5, pictures={1: 2}), roles)
    prefixes = {asked.messages[:-1] for asked in roles.receiver.asked if asked.branch.startswith("none/")}
    assert len(prefixes) == 1
    assert len(next(iter(prefixes))) == 10


def test_questions_leave_together():
    """All are asked before the first is answered."""
    waiting: list[str] = []

    class Patient:
        name = "patient"

        async def reply(self, messages, *, branch="", round=0, purpose="answer"):
            if "/" in branch:
                waiting.append(branch)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert len(waiting) == 4
            return Reply(text="x")

    roles = fake_roles()
    roles.receiver = Patient()
    play(conversation(4), roles)
    assert waiting == ["none/q0", "none/q1", "none/q2", "none/q3"]


def test_accumulated_questions_follow_each_other_with_their_answers():
    roles = fake_roles()
    record = play(conversation(2), roles, questions="accumulate")
    assert sent_to(roles, "none/q1")[-3:] == ["What is fact 0?", "answer none/q0", "What is fact 1?"]
    first, second = answers(record).values()
    assert (first.parent, second.parent) == (1, first.index)


def test_an_accumulated_answer_that_failed_is_no_part_of_the_conversation():
    def say(asked):
        return failing() if asked.branch == "none/q0" else listener(asked)

    roles = fake_roles(say)
    record = play(conversation(2), roles, questions="accumulate")
    assert sent_to(roles, "none/q1")[-2:] == ["live 1", "What is fact 1?"]
    assert answers(record)["none/q1"].parent == 1


def test_notes_do_not_pile_up_where_questions_accumulate():
    roles = fake_roles()
    play(conversation(2), roles, questions="accumulate", memories=("note_taking",))
    sent = sent_to(roles, "note_taking/q1")
    assert sum("Notes on the conversation" in text for text in sent) == 1
    assert "Notes on the conversation" in sent[-1]


def test_choice_and_true_or_false_are_scored_exactly_and_open_answers_are_not():
    options = {"A": "red", "B": "blue"}
    asked = [
        question(0),
        question(1, format="mc", options=options, target="B"),
        question(2, format="tf", options={"A": "True", "B": "False"}, target="A"),
    ]
    record = play(conversation(2, questions=asked), fake_roles(lambda asked: "B"))
    found = answers(record)
    assert found["none/q0"].judgement is None
    assert found["none/q1"].judgement.correct
    assert not found["none/q2"].judgement.correct


def test_a_verifier_that_raises_is_no_wrong_answer():
    class Broken:
        def judge(self, text, target, options):
            raise RuntimeError("broken")

    made = conversation_protocol()
    made._parts = dataclasses.replace(made._parts, verifier=Broken())
    asked = [question(0, format="mc", options={"A": "x", "B": "y"}, target="A")]
    record = asyncio.run(made.play(conversation(1, questions=asked), fake_roles()))
    assert answers(record)["none/q0"].judgement is None
    (end,) = record.ends
    assert (end.branch, end.reason) == ("none/q0", "judge_failed")
    assert "broken" in end.error


def test_the_record_holds_the_questions_and_comes_back_from_its_line():
    episode = conversation(3, pictures={0: 1}, category="Travel", cluster="twins-1")
    record = play(episode, fake_roles(), memories=("none", ("recent_turns", "note_taking")), recent_turns=1)
    assert record.questions == episode.questions
    assert (record.category, record.cluster) == ("Travel", "twins-1")
    assert record_from_line(line_from_record(record)) == record


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_question_that_failed_hurts_no_other():
    record = play(conversation(3), fake_roles(lambda asked: failing() if "q1" in asked.branch else listener(asked)))
    assert record.status == "finished"
    assert [end.branch for end in record.ends] == ["none/q1"]
    assert [turn.reply.usable for turn in answers(record).values()] == [True, False, True]


def test_an_overflow_is_an_end_of_its_own():
    def say(asked):
        return failing("does not fit", finish_reason=CONTEXT_OVERFLOW) if "q1" in asked.branch else listener(asked)

    record = play(conversation(2), fake_roles(say))
    assert [(end.branch, end.reason) for end in record.ends] == [("none/q1", "context_overflow")]


def test_a_history_that_breaks_off_leaves_its_questions_unasked_and_unscored():
    def say(asked):
        return failing(finish_reason=CONTEXT_OVERFLOW) if asked.round == 2 else listener(asked)

    roles = fake_roles(say)
    record = play(conversation(4), roles, memories=("none", "note_taking"))
    assert not answers(record)
    assert (record.status, record.stop_reason) == ("failed", "context_overflow")
    assert [(end.branch, end.reason) for end in record.ends] == [("", "context_overflow")]
    assert len([turn for turn in record.turns if turn.role == "receiver"]) == 3
    assert [turn.round for turn in record.turns if turn.role == "notetaker"] == [0, 1]


def test_only_the_arms_of_a_broken_history_are_unasked():
    def say(asked):
        return failing() if asked.branch == "" and asked.round == 1 else listener(asked)

    record = play(conversation(3), fake_roles(say), memories=("none", "recent_turns"))
    assert {branch.partition("/")[0] for branch in answers(record)} == {"recent_turns"}
    assert record.status == "finished"
    assert [(end.branch, end.reason) for end in record.ends] == [("", "reply_failed")]


def test_a_notetaker_that_fails_leaves_its_arm_unasked_and_the_others_alone():
    def take(asked):
        return failing("HTTP 503") if asked.round == 1 else note_writer(asked)

    record = play(conversation(3), fake_roles(notetaker=take), memories=("none", "note_taking"))
    assert {branch.partition("/")[0] for branch in answers(record)} == {"none"}
    (end,) = record.ends
    assert (end.branch, end.reason, end.error) == ("note_taking", "notes_failed", "HTTP 503")


def test_a_memory_that_raises_fails_its_arm_only():
    made = conversation_protocol(memories=("none", "note_taking"))

    class Broken:
        acts_at, takes_notes = "question", True

        async def after_turn(self, notes, turn, notetaker):
            raise RuntimeError("no memory left")

        def messages(self, notes, history):
            return history

    made._arms[1].members["note_taking"] = Broken()
    record = asyncio.run(made.play(conversation(2), fake_roles()))
    assert {branch.partition("/")[0] for branch in answers(record)} == {"none"}
    assert "no memory left" in record.ends[0].error


def test_without_a_notetaker_notes_are_an_error():
    roles = fake_roles()
    roles.notetaker = None
    with pytest.raises(ValueError, match="needs the role notetaker"):
        play(conversation(2), roles, memories=("note_taking",))


# --- size -------------------------------------------------------------------------------------------------------------


def test_the_record_of_600_turns_grows_with_its_text():
    def size(n_turns):
        asked = [question(0), question(1)]
        record = play(
            conversation(n_turns, questions=asked), fake_roles(), memories=("none", ("recent_turns", "note_taking"))
        )
        assert len([turn for turn in record.turns if turn.role == "notetaker"]) == n_turns
        return len(line_from_record(record))

    small, large = size(60), size(600)
    assert large < 10.5 * small
