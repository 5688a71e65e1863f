"""Tables of runs: the paper's layout, the controls', as text, LaTeX and CSV."""

from __future__ import annotations

import csv
import io

from interbench_tasks.report.formats import Grid, as_csv, as_latex, as_text, escaped
from interbench_tasks.report.layouts import RunTable, controls_grid, flat_rows, interfeedback_grid, providers_of


def rate(value, n=100, unscored=0, **more):
    return {
        "value": value,
        "n": n,
        "unscored": unscored,
        "ci95": [value - 0.1, value + 0.1],
        "method": "wilson",
        **more,
    }


def count(value, unscored=0):
    return {"value": float(value), "n": 100, "unscored": unscored, "ci95": None, "method": "count"}


def several(receiver="m_1"):
    metrics = {"accuracy": rate(0.256), "n_negative": count(2933)}
    for label, n_test, detail, simple in (("gpt-4o", 373, 0.362, 0.18), ("flash", 428, 0.29, 0.157)):
        metrics |= {
            f"n_test@{label}": count(n_test),
            f"correction_rate.detail@{label}": rate(detail),
            f"correction_rate.simple@{label}": rate(simple, unscored=2),
        }
    providers = {"gpt-4o": "openai:gpt-4o", "flash": "openai:gemini-1.5-flash"}
    return RunTable(receiver=receiver, task="t", providers=providers, arms=("detail", "simple"), metrics=metrics)


def single():
    metrics = {"accuracy": rate(0.5), "n_negative": count(50), "n_test": count(20), "correction_rate.detail": rate(0.4)}
    return RunTable(receiver="m_2", task="t", providers={"": "openai:gpt-4o"}, arms=("detail",), metrics=metrics)


def test_the_papers_row():
    grid = interfeedback_grid([several()], intervals=False)
    assert grid.rows == [["m_1", "25.6", "2933", "373", "36.2", "18.0 (u 2)", "428", "29.0", "15.7 (u 2)"]]
    assert list(grid.groups) == [("", 3), ("openai:gpt-4o", 3), ("openai:gemini-1.5-flash", 3)]


def test_intervals_stand_beside_the_numbers():
    grid = interfeedback_grid([several()], intervals=True)
    assert grid.rows[0][1] == "25.6 [15.6, 35.6]"
    assert grid.rows[0][5] == "18.0 [8.0, 28.0] (u 2)"


def test_a_run_with_one_of_the_providers_has_gaps_for_the_others():
    grid = interfeedback_grid([several(), single()], intervals=False)
    assert grid.rows[1] == ["m_2", "50.0", "50", "20", "40.0", "-", "-", "-", "-"]


def test_the_text_has_a_line_of_providers_and_equal_columns():
    lines = as_text(interfeedback_grid([several(), single()], intervals=False)).splitlines()
    assert lines[1].split() == ["openai:gpt-4o", "openai:gemini-1.5-flash"]
    assert lines[1].index("openai:gpt-4o") == lines[2].index("#Test")
    assert lines[1].index("openai:gemini") == lines[2].rindex("#Test")


def test_latex_has_as_many_cells_in_every_row_and_nothing_unescaped():
    latex = as_latex(interfeedback_grid([several(), single()], intervals=False))
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert rows[0].count("&") + rows[0].count("{3}") * 2 == 8
    assert {row.replace(r"\&", "").count("&") for row in rows[1:]} == {8}
    assert r"m\_1" in latex
    assert r"\begin{tabular}{lrrrrrrrr}" in latex
    assert latex.count("{") == latex.count("}")


def test_what_latex_would_take_for_commands_is_escaped():
    assert escaped(r"\a{b}_c^d~e#f$g%h&i") == (
        r"\textbackslash{}a\{b\}\_c\textasciicircum{}d\textasciitilde{}e\#f\$g\%h\&i"
    )


def test_csv_holds_every_metric_with_what_belongs_to_it():
    rows = list(csv.DictReader(io.StringIO(as_csv(list(flat_rows([several(), single()]))))))
    [found] = [
        row
        for row in rows
        if row["metric"] == "correction_rate.simple" and row["provider"] == "openai:gemini-1.5-flash"
    ]
    assert (found["value"], found["unscored"], found["receiver"]) == ("0.157", "2", "m_1")
    [alone] = [row for row in rows if row["receiver"] == "m_2" and row["metric"] == "n_test"]
    assert (alone["provider"], alone["ci95_low"]) == ("openai:gpt-4o", "")
    assert len(rows) == 8 + 4


def test_a_comparison_between_two_providers_keeps_its_whole_name():
    run = several()
    name = "same_answer_rate.detail@gpt-4o-detail@flash"
    run = RunTable(receiver="m", task="t", providers=run.providers, arms=run.arms, metrics={name: rate(0.5)})
    assert [(row["metric"], row["provider"]) for row in flat_rows([run])] == [(name, None)]


def test_the_controls_stand_beside_their_arms_for_each_provider():
    metrics = {
        "elimination_floor@gpt-4o": rate(0.333),
        "correction_rate.reask@gpt-4o": rate(0.2),
        "correction_rate.simple@gpt-4o": rate(0.3),
        "net_bit_effect@gpt-4o": rate(0.1),
        "n_test@gpt-4o": count(50),
    }
    run = several()
    run = RunTable(receiver="m", task="t", providers=run.providers, arms=run.arms, metrics=metrics)
    grid = controls_grid([run], intervals=False)
    assert grid.headers == [
        "receiver", "provider", "#Test", "elimination_floor", "correction_rate.reask", "correction_rate.simple",
        "net_bit_effect",
    ]  # fmt: skip
    assert grid.rows[0] == ["m", "openai:gpt-4o", "50", "33.3", "20.0", "30.0", "10.0"]
    assert grid.rows[1] == ["m", "openai:gemini-1.5-flash", "-", "-", "-", "-", "-"]


def test_providers_come_from_the_manifest():
    models = {"receiver": {"name": "r"}, "provider@a": {"name": "x"}, "provider@b": {"name": "y"}}
    assert providers_of({"models": models}) == {"a": "x", "b": "y"}
    assert providers_of({"models": {"receiver": {"name": "r"}, "provider": {"name": "x"}}}) == {"": "x"}


def test_a_group_with_a_long_name_gets_the_room():
    grid = Grid(title="", headers=["a", "b"], rows=[["1", "2"]], groups=[("", 1), ("a very long provider", 1)])
    lines = as_text(grid).splitlines()
    assert lines[0].endswith("a very long provider")
    assert lines[2] == "1  2"
