"""What follows of labels: agreement of people, judges and panel, and the corrected numbers of a whole run."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from interbench_tasks.critique_votes import Vote
from interbench_tasks.errors import RunFolderError
from interbench_tasks.labels import tables
from interbench_tasks.labels.agreement import agreements_of
from interbench_tasks.labels.calibrating import calibrated
from interbench_tasks.labels.items import label_run
from interbench_tasks.labels.opinions import labelled_run
from interbench_tasks.labels.sampling import Design, drawn, keep_sample
from interbench_tasks.labels.store import LABELS, Label, add_labels
from interbench_tasks.report.formats import as_text
from interbench_tasks.runs.judge import Wanted, judge_run
from interbench_tasks.runs.score import run_from_folder
from tests.critiques import JUDGES, NO, YES, record
from tests.judged_runs import MANAGER, OFFERS, Speaker, flawed, play, write_task
from tests.labelled_runs import (
    critique_manifest,
    critique_records,
    critique_run,
    label_all,
    number_of,
    talk_run,
    talk_truth,
    truth_of,
    vote_texts,
    write_run,
)

pytest.importorskip("ppi_py", reason="the extra `calibration` is not installed")
DRAWS = 300


def numbers(folder, **options):
    options = {"aggregate": False, "draws": DRAWS} | options
    return {one.metric: one for one in calibrated(labelled_run(folder), **options)}


def agreements(folder):
    return {(one.what, one.who): one for one in agreements_of(labelled_run(folder), draws=DRAWS)}


def noisy(seed: int, share: float = 0.1):
    """A person who says of some items that nothing was detected, or something."""

    def say(number: int) -> Vote:
        truth = truth_of(number)
        if random.Random(f"{seed} {number}").random() >= share:
            return truth
        return Vote(False) if truth.detected else Vote(True, 1.0, "refusal", 1.0)

    return say


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """240 critiques, 120 labelled by two people who never err."""
    folder = critique_run(tmp_path_factory.mktemp("labelled") / "run")
    label_all(folder)
    return folder


@pytest.fixture(scope="module")
def differing(tmp_path_factory):
    """The same, by people who differ now and then."""
    folder = critique_run(tmp_path_factory.mktemp("differing") / "run")
    label_all(folder, people={"a1": noisy(1), "a2": noisy(2)})
    return folder


def add_third(folder, say=truth_of) -> int:
    """A third person looks at what two differ on."""
    one = labelled_run(folder)
    labels = [
        Label(item=own.item.id, annotator="c", values=vote_texts(say(number_of(one.run, own.item.id))), source="csv")
        for own in one.disagreed
    ]
    add_labels(folder, labels)
    return len(labels)


# --- corrected numbers ------------------------------------------------------------------------------------------------


def test_the_panels_numbers_are_those_of_the_run(labelled):
    table = run_from_folder(labelled, OFFERS).metrics()["metrics"]
    found = numbers(labelled)
    for name in ("eda", "dp", "se", "pcq"):
        assert found[name].panel.value == pytest.approx(table[name]["value"]), name
        assert found[name].panel.unscored == table[name]["unscored"], name
    for name in ("eda", "dp", "se"):
        assert found[name].panel.n == table[name]["n"]


def test_the_panels_interval_is_the_one_of_the_runs_own_table_where_that_says_the_same(tmp_path):
    folder = critique_run(tmp_path, 60)
    label_all(folder, design=Design(n=30))
    computed = numbers(folder)["eda"].panel
    metrics = run_from_folder(folder, OFFERS).metrics()
    metrics["metrics"]["eda"]["ci95"] = [0.1, 0.9]
    metrics["metrics"]["dp"]["value"] = 9.0
    (folder / "metrics.json").write_text(json.dumps(metrics))
    found = numbers(folder)
    assert found["eda"].panel.ci95 == (0.1, 0.9)
    assert found["dp"].panel.value != 9.0, "another number than the transcripts give"
    (folder / "metrics.json").write_text("{")
    assert numbers(folder)["eda"].panel == computed


def test_the_corrected_numbers_hold_what_people_say_of_all_items(labelled):
    truths = [truth_of(number) for number in range(240)]
    saw = [truth for truth in truths if truth.detected]
    wanted = {
        "eda": len(saw) / 240,
        "dp": np.mean([truth.diag for truth in saw]),
        "se": np.mean([truth.score for truth in saw]),
        "pcq": sum(truth.diag / 2 + truth.score / 2 for truth in saw) / 2 / 240,
    }
    found = numbers(labelled)
    for name, value in wanted.items():
        ends = found[name].corrected.estimate.ci95
        assert ends.low <= value <= ends.high, name
        assert found[name].corrected.n_labelled == 120
        assert found[name].corrected.estimate.n == found[name].panel.n, "what both values rest on"
        assert [part.n_labelled for part in found[name].corrected.strata] == [30] * 4


def test_each_judge_has_its_own_number(labelled):
    found = numbers(labelled)
    records = critique_records()
    for place, judge in enumerate(JUDGES):
        votes = [one.turns[0].verdicts[place].fields for one in records]
        saw = [own for own in votes if own["detected"] == "true"]
        assert found["eda"].judges[judge].value == pytest.approx(len(saw) / 240)
        assert found["dp"].judges[judge].value == pytest.approx(np.mean([float(own["diag"]) for own in saw]))


def test_judges_that_err_alike_are_few_and_those_that_do_not_are_many(tmp_path):
    alike = []
    for number in range(240):
        truth = truth_of(number)
        wrong = random.Random(number).random() < 0.2
        vote = Vote(not truth.detected, 1.0, "refusal", 1.0) if wrong else truth
        alike.append(record(number, [vote if vote.detected else NO] * 3))
    same = write_run(tmp_path / "same", alike, critique_manifest())
    label_all(same, design=Design(n=120))
    own = critique_run(tmp_path / "own")
    label_all(own)
    assert numbers(same)["eda"].independent.estimate.value == pytest.approx(1)
    assert numbers(own)["eda"].independent.estimate.value > 1.8


def test_dawid_skene_stands_beside_the_panel(labelled):
    pytest.importorskip("crowdkit")
    found = numbers(labelled, aggregate=True)
    for name in ("eda", "dp", "se"):
        own = found[name]
        n = own.dawid_skene.n
        assert n == 240 if name == "eda" else abs(n - own.panel.n) < 24, "replies that count by its own labels"
        assert own.dawid_skene.ci95.low <= own.dawid_skene.value <= own.dawid_skene.ci95.high
        assert abs(own.dawid_skene.value - own.panel.value) < 0.15
    assert found["pcq"].dawid_skene is None
    assert "two values" in found["pcq"].why_no_aggregate


def test_with_fewer_judges_than_three_there_is_no_dawid_skene(tmp_path):
    rows = [record(number, [truth_of(number)]) for number in range(60)]
    folder = write_run(tmp_path, rows, critique_manifest() | {"protocol_options": {"judges": []}})
    label_all(folder, design=Design(n=30))
    own = numbers(folder, aggregate=True)["eda"]
    assert own.dawid_skene is None
    assert "needs 3 judges" in own.why_no_aggregate
    assert own.independent.why == "there is one judge only"
    assert own.corrected is not None


def test_unscored_replies_are_told_and_bound_the_number(tmp_path):
    rows = critique_records(120)
    rows[0] = record(0, None, task="mmpcbench_local")
    rows[1] = record(1, [YES, NO, None], category="EE.unclear_intent", task="mmpcbench_local")
    folder = write_run(tmp_path, rows, critique_manifest())
    label_all(folder, design=Design(n=60))
    found = numbers(folder)["eda"].corrected.estimate
    assert (found.n, found.unscored) == (118, 2)
    assert found.bounds.low < found.value < found.bounds.high


def test_a_stratum_with_too_few_labels_is_told_and_merged_only_where_asked_for(tmp_path):
    folder = critique_run(tmp_path)
    run = label_run(folder)
    sample = drawn(run, Design(n=120))
    keep_sample(folder, sample, labelled=())
    chosen = [name for name in sample.items if run.by_id()[name].category == "EE.ambiguity"][3:]
    left = [name for name in sample.items if name not in chosen]
    add_labels(folder, [Label(item=n, annotator="a1", values={"detected": "no"}, source="csv") for n in left])
    own = numbers(folder)["eda"]
    assert own.corrected is None
    assert "EE.ambiguity (3 of 60 labelled)" in own.why
    assert own.panel is not None
    merged = numbers(folder, merge_small=True)["eda"]
    assert "EE.ambiguity" in merged.corrected.merged
    lines = " ".join(tables.calibration_lines(labelled_run(folder), [own]))
    assert "Not corrected: eda: too few labels" in lines


def test_open_questions_are_counted_and_a_third_person_closes_them(differing):
    before = numbers(differing)["eda"]
    n_open = len(labelled_run(differing).disagreed)
    assert before.n_open == n_open > 5
    assert before.corrected.n_labelled == 120 - n_open
    assert add_third(differing) == n_open
    after = numbers(differing)["eda"]
    assert (after.n_open, after.corrected.n_labelled) == (0, 120)
    assert labelled_run(differing).disagreed == ()
    assert labelled_run(differing).n_complete == 120


def test_conversations_have_a_number_for_each_ability_and_arm(tmp_path):
    folder = talk_run(tmp_path, 80, arms=("none", "note_taking"))
    run = label_run(folder)
    sample = drawn(run, Design(n=240, strata="none"))
    keep_sample(folder, sample, labelled=())

    def truth(name: str) -> int:
        item = run.by_id()[name]
        arm, place = item.branch.split("/q")
        return talk_truth(int(item.episode_id.removeprefix("talk-")), int(place), arm)

    add_labels(
        folder,
        [Label(item=n, annotator="a1", values={"score": str(truth(n))}, source="csv") for n in sample.items],
    )
    found = numbers(folder)
    assert list(found) == [f"score.{kind}.{arm}" for kind in ("CR", "IU", "MR") for arm in ("none", "note_taking")]
    table = run_from_folder(folder, OFFERS).metrics()["metrics"]
    for name, own in found.items():
        assert own.panel.value == pytest.approx(table[name]["value"])
        assert own.corrected.estimate.points == 5
        assert own.corrected.estimate.value < own.panel.value - 0.2, "judges give a point too much now and then"
        assert own.independent.estimate.value == pytest.approx(1), "both judges say the same"
    place = {"CR": 0, "IU": 1, "MR": 2}
    hits = 0
    for name, own in found.items():
        _, kind, arm = name.split(".")
        ends = own.corrected.estimate.ci95
        hits += ends.low <= np.mean([talk_truth(n, place[kind], arm) for n in range(80)]) <= ends.high
    assert hits >= 5


# --- agreement --------------------------------------------------------------------------------------------------------


def test_people_who_say_the_same_agree_and_judges_less(labelled):
    found = agreements(labelled)
    assert found["detected", "people"].kappa.value == 1
    assert found["detected", "people"].exact.value == 1
    assert 0.5 < found["detected", "a"].kappa.value < 1
    assert found["detected", "panel"].kappa.value > found["detected", "a"].kappa.value
    assert {who for what, who in found if what == "diag"} == {"people", "a", "b", "c", "panel"}


def test_kappa_and_accuracy_are_what_can_be_counted_by_hand(differing):
    one = labelled_run(differing)
    pairs = [(own.opinions[0]["detected"], own.opinions[1]["detected"]) for own in one.items.values()]
    same = np.mean([x == y for x, y in pairs])
    yes = [np.mean([pair[place] for pair in pairs]) for place in (0, 1)]
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    found = agreements(differing)["detected", "people"]
    assert found.exact.value == pytest.approx(same)
    assert found.kappa.value == pytest.approx((same - chance) / (1 - chance))
    assert found.kappa.n == 120
    assert found.kappa.ci95.low < found.kappa.value < found.kappa.ci95.high


def test_a_third_person_does_not_change_how_often_two_differ(tmp_path):
    folder = critique_run(tmp_path)
    label_all(folder, people={"a1": noisy(1), "a2": noisy(2)})
    before = agreements(folder)["detected", "people"]
    add_third(folder)
    assert agreements(folder)["detected", "people"] == before


def test_diagnosis_counts_where_both_detected_something(labelled):
    one = labelled_run(labelled)
    both = [own for own in one.items.values() if own.people["detected"] == 1 and own.item.judges["a"]["detected"] == 1]
    found = agreements(labelled)["diag", "a"]
    assert (found.kappa.n, found.kappa.unscored) == (len(both), 0)
    assert found.weighted


def test_a_judge_that_failed_is_unscored(tmp_path):
    rows = [record(n, [truth_of(n), truth_of(n), None if n % 4 == 0 else truth_of(n)]) for n in range(60)]
    folder = write_run(tmp_path, rows, critique_manifest())
    label_all(folder, design=Design(n=60, strata="none"))
    found = agreements(folder)["detected", "c"]
    assert (found.exact.n, found.exact.unscored, found.exact.value) == (45, 15, 1)


def test_where_all_say_the_same_there_is_a_share_but_no_kappa(tmp_path):
    rows = [record(n, [NO] * 3) for n in range(40)]
    folder = write_run(tmp_path, rows, critique_manifest())
    label_all(folder, design=Design(n=20), people={"a1": lambda n: NO, "a2": lambda n: NO})
    found = agreements(folder)["detected", "people"]
    assert found.kappa is None
    assert found.exact.value == 1


# --- labels and runs --------------------------------------------------------------------------------------------------


def test_labels_serve_a_run_that_was_judged_again(tmp_path):
    folder = critique_run(tmp_path / "first")
    label_all(folder)
    stricter = [
        record(n, [NO if n % 3 == 0 else truth_of(n)] * 3, category=one.category, text=f"reply {n}", task=one.task)
        for n, one in enumerate(critique_records())
    ]
    other = write_run(tmp_path / "again", stricter, critique_manifest())
    found = {one.metric: one for one in calibrated(labelled_run(other, folder), aggregate=False, draws=DRAWS)}
    assert found["eda"].corrected.n_labelled == 120
    assert found["eda"].corrected.estimate.value > found["eda"].panel.value


def test_labels_of_other_replies_are_refused(tmp_path):
    folder = critique_run(tmp_path / "first")
    label_all(folder)
    other = write_run(tmp_path / "other", [record(n, [YES] * 3) for n in range(9)], critique_manifest())
    with pytest.raises(RunFolderError, match="its labels are of other replies"):
        labelled_run(other, folder)


def test_without_a_sample_the_error_says_how_to_draw_one(tmp_path):
    with pytest.raises(RunFolderError, match=r"has no sample\.json: draw a sample first: interbench people sample"):
        labelled_run(critique_run(tmp_path, 20))


def test_a_label_that_cannot_be_used_is_told_and_left_out(tmp_path):
    folder = critique_run(tmp_path)
    run = label_all(folder)
    inside = set(json.loads((folder / "sample.json").read_text())["items"])
    outside = next(item.id for item in run.items if item.id not in inside)
    bad = [
        Label(item=outside, annotator="x", values={"detected": "no"}, source="csv"),
        Label(item=sorted(inside)[0], annotator="x", values={"detected": "perhaps"}, source="csv"),
    ]
    add_labels(folder, bad)
    one = labelled_run(folder)
    assert len(one.problems) == 2
    assert "not in the sample; left out" in one.problems[0]
    assert "is not on the scale" in one.problems[1]
    assert all(len(own.labels) == 2 for own in one.items.values())
    assert (folder / LABELS).exists()


def test_a_run_that_nobody_has_labelled_yet_has_no_numbers_but_says_why(tmp_path):
    folder = critique_run(tmp_path, 60)
    keep_sample(folder, drawn(label_run(folder), Design(n=30)), labelled=())
    own = numbers(folder)["eda"]
    assert own.corrected is None
    assert "label some first" in own.why
    assert agreements(folder) == {}


# --- as tables --------------------------------------------------------------------------------------------------------


def test_tables_show_every_number_with_its_n(labelled):
    one = labelled_run(labelled)
    found = calibrated(one, aggregate=False, draws=DRAWS)
    main, judges = map(as_text, tables.calibration_grids(one, found))
    eda = next(line for line in main.splitlines() if line.startswith("eda"))
    assert "240" in eda
    assert "120" in eda
    assert len([line for line in judges.splitlines() if line.startswith(("eda", "dp", "se", "pcq"))]) == 4
    agreed = as_text(tables.agreement_grid(one, agreements_of(one, draws=DRAWS)))
    assert "people with each other" in agreed
    assert "people and panel" in agreed


def test_flat_values_and_json_hold_the_same_numbers(labelled):
    one = labelled_run(labelled)
    found = calibrated(one, draws=DRAWS)
    flat = list(tables.flat_calibration(one, found))
    nested = tables.calibration_as_json(one, found)
    json.dumps(nested, allow_nan=False)
    corrected = next(row for row in flat if (row["metric"], row["what"]) == ("eda", "corrected"))
    eda = next(own for own in nested["metrics"] if own["metric"] == "eda")
    assert corrected["value"] == eda["corrected"]["estimate"]["value"]
    assert corrected["n_labelled"] == eda["corrected"]["n_labelled"] == 120
    assert eda["corrected"]["strata"]["EE.ambiguity"] == {"n": 60, "n_labelled": 30}
    whats = {row["what"] for row in flat}
    assert {"panel", "corrected", "judge a", "judge b", "judge c", "n_eff", "dawid_skene"} == whats
    agreed = agreements_of(one, draws=DRAWS)
    rows = list(tables.flat_agreement(one, agreed))
    assert len(rows) == sum((own.kappa is not None) + (own.exact is not None) for own in agreed)
    json.dumps(tables.agreement_as_json(one, agreed), allow_nan=False)


def test_what_is_missing_is_a_dash_and_its_reason_is_below(labelled):
    one = labelled_run(labelled)
    (own, *_) = calibrated(one, aggregate=False, draws=DRAWS)
    bare = replace(own, corrected=None, why="no reason", dawid_skene=None, why_no_aggregate="too few", panel=None)
    main, judges = tables.calibration_grids(one, [bare])
    assert list(main.rows[0])[1:] == ["-"] * 7
    assert judges.rows[0][4] == "-"
    lines = " ".join(tables.calibration_lines(one, [bare]))
    assert "Not corrected: eda: no reason." in lines
    assert "No Dawid-Skene of eda: too few." in lines


def test_interbench_judge_keeps_the_labels_of_the_run_it_judged_again(tmp_path):
    """The real command: the new run has the same replies under the same ids."""
    block = {"protocol": "critique", "judges": ["simulated:j1", "simulated:j2,sensitivity=0.8"]}
    yaml = write_task(tmp_path, [flawed(number) for number in range(12)], block)
    task = play(yaml, Speaker(lambda call: f"<think>hm</think>Two numbers contradict each other, {call.episode.id}."))
    sample = drawn(label_run(task.folder), Design(n=12, strata="none"))
    keep_sample(task.folder, sample, labelled=())
    add_labels(
        task.folder,
        [Label(item=name, annotator="p1", values={"detected": "no"}, source="csv") for name in sample.items],
    )
    wanted = Wanted(out=tmp_path / "again", task=str(yaml), judges="simulated:other")
    again = judge_run(task.folder, wanted, manager=MANAGER, offers=OFFERS)
    one = labelled_run(again.folder, task.folder)
    assert one.n_labelled == 12
    assert one.run.judges == ("simulated:other",)
    (eda, *_) = calibrated(one, aggregate=False, draws=DRAWS)
    assert eda.corrected.estimate.value == 0
