"""Agreement of numbers: equal to weighted kappa where they are labels, and defined between the labels too."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from interbench_tasks.metrics.agreement import cohens_kappa, estimates_from_coefficients, labels_from
from interbench_tasks.metrics.score_agreement import concordance, exact_agreement


def value(coefficient) -> float | None:
    clusters = [str(row) for row in range(len(coefficient.counted))]
    found = estimates_from_coefficients({"it": coefficient}, clusters, draws=50).get("it")
    return None if found is None else found.value


@pytest.mark.parametrize("seed", range(5))
def test_of_whole_numbers_concordance_is_kappa_with_quadratic_weights(seed):
    dice = random.Random(seed)
    pairs = [(dice.randint(0, 5), dice.randint(0, 5)) for _ in range(40)]
    labels = labels_from(pairs, judges=("x", "y"), categories=range(6))
    ours = value(concordance(*zip(*pairs, strict=True)))
    assert ours == pytest.approx(value(cohens_kappa(labels, "x", "y", "quadratic")))


def test_of_any_numbers_it_is_lins_coefficient():
    random_ = np.random.default_rng(1)
    x = random_.normal(size=200)
    y = 0.7 * x + 0.3 + 0.2 * random_.normal(size=200)
    lins = 2 * np.cov(x, y, bias=True)[0, 1] / (x.var() + y.var() + (x.mean() - y.mean()) ** 2)
    assert value(concordance(list(x), list(y))) == pytest.approx(lins)


def test_a_shift_lowers_it_although_the_order_is_the_same():
    assert value(concordance([1, 2, 3, 4], [1, 2, 3, 4])) == 1
    assert value(concordance([1, 2, 3, 4], [2, 3, 4, 5])) < 0.9


def test_it_is_undefined_where_all_say_the_same():
    assert value(concordance([2, 2, 2], [2, 2, 2])) is None


def test_missing_numbers_are_left_out_and_counted_as_unscored():
    coefficient = concordance([1, None, 3, 2], [1, 2, None, 1])
    assert coefficient.counted.tolist() == [True, False, False, True]
    found = estimates_from_coefficients({"it": coefficient}, list("abcd"), draws=50)["it"]
    assert (found.n, found.unscored) == (2, 2)


def test_nothing_at_all_is_undefined():
    assert value(concordance([None], [1])) is None
    assert value(exact_agreement([None], [1])) is None


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [(2, 2, 1), (2, 1, 0), (2, 1.67, 1), (2, 1.5, 0), (1, 1.5, 0), (1, 1.33, 1), (0, 0.49, 1)],
)
def test_a_mean_agrees_with_the_label_next_to_it_and_halfway_with_none(first, second, same):
    assert value(exact_agreement([first], [second])) == same


def test_it_is_a_share_with_an_interval():
    found = estimates_from_coefficients(
        {"it": exact_agreement([1, 2, 3, 4] * 20, [1, 2, 3, 0] * 20)}, [str(i) for i in range(80)]
    )["it"]
    assert found.value == 0.75
    assert found.points is None
    half = 1.96 * math.sqrt(0.75 * 0.25 / 80)
    assert found.ci95 == pytest.approx((0.75 - half, 0.75 + half), abs=0.02)


def test_lists_of_different_length_are_refused():
    with pytest.raises(ValueError, match="1 and 2"):
        concordance([1], [1, 2])
