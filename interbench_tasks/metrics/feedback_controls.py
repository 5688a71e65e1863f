"""What one episode adds to the control metrics: repeated and equal answers, the floor, leaks, and flips.

All but the flips are over the test set, and unscored where a failed call hides whether the episode is in it. What a
metric needs is round 1 only, so an arm whose call failed in a later round is scored here.

| of an arm                         | `repeat_rate`,      | `leak_rate` and its placebo | `flip_rate` |
|                                   | `same_answer_rate`  |                             |             |
|-----------------------------------|---------------------|-----------------------------|-------------|
| round 1 was answered              | counted             | counted if the guard looked | counted     |
| ... but the answer is unreadable  | no repeat, not same | as above                    | flipped     |
| reply or verdict of round 1       |                     |                             |             |
| failed                            | unscored            | as above                    | unscored    |
| feedback of round 1 failed        | unscored            | unscored, but for a draft   | unscored    |
| second pass failed, or budget     |                     |                             |             |
| ended before it                   | unscored            | unscored                    | unscored    |
| killed before it                  | unscored            | unscored                    | absent: the |
|                                   |                     |                             | run is not  |
|                                   |                     |                             | `finished`  |
| ended `leak_dropped`              | absent              | counted                     | absent      |
| ended `no_partner`                | absent              | absent                      | absent      |

An answer is readable where the verifier took exactly one out of the reply; `answer_id` (feedback_summary) says which
readable ones are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interbench_tasks.metrics.feedback_names import Lineup, at
from interbench_tasks.metrics.feedback_outcomes import LEFT_OUT, Case
from interbench_tasks.metrics.feedback_shares import OPEN, Share, share_of


def control_shares(summary: Mapping[str, Any], cases: Mapping[str, Case], lineup: Lineup) -> dict[str, Share]:
    """What the episode adds to the control metrics; what it is known to have no part in is absent."""
    found: dict[str, Share | None] = {}
    for label, case in cases.items():
        found |= {name + at(label): share for name, share in _of_a_provider(summary, case, lineup)}
    for name, (arm, one, other) in lineup.provider_pairs():
        if cases[one].outcomes and cases[other].outcomes:
            found[name] = _same((cases[one], arm), (cases[other], arm))
    return {name: share for name, share in found.items() if share is not None}


def _of_a_provider(summary: Mapping[str, Any], case: Case, lineup: Lineup) -> Iterator[tuple[str, Share | None]]:
    if case.outcomes:
        for arm in lineup.guarded_arms:
            yield f"leak_rate.{arm}", _leak(case, arm, "found")
            yield f"leak_placebo_rate.{arm}", _leak(case, arm, "placebo")
    if case.outcomes and lineup.controlled:
        yield "elimination_floor", _floor(summary, case, lineup.max_rounds)
        for arm in lineup.arms:
            yield f"repeat_rate.{arm}", _repeats(summary, case, arm)
        for one, other in lineup.pairs:
            yield f"same_answer_rate.{one}-{other}", _same((case, one), (case, other))
    if lineup.flips and case.in_flip is not False:
        for arm in lineup.arms:
            yield f"flip_rate.{arm}", _flip(case, arm)


def _round_1(case: Case, arm: str) -> Mapping[str, Any] | None:
    """Round 1 of an arm of a test episode; None where its answer is not known."""
    branch = case.arms.get(arm) if case.standing == "test" else None
    if branch is None or not branch["rounds"] or branch["rounds"][0]["correct"] is None:
        return None
    entry: Mapping[str, Any] = branch["rounds"][0]
    return entry


def _repeats(summary: Mapping[str, Any], case: Case, arm: str) -> Share | None:
    """Whether round 1 gives the answer of round 0 again."""
    if case.outcomes[arm].left_out:
        return None
    entry = _round_1(case, arm)
    first = summary["first"]["answer_id"] if entry is not None else None
    return OPEN if entry is None else share_of(first is not None and entry["answer_id"] == first)


def _same(one: tuple[Case, str], other: tuple[Case, str]) -> Share | None:
    """Whether two arms give the same readable answer in round 1; None where one is left out, or both are one branch."""
    if any(case.outcomes[arm].left_out for case, arm in (one, other)):
        return None
    first, second = (_round_1(case, arm) for case, arm in (one, other))
    if first is None or second is None:
        return OPEN
    if first is second:
        return None  # an arm that the providers share
    return share_of(first["answer_id"] is not None and first["answer_id"] == second["answer_id"])


def _floor(summary: Mapping[str, Any], case: Case, max_rounds: int) -> Share | None:
    """The share that is corrected by ruling out one wrong option a round and guessing among the others."""
    n_options = summary["n_options"]
    if n_options == 0 and not summary["target"]:
        return OPEN  # never played: nobody knows its options
    if n_options < 2:
        return None  # free-form: nothing to rule out
    value = min(1.0, max_rounds / (n_options if case.unreadable else n_options - 1))
    in_test = case.standing == "test"
    return Share(low=value, high=value, scored=in_test, may_be_out=not in_test)


def _leak(case: Case, arm: str, what: str) -> Share | None:
    """Whether the leak guard fired in round 1, for the target (`found`) or for the wrong answer (`placebo`)."""
    if case.standing != "test":
        return OPEN
    branch = case.arms.get(arm)
    if branch is not None and "leak" in branch:
        leak = branch["leak"]
        return share_of(leak[what] is not None) if what in leak else None
    if branch is not None and (branch["rounds"] or branch["end"] == "no_partner"):
        return None  # there was nothing to look at, or nobody looked
    return OPEN


def _flip(case: Case, arm: str) -> Share | None:
    """Whether a right answer is given up in round 1."""
    branch = case.arms.get(arm) if case.in_flip else None
    if branch is None:
        return OPEN
    if branch["end"] in LEFT_OUT:
        return None
    rounds = branch["rounds"]
    return OPEN if not rounds or rounds[0]["correct"] is None else share_of(not rounds[0]["correct"])
