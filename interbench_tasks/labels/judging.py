"""The sample on a desk: people judge it at the page, and what they hand in becomes labels of the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interbench_tasks.errors import InterbenchError
from interbench_tasks.labels.items import Judgeable, picture_file
from interbench_tasks.labels.opinions import Labelled, LabelledRun
from interbench_tasks.labels.scales import DETECTED, FLAWED, YES, LabelField, Opinion
from interbench_tasks.labels.store import Label, add_labels, now, read_labels
from interbench_tasks.people.desk import Desk, NewItem, StoredPicture, Submission
from interbench_tasks.people.judging_form import KIND, asked_values

DESK = "judging.sqlite"
"""In the run folder: where people's work lies until it is taken."""
GRACE_S = 10.0
"""For so long what was handed in can be undone."""
LOOK_EVERY_S = 2.0
MIMES = {".webp": "image/webp", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".gif": "image/gif"}
_STRATEGY_KEYS = {"correction": "c", "clarification": "l", "refusal": "r", "none": "o"}


class JudgingDesk:
    """A desk with the sample of one run on it.

    Args:
        labelled: the run, its sample and the labels that are there.
        desk: where its replies are laid.
        grace_s: see `GRACE_S`.
    """

    def __init__(self, labelled: LabelledRun, desk: Desk, *, grace_s: float = GRACE_S) -> None:
        self._labelled = labelled
        self._desk = desk
        self._grace_s = grace_s
        self.problems: list[str] = []
        """What of people's work could not become a label, each a sentence."""

    # --- on the desk ----------------------------------------------------------------------------------------------

    def lay(self) -> int:
        """Lay all replies that still need a person on the desk; gives how many there are.

        Nobody is shown a verdict or a model's name. A reply that has some labels already needs as many people fewer.
        An answer that is a label already (the page was closed meanwhile) cannot be undone any more: labels stay.
        """
        found: list[NewItem] = []
        pictures: dict[str, StoredPicture] = {}
        there = {item.id for item in self._desk.items(KIND)}
        for number, one in enumerate(self._labelled.items.values(), 1):
            needs = self._needs(one, on_desk=one.item.id in there)
            if needs > 0:
                payload = self._payload(one.item, number)
                pictures |= self._pictures(one.item, pictures)
                found.append(NewItem(id=one.item.id, kind=KIND, payload=payload, needs=needs))
        self._desk.put(found, pictures)
        kept = [(label.item, label.annotator) for one in self._labelled.items.values() for label in one.labels]
        self._desk.settled = frozenset(kept)
        return len(found)

    def _needs(self, one: Labelled, *, on_desk: bool) -> int:
        """How many people are to judge it at the page: those planned, without those whose labels are not from there."""
        wanted = max(self._labelled.sample.design.annotators, 3 if one.open_fields else 0)
        return wanted - sum(label.source != "page" or not on_desk for label in one.labels)

    def _payload(self, item: Judgeable, number: int) -> dict[str, Any]:
        asked = self._labelled.run.asked[item.kind]
        kept = {one.digest for one in item.pictures if picture_file(self._labelled.run.folder, one.digest)}
        return {
            "task": asked.task,
            "number": number,
            "what": "flawed input" if item.kind == FLAWED else item.kind,
            "question": item.question,
            "excerpt": item.excerpt,
            "reference": item.reference,
            "reply": item.reply,
            "pictures": [one.digest for one in item.pictures if one.digest in kept],
            "missing": [f"{one.width}x{one.height} pixels" for one in item.pictures if one.digest not in kept],
            "fields": [_field(one) for one in asked.fields],
        }

    def _pictures(self, item: Judgeable, there: Mapping[str, StoredPicture]) -> dict[str, StoredPicture]:
        found = {}
        for one in item.pictures:
            file = picture_file(self._labelled.run.folder, one.digest) if one.digest not in there else None
            if file is not None:
                found[one.digest] = StoredPicture(mime=MIMES[file.suffix], data=file.read_bytes())
        return found

    # --- back into labels -----------------------------------------------------------------------------------------

    def collect(self, *, all_there_is: bool = False, once_more: bool = False) -> int:
        """Take what people handed in as labels of the run; gives how many were added.

        A reply whose two judgements differ needs a third person then, who gets it by itself, and is taken with the
        third.

        Args: all_there_is = take also single judgements and those that wait for a third: the page is about to close;
            once_more = look also at what was taken before: whoever took it may have been stopped before it was written.
        Raises: RunFolderError, PeopleError where files cannot be read or written.
        """
        chosen: list[str] = []
        for name in self._desk.ready(grace_s=self._grace_s):
            if self._waits_for_a_third(name):
                self._desk.need(name, self._people_at_the_page(name) + 1)
            else:
                chosen.append(name)
        if once_more:
            chosen += [item.id for item in self._desk.items(KIND) if item.taken_at is not None]
        taken = [one for own in self._desk.take(chosen, grace_s=self._grace_s).values() for one in own]
        if all_there_is:
            taken += self._desk.all_answers(KIND)
        labels = [label for one in taken if (label := self._label(one)) is not None]
        if not labels:
            return 0
        there = {(own.item, own.annotator): dict(own.values) for own in read_labels(self._labelled.run.folder)}
        new = [own for own in labels if there.get((own.item, own.annotator)) != dict(own.values)]
        return sum(self._added(label) for label in new)

    def _added(self, label: Label) -> int:
        try:
            return add_labels(self._labelled.run.folder, [label])
        except InterbenchError as error:
            if "otherwise already" not in str(error):
                raise
            self.problems.append(f"{error}: what was said at the page is left out")
            return 0

    def _waits_for_a_third(self, name: str) -> bool:
        one = self._labelled.items.get(name)
        if one is None:
            return False
        elsewhere = [own for label, own in zip(one.labels, one.opinions, strict=True) if label.source != "page"]
        said = [*elsewhere, *(own for answer in self._desk.answers(name) if (own := self._opinion(answer)))]
        return len(said) == 2 and bool(self._labelled.run.asked[one.item.kind].differ(*said))

    def _people_at_the_page(self, name: str) -> int:
        return len(self._desk.answers(name))

    def _opinion(self, answer: Submission) -> Opinion:
        one = self._labelled.items[answer.item]
        values = asked_values(self._desk.item(answer.item).payload, answer.content)
        opinion, problems = self._labelled.run.asked[one.item.kind].opinion(values)
        return {} if problems else opinion

    def _label(self, answer: Submission) -> Label | None:
        if answer.item not in self._labelled.items:
            return None
        opinion = self._opinion(answer)
        if not opinion:
            self.problems.append(f"{answer.annotator} on {answer.item}: the judgement is not on the scale; left out")
            return None
        asked = self._labelled.run.asked[self._labelled.items[answer.item].item.kind]
        return Label(
            item=answer.item,
            annotator=answer.annotator,
            values=asked.texts(opinion),
            source="page",
            seconds=round(answer.seconds, 1),
            at=now(),
        )


class Collector:
    """Takes what people hand in, in a thread of its own, while a page is open.

    Args:
        judging: the desk.
        tell: called with what went wrong, each once.
    """

    def __init__(self, judging: JudgingDesk, tell: Callable[[str], object]) -> None:
        self._judging = judging
        self._tell = tell
        self._told: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="labels", daemon=True)

    def __enter__(self) -> Collector:
        self._collect(all_there_is=False, once_more=True)  # what a page that was killed had not taken, or not written
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._collect(all_there_is=True)

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            self._collect(all_there_is=False)

    def _collect(self, *, all_there_is: bool, once_more: bool = False) -> None:
        problems: Sequence[str]
        try:
            self._judging.collect(all_there_is=all_there_is, once_more=once_more)
            problems = self._judging.problems
        except InterbenchError as error:  # e.g. a full disk: what people did stays on the desk, and is taken later
            problems = [str(error)]
        for problem in problems:
            if problem not in self._told:
                self._told.add(problem)
                self._tell(problem)


def _field(one: LabelField) -> dict[str, Any]:
    """A value as the form has it: digits by their own key, yes and no by their first letter."""
    only_if: dict[str, list[str]] = {DETECTED: [YES]} if one.needs_detection else {}
    if one.name == "strategy_score":
        only_if["strategy"] = [name for name in _STRATEGY_KEYS if name != "none"]
    help_of = _help_by_value(one)
    choices = [
        {"value": value, "label": value, "key": _key(one, value), "help": help_of.get(value, "")}
        for value in one.values
    ]
    meaning = one.meaning[:1].upper() + one.meaning[1:]
    hints = ["Only where something was detected." if one.needs_detection else "", meaning]
    return {
        "name": one.name,
        "label": one.title,
        "hint": " ".join(filter(None, hints)),
        "choices": choices,
        "only_if": only_if,
    }


def _help_by_value(one: LabelField) -> dict[str, str]:
    """What deserves each value; a band of several (`3-4`) is that of each of them."""
    found: dict[str, str] = {}
    for band, text in (one.help or {}).items():
        ends = band.split("-") if one.ordinal else [band]
        values = range(int(ends[0]), int(ends[-1]) + 1) if one.ordinal else ends
        found |= {str(value): text for value in values}
    return found


def _key(one: LabelField, value: str) -> str:
    if one.name == DETECTED:
        return value[0]
    if one.ordinal:
        return value if len(value) == 1 else ""
    return _STRATEGY_KEYS.get(value, "")
