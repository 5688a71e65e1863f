"""Records as JSON: lossless, the same without `run`, readable by others, and strict about other shapes."""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import random
import time
import types
import typing
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest

from interbench_tasks.errors import RunFolderError
from interbench_tasks.record_json import line_from_record, record_from_json, record_from_line, record_to_json
from interbench_tasks.records import (
    BranchEnd,
    EpisodeRecord,
    Extraction,
    Feedback,
    Judgement,
    Message,
    PictureRef,
    Reply,
    ReplyRun,
    Turn,
    Usage,
)

PICTURE = PictureRef(digest="0123456789abcdef" * 2, width=640, height=480, mime="image/png")
QUESTION = Message(role="user", content=(PICTURE, "What animal?"))


def reply(text: str, latency_s: float) -> Reply:
    usage = Usage(calls=1, input_tokens=10, output_tokens=None, reasoning_tokens=0)
    return Reply(text=text, finish_reason="stop", usage=usage, model="m-1", run=ReplyRun(latency_s=latency_s))


FEEDBACK = Feedback(
    text="Look at the ears.",
    kind="detail",
    author="openai:gpt-4o",
    prompt=Message(role="user", content=("Give feedback.", PICTURE)),
    reply=reply("Look at the ears.", 2.0),
)
RECORD = EpisodeRecord(
    task="t",
    protocol="feedback_loop",
    episode_id="row-7",
    doc_id=7,
    repeat=0,
    category=None,
    cluster=None,
    target="B",
    options={"B": "cat", "A": "dog"},
    turns=(
        Turn(
            index=0,
            parent=None,
            user=QUESTION,
            reply=reply("A", 1.0),
            judgement=Judgement(extraction=Extraction(answer="A", method="letter"), correct=False),
        ),
        Turn(
            index=1,
            parent=0,
            branch="detail",
            round=1,
            user=Message(role="user", content=("Look at the ears. Again?",)),
            reply=reply("B", 3.0),
            feedback=FEEDBACK,
        ),
    ),
    ends=(
        BranchEnd(branch="detail", reason="solved"),
        BranchEnd(
            branch="simple",
            reason="feedback_failed",
            feedback=replace(FEEDBACK, status="failed", prompt=None, reply=reply("", 4.0)),
        ),
    ),
    models={"receiver": "simulated:a"},
    run={"started_at": 5.5, "retries": [1, None], "cache": {"hit": True}},
)

# --- random records, made from the types, so that a new field is tested the day it comes ---

ODD_TEXTS = [
    "",
    " ",
    "\0",
    '"\\\n\r\t',
    "\x85\u2028\u2029\x1c",
    "日本語 🙂 é",
    "\ud800",
    "a\udfffb",
    "null",
    "</script>",
    "x" * 3000,
]


SCALARS = {
    str: ODD_TEXTS,
    int: [0, 1, -3, 10**12],
    float: [0.0, 0.5, -1e-9, 1e300],
    bool: [True, False],
    object: [None, 1, 0.25, "text", True, [1, [2]], {"a": {"b": []}}],
    type(None): [None],
}


def random_value(kind, chance: random.Random):
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in SCALARS:
        return chance.choice(SCALARS[kind])
    if origin is typing.Literal:
        return chance.choice(args)
    if origin in (typing.Union, types.UnionType):
        return random_value(chance.choice(args), chance)
    if origin is tuple:
        return tuple(random_value(args[0], chance) for _ in range(chance.randrange(4)))
    if origin is collections.abc.Mapping:
        return {
            f"{chance.choice(['A', 'é', ''])}{n}": random_value(args[1], chance) for n in range(chance.randrange(3))
        }
    hints = typing.get_type_hints(kind)
    return kind(**{field.name: random_value(hints[field.name], chance) for field in dataclasses.fields(kind)})


@pytest.mark.parametrize("seed", range(150))
def test_any_record_comes_back_equal(seed):
    record = random_value(EpisodeRecord, random.Random(seed))
    assert record_from_json(record_to_json(record)) == record
    line = line_from_record(record)
    assert record_from_line(line) == record
    assert record_from_line(line.encode("utf-8").decode("utf-8") + "\n") == record
    assert line.splitlines() == [line]
    assert line_from_record(record_from_line(line)) == line


def test_a_record_with_nothing_but_what_it_must_have_comes_back_equal():
    bare = EpisodeRecord(
        task="t", protocol="p", episode_id="1", doc_id=1, repeat=0, category=None, cluster=None, target="", options={}
    )
    assert record_from_line(line_from_record(bare)) == bare
    assert line_from_record(bare) == (
        '{"task":"t","protocol":"p","episode_id":"1","doc_id":1,"repeat":0,"category":null,"cluster":null,'
        '"target":"","options":{},"status":"finished","run":{"replies":[]}}'
    )


def test_a_record_of_a_version_without_passes_was_played_in_one():
    obj = record_to_json(RECORD)
    assert "passes" not in obj
    assert record_from_json(obj).passes == 1
    twice = record_to_json(dataclasses.replace(RECORD, passes=2))
    assert (twice["passes"], record_from_json(twice).passes) == (2, 2)


def test_a_record_looks_like_this():
    usage = {"calls": 1, "input_tokens": 10, "output_tokens": None, "reasoning_tokens": 0}
    picture = {"digest": PICTURE.digest, "width": 640, "height": 480, "mime": "image/png"}
    said = {"status": "ok", "finish_reason": "stop", "usage": usage, "model": "m-1"}
    runs = [
        {"latency_s": x, "waited_s": 0.0, "retries": 0, "from_ledger": False, "started_at": 0.0} for x in (1, 3, 2, 4)
    ]
    feedback = {"text": "Look at the ears.", "kind": "detail", "author": "openai:gpt-4o"}
    obj = record_to_json(RECORD)
    assert obj == {
        "task": "t",
        "protocol": "feedback_loop",
        "episode_id": "row-7",
        "doc_id": 7,
        "repeat": 0,
        "category": None,
        "cluster": None,
        "target": "B",
        "options": {"B": "cat", "A": "dog"},
        "turns": [
            {
                "index": 0,
                "parent": None,
                "round": 0,
                "role": "receiver",
                "user": {"role": "user", "content": [picture, "What animal?"]},
                "reply": {"text": "A", **said},
                "judgement": {"extraction": {"answer": "A", "method": "letter"}, "correct": False},
            },
            {
                "index": 1,
                "parent": 0,
                "branch": "detail",
                "round": 1,
                "role": "receiver",
                "user": {"role": "user", "content": ["Look at the ears. Again?"]},
                "reply": {"text": "B", **said},
                "feedback": {
                    **feedback,
                    "status": "given",
                    "prompt": {"role": "user", "content": ["Give feedback.", picture]},
                    "reply": {"text": "Look at the ears.", **said},
                },
            },
        ],
        "ends": [
            {"branch": "detail", "reason": "solved"},
            {
                "branch": "simple",
                "reason": "feedback_failed",
                "feedback": {**feedback, "status": "failed", "reply": {"text": "", **said}},
            },
        ],
        "status": "finished",
        "models": {"receiver": "simulated:a"},
        "run": {"started_at": 5.5, "retries": [1, None], "cache": {"hit": True}, "replies": runs},
    }
    names = [field.name for field in dataclasses.fields(EpisodeRecord)]
    assert list(obj) == [name for name in names if name in obj]
    assert list(obj["turns"][1]) == ["index", "parent", "branch", "round", "role", "user", "reply", "feedback"]
    assert json.loads(line_from_record(RECORD)) == obj


def test_two_runs_of_one_episode_are_equal_without_run():
    again = replace(
        RECORD,
        turns=tuple(
            replace(turn, reply=replace(turn.reply, run=ReplyRun(from_ledger=True, retries=3))) for turn in RECORD.turns
        ),
        run={"started_at": 99.0},
    )
    one, two = record_to_json(RECORD), record_to_json(again)
    assert one["run"] != two["run"]
    del one["run"], two["run"]
    assert json.dumps(one) == json.dumps(two)


def test_a_record_without_run_is_read_with_empty_runs():
    obj = record_to_json(RECORD)
    del obj["run"]
    record = record_from_json(obj)
    assert record.run == {}
    assert [turn.reply.run for turn in record.turns] == [ReplyRun(), ReplyRun()]
    assert record.turns[1].feedback.reply.text == FEEDBACK.reply.text
    assert record_from_json({**obj, "run": {"started_at": 1}}).run == {"started_at": 1}


def test_a_picture_with_its_bytes_is_written_as_its_reference():
    @dataclass(frozen=True, kw_only=True)
    class Picture(PictureRef):
        data: bytes = b"the picture itself"

    picture = Picture(digest=PICTURE.digest, width=640, height=480, mime="image/png")
    turn = replace(RECORD.turns[0], user=Message(role="user", content=(picture, "What animal?")))
    assert record_to_json(replace(RECORD, turns=(turn, *RECORD.turns[1:]))) == record_to_json(RECORD)


def test_any_mapping_is_written_as_one():
    frozen = replace(RECORD, options=MappingProxyType(RECORD.options), run=MappingProxyType(dict(RECORD.run)))
    assert line_from_record(frozen) == line_from_record(RECORD)
    assert record_from_line(line_from_record(frozen)) == RECORD


def with_text(text: str) -> EpisodeRecord:
    return replace(RECORD, turns=(replace(RECORD.turns[0], reply=Reply(text=text)),))


def text_in(record: EpisodeRecord) -> str:
    return record.turns[0].reply.text


def test_a_text_in_any_script_stays_readable_and_is_written_once():
    line = line_from_record(with_text("Größe: 日本語 🙂"))
    assert line.count("Größe: 日本語 🙂") == 1


@pytest.mark.parametrize("text", ["\ud800", "日\ud83d \ude00本", "\ude00\ud83d", "\\ud800 and \ud800"], ids=ascii)
def test_lone_surrogates_are_written_as_valid_utf8_and_come_back(text):
    line = line_from_record(with_text(text))
    assert text_in(record_from_line(line.encode("utf-8").decode("utf-8"))) == text


def test_two_halves_of_a_character_next_to_each_other_come_back_as_the_character():
    assert text_in(record_from_line(line_from_record(with_text("\ud83d\ude00")))) == "\N{GRINNING FACE}"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_refused_with_the_episode(number):
    with pytest.raises(
        RunFolderError, match=r"episode 'row-7' of task t cannot be written as JSON: .*not JSON compliant"
    ):
        line_from_record(replace(RECORD, run={"latency": number}))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"a": {"b": [1, object()]}}, r"key 'run.a.b\[1\]' must be a JSON value, got <object"),
        ({"a": b"bytes"}, r"key 'run.a' must be a JSON value, got b'bytes'"),
        ({"replies": 3}, r"key 'run.replies' is taken"),
        ({("a", "b"): 1}, r"keys must be str"),
    ],
)
def test_what_json_does_not_have_is_refused_with_its_key(run, message):
    with pytest.raises(RunFolderError, match=f"episode 'row-7' of task t cannot be written as JSON: {message}"):
        line_from_record(replace(RECORD, run=run))


# --- other shapes ---


def changed(path: str, value: object) -> dict:
    """RECORD's JSON with one value changed; `...` takes the key out."""
    obj = json.loads(line_from_record(RECORD))
    *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    inner = obj
    for key in keys:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return obj


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("task", ..., "key 'task' is missing"),
        ("status", ..., "key 'status' is missing"),
        ("turns.1.reply.text", ..., "key 'turns[1].reply.text' is missing"),
        ("turns.0.reply.usage", ..., "key 'turns[0].reply.usage' is missing"),
        ("tasks", "t", "key 'tasks' is unknown (did you mean 'task'?)"),
        ("turns.0.replly", {}, "key 'turns[0].replly' is unknown (did you mean 'reply'?)"),
        ("turns.0.reply.run", {}, "key 'turns[0].reply.run' is unknown"),
        ("doc_id", "7", "key 'doc_id' must be a whole number, got '7'"),
        ("doc_id", 7.5, "key 'doc_id' must be a whole number, got 7.5"),
        ("doc_id", True, "key 'doc_id' must be a whole number, got True"),
        ("doc_id", None, "key 'doc_id' must be a whole number, got None"),
        ("task", 3, "key 'task' must be a text, got 3"),
        ("turns.0.judgement.correct", 0, "key 'turns[0].judgement.correct' must be true or false, got 0"),
        ("turns.0.reply.status", "fine", "key 'turns[0].reply.status' must be one of ok, empty, error, skipped"),
        ("turns.0.reply.status", ["ok"], "key 'turns[0].reply.status' must be one of ok, empty, error, skipped"),
        ("turns", {}, "key 'turns' must be a list, got {}"),
        ("turns.1", [], "key 'turns[1]' must be a mapping, got []"),
        ("turns.0.user.content.0", 3, "key 'turns[0].user.content[0]' must be a mapping, got 3"),
        ("turns.0.user.content.0.width", "wide", "key 'turns[0].user.content[0].width' must be a whole number"),
        ("turns.0.user.content", "text", "key 'turns[0].user.content' must be a list, got 'text'"),
        ("options.A", 3, "key 'options.A' must be a text, got 3"),
        ("run", [], "key 'run' must be a mapping, got []"),
        ("run.replies", {}, "key 'run.replies' must be a list, got {}"),
        ("run.replies.1.latency_s", "1 s", "key 'run.replies[1].latency_s' must be a number, got '1 s'"),
        ("run.replies.3", ..., "key 'ends[1].feedback.reply' has no entry in run.replies"),
        ("turns.1.feedback", ..., "key 'run.replies' has more entries than the record has replies"),
    ],
)
def test_another_shape_is_refused_with_its_key(path, value, message):
    obj = changed(path, value)
    with pytest.raises(RunFolderError) as caught:
        record_from_json(obj)
    assert str(caught.value).startswith(f"not a record as this version of Interbench writes them: {message}")
    assert "Read it with the version that wrote it, or play the episode again." in str(caught.value)


def test_a_key_that_is_left_out_when_empty_may_be_there():
    assert record_from_json({**record_to_json(RECORD), "error": None, "stop_reason": ""}) == RECORD


@pytest.mark.parametrize("line", ["", "{", line_from_record(RECORD)[:-20], "[" * 100_000, '{"task": NaN}', "no JSON"])
def test_a_line_that_is_no_json_is_refused_with_what_to_do(line):
    with pytest.raises(RunFolderError, match=r"(?s)not JSON .*cut off or was changed; remove it, and the same command"):
        record_from_line(line)


@pytest.mark.parametrize("line", ["[]", "null", "3"])
def test_a_line_that_is_no_mapping_is_refused(line):
    with pytest.raises(RunFolderError, match=r"it must be a mapping, got"):
        record_from_line(line)


def test_it_is_fast_enough_for_long_runs():
    # Measured: 20,000 records of 13 KB written in 3 s, read in 3 s. The bound is ten times that.
    long = replace(
        RECORD, turns=tuple(replace(RECORD.turns[1], index=n, reply=reply("word " * 500, 1.0)) for n in range(4))
    )
    started = time.perf_counter()
    lines = [line_from_record(long) for _ in range(300)]
    written = time.perf_counter()
    assert len(lines[0]) > 10_000
    assert all(record_from_line(line) == long for line in lines)
    assert written - started < 0.45
    assert time.perf_counter() - written < 0.6
