"""`interbench people sample, labels, agreement, calibrate`: people judge what judges judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from interbench_tasks.errors import InterbenchError, near_miss
from interbench_tasks.redaction import redact

if TYPE_CHECKING:  # what a command needs is imported when it runs: `interbench --help` stays quick
    from interbench_tasks.labels.opinions import LabelledRun
    from interbench_tasks.labels.sampling import Design
    from interbench_tasks.labels.sheet import Filled
    from interbench_tasks.people.desk import Desk
    from interbench_tasks.report.formats import Grid

Run = Annotated[Path, typer.Argument(help="A run folder, or a folder that holds one.", show_default=False)]
Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.", show_default=False)]
LabelsOption = Annotated[
    Path | None,
    typer.Option("--labels", help="Another run with the labels: of the same replies, before other judges."),
]
FormatOption = Annotated[str, typer.Option("--format", help="text, md, csv, json or latex.")]
OutOption = Annotated[Path | None, typer.Option(help="File to write to, instead of the terminal.")]
FORMATS = ("text", "md", "csv", "json", "latex")
THIRD = "third"


def sample(
    run: Run,
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV to write; with several people one each.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Replies to draw.")] = 180,
    strata: Annotated[
        str | None,
        typer.Option(
            help="category or none. Default: flawed items by category; conversations by ability and memory alone.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
    annotators: Annotated[int, typer.Option(min=1, max=9, help="People who label each reply.")] = 2,
    abilities: Annotated[str, typer.Option(help="Of conversations: abilities to label.")] = "CR,IU,MR",
    third: Annotated[
        bool, typer.Option("--third", help="Instead: the replies on which two people differ, for a third.")
    ] = False,
) -> None:
    """Draw replies of a run for people to label: stratified, seeded, without a judge's verdict or a model's name.

    Fill in the empty columns; the column `guide` says by what. A third person looks at what two differ on: yes or no,
    the strategy, one point or more of a scale from 0 to 2, two points or more of one from 0 to 5.
    """
    from interbench_tasks.labels.opinions import labelled_run
    from interbench_tasks.labels.sheet import sheet_text, write_sheet

    folder = _one_run(run)
    if third:
        items = [one.item for one in labelled_run(folder).disagreed]
        if not items:
            typer.echo("no two labels differ so much that a third person has to look")
            return
        write_sheet(out, sheet_text(labelled_run(folder).run, items, annotator=THIRD, beside=out.parent))
        typer.echo(f"wrote {out}: {len(items)} replies on which two people differ")
        typer.echo(f"then: interbench people labels {folder} {out}")
        return
    design = _design(folder, n=n, strata=strata, seed=seed, annotators=annotators, abilities=abilities)
    _draw(folder, design, out)


def _design(folder: Path, *, n: int, strata: str | None, seed: int, annotators: int, abilities: str) -> Design:
    from interbench_tasks.labels.sampling import Design, StrataBy
    from interbench_tasks.runs.folder import MANIFEST, read_json

    usual = "category" if read_json(folder / MANIFEST).get("protocol") == "critique" else "none"
    _allowed("--strata", strata or usual, get_args(StrataBy))
    chosen = tuple(dict.fromkeys(part.strip().upper() for part in abilities.split(",") if part.strip()))
    by: StrataBy = "category" if (strata or usual) == "category" else "none"
    return Design(n=n, strata=by, seed=seed, annotators=annotators, abilities=chosen)


def _draw(folder: Path, design: Design, out: Path) -> None:
    from interbench_tasks.labels.items import label_run
    from interbench_tasks.labels.sampling import drawn, frame, keep_sample, read_sample
    from interbench_tasks.labels.sheet import sheet_text, write_sheet
    from interbench_tasks.labels.store import read_labels

    run, stored = label_run(folder), read_labels(folder)
    sheets = [out] if design.annotators == 1 else [
        out.with_name(f"{out.stem}-a{number}{out.suffix}") for number in range(1, design.annotators + 1)
    ]  # fmt: skip
    for path in sheets:
        if path.exists():
            raise InterbenchError(f"{path}: is there already, and may be filled in; name another file")
    keep_sample(folder, drawn(run, design), labelled=[label.item for label in stored])
    kept = read_sample(folder)
    assert kept is not None
    known, strata = run.by_id(), frame(run, design)
    for number, path in enumerate(sheets, 1):
        annotator = f"a{number}"
        done = {label.item for label in stored if label.annotator == annotator}
        items = [known[name] for name in kept.items if name not in done]
        write_sheet(path, sheet_text(run, items, annotator=annotator, beside=path.parent))
        typer.echo(f"wrote {path}: {len(items)} replies")
    total = sum(map(len, strata.values()))
    left = sum(not item.answered or item.panel is None for item in run.items)
    typer.echo(
        f"drew {len(kept.items)} of {total} replies in {len(strata)} strata"
        + (f"; {left} that failed or have no verdict cannot be drawn" if left else "")
    )
    typer.echo(f"fill them in, then: interbench people labels {folder} {' '.join(map(str, sheets))}")


def labels(
    run: Run,
    files: Annotated[list[Path], typer.Argument(help="Filled-in CSVs.", show_default=False)],
    annotator: Annotated[str, typer.Option(help="Who filled in rows that name nobody; a pseudonym.")] = "",
) -> None:
    """Take filled-in CSVs into the run folder: all of them, or, where anything is wrong, nothing.

    Rows without any value are left out, and so are labels that were taken before: a file may be filled in and taken
    bit by bit. Labels are only ever added (`labels.jsonl`).
    """
    from interbench_tasks.labels.items import label_run
    from interbench_tasks.labels.opinions import joined
    from interbench_tasks.labels.sampling import read_sample
    from interbench_tasks.labels.sheet import labels_from_sheet
    from interbench_tasks.labels.store import LABELS, add_labels, read_labels

    folder = _one_run(run)
    drawn = read_sample(folder)
    if drawn is None:
        raise InterbenchError(f"{folder}: no sample was drawn here: interbench people sample {folder} -o FILE.csv")
    stored, known = read_labels(folder), label_run(folder)
    sheets: list[Filled] = []
    for path in files:
        already = [*stored, *(label for sheet in sheets for label in sheet.labels)]
        sheets.append(labels_from_sheet(path, known, sample=drawn.items, stored=already, annotator=annotator))
    n_added = add_labels(folder, [label for sheet in sheets for label in sheet.labels])
    there, empty = (sum(getattr(sheet, name) for sheet in sheets) for name in ("n_there", "n_empty"))
    typer.echo(
        f"{n_added} labels added to {folder / LABELS}"
        + (f"; {there} were there already" if there else "")
        + (f"; {empty} rows are not filled in yet" if empty else "")
    )
    labelled = joined(known, drawn, read_labels(folder), where=folder / LABELS)
    typer.echo(f"{labelled.n_labelled} of {len(labelled.items)} sampled replies have a label")
    if labelled.disagreed:
        typer.echo(
            f"{len(labelled.disagreed)} wait for a third person: interbench people sample {folder} --third -o FILE.csv"
        )


def agreement(runs: Runs, labels: LabelsOption = None, format: FormatOption = "text", out: OutOption = None) -> None:
    """How far people agree with each other, with each judge and with the panel: kappa, and shares that are equal."""
    from interbench_tasks.labels import tables
    from interbench_tasks.labels.agreement import agreements_of

    _allowed("--format", format, FORMATS)
    found = [(one, agreements_of(one)) for one in _labelled(runs, labels)]
    _show(
        format,
        out,
        grids=[tables.agreement_grid(*own) for own in found],
        lines=[line for one, _ in found for line in tables.agreement_lines(one)],
        flat=lambda: [row for own in found for row in tables.flat_agreement(*own)],
        nested=lambda: [tables.agreement_as_json(*own) for own in found],
    )


def calibrate(
    runs: Runs,
    labels: LabelsOption = None,
    merge_small: Annotated[
        bool,
        typer.Option(
            "--merge-small",
            help="Take strata with less than 5 labels as one; supposes that judges err alike in them.",
        ),
    ] = False,
    format: FormatOption = "text",
    out: OutOption = None,
) -> None:
    """The panel's numbers corrected by people's labels, with intervals; beside them judges alone, n_eff, Dawid-Skene.

    Needs: pip install 'interbench-tasks[calibration]'
    """
    from interbench_tasks.labels import tables
    from interbench_tasks.labels.calibrating import calibrated

    _allowed("--format", format, FORMATS)
    found = [(one, calibrated(one, merge_small=merge_small)) for one in _labelled(runs, labels)]
    _show(
        format,
        out,
        grids=[grid for own in found for grid in tables.calibration_grids(*own)],
        lines=[line for own in found for line in tables.calibration_lines(*own)],
        flat=lambda: [row for own in found for row in tables.flat_calibration(*own)],
        nested=lambda: [tables.calibration_as_json(*own) for own in found],
    )


@contextmanager
def judging_desk(place: Path) -> Iterator[Desk]:
    """A desk with the sample of a stored run on it; what people hand in becomes labels of the run meanwhile.

    A run without a sample gets one of 180 replies.
    """
    from interbench_tasks.labels.items import label_run
    from interbench_tasks.labels.judging import DESK, Collector, JudgingDesk
    from interbench_tasks.labels.opinions import labelled_run
    from interbench_tasks.labels.sampling import drawn, keep_sample, read_sample
    from interbench_tasks.people.desk import Desk

    folder = _one_run(place)
    if read_sample(folder) is None:
        design = _design(folder, n=180, strata=None, seed=0, annotators=2, abilities="CR,IU,MR")
        chosen = drawn(label_run(folder), design)
        keep_sample(folder, chosen, labelled=())
        typer.echo(f"drew {len(chosen.items)} replies (seed 0); for another sample: interbench people sample")
    labelled = labelled_run(folder)
    with Desk(folder / DESK) as desk:
        judging = JudgingDesk(labelled, desk)
        typer.echo(f"{judging.lay()} of {len(labelled.items)} sampled replies are on the desk")
        try:
            with Collector(judging, lambda told: typer.echo(redact(f"warning: {told}"), err=True)):
                yield desk
        finally:  # also where Ctrl-C has ended the page
            _tell_standing(folder)


def _tell_standing(folder: Path) -> None:
    """How far people are, and what comes next."""
    from interbench_tasks.labels.opinions import labelled_run

    labelled = labelled_run(folder)
    typer.echo(
        f"{labelled.n_labelled} of {len(labelled.items)} sampled replies have a label; "
        f"then: interbench people calibrate {folder}"
    )


COMMANDS: tuple[Callable[..., None], ...] = (sample, labels, agreement, calibrate)
"""What `interbench people` can do with labels."""


def _one_run(path: Path) -> Path:
    from interbench_tasks.runs.folder import run_folders

    found = run_folders(path)
    if len(found) > 1:
        told = "\n  ".join(map(str, found))
        raise InterbenchError(f"{path}: holds {len(found)} runs; name one of them:\n  {told}")
    return found[0]


def _labelled(paths: Sequence[Path], labels: Path | None) -> list[LabelledRun]:
    """The runs with their labels; of a folder with several runs, those that have a sample."""
    from interbench_tasks.labels.opinions import labelled_run
    from interbench_tasks.labels.sampling import SAMPLE
    from interbench_tasks.runs.folder import run_folders

    source = None if labels is None else _one_run(labels)
    folders = [folder for path in paths for folder in run_folders(path)]
    chosen = [folder for folder in folders if source is not None or (folder / SAMPLE).exists()]
    if not chosen:
        raise InterbenchError(
            f"none of these runs has a sample that people label: interbench people sample {folders[0]} -o FILE.csv"
        )
    for folder in [folder for folder in folders if folder not in chosen]:
        typer.echo(redact(f"warning: {folder}: has no labels; left out"), err=True)
    return [labelled_run(folder, source) for folder in chosen]


def _allowed(option: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InterbenchError(f"{option} {value}{near_miss(value, allowed)}: allowed: {', '.join(allowed)}")


def _show(
    format: str,
    out: Path | None,
    *,
    grids: Sequence[Grid],
    lines: Sequence[str],
    flat: Callable[[], list[dict[str, object]]],
    nested: Callable[[], object],
) -> None:
    """Print tables, or write them to a file; what has to be said with them goes below, or to stderr."""
    from interbench_tasks.report.formats import as_csv, as_latex, as_markdown, as_text

    told = [redact(" ".join(line.split())) for line in dict.fromkeys(lines)]
    texts = {
        "text": lambda: "\n\n".join([*map(as_text, grids), "\n".join(told)]),
        "md": lambda: "\n\n".join([*map(as_markdown, grids), *told]),
        "latex": lambda: "\n\n".join([*map(as_latex, grids), "\n".join(f"% {line}" for line in told)]),
        "csv": lambda: as_csv(flat()),
        "json": lambda: json.dumps(nested(), ensure_ascii=False, indent=2, allow_nan=False),
    }
    text = texts[format]()
    if format == "csv":
        for line in told:
            typer.echo(line, err=True)
    if out is None:
        typer.echo(text)
        return
    try:
        out.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InterbenchError(f"--out {out}: cannot be written: {error.strerror or error}") from error
    typer.echo(f"wrote {out}")
