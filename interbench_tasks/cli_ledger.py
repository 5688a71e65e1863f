"""`interbench ledger ...`: what is kept of the replies, looked at, exported, pruned."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interbench_tasks import settings
from interbench_tasks.errors import LedgerError
from interbench_tasks.redaction import redact

if TYPE_CHECKING:
    from interbench_tasks.ledger_admin import ModelShare, Overview
    from interbench_tasks.ledger_rows import Saved

CostOf = Callable[[str, "Saved"], float | None]
"""Model and what was saved -> USD; None where no price is known."""

ledger_app = typer.Typer(
    add_completion=False,
    help="Look at the stored replies (show), write them out (export), or delete some (prune).",
)
Folder = Annotated[
    Path | None,
    typer.Option("--folder", help="The ledger's folder; default: the one that runs use.", show_default=False),
]


@ledger_app.callback(invoke_without_command=True)
def default(context: typer.Context, folder: Folder = None) -> None:
    """Look at the stored replies (show), write them out (export), or delete some (prune)."""
    if context.invoked_subcommand is None:
        show(folder)
    elif folder is not None:  # it would be the wrong ledger that is shown, or pruned
        raise LedgerError(f"write --folder behind the command: interbench ledger {context.invoked_subcommand} --folder")


@ledger_app.command()
def show(folder: Folder = None) -> None:
    """Show what is stored of each model, and how often that saved a call."""
    from interbench_tasks.ledger_admin import overview
    from interbench_tasks.prices import price_list

    prices = price_list()

    def cost_of(model: str, saved: Saved) -> float | None:
        price = prices.list_price_of(model)
        return None if price is None else price.cost(saved.input_tokens, saved.output_tokens)

    found = overview(_chosen(folder))
    typer.echo(redact(overview_text(found, cost_of)))
    for problem in found.problems:
        typer.echo(redact(problem), err=True)
    if found.problems:
        raise typer.Exit(1)


@ledger_app.command()
def prune(
    older_than: Annotated[str | None, typer.Option(help="Stored longer ago than this: 30d, 12h, 2w.")] = None,
    status: Annotated[
        list[str] | None, typer.Option(help="`empty`, `length`, or another finish reason; may be repeated.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Pattern for the model: 'openai:*', 'gpt-4o*'.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    folder: Folder = None,
) -> None:
    """Delete the replies that meet all conditions; a later run asks, and pays, for them again."""
    from interbench_tasks import ledger_admin as admin

    where = _chosen(folder)
    before = None if older_than is None else time.time() - admin.age_s(older_than)
    selection = admin.Selection(before=before, statuses=tuple(status or ()), model=model)
    admin.check_selection(selection, where)
    found = admin.overview(where, selection)
    n_found = found.total.n_replies
    typer.echo(redact(_table(found.models, _SELECTED)))
    typer.echo(
        f"{n_found:,} replies, about {_size(found.total.n_bytes)}, {'would be' if dry_run else 'are to be'} deleted"
    )
    if dry_run or n_found == 0:
        return
    admin.refuse_while_in_use(where)
    if not yes and not (sys.stdin.isatty() and typer.confirm("Delete them for good?")):
        typer.echo("Nothing was deleted: say --yes to delete.", err=True)
        raise typer.Exit(1)
    size_before = found.n_bytes
    n_deleted = admin.prune(where, selection)
    freed = size_before - admin.overview(where).n_bytes
    typer.echo(f"{n_deleted:,} replies deleted, {_size(max(freed, 0))} freed")


@ledger_app.command()
def export(
    form: Annotated[str, typer.Option("--format", help="Only jsonl: one reply a line.")] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="File to write; default: the standard output.")] = None,
    folder: Folder = None,
) -> None:
    """Write all replies out, one a line; keys and tokens are taken out. The questions are not in the ledger."""
    from interbench_tasks.ledger_export import export_lines, write_export

    if form != "jsonl":
        raise LedgerError(f"--format {form}: there is no such format; allowed: jsonl")
    problems: list[str] = []
    lines = export_lines(_chosen(folder), problems)
    if out is None:
        for line in lines:
            typer.echo(line.encode())
    else:
        typer.echo(f"{write_export(out, lines):,} replies written to {out}")
    for problem in problems:
        typer.echo(redact(problem), err=True)
    if problems:
        raise typer.Exit(1)


def overview_text(found: Overview, cost_of: CostOf | None = None) -> str:
    """What `show` shows. Args: cost_of = where given, the money saved has a column of its own."""
    total = found.total
    versions = sorted(set(found.versions))
    lines = [
        f"{found.folder}",
        f"{total.n_replies:,} replies in {_counted(len(found.versions), 'file')}, {_size(found.n_bytes)}, "
        f"schema version {', '.join(map(str, versions)) or 'none'}, "
        f"stored {_day(total.oldest_at)} to {_day(total.newest_at)}",
    ]
    columns = dict(_COLUMNS)
    if cost_of is not None:
        costs = [cost_of(share.model, share.saved) for share in found.models]
        known = [cost for cost in costs if cost is not None]
        of_all = sum(known) if known else None
        columns["saved USD"] = lambda share: _money(
            of_all if share is total else cost_of(share.model, share.saved), more=share is total and costs != known
        )
    if found.models:
        shown = [*found.models, total] if len(found.models) > 1 else found.models
        lines += ["", _table(shown, columns, last="all" if len(found.models) > 1 else None)]
    if cost_of is not None and known:
        lines.append(
            "USD at list prices, without a server's own cache: another server may have asked for another price"
        )
    if total.tokens.unknown or total.saved.unknown:
        lines.append(f"+ tokens are unknown for {total.tokens.unknown:,} replies and {total.saved.unknown:,} hits")
    if found.set_aside:
        names = ", ".join(path.name for path in found.set_aside)
        lines.append(f"set aside as damaged, read by nothing, delete them if you like: {names}")
    return "\n".join(lines)


def _reasons(share: ModelShare) -> str:
    told = [f"{reason} {count:,}" for reason, count in sorted(share.reasons.items(), key=lambda item: -item[1])]
    return ", ".join([*told, *([f"({share.n_empty:,} empty)"] if share.n_empty else [])])


_SELECTED: dict[str, Callable[[ModelShare], str]] = {
    "replies": lambda share: f"{share.n_replies:,}",
    "size": lambda share: _size(share.n_bytes),
    "finish reasons": _reasons,
    "oldest": lambda share: _day(share.oldest_at),
    "newest": lambda share: _day(share.newest_at),
}
_COLUMNS: dict[str, Callable[[ModelShare], str]] = {
    "replies": _SELECTED["replies"],
    "size": _SELECTED["size"],
    "finish reasons": _reasons,
    "tokens in": lambda share: _known(share.tokens.input, share.tokens.unknown, share.n_replies),
    "tokens out": lambda share: _known(share.tokens.output, share.tokens.unknown, share.n_replies),
    "hits": lambda share: f"{share.saved.hits:,}",
    "saved in": lambda share: _known(share.saved.input_tokens, share.saved.unknown, share.saved.hits),
    "saved out": lambda share: _known(share.saved.output_tokens, share.saved.unknown, share.saved.hits),
}


def _table(
    shares: Sequence[ModelShare], columns: dict[str, Callable[[ModelShare], str]], last: str | None = None
) -> str:
    """Rows of texts under each other. Args: last = the name of the last row."""
    rows = [["model", *columns]]
    rows += [[share.model or "(not told)", *[text(share) for text in columns.values()]] for share in shares]
    if last is not None:
        rows[-1][0] = last
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _chosen(folder: Path | None) -> Path:
    chosen = folder or settings.ledger_folder()
    if chosen is None:
        raise LedgerError("the ledger is switched off (INTERBENCH_LEDGER=off): name a folder with --folder")
    return chosen


def _known(tokens: int, unknown: int, n: int) -> str:
    """A sum of tokens; `+` where those of some replies are unknown and missing in it."""
    if n and unknown == n:
        return "unknown"
    return f"{tokens:,}{'+' if unknown else ''}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _size(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"


def _day(at: float | None) -> str:
    return "never" if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _money(cost: float | None, *, more: bool = False) -> str:
    """A sum of money; `+` where models without a known price are missing in it."""
    return "no price" if cost is None else f"{cost:.2f}{'+' if more else ''}"
