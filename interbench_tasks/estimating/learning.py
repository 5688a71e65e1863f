"""Runs that were played already, as a source of rates, and of episodes that a run need not play again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interbench_tasks.errors import BudgetError
from interbench_tasks.estimating.forecasts import forecast_of
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.task import Task, name_and_address
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.runs.folder import MANIFEST, read_json, read_records, run_folders


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
    ours = task.options.protocol_options.model_dump(mode="json")
    for key in forecast_of(task).matters:
        theirs = manifest["protocol_options"].get(key)
        if theirs != ours.get(key):
            told.append(f"{key} {theirs}")
    if manifest["data"]["source"] != task.data.source:
        told.append(f"data {manifest['data']['source']}")
    models = {key: name_and_address(role, task.offers)[0] for key, role in task.roles.items()}
    theirs = {key: model["name"] for key, model in manifest["models"].items()}
    told += [f"{key} {theirs.get(key)}" for key, name in models.items() if theirs.get(key) != name]
    return told
