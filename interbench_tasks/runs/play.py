"""Plays a task's episodes: makes the roles, runs the engine, keeps every record as it ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pluggy

from interbench_tasks import settings
from interbench_tasks.config import HARNESS_BACKEND, Role, TaskOptions, backend_from
from interbench_tasks.engine import BatchedModel, Engine, EngineReport
from interbench_tasks.errors import InterbenchError
from interbench_tasks.hookspecs import Backend, EpisodeProtocol, MetricSet, Parts, RoleClient
from interbench_tasks.images import Picture
from interbench_tasks.items import ItemReader
from interbench_tasks.ledger import Ledger
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.records import Episode, EpisodeRecord, RoleName
from interbench_tasks.redaction import redact
from interbench_tasks.rows import DataSet
from interbench_tasks.runs.folder import MANIFEST, RunFolder
from interbench_tasks.runs.manifest import manifest_from

Key = tuple[int, int]
"""(doc_id, repeat) of an episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What to play, and where to keep it."""

    task: str
    options: TaskOptions
    data: DataSet
    wanted: Sequence[Key]
    """This rank's episodes."""
    n_total: int
    """Episodes of all ranks together."""
    run_id: str
    folder: Path
    """The folder of this run and task."""
    rank: int = 0
    world_size: int = 1
    stop_reason: Callable[[], str | None] = lambda: None
    """Asked before each episode starts; a text stops new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRun:
    """What came of a run on this rank."""

    summaries: Mapping[Key, Mapping[str, Any]]
    report: EngineReport
    folder: Path
    n_failed: int
    """Episodes in which something failed (a call of any role too), or that were never started."""
    errors: Mapping[str, int]
    """Error text -> number of episodes."""
    watcher_errors: tuple[str, ...] = ()
    ledger_warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Roles:
    receiver: RoleClient
    provider: RoleClient | None


@dataclass(slots=True)
class _Keeper:
    """Keeps records as they end; lives on the engine's loop thread."""

    folder: RunFolder
    metric_set: MetricSet
    manager: pluggy.PluginManager
    summaries: dict[Key, Mapping[str, Any]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    n_failed: int = 0
    watcher_errors: Counter[str] = field(default_factory=Counter)

    def keep(self, record: EpisodeRecord) -> None:
        self.folder.append(record)
        self.summaries[(record.doc_id, record.repeat)] = self.metric_set.summary(record)
        failures = failures_of(record)
        if failures:
            self.n_failed += 1
            self.errors.update(failures)
        self._tell_watchers(record)

    def _tell_watchers(self, record: EpisodeRecord) -> None:
        for watcher in self.manager.hook.interbench_episode_finished.get_hookimpls():
            arguments = {"record": record} if "record" in watcher.argnames else {}
            try:
                watcher.function(**arguments)
            except Exception as error:  # noqa: BLE001 - a watcher cannot move a score; it is reported at the end
                self.watcher_errors[redact(f"plugin '{watcher.plugin_name}': {error!r}")] += 1


def failures_of(record: EpisodeRecord) -> set[str]:
    """Why something of the episode has no score: itself, one of its replies, or feedback that could not be given."""
    if record.status != "finished":
        return {record.error or record.stop_reason}
    failed = [turn.reply for turn in record.turns if not turn.reply.usable]
    failed += [end.feedback.reply for end in record.ends if end.feedback is not None and end.feedback.reply is not None]
    unjudged = {end.error for end in record.ends if end.error is not None}
    return {reply.error or "the provider gave no feedback" for reply in failed} | unjudged


def parts_from(options: TaskOptions, offers: Offers) -> Parts:
    """The plugins that the YAML names, made once a run."""
    arms = getattr(options.protocol_options, "arms", ())
    return Parts(
        verifier=offers.verifiers[options.common.verifier](),
        feedback_providers={arm: offers.feedback_providers[arm]() for arm in arms},
        prompts=options.common.prompts,
    )


def play_run(
    plan: RunPlan,
    *,
    receiver: Backend | BatchedModel,
    manager: pluggy.PluginManager,
    offers: Offers,
    harness_model: Callable[[Role], BatchedModel],
    reported: Callable[[Backend, RoleName], Backend] = lambda backend, role: backend,
) -> PlayedRun:
    """Play all wanted episodes; blocks the calling thread, on which every harness model is called.

    Args:
        plan: what to play, and where to keep it.
        receiver: the model under test.
        manager: whose plugins watch episodes end.
        offers: what the manager's plugins offer.
        harness_model: makes a role whose backend is `harness`.
        reported: wraps a backend that accounts to nobody else, so that its usage is counted.

    Raises: RunFolderError for a disk that cannot be written; KeyboardInterrupt after Ctrl-C; finished episodes are
        kept in both cases.
    """
    ledger = _ledger(plan.rank)
    engine = Engine(
        max_live=plan.options.common.engine.max_live_episodes,
        max_wait_s=plan.options.common.engine.max_wait_s,
        ledger=ledger,
        progress=settings.progress_wanted() and plan.rank == 0,
        stop_reason=plan.stop_reason,
    )
    backends = {"receiver": _in_engine(receiver, engine, lambda backend: reported(backend, "receiver"))}
    for name, role in plan.options.roles.items():
        made = harness_model(role) if role.words.backend == HARNESS_BACKEND else backend_from(role, offers)
        backends[name] = _in_engine(made, engine, lambda backend, name=name: reported(backend, name))  # type: ignore[misc]
    folder = RunFolder(plan.folder, rank=plan.rank, world_size=plan.world_size)
    manifest = _manifest(plan, backends)
    if plan.rank == 0:
        folder.write_json(MANIFEST, manifest)
    metric_set: MetricSet = offers.metrics[plan.options.metrics](plan.options.protocol_options)
    keeper = _Keeper(folder=folder, metric_set=metric_set, manager=manager)
    try:
        report = engine.run(
            _Episodes(plan), _script(plan, offers, engine, backends), on_record=keeper.keep, failed=_failed(plan)
        )
    finally:
        folder.finish()
        if ledger is not None:
            ledger.close()
    left_out = {name: list(left) for name, backend in backends.items() if (left := getattr(backend, "left_out", ()))}
    if left_out and plan.rank == 0:
        folder.write_json(MANIFEST, {**manifest, "left_out": left_out})
    return PlayedRun(
        summaries=keeper.summaries,
        report=report,
        folder=plan.folder,
        n_failed=keeper.n_failed,
        errors=dict(keeper.errors),
        watcher_errors=tuple(f"{text} ({count} times)" for text, count in keeper.watcher_errors.items()),
        ledger_warnings=tuple(ledger.warnings) if ledger is not None else (),
    )


def _script(
    plan: RunPlan, offers: Offers, engine: Engine, backends: Mapping[str, Backend]
) -> Callable[[Episode], Awaitable[EpisodeRecord]]:
    """What the engine awaits for each episode: the protocol's script with this episode's roles."""
    options = plan.options
    protocol: EpisodeProtocol = offers.protocols[options.common.protocol](
        options.protocol_options, parts_from(options, offers)
    )

    async def play(episode: Episode) -> EpisodeRecord:
        started = time.time()
        provider = options.roles.get("provider")
        roles = _Roles(
            receiver=engine.client(backends["receiver"], "receiver", options.receiver_settings, episode),
            provider=engine.client(backends["provider"], "provider", provider.settings, episode) if provider else None,
        )
        try:
            record = await protocol.play(episode, roles)
        finally:
            for picture in episode.question.pictures:
                if isinstance(picture, Picture):
                    picture.release()
        return replace(record, task=plan.task, run={"started_at": started, "wall_s": time.time() - started})

    return play


def _failed(plan: RunPlan) -> Callable[[Episode, str, Literal["failed", "skipped"]], EpisodeRecord]:
    def failed(episode: Episode, why: str, status: Literal["failed", "skipped"]) -> EpisodeRecord:
        identity = (episode.id, episode.category, episode.cluster)
        return _unplayed(plan, episode.doc_id, episode.repeat, why, status, identity)

    return failed


def _ledger(rank: int) -> Ledger | None:
    folder = settings.ledger_folder()
    return Ledger.open(folder, rank=rank) if folder is not None else None


def _in_engine(model: Backend | BatchedModel, engine: Engine, reported: Callable[[Backend], Backend]) -> Backend:
    """A harness model goes through a batcher and reports its own usage; any other backend is asked directly."""
    if isinstance(model, Backend):
        return reported(model)
    return engine.batched(model)


class _Episodes:
    """The wanted episodes, made one by one; a row that cannot become one is a failed record."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan

    def __len__(self) -> int:
        return len(self._plan.wanted)

    def __iter__(self) -> Iterator[Episode | EpisodeRecord]:
        plan = self._plan
        reader = ItemReader(plan.data, plan.options.common)
        for doc_id, repeat in plan.wanted:
            stopped = plan.stop_reason()
            if stopped is not None:  # no picture is read for an episode that will not start
                yield _unplayed(plan, doc_id, repeat, stopped, "skipped", reader.identity(doc_id))
                continue
            try:
                yield reader.episode(doc_id, repeat)
            except Exception as error:  # noqa: BLE001 - whatever an odd row does, it must not end the run for the others
                told = str(error) if isinstance(error, InterbenchError) else f"row {doc_id}: {error!r}"
                yield _unplayed(plan, doc_id, repeat, redact(told), "failed", reader.identity(doc_id))


def _unplayed(
    plan: RunPlan,
    doc_id: int,
    repeat: int,
    why: str,
    status: Literal["failed", "skipped"],
    identity: tuple[str, str | None, str | None],
) -> EpisodeRecord:
    """The record of an episode that was not played, or whose script raised; identity = id, category, cluster."""
    episode_id, category, cluster = identity
    return EpisodeRecord(
        task=plan.task,
        protocol=plan.options.common.protocol,
        episode_id=episode_id,
        doc_id=doc_id,
        repeat=repeat,
        category=category,
        cluster=cluster,
        target="",
        options={},
        status=status,
        stop_reason="not_started" if status == "skipped" else "episode_failed",
        error=why,
    )


def _manifest(plan: RunPlan, backends: Mapping[str, Backend]) -> dict[str, Any]:
    return manifest_from(
        task=plan.task,
        options=plan.options,
        models={role: {"name": backend.name, "fingerprint": backend.fingerprint} for role, backend in backends.items()},
        source=plan.data.source,
        n_episodes=plan.n_total,
        run_id=plan.run_id,
    )
