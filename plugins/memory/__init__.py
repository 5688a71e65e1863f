"""Memories that ship with Interbench: `none`, `recent_turns`, `note_taking` and `summary`."""

from collections.abc import Callable

from interbench_tasks import Memory, MemoryOptions, hookimpl

from .none import NoMemory
from .note_taking import NoteTaking
from .recent_turns import RecentTurns
from .summary import Summary


@hookimpl
def interbench_memories() -> dict[str, Callable[[MemoryOptions], Memory]]:
    """The whole past, its newest turns, structured notes, and a running summary."""
    return {"none": NoMemory, "recent_turns": RecentTurns, "note_taking": NoteTaking, "summary": Summary}
