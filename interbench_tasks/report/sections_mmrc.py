"""The report's section on conversations: abilities with and without notes, and where a memory fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.errors import RunFolderError
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.mmrc_analyses import Row, analysed, rows_from
from interbench_tasks.report.chart_dots import dots
from interbench_tasks.report.chart_lines import bars, lines
from interbench_tasks.report.chart_numbers import Key, Numbers, numbers_from
from interbench_tasks.report.chart_radar import radar
from interbench_tasks.report.section_parts import FEW_RUNS, RUN, Drawing, TaskRuns, options_of, runs_by_task, united
from interbench_tasks.report.trimmed import trimmed_records
from interbench_tasks.report_parts import Chart, ReportRun, Section

INTRO = (
    f"Abilities: {', '.join(f'{code} {name}' for code, name in ABILITIES.items())}. A whisker is a 95% interval; n is "
    "how many questions a value rests on. A question whose reply or judge failed is unscored, never 0. The radar has "
    "no whiskers: read it with the bars. EP: share of the named items that are right; IMP: of the right pictures that "
    "were named; RP: of the questions that nothing answers, where the model declined. What is not defined is not drawn."
)
ALL = "all"
"""The mean over the abilities."""
COUNTED: Mapping[str, str] = {
    "ep": "EP, right items",
    "imp": "IMP, right pictures",
    "rp": "RP, declined",
    "accuracy": "right option",
}
"""Metric of a memory -> what it is; counted without a judge."""
ANALYSES: Mapping[str, tuple[str, str, Drawing]] = {
    "turns": ("Score by number of turns", "turns", lines),
    "distance": ("Score by turns since the evidence", "turns since", lines),
    "position": ("Score by where in the conversation the evidence stands", "position", lines),
    "updates": ("Information update: score by number of updates", "updates", lines),
    "pictures": ("Score by pictures of the conversation", "pictures", lines),
    "place": ("Score by where the evidence stood when the question came", "place", bars),
}
"""Analysis -> title, what its bins are, drawing."""
PLACES: Mapping[str, str] = {"in_view": "in view", "in_notes": "cut, notes shown", "cut": "cut, no notes"}
Binned = Mapping[str, Sequence[tuple[Key, Estimate]]]


def mmrc_section(runs: Sequence[ReportRun]) -> Section | None:
    """Charts of all runs of conversations; None where there is none."""
    tasks = runs_by_task(runs, "mmrc", lambda run: run.protocol == "conversation")
    parts = [part for task in tasks for part in _parts(task)]
    return Section(title="Conversations", intro=INTRO, parts=tuple(parts)) if parts else None


def _parts(task: TaskRuns) -> Iterator[Chart | str]:
    memories = united([memories_of(run) for run in task.runs])
    yield from _abilities(task, memories)
    yield from _differences(task, memories)
    yield from _counted(task, memories)
    yield from _where_it_fails(task)


def memories_of(run: ReportRun) -> list[str]:
    """The memory arms of a run, as metrics name them."""
    given = options_of(run).get("memories", ())
    return [arm if isinstance(arm, str) else "+".join(arm) for arm in given]


def _side_by_side(numbers: Numbers) -> dict[str, str]:
    """Memories in one panel a run; where there is one memory, a few runs in one panel."""
    if len(numbers.values("memory")) == 1 and len(numbers.values(RUN)) <= FEW_RUNS:
        return {"series": RUN}
    return {"series": "memory", "panels": RUN}


def _abilities(task: TaskRuns, memories: Sequence[str]) -> Iterator[Chart]:
    whole = {**{f"score.{ability}": ability for ability in ABILITIES}, "overall": ALL}
    cells = [
        ((run.name, memory, told), run.metrics.get(f"{name}.{memory}"))
        for run in task.runs
        for memory in memories
        for name, told in whole.items()
    ]
    scores = numbers_from("score", [RUN, "memory", "ability"], cells)
    if not scores:
        return
    alone = scores.where("ability", ABILITIES)
    if len(alone.values("ability")) >= 3:
        where = {"spokes": "ability", **_side_by_side(alone)}
        yield from task.chart("radar", "Abilities", alone, radar, **where)
    where = {"bins": "ability", **_side_by_side(scores)}
    yield from task.chart("abilities", "Score by ability", scores, bars, **where)


def _differences(task: TaskRuns, memories: Sequence[str]) -> Iterator[Chart]:
    cells = []
    for run in task.runs:
        own = memories_of(run)
        for memory in own[1:]:
            pair = f"{memory} minus {own[0]}"
            for what in (*ABILITIES, "overall"):
                told = ALL if what == "overall" else what
                cells.append(((run.name, pair, told), run.metrics.get(f"difference.{what}.{memory}-{own[0]}")))
    numbers = numbers_from("difference of scores", [RUN, "memory", "ability"], cells, signed=True)
    if numbers:
        where = {"rows": "ability", **_side_by_side(numbers)}
        yield from task.chart("differences", "What a memory adds, on the same questions", numbers, dots, **where)


def _counted(task: TaskRuns, memories: Sequence[str]) -> Iterator[Chart]:
    cells = [
        ((run.name, memory, told), run.metrics.get(f"{name}.{memory}"))
        for run in task.runs
        for memory in memories
        for name, told in COUNTED.items()
    ]
    numbers = numbers_from("share", [RUN, "memory", "what"], cells)
    if numbers:
        where = {"rows": "what", **_side_by_side(numbers)}
        yield from task.chart("counted", "Counted without a judge", numbers, dots, **where)


# --- where a memory fails: from the transcripts -----------------------------------------------------------------------


def _where_it_fails(task: TaskRuns) -> Iterator[Chart | str]:
    cells: dict[str, list[tuple[Key, Estimate]]] = {name: [] for name in ANALYSES}
    for run in task.runs:
        problem = _add_analyses(cells, run)
        if problem is not None:
            yield problem
    for name, (title, dim, drawing) in ANALYSES.items():
        bins = sorted({key[-1] for key, _ in cells[name]}, key=_rank)
        numbers = numbers_from("score", [RUN, "memory", dim], cells[name], orders={dim: bins})
        if numbers and len(numbers.values(dim)) > 1:
            where = {"bins": dim, **_side_by_side(numbers)}
            yield from task.chart(name, title, numbers, drawing, **where)


def _rank(bin: str) -> tuple[int, str]:
    """The order of bins: by the number that they begin with, else as thirds and places are told."""
    known = ("first third", "middle third", "last third", *PLACES.values())
    digits = bin.rstrip("+").partition("-")[0]
    return (int(digits), "") if digits.isdigit() else (known.index(bin) if bin in known else len(known), bin)


def _add_analyses(cells: Mapping[str, list[tuple[Key, Estimate]]], run: ReportRun) -> str | None:
    """Adds a run's analyses to `cells`; what went wrong in reading its transcripts, None where nothing did."""
    memories, points = memories_of(run), _points(run)
    if points is None:
        return None
    rows: list[Row] = []
    problem = None
    try:
        for record in trimmed_records(run.folder):
            rows += rows_from([record], memories)
    except RunFolderError as error:
        problem = (
            f"{run.name}: its transcripts cannot be read to their end, so the charts below lack some of it: {error}"
        )
    span = Interval(0.0, points)
    for memory in memories:
        own = [row for row in rows if row.arm == memory]
        names = [name for name in ANALYSES if name != "updates"]
        found = analysed(own, names, span=span) if own else {}
        of_updates = [row for row in own if row.question.ability == "IU"]
        if of_updates:
            found |= analysed(of_updates, ["updates"], span=span)
        for name, bins in found.items():
            cells[name] += [((run.name, memory, PLACES.get(told, told)), estimate) for told, estimate in bins.items()]
    return problem


def _points(run: ReportRun) -> float | None:
    """The highest score of the run's judges; None where nobody judged."""
    scores = (estimate for name, estimate in run.metrics.items() if name.startswith("score."))
    return next((estimate.points for estimate in scores), None)
