"""Tables of runs with several rounds of feedback as InterFeedback prints its human part: by category, by round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interbench_tasks.metrics.feedback_names import at
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.layouts import (
    Column,
    LayoutTable,
    Row,
    RunTable,
    Shown,
    flat_rows,
    grid_from,
    nested,
    run_tables,
)
from interbench_tasks.runs.score import ScoredRun

CATEGORIES: Mapping[str, str] = {
    "visual_logic": "Visual logic",
    "mmmu_pro": "MMMU-Pro",
    "mathverse": "MathVerse",
    "math_text": "MathText",
    "coding_text": "CodeText",
}
"""The paper's categories in its order -> their headers; others come after them, by name."""
AVERAGE = "average"
"""Key of the last column, over all items; the paper's average is pooled, not a mean of the categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run, and its tables by category."""

    table: RunTable
    max_rounds: int
    categories: Mapping[str, Mapping[str, Estimate]]

    def estimates(self, columns: Sequence[Column], metric: str) -> list[Estimate | None]:
        """A metric in each category, and over all."""
        *categories, _ = columns
        return [self.categories.get(c.key, {}).get(metric) for c in categories] + [self.table.metrics.get(metric)]


def human_shown(runs: Sequence[ScoredRun], *, intervals: bool) -> Shown:
    """Runs of one task, at least one: accuracy by category (Table 3), then corrections by round (Table 4).

    For machines it is one table: a row for each receiver and metric, a column for each category.
    Source: the layouts of InterFeedback's (arXiv 2502.15027) human part. Raises: InterbenchError for a run without
    feedback arms.
    """
    found = [_run(table, run) for table, run in zip(run_tables(runs), runs, strict=True)]
    columns = _columns(found)
    tables = [accuracy_table(found, columns), *rounds_tables(found, columns)]
    whole = LayoutTable(
        task=found[0].table.task,
        name_headers=("receiver", "metric"),
        columns=columns,
        rows=[
            Row(names=(run.table.receiver, metric), run=run.table, estimates=run.estimates(columns, metric))
            for run in found
            for metric in ("accuracy", *(name for _, _, name in _round_metrics(run)))
        ],
    )
    return Shown(
        grids=[grid_from(table, intervals=intervals) for table in tables],
        flat=list(flat_rows(whole)),
        nested=[_with_categories(row) for row in nested(whole)],
    )


def accuracy_table(runs: Sequence[_Run], columns: Sequence[Column]) -> LayoutTable:
    """A row for each receiver: the share of right first answers in each category, and over all items."""
    rows = [
        Row(names=(run.table.receiver,), run=run.table, estimates=run.estimates(columns, "accuracy")) for run in runs
    ]
    return LayoutTable(
        task=runs[0].table.task,
        name_headers=("receiver",),
        columns=columns,
        rows=rows,
        units="right first answers in percent",
    )


def rounds_tables(runs: Sequence[_Run], columns: Sequence[Column]) -> Iterator[LayoutTable]:
    """One table an arm and provider: a row for each receiver and round, over all that was wrong before the first."""
    keys = dict.fromkeys((arm, label) for run in runs for arm, label, _ in _round_metrics(run))
    for arm, label in keys:
        rows = []
        for run in runs:
            metrics = [name for own, whose, name in _round_metrics(run) if (own, whose) == (arm, label)]
            for number, metric in enumerate(metrics, start=1):
                names = (run.table.receiver, str(number))
                rows.append(Row(names=names, run=run.table, estimates=run.estimates(columns, metric)))
        yield LayoutTable(
            task=runs[0].table.task,
            name_headers=("receiver", "round"),
            columns=columns,
            rows=rows,
            units=f"corrected by {arm}{at(label)} in each round, in percent of the errors tested after round 0",
        )


def _round_metrics(run: _Run) -> Iterator[tuple[str, str, str]]:
    """(arm, provider's label, metric) of each round."""
    labels = list(run.table.providers) or [""]
    for arm in run.table.arms:
        for label in labels:
            if run.max_rounds == 1:
                yield arm, label, f"correction_rate.{arm}{at(label)}"
            for number in range(1, run.max_rounds + 1) if run.max_rounds > 1 else ():
                yield arm, label, f"correction_rate.{arm}.round{number}{at(label)}"


def _columns(runs: Sequence[_Run]) -> list[Column]:
    there = sorted({category for run in runs for category in run.categories})
    ordered = [name for name in CATEGORIES if name in there] + [name for name in there if name not in CATEGORIES]
    columns = [Column(header=CATEGORIES.get(name, name), group="", key=name) for name in ordered]
    return [*columns, Column(header="Average", group="", key=AVERAGE)]


def _run(table: RunTable, run: ScoredRun) -> _Run:
    by_category: dict[str, list[Mapping[str, Any]]] = {}
    for summary in run.summaries:
        if summary["category"] is not None:
            by_category.setdefault(str(summary["category"]), []).append(summary)
    return _Run(
        table=table,
        max_rounds=int(run.manifest["protocol_options"].get("max_rounds", 1)),
        categories={name: run.metric_set.table(rows) for name, rows in by_category.items()},
    )


def _with_categories(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the JSON, whose columns are categories and not metrics."""
    return {"categories" if key == "metrics" else key: value for key, value in row.items()}
