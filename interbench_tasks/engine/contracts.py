"""What the engine asks of others, and what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from interbench_tasks.hookspecs import Call
from interbench_tasks.records import Reply


class BatchedModel(Protocol):
    """A model that answers many calls at once, on the harness's own thread only."""

    name: str
    """As shown in results."""
    fingerprint: str
    """Everything but messages and settings that can change a reply; part of the ledger key."""
    batch_size: int
    """Most calls in one batch, >= 1; 256 for a harness backend that is a server or an API."""

    def generate(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """One reply a call, in order. Called on the thread that called `Engine.run`; may raise, may use asyncio.run."""
        ...


class LedgerLike(Protocol):
    """What the engine needs of the ledger. What it raises stops the run: nothing is paid for and then lost."""

    def get(self, key: str) -> Reply | None:
        """The reply kept under `key`; called on the loop thread, so it must be quick."""
        ...

    async def put(self, key: str, reply: Reply, backend: str | None = None) -> None:
        """Keep a usable reply of the backend of that name; returns when it is safe on disk."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """How full one model's batches were."""

    model: str
    batch_size: int
    n_batches: int
    n_calls: int
    busy_s: float
    """Seconds spent generating."""

    @property
    def fill(self) -> float | None:
        """Mean share of a batch that was used, in (0, 1]; None where no batch was made."""
        return self.n_calls / (self.n_batches * self.batch_size) if self.n_batches else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """What one run did."""

    n_finished: int
    """Episodes whose record says `finished`; one that was played on is counted once."""
    n_failed: int
    """Episodes whose record says `failed`, those that could not be made included."""
    n_skipped: int
    """Episodes that were never started because of `stop_reason`."""
    calls: int
    """Calls really made; ledger hits and shared calls are not among them."""
    failed_calls: int
    """Of `calls`, those with status `error`."""
    ledger_hits: int
    shared_calls: int
    """Calls that got the reply of an identical call in flight."""
    wall_s: float
    most_live: int
    """Most episodes that ran at the same time; those that waited for people are not among them."""
    idle_s: float
    """Seconds in which the calling thread had no batch although episodes were still unstarted."""
    batches: tuple[BatchReport, ...]
    """One a batched model."""
    problems: tuple[str, ...]
    """Backends that could not be closed, redacted; the results are not touched by it."""
