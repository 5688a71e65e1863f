"""MMPCBench's script: a model gets an input that may be flawed, without a hint; judges say whether it challenged it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from interbench_tasks.critique_votes import CritiqueRule
from interbench_tasks.flawed_reader import STYLE_VARIABLES
from interbench_tasks.hookspecs import Parts, Roles
from interbench_tasks.judging_rubrics import rubrics
from interbench_tasks.prompts import render
from interbench_tasks.protocols.critique_calls import CRITIQUE_CALLS
from interbench_tasks.protocols.critique_judging import REASONING, CritiqueJudges, said_nothing
from interbench_tasks.protocols.records_of import begun_record, models_of
from interbench_tasks.protocols.rehearsed import RehearsedCalls
from interbench_tasks.protocols.verifying import verified
from interbench_tasks.reasoning import parted
from interbench_tasks.records import BranchEnd, Episode, EpisodeRecord, Message, Reply, RoleName, Turn, Verdict, history
from interbench_tasks.redaction import redact
from interbench_tasks.sweeps import sweep_from, variants_of

Style = Literal["original", "formal", "concise"]
CLARIFICATION = "clarification"
CLARIFICATION_PROMPT = """{{ fix }}

Now solve the task, and end with a line of the form "Answer: X", where X is your answer."""
"""OURS. A YAML replaces it with `prompts.clarification`."""


class CritiqueOptions(BaseModel):
    """Keys of `metadata.interbench` that belong to critiques."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rubric_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "flawed": ("detected", "diag", "strategy", "strategy_score"),
        "reasoning": ("detected", "diag"),
        "dual": ("detected", "identified"),
        "valid": ("refuses_whole_task", "false_alarm"),
    }
    """Rubric -> the fields that the metrics need of it."""
    refused_keys: ClassVar[Mapping[str, str]] = {
        "panel": "critiques have the paper's rule for each metric (detection: strict majority of the declared judges; "
        "diagnosis: mean; strategy: mean of those that chose the majority's); leave it out"
    }
    """Keys that other protocols have -> why this one has not."""

    style: Style = "original"
    """How every item is asked."""
    more_styles: tuple[Style, ...] = ()
    """Further styles that a subset of the flawed items is asked in too."""
    sweep: tuple[dict[str, Any], ...] = ()
    """Generation options with which that subset is asked too, e.g. `{effort: [low, high]}`: see `sweeps`. OURS; the
    paper sweeps the effort of one model on 300 items."""
    subset: Annotated[int, Field(ge=1)] | None = 300
    """Items of that subset, by subcategory in proportion. None: all flawed items."""
    subset_seed: int = 0
    judge_reasoning: bool = True
    """Whether the reasoning of a reply is judged too, where there is some."""
    judges_see_pictures: bool = True
    """Whether judges are shown the item's pictures."""
    clarify: bool = False
    """Whether a model that asks for what is missing is told (`gold.fix`), and has to solve the task then. OURS."""
    pcq_combine: Literal["arithmetic", "geometric", "harmonic"] = "arithmetic"
    """How PCQ combines diagnosis and strategy."""
    rubric: str = "mmpcbench"
    """What replies are judged by: a file of rubrics that ships, or a YAML."""
    quorum: Annotated[int, Field(ge=1)] | None = None
    """Judges that must have given a verdict. None: as many as it takes to decide."""
    seed: int = 0
    """Of the words by which a judge shows that a verdict is its own."""
    judges: tuple[str, ...] = ()
    """Labels of several judges; filled in from metadata.interbench.judges."""
    mapping: dict[str, tuple[str, ...]] = {}
    """Canonical key -> names that the data set may have for it; empty for a file in canonical form."""

    @field_validator("mapping", mode="before")
    @classmethod
    def _one_name_is_a_list_of_one(cls, mapping: object) -> object:
        if not isinstance(mapping, Mapping):
            return mapping
        return {key: (names,) if isinstance(names, str) else names for key, names in mapping.items()}

    @field_validator("sweep", mode="before")
    @classmethod
    def _sweep_is_a_list(cls, sweep: object) -> object:
        return sweep_from(sweep)

    @field_validator("sweep")
    @classmethod
    def _variants_are_told_apart(cls, sweep: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        taken = [label for label in variants_of(sweep) if label in (*get_args(Style), CLARIFICATION, REASONING)]
        if taken:
            raise ValueError(f"{taken[0]!r} means something else already: give the variant another `name`")
        return sweep

    @property
    def variants(self) -> dict[str, dict[str, Any]]:
        """Label of each variant of the sweep -> the options that it changes."""
        return variants_of(self.sweep)

    @model_validator(mode="after")
    def _styles_differ(self) -> CritiqueOptions:
        if len({self.style, *self.more_styles}) < 1 + len(self.more_styles):
            raise ValueError(f"more_styles must differ from each other and from style = {self.style!r}")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Played:
    """One branch: its turn, and why something of it was not judged."""

    turn: Turn
    end: BranchEnd | None = None


class Critique:
    """Asks an item in one or several styles, and with the options of a sweep, side by side, and has each reply judged.

    Source: MMPCBench (arXiv 2608.29286): text, pictures and query as given; the reply is split into reasoning and final
    answer, which are judged apart.
    """

    Options: ClassVar[type[BaseModel]] = CritiqueOptions
    roles: ClassVar[tuple[RoleName, ...]] = ("judge",)
    metrics: ClassVar[str] = "mmpcbench"
    calls: ClassVar[RehearsedCalls] = CRITIQUE_CALLS
    reads: ClassVar[Literal["questions", "conversations", "flawed_items"]] = "flawed_items"
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {
        **dict.fromkeys(("original", "formal", "concise"), STYLE_VARIABLES),
        CLARIFICATION: ("fix", "query"),
    }

    def __init__(self, options: CritiqueOptions, parts: Parts) -> None:
        self._options = options
        self._parts = parts
        self._variants = frozenset(options.variants)

    async def play(self, episode: Episode, roles: Roles) -> EpisodeRecord:
        """The episode's record: the reply to the item, those to its further styles and variants, a clarification."""
        judges = CritiqueJudges(
            rubrics=rubrics(self._options.rubric),
            judges=roles.judges,
            rule=CritiqueRule(quorum=self._options.quorum),
            seed=self._options.seed,
            see_pictures=self._options.judges_see_pictures,
        )
        asked = {"": episode.question} | {question.id: question.message for question in episode.questions}
        branches = [self._ask(branch, message, episode, roles, judges) for branch, message in asked.items()]
        played = await asyncio.gather(*branches)
        played = [replace(one, turn=replace(one.turn, index=place)) for place, one in enumerate(played)]
        first = played[0].turn
        if self._options.clarify and _asks_back(first) and episode.extra.get("fix"):
            told = await self._clarified(first, episode, roles, index=len(played))
            if told.turn.reply.status == "skipped":
                return _record(episode, roles, played, never_told=True)
            played.append(told)
        return _record(episode, roles, played)

    async def _ask(
        self, branch: str, message: Message, episode: Episode, roles: Roles, judges: CritiqueJudges
    ) -> _Played:
        system = (Message(role="system", content=(episode.system,)),) if episode.system else ()
        receiver = roles.variants[branch] if branch in self._variants else roles.receiver
        reply = await receiver.reply((*system, message), branch=branch)
        question = branch or None
        turn = Turn(index=0, parent=None, branch=branch, user=message, reply=reply, question=question)
        if not reply.usable:
            return _Played(turn=turn, end=BranchEnd(branch=branch, reason="reply_failed"))
        try:
            return _Played(turn=await self._judged(turn, episode, judges))
        except Exception as error:  # noqa: BLE001 - whatever a judge's client does, the reply is paid for and stays
            why = redact(f"judging raised {error!r}")[:500]
            return _Played(turn=turn, end=BranchEnd(branch=branch, reason="judge_failed", error=why))

    async def _judged(self, turn: Turn, episode: Episode, judges: CritiqueJudges) -> Turn:
        """The turn with the verdicts on its final answer, and on its reasoning.

        The reasoning is judged of flawed items in the task's own style, with the task's settings or a variant's.
        """
        parts = parted(turn.reply.text, turn.reply.reasoning)
        kind = episode.extra["kind"]

        async def nobody() -> tuple[tuple[Verdict, ...], Verdict | None]:
            return (), None

        async def of_answer() -> tuple[tuple[Verdict, ...], Verdict]:
            if not parts.answer:
                return (), said_nothing(kind)
            return await judges.judge(parts.answer, episode, branch=turn.branch)

        wanted = self._options.judge_reasoning and kind == "flawed" and turn.branch in ("", *self._variants)
        of_reasoning = (
            judges.judge(parts.reasoning, episode, branch=turn.branch, reasoning=True)
            if wanted and parts.reasoning is not None
            else nobody()
        )
        (verdicts, verdict), (thoughts, thought) = await asyncio.gather(of_answer(), of_reasoning)
        return replace(turn, verdicts=verdicts, verdict=verdict, reasoning_verdicts=thoughts, reasoning_verdict=thought)

    async def _clarified(self, first: Turn, episode: Episode, roles: Roles, *, index: int) -> _Played:
        """The turn after the simulated user has told what was missing, against the item's answer."""
        template = self._parts.prompts.get(CLARIFICATION, CLARIFICATION_PROMPT)
        text = render(template, CLARIFICATION, fix=episode.extra["fix"], query=episode.raw_question)
        user = Message(role="user", content=(text,))
        before = history((first,), first.index, episode.system)
        reply: Reply = await roles.receiver.reply((*before, user), branch=CLARIFICATION, round=1)
        target = episode.extra.get("answer")
        judgement, why = await verified(self._parts.verifier, reply, target, {}) if target else (None, None)
        turn = Turn(
            index=index, parent=first.index, branch=CLARIFICATION, round=1, user=user, reply=reply, judgement=judgement
        )
        end = BranchEnd(branch=CLARIFICATION, reason="judge_failed", error=why) if why else None
        return _Played(turn=turn, end=end)


def _asks_back(turn: Turn) -> bool:
    fields = turn.verdict.fields if turn.verdict is not None else {}
    return fields.get("detected") == "true" and fields.get("strategy") == CLARIFICATION


def _record(episode: Episode, roles: Roles, played: Sequence[_Played], *, never_told: bool = False) -> EpisodeRecord:
    """The record; it failed where the item itself has no reply.

    Args: never_told = whether the model asks back, and in the run whose replies are judged again was not told.
    """
    untold = (BranchEnd(branch=CLARIFICATION, reason="never_told"),) if never_told else ()
    first = played[0]
    failed = not first.turn.reply.usable
    return replace(
        begun_record(episode, "critique", models_of(roles, "judge")),
        options={},
        turns=tuple(one.turn for one in played),
        ends=(*(one.end for one in played if one.end is not None), *untold),
        status="failed" if failed else "finished",
        stop_reason="reply_failed" if failed else "played",
        error=first.turn.reply.error if failed else None,
    )
