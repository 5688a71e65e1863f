"""Plays a task's episodes: makes the roles, runs the engine, keeps every record as it ends."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pluggy

from interbench_tasks import settings
from interbench_tasks.budget import Budget, limits_from
from interbench_tasks.config import TaskOptions
from interbench_tasks.engine import BatchedModel, Engine, EngineReport
from interbench_tasks.hookspecs import Backend, EpisodeProtocol, MetricSet, Parts, RoleClient
from interbench_tasks.images import Picture
from interbench_tasks.judging_panel import with_quorum
from interbench_tasks.ledger import Ledger
from interbench_tasks.memories import memory_arms, memory_options_from
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.prices import price_list
from interbench_tasks.records import Episode, EpisodeRecord, RoleName
from interbench_tasks.runs.episodes import Episodes
from interbench_tasks.runs.folder import MANIFEST, RunFolder
from interbench_tasks.runs.keeper import Keeper
from interbench_tasks.runs.manifest import manifest_from, settings_as_json
from interbench_tasks.runs.pictures import PictureKeeper, pictures_of
from interbench_tasks.runs.plan import Key, RunPlan
from interbench_tasks.runs.usage_file import usage_from, write_usage
from interbench_tasks.runs.variants import refuse_options_without_effect, variant_settings
from interbench_tasks.task_roles import HARNESS_BACKEND, Role, backend_from, role_key
from interbench_tasks.usage import NOTHING, Meter, RoleUsage, Spent

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRun:
    """What came of a run on this rank."""

    summaries: Mapping[Key, Mapping[str, Any]]
    report: EngineReport
    folder: Path
    n_failed: int
    """Episodes in which something failed (a call of any role too), or that were never started."""
    n_unscored: int
    """Of these, episodes in which something has no score for it; in the others the other judges decided."""
    errors: Mapping[str, int]
    """Error text -> number of episodes."""
    n_second_pass: int | None = None
    """Episodes of all ranks that a second pass played on; None where there was none."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """What each role used on this rank, as `usage.json` has it."""
    spent: Spent = NOTHING
    """The same, as limits are held against it."""
    watcher_errors: tuple[str, ...] = ()
    ledger_warnings: tuple[str, ...] = ()
    picture_warnings: tuple[str, ...] = ()
    """Why pictures are not kept for reports, where some are not."""


@dataclass(frozen=True, slots=True)
class _Roles:
    receiver: RoleClient
    variants: Mapping[str, RoleClient]
    providers: Mapping[str, RoleClient]
    judges: Mapping[str, RoleClient]
    notetaker: RoleClient | None

    @property
    def provider(self) -> RoleClient | None:
        return next(iter(self.providers.values()), None)


def parts_from(options: TaskOptions, offers: Offers) -> Parts:
    """The plugins that the YAML names, made once a run."""
    arms = getattr(options.protocol_options, "arms", ())
    told = memory_options_from(options.protocol_options, options.common.prompts)
    memories = {name for arm in memory_arms(options.protocol_options) for name in arm}
    panel = getattr(options.protocol_options, "panel", None) if options.roles.get("judge") else None
    quorum = getattr(options.protocol_options, "quorum", None)
    return Parts(
        verifier=offers.verifiers[options.common.verifier](),
        feedback_providers={arm: offers.feedback_providers[arm]() for arm in arms},
        memories={name: offers.memories[name](told) for name in sorted(memories)},
        panel_rule=None if panel is None else with_quorum(offers.panel_rules[panel](), quorum),
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

    Raises: BackendError where a sweep has an option that the receiver does not take; BudgetError where money is limited
        and a model has no known price; RunFolderError for a disk that cannot be written; KeyboardInterrupt after
        Ctrl-C; finished episodes are kept in both cases.
    """
    with contextlib.ExitStack() as ending:  # each of its steps is done, whatever becomes of the others
        ledger = ending.enter_context(_open_ledger(plan.rank))
        budget = _budget(plan)
        plan = _within(plan, budget)
        engine = _engine(plan, ledger, budget)
        refuse_options_without_effect(receiver, plan.options)
        models = {"receiver": receiver} | _models_of_roles(plan.options, offers, harness_model)
        backends = {
            key: _in_engine(model, engine, _reporter(reported, key.partition("@")[0])) for key, model in models.items()
        }
        _add_roles(budget, plan, models, backends)
        _let_people_know(plan, models)
        folder = RunFolder(plan.folder, rank=plan.rank, world_size=plan.world_size)
        protocol: EpisodeProtocol = offers.protocols[plan.options.common.protocol](
            plan.options.protocol_options, parts_from(plan.options, offers)
        )
        keeper = _keeper(plan, folder, protocol, manager, offers)
        pictures = ending.enter_context(PictureKeeper(plan.folder, wanted=settings.thumbnails_wanted()))
        episodes = Episodes(plan, protocol, engine, keeper)
        manifest = _manifest(plan, backends, two_passes=getattr(protocol, "two_passes", False)) | _histories(protocol)
        if plan.rank == 0:
            folder.write_json(MANIFEST, manifest)
        ending.callback(_keep_usage, plan, budget)
        ending.callback(folder.finish)
        report = engine.run(
            episodes,
            _script(plan, engine, backends, episodes, pictures),
            on_record=_both(keeper.keep, budget.episode_ended),
            failed=episodes.failed,
        )
    if plan.rank == 0:
        folder.write_json(MANIFEST, manifest | _learned(backends, episodes))
    return replace(_played(plan, report, keeper, episodes, ledger, budget), picture_warnings=pictures.warnings)


def _let_people_know(plan: RunPlan, models: Mapping[str, Backend | BatchedModel]) -> None:
    """Open the desk of backends that people answer for."""
    for key, model in models.items():
        begin = getattr(model, "begin_run", None)
        if begin is not None:
            begin(place=plan.people, task=plan.task, run=f"{plan.run_id}/{plan.task}/{key}/{plan.rank}")


def _keeper(
    plan: RunPlan, folder: RunFolder, protocol: EpisodeProtocol, manager: pluggy.PluginManager, offers: Offers
) -> Keeper:
    metric_set: MetricSet = offers.metrics[plan.options.metrics](plan.options.protocol_options)
    return Keeper(folder=folder, metric_set=metric_set, protocol=protocol, manager=manager, n_wanted=len(plan.wanted))


def _keep_usage(plan: RunPlan, budget: Budget) -> None:
    write_usage(plan.folder, usage_from(budget), rank=plan.rank, world_size=plan.world_size)


def _engine(plan: RunPlan, ledger: Ledger | None, budget: Budget) -> Engine:
    return Engine(
        max_live=plan.options.common.engine.max_live_episodes,
        max_wait_s=plan.options.common.engine.max_wait_s,
        max_episode_s=plan.options.common.engine.max_episode_s,
        ledger=ledger,
        progress=settings.progress_wanted() and plan.rank == 0,
        stop_reason=plan.stop_reason,
        may_be_live=budget.most_live,
        on_reply=budget.count,
    )


def _both(
    first: Callable[[EpisodeRecord], None], second: Callable[[EpisodeRecord], None]
) -> Callable[[EpisodeRecord], None]:
    def both(record: EpisodeRecord) -> None:
        first(record)
        second(record)

    return both


def _budget(plan: RunPlan) -> Budget:
    limits = limits_from(plan.options.common.budget)
    return Budget(limits, Meter(), before=plan.spent_before, n_ranks=plan.world_size)


def _within(plan: RunPlan, budget: Budget) -> RunPlan:
    """The plan, stopped by its budget too."""
    asked = plan.stop_reason
    return replace(plan, stop_reason=lambda: asked() or budget.stop_reason())


def _add_roles(
    budget: Budget, plan: RunPlan, models: Mapping[str, Backend | BatchedModel], backends: Mapping[str, Backend]
) -> None:
    """Let the budget know who answers for whom, and at what price."""
    prices = price_list(plan.options.common.budget.prices)
    for key, model in models.items():
        if getattr(model, "recorded", False):  # nobody is asked, nothing is paid
            continue
        address = getattr(model, "address", None)
        price = prices.price_of(model.name, address)
        usage = RoleUsage(role=key, model=model.name, address=address, price=price)
        budget.meter.add(backends[key], cast("RoleName", key.partition("@")[0]), usage)
    budget.check_prices()


def _played(
    plan: RunPlan,
    report: EngineReport,
    keeper: Keeper,
    episodes: Episodes,
    ledger: Ledger | None,
    budget: Budget,
) -> PlayedRun:
    return PlayedRun(
        summaries=keeper.summaries,
        report=report,
        folder=plan.folder,
        n_failed=keeper.n_failed,
        n_unscored=keeper.n_unscored,
        errors=keeper.errors(),
        n_second_pass=episodes.n_second_pass,
        usage=usage_from(budget),
        spent=budget.spent,
        watcher_errors=tuple(f"{text} ({count} times)" for text, count in keeper.watcher_errors.items()),
        ledger_warnings=tuple(ledger.warnings) if ledger is not None else (),
    )


def _models_of_roles(
    options: TaskOptions, offers: Offers, harness_model: Callable[[Role], BatchedModel]
) -> dict[str, Backend | BatchedModel]:
    """`role_key` -> what answers for it; nothing connects yet."""
    return {
        role_key(name, role.label): (
            harness_model(role) if role.words.backend == HARNESS_BACKEND else backend_from(role, offers)
        )
        for name, roles in options.roles.items()
        for role in roles
    }


def _script(
    plan: RunPlan, engine: Engine, backends: Mapping[str, Backend], episodes: Episodes, pictures: PictureKeeper
) -> Callable[[Episode], Awaitable[EpisodeRecord]]:
    """What the engine awaits for each episode: the protocol's script with this episode's roles."""
    options = plan.options
    variants = variant_settings(options)

    async def play(episode: Episode) -> EpisodeRecord:
        started = time.time()

        def clients(name: RoleName) -> dict[str, RoleClient]:
            return {
                role.label: engine.client(backends[role_key(name, role.label)], name, role.settings, episode)
                for role in options.roles.get(name, ())
            }

        roles = _Roles(
            receiver=engine.client(backends["receiver"], "receiver", options.receiver_settings, episode),
            variants={
                label: engine.client(backends["receiver"], "receiver", settings, episode)
                for label, settings in variants.items()
            },
            providers=clients("provider"),
            judges=clients("judge"),
            notetaker=next(iter(clients("notetaker").values()), None),
        )
        try:
            record = await episodes.play(episode, roles)
        finally:
            shown = pictures_of(episode)
            pictures.keep(shown)
            for picture in shown:
                if isinstance(picture, Picture):
                    picture.release()
        run = {"started_at": started, "wall_s": time.time() - started, **record.run}
        return replace(record, task=plan.task, run=run)

    return play


def _histories(protocol: EpisodeProtocol) -> dict[str, Any]:
    """Which arms share one played conversation, and which play their own; nothing for protocols without."""
    arms: Mapping[str, str] = getattr(protocol, "histories", {})
    return {"conversations": {arm: branch or "shared" for arm, branch in arms.items()}} if arms else {}


def _learned(backends: Mapping[str, Backend], episodes: Episodes) -> dict[str, Any]:
    """What only the run itself could tell of how it was made."""
    left_out = {name: list(left) for name, backend in backends.items() if (left := getattr(backend, "left_out", ()))}
    learned: dict[str, Any] = {"left_out": left_out} if left_out else {}
    if episodes.n_second_pass is not None:
        learned["second_pass"] = {"n_episodes": episodes.n_second_pass}
    return learned


@contextlib.contextmanager
def _open_ledger(rank: int) -> Iterator[Ledger | None]:
    """The ledger while a run uses it; what it has to tell is logged where the run does not come to its end."""
    folder = settings.ledger_folder()
    if folder is None:
        yield None
        return
    ledger = Ledger.open(folder, rank=rank)
    try:
        yield ledger
    except BaseException:
        for warning in ledger.warnings:  # nobody else would: there is no `PlayedRun`
            _LOG.warning("%s", warning)
        raise
    finally:
        ledger.close()


def _reporter(reported: Callable[[Backend, RoleName], Backend], name: str) -> Callable[[Backend], Backend]:
    return lambda backend: reported(backend, cast("RoleName", name))


def _in_engine(model: Backend | BatchedModel, engine: Engine, reported: Callable[[Backend], Backend]) -> Backend:
    """A harness model goes through a batcher and reports its own usage; any other backend is asked directly."""
    if isinstance(model, Backend):
        return reported(model)
    return engine.batched(model)


def _manifest(plan: RunPlan, backends: Mapping[str, Backend], *, two_passes: bool) -> dict[str, Any]:
    manifest = manifest_from(
        task=plan.task,
        options=plan.options,
        models={role: {"name": backend.name, "fingerprint": backend.fingerprint} for role, backend in backends.items()},
        source=plan.data.source,
        n_episodes=plan.n_total,
        run_id=plan.run_id,
    )
    judged = {"judged": dict(plan.judged)} if plan.judged else {}
    swept = {label: settings_as_json(own) for label, own in variant_settings(plan.options).items()}
    judged |= {"variants": swept} if swept else {}
    return manifest | judged | ({"second_pass": {"n_episodes": None}} if two_passes else {})
