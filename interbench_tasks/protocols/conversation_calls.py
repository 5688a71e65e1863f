"""The calls of a conversation, as an estimate counts them: all are certain."""

from __future__ import annotations

from interbench_tasks.protocols.rehearsed import RehearsedCalls
from interbench_tasks.records import Purpose, RoleName


def kind_of(role: RoleName, purpose: Purpose, branch: str, round: int) -> str:
    """Turns of the conversation, answers to questions, notes by the memory that takes them, and verdicts."""
    if purpose == "judge":
        return "judged"
    if purpose == "notes":
        return f"notes of {branch.rpartition('/')[2]}"
    return "question" if "/" in branch else "turn"


CONVERSATION_CALLS = RehearsedCalls(
    kind_of=kind_of,
    matters=(
        "history",
        "questions",
        "memories",
        "recent_turns",
        "notes",
        "max_images",
        "max_history_tokens",
        "rubric",
        "judges",
    ),
)
