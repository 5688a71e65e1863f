"""What came of a run, as its folder tells: how much was played, how much failed, and what that means for a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interbench_tasks.errors import RunFolderError
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.runs.episodes import SECOND_PASS
from interbench_tasks.runs.folder import MANIFEST, METRICS, read_json, read_records
from interbench_tasks.runs.keeper import has_unscored

OK, ERROR, USAGE, FAILED, UNFINISHED, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes of `interbench run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What came of one run and task."""

    task: str
    folder: Path
    n_wanted: int
    """Episodes that all ranks were to play."""
    n_stopped: int
    """Of these, episodes that a budget kept from being played to their end, and such that have no record."""
    n_failed: int
    """Of the others, episodes in which something has no score because something failed; not where a panel came to its
    verdict without a judge that failed."""
    max_failed_share: float
    """The task's limit, in [0, 1]."""
    has_metrics: bool
    """Whether there is a metrics.json, or none was to be made."""

    @property
    def finished(self) -> bool:
        """Whether every episode was played to its end."""
        return self.n_stopped == 0

    @property
    def failed_share(self) -> float:
        """Failed episodes / episodes that were played, in [0, 1]; 0 where none was."""
        return self.n_failed / max(self.n_wanted - self.n_stopped, 1)

    @property
    def exit_code(self) -> int:
        """`FAILED` where the numbers cannot be used as they are, `UNFINISHED` where more is to come, else `OK`."""
        if not self.has_metrics or self.failed_share > self.max_failed_share:
            return FAILED
        return OK if self.finished else UNFINISHED

    @property
    def text(self) -> str:
        """One line for people."""
        state = "finished" if self.finished else f"UNFINISHED ({self.n_stopped} not played)"
        failed, most = f"{self.n_failed} failed", self.max_failed_share
        if self.failed_share > most:
            failed += f" ({self.failed_share:.1%} of those played, MORE than max_failed_share {most:.1%})"
        metrics = "" if self.has_metrics else ", NO METRICS"
        return f"{self.task}: {self.n_wanted} episodes, {failed}, {state}{metrics}; interbench score {self.folder}"


def outcome_of(folder: Path, *, metrics: bool = True) -> RunOutcome:
    """What came of the run in `folder`.

    Args: metrics = whether it was to compute some.
    Raises: RunFolderError where the folder is none of a run, or a file of it is damaged.
    """
    manifest = read_json(folder / MANIFEST)
    try:
        task, n_wanted = str(manifest["task"]), int(manifest["data"]["n_episodes"])
        max_failed_share = float(manifest["options"]["max_failed_share"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{folder / MANIFEST}: lacks {error}; was it written by another version?") from error
    n_played, n_failed = 0, 0
    for record in read_records(folder) if any(folder.glob("episodes*.jsonl")) else ():
        if not _was_stopped(record):
            n_played += 1
            n_failed += has_unscored(record)
    return RunOutcome(
        task=task,
        folder=folder,
        n_wanted=n_wanted,
        n_stopped=max(n_wanted - n_played, _not_planned(manifest)),
        n_failed=n_failed,
        max_failed_share=max_failed_share,
        has_metrics=not metrics or (folder / METRICS).exists(),
    )


def _was_stopped(record: EpisodeRecord) -> bool:
    """Whether a budget kept the episode from being played, or from being played on in the second pass."""
    unplayed_on = record.passes == 1 and any(end.branch == SECOND_PASS for end in record.ends)
    return record.status == "skipped" or unplayed_on


def _not_planned(manifest: Mapping[str, Any]) -> int:
    """1 where a second pass was to come and was never planned, else 0."""
    second = manifest.get("second_pass")
    return 1 if second is not None and second.get("n_episodes") is None else 0
