"""An answer that no judge could score is a failure that the run tells, whatever kept the judge from a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interbench_tasks.backends.options import key_from
from interbench_tasks.errors import MissingKeyError
from interbench_tasks.records import Reply, Verdict
from interbench_tasks.redaction import redact
from interbench_tasks.runs.keeper import failures_of
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


def test_the_error_of_a_missing_key_is_readable_after_redaction(monkeypatch):
    monkeypatch.delenv("SOME_API_KEY", raising=False)
    with pytest.raises(MissingKeyError) as caught:
        key_from("SOME_API_KEY", "OPENAI_API_KEY", "openai", needed=True)
    assert redact(str(caught.value)) == str(caught.value)
    assert "openai:MODEL@http://localhost:8000/v1" in str(caught.value)
