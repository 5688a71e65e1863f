"""What one episode of a feedback loop adds to each metric: the one place where an episode is counted in or out.

A failed call leaves a hole, and the hole is as wide as what the call would have decided:

| standing  | what happened                                           | test set  |
|-----------|---------------------------------------------------------|-----------|
| `right`   | round 0 right                                           | out       |
| `invalid` | round 0 unparseable: wrong, and the provider not asked  | out       |
| `outside` | round 0 wrong, the provider's own try wrong/unparseable | out       |
| `test`    | round 0 wrong, the provider's own try right             | in        |
| `unknown` | round 0 wrong, the call of the provider's try failed    | in or out |
| `failed`  | the call of round 0 failed, or the episode never ran    | in or out |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

Standing = Literal["right", "invalid", "outside", "test", "unknown", "failed"]

COUNTS = ("n", "n_negative", "n_test", "n_invalid", "n_failed")
"""The metrics that are counts of episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one episode adds to one metric."""

    low: int
    """Smallest possible value, if counted: 0 or 1, in a paired difference -1, 0 or 1."""
    high: int
    """Largest possible value, if counted; equals `low` where the episode is scored."""
    scored: bool
    """False: a failed call hides the value, or whether the episode is counted at all."""


YES = Share(low=1, high=1, scored=True)
NO = Share(low=0, high=0, scored=True)
OPEN = Share(low=0, high=1, scored=False)
UNSCORED_NO = Share(low=0, high=0, scored=False)
"""A round that was played without success, in an arm that failed later: known, but out of the scored rows, so that all
rounds of an arm have the same denominator."""
OPEN_DIFFERENCE = Share(low=-1, high=1, scored=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutcome:
    """How one arm of one episode went."""

    solved_in: int | None
    """The round that was right, from 1; None where none was."""
    failed_in: int | None
    """The round whose call failed, from 1; None where the arm was played to its end."""

    def within(self) -> Share:
        """Corrected in any round."""
        if self.failed_in is not None:
            return OPEN
        return YES if self.solved_in is not None else NO

    def in_round(self, number: int) -> Share:
        """Corrected in round `number`, not before."""
        if self.failed_in is not None:
            return OPEN if number >= self.failed_in else UNSCORED_NO
        return YES if self.solved_in == number else NO


NOTHING_KNOWN = ArmOutcome(solved_in=None, failed_in=1)


def standing_from_summary(summary: Mapping[str, Any]) -> Standing:
    """Where an episode stands after round 0 and the provider's own try (the module's table)."""
    first = summary["first"]
    if first is None:
        return "failed"
    if first["correct"]:
        return "right"
    if first["answer"] is None:
        return "invalid"
    if summary["in_test"] is None:
        return "unknown"
    return "test" if summary["in_test"] else "outside"


def outcome_from_rounds(rounds: Sequence[Mapping[str, Any]], max_rounds: int) -> ArmOutcome:
    """How an arm went, read from its rounds alone: what is neither right nor played to the last round has failed."""
    played = 0
    for entry in rounds[:max_rounds]:
        if entry["correct"] is None:
            break
        played += 1
        if entry["correct"]:
            return ArmOutcome(solved_in=played, failed_in=None)
    return ArmOutcome(solved_in=None, failed_in=None if played == max_rounds else played + 1)


def rate_shares(summary: Mapping[str, Any], arms: Sequence[str], max_rounds: int) -> dict[str, Share]:
    """What the episode adds to each rate and difference; a metric it is known not to be counted in is absent."""
    standing = standing_from_summary(summary)
    shares = {"accuracy": {"failed": OPEN, "right": YES}.get(standing, NO)}
    outcomes = _outcomes(summary, standing, arms, max_rounds)
    for arm in arms:
        shares |= _arm_shares(arm, standing, outcomes.get(arm), max_rounds)
    if standing in ("test", "outside"):
        shares["provider_solve_rate_on_negatives"] = YES if standing == "test" else NO
    elif standing in ("unknown", "failed"):
        shares["provider_solve_rate_on_negatives"] = OPEN
    if outcomes:
        for one, other in combinations(arms, 2):
            known = standing == "test"
            shares[f"difference.{one}-{other}"] = (
                _difference(outcomes[one].within(), outcomes[other].within()) if known else OPEN_DIFFERENCE
            )
    return shares


def count_shares(summary: Mapping[str, Any]) -> dict[str, Share]:
    """What the episode adds to each of COUNTS."""
    standing = standing_from_summary(summary)
    failed = standing == "failed"
    return {
        "n": YES,
        "n_negative": OPEN if failed else NO if standing == "right" else YES,
        "n_test": OPEN if standing in ("failed", "unknown") else YES if standing == "test" else NO,
        "n_invalid": OPEN if failed else YES if standing == "invalid" else NO,
        "n_failed": YES if failed else NO,
    }


def _outcomes(
    summary: Mapping[str, Any], standing: Standing, arms: Sequence[str], max_rounds: int
) -> dict[str, ArmOutcome]:
    """Arm -> outcome; empty where the episode is known to be outside the test set."""
    if standing == "test":
        played = summary["arms"]
        return {arm: outcome_from_rounds(played[arm]["rounds"] if arm in played else (), max_rounds) for arm in arms}
    return dict.fromkeys(arms, NOTHING_KNOWN) if standing in ("unknown", "failed") else {}


def _arm_shares(arm: str, standing: Standing, outcome: ArmOutcome | None, max_rounds: int) -> dict[str, Share]:
    if outcome is None:  # known to be outside the test set: right stays right, wrong stays wrong
        if standing == "right":
            return {f"accuracy_after.{arm}": YES}
        return {f"accuracy_after.{arm}": NO, f"correction_rate_on_negatives.{arm}": NO}
    within = outcome.within()
    shares = {
        f"accuracy_after.{arm}": within,
        f"correction_rate.{arm}": within,
        f"correction_rate_on_negatives.{arm}": within,
    }
    if max_rounds > 1:
        for number in range(1, max_rounds + 1):
            shares[f"correction_rate.{arm}.round{number}"] = outcome.in_round(number)
    return shares


def _difference(one: Share, other: Share) -> Share:
    return Share(low=one.low - other.high, high=one.high - other.low, scored=one.scored and other.scored)
