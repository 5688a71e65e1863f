"""Judges: what they are asked, that only their own clear verdict counts, and that a failure is never a score."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from interbench_tasks.errors import ConfigError
from interbench_tasks.judging import (
    Judged,
    JudgingError,
    Rubric,
    Scale,
    Subject,
    _word,
    judge_prompt,
    judge_reply,
    rubrics,
    verdict_from,
)
from interbench_tasks.plugins.judges import MeanOfValid, StrictMajority
from interbench_tasks.records import Reply
from tests.judge_fakes import ATTACKS, giving, judge, nonce_in, prompt_of, verdict_text
from tests.testing import ScriptedRole, error

RUBRIC = rubrics("mmrc")["MR"]
REFUSAL = rubrics("mmrc")["AR"]
SUBJECT = Subject(question="Which film did I watch?", reference="Up", response="You watched Up.")


def judged(*judges, rubric=RUBRIC, subject=SUBJECT, rule=None, seed="0:conversation-1") -> Judged:
    named = {f"judge-{number}": each for number, each in enumerate(judges)}
    return asyncio.run(
        judge_reply(
            rubric=rubric,
            subject=subject,
            judges=named,
            rule=rule or MeanOfValid(),
            branch="none/q1",
            round=4,
            seed=seed,
        )
    )


def response(text: str) -> Subject:
    return Subject(question="Which film did I watch?", reference="Up", response=text)


# --- what a judge is asked ----------------------------------------------------------------------------------------


def test_a_judge_sees_rubric_question_reference_and_response_each_fenced():
    asked = giving(5)
    judged(asked)
    (call,) = asked.asked
    text = prompt_of(call)
    assert (call.branch, call.round, call.purpose) == ("none/q1", 4, "judge")
    assert RUBRIC.task in text
    assert all(band in text for band in RUBRIC.bands.values())
    for name, said in (("question", SUBJECT.question), ("reference", "Up"), ("response", SUBJECT.response)):
        begin, end = text.index(f"[begin {name} "), text.index(f"[end {name} ")
        assert text[begin:end].splitlines()[1:] == [said]


def test_the_prompt_of_every_ability(golden):
    prompts = [judge_prompt(rubric, SUBJECT, judge="j", seed="0").text for rubric in rubrics("mmrc").values()]
    golden("mmrc_judge_prompts.txt", "\n\n========\n\n".join(prompts) + "\n")


def test_a_judge_does_not_see_what_the_model_thought():
    prompt = judge_prompt(RUBRIC, response("<think>Was it Cars? Or Up?</think>It was Up."), judge="j", seed="0")
    assert "Cars" not in prompt.text
    assert "It was Up." in prompt.text


def test_further_texts_are_fenced_too_and_cannot_take_the_place_of_another():
    subject = Subject(question="q", reference="r", response="x", extra={"evidence": "turn 3: I saw Up"})
    text = judge_prompt(RUBRIC, subject, judge="j", seed="0").text
    assert "[begin evidence " in text
    assert "turn 3: I saw Up" in text
    taken = Subject(question="q", reference="r", response="x", extra={"response": "better"})
    with pytest.raises(JudgingError, match="cannot be called response"):
        judge_prompt(RUBRIC, taken, judge="j", seed="0")


def test_the_same_call_has_the_same_prompt_and_any_other_another_nonce():
    def nonce(judge="j", seed="0", rubric=RUBRIC, **changes):
        subject = Subject(**{"question": "q", "reference": "r", "response": "x"} | changes)
        return judge_prompt(rubric, subject, judge=judge, seed=seed).nonce

    assert nonce() == nonce()
    others = [
        nonce(judge="k"),
        nonce(seed="1"),
        nonce(rubric=rubrics("mmrc")["IE"]),
        nonce(question="q2"),
        nonce(reference="r2"),
        nonce(response="x2"),
        nonce(extra={"e": "1"}),
        nonce(question="qr", reference=""),
    ]
    assert len({nonce(), *others}) == len(others) + 1


def test_the_nonce_stands_once_in_the_prompt_before_the_data_and_is_no_number():
    prompt = judge_prompt(RUBRIC, SUBJECT, judge="j", seed="0")
    assert prompt.text.count(prompt.nonce) == 1
    assert prompt.text.index(prompt.nonce) < prompt.text.index("[begin question")
    assert prompt.nonce.isalpha()
    assert nonce_in(prompt.text) == prompt.nonce


def test_a_word_that_stands_in_the_texts_is_not_the_nonce():
    first = judge_prompt(RUBRIC, SUBJECT, judge="j", seed="0").nonce
    # Whoever writes this could only have guessed it; it is passed over all the same.
    again = judge_prompt(RUBRIC, response(first), judge="j", seed="0")
    assert again.nonce != first
    guessed = _word(["same"], "nonce", {"response": "other"})
    passed_over = _word(["same"], "nonce", {"response": f"It is {guessed.upper()}."})
    assert guessed != passed_over
    assert _word(["same"], "nonce", {"response": "other"}) == guessed


@pytest.mark.parametrize(
    "example", ['{"nonce": "%s", "score": 5}', "{nonce: %s, score: 0}", '[{"score": 3, "nonce": "%s"}]']
)
def test_a_template_that_shows_a_verdict_is_refused(example):
    before, after = example.split("%s")
    template = "{{ reply_format }}\n" + before + "{{ reply_format.split('word ')[1].split(' ')[0] }}" + after
    rubric = Rubric(name="own", scale=Scale(high=5), task="t", template=template + "\n{{ response }}")
    with pytest.raises(JudgingError, match="own: the prompt reads as a verdict"):
        judge_prompt(rubric, SUBJECT, judge="j", seed="0")


# --- attacks ------------------------------------------------------------------------------------------------------


def test_there_are_at_least_fifty_attacks():
    assert len(set(ATTACKS)) >= 50


ECHOES = {
    "whole": lambda prompt, text: prompt,
    "twice": lambda prompt, text: prompt + prompt,
    "response first": lambda prompt, text: text + "\n" + prompt,
    "response around": lambda prompt, text: text + prompt + text,
    "in a code fence": lambda prompt, text: f"```json\n{prompt}\n```",
    "as an object": lambda prompt, text: '{"reply": "' + prompt + '"}',
    "as JSON": lambda prompt, text: json.dumps({"reply": prompt}),
    "only the response": lambda prompt, text: text,
    "without line ends": lambda prompt, text: prompt.replace("\n", " "),
    "the end": lambda prompt, text: prompt[prompt.index("[begin response") :],
    "in braces": lambda prompt, text: "{" + prompt + "}",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda text: text[:40].encode("ascii", "replace").decode())
def test_a_judge_that_echoes_an_attack_has_given_no_verdict(attack):
    for rubric in (RUBRIC, REFUSAL):
        for name, echo in ECHOES.items():
            (verdict,) = judged(
                judge(lambda prompt, nonce, e=echo: e(prompt, attack)), subject=response(attack), rubric=rubric
            ).verdicts
            assert (verdict.status, verdict.score) == ("unparsed", None), name


QUOTES = {
    "as it should be": lambda nonce, text: verdict_text(nonce, 1, reason=text),
    "not escaped": lambda nonce, text: f'{{"nonce": "{nonce}", "score": 1, "reason": "It says {text}"}}',
    "reason first": lambda nonce, text: f'{{"nonce": "{nonce}", "reason": "It says {text}", "score": 1}}',
    "all other way": lambda nonce, text: f'{{"reason": "It says {text}", "score": 1, "nonce": "{nonce}"}}',
    "single quotes": lambda nonce, text: f"{{'nonce': '{nonce}', 'reason': 'It says {text}', 'score': 1}}",
    "cut off": lambda nonce, text: f'{{"nonce": "{nonce}", "score": 1, "reason": "It says {text}',
    "reason first, cut off": lambda nonce, text: f'{{"nonce": "{nonce}", "reason": "It says {text}',
    "prose before": lambda nonce, text: f"The response is: {text}\n{verdict_text(nonce, 1)}",
    "prose after": lambda nonce, text: f"{verdict_text(nonce, 1)}\nThe response was: {text}",
    "in a fence": lambda nonce, text: f"```\n{text}\n```\n```json\n{verdict_text(nonce, 1)}\n```",
    "both": lambda nonce, text: f'{text} {{"nonce": "{nonce}", "score": 1, "reason": "{text}"}} {text}',
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda text: text[:40].encode("ascii", "replace").decode())
def test_a_judge_that_quotes_an_attack_is_understood_or_not_but_never_gives_its_score(attack):
    for name, quote in QUOTES.items():
        (verdict,) = judged(judge(lambda prompt, nonce, q=quote: q(nonce, attack)), subject=response(attack)).verdicts
        assert verdict.score in (1, None), name
        assert (verdict.status == "scored") == (verdict.score == 1)


def test_a_verdict_whose_reason_is_well_quoted_counts_for_most_attacks():
    read = [
        judged(
            judge(lambda prompt, nonce, a=attack: QUOTES["as it should be"](nonce, a)), subject=response(attack)
        ).verdict
        for attack in ATTACKS
    ]
    assert sum(verdict.status == "scored" for verdict in read) >= len(ATTACKS) - 4  # think tags end the reply


# --- what counts --------------------------------------------------------------------------------------------------


def read(text, rubric=RUBRIC):
    return verdict_from(Reply(text=text), rubric, judge="j", nonce="bcdfgh")


@pytest.mark.parametrize(
    "text",
    [
        '{"nonce": "bcdfgh", "score": 4, "reason": "nearly"}',
        '{"score": 4, "reason": "nearly", "nonce": "bcdfgh"}',
        '{"nonce": "bcdfgh", "score": "4", "reason": "nearly"}',
        '{"nonce": "bcdfgh", "score": 4.0, "reason": "nearly",}',
        "{'nonce': 'bcdfgh', 'score': 4, 'reason': 'nearly'}",
        "{nonce: bcdfgh, score: 4, reason: nearly}",
        '```json\n{"nonce": "bcdfgh", "score": 4, "reason": "nearly"}\n```',
        'Here you are: {"nonce": "bcdfgh", "score": 4, "reason": "nearly"} Bye.',
        '<think>{"nonce": "bcdfgh", "score": 1}</think>{"nonce": "bcdfgh", "score": 4, "reason": "nearly"}',
        '{"nonce": "other", "score": 1} {"nonce": "bcdfgh", "score": 4, "reason": "nearly"}',
        '{"nonce": "bcdfgh", "score": "<0 to 5>"} {"nonce": "bcdfgh", "score": 4, "reason": "nearly"}',
        '{"nonce": "bcdfgh", "score": 4, "reason": "nearly"} {"nonce": "bcdfgh", "score": 4, "reason": "nearly"}',
        '[{"nonce": "bcdfgh", "score": 4, "reason": "nearly"}]',
        '{"verdict": {"nonce": "bcdfgh", "score": 4, "reason": "nearly"}}',
        '{"nonce": "bcdfgh", "score": 4, "reason": "nearly',
        '{"nonce": "bcdfgh", "score": 4, "reason": "nearly"',
    ],
)
def test_the_judges_verdict_is_read_also_where_it_is_not_quite_json(text):
    verdict = read(text)
    assert (verdict.status, verdict.score) == ("scored", 4.0)
    assert verdict.reason == "nearly" or text.endswith("nearly")
    assert verdict.reply == Reply(text=text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("<think>4", "thinking"),
        ("<think>4</think>", "thinking"),
        ("4", "no JSON object with the nonce"),
        ('{"score": 4}', "no JSON object with the nonce"),
        ('{"nonce": "bcdfgk", "score": 4}', "no JSON object with the nonce"),
        ('{"nonce": "bcdf", "score": 4}', "no JSON object with the nonce"),
        ('{"nonce": ["bcdfgh"], "score": 4}', "no JSON object with the nonce"),
        ('bcdfgh {"score": 4}', "no JSON object with the nonce"),
        ('{"nonce": "bcdfgh"}', "no value of the rubric"),
        ('{"nonce": "bcdfgh"} {"score": 4}', "no value of the rubric"),
        ('{"nonce": "bcdfgh", "score": null}', "no value of the rubric"),
        ('{"nonce": "bcdfgh", "score": "good"}', "no value of the rubric"),
        ('{"nonce": "bcdfgh", "score": true}', "no value of the rubric"),
        ('{"nonce": "bcdfgh", "score": {"score": 4}}', "no value of the rubric"),
        ('{"nonce": "bcdfgh", "score": 6}', "not on the scale"),
        ('{"nonce": "bcdfgh", "score": 4.5}', "not on the scale"),
        ('{"nonce": "bcdfgh", "score": -1}', "not on the scale"),
        ('{"nonce": "bcdfgh", "score": 40}', "not on the scale"),
        ('{"nonce": "bcdfgh", "score": 4, "score": 5}', "is there twice"),
        ('{"nonce": "bcdfgh", "score": 4} {"nonce": "bcdfgh", "score": 5}', "several verdicts that differ"),
        ('{"nonce": "bcdfgh", "score": 4} {"nonce": "bcdfgh", "score": 9}', "not on the scale"),
        ('{"nonce": "bcdfgh", "score": 4} {"score": 5}', "another value"),
        ('{"nonce": "bcdfgh", "score": 4} No: "score": 5', "another value"),
        ('{"nonce": "bcdfgh", "score":', "no value of the rubric"),
        ('{"nonce": "bcdfgh", "reason": "It says", "score": 4, "x": "', "after the reason"),
        ('{"nonce": "bcdfgh", "reason": "It says", "score": 4}', "after the reason"),
        ('{"thoughts": "It says", "nonce": "bcdfgh", "score": 4}', "after the reason"),
    ],
    ids=repr,
)
def test_anything_else_is_unparsed_with_the_reason_and_the_reply(text, why):
    verdict = read(text)
    assert (verdict.status, verdict.score, verdict.label) == ("unparsed", None, None)
    assert why in verdict.reason
    assert verdict.reply == Reply(text=text)


def test_a_monster_of_a_reply_neither_hangs_nor_raises():
    began = time.process_time()
    for text in ('{"nonce": "bcdfgh", "score": ' * 1900, '{"nonce": ' * 1900 + '"bcdfgh"', '"nonce": "bcdfgh" ' * 9000):
        assert read(text).status == "unparsed"
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (error("HTTP 503"), "HTTP 503"),
        (Reply(text="", status="skipped"), "not asked"),
        (Reply(text="", status="empty"), "empty"),
        (Reply(text='{"nonce": "bcdfgh", "score": 4}', status="error", error="cut"), "cut"),
    ],
)
def test_a_failed_call_is_an_error_and_no_zero(reply, why):
    verdict = verdict_from(reply, RUBRIC, judge="j", nonce="bcdfgh")
    assert (verdict.status, verdict.score) == ("error", None)
    assert why in verdict.reason
    assert verdict.reply == reply


# --- labels -------------------------------------------------------------------------------------------------------


def test_a_label_beside_the_score_is_taken_and_may_be_missing_where_it_is_only_a_help():
    assert read('{"nonce": "bcdfgh", "score": 5, "label": "Declined"}', REFUSAL).label == "declined"
    without = read('{"nonce": "bcdfgh", "score": 5}', REFUSAL)
    assert (without.status, without.score, without.label) == ("scored", 5.0, None)
    assert read('{"nonce": "bcdfgh", "score": 5, "label": "maybe"}', REFUSAL).label is None


def test_a_label_that_is_needed_and_missing_is_no_verdict():
    errors = rubrics("mmrc_errors")["IU"]
    assert read('{"nonce": "bcdfgh", "reason": "r"}', errors).status == "unparsed"
    assert read('{"nonce": "bcdfgh", "label": "other"}', errors).status == "unparsed"
    verdict = read('{"nonce": "bcdfgh", "label": "old_new_confusion"}', errors)
    assert (verdict.status, verdict.score, verdict.label) == ("scored", None, "old_new_confusion")
    twice = '{"nonce": "bcdfgh", "label": "old_new_confusion"} {"nonce": "bcdfgh", "label": "incomplete_update"}'
    assert read(twice, errors).reason == "several verdicts that differ"


def test_several_labels_are_joined_in_the_rubrics_order():
    reasoning = rubrics("mmrc_errors")["CR"]
    for value in ('["memory_degradation", "misunderstanding"]', '"memory_degradation, misunderstanding"'):
        label = read(f'{{"nonce": "bcdfgh", "label": {value}}}', reasoning).label
        assert label == "misunderstanding+memory_degradation"
    assert read('{"nonce": "bcdfgh", "label": []}', reasoning).status == "unparsed"
    assert read('{"nonce": "bcdfgh", "label": ["misunderstanding", "other"]}', reasoning).status == "unparsed"


# --- the panel ----------------------------------------------------------------------------------------------------


def test_all_judges_are_asked_each_with_a_nonce_of_its_own_and_kept_in_order():
    judges = [giving(5), giving(2), giving(2)]
    outcome = judged(*judges)
    assert [verdict.judge for verdict in outcome.verdicts] == ["judge-0", "judge-1", "judge-2"]
    assert [verdict.score for verdict in outcome.verdicts] == [5.0, 2.0, 2.0]
    assert outcome.verdict.score == 3.0
    prompts = [prompt_of(each.asked[0]) for each in judges]
    assert len({nonce_in(prompt) for prompt in prompts}) == 3
    assert [verdict.prompt.text for verdict in outcome.verdicts] == prompts


def test_one_judges_verdict_is_none_for_another():
    nonces: list[str] = []

    def spying(prompt, nonce):
        nonces.append(nonce)
        return verdict_text(nonces[0], 5)

    outcome = judged(judge(spying), judge(spying))
    assert [verdict.status for verdict in outcome.verdicts] == ["scored", "unparsed"]


def test_a_judge_without_a_label_goes_by_its_models_name():
    async def one():
        return await judge_reply(
            rubric=RUBRIC,
            subject=SUBJECT,
            judges={"": giving(3, "openai:gpt-4o")},
            rule=MeanOfValid(),
            branch="",
            round=0,
            seed="0",
        )

    assert asyncio.run(one()).verdicts[0].judge == "openai:gpt-4o"


def test_a_judge_that_fails_is_left_out_by_the_mean_and_hinders_a_majority():
    failing = ScriptedRole(lambda asked: error())
    mean = judged(giving(4), failing, giving(5)).verdict
    assert (mean.status, mean.score) == ("scored", 4.5)
    majority = judged(giving(4), failing, giving(5), rule=StrictMajority()).verdict
    assert (majority.status, majority.score) == ("undecided", None)
    nobody = judged(failing).verdict
    assert (nobody.status, nobody.score) == ("undecided", None)


def test_without_a_judge_nobody_can_judge():
    with pytest.raises(JudgingError, match=r"name at least one judge under metadata\.interbench\.roles\.judge"):
        judged()


def test_judges_are_asked_side_by_side():
    """Each waits for the other: one after the other, neither would ever answer."""
    met = asyncio.Event()
    waiting: list[str] = []

    class Waits(ScriptedRole):
        async def reply(self, messages, **keywords):
            waiting.append(self.name)
            if len(waiting) == 2:
                met.set()
            await asyncio.wait_for(met.wait(), 5)
            return await super().reply(messages, **keywords)

    both = [Waits(giving(4).script, name=name) for name in ("a", "b")]
    assert [verdict.score for verdict in judged(*both).verdicts] == [4.0, 4.0]


# --- rubrics ------------------------------------------------------------------------------------------------------


def test_each_ability_has_a_rubric_with_a_band_for_every_score():
    for ability, rubric in rubrics("mmrc").items():
        assert rubric.name == f"mmrc.{ability}"
        assert (rubric.scale.low, rubric.scale.high, rubric.scale.integer) == (0, 5, True)
        assert list(rubric.bands) == ["5", "3-4", "2", "1", "0"]


def write(tmp_path, text):
    path = tmp_path / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


OWN = """template: '{{ reply_format }} {{ response }}'
rubrics:
  IE: {task: t, scale: {low: 1, high: 10, integer: false}}
"""


def test_a_file_of_rubrics_of_your_own(tmp_path):
    own = rubrics(write(tmp_path, OWN))["IE"]
    assert (own.name, own.scale.high) == ("own.IE", 10)
    assert verdict_from(Reply(text='{"nonce": "b", "score": 9.5}'), own, judge="j", nonce="b").score == 9.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("high: 10", "high: 1"), r"rubrics\.IE\.scale: low must be below high"),
        (("high: 10", "height: 10"), r"rubrics\.IE\.scale\.high: Field required"),
        (("{{ response }}", ""), "template does not name response"),
        (("{{ response }}", "{{ response }} {{ answer }}"), "template names answer; there is: bands"),
        (("{{ response }}", "{{ response"), "template is no Jinja2"),
        (("task: t, ", ""), r"rubrics\.IE\.task: Field required"),
        (("scale:", "scales:"), "scales"),
        (("scale: {low: 1, high: 10, integer: false}", "several: true"), "needs a scale or labels"),
        (("task: t", "task: t, labels: {A: x, a: y}"), "two labels differ in case only"),
        (("task: t", "task: t, labels: {a+b: x}"), "a label must not"),
        (("template", "tmplate"), "tmplate is no known key"),
        (("rubrics:", "rubric:"), "must be a mapping of names to rubrics"),
        (("  IE: {", "  IE: [{"), "no valid YAML"),
        (("{task: t, scale: {low: 1, high: 10, integer: false}}", "5"), "must be a mapping, got 5"),
    ],
)
def test_a_mistake_in_a_rubric_is_told_with_file_and_key(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message) as told:
        rubrics(write(tmp_path, OWN.replace(*change)))
    assert "own.yaml" in str(told.value)


def test_an_unknown_or_missing_file_of_rubrics_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"(?s)mmcr is not known \(did you mean 'mmrc'\?\).*mmrc_errors, FILE\.yaml"):
        rubrics("mmcr")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        rubrics(str(tmp_path / "none.yaml"))
