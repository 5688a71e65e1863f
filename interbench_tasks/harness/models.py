"""Models that the harness can load by name: any API backend of ours as the receiver, and the simulation."""

from __future__ import annotations

import asyncio
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts
from lmms_eval.api.model import lmms

from interbench_tasks.errors import BackendError
from interbench_tasks.generation import generation_settings_from
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.images import picture_from
from interbench_tasks.plugin_manager import Offers, build_plugin_manager, offers_from
from interbench_tasks.records import Episode, GenerationSettings, Message, PictureRef, Reply
from interbench_tasks.role_words import RoleWords, option_value, role_words_from
from interbench_tasks.task_roles import Role, backend_from

HARNESS_OPTIONS = ("batch_size", "max_batch_size", "device")
"""The harness hands these to every model; an API has no use for them."""


class _BackendModel(lmms):  # type: ignore[misc] # the harness is untyped
    """A harness model that answers through a backend of ours, natively asynchronous in our tasks."""

    is_simple = False
    chat_template = apply_chat_template = None
    """The harness reads both with --apply_chat_template, before our tasks can refuse it."""

    def __init__(self, words: RoleWords) -> None:
        super().__init__()
        self.interbench_words = words
        self.batch_size = 1
        self._offers: Offers = offers_from(build_plugin_manager())
        self.interbench_backend()  # a wrong option or a missing key stops the run before anything is loaded

    def interbench_backend(self) -> Backend:
        """A fresh backend; each run has its own, because its connections belong to that run's event loop."""
        if self.interbench_words.backend not in self._offers.backends:
            allowed = ", ".join(sorted(self._offers.backends))
            raise BackendError(f"--model_args model = {self.interbench_words.backend!r}: allowed backends: {allowed}")
        role = Role(
            words=self.interbench_words,
            settings=GenerationSettings(max_new_tokens=1, temperature=0.0),
            named_in="--model_args",
        )
        return backend_from(role, self._offers)

    @property
    def device(self) -> str:
        """Where the harness puts the small tensors that its ranks exchange."""
        return "cpu"

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Not offered: an API gives no likelihoods."""
        raise NotImplementedError("interbench_api has no likelihoods; choose a task that generates text")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        """Not offered: our tasks play their rounds themselves."""
        raise NotImplementedError("interbench_api does not play the harness's own multi-round tasks")

    def generate_until(self, requests: list[Instance]) -> list[GenerationResult]:
        """Plain tasks of the harness also work; a failing call is the harness's own failure text."""
        return asyncio.run(self._answer_all(requests))

    async def _answer_all(self, requests: list[Instance]) -> list[GenerationResult]:
        backend = self.interbench_backend()
        slots = asyncio.Semaphore(getattr(backend, "max_concurrency", 16))

        async def answer(request: Instance) -> GenerationResult:
            async with slots:
                return _result_from(await backend.reply(self._call_from(request)))

        try:
            return await asyncio.gather(*[answer(request) for request in requests])
        finally:
            await backend.close()

    def _call_from(self, request: Instance) -> Call:
        _, doc_to_messages, generation, doc_id, task, split = request.args
        messages = tuple(_message_from(message) for message in doc_to_messages(self.task_dict[task][split][doc_id]))
        settings = generation_settings_from({"max_new_tokens": 1024, "temperature": 0.0, "until": [], **generation})
        question = next((message for message in messages if message.role == "user"), messages[0])
        episode = Episode(id=str(doc_id), doc_id=int(doc_id), question=question, target="")
        return Call(messages=messages, settings=settings, role="receiver", purpose="answer", episode=episode)


def _message_from(message: dict[str, Any]) -> Message:
    content = message["content"]
    if isinstance(content, str):
        return Message(role=message["role"], content=(content,))
    return Message(role=message["role"], content=tuple(_part_from(part) for part in content))


def _part_from(part: dict[str, Any]) -> str | PictureRef:
    if part["type"] == "text":
        return str(part["text"])
    if part["type"] == "image":
        return picture_from(part["url"], where="this task's picture")
    raise BackendError(f"interbench_api sends texts and pictures; this task has a part of type {part['type']!r}")


def _result_from(reply: Reply) -> GenerationResult:
    if not reply.usable:
        return GenerationResult(text=f"[LMMS_EVAL_REQUEST_FAILED] {reply.error}")
    usage = reply.usage
    counts = TokenCounts(usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)
    return GenerationResult(text=reply.text, token_counts=counts)


def _read(key: str, value: object) -> object:
    """A value of --model_args as a role's words would be read: the harness leaves lists, objects and null as texts.

    Raises: BackendError where it begins like JSON and is none.
    """
    if not isinstance(value, str):
        return value
    read = option_value(value)
    if isinstance(read, str) and read.lstrip().startswith(("{", "[")):
        raise BackendError(
            f"--model_args {key} is no JSON; the shell must leave its quotes alone: put the whole of --model_args into "
            f'single quotes, e.g. --model_args \'model=openai:NAME,{key}={{"x-title": "bench"}}\''
        )
    return read


class InterbenchAPI(_BackendModel):
    """`--model interbench_api --model_args model=openai:qwen2.5-vl@http://localhost:8000/v1,max_concurrency=32`."""

    def __init__(self, model: str = "", **options: Any) -> None:
        if not model:
            raise BackendError("--model_args must name a model, e.g. model=openai:gpt-4o-2024-08-06")
        words = role_words_from(str(model))
        own = {key: _read(key, value) for key, value in options.items() if key not in HARNESS_OPTIONS}
        super().__init__(RoleWords(backend=words.backend, model=words.model, options={**words.options, **own}))


class InterbenchSimulated(_BackendModel):
    """`--model interbench_simulated --model_args accuracy=0.4,seed=1`: a simulation, for demos and tests."""

    def __init__(self, model: str = "default", **options: Any) -> None:
        own = {key: value for key, value in options.items() if key not in HARNESS_OPTIONS}
        super().__init__(RoleWords(backend="simulated", model=str(model), options=own))
