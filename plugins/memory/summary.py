"""A running summary in plain words."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from interbench_tasks import MemoryOptions, Message, Notes, Notetaker, Turn, render, said_in_the_end

from .placing import with_block

PROMPT = """Below are a summary of a conversation so far and its next turn\
{{ " (with picture " ~ pictures | join(", ") ~ ", above)" if pictures else "" }}.

The summary so far:
{{ summary if summary else "(nothing yet)" }}

The user said in turn {{ turn }}:
<message>
{{ message }}
</message>
The answer was:
<answer>
{{ answer }}
</answer>

Write the whole updated summary and nothing else. Keep names, numbers, dates, what changed, and what each picture \
shows. At most {{ max_chars }} characters."""
"""OURS. A YAML replaces it with `prompts.summary`."""

BLOCK = """A summary of the conversation so far:
{{ summary }}"""
"""OURS. A YAML replaces it with `prompts.summary_block`."""


class Summary:
    """A summary of all turns and replies, written anew after each turn and shown with the question. OURS."""

    acts_at: ClassVar[Literal["question", "every_turn"]] = "question"
    takes_notes: ClassVar[bool] = True
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {
        "summary": ("summary", "message", "answer", "turn", "pictures", "max_chars"),
        "summary_block": ("summary",),
    }
    """The prompts that a YAML may replace, and what each may name."""

    def __init__(self, options: MemoryOptions) -> None:
        self._options = options

    async def after_turn(self, notes: Notes | None, turn: Turn, notetaker: Notetaker) -> Notes:
        """The new summary; the old one, `kept`, where the notetaker wrote nothing."""
        old = notes.text if notes is not None else ""
        text = render(
            self._options.prompts.get("summary", PROMPT),
            "summary",
            summary=old,
            message=turn.user.text,
            answer=turn.reply.text,
            turn=notetaker.turn + 1,
            pictures=list(notetaker.pictures),
            max_chars=self._options.max_chars,
        )
        reply = await notetaker.reply([Message(role="user", content=(*turn.user.pictures, text))])
        written = said_in_the_end(reply.text).strip() if reply.usable else ""
        if not written:
            return Notes(text=old, status="kept", cut=bool(notes and notes.cut))
        limit = self._options.max_chars
        return Notes(text=written[:limit], cut=len(written) > limit or reply.finish_reason == "length")

    def messages(self, notes: Notes | None, history: Sequence[Message]) -> Sequence[Message]:
        """The history with the summary as one block; as it is where there is none yet."""
        if notes is None or not notes.text:
            return history
        block = render(self._options.prompts.get("summary_block", BLOCK), "summary_block", summary=notes.text)
        return with_block(history, block, self._options.place)
