"""Write the items of `interfeedback_human_demo` into a folder, e.g. `--out task_yamls/interfeedback/human_demo`.

The same command always writes the same items. Every answer is found in two ways, and must be the same in both.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from demo_items.puzzle import LETTERS
from demo_levels import coding_text, math_text, mathverse, mmmu_pro, visual_logic
from demo_levels.item import Builder, Item

CATEGORIES: dict[str, Sequence[Builder]] = {
    "visual_logic": visual_logic.BUILDERS,
    "mmmu_pro": mmmu_pro.BUILDERS,
    "mathverse": mathverse.BUILDERS,
    "math_text": math_text.BUILDERS,
    "coding_text": coding_text.BUILDERS,
}
"""InterFeedback-Human's categories; two of five items are visual logic, as two of three are in the paper."""


def items() -> Iterator[tuple[str, str, Item]]:
    """All items in order: id, category, item. The right letters go round, from one category to the next."""
    place = 0
    for category, builders in CATEGORIES.items():
        for number, builder in enumerate(builders, start=1):
            item = builder(LETTERS[place % len(LETTERS)])
            place += bool(item.options)
            yield f"{category}_{number:02d}", category, item


def main(arguments: Sequence[str] | None = None) -> None:
    """Write `items.jsonl` and `images/` into the folder given by `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for items.jsonl and images/")
    chosen = parser.parse_args(arguments)
    (chosen.out / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for item_id, category, item in items():
        images = []
        if item.canvas is not None:
            images = [f"images/{item_id}.png"]
            item.canvas.finished().save(chosen.out / images[0], optimize=True)
        levels = {f"feedback_l{number}": text for number, text in enumerate(item.levels, start=1)}
        rows.append(
            {
                "id": item_id,
                "category": category,
                "question": item.question,
                "images": images,
                "options": list(item.options),
                "answer": item.answer,
                **levels,
            }
        )
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (chosen.out / "items.jsonl").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
