"""The words that name a role's backend, as text and as a mapping."""

from __future__ import annotations

from typing import Any

import pytest

from interbench_tasks.errors import BackendError
from interbench_tasks.role_words import RoleWords, role_words_from, role_words_from_mapping

LOCAL = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("text", "backend", "model", "options"),
    [
        ("openai:gpt-4o-2024-08-06", "openai", "gpt-4o-2024-08-06", {}),
        ("anthropic:claude-sonnet-4-20250514", "anthropic", "claude-sonnet-4-20250514", {}),
        (f"openai:qwen2.5-vl@{LOCAL}", "openai", "qwen2.5-vl", {"base_url": LOCAL}),
        (
            f"openai:org/name@{LOCAL},max_concurrency=32,temperature=0",
            "openai",
            "org/name",
            {"base_url": LOCAL, "max_concurrency": 32, "temperature": 0},
        ),
        ("simulated:strong,seed=3", "simulated", "strong", {"seed": 3}),
        ("simulated:seed=3,flip=.5", "simulated", "", {"seed": 3, "flip": 0.5}),
        ("simulated,seed=3", "simulated", "", {"seed": 3}),
        (
            "harness:qwen2_5_vl,pretrained=Qwen/Qwen2.5-VL-7B-Instruct",
            "harness",
            "qwen2_5_vl",
            {"pretrained": "Qwen/Qwen2.5-VL-7B-Instruct"},
        ),
        ("human", "human", "", {}),
        ("  human ", "human", "", {}),
        ("openai: gpt-4o , temperature = 0.5 ", "openai", "gpt-4o", {"temperature": 0.5}),
    ],
)
def test_the_documented_forms_are_read(text: str, backend: str, model: str, options: dict[str, Any]) -> None:
    assert role_words_from(text) == RoleWords(backend=backend, model=model, options=options)


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("llama3.2-vision:11b", None),
        ("llama3.2-vision:11b", "http://localhost:11434/v1"),
        ("claude-3-5-sonnet@20240620", None),
        ("claude-3-5-sonnet@20240620", "https://vertex.example.com/v1"),
        ("accounts/fireworks/models/llama-v3p2-90b", "https://api.example.com/inference/v1"),
        ("hf:org/name@main", "http://10.0.0.7:8000/v1"),
        ("ft:gpt-4o-mini:acme::abc123", None),
    ],
)
def test_a_model_may_hold_colons_slashes_and_at_signs(model: str, address: str | None) -> None:
    words = role_words_from(f"openai:{model}" + (f"@{address}" if address else ""))
    assert words.model == model
    assert words.options.get("base_url") == address


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("3", 3),
        ("-1", -1),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("low", "low"),
        ("", ""),
        ("NaN", "NaN"),
        ("2024-08-06", "2024-08-06"),
        ('"1.0"', "1.0"),
        ('"a, b"', "a, b"),
        ("[1, 2]", [1, 2]),
        ('{"a": {"b": [1, 2]}, "c": "x,}y"}', {"a": {"b": [1, 2]}, "c": "x,}y"}),
        ("Qwen/a=b", "Qwen/a=b"),
    ],
)
def test_a_value_is_json_where_it_is_json_and_else_text(written: str, value: object) -> None:
    options = role_words_from(f"openai:m,first=1,option={written},last=2").options
    assert options == {"first": 1, "option": value, "last": 2}
    assert type(options["option"]) is type(value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "names no backend or no model"),
        ("gpt-4o", "names no backend or no model"),
        (":gpt-4o", "names no backend or no model"),
        ("openai:", "names no backend or no model"),
        ("openai:,temperature=0", "names no backend or no model"),
        ("http://localhost:8000/v1", "it is an address, without backend and model"),
        (f"openai:@{LOCAL}", "no model stands before '@'"),
        ("openai:m@localhost:8000/v1", "write the address as @http://localhost:8000/v1"),
        ("openai:m,temperature", "'temperature' is not KEY=VALUE"),
        ("openai:m,", "'' is not KEY=VALUE"),
        ("openai:m,=3", "'=3' is not KEY=VALUE"),
        ("openai:m,a b=3", "'a b=3' is not KEY=VALUE"),
        ("openai:m,seed=1,seed=2", "'seed' is given twice"),
        ("openai:m,model=n", "'model' is given twice"),
        (f"openai:m@{LOCAL},base_url={LOCAL}", "'base_url' is given twice"),
    ],
)
def test_an_unreadable_text_gets_the_expected_shape(text: str, what: str) -> None:
    with pytest.raises(BackendError) as error:
        role_words_from(text)
    assert what in str(error.value)
    assert "expected: BACKEND:MODEL" in str(error.value)


@pytest.mark.parametrize("key", ["api_key", "API_KEY", "token", "password"])
def test_a_key_among_the_options_is_refused_and_never_shown(key: str) -> None:
    for read in (
        lambda: role_words_from(f"openai:m,{key}=sk-secret-1234"),
        lambda: role_words_from_mapping({"backend": "openai", "model": "m", key: "sk-secret-1234"}),
        lambda: role_words_from(f"openai:m,{key}=sk-secret-1234,oops"),
        lambda: role_words_from(f"openai:m,oops,{key}=sk-secret-1234"),
        lambda: role_words_from("openai:m@http://me:sk-secret-1234@host/v1,oops"),
    ):
        with pytest.raises(BackendError) as error:
            read()
        assert "secret" not in str(error.value)
    with pytest.raises(BackendError, match=f"'{key}' cannot be given here: keys come from the environment only"):
        role_words_from(f"openai:m,{key}=sk-secret-1234")


def test_a_mapping_says_the_same_as_a_text() -> None:
    mapping = {"backend": "openai", "model": "gpt-4o", "temperature": 0, "extra_body": {"top_k": 3}}
    text = 'openai:gpt-4o,temperature=0,extra_body={"top_k": 3}'
    assert role_words_from_mapping(mapping) == role_words_from(text)
    assert role_words_from_mapping({"backend": "human"}) == role_words_from("human")


@pytest.mark.parametrize(
    ("mapping", "what"),
    [
        ({}, "a role needs the key 'backend'"),
        ({"backnd": "openai"}, "did you mean 'backend'"),
        ({"backend": "openai:gpt-4o"}, "write the model under its own key"),
        ({"backend": 3}, "backend = 3 is not the name of a backend"),
        ({"backend": "openai", "model": 4.1}, "model = 4.1 must be text; put it in quotes"),
        ({"backend": "openai", 3: 4}, "must be text, got 3"),
    ],
)
def test_a_wrong_mapping_gets_the_expected_shape(mapping: dict[Any, Any], what: str) -> None:
    with pytest.raises(BackendError) as error:
        role_words_from_mapping(mapping)
    assert what in str(error.value)
    assert "expected: {backend: NAME" in str(error.value)
