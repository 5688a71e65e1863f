"""A server with Anthropic's Messages API on 127.0.0.1 that answers as planned and checks every request.

In a test: `with AnthropicServer(lambda request: "Answer: B") as server: ... server.url ... server.violations`.
Plants and counts are those of `openai_server`; a plain text becomes a message that ends with `end_turn`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.servers.chat_requests import (
    ParsedMessage,
    ParsedPicture,
    ParsedRequest,
    RequestReader,
    order_violations,
)
from tests.servers.openai_server import Fault, OpenAIServer, PlantedReply

PICTURE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
KNOWN = {
    *("cache_control", "inference_geo", "max_tokens", "messages", "metadata", "model", "output_config", "service_tier"),
    *("stop_sequences", "stream", "system", "temperature", "thinking", "top_k", "top_p"),
}
"""Parameters of the API, but for tools; it refuses any other one."""
ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}  # fmt: skip


def api_refusal(status: int, message: str = "planted", *, retry_after_s: float | None = 0.001) -> Fault:
    """An HTTP error as Anthropic writes it. Retries come at once, unless `retry_after_s` says otherwise."""
    kind = ERROR_TYPES.get(status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_planted"}
    headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
    return Fault(status=status, body=json.dumps(body).encode(), headers=headers)


def planted_message(
    *blocks: str | Mapping[str, object],
    stop_reason: str | None = "end_turn",
    usage: Mapping[str, object] | None = None,
    **fields: object,
) -> PlantedReply:
    """A reply of content blocks; a text stands for a text block. `fields` go into the message, e.g. `stop_details`."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else dict(block) for block in blocks]
    text = "".join(str(block["text"]) for block in content if block["type"] == "text")
    return PlantedReply(
        text=text,
        finish_reason=stop_reason,
        usage=usage or {"input_tokens": 11, "output_tokens": 7},
        message={"content": content, **fields},
    )


def thinking(words: str) -> dict[str, object]:
    """A block of thoughts."""
    return {"type": "thinking", "thinking": words, "signature": "c2lnbmVk"}


@dataclass
class MessagesReader(RequestReader):
    """Reads bodies of the Messages API."""

    def request_from(self, body: bytes, headers: Mapping[str, str], number: int) -> ParsedRequest:
        """Raises: ValueError where the body is no request of this API at all."""
        data = json.loads(body)
        if not isinstance(data, dict) or not isinstance(data.get("messages"), list) or not data.get("model"):
            raise ValueError("no JSON object with model and messages")
        lower = {name.lower(): value for name, value in headers.items()}
        violations = [*header_violations(lower), *parameter_violations(data)]
        messages = [self._message(raw, violations) for raw in data.pop("messages")]
        violations += order_violations([message.role for message in messages])
        if messages and messages[0].role == "system":
            violations.append("a system message among the messages")
        system, model = data.pop("system", None), data.pop("model")
        if system is not None:
            messages.insert(0, self._message({"role": "system", "content": system}, violations))
        return ParsedRequest(
            number=number,
            model=model,
            messages=tuple(messages),
            parameters=data,
            headers=lower,
            body_digest=hashlib.blake2b(body, digest_size=16).hexdigest(),
            violations=tuple(f"request {number} to {model}: {violation}" for violation in violations),
        )

    def _message(self, raw: Mapping[str, object], violations: list[str]) -> ParsedMessage:
        content = raw.get("content")
        if isinstance(content, str) and not content.strip():
            violations.append(f"a {raw.get('role')} message without words")
        return super()._message(raw, violations)

    def _part(self, part: Mapping[str, object], role: str, violations: list[str]) -> str | ParsedPicture:
        if part.get("type") == "text" and not str(part.get("text")).strip():
            violations.append("a text block without words")
        source = part.get("source")
        if part.get("type") != "image" or not isinstance(source, dict):
            return super()._part(part, role, violations)
        if source.get("type") != "base64" or source.get("media_type") not in PICTURE_TYPES:
            violations.append(f"a picture of type {source.get('type')!r} and {source.get('media_type')!r}")
        url = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return super()._part({"type": "image_url", "image_url": {"url": url}}, role, violations)


def header_violations(headers: Mapping[str, str]) -> list[str]:
    return [f"no header {name}" for name in ("x-api-key", "anthropic-version") if not headers.get(name)]


def parameter_violations(data: Mapping[str, object]) -> list[str]:
    """What the real API would answer 400 to."""
    found = [f"{name}: Extra inputs are not permitted" for name in sorted(data.keys() - KNOWN)]
    limit, thought = data.get("max_tokens"), data.get("thinking")
    if not isinstance(limit, int) or limit < 1:
        return [*found, f"max_tokens = {limit!r}"]
    stops = data.get("stop_sequences", [])
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop.strip() for stop in stops):
        found.append(f"stop_sequences = {stops!r}")
    if not isinstance(thought, dict) or thought.get("type") == "disabled":
        return found
    budget = thought.get("budget_tokens")
    if thought.get("type") == "enabled" and not (isinstance(budget, int) and 1024 <= budget < limit):
        found.append(f"thinking.budget_tokens = {budget!r} with max_tokens = {limit}")
    if data.get("temperature", 1) != 1:
        found.append("temperature may only be set to 1 when thinking is enabled")
    return found


class AnthropicServer(OpenAIServer):
    """The server; see `OpenAIServer` for its arguments. Its address has no /v1 at its end."""

    path = "/v1/messages"
    url_path = ""
    reader = MessagesReader

    def key_in(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key", "")

    def refusal_of(self, status: int, message: str) -> Fault:
        return api_refusal(status, message)

    def body_of(self, reply: PlantedReply, request: ParsedRequest) -> bytes:
        if "content" not in reply.message:  # planted as a plain text
            reply = replace(planted_message(reply.text or ""), model=reply.model)
        body: dict[str, object] = {
            "id": f"msg_{request.number}",
            "type": "message",
            "role": "assistant",
            "model": reply.model or request.model,
            "stop_reason": reply.finish_reason,
            "stop_sequence": None,
            **reply.message,
        }
        if reply.usage is not None:
            body["usage"] = dict(reply.usage)
        return json.dumps(body).encode()


def kinds_of(content: Sequence[str | ParsedPicture]) -> list[str]:
    """Texts as they are, pictures by their type."""
    return [part if isinstance(part, str) else part.mime for part in content]
