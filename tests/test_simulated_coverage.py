"""The simulated backend's rates are what it was told: 95% intervals cover them about 95% of the time."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.hookspecs import Call
from interbench_tasks.records import Episode, GenerationSettings, Message

N_EPISODES = 500
PLANTED = {
    "accuracy": 0.55,
    "invalid": 0.08,
    "correction_detail": 0.45,
    "correction_simple": 0.2,
    "flip": 0.12,
    "solve": 0.75,
}
SETTINGS = GenerationSettings(max_new_tokens=64, temperature=0.0)
EPISODES = [
    Episode(
        id=str(number),
        doc_id=number,
        question=Message(role="user", content=(f"Question {number}?",)),
        target="ABCD"[number % 4],
        options={"A": "red", "B": "green", "C": "blue", "D": "grey"},
    )
    for number in range(N_EPISODES)
]
AGAIN = Message(role="user", content=("That is wrong, try again.",))


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95% score interval, written apart from the project's own."""
    z = 1.959963984540054
    centre, spread = hits + z * z / 2, z * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return (centre - spread) / (n + z * z), (centre + spread) / (n + z * z)


def asked(backend: SimulatedBackend, episode: Episode, *history: Message, **place: Any) -> tuple[str, str | None]:
    """The reply's text, and the answer on its last line; without a loop, since nothing waits."""
    fields = {"role": "receiver", "purpose": "answer", **place}
    messages = (episode.question, *history)
    coroutine = backend.reply(Call(messages=messages, settings=SETTINGS, episode=episode, **fields))
    try:
        coroutine.send(None)
    except StopIteration as stop:
        text: str = stop.value.text
    else:
        raise AssertionError("the simulated backend waited although latency_s is 0")
    last = text.rpartition("\n")[2]
    return text, last.removeprefix("Answer: ") if last.startswith("Answer: ") else None


def counted(seed: int) -> dict[str, tuple[int, int]]:
    """{rate: (hits, of how many)} of one run, as a feedback loop with flip samples plays it."""
    backend = SimulatedBackend("planted", seed=seed, **PLANTED)  # type: ignore[arg-type]  # rates only
    hits: Counter[str] = Counter()
    totals: Counter[str] = Counter()

    def count(rate: str, hit: bool) -> None:
        hits[rate] += hit
        totals[rate] += 1

    for episode in EPISODES:
        text, answer = asked(backend, episode)
        count("accuracy", answer == episode.target)
        count("invalid", answer is None)
        count("solve", asked(backend, episode, role="provider", purpose="solve")[1] == episode.target)
        history = (Message(role="assistant", content=(text,)), AGAIN)
        if answer == episode.target:
            count("flip", asked(backend, episode, *history, branch="simple", round=1)[1] != episode.target)
        elif answer is not None:
            for arm in ("detail", "simple"):
                right = asked(backend, episode, *history, branch=arm, round=1)[1] == episode.target
                count(f"correction_{arm}", right)
    return {rate: (hits[rate], totals[rate]) for rate in PLANTED}


def coverage(seeds: range) -> dict[str, float]:
    """{rate: share of seeds whose 95% interval covers the planted value}."""
    covered: Counter[str] = Counter()
    for seed in seeds:
        for rate, (hits, n) in counted(seed).items():
            low, high = wilson(hits, n)
            covered[rate] += low <= PLANTED[rate] <= high
    return {rate: covered[rate] / len(seeds) for rate in PLANTED}


def test_95_percent_intervals_cover_each_planted_rate_in_92_to_98_percent_of_200_seeds() -> None:
    shares = coverage(range(200))
    assert {rate: share for rate, share in shares.items() if not 0.92 <= share <= 0.98} == {}


@pytest.mark.parametrize("seed", [0, 1])
def test_every_rate_is_counted_over_the_episodes_that_it_is_about(seed: int) -> None:
    got = counted(seed)
    right, invalid = got["accuracy"][0], got["invalid"][0]
    wrong = N_EPISODES - right - invalid
    assert [got[rate][1] for rate in PLANTED] == [N_EPISODES, N_EPISODES, wrong, wrong, right, N_EPISODES]
    assert got == counted(seed)
