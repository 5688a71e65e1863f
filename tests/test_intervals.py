"""Intervals: known values, planted coverage, and what happens where a method has nothing to work with."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from interbench_tasks.metrics.intervals import (
    Estimate,
    Interval,
    Ratio,
    Resamples,
    agresti_min,
    cluster_bootstrap,
    estimates_from_ratios,
    paired_difference,
    wilson,
)


def ratio(values, counted=None, **fields):
    values = np.asarray(values, dtype=np.int64)
    counted = np.ones(len(values), dtype=bool) if counted is None else np.asarray(counted, dtype=bool)
    return Ratio(values=values, counted=counted, **fields)


def one(values, clusters, **fields):
    return estimates_from_ratios({"m": ratio(values, **fields)}, clusters)["m"]


# --- Estimate


def test_an_estimate_survives_a_json_file():
    full = Estimate(
        value=0.5, n=4, unscored=2, count=2, ci95=Interval(0.1, 0.9), bounds=Interval(1 / 3, 2 / 3), method="wilson"
    )
    bare = Estimate(value=7.0, n=7, method="count")
    for estimate in (full, bare):
        data = estimate.to_json()
        assert json.loads(json.dumps(data)) == data
        assert Estimate.from_json(json.loads(json.dumps(data))) == estimate
    assert Estimate.from_json(full.to_json()).ci95.low == 0.1


def test_an_estimate_is_frozen():
    with pytest.raises(FrozenInstanceError):
        Estimate(value=1.0, n=1, method="count").n = 2


# --- wilson


def test_wilson_equals_the_closed_formula():
    z = 1.959963984540054
    for successes, n in [(1, 10), (135, 373), (5, 5), (0, 3), (2.5, 7)]:
        p = successes / n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        assert wilson(successes, n) == pytest.approx((centre - half, centre + half), abs=1e-12)


def test_wilson_at_another_level_is_narrower_and_its_ends_are_exact():
    wide, narrow = wilson(30, 100), wilson(30, 100, level=0.5)
    assert wide.low < narrow.low < 0.3 < narrow.high < wide.high
    assert wilson(0, 9).low == 0.0
    assert wilson(9, 9).high == 1.0


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5), (1, -2)])
def test_wilson_refuses_impossible_counts(successes, n):
    with pytest.raises(ValueError, match=f"got successes={successes}, n={n}"):
        wilson(successes, n)


# --- Agresti and Min


def test_agresti_min_equals_a_hand_computed_case():
    # 2x2 table 794, 150, 86, 570: the approval ratings of Agresti and Min's example; n = 1600.
    low, high = agresti_min(150, 86, 1600)
    d = 64 / 1602
    se = math.sqrt(150.5 + 86.5 - 64**2 / 1602) / 1602
    assert (low, high) == pytest.approx((d - 1.959963984540054 * se, d + 1.959963984540054 * se), abs=1e-12)
    assert (round(low, 4), round(high, 4)) == (0.0212, 0.0587)


def test_agresti_min_is_antisymmetric_and_stays_in_range():
    low, high = agresti_min(5, 2, 9)
    assert agresti_min(2, 5, 9) == pytest.approx((-high, -low))
    assert agresti_min(0, 3, 3).low >= -1.0
    assert agresti_min(3, 0, 3).high <= 1.0
    assert agresti_min(0, 0, 4).low < 0 < agresti_min(0, 0, 4).high


@pytest.mark.parametrize(("plus", "minus", "n"), [(0, 0, 0), (3, 3, 5), (-1, 0, 5)])
def test_agresti_min_refuses_impossible_counts(plus, minus, n):
    with pytest.raises(ValueError, match="agresti_min: need"):
        agresti_min(plus, minus, n)


# --- cluster bootstrap


def test_the_bootstrap_equals_a_plain_loop_over_the_same_draws():
    numerators, denominators = np.array([1, 0, 1, 1, 0, 0]), np.array([1, 1, 1, 1, 1, 0])
    clusters = ["b", "a", "a", "c", "c", "c"]
    # sorted: a = (1, 2), b = (1, 1), c = (1, 2)
    random = np.random.default_rng(7)
    picks = random.integers(0, 3, size=(500, 3))
    ratios = [sum([1, 1, 1][g] for g in draw) / sum([2, 1, 2][g] for g in draw) for draw in picks]
    expected = np.quantile(ratios, [0.025, 0.975])
    assert cluster_bootstrap(numerators, denominators, clusters, draws=500, seed=7) == pytest.approx(tuple(expected))


def test_the_bootstrap_is_deterministic_and_ignores_the_order_of_rows():
    random = np.random.default_rng(1)
    numerators = random.integers(0, 2, 200)
    denominators = np.ones(200, dtype=np.int64)
    clusters = [f"c{i // 4}" for i in range(200)]
    first = cluster_bootstrap(numerators, denominators, clusters)
    shuffled = random.permutation(200)
    assert cluster_bootstrap(numerators, denominators, clusters) == first
    assert cluster_bootstrap(numerators[shuffled], denominators, [clusters[i] for i in shuffled]) == first
    assert cluster_bootstrap(numerators, denominators, clusters, seed=1) != first


def test_many_metrics_share_the_draws_of_one():
    random = np.random.default_rng(2)
    numerators = random.integers(0, 2, (60, 5))
    denominators = np.ones((60, 5), dtype=np.int64)
    clusters = [str(i // 3) for i in range(60)]
    together = Resamples(clusters, draws=300).intervals(numerators, denominators)
    alone = [cluster_bootstrap(numerators[:, k], denominators[:, k], clusters, draws=300) for k in range(5)]
    assert together == alone


def test_draws_in_pieces_cover_all_clusters(monkeypatch):
    monkeypatch.setattr("interbench_tasks.metrics.intervals._WEIGHTS_AT_ONCE", 70)
    weights = np.concatenate(list(Resamples([str(i) for i in range(10)], draws=25)._weights()))
    assert weights.shape == (25, 10)
    assert (weights.sum(axis=1) == 10).all()
    assert weights.min() == 0


def test_draws_without_a_denominator_are_skipped():
    # Only one of three clusters counts: 8 of 27 draws miss it.
    low, high = cluster_bootstrap(np.array([1, 0, 0, 0]), np.array([1, 1, 0, 0]), ["a", "a", "b", "c"], draws=200)
    assert (low, high) == (0.5, 0.5)
    with pytest.raises(ValueError, match="denominators are 0 in every draw"):
        cluster_bootstrap(np.array([0, 0]), np.array([0, 0]), ["a", "b"], draws=20)


def test_resamples_need_rows_and_draws():
    with pytest.raises(ValueError, match="got 0 rows"):
        Resamples([])
    with pytest.raises(ValueError, match="0 draws"):
        Resamples(["a"], draws=0)


# --- which interval


def test_independent_rows_get_wilson_and_agresti_min():
    values = [1, 0, 0, 1, 1]
    assert one(values, list("abcde")).method == "wilson"
    assert one(values, list("abcde")).ci95 == wilson(3, 5)
    paired = one([1, -1, 1, 0, 0], list("abcde"), paired=True)
    assert (paired.value, paired.method, paired.ci95) == (0.2, "paired_agresti_min", agresti_min(2, 1, 5))


def test_clustered_rows_get_the_bootstrap():
    values, clusters = [1, 0, 0, 1, 1, 1], list("aabbcc")
    found = one(values, clusters)
    assert found.method == "cluster_bootstrap"
    assert found.ci95 == cluster_bootstrap(np.array(values), np.ones(6), clusters)
    assert one([1, 0, 0, -1, 1, 1], clusters, paired=True).method == "cluster_bootstrap"


def test_rows_that_share_a_cluster_but_are_not_counted_leave_the_others_independent():
    counted = [True, False, True, True]
    found = estimates_from_ratios({"m": ratio([1, 0, 0, 1], counted)}, ["a", "a", "b", "c"])["m"]
    assert (found.method, found.n, found.ci95) == ("wilson", 3, wilson(2, 3))


@pytest.mark.parametrize(
    ("values", "effective"), [([0] * 6, 0), ([1] * 6, 3), ([1, 0, 1, 0, 1, 0], 1.5)], ids=["none", "all", "half"]
)
def test_where_all_clusters_agree_a_cluster_counts_as_one_row(values, effective):
    found = one(values, list("aabbcc"))
    assert found.method == "wilson_by_cluster"
    assert found.ci95 == wilson(effective, 3)
    assert found.ci95.low < found.ci95.high
    assert found.n == 6


def test_a_difference_where_all_clusters_agree_falls_back_by_cluster_too():
    found = one([0, 0, 0, 0], list("aabb"), paired=True)
    assert (found.value, found.method, found.ci95) == (0.0, "agresti_min_by_cluster", agresti_min(0, 0, 2))
    uneven = one([1, 1, 1, -1, -1, -1, 0, 0, 0], ["a"] * 9, paired=True)
    assert (uneven.method, uneven.ci95) == ("agresti_min_by_cluster", agresti_min(1 / 3, 1 / 3, 1))


def test_a_metric_that_counts_nothing_is_absent():
    empty = ratio([0, 0], [False, False])
    table = estimates_from_ratios({"empty": empty, "full": ratio([1, 0])}, ["a", "b"])
    assert list(table) == ["full"]
    assert estimates_from_ratios({"empty": empty}, ["a", "b"]) == {}


def test_unscored_and_bounds_pass_through():
    found = one([1, 0], ["a", "b"], unscored=2, bounds=Interval(0.25, 0.75))
    assert (found.value, found.n, found.count, found.unscored, found.bounds) == (0.5, 2, 1, 2, (0.25, 0.75))


# --- paired_difference


def test_a_paired_difference_counts_pairs():
    first, second = np.array([1, 1, 0, 1], dtype=bool), np.array([0, 1, 1, 0], dtype=bool)
    found = paired_difference(first, second)
    assert (found.value, found.n, found.count) == (0.25, 4, 1)
    assert (found.method, found.ci95) == ("paired_agresti_min", agresti_min(2, 1, 4))
    assert paired_difference(first, second, ["a", "a", "b", "b"]).method == "cluster_bootstrap"


def test_a_paired_difference_needs_pairs():
    with pytest.raises(ValueError, match="3, 2"):
        paired_difference(np.ones(3, dtype=bool), np.ones(2, dtype=bool))
    with pytest.raises(ValueError, match="0, 0"):
        paired_difference(np.ones(0, dtype=bool), np.ones(0, dtype=bool))


# --- coverage on planted data


def test_on_independent_rows_wilson_covers_the_planted_rate():
    for n, p in [(100, 0.3), (400, 0.05), (40, 0.9)]:
        hits = np.random.default_rng(3).binomial(n, p, size=1000)
        inside = {k: (lambda i: i.low <= p <= i.high)(wilson(int(k), n)) for k in np.unique(hits)}
        assert 0.93 <= np.mean([inside[k] for k in hits]) <= 0.97, (n, p)


def correlated_hits(seeds: int, clusters: int, rows: int, rate: float, correlation: float) -> np.ndarray:
    """int [seeds, clusters, rows]: rows of one cluster are correlated, as versions of one problem are."""
    random = np.random.default_rng(4)
    strength = 1 / correlation - 1
    of_cluster = random.beta(rate * strength, (1 - rate) * strength, size=(seeds, clusters, 1))
    return (random.random((seeds, clusters, rows)) < of_cluster).astype(np.int64)


def test_on_788_clusters_of_5_the_bootstrap_covers_and_item_wise_wilson_does_not():
    hits = correlated_hits(seeds=500, clusters=788, rows=5, rate=0.3, correlation=0.2)
    item_wise = [wilson(int(k), 3940) for k in hits.sum(axis=(1, 2))]
    columns = hits.reshape(500, 3940).T
    clusters = [str(i // 5) for i in range(3940)]
    bootstrapped = Resamples(clusters, draws=2000).intervals(columns, np.ones_like(columns))
    assert 0.82 <= np.mean([i.low <= 0.3 <= i.high for i in item_wise]) <= 0.89
    assert 0.93 <= np.mean([i.low <= 0.3 <= i.high for i in bootstrapped]) <= 0.97


def test_the_bootstrap_covers_a_rate_over_part_of_each_cluster():
    hits = correlated_hits(seeds=500, clusters=150, rows=4, rate=0.4, correlation=0.3).reshape(500, 600).T
    counted = (np.random.default_rng(5).random((600, 500)) < 0.35).astype(np.int64)
    bootstrapped = Resamples([str(i // 4) for i in range(600)], draws=2000).intervals(hits * counted, counted)
    assert 0.92 <= np.mean([i.low <= 0.4 <= i.high for i in bootstrapped]) <= 0.97


@pytest.mark.parametrize(("n", "plus", "minus"), [(25, 0.5, 0.2), (60, 0.3, 0.1), (100, 0.05, 0.05), (100, 0.2, 0.2)])
def test_on_independent_pairs_agresti_min_covers_the_planted_difference(n, plus, minus):
    inside = 0.0  # exact: over every outcome of n pairs, not simulated
    for b in range(n + 1):
        for c in range(n + 1 - b):
            low, high = agresti_min(b, c, n)
            if low <= plus - minus <= high:
                ways = math.lgamma(n + 1) - math.lgamma(b + 1) - math.lgamma(c + 1) - math.lgamma(n - b - c + 1)
                logs = b * math.log(plus) + c * math.log(minus) + (n - b - c) * math.log(1 - plus - minus)
                inside += math.exp(ways + logs)
    assert 0.93 <= inside <= 0.975


def test_on_clustered_pairs_the_bootstrap_covers_the_planted_difference():
    detail = correlated_hits(seeds=400, clusters=200, rows=5, rate=0.5, correlation=0.2).reshape(400, 1000).T
    simple = correlated_hits(seeds=400, clusters=200, rows=5, rate=0.5, correlation=0.2).reshape(400, 1000).T
    simple = simple * (np.random.default_rng(8).random(simple.shape) < 0.8)  # 20% of what detail corrects is lost
    bootstrapped = Resamples([str(i // 5) for i in range(1000)], draws=2000).intervals(
        detail - simple, np.ones_like(detail)
    )
    assert 0.92 <= np.mean([i.low <= 0.1 <= i.high for i in bootstrapped]) <= 0.97
