"""Keeps keys out of the tracebacks that the harness prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interbench_tasks.engine import text_of_failure
from interbench_tasks.errors import HarnessError, InterbenchError
from interbench_tasks.redaction import redact, shown_cause


@contextmanager
def keys_hidden() -> Iterator[None]:
    """Lets every error through as it is, but one whose traceback would show a key: of that, the redacted text is left.

    Raises: HarnessError in its place.
    """
    try:
        yield
    except Exception as error:
        if shown_cause(error) is not None:
            raise
        told = redact(str(error)) if isinstance(error, InterbenchError) else text_of_failure(error)
        raise HarnessError(told) from None
