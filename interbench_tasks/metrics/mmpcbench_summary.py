"""A critique in under 4 KB: every judge's vote, which is all that the metrics read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interbench_tasks.critique_votes import Vote
from interbench_tasks.flaws import Kind, kind_of
from interbench_tasks.metrics.mmpcbench_names import STYLES
from interbench_tasks.reasoning import parted
from interbench_tasks.records import EpisodeRecord, Turn, Verdict

NO_ANSWER = "rule:no_answer"
CLARIFICATION = "clarification"
NEVER_TOLD = "never_told"
VALUES: Mapping[Kind, Sequence[str]] = {
    "flawed": ("detected", "diag", "strategy", "strategy_score"),
    "dual": ("detected", "identified"),
    "valid": ("refuses_whole_task", "false_alarm"),
}
"""Kind of item -> the fields of a verdict, in the order in which a summary has them."""


def summary_from_record(record: EpisodeRecord, *, judge_reasoning: bool) -> dict[str, Any]:
    """What the metrics need of a record.

    Args: judge_reasoning = whether the task has reasoning judged.

    Keys: `kind`; `votes` = branch ('', a style or a variant) -> judge -> the values of `VALUES` of its verdict, None
    where it gave none; a branch of which nothing is known is None, and one without a final answer the text `no_answer`.
    `reasoning` = judge -> [detected, diag] or None; absent without reasoning or where nobody judged it, None where that
    failed; `thoughts` = variant -> the same of its reply; absent without variants.
    `clarified` = [whether it was solved, or None]; absent where no clarification was played. `never_told` = 1 where
    only judges that were asked later say that the model asked back; else absent. `lost` = [verdicts that are missing,
    judges that were asked again]; `cut` = replies at the token limit; `traced` = whether the reply to the item has
    reasoning, None where there is no reply.
    """
    kind = kind_of(record.category)
    turns = [turn for turn in record.turns if turn.branch != CLARIFICATION]
    votes = {turn.branch: _votes(turn, kind) for turn in turns if kind is not None}
    verdicts = [verdict for turn in turns for verdict in (*turn.verdicts, *turn.reasoning_verdicts)]
    return {
        "id": record.episode_id,
        "doc_id": record.doc_id,
        "repeat": record.repeat,
        "category": record.category,
        "cluster": record.cluster,
        "status": record.status,
        "stop_reason": record.stop_reason,
        "kind": kind,
        "votes": votes or {"": None},
        **_reasoning(turns, judged=judge_reasoning and kind == "flawed"),
        **_thoughts(turns, judged=judge_reasoning and kind == "flawed"),
        **_clarified(record),
        "lost": [
            sum(verdict.status != "scored" for verdict in verdicts),
            sum(verdict.first_reply is not None for verdict in verdicts),
        ],
        "cut": sum(turn.reply.finish_reason == "length" for turn in record.turns),
        "usage": {
            role: {"calls": used.calls, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            for role, used in record.usage().items()
        },
    }


def _votes(turn: Turn, kind: Kind) -> dict[str, list[Any] | None] | str | None:
    if turn.verdict is not None and turn.verdict.judge == NO_ANSWER:
        return "no_answer"
    if not turn.verdicts:
        return None
    return {verdict.judge: _values(verdict, VALUES[kind]) for verdict in turn.verdicts}


def _values(verdict: Verdict, names: Sequence[str]) -> list[Any] | None:
    """The fields of a verdict; None where it has none, or not all, for then it is of another rubric."""
    if verdict.status != "scored" or not set(names) <= verdict.fields.keys():
        return None
    return [_short(verdict.fields[name]) for name in names]


def _short(value: str) -> int | float | str:
    if value in ("true", "false"):
        return int(value == "true")
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else number


def _reasoning(turns: Sequence[Turn], *, judged: bool) -> dict[str, Any]:
    """Whether there is reasoning, and the votes on it."""
    first = next((turn for turn in turns if turn.branch == "" and turn.reply.usable), None)
    if first is None:
        return {"traced": None}
    traced = parted(first.reply.text, first.reply.reasoning).reasoning is not None
    if not traced or not judged:
        return {"traced": traced}
    votes = {v.judge: _values(v, ("detected", "diag")) for v in first.reasoning_verdicts}
    return {"traced": True, "reasoning": votes or None}


def _thoughts(turns: Sequence[Turn], *, judged: bool) -> dict[str, Any]:
    """The votes on the reasoning of each variant that has some."""
    found = {
        turn.branch: {v.judge: _values(v, ("detected", "diag")) for v in turn.reasoning_verdicts} or None
        for turn in turns
        if turn.branch not in ("", *STYLES) and turn.reply.usable
        if parted(turn.reply.text, turn.reply.reasoning).reasoning is not None
    }
    return {"thoughts": found} if judged and found else {}


def _clarified(record: EpisodeRecord) -> dict[str, Any]:
    turn = next((turn for turn in record.turns if turn.branch == CLARIFICATION), None)
    if turn is None:
        never = any(end.reason == NEVER_TOLD for end in record.ends)
        return {"never_told": 1} if never else {}
    return {"clarified": [None if turn.judgement is None else turn.judgement.correct]}


# --- read again -------------------------------------------------------------------------------------------------------


def votes_in(cell: Mapping[str, Sequence[Any] | None] | str | None, declared: int) -> list[Vote | None]:
    """The votes on a response to a flawed input, or on its reasoning; one a declared judge, None where it is missing.

    Args: cell = of a summary's `votes` or `reasoning`.
    """
    if cell == "no_answer":
        return [Vote(detected=False)] * declared
    return [None if values is None else _vote(values) for values in _given(cell, declared)]


def _vote(values: Sequence[Any]) -> Vote:
    if not values[0]:
        return Vote(detected=False)
    strategy, score = values[2:4] if len(values) > 2 else ("none", 0)
    return Vote(True, float(values[1]), str(strategy), 0.0 if strategy == "none" else float(score))


def values_in(
    cell: Mapping[str, Sequence[Any] | None] | str | None, declared: int, silent: Sequence[Any]
) -> list[Sequence[Any] | None]:
    """The values of each declared judge's verdict; None where it is missing. Args: silent = those of no answer."""
    return [silent] * declared if cell == "no_answer" else list(_given(cell, declared))


def _given(cell: Mapping[str, Sequence[Any] | None] | str | None, declared: int) -> list[Sequence[Any] | None]:
    given = list(cell.values()) if isinstance(cell, Mapping) else []
    return [*given, *[None] * (declared - len(given))]
