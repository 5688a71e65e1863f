"""Takes keys and tokens out of texts that people or files will see."""

from __future__ import annotations

from interbench_tasks import settings


def redact(text: str) -> str:
    """The text with the value of every key and token of the environment replaced."""
    for secret in settings.secret_values():
        text = text.replace(secret, "[redacted]")
    return text
