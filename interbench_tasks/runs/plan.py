"""What a run is to play, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interbench_tasks.config import TaskOptions
from interbench_tasks.rows import DataSet
from interbench_tasks.usage import NOTHING, Spent

Key = tuple[int, int]
"""(doc_id, repeat) of an episode."""
Facts = list[Mapping[str, Any]]


def _never() -> str | None:
    return None


def _alone(facts: Facts) -> Facts:
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What to play, and where to keep it."""

    task: str
    options: TaskOptions
    data: DataSet
    wanted: Sequence[Key]
    """This rank's episodes."""
    n_total: int
    """Episodes of all ranks together."""
    run_id: str
    folder: Path
    """The folder of this run and task."""
    rank: int = 0
    world_size: int = 1
    stop_reason: Callable[[], str | None] = _never
    """Asked before each episode starts; a text stops new ones."""
    spent_before: Spent = NOTHING
    """What earlier tasks of the same command used on this rank."""
    judged: Mapping[str, Any] = field(default_factory=dict)
    """Where replies come from that are judged again, for the manifest; empty for a run that asks the receiver."""
    people: Path | None = None
    """File or folder of the desk between the run and people; None where people are not asked."""
    from_all_ranks: Callable[[Facts], Facts] = _alone
    """This rank's facts -> those of all ranks; called once, on the calling thread, where there is a second pass."""
