"""CPU of a ten-turn conversation with one large picture, against the bare SDK that sends the same ready text.

A server of its own process answers at once. Both sides play their conversations one after the other, in turn; counted
is this process' processor time of the nine turns after the first, which encodes the picture on our side.
Prints one line a figure: what was measured, the value, the target. Exit code 1 where a target is missed.
Run: python scripts/bench_picture.py [--conversations N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

import bench_calls
from bench_engine import GREEDY, episode, failed, line, record
from PIL import Image

from interbench_tasks.backends.openai import OpenAIBackend
from interbench_tasks.engine import Engine
from interbench_tasks.images import Picture, picture_from
from interbench_tasks.ledger import Ledger
from interbench_tasks.records import Episode, EpisodeRecord, Message

N_TURNS = 10
SIZE = (2048, 1536)
TARGET = 1.2
QUESTION = "And what does it show at place {turn}?"


def large_picture(seed: int) -> Picture:
    """A picture of the data set's size in a mode that no API takes, so that it has to be encoded."""
    noise = Image.effect_noise((SIZE[0] // 8, SIZE[1] // 8), 40 + seed)
    return picture_from(noise.resize(SIZE, Image.Resampling.BICUBIC).convert("CMYK"), where="bench")


def ours(folder: Path, url: str, pictures: list[Picture]) -> list[float]:
    """Seconds of processor time per further turn of each conversation: engine, ledger and backend."""
    took: list[float] = []
    ledger = Ledger.open(folder)
    engine = Engine(progress=False, ledger=ledger, max_live=1)
    backend = OpenAIBackend("bench", base_url=url)

    async def play(item: Episode) -> EpisodeRecord:
        ask = engine.client(backend, "receiver", GREEDY, item)
        history = [Message(role="user", content=(pictures[item.doc_id], QUESTION.format(turn=0)))]
        started = 0.0
        for turn in range(N_TURNS):
            reply = await ask.reply(history, round=turn)
            assert reply.usable, reply.error
            started = started or time.process_time()
            said = Message(role="assistant", content=(reply.text,))
            history = [*history, said, Message(role="user", content=(QUESTION.format(turn=turn + 1),))]
        took.append((time.process_time() - started) / (N_TURNS - 1))
        return record(item)

    engine.run(map(episode, range(len(pictures))), play, on_record=lambda _: None, failed=failed)
    ledger.close()
    return took


async def bare(url: str, ready: list[str]) -> list[float]:
    """The same of the SDK, which is given each picture as the text that goes out."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=8)
    took: list[float] = []
    for text in ready:
        picture = {"type": "image_url", "image_url": {"url": text}}
        content: Any = [picture, {"type": "text", "text": QUESTION.format(turn=0)}]
        messages: list[Any] = [{"role": "user", "content": content}]
        started = 0.0
        for turn in range(N_TURNS):
            answer = await client.chat.completions.create(
                model="bench", messages=messages, max_tokens=64, temperature=0
            )
            started = started or time.process_time()
            said = answer.choices[0].message.content
            question = {"role": "user", "content": QUESTION.format(turn=turn + 1)}
            messages += [{"role": "assistant", "content": said}, question]
        took.append((time.process_time() - started) / (N_TURNS - 1))
    await client.close()
    return took


def main() -> int:
    """Print the figures; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    mine: list[float] = []
    hand: list[float] = []
    encodings: list[int] = []
    with tempfile.TemporaryDirectory() as name, bench_calls.server(latency_s=0.0) as url:
        for run in range(args.runs):
            pictures = [large_picture(run * args.conversations + index) for index in range(args.conversations)]
            mine += ours(Path(name) / str(run), url, pictures)
            encodings += [picture.encodings for picture in pictures]
            hand += asyncio.run(bare(url, [picture.data_url for picture in pictures]))
            megabytes = len(pictures[0].data_url) / 1e6
    line(f"one {SIZE[0]}x{SIZE[1]} picture as sent: MB", megabytes, "")
    line("encodings of a picture in ten turns, at most", max(encodings), "= 1", max(encodings) == 1)
    line("the bare SDK: ms of CPU per further turn", statistics.median(hand) * 1e3, "")
    line("ours: ms of CPU per further turn", statistics.median(mine) * 1e3, "")
    ratio = statistics.median(mine) / statistics.median(hand)
    met = line("ours / the bare SDK", ratio, f"<= {TARGET}", ratio <= TARGET)
    return 0 if met and max(encodings) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
