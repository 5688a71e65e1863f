"""Reads which option a reply chooses. Readers are tried in order; none of them ever guesses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from interbench_tasks.answers import words
from interbench_tasks.answers.claims import Claim, Reading, read_claim
from interbench_tasks.answers.cues import Cue, cues_in
from interbench_tasks.answers.lines import (
    read_bare_lines,
    read_opening,
    read_option_lines,
    read_tables,
    without_echo,
)
from interbench_tasks.answers.mentions import read_option_mentions, read_option_texts
from interbench_tasks.answers.options import Options, options_from
from interbench_tasks.answers.plain import plain_text
from interbench_tasks.answers.statements import statements_in
from interbench_tasks.reasoning import without_reasoning
from interbench_tasks.records import Extraction

_RETRACTED = re.compile(words.RETRACTED, re.IGNORECASE)
_TAKEN_BACK = re.compile(words.TAKEN_BACK, re.IGNORECASE)
_AGAINST = re.compile(words.AGAINST, re.IGNORECASE)
_NEXT_COPULA = re.compile(rf"{words.COPULA}|:", re.IGNORECASE)
_JOINED_BOXES = re.compile(r"[\s,;&/]*(?:and|or|und|oder|et|ou|和|或)?[\s,]*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。\n]|$")
_MOST_RETRACTIONS = 20
_NEAR = 200


def extract_choice(text: str, choices: Mapping[str, str]) -> Extraction:
    """The option that a careful reader takes as the writer's final choice; None where there is not exactly one.

    Args: choices = letter -> option text, e.g. {"A": "The Colosseum", "B": "The Great Wall"}; may be empty.
    Returns: the letter as written in `choices`, and the reader that found it (`declared`, `boxed`, `table`, `stated`,
        `letter`, `mentioned`, `option_text`); without an answer the reason (`none`, `several`, `outside`, `declined`,
        `rejected`, `unfinished_reasoning`).
    Raises: DataError where a label is not one Latin letter.

    >>> extract_choice("A looks right, but the answer is B.", {"A": "red", "B": "blue"})
    Extraction(answer='B', method='declared')
    >>> extract_choice("I can't see the picture.", {"A": "red", "B": "blue"})
    Extraction(answer=None, method='none')
    """
    options = options_from(choices)
    visible = without_reasoning(text)
    if visible is None:
        return Extraction(answer=None, method="unfinished_reasoning")
    plain = without_echo(plain_text(visible), options)
    reading = _first_reading(plain, options, READERS)
    if reading is None:
        return Extraction(answer=None, method="none")
    final = _unless_taken_back(plain, reading, options)
    return Extraction(answer=final.key, method=final.method)


def read_declarations(plain: str, options: Options) -> Reading | None:
    r"""The last explicit declaration: `Answer: C`, `the correct option is C`, `\boxed{C}`, 答案是C."""
    cues = cues_in(plain)
    rejected: frozenset[str] = frozenset()
    for position in range(len(cues) - 1, -1, -1):
        cue = cues[position]
        claim = _claim_of(cue, options)
        if claim.kind in ("several", "outside", "declined"):
            return Reading(key=None, method=claim.kind)
        if claim.kind == "choice" and _joins_box_before(plain, cues, position, claim, options):
            return Reading(key=None, method="several")
        if claim.kind == "choice" and claim.key not in rejected:
            method = "boxed" if cue.boxed else "declared"
            return Reading(key=claim.key, method=method, end=cue.claim_start + claim.length)
        rejected |= claim.rejected
    return _read_beside(rejected, plain, options) if rejected else None


def _read_beside(rejected: frozenset[str], plain: str, options: Options) -> Reading | None:
    """What the other readers find where declarations only said what is wrong: `The answer is not B. It is D.`."""
    reading = _first_reading(plain, options, READERS[1:])
    if reading is None or reading.key in rejected:
        return Reading(key=None, method="rejected")
    return reading


def _claim_of(cue: Cue, options: Options) -> Claim:
    """What a cue announces; where its words go on before they come to the point, what follows the next `is` or `:`."""
    claim = read_claim(cue.claim, options)
    at = 0
    for _ in range(4):
        if claim.kind != "nothing" or cue.boxed:
            break
        again = _NEXT_COPULA.search(cue.claim, at)
        if again is None or _AGAINST.search(cue.claim[at : again.start()]):
            break
        at = again.end()
        claim = read_claim(cue.claim[at:], options, announced=False)
    return claim


def _joins_box_before(plain: str, cues: list[Cue], position: int, claim: Claim, options: Options) -> bool:
    r"""Whether a box stands in one list with the box before it: `\boxed{A} or \boxed{C}`."""
    if position == 0 or not (cues[position].boxed and cues[position - 1].boxed):
        return False
    before = cues[position - 1]
    between = plain[before.claim_start + len(before.claim) + 1 : cues[position].start]
    other = read_claim(before.claim, options)
    return other.kind == "choice" and other.key != claim.key and _JOINED_BOXES.fullmatch(between) is not None


def read_statements(plain: str, options: Options) -> Reading | None:
    """A choice stated without a cue word: `It is D.`, `So C.`, `B is correct`; the last one.

    Two options that are both called right, with nothing between that turns from one to the other, are no choice.
    """
    chosen: Reading | None = None
    last_end = 0
    for statement in statements_in(plain, options):
        if statement.claim.kind == "several":
            chosen = Reading(key=None, method="several", end=statement.end)
        else:
            replaces = chosen is None or chosen.key == statement.claim.key or statement.concluding
            between = plain[last_end : max(last_end, statement.start)]
            if replaces or _AGAINST.search(between) or _RETRACTED.search(between):
                chosen = Reading(key=statement.claim.key, method="stated", end=statement.end)
            else:
                chosen = Reading(key=None, method="several", end=statement.end)
        last_end = statement.end
    return chosen


READERS: tuple[Callable[[str, Options], Reading | None], ...] = (
    read_declarations,
    read_tables,
    read_statements,
    read_bare_lines,
    read_option_lines,
    read_opening,
    read_option_mentions,
    read_option_texts,
)
"""Tried in this order; the first that has something to say decides."""


def _first_reading(
    plain: str, options: Options, readers: tuple[Callable[[str, Options], Reading | None], ...]
) -> Reading | None:
    return next((reading for reader in readers if (reading := reader(plain, options)) is not None), None)


def _unless_taken_back(plain: str, reading: Reading, options: Options) -> Reading:
    """The reading, unless the writer takes it back afterwards (`Wait, no: ...`); then what is said after that."""
    turn = _RETRACTED.search(plain, reading.end) if reading.key is not None else None
    if turn is None:
        return reading
    later = _first_reading(plain[turn.end() :].lstrip(" ,.:;-!"), options, (read_statements, read_bare_lines))
    if later is not None:
        return later
    tail = plain[turn.start() :]
    for again in reversed(list(_RETRACTED.finditer(tail))[-_MOST_RETRACTIONS:]):
        later = read_opening(tail[again.end() : again.end() + 400].lstrip(" ,.:;-!"), options)
        if later is not None:
            return later
    sentence_end = _SENTENCE_END.search(plain, reading.end)
    at_once = sentence_end is not None and not re.search(r"\w", plain[sentence_end.end() : turn.start()])
    if at_once and _TAKEN_BACK.search(tail[:_NEAR]):
        return Reading(key=None, method="rejected")
    return reading
