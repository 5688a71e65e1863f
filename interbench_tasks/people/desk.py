"""The desk between a run and people: what waits for a person, who works on it, what they said.

One SQLite file that a run and any number of pages (or terminals, or imports) open at the same time. Whatever was handed
in is committed before anybody is told so, so each of them can be killed at any moment and nothing is lost. A run puts
items on the desk and takes the answers; an item's id is made of what is shown, so a run that starts again finds its own
items, with their answers.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from interbench_tasks.errors import PeopleError, RefusedError
from interbench_tasks.people.desk_file import DeskFile
from interbench_tasks.people.desk_items import (
    ITEM,
    OPEN,
    REFUSALS,
    SUBMISSION,
    Content,
    Counts,
    Draft,
    Entry,
    Facts,
    Item,
    NewItem,
    Standing,
    State,
    StoredPicture,
    Submission,
    checked_annotator,
    item_from,
    item_id,
    state_of,
    submission_from,
)
from interbench_tasks.people.sessions import Sessions

__all__ = [
    "CLAIM_S",
    "RUN_ALIVE_S",
    "Content",
    "Counts",
    "Desk",
    "Draft",
    "Entry",
    "Item",
    "NewItem",
    "Standing",
    "State",
    "StoredPicture",
    "Submission",
    "checked_annotator",
    "item_id",
]

CLAIM_S = 600.0
"""After so long without a sign of life an item is given to somebody else; a draft that is saved is one."""
RUN_ALIVE_S = 20.0
"""A run that was silent for so long is taken for gone."""
_IS_NEXT = "(mine = 0 AND answers + others < needs AND (wanted OR nobody_asks))"
"""Of what `OPEN` finds: what may be given to the annotator."""


class Desk:
    """An open desk; several threads may use it.

    Args:
        path: of its file; made where there is none.
        claim_s: see `CLAIM_S`.
        clock: the time, in seconds.

    Raises: PeopleError where it cannot be opened or written.
    """

    def __init__(self, path: Path, *, claim_s: float = CLAIM_S, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._file = DeskFile(path)
        self._claim_s = claim_s
        self._clock = clock
        self.sessions = Sessions(self._file, clock)
        """Who may look at the page."""
        self.settled: frozenset[tuple[str, str]] = frozenset()
        """(item, annotator) whose answer is in use elsewhere already, so that it cannot be undone any more."""

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what a run does ------------------------------------------------------------------------------------------

    def put(self, items: Iterable[NewItem], pictures: Mapping[str, StoredPicture] | None = None) -> None:
        """Lay items on the desk; one that is there already stays as it is, but belongs to the new run.

        Args: pictures = digest -> picture; each is stored once.
        """
        now = self._clock()
        rows = [(i.id, i.kind, json.dumps(i.payload), i.needs, now, i.run) for i in items]
        with self._file.change() as db:
            db.executemany(
                "INSERT INTO picture VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(digest, picture.mime, picture.data) for digest, picture in (pictures or {}).items()],
            )
            db.executemany(
                "INSERT INTO item (id, kind, payload, needs, created, run) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET run = excluded.run, needs = max(needs, excluded.needs)",
                rows,
            )

    def need(self, item: str, needs: int) -> None:
        """Ask for more annotators; never for fewer."""
        with self._file.change() as db:
            db.execute("UPDATE item SET needs = max(needs, ?) WHERE id = ?", (needs, item))

    def take(self, items: Iterable[str], *, grace_s: float = 0.0) -> dict[str, tuple[Submission, ...]]:
        """Item -> its answers, for those that have all they need, the last one `grace_s` ago or earlier.

        From then on nothing can be undone. What was taken before is given again.
        """
        now = self._clock()
        taken: dict[str, tuple[Submission, ...]] = {}
        ready = [item for item in items if self._ready(item, now - grace_s)]
        if not ready:
            return taken
        with self._file.change() as db:
            for item in ready:
                if (answers := self._ready(item, now - grace_s)) is not None:
                    db.execute("UPDATE item SET taken_at = coalesce(taken_at, ?) WHERE id = ?", (now, item))
                    taken[item] = answers
        return taken

    def ready(self, *, grace_s: float = 0.0) -> list[str]:
        """Items that `take` would take now for the first time, of all runs."""
        with self._file.look() as db:
            rows = db.execute(
                "SELECT i.id FROM item i JOIN submission s ON s.item = i.id AND s.undone_at IS NULL "
                "WHERE i.taken_at IS NULL GROUP BY i.id HAVING count(*) >= i.needs AND max(s.at) <= ? ORDER BY i.place",
                (self._clock() - grace_s,),
            ).fetchall()
        return [item for (item,) in rows]

    def _ready(self, item: str, latest: float) -> tuple[Submission, ...] | None:
        with self._file.look() as db:
            row = db.execute("SELECT needs, taken_at FROM item WHERE id = ?", (item,)).fetchone()
        answers = self.answers(item)
        if row is None or not answers:
            return None
        needs, taken_at = row
        ready = taken_at is not None or (len(answers) >= needs and max(a.at for a in answers) <= latest)
        return answers if ready else None

    def begin_run(self, run: str, task: str) -> None:
        """A run begins to wait for answers; `beat` says that it still does."""
        with self._file.change() as db:
            db.execute(
                "INSERT INTO run VALUES (?, ?, ?, NULL) ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, "
                "ended_at = NULL",
                (run, task, self._clock()),
            )

    def beat(self, run: str) -> None:
        """The run is alive."""
        with self._file.change() as db:
            db.execute("UPDATE run SET seen_at = ? WHERE id = ?", (self._clock(), run))

    def end_run(self, run: str) -> None:
        """The run waits no longer."""
        with self._file.change() as db:
            db.execute("UPDATE run SET ended_at = ? WHERE id = ?", (self._clock(), run))

    # --- what people see ------------------------------------------------------------------------------------------

    def counts(self, annotator: str) -> Counts:
        """How much there is to do, for one annotator."""
        now = self._clock()
        with self._file.look() as db:
            waiting, to_do, for_you, with_others, gone = db.execute(
                f"SELECT count(*), coalesce(sum(mine = 0), 0), coalesce(sum({_IS_NEXT}), 0), "
                f"coalesce(sum(others > 0), 0), coalesce(sum(NOT wanted), 0) FROM ({OPEN})",
                self._open_parameters(annotator, now),
            ).fetchone()
            (yours,) = db.execute(
                "SELECT count(*) FROM submission WHERE annotator = ? AND undone_at IS NULL", (annotator,)
            ).fetchone()
            runs, known = db.execute(
                "SELECT coalesce(sum(ended_at IS NULL AND seen_at > ?), 0), count(*) FROM run", (now - RUN_ALIVE_S,)
            ).fetchone()
        return Counts(
            waiting=waiting,
            to_do=to_do,
            for_you=for_you,
            with_others=with_others,
            of_gone_runs=gone,
            yours=yours,
            runs=runs,
            runs_known=known,
        )

    def next_for(self, annotator: str) -> str | None:
        """The item that this annotator should do next: one begun already, else the oldest that nobody works on.

        Skipped ones come last. Those of runs that are gone are for times when no run is there: one that is started
        again asks for its own once more, and what nobody will take is not worth anybody's time.
        """
        with self._file.look() as db:
            row = db.execute(
                f"SELECT id FROM ({OPEN}) WHERE {_IS_NEXT} "
                "ORDER BY begun DESC, skipped IS NOT NULL, skipped, place LIMIT 1",
                self._open_parameters(annotator, self._clock()),
            ).fetchone()
        return None if row is None else str(row[0])

    def queue(self, annotator: str, *, first: int = 0, most: int = 50) -> list[Standing]:
        """Items that still need an answer, oldest first. Args: first = so many are left out before."""
        with self._file.look() as db:
            rows = db.execute(
                f"SELECT id FROM ({OPEN}) ORDER BY place LIMIT ? OFFSET ?",
                (*self._open_parameters(annotator, self._clock()), most, first),
            ).fetchall()
        return [self.standing(item, annotator) for (item,) in rows]

    def _open_parameters(self, annotator: str, now: float) -> tuple[object, ...]:
        since = now - self._claim_s
        alive = now - RUN_ALIVE_S
        return (annotator, annotator, since, annotator, since, annotator, alive, alive)

    def waiting(self) -> list[Item]:
        """All items that still need an answer, oldest first."""
        with self._file.look() as db:
            rows = db.execute(f"{ITEM} WHERE taken_at IS NULL ORDER BY place", self._alive()).fetchall()
            answered = dict(
                db.execute("SELECT item, count(*) FROM submission WHERE undone_at IS NULL GROUP BY item").fetchall()
            )
        found = [item_from(row) for row in rows]
        return [item for item in found if answered.get(item.id, 0) < item.needs]

    def items(self, kind: str | None = None) -> list[Item]:
        """All items, also answered ones, oldest first. Args: kind = only those of this form."""
        where, parameters = ("", ()) if kind is None else (" WHERE kind = ?", (kind,))
        with self._file.look() as db:
            rows = db.execute(f"{ITEM}{where} ORDER BY place", (*self._alive(), *parameters)).fetchall()
        return [item_from(row) for row in rows]

    def item(self, item: str) -> Item:
        """One item.

        Raises: RefusedError where there is none of that id.
        """
        with self._file.look() as db:
            row = db.execute(f"{ITEM} WHERE item.id = ?", (*self._alive(), item)).fetchone()
        if row is None:
            raise RefusedError("unknown", f"there is no item '{item[:60]}' on this desk")
        return item_from(row)

    def _alive(self) -> tuple[float]:
        return (self._clock() - RUN_ALIVE_S,)

    def picture(self, digest: str) -> StoredPicture | None:
        """A picture; None where there is none of that digest."""
        with self._file.look() as db:
            row = db.execute("SELECT mime, data FROM picture WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else StoredPicture(mime=row[0], data=row[1])

    def standing(self, item: str, annotator: str) -> Standing:
        """An item as one annotator sees it; nothing is claimed.

        Raises: RefusedError where there is none of that id.
        """
        found = self.item(item)
        answers = self.answers(item)
        facts = self._facts(found, answers)
        draft = self.draft(item, annotator)
        mine = next((answer for answer in answers if answer.annotator == annotator), None)
        others = sorted({*facts.answered_by, *facts.claimed_by} - {annotator})
        return Standing(item=found, state=state_of(facts, annotator), draft=draft, mine=mine, others=tuple(others))

    def _facts(self, item: Item, answers: Sequence[Submission]) -> Facts:
        with self._file.look() as db:
            claims = db.execute(
                "SELECT annotator FROM claim WHERE item = ? AND at > ?", (item.id, self._clock() - self._claim_s)
            ).fetchall()
        return Facts(
            needs=item.needs,
            taken=item.taken_at is not None,
            answered_by=tuple(answer.annotator for answer in answers),
            claimed_by=tuple(name for (name,) in claims),
        )

    def answers(self, item: str) -> tuple[Submission, ...]:
        """What was handed in for an item and not undone, in that order."""
        with self._file.look() as db:
            rows = db.execute(f"{SUBMISSION} WHERE item = ? AND undone_at IS NULL ORDER BY id", (item,)).fetchall()
        return tuple(map(submission_from, rows))

    def all_answers(self, kind: str) -> list[Submission]:
        """All that was handed in for items of a kind and not undone, in that order."""
        with self._file.look() as db:
            rows = db.execute(
                f"{SUBMISSION} WHERE undone_at IS NULL AND item IN (SELECT id FROM item WHERE kind = ?) ORDER BY id",
                (kind,),
            ).fetchall()
        return list(map(submission_from, rows))

    # --- what people do -------------------------------------------------------------------------------------------

    def claim(self, item: str, annotator: str) -> Standing:
        """The item, claimed where it is free; the annotator's other claims are given back.

        Raises: RefusedError where there is none of that id.
        """
        with self._file.change() as db:
            standing = self.standing(item, annotator)
            if standing.state in ("free", "yours"):
                db.execute("DELETE FROM claim WHERE annotator = ? AND item != ?", (annotator, item))
                self._claim(db, item, annotator)
        return self.standing(item, annotator)

    def _claim(self, db: sqlite3.Connection, item: str, annotator: str) -> None:
        db.execute("INSERT OR REPLACE INTO claim VALUES (?, ?, ?)", (item, annotator, self._clock()))

    def skip(self, item: str, annotator: str) -> None:
        """Give the item back; it comes again after all others."""
        with self._file.change() as db:
            db.execute("DELETE FROM claim WHERE item = ? AND annotator = ?", (item, annotator))
            db.execute("INSERT OR REPLACE INTO skip VALUES (?, ?, ?)", (item, annotator, self._clock()))

    def save_draft(self, item: str, annotator: str, content: Content, seconds: float = 0.0) -> State:
        """Keep what was written so far, whatever the state of the item; the state is told."""
        with self._file.change() as db:
            standing = self.standing(item, annotator)
            if standing.mine is not None and _same_words(standing.mine.content, content):
                return standing.state  # saved once more by a page that has handed it in
            self._keep_draft(db, item, annotator, content, seconds)
            if standing.state in ("free", "yours"):
                self._claim(db, item, annotator)
        return standing.state

    def _keep_draft(self, db: sqlite3.Connection, item: str, annotator: str, content: Content, seconds: float) -> None:
        row = (item, annotator, json.dumps(content), max(0.0, seconds), self._clock())
        db.execute("INSERT OR REPLACE INTO draft VALUES (?, ?, ?, ?, ?)", row)

    def draft(self, item: str, annotator: str) -> Draft | None:
        """What the annotator wrote and did not hand in."""
        with self._file.look() as db:
            row = db.execute(
                "SELECT content, seconds, at FROM draft WHERE item = ? AND annotator = ?", (item, annotator)
            ).fetchone()
        return None if row is None else Draft(content=json.loads(row[0]), seconds=row[1], at=row[2])

    def submit(self, item: str, annotator: str, content: Content, seconds: float = 0.0) -> Submission:
        """Hand an answer in. The form has looked at it before.

        Raises: RefusedError where the item is unknown or does not need it any more; the words are kept as a draft.
        """
        refused = None
        with self._file.change() as db:
            try:
                number = self._hand_in(db, Entry(item=item, annotator=annotator, content=content, seconds=seconds))
            except RefusedError as error:
                refused = error
                if error.reason != "unknown":
                    self._keep_draft(db, item, annotator, content, seconds)
        if refused is not None:
            raise refused
        return self._submission(number)

    def submit_all(self, entries: Sequence[Entry]) -> list[str | None]:
        """Hand in all or nothing. Returns: for each entry why it is refused, None where it is not."""
        refusals: list[str | None] = []
        with contextlib.suppress(_NothingWritten), self._file.change() as db:
            for entry in entries:
                try:
                    self._hand_in(db, entry)
                except RefusedError as error:
                    refusals.append(str(error))
                else:
                    refusals.append(None)
            if any(refusals):
                raise _NothingWritten
        return refusals

    def _hand_in(self, db: sqlite3.Connection, entry: Entry) -> int:
        annotator = checked_annotator(entry.annotator)
        item = self.item(entry.item)
        state = state_of(self._facts(item, self.answers(item.id)), annotator)
        if state in REFUSALS:
            raise RefusedError(state, f"item {item.id}: {REFUSALS[state]}")
        row = (item.id, annotator, json.dumps(entry.content), entry.seconds, self._clock())
        cursor = db.execute(
            "INSERT INTO submission (item, annotator, content, seconds, at) VALUES (?, ?, ?, ?, ?)", row
        )
        for table in ("draft", "claim", "skip"):
            db.execute(f"DELETE FROM {table} WHERE item = ? AND annotator = ?", (item.id, annotator))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def undo(self, annotator: str) -> Submission:
        """Take the annotator's last answer back: it is a draft again.

        Raises: RefusedError where there is none, or the run has taken it.
        """
        with self._file.change() as db:
            row = db.execute(
                f"{SUBMISSION} WHERE annotator = ? AND undone_at IS NULL ORDER BY id DESC LIMIT 1", (annotator,)
            ).fetchone()
            if row is None:
                raise RefusedError("nothing", "there is nothing to undo: you have handed nothing in yet")
            last = submission_from(row)
            if not self._can_be_undone(last):
                raise RefusedError("taken", "your last answer cannot be undone any more: the run has taken it")
            db.execute("UPDATE submission SET undone_at = ? WHERE id = ?", (self._clock(), last.id))
            self._keep_draft(db, last.item, annotator, last.content, last.seconds)
            db.execute("DELETE FROM claim WHERE annotator = ?", (annotator,))
            self._claim(db, last.item, annotator)
        return self._submission(last.id)

    def last_submission(self, annotator: str) -> Submission | None:
        """The annotator's last answer, while it can be undone."""
        with self._file.look() as db:
            row = db.execute(
                f"{SUBMISSION} WHERE annotator = ? AND undone_at IS NULL ORDER BY id DESC LIMIT 1", (annotator,)
            ).fetchone()
        last = None if row is None else submission_from(row)
        return last if last is not None and self._can_be_undone(last) else None

    def _can_be_undone(self, answer: Submission) -> bool:
        return self.item(answer.item).taken_at is None and (answer.item, answer.annotator) not in self.settled

    def _submission(self, number: int) -> Submission:
        with self._file.look() as db:
            return submission_from(db.execute(f"{SUBMISSION} WHERE id = ?", (number,)).fetchone())


class _NothingWritten(PeopleError):
    """Ends a transaction of which nothing is to stay."""


def _same_words(left: Content, right: Content) -> bool:
    return {**left, "action": ""} == {**right, "action": ""}
