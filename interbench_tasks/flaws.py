"""What can be wrong with an input: MMPCBench's types and subcategories, by our codes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal

Kind = Literal["flawed", "dual", "valid"]

TYPES: Mapping[str, str] = {
    "EE": "Expression Error",
    "PC": "Premise Contradiction",
    "MP": "Missing Premise",
    "BC": "Beyond Capability",
}
"""Code -> name. Source: MMPCBench (arXiv 2608.29286)."""

SUBTYPES: Mapping[str, str] = {
    "EE.ambiguity": "Ambiguity",
    "EE.unclear_intent": "Unclear Intent",
    "PC.cross_modal": "Cross-Modal Contradiction",
    "PC.inter_visual": "Inter-Visual Contradiction",
    "PC.intra_textual": "Intra-Textual Contradiction",
    "MP.visual_light": "Missing Visual Premise, Light",
    "MP.visual_medium": "Missing Visual Premise, Medium",
    "MP.visual_severe": "Missing Visual Premise, Severe",
    "MP.missing_image": "Missing Image",
    "MP.missing_instruction": "Missing Instruction",
    "MP.mismatch": "Text-Image Mismatch",
    "BC": "Beyond Capability",
}
"""Code -> name, in the paper's order; the codes are ours."""

VALID = "valid"
"""Category of an item that nothing is wrong with."""
BOTH = "+"
"""Joins the subcategories of an item that two things are wrong with."""

MEANINGS: Mapping[str, str] = {
    "EE.ambiguity": "the text can be read in several ways that lead to different answers",
    "EE.unclear_intent": "it cannot be told what is asked for",
    "PC.cross_modal": "the text contradicts what the picture shows",
    "PC.inter_visual": "two pictures contradict each other",
    "PC.intra_textual": "two statements of the text contradict each other",
    "MP.visual_light": "a smaller part of the picture that is needed cannot be made out",
    "MP.visual_medium": "about half of the picture, with what is needed, cannot be made out",
    "MP.visual_severe": "most of the picture cannot be made out",
    "MP.missing_image": "the picture that the text speaks of is not there",
    "MP.missing_instruction": "there are pictures, but nothing is asked",
    "MP.mismatch": "the pictures have nothing to do with the text",
    "BC": "the answer cannot be worked out from what is given",
}
"""What each is, in our words, as judges are told."""


def type_of(subtype: str) -> str:
    """The type that a subcategory belongs to.

    >>> type_of("PC.inter_visual"), type_of("BC")
    ('PC', 'BC')
    """
    return subtype.partition(".")[0]


def kind_of(category: str | None) -> Kind | None:
    """What kind of item a category is of; None where it is none of ours.

    >>> kind_of("EE.ambiguity"), kind_of("EE.ambiguity+BC"), kind_of("valid"), kind_of("other")
    ('flawed', 'dual', 'valid', None)
    """
    if category == VALID:
        return "valid"
    parts = (category or "").split(BOTH)
    if not all(part in SUBTYPES for part in parts):
        return None
    return "flawed" if len(parts) == 1 else "dual"


def subtype_from(word: str) -> str | None:
    """The code of a subcategory that is given by its code or its name, however that is written; None for no such one.

    >>> subtype_from("Cross-Modal Contradiction"), subtype_from("Missing Visual Premise (Light)")
    ('PC.cross_modal', 'MP.visual_light')
    """
    return _codes().get(_plain(word))


@functools.cache
def _codes() -> Mapping[str, str]:
    """Each way to write a subcategory -> its code."""
    found: dict[str, str] = {}
    for code, name in SUBTYPES.items():
        for said in (code, name, code.partition(".")[2] or code, *_OTHER[code]):
            found.setdefault(_plain(said), code)
    return found


_OTHER: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(SUBTYPES, ()),
    "PC.cross_modal": ("cross modal",),
    "PC.inter_visual": ("inter visual",),
    "PC.intra_textual": ("intra textual",),
    "MP.visual_light": ("light",),
    "MP.visual_medium": ("medium",),
    "MP.visual_severe": ("severe",),
    "MP.mismatch": ("text image mismatch",),
}


def _plain(word: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in word.casefold()).split())
