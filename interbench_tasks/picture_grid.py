"""Several pictures -> one labelled picture, for models that take only one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from interbench_tasks.images import Picture, picture_from

CELL_SIDE = 1024
"""Longest side of a picture in the grid, in pixels; larger ones are made smaller."""
LABEL_HEIGHT = 36
"""Height of the strip above each picture, in pixels."""
MARGIN = 12
"""White space around each cell, in pixels."""


def picture_grid(pictures: Sequence[Picture], labels: Sequence[str], *, max_side: int | None, where: str) -> Picture:
    """One picture with all others in rows, from left to right, each below its label; encoded once, when it is sent.

    Args: max_side = longest side of the whole, in pixels; where = for error messages.
    Raises: PictureError where a picture cannot be read; ValueError where there are none, or not one label each.
    """
    if not pictures or len(pictures) != len(labels):
        raise ValueError(f"a grid needs pictures and one label each, got {len(pictures)} and {len(labels)}")
    cells = [_within_a_cell(picture.pil()) for picture in pictures]
    n_columns = math.ceil(math.sqrt(len(cells)))
    n_rows = math.ceil(len(cells) / n_columns)
    width = max(max(cell.width for cell in cells), 4 * LABEL_HEIGHT) + MARGIN
    height = max(cell.height for cell in cells) + LABEL_HEIGHT + MARGIN
    whole = Image.new("RGB", (n_columns * width + MARGIN, n_rows * height + MARGIN), "white")
    draw = ImageDraw.Draw(whole)
    font = ImageFont.load_default(size=LABEL_HEIGHT * 2 // 3)
    for index, (cell, label) in enumerate(zip(cells, labels, strict=True)):
        left, top = MARGIN + index % n_columns * width, MARGIN + index // n_columns * height
        draw.text((left, top), label, fill="black", font=font)
        whole.paste(cell, (left, top + LABEL_HEIGHT))
        draw.rectangle(
            (left - 1, top + LABEL_HEIGHT - 1, left + cell.width, top + LABEL_HEIGHT + cell.height), outline="black"
        )
    return picture_from(whole, max_side=max_side, where=where)


def _within_a_cell(picture: Image.Image) -> Image.Image:
    picture.thumbnail((CELL_SIDE, CELL_SIDE), Image.Resampling.LANCZOS)
    return picture
