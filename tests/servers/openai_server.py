"""An OpenAI-compatible server on 127.0.0.1 that answers as planned, counts everything and checks every request.

In a test: `with OpenAIServer(lambda request: "Answer: B") as server: ... server.url ... server.violations`.
As a process: `python -m tests.servers.openai_server --port 0 --latency 0.2` prints its URL and serves until stdin ends.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from aiohttp import web

from tests.servers.chat_requests import ParsedRequest, RequestReader
from tests.servers.planted_brain import PlantedBrain, items_from_json

MAX_BODY_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedReply:
    """A reply with everything that a plain text cannot say."""

    text: str | None
    """None sends null."""
    finish_reason: str | None = "stop"
    message: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the message, e.g. `reasoning_content`, `refusal`."""
    usage: Mapping[str, object] | None = field(default_factory=lambda: {"prompt_tokens": 11, "completion_tokens": 7})
    """None leaves it out."""
    model: str | None = None
    """None: the model that was asked."""
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way to fail; the constructors below make the usual ones."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    """Closes the connection without an answer."""
    delay_s: float = 0.0


def refusal(
    status: int,
    message: str = "planted",
    *,
    code: str | None = None,
    param: str | None = None,
    retry_after_s: float | None = 0.001,
) -> Fault:
    """An HTTP error as OpenAI writes it. Retries come at once, unless `retry_after_s` says otherwise."""
    error = {"error": {"message": message, "type": "planted", "code": code, "param": param}}
    headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
    return Fault(status=status, body=json.dumps(error).encode(), headers=headers)


DROPPED = Fault(drop=True)
MALFORMED = Fault(body=b'{"id": "x", "choices": [{"message": {"content": "Answ')
HTML = Fault(body=b"<html><body><h1>Welcome</h1></body></html>", content_type="text/html")
EMPTY_BODY = Fault()
NO_CHOICES = Fault(body=b'{"id": "x", "object": "chat.completion", "choices": []}')
NULL_CONTENT = PlantedReply(text=None)
EMPTY_CONTENT = PlantedReply(text="")
NO_USAGE = PlantedReply(text="Answer: A", usage=None)

Answerer = Callable[[ParsedRequest], "str | PlantedReply | Fault"]


@dataclass
class Counts:
    """What the server has seen. Counts every request, failed ones and repeated ones too."""

    requests: int = 0
    by_model: collections.Counter[str] = field(default_factory=collections.Counter)
    pictures: int = 0
    """Pictures sent, each time they are sent."""
    distinct_pictures: set[str] = field(default_factory=set)
    distinct_bodies: set[str] = field(default_factory=set)
    in_flight: int = 0
    most_in_flight: int = 0
    first_at: float = 0.0
    """time.monotonic() of the first request."""
    last_at: float = 0.0
    """time.monotonic() of the last answer."""

    def as_json(self) -> dict[str, object]:
        return {
            "requests": self.requests,
            "by_model": dict(self.by_model),
            "pictures": self.pictures,
            "distinct_pictures": len(self.distinct_pictures),
            "distinct_bodies": len(self.distinct_bodies),
            "most_in_flight": self.most_in_flight,
            "first_to_last_s": self.last_at - self.first_at,
        }


class OpenAIServer:
    """The server; runs in a thread of its own between `with` and its end.

    Args:
        answer: what to say to a request; called in the server's thread, once a request.
        latency_s: seconds until an answer comes.
        api_key: where given, other keys get 401.
        models: what GET /v1/models lists.
        check_replies: whether each assistant message must be what this server said to the very same history; switch
            it off where histories hold recorded answers.
        keep_requests: whether `log` keeps every request.
    """

    path = "/v1/chat/completions"
    url_path = "/v1"
    """What stands after the port in `url`."""
    reader = RequestReader

    def __init__(
        self,
        answer: Answerer,
        *,
        latency_s: float = 0.0,
        api_key: str | None = None,
        models: tuple[str, ...] = ("planted",),
        check_replies: bool = True,
        keep_requests: bool = True,
        port: int = 0,
    ) -> None:
        self.counts = Counts()
        self.violations: list[str] = []
        self.log: list[ParsedRequest] = []
        self.url = ""
        self._answer = answer
        self._latency_s = latency_s
        self._api_key = api_key
        self._models = models
        self._check_replies = check_replies
        self._keep_requests = keep_requests
        self._port = port
        self._reader = self.reader()
        self._said: dict[str, set[str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    @property
    def requests(self) -> int:
        return self.counts.requests

    def __enter__(self) -> OpenAIServer:
        ready = threading.Event()
        failed: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(self.serve(ready))
            except BaseException as error:  # noqa: BLE001 (is raised again in the thread that waits)
                failed.append(error)
                ready.set()

        self._thread = threading.Thread(target=run, name="openai-server", daemon=True)
        self._thread.start()
        ready.wait()
        if failed:
            raise failed[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self.stop)
        self._thread.join(timeout=10)

    def stop(self) -> None:
        """Ends `serve`; to be called in its loop."""
        assert self._stop is not None
        self._stop.set()

    async def serve(self, ready: threading.Event) -> None:
        """Serve until `stop`."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post(self.path, self._chat)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/stats", self._stats)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self._port, backlog=1024)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}{self.url_path}"
            ready.set()
            await self._stop.wait()
        finally:
            await runner.cleanup()

    def key_in(self, headers: Mapping[str, str]) -> str:
        """The key that a request carries."""
        return headers.get("Authorization", "").removeprefix("Bearer ")

    def refusal_of(self, status: int, message: str) -> Fault:
        """An HTTP error of this API's shape."""
        return refusal(status, message, code="invalid_api_key" if status == 401 else None)

    def body_of(self, reply: PlantedReply, request: ParsedRequest) -> bytes:
        """A 200's body of this API's shape."""
        return _completion(reply, request)

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        counts = self.counts
        number, counts.requests = counts.requests, counts.requests + 1
        counts.first_at = counts.first_at or time.monotonic()
        counts.in_flight += 1
        counts.most_in_flight = max(counts.most_in_flight, counts.in_flight)
        try:
            return await self._response(http, body, number)
        finally:
            counts.in_flight -= 1
            counts.last_at = time.monotonic()

    async def _response(self, http: web.Request, body: bytes, number: int) -> web.StreamResponse:
        if self._api_key is not None and self.key_in(http.headers) != self._api_key:
            return _http_from(self.refusal_of(401, "Incorrect API key provided"))
        try:
            request = self._reader.request_from(body, http.headers, number)
        except ValueError as error:
            self.violations.append(f"request {number}: {error}")
            return _http_from(self.refusal_of(400, str(error)))
        self._count(request)
        try:
            planned = self._answer(request)
        except Exception as error:  # noqa: BLE001 (whatever the test's own function does wrong must be seen)
            self.violations.append(f"request {number} to {request.model}: no answer was planted: {error!r}")
            return _http_from(self.refusal_of(400, f"no answer was planted: {error!r}"))
        if isinstance(planned, str):
            planned = PlantedReply(text=planned)
        wait = self._latency_s + planned.delay_s
        if wait:
            await asyncio.sleep(wait)
        if isinstance(planned, Fault):
            if planned.drop and http.transport is not None:
                http.transport.abort()
            return _http_from(planned)
        self._said.setdefault(request.history_digests()[-1], set()).add(planned.text or "")
        return _http_from(Fault(body=self.body_of(planned, request)))

    def _count(self, request: ParsedRequest) -> None:
        counts = self.counts
        counts.by_model[request.model] += 1
        counts.distinct_bodies.add(request.body_digest)
        for message in request.messages:
            counts.pictures += len(message.pictures)
            counts.distinct_pictures.update(picture.sha256 for picture in message.pictures)
        self.violations += request.violations
        if self._check_replies:
            self.violations += self._invented(request)
        if self._keep_requests:
            self.log.append(request)

    def _invented(self, request: ParsedRequest) -> list[str]:
        """Assistant messages that this server never said after the messages before them."""
        digests = request.history_digests()
        return [
            f"request {request.number} to {request.model}: message {position} is not what was said to this history"
            for position, message in enumerate(request.messages)
            if message.role == "assistant" and message.text not in self._said.get(digests[position - 1], ())
        ]

    async def _list_models(self, http: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self._models]})

    async def _stats(self, http: web.Request) -> web.Response:
        return web.json_response({**self.counts.as_json(), "violations": self.violations})


def _completion(reply: PlantedReply, request: ParsedRequest) -> bytes:
    message = {"role": "assistant", "content": reply.text, **reply.message}
    body: dict[str, object] = {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": reply.model or request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
    }
    if reply.usage is not None:
        body["usage"] = dict(reply.usage)
    return json.dumps(body).encode()


def _http_from(fault: Fault) -> web.Response:
    return web.Response(
        status=fault.status, body=fault.body, content_type=fault.content_type, headers=dict(fault.headers)
    )


async def _serve_until_stdin_ends(server: OpenAIServer) -> None:
    ready = threading.Event()
    serving = asyncio.create_task(server.serve(ready))
    while not ready.is_set() and not serving.done():
        await asyncio.sleep(0.01)
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.stop()
    await serving


def main() -> None:
    """Serve as a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until an answer comes")
    parser.add_argument("--items", type=Path, help="JSON list of {id, question, target, options, pixels}")
    parser.add_argument("--seed", type=int, default=0)
    for rate in ("accuracy", "correction", "flip", "invalid"):
        parser.add_argument(f"--{rate}", type=float)
    args = parser.parse_args()
    rates = {name: getattr(args, name) for name in ("accuracy", "correction", "flip", "invalid")}
    given = {name: rate for name, rate in rates.items() if rate is not None}
    answer: Answerer = lambda request: "Looking at it closely.\nAnswer: A"  # noqa: E731 (one of two)
    if args.items:
        answer = PlantedBrain(items_from_json(args.items.read_text()), seed=args.seed, **given)
    server = OpenAIServer(answer, latency_s=args.latency, keep_requests=False, port=args.port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_until_stdin_ends(server))


if __name__ == "__main__":
    main()
