"""What a drawing must not hold before it goes into a page that is opened from a disk and sent round."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from interbench_tasks.errors import InterbenchError

_FORBIDDEN = frozenset({"script", "foreignobject", "iframe", "object", "embed", "a", "animate", "set", "handler"})
_URL = re.compile(r"url\(\s*['\"]?(?!#)", re.IGNORECASE)
_TAG = re.compile(r"<[a-zA-Z][^>]*>")
_NAMED = re.compile(r"""(\s(?:id|aria-labelledby|aria-describedby)=)(["'])([^"']*)""")
_LINKED = re.compile(r"""(href=["']#|url\(["']?#)""")
_REMOTE_STYLE = re.compile(r"@import|expression\(", re.IGNORECASE)


def safe_svg(svg: str, prefix: str) -> str:
    """The drawing as it may stand in a page: one <svg> without scripts or outside references, its ids made unique.

    Args: prefix = of its ids.
    Raises: InterbenchError saying what it must not hold, or that it is no <svg> at all.
    """
    start = svg.find("<svg")
    if start < 0:
        raise InterbenchError("the drawing holds no <svg> element")
    drawn = svg[start:].strip()
    if "<!DOCTYPE" in svg[:start].upper() and "<!ENTITY" in svg[:start].upper():
        raise InterbenchError("the drawing declares entities")
    try:
        root = ElementTree.fromstring(drawn)
    except ElementTree.ParseError as error:
        raise InterbenchError(f"the drawing is no well-formed SVG: {error}") from error
    for problem in _problems(root):
        raise InterbenchError(f"the drawing holds {problem}")
    drawn = _TAG.sub(lambda tag: _NAMED.sub(lambda found: _renamed(found, prefix), tag[0]), drawn)
    return _LINKED.sub(lambda found: f"{found[1]}{prefix}", drawn)


def _renamed(found: re.Match[str], prefix: str) -> str:
    return f"{found[1]}{found[2]}{' '.join(prefix + name for name in found[3].split())}"


def _problems(root: ElementTree.Element) -> Iterator[str]:
    if _local(root.tag) != "svg":
        yield f"<{_local(root.tag)}> instead of <svg>"
    for element in root.iter():
        name = _local(element.tag)
        if name in _FORBIDDEN:
            yield f"<{name}>"
        if name == "style" and (_REMOTE_STYLE.search(element.text or "") or _URL.search(element.text or "")):
            yield "a style sheet that refers to something outside"
        for key, value in element.attrib.items():
            attribute = _local(key)
            if attribute.startswith("on"):
                yield f"the event handler {attribute}"
            if attribute in ("href", "src") and not value.startswith("#") and not value.startswith("data:image/"):
                yield f"a reference to {value[:80]}"
            if _URL.search(value):
                yield f"a reference in {attribute}"


def _local(tag: object) -> str:
    return str(tag).rpartition("}")[2].lower()
