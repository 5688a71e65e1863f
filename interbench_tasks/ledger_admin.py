"""What lies in a ledger: looked at, and pruned. A run that goes on is never disturbed."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from interbench_tasks.errors import InterbenchError, LedgerError, near_miss
from interbench_tasks.ledger_claims import Claim, claim_of, damaged_paths, folder_lock, ledger_paths
from interbench_tasks.ledger_file import SIDE_FILES, LedgerFile, explained
from interbench_tasks.ledger_rows import DamageError, Saved, text_from

EMPTY = "empty"
UNKNOWN = "unknown"
UNITS_S = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"(\d{1,9})([mhdw])")
_ROW_BYTES = 250
"""About what a row takes beside its texts: key, its index entry, numbers."""

_IS_EMPTY = "trim(text, char(32, 9, 10, 13)) = ''"
_REASON = f"coalesce(nullif(finish_reason, ''), '{UNKNOWN}')"
_BYTES = f"length(CAST(text AS BLOB)) + coalesce(length(CAST(reasoning AS BLOB)), 0) + {_ROW_BYTES}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of replies, as far as they are known."""

    input: int = 0
    output: int = 0
    """Reasoning included, where the backend counts it."""
    reasoning: int = 0
    unknown: int = 0
    """Replies whose tokens the backend never told: they are missing in the sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShare:
    """What a ledger holds of one model, and what that saved so far."""

    model: str
    """Who answered, as shown in results (`openai:gpt-4o`); empty where nobody told."""
    n_replies: int = 0
    n_bytes: int = 0
    """About its part of the files."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """finish_reason -> replies; `unknown` where the backend told none."""
    n_empty: int = 0
    """Replies without a visible character, whatever their finish_reason."""
    tokens: Tokens = field(default_factory=Tokens)
    """What the replies took when they were made."""
    oldest_at: float | None = None
    """Unix time; None where there is no reply."""
    newest_at: float | None = None
    saved: Saved = field(default_factory=Saved)
    """What all runs saved by finding replies of this model, those pruned since included. A price function applied to
    its tokens gives the money."""

    def plus(self, other: ModelShare) -> ModelShare:
        """Both together, e.g. of two files."""
        mine, theirs = self.tokens, other.tokens
        times = [at for at in (self.oldest_at, self.newest_at, other.oldest_at, other.newest_at) if at is not None]
        return ModelShare(
            model=self.model,
            n_replies=self.n_replies + other.n_replies,
            n_bytes=self.n_bytes + other.n_bytes,
            reasons=Counter(self.reasons) + Counter(other.reasons),
            n_empty=self.n_empty + other.n_empty,
            tokens=Tokens(
                input=mine.input + theirs.input,
                output=mine.output + theirs.output,
                reasoning=mine.reasoning + theirs.reasoning,
                unknown=mine.unknown + theirs.unknown,
            ),
            oldest_at=min(times, default=None),
            newest_at=max(times, default=None),
            saved=self.saved.plus(other.saved),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a ledger holds."""

    folder: Path
    models: tuple[ModelShare, ...]
    """Those with the most replies first."""
    versions: tuple[int, ...]
    """Schema version of each file."""
    n_bytes: int
    """On disk, all files with their logs, without what was set aside."""
    set_aside: tuple[Path, ...]
    """Damaged files that were set aside; nothing reads them."""
    problems: tuple[str, ...]
    """Files that cannot be read, each a sentence; the others are counted."""

    @property
    def total(self) -> ModelShare:
        """All models together."""
        total = ModelShare(model="")
        for share in self.models:
            total = total.plus(share)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which replies are meant: those that meet everything that is said."""

    before: float | None = None
    """Unix time: stored earlier than this."""
    statuses: tuple[str, ...] = ()
    """One of these: a finish_reason, `unknown` where there is none, `empty` for replies without a visible character."""
    model: str | None = None
    """Pattern with *, ? and [...] for the backend's name, with or without `openai:`, or the API's own name."""

    @property
    def is_everything(self) -> bool:
        """True where nothing was said."""
        return self.before is None and not self.statuses and self.model is None

    def condition(self, version: int) -> tuple[str, list[object]]:
        """For a WHERE on a file of that schema version, and its parameters."""
        label = _label(version)
        parts, parameters = ["1"], list[object]()
        if self.before is not None:
            parts.append("created_at < ?")
            parameters.append(self.before)
        if self.statuses:
            words = [
                _IS_EMPTY if status == EMPTY else f"coalesce(finish_reason, '{UNKNOWN}') = ?"
                for status in self.statuses
            ]
            parts.append(f"({' OR '.join(words)})")
            parameters += [status for status in self.statuses if status != EMPTY]
        if self.model is not None:
            names = (label, f"substr({label}, instr({label}, ':') + 1)", "coalesce(model, '')")
            parts.append(f"({' OR '.join(f'{name} GLOB ?' for name in names)})")
            parameters += [self.model] * len(names)
        return " AND ".join(parts), parameters


def age_s(text: str) -> float:
    """Seconds of an age like `30d`, `12h`, `2w`, `90m`.

    >>> age_s("2w") / 86400
    14.0

    Raises: LedgerError for anything else.
    """
    match = _AGE.fullmatch(text.strip().lower())
    if match is None:
        raise LedgerError(f"--older-than {text}: must be a whole number and one of m, h, d, w, e.g. 30d")
    return float(int(match[1]) * UNITS_S[match[2]])


def overview(folder: Path, selection: Selection | None = None) -> Overview:
    """What the ledger holds, or those replies that are meant; also while runs use it.

    Raises: LedgerError where the folder holds no ledger.
    """
    wanted = selection or Selection()
    shares: dict[str, ModelShare] = {}
    versions: list[int] = []
    problems: list[str] = []
    for path in paths_in(folder):
        with readable(path, problems) as file:
            if file is None:
                continue
            versions.append(file.version)
            for share in _shares_in(file, wanted):
                before = shares.get(share.model)
                shares[share.model] = share if before is None else before.plus(share)
    return Overview(
        folder=folder,
        models=tuple(sorted(shares.values(), key=lambda share: (-share.n_replies, share.model))),
        versions=tuple(versions),
        n_bytes=sum(_size_of(path) for path in ledger_paths(folder)),
        set_aside=tuple(damaged_paths(folder)),
        problems=tuple(problems),
    )


def check_selection(selection: Selection, folder: Path) -> None:
    """Refuse a selection of everything, and a status that no reply has: most likely it is misspelt.

    Raises: LedgerError with what there is.
    """
    if selection.is_everything:
        raise LedgerError("say which replies: --older-than 30d, --status empty, --model 'openai:*' (all: --model '*')")
    reasons = {reason for share in overview(folder).models for reason in share.reasons} if selection.statuses else set()
    known = sorted(reasons | {EMPTY, "length"})
    for status in selection.statuses:
        if status not in known:
            told = ", ".join(known)
            raise LedgerError(f"--status {status}: no reply has it{near_miss(status, known)}; there are: {told}")


def refuse_while_in_use(folder: Path) -> None:
    """Raises: LedgerError where a run holds one of the ledger's files."""
    for claim in _claims_of_all(folder):
        claim.release()


def prune(folder: Path, selection: Selection) -> int:
    """Delete the replies that are meant, and give their space back to the disk; how many they were.

    Raises: LedgerError where everything is meant, a run uses the ledger, or a file cannot be written.
    """
    check_selection(selection, folder)
    n_deleted = 0
    with contextlib.ExitStack() as held:
        claims = _claims_of_all(folder)
        for claim in claims:
            held.callback(claim.release)
        for claim in claims:
            try:
                file = LedgerFile.open_to_write(claim.path)
                with contextlib.closing(file):
                    n_deleted += file.delete(*selection.condition(file.version))
            except DamageError as error:
                told = f"{claim.path}: damaged ({error}); nothing of it was deleted. The next run sets it aside."
                raise LedgerError(told) from error
    return n_deleted


def paths_in(folder: Path) -> list[Path]:
    """The ledger's files.

    Raises: LedgerError where there are none.
    """
    with explained(folder, "read"):
        paths = ledger_paths(folder)
    if not paths:
        raise LedgerError(
            f"{folder}: no ledger is here; runs make one there, INTERBENCH_LEDGER or --folder name another"
        )
    return paths


@contextlib.contextmanager
def readable(path: Path, problems: list[str]) -> Iterator[LedgerFile | None]:
    """The file, None where it is empty or cannot be read; what is wrong, also later, is added to `problems`."""
    try:
        file = LedgerFile.open_to_read(path)
    except (DamageError, LedgerError) as error:
        problems.append(_told(path, error))
        yield None
        return
    with contextlib.closing(file) if file is not None else contextlib.nullcontext():
        try:
            yield file
        except (DamageError, LedgerError) as error:
            problems.append(_told(path, error))


def _told(path: Path, error: InterbenchError) -> str:
    damaged = isinstance(error, DamageError)
    return f"{path}: damaged ({error}). The next run that writes it sets it aside." if damaged else str(error)


def _claims_of_all(folder: Path) -> list[Claim]:
    """All files as ours, so that no run writes one of them meanwhile.

    Raises: LedgerError where a run has one of them.
    """
    paths = paths_in(folder)
    with contextlib.ExitStack() as undo, explained(folder, "pruned"), folder_lock(folder):
        claims = []
        for path in paths:
            claim = claim_of(path)
            if claim is None:
                raise LedgerError(
                    f"{path}: a run is using this ledger. Wait until it has ended, or stop it (the same command goes "
                    "on from there), then prune. `interbench ledger show` and `export` work meanwhile."
                )
            undo.callback(claim.release)
            claims.append(claim)
        undo.pop_all()
    return claims


def _label(version: int) -> str:
    """The name that a row is counted under, as `Stored.model`."""
    return f"coalesce(nullif({'backend' if version >= 2 else 'NULL'}, ''), model, '')"


def _shares_in(file: LedgerFile, selection: Selection) -> Iterator[ModelShare]:
    condition, parameters = selection.condition(file.version)
    query = f"""
        SELECT {_label(file.version)}, {_REASON}, count(*), sum({_BYTES}), sum({_IS_EMPTY}),
            total(input_tokens), total(output_tokens), total(reasoning_tokens),
            sum(input_tokens IS NULL OR output_tokens IS NULL), min(created_at), max(created_at)
        FROM reply WHERE {condition} GROUP BY 1, 2"""
    for row in file.select(query, parameters):
        n_replies, n_bytes, n_empty = cast("tuple[int, int, int]", row[2:5])
        tokens_in, tokens_out, reasoning, unknown = (int(cast("float", number)) for number in row[5:9])
        oldest_at, newest_at = cast("tuple[float, float]", row[9:11])
        yield ModelShare(
            model=text_from(row[0]) or "",
            n_replies=n_replies,
            n_bytes=n_bytes,
            reasons={text_from(row[1]) or UNKNOWN: n_replies},
            n_empty=n_empty,
            tokens=Tokens(input=tokens_in, output=tokens_out, reasoning=reasoning, unknown=unknown),
            oldest_at=oldest_at,
            newest_at=newest_at,
        )
    if selection.is_everything:
        for model, saved in file.saved().items():
            yield replace(ModelShare(model=model), saved=saved)


def _size_of(path: Path) -> int:
    """Bytes of a file and its log."""
    total = 0
    for suffix in SIDE_FILES[:2]:  # the third is memory
        with contextlib.suppress(FileNotFoundError):
            total += Path(f"{path}{suffix}").stat().st_size
    return total
