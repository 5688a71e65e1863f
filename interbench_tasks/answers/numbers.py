r"""Compares answers by value: `$6,000.00`, `6000` and `6 \times 10^3` are one number, `-6000` is another."""
# ruff: noqa: RUF001  (signs that look like ASCII are what is read here)

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from interbench_tasks.answers import words
from interbench_tasks.answers.plain import canonical_of_plain, plain_text

_DIGITS = r"(?:\d{1,3}(?:[, ']\d{2,3})*[, ']\d{3}(?!\d)|\d{1,100})(?:\.\d{1,100})?|\.\d{1,100}|0,\d{1,100}"
_POWER = r"\s?(?:e([+-]?\d{1,3})|[x×·]\s?10\s?\^?\s?\(?([+-]?\d{1,3})\)?)(?!\w)"
_SIGN = r"(?P<sign>[+-]?)\s?"
_CURRENCY = r"(?:us\$|usd|eur|gbp|rmb|cny|rs\.?|[$€£¥₹₩])?\s?"
_NUMBER = re.compile(
    rf"(?<![\w.,^]){_SIGN}{_CURRENCY}(?P<sign2>[+-]?)"
    rf"(?:(?P<whole>\d{{1,9}})\s(?P<part>\d{{1,9}})\s?/\s?(?P<of>\d{{1,9}})|"
    rf"(?:(?P<ten>10)\^\(?(?P<ten_power>[+-]?\d{{1,3}})\)?|\(?(?P<digits>{_DIGITS})\)?(?P<power>{_POWER})?)"
    rf"(?:\s?/\s?\(?(?P<below>[+-]?(?:{_DIGITS}))\)?)?)(?![\d^])(?![.,/]\d)",
    re.IGNORECASE,
)
_UNITS = {
    "%": ("%", "percent", "per cent", "percentage points"),
    "°": ("°", "degree", "degrees", "deg", "deg."),
    "°C": ("°c", "degrees celsius"),
    "°F": ("°f", "degrees fahrenheit"),
    "$": ("$", "dollar", "dollars", "usd"),
    "€": ("€", "euro", "euros", "eur"),
    "£": ("£", "pound sterling", "gbp"),
    "cent": ("cent", "cents", "¢"),
    "mm": ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
    "cm": ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
    "m": ("m", "meter", "meters", "metre", "metres"),
    "km": ("km", "kilometer", "kilometers", "kilometre", "kilometres"),
    "in": ("in", "in.", "inch", "inches"),
    "ft": ("ft", "ft.", "foot", "feet"),
    "yd": ("yd", "yard", "yards"),
    "mi": ("mi", "mile", "miles"),
    "g": ("g", "gram", "grams"),
    "kg": ("kg", "kilogram", "kilograms"),
    "lb": ("lb", "lbs", "pound", "pounds"),
    "s": ("s", "sec", "second", "seconds"),
    "min": ("min", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "day": ("day", "days"),
    "year": ("year", "years"),
    "l": ("l", "liter", "liters", "litre", "litres"),
    "ml": ("ml", "milliliter", "milliliters", "millilitre", "millilitres"),
    "unit": ("unit", "units"),
    "n": ("n", "newton", "newtons"),
    "j": ("j", "joule", "joules"),
    "w": ("w", "watt", "watts"),
    "v": ("v", "volt", "volts"),
    "a": ("a", "amp", "amps", "ampere", "amperes"),
    "ω": ("ω", "ohm", "ohms"),
    "hz": ("hz", "hertz"),
    "rad": ("rad", "radian", "radians"),
}
_UNIT_OF = {name: unit for unit, names in _UNITS.items() for name in names}
_UNIT = re.compile(r"(?:(square|sq\.?|cubic|cu\.?)\s)?([^\d^/()]{1,20}?)\s?(?:\^?\(?([23])\)?)?$")
_WORD = re.compile(r"[^\s.,;:!?()]{1,20}")
_NOT_A_VALUE = re.compile(r"[\\<>≤≥±√|]")
_LAST_STEP = re.compile(r"[=≈≃≅]")
_NEGATED = re.compile(rf"{words.NEGATION}|n't\b|\bno\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number, exactly, with its unit."""

    value: Fraction
    unit: str | None = None
    """Short name with its power, e.g. `cm^2`; None where none is given."""

    def same_as(self, other: Quantity) -> bool:
        """Whether the numbers are equal and the units do not contradict each other."""
        return self.value == other.value and (None in (self.unit, other.unit) or self.unit == other.unit)


def same_answer(answer: str, target: str) -> bool:
    """Whether two answers are the same text or the same number; signs count, notation does not.

    Case, width, markup, an article in front, currency signs, thousands separators and common units are put aside. In a
    chain of equalities the last value counts. An answer with one number in words around it is that number.

    >>> same_answer("$7{,}250.00", "7250"), same_answer("7{,}250", "250"), same_answer("x = -3", "3")
    (True, False, False)
    """
    given, wanted = plain_text(answer), plain_text(target)
    if _tight(given) == _tight(wanted):
        return bool(_tight(wanted))
    right = quantity_from_plain(wanted)
    if right is None:
        return False
    found = quantity_from_plain(given) or only_quantity(given)
    return found is not None and found.same_as(right)


def _tight(plain: str) -> str:
    return re.sub(r"[\s⟦⟧]+", "", canonical_of_plain(plain))


def quantity_from_plain(plain: str) -> Quantity | None:
    """The quantity that a plain text is, with nothing but a unit beside the number; None where it is something else."""
    text = _LAST_STEP.split(plain)[-1].casefold().strip(" !?\"'⟦⟧\n").rstrip(".")
    if len(text) > 200:
        return None
    number = _NUMBER.match(text)
    if number is None:
        return None
    rest = text[number.end() :].strip(" .⟦⟧")
    unit = unit_from_plain(rest)
    if rest and unit is None:
        return None
    value = _value_of(number)
    return None if value is None else Quantity(value=value, unit=unit)


def only_quantity(plain: str) -> Quantity | None:
    """The only number of a short text; None where there are several, or where it is denied."""
    text = _LAST_STEP.split(plain)[-1].casefold().strip()
    if len(text) > 300 or _NEGATED.search(text) or _NOT_A_VALUE.search(text):
        return None
    numbers = list(_NUMBER.finditer(text))
    value = _value_of(numbers[0]) if len(numbers) == 1 else None
    if value is None:
        return None
    following = text[numbers[0].end() :]
    word = _WORD.match(following.lstrip(" ⟦⟧"))
    unit = unit_from_plain(word[0]) if word else None
    if unit is None and following[:1].isalpha():
        return None  # `12b`, `3x`
    return Quantity(value=value, unit=unit)


def unit_from_plain(text: str) -> str | None:
    """The short name of a unit with its power, e.g. `cm^2` for `square centimeters`; None where it is none."""
    match = _UNIT.fullmatch(text.strip())
    name = _UNIT_OF.get(match[2].strip(" ^")) if match else None
    if match is None or name is None:
        return None
    power = match[3] or {"s": "2", "c": "3"}.get((match[1] or " ")[0])
    return f"{name}^{power}" if power else name


def _value_of(number: re.Match[str]) -> Fraction | None:
    sign = -1 if "-" in (number["sign"], number["sign2"]) else 1
    if number["whole"]:
        parts = int(number["whole"]), int(number["part"]), int(number["of"])
        return sign * (parts[0] + Fraction(parts[1], parts[2])) if parts[2] else None
    if number["ten"]:
        value = Fraction(10) ** int(number["ten_power"])
    else:
        value = _decimal(number["digits"])
        power = re.search(r"[+-]?\d+\)?$", number["power"] or "")
        value *= Fraction(10) ** int(power[0].rstrip(")")) if power else 1
    if number["below"]:
        below = _decimal(number["below"])
        return sign * value / below if below else None
    return sign * value


def _decimal(digits: str) -> Fraction:
    if re.fullmatch(r"[+-]?0,\d+", digits) and not re.fullmatch(r"0,\d{3}", digits):
        digits = digits.replace(",", ".")
    return Fraction(re.sub(r"[, ']", "", digits))
