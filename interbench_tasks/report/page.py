"""A report as one HTML page that loads nothing from anywhere, so that it works from a disk and can be sent round.

Numbers and charts stand in the page as they are; transcripts lie in it compressed (`transcripts`), pictures once each.
The page's policy forbids every request and every script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from interbench_tasks import __version__
from interbench_tasks.errors import InterbenchError
from interbench_tasks.report.contents import ReportContent
from interbench_tasks.report.folders import RunContent
from interbench_tasks.report.main_table import MainTable
from interbench_tasks.report.svg_checks import safe_svg
from interbench_tasks.report.thumbnails import Thumbnails
from interbench_tasks.report.transcripts import Transcripts
from interbench_tasks.report_parts import Chart, ReportTable, Section

_UNWRITABLE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"[-+\u2212]?\d[\d.,]*(?![\w:/@-])")
_NO_NUMBER = frozenset({"", "-", "\u2013", "unknown"})
"""What stands in a column of numbers where there is none."""
_MARKUP_IN_SCRIPT = re.compile("[<>&\u2028\u2029]")


def page_from(report: ReportContent, transcripts: Transcripts, thumbnails: Thumbnails) -> str:
    """The page; every text of it is escaped, lone surrogates are shown as replacement characters."""
    script = _asset("report.js")
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_asset("page.html.jinja"))
    contents = dict(_named(report))
    page = template.render(
        policy=_policy(script),
        title=_title(report),
        version=__version__,
        written=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        css=Markup(_asset("report.css")),
        js=Markup(script),
        runs=_runs(report),
        simulated=any(_simulated(own) for own in report.contents),
        problems=report.problems,
        mains=[
            _main(main, by_category, contents) for main, by_category in zip(report.main, report.categories, strict=True)
        ],
        sections=[_section(number, section) for number, section in enumerate(report.sections, 1)],
        costs=report.costs,
        manifest=report.manifest,
        pictures_note=thumbnails.note,
        run_names=Markup(_in_script([[run.name, run.task] for run in report.runs])),
        index=transcripts.index(),
        blocks=transcripts.blocks,
        pictures=list(thumbnails.files.items()),
        numeric=numeric_columns,
    )
    return _UNWRITABLE.sub("\ufffd", page)


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("interbench_tasks.report").joinpath("assets", name).read_text(encoding="utf-8")


def _named(report: ReportContent) -> Iterator[tuple[str, RunContent]]:
    for run, own in zip(report.runs, report.contents, strict=True):
        yield run.name, own


def _title(report: ReportContent) -> str:
    tasks = list(dict.fromkeys(run.task for run in report.runs))
    receivers = list(dict.fromkeys(own.receiver for own in report.contents))
    many = len(receivers) > 3
    return f"{', '.join(tasks)}: {f'{len(receivers)} models' if many else ', '.join(receivers)}"


def _runs(report: ReportContent) -> list[dict[str, Any]]:
    """What stands in the table of runs; the receiver among the models of all, or of none, whose names tell it."""
    named = list(_named(report))
    told = all(_beside_task(name, own.task, own.receiver).startswith(own.receiver) for name, own in named)
    return [_run(name, own, with_receiver=not told) for name, own in named]


def _run(name: str, own: RunContent, *, with_receiver: bool) -> dict[str, Any]:
    models = own.manifest.get("models")
    shown = {
        str(role): str(model.get("name", "?"))
        for role, model in (models.items() if isinstance(models, Mapping) else ())
        if isinstance(model, Mapping)
    }
    if not with_receiver:
        shown.pop("receiver", None)  # it stands in the first column
    wanted = "" if own.n_wanted in (None, own.n_found) else f" of {own.n_wanted:,}"
    return {
        "name": _beside_task(name, own.task, own.receiver),
        "when": _when(own.manifest),
        "task": own.task,
        "models": list(shown.items()),
        "episodes": f"{own.n_found:,}{wanted}",
        "unfinished": own.unfinished,
        "simulated": _simulated(own),
    }


def _simulated(own: RunContent) -> bool:
    return bool(own.manifest.get("simulated")) or "simulated" in own.receiver


def _when(manifest: Mapping[str, Any]) -> str:
    run = manifest.get("run")
    started = run.get("started_at") if isinstance(run, Mapping) else None
    if not isinstance(started, int | float):
        return ""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(started))


def _beside_task(name: str, task: str, receiver: str) -> str:
    """A run's name where its task stands beside it."""
    return receiver if name == task else name.removesuffix(f" ({task})")


def _main(main: MainTable, by_category: ReportTable | None, contents: Mapping[str, RunContent]) -> dict[str, Any]:
    """The main table for the page, under the name of its task. Args: contents = of the runs, by their names."""
    return {
        "task": main.task,
        "by_category": by_category,
        "runs": [
            {
                "name": _beside_task(name, main.task, contents[name].receiver),
                "unfinished": bool(contents[name].unfinished),
            }
            for name in main.runs
        ],
        "rows": main.rows,
        "n_headline": main.n_headline,
        "has_bounds": main.has_bounds,
        "units": main.units,
    }


def _section(number: int, section: Section) -> dict[str, Any]:
    parts = [_part(f"s{number}p{place}-", part) for place, part in enumerate(section.parts, 1)]
    return {"title": section.title, "intro": section.intro, "parts": parts}


def numeric_columns(table: ReportTable) -> list[bool]:
    """Which columns hold numbers, so that they are set flush right.

    >>> numeric_columns(ReportTable(caption="", columns=("a", "n", "b"), rows=(("x", "1,2", "y"), ("2", "-", "3"))))
    [False, True, False]
    """
    columns = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.columns)
    return [
        place > 0
        and any(map(_NUMBER.match, cells))
        and all(_NUMBER.match(cell) or cell in _NO_NUMBER for cell in cells)
        for place, cells in enumerate(columns)
    ]


def _part(prefix: str, part: ReportTable | Chart | str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"kind": "text", "text": part}
    if isinstance(part, ReportTable):
        return {"kind": "table", "table": part}
    svg, problem = None, ""
    try:
        svg = Markup(safe_svg(part.svg, prefix))
    except InterbenchError as error:
        problem = str(error)
    return {"kind": "chart", "title": part.title, "alt": part.alt, "table": part.table, "svg": svg, "problem": problem}


def _in_script(value: object) -> str:
    """JSON that may stand in a <script> element of any kind."""
    return _MARKUP_IN_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value))
