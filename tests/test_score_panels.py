"""`interbench compare --show judges` of conversations: how high each judge scores, and how far they agree."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace

import numpy as np
import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.judge_habits import judge_means
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.record_json import line_from_record
from interbench_tasks.records import Verdict
from interbench_tasks.report.compared import parts_of
from interbench_tasks.report.formats import as_csv, as_markdown, as_text
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.score_panels import score_report
from tests.conversation_records import Options, talk
from tests.scored_runs import run_of

JUDGES = ("gpt-5.2", "kind", "strict")


def scored(judge, score):
    return Verdict(judge=judge, status="unparsed" if score is None else "scored", score=score)


def written(folder, name, *, n=20, seed=0, judges=JUDGES, arms=("none",), first=0, missing=0.1, **manifest):
    """A run on disk: `kind` scores one more, `strict` one less; judges fail in a share of their verdicts."""
    dice = random.Random(f"{name}{seed}")
    shift = {"kind": 1, "strict": -1}
    records, given = [], []
    for number in range(first, first + n):
        record = talk(number, {arm: {ability: 3 for ability in ABILITIES} for arm in arms})
        turns = []
        for turn in record.turns:
            if turn.verdict is None:
                turns.append(turn)
                continue
            truth = dice.randint(1, 4)
            scores = {
                judge: None if dice.random() < missing else min(5, max(0, truth + shift.get(judge, 0)))
                for judge in judges
            }
            given.append(scores)
            turns.append(replace(turn, verdicts=tuple(scored(judge, score) for judge, score in scores.items())))
        records.append(replace(record, turns=tuple(turns)))
    metric_set = ConversationMetrics(Options(memories=arms))
    folder.mkdir(parents=True)
    (folder / "episodes.jsonl").write_text("".join(f"{line_from_record(one)}\n" for one in records), encoding="utf-8")
    options = {"memories": list(arms), "panel": "mean_of_valid", "rubric": "mmrc"}
    models = {f"judge@{judge}": {"name": f"openai:{judge}"} for judge in judges}
    run = run_of(
        name,
        [metric_set.summary(one) for one in records],
        metric_set=metric_set,
        protocol="conversation",
        metrics="mmrc",
        **{"protocol_options": options, **manifest},
    )
    manifest = {**run.manifest, "models": {**models, "receiver": {"name": name}}}
    return replace(run, folder=folder, manifest=manifest), given


@pytest.fixture
def two(tmp_path):
    return [written(tmp_path / name, name) for name in ("gpt-4o", "qwen3-vl")]


def test_each_judge_has_the_mean_and_deviation_of_its_scores_and_how_much_stricter_it_is(two):
    report = score_report([run for run, _ in two])
    given = [scores for _, own in two for scores in own]
    assert report.judges == JUDGES
    for judge in JUDGES:
        own = [scores[judge] for scores in given if scores[judge] is not None]
        assert report.means[judge].value == pytest.approx(np.mean(own))
        assert (report.means[judge].n, report.means[judge].unscored) == (len(own), len(given) - len(own))
        assert report.means[judge].points == 5
        assert report.means[judge].ci95.low < np.mean(own) < report.means[judge].ci95.high
        assert report.deviations[judge] == pytest.approx(np.std(own, ddof=1))
    whole = [scores for scores in given if None not in scores.values()]
    lower = np.mean([(s["gpt-5.2"] + s["kind"]) / 2 - s["strict"] for s in whole])
    assert report.strictness["score"]["strict"].value == pytest.approx(lower)
    assert report.strictness["score"]["kind"].value < 0 < report.strictness["score"]["strict"].value


def test_agreement_is_that_of_ordered_scores_over_the_whole_scale(two):
    report = score_report([run for run, _ in two])
    own = report.agreement["score"]
    given = [scores for _, each in two for scores in each]
    pairs = [(s["gpt-5.2"], s["kind"]) for s in given if None not in (s["gpt-5.2"], s["kind"])]
    from sklearn.metrics import cohen_kappa_score

    kappa = cohen_kappa_score(*zip(*pairs, strict=True), labels=range(6), weights="quadratic")
    assert own["cohens_kappa.gpt-5.2.kind.quadratic"].value == pytest.approx(kappa)
    assert own["krippendorffs_alpha.ordinal"].value > own["krippendorffs_alpha"].value
    assert set(report.by_run) == {"gpt-4o", "qwen3-vl"}
    assert report.by_run_is == "krippendorffs_alpha.ordinal.score"


def test_rankings_without_a_judge_are_by_the_mean_of_the_others(two):
    report = score_report([run for run, _ in two])
    without = {one.without: one for one in report.without["score"]}
    assert list(without) == [*JUDGES, "own family"]
    (_, given), _ = two
    means = [
        np.mean(kept)
        for scores in given
        if (kept := [v for judge, v in scores.items() if judge != "strict" and v is not None])
    ]
    assert without["strict"].values["gpt-4o"] == pytest.approx(np.mean(means))
    assert without["own family"].values["qwen3-vl"] != without["gpt-5.2"].values["qwen3-vl"]


def test_only_replies_that_all_runs_have_count_and_what_is_missing_is_told(tmp_path):
    runs = [written(tmp_path / "a", "a", n=6)[0], written(tmp_path / "b", "b", n=6, first=2)[0]]
    report = score_report(runs)
    assert report.n_common == 4 * len(ABILITIES)
    assert any("judged replies that not all runs have are left out" in note for note in report.notes)
    assert any("verdicts are missing" in note for note in report.notes)


def test_several_memories_and_another_rule_are_told(tmp_path):
    options = {"memories": ["none", "summary"], "panel": "median_of_valid", "rubric": "mmrc"}
    runs = [
        written(tmp_path / name, name, n=4, arms=("none", "summary"), protocol_options=options)[0]
        for name in ("a", "b")
    ]
    report = score_report(runs)
    assert report.n_common == 2 * 4 * len(ABILITIES)
    assert "the replies of all memories (none, summary) are taken together" in report.notes
    assert any("the runs' rule is median_of_valid" in note for note in report.notes)


def test_other_judges_or_one_alone_are_an_error(tmp_path):
    first = written(tmp_path / "a", "a", n=3)[0]
    with pytest.raises(InterbenchError, match="different judges"):
        score_report([first, written(tmp_path / "b", "b", n=3, judges=("gpt-5.2", "kind"))[0]])
    alone = [written(tmp_path / f"one{name}", name, n=3, judges=("gpt-5.2",))[0] for name in "cd"]
    with pytest.raises(InterbenchError, match="one judge only"):
        score_report(alone)


def test_scores_between_whole_numbers_are_labels_of_their_own(two):
    runs = [run for run, _ in two]
    before = score_report(runs).means["kind"].value
    for run in runs:
        text = (run.folder / "episodes.jsonl").read_text(encoding="utf-8")
        (run.folder / "episodes.jsonl").write_text(text.replace('"score":4}', '"score":4.5}'), encoding="utf-8")
    report = score_report(runs)
    few = sum(sum(score is not None for score in scores.values()) < 2 for _, given in two for scores in given)
    assert report.agreement["score"]["raw_agreement"].unscored == few, "4.5 is a label too"
    assert report.means["kind"].value > before


def test_the_command_shows_habits_agreement_and_rankings_in_every_format(two):
    runs = [run for run, _ in two]
    [part] = parts_of(compared(runs, ("overall.*",)), runs, ("judges",))
    titles = [grid.title for grid in part.grids]
    assert titles[1].startswith("The mean and standard deviation of a judge's scores")
    assert titles[2] == "Krippendorff's ordinal alpha of scores, by run"
    habits = {row[0]: row for row in part.grids[1].rows}
    assert part.grids[1].headers == ["judge", "mean", "sd", "lower than the others"]
    assert habits["strict"][3].startswith("+")
    text = "\n".join(map(as_text, part.grids)) + "".join(map(as_markdown, part.grids))
    assert "clarification" not in text
    rows = list(csv.DictReader(io.StringIO(as_csv(part.flat))))
    assert {row["of"] for row in rows if row["what"] == "mean.score"} == set(JUDGES)
    assert {row["of"] for row in rows if row["what"] == "sd.score"} == set(JUDGES)
    nested = json.loads(json.dumps(part.nested, allow_nan=False))["judges"]
    assert set(nested["means"]) == set(nested["deviations"]) == set(JUDGES)


def test_the_mean_of_a_judge_that_never_scored_is_absent():
    found = judge_means({"a": [1, None], "b": [None, None]}, span=(0.0, 5.0))
    assert list(found) == ["a"]
    assert (found["a"].value, found["a"].n, found["a"].unscored, found["a"].bounds) == (1, 1, 1, None)
    with pytest.raises(ValueError, match="is not from 0 to 5"):
        judge_means({"a": [6]}, span=(0.0, 5.0))
