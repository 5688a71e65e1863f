"""What a feedback loop asks for in one round."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRound:
    """One round of feedback, as a plugin sees it."""

    number: int = 1
    """1 is the first feedback; an arm that has levels gives that of this number."""
    text: str | None = None
    """The data set's own feedback of this level; None where the task takes its texts from the provider."""
    by_person: bool = False
    """Whether people answer for the provider: they are shown the episode and its history, and what is asked of them."""
    without_answer: bool = False
    """Whether the last level, too, keeps the right answer to itself."""
