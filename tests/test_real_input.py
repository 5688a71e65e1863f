"""Real public data through the harness's command line, against a server whose every answer was decided beforehand."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from interbench_tasks.answers import ChoiceOrExactVerifier
from tests.cli import lmms_eval, metrics, records
from tests.planted import assert_metrics, expected_of
from tests.servers.chat_requests import pixel_digest
from tests.servers.openai_server import OpenAIServer
from tests.servers.planted_brain import PlantedBrain, PlantedItem, PlantedRates

pytestmark = pytest.mark.integration
RECEIVER, PROVIDER = "receiver-1", "provider-1"


def puzzle_items(folder: Path) -> list[PlantedItem]:
    items = []
    for line in (folder / "test.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        options = {"ABCDEFGH"[i]: str(option) for i, option in enumerate(row["options"])}
        (target,) = [letter for letter, text in options.items() if text == str(row["answer"])]
        with Image.open(folder / row["image"]) as picture:
            pixels = pixel_digest(picture)
        items.append(PlantedItem(id=row["id"], question=row["question"], target=target, options=options, pixels=pixels))
    return items


@pytest.fixture
def puzzles(shared_data):
    folder = shared_data / "puzzlevqa"
    return folder, puzzle_items(folder)


def planted_brain(items: list[PlantedItem]) -> PlantedBrain:
    return PlantedBrain(
        items,
        seed=7,
        models={
            RECEIVER: PlantedRates(accuracy=0.42, invalid=0.06, correction={"detail": 0.55, "simple": 0.3}),
            PROVIDER: PlantedRates(accuracy=0.7, invalid=0.04),
        },
    )


@pytest.mark.parametrize("model", ["interbench_api", pytest.param("async_openai", marks=pytest.mark.slow)])
def test_puzzlevqa_gives_exactly_the_planted_metrics(tmp_path, puzzles, model):
    folder, items = puzzles
    brain = planted_brain(items)
    expected = expected_of(brain, items, receiver=RECEIVER, provider=PROVIDER)
    with OpenAIServer(brain) as server:
        named = {
            "interbench_api": f"model=openai:{RECEIVER}@{server.url},max_concurrency=16",
            "async_openai": f"model_version={RECEIVER},base_url={server.url},api_key=none,num_cpus=16",
        }
        lmms_eval(
            *("--model", model, "--model_args", named[model]),
            *("--tasks", "interfeedback_local", "--output_path", tmp_path, "--log_samples"),
            INTERBENCH_DATA=str(folder / "test.jsonl"),
            INTERBENCH_PROVIDER=f"openai:{PROVIDER}@{server.url}",
        ).check()
        assert server.violations == []
        assert_metrics(metrics(tmp_path), expected)
        assert server.requests == expected.requests
    kept = records(tmp_path)
    assert [record["doc_id"] for record in kept] == list(range(400))
    assert all(record["turns"][0]["user"]["content"][0]["mime"] == "image/png" for record in kept)


MMREFINE_YAML = """\
task: mmrefine_recorded
class: !function interbench_tasks.harness.task.InteractiveTask
dataset_path: parquet
dataset_kwargs: {data_files: wrong.parquet}
test_split: test
generation_kwargs: {until: [], max_new_tokens: 512, temperature: 0}
metadata:
  version: 1.0
  interbench:
    protocol: feedback_loop
    arms: [detail, simple]
    verifier: choice_or_exact
    cluster: id
    columns:
      id: row_id
      question: question
      pictures: image
      options: options
      answer: answer
      first_answer: initial_solution
    roles: {provider: "openai:provider-1"}
"""


def mmrefine_rows(folder: Path) -> list[dict]:
    """The wrong solutions of four real models; rows of one question are not independent."""
    rows = parquet.read_table(folder / "test.parquet").to_pylist()
    return [
        row | {"row_id": f"{row['id']}_{row['solution_source']}"}
        for row in rows
        if row["solution_label"] == "incorrect"
    ]


def mmrefine_items(rows: list[dict]) -> dict[str, PlantedItem]:
    items = {}
    for row in rows:
        options = {"ABCDEFGH"[i]: option for i, option in enumerate(row["options"] or [])}
        pixels = None
        if row["image"] is not None:
            with Image.open(io.BytesIO(row["image"]["bytes"])) as picture:
                pixels = pixel_digest(picture)
        items[row["id"]] = PlantedItem(
            id=row["id"], question=row["question"].strip(), target=row["answer"], options=options, pixels=pixels
        )
    return items


def recorded_outcome(row: dict) -> str:
    options = {"ABCDEFGH"[i]: option for i, option in enumerate(row["options"] or [])}
    judgement = ChoiceOrExactVerifier().judge(row["initial_solution"], row["answer"], options)
    if judgement.correct:
        return "right"
    return "wrong" if judgement.extraction.answer is not None else "invalid"


@pytest.mark.slow
def test_mmrefine_solutions_stand_for_the_first_answers(tmp_path, shared_data):
    """533 wrong solutions of real models as recorded first answers: nobody pays for round 0."""
    rows = mmrefine_rows(shared_data / "mmrefine")
    assert len(rows) == 533
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "wrong.parquet")
    (tmp_path / "mmrefine_recorded.yaml").write_text(MMREFINE_YAML)
    items = mmrefine_items(rows)
    brain = planted_brain(list(items.values()))
    by_row = [replace(items[row["id"]], id=row["row_id"]) for row in rows]
    question_of = {row["row_id"]: row["id"] for row in rows}
    expected = expected_of(
        _Rows(brain, question_of),
        by_row,
        receiver=RECEIVER,
        provider=PROVIDER,
        recorded={row["row_id"]: recorded_outcome(row) for row in rows},
    )
    with OpenAIServer(brain, check_replies=False) as server:
        lmms_eval(
            *("--model", "interbench_api", "--model_args", f"model=openai:{RECEIVER}@{server.url}"),
            *("--tasks", "mmrefine_recorded", "--include_path", tmp_path, "--output_path", tmp_path / "out"),
            INTERBENCH_PROVIDER=f"openai:{PROVIDER}@{server.url}",
        ).check()
        assert server.violations == []
        assert server.counts.by_model[RECEIVER] <= 2 * expected.test
    found = metrics(tmp_path)
    assert_metrics(found, expected)
    assert found["correction_rate.simple"]["method"].startswith(("cluster", "wilson_by_cluster"))


class _Rows:
    """The planted outcomes of questions, asked by row."""

    def __init__(self, brain: PlantedBrain, question_of: dict[str, str]) -> None:
        self._brain, self._question_of = brain, question_of

    def expected(self, item_id: str, model: str, round: int = 0, *, arm: str = "") -> str:
        return self._brain.expected(self._question_of[item_id], model, round, arm=arm)
