"""Runs of critiques as MMPCBench's main table: detection, diagnosis, strategy, PCQ, and by which strategy it answers.

Source: the columns of MMPCBench (arXiv 2608.29286); which of its tables has which of them is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from interbench_tasks.critique_votes import SPLIT, STRATEGIES
from interbench_tasks.errors import InterbenchError
from interbench_tasks.flaws import TYPES
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.mmpcbench_names import suffix_of
from interbench_tasks.report.layouts import Column, LayoutTable, Row, RunTable, Shown, flat_rows, grid_from, nested
from interbench_tasks.runs.comparable import names_of
from interbench_tasks.runs.score import ScoredRun

PROTOCOL = "critique"
ITEMS = "n_items"
"""Key of the column of items that `eda` is over."""
OWN = "as the task has it"
"""What the row of the task's own style and settings is called, where there are others."""


def mmpcbench_shown(runs: Sequence[ScoredRun], *, intervals: bool) -> Shown:
    """Runs of one task, at least one: a row for each model, and for each of its further styles and variants.

    Raises: InterbenchError for a run that is no critique.
    """
    table = mmpcbench_table(runs)
    return Shown(grids=[grid_from(table, intervals=intervals)], flat=list(flat_rows(table)), nested=nested(table))


def mmpcbench_table(runs: Sequence[ScoredRun]) -> LayoutTable:
    """The table; a column that no run has is not there.

    Raises: InterbenchError for a run that is no critique.
    """
    asked = [(one, branch) for one in _run_tables(runs) for branch in one.arms]
    several = len(asked) > len(runs)
    columns = [column for column in _columns() if any(_metric(run, branch, column.key) for run, branch in asked)]
    rows = [
        Row(
            names=(run.receiver, branch or OWN) if several else (run.receiver,),
            run=run,
            estimates=[_metric(run, branch, column.key) for column in columns],
        )
        for run, branch in asked
    ]
    return LayoutTable(
        task=runs[0].task,
        name_headers=("model", "asked") if several else ("model",),
        columns=columns,
        rows=rows,
        units="DP and SE up to 2, all else in percent",
    )


def _columns() -> list[Column]:
    columns = [Column(header="#Items", group="", key=ITEMS)]
    columns += [Column(header=name.upper(), group="", key=name) for name in ("eda", "dp", "se", "pcq")]
    columns += [Column(header=of_type, group="PCQ by type", key=f"pcq.{of_type}") for of_type in TYPES]
    columns += [
        Column(header=strategy, group="strategy of what was detected", key=f"strategy.{strategy}")
        for strategy in (*STRATEGIES, SPLIT)
    ]
    names = (("EDA_R", "eda_r"), ("EDA_F", "eda_f"), ("DDR", "ddr"))
    columns += [Column(header=header, group="reasoning and answer", key=key) for header, key in names]
    columns.append(Column(header="DQD", group="reasoning and answer", key="dqd", signed=True))
    names = (("MEDA", "meda"), ("Type Coverage", "type_coverage"), ("All Detected", "all_detected"))
    columns += [Column(header=header, group="two defects", key=key) for header, key in names]
    return columns + [
        Column(header=h, group="valid inputs", key=k) for h, k in (("URR-V", "urr_v"), ("FAR-V", "far_v"))
    ]


def _metric(run: RunTable, branch: str, key: str) -> Estimate | None:
    """The metric of a style or variant ('': the task's own); None where it is undefined."""
    at = suffix_of(branch)
    if key == ITEMS:
        eda = run.metrics.get(f"eda{at}")
        return None if eda is None else replace(_counted(eda.n), unscored=eda.unscored)
    return run.metrics.get(f"{key}{at}") if not at or "." not in key else None


def _counted(n: int) -> Estimate:
    return Estimate(value=float(n), n=n, count=n, method="count")


def _run_tables(runs: Sequence[ScoredRun]) -> list[RunTable]:
    """The runs; their `arms` are '', then their further styles and variants."""
    found = []
    for name, run in zip(names_of(runs), runs, strict=True):
        options = run.manifest.get("protocol_options", {})
        if run.manifest["protocol"] != PROTOCOL:
            raise InterbenchError(
                f"{run.folder}: the protocol {run.manifest['protocol']} is no critique, so it has no place in this "
                "layout; use --layout list"
            )
        metrics = run.metric_set.table(run.summaries)
        variants = dict.fromkeys(name.partition("@")[2] for name in metrics if name.startswith("eda@"))
        found.append(
            RunTable(
                receiver=name,
                run_id=str(run.manifest.get("run_id", "")),
                task=run.task,
                task_version=str(run.manifest.get("task_version", "")),
                providers={},
                arms=["", *options.get("more_styles", ()), *variants],
                metrics=metrics,
                unfinished=run.unfinished,
            )
        )
    return found
