"""The parts of `interbench compare`: pairs, rankings, categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interbench_tasks.report.comparison import as_json, flat_pairs, foot_lines, grids_from
from interbench_tasks.report.formats import Grid
from interbench_tasks.report.panels import flat_panel, panel_as_json, panel_grids, panel_lines
from interbench_tasks.report.rankings import (
    categories_as_json,
    category_grids,
    flat_categories,
    flat_ranking,
    ranked_as_json,
    ranking_grids,
    ranking_lines,
)
from interbench_tasks.runs.compare import Comparison
from interbench_tasks.runs.panels import panel_report
from interbench_tasks.runs.ranked import categories_of, ranked_runs
from interbench_tasks.runs.score import ScoredRun
from interbench_tasks.runs.score_panels import has_scores, score_report

PARTS = ("pairs", "ranking", "categories", "judges")
RANKED_FROM = 3
"""From this many runs on a ranking is shown unasked: it says of two runs what their difference says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a comparison: for people, for a spreadsheet, and as JSON."""

    grids: Sequence[Grid]
    lines: Sequence[str]
    """What is to be said below."""
    flat: Sequence[Mapping[str, object]]
    nested: Mapping[str, Any]
    """Key -> JSON value; all parts of a comparison go into one object."""


def parts_of(comparison: Comparison, runs: Sequence[ScoredRun], shown: Sequence[str]) -> list[Part]:
    """The parts that are wanted, in the order of `PARTS`.

    Args: runs = those that were compared; shown = names of `PARTS`; none: pairs, and a ranking where there are enough
        runs.
    Raises: InterbenchError where no episode is in all runs, so that they have no ranking, or where nobody can tell of
        their judges.
    """
    wanted = shown or ("pairs", *(["ranking"] if len(runs) >= RANKED_FROM else []))
    make = {"pairs": _pairs, "ranking": _ranking, "categories": _categories, "judges": _judges}
    return [make[name](comparison, runs) for name in PARTS if name in wanted]


def _pairs(comparison: Comparison, runs: Sequence[ScoredRun]) -> Part:
    return Part(
        grids=grids_from(comparison),
        lines=list(foot_lines(comparison)),
        flat=list(flat_pairs(comparison)),
        nested=as_json(comparison),
    )


def _ranking(comparison: Comparison, runs: Sequence[ScoredRun]) -> Part:
    ranked = ranked_runs(comparison, runs)
    return Part(
        grids=ranking_grids(ranked),
        lines=list(ranking_lines(ranked)),
        flat=list(flat_ranking(ranked)),
        nested={"ranking": ranked_as_json(ranked)},
    )


def _categories(comparison: Comparison, runs: Sequence[ScoredRun]) -> Part:
    metrics = list(dict.fromkeys(metric for own in comparison.own.values() for metric in own))
    found, notes = categories_of(runs, metrics)
    return Part(
        grids=category_grids(found, metrics, tasks=comparison.tasks),
        lines=[f"{note}." for note in notes] if found else ["The episodes have no categories."],
        flat=list(flat_categories(found, comparison.tasks)),
        nested={"categories": categories_as_json(found)},
    )


def _judges(comparison: Comparison, runs: Sequence[ScoredRun]) -> Part:
    report = score_report(runs) if all(has_scores(run) for run in runs) else panel_report(runs)
    return Part(
        grids=panel_grids(report, comparison.tasks),
        lines=list(panel_lines(report)),
        flat=list(flat_panel(report, comparison.tasks)),
        nested={"judges": panel_as_json(report)},
    )
