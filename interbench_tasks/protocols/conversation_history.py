"""A conversation replayed to the receiver, with the notes that are taken along it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from interbench_tasks.hookspecs import Memory, RoleClient, Roles
from interbench_tasks.memories import notes_after, seen_of, shown
from interbench_tasks.protocols.conversation_limits import Limits
from interbench_tasks.records import (
    CONTEXT_OVERFLOW,
    RECORDED,
    BranchEnd,
    Episode,
    Message,
    Notes,
    Reply,
    ScriptedTurn,
    Seen,
    Turn,
    Usage,
)
from interbench_tasks.redaction import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedHistory:
    """One replay of the conversation."""

    branch: str
    turns: tuple[Turn, ...]
    """Numbered from 0, each the child of the one before."""
    messages: tuple[Message, ...]
    """System (optional) and all turns, as they were meant: notes and cuts are not in them."""
    end: BranchEnd | None
    """Why it broke off; None where it was played to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenNotes:
    """The notes of one memory along one history."""

    notes: Notes | None
    """After the last turn; None where they cannot be used."""
    turns: tuple[Turn, ...]
    """The notetaker's; `parent` is the number of the turn that they follow."""
    end: BranchEnd | None
    """Why there are none; None where there are, or where the history itself broke off."""


def end_of(branch: str, reply: Reply) -> BranchEnd:
    """How a branch ends whose reply cannot be used."""
    reason = CONTEXT_OVERFLOW if reply.finish_reason == CONTEXT_OVERFLOW else "reply_failed"
    return BranchEnd(branch=branch, reason=reason)


def worth_recording(seen: Seen) -> Seen | None:
    """What was shown of the past; None where that was all of it and nothing else."""
    return seen if seen.cut_turns or seen.notes_chars else None


async def asked(
    receiver: RoleClient,
    view: Callable[[], tuple[tuple[Message, ...], Seen]],
    last: Message,
    *,
    branch: str,
    round: int = 0,
) -> tuple[Message, Reply, Seen | None]:
    """The last message as it was sent, the receiver's reply, and what it was shown.

    Args: view = what is sent; where a memory of a stranger raises there, that is a failed reply of this call only.
    """
    try:
        sent, seen = view()
    except Exception as error:  # noqa: BLE001 - a memory may be a stranger's; only what needs it fails
        why = redact(f"a memory raised {error!r}")[:500]
        return last, Reply(text="", status="error", error=why, usage=Usage()), None
    return sent[-1], await receiver.reply(sent, branch=branch, round=round), seen


def cut_to(
    limits: Limits, members: Mapping[str, Memory], notes: Mapping[str, Notes], history: Sequence[Message]
) -> tuple[tuple[Message, ...], Seen]:
    """What is sent of a history whose last message is asked now: what the memories leave, within the limits."""
    made = shown(members, notes, history)
    messages = limits.within(made.messages)
    if len(messages) == len(made.messages):
        return messages, made.seen
    cut = seen_of(history, messages)
    return messages, replace(cut, notes_chars=made.seen.notes_chars, notes_cut=made.seen.notes_cut)


class History:
    """One conversation while it is played: its turns as they come, and the notes of each memory that follows it.

    Args:
        branch: of its turns: an arm that needs a conversation of its own, '' for the one that all others share.
        acting: the memories that are asked before every turn.
        takers: the memories that take notes along it.
        notes_branch: memory -> branch of its notetaker's turns.
    """

    def __init__(
        self,
        episode: Episode,
        roles: Roles,
        *,
        branch: str,
        acting: Mapping[str, Memory],
        takers: Mapping[str, Memory],
        notes_branch: Mapping[str, str],
        limits: Limits,
        recorded: bool,
    ) -> None:
        self._episode = episode
        self._roles = roles
        self._branch = branch
        self._acting = acting
        self._takers = takers
        self._notes_branch = notes_branch
        self._limits = limits
        self._recorded = recorded
        loop = asyncio.get_running_loop()
        n = len(episode.script)
        self._turns: list[asyncio.Future[Turn | None]] = [loop.create_future() for _ in range(n)]
        self._notes: dict[str, list[asyncio.Future[Notes | None]]] = {
            name: [loop.create_future() for _ in range(n)] for name in takers
        }

    async def play(self) -> PlayedHistory:
        """Replay all turns; breaks off at a reply that cannot be used."""
        try:
            return await self._play()
        finally:  # whoever waits for a turn that never comes is told
            for future in self._turns:
                if not future.done():
                    future.set_result(None)

    async def _play(self) -> PlayedHistory:
        system = self._episode.system
        messages = [Message(role="system", content=(system,))] if system else []
        turns: list[Turn] = []
        for number, scripted in enumerate(self._episode.script):
            turn = await self._turn(number, scripted, messages)
            if turn is None:
                end = BranchEnd(branch=self._branch, reason="notes_failed")
                return PlayedHistory(branch=self._branch, turns=tuple(turns), messages=tuple(messages), end=end)
            turns.append(turn)
            if not turn.reply.usable:
                end = end_of(self._branch, turn.reply)
                return PlayedHistory(branch=self._branch, turns=tuple(turns), messages=tuple(messages), end=end)
            messages += [scripted.user, Message(role="assistant", content=(turn.reply.text,))]
            self._turns[number].set_result(turn)
        return PlayedHistory(branch=self._branch, turns=tuple(turns), messages=tuple(messages), end=None)

    async def _turn(self, number: int, scripted: ScriptedTurn, before: Sequence[Message]) -> Turn | None:
        """One turn; None where notes that it needs are not there."""
        user, seen = scripted.user, None
        if self._recorded:
            reply = recorded_reply(scripted, number)
        else:
            notes = await self._notes_before(number)
            if notes is None:
                return None
            view = partial(cut_to, self._limits, self._acting, notes, (*before, scripted.user))
            user, reply, seen = await asked(
                self._roles.receiver, view, scripted.user, branch=self._branch, round=number
            )
        return Turn(
            index=number,
            parent=number - 1 if number else None,
            branch=self._branch,
            user=user,
            reply=reply,
            seen=None if seen is None else worth_recording(seen),
        )

    async def _notes_before(self, number: int) -> dict[str, Notes] | None:
        """The notes that the acting memories have by now; None where some cannot be used."""
        found: dict[str, Notes] = {}
        for name, memory in self._acting.items():
            if memory.takes_notes and number:
                notes = await self._notes[name][number - 1]
                if notes is None:
                    return None
                found[name] = notes
        return found

    async def take_notes(self, name: str) -> TakenNotes:
        """Follow the conversation with one memory's notetaker, turn by turn."""
        branch = self._notes_branch[name]
        notes: Notes | None = None
        turns: list[Turn] = []
        pictures = 0
        try:
            for number in range(len(self._turns)):
                turn = await self._turns[number]
                if turn is None:
                    return TakenNotes(notes=None, turns=tuple(turns), end=None)
                taken = await notes_after(
                    self._takers[name],
                    notes,
                    turn,
                    self._roles.notetaker,
                    branch=branch,
                    number=number,
                    pictures_before=pictures,
                )
                turns += [replace(one, parent=number) for one in taken.turns]
                if taken.notes is None:
                    end = BranchEnd(branch=branch, reason="notes_failed", error=taken.error)
                    return TakenNotes(notes=None, turns=tuple(turns), end=end)
                notes = taken.notes
                pictures += len(turn.user.pictures)
                self._notes[name][number].set_result(notes)
        finally:
            for future in self._notes[name]:
                if not future.done():
                    future.set_result(None)
        return TakenNotes(notes=notes, turns=tuple(turns), end=None)


def recorded_reply(scripted: ScriptedTurn, number: int) -> Reply:
    """The reply that the data set has; it cost nothing.

    Raises: ValueError where there is none.
    """
    if scripted.reply is None:
        raise ValueError(f"turn {number} has no recorded reply")
    return Reply(text=scripted.reply, finish_reason=RECORDED, model=RECORDED, usage=Usage())


async def notes_or_stop(taking: Mapping[str, asyncio.Task[TakenNotes]]) -> dict[str, Notes] | None:
    """The last notes of several memories; None where some cannot be used."""
    taken = {name: (await task).notes for name, task in taking.items()}
    found = {name: notes for name, notes in taken.items() if notes is not None}
    return found if len(found) == len(taken) else None
