"""Feedback in three levels: a hint, an expanded explanation, then the right answer with a request to explain it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from interbench_tasks import Episode, Feedback, Message, Provider, Turn, render, said_in_the_end

from .simple import Simple, sentence

HEAD = """You are helping a student with the question below (its pictures, if any, are above).

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

"""
SILENT = " Do not state the right answer: name neither the option's letter nor its text nor its value."
PROMPTS = {
    "level1": HEAD + "Write one short sentence: a basic, simple hint that leads to the right answer." + SILENT,
    "level2": HEAD
    + "A simple hint was not enough. Write an expanded explanation, at most five sentences, of what to look at and how "
    "to reason from there." + SILENT,
    "level3": HEAD
    + "Two explanations were not enough. The student is told the right answer. Ask the student, in at most three "
    "sentences, for a comprehensive explanation of why it is right, and say which steps the explanation has to cover.",
    "level3_without_answer": HEAD
    + "Two explanations were not enough. Explain every step up to the last one, which you leave to the student."
    + SILENT,
}
"""OURS: the paper gives one sentence a level, not its words. A YAML replaces them with `prompts.level1` and so on."""
TOLD = "The right answer is: {{ target }}"
"""OURS: what level 3 begins with where a model writes it, so that it gives the answer whatever the model says."""
OF_A_PERSON = {
    "level1": "Level 1: give a simple hint that leads to the right answer, without stating it.",
    "level2": "Level 2: give an expanded explanation of how to get to the right answer, without stating it.",
    "level3": "Level 3: state the right answer, and ask for a comprehensive explanation of why it is right.",
    "level3_without_answer": "Level 3: explain every step up to the last one, without stating the right answer.",
}
"""What a person is asked for; the question, the answers so far and the right answer are shown beside it."""
VARIABLES = ("question", "options", "answer", "solution", "target")


class Hierarchical:
    """The simple sentence, then the feedback of this round's level, written by the data set, a model or a person.

    Source: InterFeedback (arXiv 2502.15027v3), 3.2.2: level 1 asks for a basic, simple description that leads to the
    answer, level 2 for an expanded explanation, level 3 states the answer and asks for a comprehensive explanation.
    """

    levels: ClassVar[int] = 3
    prompt_variables: ClassVar[Mapping[str, Sequence[str]]] = {
        **Simple.prompt_variables,
        **dict.fromkeys(PROMPTS, VARIABLES),
        "level3_answer": ("target",),
    }
    """The prompts that a YAML may replace, and what each may name."""

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        """Asks the provider once, or nobody where the data set has the text; `failed` where nothing usable came back.

        Raises: ValueError where there are no such levels.
        """
        asked = provider.round
        if not 1 <= asked.number <= self.levels:
            raise ValueError(f"there is no level {asked.number}; there are {self.levels}")
        start = sentence(episode, turn, provider)
        if asked.text is not None:
            return Feedback(text=f"{start}\n\n{asked.text}", kind="hierarchical", author="data set")
        name = f"level{asked.number}" + ("_without_answer" if asked.number == 3 and asked.without_answer else "")
        prompt = _prompt(name, episode, turn, provider)
        reply = await provider.reply([prompt])
        said = reply.text.strip() if asked.by_person else said_in_the_end(reply.text)
        told = [start, said]
        if name == "level3" and not asked.by_person:
            template = provider.prompts.get("level3_answer", TOLD)
            told.insert(1, render(template, "level3_answer", target=_shown_target(episode)))
        return Feedback(
            text="\n\n".join(told),
            kind="hierarchical",
            author=(reply.model or provider.name) if asked.by_person else provider.name,
            status="given" if reply.usable and said else "failed",
            prompt=prompt,
            reply=reply,
        )


def _prompt(name: str, episode: Episode, turn: Turn, provider: Provider) -> Message:
    """What the provider is asked; of a person only what to write."""
    if provider.round.by_person:
        return Message(role="user", content=(OF_A_PERSON[name],))
    solution = provider.solution
    knows = provider.sees_target or name == "level3"
    text = render(
        provider.prompts.get(name, PROMPTS[name]),
        name,
        question=episode.raw_question,
        options=episode.options,
        answer=turn.reply.text,
        solution=said_in_the_end(solution.reply.text) if solution is not None else "",
        target=_shown_target(episode) if knows else "",
    )
    return Message(role="user", content=(*episode.question.pictures, text))


def _shown_target(episode: Episode) -> str:
    """The right answer as a student reads it: an option's letter with its text."""
    text = episode.options.get(episode.target)
    return f"{episode.target}. {text}" if text is not None else episode.target
