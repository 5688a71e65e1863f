"""Stand-ins for models, backends and a ledger, for the tests of the engine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from interbench_tasks.engine import Engine, EngineReport
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.records import Episode, EpisodeRecord, GenerationSettings, Message, Reply, Turn

GREEDY = GenerationSettings(max_new_tokens=16, temperature=0.0)


def user(text: str) -> Message:
    return Message(role="user", content=(text,))


def episode(index: int, *, question: str | None = None, repeat: int = 0) -> Episode:
    text = f"question {index}" if question is None else question
    return Episode(id=str(index), doc_id=index, repeat=repeat, question=user(text), target="A")


def episodes(n: int) -> list[Episode]:
    return [episode(index) for index in range(n)]


def record(played: Episode, replies: Sequence[Reply] = (), *, status="finished", error=None) -> EpisodeRecord:
    turns = [Turn(index=index, parent=None, user=played.question, reply=reply) for index, reply in enumerate(replies)]
    return EpisodeRecord(
        task="t",
        protocol="p",
        episode_id=played.id,
        doc_id=played.doc_id,
        repeat=played.repeat,
        category=None,
        cluster=None,
        target=played.target,
        options={},
        turns=tuple(turns),
        status=status,
        error=error,
    )


def failed(played: Episode, why: str, status: str) -> EpisodeRecord:
    return record(played, status=status, error=why)


class Local:
    """A batched model: echoes in capitals, remembers its batches and threads."""

    def __init__(self, batch_size: int = 8, *, batch_s: float = 0.0, name: str = "local") -> None:
        self.name = self.fingerprint = name
        self.batch_size = batch_size
        self.batches: list[list[Call]] = []
        self.threads: set[threading.Thread] = set()
        self.batch_s = batch_s

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]

    @property
    def n_calls(self) -> int:
        return sum(self.sizes)

    def generate(self, calls: Sequence[Call]) -> Sequence[Reply]:
        self.batches.append(list(calls))
        self.threads.add(threading.current_thread())
        if self.batch_s:
            time.sleep(self.batch_s)
        for call in calls:
            if "poison" in call.messages[-1].text:
                raise ValueError(f"cannot digest {call.messages[-1].text}")
        return [Reply(text=call.messages[-1].text.upper()) for call in calls]


class Api:
    """An asynchronous backend: echoes in brackets, counts how many calls run at a time."""

    def __init__(
        self, latency_s: float | Callable[[Call], float] = 0.0, *, slots: int | None = None, name: str = "api"
    ) -> None:
        self.name = self.fingerprint = name
        if slots is not None:
            self.max_concurrency = slots
        self.latency_s = latency_s
        self.calls: list[Call] = []
        self.running = self.most = self.closed = 0
        self.closed_on: threading.Thread | None = None

    async def reply(self, call: Call) -> Reply:
        self.calls.append(call)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.latency_s(call) if callable(self.latency_s) else self.latency_s)
        finally:
            self.running -= 1
        text = call.messages[-1].text
        if "poison" in text:
            raise ValueError(f"cannot digest {text}")
        return Reply(text=f"[{text}]")

    async def close(self) -> None:
        self.closed += 1
        self.closed_on = threading.current_thread()


class Person(Api):
    """Somebody at a keyboard."""

    person = True


class Ledger:
    """Keeps replies in memory; `put` takes a while, like a disk."""

    def __init__(self, put_s: float = 0.0) -> None:
        self.kept: dict[str, Reply] = {}
        self.put_s = put_s

    def get(self, key: str) -> Reply | None:
        return self.kept.get(key)

    async def put(self, key: str, reply: Reply, backend: str | None = None) -> None:
        await asyncio.sleep(self.put_s)
        self.kept[key] = reply


class Played:
    """What a run gave back."""

    def __init__(self, report: EngineReport, records: list[EpisodeRecord]) -> None:
        self.report = report
        self.records = records

    @property
    def ids(self) -> list[str]:
        return [one.episode_id for one in self.records]

    def texts(self) -> dict[str, list[str]]:
        return {one.episode_id: [turn.reply.text for turn in one.turns] for one in self.records}


def play_all(engine: Engine, items: Iterable[Episode | EpisodeRecord], play) -> Played:
    records: list[EpisodeRecord] = []
    report = engine.run(items, play, on_record=records.append, failed=failed)
    return Played(report, records)


def asks(engine: Engine, *backends: Backend):
    """A script: asks each backend in turn, the next one with the reply of the one before."""

    async def play(played: Episode) -> EpisodeRecord:
        said, replies = played.question.text, []
        for number, backend in enumerate(backends):
            reply = await engine.client(backend, "receiver", GREEDY, played).reply([user(said)], round=number)
            replies.append(reply)
            said = reply.text
        return record(played, replies)

    return play


def within(seconds: float, work: Callable[[], Played]) -> Played:
    """What `work` gives; a run that hangs fails its test and does not hang the others."""
    got: list[Played] = []
    raised: list[BaseException] = []

    def target() -> None:
        try:
            got.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    assert got, f"the run did not end within {seconds} s"
    return got[0]
