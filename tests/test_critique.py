"""The protocol `critique`: what a model and its judges are asked, in which styles, and what is kept of it."""

from __future__ import annotations

import asyncio
import json

import pytest

from interbench_tasks import Parts
from interbench_tasks.answers import ChoiceOrMathVerifier
from interbench_tasks.errors import ConfigError
from interbench_tasks.families import family_of, related
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.protocols.critique import Critique, CritiqueOptions
from interbench_tasks.reasoning import parted
from interbench_tasks.record_json import line_from_record, record_from_line
from interbench_tasks.records import Message, Question, Reply
from tests.critiques import metrics
from tests.judge_fakes import judge, prompt_of
from tests.testing import ScriptedRole, error, make_episode

CLARIFIES = {"detected": True, "diag": 2, "strategy": "clarification", "strategy_score": 2}
DETECTS = {**CLARIFIES, "strategy": "refusal"}
MISSES = {"detected": False, "diag": 0, "strategy": "none", "strategy_score": 0}
EXTRA = {"kind": "flawed", "text": "T", "error_types": "Ambiguity: ...", "defects": "Two readings.", "fix": "I mean B."}


def saying(values, name="judge"):
    """A judge that gives these values, or of them those that it is asked for."""

    def say(prompt, nonce):
        keys = prompt.split("in exactly this order: ")[1].split(".")[0].split(", ")
        return json.dumps({key: {"nonce": nonce, "reason": "so", **values}[key] for key in keys})

    return judge(say, name)


class Roles:
    def __init__(self, receiver, judges):
        self.receiver = receiver
        self.judges = judges
        self.provider = self.notetaker = None
        self.providers = {}


def item(styles=(), **extra):
    questions = tuple(
        Question(
            id=style, ability="EE.ambiguity", message=Message(role="user", content=(f"{style}?",)), text="Q", target=""
        )
        for style in styles
    )
    known = {"options": {}, "raw_question": "Q", "category": "EE.ambiguity"}
    return make_episode("EE.ambiguity", questions=questions, extra={**EXTRA, **extra}, **known)


def play(receiver, *judges, episode=None, **options):
    """The record of an episode. Args: receiver = its reply to everything, or what decides that."""
    say = receiver if callable(receiver) else lambda asked: receiver
    role = ScriptedRole(say, name="model")
    named = {f"j{n}": one for n, one in enumerate(judges or [saying(DETECTS)])}
    protocol = Critique(CritiqueOptions(judges=tuple(named), **options), Parts(verifier=ChoiceOrMathVerifier()))
    record = asyncio.run(protocol.play(episode or item(), Roles(role, named)))
    assert record_from_line(line_from_record(record)).turns == record.turns  # everything is kept
    return record, role


# --- what is asked ------------------------------------------------------------------------------------------------


def test_the_model_gets_the_item_alone_and_the_judges_side_by_side_get_what_is_wrong_with_it():
    judges = [saying(DETECTS), saying(MISSES), saying(DETECTS)]
    record, role = play("It is ambiguous.", *judges)
    assert [[m.text for m in asked.messages] for asked in role.asked] == [["What animal?"]]
    for one in judges:
        (call,) = one.asked
        text = prompt_of(call)
        assert all(
            said in text for said in ("Two readings.", "Ambiguity: ...", "Text: T", "Query: Q", "It is ambiguous.")
        )
    turn = record.turns[0]
    assert [v.fields["detected"] for v in turn.verdicts] == ["true", "false", "true"]
    assert turn.verdict.fields == {"detected": "true", "diag": "1.333", "strategy": "refusal", "strategy_score": "2"}
    assert record.models == {"receiver": "model", "judge@j0": "judge", "judge@j1": "judge", "judge@j2": "judge"}
    assert (record.status, record.stop_reason) == ("finished", "played")


def test_judges_see_the_pictures_unless_they_are_not_to(tmp_path):
    from PIL import Image

    from interbench_tasks.images import picture_from

    picture = picture_from(Image.new("RGB", (8, 8), "red"), max_side=None, where="here")
    episode = make_episode(
        question=Message(role="user", content=(picture, "Q")), options={}, category="BC", extra=EXTRA
    )
    for wanted in (True, False):
        one = saying(DETECTS)
        play("so", one, episode=episode, judges_see_pictures=wanted)
        assert [bool(m.pictures) for m in one.asked[0].messages] == [wanted]
        assert "Pictures: 1" in prompt_of(one.asked[0])


def test_each_style_is_asked_and_judged_on_its_own():
    def answers(asked):
        return "It is ambiguous." if asked.branch == "formal" else "B."

    one = judge(lambda prompt, nonce: json.dumps({"nonce": nonce, **(DETECTS if "is ambiguous" in prompt else MISSES)}))
    record, role = play(answers, one, episode=item(styles=("formal", "concise")))
    assert {asked.branch: asked.messages[-1].text for asked in role.asked} == {
        "": "What animal?",
        "formal": "formal?",
        "concise": "concise?",
    }
    found = {turn.branch: turn.verdict.fields["detected"] for turn in record.turns}
    assert found == {"": "false", "formal": "true", "concise": "false"}
    assert [turn.index for turn in record.turns] == [0, 1, 2]
    assert [turn.question for turn in record.turns] == [None, "formal", "concise"]


# --- reasoning and answer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reasoning", "found"),
    [
        ("B", None, (None, "B")),
        ("<think>hm</think> B", None, ("hm", "B")),
        ("hm</think> B", None, ("hm", "B")),
        ("B", "hm", ("hm", "B")),
        ("<think>one</think> so far <think>two</think> B", None, ("one so far two", "B")),
        ("<think>two</think> B", "one", ("one\n\ntwo", "B")),
        ("<think>hm", None, ("hm", "")),
        ("A <think>hm", None, ("A hm", "")),
        ("<think></think>B", None, (None, "B")),
        ("[THINK]hm[/THINK]B", None, ("hm", "B")),
        ("<thinking>hm</thinking>\nB\n", "  ", ("hm", "B")),
        ("", None, (None, "")),
    ],
)
def test_a_reply_is_parted_at_its_last_closing_tag(text, reasoning, found):
    parts = parted(text, reasoning)
    assert (parts.reasoning, parts.answer) == found


def test_reasoning_and_answer_are_judged_apart():
    def say(prompt, nonce):
        values = DETECTS if "It lacks a unit" in prompt else MISSES
        keys = ("detected", "diag") if "its reasoning before the answer" in prompt else tuple(values)
        return json.dumps({"nonce": nonce, **{key: values[key] for key in keys}})

    one = judge(say)
    record, _ = play(Reply(text="<think>It lacks a unit.</think> 42", reasoning=None), one)
    turn = record.turns[0]
    assert (turn.verdict.fields["detected"], turn.reasoning_verdict.fields["detected"]) == ("false", "true")
    assert sorted(call.branch for call in one.asked) == ["", "reasoning"]
    assert "It lacks" not in next(prompt_of(call) for call in one.asked if call.branch == "")
    assert "\n42\n" not in next(prompt_of(call) for call in one.asked if call.branch == "reasoning")
    row = metrics(judges=()).summary(record)
    assert (row["votes"][""], row["reasoning"]) == ({"j0": [0, 0, "none", 0]}, {"j0": [1, 2]})


def test_reasoning_that_an_api_returns_apart_is_judged_too():
    record, _ = play(Reply(text="42", reasoning="It lacks a unit."))
    assert record.turns[0].reasoning_verdict.fields["detected"] == "true"


def test_reasoning_is_not_judged_where_it_is_not_wanted_or_the_item_is_sound():
    reply = "<think>hm</think> 42"
    record, _ = play(reply, judge_reasoning=False)
    assert record.turns[0].reasoning_verdicts == ()
    calm = saying({"refuses_whole_task": False, "false_alarm": False})
    sound = make_episode("valid", options={}, category="valid", extra={"kind": "valid"})
    record, _ = play(reply, calm, episode=sound)
    assert record.turns[0].reasoning_verdicts == ()
    assert record.turns[0].verdict.fields == {"refuses_whole_task": "false", "false_alarm": "false"}
    assert "Nothing is wrong with this input." in prompt_of(calm.asked[0])


@pytest.mark.parametrize("kind", ["flawed", "dual", "valid"])
def test_a_reply_that_ends_while_thinking_is_judged_by_nobody(kind):
    category = {"flawed": "BC", "dual": "EE.ambiguity+BC", "valid": "valid"}[kind]
    episode = make_episode(category, options={}, category=category, extra={**EXTRA, "kind": kind})
    one = saying(DETECTS)
    record, _ = play(Reply(text="<think>It lacks", finish_reason="length"), one, episode=episode)
    assert record.turns[0].verdict.judge == "rule:no_answer"
    assert [call.branch for call in one.asked] == (["reasoning"] if kind == "flawed" else [])
    table = metrics(judges=()).table([metrics(judges=()).summary(record)])
    assert table["n_no_answer"].value == table["n_cut_replies"].value == 1
    assert table[{"flawed": "eda", "dual": "meda", "valid": "far_v"}[kind]].value == 0


def test_a_dual_errors_two_defects_are_numbered_for_the_judge():
    one = saying({"detected": True, "identified": ["second"]})
    extra = {**EXTRA, "kind": "dual", "defects": "first: A\nsecond: B"}
    episode = make_episode(options={}, category="EE.ambiguity+BC", extra=extra)
    record, _ = play("so", one, episode=episode)
    assert record.turns[0].verdict.fields == {"detected": "true", "identified": "second"}
    assert "first: A\nsecond: B" in prompt_of(one.asked[0])


# --- what fails ---------------------------------------------------------------------------------------------------


def test_a_failed_reply_is_unscored_and_not_judged():
    one = saying(DETECTS)
    record, _ = play(error("HTTP 500"), one)
    assert (record.status, record.error, one.asked) == ("failed", "HTTP 500", [])
    made = metrics()
    assert made.table([made.summary(record)])["n_failed"].value == 1


def test_a_failed_style_leaves_the_others():
    record, _ = play(lambda asked: error() if asked.branch else "so", episode=item(styles=("formal",)))
    assert record.status == "finished"
    assert [turn.verdict is not None for turn in record.turns] == [True, False]
    made = metrics(judges=(), more_styles=("formal",))
    table = made.table([made.summary(record)])
    assert table["eda"].value == 1
    assert "eda.formal" not in table


def test_a_judge_that_fails_is_missing_and_one_that_cannot_be_read_is_asked_twice():
    failing, babbling = judge(lambda p, n: error("HTTP 503")), judge(lambda p, n: "It is hard to say.")
    record, _ = play("so", saying(DETECTS), failing, babbling)
    turn = record.turns[0]
    assert [verdict.status for verdict in turn.verdicts] == ["scored", "error", "unparsed"]
    assert (turn.verdict.status, turn.verdict.fields) == ("undecided", {})
    assert [len(one.asked) for one in (failing, babbling)] == [1, 2]
    assert turn.verdicts[2].first_reply.text == "It is hard to say."
    made = metrics(judges=("j0", "j1", "j2"))
    table = made.table([made.summary(record)])
    assert "eda" not in table
    assert (table["n_undecided"].value, table["n_judge_missing"].value) == (1, 2)


def test_a_judge_that_fails_at_the_reasoning_alone_is_told_as_a_failure():
    from interbench_tasks.runs.keeper import failures_of

    def say(prompt, nonce):
        return (
            error("HTTP 503") if "its reasoning before the answer" in prompt else json.dumps({"nonce": nonce, **MISSES})
        )

    record, _ = play("<think>hm</think> 42", judge(say))
    assert failures_of(record) == {"judge j0 failed: HTTP 503"}
    made = metrics(judges=())
    table = made.table([made.summary(record)])
    assert (table["eda"].unscored, table["n_judge_missing"].value) == (0, 1)
    assert "eda_r" not in table


def test_a_judge_that_raises_leaves_the_reply_unscored():
    def raises(prompt, nonce):
        raise RuntimeError("no such model")

    record, _ = play("so", judge(raises))
    assert record.status == "finished"
    assert record.ends[0].reason == "judge_failed"
    assert "no such model" in record.ends[0].error
    made = metrics(judges=())
    assert "eda" not in made.table([made.summary(record)])


# --- a clarification ----------------------------------------------------------------------------------------------


def clarify(reply, judge_says=CLARIFIES, **extra):
    def answers(asked):
        return reply if asked.round else "Which one do you mean?"

    return play(answers, saying(judge_says), episode=item(**{"answer": "12", **extra}), clarify=True)


@pytest.mark.parametrize(("reply", "solved"), [("Answer: 12", True), ("Answer: 13", False), ("No idea.", False)])
def test_a_model_that_asks_back_is_told_and_has_to_solve_the_task(reply, solved):
    record, role = clarify(reply)
    (asked,) = [asked for asked in role.asked if asked.round]
    assert [m.role for m in asked.messages] == ["user", "assistant", "user"]
    assert asked.messages[-1].text.startswith("I mean B.")
    turn = record.turns[-1]
    assert (turn.branch, turn.parent, turn.judgement.correct) == ("clarification", 0, solved)
    made = metrics(judges=())
    table = made.table([made.summary(record)])
    assert (table["solved_after_clarification"].value, table["solved_after_clarification"].n) == (float(solved), 1)
    assert table["eda"].n == 1


def test_a_failed_second_reply_is_unscored():
    record, _ = clarify(error())
    made = metrics(judges=())
    summaries = [made.summary(record), {**made.summary(clarify("Answer: 12")[0]), "doc_id": 1}]
    found = made.table(summaries)["solved_after_clarification"]
    assert (found.value, found.n, found.unscored, found.bounds) == (1, 1, 1, (0.5, 1))


@pytest.mark.parametrize("changes", [{"judge_says": DETECTS}, {"judge_says": MISSES}, {"fix": ""}])
def test_nobody_is_told_who_did_not_ask_or_where_there_is_nothing_to_tell(changes):
    record, role = clarify("Answer: 12", **changes)
    assert [asked.round for asked in role.asked] == [0]
    assert len(record.turns) == 1


def test_clarification_is_off_by_default():
    record, _ = play("Which one?", saying(CLARIFIES), episode=item(answer="12"))
    assert len(record.turns) == 1


# --- options ------------------------------------------------------------------------------------------------------

JUDGES = [{"backend": "simulated", "model": name} for name in ("a", "b", "c")]


def options_of(**block):
    from interbench_tasks.config import task_options_from

    config = {
        "task": "t",
        "generation_kwargs": {"until": [], "max_new_tokens": 16, "temperature": 0},
        "metadata": {"interbench": {"protocol": "critique", "judges": JUDGES, **block}},
    }
    return task_options_from(config, where="t.yaml", offers=offers_from(build_plugin_manager()))


def test_a_task_names_its_judges_and_gets_the_metrics_of_critiques():
    options = options_of()
    assert (options.metrics, options.reads) == ("mmpcbench", "flawed_items")
    assert options.protocol_options.judges == ("a", "b", "c")


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"judges": []}, "roles.judge is missing"),
        ({"judges": [JUDGES[0], JUDGES[0]]}, "two are called 'a'"),
        ({"judges": [JUDGES[0], {**JUDGES[0], "name": "b"}]}, "is the same judge as 'a'"),
        ({"quorum": 4}, "quorum = 4: must be from 1 to the number of judges, 3"),
        ({"quorum": 0}, "quorum = 0"),
        ({"panel": "strict_majority"}, "panel: critiques have the paper's rule"),
        ({"style": "formel"}, r"style = 'formel' \(did you mean 'formal'\?\)"),
        ({"more_styles": ["original"]}, "must differ from each other and from style"),
        ({"more_styles": ["formal", "formal"]}, "must differ"),
        ({"pcq_combine": "mean"}, "pcq_combine = 'mean'"),
        ({"rubric": "mmpc"}, "rubric: mmpc is not known"),
        ({"rubric": "mmrc"}, "has no entry for flawed, reasoning, dual, valid"),
        ({"prompts": {"question": "{{ query }}"}}, "prompts.question is no known key"),
        ({"prompts": {"formal": "{{ defect }}"}}, "prompts.formal uses 'defect'"),
        ({"columns": {"question": "Q"}}, "columns has no effect on flawed items"),
        ({"verifier": "exakt"}, "verifier = 'exakt'"),
        ({"subset": 0}, "subset = 0"),
    ],
)
def test_a_mistake_in_a_task_is_told_before_anybody_is_asked(block, told):
    with pytest.raises(ConfigError, match=told):
        options_of(**block)


def test_a_rubric_without_the_fields_that_the_metrics_need_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    rubric = {"task": "t", "template": "{{ reply_format }} {{ response }}", "fields": {"detected": {"meaning": "m"}}}
    path.write_text(json.dumps({"rubrics": dict.fromkeys(("flawed", "reasoning", "dual", "valid"), rubric)}))
    with pytest.raises(ConfigError, match=r"flawed\.fields\.diag.*valid\.fields\.false_alarm"):
        options_of(rubric=str(path))


# --- families -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai:gpt-5.2", "gpt"),
        ("openai:o3-mini", "gpt"),
        ("openai:chatgpt-4o-latest", "gpt"),
        ("anthropic:claude-sonnet-4-20250514", "claude"),
        ("openai:gemini-3-pro@https://g.example/v1", "gemini"),
        ("openai:google/gemma-3-27b-it@http://localhost:8000/v1", "gemini"),
        ("qwen2_5_vl:Qwen/Qwen2.5-VL-7B-Instruct", "qwen"),
        ("openai:Qwen3-VL-235B-A22B-Instruct@http://gpt.example/v1", "qwen"),
        ("openai:meta-llama/Llama-4-Scout", "llama"),
        ("openai:THUDM/GLM-4.6V", "glm"),
        ("openai:doubao-seed-1.6-vision", "doubao"),
        ("openai:OpenGVLab/InternVL3-8B", "internvl"),
        ("openai:my-model", None),
        ("simulated:judge", None),
        ("", None),
    ],
)
def test_a_models_family_is_read_from_its_name(model, family):
    assert family_of(model) == family


def test_judges_of_an_unknown_family_are_nobodys_relatives():
    assert related("openai:gpt-5-mini", ["openai:gpt-5.2", "openai:claude-x", "openai:mine"]) == ("openai:gpt-5.2",)
    assert related("simulated:x", ["simulated:x"]) == ()


# --- real replies -------------------------------------------------------------------------------------------------


def test_real_replies_can_be_judged_and_are_never_taken_for_a_verdict(shared_data):
    """ISEval's replies of three well-known models: a judge that only repeats them, or its prompt, has said nothing."""
    from interbench_tasks.iseval import iseval_rows
    from interbench_tasks.judging import Subject, judge_prompt, rubrics, verdict_from
    from tests.testing import ok

    folder = shared_data / "iseval"
    rubric = rubrics("mmpcbench")["flawed"]
    lines = (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    gold = [row["gold"]["defect"] for row in iseval_rows(folder)]
    n = 0
    for line, defect in list(zip(lines, gold, strict=True))[::7]:
        raw = json.loads(line)
        for said in (own["answer_to_ill"] for own in raw["responses"].values()):
            subject = Subject(question=raw["ill_query"], reference=defect, response=said, extra={"error_type": "x"})
            prompt = judge_prompt(rubric, subject, judge="j", seed="0")
            for text in (said, prompt.text, f"{prompt.nonce}\n{said}"):
                assert verdict_from(ok(text), rubric, judge="j", nonce=prompt.nonce).status == "unparsed"
            clear = json.dumps({"nonce": prompt.nonce, **DETECTS, "reason": said})
            assert verdict_from(ok(clear), rubric, judge="j", nonce=prompt.nonce).fields["diag"] == "2"
            n += 1
    assert n == 75


def test_a_panel_rule_is_refused_because_each_metric_has_the_papers():
    from tests.critique_runs import options_of

    with pytest.raises(ConfigError, match=r"metadata\.interbench\.panel: critiques have the paper's rule") as error:
        options_of({"judges": ["simulated:a", "simulated:b"], "panel": "median_of_valid"})
    assert "leave it out" in str(error.value)
