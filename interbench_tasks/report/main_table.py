"""The main table of a report: every metric of all runs of a task, side by side, with interval, n and unscored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.cells import ABSENT, cell_from, shown_value
from interbench_tasks.report_parts import ReportRun, ReportTable


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCell:
    """One metric of one run, as texts."""

    value: str
    interval: str = ""
    n: str = ""
    unscored: str = ""
    bounds: str = ""
    """Smallest and largest value that the unscored ones allow; empty where none is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One metric of all runs."""

    name: str
    headline: bool
    cells: tuple[MetricCell, ...]
    """One a run, in the order of the table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MainTable:
    """All metrics of the runs of one task."""

    task: str
    runs: tuple[str, ...]
    """Their names."""
    rows: tuple[MetricRow, ...]
    """Headline metrics first."""
    points: tuple[float, ...] = ()
    """Highest scores of metrics that are in points, not in percent."""

    @property
    def n_headline(self) -> int:
        """How many rows are shown first; all where no metric is a headline."""
        return sum(row.headline for row in self.rows) or len(self.rows)

    @property
    def has_bounds(self) -> bool:
        """Whether anything is unscored."""
        return any(cell.bounds for row in self.rows for cell in row.cells)

    @property
    def units(self) -> str:
        """What the values are in, as a sentence."""
        scores = "; scores of judges are in points up to " + ", ".join(f"{top:g}" for top in self.points)
        return f"Rates are in percent{scores if self.points else ''}, with their 95% intervals."


def main_tables(
    runs: Sequence[ReportRun], headlines: Mapping[str, Sequence[str]], *, tasks: Sequence[str] | None = None
) -> list[MainTable]:
    """One table a task, in the order of the runs. Args: headlines = a run's name -> its headline metrics."""
    names = tasks if tasks is not None else list(dict.fromkeys(run.task for run in runs))
    return [_table([run for run in runs if run.task == task], headlines) for task in names]


def _table(runs: Sequence[ReportRun], headlines: Mapping[str, Sequence[str]]) -> MainTable:
    names = list(dict.fromkeys(name for run in runs for name in run.metrics))
    first = {name for run in runs for name in headlines.get(run.name, ())}
    ordered = [name for name in names if name in first] + [name for name in names if name not in first]
    points = {estimate.points for run in runs for estimate in run.metrics.values() if estimate.points is not None}
    return MainTable(
        task=runs[0].task,
        runs=tuple(run.name for run in runs),
        rows=tuple(
            MetricRow(name=name, headline=name in first, cells=tuple(cell_of(run.metrics.get(name)) for run in runs))
            for name in ordered
        ),
        points=tuple(sorted(points)),
    )


def cell_of(estimate: Estimate | None) -> MetricCell:
    """An estimate as texts; `-` where the run does not have it.

    >>> cell_of(Estimate(value=0.362, n=373, unscored=2, ci95=(0.315, 0.412), bounds=(0.36, 0.37), method="wilson"))
    MetricCell(value='36.2', interval='31.5 to 41.2', n='373', unscored='2', bounds='36.0 to 37.0')
    """
    if estimate is None:
        return MetricCell(value=ABSENT)
    unscored = str(estimate.unscored)
    if estimate.method == "count":
        return MetricCell(value=f"{estimate.value:g}", unscored=unscored if estimate.unscored else "")
    return MetricCell(
        value=shown_value(estimate.value, estimate.points),
        interval=_range(estimate.ci95, estimate.points),
        n=str(estimate.n),
        unscored=unscored,
        bounds=_range(estimate.bounds, estimate.points) if estimate.unscored else "",
    )


def _range(ends: tuple[float, float] | None, points: float | None) -> str:
    return " to ".join(shown_value(end, points) for end in ends) if ends is not None else ""


def as_table(main: MainTable) -> ReportTable:
    """The main table as a plain one: three columns a run."""
    several = len(main.runs) > 1
    columns = ["metric"]
    names = [run.removesuffix(f" ({main.task})") for run in main.runs]
    for run in names:
        at = f" ({run})" if several else ""
        columns += [f"value [95% interval]{at}", f"n{at}", f"unscored{at}"]
    rows = [
        (row.name, *(text for cell in row.cells for text in (_value(cell), cell.n, cell.unscored))) for row in main.rows
    ]
    return ReportTable(caption=f"{main.task}: {', '.join(names)}", columns=tuple(columns), rows=tuple(rows))


def _value(cell: MetricCell) -> str:
    return f"{cell.value} [{cell.interval}]" if cell.interval else cell.value


def category_table(task: str, runs: Sequence[ReportRun], headlines: Mapping[str, Sequence[str]]) -> ReportTable | None:
    """The headline metrics of a task by category; None where its episodes have no categories, or only one."""
    own = [run for run in runs if run.task == task]
    categories = sorted({category for run in own for category in run.categories})
    columns = [
        (run, name)
        for run in own
        for name in headlines.get(run.name, ())
        if any(table[name].method != "count" for table in run.categories.values() if name in table)
    ]
    if len(categories) < 2 or not columns:
        return None
    rows = [
        (category, *(_in_category(run.categories.get(category, {}).get(name)) for run, name in columns))
        for category in categories
    ]
    several = len(own) > 1
    heads = [f"{name} ({run.name.removesuffix(f' ({task})')})" if several else name for run, name in columns]
    return ReportTable(caption=f"{task}: main metrics by category", columns=("category", *heads), rows=tuple(rows))


def _in_category(estimate: Estimate | None) -> str:
    return cell_from(estimate, n=True)
