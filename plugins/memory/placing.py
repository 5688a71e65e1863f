"""Puts notes where the receiver sees them."""

from collections.abc import Sequence
from typing import Literal

from interbench_tasks import Message


def with_block(history: Sequence[Message], block: str, place: Literal["user", "system"]) -> list[Message]:
    """The history with a block of notes before its last message's own content, or at the end of the system message."""
    messages = list(history)
    if place == "user":
        last = messages[-1]
        messages[-1] = Message(role=last.role, content=(f"{block}\n\n", *last.content))
    elif messages[0].role == "system":
        messages[0] = Message(role="system", content=(*messages[0].content, f"\n\n{block}"))
    else:
        messages.insert(0, Message(role="system", content=(block,)))
    return messages
