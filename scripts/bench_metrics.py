"""How long all metrics take: 3,940 episodes in 788 clusters, as MathVerse has, three providers, four arms and flips.

Records are made up, with one failing call in fifty. Prints the time of a table beside its target, and that of the
summaries; exit code 1 where the target is missed. Run: python scripts/bench_metrics.py [--quick]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.metrics.intervals import DRAWS
from interbench_tasks.records import (
    BranchEnd,
    EpisodeRecord,
    Extraction,
    Feedback,
    Judgement,
    LeakCheck,
    Message,
    Reply,
    Turn,
)

N = 3940
N_FLIPS = 400
TARGET_S = 2.0
OPTIONS = {letter: letter.lower() for letter in "ABCD"}
USER = Message(role="user", content=("?",))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledOptions:
    """A task with several providers and all controls."""

    arms: tuple[str, ...] = ("detail", "simple", "reask", "mismatched")
    max_rounds: int = 1
    providers: tuple[str, ...] = ("p", "q", "r")
    flip_sample: int = N_FLIPS
    leak_guard: str = "observe"


class Maker:
    """Makes up records by seed."""

    def __init__(self, options: ControlledOptions, seed: int = 0) -> None:
        self._options = options
        self._random = random.Random(seed)

    def records(self, n: int) -> list[EpisodeRecord]:
        """`n` episodes, five a cluster."""
        return [self._record(doc_id) for doc_id in range(n)]

    def _record(self, doc_id: int) -> EpisodeRecord:
        turns = [self._turn([], right=0.3)]
        ends: list[BranchEnd] = []
        first = turns[0].judgement
        flip = first is not None and first.correct and self._random.random() < N_FLIPS / (0.3 * N)
        if first is not None and (flip or not first.correct):
            for label in self._options.providers:
                turns.append(self._turn(turns, role="provider", branch=f"solve@{label}", right=0.5))
            able = [
                turn.branch.removeprefix("solve@") for turn in turns[1:] if turn.judgement and turn.judgement.correct
            ]
            for branch in self._branches(able):
                turns.append(self._turn(turns, branch=branch, number=1, right=0.4, told=True))
                ends.append(BranchEnd(branch=branch, reason="played"))
        return EpisodeRecord(
            task="t",
            protocol="feedback_loop",
            episode_id=f"e{doc_id}",
            doc_id=doc_id,
            repeat=0,
            category=f"c{doc_id % 5}",
            cluster=f"problem {doc_id // 5}",
            target="B",
            options=OPTIONS,
            turns=tuple(turns),
            ends=tuple(ends),
            status="finished" if first is not None else "failed",
            stop_reason="flip_played" if flip else "played",
        )

    def _branches(self, able: list[str]) -> list[str]:
        shared = [arm for arm in self._options.arms if arm in ("simple", "reask") and able]
        return shared + [f"{arm}@{label}" for arm in self._options.arms if arm not in shared for label in able]

    def _turn(
        self,
        turns: list[Turn],
        *,
        right: float,
        role: str = "receiver",
        branch: str = "",
        number: int = 0,
        told: bool = False,
    ) -> Turn:
        failed = self._random.random() < 0.02
        answer = "B" if self._random.random() < right else self._random.choice("ACD")
        read = Judgement(extraction=Extraction(answer=answer, method="declared"), correct=answer == "B")
        leak = LeakCheck(found=None if self._random.random() < 0.9 else "stated", decoy="A", placebo=None)
        feedback = Feedback(text="?", kind="detail", author="m", leak=leak if branch.startswith("detail") else None)
        return Turn(
            index=len(turns),
            parent=0 if turns else None,
            branch=branch,
            round=number,
            role="provider" if role == "provider" else "receiver",
            user=USER,
            reply=Reply(text=answer, status="error" if failed else "ok"),
            judgement=None if failed else read,
            feedback=feedback if told else None,
        )


def main() -> int:
    """Measure and compare with the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the episodes, with half of the target")
    quick = parser.parse_args().quick
    options = ControlledOptions()
    metrics = FeedbackLoopMetrics(options)
    records = Maker(options).records(N // 10 if quick else N)
    target = TARGET_S / 2 if quick else TARGET_S
    started = time.perf_counter()
    summaries = [metrics.summary(record) for record in records]
    summarised = time.perf_counter()
    metrics.table(summaries[:20])  # imports statsmodels, once a process
    imported = time.perf_counter()
    table = metrics.table(summaries)
    seconds = time.perf_counter() - imported
    sys.stdout.write(
        f"{len(table)} metrics of {len(records)} episodes, {DRAWS} draws: {seconds:.2f} s (target: < {target:g} s)\n"
        f"  the summaries before that: {summarised - started:.2f} s\n"
    )
    return int(seconds > target)


if __name__ == "__main__":
    sys.exit(main())
