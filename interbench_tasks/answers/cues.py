r"""Finds where a reply announces its answer: `Answer:`, `the correct option is`, `\boxed{`, 答案, Antwort ..."""
# ruff: noqa: RUF001  (punctuation of other scripts is meant)

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from interbench_tasks.answers import words
from interbench_tasks.answers.plain import BOX_CLOSE, BOX_OPEN

_LETTER_FOLLOWS = (
    r"(?=[\s(\[\"'⟦]{0,3}(?:(?-i:[A-Z])(?![0-9A-Za-zÀ-ɏ_'-])|(?-i:[b-df-hj-np-tv-xz])[)\]\"'⟧]?(?:[.,;:!]|\s*$)))"
)
_OPTION_WORD = rf"(?:(?:the|la|le|die|el|a|{words.OPTION_NOUNS})\s?){{0,3}}"
_NOUNS = words.any_of(*words.ANSWER_NOUNS.values(), *words.CHOSEN_OPTION.values())

_ENGLISH = (
    rf"{words.START}(?:(?<!possible )(?<!potential )(?<!available )(?<!given )(?<!following )"
    r"(?:answers?|ans\.?)(?!\s(?:choices|options|sheet))"
    rf"(?:[_ ](?:letter|choice|option|key|index|id|label))?|{words.CHOSEN_OPTION_ENGLISH})(?![A-Za-z])(?:"
    + "|".join(
        [
            words.LINK,  # `Answer: C`
            r"\?\s(?=\(?(?-i:[A-Z])\)?(?:[.,;:!)]|\s*$))",  # `What is the answer? C`
            r"\s(?=\(?(?-i:[A-Z])\)?(?:\s*(?:[.,;:!)]|$)|\s(?:because|since|as|which|is)\b))",  # `Answer C`
            rf"{words.GAP}{words.COPULA}(?:\s?:)?",  # `The answer that fits is C`
            r"(?!\s(?:the|this|these|with|each|all|by|in|using|based|following)\b)(?:(?!options|choices|each|provided|list)"
            r"[^,.:;!?\n|⟦⟧]){0,40}?:",  # `Answer to question 3: C`
        ]
    )
    + ")"
)
_OTHER = (
    rf"(?<![A-Za-zÀ-ɏ])(?:{_NOUNS})(?:(?<=[\u0e00-\uffff])|(?![A-Za-zÀ-ɏ]))(?:{words.LINK}"
    rf"|[^.:;!?\n。，]{{0,40}}?{words.ANSWER_COPULAS}|[^.:;!?\n。，,]{{0,8}}?(?:คือ|[是为為はが은는이])|(?=[\s\])\"']))?"
)
_KEY = (
    r"[\"'](?:[a-z]{1,20}[_ ]){0,3}(?:choice|option|letter|prediction|pred|label|selection|selected|response|output"
    r"|result|solution)(?:[_ ][a-z]{1,20})?[\"']\s?:"
)
_PERSON = rf"(?:{words.FIRST_PERSON_CHOICE})\s?[:]?{_OPTION_WORD}{_LETTER_FOLLOWS}"
_HEADING = (
    r"^[^\w\n]{0,9}(?:the\s)?(?:final\s|correct\s|my\s)?"
    r"(?:answer|choice|réponse|antwort|respuesta|答案|答え|정답)[^\w\n]{0,9}\n"
)
_CUE = re.compile(
    "|".join([BOX_OPEN, _HEADING, _ENGLISH, _KEY, _OTHER, _PERSON]),
    re.IGNORECASE | re.MULTILINE,
)
_NEGATED = re.compile(words.NEGATION, re.IGNORECASE)
_NEGATED_BEFORE = re.compile(rf"{words.NEGATION}\s*(?:\w{{1,12}}\s){{0,2}}$", re.IGNORECASE)
_DOUBTED = re.compile(words.DOUBTED, re.IGNORECASE)
_WOULD = re.compile(r"\bwould\b", re.IGNORECASE)
_IF = re.compile(r"\b(?:if|were|had|otherwise|unless)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[.!?;\n]|\b(?:but|however|aber|mais|pero)\b", re.IGNORECASE)
_OPTION_HEAD = re.compile(r"[\s(\[\"']*([A-Z])\s?[)\].:]")
_SOUGHT = re.compile(
    r"\b(?:determine|find|identify|select|choose|evaluate|decide on|figure out|work out|verify|look(?:ing)? for|match)"
    r"\s+(?:the\s+|an?\s+)?(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)
_SAYS_SOMETHING = re.compile(r"[\w⟦]")

_MOST_CUES = 100
"""The last ones of a reply that are read: more are only found in one that repeats itself."""
_MAX_CLAIM = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """One place that announces an answer."""

    start: int
    claim_start: int
    claim: str
    """What is announced: the rest of the line, else the next line; `not ` in front where the cue was negated."""
    boxed: bool


def cues_in(plain: str) -> list[Cue]:
    """The last cues of a plain text, in order, without those that report what somebody might think or said before."""
    found: list[Cue] = []
    for match in deque(_CUE.finditer(plain), maxlen=_MOST_CUES):
        boxed = match[0] == BOX_OPEN
        if not boxed and _is_reported(plain, match):
            continue
        claim = _claim_after(plain, match.end(), boxed=boxed)
        if not boxed and _is_negated(plain, match):
            claim = "not " + claim
        found.append(Cue(start=match.start(), claim_start=match.end(), claim=claim, boxed=boxed))
    return found


def _claim_after(plain: str, at: int, *, boxed: bool) -> str:
    if boxed:
        end = plain.find(BOX_CLOSE, at, at + _MAX_CLAIM)
        return plain[at : end if end >= 0 else at + _MAX_CLAIM]
    end = plain.find("\n", at)
    line = plain[at : end if end >= 0 else len(plain)][:_MAX_CLAIM]
    if _SAYS_SOMETHING.search(line) or end < 0:
        return line
    return next_line(plain, end)


def next_line(plain: str, at: int) -> str:
    """The first line that is not blank from `at` on; empty where it is the first of a list of options."""
    line, *rest = plain[at : at + _MAX_CLAIM].lstrip().split("\n\n", 1)[0].split("\n")
    head = _OPTION_HEAD.match(line)
    others = {other[1] for other in map(_OPTION_HEAD.match, rest) if other}
    return "" if head and chr(ord(head[1]) + 1) in others else line


def _is_negated(plain: str, match: re.Match[str]) -> bool:
    before = plain[max(0, match.start() - 30) : match.start()]
    return _NEGATED.search(match[0]) is not None or _NEGATED_BEFORE.search(before) is not None


def _is_reported(plain: str, match: re.Match[str]) -> bool:
    """Whether the sentence makes the cue hypothetical, somebody else's, or a heading (`To find the answer:`)."""
    clause = _CLAUSE.split(plain[max(0, match.start() - 120) : match.start()])[-1]
    on_next_line = plain[match.end() : match.end() + 3].lstrip(" ").startswith("\n")
    if _DOUBTED.search(clause) or (on_next_line and _SOUGHT.search(clause)):
        return True
    after = plain[match.end() : match.end() + 40].lstrip(" (ABCDEFGHIJ),")
    return _WOULD.search(match[0]) is not None and (_IF.search(clause) or _IF.match(after)) is not None
