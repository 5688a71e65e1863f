"""How an episode went with one provider: where it stands, and what each arm came to; read from its summary alone.

A failed call leaves a hole, and the hole is as wide as what the call would have decided:

| standing  | what happened                                           | test set  |
|-----------|---------------------------------------------------------|-----------|
| `right`   | round 0 right                                           | out       |
| `invalid` | round 0 unparseable: wrong, and the provider not asked  | out       |
| `outside` | round 0 wrong, the provider's own try wrong/unparseable | out       |
| `test`    | round 0 wrong, the provider's own try right; with       | in        |
|           | `test_on: all_wrong` round 0 wrong, unparseable or not  |           |
| `unknown` | round 0 wrong, the call of the provider's try failed    | in or out |
| `failed`  | the call of round 0 failed, or the episode never ran    | in or out |

With several providers an episode stands somewhere with each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from interbench_tasks.metrics.feedback_names import Lineup

Standing = Literal["right", "invalid", "outside", "test", "unknown", "failed"]

LEFT_OUT = ("leak_dropped", "no_partner")
"""Ends of an arm that was not played on purpose: its feedback leaked twice, or there was none to borrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutcome:
    """How one arm of one episode went."""

    solved_in: int | None
    """The round that was right, from 1; None where none was."""
    failed_in: int | None
    """The round whose call failed, from 1; None where the arm was played to its end."""
    left_out: bool = False
    """Not played on purpose, see LEFT_OUT; then nothing has failed."""
    may_be_left_out: bool = False
    """Of an arm that has failed: whether it could have ended in LEFT_OUT (`may_still_be_left_out`)."""


NOTHING_KNOWN = ArmOutcome(solved_in=None, failed_in=1)
"""Of an episode that may be outside the test set: that hides more than what became of the arm."""
NOT_PLAYED = ArmOutcome(solved_in=None, failed_in=None, left_out=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One episode with one provider."""

    standing: Standing
    arms: Mapping[str, Mapping[str, Any]]
    """Arm -> its branch in the summary; absent where it was never started."""
    outcomes: Mapping[str, ArmOutcome]
    """Arm -> how it went; empty where the episode is known to be outside the test set."""
    in_flip: bool | None
    """Whether the episode is in the flip set; None where a failed call hides it."""
    unreadable: bool = False
    """Whether round 0 is wrong because no answer could be read out of it."""


def case_from_summary(summary: Mapping[str, Any], lineup: Lineup, label: str) -> Case:
    """How the episode went with the provider `label` ("" where there is one)."""
    in_test, in_flip = summary["in_test"], summary.get("in_flip", False)
    if lineup.several:
        in_test = in_test[label]
        in_flip = in_flip[label] if "in_flip" in summary else False
    standing = standing_from_summary(summary, in_test)
    arms = {}
    for arm in lineup.arms:
        own = summary["arms"].get(f"{arm}@{label}") if lineup.several else None
        branch = own if own is not None else summary["arms"].get(arm)
        if branch is not None:
            arms[arm] = branch
    outcomes = {}
    if standing == "test":
        outcomes = {arm: outcome_from_branch(arms.get(arm), arm, lineup) for arm in lineup.arms}
    elif standing in ("unknown", "failed"):
        outcomes = dict.fromkeys(lineup.arms, NOTHING_KNOWN)
    first = summary["first"]
    unreadable = first is not None and not first["correct"] and first["answer"] is None
    return Case(standing=standing, arms=arms, outcomes=outcomes, in_flip=in_flip, unreadable=unreadable)


def standing_from_summary(summary: Mapping[str, Any], in_test: bool | None) -> Standing:
    """Where an episode stands after round 0 and the provider's own try (the module's table).

    Args: in_test = whether it is in the test set with this provider; None where a failed call hides it.
    """
    first = summary["first"]
    if first is None:
        return "failed"
    if first["correct"]:
        return "right"
    if in_test:
        return "test"
    if first["answer"] is None:
        return "invalid"
    if in_test is None:
        return "unknown"
    return "test" if in_test else "outside"


def outcome_from_branch(branch: Mapping[str, Any] | None, arm: str, lineup: Lineup) -> ArmOutcome:
    """How an arm went; one that was never started, e.g. in a run that was killed, has failed."""
    if branch is not None and branch["end"] in LEFT_OUT:
        return NOT_PLAYED
    outcome = NOTHING_KNOWN if branch is None else outcome_from_rounds(branch["rounds"], lineup.max_rounds)
    if outcome.failed_in is None:
        return outcome
    return replace(outcome, may_be_left_out=may_still_be_left_out(branch, arm, lineup))


def may_still_be_left_out(branch: Mapping[str, Any] | None, arm: str, lineup: Lineup) -> bool:
    """Whether an arm of a test episode could have been left out on purpose, had no call failed.

    An arm that borrows is left out before its first round or not at all. One whose leaking feedback is dropped may be
    left out in each round for which no feedback was given yet; after the last round's it cannot be.
    """
    if arm in lineup.borrowing_arms:
        return branch is None
    if not lineup.rewrites or arm not in lineup.guarded_arms:
        return False
    return branch is None or len(branch["rounds"]) < lineup.max_rounds


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
