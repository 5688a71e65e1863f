"""What a protocol tells of its calls, so that they can be counted by playing it with stand-ins, before a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from interbench_tasks.hookspecs import Call
from interbench_tasks.protocols.feedback_calls import Rate
from interbench_tasks.records import EpisodeRecord, Purpose, Reply, RoleName, Verdict

THOUGHTS = "thoughts"
"""Kind of the reasoning that may stand before an answer; no call of its own."""
AGAIN = "again"
"""Ends the kind of a call that is made once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedCalls:
    """How a protocol's calls are told apart, and which of them depend on what models say.

    A protocol has it as its class attribute `calls`. Its episodes are then played with stand-ins that say nothing
    but filler: what is sent, and how often, is the protocol's own doing.
    """

    kind_of: Callable[[RoleName, Purpose, str, int], str]
    """(role, purpose, branch, round) -> kind: calls of one kind have replies of one length."""
    matters: tuple[str, ...]
    """Options that change the number of calls or their size."""
    says: Callable[[Call], str | None] = lambda call: None
    """What a stand-in says instead of filler; None: filler."""
    chances: Mapping[str, Rate] = field(default_factory=dict)
    """Kind -> share of the rehearsed calls that a run makes, where that depends on what models say; others are
    certain."""
    repeats: Mapping[str, Rate] = field(default_factory=dict)
    """Kind -> share of its calls that are made once more, since the reply cannot be read."""
    thinks: str | None = None
    """Kind whose calls there are only for replies with reasoning; stand-ins then have some."""

    def calls_in(self, record: EpisodeRecord) -> Iterator[tuple[str, str, Reply]]:
        """(role, kind, reply) of every call that a record holds; the role as manifests name it."""
        for turn in record.turns:
            purpose: Purpose = "notes" if turn.role == "notetaker" else "answer"
            yield turn.role, self.kind_of(turn.role, purpose, turn.branch, turn.round), turn.reply
            for branch, verdicts in (
                (turn.branch, turn.verdicts),
                (f"{turn.branch}/reasoning".removeprefix("/"), turn.reasoning_verdicts),
            ):
                kind = self.kind_of("judge", "judge", branch, turn.round)
                for verdict in verdicts:
                    role = _judge(record, verdict)
                    if verdict.first_reply is not None:
                        yield role, f"{kind} {AGAIN}", verdict.first_reply
                    if verdict.reply is not None:
                        yield role, kind, verdict.reply


def _judge(record: EpisodeRecord, verdict: Verdict) -> str:
    labelled = f"judge@{verdict.judge}"
    return labelled if labelled in record.models else "judge"
