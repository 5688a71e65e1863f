"""The pictures of a report: thumbnails from the run folders, made smaller still where there are very many."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from interbench_tasks.runs.pictures import kept_pictures

BYTES_PER_EPISODE = 4_600
"""Of transcripts and pictures together, on average: a page of 1,000 episodes then has less than 5 MB."""
FEW_BYTES = 1_000_000
"""Pictures up to this size go in as they are, whatever else there is."""
MOST_BYTES = 60_000_000
"""Of pictures in any page; browsers open one of 100 MB within seconds."""
SMALLER = ((192, 45), (128, 35), (96, 30))
"""Longest side in pixels, and quality, of those that are made smaller: the first that is enough."""
SAMPLE = 24
"""Pictures that are tried to find out which is."""
THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Thumbnails:
    """What goes into the page of pictures."""

    files: Mapping[str, str]
    """Digest -> WebP file in base64."""
    note: str
    """What there is to say of them."""


def thumbnails_from(
    folders: Sequence[Path], digests: Mapping[str, int], *, n_episodes: int, n_bytes: int
) -> Thumbnails:
    """The pictures that a report shows, each once.

    Args: digests = of those that are shown, each with the number of the folder to look in first; n_bytes = of the
        transcripts.
    """
    if not digests:
        return Thumbnails(files={}, note="")
    kept = [kept_pictures(folder) for folder in folders]
    paths = {digest: path for digest, first in digests.items() if (path := _path(digest, first, kept)) is not None}
    data = {digest: found for digest, path in paths.items() if (found := _read(path)) is not None}
    room = (BYTES_PER_EPISODE * n_episodes - n_bytes) * 3 // 4  # base64 writes 3 bytes as 4
    chosen = _chosen(list(data.values()), min(MOST_BYTES, max(FEW_BYTES, room)))
    if chosen is not None:
        data = dict(zip(data, _smaller(list(data.values()), *chosen), strict=True))
    files = {digest: base64.b64encode(file).decode("ascii") for digest, file in data.items()}
    return Thumbnails(files=files, note=_note(len(digests), len(files), chosen[0] if chosen else None))


def _chosen(data: Sequence[bytes], most: int) -> tuple[int, int] | None:
    """Side and quality with which the pictures have room; None where they have as they are."""
    total = sum(map(len, data))
    if total <= most:
        return None
    sample = data[:: max(1, len(data) // SAMPLE)]
    for chosen in SMALLER[:-1]:
        share = sum(map(len, _smaller(sample, *chosen))) / sum(map(len, sample))
        if share * total <= most:
            return chosen
    return SMALLER[-1]


def _path(digest: str, first: int, kept: Sequence[Mapping[str, Path]]) -> Path | None:
    if digest in kept[first]:
        return kept[first][digest]
    return next((own[digest] for own in kept if digest in own), None)


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _smaller(data: Sequence[bytes], side: int, quality: int) -> list[bytes]:
    with ThreadPoolExecutor(THREADS) as pool:  # Pillow lets go of the interpreter's lock while it works
        return list(pool.map(lambda file: _made_smaller(file, side, quality), data))


def _made_smaller(file: bytes, side: int, quality: int) -> bytes:
    """The file at that size; itself where that is smaller or cannot be read."""
    target = io.BytesIO()
    try:
        with Image.open(io.BytesIO(file)) as image:
            image.thumbnail((side, side), Image.Resampling.BICUBIC)
            image.save(target, "WEBP", quality=quality, method=2)  # 4 takes twice as long for 4% less
    except (OSError, ValueError):
        return file
    return min(file, target.getvalue(), key=len)


def _note(n_shown: int, n_kept: int, side: int | None) -> str:
    if n_kept == 0:
        return "The run folders hold no pictures: in their place stand size and digest."
    missing = (
        f" {n_shown - n_kept} of {n_shown} were not kept: size and digest stand in their place."
        if n_kept < n_shown
        else ""
    )
    smaller = f" There are many, so none is larger than {side} pixels." if side else ""
    return f"Pictures are shown small; the models saw them as large as their captions say.{smaller}{missing}"
