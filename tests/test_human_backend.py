"""People as a backend: items on the desk, answers from it, and a run that may be killed at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from PIL import Image

from interbench_tasks.backends.human import HumanBackend, payload_from
from interbench_tasks.config import task_options_from
from interbench_tasks.engine import Engine
from interbench_tasks.errors import BackendError, ConfigError, InterbenchError, PeopleError, PictureError
from interbench_tasks.hookspecs import Call
from interbench_tasks.images import picture_from
from interbench_tasks.people.desk import Desk
from interbench_tasks.people.forms import FeedbackForm
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.prices import price_list
from interbench_tasks.records import (
    MARKED_RIGHT,
    BranchEnd,
    Episode,
    Feedback,
    GenerationSettings,
    Message,
    PictureRef,
    Reply,
    Turn,
)
from interbench_tasks.runs.keeper import people_in
from interbench_tasks.runs.play import _of_people
from interbench_tasks.task_roles import roles_from
from tests.engine_fakes import Ledger, asks, episodes, play_all, within
from tests.engine_fakes import record as engine_record

SAID = {"action": "send", "text": "Count the corners."}
PICTURE = picture_from(Image.new("RGB", (4, 3), "red"))


def message(role: str, *content) -> Message:
    return Message(role=role, content=content)


def episode(name: str = "7", **changes) -> Episode:
    asked = message("user", PICTURE, "Which shape?\nA. circle\nB. star\nAnswer with a letter.")
    told = {"raw_question": "Which shape?", "options": {"A": "circle", "B": "star"}, "category": "shapes", **changes}
    return Episode(id=name, doc_id=0, question=asked, target="B", **told)


def call(one: Episode | None = None, *, purpose="feedback", level=1, replies=("A",), branch="hierarchical") -> Call:
    one = one or episode()
    said: list[Message] = [message("system", "Be brief."), one.question]
    for number, reply in enumerate(replies):
        said += [message("assistant", reply)]
        if number + 1 < len(replies):
            said += [message("user", f"feedback {number + 1}")]
    return Call(
        messages=(*said, message("user", f"Give feedback of level {level}.")),
        settings=GenerationSettings(max_new_tokens=64, temperature=0.0),
        role="provider",
        purpose=purpose,
        episode=one,
        branch=branch,
        round=level,
    )


def human(place, *, run="r1", **options) -> HumanBackend:
    backend = HumanBackend("", **{"grace_s": 0, "poll_s": 0.02, **options})
    backend.begin_run(place=place, task="demo", run=run)
    return backend


async def answered(backend: HumanBackend, asked: Call, desk: Desk, content=SAID, annotator="simulated-1"):
    """The reply, given by somebody who answers what waits as soon as it is there."""
    task = asyncio.create_task(backend.reply(asked))
    while not desk.waiting():
        await asyncio.sleep(0.01)
    for item in desk.waiting():
        desk.submit(item.id, annotator, content, 12.0)
    return await asyncio.wait_for(task, 5)


@pytest.fixture
def desk(tmp_path):
    with Desk(tmp_path / "people.sqlite") as desk:
        yield desk


# --- what people are shown --------------------------------------------------------------------------------------


def test_people_see_the_question_its_pictures_all_rounds_and_what_is_asked_of_them():
    payload = payload_from(call(level=2, replies=("A", "still A")), task="demo")
    assert payload == {
        "task": "demo",
        "episode": "7",
        "repeat": 0,
        "category": "shapes",
        "arm": "hierarchical",
        "level": 2,
        "instruction": "Give feedback of level 2.",
        "question": "Which shape?",
        "options": {"A": "circle", "B": "star"},
        "target": "B",
        "hide_target": False,
        "pictures": [PICTURE.digest],
        "rounds": [{"told": "", "reply": "A"}, {"told": "feedback 1", "reply": "still A"}],
    }
    titles = [part.title for part in FeedbackForm().parts(payload)]
    assert titles[-2:] == ["Reply after round 1", "Your feedback: level 2"]


def test_the_right_answer_leaves_the_run_only_where_people_may_see_it():
    payload = payload_from(call(), task="demo", hide_answer=True)
    assert (payload["target"], payload["hide_target"]) == ("", True)


def test_a_question_without_a_raw_text_is_shown_as_it_was_asked():
    assert "Answer with a letter." in payload_from(call(episode(raw_question="")), task="t")["question"]


# --- asking and answering ---------------------------------------------------------------------------------------


def test_a_persons_words_come_back_with_their_pseudonym_and_time(tmp_path, desk):
    reply = asyncio.run(answered(human(tmp_path), call(), desk))
    assert (reply.text, reply.status, reply.model) == ("Count the corners.", "ok", "human:simulated-1")
    assert (reply.finish_reason, reply.run.latency_s, reply.usage.calls) == ("stop", 12.0, 1)
    assert desk.picture(PICTURE.digest).data == PICTURE.data


def test_a_reply_that_a_person_marks_as_right_comes_back_without_text(tmp_path, desk):
    reply = asyncio.run(answered(human(tmp_path), call(), desk, {"action": "marked_right", "text": ""}))
    assert (reply.text, reply.status, reply.finish_reason) == ("", "ok", "marked_right")


def test_an_answer_is_not_taken_while_it_can_be_undone(tmp_path, desk):
    async def run() -> str:
        backend = human(tmp_path, grace_s=0.4)
        task = asyncio.create_task(backend.reply(call()))
        while not desk.waiting():
            await asyncio.sleep(0.01)
        (item,) = desk.waiting()
        desk.submit(item.id, "simulated-1", SAID)
        await asyncio.sleep(0.1)
        assert not task.done()
        desk.undo("simulated-1")
        desk.submit(item.id, "simulated-1", {"action": "send", "text": "Better."})
        return (await asyncio.wait_for(task, 5)).text

    assert asyncio.run(run()) == "Better."
    assert desk.last_submission("simulated-1") is None, "the run has taken it"


@pytest.mark.parametrize("moment", ["before anybody answered", "after somebody answered", "after the run took it"])
def test_a_run_that_was_killed_finds_its_item_with_its_answer(tmp_path, desk, moment):
    async def run() -> str:
        first = human(tmp_path, run="r1")
        task = asyncio.create_task(first.reply(call()))
        while not desk.waiting():
            await asyncio.sleep(0.01)
        if moment == "before anybody answered":
            task.cancel()
        (item,) = desk.waiting()
        if moment == "after somebody answered":
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        desk.submit(item.id, "simulated-1", SAID)
        if moment == "after the run took it":
            await task
        second = human(tmp_path, run="r2")
        return (await asyncio.wait_for(second.reply(call()), 5)).text

    assert asyncio.run(run()) == "Count the corners."
    assert len(desk.items()) == 1


def test_another_study_reply_or_level_is_another_item(tmp_path, desk):
    async def run() -> None:
        one = human(tmp_path)
        other = HumanBackend("second-study", poll_s=0.02)
        other.begin_run(place=tmp_path, task="demo", run="r2")
        asked = [call(), call(replies=("B",)), call(level=2), call(episode("8")), call(branch="detail")]
        tasks = [asyncio.create_task(one.reply(each)) for each in (*asked, call())]
        tasks.append(asyncio.create_task(other.reply(call())))
        while len(desk.waiting()) < 6:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert len(desk.waiting()) == 6, "the same call twice is one item"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def test_items_that_come_together_are_laid_together(tmp_path, desk):
    async def run() -> int:
        backend = human(tmp_path)
        put, batches = backend._desk.put, []

        def counted(items, pictures):
            batches.append(len(items))
            put(items, pictures)

        backend._desk.put = counted
        tasks = [asyncio.create_task(backend.reply(call(episode(str(number))))) for number in range(200)]
        while len(desk.waiting()) < 200:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(batches) == 200
        return len(batches)

    assert asyncio.run(run()) < 20, "a disk needs its time for each"


def test_an_item_that_cannot_be_laid_fails_its_call_with_the_reason(tmp_path, desk):
    async def run():
        backend = human(tmp_path)

        def full(items, pictures):
            raise PeopleError("the disk is full")

        put, backend._desk.put = backend._desk.put, full
        failed = await asyncio.gather(backend.reply(call()), backend.reply(call(level=2)))
        backend._desk.put = put
        return failed, await answered(backend, call(), desk)

    failed, later = asyncio.run(run())
    assert [(reply.status, reply.error) for reply in failed] == [("error", "the disk is full")] * 2
    assert later.text == "Count the corners."


def test_pictures_are_encoded_beside_the_loop_and_a_broken_one_fails_its_call_only(tmp_path, desk):
    threads = []

    class Slow(PictureRef):
        @property
        def data(self) -> bytes:
            threads.append(threading.current_thread())
            if self.digest == "broken":
                raise PictureError("picture broken: cannot be decoded")
            return b"png"

    def asked(digest: str) -> Call:
        shown = Slow(digest=digest, width=1, height=1, mime="image/png")
        return call(replace(episode(digest), question=message("user", shown, "?")))

    async def run():
        backend = human(tmp_path)
        broken = await backend.reply(asked("broken"))
        return broken, await answered(backend, asked("fine"), desk)

    broken, fine = asyncio.run(run())
    assert (broken.status, broken.error) == ("error", "picture broken: cannot be decoded")
    assert (fine.text, desk.picture("fine").data) == ("Count the corners.", b"png")
    assert threading.main_thread() not in threads


def test_people_know_whether_a_run_waits(tmp_path, desk):
    async def run() -> None:
        backend = human(tmp_path)
        assert desk.counts("a").runs == 1
        await backend.close()
        assert desk.counts("a").runs == 0

    asyncio.run(run())


def test_a_desk_that_cannot_be_written_for_a_while_is_looked_at_again(tmp_path, desk, caplog, monkeypatch):
    async def run() -> str:
        backend = human(tmp_path)
        failures = iter(range(3))
        ready = backend._desk.ready

        def full(**options):
            if next(failures, None) is not None:
                raise PeopleError("the disk is full")
            return ready(**options)

        backend._desk.ready = full
        return (await answered(backend, call(), desk)).text

    assert asyncio.run(run()) == "Count the corners."
    assert caplog.text.count("the disk is full") == 1


# --- in the engine ----------------------------------------------------------------------------------------------


def test_hundreds_wait_at_once_and_the_ledger_keeps_what_people_said(tmp_path, desk):
    class Provider(HumanBackend):
        async def reply(self, asked: Call):
            return await super().reply(call(asked.episode))

    def run(name: str, ledger: Ledger):
        backend = Provider("", grace_s=0, poll_s=0.02)
        backend.begin_run(place=tmp_path, task="demo", run=name)
        engine = Engine(progress=False, ledger=ledger, max_live=4)
        return within(30, lambda: play_all(engine, episodes(150), asks(engine, backend)))

    async def answer() -> None:
        while len(desk.waiting()) < 150:
            await asyncio.sleep(0.02)
        for item in desk.waiting():
            desk.submit(item.id, "simulated-1", {"action": "send", "text": item.payload["episode"]})

    thread = threading.Thread(target=lambda: asyncio.run(answer()), daemon=True)
    thread.start()
    ledger = Ledger()
    played = run("one", ledger)
    thread.join()
    assert {name: texts[0] for name, texts in played.texts().items()} == {str(n): str(n) for n in range(150)}
    assert [reply.model for reply in ledger.kept.values()] == ["human:simulated-1"] * 150
    again = run("two", ledger)
    assert (again.report.calls, again.report.ledger_hits) == (0, 150)


# --- what is refused --------------------------------------------------------------------------------------------


def test_people_do_not_solve_and_do_not_judge_during_a_run(tmp_path):
    backend = human(tmp_path)
    solve = asyncio.run(backend.reply(call(purpose="solve")))
    assert (solve.status, "test_on: all_wrong" in solve.error) == ("error", True)
    assert "asked for 'judge'" in asyncio.run(backend.reply(call(purpose="judge"))).error


def test_without_a_run_there_is_no_desk():
    backend = HumanBackend()
    assert "no run has begun" in asyncio.run(backend.reply(call())).error
    with pytest.raises(BackendError, match="during a run of lmms-eval only"):
        backend.begin_run(place=None, task="t", run="r")
    asyncio.run(backend.close())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grace": 3}, r"no option 'grace' \(did you mean 'grace_s'\?\)"),
        ({"grace_s": -1}, "grace_s = -1"),
        ({"poll_s": "soon"}, "poll_s = 'soon'"),
        ({"grace_s": True}, "grace_s = True"),
        ({"hide_answer": "yes"}, "hide_answer = 'yes'"),
    ],
)
def test_a_wrong_option_is_refused(options, said):
    with pytest.raises(BackendError, match=said):
        HumanBackend("", **options)


@pytest.mark.parametrize("role", ["judge", "notetaker"])
def test_people_can_be_the_provider_only(role):
    problems = []
    roles_from({role: "human"}, {}, (role,), key="k", offers=offers_from(build_plugin_manager()), problems=problems)
    assert f"human cannot be the {role}; it can be: provider" in str(problems[0])
    good = []
    found = roles_from(
        {"provider": "human:study,grace_s=0"},
        {},
        ("provider",),
        key="k",
        offers=offers_from(build_plugin_manager()),
        problems=good,
    )
    assert (good, found["provider"][0].words.options) == ([], {"grace_s": 0})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_place_is_told_before_anything_is_paid(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(InterbenchError, match="INTERBENCH_PEOPLE=FILE"):
        human(tmp_path)


def test_a_place_that_cannot_be_is_told_before_anything_is_paid(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PeopleError, match="INTERBENCH_PEOPLE=FILE"):
        human(tmp_path / "file")


def test_people_cost_nothing_by_the_token():
    assert price_list().price_of("human:study", None).output == 0
    assert price_list().price_of("human", None).input == 0


def test_the_name_says_who_answers():
    assert (HumanBackend().name, HumanBackend("study").name) == ("human", "human:study")
    assert HumanBackend("a").fingerprint != HumanBackend("b").fingerprint
    assert HumanBackend(hide_answer=True).fingerprint != HumanBackend().fingerprint
    assert HumanBackend(grace_s=1).fingerprint == HumanBackend().fingerprint


# --- who answered -----------------------------------------------------------------------------------------------


def test_a_record_says_which_people_answered():
    def given(model: str | None, text: str = "Look.") -> Feedback:
        reply = Reply(text=text, model=model, finish_reason=None if text else MARKED_RIGHT)
        return Feedback(text=text, kind="detail", author=model or "template", reply=reply if model else None)

    asked, said = message("user", "?"), Reply(text="A", model="human:no-feedback")
    turns = [
        Turn(index=index, parent=None, user=asked, reply=said, feedback=feedback)
        for index, feedback in enumerate([None, given("human:a"), given("human:b"), given("openai:x"), given(None)])
    ]
    end = BranchEnd(branch="detail", reason=MARKED_RIGHT, feedback=given("human:a", ""))
    record = replace(engine_record(episode()), turns=tuple(turns), ends=(end,))
    assert people_in(record) == {"human:a": 2, "human:b": 1}


@pytest.mark.parametrize(("names", "simulated"), [(["human:a"], []), (["human:a", "human:simulated-1"], ["provider"])])
def test_the_manifest_counts_people_and_says_where_one_was_simulated(names, simulated):
    plan = SimpleNamespace(world_size=1)
    people = dict.fromkeys(names, 3)
    assert _of_people(people, {"simulated": []}, plan) == {"people": people, "simulated": simulated}
    assert "people" not in _of_people(people, {"simulated": []}, SimpleNamespace(world_size=2))
    assert _of_people({}, {"simulated": ["receiver"]}, plan) == {}


def test_people_as_the_provider_of_a_task_whose_questions_they_would_have_to_solve_are_refused(monkeypatch):
    monkeypatch.setenv("INTERBENCH_PROVIDER", "human")
    config = {
        "task": "t",
        "generation_kwargs": {"until": [], "max_new_tokens": 64, "temperature": 0},
        "metadata": {"version": 1.0, "interbench": {"protocol": "feedback_loop", "verifier": "choice"}},
    }
    offers = offers_from(build_plugin_manager())
    with pytest.raises(ConfigError, match="test_on: all_wrong"):
        task_options_from(config, where="t.yaml", offers=offers)
    config["metadata"]["interbench"]["test_on"] = "all_wrong"
    assert task_options_from(config, where="t.yaml", offers=offers).roles["provider"][0].words.backend == "human"
