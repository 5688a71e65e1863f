"""Tables of conversation runs as MMRC prints them: scores per ability (Table 3), and what a memory adds (Table 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.layouts import Column, LayoutTable, Row, RunTable, Shown, flat_rows, grid_from, nested
from interbench_tasks.runs.comparable import names_of
from interbench_tasks.runs.score import ScoredRun

BASE = "base."
"""What the name of a metric of the first arm begins with, in a row about another one."""


def mmrc_shown(runs: Sequence[ScoredRun], *, intervals: bool) -> Shown:
    """Runs of one task, at least one: Table 3, then Table 4 where a run has two memory arms or more.

    For machines it is one table, a row for each receiver and memory, with the differences from the first arm.
    Raises: InterbenchError for a run that has no memory arms.
    """
    tables = [_run_table(name, run) for name, run in zip(names_of(runs), runs, strict=True)]
    abilities, memories = abilities_table(tables), memories_table(tables)
    grids = [grid_from(abilities, intervals=intervals)]
    if memories.rows:
        grids.append(grid_from(memories, intervals=intervals))
    whole = _table(tables, [*_ability_columns(), *_difference_columns()])
    return Shown(grids=grids, flat=list(flat_rows(whole)), nested=nested(whole))


def abilities_table(runs: Sequence[RunTable]) -> LayoutTable:
    """A row for each receiver and memory: judges' scores of the six abilities, EP, IMP, RP, accuracy, Overall.

    Source: the layout of MMRC's (arXiv 2502.11903) Table 3. Args: runs = of one task, their `arms` are memories.
    """
    return _table(runs, list(_ability_columns()))


def memories_table(runs: Sequence[RunTable]) -> LayoutTable:
    """A row for each receiver and further memory: per ability the first arm's score, this one's, and the difference.

    The difference is over the questions that both arms are scored in, so it need not be that of the two scores.
    Source: the layout of MMRC's (arXiv 2502.11903) Table 4.
    """
    columns = []
    for what in (*ABILITIES, "overall"):
        key = what if what == "overall" else f"score.{what}"
        group = "Overall" if what == "overall" else what
        columns += [Column(header="base", group=group, key=f"{BASE}{key}"), Column(header="with", group=group, key=key)]
        columns.append(Column(header="delta", group=group, key=f"difference.{what}", signed=True))
    return _table(runs, columns, further_only=True)


def _ability_columns() -> Iterator[Column]:
    yield from (Column(header=ability, group="score", key=f"score.{ability}") for ability in ABILITIES)
    for header, key in (("EP", "ep"), ("IMP", "imp"), ("RP", "rp")):
        yield Column(header=header, group="counted", key=key)
    yield Column(header="Acc", group="multiple choice", key="accuracy")
    yield Column(header="Overall", group="mean of six", key="overall")


def _difference_columns() -> Iterator[Column]:
    for what in (*ABILITIES, "overall"):
        yield Column(header=what, group="difference", key=f"difference.{what}", signed=True)


def _table(runs: Sequence[RunTable], columns: Sequence[Column], *, further_only: bool = False) -> LayoutTable:
    rows = [
        Row(names=(run.receiver, arm), run=run, estimates=[_metric(run, arm, column.key) for column in columns])
        for run in runs
        for arm in (run.arms[1:] if further_only else run.arms)
    ]
    tops = {e.points for row in rows for e in row.estimates if e is not None and e.points is not None}
    units = "".join(f"scores up to {top:g}, " for top in sorted(tops)) + "rates in percent"
    return LayoutTable(
        task=runs[0].task,
        name_headers=("receiver", "memory"),
        columns=columns,
        rows=rows,
        units=units.removesuffix(", rates in percent") if further_only else units,
    )


def _metric(run: RunTable, arm: str, key: str) -> Estimate | None:
    """The metric of an arm; None where it is undefined."""
    if key.startswith("difference."):
        return run.metrics.get(f"{key}.{arm}-{run.arms[0]}")
    if key.startswith(BASE):
        return run.metrics.get(f"{key.removeprefix(BASE)}.{run.arms[0]}")
    return run.metrics.get(f"{key}.{arm}")


def _run_table(name: str, run: ScoredRun) -> RunTable:
    arms = run.manifest.get("protocol_options", {}).get("memories")
    if not arms:
        raise InterbenchError(
            f"{run.folder}: the protocol {run.manifest['protocol']} has no memory arms, so it has no place in this "
            "layout; use --layout list"
        )
    return RunTable(
        receiver=name,
        run_id=str(run.manifest.get("run_id", "")),
        task=run.task,
        task_version=str(run.manifest.get("task_version", "")),
        providers={},
        arms=[arm if isinstance(arm, str) else "+".join(arm) for arm in arms],
        metrics=run.metric_set.table(run.summaries),
        unfinished=run.unfinished,
    )
