"""One short sentence for each way in which a call to an API fails: what, where and what to do.

The official SDKs of OpenAI and Anthropic come from one generator and name their errors alike, so one file reads both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from interbench_tasks.backends.bodies import error_text
from interbench_tasks.backends.waits import asked_wait_s
from interbench_tasks.records import UNKNOWN_USAGE, Usage
from interbench_tasks.redaction import redact

if TYPE_CHECKING:
    import anthropic
    import openai

    SdkError: TypeAlias = openai.APIError | anthropic.APIError
    StatusError: TypeAlias = openai.APIStatusError | anthropic.APIStatusError

_NOTHING_PAID = Usage(calls=1)
_SAID_LENGTH = 240
_OVERFLOW = re.compile(
    r"context.?length|context window|maximum context|too many tokens|prompt is too long|exceed context limit",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"unsupported|not support|n't support|only the default|deprecated|unknown|unrecogni[sz]ed|not permitted"
    r"|extra inputs|cannot both be|may only be set to 1|or unset",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"credit balance|insufficient.{0,9}(credit|quota|funds)", re.IGNORECASE)
_LARGE_PICTURE = re.compile(r"image.{0,60}(exceed|too large|dimension)", re.IGNORECASE)


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
    address_hint: str
    """How such an address usually looks, e.g. `addresses mostly end in /v1`."""


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
    overflow: bool = False
    """True where the server says that the conversation does not fit the model."""


def failure_from(error: SdkError, endpoint: Endpoint, sdk: ModuleType) -> Failure:
    """What to say of a call that failed, and what it cost. Args: sdk = the module that `error` comes from."""
    retries = int(error.request.headers.get("x-stainless-retry-count", 0))
    after = f" after {retries} {'retry' if retries == 1 else 'retries'}" if retries else ""
    if isinstance(error, sdk.APIStatusError):
        text = f"HTTP {error.status_code}{after}: {_status_text(error, endpoint)}"
        refused = error.status_code < 500 and error.status_code != 408
        usage = _NOTHING_PAID if refused else UNKNOWN_USAGE
        overflow = error.status_code in (400, 413, 422) and _is_overflow(error, said(error))
        return Failure(text=text, retries=retries, usage=usage, unreachable=False, overflow=overflow)
    if isinstance(error, sdk.APITimeoutError) and not _never_connected(error):
        text = f"no reply within {endpoint.timeout_s:g} s{after}; raise timeout_s or lower max_concurrency"
        return Failure(text=text, retries=retries, usage=UNKNOWN_USAGE, unreachable=False)
    if isinstance(error, sdk.APIConnectionError) and _never_connected(error):
        text = f"no connection{after}: is a server running at {endpoint.address}? ({_cause(error)})"
        return Failure(text=text, retries=retries, usage=_NOTHING_PAID, unreachable=True)
    text = f"the connection to {endpoint.address} broke off{after} ({_cause(error)})"
    return Failure(text=text, retries=retries, usage=UNKNOWN_USAGE, unreachable=False)


def refusal_of_a_parameter(error: StatusError) -> str | None:
    """The server's words where it does not take some parameter at all, None where the fault is another one.

    A value out of range, or a conversation that does not fit, is another fault.
    """
    words = said(error)
    refused = error.status_code in (400, 422) and not _OVERFLOW.search(words)
    return words if refused and _REFUSED.search(f"{_code(error)} {words}") else None


def _status_text(error: StatusError, endpoint: Endpoint) -> str:
    words = said(error)
    quoted = f" (the server says: {words})" if words else ""
    return f"{_cure(error, words, endpoint)}{quoted}"


def _cure(error: StatusError, words: str, endpoint: Endpoint) -> str:
    """What happened and what to do, by the status alone and then by what a refused call says."""
    status = error.status_code
    if status in (401, 403):
        key = f"the key in {endpoint.key_variable}" if endpoint.has_key else "a call without a key"
        cure = "check it" if endpoint.has_key else f"set {endpoint.key_variable}, or name another variable: api_key_env"
        return f"the server refuses {key}; {cure}"
    if status == 404:
        return f"no model '{endpoint.model}' at {endpoint.address}; check both, {endpoint.address_hint}"
    if status == 413:
        return "the conversation is too large for the server; send smaller or fewer pictures"
    if status == 429:
        wait_s = asked_wait_s(error.response.headers)
        asked = f"; the server asks to wait {wait_s:.0f} s" if wait_s is not None and wait_s >= 1 else ""
        return f"rate limit or quota used up; lower max_concurrency or check the account{asked}"
    if status == 529:
        return "the server is overloaded; lower max_concurrency, or run the same command again later"
    if status >= 500:
        return f"the server at {endpoint.address} failed; see its own log"
    if status == 402 or _NO_CREDIT.search(words):
        return "the account has no credit left; add some, then run the same command again"
    if _is_overflow(error, words):
        return "the conversation does not fit the model; lower max_new_tokens or send smaller pictures"
    if _LARGE_PICTURE.search(words):
        return "a picture is too large for the server; set pictures: {max_side: ...} in the task"
    return "the server refuses the call"


def _is_overflow(error: StatusError, words: str) -> bool:
    return _code(error) == "context_length_exceeded" or _OVERFLOW.search(words) is not None


def said(error: StatusError) -> str:
    """The server's own words on one line, without HTML tags, redacted: a piece of a key would survive the cut."""
    words = error_text(error.body) if error.body is not None else error.response.text
    words = " ".join(re.sub(r"<style.*?</style>|<[^>]*>", " ", words, flags=re.DOTALL).split())
    words = redact(words)
    return words if len(words) <= _SAID_LENGTH else f"{words[:_SAID_LENGTH]}..."


def _code(error: StatusError) -> str:
    """OpenAI's own word for the fault; '' elsewhere."""
    return str(getattr(error, "code", None) or "")


def _never_connected(error: SdkError) -> bool:
    """By the name of the class: the SDKs run on httpx or on httpx2, depending on their version."""
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ProxyError")


def _cause(error: SdkError) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
