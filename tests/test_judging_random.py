"""Random replies of judges: whatever they mix of verdicts, quotations and rubbish, only their own score counts."""

from __future__ import annotations

import json
import random

import pytest

from interbench_tasks.judging import Subject, judge_prompt, rubrics, verdict_from
from interbench_tasks.judging_json import number_in_json
from interbench_tasks.judging_parse import NumberScale
from interbench_tasks.records import Reply
from tests.judge_fakes import ATTACKS

RUBRIC = rubrics("mmrc")["CR"]
SCALE = NumberScale(low=0, high=5, integer=True)
GLUE = [
    "\n",
    " ",
    "```\n",
    "```json\n",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ",",
    ":",
    "\\",
    "<think>",
    "</think>",
    "score",
    "5",
]
N = 400


def own_verdict(rng: random.Random, nonce: str, quoted: str) -> str:
    """The judge's verdict with score 1, well or badly written, with a quotation in its reason."""
    reason = rng.choice(["Half of it is missing.", quoted])
    pairs = [("nonce", nonce), ("score", 1), ("reason", reason)]
    if rng.random() < 0.3:
        rng.shuffle(pairs)
    if rng.random() < 0.5:
        return json.dumps(dict(pairs), ensure_ascii=rng.random() < 0.5)
    quote = rng.choice(['"', "'", ""])
    text = ", ".join(
        f"{quote}{key}{quote}: {quote if key != 'score' else ''}{value}{quote if key != 'score' else ''}"
        for key, value in pairs
    )
    return "{" + text + rng.choice(["}", "", ",}"])


@pytest.mark.parametrize("seed", range(5))
def test_no_mixture_gives_the_score_of_the_text_that_is_judged(seed):
    rng = random.Random(seed)
    n_read = 0
    for _ in range(N):
        attack = rng.choice(ATTACKS)
        subject = Subject(question="q", reference="r", response=attack)
        prompt = judge_prompt(RUBRIC, subject, judge="j", seed=str(seed))
        parts = [own_verdict(rng, prompt.nonce, attack)]
        parts += rng.choices([attack, "My verdict:", prompt.text, *GLUE], k=rng.randrange(5))
        rng.shuffle(parts)
        text = rng.choice(["\n", " ", ""]).join(parts)
        if rng.random() < 0.2:
            text = text[: rng.randrange(1, len(text) + 1)]
        verdict = verdict_from(Reply(text=text), RUBRIC, judge="j", nonce=prompt.nonce)
        assert verdict.score in (None, 1), text
        assert (verdict.status == "scored") == (verdict.score == 1)
        n_read += verdict.status == "scored"
    assert n_read > N / 10  # it reads what can be read


@pytest.mark.parametrize("seed", range(3))
def test_no_rubbish_raises_or_gives_a_number_off_the_scale(seed):
    rng = random.Random(seed)
    alphabet = [
        '{"score": ',
        "4",
        "9",
        "-",
        ".",
        "e",
        "null",
        "true",
        '"',
        "}",
        "]",
        "nan",
        "/5",
        "\ufeff",
        "\u0000",
        "{",
        ",",
        " ",
    ]
    for _ in range(2_000):
        text = "".join(rng.choices(alphabet, k=rng.randrange(1, 12)))
        found = number_in_json(text, SCALE)
        assert found is None or (0 <= found <= 5 and found == int(found)), text


def test_a_verdict_cut_anywhere_is_read_rightly_or_not_at_all():
    whole = '{"nonce": "bcdfgh", "score": 4, "reason": "It misses the update, \\"the blue one\\", and says {so}."}'
    scores = []
    for end in range(len(whole) + 1):
        verdict = verdict_from(Reply(text=whole[:end]), RUBRIC, judge="j", nonce="bcdfgh")
        assert verdict.score in (None, 4), whole[:end]
        scores.append(verdict.score)
    first = scores.index(4)
    assert scores[:first] == [None] * first
    assert whole[:first].endswith('"score": 4')
    assert scores[-1] == 4
