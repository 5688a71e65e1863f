"""The choice reader on 3,460 real replies of a model to MMMU-Pro, against the data set's official parser."""

from __future__ import annotations

import ast
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from interbench_tasks.answers import extract_choice
from interbench_tasks.records import Extraction

HERE = Path(__file__).resolve().parent
DEFAULT = HERE.parents[1] / "shared" / "data"
CHOSEN = os.environ.get("INTERBENCH_TEST_DATA")
DATA = Path(CHOSEN or DEFAULT) / "mmmu_pro_outputs"
FILES = ("gpt-4o_standard10_cot.jsonl", "gpt-4o_vision_direct.jsonl")
LISTED = json.loads((HERE / "data" / "mmmu_pro_disagreements.json").read_text(encoding="utf-8"))
ALLOWED_S = 6.0
"""For 1,730 replies on a machine under load; the goal is 2 s."""

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no public test data: {DATA} (INTERBENCH_TEST_DATA)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RealReply:
    id: str
    text: str
    choices: dict[str, str]
    theirs: str
    ours: Extraction


def read(name: str) -> tuple[list[RealReply], float]:
    rows = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    choices = [{chr(65 + i): str(o) for i, o in enumerate(ast.literal_eval(row["options"]))} for row in rows]
    started = time.process_time()
    found = [extract_choice(row["response"], options) for row, options in zip(rows, choices, strict=True)]
    seconds = time.process_time() - started
    replies = [
        RealReply(id=row["id"], text=row["response"], choices=options, theirs=row["pred_indexs"], ours=extraction)
        for row, options, extraction in zip(rows, choices, found, strict=True)
    ]
    return replies, seconds


@pytest.fixture(scope="module")
def replies_of():
    return {name: read(name) for name in FILES}


def names_an_option(reply: RealReply) -> bool:
    """Crude on purpose, and independent of the reader: a lone capital (not the words A and I), or an option's text."""
    lone = re.search(r"(?<![\w'])[B-HJ-L](?![\w'])", reply.text)
    unwrapped = re.sub(r"\\text(?:bf)?", "", reply.text.strip())
    marked = re.search(r"\(\s*[AI]\s*\)|Answer\W{0,20}[AI]\b|^[AI]\W?$", unwrapped)
    words = " ".join(re.findall(r"\w+", reply.text.lower()))
    texts = [" ".join(re.findall(r"\w+", text.lower())) for text in reply.choices.values()]
    return bool(lone or marked or any(len(text) > 3 and text in words for text in texts))


@pytest.mark.parametrize("name", FILES)
def test_a_reply_that_names_neither_a_letter_nor_an_option_is_no_choice(name, replies_of):
    replies, _ = replies_of[name]
    silent = [reply for reply in replies if not names_an_option(reply)]
    assert [reply.id for reply in silent if reply.ours.answer is not None] == []
    share = len(silent) / len(replies)
    assert 0.10 < share < 0.13 if "vision" in name else share < 0.01


@pytest.mark.parametrize("name", FILES)
def test_under_half_a_percent_of_the_other_replies_is_unparsed(name, replies_of):
    replies, _ = replies_of[name]
    speaking = [reply for reply in replies if names_an_option(reply)]
    unparsed = [reply.id for reply in speaking if reply.ours.answer is None]
    assert len(unparsed) / len(speaking) < 0.005, unparsed


@pytest.mark.parametrize("name", FILES)
def test_every_disagreement_with_the_official_parser_is_listed_with_its_cause(name, replies_of):
    replies, _ = replies_of[name]
    found = {reply.id: (reply.ours.answer, reply.theirs) for reply in replies if reply.ours.answer != reply.theirs}
    listed = {row["id"]: (row["ours"], row["theirs"]) for row in LISTED if row["file"] == name}
    assert found == listed


@pytest.mark.parametrize("name", FILES)
def test_ours_is_a_letter_of_the_options_or_none(name, replies_of):
    replies, _ = replies_of[name]
    assert all(reply.ours.answer is None or reply.ours.answer in reply.choices for reply in replies)


def test_a_reply_cut_off_before_its_answer_is_hardly_ever_a_choice(replies_of):
    """A few have named their answer before they announce it; more would be guesses."""
    replies, _ = replies_of[FILES[0]]
    cut = [extract_choice(reply.text[: len(reply.text) * 7 // 10], reply.choices) for reply in replies]
    assert sum(extraction.answer is not None for extraction in cut) / len(cut) < 0.025


def test_no_disagreement_is_our_mistake():
    assert {row["cause"] for row in LISTED} <= {"guessed", "theirs", "ours"}
    assert [row for row in LISTED if row["cause"] == "ours"] == []
    assert all(row["note"] for row in LISTED)


@pytest.mark.parametrize("name", FILES)
def test_1730_replies_take_seconds(name, replies_of):
    replies, seconds = replies_of[name]
    assert len(replies) == 1730
    assert seconds < ALLOWED_S
