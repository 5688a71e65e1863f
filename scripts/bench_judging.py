"""Speed of a panel: 3,146 flawed items, whose replies are there, before three judges on a server of 200 ms.

- The server takes 32 calls at a time, whoever asks: seconds / (items x 3 x 200 ms / 32).
- Each judge has 32 calls at a time of its own: a third of that time, which no process with the official SDK reaches,
  for it computes about 2 ms a call; so the target is the greater of that time and of the processor's.

A tenth of the items too: on a machine with other work a short run says more. Beside the wall time stands the processor
time of this process, which does not depend on what else runs.

Prints one line a figure: what was measured, the value, the target. Exit code 1 where a target is missed.
Run: python scripts/bench_judging.py [--quick]   (a tenth only)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

from bench_engine import line

from interbench_tasks.hookspecs import Call
from interbench_tasks.records import Reply
from tests.critique_runs import played

N_ITEMS = 3146
LATENCY_S = 0.2
CONCURRENCY = 32
TARGET = 1.10
JUDGES = ("judge-a", "judge-b", "judge-c")
NONCE = re.compile(rb"nonce is the word (\w+)")
TEXT = "A table lists the prices of six kinds of fruit at four shops, with a note on which of them are sold out. " * 8
REPLY = "The table says that apples are sold out at shop 3, and still gives a price for them there. " * 6


class Given:
    """The receiver: its replies are there."""

    name = fingerprint = "given"
    recorded = True

    async def reply(self, call: Call) -> Reply:
        """The same text always."""
        return Reply(text=REPLY)

    async def close(self) -> None:
        """Nothing is open."""


def main() -> int:
    """Measure a tenth, then all; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the items only")
    parser.add_argument("--serve", type=int, help="be a server that takes so many calls at a time")
    arguments = parser.parse_args()
    if arguments.serve is not None:
        asyncio.run(serve(arguments.serve))
        return 0
    met = []
    for n in [N_ITEMS // 10] + ([] if arguments.quick else [N_ITEMS]):
        met.append(measured(n, n_slots=CONCURRENCY))
        met.append(measured(n, n_slots=CONCURRENCY * len(JUDGES)))
    return 0 if all(met) else 1


def measured(n_items: int, *, n_slots: int) -> bool:
    """One run, beside its ideal."""
    n_calls = n_items * len(JUDGES)
    ideal = n_calls * LATENCY_S / n_slots
    with server(n_slots) as url, tempfile.TemporaryDirectory() as name:
        judged(Path(name) / "warm", url, 8)  # the SDK's import is paid before
        before = processor_s()
        began = time.perf_counter()
        judged(Path(name) / "run", url, n_items)
        wall_s, own_s = time.perf_counter() - began, processor_s() - before
    line(f"{n_items} items, {n_calls} verdicts, {n_slots} at a time: s", wall_s, f"ideal {ideal:.1f}")
    line("  processor time of it: s", own_s, "")
    line("  processor time of a verdict: ms", 1000 * own_s / n_calls, "")
    least = ideal if n_slots == CONCURRENCY else max(ideal, own_s)
    what = "  wall / ideal" if least == ideal else "  wall / processor time"
    return line(what, wall_s / least, f"<= {TARGET}", wall_s <= TARGET * least)


def judged(folder: Path, url: str, n_items: int) -> None:
    """Have the replies to some items judged."""
    folder.mkdir()
    rows = [
        {
            "id": f"i{n}",
            "subtype": "BC",
            "T": TEXT,
            "Q": f"Where is fruit {n} cheapest?",
            "gold": {"defect": "sold out"},
        }
        for n in range(n_items)
    ]
    judges = [{"backend": "openai", "model": name, "base_url": url, "max_concurrency": CONCURRENCY} for name in JUDGES]
    _, table = played(folder, rows, Given(), judges=judges)
    if (table["eda"].n, table["n_judge_missing"].value) != (n_items, 0):
        raise SystemExit(f"only {table['eda'].n} of {n_items} items were judged by all")


def processor_s() -> float:
    """Seconds that this process has computed."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# --- the server -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def server(n_slots: int) -> Iterator[str]:
    """The address of a fresh server in a process of its own."""
    command = [sys.executable, __file__, "--serve", str(n_slots)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(timeout=20)


async def serve(n_slots: int) -> None:
    """Give every verdict after the latency until stdin ends; says its address first."""
    from aiohttp import web

    slots = asyncio.Semaphore(n_slots)

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        async with slots:
            began = time.perf_counter()
            found = NONCE.search(body)
            said = verdict(found[1].decode() if found is not None else "none")
            await asyncio.sleep(max(0.0, LATENCY_S - (time.perf_counter() - began)))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        return web.json_response({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    port = runner.addresses[0][1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


def verdict(nonce: str) -> str:
    """What every judge says."""
    found = {"detected": True, "diag": 2, "strategy": "correction", "strategy_score": 2, "reason": "It names the flaw."}
    return json.dumps({"nonce": nonce, **found})


if __name__ == "__main__":
    raise SystemExit(main())
