"""Checks of what a backend's words may say: address, key, headers, numbers, generation settings, parameters."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from interbench_tasks import settings
from interbench_tasks.errors import BackendError, MissingKeyError, near_miss
from interbench_tasks.redaction import holds_a_secret, names_a_secret

GENERATION = ("max_new_tokens", "temperature", "top_p")
"""Options that stand for the settings of the same name, whatever the task says."""
BODIES = ("extra_body", "options")
"""Mappings that go into the request as they are, for what a server knows beyond the API."""


def key_from(variable: str | None, default: str, backend: str, *, needed: bool) -> str | None:
    """The key, None for a server of one's own where none is set. A variable that was named must be set.

    Raises: MissingKeyError that names the variable; BackendError where its value cannot be a key.
    """
    name = variable or default
    key = settings.key_variable(name)
    if key is None and (needed or variable is not None):
        raise MissingKeyError(
            f"the environment variable {name} is not set; the {backend} backend needs it\n"
            f"  Set it in the shell that starts the run (export {name}=...); a server of your own without keys needs "
            "only its address: openai:MODEL@http://localhost:8000/v1"
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        raise BackendError(f"the environment variable {name} holds characters that no key has; copy the key again")
    return key


def headers_from(given: Mapping[str, str]) -> dict[str, str]:
    """The headers with `$NAME` read from the environment.

    Raises: MissingKeyError where a variable is not set; BackendError where a value is no text, or a key itself.
    """
    if not isinstance(given, Mapping):
        raise BackendError(
            f"extra_headers must be a mapping of name to text, got {given!r}\n"
            '  On a command line as JSON: extra_headers={"x-title": "bench"}'
        )
    headers: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str):
            raise BackendError(f"extra_headers: the value of '{name}' must be text, got {value!r}; put it in quotes")
        headers[name] = value
        if value.startswith("$"):
            found = settings.key_variable(value[1:])
            if found is None:
                raise MissingKeyError(f"the environment variable {value[1:]} is not set; the header '{name}' needs it")
            headers[name] = found
        elif _looks_secret(name, value):
            raise BackendError(
                f"extra_headers: '{name}' looks like a key, and keys come from the environment only\n"
                f"  Write the name of a variable: {name}: $NAME"
            )
    return headers


def _looks_secret(name: str, value: str) -> bool:
    named = any(word in name.lower() for word in ("authorization", "key", "token", "secret")) or names_a_secret(name)
    return named or holds_a_secret(value)


def checked_address(address: str, *, example: str, call_path: str) -> str:
    """The base URL without a slash at its end.

    Args: example = a good address; call_path = what the SDK adds itself, e.g. /chat/completions.
    Raises: BackendError where it is no address, holds a password or a query, or already ends in `call_path`.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError):
        usable = False
    if not usable:
        raise BackendError(f"base_url = {address!r} is not the address of a server, e.g. {example}")
    if parts.username or parts.password:
        raise BackendError(
            f"base_url must hold no user and password: keys come from the environment only, e.g. {example}"
        )
    if parts.query or parts.fragment:  # the SDKs put the path of a call behind it
        raise BackendError(
            f"base_url must end before '?' and '#', e.g. {example}\n"
            "  A key comes from the environment: api_key_env=NAME, or extra_headers: {HEADER: $NAME}"
        )
    if address.rstrip("/").endswith(call_path):
        raise BackendError(f"base_url = {address!r}: leave {call_path} out, e.g. {example}")
    return address.rstrip("/")


def check_names(
    options: Mapping[str, object], backend: str, *, own: Collection[str], arguments: Collection[str]
) -> None:
    """Refuse an option that neither we nor the API knows.

    Args: own = the API's parameters that may stand beside the model; arguments = of the backend's constructor.
    Raises: BackendError with the near miss and everything that is allowed.
    """
    allowed = sorted((*arguments, *GENERATION, *own, *BODIES))
    unknown = sorted(options.keys() - set(allowed))
    if unknown:
        lines = [f"the {backend} backend has no option '{name}'{near_miss(name, allowed)}" for name in unknown]
        raise BackendError("\n".join([*lines, f"  allowed: {', '.join(allowed)}"]))


def parameters_from(options: Mapping[str, object], own: Collection[str]) -> dict[str, object]:
    """The further parameters of every request: those named in `own`, and whatever stands in the two mappings.

    Raises: BackendError where one of the mappings is none, or holds a key.
    """
    parameters = {name: value for name, value in options.items() if name in own}
    for name in BODIES:
        body = options.get(name) or {}
        if not isinstance(body, Mapping):
            raise BackendError(
                f"{name} must be a mapping of parameters, got {body!r}\n"
                f'  On a command line as JSON: {name}={{"top_k": 5}}'
            )
        _refuse_secrets(body, name)
        parameters.update(body)
    return parameters


def _refuse_secrets(value: object, where: str) -> None:
    """Parameters are part of the manifest, and of what the harness writes about a task."""
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, found in inner:
        if isinstance(found, str) and (names_a_secret(str(name)) or holds_a_secret(found)):
            raise BackendError(
                f"{where}: '{name}' looks like a key, and keys come from the environment only: api_key_env=NAME, or "
                "extra_headers: {HEADER: $NAME}"
            )
        _refuse_secrets(found, f"{where}.{name}")


def changes_from(changes: Mapping[str, object], backend: str, own: Collection[str]) -> dict[str, object]:
    """What the options of a call change: generation settings, and parameters of the request.

    Args: own = the API's parameters.
    Raises: BackendError for an option that neither we nor the API knows, and where a value is out of range or a key.
    """
    check_names(changes, backend, own=own, arguments=())
    return generation_from(changes) | parameters_from(changes, own)


def refuse_fixed(changes: Mapping[str, object], fixed: Mapping[str, object]) -> None:
    """Refuse a change that would not reach the model. Args: fixed = what the model's own words say, which wins.

    Raises: BackendError naming it.
    """
    for name in sorted(changes.keys() & fixed.keys()):
        raise BackendError(
            f"the model's own words say {name} = {fixed[name]!r}, and they win over the task's; leave it out there"
        )


def generation_from(options: Mapping[str, object]) -> dict[str, object]:
    """The options that overrule generation settings. Raises: BackendError where a value is out of range."""
    generation = {name: options[name] for name in GENERATION if name in options}
    for name, value in generation.items():
        _check_generation(name, value)
    return generation


def refuse_ours(parameters: Mapping[str, object], ours: frozenset[str], backend: str) -> None:
    """Raises: BackendError where a parameter is one that is made from the call."""
    twice = sorted(ours & parameters.keys())
    if twice:
        raise BackendError(f"{backend} backend: '{twice[0]}' is made from the call and cannot be a parameter as well")


def _check_generation(name: str, value: object) -> None:
    if value is None:
        return
    number = isinstance(value, int if name == "max_new_tokens" else int | float) and not isinstance(value, bool)
    low, high = {"max_new_tokens": (1, None), "temperature": (0, None), "top_p": (0, 1)}[name]
    if not number or not low <= value < math.inf or (high is not None and value > high):  # type: ignore[operator]  # a number here
        kind = "a whole number" if name == "max_new_tokens" else "a finite number"
        most = "" if high is None else f" and at most {high}"
        raise BackendError(f"{name} = {value!r} must be {kind} of at least {low}{most}, or null to send none")


def check_numbers(*, max_concurrency: object, timeout_s: object, max_retries: object) -> None:
    """Raises: BackendError where one of the numbers is none, or too small."""
    whole = {"max_concurrency": (max_concurrency, 1), "max_retries": (max_retries, 0)}
    for name, (value, least) in whole.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BackendError(f"{name} = {value!r} must be a whole number of at least {least}")
    if not isinstance(timeout_s, int | float) or isinstance(timeout_s, bool) or not 0 < timeout_s < math.inf:
        raise BackendError(f"timeout_s = {timeout_s!r} must be a number of seconds above 0")


def check_one_of(name: str, value: object, allowed: tuple[str | None, ...]) -> None:
    """Raises: BackendError with the near miss where the value is not allowed."""
    if value not in allowed:
        names = [word for word in allowed if word is not None]
        raise BackendError(f"{name} = {value!r}{near_miss(value, names)}\n  allowed: {', '.join(names)}")


def fingerprint_of(name: str, address: str, *, extra_headers: Mapping[str, str] | None = None, **given: object) -> str:
    """Name, address and whatever else was given that can change a reply.

    Headers as given, so `$NAME` not resolved; other values by a digest, for nobody knows what they hold.
    """
    given_headers = extra_headers if isinstance(extra_headers, Mapping) else {}  # `headers_from` refuses the others
    headers = {
        name: value if str(value).startswith("$") else _digest(str(value)) for name, value in given_headers.items()
    }
    kept = {key: value for key, value in {**given, "extra_headers": headers}.items() if value}
    return f"{name}@{address} {json.dumps(kept, sort_keys=True, default=str)}"


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
