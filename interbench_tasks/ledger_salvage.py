"""What can still be read of a damaged file of the ledger: one broken page must not cost all the others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger_file import COPIED_AT_ONCE, LedgerFile
from interbench_tasks.ledger_rows import DamageError, Row, Saved, select_rows, stored_from_row

_LEAST_ROW_BYTES = 100
"""A row's key alone takes 64 of them."""


def take_over(damaged: Path, into: LedgerFile) -> int:
    """Store what can be read whole of a damaged file that was set aside; how many replies that were.

    The file itself is not changed. Where nothing of it can be read, nothing is stored.

    Raises: LedgerError where `into` cannot be written.
    """
    try:
        file = LedgerFile.open_damaged(damaged)
    except (DamageError, LedgerError):
        return 0
    with contextlib.closing(file):
        into.put_all([], _saved_in(file))
        n_rows = 0
        batch: list[Row] = []
        for row in _rows_in(file, damaged.stat().st_size):
            batch.append(row)
            if len(batch) == COPIED_AT_ONCE:
                into.put_all(batch, {})
                n_rows, batch = n_rows + len(batch), []
        into.put_all(batch, {})
        return n_rows + len(batch)


def _saved_in(file: LedgerFile) -> dict[str, Saved]:
    try:
        return file.saved()
    except (DamageError, LedgerError):  # the count of hits is worth less than the replies
        return {}


def _rows_in(file: LedgerFile, n_bytes: int) -> Iterator[Row]:
    """Every row that is what was written, each looked up by itself: a scan would end at the first broken page."""
    query = f"{select_rows(file.version)} WHERE rowid = ?"
    for number in range(1, _last_row(file, n_bytes) + 1):
        try:
            found = list(file.select(query, (number,)))
            for row in found:
                stored_from_row(row)  # checks it
        except (DamageError, LedgerError):
            continue
        yield from cast("list[Row]", found)


def _last_row(file: LedgerFile, n_bytes: int) -> int:
    """The number of the last row; where that page is broken, the most rows that the file can hold."""
    try:
        ((last,),) = file.select("SELECT max(rowid) FROM reply")
    except (DamageError, LedgerError):
        return n_bytes // _LEAST_ROW_BYTES
    return cast("int | None", last) or 0
