"""Records of feedback loops made by hand: several providers, controls, leaks and failures, in the protocol's shapes.

An answer is an option letter or a text; None is an unreadable reply, "failed" a call that failed. In a branch
"feedback_failed" stands for the last reply where the feedback failed, "leak_dropped" where the feedback leaked twice,
"no_partner" where there was nothing to borrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.records import (
    BranchEnd,
    Draft,
    EpisodeRecord,
    Extraction,
    Feedback,
    Judgement,
    LeakCheck,
    Message,
    Reply,
    Turn,
    Usage,
)

USER = Message(role="user", content=("Which?",))
USED = Usage(calls=1, input_tokens=10, output_tokens=3)
OPTIONS = {"A": "cat", "B": "dog", "C": "owl", "D": "fox"}
ALL_ARMS = ("detail", "simple", "reask", "mismatched")

CLEAN = LeakCheck(found=None, decoy="A", placebo=None)
STATED = LeakCheck(found="stated", decoy="A", placebo=None)
PLACEBO = LeakCheck(found=None, decoy="A", placebo="ruled_out")
NO_DECOY = LeakCheck(found=None, decoy=None, placebo=None)


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """The options of the feedback loop that metrics look at."""

    arms: tuple[str, ...] = ("detail", "simple")
    max_rounds: int = 1
    providers: tuple[str, ...] = ()
    flip_sample: int = 0
    leak_guard: str = "observe"
    seed: int = 0
    test_on: str = "provider_right"
    level_texts: str | None = None


CONTROLLED = LoopOptions(arms=ALL_ARMS, flip_sample=5)
SEVERAL = LoopOptions(arms=ALL_ARMS, flip_sample=5, providers=("p", "q", "r"))


@dataclass
class Loop:
    """Makes one record, turn by turn."""

    target: str = "B"
    options: Mapping[str, str] = field(default_factory=lambda: OPTIONS)
    turns: list[Turn] = field(default_factory=list)
    ends: list[BranchEnd] = field(default_factory=list)

    def turn(self, answer, *, role="receiver", branch="", number=0, feedback=None) -> Turn:
        judgement = None
        if answer != "failed":
            read = Extraction(answer=answer, method="none" if answer is None else "declared")
            judgement = Judgement(extraction=read, correct=answer == self.target)
        made = Turn(
            index=len(self.turns),
            parent=len(self.turns) - 1 if number > 1 else 0 if number else None,
            branch=branch,
            round=number,
            role=role,
            user=USER,
            reply=Reply(text="...", status="error" if answer == "failed" else "ok", usage=USED),
            judgement=judgement,
            feedback=feedback,
        )
        self.turns.append(made)
        return made

    def branch(self, name: str, answers: Sequence[object], told: Sequence[Feedback | None], *, flip: bool) -> None:
        """Args: told[i] = feedback of round i + 1; shorter: no leak check after."""
        for number, answer in enumerate(answers, start=1):
            given = told[number - 1] if number <= len(told) else feedback()
            if answer in ("feedback_failed", "leak_dropped", "no_partner"):
                held = {"feedback_failed": replace(given, status="failed"), "leak_dropped": given}.get(answer)
                self.ends.append(BranchEnd(branch=name, reason=answer, feedback=held))
                return
            self.turn(answer, branch=name, number=number, feedback=given)
        last = answers[-1]
        if last == "failed":
            reason = "reply_failed"
        elif flip:
            reason = "kept" if last == self.target else "flipped"
        else:
            reason = "solved" if last == self.target else "rounds_used"
        self.ends.append(BranchEnd(branch=name, reason=reason))


def feedback(leak: LeakCheck | None = None, *, draft: LeakCheck | None = None, source: str | None = None) -> Feedback:
    reply = Reply(text="hint", usage=USED)
    first = None if draft is None else Draft(text="first", prompt=None, reply=reply, leak=draft)
    return Feedback(text="hint", kind="k", author="m", reply=reply, leak=leak, draft=first, source=source)


def loop(
    first,
    solves=None,
    arms: Mapping[str, Sequence[object]] | None = None,
    *,
    told: Mapping[str, Sequence[Feedback]] | None = None,
    flip: bool = False,
    target: str = "B",
    options: Mapping[str, str] = OPTIONS,
    **fields,
) -> EpisodeRecord:
    """One episode.

    Args: first = round 0; solves = the provider's try, or label -> try; arms = branch -> the answers of its rounds.
    """
    made = Loop(target=target, options=options)
    made.turn(first)
    if solves is not None:
        tries = solves if isinstance(solves, Mapping) else {"": solves}
        for label, answer in tries.items():
            made.turn(answer, role="provider", branch=f"solve@{label}" if label else "solve")
    for name, answers in (arms or {}).items():
        made.branch(name, answers, (told or {}).get(name, ()), flip=flip)
    values = {"episode_id": "e", "doc_id": 0, "repeat": 0, "category": None, "cluster": None, **fields}
    return EpisodeRecord(
        task="t",
        protocol="feedback_loop",
        target=target,
        options=options,
        turns=tuple(made.turns),
        ends=tuple(made.ends),
        status="failed" if first == "failed" else "finished",
        stop_reason="flip_played" if flip else "played",
        passes=2 if flip else 1,
        **values,
    )


def numbered(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    return [replace(record, doc_id=i, episode_id=f"e{i}") for i, record in enumerate(records)]


def summaries_of(records: Sequence[EpisodeRecord], options: LoopOptions) -> list[dict]:
    return [FeedbackLoopMetrics(options).summary(record) for record in numbered(records)]


def table_of(records: Sequence[EpisodeRecord], options: LoopOptions) -> dict[str, Estimate]:
    return FeedbackLoopMetrics(options).table(summaries_of(records, options))
