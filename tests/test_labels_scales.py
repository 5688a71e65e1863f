"""What people are asked, what they may answer, and what several labels come to."""

from __future__ import annotations

import pytest

from interbench_tasks.errors import RunFolderError
from interbench_tasks.judging_rubrics import rubrics
from interbench_tasks.labels.scales import FLAWED, asked_from

ASKED = asked_from(rubrics("mmpcbench"), (FLAWED,))[FLAWED]
SCORES = asked_from(rubrics("mmrc"), ("CR", "IU", "MR", "AR"))
CR = SCORES["CR"]
NO = {"detected": 0.0}


def yes(diag=2.0, strategy="refusal", score=2.0):
    return {"detected": 1.0, "diag": diag, "strategy": strategy, "strategy_score": score}


# --- the scales -------------------------------------------------------------------------------------------------------


def test_critiques_are_asked_for_what_judges_are_asked_for():
    assert [one.name for one in ASKED.fields] == ["detected", "diag", "strategy", "strategy_score"]
    assert ASKED.fields[1].values == ("0", "1", "2")
    assert ASKED.fields[2].values == ("correction", "clarification", "refusal", "none")


@pytest.mark.parametrize("ability", ["CR", "IU", "MR"])
def test_abilities_are_scored_from_0_to_5_with_the_papers_bands(ability):
    (score,) = SCORES[ability].fields
    assert score.values == ("0", "1", "2", "3", "4", "5")
    assert list(score.help) == ["5", "3-4", "2", "1", "0"]
    guide = SCORES[ability].guide()
    assert all(text in guide for text in score.help.values())


def test_the_guide_of_critiques_has_every_label_and_band():
    guide = ASKED.guide()
    assert "clarification: It asks for what is missing" in guide
    assert "2: Precise." in guide
    assert "strategy_score" in guide


def test_a_rubric_without_whole_numbers_is_refused():
    (first, *_) = rubrics("mmrc").values()
    halves = first.model_copy(update={"scale": first.scale.model_copy(update={"integer": False})})
    with pytest.raises(RunFolderError, match="scale of whole numbers"):
        asked_from({"IE": halves}, ("IE",))


def test_a_rubric_of_ones_own_with_another_scale_gives_its_values():
    (first, *_) = rubrics("mmrc").values()
    ten = first.model_copy(update={"scale": first.scale.model_copy(update={"low": 1.0, "high": 10.0})})
    (score,) = asked_from({"IE": ten}, ("IE",))["IE"].fields
    assert score.values[0] == "1"
    assert score.values[-1] == "10"


# --- what is filled in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["yes", "Y", "true", "1", " YES "])
def test_yes_is_taken_in_several_ways(text):
    texts = {"detected": text, "diag": "2", "strategy": "Refusal", "strategy_score": "1"}
    assert ASKED.opinion(texts) == (yes(score=1.0), [])


@pytest.mark.parametrize("text", ["no", "n", "False", "0"])
def test_no_needs_nothing_else(text):
    assert ASKED.opinion({"detected": text}) == (NO, [])
    assert ASKED.opinion({"detected": text, "diag": "0", "strategy": "none", "strategy_score": ""}) == (NO, [])


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({"detected": ""}, "detected is empty; allowed: yes, no"),
        ({"detected": "maybe"}, "detected = 'maybe' is not on the scale"),
        ({"detected": "no", "diag": "2"}, "diag = '2', but nothing was detected"),
        ({"detected": "no", "strategy": "refusal"}, "strategy = 'refusal', but nothing was detected"),
        (
            {"detected": "yes", "diag": "3", "strategy": "refusal", "strategy_score": "1"},
            "diag = '3' is not on the scale",
        ),
        ({"detected": "yes", "diag": "1.5", "strategy": "refusal", "strategy_score": "1"}, "diag = '1.5' is not on"),
        ({"detected": "yes", "diag": "", "strategy": "refusal", "strategy_score": "1"}, "diag is empty"),
        ({"detected": "yes", "diag": "1", "strategy": "refuse", "strategy_score": "1"}, "did you mean 'refusal'"),
        ({"detected": "yes", "diag": "1", "strategy": "none", "strategy_score": "2"}, "but the strategy is none"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(texts, told):
    _, problems = ASKED.opinion(texts)
    assert any(told in problem for problem in problems)


def test_all_that_is_wrong_is_told_at_once():
    _, problems = ASKED.opinion({"detected": "yes", "diag": "9", "strategy": "", "strategy_score": "x"})
    assert len(problems) == 3


def test_the_strategy_none_has_no_score():
    opinion, problems = ASKED.opinion({"detected": "yes", "diag": "1", "strategy": "none"})
    assert problems == []
    assert opinion == yes(1.0, "none", 0.0)


@pytest.mark.parametrize("text", ["6", "-1", "4.5", "five", "3-4"])
def test_a_score_off_the_scale_is_refused(text):
    opinion, problems = CR.opinion({"score": text})
    assert opinion == {}
    assert problems == [f"score = {text!r} is not on the scale; allowed: 0, 1, 2, 3, 4, 5"]


@pytest.mark.parametrize("opinion", [NO, yes(), yes(0.0, "none", 0.0), {"score": 3.0}])
def test_an_opinion_survives_being_written_and_read(opinion):
    asked = CR if "score" in opinion else ASKED
    assert asked.opinion(asked.texts(opinion)) == (opinion, [])


# --- several labels ---------------------------------------------------------------------------------------------------


def test_one_label_stands_for_itself():
    assert ASKED.agreed([yes()]) == yes()
    assert CR.agreed([{"score": 4.0}]) == {"score": 4.0}
    assert ASKED.agreed([]) == {}


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        (NO, NO, ()),
        (NO, yes(), ("detected",)),
        (yes(), yes(), ()),
        (yes(1.0), yes(2.0), ("diag",)),
        (yes(strategy="refusal"), yes(strategy="correction"), ("strategy",)),
        (yes(score=0.0), yes(score=2.0), ("strategy_score",)),
    ],
)
def test_any_difference_of_critiques_needs_a_third(first, second, apart):
    assert ASKED.differ(first, second) == apart
    together = ASKED.agreed([first, second])
    assert set(apart).isdisjoint(together)


@pytest.mark.parametrize(("first", "second", "third"), [(3, 3, False), (3, 4, False), (2, 4, True), (0, 5, True)])
def test_scores_a_point_apart_are_averaged_and_two_apart_need_a_third(first, second, third):
    pair = [{"score": float(first)}, {"score": float(second)}]
    assert bool(CR.differ(*pair)) is third
    assert CR.agreed(pair) == ({} if third else {"score": (first + second) / 2})


def test_the_third_decides_by_majority_and_median():
    assert ASKED.agreed([NO, yes(), NO]) == NO
    assert CR.agreed([{"score": 1.0}, {"score": 4.0}, {"score": 3.0}]) == {"score": 3.0}
    assert ASKED.agreed([yes(0.0), yes(2.0), yes(2.0)])["diag"] == 2.0


def test_what_needs_detection_is_taken_from_those_who_detected():
    together = ASKED.agreed([yes(1.0, "refusal", 1.0), NO, yes(2.0, "refusal", 2.0)])
    assert together == yes(1.5, "refusal", 1.5)


def test_three_strategies_or_two_of_three_people_that_differ_are_split():
    three = [yes(strategy=name) for name in ("refusal", "correction", "clarification")]
    assert ASKED.agreed(three)["strategy"] == "split"
    assert ASKED.agreed([three[0], three[1], NO])["strategy"] == "split"
    assert ASKED.agreed([three[0], three[0], three[1]])["strategy"] == "refusal"


def test_an_even_vote_on_detection_stays_open():
    assert ASKED.agreed([NO, yes(), NO, yes()]) == {}


def test_it_is_the_same_for_any_order_of_people():
    labels = [yes(0.0, "refusal", 1.0), NO, yes(2.0, "correction", 2.0)]
    assert (
        len({str(sorted(ASKED.agreed(order).items())) for order in (labels, labels[::-1], labels[1:] + labels[:1])})
        == 1
    )


@pytest.mark.parametrize("text", ["4.0", "4,0", " 4.00 "])
def test_a_whole_number_may_be_written_as_programs_write_it(text):
    assert CR.opinion({"score": text}) == ({"score": 4.0}, [])
    assert ASKED.opinion({"detected": "yes", "diag": "2.0", "strategy": "refusal", "strategy_score": "1.0"}) == (
        yes(score=1.0),
        [],
    )


@pytest.mark.parametrize("text", ["4.5", "4.05", "6.0", ".0", "4.", "1e0"])
def test_what_is_no_whole_number_of_the_scale_is_refused(text):
    assert CR.opinion({"score": text})[1]
