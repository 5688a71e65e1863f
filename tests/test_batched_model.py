"""A harness model as the engine's batches see it."""

from __future__ import annotations

import io
import sys

import pytest
from lmms_eval.api.instance import GenerationResult, TokenCounts
from tqdm import tqdm

from interbench_tasks import Call, GenerationSettings, Message
from interbench_tasks.harness.batched_model import (
    API_BATCH,
    HarnessModel,
    batch_size_of,
    generation_kwargs,
    quiet_bars,
    reply_from,
    text_of,
)
from tests.testing import make_episode

SETTINGS = GenerationSettings(max_new_tokens=9, temperature=0.0, until=("X",), options={"num_beams": 2})


def messages(*texts: str) -> list[Message]:
    return [Message(role=("user", "assistant")[i % 2], content=(text,)) for i, text in enumerate(texts)]


def test_a_single_message_is_its_text():
    assert text_of(messages("Why?")) == "Why?"


def test_a_history_names_its_speakers():
    assert text_of(messages("Why?", "So.", "No.")) == "User: Why?\n\nAssistant: So.\n\nUser: No.\n\nAssistant:"


def test_generation_settings_are_in_the_harness_words_and_fresh_each_time():
    made = generation_kwargs(SETTINGS)
    assert made == {"max_new_tokens": 9, "temperature": 0.0, "do_sample": False, "until": ["X"], "num_beams": 2}
    made["until"].append("Y")
    assert generation_kwargs(SETTINGS)["until"] == ["X"]


def test_sampling_follows_the_temperature():
    warm = GenerationSettings(max_new_tokens=9, temperature=0.7, top_p=0.9)
    assert generation_kwargs(warm)["do_sample"] is True
    assert generation_kwargs(warm)["top_p"] == 0.9


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        ("Answer: B", "ok", "Answer: B"),
        (" \n", "ok", " \n"),
        ("", "empty", ""),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "error", ""),
        ("[LMMS_EVAL_BUDGET_EXCEEDED]", "error", ""),
        ('Error: can only concatenate str (not "NoneType") to str', "empty", ""),  # async_openai, `content: null`
        (" \n[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "error", ""),
        (GenerationResult(text="B"), "ok", "B"),
    ],
)
def test_what_a_backend_returns_becomes_a_reply(output, status, text):
    reply = reply_from(output)
    assert (reply.status, reply.text) == (status, text)
    assert (reply.error is None) == (status == "ok")


@pytest.mark.parametrize("output", [None, 5, b"Answer: B", ["a", "b", "c"], GenerationResult(text=None)])
def test_what_is_no_text_is_no_answer(output):
    reply = reply_from(output)
    assert (reply.status, reply.text) == ("error", "")
    assert "returned no text but" in reply.error


def test_token_counts_are_kept_and_missing_ones_are_unknown():
    usage = reply_from(GenerationResult(text="B", token_counts=TokenCounts(input_tokens=7, output_tokens=3))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (7, 3, None)
    assert reply_from("B").usage.input_tokens is None


def test_secrets_in_a_failure_text_are_not_kept():
    reply = reply_from("[LMMS_EVAL_REQUEST_FAILED] api_key=sk-test-0123456789abcdef")
    assert "0123456789abcdef" not in reply.error


class _Local:
    batch_size = 8


class _Broken:
    @property
    def batch_size(self):
        return self.batch_size_per_gpu


def test_a_local_model_has_its_own_batch_size():
    assert batch_size_of(_Local(), {}) == 8


@pytest.mark.parametrize("lm", [_Broken(), type("M", (), {"batch_size": "auto"})(), type("M", (), {"batch_size": 0})()])
def test_a_missing_or_meaningless_batch_size_means_all_that_waits(lm):
    assert batch_size_of(lm, {}) == API_BATCH


def test_a_server_backend_gets_all_that_waits():
    assert batch_size_of(_Local(), {"base_url": "http://localhost"}) == API_BATCH
    server = type("OpenAICompatible", (), {"batch_size": 1, "__module__": "lmms_eval.models.chat.openai"})()
    assert batch_size_of(server, {}) == API_BATCH


def say(*pieces: str) -> None:
    for piece in pieces:  # print() writes its line end apart
        sys.stderr.write(piece)


def shown(monkeypatch, draw) -> str:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    outer = tqdm(total=2, file=sys.stderr)
    before = stream.tell()
    with quiet_bars():
        draw()
    text = stream.getvalue()[before:]
    outer.close()
    return text


def test_the_bars_of_a_backend_are_hidden(monkeypatch):
    def draw():
        for _ in tqdm(range(3), desc="Model Responding"):
            pass

    assert shown(monkeypatch, draw) == ""


def test_warnings_of_a_backend_are_shown(monkeypatch):
    def draw():
        bar = tqdm(total=3, desc="Model Responding")
        say("careful\n")
        bar.update(1)
        say("a", " b", "\n")
        bar.close()
        say("\nlate", "\n")

    assert shown(monkeypatch, draw) == "careful\na b\n\nlate\n"


class FirstSettingsForAll:
    """A harness backend as most are: the first request's settings hold for the whole batch."""

    is_simple = False

    def __init__(self):
        self.task_dict = {}
        self.batches = []

    def generate_until(self, requests):
        limit = requests[0].args[2]["max_new_tokens"]
        self.batches.append(len(requests))
        return [f"{request.args[1](self._doc(request))[0]['content'][0]['text']}:{limit}" for request in requests]

    def _doc(self, request):
        return self.task_dict[request.args[4]][request.args[5]][request.args[3]]


def test_calls_of_different_settings_never_share_a_batch():
    lm = FirstSettingsForAll()
    model = HarnessModel(lm, name="m", fingerprint="m", batch_size=8)
    calls = [
        Call(
            messages=tuple(messages(f"q{number}")),
            settings=GenerationSettings(max_new_tokens=limit, temperature=0.0),
            role="receiver",
            purpose="answer",
            episode=make_episode(),
        )
        for number, limit in enumerate((5, 9, 5, 9, 9))
    ]
    assert [reply.text for reply in model.generate(calls)] == ["q0:5", "q1:9", "q2:5", "q3:9", "q4:9"]
    assert lm.batches == [2, 3]
