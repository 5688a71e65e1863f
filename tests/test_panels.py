"""The judges of critiques: votes as numbers, and what `interbench compare --show judges` says of them."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import numpy as np
import pytest

from interbench_tasks.critique_votes import STRATEGIES, Vote
from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.critique_panel import FIELDS, CritiquePanel
from interbench_tasks.report.compared import parts_of
from interbench_tasks.report.formats import as_csv, as_text
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.panels import panel_report
from interbench_tasks.runs.score import ScoredRun
from tests.critiques import JUDGES, NO, YES, any_vote, judged, metrics, record
from tests.scored_runs import MANIFEST, OwnValues, changed, episode, run_of


def critiques(name, votes, *, judges=JUDGES, receiver="m", metric_set=None, **changes) -> ScoredRun:
    """A run whose items got these votes, one a judge."""
    made = metric_set or metrics()
    models = {f"judge@{judge}": {"name": judge} for judge in judges} | {"receiver": {"name": receiver}}
    manifest = changed(MANIFEST, run_id=name, metrics="mmpcbench", protocol="critique")
    summaries = [made.summary(record(doc, own, **changes)) for doc, own in enumerate(votes)]
    folder = Path("/nowhere") / name
    return ScoredRun(folder=folder, manifest={**manifest, "models": models}, metric_set=made, summaries=summaries)


def votes_of(panel: CritiquePanel, summaries) -> np.ndarray:
    """[judges, 1 model, items, fields]"""
    given = [panel.votes(summary) for summary in summaries]
    nothing = [np.nan] * len(FIELDS)
    return np.array([[[own[judge] or nothing for own in given]] for judge in JUDGES])


# --- votes as numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("combine", ["arithmetic", "geometric", "harmonic"])
@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_panels_of_arrays_come_to_what_the_metrics_say_of_each_item(combine, missing):
    dice = random.Random(7)
    rows = [[None if dice.random() < missing else any_vote(dice) for _ in JUDGES] for _ in range(400)]
    made = metrics(pcq_combine=combine)
    summaries = [made.summary(record(doc, own)) for doc, own in enumerate(rows)]
    panel = made.panel
    votes = votes_of(panel, summaries)
    parts, make = panel.metrics["pcq"][0](votes)[:, 0], panel.metrics["pcq"][1]
    found = {"eda": panel.metrics["eda"][0](votes)[0], **dict(zip(("eda", "dp", "se"), parts, strict=True))}
    means = [np.array([np.nanmean(part)]) for part in parts]
    assert make(*means)[0] == pytest.approx(made.table(summaries)["pcq"].value)
    for item, summary in enumerate(summaries):
        own = made.contributions(summary)
        for name, values in found.items():
            assert values[item] == pytest.approx(own.get(name, np.nan), nan_ok=True), (name, rows[item])


def test_a_vote_that_detected_nothing_says_nothing_else():
    odd = Vote(False, 2.0, "refusal", 2.0)
    [summary] = critiques("r", [[odd, YES, None]]).summaries
    assert metrics().panel.votes(summary) == {
        "a": (0.0, 0.0, STRATEGIES.index("none"), 0.0),
        "b": (1.0, 2.0, STRATEGIES.index("refusal"), 2.0),
        "c": None,
    }


def test_sound_items_and_failed_replies_have_no_votes_on_a_flaw():
    made = metrics()
    sound = made.summary(judged(0, "valid", [{"refuses_whole_task": "false", "false_alarm": "true"}] * 3))
    assert made.panel.votes(sound) == {}
    assert made.panel.votes(made.summary(record(0, None))) == {}


# --- the report -----------------------------------------------------------------------------------------------------


def test_agreement_strictness_and_rankings_of_a_planted_panel():
    """a and b say what is true; c turns it round in 20% of all replies, and never says yes to the model it dislikes."""
    dice = random.Random(3)
    runs = []
    for name, rate in (("low", 0.3), ("high", 0.6), ("disliked", 0.9)):
        rows = []
        for _ in range(300):
            truth = YES if dice.random() < rate else NO
            third = NO if name == "disliked" else truth if dice.random() > 0.2 else (NO if truth is YES else YES)
            rows.append([truth, truth, third])
        runs.append(critiques(name, rows, receiver=name))
    report = panel_report(runs)
    detected = report.agreement["detected"]
    assert detected["cohens_kappa.a.b"].value == 1
    assert detected["cohens_kappa.a.c"].value == pytest.approx(detected["cohens_kappa.b.c"].value)
    assert detected["raw_agreement"].n == 900
    assert list(report.by_run) == ["low", "high", "disliked"]
    assert report.strictness["detected"]["c"].value > 0.2
    assert report.strictness["detected"]["a"].value == pytest.approx(report.strictness["detected"]["b"].value)
    assert all(estimate.value < 0 for judge, estimate in report.strictness["detected"].items() if judge != "c")
    without = {one.without: one for one in report.without["eda"]}
    assert without["c"].ranks == {"disliked": 1, "high": 2, "low": 3}
    assert without["a"].ranks["disliked"] == 3, "of two judges both must say yes"
    assert without["a"].moved


def test_a_judges_own_family_is_left_out_of_its_relatives_panel():
    judges = ("gpt-5.2", "claude-4", "gemini-3")

    def run(receiver, own):
        rows = [dict(zip(judges, own, strict=True)) for _ in range(20)]
        made = critiques(receiver, [list(row.values()) for row in rows], receiver=receiver)
        renamed = dict(zip(JUDGES, judges, strict=True))
        summaries = [
            {**row, "votes": {"": {renamed[judge]: vote for judge, vote in row["votes"][""].items()}}}
            for row in made.summaries
        ]
        models = {f"judge@{judge}": {"name": f"openai:{judge}"} for judge in judges}
        manifest = {**made.manifest, "models": models | {"receiver": {"name": f"openai:{receiver}"}}}
        return ScoredRun(folder=made.folder, manifest=manifest, metric_set=made.metric_set, summaries=summaries)

    report = panel_report([run("gpt-4o", [YES, YES, NO]), run("qwen3-vl", [NO, YES, YES])])
    (*_, relatives) = report.without["eda"]
    assert relatives.without == "own family"
    assert relatives.values == {"openai:gpt-4o": 0.0, "openai:qwen3-vl": 1.0}, "its own judge made its majority"
    assert report.without["eda"][0].without == "gpt-5.2"


def test_scores_agree_among_those_that_detected_something():
    first, other = Vote(True, 2.0, "refusal", 2.0), Vote(True, 1.0, "clarification", 1.0)
    report = panel_report([critiques(name, [[first, other, NO], [first, first, first]]) for name in ("x", "y")])
    assert report.agreement["detected"]["raw_agreement"].n == 4
    assert "fleiss_kappa" not in report.agreement["diag"], "where all three spoke they said the same"
    assert report.agreement["diag"]["raw_agreement"].value == pytest.approx(0.5)
    assert report.agreement["strategy"]["raw_agreement"].unscored == 0
    assert "krippendorffs_alpha.ordinal" in report.agreement["diag"]
    assert "krippendorffs_alpha.ordinal" not in report.agreement["strategy"], "strategies have no order"
    assert report.bias.keys() == {"b"}, "the others never chose both"
    assert report.bias["b"].value == pytest.approx(1.0 - 2.0)


def test_missing_verdicts_and_items_of_one_run_alone_are_told():
    runs = [critiques("x", [[YES, YES, None], [NO, NO, NO]]), critiques("y", [[YES, YES, YES]])]
    report = panel_report(runs)
    assert report.n_common == 1
    assert report.notes == (
        "1 verdicts are missing; nobody guesses what they would have been",
        "1 replies to items that not all runs have are left out",
    )


def test_a_reply_that_ends_while_thinking_challenged_nothing_and_says_nothing_of_judges():
    runs = [critiques("x", [[YES] * 3, [YES] * 3]), critiques("y", [[YES] * 3, [YES] * 3])]
    cut = {**runs[0].summaries[1], "votes": {"": "no_answer"}}
    runs[0] = ScoredRun(
        folder=runs[0].folder,
        manifest=runs[0].manifest,
        metric_set=runs[0].metric_set,
        summaries=[runs[0].summaries[0], cut],
    )
    report = panel_report(runs)
    assert report.without["eda"][0].values == {"m (x)": 0.5, "m (y)": 1.0}
    assert report.agreement["detected"]["raw_agreement"].n == 3
    assert report.notes == ()


def test_a_failed_call_is_left_out_of_its_own_run_alone():
    report = panel_report([critiques("x", [[YES] * 3, None]), critiques("y", [[NO] * 3, [YES] * 3])])
    assert report.n_common == 2
    assert report.without["eda"][0].values == {"m (x)": 1.0, "m (y)": 0.5}
    assert report.notes == ()


def other_judges() -> list[ScoredRun]:
    first, second = (critiques(name, [[YES] * 3]) for name in ("x", "y"))
    [summary] = second.summaries
    votes = {"": {"a": None, "b": None, "other": None}}
    changed_one = ScoredRun(
        folder=second.folder,
        manifest=second.manifest,
        metric_set=second.metric_set,
        summaries=[{**summary, "votes": votes}],
    )
    return [first, changed_one]


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        (lambda: [run_of(name, [episode(0, accuracy=1)]) for name in ("x", "y")], "do not tell what each judge said"),
        (other_judges, "different judges .*y: a, b, other.*interbench judge RUNS"),
        (lambda: [critiques("x", [[YES]]), critiques("y", [[NO]])], "one judge only"),
        (lambda: [critiques("x", [None]), critiques("y", [[YES] * 3])], "has no verdict at all"),
        (lambda: [critiques("x", []), critiques("y", [[YES] * 3])], "no item on which judges were to vote"),
    ],
)
def test_runs_whose_judges_cannot_be_compared_say_why(runs, told):
    with pytest.raises(InterbenchError, match=told):
        panel_report(runs())


def test_a_panel_is_shown_as_tables_csv_and_json():
    dice = random.Random(5)
    runs = [
        critiques(name, [[any_vote(dice) for _ in JUDGES] for _ in range(30)], receiver=name) for name in ("x", "y")
    ]
    [part] = parts_of(compared(runs, ["eda"]), runs, ["judges"])
    titles = [grid.title for grid in part.grids]
    assert titles[0] == "t: 3 judges of 30 items of each run, agreement"
    text = "\n".join(map(as_text, part.grids))
    for words in ("fleiss_kappa", "clarification - refusal", "Spearman", "cohens_kappa.a.b.quadratic"):
        assert words in text
    rows = list(csv.DictReader(io.StringIO(as_csv(part.flat))))
    assert {"strictness.detected", "fleiss_kappa", "spearman.eda", "fleiss_kappa.detected"} <= {r["what"] for r in rows}
    nested = json.loads(json.dumps(part.nested, allow_nan=False))
    assert nested["judges"]["judges"] == ["a", "b", "c"]
    assert nested["judges"]["without"]["pcq"][0]["without"] == "a"


def test_other_metric_sets_still_compare_without_judges():
    runs = [run_of(name, [episode(0, accuracy=1)], metric_set=OwnValues()) for name in ("x", "y")]
    assert [next(iter(part.nested)) for part in parts_of(compared(runs), runs, ())] == ["tasks"]


def test_what_does_not_apply_to_a_reply_is_not_unscored_and_a_judge_that_failed_is():
    low, high = Vote(True, 1.0, "refusal", 1.0), Vote(True, 2.0, "refusal", 2.0)
    given = [[low, high, low], [high] * 3, [NO] * 3, [NO, NO, YES], [NO, YES, YES], [None, NO, NO], [None, high, low]]
    report = panel_report([critiques("x", given)])
    counts = {
        (name, what): (found.n, found.unscored)
        for name, of in report.agreement.items()
        for what, found in of.items()
        if name in ("detected", "diag")
    }
    assert counts["detected", "raw_agreement"] == (7, 0)
    assert counts["detected", "fleiss_kappa"] == (5, 2)
    # Nobody, or one judge, has a diagnosis of the third and fourth; two have one of the fifth; of the sixth nobody
    # could have a second one.
    assert counts["diag", "raw_agreement"] == (4, 0)
    assert counts["diag", "fleiss_kappa"] == (2, 1)
    assert counts["diag", "cohens_kappa.a.b"] == (2, 1)
    assert counts["diag", "cohens_kappa.b.c"] == (4, 0)
    assert [(one.n, one.unscored) for one in report.strictness["diag"].values()] == [(2, 1)] * 3
    assert [(one.n, one.unscored) for one in report.strictness["detected"].values()] == [(5, 2)] * 3


def test_a_reply_on_which_nobody_was_asked_is_not_unscored():
    run = critiques("x", [[YES, YES, NO], [NO, NO, YES], [YES] * 3])
    cut = {**run.summaries[2], "votes": {"": "no_answer"}}
    run = ScoredRun(
        folder=run.folder,
        manifest=run.manifest,
        metric_set=run.metric_set,
        summaries=[*run.summaries[:2], cut],
    )
    report = panel_report([run])
    assert {(one.n, one.unscored) for one in report.agreement["detected"].values()} == {(2, 0)}
    assert {(one.n, one.unscored) for one in report.strictness["detected"].values()} == {(2, 0)}
    assert [(one.n, one.unscored) for one in report.by_run.values()] == [(2, 0)]
