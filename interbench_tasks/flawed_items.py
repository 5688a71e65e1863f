"""One item of MMPCBench in its canonical form, checked; every problem of a row at once, also from another layout."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from interbench_tasks.errors import DataError, Problem, near_miss
from interbench_tasks.flaws import BOTH, SUBTYPES, TYPES, VALID, Kind, kind_of, subtype_from, type_of

MAX_PICTURES = 5
"""Source: MMPCBench's items have 0 to 5 pictures."""
MAX_DEFECTS = 2


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False, coerce_numbers_to_str=True)


class Gold(_Strict):
    """One thing that is wrong with an item; only judges, and the simulated user of a clarification, ever see it."""

    defect: Annotated[str, Field(min_length=1)]
    """What is wrong, so that a reply can be compared with it."""
    where: str = ""
    """Where it is, e.g. `the second sentence of the text`."""
    fix: str = ""
    """What a person would answer who is asked about it; needed for a clarification turn."""


class Source(_Strict):
    """What an item was made from."""

    dataset: str = ""
    id: str = ""


class Inject(_Strict):
    """How the defect came in."""

    method: str = ""
    params: dict[str, Any] = {}
    seed: int | None = None


class FlawedItem(_Strict):
    """One line of a file of items. Source: the record schema is ours; the benchmark's I = {T, V, Q}."""

    id: Annotated[str, Field(min_length=1)]
    subject: str | None = None
    lang: str | None = None
    """E.g. `en`, `zh`."""
    type: str | None = None
    """Code of `flaws.TYPES`; may be left out, for the subcategory says it."""
    subtype: tuple[str, ...] = ()
    """Codes or names of `flaws.SUBTYPES`: one, two for a dual error, none (or `valid`) where nothing is wrong."""
    T: str = ""
    """Text context."""
    Q: str = ""
    """Query."""
    images: Annotated[tuple[Any, ...], Field(max_length=MAX_PICTURES)] = ()
    """Paths relative to the file, or what `datasets` has of a picture."""
    gold: Annotated[tuple[Gold, ...], Field(max_length=MAX_DEFECTS)] = ()
    """One for each subcategory, in their order."""
    answer: str | None = None
    """The answer once the defect is put right; needed for a clarification turn."""
    source: Source | None = None
    inject: Inject | None = None
    cluster: str | None = None
    """Items with equal values are not independent, e.g. several made from one question; None: it stands alone."""
    extra: dict[str, str] = {}

    @field_validator("subtype", "gold", mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, value: object) -> object:
        if value is None or value == "" or value == VALID:
            return ()
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(BOTH))
        return (value,) if isinstance(value, Mapping) else value

    @field_validator("images", mode="before")
    @classmethod
    def _one_picture_is_a_list_of_one(cls, value: object) -> object:
        if value is None or value == "":
            return ()
        return tuple(value) if isinstance(value, list | tuple) else (value,)

    @property
    def category(self) -> str:
        """Its subcategory's code, two joined by `+` in a fixed order, or `valid`."""
        return BOTH.join(self.subtype) or VALID

    @property
    def kind(self) -> Kind:
        """Whether one, two or no thing is wrong with it."""
        found = kind_of(self.category)
        assert found is not None  # item_from has looked
        return found


def item_from(raw: Mapping[str, Any]) -> FlawedItem | list[Problem]:
    """An item in canonical form, its subcategories as codes, or everything that is wrong with it."""
    try:
        item = FlawedItem.model_validate({key: value for key, value in raw.items() if value is not None})
    except ValidationError as error:
        return [_problem_from(detail) for detail in error.errors()]
    problems = list(_problems_of(item))
    if problems:
        return problems
    codes = [subtype_from(word) or word for word in item.subtype]
    order = sorted(range(len(codes)), key=lambda place: list(SUBTYPES).index(codes[place]))
    return item.model_copy(
        update={
            "subtype": tuple(codes[place] for place in order),
            "gold": tuple(item.gold[place] for place in order),
        }
    )


def _problem_from(detail: Mapping[str, Any]) -> Problem:
    steps = [step for step in detail["loc"]]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    if detail["type"] == "extra_forbidden":
        models: Mapping[str, type[BaseModel]] = {"gold": Gold, "source": Source, "inject": Inject}
        known = sorted(models.get(str(steps[0]), FlawedItem).model_fields)
        return Problem(key=path, message=f" is no known key{near_miss(steps[-1], known)}", allowed=tuple(known))
    if detail["type"] == "missing":
        return Problem(key=path, message=" is missing")
    if detail["type"] == "too_long":
        return Problem(key=path, message=f" holds too many: {detail['msg']}")
    return Problem(key=path, message=f" = {detail['input']!r:.120}: {detail['msg']}")


def _problems_of(item: FlawedItem) -> Iterator[Problem]:
    if not item.T.strip() and not item.Q.strip() and not item.images:
        yield Problem(key="T, Q, images", message=" are all empty: there is nothing to show a model")
    codes = [subtype_from(word) for word in item.subtype]
    for word, code in zip(item.subtype, codes, strict=True):
        if code is None:
            hint = near_miss(word, [*SUBTYPES, *SUBTYPES.values()])
            yield Problem(key="subtype", message=f" = {word!r} is unknown{hint}", allowed=(*SUBTYPES, VALID))
    if len(codes) > MAX_DEFECTS:
        yield Problem(key="subtype", message=f" names {len(codes)}: an item has at most {MAX_DEFECTS} defects")
    if len(set(codes)) < len(codes) and None not in codes:
        yield Problem(key="subtype", message=f": {codes[0]} is there twice")
    if len(item.gold) != len(item.subtype):
        message = f": {len(item.gold)} for {len(item.subtype)} subcategories; each needs its own description"
        yield Problem(key="gold", message=message)
    if item.type is not None and None not in codes:
        yield from _type_problems(item.type, [code for code in codes if code is not None])


def _type_problems(given: str, codes: Sequence[str]) -> Iterator[Problem]:
    names = {name.casefold(): code for code, name in TYPES.items()} | {code.casefold(): code for code in TYPES}
    said = [part.strip() for part in given.split(BOTH)]
    types = [names.get(part.casefold()) for part in said]
    expected = sorted({type_of(code) for code in codes}) or [VALID]
    if sorted({found or part for found, part in zip(types, said, strict=True)}) != expected:
        message = f" = {given!r}, but the subcategory is of type {BOTH.join(expected)}"
        yield Problem(key="type", message=message, allowed=(*TYPES, VALID))


# --- other layouts ----------------------------------------------------------------------------------------------------

GOLD = "gold."
Mapped = Mapping[str, Sequence[str]]
"""Canonical key (`id`, `T`, `images`, `gold.defect`, ...) -> names it may have in the data set."""
REQUIRED = ("subtype", "Q", "gold.defect")
"""Of `gold.defect` an item that nothing is wrong with has none."""


def canonical_keys() -> list[str]:
    """Every key that a mapping may name."""
    single = [name for name in FlawedItem.model_fields if name not in ("gold", "source", "inject", "extra")]
    return [*single, *(f"{GOLD}{name}" for name in Gold.model_fields)]


def unknown_keys(mapping: Mapped) -> list[str]:
    """What is wrong with the keys of a mapping, each with its near miss."""
    known = canonical_keys()
    return [f"{key!r} is no key of an item{near_miss(key, known)}" for key in mapping if key not in known]


def canonical_from(raw: Mapping[str, Any], mapping: Mapped, columns: Collection[str], where: str) -> dict[str, Any]:
    """A row in canonical form. A name `a.b` looks into the object `a`.

    Args: columns = those that any row of the data set has.
    Raises: DataError with what was looked for and the columns that there are, where the layout is an unknown one.
    """
    row: dict[str, Any] = {}
    gold: dict[str, Any] = {}
    for key in canonical_keys():
        candidates = mapping.get(key, (key,))
        there = [name for name in candidates if _has(raw, name)]
        sound = key == "gold.defect" and row.get("subtype") in ((), None, "", VALID)
        if key in REQUIRED and not there and not set(candidates) & set(columns) and not sound:
            raise DataError(
                f"{where}: no column for '{key}'; looked for {', '.join(candidates)}\n"
                f"  it has: {', '.join(map(str, columns)) or 'nothing'}\n"
                f"  not the layout that the task knows: name the columns under metadata.interbench.mapping, "
                f"e.g. {key}: [its_name], in a YAML of your own"
            )
        value = next((found for name in there if (found := _value(raw, name)) is not None), None)
        if value is not None:
            (gold if key.startswith(GOLD) else row)[key.removeprefix(GOLD)] = value
    return row | ({"gold": [gold]} if gold.get("defect") else {})


def _has(raw: Mapping[str, Any], name: str) -> bool:
    outer, dot, inner = name.partition(".")
    return name in raw or (bool(dot) and isinstance(raw.get(outer), Mapping) and inner in raw[outer])


def _value(raw: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - a cell of a data set
    outer, dot, inner = name.partition(".")
    return raw[outer][inner] if dot and name not in raw else raw[name]
