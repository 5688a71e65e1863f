"""Transcripts in the page: small, complete, and the same whatever was said in them."""

from __future__ import annotations

import base64
import io
import json
import random

import pytest
from PIL import Image

from interbench_tasks.record_json import record_to_json
from interbench_tasks.report import thumbnails as module
from interbench_tasks.report.thumbnails import thumbnails_from
from interbench_tasks.report.transcripts import BLOCK_BYTES, Transcripts, packed, unpacked, without_prompts
from interbench_tasks.runs.pictures import PICTURES
from tests.feedback_records import feedback as told
from tests.report_runs import HOSTILE, PICTURE, loop, loops, talk, thumbnail, user, verdict


def transcripts_of(*records):
    made = Transcripts()
    for record in records:
        made.add(0, record_to_json(record))
    made.close()
    return made


def episodes_of(transcripts):
    return [episode for block in transcripts.blocks for episode in unpacked(block)]


def test_every_episode_is_in_its_block_at_its_place():
    made = transcripts_of(*loops(), talk())
    index = unpacked(made.index())
    assert len(made) == len(index["rows"]) == 7
    blocks = [unpacked(block) for block in made.blocks]
    for row, record in zip(index["rows"], (*loops(), talk()), strict=True):
        episode = blocks[row[1]][row[2]]
        assert (row[3], episode["episode_id"]) == (record.episode_id, record.episode_id)
    assert index["outcomes"][index["rows"][0][6][0]] == "right at once"
    assert [index["categories"][row[5]] for row in index["rows"]] == ["even", "odd"] * 3 + ["Pets"]
    assert [row[7] for row in index["rows"]] == [0, 1, None, 1, 0, -1, -1]
    assert [row[8] for row in index["rows"]] == [0, 0, 2, 0, 0, 4, 1]


def test_a_block_is_closed_before_it_grows_too_large():
    long = loop(0, "B", said="x" * (BLOCK_BYTES // 2))
    made = transcripts_of(long, long, long)
    assert [len(unpacked(block)) for block in made.blocks] == [1, 1, 1]
    assert len(transcripts_of(*[loop(n, "B") for n in range(50)]).blocks) == 1


def test_all_that_was_said_is_kept_and_prompts_are_not():
    asked = user("THE JUDGE'S PROMPT")
    record = record_to_json(talk())
    judge = record["turns"][-1]["verdicts"][0]
    judge |= {"prompt": {"role": "user", "content": list(asked.content)}, "reply": {"text": "RAW", "status": "ok"}}
    text = json.dumps(without_prompts(record))
    assert "THE JUDGE'S PROMPT" not in text
    assert "RAW" not in text
    for said in ("Tofu is 3.", "She is 4.", "judge-2 says so", "Tofu is 4", PICTURE.digest):
        assert said in text
    assert '"usage"' not in text


def test_what_a_judge_that_gave_no_verdict_said_is_kept():
    record = record_to_json(talk())
    record["turns"][-1]["verdicts"][0] |= {
        "status": "unparsed",
        "reply": {"text": "Well...", "status": "ok", "usage": {}},
    }
    shown = without_prompts(record)["turns"][-1]["verdicts"][0]
    assert shown["reply"] == {"text": "Well...", "status": "ok"}


def test_feedback_keeps_its_words_its_leak_and_its_draft_only():
    record = loop(0, "A", "C")
    leak = loop(0, "A", "C", leak=True).turns[2].feedback.leak
    obj = record_to_json(record)
    obj["turns"][2]["feedback"] = record_to_json(loop(0, "A", "C", leak=True))["turns"][2]["feedback"]
    obj["turns"][2]["feedback"]["prompt"] = {"role": "user", "content": ["SECRET"]}
    shown = without_prompts(obj)["turns"][2]["feedback"]
    assert "prompt" not in shown
    assert shown["leak"]["found"] == leak.found
    assert told(draft=leak).draft is not None


def test_notes_stand_once_where_the_reply_is_the_notes():
    shown = without_prompts(record_to_json(talk()))
    taken = [turn for turn in shown["turns"] if turn.get("notes")]
    assert [turn["reply"]["text"] for turn in taken] == ["", ""]
    assert taken[1]["notes"]["text"] == '{"facts": ["Tofu is 4"]}'


def test_a_record_is_not_changed_by_being_shown():
    obj = record_to_json(talk())
    before = json.dumps(obj)
    without_prompts(obj)
    assert json.dumps(obj) == before


def test_markup_and_half_an_emoji_come_through_as_they_are():
    (episode,) = episodes_of(transcripts_of(loop(0, "A", "C", said=HOSTILE)))
    assert episode["turns"][0]["reply"]["text"].startswith(HOSTILE)
    assert set(transcripts_of(loop(0, "B", said=HOSTILE)).blocks[0]) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
    )


def test_the_same_transcripts_give_the_same_page():
    assert transcripts_of(*loops()).blocks == transcripts_of(*loops()).blocks
    assert packed("ä") == packed("ä")


@pytest.mark.parametrize("obj", [{"episode_id": "x", "turns": 5}, {"episode_id": "x", "doc_id": None}])
def test_what_is_no_record_is_refused_and_leaves_nothing(obj):
    made = Transcripts()
    with pytest.raises((TypeError, ValueError)):
        made.add(0, obj)
    made.add(0, record_to_json(loop(0, "B")))
    made.close()
    assert len(episodes_of(made)) == len(made) == 1


# --- pictures -----------------------------------------------------------------------------------------------------


def keep(folder, n, side=240):
    (folder / PICTURES).mkdir(parents=True)
    for number in range(n):
        (folder / PICTURES / f"{number}.webp").write_bytes(thumbnail(side, f"hsl({number * 30}, 60%, 50%)"))
    return {str(number): 0 for number in range(n)}


def test_pictures_go_in_once_each_as_they_are(tmp_path):
    digests = keep(tmp_path, 3)
    found = thumbnails_from([tmp_path], digests, n_episodes=3, n_bytes=0)
    assert list(found.files) == ["0", "1", "2"]
    assert found.note.startswith("Pictures are shown small")
    assert thumbnails_from([tmp_path], {}, n_episodes=3, n_bytes=0).note == ""


def test_a_picture_may_lie_in_another_run_of_the_report(tmp_path):
    keep(tmp_path / "a", 0)
    keep(tmp_path / "b", 1)
    assert list(thumbnails_from([tmp_path / "a", tmp_path / "b"], {"0": 0}, n_episodes=1, n_bytes=0).files) == ["0"]


def test_missing_pictures_are_told(tmp_path):
    digests = keep(tmp_path, 2) | {"gone": 0}
    (tmp_path / PICTURES / "1.webp").write_bytes(b"no picture")
    found = thumbnails_from([tmp_path], digests, n_episodes=3, n_bytes=0)
    assert list(found.files) == ["0"]
    assert "2 of 3 were not kept" in found.note
    none = thumbnails_from([tmp_path / "older"], digests, n_episodes=3, n_bytes=0)
    assert none.note == "The run folders hold no pictures: in their place stand size and digest."


def noise(seed):
    file = io.BytesIO()
    Image.frombytes("RGB", (256, 192), random.Random(seed).randbytes(256 * 192 * 3)).save(file, "WEBP", quality=50)
    return file.getvalue()


@pytest.mark.parametrize(("share", "side"), [(1.01, None), (0.7, 192), (0.4, 128), (0.1, 96)])
def test_very_many_pictures_are_made_as_small_as_they_must_be(tmp_path, monkeypatch, share, side):
    (tmp_path / PICTURES).mkdir()
    files = [noise(number) for number in range(5)]
    for number, file in enumerate(files):
        (tmp_path / PICTURES / f"{number}.webp").write_bytes(file)
    monkeypatch.setattr(module, "FEW_BYTES", 1)
    monkeypatch.setattr(module, "BYTES_PER_EPISODE", int(sum(map(len, files)) * share * 4 / 3))
    found = thumbnails_from([tmp_path], {str(number): 0 for number in range(5)}, n_episodes=1, n_bytes=0)
    sizes = {max(Image.open(io.BytesIO(base64.b64decode(file))).size) for file in found.files.values()}
    assert sizes == {side or 256}
    assert (f"none is larger than {side} pixels" in found.note) == (side is not None)


def test_no_page_has_more_pictures_than_a_browser_likes(tmp_path, monkeypatch):
    (tmp_path / PICTURES).mkdir()
    (tmp_path / PICTURES / "0.webp").write_bytes(noise(0))
    monkeypatch.setattr(module, "MOST_BYTES", 2000)
    assert "none is larger than 96 pixels" in thumbnails_from([tmp_path], {"0": 0}, n_episodes=10**6, n_bytes=0).note


def test_a_verdict_without_a_reply_is_shown():
    obj = record_to_json(talk())
    assert without_prompts(obj)["turns"][-1]["verdict"]["reason"] == verdict("panel", 3.0).reason
