"""Limits: where they are named, when they stop a run, and how far above one a run can end."""

from __future__ import annotations

import _thread
import asyncio
import json
import logging

import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.budget import (
    FIRST_LIVE,
    Budget,
    BudgetOptions,
    Limit,
    limits_from,
    limits_text,
    stopped_text,
)
from interbench_tasks.config import task_options_from
from interbench_tasks.engine import Engine
from interbench_tasks.errors import BudgetError, ConfigError
from interbench_tasks.hookspecs import Call
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.prices import Price
from interbench_tasks.records import Reply, ReplyRun, Usage
from interbench_tasks.rows import load_rows
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.runs.score import score_folder
from interbench_tasks.runs.usage_file import read_usage
from interbench_tasks.usage import Meter, RoleUsage, Spent
from tests.engine_fakes import GREEDY, episode, episodes, failed, record, user
from tests.harness_fakes import question_rows

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)
PRICE = Price(pattern="m", source="f", input=1.0, output=1.0)


def limit(name="max_calls", amount=10.0, **more) -> Limit:
    return Limit(**{"name": name, "amount": amount, "named_in": f"budget.{name}", "whole_command": False} | more)


def reply(tokens: int | None = 50, **run) -> Reply:
    usage = Usage(calls=1, input_tokens=tokens, output_tokens=tokens, reasoning_tokens=0)
    return Reply(text="x", usage=usage, run=ReplyRun(**run))


class Account:
    """A budget with one role, and ways to spend."""

    def __init__(self, *limits: Limit, price: Price | None = PRICE, **more) -> None:
        self.backend = SimulatedBackend()
        meter = Meter()
        meter.add(self.backend, "receiver", RoleUsage(role="receiver", model="m", price=price))
        self.budget = Budget(limits, meter, **more)

    def spend(self, doc_id: int, *replies: Reply, ends: bool = True) -> None:
        own = episode(doc_id)
        for one in replies:
            call = Call(messages=(user("?"),), settings=GREEDY, role="receiver", purpose="answer", episode=own)
            self.budget.count(self.backend, call, one)
        if ends:
            self.budget.episode_ended(record(own))


# --- where a limit is named -------------------------------------------------------------------------------------


def test_without_a_word_nothing_is_limited():
    assert limits_from(BudgetOptions()) == ()
    assert limits_text(()) == ""


def test_a_limit_of_the_yaml_holds_for_its_task():
    (found,) = limits_from(BudgetOptions(max_cost=5))
    assert (found.name, found.amount, found.whole_command) == ("max_cost", 5, False)
    assert found.named_in == "metadata.interbench.budget.max_cost"


def test_a_limit_of_the_environment_takes_its_place_and_holds_for_the_whole_command(monkeypatch):
    monkeypatch.setenv("INTERBENCH_MAX_COST", "0.5")
    monkeypatch.setenv("INTERBENCH_MAX_CALLS", "100")
    cost, calls = limits_from(BudgetOptions(max_cost=5))
    assert (cost.amount, cost.named_in, cost.whole_command) == (0.5, "INTERBENCH_MAX_COST", True)
    assert (calls.name, calls.amount) == ("max_calls", 100)


@pytest.mark.parametrize("word", ["off", "OFF", " off "])
def test_the_environment_can_lift_a_limit_of_the_yaml(monkeypatch, word):
    monkeypatch.setenv("INTERBENCH_MAX_CALLS", word)
    assert limits_from(BudgetOptions(max_calls=5)) == ()


@pytest.mark.parametrize("variable", ["INTERBENCH_MAX_COST", "INTERBENCH_MAX_TOKENS", "INTERBENCH_MAX_CALLS"])
@pytest.mark.parametrize("value", ["-1", "0", "a lot", "nan", "inf", "1e999", "5 USD"])
def test_what_is_no_limit_is_named(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=rf"{variable} = '{value}': must be .* above 0 \(off: no limit\)"):
        limits_from(BudgetOptions())


@pytest.mark.parametrize(("variable", "allowed"), [("INTERBENCH_MAX_COST", True), ("INTERBENCH_MAX_CALLS", False)])
def test_only_money_has_fractions(monkeypatch, variable, allowed):
    monkeypatch.setenv(variable, "2.5")
    if allowed:
        assert limits_from(BudgetOptions())[0].amount == 2.5
    else:
        with pytest.raises(ConfigError, match="a whole number above 0"):
            limits_from(BudgetOptions())


@pytest.mark.parametrize("variable", ["INTERBENCH_MAX_COST", "INTERBENCH_MAX_TOKENS", "INTERBENCH_MAX_CALLS"])
def test_a_limit_with_too_many_digits_is_a_typing_error(monkeypatch, variable):
    monkeypatch.setenv(variable, "9" * 400)
    with pytest.raises(ConfigError, match=r"\(off: no limit\), at most 1,000,000,000,000,000"):
        limits_from(BudgetOptions())


def test_all_wrong_variables_are_told_at_once(monkeypatch):
    monkeypatch.setenv("INTERBENCH_MAX_COST", "-1")
    monkeypatch.setenv("INTERBENCH_MAX_CALLS", "x")
    with pytest.raises(ConfigError) as caught:
        limits_from(BudgetOptions())
    assert [problem.key for problem in caught.value.problems] == ["INTERBENCH_MAX_COST", "INTERBENCH_MAX_CALLS"]


# --- in a task YAML ---------------------------------------------------------------------------------------------


def options_of(budget: dict | None = None, **block):
    block = {"protocol": "feedback_loop", "verifier": "choice", "roles": {"provider": "simulated:p,solve=0.9"}} | block
    if budget is not None:
        block["budget"] = budget
    config = {
        "task": "t",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 8, "temperature": 0},
        "metadata": {"interbench": block},
    }
    return task_options_from(config, where="t.yaml", offers=OFFERS)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"max_cost": -1}, r"metadata.interbench.budget.max_cost = -1: Input should be greater than 0"),
        ({"max_cost": 0}, r"metadata.interbench.budget.max_cost = 0: "),
        ({"max_tokens": 1.5}, r"metadata.interbench.budget.max_tokens = 1.5: "),
        ({"max_calls": 10**400}, r"metadata.interbench.budget.max_calls = 1000"),
        ({"max_calls": "many"}, r"metadata.interbench.budget.max_calls = 'many': "),
        ({"max_cots": 1}, r"budget.max_cots is no known key \(did you mean 'max_cost'\?\)"),
        ({"prices": "none.yaml"}, r"none.yaml: prices: cannot be read: No such file"),
    ],
)
def test_a_wrong_budget_is_told_with_its_key(budget, message):
    with pytest.raises(ConfigError, match=message):
        options_of(budget)


def test_a_wrong_variable_is_told_with_the_yaml(monkeypatch):
    monkeypatch.setenv("INTERBENCH_MAX_TOKENS", "-5")
    with pytest.raises(ConfigError, match=r"INTERBENCH_MAX_TOKENS = '-5': must be a whole number above 0"):
        options_of()


def test_a_file_of_prices_may_stand_in_the_yaml(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("a: {input: -1, output: 1}\n")
    with pytest.raises(ConfigError, match=r"p.yaml: a.input = -1"):
        options_of({"prices": str(path)})


# --- when a limit is used up ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "replies", "told"),
    [
        (
            limit("max_calls", 3),
            [reply(), reply(retries=1)],
            "max_calls = 3 requests (budget.max_calls), 3 requests used",
        ),
        (limit("max_tokens", 150), [reply(), reply()], "max_tokens = 150 tokens (budget.max_tokens), 200 tokens used"),
        (limit("max_cost", 0.0001), [reply()], "max_cost = 0.0001 USD (budget.max_cost), 0.0001 USD used"),
    ],
)
def test_a_used_up_limit_says_which_and_how_much(one, replies, told):
    account = Account(one)
    account.spend(0, *replies[:-1])
    assert account.budget.stop_reason() is None
    assert account.budget.stopped is None
    account.spend(1, replies[-1])
    assert account.budget.stop_reason() == f"the budget is used up: {told}"


def test_the_reason_stays_as_it_was_while_the_last_episodes_go_on():
    account = Account(limit("max_calls", 1))
    account.spend(0, reply())
    first = account.budget.stop_reason()
    account.spend(1, reply(), reply())
    assert account.budget.stop_reason() == first
    assert "3 requests used" in account.budget.used_up()


def test_a_used_up_limit_after_the_last_start_stopped_nothing():
    account = Account(limit("max_calls", 1))
    assert account.budget.stop_reason() is None
    account.spend(0, reply())
    assert account.budget.stopped is None


def test_replies_from_the_ledger_are_free():
    account = Account(limit("max_calls", 2), limit("max_tokens", 150))
    account.spend(0, *[reply(from_ledger=True)] * 100)
    assert account.budget.stop_reason() is None
    assert account.budget.spent == Spent()


def test_ranks_share_a_limit_equally():
    account = Account(limit("max_calls", 10), n_ranks=4)
    account.spend(0, reply(), reply())
    assert account.budget.stop_reason() is None
    account.spend(1, reply())
    assert "max_calls = 10 requests / 4 ranks (budget.max_calls), 3 requests used" in account.budget.stop_reason()


def test_what_earlier_tasks_used_counts_for_the_whole_command_only():
    before = Spent(requests=9)
    own = Account(limit("max_calls", 10), before=before)
    whole = Account(limit("max_calls", 10, whole_command=True), before=before)
    for account in (own, whole):
        account.spend(0, reply())
    assert own.budget.stop_reason() is None
    assert "10 requests used" in whole.budget.stop_reason()


def test_money_without_a_price_is_an_error_and_names_the_models():
    account = Account(limit("max_cost", 5), price=None)
    with pytest.raises(BudgetError, match=r"no price known for receiver m, but budget.max_cost = 5 needs one"):
        account.budget.check_prices()
    Account(limit("max_calls", 5), price=None).budget.check_prices()
    Account(limit("max_cost", 5)).budget.check_prices()


@pytest.mark.parametrize("name", ["max_tokens", "max_cost"])
def test_unknown_usage_is_told_once(caplog, name):
    account = Account(limit(name, 1000))
    with caplog.at_level(logging.WARNING):
        account.spend(0, reply(None), reply(None), reply())
    assert len(caplog.records) == 1
    assert f"does not say how many tokens a call took: budget.{name} counts only what is known" in caplog.text


def test_unknown_usage_does_not_matter_where_calls_are_limited(caplog):
    account = Account(limit("max_calls", 2))
    account.spend(0, reply(None), reply(None))
    assert not caplog.records
    assert account.budget.stop_reason() is not None


# --- how many may run at a time ---------------------------------------------------------------------------------


def test_without_a_limit_any_number_may_run():
    assert Account().budget.most_live() is None


def test_few_run_until_it_is_known_what_an_episode_takes():
    account = Account(limit("max_cost", 100))
    assert account.budget.most_live() == FIRST_LIVE
    account.spend(0, reply(), ends=False)
    assert account.budget.most_live() == FIRST_LIVE
    account.spend(0)
    assert account.budget.most_live() > 1000


def test_not_more_run_than_the_rest_will_pay_for():
    account = Account(limit("max_calls", 100))
    for doc_id in range(10):
        account.spend(doc_id, *[reply()] * 4)  # 40 requests, 4 an episode
    assert account.budget.most_live() == 15
    account.spend(10, *[reply()] * 59)
    assert account.budget.most_live() == 1  # one more may always run: stop_reason says when none may


def test_episodes_from_the_ledger_do_not_make_the_others_look_cheap():
    account = Account(limit("max_calls", 100))
    for doc_id in range(1000):
        account.spend(doc_id, reply(from_ledger=True))
    assert account.budget.most_live() == FIRST_LIVE
    account.spend(1000, *[reply()] * 10)
    assert account.budget.most_live() == 9


def test_a_model_that_costs_nothing_is_not_held_back():
    free = Price(pattern="m", source="f", input=0, output=0)
    account = Account(limit("max_cost", 1), price=free)
    account.spend(0, reply())
    assert account.budget.most_live() is None


@pytest.mark.parametrize("amount", [1, 2, 5])
def test_a_small_number_of_requests_starts_no_more_episodes_than_requests(amount):
    assert Account(limit("max_calls", amount)).budget.most_live() == amount


# --- in the engine ----------------------------------------------------------------------------------------------


class Counting(SimulatedBackend):
    """A simulation that knows how many asked it at a time."""

    def __init__(self) -> None:
        super().__init__("counting", latency_s=0.001)
        self.now = self.most = 0

    async def reply(self, call: Call) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().reply(call)
        finally:
            self.now -= 1


@pytest.mark.parametrize(
    ("may_be_live", "least", "most"), [(None, 4, 30), (lambda: None, 4, 30), (lambda: 3, 3, 3), (lambda: 0, 1, 1)]
)
def test_the_engine_keeps_to_the_further_limit_and_always_plays_one(may_be_live, least, most):
    backend = Counting()
    engine = Engine(progress=False, may_be_live=may_be_live)

    async def play(own):
        client = engine.client(backend, "receiver", GREEDY, own)
        return record(own, [await client.reply([own.question])])

    report = engine.run(episodes(30), play, on_record=lambda _: None, failed=failed)
    assert report.n_finished == 30
    assert least <= backend.most <= report.most_live <= most


def test_the_engine_tells_of_each_call_that_was_made_and_of_each_reply_from_the_ledger():
    class Half:
        """A ledger that knows every second question."""

        def get(self, key):
            self.n = getattr(self, "n", 0) + 1
            return Reply(text="known") if self.n % 2 else None

        async def put(self, key, kept):
            pass

    class Failing(SimulatedBackend):
        simulated = False

        async def reply(self, call: Call) -> Reply:
            raise ValueError("down")

    told: list[tuple[str, str, bool]] = []
    engine = Engine(
        progress=False,
        ledger=Half(),
        on_reply=lambda backend, call, got: told.append((call.role, got.status, got.run.from_ledger)),
    )
    backend = Failing()

    async def play(own):
        return record(own, [await engine.client(backend, "receiver", GREEDY, own).reply([own.question])])

    report = engine.run(episodes(6), play, on_record=lambda _: None, failed=failed)
    assert sorted(told) == [("receiver", "error", False)] * 3 + [("receiver", "ok", True)] * 3
    assert (report.calls, report.ledger_hits) == (3, 3)


# --- in a run ---------------------------------------------------------------------------------------------------

N = 80


def plan_of(folder, *, n=N, budget=None, **block) -> RunPlan:
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in question_rows(n)), encoding="utf-8")
    more = {name: block.pop(name) for name in ("rank", "world_size", "spent_before", "wanted") if name in block}
    return RunPlan(
        task="t",
        options=options_of(budget, **block),
        data=load_rows("json", name=None, split="test", options={"data_files": str(data)}),
        **{"wanted": [(doc, 0) for doc in range(n)], **more},
        n_total=n,
        run_id="r",
        folder=folder / "run",
    )


def play(plan: RunPlan, receiver=None):
    receiver = receiver or SimulatedBackend(accuracy=0.4, invalid=0)
    return play_run(plan, receiver=receiver, manager=MANAGER, offers=OFFERS, harness_model=lambda role: None)


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


@pytest.mark.parametrize("name", ["max_calls", "max_tokens"])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.6, 0.9])
def test_a_run_ends_at_its_limit_or_about_one_episode_above(tmp_path, name, share):
    whole = play(plan_of(tmp_path)).spent
    amount = int({"max_calls": whole.requests, "max_tokens": whole.tokens}[name] * share)
    played = play(plan_of(tmp_path, budget={name: amount}))
    used = {"max_calls": played.spent.requests, "max_tokens": played.spent.tokens}[name]
    one = {"max_calls": 5, "max_tokens": 5 * 80}[name]  # the most that an episode takes
    first_ones_use_it_all = amount < FIRST_LIVE * one
    assert amount <= used < amount + (FIRST_LIVE if first_ones_use_it_all else 3) * one  # on a busy machine, three
    assert played.report.n_skipped > 0
    assert f"{name} = " in played.usage["stopped"]


def test_what_was_begun_is_finished_and_the_rest_is_skipped_and_unscored(tmp_path):
    played = play(plan_of(tmp_path, budget={"max_calls": 60}))
    records = list(read_records(tmp_path / "run"))
    assert len(records) == N
    skipped = [found for found in records if found.status == "skipped"]
    assert len(skipped) == played.report.n_skipped > 30
    assert {found.stop_reason for found in skipped} == {"not_started"}
    assert {found.error for found in skipped} == {skipped[0].error}
    finished = [found for found in records if found.status == "finished"]
    assert all(found.ends or found.stop_reason != "played" for found in finished)
    metrics = score_folder(tmp_path / "run", OFFERS)
    assert metrics["finished"] is False
    assert metrics["metrics"]["accuracy"]["n"] + metrics["metrics"]["accuracy"]["unscored"] == N
    assert metrics["metrics"]["accuracy"]["unscored"] == len(skipped)


def test_a_run_within_its_budget_is_not_touched_by_it(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    # replies that take time: else one episode may end before the next begins, and none are live together
    receivers = [SimulatedBackend(accuracy=0.4, invalid=0, latency_s=0.02) for _ in range(2)]
    free = play(plan_of(one), receivers[0])
    limited = play(plan_of(two, budget={"max_calls": 10_000, "max_cost": 1}), receivers[1])
    assert limited.summaries == free.summaries
    assert limited.usage["stopped"] is None
    assert limited.usage["limits"]["max_calls"] == {
        "amount": 10_000,
        "named_in": "metadata.interbench.budget.max_calls",
    }
    assert limited.report.most_live > FIRST_LIVE


def test_usage_counts_what_the_records_hold(tmp_path):
    played = play(plan_of(tmp_path))
    records = list(read_records(tmp_path / "run"))
    roles = played.usage["roles"]
    for role in ("receiver", "provider"):
        own = [found.usage()[role] for found in records if role in found.usage()]
        assert roles[role]["calls"] == sum(used.calls for used in own)
        assert roles[role]["input_tokens"] == sum(used.input_tokens for used in own)
        assert roles[role]["output_tokens"] == sum(used.output_tokens for used in own)
    assert sum(role["calls"] for role in roles.values()) == played.report.calls
    assert read_usage(tmp_path / "run") == played.usage


def test_several_providers_have_their_own_lines(tmp_path):
    played = play(plan_of(tmp_path, roles={}, providers=["simulated:a,solve=0.9", "simulated:b,solve=0.2"]))
    assert list(played.usage["roles"]) == ["receiver", "provider@a", "provider@b"]
    assert played.usage["roles"]["provider@a"]["calls"] > played.usage["roles"]["provider@b"]["calls"] > 0


def test_a_model_without_a_price_is_an_error_before_anything_is_asked(tmp_path):
    class Unpriced(SimulatedBackend):
        n_calls = 0

        async def reply(self, call: Call) -> Reply:
            self.n_calls += 1
            return await super().reply(call)

    receiver = Unpriced()
    receiver.name = "own:model"
    with pytest.raises(BudgetError, match=r"no price known for receiver own:model, but .*max_cost = 5 needs one"):
        play(plan_of(tmp_path, budget={"max_cost": 5}), receiver)
    assert receiver.n_calls == 0
    prices = tmp_path / "prices.yaml"
    prices.write_text('"own:*": {input: 0, output: 0}\n')
    assert play(plan_of(tmp_path, budget={"max_cost": 5, "prices": str(prices)}), receiver).usage["stopped"] is None


def test_money_stops_a_run(tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text('"simulated:*": {input: 1000, output: 1000}\n')
    played = play(plan_of(tmp_path, budget={"max_cost": 5, "prices": str(prices)}))
    assert 5 <= played.spent.cost < 5.5
    assert "max_cost = 5.00 USD" in played.usage["stopped"]
    roles = played.usage["roles"]
    assert sum(role["cost_usd"] for role in roles.values()) == pytest.approx(played.spent.cost)


def test_ranks_together_keep_to_the_limit(tmp_path):
    total = 0
    for rank in range(3):
        folder = tmp_path / str(rank)
        folder.mkdir()
        wanted = [(doc, 0) for doc in range(rank, N, 3)]
        played = play(plan_of(folder, budget={"max_calls": 60}, rank=rank, world_size=3, wanted=wanted))
        assert "60 requests / 3 ranks" in played.usage["stopped"]
        total += played.spent.requests
    assert 60 <= total < 60 + 3 * 10


def test_a_second_task_of_the_command_has_what_the_first_left(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_MAX_CALLS", "60")
    first = play(plan_of(tmp_path, n=20))
    assert first.usage["stopped"] is None
    assert 20 < first.spent.requests < 60
    second = play(plan_of(tmp_path, n=20, spent_before=first.spent))
    assert 60 <= first.spent.requests + second.spent.requests < 75
    assert second.usage["stopped"] is not None
    third = play(plan_of(tmp_path, n=20, spent_before=Spent(requests=60)))
    assert (third.spent.requests, third.report.n_skipped) == (0, 20)


def test_the_second_pass_is_stopped_too_and_the_first_stays(tmp_path):
    block = {"arms": ["detail", "simple", "mismatched"], "flip_sample": 5}
    whole = play(plan_of(tmp_path, n=40, **block))
    n_first = sum(
        turn.round == 0 or turn.branch in ("detail", "simple")
        for found in read_records(tmp_path / "run")
        if found.stop_reason != "flip_played"
        for turn in found.turns
    )
    (tmp_path / "run" / "episodes.jsonl").unlink()
    budget = {"max_calls": int((n_first + whole.spent.requests) / 2)}
    played = play(plan_of(tmp_path, n=40, budget=budget, **block))
    assert played.report.n_skipped == 0
    assert played.usage["stopped"] is not None
    assert {found.status for found in read_records(tmp_path / "run")} == {"finished"}
    assert score_folder(tmp_path / "run", OFFERS)["finished"] is False


def test_usage_is_kept_of_a_run_that_was_stopped(tmp_path):
    class Interrupting(SimulatedBackend):
        async def reply(self, call: Call) -> Reply:
            if call.episode.doc_id == 40:  # as Ctrl-C does: in the main thread, while this call waits
                _thread.interrupt_main()
                await asyncio.sleep(60)
            return await super().reply(call)

    with pytest.raises(KeyboardInterrupt):
        play(plan_of(tmp_path, engine={"max_live_episodes": 1}), Interrupting(accuracy=1.0, invalid=0))
    assert read_usage(tmp_path / "run")["roles"]["receiver"]["calls"] == 40


# --- in words ---------------------------------------------------------------------------------------------------


def test_the_limits_are_told_before_a_run_and_how_far_above_it_can_end():
    told = limits_text([limit("max_cost", 5), limit("max_calls", 12000)], n_ranks=2)
    assert "max_cost = 5.00 USD (budget.max_cost), max_calls = 12,000 requests (budget.max_calls)" in told
    assert "each of 2 ranks has an equal share" in told
    assert "end above it by about one episode" in told


@pytest.mark.parametrize(
    ("n_skipped", "ledger", "words"),
    [
        (1204, True, ("1,204 of 3,940 episodes were not started", "comes from the ledger")),
        (1204, False, ("no fair sample", "the ledger is off: it would pay for all again")),
        (0, True, ("the second pass", "is not complete")),
    ],
)
def test_a_stopped_run_says_what_is_missing_and_how_to_go_on(n_skipped, ledger, words):
    told = stopped_text("the budget is used up: X", n_skipped=n_skipped, n_wanted=3940, ledger=ledger)
    assert told.startswith("the budget is used up: X. ")
    assert "Run the same command again to go on, best with a larger budget" in told
    assert all(word in told for word in (*words, "the results are partial"))
