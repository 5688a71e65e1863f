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

BYTES_PER_EPISODE = 2_500
"""Of pictures, on average; base64 makes a third more of it, so 1,000 episodes have 3.3 MB of pictures."""
FEW_BYTES = 2_000_000
"""Pictures up to this size go in as they are, however few episodes there are."""
SMALLER = ((192, 45), (128, 35))
"""Longest side in pixels, and quality, of those that are made smaller."""
THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Thumbnails:
    """What goes into the page of pictures."""

    files: Mapping[str, str]
    """Digest -> WebP file in base64."""
    note: str
    """What there is to say of them."""


def thumbnails_from(folders: Sequence[Path], digests: Mapping[str, int], n_episodes: int) -> Thumbnails:
    """The pictures that a report shows, each once.

    Args: digests = of those that are shown, each with the number of the folder to look in first.
    """
    if not digests:
        return Thumbnails(files={}, note="")
    kept = [kept_pictures(folder) for folder in folders]
    paths = {digest: path for digest, first in digests.items() if (path := _path(digest, first, kept)) is not None}
    data = {digest: found for digest, path in paths.items() if (found := _read(path)) is not None}
    most = max(FEW_BYTES, BYTES_PER_EPISODE * n_episodes)
    side = None
    for side_and_quality in SMALLER:
        if sum(map(len, data.values())) <= most:
            break
        side = side_and_quality[0]
        data = _smaller(data, *side_and_quality)
    files = {digest: base64.b64encode(file).decode("ascii") for digest, file in data.items()}
    return Thumbnails(files=files, note=_note(len(digests), len(files), side))


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


def _smaller(data: Mapping[str, bytes], side: int, quality: int) -> dict[str, bytes]:
    with ThreadPoolExecutor(THREADS) as pool:  # Pillow lets go of the interpreter's lock while it works
        made = list(pool.map(lambda file: _made_smaller(file, side, quality), data.values()))
    return dict(zip(data, made, strict=True))


def _made_smaller(file: bytes, side: int, quality: int) -> bytes:
    """The file at that size; itself where that is smaller or cannot be read."""
    target = io.BytesIO()
    try:
        with Image.open(io.BytesIO(file)) as image:
            image.thumbnail((side, side), Image.Resampling.LANCZOS)
            image.save(target, "WEBP", quality=quality)
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
