"""What people's labels tell of judges: how many independent ones they amount to, and Dawid-Skene beside the panel."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from interbench_tasks.metrics.judge_errors import AggregateError, dawid_skene, effective_judges


def worth(errors, **options) -> float:
    found = effective_judges(errors, draws=200, **options).estimate
    assert found is not None
    return found.value


# --- independent judges -----------------------------------------------------------------------------------------------


def test_the_formula_by_hand():
    a, b, c = [1, 0, 0, -1, 0, 1], [1, 0, 0, 0, -1, 1], [0, 0, 1, -1, 0, 0]
    r = np.mean([np.corrcoef(a, b)[0, 1], np.corrcoef(a, c)[0, 1], np.corrcoef(b, c)[0, 1]])
    assert worth({"a": a, "b": b, "c": c}) == pytest.approx(3 / (1 + 2 * r))


def test_judges_that_err_alike_are_one_judge():
    assert worth({name: [1, 0, 0, -1] for name in "abc"}) == pytest.approx(1)


def test_judges_that_err_independently_are_as_many_as_they_are():
    random = np.random.default_rng(1)
    errors = {name: list(random.normal(size=20_000)) for name in "abc"}
    assert worth(errors) == pytest.approx(3, abs=0.1)


def test_judges_that_err_against_each_other_are_more_than_they_are():
    assert worth({"a": [1, -1, 1, 0], "b": [-1, 0, 0, 1]}) > 2


def test_the_interval_holds_the_value_and_narrows_with_more_labels():
    random = np.random.default_rng(2)
    shared = random.normal(size=2000)
    errors = {name: shared + random.normal(size=2000) for name in "abc"}
    few, many = (
        effective_judges({name: list(own[:n]) for name, own in errors.items()}, draws=500).estimate for n in (60, 2000)
    )
    for found in (few, many):
        assert found.ci95.low <= found.value <= found.ci95.high
    assert many.value == pytest.approx(3 / (1 + 2 * 0.5), abs=0.1)
    assert few.ci95.high - few.ci95.low > 2 * (many.ci95.high - many.ci95.low)


def test_items_that_a_judge_left_out_count_for_the_other_pairs_and_are_unscored():
    a, b, c = [1, 0, 0, -1, 0], [1, 0, 1, -1, 0], [1, None, 0, 0, None]
    found = effective_judges({"a": a, "b": b, "c": c}, draws=100).estimate
    assert (found.n, found.unscored) == (3, 2)
    pairs = [np.corrcoef(a, b), np.corrcoef([1, 0, -1], [1, 0, 0]), np.corrcoef([1, 1, -1], [1, 0, 0])]
    assert found.value == pytest.approx(3 / (1 + 2 * np.mean([one[0, 1] for one in pairs])))


def test_a_judge_that_never_errs_has_no_correlation_and_is_left_out():
    errors = {"a": [1, 0, 0, 1], "b": [1, 0, 1, 0], "perfect": [0, 0, 0, 0]}
    assert worth(errors) == pytest.approx(3 / (1 + 2 * np.corrcoef(errors["a"], errors["b"])[0, 1]))


def test_clusters_are_drawn_as_a_whole():
    errors = {"a": [1, 0, 0, 1, 0, 1], "b": [1, 0, 1, 0, 0, 1]}
    assert effective_judges(errors, clusters=list("xxyyzz"), draws=100).estimate.method == "cluster_bootstrap"
    assert effective_judges(errors, draws=100).estimate.method == "bootstrap"


@pytest.mark.parametrize(
    ("errors", "why"),
    [
        ({"a": [0, 0, 0], "b": [0, 0, 0]}, "no two judges err"),
        ({"a": [0, 0, 0], "b": [1, 0, 0]}, "no two judges err"),
        ({"a": [1, 1, 1], "b": [1, 1, 1]}, "in a way that varies"),
        ({"a": [1, 0]}, "one judge only"),
        ({"a": [], "b": []}, "no item is labelled"),
        ({"a": [1, -1, 0], "b": [-1, 1, 0]}, "cancel each other out"),
    ],
)
def test_where_it_is_undefined_it_is_absent_and_says_why(errors, why):
    found = effective_judges(errors, draws=50)
    assert found.estimate is None
    assert why in found.why


# --- Dawid-Skene ------------------------------------------------------------------------------------------------------


def cast(random, truth, rates) -> np.ndarray:
    """Votes of judges with these (sensitivity, specificity)."""
    votes = [np.where(truth, random.random(len(truth)) < s, random.random(len(truth)) >= p) for s, p in rates]
    return np.stack(votes, axis=1).astype(np.int64)


def test_judges_that_err_independently_are_seen_through():
    """Two poor judges outvote a good one; who is good is learned from the votes alone."""
    pytest.importorskip("crowdkit")
    random = np.random.default_rng(3)
    truth = random.random(4000) < 0.3
    votes = cast(random, truth, [(0.95, 0.98), (0.6, 0.9), (0.65, 0.85), (0.6, 0.9)])
    found = dawid_skene(votes, 2)
    majority = votes.sum(axis=1) * 2 > 4
    assert found.sum(axis=1) == pytest.approx(np.ones(4000))
    assert abs(found[:, 1].mean() - 0.3) < 0.02 < abs(majority.mean() - 0.3)
    assert ((found[:, 1] > 0.5) == truth).mean() > (majority == truth).mean() + 0.02


def test_it_equals_the_textbook_iteration():
    pytest.importorskip("crowdkit")
    random = np.random.default_rng(4)
    votes = cast(random, random.random(300) < 0.4, [(0.9, 0.9), (0.8, 0.8), (0.7, 0.9)])
    chosen = np.stack([votes == label for label in (0, 1)], axis=2).astype(float)  # [items, judges, labels]
    belief = chosen.mean(axis=1)
    for _ in range(2000):
        prior = belief.mean(axis=0)
        habits = np.einsum("it,ijl->jtl", belief, chosen)
        habits /= habits.sum(axis=2, keepdims=True)
        likely = prior * np.exp(np.einsum("ijl,jtl->it", chosen, np.log(np.maximum(habits, 1e-12))))
        belief = likely / likely.sum(axis=1, keepdims=True)
    assert dawid_skene(votes, 2) == pytest.approx(belief, abs=0.02)


def test_missing_votes_are_left_out_and_an_item_without_any_is_not_known():
    pytest.importorskip("crowdkit")
    random = np.random.default_rng(5)
    votes = cast(random, random.random(200) < 0.5, [(0.9, 0.9)] * 3)
    votes[0], votes[1, 0] = -1, -1
    found = dawid_skene(votes, 2)
    assert np.isnan(found[0]).all()
    assert not np.isnan(found[1:]).any()


def test_a_label_that_nobody_gave_is_impossible():
    pytest.importorskip("crowdkit")
    votes = cast(np.random.default_rng(6), np.arange(50) < 25, [(0.9, 0.9)] * 3)
    found = dawid_skene(votes, 4)
    assert found.shape == (50, 4)
    assert (found[:, 2:] == 0).all()


def test_votes_that_are_all_missing_tell_nothing():
    pytest.importorskip("crowdkit")
    assert np.isnan(dawid_skene(np.full((4, 3), -1), 2)).all()


def test_two_judges_are_too_few():
    with pytest.raises(AggregateError, match="needs 3 judges, there are 2"):
        dawid_skene(np.zeros((5, 2), dtype=np.int64), 2)


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    found = builtins.__import__

    def without(name, *args, **options):
        if name.startswith("crowdkit"):
            raise ImportError("No module named 'crowdkit'")
        return found(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AggregateError, match=r"crowd-kit.*pip install 'interbench-tasks\[calibration\]'"):
        dawid_skene(np.zeros((5, 3), dtype=np.int64), 2)
