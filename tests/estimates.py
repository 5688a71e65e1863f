"""Tasks as `interbench estimate` sees them, made of the demos with other options, and what their runs really took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from interbench_tasks.config import task_options_from
from interbench_tasks.estimating.given import Given
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.probe import _play, probed_estimate
from interbench_tasks.estimating.task import Task, receiver_role
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.prices import price_list
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.rows import Rows
from interbench_tasks.task_files import data_of, own_tasks
from interbench_tasks.yaml_files import config_from_file

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)


def demo(name: str, receiver: str = "simulated:default", *, rows: int | None = None, **block: Any) -> Task:
    """A demo with other keys of metadata.interbench; None leaves a key out."""
    path = own_tasks()[name]
    config = deepcopy(config_from_file(path))
    own = config["metadata"]["interbench"]
    own.update(block)
    config["metadata"]["interbench"] = {key: value for key, value in own.items() if value is not None}
    options = task_options_from(config, where=str(path), offers=OFFERS)
    data = data_of(config, path)
    if block.get("history") == "recorded":  # the demo has no recorded replies
        talks = [
            {**row, "turns": [{**turn, "ref_response": f"Noted: {n}."} for n, turn in enumerate(row["turns"])]}
            for row in data.rows
        ]
        data = replace(data, rows=Rows(talks))
    return Task(
        name=name,
        options=options,
        data=data,
        rows=range(rows or len(data.rows)),
        receiver=receiver_role(receiver, options),
        offers=OFFERS,
    )


def played(task: Task, rows: Sequence[int] | None = None) -> tuple[EpisodeRecord, ...]:
    """The records of some rows, all by default."""
    return tuple(_play(task, task.rows if rows is None else rows, MANAGER))


def estimated(task: Task, *, n: int | None = 0, given: Given | None = None, known: Played | None = None) -> Any:
    """An estimate. Args: n = episodes to play first, None: as many as it takes."""
    return probed_estimate(task, known or Played(), n=n, given=given or Given(), prices=price_list(), manager=MANAGER)


def taken(records: Sequence[EpisodeRecord]) -> Mapping[str, tuple[int, int, int]]:
    """Role -> calls, input and output tokens; all judges and all providers together."""
    found: dict[str, Counter[str]] = {}
    for record in records:
        for role, used in record.usage().items():
            own = found.setdefault(role, Counter())
            own.update(calls=used.calls, asked=used.input_tokens or 0, said=used.output_tokens or 0)
    return {role: (own["calls"], own["asked"], own["said"]) for role, own in found.items()}
