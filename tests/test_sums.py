"""Means over questions from sums by conversation: the same numbers as from the single rows."""

from __future__ import annotations

import numpy as np
import pytest

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Ratio, estimates_from_ratios
from interbench_tasks.metrics.sums import Sums, estimates_from_sums, mean_of_scored

FIVE = Interval(0, 5)


def summed(values, clusters, **changes):
    """The rows of each cluster as one row of sums."""
    names = sorted(set(clusters))
    of = {name: [value for value, cluster in zip(values, clusters, strict=True) if cluster == name] for name in names}
    arrays = {
        "totals": np.array([sum(of[name]) for name in names], dtype=np.float64),
        "squares": np.array([sum(value**2 for value in of[name]) for name in names], dtype=np.float64),
        "counted": np.array([len(of[name]) for name in names], dtype=np.int64),
    }
    return Sums(**arrays, **changes), names


@pytest.mark.parametrize("n_clusters", [8, 40])
def test_successes_have_the_intervals_of_single_rows(n_clusters):
    rng = np.random.default_rng(0)
    clusters = [f"{number % n_clusters:02d}" for number in range(40)]
    values = rng.integers(0, 2, 40)
    ratio = Ratio(values=values, counted=np.ones(40, dtype=np.bool_))
    single = estimates_from_ratios({"a": ratio}, clusters)["a"]
    column, names = summed(values.tolist(), clusters)
    together = estimates_from_sums({"a": column}, names)["a"]
    assert together.ci95 == pytest.approx(single.ci95)
    assert (together.value, together.n, together.count, together.method) == (
        single.value,
        single.n,
        single.count,
        single.method,
    )


@pytest.mark.parametrize(("n_clusters", "method"), [(8, "cluster_bootstrap"), (40, "t")])
def test_fractions_have_the_intervals_of_single_rows(n_clusters, method):
    rng = np.random.default_rng(1)
    clusters = [f"{number % n_clusters:02d}" for number in range(40)]
    values = rng.random(40)
    ratio = Ratio(values=values, counted=np.ones(40, dtype=np.bool_), graded=True)
    single = estimates_from_ratios({"a": ratio}, clusters)["a"]
    column, names = summed(values.tolist(), clusters, graded=True)
    together = estimates_from_sums({"a": column}, names)["a"]
    assert (together.method, single.method) == (method, method)
    assert together.value == pytest.approx(single.value)
    assert together.ci95 == pytest.approx(single.ci95)


def test_scores_are_five_times_the_shares():
    values = [5, 4, 0, 3, 3, 1]
    points = mean_of_scored(values, span=FIVE, points=5)
    shares = mean_of_scored([value / 5 for value in values], span=Interval(0, 1), points=1)
    assert points.value == pytest.approx(5 * shares.value)
    assert points.ci95 == pytest.approx([5 * end for end in shares.ci95])


def test_an_interval_of_a_difference_lies_within_what_differences_can_be():
    found = mean_of_scored([-5, -5, -4, -5], span=Interval(-5, 5), points=5)
    assert (found.value, found.ci95.low) == (-4.75, -5)
    same = mean_of_scored([-5, -5, -5], span=Interval(-5, 5), points=5)
    assert same.method == "wilson"
    assert same.ci95.low == -5
    assert same.ci95.high > -1


def test_bounds_are_reached_by_the_outcomes_that_the_unscored_may_have():
    found = mean_of_scored([4, None, 2, None], span=FIVE, points=5)
    assert found.bounds == ((4 + 2 + 0 + 0) / 4, (4 + 2 + 5 + 5) / 4)
    assert (found.n, found.unscored, found.count) == (2, 2, None)


def test_without_a_known_scale_there_is_a_mean_and_no_interval():
    found = mean_of_scored([4, None, 2])
    assert (found.value, found.n, found.unscored, found.ci95, found.bounds) == (3, 2, 1, None, None)
    assert mean_of_scored([None, None]) is None
    assert mean_of_scored([], span=FIVE) is None


def test_a_mean_of_means_has_no_weights():
    a, _ = summed([1.0] * 9, list("abcabcabc"), graded=True, span=FIVE, points=5.0)
    b, names = summed([3.0] * 3, list("abc"), graded=True, span=FIVE, points=5.0)
    found = estimates_from_sums({"a": a, "b": b}, names, means={"m": ("a", "b")})
    assert (found["m"].value, found["m"].n, found["m"].points) == (2, 12, 5)
    assert found["m"].method == "mean_of_intervals"
    assert list(found) == ["a", "b", "m"]


def test_intervals_are_the_same_again():
    rng = np.random.default_rng(2)
    values, clusters = rng.random(60).tolist(), [str(n % 12) for n in range(60)]
    column, names = summed(values, clusters, graded=True)
    assert estimates_from_sums({"a": column}, names) == estimates_from_sums({"a": column}, names)
    assert estimates_from_sums({"a": column}, names, seed=1) != estimates_from_sums({"a": column}, names)
