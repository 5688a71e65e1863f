"""Open answers before a panel of judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interbench_tasks.hookspecs import PanelRule, RoleClient
from interbench_tasks.judging_rubrics import Rubric
from interbench_tasks.records import Episode, Question, Reply, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelJudge:
    """The judges of one episode, and what they judge by."""

    rubrics: Mapping[str, Rubric]
    """Ability -> rubric."""
    judges: Mapping[str, RoleClient]
    rule: PanelRule
    seed: int

    async def judge(
        self, question: Question, reply: Reply, episode: Episode, branch: str
    ) -> tuple[tuple[Verdict, ...], Verdict]:
        """What each judge says of an answer, and the panel. A judge sees no history: question, reference and answer.

        Raises: JudgingError where the judges cannot be asked safely.
        """
        from interbench_tasks.judging import Subject, judge_reply  # its JSON repair takes long to import

        judged = await judge_reply(
            rubric=self.rubrics[question.ability],
            subject=Subject(question=question.text, reference=question.target, response=reply.text),
            judges=self.judges,
            rule=self.rule,
            branch=branch,
            round=0,
            seed=f"{self.seed}/{episode.id}/{question.id}",
        )
        return judged.verdicts, judged.verdict
