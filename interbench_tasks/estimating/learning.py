"""Runs that were played already, as a source of rates, and of episodes that a run need not play again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interbench_tasks.errors import BudgetError
from interbench_tasks.estimating.task import Task, name_and_address
from interbench_tasks.protocols.feedback_calls import Known, Rates
from interbench_tasks.protocols.feedback_learned import Learned, learned_from
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.runs.folder import MANIFEST, read_json, read_records, run_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Episodes that were played already, by the same models or by others."""

    records: tuple[EpisodeRecord, ...] = ()
    same: bool = True
    """Whether they are episodes of this very run: same models, arms, rounds and data."""
    notes: tuple[str, ...] = ()


def learned(task: Task, played: Played) -> Learned:
    """What the episodes that were played tell of the task's run."""
    labels = task.labels
    if not played.same:  # rates of other models are a guess at these; their calls are not this run's
        found = learned_from(played.records, shape=task.shape, labels=labels, rates=Rates())
        return Learned(rates=found.rates, known=Known())
    rows = set(task.rows)
    own = [record for record in played.records if record.doc_id in rows and record.repeat == 0]
    return learned_from(own, shape=task.shape, labels=labels, rates=Rates())


def played_in(folders: Sequence[Path], task: Task) -> Played:
    """The episodes of earlier runs of the task.

    Raises: RunFolderError where a folder holds no run; BudgetError where it holds none of this task.
    """
    found = [(folder, read_json(folder / MANIFEST)) for given in folders for folder in run_folders(given)]
    own = [(folder, manifest) for folder, manifest in found if manifest["task"] == task.name]
    if not own:
        there = ", ".join(sorted({manifest["task"] for _, manifest in found}))
        raise BudgetError(f"--from: no run of {task.name} there; there are runs of: {there}")
    notes: list[str] = []
    records: dict[tuple[int, int], EpisodeRecord] = {}
    differences = dict.fromkeys(text for _, manifest in own for text in _differences(manifest, task))
    if differences:
        notes.append(f"rates were learned from runs that differ ({'; '.join(differences)}): a guess at this one")
    for folder, _ in own:
        records |= {(record.doc_id, record.repeat): record for record in read_records(folder)}
    docs = sorted(doc_id for doc_id, _ in records)
    if docs and docs == list(range(len(docs))) and len(docs) < len(task.rows):
        notes.append(
            f"learned from the first {len(docs)} rows: where the data set is sorted, the others may be easier or harder"
        )
    return Played(records=tuple(records.values()), same=not differences, notes=tuple(notes))


def _differences(manifest: Mapping[str, Any], task: Task) -> list[str]:
    """What another run was made with, where that changes its numbers of calls or their tokens."""
    told = []
    for key in ("arms", "max_rounds", "providers", "leak_guard"):
        value = getattr(task.loop, key)
        theirs = manifest["protocol_options"].get(key)
        if _plain(theirs) != _plain(value):
            told.append(f"{key} {theirs}")
    if manifest["data"]["source"] != task.data.source:
        told.append(f"data {manifest['data']['source']}")
    ours = {key: name_and_address(role, task.offers)[0] for key, role in task.roles.items()}
    theirs = {key: model["name"] for key, model in manifest["models"].items()}
    told += [f"{key} {theirs.get(key)}" for key, name in ours.items() if theirs.get(key) != name]
    return told


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
