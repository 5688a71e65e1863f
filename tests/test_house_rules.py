"""The rules of the house that a machine can check: data flows one way, and nobody goes round the doors."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

import interbench_tasks
from interbench_tasks import errors

ROOT = Path(__file__).resolve().parents[1]

FLOW = [
    "errors",
    "settings",
    "redaction",
    "reasoning",
    "file_names",
    "prompts",
    "records",
    "feedback_rounds",
    "record_json",
    "image_files",
    "image_pixels",
    "images",
    "picture_grid",
    "pictures_in_text",
    "choices_in_text",
    "abilities",
    "flaws",
    "families",
    "report_parts",
    "metric_sets",
    "hookspecs",
    "memories",
    "judging_parse",
    "judging_rubrics",
    "judging_panel",
    "plugin_manager",
    "role_words",
    "prices",
    "usage",
    "budget",
    "generation",
    "sweeps",
    "task_roles",
    "levels",
    "yaml_files",
    "config_checks",
    "config",
    "rows",
    "expressions",
    "answers",
    "decoys",
    "items",
    "flawed_items",
    "flawed_reader",
    "conversation_rows",
    "conversation_mapping",
    "conversations",
    "locomo",
    "iseval",
    "task_files",
    "people",
    "backends",
    "ledger_rows",
    "ledger_file",
    "ledger_claims",
    "ledger_salvage",
    "ledger_writer",
    "ledger",
    "ledger_admin",
    "ledger_export",
    "engine",
    "leaks",
    "judging_json",
    "judging",
    "critique_votes",
    "protocols",
    "metrics",
    "runs",
    "report",
    "labels",
    "people_page",
    "offers",
    "estimating",
    "harness",
    "doctor",
    "cli_estimate",
    "cli_tables",
    "cli_ledger",
    "cli_run",
    "cli_judge",
    "cli_report",
    "cli_convert",
    "cli_people_labels",
    "cli_people",
    "cli",
]
"""The files and folders of interbench_tasks in the order of the data; each imports only from those before it."""

ALLOWED = {
    ("interbench_tasks/doctor.py", "lmms_eval"): "tries whether the harness can be imported; uses nothing of it",
}
"""(file, later stage or lmms_eval that it imports): the reason. Keep it short."""

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60

CORE = sorted((ROOT / "interbench_tasks").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))
SCRIPTS = sorted((ROOT / "scripts").rglob("*.py"))
SOURCES = [*CORE, *PLUGINS, *SCRIPTS]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def stage_of(path: Path) -> str:
    """The file or folder of interbench_tasks that `path` belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[1]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported_names(tree: ast.Module, package: str) -> Iterator[str]:
    """Every name that is imported anywhere in the file, in full: `from a.b import c` gives `a.b.c`.

    Args: package = the package that the file lies in; what a relative import starts from.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            start = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (start, node.module or "") if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield str(node.args[0].value)


def imports(path: Path) -> list[str]:
    return list(imported_names(tree_of(path), ".".join(path.relative_to(ROOT).parent.parts)))


def imported_stages(path: Path) -> set[str]:
    """The stages that a file of interbench_tasks imports from; a name of the package's face counts as its own stage."""
    stages = set()
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "interbench_tasks" or len(parts) < 2:
            continue
        stages.add(stage_behind(parts[1]) if parts[1] in interbench_tasks.__all__ else parts[1])
    return stages


def stage_behind(exported: str) -> str:
    """The stage where a name of `interbench_tasks.__all__` is defined."""
    module = getattr(getattr(interbench_tasks, exported), "__module__", None) or "interbench_tasks.hookspecs"
    return module.split(".")[1] if module.startswith("interbench_tasks.") else "hookspecs"


def later_imports(path: Path) -> set[str]:
    """The stages after the file's own that it imports from."""
    return imported_stages(path) & set(FLOW[FLOW.index(stage_of(path)) + 1 :])


def imports_the_harness(path: Path) -> bool:
    return any(name.split(".")[0] == "lmms_eval" for name in imports(path))


# --- data flows one way -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CORE, ids=name_of)
def test_every_file_has_its_place_in_the_order_of_the_data(path):
    assert stage_of(path) in [*FLOW, "__init__"], f"{name_of(path)}: give '{stage_of(path)}' a place in FLOW"


@pytest.mark.parametrize("path", [p for p in CORE if stage_of(p) in FLOW], ids=name_of)
def test_data_flows_one_way(path):
    forbidden = {stage for stage in later_imports(path) if (name_of(path), stage) not in ALLOWED}
    assert not forbidden, f"{name_of(path)} imports from later stages: {sorted(forbidden)}"


def test_every_allowed_exception_is_still_needed():
    for path in CORE:
        used = later_imports(path) if stage_of(path) in FLOW else set()
        used |= {"lmms_eval"} if imports_the_harness(path) else set()
        stale = [stage for file, stage in ALLOWED if file == name_of(path) and stage not in used]
        assert not stale, name_of(path)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f():\n    from interbench_tasks.cli import main", "interbench_tasks.cli.main"),
        ("from interbench_tasks import engine", "interbench_tasks.engine"),
        ("import interbench_tasks.harness.task as t", "interbench_tasks.harness.task"),
        ("from .. import engine", "interbench_tasks.engine"),
        ("from ..engine import run", "interbench_tasks.engine.run"),
        ("from . import openai", "interbench_tasks.backends.openai"),
        ("importlib.import_module('interbench_tasks.harness')", "interbench_tasks.harness"),
        ("__import__('interbench_tasks.cli')", "interbench_tasks.cli"),
        ("if TYPE_CHECKING:\n    from interbench_tasks.runs import Run", "interbench_tasks.runs.Run"),
    ],
)
def test_an_import_is_found_wherever_it_hides(code, found):
    assert list(imported_names(ast.parse(code), "interbench_tasks.backends")) == [found]


@pytest.mark.parametrize("path", PLUGINS, ids=name_of)
def test_a_plugin_imports_only_what_the_package_offers(path):
    own = "interbench_tasks.plugins"
    ours = [name for name in imports(path) if name.split(".")[0] == "interbench_tasks"]
    offered = {f"interbench_tasks.{name}" for name in interbench_tasks.__all__}
    forbidden = [name for name in ours if name not in offered and not f"{name}.".startswith(f"{own}.")]
    assert not forbidden, f"not in interbench_tasks.__all__: {forbidden}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_only_the_harness_folder_imports_lmms_eval(path):
    inside = path in CORE and stage_of(path) == "harness"
    assert inside or (name_of(path), "lmms_eval") in ALLOWED or not imports_the_harness(path)


# --- what a file may do -----------------------------------------------------------------------------------------


def environment_reads(tree: ast.Module) -> list[int]:
    """Lines that read the environment, under any of its names."""
    names = {"environ", "environb", "getenv", "putenv", "unsetenv"}
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in names]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "os" and names & {a.name for a in node.names}:
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name != "settings.py"], ids=name_of)
def test_only_settings_reads_the_environment(path):
    assert not environment_reads(tree_of(path))


@pytest.mark.parametrize("code", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"])
def test_reading_the_environment_is_found_under_each_name(code):
    assert environment_reads(ast.parse(code))


@pytest.mark.parametrize("path", [p for p in SOURCES if name_of(p) != "interbench_tasks/cli.py"], ids=name_of)
def test_only_the_command_line_prints(path):
    calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    assert not [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id in ("print", "pprint")]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_files_and_functions_are_short(path):
    text = path.read_text(encoding="utf-8")
    functions = [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [f.name for f in functions if (f.end_lineno or 0) - f.lineno + 1 > MAX_FUNCTION_LINES]
    assert not long, f"longer than {MAX_FUNCTION_LINES} lines: {long}"
    assert text.count("\n") <= MAX_FILE_LINES, f"longer than {MAX_FILE_LINES} lines: split it by idea"


def test_no_file_is_called_utils():
    assert not [name_of(path) for path in SOURCES if path.stem in ("utils", "util", "helpers", "misc", "common")]


# --- names ------------------------------------------------------------------------------------------------------


def exception_classes(tree: ast.Module) -> list[str]:
    """Classes of a file that descend from a built-in exception directly, so from none of ours."""
    builtin = {n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)}
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [c.name for c in classes if {b.id for b in c.bases if isinstance(b, ast.Name)} & builtin]


def test_every_error_descends_from_interbench_error():
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, BaseException)]
    assert errors.InterbenchError in found
    assert all(issubclass(cls, errors.InterbenchError) for cls in found)


@pytest.mark.parametrize("path", [p for p in [*CORE, *PLUGINS] if p.name != "errors.py"], ids=name_of)
def test_no_file_makes_errors_of_its_own_kind(path):
    assert not exception_classes(tree_of(path)), "derive it from InterbenchError or one of its kinds in errors.py"


def test_an_error_of_its_own_kind_is_found():
    assert exception_classes(ast.parse("class A(ValueError): pass\nclass B(InterbenchError): pass")) == ["A"]


def test_the_names_that_plugins_may_import_exist_and_are_sorted():
    names = interbench_tasks.__all__
    assert names == sorted(set(names))
    assert not [name for name in names if not hasattr(interbench_tasks, name)]


def test_the_packages_version_is_the_projects():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == interbench_tasks.__version__


def test_every_folder_with_code_is_in_the_wheel():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    folders = {"interbench_tasks": "interbench_tasks", "plugins": "interbench_tasks.plugins"}
    folders["task_yamls"] = "interbench_tasks.task_yamls"
    there = set()
    for folder, package in folders.items():
        for path in (ROOT / folder).rglob("__init__.py"):
            there.add(".".join([package, *path.relative_to(ROOT / folder).parent.parts]))
    assert set(listed) == there


# --- task YAMLs -------------------------------------------------------------------------------------------------


class TaskLoader(yaml.SafeLoader):
    """Reads a task YAML without importing what `!function` names."""


TaskLoader.add_constructor("!function", lambda loader, node: node.value)


def task_names() -> list[str]:
    names = []
    for path in sorted((ROOT / "task_yamls").rglob("*.yaml")):
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=TaskLoader)
        assert isinstance(content, dict), name_of(path)
        assert "task" in content or "group" in content, f"{name_of(path)}: name a template `_name_yaml`"
        names.append(content["group"] if isinstance(content.get("task"), list) else content["task"])
    return names


def test_task_names_are_unique():
    assert not [name for name, count in Counter(task_names()).items() if count > 1]


def test_no_task_has_the_name_of_one_of_the_harness():
    spec = importlib.util.find_spec("lmms_eval")
    assert spec is not None
    assert spec.origin is not None
    pattern = re.compile(r"""^\s*(?:-\s*)?(?:task|group|tag)\s*:\s*["']?([\w.+-]+)""", re.MULTILINE)
    theirs = set()
    for path in (Path(spec.origin).parent / "tasks").rglob("*.y*ml"):
        theirs.update(pattern.findall(path.read_text(encoding="utf-8")))
    assert len(theirs) > 500, "the harness's tasks were not found"
    assert not theirs & set(task_names()), "the harness drops ours without a word"


# --- the repository ---------------------------------------------------------------------------------------------


def project_files() -> list[Path]:
    """All files that are in git or would be added to it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_place_on_somebodys_machine():
    place = re.compile(rb"(?<![\w.~-])/(?:work|root|home|Users)/[\w.]")
    found = [name_of(path) for path in project_files() if place.search(path.read_bytes())]
    assert not found
