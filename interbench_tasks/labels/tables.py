"""Agreement and calibration as tables, and as flat values for a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from interbench_tasks.labels.agreement import PEOPLE, Agreement
from interbench_tasks.labels.calibrating import Calibrated
from interbench_tasks.labels.opinions import LabelledRun
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.cells import ABSENT, cell_from, flat_estimate, shown_value
from interbench_tasks.report.formats import Grid


def agreement_grid(labelled: LabelledRun, found: Sequence[Agreement], *, title: str = "") -> Grid:
    """A row for each value, and whom people are compared with."""
    rows = [
        [
            one.what,
            f"{PEOPLE} with each other" if one.who == PEOPLE else f"{PEOPLE} and {one.who}",
            _cell(one.kappa),
            _cell(one.exact),
            *_counts(one.exact or one.kappa),
        ]
        for one in found
    ]
    return Grid(
        title=title or f"{labelled.run.task}: how far people and judges agree",
        headers=["value", "who", "kappa", "same, %", "n", "unscored"],
        rows=rows,
        n_names=2,
    )


def _cell(estimate: Estimate | None) -> str:
    """The number without its unscored count, which has a column of its own."""
    return cell_from(None if estimate is None else replace(estimate, unscored=0))


def _counts(estimate: Estimate | None) -> list[str]:
    return [ABSENT, ABSENT] if estimate is None else [str(estimate.n), str(estimate.unscored)]


def calibration_grids(labelled: LabelledRun, found: Sequence[Calibrated], *, title: str = "") -> list[Grid]:
    """The panel's numbers and the corrected ones; then each judge's own, and what the judges are together."""
    rows = [
        [
            one.metric,
            cell_from(one.panel),
            cell_from(None if one.corrected is None else one.corrected.estimate),
            _shift(one),
            *_weight(one),
        ]
        for one in found
    ]
    headers = ["metric", "panel", "corrected", "shift", "n", "labelled", "worth", "trust"]
    main = Grid(title=title or f"{labelled.run.task}: corrected by people's labels", headers=headers, rows=rows)
    judges = labelled.run.judges
    alone = [
        [
            one.metric,
            *(cell_from(one.judges.get(judge)) for judge in judges),
            cell_from(one.dawid_skene),
            cell_from(one.independent.estimate),
        ]
        for one in found
    ]
    own = Grid(
        title="By each judge alone, by Dawid-Skene, and how many independent judges they are",
        headers=["metric", *judges, "Dawid-Skene", "n_eff"],
        rows=alone,
    )
    return [main, own]


def _shift(one: Calibrated) -> str:
    if one.corrected is None or one.panel is None:
        return ABSENT
    apart = one.corrected.estimate.value - one.panel.value
    return shown_value(apart, one.corrected.estimate.points, signed=True)


def _weight(one: Calibrated) -> list[str]:
    if one.corrected is None:
        return [str(one.panel.n) if one.panel is not None else ABSENT, ABSENT, ABSENT, ABSENT]
    made = one.corrected
    return [str(made.estimate.n), str(made.n_labelled), f"{made.worth:z.0f}", f"{made.trust:z.2f}"]


def agreement_lines(labelled: LabelledRun) -> Iterator[str]:
    """What has to be said below the table."""
    yield from standing_lines(labelled)
    yield (
        "Kappa: Cohen's; of numbers with quadratic weights. Same: numbers that differ by less than half a point. "
        "Diagnosis and strategy count where both sides say that something was detected. In brackets 95% intervals, "
        "by resampling whole items and conversations."
    )


def calibration_lines(labelled: LabelledRun, found: Sequence[Calibrated]) -> Iterator[str]:
    """What has to be said below the tables: why something is missing, what was merged, how to read it."""
    yield from standing_lines(labelled)
    for why, names in _by_reason(found, lambda one: one.why):
        yield f"Not corrected: {names}: {why}."
    for which, names in _by_reason(found, lambda one: ", ".join(one.corrected.merged) if one.corrected else ""):
        yield f"Strata with too few labels, taken as one for {names}: {which}."
    for why, names in _by_reason(found, lambda one: one.independent.why):
        yield f"No n_eff of {names}: {why}."
    for why, names in _by_reason(found, lambda one: one.why_no_aggregate):
        yield f"No Dawid-Skene of {names}: {why}."
    for one in [one for one in found if one.n_open]:
        yield f"{one.n_open} labelled replies say nothing for {one.metric}: people differ, and nobody has settled it."
    yield (
        "Corrected: prediction-powered inference by strata, over all replies with a verdict. n: replies that count by "
        "the panel's verdict (for dp and se: it detected something); labelled: the labels used, also of replies that "
        "do not count. Worth: as many "
        "independent labels without any judge give as narrow an interval. Trust: how far the panel's verdicts are "
        "used, 0 to 1. n_eff: independent judges that the panel amounts to. Dawid-Skene: another aggregate of the "
        "judges' verdicts; it uses no label, and supposes that judges err independently."
    )


def _by_reason(found: Sequence[Calibrated], reason: Callable[[Calibrated], str]) -> Iterator[tuple[str, str]]:
    """Each reason that there is, with the metrics that it holds for."""
    for why in dict.fromkeys(filter(None, map(reason, found))):
        names = [one.metric for one in found if reason(one) == why]
        yield why, "all metrics" if len(names) == len(found) > 1 else ", ".join(names)


def standing_lines(labelled: LabelledRun) -> Iterator[str]:
    """How far the labelling is."""
    design = labelled.sample.design
    yield (
        f"{labelled.n_labelled} of {len(labelled.items)} sampled replies are labelled, {labelled.n_complete} of them "
        f"by {design.annotators} or more people without an open question (seed {design.seed}, strata {design.strata})."
    )
    if labelled.disagreed:
        yield f"{len(labelled.disagreed)} replies wait for a third person."
    yield from labelled.problems


# --- for a machine ----------------------------------------------------------------------------------------------------


def flat_agreement(labelled: LabelledRun, found: Sequence[Agreement]) -> Iterator[dict[str, object]]:
    """Every number, one a row."""
    for one in found:
        kappa = "kappa.quadratic" if one.weighted else "kappa"
        for name, estimate in ((kappa, one.kappa), ("same", one.exact)):
            if estimate is not None:
                yield {
                    **_run(labelled),
                    "value_of": one.what,
                    "people_and": one.who,
                    "what": name,
                    **flat_estimate(estimate),
                }


def flat_calibration(labelled: LabelledRun, found: Sequence[Calibrated]) -> Iterator[dict[str, object]]:
    """Every number, one a row."""
    for one in found:
        head = {**_run(labelled), "metric": one.metric}
        if one.panel is not None:
            yield {**head, "what": "panel", **flat_estimate(one.panel)}
        if one.corrected is not None:
            made = one.corrected
            more = {"n_labelled": made.n_labelled, "worth": made.worth, "trust": made.trust}
            yield {**head, "what": "corrected", **flat_estimate(made.estimate), **more}
        for judge, estimate in one.judges.items():
            yield {**head, "what": f"judge {judge}", **flat_estimate(estimate)}
        others = (("n_eff", one.independent.estimate), ("dawid_skene", one.dawid_skene))
        for name, other in others:
            if other is not None:
                yield {**head, "what": name, **flat_estimate(other)}


def _run(labelled: LabelledRun) -> dict[str, object]:
    return {"task": labelled.run.task, "run": labelled.run.folder.name}


def agreement_as_json(labelled: LabelledRun, found: Sequence[Agreement]) -> dict[str, Any]:
    """Everything, JSON-able."""
    return {
        **_run(labelled),
        "agreement": [
            {
                "value_of": one.what,
                "people_and": one.who,
                "weighted": one.weighted,
                "kappa": _json(one.kappa),
                "same": _json(one.exact),
            }
            for one in found
        ],
        "notes": list(agreement_lines(labelled)),
    }


def calibration_as_json(labelled: LabelledRun, found: Sequence[Calibrated]) -> dict[str, Any]:
    """Everything, JSON-able; strata with their numbers of replies and labels."""
    return {
        **_run(labelled),
        "metrics": list(map(_metric_json, found)),
        "notes": list(calibration_lines(labelled, found)),
    }


def _metric_json(one: Calibrated) -> dict[str, Any]:
    made = one.corrected
    corrected = None
    if made is not None:
        corrected = {
            "estimate": made.estimate.to_json(),
            "n_labelled": made.n_labelled,
            "worth": made.worth,
            "trust": made.trust,
            "strata": {part.name: {"n": part.n, "n_labelled": part.n_labelled} for part in made.strata},
            "merged": list(made.merged),
        }
    return {
        "metric": one.metric,
        "panel": _json(one.panel),
        "corrected": corrected,
        "why_not_corrected": one.why or None,
        "judges": {judge: estimate.to_json() for judge, estimate in one.judges.items()},
        "n_eff": _json(one.independent.estimate),
        "why_no_n_eff": one.independent.why or None,
        "dawid_skene": _json(one.dawid_skene),
        "why_no_dawid_skene": one.why_no_aggregate or None,
        "n_open": one.n_open,
    }


def _json(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_json()
