"""`interbench compare` of conversation runs: judges' scores are paired by conversation and shown in points."""

from __future__ import annotations

import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.report.comparison import as_json, flat_pairs, foot_lines, grids_from
from interbench_tasks.report.formats import as_text
from interbench_tasks.runs.compare import compared
from tests.conversation_records import talk
from tests.test_mmrc_layout import run

MEMORIES = ("none",)


def scored(name, scores, **changes):
    """A run in which conversation n gets `scores[n]` in every ability; None: its judge failed."""
    records = [talk(n, {"none": dict.fromkeys(ABILITIES, score)}, **changes) for n, score in enumerate(scores)]
    return run(name, MEMORIES, records=records)


def test_scores_are_compared_in_points():
    comparison = compared([scored("a", [5, 4, 3, 5, 0, 2]), scored("b", [4, 4, 1, 5, 1, None])], ["score.IE.none"])
    (pair,) = comparison.pairs
    assert (pair.n, pair.first.n_not_scored) == (5, 1)
    assert (pair.first.value.value, pair.second.value.value) == (pytest.approx(3.4), pytest.approx(3.0))
    assert pair.difference.value == pytest.approx(0.4)
    assert pair.difference.points == 5
    low, high = pair.difference.ci95
    assert -5 <= low < 0.4 < high <= 5
    # t interval by hand: differences 1, 0, 2, 0, -1
    assert (low, high) == pytest.approx(
        (0.4 - 2.776445 * 1.140175 / 5**0.5, 0.4 + 2.776445 * 1.140175 / 5**0.5), abs=1e-5
    )


def test_without_a_name_the_overalls_and_abilities_are_compared():
    comparison = compared([scored("a", [5, 4, 3]), scored("b", [4, 4, 1])])
    found = [pair.metric for pair in comparison.pairs]
    assert found[:2] == ["overall.none", "score.IE.none"]
    assert "rp.none" in found


def test_shares_stay_shares_beside_scores():
    comparison = compared([scored("a", [5, 4, 3]), scored("b", [4, 4, 1])], ["rp.none", "overall.none"])
    points = {pair.metric: pair.difference.points for pair in comparison.pairs}
    assert points == {"overall.none": 5, "rp.none": None}


def test_people_and_machines_are_told_the_unit():
    comparison = compared([scored("a", [5, 4, 3]), scored("b", [4, 4, 1])], ["overall.none"])
    text = "\n".join(as_text(grid) for grid in grids_from(comparison))
    assert "+1.00" in text
    assert any("in points up to 5" in line for line in foot_lines(comparison))
    assert any("an episode counts once" in line for line in foot_lines(comparison))
    assert "own episodes, scores in points, rates in percent [95% interval]" in text
    assert "scored in both, scores in points, rates in percent [95% interval]" in text
    (row,) = flat_pairs(comparison)
    assert row["difference"] == pytest.approx(1)
    assert as_json(comparison)["pairs"][0]["difference"]["points"] == 5
