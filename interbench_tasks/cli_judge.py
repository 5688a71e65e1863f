"""`interbench judge`: replies that are there already, before other judges or by other rubrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interbench_tasks.errors import InterbenchError
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.redaction import redact

if TYPE_CHECKING:
    from interbench_tasks.runs.judge import JudgedRun

SEVERITY = (0, 4, 3)
"""Exit codes of several runs, the worst one counts."""


def judge(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run folders, or folders that hold some.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the new runs.", show_default=False)
    ] = None,
    judges: Annotated[
        str | None, typer.Option(help="openai:gpt-5.2,anthropic:claude-sonnet-4-20250514,... Default: the task's.")
    ] = None,
    rubric: Annotated[str | None, typer.Option(help="Rubrics that ship (mmrc, mmpcbench), or a YAML file.")] = None,
    rule: Annotated[str | None, typer.Option(help="How a panel decides, e.g. median_of_valid.")] = None,
    quorum: Annotated[int | None, typer.Option(min=1, help="Judges that must have given a verdict.")] = None,
    replies: Annotated[
        Path | None, typer.Option(help="JSONL of replies from anywhere: id, reply [, reasoning, branch, repeat].")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The task (a name or a YAML) whose items --replies answer.")] = None,
    receiver: Annotated[str | None, typer.Option(help="What the model is called that gave --replies.")] = None,
    data: Annotated[Path | None, typer.Option(help="The task's data, where it is a file of yours.")] = None,
) -> None:
    """Judge stored replies again, with other judges or rubrics; the model under test is not asked.

    \b
    interbench judge runs/model_a --judges openai:gpt-5.2,openai:gemini-3-pro@URL -o runs/rejudged
    interbench judge --replies their.jsonl --task mmpcbench_local --data items.jsonl --judges ... -o runs/theirs

    Each run becomes a new run, whose manifest says what was judged. Judges' replies are kept in the ledger, so the same
    command goes on where it was stopped. Exit codes are those of `interbench run`.
    """  # noqa: D301 - \b keeps click from filling a paragraph
    from interbench_tasks.runs.folder import run_folders
    from interbench_tasks.runs.judge import Wanted, judge_replies, judge_run, own_output

    if out is None:
        raise InterbenchError("name a folder for the new runs: -o FOLDER")
    if bool(runs) == (replies is not None):
        raise InterbenchError("name run folders, or --replies FILE with --task; one of the two")
    if receiver is not None and replies is None:
        raise InterbenchError("--receiver belongs to --replies; a run knows what its model is called")
    wanted = Wanted(out=out, judges=judges, rubric=rubric, rule=rule, quorum=quorum, task=task, data=data)
    manager = build_plugin_manager()
    offers = offers_from(manager)
    codes = [0]
    try:
        if replies is not None:
            codes.append(_told(judge_replies(replies, wanted, receiver=receiver, manager=manager, offers=offers)))
        folders = [folder for path in runs or () for folder in run_folders(path)]
        written = own_output(folders, out, runs or ())
        if folders and len(written) == len(folders):
            raise InterbenchError(
                f"all runs there are what interbench judge wrote to {out}; name the runs that it judged"
            )
        for folder in written:
            typer.echo(redact(f"left out: {folder} is itself what interbench judge wrote to {out}"), err=True)
        for folder in [folder for folder in folders if folder not in written]:
            codes.append(_told(judge_run(folder, wanted, manager=manager, offers=offers)))
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on from here", err=True)
        raise typer.Exit(130) from None
    raise typer.Exit(max(codes, key=SEVERITY.index))


def _told(judged: JudgedRun) -> int:
    """Say what came of one run; gives its exit code."""
    from interbench_tasks.families import family_of, related
    from interbench_tasks.report.table import table_text
    from interbench_tasks.runs.folder import METRICS, read_json
    from interbench_tasks.runs.outcome import outcome_of
    from interbench_tasks.runs.usage_file import usage_lines

    metrics = read_json(judged.folder / METRICS)
    outcome = outcome_of(judged.folder)
    names = [f"{role.words.backend}:{role.words.model}" for role in judged.options.roles["judge"]]
    typer.echo(table_text(metrics["metrics"], title=f"{metrics['task']}  ({judged.receiver})\n{judged.folder}"))
    typer.echo("\nused: " + "\n      ".join(usage_lines(judged.played.usage)))
    for text, times in judged.played.errors.items():
        typer.echo(redact(f"failed in {times} episodes: {text}"), err=True)
    if judged.n_without_reply:
        typer.echo(
            f"warning: {judged.n_without_reply} items of the task's data have no reply in the file; no number has them",
            err=True,
        )
    kind = related(judged.receiver, names)
    if kind:
        typer.echo(
            f"warning: {', '.join(kind)} judged {judged.receiver}, which is of the same family ({family_of(kind[0])}): "
            "such a judge may be kinder to it; compare with a panel without it",
            err=True,
        )
    typer.echo(redact(outcome.text))
    return outcome.exit_code
