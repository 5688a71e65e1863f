"""Verifiers that a task YAML can name: they read the answer out of a reply and compare it with the target."""

from __future__ import annotations

from collections.abc import Mapping

from interbench_tasks.answers.choice import extract_choice
from interbench_tasks.answers.freeform import extract_text
from interbench_tasks.answers.numbers import same_answer
from interbench_tasks.answers.plain import canonical
from interbench_tasks.errors import DataError
from interbench_tasks.records import Judgement


class ChoiceVerifier:
    """For questions with options: right where the reply's final choice is the target's letter."""

    def judge(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        """The choice that was read, and whether it is the target.

        Args: target = an option's letter, also as `(b)`, or one option's text.
        Raises: DataError where there are no options, or the target is none of them.
        """
        if not options:
            raise DataError(
                f"target {target!r}: the question has no options, and the verifier 'choice' needs them. "
                "Name the options' column, or set `verifier: choice_or_exact`."
            )
        wanted = _letter_of(target, options)
        extraction = extract_choice(text, options)
        return Judgement(extraction=extraction, correct=extraction.answer == wanted)


class ChoiceOrExactVerifier:
    """For data sets that mix both: by option where there are options, else by the same text or the same number."""

    def judge(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        """The answer that was read, and whether it is the target.

        Raises: DataError where there are options and the target is none of them, or the target is empty.
        """
        if options:
            return ChoiceVerifier().judge(text, target, options)
        if not target.strip():
            raise DataError(
                "the target is empty: nothing can be verified. Fill the answer column, or leave the row out."
            )
        extraction = extract_text(text)
        correct = extraction.answer is not None and same_answer(extraction.answer, target)
        return Judgement(extraction=extraction, correct=correct)


def _letter_of(target: str, options: Mapping[str, str]) -> str:
    """The option that a target names.

    Raises: DataError where it names none, or several.
    """
    label = target.strip().strip("()[]. ").upper()
    found = [key for key in options if key.strip().upper() == label]
    if not found:
        found = [key for key, text in options.items() if canonical(text) == canonical(target)]
    if len(found) != 1:
        raise DataError(
            f"target {target!r} is not exactly one of the options {dict(options)}: correct the answer column."
        )
    return found[0]
