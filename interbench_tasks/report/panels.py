"""Judges of several runs as tables: agreement, habits, and rankings without some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.panel_rankings import PanelRanking
from interbench_tasks.report.cells import ABSENT, cell_from, flat_estimate
from interbench_tasks.report.formats import Grid
from interbench_tasks.runs.panels import PanelReport

_COEFFICIENTS: Mapping[str, str] = {
    "fleiss_kappa.detected": "Fleiss' kappa of detection",
    "krippendorffs_alpha.ordinal.score": "Krippendorff's ordinal alpha of scores",
}
_HABITS_OF_VOTES = "How much lower a judge scores than the others, and how much higher clarification than refusal"
_HABITS_OF_SCORES = "The mean and standard deviation of a judge's scores, and how much lower it scores than the others"


def panel_grids(report: PanelReport, tasks: Sequence[str]) -> list[Grid]:
    """Agreement by field, habits by judge, kappa by run, and rankings by smaller panels."""
    fields = list(report.agreement)
    names = list(dict.fromkeys(name for own in report.agreement.values() for name in own))
    agreement = [[name, *(cell_from(report.agreement[field].get(name), n=True) for field in fields)] for name in names]
    scored = list(report.strictness)
    scores = bool(report.means)
    habits = [
        [
            judge,
            *([cell_from(report.means.get(judge), n=True), _points(report.deviations.get(judge))] if scores else []),
            *(cell_from(report.strictness[field].get(judge), signed=True, n=True) for field in scored),
            *([] if scores else [cell_from(report.bias.get(judge), signed=True, n=True)]),
        ]
        for judge in report.judges
    ]
    grids = [
        Grid(
            title=f"{', '.join(tasks)}: {len(report.judges)} judges of {report.n_common} items of each run, agreement",
            headers=["", *fields],
            rows=agreement,
        ),
        Grid(
            title=_HABITS_OF_SCORES if scores else _HABITS_OF_VOTES,
            headers=["judge", "mean", "sd", "lower than the others"]
            if scores
            else ["judge", *scored, "clarification - refusal"],
            rows=habits,
        ),
        Grid(
            title=f"{_COEFFICIENTS[report.by_run_is]}, by run",
            headers=["run", _COEFFICIENTS[report.by_run_is].partition(" of ")[0]],
            rows=[[run, cell_from(kappa, n=True)] for run, kappa in report.by_run.items()],
        ),
    ]
    rows = [_ranking_row(metric, one) for metric, own in report.without.items() for one in own]
    headers = ["metric", "without", "Spearman", "Kendall", "undecided", "other rank"]
    grids.append(Grid(title="Rankings by smaller panels", headers=headers, rows=rows, n_names=2))
    return [grid for grid in grids if grid.rows]


def _ranking_row(metric: str, one: PanelRanking) -> list[str]:
    moved = ", ".join(f"{name} ({one.ranks[name]})" for name in one.moved)
    return [metric, one.without, _number(one.spearman), _number(one.kendall), str(one.undecided), moved or "none"]


def _points(value: float | None) -> str:
    return ABSENT if value is None else f"{value:z.2f}"


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:z.3f}"


def panel_lines(report: PanelReport) -> Iterator[str]:
    """What has to be said below the tables."""
    yield from (f"{note}." for note in report.notes)
    votes = "" if report.means else " Diagnosis and strategy count where a judge detected something."
    yield (
        "Raw agreement and detection are in percent, coefficients and scores as they are. A coefficient that is not "
        f"there is undefined: all labels were the same.{votes}"
    )


def flat_panel(report: PanelReport, tasks: Sequence[str]) -> Iterator[dict[str, object]]:
    """Every number, one a row."""
    task = ", ".join(tasks)
    by_judge = {f"strictness.{field}": own for field, own in report.strictness.items()}
    by_judge |= {"mean.score": report.means, "clarification - refusal": report.bias, report.by_run_is: report.by_run}
    told = [(what, of, one) for of, own in report.agreement.items() for what, one in own.items()]
    told += [(what, of, one) for what, own in by_judge.items() for of, one in own.items()]
    yield from ({"task": task, "what": what, "of": of, **flat_estimate(one)} for what, of, one in told)
    for judge, deviation in report.deviations.items():
        yield {"task": task, "what": "sd.score", "of": judge, "value": deviation, "n": report.means[judge].n}
    for metric, rankings in report.without.items():
        for one in rankings:
            for name, value in (("spearman", one.spearman), ("kendall", one.kendall)):
                yield {"task": task, "what": f"{name}.{metric}", "of": f"without {one.without}", "value": value}


def panel_as_json(report: PanelReport) -> dict[str, Any]:
    """Everything, JSON-able."""
    return {
        "judges": list(report.judges),
        "n_common": report.n_common,
        "agreement": {field: _estimates(own) for field, own in report.agreement.items()},
        "by_run": _estimates(report.by_run),
        "by_run_is": report.by_run_is,
        **({"means": _estimates(report.means), "deviations": dict(report.deviations)} if report.means else {}),
        "strictness": {field: _estimates(own) for field, own in report.strictness.items()},
        "strategy_bias": _estimates(report.bias),
        "without": {metric: [asdict(one) for one in own] for metric, own in report.without.items()},
        "notes": list(panel_lines(report)),
    }


def _estimates(own: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.to_json() for name, estimate in own.items()}
