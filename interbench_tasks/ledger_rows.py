"""What a row of the ledger is: the tables of every version, and the way from a reply to a row and back."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from interbench_tasks.errors import InterbenchError
from interbench_tasks.records import Reply, ReplyRun, Usage

Row = tuple[bytes | int | float | None, ...]
"""A reply as the table holds it, in the order of its columns. Texts are bytes: what a model says may hold lone
surrogates, which sqlite3 refuses as str."""

_REPLY_1 = """
CREATE TABLE reply (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, status TEXT NOT NULL, finish_reason TEXT, reasoning TEXT, model TEXT,
    calls INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER,
    checksum INTEGER NOT NULL, created_at REAL NOT NULL
)"""
_SAVED_2 = """
CREATE TABLE saved (
    model TEXT PRIMARY KEY, hits INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL, unknown INTEGER NOT NULL
)"""
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (_REPLY_1,),
    ("ALTER TABLE reply ADD COLUMN backend TEXT", _SAVED_2),
)
"""What makes version n + 1 out of version n, at place n. An empty file is version 0, so a fresh ledger takes the same
way as an old one and both have the same tables. What stands here is never changed, only added to."""
SCHEMA_VERSION = len(MIGRATIONS)
"""Of the tables; kept in the file's `user_version`."""

COLUMNS = "key, text, status, finish_reason, reasoning, model, calls, input_tokens, output_tokens, reasoning_tokens"
INSERT = f"INSERT OR REPLACE INTO reply VALUES ({'CAST(? AS TEXT), ' * 6}?, ?, ?, ?, ?, ?, CAST(? AS TEXT))"
INSERT_SAVED = """
INSERT INTO saved VALUES (CAST(? AS TEXT), ?, ?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET hits = hits + excluded.hits,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens, unknown = unknown + excluded.unknown"""
SELECT_SAVED = "SELECT model, hits, input_tokens, output_tokens, reasoning_tokens, unknown FROM saved"


def select_rows(version: int) -> str:
    """The query for whole rows of a file of that version, without its WHERE."""
    return f"SELECT {COLUMNS}, checksum, created_at, {'backend' if version >= 2 else 'NULL'} FROM reply"


class DamageError(InterbenchError):
    """The file, or a row of it, is not what was written. The ledger answers it; it never reaches a caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A reply as it lies in the ledger."""

    key: str
    reply: Reply
    """Equal to what was stored but for `run`."""
    backend: str | None
    """Who answered, as shown in results (`openai:gpt-4o`); None where version 1 stored it, which did not note it."""
    created_at: float
    """Unix time."""

    @property
    def model(self) -> str:
        """Under what name it is counted: the backend's, else the model's as the API gave it, else empty."""
        return self.backend or self.reply.model or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What the ledger saved: calls that need not be made, and what they would have taken."""

    hits: int = 0
    """Calls that a stored reply answered."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Reasoning included, where the backend counts it."""
    reasoning_tokens: int = 0
    unknown: int = 0
    """Of `hits`, those whose tokens the backend never told: they are missing in the tokens."""

    def plus(self, other: Saved) -> Saved:
        """Both together."""
        return Saved(
            hits=self.hits + other.hits,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            unknown=self.unknown + other.unknown,
        )


def saved_by(usage: Usage) -> Saved:
    """What one hit saves, from the usage of the reply that was found."""
    return Saved(
        hits=1,
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        reasoning_tokens=usage.reasoning_tokens or 0,
        unknown=int(usage.input_tokens is None or usage.output_tokens is None),
    )


def row_from_reply(key: str, reply: Reply, backend: str | None) -> Row:
    """A reply as the table holds it. `run` is left out, but for the time: now."""
    usage = reply.usage
    texts = [_bytes(text) for text in (reply.text, reply.status, reply.finish_reason, reply.reasoning, reply.model)]
    values = (*texts, usage.calls, usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)
    return (key.encode(), *values, _checksum(key, values), time.time(), _bytes(backend))


def stored_from_row(row: Sequence[object]) -> Stored:
    """What a row of `select_rows` holds.

    Raises: DamageError where it is not what was written.
    """
    key = text_from(row[0])
    if key is None or _checksum(key, row[1:10]) != row[10]:
        raise DamageError("a row's checksum is wrong")
    text, _, finish_reason, reasoning, model = (text_from(raw) for raw in row[1:6])
    calls, *tokens = cast("tuple[int, int | None, int | None, int | None]", row[6:10])
    reply = Reply(
        text=text or "",
        finish_reason=finish_reason,
        reasoning=reasoning,
        usage=Usage(calls=calls, input_tokens=tokens[0], output_tokens=tokens[1], reasoning_tokens=tokens[2]),
        model=model,
        run=ReplyRun(from_ledger=True),
    )
    return Stored(key=key, reply=reply, backend=text_from(row[12]), created_at=cast("float", row[11]))


def row_from_saved(model: str, saved: Saved) -> Row:
    """What was saved as the table holds it."""
    counts = (saved.hits, saved.input_tokens, saved.output_tokens, saved.reasoning_tokens, saved.unknown)
    return (_bytes(model), *counts)


def saved_from_row(row: Sequence[object]) -> tuple[str, Saved]:
    """Model and what was saved of it, from a row of SELECT_SAVED."""
    hits, input_tokens, output_tokens, reasoning_tokens, unknown = cast("tuple[int, int, int, int, int]", row[1:])
    return text_from(row[0]) or "", Saved(
        hits=hits,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        reasoning_tokens=reasoning_tokens,
        unknown=unknown,
    )


def text_from(raw: object) -> str | None:
    """A text of the table.

    Raises: DamageError where it is none.
    """
    try:
        return None if raw is None else cast("bytes", raw).decode("utf-8", "surrogatepass")
    except (UnicodeDecodeError, AttributeError) as error:
        raise DamageError(f"a text of a row cannot be read: {error}") from error


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _checksum(key: str, values: Sequence[object]) -> int:
    # SQLite notices a broken page, not a changed letter inside of one, and a changed letter would move a score.
    parts = [value if isinstance(value, bytes) else repr(value).encode() for value in values]
    return zlib.crc32(b"\0".join([key.encode(), *parts]))
