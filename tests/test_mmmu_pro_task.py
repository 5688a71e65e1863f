"""InterFeedback on MMMU-Pro: each picture stands where its token was, and bad rows are told with their place."""

from __future__ import annotations

import ast
import json
import re

import pytest

from interbench_tasks import Message
from interbench_tasks.backends.chat_bodies import chat_messages
from interbench_tasks.errors import DataError, PictureError
from interbench_tasks.harness.batched_model import text_of
from interbench_tasks.harness.models import InterbenchSimulated
from interbench_tasks.images import Picture, picture_from
from interbench_tasks.picture_grid import LABEL_HEIGHT, MARGIN, picture_grid
from interbench_tasks.pictures_in_text import numbered_texts, placed
from interbench_tasks.task_files import own_tasks
from interbench_tasks.yaml_files import config_from_file
from tests.harness_fakes import ChatModel, evaluate, records_of
from tests.published_rows import (
    COLOURS,
    MATHVERSE_FEATURES,
    MMMU_PRO_FEATURES,
    VERSIONS,
    change,
    copied_task,
    mathverse_row,
    mmmu_pro_row,
    picture,
    reader_of,
    write_parquet,
)

COT = (
    "Answer the preceding multiple choice question. The last line of your response should be of the following format: "
    "'Answer: $LETTER' (without quotes) where LETTER is one of options. Think step by step before answering."
)
DIRECT = "Answer with the option letter from the given choices directly."
TASKS = [
    "interfeedback_mmmu_pro",
    "interfeedback_mmmu_pro_direct",
    "interfeedback_mmmu_pro_10",
    "interfeedback_mmmu_pro_10_direct",
]
PHYLOGENIES = {  # options are shuffled in the data set: the first picture that is shown is image_3
    "question": "Which of the phylogenies differs?",
    "options": "['<image 3>', '<image 2>', '<image 4>', '<image 1>']",
    **{f"image_{number}": picture(COLOURS[number]) for number in (1, 2, 3, 4)},
}
CRYSTALS = {  # tokens appear again in the options
    "question": "Match salt and quartz with <image 1> and <image 2>.",
    "options": "['salt: <image 2>, quartz: <image 1>', 'salt: <image 1>, quartz: <image 2>']",
    "answer": "A",
    **{f"image_{number}": picture(COLOURS[number]) for number in (1, 2)},
}


def task_of(folder, rows, source="interfeedback_mmmu_pro", multi_image="native"):
    data = write_parquet(folder / "standard.parquet", rows, MMMU_PRO_FEATURES)
    task = copied_task(source, data, name="mmmu_copy", folder=folder)
    if multi_image != "native":
        change(task, "multi_image: native", f"multi_image: {multi_image}")
    return task


def episode_of(folder, row, **more):
    return reader_of(task_of(folder, [row], **more)).episode(0, 0)


def colour_at(shown: Picture, x: int = 5, y: int = 5) -> str:
    names = {tuple(picture_from(picture(name)).pil().getpixel((0, 0))): name for name in COLOURS}
    return names[shown.pil().getpixel((x, y))]


def plain(content) -> list[str]:
    """Texts as they are, a picture as its colour."""
    return [part if isinstance(part, str) else f"[{colour_at(part)}]" for part in content]


# --- prompts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "instruction"), [("interfeedback_mmmu_pro", COT), ("interfeedback_mmmu_pro_direct", DIRECT)]
)
def test_the_official_prompt_with_the_picture_in_the_place_of_its_token(tmp_path, source, instruction):
    episode = episode_of(tmp_path, mmmu_pro_row(1), source=source)
    assert plain(episode.question.content) == [
        "Question 1: what does ",
        "[green]",
        f" show?\nA. a map\nB. a king's hat\nC. a graph\nD. a tree\n{instruction}",
    ]
    assert episode.options == {"A": "a map", "B": "a king's hat", "C": "a graph", "D": "a tree"}
    assert (episode.id, episode.target, episode.category, episode.cluster) == ("test_History_1", "C", "History", None)


def test_the_tasks_differ_in_nothing_but_prompt_data_and_length():
    configs = {name: config_from_file(own_tasks()[name]) for name in TASKS}
    blocks = {name: dict(config["metadata"]["interbench"]) for name, config in configs.items()}
    prompts = {name: block.pop("prompts")["question"] for name, block in blocks.items()}
    assert all(block == blocks[TASKS[0]] for block in blocks.values())
    assert all(prompts[name].endswith(DIRECT if "direct" in name else COT) for name in TASKS)
    assert [configs[name]["generation_kwargs"]["max_new_tokens"] for name in TASKS] == [4096, 1024, 4096, 1024]
    assert [(c["dataset_path"], c["dataset_name"], c["test_split"]) for c in configs.values()] == [
        *[("MMMU/MMMU_Pro", "standard (4 options)", "test")] * 2,
        *[("MMMU/MMMU_Pro", "standard (10 options)", "test")] * 2,
    ]


def test_ten_options_are_lettered_to_j(tmp_path):
    row = mmmu_pro_row(1, options=str([f"text {number}" for number in range(10)]), answer="J")
    episode = episode_of(tmp_path, row, source="interfeedback_mmmu_pro_10")
    assert (episode.target, list(episode.options)) == ("J", list("ABCDEFGHIJ"))


# --- several pictures ---------------------------------------------------------------------------------------------


def test_pictures_go_out_in_the_order_of_their_tokens(tmp_path):
    episode = episode_of(tmp_path, mmmu_pro_row(1, **PHYLOGENIES))
    assert plain(episode.question.content) == [
        "Which of the phylogenies differs?\nA. ",
        f"[{COLOURS[3]}]",
        "\nB. ",
        f"[{COLOURS[2]}]",
        "\nC. ",
        f"[{COLOURS[4]}]",
        "\nD. ",
        f"[{COLOURS[1]}]",
        f"\n{COT}",
    ]


def test_feedback_prompts_number_the_pictures_as_they_are_shown(tmp_path):
    episode = episode_of(tmp_path, mmmu_pro_row(1, **PHYLOGENIES))
    assert episode.options == {"A": "<image 1>", "B": "<image 2>", "C": "<image 3>", "D": "<image 4>"}
    assert [colour_at(shown) for shown in episode.question.pictures] == [COLOURS[n] for n in (3, 2, 4, 1)]


def test_a_token_that_appears_again_keeps_its_text_and_the_picture_is_sent_once(tmp_path):
    episode = episode_of(tmp_path, mmmu_pro_row(1, **CRYSTALS))
    assert plain(episode.question.content) == [
        "Match salt and quartz with <image 1>",
        f"[{COLOURS[1]}]",
        " and <image 2>",
        f"[{COLOURS[2]}]",
        f".\nA. salt: <image 2>, quartz: <image 1>\nB. salt: <image 1>, quartz: <image 2>\n{COT}",
    ]


def test_a_picture_that_no_token_names_is_not_sent(tmp_path):
    row = mmmu_pro_row(1, explanation="As <image 2> shows.", image_2=picture("gold"))
    assert [colour_at(shown) for shown in episode_of(tmp_path, row).question.pictures] == ["green"]


def test_first_sends_only_the_first_picture_and_keeps_the_other_tokens(tmp_path):
    episode = episode_of(tmp_path, mmmu_pro_row(1, **PHYLOGENIES), multi_image="first")
    assert plain(episode.question.content) == [
        "Which of the phylogenies differs?\nA. ",
        f"[{COLOURS[3]}]",
        f"\nB. <image 2>\nC. <image 3>\nD. <image 4>\n{COT}",
    ]


def test_grid_sends_one_labelled_picture_that_is_encoded_once(tmp_path):
    episode = episode_of(tmp_path, mmmu_pro_row(1, **PHYLOGENIES), multi_image="grid")
    whole, text = episode.question.content
    assert text.startswith(
        "Which of the phylogenies differs?\nA. <image 1>\nB. <image 2>\nC. <image 3>\nD. <image 4>\n"
    )
    right, below = 4 * LABEL_HEIGHT + MARGIN, 30 + LABEL_HEIGHT + MARGIN
    places = [(0, 0), (right, 0), (0, below), (right, below)]
    found = [colour_at(whole, MARGIN + x + 20, MARGIN + LABEL_HEIGHT + y + 15) for x, y in places]
    assert found == [COLOURS[number] for number in (3, 2, 4, 1)]
    assert whole.encodings == 0
    assert whole.data == whole.data
    assert whole.base64
    assert whole.encodings == 1


def test_grid_leaves_a_single_picture_in_its_place(tmp_path):
    episode = episode_of(tmp_path, mmmu_pro_row(1), multi_image="grid")
    assert plain(episode.question.content)[:2] == ["Question 1: what does ", "[green]"]


def test_each_picture_of_a_grid_has_its_label_above_it():
    pictures = [picture_from(picture(colour)) for colour in COLOURS[:3]]
    whole = picture_grid(pictures, ["<image 1>", "<image 2>", "<image 3>"], max_side=None, where="")
    strips = whole.pil().convert("L")
    width, height = 4 * LABEL_HEIGHT + MARGIN, 30 + LABEL_HEIGHT + MARGIN
    for index in range(4):
        left, top = MARGIN + index % 2 * width, MARGIN + index // 2 * height
        strip = strips.crop((left, top, left + 4 * LABEL_HEIGHT, top + LABEL_HEIGHT - 2))
        assert (strip.getextrema()[0] < 128) == (index < 3)
    again = picture_grid(pictures, ["<image 1>", "<image 2>", "<image 3>"], max_side=None, where="")
    assert whole.digest == again.digest
    assert picture_grid(pictures, ["a", "b", "c"], max_side=64, where="").width <= 64


def test_a_large_picture_is_made_smaller_in_a_grid():
    large = picture_from(picture("red", size=(4000, 1000)))
    whole = picture_grid([large, large], ["<image 1>", "<image 2>"], max_side=None, where="")
    assert whole.width == 2 * (1024 + MARGIN) + MARGIN


def test_a_grid_needs_one_label_for_each_picture():
    with pytest.raises(ValueError, match="one label each, got 1 and 0"):
        picture_grid([picture_from(picture("red"))], [], max_side=None, where="")


@pytest.mark.parametrize(("mode", "n"), [("native", 2), ("first", 1), ("grid", 1)])
def test_the_modes_also_work_without_tokens(tmp_path, mode, n):
    task = task_of(tmp_path, [mmmu_pro_row(1, question="Which?", image_2=picture("blue"))])
    change(task, "tokens: true", "tokens: false")
    change(task, "multi_image: native", f"multi_image: {mode}")
    content = reader_of(task).episode(0, 0).question.content
    assert [isinstance(part, Picture) for part in content] == [True] * n + [False]


def test_a_prompt_that_leaves_out_a_token_is_an_error():
    red = picture_from(picture("red"))
    with pytest.raises(DataError, match=r"prompts.question leaves out <image 2>"):
        placed("only <image 1>", [red, red], "native", grid=lambda pictures, labels: red)


def test_a_template_that_quotes_the_row_sees_the_same_numbers(tmp_path):
    task = task_of(tmp_path, [mmmu_pro_row(1, **PHYLOGENIES)])
    change(task, "{{ question }}", "{{ row.question }} {{ row.options | join }}")
    change(task, "{{ letter }}. {{ text }}", "{{ letter }}")
    content = reader_of(task).episode(0, 0).question.content
    assert [part for part in plain(content) if part.startswith("[")] == [f"[{COLOURS[n]}]" for n in (3, 2, 4, 1)]


def test_tokens_with_leading_zeros_are_the_same_token():
    texts = numbered_texts("<image 02> and <image 2> and <image 1>", {})
    assert (texts.question, texts.numbers) == ("<image 1> and <image 1> and <image 2>", (2, 1))


# --- what backends get --------------------------------------------------------------------------------------------


def test_an_api_gets_texts_and_pictures_in_this_order(tmp_path):
    episode = episode_of(tmp_path, mmmu_pro_row(1, **CRYSTALS))
    (message,) = chat_messages([episode.question])
    assert [part["type"] for part in message["content"]] == ["text", "image_url", "text", "image_url", "text"]


def test_a_simple_backend_gets_numbers_in_the_places_of_pictures(tmp_path):
    shuffled = episode_of(tmp_path, mmmu_pro_row(1, **PHYLOGENIES))
    assert "\nA. <image 1>\nB. <image 2>\nC. <image 3>\nD. <image 4>\n" in text_of([shuffled.question])
    again = text_of([Message(role="user", content=("see <image 1>", *shuffled.question.pictures[:1], "!"))])
    assert again == "see <image 1>!"
    first = text_of([Message(role="user", content=(*shuffled.question.pictures, "Which?"))])
    assert first == "Which?"


@pytest.mark.integration
def test_a_chat_backend_of_the_harness_gets_each_picture_in_its_place(tmp_path):
    task = task_of(tmp_path, [mmmu_pro_row(1, **PHYLOGENIES), mmmu_pro_row(2)])
    change(task, "backend: openai", "backend: simulated")
    model = ChatModel(lambda conversation: "Answer: C")
    evaluate(model, tmp_path, name="mmmu_copy")
    firsts = {len(c[0]["pictures"]): c[0] for c in model.conversations}
    assert sorted(firsts) == [1, 4]
    shown = [shown.getpixel((5, 5)) for shown in firsts[4]["pictures"]]
    assert shown == [picture_from(picture(COLOURS[n])).pil().getpixel((0, 0)) for n in (3, 2, 4, 1)]


# --- bad rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_1": None}, "row 0, column image_1: is empty, but question or options have <image 1>"),
        ({"question": "See <image 9>."}, "row 0: question or options have <image 9>, but columns.pictures names 7"),
        ({"question": "See."}, "row 0, column image_1, .*: there is no picture, and this task needs one"),
        ({"answer": "E"}, r"row 0, column answer: answer 'E' is none of the options \(A: a map"),
        ({"options": "a map or a hat"}, "row 0, column options: options are a text that holds no list"),
        ({"options": "[['A', 'B']]"}, r"row 0, column options: an option must be a text, got \['A', 'B'\]"),
        ({"options": "[]"}, "row 0, column options: there are no options, and the verifier 'choice' needs them"),
        ({"image_1": {"bytes": b"no picture", "path": None}}, "row 0, column image_1: "),
    ],
)
def test_a_bad_row_names_file_row_and_column(tmp_path, changes, message):
    row = mmmu_pro_row(1, **changes)
    with pytest.raises(DataError, match=rf"standard\.parquet, {message}"):
        episode_of(tmp_path, row)


def test_a_broken_picture_in_a_grid_names_its_column(tmp_path):
    whole = picture("blue")["bytes"]
    row = mmmu_pro_row(1, **CRYSTALS) | {"image_2": {"bytes": whole[: len(whole) - 20], "path": None}}
    with pytest.raises(PictureError, match=r"standard\.parquet, row 0, column image_2"):
        episode_of(tmp_path, row, multi_image="grid")


@pytest.mark.integration
def test_it_plays_in_the_harness_and_bad_rows_fail_alone(tmp_path):
    rows = [mmmu_pro_row(number) for number in range(6)]
    rows[1] |= {"image_1": None}
    rows[4] |= {"answer": "K"}
    task = task_of(tmp_path, rows)
    change(task, "backend: openai", "backend: simulated")
    results = evaluate(InterbenchSimulated(accuracy=1.0, invalid=0.0), tmp_path, name="mmmu_copy")
    table = {name.removesuffix(",none"): value for name, value in results["results"]["mmmu_copy"].items()}
    assert (table["N"], table["accuracy"], table["accuracy.n"], table["n_failed"]) == (6, 1.0, 4, 2)
    errors = {record["doc_id"]: record["error"] for record in records_of(tmp_path) if record["status"] == "failed"}
    assert sorted(errors) == [1, 4]
    assert "standard.parquet, row 1, column image_1: is empty" in errors[1]
    assert "standard.parquet, row 4, column answer: answer 'K' is none of the options" in errors[4]


# --- the real rows, without their pictures ------------------------------------------------------------------------


def test_each_real_row_of_the_ten_option_version_can_be_read_but_one(tmp_path, shared_data):
    """Tokens, options and answers are the published ones; a picture of our own stands for each of theirs."""
    file = shared_data / "mmmu_pro_outputs" / "gpt-4o_standard10_cot.jsonl"
    published = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    shared = {f"image_{number}": picture(COLOURS[number - 1]) for number in range(1, 8)}
    rows = [{name: shared[name] if name in shared else row[name] for name in MMMU_PRO_FEATURES} for row in published]
    reader = reader_of(task_of(tmp_path, rows, source="interfeedback_mmmu_pro_10"))
    unread = {}
    for doc_id, row in enumerate(rows):
        tokens = re.findall(r"<image (\d+)>", row["question"] + "".join(map(str, ast.literal_eval(row["options"]))))
        try:
            episode = reader.episode(doc_id, 0)
        except DataError as error:
            unread[row["id"]] = str(error)
            continue
        assert [colour_at(shown) for shown in episode.question.pictures] == [
            COLOURS[int(number) - 1] for number in dict.fromkeys(tokens)
        ]
    assert list(unread) == ["validation_Accounting_29"]
    assert "an option must be a text, got ['A', 'B', 'Not enough information']" in unread["validation_Accounting_29"]


# --- groups -------------------------------------------------------------------------------------------------------

GROUPS = {
    "interfeedback": ["interfeedback_mathverse", "interfeedback_mmmu_pro"],
    "interfeedback_direct": ["interfeedback_mathverse", "interfeedback_mmmu_pro_direct"],
    "interfeedback_cot": ["interfeedback_mathverse_cot", "interfeedback_mmmu_pro"],
}


@pytest.mark.integration
def test_the_harness_knows_our_groups_and_their_tasks():
    from lmms_eval.tasks import TaskManager

    manager = TaskManager()
    assert set(GROUPS) <= set(manager.all_groups)
    assert {name: manager._get_config(name)["task"] for name in GROUPS} == GROUPS
    assert {task for tasks in GROUPS.values() for task in tasks} <= set(manager.all_tasks)
    assert "-" not in own_tasks()


@pytest.mark.integration
def test_a_group_plays_each_of_its_tasks(tmp_path):
    mathverse = [mathverse_row(1, version) for version in VERSIONS]
    data = write_parquet(tmp_path / "testmini.parquet", mathverse, MATHVERSE_FEATURES)
    tasks = [
        copied_task("interfeedback_mathverse", data, name="group_mathverse", folder=tmp_path),
        copied_task(
            "interfeedback_mmmu_pro",
            write_parquet(tmp_path / "standard.parquet", [mmmu_pro_row(n) for n in range(4)], MMMU_PRO_FEATURES),
            name="group_mmmu_pro",
            folder=tmp_path,
        ),
    ]
    for task in tasks:
        change(task, "backend: openai", "backend: simulated")
    (tmp_path / "group.yaml").write_text("group: both\ntask:\n  - group_mathverse\n  - group_mmmu_pro\n")
    results = evaluate(InterbenchSimulated(), tmp_path, name="both")
    assert {name: results["results"][name]["N,none"] for name in ("group_mathverse", "group_mmmu_pro")} == {
        "group_mathverse": 5,
        "group_mmmu_pro": 4,
    }
    assert results["group_subtasks"]["both"] == ["group_mathverse", "group_mmmu_pro"]
