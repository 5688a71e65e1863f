"""The correctness bit in one fixed sentence."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from interbench_tasks import Episode, Feedback, Provider, Turn, render

PROMPT = "Your previous answer is incorrect. Try again, and end with an answer in the same format."
"""OURS: the paper gives the bit (0/1), not its words. A YAML replaces it with `prompts.simple`."""


def sentence(episode: Episode, turn: Turn, provider: Provider) -> str:
    """The sentence that every kind of feedback starts with."""
    template = provider.prompts.get("simple", PROMPT)
    return render(template, "simple", question=episode.raw_question, options=episode.options, answer=turn.reply.text)


class Simple:
    """Says that the answer is wrong, and nothing else.

    Source: InterFeedback (arXiv 2502.15027v3), "simple feedback": the correctness signal only.
    """

    uses_provider: ClassVar[bool] = False
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {"simple": ("question", "options", "answer")}
    """The prompts that a YAML may replace, and what each may name."""

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        """The same sentence for every wrong reply; no model is asked."""
        return Feedback(text=sentence(episode, turn, provider), kind="simple", author="template")
