"""Every hook, with the protocols (typing.Protocol) that a plugin fulfils.

Two kinds. **Offer** hooks return `{name: factory}`; a task YAML names what it wants. **Watch** hooks are told that
something happened; they cannot move a score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import pluggy
from pydantic import BaseModel

from interbench_tasks.feedback_rounds import FeedbackRound
from interbench_tasks.metric_sets import Composed as Composed
from interbench_tasks.metric_sets import ComposedMetrics as ComposedMetrics
from interbench_tasks.metric_sets import MetricSet as MetricSet
from interbench_tasks.metric_sets import TwoPassMetrics as TwoPassMetrics
from interbench_tasks.metric_sets import UnitMetrics as UnitMetrics
from interbench_tasks.metric_sets import WeightedMetrics as WeightedMetrics
from interbench_tasks.records import (
    Episode,
    EpisodeRecord,
    Feedback,
    GenerationSettings,
    Judgement,
    Message,
    Notes,
    Purpose,
    Reply,
    RoleName,
    Turn,
    Verdict,
)
from interbench_tasks.report_parts import ReportRun, Section

PROJECT = "interbench"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to a backend."""

    messages: tuple[Message, ...]
    """System (optional), then user and assistant alternating; the last is the user's, or what is asked of a person."""
    settings: GenerationSettings
    role: RoleName
    purpose: Purpose
    episode: Episode
    """For simulations and logs only: a real model sees nothing but the messages."""
    branch: str = ""
    round: int = 0


@runtime_checkable
class Backend(Protocol):
    """What answers for a role. One instance serves many episodes at once and keeps nothing of any.

    A method that is called where it is there: `check_options(settings, changes)`, which refuses what of a sweep's
    variant would not reach the model (BackendError); without it the backend can play no sweep.
    """

    name: str
    """As shown in results, e.g. `openai:gpt-4o-2024-08-06`; a simulated one has `simulated` in it."""
    fingerprint: str
    """Everything but messages and settings that can change a reply (endpoint, model); part of the ledger key."""

    async def reply(self, call: Call) -> Reply:
        """One reply. A failing call is a Reply with status `error`; it raises only on bugs."""
        ...

    async def close(self) -> None:
        """Free connections; called once, after the last episode."""
        ...


class Provider(Protocol):
    """The role provider as a feedback plugin sees it, bound to one episode."""

    @property
    def name(self) -> str:
        """The provider's model."""
        ...

    @property
    def solution(self) -> Turn | None:
        """The provider's own try at the question; None where the task has none."""
        ...

    @property
    def history(self) -> Sequence[Message]:
        """What the receiver saw, up to and including the reply that needs feedback."""
        ...

    @property
    def prompts(self) -> Mapping[str, str]:
        """The task's prompt templates (Jinja2), by name."""
        ...

    @property
    def sees_target(self) -> bool:
        """Whether the task lets the provider see the right answer."""
        ...

    @property
    def borrowed(self) -> Feedback | None:
        """What was written for another episode, without its first sentence; None unless the plugin `borrows`."""
        ...

    @property
    def round(self) -> FeedbackRound:
        """Which round's feedback is wanted, and of whom."""
        ...

    async def reply(self, messages: Sequence[Message]) -> Reply:
        """Ask the provider's model. A person who says that the reply is right gives no text; the branch then ends."""
        ...


class FeedbackProvider(Protocol):
    """Turns a reply into feedback. Keeps no state of an episode.

    Class attributes that are read where they are there: `prompt_variables`, the prompts that a YAML may replace and
    what each may name; `uses_provider`, False where no model of the role provider is asked, so that several providers
    share the branch (default True); `borrows`, the arm whose feedback for another episode it wants to be given;
    `levels`, how many kinds of feedback it has, one a round; a task may take their texts from its data set.
    """

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        """Feedback on `turn`; its `status` is `failed` where the provider's model failed."""
        ...


class Notetaker(Protocol):
    """The role notetaker as a memory sees it, bound to one turn of one episode."""

    @property
    def name(self) -> str:
        """The notetaker's model."""
        ...

    @property
    def turn(self) -> int:
        """0-based number of the turn in its conversation."""
        ...

    @property
    def pictures(self) -> Sequence[int]:
        """The numbers of the turn's pictures: 1-based, by their order in the conversation."""
        ...

    async def reply(self, messages: Sequence[Message]) -> Reply:
        """Ask the notetaker's model; where it fails, the notes cannot be used, whatever the memory makes of it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """What a task YAML says to its memories."""

    recent_turns: int = 4
    """Turns that `recent_turns` leaves in view, >= 0."""
    max_chars: int = 4000
    """Longest notes, in characters; what is more is left out, and recorded."""
    place: Literal["user", "system"] = "user"
    """Where notes stand: before the last user message's own content, or in the system message."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Prompt templates of the YAML, by name."""


class Memory(Protocol):
    """What the receiver is shown of the past. Keeps no state: notes go in and come out.

    Class attributes that are read where they are there: `prompt_variables`, the prompts that a YAML may replace and
    what each may name.
    """

    @property
    def acts_at(self) -> Literal["question", "every_turn"]:
        """When `messages` is asked; a class attribute.

        At the questions only, so that all such memories share one played conversation; or at every turn of one that is
        played for this memory alone.
        """
        ...

    @property
    def takes_notes(self) -> bool:
        """Whether `after_turn` asks the role notetaker; where False it is never called. A class attribute."""
        ...

    async def after_turn(self, notes: Notes | None, turn: Turn, notetaker: Notetaker) -> Notes:
        """New notes after a turn; the old ones with status `kept` where nothing can be made of the reply."""
        ...

    def messages(self, notes: Notes | None, history: Sequence[Message]) -> Sequence[Message]:
        """What the receiver sees next.

        `history` is system (optional), then user and assistant alternating; the last message is what it is asked now.
        """
        ...


class Verifier(Protocol):
    """Reads the answer out of a reply and compares it with the target."""

    def judge(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        """Never guesses: an unreadable answer is `correct=False` with `extraction.answer=None`."""
        ...


@runtime_checkable
class PatientVerifier(Verifier, Protocol):
    """A verifier that may take long, such as one that compares expressions: a protocol awaits `judge_later` instead."""

    async def judge_later(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        """Like `judge`, without holding up the other episodes meanwhile."""
        ...


class PanelRule(Protocol):
    """Makes one verdict of several judges' verdicts, the same for any order of the judges."""

    def combine(self, verdicts: Sequence[Verdict], declared: int) -> Verdict:
        """The panel's verdict; `declared` = number of judges that were asked.

        Without one its `status` is `undecided`: a judge that failed is never a low score.
        """
        ...


class RoleClient(Protocol):
    """One role, bound to one episode: what a protocol talks to."""

    name: str

    async def reply(
        self, messages: Sequence[Message], *, branch: str = "", round: int = 0, purpose: Purpose = "answer"
    ) -> Reply:
        """Ask; waits for a free slot or a batch. Never raises for a failing call."""
        ...


class Roles(Protocol):
    """The roles of one episode."""

    @property
    def receiver(self) -> RoleClient:
        """The model under test."""
        ...

    @property
    def variants(self) -> Mapping[str, RoleClient]:
        """Label -> the model under test with the options of one variant of the task's sweep; empty without one."""
        ...

    @property
    def provider(self) -> RoleClient | None:
        """The first provider; None where the task has none."""
        ...

    @property
    def providers(self) -> Mapping[str, RoleClient]:
        """Label -> provider, in the order of the YAML; the label of a single one is empty."""
        ...

    @property
    def judges(self) -> Mapping[str, RoleClient]:
        """Label -> judge, in the order of the YAML; the label of a single one is empty."""
        ...

    @property
    def notetaker(self) -> RoleClient | None:
        """Who takes notes; None where the task has no memory that needs it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The plugins that a task YAML named, made once a run."""

    verifier: Verifier
    feedback_providers: Mapping[str, FeedbackProvider] = field(default_factory=dict)
    memories: Mapping[str, Memory] = field(default_factory=dict)
    panel_rule: PanelRule | None = None
    """None where nobody judges."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Prompt templates of the YAML, by name."""


class EpisodeProtocol(Protocol):
    """The script of an episode. Made once a run; keeps nothing of an episode."""

    async def play(self, episode: Episode, roles: Roles) -> EpisodeRecord:
        """Play one episode to its end. What it raises fails this episode only."""
        ...


@runtime_checkable
class TwoPassProtocol(EpisodeProtocol, Protocol):
    """A protocol with branches that need other episodes. Once all were played, some are played on.

    Such a branch is the same however many ranks play, in whatever order episodes end.
    """

    @property
    def two_passes(self) -> bool:
        """Whether the options of this run ask for a second pass."""
        ...

    def facts(self, record: EpisodeRecord) -> Mapping[str, Any]:
        """What the other episodes need to know of this one; JSON-able and small: all are held at once."""
        ...

    def plan(self, facts: Sequence[Mapping[str, Any]]) -> Mapping[tuple[int, int], Mapping[str, Any]]:
        """(doc_id, repeat) -> what to play on, for the episodes that are; the same for any order of `facts`."""
        ...

    def drawn(self, record: EpisodeRecord, planned: Mapping[str, Any]) -> EpisodeRecord:
        """The record where its second pass comes to nothing; it says what the episode was drawn for.

        What is missing is then unscored, and not left out.
        """
        ...

    async def play_on(
        self, episode: Episode, record: EpisodeRecord, planned: Mapping[str, Any], roles: Roles
    ) -> EpisodeRecord:
        """The record with the further branches, `passes` = 2. What it raises leaves the record as it was."""
        ...


class ProtocolFactory(Protocol):
    """A class of episode protocols, as the hook offers it: called with its options, it gives the protocol.

    Class attributes that are read where they are there: `reads`, the kind of rows that its data set has, `questions`
    (default), `conversations` or `flawed_items`; `question_variables`, what `prompts.question` may name;
    `prompt_variables`, the prompts of its own that a YAML may replace instead, and what each may name; `calls`, by
    which `interbench estimate` counts its calls (without it a task is refused there). Of its Options: `rubric_keys`,
    the rubrics that it needs, and the fields that it needs of each.
    """

    @property
    def Options(self) -> type[BaseModel]:
        """Its own keys of `metadata.interbench`."""
        ...

    @property
    def roles(self) -> tuple[RoleName, ...]:
        """Roles it needs beside the receiver."""
        ...

    @property
    def metrics(self) -> str:
        """Name of the metric set that fits it."""
        ...

    def __call__(self, options: Any, parts: Parts) -> EpisodeProtocol:  # noqa: ANN401 - an instance of its own Options
        """The protocol of one run."""
        ...


HookKind = Literal["offer", "watch"]


@hookspec
def interbench_backends() -> Mapping[str, Callable[..., Backend]]:  # type: ignore[empty-body]
    """Offer backends that a role can name (`openai:...`, `simulated:...`).

    Called: once a run, before any episode, while the task YAML is checked.
    Returns: {name: factory}; called as `factory(model, **options)` with the role's words; it must not connect yet.
    Several plugins: the mappings are merged; a name offered twice is a PluginNameClash.
    Since: 0.1
    """


@hookspec
def interbench_protocols() -> Mapping[str, ProtocolFactory]:  # type: ignore[empty-body]
    """Offer protocols that a task YAML can name.

    Called: once a run, before any episode, while the task YAML is checked.
    Returns: {name: class}; its `Options` are the further keys that metadata.interbench may hold.
    Several plugins: the mappings are merged; a name offered twice is a PluginNameClash.
    Since: 0.1
    """


@hookspec
def interbench_feedback_providers() -> Mapping[str, Callable[[], FeedbackProvider]]:  # type: ignore[empty-body]
    """Offer feedback providers that a task YAML can name.

    Called: once a run, before any episode, while the task YAML is checked.
    Returns: {name: factory}; name is an entry of metadata.interbench.arms.
    Several plugins: the mappings are merged; a name offered twice is a PluginNameClash.
    Since: 0.1
    """


@hookspec
def interbench_memories() -> Mapping[str, Callable[[MemoryOptions], Memory]]:  # type: ignore[empty-body]
    """Offer memories that a task YAML can name.

    Called: once a run, before any episode, while the task YAML is checked.
    Returns: {name: class}; name is an entry of metadata.interbench.memories or the value of metadata.interbench.memory;
        called as `class(options)` with what the YAML says to its memories.
    Several plugins: the mappings are merged; a name offered twice is a PluginNameClash.
    Since: 0.1
    """


@hookspec
def interbench_verifiers() -> Mapping[str, Callable[[], Verifier]]:  # type: ignore[empty-body]
    """Offer verifiers that a task YAML can name.

    Called: once a run, before any episode, while the task YAML is checked.
    Returns: {name: factory}; name is the value of metadata.interbench.verifier.
    Several plugins: the mappings are merged; a name offered twice is a PluginNameClash.
    Since: 0.1
    """


@hookspec
def interbench_panel_rules() -> Mapping[str, Callable[[], PanelRule]]:  # type: ignore[empty-body]
    """Offer rules that make one verdict of several judges' verdicts.

    Called: once a run, before any episode, while the task YAML is checked.
    Returns: {name: factory}; name is the value of metadata.interbench.panel.
    Several plugins: the mappings are merged; a name offered twice is a PluginNameClash.
    Since: 0.1
    """


@hookspec
def interbench_metrics() -> Mapping[str, Callable[..., MetricSet]]:  # type: ignore[empty-body]
    """Offer metric sets; a protocol names the one that fits it, a task YAML may name another.

    Called: once a run, before any episode, and by `interbench score`.
    Returns: {name: factory}; called as `factory(options)` with the protocol's own options.
    Several plugins: the mappings are merged; a name offered twice is a PluginNameClash.
    Since: 0.1
    """


@hookspec
def interbench_report_sections() -> Mapping[str, Callable[[Sequence[ReportRun]], Section | None]]:  # type: ignore[empty-body]
    """Offer sections of the report; each is a pure function of the runs that the report is of.

    Called: once a report.
    Returns: {name: function}; the function gives None where it has nothing to say of these runs.
    Several plugins: the mappings are merged, ours first; a name offered twice is a PluginNameClash. A section that
        raises is named in the report, and the others are shown.
    Since: 0.1
    """


@hookspec
def interbench_episode_finished(record: EpisodeRecord) -> None:
    """Watch episodes end.

    Called: after an episode's record was written; in the engine's thread, so be quick. Once more, with `passes` = 2,
        for an episode that a second pass has played on.
    record: the finished episode, frozen.
    Returns: nothing; it cannot move a score.
    Several plugins: all are called; one that raises is reported once at the end of the run.
    Since: 0.1
    """


OFFERS = (
    *("interbench_backends", "interbench_protocols", "interbench_feedback_providers", "interbench_memories"),
    *("interbench_verifiers", "interbench_panel_rules", "interbench_metrics", "interbench_report_sections"),
)
"""The offer hooks."""
