"""A matplotlib figure as one small <svg> element that fits into anybody's page.

matplotlib writes a document of its own: a style sheet that would reach into the page around it, ids that two charts
share, colours of one theme, and much that is said again for every tick. `svg_from` makes of it an element without
style sheets, scripts and outside references. Its ids begin with the chart's, what is drawn in `INK` takes the page's
own text colour (`currentColor`), and the same figure gives the same text, whenever and wherever it is drawn.
"""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK = "#010203"
"""Stands for the page's text colour while a figure is drawn."""
SHOWN = 1.25
"""How much larger a drawing is shown where there is room: its letters are then as large as the page's small ones. A
narrower page shrinks it (`max-width: 100%; height: auto`)."""
FONT = "system-ui, sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_STYLE = re.compile(r"\s*([\w-]+)\s*:\s*([^;]+)")
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_DEFAULTS = {
    "stroke-linecap": "butt",
    "stroke-linejoin": "round",
    "text-anchor": "start",
    "stroke-miterlimit": "100000",
}
"""What the root element says once, or what is so anyway."""
_DRAWN = frozenset({"path", "use", "text"})
_SETTINGS: Mapping[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "hatch.linewidth": 1.0,
    "axes.unicode_minus": True,
}


def svg_from(draw: Callable[[], Figure], *, id: str, label: str) -> str:
    """The figure as one <svg> element.

    Args: draw = makes the figure, with matplotlib's own settings, whatever the user's are (`text.usetex` would call
        LaTeX for every name); id = of the chart, letters, digits and hyphens, unique in a page; label = what a screen
        reader says.
    """
    target = io.StringIO()
    settings: Any = {**_SETTINGS, "svg.hashsalt": id}  # keyed by all names that there are, in newer versions
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        figure = draw()
        FigureCanvasSVG(figure)
        # The browser has the glyphs of other scripts; only the width of the text is a guess.
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from", category=UserWarning)
        figure.savefig(target, format="svg", transparent=True, metadata=_NO_METADATA)
    root = ElementTree.fromstring(target.getvalue())
    _cleaned(root, f"{id}-")
    width, height = (f"{float(side) * SHOWN:g}" for side in root.attrib["viewBox"].split()[2:])
    root.attrib.update(width=width, height=height, id=id, role="img", **{"aria-label": label, "class": "ib-chart"})
    root.attrib.update({"font-family": FONT, "stroke-linecap": "butt", "stroke-linejoin": "round"})
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def plain(text: str) -> str:
    r"""A text that XML can hold, on one line: control characters, and those that turn text round, are replaced.

    >>> ascii(plain("a\x00b\ud800\n c"))
    "'a\\ufffdb\\ufffd c'"
    """
    shown = "".join(" " if c.isspace() else "\N{REPLACEMENT CHARACTER}" if _is_odd(c) else c for c in text)
    return " ".join(shown.split())


def _is_odd(character: str) -> bool:
    category = unicodedata.category(character)
    return category in ("Cc", "Cs", "Cn", "Co") or character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


# --- cleaning ---------------------------------------------------------------------------------------------------------


def _cleaned(root: ElementTree.Element, prefix: str) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}style", f"{{{_SVG}}}metadata", f"{{{_SVG}}}clipPath") or _draws_nothing(child):
                parent.remove(child)
    used = set(_references(root))
    names = {old: f"{prefix}{number}" for number, old in enumerate(_ids(root, used))}
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        _clean_attributes(element, names)
        element.tail = None
        if element.tag != "text":
            element.text = None
    root.attrib = {"xmlns": _SVG, "viewBox": root.attrib["viewBox"]}
    _flatten(root)
    _hoist(root)


def _draws_nothing(element: ElementTree.Element) -> bool:
    """A rectangle behind everything, which only covers the page's background."""
    style = element.attrib.get("style", "")
    return element.tag == f"{{{_SVG}}}path" and style in ("fill: none", "fill: none; opacity: 0")


def _references(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter():
        if _LINK in element.attrib:
            yield element.attrib[_LINK].removeprefix("#")
        yield from _REFERENCE.findall(element.attrib.get("style", ""))


def _ids(root: ElementTree.Element, used: set[str]) -> Iterator[str]:
    yield from (element.attrib["id"] for element in root.iter() if element.attrib.get("id") in used)


def _clean_attributes(element: ElementTree.Element, names: dict[str, str]) -> None:
    """Presentation attributes for the style (a page may forbid inline styles), short numbers, new ids."""
    given = dict(element.attrib)
    element.attrib.clear()
    if given.get("id") in names:
        element.set("id", names[given["id"]])
    if _LINK in given:
        element.set("href", f"#{names[given[_LINK].removeprefix('#')]}")
    drawn = {name: value for name, value in given.items() if name not in ("id", "style", "clip-path", _LINK)}
    if drawn.get("transform", "").startswith(("rotate(-0 ", "rotate(0 ")):
        del drawn["transform"]
    for name, value in drawn.items():
        element.set(name, _short_path(value) if name == "d" else _short(value))
    for name, value in _STYLE.findall(given.get("style", "")):
        shown = _short(value.strip(), 2 if name.endswith("opacity") else 1)
        if name == "opacity" and element.tag == "text":  # the same for letters, and neighbours can share it
            name = "fill-opacity"
        if name != "font-family" and _DEFAULTS.get(name) != value:
            element.set(name, _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", _colour(shown)))


def _colour(value: str) -> str:
    return "currentColor" if value.casefold() == INK else value


def _short(value: str, digits: int = 1) -> str:
    return _NUMBER.sub(lambda found: f"{round(float(found[0]), digits):g}", value)


def _short_path(data: str) -> str:
    """Tenths of a pixel are enough; markers keep hundredths, they are a few pixels wide."""
    digits = 2 if "C" in data else 1
    words = _NUMBER.sub(lambda found: f"{round(float(found[0]), digits):g}", data).split()
    text = " ".join(_straight(words) if "C" not in words and "Q" not in words else words)
    return re.sub(r" ?([MLHVCQz]) ?", r"\1", text).replace(" -", "-")


def _straight(words: Sequence[str]) -> Iterator[str]:
    """Lines along an axis with one number, not two."""
    at: tuple[str, str] | None = None
    given = iter(words)
    for word in given:
        if word == "z":
            yield word
            continue
        x, y = next(given), next(given)
        if word == "L" and at is not None and x == at[0]:
            yield from ("V", y)
        elif word == "L" and at is not None and y == at[1]:
            yield from ("H", x)
        else:
            yield from (word, x, y)
        at = (x, y)


def _flatten(element: ElementTree.Element) -> None:
    """Groups that say nothing give way to what is in them; empty ones go."""
    children: list[ElementTree.Element] = []
    for child in element:
        _flatten(child)
        bare = child.tag in ("g", "defs") and not child.attrib
        if child.tag == "g" and bare:
            children.extend(child)
        elif not (child.tag in ("g", "defs") and len(child) == 0):
            children.append(child)
    element[:] = children


def _hoist(root: ElementTree.Element) -> None:
    """Neighbours of one look get it from a group around them."""
    children = list(root)
    groups: list[ElementTree.Element] = []
    for child in children:
        look = _look(child)
        last = groups[-1] if groups else None
        if last is not None and last.tag == "g" and last.get("_kind") == child.tag and _own(last) == look and look:
            last.append(child)
        elif child.tag in _DRAWN and look:
            group = ElementTree.Element("g", {**look, "_kind": child.tag})
            group.append(child)
            groups.append(group)
        else:
            groups.append(child)
    for position, group in enumerate(groups):
        kind = group.attrib.pop("_kind", None)
        if kind is None:
            continue
        for child in group:
            for name in group.attrib:
                del child.attrib[name]
        if kind == "path" and all(set(child.attrib) == {"d"} for child in group):
            groups[position] = ElementTree.Element("path", {"d": "".join(c.attrib["d"] for c in group), **group.attrib})
        elif len(group) == 1:
            group[0].attrib.update(group.attrib)
            groups[position] = group[0]
    root[:] = groups


def _look(element: ElementTree.Element) -> dict[str, str]:
    kept = ("id", "d", "x", "y", "transform", "href", "opacity")
    return {name: value for name, value in element.attrib.items() if name not in kept}


def _own(group: ElementTree.Element) -> dict[str, str]:
    return {name: value for name, value in group.attrib.items() if name != "_kind"}
