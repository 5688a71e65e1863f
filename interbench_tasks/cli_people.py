"""`interbench serve` and `interbench people ...`: people in the loop."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interbench_tasks.cli_people_labels import judging_desk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interbench_tasks.people.desk import Desk
    from interbench_tasks.people.forms import Form

people_app = typer.Typer(
    no_args_is_help=True, help="People in the loop: what waits for them as files; their labels of stored runs."
)
PLACE_HELP = "The run's --output_path, a folder of the run, or the desk's file (INTERBENCH_PEOPLE)."
Place = Annotated[Path, typer.Argument(help=PLACE_HELP, show_default=False)]
Hide = Annotated[bool, typer.Option("--hide-answer", help="Do not show the right answers.")]


def serve(
    place: Place,
    judge: Annotated[
        bool, typer.Option("--judge", help="Judge replies of a stored run (the sample of `interbench people sample`).")
    ] = False,
    terminal: Annotated[bool, typer.Option("--terminal", help="Work here, without a browser.")] = False,
    annotator: Annotated[str | None, typer.Option(help="With --terminal: your pseudonymous id.")] = None,
    hide_answer: Hide = False,
    links: Annotated[int, typer.Option(min=1, max=100, help="How many one-time links to print.")] = 1,
    host: Annotated[str, typer.Option(help="Address to serve at; others than this machine can then come in.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Default: 8420, or the next free one.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name that the page answers to; may be repeated.")
    ] = None,
) -> None:
    """Open the page at which people give feedback to a run that has them as its provider, or judge a stored run."""
    from interbench_tasks.people.forms import own_forms

    with judging_desk(place.expanduser()) if judge else desk_at(place) as desk:
        if terminal:
            _work_here(desk, own_forms(), annotator, hide_answer=hide_answer)
        else:
            open_page(
                desk, own_forms(), hide_answer=hide_answer, links=links, host=host, port=port, names=allow_host or ()
            )


def desk_at(place: Path) -> Desk:
    """The desk that a run has made at a place.

    Raises: PeopleError where there is none.
    """
    from interbench_tasks.people.desk import Desk
    from interbench_tasks.people.desk_file import existing_desk

    return Desk(existing_desk(place.expanduser()))


def open_page(
    desk: Desk,
    forms: Mapping[str, Form],
    *,
    hide_answer: bool = False,
    links: int = 1,
    host: str = "127.0.0.1",
    port: int | None = None,
    names: list[str] | tuple[str, ...] = (),
) -> None:
    """Serve a desk until it is stopped, and say with which links it is entered."""
    from interbench_tasks.people_page.app import Page
    from interbench_tasks.people_page.door import Door, allowed_hosts
    from interbench_tasks.people_page.serving import free_address
    from interbench_tasks.people_page.serving import serve as serve_until_stopped

    address = free_address(host, port)
    door = Door(hosts=allowed_hosts(host, address.names(names)))
    page = Page(desk, forms, door, port=address.port, hide_answer=hide_answer)
    if not address.is_local:
        typer.echo(
            f"WARNING: the page is served at {host}, not to this machine alone. Whoever reaches it and has a link "
            "comes in, and nothing on the way is encrypted; an ssh tunnel is safer: ssh -L "
            f"{address.port}:127.0.0.1:{address.port} THIS_MACHINE",
            err=True,
        )
    typer.echo(f"desk: {desk.path}")
    for _ in range(links):
        typer.echo(f"open: {address.url}/enter?token={door.new_token()}")
    typer.echo("Each link lets one browser in, once. Ctrl-C ends the page; what is on the desk stays there.")
    serve_until_stopped(page.app(), address)


def _work_here(desk: Desk, forms: Mapping[str, Form], annotator: str | None, *, hide_answer: bool) -> None:
    from interbench_tasks.people.desk import checked_annotator
    from interbench_tasks.people_page.terminal import Terminal

    name = checked_annotator(annotator or typer.prompt("Your pseudonymous id"))
    pictures = Path(tempfile.mkdtemp(prefix="interbench-pictures-"))
    Terminal(desk, forms, name, say=typer.echo, ask=input, pictures=pictures, hide_answer=hide_answer).work()


@people_app.command("export")
def export_waiting(
    place: Place,
    out: Annotated[Path, typer.Option("--out", "-o", help="JSONL file to write.", show_default=False)],
    hide_answer: Hide = False,
) -> None:
    """Write what waits, one item a line; pictures go into a folder beside."""
    from interbench_tasks.people.forms import own_forms
    from interbench_tasks.people.queue_files import write_waiting

    with desk_at(place) as desk:
        n_items = write_waiting(desk, own_forms(), out.expanduser(), hide_answer=hide_answer)
    typer.echo(f"wrote {out}: {n_items} item(s) that wait")
    typer.echo(
        f'fill in "annotator" and "text" (or set "marked_right": true), then: interbench people import {place} {out}'
    )


@people_app.command("import")
def import_answers(
    place: Place,
    answers: Annotated[Path, typer.Argument(help="JSONL file with answers.", show_default=False)],
    annotator: Annotated[str | None, typer.Option(help="Whose they are, where the lines do not say.")] = None,
) -> None:
    """Hand in the answers of a file: all of them, or none and every problem with its line."""
    from interbench_tasks.people.forms import own_forms
    from interbench_tasks.people.queue_files import read_answers

    with desk_at(place) as desk:
        done = read_answers(desk, own_forms(), answers.expanduser(), annotator=annotator)
    left_out = f"; {done.n_empty} line(s) that nobody filled in were left out" if done.n_empty else ""
    typer.echo(f"handed in {done.n_handed_in} answer(s){left_out}")
