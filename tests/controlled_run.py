"""A run with all controls against a planted server, without the harness: `play_run` here, or in a process to be killed.

As a process: `python -m tests.controlled_run FOLDER URL MAX_LIVE` plays into FOLDER; the ledger is where
`INTERBENCH_LEDGER` says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from interbench_tasks.config import task_options_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.rows import load_rows
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.runs.score import score_folder
from tests.planted_controls import Lineup
from tests.servers.controlled_brain import ControlledBrain, ControlledRates
from tests.servers.planted_brain import PlantedItem

N = 48
OPTIONS = ["w", "x", "y", "z"]
LINEUP = Lineup(receiver="pupil", providers={"one": "teacher-1", "two": "teacher-2"}, flip_sample=7)
MODELS = {
    "pupil": ControlledRates(
        accuracy=0.4,
        correction={"detail": 0.6, "simple": 0.4, "reask": 0.3, "mismatched": 0.3},
        flip={"detail": 0.4, "simple": 0.3, "reask": 0.2, "mismatched": 0.3},
    ),
    "teacher-1": ControlledRates(accuracy=0.9, leak=0.2),
    "teacher-2": ControlledRates(accuracy=0.6),
}


def rows() -> list[dict[str, Any]]:
    """Questions of two categories, and one that is alone in its own."""
    kinds = ["alone", *("even" if number % 2 == 0 else "odd" for number in range(1, N))]
    return [row | {"answer": OPTIONS[doc_id % 4], "category": kinds[doc_id]} for doc_id, row in enumerate(asked())]


def asked() -> list[dict[str, Any]]:
    """The questions without their answers."""
    return [
        {"id": f"q{number}", "question": f"Which one is number {number}?", "options": OPTIONS} for number in range(N)
    ]


def items() -> list[PlantedItem]:
    options = dict(zip("ABCD", OPTIONS, strict=True))
    return [
        PlantedItem(id=row["id"], question=row["question"], target="ABCD"[doc_id % 4], options=options)
        for doc_id, row in enumerate(asked())
    ]


def brain(*, slowest_s: float = 0) -> ControlledBrain:
    return ControlledBrain(items(), models=MODELS, seed=4, slowest_s=slowest_s)


def plan_for(folder: Path, url: str, *, max_live: int, at_once: int) -> RunPlan:
    """The run; its data is written beside its folder."""
    data = folder.with_suffix(".jsonl")
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    config = {
        "task": "controlled",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 64, "temperature": 0},
        "metadata": {
            "version": 1.0,
            "interbench": {
                "protocol": "feedback_loop",
                "verifier": "choice",
                "arms": ["detail", "simple", "reask", "mismatched"],
                "flip_sample": LINEUP.flip_sample,
                "engine": {"max_live_episodes": max_live},
                "providers": [
                    {"name": label, "backend": "openai", "model": model, "base_url": url, "max_concurrency": at_once}
                    for label, model in LINEUP.providers.items()
                ],
            },
        },
    }
    return RunPlan(
        task="controlled",
        options=task_options_from(config, where="controlled.yaml", offers=offers_from(build_plugin_manager())),
        data=load_rows("json", name=None, split="test", options={"data_files": str(data)}),
        wanted=[(doc_id, 0) for doc_id in range(N)],
        n_total=N,
        run_id="r",
        folder=folder,
    )


def play_into(folder: Path, url: str, *, max_live: int = 8, at_once: int = 4) -> dict[str, Any]:
    """Play the run; its `metrics.json`.

    Args: max_live = episodes at once; at_once = requests to each model.
    """
    manager = build_plugin_manager()
    offers = offers_from(manager)

    def no_harness(role: object) -> Any:
        raise AssertionError("no model of the harness is needed")

    receiver = offers.backends["openai"](LINEUP.receiver, base_url=url, max_concurrency=at_once)
    plan = plan_for(folder, url, max_live=max_live, at_once=at_once)
    play_run(plan, receiver=receiver, manager=manager, offers=offers, harness_model=no_harness)
    return score_folder(folder, offers)


def records_in(folder: Path) -> list[dict[str, Any]]:
    """The records of a run folder, in the file's order."""
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    play_into(Path(sys.argv[1]), sys.argv[2], max_live=int(sys.argv[3]))
