"""InterFeedback's script: answer; where wrong and the provider right, feedback and a new try, one branch per arm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from interbench_tasks.hookspecs import Parts, RoleClient, Roles
from interbench_tasks.levels import DATA, is_unwritten, tests_all_wrong
from interbench_tasks.memories import NotesOptions, arms_from, memory_arms
from interbench_tasks.protocols.feedback_arms import (
    BranchPlan,
    Played,
    judged,
    marked_right,
    play_branch,
    renumbered,
)
from interbench_tasks.protocols.feedback_calls import LoopCalls
from interbench_tasks.protocols.feedback_guard import LeakGuard
from interbench_tasks.protocols.feedback_memory import Remembering, with_first_notes
from interbench_tasks.protocols.feedback_pairs import likenesses, plan_from
from interbench_tasks.protocols.records_of import begun_record, models_of
from interbench_tasks.reasoning import said_in_the_end
from interbench_tasks.records import (
    MARKED_RIGHT,
    RECORDED,
    BranchEnd,
    Episode,
    EpisodeRecord,
    Feedback,
    Message,
    Reply,
    RoleName,
    Turn,
    Usage,
)
from interbench_tasks.task_roles import role_key


class FeedbackLoopOptions(BaseModel):
    """Keys of `metadata.interbench` that belong to the feedback loop."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_rounds: Annotated[int, Field(ge=1, le=10)] = 1
    """Feedback rounds after the first answer; the paper's automatic part has 1."""
    arms: Annotated[tuple[str, ...], Field(min_length=1)] = ("detail", "simple")
    """Kinds of feedback; each continues the same first answer."""
    test_on: Literal["provider_right", "all_wrong"] = "provider_right"
    """Which wrong first answers are tested: those that can be read and that the provider solves, as in the paper's
    automatic part; or all of them, as in its human part, where nobody has to solve the question first."""
    level_texts: Literal["provider", "data"] | None = None
    """Whence the feedback of an arm that has levels: the provider (a model, or a person), or `columns.levels`. None:
    the provider where one is named, else the data set; filled in when the YAML is read."""
    level3_without_answer: bool = False
    """Whether level 3 explains all but the answer, instead of giving it. OURS, as a variant."""
    provider_sees_gt: bool = False
    """Whether the provider is shown the right answer when it writes feedback. OURS; the paper does not say."""
    flip_sample: Annotated[int, Field(ge=0)] = 0
    """How many right first answers are tried with every arm, as a control: drawn by seed. OURS."""
    leak_guard: Literal["observe", "rewrite", "off"] = "observe"
    """What happens where model-written feedback gives the answer away: it is counted; or written again once, and the
    arm dropped if that leaks too; or nobody looks. OURS."""
    seed: int = 0
    """Of the draws: whose feedback is borrowed, which right answers are tried."""
    providers: tuple[str, ...] = ()
    """Labels of several providers; filled in from metadata.interbench.providers."""
    memory: str | tuple[str, ...] | None = None
    """A memory, or several that act together: what the receiver is shown of the past from round 1 on. OURS."""
    recent_turns: Annotated[int, Field(ge=0)] = 4
    """Turns that the memory `recent_turns` leaves in view."""
    notes: NotesOptions = NotesOptions()

    @model_serializer(mode="wrap")
    def _without_what_is_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Manifests of runs without memory and levels stay as they were: two such runs do not differ in them."""
        content: dict[str, Any] = dump(self)
        unused = {"memory", "recent_turns", "notes"} if self.memory is None else set()
        unused |= {"level_texts", "level3_without_answer"} if self.level_texts is None else set()
        unused |= {"test_on"} if self.test_on == "provider_right" else set()
        return {key: value for key, value in content.items() if key not in unused}

    @field_validator("arms")
    @classmethod
    def _no_arm_twice(cls, arms: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({arm for arm in arms if arms.count(arm) > 1})
        if twice:
            raise ValueError(f"named twice: {', '.join(twice)}")
        return arms


class FeedbackLoop:
    """Plays one question: round 0, each provider's own try, and one branch of feedback rounds per arm.

    With `test_on: all_wrong` there is no such try: every wrong first answer is tested, unreadable ones too, since
    accuracy counts them as wrong and the paper's human part has all errors in its denominators. A person may mark a
    reply as right: the branch ends, and of a first answer the episode is no error.

    Source: InterFeedback (arXiv 2502.15027v3), section 3; the items where both answers can be read, the receiver is
    wrong and the provider right form the test set of this receiver and provider. Several providers share round 0, and
    the arms that no model writes. What needs other episodes (borrowed feedback, a sample of right answers) is played in
    a second pass.
    """

    Options: ClassVar[type[BaseModel]] = FeedbackLoopOptions
    roles: ClassVar[tuple[RoleName, ...]] = ("provider",)
    metrics: ClassVar[str] = "feedback_loop"
    calls: ClassVar[LoopCalls] = LoopCalls()

    def __init__(self, options: FeedbackLoopOptions, parts: Parts) -> None:
        self._options = options
        self._parts = parts
        plugins = parts.feedback_providers
        self._all_wrong = tests_all_wrong(options)
        self._shared = {arm for arm in options.arms if is_unwritten(arm, plugins[arm], options)}
        borrowing = {arm: getattr(plugins[arm], "borrows", None) for arm in options.arms}
        self._memory = next(iter(arms_from(memory_arms(options), parts.memories)), None)
        self._guard = LeakGuard(mode=options.leak_guard, prompts=parts.prompts)
        self._borrowing: dict[str, str] = {arm: lent for arm, lent in borrowing.items() if lent is not None}

    @property
    def two_passes(self) -> bool:
        """Whether an arm borrows another episode's feedback, or right answers are tried."""
        return bool(self._borrowing) or self._options.flip_sample > 0

    async def play(self, episode: Episode, roles: Roles) -> EpisodeRecord:
        """The episode's record; `stop_reason` says why it ended where it did."""
        if not roles.providers and not self._needs_no_provider:
            raise ValueError("the feedback loop needs the role provider")
        first, unjudged = await self._first_answer(episode, roles.receiver)
        record = _record(episode, roles, first)
        if first.judgement is None:
            why = unjudged or first.reply.error
            return replace(record, status="failed", stop_reason="reply_failed", error=why)
        if first.judgement.correct:
            return replace(record, stop_reason="right")
        if first.judgement.extraction.answer is None and not self._all_wrong:
            return replace(record, stop_reason="invalid")
        record = await self._with_solutions(record, episode, roles)
        able = self._able(record, roles)
        if not able:
            return replace(record, stop_reason=_why_not_played(record))
        arms = [arm for arm in self._options.arms if arm not in self._borrowing]
        record, remembering = await self._remembering(record, first, roles)
        plans = self._plans(arms, first, able, roles, self._options.max_rounds, remembering)
        record = await self._with_branches(record, plans, episode, roles)
        if any(end.reason == MARKED_RIGHT and not _rounds_of(record, end.branch) for end in record.ends):
            return replace(record, turns=(*marked_right(record.turns[:1]), *record.turns[1:]), stop_reason=MARKED_RIGHT)
        return replace(record, stop_reason="played")

    # --- the second pass ------------------------------------------------------------------------------------------

    def facts(self, record: EpisodeRecord) -> dict[str, Any]:
        """Whether it was right, the providers it may be tried with, and what it was told in round 1."""
        finished = record.status == "finished"
        first = record.turns[0] if finished and record.turns else None
        given: dict[str, dict[str, Any]] = {}
        for lent in sorted(set(self._borrowing.values())):
            for turn in record.turns:
                arm, _, label = turn.branch.partition("@")
                if arm == lent and turn.round == 1 and turn.feedback is not None:
                    given.setdefault(lent, {})[label] = _lent(turn.feedback, record)
        return {
            "doc_id": record.doc_id,
            "repeat": record.repeat,
            "category": record.category,
            "cluster": record.cluster,
            "alike": likenesses(first.user, record.target, record.options) if first is not None else [],
            "right": first is not None and first.judgement is not None and first.judgement.correct,
            "test": self._test_labels(record) if finished else [],
            "given": given,
        }

    def plan(self, facts: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], dict[str, Any]]:
        """Test episodes get the arms that borrow; a sample of the right ones gets every arm."""
        return plan_from(
            facts,
            borrowing=self._borrowing,
            labels=self._options.providers or ("",),
            max_rounds=self._options.max_rounds,
            flip_sample=self._options.flip_sample,
            seed=self._options.seed,
        )

    def drawn(self, record: EpisodeRecord, planned: Mapping[str, Any]) -> EpisodeRecord:
        """A right answer that was drawn for the sample but never tried says so; what a test episode lacks shows."""
        return replace(record, stop_reason="flip_drawn") if planned["flip"] else record

    async def play_on(
        self, episode: Episode, record: EpisodeRecord, planned: Mapping[str, Any], roles: Roles
    ) -> EpisodeRecord:
        """The record with the branches of the second pass behind those of the first."""
        first = replace(record.turns[0], user=episode.question)  # a stored picture has no bytes
        if planned["flip"]:
            record = replace(await self._with_solutions(record, episode, roles), stop_reason="flip_played")
            arms, max_rounds = list(self._options.arms), 1
        else:
            arms, max_rounds = list(self._borrowing), self._options.max_rounds
        record, remembering = await self._remembering(record, first, roles)
        able = self._able(record, roles)
        plans = self._plans(arms, first, able, roles, max_rounds, remembering, planned["borrowed"])
        return replace(await self._with_branches(record, plans, episode, roles), passes=2)

    # --- its parts ------------------------------------------------------------------------------------------------

    async def _first_answer(self, episode: Episode, receiver: RoleClient) -> tuple[Turn, str | None]:
        """Round 0, and why it could not be judged, where it could not."""
        if episode.first_answer is not None:
            reply = Reply(text=episode.first_answer, model=RECORDED, usage=Usage())
        else:
            reply = await receiver.reply(_opening(episode))
        judgement, unjudged = await judged(self._parts, episode, reply)
        return Turn(index=0, parent=None, user=episode.question, reply=reply, judgement=judgement), unjudged

    async def _with_solutions(self, record: EpisodeRecord, episode: Episode, roles: Roles) -> EpisodeRecord:
        """The record with each provider's own try at the same prompt: it may only teach what it can do.

        As it is where every wrong answer is tested.
        """
        if self._all_wrong:
            return record

        async def solve(label: str, provider: RoleClient) -> tuple[Turn, BranchEnd | None]:
            branch = role_key("solve", label)
            reply = await provider.reply(_opening(episode), branch=branch, purpose="solve")
            judgement, why = await judged(self._parts, episode, reply)
            asked = episode.question
            turn = Turn(
                index=0, parent=None, branch=branch, role="provider", user=asked, reply=reply, judgement=judgement
            )
            return turn, BranchEnd(branch=branch, reason="judge_failed", error=why) if why else None

        solved = await asyncio.gather(*[solve(label, client) for label, client in roles.providers.items()])
        n = len(record.turns)
        turns = [replace(turn, index=n + place) for place, (turn, _) in enumerate(solved)]
        ends = [end for _, end in solved if end is not None]
        return replace(record, turns=(*record.turns, *turns), ends=(*record.ends, *ends))

    def _plans(
        self,
        arms: Sequence[str],
        first: Turn,
        able: Mapping[str, Turn | None],
        roles: Roles,
        max_rounds: int,
        remembering: Remembering | None,
        borrowed: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Iterator[BranchPlan]:
        """A branch for each arm and provider that solved the question; one for all where no model writes the arm."""
        for arm in arms:
            for label in list(able)[:1] if arm in self._shared else able:
                yield BranchPlan(
                    arm=arm,
                    branch=arm if arm in self._shared else role_key(arm, label),
                    first=first,
                    solution=able[label],
                    provider=roles.providers.get(label),
                    uses_provider=arm not in self._shared,
                    max_rounds=max_rounds,
                    data_texts=self._options.level_texts == DATA,
                    level3_without_answer=self._options.level3_without_answer,
                    borrowed=(borrowed or {})[arm][label] if arm in self._borrowing else None,
                    sees_target=self._options.provider_sees_gt,
                    guard=self._guard,
                    remembering=remembering,
                )

    @property
    def _needs_no_provider(self) -> bool:
        return self._all_wrong and self._shared == set(self._options.arms)

    def _able(self, record: EpisodeRecord, roles: Roles) -> dict[str, Turn | None]:
        """Label -> own try of the providers that may teach, in the order of the YAML; without a try all of them."""
        if self._all_wrong:
            return dict.fromkeys(roles.providers or ("",))
        solved = {_label(turn): turn for turn in record.turns if _solved(turn)}
        return {label: solved[label] for label in roles.providers if label in solved}

    def _test_labels(self, record: EpisodeRecord) -> list[str]:
        """The providers in whose test set the episode is."""
        if not self._all_wrong:
            return [_label(turn) for turn in record.turns if _solved(turn)]
        first = record.turns[0].judgement if record.turns else None
        return list(self._options.providers or ("",)) if first is not None and not first.correct else []

    async def _remembering(
        self, record: EpisodeRecord, first: Turn, roles: Roles
    ) -> tuple[EpisodeRecord, Remembering | None]:
        """The record with the notes on round 0, which all branches share, and what is remembered; None: no memory."""
        if self._memory is None:
            return record, None
        return await with_first_notes(record, first, self._memory, roles.notetaker)

    async def _with_branches(
        self, record: EpisodeRecord, plans: Iterator[BranchPlan], episode: Episode, roles: Roles
    ) -> EpisodeRecord:
        played: list[Played] = await asyncio.gather(
            *[play_branch(plan, episode, roles.receiver, self._parts) for plan in plans]
        )
        turns = list(record.turns)
        for branch in played:
            turns += renumbered(branch.turns, len(turns))
        return replace(record, turns=tuple(turns), ends=(*record.ends, *[branch.end for branch in played]))


def _opening(episode: Episode) -> tuple[Message, ...]:
    system = (Message(role="system", content=(episode.system,)),) if episode.system else ()
    return (*system, episode.question)


def _record(episode: Episode, roles: Roles, first: Turn) -> EpisodeRecord:
    models = models_of(roles, "provider", "notetaker")
    return replace(begun_record(episode, "feedback_loop", models), turns=(first,))


def _label(turn: Turn) -> str:
    return turn.branch.partition("@")[2]


def _solved(turn: Turn) -> bool:
    return turn.role == "provider" and turn.judgement is not None and turn.judgement.correct


def _rounds_of(record: EpisodeRecord, branch: str) -> int:
    """How many answers the receiver gave in a branch."""
    return sum(turn.role == "receiver" and turn.branch == branch for turn in record.turns)


def _why_not_played(record: EpisodeRecord) -> str:
    """Why no provider may teach; of several reasons the one that leaves most open."""
    tries = [turn for turn in record.turns if turn.role == "provider"]
    if any(turn.judgement is None for turn in tries):
        return "provider_failed"
    read = any(turn.judgement is not None and turn.judgement.extraction.answer is not None for turn in tries)
    return "provider_wrong" if read else "provider_unparsed"


def _lent(feedback: Feedback, record: EpisodeRecord) -> dict[str, str]:
    """What another episode may be told: the model's own words, since the sentence before them is each one's own."""
    said = said_in_the_end(feedback.reply.text) if feedback.reply is not None else feedback.text
    return {"text": said, "kind": feedback.kind, "author": feedback.author, "source": record.episode_id}
