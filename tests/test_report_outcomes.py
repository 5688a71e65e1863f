"""What the report's filters ask of an episode, from its JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interbench_tasks.record_json import record_to_json
from interbench_tasks.records import BranchEnd, Reply
from interbench_tasks.report.outcomes import SNIPPET, disagree, facts_from
from tests import critiques
from tests.conversation_records import answer, conversation, question
from tests.feedback_records import feedback as told
from tests.feedback_records import loop as made_loop
from tests.report_runs import loop, loops, talk, turn, verdict


def facts(record):
    return facts_from(record_to_json(record))


@pytest.mark.parametrize(
    ("record", "outcomes", "solved"),
    [
        (loop(0, "B"), ("right at once",), 0),
        (loop(0, "A", "B"), ("corrected", "corrected by detail"), 1),
        (loop(0, "A", "C"), ("not corrected",), None),
        (loop(0, "A"), ("wrong, outside the test set",), None),
        (loops()[-1], ("failed",), None),
        (replace(loops()[-1], status="skipped"), ("not played",), None),
        (made_loop("B", "B", {"detail": ["A"]}, flip=True), ("right at once", "right, then flipped"), 0),
        (made_loop("B", "B", {"detail": ["B"]}, flip=True), ("right at once",), 0),
        (made_loop("A", "B", {"simple": ["C", "B"], "detail": ["B"]}), None, 1),
        (made_loop("failed"), ("failed",), None),
    ],
)
def test_a_feedback_loop_says_what_became_of_it_and_in_which_round(record, outcomes, solved):
    found = facts(record)
    expected = outcomes or ("corrected", "corrected by simple", "corrected by detail")
    assert (found.outcomes, found.solved_round) == (expected, solved)


@pytest.mark.parametrize(
    ("first", "branch", "outcomes", "solved"),
    [
        ("A", {"detail": ["C"]}, ("marked right by a person", "corrected", "corrected by detail"), 1),
        ("A", {}, ("marked right by a person", "right at once"), 0),
    ],
)
def test_what_a_person_marked_as_right_is_right(first, branch, outcomes, solved):
    record = made_loop(first, None, branch)
    last = replace(record.turns[-1], judgement=record.turns[-1].judgement.by_person())
    ends = (BranchEnd(branch="detail", reason="marked_right"),)
    found = facts(replace(record, turns=(*record.turns[:-1], last), ends=ends))
    assert (found.outcomes, found.solved_round) == (outcomes, solved)


@pytest.mark.parametrize(
    "reason", ["reply_failed", "feedback_failed", "judge_failed", "notes_failed", "context_overflow"]
)
def test_an_arm_that_a_failed_call_ended_is_in_the_test_set_and_in_no_round(reason):
    found = facts(replace(loop(0, "A"), ends=(BranchEnd(branch="hierarchical", reason=reason),)))
    assert (found.outcomes, found.solved_round, found.verified) == (("wrong, then a call failed",), None, False)


def test_a_provider_that_failed_hides_whether_the_episode_is_in_the_test_set():
    found = facts(replace(loop(0, "A"), stop_reason="provider_failed"))
    assert (found.outcomes, found.verified) == (("wrong, then a call failed",), False)


@pytest.mark.parametrize("reason", ["leak_dropped", "no_partner"])
def test_feedback_that_was_left_out_is_told(reason):
    found = facts(replace(loop(0, "A"), ends=(BranchEnd(branch="detail", reason=reason),)))
    assert (found.outcomes, found.verified) == (("wrong, feedback left out",), True)


def test_an_arm_that_failed_beside_one_that_was_solved_hides_nothing():
    record = loop(0, "A", "B")
    found = facts(replace(record, ends=(*record.ends, BranchEnd(branch="simple", reason="reply_failed"))))
    assert (found.outcomes[0], found.solved_round, found.verified) == ("corrected", 1, True)


def test_a_conversation_says_how_its_answers_were_scored():
    asked = [
        question("q1", "IE"),
        question("q2", "MR"),
        question("q3", "CR", format="mc", options={"A": "a", "B": "b"}),
    ]
    answers = [
        answer("none", asked[0], score=5.0),
        answer("none", asked[1], score=2.0),
        answer("none", asked[2], correct=True),
        answer("notes", asked[2], correct=False),
        answer("notes", asked[0], Reply(text="", status="error", error="x")),
    ]
    found = facts(conversation(0, asked, answers))
    assert found.outcomes == (
        "a choice right",
        "a choice wrong",
        "an answer with score 2",
        "an answer with score 5",
        "an answer without score",
    )
    assert found.error
    assert (found.verified, found.solved_round) == (False, None)  # questions have no rounds


def critique(fields, **changes):
    base = critiques.record(0, [critiques.YES])
    panel = verdict("panel", None, fields=fields, **changes)
    return replace(base, turns=(replace(base.turns[0], verdict=panel),))


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        (critique({"detected": "true"}), "flaw detected"),
        (critique({"detected": "false"}), "flaw missed"),
        (critique({"false_alarm": "true"}), "false alarm"),
        (critique({"false_alarm": "false"}), "valid item, no alarm"),
        (critique({}, status="undecided"), "no verdict"),
    ],
)
def test_a_critique_says_what_the_panel_says(record, outcome):
    assert facts(record).outcomes == (outcome,)


def test_a_style_of_a_critique_is_named():
    record = critique({"detected": "true"})
    styled = replace(
        record.turns[0], index=1, branch="formal", verdict=verdict("p", None, fields={"detected": "false"})
    )
    assert facts(replace(record, turns=(*record.turns, styled))).outcomes == ("flaw detected", "flaw missed (formal)")


def test_an_unknown_protocol_shows_why_it_ended():
    assert facts(replace(loop(0, "B"), protocol="debate", stop_reason="agreed")).outcomes == ("agreed",)


def test_judges_disagree_only_where_they_say_different_things():
    assert facts(talk()).disagreement
    assert not facts(loop(0, "B")).disagreement
    said = [verdict("a", None, fields={"detected": "true", "diag": "1"}).fields for _ in range(2)]
    one, other = ({"status": "scored", "fields": fields} for fields in (said[0], {**said[1], "diag": "2"}))
    assert not disagree([one, other])
    assert disagree([one, {"status": "scored", "fields": {"detected": "false"}}])
    assert not disagree([one, {"status": "unparsed", "fields": {}}])
    assert not disagree([])


def test_a_leak_is_found_in_feedback_in_a_draft_and_in_a_dropped_branch():
    assert not facts(loop(0, "A", "C")).leak
    assert facts(loop(0, "A", "C", leak=True)).leak
    leaking = made_loop("A", "B", {"detail": ["B"]}).turns[0]
    draft = told(draft=loop(0, "A", "C", leak=True).turns[2].feedback.leak)
    assert facts(replace(loop(0, "A"), turns=(replace(leaking, feedback=draft),))).leak
    dropped = BranchEnd(branch="detail", reason="leak_dropped", feedback=loop(0, "A", "C", leak=True).turns[2].feedback)
    assert facts(replace(loop(0, "A"), ends=(dropped,))).leak


@pytest.mark.parametrize(
    "record",
    [
        loops()[-1],
        replace(loop(0, "B"), turns=(turn(0, None, "", reply=Reply(text="", status="empty")),)),
        replace(loop(0, "B"), ends=(BranchEnd(branch="x", reason="judge_failed", error="no"),)),
        replace(talk(), turns=(turn(0, None, "a", verdicts=(verdict("j", None, status="unparsed"),)),)),
    ],
    ids=["episode", "empty reply", "branch", "verdict"],
)
def test_whatever_failed_is_found(record):
    assert facts(record).error


def test_what_did_not_fail_is_no_error():
    assert not any(facts(record).error for record in (*loops()[:-1], talk()))


def test_the_list_shows_the_first_words_and_the_first_picture():
    found = facts(loop(7, "B"))
    assert (found.snippet, found.picture, found.category) == ("Question 7?", "0123456789abcdef0123456789abcdef", "odd")
    long = replace(loop(0, "B"), turns=(turn(0, None, "a", ("word \n " * 60,)),))
    assert len(facts(long).snippet) == SNIPPET
    assert facts(long).picture is None


def test_an_episode_of_another_version_is_read_as_far_as_it_goes():
    found = facts_from({"episode_id": "x", "turns": [{"odd": 1}, "odder"], "ends": None, "category": 5})
    assert (found.id, found.category, found.outcomes) == ("x", "5", ("finished",))
