"""The desk between a run and people: nobody's words are lost, and no item goes to two people unasked."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from interbench_tasks.errors import PeopleError, RefusedError
from interbench_tasks.people.desk import (
    CLAIM_S,
    RUN_ALIVE_S,
    Desk,
    Entry,
    NewItem,
    StoredPicture,
    checked_annotator,
    item_id,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def desk(tmp_path, clock):
    with Desk(tmp_path / "people.sqlite", clock=clock) as desk:
        yield desk


def item(name: str, *, needs: int = 1, run: str = "", **payload) -> NewItem:
    return NewItem(id=name, kind="feedback", payload={"question": name, **payload}, needs=needs, run=run)


SAID = {"action": "send", "text": "Look again."}


# --- what a run does --------------------------------------------------------------------------------------------


def test_the_same_parts_give_the_same_id_and_others_another():
    assert item_id(["a", "b"]) == item_id(["a", "b"])
    assert len({item_id(["ab"]), item_id(["a", "b"]), item_id(["b", "a"]), item_id(["\ud800"])}) == 4


def test_an_item_that_is_put_twice_keeps_its_answer_and_goes_to_the_new_run(desk):
    desk.begin_run("one", "task")
    desk.put([item("a", run="one")], {"d": StoredPicture(mime="image/png", data=b"x")})
    desk.submit("a", "ann", SAID, 12.5)
    desk.begin_run("two", "task")
    desk.put([item("a", run="two")], {"d": StoredPicture(mime="image/png", data=b"x")})
    assert [answer.content for answer in desk.answers("a")] == [SAID]
    assert desk.item("a").run == "two"
    assert desk.picture("d") == StoredPicture(mime="image/png", data=b"x")
    assert desk.picture("other") is None


def test_an_answer_is_taken_after_the_grace_only(desk, clock):
    desk.put([item("a")])
    desk.submit("a", "ann", SAID, 3.0)
    assert desk.take(["a"], grace_s=10) == {}
    clock.now += 10
    taken = desk.take(["a"], grace_s=10)
    assert [(answer.annotator, answer.seconds) for answer in taken["a"]] == [("ann", 3.0)]
    assert desk.take(["a"], grace_s=10) == taken, "a run that was killed after it took the answer asks again"


def test_an_item_that_needs_two_is_taken_when_both_have_answered(desk):
    desk.put([item("a", needs=2)])
    desk.submit("a", "ann", SAID)
    assert desk.take(["a"]) == {}
    desk.submit("a", "bob", SAID)
    assert [answer.annotator for answer in desk.take(["a"])["a"]] == ["ann", "bob"]


def test_nothing_is_taken_of_items_that_nobody_put(desk):
    assert desk.take(["nowhere"]) == {}


def test_items_of_a_run_that_is_gone_stay_and_are_given_while_no_other_run_asks(desk, clock):
    desk.begin_run("gone", "task")
    desk.put([item("a", run="gone"), item("of no run")])
    clock.now += RUN_ALIVE_S + 1
    assert (desk.item("a").wanted, desk.item("of no run").wanted) == (False, True)
    assert desk.next_for("ann") == "a", "people go on while the run is being started again"
    desk.begin_run("here", "task")
    desk.put([item("b", run="here")])
    assert desk.next_for("ann") == "of no run"
    desk.submit("of no run", "ann", SAID)
    assert desk.next_for("ann") == "b"
    found = desk.counts("ann")
    assert (found.waiting, found.for_you, found.of_gone_runs, found.runs, found.runs_known) == (2, 1, 1, 1, 2)
    assert desk.claim("a", "ann").state == "yours", "who wants to may still answer it"
    desk.skip("a", "ann")
    desk.put([item("a", run="here")])
    assert desk.counts("ann").for_you == 2
    desk.end_run("here")
    assert (desk.item("b").wanted, desk.counts("ann").for_you) == (False, 2)


def test_a_run_is_there_as_long_as_it_says_so(desk, clock):
    desk.begin_run("here", "task")
    desk.put([item("b", run="here")])
    clock.now += RUN_ALIVE_S - 1
    desk.beat("here")
    clock.now += RUN_ALIVE_S - 1
    assert desk.item("b").wanted
    clock.now += 2
    assert not desk.item("b").wanted


# --- who gets what ----------------------------------------------------------------------------------------------


def test_no_item_goes_to_two_people_unless_asked_for(desk):
    desk.put([item("a"), item("b"), item("both", needs=2)])
    assert desk.claim(desk.next_for("ann"), "ann").state == "yours"
    assert desk.next_for("bob") == "b"
    desk.claim("b", "bob")
    assert desk.next_for("eve") == "both"
    desk.claim("both", "eve")
    assert desk.next_for("dan") == "both"
    desk.claim("both", "dan")
    assert desk.next_for("fay") is None
    standing = desk.claim("a", "bob")
    assert (standing.state, standing.others) == ("with_another", ("ann",))


def test_asking_for_a_third_annotator_opens_the_item_again(desk):
    desk.put([item("a", needs=2)])
    desk.submit("a", "ann", SAID)
    desk.submit("a", "bob", SAID)
    assert desk.next_for("eve") is None
    desk.need("a", 3)
    desk.need("a", 1)
    assert (desk.next_for("eve"), desk.next_for("ann")) == ("a", None)


def test_an_item_of_somebody_who_left_is_given_to_the_next(desk, clock):
    desk.put([item("a")])
    desk.claim("a", "ann")
    clock.now += CLAIM_S - 1
    desk.save_draft("a", "ann", {"text": "hm"})
    clock.now += CLAIM_S - 1
    assert desk.next_for("bob") is None
    clock.now += 2
    assert desk.next_for("bob") == "a"
    assert desk.draft("a", "ann").content == {"text": "hm"}, "the words of who left stay"


def test_one_person_holds_one_item(desk):
    desk.put([item("a"), item("b")])
    desk.claim("a", "ann")
    desk.claim("b", "ann")
    assert desk.next_for("bob") == "a"
    assert desk.next_for("ann") == "b"


def test_a_skipped_item_comes_again_after_all_others(desk):
    desk.put([item("a"), item("b")])
    desk.claim("a", "ann")
    desk.skip("a", "ann")
    assert desk.next_for("ann") == "b"
    assert desk.next_for("bob") == "a"
    desk.submit("b", "ann", SAID)
    assert desk.next_for("ann") == "a"


def test_counts_say_what_is_left_for_whom(desk):
    desk.put([item("a"), item("b"), item("c")])
    desk.claim("a", "ann")
    desk.submit("b", "bob", SAID)
    found = desk.counts("bob")
    assert (found.waiting, found.for_you, found.with_others, found.yours, found.runs) == (2, 1, 1, 1, 0)
    assert desk.counts("ann").for_you == 2


def test_the_queue_has_pages_in_the_order_of_arrival(desk):
    desk.put([item(str(number)) for number in range(7)])
    desk.submit("0", "ann", SAID)
    desk.claim("2", "bob")
    page = desk.queue("ann", first=0, most=3)
    assert [(one.item.id, one.state) for one in page] == [("1", "free"), ("2", "with_another"), ("3", "free")]
    assert [one.item.id for one in desk.queue("ann", first=3, most=10)] == ["4", "5", "6"]
    assert [one.id for one in desk.waiting()] == ["1", "2", "3", "4", "5", "6"]
    assert len(desk.items()) == 7
    assert desk.items("judgement") == []


# --- handing in and undoing -------------------------------------------------------------------------------------


def test_a_second_answer_to_one_item_is_refused_and_its_words_are_kept(desk):
    desk.put([item("a")])
    desk.submit("a", "ann", SAID)
    with pytest.raises(RefusedError, match="you have answered it already") as own:
        desk.submit("a", "ann", {"action": "send", "text": "again"})
    with pytest.raises(RefusedError, match="answered meanwhile by somebody else") as other:
        desk.submit("a", "bob", {"action": "send", "text": "mine"}, 8.0)
    assert (own.value.reason, other.value.reason) == ("answered_by_you", "answered")
    kept = desk.draft("a", "bob")
    assert (kept.content["text"], kept.seconds) == ("mine", 8.0)
    assert len(desk.answers("a")) == 1


def test_an_answer_to_a_taken_or_unknown_item_is_refused(desk):
    desk.put([item("a")])
    desk.submit("a", "ann", SAID)
    desk.take(["a"])
    with pytest.raises(RefusedError, match="has taken an answer") as error:
        desk.submit("a", "bob", SAID)
    assert error.value.reason == "taken"
    with pytest.raises(RefusedError, match="no item 'z'") as error:
        desk.submit("z", "bob", SAID)
    assert error.value.reason == "unknown"
    assert desk.standing("a", "ann").mine is not None


def test_undo_makes_the_last_answer_a_draft_again(desk):
    desk.put([item("a"), item("b")])
    desk.submit("a", "ann", SAID, 4.0)
    desk.submit("b", "ann", {"action": "marked_right"}, 5.0)
    assert desk.last_submission("ann").item == "b"
    undone = desk.undo("ann")
    assert (undone.item, undone.undone_at is not None) == ("b", True)
    standing = desk.standing("b", "ann")
    assert (standing.state, standing.draft.content, standing.draft.seconds) == (
        "yours",
        {"action": "marked_right"},
        5.0,
    )
    assert desk.take(["b"]) == {}
    desk.submit("b", "ann", SAID, 9.0)
    assert [answer.content for answer in desk.take(["b"])["b"]] == [SAID]


def test_what_the_run_took_cannot_be_undone(desk):
    with pytest.raises(RefusedError, match="handed nothing in"):
        desk.undo("ann")
    assert desk.last_submission("ann") is None
    desk.put([item("a")])
    desk.submit("a", "ann", SAID)
    desk.take(["a"])
    assert desk.last_submission("ann") is None
    with pytest.raises(RefusedError, match="the run has taken it") as error:
        desk.undo("ann")
    assert error.value.reason == "taken"


def test_a_draft_survives_and_goes_when_it_is_handed_in(desk, tmp_path):
    desk.put([item("a")])
    assert desk.save_draft("a", "ann", {"text": "so far"}, 7.0) == "free"
    with Desk(tmp_path / "people.sqlite") as again:
        assert again.draft("a", "ann").content == {"text": "so far"}
    desk.submit("a", "ann", SAID)
    assert desk.draft("a", "ann") is None
    assert desk.all_answers("feedback")[0].content == SAID
    assert desk.all_answers("judgement") == []


def test_several_answers_are_handed_in_all_or_none(desk):
    desk.put([item("a"), item("b")])
    desk.submit("b", "bob", SAID)
    entries = [
        Entry(item="a", annotator="ann", content=SAID),
        Entry(item="b", annotator="ann", content=SAID),
        Entry(item="a", annotator="ann", content=SAID),
        Entry(item="a", annotator="a@b.c", content=SAID),
    ]
    refusals = desk.submit_all(entries)
    assert refusals[0] is None
    assert "answered meanwhile" in refusals[1]
    assert "answered it already" in refusals[2], "the lines before it count"
    assert "pseudonym" in refusals[3]
    assert desk.answers("a") == ()
    assert desk.submit_all(entries[:1]) == [None]
    assert [answer.annotator for answer in desk.answers("a")] == ["ann"]


@pytest.mark.parametrize("name", ["", " ", "ann@example.org", "Ann Smith", "x" * 41, "-a", "<b>"])
def test_an_annotators_id_is_a_short_pseudonym(name):
    with pytest.raises(RefusedError, match="pseudonym"):
        checked_annotator(name)
    assert checked_annotator(" a1.b_c-d ") == "a1.b_c-d"


def test_a_session_is_found_by_its_secret_which_is_not_stored(desk, tmp_path):
    assert desk.sessions.annotator("secret") is None
    desk.sessions.begin("secret")
    assert desk.sessions.annotator("secret") == ""
    desk.sessions.name("secret", "ann")
    assert desk.sessions.annotator("secret") == "ann"
    rows = sqlite3.connect(tmp_path / "people.sqlite").execute("SELECT * FROM session").fetchall()
    assert "secret" not in str(rows)


# --- several processes, and trouble with the disk ---------------------------------------------------------------


def test_two_people_who_hand_in_at_the_same_moment_get_one_answer_in(desk, tmp_path):
    desk.put([item(str(number)) for number in range(20)])
    outcomes: list[str] = []

    def work(name: str) -> None:
        with Desk(tmp_path / "people.sqlite") as own:
            for number in range(20):
                try:
                    own.submit(str(number), name, SAID)
                    outcomes.append("in")
                except RefusedError as error:
                    outcomes.append(error.reason)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob", "eve")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("in") == 20
    assert outcomes.count("answered") == 40
    assert all(len(desk.answers(str(number))) == 1 for number in range(20))


CHILD = """
import sys, pathlib
from interbench_tasks.people.desk import Desk, NewItem
desk = Desk(pathlib.Path(sys.argv[1]))
for number in range(100000):
    desk.put([NewItem(id=str(number), kind="feedback", payload={})])
    desk.submit(str(number), "ann", {"text": str(number)})
    print(number, flush=True)
"""


def test_what_was_told_to_be_in_survives_kill_9(tmp_path):
    path = tmp_path / "people.sqlite"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
    told = [int(child.stdout.readline()) for _ in range(20)]
    child.send_signal(signal.SIGKILL)
    told += [int(line) for line in child.stdout.read().splitlines() if line]
    child.wait()
    child.stdout.close()
    with Desk(path) as desk:
        assert all(desk.answers(str(number))[0].content == {"text": str(number)} for number in told)


def test_a_file_that_is_no_desk_is_left_as_it_is(tmp_path):
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises(PeopleError, match="no desk of this version"):
        Desk(other)
    text = tmp_path / "text.sqlite"
    text.write_text("hello, this is no database, but long enough to be looked at" * 30)
    with pytest.raises(PeopleError, match="is no desk, or it is damaged"):
        Desk(text)
    assert other.read_bytes() == before


def test_a_desk_of_a_newer_version_is_left_as_it_is(desk, tmp_path):
    connection = sqlite3.connect(tmp_path / "people.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(PeopleError, match="Upgrade Interbench"):
        Desk(tmp_path / "people.sqlite")


def test_a_place_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PeopleError, match=r"cannot be opened .*INTERBENCH_PEOPLE=FILE"):
        Desk(tmp_path / "file" / "people.sqlite")


def test_a_full_disk_is_a_clear_error_and_what_was_there_stays(desk):
    desk.put([item("a")])
    with desk._file.look() as db:  # SQLite's own way to say that there is no space
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(PeopleError, match="the disk is full. Free space"):
        desk.put([item("b", text="x" * 100_000)])
    assert [one.id for one in desk.items()] == ["a"]


def test_a_change_that_fails_leaves_nothing_half_done(desk):
    def fail() -> None:
        with desk._file.change() as db:
            db.execute("INSERT INTO item (id, kind, payload, needs, created, run) VALUES ('x', 'f', '{}', 1, 0, '')")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert desk.items() == []


@pytest.mark.skipif(os.name != "posix", reason="processor time of this thread")
def test_two_thousand_waiting_items_are_looked_through_in_milliseconds(desk):
    desk.put([item(str(number), text="words " * 100) for number in range(2000)])
    for number in range(0, 2000, 3):
        desk.save_draft(str(number), f"p{number % 7}", {"text": "x"})
    began = time.process_time()
    for _ in range(5):
        desk.counts("ann")
        desk.next_for("ann")
        desk.queue("ann", first=1000)
    assert (time.process_time() - began) / 5 < 0.1


def test_payloads_come_back_as_they_went_in(desk):
    payload = {"question": "<b>ä</b>\u2028", "options": {"A": "1"}, "rounds": [{"told": "", "reply": "x"}]}
    desk.put([NewItem(id="p", kind="feedback", payload=payload)])
    assert json.loads(json.dumps(desk.item("p").payload)) == payload


@pytest.mark.parametrize("also", [("-wal", "-shm"), ()], ids=["with its log", "alone"])
def test_what_is_handed_in_after_somebody_deleted_the_file_is_not_lost(desk, tmp_path, caplog, also):
    desk.put([item("a"), item("b")], {"p": StoredPicture(mime="image/png", data=b"bytes")})
    desk.submit("a", "ann", SAID)
    path = tmp_path / "people.sqlite"
    with Desk(path) as run:  # as the process of a run has it, beside that of the page
        run.begin_run("run", "task")
        for suffix in ("", *also):
            path.with_name(path.name + suffix).unlink()
        desk.submit("b", "ben", SAID)
        run.beat("run")
        assert sorted(run.take(["a", "b"])) == ["a", "b"]
    desk.close()
    assert "written again, so nothing is lost" in caplog.text
    with Desk(path) as later:
        assert [(one.item, one.annotator) for one in later.all_answers("feedback")] == [("a", "ann"), ("b", "ben")]
        assert later.picture("p") == StoredPicture(mime="image/png", data=b"bytes")


def test_a_desk_that_was_replaced_by_a_new_one_goes_on_in_that_one(desk, tmp_path):
    desk.put([item("a")])
    desk.submit("a", "ann", SAID)
    for path in tmp_path.glob("people.sqlite*"):
        path.unlink()
    with Desk(tmp_path / "people.sqlite") as new:
        new.put([item("a"), item("c")])
        new.submit("c", "cy", SAID)
        desk.put([item("b")])
        assert [one.id for one in new.items()] == ["a", "c", "b"]
        assert [one.item for one in new.all_answers("feedback")] == ["c", "a"]
        assert new.next_for("ann") == "b"
