"""Reads choices from how lines look: a lone letter, `C. A red kite`, an opening, a table."""

from __future__ import annotations

import re

from interbench_tasks.answers.claims import Claim, Reading, read_claim
from interbench_tasks.answers.options import Options
from interbench_tasks.answers.plain import canonical_of_plain

_BARE = re.compile(
    r"(?P<item>(?:\d{1,2}[.)]\s|‣)?)(?:[-=]>)?[\s(\[\"'⟦<]*(?:(?:option|choice|answer|letter)\s)?[(\[\"'⟦<]?(?P<letter>[A-Za-z])"
    r"[)\]\"'⟧>]*\s?(?P<stop>[.,:;!]?)[\s)\]\"'⟧>]*",
    re.IGNORECASE,
)
_OPTION_LINE = re.compile(
    r"[\s(\[\"'⟦|]*(?:(?:option|choice)\s)?[(\[]?(?-i:([A-Z]))(?:\s?[)\].:|]|\s-)[)\]\s]*(.*)", re.IGNORECASE
)
_INLINE_OPTION = re.compile(r"(?<![A-Za-z0-9])[(]?([A-Z])[).:](?![A-Za-z0-9])(?=\s*\w)")
_OPENING = re.compile(
    r"[\s\"'(]*(?:(?:definitely|probably|maybe|perhaps|clearly|certainly|likely|most likely"
    r"|i (?:think|believe|guess|say)|i'd (?:say|guess|go with)|my (?:guess|answer) is|it is|it's|yes|sure|ok(?:ay)?)"
    r"[\s,:]*){0,3}",
    re.IGNORECASE,
)
_ANSWER_HEADING = re.compile(
    r"(?:(?:final|correct|my|the)\s){0,2}(?:answer|choice|option|antwort|réponse|respuesta|答案|答え|정답)",
    re.IGNORECASE,
)
_TABLE_RULE = re.compile(r"[|:\-\s]+")
_MAX_BARE = 60


def without_echo(plain: str, options: Options) -> str:
    """The text without repetitions of the question's whole option list, one option a line."""
    wanted = sorted(options.keys)
    lines = plain.split("\n")
    if len(wanted) < 2 or len(lines) < len(wanted):
        return plain
    heads = [head[1] if (head := _OPTION_LINE.match(line)) else None for line in lines]
    kept, at = [], 0
    while at < len(lines):
        if heads[at] == wanted[0] and heads[at : at + len(wanted)] == wanted and _repeats(lines[at:], wanted, options):
            at += len(wanted)
            continue
        kept.append(lines[at])
        at += 1
    return "\n".join(kept)


def _repeats(lines: list[str], letters: list[str], options: Options) -> bool:
    """Whether each line is a letter with that option's own text, and nothing more."""
    heads = [_OPTION_LINE.match(line) for line in lines[: len(letters)]]
    return all(
        head is not None and canonical_of_plain(head[2]) == options.texts.get(options.keys[letter], "")
        for head, letter in zip(heads, letters, strict=True)
    )


def read_bare_lines(plain: str, options: Options) -> Reading | None:
    """A line with nothing but one letter; of several letters the one in the last line, unless they form a list."""
    lines = _lines(plain)
    found: list[tuple[int, str]] = []
    for number, (_, line) in enumerate(lines):
        bare = _BARE.fullmatch(line.strip()) if len(line) < _MAX_BARE else None
        known = bare is not None and bare["letter"].upper() in options.keys
        if bare and known and (bare["letter"].isupper() or number in (0, len(lines) - 1)):
            found.append((number, bare["letter"].upper()))
    if not found:
        return None
    number, letter = found[-1]
    if _belongs_to_a_list(plain, lines, number, letter):
        return None
    differing = [other for other, other_letter in found[:-1] if other_letter != letter]
    if differing and (number != len(lines) - 1 or number - differing[-1] == 1):
        return Reading(key=None, method="several")
    start, line = lines[number]
    return Reading(key=options.keys[letter], method="letter", end=start + len(line))


def _belongs_to_a_list(plain: str, lines: list[tuple[int, str]], number: int, letter: str) -> bool:
    """Whether a bare letter is an item among others, or goes on with options that are listed above it."""
    start, line = lines[number]
    bare = _BARE.fullmatch(line.strip())
    before_start, before = lines[number - 1] if number else (0, "")
    if bare and bare["item"] and number and not before.rstrip().endswith(":"):
        return True
    heads = {head[1] for _, above in lines[:number] if (head := _OPTION_LINE.match(above))}
    goes_on = chr(ord(letter) - 1) in heads
    same_block = number > 0 and "\n\n" not in plain[before_start + len(before) : start]
    return goes_on and (same_block or bool(bare and bare["stop"]))


def read_option_lines(plain: str, options: Options) -> Reading | None:
    """The first line begins as options are written (`C. A red kite`), or the last one repeats an option.

    No line begins with another letter.
    """
    lines = _lines(plain)
    heads = [(number, head) for number, (_, line) in enumerate(lines) if (head := _OPTION_LINE.match(line))]
    letters = {head[1] for _, head in heads if head[1] in options.keys}
    for number, head in heads:
        start, line = lines[number]
        if number not in (0, len(lines) - 1) or letters != {head[1]}:
            continue
        if len(_inline_letters(line, options) | {head[1]}) > 1:
            return None
        claim = read_claim(line, options)
        if head[1] == "A" and line.lstrip().startswith("A:"):
            claim = _after_question_and_answer_mark(head[2], claim, options)
        elif number > 0 and canonical_of_plain(head[2]) != options.texts.get(options.keys[head[1]]):
            continue  # a list of options that was begun
        if claim.kind == "choice":
            return Reading(key=claim.key, method="letter", end=start + claim.length)
        if claim.kind == "several":
            return Reading(key=None, method="several")
    return None


def _after_question_and_answer_mark(rest: str, claim: Claim, options: Options) -> Claim:
    """`A: C` is an answer C as in `Q: ... A: ...`, and not option A, unless C is what option A says."""
    marked = read_claim(rest, options, announced=False)
    own_text = options.texts.get(options.keys["A"]) == canonical_of_plain(rest)
    return marked if marked.kind == "choice" and not own_text else claim


def read_opening(plain: str, options: Options) -> Reading | None:
    """The reply opens with its choice: `C, because ...`, `I think C`, `The Great Wall.`."""
    lines = _lines(plain)
    if not lines:
        return None
    start, line = lines[0]
    heads = {head[1] for _, each in lines if (head := _OPTION_LINE.match(each)) and head[1] in options.keys}
    if len(heads) > 1 or len(_inline_letters(line, options)) > 1:
        return None
    claim = read_claim(line, options, announced=False)
    opening = _OPENING.match(line)
    if claim.kind == "nothing" and opening:
        start += opening.end()
        claim = read_claim(line[opening.end() :], options, announced=False)
    if claim.kind in ("several", "outside"):
        return Reading(key=None, method=claim.kind)
    return Reading(key=claim.key, method="letter", end=start + claim.length) if claim.kind == "choice" else None


def read_tables(plain: str, options: Options) -> Reading | None:
    """The last row of a table that has a column for the answer."""
    if "|" not in plain:
        return None
    column: int | None = None
    claim: Claim | None = None
    for line in plain.split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        headings = [number for number, cell in enumerate(cells) if _ANSWER_HEADING.fullmatch(cell)]
        if len(cells) > 1 and headings:
            column = headings[0]
        elif column is not None and len(cells) > column and "|" in line and not _TABLE_RULE.fullmatch(line.strip()):
            claim = read_claim(cells[column], options)
    if claim is None or claim.kind == "nothing":
        return None
    return Reading(key=claim.key, method="table" if claim.key else claim.kind, end=len(plain))


def _lines(plain: str) -> list[tuple[int, str]]:
    """Where each line that is not blank starts, and the line."""
    found, at = [], 0
    for line in plain.split("\n"):
        if line.strip():
            found.append((at, line))
        at += len(line) + 1
    return found


def _inline_letters(line: str, options: Options) -> set[str]:
    return {mark[1] for mark in _INLINE_OPTION.finditer(line) if mark[1] in options.keys}
