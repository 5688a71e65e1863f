"""Any server that speaks OpenAI's chat completions API, through the official SDK, which also does the retries."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from interbench_tasks import settings
from interbench_tasks.backends import options as checks
from interbench_tasks.backends.bodies import Answer
from interbench_tasks.backends.chat_bodies import answer_from, chat_messages
from interbench_tasks.backends.failures import Endpoint, refusal_of_a_parameter
from interbench_tasks.backends.sdk_backend import SdkBackend, access_from
from interbench_tasks.errors import BackendError

if TYPE_CHECKING:
    import openai

    from interbench_tasks.backends.failures import StatusError
    from interbench_tasks.hookspecs import Call
    from interbench_tasks.records import GenerationSettings

MaxTokensField = Literal["auto", "max_tokens", "max_completion_tokens"]
OPENAI_ADDRESS = "https://api.openai.com/v1"
_OPENAI_STOPS = 4
_PARAMETERS = (
    "effort",
    "frequency_penalty",
    "logit_bias",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "verbosity",
)
"""Further parameters of the API that may stand beside the model's name; `effort` is our short form."""
_SHORT: Mapping[str, str] = {"effort": "reasoning_effort"}
"""Our word, the same for each backend -> the API's."""
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
_OURS = frozenset(
    ("model", "messages", "stream", "n", "stop", "max_tokens", "max_completion_tokens", *checks.GENERATION)
)
"""Parts of a request that are made from the call; nobody may give them a second time."""


class OpenAIBackend(SdkBackend["openai.AsyncOpenAI"]):
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
            none), parameters of the API (`seed`, `reasoning_effort` or for short `effort`, ...), and `extra_body`, a
            mapping of anything.

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
        max_tokens_field: MaxTokensField = "auto",
        image_detail: str | None = None,
        **options: object,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise BackendError("the openai backend needs a model, e.g. openai:gpt-4o-2024-08-06")
        address = checks.checked_address(
            base_url or settings.variable("OPENAI_BASE_URL") or OPENAI_ADDRESS,
            example="http://localhost:8000/v1",
            call_path="/chat/completions",
        )
        checks.check_numbers(max_concurrency=max_concurrency, timeout_s=timeout_s, max_retries=max_retries)
        checks.check_one_of("max_tokens_field", max_tokens_field, ("auto", "max_tokens", "max_completion_tokens"))
        checks.check_one_of("image_detail", image_detail, (None, "auto", "high", "low"))
        checks.check_names(options, "openai", own=_PARAMETERS, arguments=_ARGUMENTS)
        self._image_detail = image_detail
        self._parameters = _spelled_out(checks.parameters_from(options, _PARAMETERS))
        checks.refuse_ours(self._parameters, _OURS, "openai")
        self._generation = checks.generation_from(options)
        self._at_openai = urlsplit(address).hostname == urlsplit(OPENAI_ADDRESS).hostname
        # OpenAI itself takes the new name with every model; other servers mostly know the old one only.
        automatic = "max_completion_tokens" if self._at_openai else "max_tokens"
        self._may_switch_field = max_tokens_field == "auto"
        self._max_tokens_field = automatic if self._may_switch_field else max_tokens_field
        key = checks.key_from(api_key_env, "OPENAI_API_KEY", "openai", needed=self._at_openai)
        super().__init__(
            name=f"openai:{model}",
            fingerprint=checks.fingerprint_of(
                f"openai:{model}", address, image_detail=image_detail, options=options, extra_headers=extra_headers
            ),
            endpoint=Endpoint(
                model=model,
                address=address,
                key_variable=api_key_env or "OPENAI_API_KEY",
                has_key=key is not None,
                timeout_s=timeout_s,
                address_hint="addresses mostly end in /v1",
            ),
            access=access_from(key, extra_headers or {}, max_concurrency=max_concurrency, max_retries=max_retries),
        )

    def check_options(self, settings: GenerationSettings, changes: Mapping[str, object]) -> None:
        """Refuse options of a call that would not reach the model. Raises: BackendError."""
        swept = _spelled_out(checks.changes_from(changes, "openai", _PARAMETERS))
        checks.refuse_fixed(swept, {**self._generation, **self._parameters})
        checks.refuse_ours({**_spelled_out(settings.options), **self._parameters}, _OURS, "openai")

    def _body(self, call: Call) -> dict[str, Any]:
        asked = call.settings
        further = {**_spelled_out(asked.options), **self._parameters}
        checks.refuse_ours(further, _OURS, "openai")
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

    def _accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        sent = {name: value for name, value in body.items() if name not in self._left_out}
        if "max_tokens" in sent:
            sent[self._max_tokens_field] = sent.pop("max_tokens")
        return sent

    def _learned_from(self, error: StatusError, sent: frozenset[str]) -> str | None:
        refused = refused_parameter(error, sent)
        if refused == "max_tokens":
            if not self._may_switch_field:
                return None
            self._max_tokens_field = "max_completion_tokens"
        if refused == "temperature":
            self._leave_out("temperature", "takes no temperature; its own default is used instead")
        return refused

    def _answer(self, content: bytes) -> Answer:
        return answer_from(content)

    def _sdk(self) -> ModuleType:
        import openai

        return openai

    def _client_class(self) -> Callable[..., openai.AsyncOpenAI]:
        import openai

        return openai.AsyncOpenAI

    def _create_on(self, client: openai.AsyncOpenAI) -> Callable[..., Awaitable[Any]]:
        return client.chat.completions.with_raw_response.create


def _spelled_out(parameters: Mapping[str, object]) -> dict[str, object]:
    """The parameters as the API calls them. Raises: BackendError where one is given under both its names."""
    twice = [short for short, name in _SHORT.items() if short in parameters and name in parameters]
    if twice:
        raise BackendError(f"{twice[0]} and {_SHORT[twice[0]]} are both given, and are the same; leave one out")
    return {_SHORT.get(name, name): value for name, value in parameters.items()}


def refused_parameter(error: StatusError, sent: frozenset[str]) -> str | None:
    """Which of `max_tokens` and `temperature` the server does not take at all, None where the fault is another one.

    Args: sent = names of the parameters that were sent.
    """
    said = refusal_of_a_parameter(error)
    if said is None:
        return None
    param = getattr(error, "param", None)
    if "max_tokens" in sent and (param == "max_tokens" or "max_completion_tokens" in said):
        return "max_tokens"
    if "temperature" in sent and (param == "temperature" or re.search(r"\btemperature\b", said)):
        return "temperature"
    return None
