"""LoCoMo -> conversations: who is the user, what is merged, which turn an answer stands in; and the real data."""

from __future__ import annotations

import json
import zipfile

import pytest

from interbench_tasks.conversation_rows import ConversationRow, row_from
from interbench_tasks.errors import DataError
from interbench_tasks.locomo import NOTHING_SAID, locomo_row, locomo_rows, write_rows
from tests.cli import interbench


def say(speaker, session, number, text, caption=None):
    said = {"speaker": speaker, "dia_id": f"D{session}:{number}", "text": text}
    return said if caption is None else {**said, "blip_caption": caption, "img_url": ["http://x/y.jpg"]}


TALK = {
    "speaker_a": "Ann",
    "speaker_b": "Bob",
    "session_1_date_time": "1 May",
    "session_1": [
        say("Bob", 1, 1, "Hi."),
        say("Bob", 1, 2, "Look.", caption="a red kite"),
        say("Ann", 1, 3, "Nice."),
    ],
    "session_2_date_time": "9 May",
    "session_2": [say("Ann", 2, 1, "I am back."), say("Bob", 2, 2, "Good.")],
    "session_3_date_time": "no such session",
    "session_10_date_time": "2 June",
    "session_10": [say("Ann", 10, 1, "Bye."), say("Bob", 10, 2, "Bye too.")],
    "qa": [
        {"question": "When was Ann back?", "answer": "9 May", "evidence": ["D2:1"], "category": 2},
        {"question": "What was red?", "answer": "a kite", "evidence": ["D1:2 D:10:2", "D9:9"], "category": 4},
        {"question": "Why?", "answer": 2022, "evidence": [], "category": 1},
        {"question": "What would Ann like?", "answer": "kites", "evidence": ["D1:3"], "category": 3},
        {"question": "What was blue?", "adversarial_answer": "a kite", "evidence": ["D1:2"], "category": 5},
    ],
}


def test_consecutive_turns_of_a_speaker_are_one_and_who_begins_is_the_user():
    assert locomo_row(TALK, "t", "here")["turns"] == [
        {
            "user_text": "[1 May]\nBob: Hi.\nBob: Look. [shows a picture: a red kite]",
            "images": [],
            "ref_response": "Ann: Nice.\n[9 May]\nAnn: I am back.",
        },
        {"user_text": "Bob: Good.", "images": [], "ref_response": "[2 June]\nAnn: Bye."},
        {"user_text": "Bob: Bye too.", "images": [], "ref_response": NOTHING_SAID},
    ]


def test_categories_become_abilities_and_evidence_the_turn_it_stands_in():
    questions = locomo_row(TALK, "t", "here")["questions"]
    assert [(one["qid"], one["ability"], one.get("evidence_turns")) for one in questions] == [
        ("q1", "CR", [0]),
        ("q2", "MR", [0, 2]),
        ("q3", "CR", []),
        ("q4", "CR", [0]),
        ("q5", "AR", None),
    ]
    assert questions[2]["answer"] == "2022"
    assert questions[4]["answer"] == "The conversation does not say; it would be wrong to answer: a kite"
    assert questions[4]["extra"] == {"category": "5"}


def test_what_comes_out_is_a_conversation_with_recorded_replies():
    row = row_from(locomo_row(TALK, "t", "here"), recorded=True)
    assert isinstance(row, ConversationRow)
    assert [question.refuses for question in row.questions] == [False] * 4 + [True]


def test_both_layouts_of_locomo_give_the_same():
    talk = {key: value for key, value in TALK.items() if key != "qa"}
    nested = {"sample_id": "conv-1", "conversation": talk, "qa": TALK["qa"]}
    assert locomo_row(nested, "t", "here") == {**locomo_row(TALK, "t", "here"), "id": "conv-1"}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "is no LoCoMo conversation: no list 'qa'; it has: list"),
        ({"dialogue": [], "id": 3}, "no list 'qa'; it has: dialogue, id"),
        ({"qa": []}, "has no session_1, session_2"),
        ({**TALK, "session_2": [{"text": "x"}]}, r"session_2\[0\]: has no 'speaker'"),
        (
            {**TALK, "qa": [{"question": "?", "answer": "x", "category": 6}]},
            r"qa\[1\]: category = 6; allowed: 1, 2, 3, 4, 5",
        ),
        ({**TALK, "qa": [{"question": "?", "category": 1}]}, r"qa\[1\]: has no answer"),
        ({**TALK, "qa": [{"answer": "x", "category": 1}]}, r"qa\[1\]: has no question"),
    ],
)
def test_anything_else_is_refused_with_what_it_has(bad, message):
    with pytest.raises(DataError, match=f"here.*{message}"):
        locomo_row(bad, "t", "here")


def test_a_file_a_list_a_folder_and_a_zip_are_read(tmp_path):
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "26.json").write_text(json.dumps(TALK), encoding="utf-8")
    (tmp_path / "all.json").write_text(json.dumps([TALK, TALK]), encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(folder / "26.json", "data/26.json")
    assert [row["id"] for row in locomo_rows(folder / "26.json")] == ["26"]
    assert [row["id"] for row in locomo_rows(folder)] == ["26"]
    assert [row["id"] for row in locomo_rows(tmp_path / "all.json")] == ["all_0", "all_1"]
    assert [row["id"] for row in locomo_rows(tmp_path / "all.zip")] == ["26"]


@pytest.mark.parametrize("name", ["nothing.json", "broken.json", "empty"])
def test_what_cannot_be_read_names_the_file(tmp_path, name):
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=name):
        locomo_rows(tmp_path / name)


def test_a_file_that_exists_is_not_written_over(tmp_path):
    write_rows([{"a": 1}], tmp_path / "x.jsonl")
    with pytest.raises(DataError, match="already exists"):
        write_rows([{"b": 1}], tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == '{"a": 1}\n'
    with pytest.raises(DataError, match="cannot be written"):
        write_rows([], tmp_path / "no" / "x.jsonl")


# --- the real data ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(shared_data):
    path = shared_data / "locomo" / "locomo10.zip"
    if not path.is_file():
        pytest.skip(f"no LoCoMo data at {path}")
    return path


def test_all_ten_conversations_convert_and_are_well_formed(real):
    rows = [row_from(raw, recorded=True) for raw in locomo_rows(real)]
    assert all(isinstance(row, ConversationRow) for row in rows)
    questions = [question for row in rows for question in row.questions]
    assert (len(rows), len(questions)) == (10, 1986)
    by_ability = {name: sum(one.ability == name for one in questions) for name in ("CR", "MR", "AR")}
    assert by_ability == {"CR": 282 + 321 + 96, "MR": 841, "AR": 446}
    assert sum(not one.evidence_turns for one in questions if one.ability != "AR") == 4  # the data set has none
    lengths = [sum(len(turn.user_text) + len(turn.ref_response or "") for turn in row.turns) // 4 for row in rows]
    assert 12_000 < min(lengths) < max(lengths) < 27_000
    said = sum(text.count(": ") for row in rows for turn in row.turns for text in (turn.user_text, turn.ref_response))
    assert said >= 5882 - 10


def test_the_command_line_converts(real, tmp_path):
    target = tmp_path / "two.jsonl"
    done = interbench("convert", "locomo", real, target, "--limit", "2").check()
    assert "2 conversations, 304 questions" in done.output
    assert len(target.read_text(encoding="utf-8").splitlines()) == 2
    again = interbench("convert", "locomo", real, target)
    assert again.exit_code == 1
    assert "already exists" in again.output
