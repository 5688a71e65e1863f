"""Our request type: plays the episodes of all our tasks that the evaluator hands over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interbench_tasks.runs.folder import new_run_id

PADDING = "__padding_only__"
"""The harness marks requests that only keep its ranks in step; nobody looks at their replies."""


def generate_until_interbench(self: Any, requests: Sequence[Any]) -> list[str]:  # noqa: ANN401 - the harness is untyped
    """One summary per request, as JSON, in order; set on the harness's base class, so every backend has it.

    Args:
        self: the harness's model.
        requests: Instances of our tasks; their second argument is the task, their `idx` the repeat.
    """
    run_id = _same_on_all_ranks(new_run_id(type(self).__name__.lower()))
    by_task: dict[int, list[Any]] = {}
    for request in requests:
        if not request.metadata.get(PADDING):
            by_task.setdefault(id(request.args[1]), []).append(request)
    totals = _over_all_ranks({own[0].args[4]: len(own) for own in by_task.values()})
    texts: dict[int, str] = {}
    for own in by_task.values():
        task = own[0].args[1]
        wanted = [(request.args[3], request.idx) for request in own]
        played = task.play(self, wanted, run_id, totals[own[0].args[4]])
        texts |= {id(request): played.get((request.args[3], request.idx), "") for request in own}
    return [texts.get(id(request), "") for request in requests]


def _over_all_ranks(counts: dict[str, int]) -> dict[str, int]:
    """Task -> number of episodes on all ranks together; every rank must call this, also one with padding only."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return counts
    found: list[dict[str, int]] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(found, counts)
    return {task: sum(other.get(task, 0) for other in found) for task in counts}


def _same_on_all_ranks(run_id: str) -> str:
    """Rank 0's run id, on every rank."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return run_id
    box = [run_id]
    dist.broadcast_object_list(box, src=0)
    return box[0]
