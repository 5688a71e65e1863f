"""What becomes of a call: failing batches, identical calls, the ledger."""

from __future__ import annotations

import asyncio

import pytest

from interbench_tasks.engine import BatchReport, Engine
from interbench_tasks.engine.failures import text_of_failure
from interbench_tasks.engine.halving import replies_from
from interbench_tasks.hookspecs import Call
from interbench_tasks.records import Message, Reply
from tests.engine_fakes import (
    GREEDY,
    Api,
    Ledger,
    Local,
    asks,
    episode,
    episodes,
    failed,
    play_all,
    record,
    user,
    within,
)

NEVER_S = 60.0
"""A max_wait_s that no test can wait for: what leaves, leaves by the other rules."""


def quiet(**settings) -> Engine:
    return Engine(progress=False, **settings)


def call(text: str) -> Call:
    return Call(messages=(user(text),), settings=GREEDY, role="receiver", purpose="answer", episode=episode(0))


# ---------------------------------------------------------------- failing batches


def test_a_failing_batch_is_halved_until_the_guilty_call_is_alone():
    model = Local(8)
    calls = [call("poison" if number == 5 else str(number)) for number in range(8)]
    replies = replies_from(model, calls, lambda: False)
    assert [reply.status for reply in replies] == ["ok"] * 5 + ["error"] + ["ok"] * 2
    assert [reply.text for reply in replies] == ["0", "1", "2", "3", "4", "", "6", "7"]
    assert replies[5].error == "ValueError: cannot digest poison"
    assert model.sizes == [8, 4, 4, 2, 1, 1, 2]


@pytest.mark.parametrize("n_guilty", [1, 2, 8])
def test_only_guilty_calls_of_a_batch_fail(n_guilty):
    engine, model = quiet(), Local(8)
    items = [episode(n, question=f"poison {n}" if n < n_guilty else None) for n in range(8)]
    played = play_all(engine, items, asks(engine, engine.batched(model)))
    statuses = {one.episode_id: one.turns[0].reply.status for one in played.records}
    assert statuses == {str(n): "error" if n < n_guilty else "ok" for n in range(8)}
    assert played.report.failed_calls == n_guilty
    assert played.report.n_finished == 8


def test_a_model_that_cancels_itself_fails_its_calls_only():
    class Cancels(Local):
        def generate(self, calls):
            raise asyncio.CancelledError

    replies = replies_from(Cancels(), [call("a"), call("b")], lambda: False)
    assert [reply.error for reply in replies] == ["CancelledError"] * 2


@pytest.mark.parametrize("given", [0, 1, 3])
def test_a_batch_with_the_wrong_number_of_replies_fails_for_all_its_calls(given):
    class Miscounts(Local):
        def generate(self, calls):
            super().generate(calls)
            return [Reply(text="x")] * given

    model = Miscounts()
    replies = replies_from(model, [call("a"), call("b")], lambda: False)
    assert [reply.status for reply in replies] == ["error", "error"]
    assert replies[0].error == f"local gave {given} replies to a batch of 2: nobody knows which belongs to which"
    assert model.sizes == [2]


def test_what_is_no_reply_fails_its_own_call_only():
    class Strings(Local):
        def generate(self, calls):
            return [Reply(text="fine"), "a string"]

    replies = replies_from(Strings(), [call("a"), call("b")], lambda: False)
    assert [reply.status for reply in replies] == ["ok", "error"]
    assert replies[1].error == "local gave a str, no Reply"


def test_halving_ends_when_the_run_is_stopped():
    model, answers = Local(), iter([False, True, True])
    replies = replies_from(model, [call("poison"), call("b")], lambda: next(answers))
    assert model.sizes == [2]
    assert [reply.error for reply in replies] == ["the run was stopped"] * 2


def test_the_failed_batch_is_let_go_before_its_halves_run():
    import weakref

    class Tensor:
        pass

    held = []

    class Heavy(Local):
        def generate(self, calls):
            if held:
                assert held[0]() is None
            tensor = Tensor()
            held[:] = [weakref.ref(tensor)]
            if len(calls) > 1:
                raise MemoryError("out of memory")
            return super().generate(calls)

    replies = replies_from(Heavy(), [call(str(number)) for number in range(4)], lambda: False)
    assert [reply.status for reply in replies] == ["ok"] * 4


def test_a_failure_text_is_short_and_redacted_before_it_is_cut(monkeypatch):
    monkeypatch.setenv("X_API_KEY", "secret-secret-secret")
    text = text_of_failure(ValueError("y" * 475 + "secret-secret-secret"))
    assert len(text) <= 500
    assert "secret" not in text


def test_an_error_that_cannot_tell_its_text_is_told_by_its_kind():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert text_of_failure(Mute()) == "Mute"


# ---------------------------------------------------------------- identical calls


@pytest.mark.parametrize("n", [2, 5, 30])
def test_identical_calls_in_flight_are_made_once(n):
    engine, model, api = quiet(max_wait_s=NEVER_S), Local(8), Api(0.02)
    items = [episode(number, question="the same") for number in range(n)]
    played = within(10, lambda: play_all(engine, items, asks(engine, engine.batched(model), api)))
    assert (model.n_calls, len(api.calls)) == (1, 1)
    assert played.report.shared_calls == 2 * (n - 1)
    assert all(texts == ["THE SAME", "[THE SAME]"] for texts in played.texts().values())


@pytest.mark.parametrize("max_live", [2, 3, 4, 7])
def test_parked_sharers_count_as_parked(max_live):
    for _ in range(10):  # whether the last one to be parked shares a call is a matter of chance
        engine, model = quiet(max_wait_s=NEVER_S, max_live=max_live), Local(8)
        backend = engine.batched(model)
        items = [episode(number, question=f"pair {number // 2}") for number in range(12)]
        played = within(10, lambda: play_all(engine, items, asks(engine, backend, backend)))  # noqa: B023 - used at once
        assert played.report.n_finished == 12


@pytest.mark.parametrize("different", ["repeat", "settings", "history", "backend"])
def test_calls_that_differ_are_not_shared(different):
    engine, api, other = quiet(), Api(0.02), Api(0.02, name="other")
    warm = type(GREEDY)(max_new_tokens=16, temperature=0.7)

    async def play(one):
        second = one.doc_id == 1
        client = engine.client(
            other if different == "backend" and second else api,
            "receiver",
            warm if different == "settings" and second else GREEDY,
            one,
        )
        before = [user("hello"), Message(role="assistant", content=("hi",))]
        return record(one, [await client.reply([*(before if different == "history" and second else []), user("q")])])

    items = [episode(0), episode(1, repeat=1 if different == "repeat" else 0)]
    report = play_all(engine, items, play).report
    assert (report.calls, report.shared_calls) == (2, 0)


def test_an_error_is_shared_by_those_who_waited_for_it():
    engine, api = quiet(), Api(0.02)
    items = [episode(number, question="poison") for number in range(3)]
    played = play_all(engine, items, asks(engine, api))
    assert len(api.calls) == 1
    assert [one.turns[0].reply.status for one in played.records] == ["error"] * 3


@pytest.mark.parametrize("first", [True, False])
def test_a_sharer_that_goes_away_takes_the_call_from_nobody(first):
    engine, model = quiet(max_wait_s=NEVER_S), Local(8)
    backend, api = engine.batched(model), Api(0.05)

    async def play(one):
        ask = engine.client(backend, "receiver", GREEDY, one).reply([user("the same")])
        if (one.doc_id == 0) == first:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask, 0.02)
            return record(one)
        replies = await asyncio.gather(ask, engine.client(api, "provider", GREEDY, one).reply([one.question]))
        return record(one, replies)

    played = within(10, lambda: play_all(engine, episodes(2), play))
    assert played.texts()["1" if first else "0"][0] == "THE SAME"
    assert model.sizes == [1]


def test_a_call_that_everybody_gave_up_is_not_made():
    engine, model, api = quiet(max_wait_s=NEVER_S), Local(8), Api(0.1)
    backend = engine.batched(model)

    async def play(one):
        keep = asyncio.ensure_future(engine.client(api, "provider", GREEDY, one).reply([one.question]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.client(backend, "receiver", GREEDY, one).reply([user("given up")]), 0.02)
        await keep
        return record(one, [await engine.client(backend, "receiver", GREEDY, one).reply([user("given up")])])

    played = within(10, lambda: play_all(engine, episodes(1), play))
    assert played.texts() == {"0": ["GIVEN UP"]}
    assert model.sizes == [1]


def test_a_call_given_up_while_its_batch_is_generated_hurts_no_other():
    engine, model = quiet(max_wait_s=NEVER_S), Local(8, batch_s=0.1)
    backend = engine.batched(model)

    async def play(one):
        ask = engine.client(backend, "receiver", GREEDY, one).reply([one.question])
        if one.doc_id == 0:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask, 0.05)
            return record(one)
        return record(one, [await ask])

    played = within(10, lambda: play_all(engine, episodes(3), play))
    assert played.texts() == {"0": [], "1": ["QUESTION 1"], "2": ["QUESTION 2"]}


# ---------------------------------------------------------------- the ledger


def test_a_remembered_reply_costs_no_call_and_says_so():
    ledger, model = Ledger(), Local(8)
    for expected in (12, 0):
        engine, api = quiet(ledger=ledger), Api()
        played = play_all(engine, episodes(6), asks(engine, engine.batched(model), api))
        assert played.report.calls == expected
        assert played.report.ledger_hits == 12 - expected
        assert {turn.reply.run.from_ledger for one in played.records for turn in one.turns} == {expected == 0}
        assert played.texts()["4"] == ["QUESTION 4", "[QUESTION 4]"]
    assert model.n_calls == 6


def test_a_remembered_reply_needs_no_slot():
    ledger = Ledger()
    play_all(first := quiet(ledger=ledger), [episode(1)], asks(first, Api()))
    engine, api = quiet(ledger=ledger), Api(0.3, slots=1)
    played = play_all(engine, [episode(0), episode(1)], asks(engine, api))
    assert played.ids == ["1", "0"]


def test_a_reply_is_kept_before_the_episode_sees_it():
    engine, model, ledger = quiet(ledger=(ledger := Ledger(0.02))), Local(8), ledger
    backend, seen = engine.batched(model), []

    async def play(one):
        reply = await engine.client(backend, "receiver", GREEDY, one).reply([one.question])
        seen.append(reply.text in {kept.text for kept in ledger.kept.values()})
        return record(one)

    play_all(engine, episodes(10), play)
    assert seen == [True] * 10


@pytest.mark.parametrize("status", ["error", "empty", "skipped"])
def test_what_is_no_reply_of_the_model_is_not_kept(status):
    class Says(Api):
        async def reply(self, call):
            return Reply(text="", status=status)

    class Generates(Local):
        def generate(self, calls):
            return [Reply(text="", status=status) for _ in calls]

    ledger = Ledger()
    engine = quiet(ledger=ledger)
    play_all(engine, episodes(3), asks(engine, Says(), engine.batched(Generates())))
    assert ledger.kept == {}


def test_identical_calls_share_while_the_reply_is_being_kept():
    ledger = Ledger(0.1)
    engine, api = quiet(ledger=ledger), Api()

    async def play(one):
        await asyncio.sleep(0.03 * one.doc_id)  # the second and third come while the first is being written
        return await asks(engine, api)(one)

    played = play_all(engine, [episode(number, question="the same") for number in range(3)], play)
    assert len(api.calls) == 1
    assert played.report.shared_calls == 2


def test_a_slow_ledger_does_not_let_a_half_empty_batch_leave():
    engine, model = quiet(ledger=Ledger(0.03), max_wait_s=NEVER_S), Local(8)
    backend, other = engine.batched(model), engine.batched(Local(8, name="other"))

    async def play(one):
        receiver = engine.client(backend, "receiver", GREEDY, one)
        if one.doc_id < 3:
            return record(one, [await receiver.reply([one.question])])
        first = await engine.client(other, "receiver", GREEDY, one).reply([one.question])
        return record(one, [await receiver.reply([user(first.text)])])

    within(10, lambda: play_all(engine, episodes(8), play))
    assert model.sizes == [8]


@pytest.mark.parametrize("verb", ["get", "put"])
def test_a_ledger_that_fails_stops_the_run(verb):
    class Broken(Ledger):
        def get(self, key):
            if verb == "get":
                raise OSError("the ledger is gone")
            return None

        async def put(self, key, reply, backend=None):
            raise OSError("the ledger is gone")

    engine, api, kept = quiet(ledger=Broken()), Api(), []
    with pytest.raises(OSError, match="the ledger is gone"):
        engine.run(episodes(500), asks(engine, api), on_record=kept.append, failed=failed)
    assert len(api.calls) < 100
    assert not [one for one in kept if one.status == "finished"]


def test_an_unused_batch_report_has_no_fill():
    assert BatchReport(model="m", batch_size=8, n_batches=0, n_calls=0, busy_s=0.0).fill is None
