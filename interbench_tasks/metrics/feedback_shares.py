"""What one episode adds to each metric: the one place where an episode is counted in or out (`Case` has its standing).

What is known to have no part in a metric is absent; what may have one, but a failed call hides it, is unscored:

| of a test episode, the arm  | `correction_rate`, `difference`, `repeat_rate`, | `accuracy_after`,               |
|                             | `same_answer_rate`, rates by round              | `correction_rate_on_negatives`  |
|-----------------------------|-------------------------------------------------|---------------------------------|
| was played to its end       | counted                                         | counted                         |
| had a call that failed, or  |                                                 |                                 |
| never ran (a killed run)    | unscored                                        | unscored                        |
| ended `leak_dropped`        | absent (counted in `n_leak_dropped`)            | not corrected: keeps round 0    |
| ended `no_partner`          | absent                                          | not corrected: keeps round 0    |

A difference is scored where both arms are, and absent where one of them is. `feedback_controls` has the rest.

Left out on purpose is not unscored: it is in no denominator, and widens no bounds. Only where a failed call hides
whether an arm would have been left out (`ArmOutcome.may_be_left_out`) do the bounds allow for both; where its feedback
was given already, or the arm is none that can be left out, the episode is in the denominator whatever the call would
have said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from interbench_tasks.metrics.feedback_names import COUNTS, Lineup, at
from interbench_tasks.metrics.feedback_outcomes import ArmOutcome, Case, case_from_summary

__all__ = ["COUNTS", "NO", "OPEN", "YES", "Share", "base_shares", "cases_from_summary", "count_shares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one episode adds to one metric."""

    low: float
    """Smallest possible value, if counted: 0 or 1, in a paired difference -1, 0 or 1, in a mean in [0, 1]."""
    high: float
    """Largest possible value, if counted; equals `low` where the episode is scored."""
    scored: bool
    """False: a failed call hides the value, or whether the episode is counted at all."""
    may_be_out: bool = False
    """Of an unscored one: whether it may be outside the denominator. Told where it matters for the bounds: not where
    `low` and `high` are the ends of the metric's range, since then to count it moves them at least as far."""


YES = Share(low=1, high=1, scored=True)
NO = Share(low=0, high=0, scored=True)
OPEN = Share(low=0, high=1, scored=False)
OPEN_DIFFERENCE = Share(low=-1, high=1, scored=False)


def share_of(value: bool) -> Share:
    """The share of an episode whose value is known."""
    return YES if value else NO


def cases_from_summary(summary: Mapping[str, Any], lineup: Lineup) -> dict[str, Case]:
    """Label -> how the episode went with that provider."""
    return {label: case_from_summary(summary, lineup, label) for label in lineup.labels}


def base_shares(cases: Mapping[str, Case], lineup: Lineup) -> dict[str, Share]:
    """What the episode adds to accuracy, correction rates and differences."""
    standing = next(iter(cases.values())).standing  # round 0 is the same with every provider
    shares = {"accuracy": {"failed": OPEN, "right": YES}.get(standing, NO)}
    for label, case in cases.items():
        suffix = at(label)
        for arm in lineup.arms:
            shares |= _arm_shares(arm, suffix, case, lineup.max_rounds)
        if lineup.all_wrong:
            pass  # nobody solved the question first
        elif case.standing in ("test", "outside"):
            shares[f"provider_solve_rate_on_negatives{suffix}"] = share_of(case.standing == "test")
        elif case.standing in ("unknown", "failed"):
            shares[f"provider_solve_rate_on_negatives{suffix}"] = OPEN
        if case.outcomes:
            pairs = {f"difference.{one}-{other}": (one, other) for one, other in lineup.pairs} | lineup.net_effects
            differences = {name + suffix: _difference(case, one, other) for name, (one, other) in pairs.items()}
            shares |= {name: share for name, share in differences.items() if share is not None}
    return shares


def count_shares(cases: Mapping[str, Case], lineup: Lineup) -> dict[str, Share]:
    """What the episode adds to each count."""
    one = next(iter(cases.values()))
    failed = one.standing == "failed"
    shares = {
        "n": YES,
        "n_negative": OPEN if failed else share_of(one.standing != "right"),
        "n_invalid": OPEN if failed else share_of(one.unreadable),
        "n_failed": share_of(failed),
    }
    for label, case in cases.items():
        suffix = at(label)
        hidden = case.standing in ("failed", "unknown")
        shares[f"n_test{suffix}"] = OPEN if hidden else share_of(case.standing == "test")
        for arm in lineup.arms if lineup.max_rounds > 1 else ():
            shares |= _solved_in(arm, suffix, case, lineup.max_rounds)
        if lineup.flips:
            shares[f"n_flip{suffix}"] = OPEN if case.in_flip is None else share_of(case.in_flip)
        for arm in lineup.guarded_arms if lineup.rewrites else ():
            shares[f"n_leak_dropped.{arm}{suffix}"] = _guarded(case, arm, "dropped")
            shares[f"n_rewritten.{arm}{suffix}"] = _guarded(case, arm, "rewritten")
    return shares


def _arm_shares(arm: str, suffix: str, case: Case, max_rounds: int) -> dict[str, Share]:
    after, on_negatives = f"accuracy_after.{arm}{suffix}", f"correction_rate_on_negatives.{arm}{suffix}"
    outcome = case.outcomes.get(arm)
    if outcome is None:  # known to be outside the test set: right stays right, wrong stays wrong
        return {after: YES} if case.standing == "right" else {after: NO, on_negatives: NO}
    if outcome.left_out:
        return {after: NO, on_negatives: NO}
    within = _corrected(outcome)
    shares = {after: within, f"correction_rate.{arm}{suffix}": within, on_negatives: within}
    if max_rounds > 1:
        for number in range(1, max_rounds + 1):
            shares[f"correction_rate.{arm}.round{number}{suffix}"] = _in_round(outcome, number)
            shares[f"correction_rate.{arm}.within{number}{suffix}"] = _within(outcome, number)
    return shares


def _solved_in(arm: str, suffix: str, case: Case, max_rounds: int) -> dict[str, Share]:
    """The round in which an arm was corrected, or that it never was; none of an episode outside the test set."""
    ends: list[int | None] = [*range(1, max_rounds + 1), None]
    names = {end: f"n_solved.{arm}.{'never' if end is None else f'round{end}'}{suffix}" for end in ends}
    outcome = case.outcomes.get(arm)
    if outcome is None or outcome.left_out:
        return dict.fromkeys(names.values(), NO)
    failed_in = outcome.failed_in
    if failed_in is None:
        return {name: share_of(outcome.solved_in == end) for end, name in names.items()}
    return {name: OPEN if end is None or end >= failed_in else NO for end, name in names.items()}


def _within(outcome: ArmOutcome, number: int) -> Share:
    """Corrected in round `number` or before; what is known of an arm that failed later is treated as in `_in_round`."""
    if outcome.failed_in is not None:
        known = number < outcome.failed_in
        return Share(low=0, high=0, scored=False, may_be_out=outcome.may_be_left_out) if known else OPEN
    return share_of(outcome.solved_in is not None and outcome.solved_in <= number)


def _corrected(outcome: ArmOutcome) -> Share:
    """Corrected in any round."""
    return OPEN if outcome.failed_in is not None else share_of(outcome.solved_in is not None)


def _in_round(outcome: ArmOutcome, number: int) -> Share:
    """Corrected in round `number`, not before.

    A round that was played without success, in an arm that failed later, is known, but out of the scored rows, so that
    all rounds of an arm have the same denominator.
    """
    if outcome.failed_in is not None:
        known = number < outcome.failed_in
        return Share(low=0, high=0, scored=False, may_be_out=outcome.may_be_left_out) if known else OPEN
    return share_of(outcome.solved_in == number)


def _difference(case: Case, one: str, other: str) -> Share | None:
    """Corrected in one arm minus corrected in the other; None where one of them was left out."""
    if case.standing != "test":
        return OPEN_DIFFERENCE  # it may be outside the test set
    outcomes = case.outcomes[one], case.outcomes[other]
    if any(outcome.left_out for outcome in outcomes):
        return None
    first, second = (_corrected(outcome) for outcome in outcomes)
    return Share(
        low=first.low - second.high,
        high=first.high - second.low,
        scored=first.scored and second.scored,
        may_be_out=any(outcome.may_be_left_out for outcome in outcomes),
    )


def _guarded(case: Case, arm: str, what: Literal["dropped", "rewritten"]) -> Share:
    """Whether the leak guard dropped the arm, or had any of its feedback written again."""
    if not case.outcomes:
        return NO
    branch = case.arms.get(arm) if case.standing == "test" else None
    if branch is not None and (branch["end"] == "leak_dropped" if what == "dropped" else branch.get("rewritten")):
        return YES
    if case.standing != "test":
        return OPEN
    return OPEN if case.outcomes[arm].may_be_left_out else NO


def marked_share(summary: Mapping[str, Any], cases: Mapping[str, Case]) -> Share:
    """Whether a person marked any reply of the episode as right."""
    first = summary["first"]
    rounds = [entry for branch in summary["arms"].values() for entry in branch["rounds"]]
    if any(entry.get("marked") for entry in [*([first] if first is not None else []), *rounds]):
        return YES
    outcomes = [outcome for case in cases.values() for outcome in case.outcomes.values()]
    return OPEN if any(outcome.failed_in is not None for outcome in outcomes) else NO
