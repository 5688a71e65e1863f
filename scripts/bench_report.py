"""Size and time of reports, and what keeping a thumbnail costs.

- 1,000 episodes with a photograph each: megabytes of the page.
- 5,000 episodes with a photograph each: seconds until the page is written, charts included.
- A thumbnail of a photograph of 1280 x 1024 pixels, as JPEG and as PNG: milliseconds of one core.

How long the page's filters take is measured in a real Chromium (tests/browser/test_report_page.py).
Prints one line a figure: what was measured, the value, the target. Exit code 1 where a target is missed.
Run: python scripts/bench_report.py
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

from bench_engine import line
from PIL import Image

from interbench_tasks.images import picture_from
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.report.writing import write_report
from interbench_tasks.runs.pictures import MAX_SIDE
from interbench_tasks.runs.score import score_folder
from tests.report_runs import OFFERS, PICTURE, loop, write_run

MOST_MB, MOST_S = 5.0, 30.0
WORDS_SAID = 60
"""In each reply and each feedback."""
N_THUMBNAILS = 10


def photograph(dice: random.Random, width: int, height: int) -> Image.Image:
    """Soft blobs with fine noise: compresses as photographs do."""
    image = Image.new("RGB", (width, height))
    for cells in (6, 24, 96):
        size = (cells, max(1, cells * height // width))
        blobs = Image.frombytes("RGB", size, dice.randbytes(3 * size[0] * size[1]))
        image = Image.blend(image, blobs.resize((width, height), Image.Resampling.BICUBIC), 0.5)
    return image


def file_of(image: Image.Image, kind: str, quality: int) -> bytes:
    """The picture as a file."""
    file = io.BytesIO()
    image.save(file, kind, quality=quality)
    return file.getvalue()


def record(dice: random.Random, words: list[str], number: int) -> EpisodeRecord:
    """A feedback loop with words and a picture of its own."""
    said = " ".join(dice.choices(words, k=WORDS_SAID)) + " "
    made = loop(number, dice.choice("ABC"), dice.choice("BC"), said=said)
    shown = replace(
        made.turns[0].user, content=(replace(PICTURE, digest=f"{number:032x}"), *made.turns[0].user.content[1:])
    )
    return replace(made, turns=(replace(made.turns[0], user=shown), *made.turns[1:]))


def folder_of(folder: Path, n: int) -> Path:
    """A run folder of n episodes."""
    dice = random.Random(n)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 10))) for _ in range(5000)]
    files = [file_of(photograph(dice, 256, 205), "WEBP", 50) for _ in range(40)]
    pictures = {f"{number:032x}": files[number % 40] for number in range(n)}
    return write_run(folder, [record(dice, words, number) for number in range(n)], pictures=pictures)


def bench_page(folder: Path, n: int) -> tuple[float, float]:
    """Megabytes of a page of n episodes, and the seconds that it took."""
    run = folder_of(folder / f"run{n}", n)
    score_folder(run, OFFERS)
    written = write_report([run], folder / f"{n}.html", OFFERS)
    return written.n_bytes / 1e6, written.wall_s


def bench_thumbnail(kind: str) -> float:
    """Milliseconds of one core for a thumbnail."""
    data = file_of(photograph(random.Random(0), 1280, 1024), kind, 90)
    began = time.thread_time()
    for _ in range(N_THUMBNAILS):
        picture_from(data).thumbnail(MAX_SIDE)
    return (time.thread_time() - began) / N_THUMBNAILS * 1000


def main() -> int:
    """Run all; 1 where a target is missed."""
    with tempfile.TemporaryDirectory() as name:
        size_mb, _ = bench_page(Path(name), 1000)
        large_mb, wall_s = bench_page(Path(name), 5000)
    met = [
        line("a page of 1,000 episodes with pictures: MB", size_mb, f"< {MOST_MB:g}", size_mb < MOST_MB),
        line("a page of 5,000 episodes with pictures: s", wall_s, f"< {MOST_S:g}", wall_s < MOST_S),
    ]
    line("a page of 5,000 episodes with pictures: MB", large_mb, "")
    for kind in ("JPEG", "PNG"):
        line(f"a thumbnail of 1280 x 1024 pixels, {kind}: ms of one core", bench_thumbnail(kind), "")
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
