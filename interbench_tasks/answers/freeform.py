"""Reads the answer out of a reply to a free-form question."""

from __future__ import annotations

import re
import unicodedata

from interbench_tasks.answers import words
from interbench_tasks.answers.plain import boxes, wide_to_plain
from interbench_tasks.reasoning import without_reasoning
from interbench_tasks.records import Extraction

_NOUNS = unicodedata.normalize("NFKC", "|".join(words.ANSWER_NOUNS.values()))
_ANSWER_LINE = re.compile(
    rf"(?<![A-Za-zÀ-ɏ])(?:answer|ans\.?|{_NOUNS})(?![A-Za-zÀ-ɏ])[\s*_\"'\])}}`]{{0,8}}[:=][\s*_]{{0,8}}(?P<value>[^\n]*)",
    re.IGNORECASE,
)
_ANSWER_TAG = re.compile(r"<(?:final_?)?answer>\s*(?P<value>[^<>]{1,300}?)\s*</(?:final_?)?answer>", re.IGNORECASE)
_ANSWER_HEADING = re.compile(
    r"(?:^[^\w\n]{0,9}(?:final\s|correct\s)?answer|\banswer\b[^.:;!?\n]{0,40}?\s(?:is|equals):?)"
    r"[^\w\n:=]{0,9}\n(?P<value>)",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_KEY = re.compile(
    r"[\"'](?:final_?)?(?P<noun>answer)[\"']\s?:\s?(?:\"(?P<quoted>[^\"\n]{0,200})\"|(?P<bare>[^\"',}\n]{1,200}))",
    re.IGNORECASE,
)
_STATED = re.compile(
    rf"(?<![A-Za-zÀ-ɏ])(?:answer|final\s+result)(?![A-Za-z])[^.:;!?\n]{{0,40}}?\s(?:is|equals)\s?:?\s?(?P<value>[^\n]{{1,200}}?)(?=[.!]?\s*$|[.!]\s)"
    rf"|(?:{_NOUNS})\s?[是は]\s?(?P<value2>[^\n。]{{1,200}}?)(?=です|だ|[。\n]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_NO_SHORT_ANSWER = re.compile(r"(?:[:?]|\.\.\.)$|\\boxed|\banswer\b", re.IGNORECASE)
_REFUSED = re.compile(words.REFUSED, re.IGNORECASE)
_WRAPPING = (
    ("$$", "$$"),
    ("$", "$"),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("**", "**"),
    ("`", "`"),
    ('"', '"'),
    ("'", "'"),
    ("{", "}"),
)
_TEXT_WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}")
_MAX_LINE = 200
_MAX_WHOLE_REPLY = 100


def extract_text(text: str) -> Extraction:
    r"""The answer of a reply to a free-form question, as it is written there; None where none is announced.

    Order: the last `Answer:` line, the last complete `\boxed{}`, the last `the answer is ...`, else a reply that is one
    short line and no refusal or question.
    Returns: LaTeX inside the answer is kept, wrappers around it are not; method `declared`, `boxed`, `stated`, `short`,
        `none` or `unfinished_reasoning`.

    >>> extract_text("We add both.\n**Answer:** $46.00$")
    Extraction(answer='46.00', method='declared')
    >>> extract_text("Let me think about the two bars.\nOne is higher.")
    Extraction(answer=None, method='none')
    """
    visible = without_reasoning(text)
    if visible is None:
        return Extraction(answer=None, method="unfinished_reasoning")
    visible = wide_to_plain(visible.replace("\r\n", "\n"))
    for method, found in (
        ("declared", _declared(visible)),
        ("boxed", _boxed(visible)),
        ("stated", _stated(visible)),
        ("short", _short(visible)),
    ):
        answer = _unwrapped(found)
        if answer:
            return Extraction(answer=answer, method=method)
    return Extraction(answer=None, method="none")


def _declared(text: str) -> str:
    keys = {m.start("noun"): m["quoted"] or m["bare"] or "" for m in _ANSWER_KEY.finditer(text)}
    lines = {m.start(): _value_or_next_line(text, m) for m in _ANSWER_LINE.finditer(text)}
    headings = {m.start(): _value_or_next_line(text, m) for m in _ANSWER_HEADING.finditer(text)}
    tags = {m.start(): m["value"] for m in _ANSWER_TAG.finditer(text)}
    found = sorted({**headings, **lines, **tags, **keys}.items())
    values = [value for _, value in found if _unwrapped(value) and len(value) <= _MAX_LINE]
    return values[-1] if values else ""


def _value_or_next_line(text: str, match: re.Match[str]) -> str:
    value = match["value"].strip(" *_")
    if value and value not in ("\\[", "$$", "```"):
        return _boxed(value) or value
    following = [line for line in text[match.end() : match.end() + 600].split("\n") if line.strip(" *_$\\[]`")]
    return (_boxed(following[0]) or following[0]) if following else ""


def _boxed(text: str) -> str:
    found = boxes(text)
    return text[found[-1][1] : found[-1][2]] if found else ""


def _stated(text: str) -> str:
    found = list(_STATED.finditer(text))
    if not found:
        return ""
    value = (found[-1]["value"] or found[-1]["value2"] or "").strip(" :")
    return "" if re.match(rf"\s*{words.NEGATION}", value, re.IGNORECASE) else value


def _short(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) != 1 or len(lines[0]) > _MAX_WHOLE_REPLY:
        return ""
    refused = _REFUSED.search(lines[0]) or _NO_SHORT_ANSWER.search(lines[0])
    return "" if refused else lines[0]


def _unwrapped(answer: str) -> str:
    """The answer without what is only around it: emphasis, maths delimiters, quotes, a full stop."""
    before = None
    while before != answer:
        before = answer
        answer = answer.strip(" \t\n,;*").removesuffix(".").strip()
        for left, right in _WRAPPING:
            inside = answer[len(left) : -len(right)]
            if (
                len(answer) > len(left) + len(right)
                and answer.startswith(left)
                and answer.endswith(right)
                and right not in inside
            ):
                answer = inside
        whole = _TEXT_WRAPPER.fullmatch(answer)
        answer = whole[1] if whole else answer
    return answer
