"""What the bodies of all chat APIs have in common: the answer in a 200, and text wherever a server may put it.

Pure functions on JSON values, without any SDK: servers that call themselves compatible leave fields out, send null or
put an error into a 200, so nothing about a body is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interbench_tasks.records import UNKNOWN_USAGE, ReplyStatus, Usage
from interbench_tasks.redaction import redact

_READ_BYTES = 8192
"""Of a body that is quoted; keys are shorter."""
_ABSURD = 1 << 40
"""Tokens that no call has; a reply that is paid for must not be lost for what stands beside it."""
_OWN_ENDS = ("stop", "length")
"""Finish reasons after which an empty text is the model's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a 200's body holds."""

    status: ReplyStatus
    text: str = ""
    finish_reason: str | None = None
    reasoning: str | None = None
    usage: Usage = UNKNOWN_USAGE
    cached_input_tokens: int | None = None
    """Of the input tokens, those that the server read from its own cache; None where it does not tell."""
    model: str | None = None
    error: str | None = None
    """Why there is no text, where the status is not `ok`."""
    asking_again_may_help: bool = False
    """True where the body could not be used at all, which the SDK does not retry."""


def json_object_from(body: bytes, *, address_hint: str) -> Mapping[str, object] | Answer:
    """The JSON object in a 200's body, else an `error` that says what came instead.

    Args: address_hint = how the API's address usually looks, for a server that answers with a web page.
    """
    if not body.strip():
        return unusable("an empty body")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        page = body.lstrip()[:1] == b"<"
        what = f"an HTML page (is this the API's address? {address_hint})" if page else "malformed JSON"
        return unusable(f"{what}: {_beginning(body)}")
    if not isinstance(data, Mapping):
        return unusable(f"JSON that is no object: {_beginning(body)}")
    return data


def answer_of(
    text: str, *, finish_reason: str | None, reasoning: str | None, usage: Usage, model: str | None, withheld: str = ""
) -> Answer:
    """The answer that these parts make. An empty text is the model's own where it ended by itself or at its limit.

    Args: withheld = who kept an empty text back and why; '' where nobody did.
    """
    status: ReplyStatus = "ok"
    error = None
    if not text and finish_reason not in _OWN_ENDS:
        status = "error" if withheld else "empty"
        error = withheld or f"an empty reply whose finish_reason is {finish_reason!r}: nobody knows why"
    return Answer(
        status=status,
        text=valid_text(text),
        finish_reason=finish_reason,
        reasoning=valid_text(reasoning) if reasoning else None,
        usage=usage,
        model=model,
        error=error,
    )


def unusable(what: str, *, usage: Usage = UNKNOWN_USAGE, model: str | None = None) -> Answer:
    """A 200 that holds no answer; worth asking once more."""
    return Answer(status="error", error=f"HTTP 200 with {what}", usage=usage, model=model, asking_again_may_help=True)


def valid_text(text: str) -> str:
    """The text, with lone halves of surrogate pairs replaced by U+FFFD: they can be neither sent nor stored.

    A server that cuts a reply inside an emoji sends such a half.
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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


def count_or_none(value: object) -> int | None:
    """A token count; None where the server does not tell, or tells an absurd one; never 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _ABSURD else None


def text_or_none(value: object) -> str | None:
    """A text that says something, else None."""
    return value if isinstance(value, str) and value else None


def _beginning(body: bytes) -> str:
    text = redact(body[:_READ_BYTES].decode("utf-8", "replace"))  # before the cut, or a piece of a key would survive
    return repr(text[:80])
