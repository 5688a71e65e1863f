"""A feedback loop with a memory: notes are taken after each answer and shown with the next feedback."""

from __future__ import annotations

import asyncio
import json

import pytest

from interbench_tasks import Message, Parts, history
from interbench_tasks.config import task_options_from
from interbench_tasks.errors import ConfigError
from interbench_tasks.hookspecs import MemoryOptions
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from interbench_tasks.record_json import line_from_record, record_from_line
from tests.dialogues import MEMORIES, failing, picture
from tests.testing import FakeRoles, Hint, LetterVerifier, ScriptedRole, make_episode

OFFERS = offers_from(build_plugin_manager())


def wrong_then(answers):
    """The receiver's answers by round; the first is wrong."""
    return lambda asked: answers[asked.round]


def note_writer(asked):
    return json.dumps({"facts": [f"round {asked.round}"]})


def loop(memory, rounds=2, arms=("hint",), notes=note_writer, answers=("A", "C", "B"), **more):
    options = FeedbackLoopOptions(memory=memory, max_rounds=rounds, arms=arms, recent_turns=1, **more)
    names = (memory,) if isinstance(memory, str) else memory or ()
    told = MemoryOptions(recent_turns=options.recent_turns)
    parts = Parts(
        verifier=LetterVerifier(),
        feedback_providers={arm: Hint(arm) for arm in arms},
        memories={name: MEMORIES[name](told) for name in names},
    )
    roles = FakeRoles(ScriptedRole(wrong_then(answers)), ScriptedRole(lambda asked: "B"), notetaker=ScriptedRole(notes))
    return FeedbackLoop(options, parts), roles


def play(made, roles, episode=None):
    return asyncio.run(made.play(episode or make_episode(), roles))


def test_notes_stand_before_the_feedback_and_nowhere_else():
    made, roles = loop("note_taking")
    play(made, roles)
    first, second = roles.receiver.prompts("hint")
    assert first == [
        "What animal?",
        "A",
        'Notes on the conversation so far:\n{"facts": ["round 0"]}\n\nhint: \'A\' is wrong',
    ]
    assert second[:4] == ["What animal?", "A", "hint: 'A' is wrong", "C"]
    assert second[4] == 'Notes on the conversation so far:\n{"facts": ["round 1"]}\n\nhint: \'C\' is wrong'


def test_the_notetaker_sees_the_question_with_its_pictures_and_then_the_feedback():
    made, roles = loop("note_taking")
    question = Message(role="user", content=(picture(1), "What animal?"))
    play(made, roles, make_episode(question=question))
    first, second = roles.notetaker.asked
    assert (len(first.messages[0].pictures), len(second.messages[0].pictures)) == (1, 0)
    assert "with picture 1:" in first.messages[0].text
    assert "What animal?" in first.messages[0].text
    assert "hint: 'A' is wrong" in second.messages[0].text
    assert '"round 0"' in second.messages[0].text
    assert (first.branch, second.branch) == ("note_taking", "hint/note_taking")


def test_all_branches_share_the_notes_on_the_first_answer():
    made, roles = loop("note_taking", rounds=1, arms=("one", "two"))
    record = play(made, roles)
    assert len(roles.notetaker.asked) == 1
    assert record.usage()["notetaker"].calls == 1
    assert [turn.branch for turn in record.turns] == ["", "solve", "note_taking", "one", "two"]


def test_the_record_says_what_was_shown_and_comes_back_from_its_line():
    made, roles = loop("note_taking")
    record = play(made, roles)
    second = next(turn for turn in record.turns if turn.branch == "hint" and turn.round == 2)
    assert second.seen.notes_chars == len('{"facts": ["round 1"]}')
    assert [turn.index for turn in record.turns] == list(range(len(record.turns)))
    notes = [turn for turn in record.turns if turn.role == "notetaker"]
    assert [(turn.round, record.turns[turn.parent].reply.text) for turn in notes] == [(0, "A"), (1, "C")]
    assert [message.text for message in history(record.turns, second.index)][-1] == "B"
    assert record_from_line(line_from_record(record)) == record


def test_recent_turns_cut_what_the_receiver_sees_of_the_rounds():
    made, roles = loop("recent_turns")
    record = play(made, roles)
    assert roles.receiver.prompts("hint")[1] == ["hint: 'A' is wrong", "C", "hint: 'C' is wrong"]
    second = next(turn for turn in record.turns if turn.branch == "hint" and turn.round == 2)
    assert (second.seen.first_turn, second.seen.cut_turns) == (1, 1)


def test_memories_compose():
    made, roles = loop(("recent_turns", "note_taking"))
    play(made, roles)
    second = roles.receiver.prompts("hint")[1]
    assert second[:2] == ["hint: 'A' is wrong", "C"]
    assert second[2].startswith("Notes on the conversation so far:")


def test_a_notetaker_that_fails_ends_the_branch_and_scores_nothing():
    made, roles = loop("note_taking", notes=lambda asked: failing("HTTP 503"))
    record = play(made, roles)
    assert [(end.branch, end.reason, end.error) for end in record.ends] == [("hint", "notes_failed", "HTTP 503")]
    assert not roles.receiver.prompts("hint")


def test_a_notetaker_that_fails_later_leaves_the_earlier_rounds():
    made, roles = loop("note_taking", notes=lambda asked: failing() if asked.round else note_writer(asked))
    record = play(made, roles)
    assert [turn.round for turn in record.turns if turn.branch == "hint"] == [1]
    assert record.ends[0].reason == "notes_failed"


def test_right_answers_take_no_notes():
    made, roles = loop("note_taking", answers=("B",))
    assert play(made, roles).stop_reason == "right"
    assert not roles.notetaker.asked


def test_the_second_pass_takes_no_notes_again():
    made, roles = loop("note_taking", rounds=1, flip_sample=1)
    record = play(made, roles)
    again = asyncio.run(made.play_on(make_episode(), record, {"flip": True, "borrowed": {}}, roles))
    assert len(roles.notetaker.asked) == 1
    assert len([turn for turn in again.turns if turn.role == "notetaker"]) == 1
    assert roles.receiver.prompts("hint")[1][-1].startswith("Notes on the conversation so far:")


def test_without_a_memory_the_record_and_the_manifest_are_as_before():
    made, roles = loop(None)
    record = play(made, roles)
    assert not [turn for turn in record.turns if turn.role == "notetaker" or turn.seen]
    assert not roles.notetaker.asked
    assert set(FeedbackLoopOptions().model_dump()) & {"memory", "recent_turns", "notes"} == set()
    assert FeedbackLoopOptions(memory="none").model_dump()["memory"] == "none"


# --- from YAML alone --------------------------------------------------------------------------------------------------


def config(memory, roles=None):
    return {
        "task": "mine",
        "generation_kwargs": {"until": [], "max_new_tokens": 8, "temperature": 0},
        "metadata": {
            "version": 1.0,
            "interbench": {
                "protocol": "feedback_loop",
                "memory": memory,
                "roles": {"provider": "simulated:p", "notetaker": "simulated:n"} if roles is None else roles,
            },
        },
    }


def test_a_yaml_names_the_memory_and_its_notetaker():
    options = task_options_from(config(["recent_turns", "note_taking"]), where="mine.yaml", offers=OFFERS)
    assert sorted(options.roles) == ["notetaker", "provider"]


def test_only_a_memory_that_takes_notes_needs_a_notetaker():
    roles = {"provider": "simulated:p"}
    assert "notetaker" not in task_options_from(config("recent_turns", roles), where="m", offers=OFFERS).roles
    with pytest.raises(ConfigError, match="roles.notetaker is missing.*INTERBENCH_NOTETAKER"):
        task_options_from(config("note_taking", roles), where="m", offers=OFFERS)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("note_takin", "metadata.interbench.memory = 'note_takin' \\(did you mean 'note_taking'\\?\\)"),
        (["none", "none"], "'none\\+none' has one memory twice"),
    ],
)
def test_a_wrong_memory_is_told_before_anything_is_paid(memory, message):
    with pytest.raises(ConfigError, match=message):
        task_options_from(config(memory), where="mine.yaml", offers=OFFERS)
