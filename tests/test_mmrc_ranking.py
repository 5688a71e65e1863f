"""Rankings and categories of conversation runs: questions weigh alike, and an overall is the mean of six."""

from __future__ import annotations

import random

import numpy as np
import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.report.compared import parts_of
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.ranked import ranked_runs
from interbench_tasks.runs.score import ScoredRun
from tests.conversation_records import answer, conversation, question
from tests.scored_runs import episode, run_of
from tests.test_mmrc_layout import run

MEMORIES = ("none",)


def talks(name, scores, *, categories=None, memories=MEMORIES, first=0, **changes) -> ScoredRun:
    """A run. Args: scores[n] = of conversation n, ability -> the scores of its questions; None: its judge failed."""
    records = []
    for number, of_talk in enumerate(scores):
        asked = [(question(f"{a}{i}", a), own) for a, of_ability in of_talk.items() for i, own in enumerate(of_ability)]
        answers = [answer(arm, one, score=own) for arm in memories for one, own in asked]
        category = None if categories is None else categories[number]
        records.append(conversation(first + number, [q for q, _ in asked], answers, category=category, **changes))
    return run(name, memories, records=records)


def some_talks(seed, n=20, worse=0):
    """Scores of conversations in which each ability has none to three questions."""
    shape, rng = random.Random("shape"), random.Random(seed)
    n_questions = [{ability: shape.randint(0, 3) for ability in ABILITIES} for _ in range(n)]
    return [
        {a: [max(0, rng.randint(1, 5) - worse) for _ in range(k)] for a, k in one.items() if k} for one in n_questions
    ]


def ranked(runs, *patterns):
    return ranked_runs(compared(runs, patterns), runs)


def the(found, metric):
    (ranking,) = [one for one in found.rankings if one.metric == metric]
    return ranking


def rows_of(ranking):
    return [(row.model, row.rank, row.value, row.n) for row in ranking.models]


LEFT = [{"IE": [5], "CR": [4, 4, 1]}, {"IU": [3], "IM": [2]}, {"MR": [0, 5], "AR": [5]}]
RIGHT = [{"IE": [1], "CR": [1, 1, 1]}, {"IU": [3], "IM": [5]}, {"MR": [1, 0], "AR": [4]}]
"""By hand: IE 5 and 1, CR 3 and 1, IU 3 and 3, IM 2 and 5, MR 2.5 and 0.5, AR 5 and 4."""


# --- which numbers ------------------------------------------------------------------------------------------------


def test_a_conversation_of_three_questions_weighs_three_in_a_ranking():
    runs = [talks("b", [{"IE": [1, 2, 3]}, {"IE": [4]}]), talks("a", [{"IE": [5, 5, 5]}, {"IE": [0]}])]
    ranking = the(ranked(runs, "score.IE.none"), "score.IE.none")
    # By conversations `b` would be first: (2 + 4) / 2 = 3 against (5 + 0) / 2 = 2.5.
    assert rows_of(ranking) == [("a", 1, 15 / 4, 4), ("b", 2, 10 / 4, 4)]
    (step,) = ranking.steps
    assert (step.difference.value, step.difference.n) == (pytest.approx(5 / 4), 2)
    assert step.difference.points == 5
    assert step.difference.method == "cluster_bootstrap"
    assert step.p_mcnemar is None


def test_an_overall_is_ranked_by_the_mean_of_the_six_though_no_conversation_has_all_six():
    ranking = the(ranked([talks("a", LEFT), talks("b", RIGHT)], "overall.none"), "overall.none")
    (first, second) = ranking.models
    assert (first.model, first.value, first.n) == ("a", pytest.approx((5 + 3 + 3 + 2 + 2.5 + 5) / 6), 9)
    assert (second.model, second.value, second.n) == ("b", pytest.approx((1 + 1 + 3 + 5 + 0.5 + 4) / 6), 9)


def test_a_ranking_has_the_values_of_the_runs_own_tables_and_the_steps_of_the_pairs():
    runs = [talks(name, some_talks(name, worse=worse)) for worse, name in enumerate("abc")]
    comparison = compared(runs, ["overall.*", "score.*"])
    found = ranked_runs(comparison, runs)
    assert len(found.rankings) == 7
    for ranking in found.rankings:
        tables = {one.receiver: one.metric_set.table(one.summaries)[ranking.metric] for one in runs}
        assert {row.model: row.value for row in ranking.models} == pytest.approx(
            {name: own.value for name, own in tables.items()}
        )
        assert {row.model: row.n for row in ranking.models} == {name: own.n for name, own in tables.items()}
        for step in ranking.steps:
            (pair,) = [
                one
                for one in comparison.pairs
                if one.metric == ranking.metric and {one.first.run, one.second.run} == {step.above, step.below}
            ]
            sign = 1 if pair.first.run == step.above else -1
            assert step.difference.value == pytest.approx(sign * pair.difference.value)
            assert sorted(sign * end for end in pair.difference.ci95) == pytest.approx(step.difference.ci95)
            assert step.difference.n == pair.n
    assert found.notes == ()


def test_p_and_interval_are_those_of_conversations_drawn_for_both_runs_together():
    rng = random.Random(4)
    left = [{"IE": [rng.randint(1, 5) for _ in range(1 + n % 3)]} for n in range(30)]
    right = [{"IE": [max(0, score - (rng.random() < 0.2)) for score in one["IE"]]} for one in left]
    ranking = the(ranked([talks("a", left), talks("b", right)], "score.IE.none"), "score.IE.none")
    sums = np.array([[sum(a["IE"]), sum(b["IE"]), len(a["IE"])] for a, b in zip(left, right, strict=True)])
    drawn = sums[np.random.default_rng(9).integers(0, 30, (20_000, 30))].sum(axis=1)
    by_hand = (drawn[:, 0] - drawn[:, 1]) / drawn[:, 2]
    (step,) = ranking.steps
    assert step.difference.ci95 == pytest.approx(tuple(np.quantile(by_hand, [0.025, 0.975])), abs=0.02)
    apart = step.difference.value
    assert step.p_bootstrap == pytest.approx(np.mean(np.abs(by_hand - apart) >= apart - 1e-12), abs=0.005)
    certain = apart > 1.96 * by_hand.std()
    assert [(row.best, row.worst) for row in ranking.models] == ([(1, 1), (2, 2)] if certain else [(1, 2), (1, 2)])


def test_clear_and_near_runs_have_narrow_and_wide_ranks():
    far = some_talks("c", worse=3)
    near = some_talks("a")
    runs = [talks("a", near), talks("b", [{x: own[::-1] for x, own in one.items()} for one in near]), talks("c", far)]
    ranking = the(ranked(runs, "overall.none"), "overall.none")
    assert [(row.model, row.rank, row.best, row.worst) for row in ranking.models] == [
        ("a", 1, 1, 2),
        ("b", 1, 1, 2),
        ("c", 3, 3, 3),
    ]
    assert ranking.steps[1].p_bootstrap < 0.001


def test_a_question_of_each_conversation_is_tested_exactly_and_several_are_not():
    def answered(name, rights, *, twice=False):
        talks_ = [
            [question(f"{n}", "IE", format="mc"), *([question(f"{n}+", "IE", format="mc")] if twice else [])]
            for n, _ in enumerate(rights)
        ]
        records = [
            conversation(n, asked, [answer("none", one, correct=right) for one in asked])
            for n, (asked, right) in enumerate(zip(talks_, rights, strict=True))
        ]
        return run(name, MEMORIES, records=records)

    rights = ([True] * 9 + [False], [True] * 4 + [False] * 6)
    once = ranked([answered(n, own) for n, own in zip("ab", rights, strict=True)], "accuracy.none")
    # Five conversations that only `a` got, none that only `b` got: 2 / 2^5.
    assert the(once, "accuracy.none").steps[0].p_mcnemar == pytest.approx(1 / 16)
    double = ranked([answered(n, own, twice=True) for n, own in zip("ab", rights, strict=True)], "accuracy.none")
    assert the(double, "accuracy.none").steps[0].p_mcnemar is None
    assert [row.value for row in the(double, "accuracy.none").models] == [0.9, 0.4]


def test_runs_vary_by_their_shown_values():
    runs = [talks(name, some_talks(name, worse=worse)) for worse, name in enumerate("abc")]
    across = ranked(runs, "overall.none", "score.IE.none").across
    tables = [one.metric_set.table(one.summaries) for one in runs]
    overall, ie = ([table[name].value for table in tables] for name in ("overall.none", "score.IE.none"))
    assert across["cv.overall.none"].value == pytest.approx(np.std(overall, ddof=1) / np.mean(overall))
    assert across["r.overall.none.score.IE.none"].value == pytest.approx(np.corrcoef(overall, ie)[0, 1])


# --- what is left out is told -----------------------------------------------------------------------------------------


def test_conversations_that_not_all_runs_have_are_left_out_and_told():
    scores = [{ability: [n % 6, 3] for ability in ABILITIES} for n in range(8)]
    runs = [talks("a", scores), talks("b", scores[2:], first=2), talks("c", scores[:6])]
    found = ranked(runs, "overall.none")
    assert found.n_common == 4
    assert {row.n for row in the(found, "overall.none").models} == {4 * 12}
    assert found.notes == (
        "a: 4 episodes that not all runs have are left out of the ranking",
        "b: 2 episodes that not all runs have are left out of the ranking",
        "c: 2 episodes that not all runs have are left out of the ranking",
    )


def test_a_question_without_a_verdict_is_left_out_of_its_own_run_and_told():
    runs = [talks("a", [{"IE": [5, None, 3]}, {"IE": [4]}]), talks("b", [{"IE": [1, 1, 1]}, {"IE": [1]}])]
    found = ranked(runs, "score.IE.none")
    assert rows_of(the(found, "score.IE.none")) == [("a", 1, 4.0, 3), ("b", 2, 1.0, 4)]
    assert found.unscored["score.IE.none"] == {"a": 1, "b": 0}
    [part] = parts_of(compared(runs, ["score.IE.none"]), runs, ("ranking",))
    assert part.grids[0].rows[0][3:5] == ["4.00", "3 (u 1)"]
    assert any("k more questions of the episodes that all runs have are unscored" in line for line in part.lines)
    assert any("n counts the questions" in line and "each weighs alike" in line for line in part.lines)


def test_a_run_without_an_ability_has_no_overall_and_is_named():
    whole = [{ability: [3, n] for ability in ABILITIES} for n in range(4)]
    lacking = [{a: ([None, None] if a == "CR" else own) for a, own in one.items()} for one in whole]
    found = ranked([talks("a", whole), talks("b", lacking), talks("c", whole)], "overall.none", "score.IE.none")
    assert [row.model for row in the(found, "overall.none").models] == ["a", "c"]
    assert found.notes == ("overall.none: b left out of the ranking, without a value on these episodes",)
    assert len(the(found, "score.IE.none").models) == 3
    two = ranked([talks("a", whole), talks("b", lacking)], "overall.none", "score.IE.none")
    assert dict(two.unranked) == {"overall.none": "fewer than two runs have it"}


@pytest.mark.parametrize("metric", ["overall.none", "score.AR.none"])
def test_an_ability_of_one_conversation_leaves_a_step_without_interval_and_ranks_open(metric):
    many = [{a: [5, 4] for a in ABILITIES if a != "AR"} for _ in range(12)]
    left = [many[0] | {"AR": [5, 5, 5]}, *many[1:]]
    right = [{a: [score - 4 for score in own] for a, own in one.items()} for one in left]
    runs = [talks("a", left), talks("b", right)]
    ranking = the(ranked(runs, metric), metric)
    (step,) = ranking.steps
    assert step.difference.value == pytest.approx(4)
    assert (step.difference.ci95, step.difference.method, step.p_bootstrap) == (None, "one_cluster", 1)
    assert [(row.best, row.worst) for row in ranking.models] == [(1, 2), (1, 2)]
    [part] = parts_of(compared(runs, [metric]), runs, ("ranking",))
    assert any(line.startswith(f"{metric}: a step without interval, and with p = 1") for line in part.lines)


def test_a_ranking_of_items_says_nothing_of_questions():
    runs = [run_of(name, [episode(n, accuracy=n % 2) for n in range(6)]) for name in "abc"]
    [part] = parts_of(compared(runs), runs, ("ranking",))
    assert not any("questions" in line for line in part.lines)


# --- categories -------------------------------------------------------------------------------------------------------


def test_categories_are_ratios_over_the_questions_of_the_common_conversations():
    categories = ["home", "trip", "home", "trip"]
    left = [{"IE": [5, 5, 5]}, {"IE": [1]}, {"IE": [1]}, {"IE": [0, 0]}]
    right = [{"IE": [0, 1, 2]}, {"IE": [2]}, {"IE": [5]}]
    runs = [talks("a", left, categories=categories), talks("b", right, categories=categories)]
    [part] = parts_of(compared(runs, ["score.IE.none"]), runs, ("categories",))
    found = part.nested["categories"]
    values = {c: {name: own["score.IE.none"]["value"] for name, own in runs_.items()} for c, runs_ in found.items()}
    # By conversations `home` would be (5 + 1) / 2 = 3 and (1 + 5) / 2 = 3.
    assert values == {"home": {"a": 16 / 4, "b": 8 / 4}, "trip": {"a": 1.0, "b": 2.0}}
    assert found["home"]["a"]["score.IE.none"]["n"] == 4
    assert part.lines == ["a: 1 episodes that not all runs have are left out of the categories."]
