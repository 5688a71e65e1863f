"""Tables of runs: the paper's receiver x provider table, and one of the controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from interbench_tasks.report.formats import Grid

Layout = Literal["interfeedback", "controls"]
CONTROLS = (
    "elimination_floor",
    "correction_rate.reask",
    "correction_rate.simple",
    "net_bit_effect",
    "correction_rate.mismatched",
    "correction_rate.detail",
    "net_content_effect",
    "flip_rate.simple",
    "flip_rate.detail",
    "discrimination.simple",
    "discrimination.detail",
    "repeat_rate.simple",
    "repeat_rate.detail",
    "leak_rate.detail",
    "leak_placebo_rate.detail",
)
"""The columns of the layout `controls`, placebo before the arm."""
ABSENT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """What a layout needs of one run."""

    receiver: str
    task: str
    providers: Mapping[str, str]
    """Label -> model; the label of a single one is empty."""
    arms: Sequence[str]
    metrics: Mapping[str, Mapping[str, Any]]
    """As in metrics.json."""


def providers_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Label -> model name, from a manifest."""
    models = manifest["models"]
    return {key.partition("@")[2]: model["name"] for key, model in models.items() if key.split("@")[0] == "provider"}


def interfeedback_grid(runs: Sequence[RunTable], *, intervals: bool) -> Grid:
    """Rows: receivers. Columns: accuracy, #Neg, and per provider #Test and each arm's correction rate, in percent.

    Source: the layout of InterFeedback's (arXiv 2502.15027) Tables 1 and 2.
    """
    labels, arms = _providers(runs), _arms(runs)
    groups = [("", 3), *[(provider, 1 + len(arms)) for provider in labels]]
    headers = ["receiver", "Acc", "#Neg", *[name for _ in labels for name in ("#Test", *arms)]]
    rows = []
    for run in runs:
        row = [run.receiver, _cell(run.metrics.get("accuracy"), intervals), _count(run.metrics.get("n_negative"))]
        for provider in labels:
            label = _label_of(run, provider)
            row.append(_count(_metric(run, "n_test", label)))
            row += [_cell(_metric(run, f"correction_rate.{arm}", label), intervals) for arm in arms]
        rows.append(row)
    return Grid(title=_title(runs), headers=headers, rows=rows, groups=groups)


def controls_grid(runs: Sequence[RunTable], *, intervals: bool) -> Grid:
    """A row for each receiver and provider: every arm beside its placebo, flips, repeats and leaks, in percent."""
    columns = [name for name in CONTROLS if any(_metric(run, name, label) for run in runs for label in run.providers)]
    rows = [
        [
            run.receiver,
            provider,
            _count(_metric(run, "n_test", label)),
            *[_cell(_metric(run, name, label), intervals) for name in columns],
        ]
        for run in runs
        for label, provider in run.providers.items()
    ]
    return Grid(title=_title(runs), headers=["receiver", "provider", "#Test", *columns], rows=rows)


def flat_rows(runs: Sequence[RunTable]) -> Iterator[dict[str, object]]:
    """Every metric of every run, one a row, for a machine."""
    for run in runs:
        for name, estimate in run.metrics.items():
            base, _, label = name.partition("@")
            low, high = estimate.get("ci95") or (None, None)
            bound_low, bound_high = estimate.get("bounds") or (None, None)
            yield {
                "task": run.task,
                "receiver": run.receiver,
                "provider": run.providers.get(label) if label or len(run.providers) == 1 else None,
                "metric": base if label in run.providers else name,
                "value": estimate["value"],
                "ci95_low": low,
                "ci95_high": high,
                "n": estimate["n"],
                "unscored": estimate.get("unscored", 0),
                "bound_low": bound_low,
                "bound_high": bound_high,
                "method": estimate.get("method"),
            }


def _title(runs: Sequence[RunTable]) -> str:
    return f"{runs[0].task}: in percent, 95% intervals in brackets; (u k): k unscored"


def _providers(runs: Sequence[RunTable]) -> list[str]:
    return list(dict.fromkeys(provider for run in runs for provider in run.providers.values()))


def _arms(runs: Sequence[RunTable]) -> list[str]:
    """`detail` and `simple`, as the paper has them; where a run has neither, all of its arms."""
    arms = list(dict.fromkeys(arm for run in runs for arm in run.arms))
    return [arm for arm in ("detail", "simple") if arm in arms] or arms


def _label_of(run: RunTable, provider: str) -> str | None:
    return next((label for label, model in run.providers.items() if model == provider), None)


def _metric(run: RunTable, name: str, label: str | None) -> Mapping[str, Any] | None:
    if label is None:
        return None
    return run.metrics.get(f"{name}@{label}" if label else name)


def _count(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return ABSENT
    return f"{int(estimate['value'])}{_unscored(estimate)}"


def _cell(estimate: Mapping[str, Any] | None, intervals: bool) -> str:
    if estimate is None:
        return ABSENT
    text = f"{100 * estimate['value']:.1f}"
    if intervals and estimate.get("ci95"):
        low, high = estimate["ci95"]
        text += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return text + _unscored(estimate)


def _unscored(estimate: Mapping[str, Any]) -> str:
    return f" (u {estimate['unscored']})" if estimate.get("unscored") else ""
