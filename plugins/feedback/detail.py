"""The correctness bit and an explanation that the provider writes."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from interbench_tasks import Episode, Feedback, Message, Provider, Turn, render, said_in_the_end

from .simple import Simple, sentence

PROMPT = """You are helping a student with the question below (its pictures, if any, are above).

Question: {{ question }}
{%- if options %}
Options:
{%- for letter, text in options.items() %}
{{ letter }}. {{ text }}
{%- endfor %}
{%- endif %}

The student answered:
<student>
{{ answer }}
</student>
This answer is wrong.
{%- if solution %}

Your own solution was:
<solution>
{{ solution }}
</solution>
{%- endif %}
{%- if target %}

The right answer is: {{ target }}
{%- endif %}

Write at most three sentences of guidance that help the student to find the mistake. Do not state the right answer: \
name neither the option's letter nor its text nor its value."""
"""OURS: the paper does not print its prompt. A YAML replaces it with `prompts.detail`."""

OF_A_PERSON = (
    "Write guidance that helps to find the mistake, in at most three sentences, without stating the right answer."
)
"""What a person is asked for; the question, the answers so far and the right answer are shown beside it."""


class Detail:
    """The simple sentence, then the provider's explanation.

    Source: InterFeedback (arXiv 2502.15027v3), "detail feedback": correctness signal and the provider's explanation;
    the policy sees the receiver's output and its correctness.
    """

    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {
        **Simple.prompt_variables,
        "detail": ("question", "options", "answer", "solution", "target"),
    }
    """The prompts that a YAML may replace, and what each may name."""

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        """Asks the provider once; `failed` where nothing usable came back."""
        prompt = (
            Message(role="user", content=(OF_A_PERSON,))
            if provider.round.by_person
            else _prompt(episode, turn, provider)
        )
        reply = await provider.reply([prompt])
        explanation = reply.text.strip() if provider.round.by_person else said_in_the_end(reply.text)
        return Feedback(
            text=f"{sentence(episode, turn, provider)}\n\n{explanation}",
            kind="detail",
            author=(reply.model or provider.name) if provider.round.by_person else provider.name,
            status="given" if reply.usable and explanation else "failed",
            prompt=prompt,
            reply=reply,
        )


def _prompt(episode: Episode, turn: Turn, provider: Provider) -> Message:
    """What the provider's model is asked."""
    solution = provider.solution
    text = render(
        provider.prompts.get("detail", PROMPT),
        "detail",
        question=episode.raw_question,
        options=episode.options,
        answer=turn.reply.text,
        solution=said_in_the_end(solution.reply.text) if solution is not None else "",
        target=episode.target if provider.sees_target else "",
    )
    return Message(role="user", content=(*episode.question.pictures, text))
