"""Two tables in metrics that are made of ratios of sums: which rows are paired, and what comes of their parts."""

from __future__ import annotations

import numpy as np
import pytest

from interbench_tasks.hookspecs import Composed, ComposedMetrics, WeightedMetrics
from interbench_tasks.metrics.composed import Part, composed_pcq, made_from
from interbench_tasks.metrics.paired_sums import paired_from_sums
from interbench_tasks.metrics.ranking import rankings_from
from interbench_tasks.metrics.sums import Sums
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.ranked import ranked_runs
from tests.scored_runs import OwnValues, episode, run_of

NAN = float("nan")


def column(*cells):
    """Args: cells = (total, weight) of each row; None: not counted."""
    totals, weights = (np.array([0.0 if cell is None else float(cell[place]) for cell in cells]) for place in (0, 1))
    return Sums(totals=totals, squares=totals**2, counted=weights, graded=True)


def pairs(first, second, wanted, clusters=None):
    n = len(next(iter(first.values())).totals)
    return paired_from_sums(first, second, clusters or [str(row) for row in range(n)], wanted, draws=400)


# --- one part, and means ------------------------------------------------------------------------------------------


def test_a_part_is_a_ratio_of_sums_over_the_rows_that_both_count():
    first = {"x": column((1, 2), (0.5, 1), (3, 3), None)}
    second = {"x": column((0, 1), (2, 4), None, (1, 1))}
    found = pairs(first, second, {"x": Composed.of("x")})["x"]
    assert (found.first.value, found.second.value) == (pytest.approx(1.5 / 3), pytest.approx(2 / 5))
    assert found.difference.value == pytest.approx(0.1)
    assert (found.first.n, found.second.n, found.difference.n) == (3, 5, 2)


def test_a_mean_pairs_each_part_by_itself_and_needs_all():
    first = {"x": column((1, 1), None, (0, 1)), "y": column(None, (1, 2), None), "z": column((1, 1), None, None)}
    second = {"x": column((0, 1), None, (0, 1)), "y": column(None, (2, 2), None), "z": column(None, (1, 1), None)}
    wanted = {"xy": Composed.mean(("x", "y")), "xyz": Composed.mean(("x", "y", "z")), "y": Composed.of("y")}
    found = pairs(first, second, wanted)
    assert list(found) == ["xy", "y"]
    assert found["xy"].difference.value == pytest.approx((0.5 + (0.5 - 1)) / 2)
    assert found["xy"].difference.n == 3
    assert found["xy"].first.n == 2 + 2


def test_without_a_paired_row_there_is_nothing():
    assert pairs({"x": column((1, 1), None)}, {"x": column(None, (1, 1))}, {"x": Composed.of("x")}) == {}


# --- other functions of parts -------------------------------------------------------------------------------------


def test_a_function_of_parts_that_count_by_themselves_is_made_of_each_ones_paired_rows():
    first = {"x": column((1, 1), (0, 1), (1, 1)), "y": column(None, (1, 4), (1, 1))}
    second = {"x": column((1, 1), (1, 1), None), "y": column((1, 1), (2, 4), (0, 1))}
    how = Composed(parts=("x", "y"), make=lambda x, y: x * y)
    found = pairs(first, second, {"product": how})["product"]
    assert found.first.value == pytest.approx((1 / 2) * (2 / 5))
    assert found.second.value == pytest.approx((2 / 2) * (2 / 5))
    assert found.difference.n == 3
    assert found.first.n == 2 + 5


def test_pcq_counts_where_detection_does_and_is_zero_for_a_run_that_detected_nothing():
    both = [(1, 1), (1, 1), (0, 1), (1, 1)]
    first = {"eda": column(*both), "dp": column((2, 1), (1, 1), None, None), "se": column((2, 1), None, None, None)}
    second = {"eda": column(*[(0, 1)] * 3, None), "dp": column(*[None] * 4), "se": column(*[None] * 4)}
    found = pairs(first, second, {"pcq": composed_pcq("", "arithmetic")})["pcq"]
    assert found.first.value == pytest.approx(2 / 3 * (1.5 / 2 + 2 / 2) / 2)  # of the first three rows
    assert found.second.value == 0
    assert (found.difference.n, found.first.n, found.second.n) == (3, 3, 3)
    assert found.second.ci95 is None  # every draw says 0
    assert found.difference.ci95 is not None


def test_rows_of_one_cluster_are_drawn_together_in_a_function_of_parts():
    rng = np.random.default_rng(3)
    rows = [[(int(x), 1) for x in rng.integers(0, 2, 40)] for _ in range(2)]
    first, second = ({"x": column(*np.repeat(own, 5, axis=0)), "y": column(*[(1, 1)] * 200)} for own in rows)
    how = {"it": Composed(parts=("x", "y"), make=lambda x, y: x * y, by_first=True)}
    alone = pairs(first, second, how)["it"].difference.ci95
    together = pairs(first, second, how, [str(row // 5) for row in range(200)])["it"].difference.ci95
    assert together.high - together.low > 1.8 * (alone.high - alone.low)


# --- several models -----------------------------------------------------------------------------------------------


def test_parts_of_models_are_exact_ratios_and_a_missing_one_makes_no_mean():
    x = Part(totals=np.array([[15.0, 0], [6, 4], [0, 0]]), weights=np.array([[3.0, 1], [3, 1], [0, 0]]))
    y = Part.of_values(np.array([[1.0, NAN], [0, 1], [1, 1]]))
    assert x.ratios()[:2].tolist() == [15 / 4, 10 / 4]
    assert y.ratios().tolist() == [1, 0.5, 1]
    made = made_from({"x": x, "y": y}, Composed.mean(("x", "y")))
    assert made[:2].tolist() == [(15 / 4 + 1) / 2, (10 / 4 + 0.5) / 2]
    assert np.isnan(made[2])
    ranking = rankings_from(
        {}, ["a", "b", "c"], further={"x": x, "y": y}, composed={"xy": Composed.mean(("x", "y"))}, of=["xy"], draws=50
    )
    assert list(ranking) == ["xy"]
    assert [(row.model, row.n) for row in ranking["xy"].models] == [("a", 5), ("b", 6)]
    assert ranking["xy"].left_out == ("c",)


# --- a stranger's metric set ------------------------------------------------------------------------------------------


class Sized(OwnValues):
    """`both` = rate * mean size; an episode that was not right has no size."""

    def composites(self):
        return {"both": Composed(parts=("rate", "size"), make=lambda rate, size: rate * size, by_first=True)}

    def table(self, summaries):
        found = super().table(summaries)
        return found | {"both": found["rate"]}


def test_a_strangers_composite_without_weights_is_paired_and_ranked_by_means_of_contributions():
    runs = [
        run_of("a", [episode(0, rate=1, size=0.5), episode(1, rate=0), episode(2, rate=1)], metric_set=Sized()),
        run_of("b", [episode(0, rate=1, size=0.9), episode(1, rate=None), episode(2, rate=0)], metric_set=Sized()),
    ]
    assert isinstance(Sized(), ComposedMetrics)
    assert not isinstance(Sized(), WeightedMetrics)
    comparison = compared(runs, ["both", "rate"])
    (pair,) = [one for one in comparison.pairs if one.metric == "both"]
    assert (pair.first.value.value, pair.second.value.value) == (pytest.approx(1 * 0.5), pytest.approx(0.5 * 0.9))
    assert (pair.n, pair.weighted, pair.first.n_not_scored) == (2, False, 1)
    ranking = {one.metric: one for one in ranked_runs(comparison, runs).rankings}
    assert list(ranking) == ["rate", "both"]
    # Each over its own episodes: b lacks one.
    values = [(row.model, row.value, row.n) for row in ranking["both"].models]
    assert values == [("b", pytest.approx(0.45), 2), ("a", pytest.approx(2 / 3 * 0.5), 3)]
