"""What a run used: counted per role, kept in usage.json, told in a line each."""

from __future__ import annotations

import json

import pytest

from interbench_tasks.backends.anthropic_bodies import answer_from as anthropic_answer
from interbench_tasks.backends.chat_bodies import answer_from as chat_answer
from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.budget import Budget
from interbench_tasks.hookspecs import Call
from interbench_tasks.prices import Price
from interbench_tasks.records import UNKNOWN_USAGE, Reply, ReplyRun, Usage
from interbench_tasks.runs.usage_file import (
    merge_usage,
    merged,
    read_usage,
    usage_from,
    usage_lines,
    write_usage,
)
from interbench_tasks.usage import Meter, RoleUsage, Spent, Tokens
from tests.engine_fakes import GREEDY, episode, user

PRICE = Price(pattern="m", source="f.yaml", input=2.0, output=8.0, cached_input=1.0)


def reply(taken: int | None = 100, given: int | None = 10, *, status="ok", **run) -> Reply:
    usage = Usage(calls=1, input_tokens=taken, output_tokens=given, reasoning_tokens=None)
    return Reply(text="x", status=status, usage=usage, run=ReplyRun(**run))


def call(role="receiver") -> Call:
    return Call(messages=(user("?"),), settings=GREEDY, role=role, purpose="answer", episode=episode(0))


def role_usage(*replies: Reply, price: Price | None = PRICE) -> RoleUsage:
    found = RoleUsage(role="receiver", model="m", price=price)
    for one in replies:
        found.count(one)
    return found


# --- counting ---------------------------------------------------------------------------------------------------


def test_each_reply_is_counted_with_its_failed_attempts():
    found = role_usage(reply(), reply(retries=2), reply(0, 0, status="error", retries=1))
    assert (found.calls, found.failed_calls, found.failed_attempts) == (3, 1, 3)
    assert (found.tokens.input, found.tokens.output) == (200, 20)
    assert found.spent == Spent(requests=6, tokens=220, cost=pytest.approx((200 * 2 + 20 * 8) / 1e6))


def test_a_reply_from_the_ledger_costs_nothing_and_saved_what_it_once_took():
    found = role_usage(reply(), reply(1000, 100, from_ledger=True))
    assert (found.calls, found.ledger_replies) == (1, 1)
    assert found.spent == role_usage(reply()).spent
    assert found.to_json()["from_ledger"]["cost_usd"] == pytest.approx((1000 * 2 + 100 * 8) / 1e6)


@pytest.mark.parametrize("unknown", [reply(None, None), reply(None, 5), reply(5, None)])
def test_unknown_usage_is_unknown_and_what_is_known_counts(unknown):
    found = role_usage(reply(), unknown)
    assert found.calls_without_usage == 1
    known = (unknown.usage.input_tokens or 0) + (unknown.usage.output_tokens or 0)
    assert found.spent.tokens == 110 + known
    assert found.spent.requests == 2


def test_input_from_the_servers_cache_costs_less():
    found = role_usage(reply(1_000_000, 0, cached_input_tokens=400_000))
    assert found.to_json()["cost_usd"] == pytest.approx(0.6 * 2 + 0.4 * 1)
    assert found.tokens.cached_input == 400_000


def test_no_server_can_cache_more_than_it_was_given():
    tokens = Tokens()
    tokens.add(reply(10, 0, cached_input_tokens=50))
    assert (tokens.input, tokens.cached_input) == (10, 10)


def test_without_a_price_the_cost_is_unknown_and_not_zero():
    found = role_usage(reply(), price=None)
    assert found.to_json()["cost_usd"] is None
    assert found.spent.cost == 0  # what a limit can be held against: Budget.check_prices refuses it before


def test_one_backend_may_play_two_roles():
    meter, backend = Meter(), SimulatedBackend()
    for role in ("receiver", "provider"):
        meter.add(backend, role, RoleUsage(role=role, model="m"))
    meter.count(backend, call("receiver"), reply())
    meter.count(backend, call("provider"), reply())
    meter.count(backend, call("provider"), reply())
    assert {role.role: role.calls for role in meter.roles} == {"receiver": 1, "provider": 2}


def test_two_providers_are_counted_apart():
    meter, backends = Meter(), {label: SimulatedBackend("same") for label in ("a", "b")}
    for label, backend in backends.items():
        meter.add(backend, "provider", RoleUsage(role=f"provider@{label}", model="m"))
    meter.count(backends["b"], call("provider"), reply())
    assert {role.role: role.calls for role in meter.roles} == {"provider@a": 0, "provider@b": 1}
    assert meter.spent.requests == 1


def test_a_backend_that_nobody_named_is_counted_too():
    meter = Meter()
    meter.count(SimulatedBackend("own"), call("judge"), reply())
    assert [(role.role, role.model, role.price) for role in meter.roles] == [("judge", "simulated:own", None)]


# --- what servers say of their cache ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("details", "expected"),
    [({"cached_tokens": 64}, 64), ({"cached_tokens": 0}, 0), ({}, None), (None, None), ({"cached_tokens": -1}, None)],
)
def test_chat_apis_tell_cached_input(details, expected):
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details}
    body = {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}], "usage": usage}
    answer = chat_answer(json.dumps(body).encode())
    assert answer.cached_input_tokens == expected
    assert answer.usage.input_tokens == 100


@pytest.mark.parametrize(("usage", "expected"), [({"cache_read_input_tokens": 30}, 30), ({}, None)])
def test_anthropic_tells_cached_input(usage, expected):
    body = {"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn"}
    body["usage"] = {"input_tokens": 70, "output_tokens": 5, **usage}
    answer = anthropic_answer(json.dumps(body).encode())
    assert answer.cached_input_tokens == expected
    assert answer.usage.input_tokens == 70 + (expected or 0)


# --- usage.json -------------------------------------------------------------------------------------------------


def content(*replies: Reply, price: Price | None = PRICE, **role) -> dict:
    meter, backend = Meter(), SimulatedBackend()
    meter.add(backend, "receiver", RoleUsage(**{"role": "receiver", "model": "m", "price": price} | role))
    for one in replies:
        meter.count(backend, call(), one)
    return usage_from(Budget((), meter))


def test_usage_is_written_and_read_back(tmp_path):
    written = content(reply(), reply(retries=1), reply(from_ledger=True))
    write_usage(tmp_path, written, rank=0, world_size=1)
    assert [path.name for path in tmp_path.iterdir()] == ["usage.json"]
    assert read_usage(tmp_path) == written
    role = written["roles"]["receiver"]
    assert role["price"] == {"line": "m", "file": "f.yaml", "input": 2.0, "cached_input": 1.0, "output": 8.0}
    assert (written["limits"], written["stopped"]) == ({}, None)


def test_a_folder_without_usage_tells_nothing(tmp_path):
    assert read_usage(tmp_path) is None
    merge_usage(tmp_path)
    assert not list(tmp_path.iterdir())


def test_ranks_are_added_up_before_and_after_they_are_merged(tmp_path):
    for rank in range(3):
        write_usage(tmp_path, content(*[reply()] * (rank + 1)), rank=rank, world_size=3)
    before = read_usage(tmp_path)
    merge_usage(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["usage.json"]
    assert read_usage(tmp_path) == before
    role = before["roles"]["receiver"]
    assert (role["calls"], role["input_tokens"], role["output_tokens"]) == (6, 600, 60)
    assert role["cost_usd"] == pytest.approx(6 * (200 + 80) / 1e6)


@pytest.mark.parametrize("dead", range(3))
def test_without_the_usage_of_a_rank_that_died_that_of_the_run_is_unknown_not_less(tmp_path, dead):
    for rank in {0, 1, 2} - {dead}:
        write_usage(tmp_path, content(reply()), rank=rank, world_size=3)
    assert read_usage(tmp_path) is None


def test_a_cost_that_one_rank_does_not_know_is_unknown():
    both = merged([content(reply()), content(reply(), price=None)])
    assert both["roles"]["receiver"]["cost_usd"] is None
    assert both["roles"]["receiver"]["calls"] == 2


def test_a_role_that_one_rank_alone_had_is_kept_and_the_reason_to_stop_too():
    one, two = content(reply()), content(reply(), role="provider")
    two["stopped"] = "the budget is used up"
    both = merged([one, two])
    assert set(both["roles"]) == {"receiver", "provider"}
    assert both["stopped"] == "the budget is used up"


# --- in words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "line"),
    [
        (content(reply()), "receiver m: 1 call, 100 input and 10 output tokens, 0.00028 USD"),
        (
            content(*[reply(1_000_000, 1000)] * 2),
            "receiver m: 2 calls, 2,000,000 input and 2,000 output tokens, 4.02 USD",
        ),
        (
            content(reply(), reply(0, 0, status="error", retries=3)),
            "receiver m: 2 calls (1 failed) and 3 failed attempts, 100 input and 10 output tokens, 0.00028 USD",
        ),
        (content(reply(None, None)), "receiver m: 1 call, tokens of 1 call unknown"),
        (
            content(reply(), reply(None, None)),
            "receiver m: 2 calls, 100 input and 10 output tokens, tokens of 1 call unknown, "
            "0.00028 USD for what is known",
        ),
        (content(reply(), price=None), "receiver m: 1 call, 100 input and 10 output tokens, no price known"),
        (content(), "receiver m: 0 calls"),
        (
            content(reply(1_000_000, 0, from_ledger=True)),
            "receiver m: 0 calls, 1 reply from the ledger (saved 2.00 USD)",
        ),
    ],
)
def test_a_role_is_told_in_one_line(used, line):
    assert usage_lines(used) == [line]


def test_reasoning_is_told_as_a_part_of_the_output():
    told = Reply(text="x", usage=Usage(calls=1, input_tokens=1, output_tokens=90, reasoning_tokens=80))
    assert "90 output tokens (80 reasoning)" in usage_lines(content(told))[0]


def test_all_roles_are_added_up_where_money_is_known():
    used = content(reply(1_000_000, 0))
    used["roles"]["provider"] = used["roles"]["receiver"]
    assert usage_lines(used)[-1] == "all roles: 4.00 USD"
    used["roles"]["judge"] = content(reply(), price=None)["roles"]["receiver"]
    assert usage_lines(used)[-1] == "all roles: 4.00 USD, and the roles without a known price"


def test_an_unknown_usage_is_not_counted_as_zero_tokens():
    assert UNKNOWN_USAGE.input_tokens is None
    assert "0 input" not in usage_lines(content(Reply(text="x")))[0]
