"""`interbench table --layout mmrc`: MMRC's Tables 3 and 4 of runs, for people and for machines."""

from __future__ import annotations

import csv
import io
import json

import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.cli_tables import LAYOUTS
from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import Estimate, Interval
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.report.cells import cell_from
from interbench_tasks.report.formats import as_csv, as_latex, as_text
from interbench_tasks.report.layouts import shown_from
from interbench_tasks.report.table import table_text
from tests.conversation_records import Options, answer, conversation, question, talk
from tests.scored_runs import run_of

MEMORIES = ("none", ("recent_turns", "note_taking"))
NOTES = "recent_turns+note_taking"


def run(name="gpt", memories=MEMORIES, *, plain=3, noted=4, records=None):
    metrics = ConversationMetrics(Options(memories=memories))
    arms = [arm if isinstance(arm, str) else "+".join(arm) for arm in memories]
    scores = dict(zip(arms, (plain, noted), strict=False))
    made = records or [
        talk(n, {arm: {a: score + (n % 2) for a in ABILITIES} for arm, score in scores.items()}) for n in range(4)
    ]
    return run_of(
        name,
        [metrics.summary(record) for record in made],
        metric_set=metrics,
        units=[metrics.units(record) for record in made],
        protocol="conversation",
        metrics="mmrc",
        protocol_options={"memories": [arm if isinstance(arm, str) else list(arm) for arm in memories]},
    )


def test_table_3_has_a_row_for_each_receiver_and_memory():
    shown = shown_from([run("gpt"), run("qwen", plain=1, noted=2)], "mmrc", intervals=False)
    grid = shown.grids[0]
    assert list(grid.headers) == ["receiver", "memory", *ABILITIES, "EP", "IMP", "RP", "Acc", "Overall"]
    rows = [list(row) for row in grid.rows]
    assert [row[:3] for row in rows] == [
        ["gpt", "none", "3.50"],
        ["gpt", NOTES, "4.50"],
        ["qwen", "none", "1.50"],
        ["qwen", NOTES, "2.50"],
    ]
    assert rows[0][-1] == "3.50"
    assert rows[0][8:12] == ["-", "-", "0.0", "-"]
    assert grid.title == "t: scores up to 5, rates in percent"


def test_table_4_has_base_with_and_delta_of_each_ability():
    grid = shown_from([run()], "mmrc", intervals=False).grids[1]
    assert [name for name, _ in grid.groups] == ["", *ABILITIES, "Overall"]
    assert list(grid.headers[2:5]) == ["base", "with", "delta"]
    (row,) = grid.rows
    assert list(row[:5]) == ["gpt", NOTES, "3.50", "4.50", "+1.00"]
    assert grid.title == "t: scores up to 5"


def test_one_memory_has_no_table_4():
    assert len(shown_from([run(memories=("none",))], "mmrc", intervals=True).grids) == 1


def test_people_see_intervals_and_unscored_answers():
    records = [talk(n, {"none": {"IE": None if n == 3 else 4 - n % 2}, NOTES: {"IE": 5}}) for n in range(6)]
    text = as_text(shown_from([run(records=records)], "mmrc", intervals=True).grids[0])
    assert "(u 1)" in text
    assert "3.60 [2.92, 4.28] (u 1)" in text
    assert "(u k): k unscored" in text


def test_machines_get_one_row_each_with_shares_scores_and_differences():
    shown = shown_from([run()], "mmrc", intervals=False)
    rows = list(csv.DictReader(io.StringIO(as_csv(shown.flat))))
    assert [(row["receiver"], row["memory"]) for row in rows] == [("gpt", "none"), ("gpt", NOTES)]
    assert float(rows[1]["score.IE"]) == 4.5
    assert float(rows[1]["difference.IE"]) == 1
    assert rows[0]["difference.IE"] == ""
    assert int(rows[1]["score.IE.n"]) == 4
    nested = json.loads(json.dumps(shown.nested))
    assert nested[1]["metrics"]["difference.overall"]["value"] == 1
    assert nested[1]["metrics"]["score.IE"]["points"] == 5


def test_latex_sets_both_tables():
    texts = [as_latex(grid) for grid in shown_from([run()], "mmrc", intervals=False).grids]
    assert r"\multicolumn{6}{c}{score}" in texts[0]
    assert r"\multicolumn{3}{c}{IE}" in texts[1]
    assert r"recent\_turns+note\_taking & 3.50 & 4.50 & +1.00" in texts[1]


def test_runs_with_other_memories_stand_side_by_side():
    shown = shown_from([run("a"), run("b", memories=("none", "note_taking"))], "mmrc", intervals=False)
    assert [row[:2] for row in map(list, shown.grids[1].rows)] == [["a", NOTES], ["b", "note_taking"]]


def test_a_run_without_memories_has_no_place_in_this_layout():
    with pytest.raises(
        InterbenchError, match="has no memory arms, so it has no place in this layout; use --layout list"
    ):
        shown_from([run_of("m", [])], "mmrc", intervals=True)
    assert "mmrc" in LAYOUTS


def test_every_metric_is_listed_in_its_unit():
    shown = shown_from([run()], "list", intervals=True)
    text = as_text(shown.grids[0])
    assert "t, gpt: rates in percent, scores in points" in text
    assert "score.IE.none" in text
    assert any(line.split() == ["n_questions", "24"] for line in text.splitlines())
    (row,) = [row for row in shown.flat if row["metric"] == "overall.none"]
    assert row["value"] == 3.5


def test_interbench_score_shows_points_as_points():
    asked = question("q", "MR", format="mc")
    record = conversation(0, [asked, question("r", "MR")], [answer("none", asked, "A", correct=True)])
    metrics = ConversationMetrics(Options())
    table = metrics.table([metrics.summary(record), metrics.summary(talk(1, {"none": {"MR": 4}}))])
    lines = table_text({name: estimate.to_json() for name, estimate in table.items()}).splitlines()
    score = next(line for line in lines if line.startswith("score.MR.none"))
    assert "4.00" in score
    assert "2.00 .. 4.50" in score
    assert any(line.startswith("accuracy.none") and "100.0%" in line for line in lines)


def test_a_cell_in_points():
    score = Estimate(value=3.516, n=9, unscored=1, ci95=Interval(3.1, 3.9), method="t", points=5)
    assert cell_from(score) == "3.52 [3.10, 3.90] (u 1)"
    assert cell_from(score, intervals=False, signed=True) == "+3.52 (u 1)"
    assert Estimate.from_json(json.loads(json.dumps(score.to_json()))) == score
    assert "points" not in Estimate(value=0.5, n=2, method="wilson").to_json()
