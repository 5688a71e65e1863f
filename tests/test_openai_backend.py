"""The OpenAI backend against a real server on 127.0.0.1: what is sent, what comes back, and every way to fail."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import gc
import io
import json
import logging
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from PIL import Image

from interbench_tasks.backends import chat_bodies
from interbench_tasks.backends.openai import OpenAIBackend
from interbench_tasks.engine.failures import checked_reply
from interbench_tasks.errors import BackendError, MissingKeyError
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.records import Episode, GenerationSettings, Message, PictureRef, Reply, Usage
from tests.servers.chat_requests import ParsedRequest, order_violations, picture_from_url
from tests.servers.openai_server import (
    DROPPED,
    EMPTY_BODY,
    EMPTY_CONTENT,
    HTML,
    MALFORMED,
    NO_CHOICES,
    NO_USAGE,
    NULL_CONTENT,
    Fault,
    OpenAIServer,
    PlantedReply,
    refusal,
)
from tests.servers.planted_brain import PlantedBrain, PlantedItem, PlantedRates, items_from

KEY = "sk-test-1234567890abcdef"
SETTINGS = GenerationSettings(max_new_tokens=64, temperature=0.0)


class FakePicture(PictureRef):
    """Stands for `images.Picture`: bytes that were encoded already."""

    __slots__ = ("data_url",)
    data_url: str

    @classmethod
    def of_colour(cls, colour: str, kind: str = "PNG", side: int = 8) -> FakePicture:
        buffer = io.BytesIO()
        Image.new("RGB", (side, side), colour).save(buffer, kind)
        mime = f"image/{kind.lower()}"
        picture = cls(digest=f"{colour}-{kind}", width=side, height=side, mime=mime)
        url = f"data:{mime};base64,{base64.b64encode(buffer.getvalue()).decode()}"
        object.__setattr__(picture, "data_url", url)
        return picture


def user(*content: str | PictureRef) -> Message:
    return Message(role="user", content=content)


def assistant(text: str) -> Message:
    return Message(role="assistant", content=(text,))


def call_of(*messages: Message, settings: GenerationSettings = SETTINGS) -> Call:
    messages = messages or (user("Which one?"),)
    episode = Episode(id="e", doc_id=0, question=messages[0], target="B", options={"A": "x", "B": "y"})
    return Call(messages=messages, settings=settings, role="receiver", purpose="answer", episode=episode)


def ask(backend: OpenAIBackend, *calls: Call) -> list[Reply]:
    """All calls at once, in one loop."""

    async def run() -> list[Reply]:
        try:
            return await asyncio.gather(*(backend.reply(call) for call in calls or (call_of(),)))
        finally:
            await backend.close()

    return asyncio.run(run())


def served(answer: Any, *calls: Call, latency_s: float = 0.0, **options: Any) -> tuple[list[Reply], OpenAIServer]:
    """What a backend makes of a server that answers so: a fixed answer, several in turn, or a function."""
    with OpenAIServer(in_turn(answer), latency_s=latency_s, check_replies=False) as server:
        backend = OpenAIBackend("tiny-vl", base_url=server.url, **{"max_retries": 2, **options})
        return ask(backend, *calls), server


def in_turn(answer: Any) -> Callable[[ParsedRequest], Any]:
    if callable(answer):
        return answer
    answers: Sequence[Any] = answer if isinstance(answer, list) else [answer]
    return lambda request: answers[min(request.number, len(answers) - 1)]


def sent_body(**call: Any) -> dict[str, Any]:
    """The parameters that a server gets."""
    options = call.pop("options", {})
    _, server = served("Answer: A", call_of(settings=dataclasses.replace(SETTINGS, **call)), **options)
    return dict(server.log[0].parameters)


# --- construction ---------------------------------------------------------------------------------------------------


def test_it_is_a_backend_and_no_simulation() -> None:
    backend = OpenAIBackend("org/name", base_url="http://localhost:1/v1", max_concurrency=32)
    assert isinstance(backend, Backend)
    assert (backend.name, backend.max_concurrency, backend.simulated) == ("openai:org/name", 32, False)


def test_importing_and_constructing_it_does_not_load_the_sdk() -> None:
    code = (
        "import sys; from interbench_tasks.backends.openai import OpenAIBackend; "
        "OpenAIBackend('m', base_url='http://localhost:1/v1'); "
        "sys.exit('openai' in sys.modules or 'httpx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("value", [None, "", "   "])
def test_a_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if value is None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    else:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY is not set"):
        OpenAIBackend("gpt-4o")


def test_a_variable_that_was_named_must_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_SERVER_KEY", raising=False)
    with pytest.raises(MissingKeyError, match="MY_SERVER_KEY is not set"):
        OpenAIBackend("gpt-4o", base_url="http://localhost:1/v1", api_key_env="MY_SERVER_KEY")


def test_a_key_with_strange_characters_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\u201cquoted\u201d")
    with pytest.raises(BackendError, match="OPENAI_API_KEY holds characters") as error:
        OpenAIBackend("gpt-4o")
    assert "quoted" not in str(error.value)


def test_a_misspelt_option_gets_the_near_miss_and_the_allowed_ones() -> None:
    with pytest.raises(BackendError, match=r"no option 'temprature' \(did you mean 'temperature'\?\)") as error:
        OpenAIBackend("m", base_url="http://localhost:1/v1", temprature=0)
    assert "allowed: api_key_env, base_url, effort, extra_body" in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "localhost:8000"}, "base_url = 'localhost:8000' is not the address"),
        ({"base_url": "http://"}, "is not the address"),
        ({"base_url": "http://localhost:99999/v1"}, "is not the address"),
        ({"base_url": "http://me:secret@host/v1"}, "no user and password"),
        ({"base_url": "http://localhost:1/v1/chat/completions"}, "leave /chat/completions out"),
        ({"max_concurrency": 0}, "max_concurrency = 0 must be a whole number of at least 1"),
        ({"max_concurrency": True}, "max_concurrency = True"),
        ({"max_retries": -1}, "max_retries = -1"),
        ({"timeout_s": 0}, "timeout_s = 0"),
        ({"timeout_s": "soon"}, "timeout_s = 'soon'"),
        ({"max_tokens_field": "max_token"}, "did you mean 'max_tokens'"),
        ({"image_detail": "hihg"}, "did you mean 'high'"),
        ({"temperature": -1}, "temperature = -1 must be a finite number"),
        ({"temperature": "warm"}, "temperature = 'warm'"),
        ({"top_p": 1.5}, "top_p = 1.5 must be a finite number of at least 0 and at most 1"),
        ({"max_new_tokens": 1.5}, "max_new_tokens = 1.5 must be a whole number"),
        ({"extra_body": [1]}, "extra_body must be a mapping"),
        ({"extra_headers": "x"}, "extra_headers must be a mapping"),
        ({"extra_headers": {"X-Number": 1}}, "'X-Number' must be text"),
        ({"extra_headers": {"Authorization": "Bearer abc"}}, "keys come from the environment only"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BackendError) as error:
        OpenAIBackend("m", **{"base_url": "http://localhost:1/v1", **options})
    assert message in str(error.value)


def test_a_key_in_the_models_place_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "plainlettersonly")
    for key in ("sk-live-abcdef1234567890", "hf_abcdefgh12345678", "plainlettersonly"):
        with pytest.raises(BackendError, match=r"looks like a key; .* put the key into OPENAI_API_KEY") as caught:
            OpenAIBackend(key, base_url="http://localhost:1/v1")
        assert key not in str(caught.value)


def test_a_model_must_be_named() -> None:
    with pytest.raises(BackendError, match="needs a model"):
        OpenAIBackend("", base_url="http://localhost:1/v1")


def test_the_fingerprint_changes_with_all_that_can_change_a_reply_and_with_nothing_else() -> None:
    def fingerprint(model: str = "m", **options: Any) -> str:
        return OpenAIBackend(model, **{"base_url": "http://localhost:1/v1", **options}).fingerprint

    base = fingerprint()
    same = [
        fingerprint(base_url="http://localhost:1/v1/"),
        fingerprint(max_concurrency=2, max_retries=0, timeout_s=3),
    ]
    other = [
        fingerprint("n"),
        fingerprint(base_url="http://localhost:2/v1"),
        fingerprint(temperature=0),
        fingerprint(temperature=1),
        fingerprint(seed=1),
        fingerprint(extra_body={"top_k": 1}),
        fingerprint(image_detail="low"),
        fingerprint(extra_headers={"X-Route": "a"}),
    ]
    assert same == [base, base]
    assert len({base, *other}) == 1 + len(other)


def test_the_key_is_in_no_text_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ROUTER_PASS", "hush-hush-123")
    backend = OpenAIBackend("gpt-4o", extra_headers={"x-api-key": "$ROUTER_PASS"})
    shown = f"{backend.name} {backend.fingerprint} {backend!r} {backend._endpoint!r}"
    assert KEY not in shown
    assert "hush" not in shown


# --- what is sent ---------------------------------------------------------------------------------------------------


def test_texts_and_pictures_keep_their_order_and_their_message() -> None:
    red, blue = FakePicture.of_colour("red"), FakePicture.of_colour("blue", "JPEG")
    messages = (
        Message(role="system", content=("Be brief.",)),
        user("First ", red, " then ", blue, "which?"),
        assistant("Answer: A"),
        user("Wrong. ", "Again."),
    )
    _, server = served("Answer: B", call_of(*messages))
    sent = server.log[0].messages
    assert [message.role for message in sent] == ["system", "user", "assistant", "user"]
    first = sent[1].content
    assert [part if isinstance(part, str) else part.mime for part in first] == [
        "First ", "image/png", " then ", "image/jpeg", "which?",
    ]  # fmt: skip
    assert [message.content for message in (sent[0], sent[2], sent[3])] == [
        ("Be brief.",), ("Answer: A",), ("Wrong. Again.",),
    ]  # fmt: skip
    assert server.violations == []
    assert server.counts.pictures == 2


def test_a_message_without_pictures_is_a_plain_string_and_empty_text_parts_are_left_out() -> None:
    sent = chat_bodies.chat_messages([user("a", "b"), assistant("c"), user("", FakePicture.of_colour("red"))])
    assert [message["content"] for message in sent[:2]] == ["ab", "c"]
    assert [part["type"] for part in sent[2]["content"]] == ["image_url"]  # type: ignore[index,attr-defined]


def test_the_cached_data_url_itself_is_sent() -> None:
    picture = FakePicture.of_colour("red")
    sent = chat_bodies.chat_messages([user("look", picture)], image_detail="low")
    image_url = sent[0]["content"][1]["image_url"]  # type: ignore[index]
    assert image_url["url"] is picture.data_url
    assert image_url["detail"] == "low"


def test_a_picture_without_bytes_is_an_error_that_says_so() -> None:
    bare = PictureRef(digest="abc", width=1, height=1, mime="image/png")
    with pytest.raises(BackendError, match="picture abc came without its bytes"):
        served("Answer: A", call_of(user("look", bare)))


def test_a_picture_outside_a_user_message_is_an_error() -> None:
    messages = [Message(role="system", content=("see", FakePicture.of_colour("red")))]
    with pytest.raises(BackendError, match="a system message holds a picture"):
        chat_bodies.chat_messages(messages)


def test_half_a_surrogate_pair_can_be_sent_and_received() -> None:
    [reply], server = served(
        Fault(body=b'{"choices": [{"message": {"content": "cut \\ud83d"}, "finish_reason": "length"}]}'),
        call_of(user("half \ud83d of \U0001f600")),
    )
    assert server.log[0].messages[0].text == "half \ufffd of \U0001f600"
    assert reply.text == "cut \ufffd"


def test_generation_settings_become_the_api_s_parameters() -> None:
    assert sent_body(max_new_tokens=77, temperature=0.5, top_p=0.9, until=("\n\n", "END"), options={}) == {
        "max_tokens": 77,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["\n\n", "END"],
    }
    assert sent_body() == {"max_tokens": 64, "temperature": 0.0}


def test_further_options_of_the_settings_and_of_the_backend_are_sent_as_they_are() -> None:
    settings = dataclasses.replace(SETTINGS, options={"seed": 3, "reasoning_effort": "low", "top_k": 5})
    _, server = served("A", call_of(settings=settings), seed=4, extra_body={"min_p": 0.1}, options={"guided": {"a": 1}})
    assert dict(server.log[0].parameters) == {
        "max_tokens": 64,
        "temperature": 0.0,
        "seed": 4,
        "reasoning_effort": "low",
        "top_k": 5,
        "min_p": 0.1,
        "guided": {"a": 1},
    }


def test_effort_is_sent_under_the_apis_name_and_the_models_own_words_win() -> None:
    wanted = {"max_tokens": 64, "temperature": 0.0, "reasoning_effort": "high"}
    settings = dataclasses.replace(SETTINGS, options={"effort": "low"})
    _, server = served("A", call_of(settings=settings), effort="high")
    assert dict(server.log[0].parameters) == wanted
    _, server = served("A", call_of(settings=dataclasses.replace(SETTINGS, options={"effort": "high"})))
    assert dict(server.log[0].parameters) == wanted
    with pytest.raises(BackendError, match="effort and reasoning_effort are both given"):
        OpenAIBackend("m", base_url="http://localhost:1/v1", effort="low", reasoning_effort="low")


def test_the_backend_s_own_generation_settings_overrule_the_task_s() -> None:
    options = {"temperature": 0.7, "max_new_tokens": 9, "top_p": None}
    assert sent_body(top_p=0.5, options=options) == {"max_tokens": 9, "temperature": 0.7}
    assert sent_body(options={"temperature": None}) == {"max_tokens": 64}


@pytest.mark.parametrize("name", ["messages", "stream", "n", "max_tokens", "temperature"])
def test_a_parameter_that_is_made_from_the_call_cannot_be_an_option(name: str) -> None:
    with pytest.raises(BackendError, match=f"'{name}' is made from the call"):
        OpenAIBackend("m", base_url="http://localhost:1/v1", extra_body={name: 2})
    backend = OpenAIBackend("m", base_url="http://localhost:1/v1")
    with pytest.raises(BackendError, match=f"'{name}' is made from the call"):
        ask(backend, call_of(settings=dataclasses.replace(SETTINGS, options={name: 2})))


def test_openai_takes_four_stops_and_other_servers_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    five = ("1", "2", "3", "4", "5")
    with pytest.raises(BackendError, match="at most 4 texts in `until`"):
        ask(OpenAIBackend("gpt-4o"), call_of(settings=dataclasses.replace(SETTINGS, until=five)))
    assert sent_body(until=five)["stop"] == list(five)


def test_openai_itself_gets_the_new_name_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    backend = OpenAIBackend("gpt-4o")
    assert "max_completion_tokens" in backend._accepted(backend._body(call_of()))
    old = OpenAIBackend("gpt-4o", max_tokens_field="max_tokens")
    assert "max_tokens" in old._accepted(old._body(call_of()))


def test_the_key_comes_from_the_named_variable_and_headers_can_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", KEY)
    monkeypatch.setenv("ROUTER_PASS", "hush-hush-123")
    headers = {"X-Title": "Interbench", "x-api-key": "$ROUTER_PASS"}
    _, server = served("A", api_key_env="MY_SERVER_KEY", extra_headers=headers)
    got = server.log[0].headers
    assert got["authorization"] == f"Bearer {KEY}"
    assert (got["x-title"], got["x-api-key"]) == ("Interbench", "hush-hush-123")


def test_a_header_whose_variable_is_not_set_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROUTER_PASS", raising=False)
    with pytest.raises(MissingKeyError, match="ROUTER_PASS is not set; the header 'x-api-key' needs it"):
        OpenAIBackend("m", base_url="http://localhost:1/v1", extra_headers={"x-api-key": "$ROUTER_PASS"})


def test_the_address_can_come_from_the_sdk_s_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with OpenAIServer(lambda request: "Answer: A") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        backend = OpenAIBackend("m")
        [reply] = ask(backend)
    assert reply.usable
    assert server.url in backend.fingerprint


# --- parameters that a server refuses -------------------------------------------------------------------------------


def newer_model(request: ParsedRequest) -> str | Fault:
    """Refuses what OpenAI's reasoning models refuse, in their words."""
    if "max_tokens" in request.parameters:
        return refusal(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
            param="max_tokens",
        )
    if "temperature" in request.parameters:
        return refusal(
            400,
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is "
            "supported.",
            code="unsupported_value",
            param="temperature",
        )
    return "Answer: B"


def test_refused_parameters_are_learned_once_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with OpenAIServer(newer_model) as server:
        backend = OpenAIBackend("o9", base_url=server.url)

        async def one_after_the_other() -> list[Reply]:
            replies = [await backend.reply(call_of()) for _ in range(4)]
            await backend.close()
            return replies

        with caplog.at_level(logging.WARNING):
            replies = asyncio.run(one_after_the_other())
    assert [reply.text for reply in replies] == ["Answer: B"] * 4
    assert [reply.run.retries for reply in replies] == [2, 0, 0, 0]
    assert server.requests == 4 + 2
    assert backend.left_out == ("temperature",)
    assert dict(server.log[-1].parameters) == {"max_completion_tokens": 64}
    assert [r.getMessage() for r in caplog.records if r.name.startswith("interbench")] == [
        "openai:o9 takes no temperature; its own default is used instead"
    ]


def test_calls_in_flight_while_it_is_learned_all_get_their_answer() -> None:
    replies, server = served(newer_model, *[call_of(user(f"q{i}")) for i in range(12)])
    assert all(reply.text == "Answer: B" for reply in replies)
    assert server.requests <= 12 * 3


def test_a_field_that_was_set_is_not_switched() -> None:
    [reply], server = served(newer_model, max_tokens_field="max_tokens")
    assert reply.status == "error"
    assert server.requests == 1


@pytest.mark.parametrize(
    "message",
    [
        "'max_tokens' or 'max_completion_tokens' is too large: 9999. The model's maximum context length is 4096",
        "max_completion_tokens: a maximum context length above 4096 is not supported",
        "temperature must be at most 2",
        "some other fault",
    ],
)
def test_another_fault_in_a_400_is_no_reason_to_leave_parameters_out(message: str) -> None:
    [reply], server = served(refusal(400, message))
    assert (reply.status, server.requests) == ("error", 1)
    assert message[:40] in (reply.error or "")


# --- replies --------------------------------------------------------------------------------------------------------


def test_a_reply_carries_text_reason_usage_model_and_run() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 15}}
    planted = PlantedReply(text=" Answer: B\n", usage=usage, model="tiny-vl-0613", message={"reasoning": "hm"})
    [reply], server = served(planted, latency_s=0.05)
    assert (reply.text, reply.status, reply.finish_reason, reply.error) == (" Answer: B\n", "ok", "stop", None)
    assert reply.usage == Usage(calls=1, input_tokens=100, output_tokens=20, reasoning_tokens=15)
    assert (reply.model, reply.reasoning) == ("tiny-vl-0613", "hm")
    assert 0.05 <= reply.run.latency_s < 5
    assert reply.run.started_at > 1e9
    assert (reply.run.retries, server.requests) == (0, 1)


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"reasoning_content": "deep"}, "Answer: A", "deep"),
        ({"reasoning": ["one ", {"text": "two"}]}, "Answer: A", "one two"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "three"}]}, "Answer: A", "three"),
        ({"reasoning_content": "", "reasoning": None}, "Answer: A", None),
        ({"content": [{"type": "thinking", "thinking": [{"text": "t"}]}, {"type": "text", "text": "B"}]}, "B", "t"),
        ({"content": None, "refusal": "I will not."}, "I will not.", None),
    ],
)
def test_reasoning_and_refusals_are_found_wherever_servers_put_them(
    message: dict[str, Any], text: str, reasoning: str | None
) -> None:
    [reply], _ = served(PlantedReply(text="Answer: A", message=message))
    assert (reply.status, reply.text, reply.reasoning) == ("ok", text, reasoning)


def choice_of(message: dict, finish_reason: str = "stop") -> Fault:
    """A 200 whose only choice holds this message."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return Fault(body=json.dumps({"id": "x", "object": "chat.completion", "choices": [choice]}).encode())


@pytest.mark.parametrize("planted", [EMPTY_CONTENT, NULL_CONTENT], ids=["empty", "null"])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_an_empty_reply_with_a_reason_is_the_model_s_own(planted: PlantedReply, reason: str) -> None:
    [reply], server = served(dataclasses.replace(planted, finish_reason=reason))
    assert (reply.status, reply.text, reply.finish_reason, reply.error) == ("ok", "", reason, None)
    assert server.requests == 1


def test_a_cut_reply_is_ok_with_its_reason() -> None:
    [reply], _ = served(PlantedReply(text="Answ", finish_reason="length"))
    assert (reply.status, reply.text, reply.finish_reason) == ("ok", "Answ", "length")


def test_an_empty_reply_without_a_reason_is_empty() -> None:
    [reply], _ = served(dataclasses.replace(EMPTY_CONTENT, finish_reason=None))
    assert reply.status == "empty"
    assert "nobody knows why" in (reply.error or "")


def test_a_filtered_reply_is_an_error_and_a_partly_filtered_one_is_not() -> None:
    [reply], _ = served(dataclasses.replace(EMPTY_CONTENT, finish_reason="content_filter"))
    assert (reply.status, reply.finish_reason) == ("error", "content_filter")
    [reply], _ = served(PlantedReply(text="So far", finish_reason="content_filter"))
    assert (reply.status, reply.text) == ("ok", "So far")


def test_missing_usage_is_unknown_and_never_zero() -> None:
    [reply], _ = served(NO_USAGE)
    assert reply.usage == Usage(calls=1, input_tokens=None, output_tokens=None, reasoning_tokens=None)
    [reply], _ = served(PlantedReply(text="A", usage={"prompt_tokens": "many", "completion_tokens": 3}))
    assert reply.usage == Usage(calls=1, input_tokens=None, output_tokens=3, reasoning_tokens=None)


@pytest.mark.parametrize("absurd", [10**20, 10**30, -1, 1.5, True, [3]])
def test_an_absurd_usage_is_unknown_and_loses_no_reply(absurd) -> None:
    details = {"cached_tokens": absurd}
    usage = {"prompt_tokens": absurd, "completion_tokens": 3, "prompt_tokens_details": details}
    [reply], _ = served(PlantedReply(text="Answer: A", usage=usage))
    assert (reply.text, reply.status) == ("Answer: A", "ok")
    assert reply.usage == Usage(calls=1, input_tokens=None, output_tokens=3, reasoning_tokens=None)
    assert reply.run.cached_input_tokens is None
    assert checked_reply(reply, "openai:m") is reply


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("planted", "words", "requests", "tokens"),
    [
        (refusal(401, "Incorrect API key"), ["HTTP 401", "a call without a key", "set OPENAI_API_KEY"], 1, 0),
        (refusal(403, "not in your region"), ["HTTP 403", "not in your region"], 1, 0),
        (refusal(404, "does not exist"), ["HTTP 404", "no model 'tiny-vl' at http://127.0.0.1:", "end in /v1"], 1, 0),
        (refusal(400, "too long", code="context_length_exceeded"), ["HTTP 400", "does not fit the model"], 1, 0),
        (refusal(400, "maximum context length is 9 tokens"), ["HTTP 400", "lower max_new_tokens"], 1, 0),
        (refusal(400, "bad picture"), ["HTTP 400", "refuses the call", "bad picture"], 1, 0),
        (refusal(413), ["HTTP 413", "smaller or fewer pictures"], 1, 0),
        (refusal(429, "slow down"), ["HTTP 429 after 2 retries", "lower max_concurrency", "slow down"], 3, 0),
        (refusal(500, "oops"), ["HTTP 500 after 2 retries", "see its own log", "oops"], 3, None),
        (refusal(503), ["HTTP 503 after 2 retries"], 3, None),
        (
            Fault(status=502, body=b"<html><style>x{}</style><h1>Bad  gateway</h1></html>", content_type="text/html",
                  headers={"Retry-After": "0.001"}),
            ["HTTP 502", "the server says: Bad gateway)"], 3, None,
        ),
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


def test_a_wait_longer_than_the_sdk_s_limit_is_an_error_that_tells_it() -> None:
    [reply], server = served(refusal(429, retry_after_s=3600))
    assert "the server asks to wait 3600 s" in (reply.error or "")
    assert server.requests == 1


def test_retry_after_is_honoured_and_retries_are_counted() -> None:
    slow_down = refusal(429, retry_after_s=0.3)
    [reply], server = served([slow_down, "Answer: B"])
    assert (reply.status, reply.text, reply.run.retries) == ("ok", "Answer: B", 1)
    assert reply.run.latency_s >= 0.3
    assert server.requests == 2


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (MALFORMED, "HTTP 200 with malformed JSON"),
        (HTML, "HTTP 200 with an HTML page (is this the API's address? it mostly ends in /v1)"),
        (EMPTY_BODY, "HTTP 200 with an empty body"),
        (NO_CHOICES, "HTTP 200 with a body without choices"),
        (choice_of({"content": 42}), "HTTP 200 with a message with content that is no text but int"),
        (choice_of({"content": {"text": "A"}}), "content that is no text but dict"),
        (choice_of({}), "HTTP 200 with a message with no content"),
        (choice_of({"content": "Answer: A"}, "error"), "finish_reason=error: the model broke off"),
        (Fault(body=b"[1, 2]"), "HTTP 200 with JSON that is no object"),
        (Fault(body=b'{"choices": null, "error": {"message": "up"}}'), "without choices; the server says: up"),
        (Fault(body=b'{"choices": [{"message": null}]}'), "a choice without a message"),
        (Fault(body=b'{"choices": [{"error": {"message": "broke"}, "message": {}}]}'), "a choice that failed: broke"),
        (Fault(body=b"\xff\xfe\x00"), "HTTP 200 with malformed JSON"),
        (Fault(body=b"[" * 100_000), "HTTP 200 with malformed JSON"),
    ],
)  # fmt: skip
def test_an_unusable_200_is_asked_once_more_and_then_an_error(planted: Fault, words: str) -> None:
    [reply], server = served(planted)
    assert (reply.status, reply.text, reply.run.retries) == ("error", "", 1)
    assert words in (reply.error or "")
    assert len(reply.error or "") < 400
    assert server.requests == 2
    assert reply.usage.calls == 2
    [reply], server = served([planted, "Answer: B"])
    assert (reply.status, reply.text, reply.run.retries) == ("ok", "Answer: B", 1)
    assert (server.requests, reply.usage.calls, reply.usage.input_tokens) == (2, 2, None)


def test_a_server_that_drips_is_given_up() -> None:
    """The SDK's limit is one between two pieces: a space now and then would hold the run for ever."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        writer.close()
        gone.set()

    async def asked() -> Reply:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        backend = OpenAIBackend("m", base_url=f"http://127.0.0.1:{port}/v1", timeout_s=0.3, max_retries=0)
        try:
            return await asyncio.wait_for(backend.reply(call_of()), 10)
        finally:
            await backend.close()
            await asyncio.wait_for(gone.wait(), 10)
            server.close()

    gone = asyncio.Event()
    reply = asyncio.run(asked())
    assert reply.status == "error"
    assert "no whole answer from http://127.0.0.1:" in (reply.error or "")


def test_a_dropped_connection_is_retried_by_the_sdk() -> None:
    [reply], server = served([DROPPED, "Answer: B"])
    assert (reply.text, reply.run.retries, server.requests) == ("Answer: B", 1, 2)
    [reply], server = served(DROPPED, max_retries=0)
    assert reply.status == "error"
    assert "the connection to http://127.0.0.1:" in (reply.error or "")
    assert server.requests == 1


def test_a_slow_server_is_a_timeout_that_names_the_setting() -> None:
    [reply], _ = served(PlantedReply(text="late", delay_s=2), timeout_s=0.2, max_retries=0)
    assert (reply.status, reply.error) == ("error", "no reply within 0.2 s; raise timeout_s or lower max_concurrency")
    assert reply.usage.input_tokens is None


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_that_is_down_is_an_error_that_asks_for_it() -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    [reply] = ask(OpenAIBackend("m", base_url=url, max_retries=0))
    assert reply.status == "error"
    assert f"no connection: is a server running at {url}?" in (reply.error or "")
    assert reply.usage == Usage(calls=1)


def test_a_server_that_never_was_there_is_not_waited_for_by_every_call() -> None:
    backend = OpenAIBackend("m", base_url=f"http://127.0.0.1:{closed_port()}/v1", max_retries=2)

    async def run() -> list[Reply]:
        replies = [await backend.reply(call_of()) for _ in range(2)]
        await backend.close()
        return replies

    assert [reply.run.retries for reply in asyncio.run(run())] == [2, 1]


def test_a_server_that_answered_before_it_went_down_is_waited_for() -> None:
    with OpenAIServer(lambda request: "Answer: A") as server:
        backend = OpenAIBackend("m", base_url=server.url, max_retries=2)
        assert ask(backend)[0].usable
    assert [ask(backend)[0].run.retries for _ in range(2)] == [2, 2]


def test_one_failing_call_hurts_no_other() -> None:
    calls = [call_of(user(f"question {i}")) for i in range(8)]
    replies, server = served(lambda r: refusal(400) if "question 3" in r.messages[0].text else "Answer: A", *calls)
    assert [reply.status for reply in replies] == ["ok"] * 3 + ["error"] + ["ok"] * 4
    assert server.requests == 8


def test_keys_are_redacted_from_what_a_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_NAME", KEY)
    monkeypatch.setenv("ROUTER_PASS", "hush-hush-123")
    monkeypatch.setenv("HF_TOKEN", "hf_another-secret")
    planted = refusal(401, f"bad key {KEY} with hush-hush-123 and hf_another-secret")
    [reply], _ = served(planted, api_key_env="ODD_NAME", extra_headers={"X-Pass": "$ROUTER_PASS"})
    assert "the key in ODD_NAME; check it" in (reply.error or "")
    assert KEY not in (reply.error or "")
    assert "hush" not in (reply.error or "")
    assert "another-secret" not in (reply.error or "")


def test_a_long_error_text_is_cut() -> None:
    [reply], _ = served(refusal(400, "word " * 1000))
    assert len(reply.error or "") < 400


# --- connections ----------------------------------------------------------------------------------------------------


def test_as_many_calls_as_allowed_are_in_flight_at_once() -> None:
    calls = [call_of(user(f"q{i}")) for i in range(64)]
    replies, server = served("Answer: A", *calls, latency_s=1.0, max_concurrency=64)
    assert all(reply.usable for reply in replies)
    assert server.counts.most_in_flight == 64


def test_a_backend_works_in_one_loop_after_the_other() -> None:
    with OpenAIServer(lambda request: "Answer: A") as server:
        backend = OpenAIBackend("m", base_url=server.url)
        assert all(ask(backend)[0].usable for _ in range(2))

        thread_replies: list[Reply] = []
        thread = threading.Thread(target=lambda: thread_replies.extend(ask(backend)))
        thread.start()
        thread.join()
        assert thread_replies[0].usable
    asyncio.run(backend.close())
    asyncio.run(backend.close())


def test_a_loop_that_ended_without_closing_leaves_the_backend_usable() -> None:
    with OpenAIServer(lambda request: "Answer: A") as server:
        backend = OpenAIBackend("m", base_url=server.url, max_retries=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the first loop's connections, which died with it
            assert asyncio.run(backend.reply(call_of())).usable
            assert ask(backend)[0].usable
            gc.collect()


def test_a_cancelled_call_stays_cancelled() -> None:
    with OpenAIServer(lambda request: PlantedReply(text="late", delay_s=5)) as server:
        backend = OpenAIBackend("m", base_url=server.url)

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
    with OpenAIServer(lambda request: "Answer: A") as server:
        backend = OpenAIBackend("m", base_url=server.url)
        lying = FakePicture.of_colour("red", "JPEG")
        object.__setattr__(lying, "data_url", lying.data_url.replace("image/jpeg", "image/png"))
        broken = FakePicture.of_colour("red")
        object.__setattr__(broken, "data_url", "data:image/png;base64,AAAA")
        invented = (user("q"), assistant("never said"), user("again"))
        ask(backend, call_of(user("a", lying)), call_of(user("b", broken)), call_of(*invented))
    seen = sorted(violation.split(": ", 1)[1] for violation in server.violations)
    assert [violation.split(":")[0] for violation in seen] == [
        "a broken picture",
        "a picture said to be image/png is image/jpeg",
        "message 1 is not what was said to this history",
    ]


@pytest.mark.parametrize(
    ("roles", "right"),
    [
        (["user"], True),
        (["system", "user", "assistant", "user"], True),
        (["user", "assistant"], False),
        (["user", "user", "user"], False),
        (["user", "system", "user"], False),
        (["system"], False),
        ([], False),
    ],
)
def test_the_server_wants_user_and_assistant_in_turn(roles: list[str], right: bool) -> None:
    assert (order_violations(roles) == []) is right


def test_one_picture_in_two_formats_shows_the_same() -> None:
    png, _ = picture_from_url(FakePicture.of_colour("red").data_url)
    webp, _ = picture_from_url(FakePicture.of_colour("red", "GIF").data_url)
    assert png.pixels == webp.pixels
    assert png.sha256 != webp.sha256


def test_the_brain_answers_as_it_says_it_will() -> None:
    red, blue = FakePicture.of_colour("red"), FakePicture.of_colour("blue")
    options = {"A": "one", "B": "two", "C": "three"}
    pixels = {picture.digest: picture_from_url(picture.data_url)[0].pixels for picture in (red, blue)}
    same_question = [
        PlantedItem(id=digest, question="Which?", target="B", options=options, pixels=shown)
        for digest, shown in pixels.items()
    ]
    brain = PlantedBrain(
        [*same_question, *items_from({f"Question {i} of many?": ("A", options) for i in range(100)})],
        seed=5,
        accuracy=0.4,
        correction={"simple": 0.2, "detail": 0.8},
        models={"provider": PlantedRates(accuracy=0.9)},
    )
    ids = [item for item in brain.items if item.startswith("Question")]
    with OpenAIServer(brain) as server:
        receiver = OpenAIBackend("receiver", base_url=server.url)

        async def run() -> dict[str, tuple[Reply, Reply]]:
            played = {}
            for name in ids[:30]:
                first = await receiver.reply(call_of(user(f"{name}\nA. one")))
                history = (user(f"{name}\nA. one"), assistant(first.text), user("Wrong, try again."))
                played[name] = (first, await receiver.reply(call_of(*history)))
            for picture in (red, blue):
                played[picture.digest] = (await receiver.reply(call_of(user("Which?", picture))),) * 2
            await receiver.close()
            return played

        played = asyncio.run(run())
    assert server.violations == []
    for name in ids[:30]:
        first, second = (reply.text for reply in played[name])
        outcome = brain.expected(name, "receiver")
        assert first == brain.text_of(brain.items[name], "receiver", 0, outcome)
        after = brain.expected(name, "receiver", 1, arm="simple", was_right=outcome == "right")
        assert second == brain.text_of(brain.items[name], "receiver", 1, after, "simple")
    assert {brain.expected(name, "receiver") for name in ids} == {"right", "wrong", "invalid"}
    assert sum(brain.expected(name, "provider") == "right" for name in ids) > 75


def test_the_server_runs_as_a_process_and_tells_its_counts(tmp_path: Any) -> None:
    items = [{"id": "1", "question": "Which?", "target": "C", "options": {"A": "x", "C": "y"}}]
    (tmp_path / "items.json").write_text(json.dumps(items))
    command = [sys.executable, "-m", "tests.servers.openai_server", "--items", str(tmp_path / "items.json")]
    process = subprocess.Popen([*command, "--accuracy", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    try:
        [reply] = ask(OpenAIBackend("m", base_url=url), call_of(user("Which?")))
        stats = asyncio.run(_json_of(url.replace("/v1", "/stats")))
        models = asyncio.run(_json_of(f"{url}/models"))
    finally:
        process.communicate(timeout=10)
    assert reply.text.endswith("Answer: C")
    assert (stats["requests"], stats["violations"]) == (1, [])
    assert models["data"][0]["id"] == "planted"
    assert process.returncode == 0


async def _json_of(url: str) -> Any:
    import aiohttp

    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.json()
