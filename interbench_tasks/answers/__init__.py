"""Reads the answer out of a reply: choices, numbers and short texts. Never a guess."""

from interbench_tasks.answers.choice import extract_choice
from interbench_tasks.answers.choice_or_math import ChoiceOrMathVerifier
from interbench_tasks.answers.freeform import extract_text
from interbench_tasks.answers.last_line import extract_value
from interbench_tasks.answers.numbers import same_answer
from interbench_tasks.answers.verifiers import ChoiceOrExactVerifier, ChoiceVerifier
from interbench_tasks.reasoning import without_reasoning

__all__ = [
    "ChoiceOrExactVerifier",
    "ChoiceOrMathVerifier",
    "ChoiceVerifier",
    "extract_choice",
    "extract_text",
    "extract_value",
    "same_answer",
    "without_reasoning",
]
