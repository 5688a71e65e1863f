"""Memories: what each shows and keeps, how they compose, and what is recorded of it."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from interbench_tasks import Message, Notes, Reply, Turn
from interbench_tasks.errors import PluginError
from interbench_tasks.hookspecs import MemoryOptions
from interbench_tasks.memories import (
    NotesOptions,
    arm_name,
    memory_arms,
    memory_options_from,
    notes_after,
    seen_of,
    shown,
)
from interbench_tasks.plugins.memory.note_taking import EMPTY, notes_from_text, within
from interbench_tasks.protocols.conversation import ConversationOptions
from interbench_tasks.protocols.conversation_limits import Limits, tokens_of
from interbench_tasks.protocols.feedback_loop import FeedbackLoopOptions
from tests.dialogues import (
    MEMORIES,
    answers,
    conversation,
    conversation_protocol,
    failing,
    fake_roles,
    listener,
    note_writer,
    picture,
    play,
    question,
    sent_to,
)
from tests.testing import ScriptedRole, ok

NOTES = Notes(text='{"facts": ["x"]}')


def memory(name, **options):
    return MEMORIES[name](MemoryOptions(**options))


def user(text, *pictures):
    return Message(role="user", content=(*pictures, text))


def said(text):
    return Message(role="assistant", content=(text,))


def talk(n_turns, system=None):
    """System (optional), `n_turns` turns, and a question."""
    messages = [Message(role="system", content=(system,))] if system else []
    for number in range(n_turns):
        messages += [user(f"u{number}"), said(f"a{number}")]
    return (*messages, user("question"))


def texts(messages):
    return [message.text for message in messages]


# --- what each memory shows -------------------------------------------------------------------------------------------


def test_no_memory_shows_everything_as_it_is():
    assert memory("none").messages(None, talk(3)) == talk(3)


@pytest.mark.parametrize(
    ("n_turns", "expected"),
    [
        (0, ["question"]),
        (1, ["u2", "a2", "question"]),
        (2, ["u1", "a1", "u2", "a2", "question"]),
        (3, texts(talk(3))),
        (9, texts(talk(3))),
    ],
)
def test_recent_turns_leaves_the_last_ones_whole(n_turns, expected):
    assert texts(memory("recent_turns", recent_turns=n_turns).messages(None, talk(3))) == expected


def test_recent_turns_keeps_the_system_message():
    assert texts(memory("recent_turns", recent_turns=1).messages(None, talk(3, "Be brief."))) == [
        "Be brief.",
        "u2",
        "a2",
        "question",
    ]


@pytest.mark.parametrize("name", ["note_taking", "summary"])
def test_notes_stand_before_the_question_in_the_last_user_message(name):
    messages = memory(name).messages(NOTES, (*talk(2)[:-1], user("question", picture(1))))
    assert texts(messages)[:-1] == texts(talk(2))[:-1]
    block, shown_picture, last = messages[-1].content
    assert NOTES.text in block
    assert (shown_picture, last) == (picture(1), "question")


@pytest.mark.parametrize(("system", "n_messages"), [(None, 6), ("Be brief.", 6)])
def test_notes_may_stand_in_the_system_message(system, n_messages):
    messages = memory("note_taking", place="system").messages(NOTES, talk(2, system))
    assert len(messages) == n_messages
    assert messages[0].role == "system"
    assert NOTES.text in messages[0].text
    assert messages[0].text.startswith(system or "Notes")
    assert messages[-1] == user("question")


@pytest.mark.parametrize("notes", [None, Notes(text="", status="kept")])
@pytest.mark.parametrize("name", ["note_taking", "summary"])
def test_without_notes_nothing_is_shown_of_them(name, notes):
    assert tuple(memory(name).messages(notes, talk(2))) == talk(2)


def test_the_prompts_of_a_yaml_replace_ours():
    prompts = {"notes": "N {{ notes }} M {{ message }} T {{ turn }}", "notes_block": "<{{ notes }}>"}
    made = memory("note_taking", prompts=prompts)
    assert made.messages(NOTES, talk(1))[-1].content[0] == f"<{NOTES.text}>\n\n"
    taken, asked = take(made, None, "hello")
    assert asked == [
        'N {"user_info": {}, "preferences": {}, "purpose": "", "facts": [], "images": [], "updates": []} M hello T 1'
    ]
    assert taken.notes.text == '{"facts": ["noted 0"]}'


# --- how notes are taken ----------------------------------------------------------------------------------------------


def take(made, notes, text, *, reply=note_writer, number=0, pictures=(), before=0):
    """The notes after a turn in which the user said `text`, and what the notetaker was asked."""
    taker = ScriptedRole(reply)
    turn = Turn(index=0, parent=None, user=user(text, *pictures), reply=ok("The reply."))
    taken = asyncio.run(notes_after(made, notes, turn, taker, branch="b", number=number, pictures_before=before))
    return taken, [asked.messages[-1].text for asked in taker.asked]


def test_the_notetaker_sees_the_user_turn_its_pictures_and_the_notes_before_it():
    made = memory("note_taking", max_chars=500)
    taker = ScriptedRole(note_writer)
    turn = Turn(index=0, parent=None, user=user("I like tea.", picture(7)), reply=ok("The reply."))
    asyncio.run(notes_after(made, NOTES, turn, taker, branch="b", number=4, pictures_before=2))
    (asked,) = taker.asked
    assert asked.purpose == "notes"
    assert asked.messages[-1].pictures == (picture(7),)
    for part in ("I like tea.", NOTES.text, "turn 5", "with picture 3", "500 characters"):
        assert part in asked.messages[-1].text, part
    assert "The reply." not in asked.messages[-1].text


def test_a_summary_also_sees_the_reply_and_is_plain_text():
    taken, (asked,) = take(
        memory("summary"), Notes(text="Before."), "I like tea.", reply=lambda asked: " New summary. "
    )
    assert "The reply." in asked
    assert "Before." in asked
    assert taken.notes == Notes(text="New summary.")


def test_a_summary_past_its_limit_is_cut_knowingly():
    taken, _ = take(memory("summary", max_chars=100), None, "x", reply=lambda asked: "y" * 300)
    assert taken.notes == Notes(text="y" * 100, cut=True)


@pytest.mark.parametrize(
    ("name", "kept"), [("note_taking", '{"facts": ["tea", "mi"]}'), ("summary", '{"facts": ["tea", "mi')]
)
def test_notes_that_end_at_the_notetakers_token_limit_are_cut_and_say_so(name, kept):
    said_so_far = Reply(text='{"facts": ["tea", "mi', finish_reason="length")
    taken, _ = take(memory(name), None, "x", reply=lambda asked: said_so_far)
    assert taken.notes == Notes(text=kept, cut=True)


@pytest.mark.parametrize("name", ["note_taking", "summary"])
def test_what_a_model_thinks_is_no_part_of_its_notes(name):
    reply = '<think>{"facts": ["thought"]}</think>{"facts": ["said"]}'
    taken, _ = take(memory(name), None, "x", reply=lambda asked: reply)
    assert taken.notes.text == '{"facts": ["said"]}'


@pytest.mark.parametrize(
    "written",
    [
        '{"facts": ["a", "b"], "purpose": "p"}',
        '```json\n{"facts": ["a", "b"], "purpose": "p"}\n```',
        'Here are the notes:\n{"facts": ["a", "b"], "purpose": "p"}\nAnything else?',
        "{'facts': ['a', 'b'], 'purpose': 'p'}",
        '{"facts": ["a", "b",], "purpose": "p",}',
        '{facts: ["a", "b"], purpose: "p"}',
        '{"facts": ["a", "b"], "purpose": "p"',
    ],
)
def test_badly_written_notes_are_read(written):
    assert notes_from_text(written) == {"facts": ["a", "b"], "purpose": "p"}


@pytest.mark.parametrize(
    "written", ["", "I cannot take notes.", "[1, 2]", "{}", '{"score": 5}', "{" * 3000, "null", '"x"']
)
def test_unreadable_notes_keep_the_old_ones_and_say_so(written):
    taken, _ = take(memory("note_taking"), NOTES, "x", reply=lambda asked: written)
    assert taken.notes == Notes(text=NOTES.text, status="kept")
    assert taken.turns[0].notes.status == "kept"
    first, _ = take(memory("note_taking"), None, "x", reply=lambda asked: written)
    assert first.notes == Notes(text="", status="kept")


def test_every_text_is_read_or_kept_and_never_raises():
    letters = '{}[]":,\\ facts user_info 1 true null \n`\ud800'
    rng = random.Random(3)
    for _ in range(300):
        written = "".join(rng.choice(letters) for _ in range(rng.randrange(60)))
        taken, _ = take(memory("note_taking"), NOTES, "x", reply=lambda asked, text=written: text)
        assert taken.error is None, written
        assert taken.notes is not None


@pytest.mark.parametrize("max_chars", [100, 140, 400])
def test_notes_past_their_limit_lose_their_oldest_entries_and_stay_json(max_chars):
    found = {
        "facts": [f"fact {number} is long enough" for number in range(40)],
        "purpose": "p",
        "user_info": {"a": "b"},
    }
    notes = within(found, max_chars)
    assert len(notes.text) <= max_chars
    assert notes.cut
    kept = json.loads(notes.text)
    assert kept["facts"] == found["facts"][len(found["facts"]) - len(kept["facts"]) :]
    assert kept["purpose"] == "p"
    assert not within(EMPTY, max_chars).cut


@pytest.mark.parametrize("value", ["x" * 900, {f"k{i}": "v" * 30 for i in range(30)}, ["x" * 900], 12345])
def test_whatever_the_longest_part_is_the_limit_holds(value):
    notes = within({"purpose": value, "facts": ["a"]}, 100)
    assert len(notes.text) <= 100
    assert json.loads(notes.text).get("facts", ["a"]) == ["a"]


def test_a_failing_notetaker_is_an_error_and_no_empty_memory():
    taken, _ = take(memory("note_taking"), NOTES, "x", reply=lambda asked: failing("HTTP 503"))
    assert (taken.notes, taken.error) == (None, "HTTP 503")
    assert taken.turns[0].reply.status == "error"


@pytest.mark.parametrize("gives", [None, "text"])
def test_a_memory_that_gives_no_notes_is_an_error(gives):
    class Odd:
        acts_at, takes_notes = "question", True

        async def after_turn(self, notes, turn, notetaker):
            return gives

    taken, _ = take(Odd(), None, "x")
    assert "gave no Notes but" in taken.error


def test_notes_that_no_model_wrote_cost_nothing():
    class Diary:
        acts_at, takes_notes = "question", True

        async def after_turn(self, notes, turn, notetaker):
            return Notes(text=f"{notetaker.turn} {notetaker.pictures} {turn.user.text}")

    taken, asked = take(Diary(), None, "x", number=3, pictures=(picture(1),), before=4)
    assert (taken.notes.text, asked) == ("3 (5,) x", [])
    assert taken.turns[0].reply.usage.calls == 0


# --- in a conversation ------------------------------------------------------------------------------------------------


def test_question_time_memories_share_one_conversation_and_the_others_play_their_own():
    roles = fake_roles()
    record = play(
        conversation(3),
        roles,
        memories=("none", "note_taking", ("recent_turns", "note_taking"), "recent_turns"),
        recent_turns=1,
    )
    played = [turn.branch for turn in record.turns if turn.role == "receiver" and turn.question is None]
    assert played == [""] * 3 + ["recent_turns+note_taking"] * 3 + ["recent_turns"] * 3
    taken = [turn.branch for turn in record.turns if turn.role == "notetaker"]
    assert taken == ["note_taking"] * 3 + ["recent_turns+note_taking/note_taking"] * 3


def test_with_recorded_replies_all_arms_share_the_conversation():
    record = play(conversation(3), fake_roles(), memories=("none", ("recent_turns", "note_taking")), history="recorded")
    assert {turn.branch for turn in record.turns if turn.role == "receiver" and turn.question is None} == {""}
    assert len(answers(record)) == 6


def test_notes_are_proven_where_older_turns_are_out_of_sight():
    """With both, what is older than one turn can only come from the notes."""
    roles = fake_roles(notetaker=lambda asked: json.dumps({"facts": [f"up to {asked.round}"]}))
    record = play(conversation(3), roles, memories=(("recent_turns", "note_taking"),), recent_turns=1)
    sent = sent_to(roles, "recent_turns+note_taking/q0")
    assert sent[:2] == ["This is fact 2.", "live recent_turns+note_taking2"]
    assert sent[2].endswith('{"facts": ["up to 2"]}\n\nWhat is fact 0?')
    turns = [asked for asked in roles.receiver.asked if asked.branch == "recent_turns+note_taking"]
    assert not any("Notes" in message.text for asked in turns for message in asked.messages)  # at the questions only
    seen = answers(record)["recent_turns+note_taking/q0"].seen
    assert (seen.first_turn, seen.cut_turns, seen.notes_chars) == (2, 2, len('{"facts": ["up to 2"]}'))


def test_a_turn_of_an_own_conversation_says_what_was_out_of_sight():
    record = play(conversation(4, pictures={0: 2}), fake_roles(), memories=("recent_turns",), recent_turns=1)
    seen = [turn.seen for turn in record.turns if turn.question is None]
    assert seen[:2] == [None, None]
    assert [(one.first_turn, one.cut_pictures) for one in seen[2:]] == [(1, 2), (2, 2)]


def test_the_composed_memories_act_in_any_order_alike():
    one, other = fake_roles(), fake_roles()
    play(conversation(4), one, memories=(("recent_turns", "note_taking"),))
    play(conversation(4), other, memories=(("note_taking", "recent_turns"),))
    first = sent_to(one, "recent_turns+note_taking/q1")
    second = sent_to(other, "note_taking+recent_turns/q1")
    assert [text.replace("note_taking+recent_turns", "recent_turns+note_taking") for text in second] == first


def test_notes_that_must_be_there_at_every_turn_are_waited_for():
    """A memory of a stranger that shows its notes in each turn, not at the questions only."""

    class Everywhere:
        acts_at, takes_notes = "every_turn", True

        async def after_turn(self, notes, turn, notetaker):
            reply = await notetaker.reply([turn.user])
            return Notes(text=f"{notes.text if notes else ''}{reply.text}")

        def messages(self, notes, history):
            return history if notes is None else [*history[:-1], user(f"({notes.text}) {history[-1].text}")]

    made = conversation_protocol(memories=("note_taking",))
    made._arms[0].members["note_taking"] = Everywhere()
    roles = fake_roles(notetaker=lambda asked: str(asked.round))
    asyncio.run(made.play(conversation(3), roles))
    last = [asked.messages[-1].text for asked in roles.receiver.asked if asked.branch == "note_taking"]
    assert last == ["This is fact 0.", "(0) This is fact 1.", "(01) This is fact 2."]
    assert not any(message.text.startswith("(") for asked in roles.receiver.asked for message in asked.messages[:-1])
    assert sent_to(roles, "note_taking/q0")[-1] == "(012) What is fact 0?"


def test_notes_are_taken_beside_the_conversation():
    """Neither waits for the other: 4 turns and their notes take as long as the longer of the two."""
    ticks = []

    class Slow:
        def __init__(self, name, text):
            self.name, self.text = name, text

        async def reply(self, messages, *, branch="", round=0, purpose="answer"):
            for _ in range(10):
                await asyncio.sleep(0)
            ticks.append((self.name, branch, round))
            return Reply(text=self.text)

    roles = fake_roles()
    roles.receiver, roles.notetaker = Slow("receiver", "said"), Slow("notetaker", '{"facts": ["x"]}')
    play(conversation(4, questions=[question(0)]), roles, memories=("none", "note_taking"))
    order = [name for name, branch, _ in ticks if branch in ("", "note_taking")]
    assert order[:4] != ["receiver"] * 4
    assert ticks.index(("receiver", "none/q0", 0)) <= ticks.index(("notetaker", "note_taking", 3)) + 1


def test_a_memory_whose_messages_no_model_can_be_asked_is_told():
    class Silent:
        acts_at, takes_notes = "question", False

        def messages(self, notes, history):
            return history[:-1]

    with pytest.raises(PluginError, match="memory 'silent' must give messages whose last one is the user's"):
        shown({"silent": Silent()}, {}, talk(2))


def test_failed_calls_of_one_arm_are_no_matter_for_another():
    def say(asked):
        return failing() if asked.branch.startswith("note_taking/") else listener(asked)

    record = play(conversation(2), fake_roles(say), memories=("none", "note_taking"))
    assert {turn.branch: turn.reply.usable for turn in answers(record).values()} == {
        "none/q0": True,
        "none/q1": True,
        "note_taking/q0": False,
        "note_taking/q1": False,
    }


@pytest.mark.parametrize("acts_at", ["question", "every_turn"])
def test_a_memory_that_raises_while_it_shows_the_past_fails_its_arm_only(acts_at):
    class Broken:
        takes_notes = False

        def messages(self, notes, history):
            raise RuntimeError("lost")

    Broken.acts_at = acts_at
    made = conversation_protocol(memories=("none", "note_taking"))
    made._arms[1].members["note_taking"] = Broken()
    record = asyncio.run(made.play(conversation(2), fake_roles()))
    found = answers(record)
    assert [found[f"none/q{number}"].reply.usable for number in (0, 1)] == [True, True]
    assert not any(turn.reply.usable for branch, turn in found.items() if branch.startswith("note_taking"))
    failed = [turn.reply for turn in record.turns if not turn.reply.usable]
    assert "a memory raised RuntimeError('lost')" in failed[0].error
    assert failed[0].usage.calls == 0
    assert record.ends


def test_what_raises_in_one_history_stops_the_others_too():
    """A bug fails the episode with its own words, and leaves no task behind."""
    made = conversation_protocol(memories=("none", "recent_turns"))
    asked = []

    class Odd:
        name = "odd"

        async def reply(self, messages, *, branch="", round=0, purpose="answer"):
            asked.append(branch)
            await asyncio.sleep(0)
            if branch:
                raise LookupError("a bug")
            return Reply(text="x")

    roles = fake_roles()
    roles.receiver = Odd()

    async def run():
        with pytest.raises(LookupError, match="a bug"):
            await made.play(conversation(30), roles)
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
    assert len(asked) < 30


def test_only_turns_that_are_still_as_they_were_count_as_seen():
    """A memory of a stranger that puts a summary in the place of older turns."""
    history = (user("u0", picture(1)), said("a0"), user("u1"), said("a1"), user("u2"), said("a2"), user("question"))
    rewritten = (user("Before: u0, u1"), said("a1"), *history[4:])
    seen = seen_of(history, rewritten)
    assert (seen.first_turn, seen.cut_turns, seen.cut_pictures) == (2, 2, 1)
    assert seen_of(history, history).cut_turns == 0


# --- limits -----------------------------------------------------------------------------------------------------------


def with_pictures(*counts):
    messages = []
    for number, count in enumerate(counts):
        messages += [user(f"u{number}", *[picture(number * 10 + i) for i in range(count)]), said(f"a{number}")]
    return (Message(role="system", content=("s",)), *messages, user("question"))


@pytest.mark.parametrize(
    ("max_images", "first"), [(None, 0), (9, 0), (6, 0), (5, 1), (4, 1), (3, 2), (2, 2), (1, 3), (0, 3)]
)
def test_pictures_over_the_limit_go_with_their_whole_turn_the_oldest_first(max_images, first):
    history = with_pictures(2, 2, 2)
    kept = Limits(max_images=max_images).within(history)
    assert texts(kept) == ["s", *texts(history)[1 + 2 * first :]]
    seen = seen_of(history, kept)
    assert (seen.first_turn, seen.cut_turns, seen.cut_pictures) == (first, first, 2 * first)


def test_the_pictures_of_the_question_count_and_stay():
    history = (*with_pictures(1, 1)[:-1], user("question", picture(90)))
    assert texts(Limits(max_images=2).within(history)) == ["s", "u1", "a1", "question"]
    assert len(Limits(max_images=0).within(history)) == 2


@pytest.mark.parametrize(("max_tokens", "first"), [(None, 0), (6, 0), (5, 1), (4, 1), (3, 2), (1, 3), (0, 3)])
def test_tokens_over_the_limit_cut_whole_turns(max_tokens, first):
    assert len(Limits(max_history_tokens=max_tokens).within(talk(3))) == 2 * (3 - first) + 1


def test_tokens_are_estimated_from_characters_and_pixels():
    assert tokens_of(user("x" * 8)) == 2
    assert tokens_of(user("x" * 9)) == 3
    assert tokens_of(user("", picture(1, side=300))) == 120
    assert tokens_of(user("", picture(1, side=5))) == 1


def test_a_memory_and_a_limit_cut_together():
    roles = fake_roles()
    record = play(
        conversation(5, pictures={3: 1, 4: 1}), roles, memories=("recent_turns",), recent_turns=3, max_images=1
    )
    seen = answers(record)["recent_turns/q0"].seen
    assert (seen.first_turn, seen.cut_turns, seen.cut_pictures) == (4, 4, 1)


def test_limits_hold_while_the_conversation_is_played():
    roles = fake_roles()
    record = play(conversation(5), roles, max_history_tokens=6)
    assert max(len(asked.messages) for asked in roles.receiver.asked) == 3
    assert [turn.seen.cut_turns for turn in record.turns if turn.seen and not turn.question] == [1, 2, 3]


# --- names and options ------------------------------------------------------------------------------------------------


def test_arms_are_read_from_memories_or_memory():
    several = ConversationOptions(memories=["none", ["recent_turns", "note_taking"]])
    assert [arm_name(arm) for arm in memory_arms(several)] == ["none", "recent_turns+note_taking"]
    assert memory_arms(FeedbackLoopOptions(memory="summary")) == (("summary",),)
    assert memory_arms(FeedbackLoopOptions(memory=["summary", "recent_turns"])) == (("summary", "recent_turns"),)
    assert memory_arms(FeedbackLoopOptions()) == ()


def test_the_yaml_reaches_the_memories():
    options = ConversationOptions(recent_turns=7, notes=NotesOptions(max_chars=200, place="system"))
    told = memory_options_from(options, {"notes": "x"})
    assert told == MemoryOptions(recent_turns=7, max_chars=200, place="system", prompts={"notes": "x"})
    assert memory_options_from(FeedbackLoopOptions(), {}) == MemoryOptions()
