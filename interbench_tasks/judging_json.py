"""Finds the JSON objects in a judge's reply, also those that are not quite JSON, and the values that they give a key.

An object that is strict JSON is taken as it stands. For any other one the value is read from the raw text after the
key and must agree with what json-repair makes of the object: a repair may complete an object, never decide a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import json_repair

from interbench_tasks.judging_parse import NumberScale, label_from, plain, said

MAX_REPLY_CHARACTERS = 200_000
MAX_BRACES = 2_000
"""A reply that is longer, or has more opening braces, is no verdict; it is not worth what looking through it costs."""
_MAX_KEYS = 100
"""Places of a key that are looked at outside strict objects, the last ones."""
_QUOTE = r"[\"'\u201c\u201d\u2018\u2019]?"
_VALUE = (
    r"(?P<value>\"(?:[^\"\\]|\\.)*\"|'[^'\\]*'|\u201c[^\u201d]*\u201d|\[[^\]]*\]"
    r"|[^,}\]\n\"']*(?:,(?=\d)[^,}\]\n\"']*)*)"
)
"""Raw text of a value: in quotes, or up to what ends it. `4,5` is one value (which nobody can read), not two."""
_A_NUMBER = re.compile(
    r"(?P<value>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:(?:out\s+of|/)\s*\d+)?\s*(?:points?)?\s*[;.]?",
    re.IGNORECASE,
)
_WIDE_DIGITS = {0xFF10 + digit: str(digit) for digit in range(10)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundObject:
    """One object of a reply."""

    start: int
    end: int
    """[start, end) in the text."""
    values: Mapping[str, Sequence[Any]]
    """Key, in lower case -> its values, in order; more than one where the key stands there twice."""
    strict: bool
    """Whether it is JSON as it stands."""
    closed: bool = True
    """False where the text ends before the object does."""
    last_words: frozenset[str] = frozenset()
    """Keys after whose value the text ends: more of the value may be missing."""

    def only(self, key: str) -> Any:  # noqa: ANN401 - any JSON value
        """The value of a key; None where the object does not have it, or has two that differ."""
        found = self.values.get(key, [])
        return found[0] if found and all(_same(value, found[0]) for value in found) else None

    def number(self, key: str, scale: NumberScale) -> float | None:
        """The number under `key`; None where there is none on the scale, or it may have been cut short."""
        value = scale.number(self.only(key))
        return None if value is not None and key in self.last_words and scale.may_go_on(value) else value


def number_in_json(reply: str | None, scale: NumberScale, key: str = "score") -> float | None:
    """The number under `key` in the last complete object that has it; None where it is not on the scale.

    >>> number_in_json("{'comment': None, 'score': 4,}", NumberScale(low=1, high=5))
    4.0
    """
    found = _last_object(reply, key)
    return found.number(key, scale) if found is not None else None


def label_in_json(reply: str | None, labels: tuple[str, ...], key: str = "score") -> str | None:
    """The label under `key` in the last complete object that has it; None where it is none.

    >>> label_in_json('{"score": "Correct"}', ("correct", "incorrect"))
    'correct'
    """
    found = _last_object(reply, key)
    return label_from(found.only(key), labels) if found is not None else None


def _last_object(reply: str | None, key: str) -> FoundObject | None:
    found = objects_in(said(reply), key)
    complete = [one for one in found if one.closed] or found
    return complete[-1] if complete else None


def values_of(text: str, key: str) -> Iterator[tuple[int, str]]:
    """(place, raw value) wherever `key` is given a value in a text, inside an object or not."""
    for match in _key_pattern(key).finditer(text):
        yield match.start(), _bare(match["value"])


# --- objects ------------------------------------------------------------------------------------------------------


def objects_in(text: str, key: str, *others: str) -> list[FoundObject]:
    """The objects of a text that have `key`, in order; of one within another the outer one, if it has the key itself.

    Args: key, others = in lower case; others = keys whose values are checked as that of `key` is, where they are there.
    """
    if len(text) > MAX_REPLY_CHARACTERS or text.count("{") > MAX_BRACES:
        return []
    strict = list(_strict_objects(text))
    rest = [match for match in _key_pattern(key).finditer(text) if not _within(match.start(), strict)]
    loose = list(_loose_objects(text, rest[-_MAX_KEYS:], (key, *others))) if rest else []
    found = [inner for one in strict if not _within(one.start, loose) for inner in _with_key(one, key)]
    return sorted([*found, *loose], key=lambda one: one.start)


def _strict_objects(text: str) -> Iterator[FoundObject]:
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs, strict=False)
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        yield FoundObject(start=start, end=end, values=_values(value), strict=True, closed=True)
        start = text.find("{", end)


class _Pairs(list[tuple[str, Any]]):
    """An object's pairs, a key that stands there twice included."""


def _values(pairs: _Pairs) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(plain(key).strip().casefold(), []).append(value)
    return found


def _with_key(one: FoundObject, key: str) -> Iterator[FoundObject]:
    """The object itself if it has the key; else those within it that have."""
    if key in one.values:
        yield one
        return
    waiting = [value for values in one.values.values() for value in values]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, _Pairs):
            values = _values(value)
            inner = FoundObject(start=one.start, end=one.end, values=values, strict=True, closed=True)
            if key in values:
                yield inner
            else:
                waiting += [each for own in values.values() for each in own]
        elif isinstance(value, list):
            waiting += value


def _loose_objects(text: str, found: Sequence[re.Match[str]], keys: Sequence[str]) -> Iterator[FoundObject]:
    """Objects that are not strict JSON, by the keys that were found in them."""
    pairs, unmatched = _braces(text)
    regions: dict[tuple[int, int, bool], None] = {}
    for match in found:
        around = [(start, end) for start, end in pairs if start < match.start() < end]
        before = [start for start in unmatched if start < match.start()]
        if around:
            start, end = max(around)  # the innermost
            regions[start, end + 1, True] = None
        elif before:
            regions[before[-1], len(text), False] = None
    for start, end, closed in regions:
        raw = text[start:end].translate(_WIDE_DIGITS)
        values = _repaired(raw, keys)
        if values is not None:
            ends = frozenset() if closed else frozenset(key for key in keys if _is_last(raw, key))
            yield FoundObject(start=start, end=end, values=values, strict=False, closed=closed, last_words=ends)


def _braces(text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs of braces that belong together, and opening ones that are never closed."""
    pairs: list[tuple[int, int]] = []
    opened: list[int] = []
    for match in re.finditer(r"[{}]", text):
        if match.group() == "{":
            opened.append(match.start())
        elif opened:
            pairs.append((opened.pop(), match.start()))
    return pairs, opened


def _repaired(raw: str, keys: Sequence[str]) -> dict[str, list[Any]] | None:
    """The values of an object that is not strict JSON; None where the first key has none that is clear."""
    try:
        mended = json_repair.loads(raw)
    except (ValueError, RecursionError, IndexError):  # json-repair is made for anything, but this text is a stranger's
        return None
    if not isinstance(mended, dict):
        return None
    values = {plain(str(name)).strip().casefold(): [value] for name, value in mended.items()}
    for key in keys:
        read = [value for _, value in values_of(raw, key)]
        if key not in values or not any(_means(values[key][0], value) for value in read):
            values.pop(key, None)
        elif not all(_means(values[key][0], value) for value in read):
            values[key] = read  # it stands there twice
        elif isinstance(values[key][0], int | float) and str(values[key][0]) != read[-1]:
            values[key] = read[-1:]  # as it stands there, `4 out of 5` whole
    return values if keys[0] in values else None


def _is_last(raw: str, key: str) -> bool:
    """Whether the text ends with the key's value."""
    ends = [match.end() for match in _key_pattern(key).finditer(raw)]
    return bool(ends) and not raw[ends[-1] :].strip()


def _bare(value: str) -> str:
    """A raw value without comments and quotes."""
    return plain(re.sub(r"\s*(?://|#|/\*).*", "", value)).strip().strip("\"'\u201c\u201d\u2018\u2019")


def _means(mended: object, raw: str) -> bool:
    """Whether json-repair's value is what stands there: the same text, or a number of so many points."""
    text = plain(str(mended)).strip().strip("\"'\u201c\u201d\u2018\u2019")
    if text.casefold() == raw.casefold():
        return True
    if isinstance(mended, bool) or not isinstance(mended, int | float):
        return False
    number = _A_NUMBER.fullmatch(raw)
    return number is not None and float(number["value"]) == float(mended)


def _key_pattern(key: str) -> re.Pattern[str]:
    """`"score": VALUE` in any spelling of quotes; an escaped quotation of it does not fit."""
    return re.compile(rf"(?<![\w\\]){_QUOTE}{re.escape(key)}{_QUOTE}\s*[:=\uff1a]\s*{_VALUE}", re.IGNORECASE)


def _within(place: int, objects: Sequence[FoundObject]) -> bool:
    return any(one.start <= place < one.end for one in objects)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other
