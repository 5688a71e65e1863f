"""Reads the value that a reply ends with, where it announces none."""

from __future__ import annotations

import re
from dataclasses import replace

from interbench_tasks.answers import words
from interbench_tasks.answers.freeform import extract_text
from interbench_tasks.answers.notation import is_prose, notation
from interbench_tasks.answers.numbers import only_quantity
from interbench_tasks.answers.plain import plain_text, wide_to_plain
from interbench_tasks.answers.quantities import quantity_from, without_unit
from interbench_tasks.reasoning import without_reasoning
from interbench_tasks.records import Extraction

MAX_LENGTH = 200
_REFUSED = re.compile(rf"{words.REFUSED}|{words.NEGATION}|n't\b|\?\s*$", re.IGNORECASE)
_COPULA = re.compile(
    r"\b(?:is|are|was|were|be|equals|equal to|gives|gets?|makes|totals|becomes|has|have|obtain)\b"
    r"(?:\s+(?:about|then|thus|therefore|also|now|exactly|equal to))?\s*:?\s*(?P<value>\S.{0,120}?)\s*[.!]?\s*$",
    re.IGNORECASE,
)
_BEHIND_SIGN = re.compile(
    r"(?:=|(?<!\d):|\\(?:Right|right)arrow|=>|->)\s*(?P<value>(?:[^=:]|(?<=\d)\s?:\s?(?=\d)){1,120}?)\s*[.!]?\s*$"
)
_LAST_FORMULA = re.compile(r"(?:\$|\\\(|\\\[)(?P<value>[^$]{1,120}?)(?:\$|\\\)|\\\])\s*[.!]?\s*$")
_EQUATION = re.compile(r"[A-Za-z]\s*\^|\^\s*\{?\d\}?\s*[-+*/]|[<>≤≥]|\\[lg]eq?\b|±|\\pm")
_BEARING = re.compile(r"\b[NS]\b.{0,12}\b[EW]\b")
_VALUE = re.compile(r"\d|\\[a-z]+|[π∞√]")


def extract_value(text: str) -> Extraction:
    r"""The answer of a reply to a question with a value, as it is written; None where there is none.

    Order: what `extract_text` finds, else what the last line of the reply concludes with (`So the area is 12 cm^2.`;
    method `last_line`): a value behind `=`, `is`, `equals`, `gives` ..., or a line that is a value and nothing else. A
    question, a refusal and a negated sentence conclude nothing.

    >>> extract_value("We add both.\nSo the area is $12$.")
    Extraction(answer='12', method='last_line')
    """
    extraction = extract_text(text)
    if extraction.answer is not None or extraction.method == "unfinished_reasoning":
        return extraction
    lines = [line.strip() for line in wide_to_plain(without_reasoning(text) or "").split("\n")]
    last = next((line for line in reversed(lines) if line.strip(" *_`$\\[]#-=")), "")
    value = concluded(last)
    return extraction if value is None else Extraction(answer=value, method="last_line")


def concluded(line: str) -> str | None:
    """The value that a sentence ends with; None where it does not end with one."""
    if len(line) > MAX_LENGTH or _REFUSED.search(line):
        return None
    whole = notation(line)
    if _is_value(whole):
        return line.strip(" *_`$#")
    bare = line.strip(" *_`#")
    for found in (*_starts(_COPULA, bare), _LAST_FORMULA.search(bare), _BEHIND_SIGN.search(bare)):
        if found is None or (found.re is _BEHIND_SIGN and _EQUATION.search(bare)):
            continue
        if _is_value(notation(found["value"])):
            return found["value"].strip(" *_`$#")
    return None


def _starts(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches from every place where the pattern can start, the longest first; each ends with the text."""
    found, at = [], 0
    while (match := pattern.search(text, at)) is not None:
        found.append(match)
        at = match.start("value")
    return found


def _is_value(text: str) -> bool:
    if text.startswith(("^", "_")):
        return False  # the end of a unit: `units$^2$`
    return quantity_from(text) is not None or (bool(_VALUE.search(text)) and not is_prose(without_unit(text)[0]))


def value_in_words(answer: str) -> Extraction | None:
    """The one number of an answer that is a sentence: `She pays $46.00 in all`; None where there is not exactly one.

    Where there are several, the one that the sentence concludes with: `4 tickets cost 46 dollars, so it is $11.50`.
    """
    text = notation(answer)
    if not is_prose(text) or _EQUATION.search(text) or _BEARING.search(text):
        return None
    if only_quantity(plain_text(answer)) is not None:
        return Extraction(answer=answer, method="only_number")
    value = concluded(answer)
    if value is not None and quantity_from(notation(value)) is not None:
        return Extraction(answer=value, method="concluded")
    return None


def with_method(extraction: Extraction, addition: str) -> Extraction:
    """The extraction with a note how its answer was compared, e.g. `boxed, comparison stopped`."""
    return replace(extraction, method=f"{extraction.method}, {addition}")
