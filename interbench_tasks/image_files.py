"""What the bytes of a picture file say of themselves, without decoding a pixel.

The harness sets Pillow's `LOAD_TRUNCATED_IMAGES` for the whole process, so Pillow would fill the missing half of a
broken file with grey and say nothing. Whether a file is whole is therefore read from its own structure here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from interbench_tasks.errors import PictureError

_Read = TypeVar("_Read")
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_SENDABLE_COLOURS = (0, 2, 4, 6)  # L, RGB, LA, RGBA; a palette (3) is refused by some servers
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_SENDABLE_FRAMES = (0xC0, 0xC1, 0xC2)  # baseline, extended, progressive; not lossless, not arithmetic
_JPEG_BARE_MARKERS = frozenset({0x00, 0x01, *range(0xD0, 0xD9)})  # without a length after them
_EXIF_ORIENTATION = 0x0112


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """A whole PNG, JPEG or WebP file, as its header describes it."""

    mime: str
    """`image/png`, `image/jpeg` or `image/webp`; from the bytes, never from a file name."""
    width: int
    """Pixels as stored, before any EXIF turn."""
    height: int
    """Pixels as stored, before any EXIF turn."""
    orientation: int = 1
    """EXIF orientation, [1, 8]; 1 is upright."""
    plain: bool
    """True where every API takes the bytes as they are: 8 bits a channel, one frame, upright, no palette, no CMYK."""
    may_warn: bool = False
    """True where Pillow may warn when it opens the file (several frames, EXIF)."""


def file_facts(data: bytes) -> FileFacts | None:
    """What the header says, after a check that the file is whole.

    Returns: None for a format other than PNG, JPEG and WebP; then Pillow has to say what it is.
    Raises: PictureError where the file is empty, ends early or is damaged; without saying which picture it was.
    """
    if not data:
        raise PictureError("the picture has no bytes; fetch the data set again or remove the row")
    if data.startswith(_PNG):
        return _checked(_png_facts, data, "PNG")
    if data.startswith(b"\xff\xd8\xff"):
        return _checked(_jpeg_facts, data, "JPEG")
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _checked(_webp_facts, data, "WebP")
    for magic, name, check in _WHOLE:
        if data.startswith(magic):
            _checked(check, data, name)
    return None


def exif_orientation(exif: bytes) -> int:
    """The EXIF orientation in [1, 8]; 1 (upright) where there is none or it cannot be read, as viewers do.

    Args: exif = an EXIF block, with or without the six bytes `Exif` that may lead it.
    """
    tiff = exif[6:] if exif.startswith(b"Exif\0") else exif
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(tiff[:4]))
    if order is None:
        return 1
    try:
        (offset,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, offset)
        for entry in range(offset + 2, offset + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(f"{order}HH", tiff, entry)
            if tag == _EXIF_ORIENTATION:
                (value,) = struct.unpack_from(f"{order}{'I' if kind == 4 else 'H'}", tiff, entry + 8)
                return int(value) if 1 <= value <= 8 else 1
    except struct.error:  # the block ends early
        pass
    return 1


def _checked(read: Callable[[bytes], _Read], data: bytes, name: str) -> _Read:
    try:
        return read(data)
    except (IndexError, struct.error):
        raise _ends_early(name, data) from None


def _ends_early(name: str, data: bytes) -> PictureError:
    return PictureError(f"the {name} file ends early, after {len(data):,} bytes; fetch it again or remove the row")


def _damaged(name: str, what: str) -> PictureError:
    return PictureError(f"the {name} file is damaged ({what}); fetch it again or remove the row")


def _png_facts(data: bytes) -> FileFacts:
    header, exif, animated, has_pixels = b"", b"", False, False
    for kind, payload in _png_chunks(data):
        if kind == b"IHDR":
            header = bytes(payload)
        elif kind == b"eXIf":
            exif = bytes(payload)
        elif kind == b"acTL":
            animated = True
        elif kind == b"IDAT":
            has_pixels = True
    if not has_pixels or not header:
        raise _damaged("PNG", "no pixels in it")
    width, height, depth, colour = struct.unpack_from(">IIBB", header)
    orientation = exif_orientation(exif)
    plain = depth == 8 and colour in _PNG_SENDABLE_COLOURS and not animated and orientation == 1
    return FileFacts(
        mime="image/png", width=width, height=height, orientation=orientation, plain=plain, may_warn=animated
    )


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Type and payload of every chunk, the checksum verified; raises unless the file closes with IEND."""
    view, start, kind = memoryview(data), len(_PNG), b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 8 + length
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(view[start + 4 : end]) != checksum:
            raise _damaged("PNG", f"wrong checksum in chunk {kind!r}")
        yield kind, view[start + 8 : end]
        start = end + 4


def _jpeg_facts(data: bytes) -> FileFacts:
    frame, exif, several = None, b"", False
    for marker, payload in _jpeg_segments(data):
        if marker in _JPEG_FRAMES:
            frame = (marker, *struct.unpack_from(">BHHB", payload))
        elif marker == 0xE1 and not exif and bytes(payload[:5]) == b"Exif\0":
            exif = bytes(payload)
        elif marker == 0xE2 and bytes(payload[:4]) == b"MPF\0":
            several = True
    if frame is None:
        raise _damaged("JPEG", "no picture in it")
    coding, bits, height, width, channels = frame
    orientation = exif_orientation(exif)
    plain = coding in _JPEG_SENDABLE_FRAMES and bits == 8 and channels in (1, 3) and not several and orientation == 1
    return FileFacts(
        mime="image/jpeg",
        width=width,
        height=height,
        orientation=orientation,
        plain=plain,
        may_warn=several or bool(exif),
    )


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, memoryview]]:
    """Marker and payload of every segment before the pixels; raises unless an end marker follows the pixels."""
    view, marker, start = memoryview(data), 0, 2
    while marker != 0xDA:
        start = data.find(b"\xff", start)  # junk between segments is skipped, as every decoder does
        if start < 0:
            raise _ends_early("JPEG", data)
        marker = data[start + 1]
        if marker == 0xFF:
            start += 1  # a fill byte
        elif marker in _JPEG_BARE_MARKERS:
            start += 2
        elif marker == 0xD9:
            raise _damaged("JPEG", "it ends before the pixels")
        else:
            (length,) = struct.unpack_from(">H", data, start + 2)
            end = start + 2 + length
            if end > len(data):
                raise _ends_early("JPEG", data)
            yield marker, view[start + 4 : end]
            start = end
    # Within the pixels 0xFF is never followed by 0xD9, and an EXIF thumbnail lies before them.
    if data.rfind(b"\xff\xd9", start) < 0:
        raise _ends_early("JPEG", data)


def _webp_facts(data: bytes) -> FileFacts:
    size, exif, animated, coded = None, b"", False, False
    for kind, payload in _webp_chunks(data):
        if kind == b"VP8X":
            animated = bool(payload[0] & 0x02)
            size = tuple(1 + int.from_bytes(payload[i : i + 3], "little") for i in (4, 7))
        elif kind == b"EXIF":
            exif = bytes(payload)
        elif kind in (b"VP8 ", b"VP8L"):
            coded, size = True, size or _webp_size(kind, payload)
        elif kind in (b"ANIM", b"ANMF"):
            coded = animated = True
    if size is None or not coded:
        raise _damaged("WebP", "no pixels in it")
    orientation = exif_orientation(exif)
    plain = not animated and orientation == 1
    return FileFacts(mime="image/webp", width=size[0], height=size[1], orientation=orientation, plain=plain)


def _webp_size(kind: bytes, payload: memoryview) -> tuple[int, int]:
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", payload, 6)
        return width & 0x3FFF, height & 0x3FFF
    (bits,) = struct.unpack_from("<I", payload, 1)
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Type and payload of every chunk; raises where the file or a chunk is shorter than it says."""
    view, start = memoryview(data), 12
    end = 8 + int(struct.unpack_from("<I", data, 4)[0])
    if end > len(data):
        raise _ends_early("WebP", data)
    while start + 8 <= end:
        kind, length = struct.unpack_from("<4sI", data, start)
        if start + 8 + length > end:
            raise _ends_early("WebP", data)
        yield kind, view[start + 8 : start + 8 + length]
        start += 8 + length + length % 2


def _whole_gif(data: bytes) -> None:
    """Walks all blocks to the trailer; running off the end is an IndexError."""
    start = 13 + _gif_palette_bytes(data[10])
    while (block := data[start]) != 0x3B:
        if block == 0x21:  # extension
            start = _gif_blocks_end(data, start + 2)
        elif block == 0x2C:  # frame
            start = _gif_blocks_end(data, start + 11 + _gif_palette_bytes(data[start + 9]))
        else:
            start += 1  # junk between blocks is skipped, as every decoder does


def _gif_palette_bytes(flags: int) -> int:
    return 3 * 2 ** ((flags & 0x07) + 1) if flags & 0x80 else 0


def _gif_blocks_end(data: bytes, start: int) -> int:
    while length := data[start]:
        start += 1 + length
    return start + 1


def _whole_icon(data: bytes) -> None:
    for entry in range(6, 6 + 16 * struct.unpack_from("<H", data, 4)[0], 16):
        length, offset = struct.unpack_from("<II", data, entry + 8)
        if offset + length > len(data):
            raise _ends_early("ICO", data)


def _whole_icns(data: bytes) -> None:
    if struct.unpack_from(">I", data, 4)[0] > len(data):
        raise _ends_early("ICNS", data)


def _whole_jpeg_2000(data: bytes) -> None:
    start = data.find(b"\xff\x4f\xff\x51")
    if start < 0 or data.rfind(b"\xff\xd9", start) < 0:  # no end marker; it cannot occur within the pixels
        raise _ends_early("JPEG 2000", data)


_WHOLE: tuple[tuple[bytes, str, Callable[[bytes], None]], ...] = (
    (b"GIF87a", "GIF", _whole_gif),
    (b"GIF89a", "GIF", _whole_gif),
    (b"\0\0\x01\0", "ICO", _whole_icon),
    (b"icns", "ICNS", _whole_icns),
    (b"\xff\x4f\xff\x51", "JPEG 2000", _whole_jpeg_2000),
    (b"\0\0\0\x0cjP  ", "JPEG 2000", _whole_jpeg_2000),
)
"""Formats that Pillow cannot be trusted with: first bytes, name, and a check that raises unless the file is whole."""
