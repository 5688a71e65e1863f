"""The report's section on critiques: flaws that were challenged, by type, strategy, style, and in the reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interbench_tasks.critique_votes import SPLIT, STRATEGIES
from interbench_tasks.flaws import SUBTYPES, TYPES, type_of
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.chart_heat import heat
from interbench_tasks.report.chart_numbers import Key, Numbers, numbers_from
from interbench_tasks.report.section_parts import RUN, TaskRuns, options_of, runs_by_task, united
from interbench_tasks.report_parts import Chart, ReportRun, Section

INTRO = (
    "EDA: share of flawed inputs that were challenged. DP: how well the cause is named, SE: how well it is dealt with, "
    "both 0 to 2 over the challenged ones. PCQ puts the three together, in percent. A whisker is a 95% interval; n is "
    "how many items a value rests on. In the heat map a deeper colour is a higher value; a value in a dashed frame "
    "rests on so few items that its interval covers more than half of the scale."
)
ALL = "all types"
BY_TYPE: Mapping[str, tuple[str, str]] = {
    "eda": ("Error detection (EDA), by type", "EDA"),
    "dp": ("Diagnosis of what was detected (DP), by type", "DP"),
    "se": ("Strategy towards what was detected (SE), by type", "SE"),
}
"""Metric -> title, what it is."""
CONSISTENCY: Mapping[str, str] = {
    "in the reasoning (EDA_R)": "eda_r",
    "in the final answer (EDA_F)": "eda_f",
    "seen, then lost (DDR)": "ddr",
}
OTHERS: Mapping[str, str] = {
    "valid input: false alarm": "far_v",
    "valid input: whole task refused": "urr_v",
    "precision of detection": "precision",
    "recall of detection": "recall",
    "F1 of detection": "f1",
    "two flaws: something detected": "meda",
    "two flaws: share identified": "type_coverage",
    "two flaws: both identified": "all_detected",
    "asked back, then solved": "solved_after_clarification",
}


def mmpcbench_section(runs: Sequence[ReportRun]) -> Section | None:
    """Charts of all runs of critiques; None where there is none."""
    tasks = runs_by_task(runs, "pcq", lambda run: run.protocol == "critique")
    parts = [part for task in tasks for part in _parts(task)]
    return Section(title="Flawed inputs", intro=INTRO, parts=tuple(parts)) if parts else None


def _parts(task: TaskRuns) -> Iterator[Chart]:
    yield from _quality(task)
    for metric, (title, what) in BY_TYPE.items():
        names = {ALL: metric} | {told: f"{metric}.{code}" for code, told in TYPES.items()}
        yield from task.compared(metric, title, _of(what, "type", task.runs, names), "type")
    yield from _consistency(task)
    strategies = {strategy: f"strategy.{strategy}" for strategy in (*STRATEGIES, SPLIT)}
    numbers = _of("share of detected items", "strategy", task.runs, strategies)
    yield from task.compared("strategies", "Strategies", numbers, "strategy")
    yield from _styles(task)
    numbers = _of("share", "what", task.runs, OTHERS)
    yield from task.compared("others", "Valid inputs, two flaws at once, and asking back", numbers, "what")


def _of(what: str, dim: str, runs: Sequence[ReportRun], names: Mapping[str, str], *, signed: bool = False) -> Numbers:
    """One number for each of `names` and each run. Args: names = what it is called -> metric."""
    cells = (((run.name, told), run.metrics.get(name)) for run in runs for told, name in names.items())
    return numbers_from(what, [RUN, dim], cells, signed=signed)


def _quality(task: TaskRuns) -> Iterator[Chart]:
    """PCQ by type and subcategory, a column a run."""
    there = united([list(run.categories) for run in task.runs])
    cells: list[tuple[Key, Estimate | None]] = [((run.name, ALL), run.metrics.get("pcq")) for run in task.runs]
    for code, of_type in TYPES.items():
        subtypes = [one for one in SUBTYPES if type_of(one) == code and one in there]
        if len(subtypes) != 1:
            cells += [((run.name, of_type), run.metrics.get(f"pcq.{code}")) for run in task.runs]
        for subtype in subtypes:
            told = SUBTYPES[subtype]
            cells += [((run.name, told), run.categories.get(subtype, {}).get("pcq")) for run in task.runs]
    numbers = numbers_from("PCQ", [RUN, "type"], cells)
    where = {"rows": "type", "columns": RUN, "bold": (ALL, *TYPES.values())}
    yield from task.chart("pcq", "Proactive critique quality (PCQ), by type and subcategory", numbers, heat, **where)


def _consistency(task: TaskRuns) -> Iterator[Chart]:
    numbers = _of("share", "where", task.runs, CONSISTENCY)
    yield from task.compared("consistency", "Detected in the reasoning, and in the final answer", numbers, "where")
    name = {"reasoning minus answer (DQD)": "dqd"}
    numbers = _of("difference of diagnoses", "what", task.runs, name, signed=True)
    yield from task.compared("dqd", "Diagnosis: how much is lost from reasoning to answer", numbers, "what")


def _styles(task: TaskRuns) -> Iterator[Chart]:
    styles = united([list(options_of(run).get("more_styles", ())) for run in task.runs])
    names = {f"{metric.upper()}, {style}": f"shift_{metric}.{style}" for style in styles for metric in ("eda", "pcq")}
    numbers = _of("difference to the task's own style", "style", task.runs, names, signed=True)
    yield from task.compared("styles", "The same inputs in another style", numbers, "style")
