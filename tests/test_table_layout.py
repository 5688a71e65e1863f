"""Tables of runs: the paper's layout, the controls', every metric, and a comparison; as text, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import InterbenchError
from interbench_tasks.metrics.intervals import Estimate, Interval
from interbench_tasks.report.cells import cell_from, flat_from
from interbench_tasks.report.comparison import as_json, flat_pairs, foot_lines, grids_from
from interbench_tasks.report.fitting import fitting_runs
from interbench_tasks.report.formats import Grid, as_csv, as_latex, as_markdown, as_text, escaped
from interbench_tasks.report.layouts import (
    RunTable,
    controls_table,
    flat_rows,
    grid_from,
    interfeedback_table,
    nested,
    providers_of,
    run_tables,
    shown_from,
)
from interbench_tasks.runs.compare import compared
from tests.cli import interbench
from tests.scored_runs import episode, run_of
from tests.test_second_pass import plan_of, play


def rate(value, n=100, unscored=0):
    return Estimate(value=value, n=n, unscored=unscored, ci95=Interval(value - 0.1, value + 0.1), method="wilson")


def count(value, unscored=0):
    return Estimate(value=float(value), n=100, unscored=unscored, method="count")


def table_of(receiver, providers, arms, metrics, **more):
    values = {"run_id": f"run-{receiver}", "task": "t", "task_version": "1.0"} | more
    return RunTable(receiver=receiver, providers=providers, arms=arms, metrics=metrics, **values)


def several(receiver="m_1"):
    metrics = {"accuracy": rate(0.256), "n_negative": count(2933)}
    for label, n_test, detail, simple in (("gpt", 373, 0.362, 0.18), ("flash", 428, 0.29, 0.157)):
        metrics |= {
            f"n_test@{label}": count(n_test),
            f"correction_rate.detail@{label}": rate(detail),
            f"correction_rate.simple@{label}": rate(simple, n=98, unscored=2),
        }
    providers = {"gpt": "openai:gpt-4o", "flash": "openai:gemini"}
    return table_of(receiver, providers, ("simple", "reask", "detail"), metrics)


def single():
    metrics = {"accuracy": rate(0.5), "n_negative": count(50), "n_test": count(20), "correction_rate.detail": rate(0.4)}
    return table_of("m_2", {"": "openai:gpt-4o"}, ("detail",), metrics)


def grid(*runs, intervals=False):
    return grid_from(interfeedback_table(runs), intervals=intervals)


# --- the paper's table --------------------------------------------------------------------------------------------

TEXT = """\
t: rates in percent, [95% interval], (u k): k unscored
                                   openai:gpt-4o                                     openai:gemini
receiver  Acc                #Neg  #Test  detail             simple                  #Test  detail             simple
m_1       25.6 [15.6, 35.6]  2933  373    36.2 [26.2, 46.2]  18.0 [8.0, 28.0] (u 2)  428    29.0 [19.0, 39.0]  15.7 [5.7, 25.7] (u 2)
m_2       50.0 [40.0, 60.0]  50    20     40.0 [30.0, 50.0]  -                       -      -                  -"""  # noqa: E501 - a table as it is printed

LATEX = r"""% t: rates in percent, (u k): k unscored
\begin{tabular}{lrrrrrrrr}
\toprule
&  &  & \multicolumn{3}{c}{openai:gpt-4o} & \multicolumn{3}{c}{openai:gemini} \\
\cmidrule(lr){4-6} \cmidrule(lr){7-9}
receiver & Acc & \#Neg & \#Test & detail & simple & \#Test & detail & simple \\
\midrule
m\_1 & 25.6 & 2933 & 373 & 36.2 & 18.0 (u 2) & 428 & 29.0 & 15.7 (u 2) \\
m\_2 & 50.0 & 50 & 20 & 40.0 & - & - & - & - \\
\bottomrule
\end{tabular}"""


def test_the_papers_table_as_text():
    assert as_text(grid(several(), single(), intervals=True)) == TEXT


def test_the_papers_table_as_latex():
    assert as_latex(grid(several(), single())) == LATEX


def test_the_papers_table_as_csv_has_one_row_a_receiver_and_shares_not_percent():
    text = as_csv(list(flat_rows(interfeedback_table([several(), single()]))))
    first, second = csv.DictReader(io.StringIO(text))
    assert list(first)[:10] == [
        "task", "task_version", "run_id", "receiver", "finished", "accuracy", "accuracy.ci95_low", "accuracy.ci95_high",
        "accuracy.n", "accuracy.unscored",
    ]  # fmt: skip
    assert (first["receiver"], first["accuracy"], first["n_negative"]) == ("m_1", "0.256", "2933")
    simple = {key: float(value) for key, value in first.items() if re.match("correction_rate.simple.*gemini", key)}
    assert simple == {
        "correction_rate.simple@openai:gemini": 0.157,
        "correction_rate.simple.ci95_low@openai:gemini": pytest.approx(0.057),
        "correction_rate.simple.ci95_high@openai:gemini": pytest.approx(0.257),
        "correction_rate.simple.n@openai:gemini": 98,
        "correction_rate.simple.unscored@openai:gemini": 2,
    }
    assert (first["n_test@openai:gpt-4o"], first["n_test.unscored@openai:gpt-4o"]) == ("373", "0")
    assert (second["n_test@openai:gpt-4o"], second["n_test@openai:gemini"]) == ("20", "")


def test_the_papers_table_as_json_holds_whole_estimates_by_provider():
    first, second = json.loads(json.dumps(nested(interfeedback_table([several(), single()]))))
    assert (first["receiver"], first["run_id"], first["task"]) == ("m_1", "run-m_1", "t")
    assert first["providers"]["openai:gemini"]["correction_rate.simple"]["unscored"] == 2
    assert Estimate.from_json(first["metrics"]["accuracy"]) == rate(0.256)
    assert list(second["providers"]) == ["openai:gpt-4o"]


def test_the_arms_stand_in_the_papers_order_with_further_ones_behind_and_placebos_elsewhere():
    run = table_of("m", {"": "p"}, ("reask", "socratic", "simple", "detail", "mismatched"), {"accuracy": rate(0.5)})
    assert grid(run).headers == ["receiver", "Acc", "#Neg", "#Test", "detail", "simple", "socratic"]
    assert grid(table_of("m", {"": "p"}, ("reask",), {})).headers[-1] == "reask"


def test_one_model_twice_as_a_provider_has_a_column_for_each_label():
    metrics = {"n_test@cold": count(1), "n_test@hot": count(2)}
    twice = table_of("m", {"cold": "openai:gpt-4o", "hot": "openai:gpt-4o"}, ("detail",), metrics)
    shown = grid(twice, single())
    assert [name for name, _ in shown.groups] == ["", "openai:gpt-4o (cold)", "openai:gpt-4o (hot)", "openai:gpt-4o"]
    assert shown.rows == [
        ["m", "-", "-", "1", "-", "2", "-", "-", "-"],
        ["m_2", "50.0", "50", "-", "-", "-", "-", "20", "40.0"],
    ]


def test_a_provider_is_found_by_its_model_whatever_its_label():
    other = table_of("m", {"x": "openai:gemini"}, ("detail",), {"n_test@x": count(7)})
    assert grid(several(), other).rows[1] == ["m", "-", "-", "-", "-", "-", "7", "-", "-"]


def test_providers_come_from_the_manifest():
    models = {"receiver": {"name": "r"}, "provider@a": {"name": "x"}, "provider@b": {"name": "y"}}
    assert providers_of({"models": models}) == {"a": "x", "b": "y"}
    assert providers_of({"models": {"receiver": {"name": "r"}, "provider": {"name": "x"}}}) == {"": "x"}


def test_receivers_of_one_name_are_told_apart():
    runs = [run_of("a", [episode(0, accuracy=1)]), run_of("x", [episode(0, accuracy=0)], models__receiver__name="a")]
    assert [row.names for row in interfeedback_table(run_tables(runs)).rows] == [("a (run-a)",), ("a (run-x)",)]


def test_runs_without_arms_have_no_place_in_the_papers_table_but_in_the_list():
    run = run_of("a", [episode(0, recall=1)], protocol="conversation", protocol_options={})
    with pytest.raises(
        InterbenchError, match="/nowhere/a: the protocol conversation has no feedback arms.*--layout mmrc"
    ):
        shown_from([run], "interfeedback", intervals=True)
    [row] = shown_from([run], "list", intervals=True).flat
    assert (row["receiver"], row["metric"], row["value"], row["n"]) == ("a", "recall", 1.0, 1)


def of_all_protocols():
    """A loop, a conversation and a critique."""
    kinds = (
        ("loop", "feedback_loop", {"arms": ["detail"]}),
        ("talk", "conversation", {"memories": ["none"]}),
        ("flaw", "critique", {}),
    )
    return [
        run_of(name, [episode(0, accuracy=1)], task=name, protocol=protocol, protocol_options=options)
        for name, protocol, options in kinds
    ]


@pytest.mark.parametrize(
    ("layout", "there"), [("human", "loop"), ("controls", "loop"), ("mmrc", "talk"), ("mmpcbench", "flaw")]
)
def test_of_a_mixed_folder_a_layout_leaves_out_by_name_what_it_has_no_place_for(layout, there):
    [fitting], told = fitting_runs(of_all_protocols(), layout)
    assert (fitting.layout, [run.task for run in fitting.runs]) == (layout, [there])
    others = {"loop": "interfeedback", "talk": "mmrc", "flaw": "mmpcbench"}
    del others[there]
    assert told == [
        f"/nowhere/{name}: is left out, a run of {name} has no place in --layout {layout}; use --layout {own}"
        for name, own in others.items()
    ]
    assert shown_from(fitting.runs, layout, intervals=True).flat


def test_without_a_layout_runs_without_a_loop_have_that_of_their_protocol():
    loop, talk, flaw = of_all_protocols()
    found, told = fitting_runs([talk, flaw], None)
    assert ([own.layout for own in found], told) == (["mmrc", "mmpcbench"], [])
    [found], told = fitting_runs([loop, talk], None)
    assert (found.layout, len(told)) == ("interfeedback", 1)
    assert [own.layout for own in fitting_runs([loop, talk, flaw], "list")[0]] == ["list"] * 3


def test_a_layout_that_no_run_fits_is_refused():
    [fitting], told = fitting_runs(of_all_protocols()[1:2], "controls")
    assert told == []
    with pytest.raises(InterbenchError, match="no feedback arms.*--layout mmrc"):
        shown_from(fitting.runs, fitting.layout, intervals=True)


def stopped(**changes):
    """A run of two of its three episodes."""
    two = [episode(number, accuracy=1, recall=1) for number in range(2)]
    return run_of("a", two, **{"data__n_episodes": 3} | changes)


@pytest.mark.parametrize("layout", ["interfeedback", "human", "mmrc", "mmpcbench", "list"])
def test_a_run_that_was_stopped_is_marked_where_it_stands(layout):
    options = {"mmrc": {"memories": ["none"]}, "mmpcbench": {}}.get(layout, {"arms": ["detail"]})
    whose = {"protocol": {"mmpcbench": "critique"}.get(layout, "x"), "protocol_options": options}
    runs = [stopped(**whose), run_of("b", [episode(0, accuracy=1)], **whose)]
    shown = shown_from(runs, layout, intervals=False)
    for text in (as_text, as_markdown, as_latex):
        assert "a (unfinished, 2 of 3)" in "\n".join(map(text, shown.grids))
        assert "b (unfinished" not in "\n".join(map(text, shown.grids))
    assert {row.get("receiver", row.get("model")): row["finished"] for row in shown.flat} == {"a": False, "b": True}
    assert {row["finished"] for row in shown.nested} == {False, True}


def test_a_run_stopped_in_its_second_pass_says_so():
    assert stopped().unfinished == "(unfinished, 2 of 3)"
    assert stopped(data__n_episodes=2, second_pass={"n_episodes": 1}).unfinished == "(unfinished, second pass 0 of 1)"
    unknown = stopped(data__n_episodes=2, second_pass={"n_episodes": None})
    assert unknown.unfinished == "(unfinished, second pass 0 of ?)"
    assert stopped(data__n_episodes=None).unfinished == "(unfinished, 2 of ?)"
    assert stopped(data__n_episodes=2).unfinished == ""


# --- controls -----------------------------------------------------------------------------------------------------


def controlled():
    metrics = {
        "n_test@gpt": count(50), "elimination_floor@gpt": rate(0.333), "correction_rate.reask@gpt": rate(0.2),
        "correction_rate.simple@gpt": rate(0.3), "net_bit_effect@gpt": rate(0.1),
        "correction_rate.mismatched@gpt": rate(0.25), "correction_rate.detail@gpt": rate(0.15),
        "net_content_effect@gpt": rate(-0.1), "flip_rate.detail@gpt": rate(0.4),
        "discrimination.detail@gpt": rate(-0.25), "repeat_rate.reask@gpt": rate(0.6),
        "leak_rate.detail@gpt": rate(0.2), "leak_placebo_rate.detail@gpt": rate(0.1), "n_test@flash": count(9),
    }  # fmt: skip
    providers = {"gpt": "openai:gpt-4o", "flash": "openai:gemini"}
    return table_of("m", providers, ("detail", "simple", "reask", "mismatched"), metrics)


def test_the_controls_stand_beside_their_arms_with_a_row_for_each_provider():
    shown = grid_from(controls_table([controlled()]), intervals=False)
    assert list(zip(shown.headers, *shown.rows, strict=True)) == [
        ("receiver", "m", "m"), ("provider", "openai:gpt-4o", "openai:gemini"), ("#Test", "50", "9"),
        ("floor", "33.3", "-"), ("reask", "20.0", "-"), ("simple", "30.0", "-"), ("net", "+10.0", "-"),
        ("mismatched", "25.0", "-"), ("detail", "15.0", "-"), ("net", "-10.0", "-"), ("detail", "40.0", "-"),
        ("detail", "-25.0", "-"), ("reask", "60.0", "-"), ("rate", "20.0", "-"), ("placebo", "10.0", "-"),
    ]  # fmt: skip
    assert list(shown.groups) == [
        ("", 4), ("corrected, told that it is wrong", 3), ("corrected, told why it is wrong", 3), ("flip rate", 1),
        ("discrimination", 1), ("repeat rate", 1), ("leaks of detail", 2),
    ]  # fmt: skip
    assert sum(span for _, span in shown.groups) == len(shown.headers)


def test_the_controls_in_latex_align_two_columns_of_names_and_set_minus_signs():
    latex = as_latex(grid_from(controls_table([controlled()]), intervals=True))
    assert r"\begin{tabular}{llrrrrrrrrrrrrr}" in latex
    assert r"$-$25.0 [$-$35.0, $-$15.0]" in latex
    assert "openai:gpt-4o" in latex
    assert_latex_is_sound(latex)


def test_the_controls_for_machines_have_plain_metric_names():
    first, second = flat_rows(controls_table([controlled()]))
    assert (first["provider"], first["net_content_effect"], first["net_content_effect.n"]) == (
        "openai:gpt-4o",
        -0.1,
        100,
    )
    assert (second["provider"], second["n_test"], second["net_content_effect"]) == ("openai:gemini", 9, None)
    assert nested(controls_table([controlled()]))[0]["metrics"]["flip_rate.detail"]["value"] == 0.4


def test_another_arm_has_its_columns_too():
    metrics = {"correction_rate.socratic": rate(0.5), "leak_rate.socratic": rate(0.1)}
    shown = grid_from(controls_table([table_of("m", {"": "p"}, ("socratic",), metrics)]), intervals=False)
    assert list(shown.groups) == [("", 2), ("corrected, other arms", 1), ("leaks of socratic", 1)]


# --- a comparison -------------------------------------------------------------------------------------------------

COMPARISON = """\
t: each run over all of its own episodes, in percent [95% interval]
metric  a  b
accuracy  50.0 [0.0, 100.0] n=4  66.7 [0.0, 100.0] n=3
correction_rate.detail  100.0 [100.0, 100.0] n=1  -

A = a, B = b: 3 episodes in both, 1 only in A, 0 only in B
  scored in both, in percent [95% interval]  left out of A  left out of B
metric  n  A  B  A - B  not in B  no score in B  not in A  no score in A
accuracy  3  33.3 [6.1, 79.2]  66.7 [20.8, 93.9]  -33.3 [-72.6, 32.6]  1  0  0  0"""


def two_runs():
    one = {"correction_rate.detail": 1}
    first = [episode(0, accuracy=1, **one), *(episode(i, accuracy=bit) for i, bit in ((1, 0), (2, 0), (3, 1)))]
    return compared([run_of("a", first), run_of("b", [episode(i, accuracy=bit) for i, bit in enumerate((1, 1, 0))])])


def squeezed(text):
    """Columns two spaces apart: what stands where, without the padding."""
    return [re.sub(r"  +", "  ", line).rstrip() for line in text.splitlines()]


def test_a_comparison_as_text():
    assert squeezed("\n\n".join(map(as_text, grids_from(two_runs())))) == squeezed(COMPARISON)


def test_a_comparison_as_latex_is_sound():
    for shown in grids_from(two_runs()):
        assert_latex_is_sound(as_latex(shown))


def test_the_foot_says_how_many_differences_there_are_and_what_is_not_compared():
    lines = list(foot_lines(two_runs()))
    assert lines[0] == "correction_rate.detail: not compared, only one of the runs has it."
    assert lines[1].startswith("1 differences; each interval is a 95% interval of its own")
    three = compared([run_of(name, [episode(0, accuracy=1)]) for name in "abc"])
    assert list(foot_lines(three))[-1].startswith("The runs are compared each with each; every pair has its own common")


def test_a_comparison_as_csv_has_each_runs_value_on_common_and_on_all_episodes():
    [row] = csv.DictReader(io.StringIO(as_csv(list(flat_pairs(two_runs())))))
    assert (row["task"], row["metric"], row["first"], row["second"], row["n"]) == ("t", "accuracy", "a", "b", "3")
    assert float(row["difference"]) == pytest.approx(-1 / 3)
    assert (float(row["first_value"]), float(row["first_own_value"])) == (pytest.approx(1 / 3), 0.5)
    assert (row["first_own_n"], row["first_not_there"], row["second_not_there"]) == ("4", "1", "0")


def test_a_comparison_as_json_holds_everything():
    content = json.loads(json.dumps(as_json(two_runs()), allow_nan=False))
    assert content["overlaps"] == [
        {"first": "a", "second": "b", "n_common": 3, "n_only_first": 1, "n_only_second": 0, "other_providers": []}
    ]
    [pair] = content["pairs"]
    assert (pair["difference"]["n"], pair["first"]["n_not_there"]) == (3, 1)
    assert pair["first"]["value"]["method"] == "wilson"
    assert content["unpaired"] == {"correction_rate.detail": "only one of the runs has it"}
    assert content["notes"]


# --- formats ------------------------------------------------------------------------------------------------------


def assert_latex_is_sound(latex):
    body = [line for line in latex.splitlines() if not line.startswith("%")]
    [alignment] = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", latex)
    for row in (line for line in body if line.endswith(r" \\")):
        spans = sum(int(span) - 1 for span in re.findall(r"\\multicolumn\{(\d+)\}", row))
        assert len(re.findall(r"(?<!\\)&", row)) + 1 + spans == len(alignment), row
    for rule in re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", latex):
        assert 1 <= int(rule[0]) <= int(rule[1]) <= len(alignment)
    text = "\n".join(body)
    assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))
    assert not re.findall(r"(?<!\\)[#%_~^]", text)


def test_what_latex_would_take_for_commands_is_escaped():
    assert escaped("\\a{b}_c^d~e#f$g%h&i<j>k|l") == (
        r"\textbackslash{}a\{b\}\_c\textasciicircum{}d\textasciitilde{}e\#f\$g\%h\&i\textless{}j\textgreater{}k\textbar{}l"
    )


def test_names_that_would_break_a_latex_row_do_not():
    odd = "new\nline & 50%_{x}"
    latex = as_latex(
        Grid(title=odd, headers=["[a", "b"], rows=[["*", odd], ["[2pt]", "-1.5"]], groups=[("", 1), (odd, 1)])
    )
    assert_latex_is_sound(latex)
    assert "{[}a & b" in latex
    assert "{*} & new line" in latex
    assert "{[}2pt] & $-$1.5" in latex
    assert latex.splitlines()[0] == "% new line & 50%_{x}"


@pytest.mark.parametrize("name", ["gpt-4o-2024-08-06", "qwen2.5-vl-7b", "openai:m@http://host-1:80/-2"])
def test_a_hyphen_in_a_name_is_no_minus_sign(name):
    assert "$" not in as_latex(Grid(title="", headers=["name"], rows=[[name]]))


def test_a_line_break_in_a_name_does_not_break_a_text_table():
    assert len(as_text(Grid(title="a\nb", headers=["x\ny"], rows=[["1\n2"]])).splitlines()) == 3


def test_a_group_with_a_long_name_gets_the_room():
    shown = Grid(title="", headers=["a", "b"], rows=[["1", "2"]], groups=[("", 1), ("a very long provider", 1)])
    lines = as_text(shown).splitlines()
    assert lines[0].endswith("a very long provider")
    assert lines[2] == "1  2"


def test_csv_quotes_what_needs_it_and_keeps_columns_that_only_some_rows_have():
    rows = [{"a": 'x,"y"\nz', "b": None}, {"a": "1", "c": 0.1}]
    assert list(csv.DictReader(io.StringIO(as_csv(rows)))) == [
        {"a": 'x,"y"\nz', "b": "", "c": ""},
        {"a": "1", "b": "", "c": "0.1"},
    ]


def test_cells():
    assert cell_from(None) == "-"
    assert cell_from(rate(0.25, unscored=3), n=True) == "25.0 [15.0, 35.0] n=100 (u 3)"
    assert cell_from(rate(0.25), intervals=False, signed=True) == "+25.0"
    assert cell_from(count(7, unscored=1), n=True, signed=True) == "7 (u 1)"
    assert flat_from(None, "accuracy", "@p") == {"accuracy@p": None}


# --- the commands -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two played runs with two providers and all controls."""
    made = []
    for name, accuracy in (("weak", 0.3), ("strong", 0.7)):
        folder = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("INTERBENCH_LEDGER", "off")
            play(replace(plan_of(folder), run_id=name), receiver=SimulatedBackend(name, accuracy=accuracy, invalid=0))
        made.append(folder / "run")
    return made


def state(folders):
    return [(path, path.stat().st_mtime_ns, path.stat().st_size) for f in folders for path in sorted(f.rglob("*"))]


def test_the_commands_only_read_and_tell_what_to_know(folders, tmp_path):
    before = state(folders)
    out = tmp_path / "compared.txt"
    done = interbench("compare", *folders, "--out", out).check()
    assert (
        "warning: simulated:weak: simulated, not a model's own words: provider a, provider b, receiver" in done.output
    )
    assert f"wrote {out}" in done.output
    text = out.read_text(encoding="utf-8")
    assert text.startswith("warning: the runs differ in data source")
    assert "A = simulated:weak, B = simulated:strong: 40 episodes in both, 0 only in A, 0 only in B" in text
    table = tmp_path / "table.tex"
    interbench("table", *folders, "--layout", "controls", "--format", "latex", "--no-intervals", "--out", table).check()
    latex = table.read_text(encoding="utf-8")
    assert latex.startswith("% warning: ")
    assert_latex_is_sound(latex)
    assert state(folders) == before


def test_labels_name_the_runs_of_tables_and_comparisons(folders):
    labels = ("--label", "ours", "--label", "theirs")
    for command, keys in (("table", ["receiver"]), ("compare", ["first", "second"])):
        out = folders[0].parent.parent / f"labelled-{command}.csv"
        interbench(command, *folders, *labels, "--format", "csv", "--out", out).check()
        rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
        assert {row[key] for row in rows for key in keys} == {"ours", "theirs"}


def test_machines_get_nothing_but_the_table(folders, tmp_path):
    for command, form in (("compare", "json"), ("table", "json"), ("table", "csv")):
        out = tmp_path / f"{command}.{form}"
        interbench(command, *folders, "--format", form, "--out", out).check()
        text = out.read_text(encoding="utf-8")
        assert json.loads(text) if form == "json" else len(list(csv.DictReader(io.StringIO(text)))) == 2
    assert len(json.loads((tmp_path / "compare.json").read_text())["comparisons"][0]["pairs"]) > 10


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("table", "--layout", "interfedback"), "--layout interfedback (did you mean 'interfeedback'?): allowed: "),
        (("compare", "--format", "html"), "--format html: allowed: text, md, csv, latex, json"),
        (("compare", "--metric", "acuracy"), "--metric acuracy: fits no metric of these runs"),
        (("table", "--out", "no/such/folder/x.csv"), "--out no/such/folder/x.csv: cannot be written: No such file"),
    ],
)
def test_a_wrong_word_is_one_sentence_and_exit_code_1(folders, words, sentence):
    done = interbench(words[0], *folders, *words[1:])
    assert done.exit_code == 1
    assert sentence in done.output
    assert "Traceback" not in done.output
