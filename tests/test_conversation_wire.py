"""What really reaches a server: prefixes that are equal to the byte, questions close together, overflow, judges."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
import subprocess
import sys
import time

import pytest
from PIL import Image

from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.protocols.conversation import ConversationOptions
from tests.conversation_runs import played, row, server_backend
from tests.servers.openai_server import OpenAIServer, PlantedReply, refusal

JUDGE = "simulated:judge"
NO_JUDGE = {"rubric": None}


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def listening(request) -> str:
    return f"heard {len(request.messages)}"


def questions_of(server) -> list[tuple[str, str]]:
    """(conversation, question) of each question, in the order of arrival."""
    asked = [request for request in server.log if "What is fact" in request.messages[-1].text]
    return [(request.messages[0].text.partition(":")[0], request.messages[-1].text) for request in asked]


def test_all_questions_of_a_conversation_share_their_prefix_to_the_byte(tmp_path):
    """A server that keeps prefixes is asked for each one again: all but the last message is the same JSON."""
    with OpenAIServer(listening) as server:
        played(tmp_path, [row("a", 5, 4)], server_backend(server.url), **NO_JUDGE)
        assert not server.violations
        asked = [request for request in server.log if "What is fact" in request.messages[-1].text]
    prefixes = {request.history_digests()[-2] for request in asked}
    assert (len(asked), len(prefixes)) == (4, 1)
    assert len({request.body_digest for request in asked}) == 4


def test_notes_leave_the_prefix_as_it_is(tmp_path):
    with OpenAIServer(listening) as server:
        block = {**NO_JUDGE, "memories": ["none", "note_taking"], "roles": {"notetaker": "simulated:n"}}
        played(tmp_path, [row("a", 4, 3)], server_backend(server.url), **block)
        asked = [request for request in server.log if "What is fact" in request.messages[-1].text]
    assert len(asked) == 6
    assert len({request.history_digests()[-2] for request in asked}) == 1


@pytest.mark.parametrize("n_at_once", [1, 3, 8])
def test_the_questions_of_a_conversation_arrive_before_those_of_another(tmp_path, n_at_once):
    rows = [row(f"talk{number}", 4 + number % 3, 4) for number in range(6)]
    with OpenAIServer(listening, latency_s=0.002) as server:
        played(tmp_path, rows, server_backend(server.url, max_concurrency=n_at_once), history="recorded", **NO_JUDGE)
        arrived = [name for name, _ in questions_of(server)]
    assert len(arrived) == 24
    if n_at_once == 1:  # one connection: arrival is the order of sending
        assert [name for name, _ in itertools.groupby(arrived)] == [f"talk{number}" for number in range(6)]
    reach = [max(i for i, n in enumerate(arrived) if n == name) - arrived.index(name) for name in set(arrived)]
    assert max(reach) < 4 + n_at_once


def test_pictures_go_out_with_their_turn_in_every_request(tmp_path):
    from PIL import Image

    (tmp_path / "images").mkdir()
    Image.new("RGB", (30, 20), (200, 10, 10)).save(tmp_path / "images" / "red.png")
    talk = row("a", 2, 2)
    talk["turns"][0]["images"] = ["images/red.png"]
    with OpenAIServer(listening) as server:
        records, _ = played(tmp_path, [talk], server_backend(server.url), **NO_JUDGE)
        assert {len(request.messages[0].pictures) for request in server.log} == {1}
        assert len(server.counts.distinct_pictures) == 1
    assert records[0].turns[0].user.pictures[0].width == 30


def test_a_broken_picture_fails_its_episode_only(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    broken = row("a", 2, 1)
    broken["turns"][1]["images"] = ["broken.png"]
    with OpenAIServer(listening) as server:
        records, run = played(tmp_path, [broken, row("b", 2, 1)], server_backend(server.url), **NO_JUDGE)
    assert {record.episode_id: record.status for record in records} == {"a": "failed", "b": "finished"}
    assert "line 1, id 'a', turns[1].images[0]" in next(record.error for record in records if record.episode_id == "a")
    assert run.n_failed == 1


OVERFLOW = refusal(400, "This model's maximum context length is 9 tokens", code="context_length_exceeded")


def test_an_overflow_that_the_server_reports_is_its_own_end(tmp_path):
    with OpenAIServer(lambda request: OVERFLOW if len(request.messages) > 3 else "ok") as server:
        records, run = played(tmp_path, [row("a", 2, 2)], server_backend(server.url), **NO_JUDGE)
    (record,) = records
    assert [(end.branch, end.reason) for end in record.ends] == [
        ("none/q0", "context_overflow"),
        ("none/q1", "context_overflow"),
    ]
    assert (record.status, record.stop_reason) == ("failed", "context_overflow")
    assert "does not fit the model" in record.error
    table = ConversationMetrics(ConversationOptions()).table(list(run.summaries.values()))
    assert table["n_overflow.none"].value == 2


@pytest.mark.parametrize(
    "other",
    [refusal(400, "bad request"), refusal(429, "too many tokens per minute"), refusal(500, "context window crashed")],
    ids=["bad", "rate", "server"],
)
def test_other_failures_are_no_overflow(tmp_path, other):
    with OpenAIServer(lambda request: other if len(request.messages) > 3 else "ok") as server:
        records, _ = played(tmp_path, [row("a", 2, 1)], server_backend(server.url), **NO_JUDGE)
    assert [end.reason for end in records[0].ends] == ["reply_failed"]


def test_limits_keep_a_long_conversation_within_the_model(tmp_path):
    """Cut between turns, the newest kept, each cut recorded."""
    with OpenAIServer(lambda request: OVERFLOW if len(request.messages) > 5 else "ok") as server:
        records, _ = played(tmp_path, [row("a", 8, 8)], server_backend(server.url), max_history_tokens=16, **NO_JUDGE)
    (record,) = records
    assert (record.status, record.ends) == ("finished", ())
    seen = [turn.seen for turn in record.turns if turn.question]
    assert {one.cut_turns + 2 for one in seen} == {8}
    assert {one.first_turn for one in seen} == {6}


def test_a_reply_cut_at_the_limit_is_judged_as_an_answer(tmp_path):
    cut = PlantedReply(text="It is fact 0", finish_reason="length")
    with OpenAIServer(lambda request: cut) as server:
        records, _ = played(tmp_path, [row("a", 1, 1)], server_backend(server.url), roles={"judge": JUDGE})
    (answer,) = [turn for turn in records[0].turns if turn.question]
    assert (answer.reply.finish_reason, answer.verdict.score) == ("length", 5)


# --- judges -----------------------------------------------------------------------------------------------------------


def verdict(request, score: int = 4) -> str:
    nonce = re.search(r"nonce is the word (\w+)", request.messages[-1].text).group(1)
    return json.dumps({"nonce": nonce, "score": score, "reason": "as planted"})


def test_judges_are_asked_about_open_answers_only_and_their_words_are_kept(tmp_path):
    talk = row("a", 2, 1)
    talk["questions"].append(
        {"qid": "mc", "ability": "CR", "format": "mc", "question": "Which?", "options": ["x", "y"], "answer": "B"}
    )
    with OpenAIServer(listening) as server, OpenAIServer(verdict, models=("judge",)) as judge:
        records, _ = played(
            tmp_path, [talk], server_backend(server.url), roles={"judge": f"openai:gpt@{judge.url},max_retries=0"}
        )
        (prompt,) = [request.messages[-1].text for request in judge.log]
    found = {turn.question: turn for turn in records[0].turns if turn.question}
    assert (found["q0"].verdict.score, found["mc"].verdict) == (4, None)
    assert found["mc"].judgement is not None
    assert found["q0"].verdicts[0].prompt.text == prompt
    assert "heard" in prompt
    assert records[0].models["judge"] == "openai:gpt"
    assert records[0].usage()["judge"].calls == 1


def test_a_panel_of_several_judges_has_a_label_each_and_one_verdict(tmp_path):
    with OpenAIServer(listening) as server, OpenAIServer(lambda r: verdict(r, 5 if r.model == "x" else 2)) as judge:
        judges = [f"openai:{name}@{judge.url},max_retries=0" for name in ("x", "y")]
        records, _ = played(tmp_path, [row("a", 1, 1)], server_backend(server.url), judges=judges)
    (answer,) = [turn for turn in records[0].turns if turn.question]
    assert [(one.judge, one.score) for one in answer.verdicts] == [("x", 5), ("y", 2)]
    assert answer.verdict.score == 3.5
    assert set(records[0].models) == {"receiver", "judge@x", "judge@y"}


def test_a_judge_that_fails_leaves_the_answer_unscored_and_is_told(tmp_path):
    with OpenAIServer(listening) as server, OpenAIServer(lambda request: refusal(500, "down")) as judge:
        records, run = played(
            tmp_path,
            [row("a", 2, 2)],
            server_backend(server.url),
            roles={"judge": f"openai:gpt@{judge.url},max_retries=0"},
        )
    answers = [turn for turn in records[0].turns if turn.question]
    assert {turn.verdicts[0].status for turn in answers} == {"error"}
    assert {turn.verdict.score for turn in answers} == {None}
    assert records[0].status == "finished"
    assert any("judge" in text and "failed" in text for text in run.errors)
    table = ConversationMetrics(ConversationOptions()).table(list(run.summaries.values()))
    assert table["n_judge_failed.none"].value == 2
    assert "score.MR.none" not in table  # nothing is scored: undefined, and no zero


def test_the_environment_names_judges_and_notetaker(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_JUDGES", "simulated:one,simulated:two")
    monkeypatch.setenv("INTERBENCH_NOTETAKER", "simulated:taker")
    with OpenAIServer(listening) as server:
        records, _ = played(tmp_path, [row("a", 1, 1)], server_backend(server.url), memories=["note_taking"])
    assert records[0].models == {
        "receiver": "openai:planted",
        "judge@one": "simulated:one",
        "judge@two": "simulated:two",
        "notetaker": "simulated:taker",
    }


# --- the ledger, and speed --------------------------------------------------------------------------------------------


def test_the_same_command_again_pays_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    with OpenAIServer(listening) as server, OpenAIServer(lambda request: '{"facts": ["a"]}') as notes:
        block = {
            **NO_JUDGE,
            "memories": ["none", "note_taking"],
            "roles": {"notetaker": f"openai:n@{notes.url}"},
        }
        first, _ = played(tmp_path / "one", [row("a", 3, 2)], server_backend(server.url), **block)
        paid = (server.requests, notes.requests)
        again, run = played(tmp_path / "two", [row("a", 3, 2)], server_backend(server.url), **block)
        assert (server.requests, notes.requests) == paid == (3 + 4, 3)
    assert run.report.calls == 0
    assert [turn.reply.text for turn in first[0].turns] == [turn.reply.text for turn in again[0].turns]


@contextlib.contextmanager
def server_process(latency_s: float):
    """A server in a process of its own, which takes no processor time from the run."""
    command = [sys.executable, "-m", "tests.servers.openai_server", "--latency", str(latency_s)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate(timeout=10)


@pytest.mark.slow
def test_60_conversations_take_little_longer_than_their_calls(tmp_path):
    """At most 1.2 x max(calls x latency / 32, longest chain x latency); the SDK's import is paid before."""
    latency_s = 0.2
    with server_process(latency_s) as url, server_process(latency_s) as judge:
        made = functools.partial(server_backend, max_concurrency=32)
        roles = {"judge": f"openai:gpt@{judge},max_concurrency=32"}
        played(tmp_path / "first", [row("warm", 1, 1)], made(url), roles=roles)
        rows = [row(f"talk{number}", 10, 6) for number in range(60)]
        began = time.monotonic()
        _, run = played(tmp_path / "second", rows, made(url), roles=roles)
        wall_s = time.monotonic() - began
    assert run.report.calls == 60 * (10 + 6 + 6)
    assert wall_s <= 1.2 * max(run.report.calls * latency_s / 32, 12 * latency_s)


def test_a_question_on_pictures_is_told_how_many_are_not_shown_any_more(tmp_path):
    """Pictures are numbered over the whole conversation, and a model that sees the last one alone would call it 1."""
    turns = [{"user_text": f"a: picture {n}.", "images": [f"{n}.png"]} for n in range(3)]
    asked = {"ability": "IM", "question": "What is fact 1?", "answer": "picture 3", "image_ids": [3]}
    questions = [{"qid": "q1", **asked}, {"qid": "q2", **asked, "ability": "MR", "question": "What is fact 2?"}]
    for number in range(3):
        Image.new("RGB", (9, 9), (number, 0, 0)).save(tmp_path / f"{number}.png")
    with OpenAIServer(listening) as server:
        talk = row("a", turns=turns, questions=questions)
        (record,), _ = played(tmp_path, [talk], server_backend(server.url), **NO_JUDGE, max_images=1)
        last = {request.messages[-1].text for request in server.log if "What is fact" in request.messages[-1].text}
    told = "The first 2 of the pictures are not shown any more; the numbers count them all the same."
    assert [told in text for text in sorted(last)] == [True, False]
    assert [turn.user.text.endswith(told) for turn in record.turns if turn.question] == [True, False]
