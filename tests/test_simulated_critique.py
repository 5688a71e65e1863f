"""The simulation in critiques: planted rates come out, draws are independent, and theory's panel is the metrics'."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from scipy.stats import binom

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.critique_votes import Vote
from interbench_tasks.errors import BackendError
from tests.critique_runs import played
from tests.critiques import any_vote, metrics, record

ROWS = [
    {"id": f"i{n}", "subtype": "EE.ambiguity", "Q": f"Q{n}?", "gold": {"defect": "d", "fix": "f"}, "answer": "7"}
    for n in range(300)
]
VALID = [{"id": f"v{n}", "subtype": "valid", "Q": f"Q{n}?"} for n in range(200)]


def judges(**options):
    return {"judges": [{"backend": "simulated", "model": name, **options} for name in ("a", "b", "c")]}


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def near(share, planted, n):
    return abs(share - planted) < 4 * math.sqrt(planted * (1 - planted) / n)


def majority_of(rate):
    return float(binom.sf(1, 3, rate))


def test_planted_rates_come_out(tmp_path):
    receiver = SimulatedBackend("m", detect=0.7, think=0.4, alarm=0.2, accuracy=0.9)
    records, table = played(tmp_path, [*ROWS, *VALID], receiver, **judges(), clarify=True)
    assert near(table["eda"].value, 0.7, 300)
    assert near(table["eda_r"].value, 0.4, 300)
    assert near(table["ddr"].value, 0.3, table["ddr"].n)  # reasoning and answer are drawn apart
    assert near(table["far_v"].value, 0.2, 200)
    assert near(table["solved_after_clarification"].value, 0.9, table["solved_after_clarification"].n)
    assert {record.models["judge@a"] for record in records} == {"simulated:a"}


def test_judges_err_as_planted_and_independently_of_each_other(tmp_path):
    receiver = SimulatedBackend("m", detect=0.5)
    records, table = played(tmp_path, ROWS, receiver, **judges(sensitivity=0.8, specificity=0.7))
    truth = ["challenged" in record.turns[0].reply.text for record in records]
    for judge in range(3):
        said = [record.turns[0].verdicts[judge].fields["detected"] == "true" for record in records]
        hits = [s for s, t in zip(said, truth, strict=True) if t]
        calm = [not s for s, t in zip(said, truth, strict=True) if not t]
        assert near(sum(hits) / len(hits), 0.8, len(hits))
        assert near(sum(calm) / len(calm), 0.7, len(calm))
    share = sum(truth) / len(truth)
    assert near(table["eda"].value, share * majority_of(0.8) + (1 - share) * majority_of(0.3), 300)


def test_a_judge_that_cannot_be_read_is_asked_again_with_an_independent_draw(tmp_path):
    records, table = played(tmp_path, ROWS, SimulatedBackend("m", detect=0.5), **judges(garble=0.3))
    assert near(table["n_judge_asked_again"].value / 900, 0.3, 900)
    assert near(table["n_judge_missing"].value / 900, 0.09, 900)
    again = [v for record in records for v in record.turns[0].verdicts if v.first_reply is not None]
    assert {verdict.status for verdict in again} == {"scored", "unparsed"}


def test_the_order_and_speed_of_calls_do_not_matter(tmp_path):
    tables = []
    for place, latency in enumerate((0.0, 0.002)):
        folder = Path(tmp_path / str(place))
        folder.mkdir()
        receiver = SimulatedBackend("m", detect=0.5, latency_s=latency)
        tables.append(played(folder, ROWS[:40], receiver, **judges(sensitivity=0.8, garble=0.1))[1])
    assert tables[0] == tables[1]


def test_a_rate_of_a_critique_is_part_of_the_fingerprint_and_the_defaults_are_not():
    plain = SimulatedBackend("m").fingerprint
    assert "sensitivity" not in plain
    different = [SimulatedBackend("m", **{name: 0.5}).fingerprint for name in ("sensitivity", "specificity", "garble")]
    different += [SimulatedBackend("m", **{name: 0.4}).fingerprint for name in ("detect", "think", "alarm")]
    assert len({plain, *different}) == 7


@pytest.mark.parametrize("name", ["detect", "think", "alarm", "sensitivity", "specificity", "garble"])
def test_a_rate_must_be_one(name):
    with pytest.raises(BackendError, match=f"{name} = 1.5 must be a rate"):
        SimulatedBackend("m", **{name: 1.5})


# --- theory -------------------------------------------------------------------------------------------------------

SENSITIVITY = (0.95, 0.9, 0.8)
SPECIFICITY = (0.98, 0.9, 0.85)
PREVALENCE, MISSING = 0.4, 0.08


def panel(dice, challenged):
    """Each judge's vote on one reply, and the same with some missing."""
    votes = []
    for sensitivity, specificity in zip(SENSITIVITY, SPECIFICITY, strict=True):
        says = dice.random() < (sensitivity if challenged else 1 - specificity)
        votes.append(any_vote(dice, 1.0) if says else Vote(False))
    return votes, [None if dice.random() < MISSING else vote for vote in votes]


def chance_of_majority(rates):
    """That two or three of three judges say yes."""
    a, b, c = rates
    return a * b * (1 - c) + a * c * (1 - b) + b * c * (1 - a) + a * b * c


@pytest.mark.slow
def test_over_200_seeds_the_interval_and_the_bounds_of_eda_come_out_where_theory_says():
    """The panel's rate is prevalence x P(majority | challenged) + (1 - prevalence) x P(majority | not)."""
    yes, no = chance_of_majority(SENSITIVITY), chance_of_majority([1 - rate for rate in SPECIFICITY])
    expected = PREVALENCE * yes + (1 - PREVALENCE) * no
    made = metrics()
    covered, values, sound, unscored = 0, [], 0, []
    n = 150
    for seed in range(200):
        dice = random.Random(f"theory {seed}")
        both = [panel(dice, dice.random() < PREVALENCE) for _ in range(n)]
        full, gaps = (made.table([made.summary(record(i, own[k])) for i, own in enumerate(both)]) for k in (0, 1))
        values.append(full["eda"].value)
        covered += full["eda"].ci95.low <= expected <= full["eda"].ci95.high
        unscored.append(gaps["eda"].unscored / n)
        for name in ("eda", "dp", "se", "pcq"):  # what the missing judges would have said is always in the bounds
            low, high = gaps[name].bounds
            sound += low - 1e-9 <= full[name].value <= high + 1e-9
    assert 0.90 <= covered / 200 <= 0.99
    assert sound == 800
    mean = sum(values) / 200
    assert abs(mean - expected) < 4 * math.sqrt(expected * (1 - expected) / (200 * n))
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / 199)
    assert spread == pytest.approx(math.sqrt(expected * (1 - expected) / n), rel=0.2)
    # Undecided: one judge missing and the two others divided, or more missing and the known ones not enough.
    assert 0.01 < sum(unscored) / 200 < 0.10
