"""Whether two free-form answers are the same by value: cheap comparisons first, and what they leave to math-verify."""
# ruff: noqa: RUF001  (signs that look like ASCII are what is read here)

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from interbench_tasks.answers.notation import (
    Named,
    balanced,
    closing,
    is_prose,
    listed,
    named_from,
    names_differ,
    notation,
    split_top,
)
from interbench_tasks.answers.numbers import Quantity
from interbench_tasks.answers.quantities import quantity_from, same_quantity, without_unit
from interbench_tasks.expressions import Outcome

Pair = tuple[str, str]
Comparison = Generator[Pair, Outcome, "Same"]
"""Yields pairs of LaTeX expressions that only math-verify can compare, is sent each outcome, and returns the result."""

MAX_LENGTH = 400
"""Longer answers are compared as texts only."""
_SPACES = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_TOKENS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|\.\d+|\\?[a-z]+|[^\s.,;:\"'{}]")
_ARTICLES = frozenset(("the", "a", "an"))
_RELATION = re.compile(r"[=<>≤≥≠]")
_INEQUALITY = re.compile(r"[<>≤≥]")
_FUNCTION = re.compile(
    r"(?<![\\A-Za-z])(arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln|exp|pi)(?![a-z])"
)
_GLUED_PI = re.compile(r"(?<=\d)pi(?![a-z])")
_ROOT = re.compile(r"√\s*(?:\(([^()]*)\)|(\w+))|(?<![\\a-z])sqrt\s*\(([^()]*)\)")
_COMPASS = re.compile(r"[NSns]\s?\d.*[EWew]")
_LETTER = re.compile(r"[A-Za-df-hj-z]")
_MATHS = (("∪", r"\cup "), ("∞", r"\infty "), ("≤", r"\leq "), ("≥", r"\geq "), ("≠", r"\neq "), ("×", r"\times "),
          ("÷", "/"), ("·", r"\cdot "), ("π", r"\pi "), ("θ", r"\theta "), ("⦃", r"\{"), ("⦄", r"\}"),
          ("°", r"^\circ "), ("%", r"\%"), ("infinity", r"\infty "))  # fmt: skip
_OPENING, _CLOSING = "([{⦃", ")]}⦄"
_SETS = {"{": "⦄", "⦃": "⦄"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """The result of a comparison."""

    equal: bool
    problem: Outcome | None = None
    """`timeout` or `failed` where math-verify could not decide; then `equal` is False."""


YES = Same(equal=True)
NO = Same(equal=False)


def same_value(left: str, right: str) -> Comparison:
    r"""Compare two answers by value; symmetric.

    Equal are: the same text but for case, spaces, articles and markup; the same number in another notation (units,
    currency signs, percent, fractions, words; exactly, so 1/3 is not 0.33); the value behind `x =` or a chain of
    equalities; both values of `\frac{10}{3} \approx 3.33`; lists and sets in any order; points and intervals part by
    part, with the same brackets; and what math-verify proves equal. Signs count; `x = 8` is not `y = 8`.
    """
    if max(len(left), len(right)) > MAX_LENGTH:
        return Same(equal=bool(left.strip()) and left.split() == right.split())
    return (yield from _same(notation(left), notation(right)))


def _same(left: str, right: str) -> Comparison:
    left, right = (side.rsplit("=>", 1)[-1].strip() for side in (left, right))  # `2x = 6 => x = 3`
    if not left or not right:
        return NO
    if _tight(left) == _tight(right):
        return YES
    ways = [_approximations(left), _approximations(right)]
    if max(map(len, ways)) > 1:
        return (yield from _any_same([(a, b) for a in ways[0] for b in ways[1]]))
    left, right = ways[0][0], ways[1][0]
    lists = [_list_of(left), _list_of(right)]
    if max(map(len, lists)) > 1:
        return (yield from _same_set(lists[0], lists[1]))
    left, right = lists[0][0], lists[1][0]
    names = named_from(left), named_from(right)
    if names[0].relation or names[1].relation:
        return (yield from _same_relation(left, right, names))
    if names_differ(names[0].name, names[1].name):
        return NO
    return (yield from _same_unnamed(names[0].value, names[1].value))


def _same_unnamed(left: str, right: str) -> Comparison:
    if (left, right) != (again := (notation(left), notation(right))):
        left, right = again
    if _tight(left) == _tight(right):
        return YES if left else NO
    numbers = quantity_from(left), quantity_from(right)
    if numbers[0] is not None and numbers[1] is not None:
        return Same(equal=same_quantity(numbers[0], numbers[1]))
    parts = _bracketed(left), _bracketed(right)
    if parts[0] is not None and parts[1] is not None:
        return (yield from _same_brackets(parts[0], parts[1]))
    if "∪" in left and "∪" in right:
        return (yield from _same_set(split_top(left, "∪"), split_top(right, "∪")))
    if any(is_prose(without_unit(side)[0]) or _COMPASS.fullmatch(side) for side in (left, right)):
        return Same(equal=_tokens(left) == _tokens(right))
    return (yield from _same_expression(left, right))


def _same_expression(left: str, right: str) -> Comparison:
    left, unit = without_unit(left)
    right, other_unit = without_unit(right)
    if None not in (unit, other_unit) and unit != other_unit:
        return NO
    if _bare_unit(left) or _bare_unit(right):
        return NO
    numbers = quantity_from(left), quantity_from(right)
    if any(number is not None for number in numbers) and any(_LETTER.fullmatch(side) for side in (left, right)):
        return NO  # a number and a variable
    if numbers[0] is not None and numbers[1] is not None:
        return Same(equal=same_quantity(numbers[0], numbers[1]))
    return (yield from _asked(left, right))


def _asked(left: str, right: str) -> Comparison:
    if not (balanced(left) and balanced(right)) or _tokens(left) == _tokens(right):
        return Same(equal=_tokens(left) == _tokens(right))
    outcome = yield latex_from(left), latex_from(right)
    if outcome in ("timeout", "failed"):
        return Same(equal=False, problem=outcome)
    return Same(equal=outcome == "equal")


def _bare_unit(value: str) -> bool:
    return not re.search(r"[0-9A-Za-zα-ω∞\\]", value)


def _same_relation(left: str, right: str, names: Sequence[Named]) -> Comparison:
    """Equations with each other, `y = x-5` with `x-y = 5`, inequalities with intervals; none with its last number."""
    if any(is_prose(side) for side in (left, right)):
        return Same(equal=_tokens(left) == _tokens(right))
    both = all(_RELATION.search(side) for side in (left, right))
    interval = next((name.value for name in names if not name.relation), "")
    if both or (_bracketed(interval) is not None and any(_INEQUALITY.search(side) for side in (left, right))):
        return (yield from _asked(left, right))
    return NO


def _same_brackets(left: _Bracket, right: _Bracket) -> Comparison:
    if (left.opening, left.closing) != (right.opening, right.closing):
        return NO
    if left.closing == "⦄":
        return (yield from _same_set(left.parts, right.parts))
    if len(left.parts) != len(right.parts):
        return NO
    problem: Outcome | None = None
    for one, other in zip(left.parts, right.parts, strict=True):
        same = yield from _same(one, other)
        if not same.equal and same.problem is None:
            return NO
        problem = problem or same.problem
    return Same(equal=problem is None, problem=problem)


def _same_set(left: Sequence[str], right: Sequence[str]) -> Comparison:
    """Every member of each is in the other; order and repetition do not matter."""
    problem: Outcome | None = None
    for members, others in ((left, right), (right, left)):
        for member in members:
            same = yield from _any_same([(member, other) for other in others])
            if not same.equal and same.problem is None:
                return NO
            problem = problem or same.problem
    return Same(equal=problem is None, problem=problem)


def _any_same(pairs: Sequence[Pair]) -> Comparison:
    problem: Outcome | None = None
    for left, right in pairs:
        same = yield from _same(left, right)
        if same.equal:
            return YES
        problem = problem or same.problem
    return Same(equal=False, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bracket:
    opening: str
    closing: str
    parts: tuple[str, ...]


def _bracketed(text: str) -> _Bracket | None:
    """A point, interval, vector or set of at least two parts, or a set of one; None where the text is none."""
    if not text or text[0] not in _OPENING or closing(text, 0) != len(text) - 1:
        return None
    parts = tuple(part for part in split_top(text[1:-1], ",;") if part)
    if text[0] in _SETS and parts:
        return _Bracket(opening="⦃", closing="⦄", parts=parts)
    return _Bracket(opening=text[0], closing=text[-1], parts=parts) if len(parts) > 1 else None


def _approximations(text: str) -> list[str]:
    """`10/3 ≈ 3.33` gives both."""
    return [piece for piece in split_top(text, "≈≃≅") if piece] or [text]


def _list_of(text: str) -> list[str]:
    if quantity_from(text) is not None:
        return [text]
    pieces = listed(text)
    if len(pieces) > 1 and any(_RELATION.search(piece) for piece in pieces) and _INEQUALITY.search(text):
        return [text]
    signs = [piece.replace("±", sign, 1) for piece in pieces for sign in ("+", "-")] if "±" in text else pieces
    return [re.sub(r"(=\s*)\+\s*|^\+\s*", r"\1", piece) for piece in dict.fromkeys(signs)]


def _tight(text: str) -> str:
    return _SPACES.sub("", text.casefold())


def _tokens(text: str) -> list[str]:
    """Words and signs, and numbers by their value."""
    found = [token for token in _TOKENS.findall(text.casefold()) if token not in _ARTICLES]
    return [str(number.value) if (number := _number(token)) is not None else token for token in found]


def _number(token: str) -> Quantity | None:
    return quantity_from(token) if token[-1].isdigit() else None


def latex_from(text: str) -> str:
    r"""An answer in `notation` as LaTeX: `2sqrt(3)` is `2\sqrt{3}`, `3cos(x)` is `3\cos(x)`."""
    text = _ROOT.sub(lambda m: rf"\sqrt{{{m[1] or m[2] or m[3]}}}", text)
    text = _GLUED_PI.sub(r"\\pi ", _FUNCTION.sub(r"\\\1 ", text))
    for old, new in _MATHS:
        text = text.replace(old, new)
    return " ".join(text.split())
