"""Takes keys and tokens out of any text before it is printed or stored."""

from __future__ import annotations

import re
from urllib.parse import quote

from interbench_tasks import settings

MARK = "[redacted]"
"""Stands where a secret was."""

_QUOTE = r"(?:\\?[\"'])"
_NAME = (
    r"(?<![A-Za-z0-9])(?:[A-Za-z0-9][\w.-]{0,60}?)?"
    r"(?:api[_ -]?key(?:\sprovided)?|access[_-]?key|token|secret|password|passwd|credentials?|authorization)"
)
_NO_SECRET = r"(?!\[redacted\]|(?:None|null|true|false)(?![\w]))"
_SCHEME = r"(?:(?:Bearer|Basic|Token)\s+)?+"
_LOOKS_SECRET = r"\s?\S{0,60}\d|\s?\S{8}|\s?(?:Bearer|Basic|Token)\s"
"""After a colon a short word may be prose (`unexpected token: the`)."""
_QUOTED_VALUE = re.compile(
    rf"(?P<kept>{_NAME}{_QUOTE}?\s?[=:]\s?(?P<quote>{_QUOTE}){_SCHEME}){_NO_SECRET}(?P<value>(?:(?!(?P=quote)).){{1,4000}})",
    re.IGNORECASE,
)
_BARE_VALUE = re.compile(
    rf"(?P<kept>{_NAME}{_QUOTE}?\s?(?:=|:(?={_LOOKS_SECRET}))\s?{_SCHEME}|--[a-z-]{{0,40}}(?:api-key|token|secret|password)\s+)"
    rf"{_NO_SECRET}(?P<value>[^\s,;&\"'(){{}}\[\]<>\\]{{1,4000}})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<kept>(?<![A-Za-z])Bearer\s+)(?P<value>[A-Za-z0-9._~+/=-]{6,4000})", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?P<kept>://[^\s:/@]{0,100}:)(?P<value>[^\s:/@]{1,200})(?=@)")
_KNOWN_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{8,}|sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic and those that copy them
    r"|hf_[A-Za-z0-9]{8,}|AIza[A-Za-z0-9_-]{10,}|gh[opsru]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{8,}|glpat-[A-Za-z0-9_-]{8,}|gsk_[A-Za-z0-9]{8,}|nvapi-[A-Za-z0-9_-]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,})"
)


def redact(text: str) -> str:
    """The text with `[redacted]` for every secret; everything else stays as it is.

    Secrets are: the values of the environment's keys and tokens, values of names that end in api_key, token, secret,
    password or authorization, bearer headers, passwords in addresses, and what has the shape of a known service's key.

    >>> redact("model=judge-x,api_key=sk-test-0123456789abcdef,timeout=30")
    'model=judge-x,api_key=[redacted],timeout=30'
    """
    for secret in settings.secret_values():
        for form in {secret, quote(secret, safe=""), secret.replace("\\", "\\\\").replace('"', '\\"')}:
            text = text.replace(form, MARK)
    for pattern in (_QUOTED_VALUE, _BARE_VALUE, _BEARER, _IN_ADDRESS):
        text = pattern.sub(_without_value, text)
    return _KNOWN_SHAPES.sub(MARK, text)


def _without_value(match: re.Match[str]) -> str:
    return f"{match['kept']}{MARK}"
