"""The same desk in a terminal: for machines without a browser."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from interbench_tasks.errors import PeopleError, RefusedError
from interbench_tasks.people.desk import Desk, Item
from interbench_tasks.people.forms import Field, Form, form_of
from interbench_tasks.people.queue_files import saved_picture

WIDTH = 100
LOOK_EVERY_S = 2.0
HELP = (
    "Commands, each alone on a line: :send  :right (the reply is right)  :clear (the text)  :skip  :undo  :quit\n"
    "An empty line belongs to the text; :send hands it in, Ctrl-D does too."
)
Say = Callable[[str], None]
Ask = Callable[[str], str]
"""A line of input; raises EOFError at the end of it."""


class Terminal:
    """One annotator at a terminal; what they write is saved line by line.

    Args: say, ask = how to write and read; pictures = where pictures are written to, to be opened with a viewer;
        sleep = how to wait until something is on the desk.
    """

    def __init__(
        self,
        desk: Desk,
        forms: Mapping[str, Form],
        annotator: str,
        *,
        say: Say,
        ask: Ask,
        pictures: Path,
        hide_answer: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._desk = desk
        self._forms = forms
        self._annotator = annotator
        self._say = say
        self._ask = ask
        self._pictures = pictures
        self._hide_answer = hide_answer
        self._sleep = sleep

    def work(self) -> None:
        """Go through the items until the annotator leaves."""
        self._say(HELP)
        while True:
            item = self._desk.next_for(self._annotator)
            if item is None:
                if not self._at_rest():
                    return
            elif not self._one(self._desk.claim(item, self._annotator).item):
                return

    def _at_rest(self) -> bool:
        counts = self._desk.counts(self._annotator)
        self._say(f"\nNothing waits for you ({counts.waiting} with others, {counts.runs} run(s) there).")
        while True:
            word = self._command(":wait, :undo or :quit> ")
            if word in (":quit", ""):
                return False
            if word == ":undo":
                return self._undo()
            while self._desk.next_for(self._annotator) is None:
                self._sleep(LOOK_EVERY_S)
            return True

    def _command(self, prompt: str) -> str:
        try:
            return self._ask(prompt).strip()
        except EOFError:
            return ":quit"

    def _one(self, item: Item) -> bool:
        """Show an item and take what is said; False where the annotator leaves."""
        form = form_of(item.kind, self._forms)
        self._show(form, item)
        began = time.monotonic()
        draft = self._desk.draft(item.id, self._annotator)
        before = draft.seconds if draft else 0.0
        content = {name: str(value) for name, value in (draft.content if draft else {}).items() if name != "action"}
        if draft and any(content.values()):
            self._say(f"Your draft, which goes on:\n{_indented(content.get('text', ''))}")

        def seconds() -> float:
            return before + time.monotonic() - began

        def save(name: str, text: str) -> None:
            self._desk.save_draft(item.id, self._annotator, {**content, name: text}, seconds())

        for field in form.fields(item.payload):
            value, word = self._value(field, content.get(field.name, ""), partial(save, field.name))
            content[field.name] = value
            if word == ":quit":
                return False
            if word == ":undo":
                return self._undo()
            if word == ":skip":
                self._desk.skip(item.id, self._annotator)
                return True
            if word == ":right":
                return self._hand_in(form, item, {**content, "action": "marked_right"}, seconds())
        return self._hand_in(form, item, {**content, "action": form.actions(item.payload)[0].name}, seconds())

    def _value(self, field: Field, value: str, save: Callable[[str], object]) -> tuple[str, str]:
        """What was written into a field, and the command that ended it."""
        if field.kind == "choice":
            for choice in field.choices:
                self._say(f"  {choice.key or choice.value}  {choice.label}  {choice.help}")
            word = self._command(f"{field.label}> ")
            picked = next((one.value for one in field.choices if word in (one.key, one.value)), word)
            return (value, word) if word.startswith(":") else (picked, ":send")
        self._say(f"{field.label}:")
        lines = value.split("\n") if value else []
        while True:
            try:
                line = self._ask("> ")
            except EOFError:
                return "\n".join(lines), ":send"
            if line.strip() in (":send", ":right", ":skip", ":undo", ":quit"):
                return "\n".join(lines), line.strip()
            if line.strip() == ":clear":
                lines = []
                save("")
                continue
            if line.strip().startswith(":") and " " not in line.strip():
                self._say(f"No command '{line.strip()}'. {HELP}")
                continue
            lines.append(line)
            save("\n".join(lines))

    def _hand_in(self, form: Form, item: Item, content: dict[str, str], seconds: float) -> bool:
        problems = form.problems(item.payload, content)
        for problem in problems:
            self._say(f"Not handed in. {problem}")
        if problems:
            self._desk.save_draft(item.id, self._annotator, {**content, "action": ""}, seconds)
            return True
        try:
            self._desk.submit(item.id, self._annotator, content, seconds)
            until = " until the run takes it" if self._desk.counts(self._annotator).runs_known else ""
            self._say(f"Handed in. :undo takes it back{until}.")
        except RefusedError as error:
            self._say(f"Not handed in. {error}. What you wrote is kept as a draft.")
        return True

    def _undo(self) -> bool:
        try:
            self._desk.undo(self._annotator)
            self._say("Undone: your last answer is a draft again.")
        except RefusedError as error:
            self._say(f"{error}.")
        return True

    def _show(self, form: Form, item: Item) -> None:
        counts = self._desk.counts(self._annotator)
        self._say(f"\n{'=' * WIDTH}\n{_plain(form.title(item.payload))}   ({counts.to_do} waiting)")
        if not item.wanted:
            self._say("The run that asks this is not there at the moment; your answer is kept for it.")
        for part in form.parts(item.payload):
            if part.secret and self._hide_answer:
                continue
            self._say(f"\n--- {part.title}")
            for digest in part.pictures:
                self._say(f"    picture: {self._picture(digest)}")
            if part.text:
                self._say(_indented(part.text))
            for name, text in part.rows:
                self._say(_indented(f"{name}. {text}"))

    def _picture(self, digest: str) -> str:
        try:
            return saved_picture(self._desk, digest, self._pictures) or "not on this desk"
        except OSError as error:
            raise PeopleError(f"{self._pictures}: pictures cannot be written there ({error})") from error


def _plain(text: str) -> str:
    """The text without what would steer the terminal: a model's reply may hold anything."""
    return "".join(c if c in "\n\t" or (c.isprintable() and c not in _STEERING) else "\ufffd" for c in text)


_STEERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _indented(text: str) -> str:
    lines = [textwrap.wrap(line, WIDTH - 4, drop_whitespace=False) or [""] for line in _plain(text).split("\n")]
    return "\n".join(f"    {line}" for wrapped in lines for line in wrapped)
