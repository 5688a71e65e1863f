"""Writes the generated parts of the documents from the code; `scripts/docs` runs it.

The hook reference comes from interbench_tasks/hookspecs.py and metric_sets.py, the table of tasks from task_yamls/.
Each goes between two marker lines, `<!-- hooks:begin -->` and `<!-- hooks:end -->`; everything outside the markers is
written by hand.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
HOOK_FILES = ("hookspecs.py", "metric_sets.py")
"""The hooks stand in the first."""
FIELDS = ("Called", "Args", "Returns", "Several plugins", "Since")


class DocsError(Exception):
    """A document or its source cannot be used; the text says which and why."""


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write the generated parts, or with `--check` only compare; 0 where all is well, 1 where a document is stale."""
    unknown = [argument for argument in arguments if argument != "--check"]
    if unknown:
        sys.stderr.write(f"scripts/docs: unknown argument {unknown[0]!r}\n  allowed: --check\n")
        return 2
    stale = []
    for document, marker, generate in PARTS:
        path = root / document
        old = path.read_text(encoding="utf-8")
        new = with_part(old, marker, generate(root), document)
        if new != old:
            stale.append(document)
            if "--check" not in arguments:
                path.write_text(new, encoding="utf-8")
    if "--check" in arguments and stale:
        sys.stderr.write(f"scripts/docs: out of date: {', '.join(stale)}\n  bring up to date with: scripts/docs\n")
        return 1
    sys.stdout.write(f"scripts/docs: {'wrote ' + ', '.join(stale) if stale else 'all up to date'}\n")
    return 0


def with_part(text: str, marker: str, part: str, document: str) -> str:
    """The document with `part` between the lines of `marker`.

    Raises: DocsError where the marker lines are missing, doubled or in the wrong order.
    """
    begin, end = f"<!-- {marker}:begin -->\n", f"<!-- {marker}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise DocsError(f"{document}: needs the line {begin.strip()} and after it {end}, each once")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{part.strip()}\n\n{end}{rest.split(end)[1]}"


def hook_reference(root: Path) -> str:
    """The hooks in the order of their file, then the protocols that a plugin's objects fulfil."""
    files = [root / "interbench_tasks" / name for name in HOOK_FILES]
    nodes = [node for path in files if path.exists() for node in ast.parse(path.read_text(encoding="utf-8")).body]
    hooks = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("interbench_")]
    protocols = [node for node in nodes if isinstance(node, ast.ClassDef) and ast.get_docstring(node)]
    parts = ["### Hooks", *map(_hook, hooks), "### What they give and get", *map(_protocol, protocols)]
    return "\n\n".join(parts)


def _hook(node: ast.FunctionDef) -> str:
    summary, fields = _fields(ast.get_docstring(node) or "")
    lines = [f"#### `{node.name}`", "", f"`{_signature(node)}`", "", summary, ""]
    return "\n".join([*lines, *(f"- {name}: {text}" for name, text in fields.items())])


def _fields(docstring: str) -> tuple[str, dict[str, str]]:
    """The text before the first `Name:` line, and the text of each such line with its continuation lines."""
    summary: list[str] = []
    fields: dict[str, str] = {}
    for line in docstring.splitlines():
        name, colon, text = line.partition(":")
        if colon and not line.startswith(" ") and (name in FIELDS or name.isidentifier()):
            fields[name] = text.strip()
        elif fields:
            last = next(reversed(fields))
            fields[last] = f"{fields[last]} {line.strip()}".strip()
        else:
            summary.append(line.strip())
    return " ".join(summary).strip(), fields


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"{word} {node.name}({ast.unparse(node.args)}){returns}"


def _protocol(node: ast.ClassDef) -> str:
    lines = [f"#### `{node.name}`", "", " ".join((ast.get_docstring(node) or "").split()), ""]
    for index, member in enumerate(node.body):
        if isinstance(member, ast.AnnAssign):
            lines.append(_entry(ast.unparse(member), _text_after(node.body, index)))
        elif isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.append(_entry(_signature(member), " ".join((ast.get_docstring(member) or "").split())))
    return "\n".join(lines)


def _entry(code: str, text: str) -> str:
    return f"- `{code}`" + (f": {text}" if text else "")


def _text_after(body: Sequence[ast.stmt], index: int) -> str:
    """The string that documents an attribute: the expression on the line after it."""
    following = body[index + 1] if index + 1 < len(body) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return " ".join(str(following.value.value).split())
    return ""


def tasks_table(root: Path) -> str:
    """One row for each task that we ship, by name."""
    rows = [_task_row(path, config) for path, config in task_configs(root / "task_yamls")]
    head = ["| task | protocol | items | data |", "|---|---|---|---|"]
    return "\n".join([*head, *sorted(rows)])


def task_configs(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each YAML below `folder` that is a task, with its includes resolved as the harness does it."""
    for path in sorted(folder.rglob("*.yaml")):
        config = _loaded(path)
        if isinstance(config.get("task"), str):
            yield path, config


def _loaded(path: Path) -> dict[str, Any]:
    """Includes are the harness's: a file's own top-level keys replace those of the included file as a whole."""
    own = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    if not isinstance(own, dict):
        raise DocsError(f"{path}: must be a mapping of keys to values")
    included: dict[str, Any] = {}
    names = own.pop("include", [])
    for name in reversed([names] if isinstance(names, str) else names):
        included.update(_loaded(path.parent / name))
    return {**included, **own}


class _Loader(yaml.SafeLoader):
    """Reads our YAMLs without importing what `!function` names."""


_Loader.add_constructor("!function", lambda loader, node: str(node.value))


def _task_row(path: Path, config: Mapping[str, Any]) -> str:
    options = (config.get("metadata") or {}).get("interbench") or {}
    items, data = _items_and_data(path, config)
    return f"| `{config['task']}` | {options.get('protocol', '')} | {items} | {data} |"


def _items_and_data(path: Path, config: Mapping[str, Any]) -> tuple[str, str]:
    """How many items a task has, empty where only its data set knows, and where they come from."""
    files = _data_files(config)
    shipped = [path.parent / name for name in files if (path.parent / name).is_file()]
    if files and len(shipped) == len(files):
        lines = all(file.suffix == ".jsonl" for file in shipped)
        return str(sum(map(_rows, shipped))) if lines else "", "shipped with the package"
    if config.get("dataset_path") == "INTERBENCH_DATA":
        return "", "your own file, named by `INTERBENCH_DATA`"
    if files or config.get("dataset_path") in (None, "json", "parquet"):
        return "", "your own file"
    name = config.get("dataset_name")
    return "", f"`{config['dataset_path']}`" + (f", {name}" if name else "")


def _data_files(config: Mapping[str, Any]) -> list[str]:
    named = (config.get("dataset_kwargs") or {}).get("data_files") or []
    if isinstance(named, Mapping):
        named = list(named.values())
    return [named] if isinstance(named, str) else [str(name) for name in named]


def _rows(path: Path) -> int:
    return sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


PARTS: tuple[tuple[str, str, Callable[[Path], str]], ...] = (
    ("CONTRIBUTING.md", "hooks", hook_reference),
    ("README.md", "tasks", tasks_table),
)
"""Document, marker, and what makes the text between the marker's lines."""


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except DocsError as error:
        sys.exit(f"scripts/docs: {error}")
