"""Rankings by smaller panels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from interbench_tasks.metrics.panel_rankings import (
    leave_one_judge_out,
    leave_own_family_out,
    majority_of_votes,
    mean_of_votes,
    rank_correlations,
)

NAN = float("nan")


def of_shares(shares, n=10):
    """Votes of one judge: of each model, that share of yes. [models, items]"""
    return np.array([[float(i < share * n) for i in range(n)] for share in shares])


def test_a_majority_is_one_of_all_judges_that_were_asked():
    for votes in itertools.product([0.0, 1.0, NAN], repeat=3):
        yes, no = votes.count(1.0), votes.count(0.0)
        expected = 1.0 if yes >= 2 else 0.0 if no >= 2 else NAN  # the third could have decided
        found = majority_of_votes(np.array(votes)[:, None, None])
        assert np.array_equal(found, [[expected]], equal_nan=True), votes


def test_two_judges_that_differ_have_no_majority_that_says_yes_and_half_of_the_mean():
    votes = np.array([[[1.0]], [[0.0]]])
    assert majority_of_votes(votes).tolist() == [[0.0]]
    assert np.isnan(majority_of_votes(np.array([[[1.0]], [[NAN]]]))).all()
    assert mean_of_votes(votes).tolist() == [[0.5]]


def test_a_mean_is_that_of_the_judges_that_spoke():
    votes = np.array([[[1.0, NAN]], [[NAN, NAN]], [[0.5, NAN]]])
    found = mean_of_votes(votes)
    assert found[0, 0] == 0.75
    assert np.isnan(found[0, 1])


def test_a_judge_whose_loss_turns_the_ranking_is_found():
    agreeing = of_shares([0.8, 0.6, 0.2])
    contrary = of_shares([0.0, 0.9, 1.0])
    votes = np.stack([agreeing, agreeing, contrary])
    found = {each.without: each for each in leave_one_judge_out(votes, ["a", "b", "odd"], ["x", "y", "z"])}
    assert found["odd"].ranks == {"x": 1, "y": 2, "z": 3}
    assert found["a"].ranks == {"x": 3, "y": 1, "z": 2}
    assert found["odd"].moved == ("x", "y")
    assert found["odd"].spearman == pytest.approx(0.5)
    assert found["odd"].values == {"x": pytest.approx(0.8), "y": pytest.approx(0.6), "z": pytest.approx(0.2)}


def test_judges_that_agree_leave_the_ranking_as_it_is():
    same = of_shares([0.8, 0.6, 0.2])
    for each in leave_one_judge_out(np.stack([same] * 3), ["a", "b", "c"], ["x", "y", "z"], majority_of_votes):
        assert (each.spearman, each.kendall, each.moved, each.undecided) == (1, 1, (), 0)


def test_replies_that_the_smaller_panel_leaves_open_are_counted():
    votes = np.array([[[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [NAN, 1.0]], [[1.0, 0.0], [1.0, NAN]]])
    found = leave_one_judge_out(votes, ["a", "b", "c"], ["x", "y"], majority_of_votes)
    assert [each.undecided for each in found] == [2, 1, 1]


def test_a_model_is_judged_by_other_families_only():
    mild, strict = of_shares([1.0, 0.9, 0.5]), of_shares([0.4, 0.6, 0.5])
    found = leave_own_family_out(np.stack([mild, strict]), {"A1": "A", "B1": "B"}, {"a": "A", "b": "B", "c": None})
    assert found.values == {"a": pytest.approx(0.4), "b": pytest.approx(0.9), "c": pytest.approx(0.5)}
    assert found.without == "own family"
    assert found.ranks == {"b": 1, "c": 2, "a": 3}
    assert found.moved == ("a", "c"), "all judges had a second and c last"


def test_models_of_no_judges_family_leave_nothing_to_try():
    votes = np.stack([of_shares([0.5, 0.4])] * 2)
    assert leave_own_family_out(votes, {"A": "A", "B": "B"}, {"x": "C", "y": None}) is None
    assert leave_own_family_out(votes, {"A": None, "B": None}, {"x": None, "y": None}) is None


def test_a_model_whose_judges_are_all_of_its_family_has_no_rank():
    votes = np.stack([of_shares([0.5, 0.4, 0.1])] * 2)
    found = leave_own_family_out(votes, {"A1": "A", "A2": "A"}, {"a": "A", "x": "X", "y": "Y"})
    assert found.ranks == {"x": 1, "y": 2}
    assert found.undecided == 10


def test_a_panel_may_need_more_of_a_vote_than_a_number():
    """Detection and score: the mean score of the judges that detected."""
    detected, score = of_shares([1.0, 0.5]), of_shares([0.5, 0.5])
    votes = np.stack([np.stack([detected, score], axis=-1)] * 3)

    def product(kept):
        return mean_of_votes(kept[..., 0] * kept[..., 1])

    found = leave_one_judge_out(votes, ["a", "b", "c"], ["x", "y"], product)
    assert found[0].values == {"x": 0.5, "y": 0.5}
    assert found[0].spearman is None


@pytest.mark.parametrize("seed", range(4))
def test_correlations_of_ranks_equal_their_definition(seed):
    chance = np.random.default_rng(seed)
    one, other = chance.permutation(9).astype(float), chance.permutation(9).astype(float)
    spearman, kendall = rank_correlations(one, other)
    assert spearman == pytest.approx(1 - 6 * ((one - other) ** 2).sum() / (9 * 80))
    signs = [np.sign((one[i] - one[j]) * (other[i] - other[j])) for i in range(9) for j in range(i)]
    assert kendall == pytest.approx(np.mean(signs))


def test_the_papers_kendall_is_four_turned_pairs_of_fourteen_models():
    one = np.arange(14.0)
    other = one.copy()
    for at in (0, 3, 6, 9):  # four swaps of neighbours
        other[[at, at + 1]] = other[[at + 1, at]]
    spearman, kendall = rank_correlations(one, other)
    assert round(kendall, 3) == 0.912
    assert spearman == pytest.approx(1 - 6 * 8 / (14 * 195))


def test_sums_in_another_order_make_no_rank():
    assert rank_correlations(np.array([0.1 + 0.2, 0.3]), np.array([1.0, 2.0])) == (None, None)


@pytest.mark.parametrize(
    ("votes", "judges", "told"),
    [(np.ones((1, 2, 3)), ["a"], "two judges"), (np.ones((2, 3, 4)), ["a", "b"], r"got \(2, 3, 4\)")],
)
def test_votes_that_do_not_fit_are_refused(votes, judges, told):
    with pytest.raises(ValueError, match=told):
        leave_one_judge_out(votes, judges, ["x", "y"])
