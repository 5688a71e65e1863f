"""`interbench estimate`: what a run will take, before it is paid for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interbench_tasks.errors import BudgetError, InterbenchError, near_miss

if TYPE_CHECKING:
    from interbench_tasks.estimating.task import Task
    from interbench_tasks.plugin_manager import Offers
    from interbench_tasks.rows import DataSet


def estimate(
    task: Annotated[str, typer.Argument(help="A task of ours, or a task YAML.", show_default=False)],
    receiver: Annotated[
        str | None, typer.Option(help="The model under test, as in model=..., e.g. openai:gpt-4o.", show_default=False)
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Your data file, for tasks that read one.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N rows, as in lmms-eval.")] = None,
    accuracy: Annotated[str | None, typer.Option(help="Share of right first answers: 0.4 or 0.3-0.5.")] = None,
    provider_accuracy: Annotated[
        str | None, typer.Option(help="Share of the receiver's wrong questions that a provider solves.")
    ] = None,
    share: Annotated[
        list[str] | None, typer.Option(help="Critiques: share of calls that models decide, e.g. clarification=0.2.")
    ] = None,
    reply_tokens: Annotated[str | None, typer.Option(help="Mean length of a reply: 300 or 200-600.")] = None,
    prices: Annotated[Path | None, typer.Option(help="File of prices, in USD per million tokens.")] = None,
    earlier: Annotated[
        list[Path] | None, typer.Option("--from", help="A run of this task, e.g. one with --limit 20.")
    ] = None,
    probe: Annotated[
        int | None, typer.Option(min=0, help="Play N episodes now, for real; the run takes them from the ledger.")
    ] = None,
) -> None:
    """Say what a run will take, before it is paid for: calls, tokens and money of each role, as ranges."""
    from interbench_tasks.estimating.given import Given, lengths_given, rate_given, shares_given
    from interbench_tasks.estimating.learning import played_in
    from interbench_tasks.estimating.played import Played
    from interbench_tasks.estimating.probe import probed_estimate
    from interbench_tasks.estimating.text import estimate_text
    from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
    from interbench_tasks.prices import price_list

    manager = build_plugin_manager()
    given = Given(
        accuracy=None if accuracy is None else rate_given(accuracy, "--accuracy"),
        provider_accuracy=None if provider_accuracy is None else rate_given(provider_accuracy, "--provider-accuracy"),
        reply=None if reply_tokens is None else lengths_given(reply_tokens, "--reply-tokens"),
        shares=shares_given(share or (), "--share"),
    )
    made = _task_from(task, receiver, data, limit, offers_from(manager))
    named = None if prices is None else str(prices)
    known = price_list(named, made.options.common.budget.prices)
    played = played_in(earlier, made) if earlier else Played()
    found = probed_estimate(made, played, n=probe, given=given, prices=known, manager=manager)
    typer.echo(estimate_text(found, made, given))


def _task_from(words: str, receiver: str | None, data: Path | None, limit: int | None, offers: Offers) -> Task:
    """The task of a name or a file.

    Raises: ConfigError, DataError for a task that cannot be played; BudgetError where there is none of that name.
    """
    from interbench_tasks.config import task_options_from
    from interbench_tasks.estimating.forecasts import forecast_of
    from interbench_tasks.estimating.task import Task, receiver_role
    from interbench_tasks.task_files import own_tasks
    from interbench_tasks.yaml_files import config_from_file

    tasks = own_tasks()
    path = Path(words) if Path(words).suffix in (".yaml", ".yml") else tasks.get(words)
    if path is None:
        raise BudgetError(f"{words}: no such task{near_miss(words, tasks)}; allowed: {', '.join(tasks)}, or a YAML")
    config = config_from_file(path)
    if not isinstance(config.get("task"), str):
        raise InterbenchError(f"{words}: is a group of tasks; estimate each of them")
    options = task_options_from(config, where=str(path), offers=offers)
    rows = _rows_of(config, path, data)
    task = Task(
        name=config["task"],
        options=options,
        data=rows,
        rows=range(min(len(rows.rows), limit or len(rows.rows))),
        receiver=receiver_role(receiver, options),
        offers=offers,
    )
    forecast_of(task)  # it is told first where nothing can be said
    return task


def _rows_of(config: dict[str, Any], path: Path, data: Path | None) -> DataSet:
    from interbench_tasks.rows import load_rows
    from interbench_tasks.task_files import data_of

    if data is None:
        return data_of(config, path)
    split = config.get("test_split") or config.get("validation_split") or "test"
    return load_rows(str(data), name=None, split=split, options={})
