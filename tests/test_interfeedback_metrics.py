"""Metrics of the feedback loop: records to summaries, summaries to tables, and bounds that hold for every outcome."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass, field

import pytest

from interbench_tasks.hookspecs import MetricSet
from interbench_tasks.metrics.feedback_shares import COUNTS
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.metrics.intervals import Estimate, wilson
from interbench_tasks.records import (
    BranchEnd,
    EpisodeRecord,
    Extraction,
    Feedback,
    Judgement,
    Message,
    Reply,
    Turn,
    Usage,
)


@dataclass
class Options:
    arms: list[str] = field(default_factory=lambda: ["detail", "simple"])
    max_rounds: int = 1
    providers: tuple[str, ...] = ()
    flip_sample: int = 0
    leak_guard: str = "observe"


def metrics(arms=("detail", "simple"), max_rounds=1) -> FeedbackLoopMetrics:
    return FeedbackLoopMetrics(Options(arms=list(arms), max_rounds=max_rounds))


# --- records, as the protocol makes them
# A reply is True (right), False (wrong), None (unparseable) or "failed".

USER = Message(role="user", content=("Which?",))
USED = Usage(calls=1, input_tokens=10, output_tokens=3)


class Builder:
    """Makes one record, turn by turn."""

    def __init__(self, target: str = "B", wrong: str = "A"):
        self.turns: list[Turn] = []
        self.ends: list[BranchEnd] = []
        self.target, self.wrong = target, wrong

    def turn(self, reply, *, role="receiver", branch="", number=0, parent=None) -> Turn:
        judgement = None
        if reply != "failed":
            answer = {True: self.target, False: self.wrong, None: None}[reply]
            method = "none" if answer is None else "declared"
            judgement = Judgement(extraction=Extraction(answer=answer, method=method), correct=reply is True)
        status = "error" if reply == "failed" else "ok"
        made = Turn(
            index=len(self.turns),
            parent=parent,
            branch=branch,
            round=number,
            role=role,
            user=USER,
            reply=Reply(text="...", status=status, usage=USED),
            judgement=judgement,
        )
        self.turns.append(made)
        return made

    def arm(self, name, replies, end, start):
        parent = start
        for number, reply in enumerate(replies, start=1):
            parent = self.turn(reply, branch=name, number=number, parent=parent.index)
        self.ends.append(BranchEnd(branch=name, reason=end))

    def record(self, stop_reason, status="finished", **fields) -> EpisodeRecord:
        given = {"episode_id": "e", "doc_id": 0, "repeat": 0, "category": None, "cluster": None, **fields}
        return EpisodeRecord(
            task="t",
            protocol="feedback_loop",
            target=self.target,
            options={},
            turns=tuple(self.turns),
            ends=tuple(self.ends),
            status=status,
            stop_reason=stop_reason,
            **given,
        )


def record(first, solve=None, arms=None, **fields) -> EpisodeRecord:
    """One episode. `first`: a reply or "skipped"; `solve`: the provider's; `arms`: {arm: replies}.

    "feedback_failed" stands for the last reply where the feedback failed.
    """
    builder = Builder()
    if first == "skipped":
        return builder.record("", status="skipped", **fields)
    start = builder.turn(first)
    if first == "failed":
        return builder.record("reply_failed", status="failed", **fields)
    if first is not False:
        return builder.record("right" if first else "invalid", **fields)
    builder.turn(solve, role="provider", branch="solve")
    if solve is not True:
        reason = {False: "provider_wrong", None: "provider_unparsed", "failed": "provider_failed"}[solve]
        return builder.record(reason, **fields)
    for name, replies in arms.items():
        if replies[-1] == "feedback_failed":
            builder.arm(name, replies[:-1], "feedback_failed", start)
        else:
            ends = {True: "solved", "failed": "reply_failed"}
            builder.arm(name, replies, ends.get(replies[-1], "rounds_used"), start)
    return builder.record("played", **fields)


def table(records, **options) -> dict[str, Estimate]:
    chosen = metrics(**options)
    return chosen.table([chosen.summary(made) for made in numbered(records)])


def numbered(records):
    return [EpisodeRecord(**{**fields_of(made), "doc_id": i, "episode_id": f"e{i}"}) for i, made in enumerate(records)]


def fields_of(made):
    return {name: getattr(made, name) for name in EpisodeRecord.__dataclass_fields__}


def values(found):
    return {name: estimate.value for name, estimate in found.items()}


RIGHT = record(True)
INVALID = record(None)
PROVIDER_WRONG = record(False, False)
PROVIDER_UNPARSED = record(False, None)
PROVIDER_FAILED = record(False, "failed")
FAILED = record("failed")
SKIPPED = record("skipped")


def played(detail, simple):
    return record(False, True, {"detail": detail, "simple": simple})


# --- summaries


def test_the_metric_set_has_what_the_hook_asks_for():
    wanted = {name for name in vars(MetricSet) if not name.startswith("_")}
    assert wanted <= set(dir(FeedbackLoopMetrics))


def test_a_played_episode_becomes_this_summary():
    made = record(
        False,
        True,
        {"detail": [True], "simple": [False]},
        episode_id="x7",
        doc_id=7,
        repeat=1,
        category="c",
        cluster="p3",
    )
    used = {"calls": 1, "input_tokens": 10, "output_tokens": 3}
    assert metrics().summary(made) == {
        "id": "x7",
        "doc_id": 7,
        "repeat": 1,
        "category": "c",
        "cluster": "p3",
        "status": "finished",
        "stop_reason": "played",
        "target": "B",
        "first": {"answer": "A", "method": "declared", "correct": False},
        "provider": {"status": "ok", "answer": "B", "method": "declared", "correct": True},
        "in_test": True,
        "arms": {
            "detail": {
                "rounds": [{"answer": "B", "method": "declared", "correct": True, "status": "ok"}],
                "end": "solved",
            },
            "simple": {
                "rounds": [{"answer": "A", "method": "declared", "correct": False, "status": "ok"}],
                "end": "rounds_used",
            },
        },
        "usage": {"receiver": {k: 3 * v for k, v in used.items()}, "provider": used},
    }


@pytest.mark.parametrize(
    ("made", "in_test", "provider"),
    [
        (RIGHT, False, None),
        (INVALID, False, None),
        (PROVIDER_WRONG, False, "ok"),
        (PROVIDER_UNPARSED, False, "ok"),
        (PROVIDER_FAILED, None, "error"),
        (FAILED, None, None),
        (SKIPPED, None, None),
        (played([True], [True]), True, "ok"),
    ],
    ids=lambda value: getattr(value, "stop_reason", None) or None,
)
def test_membership_of_the_test_set_is_unknown_only_where_a_call_failed(made, in_test, provider):
    summary = metrics().summary(made)
    assert summary["in_test"] is in_test
    assert (summary["provider"] or {}).get("status") == provider
    assert summary["arms"].keys() == ({"detail", "simple"} if in_test else set())
    assert (summary["first"] is None) == (made.status != "finished")


def test_failed_rounds_are_kept_apart_from_wrong_ones():
    made = record(False, True, {"detail": [False, "failed"], "simple": [False, "feedback_failed"]})
    arms = metrics(max_rounds=2).summary(made)["arms"]
    failed = {"answer": None, "method": None, "correct": None, "status": "error"}
    assert arms["detail"]["rounds"][1] == failed
    assert (arms["detail"]["end"], arms["simple"]["end"]) == ("reply_failed", "feedback_failed")
    assert len(arms["simple"]["rounds"]) == 1


def test_an_unparseable_retry_is_wrong_not_failed():
    found = table([played([None], [True])])
    assert found["correction_rate.detail"].value == 0.0
    assert found["correction_rate.detail"].unscored == 0


def test_an_episode_that_raised_is_not_scored_even_where_round_0_was_read():
    builder = Builder()
    builder.turn(True)
    raised = builder.record("", status="failed", error="KeyError: 'x'")
    assert metrics().summary(raised)["first"] is None
    assert values(table([raised])) == {"n": 1, "n_negative": 0, "n_test": 0, "n_invalid": 0, "n_failed": 1}


def test_without_a_try_of_the_provider_an_arm_that_was_started_shows_the_membership():
    builder = Builder()
    start = builder.turn(False)
    builder.arm("detail", [True], "solved", start)
    made = builder.record("played")
    assert metrics(arms=["detail"]).summary(made)["in_test"] is True
    builder = Builder()
    builder.turn(False)
    assert metrics(arms=["detail"]).summary(builder.record("provider_failed"))["in_test"] is None


def test_long_texts_are_cut_and_say_so():
    builder = Builder(target="t" * 300, wrong="w" * 200)
    builder.turn(False)
    builder.turn(True, role="provider", branch="solve")
    summary = metrics().summary(builder.record("provider_wrong"))
    assert summary["first"] == {"answer": "w" * 200, "method": "declared", "correct": False}
    assert summary["provider"]["answer"] == "t" * 200
    assert summary["provider"]["answer_cut"] is True
    assert (summary["target"], summary["target_cut"]) == ("t" * 200, True)


@pytest.mark.parametrize("letter", ["x", "<", "é", "🀄"])
@pytest.mark.parametrize(("arms", "rounds"), [(2, 1), (2, 3), (6, 3), (4, 6)])
def test_a_summary_stays_under_4_kb(letter, arms, rounds):
    builder = Builder(target=letter * 5000, wrong=letter * 4000)
    start = builder.turn(False)
    builder.turn(True, role="provider", branch="solve")
    names = [f"arm{i}" for i in range(arms)]
    for name in names:
        builder.arm(name, [False] * rounds, "rounds_used", start)
    chosen = metrics(arms=names, max_rounds=rounds)
    summary = chosen.summary(builder.record("played", category="geometry", cluster="problem 17"))
    assert len(json.dumps(summary).replace("<", "\\u003c").encode()) < 4096
    assert chosen.table([summary])["n_negative"].value == 1, "a cut answer is still an answer"


def test_feedback_that_failed_is_in_the_usage():
    builder = Builder()
    start = builder.turn(False)
    builder.turn(True, role="provider", branch="solve")
    failed = Feedback(
        text="", kind="detail", author="p", status="failed", reply=Reply(text="", status="error", usage=USED)
    )
    builder.ends.append(BranchEnd(branch="detail", reason="feedback_failed", feedback=failed))
    builder.arm("simple", [False], "rounds_used", start)
    summary = metrics().summary(builder.record("played"))
    assert summary["usage"]["provider"]["calls"] == 2
    assert summary["arms"]["detail"] == {"rounds": [], "end": "feedback_failed"}


# --- tables


def test_a_small_run_gives_these_numbers():
    found = table(
        [
            *[RIGHT] * 4,
            INVALID,
            PROVIDER_WRONG,
            PROVIDER_UNPARSED,
            played([True], [True]),
            played([True], [False]),
            played([True], [False]),
            played([False], [True]),
            played([False], [None]),
        ]
    )
    assert values(found) == {
        "accuracy": 4 / 12,
        "accuracy_after.detail": 7 / 12,
        "accuracy_after.simple": 6 / 12,
        "correction_rate.detail": 3 / 5,
        "correction_rate.simple": 2 / 5,
        "correction_rate_on_negatives.detail": 3 / 8,
        "correction_rate_on_negatives.simple": 2 / 8,
        "provider_solve_rate_on_negatives": 5 / 7,
        "difference.detail-simple": 1 / 5,
        "n": 12,
        "n_negative": 8,
        "n_test": 5,
        "n_invalid": 1,
        "n_failed": 0,
    }
    assert list(found)[:3] == ["accuracy", "accuracy_after.detail", "accuracy_after.simple"]
    assert all(estimate.unscored == 0 and estimate.bounds is None for estimate in found.values())
    assert found["correction_rate.detail"].ci95 == wilson(3, 5)
    assert (found["correction_rate.detail"].count, found["correction_rate.detail"].n) == (3, 5)
    assert found["difference.detail-simple"].method == "paired_agresti_min"
    assert {found[name].method for name in COUNTS} == {"count"}


def test_failures_are_unscored_never_wrong():
    found = table(
        [
            RIGHT,
            played([True], [True]),
            played(["failed"], [False]),
            played(["feedback_failed"], [True]),
            PROVIDER_FAILED,
            FAILED,
            SKIPPED,
            PROVIDER_WRONG,
        ]
    )
    got = {name: (e.value, e.n, e.unscored, e.bounds) for name, e in found.items()}
    assert got["accuracy"] == (1 / 6, 6, 2, (1 / 8, 3 / 8))
    # detail: 1 of 1 scored; two failed arms, one of unknown membership, two without round 0
    assert got["accuracy_after.detail"] == (2 / 3, 3, 5, (2 / 8, 7 / 8))
    assert got["correction_rate.detail"] == (1.0, 1, 5, (1 / 6, 1.0))
    assert got["correction_rate.simple"] == (2 / 3, 3, 3, (2 / 6, 5 / 6))
    assert got["correction_rate_on_negatives.simple"] == (2 / 4, 4, 3, (2 / 7, 5 / 7))
    assert got["provider_solve_rate_on_negatives"] == (3 / 4, 4, 3, (3 / 7, 6 / 7))
    # paired: 1-1; open: (0..1)-0, (0..1)-1, and three that may be anything
    assert got["difference.detail-simple"] == (0.0, 1, 5, (-4 / 6, 4 / 6))
    assert got["n"] == (8, 8, 0, None)
    assert got["n_negative"] == (5, 6, 2, (5, 7))
    assert got["n_test"] == (3, 5, 3, (3, 6))
    assert got["n_invalid"] == (0, 6, 2, (0, 2))
    assert got["n_failed"] == (2, 8, 0, None)


def test_an_arm_that_never_ran_is_unscored():
    found = table([record(False, True, {"detail": [True]}), played([False], [True])])
    assert found["correction_rate.simple"].n == 1
    assert found["correction_rate.simple"].unscored == 1


def test_rounds_share_a_denominator_and_add_up():
    runs = [[True], [False, True], [False, True], [False, None, True], [False, False, False], [False, "failed"]]
    found = table([record(False, True, {"detail": run}) for run in runs], arms=["detail"], max_rounds=3)
    rounds = [found[f"correction_rate.detail.round{number}"] for number in (1, 2, 3)]
    assert [(e.count, e.n, e.unscored) for e in rounds] == [(1, 5, 1), (2, 5, 1), (1, 5, 1)]
    assert sum(e.count for e in rounds) == found["correction_rate.detail"].count == 4
    # The failed arm was wrong in round 1, so it cannot add to round 1: 1 of 6, or the value, which leaves it out.
    assert [e.bounds for e in rounds] == [(1 / 6, 1 / 5), (2 / 6, 3 / 6), (1 / 6, 2 / 6)]


def test_rounds_beyond_max_rounds_do_not_count_and_rounds_not_played_are_not_wrong():
    solved_late, gave_up = [False, True], [False]
    made = [record(False, True, {"detail": run}) for run in (solved_late, gave_up)]
    assert table(made, arms=["detail"], max_rounds=1)["correction_rate.detail"].value == 0.0
    two = table(made, arms=["detail"], max_rounds=2)["correction_rate.detail"]
    assert (two.value, two.n, two.unscored) == (1.0, 1, 1)


def test_one_round_has_no_metrics_by_round():
    assert not [name for name in table([played([True], [True])]) if "round" in name]


def test_undefined_metrics_are_absent():
    assert set(table([RIGHT, RIGHT])) == {"accuracy", "accuracy_after.detail", "accuracy_after.simple", *COUNTS}
    assert set(table([FAILED, SKIPPED])) == set(COUNTS)
    assert table([]) == {}
    only_invalid = table([INVALID])
    assert "correction_rate.detail" not in only_invalid
    assert only_invalid["correction_rate_on_negatives.detail"].value == 0.0
    one_side = table([played([True], ["failed"])])
    assert "correction_rate.simple" not in one_side
    assert "difference.detail-simple" not in one_side


def test_every_pair_of_arms_is_compared_on_what_both_scored():
    made = record(False, True, {"a": [True], "b": [False], "c": ["failed"]})
    full = record(False, True, {"a": [True], "b": [True], "c": [False]})
    found = table([made, full], arms=["a", "b", "c"])
    pairs = {name: (e.value, e.n) for name, e in found.items() if name.startswith("difference")}
    assert pairs == {"difference.a-b": (0.5, 2), "difference.a-c": (1.0, 1), "difference.b-c": (1.0, 1)}


def test_rows_of_one_cluster_and_repeats_of_one_doc_are_not_independent():
    chosen = metrics()
    rows = [chosen.summary(made) for made in numbered([RIGHT, played([True], [False])] * 4)]
    assert chosen.table(rows)["accuracy"].method == "wilson"
    clustered = [{**row, "cluster": f"p{row['doc_id'] // 3}"} for row in rows]
    assert chosen.table(clustered)["accuracy"].method == "cluster_bootstrap"
    apart = [{**row, "cluster": f"p{row['doc_id']}"} for row in rows]
    assert chosen.table(apart)["accuracy"].method == "wilson"
    repeated = [{**row, "doc_id": row["doc_id"] // 3, "repeat": row["doc_id"] % 3} for row in rows]
    assert chosen.table(repeated)["accuracy"].method == "cluster_bootstrap"
    # Every doc gave one right and one wrong answer: nothing to resample.
    alike = [{**row, "doc_id": row["doc_id"] // 2, "repeat": row["doc_id"] % 2} for row in rows]
    assert chosen.table(alike)["accuracy"].method == "wilson_by_cluster"
    assert chosen.table(alike)["accuracy"].ci95 == wilson(2, 4)


def test_categories_have_their_own_tables():
    chosen = metrics()
    rows = [chosen.summary(made) for made in numbered([RIGHT, INVALID, played([True], [False]), RIGHT])]
    named = [{**row, "category": category} for row, category in zip(rows, ["b", "a", "b", None], strict=True)]
    by_category = chosen.by_category(named)
    assert list(by_category) == ["a", "b"]
    assert by_category["b"] == chosen.table([named[0], named[2]])
    assert by_category["b"]["n"].value == 2


# --- what the harness shows


def test_two_arms_fill_the_headline_exactly():
    chosen = metrics(max_rounds=3)
    made = record(False, True, {"detail": [True], "simple": [False, False, False]})
    names = list(chosen.table([chosen.summary(m) for m in numbered([RIGHT, made])]))
    shown = chosen.headline(names)
    assert shown == [
        "accuracy",
        "correction_rate.detail",
        "correction_rate.simple",
        "difference.detail-simple",
        "n",
        "n_negative",
        "n_test",
        "n_invalid",
        "n_failed",
    ]
    assert sum(1 if name in COUNTS else 5 for name in shown) == 25


def test_the_headline_never_passes_25_rows_and_does_not_depend_on_what_is_defined():
    for count in range(1, 7):
        arms = [f"a{i}" for i in range(count)]
        chosen = metrics(arms=arms)
        made = record(False, True, {arm: [True] for arm in arms})
        names = list(chosen.table([chosen.summary(m) for m in numbered([RIGHT, made])]))
        shown = chosen.headline(names)
        assert sum(1 if name in COUNTS else 5 for name in shown) <= 25
        assert chosen.headline([name for name in names if name != "accuracy"]) == shown[1:]
    assert "accuracy_after.a" in metrics(arms=["a"]).headline(["accuracy_after.a"])


# --- every outcome: properties on random runs

ROUND_0 = [True, None, False, "failed", "skipped"]


def random_record(rng: random.Random, arms, max_rounds) -> EpisodeRecord:
    first = rng.choices(ROUND_0, weights=[4, 1, 10, 1, 1])[0]
    solve = rng.choices([True, False, None, "failed"], weights=[10, 2, 1, 2])[0]
    return record(first, solve, {arm: random_run(rng, max_rounds) for arm in arms})


def random_run(rng, max_rounds):
    run = []
    while len(run) < max_rounds and (not run or run[-1] in (False, None)):
        run.append(rng.choices([True, False, None, "failed", "feedback_failed"], weights=[4, 4, 1, 1, 1])[0])
    return run


def random_summaries(seed, size, chosen, arms, max_rounds):
    rng = random.Random(seed)
    made = numbered([random_record(rng, arms, max_rounds) for _ in range(size)])
    return [chosen.summary(m) for m in made]


@pytest.mark.parametrize("seed", range(60))
def test_contributions_and_table_say_the_same(seed):
    arms, max_rounds = ["detail", "simple", "reask"][: 1 + seed % 3], 1 + seed % 2
    chosen = metrics(arms=arms, max_rounds=max_rounds)
    summaries = random_summaries(seed, seed % 12, chosen, arms, max_rounds)
    found = chosen.table(summaries)
    given: dict[str, list[float]] = {}
    for summary in summaries:
        for name, value in chosen.contributions(summary).items():
            given.setdefault(name, []).append(value)
    assert given.keys() == found.keys()
    for name, own in given.items():
        if name in COUNTS or name.startswith("n_solved."):
            assert len(own) == len(summaries)
            assert sum(own) == found[name].value
        else:
            assert len(own) == found[name].n
            assert sum(own) / len(own) == pytest.approx(found[name].value)


@pytest.mark.parametrize("seed", range(5))
def test_a_table_needs_neither_order_nor_objects(seed):
    chosen = metrics(max_rounds=2)
    summaries = random_summaries(seed, 40, chosen, ["detail", "simple"], 2)
    clustered = [{**summary, "cluster": f"p{summary['doc_id'] // 3}"} for summary in summaries]
    shuffled = random.Random(seed).sample(clustered, k=len(clustered))
    assert chosen.table(json.loads(json.dumps(shuffled))) == chosen.table(clustered)


def plain_metrics(states, arms, max_rounds):
    """The formulas over episodes without any failure, written down a second time.

    A state is "right", "invalid", "outside" or {arm: round it was corrected in, 0 = never}.
    """
    tests = [state for state in states if isinstance(state, dict)]
    n, right = len(states), states.count("right")
    found = {"accuracy": (right, n)}
    for arm in arms:
        solved = sum(1 for state in tests if state[arm])
        found[f"accuracy_after.{arm}"] = (right + solved, n)
        found[f"correction_rate.{arm}"] = (solved, len(tests))
        found[f"correction_rate_on_negatives.{arm}"] = (solved, n - right)
        if max_rounds > 1:
            for number in range(1, max_rounds + 1):
                hits = sum(1 for state in tests if state[arm] == number)
                found[f"correction_rate.{arm}.round{number}"] = (hits, len(tests))
                found[f"n_solved.{arm}.round{number}"] = (hits, 1)
                sofar = sum(1 for state in tests if 0 < state[arm] <= number)
                found[f"correction_rate.{arm}.within{number}"] = (sofar, len(tests))
            found[f"n_solved.{arm}.never"] = (len(tests) - solved, 1)
    found["provider_solve_rate_on_negatives"] = (len(tests), len(tests) + states.count("outside"))
    for one, other in itertools.combinations(arms, 2):
        gap = sum(bool(state[one]) - bool(state[other]) for state in tests)
        found[f"difference.{one}-{other}"] = (gap, len(tests))
    found |= {"n": (n, 1), "n_negative": (n - right, 1), "n_test": (len(tests), 1)}
    found["n_invalid"] = (states.count("invalid"), 1)
    return {name: top / bottom for name, (top, bottom) in found.items() if bottom}


def possible_states(made: EpisodeRecord, arms, max_rounds):
    """Everything the episode could have been, had no call failed."""
    runs = {arm: possible_rounds(made, arm, max_rounds) for arm in arms}
    in_test = [dict(zip(arms, combo, strict=True)) for combo in itertools.product(*runs.values())]
    if made.status != "finished":
        return ["right", "invalid", "outside", *in_test]
    known = {"right": "right", "invalid": "invalid", "provider_wrong": "outside", "provider_unparsed": "outside"}
    if made.stop_reason in known:
        return [known[made.stop_reason]]
    return in_test if made.stop_reason == "played" else ["outside", *in_test]


def possible_rounds(made, arm, max_rounds):
    """The rounds in which the arm may have been corrected; 0 = never."""
    end = next((end.reason for end in made.ends if end.branch == arm), "never_started")
    usable = [turn for turn in made.turns if turn.branch == arm and turn.judgement is not None]
    if end == "solved":
        return [len(usable)]
    return [0] if end == "rounds_used" else [0, *range(len(usable) + 1, max_rounds + 1)]


@pytest.mark.parametrize("seed", range(80))
def test_bounds_are_the_extremes_over_every_outcome(seed):
    arms, max_rounds = (["detail", "simple"], 1) if seed % 2 else (["detail"], 2)
    chosen, rng = metrics(arms=arms, max_rounds=max_rounds), random.Random(1000 + seed)
    made, n_outcomes = [], 1
    for candidate in (random_record(rng, arms, max_rounds) for _ in range(12)):
        ways = len(possible_states(candidate, arms, max_rounds))
        if n_outcomes * ways <= 1500:
            made.append(candidate)
            n_outcomes *= ways
    made = numbered(made)
    found = chosen.table([chosen.summary(m) for m in made])
    seen: dict[str, list[float]] = {}
    for states in itertools.product(*(possible_states(m, arms, max_rounds) for m in made)):
        for name, value in plain_metrics(list(states), arms, max_rounds).items():
            seen.setdefault(name, []).append(value)
    for name, estimate in found.items():
        if name == "n_failed":
            continue
        outcomes = (min(seen[name]), max(seen[name]))
        if estimate.bounds is None:
            assert outcomes == pytest.approx((estimate.value, estimate.value)), name
        else:
            assert estimate.bounds.low <= estimate.value <= estimate.bounds.high, name
            half_known = name.startswith("difference") or ".round" in name or ".within" in name
            expected = (min(*outcomes, estimate.value), max(*outcomes, estimate.value)) if half_known else outcomes
            assert estimate.bounds == pytest.approx(expected), name
