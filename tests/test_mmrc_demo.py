"""The shipped conversations are exactly what the script writes; their answers stand where they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.conversation_rows import ConversationRow, row_from
from interbench_tasks.metrics.mmrc_analyses import DAILY, PROFESSIONAL

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "task_yamls" / "mmrc" / "demo"
ROWS = [json.loads(line) for line in (SHIPPED / "conversations.jsonl").read_text(encoding="utf-8").splitlines()]
QUESTIONS = [(row, question) for row in ROWS for question in row["questions"]]
COMPUTED = {  # answers that are worked out, with the words of the conversation that they come from
    ("sport_running", "q3"): ("8", "9"),
    ("house_kitchen", "q5"): ("four", "three"),
    ("history_mill", "q2"): ("1841", "1846"),
    ("history_mill_pictures", "q2"): ("1841", "1846"),
    ("economy_cafe", "q5"): ("Tue 6", "Tue 3"),
    ("computer_network", "q4"): ("40", "12", "two"),
}


def name_of(pair):
    return f"{pair[0]['id']}/{pair[1]['qid']}"


def evidence(row, turns):
    """Everything that is said and shown in some turns, and what the pictures before them are numbered."""
    return " ".join(
        f"{row['turns'][turn]['user_text']} {row['turns'][turn].get('extra', {}).get('shows', '')}" for turn in turns
    )


def words(text):
    return re.findall(r"[^\W_]+", text.casefold())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(ROOT / "scripts" / "draw_mmrc_demo.py"), "--out", str(folder)]
    subprocess.run(command, check=True, timeout=120)
    return folder


def test_the_script_writes_exactly_what_is_shipped(written):
    assert (written / "conversations.jsonl").read_bytes() == (SHIPPED / "conversations.jsonl").read_bytes()
    again = {path.relative_to(written).as_posix() for path in written.rglob("*.png")}
    assert again == {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*.png")}
    for name in sorted(again):
        with Image.open(written / name) as new, Image.open(SHIPPED / name) as old:
            assert new.convert("RGB").tobytes() == old.convert("RGB").tobytes(), name


def test_nothing_but_conversations_pictures_and_readme_is_shipped():
    found = {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*") if path.is_file()}
    pictures = [path for row in ROWS for turn in row["turns"] for path in turn["images"]]
    assert found == {"conversations.jsonl", "README.md", *pictures}
    assert len(set(pictures)) == len(pictures)
    assert sum((SHIPPED / path).stat().st_size for path in found) < 400_000


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_each_conversation_is_well_formed(row):
    assert isinstance(row_from(row, recorded=False), ConversationRow)
    assert 4 <= len(row["turns"]) <= 18
    assert row["topic"] in (*DAILY, *PROFESSIONAL)


def test_the_set_covers_what_it_promises():
    assert len([row for row in ROWS if row.get("extra", {}).get("modality") != "picture"]) >= 12
    lengths = [len(row["turns"]) for row in ROWS]
    assert (min(lengths), max(lengths)) == (4, 18)
    abilities = Counter(question["ability"] for _, question in QUESTIONS)
    assert set(abilities) == set(ABILITIES)
    assert min(abilities.values()) >= 10
    formats = Counter(question.get("format", "open") for _, question in QUESTIONS)
    assert set(formats) == {"open", "mc", "tf"}
    assert {row["topic"] in DAILY for row in ROWS} == {True, False}
    updates = Counter(q["extra"]["updates"] for _, q in QUESTIONS if q["ability"] == "IU")
    assert set(updates) == {"1", "2"}
    assert sum(bool(turn["images"]) for row in ROWS for turn in row["turns"]) >= 20


@pytest.mark.parametrize("pair", QUESTIONS, ids=name_of)
def test_an_answer_stands_in_the_turns_it_names_and_a_refusal_in_none(pair):
    row, question = pair
    if question["ability"] == "AR":
        assert "evidence_turns" not in question
        assert not {"items", "image_ids"} & set(question)
        return
    assert question["evidence_turns"], "an answer stands somewhere"
    said = words(evidence(row, question["evidence_turns"]))
    if (row["id"], question["qid"]) in COMPUTED:
        for part in COMPUTED[row["id"], question["qid"]]:
            assert set(words(part)) <= set(said)
        return
    if question.get("format") == "tf":
        return
    answer = question["answer"]
    if question.get("format") == "mc":
        answer = question["options"]["ABCD".index(answer)]
    if question["ability"] in ("CR",):
        assert set(words(answer)) & set(said)  # a conclusion has words of its own
        return
    left_out = {"picture", "a", "an", "the", "in", "of", "by", "with", "one", "song", "reaching", "first", "word"}
    left_out |= {str(number) for number in question.get("image_ids", ())}
    missing = [word for word in words(answer) if word not in left_out and word not in said]
    close = [word for word in missing if not any(word in other or other in word for other in said if len(other) > 2)]
    assert not close, (answer, close)


@pytest.mark.parametrize("pair", [p for p in QUESTIONS if p[1]["ability"] == "IM"], ids=name_of)
def test_a_picture_is_named_by_its_number_and_shown_in_the_evidence(pair):
    row, question = pair
    numbers = {}
    for turn_number, turn in enumerate(row["turns"]):
        for _ in turn["images"]:
            numbers[len(numbers) + 1] = turn_number
    for image in question["image_ids"]:
        assert numbers[image] in question["evidence_turns"]
        assert f"picture {image}" in question["answer"]
    named = re.findall(r"picture (\d+)", question["answer"])
    assert [int(number) for number in named] == question["image_ids"]


@pytest.mark.parametrize("pair", [p for p in QUESTIONS if p[1]["ability"] == "IU"], ids=name_of)
def test_an_update_comes_after_what_it_changes(pair):
    row, question = pair
    assert max(question["evidence_turns"]) >= 1
    assert len(row["turns"]) > max(question["evidence_turns"])
    assert int(question["extra"]["updates"]) >= 1


def test_a_twin_asks_the_same_and_shows_in_pictures_what_the_other_says():
    by_id = {row["id"]: row for row in ROWS}
    twins = [row for row in ROWS if row.get("extra", {}).get("modality") == "picture"]
    assert len(twins) == 3
    for twin in twins:
        text = by_id[twin["cluster"]]
        assert twin["cluster"] == text["cluster"]
        assert twin["questions"] == text["questions"]
        assert len(twin["turns"]) == len(text["turns"])
        moved = [i for i, turn in enumerate(twin["turns"]) if turn["user_text"] != text["turns"][i]["user_text"]]
        assert moved
        for number in moved:
            assert len(twin["turns"][number]["images"]) == len(text["turns"][number]["images"]) + 1


def test_a_model_is_not_told_what_the_pictures_show():
    """`shows` is for checks and simulations; the reader puts text and pictures into a message, and nothing else."""
    from interbench_tasks.conversations import reader_from
    from interbench_tasks.rows import load_rows
    from tests.conversation_runs import OFFERS, options_of

    assert OFFERS.protocols
    data = load_rows(str(SHIPPED / "conversations.jsonl"), name=None, split="test", options={})
    reader = reader_from(data, options_of({"rubric": None}))
    for doc_id, row in enumerate(ROWS):
        episode = reader.episode(doc_id, 0)
        for turn, raw in zip(episode.script, row["turns"], strict=True):
            assert turn.user.text == raw["user_text"]
            assert len(turn.user.pictures) == len(raw["images"])
