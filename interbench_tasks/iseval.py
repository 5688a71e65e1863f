"""ISEval's flawed questions as items of MMPCBench, so that its real replies and pictures can be used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interbench_tasks.errors import DataError
from interbench_tasks.flaws import VALID

SUBTYPE_OF: Mapping[str, str] = {
    "exclusive_condition": "PC.cross_modal",
    "irrelevant_condition": "EE.unclear_intent",
    "lacks_condition": "BC",
    "grammatical_worded_error": "EE.unclear_intent",
    "misuse_confusion": "PC.intra_textual",
    "unclear_citation": "EE.ambiguity",
    "misguided_logic": "PC.intra_textual",
}
"""ISEval's kind -> the nearest subcategory. OURS: the taxonomies differ, so results by subcategory are of this table.
The kind itself is kept in `extra.conflict_type`."""
NEEDED = ("pid", "ill_query", "conflict_type", "conflict", "image_path")


def iseval_rows(source: Path, *, valid: bool = False) -> list[dict[str, Any]]:
    """Items in canonical form, in the order of the file; picture paths stay relative to `source`.

    Args: source = ISEval's JSONL file, or the folder that holds `test.jsonl`; valid = also the sound version of each
        question, once, as a valid item.
    Raises: DataError naming file and line, with the columns that there are, where it is no such file.
    """
    file = source / "test.jsonl" if source.is_dir() else source
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from error
    rows: list[dict[str, Any]] = []
    sound: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            raw = _checked(line, f"{file}, line {number}")
            rows.append(_flawed(raw))
            if valid and raw.get("normal_query"):
                sound.setdefault(str(raw["normal_query"]), _sound(raw, len(sound)))
    if not rows:
        raise DataError(f"{file}: holds no rows")
    return [*rows, *sound.values()]


def write_items(rows: Sequence[Mapping[str, Any]], source: Path, target: Path) -> None:
    """Write a JSONL file; its picture paths are relative to its own folder, or else absolute.

    Raises: DataError where the folder cannot be written.
    """
    folder = source if source.is_dir() else source.parent
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(
            json.dumps(
                {**row, "images": [_moved(path, folder, target.parent) for path in row["images"]]}, ensure_ascii=False
            )
            + "\n"
            for row in rows
        )
        target.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error}") from error


def _moved(path: str, old: Path, new: Path) -> str:
    absolute = (old / path).resolve()
    return absolute.relative_to(new.resolve()).as_posix() if absolute.is_relative_to(new.resolve()) else str(absolute)


def _checked(line: str, where: str) -> Mapping[str, Any]:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: no valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise DataError(f"{where}: a row must be an object, got {type(raw).__name__}")
    missing = [key for key in NEEDED if key not in raw]
    if missing:
        raise DataError(f"{where}: is no row of ISEval: lacks {', '.join(missing)}\n  it has: {', '.join(raw)}")
    if raw["conflict_type"] not in SUBTYPE_OF:
        known = ", ".join(SUBTYPE_OF)
        raise DataError(f"{where}: conflict_type = {raw['conflict_type']!r} is unknown\n  allowed: {known}")
    return raw


def _flawed(raw: Mapping[str, Any]) -> dict[str, Any]:
    conflict = raw["conflict"]
    return {
        "id": f"{raw['pid']}/{raw['conflict_type']}",
        "lang": "en",
        "subtype": SUBTYPE_OF[raw["conflict_type"]],
        "Q": str(raw["ill_query"]),
        "images": list(_pictures(raw)),
        "gold": {
            "defect": str(conflict.get("conflict_reason") or conflict.get("recomposed_premise")),
            "where": str(conflict.get("recomposed_premise") or ""),
            "fix": str(conflict.get("original_premise") or ""),
        },
        **_shared(raw),
        "extra": {"conflict_type": raw["conflict_type"], "level": str(raw.get("level", ""))},
    }


def _sound(raw: Mapping[str, Any], number: int) -> dict[str, Any]:
    row = {"id": f"{raw['pid']}/{VALID}/{number}", "lang": "en", "subtype": VALID, "Q": str(raw["normal_query"])}
    return {**row, "images": list(_pictures(raw)), "gold": [], **_shared(raw)}


def _shared(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Versions of one question share its picture and its cluster."""
    meta = raw.get("meta_info") or {}
    found = {"source": {"dataset": "ISEval", "id": str(raw["pid"])}, "cluster": str(raw["pid"])}
    answer, options = str(meta.get("final_answer") or ""), meta.get("options") or []
    place = "ABCDEFGH".find(answer) if len(answer) == 1 else -1
    if 0 <= place < len(options):  # the question is asked without its options, so a letter would be no answer
        answer = str(options[place])
    return found | ({"answer": answer} if answer else {})


def _pictures(raw: Mapping[str, Any]) -> Iterator[str]:
    paths = raw["image_path"]
    yield from (str(path) for path in (paths if isinstance(paths, list) else [paths]) if path)
