"""Only the newest turns stay in view."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from interbench_tasks import MemoryOptions, Message, Notes, Notetaker, Turn


class RecentTurns:
    """The receiver sees the last `recent_turns` turns of the conversation; the system message always stays.

    It acts at every turn: a reply that was written with the whole past in view could repeat what should be forgotten.
    """

    acts_at: ClassVar[Literal["question", "every_turn"]] = "every_turn"
    takes_notes: ClassVar[bool] = False
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {}

    def __init__(self, options: MemoryOptions) -> None:
        self._n_turns = options.recent_turns

    async def after_turn(self, notes: Notes | None, turn: Turn, notetaker: Notetaker) -> Notes:
        """Never called: it takes no notes."""
        raise NotImplementedError("this memory takes no notes")

    def messages(self, notes: Notes | None, history: Sequence[Message]) -> Sequence[Message]:
        """System messages, the last turns, and what is asked now."""
        system = [message for message in history if message.role == "system"]
        rest = [message for message in history if message.role != "system"]
        starts = [index for index, message in enumerate(rest[:-1]) if message.role == "user"]
        left = starts[len(starts) - self._n_turns :] if self._n_turns else []
        first = left[0] if left and len(starts) > self._n_turns else 0
        kept = rest[first:] if self._n_turns else rest[-1:]
        return [*system, *kept]
