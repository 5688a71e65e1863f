"""Reads a judge's verdict out of its reply. What is not clear is nothing: no zero, no middle value, no clamping.

Three shapes of replies are read: a JSON object, a marker with the value after it, and the bare value. Reasoning blocks
are taken out first; of several complete candidates the last one is the judge's.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from interbench_tasks.errors import InterbenchError
from interbench_tasks.reasoning import without_reasoning

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_WHOLE = re.compile(
    rf"(?P<value>{_NUMBER})\s*(?:(?:/|out\s+of)\s*(?P<top>{_NUMBER}))?\s*(?:points?|stars?)?", re.IGNORECASE
)
_DECORATION = " \t\r\n*_`\"'\u201c\u201d\u2018\u2019$[](){}"
_SEPARATOR = r"""(?:[\s*_`"'\u201c\u201d\u2018\u2019$\[({<]|[:=]|-(?=\s)|\u2013|\u2014|->|→|\bis\b)*"""
"""Between a marker and its value."""
_CUE = (
    r"(?:scor\w*|rat(?:e[ds]?|ing)|grad(?:e[ds]?|ing)|verdict|judge?ment|mark(?:ed|s)?|points?|g[ai]ve[ns]?|assign\w*"
    r"|award\w*|deserves?|answer|result|label|classification|evaluation|value|probability|confidence|likelihood|overall"
    r"|final|say|settle\s+(?:on|for)|go\s+with|make\s+it|call\s+(?:it|this))"
)
_TROUBLE = re.compile(
    r"\b(?:errors?|fail\w*|exceptions?|http|https|timed?[ -]?out|retr(?:y|ies)|port|unavailable|rate[ -]limit\w*|quota"
    r"|cannot|unable|refus\w*|sorry|tokens?|status|traceback|unknown|n/a|overloaded)\b|can['\u2019]t|could\s?n['\u2019]t|won['\u2019]t"
    r"|could not|not able|\[error",
    re.IGNORECASE,
)
"""Words of an error text or of a judge that does not judge: digits beside them are no score."""
_DOUBT = re.compile(
    r"\b(?:not|never|nor|neither|no|hardly|whether|if|unless|or)\b|n['\u2019]t\b|\?|/|\|", re.IGNORECASE
)
"""Beside a label: it may be denied, or only one of several that are named."""


class ScaleError(InterbenchError):
    """A scale has no value on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberScale:
    """The numbers that a judge may give, ends included."""

    low: float
    high: float
    integer: bool = False
    """Whether only whole numbers are on the scale."""

    def __post_init__(self) -> None:
        """Raise ScaleError where no number is on the scale."""
        if not self.low < self.high:
            raise ScaleError(f"a scale needs low < high, got {self.low} and {self.high}")

    def number(self, value: object) -> float | None:
        """`value` as a number of the scale; None for anything else, true and false included.

        >>> NumberScale(low=0, high=5, integer=True).number("4/5"), NumberScale(low=0, high=1).number(90)
        (4.0, None)
        """
        if isinstance(value, str):
            whole = _WHOLE.fullmatch(plain(value).strip(_DECORATION).rstrip("."))
            if whole is None or (whole["top"] is not None and float(whole["top"]) != self.high):
                return None
            value = float(whole["value"])
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        on_scale = self.low <= value <= self.high and not (self.integer and value != int(value))  # NaN is on none
        return float(value) if on_scale else None

    def may_go_on(self, value: float) -> bool:
        """Whether a number that was cut off after its last digit may have been another one.

        >>> NumberScale(low=0, high=100).may_go_on(7), NumberScale(low=0, high=5, integer=True).may_go_on(4)
        (True, False)
        """
        longer = value * 10 <= self.high and value != 0
        return longer or (not self.integer and self.high <= 1 and value < self.high)


def plain(text: str) -> str:
    r"""The text with digits and signs in their usual width, and without characters that nobody sees.

    >>> plain("Verdict:\u200b\uff14")
    'Verdict:4'
    """
    wide = unicodedata.normalize("NFKC", text)
    return "".join(character for character in wide if unicodedata.category(character) != "Cf")


def label_from(value: object, labels: tuple[str, ...]) -> str | None:
    """The label that `value` is, whatever its case; None where it is none.

    >>> label_from("INCORRECT.", ("correct", "incorrect"))
    'incorrect'
    """
    if not isinstance(value, str):
        return None
    said = " ".join(plain(value).strip(_DECORATION + ".,;:!").casefold().replace("_", " ").split())
    known = {label.casefold().replace("_", " "): label for label in labels}
    return known.get(said)


def said(reply: str | None) -> str:
    """What a judge says in the end: without reasoning; empty where it never came to that."""
    return (without_reasoning(reply) or "") if reply is not None else ""


# --- after a marker -----------------------------------------------------------------------------------------------


def number_after(reply: str | None, marker: str, scale: NumberScale) -> float | None:
    r"""The number after the last marker that has one; None where there is none, or it is not on the scale.

    >>> number_after("[RESULT] (1 to 5)\nClear. [RESULT] 3", "[RESULT]", NumberScale(low=1, high=5))
    3.0
    """
    pattern = re.compile(
        rf"{_marker(marker)}{_SEPARATOR}(?P<value>{_NUMBER}(?:\s*(?:/|out\s+of)\s*{_NUMBER})?)"
        rf"(?!\s*(?:-|\u2013|to\b|or\b|/|\|)\s*{_NUMBER})(?![\w%])(?!\.\d)(?!,\d)",
        re.IGNORECASE,
    )
    found = [match["value"] for match in pattern.finditer(plain(said(reply)))]
    return scale.number(found[-1]) if found else None


def label_after(reply: str | None, marker: str, labels: tuple[str, ...]) -> str | None:
    r"""The label after the last marker that has one; None where there is none.

    >>> label_after("GRADE: C. It is complete.", "GRADE", ("C", "P", "I"))
    'C'
    """
    choices = _one_of(labels)
    pattern = re.compile(
        rf"{_marker(marker)}{_SEPARATOR}(?P<value>{choices})"
        rf"(?!\w)(?!['\u2019]\w)(?!\s*[\"'*_`]*\s*(?:\?|/|\||(?:or|nor)\b|,\s*(?:or\s+)?{choices}(?!\w)))",
        re.IGNORECASE,
    )
    found = [match for match in pattern.finditer(plain(said(reply))) if not _is_pronoun(match)]
    return label_from(found[-1]["value"], labels) if found else None


def _marker(marker: str) -> str:
    """A pattern for the marker as it stands, not as a part of a longer word."""
    bare = plain(marker).strip().rstrip(":= ")
    words = r"\s+".join(re.escape(word) for word in bare.split())
    return (r"(?<!\w)" if bare[:1].isalnum() else "") + words + (r"(?!\w)" if bare[-1:].isalnum() else "")


def _one_of(labels: tuple[str, ...]) -> str:
    """A pattern for any label, the longest first; `_` and spaces are one."""
    texts = sorted({plain(label) for label in labels}, key=len, reverse=True)
    patterns = [r"[\s_]+".join(re.escape(word) for word in re.split(r"[\s_]+", text)) for text in texts]
    return rf"(?:{'|'.join(patterns)})"


def _is_pronoun(match: re.Match[str]) -> bool:
    """Whether a label is the word `I` or `a` of the sentence that goes on after it."""
    rest = match.string[match.end("value") :]
    return match["value"].casefold() in ("i", "a") and re.match(r"\s+[a-z]", rest) is not None


# --- the bare value -----------------------------------------------------------------------------------------------


def bare_number(reply: str | None, scale: NumberScale) -> float | None:
    """The number that the reply is, or that its one sentence gives as the score; None for anything else.

    >>> bare_number("I would give this a 4.", NumberScale(low=1, high=5))
    4.0
    >>> bare_number("[ERROR] port 8801 answered HTTP 503", NumberScale(low=0, high=10)) is None
    True
    """
    text = plain(said(reply)).strip()
    alone = scale.number(text)
    if alone is not None:
        return alone
    if _TROUBLE.search(text) or len(_sentences(text)) != 1:
        return None
    numbers = list(re.finditer(rf"(?<![\w.,/-]){_WHOLE.pattern}(?![\w%])", text, re.IGNORECASE))
    if len(numbers) != 1 or len(re.findall(r"\d+(?:\.\d+)?", text)) != (2 if numbers[0]["top"] else 1):
        return None
    before, after = text[: numbers[0].start()], text[numbers[0].end() :]
    if not re.search(rf"\b{_CUE}\b", before, re.IGNORECASE) or re.search(_NOT_SAID, before):
        return None
    clause_ends = re.match(
        r"[\s*_`\"'\u201d\u2019)\]}]*(?:[.!,;:(\u2014\u2013-]|\b(?:because|since|as|for|overall|here)\b|$)", after
    )
    return scale.number(numbers[0].group()) if clause_ends else None


_NOT_SAID = re.compile(
    r"\b(?:not|never|between|from|least|most|above|below|under|over|than|max\w*|min\w*)\b|n['\u2019]t\b", re.IGNORECASE
)
"""Before a number: it is no score, but a limit of one."""


def bare_label(reply: str | None, labels: tuple[str, ...]) -> str | None:
    """The label that the reply is, or the only one that its one sentence names; None for anything else.

    >>> bare_label("The response is correct.", ("correct", "incorrect"))
    'correct'
    >>> bare_label("It is not correct.", ("correct", "incorrect")) is None
    True
    """
    text = plain(said(reply)).strip()
    alone = label_from(text, labels)
    if alone is not None:
        return alone
    if _TROUBLE.search(text) or _DOUBT.search(text) or len(_sentences(text)) != 1:
        return None
    choices = _one_of(labels)
    found = [match for match in re.finditer(rf"(?<!\w)(?P<value>{choices})(?!\w)", text, re.IGNORECASE)]
    if len(found) != 1 or _is_pronoun(found[0]):
        return None
    short = len(found[0]["value"]) == 1  # a letter stands in many sentences; it must be called the grade
    if short and not re.search(rf"\b{_CUE}\b{_SEPARATOR}(?:an?\s+)?$", text[: found[0].start()], re.IGNORECASE):
        return None
    return label_from(found[0]["value"], labels)


def _sentences(text: str) -> list[str]:
    """Sentences and lines that are not empty; a point within a number ends none."""
    pieces = re.split(r"\n+|(?<=[.!?])\s+", text)
    return [piece for piece in pieces if piece.strip(_DECORATION + ".!?")]
