"""Takes a model's thinking out of its reply, so that only what it says in the end is read."""

from __future__ import annotations

import re

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
