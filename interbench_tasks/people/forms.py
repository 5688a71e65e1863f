"""What a person sees of an item and fills in: one form for each kind of item.

A form knows nothing of pages and terminals. It turns an item's payload into parts to show, says which fields there are,
and looks at what was filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from interbench_tasks.answers.choice import extract_choice
from interbench_tasks.errors import InterbenchError, near_miss
from interbench_tasks.people.desk_items import Content

Tone = Literal["task", "question", "options", "reply", "told", "answer", "note"]
"""What a part is: it decides on its looks only. `task`: what the person is to do; `told`: what the model was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing to show; all texts are shown as they are, never as HTML."""

    title: str
    text: str = ""
    tone: Tone = "note"
    rows: tuple[tuple[str, str], ...] = ()
    """Two columns beside the text, e.g. letters and options, or scores and what they mean."""
    pictures: tuple[str, ...] = ()
    """Digests, in the order to show."""
    secret: bool = False
    """Whether it can be hidden (the right answer)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a field."""

    value: str
    label: str
    key: str = ""
    """The key that picks it; '' for none."""
    help: str = ""
    """What it means, beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Something to fill in."""

    name: str
    label: str
    kind: Literal["text", "choice"] = "text"
    choices: tuple[Choice, ...] = ()
    """Of a `choice`."""
    optional: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A way to hand the form in; its name goes into the content as `action`."""

    name: str
    label: str
    key: str = ""
    """The key that does it where no text is being written; '' for none. Ctrl+Enter does the first one."""
    bare: bool = False
    """Whether it needs no field to be filled in."""


class Form(Protocol):
    """One kind of item."""

    @property
    def kind(self) -> str:
        """As in `NewItem.kind`."""
        ...

    def title(self, payload: Content) -> str:
        """One line for the list of items."""
        ...

    def parts(self, payload: Content) -> Sequence[Part]:
        """What is shown, in order."""
        ...

    def fields(self, payload: Content) -> Sequence[Field]:
        """What there is to fill in."""
        ...

    def actions(self, payload: Content) -> Sequence[Action]:
        """How it can be handed in; the first is the usual one."""
        ...

    def problems(self, payload: Content, content: Content) -> Sequence[str]:
        """What is wrong with what was filled in, each a sentence; nothing where it can be handed in."""
        ...

    def doubts(self, payload: Content, content: Content) -> Sequence[str]:
        """What may be a slip, each a sentence that is asked back once; only where people see the right answer."""
        ...


def is_blank(text: object) -> bool:
    r"""Whether there is nothing to read in a text: white space, or what no reader sees.

    >>> is_blank(" \u200b\x00"), is_blank("B"), is_blank(None)
    (True, False, True)
    """
    return not any(character.isprintable() and not character.isspace() for character in str(text or ""))


def field_problems(form: Form, payload: Content, content: Content) -> list[str]:
    """What is wrong by the fields and actions alone: something missing, a value that is none of the choices."""
    actions = {action.name: action for action in form.actions(payload)}
    action = actions.get(str(content.get("action", "")))
    if action is None:
        return [f"action = {content.get('action')!r} is none of this form; allowed: {', '.join(actions)}"]
    if action.bare:
        return []
    problems = []
    for one in form.fields(payload):
        value = str(content.get(one.name) or "").strip()
        if is_blank(value):
            problems += [] if one.optional else [f"{one.label}: nothing was filled in"]
        elif one.kind == "choice" and value not in (allowed := [choice.value for choice in one.choices]):
            problems.append(f"{one.label}: {value!r} is not on the scale; allowed: {', '.join(allowed)}")
    return problems


class FeedbackForm:
    """Feedback on a model's reply, or the mark that the reply is right.

    Payload: `task`, `episode`, `category` (or None), `arm`, `level` (the round), `instruction`, `question`, `options`
    (letter -> text), `target`, `pictures` (digests), `rounds` (a list of `{told, reply}`, the first one told nothing),
    `hide_target`. Content: `action` (`send` or `marked_right`), `text`.
    """

    kind = "feedback"

    def title(self, payload: Content) -> str:
        """Episode and level."""
        return f"{payload.get('episode', '')} · level {payload.get('level', '')}"

    def parts(self, payload: Content) -> list[Part]:
        """The question with its pictures, the options, the right answer, what was said so far, and what is wanted."""
        pictures = tuple(payload.get("pictures", ()))
        parts = [Part(title="Question", text=str(payload.get("question", "")), tone="question", pictures=pictures)]
        options: Mapping[str, Any] = payload.get("options") or {}
        if options:
            rows = tuple((str(letter), str(text)) for letter, text in options.items())
            parts.append(Part(title="Options", tone="options", rows=rows))
        if payload.get("target") and not payload.get("hide_target"):
            target = str(payload["target"])
            told = f"{target}. {options[target]}" if target in options else target
            parts.append(Part(title="Right answer", text=told, tone="answer", secret=True))
        for number, said in enumerate(payload.get("rounds", ())):
            if said.get("told"):
                parts.append(Part(title=f"Feedback, round {number}", text=str(said["told"]), tone="told"))
            name = "First reply" if number == 0 else f"Reply after round {number}"
            parts.append(Part(title=name, text=str(said.get("reply", "")), tone="reply"))
        title = f"Your feedback: level {payload['level']}" if payload.get("level") else "Your feedback"
        return [*parts, Part(title=title, text=str(payload.get("instruction", "")), tone="task")]

    def fields(self, payload: Content) -> tuple[Field, ...]:
        """One text."""
        return (Field(name="text", label="Feedback to the model"),)

    def actions(self, payload: Content) -> tuple[Action, ...]:
        """To send it, or to say that none is needed."""
        return (
            Action(name="send", label="Send feedback"),
            Action(name="marked_right", label="Mark the reply as right", key="r", bare=True),
        )

    def problems(self, payload: Content, content: Content) -> list[str]:
        """An empty text, or both at once: feedback and the mark that none is needed."""
        if content.get("action") == "marked_right" and str(content.get("text") or "").strip():
            return ["A reply that is marked as right gets no feedback: clear the text first, or send it as feedback."]
        if content.get("action") == "send" and is_blank(content.get("text")):
            return ["The feedback is empty: write something, mark the reply as right, or skip it."]
        return field_problems(self, payload, content)

    def doubts(self, payload: Content, content: Content) -> list[str]:
        """The mark that a reply is right which picks another option than the right answer shown beside it."""
        options, target = dict(payload.get("options") or {}), str(payload.get("target") or "")
        rounds = payload.get("rounds") or ()
        if content.get("action") != "marked_right" or payload.get("hide_target") or target not in options or not rounds:
            return []
        said = extract_choice(str(rounds[-1].get("reply", "")), options).answer
        if said is None or said == target:
            return []
        return [f"The reply says {said}, and the right answer is {target}. Mark it as right once more if you mean it."]


def form_of(kind: str, forms: Mapping[str, Form]) -> Form:
    """The form of a kind of items.

    Raises: InterbenchError where there is none.
    """
    if kind not in forms:
        raise InterbenchError(f"no form for items of the kind '{kind}'{near_miss(kind, forms)}: upgrade Interbench")
    return forms[kind]


def own_forms() -> dict[str, Form]:
    """Every form of ours, by kind."""
    from interbench_tasks.people.judging_form import JudgementForm  # which is made of the parts above

    forms: tuple[Form, ...] = (FeedbackForm(), JudgementForm())
    return {form.kind: form for form in forms}
