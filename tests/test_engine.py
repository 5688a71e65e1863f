"""A run as a whole: threads, order, laziness, failures, stopping."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from engine_fakes import GREEDY, Api, Local, asks, episode, episodes, failed, play_all, record, user

from interbench_tasks.engine import Engine
from interbench_tasks.errors import BackendError, InterbenchError


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
    engine, api = quiet(), Api(0.05, slots=slots)
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


# ---------------------------------------------------------------- failures


def test_an_episode_that_raises_hurts_no_other(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-value")
    engine, model = quiet(), Local(4)
    ask = asks(engine, engine.batched(model))

    async def play(one):
        if one.doc_id == 3:
            raise RuntimeError("refused sk-very-secret-value\nby nobody")
        return await ask(one)

    played = play_all(engine, episodes(8), play)
    broken = next(one for one in played.records if one.episode_id == "3")
    assert (broken.status, broken.error) == ("failed", "RuntimeError: refused [redacted] by nobody")
    assert (played.report.n_finished, played.report.n_failed) == (7, 1)


def test_an_episode_that_raises_while_others_wait_for_a_batch_does_not_lock_them_up():
    engine, model, api = quiet(max_wait_s=60), Local(8), Api(0.05)
    backend = engine.batched(model)

    async def play(one):
        await engine.client(api if one.doc_id == 0 else backend, "receiver", GREEDY, one).reply([one.question])
        if one.doc_id == 0:
            raise ValueError("no")
        return record(one)

    played = play_all(engine, episodes(4), play)
    assert played.report.n_failed == 1
    assert played.report.wall_s < 5


def test_an_episode_that_cancels_itself_is_failed():
    engine = quiet()

    async def play(one):
        if one.doc_id == 1:
            raise asyncio.CancelledError
        return record(one)

    played = play_all(engine, episodes(3), play)
    assert {one.episode_id: one.status for one in played.records} == {"0": "finished", "1": "failed", "2": "finished"}


def test_a_backend_that_raises_gives_a_failed_reply():
    engine, api = quiet(), Api()
    played = play_all(engine, [episode(0, question="poison"), episode(1)], asks(engine, api))
    replies = {one.episode_id: one.turns[0].reply for one in played.records}
    assert (replies["0"].status, replies["0"].error) == ("error", "ValueError: cannot digest poison")
    assert replies["1"].text == "[question 1]"
    assert (played.report.calls, played.report.failed_calls) == (2, 1)


def test_a_backend_that_cancels_itself_or_gives_no_reply_gives_a_failed_reply():
    class Odd(Api):
        async def reply(self, call):
            if call.episode.doc_id == 0:
                raise asyncio.CancelledError
            return "words"

    engine = quiet()
    played = play_all(engine, episodes(2), asks(engine, Odd()))
    errors = {one.episode_id: one.turns[0].reply.error for one in played.records}
    assert errors == {"0": "CancelledError", "1": "api gave a str, no Reply"}


def test_a_ready_record_stands_for_an_episode_that_could_not_be_made():
    engine = quiet()
    items = [episode(0), record(episode(1), status="failed", error="PictureError: broken"), episode(2)]
    played = play_all(engine, items, asks(engine, Api()))
    assert sorted(played.ids) == ["0", "1", "2"]
    assert (played.report.n_finished, played.report.n_failed) == (2, 1)


def test_an_iterable_that_raises_lets_running_episodes_finish_and_is_told():
    engine, kept = quiet(), []

    def breaks():
        yield episode(0)
        yield episode(1)
        raise OSError("the data set is gone")

    with pytest.raises(OSError, match="the data set is gone"):
        engine.run(breaks(), asks(engine, Api(0.02)), on_record=kept.append, failed=failed)
    assert sorted(one.episode_id for one in kept) == ["0", "1"]


def test_arms_left_behind_by_a_failed_episode_are_cancelled_and_cannot_ask_again():
    engine, model, api = quiet(), Local(8), Api()
    backend, seen = engine.batched(model), []

    async def arm(one):
        try:
            await engine.client(Api(30, name="slow"), "provider", GREEDY, one).reply([one.question])
        except asyncio.CancelledError:
            seen.append("cancelled")
            with pytest.raises(BackendError, match="episode 0 has ended"):
                await engine.client(backend, "receiver", GREEDY, one).reply([one.question])
            seen.append("refused")
            raise

    async def breaks():
        await asyncio.sleep(0.02)
        raise ValueError("first arm")

    async def play(one):
        if one.doc_id:
            return await asks(engine, api)(one)
        await asyncio.gather(arm(one), breaks())

    played = play_all(engine, episodes(2), play)
    assert (played.report.n_failed, played.report.n_finished) == (1, 1)
    assert seen == ["cancelled", "refused"]
    assert played.report.wall_s < 5


def test_nested_arms_come_back_in_their_places():
    engine, model, api = quiet(), Local(8), Api(0.001)
    backend = engine.batched(model)

    async def play(one):
        receiver, provider = (engine.client(b, "receiver", GREEDY, one) for b in (backend, api))

        async def arm(name, depth):
            reply = await (receiver if depth % 2 else provider).reply([user(f"{one.id}{name}")], branch=name)
            if depth == 0:
                return [reply]
            below = await asyncio.gather(*(arm(name + letter, depth - 1) for letter in "xy"))
            return [reply, *below[0], *below[1]]

        return record(one, await arm("", 3))

    played = play_all(engine, episodes(10), play)
    assert played.report.calls == 150
    assert played.texts()["7"][:5] == ["7", "[7x]", "7XX", "[7xxx]", "[7xxy]"]


# ---------------------------------------------------------------- stopping


def test_a_stop_reason_skips_what_was_not_started_and_lets_the_rest_finish():
    ended = 0

    def reason():
        return "the budget is used up" if ended >= 5 else None

    def on_record(one):
        nonlocal ended
        ended += 1
        kept.append(one)

    engine, kept = quiet(max_live=2, stop_reason=reason), []
    report = engine.run(episodes(30), asks(engine, Api(0.001)), on_record=on_record, failed=failed)
    assert report.n_finished + report.n_skipped == 30
    assert 5 <= report.n_finished <= 7
    assert {one.error for one in kept if one.status == "skipped"} == {"the budget is used up"}


def test_a_stop_reason_is_asked_before_each_start_and_holds_for_good():
    answers = iter([None, None, "enough"])
    engine = quiet(stop_reason=lambda: next(answers))  # a further question would raise StopIteration
    report = play_all(engine, episodes(6), asks(engine, Api())).report
    assert (report.n_finished, report.n_skipped) == (2, 4)


def test_after_a_stop_nobody_waits_for_running_episodes_to_be_skipped():
    asked = []

    def reason():
        asked.append(1)
        return "enough" if len(asked) > 1 else None

    engine = quiet(max_live=2, stop_reason=reason)
    played = play_all(engine, episodes(5), asks(engine, Api(0.1)))
    assert played.ids == ["1", "2", "3", "4", "0"]


@pytest.mark.parametrize("status", ["finished", "failed"])
def test_a_record_that_cannot_be_written_stops_the_run(status):
    engine, api = quiet(max_live=4), Api(0.005)

    def on_record(one):
        if one.status == status:
            raise OSError("no space left on device")

    async def play(one):
        if one.doc_id == 1:
            raise ValueError("broken")
        return await asks(engine, api)(one)

    with pytest.raises(OSError, match="no space left"):
        engine.run(episodes(1_000), play, on_record=on_record, failed=failed)
    assert len(api.calls) < 20
    assert api.closed == 1


def test_on_record_is_not_called_again_after_it_raised():
    engine, calls = quiet(), []

    def on_record(one):
        calls.append(one)
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        engine.run(episodes(50), asks(engine, Api()), on_record=on_record, failed=failed)
    assert len(calls) == 1


def test_a_failed_record_that_cannot_be_made_stops_the_run():
    async def play(one):
        raise ValueError("broken")

    def cannot(one, why, status):
        raise TypeError("no such record")

    with pytest.raises(TypeError, match="no such record"):
        quiet().run(episodes(3), play, on_record=lambda _: None, failed=cannot)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_not_swallowed_in_a_batch(error):
    class Ends(Local):
        def generate(self, calls):
            raise error

    engine, api, kept = quiet(), Api(), []

    async def play(one):
        await asks(engine, api)(one)
        return await asks(engine, engine.batched(model))(one) if one.doc_id else record(one)

    model = Ends(4)
    with pytest.raises(error):
        engine.run(episodes(5), play, on_record=kept.append, failed=failed)
    assert [one.episode_id for one in kept] == ["0"]
    assert api.closed == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "interbench-engine"]


def test_a_script_that_ends_the_program_does():
    async def play(one):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        play_all(quiet(), episodes(2), play)


def test_a_generator_of_episodes_is_closed_when_the_run_stops():
    closed = threading.Event()

    def endless():
        try:
            index = 0
            while True:
                yield episode(index)
                index += 1
        finally:
            closed.set()

    def on_record(_):
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        quiet().run(endless(), asks(engine := quiet(), Api()), on_record=on_record, failed=failed)
    assert engine is not None
    assert closed.wait(2)


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
    play_all(engine, iter(lambda it=iter(episodes(3)): next(it, None), None), asks(engine, Api()))
    assert "3episode" in capsys.readouterr().err


def test_no_progress_is_silent(capsys):
    engine = quiet()
    play_all(engine, episodes(3), asks(engine, Api()))
    assert capsys.readouterr().err == ""
