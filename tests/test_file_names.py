from __future__ import annotations

import itertools

import pytest

from interbench_tasks.file_names import MAX_LENGTH, safe_file_name

MODELS = [
    "gpt-4o", "GPT-4o", "openai:gpt-4o-2024-08-06", "openai_gpt-4o-2024-08-06", "some-org/Big-Model:bf16-mp8",
    "some-org_Big-Model_bf16-mp8", "a/b", "a\\b", "a:b", "a_b", "a__b", "a b", "a\nb", "a\x00b", "", ".", "..", "...",
    ".hidden", "-rf", "con", "CON.txt", "nul", "nul.", "x" * 100, "x" * 101, "x" * 300, "x" * 299 + "y", "模型",
    "模型2", "é", "e\u0301",
    "openai:qwen@http://localhost:8000/v1?x=<y>|\"z\"*", "trailing.", "trailing", "a_b-c14cddc033", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=ascii)
def test_a_file_name_is_safe_on_every_system(model, tmp_path):
    name = safe_file_name(model)
    assert 0 < len(name) <= MAX_LENGTH
    assert name.isascii()
    assert name.isprintable()
    assert not set(name) & set('<>:"/\\|?* ')
    assert name[0] not in ".-"
    assert name[-1] != "."
    assert name.split(".")[0].lower() not in {"con", "prn", "aux", "nul"}
    (tmp_path / name).touch()


def test_different_models_get_different_names_also_where_case_is_ignored():
    names = [safe_file_name(model).lower() for model in MODELS]
    assert [pair for pair in itertools.combinations(range(len(MODELS)), 2) if names[pair[0]] == names[pair[1]]] == []


def test_a_made_name_does_not_meet_the_model_of_that_name():
    made = safe_file_name("a/b")
    assert safe_file_name(made) != made


def test_a_safe_name_stays_as_it_is():
    assert safe_file_name("qwen2.5-vl-7b") == "qwen2.5-vl-7b"


def test_the_same_model_always_gets_the_same_name():
    assert safe_file_name("some-org/Big-Model:bf16-mp8") == "some-org_Big-Model_bf16-mp8-3108b479a0"
