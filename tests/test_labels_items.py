"""The replies that people label: what they are shown, and what judges and panel said of each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interbench_tasks.errors import RunFolderError
from interbench_tasks.labels.items import EXCERPT_CHARS, SILENT, label_run, picture_file
from interbench_tasks.records import Message, Reply, Verdict
from tests.conversation_records import answer, conversation, question
from tests.critiques import NO, YES, record, valid
from tests.critiques import judged as judged_record
from tests.judged_runs import Speaker, flawed, play, talk, write_task
from tests.labelled_runs import critique_manifest, critique_run, talk_run, with_pictures, write_run


def only(folder, records, **options):
    run = label_run(write_run(folder, records, critique_manifest(**options)))
    (item,) = run.items
    return item


def talks(folder, records, **options):
    manifest = {"task": "t", "protocol": "conversation", "metrics": "mmrc", "protocol_options": options}
    return label_run(write_run(folder, records, manifest)).items


# --- critiques --------------------------------------------------------------------------------------------------------


def test_a_critique_has_its_judges_and_what_the_panel_comes_to(tmp_path):
    item = only(tmp_path, [record(3, [YES, NO, YES], text="<think>hm</think> No scale is given.")])
    assert item.reply == "No scale is given."
    assert item.panel == {"detected": 1.0, "diag": 4 / 3, "strategy": "refusal", "strategy_score": 2.0}
    assert item.judges["a"] == {"detected": 1.0, "diag": 2.0, "strategy": "refusal", "strategy_score": 2.0}
    assert item.judges["b"] == {"detected": 0.0}
    assert (item.kind, item.category, item.answered) == ("flawed", "EE.ambiguity", True)


def test_a_judge_that_failed_is_none_and_the_panel_may_be_unscored(tmp_path):
    item = only(tmp_path, [record(0, [YES, NO, None])])
    assert item.judges["c"] is None
    assert item.panel is None


def test_a_failed_reply_is_there_without_anything_to_label(tmp_path):
    item = only(tmp_path, [record(0, None)])
    assert not item.answered
    assert (item.panel, item.reply) == (None, "")


def test_a_reply_that_ends_while_thinking_says_so(tmp_path):
    silent = record(0, [], text="<think>and then")
    turn = replace(silent.turns[0], verdict=Verdict(judge="rule:no_answer", status="scored", score=None))
    item = only(tmp_path, [replace(silent, turns=(turn,))])
    assert item.reply == SILENT
    assert item.answered
    assert item.panel == {"detected": 0.0}


def test_valid_items_and_dual_errors_are_not_labelled(tmp_path):
    rows = [record(0, [YES] * 3), judged_record(1, "valid", [valid(False, True)] * 3)]
    assert only(tmp_path, rows).episode_id == "i0"


def test_what_is_wrong_with_the_input_comes_from_what_judges_were_told(tmp_path):
    yaml = write_task(tmp_path, [flawed(0)], {"protocol": "critique", "roles": {"judge": "simulated:j1"}})
    task = play(yaml, Speaker(lambda call: "There are two numbers."))
    (item,) = label_run(task.folder).items
    assert item.reference == "The text says 0 and 1."
    assert "How many cats are there?" in item.question
    assert list(item.judges) == ["simulated:j1"]


def test_without_a_prompt_the_kind_of_flaw_is_told(tmp_path):
    assert only(tmp_path, [record(0, [YES] * 3, category="BC")]).reference == (
        "What is wrong: the answer cannot be worked out from what is given."
    )


def test_the_same_reply_has_the_same_id_before_other_judges_and_another_reply_another(tmp_path):
    ids = [
        only(tmp_path / str(place), [record(0, votes, text=text)], judges=["a", "b", "c"][: len(votes)]).id
        for place, (votes, text) in enumerate([([YES] * 3, "so"), ([NO] * 2, "so"), ([YES] * 3, "thus")])
    ]
    assert ids[0] == ids[1] != ids[2]


def test_the_quorum_of_the_task_holds(tmp_path):
    assert only(tmp_path / "1", [record(0, [NO, NO, None])]).panel == {"detected": 0.0}
    assert only(tmp_path / "2", [record(0, [NO, NO, None])], quorum=3).panel is None


# --- conversations ----------------------------------------------------------------------------------------------------


def test_open_answers_are_there_once_for_each_arm(tmp_path):
    run = label_run(talk_run(tmp_path, 2, arms=("none", "note_taking")))
    assert len(run.items) == 2 * 2 * 4
    item = next(one for one in run.items if one.arm == "note_taking" and one.kind == "CR")
    assert item.reply.startswith("answer ")
    assert item.reference == "Up"
    assert item.panel == item.judges["x"] == item.judges["y"]
    assert run.judges == ("x", "y")


def test_multiple_choice_is_not_labelled(tmp_path):
    asked = [question("q1", "CR"), question("q2", "CR", format="mc")]
    rows = [conversation(0, asked, [answer("none", asked[0], score=3.0), answer("none", asked[1], correct=True)])]
    assert [one.branch for one in talks(tmp_path, rows)] == ["none/q1"]


def test_an_answer_that_failed_or_was_not_judged_is_unscored(tmp_path):
    asked = [question("q1", "CR"), question("q2", "CR")]
    failed = answer("none", asked[0], Reply(text="", status="error", error="HTTP 500"))
    rows = [conversation(0, asked, [failed, answer("none", asked[1], score=None)])]
    first, second = talks(tmp_path, rows)
    assert (first.answered, first.panel) == (False, None)
    assert (second.answered, second.panel) == (True, None)


def test_the_excerpt_is_the_turns_that_hold_the_answer(tmp_path):
    asked = question("q1", "MR", evidence=(1, 2))
    rows = [conversation(0, [asked], [answer("none", asked, score=1.0)], pictures={1: 2, 3: 1})]
    (item,) = talks(tmp_path, rows)
    assert "[turn 2, 2 picture(s)]\nUser: turn 1\nAssistant: I see." in item.excerpt
    assert "[turn 3]" in item.excerpt
    assert "[turn 1]" not in item.excerpt
    assert len(item.pictures) == 2


def test_a_long_conversation_loses_its_middle_and_says_so(tmp_path):
    asked = question("q1", "MR")
    made = conversation(0, [asked], [answer("none", asked, score=1.0)], n_turns=3)
    long = replace(made.turns[1], user=Message(role="user", content=("x" * 20_000,)))
    (item,) = talks(tmp_path, [replace(made, turns=(made.turns[0], long, *made.turns[2:]))])
    assert item.excerpt.startswith("[turn 1]")
    assert "characters are left out" in item.excerpt
    assert item.excerpt.endswith("Assistant: I see.")
    assert len(item.excerpt) < EXCERPT_CHARS + 100


def test_a_played_conversation_can_be_labelled(tmp_path):
    block = {"protocol": "conversation", "verifier": "choice", "roles": {"judge": "simulated:j1"}}
    task = play(write_task(tmp_path, [talk(0)], block), Speaker(lambda call: "Tom0"))
    items = label_run(task.folder).items
    assert [one.kind for one in items] == ["MR", "MR"]
    assert all(one.panel is not None for one in items)


# --- what cannot be labelled ------------------------------------------------------------------------------------------


def test_a_run_without_judges_is_refused(tmp_path):
    feedback = write_run(tmp_path / "f", [], {"task": "t", "protocol": "feedback_loop", "protocol_options": {}})
    with pytest.raises(RunFolderError, match="'feedback_loop' has no judges; people label critique, conversation"):
        label_run(feedback)
    with pytest.raises(RunFolderError, match="nobody judged this run"):
        talks(tmp_path / "c", [], rubric=None)


def test_a_damaged_manifest_is_named(tmp_path):
    folder = write_run(tmp_path, [], {"task": "t", "protocol": "critique"})
    with pytest.raises(RunFolderError, match="manifest.json: cannot be read"):
        label_run(folder)


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_a_picture_is_found_where_the_run_keeps_it(tmp_path):
    folder = write_run(tmp_path, [with_pictures(record(0, [YES] * 3), 1, 2)], critique_manifest())
    (item,) = label_run(folder).items
    (folder / "pictures").mkdir()
    (folder / "pictures" / f"{1:032x}.webp").write_bytes(b"x")
    assert [picture_file(folder, one.digest) is not None for one in item.pictures] == [True, False]


@pytest.mark.parametrize("digest", ["../manifest", "*", "", "a" * 100])
def test_no_digest_leads_out_of_the_folder(tmp_path, digest):
    critique_run(tmp_path, 1)
    assert picture_file(tmp_path, digest) is None
