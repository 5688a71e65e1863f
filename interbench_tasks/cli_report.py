"""`interbench report`: runs as one page, or as tables for a paper, a spreadsheet, a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from interbench_tasks.errors import InterbenchError, near_miss
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.redaction import redact

if TYPE_CHECKING:  # what a command needs is imported when it runs: `interbench --help` stays quick
    from interbench_tasks.report.writing import Format

SUFFIXES = {".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".json": "json", ".tex": "latex"}
"""What a file's name says of its format, where --format does not."""


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write to. Default: report.html; other formats go to the terminal.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="html, md, csv, json or latex. Default: what the file's name says, else html.", show_default=False
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="What a RUN is called everywhere, instead of its receiver; once for each RUN, in their order.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a report of runs, side by side: numbers, charts, every transcript with filters and search, costs.

    The page is one file that loads nothing from anywhere. What of a run cannot be read is named in it.
    """
    from interbench_tasks.report.writing import FORMATS, REPORT, report_text, write_report

    chosen = format or _format_by_name(out)
    if chosen not in FORMATS:
        raise InterbenchError(f"--format {chosen}{near_miss(chosen, FORMATS)}: allowed: {', '.join(FORMATS)}")
    offers = offers_from(build_plugin_manager())
    if out is None and chosen != "html":
        text, content = report_text(runs, offers, cast("Format", chosen), labels=label or ())
        _tell(content.problems)
        typer.echo(text)
        return
    written = write_report(runs, out or Path(REPORT), offers, cast("Format", chosen), labels=label or ())
    _tell(written.problems)
    size = f"{written.n_bytes / 1e6:.1f} MB, {written.n_episodes:,} episodes"
    typer.echo(f"wrote {written.path} ({size}, {written.wall_s:.1f} s)")


def _format_by_name(out: Path | None) -> str:
    """The format that a file's name asks for; html where it asks for none.

    Raises: InterbenchError for an ending of something else: a page called report.pdf opens in nothing.
    """
    ending = out.suffix.lower() if out is not None else ""
    if ending and ending not in SUFFIXES:
        raise InterbenchError(
            f"-o {out}: no format ends in {ending}{near_miss(ending, list(SUFFIXES))}: allowed: {', '.join(SUFFIXES)}; "
            "or name the --format"
        )
    return SUFFIXES.get(ending, "html")


def _tell(problems: tuple[str, ...]) -> None:
    for problem in problems:
        typer.echo(redact(f"warning: {' '.join(problem.split())}"), err=True)
