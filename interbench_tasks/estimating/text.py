"""An estimate in words: a table of ranges, what they rest on, and how to narrow them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interbench_tasks.estimating.estimate import TARGET_WIDTH, Estimate, Given
from interbench_tasks.estimating.picture_tokens import knows_pictures_of
from interbench_tasks.estimating.ranges import LEVEL, Range
from interbench_tasks.estimating.task import Task
from interbench_tasks.protocols.feedback_calls import Rate

HEADERS = ("role", "model", "calls", "input tokens", "output tokens", "USD")


def estimate_text(found: Estimate, task: Task, given: Given) -> str:
    """Everything that a user wants to know before a run.

    Args: given = what the user said of rates and lengths.
    """
    shape = task.shape
    arms = ", ".join(f"{arm} ({kind})" for arm, kind in shape.arms.items())
    lines = [f"{task.name}: {len(task.rows):,} episodes; arms {arms}; {_count(shape.max_rounds, 'feedback round')}"]
    lines += ["", *_table(found), "", *_basis(found, task, given), *_unpriced(found), *_advice(found)]
    return "\n".join(lines)


def _table(found: Estimate) -> list[str]:
    rows: list[Sequence[str]] = [HEADERS]
    for role in found.run.roles:
        cost = _money(role.cost) if role.cost else "no price known"
        tokens = (_whole(role.input_tokens), _whole(role.output_tokens))
        rows.append((role.role.role, role.role.model, _whole(role.calls), *tokens, cost))
    total = _money(found.run.cost) if found.run.cost else ""
    rows.append(("all", "", _whole(found.run.calls), "", "", total))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _basis(found: Estimate, task: Task, given: Given) -> Iterator[str]:
    """What the ranges rest on."""
    known = found.known
    yield (
        f"{LEVEL:.0%} of runs are inside, if what follows holds. Failed calls and retries are not counted in; input "
        "that a server reads from its own cache stands at full price."
    )
    if known.n:
        n_calls = known.first + sum(known.rounds.values()) + sum(known.solves) + sum(known.feedback.values())
        kept = "" if task.simulated else " (their replies are in the ledger of that run)"
        yield f"counted in, and played already: {_count(known.n, 'episode')}, {_count(n_calls, 'call')}{kept}"
    rates = found.rates
    yield f"right first answers: {_rate(rates.right, given.accuracy, '--accuracy')}"
    if task.shape.all_wrong:
        yield "every wrong first answer is tested; nobody solves the question first"
    elif rates.solved_together:
        n = sum(rates.solved_together.values())
        hits = [sum(c for p, c in rates.solved_together.items() if p[i]) for i in range(task.shape.n_providers)]
        yield f"wrong ones that a provider solves: {', '.join(f'{hit} of {n}' for hit in hits)} seen"
    else:
        told = _rate(rates.solved[0], given.provider_accuracy, "--provider-accuracy")
        yield f"wrong ones that a provider solves: {told}"
    if task.shape.max_rounds > 1:
        yield f"corrected in a round: {', '.join(_corrected(found, arm) for arm in task.shape.arms)}"
    low, high = given.assumed.reply
    said = "as you say" if given.reply is not None else "assumed (--reply-tokens)"
    seen = "as seen in the episodes played" if known.n else f"{low:g} to {high:g}, {said}"
    yield f"tokens of a reply: {seen}"
    sizes = found.sizes
    sample = "" if sizes.n_rows == sizes.n_total else f" (a sample of {sizes.n_rows} of {sizes.n_total:,} rows)"
    yield f"prompts: {sizes.question:,.0f} tokens of text, about 4 characters each{sample}{_pictures(found)}"
    if sizes.n_broken:
        yield f"{_count(sizes.n_broken, 'row')} of these cannot become a question: interbench check tells why"
    yield from found.notes


def _pictures(found: Estimate) -> str:
    shown = []
    for model, (low, high) in found.sizes.pictures.items():
        if high > 0:
            how = "" if knows_pictures_of(model) else ", assumed: no rule is known for this model"
            shown.append(f"{model} {low:,.0f}{'' if low == high else f' to {high:,.0f}'} of pictures{how}")
    return f"; {'; '.join(shown)}" if shown else ""


def _corrected(found: Estimate, arm: str) -> str:
    return f"{arm} {_rate(found.rates.corrected.get(arm, found.rates.corrected_elsewhere), None, '--from')}"


def _rate(rate: Rate, given: Rate | None, option: str) -> str:
    if rate.hits is not None:
        return f"{rate.hits} of {rate.trials} seen"
    shown = f"{rate.low:.0%}" if rate.low == rate.high else f"{rate.low:.0%} to {rate.high:.0%}"
    return f"{shown}, {'as you say' if given is not None else f'assumed ({option})'}"


def _unpriced(found: Estimate) -> Iterator[str]:
    lines = dict.fromkeys(role.role.priced_as for role in found.run.roles if role.cost is None)
    if lines:
        yield (
            f"no price known for {', '.join(lines)}: write it into a file, as {{input: USD, output: USD}} per million "
            f'tokens, e.g. "{next(iter(lines))}": {{input: 0, output: 0}} for a model of your own, and name the file '
            "with --prices or INTERBENCH_PRICES"
        )


def _advice(found: Estimate) -> Iterator[str]:
    width = found.run.calls.width
    if width <= TARGET_WIDTH:
        return
    yield ""
    if found.to_probe is None:
        yield f"The range of calls is {width:.0%} of its mean wide, which only the run itself can narrow."
        return
    yield (
        f"The range of calls is {width:.0%} of its mean wide. --probe {found.to_probe} brings it to about "
        f"{TARGET_WIDTH:.0%}: it plays that many episodes now, for real, and the run takes them from the ledger."
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
