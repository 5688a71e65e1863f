"""Reads what stands after a cue such as `Answer:`: one option, several, a rejected one, or nothing."""
# ruff: noqa: RUF001  (punctuation of other scripts is meant)

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from interbench_tasks.answers import words
from interbench_tasks.answers.numbers import quantity_from_plain
from interbench_tasks.answers.options import Options, listed_after
from interbench_tasks.answers.plain import canonical_of_plain

Kind = Literal["choice", "several", "outside", "declined", "rejected", "nothing"]

_MAX_LENGTH = 400
_LETTER = (
    r"(?<![0-9A-Za-zÀ-ɏ_])(?P<letter>[A-Za-z])(?![0-9A-Za-zÀ-ɏ_+#°♭♯])(?!'[A-Za-z])(?!-[A-Za-z0-9])"
    r"(?!\.[A-Za-z](?![A-Za-z]))"
)
"""A letter that is no part of a word, a number or an abbreviation (`T-shirt`, `C++`, `e.g.`, `I'm`)."""
_LEAD = re.compile(
    rf"(?>{words.FILLERS}){{0,16}}+(?P<open>[\s(\[\"'⟦<]{{0,6}}){_LETTER}(?P<close>(?:\s?[)\]\"'⟧>]{{1,5}})?)",
    re.IGNORECASE,
)
_GLUED = re.compile(
    rf"(?>{words.FILLERS}){{0,16}}+[\s(\[\"'⟦<]*(?-i:(?P<letters>[A-Z]{{2,12}}))(?![A-Za-z0-9_])", re.IGNORECASE
)
_SPACED = re.compile(r"(?:\s*[(\[]?(?-i:[A-Z])[)\]]?(?![A-Za-z0-9_'])){1,12}[\s.⟧]*$")
_LISTED = re.compile(
    rf"\s*[(]?{words.AND_OR}\s*(?:(?:maybe|possibly|perhaps|even|also|both|either|{words.OPTION_NOUNS})\s+){{0,3}}"
    rf"[(\[\"'⟦]{{0,3}}(?-i:(?P<letter>[A-Za-z]))(?![0-9A-Za-zÀ-ɏ_+#°'])[)\]\"'⟧]{{0,3}}(?P<rest>.{{0,40}})",
    re.IGNORECASE | re.DOTALL,
)
_ONLY_A_LIST = re.compile(
    rf"(?>{words.AND_OR}|(?:both|either|{words.OPTION_NOUNS}){words.END}|(?-i:[A-Z]+){words.END}|[\W_])*+",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s?-\s?(?-i:[A-Z])(?![A-Za-z0-9_'])")
_AFTER_COMMA = re.compile(rf"\s*(?:$|[.;:)⟧]|{words.AND_OR}|(?:are|both|together)\b)", re.IGNORECASE)
_WORD_NEXT = re.compile(r"\s+(?!both|together)[a-z]")
_SINGULAR = re.compile(rf"\s+{words.SINGULAR_VERB}", re.IGNORECASE)
_ENDS = re.compile(
    r"\s*(?:$|[.,:;!?)\]|/>}⟧\n。、，؟।]|->|=>|[—-]\s"
    r"|[\u0600-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)
_LOWER_CASE_ENDS = re.compile(r"\s*(?:[.)\]:,⟧]\s*)?(?:\n|$)|[):.]\s")
_BESIDE = re.compile(r"\s?[(\[](?:(?i:option|choice)\s)?([A-Z])[)\]]")
_REMARK = re.compile(r"\s?\([^()]*\)\s*[.!]?\s*$")
_OPENS = re.compile(r"\s*[(\[\"'⟦]")
_CONNECTED = re.compile(rf"\s+(?:{words.CONNECTORS})(?![^\W_])", re.IGNORECASE)
_STRICTLY_CONNECTED = re.compile(rf"\s+(?:{words.STRICT_CONNECTORS})(?![^\W_])", re.IGNORECASE)
_NOT_AFTER_I = re.compile(
    r"\s+(?:was|will|would|can|cannot|could|should|may|might|must|have|do|am|and|or)(?![^\W_])", re.IGNORECASE
)
_NEGATED = re.compile(rf"(?>{words.FILLERS}){{0,9}}+{words.NEGATION}\s*(?!only|just)", re.IGNORECASE)
_REJECTED_AFTER = re.compile(words.REJECTED_AFTER, re.IGNORECASE)
_BUT = re.compile(words.BUT, re.IGNORECASE)
_JOINT = re.compile(rf"\s*{words.AND_OR}\s*", re.IGNORECASE)
_TURNS = re.compile(r"(?:but|sondern|mais)\b", re.IGNORECASE)
_NEGATION = re.compile(words.NEGATION, re.IGNORECASE)
_NO_ANSWER = re.compile(rf"\s*(?:that\s+|probably\s+)?{words.NO_ANSWER}", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。；\n]")
_EDGES = re.compile(r"(?:[\s:=>|,*\"')\]}‣]|-(?![\w.]))+")
_STILL_THINKING = re.compile(
    r"\b(?:let|consider|first|look|check|compare|analy[sz]e|start|examine|evaluate|task|question|between)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?:(?:{words.OPTION_NOUNS})\s+[(\[]?|[(\[])(?-i:(?P<letter>[A-Z]))(?![A-Za-z0-9_'-])[)\]]?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a piece of a reply claims."""

    kind: Kind
    key: str | None = None
    """The option's own key; set where kind is `choice`."""
    rejected: frozenset[str] = frozenset()
    """Keys of options that it says are wrong."""
    length: int = 0
    """Characters up to and including what decided."""
    by_text: bool = False
    """Whether an option's text was named, and not its letter."""


NOTHING = Claim(kind="nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one reader of a reply found."""

    key: str | None
    """None where the reply says something that is not one option."""
    method: str
    end: int = 0
    """Where in the plain text it was decided."""


def read_claim(text: str, options: Options, *, announced: bool = True, depth: int = 0) -> Claim:
    """What plain text that follows a cue claims; never a guess.

    Args: announced = whether the cue said that the answer follows; else a lone letter needs punctuation after it.
    """
    text = text[:_MAX_LENGTH]
    edge = _EDGES.match(text)
    offset = edge.end() if edge else 0
    body = text[offset:]
    claim = _read_body(body, options, announced, depth)
    return replace(claim, length=offset + claim.length) if claim else NOTHING


def _read_body(body: str, options: Options, announced: bool, depth: int) -> Claim | None:
    negated = _NEGATED.match(body)
    if negated and options.exact(_first_sentence(body)) is None:
        claim = _read_negated(body[negated.end() :], options, announced, depth)
        return claim if claim.kind != "nothing" else _read_whole(body, options)
    return (
        _read_whole(body if announced or depth else _first_sentence(body), options)
        or _read_leading_text(body, options, announced)
        or _read_letter(body, options, announced, depth)
        or (_read_inside(_first_sentence(body), options) if announced else None)
    )


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def _read_whole(body: str, options: Options) -> Claim | None:
    """The claim is an option's text and nothing else, or says that there is no answer."""
    line = body.split("\n", 1)[0]
    candidates = [line, _first_sentence(line), line.split(" (", 1)[0], line.split("⟧", 1)[0].lstrip("⟦")]
    for candidate in candidates:
        stripped = candidate.strip(" .,;:!\"'()[]⟦⟧")
        key = options.exact(candidate)
        beside = _BESIDE.match(line[len(candidate) :]) if key is not None else None
        if beside and options.keys.get(beside[1]) not in (None, key):
            return Claim(kind="several", length=len(line))  # one option's text with another one's letter
        if key is not None and not (len(stripped) == 1 and stripped.upper() in options.keys):
            return Claim(kind="choice", key=key, length=len(candidate), by_text=True)
        if key is not None and stripped.islower() and options.keys[stripped.upper()] != key:
            return Claim(kind="several", length=len(candidate))  # `d` is one option's text and another one's letter
    quantity = quantity_from_plain(_first_sentence(line)) if any(char.isdigit() for char in line) else None
    if quantity is not None:
        same = [key for key, other in options.quantities.items() if other.same_as(quantity)]
        if len(same) == 1:
            return Claim(kind="choice", key=same[0], length=len(line), by_text=True)
    if _NO_ANSWER.match(line) and not options.mentions(canonical_of_plain(line)):
        return Claim(kind="declined", length=len(line))
    return None


def _read_leading_text(body: str, options: Options, announced: bool) -> Claim | None:
    """The claim begins with an option's text: `the Great Wall, because ...`."""
    line = _first_sentence(body) if not announced else body.split("\n", 1)[0]
    whole = canonical_of_plain(line)
    mention = options.leading(whole)
    if mention is None:
        return None
    rest = whole[mention.end :]
    if not (announced or _ENDS.match(rest) or _STRICTLY_CONNECTED.match(rest)):
        return None
    if _REJECTED_AFTER.match(rest):
        return Claim(kind="rejected", rejected=frozenset({mention.key}), length=mention.end)
    kind: Kind = "several" if listed_after(options, whole, mention) else "choice"
    return Claim(kind=kind, key=mention.key if kind == "choice" else None, length=mention.end, by_text=True)


def _read_letter(body: str, options: Options, announced: bool, depth: int) -> Claim | None:
    """The claim begins with a letter: `(C)`, `option C because ...`, `CD`."""
    glued = _GLUED.match(body)
    only_listed = announced or _ONLY_A_LIST.fullmatch(_first_sentence(body)) is not None
    if glued and set(glued["letters"]) <= options.keys.keys() and len(set(glued["letters"])) == len(glued["letters"]):
        return Claim(kind="several", length=glued.end()) if only_listed else None
    lead = _LEAD.match(body)
    if lead is None:
        return None
    rest = body[lead.end() :]
    key = options.keys.get(lead["letter"].upper())
    if not _is_choice_letter(lead, rest, options, announced):
        return None
    if key is None:
        return Claim(kind="outside", length=lead.end())
    if _lists_more(rest, options, key) or _lists_without_joint(rest, options, key):
        return Claim(kind="several", length=lead.end()) if only_listed else None
    if _REJECTED_AFTER.match(rest):
        return _read_rest_after_rejection(rest, options, frozenset({key}), announced, depth)
    described = rest.lstrip(" \t:.,-)>|")
    named = {options.exact(described), options.exact(_first_sentence(described))} - {None}
    if named and named != {key} and not re.fullmatch(r"\W*[A-Za-z]\W*", rest):
        return Claim(kind="several", length=lead.end())  # one option's letter with another one's text
    return Claim(kind="choice", key=key, length=lead.end())


def _is_choice_letter(lead: re.Match[str], rest: str, options: Options, announced: bool) -> bool:
    """Whether a lone letter is meant as one, and is not an article, a pronoun or a variable."""
    letter = lead["letter"]
    bracketed = bool(lead["open"].strip()) and bool(lead["close"].strip())
    if rest.lstrip().startswith("?") and rest.strip(" ?\"')") and not rest.lstrip(" ?").lower().startswith("yes"):
        return False  # `A? No, ...`
    if bracketed:
        return True
    known = letter.upper() in options.keys
    if lead["close"].strip() in (")", "]") and known:
        return True
    ends = _ENDS.match(rest) is not None
    if not known:
        return ends and letter.isupper() and letter != "I"
    if letter.islower():
        return _lower_case_counts(letter, rest)
    connected = (_CONNECTED if announced else _STRICTLY_CONNECTED).match(rest) is not None
    if letter == "I" and _NOT_AFTER_I.match(rest):
        connected = False
    if letter in "AI" or not announced:
        connected = connected or _REMARK.match(rest.split("\n", 1)[0]) is not None
        own = options.leading(canonical_of_plain(rest))
        return (
            ends
            or connected
            or (own is not None and own.key == options.keys[letter])
            or (announced and bool(_OPENS.match(rest)))
        )
    return not rest.lstrip().startswith(("=", "<", "≈"))


def _lower_case_counts(letter: str, rest: str) -> bool:
    if letter in "aieoyu":
        return _LOWER_CASE_ENDS.match(rest) is not None
    return _ENDS.match(rest) is not None or _STRICTLY_CONNECTED.match(rest) is not None


def _lists_more(rest: str, options: Options, key: str) -> bool:
    """Whether another letter is listed after the first one: `A or B`, `A, C`, `A-C`."""
    between = _RANGE.match(rest)
    if between:
        return True
    listed = _LISTED.match(rest)
    if listed is None:
        return False
    letter, after = listed["letter"], listed["rest"]
    if options.keys.get(letter.upper()) in (None, key):
        return False
    joint = rest[: listed.start("letter")]
    if _SINGULAR.match(after):
        return False
    if letter in "AI" and _WORD_NEXT.match(after) and not _CONNECTED.match(after):
        return False  # the article, the pronoun
    if letter.islower():
        return _AFTER_COMMA.match(after) is not None and letter not in "eoyui"
    return _AFTER_COMMA.match(after) is not None if joint.strip() in (",", ";") else True


def _lists_without_joint(rest: str, options: Options, key: str) -> bool:
    """Whether other letters follow with spaces only: `A C`; an option's own text may be a letter: `(A) C`."""
    spaced = _SPACED.match(rest)
    others = {options.keys.get(char) for char in re.findall(r"[A-Z]", rest)} - {key, None} if spaced else set()
    return bool(others) and options.exact(rest) != key and options.exact(rest.strip(" ().")) != key


def _read_negated(rest: str, options: Options, announced: bool, depth: int) -> Claim:
    """`not B`, `neither A nor B, but C`: what is rejected, and what is said after it."""
    rejected: set[str] = set()
    lead = _LEAD.match(rest)
    while lead and lead["letter"].upper() in options.keys and len(rejected) < len(options.keys):
        if lead["letter"].islower() and not lead["close"].strip():
            break
        rejected.add(options.keys[lead["letter"].upper()])
        rest = rest[lead.end() :]
        listed = _LISTED.match(rest)
        joint = _JOINT.match(rest) if listed else None
        if joint is None or _TURNS.match(rest[joint.end() :]):
            break
        rest = rest[joint.end() :]
        lead = _LEAD.match(rest)
    if not rejected:
        mention = options.leading(canonical_of_plain(rest))
        if mention is None:
            return NOTHING
        rejected.add(mention.key)
        rest = canonical_of_plain(rest)[mention.end :]
    return _read_rest_after_rejection(rest, options, frozenset(rejected), announced, depth)


def _read_rest_after_rejection(
    rest: str, options: Options, rejected: frozenset[str], announced: bool, depth: int
) -> Claim:
    after = _REJECTED_AFTER.match(rest)
    if after:
        rest = rest[after.end() :]
    but = _BUT.match(rest)
    following = NOTHING
    if but and (but.end() or after) and depth < 3:
        announced = announced and re.search(r"\w", but[0]) is not None
        following = read_claim(rest[but.end() :], options, announced=announced, depth=depth + 1)
    if following.kind == "choice" and following.key not in rejected:
        return Claim(kind="choice", key=following.key, rejected=rejected)
    if following.kind == "several":
        return Claim(kind="several", rejected=rejected)
    return Claim(kind="rejected", rejected=rejected | following.rejected)


def _read_inside(sentence: str, options: Options) -> Claim | None:
    """The claim is prose that names one option by `(C)`, `option C` or its text."""
    if _STILL_THINKING.search(sentence):
        return None
    named = {
        options.keys[m["letter"]]
        for m in _NAMED.finditer(sentence)
        if m["letter"] in options.keys and not _REJECTED_AFTER.match(sentence[m.end() :])
    }
    if len(named) == 1 and not _NEGATION.search(sentence):
        return Claim(kind="choice", key=next(iter(named)), length=len(sentence))
    if named:
        return None
    mentions = options.mentions(canonical_of_plain(sentence))
    keys = {m.key for m in mentions if not m.rejected}
    if len(keys) == 1:
        return Claim(kind="choice", key=next(iter(keys)), length=len(sentence))
    return None
