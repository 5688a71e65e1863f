"""Settings, rows and replies that are not what they should be: each is told, with its place."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
import yaml

from interbench_tasks.backends.openai import OpenAIBackend
from interbench_tasks.config import CommonOptions, EngineOptions, task_options_from
from interbench_tasks.errors import BackendError, ConfigError, DataError, HarnessError
from interbench_tasks.generation import generation_settings_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.records import Reply
from interbench_tasks.rows import load_rows
from interbench_tasks.task_files import check_task_file
from tests.cli import lmms_eval
from tests.harness_fakes import ChatModel, evaluate, question_rows, records_of, write_task
from tests.test_faults import call_of

OFFERS = offers_from(build_plugin_manager())


def config_of(**changes: Any) -> dict[str, Any]:
    """A task's config; `engine` and other keys of ours go into the block, `generation_kwargs` and such to the top."""
    block = {"protocol": "feedback_loop", "verifier": "choice", "roles": {"provider": "simulated:helper"}}
    top = {key: changes.pop(key) for key in ("dataset_kwargs", "generation_kwargs") if key in changes}
    config: dict[str, Any] = {
        "task": "t",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 8, "temperature": 0},
        "metadata": {"interbench": block | changes},
    }
    return config | top


def problem_with(**changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        task_options_from(config_of(**changes), where="t.yaml", offers=OFFERS)
    return str(raised.value)


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("temperature", ".inf", "= inf: Input should be a finite number"),
        ("temperature", ".nan", "= nan: Input should be a finite number"),
        ("temperature", "true", "= True: must be a number"),
        ("temperature", "-1", "greater than or equal to 0"),
        ("max_new_tokens", "true", "= True: must be a number"),
        ("max_new_tokens", ".inf", "= inf: Input should be a finite number"),
        ("max_new_tokens", "0", "greater than or equal to 1"),
        ("top_p", "true", "= True: must be a number"),
        ("top_p", ".nan", "= nan: "),
    ],
)
def test_a_generation_setting_that_is_no_number_is_named(key, value, words):
    generation = {"until": [], "max_new_tokens": 8, "temperature": 0} | {key: yaml.safe_load(value)}
    told = problem_with(generation_kwargs=generation)
    assert told.startswith(f"t.yaml: generation_kwargs.{key} = ")
    assert words in told
    role = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1", key: yaml.safe_load(value)}
    assert f"metadata.interbench.roles.provider: generation settings: {key}" in problem_with(roles={"provider": role})


def test_usual_generation_settings_are_read_as_before():
    given = {"until": ["\n"], "max_new_tokens": "64", "temperature": 0, "top_p": None, "do_sample": True, "seed": 1}
    read = generation_settings_from(given)
    assert (read.max_new_tokens, read.temperature, read.top_p, read.options) == (64, 0.0, None, {"seed": 1})
    assert generation_settings_from({**given, "top_p": 0.9}).top_p == 0.9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine": {"max_live_episodes": True}}, "engine.max_live_episodes = True: must be a number"),
        ({"engine": {"max_wait_s": True}}, "engine.max_wait_s = True: must be a number"),
        ({"engine": {"max_episode_s": True}}, "engine.max_episode_s = True: must be a number"),
        ({"engine": {"max_episode_s": 0}}, "engine.max_episode_s = 0: Input should be greater than 0"),
        ({"engine": {"max_episode_s": float("inf")}}, "engine.max_episode_s = inf: Input should be a finite number"),
        ({"engine": {"max_episode_s": "soon"}}, "engine.max_episode_s = 'soon': "),
        ({"engine": {"max_episode": 5}}, "is no known key (did you mean 'max_episode_s'?)"),
        ({"pictures": {"max_side": True}}, "pictures.max_side = True: must be a number"),
        ({"max_failed_share": False}, "max_failed_share = False: must be a number"),
        ({"max_rounds": True}, "max_rounds = True: must be a number"),
        ({"flip_sample": True, "seed": False}, "seed = False: must be a number"),
    ],
)
def test_true_is_no_number_anywhere_in_our_block(changes, words):
    assert words in problem_with(**changes)


def test_true_stays_welcome_where_it_belongs():
    options = task_options_from(config_of(pictures={"required": True}), where="t.yaml", offers=OFFERS)
    assert options.common.pictures.required is True


def test_an_episode_has_an_hour_unless_the_yaml_says_otherwise():
    assert EngineOptions().max_episode_s == 3600.0
    assert CommonOptions(protocol="x", engine={"max_episode_s": None}).engine.max_episode_s is None
    assert CommonOptions(protocol="x", engine={"max_episode_s": 60}).engine.max_episode_s == 60.0


@pytest.mark.parametrize("option", ["temperature", "top_p", "timeout_s"])
def test_a_backend_s_own_settings_are_finite(option):
    with pytest.raises(BackendError, match=rf"{option} = inf must be a"):
        OpenAIBackend("m", base_url="http://127.0.0.1:1/v1", **{option: float("inf")})


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["x", ["a"], 0, True])
def test_options_of_a_data_set_that_are_no_mapping_are_named(value):
    assert f"dataset_kwargs = {value!r}: must be a mapping, e.g. {{data_files: items.jsonl}}" in problem_with(
        dataset_kwargs=value
    )


def test_both_our_check_and_the_harness_name_them(tmp_path):
    path = write_task(tmp_path, question_rows(2))
    path.write_text(re.sub(r"dataset_kwargs: .*", "dataset_kwargs: x", path.read_text()))
    with pytest.raises(ConfigError, match="dataset_kwargs = 'x': must be a mapping"):
        check_task_file(path, OFFERS)
    with pytest.raises(ConfigError, match="dataset_kwargs = 'x': must be a mapping"):
        evaluate(ChatModel(lambda conversation: "B"), tmp_path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"question": "q", "answer": ' + "1" * 5000 + "}", "line 2: a number has too many digits; put it in quotes"),
        ("[" * 100_000, "line 2: lists or objects are nested too deeply"),
        ('{"question": "q"', "line 2: no valid JSON"),
    ],
    ids=["digits", "deep", "cut"],
)
def test_a_row_that_python_cannot_read_is_named_by_its_line(tmp_path, line, words):
    data = tmp_path / "rows.jsonl"
    data.write_text(json.dumps({"question": "fine"}) + "\n" + line + "\n")
    with pytest.raises(DataError, match=re.escape(f"{data}, {words}")):
        load_rows("json", name=None, split="test", options={"data_files": str(data)})


def test_a_yaml_with_a_number_of_5000_digits_is_an_error_that_names_the_file(tmp_path):
    path = write_task(tmp_path, question_rows(2), extra=f"    seed: {'1' * 5000}\n")
    with pytest.raises(ConfigError, match=re.escape(f"{path}: file is no valid YAML: Exceeds the limit")):
        check_task_file(path, OFFERS)


# --- the command line -----------------------------------------------------------------------------------------------


def api(model_args: str) -> Any:
    """`--model interbench_api --model_args ...`, read as the harness reads it."""
    from lmms_eval.utils import simple_parse_args_string

    from interbench_tasks.harness.models import InterbenchAPI

    return InterbenchAPI(**simple_parse_args_string(model_args)).interbench_words.options


@pytest.mark.integration
def test_headers_and_bodies_can_be_written_as_json_on_the_command_line():
    options = api(
        'model=openai:m@http://127.0.0.1:1/v1,extra_headers={"X-Title": "a, b=c"},extra_body={"a": {"b": [1, null]}},'
        "temperature=null,top_p=0.5,reasoning_effort=high,max_concurrency=4"
    )
    assert options == {
        "base_url": "http://127.0.0.1:1/v1",
        "extra_headers": {"X-Title": "a, b=c"},
        "extra_body": {"a": {"b": [1, None]}},
        "temperature": None,
        "top_p": 0.5,
        "reasoning_effort": "high",
        "max_concurrency": 4,
    }


@pytest.mark.integration
@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("extra_headers={X-Title: a}", "--model_args extra_headers is no JSON; the shell must leave its quotes alone"),
        ("extra_body=[1, 2", "--model_args extra_body is no JSON"),
        ("extra_headers=X-Title:a", 'On a command line as JSON: extra_headers={"x-title": "bench"}'),
        ("extra_body=top_k:5", 'On a command line as JSON: extra_body={"top_k": 5}'),
        ('extra_headers={"Authorization": "Bearer abc"}', "keys come from the environment only"),
        ("temperature=inf", "temperature = inf must be a finite number"),
        ("max_new_tokens=true", "max_new_tokens = True must be a whole number"),
    ],
)
def test_how_to_write_them_is_told_where_it_went_wrong(written, words):
    with pytest.raises(BackendError, match=re.escape(words)):
        api(f"model=openai:m@http://127.0.0.1:1/v1,{written}")


@pytest.mark.integration
@pytest.mark.parametrize("model", ["dummy", "interbench_simulated"])
def test_apply_chat_template_is_refused_with_a_sentence(tmp_path, model):
    """Where the harness's own backends have no such attribute, it would fail with a bare AttributeError."""
    done = lmms_eval("--model", model, "--tasks", "interfeedback_demo", "--limit", "1", "--apply_chat_template")
    assert "--apply_chat_template cannot be used: chat backends get the conversation as messages" in done.output
    assert "AttributeError" not in done.output


@pytest.mark.integration
def test_apply_chat_template_is_refused_from_python_too(tmp_path):
    write_task(tmp_path, question_rows(2))
    lm = ChatModel(lambda conversation: "B")
    lm.chat_template = lm.apply_chat_template = None
    with pytest.raises(HarnessError, match="--apply_chat_template cannot be used"):
        evaluate(lm, tmp_path, apply_chat_template=True)


# --- models of the harness ------------------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (lambda requests: None, "fake: generate_until gave a NoneType to 1 requests"),
        (lambda requests: "B", "fake: generate_until gave a str to 1 requests"),
        (lambda requests: ["B", "B"], "fake: generate_until gave 2 replies to 1 requests"),
        (lambda requests: [None for _ in requests], "fake returned no text but NoneType"),
        (lambda requests: ["" for _ in requests], "fake returned an empty text"),
    ],
    ids=["none", "text", "too many", "no texts", "empty"],
)
def test_a_harness_model_that_gives_odd_things_is_named(tmp_path, gives, words):
    class Odd(ChatModel):
        def generate_until(self, requests):
            return gives(requests)

    write_task(tmp_path, question_rows(1))
    evaluate(Odd(lambda conversation: ""), tmp_path)
    [record] = records_of(tmp_path)
    assert words in record["error"]


@pytest.mark.integration
def test_a_backend_that_gives_no_reply_is_named_through_the_harness_s_books_as_well():
    from interbench_tasks.harness.usage import Reported

    class Nothing:
        name = fingerprint = "nothing"

        async def reply(self, call):
            return None

        async def close(self):
            """Nothing to close."""

    given: Reply | None = asyncio.run(Reported(Nothing(), task="t", source="model").reply(call_of()))
    assert given is None  # the engine says whose it is
