"""`interbench table` and `interbench compare`: finished runs, side by side. They only read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from interbench_tasks.errors import InterbenchError
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.redaction import redact
from interbench_tasks.report.formats import Format

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.", show_default=False)]
FormatOption = Annotated[str, typer.Option("--format", help="text, csv, latex or json.")]
OutOption = Annotated[Path | None, typer.Option(help="File to write to, instead of the terminal.")]
FORMATS: tuple[Format, ...] = ("text", "csv", "latex", "json")


def table(
    runs: Runs,
    layout: Annotated[str, typer.Option(help="interfeedback (the paper's) or controls.")] = "interfeedback",
    format: FormatOption = "text",
    intervals: Annotated[bool, typer.Option(help="Show 95% intervals.")] = True,
    out: OutOption = None,
) -> None:
    """Show runs as one table: receivers by providers, or each arm beside its placebo."""
    from interbench_tasks.report.formats import as_csv, as_latex, as_text
    from interbench_tasks.report.layouts import RunTable, controls_grid, flat_rows, interfeedback_grid, providers_of

    _allowed("--layout", layout, ("interfeedback", "controls"))
    _allowed("--format", format, FORMATS)
    by_task: dict[str, list[RunTable]] = {}
    for run in _read(runs):
        metrics = run.metrics()
        if not metrics["finished"]:
            typer.echo(f"warning: {run.folder}: the run is UNFINISHED; do not publish its numbers", err=True)
        by_task.setdefault(run.task, []).append(
            RunTable(
                receiver=run.receiver,
                task=run.task,
                providers=providers_of(run.manifest),
                arms=run.manifest.get("protocol_options", {}).get("arms", ()),
                metrics=metrics["metrics"],
            )
        )
    grid_from = interfeedback_grid if layout == "interfeedback" else controls_grid
    grids = [grid_from(own, intervals=intervals) for own in by_task.values()]
    flat = [row for own in by_task.values() for row in flat_rows(own)]
    texts = {
        "text": lambda: "\n\n".join(map(as_text, grids)),
        "latex": lambda: "\n\n".join(map(as_latex, grids)),
        "csv": lambda: as_csv(flat),
        "json": lambda: _json(flat),
    }
    _say(texts[format](), out)


def compare(
    runs: Runs,
    metric: Annotated[list[str] | None, typer.Option(help="A metric, or a glob; may be repeated.")] = None,
    format: FormatOption = "text",
    out: OutOption = None,
) -> None:
    """Compare receivers on the same items: paired differences with 95% intervals."""
    from interbench_tasks.report import comparison as shown
    from interbench_tasks.report.formats import as_csv, as_latex, as_text
    from interbench_tasks.runs.compare import DEFAULT_METRICS, compared

    _allowed("--format", format, FORMATS)
    found = compared(_read(runs), tuple(metric) if metric else DEFAULT_METRICS)
    for warning in found.warnings:
        typer.echo(f"warning: {redact(warning)}", err=True)
    grids = [shown.own_grid(found), shown.pairs_grid(found)]
    texts = {
        "text": lambda: "\n\n".join([*map(as_text, grids), "\n".join(shown.foot_lines(found))]),
        "latex": lambda: "\n\n".join([*map(as_latex, grids), *[f"% {line}" for line in shown.foot_lines(found)]]),
        "csv": lambda: as_csv(list(shown.flat_pairs(found))),
        "json": lambda: _json(shown.as_json(found)),
    }
    _say(texts[format](), out)


def _read(paths: list[Path]) -> list[Any]:
    from interbench_tasks.runs.folder import run_folders
    from interbench_tasks.runs.score import run_from_folder

    offers = offers_from(build_plugin_manager())
    return [run_from_folder(folder, offers) for path in paths for folder in run_folders(path)]


def _allowed(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InterbenchError(f"{option} {value}: allowed: {', '.join(allowed)}")


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)


def _say(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text)
        return
    try:
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InterbenchError(f"--out {out}: cannot be written: {error.strerror or error}") from error
    typer.echo(f"wrote {out}")
