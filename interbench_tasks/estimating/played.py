"""Episodes that were played already, as a source of what a run will be like."""

from __future__ import annotations

from dataclasses import dataclass

from interbench_tasks.records import EpisodeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Episodes that were played already, by the same models or by others."""

    records: tuple[EpisodeRecord, ...] = ()
    same: bool = True
    """Whether they are episodes of this very run: same models, options and data."""
    notes: tuple[str, ...] = ()
