"""1,000 two-round episodes through the harness's command, against a bare asyncio script that sends the same calls.

A server of its own process answers after 200 ms and notes its first request and last answer; three runs each, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
LATENCY_S = 0.2
CONCURRENCY = 32
TARGET = 1.05
N_PICTURES = 50
TASK = """\
task: bench_calls
class: !function interbench_tasks.harness.task.InteractiveTask
dataset_path: json
dataset_kwargs: {data_files: items.jsonl}
test_split: test
generation_kwargs: {until: [], max_new_tokens: 64, temperature: 0}
metadata:
  version: 1.0
  interbench:
    protocol: feedback_loop
    arms: [simple]
    verifier: choice
    roles: {provider: "simulated:in-process,solve=1,invalid=0"}
"""
FEEDBACK = "Your previous answer is incorrect. Try again, and end with an answer in the same format."


def write_items(folder: Path, n: int) -> None:
    """Questions whose right answer the server never gives, so that each has two rounds."""
    for index in range(N_PICTURES):
        noise = Image.effect_noise((128, 128), 40 + index).resize((512, 512), Image.Resampling.BICUBIC)
        noise.convert("RGB").save(folder / f"{index}.png")
    with (folder / "items.jsonl").open("w") as items:
        for index in range(n):
            row = {"id": index, "question": f"Question {index}?", "options": ["w", "x", "y", "z"], "answer": "B"}
            items.write(json.dumps(row | {"image": f"{index % N_PICTURES}.png"}) + "\n")
    (folder / "bench_calls.yaml").write_text(TASK)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The address of a fresh server; it always answers A."""
    command = [sys.executable, "-m", "tests.servers.openai_server", "--port", "0", "--latency", str(LATENCY_S)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(timeout=20)


def stats(url: str) -> dict[str, float]:
    """What the server has seen."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
        seen: dict[str, float] = json.load(answer)
    return seen


def ours(folder: Path, url: str, *, with_ledger: bool = True) -> None:
    """The harness's own command, with a fresh ledger or without any."""
    command = [sys.executable, "-m", "lmms_eval", "--model", "interbench_api", "--tasks", "bench_calls"]
    command += ["--model_args", f"model=openai:bench@{url},max_concurrency={CONCURRENCY}"]
    command += ["--include_path", str(folder), "--output_path", str(folder / "out")]
    with tempfile.TemporaryDirectory() as ledger:
        subprocess.run(
            ["env", f"INTERBENCH_LEDGER={ledger if with_ledger else 'off'}", *command], check=True, capture_output=True
        )


async def bare(folder: Path, url: str) -> None:
    """What one would write by hand: workers that encode each picture once and ask twice."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=8)
    rows = iter([json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()])

    async def work() -> None:
        for row in rows:
            picture = base64.b64encode((folder / row["image"]).read_bytes()).decode()
            options = "\n".join(f"{letter}. {text}" for letter, text in zip("ABCD", row["options"], strict=True))
            content = [
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
                {"type": "text", "text": f"{row['question']}\n{options}"},
            ]
            messages: list[Any] = [{"role": "user", "content": content}]
            for _ in range(2):
                answer = await client.chat.completions.create(
                    model="bench", messages=messages, max_tokens=64, temperature=0
                )
                said = answer.choices[0].message.content
                messages += [{"role": "assistant", "content": said}, {"role": "user", "content": FEEDBACK}]

    await asyncio.gather(*[work() for _ in range(CONCURRENCY)])
    await client.close()


def main() -> int:
    """Print the figures; 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    took: dict[str, list[float]] = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_items(folder, args.episodes)
        for _ in range(args.runs):
            for who in ("bare", "ours"):
                with server() as url:
                    asyncio.run(bare(folder, url)) if who == "bare" else ours(folder, url)
                    seen = stats(url)
                if seen["requests"] != 2 * args.episodes:
                    raise SystemExit(f"{who}: {seen['requests']} requests instead of {2 * args.episodes}")
                took[who].append(seen["first_to_last_s"])
                sys.stdout.write(f"  {who}: {took[who][-1]:.2f} s, at most {seen['most_in_flight']} in flight\n")
    ideal = 2 * args.episodes * LATENCY_S / CONCURRENCY
    mine, hand = (statistics.median(took[who]) for who in ("ours", "bare"))
    sys.stdout.write(
        f"{args.episodes} two-round episodes, 512x512 pictures, {LATENCY_S * 1000:.0f} ms, concurrency {CONCURRENCY}:\n"
        f"  ideal {ideal:.2f} s; bare script {hand:.2f} s ({ideal / hand:.2f} of ideal); ours {mine:.2f} s\n"
        f"  ours / bare script: {mine / hand:.3f} (target <= {TARGET}), medians of {args.runs} runs in turn\n"
    )
    return int(mine / hand > TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
