"""Jinja2 templates -> prompts. An unknown name in a template is an error, never an empty string."""

from __future__ import annotations

import functools

import jinja2
import jinja2.meta

from interbench_tasks.errors import InterbenchError


class PromptError(InterbenchError):
    """A prompt template uses a name that does not exist there."""


@functools.cache
def _compiled(template: str) -> jinja2.Template:
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined, keep_trailing_newline=False)
    return environment.from_string(template)


def render(template: str, prompt_name: str, **values: object) -> str:
    """The text of a template.

    Raises: PromptError naming the prompt, the unknown name and what there is.

    >>> render("What is {{ x }}?", "question", x="this")
    'What is this?'
    """
    try:
        return _compiled(template).render(**values)
    except jinja2.UndefinedError as error:
        raise PromptError(f"prompts.{prompt_name}: {error}; there is: {', '.join(sorted(values))}") from error
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        raise PromptError(f"prompts.{prompt_name} cannot be filled: {error!r}") from error


def variables_in(template: str) -> set[str]:
    """The names that a template needs from outside.

    >>> sorted(variables_in("{{ question }} {% for x in options %}{{ x }}{% endfor %}"))
    ['options', 'question']
    """
    return set(jinja2.meta.find_undeclared_variables(jinja2.Environment(autoescape=False).parse(template)))
