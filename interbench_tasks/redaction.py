"""Takes keys and tokens out of any text before it is printed or stored."""

from __future__ import annotations

import base64
import html
import json
import re
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote

from interbench_tasks import settings

MARK = "[redacted]"
"""Stands where a secret was."""

_QUOTE = r"(?:\\?[\"'])"
_NAME = (
    r"(?<![A-Za-z0-9])(?:[A-Za-z0-9][\w.-]{0,60}?)?"
    r"(?:api[_ -]?key(?:\sprovided)?|access[_-]?key|token|secret|password|passwd|credentials?|authorization)"
)
_NO_SECRET = r"(?!\[redacted\]|\.{3}(?=[\s)'\"`,;]|$)|(?:None|null|true|false)(?![\w]))"
"""`...` stands for a secret in a hint, e.g. `export OPENAI_API_KEY=...`."""
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
_IN_ADDRESS = re.compile(rf"(?P<kept>://[^\s:/@]{{0,100}}:){_NO_SECRET}(?P<value>[^\s/,]{{1,200}})(?=@)")
_USER_IN_ADDRESS = re.compile(rf"(?P<kept>://){_NO_SECRET}(?P<value>[^\s:/@,]{{1,200}})(?=@)")
"""Some services take a token in the user's place."""
_IN_QUERY = re.compile(
    rf"(?P<kept>[?&][\w.-]{{0,60}}?(?:key|sig|signature|auth|pwd|pass)=){_NO_SECRET}(?P<value>[^\s&#\"'<>]{{1,4000}})",
    re.IGNORECASE,
)
_SLASHES = r"\\{1,9}"
"""Backslashes, doubled each time that a text is escaped; no more, or a text of nothing else would take for ever."""
_BETWEEN = rf"(?:\s|{_SLASHES}[nrt]|[\u00ad\u200b-\u200d\u2060\ufeff])*+"
"""What may stand between two characters of a value: white space, plain or escaped, and what nobody sees."""
_BREAKS = re.compile(rf"{_SLASHES}[nrt]|\s|[\u00ad\u200b-\u200d\u2060\ufeff]")
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos", "/": "sol", "+": "plus", "=": "equals"}
_BEFORE_BYTE = rf"(?:0x|{_SLASHES}x)?"
_BETWEEN_BYTES = re.compile(rf"[\s:,-]|\b0x|{_SLASHES}x", re.IGNORECASE)
_KNOWN_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{8,}|sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic and those that copy them
    r"|hf_[A-Za-z0-9]{8,}|AIza[A-Za-z0-9_-]{10,}|gh[opsru]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{8,}|glpat-[A-Za-z0-9_-]{8,}|gsk_[A-Za-z0-9]{8,}|nvapi-[A-Za-z0-9_-]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,})"
)


_NAMES_A_SECRET = re.compile(
    r"(?:^|[_-])(?:(?:access|api|auth|private|secret|subscription)[_-]?key|secret|password|passwd|pwd|credentials?|auth"
    r"|authorization|cookie|(?:access|api|auth|bearer|github|hf|id|refresh|session)[_-]?token)$"
    r"|^(?:x[_-])?(?:key|token)$|apikey$",
    re.IGNORECASE,
)
_AROUND_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]")
_LONG = 8
"""Characters from which a value is also looked for inside of words and in other spellings."""


def redact(text: str) -> str:
    """The text with `[redacted]` for every secret; everything else stays as it is.

    Secrets are: the values of the environment's keys and tokens, values of names that end in api_key, token, secret,
    password or authorization, bearer headers, user and password in addresses, keys in their query, and what has the
    shape of a known service's key.

    >>> redact("model=judge-x,api_key=sk-test-0123456789abcdef,timeout=30")
    'model=judge-x,api_key=[redacted],timeout=30'
    """
    text = without_known_secrets(text)
    for pattern in (_QUOTED_VALUE, _BARE_VALUE, _BEARER, _IN_ADDRESS, _USER_IN_ADDRESS, _IN_QUERY):
        text = pattern.sub(_without_value, text)
    return _KNOWN_SHAPES.sub(MARK, text)


def without_known_secrets(text: str) -> str:
    """The text without the values of the environment's keys and tokens, however they are written there.

    Found are the value itself, escaped for JSON, Python, HTML or an address (all of it, or some characters only, also
    twice), in other case, as hexadecimal bytes, in base64 (also inside of a longer text), and broken over lines. A
    value of less than 8 characters is found as a word of its own only.
    """
    secrets = settings.secret_values()
    seen = _undisguised(text) if any(len(secret) >= _LONG for secret in secrets) else ()
    for secret in secrets:
        if len(secret) < _LONG:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", MARK, text)
            continue
        for form in _spellings(secret):
            text = text.replace(form, MARK)
        for core in _base64_cores(secret):
            while core in text:
                text = _without_base64(text, core)
        text = _without_disguised(text, secret, seen)
    return text


def holds_a_secret(text: str) -> bool:
    """Whether `redact` would change the text."""
    return redact(text) != text


def names_a_secret(name: str) -> bool:
    """Whether an option or header of that name holds a secret.

    >>> [names_a_secret(name) for name in ("x-api-key", "Cookie", "hf_token", "max_tokens", "eos_token", "keyword")]
    [True, True, True, False, False, False]
    """
    return bool(_NAMES_A_SECRET.search(name))


def shown_cause(error: BaseException) -> BaseException | None:
    """The error as a cause that a traceback may show: None where its text, or that of what led to it, holds a secret.

    A traceback prints the whole chain, so a text that was redacted would stand there once more.
    """
    link: BaseException | None = error
    while link is not None:
        if holds_a_secret(_text_of(link)):
            return None
        link = link.__cause__ or link.__context__
    return error


def _text_of(error: BaseException) -> str:
    try:
        return f"{error} {error!r} {getattr(error, '__notes__', ())}"
    except Exception:  # noqa: BLE001 - a stranger's error class may fail at its own text; then a traceback shows none
        return ""


@lru_cache(maxsize=256)
def _spellings(secret: str) -> tuple[str, ...]:
    """The ways in which a value may be written inside of another text, longest first."""
    escaped = [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]]
    quoted = [quote(secret, safe=""), quote(secret, safe="/"), quote_plus(secret)]
    found = {
        secret,
        *escaped,
        *(json.dumps(text)[1:-1] for text in escaped),
        html.escape(secret),
        *quoted,
        *(re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in quoted),
    }
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


@lru_cache(maxsize=256)
def _base64_cores(secret: str) -> frozenset[str]:
    """What stands in base64 for a value inside of a longer text: three ways, by where it begins, two alphabets."""
    cores = set()
    for shift, unsure in ((0, 0), (1, 2), (2, 3)):  # characters at the start that also depend on what comes before
        data = b"\0" * shift + secret.encode("utf-8", "surrogatepass")
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(data).decode().rstrip("=")
            cores.add(text[unsure : len(text) - (len(data) % 3 > 0)])
    return frozenset(cores)


def _without_base64(text: str, core: str) -> str:
    """The text without the whole run of base64 in which `core` stands first."""
    start = text.index(core)
    end = start + len(core)
    while start > 0 and _AROUND_BASE64.match(text[start - 1]):
        start -= 1
    while end < len(text) and _AROUND_BASE64.match(text[end]):
        end += 1
    return f"{text[:start]}{MARK}{text[end:]}"


def _without_disguised(text: str, secret: str, seen: tuple[str, ...]) -> str:
    r"""The text without the value where single characters of it are escaped, bytes are shown, or something is between.

    Some libraries escape only what their own rules name (`\/` and `\u002b` in JSON, `%2B` beside a plain slash), so
    that there are more spellings than can be listed. Args: seen = the text, undisguised.
    """
    # A pattern as long as the value is slow; mostly a look at the undisguised text says that it is not needed.
    if any(plain in form for plain in _plain_forms(secret) for form in seen):
        text = _disguises_of(secret).sub(MARK, text)
    if secret.encode("utf-8", "surrogatepass").hex() in seen[0]:
        text = _bytes_of(secret).sub(MARK, text)
    return text


@lru_cache(maxsize=256)
def _plain_forms(secret: str) -> tuple[str, ...]:
    """How the value looks in an undisguised text; an empty one would stand in any."""
    return tuple(form for form in _undisguised(secret)[1:] if form)


def _undisguised(text: str) -> tuple[str, ...]:
    r"""The text in lower case: as if it showed bytes; escapes undone, without `\n`; and with the `n` of it."""
    shown_bytes = _BETWEEN_BYTES.sub("", text).lower()
    text = html.unescape(html.unescape(text))
    text = re.sub("%(?:25)+", "%", text)
    text = unquote(re.sub(rf"{_SLASHES}(?:u00|x)([0-9a-fA-F]{{2}})", r"%\1", text), "utf-8", "replace")
    text = re.sub(rf"{_SLASHES}u([0-9a-fA-F]{{4}})", lambda found: chr(int(found[1], 16)), text)
    plain = (_BREAKS.sub("", form).replace("\\", "").lower() for form in (text, _without_n(text)))
    return (shown_bytes, *dict.fromkeys(plain))


def _without_n(text: str) -> str:
    r"""The text with `\n` as its two characters, which a value may hold: `C:\new`."""
    return re.sub(rf"{_SLASHES}(?=[nrt])", "", text)


@lru_cache(maxsize=256)
def _disguises_of(secret: str) -> re.Pattern[str]:
    """The value in any case, each character plain or escaped in any way."""
    return re.compile(_BETWEEN.join(_disguises_of_one(character) for character in "".join(secret.split())), re.I)


def _disguises_of_one(character: str) -> str:
    number = ord(character)
    raw = character.encode("utf-8", "surrogatepass")
    units = character.encode("utf-16-be", "surrogatepass")
    forms = [
        "".join(rf"{_SLASHES}u{units[place : place + 2].hex()}" for place in range(0, len(units), 2)),
        "".join(rf"{_SLASHES}x{byte:02x}" for byte in raw),
        "".join(rf"%(?:25){{0,5}}{byte:02x}" for byte in raw),
        rf"&(?:amp;){{0,5}}#(?:0*{number}|x0*{number:x})(?![0-9a-f]);?",
    ]
    if character in _ENTITIES:
        forms.append(rf"&(?:amp;){{0,5}}{_ENTITIES[character]};")
    if number < 256:
        forms.append(rf"{_SLASHES}x{number:02x}")
    if character == "\\":
        plain = _SLASHES
    else:
        plain = re.escape(character) if character.isalnum() else rf"(?:{_SLASHES})?{re.escape(character)}"
    return f"(?:{'|'.join([*forms, plain])})"


@lru_cache(maxsize=256)
def _bytes_of(secret: str) -> re.Pattern[str]:
    """The value as hexadecimal bytes: `7365`, `73:65`, `0x73, 0x65`."""
    raw = secret.encode("utf-8", "surrogatepass")
    return re.compile(_BEFORE_BYTE + rf"[\s:,-]{{0,2}}{_BEFORE_BYTE}".join(f"{byte:02x}" for byte in raw), re.I)


def _without_value(match: re.Match[str]) -> str:
    return f"{match['kept']}{MARK}"
