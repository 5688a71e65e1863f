"""Models behind Anthropic's Messages API, through the official SDK, which also does the retries."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from interbench_tasks import settings
from interbench_tasks.backends import options as checks
from interbench_tasks.backends.anthropic_bodies import answer_from, api_messages, api_parameters, budget_of, system_of
from interbench_tasks.backends.bodies import Answer
from interbench_tasks.backends.failures import Endpoint, refusal_of_a_parameter
from interbench_tasks.backends.sdk_backend import SdkBackend, access_from
from interbench_tasks.errors import BackendError

if TYPE_CHECKING:
    import anthropic

    from interbench_tasks.backends.failures import StatusError
    from interbench_tasks.hookspecs import Call
    from interbench_tasks.records import GenerationSettings

ANTHROPIC_ADDRESS = "https://api.anthropic.com"
API_VERSION = "2023-06-01"
"""Sent with every call. The next one, 2026-10-21, which newer SDKs send, takes no temperature from any model; with this
one the task's temperature reaches the models that know it, and the same call means the same with every SDK."""
_PARAMETERS = (
    "cache_control",
    "effort",
    "inference_geo",
    "metadata",
    "output_config",
    "service_tier",
    "thinking",
    "thinking_budget",
    "top_k",
)
"""Further parameters that may stand beside the model's name; `effort` and `thinking_budget` are our short forms."""
_ARGUMENTS = ("api_key_env", "base_url", "extra_headers", "max_concurrency", "max_retries", "timeout_s")
_OURS = frozenset(("model", "messages", "system", "stream", "stop_sequences", "max_tokens", *checks.GENERATION))
"""Parts of a request that are made from the call; nobody may give them a second time."""


class AnthropicBackend(SdkBackend["anthropic.AsyncAnthropic"]):
    """Answers by a model behind the Messages API; does not connect before the first call.

    Args:
        model: as the API knows it, e.g. claude-sonnet-5-5.
        base_url: a proxy or another server with this API; default ANTHROPIC_BASE_URL, else Anthropic itself.
        api_key_env: environment variable of the key; default ANTHROPIC_API_KEY, which may be unset for other servers.
        max_concurrency: calls in flight at once, >= 1; the engine keeps to it.
        timeout_s: seconds for each attempt, > 0.
        max_retries: of the SDK, for broken connections, timeouts, 408, 409, 429 and 5xx (529: overloaded); it honours
            a Retry-After of up to 120 s.
        extra_headers: sent with every call; a value `$NAME` is read from the environment.
        options: generation settings that overrule the task's (`temperature`, `max_new_tokens`, `top_p`; null sends
            none), `thinking_budget` (tokens, >= 1024, on top of max_new_tokens), `thinking` (`adaptive`, `disabled` or
            the API's mapping), `effort` (`low` to `max`), other parameters of the API (`top_k`, `service_tier`, ...),
            and `extra_body`, a mapping of anything.

    Raises: MissingKeyError where a key is needed and not set; BackendError where an argument is wrong.
    """

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
        **options: object,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise BackendError("the anthropic backend needs a model, e.g. anthropic:claude-sonnet-5-5")
        address = checks.checked_address(
            base_url or settings.variable("ANTHROPIC_BASE_URL") or ANTHROPIC_ADDRESS,
            example=ANTHROPIC_ADDRESS,
            call_path="/messages",
        ).removesuffix("/v1")  # which the SDK adds itself, unlike OpenAI's
        checks.check_numbers(max_concurrency=max_concurrency, timeout_s=timeout_s, max_retries=max_retries)
        checks.check_names(options, "anthropic", own=_PARAMETERS, arguments=_ARGUMENTS)
        self._parameters = checks.parameters_from(options, _PARAMETERS)
        checks.refuse_ours(self._parameters, _OURS, "anthropic")
        api_parameters(self._parameters)  # so that a mistake is found now, not in the first call
        self._generation = checks.generation_from(options)
        if self._generation.get("max_new_tokens", 1) is None:
            raise BackendError("max_new_tokens = None: the API always needs a limit; leave it out for the task's")
        at_anthropic = urlsplit(address).hostname == urlsplit(ANTHROPIC_ADDRESS).hostname
        key = checks.key_from(api_key_env, "ANTHROPIC_API_KEY", "anthropic", needed=at_anthropic)
        self._refused: set[str] = set()
        super().__init__(
            name=f"anthropic:{model}",
            fingerprint=checks.fingerprint_of(
                f"anthropic:{model}", address, version=API_VERSION, options=options, extra_headers=extra_headers
            ),
            endpoint=Endpoint(
                model=model,
                address=address,
                key_variable=api_key_env or "ANTHROPIC_API_KEY",
                has_key=key is not None,
                timeout_s=timeout_s,
                address_hint="an address has no /v1 at its end",
            ),
            access=access_from(
                key,
                extra_headers or {},
                max_concurrency=max_concurrency,
                max_retries=max_retries,
                defaults=_default_headers(key, extra_headers or {}),
            ),
        )

    def check_options(self, settings: GenerationSettings, changes: Mapping[str, object]) -> None:
        """Refuse options of a call that would not reach the model. Raises: BackendError."""
        swept = checks.changes_from(changes, "anthropic", _PARAMETERS)
        checks.refuse_fixed(swept, {**self._generation, **self._parameters})
        further = {**settings.options, **self._parameters}
        checks.refuse_ours(further, _OURS, "anthropic")
        api_parameters(further)

    def _body(self, call: Call) -> dict[str, Any]:
        asked = call.settings
        further = {**asked.options, **self._parameters}
        checks.refuse_ours(further, _OURS, "anthropic")
        further = api_parameters(further)
        sampling = {
            "temperature": self._generation.get("temperature", asked.temperature),
            "top_p": self._generation.get("top_p", asked.top_p),
        }
        thinking = further.get("thinking")
        if isinstance(thinking, Mapping) and thinking.get("type") != "disabled":
            sampling = self._with_thinking(sampling)
        own_limit = self._generation.get("max_new_tokens")
        limit = own_limit if isinstance(own_limit, int) else asked.max_new_tokens
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": api_messages(call.messages),
            "system": system_of(call.messages),
            "max_tokens": limit + budget_of(thinking),
            "stop_sequences": list(asked.until) or None,
            # Everything else goes in as extra_body: which of it the SDK's own call knows depends on its version.
            "extra_body": {**{name: value for name, value in sampling.items() if value is not None}, **further},
        }
        return {key: value for key, value in body.items() if value is not None}

    def _with_thinking(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The sampling settings that the API takes beside thinking: temperature 1, top_p of at least 0.95."""
        kept = dict(sampling)
        if kept["temperature"] not in (None, 1):
            self._leave_out("temperature", f"takes no temperature ({kept.pop('temperature')}) with thinking; it is 1")
        if kept["top_p"] is not None and kept["top_p"] < 0.95:
            self._leave_out("top_p", f"takes no top_p below 0.95 ({kept.pop('top_p')}) with thinking; none is sent")
        return kept

    def _accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        extra = {name: value for name, value in body["extra_body"].items() if name not in self._refused}
        return {**body, "extra_body": extra or None}

    def _learned_from(self, error: StatusError, sent: frozenset[str]) -> str | None:
        name = refused_setting(error, sent)
        if name is not None:
            beside = " beside temperature" if name == "top_p" and "temperature" in sent else ""
            self._leave_out(name, f"takes no {name}{beside}; its own default is used instead")
            self._refused.add(name)
        return name

    def _answer(self, content: bytes) -> Answer:
        return answer_from(content)

    def _sdk(self) -> ModuleType:
        import anthropic

        return anthropic

    def _client_class(self) -> Callable[..., anthropic.AsyncAnthropic]:
        import anthropic

        return anthropic.AsyncAnthropic

    def _create_on(self, client: anthropic.AsyncAnthropic) -> Callable[..., Awaitable[Any]]:
        return client.messages.with_raw_response.create


def refused_setting(error: StatusError, sent: frozenset[str]) -> str | None:
    """Which of `temperature` and `top_p` the server does not take, None where the fault is another one.

    Where it takes either, but not both, it is top_p that goes: tasks always set a temperature.
    Args: sent = names of the parameters that were sent.
    """
    said = refusal_of_a_parameter(error)
    if said is None:
        return None
    named = [name for name in ("temperature", "top_p") if name in sent and re.search(rf"\b{name}\b", said)]
    return named[-1] if named else None


def _default_headers(key: str | None, given: Mapping[str, str]) -> dict[str, str]:
    """The API's version, and the key as proxies look for it: newer SDKs send it as a bearer token only."""
    own_authorization = any(name.lower() == "authorization" for name in given)
    key_header = {} if key is None or own_authorization else {"X-Api-Key": key}
    return {"anthropic-version": API_VERSION, **key_header}
