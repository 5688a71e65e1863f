"""Writes a report: reads the runs, makes the page or the tables, and puts them into one file."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from interbench_tasks.errors import InterbenchError
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.report.contents import ReportContent, report_from
from interbench_tasks.report.exports import as_csv_text, as_json_text, as_latex_text, as_markdown
from interbench_tasks.report.page import page_from
from interbench_tasks.report.thumbnails import Thumbnails, thumbnails_from
from interbench_tasks.report.transcripts import Transcripts

Format = Literal["html", "md", "csv", "json", "latex"]
FORMATS: tuple[str, ...] = get_args(Format)
REPORT = "report.html"
"""Its name in a run folder."""
_TABLES: Mapping[str, Callable[[ReportContent], str]] = {
    "md": as_markdown,
    "csv": as_csv_text,
    "json": as_json_text,
    "latex": as_latex_text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """What was written."""

    path: Path
    n_bytes: int
    n_episodes: int
    wall_s: float
    problems: tuple[str, ...]


def report_text(
    paths: Sequence[Path], offers: Offers, format: Format = "html", *, labels: Sequence[str] = ()
) -> tuple[str, ReportContent]:
    """A report as text, and what is in it.

    Args: paths = run folders, or folders that hold some; labels = what the runs of each are called; none: by receiver.
    Raises: RunFolderError where there is no run; InterbenchError where one is named twice, or a label.
    """
    if format != "html":
        report = report_from(paths, offers, labels=labels)
        return _TABLES[format](report), report
    transcripts = Transcripts()
    with ThreadPoolExecutor(1) as pool:  # pictures are made smaller while the charts are drawn
        pictures: list[Future[Thumbnails]] = []

        def on_read(folders: Sequence[Path]) -> None:
            transcripts.close()
            n_episodes, n_bytes = len(transcripts), transcripts.n_bytes
            shown = transcripts.pictures
            pictures.append(pool.submit(thumbnails_from, folders, shown, n_episodes=n_episodes, n_bytes=n_bytes))

        report = report_from(paths, offers, transcripts.add, on_read=on_read, labels=labels)
        return page_from(report, transcripts, pictures[0].result()), report


def write_report(
    paths: Sequence[Path], out: Path, offers: Offers, format: Format = "html", *, labels: Sequence[str] = ()
) -> WrittenReport:
    """Write a report in one step: a reader sees the old file or the new one.

    Raises: as `report_text`; InterbenchError where the file cannot be written.
    """
    began = time.perf_counter()
    text, report = report_text(paths, offers, format, labels=labels)
    data = (text + "\n").encode("utf-8", errors="backslashreplace")
    draft = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(data)
        draft.replace(out)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise InterbenchError(f"{out}: cannot be written: {error.strerror or error}") from error
    return WrittenReport(
        path=out,
        n_bytes=len(data),
        n_episodes=sum(own.n_found for own in report.contents),
        wall_s=time.perf_counter() - began,
        problems=report.problems,
    )
