r"""One spelling for the notations of mathematics, and what an answer is made of: names, values, lists, brackets."""
# ruff: noqa: RUF001  (signs that look like ASCII are what is read here)

from __future__ import annotations

import re
from dataclasses import dataclass

from interbench_tasks.answers.plain import wide_to_plain

_SAME = (
    ("掳", "°"),  # `°` read in the wrong encoding, as it stands in MathVerse
    ("\\dfrac", "\\frac"),
    ("\\tfrac", "\\frac"),
    ("\\cfrac", "\\frac"),
    ("\\leqslant", "\\le"),
    ("\\geqslant", "\\ge"),
    ("\\degree", "°"),
    ("\\%", "%"),
    ("{,}", ","),
    ("\\{", "⦃"),
    ("\\}", "⦄"),
    ("\\lbrace", "⦃"),
    ("\\rbrace", "⦄"),
    ("\\cup", " ∪ "),
    ("\\infty", "∞"),
    ("\\pm", "±"),
    ("\\approx", "≈"),
    ("\\ne ", "≠ "),
    ("<=", "≤"),
    (">=", "≥"),
    ("**", "^"),
)
_COMMANDS = (
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|quad|qquad|limits)(?![A-Za-z])"), " "),
    (re.compile(r"\\leq?(?![A-Za-z])"), "≤"),
    (re.compile(r"\\geq?(?![A-Za-z])"), "≥"),
    (re.compile(r"\\neq(?![A-Za-z])"), "≠"),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)"), "°"),
    (re.compile(r"\\(?:Long)?[Rr]ightarrow(?![A-Za-z])|\\implies(?![A-Za-z])|⟹|->"), "=>"),
    (re.compile(r"\\\$|\$|\\[()\[\]]"), ""),
    (re.compile(r"\\[,;:! ]|~|\\\\"), " "),
    (re.compile(r"(?<=\d)\s*(?=\\frac)"), " "),  # a mixed number
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|mbox|operatorname|boxed|fbox)\s*\{")
_MINUS = re.compile(r"^(?:minus|negative)\s+(?=[\d.])", re.IGNORECASE)
_LOOSE_SIGN = re.compile(r"(?:^|(?<=[=≈(,\[]))\s*([-+])\s+(?=[\d.\\(√πA-Za-z])")
_LETTERS = re.compile(r"\\[A-Za-z]+|[A-Za-z]+")
_FUNCTIONS = re.compile(
    r"(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|exp|sqrt|pi|inf|infinity|theta|alpha|beta|abs|lim|max|min|gcd"
)
_SHORT_WORDS = re.compile(r"is|of|at|on|or|in|no|by|to|we|it|if|an|as|so")
_NAME = re.compile(r"(?:\\?[A-Za-z]+)(?:_\{?\w{1,3}\}?|')?(?:\s?\(\s?(?:\\?[A-Za-z]+\s?,?\s?)+\))?")
_LABEL = re.compile(
    r"(?:\\(?:angle|triangle|overline|widehat|measuredangle|sin|cos|tan|theta|alpha|beta)|[A-Za-z\s.,()_{}'°∠△])+"
)
_WHOLE_NAME = re.compile(r"[A-Za-z]{3,}|(?:[A-Z]\.?){2,}|∠|△|\\[A-Za-z]+")
_RELATION = re.compile(r"[<>≤≥≠]")
_CONSTANT = re.compile(r"\\(?:frac|sqrt|cdot|times|div|pi|left|right)|pi|π|°|cm|mm|km|m(?![a-z])")
_THOUSANDS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_AND = re.compile(r"\s+(?:and|or)\s+|\s*;\s*|\s+;|;\s+", re.IGNORECASE)
_OPENING, _CLOSING = "([{⦃", ")]}⦄"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A value with the name before it: `x = 3`."""

    value: str
    name: str | None = None
    relation: bool = False
    """Whether it is an equation or inequality, and no value."""


def notation(text: str) -> str:
    r"""An answer in one spelling: no delimiters, sizes, or text wrappers; `^{\circ}` is °, `\leq` is ≤.

    >>> notation(r"$\left(315^{\circ},\, 1\right)$."), notation(r"2\dfrac{1}{2} \mathrm{~cm}^{3}")
    ('(315°, 1 )', '2 \\frac{1}{2} cm ^{3}')
    """
    text = wide_to_plain(text.replace("\r\n", "\n").strip())
    for old, new in _SAME:
        text = text.replace(old, new)
    for pattern, new in _COMMANDS:
        text = pattern.sub(new, text)
    lines = (" ".join(line.split()) for line in _without_text_wrappers(text).split("\n"))
    text = " ; ".join(line for line in lines if line).rstrip(" .,;:*`!").lstrip(" ,;:*`#")
    if text.startswith(".") and not text[1:2].isdigit():
        text = text.lstrip(" .")
    return _LOOSE_SIGN.sub(r"\1", _MINUS.sub("-", text))


def _without_text_wrappers(text: str) -> str:
    for _ in range(50):
        found = _TEXT.search(text)
        if found is None:
            break
        end = closing(text, found.end() - 1)
        text = f"{text[: found.start()]} {text[found.end() : end]} {text[end + 1 :]}"
    return text


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes; the end of the text where it does not. Any kind closes any: `(0, 1]`."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] in _OPENING) - (text[position] in _CLOSING)
        if depth == 0:
            return position
    return len(text)


def split_top(text: str, separators: str) -> list[str]:
    """The pieces of a text between separators (single characters) that stand in no brackets."""
    pieces, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth <= 0 and character in separators:
            pieces.append(text[start:position])
            start = position + 1
    return [piece.strip() for piece in [*pieces, text[start:]]]


def listed(text: str) -> list[str]:
    """The answers of a list without brackets: `2 and -3`, `x = 2, x = -3`; the text itself where it is no list."""
    protected = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), text) if ", " in text else text
    pieces = [piece for part in _AND.split(protected) for piece in split_top(part, ",")]
    pieces = [piece.strip() for piece in pieces if piece.strip()]
    if len(pieces) < 2 or any(is_prose(piece) or not balanced(piece) for piece in pieces):
        return [text]
    return pieces


def balanced(text: str) -> bool:
    """Whether every bracket is closed, by a bracket of any kind."""
    depth = 0
    for character in text:
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth < 0:
            return False
    return depth == 0


def is_prose(text: str) -> bool:
    """Whether words stand in a text, beside functions, units in brackets of points and names of lines."""
    return any(_is_word(word) for word in _LETTERS.findall(text))


def _is_word(letters: str) -> bool:
    if letters.startswith("\\") or _FUNCTIONS.fullmatch(letters.casefold()):
        return False
    if letters.isupper() and len(letters) <= 4:
        return False
    return (len(letters) >= 3 and letters[1:].islower()) or bool(_SHORT_WORDS.fullmatch(letters.casefold()))


def named_from(text: str) -> Named:
    """What stands behind the last `=`, unless the text is an equation: then it is one as a whole.

    >>> named_from("y = x-5").value, named_from("2+3 = 5").value, named_from("x^2+y^2 = 49").relation
    ('x-5', '5', True)
    """
    if _RELATION.search(text):
        return Named(value=text, relation=True)
    pieces = [piece for piece in split_top(text, "=") if piece]
    if len(pieces) < 2:
        return Named(value=pieces[0] if pieces else "")
    names = [piece for piece in pieces[:-1] if is_label(piece)]
    others = [piece for piece in pieces[:-1] if not is_label(piece)]
    last = pieces[-1]
    if len(pieces) == 2 and others and is_label(last) and not is_label(pieces[0]) and _without_variables(pieces[0]):
        return Named(value=pieces[0], name=last)  # `5 = s`
    if names and names[0] == pieces[0] and (len(names[0]) > 1 or names[0] not in _LETTERS.findall(last)):
        return Named(value=last, name=names[0])
    if all(_without_variables(piece) for piece in others):
        return Named(value=last, name=names[0] if names else None)
    return Named(value=text, relation=True)


def is_label(text: str) -> bool:
    """Whether a text only names something: `x`, `f(x)`, `(x, y)`, `Area`, `AB`; `xy` and `2x` name nothing."""
    if _NAME.fullmatch(text) and (len(_LETTERS.findall(text)[0].lstrip("\\")) == 1 or "\\" in text or "(" in text):
        return True
    if re.fullmatch(r"\(\s?[a-z]\s?(?:,\s?[a-z]\s?)+\)", text):
        return True
    return bool(_LABEL.fullmatch(text) and _WHOLE_NAME.search(text))


def _without_variables(text: str) -> bool:
    return not re.search(r"[A-Za-zα-ωΑ-Ω]", _CONSTANT.sub("", text))


def names_differ(left: str | None, right: str | None) -> bool:
    """Whether two values are of different variables: `x = 8` and `y = 8`. Words (`Area`, `SA`) never differ.

    `y` and `f(x)` are two names of one thing.
    """
    if left is None or right is None or max(len(left), len(right)) > 4:
        return False
    both = [re.sub(r"\s", "", name).casefold() for name in (left, right)]
    same_kind = ("(" in both[0]) == ("(" in both[1])
    return same_kind and both[0] != both[1] and all(len(name) == 1 or "(" in name or "_" in name for name in both)
