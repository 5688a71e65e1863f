"""A panel's rate corrected by people's labels: values, coverage by simulation, and what is refused."""

from __future__ import annotations

import builtins
import math

import numpy as np
import pytest

from interbench_tasks.metrics.calibration import CalibrationError, Said, corrected_mean
from tests.simulated_labels import Sampled, drawn, sampled

STRATA = 12
SEEDS = 1000
ppi_py = pytest.importorskip("ppi_py", reason="the extra `calibration` is not installed")


def corrected(data: Sampled, **options):
    return corrected_mean(data.judge, data.people, strata=data.strata, **options)


def said(values, counts=None) -> Said:
    return Said.from_values(values, counts)


# --- the value --------------------------------------------------------------------------------------------------------


def test_the_value_is_the_librarys_with_a_weight_for_each_stratum():
    random = np.random.default_rng(3)
    data = sampled(random, [0.1, 0.5, 0.7], n=900, each=20)
    found = corrected(data)
    y, f = data.truth[data.labelled], data.panel[data.labelled]
    weights = np.full(60, 300 / 900 / 20)
    library = ppi_py.ppi_mean_pointestimate(y, f, data.panel, lam=found.trust, w=weights)
    assert found.estimate.value == pytest.approx(library.item())
    assert (found.estimate.n, found.n_labelled, found.estimate.unscored) == (900, 60, 0)


def test_the_value_is_the_formula_where_strata_are_labelled_unevenly():
    random = np.random.default_rng(4)
    data = sampled(random, [0.1, 0.6], n=400, each=40)
    fewer = data.labelled & ~((data.strata == "1") & (np.cumsum(data.labelled) % 2 == 0))
    data = Sampled(truth=data.truth, panel=data.panel, strata=data.strata, labelled=fewer)
    found = corrected(data)
    parts = []
    for stratum in ("0", "1"):
        inside = data.strata == stratum
        labelled = inside & fewer
        by_panel, of_both = data.panel[inside].mean(), data.truth[labelled].mean()
        parts.append(of_both + found.trust * (by_panel - data.panel[labelled].mean()))
    assert found.estimate.value == pytest.approx(np.mean(parts))


def test_panels_that_overrate_are_pulled_down_and_those_that_underrate_up():
    random = np.random.default_rng(5)
    over = sampled(random, [0.3] * 4, n=2000, each=60, sensitivity=1.0, specificity=0.7)
    under = sampled(random, [0.3] * 4, n=2000, each=60, sensitivity=0.5, specificity=1.0)
    for data, sign in ((over, -1), (under, 1)):
        found = corrected(data).estimate
        assert np.sign(found.value - data.panel.mean()) == sign
        assert found.ci95.low <= data.truth.mean() <= found.ci95.high
        assert not found.ci95.low <= data.panel.mean() <= found.ci95.high


def test_a_panel_without_use_is_not_trusted_and_labels_speak_alone():
    random = np.random.default_rng(6)
    data = sampled(random, [0.4] * 3, n=900, each=50, sensitivity=0.5, specificity=0.5)
    against = Sampled(truth=data.truth, panel=1 - data.truth, strata=data.strata, labelled=data.labelled)
    found = corrected(against)
    assert found.trust == 0
    assert found.estimate.value == pytest.approx(data.truth[data.labelled].mean())


def test_a_stratum_that_is_labelled_in_full_has_no_say_in_how_far_judges_are_trusted():
    """There nothing is left to predict, so it does not matter that the panel is always wrong in it."""
    random = np.random.default_rng(22)
    data = sampled(random, [0.4], n=1000, each=100, sensitivity=0.97, specificity=0.97)
    wrong = random.random(100) < 0.5
    joined = Sampled(
        truth=np.concatenate([data.truth, wrong]),
        panel=np.concatenate([data.panel, ~wrong]),
        strata=np.array(["a"] * 1000 + ["b"] * 100),
        labelled=np.concatenate([data.labelled, np.ones(100, dtype=bool)]),
    )
    assert corrected(joined).trust == pytest.approx(corrected(data).trust)


def test_good_judges_make_the_labels_worth_more_than_they_are():
    random = np.random.default_rng(7)
    good = corrected(sampled(random, [0.4] * 4, n=3000, each=40, sensitivity=0.95, specificity=0.97))
    poor = corrected(sampled(random, [0.4] * 4, n=3000, each=40, sensitivity=0.6, specificity=0.6))
    assert good.worth > 3 * 160 > poor.worth > 0.8 * 160
    width = [found.estimate.ci95.high - found.estimate.ci95.low for found in (good, poor)]
    assert width[0] < 0.6 * width[1]


def test_where_all_items_are_labelled_it_is_peoples_own_rate():
    random = np.random.default_rng(8)
    data = sampled(random, [0.2, 0.8], n=100, each=50)
    found = corrected(data)
    assert found.estimate.value == pytest.approx(data.truth.mean())
    assert found.estimate.ci95.high - found.estimate.ci95.low < 0.25
    within = np.mean([data.truth[data.strata == stratum].var(ddof=1) for stratum in ("0", "1")])
    assert found.worth == pytest.approx(100 * data.truth.var() / within)


def test_the_order_of_items_does_not_matter():
    data = sampled(np.random.default_rng(9), [0.2, 0.5, 0.5], n=600, each=30)
    turned = np.random.default_rng(1).permutation(600)
    other = Sampled(
        truth=data.truth[turned],
        panel=data.panel[turned],
        strata=data.strata[turned],
        labelled=data.labelled[turned],
    )
    one, two = corrected(data).estimate, corrected(other).estimate
    assert one.value == pytest.approx(two.value)
    assert one.ci95 == pytest.approx(two.ci95)


def test_scores_are_corrected_on_their_own_scale():
    random = np.random.default_rng(10)
    truth = random.integers(0, 6, 800).astype(float)
    panel = np.clip(truth + random.integers(0, 3, 800), 0, 5)
    labelled = drawn(random, np.arange(800) % 4, 25)
    data = Sampled(truth=truth, panel=panel, strata=(np.arange(800) % 4).astype(str), labelled=labelled)
    found = corrected(data, span=(0, 5), step=1, points=5.0)
    assert found.estimate.points == 5
    assert found.estimate.ci95.low <= truth.mean() <= found.estimate.ci95.high < panel.mean()
    tenth = Sampled(truth=truth / 5, panel=panel / 5, strata=data.strata, labelled=labelled)
    share = corrected(tenth, step=0.2).estimate
    assert [5 * share.value, *(5 * end for end in share.ci95)] == pytest.approx(
        [found.estimate.value, *found.estimate.ci95]
    )


def test_a_mean_over_the_detected_items_is_corrected_for_what_is_detected_too():
    """People detect more than the panel, and diagnose what only they detect with 0."""
    random = np.random.default_rng(11)
    detected = random.random(2000) < 0.5
    by_panel = detected & (random.random(2000) < 0.6)
    panel = Said(values=np.where(by_panel, 2.0, 0.0), counts=by_panel, known=np.ones(2000, dtype=bool))
    chosen = drawn(random, np.arange(2000) % 4, 50)
    people = Said(values=np.where(by_panel & chosen, 2.0, 0.0), counts=detected & chosen, known=chosen)
    found = corrected_mean(
        panel, people, strata=(np.arange(2000) % 4).astype(str), span=(0, 2), step=1, points=2.0
    ).estimate
    truth = 2.0 * by_panel.sum() / detected.sum()
    assert found.ci95.low <= truth <= found.ci95.high
    assert found.ci95.high < 2.0, "which is what the panel says"


# --- the interval -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.05, 0.33, 0.9])
def test_the_interval_holds_the_true_rate_as_often_as_it_says(rate):
    """N = 3,146, 180 labelled in 12 strata, sensitivity 0.8, specificity 0.95."""
    random = np.random.default_rng(round(1000 * rate))
    hits, errors = 0, []
    for _ in range(SEEDS):
        found = corrected(sampled(random, [rate] * STRATA)).estimate
        hits += found.ci95.low <= rate <= found.ci95.high
        errors.append(found.value - rate)
    assert 0.93 <= hits / SEEDS <= 0.97
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / math.sqrt(SEEDS) + 0.002, "hardly any bias"


def test_the_normal_interval_of_the_library_would_not_at_a_low_rate():
    """Why the library's own interval is not taken; it has no strata, so the rate is the same in all of them here."""
    random = np.random.default_rng(50)
    hits = 0
    for _ in range(SEEDS):
        data = sampled(random, [0.05] * STRATA)
        y, f = data.truth[data.labelled], data.panel[data.labelled]
        low, high = ppi_py.ppi_mean_ci(y, f, data.panel[~data.labelled], alpha=0.05)
        hits += low.item() <= 0.05 <= high.item()
    assert hits / SEEDS < 0.93


def test_strata_of_different_rates_are_covered_too():
    random = np.random.default_rng(12)
    rates = np.linspace(0.1, 1.9, STRATA) * 0.05
    hits = 0
    for _ in range(SEEDS // 2):
        data = sampled(random, rates)
        found = corrected(data).estimate
        hits += found.ci95.low <= rates.mean() <= found.ci95.high
    assert 0.92 <= hits / (SEEDS // 2) <= 0.98


def test_a_mean_over_detected_items_is_covered():
    random = np.random.default_rng(13)
    hits, n, strata = 0, 1500, np.arange(1500) % 6
    everywhere = np.ones(n, dtype=bool)
    for _ in range(300):
        detected = random.random(n) < 0.4
        score = np.where(detected, random.choice([0.0, 1.0, 2.0], n, p=[0.1, 0.3, 0.6]), 0.0)
        by_panel = np.where(detected, random.random(n) < 0.85, random.random(n) < 0.05)
        given = np.where(by_panel, np.clip(score + random.integers(0, 2, n), 0, 2), 0.0)
        chosen = drawn(random, strata, 30)
        people = Said(values=np.where(chosen, score, 0.0), counts=detected & chosen, known=chosen)
        panel = Said(values=given, counts=by_panel, known=everywhere)
        found = corrected_mean(panel, people, strata=strata.astype(str), span=(0, 2), step=1, points=2.0).estimate
        hits += found.ci95.low <= 1.5 <= found.ci95.high
    assert 0.92 <= hits / 300 <= 0.98


def test_labels_that_share_a_cluster_widen_the_interval():
    random = np.random.default_rng(14)
    data = sampled(random, [0.4], n=600, each=200)
    by_cluster = np.repeat(random.random(60) < 0.4, 10).astype(float)
    alike = Sampled(truth=by_cluster, panel=data.panel, strata=data.strata, labelled=data.labelled)
    clusters = [str(item // 10) for item in range(600)]
    alone, together = corrected(alike).estimate, corrected(alike, clusters=clusters).estimate
    assert together.value == alone.value
    assert together.ci95.high - together.ci95.low > 1.5 * (alone.ci95.high - alone.ci95.low)


def test_items_that_share_clusters_are_covered_and_would_not_be_without_them():
    """600 items in clusters of 10 that say the same, 200 of them labelled."""
    random = np.random.default_rng(21)
    hits, alone = 0, 0
    strata, clusters = np.arange(600) % 4, [str(item // 10) for item in range(600)]
    for _ in range(200):
        truth = np.repeat(random.random(60) < 0.4, 10)
        panel = np.where(truth, random.random(600) < 0.8, random.random(600) >= 0.95).astype(float)
        data = Sampled(
            truth=truth.astype(float), panel=panel, strata=strata.astype(str), labelled=drawn(random, strata, 50)
        )
        with_them, without = corrected(data, clusters=clusters).estimate.ci95, corrected(data).estimate.ci95
        hits += with_them.low <= 0.4 <= with_them.high
        alone += without.low <= 0.4 <= without.high
    assert 0.91 <= hits / 200 <= 0.985
    assert alone / 200 < 0.75


def test_a_sample_without_any_error_does_not_prove_that_judges_never_err():
    data = sampled(np.random.default_rng(15), [0.3] * 4, n=4000, each=10, sensitivity=1.0, specificity=1.0)
    found = corrected(data).estimate
    assert found.value == pytest.approx(data.truth.mean())
    assert found.ci95.high - found.ci95.low > 2 / 40


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_rate_at_the_end_of_its_scale_has_an_interval_inside_of_it(rate):
    data = sampled(np.random.default_rng(16), [rate] * 4, n=400, each=15, specificity=1.0, sensitivity=1.0)
    found = corrected(data).estimate
    assert found.value == rate
    assert 0 <= found.ci95.low <= rate <= found.ci95.high <= 1
    assert 0.02 < found.ci95.high - found.ci95.low < 0.1


# --- what is missing --------------------------------------------------------------------------------------------------


def test_items_without_a_verdict_are_unscored_and_in_the_bounds():
    data = sampled(np.random.default_rng(17), [0.5] * 2, n=200, each=30)
    lost = np.zeros(200, dtype=bool)
    lost[:20] = True
    judge = Said(values=np.where(lost, 0.0, data.panel), counts=~lost, known=~lost)
    found = corrected_mean(judge, data.people, strata=data.strata)
    assert (found.estimate.n, found.estimate.unscored) == (180, 20)
    assert found.n_labelled == int((data.labelled & ~lost).sum())
    value, bounds = found.estimate.value, found.estimate.bounds
    assert bounds == pytest.approx((value * 0.9, value * 0.9 + 0.1))


def test_strata_with_too_few_labels_are_refused_by_name():
    strata = ["a"] * 50 + ["b"] * 50 + ["c"] * 3
    people = [1.0] * 10 + [None] * 40 + [1.0] * 2 + [None] * 48 + [0.0] * 3
    with pytest.raises(CalibrationError, match=r"1 of 3 strata: b \(2 of 50 labelled\).*needs 5.*--merge-small"):
        corrected_mean(said([1.0] * 103), said(people), strata=strata)


def test_small_strata_are_merged_where_that_is_asked_for_and_it_is_told():
    strata = ["a"] * 50 + ["b"] * 50 + ["c"] * 50
    people = [1.0, 0.0] * 5 + [None] * 40 + [1.0] * 3 + [None] * 47 + [0.0] * 2 + [None] * 48
    found = corrected_mean(said([1.0] * 150), said(people), strata=strata, merge_small=True)
    assert found.merged == ("b", "c")
    assert [(part.name, part.n, part.n_labelled) for part in found.strata] == [("a", 50, 10), ("merged strata", 100, 5)]


def test_a_merge_that_is_still_too_small_takes_in_the_stratum_with_the_fewest_labels():
    strata = ["a"] * 50 + ["b"] * 50 + ["c"] * 50
    people = [1.0, 0.0] * 5 + [None] * 40 + [1.0] * 8 + [None] * 42 + [0.0] * 2 + [None] * 48
    found = corrected_mean(said([1.0] * 150), said(people), strata=strata, merge_small=True)
    assert found.merged == ("c", "b")
    assert [part.n_labelled for part in found.strata] == [10, 10]


def test_too_few_labels_in_all_are_refused_also_when_merged():
    with pytest.raises(CalibrationError, match="3 labels in all are too few"):
        corrected_mean(said([1.0] * 30), said([1.0] * 3 + [None] * 27), strata=["a"] * 30, merge_small=True)


def test_no_label_at_all_is_refused():
    with pytest.raises(CalibrationError, match="label some first"):
        corrected_mean(said([1.0] * 30), said([None] * 30), strata=["a"] * 30)


def test_labels_of_which_none_counts_are_refused():
    nothing = said([None] * 20, [False] * 20)
    with pytest.raises(CalibrationError, match="nothing that people labelled counts"):
        corrected_mean(nothing, nothing, strata=["a"] * 20)


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    found = builtins.__import__

    def without(name, *args, **options):
        if name == "ppi_py":
            raise ImportError("No module named 'ppi_py'")
        return found(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CalibrationError, match=r"ppi-python.*pip install 'interbench-tasks\[calibration\]'"):
        corrected(sampled(np.random.default_rng(0), [0.5], n=100, each=20))


def test_a_side_from_lists_tells_unknown_from_not_counted():
    side = said([1.0, None, 2.0, None], [True, False, True, None])
    assert side.known.tolist() == [True, True, True, False]
    assert side.counts.tolist() == [True, False, True, False]
    assert side.values.tolist() == [1, 0, 2, 0]


def test_n_is_of_the_items_that_count_and_labels_of_the_others_are_used_too():
    detected = [True, True, False, True, False, True] * 10
    people = [None if place % 3 else 1.0 + place % 2 for place in range(60)]
    judge = said([1.0 if one else None for one in detected], detected)
    own = said(people, [None if one is None else place % 4 != 0 for place, one in enumerate(people)])
    found = corrected_mean(judge, own, strata=["a"] * 60, span=(0.0, 2.0), step=1.0, points=2.0)
    assert (found.estimate.n, found.n_labelled, found.estimate.unscored) == (40, 20, 0)


def test_n_is_of_the_labels_where_nothing_counts_by_the_panel():
    judge = said([None] * 60, [False] * 60)
    own = said([None if place % 3 else 1.0 + place % 2 for place in range(60)])
    found = corrected_mean(judge, own, strata=["a"] * 60, span=(0.0, 2.0), step=1.0, points=2.0)
    assert found.estimate.n == found.n_labelled == 20
