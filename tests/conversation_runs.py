"""Whole runs of conversations: rows of a file, roles as a YAML names them, records and report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from interbench_tasks.backends.openai import OpenAIBackend
from interbench_tasks.config import TaskOptions, task_options_from
from interbench_tasks.hookspecs import Backend
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.rows import load_rows
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import PlayedRun, play_run
from interbench_tasks.task_roles import Role

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)


def row(name: str, n_turns: int = 3, n_questions: int = 2, **changes: Any) -> dict[str, Any]:
    """A conversation whose turns name it, so that no two conversations share a request."""
    turns = [{"user_text": f"{name}: this is fact {i}.", "ref_response": f"{name}: noted {i}."} for i in range(n_turns)]
    questions = [
        {
            "qid": f"q{i}",
            "ability": "MR",
            "question": f"What is fact {i}?",
            "answer": f"fact {i}",
            "evidence_turns": [i],
        }
        for i in range(n_questions)
    ]
    return {"id": name, "topic": "Travel", "turns": turns, "questions": questions, **changes}


def options_of(block: Mapping[str, Any], *, max_new_tokens: int = 16) -> TaskOptions:
    config = {
        "task": "talk",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": max_new_tokens, "temperature": 0},
        "metadata": {"version": 1.0, "interbench": {"protocol": "conversation", "verifier": "choice", **block}},
    }
    return task_options_from(config, where="talk.yaml", offers=OFFERS)


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "talks.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def no_harness(role: Role) -> NoReturn:
    raise AssertionError(f"{role.named_in}: no role is played by a model of the harness")


def played(
    folder: Path, rows: Sequence[Mapping[str, Any]], receiver: Backend, **block: Any
) -> tuple[list[EpisodeRecord], PlayedRun]:
    """The records of a run and its report. Args: block = keys of metadata.interbench."""
    path = write_rows(folder, rows)
    plan = RunPlan(
        task="talk",
        options=options_of(block),
        data=load_rows(str(path), name=None, split="test", options={}),
        wanted=[(doc, 0) for doc in range(len(rows))],
        n_total=len(rows),
        run_id="r",
        folder=folder / "run",
    )
    run = play_run(plan, receiver=receiver, manager=MANAGER, offers=OFFERS, harness_model=no_harness)
    return list(read_records(plan.folder)), run


def server_backend(url: str, model: str = "planted", **options: Any) -> OpenAIBackend:
    return OpenAIBackend(model, base_url=url, **{"max_retries": 0, **options})
