"""An exception as a text that may be shown and kept."""

from __future__ import annotations

from interbench_tasks.records import Reply
from interbench_tasks.redaction import redact

MOST_CHARACTERS = 500


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
