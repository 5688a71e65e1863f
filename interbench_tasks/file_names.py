"""File names made from model names and the like, safe on every system."""

from __future__ import annotations

import hashlib
import re

MAX_LENGTH = 100
"""Characters, all ASCII."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._+=@-]+")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_LOOKS_MADE = re.compile(r".*-[0-9a-f]{10}")


def safe_file_name(model: str) -> str:
    """A name that any file system takes; the same for the same model, another one for every other model.

    Only letters, digits and `._+=@-`; never empty, no dot in front, at most 100 characters. Where anything had to be
    changed a digest of the whole model name is appended, also where two names differ in case only, since some file
    systems ignore case.

    >>> safe_file_name("gpt-4o")
    'gpt-4o'
    >>> safe_file_name("some-org/Big-Model:bf16-mp8")
    'some-org_Big-Model_bf16-mp8-3108b479a0'
    """
    name = _UNSAFE.sub("_", model).lstrip(".-").rstrip(".")
    if name == model and _is_safe(name):
        return name
    digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    prefix = f"_{name}" if _DEVICE.fullmatch(name) else name or "model"
    return f"{prefix[: MAX_LENGTH - len(digest) - 1]}-{digest}"


def _is_safe(name: str) -> bool:
    """Whether a name can stay as it is; one that looks like a changed one cannot, it might be taken."""
    fits = 0 < len(name) <= MAX_LENGTH and name == name.lower()
    return fits and not _DEVICE.fullmatch(name) and not _LOOKS_MADE.fullmatch(name)
