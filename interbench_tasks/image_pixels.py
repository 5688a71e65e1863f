"""Pixels of any picture that Pillow reads -> upright 8-bit RGB -> the bytes that are sent.

ICC profiles are neither applied nor passed on: image processors of models read the raw numbers, and bytes that pass
through untouched keep theirs. CMYK is converted by Pillow's formula, Adobe's inverted CMYK turned the right way.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, UnidentifiedImageError

from interbench_tasks.errors import PictureError
from interbench_tasks.image_files import FileFacts, exif_orientation

_JPEG_QUALITY = 95
_SMALL_QUALITY = 50  # of a thumbnail: 2 to 4 KB at 256 pixels, and text in it can be read
_PNG_LEVEL = 1  # 6 takes 1.4 to 1.7 times as long and makes files 5 to 20% smaller
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_WARNINGS_LOCK = threading.Lock()  # catch_warnings edits the process's filters: one thread at a time


class _WholeFile(io.BytesIO):
    """A file that refuses to be read past its end while pixels are decoded.

    Pillow's own check for that is off wherever the harness is loaded (`LOAD_TRUNCATED_IMAGES`).
    """

    decoding = False

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes, at most `size`. Raises: EOFError at the end, once pixels are decoded."""
        found = super().read(size)
        if self.decoding and not found and size != 0:
            raise EOFError("the file ends early")
        return found


def opened_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels as a viewer shows them, of a format whose header `image_files` does not read.

    Raises: PictureError where Pillow cannot read it.
    """
    with _pillow_errors(), _no_warnings(True), _opened(data) as image:
        return upright_size(image.size, _orientation(image))


def decoded(data: bytes, facts: FileFacts | None) -> Image.Image:
    """The first frame in upright 8-bit RGB on white, without metadata.

    Args: facts = what `file_facts` said of the same bytes.
    Raises: PictureError where the pixels cannot be read, or not to the end.
    """
    may_warn = facts is None or facts.may_warn or too_many_pixels((facts.width, facts.height), warn=True)
    with _pillow_errors(), _no_warnings(may_warn), _opened(data) as image:
        orientation = _orientation(image) if facts is None else facts.orientation
        image.load()
        return upright(rgb(image), orientation)


def rgb(image: Image.Image) -> Image.Image:
    """A new 8-bit RGB picture on white, without metadata.

    16 bits: [0, 65535] becomes [0, 255], as viewers show it. 32-bit integers: values within [0, 255] stay, values
    within [0, 65535] are taken for 16 bits, others are stretched from their least to their greatest value. Floats:
    [0, 1] becomes [0, 255], values within [0, 255] are rounded, others stretched; NaN and -inf are black, inf white.
    """
    if image.mode[0] in "IF":
        image = _eight_bits(image)
    elif image.mode in ("La", "RGBa"):  # premultiplied alpha
        image = image.convert("LA" if image.mode == "La" else "RGBA")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A"))
    else:
        flat = image.convert("RGB") if image.mode != "RGB" else image.copy()
    flat.info.clear()
    return flat


def _eight_bits(image: Image.Image) -> Image.Image:
    import numpy as np  # here, because only such pictures need it

    values = np.asarray(image, dtype=np.float64)
    tops: tuple[float, ...]
    if image.mode == "F":
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        tops = (1.0, 255.0)
    else:
        low, high = float(values.min()), float(values.max())
        tops = (255.0, 65535.0) if image.mode == "I" else (65535.0,)
    top = next((top for top in tops if low >= 0 and high <= top), None)
    low, high = (0.0, top) if top is not None else (low, high)
    scaled = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) * 255 / ((high - low) or 1)
    if isinstance(key := image.info.get("transparency"), int):
        scaled[values == key] = 255  # a transparent grey, on white
    return Image.fromarray(np.rint(scaled).astype(np.uint8))


def upright(image: Image.Image, orientation: int) -> Image.Image:
    """The picture as a viewer shows it. Args: orientation = EXIF orientation, [1, 8]."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def upright_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Width and height after the EXIF turn. Args: orientation = EXIF orientation, [1, 8]."""
    return (size[1], size[0]) if orientation >= 5 else size


def within(size: tuple[int, int], max_side: int | None) -> tuple[int, int]:
    """Width and height with the longest side at most `max_side`, the shape kept; never enlarged, never below 1.

    >>> within((4000, 3000), 1024), within((640, 480), 1024)
    ((1024, 768), (640, 480))
    """
    longest = max(size)
    if max_side is None or longest <= max_side:
        return size
    width, height = (max(1, round(side * max_side / longest)) for side in size)
    return width, height


def resized(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The picture at that width and height (Lanczos); itself where it has them."""
    return image if image.size == size else image.resize(size, Image.Resampling.LANCZOS)


def small_webp(source: bytes | Image.Image, orientation: int, max_side: int) -> bytes:
    """A small upright WebP file for people to look at; a JPEG is decoded at the scale that is needed only.

    Args: source = a file, or a PIL picture with its EXIF `orientation`; max_side = longest side, in pixels.
    Raises: PictureError where the pixels cannot be read, or this Pillow writes no WebP.
    """
    if isinstance(source, bytes):
        with _pillow_errors(), _no_warnings(True), _opened(source) as image:
            orientation = _orientation(image)
            image.draft(None, (2 * max_side, 2 * max_side))
            image.load()
            small = _small(rgb(image), max_side)
    else:
        small = _small(rgb(source), max_side)
    file = io.BytesIO()
    with _pillow_errors("cannot be encoded"):
        upright(small, orientation).save(file, "WEBP", quality=_SMALL_QUALITY)
    return file.getvalue()


def _small(image: Image.Image, max_side: int) -> Image.Image:
    size = within(image.size, max_side)
    return image if size == image.size else image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def encoded(image: Image.Image, mime: str) -> bytes:
    """The file's bytes. Args: image = RGB; mime = `image/jpeg` (quality 95, 4:4:4) or `image/png`."""
    file = io.BytesIO()
    with _pillow_errors("cannot be encoded"):
        if mime == "image/jpeg":
            image.save(file, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
        else:
            image.save(file, "PNG", compress_level=_PNG_LEVEL)
    return file.getvalue()


def check_size(size: tuple[int, int]) -> None:
    """Raises: PictureError where there is nothing to see, or more than Pillow's limit for decompression bombs."""
    if min(size) < 1:
        raise PictureError(f"the picture has {size[0]} x {size[1]} pixels; fetch it again or remove the row")
    if too_many_pixels(size):
        limit = f"{2 * (Image.MAX_IMAGE_PIXELS or 0):,}"
        raise PictureError(
            f"{size[0]} x {size[1]} pixels are more than Pillow's limit for decompression bombs ({limit} pixels); "
            "make the picture smaller before it is used"
        )


def own_copy(image: Image.Image) -> Image.Image:
    """The decoded picture, which nobody else can change. Raises: PictureError where it cannot be decoded."""
    with _pillow_errors(), _no_warnings(True):
        return image.copy()


def too_many_pixels(size: tuple[int, int], *, warn: bool = False) -> bool:
    """True where Pillow would refuse the picture as a decompression bomb, or, with `warn`, warn of one."""
    limit = Image.MAX_IMAGE_PIXELS
    return limit is not None and size[0] * size[1] > (limit if warn else 2 * limit)


@contextmanager
def _opened(data: bytes) -> Iterator[Image.Image]:
    file = _WholeFile(data)
    with Image.open(file) as image:
        if image.format == "EPS":
            raise PictureError("an EPS file is a program that Ghostscript would have to run; convert it to PNG first")
        # OpenJPEG reads past the end of every file; image_files has checked its end marker.
        file.decoding = image.format != "JPEG2000"
        yield image


def _orientation(image: Image.Image) -> int:
    """The turn that Pillow leaves to do; it turns a TIFF by itself."""
    return exif_orientation(image.info.get("exif", b""))


@contextmanager
def _no_warnings(needed: bool) -> Iterator[None]:
    """No warning of Pillow's reaches the user: what matters is an error of ours, the rest concerns metadata.

    Args: needed = False where Pillow has nothing to warn of; the process's filters are then not touched at all.
    """
    if not needed:
        yield
        return
    with _WARNINGS_LOCK, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


@contextmanager
def _pillow_errors(what: str = "cannot be read") -> Iterator[None]:
    try:
        yield
    except PictureError:
        raise
    except UnidentifiedImageError:
        raise PictureError("not a picture in any format that Pillow reads; check the column or convert it") from None
    except Image.DecompressionBombError as error:
        raise PictureError(f"{error} Make the picture smaller before it is used") from error
    except Exception as error:  # a decoder that is fed a broken file may raise anything
        raise PictureError(f"the picture {what} ({type(error).__name__}: {error}); repair or remove it") from error
