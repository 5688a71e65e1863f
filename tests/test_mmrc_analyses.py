"""Analyses find what was planted: where a memory ends, what updates and distance cost, which twin is easier."""

from __future__ import annotations

import random

import pytest

from interbench_tasks.metrics.mmrc_analyses import (
    ANALYSES,
    DAILY,
    analysed,
    error_shares,
    modality_difference,
    rows_from,
)
from interbench_tasks.records import Seen, Verdict
from tests.conversation_records import FAILED, answer, conversation, history, question

K = 5
"""Turns that the planted receiver remembers."""


def remembering(n_talks: int = 60, seed: int = 1):
    """Conversations of 12 turns with a fact in each; the arm `none` forgets all but the last K, `notes` nothing."""
    rng = random.Random(seed)
    records = []
    for n in range(n_talks):
        asked = [question(f"q{turn}", "MR", evidence=(turn,)) for turn in range(12)]
        answers = []
        for each in asked:
            kept = 12 - each.evidence[0] <= K
            seen = Seen(first_turn=12 - K, cut_turns=12 - K, cut_pictures=0)
            noted = Seen(first_turn=12 - K, cut_turns=12 - K, cut_pictures=0, notes_chars=200)
            answers.append(answer("none", each, score=rng.choice([4, 5] if kept else [0, 1]), seen=seen))
            answers.append(answer("notes", each, score=rng.choice([4, 5]), seen=noted))
        records.append(conversation(n, asked, answers, n_turns=12))
    return records


@pytest.fixture(scope="module")
def rows():
    found = rows_from(remembering(), ("none", "notes"))
    return {arm: [row for row in found if row.arm == arm] for arm in ("none", "notes")}


def by(name, rows, **more):
    return analysed(rows, (name,), **more)[name]


def values(estimates) -> dict[str, float]:
    return {name: round(estimate.value, 2) for name, estimate in estimates.items()}


# --- distance and place -------------------------------------------------------------------------------------------


def test_the_distance_at_which_a_memory_ends_is_found(rows):
    found = by("exact_distance", rows["none"])
    assert list(found) == [str(distance) for distance in range(12)]
    forgotten = [int(distance) for distance, estimate in found.items() if estimate.ci95.high < 2.5]
    remembered = [int(distance) for distance, estimate in found.items() if estimate.ci95.low > 2.5]
    assert remembered == list(range(K))
    assert forgotten == list(range(K, 12))


def test_with_notes_distance_does_not_matter(rows):
    found = by("distance", rows["notes"])
    assert list(found) == ["0", "1-2", "3-5", "6-11"]
    assert all(estimate.ci95.low > 4 for estimate in found.values())
    fallen = by("distance", rows["none"])
    assert fallen["0"].value > 4
    assert fallen["6-11"].value < 1


def test_position_is_where_the_newest_evidence_stands(rows):
    found = by("position", rows["none"])
    assert list(found) == ["first third", "middle third", "last third"]
    assert found["first third"].value < 1
    assert found["last third"].value > 4


def test_where_the_evidence_stood_when_the_question_came(rows):
    plain, noted = by("place", rows["none"]), by("place", rows["notes"])
    assert list(plain) == ["in_view", "cut"]
    assert (plain["in_view"].n, plain["cut"].n) == (60 * K, 60 * (12 - K))
    assert plain["in_view"].value > 4
    assert plain["cut"].value < 1
    assert list(noted) == ["in_view", "in_notes"]
    assert noted["in_notes"].value > 4


def test_evidence_that_is_partly_cut_is_not_in_view():
    asked = question("q", "CR", evidence=(1, 9))
    for first_turn, expected in ((0, "in_view"), (1, "in_view"), (2, "cut"), (10, "cut")):
        seen = Seen(first_turn=first_turn, cut_turns=first_turn, cut_pictures=0)
        (row,) = rows_from(
            [conversation(0, [asked], [answer("none", asked, score=3, seen=seen)], n_turns=10)], ("none",)
        )
        assert (row.place, row.distance, row.position) == (expected, 0, 1.0)


def test_all_is_in_view_where_nothing_was_left_out():
    asked = question("q", "CR", evidence=(1,))
    (row,) = rows_from([conversation(0, [asked], [answer("none", asked, score=3)])], ("none",))
    assert row.place == "in_view"


def test_without_evidence_there_is_no_distance_and_no_place():
    asked = question("q", "AR")
    (row,) = rows_from([conversation(0, [asked], [answer("none", asked, score=3)])], ("none",))
    assert (row.distance, row.position, row.place, row.n_updates) == (None, None, None, None)
    assert {name for name, bins in analysed([row]).items() if bins} == {"turns", "pictures"}


# --- other bins ---------------------------------------------------------------------------------------------------


def planted(n, score, *, ability="MR", arm="none", changes=(), **more):
    asked = question("q", ability, **dict(changes))
    return conversation(n, [asked], [answer(arm, asked, score=score)], **more)


@pytest.mark.parametrize(("n_turns", "name"), [(4, "4-5"), (5, "4-5"), (6, "6-9"), (16, "14-16"), (22, "20-22")])
def test_turns_are_binned_as_in_figure_7(n_turns, name):
    found = by("turns", rows_from([planted(0, 3, n_turns=n_turns)], ("none",)))
    assert values(found) == {name: 3}


def test_a_number_of_turns_outside_the_papers_bins_is_in_none():
    assert by("turns", rows_from([planted(0, 3, n_turns=3), planted(1, 3, n_turns=23)], ("none",))) == {}


def test_updates_pictures_topics_and_domains():
    records = [
        planted(0, 5, changes={"extra": {"updates": "0"}}, category="Travel", pictures={0: 1}),
        planted(1, 3, changes={"extra": {"updates": "1"}}, category="Job_Career", pictures={0: 2}),
        planted(2, 1, changes={"extra": {"updates": "2"}}, category="Law", pictures={0: 2, 1: 9}),
        planted(3, 1, changes={"extra": {"updates": "many"}}, category=None),
    ]
    found = rows_from(records, ("none",))
    assert values(by("updates", found)) == {"0": 5, "1": 3, "2": 1}
    assert values(by("pictures", found)) == {"0": 1, "1-2": 4, "11+": 1}
    assert values(by("topic", found)) == {"Job_Career": 3, "Law": 1, "Travel": 5}
    assert values(by("domain", found)) == {"daily": 5, "professional": 3}


def test_the_topics_of_daily_life_are_eight():
    records = [planted(n, n % 5, category=topic) for n, topic in enumerate(DAILY)]
    assert by("domain", rows_from(records, ("none",)))["daily"].n == 8


def test_an_unscored_answer_is_counted_beside_its_bin_and_not_in_its_mean():
    records = [planted(0, 4, category="Film"), planted(1, None, category="Film")]
    found = by("topic", rows_from(records, ("none",)))["Film"]
    assert (found.value, found.n, found.unscored, found.bounds) == (4, 1, 1, (2, 4.5))
    asked = question("q", "MR")
    failed = conversation(2, [asked], [answer("none", asked, FAILED)], category="Film")
    assert by("topic", rows_from([*records, failed], ("none",)))["Film"].unscored == 2


def test_intervals_are_by_conversation():
    asked = [question(str(n), "MR") for n in range(5)]
    records = [
        conversation(n, asked, [answer("none", each, score=n % 5) for each in asked], category="Film")
        for n in range(20)
    ]
    assert by("topic", rows_from(records, ("none",)), draws=500)["Film"].method == "cluster_bootstrap"


def test_multiple_choice_is_in_no_analysis_of_scores():
    asked = question("q", "MR", format="mc", evidence=(0,))
    record = conversation(0, [asked], [answer("none", asked, "A", correct=True)])
    assert rows_from([record], ("none",)) == []


def test_an_arm_with_a_history_of_its_own_has_its_own_turns():
    asked = question("q", "MR", evidence=(0,))
    record = conversation(0, [asked], [*history(6, branch="own"), answer("own", asked, score=1)], n_turns=4)
    (own,) = rows_from([record], ("own",))
    (shared,) = rows_from([record], ("none",))
    assert (own.n_turns, shared.n_turns) == (6, 4)


def test_all_analyses_come_from_one_set_of_resamples_and_are_each_what_they_are_alone(rows):
    together = analysed(rows["none"], draws=200)
    assert list(together) == list(ANALYSES)
    for name in ("distance", "place"):
        assert together[name] == by(name, rows["none"], draws=200)
    assert analysed([]) == {name: {} for name in ANALYSES}


# --- twins --------------------------------------------------------------------------------------------------------


def twins(n, text, shown, *, ids=("q", "q")):
    """Two conversations of one cluster: the facts told, and the facts shown."""
    records = []
    for score, pictures, id in ((text, {}, ids[0]), (shown, {0: 2}, ids[1])):
        asked = question(id, "MR")
        doc_id = 2 * n + len(records)
        records.append(
            conversation(doc_id, [asked], [answer("none", asked, score=score)], pictures=pictures, cluster=f"twin {n}")
        )
    return records


def test_twins_are_paired_whatever_their_order():
    records = [record for n in range(10) for record in twins(n, 4 + n % 2, 2)]
    for order in (records, records[::-1]):
        found = modality_difference(rows_from(order, ("none",)))
        assert (found.value, found.n, found.points) == (2.5, 10, 5)
        assert 2 < found.ci95.low < 2.5 < found.ci95.high < 3


def test_a_twin_without_a_score_leaves_its_pair_unscored():
    found = modality_difference(rows_from([*twins(0, 4, 2), *twins(1, 4, None)], ("none",)))
    assert (found.value, found.n, found.unscored, found.bounds) == (2, 1, 1, (-1.5, 3.5))


def test_what_has_no_twin_is_in_no_pair():
    alone = rows_from(twins(0, 4, 2)[:1], ("none",))
    other_questions = rows_from(twins(0, 4, 2, ids=("q", "r")), ("none",))
    equal = [record for n in range(2) for record in twins(n, 3, 3)[:1]]
    for rows in (alone, other_questions, rows_from(equal, ("none",)), []):
        assert modality_difference(rows) is None


# --- kinds of mistakes --------------------------------------------------------------------------------------------


def test_shares_of_mistakes_are_over_the_labelled_answers():
    labels = ["memory_omission"] * 3 + ["complete_forgetting", "misunderstanding+memory_degradation", None]
    verdicts = [Verdict(judge="p", status="scored", score=None, label=label) for label in labels]
    verdicts.append(Verdict(judge="p", status="undecided", score=None))
    assert error_shares(verdicts) == {
        "memory_omission": 0.6,
        "complete_forgetting": 0.2,
        "misunderstanding+memory_degradation": 0.2,
    }
    assert error_shares([]) == {}
