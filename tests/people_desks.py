"""Desks with simulated items and people, for the tests of the page, the terminal and the files."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

from interbench_tasks.people.desk import Desk, NewItem, StoredPicture

HOSTILE = "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\"> & \u202edesrever"


def png(text: str = "A", size: tuple[int, int] = (320, 200)) -> bytes:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((20, 20, size[0] - 20, size[1] - 20), outline="black", width=4)
    draw.ellipse((60, 50, 160, 150), fill="tomato")
    draw.text((size[0] // 2 + 30, size[1] // 2), text, fill="black")
    data = io.BytesIO()
    image.save(data, format="PNG")
    return data.getvalue()


def payload(name: str, **changes) -> dict:
    return {
        "task": "interfeedback_demo",
        "episode": name,
        "category": "visual_logic",
        "arm": "hierarchical",
        "level": 1,
        "instruction": "Level 1: a simple hint. Do not say the answer.",
        "question": "Which shape comes next in the row?",
        "options": {"A": "a circle", "B": "a star", "C": "a square", "D": "none of these"},
        "target": "B",
        "pictures": ["picture1"],
        "rounds": [{"told": "", "reply": "The shapes alternate, so it must be a circle.\n\nAnswer: A"}],
        **changes,
    }


def lay(desk: Desk, *names: str, needs: int = 1, run: str = "", **changes) -> None:
    """Lay items on a desk; their ids are their names."""
    items = [
        NewItem(id=name, kind="feedback", payload=payload(name, **changes), needs=needs, run=run) for name in names
    ]
    desk.put(items, {"picture1": StoredPicture(mime="image/png", data=png())})
