"""Models of the harness for tests: each does what real backends of the harness do, on purpose the awkward way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lmms_eval import utils
from lmms_eval.api.model import lmms
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks import TaskManager

Answer = Callable[[list[dict[str, Any]]], Any]


class FakeModel(lmms):
    """What all fakes share; `answer` gets [{role, text, pictures}] and returns what `generate_until` gives back."""

    def __init__(self, answer: Answer, batch_size: int = 4) -> None:
        super().__init__()
        self.answer = answer
        self.batch_size = batch_size
        self.batches: list[int] = []
        self.threads: set[int] = set()
        self.conversations: list[list[dict[str, Any]]] = []

    @property
    def device(self) -> str:
        return "cpu"

    def loglikelihood(self, requests):
        raise NotImplementedError

    def generate_until_multi_round(self, requests):
        raise NotImplementedError("most backends have none")

    def remember(self, conversation: list[dict[str, Any]]) -> Any:
        self.conversations.append(conversation)
        return self.answer(conversation)


class ChatModel(FakeModel):
    """Like the harness's chat backends: the FIRST request's function is applied to the whole batch."""

    is_simple = False

    def generate_until(self, requests):
        self.batches.append(len(requests))
        self.threads.add(threading.get_ident())
        order = utils.Collator(
            [request.args for request in requests], lambda x: (x[0], x[0]), group_fn=lambda x: x[2], grouping=True
        )
        replies = []
        for chunk in order.get_batched(n=self.batch_size, batch_fn=None):
            _, functions, _, doc_ids, tasks, splits = zip(*chunk, strict=True)
            documents = [self.task_dict[tasks[0]][splits[0]][doc_id] for doc_id in doc_ids]
            for messages in [functions[0](document) for document in documents]:
                replies.append(self.remember([_plain(message) for message in messages]))
                messages.clear()  # backends change what they get
        return order.get_original(replies)


class SimpleModel(FakeModel):
    """Like the harness's simple backends: a text and a list of pictures, by the FIRST request's function."""

    is_simple = True

    def generate_until(self, requests):
        self.batches.append(len(requests))
        replies = []
        for start in range(0, len(requests), self.batch_size):
            chunk = [request.args for request in requests[start : start + self.batch_size]]
            contexts, _, visuals, doc_ids, tasks, splits = zip(*chunk, strict=True)
            for context, doc_id in zip(contexts, doc_ids, strict=True):
                pictures = visuals[0](self.task_dict[tasks[0]][splits[0]][doc_id])
                replies.append(self.remember([{"role": "user", "text": context, "pictures": list(pictures)}]))
        return replies


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    parts = message["content"]
    return {
        "role": message["role"],
        "text": "".join(part["text"] for part in parts if part["type"] == "text"),
        "pictures": [part["url"] for part in parts if part["type"] == "image"],
    }


TASK_YAML = """\
task: {name}
class: !function interbench_tasks.harness.task.InteractiveTask
dataset_path: json
dataset_kwargs: {{data_files: {data}}}
test_split: test
generation_kwargs: {{until: [], max_new_tokens: 64, temperature: 0}}
metadata:
  version: 1.0
  interbench:
    protocol: feedback_loop
    arms: [detail, simple]
    verifier: choice
    roles: {{provider: "simulated:helper,solve=1,invalid=0"}}
{extra}"""


def write_task(folder: Path, rows: list[dict[str, Any]], *, name: str = "bridge_task", extra: str = "") -> Path:
    """A task YAML and its data in `folder`; `extra` is indented as keys of metadata.interbench."""
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    yaml = folder / f"{name}.yaml"
    yaml.write_text(TASK_YAML.format(name=name, data=data, extra=extra), encoding="utf-8")
    return yaml


def question_rows(n: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"q{i}", "question": f"Question number {i}?", "options": ["w", "x", "y", "z"], "answer": "B", **more}
        for i in range(n)
    ]


def cli_args(output_path: Path | None, **more: Any) -> SimpleNamespace:
    """What the harness's command line hands to its evaluator; the default tags are the command line's own."""
    values = {
        "output_path": str(output_path) if output_path else None,
        "process_with_media": False,
        "reasoning_tags": '[["<think>", "</think>"], ["<reasoning>", "</reasoning>"]]',
        "model": "fake",
        "model_args": "",
    }
    return SimpleNamespace(**{**values, **more})


def evaluate(lm: lmms, folder: Path, *, name: str = "bridge_task", **more: Any) -> dict[str, Any]:
    """The harness's evaluator on one task of `folder`, with everything of the real one but the command line."""
    return simple_evaluate(
        model=lm,
        tasks=[name],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        cli_args=more.pop("args", None) or cli_args(folder / "out"),
        bootstrap_iters=0,
        **more,
    )


def records_of(folder: Path) -> list[dict[str, Any]]:
    """The transcript of the only run below `folder`."""
    (path,) = folder.rglob("episodes.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
