"""The shipped items are exactly what the script draws, and are well formed; their answers have their own test file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "draw_interfeedback_demo.py"
SHIPPED = ROOT / "task_yamls" / "interfeedback" / "demo"
PARAMS = ROOT / "tests" / "data" / "interfeedback_demo_params.jsonl"
LETTERS = "ABCD"
CATEGORIES = {"next_shape", "number_logic", "odd_one_out", "counting", "transformation", "route"}


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


ITEMS = rows_of(SHIPPED / "items.jsonl")


def pixels(item):
    with Image.open(SHIPPED / item["image"]) as picture:
        return picture.convert("RGB")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder into which the script has drawn everything again, in its own process."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(SCRIPT), "--out", str(folder / "out"), "--params", str(folder / "params.jsonl")]
    subprocess.run(command, check=True, timeout=120)
    return folder


def test_the_script_writes_exactly_the_shipped_items(drawn):
    assert (drawn / "out" / "items.jsonl").read_bytes() == (SHIPPED / "items.jsonl").read_bytes()
    assert (drawn / "params.jsonl").read_bytes() == PARAMS.read_bytes()


def test_the_script_draws_exactly_the_shipped_pictures(drawn):
    again = {path.relative_to(drawn / "out").as_posix() for path in (drawn / "out").rglob("*.png")}
    assert again == {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*.png")}
    for name in sorted(again):
        with Image.open(drawn / "out" / name) as new, Image.open(SHIPPED / name) as old:
            assert new.size == old.size, name
            # Pixels, not bytes: zlib versions pack the same pixels differently.
            assert new.convert("RGB").tobytes() == old.convert("RGB").tobytes(), name


def test_nothing_but_items_pictures_and_readme_is_shipped():
    found = {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*") if path.is_file()}
    assert found == {"items.jsonl", "README.md", *(item["image"] for item in ITEMS)}


def test_every_row_has_the_columns_in_order_and_a_right_letter():
    for item in ITEMS:
        assert list(item) == ["id", "category", "image", "question", "options", "answer"]
        assert item["image"] == f"images/{item['id']}.png"
        assert item["answer"] in LETTERS
        assert item["question"].endswith("?")
        texts = [item["id"], item["question"], *item["options"]]
        assert all(isinstance(text, str) and text == text.strip() and text for text in texts)


def test_ids_are_unique_and_each_category_has_ten():
    assert len({item["id"] for item in ITEMS}) == len(ITEMS) == 60
    assert Counter(item["category"] for item in ITEMS) == dict.fromkeys(CATEGORIES, 10)
    assert all(item["id"].rsplit("_", 1)[0] == item["category"] for item in ITEMS)


def test_the_four_options_of_an_item_differ():
    for item in ITEMS:
        assert len(item["options"]) == len({option.casefold() for option in item["options"]}) == 4, item["id"]


def test_letters_are_balanced_overall_and_in_each_category():
    assert Counter(item["answer"] for item in ITEMS) == dict.fromkeys(LETTERS, 15)
    for category in CATEGORIES:
        counts = Counter(item["answer"] for item in ITEMS if item["category"] == category)
        assert sorted(counts.values()) == [2, 2, 3, 3], category


def test_an_option_that_is_one_letter_of_a_to_d_stands_at_its_own_letter():
    """Else `Answer: B` could mean the option B or the option whose text is B."""
    for item in ITEMS:
        short = {place: text for place, text in zip(LETTERS, item["options"], strict=True) if text in LETTERS}
        assert all(place == text for place, text in short.items()), item["id"]


def test_options_that_are_figures_a_to_d_stand_at_their_own_letters():
    for item in ITEMS:
        if "figures A to D" in item["question"]:
            assert item["options"] == [f"Figure {letter}" for letter in LETTERS], item["id"]


def test_numbers_as_options_rise_so_that_their_order_tells_nothing():
    for item in ITEMS:
        if all(option.isdigit() for option in item["options"]):
            numbers = [int(option) for option in item["options"]]
            assert numbers == sorted(numbers), item["id"]
            assert numbers[0] > 0, item["id"]


def test_no_two_items_have_the_same_picture():
    assert len({pixels(item).tobytes() for item in ITEMS}) == len(ITEMS)


def test_pictures_are_small_clear_and_readable_by_pillow():
    total = 0
    for item in ITEMS:
        size = (SHIPPED / item["image"]).stat().st_size
        total += size
        with Image.open(SHIPPED / item["image"]) as picture:
            picture.load()
            assert picture.format == "PNG"
            assert 320 <= picture.width <= 400
            assert 120 <= picture.height <= 400
            darkest, lightest = picture.convert("L").getextrema()
        assert size < 8000, item["id"]
        assert (darkest < 40, lightest) == (True, 255), item["id"]
    assert total < 400_000


def test_every_item_has_its_parameters_in_order():
    assert [row["id"] for row in rows_of(PARAMS)] == [item["id"] for item in ITEMS]
