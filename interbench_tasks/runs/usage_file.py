"""`usage.json` of a run folder: what each role used, what it cost, what the ledger saved; and the same in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interbench_tasks.budget import Budget
from interbench_tasks.errors import RunFolderError
from interbench_tasks.runs.folder import read_json, write_json

USAGE = "usage.json"
N_RANKS = "n_ranks"
"""In a rank's own file: how many ranks there were."""
COUNTS = ("calls", "failed_calls", "failed_attempts", "calls_without_usage")
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "cost_usd")


def usage_from(budget: Budget) -> dict[str, Any]:
    """The content of `usage.json` on this rank; `stopped` says why an episode was not started, null where all were."""
    limits = {limit.name: {"amount": limit.amount, "named_in": limit.named_in} for limit in budget.limits}
    return {"roles": budget.meter.to_json(), "limits": limits, "stopped": budget.stopped and budget.used_up()}


def write_usage(folder: Path, content: Mapping[str, Any], *, rank: int, world_size: int) -> Path:
    """Write this rank's usage.

    Raises: RunFolderError for a full or read-only disk.
    """
    if world_size == 1:
        return write_json(folder / USAGE, content)
    return write_json(folder / f"usage-rank{rank}.json", {**content, N_RANKS: world_size})


def merge_usage(folder: Path) -> None:
    """Make `usage.json` of the ranks' own files; called once all ranks are done."""
    parts = _rank_files(folder)
    if not parts:
        return
    write_json(folder / USAGE, merged([read_json(part) for part in parts]))
    try:
        for part in parts:
            part.unlink()
    except OSError as error:
        raise RunFolderError(f"{folder}: the ranks' usage files cannot be removed: {error.strerror}") from error


def read_usage(folder: Path) -> dict[str, Any] | None:
    """What a run used, of all ranks together; None where the folder does not tell (an older or a killed run)."""
    files = [folder / USAGE] if (folder / USAGE).exists() else _rank_files(folder)
    parts = [read_json(file) for file in files]
    if not parts or len(parts) < parts[0].get(N_RANKS, 1):  # of a rank that died nobody knows what it used
        return None
    return merged(parts)


def _rank_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("usage-rank*.json"))


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The usage of several ranks as one; a cost that one of them does not know is unknown."""
    first = parts[0]
    names = dict.fromkeys(name for part in parts for name in part["roles"])
    roles = {name: _sum_of_role([part["roles"][name] for part in parts if name in part["roles"]]) for name in names}
    stopped = next((part["stopped"] for part in parts if part["stopped"]), None)
    return {"roles": roles, "limits": first["limits"], "stopped": stopped}


def _sum_of_role(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ledger = [part["from_ledger"] for part in parts]
    return {
        "model": parts[0]["model"],
        **{key: sum(part[key] for part in parts) for key in COUNTS},
        **{key: _sum(part[key] for part in parts) for key in TOKENS},
        "price": parts[0]["price"],
        "from_ledger": {key: _sum(part[key] for part in ledger) for key in ("replies", *TOKENS)},
    }


def _sum(values: Iterator[float | None]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def usage_lines(usage: Mapping[str, Any]) -> list[str]:
    """One line for each role, and one for all where there are several roles with a price.

    >>> role = {"model": "m", "calls": 2, "failed_calls": 0, "failed_attempts": 1, "calls_without_usage": 0}
    >>> tokens = {"input_tokens": 1500, "cached_input_tokens": 0, "output_tokens": 20, "reasoning_tokens": 0}
    >>> ledger = {"replies": 0, **tokens, "cost_usd": 0.0}
    >>> usage_lines({"roles": {"receiver": {**role, **tokens, "cost_usd": 0.25, "from_ledger": ledger}}})
    ['receiver m: 2 calls and 1 failed attempt, 1,500 input and 20 output tokens, 0.25 USD']
    """
    roles: Mapping[str, Mapping[str, Any]] = usage["roles"]
    lines = [f"{name} {role['model']}: {_role_text(role)}" for name, role in roles.items()]
    costs = [role["cost_usd"] for role in roles.values() if role["cost_usd"] is not None]
    if len(costs) > 1 and sum(costs) > 0:
        more = "" if len(costs) == len(roles) else ", and the roles without a known price"
        lines.append(f"all roles: {dollars(sum(costs))}{more}")
    return lines


def _role_text(role: Mapping[str, Any]) -> str:
    attempts = role["failed_attempts"]
    failed = f" ({role['failed_calls']:,} failed)" if role["failed_calls"] else ""
    again = f" and {_counted(attempts, 'failed attempt')}" if attempts else ""
    words = [f"{_counted(role['calls'], 'call')}{failed}{again}", *_tokens_text(role)]
    ledger = role["from_ledger"]
    if ledger["replies"]:
        saved = f" (saved {dollars(ledger['cost_usd'])})" if ledger["cost_usd"] else ""
        kept = "reply" if ledger["replies"] == 1 else "replies"
        words.append(f"{ledger['replies']:,} {kept} from the ledger{saved}")
    return ", ".join(words)


def _tokens_text(role: Mapping[str, Any]) -> Iterator[str]:
    unknown = role["calls_without_usage"]
    if role["calls"] == 0:
        return
    if unknown < role["calls"]:
        reasoning = f" ({role['reasoning_tokens']:,} reasoning)" if role["reasoning_tokens"] else ""
        yield f"{role['input_tokens']:,} input and {role['output_tokens']:,} output tokens{reasoning}"
    if unknown:
        yield f"tokens of {_counted(unknown, 'call')} unknown"
    cost = role["cost_usd"]
    if cost is None:
        yield "no price known"
    elif unknown < role["calls"] or cost:
        yield dollars(cost) + (" for what is known" if unknown and cost else "")


def _counted(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def dollars(amount: float) -> str:
    """An amount of money.

    >>> dollars(12.345), dollars(0.0123), dollars(0)
    ('12.35 USD', '0.012 USD', '0.00 USD')
    """
    return f"{amount:,.2f} USD" if amount >= 0.1 or amount == 0 else f"{amount:.2g} USD"
