"""Feedback in levels, and the test on all wrong first answers: what is asked of whom, told to whom, and recorded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from interbench_tasks import Feedback, FeedbackRound, Parts, Reply, Usage
from interbench_tasks.engine.clients import Client
from interbench_tasks.metrics.feedback_names import LEVEL_ARMS
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.plugins import feedback
from interbench_tasks.plugins.feedback.detail import OF_A_PERSON as DETAIL_OF_A_PERSON
from interbench_tasks.plugins.feedback.hierarchical import OF_A_PERSON, Hierarchical
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from interbench_tasks.record_json import line_from_record, record_from_line
from interbench_tasks.records import MARKED_RIGHT, Extraction, without_run
from tests.test_feedback_plugins import SENTENCE, FakeProvider, solved, wrong_turn
from tests.testing import (
    Asked,
    FakeRoles,
    LetterVerifier,
    ScriptedRole,
    error,
    make_episode,
    ok,
)

TEXTS = (
    "Look at the ears.",
    "It has floppy ears and is on a leash; which of these animals is walked?",
    "It is B. Why?",
)


@dataclass
class Person(ScriptedRole):
    """People behind the role provider, as the engine's client shows them."""

    name: str = "human"
    is_person: bool = True


def said(text: str, annotator: str = "ann") -> Reply:
    return Reply(text=text, usage=Usage(), model=f"human:{annotator}")


def mark(annotator: str = "ann") -> Reply:
    return replace(said("", annotator), finish_reason=MARKED_RIGHT)


def play(receiver, provider=None, *, episode=None, providers=None, arms=("hierarchical",), **options):
    """Args: receiver, provider = answers by round, or a script."""
    given = {"test_on": "all_wrong", "max_rounds": 3, "level_texts": "provider", **options}
    chosen = FeedbackLoopOptions(arms=arms, providers=tuple(providers or ()), **given)
    plugins = feedback.interbench_feedback_providers()
    made = Parts(verifier=LetterVerifier(), feedback_providers={arm: plugins[arm]() for arm in arms})
    roles = FakeRoles(_role(receiver), provider, providers or {})
    record = asyncio.run(FeedbackLoop(chosen, made).play(episode or make_episode(levels=TEXTS), roles))
    summary = FeedbackLoopMetrics(chosen).summary(record)
    return record, roles, FeedbackLoopMetrics(chosen).table([summary])


def _role(answers) -> ScriptedRole:
    script = answers if callable(answers) else lambda asked: answers[asked.round]
    return ScriptedRole(script, name="receiver")


def told(record, branch="hierarchical") -> list[str]:
    return [turn.feedback.text for turn in record.turns if turn.role == "receiver" and turn.branch == branch]


# --- the arm ----------------------------------------------------------------------------------------------------


def test_the_data_sets_texts_are_told_one_a_round_and_nobody_is_asked():
    record, roles, _ = play("AACB", level_texts="data")
    assert told(record) == [f"{SENTENCE}\n\n{text}" for text in TEXTS]
    assert [turn.feedback.author for turn in record.turns[1:]] == ["data set"] * 3
    assert [turn.feedback.reply for turn in record.turns[1:]] == [None] * 3
    assert (record.ends[0].reason, record.stop_reason) == ("solved", "played")
    assert roles.provider is None


def test_rounds_end_with_the_level_that_helped():
    record, _, table = play("AB", level_texts="data")
    assert told(record) == [f"{SENTENCE}\n\n{TEXTS[0]}"]
    assert table["n_solved.hierarchical.round1"].value == 1


def test_a_model_is_asked_for_each_level_with_its_own_prompt():
    model = ScriptedRole(lambda asked: f"hint {asked.round}", name="teacher")
    record, _, _ = play("AACB", model)
    assert [asked.purpose for asked in model.asked] == ["feedback"] * 3  # nobody solves the question first
    prompts = [asked.messages[-1].text for asked in model.asked]
    assert ["basic, simple hint" in prompts[0], "expanded explanation" in prompts[1]] == [True, True]
    assert "comprehensive explanation" in prompts[2]
    assert ["The right answer is: B. dog" in prompt for prompt in prompts] == [False, False, True]
    assert all("What animal?" in prompt and "<student>" in prompt for prompt in prompts)
    assert told(record)[0] == f"{SENTENCE}\n\nhint 1"


def test_level_3_gives_the_answer_whatever_the_model_writes():
    record, _, _ = play("AACB", ScriptedRole(lambda asked: "Hm.", name="teacher"))
    assert told(record)[2] == f"{SENTENCE}\n\nThe right answer is: B. dog\n\nHm."
    assert "B. dog" not in "".join(told(record)[:2])


def test_the_variant_keeps_the_answer_to_itself_in_level_3_too():
    model = ScriptedRole(lambda asked: "Hm.", name="teacher")
    record, _, _ = play("AACB", model, level3_without_answer=True)
    assert "dog" not in "".join(told(record))
    prompt = model.asked[2].messages[-1].text
    assert ("Do not state the right answer" in prompt, "The right answer is:" in prompt) == (True, False)


def test_where_a_task_shows_the_right_answer_every_level_sees_it():
    model = ScriptedRole(lambda asked: "Hm.", name="teacher")
    play("AACB", model, provider_sees_gt=True)
    assert all("The right answer is: B. dog" in asked.messages[-1].text for asked in model.asked)


def give(level: int, provider: FakeProvider, **episode):
    provider.round = replace(provider.round, number=level)
    return asyncio.run(Hierarchical().give(make_episode(**episode), wrong_turn(), provider))


def test_prompts_of_the_yaml_replace_ours_by_level():
    prompts = {"level2": "Two: {{ answer }} {{ target }}", "simple": "No.", "level3_answer": "So: {{ target }}!"}
    provider = FakeProvider(prompts=prompts)
    assert give(2, provider).text == "No.\n\nCount again."
    assert provider.asked[0][0].text == "Two: I say cat.\nAnswer: A "
    assert give(3, provider).text == "No.\n\nSo: B. dog!\n\nCount again."


def test_a_free_form_answer_is_given_as_it_is_and_an_own_solution_is_shown():
    provider = FakeProvider(solution=solved())
    given = give(3, provider, options={}, target="42")
    assert "The right answer is: 42\n\n" in given.text
    assert "It barks." in provider.asked[0][0].text


@pytest.mark.parametrize("answer", [error(), ok(""), ok("<think>B</think> ")])
def test_without_a_usable_text_the_feedback_failed(answer):
    assert give(1, FakeProvider(answer=answer)).status == "failed"


@pytest.mark.parametrize("level", [0, 4])
def test_there_is_no_other_level(level):
    with pytest.raises(ValueError, match=f"there is no level {level}; there are 3"):
        give(level, FakeProvider())


def test_the_metrics_know_which_arms_have_levels():
    offered = feedback.interbench_feedback_providers()
    assert {name for name, plugin in offered.items() if getattr(plugin, "levels", 0)} == set(LEVEL_ARMS)


# --- the test set -----------------------------------------------------------------------------------------------


def test_every_wrong_first_answer_is_tested_also_one_that_nobody_can_read():
    for first in ("A", "no idea"):
        record, _, table = play(lambda asked, first=first: [first, "B"][asked.round], level_texts="data")
        assert record.stop_reason == "played"
        assert (table["n_test"].value, table["n_negative"].value) == (1, 1)
        assert table["n_invalid"].value == (first == "no idea")
        assert table["correction_rate.hierarchical"].value == 1


def test_a_right_first_answer_is_not_tested():
    record, _, table = play("B", level_texts="data")
    assert (record.stop_reason, len(record.turns)) == ("right", 1)
    assert table["n_test"].value == 0
    assert "correction_rate.hierarchical" not in table


def test_a_failed_first_answer_is_unscored():
    record, _, table = play(lambda asked: error(), level_texts="data")
    assert (record.status, table["n_failed"].value) == ("failed", 1)
    assert (table["n_test"].value, table["n_test"].bounds) == (0, (0, 1))


def test_a_provider_that_dies_leaves_the_episode_unscored_with_bounds():
    model = ScriptedRole(lambda asked: error() if asked.round == 2 else "Hm.", name="teacher")
    record, _, table = play("AACB", model)
    assert record.ends[0].reason == "feedback_failed"
    assert "correction_rate.hierarchical.round1" not in table  # nothing is scored
    assert (table["n_solved.hierarchical.round1"].value, table["n_solved.hierarchical.round1"].bounds) == (0, None)
    for end in ("round2", "round3", "never"):
        estimate = table[f"n_solved.hierarchical.{end}"]
        assert (estimate.value, estimate.unscored, estimate.bounds) == (0, 1, (0, 1)), end


def test_several_models_each_write_their_own_levels_and_the_data_sets_are_shared():
    writers = {label: ScriptedRole(lambda asked, label=label: f"{label} says", name=label) for label in ("p", "q")}
    record, _, _ = play("AACB", providers=writers)
    assert [end.branch for end in record.ends] == ["hierarchical@p", "hierarchical@q"]
    assert told(record, "hierarchical@q")[0].endswith("q says")
    record, _, _ = play("AACB", providers=writers, level_texts="data")
    assert [end.branch for end in record.ends] == ["hierarchical"]


def test_without_anybody_to_write_a_loop_that_needs_it_says_so():
    with pytest.raises(ValueError, match="needs the role provider"):
        play("AACB")


# --- people -----------------------------------------------------------------------------------------------------


def test_a_person_is_shown_what_was_said_and_then_what_is_asked_for():
    person = Person(lambda asked: said(f"Look {asked.round}"))
    record, _, _ = play("AACB", person, episode=make_episode(system="Be brief."))
    assert [asked.round for asked in person.asked] == [1, 2, 3]
    roles = [[message.role for message in asked.messages] for asked in person.asked]
    assert roles[1] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [message.text for message in person.asked[1].messages[1:]] == [
        "What animal?", "A", f"{SENTENCE}\n\nLook 1", "A", OF_A_PERSON["level2"],
    ]  # fmt: skip
    assert [asked.messages[-1].text for asked in person.asked] == [OF_A_PERSON[f"level{n}"] for n in (1, 2, 3)]
    assert told(record)[2] == f"{SENTENCE}\n\nLook 3"  # the person states the answer, we add nothing
    assert [turn.feedback.author for turn in record.turns[1:]] == ["human:ann"] * 3


def test_what_a_person_is_asked_for_says_so_where_level_3_keeps_the_answer():
    person = Person(lambda asked: said("Look"))
    play("AACB", person, level3_without_answer=True)
    assert person.asked[2].messages[-1].text == OF_A_PERSON["level3_without_answer"]


def test_a_person_may_write_detail_too():
    person = Person(lambda asked: said("Not that one."))
    record, _, _ = play("AB", person, arms=("detail",), max_rounds=1)
    assert person.asked[0].messages[-1].text == DETAIL_OF_A_PERSON
    assert told(record, "detail") == [f"{SENTENCE}\n\nNot that one."]


@pytest.mark.parametrize("arm", ["hierarchical", "detail"])
def test_all_that_a_person_writes_is_told(arm):
    words = "I <think> so:</think> count again."
    record, _, _ = play("AB", Person(lambda asked: said(words)), arms=(arm,), max_rounds=1, level_texts=None)
    assert told(record, arm) == [f"{SENTENCE}\n\n{words}"]


def test_a_reply_that_a_person_marks_as_right_is_right_in_its_round():
    person = Person(lambda asked: mark() if asked.round == 2 else said("Look"))
    record, _, table = play("AC", person)
    end, turn = record.ends[0], record.turns[1]
    assert (end.reason, end.feedback.author, end.feedback.reply.model) == (MARKED_RIGHT, "human:ann", "human:ann")
    assert turn.judgement.correct
    assert turn.judgement.extraction == Extraction(answer="C", method="person")
    assert turn.judgement.overruled == Extraction(answer="C", method="letter")
    assert (record.stop_reason, record.turns[0].judgement.correct) == ("played", False)
    found = {name: table[name].value for name in table}
    assert (found["correction_rate.hierarchical.round1"], found["n_marked_right"], found["accuracy"]) == (1, 1, 0)
    assert found["n_solved.hierarchical.round1"] == 1


@pytest.mark.parametrize(("first", "method"), [("A", "letter"), ("a dog, I think", "none")])
def test_a_first_answer_that_a_person_marks_as_right_is_no_error(first, method):
    person = Person(lambda asked: mark())
    record, roles, table = play(lambda asked: first, person)
    assert (record.stop_reason, record.ends[0].reason) == (MARKED_RIGHT, MARKED_RIGHT)
    assert len(record.turns) == len(roles.receiver.asked) == 1
    judgement = record.turns[0].judgement
    assert (judgement.correct, judgement.extraction.method, judgement.overruled.method) == (True, "person", method)
    assert (table["accuracy"].value, table["n_test"].value, table["n_invalid"].value) == (1, 0, 0)
    assert table["n_marked_right"].value == 1
    assert "correction_rate.hierarchical" not in table


def test_a_mark_survives_the_file_and_a_summary_of_the_least_size():
    person = Person(lambda asked: mark() if asked.round == 2 else said("Look"))
    record, _, _ = play("AC", person)
    assert without_run(record_from_line(line_from_record(record))) == without_run(record)
    chosen = FeedbackLoopOptions(arms=("hierarchical",), test_on="all_wrong", max_rounds=3, level_texts="provider")
    long = replace(record, models={"receiver": "m"}, cluster="c" * 3_900)
    summary = FeedbackLoopMetrics(chosen).summary(long)
    assert summary["arms"]["hierarchical"]["rounds"] == [{"correct": True, "marked": True}]
    assert FeedbackLoopMetrics(chosen).table([summary])["n_marked_right"].value == 1


def test_a_record_without_a_mark_is_written_as_before():
    record, _, _ = play("AB", level_texts="data")
    assert "overruled" not in line_from_record(record)


def test_a_mark_in_one_branch_of_two_people_is_enough_for_the_first_answer():
    people = {"p": Person(lambda asked: mark("p"), name="human"), "q": Person(lambda asked: said("No"), name="human")}
    record, _, table = play("AB", providers=people)
    assert record.stop_reason == MARKED_RIGHT
    assert record.turns[0].judgement.correct
    assert (table["accuracy"].value, table["n_test@q"].value, table["n_marked_right"].value) == (1, 0, 1)


class Silent:
    """Hides from its loop what the person said."""

    async def give(self, episode, turn, provider):
        await provider.reply([turn.user])
        return Feedback(text="Hm.", kind="silent", author="me")


def test_a_mark_is_seen_whatever_the_plugin_makes_of_it():
    chosen = FeedbackLoopOptions(arms=("silent",), test_on="all_wrong")
    made = Parts(verifier=LetterVerifier(), feedback_providers={"silent": Silent()})
    loop = FeedbackLoop(chosen, made)
    record = asyncio.run(loop.play(make_episode(), FakeRoles(_role("AB"), Person(lambda asked: mark()))))
    assert record.stop_reason == MARKED_RIGHT


def test_an_empty_reply_of_a_model_is_no_mark():
    record, _, _ = play("AACB", ScriptedRole(lambda asked: ok(""), name="teacher"))
    assert record.ends[0].reason == "feedback_failed"


def test_the_engines_client_says_whether_people_answer():
    class Desk:
        person = True

    common = {"desk": None, "role": "provider", "settings": None, "episode": None, "name": "x"}
    assert Client(backend=Desk(), **common).is_person
    assert not Client(backend=object(), **common).is_person


# --- the second pass --------------------------------------------------------------------------------------------


def test_borrowed_feedback_goes_to_every_wrong_answer():
    arms = ("detail", "mismatched")
    chosen = FeedbackLoopOptions(arms=arms, test_on="all_wrong")
    plugins = feedback.interbench_feedback_providers()
    loop = FeedbackLoop(
        chosen, Parts(verifier=LetterVerifier(), feedback_providers={arm: plugins[arm]() for arm in arms})
    )
    records, episodes = [], []
    for number, first in enumerate(["A", "no idea", "B"]):
        episode = make_episode(id=f"e{number}", doc_id=number, raw_question=f"What animal {number}?")
        episode = replace(episode, question=replace(episode.question, content=(f"What animal {number}?",)))
        roles = FakeRoles(_role([first, "C"]), ScriptedRole(lambda asked: "Look.", name="teacher"))
        records.append(asyncio.run(loop.play(episode, roles)))
        episodes.append((episode, roles))
    planned = loop.plan([loop.facts(record) for record in records])
    assert set(planned) == {(0, 0), (1, 0)}
    episode, roles = episodes[1]
    after = asyncio.run(loop.play_on(episode, records[1], planned[1, 0], roles))
    assert {end.branch: end.reason for end in after.ends} == {"detail": "rounds_used", "mismatched": "rounds_used"}
    assert all(asked.purpose == "feedback" for asked in roles.provider.asked)
    table = FeedbackLoopMetrics(chosen).table([FeedbackLoopMetrics(chosen).summary(after)])
    # neither answer can be read twice, so none repeats; of four options none was ruled out
    assert table["repeat_rate.detail"].value == 0
    assert table["elimination_floor"].value == 1 / 4


def test_two_unreadable_answers_are_no_repeated_answer():
    chosen = {"arms": ("detail", "reask"), "max_rounds": 1}
    _, _, table = play(["hm", "hm"], ScriptedRole(lambda asked: "Look.", name="teacher"), **chosen)
    assert table["repeat_rate.detail"].value == 0


def test_right_answers_may_be_tried_with_the_data_sets_texts():
    chosen = FeedbackLoopOptions(
        arms=("hierarchical",), test_on="all_wrong", level_texts="data", max_rounds=3, flip_sample=1
    )
    loop = FeedbackLoop(chosen, Parts(verifier=LetterVerifier(), feedback_providers={"hierarchical": Hierarchical()}))
    roles, episode = FakeRoles(_role("BA")), make_episode(levels=TEXTS)
    record = asyncio.run(loop.play(episode, roles))
    planned = loop.plan([loop.facts(record)])
    after = asyncio.run(loop.play_on(episode, record, planned[0, 0], roles))
    assert (after.stop_reason, after.ends[0].reason) == ("flip_played", "flipped")
    table = FeedbackLoopMetrics(chosen).table([FeedbackLoopMetrics(chosen).summary(after)])
    assert (table["n_flip"].value, table["flip_rate.hierarchical"].value) == (1, 1)


def test_the_round_that_is_asked_for_has_quiet_defaults():
    assert FeedbackRound() == FeedbackRound(number=1, text=None, by_person=False, without_answer=False)


def test_the_asked_round_is_that_of_the_call():
    rounds: list[int] = []

    def script(asked: Asked) -> Reply:
        rounds.append(asked.round)
        return said("Look")

    play("AACB", Person(script))
    assert rounds == [1, 2, 3]
