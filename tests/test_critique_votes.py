"""A panel of judges of critiques: ties, failures, quorums, and everything that missing judges could have said."""

from __future__ import annotations

import itertools
import random

import pytest

from interbench_tasks.critique_votes import (
    CritiqueRule,
    Outcome,
    Range,
    Vote,
    identified_by,
    majority,
    outcome_of,
    panel_of,
    parts_in,
    vote_from,
)
from interbench_tasks.records import Verdict
from tests.critiques import ALL_VOTES, YES, any_vote

NO = Vote(False)
ABC = ("correction", "clarification", "refusal")


def fields(vote: Vote) -> dict[str, str]:
    numbers = {"diag": f"{vote.diag:g}", "strategy_score": f"{vote.score:g}"}
    return {"detected": str(vote.detected).lower(), "strategy": vote.strategy, **numbers}


# --- the paper's rule, all judges there ---------------------------------------------------------------------------


def test_dp_is_the_mean_of_all_judges_and_se_that_of_the_aligned_ones():
    votes = [Vote(True, 2, "refusal", 2), Vote(True, 1, "refusal", 1), Vote(True, 0, "correction", 0)]
    assert outcome_of(votes, 3) == Outcome(True, 1.0, "refusal", 1.5)


def test_a_judge_that_detected_nothing_counts_0_in_dp_and_has_no_strategy():
    votes = [Vote(True, 2, "refusal", 2), Vote(True, 1, "refusal", 0), NO]
    assert outcome_of(votes, 3) == Outcome(True, 1.0, "refusal", 1.0)


def test_three_different_strategies_are_split_and_all_three_scores_count():
    votes = [Vote(True, 2, strategy, score) for strategy, score in zip(ABC, (2, 1, 0), strict=True)]
    assert outcome_of(votes, 3) == Outcome(True, 2.0, "split", 1.0)


def test_two_that_detect_and_disagree_are_split():
    votes = [Vote(True, 2, "refusal", 2), Vote(True, 2, "correction", 1), NO]
    assert outcome_of(votes, 3) == Outcome(True, 4 / 3, "split", 1.5)


@pytest.mark.parametrize("n_yes", [0, 1])
def test_without_a_majority_nothing_is_detected(n_yes):
    assert not outcome_of([YES] * n_yes + [NO] * (3 - n_yes), 3).detected


def test_a_divided_even_panel_has_no_majority():
    assert not outcome_of([YES, NO], 2).detected
    assert outcome_of([YES, YES], 2).detected


def test_one_judge_is_a_panel():
    assert outcome_of([Vote(True, 1, "refusal", 2)], 1) == Outcome(True, 1.0, "refusal", 2.0)


# --- missing judges -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "detected"),
    [
        ([YES, NO, None], None),  # the third could decide
        ([YES, YES, None], True),
        ([NO, NO, None], False),
        ([YES, None, None], None),
        ([NO, None, None], None),
        ([None, None, None], None),
        ([None], None),
        ([YES, None], None),
        ([NO, None], False),
    ],
)
def test_an_item_is_undecided_only_where_the_missing_judges_could_decide_it(votes, detected):
    panel = panel_of(votes)
    assert panel.detected is detected
    assert len(panel.possible.detected) == (2 if detected is None else 1)


def test_a_missing_judge_is_in_no_mean_and_in_the_ranges():
    panel = panel_of([Vote(True, 2, "refusal", 2), Vote(True, 1, "refusal", 0), None])
    assert (panel.dp, panel.strategy, panel.se) == (1.5, "refusal", 1.0)
    assert panel.possible.dp == Range(1.0, 5 / 3)
    assert panel.possible.se == Range(2 / 3, 4 / 3)


def test_a_strategy_that_a_missing_judge_could_decide_is_none():
    panel = panel_of([Vote(True, 2, "refusal", 2), Vote(True, 2, "correction", 1), None])
    assert panel.detected is True
    assert panel.dp == 2.0
    assert (panel.strategy, panel.se) == (None, None)
    assert panel.possible.strategies == {"refusal", "correction", "split"}


def test_a_split_that_no_missing_judge_can_mend_is_one():
    votes = [Vote(True, 2, strategy, 1) for strategy in (*ABC, "none")]
    panel = panel_of([*votes, None])
    assert (panel.strategy, panel.se) == ("split", 1.0)


def test_below_its_quorum_a_panel_says_nothing_though_the_ranges_know_more():
    panel = panel_of([YES, YES, None], quorum=3)
    assert panel.detected is None
    assert panel.possible.sure
    assert panel_of([YES, YES, None], quorum=2).detected is True


@pytest.mark.parametrize("seed", range(60))
def test_the_ranges_are_those_of_every_possible_vote(seed):
    dice = random.Random(seed)
    declared = dice.choice([1, 2, 3, 3, 3, 4])
    n_missing = dice.randint(1, min(declared, 2))
    known = [any_vote(dice) for _ in range(declared - n_missing)]
    found = panel_of([*known, *[None] * n_missing])
    every = [outcome_of([*known, *more], declared) for more in itertools.product(ALL_VOTES, repeat=n_missing)]
    saw = [outcome for outcome in every if outcome.detected]
    assert set(found.possible.detected) == {outcome.detected for outcome in every}
    assert found.possible.strategies == {outcome.strategy for outcome in saw}
    if saw:
        assert found.possible.dp == (min(o.dp for o in saw), max(o.dp for o in saw))
        assert found.possible.se == (min(o.se for o in saw), max(o.se for o in saw))


@pytest.mark.parametrize("seed", range(40))
def test_the_order_of_judges_never_matters(seed):
    dice = random.Random(seed)
    votes = [dice.choice([any_vote(dice), any_vote(dice), None]) for _ in range(dice.randint(1, 4))]
    assert len({repr(panel_of(order)) for order in itertools.permutations(votes)}) == 1


# --- verdicts -----------------------------------------------------------------------------------------------------


def test_values_beside_no_detection_mean_nothing():
    assert vote_from({"detected": "false", "diag": "2", "strategy": "refusal", "strategy_score": "2"}) == NO
    assert vote_from({"detected": "true", "diag": "2", "strategy": "none", "strategy_score": "2"}) == Vote(True, 2)
    assert vote_from({"detected": "true", "diag": "1"}) == Vote(True, 1.0)


def test_the_panels_verdict_has_what_it_can_decide():
    def combined(*votes, quorum=None):
        made = [
            Verdict(judge=f"j{n}", status="scored", score=None, fields=fields(vote))
            if vote is not None
            else Verdict(judge=f"j{n}", status="unparsed", score=None)
            for n, vote in enumerate(votes)
        ]
        verdicts = {CritiqueRule(quorum=quorum).combine(order, len(votes)) for order in itertools.permutations(made)}
        (verdict,) = verdicts
        return verdict.status, verdict.fields

    refusal = Vote(True, 2, "refusal", 1)
    decided = {"detected": "true", "diag": "1.333", "strategy": "refusal", "strategy_score": "1"}
    assert combined(refusal, refusal, NO) == ("scored", decided)
    assert combined(NO, NO, None) == ("scored", {"detected": "false"})
    assert combined(refusal, NO, None) == ("undecided", {})
    other = Vote(True, 2, "correction", 1)
    assert combined(refusal, other, None) == ("scored", {"detected": "true", "diag": "2"})
    assert combined(refusal, refusal, None, quorum=3) == ("undecided", {})
    assert combined(None, None) == ("undecided", {})


def test_valid_and_dual_items_go_by_majority_too():
    def combined(*given):
        made = [Verdict(judge=str(n), status="scored", score=None, fields=one) for n, one in enumerate(given)]
        return CritiqueRule().combine(made, 3).fields

    calm, alarm = ({"refuses_whole_task": "false", "false_alarm": word} for word in ("false", "true"))
    assert combined(calm, alarm, alarm) == {"refuses_whole_task": "false", "false_alarm": "true"}
    first, both = ({"detected": "true", "identified": words} for words in ("first", "first+second"))
    assert combined(first, both, both) == {"detected": "true", "identified": "first+second"}
    assert combined(first, first, both) == {"detected": "true", "identified": "first"}
    assert combined(first, both) == {"detected": "true"}


def test_a_part_is_identified_by_more_than_half_of_the_declared_judges():
    said = [{"detected": "true", "identified": "first"}, {"detected": "false", "identified": "second"}]
    assert identified_by(said, 1, 3) == {"first": None, "second": False}
    assert parts_in({"detected": "true", "identified": ""}) == frozenset()
    assert majority(1, 0, 1) is True
