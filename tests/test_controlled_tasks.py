"""The tasks with controls and with the paper's providers: what they change of the tasks they come from, and no more."""

from __future__ import annotations

import pytest

from interbench_tasks.config import task_options_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.task_files import own_tasks
from interbench_tasks.yaml_files import config_from_file
from tests.cli import lmms_eval, metrics

SHOWN = {
    "mathverse": 200,
    "mathverse_text_only": 200,
    "mmmu_pro": 200,
    "local": 200,
    "demo": 20,
}
"""Task -> how many right first answers its controlled version tries."""
GROUPS = {
    "interfeedback_controlled": ["interfeedback_mathverse_controlled", "interfeedback_mmmu_pro_controlled"],
    "interfeedback_three_providers": [
        "interfeedback_mathverse_three_providers",
        "interfeedback_mmmu_pro_three_providers",
    ],
}


def block_and_rest(name: str) -> tuple[dict, dict]:
    config = config_from_file(own_tasks()[name])
    block = config.pop("metadata")
    assert config.pop("task") == name
    return block, config


@pytest.mark.parametrize(("source", "n"), SHOWN.items())
def test_a_controlled_task_adds_controls_and_changes_nothing_else(source, n):
    (plain, rest), (controlled, other) = (
        block_and_rest(f"interfeedback_{source}{kind}") for kind in ("", "_controlled")
    )
    assert other == rest
    inner = controlled["interbench"]
    assert inner.pop("arms") == ["detail", "simple", "reask", "mismatched"]
    assert inner.pop("flip_sample") == n
    assert plain["interbench"].pop("arms") == ["detail", "simple"]
    assert controlled == plain


@pytest.mark.parametrize("source", ["mathverse", "mmmu_pro"])
def test_a_task_with_three_providers_names_the_papers_and_changes_nothing_else(source):
    (plain, rest), (three, other) = (
        block_and_rest(f"interfeedback_{source}{kind}") for kind in ("", "_three_providers")
    )
    assert other == rest
    providers = three["interbench"].pop("providers")
    single = plain["interbench"].pop("roles")["provider"]
    assert three == plain
    assert {key: value for key, value in providers[0].items() if key != "name"} == single
    assert [(provider["name"], provider["backend"], provider["model"]) for provider in providers] == [
        ("gpt-4o", "openai", "gpt-4o-2024-08-06"),
        ("gemini-1.5-flash", "openai", "gemini-1.5-flash"),
        ("claude-sonnet-4", "anthropic", "claude-sonnet-4-20250514"),
    ]
    assert {(provider["temperature"], provider["max_new_tokens"]) for provider in providers} == {(0, 1024)}


@pytest.mark.parametrize("source", ["mathverse", "mmmu_pro"])
def test_three_providers_are_made_with_a_key_each(source, monkeypatch):
    keys = ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY")
    for name in keys:
        monkeypatch.setenv(name, f"key-for-{name}")
    offers = offers_from(build_plugin_manager())
    config = config_from_file(own_tasks()[f"interfeedback_{source}_three_providers"])
    options = task_options_from(config, where="t.yaml", offers=offers)
    assert options.protocol_options.providers == ("gpt-4o", "gemini-1.5-flash", "claude-sonnet-4")
    made = [offers.backends[r.words.backend](r.words.model, **r.words.options) for r in options.roles["provider"]]
    addresses = ["api.openai.com", "generativelanguage.googleapis.com/v1beta/openai", "api.anthropic.com"]
    assert all(address in backend.fingerprint for address, backend in zip(addresses, made, strict=True))
    assert not any("key-for" in backend.fingerprint for backend in made)


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_holds_the_papers_two_data_sets(name):
    import yaml

    path = own_tasks()["interfeedback_demo"].with_name(f"{name}.yaml")
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == {"group": name, "task": GROUPS[name]}
    assert set(GROUPS[name]) <= set(own_tasks())


@pytest.mark.integration
def test_the_controlled_demo_plays_offline_through_the_harness(tmp_path):
    finished = lmms_eval(
        *("--model", "interbench_simulated", "--tasks", "interfeedback_demo_controlled", "--output_path", tmp_path)
    ).check()
    table = metrics(tmp_path)
    assert table["n"]["value"] == 60
    assert 10 <= table["n_flip"]["value"] <= 20  # of 20 right ones those that the provider solves too
    assert {"net_content_effect", "net_bit_effect", "discrimination.detail", "repeat_rate.reask"} <= set(table)
    assert "net_content_effect" in finished.output  # in the harness's own table
    assert table["correction_rate.mismatched"]["unscored"] == 0
