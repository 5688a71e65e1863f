"""No memory beside the conversation itself."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from interbench_tasks import MemoryOptions, Message, Notes, Notetaker, Turn


class NoMemory:
    """The receiver sees the whole past, and nothing else."""

    acts_at: ClassVar[Literal["question", "every_turn"]] = "question"
    takes_notes: ClassVar[bool] = False
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {}

    def __init__(self, options: MemoryOptions) -> None:
        """It has no options."""

    async def after_turn(self, notes: Notes | None, turn: Turn, notetaker: Notetaker) -> Notes:
        """Never called: it takes no notes."""
        raise NotImplementedError("this memory takes no notes")

    def messages(self, notes: Notes | None, history: Sequence[Message]) -> Sequence[Message]:
        """The history as it is."""
        return history
