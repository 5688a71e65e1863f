"""When a batch leaves, what is in it, and how many episodes are live."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from interbench_tasks.engine import Engine
from interbench_tasks.engine.floor import Floor, Live
from interbench_tasks.hookspecs import Call
from interbench_tasks.records import Reply, ReplyRun
from tests.engine_fakes import (
    GREEDY,
    Api,
    Local,
    Person,
    asks,
    episode,
    episodes,
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


# ---------------------------------------------------------------- when a batch leaves


@pytest.mark.parametrize(("n", "sizes"), [(16, [8, 8]), (20, [8, 8, 4]), (3, [3]), (1, [1])])
def test_batches_are_full_and_the_rest_leaves_when_all_are_parked(n, sizes):
    engine, model = quiet(max_wait_s=NEVER_S), Local(8)
    played = within(10, lambda: play_all(engine, episodes(n), asks(engine, engine.batched(model))))
    assert model.sizes == sizes
    assert played.report.batches[0].fill == pytest.approx(n / 8 / len(sizes))


def test_batches_stay_full_over_two_rounds():
    engine, model = quiet(max_wait_s=NEVER_S), Local(8, batch_s=0.003)
    backend = engine.batched(model)
    within(10, lambda: play_all(engine, episodes(160), asks(engine, backend, backend)))
    assert model.n_calls == 320
    assert model.sizes[:38] == [8] * 38  # an odd episode may be left for the end


def test_arms_side_by_side_park_their_episode_once():
    engine, model = quiet(max_wait_s=NEVER_S, max_live=2), Local(8)
    backend = engine.batched(model)

    async def play(one):
        client = engine.client(backend, "receiver", GREEDY, one)
        return record(one, await asyncio.gather(*(client.reply([user(f"{one.id}{arm}")]) for arm in "abc")))

    within(10, lambda: play_all(engine, episodes(2), play))
    assert model.sizes == [6]


def test_one_episode_can_fill_batches_with_its_arms():
    engine, model = quiet(max_wait_s=NEVER_S), Local(4)
    backend = engine.batched(model)

    async def play(one):
        client = engine.client(backend, "receiver", GREEDY, one)
        return record(one, await asyncio.gather(*(client.reply([user(arm)]) for arm in "abcdefghij")))

    within(10, lambda: play_all(engine, episodes(1), play))
    assert model.sizes == [4, 4, 2]


def test_a_batch_waits_for_an_arm_that_is_still_at_the_provider():
    engine, model, api = quiet(max_wait_s=NEVER_S), Local(8), Api(0.05)
    backend = engine.batched(model)

    async def play(one):
        receiver, provider = (engine.client(b, "receiver", GREEDY, one) for b in (backend, api))

        async def with_feedback():
            return await receiver.reply([user((await provider.reply([one.question])).text)])

        return record(one, await asyncio.gather(receiver.reply([user("simple")]), with_feedback()))

    within(10, lambda: play_all(engine, episodes(1), play))
    assert model.sizes == [2]


def test_an_answered_arm_gets_to_make_its_next_call_before_a_batch_leaves():
    engine, model, api = quiet(max_wait_s=NEVER_S), Local(8), Api(0.05)
    backend = engine.batched(model)

    async def play(one):
        receiver, provider = (engine.client(b, "receiver", GREEDY, one) for b in (backend, api))

        async def deep(levels):  # several loop passes between the provider's reply and the next call
            if levels:
                return (await asyncio.gather(deep(levels - 1)))[0]
            return await provider.reply([one.question])

        async def late():
            return await receiver.reply([user((await deep(2)).text)])

        return record(one, await asyncio.gather(receiver.reply([user("early")]), late()))

    within(10, lambda: play_all(engine, episodes(1), play))
    assert model.sizes == [2]


def test_the_oldest_call_waits_no_longer_than_max_wait_s():
    engine, model, api = quiet(max_wait_s=0.1), Local(8), Api(0.6)

    async def play(one):
        return await asks(engine, api if one.doc_id == 0 else engine.batched(model))(one)

    played = within(10, lambda: play_all(engine, episodes(4), play))
    waits = [one.turns[0].reply.run.waited_s for one in played.records if one.doc_id]
    assert model.sizes == [3]
    assert all(0.09 <= wait < 0.4 for wait in waits)


def test_a_call_waits_no_longer_for_company_than_a_batch_takes():
    engine, model, api = quiet(max_wait_s=NEVER_S), Local(8, batch_s=0.03), Api(0.5)
    backend = engine.batched(model)

    async def play(one):
        await asks(engine, backend)(one)  # all together: the first batch
        return await asks(engine, *([api] if one.doc_id == 0 else [backend]))(one)

    played = within(10, lambda: play_all(engine, [episode(0), episode(1)], play))
    ended = [one.turns[0].reply.run for one in played.records]
    assert played.ids == ["1", "0"]
    assert ended[0].waited_s < 0.3


def test_waiting_for_a_person_never_holds_a_batch():
    engine, model, person = quiet(max_wait_s=NEVER_S), Local(8), Person(0.5, slots=1)
    backend, times = engine.batched(model), {}

    async def play(one):
        played = await asks(engine, person if one.doc_id == 0 else backend)(one)
        times[one.id] = time.monotonic()
        return played

    within(10, lambda: play_all(engine, episodes(4), play))
    assert model.sizes == [3]
    assert times["0"] - times["1"] > 0.3


def test_a_person_and_a_batch_in_one_episode_do_not_hold_each_other():
    engine, model, person = quiet(max_wait_s=NEVER_S), Local(8), Person(0.3, slots=1)
    backend = engine.batched(model)

    async def play(one):
        clients = [engine.client(b, "receiver", GREEDY, one) for b in (backend, person)]
        return record(one, await asyncio.gather(*(client.reply([one.question]) for client in clients)))

    played = within(10, lambda: play_all(engine, episodes(1), play))
    assert played.records[0].turns[0].reply.run.waited_s < 0.2


def test_two_batched_models_obey_one_rule():
    engine = quiet(max_wait_s=NEVER_S, max_live=6)
    receiver, provider = Local(4, name="receiver"), Local(16, name="provider")
    backends = engine.batched(receiver), engine.batched(provider)
    played = within(10, lambda: play_all(engine, episodes(60), asks(engine, *backends, backends[0])))
    assert played.report.n_finished == 60
    assert (receiver.n_calls, provider.n_calls) == (120, 60)
    assert receiver.threads == provider.threads


def test_the_fuller_of_two_stuck_batches_leaves_first():
    engine, order = quiet(max_wait_s=NEVER_S), []

    class Noted(Local):
        def generate(self, calls):
            order.append((self.name, len(calls)))
            return super().generate(calls)

    left, right = engine.batched(Noted(8, name="left")), engine.batched(Noted(8, name="right"))

    async def play(one):
        return await asks(engine, left if one.doc_id < 2 else right)(one)

    within(10, lambda: play_all(engine, episodes(7), play))
    assert order == [("right", 5), ("left", 2)]


def test_no_model_starves_beside_a_busier_one():
    engine = quiet(max_wait_s=0.02, max_live=40)
    busy, rare = Local(4, batch_s=0.005, name="busy"), Local(32, batch_s=0.005, name="rare")
    backends = engine.batched(busy), engine.batched(rare)

    async def play(one):
        return await asks(engine, backends[one.doc_id == 50])(one)

    played = within(20, lambda: play_all(engine, episodes(600), play))
    (wait,) = (one.turns[0].reply.run.waited_s for one in played.records if one.doc_id == 50)
    assert wait < 0.2 < played.report.wall_s / 2


def test_episodes_that_are_about_to_start_fill_the_batch():
    class Tells(Local):
        def generate(self, calls):
            replies = super().generate(calls)
            answered.set()
            return replies

    engine, model, answered = quiet(max_wait_s=NEVER_S), Tells(4, batch_s=0.2), threading.Event()

    def haltingly():
        yield from episodes(6)
        answered.wait(5)
        time.sleep(0.05)  # the two that wait are older than a batch takes, but company is on its way
        yield from (episode(6), episode(7))

    within(10, lambda: play_all(engine, haltingly(), asks(engine, engine.batched(model))))
    assert model.sizes == [4, 4]


def test_a_batch_holds_the_earliest_rounds_first():
    engine, model = quiet(max_wait_s=NEVER_S, max_live=8), Local(4)
    backend = engine.batched(model)

    async def play(one):
        client = engine.client(backend, "receiver", GREEDY, one)
        return record(one, [await client.reply([one.question], round=8 - one.doc_id)])

    within(10, lambda: play_all(engine, episodes(3), play))
    assert [call.round for call in model.batches[0]] == [6, 7, 8]


def test_an_episode_that_makes_no_call_holds_no_batch_for_ever():
    engine, model = quiet(max_wait_s=0.1), Local(8)
    backend = engine.batched(model)

    async def play(one):
        if one.doc_id == 0:
            await asyncio.sleep(0.5)
            return record(one)
        return await asks(engine, backend)(one)

    played = within(10, lambda: play_all(engine, episodes(3), play))
    assert played.ids == ["1", "2", "0"]


def test_waits_and_latencies_are_told_in_the_reply_and_a_models_own_latency_stays():
    class Knows(Local):
        def generate(self, calls):
            return [Reply(text=one.text, run=ReplyRun(latency_s=7.0)) for one in super().generate(calls)]

    engine = quiet()
    model, knows = engine.batched(Local(2, batch_s=0.05)), engine.batched(Knows(2, name="knows"))
    before = time.time()
    played = play_all(engine, episodes(4), asks(engine, model, knows))
    runs = [[turn.reply.run for turn in one.turns] for one in played.records]
    assert all(0.04 < run[0].latency_s < 0.5 and run[1].latency_s == 7.0 for run in runs)
    assert max(run[0].waited_s for run in runs) > 0.04  # the second batch waited for the first
    assert all(before - 1 < run[0].started_at < time.time() for run in runs)


# ---------------------------------------------------------------- how many episodes are live


def test_the_floor_grows_while_the_calling_thread_idles():
    engine, model, api = quiet(), Local(8, batch_s=0.005), Api(0.2, slots=1000)
    backend = engine.batched(model)
    played = within(20, lambda: play_all(engine, episodes(400), asks(engine, backend, api, backend)))
    assert 150 < played.report.most_live <= 512
    assert played.report.idle_s < 0.25 * played.report.wall_s


def test_who_thinks_takes_nobodys_place():
    engine, model, person = quiet(max_live=8), Local(8, batch_s=0.002), Person(0.5)
    played = within(20, lambda: play_all(engine, episodes(300), asks(engine, person, engine.batched(model))))
    assert person.most == 300
    assert played.report.most_live <= 8


def test_the_floor_grows_to_outlast_slow_calls_although_nothing_idles():
    engine, model = quiet(), Local(8, batch_s=0.005)
    api = Api(lambda call: 0.5 if call.episode.doc_id == 0 else 0.0, slots=1000)
    backend = engine.batched(model)
    played = within(20, lambda: play_all(engine, episodes(600), asks(engine, backend, api, backend)))
    assert played.report.most_live > 100


def test_the_floor_does_not_grow_where_the_receiver_is_busy():
    engine, model = quiet(), Local(8, batch_s=0.002)
    backend = engine.batched(model)
    played = within(20, lambda: play_all(engine, episodes(300), asks(engine, backend, backend)))
    assert played.report.most_live <= 64 + 16


def test_a_given_max_live_does_not_grow():
    engine, model, api = quiet(max_live=10), Local(8, batch_s=0.002), Api(0.05)
    backend = engine.batched(model)
    assert within(20, lambda: play_all(engine, episodes(60), asks(engine, backend, api))).report.most_live == 10


@pytest.mark.parametrize(
    ("batches", "slots", "limit", "cap"),
    [([], [], 64, 64), ([1], [], 64, 64), ([16], [], 128, 1024), ([8, 32], [500], 256, 2048), ([256], [], 2048, 2048),
     ([1000], [], 8000, 8000), ([], [100, 60], 320, 320), ([], [3], 64, 64)],
)  # fmt: skip
def test_the_number_of_live_episodes_follows_from_the_backends(batches, slots, limit, cap):
    floor = Floor(None)
    for size in batches:
        floor.expect_batches(size)
    for n_slots in slots:
        floor.expect_slots(n_slots)
    assert floor.limit == limit
    floor.n_live = 10_000
    floor.grow(5_000)
    floor.grow(5_000)
    assert floor.limit == cap


def test_an_episode_is_parked_while_it_waits_for_batches_only():
    floor = Floor(None)
    live, other = floor.start(), floor.start()
    told = []
    for step in [
        lambda: floor.enter(live, "parked"),
        lambda: floor.enter(other, "person"),
        lambda: floor.enter(live, "elsewhere"),
        lambda: floor.enter(live, "parked"),
        lambda: floor.leave(live, "elsewhere"),
        lambda: floor.leave(live, "parked"),
        lambda: floor.leave(live, "parked"),
        lambda: floor.end(live),
        lambda: floor.end(other),
    ]:
        step()
        told.append(floor.all_rest)
    assert told == [False, True, False, False, True, True, False, True, True]


def test_calls_that_an_ended_episode_left_behind_are_not_counted():
    floor = Floor(None)
    ended, other = floor.start(), floor.start()
    floor.enter(ended, "parked")
    floor.enter(ended, "parked")
    floor.end(ended)
    floor.leave(ended, "parked")
    floor.leave(ended, "parked")
    assert not floor.all_rest
    floor.enter(other, "parked")
    assert floor.all_rest


def test_the_floor_does_not_grow_before_it_is_full():
    floor = Floor(None)
    floor.expect_batches(8)
    floor.n_live = 63
    floor.grow(8)
    assert floor.limit == 64
    floor.n_live = 64
    floor.grow(8)
    assert floor.limit == 72


@pytest.mark.parametrize("step", ["start", "end", "enter", "leave"])
def test_every_change_of_a_count_is_told(step):
    floor, told = Floor(None), []
    live = floor.start()
    floor.enter(live, "person")
    floor.watch = lambda: told.append(step)
    arguments = {"start": (), "end": (live,), "enter": (live, "parked"), "leave": (live, "person")}[step]
    getattr(floor, step)(*arguments)
    assert told == [step]


def test_calls_outside_any_episode_are_not_counted():
    floor, stray = Floor(None), Live(counted=False)
    live = floor.start()
    floor.enter(stray, "parked")
    assert not floor.all_rest
    assert floor.n_fresh == 1
    floor.enter(live, "parked")
    assert floor.all_rest
