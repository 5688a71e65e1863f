"""The report's section on feedback loops: what was corrected by which arm, in which round, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from interbench_tasks.metrics.feedback_names import CONTROL_ARMS, NET_EFFECTS, at
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.cells import cell_from
from interbench_tasks.report.chart_dots import dots
from interbench_tasks.report.chart_lines import lines
from interbench_tasks.report.chart_numbers import Key, Numbers, numbers_from
from interbench_tasks.report.section_parts import FEW_RUNS, RUN, TaskRuns, options_of, runs_by_task, united
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable, Section

INTRO = (
    "Each line is a 95% interval around its value; n is how many episodes the value rests on, (u k) how many are "
    "unscored because a call failed. A correction rate is over the test set: questions that the model answered wrongly "
    "and that count for feedback. A number that is not defined is not drawn."
)
OF_CONTROLS = (
    " Reask (asked again, told nothing) and mismatched (feedback on another question) are placebos: only what an arm "
    "does beyond its placebo is worth something."
)
OF_ROUNDS = " All rounds of an arm are over the same test set, so the shares of its rounds add up."
EFFECTS: Mapping[str, str] = {
    "net_content_effect": "detail minus mismatched",
    "net_bit_effect": "simple minus reask",
}
"""Metric -> what it is a difference of."""
BY_ROUND: Mapping[str, tuple[str, str]] = {
    "round": ("Corrected in each round", "corrected in this round, not before"),
    "within": ("Corrected by the end of each round", "corrected in this round or before"),
}
"""Kind of a metric of rounds -> title, what it is."""
KINDS = (
    ("repeat_rate", "The same answer again in round 1", "repeat rate"),
    ("flip_rate", "Right answers given up after one round", "flip rate"),
    ("discrimination", "Discrimination: wrong answers corrected minus right ones given up", "discrimination"),
)
"""(metric of an arm, title, what it is)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A run with one of its providers: what has a test set of its own."""

    name: str
    run: ReportRun
    label: str
    """Of the provider; empty where there is one."""

    def metric(self, name: str) -> Estimate | None:
        """A metric of this test set."""
        return self.run.metrics.get(name + at(self.label))


def interfeedback_section(runs: Sequence[ReportRun]) -> Section | None:
    """Charts of all runs with a feedback loop; None where there is none."""
    tasks = runs_by_task(runs, "fb", lambda run: run.protocol == "feedback_loop")
    parts = [part for task in tasks for part in _parts(task)]
    arms = united([_arms(run) for task in tasks for run in task.runs])
    intro = INTRO + (OF_CONTROLS if set(arms) & set(CONTROL_ARMS) else "")
    intro += OF_ROUNDS if any(isinstance(part, Chart) and BY_ROUND["round"][0] in part.title for part in parts) else ""
    return Section(title="Feedback", intro=intro, parts=tuple(parts)) if parts else None


def _parts(task: TaskRuns) -> Iterator[Chart | ReportTable]:
    tested = [one for run in task.runs for one in _tested(run)]
    arms = united([_arms(run) for run in task.runs])
    yield from _accuracies(task, tested, arms)
    yield from _corrections(task, tested, arms)
    yield from _by_category(task, tested, [arm for arm in arms if arm not in CONTROL_ARMS] or arms)
    yield from _worth(task, tested, arms)


def _tested(run: ReportRun) -> Iterator[Tested]:
    labels = options_of(run).get("providers") or ("",)
    for label in labels:
        yield Tested(name=f"{run.name} · {label}" if len(labels) > 1 else run.name, run=run, label=label)


def _arms(run: ReportRun) -> list[str]:
    return list(options_of(run).get("arms", ()))


def _accuracies(task: TaskRuns, tested: Sequence[Tested], arms: Sequence[str]) -> Iterator[Chart]:
    cells = []
    for one in tested:
        first = one.run.metrics.get("accuracy")  # of all episodes, so of no provider
        cells += [((one.name, "first answer"), first)]
        cells += [((one.name, f"after {arm}"), one.metric(f"accuracy_after.{arm}")) for arm in arms]
    yield from task.compared(
        "accuracy",
        "Accuracy of the first answer, and after feedback",
        numbers_from("accuracy", [RUN, "when"], cells),
        "when",
    )


def _corrections(task: TaskRuns, tested: Sequence[Tested], arms: Sequence[str]) -> Iterator[Chart | ReportTable]:
    names = {arm: f"correction_rate.{arm}" for arm in arms} | {"ruling out options": "elimination_floor"}
    numbers = _of("correction rate", "arm", tested, names)
    yield from task.compared("arms", "Corrected after feedback, by arm and control", numbers, "arm")
    for kind, (title, what) in BY_ROUND.items():
        rounds = _by_round(tested, arms, kind, what)
        if rounds:
            yield from task.chart(kind, title, rounds, lines, bins="round", **_side_by_side(rounds))
    yield from _solved(task, tested, arms)


def _side_by_side(numbers: Numbers) -> dict[str, str]:
    """Arms in one panel a run; where there is one arm, runs in one panel."""
    if len(numbers.values("arm")) == 1 and len(numbers.values(RUN)) <= FEW_RUNS:
        return {"series": RUN}
    return {"series": "arm", "panels": RUN}


def _by_round(tested: Sequence[Tested], arms: Sequence[str], kind: str, what: str) -> Numbers:
    """What was corrected by round; nothing where there is one round. Args: kind, what = of BY_ROUND."""
    cells = []
    for one in tested:
        for arm in arms:
            for number, name in _rounds(arm, one.label, one.run.metrics, kind):
                cells.append(((one.name, arm, f"round {number}"), one.run.metrics[name]))
    return numbers_from(what, [RUN, "arm", "round"], cells, orders=_in_order(cells))


def _in_order(cells: Sequence[tuple[Key, Estimate]]) -> dict[str, list[str]]:
    """Rounds by their number."""
    return {"round": sorted({key[-1] for key, _ in cells}, key=lambda told: int(told.removeprefix("round ")))}


def _rounds(arm: str, label: str, metrics: Mapping[str, Estimate], kind: str) -> Iterator[tuple[int, str]]:
    """(round, metric) of an arm. Args: kind = of BY_ROUND."""
    start, end = f"correction_rate.{arm}.{kind}", at(label)
    for name in metrics:
        if name.startswith(start) and name.endswith(end):
            number = name.removeprefix(start).removesuffix(end).removeprefix("_")
            if number.isdigit():
                yield int(number), name


def _solved(task: TaskRuns, tested: Sequence[Tested], arms: Sequence[str]) -> Iterator[ReportTable]:
    """How many items were solved in which round, and how many never."""
    found = {
        (one.name, arm): {
            name.removeprefix(f"n_solved.{arm}.").removesuffix(at(one.label)): estimate
            for name, estimate in one.run.metrics.items()
            if name.startswith(f"n_solved.{arm}.") and name.endswith(at(one.label))
        }
        for one in tested
        for arm in arms
    }
    ends = united([list(own) for own in found.values()])
    rows = [(*key, *(cell_from(own.get(end)) for end in ends)) for key, own in found.items() if own]
    if rows:
        caption = f"Items by the round in which they were solved{task.suffix}"
        yield ReportTable(
            caption=caption, columns=(RUN, "arm", *(end.replace("round", "round ") for end in ends)), rows=tuple(rows)
        )


def _by_category(task: TaskRuns, tested: Sequence[Tested], arms: Sequence[str]) -> Iterator[Chart]:
    categories = united([list(run.categories) for run in task.runs])
    if len(categories) < 2:
        return
    first = numbers_from(
        "accuracy",
        [RUN, "category"],
        (((run.name, c), run.categories.get(c, {}).get("accuracy")) for run in task.runs for c in categories),
    )
    yield from task.compared("accuracy-categories", "Accuracy of the first answer, by category", first, "category")
    cells = [
        ((one.name, category, arm), one.run.categories.get(category, {}).get(f"correction_rate.{arm}{at(one.label)}"))
        for one in tested
        for category in categories
        for arm in arms
    ]
    rates = numbers_from("correction rate", [RUN, "category", "arm"], cells)
    if rates and len(rates.values("arm")) == 1:
        yield from task.compared("categories", "Corrected, by category", rates, "category")
    else:
        where = {"rows": "category", "series": "arm", "panels": RUN}
        yield from task.chart("categories", "Corrected, by category and arm", rates, dots, **where)
    for number, arm in enumerate(arms):
        yield from _by_category_and_round(task, tested, categories, arm, number)


def _by_category_and_round(
    task: TaskRuns, tested: Sequence[Tested], categories: Sequence[str], arm: str, number: int
) -> Iterator[Chart]:
    cells = []
    for one in tested:
        for category in categories:
            own = one.run.categories.get(category, {})
            for round, name in _rounds(arm, one.label, own, "round"):
                cells.append(((one.name, category, f"round {round}"), own[name]))
    dims = [RUN, "category", "round"]
    numbers = numbers_from(BY_ROUND["round"][1], dims, cells, orders=_in_order(cells))
    where = {"bins": "round", "panels": "category", "series": RUN}
    title = f"{arm}: corrected in each round, by category"
    yield from task.chart(f"category-rounds-{number}", title, numbers, lines, **where)


def _worth(task: TaskRuns, tested: Sequence[Tested], arms: Sequence[str]) -> Iterator[Chart]:
    """What corrections are worth: against placebos, against right answers that were given up, and leaks."""
    controls = {pair for name, pair in NET_EFFECTS.items() if any(one.metric(name) for one in tested)}
    pairs = {f"{one} minus {other}": (one, other) for one, other in combinations(arms, 2)}
    names = {EFFECTS[name]: name for name in EFFECTS}
    names |= {told: f"difference.{a}-{b}" for told, (a, b) in pairs.items() if (a, b) not in controls}
    numbers = _of("difference of correction rates", "arms", tested, names, signed=True)
    yield from task.compared("differences", "How the arms differ on the same questions", numbers, "arms")
    for metric, title, what in KINDS:
        of_arm = {arm: f"{metric}.{arm}" for arm in arms}
        rates = _of(what, "arm", tested, of_arm, signed=metric == "discrimination")
        yield from task.compared(metric.replace("_", "-"), title, rates, "arm")
    leaks = {arm: f"leak_rate.{arm}" for arm in arms}
    leaks |= {f"{arm}, a wrong answer": f"leak_placebo_rate.{arm}" for arm in arms}
    numbers = _of("leak rate", "feedback", tested, leaks)
    yield from task.compared("leaks", "Feedback that gives the answer away", numbers, "feedback")


def _of(what: str, dim: str, tested: Sequence[Tested], names: Mapping[str, str], *, signed: bool = False) -> Numbers:
    """One number for each run and each of `names`. Args: names = what it is called -> metric."""
    cells = (((one.name, told), one.metric(name)) for one in tested for told, name in names.items())
    return numbers_from(what, [RUN, dim], cells, signed=signed)
