"""The bodies of the chat completions API: messages into what is sent, what came back into a reply's parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from interbench_tasks.backends.bodies import (
    Answer,
    answer_of,
    count_or_none,
    error_text,
    joined,
    json_object_from,
    text_or_none,
    unusable,
    valid_text,
)
from interbench_tasks.errors import BackendError
from interbench_tasks.records import UNKNOWN_USAGE, Message, PictureRef, Usage

ADDRESS_HINT = "it mostly ends in /v1"
_THINKING = ("thinking", "reasoning", "redacted_thinking")


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


def answer_from(body: bytes) -> Answer:
    """The answer in a 200's body; whatever cannot be used is an `error` that says what came instead."""
    data = json_object_from(body, address_hint=ADDRESS_HINT)
    if isinstance(data, Answer):
        return data
    usage, model = _usage(data.get("usage")), text_or_none(data.get("model"))
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, Sequence) and choices and not isinstance(choices, str) else None
    if not isinstance(first, Mapping):
        said = f"; the server says: {error_text(data)}" if data.get("error") else ""
        return unusable(f"a body without choices{said}", usage=usage, model=model)
    if first.get("error"):  # a router's way to say that the model behind it broke off
        return unusable(f"a choice that failed: {error_text(first)}", usage=usage, model=model)
    message = first.get("message")
    if not isinstance(message, Mapping):
        return unusable("a choice without a message", usage=usage, model=model)
    content = message.get("content", message.get("refusal", ...))
    if not (content is None or isinstance(content, str | list)):
        said = "no content" if content is ... else f"content that is no text but {type(content).__name__}"
        return unusable(f"a message with {said}", usage=usage, model=model)
    finish_reason = text_or_none(first.get("finish_reason"))
    if finish_reason == "error":
        return unusable("finish_reason=error: the model broke off", usage=usage, model=model)
    filtered = "the server's content filter withheld the reply (finish_reason=content_filter)"
    answer = answer_of(
        _text(message),
        finish_reason=finish_reason,
        reasoning=_reasoning(message),
        usage=usage,
        model=model,
        withheld=filtered if finish_reason == "content_filter" else "",
    )
    return replace(answer, cached_input_tokens=_cached(data.get("usage")))


def _text(message: Mapping[str, object]) -> str:
    """The model's words. A refusal without content is the model's own words."""
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        content = joined([part for part in content if not _is_thinking(part)])
    text = content if isinstance(content, str) else ""
    return text or text_or_none(message.get("refusal")) or ""


def _reasoning(message: Mapping[str, object]) -> str | None:
    """What the model thought, wherever servers put it."""
    thought = [joined(message.get(key)) for key in ("reasoning_content", "reasoning", "reasoning_details")]
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        thought.append(joined([part for part in content if _is_thinking(part)]))
    return next((words for words in thought if words), None)


def _is_thinking(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _THINKING


def _cached(raw: object) -> int | None:
    """Input tokens that the server read from its own cache; None where it does not tell."""
    details = raw.get("prompt_tokens_details") if isinstance(raw, Mapping) else None
    return count_or_none(details.get("cached_tokens")) if isinstance(details, Mapping) else None


def _usage(raw: object) -> Usage:
    """Token counts; None where the server does not tell, never 0."""
    if not isinstance(raw, Mapping):
        return UNKNOWN_USAGE
    details = raw.get("completion_tokens_details")
    return Usage(
        calls=1,
        input_tokens=count_or_none(raw.get("prompt_tokens")),
        output_tokens=count_or_none(raw.get("completion_tokens")),
        reasoning_tokens=count_or_none(details.get("reasoning_tokens")) if isinstance(details, Mapping) else None,
    )
