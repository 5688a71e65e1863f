"""Replies to flawed inputs before a panel of judges: the final answer, and the reasoning before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interbench_tasks.critique_votes import CritiqueRule
from interbench_tasks.hookspecs import RoleClient
from interbench_tasks.judging_rubrics import Rubric
from interbench_tasks.records import Episode, PictureRef, Verdict

NO_ANSWER = "rule:no_answer"
"""Judge of a reply that ends while thinking: nothing was said, so nothing was challenged, and nobody is asked."""
SOUND = "Nothing is wrong with this input."
REASONING = "reasoning"


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueJudges:
    """The judges of one episode, and what they judge by."""

    rubrics: Mapping[str, Rubric]
    """`flawed`, `dual`, `valid`, `reasoning` -> rubric."""
    judges: Mapping[str, RoleClient]
    rule: CritiqueRule
    seed: int
    see_pictures: bool

    async def judge(
        self, text: str, episode: Episode, *, branch: str, reasoning: bool = False
    ) -> tuple[tuple[Verdict, ...], Verdict]:
        """What each judge says of a final answer, or of reasoning, and the panel; unreadable judges are asked twice.

        Raises: JudgingError where the judges cannot be asked safely.
        """
        from interbench_tasks.judging import Subject, judge_reply  # its JSON repair takes long to import

        kind = episode.extra["kind"]
        place = f"{branch}/{REASONING}".removeprefix("/") if reasoning else branch
        judged = await judge_reply(
            rubric=self.rubrics[REASONING if reasoning else kind],
            subject=Subject(
                question=_shown(episode),
                reference=episode.extra.get("defects", SOUND),
                response=text,
                extra={"error_type": episode.extra["error_types"]} if kind != "valid" else {},
                pictures=_pictures(episode) if self.see_pictures else (),
            ),
            judges=self.judges,
            rule=self.rule,
            branch=place,
            round=0,
            seed=f"{self.seed}/{episode.id}/{place}",
            ask_again=True,
        )
        return judged.verdicts, judged.verdict


def said_nothing(kind: str) -> Verdict:
    """The verdict of a reply that says nothing in the end."""
    fields: dict[str, str] = {"detected": "false"}
    if kind == "valid":
        fields = {"refuses_whole_task": "false", "false_alarm": "false"}
    elif kind == "dual":
        fields["identified"] = ""
    return Verdict(judge=NO_ANSWER, status="scored", score=None, reason="the reply ends while thinking", fields=fields)


def _shown(episode: Episode) -> str:
    """The input as judges read it."""
    text, query = episode.extra.get("text", ""), episode.raw_question
    n = len(episode.question.pictures)
    lines = [f"Text: {text}" if text else "", f"Query: {query}" if query else "Query: (there is none)"]
    return "\n\n".join([*filter(None, lines), f"Pictures: {n}"])


def _pictures(episode: Episode) -> tuple[PictureRef, ...]:
    return episode.question.pictures
