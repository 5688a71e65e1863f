"""Items of MMPCBench -> episodes: the input as given and without a hint, in one or several styles of asking."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from interbench_tasks.config import CommonOptions
from interbench_tasks.errors import ConfigError, DataError, Problem
from interbench_tasks.flawed_items import FlawedItem, canonical_from, item_from, unknown_keys
from interbench_tasks.flaws import MEANINGS, SUBTYPES, kind_of, subtype_from
from interbench_tasks.images import Picture
from interbench_tasks.items import picture_of_cell
from interbench_tasks.prompts import render
from interbench_tasks.records import Episode, Message, Question
from interbench_tasks.rows import DataSet, Rows

_AS_GIVEN = "{{ text }}{% if text and query %}\n\n{% endif %}{{ query }}"
STYLE_PROMPTS: Mapping[str, str] = {
    "original": _AS_GIVEN,
    "formal": f"Kindly provide a response, in formal language, to the request below.\n\n{_AS_GIVEN}",
    "concise": f"{_AS_GIVEN}\n\nKeep it short.",
}
"""OURS: the paper does not print its styles. None hints at a defect. A YAML replaces them under `prompts`."""
STYLE_VARIABLES = ("text", "query", "n_pictures")
SHOWN_PROBLEMS = 20


class FlawedItemReader:
    """Makes episodes of items. A file's rows are all checked at once, before anything is played.

    Args: options = the protocol's: `mapping`, which names the data set's columns have; `style`, `more_styles`,
        `subset` and `subset_seed`, which items are asked in which styles; `variants`, with which options these are too.
    """

    def __init__(self, data: DataSet, common: CommonOptions, options: BaseModel) -> None:
        self._data = data
        self._common = common
        self._mapping: Mapping[str, tuple[str, ...]] = getattr(options, "mapping", {})
        self._style: str = getattr(options, "style", "original")
        self._more: tuple[str, ...] = getattr(options, "more_styles", ())
        self._variants: Sequence[str] = tuple(getattr(options, "variants", ()))
        self._folder = Path(common.pictures.root).expanduser() if common.pictures.root else data.folder
        wrong = unknown_keys(self._mapping)
        if wrong:
            raise ConfigError(
                data.source, [Problem(key="metadata.interbench.mapping", message=f": {one}") for one in wrong]
            )
        self._check()
        subset, seed = getattr(options, "subset", None), getattr(options, "subset_seed", 0)
        self._subset = frozenset(self._drawn(subset, seed)) if self._more or self._variants else frozenset()

    def episode(self, doc_id: int, repeat: int) -> Episode:
        """The episode of one item.

        Raises: DataError (PictureError for a picture) naming file, line, id and key.
        """
        item = self._item(doc_id)
        where = self._where(doc_id, item.id)
        pictures = tuple(self._picture(cell, f"{where}, images[{n}]") for n, cell in enumerate(item.images))
        question = self._message(item, pictures, self._style)
        further: dict[str, Message] = {}
        if doc_id in self._subset:
            further = {style: self._message(item, pictures, style) for style in self._more}
            further |= dict.fromkeys(self._variants, question)
        return Episode(
            id=item.id,
            doc_id=doc_id,
            repeat=repeat,
            question=question,
            system=self._common.system,
            target=item.category,
            raw_question=item.Q,
            category=item.category,
            cluster=item.cluster,
            extra=_extra(item),
            questions=tuple(
                Question(id=branch, ability=item.category, message=message, text=item.Q, target=item.category)
                for branch, message in further.items()
            ),
        )

    def identity(self, doc_id: int) -> tuple[str, str | None, str | None]:
        """Id, category and cluster of a row, also of one that cannot become an episode."""
        try:
            item = self._item(doc_id)
        except DataError:
            return str(self._data.rows[doc_id].get("id") or doc_id), None, None
        return item.id, item.category, item.cluster

    # --- its parts ----------------------------------------------------------------------------------------------------

    def _message(self, item: FlawedItem, pictures: Sequence[Picture], style: str) -> Message:
        prompt = render(
            self._common.prompts.get(style, STYLE_PROMPTS[style]),
            style,
            text=item.T,
            query=item.Q,
            n_pictures=len(pictures),
        ).strip()
        return Message(role="user", content=(*pictures, *([prompt] if prompt else [])))

    def _check(self) -> None:
        """All rows of a file; of a data set from the hub, whose pictures are in its rows, the first one."""
        rows = self._data.rows
        problems: dict[str, list[str]] = {}
        ids: dict[str, list[int]] = {}
        for doc_id in range(len(rows) if isinstance(rows, Rows) else min(1, len(rows))):
            found = self._item_or_problems(doc_id)
            if isinstance(found, FlawedItem):
                ids.setdefault(found.id, []).append(doc_id)
                continue
            for problem in found:
                problems.setdefault(str(problem), []).append(self._where(doc_id, rows[doc_id].get("id")))
        for one, doubled in ids.items():
            if len(doubled) > 1:
                told = f"key 'id' is also that of {self._place(doubled[0])}"
                problems[told] = [self._where(doubled[1], one)]
        if problems:
            more = f"\nand {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
            raise DataError("\n".join(map(_told, list(problems.items())[:SHOWN_PROBLEMS])) + more)

    def _item(self, doc_id: int) -> FlawedItem:
        found = self._item_or_problems(doc_id)
        if isinstance(found, list):
            where = self._where(doc_id, self._data.rows[doc_id].get("id"))
            raise DataError("\n".join(f"{where}: {problem}" for problem in found))
        return found

    def _item_or_problems(self, doc_id: int) -> FlawedItem | list[Problem]:
        """Raises: DataError where the data set has another layout than the task knows."""
        raw: Mapping[str, Any] = self._data.rows[doc_id]
        if self._mapping:  # a stranger's rows may have no id
            where = self._where(doc_id, raw.get("id"))
            raw = {"id": str(doc_id), **canonical_from(raw, self._mapping, self._data.rows.features, where)}
        return item_from(raw)

    def _place(self, doc_id: int) -> str:
        lines = getattr(self._data.rows, "lines", ())
        return f"line {lines[doc_id]}" if lines else f"row {doc_id}"

    def _where(self, doc_id: int, own_id: object) -> str:
        return f"{self._data.source}, {self._place(doc_id)}, id {own_id!r}"

    def _picture(self, cell: Any, where: str) -> Picture:  # noqa: ANN401 - a cell of a data set
        return picture_of_cell(cell, folder=self._folder, max_side=self._common.pictures.max_side, where=where)

    def _drawn(self, size: int | None, seed: int) -> list[int]:
        """The rows that are asked in further styles too: of the flawed ones, each subcategory by its share."""
        by_category: dict[str, list[int]] = {}
        for doc_id, category in enumerate(self._categories()):
            if kind_of(category) == "flawed":
                by_category.setdefault(category, []).append(doc_id)
        n = sum(map(len, by_category.values()))
        return [doc for rows in stratified(by_category, n if size is None else size, seed).values() for doc in rows]

    def _categories(self) -> list[str]:
        """The category of each row; of a data set from the hub without touching its pictures."""
        rows = self._data.rows
        if isinstance(rows, Rows):
            return [self._item(doc_id).category for doc_id in range(len(rows))]
        names = [name for name in self._mapping.get("subtype", ("subtype",)) if name in rows.features]
        return [subtype_from(str(word)) or "" for word in rows[names[0]]] if names else []


def _told(found: tuple[str, Sequence[str]]) -> str:
    """A problem with the first row that has it, and how many others have it too."""
    problem, places = found
    more = f"\n  also in {len(places) - 1} other rows" if len(places) > 1 else ""
    return f"{places[0]}: {problem}{more}"


def stratified(strata: Mapping[str, Sequence[int]], size: int, seed: int) -> dict[str, list[int]]:
    """A sample in which each stratum has its share (largest remainders), the same for the same seed.

    Args: strata = name -> rows; size = of the sample; at most all rows are taken.

    >>> {name: len(rows) for name, rows in stratified({"a": range(90), "b": range(100, 110)}, 20, 0).items()}
    {'a': 18, 'b': 2}
    """
    n = sum(len(rows) for rows in strata.values())
    size = min(size, n)
    shares = {name: size * len(rows) / n for name, rows in strata.items()} if n else {}
    taken = {name: int(share) for name, share in shares.items()}
    left = sorted(shares, key=lambda name: (taken[name] - shares[name], name))
    for name in left[: size - sum(taken.values())]:
        taken[name] += 1
    return {name: sorted(_shuffled(strata[name], f"{seed}/{name}")[: taken[name]]) for name in strata if name in taken}


def _shuffled(rows: Sequence[int], seed: str) -> list[int]:
    return sorted(rows, key=lambda row: hashlib.sha256(f"{seed}/{row}".encode()).digest())


def _extra(item: FlawedItem) -> dict[str, str]:
    """What judges and the clarification turn need; the receiver sees none of it."""
    kinds = [f"{SUBTYPES[code]}: {MEANINGS[code]}" for code in item.subtype]
    defects = [gold.defect + (f" (where: {gold.where})" if gold.where else "") for gold in item.gold]
    found = {
        "kind": item.kind,
        "text": item.T,
        "error_types": "\n".join(_numbered(kinds)),
        "defects": "\n".join(_numbered(defects)),
        "fix": "\n".join(gold.fix for gold in item.gold if gold.fix),
        "answer": item.answer or "",
        "lang": item.lang or "",
    }
    return {name: value for name, value in found.items() if value}


def _numbered(texts: Sequence[str]) -> list[str]:
    return (
        [f"{place}: {text}" for place, text in zip(("first", "second"), texts, strict=False)]
        if len(texts) > 1
        else list(texts)
    )
