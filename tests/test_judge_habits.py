"""How strict a judge is, and whether it prefers a strategy."""

from __future__ import annotations

import numpy as np
import pytest

from interbench_tasks.metrics.judge_habits import judge_strictness, strategy_bias


def test_the_judge_that_scores_lower_than_the_others_is_the_strict_one():
    found = judge_strictness({"harsh": [0, 0, 0, 1], "usual": [1, 0, 1, 1], "mild": [1, 1, 1, 1]})
    assert found["harsh"].value == pytest.approx((1 + 0.5 + 1 + 0) / 4)
    assert found["mild"].value == pytest.approx(-(0.5 + 1 + 0.5 + 0) / 4)
    assert sum(estimate.value for estimate in found.values()) == pytest.approx(0)
    low, high = found["harsh"].ci95
    assert low < found["harsh"].value < high


def test_a_judge_that_failed_leaves_the_item_out_for_all():
    found = judge_strictness({"a": [0, None, 1], "b": [1, 1, 1]})
    assert (found["a"].value, found["a"].n, found["a"].unscored) == (0.5, 2, 1)
    assert (found["b"].value, found["b"].n, found["b"].unscored) == (-0.5, 2, 1)
    assert found["a"].bounds is None


def test_scores_keep_their_scale():
    found = judge_strictness({"a": [0, 1, 2], "b": [2, 2, 2]}, span=(0, 2))
    assert found["a"].value == pytest.approx(1)
    assert found["a"].points == 2
    assert -2 <= found["a"].ci95.low < found["a"].ci95.high <= 2


def test_judges_without_a_common_item_have_no_strictness():
    assert judge_strictness({"a": [1, None], "b": [None, 1]}) == {}


def test_items_of_one_cluster_count_as_one_for_strictness():
    scores = {"a": [0, 0, 1, 1] * 10, "b": [1, 1, 1, 1] * 10}
    alone = judge_strictness(scores)["a"]
    together = judge_strictness(scores, clusters=["x", "x", "y", "z"] * 10)["a"]
    assert together.method == "cluster_bootstrap"
    assert together.ci95.high - together.ci95.low > alone.ci95.high - alone.ci95.low


@pytest.mark.parametrize(
    ("scores", "options", "told"),
    [
        ({"a": [1]}, {}, "two judges"),
        ({"a": [1], "b": [1, 0]}, {}, "a 1, b 2"),
        ({"a": [3], "b": [1]}, {}, "a: a score of 3 is not from 0 to 1"),
        ({"a": [1], "b": [1]}, {"span": (1, 1)}, "a width"),
    ],
)
def test_wrong_scores_are_refused(scores, options, told):
    with pytest.raises(ValueError, match=told):
        judge_strictness(scores, **options)


# --- strategies -----------------------------------------------------------------------------------------------------


def test_strategy_bias_is_the_difference_of_the_means():
    bias = strategy_bias([2, 1, 1, 0, 2], ["clarification", "clarification", "refusal", "refusal", "correction"])
    assert bias.value == pytest.approx(1.5 - 0.5)
    assert (bias.n, bias.unscored, bias.points) == (4, 0, 2)
    assert bias.ci95.low < 1 < bias.ci95.high <= 2


def test_a_missing_score_or_strategy_is_unscored():
    bias = strategy_bias([2, None, 1, 1], ["clarification", "clarification", None, "refusal"])
    assert (bias.value, bias.n, bias.unscored) == (1, 2, 2)


def test_a_strategy_that_nobody_chose_leaves_no_bias():
    assert strategy_bias([2, 1], ["clarification", "clarification"]) is None


def test_other_strategies_can_be_compared():
    bias = strategy_bias([0, 1, 1], ["a", "b", "b"], first="b", second="a", span=(0, 1))
    assert bias.value == 1
    assert bias.points is None


def test_a_planted_bias_is_found():
    chance = np.random.default_rng(0)
    strategies = ["clarification" if chance.random() < 0.5 else "refusal" for _ in range(3000)]
    scores = [
        int(chance.choice([0, 1, 2], p=[0.1, 0.4 if s == "refusal" else 0.2, 0.5 if s == "refusal" else 0.7]))
        for s in strategies
    ]
    bias = strategy_bias(scores, strategies)
    assert bias.ci95.low < 0.2 < bias.ci95.high
    assert bias.ci95.low > 0


def test_replies_of_one_cluster_count_together():
    scores, strategies = [2, 0, 1, 1] * 8, ["clarification", "clarification", "refusal", "refusal"] * 8
    clusters = [str(i // 8) for i in range(32)]
    assert strategy_bias(scores, strategies, clusters=clusters).method in ("cluster_bootstrap", "newcombe_by_cluster")


def test_lists_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 scores, but 1 strategies"):
        strategy_bias([1, 2], ["refusal"])
    with pytest.raises(ValueError, match="not from 0 to 2"):
        strategy_bias([5], ["refusal"])
