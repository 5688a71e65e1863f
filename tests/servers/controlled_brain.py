"""A planted model for runs with controls: it knows each arm, each provider and each hint by what it reads.

Every hint is another one, by provider and by item. A hint that comes back in a conversation about its own item is
`detail`, in one about another item it is `mismatched`; anything but the hints and the two sentences below is a
request that nobody planted, which the server counts as a violation.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import PlantedReply
from tests.servers.planted_brain import HINT, SIGNATURE, PlantedBrain, PlantedItem, asks_for_feedback

SIMPLE = "Your previous answer is incorrect. Try again, and end with an answer in the same format."
REASK = "Please answer the question once more, and end with an answer in the same format."
"""The two sentences as the tasks have them, written down here apart from our own code."""
UNREADABLE = f"{SIGNATURE} I cannot determine the answer."
"""A refusal: a short sentence would pass for an answer to a question without options."""
_CODE = re.compile(r"\(note ([a-p]{12})\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the brain understood it."""

    model: str
    item: str
    kind: Literal["answer", "feedback"] = "answer"
    arm: str = ""
    """Empty at round 0 and for feedback."""
    author: str = ""
    """The model that wrote the hint, where there is one."""
    donor: str = ""
    """The item that the hint was written for."""


@dataclass(frozen=True, kw_only=True)
class ControlledRates:
    """Rates of one model, each in [0, 1]; those of later rounds by arm."""

    accuracy: float = 0.5
    invalid: float = 0.05
    """Unreadable, of all answers in any round."""
    correction: Mapping[str, float] = field(default_factory=dict)
    """Arm -> right after a wrong answer."""
    flip: Mapping[str, float] = field(default_factory=dict)
    """Arm -> wrong or unreadable after a right answer."""
    leak: float = 0.0
    """Hints that state the answer, of those for items with options."""


class ControlledBrain(PlantedBrain):
    """Answers requests of a controlled run; use as `OpenAIServer(ControlledBrain(items, models={...}))`.

    Args:
        items: what it knows, each question once.
        models: model -> rates; every other model is an error.
        seed: of all draws.
        slowest_s: answers come after a random time of up to so many seconds, whose draws are no part of the seed.
    """

    def __init__(
        self,
        items: Iterable[PlantedItem],
        *,
        models: Mapping[str, ControlledRates],
        seed: int = 0,
        slowest_s: float = 0,
    ) -> None:
        super().__init__(items, seed=seed)
        self._rates = dict(models)
        self._slowest_s = slowest_s
        self._hints = {self.code_of(model, item): (model, item) for model in models for item in self.items}
        self.log: list[Asked] = []
        """Every request in order of arrival, from all servers that this brain answers for."""

    @property
    def counts(self) -> Counter[Asked]:
        """How often each thing was asked."""
        return Counter(self.log)

    def __call__(self, request: ParsedRequest) -> PlantedReply:  # type: ignore[override] # a reply that takes its time
        asked = self.asked_from(request)
        self.log.append(asked)
        if asked.kind == "feedback":
            text = self.hint_of(asked.model, asked.item)
        else:
            before = request.assistant_texts[-1] if request.round else None
            answer = self.answer_of(asked, after=None if before is None else _answer_in(before))
            text = UNREADABLE if answer is None else f"{SIGNATURE}\nAnswer: {answer}"
        return PlantedReply(text=text, delay_s=random.uniform(0, self._slowest_s))

    def asked_from(self, request: ParsedRequest) -> Asked:
        """Raises: LookupError for anything that a controlled run with one round must not ask."""
        item = self.item_of(request).id
        if asks_for_feedback(request):
            return Asked(model=request.model, item=item, kind="feedback")
        if request.round == 0:
            return Asked(model=request.model, item=item)
        said = request.user_messages[-1].text
        if request.round > 1:
            raise LookupError(f"a round that nobody planted: {said!r}")
        if said in (SIMPLE, REASK):
            return Asked(model=request.model, item=item, arm="simple" if said == SIMPLE else "reask")
        codes = _CODE.findall(said)
        author, donor = self._hints[codes[0]] if len(codes) == 1 else ("", "")
        if not author or said != f"{SIMPLE}\n\n{self.hint_of(author, donor)}":
            raise LookupError(f"feedback that nobody planted: {said!r}")
        arm = "detail" if donor == item else "mismatched"
        return Asked(model=request.model, item=item, arm=arm, author=author, donor=donor)

    def answer_of(self, asked: Asked, *, after: str | None = None) -> str | None:
        """The answer, without the words around it; None where it is unreadable.

        Args: after = the answer before, in later rounds.
        """
        item, rates = self.items[asked.item], self._rates[asked.model]
        right = right_answer_of(item)
        what = (asked.item, asked.model, asked.arm, asked.author, asked.donor)
        draw = self._draw("outcome", *what)
        if asked.arm and after == right:
            rate = 1 - rates.flip[asked.arm]
        else:
            rate = rates.correction[asked.arm] if asked.arm else rates.accuracy
        if draw < rate:
            return right
        if draw < rate + rates.invalid:
            return None
        others = [letter for letter in item.options if letter != item.target] or ["7919", "7927"]
        return others[int(self._draw("which", *what) * len(others))]

    def hint_of(self, model: str, item: str) -> str:
        """What a model writes where it is asked for feedback on an item."""
        leak = f" The answer is {right_answer_of(self.items[item])}." if self.leaks(model, item) else ""
        return f"{HINT} (note {self.code_of(model, item)}){leak}"

    def leaks(self, model: str, item: str) -> bool:
        """Whether that hint states the answer."""
        return bool(self.items[item].options) and self._draw("leak", model, item) < self._rates[model].leak

    def code_of(self, model: str, item: str) -> str:
        """Letters that stand in this hint alone."""
        number = int(self._draw("code", model, item) * 2**48)
        return "".join("abcdefghijklmnop"[number >> shift & 15] for shift in range(0, 48, 4))


def right_answer_of(item: PlantedItem) -> str:
    """How a right answer to an item is written."""
    return item.said if item.said is not None else item.target


def _answer_in(text: str) -> str | None:
    return text.removeprefix(f"{SIGNATURE}\nAnswer: ") if text != UNREADABLE else None
