"""Which runs may be compared, what they are called, and what is told of how they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.errors import InterbenchError, RunFolderError
from interbench_tasks.runs.comparable import names_of, table_warnings, warnings_of
from interbench_tasks.runs.compare import compared
from interbench_tasks.runs.compare_tasks import comparisons_from
from interbench_tasks.runs.names import labels_by_folder, refuse_shared_labels
from tests.scored_runs import episode, run_of


def run(name="a", n=3, **changes):
    return run_of(name, [episode(number, accuracy=1) for number in range(n)], **changes)


def told(*runs):
    return list(warnings_of(dict(zip(names_of(runs), runs, strict=True))))


def test_a_run_is_called_by_its_receiver_then_by_its_id_then_by_its_folder(tmp_path):
    assert names_of([run("a"), run("b")]) == ["a", "b"]
    twice = [run("a"), run("x", models__receiver__name="a"), run("b")]
    assert names_of(twice) == ["a (run-a)", "a (run-x)", "b"]
    same_id = [run("a"), run("x", models__receiver__name="a", run_id="run-a")]
    assert names_of(same_id) == ["a (/nowhere/a)", "a (/nowhere/x)"]


def test_runs_of_one_receiver_are_called_by_day_then_by_minute():
    begun = [1796000000, 1796000000 - 86400, 1796000000 + 600, 1796000000 + 605]
    runs = [run(str(at), models__receiver__name="m", run__started_at=at) for at in begun]
    assert names_of(runs[:2]) == ["m (2026-11-30)", "m (2026-11-29)"]
    assert names_of(runs[:3]) == ["m (2026-11-30 00:53)", "m (2026-11-29)", "m (2026-11-30 01:03)"]
    assert names_of(runs)[2:] == [f"m (run-{at})" for at in begun[2:]]


def test_a_label_is_the_name_of_a_run_in_comparisons():
    runs = [replace(run("a"), label="ours"), replace(run("a"), label="theirs", folder=Path("/nowhere/b"))]
    assert names_of(runs) == list(compared(runs).own) == ["ours", "theirs"]


def test_labels_go_to_the_runs_of_each_argument_in_order():
    folders = {Path("a"): [Path("a/1"), Path("a/2")], Path("b"): [Path("b")]}
    named = labels_by_folder(["one", " two\n"], list(folders), folders.__getitem__)
    assert named == {Path("a/1"): "one", Path("a/2"): "one", Path("b"): "two"}
    assert labels_by_folder([], list(folders), folders.__getitem__) == {}
    refuse_shared_labels(named, {Path("a/1"): "t", Path("a/2"): "u", Path("b"): "t", Path("c"): "t"})
    with pytest.raises(InterbenchError, match=r"--label one: 2 runs of t have it \(a/1, a/2\); name each run folder"):
        refuse_shared_labels(named, {Path("a/1"): "t", Path("a/2"): "t"})


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [(["x"], "1 labels for 2 RUN arguments"), (["x", "y", "z"], "3 labels for 2"), (["x", " "], "a label is empty")],
)
def test_labels_that_are_not_one_for_each_argument_are_refused(labels, sentence):
    with pytest.raises(InterbenchError, match=sentence):
        labels_by_folder(labels, [Path("a"), Path("b")], lambda path: [path])


def test_no_run_is_lost_where_names_collide():
    runs = [run("a"), run("x", models__receiver__name="a", run_id="run-a"), run("a (run-a)")]
    assert len(compared(runs).own) == 3


def test_one_run_is_refused():
    for runs in ([], [run()]):
        with pytest.raises(InterbenchError, match="needs two runs of a task at least"):
            comparisons_from(runs)


def test_a_folder_that_is_named_twice_is_refused_also_by_way_of_a_link(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    runs = [replace(run(), folder=tmp_path / name) for name in ("run", "link")]
    with pytest.raises(InterbenchError, match="run: is named twice"):
        compared(runs)
    with pytest.raises(InterbenchError, match="run: is named twice"):
        comparisons_from([*runs, run("b", task="other")])


def test_runs_of_other_metrics_are_refused():
    with pytest.raises(InterbenchError, match=r"different metrics \(conversation, feedback_loop\)"):
        compared([run("a"), run("b", metrics="conversation")])


def test_runs_without_a_common_episode_are_refused():
    with pytest.raises(InterbenchError, match="/nowhere/a and /nowhere/b have no episode in common"):
        compared([run("a"), run_of("b", [episode(7, accuracy=1)])])


def test_equal_ids_of_different_questions_are_refused_and_named():
    others = [episode(number, target="C", accuracy=1) for number in range(8)]
    with pytest.raises(InterbenchError, match=r"8 episodes of .*\(q0, q1, q2, q3, q4, \.\.\.\).*different data"):
        compared([run("a", n=8), run_of("b", others)])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"target": ""}, {"target": "C"}, True),  # an episode that was not played has none
        ({"target": "abcd", "target_cut": True}, {"target": "ab", "target_cut": True}, True),
        ({"target": "abcd"}, {"target": "ab", "target_cut": True}, True),
        ({"target": "abcd"}, {"target": "ax", "target_cut": True}, False),
        ({"target": "abcd"}, {"target": "ab"}, False),
    ],
)
def test_targets_are_compared_as_far_as_both_tell_them(one, other, same):
    runs = [run_of(name, [episode(0, accuracy=1) | cut]) for name, cut in (("a", one), ("b", other))]
    if same:
        assert compared(runs).pairs[0].n == 1
    else:
        with pytest.raises(InterbenchError, match="different right answers"):
            compared(runs)


def test_an_episode_that_is_there_twice_is_refused():
    with pytest.raises(InterbenchError, match=r"/nowhere/b: 1 episodes are there twice \(q1\)"):
        compared([run("a"), run_of("b", [episode(1, accuracy=1), episode(1, accuracy=0)])])


def test_one_run_of_each_task_is_called_that_and_not_other_metrics():
    runs = [run("a"), run("b", task="talks", metrics="conversation")]
    with pytest.raises(InterbenchError, match=r"one run of each task: t \(/nowhere/a\), talks \(/nowhere/b\)"):
        comparisons_from(runs)


def of_two_tasks():
    """Two runs of `t`, which has accuracy, and two of `flawed`, which has pcq."""
    flawed = [run_of(name, [episode(0, pcq=1), episode(1, pcq=0)], task="flawed", metrics="critique") for name in "cd"]
    return [run("a"), run("b"), *flawed]


def test_a_pattern_leaves_out_the_tasks_that_it_does_not_fit_and_says_so():
    [comparison], left_out = comparisons_from(of_two_tasks(), ["pcq"])
    assert (comparison.tasks, comparison.metrics) == (("flawed",), ("pcq",))
    assert left_out == ("t: is left out, --metric pcq fits no metric of it (2 runs)",)
    both, left_out = comparisons_from(of_two_tasks(), ["pc?", "accuracy"])
    assert ([one.metrics for one in both], left_out) == ([("accuracy",), ("pcq",)], ())


def test_a_pattern_that_fits_no_task_is_refused_with_the_metrics_of_all():
    with pytest.raises(InterbenchError, match="--metric nothing: fits no metric of these runs; .* accuracy, pcq"):
        comparisons_from(of_two_tasks(), ["pcq", "nothing"])


def test_runs_that_are_alike_are_compared_without_a_word():
    assert told(run("a"), run("b"), run("c")) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"task_version": "1.1"}, 'the runs differ in task version: "1.0" (a); "1.1" (b)'),
        ({"prompt_digests__question": "bb"}, 'the runs differ in digest of the prompt question: "aa" (a); "bb" (b)'),
        ({"prompt_digests__simple": "cc"}, 'the runs differ in digest of the prompt simple: not there (a); "cc" (b)'),
        (
            {"generation__receiver__temperature": 0.7},
            "the runs differ in generation settings receiver.temperature: 0.0 (a); 0.7 (b)",
        ),
        ({"protocol_options__max_rounds": 3}, "the runs differ in protocol options max_rounds: 1 (a); 3 (b)"),
        ({"options__verifier": "numbers"}, 'the runs differ in task options verifier: "choice" (a); "numbers" (b)'),
        ({"data__source": "other.jsonl"}, 'the runs differ in data source: "rows.jsonl" (a); "other.jsonl" (b)'),
        ({"protocol": "conversation"}, 'the runs differ in protocol: "feedback_loop" (a); "conversation" (b)'),
        (
            {"models__provider__name": "openai:o3"},
            'the runs differ in providers: {"provider": "openai:gpt-4o"} (a); {"provider": "openai:o3"} (b); '
            "test sets differ for that alone",
        ),
        (
            {"data__n_episodes": 9},
            "b: the run is UNFINISHED; what ends first is no fair sample (right answers end early)",
        ),
        ({"simulated": ["provider@x", "receiver"]}, "b: simulated, not a model's own words: provider x, receiver"),
    ],
)
def test_each_difference_is_one_sentence_that_says_what_it_is_in_which_run(changes, sentence):
    assert told(run("a"), run("b", **changes)) == [sentence]


def test_settings_of_a_provider_that_a_run_does_not_have_are_told_with_its_model_only():
    several = run("b")
    models = {"receiver": {"name": "b"}, "provider@gpt-4.1": {"name": "x"}, "provider@q": {"name": "y"}}
    generation = {"receiver": {"temperature": 0.0}} | {
        f"provider@{label}": {"temperature": 0.0} for label in ("gpt-4.1", "q")
    }
    several = replace(several, manifest={**several.manifest, "models": models, "generation": generation})
    [sentence] = told(run("a"), several)
    assert sentence.startswith("the runs differ in providers: ")
    other = replace(several, manifest={**several.manifest, "run_id": "other"})
    assert told(several, other) == []
    warmer = generation | {"provider@gpt-4.1": {"temperature": 1.0}}
    [sentence] = told(several, replace(other, manifest={**other.manifest, "generation": warmer}))
    assert "generation settings provider@gpt-4.1.temperature" in sentence


def test_what_moves_no_score_is_not_told():
    assert (
        told(run("a"), run("b", options__engine={"max_wait_s": 9}, options__max_failed_share=1, yaml="x", packages={}))
        == []
    )


def test_a_long_setting_is_cut():
    [sentence] = told(run("a"), run("b", options__system="x" * 500))
    assert len(sentence) < 200


def test_a_table_tells_of_versions_of_the_task_and_of_unfinished_runs_only():
    runs = {"a": run("a"), "b": run("b", task_version="2", data__n_episodes=9, generation__receiver__temperature=1)}
    assert [sentence.split(":")[0] for sentence in table_warnings(runs)] == ["the runs differ in task version", "b"]


def test_a_manifest_without_a_receiver_is_named():
    with pytest.raises(RunFolderError, match=r"/nowhere/a/manifest.json: names no receiver"):
        names_of([run("a", models={})])
