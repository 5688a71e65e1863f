"""`interbench estimate`: ranges that hold what a run takes, learned from what was played, narrowed by a probe."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from interbench_tasks.cli_estimate import _task_from
from interbench_tasks.errors import BackendError, BudgetError, DataError
from interbench_tasks.estimating.estimate import estimate
from interbench_tasks.estimating.given import TARGET_WIDTH, Given, lengths_given, rate_given
from interbench_tasks.estimating.learning import played_in
from interbench_tasks.estimating.loops import width_of_calls
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.probe import _play, probed_estimate
from interbench_tasks.estimating.prompts import MOST_ROWS, PicturedModel, prompt_sizes, sampled, text_tokens
from interbench_tasks.estimating.ranges import LEVEL, Assumed, Range, RoleModel, range_of, run_estimate
from interbench_tasks.estimating.text import estimate_text
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.prices import Price, price_list
from interbench_tasks.protocols.feedback_calls import Known, LoopShape, Rate, Rates, drawn_calls
from tests.harness_fakes import question_rows, write_task

MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)
PLANTED = Given(accuracy=Rate(low=0.5, high=0.5), provider_accuracy=Rate(low=0.85, high=0.85))


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def demo(receiver: str | None = "simulated:default", limit=None, name="interfeedback_demo", data=None):
    return _task_from(name, receiver, data, limit, OFFERS)


def estimated(task, *, given=None, n=None, played=None, prices=None):
    prices = prices or price_list()
    given = given or Given()
    return probed_estimate(task, played or Played(), n=n, given=given, prices=prices, manager=MANAGER)


def calls_of(records) -> Counter:
    """Role -> calls that the records hold."""
    found: Counter = Counter()
    for record in records:
        for role, used in record.usage().items():
            found[role] += used.calls
    return found


# --- ranges -----------------------------------------------------------------------------------------------------


def test_a_range_holds_its_share_of_the_draws():
    draws = np.random.default_rng(0).normal(100, 10, 10_000)
    found = range_of(draws)
    assert np.mean([found.holds(value) for value in draws]) == pytest.approx(LEVEL, abs=0.001)
    assert found.width == pytest.approx(2 * 2.326 * 10 / 100, rel=0.05)


def test_what_is_certain_is_no_range():
    assert range_of(np.array([7, 7, 7])) == Range(low=7, high=7, mean=7)
    assert range_of(np.array([7, 7])).width == 0
    assert range_of(np.array([0, 0])).width == 0


# --- the prompts ------------------------------------------------------------------------------------------------


def test_prompts_of_the_demo_are_measured_with_their_pictures():
    task = demo()
    models = [PicturedModel(name="openai:gpt-4o"), PicturedModel(name="simulated:x")]
    sizes = prompt_sizes(task.data, task.options.common, models, rows=task.rows)
    assert (sizes.n_rows, sizes.n_total, sizes.n_broken) == (60, 60, 0)
    assert 20 < sizes.quoted < sizes.question < 100
    assert sizes.pictures["openai:gpt-4o"] == (255, 255)
    assert sizes.pictures["simulated:x"] == (0, 0)


def test_a_large_data_set_is_judged_by_a_sample(tmp_path):
    task = demo(name=str(write_task(tmp_path, question_rows(1000))))
    sizes = prompt_sizes(task.data, task.options.common, [], rows=task.rows)
    assert (sizes.n_rows, sizes.n_total) == (MOST_ROWS, 1000)


def test_a_larger_sample_holds_a_smaller_one_and_is_no_beginning():
    assert sampled(range(100), 30)[:10] == sampled(range(100), 10)
    assert sorted(sampled(range(100), 100)) == list(range(100))
    assert sampled(range(100), 10) != list(range(10))


def test_broken_rows_are_counted_and_only_broken_ones_are_an_error(tmp_path):
    rows = question_rows(6)
    for row in rows[:2]:
        row["answer"] = "Q"
    task = demo(name=str(write_task(tmp_path, rows)))
    assert prompt_sizes(task.data, task.options.common, [], rows=task.rows).n_broken == 2
    with pytest.raises(DataError, match="answer 'Q' is none of the options"):
        prompt_sizes(task.data, task.options.common, [], rows=[0, 1])


def test_wide_characters_take_more_tokens():
    assert text_tokens("a" * 400) == 100
    assert text_tokens("图" * 140) == pytest.approx(100)


# --- tokens and money -------------------------------------------------------------------------------------------

PRICE = Price(pattern="m", source="f", input=10.0, output=100.0)
ONE = LoopShape(n_episodes=100, arms={"simple": "shared"})
EXACT = Rates(right=Rate(low=1, high=1))


def roles(**more) -> list[RoleModel]:
    receiver = {"role": "receiver", "model": "m", "priced_as": "m", "price": PRICE} | more
    return [RoleModel(**receiver), RoleModel(role="provider", model="p", priced_as="p", price=PRICE)]


def sizes(question=100.0, pictures=(0.0, 0.0)):
    task = demo()
    found = prompt_sizes(task.data, task.options.common, [], rows=[0])
    return replace(found, question=question, pictures={"m": pictures})


def test_tokens_are_calls_times_prompts_and_replies():
    drawn = drawn_calls(ONE, EXACT)
    run = run_estimate(drawn, roles(), sizes(), assumed=Assumed(reply=(50, 50)), seen={})
    receiver, provider = run.roles
    assert receiver.calls == Range(low=100, high=100, mean=100)
    assert 100 * 100 * 0.8 <= receiver.input_tokens.low < receiver.input_tokens.high <= 100 * 100 * 1.35
    assert receiver.output_tokens == Range(low=5000, high=5000, mean=5000)
    assert receiver.cost.low == pytest.approx((receiver.input_tokens.low * 10 + 5000 * 100) / 1e6)
    assert (provider.calls.high, provider.cost.high) == (0, 0)
    assert run.cost == receiver.cost


def test_pictures_are_counted_in():
    drawn = drawn_calls(ONE, EXACT)
    without, with_pictures = (
        run_estimate(drawn, roles(), sizes(pictures=pair), assumed=Assumed(), seen={}).roles[0].input_tokens
        for pair in ((0.0, 0.0), (765.0, 765.0))
    )
    assert with_pictures.low == pytest.approx(without.low + 76_500)


def test_a_reply_is_never_longer_than_its_limit():
    run = run_estimate(drawn_calls(ONE, EXACT), roles(max_new_tokens=20), sizes(), assumed=Assumed(), seen={})
    assert run.roles[0].output_tokens.high == 2000


def test_calls_that_were_made_tell_better_than_assumptions():
    seen = {("first", 0, 0): [(200, 30), (210, 40), (190, 35), (200, 35)]}
    run = run_estimate(drawn_calls(ONE, EXACT), roles(), sizes(), assumed=Assumed(), seen=seen)
    taken, given = run.roles[0].input_tokens, run.roles[0].output_tokens
    assert taken.mean == pytest.approx(20_000, rel=0.01)
    assert given.mean == pytest.approx(3_500, rel=0.01)
    assert taken.width < 0.15


def test_too_few_calls_tell_nothing():
    seen = {("first", 0, 0): [(9000, 9000)] * 2}
    run = run_estimate(drawn_calls(ONE, EXACT), roles(), sizes(), assumed=Assumed(), seen=seen)
    assert run.roles[0].input_tokens.high < 20_000


def test_later_rounds_carry_the_conversation():
    shape = LoopShape(n_episodes=100, arms={"simple": "shared"}, max_rounds=3)
    never = Rates(
        right=Rate(low=0, high=0),
        unreadable=Rate(low=0, high=0),
        solved=(Rate(low=1, high=1),),
        corrected_elsewhere=Rate(low=0, high=0),
    )
    run = run_estimate(drawn_calls(shape, never), roles(), sizes(), assumed=Assumed(reply=(50, 50)), seen={})
    text = (100 * 0.8, 100 * 1.35)  # four prompts, and 1 + 2 + 3 times a reply and a sentence
    low, high = (100 * (4 * end + 6 * (50 + 25)) for end in text)
    assert low <= run.roles[0].input_tokens.low < run.roles[0].input_tokens.high <= high


def test_without_a_price_there_is_no_money_but_everything_else():
    run = run_estimate(drawn_calls(ONE, EXACT), roles(price=None), sizes(), assumed=Assumed(), seen={})
    assert run.roles[0].cost is None
    assert run.cost is None
    assert run.roles[0].input_tokens.high > 0


# --- the task and its models ------------------------------------------------------------------------------------


def test_an_estimate_needs_no_key_and_knows_the_usual_server(monkeypatch):
    monkeypatch.setenv("INTERBENCH_PROVIDER", "anthropic:claude-sonnet-4-20250514")
    (receiver, _), (provider, _) = demo("openai:gpt-4o").models(price_list())
    assert (receiver.model, receiver.price.output) == ("openai:gpt-4o", 10.0)
    assert (provider.model, provider.price.output) == ("anthropic:claude-sonnet-4-20250514", 15.0)


def test_another_server_has_no_known_price():
    (receiver, _), _ = demo("openai:gpt-4o@http://localhost:8000/v1").models(price_list())
    assert receiver.price is None
    assert receiver.priced_as == "openai:gpt-4o@localhost:8000"


def test_a_model_of_the_harness_is_named_as_in_its_runs():
    task = demo("harness:qwen2_5_vl,pretrained=Qwen/Qwen2.5-VL-7B-Instruct")
    (receiver, shown), _ = task.models(price_list())
    assert receiver.model == shown.name == "qwen2_5_vl:Qwen/Qwen2.5-VL-7B-Instruct"


def test_a_receiver_that_is_not_named_is_estimated_without_money():
    found = estimated(demo(None))
    assert found.run.roles[0].cost is None
    assert found.run.calls.high > 60


@pytest.mark.parametrize(
    ("receiver", "message"),
    [("opnai:gpt-4o", r"--receiver: 'opnai' \(did you mean 'openai'\?\)"), ("openai", "needs a model")],
)
def test_a_wrong_receiver_is_named(receiver, message):
    with pytest.raises(BackendError, match=message):
        demo(receiver).models(price_list())


@pytest.mark.parametrize(
    ("name", "message"),
    [("interfeedback_dmo", r"no such task \(did you mean 'interfeedback_demo'\?\)"), ("interfeedback", "no such task")],
)
def test_a_wrong_task_is_named(name, message):
    with pytest.raises(BudgetError, match=message):
        demo(name=name)


def test_a_users_own_data_is_estimated(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in question_rows(37)), encoding="utf-8")
    task = demo("openai:gpt-4o", name="interfeedback_local", data=path)
    assert len(task.rows) == 37
    assert estimate(task, Played(), given=Given(), prices=price_list()).run.calls.low >= 37


def test_a_limit_is_the_first_rows():
    assert list(demo(limit=7).rows) == list(range(7))
    assert len(demo(limit=700).rows) == 60


# --- what the user says -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("0.4", 0.4, 0.4), ("40%", 0.4, 0.4), ("0.3-0.5", 0.3, 0.5), ("30%-50%", 0.3, 0.5), ("1", 1, 1)],
)
def test_a_rate_may_be_written_in_several_ways(text, low, high):
    found = rate_given(text, "--accuracy")
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("text", ["40", "-0.1", "0.5-0.3", "half", "0.1-0.2-0.3", "", "nan"])
def test_what_is_no_rate_is_named(text):
    with pytest.raises(BudgetError, match=r"--accuracy .*: must be a share from 0 to 1, e.g. 0.4 or 0.3-0.5"):
        rate_given(text, "--accuracy")


def test_lengths_are_tokens():
    assert lengths_given("300", "--reply-tokens") == (300, 300)
    assert lengths_given("200-600", "--reply-tokens") == (200, 600)
    for wrong in ("0", "600-200", "long"):
        with pytest.raises(BudgetError, match="must be tokens, e.g. 300 or 200-600"):
            lengths_given(wrong, "--reply-tokens")


def test_what_is_said_counts_more_than_what_was_seen_and_narrows_the_range():
    task = demo("openai:gpt-4o")
    wide = estimated(task)
    narrow = estimated(task, given=PLANTED)
    assert narrow.run.calls.width < wide.run.calls.width / 2
    assert narrow.rates.right == PLANTED.accuracy
    seen = Played(records=tuple(_play(demo(), range(30), MANAGER)))
    assert estimated(demo(), given=PLANTED, n=0, played=seen).rates.right == PLANTED.accuracy


# --- what was played --------------------------------------------------------------------------------------------


def test_everything_played_leaves_nothing_to_guess():
    task = demo()
    records = tuple(_play(task, task.rows, MANAGER))
    found = estimated(task, played=Played(records=records))
    calls = calls_of(records)
    assert found.run.calls == Range(low=calls.total(), high=calls.total(), mean=calls.total())
    assert [role.calls.low for role in found.run.roles] == [calls["receiver"], calls["provider"]]
    tokens = [sum(r.usage()[name].input_tokens for r in records if name in r.usage()) for name in calls]
    for role, expected in zip(found.run.roles, tokens, strict=True):
        assert role.input_tokens.holds(expected)
    assert found.to_probe is None


def run_folder(task, rows):
    """A run of some rows, in a folder as `lmms-eval` leaves one."""
    from interbench_tasks import settings

    before = set((settings.runs_folder()).rglob("manifest.json"))
    _play(task, rows, MANAGER)
    (manifest,) = set(settings.runs_folder().rglob("manifest.json")) - before
    return manifest.parent


def test_a_run_tells_its_rates_and_its_episodes_are_counted_in():
    task = demo()
    played = played_in([run_folder(task, range(20))], task)
    assert played.same
    assert "learned from the first 20 rows" in played.notes[0]
    found = estimate(task, played, given=Given(), prices=price_list())
    assert found.known.n == 20
    assert found.rates.right.trials == 20


def test_a_run_of_another_model_is_a_guess_and_says_so():
    other = demo("simulated:other,accuracy=0.9")
    played = played_in([run_folder(other, range(20))], demo())
    assert not played.same
    assert "receiver simulated:other" in played.notes[0]
    found = estimate(demo(), played, given=Given(), prices=price_list())
    assert found.known == Known()
    assert found.rates.right.middle > 0.7


def test_a_run_with_other_arms_is_a_guess_too(tmp_path):
    one = demo(name=str(write_task(tmp_path, question_rows(20))))
    text = (tmp_path / "bridge_task.yaml").read_text().replace("[detail, simple]", "[detail]")
    (tmp_path / "bridge_task.yaml").write_text(text)
    two = demo(name=str(tmp_path / "bridge_task.yaml"))
    played = played_in([run_folder(one, range(20))], two)
    assert not played.same
    assert "arms ['detail', 'simple']" in played.notes[0]
    estimate(two, played, given=Given(), prices=price_list())


def test_a_run_of_another_task_is_refused(tmp_path):
    other = demo(name=str(write_task(tmp_path, question_rows(5))))
    folder = run_folder(other, range(5))
    with pytest.raises(
        BudgetError, match=r"--from: no run of interfeedback_demo there; there are runs of: bridge_task"
    ):
        played_in([folder], demo())


# --- a few questions first --------------------------------------------------------------------------------------


def test_a_probe_plays_a_random_part_once_and_what_was_played_counts():
    task = demo()
    found = estimated(task, n=10)
    assert found.known.n == 10
    records = tuple(_play(task, sampled(task.rows, 10), MANAGER))
    more = estimated(task, n=15, played=Played(records=records))
    assert more.known.n == 15


def test_a_paid_model_is_not_asked_unless_it_is_said():
    found = estimated(demo("openai:gpt-4o@http://127.0.0.1:9/v1"))
    assert found.known.n == 0
    assert found.to_probe is not None


def test_simulations_are_played_until_the_range_is_narrow_enough():
    assert estimated(demo()).run.calls.width <= TARGET_WIDTH
    assert estimated(demo(), n=0).run.calls.width > TARGET_WIDTH


@pytest.mark.parametrize(
    ("receiver", "message"),
    [
        ("harness:qwen2_5_vl", r"--receiver: --probe cannot load a model of the harness"),
        (None, "name it with --receiver"),
    ],
)
def test_a_probe_of_what_cannot_be_asked_says_what_to_do(receiver, message):
    with pytest.raises(BudgetError, match=message):
        estimated(demo(receiver), n=5)


def test_a_probe_plays_nothing_that_depends_on_other_episodes(tmp_path):
    extra = "    flip_sample: 3\n"
    path = write_task(tmp_path, question_rows(30), extra=extra)
    path.write_text(path.read_text().replace("[detail, simple]", "[detail, simple, mismatched]"))
    task = demo(name=str(path))
    records = _play(task, range(30), MANAGER)
    assert {record.passes for record in records} == {1}
    assert not [turn for record in records for turn in record.turns if turn.branch == "mismatched"]
    found = estimated(task, played=Played(records=tuple(records)))
    assert found.known.n == 30
    assert found.run.roles[0].calls.low > calls_of(records)["receiver"]  # the second pass is still to come


@pytest.mark.parametrize("n", [60, 1000, 4000])
def test_the_number_of_questions_to_try_is_enough_if_they_turn_out_as_expected(n):
    from interbench_tasks.estimating.given import PROBES
    from interbench_tasks.estimating.loops import _as_if, _to_probe

    shape = LoopShape(n_episodes=n, arms={"detail": "written", "simple": "shared"})
    wanted = _to_probe(shape, Rates(), 0, Given())
    then = _as_if(shape, Rates(), wanted)
    assert width_of_calls(shape, then.rates, then.known) <= TARGET_WIDTH
    fewer = max(size for size in PROBES if size < wanted)
    before = _as_if(shape, Rates(), fewer)
    assert width_of_calls(shape, before.rates, before.known) > TARGET_WIDTH


def covered(given: Given, seeds: int) -> tuple[int, float]:
    """In how many of the demo's runs the range holds the true number of calls, and the widest range."""
    n_held, widest = 0, 0.0
    for seed in range(seeds):
        task = demo(f"simulated:default,seed={seed}")
        true = calls_of(_play(task, task.rows, MANAGER)).total()
        found = estimated(task, given=given)
        assert found.known.n < 60  # some of it is left to guess
        n_held += found.run.calls.holds(true)
        widest = max(widest, found.run.calls.width)
    return n_held, widest


def test_ranges_of_the_demo_are_narrow_and_hold_the_truth():
    """A short version of the next one."""
    n_held, widest = covered(Given(), seeds=8)
    assert n_held >= 7
    assert widest <= TARGET_WIDTH


@pytest.mark.slow
@pytest.mark.parametrize("given", [Given(), PLANTED], ids=["learned", "planted rates passed in"])
def test_over_100_seeds_of_the_demo_the_range_holds_the_true_calls_95_times_and_is_25_percent_wide_at_most(given):
    n_held, widest = covered(given, seeds=100)
    assert n_held >= 95
    assert widest <= 0.25


def test_at_given_rates_the_range_holds_what_the_model_draws_as_often_as_it_says():
    """The range is of runs, not of means: fresh runs of the same rates fall into it in `LEVEL` of cases."""
    shape = LoopShape(n_episodes=60, arms={"detail": "written", "simple": "shared"})
    rates = PLANTED.over(Rates(unreadable=Rate(low=0.1, high=0.1)))
    found = range_of(drawn_calls(shape, rates, seed=1).total)
    fresh = drawn_calls(shape, rates, n_draws=20_000, seed=2).total
    assert np.mean([found.holds(value) for value in fresh]) == pytest.approx(LEVEL, abs=0.01)


# --- in words ---------------------------------------------------------------------------------------------------


def test_the_text_tells_what_the_ranges_rest_on_and_how_to_narrow_them():
    task = demo("openai:gpt-4o")
    text = estimate_text(estimated(task), task, Given())
    assert "interfeedback_demo: 60 episodes; arms detail (written), simple (shared); 1 feedback round" in text
    assert "98% of runs are inside" in text
    assert "right first answers: 20% to 80%, assumed (--accuracy)" in text
    assert "wrong ones that a provider solves: 30% to 90%, assumed (--provider-accuracy)" in text
    assert "openai:gpt-4o 255 of pictures" in text
    assert "--probe 50 brings it to about 25%" in text
    assert "no price known" not in text


def test_the_text_says_what_was_seen_or_said():
    task = demo()
    told = estimate_text(estimated(task, given=PLANTED), task, PLANTED)
    assert "right first answers: 50%, as you say" in told
    assert "wrong ones that a provider solves: 85%, as you say" in told
    seen = estimate_text(estimated(task), task, Given())
    assert " of 50 seen" in seen
    assert "counted in, and played already: 50 episodes" in seen
    assert "--probe" not in seen


def test_the_text_says_which_price_to_write():
    task = demo("openai:q@http://localhost:8000/v1")
    text = estimate_text(estimated(task), task, Given())
    assert "no price known for openai:q@localhost:8000: write it into a file" in text
    assert "256 to 2,880 of pictures, assumed: no rule is known for this model" in text


def test_several_rounds_are_told_with_the_shares_that_are_corrected(tmp_path):
    path = write_task(tmp_path, question_rows(40), extra="    max_rounds: 3\n")
    task = demo("openai:gpt-4o", name=str(path))
    text = estimate_text(estimated(task), task, Given())
    assert "3 feedback rounds" in text
    assert "corrected in a round: detail 5% to 50%, assumed (--from)" in text


# --- with a memory ------------------------------------------------------------------------------------------------


def with_memory(tmp_path, receiver="simulated:default"):
    path = write_task(tmp_path, question_rows(40), extra="    memory: note_taking\n    max_rounds: 2\n")
    path.write_text(path.read_text().replace("    roles: {", '    roles: {notetaker: "simulated:n", ', 1))
    return demo(receiver, name=str(path))


def test_a_loop_with_notes_counts_its_notetaker(tmp_path):
    task = with_memory(tmp_path)
    records = tuple(_play(task, task.rows, MANAGER))
    truth = calls_of(records)
    assert truth["notetaker"] > 0
    guessed = estimated(task, n=0)
    assert [role.role.role for role in guessed.run.roles] == ["receiver", "provider", "notetaker"]
    assert guessed.run.roles[2].calls.holds(truth["notetaker"])
    found = estimated(task, played=Played(records=records))
    assert found.run.calls == Range(low=truth.total(), high=truth.total(), mean=truth.total())
    tokens = sum(record.usage()["notetaker"].input_tokens for record in records if "notetaker" in record.usage())
    assert found.run.roles[2].input_tokens.holds(tokens)


def test_notes_make_later_prompts_longer(tmp_path):
    shape = LoopShape(n_episodes=100, arms={"simple": "shared"}, takers=1)
    without = replace(shape, takers=0)
    never = Rates(right=Rate(low=0, high=0), unreadable=Rate(low=0, high=0), solved=(Rate(low=1, high=1),))
    notetaker = RoleModel(role="notetaker", model="n", priced_as="n", price=PRICE)
    assumed = Assumed(reply=(50, 50), notes=(200, 200))
    models = [*roles(), notetaker]
    plain, noted = (
        run_estimate(drawn_calls(own, never), models, sizes(), assumed=assumed, seen={}, takers=own.takers)
        for own in (without, shape)
    )
    added = noted.roles[0].input_tokens.mean - plain.roles[0].input_tokens.mean
    assert added == pytest.approx(100 * 200)
    assert (plain.roles[2].calls.mean, noted.roles[2].calls.mean) == (0, 100)
    assert noted.roles[2].output_tokens == Range(low=20_000, high=20_000, mean=20_000)
