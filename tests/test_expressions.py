"""The pool of child processes: outcomes, limits, and that nothing outlives it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from interbench_tasks import settings
from interbench_tasks.errors import VerifierError
from interbench_tasks.expressions import ExpressionPool, Limits
from interbench_tasks.expressions.pool import WORKER

ROOT = Path(__file__).resolve().parents[1]
ENDLESS = "9^{9^{9}}"
SHORT = Limits(seconds=1.0)


@pytest.fixture(scope="module")
def pool():
    made = ExpressionPool(limits=SHORT)
    yield made
    made.close()


def fake_worker(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A worker that says it is ready and then does what `body` says for each line."""
    path = tmp_path / "fake_worker.py"
    path.write_text(
        f'import os, sys\nprint(\'{{"outcome": "ready"}}\', flush=True)\nfor line in sys.stdin:\n    {body}\n'
    )
    return (sys.executable, "-P", str(path))


def gone(pid: int, within_s: float = 5.0) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("left", "right", "outcome"),
    [
        (r"4\sqrt{3}", r"\sqrt{48}", "equal"),
        ("(x+1)^2", "x^2+2x+1", "equal"),
        (r"x \leq 4", r"(-\infty,4]", "equal"),
        ("x^2+y^2=49", "x^2+y^2=48", "different"),
        (r"\sqrt{2}", "1.414214", "different"),
        ("2x", "3x", "different"),
        ("", "3", "unreadable"),
        (r"\frac{", "3", "unreadable"),
    ],
)
def test_expressions_are_compared_by_value_in_both_directions(pool, left, right, outcome):
    assert pool.compare(left, right) == outcome
    assert pool.compare(right, left) == outcome


def test_a_comparison_without_end_is_killed_at_the_limit_and_the_next_one_gets_a_fresh_process(pool):
    pool.compare("x", "y")
    before = pool.pids
    started = time.monotonic()
    assert pool.compare(ENDLESS, "7") == "timeout"
    assert time.monotonic() - started < SHORT.seconds + 1.0
    assert set(pool.pids) < set(before) or not set(pool.pids) & set(before)
    assert pool.compare("2(x+1)", "2x+2") == "equal"


def test_a_comparison_that_was_stopped_is_tried_once_more_and_then_kept(pool):
    """A busy machine is no verdict; a comparison without end must not cost its limit each time."""
    started = time.monotonic()
    assert pool.compare(ENDLESS, "8") == "timeout"
    assert pool.compare("8", ENDLESS) == "timeout"
    assert time.monotonic() - started >= 2 * SHORT.seconds
    started = time.monotonic()
    assert pool.compare("8", ENDLESS) == "timeout"
    assert time.monotonic() - started < 0.2


def test_only_so_many_outcomes_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("interbench_tasks.expressions.pool.REMEMBERED", 3)
    made = ExpressionPool(n_workers=1, command=fake_worker(tmp_path, 'print(\'{"outcome": "equal"}\', flush=True)'))
    for number in range(10):
        assert made.compare("x", str(number)) == "equal"
    assert len(made._known) == 3
    made.close()


def changed_worker(first_step: str, limits: tuple[str, str] = ("5", str(2 << 30))) -> list[dict[str, str]]:
    """What our worker answers to one pair, if every comparison began with `first_step`."""
    code = WORKER.read_text(encoding="utf-8")
    assert "    gold, answer = parsed(left)" in code
    process = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            code.replace("    gold, answer =", f"    {first_step}\n    gold, answer ="),
            *limits,
        ],
        input=json.dumps({"left": "2x", "right": "3x"}) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in process.stdout.splitlines()]


def test_a_comparison_that_takes_too_much_memory_is_a_failed_one():
    ready, answer = changed_worker("bytearray(3 << 30)")
    assert ready["outcome"] == "ready"
    assert answer == {"outcome": "failed", "why": "MemoryError"}


def test_an_error_of_the_libraries_is_a_failed_comparison_and_not_a_difference(pool):
    assert pool.compare("1/0", "5") == "failed"


def test_a_process_that_dies_is_a_failed_comparison_and_the_next_one_gets_a_fresh_one(tmp_path):
    body = "os._exit(3) if 'die' in line else print('{\"outcome\": \"equal\"}', flush=True)"
    made = ExpressionPool(n_workers=1, command=fake_worker(tmp_path, body))
    assert made.compare("die", "1") == "failed"
    assert made.compare("live", "1") == "equal"
    made.close()


def test_half_an_answer_is_no_answer(tmp_path):
    body = 'sys.stdout.write(\'{"outcome": "eq\'); sys.stdout.flush(); os._exit(0)'
    made = ExpressionPool(n_workers=1, command=fake_worker(tmp_path, body))
    assert made.compare("1", "2") == "failed"
    made.close()


def test_what_a_library_prints_is_no_answer():
    assert [answer["outcome"] for answer in changed_worker("print('equal', flush=True)")] == ["ready", "different"]


def test_nothing_starts_before_the_first_comparison():
    made = ExpressionPool()
    threads = [thread for thread in threading.enumerate() if thread in made._threads]
    assert (made.pids, threads) == ((), [])


def test_a_worker_that_cannot_start_is_an_error_that_says_what_to_do(tmp_path):
    missing = ExpressionPool(n_workers=1, command=(str(tmp_path / "nowhere"),))
    with pytest.raises(VerifierError, match="math-verify does not start: .*nowhere: No such file"):
        missing.compare("1", "2")
    missing.close()
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(7)")
    made = ExpressionPool(n_workers=1, command=(sys.executable, str(broken)))
    with pytest.raises(VerifierError, match=r"broken.py ended with 7 .*Try `.*import math_verify"):
        made.compare("1", "2")
    broken.write_text(
        "import sys\nprint('{}', flush=True)\nfor _ in sys.stdin: print('{\"outcome\": \"equal\"}', flush=True)"
    )
    assert made.compare("1", "2") == "equal", "an error is not kept"
    made.close()


def test_a_worker_that_never_gets_ready_is_killed(tmp_path):
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)")
    made = ExpressionPool(n_workers=1, limits=Limits(start_s=0.3), command=(sys.executable, str(slow)))
    with pytest.raises(VerifierError, match=r"was killed within 0.3 s"):
        made.compare("1", "2")
    assert made.pids == ()
    made.close()


def test_closing_ends_the_children_and_who_waits_is_told(tmp_path):
    made = ExpressionPool(
        n_workers=1, limits=Limits(seconds=30), command=fake_worker(tmp_path, "__import__('time').sleep(60)")
    )
    raised: list[VerifierError] = []

    def wait(left: str) -> None:
        with pytest.raises(VerifierError, match="the pool is closed") as caught:
            made.compare(left, "1")
        raised.append(caught.value)

    waiting = [threading.Thread(target=wait, args=(left,)) for left in "ab"]
    for thread in waiting:
        thread.start()
    until = time.monotonic() + 20
    while not made.pids and time.monotonic() < until:
        time.sleep(0.01)
    (pid,) = made.pids
    made.close()
    for thread in waiting:
        thread.join(5)
    assert len(raised) == 2
    assert gone(pid)
    with pytest.raises(VerifierError, match="the pool is closed"):
        made.compare("c", "1")


def test_a_pool_that_nobody_holds_ends_its_children(tmp_path):
    made = ExpressionPool(n_workers=1, command=fake_worker(tmp_path, 'print(\'{"outcome": "equal"}\', flush=True)'))
    made.compare("1", "2")
    (pid,) = made.pids
    threads = made._threads
    del made
    gc.collect()
    assert gone(pid)
    threads[0].join(5)
    assert not threads[0].is_alive()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timer on this system")
def test_a_child_that_computes_outlives_a_killed_parent_by_seconds_only(tmp_path):
    script = (
        "import threading, time\n"
        "from interbench_tasks.expressions import ExpressionPool, Limits\n"
        "pool = ExpressionPool(n_workers=1, limits=Limits(seconds=1.0))\n"
        "pool.compare('2x', 'x+x')\n"
        f"threading.Thread(target=pool.compare, args=({ENDLESS!r}, '7'), daemon=True).start()\n"
        "time.sleep(0.2)\n"
        "print(pool.pids[0], flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert psutil.pid_exists(pid)
    assert gone(pid, within_s=8)


def test_a_process_that_ends_at_once_leaves_no_child():
    script = (
        "from interbench_tasks.expressions import ExpressionPool\n"
        "pool = ExpressionPool(n_workers=1)\n"
        "pool.compare('2x', 'x+x')\n"
        "print(pool.pids[0])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60, check=True
    )
    assert done.stderr == ""
    assert gone(int(done.stdout))


def test_a_child_is_in_no_process_group_that_ctrl_c_reaches(pool):
    pool.compare("5x", "3x+2x")
    assert all(os.getpgid(pid) != os.getpgid(0) for pid in pool.pids)


def test_a_child_gets_no_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-user")
    monkeypatch.setenv("COPY_OF_IT", "sk-secret-of-the-user")
    made = ExpressionPool(n_workers=1, command=fake_worker(tmp_path, 'print(\'{"outcome": "equal"}\', flush=True)'))
    made.compare("1", "2")
    given = psutil.Process(made.pids[0]).environ()
    made.close()
    assert "PATH" in given
    assert "sk-secret-of-the-user" not in given.values()
    assert given.keys() <= settings.environment_without_secrets().keys() | {"LC_CTYPE"}


def test_waiting_for_a_comparison_does_not_hold_up_the_loop(pool):
    async def ticks() -> tuple[str, float]:
        task = asyncio.create_task(pool.compare_later(ENDLESS, "11"))
        longest, last = 0.0, time.monotonic()
        while not task.done():
            await asyncio.sleep(0.01)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        return await task, longest

    outcome, longest = asyncio.run(ticks())
    assert outcome == "timeout"
    assert longest < 0.5


def test_a_waiter_that_is_cancelled_takes_the_comparison_from_nobody_else(pool):
    async def both() -> str:
        first = asyncio.create_task(pool.compare_later(ENDLESS, "12"))
        second = asyncio.create_task(pool.compare_later("12", ENDLESS))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert asyncio.run(both()) == "timeout"


def test_many_threads_may_compare_at_once(pool):
    found: dict[int, str] = {}

    def compare(number: int) -> None:
        found[number] = pool.compare(f"{number}(x+1)", f"{number}x+{number}")

    threads = [threading.Thread(target=compare, args=(number,)) for number in range(2, 22)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == dict.fromkeys(range(2, 22), "equal")
    assert len(pool.pids) <= 2
