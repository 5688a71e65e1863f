"""A report as Markdown, CSV, JSON or LaTeX: the main tables, those of all sections, and the costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interbench_tasks.report.contents import ReportContent
from interbench_tasks.report.formats import Grid, as_csv, as_latex, escaped
from interbench_tasks.report.main_table import as_table
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable, Section

MARKDOWN_ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|~"})


def as_markdown(report: ReportContent) -> str:
    """Headings, tables and paragraphs; a chart is its alternative text and its table."""
    blocks = ["# Interbench report", *_marks(report)]
    for main, by_category in zip(report.main, report.categories, strict=True):
        blocks += [f"## {_plain(main.task)}", main.units, markdown_table(as_table(main))]
        blocks += [markdown_table(by_category)] if by_category is not None else []
    for section in report.sections:
        blocks += [f"## {_plain(section.title)}", *([_plain(section.intro)] if section.intro else [])]
        blocks += [block for part in section.parts for block in _markdown_part(part)]
    if report.costs is not None:
        blocks += ["## Costs", markdown_table(report.costs)]
    return "\n\n".join(blocks)


def _marks(report: ReportContent) -> Iterator[str]:
    for run, own in zip(report.runs, report.contents, strict=True):
        for line in own.unfinished:
            yield f"**{_plain(run.name)}: {_plain(line)}**"
    if report.problems:
        yield "\n".join(["Not everything could be read:", "", *(f"- {_plain(told)}" for told in report.problems)])


def _markdown_part(part: ReportTable | Chart | str) -> list[str]:
    if isinstance(part, str):
        return [_plain(part)]
    if isinstance(part, Chart):
        return [f"### {_plain(part.title)}", _plain(part.alt), markdown_table(part.table)]
    return [markdown_table(part)]


def markdown_table(table: ReportTable) -> str:
    r"""A table as GitHub and others read it, under its caption.

    >>> print(markdown_table(ReportTable(caption="", columns=("a|b", "n"), rows=(("x", "3"),))))
    | a\|b | n |
    |:---|---:|
    | x | 3 |
    """
    lines = [f"**{_plain(table.caption)}**", ""] if table.caption else []
    lines += [_markdown_row(table.columns), "|:---|" + "---:|" * (len(table.columns) - 1)]
    return "\n".join([*lines, *map(_markdown_row, table.rows)])


def _markdown_row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    return " ".join(text.split()).translate(MARKDOWN_ESCAPED)


def as_csv_text(report: ReportContent) -> str:
    """One value a line. Metrics have their numbers (shares, not percent); cells of other tables their text."""
    rows: list[Mapping[str, object]] = []
    for run in report.runs:
        shared = {"table": "metrics", "task": run.task, "run": run.name}
        rows += [
            {**shared, "category": category, "row": name, **_numbers(estimate)}
            for category, table in ((None, run.metrics), *run.categories.items())
            for name, estimate in table.items()
        ]
    for section in report.sections:
        for table in _tables(section):
            rows += _cells(f"{section.title}: {table.caption}", table)
    if report.costs is not None:
        rows += _cells(report.costs.caption, report.costs)
    return as_csv(rows)


def _numbers(estimate: Any) -> dict[str, object]:  # noqa: ANN401 - an Estimate, as ReportRun has it
    low, high = estimate.ci95 if estimate.ci95 is not None else (None, None)
    least, most = estimate.bounds if estimate.bounds is not None else (None, None)
    return {
        "value": estimate.value,
        "ci95_low": low,
        "ci95_high": high,
        "n": estimate.n,
        "unscored": estimate.unscored,
        "bound_low": least,
        "bound_high": most,
        "points": estimate.points,
        "method": estimate.method,
    }


def _cells(name: str, table: ReportTable) -> Iterator[dict[str, object]]:
    for row in table.rows:
        for column, text in zip(table.columns[1:], row[1:], strict=True):
            yield {"table": name, "row": row[0], "column": column, "text": text}


def _tables(section: Section) -> Iterator[ReportTable]:
    for part in section.parts:
        if isinstance(part, ReportTable):
            yield part
        elif isinstance(part, Chart):
            yield part.table


def as_json_text(report: ReportContent) -> str:
    """Everything but transcripts and drawings; rates are shares, not percent."""
    content = {
        "runs": [
            _run(run) | {"unfinished": list(own.unfinished), "n_episodes": own.n_found, "usage": own.usage}
            for run, own in zip(report.runs, report.contents, strict=True)
        ],
        "sections": [
            {"title": section.title, "intro": section.intro, "parts": [_json_part(part) for part in section.parts]}
            for section in report.sections
        ],
        "problems": list(report.problems),
    }
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False, default=str)


def _run(run: ReportRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "folder": str(run.folder),
        "task": run.task,
        "protocol": run.protocol,
        "metrics": {name: estimate.to_json() for name, estimate in run.metrics.items()},
        "categories": {
            category: {name: estimate.to_json() for name, estimate in table.items()}
            for category, table in run.categories.items()
        },
        "manifest": dict(run.manifest),
    }


def _json_part(part: ReportTable | Chart | str) -> object:
    if isinstance(part, str):
        return part
    if isinstance(part, Chart):
        return {"chart": part.title, "alt": part.alt, **_json_table(part.table)}
    return _json_table(part)


def _json_table(table: ReportTable) -> dict[str, Any]:
    return {"caption": table.caption, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}


def as_latex_text(report: ReportContent) -> str:
    """Tables for the package booktabs, each under a comment with its caption."""
    blocks = [f"% {escaped(told)}" for told in _warnings(report)]
    tables = [as_table(main) for main in report.main]
    tables += [table for table in report.categories if table is not None]
    tables += [table for section in report.sections for table in _tables(section)]
    tables += [report.costs] if report.costs is not None else []
    blocks += [as_latex(Grid(title=table.caption, headers=table.columns, rows=table.rows)) for table in tables]
    return "\n\n".join(blocks)


def _warnings(report: ReportContent) -> Iterator[str]:
    for run, own in zip(report.runs, report.contents, strict=True):
        yield from (f"{run.name}: {line}" for line in own.unfinished)
    yield from report.problems
