"""The report's section on judges: how far they agree beyond chance, pair by pair, and how strict each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from interbench_tasks.errors import RunFolderError
from interbench_tasks.metrics.agreement import (
    Labels,
    Weights,
    cohens_kappa,
    estimates_from_coefficients,
    fleiss_kappa,
    krippendorffs_alpha,
    labels_from,
    raw_agreement,
)
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.judge_habits import judge_strictness
from interbench_tasks.report.chart_dots import dots
from interbench_tasks.report.chart_heat import heat
from interbench_tasks.report.chart_numbers import numbers_from
from interbench_tasks.report.judge_labels import JudgedField, fields_of_conversations, fields_of_critiques, joined
from interbench_tasks.report.section_parts import RUN, TaskRuns, runs_by_task
from interbench_tasks.report_parts import Chart, ReportRun, Section

INTRO = (
    "Kappa and alpha are 1 where judges always agree, 0 where they agree as often as chance has it. Fleiss' kappa is "
    "over replies that all judges gave a label, Krippendorff's alpha over those that two gave one. In the ordinal "
    "alpha and the quadratic kappa a score near another one counts as partly agreed. Strictness: by how much a judge "
    "scores lower than the others on the same replies. What a judge that failed would have said is never guessed; "
    "where all labels are the same a coefficient is not defined, and not drawn."
)
NAMES: Mapping[str, str] = {
    "detected": "detected",
    "diag": "diagnosis",
    "strategy": "strategy",
    "strategy_score": "strategy score",
    "score": "score",
    "label": "label",
}
COEFFICIENTS: Mapping[str, str] = {
    "fleiss_kappa": "Fleiss' kappa",
    "krippendorffs_alpha": "Krippendorff's alpha",
    "krippendorffs_alpha.ordinal": "ordinal alpha",
}
"""Coefficient -> what it is called; all are on one scale."""


def agreement_section(runs: Sequence[ReportRun]) -> Section | None:
    """Charts of the judges of all runs that have several; None where there is none."""
    tasks = runs_by_task(runs, "judges", lambda run: run.protocol in ("critique", "conversation") and _has_panel(run))
    parts = [part for task in tasks for part in _parts(task)]
    return Section(title="Judges", intro=INTRO, parts=tuple(parts)) if parts else None


def _has_panel(run: ReportRun) -> bool:
    """Whether several judges were named; reading transcripts for one is no use."""
    models = run.manifest.get("models")
    names = models if isinstance(models, Mapping) else {}
    return len([role for role in names if role.partition("@")[0] == "judge"]) > 1


def _parts(task: TaskRuns) -> Iterator[Chart | str]:
    judged: dict[str, list[JudgedField]] = {}
    for run in task.runs:
        try:
            found = fields_of_critiques(run) if run.protocol == "critique" else fields_of_conversations(run)
        except RunFolderError as error:
            yield f"{run.name}: nothing is said of its judges, for its transcripts cannot be read: {error}"
            continue
        if found:
            judged[run.name] = found
    yield from _coefficients(task, judged)
    panels: dict[tuple[str, ...], list[str]] = {}
    for name, own in judged.items():
        panels.setdefault(tuple(sorted(own[0].judges)), []).append(name)
    for number, names in enumerate(panels.values(), 1):
        of = f", {_some(names)}" if len(panels) > 1 else ""
        yield from _of_a_panel(task, number, [judged[name] for name in names], of)


def _some(names: Sequence[str]) -> str:
    """The names of a few runs, or how many more than those there are.

    >>> _some(["a", "b", "c", "d"])
    'a, b and 2 more'
    """
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


def _coefficients(task: TaskRuns, judged: Mapping[str, Sequence[JudgedField]]) -> Iterator[Chart]:
    """Agreement of each run's own judges."""
    found = {
        (run, NAMES[own.name]): _of_all_judges(own) for run, fields in judged.items() for own in fields if own.rows
    }
    dims = [RUN, "what judges say"]
    cells = [((*key, told), of.get(name)) for key, of in found.items() for name, told in COEFFICIENTS.items()]
    numbers = numbers_from("agreement", [*dims, "coefficient"], cells)
    where = {"rows": dims[1], "series": "coefficient", "panels": RUN}
    yield from task.chart("agreement", "Agreement beyond chance", numbers, dots, **where)
    numbers = numbers_from("raw agreement", dims, [(key, of.get("raw_agreement")) for key, of in found.items()])
    yield from task.compared("raw", "Pairs of judges that say the same", numbers, dims[1])


def _of_all_judges(own: JudgedField) -> dict[str, Estimate]:
    """The coefficients that are about all judges together; those of `agreement_of`, without its pairs."""
    labels = _labels(own)
    wanted = {
        "raw_agreement": raw_agreement(labels),
        "fleiss_kappa": fleiss_kappa(labels),
        "krippendorffs_alpha": krippendorffs_alpha(labels),
    }
    if own.ordinal:
        wanted["krippendorffs_alpha.ordinal"] = krippendorffs_alpha(labels, "ordinal")
    return estimates_from_coefficients(wanted, labels.clusters)


def _labels(own: JudgedField) -> Labels:
    return labels_from(
        own.rows,
        judges=own.judges,
        categories=own.categories,
        clusters=own.clusters,
        inapplicable=own.inapplicable,
    )


def _of_a_panel(task: TaskRuns, number: int, runs: Sequence[Sequence[JudgedField]], of: str) -> Iterator[Chart]:
    """Pairs and habits of judges that several runs share, over all their replies. Args: of = told in titles."""
    order = runs[0][0].judges
    by_name: dict[str, list[JudgedField]] = {}
    for fields in runs:
        for own in fields:
            by_name.setdefault(own.name, []).append(_in_order(own, order))
    for name, fields in by_name.items():
        both = joined(fields)
        if not both.rows:
            continue
        yield from _pairs(task, f"{number}-{name}", both, of)
        yield from _strictness(task, f"{number}-{name}", both, of)


def _in_order(own: JudgedField, judges: tuple[str, ...]) -> JudgedField:
    """The same with the judges in another order."""
    places = [own.judges.index(judge) for judge in judges]
    return JudgedField(
        name=own.name,
        ordinal=own.ordinal,
        categories=own.categories,
        judges=judges,
        rows=[[row[place] for place in places] for row in own.rows],
        clusters=own.clusters,
        inapplicable=[[row[place] for place in places] for row in own.inapplicable],
    )


def _pairs(task: TaskRuns, id: str, own: JudgedField, of: str) -> Iterator[Chart]:
    """Cohen's kappa of each two; of two judges only, it says what the coefficients of all say."""
    if len(own.judges) < 3:
        return
    labels = _labels(own)
    weights: Weights = "quadratic" if own.ordinal else "plain"
    pairs = {f"{place}": pair for place, pair in enumerate(combinations(own.judges, 2))}
    wanted = {place: cohens_kappa(labels, *pair, weights) for place, pair in pairs.items()}
    found = estimates_from_coefficients(wanted, labels.clusters)
    cells = (((other, one), found.get(place)) for place, (one, other) in pairs.items())
    what = "Cohen's quadratic kappa" if own.ordinal else "Cohen's kappa"
    orders = {"judge": own.judges, "other judge": own.judges}
    numbers = numbers_from(what, ["judge", "other judge"], cells, orders=orders)
    title = f"Pairs of judges, {NAMES[own.name]}: {what}{of}"
    where = {"rows": "judge", "columns": "other judge", "dashes": False}
    yield from task.chart(f"pairs-{id}", title, numbers, heat, **where)


def _strictness(task: TaskRuns, id: str, own: JudgedField, of: str) -> Iterator[Chart]:
    if own.span is None:
        return
    # A reply that a judge has nothing to score in is not one that strictness is about; a judge that failed is unscored.
    about = [place for place, silent in enumerate(own.inapplicable) if not any(silent)]
    rows = [own.rows[place] for place in about]
    if all(None in row for row in rows):
        return
    scores = {
        judge: [None if None in row else float(row[place]) for row in rows]  # type: ignore[arg-type]  # none is None
        for place, judge in enumerate(own.judges)
    }
    found = judge_strictness(scores, span=own.span, clusters=[own.clusters[place] for place in about])
    numbers = numbers_from("strictness", ["judge"], (((judge,), e) for judge, e in found.items()), signed=True)
    title = f"How strict each judge is, {NAMES[own.name]}{of}"
    yield from task.chart(f"strict-{id}", title, numbers, dots, rows="judge")
