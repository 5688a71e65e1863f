"""`interbench compare` of conversation runs: the questions of the paired conversations weigh alike, as in the runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.report.comparison import as_json, flat_pairs, foot_lines, grids_from
from interbench_tasks.report.formats import as_text
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.score import ScoredRun
from tests.conversation_records import Options, answer, conversation, question, talk
from tests.test_mmrc_layout import run

MEMORIES = ("none",)


def scored(name, scores, **changes):
    """A run in which conversation n gets `scores[n]` in every ability; None: its judge failed."""
    records = [talk(n, {"none": dict.fromkeys(ABILITIES, score)}, **changes) for n, score in enumerate(scores)]
    return run(name, MEMORIES, records=records)


def test_scores_are_compared_in_points():
    comparison = compared([scored("a", [5, 4, 3, 5, 0, 2]), scored("b", [4, 4, 1, 5, 1, None])], ["score.IE.none"])
    (pair,) = comparison.pairs
    assert (pair.n, pair.first.n_not_scored) == (5, 1)
    assert (pair.first.value.value, pair.second.value.value) == (pytest.approx(3.4), pytest.approx(3.0))
    assert pair.difference.value == pytest.approx(0.4)
    assert pair.difference.points == 5
    low, high = pair.difference.ci95
    assert -5 <= low < 0.4 < high <= 5
    # t interval by hand: differences 1, 0, 2, 0, -1
    assert (low, high) == pytest.approx(
        (0.4 - 2.776445 * 1.140175 / 5**0.5, 0.4 + 2.776445 * 1.140175 / 5**0.5), abs=1e-5
    )


def test_without_a_name_the_overalls_and_abilities_are_compared():
    comparison = compared([scored("a", [5, 4, 3]), scored("b", [4, 4, 1])])
    found = [pair.metric for pair in comparison.pairs]
    assert found[:2] == ["overall.none", "score.IE.none"]
    assert "rp.none" in found


def test_shares_stay_shares_beside_scores():
    comparison = compared([scored("a", [5, 4, 3]), scored("b", [4, 4, 1])], ["rp.none", "overall.none"])
    points = {pair.metric: pair.difference.points for pair in comparison.pairs}
    assert points == {"overall.none": 5, "rp.none": None}


def test_people_and_machines_are_told_the_unit():
    comparison = compared([scored("a", [5, 4, 3]), scored("b", [4, 4, 1])], ["overall.none"])
    text = "\n".join(as_text(grid) for grid in grids_from(comparison))
    assert "+1.00" in text
    assert any("in points up to 5" in line for line in foot_lines(comparison))
    assert any("counts each question that both have scored alike" in line for line in foot_lines(comparison))
    assert "n=18" in text
    assert "own episodes, scores in points, rates in percent [95% interval]" in text
    assert "scored in both, scores in points, rates in percent [95% interval]" in text
    for grid in grids_from(comparison):
        told = " ".join([grid.title, *(name for name, _ in grid.groups)])
        assert "[95% interval], n = questions (or pictures)" in told
    pairs = grids_from(comparison)[1]
    assert pairs.headers[1] == "episodes", "the other n"
    assert [name for name, _ in pairs.groups[2:]] == ["episodes left out of A", "episodes left out of B"]
    (row,) = flat_pairs(comparison)
    assert row["difference"] == pytest.approx(1)
    assert as_json(comparison)["pairs"][0]["difference"]["points"] == 5


# --- questions weigh, not conversations ------------------------------------------------------------------------------


def talks(name, scores, *, memories=MEMORIES, **changes) -> ScoredRun:
    """A run. Args: scores[n] = of conversation n, ability -> the scores of its questions; None: its judge failed."""
    records = []
    for number, of_talk in enumerate(scores):
        asked = [(question(f"{a}{i}", a), own) for a, of_ability in of_talk.items() for i, own in enumerate(of_ability)]
        answers = [answer(arm, one, score=own) for arm in memories for one, own in asked]
        records.append(conversation(number, [one for one, _ in asked], answers, **changes))
    return run(name, memories, records=records)


def the(comparison, metric):
    (pair,) = [pair for pair in comparison.pairs if pair.metric == metric]
    return pair


def own(scored_run, metric):
    return scored_run.metric_set.table(scored_run.summaries)[metric]


def test_a_conversation_of_three_questions_weighs_three():
    runs = [talks("a", [{"IE": [5, 5, 5]}, {"IE": [0]}]), talks("b", [{"IE": [1, 2, 3]}, {"IE": [4]}])]
    pair = the(compared(runs, ["score.IE.none"]), "score.IE.none")
    assert pair.first.value.value == pytest.approx(15 / 4)
    assert pair.second.value.value == pytest.approx(10 / 4)
    assert pair.difference.value == pytest.approx(5 / 4)  # by conversations it would be (3 - 4) / 2 = -0.5
    assert (pair.n, pair.first.value.n, pair.second.value.n) == (2, 4, 4)


def test_a_question_that_one_run_has_no_score_for_counts_in_neither():
    runs = [talks("a", [{"IE": [5, 1]}, {"IE": [3]}]), talks("b", [{"IE": [None, 1]}, {"IE": [3]}])]
    pair = the(compared(runs, ["score.IE.none"]), "score.IE.none")
    assert pair.difference.value == 0  # the same scores wherever both have one; over all of A's it would be 3 - 2
    assert (pair.first.value.value, pair.second.value.value) == (2, 2)
    assert (pair.n, pair.first.value.n, pair.second.value.n) == (2, 2, 2)


def test_a_conversation_without_a_common_question_is_left_out_of_both():
    runs = [talks("a", [{"IE": [5, None]}, {"IE": [3]}]), talks("b", [{"IE": [None, 1]}, {"IE": [4]}])]
    pair = the(compared(runs, ["score.IE.none"]), "score.IE.none")
    assert (pair.difference.value, pair.n) == (-1, 1)
    assert (pair.first.n_not_scored, pair.second.n_not_scored) == (1, 1)


def test_differences_of_memories_are_compared_on_the_questions_that_both_runs_have_in_both_arms():
    asked = [question(f"q{n}", "IE") for n in range(2)]

    def of(name, plain, noted):
        answers = [answer("none", one, score=own) for one, own in zip(asked, plain, strict=True)]
        answers += [answer("note_taking", one, score=own) for one, own in zip(asked, noted, strict=True)]
        return run(name, ("none", "note_taking"), records=[conversation(0, asked, answers)])

    metric = "difference.IE.note_taking-none"
    pair = the(compared([of("a", [1, 0], [2, 5]), of("b", [1, None], [4, 5])], [metric]), metric)
    assert (pair.first.value.value, pair.second.value.value, pair.difference.value) == (1, 3, -2)


def test_what_questions_add_is_what_the_conversations_have():
    metrics = ConversationMetrics(Options(memories=("none", "note_taking")))
    asked = [
        question("q0", "IE", items=("Up", "Cars")),
        question("q1", "IM", pictures=(1, 2)),
        question("q2", "AR", should_refuse=True),
        question("q3", "MR", format="mc"),
        question("q4", "IE"),
    ]
    answers = [answer(arm, one, score=3) for arm in ("none", "note_taking") for one in asked]
    record = conversation(0, asked, answers)
    units = metrics.units(record)
    summed = {
        name: (sum(value for value, _ in own.values()), sum(weight for _, weight in own.values()))
        for name, own in units.items()
    }
    parts = metrics.parts(metrics.summary(record))
    counted = {name: own for name, own in summed.items() if own[1]}
    assert counted.keys() == parts.keys()
    assert all(own == pytest.approx(parts[name], abs=1e-3) for name, own in counted.items())
    assert {"score.IE.none", "ep.none", "imp_micro.none", "rp.none", "difference.IE.note_taking-none"} <= parts.keys()


def test_an_overall_is_the_mean_of_the_six_differences_though_no_conversation_has_all_six():
    left = [{"IE": [5], "CR": [4, 4, 1]}, {"IU": [3], "IM": [2]}, {"MR": [0, 5], "AR": [5]}]
    right = [{"IE": [1], "CR": [1, 1, 1]}, {"IU": [3], "IM": [5]}, {"MR": [1, 0], "AR": [4]}]
    comparison = compared([talks("a", left), talks("b", right)], ["overall.none", "score.*"])
    by_ability = [4, 2, 0, -3, 2, 1]  # IE, CR, IU, IM, MR, AR, by hand
    assert [the(comparison, f"score.{a}.none").difference.value for a in ABILITIES] == pytest.approx(by_ability)
    overall = the(comparison, "overall.none")
    assert overall.difference.value == pytest.approx(sum(by_ability) / 6)
    assert (overall.n, overall.first.value.n) == (3, 9)
    assert overall.difference.points == 5


def test_where_all_is_paired_every_difference_is_that_of_the_runs_own_values():
    rng = random.Random(1)
    scores = [
        [
            {a: [rng.randint(0, 5) for _ in range(rng.randint(1, 4))] for a in rng.sample(list(ABILITIES), 4)}
            for _ in range(12)
        ]
    ]
    scores.append([{a: [rng.randint(0, 5) for _ in of] for a, of in one.items()} for one in scores[0]])
    runs = [talks(name, own_scores) for name, own_scores in zip("ab", scores, strict=True)]
    comparison = compared(runs, ["overall.*", "score.*", "rp.*"])
    assert len(comparison.pairs) == 8
    for pair in comparison.pairs:
        values = [own(one, pair.metric).value for one in runs]
        assert [pair.first.value.value, pair.second.value.value] == values  # exactly
        assert pair.difference.value == pytest.approx(values[0] - values[1], abs=1e-12)
        assert (pair.first.n_not_there, pair.first.n_not_scored) == (0, 0)


def test_an_overall_lacks_what_one_run_lacks_and_says_so():
    whole = {ability: [3] for ability in ABILITIES}
    left = [whole, {"IE": [1]}]
    right = [{ability: ([None] if ability == "CR" else [4]) for ability in ABILITIES}, {"IE": [2], "CR": [5]}]
    comparison = compared([talks("a", left), talks("b", right)], ["overall.none", "score.CR.none", "score.IE.none"])
    assert [pair.metric for pair in comparison.pairs] == ["score.IE.none"]
    assert comparison.unpaired["overall.none"] == "no episode is scored in both runs in score.CR.none"
    assert comparison.unpaired["score.CR.none"] == "no episode is scored in both runs"


def test_what_an_overall_leaves_out_of_a_run_is_counted_by_conversation():
    left = [{a: [3] for a in ABILITIES}, {"IE": [1], "CR": [2]}, {"IE": [5]}, {"MR": [1]}]
    right = [{a: [4] for a in ABILITIES}, {"IE": [1], "CR": [None]}, {"IE": [4]}]
    overall = the(compared([talks("a", left), talks("b", right)], ["overall.none"]), "overall.none")
    assert overall.n == 3
    assert (overall.first.n_not_there, overall.first.n_not_scored) == (1, 1)  # the last; the CR of the second
    assert (overall.second.n_not_there, overall.second.n_not_scored) == (0, 0)
    assert (overall.first.value.n, overall.second.value.n) == (8, 8)


def test_one_conversation_alone_has_a_difference_and_no_interval_and_a_word_why():
    whole = {ability: [3, 4] for ability in ABILITIES}
    other = {ability: [1, 2] for ability in ABILITIES}
    comparison = compared([talks("a", [whole]), talks("b", [other])], ["overall.none", "score.IE.none"])
    for pair in comparison.pairs:
        assert (pair.difference.value, pair.difference.ci95) == (pytest.approx(2), None)
        assert pair.difference.method == "one_cluster"
    assert any(
        line.startswith("overall.none, score.IE.none: a difference without interval") and "one conversation" in line
        for line in foot_lines(comparison)
    )
    assert as_json(comparison)["pairs"][0]["difference"]["ci95"] is None


def test_an_ability_of_one_conversation_leaves_the_overall_without_interval():
    many = [{a: [3, 1] for a in ABILITIES if a != "AR"} | {"IE": [n % 6]} for n in range(6)]
    left = [many[0] | {"AR": [5]}, *many[1:]]
    right = [{a: [5 - s for s in of] for a, of in one.items()} for one in left]
    comparison = compared([talks("a", left), talks("b", right)], ["overall.none", "score.IE.none"])
    assert the(comparison, "overall.none").difference.ci95 is None
    assert the(comparison, "score.IE.none").difference.ci95 is not None


def test_a_run_compared_with_itself_differs_nowhere_but_is_not_certain():
    scores = [{ability: [n % 6, 3] for ability in ABILITIES} for n in range(8)]
    comparison = compared([talks("a", scores), talks("b", scores)], ["overall.none", "score.MR.none", "rp.none"])
    for pair in comparison.pairs:
        assert pair.difference.value == 0
        low, high = pair.difference.ci95
        assert low < 0 < high
    assert the(comparison, "score.MR.none").difference.method == "agresti_min_by_cluster"


def test_the_interval_is_that_of_conversations_drawn_for_both_runs_together():
    rng = random.Random(4)
    left = [{"IE": [rng.randint(1, 5) for _ in range(1 + n % 3)]} for n in range(30)]
    right = [{"IE": [max(0, own_score - rng.randint(0, 2)) for own_score in one["IE"]]} for one in left]
    pair = the(compared([talks("a", left), talks("b", right)], ["score.IE.none"]), "score.IE.none")
    top = np.array([[sum(one["IE"]), sum(other["IE"]), len(one["IE"])] for one, other in zip(left, right, strict=True)])
    picks = np.random.default_rng(9).integers(0, 30, (20_000, 30))
    drawn = top[picks].sum(axis=1)
    by_hand = np.quantile((drawn[:, 0] - drawn[:, 1]) / drawn[:, 2], [0.025, 0.975])
    assert pair.difference.ci95 == pytest.approx(tuple(by_hand), abs=0.03)
    assert pair.difference.method == "cluster_bootstrap"
    low, high = pair.first.value.ci95
    assert high - low > 2 * (pair.difference.ci95[1] - pair.difference.ci95[0])  # pairing pays


def test_conversations_of_one_cluster_are_drawn_together():
    scores = [{"IE": [5, 4]}, {"IE": [1, 0]}, {"IE": [3, 3]}]
    others = [{"IE": [2, 1]}, {"IE": [1, 1]}, {"IE": [5, 3]}]
    runs = [talks(name, own_scores, cluster="x") for name, own_scores in (("a", scores), ("b", others))]
    assert the(compared(runs, ["score.IE.none"]), "score.IE.none").difference.method == "one_cluster"


def test_a_spreadsheet_has_the_questions_of_each_side():
    runs = [talks("a", [{"IE": [5, 5, 5]}, {"IE": [0]}]), talks("b", [{"IE": [1, 2, 3]}, {"IE": [None]}])]
    (row,) = flat_pairs(compared(runs, ["score.IE.none"]))
    assert (row["n"], row["first_n"], row["second_n"], row["first_own_n"], row["second_own_n"]) == (1, 3, 3, 4, 3)
    assert (row["first_not_scored"], row["second_own_unscored"]) == (1, 1)


def test_arms_of_two_memories_are_compared_each_with_its_own():
    memories = ("none", "note_taking")
    runs = [
        talks("a", [{"IE": [5, 5]}, {"IE": [0]}], memories=memories),
        talks("b", [{"IE": [1, 3]}, {"IE": [5]}], memories=memories),
    ]
    comparison = compared(runs, ["score.IE.*", "difference.IE.*"])
    assert [pair.metric for pair in comparison.pairs] == [
        "score.IE.none",
        "score.IE.note_taking",
        "difference.IE.note_taking-none",
    ]
    assert [pair.difference.value for pair in comparison.pairs] == pytest.approx([1 / 3, 1 / 3, 0])
