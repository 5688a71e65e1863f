"""The judges of several runs: how far they agree, how strict each is, and what the ranking is without some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.critique_votes import STRATEGIES
from interbench_tasks.errors import InterbenchError
from interbench_tasks.families import family_of
from interbench_tasks.metrics.agreement import (
    MISSING,
    Labels,
    agreement_of,
    estimates_from_coefficients,
    fleiss_kappa,
)
from interbench_tasks.metrics.critique_panel import (
    DETECTED,
    FIELDS,
    NOTHING,
    SCORE,
    STRATEGY,
    CritiquePanel,
)
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.judge_habits import judge_strictness, strategy_bias
from interbench_tasks.metrics.panel_rankings import (
    Make,
    Panel,
    PanelRanking,
    leave_one_judge_out,
    leave_own_family_out,
)
from interbench_tasks.runs.comparable import by_key, names_of
from interbench_tasks.runs.score import ScoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelReport:
    """What there is to say of the judges of several runs."""

    judges: tuple[str, ...]
    n_common: int
    """Items that all runs have and judges were to vote on."""
    agreement: Mapping[str, Mapping[str, Estimate]]
    """Field of a vote -> coefficient -> value, over the replies of all runs."""
    by_run: Mapping[str, Estimate]
    """Run -> how far its judges agree, by `by_run_is`; without those where it is undefined."""
    strictness: Mapping[str, Mapping[str, Estimate]]
    """Field -> judge -> by how much it scores lower than the others."""
    bias: Mapping[str, Estimate]
    """Judge -> by how much it scores clarification higher than refusal."""
    without: Mapping[str, tuple[PanelRanking, ...]]
    """Metric -> the rankings without each judge, and without the judges of a model's own family."""
    notes: tuple[str, ...]
    by_run_is: str = "fleiss_kappa.detected"
    """Coefficient and field of `by_run`."""
    means: Mapping[str, Estimate] = field(default_factory=dict)
    """Judge -> the mean of its scores, over the replies that it scored; empty where votes are no scores."""
    deviations: Mapping[str, float] = field(default_factory=dict)
    """Judge -> the standard deviation of these scores (n - 1); without those of less than two."""


def panel_report(runs: Sequence[ScoredRun]) -> PanelReport:
    """The judges of runs of one task.

    Raises: InterbenchError where the metrics do not tell what each judge said, there are less than two judges or they
        differ from run to run, or no item is in all runs.
    """
    panel = _panel_of(runs)
    rows = [{key: summary for key, summary in by_key(run).items() if panel.concerns(summary)} for run in runs]
    common = sorted(set.intersection(*(set(own) for own in rows)))
    if not common:
        raise InterbenchError("no item on which judges were to vote is in all of these runs")
    judges = judges_of(runs, [next(filter(None, (panel.votes(own[key]) for key in common)), {}) for own in rows])
    votes = _votes(panel, rows, common, judges)
    # A reply that says nothing challenged nothing: nobody was asked, so it says nothing of the judges.
    silent = np.array([[panel.said_nothing(own[key]) for key in common] for own in rows])
    ranked = np.where(silent[None, ..., None], np.array(NOTHING), votes)
    clusters = [_cluster(rows[0][key], key[0]) for key in common]
    names = names_of(runs)
    return PanelReport(
        judges=judges,
        n_common=len(common),
        agreement={
            one.name: agreement_of(_labels(votes, place, judges, clusters, silent), ordinal=one.ordinal)
            for place, one in enumerate(FIELDS)
        },
        by_run=dict(_kappas(votes, names, judges, clusters, silent)),
        strictness={
            one.name: _strictness(votes, place, judges, clusters, silent)
            for place, one in enumerate(FIELDS)
            if one.ordinal or one.name == "detected"
        },
        bias=dict(_biases(votes, judges, clusters, silent)),
        without={name: _without(ranked, judges, names, runs, name, panel) for name in panel.metrics},
        notes=tuple(_notes(votes, rows, common)),
    )


def _panel_of(runs: Sequence[ScoredRun]) -> CritiquePanel:
    panel = getattr(runs[0].metric_set, "panel", None)
    if not isinstance(panel, CritiquePanel):
        raise InterbenchError(f"the metrics {runs[0].manifest['metrics']} do not tell what each judge said")
    return panel


def judges_of(runs: Sequence[ScoredRun], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The judges of all runs. Args: first = per run, the votes on some reply, by judge; empty where it has none.

    Raises: InterbenchError where a run has no verdict, the runs have different judges, or there is one judge only.
    """
    judges = tuple(first[0])
    if not all(first):
        raise InterbenchError("one of these runs has no verdict at all, so there is nothing to say of its judges")
    if any(set(own) != set(judges) for own in first):
        told = "; ".join(f"{run.folder.name}: {', '.join(own)}" for run, own in zip(runs, first, strict=True))
        raise InterbenchError(
            f"the runs have different judges ({told}); judge them by one panel first: interbench judge RUNS"
        )
    if len(judges) < 2:
        raise InterbenchError("these runs have one judge only, so there is no agreement to speak of")
    return judges


def _votes(
    panel: CritiquePanel, rows: Sequence[Mapping[Any, Mapping[str, Any]]], common: Sequence[Any], judges: Sequence[str]
) -> NDArray[np.float64]:
    """[judges, runs, items, fields]; NaN where a judge gave none."""
    votes = np.full((len(judges), len(rows), len(common), len(FIELDS)), np.nan)
    for run, own in enumerate(rows):
        for item, key in enumerate(common):
            given = panel.votes(own[key])
            for place, judge in enumerate(judges):
                vote = given.get(judge)
                if vote is not None:
                    votes[place, run, item] = vote
    return votes


def _cluster(summary: Mapping[str, Any], item: str) -> str:
    return f"id {item}" if summary.get("cluster") is None else f"cluster {summary['cluster']}"


def _labels(
    votes: NDArray[np.float64],
    place: int,
    judges: Sequence[str],
    clusters: Sequence[str],
    silent: NDArray[np.bool_],
) -> Labels:
    """One field of all replies, [judges, runs, items, fields] -> items by judges; an item's replies share a cluster.

    Args: silent = replies on which nobody was asked, bool [runs, items]; no label applies to them.
    """
    one = FIELDS[place]
    values = votes[..., place]
    inapplicable = np.broadcast_to(silent, values.shape)
    if one.needs_detection:
        values = np.where(votes[..., DETECTED] == 1, values, np.nan)
        inapplicable = inapplicable | (votes[..., DETECTED] == 0)
    codes = np.full(values.shape, MISSING, dtype=np.int64)
    for code, label in enumerate(one.labels):
        codes[values == label] = code
    return Labels(
        codes=codes.reshape(len(judges), -1).T,
        categories=tuple(one.labels),
        judges=tuple(judges),
        clusters=tuple(clusters) * votes.shape[1],
        inapplicable=inapplicable.reshape(len(judges), -1).T,
    )


def _kappas(
    votes: NDArray[np.float64],
    names: Sequence[str],
    judges: Sequence[str],
    clusters: Sequence[str],
    silent: NDArray[np.bool_],
) -> list[tuple[str, Estimate]]:
    found = []
    for run, name in enumerate(names):
        labels = _labels(votes[:, [run]], DETECTED, judges, clusters, silent[[run]])
        kappa = estimates_from_coefficients({"kappa": fleiss_kappa(labels)}, clusters)
        found += [(name, one) for one in kappa.values()]
    return found


def _strictness(
    votes: NDArray[np.float64],
    place: int,
    judges: Sequence[str],
    clusters: Sequence[str],
    silent: NDArray[np.bool_],
) -> dict[str, Estimate]:
    """Of detection over all replies, of scores over those that all judges detected something in.

    A reply that a judge detected nothing in is not among them; one that a judge failed on may be, and is unscored.
    """
    about = ~silent
    if FIELDS[place].needs_detection:
        about &= (votes[..., DETECTED] != 0).all(axis=0)
    scores = {judge: votes[number, ..., place][about] for number, judge in enumerate(judges)}
    span = (float(FIELDS[place].labels[0]), float(FIELDS[place].labels[-1]))
    return judge_strictness(scores, span=span, clusters=_clusters_of(about, clusters))


def _clusters_of(chosen: NDArray[np.bool_], clusters: Sequence[str]) -> list[str]:
    """The cluster of each chosen reply. Args: chosen = [runs, items]."""
    return [clusters[item] for item in np.nonzero(chosen)[1].tolist()]


def _biases(
    votes: NDArray[np.float64], judges: Sequence[str], clusters: Sequence[str], silent: NDArray[np.bool_]
) -> list[tuple[str, Estimate]]:
    found = []
    for number, judge in enumerate(judges):
        codes, scores = (votes[number, ..., place][~silent] for place in (STRATEGY, SCORE))
        strategies = [None if np.isnan(code) else STRATEGIES[int(code)] for code in codes]
        bias = strategy_bias(scores, strategies, clusters=_clusters_of(~silent, clusters))
        found += [(judge, bias)] if bias is not None else []
    return found


def _without(
    votes: NDArray[np.float64],
    judges: Sequence[str],
    names: Sequence[str],
    runs: Sequence[ScoredRun],
    metric: str,
    panel: CritiquePanel,
) -> tuple[PanelRanking, ...]:
    made, of_means = panel.metrics[metric]
    return smaller_panels(votes, judges, names, runs, made, of_means)


def smaller_panels(
    votes: NDArray[np.float64],
    judges: Sequence[str],
    names: Sequence[str],
    runs: Sequence[ScoredRun],
    made: Panel,
    of_means: Make | None = None,
) -> tuple[PanelRanking, ...]:
    """The rankings without each judge, and without the judges of a model's own family.

    Args: votes = [judges, runs, items, ...]; made, of_means = what a panel makes of them, as in `panel_rankings`.
    """
    found = leave_one_judge_out(votes, judges, names, made, of_means)
    models = runs[0].manifest["models"]
    families = {judge: family_of(models.get(f"judge@{judge}", {"name": judge})["name"]) for judge in judges}
    receivers = {name: family_of(run.receiver) for name, run in zip(names, runs, strict=True)}
    relatives = leave_own_family_out(votes, families, receivers, made, of_means)
    return (*found, *((relatives,) if relatives is not None else ()))


def _notes(votes: NDArray[np.float64], rows: Sequence[Mapping[Any, Any]], common: Sequence[Any]) -> list[str]:
    gone = np.isnan(votes[..., DETECTED])
    missing = int((gone & ~gone.all(axis=0)).sum())
    notes = [f"{missing} verdicts are missing; nobody guesses what they would have been"] if missing else []
    left_out = sum(len(own) - len(common) for own in rows)
    return notes + ([f"{left_out} replies to items that not all runs have are left out"] if left_out else [])
