"""The child process of the pool: reads pairs of expressions, a line each, and answers whether they are equal.

Started as a script by `pool.py`, so it imports nothing of ours: it is up as soon as math-verify is. Whatever a pair
makes it do, it cannot outlive its limits: the kernel ends it, also where nobody is left to kill it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

DIGITS = 12
"""Decimal places in which two floating-point values must agree."""
GRACE_S = 2.0
"""The pool kills at its limit; where it has died itself, the kernel does, this much later."""


def main(seconds: float, memory_bytes: int) -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not look like an answer
    logging.disable(logging.CRITICAL)
    import math_verify  # noqa: F401 - loaded before the memory is limited, and before the pool is told `ready`

    _limit_memory(memory_bytes)
    _answer(answers, "ready", "")
    for line in sys.stdin:
        pair = json.loads(line)
        _alarm(seconds + GRACE_S)
        try:
            outcome, why = compared(pair["left"], pair["right"]), ""
        except Exception as error:  # noqa: BLE001 - any error of the libraries is this pair's outcome, and is reported
            outcome, why = "failed", type(error).__name__
        _alarm(0)
        _answer(answers, outcome, why)


def compared(left: str, right: str) -> str:
    """`equal`, `different`, or `unreadable` where one side is no expression.

    math-verify compares an inequality with an interval only where the interval is the answer and not the gold; for all
    else that we ask, the direction does not matter, and one costs half of two.
    """
    gold, answer = parsed(left), parsed(right)
    if not gold or not answer:
        return "unreadable"
    if _is_set(gold[0]) and not _is_set(answer[0]):
        gold, answer = answer, gold
    return "equal" if _any_equal(gold, answer) else "different"


def _is_set(found: Any) -> bool:  # noqa: ANN401 - SymPy has no types
    from sympy import Set

    return isinstance(found, Set)


@functools.lru_cache(maxsize=1024)
def parsed(text: str) -> list[Any]:
    """The SymPy objects that math-verify reads in a text which is one expression and nothing else."""
    from math_verify import LatexExtractionConfig, parse

    found = parse(
        f"${text}$",
        extraction_config=[LatexExtractionConfig()],
        fallback_mode="no_fallback",
        parsing_timeout=None,  # the limit is the pool's; its own needs signals
        raise_on_error=True,
    )
    return [one for one in found if not isinstance(one, str)]


def _any_equal(gold: Sequence[Any], answer: Sequence[Any]) -> bool:
    from math_verify import verify

    return any(
        verify(left, right, float_rounding=DIGITS, timeout_seconds=None, raise_on_error=True)
        for left in gold
        for right in answer
    )


def _limit_memory(n_bytes: int) -> None:
    with contextlib.suppress(ImportError):  # Windows has no such limit; the time limit holds there too
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def _alarm(seconds: float) -> None:
    """Let the kernel end this process after `seconds`; 0 takes it back. Without a handler nothing can delay it."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _answer(answers: Any, outcome: str, why: str) -> None:  # noqa: ANN401 - a text stream
    answers.write(json.dumps({"outcome": outcome, "why": why}) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
