"""`interbench ...`: what the harness's own command line has no word for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from interbench_tasks import (
    __version__,
    cli_estimate,
    cli_judge,
    cli_people,
    cli_people_labels,
    cli_report,
    cli_run,
    cli_tables,
)
from interbench_tasks.cli_convert import convert_app
from interbench_tasks.cli_ledger import ledger_app
from interbench_tasks.errors import ConfigError, InterbenchError, RunFolderError, near_miss
from interbench_tasks.plugin_manager import Offers, build_plugin_manager, offers_from
from interbench_tasks.redaction import redact, shown_cause

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Interactive benchmarks for lmms-eval. Runs are started by lmms-eval itself; this checks and scores.",
)
app.add_typer(ledger_app, name="ledger")
app.add_typer(convert_app, name="convert")
app.add_typer(cli_people.people_app, name="people")
for _command in cli_people_labels.COMMANDS:
    cli_people.people_app.command()(_command)
MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}


def main() -> None:
    """The entry point: our own errors are told in one block of text, exit code 1."""
    try:
        app()
    except InterbenchError as error:
        typer.echo(redact(str(error)), err=True)
        raise SystemExit(1) from None
    except Exception as error:  # a traceback that would show a key is not shown
        if shown_cause(error) is not None:
            raise
        typer.echo(redact(f"{type(error).__name__}: {error}"), err=True)
        raise SystemExit(1) from None


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Task YAMLs, or names of tasks of ours.", show_default=False)],
    data: Annotated[bool, typer.Option(help="Also load the data set and make its first episode.")] = True,
) -> None:
    """Check task YAMLs: every problem of a file at once, before a model is loaded."""
    from interbench_tasks.task_files import check_task_file, mapping_text, own_tasks

    offers = offers_from(build_plugin_manager())
    n_wrong = 0
    own = own_tasks()
    for file in [one if one.exists() else own.get(str(one), one) for one in files]:
        try:
            options = check_task_file(file, offers, with_data=data)
        except InterbenchError as error:
            n_wrong += 1
            told = str(error) if isinstance(error, ConfigError) else f"{file}: {error}"
            typer.echo(redact(told), err=True)
        else:
            typer.echo(f"{file}: ok (protocol {options.common.protocol}, metrics {options.metrics})")
            if data:
                typer.echo(mapping_text(file, options))
    raise typer.Exit(1 if n_wrong else 0)


@app.command()
def score(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.", show_default=False)],
    categories: Annotated[bool, typer.Option(help="Show every category too.")] = False,
) -> None:
    """Compute the metrics again from episodes.jsonl alone, and show them."""
    from interbench_tasks.runs.folder import empty_run_folders, run_folders

    offers = offers_from(build_plugin_manager())
    problems: list[str] = []
    folders = [folder for run in runs for folder in run_folders(run)]
    for folder in folders:
        try:
            _show_scores(folder, offers, categories=categories)
        except RunFolderError as error:  # one damaged run must not hide the others
            if len(folders) == 1:
                raise
            problems.append(str(error))
    for folder in [folder for run in runs for folder in empty_run_folders(run)]:
        typer.echo(redact(f"{folder}: was stopped before its first episode ended"), err=True)
    for problem in problems:
        typer.echo(redact(problem), err=True)
    if problems:
        raise typer.Exit(1)


def _show_scores(folder: Path, offers: Offers, *, categories: bool) -> None:
    from interbench_tasks.report.table import table_text, unfinished_lines
    from interbench_tasks.runs.folder import MANIFEST, read_json
    from interbench_tasks.runs.score import score_folder
    from interbench_tasks.runs.usage_file import read_usage, usage_lines

    metrics = score_folder(folder, offers)
    models = read_json(folder / MANIFEST)["models"]
    names = ", ".join(f"{role} {model['name']}" for role, model in models.items())
    if not metrics["finished"]:
        for line in unfinished_lines(metrics):
            typer.echo(line)
    used = read_usage(folder)
    if used is not None and used["stopped"]:
        typer.echo(f"STOPPED: {used['stopped']}")
    typer.echo(table_text(metrics["metrics"], title=f"{metrics['task']}  ({names})\n{folder}"))
    for category, table in metrics["categories"].items() if categories else ():
        typer.echo("\n" + table_text(table, title=f"category {category}"))
    if used is not None:
        typer.echo("\nused: " + "\n      ".join(usage_lines(used)))
    typer.echo("")


app.command()(cli_estimate.estimate)
app.command()(cli_tables.table)
app.command()(cli_tables.compare)
app.command()(cli_judge.judge)
app.command()(cli_people.serve)
app.command()(cli_report.report)
app.command(context_settings=cli_run.PASS_THROUGH)(cli_run.run)


@app.command("new-task")
def new_task(
    name: Annotated[str, typer.Option(help="The new task's name.", show_default=False)],
    source: Annotated[str, typer.Option("--from", help="Task to copy: a name of ours, or a YAML file.")] = (
        "interfeedback_local"
    ),
    data: Annotated[Path | None, typer.Option(help="Your JSONL, JSON, CSV or parquet file, or a saved folder.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="ours=yours, e.g. question=prompt; may be repeated.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the YAML.")] = Path(),
) -> None:
    """Write a self-contained task YAML for your own data."""
    from interbench_tasks.task_files import check_task_file, mapping_text, new_task_file, own_tasks

    tasks = own_tasks()
    path = Path(source) if Path(source).suffix in (".yaml", ".yml") else tasks.get(source)
    if path is None:
        raise InterbenchError(f"--from {source}: no such task{near_miss(source, tasks)}; allowed: {', '.join(tasks)}")
    target = out / f"{name}.yaml"
    new_task_file(path, target, name=name, data=data, columns=_pairs(column or []))
    typer.echo(f"wrote {target}")
    try:
        options = check_task_file(target, offers_from(build_plugin_manager()), with_data=data is not None)
    except InterbenchError as error:
        typer.echo(f"It still needs your hand:\n{redact(str(error))}\nThen: interbench check {target}", err=True)
        raise typer.Exit(1) from None
    if data is not None:
        typer.echo(mapping_text(target, options))
    typer.echo(f"It is ready: lmms-eval --tasks {name} --include_path {out.resolve()} --model ... --output_path runs/")


def _pairs(words: list[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        ours, sign, yours = word.partition("=")
        if not sign or not ours or not yours:
            raise InterbenchError(f"--column {word}: must be ours=yours, e.g. question=prompt")
        pairs[ours] = yours
    return pairs


@app.command()
def tasks(
    path: Annotated[bool, typer.Option("--path", help="Only the folder, for lmms-eval's --include_path.")] = False,
) -> None:
    """List our tasks, or show their folder."""
    from interbench_tasks.task_files import own_tasks, task_folder

    if path:
        typer.echo(str(task_folder()))
        return
    for name, file in own_tasks().items():
        typer.echo(f"{name}  {file}")


@app.command()
def doctor(
    server: Annotated[
        list[str] | None, typer.Option(help="Base URL of a server to ask, e.g. http://localhost:8000/v1.")
    ] = None,
) -> None:
    """Look at versions, plugins, tasks, keys, servers and disk; exit 1 if something is wrong."""
    from interbench_tasks.doctor import examine

    n_wrong = 0
    for finding in examine(tuple(server or ())):
        n_wrong += finding.state == "wrong"
        cure = f"\n        cure: {finding.cure}" if finding.cure else ""
        typer.echo(redact(f"{MARKS[finding.state]} {finding.what}: {finding.text}{cure}"))
    typer.echo(f"\n{n_wrong} problem(s) found" if n_wrong else "\nall is well")
    raise typer.Exit(1 if n_wrong else 0)


@app.command()
def version() -> None:
    """Show the version."""
    typer.echo(__version__)
