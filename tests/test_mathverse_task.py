"""InterFeedback on MathVerse: the published columns become episodes, and bad rows are told with their place."""

from __future__ import annotations

import json
from collections import Counter

import datasets
import pytest

from interbench_tasks.choices_in_text import choices_in_text
from interbench_tasks.errors import DataError
from interbench_tasks.harness.models import InterbenchSimulated
from interbench_tasks.images import Picture
from interbench_tasks.task_files import own_tasks
from interbench_tasks.yaml_files import config_from_file
from tests.cli import lmms_eval, metrics, records
from tests.harness_fakes import evaluate, records_of
from tests.published_rows import (
    COLOURS,
    COT,
    MATHVERSE_FEATURES,
    TEXT,
    VERSIONS,
    WO,
    change,
    copied_task,
    mathverse_row,
    picture,
    reader_of,
    write_parquet,
)

TEXT_ONLY_FEATURES = MATHVERSE_FEATURES | {"image": TEXT}
TASKS = [
    "interfeedback_mathverse",
    "interfeedback_mathverse_cot",
    "interfeedback_mathverse_text_only",
    "interfeedback_mathverse_text_only_cot",
]
LETTER_LINE = 'End with a line of the form "Answer: <x>", where <x> is the option letter.'
VALUE_LINE = 'End with a line of the form "Answer: <x>", where <x> is the final value.'
OPTIONS = {"A": "40°", "B": "60°", "C": "120°", "D": "140°"}


def written(folder, rows=None):
    if rows is None:
        rows = [mathverse_row(problem, version) for problem in (1, 2, 3) for version in VERSIONS]
    return write_parquet(folder / "testmini.parquet", rows, MATHVERSE_FEATURES)


def task_of(folder, rows=None, source="interfeedback_mathverse", **more):
    return copied_task(source, written(folder, rows), name="mathverse_copy", folder=folder, **more)


# --- the task -----------------------------------------------------------------------------------------------------


def test_a_row_goes_out_with_the_data_sets_own_prompt_and_one_line(tmp_path):
    reader = reader_of(task_of(tmp_path))
    choice, free = reader.episode(0, 0), reader.episode(5, 0)
    shown, prompt = choice.question.content
    assert shown.data == picture(COLOURS[1])["bytes"]
    assert prompt == (
        f"{WO['multi-choice']}\nQuestion: Problem 1: how large is angle CED?\n"
        f"Choices:\nA:40°\nB:60°\nC:120°\nD:140°\n{LETTER_LINE}"
    )
    assert free.question.text == f"{WO['free-form']}\nQuestion: Problem 2: how large is angle CED?\n{VALUE_LINE}"


def test_the_prompt_that_reasons_first_is_a_task_of_its_own(tmp_path):
    episode = reader_of(task_of(tmp_path, source="interfeedback_mathverse_cot")).episode(5, 0)
    assert episode.question.text == f"{COT['free-form']}\nQuestion: Problem 2: how large is angle CED?\n{VALUE_LINE}"


def test_the_choices_in_the_question_become_options(tmp_path):
    reader = reader_of(task_of(tmp_path))
    choice, free = reader.episode(1, 0), reader.episode(6, 0)
    assert (choice.options, choice.target) == (OPTIONS, "B")
    assert choice.raw_question == "Problem 1: how large is angle CED?"
    assert (free.options, free.target) == ({}, "60")


def test_a_vision_only_row_has_its_question_in_the_picture_and_still_its_options(tmp_path):
    episode = reader_of(task_of(tmp_path)).episode(4, 0)
    assert episode.category == "Vision Only"
    assert episode.question.text == f"{WO['multi-choice']}\n{LETTER_LINE}"
    assert (episode.raw_question, episode.options, episode.target) == ("", OPTIONS, "B")


def test_the_versions_of_a_problem_are_one_cluster(tmp_path):
    reader = reader_of(task_of(tmp_path))
    episodes = [reader.episode(doc_id, 0) for doc_id in range(15)]
    assert [episode.cluster for episode in episodes] == ["1"] * 5 + ["2"] * 5 + ["3"] * 5
    assert [episode.id for episode in episodes] == [str(number) for number in range(1, 16)]
    assert Counter(episode.category for episode in episodes) == dict.fromkeys(VERSIONS, 3)


def test_a_text_only_row_has_an_empty_text_for_a_picture(tmp_path):
    rows = [mathverse_row(problem, "Text Only") for problem in (1, 2)]
    data = write_parquet(tmp_path / "text_only.parquet", rows, TEXT_ONLY_FEATURES)
    reader = reader_of(copied_task("interfeedback_mathverse_text_only", data, name="copy", folder=tmp_path))
    episode = reader.episode(0, 0)
    assert episode.question.pictures == ()
    assert (episode.options, episode.cluster, episode.category) == (OPTIONS, None, "multi-choice")


def test_the_tasks_differ_in_nothing_but_prompt_data_and_length():
    configs = {name: config_from_file(own_tasks()[name]) for name in TASKS}
    for name in TASKS[::2]:
        direct, reasoned = configs[name], configs[f"{name}_cot"]
        one, other = (dict(c["metadata"]["interbench"]) for c in (direct, reasoned))
        assert one.pop("prompts")["question"].replace("query_wo", "query_cot") == other.pop("prompts")["question"]
        assert one == other
        assert (direct["generation_kwargs"]["max_new_tokens"], reasoned["generation_kwargs"]["max_new_tokens"]) == (
            1024,
            4096,
        )
    places = {(c["dataset_path"], c["dataset_name"], c["test_split"]) for c in configs.values()}
    assert places == {
        ("AI4Math/MathVerse", "testmini", "testmini"),
        ("AI4Math/MathVerse", "testmini_text_only", "testmini_text_only"),
    }
    assert {c["metadata"]["interbench"]["verifier"] for c in configs.values()} <= {"choice_or_math", "choice_or_exact"}


# --- choices in a text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stem", "options"),
    [
        ("Q?\nChoices:\nA:1\nB:2", "Q?", {"A": "1", "B": "2"}),
        ("Q?\nChoice:\nA. True\nB. False", "Q?", {"A": "True", "B": "False"}),
        ("Q?\nChoices:\nA.$x$\nB.a: b", "Q?", {"A": "$x$", "B": "a: b"}),
        ("Q?\nChoices:\nA:26°\nB:74°\n102", "Q?", {"A": "26°", "B": "74°\n102"}),
        ("Q?\nChoices:\nA:\nB:2\n", "Q?", {"A": "", "B": "2"}),
        ("Q?\n\nChoose 2 answers:\nChoices:\nA:1\nB:2", "Q?\n\nChoose 2 answers:", {"A": "1", "B": "2"}),
        ("The choices: A:1 B:2", "The choices: A:1 B:2", {}),
        ("", "", {}),
    ],
)
def test_choices_are_read_from_lines_after_their_heading(text, stem, options):
    found = choices_in_text(text, "row 1")
    assert (found.stem, found.options) == (stem, options)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Q?\nChoices:\nA:1\nC:2", "the line 'C:2' is not choice B"),
        ("Q?\nChoices:\nB:1\nC:2", "the line 'B:1' is not choice A"),
        ("Q?\nChoices:\n1\n2", "the line '1' is not choice A"),
        ("Q?\nChoices:\nA:1\nB:2\nA:1", "the line 'A:1' is not choice C"),
        ("Q?\nChoices:\nA:1\nB.2", "'A:' and 'A.' are mixed"),
        ("Q?\nChoices:\nA:1", "fewer than two choices"),
        ("Q?\nChoices:", "fewer than two choices"),
        ("Choices:\nA:1\nB:2\nChoices:\nA:1\nB:2", "stands 2 times"),
    ],
)
def test_a_list_that_can_be_read_in_two_ways_is_not_read(text, why):
    with pytest.raises(DataError, match=f"row 1: .*{why}"):
        choices_in_text(text, "row 1")


@pytest.mark.parametrize(
    ("choices", "answer", "target"),
    [
        ("A:one\nB:two\nC:three", "(C)", "C"),
        ("A. True\nB. False", "False", "B"),
        (r"A. 090^\circ T" + "\n" + r"B. 180^\circ T", r"090^\circ T", "A"),
        ("A:x\nB:y\nC:z\nD:w", "C\nD", "C\nD"),
        ("A:x\nB:y", "none of them", "none of them"),
    ],
)
def test_an_odd_answer_becomes_a_letter_or_reaches_the_verifier_as_it_stands(tmp_path, choices, answer, target):
    row = mathverse_row(1, "Text Lite", question_for_eval=f"Q?\nChoices:\n{choices}", answer=answer)
    row |= {"question": row["question_for_eval"]}
    assert reader_of(task_of(tmp_path, [row])).episode(0, 0).target == target


# --- bad rows -----------------------------------------------------------------------------------------------------


def test_a_row_without_its_picture_names_file_row_and_column(tmp_path):
    reader = reader_of(task_of(tmp_path, [mathverse_row(1, "Text Lite"), mathverse_row(1, "Vision Only", image=None)]))
    assert isinstance(reader.episode(0, 0).question.content[0], Picture)
    with pytest.raises(DataError, match=r"testmini\.parquet, row 1, column image: there is no picture, and this task"):
        reader.episode(1, 0)


def test_unreadable_choices_name_file_row_and_column(tmp_path):
    row = mathverse_row(1, "Text Lite", question_for_eval="Q?\nChoices:\nA:1\nC:2")
    with pytest.raises(DataError, match=r"testmini\.parquet, row 0, column question_for_eval: the choices in the text"):
        reader_of(task_of(tmp_path, [row])).episode(0, 0)


def test_an_answer_that_fits_two_options_is_never_guessed(tmp_path):
    row = mathverse_row(1, "Text Lite", question_for_eval="Q?\nChoices:\nA:B\nB:A", answer="A")
    with pytest.raises(DataError, match=r"row 0, column answer: answer 'A' fits several options"):
        reader_of(task_of(tmp_path, [row])).episode(0, 0)


def test_ids_that_stand_twice_stop_the_run_with_their_rows(tmp_path):
    task = task_of(tmp_path)
    rows = [mathverse_row(1, version) for version in VERSIONS[:3]] + [mathverse_row(1, version) for version in VERSIONS]
    written(tmp_path, rows)
    message = (
        r"testmini\.parquet, column sample_index: ids must be unique, but '1' in rows 0, 3; '2' in rows 1, 4; "
        r"'3' in rows 2, 5\n  name another column under metadata.interbench.columns.id, or `id: null`"
    )
    with pytest.raises(DataError, match=message):
        reader_of(task)
    change(task, "id: sample_index", "id: null")
    assert reader_of(task).episode(7, 0).id == "7"


@pytest.mark.integration
def test_doubled_ids_stop_the_run_before_a_model_is_asked(tmp_path):
    task_of(tmp_path)
    written(tmp_path, [mathverse_row(1, "Text Lite")] * 2)
    with pytest.raises(DataError, match="ids must be unique, but '2' in rows 0, 1"):
        evaluate(InterbenchSimulated(), tmp_path, name="mathverse_copy")


@pytest.mark.integration
def test_it_plays_in_the_harness_and_a_bad_row_fails_alone(tmp_path):
    rows = [mathverse_row(problem, version) for problem in (1, 2, 3) for version in VERSIONS]
    rows[3]["image"] = None
    task = task_of(tmp_path, rows)
    change(task, "backend: openai", "backend: simulated")
    results = evaluate(InterbenchSimulated(accuracy=0.0, invalid=0.0, correction=1.0), tmp_path, name="mathverse_copy")
    table = {name.removesuffix(",none"): value for name, value in results["results"]["mathverse_copy"].items()}
    assert (table["N"], table["accuracy"], table["accuracy.n"], table["accuracy.unscored"]) == (15, 0.0, 14, 1)
    kept = records_of(tmp_path)
    assert kept[3]["status"] == "failed"
    assert "testmini.parquet, row 3, column image: there is no picture" in kept[3]["error"]
    assert {record["cluster"] for record in kept if record["status"] == "finished"} == {"1", "2", "3"}
    played = [record for record in kept if record["stop_reason"] == "played"]
    assert played
    assert all(len(turn["user"]["content"]) == 1 for record in played for turn in record["turns"] if turn["round"] == 1)


# --- new-task -----------------------------------------------------------------------------------------------------


def test_a_copy_for_the_published_columns_keeps_what_the_task_says_of_them(tmp_path):
    copy = config_from_file(task_of(tmp_path))
    original = config_from_file(own_tasks()["interfeedback_mathverse"])
    left, right = (dict(config["metadata"]["interbench"]) for config in (copy, original))
    left.pop("verifier"), right.pop("verifier")
    assert left == right
    assert (copy["dataset_path"], copy["dataset_kwargs"]) == (
        "parquet",
        {"data_files": str(tmp_path / "testmini.parquet")},
    )
    assert "dataset_name" not in copy


def test_a_copy_can_read_a_folder_saved_by_datasets(tmp_path):
    file = written(tmp_path, [mathverse_row(1, "Text Lite")])
    split = datasets.load_dataset("parquet", data_files=str(file), split="train")
    datasets.DatasetDict({"testmini": split}).save_to_disk(tmp_path / "saved")
    task = copied_task("interfeedback_mathverse", tmp_path / "saved", name="copy", folder=tmp_path)
    episode = reader_of(task).episode(0, 0)
    assert episode.question.content[0].data == picture(COLOURS[1])["bytes"]
    assert (episode.cluster, episode.options) == ("1", OPTIONS)


def test_a_copy_for_renamed_columns_keeps_the_others(tmp_path):
    rows = [mathverse_row(1, "Text Lite")]
    renamed = [{("solution" if name == "answer" else name): value for name, value in row.items()} for row in rows]
    features = {("solution" if name == "answer" else name): value for name, value in MATHVERSE_FEATURES.items()}
    data = write_parquet(tmp_path / "renamed.parquet", renamed, features)
    task = copied_task("interfeedback_mathverse", data, name="copy", folder=tmp_path, columns=("answer=solution",))
    episode = reader_of(task).episode(0, 0)
    assert (episode.target, episode.cluster, episode.options) == ("B", "1", OPTIONS)


def test_a_copy_for_data_of_another_shape_starts_from_its_own_columns(tmp_path):
    data = tmp_path / "mine.jsonl"
    data.write_text(json.dumps({"text": "Which?", "choices": ["x", "y"], "gold": "x"}))
    pairs = ("question=text", "options=choices", "answer=gold")
    task = copied_task("interfeedback_mathverse", data, name="copy", folder=tmp_path, columns=pairs)
    block = config_from_file(task)["metadata"]["interbench"]
    assert block["columns"] == {"question": "text", "options": "choices", "answer": "gold"}
    assert "cluster" not in block
    assert "answer_is" not in block


# --- the real rows ------------------------------------------------------------------------------------------------


@pytest.fixture
def text_only(shared_data):
    return shared_data / "mathverse" / "testmini_text_only.json"


def test_each_real_multiple_choice_row_can_be_read(text_only):
    rows = json.loads(text_only.read_text(encoding="utf-8"))
    read = {row["sample_index"]: choices_in_text(row["question"], row["sample_index"]).options for row in rows}
    choice = [row for row in rows if row["question_type"] == "multi-choice"]
    assert len(choice) == 436
    assert all(bool(read[row["sample_index"]]) == (row in choice) for row in rows)
    assert Counter(len(read[row["sample_index"]]) for row in choice) == {4: 366, 5: 30, 2: 21, 3: 12, 6: 7}
    assert [key for key, options in read.items() if "" in options.values()] == ["622"]  # two choices are drawn
    assert [key for key, options in read.items() if any("\n" in text for text in options.values())] == ["99", "124"]


def test_the_real_answers_become_letters_but_for_two_with_two_letters(tmp_path, text_only):
    task = copied_task("interfeedback_mathverse_text_only", text_only, name="copy", folder=tmp_path)
    reader = reader_of(task)
    episodes = [reader.episode(doc_id, 0) for doc_id in range(788)]
    odd = {episode.id: episode.target for episode in episodes if episode.options and episode.target not in "ABCDEF"}
    assert odd == {"440": "C\nD", "555": "A\nC"}
    targets = {episode.id: episode.target for episode in episodes}
    assert [targets[key] for key in ("339", "340", "429", "430")] == ["A", "A", "B", "A"]
    assert [targets[key] for key in ("517", "518", "521", "523")] == ["C", "C", "B", "B"]


@pytest.mark.slow
@pytest.mark.integration
def test_all_788_real_rows_play_through_the_harness(tmp_path, text_only):
    copied_task("interfeedback_mathverse_text_only", text_only, name="real_text_only", folder=tmp_path)
    lmms_eval(
        *("--model", "interbench_simulated", "--model_args", "accuracy=0.5,invalid=0.1"),
        *("--tasks", "real_text_only", "--include_path", tmp_path, "--output_path", tmp_path / "out"),
        INTERBENCH_PROVIDER="simulated:teacher,solve=0.8",
    ).check()
    table = metrics(tmp_path / "out")
    kept = records(tmp_path / "out")
    assert [record["doc_id"] for record in kept] == list(range(788))
    unscored = {record["episode_id"] for record in kept if record["status"] != "finished"}
    # Without the verifier that knows sets of letters, the two answers with two letters each are unscored.
    assert {record["target"] for record in kept if record["status"] != "finished"} <= {"C\nD", "A\nC"}
    assert table["accuracy"]["n"] == 788 - len(unscored)
    assert 0.4 < table["accuracy"]["value"] < 0.6
    assert table["n_test"]["value"] > 200
