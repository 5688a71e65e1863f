"""Levels through the harness's own command line: texts of the data set, and texts of a model."""

from __future__ import annotations

import json

import pytest

from tests.cli import lmms_eval, metrics

RATES = "accuracy=0.4,correction_hierarchical_1=0.4,correction_hierarchical_2=0,correction_hierarchical_3=1"


@pytest.mark.integration
@pytest.mark.parametrize("provider", [None, pytest.param("simulated:teacher", marks=pytest.mark.slow)])
def test_the_human_demo_plays_offline_through_the_harness(tmp_path, provider):
    named = {"INTERBENCH_PROVIDER": provider} if provider else {}
    finished = lmms_eval(
        *("--model", "interbench_simulated", "--model_args", RATES),
        *("--tasks", "interfeedback_human_demo", "--output_path", tmp_path),
        **named,
    ).check()
    table = metrics(tmp_path)
    assert table["n"]["value"] == 40
    assert table["n_test"]["value"] == table["n_negative"]["value"] > 15
    rounds = [table[f"correction_rate.hierarchical.round{number}"] for number in (1, 2, 3)]
    assert len({own["n"] for own in rounds}) == 1
    assert rounds[1]["value"] == 0  # planted
    assert rounds[0]["value"] + rounds[2]["value"] == pytest.approx(
        1 - table["n_solved.hierarchical.never"]["value"] / rounds[0]["n"]
    )
    assert "correction_rate.hierarchical.round3" in finished.output  # in the harness's own table
    (manifest,) = tmp_path.rglob("manifest.json")
    content = json.loads(manifest.read_text(encoding="utf-8"))
    assert content["protocol_options"]["level_texts"] == ("provider" if provider else "data")
    assert ("provider" in content["models"]) == bool(provider)
