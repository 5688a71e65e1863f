"""Takes a model's thinking out of its reply, so that only what it says in the end is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis)"
_TAG = re.compile(
    rf"<\s*(?P<slash>/?)\s*{_NAMES}\b[^<>]{{0,200}}>|\[(?P<slash2>/?)THINK\]|◁(?P<slash3>/?)think▷", re.IGNORECASE
)


def without_reasoning(text: str) -> str | None:
    r"""The reply without its reasoning blocks; None where the reply ends inside one, so that nothing was answered.

    Complete blocks are cut out, also nested ones. A closing tag alone (the opening one stood in the prompt) ends
    everything before it.

    >>> without_reasoning("<think>A? No.</think>\nB")
    '\nB'
    >>> without_reasoning("The line falls.</think> C")
    ' C'
    >>> without_reasoning("<think>It is A, but let me") is None
    True
    """
    kept: list[str] = []
    depth, start = 0, 0
    for tag in _TAG.finditer(text):
        closing = any(tag[name] for name in ("slash", "slash2", "slash3"))
        if depth == 0:
            kept = [] if closing else [*kept, text[start : tag.start()]]
        depth = max(0, depth - 1) if closing else depth + 1
        start = tag.end()
    return None if depth else "".join([*kept, text[start:]])


def said_in_the_end(text: str) -> str:
    """What a reply says once its thinking is taken out, for others to read; empty where it never came to that.

    >>> said_in_the_end("<think>It is B.</think> Look at the ears. ")
    'Look at the ears.'
    >>> said_in_the_end("<think>It is B")
    ''
    """
    return (without_reasoning(text) or "").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """A reply in two parts: what the model thought, and what it said in the end."""

    reasoning: str | None
    """None where there is no trace of it."""
    answer: str
    """Empty where the reply ends while thinking."""


def parted(text: str, reasoning: str | None = None) -> Parted:
    r"""The thinking and the final answer of a reply. The text before the last closing tag is thinking.

    Source: MMPCBench's split of reasoning trace and final response; where exactly it is cut is ours.
    Args: reasoning = what an API returned apart from the text; it comes first.

    >>> parted("<think>The map has no scale.</think> About 3 km.")
    Parted(reasoning='The map has no scale.', answer='About 3 km.')
    >>> parted("About 3 km.")
    Parted(reasoning=None, answer='About 3 km.')
    """
    tags = list(_TAG.finditer(text))
    closing = [tag.end() for tag in tags if any(tag[name] for name in ("slash", "slash2", "slash3"))]
    cut = closing[-1] if closing else 0
    if any(tag.start() >= cut for tag in tags):  # opened and never closed
        cut = len(text)
    thought = [part.strip() for part in (reasoning or "", _TAG.sub("", text[:cut])) if part.strip()]
    return Parted(reasoning="\n\n".join(thought) or None, answer=text[cut:].strip())
