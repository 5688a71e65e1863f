"""Runs side by side: the same items, paired, and what may not be compared."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from statsmodels.stats.contingency_tables import mcnemar

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import agresti_min
from interbench_tasks.report.comparison import as_json, flat_pairs, foot_lines, own_grid, pairs_grid
from interbench_tasks.report.formats import as_text
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.folder import MANIFEST, read_json, write_json
from interbench_tasks.runs.score import run_from_folder
from tests.cli import interbench
from tests.test_second_pass import OFFERS, plan_of, play

N = 60


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


@pytest.fixture
def played(tmp_path):
    """Makes a run folder: played("name", accuracy=..., wanted=[...])."""

    def make(name, *, wanted=None, block=None, **rates):
        folder = tmp_path / name
        folder.mkdir()
        keys = [(doc, 0) for doc in (wanted if wanted is not None else range(N))]
        plan = replace(plan_of(folder, n=N, wanted=keys, **(block or {})), run_id=name, n_total=len(keys))
        play(plan, receiver=SimulatedBackend(name, invalid=0, **rates))
        return plan.folder

    return make


def loaded(*folders):
    return [run_from_folder(folder, OFFERS) for folder in folders]


def one(comparison, metric):
    [pair] = [pair for pair in comparison.pairs if pair.metric == metric]
    return pair


def by_id(run):
    return {summary["id"]: run.metric_set.contributions(summary) for summary in run.summaries}


def test_accuracy_is_compared_on_the_common_items_with_a_paired_interval(played):
    runs = loaded(played("weak", accuracy=0.3), played("strong", accuracy=0.7))
    pair = one(compared(runs), "accuracy")
    left, right = (by_id(run) for run in runs)
    b = sum(left[key]["accuracy"] > right[key]["accuracy"] for key in left)
    c = sum(left[key]["accuracy"] < right[key]["accuracy"] for key in left)
    assert pair.n == N
    assert pair.difference.value == pytest.approx((b - c) / N)
    assert pair.difference.ci95 == pytest.approx(agresti_min(b, c, N))
    assert (mcnemar([[0, b], [c, 0]]).pvalue < 0.05) == (not pair.difference.ci95[0] <= 0 <= pair.difference.ci95[1])


def test_a_correction_rate_is_compared_on_the_items_in_both_test_sets_only(played):
    runs = loaded(played("weak", accuracy=0.3), played("strong", accuracy=0.5))
    metric = "correction_rate.detail@a"
    pair = one(compared(runs), metric)
    left, right = (by_id(run) for run in runs)
    both = [key for key in left if metric in left[key] and metric in right[key]]
    assert 0 < pair.n == len(both) < min(sum(metric in found for found in side.values()) for side in (left, right))
    assert pair.first_value == pytest.approx(sum(left[key][metric] for key in both) / len(both))
    assert pair.only_first == sum(metric in found for found in left.values()) - len(both)
    assert pair.only_second == sum(metric in found for found in right.values()) - len(both)


def test_runs_over_other_items_are_compared_where_they_overlap_and_the_rest_is_told(played):
    runs = loaded(played("first", wanted=range(0, 40)), played("second", wanted=range(10, 60)))
    comparison = compared(runs)
    assert one(comparison, "accuracy").n == 30
    assert list(comparison.missing.values()) == [(10, 20)]
    assert "simulated:first has 10 episodes" in "\n".join(foot_lines(comparison))


def test_a_run_compared_with_its_like_differs_nowhere(played):
    first, second = played("same", seed=1), played("again", seed=1)
    manifest = read_json(second / MANIFEST)
    lines = (first / "episodes.jsonl").read_text(encoding="utf-8")
    (second / "episodes.jsonl").write_text(lines, encoding="utf-8")
    write_json(second / MANIFEST, manifest)
    assert {pair.difference.value for pair in compared(loaded(first, second)).pairs} == {0.0}


def test_three_runs_are_compared_each_with_each_and_five_with_the_first(played):
    folders = [played(name) for name in ("m1", "m2", "m3")]
    pairs = {(pair.first, pair.second) for pair in compared(loaded(*folders)).pairs}
    assert pairs == {(f"simulated:{a}", f"simulated:{b}") for a, b in (("m1", "m2"), ("m1", "m3"), ("m2", "m3"))}
    more = [*folders, played("m4"), played("m5")]
    assert {pair.first for pair in compared(loaded(*more)).pairs} == {"simulated:m1"}


def test_the_same_model_twice_is_told_apart_by_its_runs(played):
    first, second = played("one"), played("two")
    manifest = read_json(second / MANIFEST)
    manifest["models"]["receiver"]["name"] = "simulated:one"
    write_json(second / MANIFEST, manifest)
    assert list(compared(loaded(first, second)).own) == ["simulated:one (one)", "simulated:one (two)"]


def test_metrics_are_chosen_by_name_or_glob(played):
    runs = loaded(played("one"), played("two"))
    chosen = compared(runs, ("repeat_rate.*", "accuracy"))
    assert {pair.metric.partition("@")[0] for pair in chosen.pairs} == {
        "accuracy", "repeat_rate.detail", "repeat_rate.simple", "repeat_rate.reask", "repeat_rate.mismatched",
    }  # fmt: skip
    with pytest.raises(InterbenchError, match="fits no metric"):
        compared(runs, ("accurcy",))


def test_what_is_no_success_of_an_episode_is_not_compared(played):
    runs = loaded(played("one"), played("two"))
    assert not {p.metric for p in compared(runs, ("elimination_floor@a", "net_bit_effect@a", "accuracy")).pairs} - {
        "accuracy"
    }


def test_what_differs_between_the_runs_is_told(played):
    runs = loaded(played("one"), played("two", block={"providers": ["simulated:a", "simulated:c"]}))
    warnings = "\n".join(compared(runs).warnings)
    assert "differ in: providers" in warnings
    assert "simulated:two: its receiver is a simulation" in warnings


def test_an_unfinished_run_is_told(played):
    first, second = played("one"), played("two")
    lines = (second / "episodes.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (second / "episodes.jsonl").write_text("".join(lines[:30]), encoding="utf-8")
    warnings = compared(loaded(first, second)).warnings
    assert any("simulated:two: the run is UNFINISHED" in warning for warning in warnings)


def test_runs_of_other_questions_are_refused(played):
    first, second = played("one"), played("two")
    text = (second / "episodes.jsonl").read_text(encoding="utf-8")
    (second / "episodes.jsonl").write_text(text.replace('"target":"', '"target":"other '), encoding="utf-8")
    with pytest.raises(InterbenchError, match="60 episodes of the same id have different right answers"):
        compared(loaded(first, second))


def test_what_cannot_be_compared_says_why(played):
    first = played("one", wanted=range(0, 10))
    with pytest.raises(InterbenchError, match="needs two runs"):
        compared(loaded(first))
    with pytest.raises(InterbenchError, match="is named twice"):
        compared(loaded(first, first))
    with pytest.raises(InterbenchError, match="no episode in common"):
        compared(loaded(first, played("two", wanted=range(20, 30))))


def test_tables_and_json_say_the_same(played):
    comparison = compared(loaded(played("weak", accuracy=0.3), played("strong", accuracy=0.7)))
    pair = one(comparison, "accuracy")
    [line] = [line for line in as_text(pairs_grid(comparison)).splitlines() if line.startswith("accuracy  ")]
    assert f"{100 * pair.difference.value:+.1f} [" in line
    assert "simulated:weak" in as_text(own_grid(comparison))
    [row] = [row for row in flat_pairs(comparison) if row["metric"] == "accuracy"]
    assert (row["n"], row["difference"]) == (pair.n, pair.difference.value)
    assert json.loads(json.dumps(as_json(comparison)))["pairs"][0]["metric"] == "accuracy"


def test_the_commands_read_runs_and_change_nothing(played, tmp_path):
    first, second = played("weak", accuracy=0.3), played("strong", accuracy=0.7)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    shown = interbench("compare", first, second)
    shown.check()
    assert "Paired, on the episodes that are scored in both" in shown.output
    table = interbench("table", first, second, "--format", "latex")
    table.check()
    assert r"\multicolumn{3}{c}{simulated:a}" in table.output
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    wrong = interbench("table", first, "--layout", "papers")
    assert wrong.exit_code == 1
    assert "allowed: interfeedback, controls" in wrong.output
