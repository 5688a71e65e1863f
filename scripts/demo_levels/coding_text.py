"""Code to read: what does it return? Our own. The code of a question is the source of the function that answers it."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from demo_items.puzzle import number_options

from demo_levels.item import Builder, Item, checked, text_options


def _steps(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _shared() -> int:
    first = [1, 2, 3]
    second = first
    second.append(4)
    third = first[:]
    third.append(5)
    return len(first) + len(second) + len(third)


def _word(text: str) -> str:
    out = ""
    for i, letter in enumerate(text):
        out = letter + out if i % 2 == 0 else out + letter
    return out


def _count(text: str) -> int:
    seen: dict[str, int] = {}
    for letter in text:
        seen[letter] = seen.get(letter, 0) + 1
    return sum(n for n in seen.values() if n > 1)


def _tree(n: int) -> int:
    if n < 2:
        return 1
    return _tree(n - 1) + 2 * _tree(n - 2)


def _slices() -> list[int]:
    numbers = list(range(10))
    return numbers[2:8:3] + numbers[-2:]


def shown(function: Callable[..., object], call: str) -> str:
    """The question about a function; names without the underscore that only our linter wants."""
    name = function.__name__
    source = inspect.getsource(function).replace(name, name.lstrip("_")).rstrip()
    return f"What does {call} return?\n\n{source}"


def steps(letter: str) -> Item:
    """A loop that halves or triples; a free answer."""
    way = [6, 3, 10, 5, 16, 8, 4, 2, 1]
    return Item(
        question=shown(_steps, "steps(6)"),
        answer=checked(_steps(6), len(way) - 1, "steps"),
        hint="Write down n after each turn of the loop.",
        explanation="6 is even and becomes 3; 3 is odd and becomes 10; go on like this until n is 1. "
        "Then count the turns, "
        "not the numbers: the 6 at the beginning is none.",
        request="list n after every turn.",
    )


def shared(letter: str) -> Item:
    """Two names of one list, and a copy."""
    right = int(checked(_shared(), 4 + 4 + 5, "lengths"))
    return Item(
        question=shown(_shared, "shared()"),
        options=number_options(right, [12, 11, 10, 14], letter),
        answer=letter,
        hint="Which of the three names stand for one and the same list?",
        explanation="`second = first` makes no copy: what is appended to `second` is in `first` too. "
        "`first[:]` does make a "
        "copy, of the list as it is by then. Write down the three lists at the end, and add their lengths.",
        request="say which lists there are, and what each holds at the end.",
    )


def word(letter: str) -> Item:
    """Letters put in front and behind."""
    text = "PLANET"
    right = checked(_word(text), text[4::-2] + text[1::2], "the word")
    return Item(
        question=shown(_word, f'word("{text}")'),
        options=text_options(right, [text[::-1], text[::2] + text[1::2], text[5::-2] + text[::2]], letter),
        answer=letter,
        hint="Which letters are put in front, and which behind?",
        explanation="Letters at even places (0, 2, 4) come in front of what is there, so the last of "
        "them stands first. Those "
        "at odd places (1, 3, 5) are put behind, in their own order. Write down `out` after each letter.",
        request="give `out` after every letter.",
    )


def count(letter: str) -> Item:
    """Letters that come more than once; a free answer."""
    text = "mississippi"
    return Item(
        question=shown(_count, f'count("{text}")'),
        answer=checked(_count(text), sum(text.count(one) for one in set(text) if text.count(one) > 1), "letters"),
        hint="How often does each letter of the word come?",
        explanation="Only letters that come more than once are added up, and with all of their "
        "times: the m comes once and "
        "does not count; i, s and p do.",
        request="give the number of times of each letter, and say which are added.",
    )


def tree(letter: str) -> Item:
    """A function that calls itself twice."""
    row = [1, 1]
    while len(row) < 6:
        row.append(row[-1] + 2 * row[-2])
    right = int(checked(_tree(5), row[5], "the value"))
    return Item(
        question=shown(_tree, "tree(5)"),
        options=number_options(right, [11, 8, 13, 43], letter),
        answer=letter,
        hint="Begin with the small values: what are tree(0) and tree(1)?",
        explanation="tree(0) and tree(1) are 1. Each further value is the one before plus twice the "
        "one before that: so "
        "tree(2) is 1 + 2 times 1. Go on in a table up to tree(5).",
        request="give the table from tree(0) to tree(5).",
    )


def slices(letter: str) -> Item:
    """Parts of a list."""
    right = checked(str(_slices()), str([2, 5, 8, 9]), "the list")
    return Item(
        question=shown(_slices, "slices()"),
        options=text_options(right, ["[2, 5, 8, 8, 9]", "[2, 3, 4, 8, 9]", "[2, 5, 9, 8]"], letter),
        answer=letter,
        hint="The end of a slice is not part of it.",
        explanation="`2:8:3` begins at place 2 and takes every third number, as long as the place is "
        "below 8. `-2:` takes the "
        "last two numbers as they stand. Put both parts one behind the other.",
        request="give both slices and say where each ends.",
    )


BUILDERS: tuple[Builder, ...] = (steps, shared, word, count, tree, slices)
