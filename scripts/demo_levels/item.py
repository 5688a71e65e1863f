"""What every question is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from demo_items.canvas import Canvas
from demo_items.puzzle import LETTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question with its feedback."""

    question: str
    options: tuple[str, ...] = ()
    """Four, distinct; empty for a free answer."""
    answer: str
    """The right option's letter, or the free answer."""
    hint: str
    """Level 1: a simple hint; it does not give the answer."""
    explanation: str
    """Level 2: how to get to the answer; it does not give it."""
    request: str
    """Level 3, after the right answer: what the explanation has to cover."""
    canvas: Canvas | None = None

    @property
    def levels(self) -> tuple[str, str, str]:
        """The feedback of the three levels."""
        shown = f"{self.answer}. {self.options[LETTERS.index(self.answer)]}" if self.options else self.answer
        return (
            self.hint,
            self.explanation,
            f"The right answer is: {shown}\nExplain in full why it is right: {self.request}",
        )


Builder = Callable[[str], Item]
"""Makes one question; where it has options, the right one has the given letter."""


def checked(found: object, again: object, what: str) -> str:
    """An answer that two ways agree on, as text.

    Raises: ValueError where they do not.
    """
    if found != again:
        raise ValueError(f"{what}: one way gives {found!r}, the other {again!r}")
    return str(found)


def text_options(right: str, wrong: Sequence[str], letter: str) -> tuple[str, ...]:
    """Four texts with the right one at `letter`.

    Raises: ValueError where they are not four different ones.
    """
    place = LETTERS.index(letter)
    options = (*wrong[:place], right, *wrong[place:])
    if len(set(options)) != len(LETTERS) or len(options) != len(LETTERS):
        raise ValueError(f"want three wrong options that differ from {right!r} and each other, got {list(wrong)}")
    return options
