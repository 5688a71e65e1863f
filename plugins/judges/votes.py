"""Counting the votes of a panel. Everything here gives the same for any order of the judges."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from interbench_tasks import InterbenchError, Verdict


class PanelError(InterbenchError):
    """A rule was given verdicts that it cannot use, or more of them than there are judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """What the judges said, and how many of them said nothing."""

    valid: tuple[Verdict, ...]
    """Those with a verdict, in any order."""
    declared: int
    """Judges that were asked."""

    @property
    def failed(self) -> int:
        """Judges without a verdict."""
        return self.declared - len(self.valid)

    def majority(self) -> str | float | None:
        """The vote of more than half of the declared judges; None where there is none."""
        counted = Counter(map(vote_of, self.valid)).most_common(1)
        return counted[0][0] if counted and 2 * counted[0][1] > self.declared else None

    def may_become(self) -> bool:
        """Whether the judges that failed could have made a majority."""
        most = max(Counter(map(vote_of, self.valid)).values(), default=0)
        return self.failed > 0 and 2 * (most + self.failed) > self.declared

    def label(self) -> str | None:
        """The label of more than half of the declared judges; None where there is none."""
        counted = Counter(verdict.label for verdict in self.valid if verdict.label is not None).most_common(1)
        return counted[0][0] if counted and 2 * counted[0][1] > self.declared else None

    def told(self) -> str:
        """The votes in words, e.g. `correct 2, incorrect 1, failed 0 of 3`."""
        counted = Counter(_shown(vote_of(verdict)) for verdict in self.valid)
        said = [f"{vote} {n}" for vote, n in sorted(counted.items())]
        return ", ".join([*said, f"failed {self.failed} of {self.declared}"])


def votes_from(verdicts: Sequence[Verdict], declared: int) -> Votes:
    """The votes of a panel.

    Raises: PanelError for no declared judge, more verdicts than judges, one judge twice, and a score that is no number.
    """
    if declared < 1:
        raise PanelError("a panel needs at least one judge")
    if len(verdicts) > declared:
        raise PanelError(f"{len(verdicts)} verdicts of {declared} judges")
    names = [verdict.judge for verdict in verdicts]
    if len(set(names)) < len(names):
        raise PanelError(f"a judge is there twice: {', '.join(sorted(names))}")
    valid = [verdict for verdict in verdicts if verdict.status == "scored"]
    if any(verdict.score is not None and not math.isfinite(verdict.score) for verdict in valid):
        raise PanelError("a verdict's score is no finite number")
    if any(verdict.score is None and verdict.label is None for verdict in valid):
        raise PanelError("a verdict that is scored has neither score nor label")
    return Votes(valid=tuple(valid), declared=declared)


def vote_of(verdict: Verdict) -> str | float:
    """What a judge votes for: its label, where it has one, else its score."""
    if verdict.label is not None:
        return verdict.label
    assert verdict.score is not None  # votes_from has looked
    return verdict.score


def scores_of(votes: Votes, rule: str) -> list[float]:
    """The scores of the valid verdicts, sorted.

    Raises: PanelError where a verdict has none, because such a rule needs a scale.
    """
    if any(verdict.score is None for verdict in votes.valid):
        raise PanelError(f"{rule} needs scores, and a judge gave a label only; use strict_majority")
    return sorted(verdict.score for verdict in votes.valid if verdict.score is not None)


def panel_verdict(rule: str, votes: Votes, *, score: float | None, label: str | None) -> Verdict:
    """A panel's verdict."""
    return Verdict(judge=f"panel:{rule}", status="scored", score=score, label=label, reason=votes.told())


def undecided(rule: str, votes: Votes) -> Verdict:
    """A panel that comes to no verdict: unscored, and never the lowest score."""
    return Verdict(judge=f"panel:{rule}", status="undecided", score=None, reason=votes.told())


def _shown(vote: str | float) -> str:
    return vote if isinstance(vote, str) else f"{vote:g}"
