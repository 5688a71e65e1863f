"""Tokens `<image n>` in a text -> pictures in their places, as MMMU-Pro asks for them.

Options of MMMU-Pro are shuffled, so `<image 3>` may stand before `<image 2>`. Tokens are therefore numbered anew in
the order in which they appear in the question and then in the options: `<image 1>` is the first picture that is shown,
in every text that names it, also in a feedback prompt that shows the pictures first. Pictures that no token names are
not sent: some belong to the explanation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from interbench_tasks.errors import DataError
from interbench_tasks.images import Picture

TOKEN = re.compile(r"<image (\d+)>")
MultiImage = Literal["native", "first", "grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedTexts:
    """A question's texts with tokens numbered in the order of their appearance."""

    question: str
    options: dict[str, str]
    numbers: tuple[int, ...]
    """The data set's own number of the first, second, ... picture that is shown; each once."""


def numbered_texts(question: str, options: Mapping[str, str]) -> NumberedTexts:
    """The same texts, tokens numbered 1, 2, ... as they first appear.

    >>> numbered_texts("Which?", {"A": "<image 3>", "B": "<image 1>"}).options
    {'A': '<image 1>', 'B': '<image 2>'}
    """
    found: dict[str, int] = {}
    for text in (question, *options.values()):
        for number in TOKEN.findall(text):
            found.setdefault(str(int(number)), len(found) + 1)

    def renumbered(text: str) -> str:
        return TOKEN.sub(lambda match: f"<image {found[str(int(match.group(1)))]}>", text)

    return NumberedTexts(
        question=renumbered(question),
        options={letter: renumbered(text) for letter, text in options.items()},
        numbers=tuple(int(number) for number in found),
    )


def placed(
    prompt: str,
    pictures: Sequence[Picture],
    multi_image: MultiImage,
    *,
    grid: Callable[[Sequence[Picture], Sequence[str]], Picture],
) -> tuple[str | Picture, ...]:
    """The prompt's texts and pictures in order; no picture is sent twice.

    `native`: each picture stands where its token was. A token that appears again keeps its text everywhere, and its
    picture follows its first appearance: a model could not tell otherwise which one is meant. `first`: only the first
    picture, the other tokens keep their text. `grid`: pictures as one, before the text; all tokens keep their text.

    Args: prompt = with tokens numbered from 1; pictures[i] = what `<image i+1>` stands for; grid = makes one picture of
        several and their labels.
    Raises: DataError where the prompt lacks the token of a picture that is to be shown.
    """
    if len(pictures) > 1 and multi_image == "grid":
        labels = [f"<image {number}>" for number in range(1, len(pictures) + 1)]
        return (grid(pictures, labels), prompt)
    shown = pictures[:1] if multi_image == "first" else pictures
    named = [int(match.group(1)) for match in TOKEN.finditer(prompt)]
    parts: list[str | Picture] = []
    done, at = set(), 0
    for match in TOKEN.finditer(prompt):
        number = int(match.group(1))
        if number in done or not 1 <= number <= len(shown):
            continue
        done.add(number)
        parts.append(prompt[at : match.end() if named.count(number) > 1 else match.start()])
        parts.append(shown[number - 1])
        at = match.end()
    left_out = [number for number in range(1, len(shown) + 1) if number not in done]
    if left_out:
        raise DataError(
            f"prompts.question leaves out <image {left_out[0]}>, which the question or an option names; "
            "it must contain {{ question }} and the options"
        )
    parts.append(prompt[at:])
    return tuple(part for part in parts if part != "")
