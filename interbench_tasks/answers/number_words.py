"""English words for numbers: `twenty-five`, `minus three`, `1.5 million`, `three quarters`."""

from __future__ import annotations

import re
from fractions import Fraction

_SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4}
_PARTS |= {"fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10}
_SCALED = re.compile(rf"(?P<number>[^A-Za-z]*\d[^A-Za-z]*?)\s*(?P<scale>{'|'.join(_LARGE)})(?![A-Za-z])(?P<rest>.*)")
_SPELT = re.compile(r"[a-z][a-z\s-]{1,100}")


def number_from_words(text: str) -> Fraction | None:
    """The number that a text spells out; None where it is anything else.

    >>> number_from_words("minus two hundred and five"), number_from_words("three quarters")
    (Fraction(-205, 1), Fraction(3, 4))
    """
    text = text.casefold().strip()
    if not _SPELT.fullmatch(text):
        return None
    words = [word for word in re.split(r"[\s-]+", text) if word]
    sign = 1
    if words[0] in ("minus", "negative"):
        sign, words = -1, words[1:]
    return _signed(sign, words)


def scale_word(text: str) -> tuple[str, int] | None:
    """`1.5 million dollars` -> (`1.5 dollars`, 1000000); None where no such word stands behind a number."""
    found = _SCALED.fullmatch(text.casefold())
    return (found["number"] + found["rest"], _LARGE[found["scale"]]) if found else None


def _signed(sign: int, words: list[str]) -> Fraction | None:
    if not words:
        return None
    if words[-1] in _PARTS:
        above = [word for word in words[:-1] if word not in ("a", "an")] or ["one"]
        count = _whole(above)
        return None if count is None else Fraction(sign * count, _PARTS[words[-1]])
    whole = _whole(words)
    return None if whole is None else Fraction(sign * whole)


def _whole(words: list[str]) -> int | None:
    """A whole number; None for an order of words that no number has (`five twenty`)."""
    total, current, last = 0, 0, 0
    for position, word in enumerate(words):
        if word == "and" and 0 < position < len(words) - 1 and (current >= 100 or total):
            continue
        if word in _SMALL and (last == 0 or last >= 100 or (20 <= last < 100 and 0 < _SMALL[word] < 10)):
            current += _SMALL[word]
            last = _SMALL[word] or 1
        elif word == "hundred" and 0 < current < 100:
            current *= 100
            last = 100
        elif word in _LARGE and current and (not total or total > _LARGE[word]):
            total += current * _LARGE[word]
            current, last = 0, _LARGE[word]
        else:
            return None
    return total + current
