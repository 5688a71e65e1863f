"""Task YAMLs as files: ours by name, a check of any, and self-contained copies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources, util
from pathlib import Path
from typing import Any

import yaml
from PIL.Image import Image

from interbench_tasks.config import TASK_KEYS, TaskOptions, task_options_from
from interbench_tasks.conversations import reader_from
from interbench_tasks.errors import ConfigError, DataError, InterbenchError, Problem
from interbench_tasks.items import named_columns
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.rows import JSON_LINES, LOCAL_BUILDERS, DataSet, load_rows
from interbench_tasks.yaml_files import config_from_file

TASK_CLASS = "!function interbench_tasks.harness.task.InteractiveTask"
PICTURE_NAME = re.compile(r"(image|picture|img|photo)s?[_ -]?\d*", re.IGNORECASE)
PICTURE_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
FIRST_ROWS = 20
"""Of a data set, that are looked at for paths of pictures."""
TASK_LINE = re.compile(r"^task:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)  # a group's `task:` is a list on the next lines


def task_folder() -> Path:
    """The folder of our task YAMLs."""
    return Path(str(resources.files("interbench_tasks.task_yamls")))


def own_tasks() -> dict[str, Path]:
    """Task name -> YAML file, for every task that ships with Interbench."""
    found = {}
    for path in sorted(task_folder().rglob("*.yaml")):
        match = TASK_LINE.search(path.read_text(encoding="utf-8"))
        if match:
            found[match.group(1)] = path
    return found


def harness_task_names() -> set[str]:
    """Names of the harness's own tasks and groups, read from its files without importing it."""
    spec = util.find_spec("lmms_eval")
    if spec is None or not spec.submodule_search_locations:
        return set()
    folder = Path(next(iter(spec.submodule_search_locations))) / "tasks"
    names: set[str] = set()
    for path in folder.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8", errors="replace")
        names.update(TASK_LINE.findall(text))
        names.update(re.findall(r"^group:\s*[\"']?([\w.-]+)", text, re.MULTILINE))
    return names


def check_task_file(path: Path, offers: Offers, *, with_data: bool = True) -> TaskOptions:
    """Check a task YAML as far as can be done without a model: keys, names, roles, data, the first row.

    Args: with_data = also load the data set and make its first episode.
    Raises: ConfigError with all problems of the file; DataError for its data.
    """
    config = config_from_file(path)
    problems = _harness_problems(config)
    options: TaskOptions | None = None
    try:
        options = task_options_from(config, where=str(path), offers=offers)
    except ConfigError as error:
        problems += error.problems
    if problems or options is None:
        raise ConfigError(str(path), problems)
    if with_data:
        reader_from(data_of(config, path), options).episode(0, 0)
    return options


def data_of(config: Mapping[str, Any], path: Path) -> DataSet:
    """The data set that a task YAML names; relative files start from the YAML's folder."""
    options = dict(config.get("dataset_kwargs") or {})
    files = options.get("data_files")
    if isinstance(files, str) and not Path(files).is_absolute():
        options["data_files"] = str(path.parent / files)
    split = config.get("test_split") or config.get("validation_split") or "test"
    return load_rows(str(config["dataset_path"]), name=config.get("dataset_name"), split=split, options=options)


def _harness_problems(config: Mapping[str, Any]) -> list[Problem]:
    problems = []
    name = config.get("task")
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        problems.append(Problem(key="task", message=f" = {name!r}: must be a name of letters, digits, _ . and -"))
    elif name in harness_task_names():
        problems.append(Problem(key="task", message=f" = {name!r} is a task of the harness, which would drop this one"))
    if config.get("class") != TASK_CLASS:
        problems.append(Problem(key="class", message=f" must be {TASK_CLASS}, got {config.get('class')!r}"))
    if not config.get("dataset_path"):
        problems.append(Problem(key="dataset_path", message=" is missing"))
    return problems


def new_task_file(
    source: Path, target: Path, *, name: str, data: Path | None, columns: Mapping[str, str]
) -> dict[str, Any]:
    """Write a self-contained copy of a task under a new name: nothing included, data and columns as given.

    Args: columns = our name -> column of the data set, e.g. {"question": "prompt"}.
    Returns: the new task's whole config.
    Raises: InterbenchError where the target exists or the data is of an unknown kind.
    """
    if target.exists():
        raise InterbenchError(f"{target}: already exists; choose another --name or --out, or remove it")
    config = config_from_file(source)
    config["task"] = name
    block = config["metadata"]["interbench"]
    same = data is None
    if data is not None:
        config |= _data_keys(data)
        config["dataset_name"] = None  # a configuration of the hub's data set
        same = _has_the_same_columns(config, target, {**block.get("columns", {}), **columns}, block.get("cluster"))
    if not same:
        # a copy for data of another shape starts from its own columns, not from those of the task it was copied from
        for key in ("answer_is", "cluster"):
            block.pop(key, None)
    if columns or not same:
        block["columns"] = {**(block.get("columns", {}) if same else {}), **columns}
    files = (config.get("dataset_kwargs") or {}).get("data_files")
    if isinstance(files, str) and not Path(files).is_absolute():  # the copy may lie anywhere
        config["dataset_kwargs"] = {**config["dataset_kwargs"], "data_files": str((source.parent / files).resolve())}
    target.parent.mkdir(parents=True, exist_ok=True)
    header = f"# Made by `interbench new-task` from {source.stem}; check it with: interbench check {target.name}\n"
    target.write_text(header + _as_yaml(config), encoding="utf-8")
    return config


def _has_the_same_columns(config: Mapping[str, Any], target: Path, columns: Mapping[str, Any], cluster: object) -> bool:
    """Whether the data has each column that the copied task names, so that what it says of them still holds."""
    there = data_of(config, target).rows.features
    named = {column for name in columns for column in named_columns(columns[name])}
    return named | ({cluster} if isinstance(cluster, str) else set()) <= set(there)


def _data_keys(data: Path) -> dict[str, Any]:
    data = data.expanduser().resolve()
    if not data.exists():
        raise DataError(f"{data}: there is no such file")
    if data.is_dir():
        return {"dataset_path": str(data), "dataset_kwargs": None}
    kinds = {**dict.fromkeys(JSON_LINES, "json"), **LOCAL_BUILDERS}
    if data.suffix not in kinds:
        raise DataError(f"{data}: unknown kind of file; allowed: {', '.join(kinds)}")
    return {"dataset_path": kinds[data.suffix], "dataset_kwargs": {"data_files": str(data)}}


def _as_yaml(config: Mapping[str, Any]) -> str:
    order = [*[key for key in TASK_KEYS if key in config], *[key for key in config if key not in TASK_KEYS]]
    content = {key: config[key] for key in order if key != "class" and config[key] is not None}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
    first, rest = text.split("\n", 1)
    return f"{first}\nclass: {config['class']}\n{rest}"


def mapping_text(path: Path, options: TaskOptions) -> str:
    """What becomes of the data's columns, so that a picture column under another name is not missed.

    Raises: ConfigError or DataError as `check_task_file` does.
    """
    data = data_of(config_from_file(path), path)
    episode = reader_from(data, options).episode(0, 0)
    if options.reads == "conversations":
        pictures = sum(len(turn.user.pictures) for turn in episode.script)
        turns, questions = _number(len(episode.script), "turn"), _number(len(episode.questions), "question")
        return f"  first conversation: {turns}, {_counted(pictures)}, {questions}"
    shown = _counted(len(episode.question.pictures))
    if options.reads == "flawed_items":
        return f"  first item: {shown}, {episode.category}"
    letters = f"{len(episode.options)} options" if episode.options else "no options (its answer is compared as a text)"
    columns = options.common.columns.model_dump()
    used = {column for value in [*columns.values(), options.common.cluster] for column in named_columns(value)}
    unused = sorted(set(data.rows.features) - used)
    lines = [f"  first item: {shown}, {letters}"]
    if unused:
        lines.append(f"  columns that nothing uses: {', '.join(unused)}")
    lines += [_unused_pictures(column) for column in unused if _looks_like_pictures(data, column)]
    return "\n".join(lines)


def _unused_pictures(column: str) -> str:
    return (
        f"  warning: column {column} looks like pictures, and no model will see them: make the task with "
        f"`--column pictures={column}`, or name it in metadata.interbench.columns.pictures"
    )


def _looks_like_pictures(data: DataSet, column: str) -> bool:
    """Whether a column has a name for pictures, or in the first rows pictures or paths of some."""
    if PICTURE_NAME.fullmatch(column):
        return True
    cells = (data.rows[number].get(column) for number in range(min(FIRST_ROWS, len(data.rows))))
    flat = (one for cell in cells for one in (cell if isinstance(cell, list) else [cell]))
    return any(_is_picture(one) for one in flat)


def _is_picture(cell: object) -> bool:
    """Whether a cell of a data set holds a picture, decoded or not, or the path of one."""
    if isinstance(cell, str):
        return cell.lower().endswith(PICTURE_ENDINGS)
    return isinstance(cell, Image) or (isinstance(cell, Mapping) and set(cell) == {"bytes", "path"})


def _counted(pictures: int) -> str:
    return _number(pictures, "picture") if pictures else "no picture"


def _number(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"
