"""Small data sets with exactly the columns and types that MathVerse and MMMU-Pro are published with."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import datasets
from PIL import Image
from typer.testing import CliRunner

from interbench_tasks.cli import app
from interbench_tasks.config import task_options_from
from interbench_tasks.items import ItemReader
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.task_files import data_of
from interbench_tasks.yaml_files import config_from_file

TEXT = datasets.Value("string")
MATHVERSE_FEATURES = {
    "sample_index": TEXT,
    "problem_index": TEXT,
    "problem_version": TEXT,
    "question": TEXT,
    "image": datasets.Image(),
    "answer": TEXT,
    "question_type": TEXT,
    "metadata": {"split": TEXT, "source": TEXT, "subject": TEXT, "subfield": TEXT},
    "query_wo": TEXT,
    "query_cot": TEXT,
    "question_for_eval": TEXT,
}
MMMU_PRO_FEATURES = {
    "id": TEXT,
    "question": TEXT,
    "options": TEXT,
    "explanation": TEXT,
    **{f"image_{number}": datasets.Image() for number in range(1, 8)},
    "img_type": TEXT,
    "answer": TEXT,
    "topic_difficulty": TEXT,
    "subject": TEXT,
}
VERSIONS = ("Text Dominant", "Text Lite", "Vision Intensive", "Vision Dominant", "Vision Only")
WO = {
    "multi-choice": "Please directly answer the question and provide the correct option letter, e.g., A, B, C, D.",
    "free-form": "Please directly answer the question and provide the final value, e.g., 1, 2.5, 300.",
}
COT = {
    "multi-choice": "Please first conduct reasoning, and then answer the question and provide the correct option "
    "letter, e.g., A, B, C, D, at the end.",
    "free-form": "Please first conduct reasoning, and then answer the question and provide the final value, e.g., 1, "
    "2.5, 300, at the end.",
}
COLOURS = ("red", "green", "blue", "gold", "pink", "gray", "navy")


def picture(colour: str, size: tuple[int, int] = (40, 30)) -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": f"{colour}.png"}


def mathverse_row(problem: int, version: str, **changes: Any) -> dict[str, Any]:
    """One version of a problem; odd problems are multiple-choice. As published, Vision Only has no question."""
    free = problem % 2 == 0
    kind = "free-form" if free else "multi-choice"
    full = f"Problem {problem}: how large is angle CED?" + ("" if free else "\nChoices:\nA:40°\nB:60°\nC:120°\nD:140°")
    asked = "" if version == "Vision Only" else full
    row = {
        "sample_index": str(5 * (problem - 1) + VERSIONS.index(version) + 1 if version in VERSIONS else problem),
        "problem_index": str(problem),
        "problem_version": version,
        "question": asked,
        "image": "" if version == "Text Only" else picture(COLOURS[problem % len(COLOURS)]),
        "answer": "60" if free else "B",
        "question_type": kind,
        "metadata": {"split": "testmini", "source": "GeoQA", "subject": "Plane Geometry", "subfield": "Angle"},
        "query_wo": WO[kind] + (f"\nQuestion: {asked}" if asked else ""),
        "query_cot": COT[kind] + (f"\nQuestion: {asked}" if asked else ""),
        "question_for_eval": full,
    }
    return row | changes


def mmmu_pro_row(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "id": f"test_History_{number}",
        "question": f"Question {number}: what does <image 1> show?",
        "options": "['a map', \"a king's hat\", 'a graph', 'a tree']",
        "explanation": "?",
        **{f"image_{place}": None for place in range(1, 8)},
        "image_1": picture(COLOURS[number % len(COLOURS)]),
        "img_type": "['Diagrams']",
        "answer": "C",
        "topic_difficulty": "Medium",
        "subject": "History" if number % 2 else "Art",
    }
    return row | changes


def write_parquet(path: Path, rows: list[dict[str, Any]], features: dict[str, Any]) -> Path:
    assert all(list(row) == list(features) for row in rows), "the columns differ from the published ones"
    columns = {name: [row[name] for row in rows] for name in features}
    datasets.Dataset.from_dict(columns, features=datasets.Features(features)).to_parquet(path)
    return path


def copied_task(source: str, data: Path, *, name: str, folder: Path, columns: tuple[str, ...] = ()) -> Path:
    """A copy of one of our tasks for local data, made as a user makes one.

    Where the expression verifier is not installed, the copy compares exactly.
    """
    words = ["new-task", "--from", source, "--data", str(data), "--name", name, "--out", str(folder)]
    result = CliRunner().invoke(app, [*words, *(word for pair in columns for word in ("--column", pair))])
    path = folder / f"{name}.yaml"
    assert path.is_file(), result.output
    offers = offers_from(build_plugin_manager())
    if "choice_or_math" not in offers.verifiers and "choice_or_math" in path.read_text(encoding="utf-8"):
        change(path, "verifier: choice_or_math", "verifier: choice_or_exact")
    return path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def reader_of(path: Path) -> ItemReader:
    """Makes the episodes of a task YAML."""
    config = config_from_file(path)
    options = task_options_from(config, where=str(path), offers=offers_from(build_plugin_manager()))
    return ItemReader(data_of(config, path), options.common)
