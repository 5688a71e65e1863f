"""What runs were made with and what they cost, side by side; what nobody knows is never a zero."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interbench_tasks.report.costs import cost_table, manifest_table
from interbench_tasks.report.folders import RunContent
from interbench_tasks.report.page import numeric_columns
from interbench_tasks.report.writing import report_text
from interbench_tasks.report_parts import ReportTable
from interbench_tasks.runs.score import score_folder
from tests.report_runs import OFFERS, run_of_loops, talk, write_run

ROLE = {"model": "m", "calls": 3, "failed_calls": 1, "failed_attempts": 2, "calls_without_usage": 0}
TOKENS = {"input_tokens": 4000, "cached_input_tokens": 0, "output_tokens": 50, "reasoning_tokens": 7, "cost_usd": 1.25}
LEDGER = {"replies": 6, **TOKENS, "cost_usd": 0.004}


def content(usage: Any = None, manifest: Any = None) -> RunContent:
    return RunContent(
        folder=Path("/runs/x"),
        task="t",
        protocol="p",
        receiver="r",
        manifest=manifest or {},
        metrics={},
        headline=(),
        categories={},
        summaries=(),
        usage=usage,
        n_found=0,
        n_wanted=None,
        unfinished=(),
        problems=(),
    )


def usage(**changes: Any) -> dict[str, Any]:
    return {"roles": {"receiver": {**ROLE, **TOKENS, "price": None, "from_ledger": LEDGER, **changes}}}


def cells(table: ReportTable | None, row: int = 0) -> dict[str, str]:
    assert table is not None
    return dict(zip(table.columns, table.rows[row], strict=True))


def test_each_role_of_each_run_has_a_row():
    found = cost_table({"one": content(usage()), "two": content(usage(model="n")), "three": content()})
    assert found is not None
    assert [row[:3] for row in found.rows] == [("one", "receiver", "m"), ("two", "receiver", "n")]
    assert cells(found) == {
        "run": "one",
        "role": "receiver",
        "model": "m",
        "calls": "3",
        "failed": "1",
        "failed attempts": "2",
        "input tokens": "4,000",
        "output tokens": "50",
        "of these reasoning": "7",
        "cost": "1.25 USD",
        "from the ledger": "6",
        "saved": "0.004 USD",
    }


def test_what_is_unknown_is_no_zero():
    found = cells(cost_table({"one": content(usage(cost_usd=None, input_tokens=None, calls_without_usage=2))}))
    assert found["cost"] == "unknown"
    assert found["input tokens"] == "unknown (+ 2 calls unknown)"
    assert found["output tokens"] == "50 (+ 2 calls unknown)"


@pytest.mark.parametrize("odd", [None, {}, {"roles": None}, {"roles": {}}, {"roles": {"receiver": 5}}])
def test_runs_that_tell_nothing_have_no_costs(odd):
    assert cost_table({"one": content(odd)}) is None


def test_a_role_that_tells_half_is_shown_by_half():
    found = cells(cost_table({"one": content({"roles": {"judge@a": {"calls": 2}}})}))
    assert (found["role"], found["model"], found["calls"], found["cost"]) == ("judge@a", "unknown", "2", "unknown")


def test_settings_that_differ_stand_first_and_lists_are_written_out():
    manifests = [
        {"task": "t", "generation": {"receiver": {"temperature": t, "until": []}}, "run": {"started_at": t}}
        for t in (0.0, 1.0)
    ]
    runs = {f"run{n}": content(manifest=manifest) for n, manifest in enumerate(manifests)}
    found = manifest_table(runs)
    assert found.columns == ("setting", "run0", "run1")
    assert found.rows == (
        ("generation.receiver.temperature", "0.0", "1.0"),
        ("task", "t", "t"),
        ("generation.receiver.until", "[]", "[]"),
        ("folder", "/runs/x", "/runs/x"),
    )
    assert found.caption.endswith("what differs stands first")


def test_a_setting_that_a_run_lacks_is_a_dash():
    found = manifest_table({"one": content(manifest={"seed": 3}), "two": content()})
    assert found.rows[0] == ("seed", "3", "-")
    alone = manifest_table({"one": content(manifest={"seed": 3})})
    assert alone.rows == (("seed", "3"), ("folder", "/runs/x"))
    assert alone.caption == "What the runs were made with"


def test_columns_of_numbers_are_known_by_their_cells():
    def table(*cells: str) -> ReportTable:
        return ReportTable(caption="", columns=("name", "x"), rows=tuple(("a", cell) for cell in cells))

    for numbers in (("1,200",), ("43.3 [31.6 to 55.9] n=60", "-"), ("-3.5", "+2", ""), ("0.05 USD", "unknown")):
        assert numeric_columns(table(*numbers)) == [False, True]
    for texts in (("m",), ("2026-11-30", "1"), ("-", ""), ("gpt-4", "5"), ("20261130-124113-name",)):
        assert numeric_columns(table(*texts)) == [False, False]
    assert numeric_columns(ReportTable(caption="", columns=("a", "b"), rows=())) == [False, False]


# --- whole files --------------------------------------------------------------------------------------------------


@pytest.fixture
def two_runs(tmp_path, monkeypatch):
    """Two runs of one task, and one of another; their names are the same wherever they lie."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        score_folder(run_of_loops(Path(name), receiver=name), OFFERS)
    write_run(Path("three"), [talk()], receiver="two", task="talks", simulated=["judge"])
    return [Path("one"), Path("two"), Path("three")]


@pytest.mark.parametrize(("format", "name"), [("md", "report.md"), ("latex", "report.tex"), ("csv", "report.csv")])
def test_the_tables_of_three_runs_are_these(two_runs, golden, format, name):
    text, _ = report_text(two_runs, replace(OFFERS, report_sections={}), format)
    golden(f"report/{name}", text + "\n")
