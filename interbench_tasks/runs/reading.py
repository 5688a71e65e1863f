"""Several runs read back at once; many large ones in several processes, for reading takes longer than all metrics."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from interbench_tasks.errors import RunFolderError
from interbench_tasks.plugin_manager import Offers, build_plugin_manager, offers_from
from interbench_tasks.runs.folder import MANIFEST, read_json
from interbench_tasks.runs.score import ScoredRun, metric_set_of, run_from_folder

WORTH_IT_BYTES = 100_000_000
"""Of transcripts; below, starting a process takes as long as reading."""
Read = tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""The summaries and the units of a run."""
MOST_PROCESSES = 4
"""Each holds the plugins, numpy and one run's summaries: about 150 MB."""


def runs_from_folders(paths: Sequence[Path], offers: Offers) -> list[ScoredRun]:
    """Runs read back from their folders, in their order; nothing is written.

    Raises: RunFolderError as `run_from_folder` does.
    """
    n_processes = min(len(paths), _cores(), MOST_PROCESSES)
    if n_processes < 2 or sum(map(_size, paths)) < WORTH_IT_BYTES:
        return [run_from_folder(path, offers, units=True) for path in paths]
    # Not forked: a process with threads (numpy's, the engine's) that forks may hang.
    try:
        with ProcessPoolExecutor(n_processes, mp_context=multiprocessing.get_context("spawn")) as pool:
            read = list(pool.map(_read, paths))
    except BrokenProcessPool:  # short of memory, or called by a script without `if __name__ == "__main__"`
        return [run_from_folder(path, offers, units=True) for path in paths]
    return [_run(path, offers, own) for path, own in zip(paths, read, strict=True)]


def _read(path: Path) -> Read | str:
    """A run's summaries and units, or why there are none; an error may not survive the way to another process."""
    try:
        run = run_from_folder(path, offers_from(build_plugin_manager()), units=True)
    except RunFolderError as error:
        return str(error)
    return run.summaries, run.units


def _run(path: Path, offers: Offers, read: Read | str) -> ScoredRun:
    if isinstance(read, str):
        raise RunFolderError(read)
    summaries, units = read
    manifest = read_json(path / MANIFEST)
    metric_set = metric_set_of(manifest, offers, path / MANIFEST)
    return ScoredRun(folder=path, manifest=manifest, metric_set=metric_set, summaries=summaries, units=units)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob("episodes*.jsonl"))


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
