"""`interbench table` and `interbench compare`: finished runs, side by side. They only read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interbench_tasks.errors import InterbenchError, near_miss
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.redaction import redact

if TYPE_CHECKING:  # what a command needs is imported when it runs: `interbench --help` stays quick
    from interbench_tasks.report.compared import Part
    from interbench_tasks.runs.score import ScoredRun

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.", show_default=False)]
FormatOption = Annotated[str, typer.Option("--format", help="text, md, csv, latex or json.")]
OutOption = Annotated[Path | None, typer.Option(help="File to write to, instead of the terminal.")]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        help="What a RUN is called everywhere, instead of its receiver; once for each RUN, in their order.",
        show_default=False,
    ),
]
FORMATS = ("text", "md", "csv", "latex", "json")
LAYOUTS = ("interfeedback", "human", "controls", "mmrc", "mmpcbench", "list")


def table(
    runs: Runs,
    layout: Annotated[
        str | None,
        typer.Option(
            help="interfeedback: receivers x providers; human: by category and round; controls: arms and placebos; "
            "mmrc: abilities and memories; mmpcbench: detection, PCQ and strategies; list: every metric. "
            "Default: interfeedback; where no run has a place in it, that of each run's protocol.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = "text",
    intervals: Annotated[bool, typer.Option(help="Show 95% intervals (in text and latex).")] = True,
    label: LabelOption = None,
    out: OutOption = None,
) -> None:
    """Show runs as tables, one for each task: the paper's layout, the controls', or every metric.

    Runs that have no place in the layout are left out, and named.
    """
    from interbench_tasks.report.fitting import fitting_runs
    from interbench_tasks.report.formats import as_csv, as_latex, as_markdown, as_text
    from interbench_tasks.report.layouts import shown_from
    from interbench_tasks.runs.comparable import names_of, refuse_doubles, table_warnings

    if layout is not None:
        _allowed("--layout", layout, LAYOUTS)
    _allowed("--format", format, FORMATS)
    found = _read(runs, label or ())
    refuse_doubles(found)
    tables, warnings = fitting_runs(found, layout)
    blocks = [shown_from(own.runs, own.layout, intervals=intervals) for own in tables]
    for own in tables:
        warnings += table_warnings(dict(zip(names_of(own.runs), own.runs, strict=True)))
    grids = [grid for block in blocks for grid in block.grids]
    texts = {
        "text": lambda: "\n\n".join(map(as_text, grids)),
        "md": lambda: "\n\n".join(map(as_markdown, grids)),
        "latex": lambda: "\n\n".join(map(as_latex, grids)),
        "csv": lambda: as_csv([row for block in blocks for row in block.flat]),
        "json": lambda: _json([row for block in blocks for row in block.nested]),
    }
    _say(texts[format](), format, warnings, out)


def compare(
    runs: Runs,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="A metric, or a glob like 'repeat_rate.*'; may be repeated. Default: accuracy, "
            "accuracy_after.*, correction_rate.*",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = "text",
    show: Annotated[
        list[str] | None,
        typer.Option(
            help="pairs, ranking, categories or judges; may be repeated. Default: pairs, and from three runs on the "
            "ranking.",
            show_default=False,
        ),
    ] = None,
    pair_labels: Annotated[
        bool, typer.Option("--pair-labels", help="Pair a provider's label also where it is another model in each run.")
    ] = False,
    label: LabelOption = None,
    out: OutOption = None,
) -> None:
    """Compare runs of a task on the same items: paired differences with 95% intervals, ranks, categories.

    Up to four runs are compared each with each, more each with the first. Runs of several tasks: task by task. Of
    conversations each question weighs alike, in pairs, rankings and categories, as in the runs' own tables.
    """  # fmt: skip
    from interbench_tasks.report.compared import PARTS, parts_of
    from interbench_tasks.runs.compare_tasks import comparisons_from

    _allowed("--format", format, FORMATS)
    for name in show or ():
        _allowed("--show", name, PARTS)
    if format == "csv" and len(show or ()) > 1:
        raise InterbenchError("--format csv has room for one table: name one --show")
    found = _read(runs, label or ())
    comparisons, left_out = comparisons_from(found, tuple(metric or ()), pair_labels=pair_labels)
    shown = tuple(show or (("pairs",) if format == "csv" else ()))
    compared = [parts_of(one, [run for run in found if run.task in one.tasks], shown) for one in comparisons]
    warnings = [*left_out, *(told for one in comparisons for told in one.warnings)]
    _say(_compared_text(compared, left_out, format), format, warnings, out)


def _compared_text(compared: Sequence[Sequence[Part]], left_out: Sequence[str], format: str) -> str:
    """What was compared, task by task, in a format."""
    from interbench_tasks.report.formats import as_csv, as_latex, as_markdown, as_text

    parts = [part for own in compared for part in own]
    texts = {
        "text": lambda: "\n\n".join(
            "\n\n".join([*map(as_text, part.grids), *(["\n".join(part.lines)] if part.lines else [])]) for part in parts
        ),
        "md": lambda: "\n\n".join("\n\n".join([*map(as_markdown, part.grids), *part.lines]) for part in parts),
        "latex": lambda: "\n\n".join(
            "\n\n".join([*map(as_latex, part.grids), "\n".join(f"% {line}" for line in part.lines)]) for part in parts
        ),
        "csv": lambda: as_csv([row for part in parts for row in part.flat]),
        "json": lambda: _json(
            {
                "comparisons": [{key: value for part in own for key, value in part.nested.items()} for own in compared],
                "left_out": list(left_out),
            }
        ),
    }
    return texts[format]()


def _read(paths: Sequence[Path], labels: Sequence[str]) -> list[ScoredRun]:
    from interbench_tasks.runs.folder import empty_run_folders, run_folders
    from interbench_tasks.runs.names import labels_by_folder, refuse_shared_labels
    from interbench_tasks.runs.reading import runs_from_folders

    for folder in [folder for path in paths for folder in empty_run_folders(path)]:
        typer.echo(redact(f"warning: {folder}: was stopped before its first episode ended; left out"), err=True)
    folders = [folder for path in paths for folder in run_folders(path)]
    named = labels_by_folder(labels, paths, run_folders)
    found = runs_from_folders(folders, offers_from(build_plugin_manager()))
    refuse_shared_labels(named, {run.folder: run.task for run in found})
    return [replace(run, label=named.get(run.folder, "")) for run in found]


def _allowed(option: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InterbenchError(f"{option} {value}{near_miss(value, allowed)}: allowed: {', '.join(allowed)}")


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)


def _say(text: str, format: str, warnings: Sequence[str], out: Path | None) -> None:
    """Print a table or write it to a file; warnings go with it where the format has room, and always to stderr."""
    told = [redact(f"warning: {' '.join(warning.split())}") for warning in warnings]
    for line in told:
        typer.echo(line, err=True)
    marks: Mapping[str, str] = {"text": "", "md": "> ", "latex": "% "}
    if out is None:
        typer.echo(text)
        return
    if format in marks and told:
        text = "\n".join([*(marks[format] + line for line in told), "", text])
    try:
        out.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InterbenchError(f"--out {out}: cannot be written: {error.strerror or error}") from error
    typer.echo(f"wrote {out}")
