"""Write the items of `mmpcbench_demo` and draw their pictures, e.g. `--out task_yamls/mmpcbench/demo`.

The same command always writes the same items: 8 of each of the 12 subcategories, 24 valid ones and 12 dual errors.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from demo_flaws.degrade import LEVELS, degraded
from demo_flaws.scene import Scene, Spoilt
from demo_flaws.scenes import LANGS, scene
from PIL import Image

SEED = "mmpcbench_demo 1"
PER_FAMILY = 2
VALID_PER_FAMILY = 6
DUAL = (("PC.intra_textual", "BC"), ("EE.ambiguity", "PC.cross_modal"), ("PC.intra_textual", "MP.visual_severe"))
WORDS = ("EE.ambiguity", "EE.unclear_intent", "PC.cross_modal", "PC.intra_textual", "BC")
"""What is spoilt in the words alone."""
Pictures = dict[str, Image.Image]
Row = dict[str, Any]


def lang_of(family: str, number: int) -> str:
    """Every second item of a family that has Chinese words is Chinese."""
    langs = LANGS[family]
    return langs[number % len(langs)]


def items() -> Iterator[tuple[Row, Pictures]]:
    """All items in order, with their pictures."""
    for family in LANGS:
        for number in range(1, PER_FAMILY + 1):
            for subtype in (*WORDS, "PC.inter_visual", "MP.missing_image", "MP.missing_instruction", "MP.mismatch"):
                yield _item(subtype, family, number)
            yield from _visual(family, number)
        for number in range(1, VALID_PER_FAMILY + 1):
            yield _valid(family, number)
        for number, pair in enumerate(DUAL, 1):
            yield _dual(family, number, pair)


def _scene(name: str, family: str, number: int) -> Scene:
    return scene(family, lang_of(family, number), f"{SEED} {name}")


def _row(name: str, made: Scene, **values: Any) -> Row:
    source = {"dataset": "mmpcbench_demo", "id": name}
    return {"id": name, "subject": made.subject, "lang": made.lang, **values, "source": source}


def _name(subtype: str, family: str, number: int) -> str:
    return f"{subtype.lower().replace('.', '_')}_{family}_{number}"


def _shown(made: Scene, values: Mapping[str, int] | None = None) -> Image.Image:
    return made.draw(values or made.values).finished()


def _gold(defect: str, where: str, fix: str) -> Row:
    return {"defect": defect, "where": where, "fix": fix}


def _text(made: Scene, *spoilt: Spoilt) -> str:
    # Chinese sentences follow each other without a space.
    return ("" if made.lang == "zh" else " ").join([made.text, *[one.added for one in spoilt if one.added]])


def _item(subtype: str, family: str, number: int) -> tuple[Row, Pictures]:
    """An item with one defect that needs no degraded picture."""
    name = _name(subtype, family, number)
    made = _scene(name, family, number)
    first, pictures = f"images/{name}.png", {f"images/{name}.png": _shown(made)}
    key = subtype.partition(".")[2] or subtype
    spoilt = made.inter if key == "inter_visual" else made.spoilt.get(key)
    row = {"T": made.text, "Q": made.query, "answer": made.answer}
    if spoilt is not None:
        gold = _gold(spoilt.defect, spoilt.where, spoilt.fix)
        row = {"T": _text(made, spoilt), "Q": spoilt.query or made.query, "answer": spoilt.answer}
        if key == "inter_visual":
            pictures[f"images/{name}_other.png"] = _shown(made, made.other_values)
    elif key == "missing_image":
        gold, pictures = _gold(made.no_picture, "the picture", made.facts), {}
    elif key == "missing_instruction":
        gold = _gold(made.nothing_asked, "the question", f"{made.text} {made.query}")
        row = {**row, "T": "", "Q": ""}
    else:
        families = list(LANGS)
        stranger = families[(families.index(family) + 1) % len(families)]
        pictures = {first: _shown(_scene(name, stranger, number))}
        gold = _gold(made.wrong_picture, "the picture", made.facts)
    how: Row = {"method": "written" if spoilt is not None else "left out or exchanged", "params": {}}
    return _row(name, made, subtype=subtype, **row, images=list(pictures), gold=gold, inject=how), pictures


def _visual(family: str, number: int) -> Iterator[tuple[Row, Pictures]]:
    """One scene at three levels; their masks are nested."""
    cluster = f"mp_visual_{family}_{number}"
    made = _scene(cluster, family, number)
    for level in LEVELS:
        name = f"mp_visual_{level}_{family}_{number}"
        worse, how = _worse(made, level, cluster)
        row = _row(
            name,
            made,
            subtype=f"MP.visual_{level}",
            T=made.text,
            Q=made.query,
            images=[f"images/{name}.png"],
            gold=_gold(made.unreadable, "the picture", made.facts),
            answer=made.answer,
            inject=how,
            cluster=cluster,
        )
        yield row, {f"images/{name}.png": worse}


def _worse(made: Scene, level: str, seed: str) -> tuple[Image.Image, Row]:
    found = degraded(_shown(made), level, seed=f"{SEED} {seed}")
    params = {"p": found.p, "op": found.operation, "mask": found.mask, "seed": f"{SEED} {seed}"}
    return found.image, {"method": f"degraded, {level}", "params": params}


def _valid(family: str, number: int) -> tuple[Row, Pictures]:
    name = f"valid_{family}_{number}"
    made = _scene(name, family, number)
    picture = f"images/{name}.png"
    row = _row(name, made, subtype="valid", T=made.text, Q=made.query, images=[picture], gold=[], answer=made.answer)
    return row, {picture: _shown(made)}


def _dual(family: str, number: int, pair: tuple[str, str]) -> tuple[Row, Pictures]:
    """An item with two defects: the words of both, and where one is of the picture, a picture made worse."""
    name = f"dual_{family}_{number}"
    made = _scene(name, family, number)
    picture = f"images/{name}.png"
    spoilt = [made.spoilt[key] for key in (part.partition(".")[2] or part for part in pair) if key in made.spoilt]
    gold = [_gold(one.defect, one.where, one.fix) for one in spoilt]
    image = _shown(made)
    how: Row = {"method": "written", "params": {}}
    if "MP.visual_severe" in pair:
        image, how = _worse(made, "severe", name)
        gold.append(_gold(made.unreadable, "the picture", made.facts))
    asked = [one.query for one in spoilt if one.query] or [made.query]
    row = _row(
        name, made, subtype=list(pair), T=_text(made, *spoilt), Q=asked[-1], images=[picture], gold=gold, inject=how
    )
    return row, {picture: image}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write `items.jsonl` and `images/` into the folder given by `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for items.jsonl and images/")
    chosen = parser.parse_args(arguments)
    (chosen.out / "images").mkdir(parents=True, exist_ok=True)
    lines = []
    for row, pictures in items():
        for path, image in pictures.items():
            image.save(chosen.out / path, optimize=True)
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    (chosen.out / "items.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
