"""Requests to the chat completions API as a strict server reads them, with everything that is wrong in them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from PIL import Image

MIME_OF_FORMAT = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPicture:
    """A picture as it arrived."""

    sha256: str
    """Of the bytes."""
    pixels: str
    """Of size and RGB values: equal for two lossless encodings of one picture."""
    mime: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedMessage:
    role: str
    content: tuple[str | ParsedPicture, ...]

    @property
    def text(self) -> str:
        return "".join(part for part in self.content if isinstance(part, str))

    @property
    def pictures(self) -> tuple[ParsedPicture, ...]:
        return tuple(part for part in self.content if isinstance(part, ParsedPicture))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    number: int
    """0-based order of arrival."""
    model: str
    messages: tuple[ParsedMessage, ...]
    parameters: Mapping[str, object]
    """The body without `model` and `messages`."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body_digest: str
    violations: tuple[str, ...] = ()

    @property
    def system(self) -> str | None:
        return self.messages[0].text if self.messages and self.messages[0].role == "system" else None

    @property
    def user_messages(self) -> tuple[ParsedMessage, ...]:
        return tuple(message for message in self.messages if message.role == "user")

    @property
    def assistant_texts(self) -> tuple[str, ...]:
        return tuple(message.text for message in self.messages if message.role == "assistant")

    @property
    def round(self) -> int:
        """0-based number of the last user message."""
        return len(self.user_messages) - 1

    def history_digests(self) -> list[str]:
        """One digest for each message: of the model's name and all messages up to and including it."""
        digest, digests = hashlib.blake2b(self.model.encode(), digest_size=16), []
        for message in self.messages:
            digest.update(f"\x1e{message.role}".encode())
            for part in message.content:
                digest.update(f"\x1f{part if isinstance(part, str) else part.sha256}".encode("utf-8", "replace"))
            digests.append(digest.copy().hexdigest())
        return digests


@dataclass
class RequestReader:
    """Reads bodies; each distinct picture is decoded once."""

    known_pictures: dict[bytes, tuple[ParsedPicture, str]] = field(default_factory=dict)
    """Digest of the data URL -> the picture and what is wrong with it."""

    def request_from(self, body: bytes, headers: Mapping[str, str], number: int) -> ParsedRequest:
        """Raises: ValueError where the body is no chat completions request at all."""
        data = json.loads(body)
        if not isinstance(data, dict) or not isinstance(data.get("messages"), list) or not data.get("model"):
            raise ValueError("no JSON object with model and messages")
        violations: list[str] = []
        messages = tuple(self._message(raw, violations) for raw in data.pop("messages"))
        model = data.pop("model")
        violations += order_violations([message.role for message in messages])
        return ParsedRequest(
            number=number,
            model=model,
            messages=messages,
            parameters=data,
            headers={name.lower(): value for name, value in headers.items()},
            body_digest=hashlib.blake2b(body, digest_size=16).hexdigest(),
            violations=tuple(f"request {number} to {model}: {violation}" for violation in violations),
        )

    def _message(self, raw: Mapping[str, object], violations: list[str]) -> ParsedMessage:
        role, content = str(raw.get("role")), raw.get("content")
        if isinstance(content, str):
            if not content and role == "user":
                violations.append("an empty user message")
            return ParsedMessage(role=role, content=(content,))
        if not isinstance(content, list) or not content:
            violations.append(f"a {role} message without content")
            return ParsedMessage(role=role, content=())
        return ParsedMessage(role=role, content=tuple(self._part(part, role, violations) for part in content))

    def _part(self, part: Mapping[str, object], role: str, violations: list[str]) -> str | ParsedPicture:
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            if not part["text"]:
                violations.append("an empty text part")
            return str(part["text"])
        image_url = part.get("image_url")
        if part.get("type") != "image_url" or not isinstance(image_url, dict):
            violations.append(f"a content part of type {part.get('type')!r}")
            return ""
        if role != "user":
            violations.append(f"a picture in a {role} message")
        picture, wrong = self._picture(str(image_url.get("url")))
        if wrong:
            violations.append(wrong)
        return picture

    def _picture(self, url: str) -> tuple[ParsedPicture, str]:
        key = hashlib.blake2b(url.encode(), digest_size=16).digest()
        if key not in self.known_pictures:
            self.known_pictures[key] = picture_from_url(url)
        return self.known_pictures[key]


def picture_from_url(url: str) -> tuple[ParsedPicture, str]:
    """The picture in a data URL, and what is wrong with it ('' where nothing is)."""
    head, _, payload = url.partition(";base64,")
    try:
        data = base64.b64decode(payload, validate=True)
    except binascii.Error:
        data = b""
    mime = head.removeprefix("data:")
    if not head.startswith("data:") or not data:
        return ParsedPicture(sha256="", pixels="", mime=mime, n_bytes=0), f"no base64 data URL: {url[:40]!r}"
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        with Image.open(io.BytesIO(data)) as picture:
            real, pixels = MIME_OF_FORMAT.get(picture.format or "", str(picture.format)), pixel_digest(picture)
    except (OSError, SyntaxError, ValueError) as error:
        return ParsedPicture(sha256=sha256, pixels="", mime=mime, n_bytes=len(data)), f"a broken picture: {error}"
    wrong = "" if real == mime else f"a picture said to be {mime} is {real}"
    return ParsedPicture(sha256=sha256, pixels=pixels, mime=mime, n_bytes=len(data)), wrong


def pixel_digest(picture: Image.Image) -> str:
    """Digest of what a picture shows, whatever lossless format holds it."""
    rgb = picture.convert("RGB")
    return hashlib.sha256(f"{rgb.size}".encode() + rgb.tobytes()).hexdigest()


def order_violations(roles: Sequence[str]) -> list[str]:
    """What is wrong with the order of roles: system first if at all, then user and assistant in turn, user last."""
    turns = list(roles[1:] if roles[:1] == ["system"] else roles)
    expected = ["user", "assistant"] * (len(turns) // 2 + 1)
    if not turns or len(turns) % 2 == 0 or turns != expected[: len(turns)]:
        return [f"messages in the order {', '.join(roles) or 'none'}"]
    return []
