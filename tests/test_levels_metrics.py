"""Metrics of levels over all wrong first answers: a second formulation, hidden calls, and rates that were planted."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace

import pytest

from interbench_tasks import Parts
from interbench_tasks.answers.verifiers import ChoiceVerifier
from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.hookspecs import Call
from interbench_tasks.metrics.feedback_names import Lineup
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.plugins.feedback.hierarchical import Hierarchical
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from interbench_tasks.records import EpisodeRecord, GenerationSettings
from tests.feedback_records import LoopOptions, loop, summaries_of, table_of
from tests.testing import FakeRoles, make_episode

PEOPLE = LoopOptions(arms=("hierarchical",), max_rounds=3, test_on="all_wrong", level_texts="provider")
TEXTS = replace(PEOPLE, level_texts="data")
TWO = replace(PEOPLE, arms=("hierarchical", "detail"), max_rounds=2)
SETTINGS = [PEOPLE, TEXTS, TWO]


@dataclass(frozen=True)
class Truth:
    """An episode without failures: the answer of round 0, then of each arm's rounds; + marked by a person."""

    first: object
    arms: dict[str, tuple]
    marked: frozenset = frozenset()
    """(arm, round) whose answer a person marked as right; ("", 0) of round 0."""


def random_truth(rng: random.Random, options: LoopOptions) -> Truth:
    first = rng.choice(["B", "A", "C", None])
    if first == "B":
        return Truth(first, {})
    marks = options.level_texts != "data"
    if marks and rng.random() < 0.1:
        return Truth(first, {}, frozenset([("", 0)]))
    arms, marked = {}, set()
    for arm in options.arms:
        answers: list[object] = []
        while len(answers) < options.max_rounds and (not answers or answers[-1] != "B"):
            answers.append(rng.choice(["A", "B", "C", None]))
            if marks and answers[-1] not in ("B", None) and rng.random() < 0.15:
                marked.add((arm, len(answers)))
                break
        arms[arm] = tuple(answers)
    return Truth(first, arms, frozenset(marked))


def record_of(truth: Truth, cut: dict[str, int] | None = None, *, lost: bool = False) -> EpisodeRecord:
    """Args: cut = arm -> round whose call failed; lost = round 0 failed."""
    if lost:
        return loop("failed", None, {})
    arms = {}
    for arm, answers in truth.arms.items():
        at = (cut or {}).get(arm)
        arms[arm] = answers if at is None else (*answers[: at - 1], "failed")
    made = loop(truth.first, None, arms)
    turns = [
        replace(turn, judgement=turn.judgement.by_person())
        if (turn.branch, turn.round) in truth.marked and turn.judgement is not None
        else turn
        for turn in made.turns
    ]
    return replace(made, turns=tuple(turns))


def solved_in(truth: Truth, arm: str) -> int:
    """The round that is right; 0: never."""
    answers = truth.arms[arm]
    hit = answers[-1] == "B" or (arm, len(answers)) in truth.marked
    return len(answers) if hit else 0


def expected_of(truths: list[Truth], options: LoopOptions) -> dict[str, float]:
    right = [t for t in truths if t.first == "B" or ("", 0) in t.marked]
    wrong = [t for t in truths if t not in right]
    n = len(truths)
    found: dict[str, tuple[int, int]] = {"n": (n, 1), "n_negative": (len(wrong), 1), "n_test": (len(wrong), 1)}
    found |= {"n_invalid": (sum(t.first is None for t in wrong), 1), "n_failed": (0, 1), "accuracy": (len(right), n)}
    if options.level_texts != "data":
        found["n_marked_right"] = (sum(bool(t.marked) for t in truths), 1)
    for arm in options.arms:
        ends = [solved_in(t, arm) for t in wrong]
        found[f"accuracy_after.{arm}"] = (len(right) + sum(map(bool, ends)), n)
        found[f"correction_rate.{arm}"] = (sum(map(bool, ends)), len(wrong))
        found[f"n_solved.{arm}.never"] = (ends.count(0), 1)
        for number in range(1, options.max_rounds + 1):
            found[f"correction_rate.{arm}.round{number}"] = (ends.count(number), len(wrong))
            found[f"correction_rate.{arm}.within{number}"] = (sum(0 < end <= number for end in ends), len(wrong))
            found[f"n_solved.{arm}.round{number}"] = (ends.count(number), 1)
    if len(options.arms) == 2:
        one, other = options.arms
        gaps = [bool(solved_in(t, one)) - bool(solved_in(t, other)) for t in wrong]
        found[f"difference.{one}-{other}"] = (sum(gaps), len(wrong))
    return {name: top / bottom for name, (top, bottom) in found.items() if bottom}


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("seed", range(10))
def test_all_metrics_equal_a_second_formulation(options, seed):
    rng = random.Random(seed)
    truths = [random_truth(rng, options) for _ in range(1 + 9 * seed)]
    found = table_of([record_of(truth) for truth in truths], options)
    expected = expected_of(truths, options)
    assert found.keys() == expected.keys()
    assert {name: e.value for name, e in found.items()} == pytest.approx(expected)
    assert all(estimate.unscored == 0 and estimate.bounds is None for estimate in found.values())
    assert all(e.ci95 is not None for e in found.values() if e.method != "count")


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("seed", range(25))
def test_bounds_hold_what_would_have_come_out_without_failures(options, seed):
    rng = random.Random(100 + seed)
    truths = [random_truth(rng, options) for _ in range(6 + seed)]
    broken = []
    for truth in truths:
        cuts = {arm: rng.randint(1, len(a)) for arm, a in truth.arms.items() if rng.random() < 0.02 * seed}
        broken.append(record_of(truth, cuts, lost=rng.random() < 0.01 * seed))
    whole, found = table_of([record_of(truth) for truth in truths], options), table_of(broken, options)
    assert found.keys() <= whole.keys()
    for name in found.keys() - {"n_failed"}:
        low, high = found[name].bounds or (found[name].value, found[name].value)
        assert (found[name].bounds is None) == (found[name].unscored == 0)
        assert low - 1e-12 <= found[name].value <= high + 1e-12, name
        assert low - 1e-12 <= whole[name].value <= high + 1e-12, (name, found[name], whole[name])


def test_all_rounds_are_over_the_same_episodes_though_one_failed_late():
    truths = [Truth("A", {"hierarchical": ("C", "B")}), Truth("A", {"hierarchical": ("C", "C", "C")})]
    found = table_of([record_of(truths[0]), record_of(truths[1], {"hierarchical": 3})], PEOPLE)
    rounds = [found[f"correction_rate.hierarchical.round{number}"] for number in (1, 2, 3)]
    assert [(e.count, e.n, e.unscored) for e in rounds] == [(0, 1, 1), (1, 1, 1), (0, 1, 1)]
    assert rounds[0].bounds == (0, 0)  # it is known that the other one was not solved there
    assert rounds[1].bounds == pytest.approx((1 / 2, 1))
    assert rounds[2].bounds == pytest.approx((0, 1 / 2))


def test_what_is_shown_first_are_the_rounds_in_the_place_of_their_sum():
    lineup = Lineup.from_options(PEOPLE)
    rates = ["accuracy", *(f"correction_rate.hierarchical.round{number}" for number in (1, 2, 3))]
    assert lineup.headline() == [*rates, "n", "n_negative", "n_test", "n_invalid", "n_failed"]
    one = Lineup.from_options(replace(PEOPLE, max_rounds=1))
    assert one.headline()[:3] == ["accuracy", "correction_rate.hierarchical", "accuracy_after.hierarchical"]
    assert not [name for name in one.rate_names() + one.count_names() if "round" in name or "n_solved" in name]


def test_nobody_can_mark_what_the_data_set_tells():
    assert "n_marked_right" not in Lineup.from_options(TEXTS).count_names()
    assert Lineup.from_options(TEXTS).guarded_arms == ()
    assert Lineup.from_options(PEOPLE).guarded_arms == ("hierarchical",)


def test_a_mark_that_may_have_come_is_unscored():
    wrong = Truth("A", {"hierarchical": ("C", "C", "C")})
    found = table_of([record_of(wrong), record_of(wrong, {"hierarchical": 2}), record_of(wrong, lost=True)], PEOPLE)
    marked = found["n_marked_right"]
    assert (marked.value, marked.n, marked.unscored, marked.bounds) == (0, 1, 2, (0, 2))


@pytest.mark.parametrize("options", SETTINGS)
def test_contributions_and_table_say_the_same(options):
    rng = random.Random(5)
    rows = summaries_of([record_of(random_truth(rng, options)) for _ in range(40)], options)
    chosen = FeedbackLoopMetrics(options)
    found = chosen.table(rows)
    given: dict[str, list[float]] = {}
    for row in rows:
        for name, value in chosen.contributions(row).items():
            given.setdefault(name, []).append(value)
    assert given.keys() == found.keys()
    for name, own in given.items():
        scale = 1 if found[name].method == "count" else len(own)
        assert sum(own) / scale == pytest.approx(found[name].value), name


# --- planted rates ----------------------------------------------------------------------------------------------


class Simulated:
    """The simulation as a role of one episode."""

    name = "receiver"

    def __init__(self, backend: SimulatedBackend, episode) -> None:
        self._backend, self._episode = backend, episode

    async def reply(self, messages, *, branch="", round=0, purpose="answer"):
        settings = GenerationSettings(max_new_tokens=9, temperature=0)
        call = Call(
            messages=tuple(messages), settings=settings, role="receiver", purpose=purpose,
            episode=self._episode, branch=branch, round=round,
        )  # fmt: skip
        return await self._backend.reply(call)


def simulated_table(n: int, seed: int, **rates: float):
    options = FeedbackLoopOptions(arms=("hierarchical",), max_rounds=3, test_on="all_wrong", level_texts="data")
    made = FeedbackLoop(
        options,
        Parts(
            verifier=ChoiceVerifier(),
            feedback_providers={"hierarchical": Hierarchical()},
        ),
    )
    backend = SimulatedBackend("m", seed=seed, **rates)

    async def all_records():
        episodes = [make_episode(id=f"e{i}", doc_id=i, levels=("one", "two", "three")) for i in range(n)]
        return [await made.play(episode, FakeRoles(Simulated(backend, episode))) for episode in episodes]

    records = asyncio.run(all_records())
    return FeedbackLoopMetrics(options).table([FeedbackLoopMetrics(options).summary(record) for record in records])


PLANTED = {"correction_hierarchical_1": 0.5, "correction_hierarchical_2": 0.2, "correction_hierarchical_3": 0.9}


@pytest.mark.parametrize("seed", range(4))
def test_planted_rates_of_each_round_come_out(seed):
    found = simulated_table(700, seed, accuracy=0.3, invalid=0.1, **PLANTED)
    wanted = {1: 0.5, 2: 0.5 * 0.2, 3: 0.5 * 0.8 * 0.9}
    assert found["accuracy"].value == pytest.approx(0.3, abs=0.07)
    assert found["n_test"].value == found["n_negative"].value
    for number, rate in wanted.items():
        estimate = found[f"correction_rate.hierarchical.round{number}"]
        spread = (rate * (1 - rate) / estimate.n) ** 0.5
        assert estimate.value == pytest.approx(rate, abs=4 * spread), number
    assert found["correction_rate.hierarchical.within2"].value == pytest.approx(0.6, abs=0.1)
    assert found["n_solved.hierarchical.never"].value == pytest.approx(0.04 * found["n_test"].value, abs=18)


def test_an_arms_own_rate_holds_where_a_round_has_none():
    found = simulated_table(300, 0, accuracy=0, invalid=0, correction_hierarchical=0, correction_hierarchical_3=1)
    rounds = [found[f"n_solved.hierarchical.{end}"].value for end in ("round1", "round2", "round3", "never")]
    assert rounds == [0, 0, 300, 0]
