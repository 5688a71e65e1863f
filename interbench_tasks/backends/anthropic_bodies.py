"""The bodies of Anthropic's Messages API: messages into what is sent, what came back into a reply's parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from interbench_tasks.backends.bodies import (
    Answer,
    answer_of,
    count_or_none,
    error_text,
    json_object_from,
    text_or_none,
    unusable,
    valid_text,
)
from interbench_tasks.errors import BackendError, near_miss
from interbench_tasks.records import UNKNOWN_USAGE, Message, PictureRef, Usage

ADDRESS_HINT = "it has no /v1 at its end"
LEAST_THINKING = 1024
"""Tokens; the API takes no smaller budget."""
PICTURE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
EMPTY_REPLY = "(empty reply)"
"""Stands for an empty reply of the model in a history: the API refuses a message without words."""
_FINISH_REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stop",
}
"""The API's reasons in the words that all backends share; others stay as they are."""


def system_of(messages: Sequence[Message]) -> str | None:
    """The system prompt, which the API takes apart from the messages; None where there is none.

    Raises: BackendError where it holds a picture.
    """
    system = [message for message in messages if message.role == "system"]
    if any(message.pictures for message in system):
        raise BackendError("a system message holds a picture; the API takes pictures from the user only")
    text = "\n\n".join(message.text for message in system)
    return valid_text(text) if text.strip() else None


def api_messages(messages: Sequence[Message]) -> list[dict[str, object]]:
    """The messages but the system prompt; texts and pictures keep their order and their message.

    Neighbours of one role become one message, as the API itself would make them.
    Raises: BackendError where the first or the last message is not the user's, where a user message is empty, or
        where a picture cannot be sent.
    """
    turns = [message for message in messages if message.role != "system"]
    if not turns or turns[0].role != "user" or turns[-1].role != "user":
        roles = ", ".join(message.role for message in turns) or "none"
        raise BackendError(f"the API wants the user's message first and last; the roles are: {roles}")
    sent: list[dict[str, object]] = []
    for role, group in groupby(turns, key=lambda message: message.role):
        content = [part for message in group for part in message.content]
        if role != "user" and any(isinstance(part, PictureRef) for part in content):
            raise BackendError(f"a {role} message holds a picture; the API takes pictures from the user only")
        sent.append({"role": role, "content": _content(role, content)})
    return sent


def _content(role: str, content: Sequence[str | PictureRef]) -> str | list[dict[str, object]]:
    """Plain text wherever there is no picture, else blocks."""
    blocks: list[dict[str, object]] = []
    text = ""
    for part in (*content, None):  # None: the end
        if isinstance(part, str):
            text += part
            continue
        if text.strip():  # the API refuses a block of white space alone
            blocks.append({"type": "text", "text": valid_text(text)})
        text = ""
        if part is not None:
            blocks.append({"type": "image", "source": _source(part)})
    if not blocks:
        if role == "user":
            raise BackendError("a user message is empty; the API refuses it")
        return EMPTY_REPLY
    if [block["type"] for block in blocks] == ["text"]:
        return str(blocks[0]["text"])
    return blocks


def _source(picture: PictureRef) -> dict[str, object]:
    data = getattr(picture, "base64", None)  # only `images.Picture`, which extends the reference, has it
    if not isinstance(data, str):
        raise BackendError(
            f"picture {picture.digest} came without its bytes (a PictureRef, not an images.Picture): it cannot be sent"
        )
    if picture.mime not in PICTURE_TYPES:
        raise BackendError(f"picture {picture.digest} is {picture.mime}; the API takes {', '.join(PICTURE_TYPES)}")
    return {"type": "base64", "media_type": picture.mime, "data": data}


def api_parameters(given: Mapping[str, object]) -> dict[str, object]:
    """Parameters as the API takes them: our short forms `thinking_budget`, `thinking` and `effort` are spelled out.

    Raises: BackendError where one of them cannot be read, or says a second time what another one says.
    """
    parameters = {name: value for name, value in given.items() if name not in ("effort", "thinking_budget")}
    budget, thinking, effort = given.get("thinking_budget"), given.get("thinking"), given.get("effort")
    if budget is not None:
        if not isinstance(budget, int) or isinstance(budget, bool) or budget < LEAST_THINKING:
            raise BackendError(f"thinking_budget = {budget!r} must be a whole number of at least {LEAST_THINKING}")
        if thinking is not None:
            raise BackendError("thinking and thinking_budget are both given; leave one out")
        parameters["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif isinstance(thinking, str):
        if thinking not in ("adaptive", "disabled"):
            hint = near_miss(thinking, ("adaptive", "disabled"))
            raise BackendError(f"thinking = {thinking!r}{hint}\n  allowed: adaptive, disabled, or the API's mapping")
        parameters["thinking"] = {"type": thinking}
    elif thinking is not None and not isinstance(thinking, Mapping):
        raise BackendError(f"thinking = {thinking!r} must be adaptive, disabled, or the API's mapping")
    if effort is not None:
        output = parameters.get("output_config") or {}
        if not isinstance(effort, str) or not isinstance(output, Mapping) or "effort" in output:
            raise BackendError(f"effort = {effort!r} must be a word, e.g. high, and be given once")
        parameters["output_config"] = {**output, "effort": effort}
    return {name: value for name, value in parameters.items() if value is not None}


def budget_of(thinking: object) -> int:
    """How many tokens a `thinking` parameter sets aside; the API counts them towards max_tokens."""
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return count_or_none(budget) or 0


def answer_from(body: bytes) -> Answer:
    """The answer in a 200's body; whatever cannot be used is an `error` that says what came instead."""
    data = json_object_from(body, address_hint=ADDRESS_HINT)
    if isinstance(data, Answer):
        return data
    usage, model = _usage(data.get("usage")), text_or_none(data.get("model"))
    content = data.get("content")
    if not isinstance(content, list):
        said = f"; the server says: {error_text(data)}" if data.get("error") else ""
        return unusable(f"a body without content{said}", usage=usage, model=model)
    reason = text_or_none(data.get("stop_reason"))
    answer = answer_of(
        _words(content, "text"),
        finish_reason=None if reason is None else _FINISH_REASONS.get(reason, reason),
        reasoning=_words(content, "thinking") or None,
        usage=usage,
        model=model,
        withheld=_withheld(data.get("stop_details")) if reason == "refusal" else "",
    )
    used = data.get("usage")
    cached = count_or_none(used.get("cache_read_input_tokens")) if isinstance(used, Mapping) else None
    return replace(answer, cached_input_tokens=cached)


def _words(content: Sequence[object], kind: str) -> str:
    """The words of all blocks of one kind (`text` or `thinking`); each keeps them under its kind's name."""
    blocks = [block for block in content if isinstance(block, Mapping) and block.get("type") == kind]
    return "".join(text_or_none(block.get(kind)) or "" for block in blocks)


def _withheld(details: object) -> str:
    """Why there is no reply, where the API's classifiers and not the model refused."""
    why = ""
    if isinstance(details, Mapping):
        told = [text_or_none(details.get("category")), text_or_none(details.get("explanation"))]
        why = ": ".join(word for word in told if word)
    return f"the server withheld the reply (stop_reason=refusal{f', {why}' if why else ''})"


def _usage(raw: object) -> Usage:
    """Token counts; None where the server does not tell, never 0. What is written to or read from a cache is input."""
    if not isinstance(raw, Mapping):
        return UNKNOWN_USAGE
    input_tokens = count_or_none(raw.get("input_tokens"))
    if input_tokens is not None:
        cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
        input_tokens += sum(count_or_none(raw.get(name)) or 0 for name in cached)
    details = raw.get("output_tokens_details")
    return Usage(
        calls=1,
        input_tokens=input_tokens,
        output_tokens=count_or_none(raw.get("output_tokens")),
        reasoning_tokens=count_or_none(details.get("thinking_tokens")) if isinstance(details, Mapping) else None,
    )
