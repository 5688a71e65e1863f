"""Runs with judges that are played once and judged again: a task YAML in a folder, its items, and who answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interbench_tasks.config import task_options_from
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.records import EpisodeRecord, Reply, Usage
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.runs.score import score_folder
from interbench_tasks.task_files import data_of
from interbench_tasks.yaml_files import config_from_file

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)
HEADER = """task: {name}
class: !function interbench_tasks.harness.task.InteractiveTask
dataset_path: json
dataset_kwargs: {{data_files: items.jsonl}}
test_split: test
generation_kwargs: {{until: [], max_new_tokens: 64, temperature: 0.5}}
metadata:
  version: 1.0
  interbench: {block}
"""


class Speaker:
    """A receiver that says what a function says, and counts how often it was asked."""

    name = "speaker:one"
    fingerprint = "speaker:one"

    def __init__(self, say) -> None:
        self.asked = 0
        self._say = say

    async def reply(self, call: Call) -> Reply:
        self.asked += 1
        said = self._say(call)
        return said if isinstance(said, Reply) else Reply(text=said, finish_reason="stop", usage=Usage(calls=1))

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class PlayedTask:
    yaml: Path
    folder: Path
    """Of the run."""

    @property
    def records(self) -> list[EpisodeRecord]:
        return list(read_records(self.folder))


def write_task(folder: Path, items: Sequence[Mapping[str, Any]], block: Mapping[str, Any], name: str = "mine") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    path = folder / f"{name}.yaml"
    path.write_text(HEADER.format(name=name, block=json.dumps(block)), encoding="utf-8")
    return path


def play(yaml: Path, receiver: Backend, *, rows: Sequence[int] | None = None, run_id: str = "first") -> PlayedTask:
    """Play the task of a YAML. Args: rows = those that are played; None: all."""
    config = config_from_file(yaml)
    data = data_of(config, yaml)
    wanted = range(len(data.rows)) if rows is None else rows
    plan = RunPlan(
        task=config["task"],
        options=task_options_from(config, where=str(yaml), offers=OFFERS),
        data=data,
        wanted=[(doc, 0) for doc in wanted],
        n_total=len(data.rows),
        run_id=run_id,
        folder=yaml.parent / "runs" / run_id / config["task"],
    )
    play_run(plan, receiver=receiver, manager=MANAGER, offers=OFFERS, harness_model=lambda role: None)
    score_folder(plan.folder, OFFERS)
    return PlayedTask(yaml=yaml, folder=plan.folder)


def flawed(number: int, **changes: Any) -> dict[str, Any]:
    """A flawed item without pictures."""
    item = {
        "id": f"item{number}",
        "subtype": "EE.ambiguity" if number % 2 else "PC.intra_textual",
        "T": f"There are {number} cats and {number + 1} cats.",
        "Q": "How many cats are there?",
        "images": [],
        "gold": {"defect": f"The text says {number} and {number + 1}."},
    }
    return item | changes


def talk(number: int, n_turns: int = 4) -> dict[str, Any]:
    """A conversation that says the same thing again and again."""
    turns = [{"user_text": f"My cat is called Tom{number}.", "ref_response": "Noted."}]
    turns += [{"user_text": "Go on.", "ref_response": "Yes."}] * (n_turns - 1)
    questions = [
        {"qid": f"q{i}", "ability": "MR", "question": f"{i}: what is its name?", "answer": f"Tom{number}"}
        for i in (1, 2)
    ]
    return {"id": f"talk{number}", "topic": "Cats", "turns": turns, "questions": questions}
