"""Draw the items of `interfeedback_demo` into a folder, e.g. `--out task_yamls/interfeedback/demo`.

The same command always writes the same items. `--params FILE` also writes what was drawn, for the tests.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from demo_items import counting, next_shape, number_logic, odd_one_out, route, transformation
from demo_items.puzzle import LETTERS, Builder, Puzzle

SEED = "interfeedback_demo 1"
CATEGORIES: dict[str, Sequence[Builder]] = {
    "next_shape": next_shape.BUILDERS,
    "number_logic": number_logic.BUILDERS,
    "odd_one_out": odd_one_out.BUILDERS,
    "counting": counting.BUILDERS,
    "transformation": transformation.BUILDERS,
    "route": route.BUILDERS,
}


def right_letters(category: int) -> list[str]:
    """The right letters of a category's ten puzzles: each letter two or three times, over all categories 15 times."""
    letters = [*LETTERS, *LETTERS, *("AB" if category % 2 else "CD")]
    random.Random(f"{SEED} letters {category}").shuffle(letters)
    return letters


def puzzles() -> Iterator[tuple[str, str, str, Puzzle]]:
    """All puzzles in order: id, category, right letter, puzzle. Each has its own seed, so one can be changed alone."""
    for number, (category, builders) in enumerate(CATEGORIES.items()):
        for i, (builder, letter) in enumerate(zip(builders, right_letters(number), strict=True), start=1):
            item_id = f"{category}_{i:02d}"
            yield item_id, category, letter, builder(random.Random(f"{SEED} {item_id}"), letter)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write `items.jsonl` and `images/` into the folder given by `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for items.jsonl and images/")
    parser.add_argument("--params", type=Path, help="file for what was drawn, JSON lines")
    chosen = parser.parse_args(arguments)
    (chosen.out / "images").mkdir(parents=True, exist_ok=True)
    items: list[dict[str, object]] = []
    params: list[dict[str, object]] = []
    for item_id, category, letter, puzzle in puzzles():
        image = f"images/{item_id}.png"
        puzzle.canvas.finished().save(chosen.out / image, optimize=True)
        items.append(
            {
                "id": item_id,
                "category": category,
                "image": image,
                "question": puzzle.question,
                "options": list(puzzle.options),
                "answer": letter,
            }
        )
        params.append({"id": item_id, **puzzle.params})
    _write(chosen.out / "items.jsonl", items)
    if chosen.params is not None:
        _write(chosen.params, params)


def _write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
