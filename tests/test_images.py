"""A picture's bytes pass through or are encoded once; its digest, size and type tell what is sent."""

from __future__ import annotations

import base64
import copy
import dataclasses
import io
import os
import pickle
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from interbench_tasks import image_pixels
from interbench_tasks.errors import DataError, PictureError
from interbench_tasks.images import Picture, digest_of, picture_from
from interbench_tasks.records import Message, PictureRef

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
DATA = Path(os.environ.get("INTERBENCH_TEST_DATA", SHARED))
SIGNATURES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/webp": b"RIFF"}


def photo(width=24, height=16, seed=1):
    return Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(width * height * 3))


def file_of(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


PNG = file_of(photo(), "PNG")
BMP = file_of(photo(), "BMP")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_bytes_that_an_api_takes_pass_through_untouched(kind):
    data = file_of(photo(), kind)
    picture = picture_from(data)
    assert picture.data is data
    assert (picture.passed_through, picture.encodings) == (True, 0)
    assert (picture.width, picture.height, picture.mime) == (24, 16, f"image/{kind.lower()}")
    assert picture.digest == digest_of(data)
    assert len(picture.digest) == 32


def test_anything_else_is_encoded_exactly_once_for_all_turns_and_roles():
    picture = picture_from(BMP)
    assert (picture.passed_through, picture.encodings) == (False, 0)
    first = picture.data
    for _ in range(3):
        assert picture.data is first
        assert base64.b64decode(picture.base64) == first
        assert picture.base64 is picture.base64
        assert picture.data_url == f"data:image/png;base64,{base64.b64encode(first).decode()}"
        picture.pil()
    assert picture.encodings == 1


def test_two_threads_that_ask_at_once_get_the_same_bytes_encoded_once(monkeypatch):
    calls = []

    def slow(image, mime, encode=image_pixels.encoded):
        calls.append(mime)
        time.sleep(0.05)  # long enough for all threads to be inside
        return encode(image, mime)

    monkeypatch.setattr(image_pixels, "encoded", slow)
    picture, barrier = picture_from(BMP), threading.Barrier(8)

    def ask(use):
        barrier.wait()
        return use(picture)

    uses = [lambda p: p.data, lambda p: base64.b64decode(p.base64)] * 4
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(ask, uses))
    assert len(set(results)) == 1
    assert (calls, picture.encodings) == (["image/png"], 1)


def test_pictures_of_many_threads_are_decoded_side_by_side_without_a_warning():
    files = [file_of(photo(seed=i), kind) for i in range(8) for kind in ("BMP", "GIF", "TIFF", "PNG")]
    with ThreadPoolExecutor(8) as pool:
        pictures = list(pool.map(picture_from, files))
        sizes = list(pool.map(lambda p: (p.pil().size, len(p.data) > 0), pictures))
    assert set(sizes) == {((24, 16), True)}


@pytest.mark.parametrize("data", [PNG, BMP])
def test_whoever_changes_a_pil_picture_changes_only_their_own(data):
    picture = picture_from(data)
    mine = picture.pil()
    mine.paste("black", (0, 0, 24, 16))
    mine.info["mine"] = True
    assert picture.pil().tobytes() == photo().tobytes()
    assert "mine" not in picture.pil().info


def test_a_pil_source_that_is_changed_afterwards_changes_nothing():
    source = photo()
    picture = picture_from(source)
    source.paste("black", (0, 0, 24, 16))
    assert picture.pil().tobytes() == photo().tobytes()


def test_released_data_is_made_again_when_it_is_needed():
    for source in (PNG, BMP, photo(), file_of(photo().convert("CMYK"), "JPEG")):
        picture = picture_from(source)
        before = picture.data, picture.base64, picture.pil().tobytes()
        picture.release()
        assert picture.pil().tobytes() == before[2]
        assert (picture.data, picture.base64) == before[:2]
        assert picture.encodings == (0 if picture.passed_through else 2)  # once before, once after


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
def test_every_kind_of_source_gives_the_same_picture(kind, tmp_path, monkeypatch):
    data = file_of(photo(), kind)
    path = tmp_path / "picture.wrong-suffix"
    path.write_bytes(data)
    monkeypatch.chdir(tmp_path)
    sources = [
        data,
        bytearray(data),
        memoryview(data),
        path,
        str(path),
        path.name,
        {"bytes": data, "path": None},
        {"bytes": data, "path": "gone.png"},
        {"bytes": None, "path": str(path)},
        {"path": path.name},
    ]
    pictures = [picture_from(source) for source in sources]
    assert set(pictures) == {pictures[0]}
    assert {picture.data for picture in pictures} == {pictures[0].data}


def test_the_mime_type_is_that_of_the_bytes_whatever_the_name_says(tmp_path):
    path = tmp_path / "photo.png"
    path.write_bytes(file_of(photo(), "WEBP"))
    assert picture_from(path).mime == "image/webp"
    assert picture_from({"bytes": file_of(photo(), "JPEG"), "path": "photo.webp"}).mime == "image/jpeg"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, r"there is no picture \(None\)"),
        (b"", "no bytes"),
        ({}, "neither 'bytes' nor 'path'"),
        ({"bytes": None, "path": None}, "neither 'bytes' nor 'path'"),
        ({"bytes": b"", "path": "photo.png"}, r"photo\.png: the picture has no bytes"),
        ({"bytes": "aGVsbG8="}, "'bytes' holds str"),
        ("gone/photo.png", r"gone/photo\.png: no such file in "),
        ("/gone/photo.png", r"photo\.png: no such file$"),
        ("https://example.org/a.png", "local files only"),
        ("HTTP://example.org/a.png", "local files only"),
        ("data:image/png;base64," + "A" * 10_000, r"AAA\.\.\.: pictures are read from local files only"),
        ("a\0b", "cannot be read"),
        ("", "cannot be read"),
        (".", "cannot be read"),
        (7, "no picture can be made from int"),
        (b"<html>", "not a picture"),
    ],
)
def test_what_gives_no_picture_is_an_error_that_says_where_and_why(source, message):
    with pytest.raises(PictureError, match=message) as caught:
        picture_from(source, where="row 12, column image")
    assert str(caught.value).startswith("row 12, column image: ")
    assert len(str(caught.value)) < 600
    assert isinstance(caught.value, DataError)
    with pytest.raises(PictureError, match=message):
        picture_from(source)


def test_an_error_on_first_use_says_where_as_well(tmp_path):
    path = tmp_path / "broken.bmp"
    path.write_bytes(BMP[:500])
    picture = picture_from(path, where="row 3")
    for use in (lambda: picture.data, lambda: picture.base64, lambda: picture.data_url, picture.pil):
        with pytest.raises(PictureError, match=r"^row 3: .*broken\.bmp: the picture cannot be read"):
            use()
    assert picture.encodings == 0


def test_a_closed_pil_picture_is_an_error():
    image = Image.open(io.BytesIO(PNG))
    image.close()
    with pytest.raises(PictureError, match="row 1: the picture cannot be read"):
        picture_from(image, where="row 1")


def test_a_pil_picture_without_pixels_is_an_error():
    with pytest.raises(PictureError, match="0 x 3 pixels"):
        picture_from(Image.new("RGB", (0, 3)))


def test_the_digest_changes_exactly_where_the_sent_bytes_do():
    data = file_of(photo(40, 20), "PNG")
    full = picture_from(data)
    assert picture_from(data, max_side=40) == picture_from(data, max_side=10_000) == full
    sizes = [picture_from(data, max_side=side) for side in (30, 20, 10)]
    assert len({picture.digest for picture in (full, *sizes)}) == 4
    assert picture_from(data, max_side=20) == sizes[1]
    assert picture_from(data, max_bytes=2_000) != full
    assert [(picture.width, picture.height) for picture in sizes] == [(30, 15), (20, 10), (10, 5)]
    assert picture_from(photo(40, 20)) != picture_from(photo(40, 20), max_side=20)


def test_pil_pictures_differ_in_digest_by_mode_size_pixels_and_palette():
    palette = Image.new("P", (6, 4), 0)
    other = Image.new("P", (6, 4), 0)
    other.putpalette([9, 9, 9])
    see_through = palette.copy()
    see_through.info["transparency"] = 0
    images = [Image.new("RGB", (6, 4)), Image.new("RGB", (4, 6)), Image.new("L", (6, 4)), palette, other, see_through]
    images.append(Image.new("RGB", (6, 4), "red"))
    assert len({picture_from(image).digest for image in images}) == len(images)
    assert picture_from(photo()) == picture_from(photo())


def test_a_pil_picture_of_a_jpeg_is_sent_as_jpeg_and_others_as_png():
    with Image.open(io.BytesIO(file_of(photo(), "JPEG"))) as image:
        picture = picture_from(image)
        assert picture.mime == "image/jpeg"
        assert picture.data[:3] == b"\xff\xd8\xff"
    assert picture_from(photo()).mime == "image/png"


def test_a_file_over_max_bytes_is_made_smaller_as_jpeg_and_an_error_where_that_is_not_enough():
    smooth = Image.linear_gradient("L").resize((300, 300)).convert("RGB")
    data = file_of(smooth, "PNG", compress_level=0)
    picture = picture_from(data, max_bytes=50_000)
    assert (picture.passed_through, picture.mime) == (False, "image/jpeg")
    assert len(picture.data) <= 50_000
    assert picture_from(data, max_bytes=50_000, max_side=64).mime == "image/png"
    hopeless = picture_from(data, max_bytes=100, where="row 5")
    for _ in range(2):
        with pytest.raises(PictureError, match=r"row 5: 300 x 300 pixels take .* bytes, over max_bytes = 100; set max"):
            _ = hopeless.data
    assert hopeless.encodings == 1
    assert hopeless.pil().size == (300, 300)


@pytest.mark.parametrize("max_side", [0, -1])
def test_a_senseless_max_side_is_refused(max_side):
    with pytest.raises(ValueError, match="at least 1 pixel"):
        picture_from(PNG, max_side=max_side)


def test_a_picture_is_its_reference_to_records():
    picture = picture_from(PNG)
    ref = PictureRef(digest=picture.digest, width=24, height=16, mime="image/png")
    assert isinstance(picture, PictureRef)
    assert picture == ref
    assert ref == picture
    assert hash(picture) == hash(ref)
    assert picture != picture_from(file_of(photo(seed=2), "PNG"))
    assert picture != "picture"
    assert type(picture.ref) is PictureRef
    assert picture.ref == picture
    message = Message(role="user", content=("Look: ", picture, " What is it?"))
    assert message.pictures == (picture,)
    fields = {"digest": picture.digest, "width": 24, "height": 16, "mime": "image/png"}
    assert dataclasses.asdict(message)["content"][1] == dataclasses.asdict(picture) == fields
    assert "base64" not in repr(picture)
    assert repr(picture).startswith("Picture(digest=")


def test_a_picture_cannot_be_changed():
    picture = picture_from(PNG)
    with pytest.raises(dataclasses.FrozenInstanceError):
        picture.width = 3


def test_a_copy_is_the_picture_itself_and_a_pickled_one_sends_the_same():
    for source in (PNG, BMP, photo()):
        picture = picture_from(source, max_side=12)
        assert copy.deepcopy([picture])[0] is copy.copy(picture) is picture
        again = pickle.loads(pickle.dumps(picture))
        assert isinstance(again, Picture)
        assert again == picture
        assert again.data == picture.data


# What the shared behaviour cases of the area "image" ask for.


def test_case_d_image_01_a_cmyk_jpeg_can_be_sent():
    picture = picture_from(file_of(Image.new("CMYK", (8, 6), (0, 200, 200, 10)), "JPEG"))
    sent = Image.open(io.BytesIO(picture.data))
    assert (sent.mode, sent.size, picture.mime) == ("RGB", (8, 6), "image/jpeg")


def test_case_d_image_02_a_turned_jpeg_is_sent_as_a_viewer_shows_it():
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = picture_from(file_of(photo(24, 16), "JPEG", exif=exif.tobytes()))
    assert Image.open(io.BytesIO(picture.data)).size == (picture.width, picture.height) == (16, 24)


def test_case_d_image_03_the_mime_type_of_a_webp_is_that_of_its_bytes():
    picture = picture_from(file_of(photo(8, 8), "WEBP"))
    assert picture.data.startswith(SIGNATURES[picture.mime])


@pytest.mark.parametrize("folder", ["puzzlevqa/images", "iseval/images"])
def test_real_pictures_pass_through(folder):
    paths = [path for path in sorted((DATA / folder).rglob("*")) if path.suffix in (".png", ".jpg")]
    if not paths:
        pytest.skip(f"no pictures in {DATA / folder}; set INTERBENCH_TEST_DATA to the folder of the public data")
    for path in paths:
        picture = picture_from(path)
        assert picture.passed_through
        assert picture.data == path.read_bytes()
        assert picture.data.startswith(SIGNATURES[picture.mime])
    for path in paths[::25]:
        with Image.open(path) as image:
            assert picture_from(path).pil().size == image.size
