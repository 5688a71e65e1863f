"""The ledger as text, one reply a line, without keys and tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger_admin import paths_in, readable
from interbench_tasks.ledger_rows import DamageError, Stored, select_rows, stored_from_row
from interbench_tasks.redaction import redact


def export_lines(folder: Path, problems: list[str]) -> Iterator[str]:
    """One JSON object for each reply, without line end; redacted, so that a key that a model was told stays unknown.

    Args: problems = where it is added what could not be read.
    Raises: LedgerError where the folder holds no ledger.
    """
    seen: set[str] = set()
    for path in paths_in(folder):
        n_damaged = 0
        with readable(path, problems) as file:
            for row in file.select(select_rows(file.version)) if file else ():
                try:
                    stored = stored_from_row(row)
                except DamageError:
                    n_damaged += 1
                    continue
                if stored.key not in seen:  # two runs at once may have paid for the same call
                    seen.add(stored.key)
                    yield _line(stored)
        if n_damaged:
            problems.append(f"{path}: {n_damaged} replies are damaged and were left out.")


def write_export(path: Path, lines: Iterator[str]) -> int:
    """Write lines into a new file, all or none; how many they were.

    Raises: LedgerError where the file is there already or cannot be written.
    """
    if path.exists():
        raise LedgerError(f"{path}: exists already; name another file, or remove it")
    draft = path.with_name(f".{path.name}.tmp")
    n_lines = 0
    try:
        with draft.open("wb") as file:
            for line in lines:
                file.write(line.encode() + b"\n")
                n_lines += 1
        draft.replace(path)
    except OSError as error:
        raise LedgerError(
            f"{path}: cannot be written: {error.strerror or error}; name another file with --out"
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return n_lines


def _line(stored: Stored) -> str:
    reply, usage = stored.reply, stored.reply.usage
    content = {
        "key": stored.key,
        "model": _redacted(stored.model),
        "api_model": _redacted(reply.model),
        "finish_reason": _redacted(reply.finish_reason),
        "text": _redacted(reply.text),
        "reasoning": _redacted(reply.reasoning),
        "usage": {
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stored.created_at)),
    }
    line = json.dumps(content, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # half an emoji: other readers want valid UTF-8
        return json.dumps(content)
    return line


def _redacted(text: str | None) -> str | None:
    return None if text is None else redact(text)
