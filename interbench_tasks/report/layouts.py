"""Tables of runs: the paper's receiver x provider table, and one of the controls.

Each number of such a table is an estimate of one run; `LayoutTable` says which stand where. From it come the texts that
people read (`grid_from`), and the values that machines read (`flat_rows`, `nested`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.feedback_names import CONTROL_ARMS, at
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.cells import cell_from, flat_from
from interbench_tasks.report.formats import Grid
from interbench_tasks.runs.comparable import names_of
from interbench_tasks.runs.score import ScoredRun

Layout = Literal["interfeedback", "human", "controls", "mmrc", "mmpcbench", "list"]
LAYOUT_OF: Mapping[str, str] = {"conversation": "mmrc", "critique": "mmpcbench"}
"""Protocol -> the layout that shows it, of those without feedback arms."""
PAPERS_ARMS = ("detail", "simple")
"""In the order of the paper's tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """What a layout needs of one run."""

    receiver: str
    """As the row is called; no two runs of a table have the same."""
    run_id: str
    task: str
    task_version: str
    providers: Mapping[str, str]
    """Label -> model; the label of a single one is empty."""
    arms: Sequence[str]
    metrics: Mapping[str, Estimate]
    unfinished: str = ""
    """`ScoredRun.unfinished`; empty where the run was finished."""

    def metric(self, name: str, label: str | None) -> Estimate | None:
        """A metric of a provider's test set; None where the run does not have it."""
        return None if label is None else self.metrics.get(name + at(label))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of numbers."""

    header: str
    group: str
    """The header above the header."""
    key: str
    """For a machine: the metric's name, without a provider's label."""
    provider: str = ""
    """For a machine: the provider that the column is about; empty where the row names it, or it is about none."""
    signed: bool = False
    """Whether it is a difference, shown with its sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: what it is about, and a number for each column; None where there is none."""

    names: Sequence[str]
    run: RunTable
    estimates: Sequence[Estimate | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """Runs of one task as a table."""

    task: str
    name_headers: Sequence[str]
    """What `Row.names` are: `receiver`, or `receiver` and `provider`."""
    columns: Sequence[Column]
    rows: Sequence[Row]
    units: str = "rates in percent"
    """What the numbers are, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The runs of one task in a layout: for people, for a spreadsheet, and as JSON."""

    grids: Sequence[Grid]
    flat: Sequence[Mapping[str, object]]
    nested: Sequence[Mapping[str, object]]


def shown_from(runs: Sequence[ScoredRun], layout: str, *, intervals: bool) -> Shown:
    """Runs of one task, at least one, in a layout.

    Args: layout = one of `Layout`; intervals = show them to people (machines always get them).
    Raises: InterbenchError for a run that has no place in the layout.
    """
    if layout == "list":
        rows = list(metric_rows(runs))
        grids = [list_grid(name, run, intervals=intervals) for name, run in zip(names_of(runs), runs, strict=True)]
        return Shown(grids=grids, flat=rows, nested=rows)
    if layout == "mmrc":
        from interbench_tasks.report.mmrc_layout import mmrc_shown  # it is made of what stands here

        return mmrc_shown(runs, intervals=intervals)
    if layout == "mmpcbench":
        from interbench_tasks.report.mmpcbench_layout import mmpcbench_shown  # likewise

        return mmpcbench_shown(runs, intervals=intervals)
    if layout == "human":
        from interbench_tasks.report.human_layout import human_shown  # likewise

        return human_shown(runs, intervals=intervals)
    table = {"interfeedback": interfeedback_table, "controls": controls_table}[layout](run_tables(runs))
    return Shown(grids=[grid_from(table, intervals=intervals)], flat=list(flat_rows(table)), nested=nested(table))


def run_tables(runs: Sequence[ScoredRun]) -> list[RunTable]:
    """The runs of one task as a layout needs them.

    Raises: InterbenchError for a run that has no feedback loop.
    """
    for run in runs:
        if "arms" not in run.manifest.get("protocol_options", {}):
            raise InterbenchError(
                f"{run.folder}: the protocol {run.manifest['protocol']} has no feedback arms, so it has no place in "
                f"this layout; use --layout {LAYOUT_OF.get(run.manifest['protocol'], 'list')}"
            )
    return [
        RunTable(
            receiver=name,
            run_id=str(run.manifest.get("run_id", "")),
            task=run.task,
            task_version=str(run.manifest.get("task_version", "")),
            providers=providers_of(run.manifest),
            arms=run.manifest["protocol_options"]["arms"],
            metrics=run.metric_set.table(run.summaries),
            unfinished=run.unfinished,
        )
        for name, run in zip(names_of(runs), runs, strict=True)
    ]


def providers_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Label -> model name, from a manifest."""
    models = manifest["models"]
    return {key.partition("@")[2]: model["name"] for key, model in models.items() if key.split("@")[0] == "provider"}


def interfeedback_table(runs: Sequence[RunTable]) -> LayoutTable:
    """Rows: receivers. Columns: accuracy, #Neg, and per provider #Test and the correction rate of each arm.

    Arms that are a placebo of another one are left to `controls_table`. A provider has one column in all runs, by its
    model's name; where a run has one model twice, by its label too. What a run does not have stays empty.
    Source: the layout of InterFeedback's (arXiv 2502.15027) Tables 1 and 2. Args: runs = of one task, at least one.
    """
    labels = _labels_by_provider(runs)
    arms = [arm for arm in _arms(runs) if arm not in CONTROL_ARMS] or _arms(runs)
    columns = [Column(header="Acc", group="", key="accuracy"), Column(header="#Neg", group="", key="n_negative")]
    for provider in labels:
        columns.append(Column(header="#Test", group=provider, key="n_test", provider=provider))
        columns += [Column(header=a, group=provider, key=f"correction_rate.{a}", provider=provider) for a in arms]
    rows = []
    for number, run in enumerate(runs):
        of_column = [labels[column.provider].get(number) if column.provider else "" for column in columns]
        found = [run.metric(column.key, label) for column, label in zip(columns, of_column, strict=True)]
        rows.append(Row(names=(run.receiver,), run=run, estimates=found))
    return LayoutTable(task=runs[0].task, name_headers=("receiver",), columns=columns, rows=rows)


def controls_table(runs: Sequence[RunTable]) -> LayoutTable:
    """A row for each receiver and provider: every arm beside its placebo, flips, repeats and leaks.

    A column that no run has is not there. Source: ours. Args: runs = of one task, at least one.
    """
    labels = _labels_by_provider(runs)
    pairs = [(run, name, of[i]) for i, run in enumerate(runs) for name, of in labels.items() if i in of]
    columns = [
        column
        for column in _control_columns(_arms(runs))
        if any(run.metric(column.key, label) is not None for run, _, label in pairs)
    ]
    rows = [
        Row(names=(run.receiver, name), run=run, estimates=[run.metric(column.key, label) for column in columns])
        for run, name, label in pairs
    ]
    return LayoutTable(task=runs[0].task, name_headers=("receiver", "provider"), columns=columns, rows=rows)


def _control_columns(arms: Sequence[str]) -> Iterator[Column]:
    """All columns that there may be, placebo before the arm."""
    yield Column(header="#Test", group="", key="n_test")
    yield Column(header="floor", group="", key="elimination_floor")
    for told, placebo, arm, net in (
        ("that it is wrong", "reask", "simple", "net_bit_effect"),
        ("why it is wrong", "mismatched", "detail", "net_content_effect"),
    ):
        yield from (
            Column(header=a, group=f"corrected, told {told}", key=f"correction_rate.{a}") for a in (placebo, arm)
        )
        yield Column(header="net", group=f"corrected, told {told}", key=net, signed=True)
    usual = ("reask", "simple", "mismatched", "detail")
    for arm in arms:
        if arm not in usual:
            yield Column(header=arm, group="corrected, other arms", key=f"correction_rate.{arm}")
    shown = [arm for arm in usual if arm in arms] + [arm for arm in arms if arm not in usual]
    for group, metric, signed in (
        ("flip rate", "flip_rate", False),
        ("discrimination", "discrimination", True),
        ("repeat rate", "repeat_rate", False),
    ):
        yield from (Column(header=arm, group=group, key=f"{metric}.{arm}", signed=signed) for arm in shown)
    for arm in shown:
        yield Column(header="rate", group=f"leaks of {arm}", key=f"leak_rate.{arm}")
        yield Column(header="placebo", group=f"leaks of {arm}", key=f"leak_placebo_rate.{arm}")


def _arms(runs: Sequence[RunTable]) -> list[str]:
    """The arms of all runs, the paper's in its order first."""
    arms = list(dict.fromkeys(arm for run in runs for arm in run.arms))
    return [arm for arm in PAPERS_ARMS if arm in arms] + [arm for arm in arms if arm not in PAPERS_ARMS]


def _labels_by_provider(runs: Sequence[RunTable]) -> dict[str, dict[int, str]]:
    """Provider as it is called in the table -> number of the run -> its label there."""
    doubled = {model for run in runs for model in run.providers.values() if [*run.providers.values()].count(model) > 1}
    found: dict[str, dict[int, str]] = {}
    for number, run in enumerate(runs):
        for label, model in run.providers.items():
            found.setdefault(f"{model} ({label})" if model in doubled and label else model, {})[number] = label
    return found


# --- what comes of a table ----------------------------------------------------------------------------------------


def grid_from(table: LayoutTable, *, intervals: bool) -> Grid:
    """The table for people: rates in percent."""
    groups: list[tuple[str, int]] = [("", len(table.name_headers))]
    for column in table.columns:
        name, span = groups[-1]
        groups[-1:] = [(name, span + 1)] if column.group == name else [(name, span), (column.group, 1)]
    rows = [
        [
            f"{row.names[0]} {row.run.unfinished}".rstrip(),
            *row.names[1:],
            *(
                cell_from(estimate, intervals=intervals, signed=column.signed)
                for column, estimate in zip(table.columns, row.estimates, strict=True)
            ),
        ]
        for row in table.rows
    ]
    brackets = ", [95% interval]" if intervals else ""
    unscored = (
        ", (u k): k unscored" if any(e is not None and e.unscored for r in table.rows for e in r.estimates) else ""
    )
    return Grid(
        title=f"{table.task}: {table.units}{brackets}{unscored}",
        headers=[*table.name_headers, *(column.header for column in table.columns)],
        rows=rows,
        groups=groups,
        n_names=len(table.name_headers),
    )


def flat_rows(table: LayoutTable) -> Iterator[dict[str, object]]:
    """The table for machines, one row a row: `<metric>`, `<metric>.ci95_low`, ... and, of a provider, `@<provider>`."""
    for row in table.rows:
        flat: dict[str, object] = _identity(table, row)
        for column, estimate in zip(table.columns, row.estimates, strict=True):
            flat |= flat_from(estimate, column.key, f"@{column.provider}" if column.provider else "")
        yield flat


def nested(table: LayoutTable) -> list[dict[str, Any]]:
    """The table as JSON has it: a row holds its metrics, and under `providers` those of each provider."""
    found = []
    for row in table.rows:
        metrics: dict[str, Any] = {}
        providers: dict[str, dict[str, Any]] = {}
        for column, estimate in zip(table.columns, row.estimates, strict=True):
            if estimate is not None:
                into = providers.setdefault(column.provider, {}) if column.provider else metrics
                into[column.key] = estimate.to_json()
        found.append(_identity(table, row) | {"metrics": metrics} | ({"providers": providers} if providers else {}))
    return found


def metric_rows(runs: Sequence[ScoredRun]) -> Iterator[dict[str, object]]:
    """Every metric of every run, one a row, whatever the protocol."""
    for name, run in zip(names_of(runs), runs, strict=True):
        for metric, estimate in run.metric_set.table(run.summaries).items():
            low, high = estimate.ci95 if estimate.ci95 is not None else (None, None)
            bound_low, bound_high = estimate.bounds if estimate.bounds is not None else (None, None)
            yield {
                "task": run.task,
                "receiver": name,
                "run_id": run.manifest.get("run_id"),
                "finished": run.finished,
                "metric": metric,
                "value": estimate.value,
                "ci95_low": low,
                "ci95_high": high,
                "n": estimate.n,
                "unscored": estimate.unscored,
                "bound_low": bound_low,
                "bound_high": bound_high,
                "method": estimate.method,
            }


def _identity(table: LayoutTable, row: Row) -> dict[str, object]:
    names: dict[str, object] = dict(zip(table.name_headers, row.names, strict=True))
    made = {"task": row.run.task, "task_version": row.run.task_version, "run_id": row.run.run_id}
    return made | names | {"finished": not row.run.unfinished}


def list_grid(name: str, run: ScoredRun, *, intervals: bool) -> Grid:
    """Every metric of one run, one a row, whatever the protocol."""
    table = run.metric_set.table(run.summaries)
    rows = [
        [metric, cell_from(estimate, intervals=intervals), "" if estimate.method == "count" else str(estimate.n)]
        for metric, estimate in table.items()
    ]
    points = any(estimate.points is not None for estimate in table.values())
    units = "rates in percent, scores in points" if points else "rates in percent"
    called = f"{name} {run.unfinished}".rstrip()
    return Grid(title=f"{run.task}, {called}: {units}", headers=["metric", "value", "n"], rows=rows)
