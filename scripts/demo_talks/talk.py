"""What a conversation is made of, and how it becomes a row of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from demo_talks.cards import Card

Modality = Literal["text", "picture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One user turn."""

    text: str
    cards: tuple[Card, ...] = ()
    moved: tuple[str, Card] | None = None
    """In the picture twin: what is said instead, and the picture that then holds the facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question."""

    ability: str
    question: str
    answer: str
    at: tuple[int, ...] = ()
    """0-based turns that hold the answer."""
    items: tuple[str, ...] = ()
    images: tuple[int, ...] = ()
    """1-based pictures of the text version."""
    options: tuple[str, ...] = ()
    """Makes it multiple choice; `answer` is then a letter."""
    updates: int = 0
    """How often what is asked for was changed before."""
    truth: bool = False
    """True or false instead of an open answer; `answer` is then `true` or `false`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One conversation."""

    name: str
    topic: str
    turns: tuple[Said, ...]
    questions: tuple[Asked, ...]
    twin: bool = False
    """Whether there is a second version whose facts are in pictures."""

    @property
    def modalities(self) -> Sequence[Modality]:
        """Its versions."""
        return ("text", "picture") if self.twin else ("text",)


def say(text: str, *cards: Card) -> Said:
    """A user turn."""
    return Said(text=text, cards=cards)


def fact(text: str, instead: str, shown: Card) -> Said:
    """A user turn whose facts are in a picture in the twin."""
    return Said(text=text, moved=(instead, shown))


@dataclass(slots=True)
class Written:
    """A row of the file, and its pictures."""

    row: dict[str, object] = field(default_factory=dict)
    pictures: dict[str, Card] = field(default_factory=dict)
    """Path -> picture."""


def written(talk: Talk, modality: Modality) -> Written:
    """The row of one version of a conversation."""
    name = talk.name if modality == "text" else f"{talk.name}_pictures"
    made = Written()
    turns: list[dict[str, object]] = []
    renumbered: dict[int, int] = {}
    n_text = 0
    for said in talk.turns:
        text, cards = said.text, list(said.cards)
        if modality == "picture" and said.moved is not None:
            text, cards = said.moved[0], [said.moved[1], *cards]
        paths = []
        for shown in cards:
            path = f"images/{name}_{len(made.pictures) + 1}.png"
            made.pictures[path] = shown
            paths.append(path)
            if shown in said.cards:
                n_text += 1
                renumbered[n_text] = len(made.pictures)
        turn: dict[str, object] = {"user_text": text, "images": paths}
        if cards:
            turn["extra"] = {"shows": ". ".join(shown.shows for shown in cards)}
        turns.append(turn)
    questions = [_question(asked, number, renumbered) for number, asked in enumerate(talk.questions, start=1)]
    made.row = {"id": name, "topic": talk.topic}
    if talk.twin:
        made.row |= {"cluster": talk.name, "extra": {"modality": modality}}
    made.row |= {"turns": turns, "questions": questions}
    return made


def _question(asked: Asked, number: int, renumbered: dict[int, int]) -> dict[str, object]:
    row: dict[str, object] = {"qid": f"q{number}", "ability": asked.ability}
    if asked.options:
        row |= {"format": "mc"}
    elif asked.truth:
        row |= {"format": "tf"}
    row |= {"question": asked.question}
    if asked.options:
        row |= {"options": list(asked.options)}
    row |= {"answer": asked.answer == "true" if asked.truth else asked.answer}
    if asked.items:
        row |= {"items": list(asked.items)}
    if asked.images:
        row |= {"image_ids": [renumbered[image] for image in asked.images]}
    if asked.at:
        row |= {"evidence_turns": list(asked.at)}
    if asked.ability == "IU":
        row |= {"extra": {"updates": str(asked.updates)}}
    return row
