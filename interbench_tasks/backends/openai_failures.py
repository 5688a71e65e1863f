"""One short sentence for each way in which a call to an OpenAI-compatible server fails: what, where and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interbench_tasks.backends.chat_bodies import error_text
from interbench_tasks.records import UNKNOWN_USAGE, Usage

if TYPE_CHECKING:
    import openai

_NOTHING_PAID = Usage(calls=1)
_SAID_LENGTH = 240
_OVERFLOW = re.compile(
    r"context.?length|context window|maximum context|too many tokens|prompt is too long", re.IGNORECASE
)
_REFUSED = re.compile(
    r"unsupported|not support|n't support|only the default|deprecated|unknown|unrecogni[sz]ed|not permitted"
    r"|extra inputs",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where calls go, as failure texts name it; holds no key."""

    model: str
    address: str
    """Base URL."""
    key_variable: str
    """The environment variable that holds the key, or would."""
    has_key: bool
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A call that failed after the SDK's own retries."""

    text: str
    """Not yet redacted: the server's own words may be in it."""
    retries: int
    usage: Usage
    """Zero tokens where the server refused the call or was never reached, else unknown."""
    unreachable: bool
    """True where no connection came about."""


def failure_from(error: openai.APIError, endpoint: Endpoint) -> Failure:
    """What to say of a call that failed, and what it cost."""
    import openai

    retries = int(error.request.headers.get("x-stainless-retry-count", 0))
    after = f" after {retries} {'retry' if retries == 1 else 'retries'}" if retries else ""
    if isinstance(error, openai.APIStatusError):
        text = f"HTTP {error.status_code}{after}: {_status_text(error, endpoint)}"
        refused = error.status_code < 500 and error.status_code != 408
        return Failure(text=text, retries=retries, usage=_NOTHING_PAID if refused else UNKNOWN_USAGE, unreachable=False)
    if isinstance(error, openai.APITimeoutError) and not _never_connected(error):
        text = f"no reply within {endpoint.timeout_s:g} s{after}; raise timeout_s or lower max_concurrency"
        return Failure(text=text, retries=retries, usage=UNKNOWN_USAGE, unreachable=False)
    if isinstance(error, openai.APIConnectionError) and _never_connected(error):
        text = f"no connection{after}: is a server running at {endpoint.address}? ({_cause(error)})"
        return Failure(text=text, retries=retries, usage=_NOTHING_PAID, unreachable=True)
    text = f"the connection to {endpoint.address} broke off{after} ({_cause(error)})"
    return Failure(text=text, retries=retries, usage=UNKNOWN_USAGE, unreachable=False)


def refused_parameter(error: openai.APIStatusError, sent: frozenset[str]) -> str | None:
    """Which of `max_tokens` and `temperature` the server does not take at all, None where the fault is another one.

    A value out of range, or a conversation that does not fit, is another fault.
    """
    said = _said(error)
    if error.status_code not in (400, 422) or _OVERFLOW.search(said) or not _REFUSED.search(f"{error.code} {said}"):
        return None
    if "max_tokens" in sent and (error.param == "max_tokens" or "max_completion_tokens" in said):
        return "max_tokens"
    if "temperature" in sent and (error.param == "temperature" or re.search(r"\btemperature\b", said)):
        return "temperature"
    return None


def _status_text(error: openai.APIStatusError, endpoint: Endpoint) -> str:
    status, said = error.status_code, _said(error)
    quoted = f" (the server says: {said})" if said else ""
    if status in (401, 403):
        key = f"the key in {endpoint.key_variable}" if endpoint.has_key else "a call without a key"
        cure = "check it" if endpoint.has_key else f"set {endpoint.key_variable}, or name another variable: api_key_env"
        return f"the server refuses {key}; {cure}{quoted}"
    if status == 404:
        return f"no model '{endpoint.model}' at {endpoint.address}; check both, addresses mostly end in /v1{quoted}"
    if status == 413:
        return f"the conversation is too large for the server; send smaller or fewer pictures{quoted}"
    if status == 429:
        wait = error.response.headers.get("retry-after")
        asked = f"; the server asks to wait {wait} s" if wait else ""
        return f"rate limit or quota used up; lower max_concurrency or check the account{asked}{quoted}"
    if status >= 500:
        return f"the server at {endpoint.address} failed; see its own log{quoted}"
    if error.code == "context_length_exceeded" or _OVERFLOW.search(said):
        return f"the conversation does not fit the model; lower max_new_tokens or send smaller pictures{quoted}"
    return f"the server refuses the call{quoted}"


def _said(error: openai.APIStatusError) -> str:
    """The server's own words on one line, without HTML tags."""
    words = error_text(error.body) if error.body is not None else error.response.text
    words = " ".join(re.sub(r"<style.*?</style>|<[^>]*>", " ", words, flags=re.DOTALL).split())
    return words if len(words) <= _SAID_LENGTH else f"{words[:_SAID_LENGTH]}..."


def _never_connected(error: openai.APIConnectionError) -> bool:
    """By the name of the class: the SDK runs on httpx or on httpx2, depending on its version."""
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ProxyError")


def _cause(error: openai.APIError) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
