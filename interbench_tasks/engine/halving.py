"""Replies to a batch, whatever the model does. Runs on the calling thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from interbench_tasks.engine.contracts import BatchedModel
from interbench_tasks.engine.failures import checked_reply, failed_reply, text_of_failure
from interbench_tasks.hookspecs import Call
from interbench_tasks.records import Reply


def replies_from(model: BatchedModel, calls: Sequence[Call], stopped: Callable[[], bool]) -> list[Reply]:
    """One reply a call, in order. A batch that raises is halved until the guilty call is alone.

    Args: stopped = asked before a part is tried; once it says True, the parts not yet tried fail.
    Raises: KeyboardInterrupt and SystemExit, never an Exception.
    """
    if stopped():
        return [failed_reply("the run was stopped")] * len(calls)
    failure = ""
    try:
        given = model.generate(calls)
        if given is None:
            return [failed_reply(f"{model.name} gave None, no list of replies")] * len(calls)
        replies = list(given)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a model may raise anything, also from its own asyncio.run
        failure = text_of_failure(error)
    if not failure:
        return _checked(model, calls, replies)
    # Outside the except block: there the traceback would keep the failed batch's tensors alive while halves run.
    if len(calls) == 1:
        return [failed_reply(failure)]
    half = len(calls) // 2
    return replies_from(model, calls[:half], stopped) + replies_from(model, calls[half:], stopped)


def _checked(model: BatchedModel, calls: Sequence[Call], replies: list[Reply]) -> list[Reply]:
    if len(replies) != len(calls):
        why = (
            f"{model.name} gave {len(replies)} replies to a batch of {len(calls)}: nobody knows which belongs to which"
        )
        return [failed_reply(why)] * len(calls)
    return [checked_reply(reply, model.name) for reply in replies]
