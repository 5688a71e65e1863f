"""Minimal stand-in: only the key of a call. The ledger itself replaces this file."""

from __future__ import annotations

import hashlib

from interbench_tasks.hookspecs import Call


def call_key(fingerprint: str, call: Call, repeat: int) -> str:
    """The digest under which the reply to `call` is kept."""
    settings = call.settings
    parts = (
        fingerprint,
        repeat,
        settings.max_new_tokens,
        settings.temperature,
        settings.top_p,
        settings.until,
        sorted(settings.options.items()),
        [(message.role, message.content) for message in call.messages],
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()
