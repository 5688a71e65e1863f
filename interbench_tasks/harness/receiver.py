"""Our request type: plays the episodes of all our tasks that the evaluator hands over."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Sequence
from typing import Any

from interbench_tasks.runs.folder import new_run_id
from interbench_tasks.usage import Spent

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
    by_name = {own[0].args[4]: own for own in by_task.values()}
    shares = _from_all_ranks([(name, len(own), own[0].args[1].two_passes) for name, own in by_name.items()])
    texts: dict[int, str] = {}
    spent = Spent()
    for name in dict.fromkeys(name for name, _, _ in shares):  # the same order on every rank
        own = by_name.get(name)
        if own is not None:
            n_total = sum(count for other, count, _ in shares if other == name)
            wanted = [(request.args[3], request.idx) for request in own]
            task = own[0].args[1]
            played = task.play(self, wanted, run_id, n_total, _from_all_ranks, spent)
            spent = spent.plus(task.spent)
            texts |= {id(request): played.get((request.args[3], request.idx), "") for request in own}
        elif any(two_passes for other, _, two_passes in shares if other == name):
            _from_all_ranks([])  # the others wait for what this rank has: nothing
    return [texts.get(id(request), "") for request in requests]


def _from_all_ranks(items: list[Any]) -> list[Any]:
    """The items of all ranks, in the order of the ranks; every rank must call this, also one with padding only."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return items
    _leave_cleanly_in_the_end()
    found: list[list[Any]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(found, items)
    return [item for own in found for item in own]


def _leave_cleanly_in_the_end() -> None:
    """Have the ranks' connections closed before Python ends.

    The harness leaves them open: now and then a rank's own threads then abort it ("terminate called without an active
    exception"), and the launcher kills rank 0 for that, while it writes its results.
    """
    atexit.unregister(_leave)
    atexit.register(_leave)


def _leave() -> None:
    import torch.distributed as dist

    if dist.is_initialized():
        with contextlib.suppress(Exception):  # the process ends anyway; nothing is lost by it
            dist.destroy_process_group()


def _same_on_all_ranks(run_id: str) -> str:
    """Rank 0's run id, on every rank."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return run_id
    box = [run_id]
    dist.broadcast_object_list(box, src=0)
    return box[0]
