"""Run folders for reports, made of records by hand: one of each protocol, with pictures, and whatever a test breaks."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.record_json import line_from_record
from interbench_tasks.records import (
    BranchEnd,
    EpisodeRecord,
    Extraction,
    Feedback,
    Judgement,
    LeakCheck,
    Message,
    Notes,
    PictureRef,
    Question,
    Reply,
    Turn,
    Verdict,
)
from interbench_tasks.runs.pictures import PICTURES
from tests.scored_runs import MANIFEST, changed

OFFERS = offers_from(build_plugin_manager())
PICTURE = PictureRef(digest="0123456789abcdef0123456789abcdef", width=640, height=480, mime="image/png")
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> & \ud83d \u202e ]]>"
"""Markup, half an emoji, and a mark that turns the direction of writing."""


def thumbnail(side: int = 48, colour: str = "teal") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side * 3 // 4), colour).save(file, "WEBP")
    return file.getvalue()


def user(*content: Any) -> Message:
    return Message(role="user", content=content)


def judged(answer: str, target: str = "B") -> Judgement:
    return Judgement(extraction=Extraction(answer=answer, method="declared"), correct=answer == target)


def turn(index: int, parent: int | None, text: str, asked: Sequence[Any] = ("Which?",), **fields: Any) -> Turn:
    reply = fields.pop("reply", None) or Reply(text=text, model="m", reasoning=fields.pop("reasoning", None))
    return Turn(index=index, parent=parent, user=user(*asked), reply=reply, **fields)


def loop(number: int, first: str, detail: str | None = None, *, said: str = "", leak: bool = False) -> EpisodeRecord:
    """A feedback loop: the first answer, and where it is wrong one round with `detail`."""
    turns = [turn(0, None, f"{said}I think {first}", (PICTURE, f"Question {number}?"), judgement=judged(first))]
    ends: tuple[BranchEnd, ...] = ()
    if detail is not None:
        check = LeakCheck(found="stated" if leak else None, decoy="A", placebo=None)
        hint = Feedback(text=f"Look again. {said}", kind="detail", author="teacher", leak=check)
        turns.append(turn(1, None, "It is B", branch="solve", role="provider", judgement=judged("B")))
        turns.append(
            turn(
                2, 0, f"Then {detail}", (hint.text,), branch="detail", round=1, judgement=judged(detail), feedback=hint
            )
        )
        ends = (BranchEnd(branch="detail", reason="solved" if detail == "B" else "rounds_used"),)
    return EpisodeRecord(
        task="loops",
        protocol="feedback_loop",
        episode_id=f"loop{number}",
        doc_id=number,
        repeat=0,
        category="even" if number % 2 == 0 else "odd",
        cluster=None,
        target="B",
        options={"A": "cat", "B": "dog", "C": "owl"},
        turns=tuple(turns),
        ends=ends,
        stop_reason="right" if first == "B" else "played",
        models={"receiver": "pupil", "provider": "teacher"},
    )


def loops() -> list[EpisodeRecord]:
    """Right at once; corrected; not corrected, with a leak; corrected; right at once; failed."""
    failed = replace(loop(5, "A"), turns=(), status="failed", stop_reason="episode_failed", error="HTTP 500")
    return [
        loop(0, "B"),
        loop(1, "A", "B"),
        loop(2, "A", "C", leak=True),
        loop(3, "C", "B", said="unusual word: zugzwang. "),
        loop(4, "B"),
        failed,
    ]


def verdict(judge: str, score: float | None, **fields: Any) -> Verdict:
    return Verdict(judge=judge, **{"status": "scored", "score": score, "reason": f"{judge} says so", **fields})


def talk(number: int = 0) -> EpisodeRecord:
    """A conversation of two turns with notes, and a question that two judges see differently."""
    question = Question(id="q1", ability="IE", message=user("How old is Tofu?"), text="How old is Tofu?", target="4")
    notes = [Notes(text='{"facts": ["Tofu is 3"]}'), Notes(text='{"facts": ["Tofu is 4"]}')]
    history = [turn(0, None, "I see.", ("Tofu is 3.", PICTURE)), turn(1, 0, "Noted.", ("No, she is 4.",))]
    taken = [
        turn(2 + at, at, own.text, ("(notes)",), branch="note_taking", role="notetaker", notes=own)
        for at, own in enumerate(notes)
    ]
    verdicts = (verdict("judge-1", 5.0), verdict("judge-2", 1.0))
    answer = turn(
        4, 1, "She is 4.", ("How old is Tofu?",), branch="none/q1", question="q1", verdicts=verdicts,
        verdict=verdict("panel", 3.0),
    )  # fmt: skip
    return EpisodeRecord(
        task="talks",
        protocol="conversation",
        episode_id=f"talk{number}",
        doc_id=number,
        repeat=0,
        category="Pets",
        cluster=None,
        target="",
        options={},
        questions=(question,),
        turns=(*history, *taken, answer),
        stop_reason="played",
        models={"receiver": "pupil"},
    )


def write_run(
    folder: Path,
    records: Sequence[EpisodeRecord],
    *,
    receiver: str = "pupil",
    pictures: Mapping[str, bytes] | None = None,
    **changes: Any,
) -> Path:
    """A run folder. Args: pictures = digest -> file; changes = of the manifest, as `scored_runs.changed` takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = changed(MANIFEST, run_id=folder.name, models__receiver__name=receiver, task=records[0].task)
    manifest = changed(changed(manifest, data__n_episodes=len(records)), **changes)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    lines = [line_from_record(record) + "\n" for record in records]
    (folder / "episodes.jsonl").write_text("".join(lines), encoding="utf-8")
    for digest, data in (pictures or {}).items():
        (folder / PICTURES).mkdir(exist_ok=True)
        (folder / PICTURES / f"{digest}.webp").write_bytes(data)
    return folder


def run_of_loops(folder: Path, **changes: Any) -> Path:
    return write_run(folder, loops(), pictures={PICTURE.digest: thumbnail()}, **changes)


def estimate(value: float = 0.5, **changes: Any) -> Estimate:
    return Estimate(**{"value": value, "n": 10, "ci95": (0.2, 0.8), "method": "wilson", **changes})
