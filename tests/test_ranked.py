"""`interbench compare` as a ranking and by category: what is ranked, over which episodes, and how it is shown."""

from __future__ import annotations

import csv
import io
import json
import random

import numpy as np
import pytest

from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.ranking import rankings_from
from interbench_tasks.report.compared import parts_of
from interbench_tasks.report.formats import as_csv, as_latex, as_text
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.ranked import ranked_runs
from tests.scored_runs import OwnValues, episode, run_of

N = 80
RATES = {"good": 0.95, "fair": 0.5, "poor": 0.05}


def answers(rate, *, seed=0, n=N, metric="accuracy", **more):
    dice = random.Random(seed)
    return [episode(number, **{metric: int(dice.random() < rate)}, **more) for number in range(n)]


def three_runs(**changes):
    return [run_of(name, answers(rate, seed=seed), **changes) for seed, (name, rate) in enumerate(RATES.items())]


def ranked(runs, *patterns):
    return ranked_runs(compared(runs, patterns), runs)


def parts(runs, *shown, patterns=()):
    return {part_name(part): part for part in parts_of(compared(runs, patterns), runs, shown)}


def part_name(part) -> str:
    return next((key for key in ("ranking", "categories") if key in part.nested), "pairs")


# --- which numbers ------------------------------------------------------------------------------------------------


def test_runs_are_ranked_by_the_means_of_their_episodes():
    runs = three_runs()
    [ranking] = ranked(runs).rankings
    values = np.array([[summary["own"]["accuracy"] for summary in run.summaries] for run in runs], dtype=float)
    expected = rankings_from({"accuracy": values}, list(RATES), clusters=[f"id q{i}" for i in range(N)])["accuracy"]
    assert ranking.models == expected.models
    assert [row.model for row in ranking.models] == ["good", "fair", "poor"]
    assert [(row.best, row.worst) for row in ranking.models] == [(1, 1), (2, 2), (3, 3)]
    assert ranking.steps[0].p_mcnemar == expected.steps[0].p_mcnemar < 0.01


def test_only_episodes_that_all_runs_have_are_ranked_and_the_others_are_told():
    runs = [run_of("a", answers(0.5)), run_of("b", answers(0.5, n=50)), run_of("c", answers(0.9, n=60)[10:])]
    found = ranked(runs)
    assert found.n_common == 40
    assert {row.n for row in found.rankings[0].models} == {40}
    assert found.notes == (
        "a: 40 episodes that not all runs have are left out of the ranking",
        "b: 10 episodes that not all runs have are left out of the ranking",
        "c: 10 episodes that not all runs have are left out of the ranking",
    )


def test_runs_without_a_common_episode_have_no_ranking():
    runs = [run_of("a", answers(1, n=20)), run_of("b", answers(1, n=40)), run_of("c", answers(1, n=40)[20:])]
    comparison = compared(runs[:2])
    with pytest.raises(InterbenchError, match="no episode is in all of these runs"):
        ranked_runs(comparison, runs)


def test_an_unscored_episode_is_left_out_of_its_own_run_alone():
    runs = [run_of("a", [episode(0, accuracy=1), episode(1, accuracy=0)])]
    runs.append(run_of("b", [episode(0, accuracy=None), episode(1, accuracy=1)]))
    [ranking] = ranked(runs).rankings
    assert [(row.model, row.value, row.n) for row in ranking.models] == [("b", 1, 1), ("a", 0.5, 2)]


def test_episodes_of_one_cluster_are_drawn_together():
    runs = [
        run_of(name, [episode(i, cluster=str(i // 4), accuracy=int(i % 8 < split)) for i in range(40)])
        for name, split in (("a", 6), ("b", 4))
    ]
    [ranking] = ranked(runs).rankings
    assert (ranking.n_items, ranking.n_clusters) == (40, 10)
    assert ranking.steps[0].p_mcnemar is None


def test_repeats_of_an_item_are_no_independent_items():
    rows = [episode(i, repeat, accuracy=1) for i in range(5) for repeat in range(3)]
    [ranking] = ranked([run_of("a", rows), run_of("b", rows)]).rankings
    assert (ranking.n_items, ranking.n_clusters) == (15, 5)


def test_counts_and_what_is_no_mean_are_not_ranked_and_say_why():
    metrics = OwnValues(counts=["n_test"], contrasts=["difference"])
    runs = [run_of(name, [episode(0, accuracy=1, n_test=1)], metric_set=metrics) for name in ("a", "b")]
    found = ranked(runs, "*")
    assert dict(found.unranked) == {"n_test": "it is a count", "difference": "it is no mean over episodes"}
    assert [ranking.metric for ranking in found.rankings] == ["accuracy"]


def test_a_metric_of_one_run_alone_has_no_ranking():
    runs = [run_of("a", [episode(0, accuracy=1, extra=1)]), run_of("b", [episode(0, accuracy=1)])]
    assert ranked(runs, "*").unranked["extra"] == "fewer than two runs have it"


class Weighted(OwnValues):
    """Its table weighs episodes, so a mean over episodes is another number."""

    def table(self, summaries):
        return {"accuracy": Estimate(value=0.9, n=len(summaries), method="wilson")}


def test_a_metric_that_is_another_mean_is_told():
    runs = [run_of(name, answers(0.5), metric_set=Weighted()) for name in ("a", "b")]
    assert "accuracy: ranked by the mean over episodes, which is not the metric's own value" in ranked(runs).notes


class Points(OwnValues):
    """Scores up to 2, as judges give them."""

    def table(self, summaries):
        values = [summary["own"]["dp"] for summary in summaries]
        return {"dp": Estimate(value=sum(values) / len(values), n=len(values), method="t", points=2.0)}


def test_scores_are_shown_in_points():
    runs = [run_of(name, [episode(i, dp=i % 3) for i in range(9)], metric_set=Points()) for name in ("a", "b", "c")]
    found = parts(runs, "ranking", patterns=["dp"])["ranking"]
    assert "in points up to 2" in found.grids[0].title
    assert found.grids[0].rows[0][3] == "1.00"
    assert found.nested["ranking"]["rankings"][0]["steps"][0]["difference"]["points"] == 2


# --- across the runs ------------------------------------------------------------------------------------------------


def test_three_runs_have_a_variation_and_metrics_that_go_together():
    def rows(rate, seed):
        dice = random.Random(seed)
        return [episode(i, a=(hit := int(dice.random() < rate)), b=hit / 2) for i in range(N)]

    runs = [run_of(name, rows(rate, seed)) for seed, (name, rate) in enumerate(RATES.items())]
    across = ranked(runs, "*").across
    assert list(across) == ["cv.a", "cv.b", "r.a.b"]
    assert across["r.a.b"].value == pytest.approx(1)
    assert ranked(runs[:2], "*").across == {}


def test_quality_is_correlated_with_pcq():
    """q = dp/2 + se/2 over the items that were detected."""

    class Critiques(OwnValues):
        pass

    def rows(scale):
        return [
            episode(i, pcq=scale * (i % 2), dp=scale * 2 if i % 2 else None, se=1.0 if i % 2 else None)
            for i in range(8)
        ]

    runs = [run_of(name, rows(scale), metric_set=Critiques()) for name, scale in (("a", 0.2), ("b", 0.5), ("c", 0.9))]
    across = ranked(runs, "pcq", "dp", "se").across
    assert across["r.q.pcq"].value == pytest.approx(1)
    assert across["cv.q"].value == pytest.approx(np.std([0.7, 1.0, 1.4], ddof=1) / np.mean([0.7, 1.0, 1.4]))


# --- how it is shown ------------------------------------------------------------------------------------------------


def test_from_three_runs_on_a_ranking_is_shown_unasked():
    assert list(parts(three_runs())) == ["pairs", "ranking"]
    assert list(parts(three_runs()[:2])) == ["pairs"]
    assert list(parts(three_runs()[:2], "ranking")) == ["ranking"]


def test_the_ranking_is_a_table_with_each_step_beside_the_upper_run():
    part = parts(three_runs())["ranking"]
    text = as_text(part.grids[0])
    first, last = part.grids[0].rows[0], part.grids[0].rows[-1]
    assert first[:3] == ["good", "1", "1 .. 1"]
    assert first[6] == "<0.001"
    assert last[:3] == ["poor", "3", "3 .. 3"]
    assert last[5:] == [""] * 5
    assert "ranking by accuracy, the largest first, in percent" in text
    assert any("Rank 1 is the largest value, whether that is good or not" in line for line in part.lines)
    latex = as_latex(part.grids[0])
    assert latex.count(r"\\") == 5
    assert r"\multicolumn{5}{c}" in latex
    json.dumps(part.nested, allow_nan=False)


def test_the_ranking_as_csv_has_a_row_a_run_with_its_step():
    rows = list(csv.DictReader(io.StringIO(as_csv(parts(three_runs())["ranking"].flat))))
    assert [(row["run"], row["rank"], row["next"]) for row in rows] == [
        ("good", "1", "fair"),
        ("fair", "2", "poor"),
        ("poor", "3", ""),
    ]
    assert float(rows[0]["difference_ci95_low"]) < float(rows[0]["difference"]) < float(rows[0]["difference_ci95_high"])
    assert float(rows[0]["p_mcnemar"]) <= float(rows[0]["p_mcnemar_holm"])


def with_categories(run):
    for number, summary in enumerate(run.summaries):
        summary["category"] = ("dogs", "cats", None)[number % 3]
    return run


def test_categories_stand_in_a_table_of_runs():
    runs = [with_categories(run) for run in three_runs()]
    part = parts(runs, "categories")["categories"]
    [grid] = part.grids
    assert grid.headers == ["category", "good", "fair", "poor"]
    assert [row[0] for row in grid.rows] == ["cats", "dogs"]
    assert grid.rows[0][1].endswith("n=27")
    dogs = [summary["own"]["accuracy"] for summary in runs[0].summaries[::3]]
    assert part.nested["categories"]["dogs"]["good"]["accuracy"]["value"] == pytest.approx(np.mean(dogs))
    [flat] = [row for row in part.flat if row["category"] == "dogs" and row["run"] == "good"]
    assert flat["accuracy"] == pytest.approx(np.mean(dogs))
    assert flat["accuracy.n"] == 27


def test_a_category_without_the_metric_has_no_line():
    runs = [run_of(name, [episode(0, accuracy=1), episode(1)]) for name in ("a", "b")]
    for run in runs:
        run.summaries[0]["category"], run.summaries[1]["category"] = "there", "nothing"
    assert [row[0] for row in parts(runs, "categories")["categories"].grids[0].rows] == ["there"]


def test_episodes_without_categories_say_so():
    part = parts(three_runs(), "categories")["categories"]
    assert (part.grids, part.lines) == ([], ["The episodes have no categories."])


def test_all_parts_of_a_comparison_are_one_json_object():
    made = parts_of(compared(three_runs()), three_runs(), ("categories", "ranking", "pairs"))
    keys = [key for part in made for key in part.nested]
    assert len(keys) == len(set(keys))
    assert {"pairs", "ranking", "categories"} <= set(keys)
