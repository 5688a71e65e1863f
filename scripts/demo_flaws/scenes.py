"""The four families of scenes: a bar chart, a price list, a road map, and pieces on a tray."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from demo_items.canvas import BLUE, GREY, INK, ORANGE, PALE, WHITE, Canvas

from demo_flaws.scene import Scene, Spoilt
from demo_flaws.words import FAMILIES, SAME

WIDTH, HEIGHT = 320, 224
LABELS: Mapping[str, Sequence[str]] = {
    "bars": ("A", "B", "C", "D", "E"),
    "prices": ("PEN", "CUP", "BAG", "CAP", "TOY"),
    "road": ("Q", "R", "S", "T"),
    "tray": ("circle", "square", "triangle"),
}
SUBJECTS = {"bars": "statistics", "prices": "daily life", "road": "geography", "tray": "counting"}
LANGS: Mapping[str, Sequence[str]] = {family: tuple(words) for family, words in FAMILIES.items()}


def bars(values: Mapping[str, int]) -> Canvas:
    """A bar chart with the number above each bar and the letter below."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.line([(30, 190), (300, 190)])
    for place, (label, value) in enumerate(values.items()):
        left = 42 + place * 52
        canvas.box(left, 190 - 14 * value, 34, 14 * value, fill=BLUE if place % 2 else ORANGE)
        canvas.text((left + 17, 190 - 14 * value - 14), str(value), size=16)
        canvas.text((left + 17, 206), label, size=16)
    return canvas


def prices(values: Mapping[str, int]) -> Canvas:
    """A table of names and numbers."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.box(30, 12, 260, 200, fill=PALE)
    for place, (label, value) in enumerate(values.items()):
        y = 36 + place * 38
        canvas.text((100, y), label, size=22)
        canvas.text((240, y), str(value), size=22)
        if place:
            canvas.line([(40, y - 19), (280, y - 19)], width=1.5, colour=GREY)
    return canvas


def road(values: Mapping[str, int]) -> Canvas:
    """A road with villages at their distances from P."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.line([(24, 112), (300, 112)], width=7, colour=GREY)
    for place, (label, value) in enumerate({"P": 0, **values}.items()):
        x = 30 + 13 * value
        canvas.disc((x, 112), 9, fill=ORANGE if place else BLUE, outline=INK)
        canvas.text((x, 82 if place % 2 else 142), label, size=18)
        canvas.text((x, 58 if place % 2 else 168), str(value), size=15)
    return canvas


def tray(values: Mapping[str, int]) -> Canvas:
    """Rows of pieces, one row a kind."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.box(12, 12, WIDTH - 24, HEIGHT - 24, fill=PALE)
    for row, (shape, n) in enumerate(values.items()):
        for column in range(n):
            fill = (BLUE, ORANGE, WHITE)[(row + column) % 3]
            canvas.shape(shape, (38 + column * 30, 52 + row * 60), 11, fill=fill, width=2)
    return canvas


DRAW = {"bars": bars, "prices": prices, "road": road, "tray": tray}


def numbers(family: str, dice: random.Random) -> list[int]:
    """Different numbers for the labels of a family; of a road they grow."""
    found = dice.sample(range(2, 10), len(LABELS[family])) if family != "road" else []
    return found or sorted(dice.sample(range(3, 20, 4), len(LABELS[family])))


def scene(family: str, lang: str, seed: str) -> Scene:
    """A scene of a family, the same for the same seed."""
    dice = random.Random(seed)
    values = dict(zip(LABELS[family], numbers(family, dice), strict=True))
    a, b = max(values, key=lambda label: values[label]), min(values, key=lambda label: values[label])
    right, n = values[a], dice.choice([12, 15, 16, 18])
    # Another number that the picture can show, and that no other label has.
    nearer = [*range(right - 3, 0, -1), right - 2, right - 1]
    wrong = next(value for value in nearer if value > 0 and value not in values.values())
    words, same = FAMILIES[family][lang], SAME[lang]
    said: dict[str, str | int] = {"a": a, "b": b, "right": right, "wrong": wrong, "n": n, "m": n + 5}
    query = words["query"].format(**said)
    difference = str(right - values[b])
    return Scene(
        family=family,
        lang=lang,
        subject=SUBJECTS[family],
        draw=DRAW[family],
        values=values,
        other_values={**values, a: wrong},
        text=words["text"],
        query=query,
        answer=difference,
        facts="; ".join(words["fact"].format(label=label, value=value) for label, value in values.items()),
        spoilt=_spoilt(words, same, said, query, difference),
        inter=Spoilt(
            defect=words["inter"].format(**said),
            fix=words["first"],
            answer=difference,
            where="the two pictures",
            added=words["same"],
        ),
        unreadable=same["unreadable"],
        no_picture=same["no_picture"],
        nothing_asked=same["nothing_asked"],
        wrong_picture=same["wrong_picture"],
    )


def _spoilt(
    words: Mapping[str, str], same: Mapping[str, str], said: Mapping[str, str | int], query: str, difference: str
) -> dict[str, Spoilt]:
    """Each way of spoiling the words of a scene."""

    def of(name: str) -> str:
        return words[name].format(**said)

    meant = same["i_mean"].format(query=query)
    return {
        "ambiguity": Spoilt(defect=of("ambiguity"), fix=meant, answer=difference, query=of("ambiguous")),
        "unclear_intent": Spoilt(defect=same["unclear"], fix=meant, answer=difference, query=of("keywords")),
        "cross_modal": Spoilt(
            defect=of("contradiction"), fix=of("right"), answer=difference, where="text and picture", added=of("false")
        ),
        "intra_textual": Spoilt(
            defect=of("intra"),
            fix=of("first_statement"),
            answer=f"{said['right']}; {said['n']}",
            where="the text",
            query=of("per"),
            added=of("statements"),
        ),
        "BC": Spoilt(
            defect=of("beyond_defect"), fix=of("beyond_fix"), answer=str(2 * int(said["right"])), query=of("beyond")
        ),
    }
