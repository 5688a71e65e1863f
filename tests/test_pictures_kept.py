"""Small versions of a run's pictures lie beside its episodes; whatever happens to one, the run does not notice."""

from __future__ import annotations

import errno
import io
import json
import random
import threading
import time
from pathlib import Path

import pytest
from PIL import Image

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import PictureError
from interbench_tasks.images import Picture, picture_from
from interbench_tasks.records import Episode, Message, Question, ScriptedTurn
from interbench_tasks.runs.pictures import MAX_SIDE, PICTURES, PictureKeeper, kept_pictures, pictures_of
from tests.critique_runs import played


def photo(width=640, height=480, seed=1):
    return Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(width * height * 3))


def file_of(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def message(*pictures):
    return Message(role="user", content=("Look:", *pictures))


def opened(data):
    return Image.open(io.BytesIO(data))


# --- one thumbnail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF"])
def test_a_thumbnail_is_a_small_webp_of_the_same_shape(kind):
    small = opened(picture_from(file_of(photo(), kind)).thumbnail(256))
    assert (small.format, small.size, small.mode) == ("WEBP", (256, 192), "RGB")


def test_a_small_picture_is_not_enlarged():
    assert opened(picture_from(file_of(photo(24, 16))).thumbnail(256)).size == (24, 16)


@pytest.mark.parametrize("source", ["file", "pil"])
def test_a_thumbnail_is_upright(source):
    tall = Image.new("RGB", (400, 800), "white")
    tall.paste("black", (0, 0, 400, 100))  # the stored top is the left or right side as shown
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise by 90 degrees
    data = file_of(tall, "JPEG", exif=exif)
    picture = picture_from(data if source == "file" else opened(data))
    small = opened(picture.thumbnail(256))
    assert small.size == (256, 128)
    assert max(small.getpixel((250, 64))) < 60
    assert min(small.getpixel((5, 64))) > 200


def test_transparent_parts_are_white():
    small = opened(picture_from(file_of(Image.new("RGBA", (300, 300), (0, 0, 0, 0)))).thumbnail(256))
    assert min(small.getpixel((100, 100))) > 250


def test_a_thumbnail_keeps_no_pixels_in_memory():
    picture = picture_from(file_of(photo()))
    picture.thumbnail(256)
    assert picture._content._pixels is None
    assert picture.encodings == 0


def broken(seed):
    """A file whose header is whole, but not its pixels."""
    return picture_from(file_of(photo(24, 16, seed=seed), "BMP")[:500])


def test_a_file_whose_pixels_are_broken_is_refused():
    with pytest.raises(PictureError, match="cannot be read"):
        broken(3).thumbnail(32)


# --- a folder of them ---------------------------------------------------------------------------------------------


def test_each_picture_is_kept_once_under_its_digest(tmp_path):
    one, other = picture_from(file_of(photo(seed=1))), picture_from(file_of(photo(seed=2)))
    with PictureKeeper(tmp_path) as keeper:
        keeper.keep([one, other, one.ref])
        keeper.keep([one])
    found = kept_pictures(tmp_path)
    assert found == {p.digest: tmp_path / PICTURES / f"{p.digest}.webp" for p in (one, other)}
    assert max(opened(found[one.digest].read_bytes()).size) == MAX_SIDE
    assert keeper.warnings == ()
    assert {file.suffix for file in (tmp_path / PICTURES).iterdir()} == {".webp"}


def test_nothing_is_kept_where_nobody_wants_it(tmp_path):
    with PictureKeeper(tmp_path, wanted=False) as keeper:
        keeper.keep([picture_from(file_of(photo()))])
    assert kept_pictures(tmp_path) == {}
    assert not (tmp_path / PICTURES).exists()


def test_a_reference_without_bytes_is_left_out_and_taken_when_the_bytes_come(tmp_path):
    picture = picture_from(file_of(photo()))
    with PictureKeeper(tmp_path) as keeper:
        keeper.keep([picture.ref])
        keeper.keep([picture])
    assert list(kept_pictures(tmp_path)) == [picture.digest]


def test_a_broken_picture_is_told_once_and_the_others_are_kept(tmp_path):
    good = picture_from(file_of(photo()))
    with PictureKeeper(tmp_path) as keeper:
        keeper.keep([broken(3), broken(4), good])
    assert list(kept_pictures(tmp_path)) == [good.digest]
    (warning,) = keeper.warnings
    assert warning.startswith("2 pictures will be missing in reports: they cannot be read (the first: ")


class FullDisk(PictureKeeper):
    """A disk that takes one picture."""

    tried = 0

    def _write(self, picture: Picture) -> None:
        self.tried += 1
        if self.tried > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        super()._write(picture)


def test_a_full_disk_is_told_once_and_nothing_more_is_tried(tmp_path):
    pictures = [picture_from(file_of(photo(40, 30, seed=n))) for n in range(5)]
    with FullDisk(tmp_path) as keeper:
        keeper.keep(pictures)
    assert list(kept_pictures(tmp_path)) == [pictures[0].digest]
    assert keeper.tried == 2
    (warning,) = keeper.warnings
    assert "cannot be written, none is kept from here on (the first: No space left on device)" in warning


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / PICTURES).write_text("a file where the folder should be")
    with PictureKeeper(tmp_path) as keeper:
        keeper.keep([picture_from(file_of(photo()))])
    assert len(keeper.warnings) == 1


def test_two_ranks_may_keep_the_same_pictures_at_once(tmp_path):
    pictures = [picture_from(file_of(photo(300, 200, seed=n))) for n in range(12)]
    keepers = [PictureKeeper(tmp_path) for _ in range(2)]
    for keeper in keepers:
        threading.Thread(target=keeper.keep, args=(pictures,)).start()
    for keeper in keepers:
        while len(keeper._seen) < len(pictures):
            time.sleep(0.001)
        keeper.close()
    assert set(kept_pictures(tmp_path)) == {picture.digest for picture in pictures}
    assert [keeper.warnings for keeper in keepers] == [(), ()]
    assert all(opened(file.read_bytes()).size == (256, 171) for file in kept_pictures(tmp_path).values())


class Held(PictureKeeper):
    """A disk that hangs until the test lets it go."""

    def __init__(self, folder: Path, **options) -> None:
        super().__init__(folder, **options)
        self.go_on = threading.Event()

    def _write(self, picture: Picture) -> None:
        self.go_on.wait(10)
        super()._write(picture)


def test_no_episode_waits_for_a_slow_disk_and_memory_stays_bounded(tmp_path):
    pictures = [picture_from(file_of(photo(40, 30, seed=n))) for n in range(4)]
    keeper = Held(tmp_path, most_waiting=2 * pictures[0].source_bytes + 100)
    before = time.perf_counter()
    keeper.keep(pictures)
    assert time.perf_counter() - before < 1
    keeper.go_on.set()
    keeper.close()
    assert len(kept_pictures(tmp_path)) == 2
    assert keeper.warnings == ("2 pictures will be missing in reports: they came faster than they could be made small",)


def test_a_stopped_run_waits_for_its_pictures_a_moment_only(tmp_path, monkeypatch):
    monkeypatch.setattr("interbench_tasks.runs.pictures.INTERRUPTED_WAIT_S", 0.05)
    keeper = Held(tmp_path)
    keeper.keep([picture_from(file_of(photo(40, 30)))])
    before = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), keeper:
        raise KeyboardInterrupt
    assert time.perf_counter() - before < 1
    keeper.go_on.set()


# --- a whole run --------------------------------------------------------------------------------------------------


def test_every_picture_that_an_episode_may_show_is_found():
    first, second, third = (picture_from(file_of(photo(20, 20, seed=n))) for n in range(3))
    question = Question(id="q", ability="IE", message=message(third), text="?", target="a")
    episode = Episode(
        id="e",
        doc_id=0,
        question=message(first),
        target="",
        script=(ScriptedTurn(user=message(second)),),
        questions=(question,),
    )
    assert pictures_of(episode) == [first, second, third]


DEMO = Path(__file__).resolve().parents[1] / "task_yamls" / "mmpcbench"
"""The demo's items and pictures."""


@pytest.mark.parametrize(("switch", "kept"), [(None, True), ("off", False)])
def test_a_run_keeps_its_pictures_unless_told_not_to(tmp_path, monkeypatch, switch, kept):
    if switch:
        monkeypatch.setenv("INTERBENCH_THUMBNAILS", switch)
    lines = (DEMO / "demo" / "items.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines[:3]]
    judges = [{"backend": "simulated", "model": "j", "name": "simulated-j"}]
    records, _ = played(tmp_path, rows, SimulatedBackend("default"), pictures_from=DEMO / "demo", judges=judges)
    shown = {picture.digest for record in records for turn in record.turns for picture in turn.user.pictures}
    assert shown
    assert set(kept_pictures(tmp_path / "run")) == (shown if kept else set())
