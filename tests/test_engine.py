"""A run as a whole: threads, order, laziness, slots, backends, progress."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from interbench_tasks.engine import Engine
from interbench_tasks.errors import BackendError, InterbenchError
from tests.engine_fakes import GREEDY, Api, Local, asks, episode, episodes, failed, play_all, record, user


def quiet(**settings) -> Engine:
    return Engine(progress=False, **settings)


# ---------------------------------------------------------------- threads


def run_on_this_thread(work):
    return work(), threading.current_thread()


def run_on_another_thread(work):
    box = []
    thread = threading.Thread(target=lambda: box.append(work()))
    thread.start()
    thread.join()
    return box[0], thread


def run_inside_a_running_loop(work):
    async def cell():
        return work()

    return asyncio.run(cell()), threading.current_thread()


@pytest.mark.parametrize("way", [run_on_this_thread, run_on_another_thread, run_inside_a_running_loop])
def test_batches_are_generated_on_the_thread_that_called_run(way):
    engine, model = quiet(), Local()
    played, thread = way(lambda: play_all(engine, episodes(20), asks(engine, engine.batched(model))))
    assert model.threads == {thread}
    assert played.report.n_finished == 20


def test_what_the_caller_set_for_its_thread_holds_in_generate():
    state = threading.local()
    state.grad = "off"

    class Picky(Local):
        def generate(self, calls):
            assert state.grad == "off"
            return super().generate(calls)

    engine = quiet()
    played = play_all(engine, episodes(9), asks(engine, engine.batched(Picky(4))))
    assert {turn.reply.status for one in played.records for turn in one.turns} == {"ok"}


def test_a_model_may_use_asyncio_run():
    class Async(Local):
        def generate(self, calls):
            return asyncio.run(self.later(calls))

        async def later(self, calls):
            await asyncio.sleep(0)
            return super().generate(calls)

    engine = quiet()
    played = play_all(engine, episodes(10), asks(engine, engine.batched(Async(4))))
    assert played.texts()["3"] == ["QUESTION 3"]


def test_scripts_and_records_share_one_helper_thread():
    engine, seen = quiet(), set()

    async def play(one):
        seen.add(threading.current_thread())
        return record(one)

    def on_record(_):
        seen.add(threading.current_thread())

    engine.run(episodes(5), play, on_record=on_record, failed=failed)
    assert len(seen) == 1
    assert threading.current_thread() not in seen
    assert not seen.pop().is_alive()


def test_the_callers_own_loop_is_left_alone():
    async def cell():
        loop = asyncio.get_running_loop()
        engine = quiet()
        play_all(engine, episodes(3), asks(engine, engine.batched(Local())))
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)

    asyncio.run(cell())


# ---------------------------------------------------------------- order, laziness, number of live episodes


def test_records_come_in_the_order_in_which_episodes_end():
    engine = quiet()
    api = Api(lambda call: 0.02 * (4 - call.episode.doc_id))
    assert play_all(engine, episodes(5), asks(engine, api)).ids == ["4", "3", "2", "1", "0"]


def test_a_slow_episode_holds_up_no_other():
    engine = quiet(max_live=4)
    api = Api(lambda call: 0.3 if call.episode.doc_id == 0 else 0.0)
    played = play_all(engine, episodes(50), asks(engine, api, api, api))
    assert played.ids[-1] == "0"
    assert played.report.wall_s < 1.2


@pytest.mark.parametrize("max_live", [1, 3, 10])
def test_at_most_max_live_episodes_run(max_live):
    engine, running, most = quiet(max_live=max_live), 0, 0

    async def play(one):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return record(one)

    played = play_all(engine, episodes(40), play)
    assert most == played.report.most_live == max_live


def test_episodes_are_made_only_a_little_before_they_start():
    engine, made, ended, ahead = quiet(max_live=4), 0, 0, []

    def lazily():
        nonlocal made
        for index in range(100):
            made += 1
            ahead.append(made - ended)
            yield episode(index)

    async def play(one):
        nonlocal ended
        await asyncio.sleep(0.001)
        ended += 1
        return record(one)

    assert play_all(engine, lazily(), play).report.n_finished == 100
    assert max(ahead) <= 4 + 1 + 2  # live, the next one, two ahead


def test_making_an_episode_does_not_hold_up_replies():
    engine, api = quiet(), Api(0.01)

    def slowly():
        yield episode(0)
        time.sleep(0.4)
        yield episode(1)

    ended = []

    async def play(one):
        for number in range(3):
            await engine.client(api, "receiver", GREEDY, one).reply([user(f"{one.id} {number}")])
        ended.append(time.monotonic())
        return record(one)

    play_all(engine, slowly(), play)
    assert ended[1] - ended[0] > 0.3


@pytest.mark.parametrize(("slots", "expected"), [(20, 64), (50, 100)])
def test_with_asynchronous_backends_only_twice_their_slots_are_live(slots, expected):
    engine, api = quiet(), Api(0.3, slots=slots)  # long, so that all are live on a busy machine too
    played = play_all(engine, episodes(150), asks(engine, api))
    assert played.report.most_live == expected
    assert api.most == slots


def test_two_asynchronous_backends_add_their_slots():
    engine = quiet()
    first, second = Api(0.1, slots=40, name="first"), Api(0.1, slots=30, name="second")
    assert play_all(engine, episodes(300), asks(engine, first, second)).report.most_live == 140


def test_no_episode_at_all_is_a_run_too():
    report = play_all(quiet(), [], asks(quiet())).report
    assert (report.n_finished, report.calls, report.batches) == (0, 0, ())


# ---------------------------------------------------------------- slots of asynchronous backends


def test_two_roles_on_one_backend_share_its_slots():
    engine, api = quiet(), Api(0.002, slots=3)

    async def play(one):
        clients = [engine.client(api, role, GREEDY, one) for role in ("receiver", "provider")]
        return record(one, await asyncio.gather(*(c.reply([user(f"{one.id} {c.role}")]) for c in clients)))

    assert play_all(engine, episodes(30), play).report.calls == 60
    assert api.most == 3


def test_backends_have_their_own_slots():
    engine = quiet()
    first, second = Api(0.005, slots=2, name="first"), Api(0.005, slots=5, name="second")

    async def play(one):
        clients = [engine.client(backend, "receiver", GREEDY, one) for backend in (first, second)]
        return record(one, await asyncio.gather(*(client.reply([one.question]) for client in clients)))

    play_all(engine, episodes(40), play)
    assert (first.most, second.most) == (2, 5)


def test_a_backend_that_names_no_limit_gets_sixteen_slots():
    engine, api = quiet(), Api(0.003)
    play_all(engine, episodes(60), asks(engine, api))
    assert api.most == 16


def test_the_wait_for_a_slot_is_told_in_the_reply():
    engine, api = quiet(), Api(0.05, slots=1)
    played = play_all(engine, episodes(3), asks(engine, api))
    waits = [one.turns[0].reply.run.waited_s for one in played.records]
    assert waits[0] < 0.04
    assert 0.04 < waits[1] < waits[2]


# ---------------------------------------------------------------- backends and the engine itself


def test_backends_are_closed_once_on_the_loop_after_the_last_episode():
    engine = quiet()
    first, second = Api(name="first"), Api(name="second")
    running = []

    async def play(one):
        running.append(threading.current_thread())
        assert not first.closed
        return await asks(engine, first, second)(one)

    play_all(engine, episodes(4), play)
    assert (first.closed, second.closed) == (1, 1)
    assert {first.closed_on, second.closed_on} == set(running)


def test_a_backend_that_cannot_be_closed_is_a_problem_and_no_failure(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-123456789")

    class Sticky(Api):
        async def close(self):
            raise ConnectionError("tok-123456789 is stuck")

    engine, other = quiet(), Api(name="other")
    report = play_all(engine, episodes(2), asks(engine, Sticky(), other)).report
    assert report.problems == ("api could not be closed: ConnectionError: [redacted] is stuck",)
    assert report.n_finished == 2
    assert other.closed == 1


def test_an_engine_runs_once():
    engine = quiet()
    play_all(engine, episodes(1), asks(engine, Api()))
    with pytest.raises(InterbenchError, match="an engine runs once"):
        play_all(engine, episodes(1), asks(engine, Api()))


def test_no_episode_at_a_time_is_refused():
    with pytest.raises(InterbenchError, match="max_live = 0"):
        quiet(max_live=0)


def test_a_model_that_another_engine_batches_is_refused():
    with pytest.raises(BackendError, match="batched by another engine"):
        quiet().client(quiet().batched(Local()), "receiver", GREEDY, episode(0))


def test_a_model_is_batched_once():
    engine, model = quiet(), Local()
    assert engine.batched(model) is engine.batched(model)
    assert engine.batched(model) is not engine.batched(Local())


def test_a_client_is_named_like_its_backend():
    engine = quiet()
    assert engine.client(engine.batched(Local(name="tiny")), "receiver", GREEDY, episode(0)).name == "tiny"


# ---------------------------------------------------------------- progress


def test_one_bar_shows_episodes_calls_and_failures(capsys):
    engine = Engine()

    async def play(one):
        if one.doc_id == 2:
            raise ValueError("broken")
        return await asks(engine, Api())(one)

    play_all(engine, [*episodes(4), episode(4, question="poison")], play)
    last = capsys.readouterr().err.rstrip().rsplit("\r", 1)[-1]
    assert "5/5" in last
    assert "4 calls" in last
    assert "1 failed" in last
    assert "1 calls failed" in last


def test_an_iterable_without_length_has_no_total(capsys):
    engine = Engine()
    play_all(engine, (one for one in episodes(3)), asks(engine, Api()))
    assert "3episode" in capsys.readouterr().err


def test_no_progress_is_silent(capsys):
    engine = quiet()
    play_all(engine, episodes(3), asks(engine, Api()))
    assert capsys.readouterr().err == ""
