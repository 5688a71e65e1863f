"""What a section of the report is made of, and what it is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Numbers as text; every cell is shown as it is."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Each as long as `columns`; the first cell heads its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing with its text alternative."""

    title: str
    svg: str
    """One <svg> element, without scripts or outside references; its colours come from CSS classes or `currentColor`, so
    that it can be read in light and dark and in black and white."""
    alt: str
    """What the drawing shows, with its main numbers: one or two sentences."""
    table: ReportTable
    """All of its numbers, with n, unscored and intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the report."""

    title: str
    intro: str = ""
    """How to read it, as plain text."""
    parts: tuple[ReportTable | Chart | str, ...] = ()
    """In the order to show; a string is a paragraph of plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRun:
    """One run and task as a section sees it."""

    name: str
    """As shown; unique in the report."""
    folder: Path
    task: str
    protocol: str
    manifest: Mapping[str, Any]
    metrics: Mapping[str, Any]
    """Name -> `metrics.intervals.Estimate`, in the order to show; an undefined metric is absent."""
    categories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Category -> name -> Estimate."""
    summaries: Sequence[Mapping[str, Any]] = ()
    """One an episode, as the metric set made them, sorted by doc and repeat."""
