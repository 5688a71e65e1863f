"""Every error raised on purpose. All descend from `InterbenchError`, so one `except` tells ours from a bug."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class InterbenchError(Exception):
    """Base of all errors that Interbench raises on purpose; the text says where, what and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in a file, with what would have been allowed."""

    key: str
    """Dotted path, e.g. `metadata.interbench.arms`."""
    message: str
    """What is wrong, without the key."""
    allowed: tuple[str, ...] = ()
    """Allowed values or keys, sorted; empty where a list makes no sense."""

    def __str__(self) -> str:
        lines = [f"{self.key}{self.message}"]
        if self.allowed:
            lines.append(f"  allowed: {', '.join(self.allowed)}")
        return "\n".join(lines)


def near_miss(value: object, allowed: Iterable[str]) -> str:
    """The words ` (did you mean 'x'?)` where one allowed name is close to `value`, else an empty string.

    >>> near_miss("detial", ["detail", "simple"])
    " (did you mean 'detail'?)"
    """
    close = difflib.get_close_matches(str(value), list(allowed), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


class ConfigError(InterbenchError):
    """A YAML is wrong. Carries every problem of the file, not only the first."""

    def __init__(self, where: str, problems: Sequence[Problem]) -> None:
        self.where = where
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{where}: {problem}" for problem in self.problems))


class DataError(InterbenchError):
    """A data set is missing, or a row of it cannot be used; names the file or hub id, the row and the column."""


class PictureError(DataError):
    """A picture cannot be read or sent; fails its own episode only."""


class PluginNameClash(InterbenchError):
    """Two plugins offer the same name."""


class PluginError(InterbenchError):
    """A plugin could not be loaded, or returned something that its hook does not allow."""


class MissingKeyError(InterbenchError):
    """An API key is not set; names the environment variable, never shows a value."""


class BackendError(InterbenchError):
    """A call cannot be made at all (bad role, unknown model arguments); a failing reply is a `Reply`, not an error."""


class VerifierError(InterbenchError):
    """Answers cannot be compared at all (math-verify does not start); fails the episodes that need it."""


class HarnessError(InterbenchError):
    """The installed lmms-eval does not have the shape we need, or an option of it cannot work with our tasks."""


class BudgetError(InterbenchError):
    """A budget cannot be kept: a limit makes no sense, or a model has no known price; raised before a call."""


class RunFolderError(InterbenchError):
    """A run folder cannot be written or read: full disk, no permission, damaged file."""


class LedgerError(InterbenchError):
    """The ledger cannot be opened or written; a run never goes on without it unless it was switched off."""


class PeopleError(InterbenchError):
    """The desk between a run and people cannot be used, or what was handed in cannot be taken."""


class RefusedError(PeopleError):
    """Something that a person handed in cannot be taken; their words are kept as a draft."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        """`unknown`, `answered`, `answered_by_you`, `taken`, `nothing` or `invalid`."""
        super().__init__(message)
