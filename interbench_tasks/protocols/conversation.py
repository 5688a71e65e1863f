"""MMRC's script: a long conversation is replayed, then questions test what was kept of it, one arm a memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from interbench_tasks.conversations import QUESTION_VARIABLES
from interbench_tasks.hookspecs import Parts, Roles
from interbench_tasks.judging_panel import DEFAULT_RULE
from interbench_tasks.judging_rubrics import rubrics
from interbench_tasks.memories import MemoryArm, NotesOptions, arms_from, memory_arms
from interbench_tasks.protocols.conversation_calls import CONVERSATION_CALLS
from interbench_tasks.protocols.conversation_history import History, PlayedHistory, TakenNotes, notes_or_stop
from interbench_tasks.protocols.conversation_judging import PanelJudge
from interbench_tasks.protocols.conversation_limits import Limits
from interbench_tasks.protocols.conversation_questions import Answered, Asking
from interbench_tasks.protocols.records_of import begun_record, models_of
from interbench_tasks.protocols.rehearsed import RehearsedCalls
from interbench_tasks.records import BranchEnd, Episode, EpisodeRecord, RoleName, Turn

SHARED = ""
"""Branch of the conversation that all arms share which do not need one of their own."""


class ConversationOptions(BaseModel):
    """Keys of `metadata.interbench` that belong to conversations."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    history: Literal["live", "recorded"] = "live"
    """`live`: the receiver itself answers the user turns (the paper's Algorithm 1); `recorded`: it is shown the data
    set's replies."""
    questions: Literal["independent", "accumulate"] = "independent"
    """`independent`: each question is asked of the same history; `accumulate`: each follows the questions before it and
    the receiver's answers to them. OURS: the paper appends questions and never answers."""
    memories: Annotated[tuple[str | tuple[str, ...], ...], Field(min_length=1)] = ("none",)
    """Arms: each a memory, or a list of memories that act together."""
    recent_turns: Annotated[int, Field(ge=0)] = 4
    """Turns that the memory `recent_turns` leaves in view. OURS."""
    notes: NotesOptions = NotesOptions()
    max_images: Annotated[int, Field(ge=0)] | None = None
    """Most pictures in one request: older turns are cut, and that is recorded. None: no limit."""
    max_history_tokens: Annotated[int, Field(ge=0)] | None = None
    """Most tokens of the turns before a question, by an estimate (4 characters, or 750 pixels, are one). None: no
    limit."""
    rubric: str | None = "mmrc"
    """What open answers are judged by: a file of rubrics that ships, or a YAML. None: they are kept and not judged."""
    panel: str = DEFAULT_RULE
    """How several judges' verdicts become one."""
    quorum: Annotated[int, Field(ge=1)] | None = None
    """Judges that must have given a verdict. None: as the rule itself has it."""
    seed: int = 0
    """Of the words by which a judge shows that a verdict is its own."""
    judges: tuple[str, ...] = ()
    """Labels of several judges; filled in from metadata.interbench.judges."""
    mapping: dict[str, tuple[str, ...]] = {}
    """Canonical key -> names that the data set may have for it; empty for a file in canonical form."""

    @field_validator("memories")
    @classmethod
    def _no_empty_arm(cls, arms: tuple[str | tuple[str, ...], ...]) -> tuple[str | tuple[str, ...], ...]:
        if not all(arms):
            raise ValueError("an arm needs at least one memory, e.g. none")
        return arms

    @field_validator("mapping", mode="before")
    @classmethod
    def _one_name_is_a_list_of_one(cls, mapping: object) -> object:
        if not isinstance(mapping, Mapping):
            return mapping
        return {key: (names,) if isinstance(names, str) else names for key, names in mapping.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _HistoryPlayed:
    """One history with all that hangs on it."""

    history: PlayedHistory
    notes: Mapping[str, TakenNotes]
    arms: Mapping[str, Sequence[Answered]]
    """Arm -> its answers; empty where its questions were not asked."""


class Conversation:
    """Replays a conversation, then asks its questions, once for each memory arm.

    Source: MMRC (arXiv 2502.11903v2), Algorithm 1 and its note-taking strategy. Arms whose memories act only at the
    questions share one played conversation; an arm with a memory that changes what the model sees plays its own,
    unless the replies are recorded. Notes are taken beside the conversation, and no arm waits for another.
    """

    Options: ClassVar[type[BaseModel]] = ConversationOptions
    roles: ClassVar[tuple[RoleName, ...]] = ("judge",)
    metrics: ClassVar[str] = "mmrc"
    calls: ClassVar[RehearsedCalls] = CONVERSATION_CALLS
    reads: ClassVar[Literal["questions", "conversations"]] = "conversations"
    question_variables: ClassVar[Sequence[str]] = QUESTION_VARIABLES

    def __init__(self, options: ConversationOptions, parts: Parts) -> None:
        self._options = options
        self._parts = parts
        self._arms = arms_from(memory_arms(options), parts.memories)
        self._rubrics = {} if options.rubric is None else rubrics(options.rubric)
        self._limits = Limits(max_images=options.max_images, max_history_tokens=options.max_history_tokens)

    @property
    def histories(self) -> Mapping[str, str]:
        """Arm -> the branch of the conversation that it continues: '' for the one that several share."""
        live = self._options.history == "live"
        return {arm.name: arm.name if arm.own_history and live else SHARED for arm in self._arms}

    async def play(self, episode: Episode, roles: Roles) -> EpisodeRecord:
        """The episode's record: every turn of every history, then notes, then answers in the order of the YAML."""
        by_history: dict[str, list[MemoryArm]] = {}
        for arm in self._arms:
            by_history.setdefault(self.histories[arm.name], []).append(arm)
        played = await _all([self._play_arms(branch, arms, episode, roles) for branch, arms in by_history.items()])
        return _record(episode, roles, played, self._arms)

    async def _play_arms(
        self, branch: str, arms: Sequence[MemoryArm], episode: Episode, roles: Roles
    ) -> _HistoryPlayed:
        """One history, the notes along it, and the questions of all arms that continue it."""
        takers = {name: arm.members[name] for arm in arms for name in arm.takers}
        history = History(
            episode,
            roles,
            branch=branch,
            acting=arms[0].acting(at_question=False) if branch != SHARED else {},
            takers=takers,
            notes_branch={name: name if branch == SHARED else f"{branch}/{name}" for name in takers},
            limits=self._limits,
            recorded=self._options.history == "recorded",
        )
        async with _task_group() as group:
            playing = group.create_task(history.play())
            taking = {name: group.create_task(history.take_notes(name)) for name in takers}
            asking = [group.create_task(self._ask_arm(arm, playing, taking, episode, roles)) for arm in arms]
        return _HistoryPlayed(
            history=playing.result(),
            notes={name: task.result() for name, task in taking.items()},
            arms={arm.name: task.result() for arm, task in zip(arms, asking, strict=True)},
        )

    async def _ask_arm(
        self,
        arm: MemoryArm,
        playing: asyncio.Task[PlayedHistory],
        taking: Mapping[str, asyncio.Task[TakenNotes]],
        episode: Episode,
        roles: Roles,
    ) -> Sequence[Answered]:
        """The arm's answers; none where its history broke off or its notes cannot be used."""
        history = await playing
        if history.end is not None:
            return ()
        notes = await notes_or_stop({name: taking[name] for name in arm.takers})
        if notes is None:
            return ()
        asking = Asking(
            arm=arm,
            episode=episode,
            roles=roles,
            parts=self._parts,
            limits=self._limits,
            judge=self._panel(roles),
            accumulate=self._options.questions == "accumulate",
        )
        return await asking.ask_all(history.messages, notes)

    def _panel(self, roles: Roles) -> PanelJudge | None:
        rule = self._parts.panel_rule
        if not self._rubrics or rule is None:
            return None
        return PanelJudge(rubrics=self._rubrics, judges=roles.judges, rule=rule, seed=self._options.seed)


@contextlib.asynccontextmanager
async def _task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks of which none outlives the others' failure; what went wrong is raised, and not that something did."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as group_error:
        raise group_error.exceptions[0] from None


async def _all(works: Sequence[Coroutine[Any, Any, _HistoryPlayed]]) -> list[_HistoryPlayed]:
    async with _task_group() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


def _record(
    episode: Episode, roles: Roles, played: Sequence[_HistoryPlayed], arms: Sequence[MemoryArm]
) -> EpisodeRecord:
    turns: list[Turn] = []
    ends: list[BranchEnd] = []
    last: dict[str, int] = {}
    for one in played:
        start = len(turns)
        turns += _numbered(one.history.turns, start)
        for taken in one.notes.values():
            notes = [replace(turn, parent=start + (turn.parent or 0)) for turn in taken.turns]
            turns += [replace(turn, index=len(turns) + place) for place, turn in enumerate(notes)]
            ends += [taken.end] if taken.end is not None else []
        ends += [one.history.end] if one.history.end is not None else []
        last |= dict.fromkeys(one.arms, start + len(one.history.turns) - 1)
    answers = {name: answered for one in played for name, answered in one.arms.items()}
    for arm in arms:
        start = len(turns)
        for place, answered in enumerate(answers[arm.name]):
            turn = answered.turn
            parent = last[arm.name] if turn.parent == -1 else start + (turn.parent or 0)
            turns.append(replace(turn, index=start + place, parent=parent))
            ends += [answered.end] if answered.end is not None else []
    return _finished(episode, roles, turns, ends)


def _numbered(turns: Sequence[Turn], start: int) -> list[Turn]:
    return [
        replace(turn, index=start + turn.index, parent=None if turn.parent is None else start + turn.parent)
        for turn in turns
    ]


def _finished(episode: Episode, roles: Roles, turns: Sequence[Turn], ends: Sequence[BranchEnd]) -> EpisodeRecord:
    """The record; it failed where no question at all has an answer."""
    answered = any(turn.question is not None and turn.reply.usable for turn in turns)
    failures = [turn.reply.error for turn in turns if not turn.reply.usable] + [end.error for end in ends]
    return replace(
        begun_record(episode, "conversation", models_of(roles, "judge", "notetaker")),
        turns=tuple(turns),
        ends=tuple(ends),
        status="finished" if answered else "failed",
        stop_reason="played" if answered else (ends[0].reason if ends else "reply_failed"),
        error=None if answered else next((one for one in failures if one), None),
    )
