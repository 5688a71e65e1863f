"""Keys of the ledger: equal for what a model sees as equal, different for everything else."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest

from interbench_tasks.errors import LedgerError
from interbench_tasks.hookspecs import Call
from interbench_tasks.ledger import call_key
from interbench_tasks.records import Episode, GenerationSettings, Message, PictureRef

PICTURE = PictureRef(digest="0123456789abcdef" * 2, width=640, height=480, mime="image/png")
QUESTION = Message(role="user", content=(PICTURE, "What is it?"))
EPISODE = Episode(id="7", doc_id=7, question=QUESTION, target="A")
SETTINGS = GenerationSettings(max_new_tokens=64, temperature=0.0, options={"seed": 1, "reasoning_effort": "low"})
CALL = Call(
    messages=(
        Message(role="system", content=("Be brief.",)),
        QUESTION,
        Message(role="assistant", content=("A dog",)),
        Message(role="user", content=("No. ", "Again!")),
    ),
    settings=SETTINGS,
    role="receiver",
    purpose="answer",
    episode=EPISODE,
)


def with_messages(*messages: Message) -> Call:
    return replace(CALL, messages=messages)


def with_content(*content: str | PictureRef) -> Call:
    return with_messages(Message(role="user", content=content))


def with_settings(**changes) -> Call:
    return replace(CALL, settings=replace(SETTINGS, **changes))


@pytest.mark.parametrize(
    "other",
    [
        replace(CALL, episode=replace(EPISODE, id="8", doc_id=8, target="B")),
        replace(CALL, role="provider"),
        replace(CALL, purpose="feedback"),
        replace(CALL, branch="detail"),
        replace(CALL, round=3),
        with_settings(temperature=0),
        with_settings(options={"reasoning_effort": "low", "seed": 1}),
        with_settings(options=MappingProxyType({"seed": 1, "reasoning_effort": "low"})),
    ],
)
def test_calls_that_ask_a_model_the_same_have_one_key(other):
    assert call_key("openai:gpt-4o", other, 0) == call_key("openai:gpt-4o", CALL, 0)


DIFFERENT = [
    replace(CALL, purpose="solve"),  # a provider's own try is not the receiver's answer, also where both are one model
    with_messages(*CALL.messages[1:]),
    with_messages(*CALL.messages[:-1], Message(role="user", content=("No. ", "Again?"))),
    with_messages(*CALL.messages[:-1], Message(role="user", content=("No. Again!",))),
    with_messages(*CALL.messages[:-1], Message(role="user", content=("No.", " Again!"))),
    with_messages(CALL.messages[0], *reversed(CALL.messages[1:])),
    with_messages(*CALL.messages[:-1], Message(role="assistant", content=("No. ", "Again!"))),
    with_content(PICTURE, "x"),
    with_content("x", PICTURE),
    with_content(PICTURE, PICTURE, "x"),
    with_content(PICTURE.digest, "x"),
    with_content(replace(PICTURE, digest="f" * 32), "x"),
    with_content(replace(PICTURE, width=320), "x"),
    with_content(replace(PICTURE, height=320), "x"),
    with_content(replace(PICTURE, mime="image/jpeg"), "x"),
    with_content("a", "bc"),
    with_content("ab", "c"),
    with_content("abc"),
    with_content("a\nbc"),
    with_content("a", "\nbc"),
    with_messages(Message(role="user", content=("a",)), Message(role="user", content=("bc",))),
    with_content(),
    with_content(""),
    with_content("\ud83d", "\ude00"),
    with_content("\ud83d\ude00"),
    with_content("\N{GRINNING FACE}"),
    with_settings(max_new_tokens=65),
    with_settings(temperature=0.1),
    with_settings(top_p=1.0),
    with_settings(until=("\n",)),
    with_settings(until=("\n", "\n\n")),
    with_settings(options={}),
    with_settings(options={"seed": 2, "reasoning_effort": "low"}),
    with_settings(options={"seed": "1", "reasoning_effort": "low"}),
    with_settings(options={"seed": True, "reasoning_effort": "low"}),
    with_settings(options={"seed": 1, "reasoning_effort": None}),
]


def test_calls_that_differ_in_anything_a_model_sees_have_different_keys():
    keys = [call_key("openai:gpt-4o", call, 0) for call in [CALL, *DIFFERENT]]
    assert len(set(keys)) == len(keys)


def test_another_backend_or_repeat_has_another_key_also_at_temperature_zero():
    keys = {call_key(backend, CALL, repeat) for backend in ("openai:a", "openai:b") for repeat in range(3)}
    assert len(keys) == 6


def test_keys_stay_the_same_from_release_to_release():
    # A change here makes every stored reply unfindable: raise KEY_VERSION, and say so in the changelog.
    assert call_key("openai:gpt-4o", CALL, 0) == "53e930522564b827b18bcd7f18c6342c9e6f3a3dc56333af9539f006ec671e4f"


def test_nested_options_count_whatever_the_order_of_their_keys():
    one = with_settings(options={"extra_body": {"a": [1, {"x": 1, "y": 2}], "b": 2}})
    same = with_settings(options={"extra_body": MappingProxyType({"b": 2, "a": (1, {"y": 2, "x": 1})})})
    other = with_settings(options={"extra_body": {"a": [1, {"x": 1, "y": 3}], "b": 2}})
    assert call_key("m", one, 0) == call_key("m", same, 0) != call_key("m", other, 0)


def test_a_picture_with_its_bytes_has_the_key_of_its_reference():
    @dataclass(frozen=True, kw_only=True)
    class Picture(PictureRef):
        data: bytes = b"bytes"

    picture = Picture(digest=PICTURE.digest, width=640, height=480, mime="image/png")
    assert call_key("m", with_content(picture), 0) == call_key("m", with_content(PICTURE), 0)


@pytest.mark.parametrize("option", [object(), float("nan"), b"bytes", {1, 2}, {("a", "b"): 1}, {1: 2, "1": 3}])
def test_an_option_that_is_no_json_value_is_refused_with_its_role(option):
    with pytest.raises(LedgerError, match=r"settings of the receiver: an option cannot be part of a ledger key"):
        call_key("m", with_settings(options={"seed": option}), 0)


def test_a_key_takes_microseconds():
    # Measured: 12 us. The bound is twenty times that: a busy machine passes, a slow way to make keys does not.
    history = replace(CALL, messages=CALL.messages[1:] * 4)
    started = time.perf_counter()
    for _ in range(2000):
        call_key("openai:gpt-4o", history, 0)
    assert time.perf_counter() - started < 0.5
