"""Runs as sections of the report see them, made of records by hand and our own metric sets."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from interbench_tasks.critique_votes import Vote
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.record_json import line_from_record
from interbench_tasks.records import EpisodeRecord, Verdict
from interbench_tasks.report_parts import Chart, ReportRun, Section
from tests import critiques
from tests.conversation_records import Options, answer, conversation, question
from tests.critiques import JUDGES
from tests.feedback_records import LoopOptions, loop, numbered

NOWHERE = Path("/nowhere")


def report_run(
    name: str,
    records: Sequence[EpisodeRecord],
    metric_set: Any,
    *,
    protocol: str,
    options: Mapping[str, Any],
    task: str = "t",
    models: Sequence[str] = (),
    folder: Path = NOWHERE,
) -> ReportRun:
    """A run as the page makes it from a folder. Args: models = roles beside the receiver, e.g. `judge@a`."""
    summaries = [metric_set.summary(record) for record in records]
    categories = sorted({record.category for record in records if record.category is not None})
    return ReportRun(
        name=name,
        folder=folder,
        task=task,
        protocol=protocol,
        manifest={
            "protocol_options": dict(options),
            "models": {role: {"name": role} for role in ("receiver", *models)},
        },
        metrics=metric_set.table(summaries),
        categories={one: metric_set.table([s for s in summaries if s["category"] == one]) for one in categories},
        summaries=summaries,
    )


# --- feedback loops ---------------------------------------------------------------------------------------------------


def feedback_run(
    name: str = "m",
    *,
    arms: Sequence[str] = ("detail", "simple"),
    rounds: int = 1,
    providers: Sequence[str] = (),
    flips: int = 0,
    n: int = 24,
    categories: Sequence[str] = ("count", "route"),
    task: str = "t",
    seed: int = 0,
) -> ReportRun:
    """Every fourth first answer is right; in each round of an arm a third is corrected. Args: flips = right answers
    that are tried."""
    dice = random.Random(seed)
    options = LoopOptions(arms=tuple(arms), max_rounds=rounds, providers=tuple(providers), flip_sample=flips)
    records = []
    for number in range(n):
        right = number % 4 == 0
        branches = [f"{arm}@{label}" if label else arm for label in providers or ("",) for arm in arms]
        tried = number // 4 < flips if right else True
        played = {branch: _answers(dice, rounds, right=right) for branch in branches} if tried else {}
        tries: Any = {label: "B" for label in providers} if providers else "B"
        fields = {"category": categories[number % len(categories)] if categories else None}
        records.append(loop("B" if right else "A", tries if tried else None, played, flip=right and tried, **fields))
    return report_run(
        name,
        numbered(records),
        FeedbackLoopMetrics(options),
        protocol="feedback_loop",
        options=asdict(options),
        task=task,
    )


def _answers(dice: random.Random, rounds: int, *, right: bool) -> list[str]:
    """The answers of an arm's rounds: up to the right one, or one round for an answer that was right."""
    found: list[str] = []
    for _ in range(1 if right else rounds):
        found.append(dice.choice("BAC"))
        if found[-1] == "B":
            break
    return found


# --- critiques --------------------------------------------------------------------------------------------------------


def critique_run(
    name: str = "m",
    votes: Mapping[str, Sequence[Sequence[Vote | None]]] | None = None,
    *,
    task: str = "t",
    judges: Sequence[str] = JUDGES,
    **options: Any,
) -> ReportRun:
    """Items of several categories. Args: votes = category -> the votes on each of its items, one a judge."""
    dice = random.Random(len(name))
    given = votes or {
        category: [[critiques.any_vote(dice) for _ in JUDGES] for _ in range(6)]
        for category in ("EE.ambiguity", "EE.unclear_intent", "MP.mismatch", "BC")
    }
    records = [
        critiques.record(number, own, category=category)
        for number, (category, own) in enumerate((c, one) for c, rows in given.items() for one in rows)
    ]
    return report_run(
        name,
        records,
        critiques.metrics(**options),
        protocol="critique",
        options={"more_styles": options.get("more_styles", ())},
        task=task,
        models=[f"judge@{judge}" for judge in judges],
    )


# --- conversations ----------------------------------------------------------------------------------------------------


def write_episodes(folder: Path, records: Sequence[EpisodeRecord]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(line_from_record(record) + "\n" for record in records)
    (folder / "episodes.jsonl").write_text(lines, encoding="utf-8")
    return folder


def conversation_run(
    folder: Path,
    name: str = "m",
    *,
    memories: tuple[str, ...] = ("none", "notes"),
    records: Sequence[EpisodeRecord] | None = None,
    n: int = 6,
    judges: Sequence[str] = (),
    task: str = "t",
) -> ReportRun:
    """Conversations of two lengths with one question for each ability, its evidence in the first turn."""
    dice = random.Random(len(name))
    made = records if records is not None else [talk(number, memories, dice, judges) for number in range(n)]
    options = Options(memories=memories)
    return report_run(
        name,
        made,
        ConversationMetrics(options),
        protocol="conversation",
        options={"memories": list(memories), "rubric": "mmrc"},
        task=task,
        models=[f"judge@{judge}" for judge in judges],
        folder=write_episodes(folder / name, made),
    )


def talk(number: int, memories: Sequence[str], dice: random.Random, judges: Sequence[str] = ()) -> EpisodeRecord:
    """One conversation; scores are drawn, and several judges differ by at most one point."""
    more: Mapping[str, Mapping[str, Any]] = {"IU": {"extra": {"updates": str(1 + number % 3)}}}
    asked = [question(f"q{a}", a, evidence=(0,), **more.get(a, {})) for a in ("IE", "CR", "IU", "IM", "MR", "AR")]
    turns = []
    for memory in memories:
        for one in asked:
            score = float(dice.randint(1, 4))
            turn = answer(memory, one, score=score)
            given = tuple(
                Verdict(judge=judge, status="scored", score=score + dice.choice((0, 0, 1)), label="answered")
                for judge in judges
            )
            turns.append(replace(turn, verdicts=given) if given else turn)
    return conversation(number, asked, turns, n_turns=5 if number % 2 else 12, pictures={0: number % 3})


# --- what came of it --------------------------------------------------------------------------------------------------


def charts_of(section: Section | None) -> dict[str, Chart]:
    """Title -> chart."""
    assert section is not None
    found = [part for part in section.parts if isinstance(part, Chart)]
    assert len({chart.title for chart in found}) == len(found)
    return {chart.title: chart for chart in found}


def svg_of(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(chart.svg)


def texts_of(chart: Chart) -> list[str]:
    """All that is written in a drawing."""
    return ["".join(element.itertext()) for element in svg_of(chart).iter() if element.tag.endswith("text")]
