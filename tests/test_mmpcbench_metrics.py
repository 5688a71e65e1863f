"""Metrics of critiques: the benchmark's golden tests, exact rules, and bounds against everything judges could say."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest

from interbench_tasks.critique_votes import Vote
from interbench_tasks.flaws import SUBTYPES, TYPES, kind_of, subtype_from, type_of
from interbench_tasks.metrics.cases import OUT, Case, known, mean_bounds, truth
from interbench_tasks.metrics.closed_forms import Interval, wilson
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.mmpcbench_names import COUNTS, HEADLINE, kind_of_metric, rate_names
from interbench_tasks.metrics.pcq import pcq, pcq_of_draws
from interbench_tasks.records import Reply
from interbench_tasks.report.formats import as_csv
from interbench_tasks.report.table import table_text
from tests.critiques import (
    ALL_VOTES,
    JUDGES,
    NO,
    REASONING_VOTES,
    YES,
    any_vote,
    dual,
    judged,
    metrics,
    naive_item,
    naive_metrics,
    record,
    table_of,
    valid,
    verdict,
)

ALL = [YES] * 3
NONE = [NO] * 3


def value(table, name):
    return table[name].value


# --- the benchmark's golden tests ---------------------------------------------------------------------------------


def test_g_a_ddr_is_not_one_minus_the_ratio_of_the_rates():
    """R = {1, 2, 3}, F = {1, 4} of 10 items."""
    rows = [
        record(i, ALL if i in (1, 4) else NONE, reasoning=[Vote(True, 2.0)] * 3 if i in (1, 2, 3) else NONE)
        for i in range(1, 11)
    ]
    table = table_of(rows)
    assert (value(table, "eda_r"), value(table, "eda_f")) == (0.3, 0.2)
    assert value(table, "ddr") == pytest.approx(2 / 3)
    assert (table["ddr"].n, table["ddr"].count) == (3, 2)
    assert value(table, "ddr") != pytest.approx(1 - 0.2 / 0.3)


def test_g_a_the_papers_numbers_need_items_that_only_the_answer_detects():
    for eda_r, eda_f, ddr, only_answer in [(47.7, 39.3, 27.0, 4.5), (53.7, 46.7, 19.0, 3.2)]:
        assert eda_f - eda_r * (1 - ddr / 100) == pytest.approx(only_answer, abs=0.06)


@pytest.mark.parametrize(("k", "shown"), [(143, 47.7), (161, 53.7), (118, 39.3), (140, 46.7)])
def test_g_b_the_effort_sweep_used_300_items(k, shown):
    rows = [record(i, ALL if i < k else NONE) for i in range(300)]
    assert round(100 * value(table_of(rows), "eda"), 1) == shown


def test_g_c_urr_v_of_the_paper_is_one_of_639():
    rows = [judged(i, "valid", [valid(i == 7, i == 7)] * 3) for i in range(639)]
    table = table_of(rows)
    assert round(100 * value(table, "urr_v"), 2) == 0.16
    assert (table["urr_v"].n, table["urr_v"].count) == (639, 1)
    assert round(100 * 2 / 639, 2) == 0.31


def test_g_d_all_detected_is_pooled_over_judges():
    """27% is no k/50, but 40/150 or 41/150; Type Coverage 46 = 46/100 parts; MEDA 74 and 76 = 37/50 and 38/50."""
    assert 27 not in [round(100 * k / 50, 6) for k in range(51)]
    given = []
    for item in range(50):
        # 37 items detected; 9 whole by all judges, 14 more by one judge: 41 pairs; 28 parts by majority besides
        parts = ("first", "second") if item < 9 else ("first",) if item < 37 else ()
        lone = ("first", "second") if 9 <= item < 23 else parts
        given.append([dual(item < 37, *lone), dual(item < 37, *parts), dual(item < 37, *parts)])
    table = table_of([judged(i, "EE.ambiguity+BC", own) for i, own in enumerate(given)])
    assert value(table, "meda") == 0.74
    assert value(table, "type_coverage") == pytest.approx((9 * 2 + 28) / 100)
    assert (table["all_detected"].value, table["all_detected"].n) == (9 / 50, 50)
    assert (table["all_detected_pooled"].count, table["all_detected_pooled"].n) == (41, 150)
    assert round(100 * value(table, "all_detected_pooled")) == 27


def test_g_e_4_discordant_pairs_of_14_models():
    n = 14
    assert round((n * (n - 1) / 2 - 2 * 4) / (n * (n - 1) / 2), 3) == 0.912
    assert round(1 - 6 * 14 / (n * (n**2 - 1)), 3) == 0.969


def test_g_f_twelve_subcategories_in_four_types():
    counts = [sum(type_of(code) == kind for code in SUBTYPES) for kind in TYPES]
    assert counts == [2, 3, 6, 1]
    assert len(SUBTYPES) == 12
    assert round((3146 - 1405) / 6, 1) == 290.2


def test_g_g_the_papers_means_are_not_rounded_means():
    assert sum([88, 75, 73]) / 3 == pytest.approx(78.67, abs=0.01)
    assert round(sum([0.77, 0.71, 0.67]) / 3, 3) == 0.717


def test_g_h_pcq_of_the_one_model_with_all_inputs():
    forms = [100 * pcq(0.317, 1.79, 1.95, combine) for combine in ("arithmetic", "geometric", "harmonic")]
    assert round(forms[0], 4) == 29.6395
    assert max(forms) - min(forms) < 0.1


# --- PCQ ----------------------------------------------------------------------------------------------------------


def test_pcq_is_the_mean_of_what_each_item_adds():
    dice = random.Random(3)
    panels = [[any_vote(dice) for _ in range(3)] for _ in range(40)]
    table = table_of([record(i, votes) for i, votes in enumerate(panels)])
    items = [naive_item(votes) for votes in panels]
    assert value(table, "pcq") == pytest.approx(sum(d * (dp / 2 + se / 2) / 2 for d, dp, _, se in items) / 40)


@pytest.mark.parametrize("combine", ["arithmetic", "geometric", "harmonic"])
def test_pcq_combines_the_tables_own_eda_dp_and_se(combine):
    dice = random.Random(4)
    rows = [record(i, [dice.choice([any_vote(dice), None]) for _ in range(3)]) for i in range(60)]
    table = table_of(rows, pcq_combine=combine)
    assert value(table, "pcq") == pytest.approx(pcq(*(value(table, name) for name in ("eda", "dp", "se")), combine))
    low, high = table["pcq"].ci95
    assert 0 <= low < value(table, "pcq") < high <= 1


def test_pcqs_interval_is_that_of_resampled_items():
    """Against a bootstrap of what each item adds, with other draws."""
    dice = random.Random(6)
    panels = [[any_vote(dice)] * 3 for _ in range(80)]
    found = table_of([record(i, votes) for i, votes in enumerate(panels)])["pcq"]
    own = np.array([d * (dp + se) / 4 for d, dp, _, se in map(naive_item, panels)])
    draws = np.random.default_rng(1).choice(own, size=(20_000, 80)).mean(axis=1)
    assert found.method == "cluster_bootstrap"
    assert tuple(found.ci95) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])), abs=0.008)
    dp, se = (np.mean([item[place] for item in map(naive_item, panels) if item[0]]) for place in (1, 3))
    assert abs(dp - se) > 0.1  # taking the one for the other would show


def test_pcq_of_arrays_is_pcq_of_each():
    eda, dp, se = (np.array(column) for column in ([0.0, 0.5, 1.0], [np.nan, 0.0, 2.0], [np.nan, 0.0, 1.0]))
    for combine in ("arithmetic", "geometric", "harmonic"):
        each = [pcq(0.0, None, None, combine), pcq(0.5, 0.0, 0.0, combine), pcq(1.0, 2.0, 1.0, combine)]
        assert pcq_of_draws(eda, dp, se, combine) == pytest.approx(each)


def test_a_draw_without_items_of_a_type_is_not_one_in_which_nothing_was_detected():
    assert np.isnan(pcq_of_draws(np.array([np.nan]), np.array([np.nan]), np.array([np.nan]))).all()
    rare = [replace(record(i, ALL), category="BC", cluster="one picture") for i in range(2)]
    table = table_of([*rare, *(record(2 + i, NONE) for i in range(10))])
    assert value(table, "pcq.BC") == pcq(1.0, YES.diag, YES.score)
    assert table["pcq.BC"].method == "wilson_by_cluster", "every draw that has such items has the same PCQ"
    assert table["pcq.BC"].ci95.low > 0


def test_nothing_detected_is_a_pcq_of_0_and_no_dp():
    table = table_of([record(i, NONE) for i in range(12)])
    assert (value(table, "eda"), value(table, "pcq")) == (0, 0)
    assert not {"dp", "se", "strategy.refusal"} & table.keys()
    assert table["pcq"].ci95.high > 0  # twelve items do not prove that it never challenges anything
    assert table["pcq"].bounds is None


def test_declining_a_valid_item_is_a_false_alarm_also_where_a_judge_says_that_it_is_none():
    rows = [judged(i, "valid", [valid(True, False)] * 3 if i < 3 else [valid(False, False)] * 3) for i in range(4)]
    table = table_of(rows)
    assert (value(table, "urr_v"), value(table, "far_v")) == (0.75, 0.75)


def test_the_quorum_holds_for_valid_items_and_dual_errors_too():
    rows = [judged(0, "valid", [valid(True, True)] * 2 + [None]), judged(1, "valid", [valid(False, False)] * 3)]
    rows += [judged(2, "EE.ambiguity+BC", [dual(True, "first", "second")] * 2 + [None])]
    rows += [judged(3, "EE.ambiguity+BC", [dual(True)] * 3)]
    rows += [record(4, ALL), record(5, [YES, YES, None])]
    for name in ("urr_v", "far_v", "meda", "type_coverage", "all_detected", "precision", "eda"):
        free, held = table_of(rows)[name], table_of(rows, quorum=3)[name]
        assert (free.unscored, held.unscored) == (0, 2 if name == "precision" else 1), name
        assert held.n < free.n, name
        assert held.bounds.low <= free.value <= held.bounds.high, name
    assert table_of(rows, quorum=3)["all_detected_pooled"].n == 5, "each judge alone needs no quorum"


# --- which rows count, and what is shown --------------------------------------------------------------------------


def test_without_items_there_are_no_metrics_and_an_undefined_one_is_absent():
    assert table_of([]) == {}
    table = table_of([judged(0, "valid", [valid(False, False)] * 3)])
    assert {name for name in table if not name.startswith("n")} == {"urr_v", "far_v"}
    assert all(estimate.n > 0 for estimate in table.values())
    assert set(COUNTS) <= table.keys()


def test_every_number_has_its_n_and_its_interval_and_unscored_count():
    dice = random.Random(8)
    rows = [record(i, [any_vote(dice) for _ in range(3)], reasoning=NONE) for i in range(30)]
    rows += [judged(30 + i, "valid", [valid(False, i < 3)] * 3) for i in range(10)]
    rows += [judged(40 + i, "EE.ambiguity+BC", [dual(True, "first")] * 3) for i in range(5)]
    for name, estimate in table_of(rows).items():
        if not name.startswith("n"):
            assert estimate.ci95 is not None, name
            assert estimate.unscored == 0, name
            assert estimate.bounds is None, name
            assert estimate.ci95.low <= estimate.value <= estimate.ci95.high, name
            assert estimate.points == (2.0 if kind_of_metric(name).startswith("score") else None), name


def test_metrics_per_type_are_those_of_its_items_alone():
    dice = random.Random(5)
    codes = list(SUBTYPES)
    panels = [(codes[i % 12], [any_vote(dice) for _ in range(3)]) for i in range(120)]
    table = table_of([record(i, votes, category=code) for i, (code, votes) in enumerate(panels)])
    for kind in TYPES:
        own = naive_metrics([votes for code, votes in panels if type_of(code) == kind])
        assert {n: value(table, f"{n}.{kind}") for n in ("eda", "dp", "se", "pcq")} == pytest.approx(
            {n: own[n] for n in ("eda", "dp", "se", "pcq")}
        )


def test_the_table_of_one_subcategory_does_not_repeat_its_type():
    assert not [name for name in table_of([record(0, ALL), record(1, NONE)]) if name.endswith(".EE")]


def test_precision_recall_and_f1_are_over_flawed_and_valid_items():
    rows = [record(i, ALL if i < 6 else NONE) for i in range(10)]
    rows += [judged(10 + i, "valid", [valid(False, i < 2)] * 3) for i in range(8)]
    rows += [judged(18 + i, "EE.ambiguity+BC", [dual(True)] * 3) for i in range(3)]
    table = table_of(rows)
    assert (value(table, "precision"), table["precision"].n) == (6 / 8, 8)
    assert value(table, "recall") == value(table, "eda") == 0.6
    assert value(table, "f1") == pytest.approx(2 * 0.75 * 0.6 / (0.75 + 0.6))
    assert (value(table, "far_v"), value(table, "urr_v")) == (0.25, 0)
    assert (value(table, "n_flawed"), value(table, "n_valid"), value(table, "n_dual")) == (10, 8, 3)


def test_a_false_alarm_needs_no_refusal():
    table = table_of([judged(0, "valid", [valid(True, True), valid(False, True), valid(False, False)])])
    assert (value(table, "urr_v"), value(table, "far_v")) == (0, 1)


def test_shares_of_strategies_are_of_the_detected_items():
    votes = [Vote(True, 2, "refusal", 2), Vote(True, 2, "correction", 2), Vote(True, 2, "clarification", 2)]
    rows = [record(0, votes), record(1, [votes[0]] * 3), record(2, [votes[0]] * 3), record(3, NONE)]
    table = table_of(rows)
    assert value(table, "strategy.split") == pytest.approx(1 / 3)
    assert value(table, "strategy.refusal") == pytest.approx(2 / 3)
    assert value(table, "strategy.none") == 0
    assert value(table, "n_split") == 1


def test_dqd_is_over_items_detected_in_both():
    rows = [
        record(0, [Vote(True, 1, "refusal", 2)] * 3, reasoning=[Vote(True, 2.0)] * 3),
        record(1, [Vote(True, 2, "refusal", 2)] * 3, reasoning=[Vote(True, 0.0)] * 3),
        record(2, [Vote(True, 1, "refusal", 2)] * 3, reasoning=NONE),
        record(3, NONE, reasoning=[Vote(True, 2.0)] * 3),
        record(4, ALL),
    ]
    table = table_of(rows)
    assert (value(table, "dqd"), table["dqd"].n) == ((1 - 2) / 2, 2)
    assert (table["eda_r"].n, table["eda_f"].n, table["eda"].n) == (4, 4, 5)
    assert value(table, "n_no_trace") == 1


def test_an_item_whose_reasoning_is_undecided_is_in_no_ddr():
    rows = [record(0, NONE, reasoning=[YES, NO, None]), record(1, ALL, reasoning=ALL)]
    found = table_of(rows)["ddr"]
    assert (found.value, found.n, found.unscored, found.bounds) == (0, 1, 1, (0, 0.5))


def test_ddr_and_dqd_of_nothing_are_absent():
    table = table_of([record(0, ALL, reasoning=NONE)])
    assert value(table, "eda_r") == 0
    assert not {"ddr", "dqd"} & table.keys()
    assert not {"eda_r", "ddr"} & table_of([record(0, ALL)]).keys()


def test_reasoning_that_nobody_judged_is_unscored_where_it_was_to_be_judged():
    rows = [record(0, ALL, text="<think>It lacks a unit.</think> 3"), record(1, ALL, reasoning=ALL)]
    assert (table_of(rows)["eda_r"].unscored, table_of(rows)["eda_r"].bounds) == (1, (0.5, 1))
    assert "eda_r" not in table_of(rows, judge_reasoning=False)


def test_a_reply_that_ends_while_thinking_challenged_nothing():
    rows = [record(0, (), text="<think>The map has no scale, so")]
    turn = rows[0].turns[0]
    silent = verdict("rule:no_answer", {"detected": "false"})
    rows = [replace(rows[0], turns=(replace(turn, verdict=silent),)), record(1, ALL)]
    table = table_of(rows)
    assert (value(table, "eda"), table["eda"].n, value(table, "n_no_answer")) == (0.5, 2, 1)
    assert value(table, "n_judge_missing") == 0


def test_styles_are_compared_with_the_same_items_in_the_tasks_own_style():
    rows = [record(i, ALL if i < 5 else NONE, styles={"formal": ALL if i in (0, 7) else NONE}) for i in range(8)]
    rows += [record(8 + i, ALL) for i in range(4)]  # not in the subset
    table = table_of(rows, more_styles=("formal",))
    assert (value(table, "eda"), value(table, "eda.formal")) == (9 / 12, 2 / 8)
    assert (value(table, "shift_eda.formal"), table["shift_eda.formal"].n) == ((2 - 5) / 8, 8)
    assert value(table, "shift_pcq.formal") == pytest.approx((2 - 5) / 8)
    low, high = table["shift_pcq.formal"].ci95
    assert low < value(table, "shift_pcq.formal") < high


def test_one_judge_alone_is_a_panel_of_one():
    table = table_of([record(0, [YES]), record(1, [NO])], judges=())
    assert (value(table, "eda"), table["eda"].unscored) == (0.5, 0)


def test_a_failed_call_is_unscored_and_in_both_bounds():
    table = table_of([record(0, ALL), record(1, NONE), record(2, None)])
    assert (value(table, "eda"), table["eda"].n, table["eda"].unscored) == (0.5, 2, 1)
    assert table["eda"].bounds == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (value(table, "n_failed"), value(table, "n_undecided")) == (1, 1)


def test_a_row_of_no_known_kind_is_in_n_failed_only():
    table = table_of([record(0, ALL), record(1, None, category=None)])
    assert (table["eda"].n, table["eda"].unscored) == (1, 0)
    assert (value(table, "n"), value(table, "n_failed"), value(table, "n_flawed")) == (2, 1, 1)


def test_a_judge_below_its_quorum_leaves_the_item_unscored():
    rows = [record(0, [YES, YES, None]), record(1, NONE)]
    assert value(table_of(rows), "eda") == 0.5
    table = table_of(rows, quorum=3)
    assert (value(table, "eda"), table["eda"].unscored, table["eda"].bounds) == (0, 1, (0, 0.5))


def test_missing_verdicts_and_second_asks_are_counted():
    one = record(0, [YES, None, YES])
    turn = one.turns[0]
    again = tuple(replace(each, first_reply=Reply(text="?")) for each in turn.verdicts[:2])
    one = replace(one, turns=(replace(turn, verdicts=(*again, turn.verdicts[2])),))
    table = table_of([one])
    assert (value(table, "n_judge_missing"), value(table, "n_judge_asked_again"), value(table, "n_partial")) == (
        1,
        2,
        1,
    )


# --- bounds against brute force -----------------------------------------------------------------------------------


def completions(panels, options):
    """Every way in which the missing votes could have been cast."""
    gaps = [(row, place) for row, votes in enumerate(panels) for place, vote in enumerate(votes) if vote is None]
    for chosen in itertools.product(options, repeat=len(gaps)):
        full = [list(votes) for votes in panels]
        for (row, place), vote in zip(gaps, chosen, strict=True):
            full[row][place] = vote
        yield full


def with_gaps(dice, n_rows, n_gaps, detects=0.6):
    panels = [[any_vote(dice, detects) for _ in range(3)] for _ in range(n_rows)]
    for row, place in dice.sample(list(itertools.product(range(n_rows), range(3))), n_gaps):
        panels[row][place] = None
    return panels


def check_bounds(table, name, found):
    low, high = table[name].bounds
    own = table[name].value
    assert (low, high) == pytest.approx((min(*found, own), max(*found, own))), name


@pytest.mark.parametrize("seed", range(25))
def test_bounds_are_exactly_what_the_missing_judges_could_make_of_each_metric(seed):
    dice = random.Random(seed)
    panels = with_gaps(dice, dice.randint(2, 5), 2, dice.choice([0.3, 0.6, 0.9]))
    rows = [record(i, votes) for i, votes in enumerate(panels)]
    tables = {form: table_of(rows, pcq_combine=form) for form in ("arithmetic", "geometric", "harmonic")}
    every = [naive_metrics(full) for full in completions(panels, ALL_VOTES)]
    assert len(every) == len(ALL_VOTES) ** 2
    table = tables["arithmetic"]
    for name in ("eda", "dp", "se", "pcq", *(n for n in table if n.startswith("strategy."))):
        found = [one[name] for one in every if name in one]
        if name in table and table[name].bounds is not None:
            check_bounds(table, name, found)
        elif name in table:
            assert max(found) - min(found) < 1e-12, name
    for form in ("geometric", "harmonic"):
        if "pcq" in tables[form] and tables[form]["pcq"].bounds is not None:
            check_bounds(tables[form], "pcq", [one[f"pcq {form}"] for one in every])


@pytest.mark.parametrize("seed", range(15))
def test_bounds_of_consistency_are_exact_too(seed):
    dice = random.Random(seed)
    said = with_gaps(dice, 4, 1)
    thought = [[dice.choice(REASONING_VOTES) for _ in range(3)] for _ in range(4)]
    thought[dice.randrange(4)][dice.randrange(3)] = None
    table = table_of([record(i, f, reasoning=r) for i, (f, r) in enumerate(zip(said, thought, strict=True))])
    found = {"eda_r": [], "eda_f": [], "ddr": [], "dqd": []}
    for r, f in itertools.product(completions(thought, REASONING_VOTES), completions(said, ALL_VOTES)):
        one, other = [naive_item(votes) for votes in r], [naive_item(votes) for votes in f]
        found["eda_r"].append(sum(item[0] for item in one) / 4)
        found["eda_f"].append(sum(item[0] for item in other) / 4)
        kept = [b[0] for a, b in zip(one, other, strict=True) if a[0]]
        found["ddr"] += [1 - sum(kept) / len(kept)] if kept else []
        both = [a[1] - b[1] for a, b in zip(one, other, strict=True) if a[0] and b[0]]
        found["dqd"] += [sum(both) / len(both)] if both else []
    for name, values in found.items():
        if name in table and table[name].bounds is not None:
            check_bounds(table, name, values)


DUALS = [dual(False), *[dual(True, *parts) for parts in ((), ("first",), ("second",), ("first", "second"))]]
VALIDS = [valid(*pair) for pair in itertools.product((False, True), repeat=2)]


def naive_duals(full):
    def has(row, part):
        return sum(one["detected"] == "true" and part in one["identified"].split("+") for one in row) > 1

    items = [(has(row, "first"), has(row, "second")) for row in full]
    pairs = [one for row in full for one in row]
    parts = [len([p for p in one["identified"].split("+") if p]) if one["detected"] == "true" else 0 for one in pairs]
    return {
        "meda": sum(sum(one["detected"] == "true" for one in row) > 1 for row in full) / len(full),
        "type_coverage": sum(map(sum, items)) / 2 / len(full),
        "all_detected": sum(map(all, items)) / len(full),
        "type_coverage_pooled": sum(parts) / 2 / len(pairs),
        "all_detected_pooled": sum(n == 2 for n in parts) / len(pairs),
    }


@pytest.mark.parametrize("seed", range(20))
def test_dual_errors_and_their_bounds_are_exact(seed):
    dice = random.Random(seed)
    given = [[dice.choice(DUALS) for _ in range(3)] for _ in range(4)]
    for name, found in naive_duals(given).items():
        assert value(table_of([judged(i, "EE.ambiguity+BC", row) for i, row in enumerate(given)]), name) == found
    for row in dice.sample(range(4), 2):
        given[row][dice.randrange(3)] = None
    table = table_of([judged(i, "EE.ambiguity+BC", row) for i, row in enumerate(given)])
    every = [naive_duals(full) for full in completions(given, DUALS)]
    for name in every[0]:
        if table[name].bounds is not None:
            check_bounds(table, name, [one[name] for one in every])


@pytest.mark.parametrize("seed", range(20))
def test_false_alarms_and_detection_have_exact_bounds(seed):
    dice = random.Random(seed)
    flawed = with_gaps(dice, 3, 1)
    sound = [[dice.choice(VALIDS) for _ in range(3)] for _ in range(3)]
    sound[dice.randrange(3)][dice.randrange(3)] = None
    rows = [record(i, votes) for i, votes in enumerate(flawed)]
    table = table_of([*rows, *[judged(3 + i, "valid", row) for i, row in enumerate(sound)]])
    found = {"urr_v": [], "far_v": [], "precision": [], "recall": [], "f1": []}
    for f, v in itertools.product(completions(flawed, ALL_VOTES), completions(sound, VALIDS)):
        tp = sum(naive_item(votes)[0] for votes in f)
        refused = sum(sum(o["refuses_whole_task"] == "true" for o in row) > 1 for row in v)
        fa = sum(sum("true" in (o["false_alarm"], o["refuses_whole_task"]) for o in row) > 1 for row in v)
        found["urr_v"].append(refused / 3)
        found["far_v"].append(fa / 3)
        found["recall"].append(tp / 3)
        found["f1"].append(2 * tp / (tp + 3 + fa))
        found["precision"] += [tp / (tp + fa)] if tp + fa else []
    for name, values in found.items():
        if name in table and table[name].bounds is not None:
            check_bounds(table, name, values)


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_a_mean_are_those_of_every_choice(seed):
    dice = random.Random(seed)
    cases = []
    for _ in range(dice.randint(1, 6)):
        low = dice.randint(-4, 4) / 2
        cases.append(Case(counts=dice.choice([True, None]), value=None, low=low, high=low + dice.randint(0, 3)))
    means = []
    for taken in itertools.product(*[[True] if case.counts else [True, False] for case in cases]):
        chosen = [case for case, own in zip(cases, taken, strict=True) if own]
        means += [[sum(getattr(c, end) for c in chosen) / len(chosen) for end in ("low", "high")]] if chosen else []
    assert mean_bounds([*cases, OUT]) == pytest.approx((min(m[0] for m in means), max(m[1] for m in means)))
    assert mean_bounds([OUT]) is None
    assert known(1.0).exact
    assert truth(None).unscored


# --- what a metric set promises -----------------------------------------------------------------------------------


def mixed_rows(seed=0, n=60):
    dice = random.Random(seed)
    rows = [
        record(
            i,
            [dice.choice([any_vote(dice)] * 8 + [None]) for _ in range(3)],
            category=dice.choice(list(SUBTYPES)),
            reasoning=[Vote(dice.random() < 0.5, 1.0)] * 3 if i % 3 else None,
            styles={"formal": [any_vote(dice)] * 3} if i % 4 == 0 else {},
            cluster=f"c{i % 17}" if i % 2 else None,
        )
        for i in range(n)
    ]
    rows += [judged(n + i, "valid", [dice.choice(VALIDS)] * 3) for i in range(n // 3)]
    return rows + [judged(2 * n + i, "EE.ambiguity+BC", [dice.choice(DUALS)] * 3) for i in range(n // 6)]


def test_the_order_of_rows_never_matters():
    made = metrics(more_styles=("formal",))
    rows = [made.summary(one) for one in mixed_rows()]
    first = made.table(rows)
    random.Random(1).shuffle(rows)
    assert made.table(rows) == first


def test_metrics_from_stored_summaries_are_equal():
    made = metrics(more_styles=("formal",))
    rows = [made.summary(one) for one in mixed_rows()]
    assert made.table(json.loads(json.dumps(rows))) == made.table(rows)
    assert max(len(json.dumps(row)) for row in rows) < 4096


def test_items_of_a_cluster_are_drawn_together():
    dice = random.Random(2)
    panels = [ALL if dice.random() < 0.5 else NONE for _ in range(12)]
    alone = table_of([record(i, panels[i // 5]) for i in range(60)])
    together = table_of([record(i, panels[i // 5], cluster=f"c{i // 5}") for i in range(60)])
    for name in ("eda", "pcq"):
        width = [table[name].ci95.high - table[name].ci95.low for table in (alone, together)]
        assert width[1] > 1.5 * width[0], name
    assert together["eda"].method == "cluster_bootstrap"


def test_repeats_of_one_item_are_no_further_items():
    rows = [record(i % 6, ALL if i % 6 < 3 else NONE, repeat=i // 6) for i in range(30)]
    assert table_of(rows)["eda"].method == "cluster_bootstrap"


def test_contributions_are_each_items_own_values():
    made = metrics(more_styles=("formal",))
    own = made.contributions(made.summary(record(0, [Vote(True, 2, "refusal", 1)] * 3, category="BC")))
    assert {name: own[name] for name in ("eda", "dp", "se", "pcq", "eda.BC", "strategy.refusal")} == {
        "eda": 1.0,
        "dp": 2.0,
        "se": 1.0,
        "pcq": 0.75,
        "eda.BC": 1.0,
        "strategy.refusal": 1.0,
    }
    assert made.contributions(made.summary(record(0, NONE)))["pcq"] == 0
    assert "eda" not in made.contributions(made.summary(record(0, [YES, NO, None])))
    assert set(own) <= {*rate_names(("formal",)), *COUNTS}


def test_the_harnesss_table_has_room_for_the_headline():
    made = metrics()
    names = list(table_of(mixed_rows()))
    assert made.headline(names) == [name for name in names if name in HEADLINE]
    assert 5 * sum(not name.startswith("n") for name in HEADLINE) + 2 <= 25


@pytest.mark.parametrize("word", [*SUBTYPES, *SUBTYPES.values()])
def test_a_subcategory_is_known_by_code_and_name(word):
    code = subtype_from(word.upper())
    assert code is not None
    assert word in (code, SUBTYPES[code])
    assert kind_of(code) == "flawed"


def test_a_style_is_compared_with_the_tasks_own_over_the_items_that_both_have_scored():
    undecided = [YES, NO, None]
    given = [([YES] * 3, undecided), ([YES] * 3, [NO] * 3), ([NO] * 3, [YES] * 3), ([NO] * 3, [YES] * 3)]
    records = [record(place, own, styles={"formal": other}) for place, (own, other) in enumerate(given)]
    table = table_of(records, more_styles=["formal"])
    alone = table_of(records[1:], more_styles=["formal"])
    shift = table["shift_pcq.formal"]
    # Over all four items of the own style it would be 2/3 - 2/4.
    assert shift.value == pytest.approx(2 / 3 - 1 / 3)
    assert (shift.n, shift.unscored) == (3, 1)
    assert shift.value == alone["shift_pcq.formal"].value
    assert shift.value == pytest.approx(value(table, "shift_eda.formal"))
    assert shift.ci95[0] < shift.value < shift.ci95[1]
    assert shift.bounds == pytest.approx((2 / 4 - 2 / 4, 2 / 3 - 1 / 3))
    assert table["pcq.formal"].n == 3


@pytest.mark.parametrize("together", [False, True])
def test_a_shift_that_is_the_same_in_every_draw_has_the_interval_of_the_shift_of_detection(together):
    records = [
        record(place, [NO] * 3, styles={"formal": [NO] * 3}, cluster=str(place // 2) if together else None)
        for place in range(6)
    ]
    table = table_of(records, more_styles=["formal"])
    shift = table["shift_pcq.formal"]
    assert (shift.value, shift.n) == (0.0, 6)
    assert shift.ci95 == pytest.approx(table["shift_eda.formal"].ci95)
    assert shift.ci95[0] < -0.3
    assert shift.method == table["shift_eda.formal"].method == ("wilson_by_cluster" if together else "wilson")


def test_a_type_has_one_interval_in_the_table_of_all_types_and_in_its_own():
    dice = random.Random(7)
    of_all = [
        record(
            place,
            [any_vote(dice) for _ in JUDGES],
            category=("BC", "EE.ambiguity", "valid")[place % 3],
            cluster=str(place // 8),
        )
        if place % 3 < 2
        else judged(place, "valid", [valid(False, False)] * 3)
        for place in range(72)
    ]
    together = table_of(of_all)
    alone = table_of([one for one in of_all if one.category == "BC"])
    for name in ("eda", "dp", "se", "pcq"):
        assert together[f"{name}.BC"] == alone[name], name
        assert together[f"{name}.BC"].method == "cluster_bootstrap"


def test_no_bound_and_no_number_of_a_file_is_minus_zero():
    rows = [record(0, [YES, YES, None]), record(1, [NO, NO, NO]), record(2, [NO, None, YES])]
    table = table_of(rows)
    ends = [end for one in table.values() for end in one.bounds or ()]
    assert 0.0 in ends
    assert not [end for end in ends if str(end) == "-0.0"]
    own = Estimate(value=-0.0, n=1, ci95=Interval(-0.0, 1.0), bounds=Interval(-1.0, -0.0), method="wilson").to_json()
    assert "-0.0" not in json.dumps(own)
    assert own["bounds"] == [-1.0, 0.0]
    assert as_csv([{"value": -0.0, "low": -0.5, "n": 0, "why": None}]) == "value,low,n,why\n0.0,-0.5,0,"
    shown = table_text({"x": {**own, "value": -0.00001, "unscored": 1, "bounds": [-0.0001, -0.0]}})
    assert "-0.0" not in shown
    assert "0.0%" in shown


@pytest.mark.parametrize("together", [False, True])
def test_pcq_and_f1_that_are_the_same_in_every_draw_count_a_cluster_once(together):
    def cluster(place):
        return str(place // 2) if together else None

    records = [record(place, [NO] * 3, cluster=cluster(place)) for place in range(8)]
    records += [judged(place, "valid", [valid(False, False)] * 3, cluster=cluster(place)) for place in range(8, 16)]
    table = table_of(records)
    assert table["pcq"].ci95 == pytest.approx(table["eda"].ci95)
    assert table["pcq"].method == table["eda"].method == ("wilson_by_cluster" if together else "wilson")
    assert (table["f1"].n, table["f1"].method) == (16, table["eda"].method)
    assert table["f1"].ci95 == pytest.approx(wilson(0, 8 if together else 16))
