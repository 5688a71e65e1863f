"""How long a panel's numbers take: 14 models x 3,146 flawed items x 3 judges, read from their run folders.

The runs are made up, with prompts and replies as long as real ones, and written to a temporary folder. Then, as
`interbench compare` does it: reading, all metrics of each run with 10,000 resamples, paired differences,
rankings with rank intervals and p-values, agreement of the judges, and rankings without each judge. Prints each time,
and the whole beside its target; exit code 1 where a target is missed. Run: python scripts/bench_panel.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

from interbench_tasks.critique_votes import STRATEGIES
from interbench_tasks.flaws import SUBTYPES
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.protocols.critique import CritiqueOptions
from interbench_tasks.record_json import line_from_record
from interbench_tasks.records import EpisodeRecord, Message, Reply, Turn, Verdict
from interbench_tasks.report.compared import PARTS, parts_of
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.folder import EPISODES, MANIFEST, write_json
from interbench_tasks.runs.reading import runs_from_folders

N_MODELS, N_ITEMS, JUDGES = 14, 3146, ("judge-a", "judge-b", "judge-c")
TARGET_S, TARGET_MB = 20.0, 1000.0
PROMPT = "You judge one response of an assistant to an input of text and pictures. " * 40
"""3,000 characters, as a judge's prompt with rubric, item and response has."""
METRICS = ("eda", "dp", "se", "pcq")


def main() -> int:
    """Write the runs, time everything, say what is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="300 items; the targets do not hold for it")
    arguments = parser.parse_args()
    n_items = 300 if arguments.quick else N_ITEMS
    with tempfile.TemporaryDirectory() as folder:
        folders = [write_run(Path(folder) / f"model-{number:02}", number, n_items) for number in range(N_MODELS)]
        size = sum((run / EPISODES).stat().st_size for run in folders) / 1e6
        say(f"{N_MODELS} models x {n_items} items x {len(JUDGES)} judges: {size:.0f} MB of records")
        took = timed(folders)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(f"in all                {took:7.2f} s   target {TARGET_S:.0f} s")
    say(f"memory                {peak:7.0f} MB  target {TARGET_MB:.0f} MB")
    missed = not arguments.quick and (took > TARGET_S or peak > TARGET_MB)
    say("MISSED" if missed else "ok")
    return int(missed)


def timed(folders: list[Path]) -> float:
    """Read, compute and show everything; gives the seconds it took."""
    started = lap = time.perf_counter()
    runs = runs_from_folders(folders, offers_from(build_plugin_manager()))
    lap = told("reading", lap)
    comparison = compared(runs, METRICS)
    lap = told("metrics and pairs", lap)
    for name in PARTS[1:]:
        parts_of(comparison, runs, (name,))
        lap = told(name, lap)
    return time.perf_counter() - started


def told(what: str, since: float) -> float:
    """Say how long a step took; gives the time now."""
    now = time.perf_counter()
    say(f"{what:20}  {now - since:7.2f} s")
    return now


def say(text: str) -> None:
    """A line on stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# --- the runs ---------------------------------------------------------------------------------------------------------


def write_run(folder: Path, number: int, n_items: int) -> Path:
    """One model's run."""
    folder.mkdir(parents=True)
    options = CritiqueOptions(judges=JUDGES).model_dump(mode="json")
    models = {"receiver": f"model-{number:02}"} | {f"judge@{judge}": judge for judge in JUDGES}
    manifest = {
        "task": "mmpcbench",
        "task_version": "1.0",
        "protocol": "critique",
        "metrics": "mmpcbench",
        "protocol_options": options,
        "options": {"max_failed_share": 0.05},
        "models": {role: {"name": name, "fingerprint": name} for role, name in models.items()},
        "data": {"source": "made up", "n_episodes": n_items},
        "run_id": folder.name,
    }
    write_json(folder / MANIFEST, manifest)
    with (folder / EPISODES).open("w", encoding="utf-8") as file:
        file.writelines(line_from_record(record) + "\n" for record in records(number, n_items))
    return folder


def records(number: int, n_items: int) -> Iterator[EpisodeRecord]:
    """Model `number`'s records: the higher, the more it detects; one verdict in a hundred is missing."""
    dice = random.Random(number)
    subtypes = sorted(SUBTYPES)
    hard = random.Random("items")
    for doc_id in range(n_items):
        ease = hard.random()
        detects = dice.random() < 0.25 + 0.03 * number + 0.4 * (ease - 0.5)
        user = Message(role="user", content=(f"What is shown in item {doc_id}? " * 8,))
        turn = Turn(
            index=0,
            parent=None,
            user=user,
            reply=Reply(text="The picture does not show what the question asks about. " * 10, finish_reason="stop"),
            verdicts=tuple(verdict(judge, detects, dice) for judge in JUDGES),
            verdict=Verdict(judge="panel:critique", status="scored", score=None),
        )
        yield EpisodeRecord(
            task="mmpcbench",
            protocol="critique",
            episode_id=f"item-{doc_id}",
            doc_id=doc_id,
            repeat=0,
            category=subtypes[doc_id % len(subtypes)],
            cluster=f"source-{doc_id // 2}",
            target="",
            options={},
            turns=(turn,),
        )


def verdict(judge: str, detects: bool, dice: random.Random) -> Verdict:
    """A verdict that agrees with the truth in nine of ten replies."""
    sees = detects != (dice.random() < 0.1)
    fields = {
        "detected": str(sees).lower(),
        "diag": str(dice.randrange(3) if sees else 0),
        "strategy": dice.choice(STRATEGIES[:3]) if sees else "none",
        "strategy_score": str(dice.randrange(3) if sees else 0),
    }
    missing = dice.random() < 0.01
    reply = Reply(text=json.dumps({"nonce": "bcdfghjkmnpq", **fields, "reason": "It says so in the second sentence."}))
    return Verdict(
        judge=judge,
        status="unparsed" if missing else "scored",
        score=None,
        fields={} if missing else fields,
        prompt=Message(role="user", content=(PROMPT,)),
        reply=reply,
    )


if __name__ == "__main__":
    raise SystemExit(main())
