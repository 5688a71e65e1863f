"""Episodes, backends and files that fail, and runs that are stopped."""

from __future__ import annotations

import asyncio
import threading

import pytest

from interbench_tasks.engine import Engine
from interbench_tasks.errors import BackendError
from tests.engine_fakes import GREEDY, Api, Local, asks, episode, episodes, failed, play_all, record, user


def quiet(**settings) -> Engine:
    return Engine(progress=False, **settings)


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
    engine, model, api = quiet(), Local(8), Api(0.3)
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
            played = await asks(engine, api)(one)
            assert seen == ["cancelled", "refused"]  # long before the run ends
            return played
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
    engine, calls, together, n_waiting = quiet(), [], asyncio.Event(), 0

    async def play(one):
        nonlocal n_waiting
        n_waiting += 1
        if n_waiting == 20:
            together.set()  # all end in one pass of the loop
        await together.wait()
        return record(one)

    def on_record(one):
        calls.append(one)
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        engine.run(episodes(20), play, on_record=on_record, failed=failed)
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

    engine = quiet()
    with pytest.raises(OSError, match="full"):
        engine.run(endless(), asks(engine, Api()), on_record=on_record, failed=failed)
    assert closed.wait(2)
