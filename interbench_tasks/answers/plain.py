"""Any reply as plain text: width, invisible characters, Markdown, HTML and LaTeX wrappers no longer matter."""
# ruff: noqa: RUF001  (characters that look like ASCII are what is replaced here)

from __future__ import annotations

import re
import unicodedata

BOX_OPEN, BOX_CLOSE = "⟦", "⟧"
"""Stand for `\\boxed{` and its closing brace in plain text."""
BULLET = "\N{TRIANGULAR BULLET}"
"""Stands before a letter that is all of a list item; other bullets are dropped."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f\u27e6\u27e7]"
)
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴-⁹⁻⁺]+")
_EN_DASH_IN_NUMBER = re.compile(r"–(?=\d)")
_PICTOGRAMS = re.compile("[\u2600-\u2668\u2670-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]")
_DIGIT_BEFORE_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("‐‑‒−﹣", "-"),
        **dict.fromkeys("–—―", " - "),
        **dict.fromkeys("❌✗✘✖❎🚫", " is wrong "),
        **dict.fromkeys("✅✓✔☑", " "),
        **dict.fromkeys("“”„‟«»「」『』〝〞", '"'),
        **dict.fromkeys("‘’‚‛ʼ′", "'"),
        **dict.fromkeys("【〔〖《", "["),
        **dict.fromkeys("】〕〗》", "]"),
        "⁄": "/",
        "→": "->",
        "⇒": "=>",
        **{chr(first + i): chr(65 + i) for first in (0x1F150, 0x1F170, 0x1F1E6) for i in range(26)},
    }
)
_NEEDS_WORK = re.compile(r"[\\$*_`~<>#{}|&]|\[/|^[ \t]*[-+•>]", re.MULTILINE)
_BOX_TOKENS = re.compile(r"<\|(begin|end)_of_box\|>")
_BOX_OR_BRACE = re.compile(
    r"(?P<open>(?P<box>\\(?:boxed|fbox|framebox)\s{0,9})?\{)|\\(?!boxed|fbox|framebox).|(?P<close>\})", re.DOTALL
)
_ANSWER_TAG = re.compile(r"<(/?)\s*(?:final[_ ]?)?(?:answer|ans|choice|option)\s*>|\[(/?)ANSWER\]", re.IGNORECASE)
_BREAK_TAG = re.compile(r"<(?:br|/p|/div|/li|hr)\s*/?>", re.IGNORECASE)
_MARKUP_TAG = re.compile(
    r"</?(?:b|i|u|em|strong|p|span|div|code|mark|font|center|sub|sup|h[1-6]|li|ul|ol|td|tr|table)"
    r"(?:\s[^<>]{0,100})?>|<\|[a-z_]{1,30}\|>",
    re.IGNORECASE,
)
_STRUCK_OUT = re.compile(r"~~[^~\n]{1,300}~~|<(del|s|strike)>[^<>]{0,300}</\1>")
_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|texttt|textsf|textup|textnormal|mathrm|mathbf|mathit|mathsf|mathtt|mathcal|mathbb"
    r"|mbox|emph|underline|bm|boldsymbol|displaystyle|bf|rm|it|sf|operatorname|left|right|bigl?|bigr?|large|Large|huge"
    r"|quad|qquad|hspace|begin\{[a-z*]{1,20}\}|end\{[a-z*]{1,20}\})\*?(?![A-Za-z])"
)
_SENTENCE = re.compile(r"[^.!?。\n]+(?:[.!?。](?!\s|$)[^.!?。\n]*)*[.!?。]*")
_FULL_STOP = re.compile(r"[.!?。][)\]\"'⟧]*$")
_SHORT = 300
_FRACTION = re.compile(r"\\[dt]?frac\s?(?:\{([^{}]{1,80})\}\s?\{([^{}]{1,80})\}|(\d)\s?(\d))")
_SIMPLE = re.compile(r"\w*")
_SYMBOLS = {
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "circ": "°", "degree": "°", "infty": "∞", "approx": "≈",
    "pi": "π", "theta": "θ", "alpha": "α", "beta": "β", "omega": "ω", "Omega": "Ω", "le": "≤", "leq": "≤", "ge": "≥",
    "geq": "≥", "neq": "≠", "to": "->", "rightarrow": "->", "Rightarrow": "=>",
}  # fmt: skip
_SYMBOL = re.compile(rf"\\({'|'.join(_SYMBOLS)})(?![A-Za-z])")
_LATEX_ESCAPE = re.compile(r"\\([%$_#&*|`~.\-])")
_LATEX_SPACE = re.compile(r"\\[,;:! ]|~|\\\\")
_DELIMITERS = re.compile(r"\\[()\[\]]|\$+|\*+|`+|[{}]")
_EDGE_UNDERSCORES = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_BULLETED_LETTER = re.compile(r"^[ \t]*[-+•*][ \t]+(?=[\W_]*[A-Za-z][\W_]*$)", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|[-+•>][ \t]+|>)+", re.MULTILINE)
_HASH_ANSWER = re.compile(r"^[ \t]*####[ \t]*(?=\S[^\n]*\s*\Z)", re.MULTILINE)
_SPACES = re.compile(r"[^\S\n]+")


def wide_to_plain(text: str) -> str:
    """The text in ordinary width, without invisible characters; `x²` becomes `x^2`, `1½` becomes `1 1/2`."""
    if text.isascii():
        return text
    text = _SUPERSCRIPTS.sub(lambda m: "^" + unicodedata.normalize("NFKC", m[0]), text)
    text = _EN_DASH_IN_NUMBER.sub("-", _DIGIT_BEFORE_FRACTION.sub(" ", text))
    text = unicodedata.normalize("NFKC", text.translate(_LOOKALIKES)).translate(_LOOKALIKES)
    return _PICTOGRAMS.sub(" ", _INVISIBLE.sub("", text))


def plain_text(text: str) -> str:
    r"""The text as a reader sees it: no markup, no LaTeX wrappers, boxes as `⟦...⟧`, struck-out text gone.

    Line breaks stay. Answer tags, and `####` before a last line, become `answer:`.

    >>> plain_text(r"**Answer:** $\text{(C)}$")
    'Answer: (C)'
    >>> plain_text(r"\boxed{\text{E}}")
    '⟦E⟧'
    """
    text = wide_to_plain(text.replace("\r\n", "\n").replace("\r", "\n"))
    if _NEEDS_WORK.search(text) is None:
        return _SPACES.sub(" ", text)
    text = _ANSWER_TAG.sub(lambda m: "\n" if m[1] or m[2] else "\nanswer: ", text)
    text = _MARKUP_TAG.sub("", _BREAK_TAG.sub("\n", _STRUCK_OUT.sub("", _with_box_marks(text))))
    text = _FRACTION.sub(lambda m: f"{_factor(m[1] or m[3])}/{_factor(m[2] or m[4])}", text)
    text = _SYMBOL.sub(lambda m: _SYMBOLS[m[1]], text).replace("^°", "°").replace("^{°}", "°")
    text = _LATEX_SPACE.sub(" ", _LATEX_ESCAPE.sub(r"\1", _WRAPPER.sub("", text)))
    text = _LINE_MARK.sub("", _BULLETED_LETTER.sub(BULLET, _HASH_ANSWER.sub("answer: ", text)))
    text = _EDGE_UNDERSCORES.sub("", _DELIMITERS.sub("", text))
    return _SPACES.sub(" ", text)


def _factor(term: str) -> str:
    return term if _SIMPLE.fullmatch(term) else f"({term})"


def boxes(text: str) -> list[tuple[int, int, int, int]]:
    r"""Where the complete `\boxed{...}` of a text lie, in order: (start, content start, content end, end).

    One that was cut off before its closing brace is not complete.
    """
    found: list[tuple[int, int, int, int]] = []
    open_braces: list[re.Match[str]] = []
    for token in _BOX_OR_BRACE.finditer(text):
        if token["open"]:
            open_braces.append(token)
        elif token["close"] and open_braces:
            start = open_braces.pop()
            if start["box"]:
                found.append((start.start(), start.end(), token.start(), token.end()))
    return sorted(found)


def _with_box_marks(text: str) -> str:
    text = _BOX_TOKENS.sub(lambda m: r"\boxed{" if m[1] == "begin" else "}", text)
    found = boxes(text)
    marks = sorted([(a, b, BOX_OPEN) for a, b, _, _ in found] + [(c, d, BOX_CLOSE) for _, _, c, d in found])
    pieces, at = [], 0
    for start, end, mark in marks:
        pieces += [text[at:start], mark]
        at = end
    return "".join([*pieces, text[at:]])


def sentences(plain: str) -> list[str]:
    """The sentences of a plain text; a line break ends one."""
    return [part for match in _SENTENCE.finditer(plain) if (part := match[0].strip())]


def conclusion_start(plain: str) -> int:
    """Where the part of a plain text begins in which a named option is the writer's conclusion.

    A short reply of one paragraph is all conclusion, of a longer one only the last sentence is, and none of it where it
    was cut off (no full stop).
    """
    text = plain.strip()
    if len(text) <= _SHORT and "\n" not in text:
        return 0
    last = max((sentence.start() for sentence in _SENTENCE.finditer(plain) if sentence[0].strip()), default=0)
    return last if _FULL_STOP.search(text) else len(plain)


_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\S)")


def canonical(text: str) -> str:
    """A text for comparison: plain, one line, no case, no article in front, no punctuation at the edges.

    >>> canonical("The **Great Wall**.")
    'great wall'
    """
    return canonical_of_plain(plain_text(text))


def canonical_of_plain(text: str) -> str:
    """Like `canonical`, for text that is plain already."""
    joined = " ".join(_HYPHEN.sub(" ", text.casefold()).split())
    return _ARTICLE.sub("", joined.strip(" .,;:!?\"'[]⟦⟧。、"))
