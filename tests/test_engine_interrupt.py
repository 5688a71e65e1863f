"""A real Ctrl-C in a real process: it ends within a second, what is finished stays, and a second one does not hang."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
WITHIN_S = 1.0

PROGRAM = """
import asyncio, json, sys, threading, time
from tests.engine_fakes import GREEDY, Api, Local, asks, episode, episodes, failed, record
from interbench_tasks.engine import Engine

def ready():
    sys.stdout.write("ready\\n"); sys.stdout.flush()

class Waits(Local):
    first = True
    def generate(self, calls):
        if self.first:
            self.first = False
            return super().generate(calls)
        ready()
        self.wait()

engine, kept, cancelled = Engine(progress=False, max_live=8), [], []
api = Api(0.0)

{scenario}

began = None
try:
    engine.run(items, play, on_record=lambda one: kept.append(one.episode_id), failed=failed)
except KeyboardInterrupt:
    pass
threads = [thread.name for thread in threading.enumerate() if thread.name == "interbench-engine"]
sys.stdout.write(json.dumps(dict(kept=kept, threads=threads, cancelled=len(cancelled), closed=api.closed)) + "\\n")
sys.stdout.flush()
"""

TWO_ROUNDS_WITH = """
items = episodes(50)
class Model(Waits):
    def wait(self):
        {wait}
backend = engine.batched(Model(4))

async def play(one):
    try:
        return await asks(engine, api, backend)(one)
    except asyncio.CancelledError:
        cancelled.append(one.id)
        raise
"""

ONLY_PROVIDER = """
def endless():
    yield episode(0)
    while True:
        yield episode(len(kept) + 1)
items = endless()
slow = Api(lambda call: 60.0 if call.episode.doc_id else 0.0, name="slow")

async def play(one):
    if one.doc_id:
        ready()
    try:
        return await asks(engine, slow, api)(one)
    except asyncio.CancelledError:
        cancelled.append(one.id)
        raise
"""

STUBBORN = """
items = episodes(3)
class Stuck(Api):
    async def close(self):
        await asyncio.sleep(60)
api = Stuck(0.0)

async def play(one):
    await asks(engine, api)(one)
    if one.doc_id == 0:
        return record(one)
    ready()
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
"""

BLOCKED_LOOP = """
items = episodes(3)

async def play(one):
    await asks(engine, api)(one)
    if one.doc_id == 2:
        ready()
        time.sleep(60)
    return record(one)
"""


def start(scenario: str) -> subprocess.Popen[str]:
    program = textwrap.dedent(PROGRAM).replace("{scenario}", textwrap.dedent(scenario))
    child = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{TESTS}:{TESTS.parent}", "PATH": "/usr/bin:/bin"},
    )
    assert child.stdout is not None
    first = child.stdout.readline()
    assert first == "ready\n", child.communicate()[1]
    time.sleep(0.1)  # let the others of the first episodes come to their waits
    return child


def interrupted(scenario: str, *, signals: int = 1):
    """What the program said, and the seconds from the first Ctrl-C to its end."""
    child = start(scenario)
    try:
        began = time.monotonic()
        for number in range(signals):
            if number:
                time.sleep(0.15)
            child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
        took = time.monotonic() - began
    finally:
        child.kill()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    return (json.loads(lines[0]) if lines else None), took, err, child.returncode


@pytest.mark.parametrize(
    "wait",
    ["time.sleep(60)", "asyncio.run(asyncio.sleep(60))", "threading.Event().wait(60)"],
    ids=["in python", "in asyncio.run", "in a lock"],
)
def test_ctrl_c_while_a_batch_is_generated_ends_the_run(wait):
    said, took, err, code = interrupted(TWO_ROUNDS_WITH.replace("{wait}", wait))
    assert code == 0, err
    assert took < WITHIN_S
    assert len(said["kept"]) == 4  # the first batch
    assert said["cancelled"] >= 4  # the one that was generated, and those that waited
    assert said["threads"] == []
    assert said["closed"] == 1
    assert err == ""


def test_ctrl_c_while_everything_waits_for_a_provider_ends_the_run():
    said, took, err, code = interrupted(ONLY_PROVIDER)
    assert code == 0, err
    assert took < WITHIN_S
    assert said["kept"] == ["0"]
    assert said["cancelled"] == 8
    assert said["threads"] == []
    assert err == ""


@pytest.mark.parametrize("signals", [1, 2, 3])
def test_what_will_not_stop_does_not_hold_the_program(signals):
    said, took, err, _ = interrupted(STUBBORN, signals=signals)
    assert took < WITHIN_S + 1.0  # the end of the interpreter included
    if signals == 1:
        assert said["kept"] == ["0"]
    else:
        assert said is None or said["kept"] == ["0"]
        assert said is not None or "KeyboardInterrupt" in err


def test_a_script_that_blocks_the_loop_does_not_hold_the_program():
    said, took, err, code = interrupted(BLOCKED_LOOP)
    assert code == 0, err
    assert took < WITHIN_S + 3  # and not as long as the loop is blocked
    assert sorted(said["kept"]) == ["0", "1"]
