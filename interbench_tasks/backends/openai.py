"""Any server that speaks OpenAI's chat completions API, through the official SDK, which also does the retries."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from interbench_tasks import settings
from interbench_tasks.backends.chat_bodies import Answer, answer_from, chat_messages
from interbench_tasks.backends.openai_failures import Endpoint, failure_from, refused_parameter
from interbench_tasks.errors import BackendError, MissingKeyError, near_miss
from interbench_tasks.records import Reply, ReplyRun
from interbench_tasks.redaction import redact

if TYPE_CHECKING:
    import openai

    from interbench_tasks.hookspecs import Call

_LOG = logging.getLogger(__name__)
MaxTokensField = Literal["auto", "max_tokens", "max_completion_tokens"]
OPENAI_ADDRESS = "https://api.openai.com/v1"
_OPENAI_STOPS = 4
_CONNECT_TIMEOUT_S = 10.0
_ERROR_LENGTH = 600
_GENERATION = ("max_new_tokens", "temperature", "top_p")
"""Options that stand for the settings of the same name, whatever the task says."""
_PARAMETERS = (
    "frequency_penalty",
    "logit_bias",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "verbosity",
)
"""Further parameters of the API that may stand beside the model's name."""
_BODIES = ("extra_body", "options")
"""Mappings that go into the request as they are, for what a server knows beyond the API."""
_ARGUMENTS = (
    "api_key_env",
    "base_url",
    "extra_headers",
    "image_detail",
    "max_concurrency",
    "max_retries",
    "max_tokens_field",
    "timeout_s",
)
_OURS = frozenset(("model", "messages", "stream", "n", "stop", "max_tokens", "max_completion_tokens", *_GENERATION))
"""Parts of a request that are made from the call; nobody may give them a second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What came of one or two requests."""

    answer: Answer
    retries: int

    def then(self, again: _Asked) -> _Asked:
        """The second request's answer, with what both cost."""
        usage = self.answer.usage.plus(again.answer.usage)
        return _Asked(answer=replace(again.answer, usage=usage), retries=self.retries + again.retries + 1)


class OpenAIBackend:
    """Answers by a model behind an OpenAI-compatible server; does not connect before the first call.

    Args:
        model: as the server knows it.
        base_url: the server, e.g. http://localhost:8000/v1; default OPENAI_BASE_URL, else OpenAI itself.
        api_key_env: environment variable of the key; default OPENAI_API_KEY, which may be unset for other servers.
        max_concurrency: calls in flight at once, >= 1; the engine keeps to it.
        timeout_s: seconds for each attempt, > 0.
        max_retries: of the SDK, for broken connections, timeouts, 408, 409, 429 and 5xx; it honours Retry-After.
        extra_headers: sent with every call; a value `$NAME` is read from the environment.
        max_tokens_field: how the server calls the limit; `auto` finds out.
        image_detail: `low`, `high` or `auto`, sent with every picture.
        options: generation settings that overrule the task's (`temperature`, `max_new_tokens`, `top_p`; null sends
            none), parameters of the API (`seed`, `reasoning_effort`, ...), and `extra_body`, a mapping of anything.

    Raises: MissingKeyError where a key is needed and not set; BackendError where an argument is wrong.
    """

    simulated = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        max_concurrency: int = 16,
        timeout_s: float = 600,
        max_retries: int = 8,
        extra_headers: Mapping[str, str] | None = None,
        max_tokens_field: MaxTokensField = "auto",
        image_detail: str | None = None,
        **options: object,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise BackendError("the openai backend needs a model, e.g. openai:gpt-4o-2024-08-06")
        address = _checked_address(base_url or settings.variable("OPENAI_BASE_URL") or OPENAI_ADDRESS)
        _check_numbers(max_concurrency=max_concurrency, timeout_s=timeout_s, max_retries=max_retries)
        _one_of("max_tokens_field", max_tokens_field, ("auto", "max_tokens", "max_completion_tokens"))
        _one_of("image_detail", image_detail, (None, "auto", "high", "low"))
        self.name = f"openai:{model}"
        self.max_concurrency = max_concurrency
        self._max_retries = max_retries
        self._image_detail = image_detail
        self._generation, self._parameters = _checked_options(options)
        self._at_openai = urlsplit(address).hostname == urlsplit(OPENAI_ADDRESS).hostname
        self._key = _key(api_key_env, needed=self._at_openai)
        self._headers = _headers(extra_headers or {})
        own = [value for name, value in self._headers.items() if value != (extra_headers or {})[name]]
        self._secrets = tuple(secret for secret in (self._key, *own) if secret)
        self._endpoint = Endpoint(
            model=model,
            address=address,
            key_variable=api_key_env or "OPENAI_API_KEY",
            has_key=self._key is not None,
            timeout_s=timeout_s,
        )
        self.fingerprint = _fingerprint(
            self.name, address, image_detail=image_detail, options=options, extra_headers=extra_headers
        )
        # OpenAI itself takes the new name with every model; other servers mostly know the old one only.
        automatic = "max_completion_tokens" if self._at_openai else "max_tokens"
        self._may_switch_field = max_tokens_field == "auto"
        self._max_tokens_field = automatic if self._may_switch_field else max_tokens_field
        self._sends_temperature = True
        self._reached = False
        self._seen_down = False
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Settings that this server refused and that are not sent any more; known after the first calls."""
        return () if self._sends_temperature else ("temperature",)

    async def reply(self, call: Call) -> Reply:
        """One reply; a 200 whose body is unusable is asked once more.

        Raises: BackendError where the call cannot be made at all: a picture without bytes, a parameter given twice;
            PictureError where a picture turns out to be broken.
        """
        body = await self._body_made_aside(call)
        started_at, start = time.time(), time.perf_counter()
        asked = await self._ask(body)
        if asked.answer.asking_again_may_help:
            asked = asked.then(await self._ask(body))
        answer = asked.answer
        return Reply(
            text=answer.text,
            status=answer.status,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
            usage=answer.usage,
            error=None if answer.error is None else self._safe(answer.error),
            model=answer.model,
            run=ReplyRun(latency_s=time.perf_counter() - start, retries=asked.retries, started_at=started_at),
        )

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, loop = self._client, self._loop
        self._client = self._loop = None
        if client is not None and loop is asyncio.get_running_loop():  # those of a closed loop are gone with it
            await client.close()

    async def _body_made_aside(self, call: Call) -> dict[str, Any]:
        """`_body`, in another thread where pictures are sent for the first time: encoding one can take seconds."""
        first = not any(message.role == "assistant" for message in call.messages)
        if first and any(message.pictures for message in call.messages):
            return await asyncio.to_thread(self._body, call)
        return self._body(call)

    def _body(self, call: Call) -> dict[str, Any]:
        """What is sent, before what this server has refused is taken out."""
        asked = call.settings
        further = {**asked.options, **self._parameters}
        _refuse_ours(further)
        if self._at_openai and len(asked.until) > _OPENAI_STOPS:
            raise BackendError(f"{self.name}: OpenAI takes at most {_OPENAI_STOPS} texts in `until`, got {asked.until}")
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": chat_messages(call.messages, self._image_detail),
            "max_tokens": self._generation.get("max_new_tokens", asked.max_new_tokens),
            "temperature": self._generation.get("temperature", asked.temperature),
            "top_p": self._generation.get("top_p", asked.top_p),
            "stop": list(asked.until) or None,
            "extra_body": further or None,
        }
        return {key: value for key, value in body.items() if value is not None}

    async def _ask(self, body: Mapping[str, Any]) -> _Asked:
        """One request with the SDK's retries, and again where the server refuses a parameter that we can leave out."""
        import openai

        refused: set[str] = set()
        while True:
            sent = self._accepted(body)
            try:
                raw = await self._create()(**sent)
            except openai.APIError as error:
                name = self._learned_from(error, frozenset(sent)) if isinstance(error, openai.APIStatusError) else None
                if name is None or name in refused:
                    return self._failed(error, len(refused))
                refused.add(name)
                continue
            self._reached = True
            return _Asked(answer=answer_from(raw.http_response.content), retries=raw.retries_taken + len(refused))

    def _failed(self, error: openai.APIError, refused: int) -> _Asked:
        failure = failure_from(error, self._endpoint)
        self._seen_down = self._seen_down or failure.unreachable
        self._reached = self._reached or not failure.unreachable
        answer = Answer(status="error", error=failure.text, usage=failure.usage)
        return _Asked(answer=answer, retries=failure.retries + refused)

    def _accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body with the parameters that this server takes."""
        sent = dict(body)
        if "max_tokens" in sent:
            sent[self._max_tokens_field] = sent.pop("max_tokens")
        if not self._sends_temperature:
            sent.pop("temperature", None)
        return sent

    def _learned_from(self, error: openai.APIStatusError, sent: frozenset[str]) -> str | None:
        """What the server refuses and the call can go without: remembered for all calls. None for another fault."""
        refused = refused_parameter(error, sent)
        if refused == "max_tokens":
            if not self._may_switch_field:
                return None
            self._max_tokens_field = "max_completion_tokens"
        if refused == "temperature" and self._sends_temperature:
            _LOG.warning("%s takes no temperature; its own default is used instead", self.name)
            self._sends_temperature = False
        return refused

    def _create(self) -> Callable[..., Awaitable[Any]]:
        """The SDK's call, on a client that belongs to the running loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._new_client(), loop
        client = self._client
        if self._seen_down and not self._reached:
            # The first calls waited through all retries for a server that never was there: the others need not.
            client = client.with_options(max_retries=min(1, self._max_retries))
        return client.chat.completions.with_raw_response.create

    def _new_client(self) -> openai.AsyncOpenAI:
        import openai

        limits = type(openai.DEFAULT_CONNECTION_LIMITS)  # of httpx or of httpx2, depending on the SDK's version
        timeout_s, n = self._endpoint.timeout_s, self.max_concurrency
        timeout = openai.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S), pool=None)
        return openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._endpoint.address,
            max_retries=self._max_retries,
            timeout=timeout,
            default_headers=self._headers,
            http_client=openai.DefaultAsyncHttpxClient(
                limits=limits(max_connections=n, max_keepalive_connections=n), timeout=timeout
            ),
        )

    def _safe(self, text: str) -> str:
        """Short, and without any key of ours."""
        for secret in self._secrets:
            text = text.replace(secret, "[redacted]")
        text = redact(text)
        return text if len(text) <= _ERROR_LENGTH else f"{text[:_ERROR_LENGTH]}..."


def _key(variable: str | None, *, needed: bool) -> str | None:
    """The key, None for a server of one's own where none is set. A variable that was named must be set."""
    name = variable or "OPENAI_API_KEY"
    key = settings.variable(name)
    if key is None and (needed or variable is not None):
        raise MissingKeyError(
            f"the environment variable {name} is not set; the openai backend needs it\n"
            f"  Set it with: export {name}=...   A server of your own without keys needs base_url only"
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        raise BackendError(f"the environment variable {name} holds characters that no key has; copy the key again")
    return key


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    """The headers with `$NAME` read from the environment."""
    if not isinstance(given, Mapping):
        raise BackendError(f"extra_headers must be a mapping of name to text, got {given!r}")
    headers: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str):
            raise BackendError(f"extra_headers: the value of '{name}' must be text, got {value!r}; put it in quotes")
        headers[name] = value
        if value.startswith("$"):
            found = settings.variable(value[1:])
            if found is None:
                raise MissingKeyError(f"the environment variable {value[1:]} is not set; the header '{name}' needs it")
            headers[name] = found
        elif any(word in name.lower() for word in ("authorization", "key", "token", "secret")):
            raise BackendError(
                f"extra_headers: '{name}' looks like a key, and keys come from the environment only\n"
                f"  Write the name of a variable: {name}: $NAME"
            )
    return headers


def _checked_address(address: str) -> str:
    """The base URL without a slash at its end."""
    example = "e.g. http://localhost:8000/v1"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError):
        usable = False
    if not usable:
        raise BackendError(f"base_url = {address!r} is not the address of a server, {example}")
    if parts.username or parts.password:
        raise BackendError(f"base_url must hold no user and password: keys come from the environment only, {example}")
    if address.rstrip("/").endswith("/chat/completions"):
        raise BackendError(f"base_url = {address!r}: leave /chat/completions out, {example}")
    return address.rstrip("/")


def _checked_options(options: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The options that overrule generation settings, and the further parameters of a request."""
    allowed = sorted((*_ARGUMENTS, *_GENERATION, *_PARAMETERS, *_BODIES))
    unknown = sorted(options.keys() - set(allowed))
    if unknown:
        lines = [f"the openai backend has no option '{name}'{near_miss(name, allowed)}" for name in unknown]
        raise BackendError("\n".join([*lines, f"  allowed: {', '.join(allowed)}"]))
    parameters = {name: value for name, value in options.items() if name in _PARAMETERS}
    for name in _BODIES:
        body = options.get(name) or {}
        if not isinstance(body, Mapping):
            raise BackendError(f"{name} must be a mapping of parameters, got {body!r}")
        parameters.update(body)
    _refuse_ours(parameters)
    generation = {name: options[name] for name in _GENERATION if name in options}
    for name, value in generation.items():
        _check_generation(name, value)
    return generation, parameters


def _refuse_ours(parameters: Mapping[str, object]) -> None:
    twice = sorted(_OURS & parameters.keys())
    if twice:
        raise BackendError(f"openai backend: '{twice[0]}' is made from the call and cannot be a parameter as well")


def _check_generation(name: str, value: object) -> None:
    if value is None:
        return
    number = isinstance(value, int if name == "max_new_tokens" else int | float) and not isinstance(value, bool)
    low, high = {"max_new_tokens": (1, None), "temperature": (0, None), "top_p": (0, 1)}[name]
    if not number or not low <= value or (high is not None and value > high):  # type: ignore[operator]  # a number here
        kind = "a whole number" if name == "max_new_tokens" else "a number"
        most = "" if high is None else f" and at most {high}"
        raise BackendError(f"{name} = {value!r} must be {kind} of at least {low}{most}, or null to send none")


def _check_numbers(*, max_concurrency: object, timeout_s: object, max_retries: object) -> None:
    whole = {"max_concurrency": (max_concurrency, 1), "max_retries": (max_retries, 0)}
    for name, (value, least) in whole.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BackendError(f"{name} = {value!r} must be a whole number of at least {least}")
    if not isinstance(timeout_s, int | float) or isinstance(timeout_s, bool) or not timeout_s > 0:
        raise BackendError(f"timeout_s = {timeout_s!r} must be a number of seconds above 0")


def _one_of(name: str, value: object, allowed: tuple[str | None, ...]) -> None:
    if value not in allowed:
        names = [word for word in allowed if word is not None]
        raise BackendError(f"{name} = {value!r}{near_miss(value, names)}\n  allowed: {', '.join(names)}")


def _fingerprint(name: str, address: str, **given: object) -> str:
    """Name, address and whatever else was given that can change a reply; headers as given, so `$NAME` not resolved."""
    kept = {key: value for key, value in given.items() if value}
    return f"{name}@{address} {json.dumps(kept, sort_keys=True, default=str)}"
