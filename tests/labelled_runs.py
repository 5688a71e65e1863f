"""Stored runs that people label, written to a folder: critiques of three judges that err, and conversations."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from interbench_tasks.critique_votes import Vote
from interbench_tasks.flaws import SUBTYPES
from interbench_tasks.labels.items import LabelRun, label_run
from interbench_tasks.labels.sampling import Design, drawn, keep_sample
from interbench_tasks.labels.store import Label, add_labels
from interbench_tasks.record_json import line_from_record
from interbench_tasks.records import EpisodeRecord, Message, PictureRef, Verdict
from tests.conversation_records import answer, conversation, question
from tests.critiques import JUDGES, record

TYPES = tuple(SUBTYPES)


def write_run(folder: Path, records: Sequence[EpisodeRecord], manifest: Mapping[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"data": {"n_episodes": len(records)}, **manifest}))
    lines = "".join(line_from_record(one) + "\n" for one in records)
    (folder / "episodes.jsonl").write_text(lines, encoding="utf-8", errors="surrogatepass")
    return folder


def critique_manifest(**options: Any) -> dict[str, Any]:
    return {
        "task": "mmpcbench_local",
        "protocol": "critique",
        "metrics": "mmpcbench",
        "run_id": "r1",
        "models": {"receiver": {"name": "secret-model"}} | {f"judge@{judge}": {"name": judge} for judge in JUDGES},
        "protocol_options": {"judges": list(JUDGES), **options},
    }


def truth_of(number: int, rate: float = 0.4) -> Vote:
    """What people would say of an item."""
    dice = random.Random(f"truth {number}")
    if dice.random() >= rate:
        return Vote(False)
    return Vote(
        True, float(dice.choice([0, 1, 2, 2])), dice.choice(["correction", "refusal"]), float(dice.choice([1, 2]))
    )


def judged_as(truth: Vote, dice: random.Random, *, sensitivity: float = 0.8, specificity: float = 0.9) -> Vote:
    if truth.detected and dice.random() < sensitivity:
        return truth if dice.random() < 0.8 else Vote(True, 2.0, truth.strategy, 2.0)
    if not truth.detected and dice.random() >= specificity:
        return Vote(True, 1.0, "refusal", 1.0)
    return Vote(False)


def critique_records(n: int = 240, *, types: Sequence[str] = TYPES[:4], rate: float = 0.4) -> list[EpisodeRecord]:
    made = []
    for number in range(n):
        dice = random.Random(number)
        votes = [judged_as(truth_of(number, rate), dice) for _ in JUDGES]
        made.append(
            record(number, votes, category=types[number % len(types)], text=f"reply {number}", task="mmpcbench_local")
        )
    return made


def critique_run(folder: Path, n: int = 240, **options: Any) -> Path:
    return write_run(folder, critique_records(n), critique_manifest(**options))


def talk_records(n: int = 60, *, arms: Sequence[str] = ("none",)) -> list[EpisodeRecord]:
    """Conversations with three questions each; judges give a point too much to every second answer below 5."""
    made = []
    for number in range(n):
        asked = [question(f"q{place}", ability) for place, ability in enumerate(("CR", "IU", "MR", "IE"))]
        answers = []
        for arm in arms:
            for place, one in enumerate(asked):
                dice = random.Random(f"{number} {place} {arm}")
                given = min(5, talk_truth(number, place, arm) + dice.randint(0, 1))
                reply = answer(arm, one, f"answer {number} {place} {arm}", score=float(given))
                verdicts = tuple(Verdict(judge=j, status="scored", score=float(given)) for j in ("x", "y"))
                answers.append(_with(reply, verdicts=verdicts))
        made.append(_with(conversation(number, asked, answers), task="mmrc_local", protocol="conversation"))
    return made


def talk_truth(number: int, place: int, arm: str) -> int:
    return random.Random(f"truth {number} {place} {arm}").randint(0, 5)


def talk_run(folder: Path, n: int = 60, *, arms: Sequence[str] = ("none",), **options: Any) -> Path:
    manifest = {
        "task": "mmrc_local",
        "protocol": "conversation",
        "metrics": "mmrc",
        "run_id": "r2",
        "models": {"receiver": {"name": "secret-model"}},
        "protocol_options": {"memories": list(arms), "judges": ["x", "y"], **options},
    }
    return write_run(folder, talk_records(n, arms=arms), manifest)


def _with(record: Any, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(record, **changes)


# --- labels -----------------------------------------------------------------------------------------------------------


def vote_texts(vote: Vote) -> dict[str, str]:
    if not vote.detected:
        return {"detected": "no"}
    return {
        "detected": "yes",
        "diag": f"{vote.diag:g}",
        "strategy": vote.strategy,
        "strategy_score": f"{vote.score:g}",
    }


def number_of(run: LabelRun, item: str) -> int:
    """The item's number, as the records were made."""
    return int(run.by_id()[item].episode_id.lstrip("i"))


def label_all(
    folder: Path,
    *,
    design: Design | None = None,
    people: Mapping[str, Callable[[int], Vote]] | None = None,
) -> LabelRun:
    """Draw a sample of critiques and have it labelled. Args: people = name -> what it says of an item."""
    run = label_run(folder)
    sample = drawn(run, design or Design(n=120))
    keep_sample(folder, sample, labelled=())
    told = people or {"a1": truth_of, "a2": truth_of}
    labels = [
        Label(item=item, annotator=name, values=vote_texts(say(number_of(run, item))), source="csv")
        for name, say in told.items()
        for item in sample.items
    ]
    add_labels(folder, labels)
    return run


def fill_sheet(path: Path, say: Callable[[dict[str, str]], Mapping[str, str]], out: Path | None = None) -> Path:
    """Fill in a CSV. Args: say = row -> what is written into it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        names = list(reader.fieldnames or ())
        rows = [row | dict(say(row)) for row in reader]
    target = out or path
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return target


def picture(number: int) -> PictureRef:
    return PictureRef(digest=f"{number:032x}", width=40, height=30, mime="image/png")


def with_pictures(one: EpisodeRecord, *numbers: int) -> EpisodeRecord:
    """The record with pictures in its first message."""
    user = Message(role="user", content=(*map(picture, numbers), "What is wrong?"))
    return _with(one, turns=(_with(one.turns[0], user=user), *one.turns[1:]))
