"""Writes the conversations of `mmrc_demo` and draws their pictures; the same every time."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from demo_talks import daily, working
from demo_talks.talk import Written, written


def conversations() -> Iterator[Written]:
    """All conversations in order, each twin behind its own text version."""
    for talk in (*daily.TALKS, *working.TALKS):
        for modality in talk.modalities:
            yield written(talk, modality)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write `conversations.jsonl` and `images/` into the folder given by `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for conversations.jsonl and images/")
    chosen = parser.parse_args(arguments)
    (chosen.out / "images").mkdir(parents=True, exist_ok=True)
    lines = []
    for made in conversations():
        for path, card in made.pictures.items():
            card.canvas.finished().save(chosen.out / path, optimize=True)
        lines.append(json.dumps(made.row) + "\n")
    (chosen.out / "conversations.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
