"""Agreement of judges: textbook values, the libraries' values, brute force, and what its intervals claim."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from interbench_tasks.metrics.agreement import (
    Labels,
    agreement_of,
    cohens_kappa,
    estimates_from_coefficients,
    fleiss_kappa,
    krippendorffs_alpha,
    labels_from,
    raw_agreement,
)
from interbench_tasks.metrics.intervals import Estimate

X = None
FLEISS_1971 = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]
"""14 raters, 10 subjects, 5 categories, as the textbooks print it: kappa 0.210."""
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
    [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
]
"""4 observers, 12 units, with missing values: alpha 0.743 nominal, 0.815 ordinal."""


def value(coefficient, labels: Labels) -> Estimate | None:
    return estimates_from_coefficients({"it": coefficient}, labels.clusters, draws=50).get("it")


def random_rows(seed: int, *, missing: float = 0.0, n_labels: int = 4, n_items: int = 25, n_judges: int = 3):
    """Labels that agree more often than chance."""
    chance = random.Random(seed)
    rows = []
    for _ in range(n_items):
        truth = chance.randrange(n_labels)
        row = [truth if chance.random() < 0.6 else chance.randrange(n_labels) for _ in range(n_judges)]
        rows.append([None if chance.random() < missing else label for label in row])
    return rows


# --- known values ---------------------------------------------------------------------------------------------------


def test_fleiss_kappa_is_that_of_the_textbook():
    rows = [[label for label, count in enumerate(counts) for _ in range(count)] for counts in FLEISS_1971]
    labels = labels_from(rows)
    assert value(fleiss_kappa(labels), labels).value == pytest.approx(0.210, abs=5e-4)
    assert value(raw_agreement(labels), labels).value == pytest.approx(0.378, abs=5e-4)


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_krippendorffs_alpha_is_that_of_the_textbook(level, alpha):
    labels = labels_from(list(zip(*KRIPPENDORFF_2011, strict=True)))
    found = value(krippendorffs_alpha(labels, level), labels)
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert (found.n, found.unscored) == (11, 1), "the last unit has one label only"


def test_cohens_kappa_is_that_of_the_textbook():
    """50 grant proposals, two readers: both yes 20, both no 15, the first alone yes 5, the second alone 10."""
    rows = [["yes", "yes"]] * 20 + [["yes", "no"]] * 5 + [["no", "yes"]] * 10 + [["no", "no"]] * 15
    labels = labels_from(rows)
    assert value(cohens_kappa(labels, "judge 0", "judge 1"), labels).value == pytest.approx(0.4)


def test_three_judges_that_agree_half_the_time_on_coins_have_no_kappa_to_speak_of():
    rows = [list(row) for row in itertools.product("yn", repeat=3)]
    labels = labels_from(rows)
    found = agreement_of(labels, draws=50)
    assert found["raw_agreement"].value == pytest.approx(0.5)
    assert found["fleiss_kappa"].value == pytest.approx(0.0)


# --- the libraries' values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_fleiss_kappa_equals_that_of_statsmodels(seed):
    from statsmodels.stats.inter_rater import aggregate_raters
    from statsmodels.stats.inter_rater import fleiss_kappa as theirs

    rows = random_rows(seed, n_judges=2 + seed % 4)
    labels = labels_from(rows)
    assert value(fleiss_kappa(labels), labels).value == pytest.approx(theirs(aggregate_raters(np.array(rows))[0]))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("weights", "theirs"), [("plain", None), ("linear", "linear"), ("quadratic", "quadratic")])
def test_cohens_kappa_equals_that_of_scikit_learn(seed, weights, theirs):
    from sklearn.metrics import cohen_kappa_score

    rows = random_rows(seed)
    labels = labels_from(rows, categories=range(4), judges=["a", "b", "c"])
    one, other = [row[0] for row in rows], [row[2] for row in rows]
    expected = cohen_kappa_score(one, other, labels=[0, 1, 2, 3], weights=theirs)
    assert value(cohens_kappa(labels, "a", "c", weights), labels).value == pytest.approx(expected)


# --- brute force ------------------------------------------------------------------------------------------------------


def alpha_by_pairs(rows, distance) -> float:
    """Alpha as it is defined: disagreement of all pairs within units, over that of all pairs of pairable values."""
    units = [[label for label in row if label is not None] for row in rows]
    units = [unit for unit in units if len(unit) >= 2]
    pool = [label for unit in units for label in unit]
    within = sum(distance(a, b, pool) / (len(unit) - 1) for unit in units for a, b in itertools.permutations(unit, 2))
    across = sum(distance(a, b, pool) for a, b in itertools.permutations(pool, 2))
    return 1 - (within / len(pool)) / (across / (len(pool) * (len(pool) - 1)))


def nominal(a, b, pool) -> float:
    return float(a != b)


def ordinal(a, b, pool) -> float:
    low, high = min(a, b), max(a, b)
    between = sum(low <= label <= high for label in pool)
    return (between - (pool.count(low) + pool.count(high)) / 2) ** 2 if a != b else 0.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("level", "distance"), [("nominal", nominal), ("ordinal", ordinal)])
def test_alpha_equals_its_definition_pair_by_pair_also_with_missing_labels(seed, level, distance):
    rows = random_rows(seed, missing=0.3, n_judges=2 + seed % 3)
    labels = labels_from(rows, categories=range(5))  # a label that nobody used changes nothing
    found = value(krippendorffs_alpha(labels, level), labels)
    assert found.value == pytest.approx(alpha_by_pairs(rows, distance))


@pytest.mark.parametrize("seed", range(4))
def test_raw_agreement_equals_the_share_of_pairs(seed):
    rows = random_rows(seed, missing=0.3)
    shares = []
    for row in rows:
        pairs = list(itertools.combinations([label for label in row if label is not None], 2))
        if pairs:
            shares.append(sum(a == b for a, b in pairs) / len(pairs))
    labels = labels_from(rows)
    found = value(raw_agreement(labels), labels)
    assert found.value == pytest.approx(sum(shares) / len(shares))
    assert (found.n, found.unscored) == (len(shares), len(rows) - len(shares))


def test_what_a_judge_left_out_is_unscored_where_all_judges_are_needed():
    labels = labels_from([["y", "y", "n"], ["n", "n", None], ["n", None, None], ["y", "n", "n"]])
    found = agreement_of(labels, draws=50)
    assert (found["fleiss_kappa"].n, found["fleiss_kappa"].unscored) == (2, 2)
    assert (found["raw_agreement"].n, found["raw_agreement"].unscored) == (3, 1)
    assert (found["cohens_kappa.judge 0.judge 1"].n, found["cohens_kappa.judge 0.judge 1"].unscored) == (3, 1)
    assert all(estimate.bounds is None for estimate in found.values())


def test_an_estimate_is_the_same_for_any_order_of_items_and_any_names_of_categories():
    rows = random_rows(3, missing=0.2)
    turned = [[None if label is None else "abcd"[label] for label in row] for row in reversed(rows)]
    first, second = (agreement_of(labels_from(each), draws=50) for each in (rows, turned))
    assert {name: one.value for name, one in first.items()} == {name: one.value for name, one in second.items()}


# --- undefined ----------------------------------------------------------------------------------------------------


def test_where_all_labels_are_the_same_nothing_but_raw_agreement_is_defined():
    assert list(agreement_of(labels_from([["y", "y", "y"]] * 5), ordinal=True, draws=50)) == ["raw_agreement"]


def test_where_no_item_has_two_labels_nothing_is_defined():
    assert agreement_of(labels_from([["y", None], [None, "n"], [None, None]]), draws=50) == {}


def test_labels_of_judges_that_say_nothing_at_all_give_nothing():
    assert agreement_of(labels_from([[None, None]]), draws=50) == {}


# --- intervals ------------------------------------------------------------------------------------------------------


def test_an_interval_without_a_disagreement_has_a_width():
    """All ten items alike in both judges: the bootstrap collapses, and certainty would be a lie."""
    found = agreement_of(labels_from([["y", "y"]] * 5 + [["n", "n"]] * 5), draws=200)
    kappa = found["fleiss_kappa"]
    assert kappa.value == 1
    assert kappa.method == "wilson_by_agreement"
    assert kappa.ci95.high == 1
    assert 0 < kappa.ci95.low < 0.7
    assert found["raw_agreement"].ci95.low == pytest.approx(0.722, abs=1e-3), "Wilson's for 10 of 10"


def test_judges_that_always_disagree_are_below_chance():
    found = agreement_of(labels_from([["y", "n"], ["n", "y"]] * 5), draws=200)
    assert found["cohens_kappa.judge 0.judge 1"].value == pytest.approx(-1)
    low, high = found["fleiss_kappa"].ci95
    assert low <= -1 < high


def test_items_of_one_cluster_widen_the_interval():
    rows = random_rows(5, n_items=40) * 5
    alone = agreement_of(labels_from(rows), draws=1000)["fleiss_kappa"]
    together = agreement_of(labels_from(rows, clusters=[str(i % 40) for i in range(200)]), draws=1000)["fleiss_kappa"]
    assert (alone.method, together.method) == ("bootstrap", "cluster_bootstrap")
    assert alone.value == pytest.approx(together.value)
    assert together.ci95.high - together.ci95.low > 1.7 * (alone.ci95.high - alone.ci95.low)


def test_coefficients_are_shown_as_they_are_and_agreement_in_percent():
    found = agreement_of(labels_from(random_rows(1)), draws=50)
    assert found["raw_agreement"].points is None
    assert found["fleiss_kappa"].points == found["krippendorffs_alpha"].points == 1


@pytest.mark.parametrize("seed", range(3))
def test_planted_judges_have_the_kappa_that_theory_gives(seed):
    """Truth yes in 40%, each judge right in 90%: E[P] and P_e follow, and so does kappa."""
    chance = np.random.default_rng(seed)
    truth = chance.random(4000) < 0.4
    rows = [[bool(t) == bool(chance.random() < 0.9) for _ in range(3)] for t in truth]
    yes = 0.4 * 0.9 + 0.6 * 0.1
    theory = (0.82 - (yes**2 + (1 - yes) ** 2)) / (1 - yes**2 - (1 - yes) ** 2)
    found = agreement_of(labels_from([[int(v) for v in row] for row in rows]), draws=1000)["fleiss_kappa"]
    assert found.value == pytest.approx(theory, abs=0.04)
    assert found.ci95.low - 0.01 < theory < found.ci95.high + 0.01


@pytest.mark.slow
def test_ninety_five_percent_of_intervals_hold_the_true_kappa():
    yes = 0.4 * 0.9 + 0.6 * 0.1
    theory = (0.82 - (yes**2 + (1 - yes) ** 2)) / (1 - yes**2 - (1 - yes) ** 2)
    held = 0
    for seed in range(200):
        chance = np.random.default_rng(seed)
        truth = chance.random(200) < 0.4
        votes = (truth[:, None] == (chance.random((200, 3)) < 0.9)).astype(int)
        found = agreement_of(labels_from(votes.tolist()), draws=500)["fleiss_kappa"]
        held += found.ci95.low <= theory <= found.ci95.high
    assert 0.91 <= held / 200 <= 0.99


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([], {}, "need one row"),
        ([["y"]], {}, "two or more judges"),
        ([["y", "n"], ["y"]], {}, "two or more judges"),
        ([["y", "n"]], {"judges": ["a"]}, "a name of its own"),
        ([["y", "n"]], {"judges": ["a", "a"]}, "a name of its own"),
        ([["y", "n"]], {"clusters": []}, "0 clusters"),
        ([["y", "n"]], {"categories": ["y"]}, r"\['n'\] are not among"),
        ([["y", "n"]], {"categories": ["y", "n", "y"]}, "there twice"),
        ([["y", 1]], {}, "say `categories`"),
        ([[math.nan, 1.0]], {}, "None"),
    ],
)
def test_a_wrong_matrix_is_refused(rows, options, told):
    with pytest.raises(ValueError, match=told):
        labels_from(rows, **options)


def test_an_unknown_judge_is_refused():
    with pytest.raises(ValueError, match="there are: judge 0, judge 1"):
        cohens_kappa(labels_from([["y", "n"]]), "judge 0", "judge 7")
