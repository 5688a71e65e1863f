"""`interbench table --layout human`: InterFeedback's Tables 3 and 4 of runs, for people and for machines."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from interbench_tasks.cli_tables import FORMATS, LAYOUTS
from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.report.formats import Grid, as_csv, as_latex, as_markdown, as_text
from interbench_tasks.report.layouts import shown_from
from tests.feedback_records import LoopOptions, loop, numbered
from tests.scored_runs import run_of

LEVELS = LoopOptions(arms=("hierarchical",), max_rounds=3, test_on="all_wrong", level_texts="data")
EPISODES = [
    ("math_text", "B", {}),
    ("math_text", "A", {"hierarchical": ["B"]}),
    ("visual_logic", "A", {"hierarchical": ["A", "B"]}),
    ("visual_logic", None, {"hierarchical": ["A", "A", "A"]}),
    ("own_category", "A", {"hierarchical": ["A", "failed"]}),
    (None, "A", {"hierarchical": ["B"]}),
]


def run(name="gpt", episodes=EPISODES, options=LEVELS, **changes):
    records = numbered([loop(first, None, arms, category=category) for category, first, arms in episodes])
    metrics = FeedbackLoopMetrics(options)
    own = {"arms": list(options.arms), "max_rounds": options.max_rounds, "providers": list(options.providers)}
    summaries = [metrics.summary(record) for record in records]
    return run_of(name, summaries, metric_set=metrics, protocol_options=own, **changes)


def test_categories_stand_in_the_papers_order_then_others_then_all_items():
    accuracy, rounds = shown_from([run()], "human", intervals=False).grids
    assert list(accuracy.headers) == ["receiver", "Visual logic", "MathText", "own_category", "Average"]
    assert accuracy.rows == [["gpt", "0.0", "50.0", "0.0", "16.7"]]
    assert list(rounds.headers) == ["receiver", "round", "Visual logic", "MathText", "own_category", "Average"]


def test_rounds_are_over_the_errors_of_round_0_with_what_is_unscored():
    rounds = shown_from([run()], "human", intervals=False).grids[1]
    assert rounds.rows == [
        ["gpt", "1", "0.0", "100.0", "-", "50.0 (u 1)"],
        ["gpt", "2", "50.0", "0.0", "-", "25.0 (u 1)"],
        ["gpt", "3", "0.0", "0.0", "-", "0.0 (u 1)"],
    ]
    assert rounds.title == (
        "t: corrected by hierarchical in each round, in percent of the errors tested after round 0, (u k): k unscored"
    )


def test_people_see_intervals():
    text = as_text(shown_from([run()], "human", intervals=True).grids[0])
    assert "50.0 [9.5, 90.5]" in text  # Wilson, 1 of 2


def test_receivers_stand_side_by_side_and_a_category_that_one_lacks_is_empty():
    shown = shown_from([run("a"), run("b", EPISODES[:2])], "human", intervals=False)
    assert [row[:3] for row in shown.grids[0].rows] == [["a", "0.0", "50.0"], ["b", "-", "50.0"]]
    assert [row[:2] for row in shown.grids[1].rows] == [[name, str(n)] for name in "ab" for n in (1, 2, 3)]


def test_each_arm_and_provider_has_its_own_rounds():
    options = replace(LEVELS, arms=("hierarchical", "detail"), level_texts="provider", providers=("p", "q"))
    arms = {f"{arm}@{label}": ["B"] for arm in options.arms for label in options.providers}
    models = {"receiver": {"name": "gpt"}, "provider@p": {"name": "x"}, "provider@q": {"name": "y"}}
    shown = shown_from([run("gpt", [("math_text", "A", arms)], options, models=models)], "human", intervals=False)
    titles = [grid.title.partition(" in each round")[0] for grid in shown.grids[1:]]
    assert titles == [f"t: corrected by {arm}@{label}" for arm in ("hierarchical", "detail") for label in ("p", "q")]


def test_one_round_is_one_row():
    options = replace(LEVELS, max_rounds=1)
    shown = shown_from([run("gpt", [("math_text", "A", {"hierarchical": ["B"]})], options)], "human", intervals=False)
    assert shown.grids[1].rows == [["gpt", "1", "100.0", "100.0"]]


def test_machines_get_a_row_for_each_metric_with_shares():
    shown = shown_from([run()], "human", intervals=False)
    rows = list(csv.DictReader(io.StringIO(as_csv(shown.flat))))
    assert [row["metric"] for row in rows] == [
        "accuracy", *(f"correction_rate.hierarchical.round{number}" for number in (1, 2, 3)),
    ]  # fmt: skip
    assert (rows[1]["average"], rows[1]["average.n"], rows[1]["average.unscored"]) == ("0.5", "4", "1")
    assert (rows[2]["visual_logic"], rows[2]["own_category"]) == ("0.5", "")
    nested = json.loads(json.dumps(shown.nested))
    assert nested[1]["categories"]["visual_logic"]["n"] == 2
    assert nested[1]["metric"] == "correction_rate.hierarchical.round1"


def test_latex_and_markdown_set_both_tables():
    grids = shown_from([run("a_b|c")], "human", intervals=False).grids
    assert all(r"\begin{tabular}" in as_latex(grid) for grid in grids)
    text = as_markdown(grids[1])
    assert text.splitlines()[2:5] == [
        r"| receiver | round | Visual logic | MathText | own\_category | Average |",
        "|:--|:--|--:|--:|--:|--:|",
        r"| a\_b\|c | 1 | 0.0 | 100.0 | - | 50.0 (u 1) |",
    ]


def test_markdown_puts_a_group_before_its_headers():
    grid = Grid(title="", headers=["r", "detail", "simple"], rows=[["m", "1", "2"]], groups=[("", 1), ("gpt", 2)])
    assert as_markdown(grid).splitlines()[0] == "| r | gpt: detail | gpt: simple |"


def test_a_category_called_like_the_last_column_does_not_take_its_place():
    shown = shown_from([run("a", [("average", "B", {}), (None, "A", {"hierarchical": ["A", "A", "A"]})])], "human",
                       intervals=False)  # fmt: skip
    assert shown.grids[0].rows == [["a", "100.0", "50.0"]]


def test_a_run_without_arms_has_no_place_in_this_layout():
    with pytest.raises(InterbenchError, match="has no feedback arms"):
        shown_from([_without_arms()], "human", intervals=True)
    assert "human" in LAYOUTS
    assert "md" in FORMATS


def _without_arms():
    made = run_of("m", [], protocol="conversation")
    return replace(made, manifest={**made.manifest, "protocol_options": {"memories": []}})
