"""Which runs may be compared, what they are called, and what a reader has to know of how they differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from interbench_tasks.errors import InterbenchError
from interbench_tasks.runs.names import dated, told_apart
from interbench_tasks.runs.score import ScoredRun

Key = tuple[str, int]
"""(episode id, repeat)."""

SETTINGS: Mapping[str, str] = {
    "task": "task",
    "task_version": "task version",
    "protocol": "protocol",
    "protocol_options": "protocol options",
    "options": "task options",
    "prompt_digests": "digest of the prompt",
    "generation": "generation settings",
    "data.source": "data source",
}
"""Key of the manifest -> what it is called: what can move a score, beside the models."""
NO_MATTER = frozenset(
    {
        "options.engine",
        "options.max_failed_share",
        "options.prompts",  # their digests are compared
        "options.providers",  # their models are compared
        "protocol_options.providers",
        "options.judges",  # likewise
        "protocol_options.judges",
    }
)
"""Parts of SETTINGS that move no score, or are told elsewhere."""
GENERATION = "generation settings "
_NAMED_IDS = 5
_SHOWN_CHARACTERS = 60


def key_of(summary: Mapping[str, Any]) -> Key:
    """What an episode is found by in another run."""
    return str(summary["id"]), int(summary["repeat"])


def units_by_row(run: ScoredRun) -> list[Mapping[str, Mapping[str, tuple[float, float]]]]:
    """What the units of each episode add, in the rows of `by_key`; empty where nobody knows."""
    told = dict(zip(map(key_of, run.summaries), run.units, strict=True)) if run.units else {}
    return [told[key] for key in by_key(run)] if told else []


def names_of(runs: Sequence[ScoredRun]) -> list[str]:
    """One name a run, no two equal: its label or receiver; where that is not enough with date, run id or folder."""

    def own(run: ScoredRun) -> str:
        return run.label or run.receiver

    return told_apart(
        runs,
        own,
        (
            lambda run: dated(own(run), run.manifest, minutes=False),
            lambda run: dated(own(run), run.manifest, minutes=True),
            lambda run: f"{own(run)} ({run.manifest.get('run_id', run.folder)})",
            lambda run: f"{own(run)} ({run.folder})",
        ),
    )


def refuse_doubles(runs: Sequence[ScoredRun]) -> None:
    """Refuse a folder that is named twice, also by way of a link or of a folder that holds it.

    Raises: InterbenchError naming it.
    """
    for folder, times in Counter(run.folder.resolve() for run in runs).items():
        if times > 1:
            raise InterbenchError(f"{folder}: is named twice; name each run once")


def refuse_other_metrics(runs: Sequence[ScoredRun]) -> None:
    """Refuse runs whose numbers are made by different metric sets.

    Raises: InterbenchError naming the sets.
    """
    kinds = {run.manifest["metrics"] for run in runs}
    if len(kinds) > 1:
        raise InterbenchError(f"these runs have different metrics ({', '.join(sorted(kinds))}) and cannot be compared")


def by_key(run: ScoredRun) -> dict[Key, Mapping[str, Any]]:
    """A run's summaries by what their episodes are found by.

    Raises: InterbenchError where an episode is there twice.
    """
    found = {key_of(summary): summary for summary in run.summaries}
    if len(found) < len(run.summaries):
        times = Counter(map(key_of, run.summaries))
        twice = sorted(episode for (episode, _), count in times.items() if count > 1)
        raise InterbenchError(
            f"{run.folder}: {len(twice)} episodes are there twice ({_some(twice)}), "
            "so nobody can say which belongs to another run's; give each row an id of its own (`columns.id`)"
        )
    return found


def refuse_other_questions(first: ScoredRun, second: ScoredRun) -> None:
    """Refuse two runs without a common episode, or in which equal ids stand for different questions.

    Raises: InterbenchError naming the folders, and the ids whose right answers differ.
    """
    one, other = by_key(first), by_key(second)
    common = one.keys() & other.keys()
    if not common:
        raise InterbenchError(f"{first.folder} and {second.folder} have no episode in common")
    differ = sorted({key[0] for key in common if not _same_target(one[key], other[key])})
    if differ:
        raise InterbenchError(
            f"{first.folder} and {second.folder}: {len(differ)} episodes of the same id have different right answers "
            f"({_some(differ)}): the runs are of different data and cannot be compared"
        )


def _same_target(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equal as far as both tell it: a summary may cut a long one, and has none of an episode that was not played."""
    left, right = one.get("target") or "", other.get("target") or ""
    if not left or not right:
        return True
    if one.get("target_cut") or other.get("target_cut"):
        shared = min(len(left), len(right))
        return bool(left[:shared] == right[:shared])
    return bool(left == right)


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED_IDS]) + (", ..." if len(ids) > _NAMED_IDS else "")


def warnings_of(runs: Mapping[str, ScoredRun]) -> Iterator[str]:
    """What a reader has to know before believing a comparison, a sentence each.

    Args: runs = name -> run.
    """
    settings = {name: _settings(run) for name, run in runs.items()}
    shared = _generation_of_all(list(runs.values()))
    yield from differences_between(
        {
            name: {told: value for told, value in own.items() if not told.startswith(GENERATION) or told in shared}
            for name, own in settings.items()
        }
    )
    for told in differences_between({name: {"providers": _models(run, "provider")} for name, run in runs.items()}):
        yield f"{told}; test sets differ for that alone"
    for role in ("judge", "notetaker"):
        for told in differences_between({name: {f"{role}s": _models(run, role)} for name, run in runs.items()}):
            yield f"{told}; scores differ for that alone"
    for name, run in runs.items():
        yield from _warnings_of_one(name, run)


def _generation_of_all(runs: Sequence[ScoredRun]) -> set[str]:
    """The generation settings of the roles that all runs have: that another one is missing is told with its model."""
    roles = set.intersection(*(set(run.manifest.get("generation") or ()) for run in runs))
    starts = tuple(f"{GENERATION}{role}." for role in roles)  # a label may hold a dot
    return {told for run in runs for told in _settings(run) if told.startswith(starts)}


def table_warnings(runs: Mapping[str, ScoredRun]) -> Iterator[str]:
    """What a reader of a table has to know: runs that are no fair sample, or of different versions of the task.

    Args: runs = name -> run, of one task.
    """
    yield from differences_between(
        {name: {"task version": run.manifest.get("task_version")} for name, run in runs.items()}
    )
    for name, run in runs.items():
        yield from _warnings_of_one(name, run)


def _warnings_of_one(name: str, run: ScoredRun) -> Iterator[str]:
    if not run.finished:
        yield f"{name}: the run is UNFINISHED; what ends first is no fair sample (right answers end early)"
    simulated = [role.replace("@", " ") for role in run.manifest.get("simulated", ())]
    if simulated:
        yield f"{name}: simulated, not a model's own words: {', '.join(simulated)}"


def differences_between(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each setting that is not the same in all runs: what it is in which.

    Args: settings = name of the run -> what it is called -> value.

    >>> list(differences_between({"a": {"version": "1.0"}, "b": {"version": "1.1"}, "c": {"version": "1.0"}}))
    ['the runs differ in version: "1.0" (a, c); "1.1" (b)']
    """
    for told in dict.fromkeys(told for own in settings.values() for told in own):
        runs_with: dict[str, list[str]] = {}
        for name, own in settings.items():
            text = json.dumps(own[told], ensure_ascii=False, sort_keys=True) if told in own else "not there"
            runs_with.setdefault(text, []).append(name)
        if len(runs_with) > 1:
            values = "; ".join(f"{_short(text)} ({', '.join(names)})" for text, names in runs_with.items())
            yield f"the runs differ in {told}: {values}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _settings(run: ScoredRun) -> dict[str, Any]:
    """What each setting of a run is called -> its value; a mapping within a mapping is several settings."""
    found: dict[str, Any] = {}
    for path, told in SETTINGS.items():
        value: Any = run.manifest
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        for inner, leaf in _leaves(value, path):
            found[f"{told}{inner.removeprefix(path).replace('.', ' ', 1)}"] = leaf
    return found


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if path in NO_MATTER:
        return
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield path, value


def other_providers(first: ScoredRun, second: ScoredRun) -> dict[str, tuple[str, str]]:
    """Label -> both models, of the providers that have one label and are two models; a single one's label is empty."""
    one, other = _models(first, "provider"), _models(second, "provider")
    return {
        role.partition("@")[2]: (one[role], other[role]) for role in one if role in other and one[role] != other[role]
    }


def labels_in(metric: str, labels: Iterable[str]) -> list[str]:
    """Which of the labels a metric is of.

    >>> labels_in("correction_rate.detail@gpt-4o", ["gpt", "gpt-4o"]), labels_in("same.a@p-a@q", ["p", "q"])
    (['gpt-4o'], ['p', 'q'])
    """
    return [label for label in labels if label and re.search(rf"@{re.escape(label)}(?:$|-[^@]*@)", metric)]


def _models(run: ScoredRun, name: str) -> dict[str, str]:
    """Role -> model, of all that play one role."""
    models = run.manifest["models"]
    return {role: model["name"] for role, model in models.items() if role.partition("@")[0] == name}
