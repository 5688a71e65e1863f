"""`interbench convert ...`: data sets of others in the form that our tasks read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

convert_app = typer.Typer(no_args_is_help=True, help="Turn data sets of others into the form that our tasks read.")


@convert_app.command()
def locomo(
    source: Annotated[Path, typer.Argument(help="LoCoMo's JSON file, a folder or a zip of them.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="JSONL file to write.", show_default=False)],
    limit: Annotated[int | None, typer.Option(help="Only the first conversations.", min=1)] = None,
) -> None:
    """LoCoMo's conversations for the task mmrc_recorded."""
    from interbench_tasks.locomo import locomo_rows, write_rows

    rows = locomo_rows(source.expanduser())[:limit]
    write_rows(rows, target.expanduser())
    n_questions = sum(len(row["questions"]) for row in rows)
    typer.echo(f"wrote {target}: {len(rows)} conversations, {n_questions} questions")
    typer.echo(f"play it: INTERBENCH_DATA={target} lmms-eval --tasks mmrc_recorded --model ... --output_path runs/")


@convert_app.command()
def iseval(
    source: Annotated[Path, typer.Argument(help="ISEval's JSONL file, or its folder.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="JSONL file to write.", show_default=False)],
    valid: Annotated[bool, typer.Option(help="Also the sound version of each question, as a valid item.")] = False,
) -> None:
    """ISEval's flawed questions for the tasks iseval_local and mmpcbench_local."""
    from interbench_tasks.iseval import iseval_rows, write_items

    rows = iseval_rows(source.expanduser(), valid=valid)
    write_items(rows, source.expanduser(), target.expanduser())
    n_valid = sum(row["subtype"] == "valid" for row in rows)
    typer.echo(f"wrote {target}: {len(rows) - n_valid} flawed items, {n_valid} valid ones")
    typer.echo(f"play it: INTERBENCH_DATA={target} lmms-eval --tasks iseval_local --model ... --output_path runs/")
