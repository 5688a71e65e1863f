"""The report's section on people: how far they agree with the judges, and the numbers that their labels correct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interbench_tasks.errors import InterbenchError
from interbench_tasks.labels import tables
from interbench_tasks.labels.agreement import agreements_of
from interbench_tasks.labels.calibrating import Calibrated, calibrated
from interbench_tasks.labels.opinions import labelled_run
from interbench_tasks.labels.sampling import SAMPLE
from interbench_tasks.labels.store import LABELS
from interbench_tasks.report.chart_dots import dots
from interbench_tasks.report.chart_numbers import numbers_from
from interbench_tasks.report.formats import Grid
from interbench_tasks.report.section_parts import TaskRuns
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable, Section

TITLE = "People and judges"
INTRO = (
    "People labelled a sample of the replies, drawn by chance, without a verdict or a model's name. How far they agree "
    "with each other says how far anybody can agree here; how far they agree with the judges says how far judges can "
    "be trusted. The corrected numbers are the panel's over all replies, moved by what it got wrong on the sample."
)
PROTOCOLS = ("critique", "conversation")
Part = ReportTable | Chart | str


def people_section(runs: Sequence[ReportRun]) -> Section | None:
    """Agreement and corrected numbers of every run that has labels; None where none has."""
    chosen = [run for run in runs if run.protocol in PROTOCOLS and _has_labels(run)]
    parts = [
        part for number, run in enumerate(chosen, 1) for part in _parts(run, f"people{number}", alone=len(chosen) == 1)
    ]
    return Section(title=TITLE, intro=INTRO, parts=tuple(parts)) if parts else None


def _has_labels(run: ReportRun) -> bool:
    return all((run.folder / name).is_file() for name in (SAMPLE, LABELS))


def _parts(run: ReportRun, name: str, *, alone: bool) -> Iterator[Part]:
    suffix = "" if alone else f": {run.name}"
    try:
        labelled = labelled_run(run.folder)
        agreed, found = agreements_of(labelled), calibrated(labelled)
    except InterbenchError as error:  # a damaged file of labels must not hide another run's
        yield f"{run.name}: its labels cannot be used: {error}"
        return
    yield from _charts(run, found, name, suffix)
    for grid in tables.calibration_grids(labelled, found, title="Corrected by people's labels"):
        yield _table(grid, suffix)
    if agreed:
        yield _table(tables.agreement_grid(labelled, agreed, title="How far people and judges agree"), suffix)
    yield from tables.calibration_lines(labelled, found)


def _charts(run: ReportRun, found: Sequence[Calibrated], name: str, suffix: str) -> Iterator[Chart]:
    """The panel's numbers beside the corrected ones: shares, and scores of each scale."""
    task = TaskRuns(task=run.task, runs=[run], id=name, suffix=suffix)
    scales = list(dict.fromkeys(one.panel.points for one in found if one.panel is not None))
    for place, points in enumerate(scales):
        own = [one for one in found if one.panel is not None and one.panel.points == points]
        cells = [
            ((one.metric, side), estimate)
            for one in own
            for side, estimate in (
                ("panel", one.panel),
                ("corrected", one.corrected.estimate if one.corrected else None),
            )
        ]
        numbers = numbers_from("share" if points is None else "score", ("metric", "by"), cells)
        title = "Judges' numbers, and corrected by people"
        title += " (scores)" if points is not None else " (shares)" if len(scales) > 1 else ""
        yield from task.chart(f"corrected{place}", title, numbers, dots, rows="metric", series="by")


def _table(grid: Grid, suffix: str) -> ReportTable:
    names = [", ".join(row[: grid.n_names]) for row in grid.rows]
    head = ", ".join(grid.headers[: grid.n_names])
    return ReportTable(
        caption=f"{grid.title}{suffix}",
        columns=(head, *grid.headers[grid.n_names :]),
        rows=tuple((name, *row[grid.n_names :]) for name, row in zip(names, grid.rows, strict=True)),
    )
