"""Runs side by side: each metric on the episodes that both runs have it on, and the paired difference there.

Formula: over the episodes i, matched by (id, repeat), that both runs are scored in for a metric, each run's own value
is mean_i(v_i) and the difference mean_i(first_i - second_i); v_i = `MetricSet.contributions`. So accuracy is compared
on the common items, `accuracy_after` too, a correction rate on the items in both test sets. What is no mean over
episodes (questions of conversations, which weigh alike; PCQ, a function of several means): `runs.parts`.
Every pair of runs has episodes of its own: with three runs and more, none is left out of a pair because a third run
lacks it.
Intervals: `metrics.intervals`, by the clusters of the first run; repeats of an item are not independent.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.errors import InterbenchError
from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.intervals import Estimate, Interval, Ratio, estimates_from_ratios
from interbench_tasks.runs.comparable import (
    Key,
    by_key,
    key_of,
    labels_in,
    names_of,
    other_providers,
    refuse_doubles,
    refuse_other_metrics,
    refuse_other_questions,
    units_by_row,
    warnings_of,
)
from interbench_tasks.runs.parts import (
    RunParts,
    Scale,
    left_out,
    made_of_parts,
    paired_parts,
    unpaired_parts,
    with_common_units,
)
from interbench_tasks.runs.score import ScoredRun

BY_ROUND = (".round", ".within")
"""In the names of metrics that are there once a round; they are compared where they are asked for."""
DEFAULT_METRICS = ("accuracy", "accuracy_after.*", "correction_rate.*")
"""What is compared where no metric is named, but for single rounds; where runs have none of these, their headlines."""
MOST_ALL_PAIRS = 4
"""Up to this many runs are compared each with each other; more, each with the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run's part in a paired metric."""

    run: str
    value: Estimate
    """Over the episodes that are scored in both runs."""
    n_not_there: int
    """Episodes scored in this run, left out because the other run does not have them."""
    n_not_scored: int
    """Episodes scored in this run, left out because the other run has them, but not this metric on them: a call failed
    there, or they do not count there (e.g. are not in its test set)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedMetric:
    """One metric of two runs, on the episodes that both have it on."""

    metric: str
    first: Side
    second: Side
    difference: Estimate
    """Mean of first - second over these episodes; `ci95` None where all differences are the same fraction, or all that
    is weighed is of one cluster."""
    weighted: bool = False
    """Whether the sides' `n` counts what is weighed (questions), and the difference is that of two ratios of sums."""

    @property
    def n(self) -> int:
        """Episodes scored in both."""
        return self.difference.n


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherProvider:
    """A provider that is another model in the other run, so that feedback and test sets differ for that alone."""

    label: str
    """Empty where each run has one provider."""
    first: str
    """Its model in the first run."""
    second: str
    paired: bool
    """Whether its metrics are paired nevertheless: no label claims that it is the same, or it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """The episodes of two runs."""

    first: str
    second: str
    n_common: int
    n_only_first: int
    n_only_second: int
    providers: tuple[OtherProvider, ...] = ()
    """Providers of one label, or without one, that are two models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeValues:
    """A run's episodes with their own values of the metrics."""

    row_of: Mapping[Key, int]
    clusters: Sequence[str]
    """By row: what rows share that are not independent; the item itself where the data has no clusters."""
    values: NDArray[np.float64]
    """[rows, metrics]; NaN where the episode is not scored, and in counts, which are no means."""
    parts: RunParts
    """Of the metrics that are no mean over episodes."""

    @classmethod
    def from_run(
        cls, run: ScoredRun, metrics: Sequence[str], counts: Container[str], points: Mapping[str, float]
    ) -> EpisodeValues:
        """The values of a run, a row each episode. Args: points = highest score of the metrics that are no shares."""
        rows = list(by_key(run).values())
        every = [run.metric_set.contributions(summary) for summary in rows]
        values = [
            [np.nan if metric in counts else own.get(metric, np.nan) / points.get(metric, 1) for metric in metrics]
            for own in every
        ]
        return cls(
            row_of={key_of(summary): row for row, summary in enumerate(rows)},
            clusters=[f"id {row['id']}" if row.get("cluster") is None else f"cluster {row['cluster']}" for row in rows],
            values=np.array(values, dtype=np.float64).reshape(len(rows), len(metrics)),
            parts=RunParts.of(run.metric_set, rows, every, metrics, units_by_row(run)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Several runs, compared."""

    tasks: tuple[str, ...]
    """Names of their tasks; more than one only where the runs have no task in common."""
    own: Mapping[str, Mapping[str, Estimate]]
    """Run -> metric -> its value over all of the run's own episodes."""
    pairs: tuple[PairedMetric, ...]
    overlaps: tuple[Overlap, ...]
    unpaired: Mapping[str, str]
    """Metric that was asked for, but is in no pair -> why."""
    warnings: tuple[str, ...]
    values: Mapping[str, EpisodeValues] = field(default_factory=dict, repr=False, compare=False)
    """Run -> its episodes' own values of `metrics`, and what these are made of."""
    metrics: tuple[str, ...] = ()
    """Those that were compared, in the order of the runs' tables."""
    composed: Mapping[str, Composed] = field(default_factory=dict, repr=False, compare=False)
    """Those that are no mean over episodes, each with how it is made of parts."""


def tables_of(runs: Sequence[ScoredRun]) -> dict[str, dict[str, Estimate]]:
    """Every metric of each run, by the runs' names."""
    return {name: dict(run.metric_set.table(run.summaries)) for name, run in zip(names_of(runs), runs, strict=True)}


def compared(
    runs: Sequence[ScoredRun],
    patterns: Sequence[str] = (),
    *,
    pair_labels: bool = False,
    tables: Mapping[str, Mapping[str, Estimate]] | None = None,
) -> Comparison:
    """The comparison of two or more runs.

    Args: patterns = names of metrics, or globs; none: DEFAULT_METRICS; pair_labels = whether metrics of a provider
        label (`correction_rate.detail@teacher`) are paired also where the label stands for two models; tables = run
        -> its metrics, where somebody has computed them already.
    Raises: InterbenchError for less than two runs, one folder twice, other metrics or other questions, no common
        episode, an episode that is in a run twice, and a pattern that fits no metric of any run.
    """
    if len(runs) < 2:
        raise InterbenchError("compare needs two runs of a task at least; give two run folders, or one that holds both")
    refuse_doubles(runs)
    refuse_other_metrics(runs)
    named = dict(zip(names_of(runs), runs, strict=True))
    couples = _couples(list(named))
    for first, second in couples:
        refuse_other_questions(named[first], named[second])
    tables = tables_of(runs) if tables is None else tables
    wanted = _wanted(tables, patterns, runs[0])
    counts = {metric for table in tables.values() for metric, own in table.items() if own.method == "count"}
    points = {m: own.points for table in tables.values() for m, own in table.items() if own.points is not None}
    values = {name: EpisodeValues.from_run(run, wanted, counts, points) for name, run in named.items()}
    composed = made_of_parts([own.parts for own in values.values()], wanted)
    scales = {m: Scale.of([t[m] for t in tables.values() if m in t]) for table in tables.values() for m in table}
    overlaps = [_overlap(*couple, named, values, pair_labels=pair_labels) for couple in couples]
    refused = {(overlap.first, overlap.second): _refused(overlap, wanted) for overlap in overlaps}
    pairs: list[PairedMetric] = []
    for first, second in couples:
        others = refused[first, second]
        alike = _paired(first, second, values, wanted, {*others, *composed})
        pairs += [_in_points(pair, points[pair.metric]) if pair.metric in points else pair for pair in alike]
        own = {metric: how for metric, how in composed.items() if metric not in others}
        pairs += _composed(first, second, values, own, scales)
    pairs.sort(key=lambda pair: wanted.index(pair.metric))
    return Comparison(
        tasks=tuple(dict.fromkeys(run.task for run in runs)),
        own={name: {metric: table[metric] for metric in wanted if metric in table} for name, table in tables.items()},
        pairs=tuple(pairs),
        overlaps=tuple(overlaps),
        unpaired=_unpaired(wanted, pairs, tables, values, composed)
        | _why_refused(refused, pairs)
        | dict.fromkeys(counts & set(wanted), "it is a count"),
        warnings=tuple(warnings_of(named)),
        values=values,
        metrics=wanted,
        composed=composed,
    )


def _couples(names: Sequence[str]) -> list[tuple[str, str]]:
    if len(names) <= MOST_ALL_PAIRS:
        return list(combinations(names, 2))
    return [(names[0], other) for other in names[1:]]


def _wanted(tables: Mapping[str, Mapping[str, Estimate]], patterns: Sequence[str], run: ScoredRun) -> tuple[str, ...]:
    """The metrics to compare, in the order of the runs' tables."""
    known = refuse_unknown(list(tables.values()), patterns)
    if patterns:
        return tuple(metric for metric in known if _fits(metric, patterns))
    usual = tuple(
        metric for metric in known if _fits(metric, DEFAULT_METRICS) and not any(part in metric for part in BY_ROUND)
    )
    return usual or tuple(run.metric_set.headline(known))


def refuse_unknown(tables: Sequence[Mapping[str, Estimate]], patterns: Sequence[str]) -> list[str]:
    """All metrics that there are. Raises: InterbenchError for a pattern that fits none of them."""
    known = list(dict.fromkeys(metric for table in tables for metric in table))
    for pattern in patterns:
        if not any(fnmatchcase(metric, pattern) for metric in known):
            raise InterbenchError(f"--metric {pattern}: fits no metric of these runs; there are: {', '.join(known)}")
    return known


def _fits(metric: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(metric, pattern) for pattern in patterns)


# --- one pair -----------------------------------------------------------------------------------------------------


def _overlap(
    first: str, second: str, runs: Mapping[str, ScoredRun], values: Mapping[str, EpisodeValues], *, pair_labels: bool
) -> Overlap:
    one, other = values[first].row_of.keys(), values[second].row_of.keys()
    return Overlap(
        first=first,
        second=second,
        n_common=len(one & other),
        n_only_first=len(one - other),
        n_only_second=len(other - one),
        providers=tuple(
            OtherProvider(label=label, first=models[0], second=models[1], paired=pair_labels or not label)
            for label, models in other_providers(runs[first], runs[second]).items()
        ),
    )


def _refused(overlap: Overlap, metrics: Sequence[str]) -> dict[str, OtherProvider]:
    """The metrics that are not paired, each with the provider that is another model."""
    other = {provider.label: provider for provider in overlap.providers if not provider.paired}
    return {metric: other[found[0]] for metric in metrics if (found := labels_in(metric, other))}


def _why_refused(
    refused: Mapping[tuple[str, str], Mapping[str, OtherProvider]], pairs: Sequence[PairedMetric]
) -> dict[str, str]:
    """Why a metric of a label is in no pair."""
    paired = {pair.metric for pair in pairs}
    return {
        metric: f"provider {other.label!r} is {other.first} in {first} and {other.second} in {second} "
        "(--pair-labels pairs them nevertheless)"
        for (first, second), metrics in refused.items()
        for metric, other in metrics.items()
        if metric not in paired
    }


def _paired(
    first: str, second: str, values: Mapping[str, EpisodeValues], metrics: Sequence[str], refused: Container[str]
) -> Iterator[PairedMetric]:
    """Every metric that the two runs can be paired in."""
    one, other = values[first], values[second]
    rows, others = _common_rows(one, other)
    left, right = one.values[rows], other.values[others]
    both = ~np.isnan(left) & ~np.isnan(right)
    scaled: dict[str, _Scaled] = {}
    for column, metric in enumerate(metrics):
        counted = both[:, column]
        if metric in refused:
            continue
        if counted.any() and _in_range(left[counted, column]) and _in_range(right[counted, column]):
            scaled[f"first {metric}"] = _Scaled.from_values(left[:, column], counted)
            scaled[f"second {metric}"] = _Scaled.from_values(right[:, column], counted)
            scaled[metric] = _Scaled.from_differences(left[:, column] - right[:, column], counted)
    found = estimates_from_ratios(
        {name: column.ratio for name, column in scaled.items()}, [one.clusters[row] for row in rows]
    )
    estimates = {name: scaled[name].back(estimate) for name, estimate in found.items()}
    for column, metric in enumerate(metrics):
        if metric in estimates:
            n = estimates[metric].n
            sides = ((first, f"first {metric}", one, left), (second, f"second {metric}", other, right))
            made = [
                _side(run, estimates[name], all_rows.values[:, column], shared[:, column], n)
                for run, name, all_rows, shared in sides
            ]
            yield PairedMetric(metric=metric, first=made[0], second=made[1], difference=estimates[metric])


def _common_rows(one: EpisodeValues, other: EpisodeValues) -> tuple[list[int], list[int]]:
    """The rows of the episodes that both runs have, in each of them, in one order."""
    common = sorted(one.row_of.keys() & other.row_of.keys())
    return [one.row_of[key] for key in common], [other.row_of[key] for key in common]


def _composed(
    first: str,
    second: str,
    values: Mapping[str, EpisodeValues],
    composed: Mapping[str, Composed],
    scales: Mapping[str, Scale],
) -> Iterator[PairedMetric]:
    """Every metric that is no mean over episodes."""
    one, other = values[first], values[second]
    rows = _common_rows(one, other)
    clusters = [one.clusters[row] for row in rows[0]]
    mine, theirs = with_common_units([one.parts, other.parts], rows, list(composed.values()))
    for metric, pair in paired_parts(mine, theirs, rows, composed, scales, clusters).items():
        made = []
        for run, estimate, sides, own_rows in (
            (first, pair.first, (one.parts, theirs), rows),
            (second, pair.second, (other.parts, mine), rows[::-1]),
        ):
            gone, lacking = left_out(*sides, own_rows, composed[metric])
            made.append(Side(run=run, value=estimate, n_not_there=gone, n_not_scored=lacking))
        yield PairedMetric(
            metric=metric, first=made[0], second=made[1], difference=pair.difference, weighted=one.parts.weighted
        )


def _in_points(pair: PairedMetric, points: float) -> PairedMetric:
    """A pair that was computed in shares of the highest score, in points."""

    def scaled(estimate: Estimate) -> Estimate:
        ends = estimate.ci95
        return replace(
            estimate,
            value=points * estimate.value,
            ci95=Interval(points * ends.low, points * ends.high) if ends is not None else None,
            points=points,
        )

    sides = [replace(side, value=scaled(side.value)) for side in (pair.first, pair.second)]
    return replace(pair, first=sides[0], second=sides[1], difference=scaled(pair.difference))


def _side(run: str, value: Estimate, all_rows: NDArray[np.float64], common_rows: NDArray[np.float64], n: int) -> Side:
    scored, scored_in_common = (int((~np.isnan(rows)).sum()) for rows in (all_rows, common_rows))
    return Side(run=run, value=value, n_not_there=scored - scored_in_common, n_not_scored=scored_in_common - n)


def _in_range(values: NDArray[np.float64]) -> bool:
    return bool((np.abs(values) <= 1).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scaled:
    """A column of values as `metrics.intervals` takes it, and the way back: value = low + width * taken."""

    ratio: Ratio
    low: float = 0.0
    width: float = 1.0

    @classmethod
    def from_values(cls, values: NDArray[np.float64], counted: NDArray[np.bool_]) -> _Scaled:
        """Successes (0 or 1), differences of successes (-1, 0, 1), or fractions in [0, 1] or [-1, 1]."""
        held = np.where(counted, values, 0.0)
        if np.isin(held, (0, 1)).all():
            return cls(ratio=Ratio(values=held.astype(np.int64), counted=counted))
        return cls._spread(held, counted, low=0.0 if held.min() >= 0 else -1.0, high=1.0)

    @classmethod
    def from_differences(cls, values: NDArray[np.float64], counted: NDArray[np.bool_]) -> _Scaled:
        """Differences of two such values of one episode, in [-2, 2]."""
        held = np.where(counted, values, 0.0)
        most = 1.0 if np.abs(held).max() <= 1 else 2.0
        return cls._spread(held, counted, low=-most, high=most)

    @classmethod
    def _spread(cls, held: NDArray[np.float64], counted: NDArray[np.bool_], *, low: float, high: float) -> _Scaled:
        if np.isin(held, (-1, 0, 1)).all():
            return cls(ratio=Ratio(values=held.astype(np.int64), counted=counted, paired=True))
        taken = np.where(counted, (held - low) / (high - low), 0.0)
        return cls(ratio=Ratio(values=taken, counted=counted, graded=True), low=low, width=high - low)

    def back(self, estimate: Estimate) -> Estimate:
        """The estimate on the scale of the values.

        A difference that is one and the same fraction in all rows has no interval: without width it would claim
        certainty, which is right only of known properties of the items, as `metrics.intervals` says.
        """
        if not self.ratio.graded:
            return estimate
        ends = None if estimate.method == "constant" and self.low < 0 else estimate.ci95
        return replace(
            estimate,
            value=self.low + self.width * estimate.value,
            ci95=Interval(self.low + self.width * ends.low, self.low + self.width * ends.high) if ends else None,
        )


def _unpaired(
    wanted: Sequence[str],
    pairs: Sequence[PairedMetric],
    tables: Mapping[str, Mapping[str, Estimate]],
    values: Mapping[str, EpisodeValues],
    composed: Mapping[str, Composed],
) -> dict[str, str]:
    """Why a wanted metric is in no pair."""
    paired = {pair.metric for pair in pairs}
    found: dict[str, str] = {}
    for column, metric in enumerate(wanted):
        if metric in paired:
            continue
        there = [table for table in tables.values() if metric in table]
        own = np.concatenate([of_run.values[:, column] for of_run in values.values()])
        if len(there) < 2:
            found[metric] = "only one of the runs has it"
        elif metric in composed:
            rows = [_common_rows(values[one], values[other]) for one, other in combinations(values, 2)]
            lacking = unpaired_parts([of_run.parts for of_run in values.values()], rows, composed[metric])
            of_what = "" if lacking in ((), (metric,)) else f" in {', '.join(lacking)}"
            found[metric] = f"no episode is scored in both runs{of_what}"
        elif np.isnan(own).all():
            found[metric] = "it is no mean over episodes"
        elif not _in_range(own[~np.isnan(own)]):
            found[metric] = "an episode's own value is not within [-1, 1]"
        else:
            found[metric] = "no episode is scored in both runs"
    return found
