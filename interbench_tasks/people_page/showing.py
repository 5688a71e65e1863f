"""What the templates are given: items, forms and messages as plain values. Jinja2 escapes every text of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

from interbench_tasks.people.desk import Content, Counts, Standing
from interbench_tasks.people.forms import Field, Form, Part

NOTES: Mapping[str, str] = {
    "sent": "Handed in. `Undo last` takes it back.",
    "skipped": "Skipped. It comes again after all others.",
    "undone": "Undone: your last answer is a draft again.",
    "named": "Welcome.",
}
"""What happened before a page was opened, by the name in its address; nothing else of an address is shown."""
STATES: Mapping[str, str] = {
    "free": "waits",
    "yours": "yours, begun",
    "with_another": "somebody is on it",
    "answered_by_you": "answered by you",
    "answered": "answered",
    "taken": "taken by the run",
}
PER_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A field with what was filled in so far."""

    field: Field
    value: str


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("interbench_tasks.people_page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(template: str, **values: object) -> str:
    """A page as HTML; halves of characters, which models do write, become question marks."""
    text = _templates().get_template(template).render(**values)
    return text.encode("utf-8", "replace").decode()


def parts_shown(form: Form, payload: Content, *, hide_answer: bool) -> list[Part]:
    """The parts of an item, without what is hidden."""
    return [part for part in form.parts(payload) if not (hide_answer and part.secret)]


def fields_shown(form: Form, payload: Content, content: Content) -> list[Shown]:
    """The fields with what was filled in."""
    return [Shown(field=one, value=str(content.get(one.name) or "")) for one in form.fields(payload)]


def why_not_yours(standing: Standing) -> str:
    """Why the annotator cannot answer an item; '' where they can."""
    others = ", ".join(standing.others) or "somebody"
    return {
        "free": "",
        "yours": "",
        "with_another": f"{others} is working on this item. It is yours if they leave it.",
        "answered_by_you": "You have answered this item. To change your answer, undo it.",
        "answered": f"This item was answered meanwhile by {others}.",
        "taken": "The run has taken the answer to this item; it cannot be changed any more.",
    }[standing.state]


def note_shown(note: str, counts: Counts) -> str:
    """What happened; of an answer that a run may take, that it can be undone until then."""
    if note == NOTES["sent"] and counts.runs_known:
        return note.removesuffix(".") + ", as long as no run has taken it."
    return note


def run_note(counts: Counts, standing: Standing | None = None) -> str:
    """What people should know of the run; '' where all is as usual."""
    gone = counts.runs_known > 0 and counts.runs == 0 if standing is None else not standing.item.wanted
    if gone:
        return (
            "The run that asks this is not there at the moment. What you hand in is kept, and the run takes it when it "
            "is started again with the same command."
        )
    return ""


def queue_rows(standings: list[Standing], forms: Mapping[str, Form], now: float | None = None) -> list[dict[str, Any]]:
    """The rows of the list of items."""
    rows = []
    for standing in standings:
        form = forms.get(standing.item.kind)
        rows.append(
            {
                "id": standing.item.id,
                "title": form.title(standing.item.payload) if form else standing.item.kind,
                "state": STATES[standing.state],
                "wanted": standing.item.wanted,
                "others": ", ".join(standing.others),
                "draft": standing.draft is not None,
                "age": age((time.time() if now is None else now) - standing.item.created),
            }
        )
    return rows


def age(seconds: float) -> str:
    """A time span in words.

    >>> age(5), age(200), age(9000), age(200000)
    ('just now', '3 min', '2 h', '2 d')
    """
    if seconds < 60:
        return "just now"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return ""
