"""What lies on a desk: items, claims, drafts, submissions, as records and as rows of its file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from interbench_tasks.errors import RefusedError

Content = Mapping[str, Any]
"""What a person filled in, by the names of the form's fields; JSON-able."""
State = Literal["free", "yours", "with_another", "answered_by_you", "answered", "taken"]
"""Of an item, as one annotator sees it. `answered`: as many others as it needs; `taken`: the run has it."""
_ANNOTATOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """Something that a person is to answer."""

    id: str
    """See `item_id`."""
    kind: str
    """Which form it is answered by, e.g. `feedback`."""
    payload: Content
    """What is shown, as its form reads it."""
    needs: int = 1
    """How many annotators are to answer it, each once; >= 1."""
    run: str = ""
    """Who put it there, see `Desk.begin_run`; '' where no run waits for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(NewItem):
    """An item on the desk."""

    place: int
    """Order of arrival."""
    created: float
    """Unix time."""
    taken_at: float | None = None
    """Unix time at which the run took the answers; nothing can be undone any more."""
    wanted: bool = True
    """Whether the run that put it there is alive; True where none waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPicture:
    """A picture on the desk."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What one annotator handed in."""

    id: int
    item: str
    annotator: str
    content: Content
    seconds: float
    """Time spent on the item."""
    at: float
    """Unix time."""
    undone_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What was written and not handed in yet."""

    content: Content
    seconds: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An item as one annotator sees it."""

    item: Item
    state: State
    draft: Draft | None = None
    mine: Submission | None = None
    """What this annotator handed in for it."""
    others: tuple[str, ...] = ()
    """Annotators who work on it now or have answered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much there is to do."""

    waiting: int
    """Items that still need an answer, of whomever."""
    to_do: int
    """Of these, those that this annotator has not answered; it falls with each answer."""
    for_you: int
    """Of these, those that this annotator could begin with now."""
    with_others: int
    """Of these, those that others are working on."""
    of_gone_runs: int
    """Of these, those that no run waits for at the moment."""
    yours: int
    """What this annotator has answered."""
    runs: int
    """Runs that are alive."""
    runs_known: int
    """All runs that ever asked here; 0 where what lies on the desk was put there by no run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An answer that comes without a page, e.g. a line of a file."""

    item: str
    annotator: str
    content: Content
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What decides on an item's state."""

    needs: int
    taken: bool
    answered_by: tuple[str, ...]
    claimed_by: tuple[str, ...] = field(default=())


def item_id(parts: Sequence[str]) -> str:
    """The id of an item that is made of `parts` (task, episode, repeat, branch, round, texts, picture digests, ...)."""
    return hashlib.sha256(json.dumps(list(parts), ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def checked_annotator(name: str) -> str:
    """A pseudonymous id as it is stored.

    Raises: RefusedError where it is empty, too long, or looks like an address.
    """
    stripped = name.strip()
    if not _ANNOTATOR.fullmatch(stripped):
        raise RefusedError(
            "invalid",
            f"'{stripped[:60]}' cannot be an annotator's id: use a pseudonym of 1 to 40 letters, digits, _ . and - "
            "(no name, no e-mail address)",
        )
    return stripped


ITEM = (
    "SELECT place, item.id, kind, payload, needs, created, run, taken_at, "
    "run = '' OR EXISTS (SELECT 1 FROM run r WHERE r.id = item.run AND r.ended_at IS NULL AND r.seen_at > ?) FROM item"
)
SUBMISSION = "SELECT id, item, annotator, content, seconds, at, undone_at FROM submission"
OPEN = """
SELECT i.id, i.place, i.needs,
    (SELECT count(*) FROM submission s WHERE s.item = i.id AND s.undone_at IS NULL) AS answers,
    EXISTS (SELECT 1 FROM submission s WHERE s.item = i.id AND s.undone_at IS NULL AND s.annotator = ?) AS mine,
    (SELECT count(*) FROM claim c WHERE c.item = i.id AND c.annotator != ? AND c.at > ? AND NOT EXISTS
        (SELECT 1 FROM submission s WHERE s.item = i.id AND s.undone_at IS NULL AND s.annotator = c.annotator)
    ) AS others,
    EXISTS (SELECT 1 FROM claim c WHERE c.item = i.id AND c.annotator = ? AND c.at > ?) AS begun,
    (SELECT k.at FROM skip k WHERE k.item = i.id AND k.annotator = ?) AS skipped,
    i.run = '' OR EXISTS (SELECT 1 FROM run r WHERE r.id = i.run AND r.ended_at IS NULL AND r.seen_at > ?) AS wanted,
    NOT EXISTS (SELECT 1 FROM run r WHERE r.ended_at IS NULL AND r.seen_at > ?) AS nobody_asks
FROM item i WHERE i.taken_at IS NULL
    AND (SELECT count(*) FROM submission s WHERE s.item = i.id AND s.undone_at IS NULL) < i.needs
"""
"""Items that still need an answer, as one annotator sees them."""
REFUSALS: Mapping[str, str] = {
    "answered_by_you": "you have answered it already; undo that first to change it",
    "answered": "it was answered meanwhile by somebody else",
    "taken": "the run has taken an answer to it already",
}


def state_of(facts: Facts, annotator: str) -> State:
    """What an item is to one annotator."""
    if facts.taken:
        return "taken"
    if annotator in facts.answered_by:
        return "answered_by_you"
    if len(facts.answered_by) >= facts.needs:
        return "answered"
    others = {*facts.answered_by, *facts.claimed_by} - {annotator}
    if annotator in facts.claimed_by:
        return "yours"
    return "with_another" if len(others) >= facts.needs else "free"


def item_from(row: Sequence[Any]) -> Item:
    """The item of a row of `ITEM`."""
    place, name, kind, payload, needs, created, run, taken_at, wanted = row
    return Item(
        id=name,
        kind=kind,
        payload=json.loads(payload),
        needs=needs,
        run=run,
        place=place,
        created=created,
        taken_at=taken_at,
        wanted=bool(wanted),
    )


def submission_from(row: Sequence[Any]) -> Submission:
    """The submission of a row of `SUBMISSION`."""
    number, item, annotator, content, seconds, at, undone_at = row
    return Submission(
        id=number,
        item=item,
        annotator=annotator,
        content=json.loads(content),
        seconds=seconds,
        at=at,
        undone_at=undone_at,
    )
