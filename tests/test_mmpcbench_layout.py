"""`interbench table --layout mmpcbench`: the main table of critiques, for people and for machines."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest

from interbench_tasks.cli_tables import LAYOUTS
from interbench_tasks.errors import InterbenchError
from interbench_tasks.report.cells import cell_from
from interbench_tasks.report.formats import Grid, as_csv, as_latex, as_markdown, as_text
from interbench_tasks.report.layouts import shown_from
from tests.critiques import JUDGES, any_vote, dual, judged, metrics, record, valid
from tests.scored_runs import run_of
from tests.test_mmrc_layout import run as conversation_run
from tests.test_sweeps import SWEEP, swept


def run(name="gpt", *, seed=0, missing=0.2, more=(), **options):
    dice = random.Random(f"{name}{seed}")

    def votes():
        return [None if dice.random() < missing else any_vote(dice) for _ in JUDGES]

    styles = options.get("more_styles", ())
    subtypes = ("EE.ambiguity", "PC.cross_modal", "MP.mismatch", "BC")
    records = [
        record(n, votes(), category=subtypes[n % 4], reasoning=votes(), styles={style: votes() for style in styles})
        for n in range(80)
    ]
    return run_from([*records, *more], name, **options)


def run_from(records, name="gpt", **options):
    own = metrics(**options)
    protocol_options = {"more_styles": list(options.get("more_styles", ()))}
    return run_of(
        name,
        [own.summary(one) for one in records],
        metric_set=own,
        protocol="critique",
        metrics="mmpcbench",
        protocol_options=protocol_options,
    )


def shown(*runs, intervals=True):
    return shown_from(runs, "mmpcbench", intervals=intervals)


def test_every_model_has_a_row_with_the_papers_metrics_types_and_strategies():
    runs = run("gpt"), run("qwen", missing=0)
    [grid] = shown(*runs).grids
    assert list(grid.headers) == [
        *("model", "#Items", "EDA", "DP", "SE", "PCQ", "EE", "PC", "MP", "BC"),
        *("correction", "clarification", "refusal", "none", "split", "EDA_R", "EDA_F", "DDR", "DQD"),
    ]
    assert [name for name, _ in grid.groups] == [
        "",
        "PCQ by type",
        "strategy of what was detected",
        "reasoning and answer",
    ]
    for one, row in zip(runs, grid.rows, strict=True):
        table = one.metric_set.table(one.summaries)
        cells = dict(zip(grid.headers, row, strict=True))
        assert cells["model"] == one.receiver
        assert cells["EDA"] == cell_from(table["eda"])
        assert cells["PCQ"] == cell_from(table["pcq"])
        assert cells["MP"] == cell_from(table["pcq.MP"])
        assert cells["DP"] == cell_from(table["dp"])
        assert cells["refusal"] == cell_from(table["strategy.refusal"])
        assert cells["DQD"] == cell_from(table["dqd"], signed=True)
    assert grid.rows[0][1] == f"{80 - table_unscored(runs[0])} (u {table_unscored(runs[0])})"
    assert grid.rows[1][1] == "80"
    assert grid.title == "t: DP and SE up to 2, all else in percent, [95% interval], (u k): k unscored"


def table_unscored(one):
    return one.metric_set.table(one.summaries)["eda"].unscored


def test_valid_inputs_and_dual_errors_have_columns_where_there_are_some():
    more = [judged(80 + n, "valid", [valid(False, n == 0)] * 3) for n in range(4)]
    more += [judged(90 + n, "BC+EE.ambiguity", [dual(True, "first")] * 3) for n in range(4)]
    [grid] = shown(run(more=more)).grids
    assert list(grid.headers)[-5:] == ["MEDA", "Type Coverage", "All Detected", "URR-V", "FAR-V"]
    assert [cell.partition(" ")[0] for cell in list(grid.rows[0])[-5:]] == ["100.0", "50.0", "0.0", "0.0", "25.0"]


def test_without_intervals_only_the_values_are_shown():
    [grid] = shown(run(missing=0), intervals=False).grids
    assert not any("[" in cell for cell in grid.rows[0])
    assert float(grid.rows[0][2]) == pytest.approx(100 * value(run(missing=0), "eda"), abs=0.05)


def value(one, name):
    return one.metric_set.table(one.summaries)[name].value


def test_styles_and_variants_have_rows_of_their_own():
    [grid] = shown(run(more_styles=("formal",))).grids
    assert list(grid.headers)[:2] == ["model", "asked"]
    assert [row[1] for row in grid.rows] == ["as the task has it", "formal"]
    one = run_from(swept()[0], **SWEEP)
    found = shown(one)
    rows = {row[1]: dict(zip(found.grids[0].headers, row, strict=True)) for row in found.grids[0].rows}
    assert list(rows) == ["as the task has it", "effort=low", "effort=high"]
    table = one.metric_set.table(one.summaries)
    assert rows["effort=high"]["PCQ"] == cell_from(table["pcq@effort=high"])
    assert rows["effort=low"]["EDA_R"] == cell_from(table["eda_r@effort=low"])
    assert rows["effort=low"]["BC"] == rows["effort=low"]["refusal"] == "-"
    flat = {row["asked"]: row for row in found.flat}
    assert flat["effort=high"]["eda"] == table["eda@effort=high"].value


def test_machines_get_values_intervals_n_and_unscored():
    one = run()
    found = shown(one)
    table = one.metric_set.table(one.summaries)
    [row] = list(csv.DictReader(io.StringIO(as_csv(found.flat))))
    assert row["model"] == "gpt"
    assert float(row["pcq"]) == table["pcq"].value
    assert float(row["pcq.ci95_low"]) == table["pcq"].ci95.low
    assert (int(row["eda.n"]), int(row["eda.unscored"])) == (table["eda"].n, table["eda"].unscored)
    [nested] = json.loads(json.dumps(found.nested, allow_nan=False))
    assert nested["metrics"]["se"] == json.loads(json.dumps(table["se"].to_json()))
    latex = as_latex(found.grids[0])
    assert r"\multicolumn{5}{c}{strategy of what was detected}" in latex
    assert "EDA\\_R" in latex


def test_markdown_has_the_groups_in_its_headers():
    text = as_markdown(shown(run()).grids[0])
    title, _, header, rule, row = text.splitlines()
    assert title.startswith("**t: DP and SE up to 2")
    assert header.startswith("| model | #Items | EDA | DP | SE | PCQ | PCQ by type: EE |")
    assert rule.startswith("|:--|--:|--:|")
    assert header.count("|") == rule.count("|") == row.count("|")


def test_markdown_shows_every_text_as_it_is():
    grid = Grid(title="a_b", headers=["x|y"], rows=[["<b>*1*\n2"]])
    assert as_markdown(grid).splitlines() == ["**a\\_b**", "", "| x\\|y |", "|:--|", "| \\<b\\>\\*1\\* 2 |"]


def test_runs_of_other_protocols_name_the_layout_that_shows_them():
    with pytest.raises(InterbenchError, match="the protocol conversation is no critique"):
        shown(conversation_run())
    with pytest.raises(InterbenchError, match="has no feedback arms.*use --layout mmpcbench"):
        shown_from([run()], "interfeedback", intervals=True)
    assert "mmpcbench" in LAYOUTS


def test_the_text_is_one_table_with_all_columns():
    text = as_text(shown(run(), run("qwen")).grids[0])
    assert len(text.splitlines()) == 5
