"""Several providers in one episode: round 0 and what no model writes are shared, the rest is each one's own."""

from __future__ import annotations

import asyncio

import pytest

from interbench_tasks.config import task_options_from
from interbench_tasks.errors import ConfigError
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from interbench_tasks.records import Feedback
from interbench_tasks.role_words import several_role_words
from tests.testing import AskedHint, FakeRoles, Hint, ScriptedRole, error, make_episode, parts

OFFERS = offers_from(build_plugin_manager())


class SharedHint(Hint):
    """Feedback that no model writes."""

    uses_provider = False


def played(receiver, answers: dict, *, shared=SharedHint):
    """The record of one episode; `answers` = label -> what that provider answers to the question."""
    options = FeedbackLoopOptions(arms=("detail", "simple"), providers=tuple(answers))
    protocol = FeedbackLoop(options, parts(detail=AskedHint("detail"), simple=shared("simple")))
    several = {
        label: ScriptedRole(lambda asked, said=said: said if asked.purpose == "solve" else "Look again.", name=label)
        for label, said in answers.items()
    }
    roles = FakeRoles(ScriptedRole(receiver, name="receiver"), None, several)
    return asyncio.run(protocol.play(make_episode(), roles)), roles


def branches(record) -> list[str]:
    return [turn.branch for turn in record.turns]


def test_each_provider_that_solves_it_gets_its_own_detail_and_all_share_simple():
    record, roles = played(lambda asked: "A", {"a": "B", "b": "C", "c": "B"})
    assert branches(record) == ["", "solve@a", "solve@b", "solve@c", "detail@a", "detail@c", "simple"]
    assert [asked.branch for asked in roles.receiver.asked] == ["", "detail@a", "detail@c", "simple"]
    assert record.stop_reason == "played"
    assert [turn.parent for turn in record.turns] == [None, None, None, None, 0, 0, 0]
    assert [turn.index for turn in record.turns] == list(range(7))
    assert record.models == {"receiver": "receiver", "provider@a": "a", "provider@b": "b", "provider@c": "c"}


def test_feedback_comes_from_the_provider_of_its_branch_and_from_no_other():
    record, roles = played(lambda asked: "A", {"a": "B", "b": "C", "c": "B"})
    assert [turn.feedback.author for turn in record.turns if turn.branch.startswith("detail")] == ["a", "c"]
    assert {label: [asked.purpose for asked in role.asked] for label, role in roles.providers.items()} == {
        "a": ["solve", "feedback"],
        "b": ["solve"],
        "c": ["solve", "feedback"],
    }


def test_nothing_is_played_where_no_provider_solves_it():
    record, roles = played(lambda asked: "A", {"a": "C", "b": "D"})
    assert (record.stop_reason, branches(record)) == ("provider_wrong", ["", "solve@a", "solve@b"])
    assert len(roles.receiver.asked) == 1


def test_a_provider_that_fails_does_not_hold_up_the_other():
    record, _ = played(lambda asked: "A", {"a": error(), "b": "B"})
    assert branches(record) == ["", "solve@a", "solve@b", "detail@b", "simple"]
    assert record.stop_reason == "played"


def test_of_several_failures_the_one_that_leaves_most_open_is_told():
    assert played(lambda asked: "A", {"a": error(), "b": "C"})[0].stop_reason == "provider_failed"
    assert played(lambda asked: "A", {"a": "well", "b": "C"})[0].stop_reason == "provider_wrong"
    assert played(lambda asked: "A", {"a": "well", "b": "hm"})[0].stop_reason == "provider_unparsed"


def test_a_plugin_that_says_it_asks_nobody_and_then_asks_fails_its_arm_only():
    class Liar(AskedHint):
        uses_provider = False

    record, _ = played(lambda asked: "A", {"a": "B"}, shared=Liar)
    [end] = [end for end in record.ends if end.branch == "simple"]
    assert (end.reason, "uses_provider" in end.feedback.reply.error) == ("feedback_failed", True)
    assert "detail@a" in branches(record)


# --- the YAML ---------------------------------------------------------------------------------------------------


def options_of(**block):
    config = {
        "task": "t",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 8, "temperature": 0},
        "metadata": {"interbench": {"protocol": "feedback_loop", **block}},
    }
    return task_options_from(config, where="t.yaml", offers=OFFERS)


def test_providers_get_the_last_part_of_their_model_as_label_or_their_own_name():
    options = options_of(
        providers=["openai:org/gpt-4o@http://localhost:1/v1", {"backend": "simulated", "model": "x", "name": "second"}]
    )
    assert options.protocol_options.providers == ("gpt-4o", "second")
    assert [role.label for role in options.roles["provider"]] == ["gpt-4o", "second"]
    assert options.roles["provider"][1].words.options == {}


def test_one_of_several_is_a_single_one():
    options = options_of(providers=["simulated:x,name=alone"])
    assert (options.protocol_options.providers, options.roles["provider"][0].label) == ((), "")


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"providers": ["simulated:x", "simulated:x,seed=2"]}, "two are called 'x'; give each a name"),
        ({"providers": ["simulated:x"], "roles": {"provider": "simulated:y"}}, "are both there; keep one"),
        ({"providers": ["simulated:x", "simulatd:y"]}, "metadata.interbench.providers.1"),
        ({"providers": ["simulated:x", {"backend": "simulated", "model": "y", "name": "a b"}]}, "letters, digits"),
        ({"providers": ["simulated:x"], "arms": ["mismatched", "simple"]}, "'mismatched' borrows the feedback of"),
        ({"providers": ["simulated:x,name=a", "simulated:y,name=a.n"]}, "reads like a part of a metric's name"),
        ({"providers": ["simulated:x,name=a", "simulated:y,name=b.round1"]}, "reads like a part of a metric's name"),
        ({"providers": ["simulated:x"], "flip_sample": -1}, "flip_sample"),
        ({"providers": ["simulated:x"], "leak_guard": "rewrit"}, "did you mean 'rewrite'"),
    ],
)
def test_a_wrong_block_is_told(block, told):
    with pytest.raises(ConfigError) as caught:
        options_of(**block)
    assert told in str(caught.value)


def test_the_environment_names_several(monkeypatch):
    monkeypatch.setenv("INTERBENCH_PROVIDER", "simulated:x,seed=3,simulated:y,name=z")
    options = options_of(roles={"provider": "simulated:other"})
    assert options.protocol_options.providers == ("x", "z")
    assert options.roles["provider"][0].words.options == {"seed": 3}


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("openai:a", ["openai:a"]),
        ("openai:a@http://h:1/v1,temperature=0,anthropic:b", ["openai:a@http://h:1/v1,temperature=0", "anthropic:b"]),
        ('openai:a,stop=["x","y"],human', ['openai:a,stop=["x","y"]', "human"]),
        ("simulated:seed=3, simulated:y", ["simulated:seed=3", "simulated:y"]),
    ],
)
def test_a_comma_ends_a_role_where_a_backend_follows(text, roles):
    assert several_role_words(text) == roles


def test_a_lent_feedback_is_paid_for_where_it_was_written():
    feedback = Feedback(text="x", kind="mismatched", author="a", source="item-2", reply=error())
    assert feedback.paid_for() == ()
    assert Feedback(text="x", kind="detail", author="a", reply=error()).paid_for() == (error(),)
