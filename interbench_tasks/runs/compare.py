"""Runs side by side: each metric on the episodes that both runs have it on, and the paired difference there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

import numpy as np

from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import Estimate, Ratio, estimates_from_ratios
from interbench_tasks.runs.score import ScoredRun

Key = tuple[str, int]
"""(episode id, repeat)."""
DEFAULT_METRICS = ("accuracy", "accuracy_after.*", "correction_rate.*")
MOST_ALL_PAIRS = 4
"""Up to this many runs are compared each with each other; more, each with the first."""
_NAMED_IDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedMetric:
    """One metric of two runs, on the episodes that both have it on."""

    metric: str
    first: str
    """Name of a run."""
    second: str
    n: int
    """Episodes scored in both."""
    first_value: float
    second_value: float
    difference: Estimate
    """Mean of first - second over these episodes."""
    only_first: int
    """Episodes scored in this run alone: not in the other's data, not counted there (e.g. not in its test set), or
    unscored there."""
    only_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Several runs of one kind, compared."""

    own: Mapping[str, Mapping[str, Estimate]]
    """Run -> metric -> its value over all of the run's own episodes."""
    pairs: tuple[PairedMetric, ...]
    missing: Mapping[tuple[str, str], tuple[int, int]]
    """(first, second) -> episodes that only the one, only the other run has."""
    warnings: tuple[str, ...]


def compared(runs: Sequence[ScoredRun], patterns: Sequence[str] = DEFAULT_METRICS) -> Comparison:
    """The comparison of two or more runs.

    Args: patterns = names of metrics, or globs.
    Raises: InterbenchError for less than two runs, one folder twice, other metrics or other questions, no common
        episode, and a pattern that fits no metric of any run.
    """
    _check(runs)
    names = dict(zip(names_of(runs), runs, strict=True))
    values = {name: _values(run) for name, run in names.items()}
    own = {name: run.metric_set.table(run.summaries) for name, run in names.items()}
    wanted = _wanted([metric for table in own.values() for metric in table], patterns)
    pairs: list[PairedMetric] = []
    missing: dict[tuple[str, str], tuple[int, int]] = {}
    for first, second in _pairs_of(list(names)):
        missing[(first, second)] = _check_same_questions(names[first], names[second])
        pairs += _paired(first, second, values, wanted, _clusters(names[first]))
    own = {name: {metric: table[metric] for metric in wanted if metric in table} for name, table in own.items()}
    return Comparison(own=own, pairs=tuple(pairs), missing=missing, warnings=tuple(_warnings(names)))


def names_of(runs: Sequence[ScoredRun]) -> list[str]:
    """The receivers' names; with the run's id where two are the same model."""
    receivers = [run.receiver for run in runs]
    return [
        f"{name} ({run.manifest['run_id']})" if receivers.count(name) > 1 else name
        for name, run in zip(receivers, runs, strict=True)
    ]


def _pairs_of(names: Sequence[str]) -> list[tuple[str, str]]:
    if len(names) <= MOST_ALL_PAIRS:
        return list(combinations(names, 2))
    return [(names[0], other) for other in names[1:]]


def _wanted(metrics: Sequence[str], patterns: Sequence[str]) -> list[str]:
    known = list(dict.fromkeys(metrics))
    for pattern in patterns:
        if not any(fnmatchcase(metric, pattern) for metric in known) and patterns != DEFAULT_METRICS:
            raise InterbenchError(f"--metric {pattern}: fits no metric of these runs; there are: {', '.join(known)}")
    return [
        metric
        for metric in known
        if any(fnmatchcase(metric, pattern) for pattern in patterns)
        and (patterns != DEFAULT_METRICS or ".round" not in metric)
    ]


def _values(run: ScoredRun) -> dict[Key, Mapping[str, float]]:
    return {_key(summary): run.metric_set.contributions(summary) for summary in run.summaries}


def _key(summary: Mapping[str, Any]) -> Key:
    return str(summary["id"]), int(summary["repeat"])


def _clusters(run: ScoredRun) -> dict[Key, str]:
    """What rows share: their cluster, else their question (its repeats are not independent)."""
    return {
        _key(row): f"cluster {row['cluster']}" if row.get("cluster") is not None else f"id {row['id']}"
        for row in run.summaries
    }


def _paired(
    first: str,
    second: str,
    values: Mapping[str, Mapping[Key, Mapping[str, float]]],
    metrics: Sequence[str],
    clusters: Mapping[Key, str],
) -> Iterator[PairedMetric]:
    one, other = values[first], values[second]
    common = sorted(one.keys() & other.keys())
    ratios: dict[str, Ratio] = {}
    for metric in metrics:
        counted = np.array([metric in one[key] and metric in other[key] for key in common], dtype=np.bool_)
        both = [(one[key][metric], other[key][metric]) for key, is_in in zip(common, counted, strict=True) if is_in]
        if not both or not {0.0, 1.0} >= {value for pair in both for value in pair}:
            continue  # a mean of fractions or of differences: its rows are no successes
        differences = np.zeros(len(common), dtype=np.int64)
        differences[counted] = [int(left - right) for left, right in both]
        ratios[metric] = Ratio(values=differences, counted=counted, paired=True)
    estimates = estimates_from_ratios(ratios, [clusters[key] for key in common]) if ratios else {}
    for metric, estimate in estimates.items():
        in_both = [key for key in common if metric in one[key] and metric in other[key]]
        yield PairedMetric(
            metric=metric,
            first=first,
            second=second,
            n=estimate.n,
            first_value=sum(one[key][metric] for key in in_both) / estimate.n,
            second_value=sum(other[key][metric] for key in in_both) / estimate.n,
            difference=estimate,
            only_first=sum(metric in found for found in one.values()) - estimate.n,
            only_second=sum(metric in found for found in other.values()) - estimate.n,
        )


# --- may they be compared? ----------------------------------------------------------------------------------------


def _check(runs: Sequence[ScoredRun]) -> None:
    if len(runs) < 2:
        raise InterbenchError("compare needs two runs of a task at least; give two run folders, or one that holds both")
    folders = [run.folder.resolve() for run in runs]
    for folder in folders:
        if folders.count(folder) > 1:
            raise InterbenchError(f"{folder}: is named twice")
    kinds = {run.manifest["metrics"] for run in runs}
    if len(kinds) > 1:
        raise InterbenchError(f"these runs have different metrics ({', '.join(sorted(kinds))}) and cannot be compared")


def _check_same_questions(first: ScoredRun, second: ScoredRun) -> tuple[int, int]:
    """How many episodes only the one and only the other run has."""
    one = {_key(summary): summary for summary in first.summaries}
    other = {_key(summary): summary for summary in second.summaries}
    common = one.keys() & other.keys()
    if not common:
        raise InterbenchError(f"{first.folder} and {second.folder} have no episode in common")
    differ = sorted(key[0] for key in common if not _same_target(one[key], other[key]))
    if differ:
        shown = ", ".join(differ[:_NAMED_IDS]) + (" ..." if len(differ) > _NAMED_IDS else "")
        raise InterbenchError(
            f"{first.folder} and {second.folder}: {len(differ)} episodes of the same id have different right answers "
            f"({shown}): the runs are of different data and cannot be compared"
        )
    return len(one.keys() - other.keys()), len(other.keys() - one.keys())


def _same_target(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equal as far as both tell it: a summary may cut a long one, and has none of an episode that was not played."""
    left, right = one.get("target") or "", other.get("target") or ""
    if not left or not right:
        return True
    if one.get("target_cut") or other.get("target_cut"):
        shared = min(len(left), len(right))
        return bool(left[:shared] == right[:shared])
    return bool(left == right)


_TOLD_OF = {
    "task": "task",
    "task_version": "task version",
    "prompt_digests": "prompts",
    "protocol_options": "options of the protocol",
}


def _warnings(names: Mapping[str, ScoredRun]) -> Iterator[str]:
    runs = list(names.values())
    for key, told in _TOLD_OF.items():
        if len({repr(run.manifest.get(key)) for run in runs}) > 1:
            yield f"the runs differ in: {told}; the differences may come from that"
    if len({repr(run.manifest.get("generation", {}).get("receiver")) for run in runs}) > 1:
        yield "the runs differ in: generation settings of the receiver; the differences may come from that"
    if len({repr(_providers(run)) for run in runs}) > 1:
        yield "the runs differ in: providers; their test sets differ for that alone"
    for name, run in names.items():
        if not run.metrics()["finished"]:
            yield f"{name}: the run is UNFINISHED; what ends first is no fair sample"
        for role in run.manifest.get("simulated", ()):
            yield f"{name}: its {role} is a simulation"


def _providers(run: ScoredRun) -> dict[str, str]:
    models = run.manifest["models"]
    return {role: model["name"] for role, model in models.items() if role.partition("@")[0] == "provider"}
