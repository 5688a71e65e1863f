"""Speed of long conversations: against a server of 200 ms, and all ten conversations of LoCoMo through the harness.

- 60 conversations of 10 turns and 6 questions with a judge, each of the two a server of 32 calls at a time: seconds /
  max(the receiver's calls x latency / 32, longest chain x latency). The SDK's import is paid before.
- LoCoMo (1,986 questions, about 20k tokens each) with recorded replies, a simulated receiver and judge, through the
  harness's command; left out with a line where the data is not there.

Prints one line a figure: what was measured, the value, the target. Exit code 1 where a target is missed.
Run: python scripts/bench_conversations.py [--locomo FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

import bench_calls
from bench_engine import line

from interbench_tasks.locomo import locomo_rows
from tests.conversation_runs import played, row, server_backend

ROOT = Path(__file__).resolve().parent.parent
N_TALKS, N_TURNS, N_QUESTIONS = 60, 10, 6
LATENCY_S = 0.2
CONCURRENCY = 32
TARGET = 1.2


def bench_server(folder: Path) -> bool:
    """Wall time of 60 conversations over what their calls take at least."""
    with bench_calls.server(LATENCY_S) as url, bench_calls.server(LATENCY_S) as judge:
        roles = {"judge": f"openai:gpt@{judge},max_concurrency={CONCURRENCY}"}
        receiver = server_backend(url, max_concurrency=CONCURRENCY)
        played(folder / "warm", [row("warm", 1, 1)], receiver, roles=roles)
        rows = [row(f"talk{number}", N_TURNS, N_QUESTIONS) for number in range(N_TALKS)]
        receiver = server_backend(url, max_concurrency=CONCURRENCY)
        began = time.perf_counter()
        _, run = played(folder / "run", rows, receiver, roles=roles)
        wall_s = time.perf_counter() - began
    wanted = N_TALKS * (N_TURNS + 2 * N_QUESTIONS)
    if run.report.calls != wanted:
        raise SystemExit(f"{run.report.calls} calls instead of {wanted}")
    of_receiver = N_TALKS * (N_TURNS + N_QUESTIONS)
    ideal = max(of_receiver * LATENCY_S / CONCURRENCY, (N_TURNS + 2) * LATENCY_S)
    line(f"{N_TALKS} conversations, {run.report.calls} calls of {LATENCY_S:g} s: s", wall_s, "")
    return line(
        "wall / max(receiver's calls x latency / 32, longest chain)",
        wall_s / ideal,
        f"<= {TARGET}",
        wall_s <= TARGET * ideal,
    )


def bench_locomo(folder: Path, source: Path) -> bool:
    """All ten conversations through the harness's own command; the time between is the run's own."""
    if not source.is_file():
        sys.stdout.write(f"LoCoMo is left out: there is no {source}\n")
        return True
    data = folder / "locomo.jsonl"
    rows = locomo_rows(source)
    data.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    command = ["env", f"INTERBENCH_DATA={data}", "INTERBENCH_JUDGES=simulated:judge", "INTERBENCH_LEDGER=off"]
    command += [sys.executable, "-m", "lmms_eval", "--model", "interbench_simulated", "--tasks", "mmrc_recorded"]
    command += ["--model_args", "accuracy=0.9,forget_after=100", "--output_path", str(folder / "out")]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    took_s = time.perf_counter() - began
    found = list((folder / "out").rglob("metrics.json"))
    if done.returncode or not found:
        raise SystemExit(f"the harness failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    metrics: dict[str, Any] = json.loads(found[0].read_text(encoding="utf-8"))["metrics"]
    line("LoCoMo through the harness, its start included: s", took_s, "")
    line("questions", metrics["n_questions"]["value"], "")
    return line("conversations that failed", metrics["n_failed"]["value"], "= 0", metrics["n_failed"]["value"] == 0)


def main() -> int:
    """Run both; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, default=ROOT.parent / "shared" / "data" / "locomo" / "locomo10.zip")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        met = [bench_server(Path(name) / "server"), bench_locomo(Path(name), args.locomo)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
