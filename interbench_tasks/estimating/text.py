"""An estimate in words: a table of ranges, what they rest on, and how to narrow them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interbench_tasks.estimating.forecasts import Estimated, forecast_of
from interbench_tasks.estimating.given import Given
from interbench_tasks.estimating.ranges import LEVEL, Range
from interbench_tasks.estimating.task import Task

HEADERS = ("role", "model", "calls", "input tokens", "output tokens", "USD")


def estimate_text(found: Estimated, task: Task, given: Given) -> str:
    """Everything that a user wants to know before a run.

    Args: given = what the user said of rates and lengths.
    """
    forecast = forecast_of(task)
    lines = [forecast.headline(), "", *_table(found), "", *_basis(found, task, given), *_unpriced(found)]
    advice = list(forecast.advice(found))
    return "\n".join([*lines, *([""] if advice else []), *advice])


def _table(found: Estimated) -> list[str]:
    rows: list[Sequence[str]] = [HEADERS]
    for role in found.run.roles:
        cost = _money(role.cost) if role.cost else "no price known"
        tokens = (_whole(role.input_tokens), _whole(role.output_tokens))
        rows.append((role.role.role, role.role.model, _whole(role.calls), *tokens, cost))
    total = _money(found.run.cost) if found.run.cost else ""
    rows.append(("all", "", _whole(found.run.calls), "", "", total))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _basis(found: Estimated, task: Task, given: Given) -> Iterator[str]:
    """What the ranges rest on."""
    yield (
        f"{LEVEL:.0%} of runs are inside, if what follows holds. Failed calls and retries are not counted in; input "
        "that a server reads from its own cache stands at full price."
    )
    if found.n_known:
        kept = "" if task.simulated else " (their replies are in the ledger of that run)"
        calls = _count(found.n_known_calls, "call")
        yield f"counted in, and played already: {_count(found.n_known, 'episode')}, {calls}{kept}"
    yield from forecast_of(task).basis(found, given)
    yield from found.notes


def _unpriced(found: Estimated) -> Iterator[str]:
    lines = dict.fromkeys(role.role.priced_as for role in found.run.roles if role.cost is None)
    if lines:
        yield (
            f"no price known for {', '.join(lines)}: write it into a file, as {{input: USD, output: USD}} per million "
            f'tokens, e.g. "{next(iter(lines))}": {{input: 0, output: 0}} for a model of your own, and name the file '
            "with --prices or INTERBENCH_PRICES"
        )


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def _whole(found: Range) -> str:
    low, high = f"{found.low:,.0f}", f"{found.high:,.0f}"
    return low if low == high else f"{low} .. {high}"


def _money(found: Range) -> str:
    low, high = _amount(found.low), _amount(found.high)
    return low if low == high else f"{low} .. {high}"


def _amount(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 0.1 or amount == 0 else f"{amount:.2g}"
