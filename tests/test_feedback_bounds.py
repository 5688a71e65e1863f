"""Bounds where arms may be left out on purpose: the extremes over everything that failed calls could have hidden."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from interbench_tasks.records import EpisodeRecord
from tests.feedback_records import CLEAN, STATED, LoopOptions, feedback, loop, table_of

OUT = "out"
DROPPABLE, BORROWING = "detail", "mismatched"
SETTINGS = [
    LoopOptions(arms=("detail", "mismatched"), leak_guard="rewrite"),
    LoopOptions(arms=("detail", "simple"), leak_guard="rewrite", max_rounds=2),
    LoopOptions(arms=("simple", "reask"), leak_guard="rewrite", max_rounds=2),
    LoopOptions(arms=("detail", "mismatched"), max_rounds=2),
    LoopOptions(arms=("simple", "mismatched", "detail"), leak_guard="rewrite"),
]
MOST_OUTCOMES = 2_000

# --- random runs


def random_branch(rng: random.Random, arm: str, options: LoopOptions) -> tuple[list[object], list]:
    answers: list[object] = []
    told = []
    guard = arm == DROPPABLE and options.leak_guard == "rewrite"
    if arm == BORROWING and rng.random() < 0.25:
        return ["no_partner"], []
    for _ in range(options.max_rounds):
        if guard and rng.random() < 0.2:
            return [*answers, "leak_dropped"], [*told, feedback(STATED, draft=STATED)]
        if rng.random() < 0.15:
            return [*answers, "feedback_failed"], [*told, feedback()]
        told.append(feedback(CLEAN if guard else None))
        answers.append(rng.choice(["A", "C", "B", None, "failed"]))
        if answers[-1] in ("B", "failed"):
            break
    return answers, told


def random_record(rng: random.Random, options: LoopOptions) -> EpisodeRecord:
    kind = rng.choices(["right", "invalid", "outside", "unknown", "failed", "test"], weights=[2, 1, 1, 1, 1, 9])[0]
    if kind != "test":
        first = {"right": "B", "invalid": None, "failed": "failed"}.get(kind, "A")
        solve = {"outside": "C", "unknown": "failed"}.get(kind)
        return loop(first, solve)
    branches = {arm: random_branch(rng, arm, options) for arm in options.arms if rng.random() < 0.85}
    arms = {arm: answers for arm, (answers, _) in branches.items()}
    return loop("A", "B", arms, told={arm: told for arm, (_, told) in branches.items()})


# --- what the failed calls could have hidden


def possible_ends(record: EpisodeRecord, arm: str, options: LoopOptions) -> list[object]:
    """The rounds in which the arm may have been corrected; 0 = never, OUT = left out on purpose."""
    guard = arm == DROPPABLE and options.leak_guard == "rewrite"
    end = next((end.reason for end in record.ends if end.branch == arm), None)
    n_rounds = sum(turn.branch == arm for turn in record.turns)
    if end in ("leak_dropped", "no_partner"):
        return [OUT]
    if end in ("solved", "rounds_used"):
        return [n_rounds if end == "solved" else 0]
    open_from = n_rounds if end == "reply_failed" else n_rounds + 1
    ends: list[object] = [0, *range(open_from, options.max_rounds + 1)]
    if arm == BORROWING:
        return [*ends, OUT] if end is None else ends
    feedback_to_come = end != "reply_failed" or n_rounds < options.max_rounds
    return [*ends, OUT] if guard and feedback_to_come else ends


def possible_states(record: EpisodeRecord, options: LoopOptions) -> list[object]:
    first = record.turns[0].judgement
    solve = next((turn for turn in record.turns if turn.role == "provider"), None)
    combos = itertools.product(*(possible_ends(record, arm, options) for arm in options.arms))
    in_test: list[object] = [dict(zip(options.arms, combo, strict=True)) for combo in combos]
    if record.status == "failed":
        return ["right", "wrong", *in_test]
    if first.correct:
        return ["right"]
    if first.extraction.answer is None or (solve.judgement is not None and not solve.judgement.correct):
        return ["wrong"]
    return ["wrong", *in_test] if solve.judgement is None else in_test


def plain_metrics(states: list[object], options: LoopOptions) -> dict[str, float]:
    """The formulas, written down a second time."""
    found = dict(plain_rates(states, options))
    return {name: top / bottom for name, (top, bottom) in found.items() if bottom}


def plain_rates(states: list[object], options: LoopOptions) -> Iterator[tuple[str, tuple[float, int]]]:
    right, tests = states.count("right"), [state for state in states if isinstance(state, dict)]
    yield "accuracy", (right, len(states))
    for arm in options.arms:
        kept = [state[arm] for state in tests if state[arm] != OUT]
        solved = sum(end > 0 for end in kept)
        yield f"correction_rate.{arm}", (solved, len(kept))
        yield f"accuracy_after.{arm}", (right + solved, len(states))
        yield f"correction_rate_on_negatives.{arm}", (solved, len(states) - right)
        for number in range(1, options.max_rounds + 1):
            yield f"correction_rate.{arm}.round{number}", (kept.count(number), len(kept))
            yield f"correction_rate.{arm}.within{number}", (sum(0 < end <= number for end in kept), len(kept))
            yield f"n_solved.{arm}.round{number}", (kept.count(number), 1)
        yield f"n_solved.{arm}.never", (kept.count(0), 1)
        yield f"n_leak_dropped.{arm}", (sum(state[arm] == OUT for state in tests), 1)
    for one, other in itertools.combinations(options.arms, 2):
        both = [(state[one], state[other]) for state in tests if OUT not in (state[one], state[other])]
        yield f"difference.{one}-{other}", (sum((a > 0) - (b > 0) for a, b in both), len(both))


def small_run(rng: random.Random, options: LoopOptions) -> tuple[list[EpisodeRecord], list[list[object]]]:
    """Episodes with no more than MOST_OUTCOMES ways in which all of them may have ended."""
    made, ways, n = [], [], 1
    for _ in range(14):
        record = random_record(rng, options)
        states = possible_states(record, options)
        if n * len(states) <= MOST_OUTCOMES:
            made.append(record)
            ways.append(states)
            n *= len(states)
    return made, ways


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("seed", range(30))
def test_bounds_are_the_extremes_over_every_outcome_where_arms_may_be_left_out(options, seed):
    made, ways = small_run(random.Random(seed), options)
    found = table_of(made, options)
    seen: dict[str, list[float]] = {}
    for states in itertools.product(*ways):
        for name, value in plain_metrics(list(states), options).items():
            seen.setdefault(name, []).append(value)
    checked = 0
    for name in found.keys() & seen.keys():
        estimate, outcomes = found[name], (min(seen[name]), max(seen[name]))
        expected = (min(outcomes[0], estimate.value), max(outcomes[1], estimate.value))
        assert (estimate.bounds or (estimate.value, estimate.value)) == pytest.approx(expected), name
        checked += 1
    assert checked >= 4


# --- the same, one by one


def test_an_arm_whose_feedback_was_given_is_counted_whatever_its_reply_would_have_been():
    options = LoopOptions(arms=("detail", "reask"), leak_guard="rewrite")
    given = {"told": {"detail": [feedback(CLEAN)]}}
    run = [
        loop("A", "B", {"detail": ["A"], "reask": ["A"]}, **given),
        loop("A", "B", {"detail": ["failed"], "reask": ["B"]}, **given),  # -1 or 0, and in for sure
    ]
    found = table_of(run, options)
    assert found["difference.detail-reask"].bounds == pytest.approx((-1 / 2, 0))
    assert (found["n_leak_dropped.detail"].value, found["n_leak_dropped.detail"].bounds) == (0, None)


def test_another_arm_that_may_be_left_out_widens_nothing_here():
    options = LoopOptions(arms=("simple", "mismatched"), max_rounds=2)
    run = [
        loop("A", "B", {"simple": ["A", "B"], "mismatched": ["no_partner"]}),
        loop("A", "B", {"simple": ["A", "failed"], "mismatched": ["no_partner"]}),
    ]
    found = table_of(run, options)
    assert found["correction_rate.simple.round1"].bounds == (0, 0)
    assert found["correction_rate.simple.round2"].bounds == pytest.approx((1 / 2, 1))
    assert "correction_rate.mismatched" not in found


def test_what_was_left_out_on_purpose_is_not_unscored():
    options = LoopOptions(arms=("detail", "mismatched"), leak_guard="rewrite")
    told = {"detail": [feedback(STATED, draft=STATED)]}
    run = [
        loop("A", "B", {"detail": ["leak_dropped"], "mismatched": ["no_partner"]}, told=told),
        loop("A", "B", {"detail": ["B"], "mismatched": ["A"]}, told={"detail": [feedback(CLEAN)]}),
    ]
    found = table_of(run, options)
    assert all(estimate.unscored == 0 and estimate.bounds is None for estimate in found.values())
    assert found["correction_rate.detail"].n == 1
