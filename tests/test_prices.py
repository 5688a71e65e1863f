"""Prices of models: which line of which file counts, what tokens cost, and what a wrong file says."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

import interbench_tasks
from interbench_tasks.backends.anthropic import AnthropicBackend
from interbench_tasks.backends.openai import OpenAIBackend
from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import BudgetError, ConfigError
from interbench_tasks.prices import VENDORS, Price, names_of, no_price_known, price_list, prices_from, shown

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
SHIPPED = Path(interbench_tasks.__file__).parent / "prices.yaml"


def written(tmp_path: Path, text: str, name: str = "prices.yaml") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


# --- which price ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "address", "expected"),
    [
        ("openai:gpt-4o-2024-08-06", OPENAI, (2.50, 1.25, 10.0)),
        ("openai:gpt-4o", OPENAI, (2.50, 1.25, 10.0)),
        ("openai:gpt-4o-2024-05-13", OPENAI, (5.0, None, 15.0)),
        ("openai:gpt-4o-mini", OPENAI, (0.15, 0.075, 0.60)),
        ("openai:gpt-4.1-mini", OPENAI, (0.40, 0.10, 1.60)),
        ("openai:o3", OPENAI, (2.0, 0.5, 8.0)),
        ("anthropic:claude-sonnet-4-20250514", ANTHROPIC, (3.0, 0.30, 15.0)),
        ("anthropic:claude-3-5-sonnet-20241022", ANTHROPIC, (3.0, 0.30, 15.0)),
        ("anthropic:claude-3-5-haiku-20241022", ANTHROPIC, (0.80, 0.08, 4.0)),
        ("anthropic:claude-opus-4-1-20250805", ANTHROPIC, (15.0, 1.50, 75.0)),
        ("anthropic:claude-opus-4-5-20251101", ANTHROPIC, (5.0, 0.50, 25.0)),
        ("anthropic:claude-haiku-4-5-20251001", ANTHROPIC, (1.0, 0.10, 5.0)),
        ("openai:gemini-2.0-flash", GOOGLE, (0.10, 0.025, 0.40)),
        ("openai:gemini-1.5-pro", GOOGLE, (1.25, None, 5.0)),
        ("simulated:anything", None, (0.0, 0.0, 0.0)),
    ],
)
def test_published_prices_are_known(model, address, expected):
    price = price_list().price_of(model, address)
    assert price is not None
    assert (price.input, price.cached_input, price.output) == expected


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("openai:gpt-4o", "http://localhost:8000/v1"),  # a server may call its model as it likes
        ("openai:gpt-4o", "https://my.openai.azure.com/v1"),
        ("openai:gpt-4o-audio-preview", OPENAI),  # no price of another product is taken for it
        ("openai:gpt-4o-mini-realtime-preview", OPENAI),
        ("anthropic:claude-sonnet-4-20250514", "https://proxy.example.org"),
        ("async_openai:gpt-4o", None),  # a backend of the harness does not tell its server
        ("qwen2_5_vl:Qwen/Qwen2.5-VL-7B-Instruct", None),
        ("openai:llama3.2-vision:11b", "http://localhost:11434/v1"),
    ],
)
def test_a_price_is_never_guessed(model, address):
    assert price_list().price_of(model, address) is None


def test_the_backends_tell_their_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
    for backend in (OpenAIBackend("gpt-4o"), AnthropicBackend("claude-sonnet-4-20250514")):
        assert price_list().price_of(backend.name, backend.address) is not None
    own = OpenAIBackend("gpt-4o", base_url="http://localhost:8000/v1")
    assert price_list().price_of(own.name, own.address) is None
    assert price_list().price_of(SimulatedBackend("x").name, None).output == 0


def test_the_users_line_comes_before_ours(tmp_path):
    own = written(tmp_path, "gpt-4o: {input: 1, output: 2}\n")
    assert price_list(own).price_of("openai:gpt-4o", OPENAI).output == 2
    assert price_list(own).price_of("openai:gpt-4o", "http://other/v1").output == 2  # without @ it is any server's
    assert price_list(own).price_of("openai:gpt-4o-mini", OPENAI).output == 0.60


def test_the_file_of_the_environment_comes_between_the_yamls_and_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_PRICES", written(tmp_path, "a: {input: 1, output: 1}\nb: {input: 1, output: 1}\n"))
    own = written(tmp_path, "a: {input: 7, output: 7}\n", "own.yaml")
    assert price_list(own).price_of("openai:a", OPENAI).input == 7
    assert price_list(own).price_of("openai:b", OPENAI).input == 1
    assert price_list(own).price_of("openai:gpt-4o", OPENAI).input == 2.5


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*@localhost*", True),
        ("*@localhost", True),
        ("*@localhost:8000", True),
        ("openai:*@localhost", True),
        ("qwen*", True),
        ("openai:qwen2.5-vl", True),
        ("qwen2.5-vl@localhost:8000", True),
        ("*@localhost:9000", False),
        ("anthropic:*", False),
        ("QWEN*", False),
    ],
)
def test_a_line_may_mean_a_model_a_server_or_both(tmp_path, pattern, fits):
    own = written(tmp_path, f'"{pattern}": {{input: 0, output: 0}}\n')
    found = price_list(own).price_of("openai:qwen2.5-vl", "http://localhost:8000/v1")
    assert (found is not None) is fits


def test_the_most_exact_line_counts_whatever_the_order(tmp_path):
    lines = ['"*": {input: 1, output: 1}', '"gpt*": {input: 2, output: 2}', '"gpt-4o*": {input: 3, output: 3}']
    lines += ['"gpt-4o": {input: 4, output: 4}']
    for number, order in enumerate(itertools.permutations(lines)):
        prices = price_list(written(tmp_path, "\n".join(order), f"{number}.yaml"))
        found = [prices.price_of(f"openai:{name}", None).input for name in ("gpt-4o", "gpt-4o-mini", "gpt-5", "o1")]
        assert found == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("model", "address", "names"),
    [
        ("openai:a", None, ("a", "openai:a")),
        ("Chat", None, ("Chat",)),
        ("openai:a:b", None, ("a:b", "openai:a:b")),
        ("openai:a", "http://h/v1", ("a", "openai:a", "a@h", "openai:a@h")),
        ("openai:a", "http://h:1/v1", ("a", "openai:a", "a@h", "openai:a@h", "a@h:1", "openai:a@h:1")),
    ],
)
def test_what_a_line_may_call_a_model(model, address, names):
    assert names_of(model, address) == names
    assert shown(model, address) == names[-1]


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("openai:gpt-4o", 10.0),
        ("anthropic:claude-opus-4-5-20251101", 25.0),
        ("openai:gemini-2.0-flash", 0.4),
        ("x:q", None),
    ],
)
def test_where_the_server_is_not_known_any_more_it_is_the_vendors_own_price(model, output):
    found = price_list().list_price_of(model)
    assert (None if found is None else found.output) == output


def test_the_users_price_counts_first_also_where_the_server_is_not_known(tmp_path):
    own = written(tmp_path, '"gpt-4o": {input: 1, output: 2}\n"q@localhost": {input: 1, output: 2}\n')
    assert price_list(own).list_price_of("openai:gpt-4o").output == 2
    assert price_list(own).list_price_of("openai:q") is None


# --- what tokens cost -------------------------------------------------------------------------------------------


def price(**changes) -> Price:
    return Price(**{"pattern": "m", "source": "f", "input": 2.0, "output": 8.0} | changes)


def test_tokens_cost_what_the_line_says_per_million():
    assert price().cost(1_000_000, 0) == 2.0
    assert price().cost(0, 500_000) == 4.0
    assert price().cost(0, 0) == 0


def test_cached_input_is_cheaper_where_the_line_says_so_and_never_otherwise():
    assert price(cached_input=0.5).cost(1_000_000, 0, 400_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5)
    assert price().cost(1_000_000, 0, 400_000) == 2.0


# --- a wrong file -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {input: -1, output: 1}", r"a.input = -1: must be USD per million tokens, a number of at least 0"),
        ("a: {input: .nan, output: 1}", r"a.input = nan: must be USD"),
        ("a: {input: .inf, output: 1}", r"a.input = inf: must be USD"),
        ("a: {input: true, output: 1}", r"a.input = True: must be USD"),
        ('a: {input: "2.5", output: 1}', r"a.input = '2.5': must be USD"),
        ("a: {input: 1}", r"a.output is missing: USD per million tokens; 0 where it is free"),
        ("a: {input: 1, output: 1, outptu: 2}", r"a.outptu is no known key \(did you mean 'output'\?\)"),
        ("a: 3", r"a = 3: write {input: USD, output: USD}, per million tokens"),
        ("1: {input: 1, output: 1}", r"prices: 1 is no model's name; put it in quotes"),
        ("- a", r'must hold lines as "gpt-4o-mini": {input: 0.15, output: 0.60} .*got \[\'a\'\]'),
        ("", r"must hold lines as .*got None"),
        ("a: {input: 1", r"no valid YAML"),
    ],
)
def test_a_wrong_file_is_named_with_what_to_write(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        prices_from(Path(path))
    assert path in str(caught.value)


def test_all_that_is_wrong_in_a_file_is_told_at_once(tmp_path):
    with pytest.raises(ConfigError) as caught:
        price_list(written(tmp_path, "a: {input: -1}\nb: 3\nc: {input: 1, output: 1}\n"))
    assert len(caught.value.problems) == 3


def test_a_missing_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_PRICES", str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match=r"none.yaml: prices: cannot be read: No such file"):
        price_list()


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: {input: 1, output: 2}\n")
    assert prices_from(path)[0].output == 2


def test_a_missing_price_says_which_line_to_write():
    models = [("receiver", "openai:q", "http://localhost:8000/v1"), ("provider", "qwen2_5_vl:Q", None)]
    error = no_price_known(models, "max_cost = 5")
    assert isinstance(error, BudgetError)
    told = str(error)
    assert "no price known for receiver openai:q@localhost:8000; provider qwen2_5_vl:Q, but max_cost = 5" in told
    assert '    "openai:q@localhost:8000": {input: USD, output: USD}\n' in told
    assert "INTERBENCH_PRICES=FILE" in told


# --- our file ---------------------------------------------------------------------------------------------------


def test_every_line_of_ours_names_the_vendors_server_and_hides_no_other():
    lines = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    for pattern in lines:
        assert pattern in ("simulated:*", "human", "human:*") or pattern.rpartition("@")[2] in VENDORS
        others = [other for other in lines if other != pattern and fnmatchcase(pattern, other)]
        assert not others, f"{pattern} is also meant by {others}"


def test_cached_input_never_costs_more():
    for line in yaml.safe_load(SHIPPED.read_text(encoding="utf-8")).values():
        assert line.get("cached_input", line["input"]) <= line["input"] <= line["output"]


def test_our_file_says_when_and_where_prices_were_read():
    text = SHIPPED.read_text(encoding="utf-8")
    assert "Read on 20" in text
    assert all(f"# {vendor}: https://" in text for vendor in ("OpenAI", "Anthropic", "Google"))
