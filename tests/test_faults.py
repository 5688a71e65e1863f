"""Servers on a bad day: what is asked again and what is not, and that a run ends with the numbers of a clean one."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from interbench_tasks.backends.anthropic import AnthropicBackend
from interbench_tasks.backends.openai import OpenAIBackend
from interbench_tasks.backends.waits import LONGEST_S, asked_wait_s, look_through_waits
from interbench_tasks.config import task_options_from
from interbench_tasks.hookspecs import Call
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.records import Episode, EpisodeRecord, GenerationSettings, Message, Reply
from interbench_tasks.rows import load_rows
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import PlayedRun, play_run
from interbench_tasks.runs.score import score_folder
from tests.cli import lmms_eval, metrics
from tests.harness_fakes import question_rows, write_task
from tests.planted import assert_metrics, expected_of
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.fault_plan import RATES, FaultPlan, http_fault
from tests.servers.openai_server import DROPPED, EMPTY_BODY, MALFORMED, NULL_CONTENT, Fault, OpenAIServer
from tests.servers.planted_brain import PlantedBrain, PlantedItem, PlantedRates

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)
SHAPES: Mapping[str, tuple[Any, Any]] = {
    "openai": (OpenAIServer, OpenAIBackend),
    "anthropic": (AnthropicServer, AnthropicBackend),
}
AT_ONCE = {"Retry-After": "0.001"}


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
    return str(request.param)


def call_of(text: str = "Which one?") -> Call:
    question = Message(role="user", content=(text,))
    episode = Episode(id="e", doc_id=0, question=question, target="B")
    settings = GenerationSettings(max_new_tokens=64, temperature=0.0)
    return Call(messages=(question,), settings=settings, role="receiver", purpose="answer", episode=episode)


def asked(shape: str, *answers: str | Fault, **options: Any) -> tuple[Reply, int]:
    """The reply to one call where the server answers so in turn (the last one for ever), and how often it was asked."""
    make_server, make_backend = SHAPES[shape]
    with make_server(lambda r: answers[min(r.number, len(answers) - 1)], check_replies=False) as server:
        backend = make_backend("m", base_url=server.url, **{"max_retries": 2, **options})

        async def run() -> Reply:
            async with asyncio.timeout(30):
                reply: Reply = await backend.reply(call_of())
                await backend.close()
                return reply

        return asyncio.run(run()), server.requests


# --- what is asked again --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_these_are_asked_again(shape, status):
    reply, n_requests = asked(shape, http_fault(status, AT_ONCE), "Answer: B")
    assert (reply.text, reply.run.retries, n_requests) == ("Answer: B", 1, 2)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 415, 422])
def test_these_are_not_asked_again(shape, status):
    reply, n_requests = asked(shape, http_fault(status, AT_ONCE), "Answer: B")
    assert (reply.status, reply.run.retries, n_requests) == ("error", 0, 1)
    assert f"HTTP {status}" in (reply.error or "")


@pytest.mark.parametrize(
    "words", ["This model's maximum context length is 8192 tokens", "prompt is too long: 9 tokens > 8 maximum"]
)
def test_a_conversation_that_does_not_fit_is_not_asked_again(shape, words):
    reply, n_requests = asked(shape, http_fault(400, AT_ONCE, words), "Answer: B")
    assert n_requests == 1
    assert "does not fit the model" in (reply.error or "")


def test_every_kind_in_one_call_is_counted(shape):
    faults = [http_fault(429, AT_ONCE), DROPPED, MALFORMED, http_fault(500, AT_ONCE), DROPPED]
    reply, n_requests = asked(shape, *faults, "Answer: B", max_retries=8)
    assert (reply.text, reply.run.retries, n_requests) == ("Answer: B", 5, 6)
    assert reply.usage.input_tokens is None  # what the malformed one cost is unknown


@pytest.mark.parametrize("unusable", [MALFORMED, EMPTY_BODY])
def test_an_unusable_200_is_asked_again_once_only(shape, unusable):
    reply, n_requests = asked(shape, unusable, unusable, "Answer: B")
    assert (reply.status, reply.run.retries, n_requests) == ("error", 1, 2)


# --- how long a server asks to wait ---------------------------------------------------------------------------------


def in_seconds(seconds: float) -> str:
    """A date as servers write it, without fractions."""
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "at_least_s"),
    [({"Retry-After": "1"}, 1.0), ({"Retry-After": "0.3"}, 0.3), ({"Retry-After-Ms": "250"}, 0.25), ("date", 1.0)],
    ids=lambda value: str(value),
)
def test_the_wait_that_a_server_asks_for_is_kept(shape, status, headers, at_least_s):
    if headers == "date":
        headers = {"Retry-After": in_seconds(2)}
    reply, n_requests = asked(shape, http_fault(status, headers), "Answer: B")
    assert (reply.text, n_requests) == ("Answer: B", 2)
    assert at_least_s <= reply.run.latency_s < at_least_s + 1.5


@pytest.mark.parametrize(
    "value", ["soon", "", "nan", "-5", "Mon, 32 Jan 2026 10:00:00 GMT", "Fri, 31 Dec 99999 23:59:59 GMT", "past"]
)
def test_a_wait_that_nobody_can_read_is_none_and_the_call_is_made_again(shape, value):
    headers = {"Retry-After": in_seconds(-60) if value == "past" else value}
    reply, n_requests = asked(shape, http_fault(429, headers), "Answer: B")
    assert (reply.text, reply.run.retries, n_requests) == ("Answer: B", 1, 2)
    assert reply.run.latency_s < 2


@pytest.mark.parametrize("headers", [{"Retry-After": "3600"}, {"Retry-After-Ms": "3600000"}, "date"], ids=str)
def test_a_wait_of_an_hour_is_an_error_that_tells_it(shape, headers):
    if headers == "date":
        headers = {"Retry-After": in_seconds(3601)}
    reply, n_requests = asked(shape, http_fault(429, headers), "Answer: B")
    assert n_requests == 1
    assert "the server asks to wait 3600 s" in (reply.error or "") or "wait 3601 s" in (reply.error or "")


@pytest.mark.parametrize("off_s", [-7200, -300, 300, 7200])
def test_a_date_is_held_against_the_servers_own_clock(shape, off_s):
    headers = {"Retry-After": in_seconds(off_s + 1), "Date": in_seconds(off_s)}
    reply, n_requests = asked(shape, http_fault(429, headers), "Answer: B")
    assert (reply.text, n_requests) == ("Answer: B", 2)
    assert 0.9 <= reply.run.latency_s < 3


def test_only_answers_that_failed_are_looked_through():
    def headers_after(status: int, **headers: str) -> dict[str, str]:
        response = SimpleNamespace(status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()})
        asyncio.run(look_through_waits(response))
        return response.headers

    assert headers_after(200, retry_after="soon") == {"retry-after": "soon"}
    assert headers_after(429, retry_after="soon") == {}
    assert headers_after(429, retry_after=f"{LONGEST_S:g}") == {"retry-after": "120"}
    assert headers_after(429, retry_after="121") == {"retry-after": "121", "x-should-retry": "false"}
    assert headers_after(429) == {}
    date = email.utils.formatdate(1_800_000_000, usegmt=True)
    later = email.utils.formatdate(1_800_000_090, usegmt=True)
    assert headers_after(503, retry_after=later, date=date) == {"retry-after": "90", "date": date}
    assert headers_after(503, retry_after=date, date=later)["retry-after"] == "0"


def test_milliseconds_come_before_seconds_and_seconds_before_a_date():
    assert asked_wait_s({"retry-after-ms": "500", "retry-after": "3"}) == 0.5
    assert asked_wait_s({"retry-after-ms": "x", "retry-after": "3"}) == 3.0
    assert asked_wait_s({"retry-after": in_seconds(100)}) == pytest.approx(100, abs=1.5)
    assert asked_wait_s({"retry-after": in_seconds(100), "date": in_seconds(95)}) == pytest.approx(5, abs=1.1)
    assert asked_wait_s({"retry-after": in_seconds(100), "date": "no date"}) == pytest.approx(100, abs=1.5)
    assert asked_wait_s({}) is None


# --- whole runs -----------------------------------------------------------------------------------------------------


def planted(n: int) -> tuple[PlantedBrain, list[PlantedItem]]:
    options = {"A": "w", "B": "x", "C": "y", "D": "z"}
    items = [PlantedItem(id=f"q{i}", question=f"Question number {i}?", target="B", options=options) for i in range(n)]
    return PlantedBrain(items, models={"teacher": PlantedRates(accuracy=0.9)}, accuracy=0.4, correction=0.5), items


@dataclass
class Run:
    """What came of a run against a server."""

    played: PlayedRun
    records: list[EpisodeRecord]
    table: dict[str, Any]


def replies_in(records: Iterable[EpisodeRecord]) -> Iterator[Reply]:
    """Every reply of every role."""
    for record in records:
        for turn in record.turns:
            yield turn.reply
            yield from turn.feedback.paid_for() if turn.feedback is not None else ()


def run_against(server: OpenAIServer, shape: str, folder: Path, n: int, **options: Any) -> Run:
    """A feedback loop, both roles at one server, through `play_run`."""
    folder.mkdir()
    write_task(folder, question_rows(n))
    role = {"backend": shape, "model": "teacher", "base_url": server.url, "max_concurrency": 64}
    block = {
        "protocol": "feedback_loop",
        "verifier": "choice",
        "arms": ["detail", "simple"],
        "roles": {"provider": role},
    }
    config = {
        "task": "faulty",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 64, "temperature": 0},
        "metadata": {"interbench": block},
    }
    plan = RunPlan(
        task="faulty",
        options=task_options_from(config, where="faulty.yaml", offers=OFFERS),
        data=load_rows("json", name=None, split="test", options={"data_files": str(folder / "bridge_task.jsonl")}),
        wanted=[(doc, 0) for doc in range(n)],
        n_total=n,
        run_id="r",
        folder=folder / "run",
    )
    _, make_backend = SHAPES[shape]
    receiver = make_backend("student", base_url=server.url, max_concurrency=64, **options)
    played = play_run(plan, receiver=receiver, manager=MANAGER, offers=OFFERS, harness_model=lambda role: None)
    scored = score_folder(plan.folder, OFFERS)
    return Run(played=played, records=list(read_records(plan.folder)), table=scored["metrics"])


N_RUN = {"openai": 300, "anthropic": 120}


def test_a_run_on_a_bad_day_ends_with_exactly_the_numbers_of_a_clean_one(shape, tmp_path, monkeypatch):
    n, (make_server, _) = N_RUN[shape], SHAPES[shape]
    brain, items = planted(n)
    expected = expected_of(brain, items, receiver="student", provider="teacher")
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")
    with make_server(brain, keep_requests=False) as server:
        clean = run_against(server, shape, tmp_path / "clean", n)
    assert server.requests == expected.requests
    plan = FaultPlan(brain, seed=1)
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    with make_server(plan, keep_requests=False) as server:
        bad = run_against(server, shape, tmp_path / "bad", n)
        assert set(plan.injected) == set(RATES)  # every kind came up
        assert plan.n_injected > 0.12 * expected.requests
        assert server.violations == []
        assert server.requests == expected.requests + plan.n_injected
        again = run_against(server, shape, tmp_path / "again", n)
        assert server.requests == expected.requests + plan.n_injected  # all out of the ledger
    assert bad.table == clean.table == again.table
    assert_metrics(bad.table, expected)
    assert bad.played.errors == {}
    assert [[(turn.branch, turn.user.text, turn.reply.text) for turn in record.turns] for record in bad.records] == [
        [(turn.branch, turn.user.text, turn.reply.text) for turn in record.turns] for record in clean.records
    ]
    assert sum(reply.run.retries for reply in replies_in(bad.records)) == plan.n_injected
    assert sum(reply.run.retries for reply in replies_in(clean.records)) == 0
    n_malformed = plan.injected["malformed"]
    assert sum(reply.usage.calls for reply in replies_in(bad.records)) == expected.requests + n_malformed
    assert sum(reply.usage.input_tokens is None for reply in replies_in(bad.records)) == n_malformed


def test_calls_that_stay_lost_are_unscored_and_made_again_by_the_same_command(shape, tmp_path, monkeypatch):
    """With no retries at all many calls are lost; nothing of that may be kept, and nothing that came is paid again."""
    n, (make_server, _) = 40, SHAPES[shape]
    brain, items = planted(n)
    expected = expected_of(brain, items, receiver="student", provider="teacher")
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    plan = FaultPlan(brain, seed=2, rates={"429": 0.3, "500": 0.1, "malformed": 0.1})
    with make_server(plan, keep_requests=False) as server:
        first = run_against(server, shape, tmp_path / "first", n, max_retries=0)
        assert first.played.n_failed > 5
        assert first.table["accuracy"]["unscored"] > 0
        plan.rates = {}
        second = run_against(server, shape, tmp_path / "second", n)
        n_usable = server.requests - plan.n_injected
    assert_metrics(second.table, expected)
    assert n_usable == expected.requests


@pytest.mark.integration
def test_a_bad_day_through_the_harness_s_own_command(tmp_path):
    n = 60
    write_task(tmp_path, question_rows(n), name="faulty_task")
    brain, items = planted(n)
    expected = expected_of(brain, items, receiver="student", provider="teacher")
    plan = FaultPlan(brain, seed=3)
    with OpenAIServer(plan) as server:
        done = lmms_eval(
            *("--model", "interbench_api", "--model_args", f"model=openai:student@{server.url},max_concurrency=32"),
            *("--tasks", "faulty_task", "--include_path", tmp_path, "--output_path", tmp_path / "out"),
            INTERBENCH_PROVIDER=f"openai:teacher@{server.url}",
        ).check()
    assert plan.n_injected > 10
    assert server.requests == expected.requests + plan.n_injected
    assert_metrics(metrics(tmp_path / "out"), expected)
    assert "have no score" not in done.output
    (path,) = (tmp_path / "out").rglob("episodes.jsonl")
    assert sum(reply.run.retries for reply in replies_in(read_records(path.parent))) == plan.n_injected
    assert server.violations == []


# --- the harness's own API backend ----------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize(
    ("answers", "status", "n_requests"),
    [
        ([http_fault(429, AT_ONCE), "Answer: B"], "ok", 2),
        ([http_fault(500, AT_ONCE), http_fault(500, AT_ONCE), http_fault(500, AT_ONCE), "Answer: B"], "ok", 4),
        ([DROPPED, "Answer: B"], "ok", 2),
        ([MALFORMED, "Answer: B"], "ok", 2),
        ([MALFORMED], "error", 3),
        ([http_fault(401, AT_ONCE)], "error", 3),  # it asks again whatever came, as often as max_retries says
        ([NULL_CONTENT], "empty", 1),
    ],
    ids=["429", "500", "dropped", "malformed", "malformed for ever", "401", "null"],
)
def test_what_the_harness_s_async_openai_makes_of_faults_is_never_taken_for_an_answer(answers, status, n_requests):
    from lmms_eval.models import get_model

    from interbench_tasks.harness.playing import receiver_from

    with OpenAIServer(lambda r: answers[min(r.number, len(answers) - 1)], check_replies=False) as server:
        lm = get_model("async_openai")(
            model_version="m", base_url=server.url, api_key="none", num_cpus=2, max_retries=3, retry_backoff_s=0.01
        )
        receiver: Any = receiver_from(lm, SimpleNamespace(model="async_openai", model_args="model_version=m"))
        [reply] = receiver.generate([call_of()])
    assert (reply.status, server.requests) == (status, n_requests)
    assert reply.text == ("Answer: B" if status == "ok" else "")
    assert (reply.error is None) == (status == "ok")
