"""The Anthropic backend against a real server on 127.0.0.1: what is sent, what comes back, and every way to fail."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import io
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from interbench_tasks.backends import anthropic_bodies
from interbench_tasks.backends.anthropic import API_VERSION, AnthropicBackend
from interbench_tasks.errors import BackendError, MissingKeyError
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.images import picture_from
from interbench_tasks.offers import interbench_backends
from interbench_tasks.records import Episode, GenerationSettings, Message, PictureRef, Reply, Usage
from interbench_tasks.role_words import role_words_from, several_role_words
from tests.cli import lmms_eval, metrics, records
from tests.planted import assert_metrics, expected_of
from tests.servers.anthropic_server import (
    AnthropicServer,
    api_refusal,
    kinds_of,
    planted_message,
    thinking,
)
from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import DROPPED, EMPTY_BODY, HTML, MALFORMED, Fault, PlantedReply
from tests.servers.planted_brain import PlantedBrain, PlantedItem, PlantedRates

KEY = "sk-ant-test-1234567890abcdef"
NOWHERE = "http://127.0.0.1:1"
SETTINGS = GenerationSettings(max_new_tokens=64, temperature=0.0)
ENABLED = {"type": "enabled", "budget_tokens": 2048}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoded(PictureRef):
    """Stands for `images.Picture` where a test needs bytes that it would never make."""

    base64: str


def encoded(kind: str, mime: str) -> Encoded:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(buffer, kind)
    data = base64.b64encode(buffer.getvalue()).decode()
    return Encoded(digest=f"red-{kind}", width=8, height=8, mime=mime, base64=data)


def picture(colour: str, kind: str = "PNG") -> PictureRef:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, kind)
    return picture_from(buffer.getvalue())


def user(*content: str | PictureRef) -> Message:
    return Message(role="user", content=content)


def assistant(text: str) -> Message:
    return Message(role="assistant", content=(text,))


def call_of(*messages: Message, settings: GenerationSettings = SETTINGS) -> Call:
    messages = messages or (user("Which one?"),)
    episode = Episode(id="e", doc_id=0, question=messages[0], target="B", options={"A": "x", "B": "y"})
    return Call(messages=messages, settings=settings, role="receiver", purpose="answer", episode=episode)


def asked_with(**settings: Any) -> Call:
    return call_of(settings=dataclasses.replace(SETTINGS, **settings))


def ask(backend: AnthropicBackend, *calls: Call) -> list[Reply]:
    """All calls at once, in one loop."""

    async def run() -> list[Reply]:
        try:
            return await asyncio.gather(*(backend.reply(call) for call in calls or (call_of(),)))
        finally:
            await backend.close()

    return asyncio.run(run())


def one_by_one(backend: AnthropicBackend, *calls: Call) -> list[Reply]:
    async def run() -> list[Reply]:
        replies = [await backend.reply(call) for call in calls]
        await backend.close()
        return replies

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


def served(answer: Any, *calls: Call, **options: Any) -> tuple[list[Reply], AnthropicServer]:
    """What a backend makes of a server that answers so: a fixed answer, several in turn, or a function."""
    with AnthropicServer(in_turn(answer), check_replies=False) as server:
        backend = AnthropicBackend("claude-test", base_url=server.url, **{"max_retries": 2, **options})
        return ask(backend, *calls), server


def in_turn(answer: Any) -> Callable[[ParsedRequest], Any]:
    if callable(answer):
        return answer
    answers: Sequence[Any] = answer if isinstance(answer, list) else [answer]
    return lambda request: answers[min(request.number, len(answers) - 1)]


def sent_body(role: dict[str, Any] | None = None, /, **settings: Any) -> dict[str, Any]:
    """The parameters that a server gets, which finds nothing wrong in them."""
    _, server = served("Answer: A", asked_with(**settings), **(role or {}))
    assert server.violations == []
    return dict(server.log[0].parameters)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.startswith("interbench")]


# --- construction ---------------------------------------------------------------------------------------------------


def test_it_is_offered_as_a_backend_and_no_simulation() -> None:
    backend = interbench_backends()["anthropic"]("claude-test", max_concurrency=32)
    assert isinstance(backend, AnthropicBackend)
    assert isinstance(backend, Backend)
    assert (backend.name, backend.max_concurrency, backend.simulated) == ("anthropic:claude-test", 32, False)
    assert backend.left_out == ()


def test_importing_and_constructing_it_does_not_load_the_sdk() -> None:
    code = (
        "import sys; from interbench_tasks.backends.anthropic import AnthropicBackend; AnthropicBackend('m'); "
        "sys.exit('anthropic' in sys.modules or 'httpx' in sys.modules or 'httpx2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("value", [None, "", "   "])
def test_a_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
    else:
        monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    with pytest.raises(MissingKeyError, match="ANTHROPIC_API_KEY is not set; the anthropic backend needs it"):
        AnthropicBackend("m")
    AnthropicBackend("m", base_url=NOWHERE)


def test_a_variable_that_was_named_must_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_PROXY_KEY", raising=False)
    with pytest.raises(MissingKeyError, match="MY_PROXY_KEY is not set"):
        AnthropicBackend("m", base_url=NOWHERE, api_key_env="MY_PROXY_KEY")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temprature": 0}, "no option 'temprature' (did you mean 'temperature'?)"),
        ({"thinking_budgt": 2048}, "did you mean 'thinking_budget'"),
        ({"seed": 1}, "the anthropic backend has no option 'seed'"),
        ({"base_url": "localhost:8000"}, "base_url = 'localhost:8000' is not the address"),
        ({"base_url": "http://me:secret@host"}, "no user and password"),
        ({"base_url": "http://localhost:1/v1/messages"}, "leave /messages out, e.g. https://api.anthropic.com"),
        ({"max_concurrency": 0}, "max_concurrency = 0 must be a whole number of at least 1"),
        ({"max_retries": -1}, "max_retries = -1"),
        ({"timeout_s": 0}, "timeout_s = 0"),
        ({"temperature": "warm"}, "temperature = 'warm'"),
        ({"top_p": 1.5}, "top_p = 1.5 must be a finite number of at least 0 and at most 1"),
        ({"max_new_tokens": None}, "the API always needs a limit"),
        ({"extra_body": [1]}, "extra_body must be a mapping"),
        ({"extra_body": {"system": "x"}}, "'system' is made from the call"),
        ({"extra_headers": {"X-Api-Key": "abc"}}, "keys come from the environment only"),
        ({"thinking_budget": 100}, "thinking_budget = 100 must be a whole number of at least 1024"),
        ({"thinking_budget": "much"}, "thinking_budget = 'much'"),
        ({"thinking_budget": 2048, "thinking": "adaptive"}, "leave one out"),
        ({"thinking": "adaptiv"}, "thinking = 'adaptiv' (did you mean 'adaptive'?)"),
        ({"thinking": 3}, "thinking = 3 must be adaptive, disabled, or the API's mapping"),
        ({"effort": 3}, "effort = 3 must be a word"),
        ({"effort": "high", "output_config": {"effort": "low"}}, "be given once"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BackendError) as error:
        AnthropicBackend("m", **options)
    assert message in str(error.value)


def test_a_model_must_be_named() -> None:
    with pytest.raises(BackendError, match="needs a model, e.g. anthropic:claude-"):
        AnthropicBackend("")


def test_the_fingerprint_changes_with_all_that_can_change_a_reply_and_with_nothing_else() -> None:
    def fingerprint(model: str = "m", **options: Any) -> str:
        return AnthropicBackend(model, **{"base_url": NOWHERE, **options}).fingerprint

    base = fingerprint()
    same = [
        fingerprint(base_url=f"{NOWHERE}/"),
        fingerprint(base_url=f"{NOWHERE}/v1"),
        fingerprint(max_concurrency=2, max_retries=0, timeout_s=3),
    ]
    other = [
        fingerprint("n"),
        fingerprint(base_url="http://127.0.0.1:2"),
        fingerprint(temperature=0),
        fingerprint(thinking_budget=2048),
        fingerprint(effort="high"),
        fingerprint(extra_body={"top_k": 1}),
        fingerprint(extra_headers={"anthropic-version": "2026-10-21"}),
    ]
    assert same == [base] * 3
    assert len({base, *other}) == 1 + len(other)


def test_the_key_is_in_no_text_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_PASS", "hush-hush-123")
    backend = AnthropicBackend("m", extra_headers={"X-Pass": "$ROUTER_PASS"})
    shown = f"{backend.name} {backend.fingerprint} {backend!r} {backend._endpoint!r} {backend._access!r}"
    assert KEY not in shown
    assert "hush" not in shown


# --- what is sent ---------------------------------------------------------------------------------------------------


def test_texts_and_pictures_keep_their_order_and_their_message() -> None:
    messages = (
        Message(role="system", content=("Be brief.",)),
        user("First ", picture("red"), " then ", picture("blue", "JPEG"), picture("green", "WEBP"), "which?"),
        assistant("Answer: A"),
        user("Wrong. ", "Like this one? ", picture("red")),
    )
    _, server = served("Answer: B", call_of(*messages))
    sent = server.log[0].messages
    assert [message.role for message in sent] == ["system", "user", "assistant", "user"]
    assert kinds_of(sent[1].content) == ["First ", "image/png", " then ", "image/jpeg", "image/webp", "which?"]
    assert kinds_of(sent[3].content) == ["Wrong. Like this one? ", "image/png"]
    assert (server.log[0].system, sent[2].content) == ("Be brief.", ("Answer: A",))
    assert sent[1].pictures[0].pixels == sent[3].pictures[0].pixels
    assert server.violations == []


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_every_type_that_the_api_takes_is_sent_with_its_own_name(kind: str) -> None:
    _, server = served("Answer: B", call_of(user("look", encoded(kind, f"image/{kind.lower()}"))))
    assert server.log[0].messages[0].pictures[0].mime == f"image/{kind.lower()}"
    assert server.violations == []


def test_another_type_of_picture_is_an_error_that_names_those_allowed() -> None:
    with pytest.raises(BackendError, match="is image/bmp; the API takes image/gif, image/jpeg, image/png, image/webp"):
        served("A", call_of(user(encoded("BMP", "image/bmp"))))


def test_a_message_without_pictures_is_plain_text_and_blocks_of_white_space_are_left_out() -> None:
    sent = anthropic_bodies.api_messages([user("a", " ", "b"), assistant("c"), user("\n", picture("red"), " ")])
    assert [message["content"] for message in sent[:2]] == ["a b", "c"]
    assert [block["type"] for block in sent[2]["content"]] == ["image"]  # type: ignore[index,attr-defined]


def test_an_empty_reply_in_a_history_gets_words_because_the_api_refuses_none() -> None:
    _, server = served("B", call_of(user("q"), assistant(" \n"), user("again")))
    assert server.log[0].assistant_texts == ("(empty reply)",)
    assert server.violations == []


def test_neighbours_of_one_role_are_joined_as_the_api_would() -> None:
    sent = anthropic_bodies.api_messages([user("a"), user("b"), assistant("c"), user("d")])
    assert [(message["role"], message["content"]) for message in sent] == [
        ("user", "ab"), ("assistant", "c"), ("user", "d"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([assistant("a"), user("b")], "first and last; the roles are: assistant, user"),
        ([user("a"), assistant("b")], "first and last; the roles are: user, assistant"),
        ([Message(role="system", content=("s",))], "the roles are: none"),
        ([user("  ")], "a user message is empty"),
        ([user("a"), Message(role="assistant", content=("b", picture("red"))), user("c")], "assistant message holds"),
        ([user(PictureRef(digest="abc", width=1, height=1, mime="image/png"))], "picture abc came without its bytes"),
    ],
)  # fmt: skip
def test_a_conversation_that_the_api_cannot_take_is_an_error(messages: list[Message], words: str) -> None:
    with pytest.raises(BackendError, match=words):
        anthropic_bodies.api_messages(messages)


def test_a_picture_in_the_system_prompt_is_an_error() -> None:
    with pytest.raises(BackendError, match="a system message holds a picture"):
        anthropic_bodies.system_of([Message(role="system", content=("see", picture("red"))), user("q")])


def test_half_a_surrogate_pair_can_be_sent_and_received() -> None:
    body = b'{"content": [{"type": "text", "text": "cut \\ud83d"}], "stop_reason": "max_tokens"}'
    [reply], server = served(Fault(body=body), call_of(user("half \ud83d of \U0001f600")))
    assert server.log[0].messages[0].text == "half \ufffd of \U0001f600"
    assert (reply.text, reply.finish_reason) == ("cut \ufffd", "length")


def test_generation_settings_become_the_api_s_parameters() -> None:
    assert sent_body(max_new_tokens=77, temperature=0.5, top_p=0.9, until=("STOP", "END")) == {
        "max_tokens": 77,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["STOP", "END"],
    }
    assert sent_body() == {"max_tokens": 64, "temperature": 0.0}


def test_the_backend_s_own_generation_settings_overrule_the_task_s() -> None:
    options = {"temperature": 0.7, "max_new_tokens": 9, "top_p": None}
    assert sent_body(options, top_p=0.5) == {"max_tokens": 9, "temperature": 0.7}
    assert sent_body({"temperature": None}) == {"max_tokens": 64}


def test_further_parameters_come_from_the_role_or_the_task_and_the_role_s_win() -> None:
    role = {"effort": "high", "service_tier": "auto", "extra_body": {"metadata": {"user_id": "x"}}}
    sent = sent_body(role, options={"top_k": 5, "effort": "low", "output_config": {"format": {"type": "x"}}})
    assert sent == {
        "max_tokens": 64,
        "temperature": 0.0,
        "top_k": 5,
        "output_config": {"format": {"type": "x"}, "effort": "high"},
        "service_tier": "auto",
        "metadata": {"user_id": "x"},
    }


@pytest.mark.parametrize("name", ["messages", "system", "stream", "max_tokens", "temperature"])
def test_a_parameter_that_is_made_from_the_call_cannot_be_an_option_of_the_task(name: str) -> None:
    with pytest.raises(BackendError, match=f"'{name}' is made from the call"):
        ask(AnthropicBackend("m", base_url=NOWHERE), asked_with(options={name: 2}))


def test_every_call_carries_the_key_and_one_version_of_the_api() -> None:
    _, server = served("A")
    got = server.log[0].headers
    assert (got["x-api-key"], got["anthropic-version"]) == (KEY, API_VERSION)
    assert server.violations == []


def test_key_and_headers_come_from_named_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PROXY_KEY", "proxy-key-123456")
    monkeypatch.setenv("ROUTER_PASS", "hush-hush-123")
    headers = {"X-Pass": "$ROUTER_PASS", "Anthropic-Version": "2026-10-21"}
    _, server = served("A", api_key_env="MY_PROXY_KEY", extra_headers=headers)
    got = server.log[0].headers
    assert (got["x-api-key"], got["x-pass"]) == ("proxy-key-123456", "hush-hush-123")
    assert got["anthropic-version"] == "2026-10-21"


def test_an_authorization_of_one_s_own_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY", "Bearer gateway-token-1")
    _, server = served("A", extra_headers={"Authorization": "$GATEWAY"})
    assert server.log[0].headers["authorization"] == "Bearer gateway-token-1"
    assert "x-api-key" not in server.log[0].headers


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_the_address_can_come_from_the_sdk_s_own_variable_and_end_in_v1(
    monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    with AnthropicServer(lambda request: "Answer: A") as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.url}{ending}")
        backend = AnthropicBackend("m")
        [reply] = ask(backend)
    assert reply.usable
    assert f"@{server.url} " in backend.fingerprint


# --- thinking, and settings that the API refuses --------------------------------------------------------------------


def test_a_thinking_budget_comes_on_top_of_the_reply_s_limit(caplog: pytest.LogCaptureFixture) -> None:
    assert sent_body({"thinking_budget": 2048}) == {"max_tokens": 64 + 2048, "thinking": ENABLED}
    assert sent_body(options={"thinking_budget": 2048}, temperature=1.0) == {
        "max_tokens": 64 + 2048,
        "temperature": 1.0,
        "thinking": ENABLED,
    }
    assert sent_body({"thinking": "adaptive"}, temperature=1.0, top_p=0.97) == {
        "max_tokens": 64,
        "temperature": 1.0,
        "top_p": 0.97,
        "thinking": {"type": "adaptive"},
    }
    assert sent_body({"thinking": "disabled"})["temperature"] == 0.0
    assert warnings_in(caplog) == ["anthropic:claude-test takes no temperature (0.0) with thinking; it is 1"]


def test_what_thinking_does_not_go_with_is_left_out_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    calls = [asked_with(top_p=0.5, options={"thinking": ENABLED}), asked_with(top_p=0.5)]
    with AnthropicServer(lambda request: "A") as server:
        backend = AnthropicBackend("m", base_url=server.url)
        one_by_one(backend, calls[0], *calls)
    assert [sorted(request.parameters) for request in server.log] == [
        ["max_tokens", "thinking"], ["max_tokens", "thinking"], ["max_tokens", "temperature", "top_p"],
    ]  # fmt: skip
    assert backend.left_out == ("temperature", "top_p")
    assert warnings_in(caplog) == [
        "anthropic:m takes no temperature (0.0) with thinking; it is 1",
        "anthropic:m takes no top_p below 0.95 (0.5) with thinking; none is sent",
    ]


def not_both(request: ParsedRequest) -> str | Fault:
    if {"temperature", "top_p"} <= request.parameters.keys():
        return api_refusal(
            400, "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        )
    return "Answer: B"


def neither(request: ParsedRequest) -> str | Fault:
    for name in ("top_p", "temperature"):
        if name in request.parameters:
            return api_refusal(400, f"`{name}` is deprecated for this model.")
    return "Answer: B"


def new_version(request: ParsedRequest) -> str | Fault:
    if "temperature" in request.parameters:
        return api_refusal(400, "temperature: Extra inputs are not permitted")
    return "Answer: B"


@pytest.mark.parametrize(
    ("server_of", "left_out", "warnings"),
    [
        (not_both, ("top_p",), ["takes no top_p beside temperature; its own default is used instead"]),
        (
            neither,
            ("temperature", "top_p"),
            [
                "takes no top_p beside temperature; its own default is used instead",
                "takes no temperature; its own default is used instead",
            ],
        ),
        (new_version, ("temperature",), ["takes no temperature; its own default is used instead"]),
    ],
)
def test_refused_settings_are_learned_once_and_said(
    caplog: pytest.LogCaptureFixture, server_of: Any, left_out: tuple[str, ...], warnings: list[str]
) -> None:
    with AnthropicServer(server_of) as server:
        backend = AnthropicBackend("m", base_url=server.url)
        replies = one_by_one(backend, *[asked_with(top_p=0.9)] * 3)
    assert [reply.text for reply in replies] == ["Answer: B"] * 3
    assert [reply.run.retries for reply in replies] == [len(left_out), 0, 0]
    assert server.requests == 3 + len(left_out)
    assert backend.left_out == left_out
    assert warnings_in(caplog) == [f"anthropic:m {warning}" for warning in warnings]


def test_calls_in_flight_while_it_is_learned_all_get_their_answer() -> None:
    replies, server = served(neither, *[call_of(user(f"q{i}")) for i in range(12)])
    assert all(reply.text == "Answer: B" for reply in replies)
    assert server.requests <= 12 * 2


@pytest.mark.parametrize(
    "message",
    ["temperature: range: 0..1", "prompt is too long: 210000 tokens; top_p is unknown", "messages.0: unknown fault"],
)
def test_another_fault_in_a_400_is_no_reason_to_leave_settings_out(message: str) -> None:
    [reply], server = served(api_refusal(400, message))
    assert (reply.status, server.requests) == ("error", 1)
    assert message in (reply.error or "")


# --- replies --------------------------------------------------------------------------------------------------------


def test_a_reply_carries_text_reason_reasoning_usage_model_and_run() -> None:
    usage = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 4,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 15},
    }
    redacted = {"type": "redacted_thinking", "data": "xxxx"}
    blocks = (thinking("hm, "), redacted, thinking("yes"), " Answer:", {"type": "server_tool_use"}, " B\n")
    [reply], server = served(dataclasses.replace(planted_message(*blocks, usage=usage), model="claude-0613"))
    assert (reply.text, reply.status, reply.finish_reason, reply.error) == (" Answer: B\n", "ok", "stop", None)
    assert reply.usage == Usage(calls=1, input_tokens=134, output_tokens=20, reasoning_tokens=15)
    assert (reply.model, reply.reasoning) == ("claude-0613", "hm, yes")
    assert 0 < reply.run.latency_s < 5
    assert reply.run.started_at > 1e9
    assert (reply.run.retries, server.requests) == (0, 1)


def test_reasoning_tokens_and_missing_usage_are_unknown_and_never_zero() -> None:
    [reply], _ = served("A")
    assert reply.usage == Usage(calls=1, input_tokens=11, output_tokens=7, reasoning_tokens=None)
    assert reply.reasoning is None
    [reply], _ = served(dataclasses.replace(planted_message("A"), usage=None))
    assert reply.usage == Usage(calls=1, input_tokens=None, output_tokens=None, reasoning_tokens=None)
    [reply], _ = served(planted_message("A", usage={"input_tokens": "many", "cache_read_input_tokens": 3}))
    assert reply.usage == Usage(calls=1, input_tokens=None, output_tokens=None, reasoning_tokens=None)


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        (None, None),
    ],
)
def test_a_text_is_the_model_s_own_whatever_ended_it(stop_reason: str | None, finish_reason: str | None) -> None:
    [reply], _ = served(planted_message("I will not.", stop_reason=stop_reason))
    assert (reply.status, reply.text, reply.finish_reason) == ("ok", "I will not.", finish_reason)


@pytest.mark.parametrize("stop_reason", ["end_turn", "max_tokens"])
@pytest.mark.parametrize("blocks", [(), ("",), (thinking("so much to think"),)], ids=["none", "empty", "thoughts"])
def test_an_empty_reply_that_ended_by_itself_or_at_its_limit_is_the_model_s_own(
    blocks: tuple[Any, ...], stop_reason: str
) -> None:
    [reply], server = served(planted_message(*blocks, stop_reason=stop_reason))
    assert (reply.status, reply.text, reply.error, server.requests) == ("ok", "", None, 1)


def test_a_refusal_without_words_is_an_error_that_tells_the_api_s_reason() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "Not about this."}
    [reply], server = served(planted_message(stop_reason="refusal", stop_details=details))
    assert (reply.status, reply.finish_reason, server.requests) == ("error", "refusal", 1)
    assert reply.error == "the server withheld the reply (stop_reason=refusal, bio: Not about this.)"
    [reply], _ = served(planted_message(stop_reason="refusal", stop_details=None))
    assert reply.error == "the server withheld the reply (stop_reason=refusal)"


@pytest.mark.parametrize("stop_reason", ["tool_use", None])
def test_an_empty_reply_for_another_reason_is_empty(stop_reason: str | None) -> None:
    [reply], _ = served(planted_message(stop_reason=stop_reason))
    assert reply.status == "empty"
    assert "nobody knows why" in (reply.error or "")


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("planted", "words", "requests", "tokens"),
    [
        (api_refusal(400, "bad block"), ["HTTP 400", "refuses the call (the server says: bad block)"], 1, 0),
        (api_refusal(400, "prompt is too long: 9 tokens > 8"), ["does not fit the model; lower max_new_tokens"], 1, 0),
        (api_refusal(400, "input length and `max_tokens` exceed context limit"), ["does not fit the model"], 1, 0),
        (api_refusal(400, "Your credit balance is too low"), ["no credit left; add some"], 1, 0),
        (api_refusal(400, "messages.0.image: image exceeds 5 MB maximum"), ["max_side", "exceeds 5 MB"], 1, 0),
        (api_refusal(401, "invalid x-api-key"), ["HTTP 401", "refuses the key in ANTHROPIC_API_KEY; check it"], 1, 0),
        (api_refusal(403, "not yours"), ["HTTP 403", "not yours"], 1, 0),
        (api_refusal(404, "model: claude-test"), ["no model 'claude-test' at http://", "has no /v1 at its end"], 1, 0),
        (api_refusal(413, "too large"), ["HTTP 413", "smaller or fewer pictures"], 1, 0),
        (api_refusal(429, "slow down"), ["HTTP 429 after 2 retries", "lower max_concurrency", "slow down"], 3, 0),
        (api_refusal(500, "oops"), ["HTTP 500 after 2 retries", "failed; see its own log", "oops"], 3, None),
        (api_refusal(529, "Overloaded"), ["HTTP 529 after 2 retries", "overloaded; lower max_concurrency"], 3, None),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Fault) else None,
)  # fmt: skip
def test_an_http_error_says_what_and_what_to_do(
    planted: Fault, words: list[str], requests: int, tokens: int | None
) -> None:
    [reply], server = served(planted)
    assert (reply.status, reply.text, reply.run.retries) == ("error", "", requests - 1)
    assert [word for word in words if word not in (reply.error or "")] == [], reply.error
    assert server.requests == requests
    assert reply.usage.input_tokens == tokens


def test_a_server_that_wants_a_key_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with AnthropicServer(lambda request: "A", api_key=KEY) as server:
        [refused] = ask(AnthropicBackend("m", base_url=server.url))
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        [taken] = ask(AnthropicBackend("m", base_url=server.url))
    assert "a call without a key; set ANTHROPIC_API_KEY, or name another variable" in (refused.error or "")
    assert taken.usable


def test_retry_after_is_honoured_and_retries_are_counted() -> None:
    [reply], server = served([api_refusal(429, retry_after_s=0.2), api_refusal(529, retry_after_s=0.1), "Answer: B"])
    assert (reply.status, reply.text, reply.run.retries) == ("ok", "Answer: B", 2)
    assert reply.run.latency_s >= 0.3
    assert server.requests == 3


def test_a_wait_of_an_hour_is_an_error_that_tells_it() -> None:
    with AnthropicServer(lambda request: api_refusal(429, retry_after_s=3600)) as server:
        backend = AnthropicBackend("m", base_url=server.url)

        async def run() -> Reply:
            async with asyncio.timeout(20):
                reply = await backend.reply(call_of())
            await backend.close()
            return reply

        reply = asyncio.run(run())
    assert "the server asks to wait 3600 s" in (reply.error or "")
    assert server.requests == 1


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (MALFORMED, "HTTP 200 with malformed JSON"),
        (HTML, "HTTP 200 with an HTML page (is this the API's address? it has no /v1 at its end)"),
        (EMPTY_BODY, "HTTP 200 with an empty body"),
        (Fault(body=b"[1, 2]"), "HTTP 200 with JSON that is no object"),
        (Fault(body=b'{"type": "message", "content": null}'), "HTTP 200 with a body without content"),
        (Fault(body=b'{"content": "Answer: A"}'), "HTTP 200 with a body without content"),
        (Fault(body=b'{"type": "error", "error": {"message": "up"}}'), "without content; the server says: up"),
        (Fault(body=b"[" * 100_000), "HTTP 200 with malformed JSON"),
    ],
)
def test_an_unusable_200_is_asked_once_more_and_then_an_error(planted: Fault, words: str) -> None:
    [reply], server = served(planted)
    assert (reply.status, reply.text, reply.run.retries) == ("error", "", 1)
    assert words in (reply.error or "")
    assert (server.requests, reply.usage.calls) == (2, 2)
    [reply], server = served([planted, "Answer: B"])
    assert (reply.status, reply.text, reply.run.retries) == ("ok", "Answer: B", 1)
    assert (server.requests, reply.usage.calls, reply.usage.input_tokens) == (2, 2, None)


def test_a_dropped_connection_is_retried_by_the_sdk() -> None:
    [reply], server = served([DROPPED, "Answer: B"])
    assert (reply.text, reply.run.retries, server.requests) == ("Answer: B", 1, 2)
    [reply], server = served(DROPPED, max_retries=0)
    assert reply.status == "error"
    assert "the connection to http://127.0.0.1:" in (reply.error or "")


def test_a_slow_server_is_a_timeout_that_names_the_setting() -> None:
    [reply], _ = served(PlantedReply(text="late", delay_s=2), timeout_s=0.2, max_retries=0)
    assert (reply.status, reply.error) == ("error", "no reply within 0.2 s; raise timeout_s or lower max_concurrency")
    assert reply.usage.input_tokens is None


def test_a_server_that_is_down_is_an_error_and_is_not_waited_for_by_every_call() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    first, second = one_by_one(AnthropicBackend("m", base_url=url, max_retries=2), call_of(), call_of())
    assert f"no connection after 2 retries: is a server running at {url}?" in (first.error or "")
    assert first.usage == Usage(calls=1)
    assert second.run.retries == 1


def test_one_failing_call_hurts_no_other() -> None:
    calls = [call_of(user(f"question {i}")) for i in range(8)]
    replies, server = served(lambda r: api_refusal(400) if "question 3" in r.messages[0].text else "Answer: A", *calls)
    assert [reply.status for reply in replies] == ["ok"] * 3 + ["error"] + ["ok"] * 4
    assert server.requests == 8


def test_keys_are_redacted_from_what_a_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_NAME", "plain-words-as-key")
    monkeypatch.setenv("ROUTER_PASS", "hush-hush-123")
    planted = api_refusal(401, f"bad key plain-words-as-key or {KEY}, and hush-hush-123")
    [reply], _ = served(planted, api_key_env="ODD_NAME", extra_headers={"X-Pass": "$ROUTER_PASS"})
    assert "the key in ODD_NAME; check it" in (reply.error or "")
    for secret in ("plain-words", KEY, "hush-hush"):
        assert secret not in (reply.error or "")


# --- connections ----------------------------------------------------------------------------------------------------


def test_as_many_calls_as_allowed_are_in_flight_at_once() -> None:
    with AnthropicServer(lambda request: "Answer: A", latency_s=0.5) as server:
        backend = AnthropicBackend("m", base_url=server.url, max_concurrency=32)
        replies = ask(backend, *[call_of(user(f"q{i}")) for i in range(32)])
    assert all(reply.usable for reply in replies)
    assert server.counts.most_in_flight == 32


def test_a_backend_works_in_one_loop_after_the_other() -> None:
    with AnthropicServer(lambda request: "Answer: A") as server:
        backend = AnthropicBackend("m", base_url=server.url)
        assert all(ask(backend)[0].usable for _ in range(2))
        replies: list[Reply] = []
        thread = threading.Thread(target=lambda: replies.extend(ask(backend)))
        thread.start()
        thread.join()
    assert replies[0].usable
    asyncio.run(backend.close())


def test_a_cancelled_call_stays_cancelled() -> None:
    with AnthropicServer(lambda request: PlantedReply(text="late", delay_s=5)) as server:
        backend = AnthropicBackend("m", base_url=server.url)

        async def run() -> None:
            task = asyncio.create_task(backend.reply(call_of()))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await backend.close()

        asyncio.run(run())


# --- the server itself ----------------------------------------------------------------------------------------------


def test_the_server_sees_what_is_wrong_in_a_request() -> None:
    good = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}
    png = encoded("PNG", "image/png").base64

    def image(**source: object) -> dict[str, Any]:
        source = {"type": "base64", "media_type": "image/png", "data": png, **source}
        return {"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}

    wrong: dict[str, dict[str, Any]] = {
        "seed: Extra inputs are not permitted": {"seed": 1},
        "max_tokens = None": {"max_tokens": None},
        "stop_sequences = ['\\n']": {"stop_sequences": ["\n"]},
        "temperature may only be set to 1": {"temperature": 0, "thinking": {"type": "adaptive"}},
        "thinking.budget_tokens = 2048 with max_tokens = 9": {"thinking": ENABLED},
        "messages in the order user, user, user": {"messages": good["messages"] * 3},
        "a system message among": {"messages": [{"role": "system", "content": "s"}, *good["messages"]]},
        "a user message without words": {"messages": [{"role": "user", "content": " "}]},
        "a text block without words": {"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]},
        "a picture said to be image/jpeg is image/png": image(media_type="image/jpeg"),
        "no base64 data URL": image(data="%%%"),
        "a broken picture": image(data="AAAA"),
        "a picture of type 'base64' and 'image/bmp'": image(media_type="image/bmp"),
    }
    reader = AnthropicServer.reader()
    headers = {"X-Api-Key": KEY, "anthropic-version": API_VERSION}
    assert reader.request_from(json.dumps(good).encode(), headers, 0).violations == ()
    for words, change in wrong.items():
        request = reader.request_from(json.dumps({**good, **change}).encode(), headers, 0)
        assert any(words in violation for violation in request.violations), (words, request.violations)
    bare = reader.request_from(json.dumps(good).encode(), {}, 0)
    assert [violation.split(": ")[1] for violation in bare.violations] == [
        "no header x-api-key", "no header anthropic-version",
    ]  # fmt: skip


# --- what the README promises ---------------------------------------------------------------------------------------


def test_every_backend_that_the_readme_names_can_be_made_with_just_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "key-of-a-test")
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:model|INTERBENCH_PROVIDER)=((?:openai|anthropic):[^.\s]\S*)", text)
    each = [role_words_from(words) for several in named for words in several_role_words(several.rstrip("`."))]
    options = [{key: value for key, value in words.options.items() if key != "name"} for words in each]
    made = [interbench_backends()[w.backend](w.model, **own) for w, own in zip(each, options, strict=True)]
    assert {"anthropic:claude-sonnet-5-5", "openai:gemini-2.0-flash"} <= {backend.name for backend in made}
    assert any("@https://generativelanguage.googleapis.com/v1beta/openai " in backend.fingerprint for backend in made)


# --- the whole way --------------------------------------------------------------------------------------------------


@pytest.mark.integration
def test_receiver_and_provider_on_this_api_give_exactly_the_planted_metrics(tmp_path: Path) -> None:
    options = {letter: f"choice {letter}" for letter in "ABCD"}
    items, rows = [], []
    for number in range(24):
        question, colour = f"Which of these is figure {number}?", (10 * number, 90, 120)
        Image.new("RGB", (12, 12), colour).save(tmp_path / f"{number}.png")
        items.append(PlantedItem(id=str(number), question=question, target="ABCD"[number % 4], options=options))
        rows.append(
            {"question": question, "image": f"{number}.png", "options": [*options.values()], "answer": items[-1].target}
        )
    (tmp_path / "test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    brain = PlantedBrain(
        items, seed=3, models={"teacher": PlantedRates(accuracy=0.8, invalid=0)}, accuracy=0.4, correction=0.5
    )
    expected = expected_of(brain, items, receiver="pupil", provider="teacher")
    assert expected.test > 3
    with AnthropicServer(brain, api_key=KEY) as server:
        lmms_eval(
            *("--model", "interbench_api", "--model_args", f"model=anthropic:pupil@{server.url},max_concurrency=8"),
            *("--tasks", "interfeedback_local", "--output_path", tmp_path / "out"),
            INTERBENCH_DATA=str(tmp_path / "test.jsonl"),
            INTERBENCH_PROVIDER=f"anthropic:teacher@{server.url},effort=low,thinking_budget=1024",
        ).check()
    assert server.violations == []
    assert server.requests == expected.requests
    assert_metrics(metrics(tmp_path / "out"), expected)
    asked = {request.model: request.parameters for request in server.log}
    assert asked["teacher"]["output_config"] == {"effort": "low"}
    assert asked["teacher"]["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert "thinking" not in asked["pupil"]
    assert {record["models"]["receiver"] for record in records(tmp_path / "out")} == {"anthropic:pupil"}
    kept = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert KEY.encode() not in kept
