"""How many calls a feedback loop will make: a model of the loop in which every question is drawn alike.

A question's first answer is right, unreadable, or wrong; each provider solves a wrong one or does not; each branch goes
on until it is right or the rounds are used. Given how often each of these happens, the numbers of all kinds of calls
are drawn many times: what lies between the ends of the draws is the range for a run. Failed calls and their retries,
and categories with one question only (nothing to borrow), are not in the model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.levels import is_unwritten, tests_all_wrong
from interbench_tasks.memories import memory_arms

Counts = NDArray[np.int64]
"""int64 [draws]."""
Shares = NDArray[np.float64]
"""float64 [draws], or [draws, patterns], each in [0, 1]."""
ArmKind = Literal["shared", "written", "borrowed"]
"""Of an arm's feedback: a sentence that no model writes (one branch for all providers), written by the provider's model
in each round, or written for another question."""
Pattern = tuple[bool, ...]
"""Which of the providers solved a question."""
PRIOR = 0.5
"""Hits and misses that are added to what was seen (Jeffreys): a rate learned from few questions stays uncertain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often something happens, as far as it is known: between two values, or as seen in some trials."""

    low: float = 0.0
    high: float = 1.0
    """Where nothing was seen: any value from `low` to `high` is as likely as any other."""
    hits: int | None = None
    trials: int = 0

    def drawn(self, rng: np.random.Generator, n_draws: int) -> Shares:
        """Values that the rate may have. float64 [draws]."""
        if self.hits is None:
            return rng.uniform(self.low, self.high, n_draws)
        return rng.beta(self.hits + PRIOR, self.trials - self.hits + PRIOR, n_draws)

    @property
    def middle(self) -> float:
        """Its mean."""
        if self.hits is None:
            return (self.low + self.high) / 2
        return (self.hits + PRIOR) / (self.trials + 2 * PRIOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopShape:
    """What the task decides of the number of calls."""

    n_episodes: int
    n_providers: int = 1
    arms: Mapping[str, ArmKind]
    max_rounds: int = 1
    flip_sample: int = 0
    first_recorded: bool = False
    """Whether the data set brings the first answers: the receiver is not asked for them."""
    rewrite: bool = False
    """Whether leaked feedback is written again."""
    takers: int = 0
    """Memories that take notes: after the first answer where it is played on, and before each further round."""
    all_wrong: bool = False
    """Whether every wrong first answer is tested, and nobody solves the question first."""

    @property
    def most_calls(self) -> int:
        """Most calls that one episode can make."""
        branches = sum(1 if kind == "shared" else self.n_providers for kind in self.arms.values())
        notes = self.takers * (1 + branches * (self.max_rounds - 1))
        per_arm = {"shared": 1, "written": self.n_providers * (3 if self.rewrite else 2), "borrowed": self.n_providers}
        rounds = self.max_rounds * sum(per_arm[kind] for kind in self.arms.values())
        return (not self.first_recorded) + (0 if self.all_wrong else self.n_providers) + rounds + notes


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCalls:
    """That a protocol makes the calls of a feedback loop: its class attribute `calls`."""

    matters: tuple[str, ...] = ("arms", "max_rounds", "providers", "leak_guard", "memory", "recent_turns", "notes")
    """Options that change the number of calls or their size."""


def shape_from(
    options: Any,  # noqa: ANN401 - the feedback loop's Options
    plugins: Mapping[str, object],
    *,
    n_episodes: int,
    first_recorded: bool = False,
    memories: Mapping[str, object] | None = None,
) -> LoopShape:
    """The shape of a feedback loop.

    Args: plugins = arm -> its feedback provider, or its class; memories = name -> memory, or its class.
    """
    acting = [(memories or {})[name] for arm in memory_arms(options) for name in arm]
    return LoopShape(
        n_episodes=n_episodes,
        n_providers=max(1, len(options.providers)),
        arms={arm: _kind_of(arm, plugins[arm], options) for arm in options.arms},
        max_rounds=options.max_rounds,
        flip_sample=options.flip_sample,
        first_recorded=first_recorded,
        rewrite=options.leak_guard == "rewrite",
        takers=sum(bool(getattr(memory, "takes_notes", False)) for memory in acting),
        all_wrong=tests_all_wrong(options),
    )


def _kind_of(arm: str, plugin: object, options: object) -> ArmKind:
    if is_unwritten(arm, plugin, options):
        return "shared"
    return "written" if getattr(plugin, "borrows", None) is None else "borrowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often each thing happens. The defaults are wide: nobody knows."""

    right: Rate = Rate(low=0.2, high=0.8)
    """First answers that are right."""
    unreadable: Rate = Rate(low=0.0, high=0.1)
    """First answers that are not right: those that cannot be read."""
    solved: tuple[Rate, ...] = (Rate(low=0.3, high=0.9),)
    """Of the wrong ones that can be read: those that each provider solves, independently of the others; one rate
    stands for all providers."""
    solved_together: Mapping[Pattern, int] = field(default_factory=dict)
    """Instead of `solved`: how often each pattern of providers was seen; empty where none was."""
    solved_where_right: Rate = Rate(low=0.6, high=1.0)
    """Of the right first answers that are tried with feedback: those that a provider solves."""
    corrected: Mapping[str, Rate] = field(default_factory=dict)
    """Arm -> answers that become right in a round; only matters where there are several rounds."""
    corrected_elsewhere: Rate = Rate(low=0.05, high=0.5)
    """For arms that `corrected` does not have."""
    leaked: Rate = Rate(low=0.0, high=0.3)
    """Feedback that is written again because it leaked."""
    dropped: Rate = Rate(low=0.0, high=0.5)
    """Of that, feedback that leaks again: its branch ends there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Questions that were played already: what they were is known, and their calls are counted."""

    n: int = 0
    right: int = 0
    solved: Mapping[Pattern, int] = field(default_factory=dict)
    """Of the wrong ones that can be read: how often each pattern of providers was seen."""
    first: int = 0
    """Calls for first answers."""
    rounds: Mapping[tuple[ArmKind, int], int] = field(default_factory=dict)
    """(kind, round) -> the receiver's calls in branches of the first pass."""
    solves: tuple[int, ...] = ()
    """Each provider's own tries in the first pass."""
    feedback: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(provider, round) -> feedback written in the first pass, drafts included."""
    notes: Mapping[int, int] = field(default_factory=dict)
    """Round of the answer that they follow -> the notetaker's calls in the first pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Numbers of calls of whole runs, one a draw."""

    first: Counts
    rounds: Mapping[tuple[ArmKind, int], Counts]
    """(kind, round) -> the receiver's calls."""
    solves: tuple[Counts, ...]
    """Each provider's own tries."""
    feedback: Mapping[tuple[int, int], Counts]
    """(provider, round) -> feedback written."""
    notes: Mapping[int, Counts] = field(default_factory=dict)
    """Round of the answer that they follow -> the notetaker's calls."""

    @property
    def receiver(self) -> Counts:
        """All calls of the receiver."""
        return np.asarray(self.first + sum(self.rounds.values()))

    def provider(self, index: int) -> Counts:
        """All calls of one provider."""
        written = [counts for (provider, _), counts in self.feedback.items() if provider == index]
        return np.asarray(self.solves[index] + sum(written))

    @property
    def notetaker(self) -> Counts:
        """All calls of the notetaker."""
        return np.asarray(np.zeros_like(self.first) + sum(self.notes.values()))

    @property
    def total(self) -> Counts:
        """All calls of all roles."""
        providers = sum(self.provider(index) for index in range(len(self.solves)))
        return np.asarray(self.receiver + providers + self.notetaker)


def rates_in(shape: LoopShape, rates: Rates) -> Rates:
    """The rates as they act in a task: where every wrong answer is tested, none is left out, whoever could solve it."""
    if not shape.all_wrong:
        return rates
    never, always = Rate(low=0.0, high=0.0), Rate(low=1.0, high=1.0)
    return replace(rates, unreadable=never, solved=(always,), solved_together={}, solved_where_right=always)


def drawn_calls(
    shape: LoopShape, rates: Rates, known: Known | None = None, *, n_draws: int = 4_000, seed: int = 0
) -> Drawn:
    """The calls of `n_draws` runs. What is known is the same in all of them; the second pass always is drawn."""
    known = known or Known()
    rates = rates_in(shape, rates)
    rng = np.random.default_rng(seed)
    left = max(0, shape.n_episodes - known.n)
    right = rng.binomial(left, rates.right.drawn(rng, n_draws))
    unreadable = rng.binomial(left - right, rates.unreadable.drawn(rng, n_draws))
    wrong = left - right - unreadable
    patterns = list(itertools.product((False, True), repeat=shape.n_providers))
    solved = rng.multinomial(wrong, _pattern_shares(rates, patterns, rng, n_draws))
    tried = np.minimum(shape.flip_sample, right + known.right)
    one = rates.solved_where_right.drawn(rng, n_draws)
    also_right = rng.multinomial(tried, _product([one] * shape.n_providers, patterns))
    calls = _Calls(shape, known, left, n_draws, rng, rates)
    calls.play_first_pass(wrong, solved, patterns)
    before = np.array([known.solved.get(pattern, 0) for pattern in patterns], dtype=np.int64)
    calls.play_second_pass(solved + before, tried, also_right, patterns)
    solves = tuple(calls.solves)
    return Drawn(first=calls.first, rounds=calls.rounds, solves=solves, feedback=calls.feedback, notes=calls.notes)


def _pattern_shares(
    rates: Rates, patterns: Sequence[Pattern], rng: np.random.Generator, n_draws: int
) -> NDArray[np.float64]:
    """How often each pattern of providers may happen. float64 [draws, patterns]."""
    if rates.solved_together:
        seen = [rates.solved_together.get(pattern, 0) + 2 * PRIOR / len(patterns) for pattern in patterns]
        return rng.dirichlet(seen, n_draws)
    given = rates.solved if len(rates.solved) > 1 else rates.solved * len(patterns[0])
    return _product([rate.drawn(rng, n_draws) for rate in given], patterns)


def _product(solves: Sequence[Shares], patterns: Sequence[Pattern]) -> NDArray[np.float64]:
    """The chance of each pattern of independent providers. float64 [draws, patterns]."""
    columns = [
        np.prod([share if hit else 1 - share for share, hit in zip(solves, pattern, strict=True)], axis=0)
        for pattern in patterns
    ]
    shares = np.stack(columns, axis=1)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class _Calls:
    """Adds up the calls of all draws."""

    def __init__(
        self, shape: LoopShape, known: Known, left: int, n_draws: int, rng: np.random.Generator, rates: Rates
    ) -> None:
        self._shape = shape
        self._rng = rng
        arms = shape.arms if shape.max_rounds > 1 else {}
        self._corrected = {arm: rates.corrected.get(arm, rates.corrected_elsewhere).drawn(rng, n_draws) for arm in arms}
        self._leaked = rates.leaked.drawn(rng, n_draws)
        self._dropped = rates.dropped.drawn(rng, n_draws)
        self._zero = np.zeros(n_draws, dtype=np.int64)
        self.first = self._zero + known.first + (0 if shape.first_recorded else left)
        self.rounds = {key: self._zero + count for key, count in known.rounds.items()}
        solves = known.solves or (0,) * shape.n_providers
        self.solves = [self._zero + count for count in solves]
        self.feedback = {key: self._zero + count for key, count in known.feedback.items()}
        self.notes = {number: self._zero + count for number, count in known.notes.items()}

    def play_first_pass(self, wrong: Counts, solved: Counts, patterns: Sequence[Pattern]) -> None:
        if not self._shape.all_wrong:
            self.solves = [count + wrong for count in self.solves]
        self._take_notes(0, _of(solved, [any(pattern) for pattern in patterns]))
        for arm, kind in self._shape.arms.items():
            if kind != "borrowed":
                self._play_arm(arm, kind, solved, patterns, self._shape.max_rounds)

    def play_second_pass(self, solved: Counts, tried: Counts, also_right: Counts, patterns: Sequence[Pattern]) -> None:
        if not self._shape.all_wrong:
            self.solves = [count + tried for count in self.solves]
        self._take_notes(0, tried)
        for arm, kind in self._shape.arms.items():
            if kind == "borrowed":
                self._play_arm(arm, kind, solved, patterns, self._shape.max_rounds)
            self._play_arm(arm, kind, also_right, patterns, 1)

    def _play_arm(self, arm: str, kind: ArmKind, solved: Counts, patterns: Sequence[Pattern], max_rounds: int) -> None:
        if kind == "shared":
            self._play_branches(arm, kind, None, _of(solved, [any(pattern) for pattern in patterns]), max_rounds)
            return
        for index in range(self._shape.n_providers):
            mine = _of(solved, [pattern[index] for pattern in patterns])
            self._play_branches(arm, kind, index if kind == "written" else None, mine, max_rounds)

    def _play_branches(self, arm: str, kind: ArmKind, writer: int | None, n: Counts, max_rounds: int) -> None:
        for number in range(1, max_rounds + 1):
            if writer is not None:
                again = self._rng.binomial(n, self._leaked) if self._shape.rewrite else self._zero
                written = self.feedback.get((writer, number), self._zero)
                self.feedback[writer, number] = written + n + again
                n = n - self._rng.binomial(again, self._dropped)
            if number > 1:
                self._take_notes(number - 1, n)
            self.rounds[kind, number] = self.rounds.get((kind, number), self._zero) + n
            if number < max_rounds:
                n = self._rng.binomial(n, 1 - self._corrected[arm])

    def _take_notes(self, after: int, n: Counts) -> None:
        """Args: after = round of the answers that the notes follow."""
        if self._shape.takers:
            self.notes[after] = self.notes.get(after, self._zero) + self._shape.takers * n


def _of(solved: Counts, wanted: Sequence[bool]) -> Counts:
    """How many questions have one of the wanted patterns. int64 [draws]."""
    return np.asarray(solved[:, np.array(wanted)].sum(axis=1))


def expected_calls(shape: LoopShape, rates: Rates) -> tuple[float, tuple[float, ...]]:
    """Mean calls of the receiver and of each provider, where every rate has its middle value.

    Where every wrong answer is tested, nobody solves any: n_wrong = n - n_right, and a provider only writes.

    Formula: receiver n + sum over arms of the rounds played; provider n_wrong + its written feedback; a branch comes to
    round r with the chance (k (1 - c))^(r-1), c = the arm's corrected share, k = 1 - leaked * dropped (1 unless leaks
    are written again), and the receiver is asked in it with k times that. Right answers that are tried:
    min(flip_sample, n_right), one round in each arm. What a notetaker is asked is not in it.

    >>> shape = LoopShape(n_episodes=100, arms={"detail": "written", "simple": "shared"})
    >>> half = Rate(low=0.5, high=0.5)
    >>> expected_calls(shape, Rates(right=half, unreadable=Rate(low=0, high=0), solved=(half,)))
    (150.0, (75.0,))
    """
    n, rates = shape.n_episodes, rates_in(shape, rates)
    right = n * rates.right.middle
    wrong = (n - right) * (1 - rates.unreadable.middle)
    solves = [rate.middle for rate in (rates.solved if len(rates.solved) > 1 else rates.solved * shape.n_providers)]
    tried = min(shape.flip_sample, right)
    kept = rates.solved_where_right.middle
    receiver = 0.0 if shape.first_recorded else float(n)
    providers = [0.0 if shape.all_wrong else wrong + tried] * shape.n_providers
    again = rates.leaked.middle if shape.rewrite else 0.0
    any_solved, any_kept = 1 - float(np.prod([1 - s for s in solves])), 1 - (1 - kept) ** shape.n_providers
    for arm, kind in shape.arms.items():
        corrected = rates.corrected.get(arm, rates.corrected_elsewhere).middle
        played = 1 - again * rates.dropped.middle if kind == "written" else 1.0
        rounds = sum((played * (1 - corrected)) ** number for number in range(shape.max_rounds))
        if kind == "shared":
            receiver += wrong * any_solved * rounds + tried * any_kept
            continue
        for index, solve in enumerate(solves):
            branch = wrong * solve * rounds + tried * kept
            receiver += branch * played
            providers[index] += branch * (1 + again) if kind == "written" else 0
    return receiver, tuple(providers)
