"""Open answers before a panel of judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interbench_tasks.hookspecs import RoleClient
from interbench_tasks.records import Episode, Question, Reply, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelJudge:
    """The judges of one episode, and what they judge by."""

    judges: Mapping[str, RoleClient]

    async def judge(
        self, question: Question, reply: Reply, episode: Episode, branch: str
    ) -> tuple[tuple[Verdict, ...], Verdict | None]:
        """What each judge says, and the panel."""
        return (), None
