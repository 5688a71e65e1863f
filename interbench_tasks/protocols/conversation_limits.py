"""How much of a conversation may be sent: whole turns are cut, the oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interbench_tasks.memories import turns_of
from interbench_tasks.records import Message, PictureRef

CHARS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a model, or its budget, can take. None: no limit."""

    max_images: int | None = None
    """Most pictures in one request, those of the question included."""
    max_history_tokens: int | None = None
    """Most tokens of the turns before the question, as `tokens_of` estimates them."""

    def within(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages without their oldest turns, as many as it takes; system and last message always stay."""
        if self.max_images is None and self.max_history_tokens is None:
            return tuple(messages)
        turns = turns_of(messages)
        n_images = len(messages[-1].pictures) + sum(len(message.pictures) for turn in turns for message in turn)
        n_tokens = sum(tokens_of(message) for turn in turns for message in turn)
        first = 0
        while first < len(turns) and not self._allow(n_images, n_tokens):
            n_images -= sum(len(message.pictures) for message in turns[first])
            n_tokens -= sum(tokens_of(message) for message in turns[first])
            first += 1
        system = [message for message in messages[:-1] if message.role == "system"]
        return (*system, *[message for turn in turns[first:] for message in turn], messages[-1])

    def _allow(self, n_images: int, n_tokens: int) -> bool:
        images = self.max_images is None or n_images <= self.max_images
        return images and (self.max_history_tokens is None or n_tokens <= self.max_history_tokens)


def tokens_of(message: Message) -> int:
    """An estimate, not the server's count: a token for each 4 characters, and for each 750 pixels of a picture.

    Tokenizers differ by a third and more, and in languages without spaces by far more: leave room.
    """
    text = -(-len(message.text) // CHARS_PER_TOKEN)
    return text + sum(_tokens_of_picture(picture) for picture in message.pictures)


def _tokens_of_picture(picture: PictureRef) -> int:
    return max(1, picture.width * picture.height // PIXELS_PER_TOKEN)
