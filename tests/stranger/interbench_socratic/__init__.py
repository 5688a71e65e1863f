"""Feedback that asks back: `arms: [socratic]` in a task YAML."""

from __future__ import annotations

from interbench_tasks import Episode, Feedback, Provider, Turn, hookimpl

QUESTION = "What in the question shows that? Look again and answer in the same format."


class Socratic:
    """Asks one question back; never says the target."""

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        """The same question for every wrong reply."""
        return Feedback(text=QUESTION, kind="socratic", author="template")


@hookimpl
def interbench_feedback_providers() -> dict[str, type[Socratic]]:
    """Offers `socratic`."""
    return {"socratic": Socratic}
