"""Any picture -> what is sent of it, addressed by digest and encoded at most once.

A file that every API takes as it is passes through untouched: PNG with 8-bit grey, RGB and alpha, baseline and
progressive JPEG in grey or RGB, static WebP; upright, within `max_bytes` and `max_side`. Everything else that Pillow
reads becomes upright 8-bit RGB on white (`image_pixels`), first frame only, and is encoded once: as JPEG (quality 95,
4:4:4) where it came from a JPEG or is larger than `max_bytes` at full size, else as PNG.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from PIL import Image

from interbench_tasks import image_pixels
from interbench_tasks.errors import PictureError
from interbench_tasks.image_files import FileFacts, exif_orientation, file_facts
from interbench_tasks.records import PictureRef

PictureSource: TypeAlias = "bytes | bytearray | memoryview | Image.Image | str | os.PathLike[str] | Mapping[str, Any]"
_RECIPE = 1  # raise it with any change to image_pixels that changes what is sent: digests are ledger keys
_URL = re.compile(r"[a-z][a-z0-9+.-]*://|data:", re.IGNORECASE)


class Picture(PictureRef):
    """A picture that can be sent; equal to every `PictureRef` with the same fields; several threads may use it."""

    __slots__ = ("_content",)
    _content: _Content

    def __init__(self, *, digest: str, width: int, height: int, mime: str, content: _Content) -> None:
        super().__init__(digest=digest, width=width, height=height, mime=mime)
        object.__setattr__(self, "_content", content)  # the record is frozen, its content fills in later

    @property
    def data(self) -> bytes:
        """The bytes that are sent, of type `mime`; made on the first call.

        Raises: PictureError where the pixels cannot be read, or the result is larger than `max_bytes`.
        """
        return self._content.data()

    @property
    def base64(self) -> str:
        """`data` in base64, made on the first call. Raises: PictureError, as `data`."""
        return self._content.base64()

    @property
    def data_url(self) -> str:
        """`data` as a data: URL. Raises: PictureError, as `data`."""
        return f"data:{self.mime};base64,{self.base64}"

    def pil(self) -> Image.Image:
        """The picture as RGB on white, `width` x `height`; a copy of its own for every caller, who may change it.

        Where the source is encoded anew these are the pixels that go into `data`, before any JPEG loss. Transparent
        files that pass through are sent with their alpha channel; here they are on white.

        Raises: PictureError where the pixels cannot be read.
        """
        return self._content.pixels().copy()

    def thumbnail(self, max_side: int) -> bytes:
        """A small WebP file for people to look at; made anew on every call, nothing of it is kept.

        Args: max_side = longest side, in pixels; smaller pictures stay as large as they are.
        Raises: PictureError where the pixels cannot be read, or this Pillow writes no WebP.
        """
        return self._content.plan.thumbnail(max_side)

    @property
    def source_bytes(self) -> int:
        """Bytes of memory that what it was made from takes."""
        source = self._content.plan.source
        return len(source) if isinstance(source, bytes) else 4 * source.width * source.height

    @property
    def passed_through(self) -> bool:
        """True where the source's own bytes are sent."""
        return self._content.plan.passed_through

    @property
    def encodings(self) -> int:
        """How often it was encoded: 0 where it passes through or was not needed yet, else 1 (until `release`)."""
        return self._content.encodings

    @property
    def ref(self) -> PictureRef:
        """The same picture without its bytes, for what outlives the episode."""
        return PictureRef(digest=self.digest, width=self.width, height=self.height, mime=self.mime)

    def release(self) -> None:
        """Drop what can be made again: base64, pixels, encoded bytes. The picture stays usable."""
        self._content.release()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PictureRef):
            return NotImplemented
        return (self.digest, self.width, self.height, self.mime) == (
            other.digest,
            other.width,
            other.height,
            other.mime,
        )

    __hash__ = PictureRef.__hash__

    def __copy__(self) -> Picture:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Picture:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.digest, self.width, self.height, self.mime, self._content.plan)


def _unpickled(digest: str, width: int, height: int, mime: str, plan: _Plan) -> Picture:
    return Picture(digest=digest, width=width, height=height, mime=mime, content=_Content(plan))


def picture_from(
    source: PictureSource | None, *, max_side: int | None = None, max_bytes: int = 20_000_000, where: str = ""
) -> Picture:
    """A picture that knows its digest, size and MIME type; pixels of a file are decoded when they are first needed.

    A PIL picture is copied and taken as it is: what Pillow filled in for a broken file cannot be told afterwards.

    Args: source = a file's bytes, a local path, a PIL picture, or a mapping with `bytes` or `path` (an undecoded cell
        of a data set); max_side = longest side that is sent, in pixels, larger ones are made smaller; max_bytes =
        most bytes that are sent, before base64; where = the picture's place for error messages, e.g.
        `row 12, column image`.
    Raises: PictureError where there is no picture or it is broken, as far as its header and structure tell;
        ValueError where max_side < 1.
    """
    if max_side is not None and max_side < 1:
        raise ValueError(f"max_side must be at least 1 pixel, got {max_side}")
    if isinstance(source, Image.Image):
        with _located(where):
            return _from_pil(source, max_side=max_side, max_bytes=max_bytes, where=where)
    with _located(where):
        data, name = _bytes_and_name(source)
    where = ": ".join(part for part in (where, name) if part)
    with _located(where):
        return _from_bytes(data, max_side=max_side, max_bytes=max_bytes, where=where)


def digest_of(data: bytes) -> str:
    """First 32 hex digits of the SHA-256; the digest of a picture whose bytes pass through."""
    return hashlib.sha256(data).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a picture is made from, and how."""

    source: bytes | Image.Image
    facts: FileFacts | None
    """None for a PIL picture and for formats that only Pillow knows."""
    orientation: int
    """EXIF orientation of a PIL source, [1, 8]; a file's own comes from the file."""
    size: tuple[int, int]
    """Width and height that are sent, in pixels."""
    mime: str
    passed_through: bool
    max_bytes: int
    where: str

    def pixels(self) -> Image.Image:
        with _located(self.where):
            if isinstance(self.source, bytes):
                image = image_pixels.decoded(self.source, self.facts)
            else:
                image = image_pixels.upright(image_pixels.rgb(self.source), self.orientation)
            return image_pixels.resized(image, self.size)

    def thumbnail(self, max_side: int) -> bytes:
        with _located(self.where):
            return image_pixels.small_webp(self.source, self.orientation, max_side)

    def encoded(self, pixels: Image.Image) -> bytes:
        with _located(self.where):
            return image_pixels.encoded(pixels, self.mime)

    def check(self, data: bytes) -> None:
        if len(data) > self.max_bytes:
            width, height = self.size
            what = f"{width} x {height} pixels take {len(data):,} bytes, over max_bytes = {self.max_bytes:,}"
            with _located(self.where):
                raise PictureError(f"{what}; set max_side to make the picture smaller, or raise max_bytes")


class _Content:
    """What was made of a plan so far, each thing at most once."""

    __slots__ = ("_base64", "_encoded", "_lock", "_pixels", "encodings", "plan")

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.encodings = 0
        self._lock = threading.RLock()
        self._encoded: bytes | None = None
        self._base64: str | None = None
        self._pixels: Image.Image | None = None

    def data(self) -> bytes:
        if self.plan.passed_through and isinstance(self.plan.source, bytes):
            return self.plan.source
        with self._lock:
            if self._encoded is None:
                # Pixels that nobody asked for are not kept: they are the largest part of a picture.
                self._encoded = self.plan.encoded(self._pixels if self._pixels is not None else self.plan.pixels())
                self.encodings += 1
            self.plan.check(self._encoded)
            return self._encoded

    def base64(self) -> str:
        with self._lock:
            if self._base64 is None:
                self._base64 = base64.b64encode(self.data()).decode("ascii")
            return self._base64

    def pixels(self) -> Image.Image:
        with self._lock:
            if self._pixels is None:
                self._pixels = self.plan.pixels()
            return self._pixels

    def release(self) -> None:
        with self._lock:
            self._encoded = self._base64 = self._pixels = None


def _from_bytes(data: bytes, *, max_side: int | None, max_bytes: int, where: str) -> Picture:
    facts = file_facts(data)
    if facts is None:
        full = image_pixels.opened_size(data)
    else:
        full = image_pixels.upright_size((facts.width, facts.height), facts.orientation)
    image_pixels.check_size(full)
    size = image_pixels.within(full, max_side)
    passes = facts is not None and facts.plain and size == full and len(data) <= max_bytes
    if facts is not None and passes:
        mime = facts.mime
    else:
        too_large = size == full and len(data) > max_bytes  # as PNG it would be larger still
        mime = "image/jpeg" if too_large or (facts is not None and facts.mime == "image/jpeg") else "image/png"
    plan = _Plan(
        source=data,
        facts=facts,
        orientation=1,
        size=size,
        mime=mime,
        passed_through=passes,
        max_bytes=max_bytes,
        where=where,
    )
    return _planned(plan, hashlib.sha256(data))


def _from_pil(image: Image.Image, *, max_side: int | None, max_bytes: int, where: str) -> Picture:
    image_pixels.check_size(image.size)
    mime = "image/jpeg" if image.format in ("JPEG", "MPO") else "image/png"
    image = image_pixels.own_copy(image)
    orientation = exif_orientation(image.info.get("exif", b""))
    palette = bytes(image.getpalette(None) or ())
    looks = (image.mode, image.size, orientation, palette, image.info.get("transparency"))
    found = hashlib.sha256(repr(looks).encode())
    found.update(image.tobytes())
    plan = _Plan(
        source=image,
        facts=None,
        orientation=orientation,
        size=image_pixels.within(image_pixels.upright_size(image.size, orientation), max_side),
        mime=mime,
        passed_through=False,
        max_bytes=max_bytes,
        where=where,
    )
    return _planned(plan, found)


def _planned(plan: _Plan, source_digest: hashlib._Hash) -> Picture:
    width, height = plan.size
    if not plan.passed_through:
        source_digest.update(f"\0{_RECIPE} {plan.mime} {width}x{height}".encode())
    digest = source_digest.hexdigest()[:32]
    return Picture(digest=digest, width=width, height=height, mime=plan.mime, content=_Content(plan))


def _bytes_and_name(source: object) -> tuple[bytes, str]:
    if isinstance(source, Mapping):
        inner, path = source.get("bytes"), source.get("path")
        if inner is None and path is None:
            raise PictureError("there is no picture: the cell has neither 'bytes' nor 'path'")
        if inner is None:
            return _bytes_and_name(path)
        source, name = inner, str(path or "")
        if not isinstance(source, bytes | bytearray | memoryview):
            raise PictureError(f"'bytes' holds {type(source).__name__}; it must hold the bytes of a picture file")
        return bytes(source), name
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), ""
    if isinstance(source, str | os.PathLike):
        return _read(os.fsdecode(source))
    if source is None:
        raise PictureError("there is no picture (None); remove the row or name another column")
    raise PictureError(
        f"no picture can be made from {type(source).__name__}; give a file's bytes, a local path, a PIL picture, "
        "or a mapping with 'bytes' or 'path'"
    )


def _read(path: str) -> tuple[bytes, str]:
    shown = path if len(path) <= 200 else f"{path[:200]}..."
    if _URL.match(path):
        raise PictureError(f"{shown}: pictures are read from local files only; download it and give its path")
    try:
        return Path(path).read_bytes(), shown
    except FileNotFoundError:
        base = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
        raise PictureError(f"{shown}: no such file{base}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise PictureError(f"{shown!r}: the file cannot be read ({error})") from error


@contextmanager
def _located(where: str) -> Iterator[None]:
    try:
        yield
    except PictureError as error:
        if not where:
            raise
        raise PictureError(f"{where}: {error}") from error
