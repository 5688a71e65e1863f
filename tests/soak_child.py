"""Plays a task as the harness would, without the harness: starts in a second instead of twelve.

Run: python -m tests.soak_child TASK.yaml FOLDER RECEIVER; the provider is INTERBENCH_PROVIDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

from interbench_tasks.config import task_options_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.role_words import role_words_from
from interbench_tasks.runs.folder import new_run_id
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.task_files import data_of
from interbench_tasks.yaml_files import config_from_file


def no_harness(role: object) -> None:
    raise AssertionError("no role is played by a model of the harness")


def main(task_file: str, out: str, receiver: str) -> None:
    """One whole run, in a folder of its own below `out`."""
    path = Path(task_file)
    manager = build_plugin_manager()
    offers = offers_from(manager)
    config = config_from_file(path)
    data = data_of(config, path)
    run_id = new_run_id("soak")
    plan = RunPlan(
        task=config["task"],
        options=task_options_from(config, where=str(path), offers=offers),
        data=data,
        wanted=[(doc_id, 0) for doc_id in range(len(data.rows))],
        n_total=len(data.rows),
        run_id=run_id,
        folder=Path(out) / "interbench" / run_id / config["task"],
    )
    words = role_words_from(receiver)
    model = offers.backends[words.backend](words.model, **words.options)
    played = play_run(plan, receiver=model, manager=manager, offers=offers, harness_model=no_harness)
    assert played.n_failed == 0, played.errors
    for warning in played.ledger_warnings:
        sys.stderr.write(f"ledger warning: {warning}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
