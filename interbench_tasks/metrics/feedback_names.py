"""Which metrics a feedback loop has, by name and in order, and which of them a short table shows.

All of it follows from the task's options alone, so that the tables of two runs of a task have the same rows. With one
provider a metric has its plain name; with several, whatever depends on a provider's test set ends in `@LABEL`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

from interbench_tasks.metrics.intervals import Contrast

COUNTS = ("n", "n_negative", "n_test", "n_invalid", "n_failed")
"""The metrics that are counts of episodes; with several providers `n_test` is one a provider."""
CONTROL_ARMS = ("reask", "mismatched")
"""Arms that are a placebo of another one."""
BORROWING_ARMS = ("mismatched",)
"""Arms whose feedback was written for another episode: those whose plugin `borrows`, as a test checks."""
UNWRITTEN_ARMS = ("simple", "reask")
"""Arms that no model writes: the same for every provider, and nothing to leak; those whose plugin says `uses_provider =
False`, as a test checks. A record tells it only of a branch that was played, but names follow from the options alone,
and bounds need it of what was never started. An arm of a stranger's plugin counts as written, which is never wrong: its
leak rates stay absent, because the guard looked at nothing."""
LEVEL_ARMS = ("hierarchical",)
"""Arms that have levels, one a round: those whose plugin says how many, as a test checks. With texts of the data set no
model writes them."""
NET_EFFECTS: Mapping[str, tuple[str, str]] = {
    "net_content_effect": ("detail", "mismatched"),
    "net_bit_effect": ("simple", "reask"),
}
"""Metric -> an arm and its placebo; the one to look at first stands first."""

MAX_HEADLINE_ROWS = 25
"""Rows in the harness's table, siblings included, and `n`, which is always there (as `N`)."""
ROWS_OF_A_RATE = 5
"""The rate and its siblings .ci95_low, .ci95_high, .n, .unscored; a count has no siblings."""


class FeedbackLoopOptions(Protocol):
    """What the metrics need to know of the protocol's options."""

    @property
    def arms(self) -> Sequence[str]:
        """Arms, in the order to show; no name twice."""
        ...

    @property
    def max_rounds(self) -> int:
        """Feedback rounds of an arm, at least 1."""
        ...

    @property
    def providers(self) -> Sequence[str]:
        """Labels of several providers; empty where there is one."""
        ...

    @property
    def flip_sample(self) -> int:
        """How many right first answers are tried with every arm."""
        ...

    @property
    def leak_guard(self) -> str:
        """`observe`, `rewrite` or `off`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineup:
    """What is compared with what in a task."""

    arms: tuple[str, ...]
    max_rounds: int
    labels: tuple[str, ...]
    """Of the providers; ("",) where there is one."""
    flips: bool
    """Whether right first answers were tried too."""
    rewrites: bool
    """Whether leaking feedback is written again, and its arm dropped if it leaks once more."""
    all_wrong: bool = False
    """Whether every wrong first answer is tested; nobody solved the question before."""
    data_texts: bool = False
    """Whether the data set brings the feedback of the arms that have levels."""

    @classmethod
    def from_options(cls, options: FeedbackLoopOptions) -> Lineup:
        """The lineup of a task. Options of older plugins have no `test_on` and no `level_texts`."""
        return cls(
            arms=tuple(options.arms),
            max_rounds=options.max_rounds,
            labels=tuple(options.providers) or ("",),
            flips=options.flip_sample > 0,
            rewrites=options.leak_guard == "rewrite",
            all_wrong=getattr(options, "test_on", "provider_right") == "all_wrong",
            data_texts=getattr(options, "level_texts", None) == "data",
        )

    @property
    def several(self) -> bool:
        """Whether branches and metrics carry the provider's label."""
        return self.labels != ("",)

    @property
    def controlled(self) -> bool:
        """Whether the task asks for controls, by an arm, a flip sample or a second provider to compare with."""
        return self.several or self.flips or any(arm in CONTROL_ARMS for arm in self.arms)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every two arms, in the order of the YAML."""
        return tuple(combinations(self.arms, 2))

    @property
    def net_effects(self) -> dict[str, tuple[str, str]]:
        """Those NET_EFFECTS whose arms are both played."""
        return {name: pair for name, pair in NET_EFFECTS.items() if set(pair) <= set(self.arms)}

    @property
    def borrowing_arms(self) -> tuple[str, ...]:
        """The arms that tell what was written for another episode; left out where nobody lends any."""
        return tuple(arm for arm in self.arms if arm in BORROWING_ARMS)

    @property
    def guarded_arms(self) -> tuple[str, ...]:
        """The arms whose feedback the leak guard may look at: a model writes it, for this very episode."""
        return tuple(arm for arm in self.arms if arm not in (*self.unwritten_arms, *CONTROL_ARMS))

    @property
    def unwritten_arms(self) -> tuple[str, ...]:
        """The arms that nobody writes for an episode: the same for every provider."""
        return (*UNWRITTEN_ARMS, *(LEVEL_ARMS if self.data_texts else ()))

    @property
    def may_be_marked(self) -> bool:
        """Whether a person may write the feedback of an arm, and so mark a reply as right."""
        return self.all_wrong and bool(self.guarded_arms)

    def branches(self, arm: str) -> tuple[str, ...]:
        """The names under which a record may hold the arm: one a provider, or one for all."""
        return (*(f"{arm}@{label}" for label in self.labels), arm) if self.several else (arm,)

    def rate_names(self) -> list[str]:
        """All metrics but the counts, in the order to show; those in `contrasts` follow from two others."""
        names = ["accuracy"]
        for label in self.labels:
            names += [name + at(label) for name in self._rates_of_a_provider()]
        return names + [name for name, _ in self.provider_pairs()]

    def _rates_of_a_provider(self) -> Iterator[str]:
        arms = self.arms
        yield from (f"accuracy_after.{arm}" for arm in arms)
        yield from (f"correction_rate.{arm}" for arm in arms)
        if self.max_rounds > 1:
            rounds = range(1, self.max_rounds + 1)
            yield from (
                f"correction_rate.{arm}.{kind}{r}" for arm in arms for kind in ("round", "within") for r in rounds
            )
        if not self.all_wrong:  # else it is the correction rate, and nobody solved the question first
            yield from (f"correction_rate_on_negatives.{arm}" for arm in arms)
            yield "provider_solve_rate_on_negatives"
        yield from (f"difference.{one}-{other}" for one, other in self.pairs)
        yield from self.net_effects
        if self.controlled:
            yield "elimination_floor"
            yield from (f"repeat_rate.{arm}" for arm in arms)
            yield from (f"same_answer_rate.{one}-{other}" for one, other in self.pairs)
        if self.flips:
            yield from (f"{kind}.{arm}" for kind in ("flip_rate", "discrimination") for arm in arms)
        yield from (f"{kind}.{arm}" for arm in self.guarded_arms for kind in ("leak_rate", "leak_placebo_rate"))

    def provider_pairs(self) -> Iterator[tuple[str, tuple[str, str, str]]]:
        """(metric, (arm, label, other label)): whether an arm leads to the same answer whoever wrote it."""
        for arm in self.arms:
            if arm not in self.unwritten_arms:
                for one, other in combinations(self.labels, 2):
                    yield f"same_answer_rate.{arm}@{one}-{arm}@{other}", (arm, one, other)

    def contrasts(self) -> dict[str, Contrast]:
        """Metric -> the two rates whose difference it is."""
        first_round = ".round1" if self.max_rounds > 1 else ""
        found = {}
        for label in self.labels if self.flips else ():
            for arm in self.arms:
                rates = (f"correction_rate.{arm}{first_round}{at(label)}", f"flip_rate.{arm}{at(label)}")
                found[f"discrimination.{arm}{at(label)}"] = Contrast(first=rates[0], second=rates[1])
        return found

    def count_names(self) -> list[str]:
        """The counts, in the order to show."""
        names = []
        for name in COUNTS:
            names += [name + at(label) for label in self.labels] if name == "n_test" else [name]
        names += ["n_marked_right"] if self.may_be_marked else []
        if self.max_rounds > 1:
            ends = [*(f"round{r}" for r in range(1, self.max_rounds + 1)), "never"]
            names += [f"n_solved.{arm}.{end}{at(label)}" for label in self.labels for arm in self.arms for end in ends]
        names += [f"n_flip{at(label)}" for label in self.labels if self.flips]
        for kind in ("n_leak_dropped", "n_rewritten") if self.rewrites else ():
            names += [f"{kind}.{arm}{at(label)}" for label in self.labels for arm in self.guarded_arms]
        return names

    def is_of_second_pass(self, name: str) -> bool:
        """Whether only a second pass can give a metric: it is of flips, or of an arm that borrows."""
        plain = name.partition("@")[0]
        if plain.startswith(("flip_rate.", "discrimination.", "n_flip")):
            return True
        arms = self.net_effects.get(plain) or re.split(r"[.-]", plain)
        return any(arm in arms for arm in self.borrowing_arms)

    def headline(self) -> list[str]:
        """The metrics for the harness's table: what fits into MAX_HEADLINE_ROWS, by what a reader needs first.

        One provider:
        1. `accuracy`, the counts and `correction_rate.<arm>`: a row of the paper's tables (accuracy, #Neg, #Test, one
           rate an arm), and how much of it is unparseable or failed. With controls only the first two arms that are
           none: a placebo's own rate says little.
        2. What the corrections are worth. With controls the first that there is of `net_content_effect` (against
           feedback on another item), `net_bit_effect` and `discrimination` of the first arm (against being asked again
           at all); without, the `difference` of the first two arms, because whether detail beats simple cannot be read
           from two intervals.
        3. `accuracy_after.<arm>`, which has room with one arm only; its value follows from the rows of 1:
           accuracy + correction_rate * n_test / n, where nothing is unscored.
        With two arms, 1 and 2 are exactly 25 rows. An arm that has levels shows its rounds instead of their sum: the
        last level gives the answer, so the sum says little.

        Several providers: `accuracy`, then the first arm's correction rate with each of the first three, which is the
        paper's table, `n` (the harness has that row in any case), and as many other counts as there is room for, #Test
        of each first. `n_negative` and `n_failed` come last: they can be read from `accuracy` (1 - #Neg/n) and its
        `unscored`.
        """
        if not self.several:
            room = (MAX_HEADLINE_ROWS - len(COUNTS)) // ROWS_OF_A_RATE
            return [*self._rates_to_show()[:room], *COUNTS]
        plain = self._plain_arms()
        rates = ["accuracy", *(f"correction_rate.{plain[0]}@{label}" for label in self.labels)]
        rates = rates[: (MAX_HEADLINE_ROWS - 1) // ROWS_OF_A_RATE]
        counts = ["n", *(f"n_test@{label}" for label in self.labels), "n_invalid", "n_negative", "n_failed"]
        return rates + counts[: MAX_HEADLINE_ROWS - len(rates) * ROWS_OF_A_RATE]

    def _plain_arms(self) -> list[str]:
        """The arms that are no control; all where there is no other."""
        return [arm for arm in self.arms if arm not in CONTROL_ARMS] or list(self.arms)

    def _worth_of(self, arm: str) -> list[str]:
        """The correction rate of an arm, by round where it has levels."""
        if arm not in LEVEL_ARMS or self.max_rounds == 1:
            return [f"correction_rate.{arm}"]
        return [f"correction_rate.{arm}.round{r}" for r in range(1, self.max_rounds + 1)]

    def _rates_to_show(self) -> list[str]:
        first, *_ = plain = self._plain_arms()
        differences = [f"difference.{one}-{other}" for one, other in combinations(plain[:2], 2)]
        after = [f"accuracy_after.{arm}" for arm in self.arms]
        if not self.controlled:
            return ["accuracy", *(name for arm in self.arms for name in self._worth_of(arm)), *differences, *after]
        worth = [*self.net_effects, *([f"discrimination.{first}"] if self.flips else [])]
        return ["accuracy", *(f"correction_rate.{arm}" for arm in plain[:2]), *worth, *differences, *after]


def at(label: str) -> str:
    """What the name of a metric of a provider ends in.

    >>> at("gpt-4o"), at("")
    ('@gpt-4o', '')
    """
    return f"@{label}" if label else ""
