"""A sweep over effort or token budget: what a YAML may say, what reaches a server, and what the numbers are of."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest

from interbench_tasks.backends.anthropic import AnthropicBackend
from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import BackendError, ConfigError
from interbench_tasks.generation import generation_settings_from
from interbench_tasks.metrics.mmpcbench_names import rate_names
from interbench_tasks.protocols.critique import CritiqueOptions
from interbench_tasks.runs.folder import read_json
from interbench_tasks.runs.variants import refuse_options_without_effect
from interbench_tasks.sweeps import pairs_of, settings_of, sweep_from, variants_of
from tests.conversation_runs import server_backend
from tests.critique_runs import options_of, played
from tests.critiques import JUDGES, REASONING_VOTES, any_vote, fields_of, made, metrics, record, turn, verdict
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.openai_server import OpenAIServer
from tests.test_critique_wire import answer

ROWS = [
    {"id": f"i{n}", "subtype": "BC", "Q": f"How many in {n}?", "gold": {"defect": "d", "fix": "f"}} for n in range(3)
]
SIMULATED = {"judges": ["simulated:a", "simulated:b", "simulated:c"], "subset": None}


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-test")


# --- what a YAML may say ----------------------------------------------------------------------------------------------


def test_a_mapping_of_lists_is_every_combination_and_a_list_is_as_it_is():
    grid = sweep_from({"effort": ["low", "high"], "max_new_tokens": [64, 512]})
    assert list(variants_of(grid)) == [
        "effort=low,max_new_tokens=64",
        "effort=low,max_new_tokens=512",
        "effort=high,max_new_tokens=64",
        "effort=high,max_new_tokens=512",
    ]
    listed = sweep_from([{"effort": "low"}, {"name": "plain", "extra_body": {"enable_thinking": False}}])
    assert variants_of(listed) == {"effort=low": {"effort": "low"}, "plain": {"extra_body": {"enable_thinking": False}}}
    assert variants_of(sweep_from(())) == {}


def test_a_sweep_is_the_same_after_a_manifest():
    options = CritiqueOptions(sweep={"effort": ["low", "high"]})
    again = CritiqueOptions.model_validate(json.loads(json.dumps(options.model_dump(mode="json"))))
    assert again.variants == options.variants == {"effort=low": {"effort": "low"}, "effort=high": {"effort": "high"}}


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"effort": "low"}, "'effort' must be a list of values"),
        ({"effort": []}, "'effort' must be a list of values"),
        ("low", "must be a mapping of lists"),
        ([{}], "changes nothing"),
        ([{"name": "x"}], "changes nothing"),
        ([{"effort": "low"}, {"effort": "low"}], "'effort=low' is there twice"),
        ([{"effort": "low"}, {"effort": "low", "name": "x"}], "changes the same as another"),
        ({"temperature": [0, 1]}, "'temperature' cannot be swept: a server that takes none"),
        ({"seed": [0, 1]}, "use the harness's --repeats"),
        ({"max_new_tokens": [0]}, "max_new_tokens = 0"),
        ({"max_new_tokens": [True]}, "must be a number"),
        ([{"extra_body": 3}], "extra_body must be a mapping"),
        ([{"extra_body": {"a": 1}}], "give the variant a `name`"),
        ([{"effort": "low", "name": "formal"}], "'formal' means something else already"),
        ([{"effort": "low", "name": "a@b"}], "'a@b' cannot be part of a metric's name"),
    ],
)
def test_a_sweep_that_cannot_be_is_a_clear_error(sweep, message):
    with pytest.raises(ConfigError, match="metadata.interbench.sweep") as error:
        options_of({**SIMULATED, "sweep": sweep})
    assert message in str(error.value)


def test_a_variants_settings_are_the_tasks_with_its_changes():
    own = generation_settings_from({"max_new_tokens": 9, "temperature": 0.5, "until": ["X"], "top_p": 0.9, "a": 1})
    changed = settings_of(own, {"max_new_tokens": 5, "effort": "low", "extra_body": {"b": 2}})
    assert (changed.max_new_tokens, changed.temperature, changed.top_p, changed.until) == (5, 0.5, 0.9, ("X",))
    assert changed.options == {"a": 1, "effort": "low", "b": 2}


def test_up_to_four_variants_are_compared_each_with_each_and_more_with_the_first():
    assert list(pairs_of(["a", "b", "c"])) == [("b", "a"), ("c", "a"), ("c", "b")]
    assert list(pairs_of(list("abcde"))) == [(one, "a") for one in "bcde"]
    assert list(pairs_of([])) == list(pairs_of(["a"])) == []


# --- what the model takes ---------------------------------------------------------------------------------------------


def refuse(receiver, sweep, **block):
    refuse_options_without_effect(receiver, options_of({**SIMULATED, **block, "sweep": sweep}))


class Stranger:
    name = fingerprint = "stranger"

    async def reply(self, call):
        raise AssertionError("nobody is asked")

    async def close(self):
        pass


class HarnessLike:
    name = fingerprint = "qwen2_5_vl:x"
    batch_size = 4

    def generate(self, calls):
        raise AssertionError("nobody is asked")


OPENAI = server_backend("http://localhost:1/v1", "m")


@pytest.mark.parametrize(
    ("receiver", "sweep", "message"),
    [
        (OPENAI, {"thinking_budget": [1024]}, "the openai backend has no option 'thinking_budget'"),
        (OPENAI, {"efort": ["low"]}, "did you mean 'effort'"),
        (OPENAI, [{"name": "x", "extra_body": {"messages": []}}], "'messages' is made from the call"),
        (OPENAI, [{"effort": "low", "reasoning_effort": "low"}], "both given"),
        (OPENAI, {"max_new_tokens": [64]}, "is what the task's own settings are"),
        (server_backend("http://localhost:1/v1", "m", effort="high"), {"effort": ["low"]}, "reasoning_effort = 'high'"),
        (server_backend("http://localhost:1/v1", "m", reasoning_effort="high"), {"effort": ["low"]}, "they win over"),
        (server_backend("http://localhost:1/v1", "m", max_new_tokens=9), {"max_new_tokens": [8]}, "max_new_tokens = 9"),
        (AnthropicBackend("c", base_url="http://localhost:1"), {"verbosity": ["low"]}, "has no option 'verbosity'"),
        (AnthropicBackend("c", base_url="http://localhost:1"), {"thinking_budget": [5]}, "at least 1024"),
        (
            AnthropicBackend("c", base_url="http://localhost:1", thinking="adaptive"),
            {"thinking_budget": [2048]},
            "thinking and thinking_budget are both given",
        ),
        (Stranger(), {"effort": ["low"]}, "does not say which options it takes"),
        (HarnessLike(), {"effort": ["low"]}, "nobody knows whether qwen2_5_vl:x takes 'effort'"),
    ],
)
def test_an_option_that_would_not_reach_the_model_is_refused_with_its_variant(receiver, sweep, message):
    with pytest.raises(BackendError, match=r"flaws\.yaml: metadata\.interbench\.sweep: '.*'") as error:
        refuse(receiver, sweep)
    assert message in str(error.value)


def test_what_a_model_takes_is_not_refused():
    refuse(OPENAI, {"effort": ["low", "high"], "max_new_tokens": [5, 6]})
    refuse(AnthropicBackend("c", base_url="http://localhost:1"), [{"effort": "low"}, {"thinking_budget": 2048}])
    refuse(HarnessLike(), {"max_new_tokens": [5, 6]})
    refuse(SimulatedBackend(), {"effort": ["low"]})


def test_a_refused_option_is_an_error_before_anything_is_asked(tmp_path):
    with OpenAIServer(answer) as server:
        with pytest.raises(BackendError, match="has no option 'thinking_budget'"):
            played(tmp_path, ROWS, server_backend(server.url, "m"), sweep={"thinking_budget": [1024]}, **SIMULATED)
        assert server.requests == 0
    assert not (tmp_path / "run").exists()


# --- what reaches a server --------------------------------------------------------------------------------------------


def judged_by(server, sweep, receiver, folder):
    judges = [{"backend": "openai", "model": name, "base_url": server.url} for name in ("a", "b", "c")]
    return played(folder, ROWS, receiver, judges=judges, sweep=sweep, subset=2)


def test_each_effort_reaches_an_openai_server_and_the_tasks_own_settings_go_out_without(tmp_path):
    with OpenAIServer(answer) as server:
        records, table = judged_by(server, {"effort": ["low", "high"]}, server_backend(server.url, "model"), tmp_path)
        asked = [one.parameters for one in server.log if one.model == "model"]
        judged = [one.parameters for one in server.log if one.model != "model"]
        assert not server.violations
    efforts = [parameters.get("reasoning_effort") for parameters in asked]
    assert sorted(efforts, key=str) == [None, None, None, "high", "high", "low", "low"]
    assert all("effort" not in parameters for parameters in asked)
    assert all("reasoning_effort" not in parameters for parameters in judged)
    assert (table["eda"].n, table["eda@effort=low"].n, table["shift_eda@effort=high-effort=low"].n) == (3, 2, 2)
    assert sorted(len(record.turns) for record in records) == [1, 3, 3]
    manifest = read_json(tmp_path / "run" / "manifest.json")
    assert manifest["variants"]["effort=high"]["options"] == {"effort": "high"}
    assert manifest["generation"]["receiver"]["options"] == {}


def test_token_budgets_and_a_body_of_ones_own_reach_an_openai_server(tmp_path):
    sweep = [{"max_new_tokens": 7}, {"name": "off", "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}]
    with OpenAIServer(answer) as server:
        judged_by(server, sweep, server_backend(server.url, "model"), tmp_path)
        asked = [one.parameters for one in server.log if one.model == "model"]
    assert sorted(parameters["max_tokens"] for parameters in asked) == [7, 7, 64, 64, 64, 64, 64]
    off = [p for p in asked if "chat_template_kwargs" in p]
    assert [p["chat_template_kwargs"] for p in off] == [{"enable_thinking": False}] * 2


def test_effort_and_thinking_budget_reach_anthropics_server(tmp_path):
    with AnthropicServer(lambda request: "Which one do you mean?") as theirs, OpenAIServer(answer) as server:
        receiver = AnthropicBackend("claude", base_url=theirs.url)
        judged_by(server, [{"effort": "low"}, {"thinking_budget": 2048}], receiver, tmp_path)
        asked = [one.parameters for one in theirs.log]
        assert not theirs.violations
    assert [p["output_config"] for p in asked if "output_config" in p] == [{"effort": "low"}] * 2
    thinking = [p for p in asked if "thinking" in p]
    assert [p["thinking"] for p in thinking] == [{"type": "enabled", "budget_tokens": 2048}] * 2
    assert {p["max_tokens"] for p in thinking} == {64 + 2048}
    assert len(asked) == 7


def test_variants_have_ledger_keys_of_their_own_and_are_paid_once(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    with OpenAIServer(answer) as server:
        for run in ("first", "second"):
            (tmp_path / run).mkdir()
            _, table = judged_by(
                server, {"effort": ["low", "high"]}, server_backend(server.url, "model"), tmp_path / run
            )
            requests = server.requests
            assert table["eda@effort=low"].n == 2
        # 3 replies and 2 of each variant; 3 judges of each; the second run asks nothing
        assert requests == 7 * 4


def test_a_model_that_does_better_with_more_effort_has_a_positive_shift(tmp_path):
    def says(request):
        if request.model != "model":
            return seen(request)
        return "It is flawed." if request.parameters.get("reasoning_effort") == "high" else "42"

    def seen(request):
        told = json.loads(answer(request))
        flaw = "It is flawed." in request.messages[-1].text
        return json.dumps(told | ({} if flaw else {"detected": False}))

    with OpenAIServer(says) as server:
        _, table = judged_by(server, {"effort": ["low", "high"]}, server_backend(server.url, "model"), tmp_path)
    assert (table["eda@effort=high"].value, table["eda@effort=low"].value) == (1, 0)
    assert table["shift_eda@effort=high-effort=low"].value == 1
    assert table["shift_pcq@effort=high"].value == pytest.approx((0.5 + 1) / 2)


# --- the numbers ------------------------------------------------------------------------------------------------------

SWEEP = {"sweep": {"effort": ["low", "high"]}}
LABELS = ("effort=low", "effort=high")


def swept(n=60, seed=3, missing=0.15):
    """Records with two variants, in which judges fail; the votes on each branch, and on its reasoning."""
    dice = random.Random(seed)

    def votes(detects):
        truth = any_vote(dice, detects)
        return [None if dice.random() < missing else (truth if dice.random() < 0.7 else any_vote(dice)) for _ in JUDGES]

    records, given = [], []
    for number in range(n):
        said = {branch: votes(rate) for branch, rate in (("", 0.5), ("effort=low", 0.3), ("effort=high", 0.8))}
        thought = {branch: [dice.choice(REASONING_VOTES) for _ in JUDGES] for branch in said}
        one = record(number, said[""], reasoning=thought[""], category=("BC", "EE.ambiguity")[number % 2])
        more = [
            turn(1 + place, label, one.turns[0].reply, said[label], reasoning=thought[label])
            for place, label in enumerate(LABELS)
        ]
        records.append(made(number, one.category, [*one.turns, *more]))
        given.append((said, thought))
    return records, given


def test_a_variants_metrics_are_those_of_a_run_that_played_it_alone():
    records, given = swept()
    own = metrics(**SWEEP)
    table = own.table([own.summary(one) for one in records])
    plain = metrics()
    for branch in LABELS:
        alone = [
            record(number, said[branch], reasoning=thought[branch], category=records[number].category)
            for number, (said, thought) in enumerate(given)
        ]
        other = plain.table([plain.summary(one) for one in alone])
        for name in ("eda", "dp", "se", "pcq", "eda_r", "eda_f", "ddr", "dqd"):
            mine, theirs = table[f"{name}@{branch}"], other[name]
            assert (mine.value, mine.n, mine.unscored) == (pytest.approx(theirs.value), theirs.n, theirs.unscored), name
            assert mine.bounds == pytest.approx(theirs.bounds) if theirs.bounds else mine.bounds is None
            assert mine.ci95 == pytest.approx(theirs.ci95, abs=0.02)


def test_shifts_are_paired_over_the_items_that_both_are_scored_in():
    records, _ = swept()
    own = metrics(**SWEEP)
    summaries = [own.summary(one) for one in records]
    table = own.table(summaries)
    values = [own.contributions(summary) for summary in summaries]
    for name, one, other in (
        ("shift_eda@effort=high", "eda@effort=high", "eda"),
        ("shift_eda@effort=high-effort=low", "eda@effort=high", "eda@effort=low"),
        ("shift_eda_r@effort=high-effort=low", "eda_r@effort=high", "eda_r@effort=low"),
    ):
        pairs = [row[one] - row[other] for row in values if one in row and other in row]
        assert table[name].value == pytest.approx(sum(pairs) / len(pairs))
        assert table[name].n == len(pairs)
        assert table[name].unscored == len(values) - len(pairs)
        assert table[name].ci95.low < table[name].value < table[name].ci95.high
    both = table["shift_pcq@effort=high-effort=low"]
    names = "pcq@effort=high", "pcq@effort=low"
    in_both = own.table(
        [one for one, row in zip(summaries, values, strict=True) if {"eda@effort=high", "eda@effort=low"} <= row.keys()]
    )
    assert both.value == pytest.approx(in_both[names[0]].value - in_both[names[1]].value)
    assert both.value != pytest.approx(table[names[0]].value - table[names[1]].value)
    assert both.n == table["shift_eda@effort=high-effort=low"].n
    assert both.bounds.low <= both.value <= both.bounds.high


def test_every_metric_of_a_sweep_is_named_and_in_the_order_to_show():
    records, _ = swept(n=20)
    own = metrics(**SWEEP)
    table = own.table([own.summary(one) for one in records])
    names = rate_names((), LABELS)
    assert [name for name in table if "@" in name] == [name for name in names if "@" in name and name in table]
    assert not [name for name in table if re.search(r"@.*\.(EE|PC|MP|BC)$", name)]
    assert own.headline(list(table)) == ["eda", "dp", "se", "pcq", "n", "n_failed"]


def test_a_variant_whose_call_failed_is_unscored_there_alone():
    records, _ = swept(n=10, missing=0)
    failed = records[0].turns[1].reply.__class__(text="", status="error", error="HTTP 500")
    turns = [records[0].turns[0], turn(1, "effort=low", failed, ()), records[0].turns[2]]
    own = metrics(**SWEEP)
    table = own.table([own.summary(made(0, records[0].category, turns)), *map(own.summary, records[1:])])
    assert (table["eda@effort=low"].n, table["eda@effort=low"].unscored) == (9, 1)
    assert table["shift_eda@effort=high-effort=low"].unscored == 1
    assert table["eda"].unscored == table["eda@effort=high"].unscored == 0


def test_a_summary_with_three_judges_and_eight_variants_stays_small():
    labels = [f"effort={n},max_new_tokens={1000 + n}" for n in range(8)]
    one, _ = swept(n=1, missing=0)
    first = one[0].turns[0]
    fields = {**fields_of(any_vote(random.Random(0), 1.0)), "strategy": "clarification"}
    named = tuple(verdict(f"claude-sonnet-4-2025051{n}", fields) for n in range(3))
    turns = [
        replace(first, index=n, branch=b, verdicts=named, reasoning_verdicts=named) for n, b in enumerate(["", *labels])
    ]
    own = metrics(sweep=[{"effort": str(n), "max_new_tokens": 1000 + n} for n in range(8)])
    summary = own.summary(made(0, "BC", turns))
    assert len(json.dumps(summary)) < 4096
    assert set(summary["thoughts"]) == set(labels)


def test_a_sweep_is_judged_again_branch_by_branch(tmp_path):
    from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
    from interbench_tasks.runs.judge import Wanted, judge_run
    from interbench_tasks.runs.score import run_from_folder
    from tests.judged_runs import Speaker, flawed, play, write_task

    class Swept(Speaker):
        def check_options(self, settings, changes):
            assert settings.options == changes

    block = {"protocol": "critique", "subset": None, "judges": ["simulated:a", "simulated:b"], **SWEEP}
    yaml = write_task(tmp_path, [flawed(n) for n in range(6)], block)
    receiver = Swept(lambda call: f"effort {call.settings.options.get('effort')}")
    run = play(yaml, receiver)
    assert receiver.asked == 18
    manager = build_plugin_manager()
    wanted = Wanted(out=tmp_path / "again", judges="simulated:x,simulated:y,simulated:z", task=str(yaml))
    again = judge_run(run.folder, wanted, manager=manager, offers=offers_from(manager))
    assert receiver.asked == 18
    found = run_from_folder(again.folder, offers_from(manager))
    table = found.metric_set.table(found.summaries)
    assert (table["eda@effort=low"].n, table["eda@effort=low"].unscored) == (6, 0)
