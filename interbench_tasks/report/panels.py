"""Judges of several runs as tables: agreement, habits, and rankings without some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.panel_rankings import PanelRanking
from interbench_tasks.report.cells import ABSENT, cell_from
from interbench_tasks.report.formats import Grid
from interbench_tasks.runs.panels import PanelReport


def panel_grids(report: PanelReport, tasks: Sequence[str]) -> list[Grid]:
    """Agreement by field, habits by judge, kappa by run, and rankings by smaller panels."""
    fields = list(report.agreement)
    names = list(dict.fromkeys(name for own in report.agreement.values() for name in own))
    agreement = [[name, *(cell_from(report.agreement[field].get(name), n=True) for field in fields)] for name in names]
    scored = list(report.strictness)
    habits = [
        [
            judge,
            *(cell_from(report.strictness[field].get(judge), signed=True, n=True) for field in scored),
            cell_from(report.bias.get(judge), signed=True, n=True),
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
            title="How much lower a judge scores than the others, and how much higher clarification than refusal",
            headers=["judge", *scored, "clarification - refusal"],
            rows=habits,
        ),
        Grid(
            title="Fleiss' kappa of detection, by run",
            headers=["run", "kappa"],
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


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def panel_lines(report: PanelReport) -> Iterator[str]:
    """What has to be said below the tables."""
    yield from (f"{note}." for note in report.notes)
    yield (
        "Raw agreement and detection are in percent, coefficients and scores as they are. A coefficient that is not "
        "there is undefined: all labels were the same. Diagnosis and strategy count where a judge detected something."
    )


def flat_panel(report: PanelReport, tasks: Sequence[str]) -> Iterator[dict[str, object]]:
    """Every number, one a row."""
    task = ", ".join(tasks)
    for field, own in report.agreement.items():
        for name, estimate in own.items():
            yield {"task": task, "what": name, "of": field, **_flat(estimate)}
    for field, by_judge in report.strictness.items():
        for judge, estimate in by_judge.items():
            yield {"task": task, "what": f"strictness.{field}", "of": judge, **_flat(estimate)}
    for judge, estimate in report.bias.items():
        yield {"task": task, "what": "clarification - refusal", "of": judge, **_flat(estimate)}
    for run, estimate in report.by_run.items():
        yield {"task": task, "what": "fleiss_kappa.detected", "of": run, **_flat(estimate)}
    for metric, rankings in report.without.items():
        for one in rankings:
            for name, value in (("spearman", one.spearman), ("kendall", one.kendall)):
                yield {"task": task, "what": f"{name}.{metric}", "of": f"without {one.without}", "value": value}


def _flat(estimate: Estimate) -> dict[str, object]:
    low, high = estimate.ci95 if estimate.ci95 is not None else (None, None)
    return {
        "value": estimate.value,
        "ci95_low": low,
        "ci95_high": high,
        "n": estimate.n,
        "unscored": estimate.unscored,
        "method": estimate.method,
    }


def panel_as_json(report: PanelReport) -> dict[str, Any]:
    """Everything, JSON-able."""
    return {
        "judges": list(report.judges),
        "n_common": report.n_common,
        "agreement": {field: _estimates(own) for field, own in report.agreement.items()},
        "by_run": _estimates(report.by_run),
        "strictness": {field: _estimates(own) for field, own in report.strictness.items()},
        "strategy_bias": _estimates(report.bias),
        "without": {metric: [asdict(one) for one in own] for metric, own in report.without.items()},
        "notes": list(panel_lines(report)),
    }


def _estimates(own: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.to_json() for name, estimate in own.items()}
