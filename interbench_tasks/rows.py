"""Data sets -> rows. Pictures stay undecoded: the data set's own bytes can be sent as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from interbench_tasks import settings
from interbench_tasks.errors import DataError

JSON_LINES = (".jsonl", ".ndjson")
LOCAL_BUILDERS = {".json": "json", ".csv": "csv", ".parquet": "parquet"}
USER_DATA = "INTERBENCH_DATA"
"""`dataset_path: INTERBENCH_DATA` in a YAML: the file that the environment variable names."""


class Rows(Sequence[Mapping[str, Any]]):
    """Rows of a local file, indexed like a `datasets.Dataset`; a column may hold different types in different rows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], lines: Sequence[int] = ()) -> None:
        self._rows = rows
        self.lines = lines
        """1-based lines of the file that the rows stand in; empty where they stand in none."""
        self.features: dict[str, None] = dict.fromkeys(key for row in rows for key in row)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._rows)

    def without(self, columns: Sequence[str]) -> Rows:
        """The same rows without some columns."""
        left = set(columns)
        return Rows([{key: value for key, value in row.items() if key not in left} for row in self._rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """The rows of one split, and where they came from."""

    rows: Any
    """`Rows`, or a `datasets.Dataset` whose picture columns are undecoded."""
    source: str
    """File or hub id, for errors and the manifest."""
    folder: Path | None
    """Folder that relative picture paths start from; None for a data set from the hub."""
    picture_columns: tuple[str, ...] = ()
    """Columns that hold pictures as bytes."""


def load_rows(path: str, *, name: str | None, split: str, options: Mapping[str, Any]) -> DataSet:
    """The rows of one split.

    Args:
        path: a local file (.jsonl, .json, .csv, .parquet), a folder saved by `save_to_disk`, a builder's name with
            `data_files` in `options`, INTERBENCH_DATA, or a hub id.
        name: the hub configuration.
        split: the split's name; ignored for a local file.
        options: `dataset_kwargs` of the YAML; the harness resolves `data_files` against the YAML's folder.

    Raises: DataError naming the file or hub id and how to point to a local copy.
    """
    if path == USER_DATA:
        path = _user_data()
    if path in LOCAL_BUILDERS.values() and options.get("data_files"):
        path = _one_data_file(options["data_files"], split)
    file = _local_path(path)
    if file is None:
        return _from_hub(path, name, split, options)
    if file.is_dir():
        return _from_folder(file, split)
    if file.suffix in JSON_LINES:
        numbered = _json_lines(file)
        rows = Rows(list(numbered.values()), list(numbered))
        return _checked(DataSet(rows=rows, source=str(file), folder=file.parent))
    if file.suffix in LOCAL_BUILDERS:
        return _checked(_from_builder(file))
    raise DataError(f"{file}: unknown kind of file; allowed: {', '.join([*JSON_LINES, *LOCAL_BUILDERS])}")


def _user_data() -> str:
    found = settings.local_data()
    if found is None:
        raise DataError(
            f"this task reads your own file: set the environment variable {USER_DATA} to a .jsonl, .json, .csv or\n"
            "  .parquet file, or to a folder saved by datasets,\n"
            "  or make a task of your own: interbench new-task --from TASK --name my_task --data FILE\n"
            "  (interbench judge also takes --data FILE)"
        )
    if not Path(found).expanduser().exists():
        raise DataError(f"{USER_DATA} = {found}: there is no such file")
    return found


def _one_data_file(data_files: object, split: str) -> str:
    if isinstance(data_files, Mapping):
        data_files = data_files.get(split)
    if isinstance(data_files, Sequence) and not isinstance(data_files, str) and len(data_files) == 1:
        data_files = data_files[0]
    if not isinstance(data_files, str):
        raise DataError(f"dataset_kwargs.data_files must name one file for the split '{split}', got {data_files!r}")
    return data_files


def _local_path(path: str) -> Path | None:
    found = Path(path).expanduser()
    if found.exists():
        return found.resolve()
    if found.suffix in (*JSON_LINES, *LOCAL_BUILDERS):
        raise DataError(f"data file {path} not found; looked at {found.absolute()}")
    return None


def _json_lines(file: Path) -> dict[int, Mapping[str, Any]]:
    """Line -> row; empty lines are no rows."""
    rows: dict[int, Mapping[str, Any]] = {}
    try:
        with file.open(encoding="utf-8-sig") as lines:  # Windows tools write a byte order mark
            for number, line in enumerate(lines, 1):
                if line.strip():
                    rows[number] = _json_row(file, number, line)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from error
    return rows


def _json_row(file: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{file}, line {number}: no valid JSON: {error}") from error
    except ValueError as error:  # Python reads no whole number of more than 4,300 digits
        raise DataError(f"{file}, line {number}: a number has too many digits; put it in quotes") from error
    except RecursionError as error:
        raise DataError(f"{file}, line {number}: lists or objects are nested too deeply") from error
    if not isinstance(row, dict):
        raise DataError(f"{file}, line {number}: a row must be an object, got {type(row).__name__}")
    return row


def _checked(data: DataSet) -> DataSet:
    if len(data.rows) == 0:
        raise DataError(f"{data.source}: holds no rows")
    return data


def _from_builder(file: Path) -> DataSet:
    import datasets

    try:
        loaded = datasets.load_dataset(LOCAL_BUILDERS[file.suffix], data_files=str(file), split="train")
    except Exception as error:
        raise DataError(f"{file}: cannot be read as {LOCAL_BUILDERS[file.suffix]}: {error}") from error
    return _undecoded(loaded, str(file), file.parent)


def _from_folder(folder: Path, split: str) -> DataSet:
    import datasets

    try:
        loaded = datasets.load_from_disk(str(folder))
    except FileNotFoundError as error:
        raise DataError(f"{folder}: is no folder made by datasets' save_to_disk: {error}") from error
    if isinstance(loaded, datasets.DatasetDict):
        if split not in loaded:
            raise DataError(f"{folder}: has no split '{split}'; it has: {', '.join(loaded)}")
        loaded = loaded[split]
    return _checked(_undecoded(loaded, str(folder), folder))


def _from_hub(path: str, name: str | None, split: str, options: Mapping[str, Any]) -> DataSet:
    import datasets

    passed = {key: value for key, value in options.items() if key not in ("data_files", "load_from_disk")}
    try:
        loaded = datasets.load_dataset(path, name, split=split, **passed)
    except Exception as error:
        wanted = f"'{path}'" + (f" (configuration '{name}')" if name else "")
        raise DataError(
            f"data set {wanted}, split '{split}', cannot be loaded from the hub or its local cache: {error}\n"
            "  offline: copy it once where there is a network,\n"
            f"    python -c \"import datasets; datasets.load_dataset('{path}', {name!r}).save_to_disk('FOLDER')\"\n"
            "  and give the folder as dataset_path in a YAML of your own (interbench new-task --data FOLDER),\n"
            "  or copy the cache folder that HF_HOME names"
        ) from error
    return _checked(_undecoded(loaded, path, None))


def _undecoded(loaded: Any, source: str, folder: Path | None) -> DataSet:  # noqa: ANN401 - datasets is untyped
    columns = []
    for column, feature in loaded.features.items():
        raw = _raw(feature)
        if raw is not None:
            loaded = loaded.cast_column(column, raw)
            columns.append(column)
    return DataSet(rows=loaded, source=source, folder=folder, picture_columns=tuple(columns))


def _raw(feature: Any) -> Any:  # noqa: ANN401 - datasets is untyped
    """A column's type with its pictures undecoded, also those within lists and objects; None where it has none."""
    import datasets

    if isinstance(feature, datasets.Image):
        return datasets.Image(decode=False)
    if isinstance(feature, Mapping):
        raw = {name: _raw(part) for name, part in feature.items()}
        return {name: raw[name] or part for name, part in feature.items()} if any(raw.values()) else None
    inner = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
    found = _raw(inner) if inner is not None else None
    if found is None:
        return None
    return datasets.List(found) if isinstance(feature, list) else type(feature)(found)
