"""What runs are called where several stand side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from interbench_tasks.errors import InterbenchError

Run = TypeVar("Run")


def told_apart(runs: Sequence[Run], name_of: Callable[[Run], str], fuller: Sequence[Callable[[Run], str]]) -> list[str]:
    """One name a run: `name_of`, and for those that share one the next of `fuller`, until none do or none is left.

    >>> told_apart(["m1", "m2", "n3"], lambda run: run[0], [lambda run: f"{run[0]} ({run[1]})"])
    ['m (1)', 'm (2)', 'n']
    """
    names = [name_of(run) for run in runs]
    for told in fuller:
        times = Counter(names)
        names = [told(run) if times[name] > 1 else name for name, run in zip(names, runs, strict=True)]
    return names


def dated(name: str, manifest: Mapping[str, Any], *, minutes: bool) -> str:
    """A name with the day, or the minute, on which the run began (UTC, as in its id); as it is where nobody tells.

    >>> dated("m", {"run": {"started_at": 1796000000.0}, "judged": {"run_id": "x"}}, minutes=True)
    'm (2026-11-30 00:53, judged again)'
    """
    run = manifest.get("run")
    started = run.get("started_at") if isinstance(run, Mapping) else None
    if isinstance(started, bool) or not isinstance(started, int | float):
        return name
    again = ", judged again" if manifest.get("judged") else ""
    return f"{name} ({time.strftime('%Y-%m-%d %H:%M' if minutes else '%Y-%m-%d', time.gmtime(started))}{again})"


def labels_by_folder(
    labels: Sequence[str], paths: Sequence[Path], folders_in: Callable[[Path], Sequence[Path]]
) -> dict[Path, str]:
    """Run folder -> the label of the argument that it was found by; empty where there are no labels.

    Args: labels, paths = of a command line, in its order; folders_in = the run folders at or below a path.
    Raises: InterbenchError where there are not as many labels as paths, or a label is empty.
    """
    if not labels:
        return {}
    if len(labels) != len(paths):
        raise InterbenchError(
            f"--label: {len(labels)} labels for {len(paths)} RUN arguments; give one for each RUN, in their order"
        )
    if not all(label.strip() for label in labels):
        raise InterbenchError("--label: a label is empty; give each RUN a name that can be read")
    named = zip(labels, paths, strict=True)
    return {folder: " ".join(label.split()) for label, path in named for folder in folders_in(path)}


def refuse_shared_labels(labels: Mapping[Path, str], tasks: Mapping[Path, str]) -> None:
    """Refuse a label that two runs of a task have. Args: folder -> label; folder -> task.

    Raises: InterbenchError naming label, task and folders.
    """
    found: dict[tuple[str, str], list[Path]] = {}
    for folder, task in tasks.items():
        if folder in labels:
            found.setdefault((labels[folder], task), []).append(folder)
    for (label, task), folders in found.items():
        if len(folders) > 1:
            raise InterbenchError(
                f"--label {label}: {len(folders)} runs of {task} have it ({', '.join(map(str, folders))}); name each "
                "run folder as a RUN of its own, with a label of its own"
            )
