"""The folder of one run and task: `episodes.jsonl`, `manifest.json`, `metrics.json`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from interbench_tasks.errors import RunFolderError
from interbench_tasks.file_names import safe_file_name
from interbench_tasks.record_json import line_from_record, record_from_json, record_from_line
from interbench_tasks.records import EpisodeRecord

EPISODES = "episodes.jsonl"
MANIFEST = "manifest.json"
METRICS = "metrics.json"


def new_run_id(name: str) -> str:
    """A run id that sorts by time, and no two runs have: `20261130-154501-<name>-<four digits of the clock><6 more>`.

    Of a hundred jobs of one array some begin in the same moment, on several machines; two in one folder would be mixed.
    """
    now = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{stamp}-{safe_file_name(name)}-{int(now * 10_000) % 10_000:04d}{os.urandom(3).hex()}"


class RunFolder:
    """Writes one run. Every line is whole on disk before the next episode's is begun."""

    def __init__(self, path: Path, *, rank: int = 0, world_size: int = 1) -> None:
        self.path = path
        self._own = path / (EPISODES if world_size == 1 else f"episodes-rank{rank}.jsonl")
        self._lines: dict[tuple[int, int], tuple[int, int]] = {}
        self._file: FileIO | None = None
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _folder_error(path, error) from error

    def append(self, record: EpisodeRecord) -> None:
        """Write one finished episode; it survives a killed process.

        Raises: RunFolderError for a full or read-only disk.
        """
        data = (line_from_record(record) + "\n").encode("utf-8", errors="surrogatepass")
        try:
            if self._file is None:
                self._file = self._own.open("ab", buffering=0)
            start = self._file.seek(0, os.SEEK_END)
            _write_all(self._file, data, start)
        except OSError as error:
            self._close()
            raise _folder_error(self._own, error) from error
        self._lines[(record.doc_id, record.repeat)] = (start, len(data))

    def read(self, key: tuple[int, int]) -> EpisodeRecord:
        """The record that was written last of an episode of this rank.

        Raises: KeyError where there is none; RunFolderError where it cannot be read any more.
        """
        start, length = self._lines[key]
        try:
            with self._own.open("rb") as source:
                source.seek(start)
                return record_from_line(source.read(length).decode("utf-8", "surrogatepass"))
        except OSError as error:
            raise RunFolderError(f"{self._own}: cannot be read: {error.strerror or error}") from error

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def finish(self) -> None:
        """Rewrite this rank's episodes sorted by doc and repeat, each as it was written last, in one step."""
        if self._file is None:
            return
        self._close()
        ordered = self._own.with_suffix(".sorted")
        try:
            with self._own.open("rb") as source, ordered.open("wb") as target:
                for _, (start, length) in sorted(self._lines.items()):
                    source.seek(start)
                    target.write(source.read(length))
                target.flush()
                os.fsync(target.fileno())
            ordered.replace(self._own)
        except OSError as error:
            raise _folder_error(self._own, error) from error

    def write_json(self, name: str, content: Mapping[str, Any]) -> Path:
        """Write `manifest.json` or `metrics.json` in one step.

        Raises: RunFolderError for a full or read-only disk.
        """
        return write_json(self.path / name, content)


def _write_all(file: FileIO, data: bytes, start: int) -> None:
    """Write a whole line, or none of it: a disk that fills up in the middle leaves no torn line."""
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError:
        with contextlib.suppress(OSError):
            file.truncate(start)
        raise


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write JSON so that a reader sees the old file or the new one, never half of it."""
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        draft.write_bytes(text.encode("utf-8", "surrogatepass"))  # half an emoji in a category must not lose a run
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise _folder_error(path, error) from error
    return path


def merge_ranks(path: Path) -> None:
    """Make `episodes.jsonl` of the ranks' own files, sorted by doc and repeat; called once all ranks are done."""
    parts = sorted(path.glob("episodes-rank*.jsonl"))
    if not parts:
        return
    keyed = [(record.doc_id, record.repeat, record) for part in parts for record in _records_in(part)]
    keyed.sort(key=lambda item: item[:2])
    draft = path / f"{EPISODES}.tmp"
    try:
        with draft.open("w", encoding="utf-8", errors="surrogatepass") as target:
            for _, _, record in keyed:
                target.write(line_from_record(record) + "\n")
        draft.replace(path / EPISODES)
        for part in parts:
            part.unlink()
    except OSError as error:
        raise _folder_error(path, error) from error


def read_records(
    path: Path, trimmed: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None
) -> Iterator[EpisodeRecord]:
    """The records of a run folder, in the file's order.

    Args: trimmed = leaves out of an episode's JSON what is not asked for; checking and making it takes most of the
        time. Default: nothing.
    Raises: RunFolderError naming the file and line that cannot be read.
    """
    files = [path / EPISODES] if (path / EPISODES).exists() else sorted(path.glob("episodes-rank*.jsonl"))
    if not files:
        raise RunFolderError(f"{path}: holds no {EPISODES}; is this the folder of one run and task?")
    for file in files:
        yield from _records_in(file, trimmed)


_KEY = re.compile(r'"doc_id":(-?\d+),"repeat":(\d+)')
"""Where a line says which episode it is of; no text inside of the JSON before it can look the same."""


def _outdated_in(file: Path) -> set[int]:
    """Numbers of the lines that a later one replaces: a killed run leaves both passes of an episode."""
    last: dict[tuple[str, ...], int] = {}
    outdated: set[int] = set()
    with file.open(encoding="utf-8", errors="surrogatepass") as lines:
        for number, line in enumerate(lines, 1):
            found = _KEY.search(line)
            if found is None:
                continue
            if found.groups() in last:
                outdated.add(last[found.groups()])
            last[found.groups()] = number
    return outdated


def _records_in(
    file: Path, trimmed: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None
) -> Iterator[EpisodeRecord]:
    outdated = _outdated_in(file)
    with file.open(encoding="utf-8", errors="surrogatepass") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip() and number not in outdated:
                try:
                    yield record_from_line(line) if trimmed is None else record_from_json(trimmed(json.loads(line)))
                except (RunFolderError, ValueError) as error:
                    raise RunFolderError(f"{file}, line {number}: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file of a run folder.

    Raises: RunFolderError where it is missing or damaged.
    """
    try:
        content = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except FileNotFoundError as error:
        raise RunFolderError(f"{path}: there is no such file; is this the folder of one run and task?") from error
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise RunFolderError(f"{path}: holds no JSON object")
    return content


def run_folders(path: Path) -> list[Path]:
    """The folders of single runs and tasks at or below `path` in which an episode has ended, oldest first.

    Raises: RunFolderError where there is none.
    """
    found = sorted(manifest.parent for manifest in path.rglob(MANIFEST))
    if not found:
        raise RunFolderError(f"{path}: no run folder here (none holds a {MANIFEST})")
    begun = [folder for folder in found if _has_episodes(folder)]
    if not begun:
        raise RunFolderError(
            f"{found[-1]}: no episode has ended here yet; where the run was stopped, run the same command again"
        )
    return begun


def empty_run_folders(path: Path) -> list[Path]:
    """The folders at or below `path` of runs that were stopped before their first episode ended, oldest first."""
    return sorted(manifest.parent for manifest in path.rglob(MANIFEST) if not _has_episodes(manifest.parent))


def _has_episodes(folder: Path) -> bool:
    return any(folder.glob("episodes*.jsonl"))


def _folder_error(path: Path, error: OSError) -> RunFolderError:
    return RunFolderError(
        f"{path}: cannot be written: {error.strerror or error}; "
        "free space or choose another folder with --output_path (or INTERBENCH_RUNS)"
    )
