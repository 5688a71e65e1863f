"""A scene: a picture with a question that can be answered, and each way in which it can be spoilt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from demo_items.canvas import Canvas


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoilt:
    """A text and a question with one thing wrong, and what a judge and a simulated user know of it."""

    defect: str
    fix: str
    """What a person who is asked would say."""
    answer: str
    """The answer once that is known."""
    where: str = "the question"
    query: str | None = None
    """The question; None: the scene's own."""
    added: str = ""
    """A sentence that is added to the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A picture, a text and a question that belong together; nothing is wrong with them."""

    family: str
    lang: str
    subject: str
    draw: Callable[[Mapping[str, int]], Canvas]
    values: Mapping[str, int]
    """What the picture shows: label -> number."""
    text: str
    query: str
    answer: str
    facts: str
    """What the picture shows, in words."""
    spoilt: Mapping[str, Spoilt]
    """`ambiguity`, `unclear_intent`, `cross_modal`, `intra_textual`, `BC` -> how."""
    other_values: Mapping[str, int] = field(default_factory=dict)
    """What a second picture shows that contradicts the first."""
    inter: Spoilt
    """The contradiction of the two pictures."""
    unreadable: str
    """What cannot be made out where the picture is made worse."""
    no_picture: str
    """What is wrong where the picture is missing."""
    nothing_asked: str
    """What is wrong where there is the picture alone."""
    wrong_picture: str
    """What is wrong where the picture is another scene's."""
