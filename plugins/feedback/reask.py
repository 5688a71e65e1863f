"""A neutral request to answer again: the placebo of `simple`."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from interbench_tasks import Episode, Feedback, Provider, Turn, render

PROMPT = "Please answer the question once more, and end with an answer in the same format."
"""OURS: says nothing about whether the answer was right. A YAML replaces it with `prompts.reask`."""


class Reask:
    """Asks once more and tells nothing: what a second try alone is worth. OURS; the paper has no such control."""

    uses_provider: ClassVar[bool] = False
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {"reask": ("question", "options", "answer")}
    """The prompts that a YAML may replace, and what each may name."""

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        """The same sentence for every reply; no model is asked."""
        template = provider.prompts.get("reask", PROMPT)
        said = {"question": episode.raw_question, "options": episode.options, "answer": turn.reply.text}
        return Feedback(text=render(template, "reask", **said), kind="reask", author="template")
