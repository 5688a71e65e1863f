"""The simulated backend: deterministic in any order, planted in every role, readable as a real model's replies are."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import re
from collections.abc import Mapping
from typing import Any

import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import BackendError
from interbench_tasks.hookspecs import Backend, Call
from interbench_tasks.records import Episode, GenerationSettings, Message, Reply

SETTINGS = GenerationSettings(max_new_tokens=64, temperature=0.0)
OPTIONS = {"A": "red", "B": "small", "C": "picture", "D": "17"}


def episode_of(number: int = 0, target: str = "B", options: Mapping[str, str] = OPTIONS, repeat: int = 0) -> Episode:
    question = Message(role="user", content=("Which one?",))
    return Episode(id=f"e{number}", doc_id=number, repeat=repeat, question=question, target=target, options=options)


def call_of(episode: Episode, *said: str, **place: Any) -> Call:
    """A call after the model has said `said`, each followed by feedback."""
    messages = [episode.question]
    for text in said:
        messages += [Message(role="assistant", content=(text,)), Message(role="user", content=("Try again.",))]
    fields = {"role": "receiver", "purpose": "answer", "round": len(said), "branch": "simple" if said else "", **place}
    return Call(messages=tuple(messages), settings=SETTINGS, episode=episode, **fields)


def replies(backend: SimulatedBackend, *calls: Call) -> list[Reply]:
    async def run() -> list[Reply]:
        try:
            return await asyncio.gather(*map(backend.reply, calls))
        finally:
            await backend.close()

    return asyncio.run(run())


def said(backend: SimulatedBackend, *calls: Call) -> list[str]:
    return [reply.text for reply in replies(backend, *calls)]


def answers(backend: SimulatedBackend, *calls: Call) -> list[str | None]:
    """The declared answer of each reply, None where there is none."""
    found = [re.search(r"\nAnswer: (.+)\Z", text) for text in said(backend, *calls)]
    return [match and match.group(1) for match in found]


def test_it_is_a_backend_that_says_it_is_simulated() -> None:
    backend = SimulatedBackend("strong", seed=3)
    assert isinstance(backend, Backend)
    assert (backend.name, backend.simulated) == ("simulated:strong", True)
    assert backend.max_concurrency > 1000
    assert SimulatedBackend("").name == "simulated:default"
    [reply] = replies(backend, call_of(episode_of()))
    assert (reply.model, reply.status, reply.finish_reason) == ("simulated:strong", "ok", "stop")
    assert reply.usage.calls == 1
    assert reply.usage.output_tokens


def test_results_depend_neither_on_the_order_of_calls_nor_on_what_else_was_asked() -> None:
    calls = [
        call_of(episode_of(number, repeat=repeat), *history, **place)
        for number in range(40)
        for repeat in (0, 1)
        for history in ((), ("Answer: A",))
        for place in ({}, {"branch": "detail"}, {"role": "provider", "purpose": "solve"})
    ]
    in_order = said(SimulatedBackend(seed=1), *calls)
    shuffled = list(range(len(calls)))
    random.Random(0).shuffle(shuffled)
    backend = SimulatedBackend(seed=1, latency_s=0.001)
    later = dict(zip(shuffled, said(backend, *[calls[i] for i in shuffled]), strict=True))
    assert [later[i] for i in range(len(calls))] == in_order
    assert said(SimulatedBackend(seed=1), calls[7]) == [in_order[7]]


def test_each_part_of_a_call_s_place_draws_on_its_own() -> None:
    def outcomes(backend: SimulatedBackend, repeat: int = 0, **place: Any) -> list[str | None]:
        return answers(backend, *[call_of(episode_of(i, repeat=repeat), **place) for i in range(60)])

    base = outcomes(SimulatedBackend(seed=1))
    others = [
        outcomes(SimulatedBackend(seed=2)),
        outcomes(SimulatedBackend("other", seed=1)),
        outcomes(SimulatedBackend(seed=1), repeat=1),
        outcomes(SimulatedBackend(seed=1), branch="detail"),
        outcomes(SimulatedBackend(seed=1), role="provider", purpose="solve"),
    ]
    agreement = [sum(a == b for a, b in zip(base, other, strict=True)) / 60 for other in others]
    assert all(share < 0.7 for share in agreement), agreement  # about 0.33 where the draws are independent


def test_certain_rates_give_certain_answers() -> None:
    episodes = [episode_of(i) for i in range(50)]
    first = [call_of(episode) for episode in episodes]
    after_wrong = [call_of(episode, "Answer: A") for episode in episodes]
    after_right = [call_of(episode, "Answer: B") for episode in episodes]
    assert answers(SimulatedBackend(accuracy=1), *first) == ["B"] * 50
    assert set(answers(SimulatedBackend(accuracy=0, invalid=0), *first)) == {"A", "C", "D"}
    assert answers(SimulatedBackend(accuracy=0, invalid=1), *first) == [None] * 50
    assert answers(SimulatedBackend(correction=1), *after_wrong) == ["B"] * 50
    assert "B" not in answers(SimulatedBackend(correction=0), *after_wrong)
    assert answers(SimulatedBackend(flip=0, correction=0), *after_right) == ["B"] * 50
    assert set(answers(SimulatedBackend(flip=1, correction=1), *after_right)) == {"A", "C", "D"}


def test_an_arm_can_have_its_own_correction_rate() -> None:
    backend = SimulatedBackend(correction=0, correction_detail=1)
    calls = [call_of(episode_of(i), "Answer: A", branch=branch) for i in range(20) for branch in ("simple", "detail")]
    got = answers(backend, *calls)
    assert "B" not in got[::2]
    assert got[1::2] == ["B"] * 20


def test_the_arms_of_one_episode_are_drawn_independently() -> None:
    backend = SimulatedBackend(correction=0.5)
    simple, detail = (
        [a == "B" for a in answers(backend, *[call_of(episode_of(i), "Answer: A", branch=arm) for i in range(400)])]
        for arm in ("simple", "detail")
    )
    both = sum(a and b for a, b in zip(simple, detail, strict=True)) / 400
    assert abs(both - 0.25) < 0.07


def test_every_round_is_drawn_on_its_own() -> None:
    backend = SimulatedBackend(correction=0.5)
    first, second = (
        [a == "B" for a in answers(backend, *[call_of(episode_of(i), *wrong) for i in range(400)])]
        for wrong in (("Answer: A",), ("Answer: A", "Answer: C"))
    )
    both = sum(a and b for a, b in zip(first, second, strict=True)) / 400
    assert abs(both - 0.25) < 0.07


@pytest.mark.parametrize(
    ("target", "options", "text", "right"),
    [
        ("B", OPTIONS, "Some thought.\nAnswer: B", True),
        ("B", OPTIONS, "Answer: A\nNo, wait.\nAnswer: B", True),
        ("B", OPTIONS, "Answer: B\nNo, wait.\nAnswer: A", False),
        ("B", OPTIONS, "**Answer:** (B)", True),
        ("B", OPTIONS, "The final answer is B.", True),
        ("B", OPTIONS, "so \\boxed{B}", True),
        ("B", OPTIONS, "B", True),
        ("B", OPTIONS, "small", True),
        ("B", OPTIONS, "Answer: small.", True),
        ("B", OPTIONS, "Because it is so.", False),
        ("B", OPTIONS, "", False),
        ("12", {}, "Therefore it is 12.\nAnswer: 12", True),
        ("12", {}, "so \\boxed{ 12 }", True),
        ("12", {}, "Answer: 13", False),
        ("x = 3", {}, "Answer:  x  =  3", True),
    ],
)
def test_a_recorded_answer_is_right_or_wrong_by_its_text(
    target: str, options: Mapping[str, str], text: str, right: bool
) -> None:
    episode = dataclasses.replace(episode_of(target=target, options=options), first_answer=text)
    stays, corrects = SimulatedBackend(correction=0, flip=0), SimulatedBackend(correction=1, flip=1)
    call = call_of(episode, text)
    assert (answers(stays, call) == [target]) is right
    assert (answers(corrects, call) == [target]) is not right


def test_only_the_last_answer_of_a_history_counts() -> None:
    backend = SimulatedBackend(correction=0, flip=0)
    assert answers(backend, call_of(episode_of(), "Answer: A", "Answer: B")) == ["B"]
    assert answers(backend, call_of(episode_of(), "Answer: B", "Answer: A")) != ["B"]


def test_a_free_form_question_has_right_wrong_and_unreadable_answers_too() -> None:
    for target in ("42", "3.5", "\\frac{1}{2}", "blue", "nan", "inf", "1e999", "x\ny"):
        calls = [call_of(episode_of(i, target=target, options={})) for i in range(30)]
        right = " ".join(target.split())
        assert set(answers(SimulatedBackend(accuracy=1), *calls)) == {right}
        wrong = answers(SimulatedBackend(accuracy=0, invalid=0), *calls)
        assert right not in wrong
        assert None not in wrong


def test_an_option_that_stands_alone_still_gets_a_wrong_answer() -> None:
    assert answers(SimulatedBackend(accuracy=0, invalid=0), call_of(episode_of(options={"B": "x"}))) != ["B"]


def test_a_provider_solves_with_its_own_rate() -> None:
    calls = [call_of(episode_of(i), role="provider", purpose="solve") for i in range(20)]
    assert answers(SimulatedBackend(accuracy=0, solve=1, invalid=0.5), *calls) == ["B"] * 20
    assert "B" not in answers(SimulatedBackend(accuracy=1, solve=0), *calls)
    assert answers(SimulatedBackend(accuracy=1), *calls) == ["B"] * 20


@pytest.mark.parametrize(
    "options", [OPTIONS, {}, {"A": "the", "B": "try again", "C": "rule", "D": "look"}, {"A": "hint", "B": "every"}]
)
def test_a_hint_names_neither_the_target_nor_an_option(options: Mapping[str, str]) -> None:
    calls = [
        call_of(episode_of(i, options=options, target="B" if options else "rule"), role="provider", purpose="feedback")
        for i in range(30)
    ]
    for text in said(SimulatedBackend(), *calls):
        assert text
        assert not re.search(r"\b[A-Z]\b", text)
        assert "Answer" not in text
        for named in [*options.values(), "rule"] if not options else options.values():
            assert not re.search(rf"\b{named}\b", text, re.IGNORECASE)


def test_an_unreadable_reply_names_no_letter_no_number_and_no_option() -> None:
    for options in (OPTIONS, {"A": "details", "B": "information", "C": "9", "D": "I"}):
        calls = [call_of(episode_of(i, options=options)) for i in range(30)]
        for text in said(SimulatedBackend(accuracy=0, invalid=1), *calls):
            assert not re.search(r"\b\w\b|\d", text)
            assert not [o for o in options.values() if re.search(rf"\b{o}\b", text, re.IGNORECASE)]


@pytest.mark.parametrize("chars", [0, 200, 5000])
def test_a_reply_is_filled_up_to_the_length_that_was_asked_for(chars: int) -> None:
    calls = [call_of(episode_of(i)) for i in range(20)]
    texts = said(SimulatedBackend(reply_chars=chars), *calls)
    assert all(len(text) == chars for text in texts) or chars == 0
    plain, filled = (answers(SimulatedBackend(reply_chars=n), *calls) for n in (0, chars))
    assert plain == filled


def test_a_share_of_calls_fails_and_the_same_ones_again() -> None:
    calls = [call_of(episode_of(i)) for i in range(300)]
    got = replies(SimulatedBackend(fail=0.2), *calls)
    failed = [i for i, reply in enumerate(got) if reply.status == "error"]
    assert 30 < len(failed) < 90
    assert {(got[i].text, got[i].error) for i in failed} == {("", "simulated failure (fail=...)")}
    again = replies(SimulatedBackend(fail=0.2), *calls)
    assert failed == [i for i, reply in enumerate(again) if reply.status == "error"]
    without = replies(SimulatedBackend(), *calls)
    assert all(a.text == b.text for a, b in zip(got, without, strict=True) if a.status == "ok")


def test_a_judge_prompt_that_it_cannot_read_is_an_error_and_no_made_up_verdict() -> None:
    [reply] = replies(SimulatedBackend(), call_of(episode_of(), purpose="judge"))
    assert reply.status == "error"
    assert "no purpose 'judge'" in (reply.error or "")


def test_latency_is_waited_and_calls_wait_side_by_side() -> None:
    calls = [call_of(episode_of(i)) for i in range(100)]

    async def run() -> float:
        loop = asyncio.get_running_loop()
        start, backend = loop.time(), SimulatedBackend(latency_s=0.05)
        got = await asyncio.gather(*map(backend.reply, calls))
        assert all(reply.run.latency_s >= 0.049 for reply in got)
        return loop.time() - start

    assert 0.049 < asyncio.run(run()) < 1


def test_the_fingerprint_holds_what_can_change_a_reply() -> None:
    base = SimulatedBackend("m").fingerprint
    assert "simulated" in base
    assert {SimulatedBackend("m", latency_s=1).fingerprint, SimulatedBackend("m", fail=0.5).fingerprint} == {base}
    others = [{"seed": 1}, {"accuracy": 0.4}, {"correction_detail": 0.3}, {"reply_chars": 9}, {"solve": 0.9}]
    assert len({base, *(SimulatedBackend("m", **o).fingerprint for o in others)}) == 1 + len(others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acuracy": 0.5}, "no option 'acuracy' (did you mean 'accuracy'?)"),
        ({"corection_detail": 0.5}, "no option 'corection_detail'"),
        ({"correction_": 0.5}, "no option 'correction_'"),
        ({"accuracy": 1.5}, "accuracy = 1.5 must be a rate between 0 and 1"),
        ({"accuracy": "high"}, "accuracy = 'high'"),
        ({"flip": True}, "flip = True"),
        ({"invalid": -0.1}, "invalid = -0.1"),
        ({"correction_detail": "x"}, "correction_detail = 'x'"),
        ({"accuracy": 0.9, "invalid": 0.2}, "accuracy and invalid together must not be above 1"),
        ({"seed": 1.5}, "seed = 1.5 must be a whole number"),
        ({"reply_chars": -1}, "reply_chars = -1"),
        ({"latency_s": -1}, "latency_s = -1"),
        ({"latency_s": float("nan")}, "latency_s = nan"),
        ({"accuracy": float("nan")}, "accuracy = nan"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BackendError) as error:
        SimulatedBackend(**options)
    assert message in str(error.value)


def test_the_allowed_options_are_listed() -> None:
    with pytest.raises(
        BackendError,
        match="allowed: accuracy, alarm, correction, correction_<arm>, correction_<arm>_<round>, detect,",
    ):
        SimulatedBackend(x=1)
