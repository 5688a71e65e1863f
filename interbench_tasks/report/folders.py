"""A run folder, read as far as it can be read: what cannot is told, and nothing else is lost for it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interbench_tasks.errors import InterbenchError, RunFolderError
from interbench_tasks.hookspecs import MetricSet
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.record_json import record_from_json
from interbench_tasks.report.table import unfinished_lines
from interbench_tasks.runs.folder import EPISODES, MANIFEST, METRICS, read_json
from interbench_tasks.runs.score import metric_set_of, metrics_from
from interbench_tasks.runs.usage_file import read_usage

MOST_NAMED = 3
"""Damaged lines of a folder that are told one by one; of the others only the number."""
_KEY = re.compile(rb'"doc_id":(-?\d+),"repeat":(\d+)')
"""Where a line says which episode it is of."""
Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContent:
    """One run and task, as far as its folder tells."""

    folder: Path
    task: str
    protocol: str
    receiver: str
    manifest: Mapping[str, Any]
    metrics: Mapping[str, Estimate]
    """In the order to show."""
    headline: tuple[str, ...]
    """Names of `metrics` that are shown first."""
    categories: Mapping[str, Mapping[str, Estimate]]
    summaries: Sequence[Summary]
    usage: Mapping[str, Any] | None
    n_found: int
    n_wanted: int | None
    unfinished: tuple[str, ...]
    """What has to be said of a run that was not finished; empty where it was."""
    problems: tuple[str, ...]
    """What of the folder cannot be read, or is missing."""


@dataclass(slots=True)
class _Reading:
    """What was found of a folder so far."""

    folder: Path
    manifest: Mapping[str, Any] = field(default_factory=dict)
    metric_set: MetricSet | None = None
    summaries: list[Summary] = field(default_factory=list)
    first: Mapping[str, Any] = field(default_factory=dict)
    """The first record's JSON."""
    n_found: int = 0
    not_counted: Counter[str] = field(default_factory=Counter)
    """Why episodes that can be shown cannot be counted -> how many."""
    problems: list[str] = field(default_factory=list)


def report_folders(path: Path) -> list[Path]:
    """The folders of runs at or below `path`, oldest first: also such that lack a file.

    Raises: RunFolderError where there is none.
    """
    names = (MANIFEST, METRICS, "episodes*.jsonl")
    found = sorted({file.parent for name in names for file in path.rglob(name)})
    if not found:
        why = "holds no run" if path.exists() else "there is no such folder"
        raise RunFolderError(f"{path}: {why}; name a run folder, or one that holds some (lmms-eval's --output_path)")
    return found


def content_from(folder: Path, offers: Offers, on_episode: Callable[[Mapping[str, Any]], None]) -> RunContent:
    """Read a run folder.

    Args: on_episode = called with each episode's JSON, in the order of the file; may raise where it is none.
    """
    reading = _Reading(folder)
    reading.manifest = _json_or_nothing(folder / MANIFEST, reading.problems)
    reading.metric_set = _metric_set(reading, offers)
    try:
        for file, number, line in _episode_lines(folder):
            _read_line(reading, f"{file.name}, line {number}", line, on_episode)
    except OSError as error:
        reading.problems.append(f"{error.filename}: cannot be read (to its end): {error.strerror or error}")
    _tell_lines(reading)
    reading.summaries.sort(key=lambda summary: (summary["doc_id"], summary["repeat"]))
    told = _metrics(reading)
    metrics = _estimates(told.get("metrics"), "metrics", reading.problems)
    categories = told.get("categories") if isinstance(told.get("categories"), Mapping) else {}
    manifest = reading.manifest
    return RunContent(
        folder=folder,
        task=str(manifest.get("task") or told.get("task") or reading.first.get("task") or folder.name),
        protocol=str(manifest.get("protocol") or reading.first.get("protocol") or "unknown"),
        receiver=_receiver(reading),
        manifest=manifest,
        metrics=metrics,
        headline=_headline(reading.metric_set, metrics),
        categories={
            str(name): _estimates(table, f"metrics of category {name}", reading.problems)
            for name, table in (categories or {}).items()
        },
        summaries=tuple(reading.summaries),
        usage=_usage(reading),
        n_found=reading.n_found,
        n_wanted=_n_wanted(manifest),
        unfinished=tuple(_unfinished(told, reading)),
        problems=tuple(reading.problems),
    )


# --- episodes ---------------------------------------------------------------------------------------------------------


def _episode_lines(folder: Path) -> Iterator[tuple[Path, int, bytes]]:
    """Every line of a folder's episodes, but those that a later one replaces."""
    whole = folder / EPISODES
    for file in [whole] if whole.exists() else sorted(folder.glob("episodes-rank*.jsonl")):
        last: dict[bytes, int] = {}
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if (found := _KEY.search(line)) is not None:
                    last[found[0]] = number
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                found = _KEY.search(line)
                if line.strip() and (found is None or last[found[0]] == number):
                    yield file, number, line


def _read_line(reading: _Reading, where: str, line: bytes, on_episode: Callable[[Mapping[str, Any]], None]) -> None:
    try:
        obj = _episode_in(line)
        on_episode(obj)
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        torn = "" if line.endswith(b"\n") else "it is torn, the run was stopped while it was written: "
        reading.problems.append(f"{where} cannot be read ({torn}{type(error).__name__}: {error}); it is left out"[:400])
        return
    reading.n_found += 1
    reading.first = reading.first or obj
    if reading.metric_set is None:
        return
    try:
        reading.summaries.append(reading.metric_set.summary(record_from_json(obj)))
    except (RunFolderError, ValueError, KeyError, TypeError, AttributeError) as error:
        reading.not_counted[str(error).split("\n", 1)[0][:300] or repr(error)] += 1


def _episode_in(line: bytes) -> dict[str, Any]:
    obj = json.loads(line.decode("utf-8", "surrogatepass"))
    if not isinstance(obj, dict) or "episode_id" not in obj:
        raise ValueError("it holds no episode")
    return obj


def _tell_lines(reading: _Reading) -> None:
    lines = [problem for problem in reading.problems if problem.startswith("episodes")]
    if len(lines) > MOST_NAMED:
        rest = len(lines) - MOST_NAMED
        reading.problems[:] = [p for p in reading.problems if p not in lines[MOST_NAMED:]]
        reading.problems.append(f"{rest} more lines of {EPISODES} cannot be read")
    for why, n in reading.not_counted.most_common(MOST_NAMED):
        counted = "episode is shown, but its numbers are" if n == 1 else "episodes are shown, but their numbers are"
        reading.problems.append(f"{n} {counted} not counted: {why}")
    if not reading.n_found:
        reading.problems.append(f"no episode is here: {EPISODES} is missing or holds none that can be read")


# --- numbers ----------------------------------------------------------------------------------------------------------


def _metric_set(reading: _Reading, offers: Offers) -> MetricSet | None:
    if not reading.manifest:
        return None
    try:
        return metric_set_of(reading.manifest, offers, reading.folder / MANIFEST)
    except (InterbenchError, TypeError, AttributeError) as error:
        told = " ".join(str(error).split()) if isinstance(error, InterbenchError) else f"{MANIFEST} is odd: {error}"
        reading.problems.append(f"{told}; transcripts are shown, numbers come from {METRICS}")
        return None


def _metrics(reading: _Reading) -> Mapping[str, Any]:
    """The content of metrics.json where it counts all that is here; else it is computed again, if that can be."""
    path = reading.folder / METRICS
    stored = _json_or_nothing(path, []) if path.exists() else {}
    if stored and _count(stored) >= len(reading.summaries) and _readable(stored):
        return stored
    if reading.metric_set is None or not reading.summaries:
        if not path.exists() and reading.n_found:
            reading.problems.append(f"{METRICS} is missing, and without the manifest the numbers cannot be computed")
        elif not _readable(stored):
            reading.problems.append(f"{METRICS} cannot be read")
        return stored if _readable(stored) else {}
    if path.exists():
        what = "holds fewer episodes than are here" if _readable(stored) and stored else "cannot be read"
        reading.problems.append(f"{METRICS} {what}; the numbers were computed again from the episodes")
    try:
        return metrics_from(
            reading.metric_set,
            reading.summaries,
            task=str(reading.manifest.get("task", "")),
            n_wanted=_n_wanted(reading.manifest),
            second_pass=reading.manifest.get("second_pass"),
        )
    except Exception as error:  # noqa: BLE001 - whatever odd summaries do to a metric set, the transcripts are shown
        reading.problems.append(f"the metrics cannot be computed: {error!r}"[:400])
        return {}


def _count(stored: Mapping[str, Any]) -> int:
    episodes = stored.get("episodes")
    found = episodes.get("found") if isinstance(episodes, Mapping) else None
    return found if isinstance(found, int) else 0


def _readable(stored: Mapping[str, Any]) -> bool:
    problems: list[str] = []
    _estimates(stored.get("metrics", {}), "", problems)
    return not problems


def _estimates(table: object, what: str, problems: list[str]) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    if not isinstance(table, Mapping):
        if table is not None:
            problems.append(f"{what}: no table in {METRICS}")
        return found
    for name, value in table.items():
        try:
            found[str(name)] = _estimate(value)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            problems.append(f"{what}: {name} cannot be read from {METRICS}: {error}")
    return found


def _estimate(value: Mapping[str, Any]) -> Estimate:
    """Raises: TypeError, ValueError, KeyError or AttributeError where it is none."""
    made = Estimate.from_json(value)
    numbers = [made.value, made.n, made.unscored, *(made.ci95 or ()), *(made.bounds or ())]
    numbers += [number for number in (made.count, made.points) if number is not None]
    wrong = [number for number in numbers if isinstance(number, bool) or not isinstance(number, int | float)]
    if wrong or not isinstance(made.method, str) or not math.isfinite(made.value):
        raise TypeError(f"{wrong[0] if wrong else made.method!r} is no number of an estimate")
    return made


def _headline(metric_set: MetricSet | None, metrics: Mapping[str, Estimate]) -> tuple[str, ...]:
    return tuple(metric_set.headline(list(metrics))) if metric_set is not None else tuple(metrics)


def _n_wanted(manifest: Mapping[str, Any]) -> int | None:
    data = manifest.get("data")
    wanted = data.get("n_episodes") if isinstance(data, Mapping) else None
    return wanted if isinstance(wanted, int) else None


def _unfinished(told: Mapping[str, Any], reading: _Reading) -> Iterator[str]:
    if told.get("finished") is True:
        return
    try:
        yield from unfinished_lines(told)
    except (KeyError, TypeError, AttributeError):
        wanted = _n_wanted(reading.manifest)
        yield f"UNFINISHED, as far as the folder tells: {reading.n_found} of {wanted or '?'} episodes are here."


# --- the rest ---------------------------------------------------------------------------------------------------------


def _json_or_nothing(path: Path, problems: list[str]) -> Mapping[str, Any]:
    try:
        return read_json(path)
    except RunFolderError as error:
        problems.append(" ".join(str(error).split()))
        return {}


def _receiver(reading: _Reading) -> str:
    models = reading.manifest.get("models")
    own = models.get("receiver") if isinstance(models, Mapping) else None
    name = own.get("name") if isinstance(own, Mapping) else None
    if name is None:
        played = reading.first.get("models")
        name = played.get("receiver") if isinstance(played, Mapping) else None
    return str(name) if name else "unknown receiver"


def _usage(reading: _Reading) -> Mapping[str, Any] | None:
    try:
        return read_usage(reading.folder)
    except (InterbenchError, KeyError, TypeError, AttributeError) as error:
        reading.problems.append(f"the usage cannot be read: {error}"[:300])
        return None
