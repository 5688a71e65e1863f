"""What the sections of the benchmarks share: runs of one task side by side, and a chart with its table and text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interbench_tasks.report.chart_dots import dots
from interbench_tasks.report.chart_numbers import Numbers, table_of, told_in_words
from interbench_tasks.report.drawing import LOOKS
from interbench_tasks.report_parts import Chart, ReportRun

MOST_RUNS = 12
"""Runs that a chart can hold; the tables hold all."""
MOST_NUMBERS = 220
"""Numbers that a chart can hold, so that it stays small; of more runs than that, it shows fewer."""
FEW_RUNS = 4
"""Up to so many runs are told apart by their looks; more have a line each, in small multiples."""
RUN = "run"
PLURALS: Mapping[str, str] = {RUN: "runs", "memory": "memories", "arm": "arms", "category": "categories"}
Drawing = Callable[..., str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRuns:
    """The runs of one task that a section speaks of."""

    task: str
    runs: Sequence[ReportRun]
    id: str
    """What the ids of its charts begin with; unique in a page."""
    suffix: str = ""
    """Added to titles where the report is of several tasks."""

    def chart(self, name: str, title: str, numbers: Numbers, drawing: Drawing, **where: Any) -> Iterator[Chart]:
        """A chart of the numbers, with its text and its table; none where there is no number.

        Where there are more runs or series than a drawing can hold, the title says which it shows; the table has all.
        Args: name = for its id; drawing = `dots`, `lines`, `bars`, `radar` or `heat`; where = its dimensions.
        """
        if not numbers:
            return
        drawn, limits = _limited(numbers, where.get("series"))
        full = f"{title}{self.suffix}"
        alt = told_in_words(drawn, lambda key: _named(drawn, key))
        label = f"{full}{limits}. {alt}"
        svg = drawing(drawn, id=f"{self.id}-{name}", label=label, **_without_one_run(where, drawn))
        yield Chart(title=f"{full}{limits}", svg=svg, alt=alt, table=table_of(numbers, full))

    def compared(self, name: str, title: str, numbers: Numbers, dim: str) -> Iterator[Chart]:
        """Dots with whiskers by `dim`, runs side by side: in one panel where they are few, else a panel a value."""
        few = bool(numbers) and len(numbers.values(RUN)) <= FEW_RUNS
        where = {"rows": dim, "series": RUN} if few else {"rows": RUN, "panels": dim}
        yield from self.chart(name, title, numbers, dots, **where)


def _limited(numbers: Numbers, series: str | None) -> tuple[Numbers, str]:
    """What a drawing can hold, and how that is told; '' where it is all."""
    told: list[str] = []
    if series is not None and len(numbers.values(series)) > len(LOOKS):
        numbers = _first(numbers, series, len(LOOKS), told)
    if RUN in numbers.dims:
        runs = len(numbers.values(RUN))
        most = min(MOST_RUNS, max(1, MOST_NUMBERS * runs // len(numbers.cells)))
        numbers = _first(numbers, RUN, most, told) if runs > most else numbers
    if len(numbers.cells) > MOST_NUMBERS:  # of one run
        longest = max(numbers.dims, key=lambda dim: len(numbers.values(dim)))
        most = MOST_NUMBERS * len(numbers.values(longest)) // len(numbers.cells)
        numbers = _first(numbers, longest, most, told)
    return numbers, f" ({', '.join(told)})" if told else ""


def _first(numbers: Numbers, dim: str, most: int, told: list[str]) -> Numbers:
    """Those of the first values of a dimension; adds to `told` which these are."""
    values = numbers.values(dim)
    told.append(f"the first {most} of {len(values)} {PLURALS.get(dim, f'values of {dim}')}")
    return numbers.where(dim, values[:most])


def _named(numbers: Numbers, key: Sequence[str]) -> str:
    """A key in words; the run only where there are several."""
    left_out = RUN if RUN in numbers.dims and len(numbers.dims) > 1 and len(numbers.values(RUN)) == 1 else None
    return ", ".join(part for dim, part in zip(numbers.dims, key, strict=True) if dim != left_out)


def _without_one_run(where: Mapping[str, Any], numbers: Numbers) -> dict[str, Any]:
    """The dimensions of a drawing, without series and panels of one run only: its name is in the page's head."""
    alone = RUN in numbers.dims and len(numbers.values(RUN)) == 1
    return {place: dim for place, dim in where.items() if not (alone and place in ("series", "panels") and dim == RUN)}


def runs_by_task(runs: Sequence[ReportRun], section: str, concerns: Callable[[ReportRun], bool]) -> list[TaskRuns]:
    """The runs that a section is about, task by task, in the order in which they come up."""
    found: dict[str, list[ReportRun]] = {}
    for run in runs:
        if concerns(run):
            found.setdefault(run.task, []).append(run)
    suffix = " ({})" if len(found) > 1 else ""
    return [
        TaskRuns(task=task, runs=_named_shortly(own, task), id=f"{section}{number}", suffix=suffix.format(task))
        for number, (task, own) in enumerate(found.items(), 1)
    ]


def _named_shortly(runs: Sequence[ReportRun], task: str) -> list[ReportRun]:
    """Runs of one task, whose names need not tell it; as they are where that would make two the same."""
    names = [run.name.removesuffix(f" ({task})") for run in runs]
    return (
        [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
        if len(set(names)) == len(names)
        else list(runs)
    )


def options_of(run: ReportRun) -> Mapping[str, Any]:
    """The protocol's options, as the manifest has them; empty where it does not tell."""
    found = run.manifest.get("protocol_options")
    return found if isinstance(found, Mapping) else {}


def united(lists: Sequence[Sequence[str]]) -> list[str]:
    """All values of several lists, in the order in which they come up."""
    return list(dict.fromkeys(value for own in lists for value in own))
