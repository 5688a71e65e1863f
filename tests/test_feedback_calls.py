"""The model of a feedback loop's calls: its mean, its spread, and that real runs fall where it says."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.config import task_options_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.protocols.feedback_calls import (
    Known,
    LoopShape,
    Rate,
    Rates,
    drawn_calls,
    expected_calls,
    shape_from,
)
from interbench_tasks.protocols.feedback_learned import learned_from
from interbench_tasks.protocols.feedback_loop import FeedbackLoopOptions
from interbench_tasks.records import Feedback, Turn
from interbench_tasks.rows import load_rows
from interbench_tasks.runs.folder import read_records
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from tests.harness_fakes import question_rows
from tests.testing import make_episode, ok

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)
PAPER = {"detail": "written", "simple": "shared"}
ALL_ARMS = {"detail": "written", "simple": "shared", "reask": "shared", "mismatched": "borrowed"}


def at(value: float) -> Rate:
    return Rate(low=value, high=value)


def rates(right=0.5, unreadable=0.0, solved=(0.8,), right_too=0.9, corrected=0.3, leaked=0.0, dropped=0.0) -> Rates:
    return Rates(
        right=at(right),
        unreadable=at(unreadable),
        solved=tuple(map(at, solved)),
        solved_where_right=at(right_too),
        corrected_elsewhere=at(corrected),
        leaked=at(leaked),
        dropped=at(dropped),
    )


# --- rates ------------------------------------------------------------------------------------------------------


def test_a_given_rate_is_what_it_is_and_a_range_is_even():
    rng = np.random.default_rng(0)
    assert set(at(0.4).drawn(rng, 5)) == {0.4}
    drawn = Rate(low=0.2, high=0.6).drawn(rng, 20_000)
    assert (drawn.min() > 0.2, drawn.max() < 0.6) == (True, True)
    assert drawn.mean() == pytest.approx(Rate(low=0.2, high=0.6).middle, abs=0.01)


@pytest.mark.parametrize(("hits", "trials"), [(0, 5), (5, 5), (8, 20), (80, 200)])
def test_a_seen_rate_is_the_more_certain_the_more_was_seen_and_never_quite(hits, trials):
    drawn = Rate(hits=hits, trials=trials).drawn(np.random.default_rng(0), 20_000)
    middle = Rate(hits=hits, trials=trials).middle
    assert drawn.mean() == pytest.approx(middle, abs=0.01)
    assert drawn.std() == pytest.approx(math.sqrt(middle * (1 - middle) / (trials + 2)), rel=0.1)
    assert 0 < middle < 1


# --- what the task decides --------------------------------------------------------------------------------------


def test_the_arms_kinds_are_what_the_plugins_say():
    options = FeedbackLoopOptions(arms=tuple(ALL_ARMS), max_rounds=3, flip_sample=7, providers=("a", "b"))
    shape = shape_from(options, OFFERS.feedback_providers, n_episodes=10, first_recorded=True)
    assert shape.arms == ALL_ARMS
    assert (shape.n_providers, shape.max_rounds, shape.flip_sample) == (2, 3, 7)
    assert shape.first_recorded
    assert not shape.rewrite
    rewriting = options.model_copy(update={"leak_guard": "rewrite"})
    assert shape_from(rewriting, OFFERS.feedback_providers, n_episodes=1).rewrite


def test_a_strangers_arm_is_taken_to_ask_the_provider():
    class Own:
        pass

    options = FeedbackLoopOptions(arms=("own",))
    assert shape_from(options, {"own": Own}, n_episodes=1).arms == {"own": "written"}


@pytest.mark.parametrize(
    ("shape", "most"),
    [
        (LoopShape(n_episodes=1, arms=PAPER), 1 + 1 + 2 + 1),
        (LoopShape(n_episodes=1, arms=PAPER, first_recorded=True), 1 + 2 + 1),
        (LoopShape(n_episodes=1, arms=PAPER, max_rounds=3), 1 + 1 + 3 * 3),
        (LoopShape(n_episodes=1, arms=PAPER, n_providers=2), 1 + 2 + 4 + 1),
        (LoopShape(n_episodes=1, arms=PAPER, rewrite=True), 1 + 1 + 3 + 1),
        (LoopShape(n_episodes=1, arms=ALL_ARMS, n_providers=2), 1 + 2 + 4 + 1 + 1 + 2),
        (LoopShape(n_episodes=1, arms=PAPER, max_rounds=3, takers=2), 1 + 1 + 3 * 3 + 2 * (1 + 2 * 2)),
        (LoopShape(n_episodes=1, arms=PAPER, max_rounds=3, all_wrong=True), 1 + 3 * 3),
    ],
)
def test_the_most_calls_of_an_episode(shape, most):
    assert shape.most_calls == most
    always = rates(right=0, solved=(1,) * shape.n_providers, corrected=0, leaked=1, dropped=0)
    assert drawn_calls(shape, always, n_draws=10).total.max() == most


# --- the mean ---------------------------------------------------------------------------------------------------

SHAPES = [
    LoopShape(n_episodes=300, arms=PAPER),
    LoopShape(n_episodes=300, arms=PAPER, first_recorded=True),
    LoopShape(n_episodes=300, arms=PAPER, max_rounds=4),
    LoopShape(n_episodes=300, arms=ALL_ARMS, flip_sample=40),
    LoopShape(n_episodes=300, arms=ALL_ARMS, n_providers=3, max_rounds=2, flip_sample=40),
    LoopShape(n_episodes=300, arms=ALL_ARMS, n_providers=2, max_rounds=3, flip_sample=400, rewrite=True),
    LoopShape(n_episodes=300, arms={"hierarchical": "written"}, max_rounds=3, all_wrong=True),
    LoopShape(n_episodes=300, arms={"hierarchical": "shared"}, max_rounds=3, flip_sample=40, all_wrong=True),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("right", [0.1, 0.5, 0.9])
def test_the_draws_have_the_mean_of_the_formula(shape, right):
    own = rates(right=right, unreadable=0.1, solved=(0.9, 0.6, 0.3)[: shape.n_providers], leaked=0.4, dropped=0.5)
    drawn = drawn_calls(shape, own, n_draws=20_000)
    receiver, providers = expected_calls(shape, own)
    assert drawn.receiver.mean() == pytest.approx(receiver, rel=0.01, abs=0.5)
    for index, expected in enumerate(providers):
        assert drawn.provider(index).mean() == pytest.approx(expected, rel=0.01, abs=0.5)
    assert drawn.total.mean() == pytest.approx(receiver + sum(providers), rel=0.01, abs=0.5)


def by_hand(shape: LoopShape, own: Rates, rng: random.Random) -> int:
    """One run, question by question, with the rules written out once more."""
    calls, n_right = shape.n_episodes, 0

    def hit(rate: Rate) -> bool:
        return rng.random() < rate.middle

    def branch(kind: str, max_rounds: int) -> int:
        made = 0
        for _ in range(max_rounds):
            made += 2 if kind == "written" else 1
            if hit(own.corrected_elsewhere):
                break
        return made

    def arms(solved: list[bool], max_rounds: int) -> int:
        branches = [
            kind for kind in shape.arms.values() for _ in range(any(solved) if kind == "shared" else sum(solved))
        ]
        return (0 if shape.all_wrong else shape.n_providers) + sum(branch(kind, max_rounds) for kind in branches)

    for _ in range(shape.n_episodes):
        if hit(own.right):
            n_right += 1
        elif shape.all_wrong or not hit(own.unreadable):
            calls += arms([shape.all_wrong or hit(rate) for rate in own.solved], shape.max_rounds)
    for _ in range(min(n_right, shape.flip_sample)):
        calls += arms([shape.all_wrong or hit(own.solved_where_right) for _ in own.solved], 1)
    return calls


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[2], SHAPES[3], SHAPES[4], SHAPES[6], SHAPES[7]], ids=str)
def test_mean_and_spread_are_those_of_runs_played_question_by_question(shape):
    own = rates(unreadable=0.1, solved=(0.9, 0.6, 0.3)[: shape.n_providers])
    rng = random.Random(1)
    runs = [by_hand(shape, own, rng) for _ in range(800)]
    drawn = drawn_calls(shape, own, n_draws=8_000).total
    assert drawn.mean() == pytest.approx(np.mean(runs), rel=0.01)
    assert drawn.std() == pytest.approx(np.std(runs), rel=0.12)


def test_the_same_seed_draws_the_same():
    shape = SHAPES[4]
    one, two = (drawn_calls(shape, Rates(), n_draws=50, seed=3).total for _ in range(2))
    assert (one == two).all()
    assert (one != drawn_calls(shape, Rates(), n_draws=50, seed=4).total).any()


def test_unknown_rates_are_wider_than_seen_ones_and_those_wider_than_given_ones():
    shape = LoopShape(n_episodes=1000, arms=PAPER)
    seen = Rates(right=Rate(hits=50, trials=100), solved_together={(True,): 40, (False,): 10}, unreadable=at(0))
    widths = [drawn_calls(shape, own).total.std() for own in (Rates(), seen, rates())]
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


def test_providers_that_solve_the_same_questions_share_more_branches():
    shape = LoopShape(n_episodes=1000, arms={"simple": "shared"}, n_providers=2)
    together = Rates(right=at(0.5), unreadable=at(0), solved_together={(True, True): 500, (False, False): 500})
    apart = Rates(right=at(0.5), unreadable=at(0), solved_together={(True, False): 500, (False, True): 500})
    assert drawn_calls(shape, together).receiver.mean() == pytest.approx(1250, rel=0.02)
    assert drawn_calls(shape, apart).receiver.mean() == pytest.approx(1500, rel=0.02)


# --- what is known ----------------------------------------------------------------------------------------------


def test_what_is_known_is_certain_and_the_rest_is_drawn():
    shape = LoopShape(n_episodes=10, arms=PAPER)
    known = Known(
        n=10,
        right=4,
        solved={(True,): 5, (False,): 1},
        first=10,
        rounds={("written", 1): 5, ("shared", 1): 5},
        solves=(6,),
        feedback={(0, 1): 5},
    )
    drawn = drawn_calls(shape, Rates(), known)
    assert set(drawn.receiver) == {20}
    assert set(drawn.provider(0)) == {11}
    larger = drawn_calls(LoopShape(n_episodes=20, arms=PAPER), rates(), known).total
    rest = drawn_calls(LoopShape(n_episodes=10, arms=PAPER), rates()).total
    assert larger.mean() == pytest.approx(31 + rest.mean(), rel=0.02)
    assert larger.std() == pytest.approx(rest.std(), rel=0.1)


def test_the_second_pass_is_drawn_from_all_questions_the_known_ones_too():
    shape = LoopShape(n_episodes=10, arms=ALL_ARMS, flip_sample=3)
    known = Known(n=10, right=4, solved={(True,): 6}, first=10, solves=(6,))
    drawn = drawn_calls(shape, rates(right_too=1.0), known)
    assert set(drawn.rounds["borrowed", 1]) == {6 + 3}
    assert set(drawn.provider(0)) == {6 + 3 + 3}  # the known tries, three more, and three times written


# --- real runs --------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def played(folder, n=60, providers=("simulated:a,solve=0.8",), receiver=None, **block):
    """The records of a run, its shape and the labels of its providers."""
    folder.mkdir(exist_ok=True)
    data = folder / "rows.jsonl"
    data.write_text(
        "".join(json.dumps(row) + "\n" for row in question_rows(n, l1="a", l2="b", l3="c")), encoding="utf-8"
    )
    named = {"providers": list(providers)}
    if len(providers) < 2:
        named = {"roles": {"provider": providers[0]} if providers else {}}
    if "memory" in block:
        named["roles"] = {**named.get("roles", {}), "notetaker": "simulated:n"}
    config = {
        "task": "t",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 8, "temperature": 0},
        "metadata": {"interbench": {"protocol": "feedback_loop", "verifier": "choice", **named, **block}},
    }
    options = task_options_from(config, where="t.yaml", offers=OFFERS)
    plan = RunPlan(
        task="t",
        options=options,
        data=load_rows("json", name=None, split="test", options={"data_files": str(data)}),
        wanted=[(doc, 0) for doc in range(n)],
        n_total=n,
        run_id="r",
        folder=folder / "run",
    )
    receiver = receiver or SimulatedBackend(accuracy=0.4, invalid=0.1, correction=0.3)
    run = play_run(plan, receiver=receiver, manager=MANAGER, offers=OFFERS, harness_model=lambda role: None)
    shape = shape_from(options.protocol_options, OFFERS.feedback_providers, n_episodes=n, memories=OFFERS.memories)
    return list(read_records(plan.folder)), shape, options.protocol_options.providers or ("",), run


LEVELS = {"test_on": "all_wrong", "arms": ["hierarchical"], "max_rounds": 3}
BLOCKS = [
    {},
    {"max_rounds": 3},
    {"arms": list(ALL_ARMS), "flip_sample": 6},
    {"arms": list(ALL_ARMS), "flip_sample": 6, "max_rounds": 2},
    {"providers": ("simulated:a,solve=0.8", "simulated:b,solve=0.4,seed=3")},
    {"providers": ("simulated:a,solve=0.8", "simulated:b,solve=0.4"), "arms": list(ALL_ARMS), "flip_sample": 4},
    {"memory": "note_taking", "max_rounds": 3},
    {"memory": ["recent_turns", "note_taking", "summary"], "max_rounds": 2},
    {"memory": "note_taking", "arms": list(ALL_ARMS), "flip_sample": 6, "max_rounds": 2},
    {
        "memory": "summary",
        "providers": ("simulated:a,solve=0.8", "simulated:b,solve=0.4,seed=3"),
        "max_rounds": 2,
    },
    {"test_on": "all_wrong", "max_rounds": 2},
    LEVELS,
    LEVELS | {"providers": (), "columns": {"levels": ["l1", "l2", "l3"]}},
]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_all_questions_known_is_the_number_of_calls_that_were_made(tmp_path, block):
    records, shape, labels, run = played(tmp_path, **block)
    learned = learned_from(records, shape=shape, labels=labels, rates=Rates())
    assert learned.known.n == 60
    drawn = drawn_calls(shape, learned.rates, learned.known)
    low, high = np.quantile(drawn.total, [0.005, 0.995])
    assert low <= run.report.calls <= high
    if not block.get("flip_sample"):
        assert set(drawn.total) == {run.report.calls}  # nothing was left to draw
        roles = run.usage["roles"]
        assert set(drawn.receiver) == {roles["receiver"]["calls"]}
        assert set(drawn.notetaker) == {roles.get("notetaker", {"calls": 0})["calls"]}
        for index, label in enumerate(labels):
            role = roles.get(f"provider@{label}" if label else "provider", {"calls": 0})
            assert set(drawn.provider(index)) == {role["calls"]}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_run_falls_where_the_planted_rates_say(tmp_path, block):
    _, shape, labels, run = played(tmp_path, n=300, **block)
    own = Rates(
        right=at(0.4),
        unreadable=at(0.1 / 0.6),
        solved=tuple(at(rate) for rate in (0.8, 0.4)[: len(labels)]),
        solved_where_right=Rate(low=0.4, high=0.8),
        corrected_elsewhere=at(0.3),
    )
    low, high = np.quantile(drawn_calls(shape, own).total, [0.005, 0.995])
    assert low <= run.report.calls <= high


def test_learned_rates_are_those_that_were_planted(tmp_path):
    records, shape, labels, _ = played(tmp_path, n=600, max_rounds=2, arms=["detail", "simple"])
    learned = learned_from(records, shape=shape, labels=labels, rates=Rates())
    found = learned.rates
    assert found.right.trials == 600
    assert found.right.middle == pytest.approx(0.4, abs=0.06)
    assert found.unreadable.middle == pytest.approx(0.1 / 0.6, abs=0.06)
    tried = sum(found.solved_together.values())
    assert found.solved_together[True,] / tried == pytest.approx(0.8, abs=0.06)
    assert found.corrected["detail"].middle == pytest.approx(0.3, abs=0.06)
    assert set(learned.tokens) == {
        ("first", 0, 0), ("solve", 0, 0), ("feedback", 1, 0), ("feedback", 2, 0),
        ("written", 1, 0), ("written", 2, 0), ("shared", 1, 0), ("shared", 2, 0),
    }  # fmt: skip
    assert len(learned.tokens["first", 0, 0]) == 600


def test_failed_episodes_tell_nothing_and_are_not_known(tmp_path):
    receiver = SimulatedBackend(accuracy=0.4, invalid=0, fail=0.2)
    records, shape, labels, _ = played(tmp_path, n=100, receiver=receiver)
    learned = learned_from(records, shape=shape, labels=labels, rates=Rates())
    assert 30 < learned.known.n < 95
    assert learned.rates.right.trials == learned.known.n


def test_nothing_played_tells_nothing():
    shape = LoopShape(n_episodes=5, arms=PAPER)
    learned = learned_from([], shape=shape, labels=("",), rates=Rates())
    assert learned.known == Known(solves=(0,))
    assert learned.rates == Rates()


def test_recorded_first_answers_are_no_calls(tmp_path):
    records, shape, labels, _ = played(tmp_path)
    recorded = []
    for record in records:
        first = record.turns[0]
        reply = ok(first.reply.text)
        turns = (replace(first, reply=replace(reply, model="recorded")), *record.turns[1:])
        recorded.append(replace(record, turns=turns))
    known = learned_from(recorded, shape=shape, labels=labels, rates=Rates()).known
    assert (known.first, known.n) == (0, 60)


def test_feedback_that_leaked_twice_was_paid_for_and_ends_its_branch(tmp_path):
    class Leaking(SimulatedBackend):
        """A provider that gives the answer away in every second feedback, also when it writes again."""

        async def reply(self, call):
            got = await super().reply(call)
            if call.purpose == "feedback" and call.episode.doc_id % 2:
                return replace(got, text=f"The right answer is {call.episode.target}.")
            return got

    offers = offers_from(MANAGER)
    leaking = type(offers)(**{**_fields(offers), "backends": {**offers.backends, "leaking": Leaking}})
    records, shape, labels, run = _played_with(tmp_path, leaking)
    assert shape.rewrite
    learned = learned_from(records, shape=shape, labels=labels, rates=Rates())
    assert learned.rates.leaked.hits > 0
    assert learned.rates.dropped.hits == learned.rates.dropped.trials == learned.rates.leaked.hits
    assert set(drawn_calls(shape, learned.rates, learned.known).total) == {run.report.calls}


def _fields(offers) -> dict:
    return {name: getattr(offers, name) for name in type(offers).__slots__}


def _played_with(folder, offers):
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in question_rows(40)), encoding="utf-8")
    block = {"protocol": "feedback_loop", "verifier": "choice", "leak_guard": "rewrite", "max_rounds": 2}
    config = {
        "task": "t",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 8, "temperature": 0},
        "metadata": {"interbench": block | {"roles": {"provider": "leaking:x,solve=0.9"}}},
    }
    options = task_options_from(config, where="t.yaml", offers=offers)
    rows = load_rows("json", name=None, split="test", options={"data_files": str(data)})
    wanted = [(doc, 0) for doc in range(40)]
    plan = RunPlan(task="t", options=options, data=rows, wanted=wanted, n_total=40, run_id="r", folder=folder / "run")
    receiver = SimulatedBackend(accuracy=0.3, invalid=0)
    run = play_run(plan, receiver=receiver, manager=MANAGER, offers=offers, harness_model=lambda role: None)
    shape = shape_from(options.protocol_options, offers.feedback_providers, n_episodes=40)
    return list(read_records(plan.folder)), shape, ("",), run


def test_borrowed_feedback_is_paid_for_where_it_was_written():
    given = Feedback(text="x", kind="mismatched", author="a", source="other", reply=ok("x"))
    turn = Turn(index=0, parent=None, user=make_episode().question, reply=ok("A"), feedback=given)
    assert turn.feedback.paid_for() == ()


# --- with a memory ------------------------------------------------------------------------------------------------


def test_only_memories_that_take_notes_ask_a_notetaker():
    plugins = OFFERS.feedback_providers
    for memory, takers in ((None, 0), ("recent_turns", 0), ("note_taking", 1), (("summary", "note_taking"), 2)):
        options = FeedbackLoopOptions(arms=("simple",), memory=memory)
        assert shape_from(options, plugins, n_episodes=1, memories=OFFERS.memories).takers == takers


def test_notes_follow_the_first_answer_once_and_each_further_one_in_its_branch():
    shape = LoopShape(n_episodes=10, arms=PAPER, max_rounds=3, takers=2)
    never = rates(right=0, solved=(1,), corrected=0)
    drawn = drawn_calls(shape, never, n_draws=5)
    assert {after: set(counts) for after, counts in drawn.notes.items()} == {0: {20}, 1: {40}, 2: {40}}
    assert set(drawn.total) == {10 * shape.most_calls}


def test_notes_whose_taker_failed_tell_nothing(tmp_path):
    records, shape, labels, _ = played(tmp_path, n=20, memory="note_taking")
    broken = [
        replace(record, ends=tuple(replace(end, reason="notes_failed") for end in record.ends)) for record in records
    ]
    known = learned_from(broken, shape=shape, labels=labels, rates=Rates()).known
    assert known.notes == {}
    assert known.n == sum(not record.ends for record in records)
