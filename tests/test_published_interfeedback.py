"""The published tables of InterFeedback, recomputed by our metrics from episodes that we plant to fit them.

The paper prints rates only. From each rate and its denominator follows the integer count; from the counts we plant one
summary an episode, and our table must print the paper's numbers again, at its one decimal. Cells that cannot be right
are listed by name with the reason. A listed cell that turns out to be reachable fails the test, as does an unlisted one
that is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

import pytest

from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.record_json import line_from_record, record_from_line
from interbench_tasks.records import Feedback, Reply, Usage
from interbench_tasks.report.layouts import shown_from
from tests.feedback_records import LoopOptions, loop, numbered
from tests.scored_runs import run_of

PUBLISHED = json.loads((Path(__file__).parent / "data" / "published_interfeedback.json").read_text())
DATASETS = ("mathverse", "mmmu_pro")
ROWS = [(dataset, receiver) for dataset in DATASETS for receiver in PUBLISHED[dataset]["rows"]]
CELLS = [(d, r, p) for d, r in ROWS for p, cell in PUBLISHED[d]["rows"][r].items() if isinstance(cell, dict)]
V1_CLAUDE = "claude-3.5-sonnet(v1)"

MISPRINTS = {
    ("mathverse", "InternVL2-8B", "gemini-1.5-flash", "simple"): "G2: 44.4 is no k/375; it is 167/376",
    ("mmmu_pro", "LLaVa-OneVision-7B", "claude-sonnet-4", "detail"): "G2: 42.2 is no k/539; 42.1 and 42.3 are",
    ("mmmu_pro", "LLaVa-1.5-7B", "gpt-4o", "detail"): "G2: 31.9 is no k/506; 31.8 and 32.0 are",
    ("mathverse", "LLaVa-OneVision-7B", V1_CLAUDE, "test"): "G3: #Test 2953 is above #Neg 2933",
}
"""Cells whose arithmetic is impossible."""

IMPLAUSIBLE = {
    ("mmmu_pro", "Fuyu-8B", "gemini-1.5-flash"): "G3: #Test 1140 equals #Neg, so no intersection was taken",
    ("mmmu_pro", "Qwen2.5-VL-7B", "gpt-4o"): "G5: the Claude cell of the same row once more",
    ("mmmu_pro", "Qwen2.5-VL-7B", "claude-sonnet-4"): "G5: #Test 839 of #Neg 865; every other Claude cell has 46-67%",
    ("mathverse", "Qwen2.5-VL-7B", "claude-sonnet-4"): "G5: #Test 1521 is 56% of #Neg; every other Claude cell 22-39%",
}
"""Cells whose arithmetic is possible, and reproduced, but whose #Test cannot be believed."""


@dataclass
class Options:
    arms: list[str] = field(default_factory=lambda: ["detail", "simple"])
    max_rounds: int = 1
    providers: tuple[str, ...] = ()
    flip_sample: int = 0
    leak_guard: str = "observe"


METRICS = FeedbackLoopMetrics(Options())


def printed(estimate) -> float:
    return round(100 * estimate.value, 1)


def count_from(rate: float, n: int) -> int | None:
    """The k whose k/n is printed as `rate`; None where there is none."""
    nearest = round(rate * n / 100)
    return next((k for k in (nearest, nearest - 1, nearest + 1) if 0 <= k <= n and round(100 * k / n, 1) == rate), None)


def round_entry(correct: bool):
    return {"answer": "B" if correct else "A", "method": "declared", "correct": correct, "status": "ok"}


def planted(n: int, negative: int, test: int, corrected: dict[str, int]):
    """Summaries of n episodes: `negative` wrong, `test` of them in the test set, of these `corrected` an arm."""
    base = {"repeat": 0, "category": None, "cluster": None, "arms": {}, "in_test": False}
    right, wrong = ({"answer": a, "method": "declared", "correct": c} for a, c in [("B", True), ("A", False)])
    rows = [{**base, "doc_id": i, "first": wrong if i < negative else right} for i in range(n)]
    for i in range(test):
        arms = {arm: {"rounds": [round_entry(i < k)], "end": "x"} for arm, k in corrected.items()}
        rows[i] |= {"in_test": True, "arms": arms}
    return rows


# --- Tables 1 and 2


@pytest.mark.parametrize(("dataset", "receiver"), ROWS)
def test_g1_accuracy_is_one_minus_negatives_over_n(dataset, receiver):
    n, row = PUBLISHED[dataset]["N"], PUBLISHED[dataset]["rows"][receiver]
    table = METRICS.table(planted(n, row["neg"], 0, {}))
    assert printed(table["accuracy"]) == row["acc"]
    assert table["n"].value == n
    assert table["n_negative"].value == row["neg"]


@pytest.mark.parametrize(("dataset", "receiver", "provider"), CELLS)
def test_g2_g3_every_cell_is_reproduced_but_the_listed_misprints(dataset, receiver, provider):
    row = PUBLISHED[dataset]["rows"][receiver]
    cell = row[provider]
    key = (dataset, receiver, provider)
    assert (cell["test"] > row["neg"]) == ((*key, "test") in MISPRINTS)
    if cell["test"] > row["neg"]:
        return  # a test set larger than the set it is taken from cannot be planted
    counts = {arm: count_from(cell[arm], cell["test"]) for arm in ("detail", "simple")}
    for arm, count in counts.items():
        assert (count is None) == ((*key, arm) in MISPRINTS), f"{arm} {cell[arm]} of {cell['test']}"
    nearest = {arm: round(cell[arm] * cell["test"] / 100) if k is None else k for arm, k in counts.items()}
    table = METRICS.table(planted(PUBLISHED[dataset]["N"], row["neg"], cell["test"], nearest))
    assert table["n_test"].value == table["correction_rate.detail"].n == cell["test"]
    assert printed(table["accuracy"]) == row["acc"]
    for arm, count in counts.items():
        assert (printed(table[f"correction_rate.{arm}"]) == cell[arm]) == (count is not None)
    gap = (nearest["detail"] - nearest["simple"]) / cell["test"]
    assert table["difference.detail-simple"].value == pytest.approx(gap)
    corrected = nearest["detail"] + PUBLISHED[dataset]["N"] - row["neg"]
    assert table["accuracy_after.detail"].count == corrected


def test_all_published_cells_are_tested():
    assert len(ROWS) == 24
    assert len(CELLS) == 24 * 3 + 20
    assert set(IMPLAUSIBLE) <= set(CELLS)
    assert {key[:3] for key in MISPRINTS} <= set(CELLS)


def test_the_denominator_is_the_test_set_not_all_negatives():
    # 36.2% of #Test 373 are 135 episodes; 36.2% of #Neg 2933 would be more than the test set holds.
    assert count_from(36.2, 373) == 135
    assert round(0.362 * 2933) > 373
    table = METRICS.table(planted(3940, 2933, 373, {"detail": 135, "simple": 67}))
    assert printed(table["correction_rate.detail"]) == 36.2
    assert printed(table["correction_rate_on_negatives.detail"]) == 4.6


@pytest.mark.parametrize(("dataset", "receiver", "provider"), CELLS)
def test_g3_a_test_set_is_smaller_than_the_negatives_it_is_taken_from(dataset, receiver, provider):
    row = PUBLISHED[dataset]["rows"][receiver]
    holds = row[provider]["test"] < row["neg"]
    fuyu = (dataset, receiver, provider) == ("mmmu_pro", "Fuyu-8B", "gemini-1.5-flash")
    assert holds == (not fuyu and (dataset, receiver, provider, "test") not in MISPRINTS)


def solved_by_provider(dataset, provider, without=()):
    """The range of |U_p| that all rows allow: max(#Test) <= |U_p| <= min(#Test + N - #Neg)."""
    rows = {r: row for r, row in PUBLISHED[dataset]["rows"].items() if provider in row and r not in without}
    low = max(row[provider]["test"] for row in rows.values())
    return low, min(row[provider]["test"] + PUBLISHED[dataset]["N"] - row["neg"] for row in rows.values())


@pytest.mark.parametrize(
    ("dataset", "provider", "without", "expected"),
    [
        ("mathverse", "gpt-4o", (), (763, 1132)),
        ("mathverse", "gemini-1.5-flash", (), (741, 1209)),
        ("mathverse", "claude-sonnet-4", (), (1521, 1662)),
        ("mmmu_pro", "gpt-4o", (), (839, 1069)),
        ("mmmu_pro", "gpt-4o", ("Qwen2.5-VL-7B",), (506, 1069)),
        ("mmmu_pro", "gemini-1.5-flash", ("Fuyu-8B",), (503, 1101)),
        ("mmmu_pro", "claude-sonnet-4", (), (839, 1226)),
        ("mmmu_pro", "claude-sonnet-4", ("Qwen2.5-VL-7B",), (768, 1226)),
    ],
)
def test_g4_one_provider_solves_as_many_items_for_every_receiver(dataset, provider, without, expected):
    low, high = solved_by_provider(dataset, provider, without)
    assert (low, high) == expected
    assert low <= high


@pytest.mark.parametrize(
    ("dataset", "provider", "expected", "culprit"),
    [
        ("mathverse", V1_CLAUDE, (2953, 1200), "LLaVa-OneVision-7B"),
        ("mmmu_pro", "gemini-1.5-flash", (1140, 1101), "Fuyu-8B"),
    ],
)
def test_g4_is_impossible_where_one_row_is_wrong(dataset, provider, expected, culprit):
    low, high = solved_by_provider(dataset, provider)
    assert (low, high) == expected
    assert low > high
    low, high = solved_by_provider(dataset, provider, without=(culprit,))
    assert low <= high


def test_g5_one_cell_is_a_copy_of_its_neighbour():
    row = PUBLISHED["mmmu_pro"]["rows"]["Qwen2.5-VL-7B"]
    assert row["gpt-4o"] == row["claude-sonnet-4"]
    copies = [
        (d, r)
        for d, r in ROWS
        for p in ("gemini-1.5-flash", "claude-sonnet-4")
        if PUBLISHED[d]["rows"][r]["gpt-4o"] == PUBLISHED[d]["rows"][r][p]
    ]
    assert copies == [("mmmu_pro", "Qwen2.5-VL-7B")]


@pytest.mark.parametrize(("dataset", "low", "high"), [("mathverse", 22, 39), ("mmmu_pro", 46, 67)])
def test_g5_only_the_listed_claude_test_sets_are_out_of_line(dataset, low, high):
    rows = PUBLISHED[dataset]["rows"]
    shares = {r: 100 * row["claude-sonnet-4"]["test"] / row["neg"] for r, row in rows.items()}
    beyond = {(dataset, r, "claude-sonnet-4") for r, share in shares.items() if not low <= round(share) <= high}
    assert beyond == {key for key in IMPLAUSIBLE if key[0] == dataset and key[2] == "claude-sonnet-4"}


# --- Tables 3 and 4: three rounds with a person's feedback, five categories

HUMAN = PUBLISHED["human"]
MODELS = list(HUMAN["round0"])
LEVELS = LoopOptions(arms=("hierarchical",), max_rounds=3, test_on="all_wrong", level_texts="provider")
ROUNDS = FeedbackLoopMetrics(LEVELS)

HUMAN_MISPRINTS = {
    ("Claude-3.5", 2, "math_text"): (0, "G6: 33.3 and 66.7 sum to 21 of 62, the printed average is 19 of 62"),
    ("Claude-3.5", 2, "coding_text"): (1, "G6: 33.3 closes the row and the category, 66.7 does not"),
    ("OpenAI-o1", 1, "math_text"): (1, "G6: 11.1 is 1/9, but there is one error: 100.0"),
}
"""(model, round, category) -> the right count, the reason."""


TIES = {("21.2", 21.3), ("28.7", 28.8)}
"""17/80 and 23/80 lie between two decimals; the paper goes up, our cells go where the float lies."""


def half_up(k: int, n: int) -> str:
    """As the paper prints shares: 17/80 = 21.25% is 21.3."""
    return str((Decimal(100 * k) / n).quantize(Decimal("0.1"), ROUND_HALF_UP))


def count_from_table3(model, category):
    size, rate = HUMAN["sizes"][category], HUMAN["round0"][model][category]
    (count,) = [k for k in range(size + 1) if half_up(k, size) == f"{rate:.1f}"]
    return count


def person(number: int) -> Feedback:
    reply = Reply(text="Look.", usage=Usage(), model="human:annotator-1")
    return Feedback(text=f"Level {number}", kind="hierarchical", author="human:annotator-1", reply=reply)


def planted_rounds(model):
    """All 120 episodes of a model: right at round 0, or corrected in the round that the table says."""
    records = []
    for category, size in HUMAN["sizes"].items():
        errors = size - count_from_table3(model, category)
        solved_in = []
        for number, rates in enumerate(HUMAN["rounds"][model], start=1):
            wanted = HUMAN_MISPRINTS.get((model, number, category))
            solved_in += [number] * (wanted[0] if wanted else count_from(rates[category], errors))
        assert len(solved_in) == errors, "level 3 tells the answer, so round 3 leaves no error"
        for index in range(size):
            number = solved_in[index] if index < errors else 0
            told = {"hierarchical": [person(n) for n in range(1, number + 1)]}
            arms = {"hierarchical": ["A"] * (number - 1) + ["B"]} if number else {}
            records.append(loop("A" if number else "B", None, arms, told=told, category=category))
    return numbered(records)


def run_of_model(model):
    """A run of a model, from the lines of its file."""
    records = [record_from_line(line_from_record(record)) for record in planted_rounds(model)]
    options = {"arms": ["hierarchical"], "max_rounds": 3, "providers": [], "test_on": "all_wrong"}
    models = {"receiver": {"name": model}, "provider": {"name": "human"}}
    summaries = [ROUNDS.summary(record) for record in records]
    return run_of(model, summaries, metric_set=ROUNDS, protocol_options=options, models=models)


@cache
def tables_of(model):
    run = run_of_model(model)
    return {**ROUNDS.by_category(run.summaries), "average": ROUNDS.table(run.summaries)}


@pytest.mark.parametrize("model", MODELS)
def test_table_3_is_accuracy_by_category_and_pooled(model):
    for category, rate in HUMAN["round0"][model].items():
        found = tables_of(model)[category]["accuracy"]
        assert half_up(found.count, found.n) == f"{rate:.1f}", category


@pytest.mark.parametrize("model", MODELS)
def test_table_4_is_corrections_by_round_over_the_errors_of_round_0(model):
    for number, rates in enumerate(HUMAN["rounds"][model], start=1):
        for category, rate in rates.items():
            found = tables_of(model)[category][f"correction_rate.hierarchical.round{number}"]
            same = half_up(found.count, found.n) == f"{rate:.1f}"
            assert same == ((model, number, category) not in HUMAN_MISPRINTS), (number, category, found)
    for table in tables_of(model).values():
        rounds = [table[f"correction_rate.hierarchical.round{number}"] for number in (1, 2, 3)]
        assert {own.n for own in rounds} == {table["n_negative"].value} == {table["n_test"].value}
        assert table["correction_rate.hierarchical.within3"].value == table["correction_rate.hierarchical"].value == 1.0
        assert table["accuracy_after.hierarchical"].value == 1.0
        solved = [table[f"n_solved.hierarchical.{end}"].value for end in ("round1", "round2", "round3", "never")]
        assert solved == [*(own.count for own in rounds), 0]


def test_the_layout_prints_both_tables_of_all_models():
    accuracy, rounds = shown_from([run_of_model(model) for model in MODELS], "human", intervals=False).grids
    names = ["Visual logic", "MMMU-Pro", "MathVerse", "MathText", "CodeText", "Average"]
    assert (list(accuracy.headers), list(rounds.headers)) == (["receiver", *names], ["receiver", "round", *names])
    assert [row[0] for row in accuracy.rows] == MODELS
    for model, row in zip(MODELS, accuracy.rows, strict=True):
        for cell, rate in zip(row[1:], HUMAN["round0"][model].values(), strict=True):
            assert cell == f"{rate:.1f}" or (cell, rate) in TIES, (model, row)
    wanted = [(model, n, rates) for model in MODELS for n, rates in enumerate(HUMAN["rounds"][model], start=1)]
    assert [(row[0], int(row[1])) for row in rounds.rows] == [(model, number) for model, number, _ in wanted]
    for row, (model, number, rates) in zip(rounds.rows, wanted, strict=True):
        right = [
            cell == f"{rate:.1f}"
            for cell, (category, rate) in zip(row[2:], rates.items(), strict=True)
            if (model, number, category) not in HUMAN_MISPRINTS
        ]
        assert all(right), row


def test_g6_three_cells_of_table_4_cannot_be():
    claude, o1 = (HUMAN["rounds"][model] for model in ("Claude-3.5", "OpenAI-o1"))
    errors = {c: HUMAN["sizes"][c] - count_from_table3("Claude-3.5", c) for c in HUMAN["sizes"]}
    printed_counts = {c: count_from(claude[1][c], errors[c]) for c in errors}
    assert (sum(printed_counts.values()), count_from(claude[1]["average"], 62)) == (21, 19)
    right = {c: HUMAN_MISPRINTS.get(("Claude-3.5", 2, c), (k, ""))[0] for c, k in printed_counts.items()}
    assert sum(right.values()) == 19
    assert (o1[0]["math_text"], HUMAN["sizes"]["math_text"] - count_from_table3("OpenAI-o1", "math_text")) == (11.1, 1)
    assert count_from(11.1, 1) is None
    assert {key[:2] for key in HUMAN_MISPRINTS} == {("Claude-3.5", 2), ("OpenAI-o1", 1)}


def test_g7_what_the_text_says_of_all_120_items():
    def share(model, number):
        return half_up(tables_of(model)["average"][f"correction_rate.hierarchical.round{number}"].count, 120)

    assert share("GPT-4o", 1) == "25.8"
    assert (share("GPT-4o", 2), share("GPT-4o", 3)) == ("15.8", "20.0")  # the text has 20% for round 2
    for model in ("OpenAI-o1", "Claude-3.5"):  # "67.5% after the first two rounds", the first answer being one of them
        table = tables_of(model)["average"]
        assert table["accuracy"].count + table["correction_rate.hierarchical.round1"].count == 81
