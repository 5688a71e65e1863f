"""Which items of a list a reply names, and how many others it names beside them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interbench_tasks.answers.refusals import refuses
from interbench_tasks.reasoning import said_in_the_end

_ARTICLES = frozenset(("a", "an", "the"))
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W_\u3040-\u30ff\u4e00-\u9fff]+")
"""A word, or one sign of Chinese or Japanese."""
_BULLET = re.compile(r"^\s*(?:[-*+\u2022\u00b7\u2013]|\(?\d{1,2}[.)]|[a-zA-Z][.)])\s+")
_SPLIT = re.compile(
    r"[,;\u3001\uff0c\uff1b\n]|(?:^|\s)(?:and|as well as|plus|along with)\s|\s[&+/]\s|和|及", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)\s+(?=[A-Z\"'(])|[\u3002\uff01\uff1f]|\n+")
_CHAT = re.compile(
    r"^(?:sure|certainly|of course|okay|ok|yes|here\b|let me know|i hope|hope this|if you|please|feel free|is there any"
    r"|you['\u2019]re welcome|thank|these are all|that is all|that['\u2019]s all|in total|so there)",
    re.IGNORECASE,
)
_FRAME = frozenset(
    """
    i you we he she they it there this that these those is are was were be been has have had do does did your my our
    his her their its of in on at to for from with about as by also following mentioned named talked said told listed
    items item list things here all conversation only just both respectively etc so far
    """.split()  # noqa: SIM905 - a hundred quoted words would be harder to read
)
"""Words of which a piece without content is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCounts:
    """A reply's list beside the reference's."""

    hits: int
    """Items of the reference that the reply names."""
    named: int
    """Items that the reply names, >= hits."""
    wanted: int
    """Items of the reference."""

    @property
    def precision(self) -> float:
        """Hits / named; 0 where the reply names nothing. In [0, 1]."""
        return self.hits / self.named if self.named else 0.0

    @property
    def recall(self) -> float:
        """Hits / wanted. In [0, 1]."""
        return self.hits / self.wanted

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall. In [0, 1]."""
        return 2 * self.hits / (self.named + self.wanted)


def item_counts(text: str, items: Sequence[str]) -> ItemCounts:
    """How a reply's items compare with the reference's.

    An item of the reference counts once, where its words stand in the reply in a row; case, articles and punctuation do
    not matter. The rest of the reply is split at lines, bullets, commas and `and`; a piece that has words of its own
    and holds no item of the reference is one that was invented. Sentences that only talk (`Let me know ...`) name
    nothing.
    Source: ours (MMRC says what is divided, not how a reply is split).
    Args: items = the reference's, one at least.
    Raises: ValueError where there is none.

    >>> item_counts("You named Up, Cars and Shrek.", ["Up", "the Cars"])
    ItemCounts(hits=2, named=3, wanted=2)
    """
    wanted = list(dict.fromkeys(words for words in map(_words, items) if words))
    if not wanted:
        raise ValueError("item_counts: need at least one item with a word in it")
    said = _joined(said_in_the_end(text))
    if refuses(said):
        return ItemCounts(hits=0, named=0, wanted=len(wanted))
    found: set[tuple[str, ...]] = set()
    others: set[tuple[str, ...]] = set()
    for piece in _pieces(said, wanted, found):
        content = tuple(word for word in _words(piece) if word not in _FRAME)
        if content:
            others.add(content)
    return ItemCounts(hits=len(found), named=len(found) + len(others), wanted=len(wanted))


def has_words(item: str) -> bool:
    """Whether an item of a reference can be found in a reply at all: a word, beside articles, or a number is in it."""
    return bool(_words(item))


def _pieces(text: str, wanted: Sequence[tuple[str, ...]], found: set[tuple[str, ...]]) -> Iterator[str]:
    """The pieces that hold no wanted item; those that are held are put into `found`."""
    lines = [line for line in text.splitlines() if line.strip()]
    bullets = [line for line in lines if _BULLET.match(line)]
    for line in lines:
        is_bullet = line in bullets
        for sentence in [_BULLET.sub("", line)] if is_bullet else _SENTENCE.split(line):
            masked, held = _masked(sentence, wanted)
            found.update(held)
            if held and is_bullet:
                continue  # what else the line says is about the item
            if not held and (_CHAT.match(sentence.strip()) or (len(bullets) > 1 and not is_bullet)):
                continue
            pieces = [masked] if is_bullet else _SPLIT.split(masked.split(":", 1)[-1] if not held else masked)
            alone = len(pieces) == 1 and not is_bullet and not held
            if alone and len(lines) + len(_SENTENCE.split(line)) > 2 and not _names_something(sentence):
                continue
            yield from (piece for piece in pieces if _MASK not in piece)


_MASK = "\0"


def _masked(sentence: str, wanted: Sequence[tuple[str, ...]]) -> tuple[str, list[tuple[str, ...]]]:
    """The sentence with a mark in the place of each wanted item, and the items; the longest are looked for first."""
    held = []
    for words in sorted(wanted, key=lambda words: -len(words)):
        places = [(match.start(), match.end(), _plain(match.group())) for match in _WORD.finditer(sentence)]
        places = [place for place in places if place[2] not in _ARTICLES]
        n, place = len(words), len(places) - len(words)
        while place >= 0:  # from the end, so that the places before it stay right
            window = places[place : place + n]
            if tuple(word for _, _, word in window) == words:
                sentence = sentence[: window[0][0]] + _MASK + sentence[window[-1][1] :]
                held.append(words)
                place -= n
            else:
                place -= 1
    return sentence, held


def _names_something(sentence: str) -> bool:
    """Whether a sentence of its own names something: a word in capitals that is not its first, a digit, a quotation."""
    return re.search(r"(?<=\S\s)[A-Z][a-z]|\d|[\"\u201c']\w", sentence) is not None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in map(_plain, _WORD.findall(_joined(text))) if word not in _ARTICLES)


def _joined(text: str) -> str:
    """Digits without thousands separators."""
    return re.sub(r"(?<=\d)[,\u2009'](?=\d{3}\b)", "", text)


def _plain(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()
