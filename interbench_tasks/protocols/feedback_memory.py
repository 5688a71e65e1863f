"""Memory in a feedback loop: notes are taken after each answer, and shown with the next feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from interbench_tasks.hookspecs import RoleClient
from interbench_tasks.memories import MemoryArm, NotesTaken, notes_after, shown
from interbench_tasks.records import EpisodeRecord, Message, Notes, Seen, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering:
    """What a branch remembers so far; a new one comes of each answer."""

    arm: MemoryArm
    notetaker: RoleClient | None
    notes: Mapping[str, Notes] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    """The notetaker's, in order; `parent` is the `index` of the answer that they follow."""
    error: str | None = None
    """Why the notes cannot be used, redacted; None where they can."""

    async def after(self, turn: Turn, *, branch: str, pictures_before: int) -> Remembering:
        """With the notes after an answer. Args: branch = of the answers, '' for the first one, which all share."""
        found = self
        for name in self.arm.takers:
            taken = await notes_after(
                self.arm.members[name],
                self.notes.get(name),
                turn,
                self.notetaker,
                branch=f"{branch}/{name}" if branch else name,
                number=turn.round,
                pictures_before=pictures_before,
            )
            found = found.with_notes(name, taken, turn)
        return found

    def with_notes(self, name: str, taken: NotesTaken, turn: Turn) -> Remembering:
        """With one memory's notes."""
        turns = (*self.turns, *[replace(one, parent=turn.index) for one in taken.turns])
        if taken.notes is None:
            return replace(self, turns=turns, error=taken.error or "the notes cannot be used")
        return replace(self, turns=turns, notes={**self.notes, name: taken.notes})

    def sent(self, history: Sequence[Message]) -> tuple[tuple[Message, ...], Seen | None]:
        """What the receiver is sent of a history whose last message is what it is told now."""
        made = shown(self.arm.acting(at_question=True), self.notes, history)
        seen = made.seen
        return made.messages, seen if seen.cut_turns or seen.notes_chars else None


async def with_first_notes(
    record: EpisodeRecord, first: Turn, arm: MemoryArm, notetaker: RoleClient | None
) -> tuple[EpisodeRecord, Remembering]:
    """What is remembered of the first answer, which all branches share; the record with the notetaker's turns.

    Args: first = round 0, its pictures with their bytes. A record of the first pass has the notes already.
    """
    remembering = Remembering(arm=arm, notetaker=notetaker)
    there = {turn.branch: turn.notes for turn in record.turns if turn.role == "notetaker" and turn.round == 0}
    known = {name: notes for name in arm.takers if (notes := there.get(name)) is not None}
    if arm.takers and len(known) == len(arm.takers):
        return record, replace(remembering, notes=known)
    remembering = await remembering.after(first, branch="", pictures_before=0)
    n = len(record.turns)
    turns = [replace(turn, index=n + place) for place, turn in enumerate(remembering.turns)]
    return replace(record, turns=(*record.turns, *turns)), replace(remembering, turns=())
