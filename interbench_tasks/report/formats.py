"""A table of texts as plain text, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Format = Literal["text", "md", "csv", "latex", "json"]
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_MINUS = re.compile(r"(?<![\w.:/-])-(?=\d)")
"""A minus sign, not a hyphen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of texts, ready to be printed."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[tuple[str, int]] = ()
    """Headers above the headers, each with the number of columns it spans; empty: none."""
    n_names: int = 1
    """The first columns, which are names; the others are numbers, and LaTeX sets them flush right."""


def as_text(grid: Grid) -> str:
    """Columns aligned, two spaces between them."""
    table = [[_one_line(cell) for cell in row] for row in (grid.headers, *grid.rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(grid.headers))]
    lines = [_one_line(grid.title)] if grid.title else []
    if grid.groups:
        groups = [(_one_line(name), span) for name, span in grid.groups]
        _widen(widths, groups)
        lines.append(_group_line(groups, widths))
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join(lines)


def _widen(widths: list[int], groups: Sequence[tuple[str, int]]) -> None:
    """Make a group's last column wide enough for the group's name."""
    at = 0
    for name, span in groups:
        at += span
        widths[at - 1] += max(0, len(name) - sum(widths[at - span : at]) - 2 * (span - 1))


def _group_line(groups: Sequence[tuple[str, int]], widths: Sequence[int]) -> str:
    cells, at = [], 0
    for name, span in groups:
        width = sum(widths[at : at + span]) + 2 * (span - 1)
        cells.append(name.ljust(width))
        at += span
    return "  ".join(cells).rstrip()


def as_markdown(grid: Grid) -> str:
    r"""A table as GitHub shows it: Markdown knows no header above the headers, so a group's name stands in each of its.

    >>> print(as_markdown(Grid(title="t", headers=["a|b", "n"], rows=[["50%", "3"]], groups=[("", 1), ("of it", 1)])))
    **t**
    <BLANKLINE>
    | a\|b | of it: n |
    |:--|--:|
    | 50% | 3 |
    """
    groups = [name for name, span in grid.groups for _ in range(span)] or [""] * len(grid.headers)
    headers = [f"{group}: {header}" if group else header for group, header in zip(groups, grid.headers, strict=True)]
    rule = [":--"] * grid.n_names + ["--:"] * (len(headers) - grid.n_names)
    lines = [f"**{_markdown(grid.title)}**", ""] if grid.title else []
    lines += [_markdown_row(headers), f"|{'|'.join(rule)}|", *map(_markdown_row, grid.rows)]
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_markdown, cells))} |"


def _markdown(text: str) -> str:
    """A text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\|*_<>`])", r"\\\1", _one_line(text))


def as_latex(grid: Grid) -> str:
    r"""A `tabular` for the package booktabs, its texts escaped.

    >>> print(as_latex(Grid(title="", headers=["a_b", "n"], rows=[["50%", "3"]])))
    \begin{tabular}{lr}
    \toprule
    a\_b & n \\
    \midrule
    50\% & 3 \\
    \bottomrule
    \end{tabular}
    """
    lines = [f"% {_one_line(grid.title)}"] if grid.title else []
    alignment = "l" * grid.n_names + "r" * (len(grid.headers) - grid.n_names)
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
    if any(name for name, _ in grid.groups):
        lines += _latex_groups(grid.groups)
    lines += [_latex_row(grid.headers), r"\midrule", *[_latex_row(row) for row in grid.rows]]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _latex_groups(groups: Sequence[tuple[str, int]]) -> list[str]:
    """The line of group names, and a rule under each."""
    cells, rules, at = [], [], 1
    for name, span in groups:
        if name:
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escaped(name)}}}")
            rules.append(rf"\cmidrule(lr){{{at}-{at + span - 1}}}")
        else:
            cells += [""] * span
        at += span
    return [" & ".join(cells).lstrip() + r" \\", " ".join(rules)]


def _latex_row(cells: Sequence[str]) -> str:
    texts = [_MINUS.sub("$-$", escaped(cell)) for cell in cells]
    if texts[0].startswith(("[", "*")):  # the end of the line before would take it for its own argument
        texts[0] = f"{{{texts[0][0]}}}{texts[0][1:]}"
    return " & ".join(texts) + r" \\"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def escaped(text: str) -> str:
    r"""A text that LaTeX prints as it is, on one line.

    >>> escaped("a_b & 50%")
    'a\\_b \\& 50\\%'
    """
    return "".join(_ESCAPED.get(character, character) for character in _one_line(text))


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    r"""Rows of values for a machine: a header line, then one line a row; None is an empty cell.

    Columns are all keys of all rows, in the order in which they come up.

    >>> as_csv([{"low": -0.0, "high": None}])
    'low,high\n0.0,'
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    target = io.StringIO()
    writer = csv.DictWriter(target, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{key: _csv_value(value) for key, value in row.items()} for row in rows])
    return target.getvalue().rstrip("\n")


def _csv_value(value: object) -> object:
    """The value as it is written: None is empty, and -0.0 is 0.0."""
    if isinstance(value, float):
        return value + 0.0
    return "" if value is None else value
