"""Any mode and container becomes the picture that a viewer shows, in 8-bit RGB."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from interbench_tasks.errors import PictureError
from interbench_tasks.image_pixels import encoded, rgb, within
from interbench_tasks.images import picture_from

CORNERS = [(220, 30, 30), (30, 200, 40), (30, 40, 220), (240, 240, 60)]


def corners(width=24, height=16):
    """Four quarters of different colours: shows every turn and mirroring."""
    image = Image.new("RGB", (width, height))
    for i, colour in enumerate(CORNERS):
        image.paste(colour, (i % 2 * width // 2, i // 2 * height // 2, width, height))
    return image


def file_of(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def sent(data, **options):
    picture = picture_from(data, **options)
    image = Image.open(io.BytesIO(picture.data))
    assert image.get_format_mimetype() == picture.mime
    assert image.size == (picture.width, picture.height) == picture.pil().size
    assert picture.pil().mode == "RGB"
    return image


def close(left, right, tolerance=0):
    difference = np.abs(np.asarray(left.convert("RGB"), dtype=int) - np.asarray(right.convert("RGB"), dtype=int))
    return bool(difference.max() <= tolerance)


def exif(orientation):
    block = Image.Exif()
    block[0x0112] = orientation
    return block.tobytes()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_turn_is_applied_as_a_viewer_does(kind, orientation):
    if kind not in Image.registered_extensions().values():
        pytest.skip(f"this Pillow has no {kind}")
    lossless = {"lossless": True} if kind == "WEBP" else {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    data = file_of(corners(), kind, exif=exif(orientation), **lossless)
    with Image.open(io.BytesIO(data)) as image:
        shown = ImageOps.exif_transpose(image).convert("RGB")
    assert sent(data).size == ((16, 24) if orientation >= 5 else (24, 16))
    assert close(sent(data), shown, tolerance=12)
    assert picture_from(data).passed_through == (orientation == 1 and kind not in ("TIFF", "AVIF"))
    assert "exif" not in sent(data).info or orientation == 1


def test_a_turned_pil_picture_is_turned_too():
    with Image.open(io.BytesIO(file_of(corners(), "PNG", exif=exif(6)))) as image:
        picture = picture_from(image)
        assert (picture.width, picture.height) == (16, 24)
        assert close(picture.pil(), ImageOps.exif_transpose(image))


def test_a_cmyk_jpeg_has_the_right_colours():
    data = file_of(corners().convert("CMYK"), "JPEG", quality=95, subsampling=0)
    assert b"Adobe" in data  # stored inverted, as Photoshop does
    assert sent(data).mode == "RGB"
    assert close(sent(data), corners(), tolerance=12)
    assert picture_from(data).mime == "image/jpeg"


def test_a_cmyk_tiff_has_the_right_colours():
    assert close(sent(file_of(corners().convert("CMYK"), "TIFF")), corners())


@pytest.mark.parametrize(
    "mode", ["1", "P", "L", "LA", "PA", "La", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV"]
)
def test_every_mode_of_pillow_can_be_sent(mode):
    if mode == "La":
        image = corners().convert("LA").convert("La")
    elif mode == "RGBa":
        image = corners().convert("RGBA").convert("RGBa")
    else:
        image = corners().convert(mode)
    picture = picture_from(image)
    wanted = corners().convert("1" if mode == "1" else "L" if mode[0] == "L" else "RGB")
    assert close(picture.pil(), wanted, tolerance=90 if mode in ("P", "PA") else 4)
    assert close(Image.open(io.BytesIO(picture.data)), picture.pil())


def test_lab_becomes_rgb():
    picture = picture_from(Image.new("LAB", (4, 4), (255, 128, 128)))
    assert min(picture.pil().getpixel((0, 0))) >= 250


def test_transparency_is_shown_on_white():
    rgba = Image.new("RGBA", (4, 2), (200, 0, 0, 255))
    rgba.putpixel((0, 0), (0, 0, 0, 0))
    rgba.putpixel((1, 0), (0, 0, 0, 128))
    palette = Image.new("P", (4, 2), 1)
    palette.putpalette([9, 9, 9, 200, 0, 0])
    palette.putpixel((0, 0), 0)
    colour_key = Image.new("RGB", (4, 2), (200, 0, 0))
    colour_key.putpixel((0, 0), (9, 9, 9))
    for data in (
        file_of(rgba, "TIFF"),
        file_of(palette, "PNG", transparency=0),
        file_of(palette, "PNG", transparency=b"\0\xff"),
        file_of(palette, "GIF", transparency=0),
        file_of(colour_key, "PNG", transparency=(9, 9, 9)),
    ):
        pixels = picture_from(data).pil()
        assert pixels.getpixel((0, 0)) == (255, 255, 255)
        assert pixels.getpixel((3, 1)) == (200, 0, 0)
    assert picture_from(rgba).pil().getpixel((1, 0)) == (127, 127, 127)
    assert picture_from(file_of(rgba, "PNG")).pil().getpixel((0, 0)) == (255, 255, 255)


def test_a_16_bit_picture_keeps_its_brightness():
    ramp = np.array([[0, 256, 32768, 65535]], dtype=np.uint16)
    for data in (file_of(Image.fromarray(ramp), "PNG"), file_of(Image.fromarray(ramp), "TIFF")):
        assert np.asarray(sent(data))[0, :, 0].tolist() == [0, 1, 128, 255]
        assert not picture_from(data).passed_through


def test_a_transparent_grey_of_16_bits_is_white():
    header = struct.pack(">IIBBBBB", 2, 1, 16, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" + struct.pack(">HH", 7, 40000))
    chunks = [(b"IHDR", header), (b"tRNS", struct.pack(">H", 7)), (b"IDAT", pixels), (b"IEND", b"")]
    assert np.asarray(sent(png_of(chunks)))[0, :, 0].tolist() == [255, 156]


def test_16_bit_rgb_png_is_sent_with_8_bits():
    header = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" + struct.pack(">6H", 65535, 0, 32768, 0, 65535, 0))
    for extra in ([], [(b"tRNS", struct.pack(">HHH", 65535, 0, 32768))]):
        image = sent(png_of([(b"IHDR", header), *extra, (b"IDAT", pixels), (b"IEND", b"")]))
        assert image.mode == "RGB"
        assert image.getpixel((1, 0)) == (0, 255, 0)


def png_of(chunks):
    parts = [struct.pack(">I", len(p)) + k + p + struct.pack(">I", zlib.crc32(k + p)) for k, p in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0, 1, 200, 255], [0, 1, 200, 255]),  # 8 bits in 32
        ([0, 257, 32896, 65535], [0, 1, 128, 255]),  # 16 bits in 32
        ([-100, 0, 0, 100], [0, 128, 128, 255]),  # stretched
        ([0, 0, 50_000, 100_000], [0, 0, 128, 255]),
        ([70_000] * 4, [0] * 4),  # nothing to stretch
    ],
)
def test_32_bit_integers_are_scaled_by_their_range(values, wanted):
    image = Image.fromarray(np.array([values], dtype=np.int32))
    assert image.mode == "I"
    assert np.asarray(rgb(image))[0, :, 1].tolist() == wanted


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0, 0.2, 0.5, 1], [0, 51, 128, 255]),
        ([0, 0.6, 100, 255], [0, 1, 100, 255]),
        ([-1, 0, 0, 1], [0, 128, 128, 255]),
        ([0, float("nan"), float("inf"), float("-inf")], [0, 0, 255, 0]),
        ([float("nan")] * 4, [0] * 4),
    ],
)
def test_floats_are_scaled_by_their_range(values, wanted):
    image = Image.fromarray(np.array([values], dtype=np.float32))
    assert np.asarray(rgb(image))[0, :, 2].tolist() == wanted


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "MPO", "TIFF"])
def test_of_several_frames_the_first_is_sent(kind):
    options = {"lossless": True} if kind == "WEBP" else {"quality": 95} if kind == "MPO" else {}
    frames = [Image.new("RGB", (24, 16), "blue"), Image.new("RGB", (24, 16), "red")]
    data = file_of(corners(), kind, save_all=True, append_images=frames, **options)
    image = sent(data)
    assert getattr(image, "n_frames", 1) == 1
    assert image.getpixel((2, 2))[0] > 150  # the red corner, neither all blue nor all red
    assert image.getpixel((2, 13))[2] > 150
    assert picture_from(data).mime == ("image/jpeg" if kind == "MPO" else "image/png")


def test_the_longest_side_is_limited_and_the_shape_kept():
    data = file_of(corners(1200, 800), "PNG")
    image = sent(data, max_side=300)
    assert image.size == (300, 200)
    assert close(image.crop((0, 0, 140, 90)), Image.new("RGB", (140, 90), CORNERS[0]))
    assert sent(file_of(corners(1200, 800), "JPEG", exif=exif(6)), max_side=300).size == (200, 300)
    assert sent(file_of(corners(1000, 4), "BMP"), max_side=100).size == (100, 1)
    assert within((1, 3), 1) == (1, 1)


def test_lossy_sources_stay_jpeg_at_full_colour_resolution_and_others_are_lossless():
    jpeg = sent(file_of(corners(200, 200), "JPEG"), max_side=100)
    assert jpeg.format == "JPEG"
    assert {layer[1:3] for layer in jpeg.layer} == {(1, 1)}  # 4:4:4
    bmp = file_of(corners(200, 200), "BMP")
    assert close(sent(bmp), corners(200, 200))


def test_no_metadata_and_no_profile_reach_the_model_of_a_picture_that_was_made_anew():
    profile = b"not a real profile"
    image = sent(file_of(corners(), "PNG", icc_profile=profile, exif=exif(3), dpi=(72, 72)))
    assert not image.info.keys() & {"icc_profile", "exif", "dpi", "transparency"}


def test_a_picture_that_cannot_be_encoded_is_a_picture_error():
    with pytest.raises(PictureError, match="cannot be encoded"):
        encoded(Image.new("RGB", (70_000, 1)), "image/jpeg")


def test_a_program_is_not_run_to_show_a_picture():
    with pytest.raises(PictureError, match="Ghostscript"):
        picture_from(file_of(corners(), "EPS"))


def test_a_picture_is_never_enlarged():
    data = file_of(corners(), "BMP")
    assert sent(data, max_side=1000).size == sent(data).size == (24, 16)
    assert close(sent(data, max_side=1000), corners())


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P"])
def test_a_png_made_anew_holds_exactly_the_pixels_that_a_harness_backend_gets(mode):
    picture = picture_from(corners().convert(mode))
    assert close(Image.open(io.BytesIO(picture.data)), picture.pil())
