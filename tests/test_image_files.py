"""Whole and broken picture files, told apart although Pillow is set to fill in what is missing."""

from __future__ import annotations

import io
import random
import struct
import warnings
import zlib

import pytest
from PIL import Image, ImageFile

from interbench_tasks.errors import PictureError
from interbench_tasks.image_files import exif_orientation, file_facts
from interbench_tasks.images import picture_from

FORMATS = ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "JPEG2000", "ICO", "ICNS", "PPM"]


@pytest.fixture(autouse=True)
def _pillow_as_the_harness_sets_it(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)


def photo(width=90, height=60):
    """Noise, so that a file's bytes are spread over the whole picture."""
    noise = random.Random(1).randbytes(width * height * 3)
    return Image.frombytes("RGB", (width, height), noise)


def file_of(image, kind, **options):
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow cannot write {kind}")
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def use(data):
    picture = picture_from(data)
    return picture.data, picture.pil()


def png_chunk(kind, payload):
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def exif_block(orientation, order="<", kind=3):
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, 2)
    make = struct.pack(f"{order}HHII", 0x010F, 2, 1, 0)
    value = struct.pack(f"{order}{'H2x' if kind == 3 else 'I'}", orientation)
    return b"Exif\0\0" + head + make + struct.pack(f"{order}HHI", 0x0112, kind, 1) + value + b"\0\0\0\0"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_whole_file_is_read(kind):
    data = file_of(photo(64, 64), kind)
    sent, pixels = use(data)
    assert sent
    assert pixels.size == picture_from(data).pil().size


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("kept", [0.2, 0.6, 0.9, 0.99])
def test_a_truncated_file_is_an_error_although_pillow_would_fill_it_with_grey(kind, kept):
    data = file_of(photo(64, 64), kind)
    with pytest.raises(PictureError):
        use(data[: int(len(data) * kept)])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_truncated_file_is_told_when_the_picture_is_made_wherever_it_is_cut(kind):
    data = file_of(photo(20, 15), kind)
    for size in range(16, len(data)):
        with pytest.raises(PictureError):
            picture_from(data[:size])


def test_the_pillow_setting_really_hides_truncation():
    data = file_of(photo(), "JPEG")
    Image.open(io.BytesIO(data[: len(data) // 2])).load()  # raises nothing: why we do not rely on Pillow


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_deflate", "packbits", "jpeg"])
def test_a_truncated_compressed_tiff_is_an_error(compression):
    data = file_of(photo(), "TIFF", compression=compression)
    use(data)
    with pytest.raises(PictureError):
        use(data[: len(data) // 2])


def test_progressive_jpeg_and_lossless_webp_pass_through_and_are_checked_too():
    for data in (
        file_of(photo(), "JPEG", progressive=True),
        file_of(photo(), "WEBP", lossless=True),
        file_of(photo().convert("RGBA"), "WEBP", lossless=True, exact=True),
    ):
        assert file_facts(data).plain
        with pytest.raises(PictureError, match="ends early"):
            picture_from(data[:-20])


def test_an_exif_thumbnail_does_not_pass_for_the_end_of_a_jpeg():
    thumbnail = file_of(photo(8, 8), "JPEG")
    whole = file_of(photo(), "JPEG")
    payload = b"Exif\0\0" + thumbnail
    data = whole[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(payload)) + payload + whole[2:]
    assert picture_from(data).passed_through
    with pytest.raises(PictureError, match="JPEG file ends early"):
        picture_from(data[:-30])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_bytes_after_the_end_of_a_picture_are_tolerated(kind):
    data = file_of(photo(), kind) + b"\0" * 50
    _, pixels = use(data)
    assert pixels.size == (90, 60)


def test_fill_bytes_and_junk_between_jpeg_segments_are_tolerated():
    data = file_of(photo(), "JPEG")
    for extra in (b"\xff\xff\xff", b"\x12\x34", b"\xff\x00"):
        use(data[:20] + extra + data[20:])  # after the JFIF segment


def test_a_damaged_png_chunk_is_an_error():
    data = bytearray(file_of(photo(), "PNG"))
    data[len(data) // 2] ^= 1
    with pytest.raises(PictureError, match=r"damaged \(wrong checksum in chunk b'IDAT'\)"):
        picture_from(bytes(data))


def test_files_without_pixels_are_errors():
    png = file_of(photo(), "PNG")
    with pytest.raises(PictureError, match="no pixels"):
        picture_from(png[:33] + png_chunk(b"IEND", b""))
    with pytest.raises(PictureError, match="before the pixels"):
        picture_from(b"\xff\xd8\xff\xd9")
    with pytest.raises(PictureError, match="no pixels"):
        picture_from(b"RIFF" + struct.pack("<I", 4) + b"WEBP")
    with pytest.raises(PictureError, match="no picture in it"):
        picture_from(b"\xff\xd8\xff\xda\x00\x02\x00\xff\xd9")
    with pytest.raises(PictureError, match="0 x 5 pixels"):
        picture_from(
            png[:8]
            + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 5, 8, 2, 0, 0, 0))
            + png_chunk(b"IDAT", b"")
            + png_chunk(b"IEND", b"")
        )


@pytest.mark.parametrize(
    "data", [b"", bytearray(), b"\0", b"<html>404 Not Found</html>", b"GIF89a", b"\x89PNG\r\n\x1a\n"]
)
def test_what_is_not_a_picture_is_an_error(data):
    with pytest.raises(PictureError):
        picture_from(data)


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "ICNS"])  # one of 64 pixels has 800 KB
def test_random_damage_raises_nothing_but_a_picture_error(kind):
    chance = random.Random(7)
    data = file_of(photo(32, 32), kind)
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 5)):
            damaged[chance.randrange(len(data) if chance.random() < 0.5 else 64)] = chance.randrange(256)
        try:
            use(bytes(damaged))
        except PictureError:
            continue


def test_a_decompression_bomb_is_an_error_before_anything_is_decoded():
    side = 20_000  # 400 million pixels in a few bytes
    png = file_of(Image.new("RGB", (1, 1)), "PNG")
    bomb = png[:8] + png_chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + png[33:]
    gif = bytearray(file_of(Image.new("L", (1, 1)), "GIF"))
    gif[6:10] = struct.pack("<HH", side, side)
    for data in (bomb, bytes(gif)):
        with pytest.raises(PictureError, match="decompression bomb"):
            picture_from(data)


def test_a_large_picture_below_pillows_limit_is_no_warning_and_no_error(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 90 * 60 - 1)  # Pillow warns from here, and refuses from twice that
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP"):
        use(file_of(photo(), kind))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 90 * 60 // 2 - 1)
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP"):
        with pytest.raises(PictureError, match="decompression bomb"):
            picture_from(file_of(photo(), kind))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    use(file_of(photo(), "PNG"))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [3, 4])
def test_the_exif_orientation_is_read_in_both_byte_orders(order, kind):
    for orientation in range(1, 9):
        block = exif_block(orientation, order, kind)
        assert exif_orientation(block) == exif_orientation(block[6:]) == orientation


def test_an_unreadable_orientation_means_upright():
    block = exif_block(6)
    assert [exif_orientation(block[:size]) for size in range(len(block) - 8)] == [1] * (len(block) - 8)
    assert exif_orientation(exif_block(0)) == exif_orientation(exif_block(9)) == 1
    assert exif_orientation(b"Exif\0\0 nonsense") == 1


def test_corrupt_exif_is_no_warning():
    data = file_of(photo(), "JPEG", exif=exif_block(6)[:-20])
    assert picture_from(data).passed_through
    use(data)


def test_the_users_own_warning_filters_stay_as_they_are():
    before = list(warnings.filters)
    for kind in ("PNG", "GIF", "TIFF"):
        use(file_of(photo(), kind))
    with pytest.raises(PictureError):
        use(file_of(photo(), "BMP")[:99])
    assert warnings.filters == before


def test_only_files_that_every_api_takes_are_plain():
    rgb, grey = photo(), photo().convert("L")
    frames = {"save_all": True, "append_images": [photo().rotate(180)]}
    plain = [file_of(rgb, kind) for kind in ("PNG", "JPEG", "WEBP")] + [file_of(grey, kind) for kind in ("PNG", "JPEG")]
    plain += [file_of(rgb.convert(mode), "PNG") for mode in ("LA", "RGBA")]
    plain += [file_of(rgb, kind, exif=exif_block(1)) for kind in ("PNG", "JPEG", "WEBP")]
    assert all(file_facts(data).plain for data in plain)
    other = [file_of(rgb, kind, exif=exif_block(6)) for kind in ("PNG", "JPEG", "WEBP")]
    other += [file_of(rgb.convert(mode), "PNG") for mode in ("P", "1", "I;16")]
    other += [file_of(rgb.convert("CMYK"), "JPEG")]
    other += [file_of(rgb, kind, **frames) for kind in ("PNG", "MPO", "WEBP")]
    assert not any(file_facts(data).plain for data in other)
    assert all(file_facts(file_of(rgb, kind)) is None for kind in ("GIF", "BMP", "TIFF"))
