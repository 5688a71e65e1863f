"""Conversations for tests: made by number, each turn holding one fact, with roles that answer from rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from interbench_tasks import Episode, EpisodeRecord, Message, Parts, PictureRef, Reply, Turn
from interbench_tasks.hookspecs import MemoryOptions
from interbench_tasks.memories import NotesOptions
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.protocols.conversation import Conversation, ConversationOptions
from interbench_tasks.records import Question, ScriptedTurn
from tests.testing import Asked, FakeRoles, LetterVerifier, ScriptedRole

MEMORIES = offers_from(build_plugin_manager()).memories


def picture(number: int, side: int = 300) -> PictureRef:
    return PictureRef(digest=f"{number:032x}", width=side, height=side, mime="image/png")


def question(number: int, **changes: Any) -> Question:
    values: dict[str, Any] = {
        "id": f"q{number}",
        "ability": "MR",
        "message": Message(role="user", content=(f"What is fact {number}?",)),
        "text": f"What is fact {number}?",
        "target": f"fact {number}",
        "evidence": (number,),
    }
    return Question(**{**values, **changes})


def conversation(
    n_turns: int = 4,
    *,
    questions: Sequence[Question] | None = None,
    pictures: Mapping[int, int] | None = None,
    recorded: bool = True,
    **changes: Any,
) -> Episode:
    """Turn i says `fact i`, and has pictures[i] pictures; one question a turn unless others are given."""
    script = []
    n_pictures = 0
    for number in range(n_turns):
        count = (pictures or {}).get(number, 0)
        shown = tuple(picture(n_pictures + place) for place in range(count))
        n_pictures += count
        user = Message(role="user", content=(*shown, f"This is fact {number}."))
        script.append(ScriptedTurn(user=user, reply=f"Recorded {number}." if recorded else None))
    values: dict[str, Any] = {
        "id": "talk-1",
        "doc_id": 0,
        "question": script[0].user,
        "target": "",
        "script": tuple(script),
        "questions": tuple(questions if questions is not None else [question(i) for i in range(n_turns)]),
    }
    return Episode(**{**values, **changes})


def listener(asked: Asked) -> str:
    """Replies that name where they were said, so that a history can be told from another."""
    if "/" in asked.branch:
        return f"answer {asked.branch}"
    return f"live {asked.branch}{asked.round}"


def note_writer(asked: Asked) -> str:
    """Notes that name the turn after which they were written."""
    return json.dumps({"facts": [f"noted {asked.round}"]})


def fake_roles(
    receiver: Any = listener, notetaker: Any = note_writer, judges: Mapping[str, ScriptedRole] | None = None
) -> FakeRoles:
    return FakeRoles(
        ScriptedRole(receiver, name="receiver"),
        judges=judges or {},
        notetaker=ScriptedRole(notetaker, name="notetaker"),
    )


def conversation_protocol(**options: Any) -> Conversation:
    made = ConversationOptions(**{"rubric": None, **options})
    names = {name for arm in made.memories for name in ((arm,) if isinstance(arm, str) else arm)}
    notes: NotesOptions = made.notes
    told = MemoryOptions(recent_turns=made.recent_turns, max_chars=notes.max_chars, place=notes.place)
    return Conversation(made, Parts(verifier=LetterVerifier(), memories={name: MEMORIES[name](told) for name in names}))


def play(episode: Episode, roles: FakeRoles, **options: Any) -> EpisodeRecord:
    return asyncio.run(conversation_protocol(**options).play(episode, roles))


def answers(record: EpisodeRecord) -> dict[str, Turn]:
    """Branch -> answered question."""
    return {turn.branch: turn for turn in record.turns if turn.question is not None}


def sent_to(roles: FakeRoles, branch: str) -> list[str]:
    """The texts of the only request of a branch."""
    (prompt,) = roles.receiver.prompts(branch)
    return prompt


def failing(text: str = "HTTP 500", **changes: Any) -> Reply:
    return Reply(text="", status="error", error=text, **changes)
