"""Episodes that never end, code that holds the loop, plugins that try to end the program: the others go on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import wait
from pathlib import Path

import pytest

from interbench_tasks.engine import Engine
from interbench_tasks.engine import overseer as overseer_module
from interbench_tasks.engine.floor import Live
from interbench_tasks.engine.overseer import Overseer
from interbench_tasks.engine.threads import Threads
from interbench_tasks.errors import InterbenchError
from interbench_tasks.records import Reply, Usage
from tests.engine_fakes import GREEDY, Api, Ledger, Local, Person, asks, episode, episodes, failed, play_all, record
from tests.engine_fakes import within as play_within

ROOT = Path(__file__).resolve().parent.parent
FOR_EVER = 1e9


def quiet(**settings) -> Engine:
    return Engine(progress=False, **settings)


async def hang() -> None:
    await asyncio.sleep(FOR_EVER)


def errors_of(played) -> dict[str, str | None]:
    return {one.episode_id: one.error for one in played.records}


# --- the limit of an episode ----------------------------------------------------------------------------------------


def test_an_episode_over_its_limit_fails_alone_and_says_which_limit_and_where_it_was():
    engine = quiet(max_episode_s=0.3)

    async def play(one):
        if one.doc_id == 3:
            await hang()
        return await asks(engine, api)(one)

    api = Api(0.01)
    played = play_within(10, lambda: play_all(engine, episodes(8), play))
    errors = errors_of(played)
    why = errors.pop("3")
    assert set(errors.values()) == {None}
    assert "took longer than 0.3 s" in why
    assert "metadata.interbench.engine.max_episode_s" in why
    assert re.search(r"it was in hang \(.*test_engine_limits\.py, line \d+\)", why)
    assert (played.report.n_failed, played.report.n_finished) == (1, 7)
    assert 0.3 <= played.report.wall_s < 3


@pytest.mark.parametrize("how", ["gather", "task group"])
def test_an_arm_that_hangs_is_named_and_its_sister_is_cancelled(how):
    engine, slow, cancelled = quiet(max_episode_s=0.2), Api(FOR_EVER), []

    async def sister(one):
        try:
            await engine.client(slow, "receiver", GREEDY, one).reply([one.question])
        except asyncio.CancelledError:
            cancelled.append(one.id)
            raise

    async def stuck():
        await hang()

    async def play(one):
        if how == "gather":
            await asyncio.gather(stuck(), sister(one))
        else:
            async with asyncio.TaskGroup() as group:
                group.create_task(stuck())
                group.create_task(sister(one))

    played = play_within(10, lambda: play_all(engine, [episode(0)], play))
    assert played.report.n_failed == 1
    assert cancelled == ["0"]
    assert slow.running == 0  # the call itself was given up


def test_a_call_that_runs_when_the_limit_is_reached_is_given_up_and_told():
    engine, slow = quiet(max_episode_s=0.2), Api(lambda call: FOR_EVER if call.episode.doc_id else 0.0)
    played = play_within(10, lambda: play_all(engine, episodes(2), asks(engine, slow)))
    errors = errors_of(played)
    assert errors["0"] is None
    assert "waiting for a backend's reply (timeout_s limits one call)" in errors["1"]
    assert slow.running == 0


def test_what_was_paid_for_before_the_limit_is_kept_and_not_paid_again():
    ledger, api = Ledger(), Api()

    def play_in(engine, *, hanging):
        async def play(one):
            await asks(engine, api)(one)
            if hanging:
                await hang()
            return record(one)

        return play_within(10, lambda: play_all(engine, [episode(0)], play))

    first = play_in(quiet(max_episode_s=0.2, ledger=ledger), hanging=True)
    assert first.report.n_failed == 1
    again = play_in(quiet(max_episode_s=0.2, ledger=ledger), hanging=False)
    assert (again.report.n_finished, again.report.ledger_hits, len(api.calls)) == (1, 1, 1)


def test_a_call_that_two_episodes_share_outlives_the_one_that_is_over_its_limit():
    engine, api = quiet(max_episode_s=0.6), Api(0.5)

    def one_after_the_other():
        yield episode(0, question="the same")
        time.sleep(0.35)
        yield episode(1, question="the same")

    async def play(one):
        await asyncio.sleep(0.0 if one.doc_id else 0.3)
        return await asks(engine, api)(one)

    played = play_within(10, lambda: play_all(engine, one_after_the_other(), play))
    errors = errors_of(played)
    assert "took longer" in errors["0"]
    assert errors["1"] is None
    assert len(api.calls) == 1


# --- what the clock counts ------------------------------------------------------------------------------------------


def test_waiting_behind_a_slow_local_model_is_not_counted():
    engine, model = quiet(max_episode_s=0.25), Local(2, batch_s=0.15)
    played = play_within(20, lambda: play_all(engine, episodes(16), asks(engine, engine.batched(model))))
    assert played.report.wall_s > 1.0
    assert (played.report.n_finished, played.report.n_failed) == (16, 0)


def test_waiting_for_a_slot_of_a_busy_backend_is_not_counted():
    engine, api = quiet(max_episode_s=0.3), Api(0.1, slots=2)
    played = play_within(20, lambda: play_all(engine, episodes(20), asks(engine, api)))
    assert played.report.wall_s > 0.9
    assert (played.report.n_finished, played.report.n_failed) == (20, 0)


def test_waiting_for_a_person_is_not_counted():
    engine = quiet(max_episode_s=0.2)
    played = play_within(10, lambda: play_all(engine, [episode(0)], asks(engine, Person(0.7))))
    assert played.report.n_finished == 1


def test_time_at_a_backend_and_in_own_code_is_added_up():
    engine, api = quiet(max_episode_s=0.4), Api(0.2)

    async def play(one):
        for _ in range(10):
            await asks(engine, api)(one)
            await asyncio.sleep(0.1)

    played = play_within(10, lambda: play_all(engine, [episode(0)], play))
    assert played.report.n_failed == 1
    assert len(api.calls) < 4


def test_the_clock_goes_on_once_the_sister_has_what_she_waited_for():
    """Else an arm that hangs would hide behind one that is parked."""
    engine, model = quiet(max_episode_s=0.2), Local(1, batch_s=0.3)
    backend = engine.batched(model)

    async def play(one):
        await asyncio.gather(asks(engine, backend)(one), hang())

    played = play_within(10, lambda: play_all(engine, [episode(0)], play))
    assert played.report.n_failed == 1
    assert played.report.wall_s >= 0.45


def test_time_in_which_another_held_the_loop_is_not_charged():
    engine = quiet(max_episode_s=0.5)

    async def play(one):
        if one.doc_id == 0:
            await asyncio.sleep(0.1)
            time.sleep(1.0)  # a plugin that does not know better
        else:
            await asyncio.sleep(0.2)
        return record(one)

    played = play_within(10, lambda: play_all(engine, episodes(4), play))
    assert played.report.n_finished == 4


def test_without_a_limit_nothing_is_cancelled():
    engine = quiet(max_episode_s=None)
    played = play_within(10, lambda: play_all(engine, episodes(2), asks(engine, Api(1.3))))
    assert played.report.n_finished == 2


def test_a_live_episode_waits_only_in_our_own_queues():
    live = Live()
    for place, waits in {"parked": True, "queued": True, "person": True, "elsewhere": False}.items():
        live.calls[place] = 1
        assert live.waits is waits
        live.calls[place] = 0


# --- episodes that do not want to end -------------------------------------------------------------------------------


def test_an_episode_that_ignores_its_cancellation_is_left_behind(monkeypatch):
    monkeypatch.setattr(overseer_module, "GRACE_S", 0.2)
    engine, ended = quiet(max_episode_s=0.2, max_live=2), threading.Event()

    async def play(one):
        while one.doc_id == 0 and not ended.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return record(one)

    played = play_within(10, lambda: play_all(engine, episodes(5), play))
    ended.set()
    assert sorted(played.ids) == ["0", "1", "2", "3", "4"]  # once each
    assert "took longer than 0.2 s" in errors_of(played)["0"]
    assert played.report.n_failed == 1
    assert played.report.wall_s < 3


def test_an_episode_that_ends_after_it_was_left_behind_has_one_record_only(monkeypatch):
    monkeypatch.setattr(overseer_module, "GRACE_S", 0.1)
    engine, person = quiet(max_episode_s=0.2), Person(1.2)
    stops_at = time.monotonic() + 0.8

    async def play(one):
        if one.doc_id:
            return await asks(engine, person)(one)  # the run goes on meanwhile
        while time.monotonic() < stops_at:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return record(one)

    played = play_within(10, lambda: play_all(engine, episodes(2), play))
    assert played.ids == ["0", "1"]
    assert "took longer than 0.2 s" in errors_of(played)["0"]
    assert (played.report.n_failed, played.report.n_finished) == (1, 1)


def test_an_episode_that_still_comes_to_its_end_keeps_its_record():
    engine = quiet(max_episode_s=0.2)

    async def play(one):
        try:
            await hang()
        except asyncio.CancelledError:
            return record(one)

    played = play_within(10, lambda: play_all(engine, [episode(0)], play))
    assert played.records[0].status == "finished"


def test_what_an_episode_raises_on_its_way_out_does_not_hide_the_limit():
    engine = quiet(max_episode_s=0.2)

    async def play(one):
        try:
            await hang()
        finally:
            raise ValueError("broken while cleaning up")

    played = play_within(10, lambda: play_all(engine, [episode(0)], play))
    assert "took longer than 0.2 s" in errors_of(played)["0"]


def test_a_record_that_cannot_be_made_for_a_left_behind_episode_stops_the_run(monkeypatch):
    monkeypatch.setattr(overseer_module, "GRACE_S", 0.1)
    engine, ended = quiet(max_episode_s=0.1), threading.Event()

    async def play(one):
        while not ended.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)

    def cannot(one, why, status):
        raise TypeError("no such record")

    with pytest.raises(TypeError, match="no such record"):
        play_within(10, lambda: engine.run([episode(0)], play, on_record=lambda _: None, failed=cannot))
    ended.set()


PROGRAM = """
import asyncio, sys, time
from interbench_tasks.engine import Engine
from tests.engine_fakes import episodes, play_all, record

async def play(one):
    {scenario}
    return record(one)

played = play_all(Engine(progress=False, max_episode_s=0.2, blocked_after_s=0.4), episodes(3), play)
sys.stdout.write(f"{{played.report.n_finished}} finished, {{played.report.n_failed}} failed")
"""


def program(scenario: str) -> subprocess.Popen[str]:
    code = PROGRAM.format(scenario=textwrap.indent(scenario, "    ").strip())
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_plugin_that_hangs_in_a_thread_holds_up_neither_the_run_nor_the_end_of_the_program():
    with program("if one.doc_id == 1: await asyncio.to_thread(time.sleep, 1e9)") as process:
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out) == (0, "2 finished, 1 failed"), err


# --- code that does not give the loop back --------------------------------------------------------------------------


def test_code_that_holds_the_loop_is_named_once_and_not_killed(caplog):
    engine = quiet(blocked_after_s=0.4)

    def looks_busy():
        time.sleep(1.2)

    async def play(one):
        if one.doc_id < 2:
            looks_busy()
        return record(one)

    with caplog.at_level(logging.WARNING, logger="interbench_tasks"):
        played = play_within(10, lambda: play_all(engine, episodes(4), play))
    assert played.report.n_finished == 4
    [warning] = [r.getMessage() for r in caplog.records if "does not give the event loop back" in r.getMessage()]
    assert re.search(r"looks_busy \(.*test_engine_limits\.py, line \d+\), called from play \(", warning)
    assert "await asyncio.to_thread(...)" in warning
    assert "Ctrl-C ends the run" in warning


def test_a_loop_that_runs_is_not_warned_about(caplog):
    engine = quiet(blocked_after_s=0.3)
    with caplog.at_level(logging.WARNING, logger="interbench_tasks"):
        play_within(10, lambda: play_all(engine, episodes(3), asks(engine, Api(1.3))))
    assert not caplog.records


def test_a_loop_that_is_held_for_ever_ends_with_ctrl_c():
    with program("time.sleep(1e9)") as process:
        assert process.stderr is not None
        assert "does not give the event loop back" in process.stderr.readline()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()
    assert time.monotonic() - began < 5
    assert process.returncode != 0


def test_the_watchdog_ends_with_the_run():
    engine = quiet(blocked_after_s=0.2)
    play_all(engine, episodes(2), asks(engine, Api()))
    deadline = time.monotonic() + 2
    while any(thread.name == "interbench-watchdog" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- plugins that try to end the program ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), SystemExit()])
@pytest.mark.parametrize("where", ["script", "arm"])
def test_a_plugin_that_ends_the_program_fails_its_own_episode_only(error, where):
    engine, api = quiet(), Api(0.05)

    async def ends():
        await asyncio.sleep(0.01)
        raise error

    async def play(one):
        if one.doc_id == 1:
            await (ends() if where == "script" else asyncio.gather(asks(engine, api)(one), ends()))
        return await asks(engine, api)(one)

    played = play_within(10, lambda: play_all(engine, episodes(5), play))
    errors = errors_of(played)
    why = errors.pop("1")
    assert set(errors.values()) == {None}
    assert f"tried to end the whole program ({type(error).__name__}" in why
    assert re.search(r"in ends \(.*test_engine_limits\.py, line \d+\)", why)
    assert "a plugin must raise an error instead" in why


def test_an_error_that_is_no_exception_fails_its_own_episode_only():
    class Odd(BaseException):
        pass

    async def play(one):
        if one.doc_id == 1:
            raise Odd("of its own kind")
        return record(one)

    played = play_within(10, lambda: play_all(quiet(), episodes(3), play))
    assert errors_of(played) == {"0": None, "1": "Odd: of its own kind", "2": None}


def test_a_task_left_behind_that_ends_the_program_stops_nothing():
    engine, left = quiet(), []

    async def ends():
        raise SystemExit(1)

    async def play(one):
        left.append(asyncio.ensure_future(ends()))
        await asyncio.sleep(0.01)
        assert isinstance(left[-1].exception(), SystemExit)
        return record(one)

    assert play_within(10, lambda: play_all(engine, episodes(3), play)).report.n_finished == 3


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_backend_that_ends_the_program_gives_a_failed_reply(error):
    class Ends(Api):
        async def reply(self, call):
            raise error(2)

    engine = quiet()
    played = play_within(10, lambda: play_all(engine, episodes(2), asks(engine, Ends())))
    assert {one.turns[0].reply.error for one in played.records} == {f"{error.__name__}: 2"}


def test_a_watcher_or_a_data_set_that_ends_the_program_ends_the_run_with_words():
    def watcher(one):
        raise SystemExit(4)

    def rows():
        yield episode(0)
        raise SystemExit(5)

    engine, kept = quiet(), []
    with pytest.raises(InterbenchError, match=r"something tried to end the whole program \(SystemExit: 4\) in watcher"):
        engine.run(episodes(3), asks(engine, Api()), on_record=watcher, failed=failed)
    engine = quiet()
    with pytest.raises(InterbenchError, match=r"\(SystemExit: 5\) in rows"):
        engine.run(rows(), asks(engine, Api(0.02)), on_record=kept.append, failed=failed)
    assert [one.episode_id for one in kept] == ["0"]


# --- what backends give ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "odd gave a NoneType, no Reply"),
        ("words", "odd gave a str, no Reply"),
        (Reply(text=None), "odd gave a Reply with text = None, which is no text"),
        (Reply(text="A", status="fine"), "status = 'fine'; allowed: ok, empty, error, skipped"),
        (Reply(text="A", error="but"), "status = 'ok' and error = 'but'; a failed call has the status 'error'"),
        (Reply(text="A", finish_reason=1), "finish_reason = 1, which is neither text nor None"),
        (Reply(text="A", model=b"m"), "model = b'm', which is neither text nor None"),
        (Reply(text="A", usage=None), "usage = None and run = ReplyRun("),
        (Reply(text="A", run={}), "and run = {}; they must be a Usage and a ReplyRun"),
        (Reply(text="A", usage=Usage(calls=1, input_tokens="12")), "a count of '12' in its usage"),
        (Reply(text="A", usage=Usage(calls=1, output_tokens=-1)), "a count of -1 in its usage"),
        (Reply(text="A", usage=Usage(calls=10**30)), "a count of 1000000"),
        (Reply(text="A", usage=Usage(calls=1, input_tokens=1.5)), "a count of 1.5 in its usage"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_reply_that_is_none_is_an_error_that_names_the_backend(given, words):
    class Odd(Api):
        async def reply(self, call):
            return given

    class OddModel(Local):
        def generate(self, calls):
            return [given for _ in calls]

    for engine, backend in ((quiet(), Odd(name="odd")), (quiet(), OddModel(name="odd"))):
        asked = engine.batched(backend) if isinstance(backend, Local) else backend
        played = play_all(engine, episodes(2), asks(engine, asked))
        for one in played.records:
            reply = one.turns[0].reply
            assert (reply.status, reply.text) == ("error", "")
            assert reply.error.startswith("odd gave a")
            assert words in reply.error


def test_a_model_that_gives_no_list_is_named():
    class Nothing(Local):
        def generate(self, calls):
            self.batches.append(list(calls))

    engine, model = quiet(), Nothing(4, name="nothing")
    played = play_all(engine, episodes(4), asks(engine, engine.batched(model)))
    assert {one.turns[0].reply.error for one in played.records} == {"nothing gave None, no list of replies"}
    assert model.sizes == [4]  # halving would not help


# --- the parts ------------------------------------------------------------------------------------------------------


def test_threads_work_side_by_side_and_are_reused():
    threads, together = Threads(), threading.Barrier(2, timeout=5)
    both = [threads.submit(together.wait) for _ in range(2)]
    wait(both, timeout=5)
    assert sorted(done.result() for done in both) == [0, 1]
    names = {threads.submit(lambda: threading.current_thread().name).result(5) for _ in range(50)}
    assert len(names) < 25  # not one each; a result is there a moment before its thread is free again
    assert all(thread.daemon for thread in threading.enumerate() if thread.name in names)
    assert isinstance(threads.submit(int, "x").exception(5), ValueError)
    threads.shutdown()
    with pytest.raises(RuntimeError, match="after the run has ended"):
        threads.submit(int)


def test_more_work_than_threads_waits_its_turn():
    threads = Threads()
    done = [threads.submit(lambda index=index: time.sleep(0.001) or index) for index in range(200)]
    assert [one.result(10) for one in done] == list(range(200))
    names = {thread.name for thread in threading.enumerate() if thread.name.startswith("interbench-")}
    assert len(names) < 64
    threads.shutdown()


def test_work_that_was_cancelled_before_its_turn_is_not_done():
    threads, free, said = Threads(), threading.Event(), []
    busy = [threads.submit(free.wait, 10) for _ in range(64)]
    late = threads.submit(said.append, 1)
    assert late.cancel()
    free.set()
    wait(busy, timeout=10)
    threads.shutdown()
    assert said == []


def test_the_overseer_looks_once_a_second_and_more_often_for_a_short_limit():
    assert Overseer(max_episode_s=None)._every_s == 1.0
    assert Overseer(max_episode_s=3600.0)._every_s == 1.0
    assert Overseer(max_episode_s=1.0)._every_s == pytest.approx(0.1)
    assert Overseer(max_episode_s=None, blocked_after_s=2.0)._every_s == 0.5
