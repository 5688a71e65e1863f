"""Ranks and how sure they are: brute force, the libraries' values, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from interbench_tasks.metrics.ranking import across_models, exact_mcnemar, holm, rankings_from

NAN = float("nan")


def successes(chance, rates, n_items, *, spread=1.0):
    """[models, items] of 0 and 1; items differ in how hard they are, for all models alike."""
    hard = chance.normal(size=n_items) * spread
    odds = np.log(np.array(rates) / (1 - np.array(rates)))[:, None] + hard
    return (chance.random((len(rates), n_items)) < 1 / (1 + np.exp(-odds))).astype(float)


def ranking(values, **options):
    models = options.pop("models", [f"m{number}" for number in range(len(values))])
    return rankings_from({"it": np.asarray(values, dtype=float)}, models, draws=options.pop("draws", 500), **options)[
        "it"
    ]


# --- ranks ------------------------------------------------------------------------------------------------------


def test_the_largest_value_has_rank_one_and_equal_ones_share_theirs():
    found = ranking([[0, 0, 1], [1, 1, 1], [1, 0, 0], [0, 0, 0]], models=["b", "top", "a", "none"])
    assert [(row.model, row.rank) for row in found.models] == [("top", 1), ("a", 2), ("b", 2), ("none", 4)]
    assert [row.value for row in found.models] == pytest.approx([1, 1 / 3, 1 / 3, 0])


def test_a_models_value_is_the_mean_of_the_items_that_count_for_it():
    found = ranking([[1, NAN, 0], [NAN, NAN, 1]])
    assert [(row.model, row.value, row.n) for row in found.models] == [("m1", 1, 1), ("m0", 0.5, 2)]
    assert found.steps[0].difference.n == 1


def test_a_model_for_which_nothing_counts_is_left_out():
    found = ranking([[1, 0], [NAN, NAN], [0, 0]])
    assert [row.model for row in found.models] == ["m0", "m2"]
    assert found.left_out == ("m1",)
    assert rankings_from({"it": np.array([[1.0], [NAN]])}, ["a", "b"], draws=10) == {}


def test_many_items_tell_models_apart_and_few_do_not():
    chance = np.random.default_rng(1)
    many = ranking(successes(chance, [0.2, 0.5, 0.8], 2000))
    assert [(row.model, row.best, row.worst) for row in many.models] == [("m2", 1, 1), ("m1", 2, 2), ("m0", 3, 3)]
    few = ranking(successes(chance, [0.45, 0.5, 0.55], 30))
    assert {(row.best, row.worst) for row in few.models} == {(1, 3)}


def test_a_rank_lies_in_its_interval():
    chance = np.random.default_rng(2)
    for _ in range(5):
        found = ranking(successes(chance, chance.uniform(0.2, 0.8, 6), 60), draws=200)
        assert all(1 <= row.best <= row.rank <= row.worst <= 6 for row in found.models)


def test_what_all_models_share_is_no_uncertainty():
    """Paired: items on which all agree widen no difference."""
    chance = np.random.default_rng(3)
    base = (chance.random(1000) < 0.5).astype(float)
    better = base.copy()
    better[np.flatnonzero(base == 0)[:25]] = 1
    step = ranking([base, better]).steps[0]
    assert (step.above, step.difference.value) == ("m1", pytest.approx(0.025))
    assert step.p_bootstrap < 0.01
    assert step.difference.ci95.low > 0.01
    assert step.p_mcnemar == pytest.approx(2 * 0.5**25)


def test_a_difference_that_is_the_same_in_every_item_is_not_certain():
    """Three items, all right against all wrong: the bootstrap has no width, and three items prove nothing."""
    found = ranking([[1, 1, 1], [0, 0, 0]])
    assert found.steps[0].p_bootstrap == 0.25 == found.steps[0].p_mcnemar
    assert found.steps[0].difference.ci95 is None
    assert [(row.best, row.worst) for row in found.models] == [(1, 2), (1, 2)]
    assert [(row.best, row.worst) for row in ranking([[1] * 200, [0] * 200]).models] == [(1, 1), (2, 2)]


@pytest.mark.parametrize(("n", "n_models", "certain"), [(5, 2, False), (6, 2, True), (6, 3, False), (7, 3, True)])
def test_ranks_of_models_that_differ_in_every_item_are_those_of_a_sign_test_of_all_pairs(n, n_models, certain):
    """2^(1 - n) for each pair, times the number of pairs."""
    found = ranking([[model / 2] * n for model in range(n_models)])
    assert all((row.best == row.worst == row.rank) is certain for row in found.models)


def test_one_cluster_says_nothing_of_ranks():
    found = ranking([[1, 1, 1], [0, 0, 1]], clusters=["x"] * 3)
    assert [(row.best, row.worst) for row in found.models] == [(1, 2), (1, 2)]
    (step,) = found.steps
    assert (step.difference.method, step.difference.ci95, step.p_bootstrap) == ("one_cluster", None, 1)


def test_two_models_that_answer_alike_cannot_be_told_apart():
    found = ranking([[1, 0, 1, 0]] * 2)
    assert [(row.rank, row.best, row.worst) for row in found.models] == [(1, 1, 2), (1, 1, 2)]
    assert (found.steps[0].p_bootstrap, found.steps[0].p_mcnemar) == (1, 1)


def test_items_of_one_cluster_count_as_one():
    chance = np.random.default_rng(4)
    values = np.repeat(successes(chance, [0.45, 0.6], 40), 10, axis=1)
    alone = ranking(values)
    together = ranking(values, clusters=[str(i // 10) for i in range(400)])
    assert alone.steps[0].p_bootstrap < together.steps[0].p_bootstrap
    assert (together.n_items, together.n_clusters) == (400, 40)
    assert together.steps[0].p_mcnemar is None, "it takes items for independent"
    assert together.steps[0].difference.method == "cluster_bootstrap"


def test_scores_have_no_mcnemar_test():
    assert ranking([[0.5, 1, 0], [1, 1, 1]]).steps[0].p_mcnemar is None


def test_all_metrics_come_from_the_same_resamples():
    chance = np.random.default_rng(5)
    values = successes(chance, [0.3, 0.5, 0.6], 80)
    both = rankings_from({"a": values, "b": 2 * values}, ["x", "y", "z"], draws=300)
    alone = rankings_from({"a": values}, ["x", "y", "z"], draws=300)
    assert both["a"] == alone["a"]
    for one, double in zip(both["a"].models, both["b"].models, strict=True):
        assert (double.value, double.best, double.worst) == (pytest.approx(2 * one.value), one.best, one.worst)


def test_ranks_are_the_same_in_any_order_of_models():
    chance = np.random.default_rng(6)
    values = successes(chance, [0.3, 0.5, 0.6, 0.4], 60)
    models = ["a", "b", "c", "d"]
    first = ranking(values, models=models)
    turned = ranking(values[::-1], models=models[::-1])
    assert first.models == turned.models
    assert first.steps == turned.steps


# --- p-values -------------------------------------------------------------------------------------------------------


def test_the_bootstrap_p_is_near_the_exact_one():
    chance = np.random.default_rng(7)
    for _ in range(5):
        step = ranking(successes(chance, [0.45, 0.55], 300), draws=4000).steps[0]
        assert step.p_bootstrap == pytest.approx(step.p_mcnemar, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_mcnemars_p_equals_that_of_statsmodels(seed):
    from statsmodels.stats.contingency_tables import mcnemar

    chance = np.random.default_rng(seed)
    one, other = successes(chance, [0.4, 0.5], 50)
    table = [[int(((one == i) & (other == j)).sum()) for j in (0, 1)] for i in (0, 1)]
    assert exact_mcnemar(one, other) == pytest.approx(mcnemar(table, exact=True).pvalue)


def test_holms_adjustment_equals_that_of_statsmodels():
    from statsmodels.stats.multitest import multipletests

    chance = np.random.default_rng(8)
    for size in (1, 2, 7):
        p_values = (chance.random(size) ** 3).tolist()
        assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
    assert holm([]) == []


def test_steps_are_adjusted_for_their_number():
    found = ranking(successes(np.random.default_rng(9), [0.3, 0.5, 0.7, 0.72], 100))
    assert [step.p_bootstrap_holm for step in found.steps] == holm([step.p_bootstrap for step in found.steps])
    assert [step.p_mcnemar_holm for step in found.steps] == holm([step.p_mcnemar for step in found.steps])


# --- coverage -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_all_true_ranks_lie_in_their_intervals_in_ninety_five_of_a_hundred_runs():
    """Eight models, some of them equal: simultaneous means that all eight ranks hold at once."""
    rates = np.array([0.30, 0.30, 0.35, 0.50, 0.50, 0.50, 0.65, 0.80])
    held = 0
    for seed in range(200):
        values = successes(np.random.default_rng(seed), rates, 250, spread=0.0)
        held += all(
            row.best <= 1 + (rates > own).sum() and row.worst >= len(rates) - (rates < own).sum()
            for row in ranking(values, draws=500).models
            for own in [rates[int(row.model[1:])]]
        )
    assert held / 200 >= 0.93


@pytest.mark.slow
def test_equal_models_are_called_different_in_five_of_a_hundred_runs():
    small = {"p_bootstrap": 0, "p_mcnemar": 0}
    for seed in range(400):
        step = ranking(successes(np.random.default_rng(seed), [0.5, 0.5], 200), draws=500).steps[0]
        for name in small:
            small[name] += getattr(step, name) < 0.05
    assert 0.025 < small["p_bootstrap"] / 400 < 0.075
    assert small["p_mcnemar"] / 400 < 0.06, "exact: never more often than it says"


# --- across models --------------------------------------------------------------------------------------------------


def test_correlations_and_variation_are_those_of_the_models_values():
    chance = np.random.default_rng(10)
    eda = successes(chance, [0.2, 0.4, 0.5, 0.7], 100)
    pcq = eda * chance.choice([0.5, 1.0], size=eda.shape)
    found = across_models({"EDA": eda, "PCQ": pcq}, [("EDA", "PCQ")], draws=300)
    means, others = eda.mean(axis=1), pcq.mean(axis=1)
    assert found["r.EDA.PCQ"].value == pytest.approx(np.corrcoef(means, others)[0, 1])
    assert found["cv.EDA"].value == pytest.approx(means.std(ddof=1) / means.mean())
    assert found["r.EDA.PCQ"].n == 4
    assert found["r.EDA.PCQ"].points == 1
    low, high = found["r.EDA.PCQ"].ci95
    assert low < found["r.EDA.PCQ"].value <= high <= 1


def test_a_metric_that_counts_on_few_items_has_its_own_denominator():
    detected = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1.0]])
    quality = np.where(detected == 1, [[0.2], [0.4], [0.9]], NAN)
    found = across_models({"EDA": detected, "Q": quality}, [("Q", "EDA")], draws=100)
    assert found["r.Q.EDA"].value == pytest.approx(np.corrcoef([0.2, 0.4, 0.9], [0.5, 0.25, 1])[0, 1])


def test_what_cannot_be_told_across_models_is_absent():
    two = np.array([[0.0, 1.0], [1.0, 1.0]])
    assert list(across_models({"a": two, "b": two}, [("a", "b")], draws=50)) == ["cv.a", "cv.b"], "two give r = 1"
    alike = np.ones((3, 4))
    assert list(across_models({"a": alike, "b": np.zeros((3, 4))}, [("a", "b")], draws=50)) == ["cv.a"]
    assert across_models({}, draws=50) == {}


def test_an_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="no metric Z"):
        across_models({"a": np.ones((2, 2))}, [("a", "Z")])


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "models", "clusters", "told"),
    [
        (np.ones((1, 2)), ["a"], None, "two models"),
        (np.ones((2, 2)), ["a", "a"], None, "a name of its own"),
        (np.ones((2, 2)), ["a", "b", "c"], None, r"\[3 models, items\]"),
        (np.ones((2, 0)), ["a", "b"], None, "items"),
        (np.ones((2, 2)), ["a", "b"], ["x"], "2 items, but 1 clusters"),
    ],
)
def test_a_wrong_matrix_is_refused(values, models, clusters, told):
    with pytest.raises(ValueError, match=told):
        rankings_from({"it": values}, models, clusters=clusters)


def test_no_metric_gives_no_ranking():
    assert rankings_from({}, ["a", "b"]) == {}
