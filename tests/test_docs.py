"""The generated parts of the documents: what they hold, and that a stale one is found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def write_docs():
    spec = importlib.util.spec_from_file_location("write_docs", ROOT / "scripts" / "write_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKSPECS = '''
@hookspec
def interbench_watched(record: Record, *, late: bool = False) -> None:
    """Watch something end.

    Called: once, after everything
        was written.
    record: what ended.
    Returns: nothing.
    Several plugins: all are called.
    Since: 0.1
    """

def helper() -> None:
    """Not a hook."""

class Judge(Protocol):
    """Says what is right."""

    name: str
    """As shown in results."""
    silent: bool

    async def judge(self, text: str) -> float:
        """A score."""

class Undocumented: ...
'''

TASK = """
task: quiz
include: _quiz_yaml
dataset_path: json
dataset_kwargs:
  data_files: {test: quiz.jsonl}
"""

TEMPLATE = """
class: !function interbench_tasks.harness.task.InteractiveTask
dataset_kwargs: {data_files: replaced.jsonl, token: false}
metadata: {version: 1.0, interbench: {protocol: feedback_loop}}
"""


@pytest.fixture
def root(tmp_path):
    """A small project with one hook, one task, and both documents."""
    files = {
        "interbench_tasks/hookspecs.py": HOOKSPECS,
        "task_yamls/quiz/quiz.yaml": TASK,
        "task_yamls/quiz/_quiz_yaml": TEMPLATE,
        "task_yamls/quiz/quiz.jsonl": '{"a": 1}\n{"a": 2}\n\n',
        "CONTRIBUTING.md": "before\n<!-- hooks:begin -->\nold\n<!-- hooks:end -->\nafter\n",
        "README.md": "# Title\n\n<!-- tasks:begin -->\n<!-- tasks:end -->\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_only_what_stands_between_the_markers_is_written(write_docs, root):
    assert write_docs.main([], root) == 0
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- hooks:begin -->\n\n### Hooks\n")
    assert text.endswith("\n\n<!-- hooks:end -->\nafter\n")
    assert "old" not in text


def test_writing_twice_changes_nothing(write_docs, root, capsys):
    write_docs.main([], root)
    before = [(root / name).read_bytes() for name in ("README.md", "CONTRIBUTING.md")]
    assert write_docs.main([], root) == 0
    assert [(root / name).read_bytes() for name in ("README.md", "CONTRIBUTING.md")] == before
    assert capsys.readouterr().out.endswith("all up to date\n")


def test_check_names_the_stale_documents_and_the_cure_and_writes_nothing(write_docs, root, capsys):
    before = (root / "README.md").read_bytes()
    assert write_docs.main(["--check"], root) == 1
    assert capsys.readouterr().err == (
        "scripts/docs: out of date: CONTRIBUTING.md, README.md\n  bring up to date with: scripts/docs\n"
    )
    assert (root / "README.md").read_bytes() == before


def test_check_passes_after_writing_and_fails_after_a_hook_changed(write_docs, root):
    write_docs.main([], root)
    assert write_docs.main(["--check"], root) == 0
    specs = root / "interbench_tasks" / "hookspecs.py"
    specs.write_text(HOOKSPECS.replace("all are called", "the first one wins"), encoding="utf-8")
    assert write_docs.main(["--check"], root) == 1


def test_the_hook_reference_has_each_line_of_the_docstring(write_docs, root):
    text = write_docs.hook_reference(root)
    assert "#### `interbench_watched`" in text
    assert "`def interbench_watched(record: Record, *, late: bool=False) -> None`" in text
    assert "- Called: once, after everything was written.\n- record: what ended.\n- Returns: nothing." in text
    assert "helper" not in text


def test_the_hook_reference_has_the_protocols_with_their_members(write_docs, root):
    text = write_docs.hook_reference(root)
    assert "#### `Judge`\n\nSays what is right.\n\n- `name: str`: As shown in results.\n- `silent: bool`\n" in text
    assert "- `async def judge(self, text: str) -> float`: A score." in text
    assert "Undocumented" not in text


def test_the_task_table_counts_the_items_of_a_shipped_file(write_docs, root):
    rows = write_docs.tasks_table(root).splitlines()[2:]
    assert rows == ["| `quiz` | feedback_loop | 2 | shipped with the package |"]


@pytest.mark.parametrize(
    ("lines", "cells"),
    [
        ("dataset_path: org/quiz\ndataset_name: hard", "|  | `org/quiz`, hard |"),
        ("dataset_path: org/quiz", "|  | `org/quiz` |"),
        ("dataset_path: INTERBENCH_DATA", "|  | your own file, named by `INTERBENCH_DATA` |"),
        ("dataset_path: parquet", "|  | your own file |"),
        ("dataset_path: json\ndataset_kwargs: {data_files: not/there.jsonl}", "|  | your own file |"),
    ],
)
def test_the_task_table_says_where_other_items_come_from(write_docs, root, lines, cells):
    (root / "task_yamls" / "quiz" / "quiz.yaml").write_text(f"task: quiz\n{lines}\n", encoding="utf-8")
    assert write_docs.tasks_table(root).splitlines()[2] == f"| `quiz` |  {cells}"


def test_a_yaml_that_is_no_mapping_is_named(write_docs, root):
    (root / "task_yamls" / "list.yaml").write_text("- a\n", encoding="utf-8")
    with pytest.raises(write_docs.DocsError, match=r"list\.yaml: must be a mapping"):
        write_docs.tasks_table(root)


@pytest.mark.parametrize(
    "text",
    ["no markers", "<!-- tasks:end -->\n<!-- tasks:begin -->\n", 2 * "<!-- tasks:begin -->\n<!-- tasks:end -->\n"],
)
def test_missing_or_doubled_markers_are_an_error(write_docs, root, text):
    (root / "README.md").write_text(text, encoding="utf-8")
    with pytest.raises(write_docs.DocsError, match=r"README\.md: needs the line <!-- tasks:begin -->"):
        write_docs.main([], root)


def test_an_unknown_argument_is_an_error(write_docs, root, capsys):
    assert write_docs.main(["--chekc"], root) == 2
    assert "unknown argument '--chekc'" in capsys.readouterr().err


def test_the_documents_are_up_to_date(write_docs):
    assert write_docs.main(["--check"]) == 0, "run scripts/docs"
