"""Structured notes that a notetaker keeps along the conversation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from interbench_tasks import MemoryOptions, Message, Notes, Notetaker, Turn, render, said_in_the_end

from .placing import with_block

PROMPT = """You take notes on a conversation, so that its details can be recalled later. Below are your notes so far \
and the user's next message{{ " (its pictures are above)" if pictures else "" }}.

Your notes so far:
{{ notes }}

The user's message in turn {{ turn }}{{ ", with picture " ~ pictures | join(", ") if pictures else "" }}:
<message>
{{ message }}
</message>

Write the whole updated notes as one JSON object with these keys, and nothing else:
- "user_info": an object with what is known of the user
- "preferences": an object with what the user likes and dislikes
- "purpose": a text, what the user wants
- "facts": a list of texts
- "images": a list of {"id": number of the picture, "about": text}
- "updates": a list of {"key": what changed, "old": text, "new": text, "turn": number of the turn}

Keep everything that is in the notes so far unless the message changes it. At most {{ max_chars }} characters."""
"""OURS: the paper's prompt (its Fig. 19) is a picture that nobody transcribed. A YAML replaces it: `prompts.notes`."""

BLOCK = """Notes on the conversation so far:
{{ notes }}"""
"""OURS. A YAML replaces it with `prompts.notes_block`."""

EMPTY: Mapping[str, Any] = {
    "user_info": {},
    "preferences": {},
    "purpose": "",
    "facts": [],
    "images": [],
    "updates": [],
}


class NoteTaking:
    """JSON notes, written by a notetaker after each user turn and shown with the question.

    Source: MMRC (arXiv 2502.11903v2), note-taking: Note = Take_Note(A, T_i, Note), the user's turn and the notes before
    it only; at question time the tested model sees history and notes. Schema and prompts are OURS.
    """

    acts_at: ClassVar[Literal["question", "every_turn"]] = "question"
    takes_notes: ClassVar[bool] = True
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {
        "notes": ("notes", "message", "turn", "pictures", "max_chars"),
        "notes_block": ("notes",),
    }
    """The prompts that a YAML may replace, and what each may name."""

    def __init__(self, options: MemoryOptions) -> None:
        self._options = options

    async def after_turn(self, notes: Notes | None, turn: Turn, notetaker: Notetaker) -> Notes:
        """The notetaker's new notes; the old ones, `kept`, where its reply holds no JSON object.

        A reply that ends at the token limit is repaired and taken, and is `cut`: what stood last in it is missing.
        """
        old = notes.text if notes is not None and notes.text else json.dumps(EMPTY)
        text = render(
            self._options.prompts.get("notes", PROMPT),
            "notes",
            notes=old,
            message=turn.user.text,
            turn=notetaker.turn + 1,
            pictures=list(notetaker.pictures),
            max_chars=self._options.max_chars,
        )
        reply = await notetaker.reply([Message(role="user", content=(*turn.user.pictures, text))])
        found = notes_from_text(said_in_the_end(reply.text)) if reply.usable else None
        if found is None:
            return Notes(text=notes.text if notes is not None else "", status="kept", cut=bool(notes and notes.cut))
        new = within(found, self._options.max_chars)
        return replace(new, cut=new.cut or reply.finish_reason == "length")

    def messages(self, notes: Notes | None, history: Sequence[Message]) -> Sequence[Message]:
        """The history with the notes as one block; as it is where there are none yet."""
        if notes is None or not notes.text:
            return history
        block = render(self._options.prompts.get("notes_block", BLOCK), "notes_block", notes=notes.text)
        return with_block(history, block, self._options.place)


def notes_from_text(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply, repaired where a model wrote it badly; None where there is none."""
    import json_repair  # takes a moment to import; most runs take no notes

    if "{" not in text:
        return None
    try:
        found: Any = json_repair.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list):  # text behind the object
        objects = [part for part in found if isinstance(part, dict) and part]
        found = max(objects, key=lambda part: len(str(part)), default=None)
    return found if isinstance(found, dict) and set(found) & set(EMPTY) else None


def within(found: Mapping[str, Any], max_chars: int) -> Notes:
    """Notes as JSON of at most `max_chars` characters: the oldest entries of the longest part go first."""
    kept = dict(found)
    cut = False
    text = _json(kept)
    while len(text) > max_chars:
        key = max(kept, key=lambda name: len(_json(kept[name])), default=None)
        if key is None:
            break
        cut = True
        kept = _with_less(kept, key, len(text) - max_chars)
        text = _json(kept)
    return Notes(text=text, cut=cut)


def _with_less(kept: Mapping[str, Any], key: str, too_long: int) -> dict[str, Any]:
    """The notes with less under one key: entries of a list or an object, characters of a text, else without the key."""
    value = kept[key]
    less: Any = None
    if isinstance(value, list) and value:
        less = value[1:]
    elif isinstance(value, dict) and value:
        less = dict(list(value.items())[1:])
    elif isinstance(value, str) and len(value) > too_long:
        less = value[: len(value) - too_long]
    return {name: part if name != key else less for name, part in kept.items() if name != key or less}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
