"""The form by which people judge a stored reply, as judges that are models judged it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interbench_tasks.people.desk_items import Content
from interbench_tasks.people.forms import Action, Choice, Field, Part

KIND = "judgement"
HAND_IN = "judge"


class JudgementForm:
    """A judgement of a reply by the scales of a rubric.

    Payload: `task`, `number` (of the item in its sample), `what` (e.g. `CR`), `question`, `excerpt` (of the
    conversation), `reference`, `reply`, `pictures` (digests), `missing` (texts on pictures that were not kept),
    `fields` (a list of `{name, label, hint, choices, only_if}`; `choices` are `{value, label, key, help}`,
    `only_if` is a field's name -> the values with which this one is asked). Content: `action`, and a value for each
    field that is asked; what is filled in where it is not asked is left out.
    """

    kind = KIND

    def title(self, payload: Content) -> str:
        """Number and what is judged; nothing of the model."""
        return f"{payload.get('number', '')} · {payload.get('what', '')}".strip(" ·")

    def parts(self, payload: Content) -> list[Part]:
        """The question with its pictures, what is right or wrong, the conversation, the reply, and what to look for."""
        pictures = tuple(payload.get("pictures", ()))
        shown = [Part(title="Question", text=str(payload.get("question", "")), tone="question", pictures=pictures)]
        missing = [str(one) for one in payload.get("missing", ())]
        if missing:
            told = "These pictures were not kept with the run, so they cannot be shown: " + "; ".join(missing)
            shown.append(Part(title="Missing pictures", text=told, tone="question"))
        shown.append(Part(title="Reference", text=str(payload.get("reference", "")), tone="answer"))
        if payload.get("excerpt"):
            shown.append(Part(title="From the conversation", text=str(payload["excerpt"]), tone="told"))
        shown.append(Part(title="Reply to judge", text=str(payload.get("reply", "")), tone="reply"))
        return [*shown, Part(title="Your judgement", text=str(payload.get("task", "")), tone="task")]

    def fields(self, payload: Content) -> list[Field]:
        """One choice each, with what deserves it; some are asked only after another one."""
        return [
            Field(
                name=str(one["name"]),
                label=str(one["label"]),
                kind="choice",
                choices=_choices(one["choices"]),
                hint=str(one.get("hint", "")),
            )
            for one in payload.get("fields", ())
        ]

    def actions(self, payload: Content) -> tuple[Action, ...]:
        """One way to hand it in."""
        return (Action(name=HAND_IN, label="Hand in"),)

    def problems(self, payload: Content, content: Content) -> list[str]:
        """A value that is missing where it is asked, or is not on its scale."""
        if content.get("action") != HAND_IN:
            return [f"action = {content.get('action')!r} is none of this form; allowed: {HAND_IN}"]
        asked = asked_values(payload, content)
        found = []
        for one in payload.get("fields", ()):
            value, allowed = asked.get(str(one["name"])), [str(choice["value"]) for choice in one["choices"]]
            if is_asked(one, asked) and value is None:
                found.append(f"{one['label']} Nothing was chosen.")
            elif value is not None and value not in allowed:
                found.append(f"{one['label']} {value!r} is not on the scale; allowed: {', '.join(allowed)}.")
        return found

    def doubts(self, payload: Content, content: Content) -> list[str]:
        """None: a judgement has nothing to contradict."""
        return []


def _choices(told: Sequence[Mapping[str, Any]]) -> tuple[Choice, ...]:
    """The values of a field; what deserves several of them is told once."""
    first: dict[str, str] = {}
    found = []
    for one in told:
        label, meaning = str(one["label"]), str(one.get("help", ""))
        before = first.setdefault(meaning, label)
        shown = meaning if before == label or not meaning else f"as {before}"
        found.append(Choice(value=str(one["value"]), label=label, key=str(one.get("key", "")), help=shown))
    return tuple(found)


def is_asked(field: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    """Whether a field is asked, after what was filled in before it."""
    conditions: Mapping[str, Sequence[str]] = field.get("only_if") or {}
    return all(values.get(name) in allowed for name, allowed in conditions.items())


def asked_values(payload: Content, content: Content) -> dict[str, str]:
    """What was filled in, without the fields that are not asked: a choice cannot be taken back on a page."""
    found: dict[str, str] = {}
    for one in payload.get("fields", ()):
        name = str(one["name"])
        value = str(content.get(name) or "").strip()
        if value and is_asked(one, found):
            found[name] = value
    return found
