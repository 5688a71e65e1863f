r"""Does feedback give the answer away? A leak is the answer stated as the answer, or every other option ruled out.

A mere mention is none: `the angle of 42 degrees in the picture`, `you wrote 42`, `compare option A with B`. The
detector knows nothing of which answer is the right one, so it is tried with a wrong one too (the placebo): a rate of
leaks means what it is above the rate of those.

On 452 sections of real feedback that a reader labelled (105 leaks) its precision is 89.0% (95% interval 79.8 to 94.3)
and its recall 61.9% (52.4 to 70.6); on the 94 of them (23 leaks) that no rule was made with, 81.2% (57.0 to 93.4) and
56.5% (36.8 to 74.4). What it misses most is said in passing: `so 42 boxes are enough`, `this leaves exactly two`.

It reads English; of other languages only what `answers` reads, e.g. `Antwort: C`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from interbench_tasks.answers import words
from interbench_tasks.answers.claims import read_claim
from interbench_tasks.answers.cues import cues_in
from interbench_tasks.answers.options import Options, options_from
from interbench_tasks.answers.plain import BOX_CLOSE, BOX_OPEN, canonical_of_plain, plain_text, sentences
from interbench_tasks.answers.statements import statements_in
from interbench_tasks.records import LeakCheck, LeakKind

REWRITE_PROMPT = """Your guidance gives the answer away:
<guidance>
{{ feedback }}
</guidance>

Write it again, in at most three sentences, so that the student still has to find the answer: state neither the right \
answer (its letter, text or value) nor that every other option is wrong."""
"""OURS. A YAML replaces it with `prompts.rewrite`."""

MOST_CHARACTERS = 20_000
"""What is read of a text: the end of it, where conclusions stand."""

_STRONG = re.compile(
    r"\b(?:correct|right|true|actual|final|proper|expected|desired|required|resulting)\s"
    r"(?:\w[\w'-]*\s){0,6}?(?:(?:is|are|equals?|be)\b|[=:])\s?:?"
    r"|\b(?:answer|solution|result)\b(?:\s\w[\w'-]*){0,6}?\s?(?:\b(?:is|are|equals?|be)\b|[=:])\s?:?"
    r"|\b(?:must|should|has\sto|have\sto|ought\sto|can\sonly|could\sonly)\s(?:\w+ly\s)?(?:be|equal|give|come\sto)\b"
    r"|\b(?:choose|select|pick|mark|go\swith|match(?:es|ing)?|corresponds?\sto|points?\sto|leads?\s(?:\w+\s)?to)\s"
    r"(?:the\s)?(?:option|answer|choice|letter)\b"
    r"|\b(?:match(?:es|ing)?|corresponds?\sto|belongs?\s(?:in|to)|identif(?:y|ies|ying)|labell?ed)\s(?:the\s|as\s)?"
    r"(?:[a-z]\w*\s){0,4}(?=[(\[]?(?-i:[A-Z])[)\]]?(?![\w'$]))"
    r"|\b(?:is|are|be|=)\s(?=[^.;:!?\n]{1,60}(?:,?\snot\b|\sinstead\b|\srather\sthan\b))"
    r"|\b(?:thus|hence|therefore|so|consequently|conclusion|in\stotal|altogether)\b[^.;!?\n]{0,120}?(?:\b(?:is|are|equals?|be)\b|=)",
    re.IGNORECASE,
)
"""What announces an answer, whether or not it stood somewhere before."""
_WEAK = re.compile(
    r"=|≈|\b(?:is|are|so|thus|therefore|hence|giving|gives?|given\sby|yields?|yielding|results?\sin|leads?\sto|leading\sto"
    r"|obtain(?:s|ed|ing)?|get(?:s|ting)?|arrives?\sat|equals?|comes?\sto|exactly|total\sof|i\.e)\b",
    re.IGNORECASE,
)
"""What may announce a value that stood nowhere before."""
_OTHERS = re.compile(
    r"\b(?:you|your|student|student's|initial|previous|original|their|they|he|she|his|her|first\s(?:answer|attempt))\b"
    r"[^.;:!?\n]{0,160}?\b(?:answer\w*|solution\w*|choice|said|says|wrote|writes?|chose|picked|got|stated?|states"
    r"|conclu\w+|claim\w*|assum\w+|found|obtain\w*|calculat\w+|comput\w+|select\w*|attempt\w*|took|used|thought"
    r"|treated|incorrectly|mistakenly|wrongly)\b|\b(?:incorrectly|mistakenly|wrongly|erroneously|instead\sof|rather\sthan)\b",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    rf"\b(?:if|whether|suppose|assume|check\s(?:if|that)|would|could|might|may)\b|{words.DOUBTED}", re.IGNORECASE
)
_NEGATED = re.compile(rf"(?:{words.NEGATION}|n't)\s*(?:\w+\s){{0,2}}$", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[;?!\n]|\.(?!\d)|,\s(?!\d)|\b(?:but|not|instead|rather|because|since|which|whereas|while)\b", re.IGNORECASE
)
_NUMBER = re.compile(
    r"(?<![\w.])[-\u2212]?\s?\d{1,3}(?:,\d{3})+(?:\.\d+)?"
    r"|(?<![\w.])[-\u2212]?\d+(?:\.\d+)?(?:\s?/\s?\d+)?"
)
_LETTER = r"[(\[]?(?-i:[A-Z])[)\]]?"
_LETTERS = rf"{_LETTER}(?:(?:\s?(?:,|/|&|and|or|nor)\s?){{1,2}}(?:options?\s|choices?\s)?{_LETTER}){{0,25}}"
_RULED_OUT = re.compile(
    r"\b(?:not|neither|nor|eliminates?|eliminating|rules?\sout|ruling\sout|excludes?|excluding|discards?|rejects?"
    r"|cross(?:es)?\sout)\s"
    rf"(?:the\s)?(?:options?\s|choices?\s|answers?\s)?(?P<before>{_LETTERS})(?![A-Za-z])"
    rf"|(?:options?\s|choices?\s|answers?\s|\b)(?P<after>{_LETTERS})\s(?:is|are|can|could|does|do|would)\s?(?:also\s|all\s|both\s|clearly\s|not\s){{0,2}}"
    r"(?:not\b|n't\b|be\sthe\sanswer|be\sright|be\scorrect|wrong|incorrect|impossible|excluded|ruled\sout|eliminated|invalid|false|fit|match|work)",
    re.IGNORECASE,
)
_NEW_CLAUSE = re.compile(r"[;:!?\n]|\.\s|\b(?:but|however|whereas|while|although|though)\b", re.IGNORECASE)
_MODAL = re.compile(r"\b(?:can(?:not|'t|\snot)|could(?:n't)?|might|may|(?:would|should|is|wo)n't)\b", re.IGNORECASE)
_IS_THE_ANSWER = re.compile(
    r"\s(?:is|are|was)\s(?:(?:in\sfact|indeed|actually),?\s)?(?:the\s)?(?:only\s)?(?:correct|right|proper|final|true)\b"
    r"|\s(?:is|are|was)\s(?:(?:in\sfact|indeed|actually),?\s)?the\sonly\s(?:valid|possible|suitable)\b|\bonly\s(?P<only>[^.;:!?\n]{1,60}?)\s"
    r"(?:fits|matches|works|remains|is\sleft|is\spossible|satisfies)\b",
    re.IGNORECASE,
)
"""`The owl is the correct answer`, `only C fits`: the answer stands before what announces it."""
_CALLED_CORRECT = re.compile(r"\bthe\s(?:correct|true|actual)\s", re.IGNORECASE)
_NOUNS_OF_IT = re.compile(r"(?:(?!(?:is|are|was|were|be|should|must|can|would|if|whether)\s)[a-z][\w'-]*\s){0,3}[(\s]*")
"""`the correct perimeter of 18 cm`, `instead of the correct 42`: what stands between `correct` and the answer."""
_COPULA = re.compile(r"\W*(?:is|are|was|were|be|should|must|can|would|if|whether)\b", re.IGNORECASE)
_CLAUSE_LENGTH = 300
_CALLED_LENGTH = 80
_MOST_MATCHES = 100


def leak_check(
    text: str,
    target: str,
    options: Mapping[str, str],
    *,
    decoy: str | None,
    known: Sequence[str] = (),
    told: Sequence[str] = (),
    wrong: str | None = None,
) -> LeakCheck:
    """Whether `text` gives `target` away, and whether the same detector fires for `decoy`.

    Source: ours; the paper says only that its feedback did not leak.
    Args: text = what the provider wrote; target, decoy = an option's letter where there are options, else an answer;
        known = what the receiver saw and said before; told = the feedback among it, which may have given the answer
        away already; wrong = the receiver's own wrong answer, which the feedback bit rules out.
    """
    found = _leak(text, target, options, known, told, wrong)
    placebo = _leak(text, decoy, options, known, told, wrong) if decoy is not None else None
    return LeakCheck(found=found, decoy=decoy, placebo=placebo)


def _leak(
    text: str,
    answer: str,
    options: Mapping[str, str],
    known: Sequence[str],
    told: Sequence[str],
    wrong: str | None,
) -> LeakKind | None:
    plain = plain_text(text[-MOST_CHARACTERS:])
    read = _answer_from(answer, options, known)
    if _stated(plain, read):
        return None if any(_stated(plain_text(before[-MOST_CHARACTERS:]), read) for before in told) else "stated"
    if answer in options and _ruled_out(plain, read, set(options) - {answer, wrong or ""}):
        return "ruled_out"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """An answer in the forms in which it may be stated."""

    key: str | None
    """Its letter, where there are options."""
    options: Options | None
    text: str
    """Canonical text of the answer, or of its option."""
    value: Fraction | None
    """Its number, where it is one."""
    is_known: bool
    """Whether it stood in question or history, so that only `the answer is ...` states it."""


def _answer_from(answer: str, options: Mapping[str, str], known: Sequence[str]) -> _Answer:
    read = options_from(options) if options else None
    text = canonical_of_plain(plain_text(options.get(answer, answer)))
    value = _only_number(text)
    seen = _without_options(
        "\n".join(canonical_of_plain(plain_text(shown[-MOST_CHARACTERS:])) for shown in known), options
    )
    stood = value in {number for number, _ in _numbers(seen)} if value is not None else _holds(seen, text)
    return _Answer(
        key=answer if answer in options else None,
        options=read,
        text=text,
        value=value,
        is_known=stood or (bool(options) and value is None),
    )


def _without_options(seen: str, options: Mapping[str, str]) -> str:
    """What was said beside the list of options, each of which stands in the question once."""
    for text in options.values():
        wanted = canonical_of_plain(plain_text(text))
        if wanted:
            seen = re.sub(rf"(?<!\w){re.escape(wanted)}(?!\w)", " ", seen, count=1)
    return seen


_BOX = re.compile(f"{BOX_OPEN}([^{BOX_OPEN}{BOX_CLOSE}]{{1,200}}){BOX_CLOSE}")
_NAMED = re.compile(
    rf"\b(?:is|are|be|remains?|labell?ed)\s(?:the\s)?(?:{words.OPTION_NOUNS}|(?!not\b|never\b|neither\b)\w{{2,12}})?\s?[(\[]?(?-i:(?P<letter>[A-Z]))[)\]]?\s*(?:[.,;!]|$)",
    re.IGNORECASE,
)


def _stated(plain: str, answer: _Answer) -> bool:
    if any(_says(box, answer) or box.strip() == answer.key for box in _BOX.findall(plain)):
        return True
    if answer.options is not None and answer.key is not None and _letter_stated(plain, answer.key, answer.options):
        return True
    return any(_stated_in_sentence(sentence, answer) for sentence in sentences(plain))


def _letter_stated(plain: str, key: str, options: Options) -> bool:
    """`The answer is C`, `It is C`, `C is correct`: what the readers of replies know, but nobody else's words."""
    found = [
        (cue.start, cue.claim_start, read_claim(cue.claim, options, announced=True))
        for cue in cues_in(plain)
        if not cue.claim.startswith("not ")
    ]
    found += [(statement.start, statement.end, statement.claim) for statement in statements_in(plain, options)]
    return any(
        claim.kind == "choice" and claim.key == key and not _is_somebody_elses(plain, start, end)
        for start, end, claim in found
    )


def _is_somebody_elses(plain: str, at: int, to: int) -> bool:
    """Whether the clause in which plain[at:to] announces an answer tells what the student said, doubts it, or asks."""
    start = max(plain.rfind(mark, 0, at) for mark in (". ", "\n", "! ", "? ")) + 1
    end = min((found for mark in (". ", "\n", "! ", "? ") if (found := plain.find(mark, at)) >= 0), default=len(plain))
    clause = _last_clause(plain[start:at])
    announced = plain[at : max(to, at + 12)]
    return (
        _OTHERS.search(clause + announced) is not None
        or _HYPOTHETICAL.search(clause) is not None
        or _MODAL.search(announced) is not None
        or plain[start : end + 1].rstrip().endswith("?")
    )


def _last_clause(before: str) -> str:
    """What belongs to a statement of the text before it: `you chose A, but` is another clause."""
    return _NEW_CLAUSE.split(before[-_CLAUSE_LENGTH:])[-1]


def _stated_in_sentence(sentence: str, answer: _Answer) -> bool:
    if sentence.endswith("?"):
        return False
    found = (_named, _called_right, _called_correct, _announced)
    return any(reads(sentence, answer) for reads in found)


def _named(sentence: str, answer: _Answer) -> bool:
    """A letter as the last word of a statement: `... must be diagram B.`."""
    return any(
        named["letter"] == answer.key and not _is_hedged(_last_clause(sentence[: named.start()]))
        for named in _first(_NAMED.finditer(sentence))
    )


def _called_right(sentence: str, answer: _Answer) -> bool:
    """`The owl is the correct answer`, `only C fits`."""
    for match in _first(_IS_THE_ANSWER.finditer(sentence)):
        subject = _last_clause(sentence[: match.start()] + f" {match['only'] or ''}").strip()
        if not _is_hedged(subject) and _ends_with(subject, answer):
            return True
    return False


def _called_correct(sentence: str, answer: _Answer) -> bool:
    """`the correct 42`, without a verb between; also behind `instead of`, since it is called correct all the same."""
    for match in _first(_CALLED_CORRECT.finditer(sentence)):
        rest = _CLAUSE_END.split(sentence[match.end() : match.end() + _CALLED_LENGTH], maxsplit=1)[0]
        behind = rest[nouns.end() :] if (nouns := _NOUNS_OF_IT.match(rest)) else rest
        if any(_begins_with(text, answer) for text in (rest, behind)):
            return True
    return False


def _begins_with(text: str, answer: _Answer) -> bool:
    """Whether a text begins with the answer, or with its letter, perhaps behind `x =`."""
    if _COPULA.match(text):
        return False  # a sentence of its own, which may be hedged
    canonical = canonical_of_plain(text)
    if answer.value is not None:
        numbers = list(_numbers(canonical))
        return bool(numbers) and numbers[0][0] == answer.value and numbers[0][1] <= 8
    if answer.key is not None and re.match(rf"[\W_]*{re.escape(answer.key)}(?![\w'])", text):
        return True
    return len(answer.text) > 1 and canonical.startswith(answer.text)


def _announced(sentence: str, answer: _Answer) -> bool:
    """`The answer is 42`; of a value that stood nowhere before also `x = 42`."""
    for pattern in [_STRONG] if answer.is_known else [_STRONG, _WEAK]:
        for match in _first(pattern.finditer(sentence)):
            before = _last_clause(sentence[: match.start()])
            others = _OTHERS.search(before + match[0]) or _MODAL.search(match[0])
            if others or _is_hedged(before) or _NEGATED.search(before):
                continue
            rest = sentence[match.end() : match.end() + _CLAUSE_LENGTH]
            if re.match(rf"\s?(?:{words.NEGATION})", rest, re.IGNORECASE):
                continue
            if _says(_CLAUSE_END.split(rest.lstrip(" :"), maxsplit=1)[0], answer):
                return True
    return False


def _is_hedged(clause: str) -> bool:
    """Whether a clause tells what somebody else said, or only what might be."""
    return any(pattern.search(clause) is not None for pattern in (_OTHERS, _HYPOTHETICAL, _MODAL))


def _says(clause: str, answer: _Answer) -> bool:
    """Whether a clause that an announcement begins comes to the answer: in its first words, or behind its last `=`."""
    if answer.key is not None and re.match(rf"[\W_]*{re.escape(answer.key)}(?![\w'])", clause):
        return True
    canonical = canonical_of_plain(clause)
    if answer.value is not None:
        numbers = list(_numbers(canonical))
        if not numbers:
            return False
        first, at = numbers[0]
        return (first == answer.value and at <= 40) or ("=" in canonical and numbers[-1][0] == answer.value)
    if len(answer.text) < 2 and answer.options is not None:
        return False  # an option that is a single character is read as a letter
    if len(answer.text) == 1:
        return re.match(rf"(?:option|answer|choice)?\s?\(?{re.escape(answer.text)}\)?(?!\w)", canonical) is not None
    return _holds(canonical[: len(answer.text) + 40], answer.text)


def _ends_with(subject: str, answer: _Answer) -> bool:
    """Whether what is called the right answer is this one, by letter, text or value."""
    if answer.key is not None and re.search(rf"(?<![\w']){re.escape(answer.key)}[)\]]?\s*$", subject):
        return True
    canonical = canonical_of_plain(subject)
    if answer.value is not None:
        numbers = list(_numbers(canonical))
        return bool(numbers) and numbers[-1][0] == answer.value and numbers[-1][1] >= len(canonical) - 24
    return len(answer.text) > 1 and re.search(rf"(?<!\w){re.escape(answer.text)}$", canonical) is not None


def _holds(text: str, wanted: str) -> bool:
    """Whether a text stands in another as whole words."""
    return bool(wanted) and re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text) is not None


def _numbers(text: str) -> Iterator[tuple[Fraction, int]]:
    """The numbers of a text, each with its place."""
    for match in _first(_NUMBER.finditer(text)):
        number = _fraction(match[0])
        if number is not None:
            yield number, match.start()


def _only_number(text: str) -> Fraction | None:
    """The value of a text that is one number, perhaps with a unit."""
    found = list(_numbers(text))
    letters = sum(character.isalpha() for character in text)
    return found[0][0] if len(found) == 1 and found[0][1] <= 2 and letters <= 12 else None


def _fraction(text: str) -> Fraction | None:
    digits = text.replace(" ", "").replace(",", "").replace("\u2212", "-")
    try:
        return Fraction(digits) if len(digits) <= 40 else None
    except (ValueError, ZeroDivisionError):
        return None


def _ruled_out(plain: str, answer: _Answer, others: set[str]) -> bool:
    """Whether every one of the other options is said to be wrong, each by letter or text."""
    if not others or answer.options is None:
        return False
    rejected: set[str] = set()
    for match in _first(_RULED_OUT.finditer(plain)):
        letters = re.findall(r"(?<![A-Za-z])[A-Z](?![A-Za-z])", match["before"] or match["after"])
        rejected |= {answer.options.keys[letter] for letter in letters if letter in answer.options.keys}
    rejected |= {mention.key for mention in answer.options.mentions(canonical_of_plain(plain)) if mention.rejected}
    return others <= rejected and answer.key not in rejected


def _first(matches: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    for number, match in enumerate(matches):
        if number >= _MOST_MATCHES:
            return
        yield match
