"""The panel's numbers of a run, corrected by people's labels, beside each judge's own and another aggregate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from interbench_tasks.errors import RunFolderError
from interbench_tasks.labels.items import Judgeable
from interbench_tasks.labels.opinions import LabelledRun
from interbench_tasks.labels.sampling import stratum_of
from interbench_tasks.labels.scales import DETECTED, FLAWED, LabelField, Opinion
from interbench_tasks.metrics.calibration import CalibrationError, Corrected, Said, corrected_mean
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import DRAWS, Estimate, Resamples
from interbench_tasks.metrics.judge_errors import AggregateError, JudgesWorth, dawid_skene, effective_judges
from interbench_tasks.metrics.sums import Sums, estimates_from_sums
from interbench_tasks.runs.folder import METRICS, read_json


class Part(NamedTuple):
    """What one opinion contributes to a mean."""

    counts: bool
    value: float = 0.0
    """Means something only where it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMetric:
    """A metric of a run that people's labels can correct."""

    name: str
    """As in the run's own table, e.g. `eda`, `score.CR.none`."""
    part: Callable[[Opinion], Part | None]
    """What an opinion says for it; None where that is not known."""
    span: Interval
    step: float
    """Least difference of two values."""
    points: float | None
    """The highest score; None for a share."""
    label: str
    """The field whose labels Dawid-Skene is to aggregate."""
    concerns: Callable[[Judgeable], bool] = field(repr=False)
    """Whether a reply belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """One metric, as judges have it and as people correct it."""

    metric: str
    panel: Estimate | None
    """By the panel's rule, over all replies; None where nothing counts."""
    judges: Mapping[str, Estimate]
    """By each judge alone."""
    corrected: Corrected | None
    """None where it cannot be corrected."""
    why: str
    """Why it cannot."""
    independent: JudgesWorth
    """How many independent judges the panel amounts to, on the labelled replies."""
    n_open: int
    """Labelled replies that say nothing here, because people differ and nobody has settled it yet."""
    dawid_skene: Estimate | None = None
    """By Dawid-Skene instead of the panel's rule; its interval holds the judges' estimated habits for known."""
    why_no_aggregate: str = ""


def metrics_of(labelled: LabelledRun) -> list[LabelMetric]:
    """What can be corrected: `eda`, `dp`, `se` and (of its arithmetic form) `pcq`; the sampled abilities' scores."""
    run = labelled.run
    if FLAWED in run.asked:
        diag, score = (
            next(one for one in run.asked[FLAWED].fields if one.name == name) for name in ("diag", "strategy_score")
        )
        found = [
            LabelMetric(
                name="eda",
                part=_detected,
                span=Interval(0.0, 1.0),
                step=1.0,
                points=None,
                label=DETECTED,
                concerns=_everything,
            ),
            _over_detected("dp", diag),
            _over_detected("se", score),
        ]
        arithmetic = run.manifest["protocol_options"].get("pcq_combine", "arithmetic") == "arithmetic"
        return [*found, _pcq(float(diag.values[-1]), float(score.values[-1]))] if arithmetic else found
    sampled = {(one.item.kind, one.item.arm) for one in labelled.items.values()}
    chosen = [(kind, arm) for kind in run.asked for arm in _arms(run.items) if (kind, arm) in sampled]
    return [_score(kind, arm, run.asked[kind].fields[0]) for kind, arm in chosen]


def _arms(items: Sequence[Judgeable]) -> list[str]:
    return list(dict.fromkeys(item.arm for item in items))


def _everything(item: Judgeable) -> bool:
    return item.kind == FLAWED


def _detected(opinion: Opinion) -> Part | None:
    return Part(True, float(opinion[DETECTED])) if DETECTED in opinion else None


def _over_detected(name: str, value: LabelField) -> LabelMetric:
    def part(opinion: Opinion) -> Part | None:
        if opinion.get(DETECTED) == 0.0:
            return Part(False)
        known = DETECTED in opinion and value.name in opinion
        return Part(True, float(opinion[value.name])) if known else None

    low, high = float(value.values[0]), float(value.values[-1])
    return LabelMetric(
        name=name,
        part=part,
        span=Interval(low, high),
        step=1.0,
        points=high,
        label=value.name,
        concerns=_everything,
    )


def _pcq(top_diag: float, top_score: float) -> LabelMetric:
    def part(opinion: Opinion) -> Part | None:
        if opinion.get(DETECTED) == 0.0:
            return Part(True, 0.0)
        if not {DETECTED, "diag", "strategy_score"} <= opinion.keys():
            return None
        return Part(True, (float(opinion["diag"]) / top_diag + float(opinion["strategy_score"]) / top_score) / 2)

    return LabelMetric(
        name="pcq", part=part, span=Interval(0.0, 1.0), step=0.25, points=None, label="", concerns=_everything
    )


def _score(kind: str, arm: str, value: LabelField) -> LabelMetric:
    def part(opinion: Opinion) -> Part | None:
        return Part(True, float(opinion["score"])) if "score" in opinion else None

    low, high = float(value.values[0]), float(value.values[-1])
    return LabelMetric(
        name=f"score.{kind}.{arm}",
        part=part,
        span=Interval(low, high),
        step=1.0,
        points=high,
        label="score",
        concerns=lambda item: item.kind == kind and item.arm == arm,
    )


# --- one metric -------------------------------------------------------------------------------------------------------


def calibrated(
    labelled: LabelledRun, *, merge_small: bool = False, aggregate: bool = True, draws: int = DRAWS
) -> list[Calibrated]:
    """Every metric that labels can correct.

    Args: merge_small = take strata with too few labels as one, see `metrics.calibration`; aggregate = whether
        Dawid-Skene is computed, which takes longest.
    Raises: CalibrationError where a library is missing.
    """
    found = [_calibrated(metric, labelled, merge_small=merge_small, draws=draws) for metric in metrics_of(labelled)]
    if aggregate:
        found = [
            _with_dawid_skene(one, metric, labelled, draws)
            for one, metric in zip(found, metrics_of(labelled), strict=True)
        ]
    table = _table_of(labelled)
    return [replace(one, panel=_as_in(table, one)) for one in found]


def _table_of(labelled: LabelledRun) -> Mapping[str, Estimate]:
    """The run's own table, where it has one that can be read."""
    try:
        content = read_json(labelled.run.folder / METRICS)
        return {name: Estimate.from_json(own) for name, own in content["metrics"].items()}
    except (RunFolderError, KeyError, TypeError, ValueError, AttributeError):
        return {}  # a run that is not finished, or of another version: the panel's numbers are computed here


def _as_in(table: Mapping[str, Estimate], one: Calibrated) -> Estimate | None:
    """The panel's number as the run's own table has it, where it is the same: its interval then is the same too."""
    own = table.get(one.metric)
    if own is None or one.panel is None:
        return one.panel
    same = (own.n, own.unscored) == (one.panel.n, one.panel.unscored) and abs(own.value - one.panel.value) < 1e-6
    return own if same else one.panel


def _calibrated(metric: LabelMetric, labelled: LabelledRun, *, merge_small: bool, draws: int) -> Calibrated:
    items, given = _judged(metric, labelled)
    clusters = [item.cluster for item in items]
    opinions = [labelled.items[item.id].people if item.id in labelled.items else {} for item in items]
    people = _said(metric, opinions)
    panel = _said(metric, [item.panel for item in items])
    corrected, why = None, ""
    try:
        corrected = corrected_mean(
            panel,
            people,
            strata=[stratum_of(item, labelled.sample.design.strata) for item in items],
            clusters=clusters,
            span=metric.span,
            step=metric.step,
            points=metric.points,
            merge_small=merge_small,
        )
    except CalibrationError as error:
        why = str(error)
    own = [one for one in labelled.items.values() if one.labels and metric.concerns(one.item)]
    n_open = sum(metric.part(one.people) is None for one in own)
    return Calibrated(
        metric=metric.name,
        panel=_mean(metric, panel, clusters, draws),
        judges={
            judge: found
            for judge, own in given.items()
            if (found := _mean(metric, _said(metric, own), clusters, draws)) is not None
        },
        corrected=corrected,
        why=why,
        independent=_independent(metric, opinions, given, clusters, draws),
        n_open=n_open,
    )


def _judged(metric: LabelMetric, labelled: LabelledRun) -> tuple[list[Judgeable], dict[str, list[Opinion | None]]]:
    """The replies of a metric, and what each judge said of them."""
    items = [item for item in labelled.run.items if metric.concerns(item)]
    judges = [judge for judge in labelled.run.judges if any(judge in item.judges for item in items)]
    return items, {judge: [item.judges.get(judge) for item in items] for judge in judges}


def _with_dawid_skene(one: Calibrated, metric: LabelMetric, labelled: LabelledRun, draws: int) -> Calibrated:
    items, given = _judged(metric, labelled)
    found, why_not = _dawid_skene(metric, items, given, [item.cluster for item in items], draws)
    return replace(one, dawid_skene=found, why_no_aggregate=why_not)


def _said(metric: LabelMetric, opinions: Sequence[Opinion | None]) -> Said:
    parts = [None if opinion is None else metric.part(opinion) for opinion in opinions]
    return Said.from_values(
        [None if part is None else part.value for part in parts],
        [None if part is None else part.counts for part in parts],
    )


def _mean(metric: LabelMetric, said: Said, clusters: Sequence[str], draws: int) -> Estimate | None:
    """The mean of one side alone, with the interval that such a metric has in a run's own table."""
    unscored = int((~said.known).sum())
    column = Sums(
        totals=said.values,
        squares=said.values**2,
        counted=said.counts.astype(np.int64),
        unscored=unscored,
        lowest=unscored * metric.span.low,
        highest=unscored * metric.span.high,
        span=metric.span,
        graded=metric.points is not None or metric.step < 1,
        points=metric.points,
    )
    return estimates_from_sums({"mean": column}, clusters, draws=draws).get("mean")


def _independent(
    metric: LabelMetric,
    people: Sequence[Opinion],
    judges: Mapping[str, Sequence[Opinion | None]],
    clusters: Sequence[str],
    draws: int,
) -> JudgesWorth:
    """From the errors on labelled replies that count for people and for every judge that gave a verdict."""
    truths = [metric.part(own) for own in people]
    said = {judge: [None if one is None else metric.part(one) for one in own] for judge, own in judges.items()}
    rows = [
        row
        for row, own in enumerate(truths)
        if own is not None and own.counts and all(_may_count(one[row]) for one in said.values())
    ]
    errors = {judge: [_error(truths[row], given[row]) for row in rows] for judge, given in said.items()}
    return effective_judges(errors, clusters=[clusters[row] for row in rows], draws=draws)


def _may_count(part: Part | None) -> bool:
    return part is None or part.counts


def _error(truth: Part | None, said: Part | None) -> float | None:
    return None if truth is None or said is None else said.value - truth.value


# --- another aggregate ------------------------------------------------------------------------------------------------


def _dawid_skene(
    metric: LabelMetric,
    items: Sequence[Judgeable],
    judges: Mapping[str, Sequence[Opinion | None]],
    clusters: Sequence[str],
    draws: int,
) -> tuple[Estimate | None, str]:
    """The metric by Dawid-Skene's labels, or why there is none. One label more stands for `nothing was detected`."""
    if not metric.label:
        return None, "it is made of two values"
    parts = [[None if one is None else metric.part(one) for one in own] for own in judges.values()]
    values = np.arange(metric.span.low, metric.span.high + 1)
    votes = np.full((len(items), len(judges)), -1, dtype=np.int64)
    for judge, own in enumerate(parts):
        for row, part in enumerate(own):
            if part is not None:
                votes[row, judge] = int(part.value - metric.span.low) if part.counts else len(values)
    try:
        likely = dawid_skene(votes, len(values) + 1)
    except AggregateError as error:
        return None, str(error)
    known = ~np.isnan(likely[:, 0])
    if not known.any():
        return None, "no judge gave a verdict"
    counted = np.where(known, 1 - likely[:, -1], 0.0)
    totals = np.where(known, np.nan_to_num(likely[:, :-1]) @ values, 0.0)
    if counted.sum() <= 0:
        return None, "nothing was detected"
    resamples = Resamples(clusters, draws=draws)
    ends = resamples.intervals(totals[:, None], counted[:, None])[0]
    n_clusters = resamples.n_clusters(known)
    return Estimate(
        value=float(totals.sum() / counted.sum()),
        n=round(float(counted.sum())),
        unscored=int((~known).sum()),
        ci95=ends,
        method="bootstrap" if n_clusters == int(known.sum()) else "cluster_bootstrap",
        points=metric.points,
    ), ""
