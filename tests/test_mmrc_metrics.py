"""Metrics of conversations: who is counted, what a failure does to a number, and what a summary holds."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.errors import ConfigError
from interbench_tasks.hookspecs import WeightedMetrics
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.metrics.mmrc_names import MAX_HEADLINE_ROWS, ROWS_OF_A_RATE
from interbench_tasks.metrics.sums import Sums, estimates_from_sums, mean_of_scored
from interbench_tasks.records import CONTEXT_OVERFLOW, Reply
from tests.conversation_records import FAILED, Options, answer, conversation, judged, note_turn, question, talk

TWO = Options(memories=("none", ("recent_turns", "note_taking")))
NOTES = "recent_turns+note_taking"


def table(records, options=None):
    metrics = ConversationMetrics(options or Options())
    return metrics.table([metrics.summary(record) for record in records])


def one(asked, text="Up", *, arm="none", options=None, **changes):
    """The table of one conversation with one question."""
    return table([conversation(0, [asked], [answer(arm, asked, text, **changes)])], options)


# --- scores -------------------------------------------------------------------------------------------------------


def test_a_score_is_the_mean_over_the_questions_of_an_ability():
    records = [talk(n, {"none": {"IE": score, "MR": 1}}) for n, score in enumerate([5, 4, 3])]
    found = table(records)
    assert (found["score.IE.none"].value, found["score.IE.none"].n, found["score.IE.none"].points) == (4, 3, 5)
    assert found["score.MR.none"].value == 1
    assert "score.CR.none" not in found
    assert found["n"].value == 3


def test_a_judge_that_failed_leaves_the_answer_unscored_with_both_bounds():
    found = table([talk(0, {"none": {"IE": 5}}), talk(1, {"none": {"IE": None}}), talk(2, {"none": {"IE": 2}})])
    score = found["score.IE.none"]
    assert (score.value, score.n, score.unscored) == (3.5, 2, 1)
    assert score.bounds == pytest.approx((7 / 3, 12 / 3))
    assert found["n_judge_failed.none"].value == 1
    assert found["n_unanswered.none"].value == 0


@pytest.mark.parametrize("ability", ABILITIES)
def test_a_call_that_failed_is_unscored_in_every_metric_that_needed_it(ability):
    asked = question("q", ability, items=("Up",), pictures=(1,))
    other = question("r", ability, items=("Up",), pictures=(1,))
    record = conversation(
        0, [asked, other], [answer("none", asked, FAILED), answer("none", other, "picture 1, Up", score=4)]
    )
    found = table([record])
    rates = {name: estimate for name, estimate in found.items() if estimate.method != "count"}
    assert set(rates) >= {f"score.{ability}.none"}
    assert all((estimate.n, estimate.unscored) == (1, 1) for estimate in rates.values()), rates
    assert all(e.bounds is not None and e.bounds.low <= e.value <= e.bounds.high for e in rates.values())
    assert (found["n_unanswered.none"].value, found["n_judge_failed.none"].value) == (1, 0)


def test_a_question_that_was_never_asked_is_unscored_too():
    first, second = question("a", "MR"), question("b", "MR")
    found = table([conversation(0, [first, second], [answer("none", first, score=3)], status="failed")])
    assert (found["score.MR.none"].n, found["score.MR.none"].unscored) == (1, 1)
    assert (found["n_unanswered.none"].value, found["n_failed"].value, found["n_questions"].value) == (1, 1, 2)


def test_a_conversation_that_never_started_is_counted_as_failed():
    found = table([talk(0, {"none": {"MR": 3}}), conversation(1, [], [], n_turns=0, status="skipped")])
    assert (found["n"].value, found["n_failed"].value) == (2, 1)
    assert found["score.MR.none"].unscored == 0


def test_a_reply_cut_at_its_limit_is_an_answer_and_one_that_did_not_fit_is_none():
    long, over = question("a", "MR"), question("b", "MR")
    cut = Reply(text="It was", finish_reason="length")
    overflow = Reply(text="", status="error", finish_reason=CONTEXT_OVERFLOW, error="too long")
    found = table([conversation(0, [long, over], [answer("none", long, cut, score=2), answer("none", over, overflow)])])
    assert (found["score.MR.none"].value, found["score.MR.none"].unscored) == (2, 1)
    assert (found["n_cut_replies.none"].value, found["n_overflow.none"].value) == (1, 1)


# --- overall ------------------------------------------------------------------------------------------------------


def test_overall_is_the_unweighted_mean_of_the_six_however_many_questions_each_has():
    records = [talk(0, {"none": dict(zip(ABILITIES, (5, 4, 3, 2, 1, 0), strict=True))})]
    records += [talk(n, {"none": {"IE": 5}}) for n in range(1, 9)]
    found = table(records)
    assert found["overall.none"].value == pytest.approx(2.5)
    assert found["overall.none"].n == 14


@pytest.mark.parametrize("missing", ABILITIES)
def test_overall_is_absent_where_one_of_the_six_is(missing):
    scores = {ability: 3 for ability in ABILITIES if ability != missing}
    assert "overall.none" not in table([talk(n, {"none": scores}) for n in range(3)])
    unscored = talk(3, {"none": {missing: None}})
    assert "overall.none" not in table([talk(0, {"none": scores}), unscored])


def test_overalls_bounds_are_those_of_its_parts():
    scores = dict.fromkeys(ABILITIES, 3.0)
    records = [talk(0, {"none": scores}), talk(1, {"none": scores | {"IE": None}})]
    overall = table(records)["overall.none"]
    assert (overall.value, overall.unscored) == (3, 1)
    assert overall.bounds == pytest.approx((3 - 1.5 / 6, 3 + 1 / 6))


# --- exact formats ------------------------------------------------------------------------------------------------


def test_multiple_choice_is_scored_exactly_and_never_mixed_with_judges_scores():
    asked = [question("a", "MR", format="mc"), question("b", "MR", format="tf"), question("c", "MR")]
    answers = [
        answer("none", asked[0], "Answer: A", correct=True),
        answer("none", asked[1], "Answer: B", correct=False),
        answer("none", asked[2], score=2),
    ]
    found = table([conversation(0, asked, answers)])
    assert (found["accuracy.none"].value, found["accuracy.none"].n, found["accuracy.none"].count) == (0.5, 2, 1)
    assert found["accuracy.MR.none"].value == 0.5
    assert (found["score.MR.none"].value, found["score.MR.none"].n) == (2, 1)
    assert found["accuracy.none"].points is None


def test_an_option_that_could_not_be_compared_is_unscored():
    asked = question("a", "IE", format="mc")
    record = conversation(0, [asked], [answer("none", asked, "A", correct=None)])
    other = conversation(1, [asked], [answer("none", asked, "A", correct=True)])
    found = table([record, other])
    assert (found["accuracy.none"].value, found["accuracy.none"].unscored) == (1, 1)
    assert found["accuracy.none"].bounds == (0.5, 1)
    assert found["n_judge_failed.none"].value == 1


# --- EP, IMP, RP --------------------------------------------------------------------------------------------------


def test_ep_is_a_precision_with_recall_and_f1_beside_it():
    asked = question("a", "IE", items=("Up", "Cars", "Alien"))
    found = one(asked, "Up, Cars, Shrek and Heat", score=3)
    assert found["ep.none"].value == 0.5
    assert found["ep_recall.none"].value == pytest.approx(2 / 3, abs=1e-4)
    assert found["ep_f1.none"].value == pytest.approx(4 / 7, abs=1e-4)
    assert one(asked, "", score=0)["ep.none"].value == 0


def test_imp_is_a_recall_macro_and_micro_with_the_true_precision_beside_it():
    first, second = question("a", "IM", pictures=(1,)), question("b", "IM", pictures=(1, 2, 3))
    answers = [answer("none", first, "picture 1", score=5), answer("none", second, "pictures 1 and 4", score=2)]
    found = table([conversation(0, [first, second], answers, pictures={0: 4})])
    assert found["imp.none"].value == pytest.approx((1 + 1 / 3) / 2, abs=1e-4)
    assert (found["imp_micro.none"].value, found["imp_micro.none"].n) == (0.5, 4)
    assert found["imp_precision.none"].value == 0.75
    assert (found["imp_precision_micro.none"].value, found["imp_precision_micro.none"].n) == (pytest.approx(2 / 3), 3)


def test_naming_every_picture_has_full_recall_and_little_precision():
    asked = question("a", "IM", pictures=(2,))
    found = one(asked, "pictures 1, 2, 3 and 4", score=1)
    assert (found["imp.none"].value, found["imp_precision.none"].value) == (1, 0.25)
    nothing = one(asked, "I do not know", score=0)
    assert (nothing["imp.none"].value, nothing["imp_precision.none"].value) == (0, 0)


def test_items_without_a_word_are_not_counted_and_break_nothing():
    found = one(question("q", "IE", items=("...",)), score=3.0)
    assert found["score.IE.none"].value == 3
    assert "ep.none" not in found


def test_a_picture_that_is_listed_twice_is_one_also_where_the_reply_failed():
    asked = question("q", "IM", pictures=(2, 2))
    metrics = ConversationMetrics(Options())
    for text, pictures in (("picture 2", [1, 1, 1, 0]), (FAILED, [0, 0, 0, 1])):
        summary = metrics.summary(conversation(0, [asked], [answer("none", asked, text)]))
        assert summary["arms"]["none"]["pictures"] == pictures


def test_how_many_pictures_a_failed_reply_had_named_is_not_known():
    asked = [question("a", "IM", pictures=(2,)), question("b", "IM", pictures=(1, 2))]
    found = table([conversation(0, asked, [answer("none", asked[0], "picture 2"), answer("none", asked[1], FAILED)])])
    assert (found["imp_micro.none"].unscored, found["imp_micro.none"].bounds) == (2, (pytest.approx(1 / 3), 1))
    assert (found["imp_precision_micro.none"].unscored, found["imp_precision_micro.none"].bounds) == (1, (0, 1))


def test_the_last_picture_is_that_of_the_conversation():
    asked = question("a", "IM", pictures=(3,))
    record = conversation(0, [asked], [answer("none", asked, "The last picture", score=5)], pictures={0: 1, 2: 2})
    assert table([record])["imp.none"].value == 1


def test_rp_counts_refusals_over_all_open_ar_questions():
    asked = [question(str(n), "AR") for n in range(5)]
    choice = question("mc", "AR", format="mc")
    answers = [
        answer("none", asked[0], "You never mentioned it.", score=5),
        answer("none", asked[1], "It was red.", score=0),
        answer("none", asked[2], "Ines has never been there.", score=4, label="declined"),
        answer("none", asked[3], "It was blue.", score=None),
        answer("none", asked[4], "", score=0),
        answer("none", choice, "Answer: A", correct=True),
    ]
    found = table([conversation(0, [*asked, choice], answers)])
    assert (found["rp.none"].value, found["rp.none"].n, found["rp.none"].count) == (0.5, 4, 2)
    assert (found["rp.none"].unscored, found["rp.none"].bounds) == (1, (0.4, 0.6))
    assert (found["score.AR.none"].n, found["score.AR.none"].unscored) == (4, 1)


def test_a_judges_label_never_unmakes_a_refusal_in_plain_words():
    found = one(question("a", "AR"), "The conversation does not say.", score=2, label="answered")
    assert found["rp.none"].value == 1


def test_a_refusal_that_judges_do_not_agree_on_is_unscored():
    asked = question("a", "AR")
    votes = (judged(3, label="declined"), judged(3, label="answered"))
    turn = replace(answer("none", asked, "Ines has never been there.", score=3), verdicts=votes)
    assert "rp.none" not in table([conversation(0, [asked], [turn])])


def test_a_rubric_without_labels_leaves_refusals_to_the_words():
    asked = question("a", "AR")
    turn = replace(answer("none", asked, "It was blue.", score=3), verdicts=(judged(3), judged(3)))
    assert table([conversation(0, [asked], [turn])])["rp.none"].value == 0


def test_metrics_without_a_judge_need_none():
    asked = [question("a", "AR"), question("b", "IE", items=("Up",))]
    records = [conversation(0, asked, [answer("none", each, "You did not say.") for each in asked])]
    found = table(records, Options(rubric=None))
    assert found["rp.none"].value == 1
    assert found["ep.none"].value == 0
    assert not [name for name in found if name.startswith(("score", "overall", "difference"))]
    assert found["n_judge_failed.none"].value == 0


# --- arms and differences -----------------------------------------------------------------------------------------


def test_arms_are_apart_and_a_difference_is_paired_by_question():
    records = [
        talk(0, {"none": {"MR": 1}, NOTES: {"MR": 4}}),
        talk(1, {"none": {"MR": 2}, NOTES: {"MR": 4}}),
        talk(2, {"none": {"MR": 5}, NOTES: {"MR": None}}),
    ]
    found = table(records, TWO)
    assert found["score.MR.none"].value == pytest.approx(8 / 3)
    assert found[f"score.MR.{NOTES}"].value == 4
    difference = found[f"difference.MR.{NOTES}-none"]
    assert (difference.value, difference.n, difference.unscored, difference.points) == (2.5, 2, 1, 5)
    assert difference.bounds == (
        0,
        2.5,
    )  # (5 - 5)/3 to (5 + 0)/3, widened to the value, which leaves half known ones out


def test_a_difference_of_which_nothing_is_known_lies_anywhere():
    records = [talk(0, {"none": {"MR": 1}, NOTES: {"MR": 4}}), talk(1, {"none": {"MR": None}, NOTES: {"MR": None}})]
    assert table(records, TWO)[f"difference.MR.{NOTES}-none"].bounds == (-1, 4)


def test_the_difference_of_overalls_is_the_mean_of_the_six():
    plain, noted = dict.fromkeys(ABILITIES, 2.0), dict(zip(ABILITIES, (5, 4, 3, 2, 1, 0), strict=True))
    found = table([talk(n, {"none": plain, NOTES: noted}) for n in range(2)], TWO)
    assert found[f"difference.overall.{NOTES}-none"].value == pytest.approx(0.5)
    assert found[f"overall.{NOTES}"].value - found["overall.none"].value == pytest.approx(0.5)


def test_names_come_from_the_options_alone_and_in_order():
    full = {"none": dict.fromkeys(ABILITIES, 3.0), NOTES: dict.fromkeys(ABILITIES, 4.0)}
    names = [name for name in table([talk(0, full), talk(1, full)], TWO) if not name.startswith("n")]
    scores = [f"score.{ability}" for ability in ABILITIES]
    expected = [f"{what}.{arm}" for arm in ("none", NOTES) for what in ("overall", *scores, "rp")]
    expected += [f"difference.{what}.{NOTES}-none" for what in (*ABILITIES, "overall")]
    assert names == expected


# --- intervals ----------------------------------------------------------------------------------------------------


def test_one_question_a_conversation_has_a_t_interval_and_several_are_resampled_by_conversation():
    scores = [5, 4, 3, 5, 2, 4, 4, 1]
    alone = table([talk(n, {"none": {"MR": score}}) for n, score in enumerate(scores)])["score.MR.none"]
    mean, deviation = np.mean(scores), np.std(scores, ddof=1)
    half = 2.364624 * deviation / np.sqrt(8)
    assert (alone.method, alone.ci95) == ("t", pytest.approx((mean - half, mean + half)))
    together = table([talk(n, {"none": {"MR": s}}, cluster=f"c{n // 2}") for n, s in enumerate(scores)])
    assert together["score.MR.none"].method == "cluster_bootstrap"
    assert together["score.MR.none"].value == alone.value


def test_questions_of_one_conversation_are_no_independent_ones():
    """Ten copies of a question in each conversation tell no more than one does."""
    rng = random.Random(3)
    scores = [rng.choice([0, 1, 4, 5]) for _ in range(40)]
    asked = [question(str(n), "MR") for n in range(10)]
    copies = [conversation(n, asked, [answer("none", q, score=s) for q in asked]) for n, s in enumerate(scores)]
    many = table(copies)["score.MR.none"]
    few = table([talk(n, {"none": {"MR": s}}) for n, s in enumerate(scores)])["score.MR.none"]
    assert many.n == 400
    assert many.ci95.high - many.ci95.low == pytest.approx(few.ci95.high - few.ci95.low, rel=0.1)


def test_full_marks_everywhere_are_not_certain():
    found = table([talk(n, {"none": {"MR": 5}}) for n in range(10)])["score.MR.none"]
    assert (found.value, found.method) == (5, "wilson")
    assert found.ci95.low < 4
    single = table([talk(0, {"none": {"MR": 3}})])["score.MR.none"]
    assert single.ci95.high - single.ci95.low > 3
    asked = [question(str(n), "MR") for n in range(3)]
    cluster = table([conversation(n, asked, [answer("none", q, score=4) for q in asked]) for n in range(4)])
    assert cluster["score.MR.none"].method == "wilson_by_cluster"


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """150 runs of 60 conversations with two questions each that go together."""
    rng = np.random.default_rng(5)
    hits, runs = 0, 150
    for _ in range(runs):
        mood = rng.normal(0, 1, 60)
        values = np.clip(np.round(2.5 + mood[:, None] + rng.normal(0, 0.7, (60, 2))), 0, 5)
        rows, labels = values.ravel().tolist(), [str(n) for n in range(60) for _ in range(2)]
        found = mean_of_scored(rows, clusters=labels, span=Interval(0, 5), points=5, draws=500)
        hits += found.ci95.low <= 2.5 <= found.ci95.high
    assert 0.89 <= hits / runs <= 0.99


def test_an_overall_is_drawn_with_its_parts():
    """Where a conversation is good in all six or in none, the six tell hardly more than one."""
    rng = random.Random(2)
    moods = [rng.choice([1.0, 4.0]) for _ in range(50)]
    found = table([talk(n, {"none": dict.fromkeys(ABILITIES, mood)}) for n, mood in enumerate(moods)])
    overall, single = found["overall.none"], found["score.IE.none"]
    assert overall.method == "cluster_bootstrap"
    assert overall.ci95 == pytest.approx(single.ci95, abs=0.1)
    same = table([talk(n, {"none": dict.fromkeys(ABILITIES, 5.0)}) for n in range(10)])
    assert same["overall.none"].method == "mean_of_intervals"
    assert same["overall.none"].ci95 == pytest.approx(same["score.IE.none"].ci95)


def test_the_order_of_conversations_does_not_matter():
    rng = random.Random(1)
    records = [
        talk(n, {arm: {a: rng.choice([0, 1.5, 10 / 3, 5, None]) for a in ABILITIES} for arm in ("none", NOTES)})
        for n in range(30)
    ]
    assert table(records, TWO) == table(rng.sample(records, 30), TWO)


def test_without_conversations_there_is_no_metric():
    assert table([]) == {}


def test_sums_without_any_scored_question_are_absent():
    nothing = np.zeros(2)
    column = Sums(totals=nothing, squares=nothing, counted=np.zeros(2, dtype=np.int64), unscored=3)
    assert estimates_from_sums({"a": column}, ["x", "y"], means={"b": ["a"]}) == {}


# --- summaries ----------------------------------------------------------------------------------------------------


def test_a_summary_is_short_however_many_questions_a_conversation_has():
    """A conversation of LoCoMo has up to 260 questions; four arms, all formats, failing judges, odd panel means."""
    rng = random.Random(0)
    options = Options(memories=("none", "note_taking", "summary", ("recent_turns", "note_taking")))
    metrics = ConversationMetrics(options)
    arms = metrics.lineup.arms
    asked = [
        question(
            f"q{n}", rng.choice(list(ABILITIES)), items=("Up",), pictures=(1, 2), format=rng.choice(["open", "mc"])
        )
        for n in range(260)
    ]
    answers = [
        answer(arm, each, "Up, picture 1", score=rng.choice([None, 0, 10 / 3, 4.25]), correct=rng.random() < 0.5)
        for arm in arms
        for each in asked
    ]
    record = conversation(0, asked, answers, n_turns=300, episode_id="e" * 60, category="Travel", cluster="c" * 40)
    summary = metrics.summary(record)
    text = json.dumps(summary).replace("<", "\\u003c")
    assert len(text.encode()) < 4096, len(text)
    assert metrics.table([json.loads(text)]) == metrics.table([summary])


def test_a_conversations_own_values_average_to_the_table_where_all_have_as_many_questions():
    rng = random.Random(4)
    records = [talk(n, {"none": {ability: rng.randint(0, 5) for ability in ABILITIES}}) for n in range(12)]
    metrics = ConversationMetrics(Options())
    summaries = [metrics.summary(record) for record in records]
    own = [metrics.contributions(summary) for summary in summaries]
    found = metrics.table(summaries)
    for name in ("overall.none", "score.IU.none", "rp.none"):
        assert np.mean([row[name] for row in own]) == pytest.approx(found[name].value)
    assert sum(row["n_questions"] for row in own) == 72


def test_the_parts_of_all_conversations_add_up_to_the_table():
    rng = np.random.default_rng(3)
    records = [
        talk(
            n, {arm: {a: int(rng.integers(0, 6)) for a in list(ABILITIES)[n % 3 :]} for arm in ("none", "note_taking")}
        )
        for n in range(9)
    ]
    metrics = ConversationMetrics(Options(memories=("none", "note_taking")))
    summaries = [metrics.summary(record) for record in records]
    assert isinstance(metrics, WeightedMetrics)
    found = metrics.table(summaries)
    parts = [metrics.parts(summary) for summary in summaries]
    names = {name for own in parts for name in own}
    assert names == {name for name, own in found.items() if own.method != "count"} - set(metrics.composites())
    for name in names:
        top, bottom = (sum(own[name][place] for own in parts if name in own) for place in (0, 1))
        assert top / bottom == pytest.approx(found[name].value)
        assert bottom == found[name].n
        assert all(own[name][1] > 0 for own in parts if name in own)
    for name, how in metrics.composites().items():
        assert how.is_mean
        assert found[name].value == pytest.approx(sum(found[part].value for part in how.parts) / 6)


def test_notes_are_counted():
    asked = question("a", "MR")
    notes = [note_turn("note_taking", 0), note_turn("note_taking", 1, status="kept"), note_turn("x", 2, cut=True)]
    record = conversation(0, [asked], [*notes, answer("note_taking", asked, score=3)])
    found = table([record], Options(memories=("note_taking",)))
    assert [found[name].value for name in ("n_notes", "n_notes_unreadable", "n_notes_cut")] == [3, 1, 1]
    assert "n_notes" not in table([talk(0, {"none": {"MR": 3}})])


@pytest.mark.parametrize("memories", [("none",), ("none", "note_taking"), ("none", "a", "b", "c", "d", "e")])
@pytest.mark.parametrize("rubric", ["mmrc", None])
def test_the_harness_gets_at_most_25_rows(memories, rubric):
    metrics = ConversationMetrics(Options(memories=memories, rubric=rubric))
    names = metrics.headline([*metrics.lineup.rate_names(), *metrics.lineup.count_names()])
    rows = sum(1 if name.startswith("n") or name in metrics.bare else ROWS_OF_A_RATE for name in names)
    assert rows <= MAX_HEADLINE_ROWS
    assert metrics.bare <= set(names)
    assert all(f"score.{ability}.none" in names for ability in ABILITIES) == (rubric is not None)
    assert ("overall.none" in names) == (rubric is not None)
    assert {"n", "n_failed"} <= set(names)
    assert ("n_judge_failed" in names) == (rubric is not None)


def test_answers_without_a_verdict_are_counted_over_all_arms_where_no_overall_is_left():
    arms = {"none": {"MR": None, "IE": 3}, "note_taking": {"MR": None, "IE": None}}
    found = table([talk(0, arms), talk(1, arms)], Options(memories=("none", "note_taking")))
    assert "overall.none" not in found
    assert found["n_judge_failed"].value == 6
    assert [found[f"n_judge_failed.{arm}"].value for arm in arms] == [2, 4]


# --- rubrics of your own ------------------------------------------------------------------------------------------


def own_rubrics(tmp_path, scales):
    lines = [f"  {ability}: {{task: t, scale: {{low: 1, high: {high}}}}}" for ability, high in scales.items()]
    path = tmp_path / "own.yaml"
    path.write_text("template: '{{ reply_format }} {{ response }}'\nrubrics:\n" + "\n".join(lines))
    return str(path)


def test_the_scale_of_a_rubric_of_your_own_makes_the_bounds(tmp_path):
    options = Options(rubric=own_rubrics(tmp_path, dict.fromkeys(ABILITIES, 10)))
    found = table([talk(0, {"none": {"IE": 9}}), talk(1, {"none": {"IE": None}})], options)["score.IE.none"]
    assert (found.value, found.points, found.bounds) == (9, 10, (5, 9.5))


def test_rubrics_of_two_scales_cannot_be_averaged(tmp_path):
    with pytest.raises(ConfigError, match="all need one scale"):
        ConversationMetrics(Options(rubric=own_rubrics(tmp_path, {"IE": 5, "CR": 10})))
    with pytest.raises(ConfigError, match="all need one scale"):
        ConversationMetrics(Options(rubric="mmrc_errors"))
