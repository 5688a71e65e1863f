"""Plays one task for the harness: what the command line said, which model it is, what to tell the user."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pluggy
from loguru import logger

from interbench_tasks import settings
from interbench_tasks.budget import limits_from, limits_text, stopped_text
from interbench_tasks.config import TaskOptions
from interbench_tasks.engine import BatchedModel
from interbench_tasks.errors import HarnessError
from interbench_tasks.families import family_of, related
from interbench_tasks.generation import generation_settings_from
from interbench_tasks.harness.batched_model import HarnessModel, batch_size_of
from interbench_tasks.harness.usage import Reported, budget_used_up
from interbench_tasks.hookspecs import Backend
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.records import HUMAN
from interbench_tasks.redaction import redact, shown_cause
from interbench_tasks.rows import DataSet
from interbench_tasks.runs.plan import Facts, RunPlan
from interbench_tasks.runs.play import PlayedRun, play_run
from interbench_tasks.runs.status import note
from interbench_tasks.runs.usage_file import usage_lines
from interbench_tasks.task_roles import Role
from interbench_tasks.usage import Spent

FOLDER = "interbench"


def play_task(
    lm: Any,  # noqa: ANN401 - the harness is untyped
    *,
    task: str,
    options: TaskOptions,
    data: DataSet,
    wanted: Sequence[tuple[int, int]],
    n_total: int,
    from_all_ranks: Callable[[Facts], Facts],
    run_id: str,
    args: Any,  # noqa: ANN401 - the harness is untyped
    manager: pluggy.PluginManager,
    offers: Offers,
    generation: Mapping[str, Any],
    spent_before: Spent,
) -> PlayedRun:
    """Play a task's episodes with the harness's model and say what came of it.

    Args: args = the harness's command line, None where it was called from Python; spent_before = what earlier tasks of
        the command used.
    """
    rank, world_size = settings.rank_and_world_size()
    output_path = getattr(args, "output_path", None)
    base = Path(output_path) if output_path else settings.runs_folder()
    receiver_settings = generation_settings_from(generation)  # --gen_kwargs may have changed them
    plan = RunPlan(
        task=task,
        options=dataclasses.replace(options, receiver_settings=receiver_settings),
        data=data,
        wanted=wanted,
        n_total=n_total,
        run_id=run_id,
        folder=base / FOLDER / run_id / task,
        rank=rank,
        world_size=world_size,
        people=settings.people_desk() or base / FOLDER,
        stop_reason=budget_used_up,
        spent_before=spent_before,
        from_all_ranks=from_all_ranks,
    )
    if limited := limits_text(limits_from(options.common.budget), world_size):
        logger.info(f"interbench: {limited}")
    _say_where_people_are_asked(options, base)
    receiver = receiver_from(lm, args)
    note("begun", task=task, folder=plan.folder, metrics=not getattr(args, "predict_only", False))
    with _a_stop_is_told(plan.folder):
        played = play_run(
            plan,
            receiver=receiver,
            manager=manager,
            offers=offers,
            harness_model=harness_model_from,
            reported=lambda backend, role: Reported(backend, task=task, source="judge" if role == "judge" else "model"),
        )
    _say(played, options, len(wanted), output_path)
    _say_usage(played, len(wanted))
    _say_what_is_simulated(receiver, options)
    say_who_is_related(receiver, options)
    return played


def _say_where_people_are_asked(options: TaskOptions, base: Path) -> None:
    if any(role.words.backend == HUMAN for roles in options.roles.values() for role in roles):
        page = settings.people_desk() or base
        logger.info(f"interbench: people give the feedback; the page for them: interbench serve {page}")


def _say_usage(played: PlayedRun, n_wanted: int) -> None:
    for line in usage_lines(played.usage):
        logger.info(f"interbench: {line}")
    if played.usage.get("stopped"):
        kept = settings.ledger_folder() is not None
        told = stopped_text(played.usage["stopped"], n_skipped=played.report.n_skipped, n_wanted=n_wanted, ledger=kept)
        logger.warning(f"interbench: {told}")


@contextlib.contextmanager
def _a_stop_is_told(folder: Path) -> Iterator[None]:
    """Says where the finished episodes are when the run is stopped; a backend of the harness may call sys.exit()."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        by = "" if isinstance(stop, KeyboardInterrupt) else f" by {type(stop).__name__}: {stop}"
        logger.warning(f"interbench: stopped{by}; finished episodes are in {folder}. Run the same command to go on.")
        raise


def _say_what_is_simulated(receiver: Backend | BatchedModel, options: TaskOptions) -> None:
    simulated = [name for name, own in options.roles.items() if any(role.words.backend == "simulated" for role in own)]
    if simulated and not getattr(receiver, "simulated", False):
        what = "numbers after feedback" if simulated == ["provider"] else "numbers that come from it"
        logger.warning(
            f"interbench: {', '.join(simulated)} was a simulation, so the {what} say nothing about "
            f"{receiver.name}; name a real model, e.g. {settings.role_variable(simulated[0])}=openai:gpt-4o-2024-08-06"
        )


def say_who_is_related(receiver: Backend | BatchedModel, options: TaskOptions) -> None:
    """Warn of judges of the tested model's family, who tend to be kind to it."""
    names = [f"{role.words.backend}:{role.words.model}" for role in options.roles.get("judge", ())]
    found = related(receiver.name, names)
    if found:
        logger.warning(
            f"interbench: {', '.join(found)} judged {receiver.name}, which is of the same family "
            f"({family_of(found[0])}): such a judge may be kinder to it; compare with a panel without it"
        )


def receiver_from(lm: Any, args: Any) -> Backend | BatchedModel:  # noqa: ANN401 - the harness is untyped
    """The harness's model as the receiver: natively asynchronous where it is ours, else in batches."""
    if hasattr(lm, "interbench_backend"):
        backend: Backend = lm.interbench_backend()
        return backend
    model_args = _parsed(getattr(args, "model_args", None))
    _refuse_lockstep(lm, model_args)
    model = getattr(args, "model", None) or type(lm).__name__
    _close_idle_connections(lm)
    return HarnessModel(
        lm,
        name=_name_of(model, model_args),
        fingerprint=_fingerprint(f"{type(lm).__module__}.{type(lm).__name__}", model_args),
        batch_size=batch_size_of(lm, model_args),
    )


LOCKSTEP = ("FSDP", "DEEPSPEED", "MEGATRON")
"""Ways of accelerate to spread one model over ranks, which must then all make the same calls."""
SHARED = (
    *("tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size"),
    *("tp_size", "dp_size", "pp_size", "tp", "dp", "tp_plan"),
)
"""Model arguments that spread one model over GPUs. Under several ranks vLLM gathers the calls of all ranks for each
batch, and its data-parallel ranks step together; each rank of SGLang would start an engine of its own on the same GPUs.
"""
CURE = (
    "Serve the model (vLLM, SGLang) and use --model interbench_api --model_args model=openai:NAME@http://HOST:PORT/v1"
)


def _refuse_lockstep(lm: Any, options: Mapping[str, Any]) -> None:  # noqa: ANN401 - the harness is untyped
    """Refuse models whose ranks must make the same calls: episodes differ in length, so such ranks hang for ever.

    Args: options = the model's arguments.
    """
    kind = str(getattr(getattr(lm, "accelerator", None), "distributed_type", ""))
    if any(word in kind.upper() for word in LOCKSTEP):
        raise HarnessError(
            f"the model runs under {kind}, whose ranks must all make the same number of calls; episodes differ in "
            f"length, so the ranks would wait for each other for ever.\n  {CURE}"
        )
    _, world_size = settings.rank_and_world_size()
    shared = next((name for name in SHARED if _spreads(options.get(name, getattr(lm, name, None)))), None)
    if world_size > 1 and shared is not None:
        raise HarnessError(
            f"{shared} = {options.get(shared, getattr(lm, shared, None))} spreads one model over {world_size} ranks, "
            "which must then all make the same number of calls; episodes differ in length, so the ranks would wait "
            "for each other for ever.\n  Start one process, without torchrun or accelerate launch: the model takes "
            f"its GPUs by itself. Or: {CURE[0].lower()}{CURE[1:]}"
        )


def _spreads(value: object) -> bool:
    """Whether a model argument asks for more than one GPU: a number above 1, or a plan."""
    if isinstance(value, str) and not value.isdigit():
        return value.lower() not in ("", "none", "false")
    return not isinstance(value, bool) and isinstance(value, int | float | str) and float(value) > 1


def harness_model_from(role: Role) -> BatchedModel:
    """A role played by a model of the harness: `harness:qwen2_5_vl,pretrained=...`.

    Raises: HarnessError where the harness does not know the model or cannot load it.
    """
    from lmms_eval.models import get_model

    options = dict(role.words.options)
    try:
        lm = get_model(role.words.model)(**options)
        _refuse_lockstep(lm, options)
    except HarnessError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model raises is raised again as ours
        told = redact(f"{role.named_in}: the harness cannot load '{role.words.model}': {error}")
        raise HarnessError(told) from shown_cause(error)
    _close_idle_connections(lm)
    return HarnessModel(
        lm,
        name=_name_of(role.words.model, options),
        fingerprint=_fingerprint(role.words.model, options),
        batch_size=batch_size_of(lm, options),
    )


def _parsed(model_args: object) -> dict[str, Any]:
    from lmms_eval.utils import simple_parse_args_string

    if isinstance(model_args, Mapping):
        return dict(model_args)
    parsed: dict[str, Any] = simple_parse_args_string(str(model_args)) if model_args else {}
    return parsed


WEIGHTS = ("pretrained", "model", "model_path", "model_base", "peft", "lora_path")
"""Model arguments that may name a local folder of weights; a cache folder is none."""


def _fingerprint(model: str, model_args: Mapping[str, Any]) -> str:
    """What tells this model's replies from another's; weights in a local folder count by their files.

    Without that, a new checkpoint in the same folder would be given the replies of the old one.
    """
    files = [part for key in WEIGHTS for part in _files_of(model_args.get(key))]
    digest = hashlib.sha256("\n".join(files).encode()).hexdigest()[:16] if files else ""
    return redact(f"harness:{model}:{sorted(model_args.items())}:{digest}")


def _files_of(value: object) -> list[str]:
    """Name, size and time of each file below a local folder (or of one file); empty for anything else."""
    path = Path(value).expanduser() if isinstance(value, str) and value else None
    if path is None or not path.exists():
        return []
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(file, file.stat()) for file in found if file.is_file()]
    return [f"{file}:{stat.st_size}:{stat.st_mtime_ns}" for file, stat in stats]


def _name_of(model: str, model_args: Mapping[str, Any]) -> str:
    for key in ("pretrained", "model_version", "model", "model_name"):
        if model_args.get(key):
            return redact(f"{model}:{model_args[key]}")
    return model


def _close_idle_connections(lm: Any) -> None:  # noqa: ANN401 - the harness is untyped
    """Cure the harness's async_openai, which would pay each call twice.

    Its client is used from a new event loop in every `generate_until`; a connection kept from the loop before makes
    the call fail ("Event loop is closed") and be sent again.
    """
    if type(lm).__name__ != "AsyncOpenAIChat":
        return
    import openai

    client_class = openai.DefaultAsyncHttpxClient
    limits = _limits_class(client_class)(max_keepalive_connections=0)
    lm.client = lm.client.with_options(http_client=client_class(limits=limits))


def _limits_class(client_class: type) -> Any:  # noqa: ANN401 - httpx or httpx2, whichever the SDK uses
    import importlib

    base = next(parent for parent in client_class.__mro__ if parent.__module__.partition(".")[0].startswith("httpx"))
    return importlib.import_module(base.__module__.partition(".")[0]).Limits


def _say(played: PlayedRun, options: TaskOptions, n_wanted: int, output_path: str | None) -> None:
    report = played.report
    if not output_path:
        logger.warning(f"interbench: no --output_path was given: transcripts and metrics are in {played.folder}")
    logger.info(
        f"interbench: {report.calls} calls made ({report.failed_calls} failed), {report.ledger_hits} replies from the "
        f"ledger ({settings.ledger_folder() or 'off'}), {report.wall_s:.1f} s"
    )
    for problem in report.problems:
        logger.warning(f"interbench: {problem}")
    for warning in played.ledger_warnings:
        logger.warning(f"interbench: {warning}")
    for warning in played.picture_warnings:
        logger.warning(f"interbench: {warning}")
    for error in played.watcher_errors:
        logger.error(f"interbench: {error}")
        note("failed", error, task=played.folder.name)
    if played.n_failed == (report.n_skipped if played.usage.get("stopped") else 0):
        return  # what a budget kept from starting did not fail; `_say_usage` tells it
    share = played.n_unscored / max(n_wanted, 1)
    reasons = sorted(played.errors.items(), key=lambda item: -item[1])[:5]
    told = "; ".join(f"{count} x {text}" for text, count in reasons)
    level = "ERROR" if share > options.common.max_failed_share else "WARNING"
    n_decided = played.n_failed - played.n_unscored
    decided = f"in {n_decided} episodes judges failed, and the others decided without them" if n_decided else ""
    if played.n_unscored:
        decided = f"; {decided}" if decided else ""
        logger.log(
            level,
            f"interbench: {played.n_unscored} of {n_wanted} episodes ({share:.1%}) have no score, or not in every arm: "
            f"{told}. They are unscored, not wrong{decided}; see {played.folder}",
        )
    else:
        logger.warning(f"interbench: {decided}: {told}; see {played.folder}")
