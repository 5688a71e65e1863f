"""Control metrics of the feedback loop: golden tables by hand, who is counted, several providers, the headline."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.metrics.closed_forms import newcombe, student, wilson
from interbench_tasks.metrics.feedback_names import COUNTS
from interbench_tasks.metrics.feedback_summary import normalised
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.records import EpisodeRecord
from tests.feedback_records import (
    ALL_ARMS,
    CLEAN,
    CONTROLLED,
    NO_DECOY,
    OPTIONS,
    PLACEBO,
    SEVERAL,
    STATED,
    LoopOptions,
    feedback,
    loop,
    summaries_of,
    table_of,
)

ROOT = Path(__file__).resolve().parents[1]
FIVE = {**OPTIONS, "E": "emu"}


def shown(found, *names):
    """Name -> (value, n, unscored) of the metrics that are defined."""
    return {n: (found[n].value, found[n].n, found[n].unscored) for n in names if n in found}


# --- a small run, computed by hand

RUN = [
    # First A everywhere; target B. Columns: detail, simple, reask, mismatched.
    loop("A", "B", {"detail": ["B"], "simple": ["B"], "reask": ["A"], "mismatched": ["A"]}),
    loop("A", "B", {"detail": ["B"], "simple": ["C"], "reask": ["C"], "mismatched": ["B"]}, options=FIVE),
    loop("A", "B", {"detail": ["A"], "simple": ["A"], "reask": ["B"], "mismatched": [None]}),
    loop("A", "B", {"detail": ["B"], "simple": [None], "reask": [None], "mismatched": ["D"]}, options=FIVE),
    loop("A", "C"),  # outside the test set
    loop(None),  # invalid
    loop("B"),  # right, not sampled
    # The flip set: 2 of 3 sampled, because the provider fails the last.
    loop("B", "B", {"detail": ["B"], "simple": ["A"], "reask": ["B"], "mismatched": [None]}, flip=True),
    loop("B", "B", {"detail": ["C"], "simple": ["D"], "reask": ["B"], "mismatched": ["B"]}, flip=True),
    loop("B", "D", flip=True),
]


def test_a_small_run_with_all_controls_gives_these_numbers():
    found = table_of(RUN, CONTROLLED)
    values = {name: estimate.value for name, estimate in found.items()}
    assert values == {
        "accuracy": 4 / 10,
        "accuracy_after.detail": (4 + 3) / 10,
        "accuracy_after.simple": (4 + 1) / 10,
        "accuracy_after.reask": (4 + 1) / 10,
        "accuracy_after.mismatched": (4 + 1) / 10,
        "correction_rate.detail": 3 / 4,
        "correction_rate.simple": 1 / 4,
        "correction_rate.reask": 1 / 4,
        "correction_rate.mismatched": 1 / 4,
        "correction_rate_on_negatives.detail": 3 / 6,
        "correction_rate_on_negatives.simple": 1 / 6,
        "correction_rate_on_negatives.reask": 1 / 6,
        "correction_rate_on_negatives.mismatched": 1 / 6,
        "provider_solve_rate_on_negatives": 4 / 5,
        "difference.detail-simple": 2 / 4,
        "difference.detail-reask": 2 / 4,
        "difference.detail-mismatched": 2 / 4,
        "difference.simple-reask": 0.0,
        "difference.simple-mismatched": 0.0,
        "difference.reask-mismatched": 0.0,
        "net_content_effect": 2 / 4,
        "net_bit_effect": 0.0,
        # Options 4, 5, 4, 5, one round: (1/3 + 1/4 + 1/3 + 1/4) / 4.
        "elimination_floor": pytest.approx(7 / 24),
        # A again: detail in the 3rd; simple in the 3rd; reask in the 1st; mismatched in the 1st.
        "repeat_rate.detail": 1 / 4,
        "repeat_rate.simple": 1 / 4,
        "repeat_rate.reask": 1 / 4,
        "repeat_rate.mismatched": 1 / 4,
        # Rows BBAA, BCCB, AAB-, B--D: the same letter in both, unreadable equals nothing.
        "same_answer_rate.detail-simple": 2 / 4,
        "same_answer_rate.detail-reask": 0.0,
        "same_answer_rate.detail-mismatched": 1 / 4,
        "same_answer_rate.simple-reask": 1 / 4,
        "same_answer_rate.simple-mismatched": 0.0,
        "same_answer_rate.reask-mismatched": 1 / 4,
        "flip_rate.detail": 1 / 2,
        "flip_rate.simple": 2 / 2,
        "flip_rate.reask": 0.0,
        "flip_rate.mismatched": 1 / 2,
        "discrimination.detail": 3 / 4 - 1 / 2,
        "discrimination.simple": 1 / 4 - 1,
        "discrimination.reask": 1 / 4,
        "discrimination.mismatched": 1 / 4 - 1 / 2,
        "n": 10,
        "n_negative": 6,
        "n_test": 4,
        "n_invalid": 1,
        "n_failed": 0,
        "n_flip": 2,
    }
    assert list(values) == list(
        {name: None for name in (*FeedbackLoopMetrics(CONTROLLED)._names, *COUNTS, "n_flip") if name in values}
    )
    assert all(estimate.unscored == 0 and estimate.bounds is None for estimate in found.values())


def test_the_intervals_of_that_run_are_the_closed_forms():
    found = table_of(RUN, CONTROLLED)
    detail = found["discrimination.detail"]
    assert (detail.method, detail.ci95, detail.n, detail.count) == ("newcombe", newcombe(3, 4, 1, 2), 6, None)
    assert (found["flip_rate.simple"].method, found["flip_rate.simple"].ci95) == ("wilson", wilson(2, 2))
    assert found["repeat_rate.reask"].ci95 == wilson(1, 4)
    assert found["net_content_effect"].method == "paired_agresti_min"
    floor = found["elimination_floor"]
    # 1/3, 1/4, 1/3, 1/4: all 1/24 from the mean, so the variance is 4 * (1/24)^2 / 3.
    expected = student(7 / 24, (4 / 3) ** 0.5 / 24, 4)
    assert (floor.method, floor.ci95, floor.count) == ("t", pytest.approx(expected), None)


def test_in_clusters_all_control_metrics_are_bootstrapped():
    rows = [{**row, "cluster": f"p{row['doc_id'] % 3}"} for row in summaries_of(RUN * 8, CONTROLLED)]
    found = FeedbackLoopMetrics(CONTROLLED).table(rows)
    for name in ("discrimination.detail", "flip_rate.detail", "repeat_rate.detail", "elimination_floor"):
        assert found[name].method == "cluster_bootstrap", name
        assert found[name].ci95.low <= found[name].value <= found[name].ci95.high


def test_a_clone_of_each_problem_is_no_new_information():
    """Rows twice in one cluster: the same intervals as once, up to what a bootstrap differs from a formula."""
    once = table_of(RUN * 30, CONTROLLED)
    rows = summaries_of(RUN * 30, CONTROLLED)
    twice = [{**row, "repeat": repeat} for row in rows for repeat in (0, 1)]
    found = FeedbackLoopMetrics(CONTROLLED).table(twice)
    for name in ("discrimination.detail", "difference.detail-simple", "flip_rate.detail", "elimination_floor"):
        assert found[name].method == "cluster_bootstrap"
        assert found[name].ci95 == pytest.approx(once[name].ci95, abs=0.02), name


# --- the floor


@pytest.mark.parametrize(
    ("n_options", "rounds", "floor"), [(2, 1, 1.0), (3, 1, 0.5), (4, 1, 1 / 3), (4, 2, 2 / 3), (4, 3, 1.0), (4, 5, 1.0)]
)
def test_the_floor_is_what_ruling_out_one_option_a_round_gives(n_options, rounds, floor):
    options = dict(list(FIVE.items())[:n_options])
    arms = {arm: ["A"] * rounds for arm in ALL_ARMS}
    made = table_of([loop("A", "B", arms, options=options)] * 3, replace(CONTROLLED, max_rounds=rounds))
    found = made["elimination_floor"]
    assert (found.value, found.method, found.ci95) == (pytest.approx(floor), "constant", pytest.approx((floor, floor)))


def test_the_floor_counts_multiple_choice_only():
    free = loop("1", "2", {arm: ["2"] for arm in ALL_ARMS}, target="2", options={})
    choice = loop("A", "B", {arm: ["B"] for arm in ALL_ARMS})
    assert "elimination_floor" not in table_of([free], CONTROLLED)
    assert table_of([free, choice], CONTROLLED)["elimination_floor"].n == 1


def test_the_floors_bounds_know_the_options_of_what_may_be_in_the_test_set():
    arms = {arm: ["B"] for arm in ALL_ARMS}
    known, hidden = loop("A", "B", arms), [loop("failed", options=FIVE), loop("A", "failed", options={})]
    found = table_of([known, *hidden], CONTROLLED)["elimination_floor"]
    # The failed one's five options may pull the mean to (1/3 + 1/4) / 2, or be out; free-form is out for sure.
    assert (found.n, found.unscored) == (1, 1)
    assert found.bounds == pytest.approx((7 / 24, 1 / 3))


def test_of_what_was_never_played_nobody_knows_the_floor():
    known = loop("A", "B", {arm: ["B"] for arm in ALL_ARMS})
    unplayed = replace(loop("failed"), status="skipped", target="", options={}, turns=(), ends=())
    found = table_of([known, unplayed], CONTROLLED)
    assert (found["elimination_floor"].n, found["elimination_floor"].unscored) == (1, 1)
    assert found["repeat_rate.simple"].unscored == 1


def test_of_several_that_may_be_in_the_test_set_any_may_be_out():
    options = LoopOptions(arms=("simple", "reask"))
    known = loop("A", "B", {"simple": ["B"], "reask": ["A"]})
    hidden = [loop("failed", options=FIVE), loop("A", "failed", options={"A": "?", "B": "!", "C": "."})]
    found = table_of([known, *hidden], options)["elimination_floor"]
    # 1/3 is known; 1/4 alone makes it least, 1/2 alone most.
    assert found.bounds == pytest.approx(((1 / 3 + 1 / 4) / 2, (1 / 3 + 1 / 2) / 2))


# --- the same answer?


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x = 3", "X=3", True),
        ("$12$", "12.", True),
        ("\uff11\uff12", "12", True),  # full width
        ("1/2", "0.5", False),  # equal in value: told apart, a lower bound
        ("1,000", "1000", False),
        ("12", "13", False),
        (None, None, False),
        ("failed", "12", None),
    ],
)
def test_free_form_answers_are_compared_as_texts(one, other, same):
    options = LoopOptions(arms=("simple", "reask"))
    made = loop("7", "99", {"simple": [one], "reask": [other]}, target="99", options={})
    found = table_of([made], options).get("same_answer_rate.simple-reask")
    assert (None if found is None else bool(found.value)) is same


def test_right_answers_are_the_same_however_they_are_written():
    made = loop("7", "99", {"simple": ["99"], "reask": ["99"]}, target="99", options={})
    spelt = made.turns[-1].judgement
    other = replace(spelt, extraction=replace(spelt.extraction, answer="ninety-nine"))
    made = replace(made, turns=(*made.turns[:-1], replace(made.turns[-1], judgement=other)))
    options = LoopOptions(arms=("simple", "reask"))
    assert table_of([made], options)["same_answer_rate.simple-reask"].value == 1.0
    wrong = replace(spelt, correct=False)
    made = replace(made, turns=(*made.turns[:-1], replace(made.turns[-1], judgement=wrong)))
    assert table_of([made], options)["same_answer_rate.simple-reask"].value == 0.0


def test_option_letters_are_compared_exactly():
    made = loop("A", "B", {"simple": ["a"], "reask": ["A"]})  # "a" is no option: a text
    found = table_of([made], LoopOptions(arms=("simple", "reask")))
    assert found["same_answer_rate.simple-reask"].value == 0.0
    assert (found["repeat_rate.simple"].value, found["repeat_rate.reask"].value) == (0.0, 1.0)


def test_answers_are_compared_before_they_are_cut():
    long = "x" * 5000
    made = loop(long + "1", "B", {"simple": [long + "1"], "reask": [long + "2"]}, options={})
    (summary,) = summaries_of([made], LoopOptions(arms=("simple", "reask")))
    assert summary["first"]["answer"] == summary["arms"]["reask"]["rounds"][0]["answer"]
    found = table_of([made], LoopOptions(arms=("simple", "reask")))
    assert (found["repeat_rate.simple"].value, found["repeat_rate.reask"].value) == (1.0, 0.0)


def test_only_round_1_says_whether_an_answer_is_repeated():
    options = LoopOptions(arms=("simple", "reask"), max_rounds=3)
    made = loop("A", "B", {"simple": ["C", "A", "A"], "reask": ["C", "failed"]})
    found = table_of([made], options)
    assert found["repeat_rate.simple"].value == 0.0
    assert shown(found, "same_answer_rate.simple-reask") == {"same_answer_rate.simple-reask": (1.0, 1, 0)}
    assert "correction_rate.reask" not in found, "it failed in round 2"


def test_normalising_leaves_something():
    assert normalised("$") == "$"
    assert normalised(" 5 cm. ") == "5cm"


# --- failures, dropped arms, killed runs


def test_failures_and_drops_are_counted_where_the_table_says():
    options = LoopOptions(arms=("detail", "mismatched"), flip_sample=1, leak_guard="rewrite")
    leaked = {"detail": [feedback(STATED, draft=STATED)]}
    run = [
        loop("A", "B", {"detail": ["B"], "mismatched": ["A"]}, told={"detail": [feedback(CLEAN)]}),
        loop("A", "B", {"detail": ["leak_dropped"], "mismatched": ["B"]}, told=leaked),
        loop("A", "B", {"detail": ["A"], "mismatched": ["no_partner"]}, told={"detail": [feedback(CLEAN)]}),
        loop("A", "B", {"detail": ["B"]}, told={"detail": [feedback(CLEAN, draft=STATED)]}),  # killed: no 2nd pass
        loop("A", "B", {"detail": ["feedback_failed"], "mismatched": ["failed"]}),
        loop("A", "failed"),
        loop("failed"),
        loop("B", "B", {"detail": ["leak_dropped"], "mismatched": ["B"]}, told=leaked, flip=True),
        loop("B", "B", {"detail": ["A"], "mismatched": ["no_partner"]}, flip=True),
        loop("B", "B", {"detail": ["feedback_failed"], "mismatched": ["failed"]}, flip=True),
        loop("B", "failed", flip=True),
    ]
    found = table_of(run, options)
    assert shown(
        found,
        *("correction_rate.detail", "correction_rate.mismatched", "net_content_effect"),
        *("accuracy_after.detail", "correction_rate_on_negatives.detail", "accuracy_after.mismatched"),
        *("repeat_rate.detail", "repeat_rate.mismatched", "same_answer_rate.detail-mismatched"),
        *("flip_rate.detail", "flip_rate.mismatched", "discrimination.detail", "discrimination.mismatched"),
    ) == {
        # detail: right, dropped, wrong, right, failed, unknown, failed
        "correction_rate.detail": (2 / 3, 3, 3),
        # mismatched: wrong, right, nobody, killed, failed, unknown, failed
        "correction_rate.mismatched": (1 / 2, 2, 4),
        "net_content_effect": (1.0, 1, 4),  # only the first row has both; rows 2 and 3 are known to be out
        "accuracy_after.detail": (6 / 8, 8, 3),  # 4 right, 2 corrected, the dropped and the wrong one not
        "correction_rate_on_negatives.detail": (2 / 4, 4, 3),
        "accuracy_after.mismatched": (5 / 7, 7, 4),
        "repeat_rate.detail": (1 / 3, 3, 3),
        "repeat_rate.mismatched": (1 / 2, 2, 4),
        "same_answer_rate.detail-mismatched": (0.0, 1, 4),
        "flip_rate.detail": (1.0, 1, 2),
        "flip_rate.mismatched": (0.0, 1, 2),
        "discrimination.detail": (2 / 3 - 1, 4, 5),
        "discrimination.mismatched": (1 / 2, 3, 6),
    }
    counts = {name: (e.value, e.bounds) for name, e in found.items() if e.method == "count"}
    assert counts == {
        "n": (11, None),
        "n_negative": (6, (6, 7)),
        "n_test": (5, (5, 7)),
        "n_invalid": (0, (0, 1)),
        "n_failed": (1, None),
        "n_flip": (3, (3, 4)),
        "n_leak_dropped.detail": (1, (1, 4)),
        "n_rewritten.detail": (2, (2, 5)),
    }
    # detail 2/3 of 3 with 3 open: 2/6 .. 5/6; flips 1 of 1 with 2 open: 1/3 .. 1.
    assert found["discrimination.detail"].bounds == pytest.approx((2 / 6 - 1, 5 / 6 - 1 / 3))


def test_a_leak_in_a_later_round_drops_the_whole_arm():
    options = LoopOptions(arms=("detail", "reask"), max_rounds=2, leak_guard="rewrite")
    told = {"detail": [feedback(CLEAN), feedback(STATED, draft=STATED)]}
    found = table_of([loop("A", "B", {"detail": ["A", "leak_dropped"], "reask": ["A", "B"]}, told=told)], options)
    assert not [
        n for n in found if n.startswith(("correction_rate.detail", "repeat_rate.detail", "difference", "same"))
    ]
    assert found["accuracy_after.detail"].value == found["correction_rate_on_negatives.detail"].value == 0.0
    assert found["leak_rate.detail"].value == 0.0, "of round 1"
    assert (found["n_leak_dropped.detail"].value, found["n_rewritten.detail"].value) == (1, 1)


def test_what_is_half_known_may_still_turn_out_to_be_dropped():
    options = LoopOptions(arms=("detail", "reask"), leak_guard="rewrite")
    run = [
        loop("A", "B", {"detail": ["A"], "reask": ["A"]}),  # 0
        loop("A", "B", {"detail": ["feedback_failed"], "reask": ["A"]}),  # 0 or 1, or dropped
        loop("A", "failed"),  # -1 to 1, or outside the test set
    ]
    assert table_of(run, options)["difference.detail-reask"].bounds == pytest.approx((-1 / 2, 2 / 3))
    observed = table_of(run, replace(options, leak_guard="observe"))
    assert observed["difference.detail-reask"].bounds == pytest.approx((-1 / 3, 2 / 3)), "then nothing is dropped"


def test_an_unreadable_answer_to_feedback_on_a_right_one_is_a_flip():
    found = table_of([loop("B", "B", {"detail": [None], "simple": ["B"]}, flip=True)], LoopOptions(flip_sample=1))
    assert (found["flip_rate.detail"].value, found["flip_rate.simple"].value) == (1.0, 0.0)
    assert found["accuracy_after.detail"].value == 1.0, "being asked again is a control, not the protocol"


def test_a_flip_sample_that_found_nothing_leaves_its_metrics_undefined():
    found = table_of([loop("B", "D", flip=True), loop("A", "B", {"detail": ["B"], "simple": ["A"]})], CONTROLLED)
    assert found["n_flip"].value == 0
    assert not [name for name in found if name.startswith(("flip_rate", "discrimination"))]


def test_with_several_rounds_discrimination_is_about_round_1():
    options = replace(CONTROLLED, max_rounds=2, arms=("detail", "reask"))
    run = [
        loop("A", "B", {"detail": ["A", "B"], "reask": ["A", "A"]}),
        loop("A", "B", {"detail": ["B"], "reask": ["B"]}),
        loop("A", "B", {"detail": ["A", "failed"], "reask": ["B"]}),
        loop("B", "B", {"detail": ["B"], "reask": ["A"]}, flip=True),
    ]
    found = table_of(run, options)
    assert found["correction_rate.detail"].value == 1.0
    assert found["correction_rate.detail.round1"].value == found["discrimination.detail"].value == 0.5
    assert found["discrimination.reask"].value == pytest.approx(2 / 3 - 1)


# --- leaks


def test_leaks_are_counted_over_what_the_guard_looked_at():
    told = [CLEAN, STATED, STATED, PLACEBO, NO_DECOY, None]
    run = [loop("A", "B", {"detail": ["B"], "simple": ["A"]}, told={"detail": [feedback(leak)]}) for leak in told]
    run += [
        loop("A", "B", {"detail": ["failed"], "simple": ["A"]}, told={"detail": [feedback(STATED)]}),
        loop("A", "B", {"detail": ["feedback_failed"], "simple": ["A"]}),
        loop("A", "failed"),
        loop("A", "D"),
    ]
    found = table_of(run, LoopOptions())
    assert shown(found, "leak_rate.detail", "leak_placebo_rate.detail", "leak_rate.simple") == {
        "leak_rate.detail": (3 / 6, 6, 2),  # the reply to the last one failed, but its feedback was seen
        "leak_placebo_rate.detail": (1 / 5, 5, 2),
    }
    assert not [name for name in found if name.startswith(("n_leak", "n_rewritten"))]


def test_with_a_rewrite_the_rate_is_that_of_the_first_text():
    options = LoopOptions(arms=("detail",), leak_guard="rewrite")
    drafted = [feedback(CLEAN, draft=STATED), feedback(STATED, draft=STATED), feedback(CLEAN), feedback(PLACEBO)]
    ends = [["B"], ["leak_dropped"], ["B"], ["A"]]
    run = [loop("A", "B", {"detail": end}, told={"detail": [f]}) for end, f in zip(ends, drafted, strict=True)]
    run.append(loop("A", "B", {"detail": ["feedback_failed"]}, told={"detail": [feedback(draft=STATED)]}))
    found = table_of(run, options)
    assert shown(found, "leak_rate.detail", "leak_placebo_rate.detail", "n_rewritten.detail") == {
        "leak_rate.detail": (3 / 5, 5, 0),
        "leak_placebo_rate.detail": (1 / 5, 5, 0),
        "n_rewritten.detail": (3, 5, 0),
    }


def test_borrowed_feedback_was_looked_at_where_it_was_written():
    told = {"mismatched": [feedback(STATED, source="e9")], "detail": [feedback(CLEAN)]}
    made = loop("A", "B", {"detail": ["A"], "mismatched": ["A"]}, told=told)
    options = LoopOptions(arms=("detail", "mismatched"))
    assert "leak" not in summaries_of([made], options)[0]["arms"]["mismatched"]
    assert "leak_rate.mismatched" not in table_of([made], options)


def test_without_a_guard_there_are_no_leak_rates():
    found = table_of([loop("A", "B", {"detail": ["A"], "simple": ["feedback_failed"]})], LoopOptions(leak_guard="off"))
    assert not [name for name in found if "leak" in name]


# --- several providers


def three(first="A", *, solves="BBB", detail="BBB", simple="A", reask="A", mismatched="AAA", **fields):
    """An episode with the providers p, q, r; a letter a provider, and no branch where it did not solve the question."""
    tries = dict(zip("pqr", solves, strict=True))
    able = [label for label, answer in tries.items() if answer == "B"]
    arms = {f"detail@{label}": [detail["pqr".index(label)]] for label in able}
    arms |= {"simple": [simple], "reask": [reask]} if able else {}
    arms |= {f"mismatched@{label}": [mismatched["pqr".index(label)]] for label in able}
    return loop(first, tries, arms, **fields)


def test_three_providers_have_a_test_set_each():
    run = [
        three(detail="BBA", simple="B"),
        three(solves="BAB", detail="A.B", mismatched="C.A"),
        three(solves="AAA"),
        three("B", detail="BAA", simple="A", reask="B", mismatched="BBB", flip=True),
        three("B", solves="CCB", detail="..B", simple="B", reask="C", mismatched="..B", flip=True),
        loop("B"),
    ]
    found = table_of(run, SEVERAL)
    assert found["accuracy"].value == 0.5
    assert shown(found, *(f"{name}@{label}" for label in "pqr" for name in ("n_test", "n_flip"))) == {
        "n_test@p": (2, 6, 0),
        "n_flip@p": (1, 6, 0),
        "n_test@q": (1, 6, 0),
        "n_flip@q": (1, 6, 0),
        "n_test@r": (2, 6, 0),
        "n_flip@r": (2, 6, 0),
    }
    values = {name: estimate.value for name, estimate in found.items()}
    assert [values[f"correction_rate.detail@{label}"] for label in "pqr"] == [1 / 2, 1.0, 1 / 2]
    # One branch `simple` for all: right in the 1st, wrong in the 2nd, which is in the test sets of p and r.
    assert [values[f"correction_rate.simple@{label}"] for label in "pqr"] == [1 / 2, 1.0, 1 / 2]
    assert [values[f"accuracy_after.detail@{label}"] for label in "pqr"] == [4 / 6, 4 / 6, 4 / 6]
    assert [values[f"provider_solve_rate_on_negatives@{label}"] for label in "pqr"] == [2 / 3, 1 / 3, 2 / 3]
    assert [values[f"flip_rate.detail@{label}"] for label in "pqr"] == [0.0, 1.0, 1 / 2]
    assert [values[f"discrimination.simple@{label}"] for label in "pqr"] == [-1 / 2, 0.0, 0.0]
    assert [values[f"net_bit_effect@{label}"] for label in "pqr"] == [1 / 2, 1.0, 1 / 2]
    assert [values[f"repeat_rate.mismatched@{label}"] for label in "pqr"] == [1 / 2, 1.0, 1.0]
    # Both in the test sets of p and q: the 1st only (B, B); of p and r: the 1st (B, A) and the 2nd (A, B).
    assert shown(found, *(f"same_answer_rate.detail@{a}-detail@{b}" for a, b in ("pq", "pr", "qr"))) == {
        "same_answer_rate.detail@p-detail@q": (1.0, 1, 0),
        "same_answer_rate.detail@p-detail@r": (0.0, 2, 0),
        "same_answer_rate.detail@q-detail@r": (0.0, 1, 0),
    }
    assert values["same_answer_rate.mismatched@p-mismatched@r"] == 1 / 2
    assert "same_answer_rate.simple@p-simple@q" not in found, "they share that arm"
    assert {name for name in found if "@" not in name} == {"accuracy", "n", "n_negative", "n_invalid", "n_failed"}


def test_a_provider_whose_try_failed_is_unscored_and_the_others_are_not():
    arms = {"detail@p": ["B"], "simple": ["A"], "reask": ["A"], "mismatched@p": ["A"]}
    found = table_of([three(), loop("A", {"p": "B", "q": "failed", "r": "A"}, arms)], SEVERAL)
    rates = {label: (e.n, e.unscored) for label in "pqr" for e in [found[f"correction_rate.detail@{label}"]]}
    assert rates == {"p": (2, 0), "q": (1, 1), "r": (1, 0)}
    shared = {label: (e.n, e.unscored) for label in "pqr" for e in [found[f"correction_rate.simple@{label}"]]}
    assert shared == rates, "an arm played for p says nothing about q's test set"
    both = found["same_answer_rate.detail@p-detail@q"]
    assert (both.n, both.unscored, both.bounds) == (1, 1, (0.5, 1.0))
    assert (found["n_test@q"].value, found["n_test@q"].bounds) == (1, (1, 2))


def test_an_arm_that_a_plugin_shares_is_not_compared_with_itself():
    options = LoopOptions(arms=("banner",), providers=("p", "q"))
    found = table_of([loop("A", {"p": "B", "q": "B"}, {"banner": ["B"]})], options)
    assert found["correction_rate.banner@p"].value == found["correction_rate.banner@q"].value == 1.0
    assert not [name for name in found if name.startswith("same_answer_rate")]


def named(record: EpisodeRecord, label: str) -> EpisodeRecord:
    """The record as it would be with several providers of which there is one."""
    shared = ("", "simple", "reask")

    def rename(item):
        return item if item.branch in shared else replace(item, branch=f"{item.branch}@{label}")

    return replace(record, turns=tuple(map(rename, record.turns)), ends=tuple(map(rename, record.ends)))


def test_one_provider_with_a_label_has_the_values_of_one_without():
    plain = table_of(RUN, CONTROLLED)
    labelled = table_of([named(record, "gpt-4o") for record in RUN], replace(CONTROLLED, providers=("gpt-4o",)))
    assert {name.removesuffix("@gpt-4o"): estimate for name, estimate in labelled.items()} == plain
    assert sum(name.endswith("@gpt-4o") for name in labelled) == len(plain) - 5


def test_without_controls_everything_is_as_it_was():
    """One provider, no controls: no new metric, and nothing new in a summary."""
    run = [loop("A", "B", {"detail": ["B"], "simple": ["A"]}), loop("B"), loop(None)]
    summary = summaries_of(run, LoopOptions())[0]
    ids = {"id", "doc_id", "repeat", "category", "cluster", "status", "stop_reason"}
    assert set(summary) == {*ids, "target", "first", "provider", "in_test", "arms", "usage"}
    assert set(summary["first"]) == {"answer", "method", "correct"}
    names = set(table_of(run, LoopOptions()))
    assert not [n for n in names if n.startswith(("repeat", "same", "elim", "net", "flip", "leak", "disc", "n_flip"))]
    assert {n for n in names if n.startswith("n")} == set(COUNTS)
    assert FeedbackLoopMetrics(LoopOptions()).contributions(summary)["difference.detail-simple"] == 1.0


@pytest.mark.parametrize("change", [{"arms": ("simple", "reask")}, {"flip_sample": 1}, {"providers": ("p",)}])
def test_each_kind_of_control_brings_the_control_metrics(change):
    names = FeedbackLoopMetrics(LoopOptions(**change))._names
    assert any(name.startswith("elimination_floor") for name in names)
    assert any(name.startswith("repeat_rate.simple") for name in names)


# --- summaries


@pytest.mark.parametrize("letter", ["x", "<", "é", "🀄"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_summary_of_three_providers_and_four_arms_stays_under_4_kb(letter, rounds):
    wrong, right = letter * 4000, letter * 5000
    branches = [f"{arm}@provider-{i}" for arm in ("detail", "mismatched") for i in range(3)] + ["simple", "reask"]
    labels = tuple(f"provider-{i}" for i in range(3))
    made = loop(
        wrong,
        dict.fromkeys(labels, right),
        {branch: [wrong] * rounds for branch in branches},
        told={branch: [feedback(STATED, draft=STATED)] for branch in branches},
        target=right,
        options={},
        category="geometry",
        cluster="problem 17",
    )
    options = replace(SEVERAL, providers=labels, max_rounds=rounds, leak_guard="rewrite")
    chosen = FeedbackLoopMetrics(options)
    summary = chosen.summary(made)
    assert len(json.dumps(summary).replace("<", "\\u003c").encode()) < 4096
    found = chosen.table([json.loads(json.dumps(summary))])
    assert found["repeat_rate.simple@provider-2"].value == found["leak_rate.detail@provider-1"].value == 1.0


def test_even_ten_rounds_fit_and_lose_no_number():
    labels = ("p", "q", "r")
    branches = [f"{arm}@{label}" for arm in ("detail", "mismatched") for label in labels] + ["simple", "reask"]
    made = loop("A" * 90, dict.fromkeys(labels, "B"), {b: ["C" * 90] * 9 + ["B"] for b in branches}, options={})
    options = replace(SEVERAL, max_rounds=10)
    (summary,) = summaries_of([made], options)
    assert len(json.dumps(summary)) < 4000
    assert summary["arms"]["simple"]["rounds"][0] == {"correct": False, "answer_id": 1}
    found = table_of([made], options)
    assert found["correction_rate.mismatched.round10@q"].value == 1.0
    assert found["same_answer_rate.detail-simple@p"].value == 1.0


def test_a_second_pass_can_be_told_from_a_summary():
    flip, plain = summaries_of([loop("B", "B", {"detail": ["B"]}, flip=True), loop("B")], CONTROLLED)
    assert (flip["passes"], flip["in_flip"], flip["in_test"]) == (2, True, False)
    assert "passes" not in plain
    assert "in_flip" not in plain


# --- the harness's table


THREE_RATES = [f"correction_rate.detail@{label}" for label in "pqr"]


def rows_of(names):
    return sum(1 if name.startswith("n_") or name == "n" else 5 for name in names)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            CONTROLLED,
            ["accuracy", "correction_rate.detail", "correction_rate.simple", "net_content_effect", *COUNTS],
        ),
        (
            LoopOptions(arms=("simple", "reask")),
            ["accuracy", "accuracy_after.simple", "correction_rate.simple", "net_bit_effect", *COUNTS],
        ),
        (
            LoopOptions(flip_sample=9),
            ["accuracy", "correction_rate.detail", "correction_rate.simple", "discrimination.detail", *COUNTS],
        ),
        (
            SEVERAL,
            ["accuracy", *THREE_RATES, "n", "n_test@p", "n_test@q", "n_test@r", "n_invalid"],
        ),
        (
            LoopOptions(providers=("p", "q")),
            ["accuracy", *THREE_RATES[:2], "n", "n_negative", "n_test@p", "n_test@q", "n_invalid", "n_failed"],
        ),
        (
            LoopOptions(providers=tuple("pqrst")),
            ["accuracy", *THREE_RATES, "n", "n_test@p", "n_test@q", "n_test@r", "n_test@s"],
        ),
    ],
    ids=["controls", "reask", "flips", "three", "two", "five"],
)
def test_the_headline_has_what_a_reader_needs_first(options, expected):
    chosen = FeedbackLoopMetrics(options)
    names = [*chosen._names, *chosen._counts]
    assert chosen.headline(names) == expected
    assert "n" in expected, "the harness has that row in any case"
    assert rows_of(expected) <= 25
    assert chosen.headline(names[1:]) == expected[1:], "it does not depend on what is defined"


# --- speed


def test_a_large_run_takes_seconds(monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_metrics", ROOT / "scripts" / "bench_metrics.py")
    bench = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, bench)
    spec.loader.exec_module(bench)
    options = bench.ControlledOptions()
    chosen = FeedbackLoopMetrics(options)
    rows = [chosen.summary(record) for record in bench.Maker(options).records(bench.N)]
    started = time.process_time()
    found = chosen.table(rows)
    assert time.process_time() - started < 10, "it takes 0.8 s on two cores"
    assert len(found) > 140
    assert found["discrimination.mismatched@r"].method == "cluster_bootstrap"
