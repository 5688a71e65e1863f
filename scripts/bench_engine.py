"""Speed and memory of the engine, with stand-ins for the models: medians of three runs.

Prints one line a figure: what was measured, the value, the target. Exit code 1 where a target is missed that can be
met: without knowing which calls will be slow, no schedule comes within 1.15 of `longest chain` where 5% are.
Run: python scripts/bench_engine.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

from interbench_tasks.engine import Engine, EngineReport
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.records import Episode, EpisodeRecord, GenerationSettings, Message, Reply, Turn

GREEDY = GenerationSettings(max_new_tokens=64, temperature=0.0)
BATCH_SIZE = 8
BATCH_S = 0.05
N_EPISODES = 200


class SleepyModel:
    """A local model whose every batch takes as long, however full it is."""

    name = "sleepy"
    fingerprint = "sleepy"
    batch_size = BATCH_SIZE

    def generate(self, calls: Sequence[Call]) -> list[Reply]:
        """One reply a call."""
        time.sleep(BATCH_S)
        return [Reply(text="A") for _ in calls]


class Provider:
    """An API whose latency is a function of the episode."""

    name = "provider"
    fingerprint = "provider"
    max_concurrency = 10_000

    def __init__(self, latency_s: Callable[[int], float], text: str = "B") -> None:
        self._latency_s = latency_s
        self._text = text

    async def reply(self, call: Call) -> Reply:
        """The same text always, after the episode's latency."""
        await asyncio.sleep(self._latency_s(call.episode.doc_id))
        return Reply(text=f"{call.episode.doc_id}{self._text}")

    async def close(self) -> None:
        """Nothing to free."""


def episode(index: int) -> Episode:
    """An episode whose question is its own."""
    question = Message(role="user", content=(f"question {index}",))
    return Episode(id=str(index), doc_id=index, question=question, target="A")


def record(played: Episode, turns: Sequence[Turn] = (), error: str | None = None) -> EpisodeRecord:
    """The record of an episode."""
    return EpisodeRecord(
        task="bench",
        protocol="bench",
        episode_id=played.id,
        doc_id=played.doc_id,
        repeat=0,
        category=None,
        cluster=None,
        target=played.target,
        options={},
        turns=tuple(turns),
        status="finished" if error is None else "failed",
        error=error,
    )


def failed(played: Episode, why: str, _status: str) -> EpisodeRecord:
    """The record of an episode that failed."""
    return record(played, error=why)


def two_rounds(latency_s: Callable[[int], float]) -> EngineReport:
    """200 episodes: receiver, provider, receiver."""
    engine = Engine(progress=False)
    receiver, provider = engine.batched(SleepyModel()), Provider(latency_s)

    async def play(played: Episode) -> EpisodeRecord:
        ask = engine.client(receiver, "receiver", GREEDY, played)
        first = await ask.reply([played.question])
        said = Message(role="assistant", content=(first.text,))
        feedback = await engine.client(provider, "provider", GREEDY, played).reply([played.question, said])
        again = Message(role="user", content=(feedback.text,))
        await ask.reply([played.question, said, again], round=1)
        return record(played)

    return engine.run(map(episode, range(N_EPISODES)), play, on_record=lambda _: None, failed=failed)


def latencies(kind: str, seed: int) -> list[float]:
    """Provider latency of each episode, in seconds."""
    chance = random.Random(seed)
    times = 20 if kind.startswith("20x") else 1
    plain = [times * BATCH_S * (chance.expovariate(1) if "jitter" in kind else 1) for _ in range(N_EPISODES)]
    return [60 * BATCH_S if "tail" in kind and chance.random() < 0.05 else latency for latency in plain]


def bench_makespan(kind: str, n_runs: int) -> bool:
    """Makespan over what no schedule can beat, and the receiver's idle share.

    Two bounds: `work or chain` supposes that slow episodes were known beforehand and started first; `in line` lets
    the i-th episode's first batch be the i/8-th, which is the best that is possible without knowing.
    """
    blind, in_line, idle, fills, lives = [], [], [], [], []
    for seed in range(n_runs):
        slow = latencies(kind, seed)
        report = two_rounds(slow.__getitem__)
        work = 2 * N_EPISODES / BATCH_SIZE * BATCH_S
        blind.append(report.wall_s / max(work, 2 * BATCH_S + max(slow)))
        chains = [(i // BATCH_SIZE + 1) * BATCH_S + latency + BATCH_S for i, latency in enumerate(slow)]
        in_line.append(report.wall_s / max(work, *chains))
        idle.append(report.idle_s / (report.wall_s))
        fills.append(report.batches[0].fill or 0.0)
        lives.append(report.most_live)
    middle = statistics.median
    line(f"{kind}: makespan / max(work, chain in line)", middle(in_line), "<= 1.15", middle(in_line) <= 1.15)
    line(f"{kind}: makespan / max(work, longest chain)", middle(blind), "<= 1.15", middle(blind) <= 1.15)
    line(f"{kind}: receiver idle while unstarted", middle(idle), "< 0.10", middle(idle) < 0.10)
    line(f"{kind}: fill; most live", middle(fills), f"{middle(lives):.0f} live")
    return middle(in_line) <= 1.15 and middle(idle) < 0.10


def bench_two_models(n_runs: int) -> bool:
    """Makespan over the work of both, where the provider is a local model too."""
    ratios, fills = [], []
    for _ in range(n_runs):
        engine = Engine(progress=False)
        models = SleepyModel(), SleepyModel()
        models[1].fingerprint = models[1].name = "sleepy provider"
        receiver, provider = map(engine.batched, models)

        async def play(
            played: Episode, engine: Engine = engine, order: tuple[Backend, ...] = (receiver, provider, receiver)
        ) -> EpisodeRecord:
            for round, backend in enumerate(order):
                again = Message(role="user", content=(f"{played.id} {round}",))
                await engine.client(backend, "receiver", GREEDY, played).reply([again], round=round)
            return record(played)

        report = engine.run(map(episode, range(N_EPISODES)), play, on_record=lambda _: None, failed=failed)
        ratios.append(report.wall_s / (3 * N_EPISODES / BATCH_SIZE * BATCH_S))
        fills.append(min(batch.fill or 0.0 for batch in report.batches))
    ratio = statistics.median(ratios)
    line("two local models: smaller fill", statistics.median(fills), "")
    return line("two local models: makespan / work", ratio, "<= 1.15", ratio <= 1.15)


def bench_memory(n_episodes: int) -> bool:
    """Resident memory above that after the first 1,000 episodes, with 5 KB replies and records dropped when written."""
    process, seen, marks = psutil.Process(), 0, []
    engine = Engine(progress=False)
    backend = Provider(lambda _: 0.0, text="x" * 5_000)

    async def play(played: Episode) -> EpisodeRecord:
        reply = await engine.client(backend, "receiver", GREEDY, played).reply([played.question])
        return record(played, [Turn(index=0, parent=None, user=played.question, reply=reply)])

    def on_record(_: EpisodeRecord) -> None:
        nonlocal seen
        seen += 1
        if seen % 1_000 == 0:
            marks.append(process.memory_info().rss / 2**20)

    def episodes() -> Iterator[Episode]:
        yield from map(episode, range(n_episodes))

    engine.run(episodes(), play, on_record=on_record, failed=failed)
    grown = max(marks) - marks[0]
    return line(f"{n_episodes} episodes, 5 KB replies: MB above the first 1,000", grown, "< 150", grown < 150)


def bench_overhead(n_calls: int, n_runs: int, *, batched: bool) -> bool:
    """Engine time a call, with a model that answers at once."""
    costs = []
    for _ in range(n_runs):
        engine = Engine(progress=False)
        backend = engine.batched(InstantModel()) if batched else Instant()

        async def play(played: Episode, engine: Engine = engine, backend: Backend = backend) -> EpisodeRecord:
            ask = engine.client(backend, "receiver", GREEDY, played)
            for turn in range(10):
                await ask.reply([played.question, Message(role="user", content=(str(turn),))])
            return record(played)

        report = engine.run(map(episode, range(n_calls // 10)), play, on_record=lambda _: None, failed=failed)
        costs.append(report.wall_s / report.calls * 1e6)
    cost = statistics.median(costs)
    kind = "in batches of 8" if batched else "asynchronous backend"
    return line(f"engine us/call, {kind}", cost, "< 150", cost < 150)


class InstantModel(SleepyModel):
    """A local model that takes no time."""

    def generate(self, calls: Sequence[Call]) -> list[Reply]:
        """One reply a call."""
        return [Reply(text="A") for _ in calls]


class Instant(Provider):
    """Answers at once, without ever giving the loop away."""

    def __init__(self) -> None:
        super().__init__(lambda _: 0.0)

    async def reply(self, call: Call) -> Reply:
        """The same text always."""
        return Reply(text="A")


def line(what: str, value: float, target: str, met: bool | None = None) -> bool:
    """Write one figure."""
    verdict = {True: "ok", False: "MISSED", None: ""}[met]
    sys.stdout.write(f"{what:<62}{value:>10.3f}  {target:<10} {verdict}\n")
    sys.stdout.flush()
    return met is not False


def main() -> int:
    """Run all benchmarks; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run each, fewer episodes")
    quick = parser.parse_args().quick
    n_runs = 1 if quick else 3
    kinds = ("1x", "20x", "1x, 5% tail of 60x", "20x, 5% tail of 60x", "20x jitter")
    met = [bench_memory(3_000 if quick else 20_000)]  # first: later the process is grown already
    met += [bench_makespan(kind, n_runs) for kind in kinds]
    met.append(bench_two_models(n_runs))
    met += [bench_overhead(2_000 if quick else 20_000, n_runs, batched=batched) for batched in (False, True)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
