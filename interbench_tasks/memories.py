"""What a model is shown of the past: memories that compose, notes that are taken along a history, and both recorded.

Any protocol can use it: it names memories in its options, has `notes_after` each turn and asks `shown` what
the receiver sees next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from interbench_tasks.errors import PluginError
from interbench_tasks.hookspecs import Memory, MemoryOptions, RoleClient
from interbench_tasks.records import Message, Notes, Reply, Seen, Turn, Usage
from interbench_tasks.redaction import redact

NO_MEMORY = "none"
PROMPT_MARK = "(the notetaker's prompt, with this turn and the notes before it)"
"""Stands in records for what a notetaker was asked: all of it is there already, and a record grows with its text."""


class NotesOptions(BaseModel):
    """The key `notes` of `metadata.interbench`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_chars: Annotated[int, Field(ge=100)] = 4000
    """Longest notes, in characters; what is more is left out, and recorded."""
    place: Literal["user", "system"] = "user"
    """Where notes stand: before the question in the last user message, or in the system message."""


def memory_arms(options: BaseModel) -> tuple[tuple[str, ...], ...]:
    """The memories that a protocol's options name, one tuple an arm: all of `memories`, or the one of `memory`."""
    arms = getattr(options, "memories", None)
    if arms is None:
        one = getattr(options, "memory", None)
        arms = () if one is None else (one,)
    return tuple((arm,) if isinstance(arm, str) else tuple(arm) for arm in arms)


def arm_name(arm: Sequence[str]) -> str:
    """The name of an arm, as it stands in branches.

    >>> arm_name(("recent_turns", "note_taking"))
    'recent_turns+note_taking'
    """
    return "+".join(arm)


def memory_options_from(options: BaseModel, prompts: Mapping[str, str]) -> MemoryOptions:
    """What the YAML says to its memories; the defaults where the protocol has no such key."""
    notes = getattr(options, "notes", None) or NotesOptions()
    recent = getattr(options, "recent_turns", None)
    own: dict[str, Any] = {} if recent is None else {"recent_turns": recent}
    return MemoryOptions(max_chars=notes.max_chars, place=notes.place, prompts=prompts, **own)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryArm:
    """One or several memories that act together."""

    name: str
    members: Mapping[str, Memory]
    """In the order of the YAML, which is the order in which they act."""

    @property
    def own_history(self) -> bool:
        """Whether a conversation that is played for it differs from one without it."""
        return any(memory.acts_at == "every_turn" for memory in self.members.values())

    @property
    def takers(self) -> tuple[str, ...]:
        """Those that take notes."""
        return tuple(name for name, memory in self.members.items() if memory.takes_notes)

    def acting(self, *, at_question: bool) -> Mapping[str, Memory]:
        """The memories that are asked what the receiver sees."""
        return {n: memory for n, memory in self.members.items() if at_question or memory.acts_at == "every_turn"}


def arms_from(names: Sequence[Sequence[str]], memories: Mapping[str, Memory]) -> tuple[MemoryArm, ...]:
    """The arms of a run. Args: memories = name -> memory, as `Parts` has them."""
    return tuple(MemoryArm(name=arm_name(arm), members={name: memories[name] for name in arm}) for arm in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the receiver is sent, and what of the past is in it."""

    messages: tuple[Message, ...]
    seen: Seen


def shown(members: Mapping[str, Memory], notes: Mapping[str, Notes], history: Sequence[Message]) -> Shown:
    """What the receiver sees of a history whose last message is what it is asked now.

    Args: notes = memory -> its notes so far.
    Raises: PluginError where a memory gives no messages that a model can be asked.
    """
    messages = tuple(history)
    given = [notes[name] for name, memory in members.items() if memory.takes_notes and name in notes]
    for name, memory in members.items():
        messages = tuple(memory.messages(notes.get(name), messages))
        if not messages or messages[-1].role != "user":
            raise PluginError(f"memory '{name}' must give messages whose last one is the user's")
    return Shown(messages=messages, seen=seen_of(history, messages, given))


def seen_of(history: Sequence[Message], messages: Sequence[Message], notes: Sequence[Notes] = ()) -> Seen:
    """What of the history is still in the messages: its newest turns, as far as they are as they were."""
    turns, left = turns_of(history), turns_of(messages)
    kept = 0
    while kept < min(len(turns), len(left)) and turns[-1 - kept] == left[-1 - kept]:
        kept += 1
    cut = turns[: len(turns) - kept]
    return Seen(
        first_turn=len(cut),
        cut_turns=len(cut),
        cut_pictures=sum(len(message.pictures) for turn in cut for message in turn),
        notes_chars=sum(len(one.text) for one in notes),
        notes_cut=any(one.cut for one in notes),
    )


def turns_of(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The turns before the last message, each a user message with what follows it; system messages belong to none."""
    turns: list[list[Message]] = []
    for message in messages[:-1]:
        if message.role == "user":
            turns.append([message])
        elif message.role == "assistant" and turns:
            turns[-1].append(message)
    return [tuple(turn) for turn in turns]


# --- notes ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Bound:
    """The role notetaker bound to one turn; remembers what it was told."""

    client: RoleClient
    branch: str
    turn: int
    pictures: tuple[int, ...]
    replies: list[Reply] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.client.name

    async def reply(self, messages: Sequence[Message]) -> Reply:
        reply = await self.client.reply(messages, branch=self.branch, round=self.turn, purpose="notes")
        self.replies.append(reply)
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesTaken:
    """What came of one turn's notes."""

    notes: Notes | None
    """None where they cannot be used."""
    turns: tuple[Turn, ...]
    """The notetaker's; their index and parent are not set."""
    error: str | None = None
    """Why there are none, redacted; None where there are."""


async def notes_after(
    memory: Memory,
    notes: Notes | None,
    turn: Turn,
    client: RoleClient | None,
    *,
    branch: str,
    number: int,
    pictures_before: int,
) -> NotesTaken:
    """The notes after a turn. A failing notetaker is an error, never a memory without notes.

    Args: branch = of the notetaker's turns; number = of the turn, 0-based; pictures_before = in the turns before it.
    Raises: ValueError where no notetaker is there.
    """
    if client is None:
        raise ValueError("a memory that takes notes needs the role notetaker")
    first = pictures_before + 1
    pictures = tuple(range(first, first + len(turn.user.pictures)))
    bound = _Bound(client=client, branch=branch, turn=number, pictures=pictures)
    error = None
    taken: Notes | None = None
    try:
        taken = await memory.after_turn(notes, turn, bound)
        if not isinstance(taken, Notes):
            taken, error = None, f"memory '{branch}' gave no Notes but {type(taken).__name__}"
    except Exception as raised:  # noqa: BLE001 - a memory may be a stranger's; only what needs its notes fails
        error = redact(f"memory '{branch}' raised {raised!r}")[:500]
    failed = next((reply for reply in bound.replies if not reply.usable), None)
    if failed is not None:
        taken, error = None, failed.error or f"the notetaker's reply is {failed.status}"
    replies = bound.replies or [Reply(text="", model=branch, usage=Usage())]
    turns = [
        Turn(
            index=0,
            parent=None,
            branch=branch,
            round=number,
            role="notetaker",
            user=Message(role="user", content=(PROMPT_MARK,)),
            reply=reply,
        )
        for reply in replies
    ]
    turns[-1] = replace(turns[-1], notes=taken)
    return NotesTaken(notes=taken, turns=tuple(turns), error=error)
