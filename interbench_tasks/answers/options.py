"""The options of a question, ready to be looked up by letter and by text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from interbench_tasks.answers import words
from interbench_tasks.answers.numbers import Quantity, quantity_from_plain
from interbench_tasks.answers.plain import canonical, canonical_of_plain, plain_text
from interbench_tasks.errors import DataError

_REJECTED_BEFORE = re.compile(
    rf"(?:{words.NEGATION}|rather than|instead of|unlike|statt|anstatt|au lieu de|plutôt que|en vez de)"
    r"\s*(?:the|an?|option|choice|answer|letter|[(\"'])?[\s(\"']*$",
    re.IGNORECASE,
)
_REJECTED_AFTER = re.compile(rf"[)\]\"']*{words.REJECTED_AFTER}", re.IGNORECASE)
_LIST_NEXT = re.compile(rf"[)\]\"'.]*\s*{words.AND_OR}\s*(?:the |an? )?", re.IGNORECASE)
_TRIVIAL = {
    "yes",
    "no",
    "true",
    "false",
    "not",
    "none",
    "all",
    "both",
    "other",
    "same",
    "is",
    "it",
    "one",
    "can",
    "and",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Where an option's text stands in a canonical text."""

    key: str
    start: int
    end: int
    rejected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A question's options in the forms that readers need."""

    keys: Mapping[str, str]
    """Upper-case letter -> the caller's own key."""
    texts: Mapping[str, str]
    """Key -> canonical text; empty texts are left out."""
    raw: Mapping[str, str]
    """Key -> plain text, case kept."""

    @property
    def quantities(self) -> dict[str, Quantity]:
        """Key -> the quantity that its text is, where it is one."""
        read = {key: quantity_from_plain(text) for key, text in self.raw.items()}
        return {key: quantity for key, quantity in read.items() if quantity is not None}

    def exact(self, plain: str) -> str | None:
        """The key of the only option whose text is `plain`, spaces and case aside; None where none or several are."""
        wanted = _tight(canonical_of_plain(plain))
        found = [key for key, text in self.texts.items() if _tight(text) == wanted] if wanted else []
        if len(found) > 1:
            found = [key for key in found if self.raw[key].strip() == plain.strip()]
        return found[0] if len(found) == 1 else None

    def leading(self, canonical_text: str) -> Mention | None:
        """The option with whose text a canonical text begins; the longest, and only where it is one option's."""
        found = [
            (len(text), key)
            for key, text in self.texts.items()
            if len(text.strip("() ")) > 1
            and canonical_text.startswith(text)
            and _stands_alone(canonical_text, 0, len(text), text)
        ]
        longest = [key for length, key in found if length == max(found)[0]]
        if len(longest) != 1:
            return None
        return Mention(key=longest[0], start=0, end=max(found)[0], rejected=False)

    def mentions(self, canonical_text: str) -> list[Mention]:
        """Where option texts stand in a canonical text, without those inside a longer option's text.

        Texts that say nothing in a sentence (`yes`, `no`, single characters other than digits) are not looked for.
        """
        spans: list[Mention] = []
        for key, text in self.texts.items():
            if (len(text) < 2 and not text.isdigit()) or text in _TRIVIAL:
                continue
            spans += [
                Mention(
                    key=key, start=at, end=at + len(text), rejected=_is_rejected(canonical_text, at, at + len(text))
                )
                for at in _occurrences(canonical_text, text)
            ]
        return _outermost(spans)


def options_from(choices: Mapping[str, str]) -> Options:
    """Options from a mapping of letter to text.

    Raises: DataError where a label is not a single Latin letter, or two differ in case only.
    """
    keys = {key.strip().upper(): key for key in choices}
    wrong = [key for key in choices if not re.fullmatch(r"[A-Za-z]", key.strip())]
    if wrong or len(keys) != len(choices):
        raise DataError(
            f"options {list(choices)}: each label must be one letter, each another one. Label the options A, B, C, ..."
        )
    raw = {key: plain_text(str(text)) for key, text in choices.items()}
    texts = {key: canonical_of_plain(text) for key, text in raw.items()}
    return Options(keys=keys, texts={key: text for key, text in texts.items() if text}, raw=raw)


def listed_after(options: Options, canonical_text: str, mention: Mention) -> bool:
    """Whether another option's text is listed right after a mention (`4 or 5`)."""
    rest = canonical_text[mention.end :]
    joint = _LIST_NEXT.match(rest)
    following = options.leading(canonical(rest[joint.end() :])) if joint else None
    return following is not None and following.key != mention.key


def _tight(text: str) -> str:
    return "".join(text.split())


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        if _stands_alone(text, at, at + len(wanted), wanted):
            yield at
        at = text.find(wanted, at + 1)


def _stands_alone(text: str, start: int, end: int, wanted: str) -> bool:
    """Whether text[start:end] is not a piece of a longer word or number."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before and _joined(before[-1], wanted[0]):
        return False
    if after and _joined(wanted[-1], after[0]):
        return False
    if wanted[0].isdigit() and (before[-1:] in ("-", "+") and not before[:1].isalnum()):
        return False  # the sign belongs to the number
    if wanted[0].isdigit() and before[-1:] in (".", ",", "/", "^") and before[:1].isdigit():
        return False
    return not (
        wanted[-1].isdigit() and after[:1] in (".", ",", "/", "^", "%") and (after[1:2].isdigit() or after[0] in "%^/")
    )


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word; scripts without spaces never do."""
    return _is_western(left) and _is_western(right)


def _is_western(char: str) -> bool:
    return char == "_" or (char.isalnum() and ord(char) < 0x0E00)


def _is_rejected(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 40) : start]
    return _REJECTED_BEFORE.search(before) is not None or _REJECTED_AFTER.match(text[end : end + 60]) is not None


def _outermost(spans: list[Mention]) -> list[Mention]:
    kept: list[Mention] = []
    reach = -1
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.end > reach or (kept and (span.start, span.end) == (kept[-1].start, kept[-1].end)):
            kept.append(span)
            reach = max(reach, span.end)
    return kept
