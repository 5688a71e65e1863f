"""What the backends on the two official SDKs share: the way of one call, from the body to the reply.

The SDKs of OpenAI and Anthropic come from one generator: clients, raw responses, retries and errors are alike.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from interbench_tasks import settings
from interbench_tasks.backends.bodies import Answer
from interbench_tasks.backends.failures import Endpoint, failure_from
from interbench_tasks.backends.options import headers_from
from interbench_tasks.backends.waits import LONGEST_S, look_through_waits
from interbench_tasks.errors import BackendError
from interbench_tasks.hookspecs import Call
from interbench_tasks.records import CONTEXT_OVERFLOW, Reply, ReplyRun
from interbench_tasks.redaction import MARK, holds_a_secret, redact

if TYPE_CHECKING:
    from interbench_tasks.backends.failures import SdkError, StatusError

_LOG = logging.getLogger(__name__)
_CONNECT_TIMEOUT_S = 10.0
_ERROR_LENGTH = 600
_LEAST_ECHO = 12
"""Characters of a key that is taken out of a model's words; a shorter one could be a word of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the SDK's client is made; holds the key and headers, which no text shows."""

    key: str | None = field(repr=False)
    """None for a server of one's own without keys."""
    headers: Mapping[str, str] = field(repr=False)
    """Sent with every call, secrets filled in."""
    secrets: tuple[str, ...] = field(repr=False)
    """What no answer may hold: the key, and headers that come from the environment; none that could be a word."""
    max_concurrency: int
    max_retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What came of one or two requests."""

    answer: Answer
    retries: int

    def then(self, again: _Asked) -> _Asked:
        """The second request's answer, with what both cost."""
        usage = self.answer.usage.plus(again.answer.usage)
        cached = [one.cached_input_tokens for one in (self.answer, again.answer) if one.cached_input_tokens is not None]
        answer = replace(again.answer, usage=usage, cached_input_tokens=sum(cached) if cached else None)
        return _Asked(answer=answer, retries=self.retries + again.retries + 1)


class SdkClient(Protocol):
    """An asynchronous client of either SDK."""

    def with_options(self, *, max_retries: int) -> Self:
        """A copy that shares the connections."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


ClientT = TypeVar("ClientT", bound=SdkClient)


class SdkBackend(ABC, Generic[ClientT]):
    """Answers by a model behind an API with an official SDK; does not connect before the first call.

    Args:
        name: as shown in results, e.g. `openai:gpt-4o`.
        fingerprint: everything that can change a reply, part of the ledger key.
        endpoint: where calls go.
        access: how the client is made.

    Raises: BackendError where the model's name is a key.
    """

    simulated = False

    def __init__(self, *, name: str, fingerprint: str, endpoint: Endpoint, access: Access) -> None:
        if holds_a_secret(endpoint.model):  # it would stand in every table, file and log
            raise BackendError(
                f"{redact(name)}: the model's name looks like a key; name the model there, and put the key into "
                f"{endpoint.key_variable}. Whoever saw your command saw the key: make a new one"
            )
        self.name = name
        self.fingerprint = fingerprint
        self.max_concurrency = access.max_concurrency
        self._endpoint = endpoint
        self._access = access
        self._left_out: set[str] = set()
        self._reached = False
        self._seen_down = False
        self._client: ClientT | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def address(self) -> str:
        """Base URL of the server; what it costs depends on it."""
        return self._endpoint.address

    @property
    def left_out(self) -> tuple[str, ...]:
        """Settings that this server does not take and that were not sent; known after the first calls."""
        return tuple(sorted(self._left_out))

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
        answer = self._without_echo(asked.answer)
        return Reply(
            text=answer.text,
            status=answer.status,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
            usage=answer.usage,
            error=None if answer.error is None else self._safe(answer.error),
            model=answer.model,
            run=ReplyRun(
                latency_s=time.perf_counter() - start,
                retries=asked.retries,
                started_at=started_at,
                cached_input_tokens=answer.cached_input_tokens,
            ),
        )

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, loop = self._client, self._loop
        self._client = self._loop = None
        if client is not None and loop is asyncio.get_running_loop():  # those of a closed loop are gone with it
            await client.close()

    @abstractmethod
    def _sdk(self) -> ModuleType:
        """The SDK, imported now: it takes most of a second."""

    @abstractmethod
    def _client_class(self) -> Callable[..., ClientT]:
        """The SDK's asynchronous client."""

    @abstractmethod
    def _create_on(self, client: ClientT) -> Callable[..., Awaitable[Any]]:
        """The client's method that makes one call and gives the raw response."""

    @abstractmethod
    def _body(self, call: Call) -> dict[str, Any]:
        """What is sent, before what this server has refused is taken out."""

    @abstractmethod
    def _accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the SDK's call, with the parameters that this server takes."""

    @abstractmethod
    def _learned_from(self, error: StatusError, sent: frozenset[str]) -> str | None:
        """What the server refuses and the call can go without: remembered for all calls. None for another fault.

        Args: sent = names of the parameters that were sent.
        """

    @abstractmethod
    def _answer(self, content: bytes) -> Answer:
        """The answer in a 200's body."""

    def _leave_out(self, name: str, why: str) -> None:
        """Note that a setting is not sent; says so once."""
        if name not in self._left_out:
            _LOG.warning("%s %s", self.name, why)
            self._left_out.add(name)

    async def _body_made_aside(self, call: Call) -> dict[str, Any]:
        """`_body`, in another thread where pictures are sent for the first time: encoding one can take seconds."""
        first = not any(message.role == "assistant" for message in call.messages)
        if first and any(message.pictures for message in call.messages):
            return await asyncio.to_thread(self._body, call)
        return self._body(call)

    async def _ask(self, body: Mapping[str, Any]) -> _Asked:
        """One request with the SDK's retries, and again where the server refuses a parameter that we can leave out."""
        sdk = self._sdk()
        refused: set[str] = set()
        while True:
            sent = self._accepted(body)
            try:
                async with asyncio.timeout(self._longest_s()):
                    raw = await self._create()(**sent)
            except TimeoutError:  # the SDK's own is an APIError
                return _Asked(answer=Answer(status="error", error=self._too_slow()), retries=len(refused))
            except sdk.APIError as error:
                names = frozenset({**sent, **(sent.get("extra_body") or {})})
                name = self._learned_from(error, names) if isinstance(error, sdk.APIStatusError) else None
                if name is None or name in refused:
                    return self._failed(error, len(refused), sdk)
                refused.add(name)
                continue
            self._reached = True
            return _Asked(answer=self._answer(raw.http_response.content), retries=raw.retries_taken + len(refused))

    def _longest_s(self) -> float:
        """Seconds until a call is given up, retries and their waits included.

        The SDK's limit is one between two pieces of an answer: a server that sends a space now and then never meets it.
        """
        timeout_s, retries = self._endpoint.timeout_s, self._access.max_retries
        return timeout_s * (retries + 1) + (LONGEST_S + 5.0) * retries + min(timeout_s, 5.0)

    def _too_slow(self) -> str:
        limit_s = self._longest_s()
        return f"no whole answer from {self._endpoint.address} within {limit_s:.0f} s; raise timeout_s if it is busy"

    def _failed(self, error: SdkError, refused: int, sdk: ModuleType) -> _Asked:
        failure = failure_from(error, self._endpoint, sdk)
        self._seen_down = self._seen_down or failure.unreachable
        self._reached = self._reached or not failure.unreachable
        finish_reason = CONTEXT_OVERFLOW if failure.overflow else None
        answer = Answer(status="error", error=failure.text, usage=failure.usage, finish_reason=finish_reason)
        return _Asked(answer=answer, retries=failure.retries + refused)

    def _create(self) -> Callable[..., Awaitable[Any]]:
        """The SDK's call, on a client that belongs to the running loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._new_client(), loop
        client = self._client
        if self._seen_down and not self._reached:
            # The first calls waited through all retries for a server that never was there: the others need not.
            client = client.with_options(max_retries=min(1, self._access.max_retries))
        return self._create_on(client)

    def _new_client(self) -> ClientT:
        sdk = self._sdk()
        limits = type(sdk.DEFAULT_CONNECTION_LIMITS)  # of httpx or of httpx2, depending on the SDK's version
        timeout_s, n = self._endpoint.timeout_s, self.max_concurrency
        timeout = sdk.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S), pool=None)
        return self._client_class()(
            api_key=self._access.key or "none",
            base_url=self._endpoint.address,
            max_retries=self._access.max_retries,
            timeout=timeout,
            default_headers=self._access.headers,
            http_client=sdk.DefaultAsyncHttpxClient(
                limits=limits(max_connections=n, max_keepalive_connections=n),
                timeout=timeout,
                event_hooks={"response": [look_through_waits]},
            ),
        )

    def _without_echo(self, answer: Answer) -> Answer:
        """The answer without our own key, where a server for debugging sends back what it was sent."""

        def clean(text: str | None) -> str | None:
            for secret in self._access.secrets:
                text = text and text.replace(secret, MARK)
            return text

        said = (answer.text, answer.reasoning, answer.model, answer.finish_reason)
        if not any(secret in text for secret in self._access.secrets for text in said if text):
            return answer
        return replace(
            answer,
            text=clean(answer.text) or "",
            reasoning=clean(answer.reasoning),
            model=clean(answer.model),
            finish_reason=clean(answer.finish_reason),
        )

    def _safe(self, text: str) -> str:
        """Short, and without any key of ours."""
        text = redact(text)  # it knows our key and headers by the variables they were read from
        return text if len(text) <= _ERROR_LENGTH else f"{text[:_ERROR_LENGTH]}..."


def access_from(
    key: str | None,
    given: Mapping[str, str],
    *,
    max_concurrency: int,
    max_retries: int,
    defaults: Mapping[str, str] | None = None,
) -> Access:
    """How the client is made.

    Args:
        key: None for a server without keys.
        given: `extra_headers`, with `$NAME` not yet read from the environment.
        max_concurrency: connections.
        max_retries: of the SDK.
        defaults: headers that are sent where `given` has none of the same name.

    Raises: MissingKeyError and BackendError, as `options.headers_from`.
    """
    own = headers_from(given)
    # In the defaults' spelling: older SDKs would send a name twice that is spelled in two ways.
    spelling = {name.lower(): name for name in defaults or {}}
    headers = {**(defaults or {}), **{spelling.get(name.lower(), name): value for name, value in own.items()}}
    from_environment = [value for name, value in own.items() if value != given[name]]
    secrets = dict.fromkeys([*filter(None, [key, *from_environment]), *map(settings.bare_secret, from_environment)])
    return Access(
        key=key,
        headers=headers,
        secrets=tuple(secret for secret in secrets if len(secret) >= _LEAST_ECHO),
        max_concurrency=max_concurrency,
        max_retries=max_retries,
    )
