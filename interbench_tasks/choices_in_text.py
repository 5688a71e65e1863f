"""Choices that stand inside a question's text -> options; what MathVerse has instead of a column.

Formula: a line `Choices:` (or `Choice:`), once; then lines `A:text` or `A.text`, lettered A, B, C, ... without a gap,
all with the same sign after the letter. A line without a letter belongs to the choice above it; a choice may be empty
(its picture has it). Nothing else is read.
Source: the 436 multiple-choice questions of MathVerse's testmini: 394 have `A:`, 42 `A.`; 4 are headed `Choice:`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from string import ascii_uppercase

from interbench_tasks.errors import DataError

_HEADER = re.compile(r"^[ \t]*Choices?:[ \t]*$", re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*([A-Z])([:.])[ \t]*(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicesInText:
    """A question's text, taken apart."""

    stem: str
    """The text before the choices; the whole text where there are none."""
    options: dict[str, str] = field(default_factory=dict)
    """Letter -> text; empty where the text has no list of choices."""


def choices_in_text(text: str, where: str) -> ChoicesInText:
    r"""The choices of a question whose text holds them; a text without the line `Choices:` has none.

    Raises: DataError where there is such a line, but no list that can be read without guessing.

    >>> choices_in_text("How large?\nChoices:\nA:40°\nB:60°", "row 1")
    ChoicesInText(stem='How large?', options={'A': '40°', 'B': '60°'})
    >>> choices_in_text("How large?", "row 1").options
    {}
    """
    headers = list(_HEADER.finditer(text))
    if not headers:
        return ChoicesInText(stem=text)
    if len(headers) > 1:
        raise DataError(f"{where}: the line 'Choices:' stands {len(headers)} times in the text; it must stand once")
    (header,) = headers
    return ChoicesInText(
        stem=text[: header.start()].rstrip(), options=_options(text[header.end() :].strip("\n"), where)
    )


def _options(block: str, where: str) -> dict[str, str]:
    lines: dict[str, list[str]] = {}
    signs: set[str] = set()
    for line in block.splitlines():
        label = _LABEL.match(line)
        if label is not None and label.group(1) == ascii_uppercase[len(lines) : len(lines) + 1]:
            lines[label.group(1)] = [label.group(3)]
            signs.add(label.group(2))
        elif label is None and lines:
            lines[next(reversed(lines))].append(line)
        else:
            raise _unreadable(f"the line {line[:60]!r} is not choice {ascii_uppercase[len(lines)]}", where)
    if len(lines) < 2 or len(signs) > 1:
        raise _unreadable("fewer than two choices" if len(lines) < 2 else "'A:' and 'A.' are mixed", where)
    return {letter: "\n".join(parts).strip() for letter, parts in lines.items()}


def _unreadable(why: str, where: str) -> DataError:
    return DataError(
        f"{where}: the choices in the text cannot be read: {why}; "
        "they must be lines 'A:...', 'B:...', ... after a line 'Choices:'"
    )
