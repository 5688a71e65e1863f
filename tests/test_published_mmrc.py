"""The published numbers of MMRC, recomputed by our metrics from conversations that we plant to fit them.

The paper prints means at two decimals. A hundred conversations with whole scores have any such mean, so our table must
print the paper's scores again, and from them its Overall. Cells that cannot be right are listed by name; a listed one
that turns out to be right fails the test, as does an unlisted one that is wrong.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.judging import rubrics
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.metrics.mmrc_analyses import DAILY, PROFESSIONAL, TURN_BINS, analysed, error_shares, rows_from
from interbench_tasks.records import Verdict
from tests.conversation_records import Options, answer, conversation, question, talk

PUBLISHED = json.loads((Path(__file__).parent / "data" / "published_mmrc.json").read_text(encoding="utf-8"))
TABLE3, COLUMNS = PUBLISHED["table3"], PUBLISHED["table3_columns"]
TABLE4 = PUBLISHED["note_taking"]
N = 100
WITHIN = 0.015
"""How far a printed Overall may be from the mean of the six printed scores (M3)."""
MISPRINTS = {
    "LLaVA-OneVision-7B": "M3: 3.16 printed, the six scores give 3.17",
    "VILA1.5-8B": "M3: 3.22 printed, the six scores give 3.21",
    "Claude-3.5-sonnet": "M3: 3.86 printed, the six scores give 3.85",
    "DeepSeek-V3": "M3: 3.84 printed, the six scores give 3.85",
}
"""Rows whose Overall is not the rounded mean of their six scores."""
DELTA_MISPRINTS = {("QwenVL-2B", "IU"): "M5: +0.82 printed, the scores give +1.02"}
CLOSED = ("GPT-4o", "Claude-3.5-sonnet", "Gemini-1.5-Pro", "DeepSeek-V3")
OPEN = tuple(model for model in TABLE3 if model not in (*CLOSED, "Human"))
AVERAGE_MISPRINTS = {
    ("open", "RP"): "M4: 40.89 printed, the rows give 40.51",
    ("closed", "IM"): "M4: 3.99 printed, the rows give 3.98",
    ("closed", "IU*"): "M4: 4.01 printed, the rows give 4.015",
    ("closed", "MR*"): "M4: 4.04 printed, the rows give 4.0475",
}


def scores_with_mean(mean: float) -> list[int]:
    """N whole scores from 0 to 5 with this mean."""
    total = round(mean * N)
    return [total // N + (number < total % N) for number in range(N)]


def of_row(row) -> dict[str, float]:
    return dict(zip(COLUMNS, row, strict=True))


def planted(means, *arms) -> dict:
    """The table of N conversations. Args: means = for each arm, ability -> mean score."""
    metrics = ConversationMetrics(Options(memories=arms or ("none",)))
    columns = [{ability: scores_with_mean(mean) for ability, mean in of_arm.items()} for of_arm in means]
    records = [
        talk(
            n,
            {arm: {a: s[n] for a, s in column.items()} for arm, column in zip(arms or ("none",), columns, strict=True)},
        )
        for n in range(N)
    ]
    return metrics.table([metrics.summary(record) for record in records])


@pytest.mark.parametrize("model", TABLE3)
def test_a_row_of_table_3_comes_out_again(model):
    row = of_row(TABLE3[model])
    found = planted([{ability: row[ability] for ability in ABILITIES}])
    for ability in ABILITIES:
        assert found[f"score.{ability}.none"].value == pytest.approx(row[ability])
    overall = found["overall.none"].value
    assert abs(overall - row["Overall"]) < WITHIN
    assert (abs(overall - row["Overall"]) > 0.005 + 1e-9) == (model in MISPRINTS), overall


def test_m3_the_misprints_are_four_of_21_rows():
    assert len(TABLE3) == 21
    assert set(MISPRINTS) <= set(TABLE3)
    assert len(MISPRINTS) == 4


@pytest.mark.parametrize(("group", "models"), [("open", OPEN), ("closed", CLOSED)])
def test_m4_the_averages_of_table_3(group, models):
    printed = of_row(PUBLISHED[f"table3_avg_{group}"])
    for column in COLUMNS:
        mean = np.mean([of_row(TABLE3[model])[column] for model in models])
        digits = 3 if column in ("EP", "IMP") else 2
        off = abs(mean - printed[column])
        if (group, column) in AVERAGE_MISPRINTS:
            assert off > 0.0049, column
        else:
            assert off <= 0.5 * 10**-digits + 0.002, (column, mean)


@pytest.mark.parametrize("model", TABLE4)
def test_a_row_of_table_4_comes_out_again(model):
    abilities, row = PUBLISHED["note_taking_columns"], TABLE4[model]
    base, noted = (dict(zip(abilities, row[key], strict=True)) for key in ("base", "with_note"))
    found = planted([base, noted], "none", "note_taking")
    for ability, printed in zip(abilities, row["printed_delta"], strict=True):
        difference = found[f"difference.{ability}.note_taking-none"]
        assert found[f"score.{ability}.note_taking"].value == pytest.approx(noted[ability])
        assert difference.n == N
        right = difference.value == pytest.approx(printed, abs=1e-9)
        assert right == ((model, ability) not in DELTA_MISPRINTS), difference.value
    assert "difference.overall.note_taking-none" not in found  # Table 4 has four of the six


def test_m5_the_text_s_averages_follow_from_the_true_deltas_but_for_the_misprint():
    deltas = {
        ability: [row["with_note"][n] - row["base"][n] for row in TABLE4.values()]
        for n, ability in enumerate(PUBLISHED["note_taking_columns"])
    }
    means = {ability: float(np.mean(own)) for ability, own in deltas.items()}
    assert means == pytest.approx({"IE": 0.877, "IU": 0.873, "MR": 0.970, "AR": 0.522}, abs=0.0006)
    misprinted = np.mean([row["printed_delta"][1] for row in TABLE4.values()])
    assert misprinted == pytest.approx(0.84, abs=0.0005)  # the text's +0.84 follows from the misprint only


def test_m1_the_questions_are_fewer_than_six_a_conversation():
    total = sum(PUBLISHED["questions"].values())
    assert total == sum(PUBLISHED["formats"].values()) == 28_720
    assert total != 6 * PUBLISHED["conversations"] == 30_720
    assert total / PUBLISHED["conversations"] == pytest.approx(5.61, abs=0.005)


def test_m2_two_printed_percentages_are_cut_and_not_rounded():
    counts = PUBLISHED["questions"] | PUBLISHED["formats"]
    for name, printed in PUBLISHED["printed_percent_of_questions"].items():
        share = 100 * counts[name] / 28_720
        assert printed == int(share * 100) / 100
        assert (printed == round(share, 2)) == (name == "CR")


def test_m6_the_topics_add_up_to_almost_everything():
    daily, professional = PUBLISHED["topics_daily"], PUBLISHED["topics_professional"]
    assert sum(daily.values()) == pytest.approx(63.2)  # printed: 63.3
    assert sum(daily.values()) + sum(professional.values()) == pytest.approx(99.9)
    assert set(DAILY) == set(daily)
    assert set(PROFESSIONAL) == {topic.replace("_", " ") for topic in professional}
    assert sum(PUBLISHED["errors"]["refusal"].values()) == pytest.approx(99.8)
    for kind in ("memory", "update", "reasoning"):
        assert sum(PUBLISHED["errors"][kind].values()) == pytest.approx(100.0)


def test_m7_the_bins_of_figure_7_and_the_label_that_is_there_twice():
    assert [list(bin) for bin in TURN_BINS] == PUBLISHED["by_turns"]["bins"]
    assert PUBLISHED["by_turns"]["MR"][2] == PUBLISHED["by_turns"]["MR"][3] == 2.04
    for ability in ("IE", "IM"):
        values = PUBLISHED["by_turns"][ability]
        assert values == sorted(values, reverse=True)


def test_m8_the_mean_number_of_turns_is_no_golden_number():
    """15.2 turns cannot be checked against the bars of Fig 4, so nothing here rests on it."""
    assert TURN_BINS[0][0] <= 15.2 < TURN_BINS[-1][1]


def test_m9_table_4_s_qwenvl_is_table_3_s_qwen2vl():
    row, other = TABLE4["QwenVL-2B"], of_row(TABLE3["Qwen2VL-2B"])
    assert row["base"] == [other[ability] for ability in PUBLISHED["note_taking_columns"]]
    assert of_row(TABLE3["DeepSeek-V3"])["IM"] == 3.98  # a model without eyes; the paper does not say how


@pytest.mark.parametrize(("score", "objective", "r"), [("IE", "EP", 0.972), ("IM", "IMP", 0.981), ("AR", "RP", 0.983)])
def test_m10_judges_scores_go_with_the_objective_metrics(score, objective, r):
    rows = [of_row(row) for model, row in TABLE3.items() if model != "Human"]
    found = np.corrcoef([row[score] for row in rows], [row[objective] for row in rows])[0, 1]
    assert found == pytest.approx(r, abs=0.0006)


def test_m11_larger_models_do_not_always_refuse_worse():
    ar = {model: of_row(row)["AR"] for model, row in TABLE3.items()}
    worse = [("Qwen2VL-2B", "Qwen2VL-7B", "Qwen2VL-72B"), ("LLaVA-V1.5-7B", "LLaVA-V1.5-13B")]
    better = [("mplug-Ow3-1B", "mplug-Ow3-2B", "mplug-Ow3-7B"), ("VILA1.5-3B", "VILA1.5-8B")]
    assert all(ar[family[0]] == max(ar[model] for model in family) for family in worse)
    assert all(ar[family[0]] == min(ar[model] for model in family) for family in better)


# --- figures ------------------------------------------------------------------------------------------------------


def analysis(name, groups):
    """An analysis of N conversations a group. Args: groups = (mean score, what its conversations are like)."""
    records = []
    for mean, changes in groups:
        asked = question("q", "MR", **changes.get("question", {}))
        like = {key: value for key, value in changes.items() if key != "question"}
        for score in scores_with_mean(mean):
            records.append(conversation(len(records), [asked], [answer("none", asked, score=score)], **like))
    found = analysed(rows_from(records, ("none",)), (name,), draws=200)[name]
    return [estimate.value for estimate in found.values()]


@pytest.mark.parametrize("ability", ["IE", "IM", "MR"])
def test_figure_7_comes_out_again(ability):
    values = PUBLISHED["by_turns"][ability]
    groups = [(value, {"n_turns": low}) for value, (low, _) in zip(values, TURN_BINS, strict=True)]
    assert analysis("turns", groups) == pytest.approx(values)


@pytest.mark.parametrize("whisker", ["high", "low"])
def test_figure_9_comes_out_again(whisker):
    values = PUBLISHED["by_updates"][whisker]
    groups = [(value, {"question": {"extra": {"updates": str(n)}}}) for n, value in enumerate(values)]
    assert analysis("updates", groups) == pytest.approx(values)


def test_the_domain_bias_comes_out_again():
    assert analysis("domain", [(2.61, {"category": "Film"}), (3.23, {"category": "Biology"})]) == [2.61, 3.23]


KINDS = {"memory": "MR", "update": "IU", "reasoning": "CR", "refusal": "AR"}


@pytest.mark.parametrize("kind", KINDS)
def test_figures_10_to_13_come_out_again_with_the_labels_of_our_rubrics(kind):
    printed = PUBLISHED["errors"][kind]
    rubric = rubrics("mmrc_errors")[KINDS[kind]]
    assert {label for labels in printed for label in labels.split("+")} == set(rubric.labels)
    assert rubric.several == any("+" in labels for labels in printed)
    verdicts = [
        Verdict(judge="panel", status="scored", score=None, label=label)
        for label, percent in printed.items()
        for _ in range(round(percent * 10))
    ]
    total = sum(printed.values())
    assert error_shares(verdicts) == pytest.approx({label: percent / total for label, percent in printed.items()})
