"""The judges of conversations: how high each scores, how far they agree, and what the ranking is without some of them.

What each judge said is in the records only, so they are read again. An item is an open question in one memory arm;
questions of one conversation are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.agreement import MISSING, Labels, agreement_of
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.judge_habits import judge_means, judge_strictness
from interbench_tasks.metrics.panel_rankings import mean_of_votes
from interbench_tasks.runs.comparable import names_of
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.panels import PanelReport, judges_of, smaller_panels
from interbench_tasks.runs.score import ScoredRun

SCORE = "score"
BY_RUN = "krippendorffs_alpha.ordinal"


class Item(NamedTuple):
    """One reply that judges scored."""

    episode_id: str
    repeat: int
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """What the judges of one run gave."""

    given: Mapping[Item, Mapping[str, float | None]]
    """Item -> judge -> its score, None where it gave none."""
    clusters: Mapping[Item, str]


def has_scores(run: ScoredRun) -> bool:
    """Whether judges of this run give scores, and not votes."""
    return isinstance(getattr(run.metric_set, "scale", None), tuple)


def score_report(runs: Sequence[ScoredRun]) -> PanelReport:
    """The judges of runs of one task, of which each `has_scores`.

    Raises: InterbenchError where there are less than two judges or they differ from run to run, no reply is in all
        runs, or a score is off the scale.
    """
    read = [_scores_of(run) for run in runs]
    common = sorted(set.intersection(*(set(one.given) for one in read)))
    if not common:
        raise InterbenchError("no reply that judges scored is in all of these runs")
    judges = judges_of(runs, [one.given[common[0]] for one in read])
    votes = np.array(
        [[[_number(one.given[item].get(judge)) for item in common] for one in read] for judge in judges]
    )  # [judges, runs, items]; NaN where a judge gave none
    span = _span(runs[0])
    clusters = [read[0].clusters[item] for item in common]
    names = names_of(runs)
    of_all = clusters * len(runs)
    flat = {judge: votes[number].ravel() for number, judge in enumerate(judges)}
    return PanelReport(
        judges=judges,
        n_common=len(common),
        agreement={SCORE: agreement_of(_labels(votes, judges, of_all, span), ordinal=True)},
        by_run=_by_run(votes, names, judges, clusters, span),
        by_run_is=f"{BY_RUN}.{SCORE}",
        strictness={SCORE: judge_strictness(flat, span=span, clusters=of_all)},
        bias={},
        without={SCORE: smaller_panels(votes, judges, names, runs, mean_of_votes)},
        notes=tuple(_notes(votes, read, common, runs)),
        means=judge_means(flat, span=span, clusters=of_all),
        deviations={judge: float(np.nanstd(own, ddof=1)) for judge, own in flat.items() if (~np.isnan(own)).sum() > 1},
    )


def _span(run: ScoredRun) -> Interval:
    span: Interval = run.metric_set.scale  # type: ignore[attr-defined]  # `has_scores` has looked
    return span


def _scores_of(run: ScoredRun) -> _Scores:
    given: dict[Item, Mapping[str, float | None]] = {}
    clusters: dict[Item, str] = {}
    for record in read_records(run.folder):
        for turn in record.turns:
            if turn.verdicts:
                item = Item(record.episode_id, record.repeat, turn.branch)
                given[item] = {v.judge: v.score if v.status == "scored" else None for v in turn.verdicts}
                clusters[item] = f"id {record.episode_id}" if record.cluster is None else f"cluster {record.cluster}"
    return _Scores(given=given, clusters=clusters)


def _number(score: float | None) -> float:
    return float("nan") if score is None else score


def _labels(votes: NDArray[np.float64], judges: Sequence[str], clusters: Sequence[str], span: Interval) -> Labels:
    """Scores as labels, items by judges; of whole numbers all of the scale, else those that were given."""
    known = votes[~np.isnan(votes)]
    whole = bool((known == np.round(known)).all())
    categories = [float(value) for value in (np.arange(span.low, span.high + 1) if whole else np.unique(known))]
    codes = np.full(votes.shape, MISSING, dtype=np.int64)
    for code, category in enumerate(categories):
        codes[votes == category] = code
    return Labels(
        codes=codes.reshape(len(judges), -1).T,
        categories=tuple(categories),
        judges=tuple(judges),
        clusters=tuple(clusters),
    )


def _by_run(
    votes: NDArray[np.float64], names: Sequence[str], judges: Sequence[str], clusters: Sequence[str], span: Interval
) -> dict[str, Estimate]:
    found = {}
    for run, name in enumerate(names):
        alpha = agreement_of(_labels(votes[:, [run]], judges, clusters, span), ordinal=True).get(BY_RUN)
        if alpha is not None:
            found[name] = alpha
    return found


def _notes(
    votes: NDArray[np.float64], read: Sequence[_Scores], common: Sequence[Item], runs: Sequence[ScoredRun]
) -> list[str]:
    gone = np.isnan(votes)
    notes = []
    if gone.any():
        notes.append(f"{int(gone.sum())} verdicts are missing; nobody guesses what they would have been")
    left_out = sum(len(one.given) - len(common) for one in read)
    if left_out:
        notes.append(f"{left_out} judged replies that not all runs have are left out")
    arms = list(dict.fromkeys(chain.from_iterable(_arms(run) for run in runs)))
    if len(arms) > 1:
        notes.append(f"the replies of all memories ({', '.join(arms)}) are taken together")
    rules = {str(run.manifest.get("protocol_options", {}).get("panel")) for run in runs}
    if rules != {"mean_of_valid"}:
        notes.append(f"smaller panels rank by the mean of their judges; the runs' rule is {', '.join(sorted(rules))}")
    return notes


def _arms(run: ScoredRun) -> list[str]:
    arms = run.manifest.get("protocol_options", {}).get("memories", ())
    return [arm if isinstance(arm, str) else "+".join(arm) for arm in arms]
