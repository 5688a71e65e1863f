"""Real public data with three providers and all controls, through the harness's command line, against planted servers.

Every metric, every borrowed explanation and every request is compared with what was planted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli import lmms_eval, metrics, records
from tests.planted_controls import (
    Expected,
    Lineup,
    assert_controlled_metrics,
    controlled_expected,
    second_pass_of,
    without_run,
)
from tests.published_rows import copied_task
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.controlled_brain import ControlledBrain, ControlledRates
from tests.servers.openai_server import OpenAIServer
from tests.servers.planted_brain import PlantedItem
from tests.test_real_input import puzzle_items

pytestmark = [pytest.mark.integration, pytest.mark.slow]
RECEIVER = "receiver-1"
LINEUP = Lineup(
    receiver=RECEIVER,
    providers={"strong": "provider-1", "weak": "provider-2", "claude-planted": "claude-planted"},
    flip_sample=200,
)
MODELS = {
    RECEIVER: ControlledRates(
        accuracy=0.42,
        invalid=0.06,
        correction={"detail": 0.6, "simple": 0.35, "reask": 0.25, "mismatched": 0.3},
        flip={"detail": 0.3, "simple": 0.2, "reask": 0.1, "mismatched": 0.25},
    ),
    "provider-1": ControlledRates(accuracy=0.8, invalid=0.04, leak=0.2),
    "provider-2": ControlledRates(accuracy=0.5, invalid=0.1),
    "claude-planted": ControlledRates(accuracy=0.65, invalid=0.02, leak=0.05),
}


class Servers:
    """One of each API's shape, with one brain behind both."""

    def __init__(self, brain: ControlledBrain) -> None:
        self.brain = brain
        self.openai = OpenAIServer(brain, keep_requests=False)
        self.anthropic = AnthropicServer(brain, keep_requests=False)

    @property
    def violations(self) -> list[str]:
        return self.openai.violations + self.anthropic.violations

    @property
    def requests(self) -> int:
        return self.openai.requests + self.anthropic.requests

    def play(self, folder: Path, task: str, *more: str | Path, **environment: str) -> None:
        """One run of the command that a user would type."""
        lmms_eval(
            *("--model", "interbench_api"),
            *("--model_args", f"model=openai:{RECEIVER}@{self.openai.url},max_concurrency=24"),
            *("--tasks", task, "--output_path", folder, *more),
            INTERBENCH_PROVIDER=(
                f"openai:provider-1@{self.openai.url},name=strong,max_concurrency=16,"
                f"openai:provider-2@{self.openai.url},name=weak,max_concurrency=16,"
                f"anthropic:claude-planted@{self.anthropic.url},max_concurrency=16"
            ),
            ANTHROPIC_API_KEY="key-of-a-test",
            **environment,
        ).check()


@contextmanager
def servers_for(items: list[PlantedItem], **more: Any) -> Iterator[Servers]:
    servers = Servers(ControlledBrain(items, models=MODELS, seed=11, **more))
    with servers.openai, servers.anthropic:
        yield servers


def checked(
    folder: Path, servers: Servers, items: list[PlantedItem], asked_as: Mapping[str, str] | None = None
) -> Expected:
    """What was planted for the only run below `folder`, once all of its metrics and its pairs were found to be it."""
    assert servers.violations == []
    kept = records(folder)
    assert [record["doc_id"] for record in kept] == list(range(len(items)))
    lent = second_pass_of(kept, LINEUP)
    assert len(lent.flips) >= 100
    expected = controlled_expected(servers.brain, items, LINEUP, lent, asked_as=asked_as)
    assert_controlled_metrics(metrics(folder), expected)
    return expected


# --- PuzzleVQA --------------------------------------------------------------------------------------------------


@pytest.fixture
def puzzles(shared_data: Path) -> tuple[str, list[PlantedItem]]:
    folder = shared_data / "puzzlevqa"
    return str(folder / "test.jsonl"), puzzle_items(folder)


def test_puzzlevqa_gives_exactly_what_was_planted_and_asks_nothing_twice(tmp_path, puzzles):
    data, items = puzzles
    environment = {"INTERBENCH_DATA": data, "INTERBENCH_LEDGER": "off"}
    with servers_for(items, slowest_s=0.02) as servers:
        servers.play(tmp_path, "interfeedback_local_controlled", **environment)
    expected = checked(tmp_path, servers, items)
    assert servers.brain.counts == expected.asked
    assert set(expected.asked.values()) == {1}
    assert servers.requests == expected.asked.total()


def test_the_same_command_again_asks_nothing_and_says_the_same(tmp_path, puzzles):
    data, items = puzzles
    with servers_for(items) as servers:
        servers.play(tmp_path / "one", "interfeedback_local_controlled", INTERBENCH_DATA=data)
        asked = servers.brain.counts
        servers.play(tmp_path / "two", "interfeedback_local_controlled", INTERBENCH_DATA=data)
        assert servers.brain.counts == asked
    expected = checked(tmp_path / "one", servers, items)
    assert asked == expected.asked
    assert servers.requests == asked.total()
    assert without_run(records(tmp_path / "two")) == without_run(records(tmp_path / "one"))
    assert metrics(tmp_path / "two") == metrics(tmp_path / "one")


# --- MathVerse --------------------------------------------------------------------------------------------------

ODD_ANSWERS = {
    "339": "A",  # 090^circ T
    "340": "A",  # 053 ^circ T
    "429": "B",  # False
    "430": "A",  # False
    "517": "C",  # (C)
    "518": "C",
    "521": "B",  # (B)
    "523": "B",
}
"""Multiple-choice answers that are no plain letter, by `sample_index`, read off the data by hand."""
SEVERAL = {"440": "C, D", "555": "A, C"}
"""Answers of two letters: how they are said."""


def mathverse_items(path: Path) -> list[PlantedItem]:
    """All 788 rows, read apart from our own code."""
    return [_mathverse_item(row) for row in json.loads(path.read_text(encoding="utf-8"))]


def _mathverse_item(row: dict[str, Any]) -> PlantedItem:
    key = row["sample_index"]
    stem, *lines = re.split(r"\n\s*Choices?:\s*\n", row["question"])
    options = dict(re.findall(r"^([A-Z])\s*[:.](.*)", lines[0], re.MULTILINE)) if lines else {}
    target = ODD_ANSWERS.get(key, row["answer"].strip())
    return PlantedItem(id=key, question=stem.strip(), target=target, options=options, said=SEVERAL.get(key))


def twins_among(items: list[PlantedItem]) -> dict[str, str]:
    """Item -> the first item that asks the very same; the data set has eight such pairs, three with two answers."""
    first: dict[str, str] = {}
    return {item.id: first.setdefault(item.question, item.id) for item in items}


@pytest.fixture
def mathverse(tmp_path: Path, shared_data: Path) -> tuple[list[PlantedItem], dict[str, str]]:
    """The items, and whom each is taken for; a copy of the task lies in the test's folder."""
    data = shared_data / "mathverse" / "testmini_text_only.json"
    copied_task("interfeedback_mathverse_text_only_controlled", data, name="real_controlled", folder=tmp_path)
    items = mathverse_items(data)
    asked_as = twins_among(items)
    assert len(items) - len(set(asked_as.values())) == 8
    return items, asked_as


def once_each(items: list[PlantedItem], asked_as: Mapping[str, str]) -> list[PlantedItem]:
    return [item for item in items if asked_as[item.id] == item.id]


def test_mathverse_gives_exactly_what_was_planted_and_asks_nothing_twice(tmp_path, mathverse):
    items, asked_as = mathverse
    with servers_for(once_each(items, asked_as), slowest_s=0.02) as servers:
        servers.play(tmp_path / "out", "real_controlled", "--include_path", tmp_path, INTERBENCH_LEDGER="off")
    expected = checked(tmp_path / "out", servers, items, asked_as)
    counts = servers.brain.counts
    assert counts.keys() == expected.asked.keys()
    # A pair that asks the very same may share a call that is in flight; every other thing is asked once.
    assert all(1 <= counts[asked] <= n for asked, n in expected.asked.items())
    twins = {key for key, n in Counter(asked_as.values()).items() if n > 1}
    assert {asked.item for asked, n in expected.asked.items() if n > 1} <= twins
    assert servers.requests == counts.total()


def test_mathverse_with_a_ledger_asks_each_thing_once_also_for_two_rows_that_ask_the_same(tmp_path, mathverse):
    items, asked_as = mathverse
    with servers_for(once_each(items, asked_as)) as servers:
        servers.play(tmp_path / "one", "real_controlled", "--include_path", tmp_path)
        asked = servers.brain.counts
        servers.play(tmp_path / "two", "real_controlled", "--include_path", tmp_path)
        assert servers.brain.counts == asked
    expected = checked(tmp_path / "one", servers, items, asked_as)
    assert asked == Counter(expected.asked.keys())
    assert without_run(records(tmp_path / "two")) == without_run(records(tmp_path / "one"))
    assert metrics(tmp_path / "two") == metrics(tmp_path / "one")
