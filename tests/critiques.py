"""Votes, records and naive metrics of critiques, for tests; nothing here uses the metrics' own code."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from interbench_tasks.critique_votes import STRATEGIES, Vote
from interbench_tasks.metrics.mmpcbench import CritiqueMetrics
from interbench_tasks.protocols.critique import CritiqueOptions
from interbench_tasks.records import EpisodeRecord, Message, Reply, Turn, Verdict

YES = Vote(True, 2.0, "refusal", 2.0)
NO = Vote(False)
JUDGES = ("a", "b", "c")
ALL_VOTES = [
    NO,
    *[
        Vote(True, float(diag), strategy, float(score))
        for diag, strategy, score in itertools.product(range(3), STRATEGIES, range(3))
        if strategy != "none" or score == 0
    ],
]
"""Every vote that a judge can cast."""
REASONING_VOTES = [NO, *[Vote(True, float(diag)) for diag in range(3)]]


def any_vote(dice: random.Random, detects: float = 0.6) -> Vote:
    return dice.choice(ALL_VOTES[1:]) if dice.random() < detects else NO


def metrics(**options: Any) -> CritiqueMetrics:
    return CritiqueMetrics(CritiqueOptions(**{"judges": JUDGES, **options}))


def verdict(judge: str, fields: Mapping[str, str] | None, **changes: Any) -> Verdict:
    status = "unparsed" if fields is None else "scored"
    return Verdict(**{"judge": judge, "status": status, "score": None, "fields": fields or {}, **changes})


def fields_of(vote: Vote | None, *, reasoning: bool = False) -> dict[str, str] | None:
    if vote is None:
        return None
    found = {"detected": str(vote.detected).lower(), "diag": f"{vote.diag:g}"}
    return found if reasoning else {**found, "strategy": vote.strategy, "strategy_score": f"{vote.score:g}"}


def record(
    doc_id: int,
    votes: Sequence[Vote | None] | None,
    *,
    category: str = "EE.ambiguity",
    reasoning: Sequence[Vote | None] | None = None,
    styles: Mapping[str, Sequence[Vote | None]] | None = None,
    text: str | None = None,
    **changes: Any,
) -> EpisodeRecord:
    """The record of a flawed item. Args: votes = one a judge, None: the reply itself failed; text = of the reply."""
    said = text if text is not None else ("<think>hm</think> so" if reasoning is not None else "so")
    reply = Reply(text=said) if votes is not None else Reply(text="", status="error", error="HTTP 500")
    turns = [turn(0, "", reply, votes or (), reasoning=reasoning)]
    for place, (style, own) in enumerate((styles or {}).items(), 1):
        turns.append(turn(place, style, Reply(text="so"), own))
    return made(doc_id, category, turns, **changes)


def turn(index: int, branch: str, reply: Reply, votes: Sequence[Vote | None], *, reasoning: Any = None) -> Turn:
    return Turn(
        index=index,
        parent=None,
        branch=branch,
        user=Message(role="user", content=("?",)),
        reply=reply,
        verdicts=tuple(verdict(j, fields_of(v)) for j, v in zip(JUDGES, votes, strict=False)),
        reasoning_verdicts=tuple(
            verdict(j, fields_of(v, reasoning=True)) for j, v in zip(JUDGES, reasoning or (), strict=False)
        ),
    )


def judged(doc_id: int, category: str, given: Sequence[Mapping[str, str] | None], **changes: Any) -> EpisodeRecord:
    """The record of a valid item or a dual error. Args: given = fields of each judge's verdict."""
    verdicts = tuple(verdict(judge, one) for judge, one in zip(JUDGES, given, strict=False))
    message = Message(role="user", content=("?",))
    one = Turn(index=0, parent=None, user=message, reply=Reply(text="so"), verdicts=verdicts)
    return made(doc_id, category, [one], **changes)


def valid(refuses: bool, alarm: bool) -> dict[str, str]:
    return {"refuses_whole_task": str(refuses).lower(), "false_alarm": str(alarm).lower()}


def dual(detected: bool, *parts: str) -> dict[str, str]:
    return {"detected": str(detected).lower(), "identified": "+".join(parts)}


def made(doc_id: int, category: str, turns: Sequence[Turn], **changes: Any) -> EpisodeRecord:
    failed = not turns[0].reply.usable
    return EpisodeRecord(
        **{
            "task": "t",
            "protocol": "critique",
            "episode_id": f"i{doc_id}",
            "doc_id": doc_id,
            "repeat": 0,
            "category": category,
            "cluster": None,
            "target": category,
            "options": {},
            "turns": tuple(turns),
            "status": "failed" if failed else "finished",
            **changes,
        }
    )


def table_of(records: Sequence[EpisodeRecord], **options: Any) -> Mapping[str, Any]:
    made = metrics(**options)
    return made.table([made.summary(one) for one in records])


# --- the same numbers, written down once more ---------------------------------------------------------------------


def naive_item(votes: Sequence[Vote]) -> tuple[int, float, str, float]:
    """(d, dp, strategy, se) of a panel of which every judge spoke."""
    saw = [vote for vote in votes if vote.detected]
    if len(saw) <= len(votes) / 2:
        return 0, 0.0, "", 0.0
    names = Counter(vote.strategy for vote in saw)
    top = [name for name, n in names.items() if n > len(saw) / 2]
    name = top[0] if top else "split"
    scores = [vote.score for vote in saw if name in ("split", vote.strategy)]
    return 1, sum(vote.diag for vote in saw) / len(votes), name, sum(scores) / len(scores)


def naive_metrics(panels: Sequence[Sequence[Vote]]) -> dict[str, float]:
    """EDA, DP, SE, PCQ in its three forms, and the shares of strategies."""
    items = [naive_item(votes) for votes in panels]
    hit = [item for item in items if item[0]]
    found = {"eda": len(hit) / len(items), "pcq": 0.0, "pcq geometric": 0.0, "pcq harmonic": 0.0}
    if hit:
        dp, se = sum(item[1] for item in hit) / len(hit), sum(item[3] for item in hit) / len(hit)
        found |= {"dp": dp, "se": se, "pcq": found["eda"] * (dp / 2 + se / 2) / 2}
        found["pcq geometric"] = found["eda"] * math.sqrt(dp / 2 * se / 2)
        found["pcq harmonic"] = found["eda"] * (dp * se / (dp + se) if dp + se else 0.0)
        for name in (*STRATEGIES, "split"):
            found[f"strategy.{name}"] = sum(item[2] == name for item in hit) / len(hit)
    return found
