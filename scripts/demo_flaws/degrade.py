"""Makes a part of a picture unreadable: the most salient patches first, by blur, pixelation or a warp.

Source: MMPCBench degrades 20-30%, 40-50% or 70-80% of the salient region; saliency, operations and their strength are
ours. The masks of one picture are nested, because one order of patches serves all levels, so that severities compare.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

GRID = 16
"""Patches along each side."""
LEVELS: dict[str, tuple[float, float]] = {"light": (0.20, 0.30), "medium": (0.40, 0.50), "severe": (0.70, 0.80)}
"""Level -> range of the share of the picture's area."""
Operation = Literal["blur", "pixelate", "warp"]
OPERATIONS: tuple[Operation, ...] = ("blur", "pixelate", "warp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Degraded:
    """A picture made worse, and how."""

    image: Image.Image
    p: float
    """Share of patches that were worked on, in [0, 1]."""
    operation: Operation
    mask: str
    """Hex digits of GRID x GRID bits, row by row; 1 = worked on."""


def saliency_order(image: Image.Image) -> list[int]:
    """The patches, row by row, the most salient first: Sobel gradient magnitude summed over each."""
    grey = np.asarray(image.convert("L"), dtype=np.float64)
    padded = np.pad(grey, 1, mode="edge")
    right, left = padded[:, 2:], padded[:, :-2]
    across = (right - left)[:-2] + 2 * (right - left)[1:-1] + (right - left)[2:]
    below, above = padded[2:], padded[:-2]
    down = (below - above)[:, :-2] + 2 * (below - above)[:, 1:-1] + (below - above)[:, 2:]
    size = np.hypot(across, down)
    sums = [size[rows, columns].sum() for rows, columns in _patches(grey.shape[0], grey.shape[1])]
    return sorted(range(GRID * GRID), key=lambda patch: (-round(float(sums[patch]), 3), patch))


def degraded(image: Image.Image, level: str, *, seed: str) -> Degraded:
    """The picture at a level; the same for the same seed. Levels of one picture and seed share order and operation."""
    image = image.convert("RGB")
    low, high = LEVELS[level]
    p = random.Random(f"{seed} {level}").uniform(low, high)
    operation = random.Random(f"{seed} operation").choice(OPERATIONS)
    chosen = set(saliency_order(image)[: math.ceil(p * GRID * GRID)])
    mask = np.zeros((image.height, image.width), dtype=np.bool_)
    for patch, (rows, columns) in enumerate(_patches(image.height, image.width)):
        mask[rows, columns] = patch in chosen
    worse = np.where(mask[..., None], np.asarray(_OPERATIONS[operation](image)), np.asarray(image))
    bits = "".join("1" if patch in chosen else "0" for patch in range(GRID * GRID))
    return Degraded(
        image=Image.fromarray(worse.astype(np.uint8)).quantize(64, dither=Image.Dither.NONE),
        p=round(len(chosen) / (GRID * GRID), 4),
        operation=operation,
        mask=f"{int(bits, 2):0{GRID * GRID // 4}x}",
    )


def _patches(height: int, width: int) -> list[tuple[slice, slice]]:
    rows = [slice(height * i // GRID, height * (i + 1) // GRID) for i in range(GRID)]
    columns = [slice(width * i // GRID, width * (i + 1) // GRID) for i in range(GRID)]
    return [(row, column) for row in rows for column in columns]


def _blurred(image: Image.Image) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(0.03 * max(image.size)))


def _pixelated(image: Image.Image) -> Image.Image:
    block = max(1, min(image.size) // 24)
    small = image.resize((math.ceil(image.width / block), math.ceil(image.height / block)), Image.Resampling.BOX)
    return small.resize(image.size, Image.Resampling.NEAREST)


def _warped(image: Image.Image) -> Image.Image:
    """Rows and columns shifted along sine waves of 0.02 x the short side, twice across each patch."""
    pixels: NDArray[np.uint8] = np.asarray(image)
    amplitude = 0.02 * min(image.size)
    y, x = np.mgrid[0 : image.height, 0 : image.width]
    wave = 2 * math.pi * 2 * GRID
    from_x = np.rint(x + amplitude * np.sin(wave * y / image.height)).astype(int).clip(0, image.width - 1)
    from_y = np.rint(y + amplitude * np.sin(wave * x / image.width)).astype(int).clip(0, image.height - 1)
    return Image.fromarray(pixels[from_y, from_x])


_OPERATIONS = {"blur": _blurred, "pixelate": _pixelated, "warp": _warped}
