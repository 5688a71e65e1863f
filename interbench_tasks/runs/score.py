"""Summaries -> `metrics.json`; also from a run folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from interbench_tasks.errors import RunFolderError
from interbench_tasks.hookspecs import MetricSet, TwoPassMetrics, UnitMetrics
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.runs.folder import MANIFEST, METRICS, read_json, read_records, write_json


def metrics_from(
    metric_set: MetricSet,
    summaries: Sequence[Mapping[str, Any]],
    *,
    task: str,
    n_wanted: int | None,
    second_pass: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of `metrics.json`: every metric, in all and per category, and whether the run was finished.

    Args: n_wanted = episodes that the run was to play, None where nobody knows; second_pass = the manifest's.
    """
    ordered = sorted(summaries, key=lambda summary: (summary["doc_id"], summary["repeat"]))
    by_category: dict[str, list[Mapping[str, Any]]] = {}
    for summary in ordered:
        if summary.get("category") is not None:
            by_category.setdefault(summary["category"], []).append(summary)
    finished = _finished(ordered, n_wanted, second_pass)
    metrics = _as_json(metric_set.table(ordered))
    lacking = {} if finished else _lacking(metric_set, metrics, ordered, second_pass)
    return {
        "task": task,
        "episodes": {"found": len(ordered), "wanted": n_wanted},
        "finished": finished,
        **({"lacking": lacking} if lacking else {}),
        "metrics": metrics,
        "categories": {name: _as_json(metric_set.table(rows)) for name, rows in sorted(by_category.items())},
    }


def _finished(
    summaries: Sequence[Mapping[str, Any]], n_wanted: int | None, second_pass: Mapping[str, Any] | None
) -> bool:
    """Whether every wanted episode was played (not skipped), and every one of the second pass played on."""
    played = sum(summary.get("status") != "skipped" for summary in summaries)
    if n_wanted is None or played < n_wanted:
        return False
    if second_pass is None:
        return True
    played_on = sum(summary.get("passes", 1) >= 2 for summary in summaries)
    return second_pass["n_episodes"] is not None and played_on >= second_pass["n_episodes"]


def _lacking(
    metric_set: MetricSet,
    metrics: Mapping[str, Any],
    summaries: Sequence[Mapping[str, Any]],
    second_pass: Mapping[str, Any] | None,
) -> dict[str, str]:
    """Metric -> why an unfinished run has not all of it: what a second pass gives, as far as it was not played.

    What the first pass did not play needs no telling: its episodes are not there, or unscored.
    """
    if second_pass is None or not isinstance(metric_set, TwoPassMetrics):
        return {}
    played_on = sum(summary.get("passes", 1) >= 2 for summary in summaries)
    planned = second_pass["n_episodes"]
    if planned is not None and played_on >= planned:
        return {}
    if played_on == 0:
        why = "the run was stopped before its second pass, which plays what this needs"
    else:
        of_all = "an unknown number of" if planned is None else str(planned)
        why = f"the run was stopped in its second pass, when {played_on} of {of_all} episodes were played on"
    return {name: f"{'incomplete' if name in metrics else 'absent'}: {why}" for name in metric_set.of_second_pass()}


def _as_json(table: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.to_json() for name, estimate in table.items()}


def metric_set_of(manifest: Mapping[str, Any], offers: Offers, where: Path) -> MetricSet:
    """The metric set that a run's manifest names.

    Raises: RunFolderError where the protocol, the metrics or their options are not known here.
    """
    try:
        options = offers.protocols[manifest["protocol"]].Options.model_validate(manifest["protocol_options"])
        made: MetricSet = offers.metrics[manifest["metrics"]](options)
    except (KeyError, ValidationError) as error:
        raise RunFolderError(
            f"{where}: the manifest names something that is not installed here or has changed: {error}"
        ) from error
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """The run of one task, as its folder tells it."""

    folder: Path
    manifest: Mapping[str, Any]
    metric_set: MetricSet
    summaries: Sequence[Mapping[str, Any]]
    """Of all episodes, sorted by doc and repeat."""
    units: Sequence[Mapping[str, Mapping[str, tuple[float, float]]]] = ()
    """Of each summary what `UnitMetrics.units` tells; empty where nobody asked for it, or the metrics have none."""
    label: str = ""
    """What a reader wants it to be called; empty: by its receiver."""

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.manifest["task"])

    @property
    def receiver(self) -> str:
        """The model under test.

        Raises: RunFolderError where the manifest does not name it.
        """
        try:
            return str(self.manifest["models"]["receiver"]["name"])
        except (KeyError, TypeError) as error:
            raise RunFolderError(f"{self.folder / MANIFEST}: names no receiver under `models`") from error

    @property
    def finished(self) -> bool:
        """Whether every wanted episode was played to its end."""
        return _finished(self.summaries, self._n_wanted, self.manifest.get("second_pass"))

    @property
    def unfinished(self) -> str:
        """What stands beside the name of a run that was stopped, e.g. `(unfinished, 5 of 6)`; empty for a finished one.

        The numbers are episodes: those played of those wanted; once all are there, those played on in the second pass.
        """
        if self.finished:
            return ""
        played = sum(summary.get("status") != "skipped" for summary in self.summaries)
        second_pass = self.manifest.get("second_pass")
        if second_pass is None or self._n_wanted is None or played < self._n_wanted:
            return f"(unfinished, {played} of {'?' if self._n_wanted is None else self._n_wanted})"
        played_on = sum(summary.get("passes", 1) >= 2 for summary in self.summaries)
        planned = second_pass["n_episodes"]
        return f"(unfinished, second pass {played_on} of {'?' if planned is None else planned})"

    @property
    def _n_wanted(self) -> int | None:
        wanted: int | None = self.manifest.get("data", {}).get("n_episodes")
        return wanted

    def metrics(self) -> dict[str, Any]:
        """The content of `metrics.json`, computed now."""
        return metrics_from(
            self.metric_set,
            self.summaries,
            task=self.task,
            n_wanted=self._n_wanted,
            second_pass=self.manifest.get("second_pass"),
        )


def run_from_folder(path: Path, offers: Offers, *, units: bool = False) -> ScoredRun:
    """A run read back from its folder; nothing is written.

    Args: units = whether it is to be compared with another one.
    Raises: RunFolderError where the folder is no run folder or a file of it is damaged.
    """
    manifest = read_json(path / MANIFEST)
    metric_set = metric_set_of(manifest, offers, path / MANIFEST)
    of_each = metric_set.units if units and isinstance(metric_set, UnitMetrics) else None
    rows = [(metric_set.summary(one), of_each(one) if of_each is not None else {}) for one in read_records(path)]
    rows.sort(key=lambda row: (row[0]["doc_id"], row[0]["repeat"]))
    return ScoredRun(
        folder=path,
        manifest=manifest,
        metric_set=metric_set,
        summaries=[summary for summary, _ in rows],
        units=[own for _, own in rows] if of_each is not None else (),
    )


def score_folder(path: Path, offers: Offers) -> dict[str, Any]:
    """Metrics recomputed from a run folder alone, written to its `metrics.json`; the episodes are only read.

    Raises: RunFolderError where the folder is no run folder or a file of it is damaged.
    """
    metrics = run_from_folder(path, offers).metrics()
    write_json(path / METRICS, metrics)
    return metrics
