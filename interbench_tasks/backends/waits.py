"""How long a server asks to wait before the next try, and what the SDKs must not make of it.

The SDKs read `Retry-After` themselves. But some versions sleep for hours where a server asks for it, and break off
where they cannot make sense of a date. So the headers are looked through before the SDK sees them.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping, MutableMapping
from typing import Protocol

LONGEST_S = 120.0
"""A longer wait is not waited for: the call fails and says how long the server asked to wait."""


class Response(Protocol):
    """A response of httpx or of httpx2, depending on the SDK's version."""

    @property
    def status_code(self) -> int:
        """Of HTTP."""
        ...

    @property
    def headers(self) -> MutableMapping[str, str]:
        """Names in any case."""
        ...


def asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: a number (also a fraction, or milliseconds) or a date; None for neither.

    >>> asked_wait_s({"retry-after": "1.5"}), asked_wait_s({"retry-after": "soon"})
    (1.5, None)
    """
    for name, factor in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) * factor
        except (KeyError, ValueError):
            continue
        if not math.isnan(wait_s):
            return wait_s
    until = _time_from(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _time_from(headers.get("date", ""))  # the server's own clock: ours may be wrong by hours
    return until - (time.time() if now is None else now)


def _time_from(text: str) -> float | None:
    """Unix time of a date in a header; None where it is none."""
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):  # each Python version has its own for an odd date
        return None


async def look_through_waits(response: Response) -> None:
    """A hook of the HTTP client: a wait too long is none, an unreadable one is taken out, a date is told in seconds."""
    if response.status_code < 400:
        return
    headers = response.headers
    wait_s = asked_wait_s(headers)
    if wait_s is None:
        for name in ("retry-after", "retry-after-ms"):
            headers.pop(name, None)
    elif wait_s > LONGEST_S:
        headers["x-should-retry"] = "false"
    elif _time_from(headers.get("retry-after", "")) is not None:
        headers["retry-after"] = f"{max(wait_s, 0):g}"  # the SDK would hold a date against our clock
