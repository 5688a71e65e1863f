"""Whole runs of critiques: rows of a file, roles as a YAML names them, records and table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from interbench_tasks.config import TaskOptions, task_options_from
from interbench_tasks.hookspecs import Backend
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.rows import load_rows
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.task_roles import Role

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)


def options_of(block: Mapping[str, Any]) -> TaskOptions:
    config = {
        "task": "flaws",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 64, "temperature": 0},
        "metadata": {"version": 1.0, "interbench": {"protocol": "critique", **block}},
    }
    return task_options_from(config, where="flaws.yaml", offers=OFFERS)


def no_harness(role: Role) -> NoReturn:
    raise AssertionError(f"{role.named_in}: nobody needs a model of the harness here")


def played(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    receiver: Backend,
    *,
    pictures_from: Path | None = None,
    **block: Any,
) -> tuple[list[EpisodeRecord], dict[str, Estimate]]:
    """The records of a run, and the table of its metrics. Args: block = keys of metadata.interbench."""
    path = folder / "items.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    more = {"pictures": {"root": str(pictures_from)}} if pictures_from is not None else {}
    options = options_of({**more, **block})
    plan = RunPlan(
        task="flaws",
        options=options,
        data=load_rows(str(path), name=None, split="test", options={}),
        wanted=[(doc, 0) for doc in range(len(rows))],
        n_total=len(rows),
        run_id="r",
        folder=folder / "run",
    )
    play_run(plan, receiver=receiver, manager=MANAGER, offers=OFFERS, harness_model=no_harness)
    records = list(read_records(plan.folder))
    metric_set = OFFERS.metrics["mmpcbench"](options.protocol_options)
    return records, dict(metric_set.table([metric_set.summary(record) for record in records]))
