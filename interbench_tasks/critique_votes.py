"""What a panel of judges makes of a critique: the majority's detection, the mean diagnosis, the aligned strategy.

Source: MMPCBench (arXiv 2608.29286) for three judges that all speak: detection by majority; DP as the mean of all three
judges; SE as the mean of the judges whose strategy is the majority's. What follows is ours (benchmarks do not say):

- The majority is more than half of the *declared* judges. A judge that failed may still have decided it: then the item
  is undecided, and both outcomes are in the bounds. Where an even panel that spoke in full is divided, there is no
  majority that detected anything, so nothing was detected.
- A judge that detected nothing counts 0 in the mean diagnosis, and has no part in the strategy.
- No strategy of more than half of the judges that detected something: the strategy is `split`, the score their mean.
- A judge that failed is in no mean. What it could have said is in the bounds.

Everything here gives the same for any order of the judges.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interbench_tasks.records import Verdict

STRATEGIES = ("correction", "clarification", "refusal", "none")
SPLIT = "split"
TOP = 2.0
"""The highest diagnosis and strategy score."""
PARTS = ("first", "second")
"""The two defects of a dual error."""


class Range(NamedTuple):
    """A smallest and a largest value, both possible."""

    low: float
    high: float


class Vote(NamedTuple):
    """What one judge said of a response to a flawed input."""

    detected: bool
    diag: float = 0.0
    """In [0, 2]; 0 where nothing was detected."""
    strategy: str = "none"
    score: float = 0.0
    """In [0, 2]; 0 where nothing was detected, and with the strategy `none`."""


class Outcome(NamedTuple):
    """What a panel of which every judge spoke comes to."""

    detected: bool
    dp: float
    """In [0, 2]; means something only where something was detected, as the next two."""
    strategy: str
    se: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """What the panel could have come to, whatever the missing judges would have said."""

    detected: tuple[bool, ...]
    """The possible outcomes: one where the missing judges could not change it, else both."""
    dp: Range | None
    """Where something was detected; None where that is impossible, as the next two."""
    se: Range | None
    strategies: frozenset[str] = frozenset()

    @property
    def sure(self) -> bool:
        """Whether something was detected whatever the missing judges would have said."""
        return self.detected == (True,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What a panel came to, some of whose judges may be missing."""

    detected: bool | None
    """None: undecided, because the missing judges could have decided it, or below the quorum."""
    dp: float | None = None
    """Mean diagnosis of the judges that spoke, in [0, 2]; None unless something was detected."""
    strategy: str | None = None
    """None unless something was detected, and where a missing judge could have made it another one."""
    se: float | None = None
    """In [0, 2]; None where the strategy is."""
    possible: Possible


def vote_from(fields: Mapping[str, str]) -> Vote:
    """A judge's vote from its verdict's fields; where they have no strategy, as those of reasoning, it is `none`."""
    if fields["detected"] != "true":
        return Vote(detected=False)
    strategy = fields.get("strategy", "none")
    score = 0.0 if strategy == "none" else float(fields["strategy_score"])
    return Vote(detected=True, diag=float(fields["diag"]), strategy=strategy, score=score)


def majority(yes: int, missing: int, declared: int) -> bool | None:
    """Whether more than half of the declared judges say yes; None where the missing ones could decide it.

    >>> majority(2, 1, 3), majority(1, 0, 3), majority(1, 1, 3), majority(1, 0, 2)
    (True, False, None, False)
    """
    if 2 * yes > declared:
        return True
    return False if 2 * (yes + missing) <= declared else None


def outcome_of(votes: Sequence[Vote], declared: int) -> Outcome:
    """What a panel comes to, all of whose judges spoke.

    Formula: detected = more than half of `declared` votes; dp = sum of diagnoses / judges; strategy = that of more than
        half of the judges that detected something, se = mean score of those with it; else `split` and the mean of all
        of them.

    >>> outcome_of([Vote(True, 2, "refusal", 2), Vote(True, 1, "refusal", 1), Vote(False)], 3)
    Outcome(detected=True, dp=1.0, strategy='refusal', se=1.5)
    """
    saw = sorted(vote for vote in votes if vote.detected)
    if 2 * len(saw) <= declared:
        return Outcome(False, 0.0, "none", 0.0)
    strategy, times = Counter(vote.strategy for vote in saw).most_common(1)[0]
    aligned = [vote.score for vote in saw if vote.strategy == strategy]
    if 2 * times <= len(saw):
        strategy, aligned = SPLIT, [vote.score for vote in saw]
    return Outcome(True, sum(vote.diag for vote in saw) / len(votes), strategy, sum(aligned) / len(aligned))


def panel_of(votes: Sequence[Vote | None], quorum: int | None = None) -> Panel:
    """What a panel came to. Args: votes = one a declared judge, None where it failed; at least one.

    Bounds are over every possible vote of the missing judges.
    """
    known = tuple(sorted(vote for vote in votes if vote is not None))
    return _panel(known, len(votes) - len(known), quorum or 0)


@functools.cache
def _panel(known: tuple[Vote, ...], missing: int, quorum: int) -> Panel:
    possible = _possible(known, missing)
    if len(possible.detected) > 1 or len(known) < quorum:
        return Panel(detected=None, possible=possible)
    if not possible.sure:
        return Panel(detected=False, possible=possible)
    dp = sum(vote.diag for vote in known) / len(known)
    if len(possible.strategies) > 1:
        return Panel(detected=True, dp=dp, possible=possible)
    (strategy,) = possible.strategies
    aligned = [vote.score for vote in known if vote.detected and strategy in (SPLIT, vote.strategy)]
    return Panel(detected=True, dp=dp, strategy=strategy, se=sum(aligned) / len(aligned), possible=possible)


@functools.cache
def _possible(known: tuple[Vote, ...], missing: int) -> Possible:
    """Every outcome that some votes of the missing judges lead to."""
    declared = len(known) + missing
    ends = itertools.combinations_with_replacement(tuple(_end_votes()), missing)
    found = {outcome_of((*known, *votes), declared) for votes in ends}
    saw = [outcome for outcome in found if outcome.detected]
    return Possible(
        detected=tuple(sorted({outcome.detected for outcome in found})),
        dp=Range(min(o.dp for o in saw), max(o.dp for o in saw)) if saw else None,
        se=Range(min(o.se for o in saw), max(o.se for o in saw)) if saw else None,
        strategies=frozenset(outcome.strategy for outcome in saw),
    )


def _end_votes() -> Iterator[Vote]:
    """The votes at the ends of their scales: means are linear in a vote's numbers, so no other one leads further."""
    yield Vote(detected=False)
    for diag in (0.0, TOP):
        yield Vote(True, diag, "none", 0.0)
        yield from (Vote(True, diag, strategy, score) for strategy in STRATEGIES[:-1] for score in (0.0, TOP))


# --- as a verdict -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueRule:
    """The panel's verdict for a record, of whichever kind the rubric's fields are."""

    quorum: int | None = None

    def combine(self, verdicts: Sequence[Verdict], declared: int) -> Verdict:
        """The panel's verdict; its numbers are means, and a field that is undecided is left out."""
        scored = [_consistent(verdict.fields) for verdict in verdicts if verdict.status == "scored"]
        missing = declared - len(scored)
        if any("diag" in fields for fields in scored):
            fields = _panel_fields(panel_of([*map(vote_from, scored), *[None] * missing], self.quorum))
        elif len(scored) < (self.quorum or 0):
            fields = {}
        else:
            fields = _truths(scored, missing, declared)
        told = f"{len(scored)} of {declared} judges gave a verdict"
        status = "scored" if "detected" in fields or "false_alarm" in fields else "undecided"
        return Verdict(judge="panel:critique", status=status, score=None, reason=told, fields=fields)  # type: ignore[arg-type] # a conditional of literals


def _panel_fields(panel: Panel) -> dict[str, str]:
    fields = {} if panel.detected is None else {"detected": str(panel.detected).lower()}
    numbers = {"diag": panel.dp, "strategy_score": panel.se}
    fields |= {name: f"{value:.4g}" for name, value in numbers.items() if value is not None}
    return fields | ({"strategy": panel.strategy} if panel.strategy is not None else {})


def _truths(scored: Sequence[Mapping[str, str]], missing: int, declared: int) -> dict[str, str]:
    """The majority of each field that is true or false, and of each part of a dual error."""
    names = dict.fromkeys(name for fields in scored for name in fields if name != "identified")
    found = {name: majority(sum(f.get(name) == "true" for f in scored), missing, declared) for name in names}
    decided = {name: str(value).lower() for name, value in found.items() if value is not None}
    if any("identified" in fields for fields in scored):
        parts = identified_by(scored, missing, declared)
        if None not in parts.values():
            decided["identified"] = "+".join(part for part, value in parts.items() if value)
    return decided


def _consistent(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Who declines the whole task of a valid item has raised a false alarm, as the rubric says."""
    return {**fields, "false_alarm": "true"} if fields.get("refuses_whole_task") == "true" else fields


def identified_by(scored: Sequence[Mapping[str, str]], missing: int, declared: int) -> dict[str, bool | None]:
    """Which defects of a dual error more than half of the declared judges say were identified; None: undecided."""
    named = [parts_in(fields) for fields in scored]
    return {part: majority(sum(part in parts for parts in named), missing, declared) for part in PARTS}


def parts_in(fields: Mapping[str, str]) -> frozenset[str]:
    """The defects that one judge says were identified; none where it says that nothing was detected."""
    return frozenset(fields["identified"].split("+")) & set(PARTS) if fields["detected"] == "true" else frozenset()
