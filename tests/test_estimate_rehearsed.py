"""`interbench estimate` of conversations and critiques: calls as they are made, and tokens that hold the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.errors import BudgetError, DataError
from interbench_tasks.estimating.estimate import estimate
from interbench_tasks.estimating.forecasts import forecast_of
from interbench_tasks.estimating.given import Given, shares_given
from interbench_tasks.estimating.learning import played_in
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.rehearsal import MOST_EPISODES
from interbench_tasks.estimating.task import receiver_role
from interbench_tasks.estimating.text import estimate_text
from interbench_tasks.prices import price_list
from interbench_tasks.protocols.feedback_calls import Rate
from interbench_tasks.rows import Rows
from tests.estimates import OFFERS, demo, estimated, played, taken
from tests.servers.openai_server import OpenAIServer
from tests.servers.wordy_brain import WordyBrain

THREE = ["simulated:a", "simulated:b", "simulated:c"]


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def shares(**values: float) -> Given:
    return Given(shares={name.replace("_", " "): Rate(low=share, high=share) for name, share in values.items()})


def calls_by_role(found) -> dict[str, tuple[float, float]]:
    """Role without label -> fewest and most calls, of all that play it together."""
    by_role: dict[str, tuple[float, float]] = {}
    for own in found.run.roles:
        role = own.role.role.partition("@")[0]
        low, high = by_role.get(role, (0, 0))
        by_role[role] = (low + own.calls.low, high + own.calls.high)
    return by_role


# --- conversations ------------------------------------------------------------------------------------------------

TALKS = [
    {},
    {"history": "recorded", "memories": ["none"]},
    {"memories": ["none"], "rubric": None},
    {"memories": ["recent_turns", "summary"], "recent_turns": 2},
    {"memories": ["note_taking", "summary", ["recent_turns", "note_taking"]], "questions": "accumulate"},
    {"memories": ["none", "note_taking"], "max_images": 2, "max_history_tokens": 200},
    {"memories": ["note_taking"], "notes": {"max_chars": 100, "place": "system"}},
    {"judges": THREE, "roles": {"notetaker": "simulated:n"}},
]


@pytest.mark.parametrize("block", TALKS, ids=str)
def test_calls_of_conversations_are_exact_for_every_role(block):
    task = demo("mmrc_demo", rows=5, **block)
    truth = taken(played(task))
    found = estimated(task)
    assert calls_by_role(found) == {role: (calls, calls) for role, (calls, *_) in truth.items()}
    assert found.run.calls.low == found.run.calls.high == sum(calls for calls, *_ in truth.values())


def test_the_whole_demos_calls_and_tokens_are_as_they_are_played():
    task = demo("mmrc_demo")
    truth = taken(played(task))
    found = estimated(task, n=5)
    assert found.n_known == 5
    for own in found.run.roles:
        calls, asked, said = truth[own.role.role]
        assert own.calls.low == own.calls.high == calls
        assert own.input_tokens.holds(asked), (own.role.role, own.input_tokens, asked)
        assert own.output_tokens.holds(said), (own.role.role, own.output_tokens, said)
        assert own.input_tokens.mean == pytest.approx(asked, rel=0.1)


def test_everything_played_leaves_nothing_to_guess():
    task = demo("mmrc_demo", rows=4)
    records = played(task)
    found = estimated(task, known=Played(records=records))
    for own in found.run.roles:
        assert (own.calls.mean, own.input_tokens.mean, own.output_tokens.mean) == taken(records)[own.role.role]
        assert own.input_tokens.width == own.output_tokens.width == 0
    assert found.to_probe is None


def test_unknown_lengths_are_wide_and_given_ones_are_not():
    wide, narrow = (
        estimated(demo("mmrc_demo", "openai:gpt-4o", rows=4), given=given)
        for given in (Given(), Given(reply=(100, 100)))
    )
    assert wide.run.roles[0].output_tokens.width > 0.5
    assert wide.to_probe == 4
    assert narrow.run.roles[0].output_tokens.width == 0
    assert narrow.run.roles[0].output_tokens.mean == 100 * narrow.run.roles[0].calls.mean


def test_a_reply_is_never_longer_than_its_limit():
    task = demo("mmrc_demo", "openai:gpt-4o,max_new_tokens=30", rows=4)
    found = estimated(task, given=Given(reply=(100, 200)))
    assert found.run.roles[0].output_tokens.mean == 30 * found.run.roles[0].calls.mean


def test_longer_replies_make_longer_prompts_wherever_they_are_quoted():
    task = demo("mmrc_demo", "openai:gpt-4o", rows=4)
    short, long = (estimated(task, given=Given(reply=(n, n))) for n in (10, 1000))
    receiver, judge, _ = zip(short.run.roles, long.run.roles, strict=True)
    per_call = (judge[1].input_tokens.mean - judge[0].input_tokens.mean) / judge[0].calls.mean
    assert per_call == pytest.approx(990, rel=0.05)  # a judge is shown one answer
    assert receiver[1].input_tokens.mean > 5 * receiver[0].input_tokens.mean  # a receiver all of its own


def test_a_probe_narrows_tokens_and_what_it_played_is_counted_as_it_was():
    task = demo("mmrc_demo")
    before, after = estimated(task), estimated(task, n=6)
    assert before.n_known == 0
    assert after.n_known == 6
    for old, new in zip(before.run.roles, after.run.roles, strict=True):
        assert new.input_tokens.width < old.input_tokens.width
        assert new.output_tokens.width < old.output_tokens.width


def test_simulations_are_played_unasked_until_tokens_are_known():
    assert estimated(demo("mmrc_demo"), n=None).n_known == 5


def test_money_is_tokens_times_prices():
    found = estimated(demo("mmrc_demo", "openai:gpt-4o", rows=4))
    receiver = found.run.roles[0]
    price = receiver.role.price
    most = (receiver.input_tokens.high * price.input + receiver.output_tokens.high * price.output) / 1e6
    least = (receiver.input_tokens.low * price.input + receiver.output_tokens.low * price.output) / 1e6
    assert least <= receiver.cost.low < receiver.cost.high <= most
    assert found.run.cost.high == receiver.cost.high  # simulations cost nothing


def test_pictures_are_counted_by_the_models_own_rule_in_every_call_that_shows_them():
    tokens = []
    for model in ("openai:gpt-4o", "simulated:x"):
        found = estimated(demo("mmrc_demo", model, rows=4, memories=["none"]), given=Given(reply=(50, 50)))
        tokens.append(found.run.roles[0].input_tokens.mean)
    assert tokens[0] > 1.5 * tokens[1]


def test_a_failed_episode_tells_nothing_and_is_not_known():
    task = demo("mmrc_demo", "simulated:default,fail=0.2", rows=6)
    records = played(task)
    whole = [r for r in records if r.status == "finished" and all(t.reply.usable for t in r.turns) and not r.ends]
    assert len(whole) < len(records)
    assert estimated(task, known=Played(records=records)).n_known == len(whole)


def test_a_large_file_is_judged_by_a_sample_and_says_so(monkeypatch):
    from interbench_tasks.estimating import rehearsal

    task = demo("mmrc_demo", memories=["none"])
    truth = sum(own.calls.mean for own in estimated(task).run.roles)
    monkeypatch.setattr(rehearsal, "MOST_EPISODES", 8)
    found = estimated(task)
    assert MOST_EPISODES > 8
    assert found.run.calls.low < truth < found.run.calls.high
    assert "a sample of 8 of 16 rows" in estimate_text(found, task, Given())


def test_rows_that_cannot_be_read_are_counted_and_left_out():
    task = demo("mmrc_demo", rows=4)
    rows = [dict(row) for row in task.data.rows]
    rows[1]["turns"] = [{**rows[1]["turns"][0], "images": ["images/gone.png"]}, *rows[1]["turns"][1:]]
    broken = replace(task, data=replace(task.data, rows=Rows(rows)))
    found = estimated(broken)
    assert found.rehearsal.n_broken == 1
    assert found.run.calls.mean == sum(calls for calls, *_ in taken(played(task, [0, 2, 3])).values())
    with pytest.raises(DataError, match=r"gone\.png"):
        estimated(replace(broken, rows=[1]))


# --- critiques ----------------------------------------------------------------------------------------------------

FLAWS = [
    {},
    {"judge_reasoning": False},
    {"more_styles": ["formal", "concise"], "subset": 9},
    {"judges": THREE[:1]},
]


@pytest.mark.parametrize("block", FLAWS, ids=str)
@pytest.mark.parametrize("think", [True, False])
def test_calls_of_critiques_are_exact_where_it_is_known_whether_models_think(block, think):
    judges = [f"{name},garble=0" for name in block.get("judges", THREE)]
    receiver = "simulated:default,think=0.5" if think else "simulated:default"
    task = demo("mmpcbench_demo", receiver, rows=30, **{**block, "judges": judges, "clarify": False})
    truth = taken(played(task))
    given = {"reasoning judged": float(think), "judged again": 0.0}
    if not block.get("judge_reasoning", True):
        del given["reasoning judged"]
    known = Played(records=played(task, range(12)))
    found = estimated(task, given=shares(**{"reasoning_judged": float(think)}) if len(given) == 2 else None)
    low, high = calls_by_role(found)["receiver"]
    assert low == high == truth["receiver"][0]
    low, high = calls_by_role(found)["judge"]
    assert low == truth["judge"][0]
    assert high <= 1.15 * low  # a judge that cannot be read is asked once more
    learned = estimated(task, known=known)
    assert learned.run.calls.holds(sum(calls for calls, *_ in truth.values()))
    assert learned.n_known == 12


def test_a_model_that_asks_back_is_told_and_that_is_a_call_more():
    task = demo("mmpcbench_demo", "simulated:default,detect=0.9", rows=40, clarify=True)
    records = played(task)
    truth = taken(records)
    styled = sum(turn.branch == "formal" for record in records for turn in record.turns)
    low, high = calls_by_role(estimated(task, given=shares(reasoning_judged=0)))["receiver"]
    assert low < truth["receiver"][0] < high
    none, all_of_them = (
        calls_by_role(estimated(task, given=shares(reasoning_judged=0, clarification=share)))["receiver"]
        for share in (0, 1)
    )
    assert none[0] == none[1] == 40 + 2 * styled  # items, and some of them in two further styles
    assert all_of_them[0] == all_of_them[1] > truth["receiver"][0]
    probed = estimated(task, n=20)
    assert probed.run.roles[0].calls.holds(truth["receiver"][0])


def test_a_critiques_tokens_are_as_they_are_played():
    task = demo("mmpcbench_demo", "simulated:default,detect=0.6,think=0.5,alarm=0.1", rows=60)
    records = played(task)
    truth = taken(records)
    found = estimated(task, n=20)
    by_role: dict[str, float] = {}
    for own in found.run.roles:
        by_role.setdefault(own.role.role.partition("@")[0], 0)
        by_role[own.role.role.partition("@")[0]] += own.input_tokens.mean
    for role, mean in by_role.items():
        assert mean == pytest.approx(truth[role][1], rel=0.15)
    assert found.run.calls.holds(sum(calls for calls, *_ in truth.values()))


def test_a_share_that_a_task_does_not_have_is_refused_with_those_that_it_has():
    with pytest.raises(BudgetError, match=r"--share clarificaton: .*did you mean 'clarification'.*reasoning judged"):
        estimated(demo("mmpcbench_demo", rows=3), given=Given(shares={"clarificaton": Rate(low=0, high=0)}))
    with pytest.raises(BudgetError, match="it has: none"):
        estimated(demo("mmrc_demo", rows=3), given=shares(clarification=0))
    with pytest.raises(BudgetError, match="--share 0.3: must be a kind of call and its share"):
        shares_given(["0.3"], "--share")


# --- a real server, whose tokens are not those of the rule of thumb --------------------------------------------------


def counted(name: str, folder: Path, monkeypatch, *, n: int, rows: int, roles: tuple[str, ...] = (), judges: str = ""):
    """An estimate after `n` episodes, and the calls, input and output tokens of a run, as the server counted them."""
    brain = WordyBrain(asks_back=0.5)
    with OpenAIServer(brain, check_replies=False) as server:  # memories cut histories

        def model(name: str) -> str:
            return f"openai:{name}@{server.url}"

        task = demo(
            name,
            model("gpt-4o-receiver"),
            rows=rows,
            judges=[model(one) for one in judges] or None,
            clarify=False if judges else None,
            roles={one: model(one) for one in roles} or None,
        )
        monkeypatch.setenv("INTERBENCH_RUNS", str(folder / "runs"))
        monkeypatch.setenv("INTERBENCH_LEDGER", str(folder / "for the estimate"))
        found = estimated(task, n=n)
        for counter in (brain.calls, brain.asked, brain.said):
            counter.clear()
        monkeypatch.setenv("INTERBENCH_LEDGER", str(folder / "for the run"))
        played(task)
        assert not server.violations
    return found, brain


def test_a_conversations_calls_are_those_that_a_server_counts_identical_ones_once(tmp_path, monkeypatch):
    found, brain = counted("mmrc_demo", tmp_path, monkeypatch, n=4, rows=8, roles=("judge", "notetaker"))
    for own, name in zip(found.run.roles, ["gpt-4o-receiver", "judge", "notetaker"], strict=True):
        assert own.calls.low == own.calls.high == brain.calls[name]
        assert own.output_tokens.holds(brain.said[name])
        assert own.input_tokens.holds(brain.asked[name])
        assert own.input_tokens.mean == pytest.approx(brain.asked[name], rel=0.1)
    alone = estimated(demo("mmrc_demo", rows=8)).run.roles[2].calls.mean  # simulations share no replies
    assert brain.calls["notetaker"] < 0.6 * alone  # two arms take the same notes


def test_a_critiques_calls_are_those_that_a_server_counts(tmp_path, monkeypatch):
    found, brain = counted("mmpcbench_demo", tmp_path, monkeypatch, n=0, rows=40, judges="ab")
    assert found.run.roles[0].calls.low == found.run.roles[0].calls.high == brain.calls["gpt-4o-receiver"]
    for own, name in zip(found.run.roles[1:], "ab", strict=True):
        assert own.calls.low <= brain.calls[name] + 5
        size = found.rehearsal.over(list(found.rehearsal.episodes))[own.role.role, "judged"]
        assert size.calls == brain.calls[name]


# --- earlier runs, and words --------------------------------------------------------------------------------------


def folder_of(task, rows, tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("INTERBENCH_RUNS", str(tmp_path))
    played(task, rows)
    (manifest,) = tmp_path.rglob("manifest.json")
    return manifest.parent


def test_a_run_with_other_memories_tells_lengths_but_its_calls_are_not_counted(tmp_path, monkeypatch):
    other = demo("mmrc_demo", memories=["none"])
    earlier = played_in([folder_of(other, range(4), tmp_path, monkeypatch)], demo("mmrc_demo"))
    assert not earlier.same
    assert "memories ['none']" in earlier.notes[0]
    found = estimated(demo("mmrc_demo"), known=earlier)
    assert found.n_known == 0
    assert found.learned.mean("question") is not None
    assert found.run.calls.mean == 1179


def test_the_same_runs_episodes_are_counted_in(tmp_path, monkeypatch):
    task = demo("mmrc_demo")
    earlier = played_in([folder_of(task, range(4), tmp_path, monkeypatch)], task)
    assert earlier.same
    assert "learned from the first 4 rows" in earlier.notes[0]
    assert estimated(task, known=earlier).n_known == 4


def test_the_text_says_what_is_certain_and_what_is_assumed():
    task = demo("mmrc_demo", "openai:gpt-4o", rows=6)
    text = estimate_text(estimated(task), task, Given())
    assert text.startswith("mmrc_demo: 6 episodes of the protocol conversation\n")
    assert "calls: all are certain, as long as none fails" in text
    assert "question 60 to 500" in text
    assert "--probe 5 plays that many episodes now" in text
    seen = estimate_text(estimated(demo("mmrc_demo", rows=6), n=3), task, Given())
    assert "mean tokens of a reply, as seen in 3 episodes: turn 5" in seen


def test_the_text_of_a_critique_names_its_shares():
    task = demo("mmpcbench_demo", "openai:gpt-4o", rows=6)
    given = Given(shares=shares_given(["reasoning judged=0"], "--share"))
    text = estimate_text(estimated(task, given=given), task, given)
    assert "share of calls 'reasoning judged': 0%, as you say" in text
    assert "share of calls 'judged again': 0% to 5%, assumed" in text


def test_a_protocol_that_says_nothing_of_its_calls_is_refused_with_what_to_do():
    task = demo("mmrc_demo", rows=3)

    class Strange:
        pass

    offers = replace(OFFERS, protocols={**OFFERS.protocols, "conversation": Strange})
    with pytest.raises(BudgetError, match=r"conversation does not say what calls it makes(.|\n)*--limit 20"):
        forecast_of(replace(task, offers=offers))


def test_a_receiver_that_is_not_named_is_estimated_without_money():
    task = demo("mmrc_demo", rows=3)
    task = replace(task, receiver=receiver_role(None, task.options))
    found = estimate(task, Played(), given=Given(), prices=price_list())
    assert found.run.cost is None
    assert found.run.calls.mean > 0
