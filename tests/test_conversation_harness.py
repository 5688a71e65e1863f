"""Conversations with models of the harness: batches over conversations, chat and simple backends, several tasks."""

from __future__ import annotations

import pytest

from tests.cli import metrics
from tests.conversation_runs import row, write_rows
from tests.harness_fakes import ChatModel, SimpleModel, evaluate, records_of

pytestmark = pytest.mark.integration
YAML = """\
task: bridge_task
class: !function interbench_tasks.harness.task.InteractiveTask
dataset_path: json
dataset_kwargs: {{data_files: {data}}}
test_split: test
generation_kwargs: {{until: [], max_new_tokens: 64, temperature: 0}}
metadata:
  version: 1.0
  interbench:
    protocol: conversation
    verifier: choice
    memories: [none, note_taking]
    roles: {{judge: "simulated:judge", notetaker: "simulated:taker"}}
"""


def write_task(folder, n=4, n_turns=3, n_questions=2):
    data = write_rows(folder, [row(f"talk{number}", n_turns, n_questions) for number in range(n)])
    (folder / "bridge_task.yaml").write_text(YAML.format(data=data), encoding="utf-8")


def echo(conversation) -> str:
    """Says which conversation it hears, so that a reply to another one is found."""
    first = conversation[0]["text"].partition(":")[0]
    return f"{first} {len(conversation)}"


def test_a_chat_backend_hears_each_conversation_and_no_other(tmp_path):
    write_task(tmp_path)
    model = ChatModel(echo, batch_size=4)
    evaluate(model, tmp_path)
    kept = records_of(tmp_path)
    assert len(kept) == 4
    for record in kept:
        name = record["episode_id"]
        texts = [turn["reply"]["text"] for turn in record["turns"] if turn["role"] == "receiver"]
        assert texts == [f"{name} 1", f"{name} 3", f"{name} 5", *[f"{name} 7"] * 4]
    assert sum(model.batches) == 4 * (3 + 4)
    assert model.batches.count(4) >= 6  # turns of four conversations side by side, then the questions of all
    assert len(model.threads) == 1


def test_a_simple_backend_gets_the_conversation_as_one_text(tmp_path):
    write_task(tmp_path, n=1, n_turns=2, n_questions=1)
    model = SimpleModel(lambda conversation: "heard", batch_size=2)
    evaluate(model, tmp_path)
    last = model.conversations[-1][0]["text"]
    assert "User: talk0: this is fact 0." in last
    assert "Assistant: heard" in last
    assert last.endswith("What is fact 0?\n\nAssistant:")


def test_a_backend_that_says_nothing_leaves_its_conversation_unscored_and_not_wrong(tmp_path):
    """An empty text from a backend of the harness: nobody knows why."""
    write_task(tmp_path)
    model = ChatModel(lambda said: "" if "talk1" in said[0]["text"] and len(said) == 3 else echo(said), batch_size=4)
    results = evaluate(model, tmp_path)
    kept = {record["episode_id"]: record for record in records_of(tmp_path)}
    assert kept["talk1"]["status"] == "failed"
    assert [end["reason"] for end in kept["talk1"]["ends"]] == ["reply_failed"]
    assert results["results"]["bridge_task"]["n_failed,none"] == 1
    found = metrics(tmp_path)["score.MR.none"]
    assert (found["n"], found["unscored"]) == (6, 2)
