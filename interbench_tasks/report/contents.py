"""Run folders -> what a report says, in whatever form it is then written."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interbench_tasks.errors import InterbenchError, RunFolderError
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.redaction import redact
from interbench_tasks.report.costs import cost_table, manifest_table
from interbench_tasks.report.folders import RunContent, content_from, report_folders
from interbench_tasks.report.main_table import MainTable, category_table, main_tables
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable, Section
from interbench_tasks.runs.names import dated, labels_by_folder, refuse_shared_labels, told_apart

OnEpisode = Callable[[int, Mapping[str, Any]], None]
"""Called with the number of a run, and an episode's JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContent:
    """Everything that a report says, but for the transcripts."""

    runs: tuple[ReportRun, ...]
    contents: tuple[RunContent, ...]
    """What was read of each of `runs`."""
    main: tuple[MainTable, ...]
    categories: tuple[ReportTable | None, ...]
    """For each of `main` its main metrics by category; None where there are no categories."""
    sections: tuple[Section, ...]
    costs: ReportTable | None
    manifest: ReportTable
    problems: tuple[str, ...]
    """What could not be read or made, each a sentence."""


def _no_episode(run: int, obj: Mapping[str, Any]) -> None:
    return None


def _nothing_more(folders: Sequence[Path]) -> None:
    return None


def report_from(
    paths: Sequence[Path],
    offers: Offers,
    on_episode: OnEpisode = _no_episode,
    *,
    on_read: Callable[[Sequence[Path]], None] = _nothing_more,
    labels: Sequence[str] = (),
) -> ReportContent:
    """Read runs and make all sections of their report.

    Args: paths = run folders, or folders that hold some; on_read = called with the runs' folders once all episodes are
        read, before the sections are made, which takes as long again; labels = what the runs of each path are called,
        none: by their receivers.
    Raises: RunFolderError where there is no run at all; InterbenchError where one is named twice, or a label.
    """
    folders = [folder for path in paths for folder in report_folders(path)]
    _refuse_doubles(folders)
    labelled = labels_by_folder(labels, paths, report_folders)
    with _no_garbage_collection():
        contents, problems = _read(folders, offers, on_episode)
    on_read([own.folder for own in contents])
    refuse_shared_labels(labelled, {own.folder: own.task for own in contents})
    names = unique_names(contents, [labelled.get(own.folder, "") for own in contents])
    problems += [f"{names[at]}: {told}" for at, own in enumerate(contents) for told in own.problems]
    runs = tuple(_report_run(own, name) for own, name in zip(contents, names, strict=True))
    sections, failed = _sections(runs, offers)
    headlines = {name: own.headline for name, own in zip(names, contents, strict=True)}
    main = tuple(main_tables(runs, headlines))
    return ReportContent(
        runs=runs,
        contents=tuple(contents),
        main=main,
        categories=tuple(category_table(table.task, runs, headlines) for table in main),
        sections=sections,
        costs=cost_table(dict(zip(names, contents, strict=True))),
        manifest=manifest_table(dict(zip(names, contents, strict=True))),
        problems=tuple(redact(told) for told in (*problems, *failed)),
    )


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Records are millions of small objects without cycles; looking for cycles takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _refuse_doubles(folders: Sequence[Path]) -> None:
    for folder, times in Counter(folder.resolve() for folder in folders).items():
        if times > 1:
            raise InterbenchError(f"{folder}: is named twice; name each run once")


def _read(folders: Sequence[Path], offers: Offers, on_episode: OnEpisode) -> tuple[list[RunContent], list[str]]:
    found: list[RunContent] = []
    problems: list[str] = []
    for folder in folders:
        number = len(found)
        content = content_from(folder, offers, lambda obj, number=number: on_episode(number, obj))  # type: ignore[misc]
        if content.n_found or content.metrics:
            found.append(content)
        else:
            why = "; ".join(content.problems) or "no episode has ended here yet"
            problems.append(f"{folder}: is left out, it holds nothing to show ({why})")
    if not found:
        raise RunFolderError("\n".join(problems))
    return found, problems


def unique_names(contents: Sequence[RunContent], labels: Sequence[str] = ()) -> list[str]:
    """One name a run, no two equal, as short as they can be.

    The label or the receiver's; of one receiver's runs of several tasks the task's; else with task, date, run id or
    folder. Args: labels = one a run, empty where it has none; none at all: no run has one.
    """
    if any(labels):
        return _names_apart(contents, labels)
    tasks = [own.task for own in contents]
    if len(contents) > 1 and len({own.receiver for own in contents}) == 1 and len(set(tasks)) == len(tasks):
        return tasks
    return _names_apart(contents, [""] * len(contents))


def _names_apart(contents: Sequence[RunContent], labels: Sequence[str]) -> list[str]:
    runs = [(own, label or own.receiver) for own, label in zip(contents, labels, strict=True)]
    return told_apart(
        runs,
        lambda run: run[1],
        (
            lambda run: f"{run[1]} ({run[0].task})",
            lambda run: dated(run[1], run[0].manifest, minutes=False),
            lambda run: dated(run[1], run[0].manifest, minutes=True),
            lambda run: f"{run[1]} ({run[0].manifest.get('run_id', run[0].folder)})",
            lambda run: f"{run[1]} ({run[0].folder})",
        ),
    )


def _report_run(own: RunContent, name: str) -> ReportRun:
    return ReportRun(
        name=name,
        folder=own.folder,
        task=own.task,
        protocol=own.protocol,
        manifest=own.manifest,
        metrics=own.metrics,
        categories=own.categories,
        summaries=own.summaries,
    )


def _sections(runs: Sequence[ReportRun], offers: Offers) -> tuple[tuple[Section, ...], list[str]]:
    """All sections that have something to say, and what went wrong with others."""
    found: list[Section] = []
    problems: list[str] = []
    for name, make in offers.report_sections.items():
        try:
            section = make(runs)
            if section is not None:
                found.append(_checked(section))
        except Exception as error:  # noqa: BLE001 - one section, perhaps a stranger's, must not hide the others
            problems.append(f"the section '{name}' is missing: {type(error).__name__}: {error}")
    return tuple(found), problems


def _checked(section: Section) -> Section:
    """The section. Raises: InterbenchError where it is none, or a table of it has rows of several lengths."""
    if not isinstance(section, Section):
        raise InterbenchError(f"it must be a Section, got {type(section).__name__}")
    for part in section.parts:
        table = part.table if isinstance(part, Chart) else part
        if isinstance(table, ReportTable):
            wrong = next((row for row in table.rows if len(row) != len(table.columns)), None)
            if wrong is not None:
                raise InterbenchError(
                    f"table '{table.caption}' has {len(table.columns)} columns, and a row of {len(wrong)} cells"
                )
    return section
