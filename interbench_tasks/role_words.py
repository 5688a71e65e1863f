"""The words that name a role's backend, e.g. `openai:gpt-4o-2024-08-06,temperature=0`, read into records.

The same words stand in `INTERBENCH_PROVIDER`, in `--model_args model=...` and, as a mapping, in a task YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from interbench_tasks.errors import BackendError, near_miss
from interbench_tasks.redaction import names_a_secret

SHAPE = (
    "  expected: BACKEND:MODEL, BACKEND:MODEL@http://HOST:PORT/v1, each with options as ,KEY=VALUE\n"
    "  e.g. openai:gpt-4o-2024-08-06  openai:qwen2.5-vl@http://localhost:8000/v1,max_concurrency=32  simulated:strong"
)
_BACKEND = re.compile(r"[A-Za-z]\w*")
_KEY = re.compile(r"[A-Za-z_][\w.\-]*")
_ADDRESS = re.compile(r"@(?=https?://)", re.IGNORECASE)
_ADDRESS_WITHOUT_SCHEME = re.compile(r"@([\w.\-]+:\d+(?:/.*)?)$")
_BEGINS_A_ROLE = re.compile(r"\s*[A-Za-z]\w*\s*(:|$)")
_SECRETS = ("api_key", "apikey", "key", "token", "secret", "password")
_PYTHON_WORDS: Mapping[str, bool | None] = {"True": True, "False": False, "None": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleWords:
    """Which backend answers for a role, with which model and options; nothing is looked up yet."""

    backend: str
    """A name that some plugin offers, e.g. `openai`; not checked here."""
    model: str = ""
    """The model as the backend knows it; empty where the words name none (`human`)."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Further arguments of the backend; an address after `@` is `base_url`."""


def role_words_from(text: str) -> RoleWords:
    """The words of one role.

    A model may hold `:`, `/` and `@`; an address is what follows `@http://` or `@https://`. A value is read as JSON
    (number, true, false, null, string, list, object), else as text.

    Raises: BackendError that shows the expected shape.

    >>> role_words_from("openai:org/name@http://localhost:8000/v1,temperature=0").options
    {'base_url': 'http://localhost:8000/v1', 'temperature': 0}
    """
    head, *rest = [segment.strip() for segment in _segments(text)]
    backend, colon, model = head.partition(":")
    backend, model = backend.strip(), model.strip()
    if not _BACKEND.fullmatch(backend) or (colon and not model):
        raise BackendError(f"cannot read the backend {_shown(text)}: it names no backend or no model\n{SHAPE}")
    if backend.lower() in ("http", "https"):
        raise BackendError(
            f"cannot read the backend {_shown(text)}: it is an address, without backend and model\n{SHAPE}"
        )
    if re.match(_KEY.pattern + "=", model):  # `simulated:seed=3` leaves the model out
        rest, model = [model, *rest], ""
    model, address = _model_and_address(model, text)
    options: dict[str, object] = {"base_url": address} if address else {}
    for segment in rest:
        key, value = _option(segment, text)
        if key in options or key in ("backend", "model"):
            raise BackendError(f"cannot read the backend {_shown(text)}: '{key}' is given twice\n{SHAPE}")
        options[key] = value
    return RoleWords(backend=backend, model=model, options=options)


def several_role_words(text: str) -> list[str]:
    """The words of several roles, as an environment variable lists them: a comma ends a role where a backend follows.

    >>> several_role_words("openai:a,temperature=0,anthropic:b")
    ['openai:a,temperature=0', 'anthropic:b']
    """
    roles: list[str] = []
    for segment in _segments(text):
        if roles and not _BEGINS_A_ROLE.match(segment):
            roles[-1] += f",{segment}"
        else:
            roles.append(segment)
    return [role.strip() for role in roles]


def role_words_from_mapping(mapping: Mapping[str, object]) -> RoleWords:
    """The same words as a task YAML writes them: `{backend: openai, model: gpt-4o, temperature: 0}`.

    Raises: BackendError that names the key and shows the expected shape.
    """
    shape = "  expected: {backend: NAME, model: NAME, KEY: VALUE, ...}, e.g. {backend: openai, model: gpt-4o}"
    for key in mapping:
        if not isinstance(key, str):
            raise BackendError(f"a role's key must be text, got {key!r}\n{shape}")
        _refuse_secret(key)
    backend, model = mapping.get("backend"), mapping.get("model", "")
    if backend is None:
        misspelt = [key for key in mapping if near_miss(key, ["backend"])]
        got = f"; '{misspelt[0]}' is none{near_miss(misspelt[0], ['backend'])}" if misspelt else ""
        raise BackendError(f"a role needs the key 'backend'{got}\n{shape}")
    if not isinstance(backend, str) or not _BACKEND.fullmatch(backend):
        hint = "; write the model under its own key" if ":" in str(backend) else ""
        raise BackendError(f"backend = {backend!r} is not the name of a backend{hint}\n{shape}")
    if not isinstance(model, str):
        raise BackendError(f"model = {model!r} must be text; put it in quotes\n{shape}")
    options = {key: value for key, value in mapping.items() if key not in ("backend", "model")}
    return RoleWords(backend=backend, model=model, options=options)


def _model_and_address(model: str, text: str) -> tuple[str, str]:
    """The model and what follows `@`, '' where nothing does."""
    found = _ADDRESS.search(model)
    if found:
        name, address = model[: found.start()], model[found.end() :]
        if not name:
            raise BackendError(f"cannot read the backend {_shown(text)}: no model stands before '@'\n{SHAPE}")
        return name, address
    bare = _ADDRESS_WITHOUT_SCHEME.search(model)
    if bare:
        raise BackendError(
            f"cannot read the backend {_shown(text)}: write the address as @http://{bare.group(1)}\n{SHAPE}"
        )
    return model, ""


def _option(segment: str, text: str) -> tuple[str, object]:
    key, equals, value = (part.strip() for part in segment.partition("="))
    if not equals or not _KEY.fullmatch(key):
        raise BackendError(f"cannot read the backend {_shown(text)}: {segment!r} is not KEY=VALUE\n{SHAPE}")
    _refuse_secret(key)
    return key, option_value(value)


def _refuse_secret(key: str) -> None:
    if key.lower() in _SECRETS or names_a_secret(key):
        raise BackendError(
            f"'{key}' cannot be given here: keys come from the environment only\n"
            "  Set the backend's own variable (e.g. OPENAI_API_KEY), or name another one with api_key_env=NAME"
        )


def option_value(text: str) -> object:
    """An option's value: JSON where it is JSON, Python's True, False, None and .5 as well, else the text itself."""
    if text in _PYTHON_WORDS:
        return _PYTHON_WORDS[text]
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return float(text) if re.fullmatch(r"[+-]?(\d+\.|\.\d+)", text) else text


def _segments(text: str) -> Iterator[str]:
    """The text cut at commas, but not inside JSON lists, objects and strings."""
    depth, quoted, start, previous = 0, False, 0, ""
    for position, character in enumerate(text):
        if character == '"' and previous != "\\":
            quoted = not quoted
        elif not quoted and character in "[{":
            depth += 1
        elif not quoted and character in "]}":
            depth -= 1
        elif character == "," and not quoted and depth <= 0:
            yield text[start:position]
            start = position + 1
        previous = character
    yield text[start:]


def _shown(text: str) -> str:
    """The words for an error message, without what may be a key."""
    names = "|".join(_SECRETS)
    hidden = re.sub(rf"(?i)\b([\w-]*({names})\s*=\s*)[^,]*", r"\1[hidden]", text)
    return repr(re.sub(r"://[^/@\s]*@", "://[hidden]@", hidden))
