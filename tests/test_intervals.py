"""Intervals: known values, planted coverage, and what happens where a method has nothing to work with."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from interbench_tasks.metrics.intervals import (
    Contrast,
    Estimate,
    Interval,
    Ratio,
    Resamples,
    agresti_min,
    cluster_bootstrap,
    estimates_from_ratios,
    newcombe,
    paired_difference,
    student,
    wilson,
)


def ratio(values, counted=None, **fields):
    values = np.asarray(values, dtype=np.int64)
    counted = np.ones(len(values), dtype=bool) if counted is None else np.asarray(counted, dtype=bool)
    return Ratio(values=values, counted=counted, **fields)


def graded(values):
    return Ratio(values=np.asarray(values, dtype=float), counted=np.ones(len(values), dtype=bool), graded=True)


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


# --- Newcombe


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [  # Newcombe (1998), Table II, method 10: rows (a) to (h)
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((6, 7, 2, 7), 0.0582, 0.8062),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((0, 10, 0, 10), -0.2775, 0.2775),
        ((10, 10, 0, 20), 0.6791, 1.0000),
        ((10, 10, 0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombe_equals_the_papers_table(counts, low, high):
    assert tuple(round(end, 4) for end in newcombe(*counts)) == (low, high)


def test_newcombe_is_made_of_two_wilson_intervals_also_for_fractions():
    for k, n, j, m in [(3, 9, 2, 5), (1.5, 4, 0.25, 7)]:
        one, other, d = wilson(k, n), wilson(j, m), k / n - j / m
        low = d - math.hypot(k / n - one.low, other.high - j / m)
        high = d + math.hypot(one.high - k / n, j / m - other.low)
        assert newcombe(k, n, j, m) == pytest.approx((low, high), abs=1e-12)
    assert newcombe(3, 9, 2, 5, level=0.5).low > newcombe(3, 9, 2, 5).low


@pytest.mark.parametrize("counts", [(0, 0, 1, 2), (1, 2, 0, 0), (3, 2, 0, 1), (0, 1, -1, 2)])
def test_newcombe_refuses_impossible_counts(counts):
    with pytest.raises(ValueError, match=f"got {counts[0]}/{counts[1]} and {counts[2]}/{counts[3]}"):
        newcombe(*counts)


# --- Student's t


def test_student_equals_a_table_of_t():
    # 2.262 is the 97.5% point of t with 9 degrees of freedom.
    assert student(0.5, 0.2, 10) == pytest.approx((0.5 - 2.262 * 0.2 / 10**0.5, 0.5 + 2.262 * 0.2 / 10**0.5), abs=1e-4)


def test_student_stays_in_range_and_one_value_tells_nothing():
    assert student(0.9, 0.4, 3) == (pytest.approx(0.0), 1.0)
    assert student(0.3, 0.0, 1) == (0.0, 1.0)
    with pytest.raises(ValueError, match="got 0"):
        student(0.3, 0.1, 0)


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


# --- means of fractions


def test_a_mean_of_fractions_gets_t_or_the_bootstrap():
    values = [0.25, 0.5, 1.0, 0.25]
    found = estimates_from_ratios({"m": graded(values)}, list("abcd"))["m"]
    assert (found.value, found.n, found.count, found.method) == (0.5, 4, None, "t")
    assert found.ci95 == pytest.approx(student(0.5, float(np.std(values, ddof=1)), 4))
    clustered = estimates_from_ratios({"m": graded(values)}, list("aabc"))["m"]
    assert clustered.method == "cluster_bootstrap"
    assert clustered.ci95 == cluster_bootstrap(np.array(values), np.ones(4), list("aabc"))


def test_equal_fractions_leave_nothing_to_be_unsure_of():
    for clusters in (list("abc"), list("aab"), list("aaa")):
        found = estimates_from_ratios({"m": graded([1 / 3] * 3)}, clusters)["m"]
        assert (found.value, found.ci95, found.method) == (pytest.approx(1 / 3), (1 / 3, 1 / 3), "constant")


def test_equal_clusters_of_different_fractions_count_as_one_value_each():
    values = [1 / 3, 1 / 7, 1 / 7, 1 / 3, 1 / 3, 1 / 7]
    found = estimates_from_ratios({"m": graded(values)}, list("aabbcc"))["m"]
    assert found.method == "t_by_cluster"
    assert found.ci95 == pytest.approx(student(5 / 21, float(np.std(values, ddof=1)), 3))
    assert estimates_from_ratios({"m": graded(values)}, ["a"] * 6)["m"].ci95 == (0.0, 1.0)


def test_a_mean_of_fractions_is_the_same_for_any_order():
    values = np.random.default_rng(0).choice([1 / 3, 1 / 4, 1 / 7, 1 / 9], 200)
    first = estimates_from_ratios({"m": graded(values)}, [str(i) for i in range(200)])["m"]
    other = estimates_from_ratios({"m": graded(values[::-1])}, [str(i) for i in range(200)])["m"]
    assert first == other


# --- contrasts


def contrast(first, second, clusters, **fields):
    """The difference of two proportions; None in a column: not counted."""
    sides = {}
    for name, column in (("one", first), ("other", second)):
        counted = [value is not None for value in column]
        sides[name] = ratio([value or 0 for value in column], counted, **fields.get(name, {}))
    return estimates_from_ratios(sides, clusters, contrasts={"c": Contrast(first="one", second="other")}).get("c")


N = None


def test_a_contrast_of_independent_rows_gets_newcombe():
    found = contrast([1, 1, 0, N, N], [N, N, N, 0, 1], list("abcde"))
    assert (found.value, found.n, found.unscored, found.bounds) == (pytest.approx(2 / 3 - 1 / 2), 5, 0, None)
    assert (found.method, found.ci95, found.count) == ("newcombe", newcombe(2, 3, 1, 2), None)


def test_a_contrast_whose_sides_share_clusters_gets_the_bootstrap_of_the_difference():
    first, second = [1, N, 0, N, 1, N, 1, N], [N, 0, N, 1, N, 1, N, 0]
    clusters = list("aabbccdd")
    found = contrast(first, second, clusters)
    draws = np.random.default_rng(0).integers(0, 4, size=(10_000, 4))
    one, other = np.array([1, 0, 1, 1]), np.array([0, 1, 1, 0])
    expected = np.quantile(one[draws].mean(axis=1) - other[draws].mean(axis=1), [0.025, 0.975])
    assert (found.value, found.method) == (0.25, "cluster_bootstrap")
    assert found.ci95 == pytest.approx(tuple(expected))


def test_draws_that_miss_one_side_are_skipped():
    found = contrast([1, 0, 1, 0, 1, N], [N, N, N, N, N, 1], ["a", "b", "b", "c", "c", "d"])
    assert found.method == "cluster_bootstrap"
    assert -1 <= found.ci95.low < found.ci95.high <= 0


def test_where_all_clusters_agree_each_side_counts_its_clusters():
    found = contrast([1, N, 1, N, 1, N], [N, 0, N, 0, N, 0], list("aabbcc"))
    assert (found.value, found.method, found.ci95) == (1.0, "newcombe_by_cluster", newcombe(3, 3, 0, 3))
    found = contrast([1, 1, 1, 1, N, N], [N, N, N, N, 0, 0], list("aabbcc"))
    assert (found.value, found.method, found.ci95) == (1.0, "newcombe_by_cluster", newcombe(2, 2, 0, 1))
    found = contrast([0, 0, 0, N], [N, N, N, 0], list("aabc"))
    assert (found.method, found.ci95) == ("newcombe_by_cluster", newcombe(0, 2, 0, 1))


def test_a_contrast_knows_the_extremes_of_both_sides():
    found = contrast([1, N], [N, 0], ["a", "b"], one={"unscored": 2, "bounds": Interval(1 / 3, 1)})
    assert (found.unscored, found.bounds) == (2, (1 / 3, 1))
    both = {"one": {"unscored": 1, "bounds": Interval(0.5, 1)}, "other": {"unscored": 1, "bounds": Interval(0, 0.5)}}
    found = contrast([1, N], [N, 0], ["a", "b"], **both)
    assert (found.unscored, found.bounds) == (2, (0, 1))


def test_a_contrast_without_one_of_its_sides_is_absent():
    assert contrast([1, 0], [N, N], ["a", "b"]) is None
    assert contrast([N, N], [1, 0], ["a", "b"]) is None


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


@pytest.mark.parametrize(
    ("n", "p", "m", "q"), [(60, 0.3, 40, 0.1), (40, 0.5, 25, 0.5), (100, 0.05, 50, 0.2), (30, 0.9, 30, 0.6)]
)
def test_on_independent_rows_newcombe_covers_the_planted_contrast(n, p, m, q):
    ways = [
        np.array([math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in range(size + 1)])
        for size, rate in ((n, p), (m, q))
    ]
    chances = np.outer(*ways)  # exact, but for outcomes that are as good as impossible
    inside = 0.0
    for k, j in np.argwhere(chances > 1e-6):
        low, high = newcombe(k, n, j, m)
        inside += chances[k, j] if low <= p - q <= high else 0.0
    assert 0.93 <= inside <= 0.98


def clustered_contrasts(seeds: int, clusters: int, rows: int, *, shared: float, mixed: bool) -> dict[str, Ratio]:
    """Tables of one run each: some rows are in the first set, some in the second.

    The planted rates are 0.5 and 0.2. `shared` in (0, 1): how alike the rows of a cluster are. `mixed`: every cluster
    has rows of both sets, else a cluster belongs to one of them.
    """
    random = np.random.default_rng(11)
    strength = 1 / shared - 1
    of_cluster = random.beta(0.5 * strength, 0.5 * strength, size=(seeds, clusters, 1))
    kind = random.choice(3, p=[0.4, 0.25, 0.35], size=(seeds, clusters, rows if mixed else 1))
    kind = np.broadcast_to(kind, (seeds, clusters, rows))
    hits = random.random(kind.shape) < np.where(kind == 1, 0.4 * of_cluster, of_cluster)
    tables = {}
    for seed in range(seeds):
        for side, name in ((0, "one"), (1, "other")):
            counted = kind[seed].ravel() == side
            tables[f"{name} {seed}"] = Ratio(values=(hits[seed].ravel() & counted).astype(np.int64), counted=counted)
    return tables


@pytest.mark.parametrize("mixed", [True, False])
def test_on_clustered_rows_the_bootstrap_covers_the_planted_contrast(mixed):
    seeds = 400
    ratios = clustered_contrasts(seeds, clusters=150, rows=5, shared=0.4, mixed=mixed)
    pairs = {str(seed): Contrast(first=f"one {seed}", second=f"other {seed}") for seed in range(seeds)}
    found = estimates_from_ratios(ratios, [str(i // 5) for i in range(750)], contrasts=pairs, draws=1000)
    estimates = [found[str(seed)] for seed in range(seeds)]
    assert {estimate.method for estimate in estimates} == {"cluster_bootstrap"}
    assert np.mean([e.value for e in estimates]) == pytest.approx(0.3, abs=0.01)
    assert 0.92 <= np.mean([e.ci95.low <= 0.3 <= e.ci95.high for e in estimates]) <= 0.98
    sides = [(ratios[f"one {seed}"], ratios[f"other {seed}"]) for seed in range(seeds)]
    naive = [newcombe(a.count, a.n, b.count, b.n) for a, b in sides]
    covered = np.mean([i.low <= 0.3 <= i.high for i in naive])
    assert mixed or covered < 0.85, "rows that were taken for independent claim too much"


def test_on_clusters_a_difference_of_arms_covers_what_was_planted():
    """The table's own way: 300 runs, 120 problems of 5 versions, arms of one receiver."""
    right = correlated_hits(seeds=300, clusters=120, rows=5, rate=0.5, correlation=0.3).reshape(300, 600)
    kept = np.random.default_rng(12).random(right.shape) < 0.7
    lucky = np.random.default_rng(13).random(right.shape) < 0.1
    placebo = np.where(right == 1, kept, lucky).astype(np.int64)  # 0.5 * 0.7 + 0.5 * 0.1 = 0.4
    ratios = {str(seed): ratio(right[seed] - placebo[seed], paired=True) for seed in range(300)}
    found = estimates_from_ratios(ratios, [str(i // 5) for i in range(600)], draws=1000)
    assert 0.92 <= np.mean([e.ci95.low <= 0.1 <= e.ci95.high for e in found.values()]) <= 0.98


def test_on_clusters_the_mean_of_fractions_is_covered():
    """Problems of one data set have 3 to 5 options; their versions have as many."""
    random = np.random.default_rng(14)
    floors = np.array([1 / 2, 1 / 3, 1 / 4])[random.choice(3, p=[0.2, 0.5, 0.3], size=(300, 100, 1))]
    true = 0.2 / 2 + 0.5 / 3 + 0.3 / 4
    ratios = {}
    for seed in range(300):
        counted = random.random((100, 4)).ravel() < 0.5
        values = np.where(counted, np.repeat(floors[seed], 4, axis=1).ravel(), 0.0)
        ratios[str(seed)] = Ratio(values=values, counted=counted, graded=True)
    found = estimates_from_ratios(ratios, [str(i // 4) for i in range(400)], draws=1000)
    assert 0.92 <= np.mean([e.ci95.low <= true <= e.ci95.high for e in found.values()]) <= 0.98
