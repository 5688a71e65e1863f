"""Runs every case of a file of cases through one small adapter an area.

The file is the one that INTERBENCH_CASES names, by default tests/data/cases.json. An adapter raises AssertionError
where the behaviour is another one.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
from itertools import permutations
from pathlib import Path

import pytest
from PIL import Image

from interbench_tasks.answers import ChoiceOrExactVerifier, ChoiceOrMathVerifier, extract_choice
from interbench_tasks.backends.chat_bodies import chat_messages
from interbench_tasks.errors import PictureError
from interbench_tasks.file_names import safe_file_name
from interbench_tasks.hookspecs import Call, Parts
from interbench_tasks.images import picture_from
from interbench_tasks.judging_json import label_in_json, number_in_json
from interbench_tasks.judging_parse import NumberScale, bare_label, bare_number, label_after, number_after
from interbench_tasks.ledger import call_key
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.metrics.sums import mean_of_scored
from interbench_tasks.plugins.judges import interbench_panel_rules
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from interbench_tasks.record_json import line_from_record
from interbench_tasks.records import Episode, GenerationSettings, Message, Verdict
from interbench_tasks.redaction import redact
from tests.testing import OPTIONS, FakeRoles, Hint, ScriptedRole, make_episode

DEFAULT = Path(__file__).resolve().parent / "data" / "cases.json"
CASES = Path(os.environ.get("INTERBENCH_CASES") or DEFAULT)
LATER: dict[str, str] = {}
"""Areas whose feature is not built yet -> why they are skipped."""


def choice(given, expected):
    assert extract_choice(given["text"], given["choices"]).answer == expected["answer"]


def freeform(given, expected):
    verifier = ChoiceOrMathVerifier()
    try:
        judgement = verifier.judge(given["text"], given["gold"], {})
    finally:
        verifier.close()
    assert judgement.correct == expected["correct"], judgement


def image(given, expected):
    source = described_picture(given)
    try:
        sent = picture_from(source)
        data = sent.data
    except PictureError:
        assert not expected["sendable"]
        return
    assert expected["sendable"]
    with Image.open(io.BytesIO(data)) as opened:
        size, mime = list(opened.size), Image.MIME[opened.format]
    assert sent.mime == mime
    assert [sent.width, sent.height] == size
    if "sent_size" in expected:
        assert size == expected["sent_size"]


def described_picture(given) -> bytes:
    """The bytes of the picture that a case describes."""
    frames = [Image.new(given["mode"], tuple(given["size"])) for _ in range(given.get("frames", 1))]
    exif = Image.Exif()
    if "exif_orientation" in given:
        exif[0x0112] = given["exif_orientation"]
    more = {"save_all": True, "append_images": frames[1:]} if len(frames) > 1 else {}
    if len(exif):
        more["exif"] = exif
    buffer = io.BytesIO()
    frames[0].save(buffer, format=given["container"], **more)
    data = buffer.getvalue()
    return data[: len(data) // 2] if given.get("truncated") else data


def cache_key(given, expected):
    left, right = (call_key("backend", described_call(given[side]), 0) for side in ("left", "right"))
    assert (left == right) == expected["same_key"]


def described_call(side) -> Call:
    """The call that a case describes: the history's texts alternate, the first one is the user's."""
    texts = [*side.get("history", []), side["prompt"]]
    roles = ("user", "assistant")
    messages = tuple(Message(role=roles[i % 2], content=(text,)) for i, text in enumerate(texts))
    settings = {"max_new_tokens": 64, "temperature": 0.0} | side.get("settings", {})
    doc_id = side.get("doc_id", 0)
    episode = Episode(id=str(doc_id), doc_id=doc_id, question=messages[0], target="A")
    return Call(
        messages=messages,
        settings=GenerationSettings(**settings),
        role="receiver",
        purpose="answer",
        episode=episode,
        round=len(texts) // 2,
    )


def redaction(given, expected):
    shown = redact(given["text"])
    assert [secret for secret in expected.get("must_not_contain", []) if secret in shown] == []
    assert [text for text in expected.get("must_contain", []) if text not in shown] == []


def filename(given, expected):
    models = given.get("models") or [given["model"]]
    names = [safe_file_name(model) for model in models]
    for name in names:
        assert name
        assert not set(name) & set(expected.get("forbidden_characters", ""))
        assert len(name) <= expected.get("max_length", 255)
    assert len(set(names)) == len(set(models))


def played(answers, gold, max_rounds, options):
    """The record of a feedback loop in which the receiver gives these answers, one a round."""

    def say(asked):
        return answers[min(asked.round, len(answers) - 1)]

    protocol = FeedbackLoop(
        FeedbackLoopOptions(arms=("simple",), max_rounds=max_rounds),
        Parts(verifier=ChoiceOrExactVerifier(), feedback_providers={"simple": Hint("simple")}),
    )
    episode = make_episode(target=gold, options=options)
    roles = FakeRoles(ScriptedRole(say), ScriptedRole(lambda asked: f"Answer: {gold}"))
    return asyncio.run(protocol.play(episode, roles))


def rounds(given, expected):
    """`max_rounds` of a case counts the first answer too."""
    answers = [f"Answer: {answer}" for answer in given["answers_per_round"]]
    record = played(answers, given["gold"], max(given["max_rounds"] - 1, 1), dict.fromkeys("ABCDE", "?") | OPTIONS)
    summary = FeedbackLoopMetrics(FeedbackLoopOptions(arms=("simple",), max_rounds=9)).summary(record)
    found = {
        "rounds_used": len([turn for turn in record.turns if turn.role == "receiver"]),
        "first_round_correct": summary["first"]["correct"],
        "recovered": any(end.reason == "solved" for end in record.ends),
    }
    assert found == {name: expected[name] for name in found}


def rounds_log(given, expected):
    """The transcript as a reader of the file sees it."""
    record = played(given["outputs"], "neither of these", max(len(given["outputs"]) - 1, 1), {})
    stored = json.loads(line_from_record(record))
    said = [turn["reply"]["text"] for turn in stored["turns"] if turn["role"] == "receiver"]
    assert said == expected["stored_as"]


def history(given, expected):
    """Pictures stay with their message, in order, on the way to an API and to a backend of the harness."""
    names = [name for turn in given["turns"] for name in as_list(turn.get("image"))]
    pictures = {name: picture_from(pillow_picture(index)) for index, name in enumerate(dict.fromkeys(names))}
    messages = tuple(
        Message(role=turn["role"], content=(*[pictures[name] for name in as_list(turn.get("image"))], turn["text"]))
        for turn in given["turns"]
    )
    urls = {picture.data_url: name for name, picture in pictures.items()}
    sent = [
        [urls[part["image_url"]["url"]] for part in as_list(body["content"], of=dict) if part["type"] == "image_url"]
        for body in chat_messages(messages)
    ]
    assert sent == expected["images_per_message"]
    assert [[p.digest for p in m.pictures] for m in messages] == [[pictures[n].digest for n in names] for names in sent]


def as_list(value, of=str):
    """A missing value is an empty list, a single one a list of one; a plain text has no parts."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, of) else []


def pillow_picture(index: int):
    return Image.new("RGB", (6, 5), (40 * index % 256, 20, 90))


def judge_parse(given, expected):
    value = judged_value(given)
    if "not_value" in expected:
        assert value != expected["not_value"]
    elif expected["ok"]:
        assert value == expected["value"]
    else:
        assert value is None


def judged_value(given):
    """What is read out of a judge's reply; None is a failure of the judge."""
    reply, shape = given["reply"], given["format"]
    if given["kind"] == "label":
        labels = tuple(given["labels"])
        if shape == "marker":
            return label_after(reply, given["marker"], labels)
        return label_in_json(reply, labels) if shape == "json" else bare_label(reply, labels)
    scale = NumberScale(low=given["min"], high=given["max"], integer=given.get("integer", False))
    if shape == "marker":
        return number_after(reply, given["marker"], scale)
    return number_in_json(reply, scale) if shape == "json" else bare_number(reply, scale)


def judge_panel(given, expected):
    rule = interbench_panel_rules()[given["rule"]]()
    verdicts = [vote_as_verdict(f"judge {number}", vote) for number, vote in enumerate(given["votes"])]
    orders = permutations(verdicts) if given.get("permute") else [verdicts]
    for order in orders:
        verdict = rule.combine(order, given["declared"])
        valid = sum(each.status == "scored" for each in order)
        found = {"verdict": verdict.label, "score": verdict.score, "label": verdict.label}
        found |= {"valid": valid, "failed": given["declared"] - valid}
        if not any(isinstance(vote, str) for vote in given["votes"]) and given["rule"] == "strict_majority":
            found["verdict"] = verdict.score
        assert {name: found[name] for name in expected} == expected


def vote_as_verdict(judge: str, vote) -> Verdict:
    """A vote of a case: a label, a score, or None for a judge that failed."""
    if vote is None:
        return Verdict(judge=judge, status="unparsed", score=None)
    if isinstance(vote, str):
        return Verdict(judge=judge, status="scored", score=None, label=vote)
    return Verdict(judge=judge, status="scored", score=vote)


def aggregate(given, expected):
    found = mean_of_scored(given["sample_scores"])
    value = None if found is None else found.value
    total = len(given["sample_scores"])
    scored = 0 if found is None else found.n
    told = {"scored": scored, "unscored": total - scored if found is None else found.unscored, "total": total}
    told |= dict.fromkeys(("mean", "score", "value"), value)
    for name, wanted in expected.items():
        assert told[name] == (pytest.approx(wanted) if isinstance(wanted, float) else wanted), name


ADAPTERS = {
    "rounds": rounds,
    "rounds_log": rounds_log,
    "history": history,
    "mcq": choice,
    "freeform": freeform,
    "image": image,
    "cache_key": cache_key,
    "redaction": redaction,
    "filename": filename,
    "judge_parse": judge_parse,
    "judge_panel": judge_panel,
    "aggregate": aggregate,
}


def parameter(case):
    reason = LATER.get(case["area"])
    return pytest.param(case, id=case["id"], marks=[pytest.mark.skip(reason=reason)] if reason else [])


@pytest.mark.parametrize("case", [parameter(case) for case in json.loads(CASES.read_text(encoding="utf-8"))])
def test_case(case):
    assert case["area"] in ADAPTERS, f"no adapter for area {case['area']!r}: add one to ADAPTERS, LATER or PENDING"
    ADAPTERS[case["area"]](case["input"], case["expected"])


def test_no_area_is_both_run_and_skipped():
    assert not ADAPTERS.keys() & LATER.keys()
