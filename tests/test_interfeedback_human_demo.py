"""The items of `interfeedback_human_demo`: what the script makes, with feedback that leaks in level 3 only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import datasets
import pytest
from PIL import Image

from interbench_tasks.leaks import leak_check
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.report.human_layout import CATEGORIES
from interbench_tasks.task_files import own_tasks
from tests.published_rows import copied_task, reader_of

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "draw_interfeedback_human_demo.py"
SHIPPED = ROOT / "task_yamls" / "interfeedback" / "human_demo"
ITEMS = [json.loads(line) for line in (SHIPPED / "items.jsonl").read_text(encoding="utf-8").splitlines()]
LETTERS = "ABCD"
COLUMNS = ["id", "category", "question", "images", "options", "answer", "feedback_l1", "feedback_l2", "feedback_l3"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    subprocess.run([sys.executable, str(SCRIPT), "--out", str(folder)], check=True, timeout=120)
    return folder


def test_the_script_writes_exactly_the_shipped_items_and_pictures(made):
    assert (made / "items.jsonl").read_bytes() == (SHIPPED / "items.jsonl").read_bytes()
    names = {path.relative_to(made).as_posix() for path in made.rglob("*.png")}
    assert names == {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*.png")}
    for name in sorted(names):
        with Image.open(made / name) as new, Image.open(SHIPPED / name) as old:
            # Pixels, not bytes: zlib versions pack the same pixels differently.
            assert new.convert("RGB").tobytes() == old.convert("RGB").tobytes(), name


def test_an_answer_on_which_two_ways_differ_stops_the_script():
    code = "from demo_levels.item import checked; checked(3, 4, 'sum')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=False
    )
    assert "ValueError: sum: one way gives 3, the other 4" in done.stderr


def test_nothing_but_items_pictures_and_readme_is_shipped_and_it_is_small():
    found = {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*") if path.is_file()}
    assert found == {"items.jsonl", "README.md", *(image for item in ITEMS for image in item["images"])}
    assert sum((SHIPPED / name).stat().st_size for name in found) < 150_000
    assert "Licence: MIT" in (SHIPPED / "README.md").read_text(encoding="utf-8")


def test_there_are_40_items_in_the_papers_categories():
    assert all(list(item) == COLUMNS for item in ITEMS)
    assert len({item["id"] for item in ITEMS}) == 40
    counts = Counter(item["category"] for item in ITEMS)
    assert counts == {"visual_logic": 16, "mmmu_pro": 6, "mathverse": 6, "math_text": 6, "coding_text": 6}
    assert list(counts) == list(CATEGORIES)
    with_pictures = {item["category"] for item in ITEMS if item["images"]}
    assert with_pictures == {"visual_logic", "mmmu_pro", "mathverse"}
    assert all(bool(item["images"]) == (item["category"] in with_pictures) for item in ITEMS)
    assert len({(item["question"], *item["images"]) for item in ITEMS}) == 40


def test_options_are_four_and_different_and_their_letters_are_balanced():
    chosen = [item for item in ITEMS if item["options"]]
    assert all(len(set(item["options"])) == len(item["options"]) == 4 for item in chosen)
    assert Counter(item["answer"] for item in chosen) == dict.fromkeys(LETTERS, 8)
    free = [item["answer"] for item in ITEMS if not item["options"]]
    assert (len(free), all(answer.isdigit() for answer in free)) == (8, True)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["id"])
def test_levels_1_and_2_keep_the_answer_and_level_3_gives_it(item):
    options = dict(zip(LETTERS, item["options"], strict=False))
    leaks = [
        leak_check(
            item[f"feedback_l{level}"],
            item["answer"],
            options,
            decoy=None,
            known=[item["question"]],
            told=[],
            wrong=None,
        ).found
        for level in (1, 2, 3)
    ]
    assert leaks == [None, None, "stated"]
    assert len(item["feedback_l1"]) < len(item["feedback_l2"])
    assert len({item[f"feedback_l{level}"] for level in (1, 2, 3)}) == 3


def test_the_demo_becomes_episodes_with_their_texts_and_every_answer_can_be_read():
    reader = reader_of(own_tasks()["interfeedback_human_demo"])
    verifier = offers_from(build_plugin_manager()).verifiers["choice_or_exact"]()
    for doc_id, item in enumerate(ITEMS):
        episode = reader.episode(doc_id, 0)
        assert (episode.id, episode.target, episode.category) == (item["id"], item["answer"], item["category"])
        assert episode.levels == tuple(item[f"feedback_l{level}"] for level in (1, 2, 3))
        assert len(episode.question.pictures) == len(item["images"])
        judgement = verifier.judge(f"So it is.\nAnswer: {item['answer']}", episode.target, episode.options)
        assert judgement.correct


# --- the same layout for other data -----------------------------------------------------------------------------


def written(folder: Path, **changes) -> Path:
    path = folder / "items.jsonl"
    rows = [{**item, "images": [], **changes} for item in ITEMS if item["category"] == "math_text"]
    rows = [{key: value for key, value in row.items() if value != "left out"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("task", ["interfeedback_human", "interfeedback_human_local"])
def test_a_file_in_this_form_is_read(tmp_path, monkeypatch, task):
    monkeypatch.setenv("INTERBENCH_DATA", str(written(tmp_path)))
    monkeypatch.delenv("INTERBENCH_PROVIDER", raising=False)
    assert len(reader_of(own_tasks()[task]).episode(1, 0).levels) == 3


@pytest.mark.parametrize("column", ["category", "images", "feedback_l2"])
def test_another_layout_is_refused_with_the_columns_there_are(tmp_path, monkeypatch, column):
    monkeypatch.setenv("INTERBENCH_DATA", str(written(tmp_path, **{column: "left out"})))
    monkeypatch.delenv("INTERBENCH_PROVIDER", raising=False)
    with pytest.raises(Exception, match=rf"(?s)'{column}'.*it has: id, .*name your columns under"):
        reader_of(own_tasks()["interfeedback_human"])


def test_a_folder_saved_by_datasets_is_read(tmp_path, monkeypatch):
    monkeypatch.delenv("INTERBENCH_PROVIDER", raising=False)
    rows = [item for item in ITEMS if item["id"] in ("mathverse_01", "mathverse_02", "math_text_01")]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    columns["images"] = [[str(SHIPPED / image) for image in row["images"]] for row in rows]
    columns["options"] = [row["options"] or None for row in rows]
    features = {name: datasets.Value("string") for name in COLUMNS}
    features |= {"images": datasets.List(datasets.Image()), "options": datasets.List(datasets.Value("string"))}
    datasets.Dataset.from_dict(columns, features=datasets.Features(features)).save_to_disk(str(tmp_path / "saved"))
    monkeypatch.setenv("INTERBENCH_DATA", str(tmp_path / "saved"))
    reader = reader_of(own_tasks()["interfeedback_human"])
    first, second, third = (reader.episode(doc_id, 0) for doc_id in range(3))
    assert [len(episode.question.pictures) for episode in (first, second, third)] == [1, 1, 0]
    assert [len(episode.options) for episode in (first, second, third)] == [4, 0, 0]
    assert second.levels[0] == rows[1]["feedback_l1"]


def test_no_texts_are_needed_where_somebody_writes_them(tmp_path, monkeypatch):
    without = dict.fromkeys(["feedback_l1", "feedback_l2", "feedback_l3"], "left out")
    monkeypatch.setenv("INTERBENCH_DATA", str(written(tmp_path, **without)))
    monkeypatch.setenv("INTERBENCH_PROVIDER", "simulated:x")
    assert reader_of(own_tasks()["interfeedback_human_local"]).episode(0, 0).levels == ()


def test_a_copy_for_other_columns_needs_no_code(tmp_path, monkeypatch):
    monkeypatch.delenv("INTERBENCH_PROVIDER", raising=False)
    data = written(tmp_path, topic="sums")
    path = copied_task("interfeedback_human", data, name="mine", folder=tmp_path, columns=("category=topic",))
    assert reader_of(path).episode(0, 0).category == "sums"
