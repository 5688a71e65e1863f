"""Runs side by side: the same episodes, paired, whatever the protocol."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import InterbenchError
from interbench_tasks.hookspecs import Composed
from interbench_tasks.report.comparison import as_json, grids_from
from interbench_tasks.runs.comparable import labels_in
from interbench_tasks.runs.compare import DEFAULT_METRICS, compared
from interbench_tasks.runs.compare_tasks import comparisons_from
from interbench_tasks.runs.folder import MANIFEST, read_json, write_json
from interbench_tasks.runs.score import run_from_folder
from tests.scored_runs import OwnValues, episode, run_of
from tests.test_second_pass import OFFERS, plan_of, play

N = 60


def one(comparison, metric, first=None, second=None):
    [pair] = [
        pair
        for pair in comparison.pairs
        if pair.metric == metric and first in (None, pair.first.run) and second in (None, pair.second.run)
    ]
    return pair


def answers(*bits, metric="accuracy", start=0):
    """Episodes from `start` on, each right (1), wrong (0) or unscored (None)."""
    return [episode(start + number, **{metric: bit}) for number, bit in enumerate(bits)]


def agresti_min_by_hand(b, c, n):
    """Agresti and Min (2005): half an observation more in each cell of the 2x2 table."""
    b, c, n = b + 0.5, c + 0.5, n + 2
    half = stats.norm.ppf(0.975) * math.sqrt(b + c - (b - c) ** 2 / n) / n
    return (b - c) / n - half, (b - c) / n + half


# --- which numbers ------------------------------------------------------------------------------------------------


def test_the_difference_is_over_the_common_episodes_with_a_paired_interval():
    drawn = random.Random(3)
    left, right = ([int(drawn.random() < rate) for _ in range(N)] for rate in (0.35, 0.7))
    pair = one(compared([run_of("a", answers(*left)), run_of("b", answers(*right))]), "accuracy")
    b = sum(x > y for x, y in zip(left, right, strict=True))
    c = sum(x < y for x, y in zip(left, right, strict=True))
    assert pair.n == N
    assert pair.difference.value == pytest.approx((b - c) / N)
    assert pair.difference.ci95 == pytest.approx(agresti_min_by_hand(b, c, N))
    assert pair.difference.method == "paired_agresti_min"
    assert (mcnemar([[0, b], [c, 0]]).pvalue < 0.05) == (not pair.difference.ci95[0] <= 0 <= pair.difference.ci95[1])
    for side, bits in ((pair.first, left), (pair.second, right)):
        assert side.value.value == pytest.approx(sum(bits) / N)
        assert side.value.ci95 == pytest.approx(proportion_confint(sum(bits), N, method="wilson"))


def test_what_is_left_out_is_counted_by_why_for_each_run():
    first = run_of("a", answers(1, 1, 0, None, 1, 0))  # q0 .. q5
    second = run_of("b", answers(0, 1, None, 1, 1, start=2))  # q2 .. q6
    pair = one(compared([first, second]), "accuracy")
    assert pair.n == 2  # q2 and q5
    assert (pair.first.n_not_there, pair.first.n_not_scored) == (2, 1)  # q0 and q1; q4
    assert (pair.second.n_not_there, pair.second.n_not_scored) == (1, 1)  # q6; q3


def test_a_correction_rate_is_compared_on_the_items_in_both_test_sets():
    metric = "correction_rate.detail"
    runs = [run_of("a", answers(1, 0, None, 1, metric=metric)), run_of("b", answers(None, 1, 1, 1, metric=metric))]
    pair = one(compared(runs), metric)
    assert (pair.n, pair.first.value.value, pair.second.value.value) == (2, 0.5, 1.0)
    assert (pair.first.n_not_scored, pair.second.n_not_scored) == (1, 1)


def test_each_runs_own_value_is_over_all_of_its_own_episodes():
    comparison = compared([run_of("a", answers(1, 1, 0, 0)), run_of("b", answers(1, 1, start=2))])
    assert {name: own["accuracy"].value for name, own in comparison.own.items()} == {"a": 0.5, "b": 1.0}
    assert one(comparison, "accuracy").first.value.value == 0.0


def test_three_runs_are_paired_on_what_each_two_have_not_on_what_all_have():
    runs = [run_of("a", answers(1, 0, 1)), run_of("b", answers(0, 0, 1)), run_of("c", answers(1, 1, start=2))]
    comparison = compared(runs)
    assert one(comparison, "accuracy", "a", "b").n == 3
    assert one(comparison, "accuracy", "a", "c").n == 1
    overlaps = {(o.first, o.second): (o.n_common, o.n_only_first, o.n_only_second) for o in comparison.overlaps}
    assert overlaps == {("a", "b"): (3, 0, 0), ("a", "c"): (1, 2, 1), ("b", "c"): (1, 2, 1)}


def test_up_to_four_runs_are_compared_each_with_each_and_more_with_the_first():
    runs = [run_of(name, answers(1, 0)) for name in "abcde"]
    assert len(compared(runs[:4]).pairs) == 6
    assert [(pair.first.run, pair.second.run) for pair in compared(runs).pairs] == [("a", x) for x in "bcde"]


def test_repeats_are_matched_one_by_one_and_are_not_independent():
    def repeated(bits):
        return [
            episode(number, repeat, accuracy=bit) for number, pair in enumerate(bits) for repeat, bit in enumerate(pair)
        ]

    rows = [(1, 1), (0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 1), (1, 0)]
    others = [(0, 0), (0, 0), (1, 1), (0, 1), (0, 1), (0, 0), (1, 1), (0, 0)]
    pair = one(compared([run_of("a", repeated(rows)), run_of("b", repeated(others))]), "accuracy")
    assert (pair.n, pair.difference.method) == (16, "cluster_bootstrap")
    fewer = one(
        compared([run_of("a", repeated(rows)), run_of("b", [r for r in repeated(others) if r["repeat"]])]), "accuracy"
    )
    assert (fewer.n, fewer.difference.method) == (8, "paired_agresti_min")
    assert fewer.first.value.value == pytest.approx(4 / 8)  # the second tries alone: 1 0 0 1 1 0 1 0


def test_clusters_widen_the_interval_as_a_bootstrap_of_whole_clusters_does():
    drawn = random.Random(5)
    signs = [drawn.choice((-1, 0, 1)) for _ in range(30)]
    left = [episode(i, cluster=f"c{i // 5}", accuracy=int(signs[i // 5] > 0)) for i in range(150)]
    right = [episode(i, cluster=f"c{i // 5}", accuracy=int(signs[i // 5] < 0)) for i in range(150)]
    pair = one(compared([run_of("a", left), run_of("b", right)]), "accuracy")
    picks = np.random.default_rng(11).integers(0, 30, (20_000, 30))
    by_hand = np.quantile(np.array(signs)[picks].mean(axis=1), [0.025, 0.975])
    assert pair.difference.method == "cluster_bootstrap"
    assert pair.difference.ci95 == pytest.approx(tuple(by_hand), abs=0.02)


def test_the_order_of_episodes_and_of_runs_does_not_matter():
    first, second = answers(1, 0, 1, 1, 0, 0, 1), answers(0, 0, 1, 0, 1, 0, 0)
    there = one(compared([run_of("a", first), run_of("b", second)]), "accuracy")
    back = one(compared([run_of("b", second[::-1]), run_of("a", first[::-1])]), "accuracy")
    assert back.difference.value == -there.difference.value
    assert back.difference.ci95 == pytest.approx((-there.difference.ci95[1], -there.difference.ci95[0]))


# --- values that are no successes ---------------------------------------------------------------------------------


def test_fractions_are_compared_by_a_paired_t_interval():
    left, right = [0.1, 0.5, 0.9, 0.25, 0.6], [0.2, 0.1, 0.7, 0.25, 0.9]
    pair = one(
        compared([run_of("a", answers(*left, metric="s")), run_of("b", answers(*right, metric="s"))], ["s"]), "s"
    )
    theirs = stats.ttest_rel(left, right).confidence_interval(0.95)
    assert pair.difference.value == pytest.approx(np.mean(np.subtract(left, right)))
    assert pair.difference.ci95 == pytest.approx((theirs.low, theirs.high))
    assert pair.difference.method == "t"
    assert pair.first.value.value == pytest.approx(np.mean(left))


def test_differences_of_arms_are_compared_too():
    left, right = [1, 0, -1, 1, 1, 0], [-1, 0, 1, 0, 1, 0]
    name = "difference.detail-simple"
    runs = [run_of("a", answers(*left, metric=name)), run_of("b", answers(*right, metric=name))]
    pair = one(compared(runs, [name]), name)
    theirs = stats.ttest_rel(left, right).confidence_interval(0.95)
    assert (pair.difference.value, pair.first.value.value) == (pytest.approx(1 / 6), pytest.approx(1 / 3))
    assert pair.difference.ci95 == pytest.approx((theirs.low, theirs.high))
    assert pair.first.value.method == "paired_agresti_min"


def test_one_and_the_same_fraction_everywhere_claims_no_certainty():
    runs = [run_of("a", answers(0.75, 0.75, metric="s")), run_of("b", answers(0.25, 0.25, metric="s"))]
    pair = one(compared(runs, ["s"]), "s")
    assert (pair.difference.value, pair.difference.ci95) == (0.5, None)


def test_what_cannot_be_paired_says_why_and_is_not_silently_gone():
    def run(name, **own):
        metric_set = OwnValues(counts=["n_test"], contrasts=["discrimination"])
        return run_of(name, [episode(i, n_test=1, stars=5.0, **own) for i in range(3)], metric_set=metric_set)

    other = run("b", other_only=1)
    other = replace(
        other, summaries=[{**s, "own": s["own"] | ({"late": 1} if s["id"] == "q2" else {})} for s in other.summaries]
    )
    first = run("a", accuracy=1)
    first = replace(
        first, summaries=[{**s, "own": s["own"] | ({"late": 1} if s["id"] == "q0" else {})} for s in first.summaries]
    )
    comparison = compared([first, other], ["*"])
    assert comparison.pairs == ()
    assert comparison.unpaired == {
        "accuracy": "only one of the runs has it",
        "other_only": "only one of the runs has it",
        "late": "no episode is scored in both runs",
        "stars": "an episode's own value is not within [-1, 1]",
        "n_test": "it is a count",
        "discrimination": "it is no mean over episodes",
    }


# --- which metrics ------------------------------------------------------------------------------------------------


def many(name):
    names = ["accuracy", "accuracy_after.detail", "correction_rate.detail@p", "correction_rate.detail.round1@p",
             "correction_rate_on_negatives.detail", "repeat_rate.detail"]  # fmt: skip
    return run_of(name, [{**episode(i), "own": dict.fromkeys(names, 1)} for i in range(3)])


class Weighed(OwnValues):
    """A stranger's metric set: an episode's values weigh what it says, and `both` is a mean of two such metrics."""

    def parts(self, summary):
        return {name: (value * summary["weight"], summary["weight"]) for name, value in summary["own"].items()}

    def composites(self):
        return {"both": Composed.mean(("one", "two"))}

    def table(self, summaries):
        found = super().table(summaries)
        values = {}
        for name in found:
            parts = [self.parts(summary)[name] for summary in summaries if name in summary["own"]]
            values[name] = sum(value for value, _ in parts) / sum(weight for _, weight in parts)
        found = {name: replace(own, value=values[name]) for name, own in found.items()}
        both = replace(found["one"], value=(values["one"] + values["two"]) / 2)
        return {**found, "both": both}


def weighed(name, *rows):
    """A run. Args: rows = (weight, one, two) of each episode; None: not scored."""
    episodes = [
        {**episode(number, one=one, two=two), "weight": weight} for number, (weight, one, two) in enumerate(rows)
    ]
    return run_of(name, episodes, metric_set=Weighed())


def test_a_strangers_weights_count_and_need_not_be_whole():
    first = weighed("a", (0.5, 1.0, 0.2), (2.5, 0.0, 0.4), (1, 0.5, None))
    second = weighed("b", (1.5, 0.0, 0.0), (1.5, 1.0, 0.3), (1, 0.25, 0.9))
    comparison = compared([first, second], ["one", "two", "both"])
    assert one(comparison, "one").difference.value == pytest.approx((0.5 + 0 + 0.5) / 4 - (0 + 1.5 + 0.25) / 4)
    two = one(comparison, "two")
    assert two.difference.value == pytest.approx((0.1 + 1.0) / 3 - 0.45 / 3)
    assert (two.n, two.second.n_not_scored) == (2, 1)
    both = one(comparison, "both")
    assert both.difference.value == pytest.approx((one(comparison, "one").difference.value + two.difference.value) / 2)
    assert both.weighted
    assert both.second.n_not_scored == 1
    low, high = both.difference.ci95
    assert -1 <= low < high <= 1


def test_weighted_metrics_of_runs_that_share_no_scored_episode_say_so():
    runs = [weighed("a", (1, 1.0, None), (1, None, 0.5)), weighed("b", (1, None, 0.5), (1, 0.5, 1.0))]
    comparison = compared(runs, ["one", "two", "both"])
    assert [pair.metric for pair in comparison.pairs] == ["two"]
    assert comparison.unpaired == {
        "one": "no episode is scored in both runs",
        "both": "no episode is scored in both runs in one",
    }


def test_without_a_name_the_papers_metrics_are_compared_without_single_rounds():
    assert list(compared([many("a"), many("b")]).own["a"]) == [
        "accuracy", "accuracy_after.detail", "correction_rate.detail@p",
    ]  # fmt: skip
    assert "correction_rate.*" in DEFAULT_METRICS


def test_metrics_are_chosen_by_name_or_glob_and_a_misspelt_one_is_told():
    runs = [many("a"), many("b")]
    assert [pair.metric for pair in compared(runs, ["repeat_*", "accuracy"]).pairs] == [
        "accuracy",
        "repeat_rate.detail",
    ]
    assert "correction_rate.detail.round1@p" in compared(runs, ["*.round1@*"]).own["a"]
    with pytest.raises(InterbenchError, match=r"--metric accurcy: fits no metric of these runs; there are: accuracy,"):
        compared(runs, ["accuracy", "accurcy"])


def test_another_protocols_runs_are_compared_by_their_headline():
    runs = [run_of(name, [episode(i, recall=1, precision=0) for i in range(3)]) for name in "ab"]
    assert [pair.metric for pair in compared(runs).pairs] == ["recall"]


# --- providers of one label ---------------------------------------------------------------------------------------

RATES = {"accuracy": 1, "correction_rate.detail@p": 1, "correction_rate.detail@q": 0, "same_answer_rate.d@p-d@q": 1}


def taught_by(name, *, metrics=RATES, **providers):
    """A run whose providers are these models; their keys are labels."""
    models = {"receiver": {"name": name}} | {
        f"provider@{label}" if label != "single" else "provider": {"name": model} for label, model in providers.items()
    }
    summaries = [{**episode(number), "own": dict(metrics)} for number in range(3)]
    run = run_of(name, summaries)
    return replace(run, manifest={**run.manifest, "models": models})


def test_a_label_that_is_two_models_is_not_paired_and_the_table_names_both():
    runs = [taught_by("a", p="gpt", q="flash"), taught_by("b", p="gpt", q="claude")]
    comparison = compared(runs, ["*"])
    assert [pair.metric for pair in comparison.pairs] == ["accuracy", "correction_rate.detail@p"]
    why = "provider 'q' is flash in a and claude in b (--pair-labels pairs them nevertheless)"
    assert comparison.unpaired == {"correction_rate.detail@q": why, "same_answer_rate.d@p-d@q": why}
    (grid,) = grids_from(comparison)[1:]
    assert grid.title.endswith("; provider 'q' is flash in A, claude in B (not paired)")
    assert as_json(comparison)["overlaps"][0]["other_providers"] == [
        {"label": "q", "first": "flash", "second": "claude", "paired": False}
    ]
    assert comparison.own["a"].keys() == RATES.keys(), "each run's own values are there"


def test_labels_are_paired_where_it_is_asked_for_and_the_table_names_both():
    runs = [taught_by("a", p="gpt", q="flash"), taught_by("b", p="gpt", q="claude")]
    [comparison], _ = comparisons_from(runs, ["*"], pair_labels=True)
    assert {pair.metric for pair in comparison.pairs} == RATES.keys()
    assert grids_from(comparison)[1].title.endswith("; provider 'q' is flash in A, claude in B")


def test_only_the_pairs_in_which_a_label_is_two_models_are_refused():
    runs = [taught_by(name, p="gpt", q=model) for name, model in (("a", "x"), ("b", "y"), ("c", "x"))]
    comparison = compared(runs, ["correction_rate.*"])
    assert [(pair.first.run, pair.second.run) for pair in comparison.pairs if pair.metric.endswith("@q")] == [
        ("a", "c")
    ]
    assert comparison.unpaired == {}
    assert [("not paired" in grid.title) for grid in grids_from(comparison)[1:]] == [True, False, True]


def test_single_providers_that_differ_are_paired_and_named():
    metrics = {"accuracy": 1, "correction_rate.detail": 1}
    comparison = compared([taught_by("a", metrics=metrics, single="gpt"), taught_by("b", metrics=metrics, single="o3")])
    assert {pair.metric for pair in comparison.pairs} == metrics.keys()
    assert grids_from(comparison)[1].title.endswith("; the provider is gpt in A, o3 in B")


@pytest.mark.parametrize(
    ("metric", "labels", "found"),
    [
        ("correction_rate.detail@gpt-4o", ["gpt", "gpt-4o", ""], ["gpt-4o"]),
        ("same_answer_rate.detail@p-detail@q", ["q", "p"], ["q", "p"]),
        ("accuracy", ["accuracy", ""], []),
    ],
)
def test_a_metrics_labels_are_read_from_its_name(metric, labels, found):
    assert labels_in(metric, labels) == found


# --- several tasks ------------------------------------------------------------------------------------------------


def test_runs_of_several_tasks_are_compared_task_by_task():
    runs = [run_of(f"{name}{task}", answers(1, 0), task=task) for name in "ab" for task in ("x", "y")]
    comparisons, left_out = comparisons_from(runs)
    assert [comparison.tasks for comparison in comparisons] == [("x",), ("y",)]
    assert [list(comparison.own) for comparison in comparisons] == [["ax", "bx"], ["ay", "by"]]
    assert left_out == ()


def test_a_run_without_a_partner_is_told():
    runs = [run_of("a", answers(1), task="x"), run_of("b", answers(1), task="x"), run_of("c", answers(1), task="y")]
    comparisons, left_out = comparisons_from(runs)
    assert len(comparisons) == 1
    assert left_out == ("/nowhere/c: is left out, no other run here is of the task y",)


def test_runs_of_which_no_two_are_of_a_task_are_compared_with_a_warning():
    runs = [run_of("a", answers(1, 0), task="x"), run_of("b", answers(0, 1), task="my_x")]
    [comparison], left_out = comparisons_from(runs)
    assert (comparison.tasks, left_out) == (("x", "my_x"), ())
    assert 'the runs differ in task: "x" (a); "my_x" (b)' in comparison.warnings


# --- played runs --------------------------------------------------------------------------------------------------


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Makes a run folder: played("name", accuracy=..., wanted=[...])."""
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")

    def make(name, *, wanted=range(N), **rates):
        folder = tmp_path / name
        folder.mkdir()
        plan = replace(plan_of(folder, n=N, wanted=[(doc, 0) for doc in wanted]), run_id=name, n_total=len(wanted))
        play(plan, receiver=SimulatedBackend(name, invalid=0, **rates))
        return plan.folder

    return make


def test_played_runs_are_compared_as_their_contributions_say(played):
    runs = [run_from_folder(played(n, accuracy=a, wanted=w), OFFERS) for n, a, w in
            (("weak", 0.3, range(40)), ("strong", 0.5, range(10, 60)))]  # fmt: skip
    comparison = compared(runs)
    left, right = ({s["id"]: run.metric_set.contributions(s) for s in run.summaries} for run in runs)
    for metric in ("accuracy", "accuracy_after.simple@b", "correction_rate.detail@a"):
        both = [key for key in left.keys() & right.keys() if metric in left[key] and metric in right[key]]
        pair = one(comparison, metric)
        assert 0 < pair.n == len(both)
        assert pair.difference.value == pytest.approx(sum(left[k][metric] - right[k][metric] for k in both) / len(both))
        assert comparison.own[pair.first.run][metric] == runs[0].metric_set.table(runs[0].summaries)[metric]
        scored = sum(metric in own for own in left.values())
        assert pair.n + pair.first.n_not_there + pair.first.n_not_scored == scored
    assert [(o.n_common, o.n_only_first, o.n_only_second) for o in comparison.overlaps] == [(30, 10, 20)]


def test_a_run_compared_with_its_copy_differs_nowhere(played, tmp_path):
    first = played("same")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "episodes.jsonl").write_bytes((first / "episodes.jsonl").read_bytes())
    write_json(copy / MANIFEST, read_json(first / MANIFEST))
    comparison = compared([run_from_folder(folder, OFFERS) for folder in (first, copy)], ["*"])
    assert {pair.difference.value for pair in comparison.pairs} == {0.0}
    assert list(comparison.own) == [f"simulated:same ({first})", f"simulated:same ({copy})"]
