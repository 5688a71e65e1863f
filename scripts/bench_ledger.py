"""Speed of the ledger: storing replies durably, playing a finished run again, and what it adds to a real run.

Prints one line a figure: what was measured, the value, the target. Exit code 1 where a target is missed.
Run: python scripts/bench_ledger.py [--quick]; --quick leaves out the real runs through the harness's command.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

import bench_calls
from bench_engine import GREEDY, Instant, episode, failed, line, record

from interbench_tasks.engine import Engine, EngineReport
from interbench_tasks.hookspecs import Call
from interbench_tasks.ledger import Ledger
from interbench_tasks.records import Episode as Item
from interbench_tasks.records import EpisodeRecord, Message, Reply, Usage

N_CALLS = 10_000
N_TURNS = 10
N_WRITERS = 32
REPLY = Reply(
    text="word " * 400,
    finish_reason="stop",
    usage=Usage(calls=1, input_tokens=800, output_tokens=400, reasoning_tokens=0),
    model="bench",
)


def bench_storing(folder: Path, n_replies: int) -> bool:
    """Durable replies a second: 32 callers who each wait for the commit, and one alone."""
    ledger = Ledger.open(folder)
    numbers = iter(range(10 * n_replies))

    async def store(n: int) -> None:
        for _ in range(n):
            await ledger.put(f"{next(numbers):064x}", replace(REPLY, text=f"{REPLY.text}{n}"), "bench")

    async def all_at_once() -> float:
        started = time.perf_counter()
        await asyncio.gather(*[store(n_replies // N_WRITERS) for _ in range(N_WRITERS)])
        return n_replies / (time.perf_counter() - started)

    async def one_by_one() -> float:
        started = time.perf_counter()
        await store(n_replies // 10)
        return n_replies / 10 / (time.perf_counter() - started)

    together, alone = asyncio.run(all_at_once()), asyncio.run(one_by_one())
    ledger.close()
    line("one caller alone: durable replies/s", alone, "")
    return line(f"{N_WRITERS} callers: durable replies/s, 2 KB each", together, ">= 1000", together >= 1000)


class Answers(Instant):
    """Answers at once; a stored reply must make it unnecessary."""

    def __init__(self) -> None:
        super().__init__()
        self.n_calls = 0

    async def reply(self, call: Call) -> Reply:
        """The same text always."""
        self.n_calls += 1
        return REPLY


def played(ledger: Ledger | None, backend: Answers) -> EngineReport:
    """10,000 calls in conversations of ten turns."""
    engine = Engine(progress=False, ledger=ledger)

    async def play(item: Item) -> EpisodeRecord:
        ask = engine.client(backend, "receiver", GREEDY, item)
        history = [item.question]
        for turn in range(N_TURNS):
            reply = await ask.reply(history, round=turn)
            said = Message(role="assistant", content=(reply.text,))
            history = [*history, said, Message(role="user", content=(f"And {turn}?",))]
        return record(item)

    items = map(episode, range(N_CALLS // N_TURNS))
    return engine.run(items, play, on_record=lambda _: None, failed=failed)


def bench_playing_again(folder: Path) -> bool:
    """Seconds for a run whose every call is stored, beside the same run that is answered at once without a ledger."""
    ledger, first = Ledger.open(folder), Answers()
    stored_s = played(ledger, first).wall_s
    ledger.close()
    ledger, again = Ledger.open(folder), Answers()
    report = played(ledger, again)
    ledger.close()
    bare_s = played(None, Answers()).wall_s
    if (first.n_calls, again.n_calls, report.ledger_hits) != (N_CALLS, 0, N_CALLS):
        raise SystemExit(f"{first.n_calls} calls, then {again.n_calls} and {report.ledger_hits} hits")
    line(f"{N_CALLS} calls answered at once and stored: s", stored_s, "")
    line(f"{N_CALLS} calls answered at once, no ledger: s", bare_s, "")
    line("played again / no ledger", report.wall_s / bare_s, "")
    line("us a hit more than a call answered at once", (report.wall_s - bare_s) / N_CALLS * 1e6, "")
    return line(f"{N_CALLS} finished calls played again: s", report.wall_s, "< 10", report.wall_s < 10)


def bench_real_run(n_episodes: int, n_runs: int) -> bool:
    """The foundation's benchmark with and without a ledger, in turn."""
    took: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench_calls.write_items(folder, n_episodes)
        for _ in range(n_runs):
            for with_ledger in (False, True):
                with bench_calls.server() as url:
                    bench_calls.ours(folder, url, with_ledger=with_ledger)
                    seen = bench_calls.stats(url)
                if seen["requests"] != 2 * n_episodes:
                    raise SystemExit(f"{seen['requests']} requests instead of {2 * n_episodes}")
                took[with_ledger].append(seen["first_to_last_s"])
    with_it, without = statistics.median(took[True]), statistics.median(took[False])
    line(f"{n_episodes} two-round episodes through the harness, no ledger: s", without, "")
    line(f"{n_episodes} two-round episodes through the harness, ledger: s", with_it, "")
    return line("with / without a ledger", with_it / without, "<= 1.03", with_it / without <= 1.03)


def main() -> int:
    """Run all benchmarks; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the real runs through the harness's command")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        met = [bench_storing(Path(name) / "stored", 10_000), bench_playing_again(Path(name) / "again")]
    if not args.quick:
        met.append(bench_real_run(args.episodes, args.runs))
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
