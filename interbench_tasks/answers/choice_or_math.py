"""The verifier `choice_or_math`: options by letter, everything else by value."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping

from interbench_tasks.answers.choice import extract_choice
from interbench_tasks.answers.comparing import Pair, Same, same_value
from interbench_tasks.answers.freeform import extract_text
from interbench_tasks.answers.last_line import extract_value, value_in_words, with_method
from interbench_tasks.answers.notation import named_from, notation
from interbench_tasks.answers.numbers import only_quantity
from interbench_tasks.answers.plain import boxes, canonical, plain_text, wide_to_plain
from interbench_tasks.answers.quantities import quantity_from, same_quantity
from interbench_tasks.answers.short_replies import is_statement
from interbench_tasks.errors import DataError
from interbench_tasks.expressions import ExpressionPool, Outcome
from interbench_tasks.reasoning import without_reasoning
from interbench_tasks.records import Extraction, Judgement

Judging = Generator[Pair, Outcome, Judgement]

PLACEHOLDERS = "ABCDEFGHIJ"
"""Letters that a target may name where the options themselves were not given."""
STOPPED = "comparison stopped at its time limit"
FAILED = "comparison failed"
_LETTER = re.compile(r"\(?\[?([A-Ja-j])\]?\)?[.:]?")
_SEPARATOR = re.compile(r"\s*(?:[,;/&+\n]|\band\b|\bund\b|\bet\b)\s*(?:\band\b)?\s*", re.IGNORECASE)
_BESIDE_LETTERS = re.compile(
    r"\b(?:options?|choices?|answers?|both|letters?|statements?|are|correct|is)\b|[*_$`]", re.IGNORECASE
)
_LED = re.compile(r"\(?\[?([A-J])\]?\)?\s?[.:)]\s*\S.*", re.DOTALL)


class ChoiceOrMathVerifier:
    """For data sets that mix multiple choice with free-form mathematics, such as MathVerse.

    With options: right where the reply's final choice is the target's letter; the target may also be an option's text
    or a value that exactly one option has. A target of several letters (`C` and `D` on a line each) is right only
    where the reply names exactly that set. A target that is no option at all is compared with the text of the chosen
    option, else with what the reply says. Without options: by value (see `comparing.same_value`).

    A reply that is one short sentence without a value, such as `Nothing here settles it.`, is unreadable, unless it is
    the target word for word.

    A comparison that took too long, or failed, is not equal, and `extraction.method` says so.
    """

    def __init__(self, pool: ExpressionPool | None = None) -> None:
        """Prepare; no process starts before the first comparison that needs one.

        Args: pool = who compares expressions; by default one of its own, which ends with the verifier.
        """
        self._pool = pool or ExpressionPool()

    def judge(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        """The answer that was read, and whether it is the target; waits where expressions must be compared.

        Raises: DataError where the target is empty; VerifierError where math-verify does not start.
        """
        judging = judged(text, target, options)
        try:
            pair = next(judging)
            while True:
                pair = judging.send(self._pool.compare(*pair))
        except StopIteration as finished:
            return _judgement(finished)

    async def judge_later(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        """Like `judge`; other episodes go on while expressions are compared."""
        judging = judged(text, target, options)
        try:
            pair = next(judging)
            while True:
                pair = judging.send(await self._pool.compare_later(*pair))
        except StopIteration as finished:
            return _judgement(finished)

    def close(self) -> None:
        """End the child processes; else they end with the verifier."""
        self._pool.close()


def _judgement(finished: StopIteration) -> Judgement:
    value = finished.value
    assert isinstance(value, Judgement)  # what `judged` returns
    return value


def judged(text: str, target: str, options: Mapping[str, str]) -> Judging:
    """The judgement, by a generator that yields the pairs of expressions that only math-verify can compare.

    Raises: DataError where the target is empty.
    """
    if not target.strip():
        raise DataError("the target is empty: nothing can be verified. Fill the answer column, or leave the row out.")
    known = {key.strip().upper(): key for key in options}
    letters = letters_from(target)
    if options:
        return (yield from _by_option(text, target, options, [known[one] for one in letters or () if one in known]))
    if letters and (len(letters) > 1 or target.strip().strip("()[].") in PLACEHOLDERS):
        return _by_letters(text, letters, dict.fromkeys(PLACEHOLDERS, ""))
    return (yield from _by_value(extract_value(text), target))


def _by_option(text: str, target: str, options: Mapping[str, str], letters: list[str]) -> Judging:
    wanted = letters or [key for key, option in options.items() if canonical(option) == canonical(target)]
    if not wanted:
        wanted = yield from _options_of_value(target, options)
    if len(wanted) == 1 or (letters and len(letters_from(target) or ()) == len(letters)):
        return _by_letters(text, wanted, options)
    chosen = extract_choice(text, options)
    if chosen.answer is not None:
        judgement = yield from _by_value(Extraction(answer=options[chosen.answer], method=chosen.method), target)
        extraction = Extraction(answer=chosen.answer, method=judgement.extraction.method)
        return Judgement(extraction=extraction, correct=judgement.correct)
    return (yield from _by_value(extract_value(text), target))


def _options_of_value(target: str, options: Mapping[str, str]) -> Generator[Pair, Outcome, list[str]]:
    found = []
    for key, option in options.items():
        same = yield from same_value(option, target)
        if same.equal:
            found.append(key)
    return found


def _by_letters(text: str, wanted: list[str], options: Mapping[str, str]) -> Judgement:
    """One letter as `ChoiceVerifier` reads it; several: exactly this set."""
    single = extract_choice(text, options)
    if len(wanted) == 1:
        return Judgement(extraction=single, correct=single.answer == wanted[0])
    if single.method == "unfinished_reasoning":
        return Judgement(extraction=single, correct=False)
    named = _letters_named(text, options)
    if named is None:
        return Judgement(extraction=single, correct=False)
    extraction = Extraction(answer=", ".join(named), method="several")
    return Judgement(extraction=extraction, correct=set(named) == set(wanted))


def _by_value(extraction: Extraction, target: str) -> Judging:
    if extraction.answer is None:
        return Judgement(extraction=extraction, correct=False)
    same = yield from same_value(extraction.answer, target)
    statement = extraction.method == "short" and is_statement(extraction.answer)
    if not same.equal and same.problem is None and not statement and quantity_from(_value_of(target)) is not None:
        inside = value_in_words(extraction.answer)
        if inside is not None and inside.answer is not None:
            same = yield from _same_number(inside, target)
    if not same.equal and statement:
        return Judgement(extraction=Extraction(answer=None, method="none"), correct=False)
    return Judgement(extraction=_noted(extraction, same), correct=same.equal)


def _same_number(inside: Extraction, target: str) -> Generator[Pair, Outcome, Same]:
    if inside.method == "concluded":
        return (yield from same_value(inside.answer or "", target))
    found, wanted = only_quantity(plain_text(inside.answer or "")), quantity_from(_value_of(target))
    return Same(equal=found is not None and wanted is not None and same_quantity(found, wanted))


def _value_of(target: str) -> str:
    return named_from(notation(target)).value


def _noted(extraction: Extraction, same: Same) -> Extraction:
    if same.problem is None:
        return extraction
    return with_method(extraction, STOPPED if same.problem == "timeout" else FAILED)


def letters_from(text: str) -> list[str] | None:
    r"""The option letters that a text consists of, sorted; None where it holds anything else.

    >>> letters_from("C\nD"), letters_from("(B)"), letters_from("B and A"), letters_from("False")
    (['C', 'D'], ['B'], ['A', 'B'], None)
    """
    pieces = [piece for piece in _SEPARATOR.split(_BESIDE_LETTERS.sub(" ", text.strip()).strip(" .:")) if piece.strip()]
    found = [_LETTER.fullmatch(piece.strip()) for piece in pieces]
    if not found or None in found:
        return None
    return sorted({one[1].upper() for one in found if one is not None})


def _letters_named(text: str, options: Mapping[str, str]) -> list[str] | None:
    """The options of a reply that may name several: all boxes, the announced answer, or the last line."""
    visible = wide_to_plain(without_reasoning(text) or "")
    known = {key.strip().upper(): key for key in options}
    inside = [visible[start:end] for _, start, end, _ in boxes(visible)]
    announced = extract_text(visible).answer
    last = next((line for line in reversed(visible.strip().split("\n")) if line.strip(" *_`$")), "")
    behind = re.split(r"\b(?:are|is)\b|:(?=\s)", last)[-1]
    for candidate in ("\n".join(inside), announced or "", visible, last, behind):
        found = letters_from(notation_of_letters(candidate)) or _letters_before_texts(candidate)
        if found and all(one in known for one in found):
            return [known[one] for one in found]
    return None


def notation_of_letters(text: str) -> str:
    """A text of letters without the wrappers of LaTeX and Markdown."""
    return notation(text).replace(" ; ", "\n")


def _letters_before_texts(text: str) -> list[str] | None:
    r"""`C: \tan(x)` and `D: \tan(y)` on a line each: the letters before the options' texts."""
    lines = [line.strip(" *-") for line in text.split("\n") if line.strip(" *-")]
    found = [_LED.fullmatch(line) for line in lines]
    if len(found) < 2 or None in found:
        return None
    return sorted({one[1] for one in found if one is not None})
