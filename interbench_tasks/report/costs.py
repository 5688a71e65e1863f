"""What runs were made with, and what they cost, as tables side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interbench_tasks.report.folders import RunContent
from interbench_tasks.report_parts import ReportTable
from interbench_tasks.runs.usage_file import dollars

UNKNOWN = "unknown"
_NOT_SHOWN = ("run",)
"""Keys of a manifest that differ by their nature and say nothing."""


def cost_table(runs: Mapping[str, RunContent]) -> ReportTable | None:
    """Calls, tokens and money of each role of each run; None where no run tells. Args: runs = by their names."""
    rows = [
        (name, role, *_cells(used))
        for name, own in runs.items()
        for role, used in _roles(own.usage)
        if used is not None
    ]
    if not rows:
        return None
    columns = (
        *("run", "role", "model", "calls", "failed", "failed attempts", "input tokens", "output tokens"),
        *("of these reasoning", "cost", "from the ledger", "saved"),
    )
    return ReportTable(caption="Calls, tokens and money by role", columns=columns, rows=tuple(rows))


def _roles(usage: Mapping[str, Any] | None) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    roles = (usage or {}).get("roles")
    for role, used in roles.items() if isinstance(roles, Mapping) else ():
        yield str(role), used if isinstance(used, Mapping) else None


def _cells(used: Mapping[str, Any]) -> tuple[str, ...]:
    ledger = used.get("from_ledger")
    ledger = ledger if isinstance(ledger, Mapping) else {}
    lacking = used.get("calls_without_usage") or 0
    more = f" (+ {lacking} calls unknown)" if lacking else ""
    return (
        str(used.get("model", UNKNOWN)),
        *(_number(used.get(key)) for key in ("calls", "failed_calls", "failed_attempts")),
        *(_number(used.get(key)) + more for key in ("input_tokens", "output_tokens")),
        _number(used.get("reasoning_tokens")),
        _money(used.get("cost_usd")),
        _number(ledger.get("replies")),
        _money(ledger.get("cost_usd")),
    )


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else UNKNOWN


def _money(value: object) -> str:
    return dollars(float(value)) if isinstance(value, int | float) else UNKNOWN


def manifest_table(runs: Mapping[str, RunContent]) -> ReportTable:
    """Every value of the manifests, one a row; what differs between runs stands first. Args: runs = by their names."""
    flat = {name: dict(_flat(own.manifest)) | {"folder": str(own.folder)} for name, own in runs.items()}
    keys = list(dict.fromkeys(key for values in flat.values() for key in values))
    differ = [key for key in keys if len({values.get(key) for values in flat.values()}) > 1]
    same = [key for key in keys if key not in set(differ)]
    caption = "What the runs were made with" + ("; what differs stands first" if differ else "")
    rows = [(key, *(values.get(key, "-") for values in flat.values())) for key in (*differ, *same)]
    return ReportTable(caption=caption, columns=("setting", *flat), rows=tuple(rows))


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if name in _NOT_SHOWN:
            continue
        if isinstance(inner, Mapping) and inner:
            yield from _flat(inner, f"{name}.")
        else:
            yield name, inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
