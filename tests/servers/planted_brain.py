"""A model whose every answer was decided beforehand, so that a test can compute what must come out.

Outcomes are a hash of seed, item, model, round and arm, written apart from the simulated backend on purpose.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.servers.chat_requests import ParsedRequest

Outcome = Literal["right", "wrong", "invalid"]
SIGNATURE = "Working through it piece by piece."
"""Begins every answer, so that a prompt which quotes an answer can be told from one that does not."""
HINT = "Have another look at the part that you passed over."
INVALID = f"{SIGNATURE} Nothing here settles the question."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedItem:
    id: str
    question: str
    """Must stand in the first user message, word for word."""
    target: str
    """Letter where there are options."""
    options: Mapping[str, str] = field(default_factory=dict)
    pixels: str | None = None
    """`pixel_digest` of its picture, needed where several items ask the same question."""
    said: str | None = None
    """How a right answer is written; None: as the target."""


def items_from(questions: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[PlantedItem]:
    """Items from {question: (target, options)}; the question is the id."""
    return [PlantedItem(id=q, question=q, target=target, options=options) for q, (target, options) in questions.items()]


def items_from_json(text: str) -> list[PlantedItem]:
    return [PlantedItem(**item) for item in json.loads(text)]


def arm_by_hint(text: str) -> str:
    """`detail` where the message carries this brain's own hint, else `simple`."""
    return "detail" if HINT in text else "simple"


def asks_for_feedback(request: ParsedRequest) -> bool:
    """A conversation whose only user message quotes an answer of this brain."""
    return request.round == 0 and SIGNATURE in request.user_messages[0].text


@dataclass(kw_only=True)
class PlantedRates:
    """Rates of one model, each in [0, 1]."""

    accuracy: float = 0.5
    invalid: float = 0.05
    flip: float = 0.1
    correction: float | Mapping[str, float] = 0.4
    """One rate, or {arm: rate}."""

    def correction_of(self, arm: str) -> float:
        return self.correction if isinstance(self.correction, float | int) else self.correction[arm]


class PlantedBrain:
    """Answers requests about known items; use as `OpenAIServer(PlantedBrain(items, accuracy=0.6))`.

    Args:
        items: what it knows; see `items_from`.
        seed: of all draws.
        models: {model: rates} for models that differ from the rates given by name, e.g. the provider's.
        arm_of: the arm of a follow-up, from its last user message.
        is_feedback: whether a provider is asked for feedback; every other request is answered.
        rates: `accuracy`, `invalid`, `flip`, `correction` of all other models.
    """

    def __init__(
        self,
        items: Iterable[PlantedItem],
        *,
        seed: int = 0,
        models: Mapping[str, PlantedRates] | None = None,
        arm_of: Callable[[str], str] = arm_by_hint,
        is_feedback: Callable[[ParsedRequest], bool] = asks_for_feedback,
        **rates: float | Mapping[str, float],
    ) -> None:
        self.items = {item.id: item for item in items}
        self.seed = seed
        self.models = dict(models or {})
        self.arm_of = arm_of
        self.is_feedback = is_feedback
        self.rates = PlantedRates(**rates)  # type: ignore[arg-type]
        self.n_hints = 0
        self._found: dict[tuple[str, tuple[str, ...]], PlantedItem] = {}

    def __call__(self, request: ParsedRequest) -> str:
        """The planted answer, or a hint where feedback is asked for."""
        if self.is_feedback(request):
            self.n_hints += 1
            return HINT
        item = self.item_of(request)
        if request.round == 0:
            return self.text_of(item, request.model, 0, self.expected(item.id, request.model, 0))
        arm = self.arm_of(request.user_messages[-1].text)
        was_right = request.assistant_texts[-1].rstrip().endswith(f"Answer: {item.target}")
        outcome = self.expected(item.id, request.model, request.round, arm=arm, was_right=was_right)
        return self.text_of(item, request.model, request.round, outcome, arm)

    def expected(self, item_id: str, model: str, round: int = 0, *, arm: str = "", was_right: bool = False) -> Outcome:
        """What `model` answers to an item. In later rounds it depends on whether the answer before was right."""
        rates = self.models.get(model, self.rates)
        draw = self._draw("outcome", item_id, model, round, arm)
        if round and was_right:
            return "wrong" if draw < rates.flip else "right"
        right = rates.correction_of(arm) if round else rates.accuracy
        if draw < right:
            return "right"
        return "invalid" if draw < right + rates.invalid else "wrong"

    def text_of(self, item: PlantedItem, model: str, round: int, outcome: Outcome, arm: str = "") -> str:
        """The reply's whole text."""
        if outcome == "invalid":
            return INVALID
        answer = item.target
        if outcome == "wrong":
            others = [letter for letter in item.options if letter != item.target] or ["7919", "7927"]
            answer = others[int(self._draw("which", item.id, model, round, arm) * len(others))]
        return f"{SIGNATURE}\nAnswer: {answer}"

    def item_of(self, request: ParsedRequest) -> PlantedItem:
        """The item that a conversation begins with.

        Raises: LookupError where no item fits, or several do; the server answers 400 and notes it among its violations.
        """
        first = request.user_messages[0]
        key = (first.text, tuple(picture.pixels for picture in first.pictures))
        if key not in self._found:
            self._found[key] = self._item(*key)
        return self._found[key]

    def _item(self, text: str, pixels: tuple[str, ...]) -> PlantedItem:
        asked = [item for item in self.items.values() if item.question in text]
        asked = [item for item in asked if item.pixels is None or item.pixels in pixels]
        longest = max((len(item.question) for item in asked), default=0)
        fitting = [item for item in asked if len(item.question) == longest]
        if len(fitting) > 1:  # the same question with other options
            lettered = {item.id: [f"{letter}. {option}" for letter, option in item.options.items()] for item in fitting}
            fitting = [item for item in fitting if all(line in text for line in lettered[item.id])]
        if len(fitting) != 1:
            raise LookupError(f"{len(fitting)} planted items fit the question {text[:200]!r}")
        return fitting[0]

    def _draw(self, *what: object) -> float:
        digest = hashlib.sha256("|".join(map(str, (self.seed, *what))).encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48
