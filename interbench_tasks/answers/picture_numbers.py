"""Which pictures of a conversation a reply names, by their numbers: 1-based, in the order in which they appeared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interbench_tasks.reasoning import said_in_the_end

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    "twelfth",
)
_CHINESE = "一二三四五六七八九十"
_NUMBER = rf"(?:\d{{1,3}}|{'|'.join(_WORDS)})(?!\w|[.,]\d|\s*(?::\d|%|[a-z]m\b))"
_ORDINAL = rf"(?:\d{{1,3}}(?:st|nd|rd|th)|{'|'.join(_ORDINALS)}|last|final)\b"
_NOUN = r"(?:pictures?|images?|photo(?:graph)?s?|pics?|figures?|imgs?|screenshots?)"
_AND = r"(?:\s*(?:,|&|\+|/|and|or|as\s+well\s+as)\s*)+"
_TO = r"\s*(?:-|\u2013|to|through)\s*"
_LABEL = r"(?:\s*(?:number|no\.?|nr\.?|\#))?"
_AFTER = re.compile(
    rf"\b{_NOUN}(?:\s+(?:is|are)|\s*:)?{_LABEL}[\s#*_(\[]*(?P<list>{_NUMBER}(?:(?:{_TO}|{_AND})(?:{_NOUN}{_LABEL}\s*)?{_NUMBER})*)",
    re.IGNORECASE,
)
_BEFORE = re.compile(rf"\b(?P<list>{_ORDINAL}(?:{_AND}(?:the\s+)?{_ORDINAL})*)\s+(?:\w+\s+)?{_NOUN}\b", re.IGNORECASE)
_ONLY = re.compile(rf"\W*(?P<list>{_NUMBER}(?:(?:{_TO}|{_AND}){_NUMBER})*)\W*", re.IGNORECASE)
_IN_CHINESE = re.compile(rf"第\s*(\d{{1,3}}|[{_CHINESE}]+)\s*[张幅个]?\s*(?:图|照片)|图(?:片|像)?\s*(\d{{1,3}})")
_DENIED = re.compile(
    r"\b(?:not|n['\u2019]t|neither|nor|except|without|unlike|instead\s+of|rather\s+than)\s+(?:the\s+|in\s+)?$", re.I
)


def picture_numbers(text: str, n_pictures: int | None = None) -> tuple[int, ...]:
    """The pictures that a reply names, sorted; those that it says are not meant are left out.

    Read: `picture 3`, `images 2 and 5`, `photos 1-3`, `the second picture`, and a reply that is numbers alone.

    Args: n_pictures = how many the conversation has; None: `the last picture` is not understood.

    >>> picture_numbers("It is in picture 3 and in the first image, not in image 2.")
    (1, 3)
    """
    said = said_in_the_end(text)
    only = _ONLY.fullmatch(said)
    if only is not None:
        return tuple(sorted(set(_listed(only["list"], n_pictures))))
    found: set[int] = set()
    for pattern in (_AFTER, _BEFORE):
        for match in pattern.finditer(said):
            if _DENIED.search(said[: match.start()]) is None:
                found.update(_listed(match["list"], n_pictures))
    for match in _IN_CHINESE.finditer(said):
        found.add(_chinese(match[1] or match[2]))
    return tuple(sorted(found - {0}))


def _listed(text: str, n_pictures: int | None) -> Iterator[int]:
    """The numbers of `2, 3 and 5`, `1-3`, `first and third`; a range that runs backwards is its two ends."""
    last: int | None = None
    for match in re.finditer(rf"(?P<to>{_TO})?(?:(?P<ordinal>{_ORDINAL})|(?P<number>{_NUMBER}))", text, re.IGNORECASE):
        number = _value(match["ordinal"] or match["number"], n_pictures)
        if number is None:
            continue
        if match["to"] and last is not None and last < number:
            yield from range(last + 1, number)
        yield number
        last = number


def _value(word: str, n_pictures: int | None) -> int | None:
    word = word.casefold()
    digits = re.match(r"\d+", word)
    if digits:
        return int(digits.group())
    if word in ("last", "final"):
        return n_pictures
    names = _WORDS if word in _WORDS else _ORDINALS
    return names.index(word) + 1


def _chinese(text: str) -> int:
    if text.isdigit():
        return int(text)
    if text.startswith("十"):
        return 10 + (_CHINESE.index(text[1]) + 1 if len(text) > 1 else 0)
    return _CHINESE.index(text[0]) + 1
