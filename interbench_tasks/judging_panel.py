"""Panels of judges: quorums, and what has to be right about a panel before anybody is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interbench_tasks.errors import Problem, near_miss
from interbench_tasks.hookspecs import PanelRule
from interbench_tasks.records import Verdict

DEFAULT_RULE = "mean_of_valid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """A rule that speaks only where enough judges gave a verdict."""

    rule: PanelRule
    least: int
    """Judges that must have given a verdict, >= 1."""

    def combine(self, verdicts: Sequence[Verdict], declared: int) -> Verdict:
        """The rule's verdict; `undecided` below the quorum."""
        verdict = self.rule.combine(verdicts, declared)
        n_valid = sum(each.status == "scored" for each in verdicts)
        if n_valid >= self.least:
            return verdict
        why = f"{n_valid} of {declared} judges gave a verdict, the quorum is {self.least}"
        return Verdict(judge=verdict.judge, status="undecided", score=None, reason=why)


def with_quorum(rule: PanelRule, quorum: int | None) -> PanelRule:
    """The rule, held to a quorum; None: as the rule itself has it."""
    return rule if quorum is None else Quorum(rule=rule, least=quorum)


def panel_problems(
    *, rule: str, quorum: int | None, judges: Sequence[str], allowed: Sequence[str], key: str
) -> Iterator[Problem]:
    """What is wrong with a panel as a YAML names it.

    Args: judges = the declared judges, each by its backend's words; allowed = names of panel rules; key = where the
        panel stands, e.g. `metadata.interbench`.
    """
    if not judges:
        yield Problem(key=f"{key}.roles.judge", message=" is missing: name at least one judge")
    for judge, times in Counter(judges).items():
        if times > 1:
            yield Problem(key=f"{key}.roles.judge", message=f": {judge} is there {times} times; name each judge once")
    if rule not in allowed:
        message = f" = {rule!r} is no panel rule{near_miss(rule, allowed)}"
        yield Problem(key=f"{key}.panel", message=message, allowed=tuple(sorted(allowed)))
    if quorum is not None and not 1 <= quorum <= max(len(judges), 1):
        message = f" = {quorum}: must be from 1 to the number of judges, {len(judges)}"
        yield Problem(key=f"{key}.quorum", message=message)
