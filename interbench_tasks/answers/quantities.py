"""Numbers with units in any notation, compared exactly."""

from __future__ import annotations

import re
from fractions import Fraction

from interbench_tasks.answers.number_words import number_from_words, scale_word
from interbench_tasks.answers.numbers import Quantity, quantity_from_plain, unit_from_plain
from interbench_tasks.answers.plain import plain_text

_SCALES = {
    "mm": ("m", Fraction(1, 1000)), "cm": ("m", Fraction(1, 100)), "m": ("m", Fraction(1)), "km": ("m", Fraction(1000)),
    "g": ("g", Fraction(1)), "kg": ("g", Fraction(1000)), "ml": ("l", Fraction(1, 1000)), "l": ("l", Fraction(1)),
    "s": ("s", Fraction(1)), "min": ("s", Fraction(60)), "h": ("s", Fraction(3600)), "day": ("s", Fraction(86400)),
    "in": ("in", Fraction(1)), "ft": ("in", Fraction(12)), "yd": ("in", Fraction(36)),
    "cent": ("$", Fraction(1, 100)), "$": ("$", Fraction(1)),
}  # fmt: skip
_BEARING = re.compile(r"°\s?T$")
_DOTTED_THOUSANDS = re.compile(r"([-+]?\d{1,3}(?:\.\d{3}){2,}|[-+]?\d{1,3}(?:\.\d{3})+(?=,\d{1,2}$))(?:,(\d{1,2}))?")
_RATE = re.compile(
    r"(?P<number>.*[\d)}])\s*(?P<rate>(?:[a-z]{1,6}|°)\s?(?:/|\bper\b)\s?[a-z]{1,7}|kmh|kph|mph)\s*(?P<p>\^?\{?2?\}?)$"
)
_RATES = {"kmh": "km/h", "kph": "km/h", "mph": "mi/h"}
_EUROS = re.compile(
    r"(?P<whole>[-+]?\d{1,3}(?:[. ]?\d{3})*),(?P<cents>\d{2})\s?(?:€|eur|euros?)"
    r"|€\s?(?P<whole2>[-+]?\d{1,3}(?:[. ]?\d{3})*),(?P<cents2>\d{2})",
    re.IGNORECASE,
)
_RATIO = re.compile(r"([-+]?\d+(?:\.\d+)?)\s?(?::|\bto\b)\s?([-+]?\d+(?:\.\d+)?)")
_UNIT_BEHIND = re.compile(
    r"^(?P<value>.*?[\d})\]πa-zA-Z])\s(?P<unit>(?:(?:square|sq\.?|cubic|cu\.?)\s)?[A-Za-z]{1,12}\.?\s?(?:\^\s?\{?[23]\}?)?)$"
)
_NO_NUMBER = re.compile(r"[=≈<>≤≥≠±√|]")
_SIGNED_ABOVE = re.compile(r"(?<![\d/^)])\((-?\d+(?:\.\d+)?)\)(?=\s?/)")
_BRACED = re.compile(r"[\d+\-*/. ]+")


def quantity_from(text: str) -> Quantity | None:
    r"""The number that a text in `notation` is, with at most a unit behind; None where it is anything else.

    >>> quantity_from("2 1/2 cm^3")
    Quantity(value=Fraction(5, 2), unit='cm^3')
    >>> quantity_from("1.5 million"), quantity_from("x^2")
    (Quantity(value=Fraction(1500000, 1), unit=None), None)
    """
    if _NO_NUMBER.search(text):
        return None
    ratio = _RATIO.fullmatch(text)
    if ratio:
        below = Fraction(ratio[2])
        return Quantity(value=Fraction(ratio[1]) / below) if below else None
    euros = _EUROS.fullmatch(text)
    if euros:
        whole = re.sub(r"[. ]", "", euros["whole"] or euros["whole2"])
        return Quantity(value=Fraction(f"{whole}.{euros['cents'] or euros['cents2']}"), unit="€")
    spelt = _spelt(text)
    if spelt is not None:
        return spelt
    scaled = scale_word(text)
    if scaled is not None:
        found = quantity_from(scaled[0].strip())
        return Quantity(value=found.value * scaled[1], unit=found.unit) if found else None
    rate = _RATE.fullmatch(text.casefold())
    if rate and (found := quantity_from(rate["number"].strip())) is not None and found.unit is None:
        name = re.sub(r"\s*(?:/|\bper\b)\s*", "/", rate["rate"])
        return Quantity(value=found.value, unit=_RATES.get(name, name) + ("^2" if "2" in rate["p"] else ""))
    plain = plain_text(_BEARING.sub("°", text))
    plain = _DOTTED_THOUSANDS.sub(lambda m: m[1].replace(".", "") + (f".{m[2]}" if m[2] else ""), plain)
    plain = _SIGNED_ABOVE.sub(r"\1", plain)
    return quantity_from_plain(_without_sum_brackets(plain.replace("⦃", "").replace("⦄", "")))


def _spelt(text: str) -> Quantity | None:
    """`twelve`, `twelve dollars`."""
    number = number_from_words(text)
    if number is not None:
        return Quantity(value=number)
    words, _, last = text.rpartition(" ")
    unit = unit_from_plain(last.casefold()) if words and last.isalpha() else None
    number = number_from_words(words) if unit else None
    return None if number is None else Quantity(value=number, unit=unit)


def _without_sum_brackets(plain: str) -> str:
    """`(-3/4)` is -3/4; a bracket with more in it stays."""
    inside = re.fullmatch(r"\(([^()]*)\)", plain.strip())
    return inside[1] if inside and _BRACED.fullmatch(inside[1]) else plain


def same_quantity(left: Quantity, right: Quantity) -> bool:
    """Whether two quantities are equal: 50% is 0.5, and also the 50 of a question that asks for percent; 1 m is 100 cm.

    A unit that only one side has is put aside.
    """
    if left.unit == right.unit or (None in (left.unit, right.unit) and "%" not in (left.unit, right.unit)):
        return left.value == right.value
    if None in (left.unit, right.unit):
        percent, other = (left, right) if left.unit == "%" else (right, left)
        return other.value in (percent.value, percent.value / 100)
    return _in_base_unit(left) == _in_base_unit(right)


def _in_base_unit(quantity: Quantity) -> tuple[Fraction, str]:
    name, _, power = (quantity.unit or "").partition("^")
    base, factor = _SCALES.get(name, (name, Fraction(1)))
    return quantity.value * factor ** int(power or 1), f"{base}^{power or 1}"


def without_unit(text: str) -> tuple[str, str | None]:
    r"""An expression and the unit behind it: `36\pi cm ^{3}` -> (`36\pi`, `cm^3`)."""
    text = _BEARING.sub("°", text)
    if text.endswith("°"):
        return text[:-1].strip(), "°"
    if text.endswith("%"):
        return text, None
    found = _UNIT_BEHIND.fullmatch(text)
    unit = unit_from_plain(plain_text(found["unit"]).casefold()) if found else None
    return (found["value"].strip(), unit) if found and unit else (text, None)
