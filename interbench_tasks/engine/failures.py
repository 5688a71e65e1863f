"""An exception as a text that may be shown and kept."""

from __future__ import annotations

from typing import get_args

from interbench_tasks.records import Reply, ReplyRun, ReplyStatus, Usage
from interbench_tasks.redaction import redact

MOST_CHARACTERS = 500
_MOST_SHOWN = 80
_MOST_TOKENS = 1 << 53
_STATUSES = get_args(ReplyStatus)
_TEXTS_OR_NONE = ("finish_reason", "reasoning", "error", "model")


def text_of_failure(error: BaseException) -> str:
    r"""Kind and text of an error on one line, keys redacted, at most 500 characters.

    >>> text_of_failure(ValueError("no such\n  shape"))
    'ValueError: no such shape'
    >>> text_of_failure(TimeoutError())
    'TimeoutError'
    """
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a stranger's error class may fail at its own text; the kind is still worth knowing
        said = ""
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    text = " ".join(redact(text).split())  # before cutting, or a piece of a key would survive
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def failed_reply(why: str) -> Reply:
    """The reply that stands for a call that failed; `why` is redacted already."""
    return Reply(text="", status="error", error=why)


def checked_reply(reply: object, name: str) -> Reply:
    """What a backend gave, where it is a whole `Reply`; else a failed one that says whose backend gave what.

    >>> checked_reply(None, "openai:m").error
    'openai:m gave a NoneType, no Reply'
    """
    if not isinstance(reply, Reply):
        return failed_reply(f"{name} gave a {type(reply).__name__}, no Reply")
    wrong = _wrong_part(reply)
    return reply if wrong is None else failed_reply(f"{name} gave a Reply with {wrong}")


def _wrong_part(reply: Reply) -> str | None:
    """What is wrong in a reply of a stranger's backend: nothing checks the types of a dataclass when it is made.

    Such a part would stop the run later, where the reply is written to the ledger or the transcript.
    """
    if not isinstance(reply.text, str):
        return f"text = {_shown(reply.text)}, which is no text"
    if reply.status not in _STATUSES:
        return f"status = {_shown(reply.status)}; allowed: {', '.join(_STATUSES)}"
    for name in _TEXTS_OR_NONE:
        value = getattr(reply, name)
        if value is not None and not isinstance(value, str):
            return f"{name} = {_shown(value)}, which is neither text nor None"
    if reply.usable and reply.error is not None:
        return f"status = 'ok' and error = {_shown(reply.error)}; a failed call has the status 'error'"
    usage = reply.usage
    if not isinstance(usage, Usage) or not isinstance(reply.run, ReplyRun):
        return f"usage = {_shown(usage)} and run = {_shown(reply.run)}; they must be a Usage and a ReplyRun"
    for count in (usage.calls, usage.input_tokens or 0, usage.output_tokens or 0, usage.reasoning_tokens or 0):
        if not isinstance(count, int) or not 0 <= count < _MOST_TOKENS:
            return f"a count of {_shown(count)} in its usage; a count is a whole number, and None where it is unknown"
    return None


def _shown(value: object) -> str:
    """A value for an error text: short, without keys, and whatever its own `repr` does."""
    try:
        text = redact(repr(value))
    except Exception:  # noqa: BLE001 - a stranger's repr may fail; its type is still worth knowing
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
