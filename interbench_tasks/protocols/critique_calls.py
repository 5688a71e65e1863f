"""The calls of a critique, as an estimate counts them."""

from __future__ import annotations

import json
import re

from interbench_tasks.hookspecs import Call
from interbench_tasks.protocols.feedback_calls import Rate
from interbench_tasks.protocols.rehearsed import RehearsedCalls
from interbench_tasks.records import Purpose, RoleName

_NONCE = re.compile(r"\bnonce is the word (\w+)")
_KEYS = re.compile(r"in exactly this order: ([\w, ]+)\.")
_ASKS_BACK = {
    "detected": True,
    "diag": 1,
    "strategy": "clarification",
    "strategy_score": 1,
    "identified": [],
    "refuses_whole_task": False,
    "false_alarm": False,
    "reason": "",
}
"""What a stand-in for a judge says: that the model asks back, so that every item is asked on that may be."""


def kind_of(role: RoleName, purpose: Purpose, branch: str, round: int) -> str:
    """Answers, clarifications, and what judges say of answers and of reasoning."""
    if purpose == "judge":
        return "reasoning judged" if branch.endswith("reasoning") else "judged"
    return "clarification" if round else "answer"


def says(call: Call) -> str | None:
    """A judge's verdict in the form that its prompt asks for; filler where the prompt is of another kind."""
    if call.purpose != "judge":
        return None
    prompt = call.messages[-1].text
    nonce, keys = _NONCE.search(prompt), _KEYS.search(prompt)
    if nonce is None or keys is None:
        return None
    said = {"nonce": nonce.group(1), **_ASKS_BACK}
    return json.dumps({key: said[key] for key in keys.group(1).split(", ") if key in said})


CRITIQUE_CALLS = RehearsedCalls(
    kind_of=kind_of,
    says=says,
    matters=(
        "style",
        "more_styles",
        "subset",
        "subset_seed",
        "sweep",
        "judge_reasoning",
        "judges_see_pictures",
        "clarify",
        "rubric",
        "judges",
    ),
    chances={"reasoning judged": Rate(low=0.0, high=1.0), "clarification": Rate(low=0.0, high=0.5)},
    repeats={"judged": Rate(low=0.0, high=0.05), "reasoning judged": Rate(low=0.0, high=0.05)},
    thinks="reasoning judged",
)
"""Reasoning comes with some models only, and how often a model asks back nobody knows before."""
