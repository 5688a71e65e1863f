"""The desk as files and in a terminal: for people without a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from interbench_tasks.cli import app
from interbench_tasks.errors import PeopleError
from interbench_tasks.people.desk import Desk, NewItem
from interbench_tasks.people.desk_file import existing_desk
from interbench_tasks.people.forms import Choice, FeedbackForm, Field, own_forms
from interbench_tasks.people.queue_files import read_answers, write_waiting
from interbench_tasks.people_page.terminal import Terminal
from tests.people_desks import lay, png


@pytest.fixture
def desk(tmp_path):
    with Desk(tmp_path / "people.sqlite") as desk:
        yield desk


def lines_of(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path, *lines) -> None:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")


# --- files ------------------------------------------------------------------------------------------------------


def test_what_waits_is_written_with_its_pictures_and_comes_back_answered(desk, tmp_path):
    lay(desk, "a", "b", "c")
    desk.submit("c", "simulated-1", {"action": "send", "text": "x"})
    out = tmp_path / "out" / "waiting.jsonl"
    assert write_waiting(desk, own_forms(), out) == 2
    first, second = lines_of(out)
    assert (first["id"], first["annotator"], first["text"], first["target"]) == ("a", "", "", "B")
    assert first["rounds"][0]["reply"].startswith("The shapes alternate")
    assert Path(first["pictures"][0]).read_bytes() == png()
    write(out, {**first, "annotator": "simulated-2", "text": "Look again.", "seconds": 40}, second)
    done = read_answers(desk, own_forms(), out)
    assert (done.n_handed_in, done.n_empty) == (1, 1)
    (answer,) = desk.answers("a")
    assert (answer.annotator, answer.content, answer.seconds) == (
        "simulated-2",
        {"text": "Look again.", "action": "send"},
        40.0,
    )
    assert desk.answers("b") == ()


def test_what_somebody_filled_in_is_not_written_over_before_it_is_handed_in(desk, tmp_path):
    lay(desk, "a", "b")
    out = tmp_path / "waiting.jsonl"
    write_waiting(desk, own_forms(), out)
    first, second = lines_of(out)
    for filled in ({**first, "text": "Look again."}, {**first, "marked_right": True}, '{"id": "a", "text": "no quote}'):
        write(out, filled, second)
        before = out.read_bytes()
        with pytest.raises(PeopleError, match="line 1.*hand it in first"):
            write_waiting(desk, own_forms(), out)
        assert out.read_bytes() == before
    write(out, {**first, "annotator": "simulated-1", "text": "Look again."}, second)
    read_answers(desk, own_forms(), out)
    assert write_waiting(desk, own_forms(), out) == 1
    assert [line["id"] for line in lines_of(out)] == ["b"]
    assert sorted(path.name for path in tmp_path.glob("*waiting*")) == ["waiting.jsonl", "waiting_pictures"]


def test_of_an_item_for_two_people_the_file_may_be_written_again_after_the_first(desk, tmp_path):
    lay(desk, "a", needs=2)
    write(tmp_path / "w.jsonl", {"id": "a", "annotator": "simulated-1", "text": "Look again."})
    read_answers(desk, own_forms(), tmp_path / "w.jsonl")
    assert write_waiting(desk, own_forms(), tmp_path / "w.jsonl") == 1


def test_all_of_an_item_is_written_whatever_its_kind(desk, tmp_path):
    payload = {"reply": "to judge", "id": "not ours", "hide_target": False}
    desk.put([NewItem(id="a", kind="feedback", payload=payload)])
    write_waiting(desk, own_forms(), tmp_path / "w.jsonl")
    (line,) = lines_of(tmp_path / "w.jsonl")
    assert (line["id"], line["reply"], next(iter(line))) == ("a", "to judge", "id")
    assert "hide_target" not in line


def test_the_right_answer_is_left_out_where_it_is_hidden(desk, tmp_path):
    lay(desk, "a")
    write_waiting(desk, own_forms(), tmp_path / "w.jsonl", hide_answer=True)
    assert "target" not in lines_of(tmp_path / "w.jsonl")[0]


def test_a_short_line_is_enough(desk, tmp_path):
    lay(desk, "a", "b")
    write(
        tmp_path / "answers.jsonl",
        "\ufeff" + json.dumps({"id": "a", "text": "Look."}),
        {"id": "b", "marked_right": True, "annotator": "simulated-9"},
        "",
    )
    read_answers(desk, own_forms(), tmp_path / "answers.jsonl", annotator="simulated-1")
    assert [desk.answers(name)[0].annotator for name in "ab"] == ["simulated-1", "simulated-9"]
    assert desk.answers("b")[0].content == {"text": "", "action": "marked_right"}


def test_every_wrong_line_is_told_and_nothing_is_half_imported(desk, tmp_path):
    lay(desk, "a", "b", "c", "d", "e")
    desk.submit("c", "simulated-1", {"action": "send", "text": "x"})
    good = {"annotator": "simulated-2", "text": "Look."}
    write(
        tmp_path / "answers.jsonl",
        {"id": "a", **good},
        {"id": "nowhere", **good},
        {"id": "b", "annotator": "simulated-2"},
        {"annotator": "x", "text": "y"},
        {"id": "b", "annotator": "simulated-2", "text": "  "},
        "{broken",
        "[1]",
        {"id": "a", **good},
        {"id": "d", "text": "no annotator"},
        {"id": "e", "annotator": "simulated-2", "marked_right": True, "text": "both"},
        {"id": "e", "annotator": "simulated-3", "text": ["in a list"]},
    )
    with pytest.raises(PeopleError) as error:
        read_answers(desk, own_forms(), tmp_path / "answers.jsonl")
    told = str(error.value)
    assert "nothing was handed in; 10 problem(s)" in told
    for said in (
        "line 2: there is no item 'nowhere'",
        "line 3: the column text is missing",
        "line 4: the column id is missing",
        "line 5: The feedback is empty",
        "line 6: is no JSON",
        "line 7: must be an object",
        "line 8: simulated-2 answers item a twice, first in line 1",
        "line 9: the column annotator is missing",
        "line 10: A reply that is marked as right gets no feedback",
        "line 11: text must be a text, in quotes",
    ):
        assert said in told
    assert desk.answers("a") == ()


def test_what_the_desk_refuses_is_told_by_line_too(desk, tmp_path):
    lay(desk, "a", "b", "c")
    desk.submit("b", "simulated-1", {"action": "send", "text": "x"})
    write(
        tmp_path / "answers.jsonl",
        {"id": "a", "annotator": "simulated-2", "text": "fine"},
        {"id": "b", "annotator": "simulated-2", "text": "late"},
        {"id": "c", "annotator": "a@b", "text": "named"},
    )
    with pytest.raises(PeopleError, match="(?s)line 2: .*answered meanwhile.*line 3: .*pseudonym"):
        read_answers(desk, own_forms(), tmp_path / "answers.jsonl")
    assert desk.answers("a") == ()


def test_a_file_that_cannot_be_read_or_written_is_told(desk, tmp_path):
    with pytest.raises(PeopleError, match="cannot be read"):
        read_answers(desk, own_forms(), tmp_path / "none.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"id": "\xe4"}')
    with pytest.raises(PeopleError, match="in UTF-8"):
        read_answers(desk, own_forms(), tmp_path / "latin.jsonl")
    with pytest.raises(PeopleError, match="cannot be written"):
        write_waiting(desk, own_forms(), tmp_path / "latin.jsonl" / "x.jsonl")


def test_of_very_many_problems_the_first_are_told(desk, tmp_path):
    write(tmp_path / "answers.jsonl", *[{"id": str(n), "annotator": "a", "text": "x"} for n in range(80)])
    with pytest.raises(PeopleError, match="(?s)80 problem.*line 50: .*and 30 more"):
        read_answers(desk, own_forms(), tmp_path / "answers.jsonl")


# --- where the desk lies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "interbench", "interbench/people.sqlite", "interbench/run-1/task"])
def test_a_desk_is_found_from_every_folder_of_its_run(tmp_path, place):
    Desk(tmp_path / "interbench" / "people.sqlite").close()
    (tmp_path / "interbench" / "run-1" / "task").mkdir(parents=True)
    assert existing_desk(tmp_path / place) == tmp_path / "interbench" / "people.sqlite"


def test_where_there_is_no_desk_it_is_told_what_makes_one(tmp_path):
    with pytest.raises(PeopleError, match=r"(?s)there is no desk; looked for .*INTERBENCH_PROVIDER=human"):
        existing_desk(tmp_path / "runs")


# --- the command line -------------------------------------------------------------------------------------------


def test_export_and_import_by_the_command_line(desk, tmp_path):
    lay(desk, "a", "b")
    out = tmp_path / "waiting.jsonl"
    result = CliRunner().invoke(app, ["people", "export", str(tmp_path), "-o", str(out)])
    assert (result.exit_code, "2 item(s) that wait" in result.output) == (0, True), result.output
    first, second = lines_of(out)
    write(out, {**first, "text": "Look."}, {**second, "marked_right": True})
    result = CliRunner().invoke(app, ["people", "import", str(tmp_path), str(out), "--annotator", "simulated-1"])
    assert (result.exit_code, "handed in 2 answer(s)" in result.output) == (0, True), result.output
    result = CliRunner().invoke(app, ["people", "import", str(tmp_path), str(out), "--annotator", "simulated-1"])
    assert isinstance(result.exception, PeopleError)


def test_serve_without_a_desk_says_what_to_do(tmp_path):
    result = CliRunner().invoke(app, ["serve", str(tmp_path)])
    assert isinstance(result.exception, PeopleError)


# --- the terminal -----------------------------------------------------------------------------------------------


class Keyboard:
    """Somebody who types these lines; what was said to them is kept."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.said: list[str] = []

    def ask(self, prompt: str) -> str:
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)

    @property
    def screen(self) -> str:
        return "\n".join(self.said)


def at_terminal(desk, tmp_path, *lines: str, forms=None, **options) -> Keyboard:
    keyboard = Keyboard(*lines)
    Terminal(
        desk,
        forms or own_forms(),
        "simulated-1",
        say=keyboard.said.append,
        ask=keyboard.ask,
        pictures=tmp_path / "pictures",
        **options,
    ).work()
    return keyboard


def test_a_terminal_shows_the_item_and_takes_feedback(desk, tmp_path):
    lay(desk, "a", "b")
    keyboard = at_terminal(desk, tmp_path, "Look at", "", "the corners.", ":send", ":right", ":quit")
    assert desk.answers("a")[0].content == {"text": "Look at\n\nthe corners.", "action": "send"}
    assert desk.answers("b")[0].content == {"text": "", "action": "marked_right"}
    for said in ("Which shape comes next", "B. a star", "Right answer", "Handed in", "Nothing waits for you"):
        assert said in keyboard.screen


def test_a_terminal_hides_the_right_answer_and_cannot_be_steered_by_a_reply(desk, tmp_path):
    lay(desk, "a", rounds=[{"told": "", "reply": "\x1b[2Jgone \u202e\x07 but\ttabs stay"}])
    screen = at_terminal(desk, tmp_path, ":quit", hide_answer=True).screen
    assert "Right answer" not in screen
    assert not {"\x1b", "\u202e", "\x07"} & set(screen)
    assert "but" in screen


def test_skip_undo_and_mistakes_at_a_terminal(desk, tmp_path):
    lay(desk, "a", "b")
    keyboard = at_terminal(
        desk,
        tmp_path,
        *(":skip", ":wave", "too", "fast", ":send"),  # a is skipped, b is answered
        *(":undo",),  # at a: b comes back with its draft
        *(":clear", "better", ":send"),
        *(":send", "words", ":right", ":clear", ":right"),  # a: nothing, then both, then the mark alone
        *(":undo", ":quit"),
    )
    assert desk.answers("b")[0].content["text"] == "better"
    assert desk.answers("a") == ()
    assert desk.draft("a", "simulated-1").content["action"] == "marked_right"
    for said in ("No command ':wave'", "Undone", "Not handed in. The feedback is empty", "gets no feedback"):
        assert said in keyboard.screen


def test_words_at_a_terminal_are_saved_line_by_line(desk, tmp_path):
    lay(desk, "a")
    at_terminal(desk, tmp_path, "so far", ":quit")
    assert desk.draft("a", "simulated-1").content["text"] == "so far"
    keyboard = at_terminal(desk, tmp_path, "and on", ":send", ":quit")
    assert desk.answers("a")[0].content["text"] == "so far\nand on"
    assert "Your draft, which goes on" in keyboard.screen


def test_an_answer_that_comes_too_late_is_kept(desk, tmp_path):
    lay(desk, "a")
    keyboard = Keyboard()

    def ask(prompt: str) -> str:
        if not desk.answers("a"):
            desk.submit("a", "simulated-2", {"action": "send", "text": "quicker"})
            return "mine"
        return ":send" if prompt == "> " else ":quit"

    keyboard.ask = ask
    Terminal(desk, own_forms(), "simulated-1", say=keyboard.said.append, ask=ask, pictures=tmp_path).work()
    assert "answered meanwhile by somebody else" in keyboard.screen
    assert desk.draft("a", "simulated-1").content["text"] == "mine"


def test_a_terminal_waits_until_something_is_there(desk, tmp_path):
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        lay(desk, "a")

    at_terminal(desk, tmp_path, ":wait", "Look.", ":send", ":undo", ":quit", sleep=sleep)
    assert len(slept) == 1
    assert desk.draft("a", "simulated-1").content["text"] == "Look."


def test_a_choice_is_made_by_its_key(desk, tmp_path):
    class Scale(FeedbackForm):
        def fields(self, payload):
            return (
                Field(
                    name="score", label="Score", kind="choice", choices=(Choice(value="high", label="High", key="h"),)
                ),
                Field(name="text", label="Why"),
            )

    lay(desk, "a")
    at_terminal(desk, tmp_path, "h", "because", ":send", ":quit", forms={"feedback": Scale()})
    assert desk.answers("a")[0].content == {"score": "high", "text": "because", "action": "send"}
