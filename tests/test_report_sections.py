"""The report's sections on the three benchmarks and on judges: which charts there are, and what they say."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.critique_votes import Vote
from interbench_tasks.errors import RunFolderError
from interbench_tasks.metrics.agreement import agreement_of, labels_from
from interbench_tasks.metrics.intervals import Estimate, Interval
from interbench_tasks.metrics.mmrc_analyses import analysed, rows_from
from interbench_tasks.offers import interbench_report_sections
from interbench_tasks.plugin_manager import offers_from
from interbench_tasks.records import Seen
from interbench_tasks.report.judge_labels import fields_of_conversations, fields_of_critiques, joined
from interbench_tasks.report.section_parts import MOST_RUNS
from interbench_tasks.report.sections_agreement import agreement_section
from interbench_tasks.report.sections_interfeedback import interfeedback_section
from interbench_tasks.report.sections_mmpcbench import mmpcbench_section
from interbench_tasks.report.sections_mmrc import mmrc_section
from interbench_tasks.report.trimmed import trimmed_records
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable, Section
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.panels import panel_report
from tests.chart_runs import (
    NOWHERE,
    charts_of,
    conversation_run,
    critique_run,
    feedback_run,
    svg_of,
    talk,
    texts_of,
)
from tests.critiques import NO, YES, any_vote
from tests.feedback_records import ALL_ARMS
from tests.test_panels import critiques as scored_critiques


def cell(chart: Chart, *key: str) -> tuple[str, ...]:
    """A row of a chart's table without its key: value, interval, n, unscored, perhaps bounds."""
    (found,) = (row for row in chart.table.rows if row[: len(key)] == key)
    return found[len(key) :]


def shown(estimate: Estimate, *, digits: int = 1) -> str:
    return f"{estimate.value * (100 if estimate.points is None else 1):.{digits}f}"


# --- every section ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_runs(tmp_path_factory) -> list[ReportRun]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        feedback_run("m", arms=ALL_ARMS, rounds=3, flips=4, task="loops"),
        conversation_run(folder, "m2", judges=("a", "b"), task="talks"),
        critique_run("m3", task="flaws", more_styles=("formal",)),
    ]


def sections_with_charts() -> dict[str, Callable[[Sequence[ReportRun]], Section | None]]:
    """All but the one on people, which speaks of runs with labels only."""
    return {name: section for name, section in interbench_report_sections().items() if name != "people"}


@pytest.fixture(scope="module")
def all_sections(all_runs) -> list[Section]:
    return [section(all_runs) for section in sections_with_charts().values()]


def test_each_section_says_nothing_of_runs_that_are_not_its_own(all_runs):
    sections = interbench_report_sections()
    assert list(sections) == ["interfeedback", "mmrc", "mmpcbench", "judges", "people"]
    assert sections["people"](all_runs) is None
    assert all(section([]) is None for section in sections.values())
    feedback, talks, flaws = all_runs
    assert sections["interfeedback"]([talks, flaws]) is None
    assert sections["mmrc"]([feedback, flaws]) is None
    assert sections["mmpcbench"]([feedback, talks]) is None
    assert sections["judges"]([feedback]) is None


def test_every_chart_has_a_title_an_alternative_and_a_table_and_ids_are_unique_in_the_page(all_sections):
    charts = [part for section in all_sections for part in section.parts if isinstance(part, Chart)]
    assert len(charts) > 25
    ids = [element.get("id") for chart in charts for element in svg_of(chart).iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    for chart in charts:
        assert chart.alt
        assert svg_of(chart).get("aria-label") == f"{chart.title}. {chart.alt}"
        assert len(chart.svg) < 40_000
        assert {"95% interval", "n", "unscored"} <= set(chart.table.columns)
        assert all(len(row) == len(chart.table.columns) for row in chart.table.rows)
        assert all(row[0] for row in chart.table.rows)


def test_the_same_runs_give_the_same_sections(all_runs, all_sections):
    assert [section(all_runs) for section in sections_with_charts().values()] == all_sections


def test_nothing_is_drawn_before_a_report_is_made():
    code = "import sys, interbench_tasks.offers as o; o.interbench_report_sections(); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "interbench_tasks.report.drawing"} & set(found.stdout.split())


def test_a_run_whose_manifest_is_damaged_harms_nobody(all_runs, all_sections):
    damaged = [replace(run, manifest={}, name=f"{run.name} damaged") for run in all_runs]
    for section, whole in zip(sections_with_charts().values(), all_sections, strict=True):
        both = section([*all_runs, *damaged])
        assert both is not None
        assert len(both.parts) == len(whole.parts)


def test_a_plugins_section_is_made_as_contributing_shows(pm, all_runs):
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n# interbench_calls.py\n(.*?)```", text, re.DOTALL)[1]
    plugin = types.ModuleType("interbench_calls")
    exec(code, plugin.__dict__)
    pm.register(plugin, name="calls")
    section = offers_from(pm).report_sections["calls"](all_runs)
    (table,) = section.parts
    calls = sum(used["calls"] for row in all_runs[0].summaries for used in row["usage"].values())
    assert table.rows[0] == ("m", str(calls))
    assert calls > 24
    assert offers_from(pm).report_sections["calls"]([]) is None


# --- feedback loops ---------------------------------------------------------------------------------------------------


def test_arms_and_controls_are_charted_with_their_own_numbers():
    run = feedback_run(arms=ALL_ARMS, flips=4)
    charts = charts_of(interfeedback_section([run]))
    arms = charts["Corrected after feedback, by arm and control"]
    for arm in ALL_ARMS:
        estimate = run.metrics[f"correction_rate.{arm}"]
        value, _, n, unscored = cell(arms, "m", arm)
        assert (value, n, unscored) == (shown(estimate), str(estimate.n), "0")
    assert cell(arms, "m", "ruling out options")[0] == "33.3"
    flips = charts["Right answers given up after one round"]
    assert cell(flips, "m", "detail")[0] == shown(run.metrics["flip_rate.detail"])
    effects = charts["How the arms differ on the same questions"]
    assert effects.table.columns[2] == "difference of correction rates (percentage points)"
    net = run.metrics["net_content_effect"]
    assert cell(effects, "m", "detail minus mismatched")[0] == f"{net.value * 100:+.1f}"
    assert [row[1] for row in effects.table.rows].count("detail minus mismatched") == 1


def test_one_round_has_no_chart_by_round_and_three_have_one():
    assert not [title for title in charts_of(interfeedback_section([feedback_run()])) if "round," in title]
    run = feedback_run(rounds=3, n=60)
    charts = charts_of(interfeedback_section([run]))
    rounds = charts["Corrected in each round"]
    rates = [float(cell(rounds, "m", "detail", f"round {number}")[0]) for number in (1, 2, 3)]
    assert sum(rates) == pytest.approx(run.metrics["correction_rate.detail"].value * 100, abs=0.2)
    assert [row[1:3] for row in rounds.table.rows[:3]] == [("detail", f"round {number}") for number in (1, 2, 3)]
    assert "detail: corrected in each round, by category" in charts


def test_the_intro_speaks_of_placebos_and_rounds_only_where_there_are_some():
    plain = interfeedback_section([feedback_run()]).intro
    assert "placebo" not in plain
    assert "rounds" not in plain
    assert "placebo" in interfeedback_section([feedback_run(arms=("detail", "reask"))]).intro
    assert "add up" in interfeedback_section([feedback_run(rounds=2)]).intro


def test_rounds_are_found_under_both_spellings_of_their_names():
    run = feedback_run(rounds=2)
    renamed = {
        name.replace(".round", ".round_") if name.startswith("correction") else name: estimate
        for name, estimate in run.metrics.items()
    }
    one, other = (
        charts_of(interfeedback_section([each]))["Corrected in each round"]
        for each in (run, replace(run, metrics=renamed))
    )
    assert one == other


def test_what_was_corrected_so_far_and_the_round_of_each_solution_are_shown():
    run = feedback_run(rounds=2)
    section = interfeedback_section([run])
    (table,) = (part for part in section.parts if isinstance(part, ReportTable))
    assert table.columns == ("run", "arm", "round 1", "round 2", "never")
    told = [run.metrics[f"n_solved.simple.{end}"] for end in ("round1", "round2", "never")]
    assert table.rows[1] == ("m", "simple", *(str(int(estimate.value)) for estimate in told))
    assert sum(map(int, table.rows[1][2:])) == run.metrics["n_test"].value
    so_far = charts_of(section)["Corrected by the end of each round"]
    assert cell(so_far, "m", "detail", "round 2")[0] == shown(run.metrics["correction_rate.detail"])
    assert not [part for part in interfeedback_section([feedback_run()]).parts if isinstance(part, ReportTable)]


def test_categories_have_their_own_numbers_and_one_category_has_no_chart():
    run = feedback_run(categories=("count", "route"))
    chart = charts_of(interfeedback_section([run]))["Corrected, by category and arm"]
    estimate = run.categories["route"]["correction_rate.simple"]
    assert cell(chart, "m", "route", "simple")[:1] == (shown(estimate),)
    titles = charts_of(interfeedback_section([feedback_run(categories=("count",))]))
    assert not [title for title in titles if "category" in title]


def test_an_undefined_rate_is_absent_from_table_and_drawing_and_is_no_0():
    run = feedback_run(n=8)
    without = {name: e for name, e in run.metrics.items() if name != "correction_rate.simple"}
    chart = charts_of(interfeedback_section([replace(run, metrics=without)]))[
        "Corrected after feedback, by arm and control"
    ]
    assert [row[1] for row in chart.table.rows] == ["detail", "ruling out options"] or [
        row[1] for row in chart.table.rows
    ] == ["detail"]
    assert "simple" not in texts_of(chart)


def test_several_providers_stand_side_by_side():
    run = feedback_run(providers=("p", "q"))
    chart = charts_of(interfeedback_section([run]))["Corrected after feedback, by arm and control"]
    for label in ("p", "q"):
        assert cell(chart, f"m · {label}", "detail")[0] == shown(run.metrics[f"correction_rate.detail@{label}"])


def test_runs_of_two_tasks_are_not_mixed():
    runs = [feedback_run("m", task="one"), feedback_run("k", task="two"), feedback_run("j", task="two", seed=1)]
    charts = charts_of(interfeedback_section(runs))
    first = charts["Corrected after feedback, by arm and control (one)"]
    second = charts["Corrected after feedback, by arm and control (two)"]
    assert {row[0] for row in first.table.rows} == {"m"}
    assert {row[0] for row in second.table.rows} == {"k", "j"}


def test_names_that_tell_the_task_are_shortened_where_the_title_tells_it():
    runs = [feedback_run("m (one)", task="one"), feedback_run("m (two)", task="two"), feedback_run("k", task="two")]
    charts = charts_of(interfeedback_section(runs))
    chart = charts["Corrected after feedback, by arm and control (two)"]
    assert {row[0] for row in chart.table.rows} == {"m", "k"}
    same = [feedback_run("m (one)", task="one"), feedback_run("m", task="one")]
    chart = charts_of(interfeedback_section(same))["Corrected after feedback, by arm and control"]
    assert {row[0] for row in chart.table.rows} == {"m (one)", "m"}


def test_a_few_runs_share_a_panel_and_many_have_a_line_each():
    few = charts_of(interfeedback_section([feedback_run(f"m{i}", seed=i) for i in range(3)]))
    texts = texts_of(few["Corrected after feedback, by arm and control"])
    assert texts.count("m1") == 1
    many = charts_of(interfeedback_section([feedback_run(f"m{i}", seed=i) for i in range(6)]))
    texts = texts_of(many["Corrected after feedback, by arm and control"])
    assert texts.count("detail") == 1
    assert texts.count("m5") == 1


def test_more_than_twelve_runs_are_limited_with_a_sentence_and_the_table_has_all():
    runs = [feedback_run(f"model {number}", n=8, seed=number) for number in range(MOST_RUNS + 2)]
    charts = charts_of(interfeedback_section(runs))
    chart = charts["Corrected after feedback, by arm and control (the first 12 of 14 runs)"]
    assert "the first 12 of 14 runs" in svg_of(chart).get("aria-label")
    assert {row[0] for row in chart.table.rows} == {run.name for run in runs}
    assert "model 11" in texts_of(chart)
    assert "model 12" not in texts_of(chart)


def test_a_run_with_an_odd_name_is_shown_as_text(tmp_path):
    name = "<script>alert(1)</script>\u202e模型" + "x" * 80
    for section in (
        interfeedback_section([feedback_run(name), feedback_run("m")]),
        mmpcbench_section([critique_run(name), critique_run("m")]),
        mmrc_section([conversation_run(tmp_path, "a"), replace(conversation_run(tmp_path, "b"), name=name)]),
    ):
        for chart in charts_of(section).values():
            assert "<script" not in chart.svg
            svg_of(chart)


# --- conversations ----------------------------------------------------------------------------------------------------


def test_abilities_have_a_radar_and_bars_with_and_without_notes(tmp_path):
    run = conversation_run(tmp_path)
    charts = charts_of(mmrc_section([run]))
    assert len(charts["Abilities"].table.rows) == 12
    bars = charts["Score by ability"]
    assert len(bars.table.rows) == 14
    for memory in ("none", "notes"):
        estimate = run.metrics[f"score.MR.{memory}"]
        value, _, n, _ = cell(bars, "m", memory, "MR")
        assert (value, n) == (shown(estimate, digits=2), str(estimate.n))
    assert {"none", "notes", "IE", "AR", "all"} <= set(texts_of(bars))
    gains = charts["What a memory adds, on the same questions"]
    assert (
        cell(gains, "m", "notes minus none", "all")[0] == f"{run.metrics['difference.overall.notes-none'].value:+.2f}"
    )


def test_where_a_memory_fails_comes_from_the_transcripts(tmp_path):
    charts = charts_of(mmrc_section([conversation_run(tmp_path)]))
    turns = charts["Score by number of turns"]
    assert [row[2] for row in turns.table.rows if row[1] == "none"] == ["4-5", "10-13"]
    assert cell(turns, "m", "none", "4-5")[2] == "18"
    assert {row[2] for row in charts["Score by turns since the evidence"].table.rows} == {"3-5", "6-11"}
    updates = charts["Information update: score by number of updates"]
    assert [row[2] for row in updates.table.rows if row[1] == "notes"] == ["1", "2", "3"]
    assert cell(updates, "m", "notes", "2")[2] == "2"
    assert {row[2] for row in charts["Score by pictures of the conversation"].table.rows} == {"0", "1-2"}


def test_bins_stand_in_their_order_also_where_the_first_run_lacks_some(tmp_path):
    dice = random.Random(0)
    short = conversation_run(tmp_path, "short", records=[talk(1, ("none", "notes"), dice)])
    both = charts_of(mmrc_section([short, conversation_run(tmp_path, "both")]))
    rows = both["Score by number of turns"].table.rows
    assert list(dict.fromkeys(row[2] for row in rows)) == ["4-5", "10-13"]


def test_a_run_may_be_called_like_a_place_or_a_flaw(tmp_path):
    talks = charts_of(mmrc_section([conversation_run(tmp_path, "cut"), conversation_run(tmp_path, "in_view")]))
    assert {row[0] for row in talks["Score by ability"].table.rows} == {"cut", "in_view"}
    flaws = charts_of(mmpcbench_section([critique_run("BC"), critique_run("EE.ambiguity")]))
    chart = flaws["Proactive critique quality (PCQ), by type and subcategory"]
    assert {row[0] for row in chart.table.rows} == {"BC", "EE.ambiguity"}


def test_where_the_evidence_stood_is_told_in_words(tmp_path):
    dice = random.Random(0)
    whole = talk(0, ("none",), dice)
    cut = [replace(turn, seen=Seen(first_turn=3, cut_turns=3, cut_pictures=0)) if turn.question else turn
           for turn in talk(1, ("none",), dice).turns]  # fmt: skip
    records = [whole, replace(talk(1, ("none",), dice), turns=tuple(cut))]
    charts = charts_of(mmrc_section([conversation_run(tmp_path, memories=("none",), records=records)]))
    chart = charts["Score by where the evidence stood when the question came"]
    assert [row[2] for row in chart.table.rows] == ["in view", "cut, no notes"]
    assert [row[5] for row in chart.table.rows] == ["6", "6"]


def test_one_bin_says_nothing_and_has_no_chart(tmp_path):
    dice = random.Random(0)
    run = conversation_run(tmp_path, records=[talk(1, ("none", "notes"), dice)])
    assert "Score by number of turns" not in charts_of(mmrc_section([run]))


def test_one_memory_puts_a_few_runs_into_one_panel(tmp_path):
    runs = [conversation_run(tmp_path, name, memories=("none",)) for name in ("first", "second")]
    charts = charts_of(mmrc_section(runs))
    assert texts_of(charts["Score by ability"]).count("IE") == 1
    assert "What a memory adds, on the same questions" not in charts


def test_a_transcript_that_cannot_be_read_is_told_and_the_metrics_are_shown(tmp_path):
    run = conversation_run(tmp_path)
    path = run.folder / "episodes.jsonl"
    path.write_text(path.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    section = mmrc_section([run])
    told = [part for part in section.parts if isinstance(part, str)]
    assert len(told) == 1
    assert "its transcripts cannot be read to their end" in told[0]
    charts = charts_of(section)
    assert "Score by ability" in charts
    assert cell(charts["Score by number of turns"], "m", "none", "10-13")[2] == "18"
    assert cell(charts["Score by number of turns"], "m", "none", "4-5")[2] == "12"


def test_without_judges_no_transcript_is_read(tmp_path):
    run = conversation_run(tmp_path)
    exact = {name: e for name, e in run.metrics.items() if not name.startswith(("score", "overall", "difference"))}
    section = mmrc_section([replace(run, metrics=exact, folder=NOWHERE)])
    assert list(charts_of(section)) == ["Counted without a judge"]


def test_trimmed_records_give_the_same_answers_as_whole_ones(tmp_path):
    run = conversation_run(tmp_path, judges=("a", "b"))
    for trimmed, whole in zip(trimmed_records(run.folder, judges=True), read_records(run.folder), strict=True):
        for one, other in zip(trimmed.questions, whole.questions, strict=True):
            assert (one.id, one.ability, one.format) == (other.id, other.ability, other.format)
            assert (one.evidence, one.extra) == (other.evidence, other.extra)
        assert [turn.verdict for turn in trimmed.turns] == [turn.verdict for turn in whole.turns]
        assert [turn.seen for turn in trimmed.turns] == [turn.seen for turn in whole.turns]
        assert [len(turn.verdicts) for turn in trimmed.turns] == [len(turn.verdicts) for turn in whole.turns]
    one, other = (
        analysed(rows_from(records, ["notes"]), draws=50)
        for records in (trimmed_records(run.folder), read_records(run.folder))
    )
    assert one == other
    for record in trimmed_records(run.folder):
        assert not any(turn.verdicts for turn in record.turns)
        assert not any(question.text or question.target for question in record.questions)


def test_what_has_an_odd_shape_is_complained_about_by_the_reader(tmp_path):
    run = conversation_run(tmp_path, n=1)
    path = run.folder / "episodes.jsonl"
    for odd in ('"turns":3', '"turns":[3]', '"questions":[1],"turns":[{"verdict":3,"verdicts":[4],"index":0}]'):
        path.write_text('{"doc_id":0,"repeat":0,' + odd + "}\n", encoding="utf-8")
        with pytest.raises(RunFolderError, match="episodes.jsonl, line 1"):
            list(trimmed_records(run.folder, judges=True))


# --- critiques --------------------------------------------------------------------------------------------------------


def test_pcq_is_a_heat_map_of_types_and_subcategories_with_values_in_the_cells():
    run = critique_run()
    chart = charts_of(mmpcbench_section([run]))["Proactive critique quality (PCQ), by type and subcategory"]
    assert [row[1] for row in chart.table.rows] == [
        "all types", "Expression Error", "Ambiguity", "Unclear Intent", "Text-Image Mismatch", "Beyond Capability",
    ]  # fmt: skip
    assert cell(chart, "m", "Ambiguity")[0] == shown(run.categories["EE.ambiguity"]["pcq"])
    assert cell(chart, "m", "Expression Error")[0] == shown(run.metrics["pcq.EE"])
    assert {shown(run.metrics["pcq"]), "n 24", "Ambiguity"} <= set(texts_of(chart))


def test_detection_diagnosis_and_strategy_stand_by_type():
    run = critique_run()
    charts = charts_of(mmpcbench_section([run]))
    detected = charts["Error detection (EDA), by type"]
    assert cell(detected, "m", "all types")[0] == shown(run.metrics["eda"])
    diagnosis = charts["Diagnosis of what was detected (DP), by type"]
    assert cell(diagnosis, "m", "Missing Premise")[0] == shown(run.metrics["dp.MP"], digits=2)
    strategies = charts["Strategies"]
    assert sum(float(row[2]) for row in strategies.table.rows) == pytest.approx(100, abs=0.3)


def test_without_reasoning_there_is_no_chart_of_it():
    charts = charts_of(mmpcbench_section([critique_run()]))
    assert "Detected in the reasoning, and in the final answer" not in charts
    run = critique_run()
    rate = run.metrics["eda"]
    more = {**run.metrics, "eda_r": rate, "eda_f": rate, "ddr": rate}
    chart = charts_of(mmpcbench_section([replace(run, metrics=more)]))[
        "Detected in the reasoning, and in the final answer"
    ]
    assert len(chart.table.rows) == 3


def test_nothing_detected_leaves_diagnosis_and_strategies_out():
    charts = charts_of(mmpcbench_section([critique_run(votes={"EE.ambiguity": [[NO] * 3] * 4, "BC": [[NO] * 3] * 4})]))
    assert "Diagnosis of what was detected (DP), by type" not in charts
    assert "Strategies" not in charts
    assert cell(charts["Error detection (EDA), by type"], "m", "all types")[0] == "0.0"


# --- judges -----------------------------------------------------------------------------------------------------------


def test_agreement_of_a_run_is_what_compare_says_of_it():
    dice = random.Random(3)
    votes = [[any_vote(dice) for _ in range(3)] for _ in range(30)]
    run = critique_run(votes={"EE.ambiguity": votes})
    report = panel_report([scored_critiques("m", votes)])
    charts = charts_of(agreement_section([run]))
    chart = charts["Agreement beyond chance"]
    assert chart.table.columns[2:4] == ("coefficient", "agreement (1 at most)")
    for name, told in (("fleiss_kappa", "Fleiss' kappa"), ("krippendorffs_alpha", "Krippendorff's alpha")):
        expected = report.agreement["detected"][name]
        value, interval, n, _ = cell(chart, "m", "detected", told)
        assert value == f"{expected.value:z.2f}"
        assert interval == f"{expected.ci95.low:z.2f} to {expected.ci95.high:z.2f}"
        assert n == str(expected.n)
    pairs = charts["Pairs of judges, detected: Cohen's kappa"]
    assert [row[:2] for row in pairs.table.rows] == [("b", "a"), ("c", "a"), ("c", "b")]
    assert cell(pairs, "b", "a")[0] == f"{report.agreement['detected']['cohens_kappa.a.b'].value:z.2f}"
    strict = charts["How strict each judge is, detected"]
    assert cell(strict, "a")[0] == f"{report.strictness['detected']['a'].value * 100:+z.1f}"


def test_scores_of_conversations_are_compared_too(tmp_path):
    run = conversation_run(tmp_path, judges=("a", "b", "c"))
    charts = charts_of(agreement_section([run]))
    (scores, _) = fields_of_conversations(run)
    expected = agreement_of(
        labels_from(scores.rows, judges=scores.judges, categories=scores.categories, clusters=scores.clusters),
        ordinal=True,
    )
    ordinal = cell(charts["Agreement beyond chance"], "m", "score", "ordinal alpha")
    assert (ordinal[0], ordinal[2]) == (f"{expected['krippendorffs_alpha.ordinal'].value:.2f}", "72")
    assert "Pairs of judges, score: Cohen's quadratic kappa" in charts
    assert "How strict each judge is, score" in charts


def test_one_judge_is_no_panel(tmp_path):
    assert agreement_section([conversation_run(tmp_path, judges=("a",))]) is None
    alone = [[[YES], [NO]]]
    assert agreement_section([critique_run(votes={"BC": alone[0]}, judges=("a",))]) is None


def test_a_judge_that_failed_is_left_out_and_never_guessed():
    votes = [[YES, YES, None], [NO, NO, NO], [YES, NO, YES], [YES, YES, YES]]
    (detected, *_) = fields_of_critiques(critique_run(votes={"BC": votes}))
    assert detected.rows == [[1, 1, None], [0, 0, 0], [1, 0, 1], [1, 1, 1]]
    charts = charts_of(agreement_section([critique_run(votes={"BC": votes})]))
    assert cell(charts["Agreement beyond chance"], "m", "detected", "Fleiss' kappa")[2:4] == ("3", "1")


def test_diagnosis_counts_only_where_a_judge_detected_something():
    votes = [[Vote(True, 2.0, "refusal", 1.0), NO, Vote(True, 1.0, "refusal", 1.0)]]
    fields = {field.name: field for field in fields_of_critiques(critique_run(votes={"BC": votes}))}
    assert fields["diag"].rows == [[2, None, 1]]
    assert fields["diag"].inapplicable == [[False, True, False]]
    assert fields["detected"].span == (0.0, 1.0)
    assert fields["diag"].span == (0.0, 2.0)
    assert fields["strategy"].span is None


def test_what_does_not_apply_is_not_counted_as_unscored_on_the_page():
    low = Vote(True, 1.0, "refusal", 1.0)
    votes = [[YES, low, YES], [low] * 3, [YES] * 3, [NO] * 3, [NO, NO, low], [YES, low, None]]
    charts = charts_of(agreement_section([critique_run(votes={"BC": votes})]))
    assert cell(charts["Agreement beyond chance"], "m", "diagnosis", "Fleiss' kappa")[2:4] == ("3", "1")
    assert cell(charts["Agreement beyond chance"], "m", "diagnosis", "Krippendorff's alpha")[2:4] == ("4", "0")
    assert cell(charts["How strict each judge is, diagnosis"], "a")[2:4] == ("3", "1")
    assert cell(charts["Pairs of judges, diagnosis: Cohen's quadratic kappa"], "b", "a")[2:4] == ("4", "0")


def test_runs_with_the_same_judges_are_put_together_and_others_are_told_apart():
    first, second = critique_run("m"), critique_run("other")
    together = charts_of(agreement_section([first, second]))
    n = int(cell(together["Pairs of judges, detected: Cohen's kappa"], "b", "a")[2])
    assert n == 48
    renamed = [
        {**row, "votes": {"": dict(zip("xyz", row["votes"][""].values(), strict=True))}} for row in second.summaries
    ]
    apart = charts_of(agreement_section([first, replace(second, summaries=renamed)]))
    assert "Pairs of judges, detected: Cohen's kappa, m" in apart
    assert "Pairs of judges, detected: Cohen's kappa, other" in apart


def test_an_item_of_several_runs_is_one_cluster():
    both = joined([fields_of_critiques(critique_run(name))[0] for name in ("m", "k")])
    assert len(both.rows) == 48
    assert len(set(both.clusters)) == 24


def test_judges_that_always_agree_have_no_kappa_and_no_0():
    section = agreement_section([critique_run(votes={"BC": [[NO] * 3] * 5})])
    charts = charts_of(section)
    assert "Agreement beyond chance" not in charts
    assert cell(charts["Pairs of judges that say the same"], "m", "detected")[0] == "100.0"


def test_transcripts_that_cannot_be_read_are_told(tmp_path):
    run = conversation_run(tmp_path, judges=("a", "b"))
    section = agreement_section([replace(run, folder=tmp_path / "gone")])
    assert section is not None
    assert "cannot be read" in str(section.parts[0])


# --- little or nothing to show ----------------------------------------------------------------------------------------


def test_runs_without_any_number_have_no_section(all_runs):
    empty = [replace(run, metrics={}, categories={}, summaries=(), folder=NOWHERE) for run in all_runs]
    for name, section in interbench_report_sections().items():
        found = section(empty)
        assert found is None or (name == "judges" and "cannot be read" in str(found.parts)), name


def test_a_run_of_nothing_but_failures_has_no_rate_and_says_so_nowhere():
    failed = feedback_run(n=4)
    rates = {name: e for name, e in failed.metrics.items() if e.method == "count"}
    assert interfeedback_section([replace(failed, metrics=rates, categories={})]) is None


def test_unscored_episodes_are_told_beside_their_number_and_in_the_table_with_bounds():
    run = feedback_run()
    rate = run.metrics["correction_rate.detail"]
    lossy = replace(rate, unscored=3, bounds=Interval(0.1, 0.9))
    chart = charts_of(interfeedback_section([replace(run, metrics={**run.metrics, "correction_rate.detail": lossy})]))[
        "Corrected after feedback, by arm and control"
    ]
    assert f"n {rate.n} (u 3)" in texts_of(chart)
    assert chart.table.columns[-1] == "bounds"
    assert cell(chart, "m", "detail")[3:] == ("3", "10.0 to 90.0")
    assert cell(chart, "m", "simple")[3:] == ("0", "-")


def test_an_estimate_without_an_interval_has_a_mark_and_no_whisker():
    run = feedback_run(n=8)
    bare = {name: replace(e, ci95=None) for name, e in run.metrics.items()}
    chart = charts_of(interfeedback_section([replace(run, metrics=bare, categories={})]))[
        "Corrected after feedback, by arm and control"
    ]
    assert cell(chart, "m", "detail")[1] == "-"
    assert 'stroke-width="1.8"' not in chart.svg
    assert chart.svg.count("<use ") == len(chart.table.rows)


def test_a_plugins_arm_and_memory_are_shown_by_their_names(tmp_path):
    arms = charts_of(interfeedback_section([feedback_run(arms=("socratic", "my arm <b>"))]))
    assert {"socratic", "my arm <b>"} <= set(texts_of(arms["Corrected after feedback, by arm and control"]))
    talks = charts_of(mmrc_section([conversation_run(tmp_path, memories=("none", "scroll"))]))
    assert "scroll" in texts_of(talks["Score by ability"])


def test_memories_that_act_together_are_one_arm(tmp_path):
    run = conversation_run(tmp_path, memories=("none", "a+b"))
    options = {**run.manifest["protocol_options"], "memories": ["none", ["a", "b"]]}
    charts = charts_of(mmrc_section([replace(run, manifest={**run.manifest, "protocol_options": options})]))
    assert {row[1] for row in charts["Score by ability"].table.rows} == {"none", "a+b"}


def test_more_memories_than_looks_are_limited_with_a_sentence(tmp_path):
    memories = tuple(f"memory {number}" for number in range(8))
    charts = charts_of(mmrc_section([conversation_run(tmp_path, memories=memories)]))
    chart = charts["Score by ability (the first 6 of 8 memories)"]
    assert {row[1] for row in chart.table.rows} == set(memories)
    assert "memory 5" in texts_of(chart)
    assert "memory 6" not in texts_of(chart)


def test_a_chart_with_too_many_numbers_shows_fewer_runs_and_says_so(tmp_path):
    memories = tuple(f"memory {number}" for number in range(6))
    runs = [conversation_run(tmp_path, f"run {number}", memories=memories, n=2) for number in range(8)]
    charts = charts_of(mmrc_section(runs))
    (title,) = (title for title in charts if title.startswith("Score by ability"))
    assert title == "Score by ability (the first 5 of 8 runs)"
    assert len(charts[title].svg) < 40_000
    assert len(charts[title].table.rows) == 8 * 6 * 7


def test_hundreds_of_categories_are_limited_too():
    run = feedback_run()
    many = {f"category {number}": run.categories["count"] for number in range(150)}
    charts = charts_of(interfeedback_section([replace(run, categories=many)]))
    chart = charts["Corrected, by category and arm (the first 110 of 150 categories)"]
    assert len(chart.table.rows) == 300
    assert len(chart.svg) < 40_000
    assert "category 109" in texts_of(chart)
    assert "category 110" not in texts_of(chart)


def test_styles_and_other_metrics_of_critiques_have_charts():
    run = critique_run(more_styles=("formal",))
    rate = run.metrics["eda"]
    shift = replace(rate, value=-0.125, ci95=Interval(-0.5, 0.25))
    more = {"shift_eda.formal": shift, "far_v": rate, "meda": rate, "dqd": replace(shift, points=2.0), "eda_r": rate}
    charts = charts_of(mmpcbench_section([replace(run, metrics={**run.metrics, **more})]))
    assert cell(charts["The same inputs in another style"], "m", "EDA, formal")[0] == "-12.5"
    others = charts["Valid inputs, two flaws at once, and asking back"]
    assert [row[1] for row in others.table.rows] == ["valid input: false alarm", "two flaws: something detected"]
    lost = charts["Diagnosis: how much is lost from reasoning to answer"]
    assert cell(lost, "m", "reasoning minus answer (DQD)")[:2] == ("-0.12", "-0.50 to +0.25")
    assert "\N{MINUS SIGN}0.12" in texts_of(lost)


def test_a_type_with_one_subcategory_stands_once_in_the_heat_map():
    votes = {"BC": [[YES] * 3] * 3, "MP.mismatch": [[NO] * 3] * 3}
    chart = charts_of(mmpcbench_section([critique_run(votes=votes)]))[
        "Proactive critique quality (PCQ), by type and subcategory"
    ]
    assert [row[1] for row in chart.table.rows] == ["all types", "Text-Image Mismatch", "Beyond Capability"]
