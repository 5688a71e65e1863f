"""Task YAMLs: every problem at once, with file, key, what it got, what is allowed and the near miss."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from interbench_tasks.config import task_options_from
from interbench_tasks.errors import BackendError, ConfigError
from interbench_tasks.generation import generation_settings_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.role_words import role_words_from
from interbench_tasks.task_files import own_tasks
from interbench_tasks.task_roles import Role, backend_from
from interbench_tasks.yaml_files import config_from_file

OFFERS = offers_from(build_plugin_manager())
GOOD = {
    "task": "mine",
    "generation_kwargs": {"until": [], "max_new_tokens": 64, "temperature": 0},
    "metadata": {
        "version": 1.2,
        "interbench": {
            "protocol": "feedback_loop",
            "arms": ["simple"],
            "roles": {"provider": "simulated:helper,solve=0.9"},
        },
    },
}


def config(**block) -> dict:
    made = copy.deepcopy(GOOD)
    made["metadata"]["interbench"].update(block)
    return made


def options_of(made: dict):
    return task_options_from(made, where="mine.yaml", offers=OFFERS)


def error_of(made: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        options_of(made)
    return str(caught.value)


def test_a_good_block_becomes_typed_options():
    options = options_of(config(max_rounds=2, cluster="problem_index"))
    assert options.protocol_options.max_rounds == 2
    assert options.protocol_options.arms == ("simple",)
    assert options.common.cluster == "problem_index"
    assert options.metrics == "feedback_loop"
    assert options.version == "1.2"
    assert options.receiver_settings.max_new_tokens == 64
    assert options.roles["provider"][0].words.model == "helper"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"protocol": "feedback_lop"}, "metadata.interbench.protocol = 'feedback_lop' (did you mean 'feedback_loop'?)"),
        ({"verifier": "choise"}, "metadata.interbench.verifier = 'choise' (did you mean 'choice'?)"),
        ({"metrics": "feedback"}, "metadata.interbench.metrics = 'feedback' (did you mean 'feedback_loop'?)"),
        ({"arms": ["detial"]}, "metadata.interbench.arms = 'detial' (did you mean 'detail'?)"),
        ({"max_round": 2}, "metadata.interbench.max_round is no known key (did you mean 'max_rounds'?)"),
        ({"max_rounds": "many"}, "metadata.interbench.max_rounds = 'many':"),
        (
            {"columns": {"qestion": "q"}},
            "metadata.interbench.columns.qestion is no known key (did you mean 'question'?)",
        ),
        ({"answer_is": "leter"}, "metadata.interbench.answer_is = 'leter' (did you mean 'letter'?)"),
        ({"roles": {"provder": "simulated:x"}}, "metadata.interbench.roles.provder is no known key"),
        ({"roles": {"provider": "opnai:gpt"}}, "'opnai' (did you mean 'openai'?)"),
        ({"roles": {}}, "name it in the YAML or in the environment variable INTERBENCH_PROVIDER"),
        ({"pictures": {"max_side": 2}}, "metadata.interbench.pictures.max_side = 2:"),
        ({"prompts": {"question": "{{ question"}}, "prompt 'question', line 1"),
        (
            {"engine": {"max_wait": 1}},
            "metadata.interbench.engine.max_wait is no known key (did you mean 'max_wait_s'?)",
        ),
    ],
)
def test_a_wrong_value_names_file_key_value_and_near_miss(block, expected):
    text = error_of(config(**block))
    assert text.startswith("mine.yaml: ")
    assert expected in text


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"prompts": {"simpel": "x"}}, "prompts.simpel is no known key (did you mean 'simple'?)"),
        (
            {"prompts": {"simple": "{{ anwser }}"}},
            "prompts.simple uses 'anwser', which does not exist there (did you mean",
        ),
        ({"prompts": {"question": "{{ answer }}"}}, "prompts.question uses 'answer', which does not exist there"),
        ({"roles": {"provider": "simulated:x,sovle=1"}}, "metadata.interbench.roles.provider: "),
        ({"roles": {"provider": "openai:x@http://localhost:1/v1,temprature=0"}}, "temprature"),
    ],
)
def test_what_would_only_fail_after_something_was_paid_is_found_before(block, expected):
    assert expected in error_of(config(**block))


def test_a_key_written_into_a_yaml_is_not_shown():
    assert "1234567890" not in error_of(config(verifier="openai:m,api_key=sk-secret-1234567890"))
    assert "pw12345" not in error_of(config(verifier="openai:m@http://user:pw12345@host/v1"))


def test_a_password_in_a_bad_address_is_not_shown(monkeypatch):
    bad = "openai:m@http://user:pw12345@localhost:99999/v1"
    assert "pw12345" not in error_of(config(roles={"provider": bad}))
    role = Role(words=role_words_from(bad), settings=generation_settings_from(GOOD["generation_kwargs"]), named_in="x")
    with pytest.raises(BackendError) as caught:
        backend_from(role, OFFERS)
    assert "pw12345" not in str(caught.value)


def test_a_missing_key_is_a_matter_of_the_machine_that_runs():
    assert options_of(config(roles={"provider": "openai:gpt-4o"})).roles["provider"][0].words.model == "gpt-4o"


def test_top_level_keys_that_the_harness_would_ignore_are_refused():
    assert "process_docs is no known key" in error_of(config() | {"process_docs": "x"})


def test_allowed_values_are_listed():
    assert "allowed: choice, choice_or_exact" in error_of(config(verifier="x"))


def test_all_problems_of_a_file_come_at_once():
    made = config(arms=["detial"], verifier="choise", max_rounds=0, nonsense=1, roles={})
    made["metadata"]["interbench"]["columns"] = {"qestion": "q"}
    del made["generation_kwargs"]["until"]
    made["filter_list"] = [{"name": "x"}]
    text = error_of(made)
    for key in ("nonsense", "columns.qestion", "max_rounds", "generation_kwargs.until", "filter_list"):
        assert key in text


@pytest.mark.parametrize("key", ["until", "max_new_tokens", "temperature"])
def test_generation_settings_must_be_explicit(key):
    made = config()
    del made["generation_kwargs"][key]
    assert f"generation_kwargs.{key} is missing" in error_of(made)


@pytest.mark.parametrize("key", ["filter_list", "metric_list", "process_results", "repeats", "num_fewshot"])
def test_what_the_harness_would_do_behind_our_back_is_refused(key):
    assert f"{key} cannot be used with an Interbench task" in error_of(config() | {key: [2]})


@pytest.mark.parametrize("metadata", [None, {}, {"interbench": None}, {"interbench": "feedback_loop"}, "x"])
def test_a_missing_block_is_one_clear_sentence(metadata):
    assert "metadata.interbench is missing or no mapping" in error_of(GOOD | {"metadata": metadata})


def test_the_environment_overrides_a_role_and_errors_name_the_variable(monkeypatch):
    monkeypatch.setenv("INTERBENCH_PROVIDER", "simulated:other,solve=1")
    assert options_of(config()).roles["provider"][0].words.model == "other"
    monkeypatch.setenv("INTERBENCH_PROVIDER", "nonsense:other")
    assert "INTERBENCH_PROVIDER = 'nonsense'" in error_of(config())


def test_a_roles_generation_settings_are_told_from_its_backends_options():
    role = options_of(config(roles={"provider": {"backend": "simulated", "model": "m", "temperature": 0.5, "seed": 3}}))
    [provider] = role.roles["provider"]
    assert provider.settings.temperature == 0.5
    assert provider.words.options == {"seed": 3}


def test_unknown_generation_settings_go_to_the_backend_as_they_are():
    made = generation_settings_from(
        {"until": ["X"], "max_new_tokens": 5, "temperature": 1, "seed": 7, "do_sample": True}
    )
    assert made.options == {"seed": 7}
    assert made.until == ("X",)


# --- files --------------------------------------------------------------------------------------------------------


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_includes_are_merged_as_the_harness_does(tmp_path):
    write(tmp_path, base="a: 1\nb: {x: 1}\nc: !function some.where\n", top="include: base.yaml\nb: {y: 2}\n")
    assert config_from_file(tmp_path / "top.yaml") == {"a": 1, "b": {"y": 2}, "c": "!function some.where"}


def test_a_later_include_does_not_win_over_an_earlier_one(tmp_path):
    write(tmp_path, one="a: 1\n", two="a: 2\nb: 2\n", top="include: [one.yaml, two.yaml]\n")
    assert config_from_file(tmp_path / "top.yaml") == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is no valid YAML"),
        ("- 1\n", "holds no mapping"),
        ("include: nowhere.yaml\n", "cannot be read"),
        ("include: 5\n", "include must be a file or a list of files, got 5"),
        ("include: top.yaml\n", "includes itself"),
    ],
)
def test_a_broken_file_is_named(tmp_path, text, message):
    write(tmp_path, top=text)
    with pytest.raises(ConfigError, match=message):
        config_from_file(tmp_path / "top.yaml")


def test_the_tasks_that_ship_are_valid(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for name, path in own_tasks().items():
        made = config_from_file(path)
        assert made["task"] == name
        task_options_from(made, where=str(path), offers=OFFERS)
