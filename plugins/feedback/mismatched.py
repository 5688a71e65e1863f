"""The explanation that was written for another question: the placebo of `detail`."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from interbench_tasks import Episode, Feedback, Provider, Turn

from .simple import Simple, sentence


class Mismatched:
    """The simple sentence, then what the provider wrote about another question of the same category.

    Looks and reads like `detail`, but its content does not belong here: what `detail` gains above it comes from the
    content. OURS; the paper has no such control.
    """

    borrows: ClassVar[str] = "detail"
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = Simple.prompt_variables
    """The prompts that a YAML may replace, and what each may name."""

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        """Asks no model.

        Raises: ValueError where it was given nothing to borrow.
        """
        borrowed = provider.borrowed
        if borrowed is None:
            raise ValueError("there is no other episode's feedback to borrow")
        return Feedback(
            text=f"{sentence(episode, turn, provider)}\n\n{borrowed.text}",
            kind="mismatched",
            author=borrowed.author,
            source=borrowed.source,
        )
