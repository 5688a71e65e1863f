"""Which runs have a place in which layout: a folder of runs may hold several tasks and protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interbench_tasks.report.layouts import LAYOUT_OF
from interbench_tasks.runs.score import ScoredRun

DEFAULT_LAYOUT = "interfeedback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """Runs of one task, and the layout that they are shown in."""

    layout: str
    runs: tuple[ScoredRun, ...]


def fits(run: ScoredRun, layout: str) -> bool:
    """Whether a run has a place in a layout; every run has one in the list of all metrics."""
    options = run.manifest.get("protocol_options", {})
    if layout == "mmrc":
        return bool(options.get("memories"))
    if layout == "mmpcbench":
        return LAYOUT_OF.get(str(run.manifest["protocol"])) == layout
    return layout == "list" or "arms" in options


def fitting_runs(runs: Sequence[ScoredRun], layout: str | None) -> tuple[list[Fitting], list[str]]:
    """The runs that a layout has a place for, by task, and a sentence for each that it has none for.

    Where none fits, all are there, so that whoever lays them out says what is wrong. Args: layout = None for
    `DEFAULT_LAYOUT`, and where no run fits that, for each task the one of its protocol.
    """
    wanted = layout or DEFAULT_LAYOUT
    fitting = [run for run in runs if fits(run, wanted)]
    by_task: dict[str, list[ScoredRun]] = {}
    for run in fitting or runs:
        by_task.setdefault(run.task, []).append(run)
    by_protocol = layout is None and not fitting
    shown = [Fitting(layout=_layout_of(own[0]) if by_protocol else wanted, runs=tuple(own)) for own in by_task.values()]
    left_out = [] if len(fitting) in (0, len(runs)) else [run for run in runs if not fits(run, wanted)]
    told = [
        f"{run.folder}: is left out, a run of {run.task} has no place in --layout {wanted}; "
        f"use --layout {_layout_of(run)}"
        for run in left_out
    ]
    return shown, told


def _layout_of(run: ScoredRun) -> str:
    """The layout of a run's protocol."""
    own = LAYOUT_OF.get(str(run.manifest["protocol"]), DEFAULT_LAYOUT)
    return own if fits(run, own) else "list"
