"""The bodies of the chat completions API: messages into what is sent, what came back into a reply's parts.

Pure functions on JSON values, without the SDK: servers that call themselves compatible leave fields out, send null or
put an error into a 200, so nothing about a body is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interbench_tasks.errors import BackendError
from interbench_tasks.records import UNKNOWN_USAGE, Message, PictureRef, ReplyStatus, Usage

_OWN_ENDS = ("stop", "length")
"""Finish reasons after which an empty text is the model's own."""


def chat_messages(messages: Sequence[Message], image_detail: str | None = None) -> list[dict[str, object]]:
    """The messages as the API takes them; texts and pictures keep their order and their message.

    Args: image_detail = `low`, `high` or `auto`, sent with every picture; None sends none.
    Raises: BackendError where a picture came without its bytes, or stands outside a user message.
    """
    return [{"role": message.role, "content": _content(message, image_detail)} for message in messages]


def _content(message: Message, image_detail: str | None) -> str | list[dict[str, object]]:
    """Plain text wherever there is no picture: more servers take it than a list of one part."""
    if not message.pictures:
        return valid_text(message.text)
    if message.role != "user":
        raise BackendError(f"a {message.role} message holds a picture; the API takes pictures from the user only")
    parts: list[dict[str, object]] = []
    for part in message.content:
        if isinstance(part, PictureRef):
            parts.append({"type": "image_url", "image_url": _image_url(part, image_detail)})
        elif part:  # servers refuse an empty text part
            parts.append({"type": "text", "text": valid_text(part)})
    return parts


def _image_url(picture: PictureRef, image_detail: str | None) -> dict[str, object]:
    data_url = getattr(picture, "data_url", None)  # only `images.Picture`, which extends the reference, has it
    if not isinstance(data_url, str):
        raise BackendError(
            f"picture {picture.digest} came without its bytes (a PictureRef, not an images.Picture): it cannot be sent"
        )
    return {"url": data_url, "detail": image_detail} if image_detail else {"url": data_url}


def valid_text(text: str) -> str:
    """The text, with lone halves of surrogate pairs replaced by U+FFFD: they can be neither sent nor stored.

    A server that cuts a reply inside an emoji sends such a half.
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a 200's body holds."""

    status: ReplyStatus
    text: str = ""
    finish_reason: str | None = None
    reasoning: str | None = None
    usage: Usage = UNKNOWN_USAGE
    model: str | None = None
    error: str | None = None
    """Why there is no text, where the status is `error`."""
    asking_again_may_help: bool = False
    """True where the body could not be used at all, which the SDK does not retry."""


def answer_from(body: bytes) -> Answer:
    """The answer in a 200's body; whatever cannot be used is an `error` that says what came instead."""
    if not body.strip():
        return _unusable("an empty body")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        page = body.lstrip()[:1] == b"<"
        what = "an HTML page (is this the API's address? it mostly ends in /v1)" if page else "malformed JSON"
        return _unusable(f"{what}: {_beginning(body)}")
    if not isinstance(data, Mapping):
        return _unusable(f"JSON that is no object: {_beginning(body)}")
    usage, model = _usage(data.get("usage")), _text_or_none(data.get("model"))
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, Sequence) and choices and not isinstance(choices, str) else None
    if not isinstance(first, Mapping):
        said = f"; the server says: {error_text(data)}" if data.get("error") else ""
        return _unusable(f"a body without choices{said}", usage=usage, model=model)
    if first.get("error"):  # a router's way to say that the model behind it broke off
        return _unusable(f"a choice that failed: {error_text(first)}", usage=usage, model=model)
    if not isinstance(first.get("message"), Mapping):
        return _unusable("a choice without a message", usage=usage, model=model)
    return _answer(first["message"], _text_or_none(first.get("finish_reason")), usage, model)


def _answer(message: Mapping[str, object], finish_reason: str | None, usage: Usage, model: str | None) -> Answer:
    text, reasoning = _text_and_reasoning(message)
    status: ReplyStatus = "ok"
    error = None
    if not text and finish_reason not in _OWN_ENDS:
        filtered = finish_reason == "content_filter"
        status = "error" if filtered else "empty"
        error = (
            "the server's content filter withheld the reply (finish_reason=content_filter)"
            if filtered
            else f"an empty reply whose finish_reason is {finish_reason!r}: nobody knows why"
        )
    return Answer(
        status=status,
        text=text,
        finish_reason=finish_reason,
        reasoning=reasoning,
        usage=usage,
        model=model,
        error=error,
    )


def _text_and_reasoning(message: Mapping[str, object]) -> tuple[str, str | None]:
    """The model's words, and what it thought. A refusal without content is the model's own words."""
    content = message.get("content")
    thought = [joined(message.get(key)) for key in ("reasoning_content", "reasoning", "reasoning_details")]
    if isinstance(content, Sequence) and not isinstance(content, str):
        thinking = [part for part in content if isinstance(part, Mapping) and part.get("type") in _THINKING]
        content = joined([part for part in content if part not in thinking])
        thought.append(joined(thinking))
    text = content if isinstance(content, str) else ""
    if not text and isinstance(message.get("refusal"), str):
        text = str(message["refusal"])
    reasoning = next((words for words in thought if words), None)
    return valid_text(text), None if reasoning is None else valid_text(reasoning)


_THINKING = ("thinking", "reasoning", "redacted_thinking")


def joined(value: object) -> str:
    """All text in a string, or in a list or object of text parts, in order; '' where there is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return next((joined(value[key]) for key in ("text", "thinking", "summary", "content") if value.get(key)), "")
    if isinstance(value, Sequence):
        return "".join(joined(part) for part in value)
    return ""


def error_text(body: object) -> str:
    """What a server says went wrong, whichever of the usual shapes it uses; '' where it says nothing."""
    if isinstance(body, Mapping):
        for key in ("error", "message", "detail", "msg"):
            if body.get(key):
                return error_text(body[key])
        return json.dumps(dict(body), default=str) if body else ""
    if isinstance(body, list | tuple):
        return "; ".join(error_text(item) for item in body)
    return "" if body is None else str(body)


def _usage(raw: object) -> Usage:
    """Token counts; None where the server does not tell, never 0."""
    if not isinstance(raw, Mapping):
        return UNKNOWN_USAGE
    details = raw.get("completion_tokens_details")
    return Usage(
        calls=1,
        input_tokens=_count(raw.get("prompt_tokens")),
        output_tokens=_count(raw.get("completion_tokens")),
        reasoning_tokens=_count(details.get("reasoning_tokens")) if isinstance(details, Mapping) else None,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _unusable(what: str, *, usage: Usage = UNKNOWN_USAGE, model: str | None = None) -> Answer:
    return Answer(status="error", error=f"HTTP 200 with {what}", usage=usage, model=model, asking_again_may_help=True)


def _beginning(body: bytes) -> str:
    return repr(body[:80].decode("utf-8", "replace"))
