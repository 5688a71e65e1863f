"""Random trees of calls over several backends give what asking one call after the other gives, and never lock up."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import pytest

import interbench_tasks.engine.batcher as batcher_module
from interbench_tasks.engine import Engine
from interbench_tasks.records import Reply
from tests.engine_fakes import GREEDY, Api, Ledger, Local, Person, episode, failed, record, user, within

NAMES = ("receiver", "provider", "api", "person")


@dataclass(frozen=True)
class Ask:
    backend: str
    word: str


@dataclass(frozen=True)
class InTurn:
    steps: tuple


@dataclass(frozen=True)
class SideBySide:
    arms: tuple


@dataclass(frozen=True)
class Sleep:
    seconds: float


def script(chance: random.Random, depth: int = 3):
    """A random tree: few words, so that many calls of different episodes are identical; some are poison."""
    kind = chance.choice(["ask", "ask", "turn", "arms", "sleep"]) if depth else "ask"
    if kind == "ask":
        word = "poison" if chance.random() < 0.05 else chance.choice("abc")
        return Ask(chance.choices(NAMES, weights=(6, 3, 3, 1))[0], word)
    if kind == "sleep":
        return Sleep(chance.choice([0.0, 0.0, 0.001]))
    parts = tuple(script(chance, depth - 1) for _ in range(chance.randint(1, 3)))
    return InTurn(parts) if kind == "turn" else SideBySide(parts)


async def perform(node, said: str, ask) -> str:
    """What the tree says, given what was said before."""
    if isinstance(node, Ask):
        reply = await ask(node.backend, f"{said[-12:]}{node.word}")
        return f"{said}|{reply.text or reply.status}"
    if isinstance(node, Sleep):
        await asyncio.sleep(node.seconds)
        return said
    if isinstance(node, InTurn):
        for step in node.steps:
            said = await perform(step, said, ask)
        return said
    return "&".join(await asyncio.gather(*(perform(arm, said, ask) for arm in node.arms)))


async def answered_at_once(backend: str, text: str) -> Reply:
    """What the fakes say, without an engine."""
    if "poison" in text:
        return Reply(text="", status="error")
    return Reply(text=text.upper() if backend in ("receiver", "provider") else f"[{text}]")


def run_scripts(scripts, chance: random.Random, engine: Engine):
    """Each script as an episode; returns what the records say, the report and the backends."""
    models = {name: Local(chance.choice([1, 2, 5, 8, 32]), name=name) for name in ("receiver", "provider")}
    jitter = random.Random(chance.random())
    backends = {name: engine.batched(model) for name, model in models.items()}
    backends["api"] = Api(lambda _: jitter.choice([0.0, 0.0, 0.002]), slots=chance.choice([1, 4, 64]), name="api")
    backends["person"] = Person(lambda _: 0.001, slots=4, name="person")
    roots = [f"q{index % 7}" for index in range(len(scripts))]

    async def play(one):
        clients = {name: engine.client(backend, "receiver", GREEDY, one) for name, backend in backends.items()}

        async def ask(name, text):
            return await clients[name].reply([user(text)], round=len(text) % 3)

        said = await perform(scripts[one.doc_id], roots[one.doc_id], ask)
        if one.doc_id % 17 == 5:
            raise ValueError("this episode breaks at its end")
        return record(one, [Reply(text=said)])

    records = []

    def lazily():
        for index in range(len(scripts)):
            yield episode(index, question=roots[index])

    report = engine.run(lazily(), play, on_record=records.append, failed=failed)
    return {one.doc_id: one for one in records}, report, {**backends, **models}, roots


async def in_turn(scripts, roots):
    return [await perform(tree, root, answered_at_once) for tree, root in zip(scripts, roots, strict=True)]


def check(seed: int, n: int, **settings):
    chance = random.Random(seed)
    scripts = [script(chance) for _ in range(n)]
    engine = Engine(progress=False, **settings)
    records, report, backends, roots = within(60, lambda: run_scripts(scripts, chance, engine))
    expected = asyncio.run(in_turn(scripts, roots))
    assert len(records) == n
    for index, said in enumerate(expected):
        if index % 17 == 5:
            assert records[index].error == "ValueError: this episode breaks at its end"
        else:
            assert records[index].turns[0].reply.text == said
    return report, backends


@pytest.mark.parametrize("seed", range(8))
def test_random_scripts_say_what_they_say_one_after_the_other(seed):
    max_live = [None, 1, 3, 40][seed % 4]
    report, backends = check(seed, 400, max_live=max_live, max_wait_s=0.01)
    made = sum(len(backends[name].calls) for name in ("api", "person"))
    made += sum(batch.n_calls for batch in report.batches)
    assert report.calls == made
    assert max_live is None or report.most_live <= max_live
    assert max_live == 1 or report.shared_calls > 0


@pytest.mark.parametrize("seed", range(100, 106))
def test_no_run_depends_on_the_clock_to_go_on(seed, monkeypatch):
    monkeypatch.setattr(batcher_module, "LEAST_WAIT_S", 1e6)  # no batch leaves because a call waited long
    report, _ = check(seed, 300, max_live=[None, 2, 7][seed % 3], max_wait_s=1e6)
    assert report.n_failed == len(range(5, 300, 17))


@pytest.mark.parametrize("seed", range(200, 204))
def test_random_scripts_with_a_ledger_pay_for_no_good_reply_twice(seed):
    ledger = Ledger()
    report, _ = check(seed, 300, ledger=ledger, max_live=[None, 5][seed % 2], max_wait_s=0.01)
    good = report.calls - report.failed_calls
    assert good == len(ledger.kept)
    again, _ = check(seed, 300, ledger=ledger, max_wait_s=0.01)
    assert again.calls == again.failed_calls  # errors are never kept, so they alone are asked again
    assert again.ledger_hits + again.shared_calls + again.calls == (
        report.ledger_hits + report.shared_calls + report.calls
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_030))
def test_thousands_of_random_episodes(seed):
    check(seed, 2_000, max_live=[None, 1, 9, 300][seed % 4], max_wait_s=[0.0, 0.005, 1e6][seed % 3])
