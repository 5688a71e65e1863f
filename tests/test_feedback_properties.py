"""What holds for every run of a feedback loop with controls: checked on random runs against a second formulation."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.records import EpisodeRecord
from tests.feedback_records import (
    ALL_ARMS,
    CLEAN,
    OPTIONS,
    PLACEBO,
    STATED,
    LoopOptions,
    feedback,
    loop,
    summaries_of,
    table_of,
)

SHARED = ("simple", "reask")
SETTINGS = [
    LoopOptions(arms=ALL_ARMS, flip_sample=9),
    LoopOptions(arms=("detail", "simple"), flip_sample=9, max_rounds=3),
    LoopOptions(arms=ALL_ARMS, flip_sample=9, providers=("p", "q"), max_rounds=2),
    LoopOptions(arms=("detail", "mismatched"), providers=("p", "q", "r"), leak_guard="rewrite", max_rounds=2),
    LoopOptions(arms=("detail", "reask"), leak_guard="rewrite", flip_sample=9),
]


@dataclass(frozen=True, kw_only=True)
class Truth:
    """An episode as it was before any call failed."""

    first: str | None
    solves: Mapping[str, str | None]
    """Label -> the provider's try; empty where it was not asked."""
    arms: Mapping[str, tuple[object, ...]]
    """Branch -> answers, or a last "leak_dropped" or "no_partner"."""
    told: Mapping[str, tuple[object, ...]]
    flip: bool
    n_options: int


def random_truth(rng: random.Random, options: LoopOptions) -> Truth:
    letters = list(OPTIONS)[: rng.choice([3, 4])]
    first = rng.choices([*letters, None], weights=[*[3] * len(letters), 1])[0]
    flip = first == "B" and options.flip_sample > 0 and rng.random() < 0.8
    asked = flip or first not in ("B", None)
    labels = options.providers or ("",)
    solves = {label: rng.choices(["B", "A", None], weights=[6, 2, 1])[0] for label in labels} if asked else {}
    arms, told = {}, {}
    for branch in branches_of(options, [label for label, answer in solves.items() if answer == "B"]):
        arms[branch], told[branch] = random_branch(rng, branch, letters, 1 if flip else options.max_rounds, options)
    return Truth(first=first, solves=solves, arms=arms, told=told, flip=flip, n_options=len(letters))


def branches_of(options: LoopOptions, able: list[str]) -> list[str]:
    if not options.providers:
        return list(options.arms) if able else []
    shared = [arm for arm in options.arms if arm in SHARED and able]
    return shared + [f"{arm}@{label}" for arm in options.arms if arm not in SHARED for label in able]


def random_branch(rng, branch, letters, max_rounds, options):
    answers, told = [], []
    if branch.startswith("mismatched") and rng.random() < 0.2:
        return ("no_partner",), ()
    guarded = branch.startswith("detail")
    while len(answers) < max_rounds and (not answers or answers[-1] != "B"):
        leak = rng.choices([CLEAN, STATED, PLACEBO], weights=[4, 2, 1])[0] if guarded else None
        rewrites = options.leak_guard == "rewrite" and leak is STATED
        second = rng.choice([CLEAN, STATED])
        told.append(feedback(second, draft=leak) if rewrites else feedback(leak))
        if rewrites and second is STATED:
            return (*answers, "leak_dropped"), tuple(told)
        answers.append(rng.choice([*letters, "B", None]))
    return tuple(answers), tuple(told)


def record_of(truth: Truth, **fields) -> EpisodeRecord:
    options = dict(list(OPTIONS.items())[: truth.n_options])
    given = {"told": truth.told, "flip": truth.flip, "options": options}
    return loop(truth.first, truth.solves, truth.arms, **given, **fields)


def truths(seed: int, size: int, options: LoopOptions) -> list[Truth]:
    rng = random.Random(seed)
    return [random_truth(rng, options) for _ in range(size)]


# --- the formulas, written down a second time


def expected_of(runs: list[Truth], options: LoopOptions) -> dict[str, float]:
    """Every metric of a run without failures."""
    found: dict[str, tuple[float, float]] = {}
    n, right = len(runs), [t for t in runs if t.first == "B"]
    found |= {"accuracy": (len(right), n), "n": (n, 1), "n_failed": (0, 1), "n_negative": (n - len(right), 1)}
    found["n_invalid"] = (sum(t.first is None for t in runs), 1)
    for label in options.providers or ("",):
        for name, (top, bottom) in expected_with(runs, options, label).items():
            found[f"{name}@{label}" if label else name] = (top, bottom)
    for arm, (p, q) in itertools.product(options.arms, itertools.combinations(options.providers, 2)):
        if arm not in SHARED:
            both = [(t.arms[f"{arm}@{p}"], t.arms[f"{arm}@{q}"]) for t in runs if in_test(t, p) and in_test(t, q)]
            found[f"same_answer_rate.{arm}@{p}-{arm}@{q}"] = same(both)
    values = {name: top / bottom for name, (top, bottom) in found.items() if bottom}
    for name in [name for name in values if name.startswith("flip_rate.")]:
        arm, _, label = name.removeprefix("flip_rate.").partition("@")
        end = f"@{label}" if label else ""
        corrected = values.get(f"correction_rate.{arm}{'.round1' if options.max_rounds > 1 else ''}{end}")
        if corrected is not None:
            values[f"discrimination.{arm}{end}"] = corrected - values[name]
    return values


def in_test(truth: Truth, label: str) -> bool:
    return truth.first not in ("B", None) and truth.solves.get(label) == "B"


def out(answers) -> bool:
    return answers[-1] in ("leak_dropped", "no_partner")


def same(pairs) -> tuple[int, int]:
    kept = [(one[0], other[0]) for one, other in pairs if not out(one) and not out(other)]
    return sum(a is not None and a == b for a, b in kept), len(kept)


def expected_with(runs, options, label):
    tests, n = [t for t in runs if in_test(t, label)], len(runs)
    flips = [t for t in runs if t.flip and t.solves[label] == "B"]
    right = sum(t.first == "B" for t in runs)
    asked = sum(t.first not in ("B", None) for t in runs)

    def played(truth, arm):
        return truth.arms.get(f"{arm}@{label}", truth.arms.get(arm))

    found = {"n_test": (len(tests), 1), "provider_solve_rate_on_negatives": (len(tests), asked)}
    found["elimination_floor"] = (sum(min(1, options.max_rounds / (t.n_options - 1)) for t in tests), len(tests))
    for arm in options.arms:
        kept = [played(t, arm) for t in tests if not out(played(t, arm))]
        solved = sum("B" in answers for answers in kept)
        found[f"correction_rate.{arm}"] = (solved, len(kept))
        found[f"accuracy_after.{arm}"] = (right + solved, n)
        found[f"correction_rate_on_negatives.{arm}"] = (solved, n - right)
        if options.max_rounds > 1:
            for r in range(options.max_rounds):
                solved_there = sum(a[r : r + 1] == ("B",) for a in kept)
                found[f"correction_rate.{arm}.round{r + 1}"] = (solved_there, len(kept))
                found[f"correction_rate.{arm}.within{r + 1}"] = (sum("B" in a[: r + 1] for a in kept), len(kept))
                found[f"n_solved.{arm}.round{r + 1}"] = (solved_there, 1)
            found[f"n_solved.{arm}.never"] = (len(kept) - solved, 1)
        again = [played(t, arm)[0] == t.first for t in tests if not out(played(t, arm))]
        found[f"repeat_rate.{arm}"] = (sum(again), len(again))
        if options.flip_sample:
            tried = [played(t, arm)[0] != "B" for t in flips if not out(played(t, arm))]
            found |= {"n_flip": (len(flips), 1), f"flip_rate.{arm}": (sum(tried), len(tried))}
        if arm == "detail":
            found |= expected_leaks(tests, options, label)
    for one, other in itertools.combinations(options.arms, 2):
        pairs = [(played(t, one), played(t, other)) for t in tests]
        kept = [pair for pair in pairs if not any(map(out, pair))]
        found[f"difference.{one}-{other}"] = (sum(("B" in a) - ("B" in b) for a, b in kept), len(kept))
        found[f"same_answer_rate.{one}-{other}"] = same(pairs)
    for name, arms in (("net_content_effect", "detail-mismatched"), ("net_bit_effect", "simple-reask")):
        if f"difference.{arms}" in found:
            found[name] = found[f"difference.{arms}"]
    return found


def expected_leaks(tests, options, label):
    branch = f"detail@{label}" if label else "detail"
    firsts = [(t.told[branch][0].draft or t.told[branch][0]).leak for t in tests]
    found = {"leak_rate.detail": (sum(leak.found is not None for leak in firsts), len(firsts))}
    found["leak_placebo_rate.detail"] = (sum(leak.placebo is not None for leak in firsts), len(firsts))
    if options.leak_guard == "rewrite":
        found["n_leak_dropped.detail"] = (sum(t.arms[branch][-1] == "leak_dropped" for t in tests), 1)
        found["n_rewritten.detail"] = (sum(any(f.draft for f in t.told[branch]) for t in tests), 1)
    return found


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("seed", range(12))
def test_all_metrics_equal_a_second_formulation(options, seed):
    runs = truths(seed, 1 + 7 * seed, options)
    found = table_of([record_of(truth) for truth in runs], options)
    expected = expected_of(runs, options)
    assert found.keys() == expected.keys()
    assert {name: e.value for name, e in found.items()} == pytest.approx(expected)
    assert all(estimate.unscored == 0 and estimate.bounds is None for estimate in found.values())


# --- calls that fail


def hidden(truth: Truth, rng: random.Random, share: float) -> EpisodeRecord:
    """The record where some calls failed, and what came after them never was."""
    if not truth.flip and rng.random() < share:
        return record_of(replace(truth, first="failed", solves={}, arms={}, told={}))
    solves = {label: "failed" if rng.random() < share else answer for label, answer in truth.solves.items()}
    able = [label for label, answer in solves.items() if answer == "B"]
    arms = {}
    for branch, answers in truth.arms.items():
        label = branch.partition("@")[2]
        lost = label not in solves and not able if "" not in solves else not able
        if lost or (label and solves[label] == "failed") or rng.random() < share / 2:
            continue  # nobody to write it, or the run was killed before it
        cut = next((i for i in range(len(answers)) if rng.random() < share), None)
        if cut is None:
            arms[branch] = answers
        elif answers[cut] != "no_partner":
            arms[branch] = (*answers[:cut], rng.choice(["failed", "feedback_failed"]))
    told = {branch: truth.told[branch][: len(arms[branch])] for branch in arms}
    for branch, answers in arms.items():
        if answers[-1] == "feedback_failed":  # nobody knows whether it would have leaked
            told[branch] = (*told[branch][: len(answers) - 1], feedback())
        elif answers[-1] == "failed" and told[branch][-1].draft is not None and told[branch][-1].leak is STATED:
            arms[branch] = truth.arms[branch]  # it was dropped: no reply was asked for
            told[branch] = truth.told[branch]
    return record_of(replace(truth, solves=solves, arms=arms, told=told))


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("seed", range(25))
def test_bounds_hold_what_would_have_come_out_without_failures(options, seed):
    runs = truths(100 + seed, 6 + seed, options)
    rng = random.Random(seed)
    whole = table_of([record_of(truth) for truth in runs], options)
    broken = table_of([hidden(truth, rng, 0.02 + 0.01 * seed) for truth in runs], options)
    for name, estimate in broken.items():
        if name == "n_failed":
            continue
        assert (estimate.unscored == 0) == (estimate.bounds is None), name
        low, high = estimate.bounds or (estimate.value, estimate.value)
        assert low - 1e-12 <= estimate.value <= high + 1e-12, name
        if name in whole:
            assert low - 1e-12 <= whole[name].value <= high + 1e-12, (name, estimate, whole[name])
    assert broken.keys() <= whole.keys()


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("seed", range(6))
def test_a_table_needs_neither_order_nor_objects_and_contributions_say_the_same(options, seed):
    rng = random.Random(seed)
    chosen = FeedbackLoopMetrics(options)
    rows = summaries_of([hidden(truth, rng, 0.1) for truth in truths(seed, 40, options)], options)
    rows = [{**row, "cluster": f"p{row['doc_id'] // 3}"} for row in rows]
    found = chosen.table(rows)
    shuffled = rng.sample(rows, k=len(rows))
    assert chosen.table(json.loads(json.dumps(shuffled))) == found
    given: dict[str, list[float]] = {}
    for row in rows:
        for name, value in chosen.contributions(row).items():
            given.setdefault(name, []).append(value)
    assert given.keys() == {name for name in found if not name.startswith("discrimination.")}
    for name, own in given.items():
        if found[name].method == "count":
            assert (sum(own), len(own)) == (found[name].value, len(rows)), name
        else:
            assert len(own) == found[name].n, name
            assert sum(own) / len(own) == pytest.approx(found[name].value), name


@pytest.mark.parametrize("seed", range(3))
def test_intervals_hold_their_value_and_stay_in_range(seed):
    options = SETTINGS[2]
    rows = summaries_of([record_of(truth) for truth in truths(seed, 60, options)], options)
    for clustered in (rows, [{**row, "cluster": f"p{row['doc_id'] // 4}"} for row in rows]):
        for name, estimate in FeedbackLoopMetrics(options).table(clustered).items():
            if estimate.method == "count":
                continue
            least = -1 if name.startswith(("difference", "net", "discrimination")) else 0
            assert least <= estimate.ci95.low <= estimate.value + 1e-9, name
            assert estimate.value - 1e-9 <= estimate.ci95.high <= 1, name
