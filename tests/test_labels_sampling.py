"""Which replies are drawn: by strata, by seed, and so that a sample can grow."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from interbench_tasks.errors import RunFolderError
from interbench_tasks.labels.items import label_run
from interbench_tasks.labels.sampling import Design, allocation, drawn, frame, keep_sample, read_sample, stratum_of
from tests.critiques import YES, record
from tests.labelled_runs import critique_manifest, critique_run, talk_run, write_run


def test_every_category_is_drawn_in_proportion(tmp_path):
    run = label_run(critique_run(tmp_path, 240))
    sample = drawn(run, Design(n=100))
    counts = Counter(run.by_id()[name].category for name in sample.items)
    assert len(counts) == 4
    assert set(counts.values()) == {25}


def test_the_same_seed_draws_the_same_and_another_one_others(tmp_path):
    run = label_run(critique_run(tmp_path, 120))
    one, same, other = (drawn(run, Design(n=40, seed=seed)) for seed in (0, 0, 1))
    assert one == same
    assert set(one.items) != set(other.items)


def test_a_larger_sample_holds_the_smaller_one(tmp_path):
    run = label_run(critique_run(tmp_path, 240))
    small, large = (set(drawn(run, Design(n=n)).items) for n in (40, 100))
    assert small < large


def test_the_order_shown_mixes_strata_and_does_not_follow_the_data(tmp_path):
    run = label_run(critique_run(tmp_path, 240))
    shown = [run.by_id()[name] for name in drawn(run, Design(n=100)).items]
    first = Counter(item.category for item in shown[:40])
    assert len(first) == 4
    assert [item.episode_id for item in shown] != sorted(item.episode_id for item in shown)


def test_the_draw_is_by_chance(tmp_path):
    """Over many seeds every reply is drawn about as often."""
    run = label_run(critique_run(tmp_path, 40))
    times = Counter(name for seed in range(300) for name in drawn(run, Design(n=20, seed=seed)).items)
    assert len(times) == 40
    assert 110 < min(times.values()) <= max(times.values()) < 190


def test_replies_that_failed_or_have_no_verdict_are_not_drawn(tmp_path):
    rows = [record(0, None), record(1, [YES, None, None]), *[record(n, [YES] * 3) for n in range(2, 12)]]
    run = label_run(write_run(tmp_path, rows, critique_manifest()))
    assert [len(items) for items in frame(run, Design()).values()] == [10]
    assert len(drawn(run, Design(n=50)).items) == 10


@pytest.mark.parametrize(
    ("sizes", "n", "found"),
    [
        ({"a": 100, "b": 100}, 30, {"a": 15, "b": 15}),
        ({"a": 300, "b": 100}, 40, {"a": 30, "b": 10}),
        ({"a": 1000, "b": 10}, 50, {"a": 45, "b": 5}),
        ({"a": 3, "b": 100}, 20, {"a": 3, "b": 17}),
        ({"a": 6, "b": 6}, 99, {"a": 6, "b": 6}),
    ],
)
def test_strata_get_five_at_least_and_then_their_share(sizes, n, found):
    assert allocation(sizes, n) == found


def test_a_sample_that_is_too_small_for_its_strata_is_refused(tmp_path):
    run = label_run(critique_run(tmp_path, 120))
    with pytest.raises(RunFolderError, match=r"--n 12 is too small for 4 strata.*20 at least \(or --strata none\)"):
        drawn(run, Design(n=12))
    assert len(drawn(run, Design(n=12, strata="none")).items) == 12


def test_a_run_without_any_verdict_has_nothing_to_label(tmp_path):
    run = label_run(write_run(tmp_path, [record(0, None)], critique_manifest()))
    with pytest.raises(RunFolderError, match="no reply here has a verdict"):
        drawn(run, Design())


# --- conversations ----------------------------------------------------------------------------------------------------


def test_the_papers_abilities_are_drawn_evenly_for_each_arm(tmp_path):
    run = label_run(talk_run(tmp_path, 40, arms=("none", "note_taking")))
    sample = drawn(run, Design(n=60, strata="none"))
    counts = Counter((run.by_id()[name].kind, run.by_id()[name].arm) for name in sample.items)
    assert counts == {(kind, arm): 10 for kind in ("CR", "IU", "MR") for arm in ("none", "note_taking")}


def test_other_abilities_can_be_named_and_unknown_ones_are_refused(tmp_path):
    run = label_run(talk_run(tmp_path, 20))
    sample = drawn(run, Design(n=15, strata="none", abilities=("IE",)))
    assert {run.by_id()[name].kind for name in sample.items} == {"IE"}
    with pytest.raises(RunFolderError, match="--abilities XX: not among IE, CR"):
        drawn(run, Design(abilities=("XX",)))


def test_strata_by_category_are_topics_within_ability_and_arm(tmp_path):
    item = label_run(talk_run(tmp_path, 1)).items[0]
    assert stratum_of(item, "none") == f"{item.kind}.none"
    assert stratum_of(replace(item, category="Travel"), "category") == f"{item.kind}.none.Travel"


# --- written down -----------------------------------------------------------------------------------------------------


def test_a_sample_is_read_as_it_was_written(tmp_path):
    run = label_run(critique_run(tmp_path, 60))
    sample = drawn(run, Design(n=30, seed=4))
    keep_sample(tmp_path, sample, labelled=())
    assert read_sample(tmp_path) == sample
    assert read_sample(tmp_path / "elsewhere") is None


def test_without_labels_another_sample_takes_its_place(tmp_path):
    run = label_run(critique_run(tmp_path, 60))
    keep_sample(tmp_path, drawn(run, Design(n=30, seed=4)), labelled=())
    other = drawn(run, Design(n=20, seed=5))
    keep_sample(tmp_path, other, labelled=())
    assert read_sample(tmp_path) == other


def test_with_labels_it_can_grow_and_what_was_shown_keeps_its_place(tmp_path):
    run = label_run(critique_run(tmp_path, 120))
    small, large = drawn(run, Design(n=30)), drawn(run, Design(n=60))
    keep_sample(tmp_path, small, labelled=())
    keep_sample(tmp_path, large, labelled=small.items[:3])
    kept = read_sample(tmp_path)
    assert kept.items[:30] == small.items
    assert set(kept.items) == set(large.items)


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"seed": 9}, "seed 0 -> 9"), ({"strata": "none"}, "strata category -> none"), ({"n": 20}, "--n 20 is smaller")],
)
def test_with_labels_it_cannot_become_another_one(tmp_path, changes, told):
    run = label_run(critique_run(tmp_path, 120))
    sample = drawn(run, Design(n=30))
    keep_sample(tmp_path, sample, labelled=())
    with pytest.raises(RunFolderError, match=told):
        keep_sample(tmp_path, drawn(run, replace(Design(n=30), **changes)), labelled=sample.items[:3])
    assert read_sample(tmp_path) == sample


@pytest.mark.parametrize(
    "change", [{"design": {}}, {"items": None}, {"design": {"n": 3, "strange": 1, "abilities": []}}]
)
def test_a_damaged_sample_is_named(tmp_path, change):
    run = label_run(critique_run(tmp_path, 60))
    keep_sample(tmp_path, drawn(run, Design(n=30)), labelled=())
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunFolderError, match=r"sample\.json: cannot be read"):
        read_sample(tmp_path)
