"""Calls, tokens and money of whole runs, drawn many times; the range holds all but the outer draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.estimating.prompts import TEXT_RANGE, PromptSizes
from interbench_tasks.prices import Price
from interbench_tasks.protocols.feedback_calls import Counts, Drawn
from interbench_tasks.protocols.feedback_learned import CallKind

LEVEL = 0.98
"""Share of the draws inside of a range: 98 of 100 runs, so that at least 95 of 100 are safe to be in theirs."""
N_DRAWS = 4_000
SENTENCE = 25
"""Tokens of feedback that no model writes."""
FEEDBACK_PROMPT = 150
"""Tokens of a feedback prompt beside question, answer and solution."""
NOTES_PROMPT = 220
"""Tokens of a notetaker's prompt beside what it is to note."""
FEW_CALLS = 3
"""Calls of one kind whose tokens are known: from so many on, their mean stands for all calls of the kind."""
Amounts = NDArray[np.float64]
"""float64 [draws]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Lengths of replies in tokens, shortest to longest mean; wide, for nobody knows before a run."""

    reply: tuple[float, float] = (60, 500)
    """Of an answer or a provider's own solution; thinking makes them longer."""
    feedback: tuple[float, float] = (40, 150)
    notes: tuple[float, float] = (60, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleModel:
    """Who plays a role, and at what price."""

    role: str
    """`receiver`, `judge`, `notetaker`, `provider`, or with a label `provider@LABEL`."""
    model: str
    priced_as: str
    """Model and server, as a line of a price file may name them."""
    price: Price | None = None
    max_new_tokens: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What all but a few runs will take."""

    low: float
    high: float
    mean: float

    @property
    def width(self) -> float:
        """Width in relation to the mean; 0 where both ends are the same."""
        return (self.high - self.low) / self.mean if self.high > self.low else 0.0

    def holds(self, value: float) -> bool:
        """Whether a value lies inside, the ends included."""
        return self.low <= value <= self.high


def range_of(draws: Counts | Amounts) -> Range:
    """The middle `LEVEL` of the draws.

    >>> range_of(np.arange(101))
    Range(low=1.0, high=99.0, mean=50.0)
    """
    outer = (1 - LEVEL) / 2
    low, high = np.quantile(draws, outer, method="lower"), np.quantile(draws, 1 - outer, method="higher")
    return Range(low=float(low), high=float(high), mean=float(np.mean(draws)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleEstimate:
    """What one role will take."""

    role: RoleModel
    calls: Range
    input_tokens: Range
    output_tokens: Range
    cost: Range | None
    """USD; None where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """What a run will take."""

    roles: tuple[RoleEstimate, ...]
    calls: Range
    cost: Range | None
    """USD of all roles; None where some role's price is not known."""


def run_estimate(
    drawn: Drawn,
    roles: Sequence[RoleModel],
    sizes: PromptSizes,
    *,
    assumed: Assumed,
    seen: Mapping[CallKind, Sequence[tuple[int, int]]],
    seed: int = 0,
    takers: int = 0,
) -> RunEstimate:
    """Ranges for every role.

    Args: roles = the receiver, then the providers, then the notetaker where there is one; seen = tokens of calls that
        were made already, by kind; takers = memories that take notes.
    """
    tokens = _Tokens(sizes, assumed, seen, n_draws=len(drawn.first), seed=seed, takers=takers)
    found = [_amounts(role, index - 1, drawn, tokens) for index, role in enumerate(roles)]
    costs = [cost for *_, cost in found if cost is not None]
    return RunEstimate(
        roles=tuple(
            RoleEstimate(
                role=role,
                calls=range_of(calls),
                input_tokens=range_of(taken),
                output_tokens=range_of(given),
                cost=None if cost is None else range_of(cost),
            )
            for role, (calls, taken, given, cost) in zip(roles, found, strict=True)
        ),
        calls=range_of(drawn.total),
        cost=range_of(np.asarray(sum(costs))) if len(costs) == len(roles) else None,
    )


def _amounts(
    role: RoleModel, provider: int, drawn: Drawn, tokens: _Tokens
) -> tuple[Counts, Amounts, Amounts, Amounts | None]:
    """Calls, input and output tokens and money of one role; provider = -1 for the receiver."""
    by_kind: dict[CallKind, Counts]
    if role.role == "notetaker":
        by_kind = {("notes", number, 0): counts for number, counts in drawn.notes.items()}
    elif provider < 0:
        by_kind = {("first", 0, 0): drawn.first}
        by_kind.update({(kind, number, 0): counts for (kind, number), counts in drawn.rounds.items()})
    else:
        written = {key: counts for key, counts in drawn.feedback.items() if key[0] == provider}
        by_kind = {("solve", 0, provider): drawn.solves[provider]}
        by_kind.update({("feedback", number, provider): counts for (_, number), counts in written.items()})
    calls = np.asarray(sum(by_kind.values(), np.zeros_like(drawn.first)))
    taken, given = np.zeros(len(calls)), np.zeros(len(calls))
    for kind, counts in by_kind.items():
        asked, said = tokens.per_call(kind, role)
        taken, given = taken + counts * asked, given + counts * said
    price = role.price
    cost = None if price is None else (taken * price.input + given * price.output) / 1_000_000
    return calls, taken, given, cost


class _Tokens:
    """Mean tokens of one call of each kind, drawn: from calls that were made, else from the prompts' sizes."""

    def __init__(
        self,
        sizes: PromptSizes,
        assumed: Assumed,
        seen: Mapping[CallKind, Sequence[tuple[int, int]]],
        *,
        n_draws: int,
        seed: int,
        takers: int = 0,
    ) -> None:
        self._takers = takers
        self._sizes = sizes
        self._seen = seen
        self._n = n_draws
        self._rng = np.random.default_rng(seed + 1)
        self._text = self._between(*TEXT_RANGE)
        self._feedback = self._between(*assumed.feedback)
        self._notes = self._between(*assumed.notes)
        self._assumed = assumed
        self._replies: dict[str, Amounts] = {}
        self._pictures: dict[str, Amounts] = {}

    def _between(self, low: float, high: float) -> Amounts:
        return self._rng.uniform(low, high, self._n)

    def per_call(self, kind: CallKind, role: RoleModel) -> tuple[Amounts, Amounts]:
        """Input and output tokens of one call. float64 [draws] each."""
        seen = self._seen.get(kind, ())
        if len(seen) >= FEW_CALLS:
            asked, said = np.asarray(seen, dtype=float).T
            return self._mean_of(asked), self._mean_of(said)
        return self._assumed_input(kind, role), self._assumed_output(kind, role)

    def _mean_of(self, seen: Amounts) -> Amounts:
        """The mean of all calls, judged by these: normal, with its standard error."""
        error = float(seen.std(ddof=1)) / len(seen) ** 0.5
        return np.asarray(np.maximum(self._rng.normal(seen.mean(), error, self._n), 0))

    def _reply(self, role: RoleModel) -> Amounts:
        if role.role not in self._replies:
            low, high = (min(end, role.max_new_tokens) for end in self._assumed.reply)
            self._replies[role.role] = self._between(low, high)
        return self._replies[role.role]

    def _shown(self, role: RoleModel) -> Amounts:
        if role.role not in self._pictures:
            self._pictures[role.role] = self._between(*self._sizes.pictures.get(role.model, (0.0, 0.0)))
        return self._pictures[role.role]

    def _assumed_input(self, kind: CallKind, role: RoleModel) -> Amounts:
        what, number, _ = kind
        question = self._sizes.question * self._text + self._shown(role)
        if what in ("first", "solve"):
            return question
        if what == "feedback":  # two replies are quoted: the answer and the provider's own solution
            quoted = (FEEDBACK_PROMPT + self._sizes.quoted) * self._text
            return np.asarray(quoted + self._shown(role) + 2 * self._reply(role))
        if what == "notes":  # after the first answer the question; later the feedback, and the notes so far
            earlier = question if number == 0 else SENTENCE + self._feedback + self._notes
            return np.asarray(NOTES_PROMPT * self._text + earlier + self._between(0, self._assumed.reply[1]))
        told = SENTENCE + (0 if what == "shared" else self._feedback)
        return np.asarray(question + number * (self._reply(role) + told) + self._takers * self._notes)

    def _assumed_output(self, kind: CallKind, role: RoleModel) -> Amounts:
        if kind[0] == "notes":
            return np.asarray(np.minimum(self._notes, role.max_new_tokens))
        if kind[0] != "feedback":
            return self._reply(role)
        return np.asarray(np.minimum(self._feedback, role.max_new_tokens))
