"""An answer that no judge could score is a failure that the run tells, whatever kept the judge from a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interbench_tasks.backends.options import key_from
from interbench_tasks.errors import MissingKeyError
from interbench_tasks.records import Reply, Verdict
from interbench_tasks.redaction import redact
from interbench_tasks.runs.keeper import failures_of, has_unscored
from tests.conversation_records import answer, conversation, question

ASKED = question("q", "MR")
UNREAD = Verdict(
    judge="j1", status="unparsed", score=None, reason="no JSON object with the nonce", reply=Reply(text="5")
)
SCORED = Verdict(judge="j2", status="scored", score=4.0)


def record_with(score: float | None, *verdicts: Verdict):
    return conversation(0, [ASKED], [replace(answer("none", ASKED, score=score), verdicts=verdicts)])


def test_an_answer_whose_judge_cannot_be_read_is_told_as_a_failure():
    assert failures_of(record_with(None, UNREAD)) == {"judge j1 gave no verdict: no JSON object with the nonce"}


def test_a_reply_that_cannot_be_read_is_none_where_the_other_judges_decide():
    assert failures_of(record_with(4.0, UNREAD, SCORED)) == set()


def test_judges_that_disagree_have_not_failed():
    assert failures_of(record_with(None, SCORED, replace(SCORED, judge="j3", score=1.0))) == set()


FAILED = replace(UNREAD, status="error", reason="HTTP 500")


def test_what_the_other_judges_decided_is_scored_though_one_judge_failed():
    decided = record_with(4.0, FAILED, SCORED)
    assert failures_of(decided) == {"judge j1 failed: HTTP 500"}
    assert not has_unscored(decided)
    assert has_unscored(record_with(None, FAILED, SCORED))
    assert has_unscored(record_with(None, UNREAD))
    assert not has_unscored(record_with(4.0, UNREAD, SCORED))


def test_an_episode_that_failed_or_has_no_reply_is_unscored():
    decided = record_with(4.0, SCORED)
    assert has_unscored(replace(decided, status="failed", error="broken"))
    assert has_unscored(replace(decided, turns=(replace(decided.turns[0], reply=Reply(text="", status="error")),)))


def test_the_error_of_a_missing_key_is_readable_after_redaction(monkeypatch):
    monkeypatch.delenv("SOME_API_KEY", raising=False)
    with pytest.raises(MissingKeyError) as caught:
        key_from("SOME_API_KEY", "OPENAI_API_KEY", "openai", needed=True)
    assert redact(str(caught.value)) == str(caught.value)
    assert "openai:MODEL@http://localhost:8000/v1" in str(caught.value)
