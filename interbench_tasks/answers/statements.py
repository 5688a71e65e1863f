"""Finds plain statements of a choice that no cue word announces: `It is D.`, `So C.`, `B is correct`."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from interbench_tasks.answers import words
from interbench_tasks.answers.claims import Claim, read_claim
from interbench_tasks.answers.cues import next_line
from interbench_tasks.answers.options import Options
from interbench_tasks.answers.plain import conclusion_start
from interbench_tasks.answers.words import START, any_of

_ADVERB = rf"(?:{words.ADVERBS}\s){{0,2}}"
_WHOLE_LETTER = r"(?-i:[A-Z])(?![0-9A-Za-zÀ-ɏ_'-])"
_LETTER_ENDS = r"[(]?(?-i:[A-Z])[)]?\s*(?:[.,;!]|$)"
_IT_IS = any_of(
    rf"{START}(?:it|this|that|which|ce|es|das)(?:'s|\s(?:is|was|must be|has to be|should be|will be|can only be"
    r"|could only be|est|ist|sind))(?![A-Za-z])(?!,)",
    rf"{START}(?:c'est|must be|has to be|es la|it has to be)(?![A-Za-z])",
    "(?:应该|應該|应|應|就|那么|所以|因此|认为|認為|觉得|覺得)(?:应该|應該)?[是为為]",
    rf"{START}is\s?:\s*\n\s*(?=[(\[\"']{{0,2}}(?-i:[A-Z])[).:\]])",  # `The shape is:` and an option line
    rf"{START}(?:one|option|choice|statement|alternative|figure|image|picture|shape|description)\s(?:that|which)\s"
    rf"[^.;:!?\n]{{1,60}}?\s(?:is|must be)(?=\s(?:{words.OPTION_NOUNS}|\s){{0,2}}{_LETTER_ENDS})",
    rf"{START}(?:incorrect|false|wrong|true)\s(?:statement|description|claim|sentence|equation)\sis(?=\s{_LETTER_ENDS})",
)
_SO = any_of(
    rf"{START}(?:so|thus|hence|therefore|consequently|accordingly|finally|in conclusion|probably|definitely|yes"
    r"|i (?:think|believe|guess|suppose|say)|i'd (?:say|guess)|going with|leaving|leaves|only"
    r"|also|somit|daher|folglich|donc|entonces|por lo tanto|portanto|quindi)(?![A-Za-z])",
    rf"{START}(?:conclusion|result|solution|response|output|guess|choice|option|pick|selection|verdict|prediction|key"
    r"|letter|correct|final|assistant)(?:\sis)?\s?[:=]",
    rf"{START}(?:conclusion|result|letter|solution|verdict|odd one out) is(?![A-Za-z])",
    r"∴|(?:^|(?<=\n)|(?<=[.!?]\s))[-=]>|所以|因此|故",
)
_MAYBE = rf"{START}(?:maybe|perhaps|possibly)(?![A-Za-z])"
_LETTER_NEXT = (
    rf"(?=[\s,:]{{0,3}}{_ADVERB}(?:(?:it is|it's|it must be|the|{words.OPTION_NOUNS})\s?){{0,2}}"
    rf"[\s(\[\"'⟦]{{0,3}}{_WHOLE_LETTER})"
)
_CUE = re.compile(rf"{_IT_IS}|(?:{_SO}|(?P<maybe>{_MAYBE})){_LETTER_NEXT}", re.IGNORECASE)

_LETTER = r"(?<![0-9A-Za-zÀ-ɏ_'-])(?-i:(?P<letter>[A-Zb-dfghj]))(?![0-9A-Za-zÀ-ɏ_'-])[)\]\"'⟧]{0,2}"
_RIGHT = (
    r"(?:is|was|must be|has to be|should be|would be|seems(?: to be)?|looks|appears(?: to be)?|remains|ist|est|es|é|è"
    r"|est[áa])\s(?:(?:clearly|therefore|thus|the|my|our|most|only|definitely|indeed|obviously|best|also|die|la|le|der"
    r"|das|likely|single|final|logical)\s){0,5}(?:correct|right|answer|closest|best|accurate|appropriate|suitable"
    r"|proper|fit|match|solution|choice|option|one|pick|guess|richtig\w*|korrekt\w*|antwort|bonne|correct[aeo]"
    rf"|corret[ao]|juste|réponse|respuesta|resposta|cert[ao]|giusta|corretta|risposta){words.END}"
    r"(?!\s(?:if|only if|when)\b)"
)
_IS_RIGHT = re.compile(
    rf"{_LETTER}\s?"
    + any_of(
        _RIGHT,
        r"(?:fits|matches|works|describes|represents|explains|answers)\s(?:the\s\w+\s)?(?:best|perfectly|exactly|well)",
        r"makes\s(?:the\s)?most\ssense|it\sis(?=[.!]?$)",
        r"(?:选项|選項|项|項)?\s?(?:是|才是|为|為)?(?:正确|正確|对的|對的|答案)",
        r"[がは]\s?(?:正解|正しい|答え|適切)(?![^。\n]{0,6}(?:な[いく]|ません))",
        r"[가이는]\s?(?:정답|맞|옳|올바)(?![^.\n]{0,6}(?:아니|아닙|않))",
    )
    + r"|(?:makes?|making)\s(?:option\s)?[(]?(?-i:(?P<made>[A-Z]))[)]?\s(?:the\s)?(?:\w{1,12}\s)?"
    rf"(?:correct|right|best|answer|choice|option){words.END}"
    r"|(?:points?\sto|leads?\s(?:us\s)?to|matches|match|fits|supports|corresponds\sto|aligns\swith|consistent\swith"
    r"|agrees\swith|resembles)\s(?:with\s)?(?:option|choice|answer)\s[(]?(?-i:(?P<matched>[A-Z]))(?![A-Za-z0-9_'-])[)]?"
    r"(?=\s*(?:[.,;:!)]|$))",
    re.IGNORECASE | re.MULTILINE,
)
_AGAINST_BEFORE = re.compile(
    rf"(?:{words.NEGATION}|n't|\b(?:if|whether|suppose|assume|why|how|would|could|might|may|neither|nor|no)\b)"
    r"[^.!?;,\n]{0,25}$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    rf"(?:\b(?:if|whether|suppose|supposing|assuming|say|unless|than|not|n't)\b|{words.DOUBTED})[^.!?;,\n]{{0,20}}$",
    re.IGNORECASE,
)
_LISTING = re.compile(r"(?:\band|\bor|[,/&])\s?$", re.IGNORECASE)
_LISTED_BEFORE = re.compile(
    rf"(?<![0-9A-Za-zÀ-ɏ_'-])(?-i:([A-Z]))[)\]]?\s?{words.AND_OR}\s?(?:option\s|choice\s)?[(]?$", re.IGNORECASE
)
_MOST_STATEMENTS = 200
"""The last ones of a reply that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement that an option is the right one."""

    start: int
    end: int
    claim: Claim
    concluding: bool
    """Whether it says `it is C` or `so C`, and not only that C is right, which may hold for several."""


def statements_in(plain: str, options: Options) -> list[Statement]:
    """All statements of a choice in a plain text, in order; by an option's text only where the reply concludes.

    Texts such as `zero` or `12 cm` are also stated on the way to an answer.
    """
    found = []
    conclusion = conclusion_start(plain)
    for match in deque(_CUE.finditer(plain), maxlen=_MOST_STATEMENTS):
        before = plain[max(0, match.start() - 80) : match.start()]
        if _SUPPOSED.search(before) or (match["maybe"] and _LISTING.search(before)):
            continue
        line = next_line(plain, match.end()) if match[0].endswith("\n") else _rest_of_line(plain, match.end())
        claim = read_claim(line, options, announced=False)
        if claim.kind in ("choice", "several") and (not claim.by_text or match.end() >= conclusion):
            end = match.end() + claim.length
            found.append(Statement(start=match.start(), end=end, claim=claim, concluding=not match["maybe"]))
    for match in deque(_IS_RIGHT.finditer(plain), maxlen=_MOST_STATEMENTS):
        key = options.keys.get((match["letter"] or match["made"] or match["matched"]).upper())
        if key is None or _AGAINST_BEFORE.search(plain[max(0, match.start() - 60) : match.start()]):
            continue
        claim = _listed_together(plain, match, key, options)
        found.append(Statement(start=match.start(), end=match.end(), claim=claim, concluding=False))
    return sorted(found, key=lambda statement: statement.start)


def _rest_of_line(plain: str, at: int) -> str:
    end = plain.find("\n", at)
    return plain[at : end if end >= 0 else len(plain)][:400]


def _listed_together(plain: str, match: re.Match[str], key: str, options: Options) -> Claim:
    """`A and C is right` is no choice."""
    before = _LISTED_BEFORE.search(plain[max(0, match.start() - 20) : match.start()])
    other = options.keys.get(before[1]) if before else None
    return Claim(kind="choice", key=key) if other in (None, key) else Claim(kind="several")
