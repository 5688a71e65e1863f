"""A ranking by PCQ shows what each run's own table shows, over the items that all have, also where judges fail."""

from __future__ import annotations

import random

import numpy as np
import pytest

from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.ranking import across_models, rankings_from
from interbench_tasks.report.compared import parts_of
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.ranked import ranked_runs
from tests.critiques import any_vote, metrics, record
from tests.scored_runs import run_of

SUBTYPES = ("EE.ambiguity", "PC.cross_modal", "BC")


def critiques(name, *, detects, fails, n=120, seed=0, first=0, **options):
    """A run whose judges fail in a share of their verdicts."""
    dice = random.Random(f"{name}{seed}")
    metric_set = metrics(**options)
    rows = []
    for number in range(first, first + n):
        truth = any_vote(dice, detects)
        votes = [None if dice.random() < fails else (truth if dice.random() < 0.8 else any_vote(dice)) for _ in "abc"]
        rows.append(metric_set.summary(record(number, votes, category=SUBTYPES[number % 3])))
    for row in rows:
        row["target"] = row["category"]
    return run_of(name, rows, metric_set=metric_set)


def three(**options):
    return [critiques(name, detects=rate, fails=0.25, **options) for name, rate in (("a", 0.8), ("b", 0.6), ("c", 0.3))]


@pytest.mark.parametrize("combine", ["arithmetic", "geometric", "harmonic"])
def test_a_ranking_by_pcq_has_the_values_of_the_runs_own_tables(combine):
    runs = three(pcq_combine=combine)
    found = ranked_runs(compared(runs, ("pcq", "pcq.EE", "eda", "dp", "se")), runs)
    tables = {run.receiver: run.metric_set.table(run.summaries) for run in runs}
    assert {ranking.metric for ranking in found.rankings} == {"pcq", "pcq.EE", "eda", "dp", "se"}
    for ranking in found.rankings:
        for row in ranking.models:
            own = tables[row.model][ranking.metric]
            assert row.value == pytest.approx(own.value, abs=1e-12)
            assert row.n == own.n
            assert found.unscored[ranking.metric][row.model] == own.unscored
    assert found.notes == ()
    of_items = np.mean([own["pcq"] for s in runs[0].summaries if "pcq" in (own := runs[0].metric_set.contributions(s))])
    assert abs(of_items - tables["a"]["pcq"].value) > 0.01  # what a mean over items would have said


def test_the_steps_intervals_of_pcq_hold_the_step():
    runs = three()
    [ranking] = ranked_runs(compared(runs, ("pcq",)), runs).rankings
    for above, below, step in zip(ranking.models[:-1], ranking.models[1:], ranking.steps, strict=True):
        assert step.difference.value == pytest.approx(above.value - below.value)
        assert step.difference.ci95.low < step.difference.value < step.difference.ci95.high
        assert step.p_mcnemar is None
        assert 0 < step.p_bootstrap <= step.p_bootstrap_holm <= 1


def test_runs_of_different_items_are_ranked_by_the_common_ones_and_every_note_stays():
    runs = [*three()[:2], critiques("c", detects=0.3, fails=0.25, n=100, first=20)]
    found = ranked_runs(compared(runs, ("pcq",)), runs)
    [ranking] = found.rankings
    assert found.n_common == 100
    for run in runs:
        common = [row for row in run.summaries if 20 <= row["doc_id"] < 120]
        [row] = [row for row in ranking.models if row.model == run.receiver]
        assert row.value == pytest.approx(run.metric_set.table(common)["pcq"].value, abs=1e-12)
    assert found.notes == (
        "a: 20 episodes that not all runs have are left out of the ranking",
        "b: 20 episodes that not all runs have are left out of the ranking",
    )


def test_undecided_items_are_told_beside_n_in_every_format():
    runs = three()
    [part] = parts_of(compared(runs, ("pcq",)), runs, ("ranking",))
    tables = {run.receiver: run.metric_set.table(run.summaries)["pcq"] for run in runs}
    rows = {row[0]: row for row in part.grids[0].rows}
    for name, own in tables.items():
        assert own.unscored > 0
        assert rows[name][4] == f"{own.n} (u {own.unscored})"
        [flat] = [row for row in part.flat if row["run"] == name]
        assert flat["unscored"] == own.unscored
        [nested] = [row for row in part.nested["ranking"]["rankings"][0]["runs"] if row["model"] == name]
        assert nested["unscored"] == own.unscored
    assert any("are unscored in this run" in line for line in part.lines)


def test_categories_are_of_the_common_items_and_say_what_is_left_out():
    runs = [*three()[:2], critiques("c", detects=0.3, fails=0.25, n=100, first=20)]
    [part] = parts_of(compared(runs, ("pcq",)), runs, ("categories",))
    assert [line for line in part.lines if "left out of the categories" in line] == [
        "a: 20 episodes that not all runs have are left out of the categories.",
        "b: 20 episodes that not all runs have are left out of the categories.",
    ]
    run = runs[0]
    rows = [row for row in run.summaries if row["category"] == "BC" and row["doc_id"] >= 20]
    own = run.metric_set.table(rows)["pcq"]
    assert part.nested["categories"]["BC"]["a"]["pcq"]["value"] == pytest.approx(own.value)
    assert part.nested["categories"]["BC"]["a"]["pcq"]["unscored"] == own.unscored


def test_the_variation_of_pcq_over_runs_is_that_of_the_shown_values():
    runs = three()
    across = ranked_runs(compared(runs, ("eda", "dp", "se", "pcq")), runs).across
    tables = [run.metric_set.table(run.summaries) for run in runs]
    shown = [table["pcq"].value for table in tables]
    q = [table["dp"].value / 2 + table["se"].value / 2 for table in tables]
    assert across["cv.pcq"].value == pytest.approx(np.std(shown, ddof=1) / np.mean(shown))
    assert across["r.q.pcq"].value == pytest.approx(np.corrcoef(q, shown)[0, 1])


def test_a_ranking_without_a_judge_has_the_pcq_of_a_table_without_it():
    runs = three()
    [part] = parts_of(compared(runs, ("pcq",)), runs, ("judges",))
    rankings = {one["without"]: one for one in part.nested["judges"]["without"]["pcq"]}
    two = metrics(judges=("a", "b"))
    for run in runs:
        kept = [
            {**row, "votes": {"": {j: v for j, v in row["votes"][""].items() if j != "c"}}} for row in run.summaries
        ]
        assert rankings["c"]["values"][run.receiver] == pytest.approx(two.table(kept)["pcq"].value)


# --- pairs ----------------------------------------------------------------------------------------------------------


def test_a_pair_in_pcq_is_that_of_the_tables_and_of_the_rankings_step():
    runs = three()[:2]
    comparison = compared(runs, ("pcq", "pcq.EE", "eda"))
    pairs = {pair.metric: pair for pair in comparison.pairs}
    scored = [{row["id"] for row in run.summaries if "eda" in run.metric_set.contributions(row)} for run in runs]
    both = scored[0] & scored[1]
    tables = [run.metric_set.table([row for row in run.summaries if row["id"] in both]) for run in runs]
    for metric in ("pcq", "pcq.EE"):
        pair = pairs[metric]
        assert pair.first.value.value == pytest.approx(tables[0][metric].value)
        assert pair.second.value.value == pytest.approx(tables[1][metric].value)
        assert pair.difference.value == pytest.approx(tables[0][metric].value - tables[1][metric].value)
        assert pair.difference.ci95.low < pair.difference.value < pair.difference.ci95.high
    assert pairs["pcq"].n == len(both) == pairs["eda"].n
    assert pairs["pcq"].first.n_not_scored == len(scored[0] - both)
    assert comparison.unpaired == {}


def test_a_pair_in_pcq_leaves_out_what_one_run_alone_has():
    runs = [three()[0], critiques("c", detects=0.3, fails=0, n=100, first=20)]
    [pair] = compared(runs, ("pcq",)).pairs
    counted = [run.metric_set.table(run.summaries)["eda"].n for run in runs]
    common = sum("eda" in runs[0].metric_set.contributions(row) for row in runs[0].summaries if row["doc_id"] >= 20)
    assert pair.first.n_not_there == counted[0] - common
    assert (pair.second.n_not_there, pair.second.n_not_scored) == (0, 100 - common)
    assert pair.n == common


# --- composed metrics in general ------------------------------------------------------------------------------------

NAN = float("nan")


def test_a_composed_metric_is_ranked_by_what_the_means_of_its_parts_come_to():
    rate = np.array([[1.0, 1, 0, 0], [1, 0, 0, 0]])
    size = np.array([[0.5, NAN, NAN, NAN], [1, NAN, NAN, NAN]])
    how = Composed(parts=("rate", "size"), make=lambda rate, size: rate * size, by_first=True)
    found = rankings_from({"rate": rate, "size": size}, ["a", "b"], composed={"both": how}, draws=50)
    assert list(found) == ["rate", "size", "both"]
    assert [(row.model, row.value, row.n) for row in found["both"].models] == [("a", 0.25, 4), ("b", 0.25, 4)]
    assert [row.rank for row in found["both"].models] == [1, 1]
    across = across_models({"rate": rate, "size": size}, composed={"both": how}, of=["both"], draws=50)
    assert list(across) == ["cv.both"]
    assert across["cv.both"].value == 0


def test_simulated_intervals_of_a_step_in_pcq_cover_the_planted_difference():
    """Two models of planted rates and scores; 95% intervals of the difference of PCQ, over 120 data sets."""
    chance = np.random.default_rng(5)
    n, held = 200, 0
    how = Composed(parts=("eda", "dp", "se"), make=lambda eda, dp, se: eda * (dp + se) / 4, by_first=True)
    truth = 0.6 * (1.2 + 1.4) / 4 - 0.45 * (1.0 + 1.4) / 4
    for seed in range(120):
        eda = (chance.random((2, n)) < np.array([[0.6], [0.45]])).astype(float)
        dp = np.where(eda == 1, 2 * (chance.random((2, n)) < np.array([[0.6], [0.5]])), NAN)
        se = np.where((eda == 1) & (chance.random((2, n)) < 0.8), 2 * (chance.random((2, n)) < 0.7), NAN)
        parts = {"eda": eda, "dp": dp, "se": se}
        ranking = rankings_from(parts, ["a", "b"], composed={"pcq": how}, draws=300, seed=seed)["pcq"]
        sign = 1 if ranking.models[0].model == "a" else -1
        low, high = sorted(sign * end for end in ranking.steps[0].difference.ci95)
        held += low <= truth <= high
    assert 106 <= held <= 120  # 114 expected; 1 in 1,000 data sets would fall outside
