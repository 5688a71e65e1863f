"""Reads a choice from the only option that a reply names, where nothing is said against it."""

from __future__ import annotations

import re

from interbench_tasks.answers import words
from interbench_tasks.answers.claims import Reading
from interbench_tasks.answers.options import Options
from interbench_tasks.answers.plain import canonical_of_plain, conclusion_start, sentences

_NAMED = re.compile(
    rf"(?:{words.START}(?:option|choice|answer|alternative|letter|opci[oó]n|opç[aã]o|opzione|möglichkeit|antwort|réponse"
    rf"|вариант)\s?[(\[]?|选项|選項|選択肢|선택지|{words.START}(?P<open>\())"
    r"(?-i:(?P<letter>[A-Z]))(?![0-9A-Za-zÀ-ɏ_'-])(?(open)\))(?!\)?\s?(?:,|/|or|and|&)\s?[(A-Z])",
    re.IGNORECASE,
)
_NOT_AN_OPTION = re.compile(
    r"(?:figure|fig\.?|panel|point|graph|picture|image|diagram|equation|eq\.?|step|part|table|line|curve|label|region"
    r"|vitamin|type|class)\s*\(?$",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\s*(?:so|thus|hence|therefore|consequently|accordingly|in conclusion|in summary|overall|finally|based on"
    r"|given)\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(words.REFUSED, re.IGNORECASE)
_AGAINST = re.compile(words.AGAINST, re.IGNORECASE)


def read_option_mentions(plain: str, options: Options) -> Reading | None:
    """The conclusion names exactly one option by `option C` or `(C)`, without anything said against it."""
    if _REFUSED.search(plain):
        return None
    chosen: set[str] = set()
    for sentence in sentences(plain[conclusion_start(plain) :]):
        named = {
            options.keys[mark["letter"]]
            for mark in _NAMED.finditer(sentence)
            if mark["letter"] in options.keys
            and not _NOT_AN_OPTION.search(sentence[max(0, mark.start() - 20) : mark.start() + 1])
        }
        if named and not _AGAINST.search(sentence):
            chosen |= named
    return _only(chosen, "mentioned", plain)


def read_option_texts(plain: str, options: Options) -> Reading | None:
    """The conclusion names exactly one option's text that is not rejected; a number counts in its last sentence only.

    Where other options are named before, the last sentence has to say that it concludes (`Therefore ...`).
    """
    whole = canonical_of_plain(plain)
    everywhere = options.mentions(whole)
    if any(not any(start < m.end and m.start < end for m in everywhere) for start, end in _spans(_REFUSED, whole)):
        return None  # a refusal that is not an option's own text, as `cannot be determined` may be
    start = conclusion_start(plain)
    parts = sentences(plain[start:])
    if not parts:
        return None
    last = canonical_of_plain(parts[-1])
    ending = {key for key, text in options.texts.items() if last.endswith(f" is {text}")}
    if len(ending) == 1:
        return _only(ending, "option_text", plain)
    in_last = {m.key for m in options.mentions(last) if not m.rejected}
    named = {m.key for m in options.mentions(canonical_of_plain(plain[start:])) if not m.rejected}
    quantities = options.quantities
    chosen = {key for key in named if key in in_last or key not in quantities}
    others = {m.key for m in everywhere if not m.rejected and m.key not in quantities} - chosen
    if len(chosen) == 1 and others and not _CONCLUDES.match(parts[-1]):
        return Reading(key=None, method="several")
    return _only(chosen, "option_text", plain)


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


def _only(chosen: set[str], method: str, plain: str) -> Reading | None:
    if not chosen:
        return None
    key = next(iter(chosen)) if len(chosen) == 1 else None
    return Reading(key=key, method=method if key else "several", end=len(plain))
