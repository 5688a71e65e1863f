"""Kills a run from outside at random moments and starts it again, many times; in the end nothing may be different.

A server on this machine notes every request. What is checked:
- metrics and sorted episodes.jsonl without `run` equal those of a run that was never killed;
- a call whose reply was stored is never made again, and no stored reply is ever lost;
- what is made again was in flight at a kill: at most as many calls as the engine has open at once;
- every line of every episodes.jsonl is whole, and a killed run can be scored.

Run: scripts/soak --kills 200. Most lives are `play_run` in a process of its own, some the harness's own command.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.runs.folder import MANIFEST
from interbench_tasks.runs.score import score_folder
from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import OpenAIServer, PlantedReply
from tests.servers.planted_brain import PlantedBrain, PlantedItem, PlantedRates

ROOT = Path(__file__).resolve().parent.parent
MAX_LIVE = 8
ARMS = 2
MOST_OPEN = MAX_LIVE * ARMS
"""Calls that the engine can have open at once: two arms of each live episode."""
CONCURRENCY = 8
HARNESS_START_S = 120
TASK = """\
task: soak
class: !function interbench_tasks.harness.task.InteractiveTask
dataset_path: json
dataset_kwargs: {data_files: soak.jsonl}
test_split: test
generation_kwargs: {until: [], max_new_tokens: 64, temperature: 0}
metadata:
  version: 1.0
  interbench:
    protocol: feedback_loop
    arms: [detail, simple]
    verifier: choice
    engine: {max_live_episodes: %d}
    roles: {provider: "simulated:replaced-by-the-environment"}
"""
OPTIONS = {"A": "w", "B": "x", "C": "y", "D": "z"}


class SoakError(AssertionError):
    """Something is different after the kills."""


@dataclass(frozen=True)
class Played:
    """What came of a run that got to its end."""

    metrics: dict[str, Any]
    lines: list[str]
    """Of episodes.jsonl, without `run`."""


@dataclass(kw_only=True)
class Result:
    """What the kills did."""

    kills: Counter[str] = field(default_factory=Counter)
    """Kind of life -> kills."""
    ended_first: int = 0
    """Lives that came to their end before they were killed."""
    distinct: int = 0
    """Calls that an unbroken run makes."""
    requests: int = 0
    lost: list[int] = field(default_factory=list)
    """For each kill: calls that the server was asked and whose reply was not stored."""
    torn: int = 0
    """Lines of killed runs that are not whole."""
    wall_s: float = 0.0

    @property
    def repeated(self) -> int:
        return self.requests - self.distinct

    def text(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kills.items()))
        return (
            f"{sum(self.kills.values())} kills ({kinds}), {self.ended_first} lives ended before, {self.wall_s:.0f} s\n"
            f"calls of an unbroken run {self.distinct}, made in all {self.requests}, so {self.repeated} were made "
            f"again; at most {max(self.lost, default=0)} were open at a kill (limit {MOST_OPEN})\n"
            f"stored calls made again 0, stored replies lost 0, torn lines {self.torn}, metrics and records equal"
        )


class Soak:
    """One soak: a task, a server, a ledger, and lives that are killed."""

    def __init__(self, folder: Path, server: OpenAIServer, *, seed: int, with_ledger: bool = True) -> None:
        self.folder = folder
        self.server = server
        self.chance = random.Random(seed)
        self.ledger = folder / "ledger"
        self.with_ledger = with_ledger
        self.offers = offers_from(build_plugin_manager())
        self.result = Result()
        self.start_s = 1.0
        """From the start of a process to its first call."""
        self._seen = 0
        self._said: list[tuple[int, Path]] = []

    # ---------------------------------------------------------------- lives

    def start(self, out: Path, ledger: Path, *, harness: bool = False) -> subprocess.Popen[bytes]:
        """A run that will do everything that is left to do."""
        receiver = f"openai:student@{self.server.url},max_concurrency={CONCURRENCY}"
        command = [sys.executable, "-m", "tests.soak_child", str(self.folder / "soak.yaml"), str(out), receiver]
        if harness:
            command = [sys.executable, "-m", "lmms_eval", "--model", "interbench_api", "--tasks", "soak"]
            command += ["--model_args", f"model={receiver}"]
            command += ["--include_path", str(self.folder), "--output_path", str(out)]
        variables = {
            "INTERBENCH_PROVIDER": f"openai:teacher@{self.server.url},max_concurrency={CONCURRENCY}",
            "INTERBENCH_LEDGER": str(ledger) if self.with_ledger else "off",
            "INTERBENCH_PROGRESS": "off",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
        }
        n_started = len(self._said)
        path = self.folder / f"said-{n_started}.txt"
        with path.open("wb") as said:
            process = subprocess.Popen(
                command, stdout=said, stderr=subprocess.STDOUT, cwd=ROOT, env={**os.environ, **variables}
            )
        self._said.append((process.pid, path))
        return process

    def said(self, process: subprocess.Popen[bytes]) -> str:
        """The end of what a run wrote to its terminal."""
        return next(path for pid, path in reversed(self._said) if pid == process.pid).read_text()[-4000:]

    def finish(self, out: Path, ledger: Path, *, harness: bool = False) -> Played:
        """A run to its end."""
        began, asked = time.monotonic(), self.server.requests
        process = self.start(out, ledger, harness=harness)
        with killed_in_the_end(process):
            self.until(process, began + HARNESS_START_S, lambda: self.server.requests > asked)
            if self.server.requests > asked and not harness:
                self.start_s = time.monotonic() - began
            process.wait(timeout=600)
        return self.played(process, out, wrote_metrics=harness)

    def played(self, process: subprocess.Popen[bytes], out: Path, *, wrote_metrics: bool = False) -> Played:
        if process.returncode != 0:
            raise SoakError(f"a run failed with {process.returncode}: {self.said(process)}")
        if "ledger warning: " in self.said(process):
            raise SoakError(f"the ledger is not well: {self.said(process)}")
        folder = max(path.parent for path in out.rglob(MANIFEST))
        if wrote_metrics and not (folder / "metrics.json").exists():
            raise SoakError(f"the harness swallowed an error: {self.said(process)}")
        metrics = json.loads((folder / "metrics.json").read_text()) if wrote_metrics else None
        scored = score_folder(folder, self.offers)
        if metrics not in (None, scored):
            raise SoakError("the metrics that the run wrote are not those of its episodes")
        records = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
        if [record["doc_id"] for record in records] != sorted(record["doc_id"] for record in records):
            raise SoakError("episodes.jsonl of a finished run is not sorted")
        return Played(scored, [json.dumps({**record, "run": None}, sort_keys=True) for record in records])

    # ---------------------------------------------------------------- one kill

    def live_and_die(self, *, harness: bool = False) -> None:
        """Start the run, kill it at a random moment, and look at what is left."""
        before, out = committed(self.ledger), self.folder / "killed"
        process = self.start(out, self.ledger, harness=harness)
        kind = "in the harness" if harness else self.chosen_kind(len(before))
        with killed_in_the_end(process):
            self.wait_for_the_moment(kind, process)
            killed = process.poll() is None
        if killed and process.returncode == -signal.SIGKILL:
            self.result.kills[kind] += 1
        else:
            self.result.ended_first += 1
            self.played(process, out, wrote_metrics=harness)
        self.settle()
        self.check_calls(before)
        self.check_lines(out)

    def chosen_kind(self, n_stored: int) -> str:
        kinds = ["while starting", "around the first call"]
        if n_stored < self.result.distinct:
            kinds += ["while playing"] * 4
        return self.chance.choice(kinds)

    def wait_for_the_moment(self, kind: str, process: subprocess.Popen[bytes]) -> None:
        began, asked = time.monotonic(), self.server.requests
        if kind in ("while starting", "around the first call"):
            low, high = (0.0, 0.9) if kind == "while starting" else (0.8, 1.3)
            self.until(process, began + self.start_s * self.chance.uniform(low, high), lambda: False)
            return
        wanted = asked + self.chance.randint(1, 25)
        self.until(process, began + HARNESS_START_S, lambda: self.server.requests >= wanted)
        time.sleep(self.chance.uniform(0, 0.03))

    def until(self, process: subprocess.Popen[bytes], deadline: float, reached: Callable[[], bool]) -> None:
        while process.poll() is None and time.monotonic() < deadline and not reached():
            time.sleep(0.001)

    def settle(self) -> None:
        """Wait until the server has dealt with what the dead had sent."""
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < 0.05:
            if self.server.counts.in_flight:
                quiet_since = time.monotonic()
            time.sleep(0.005)

    # ---------------------------------------------------------------- checks

    def check_calls(self, before: set[str]) -> None:
        asked = [request.body_digest for request in self.server.log[self._seen :]]
        self._seen = len(self.server.log)
        after = committed(self.ledger)
        if again := set(asked) & before:
            raise SoakError(f"{len(again)} calls were made again although their replies were stored")
        if gone := before - after:
            raise SoakError(f"{len(gone)} stored replies are gone")
        if len(set(asked)) != len(asked):
            raise SoakError("one run made the same call twice")
        lost = set(asked) - after
        self.result.lost.append(len(lost))
        if len(lost) > MOST_OPEN:
            raise SoakError(f"{len(lost)} calls of a killed run were not stored; only {MOST_OPEN} can have been open")

    def check_lines(self, out: Path) -> None:
        """Whole lines in every run folder, and numbers from each that has some."""
        for path in out.rglob("episodes.jsonl"):
            for line in path.read_bytes().splitlines(keepends=True):
                try:
                    json.loads(line)
                except ValueError:
                    self.result.torn += 1
                else:
                    self.result.torn += not line.endswith(b"\n")
        if self.result.torn:
            raise SoakError("a line of episodes.jsonl is torn")
        newest = max((path.parent for path in out.rglob("episodes.jsonl")), default=None)
        if newest is not None and score_folder(newest, self.offers)["episodes"]["found"] < 1:
            raise SoakError(f"{newest}: no episode of the killed run can be scored")


@contextlib.contextmanager
def killed_in_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """No process outlives its life, whatever becomes of us."""
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)


def committed(ledger: Path) -> set[str]:
    """Digests of the requests whose replies are stored; the server says a request's digest as its reasoning."""
    found: list[str] = []
    for path in sorted(ledger.glob("ledger-rank*.sqlite3")):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        with contextlib.closing(connection):
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                found += [digest for (digest,) in connection.execute("SELECT reasoning FROM reply")]
    if len(found) != len(set(found)):
        raise SoakError("one call's reply is stored twice")
    return set(found)


@contextlib.contextmanager
def planted_server(n_episodes: int) -> Iterator[OpenAIServer]:
    """A student and a teacher, whose replies take 20 to 80 ms and carry their request's digest."""
    items = [PlantedItem(id=f"q{n}", question=question(n), target="B", options=OPTIONS) for n in range(n_episodes)]
    brain = PlantedBrain(items, models={"teacher": PlantedRates(accuracy=0.9)}, accuracy=0.3, correction=0.5)

    def answer(request: ParsedRequest) -> PlantedReply:
        digest = request.body_digest
        delay_s = 0.02 + int(digest[:4], 16) / 0xFFFF * 0.06
        return PlantedReply(text=brain(request), message={"reasoning_content": digest}, delay_s=delay_s)

    with OpenAIServer(answer) as server:
        yield server


def question(number: int) -> str:
    return f"Question number {number}?"


def write_task(folder: Path, n_episodes: int) -> None:
    rows = [
        {"id": f"q{n}", "question": question(n), "options": list(OPTIONS.values()), "answer": "B"}
        for n in range(n_episodes)
    ]
    (folder / "soak.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "soak.yaml").write_text(TASK % MAX_LIVE)


def soak(
    folder: Path,
    *,
    kills: int,
    seed: int = 0,
    harness_kills: int = 0,
    harness_end: bool = False,
    with_ledger: bool = True,
    say: Callable[[str], object] = lambda text: None,
) -> Result:
    """Kill a run `kills` times, `harness_kills` of them in the harness's own command.

    Args: harness_end = whether the last run, which is not killed, is the harness's too.
    Raises: SoakError where anything is different in the end.
    """
    began = time.monotonic()
    n_episodes = max(30, 8 * kills)
    write_task(folder, n_episodes)
    with planted_server(n_episodes) as server:
        driver = Soak(folder, server, seed=seed, with_ledger=with_ledger)
        unbroken = driver.finish(folder / "unbroken", folder / "unbroken-ledger")
        result = driver.result
        result.distinct = server.requests
        driver._seen = len(server.log)
        in_harness = set(driver.chance.sample(range(kills), harness_kills))
        for life in range(3 * kills):
            n_killed = sum(result.kills.values())
            if n_killed == kills:
                break
            driver.live_and_die(harness=n_killed in in_harness and result.kills["in the harness"] < harness_kills)
            n_stored = len(committed(driver.ledger))
            say(f"life {life + 1}: {sum(result.kills.values())} kills, {n_stored} of {result.distinct} stored")
        if sum(result.kills.values()) < kills:
            raise SoakError(f"only {result.kills} of {kills} kills: the runs end too early")
        before = committed(driver.ledger)
        last = driver.finish(folder / "last", driver.ledger, harness=harness_end)
        driver.check_calls(before)
        result.requests = server.requests - result.distinct
        again = driver.finish(folder / "again", driver.ledger)
        driver.check_calls(committed(driver.ledger))
        if server.violations:
            raise SoakError(f"the server complains: {server.violations[:3]}")
        if server.requests - result.distinct != result.requests:
            raise SoakError("a finished run that is started again makes calls")
    for name, run in (("the last run", last), ("the same again", again)):
        if run != unbroken:
            raise SoakError(f"{name}: metrics or records differ from those of an unbroken run")
    result.wall_s = time.monotonic() - began
    return result


def main() -> int:
    """Print what the kills did; 1 where something is different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--harness", type=int, default=2, help="of the kills, those in the harness's own command")
    args = parser.parse_args()
    if not 0 <= args.harness <= args.kills:
        parser.error("--harness must be between 0 and --kills")

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # it tells of every client that dies
    with tempfile.TemporaryDirectory() as name:
        try:
            result = soak(
                Path(name),
                kills=args.kills,
                seed=args.seed,
                harness_kills=args.harness,
                harness_end=args.harness > 0,
                say=say,
            )
        except SoakError as error:
            sys.stdout.write(f"FAILED: {error}\n")
            return 1
    sys.stdout.write(f"{result.text()}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
