"""How long replies are, and how far the rule of thumb for prompts is off: assumed, or learned from episodes played."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.estimating.given import Given
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.rehearsal import Key, Rehearsal
from interbench_tasks.protocols.rehearsed import THOUGHTS, RehearsedCalls
from interbench_tasks.records import EpisodeRecord

JUDGED = (40.0, 160.0)
"""Tokens of a verdict, shortest to longest mean: a JSON object and one sentence why."""
NOTES = (80.0, 600.0)
"""Of notes, in the mean over a conversation."""
TURN = (20.0, 250.0)
"""Of what the receiver says within a conversation."""
THINKING = (100.0, 2000.0)
ONE_EPISODE = 0.3
"""Relative error of what a single episode tells: nobody knows how much episodes differ."""


def assumed_length(kind: str, given: Given) -> tuple[float, float]:
    """Mean tokens of a reply of a kind, from the shortest to the longest that is to be expected."""
    if given.reply is not None and not _of_another(kind):
        return given.reply
    if "judged" in kind:
        return JUDGED
    if kind.startswith("notes"):
        return NOTES
    return {"turn": TURN, THOUGHTS: THINKING}.get(kind, given.assumed.reply)


def _of_another(kind: str) -> bool:
    return "judged" in kind or kind.startswith("notes") or kind == THOUGHTS


@dataclass(slots=True)
class Seen:
    """Calls of one kind that were made in one episode."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    untold: int = 0
    """Calls whose tokens nobody told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRatio:
    """A ratio of sums over the episodes that were played."""

    top: NDArray[np.float64]
    """float64 [episodes]."""
    bottom: NDArray[np.float64]
    """float64 [episodes], each > 0."""

    @property
    def mean(self) -> float:
        """sum(top) / sum(bottom)."""
        return float(self.top.sum() / self.bottom.sum())

    @property
    def freedom(self) -> int:
        """Degrees of freedom of its error: few episodes tell little of how much episodes differ."""
        return max(len(self.top) - 1, 1)

    def error(self, n_more: int) -> float:
        """Standard error for `n_more` other episodes, from how much these differ."""
        m = len(self.top)
        if m < 2:
            return ONE_EPISODE * self.mean
        scaled = (self.top - self.mean * self.bottom) / self.bottom.mean()
        return float(scaled.std(ddof=1)) * math.sqrt(1 / m + 1 / max(n_more, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What episodes that were played tell."""

    records: tuple[EpisodeRecord, ...] = ()
    told: Mapping[int, Mapping[Key, Seen]] = field(default_factory=dict)
    """doc_id -> their calls; of episodes without a failure."""
    known: Mapping[int, Mapping[Key, Seen]] = field(default_factory=dict)
    """Those that are episodes of this very run: they are counted as they were."""
    rehearsal: Rehearsal | None = None
    same_rows: frozenset[int] = frozenset()
    """doc_ids of `told` that are the rows which were rehearsed, and not those of other data."""

    def mean(self, kind: str) -> float | None:
        """Mean output tokens of the kind; None where none was told."""
        found = self.length(kind)
        return None if found is None else found.mean

    def length(self, kind: str) -> SeenRatio | None:
        """Output tokens a call of the kind; None where none was told."""
        pairs = self._lengths(kind)
        return SeenRatio(top=pairs[:, 0], bottom=pairs[:, 1]) if len(pairs) else None

    def _lengths(self, kind: str) -> NDArray[np.float64]:
        """[episodes, (tokens, calls)] of those in which all calls of the kind were told."""
        found = []
        for own in self.told.values():
            of_kind = [seen for (_, k), seen in own.items() if k == kind]
            calls = sum(seen.calls for seen in of_kind)
            if calls and not any(seen.untold for seen in of_kind):
                found.append((sum(seen.output_tokens for seen in of_kind), calls))
        return np.array(found, dtype=np.float64).reshape(-1, 2)

    def ratio(self, role: str, kind: str) -> SeenRatio | None:
        """Input tokens that were counted / those of the rule of thumb."""
        if self.rehearsal is None:
            return None
        lengths = {k: self.mean(k) for own in self.rehearsal.episodes.values() for _, k in own}
        counted, thumb = [], []
        for doc in sorted(self.same_rows):
            seen, size = self.told[doc].get((role, kind)), self.rehearsal.episodes[doc].get((role, kind))
            if seen is None or size is None or seen.untold or not seen.calls:
                continue
            if any(lengths.get(other) is None and other != THOUGHTS for other in size.quoted):
                return None
            quoted = sum(n * (lengths.get(other) or size_of_thoughts()) for other, n in size.quoted.items())
            per_call = (size.text + sum(size.pictures) / 2 + quoted) / size.calls
            counted.append(seen.input_tokens)
            thumb.append(per_call * seen.calls)
        if not thumb or sum(thumb) <= 0:
            return None
        return SeenRatio(top=np.array(counted, dtype=np.float64), bottom=np.array(thumb, dtype=np.float64))

    def against(self, rehearsal: Rehearsal) -> Learned:
        """With the rehearsal of the same episodes; what is of other data tells no prompts' sizes."""
        same = frozenset(r.doc_id for r in self.records if rehearsal.ids.get(r.doc_id) == r.episode_id)
        known = {doc: own for doc, own in self.known.items() if doc in same}
        return replace(self, known=known, rehearsal=rehearsal, same_rows=same)


def size_of_thoughts() -> float:
    """Tokens that reasoning is taken to have where a judge is shown it: replies do not tell them apart."""
    return sum(THINKING) / 2


def learned_lengths(calls: RehearsedCalls, played: Played, rows: Sequence[int]) -> Learned:
    """What the episodes that were played tell; those with a failure tell nothing."""
    wanted = set(rows)
    own = [record for record in played.records if record.repeat == 0 and record.doc_id in wanted and _whole(record)]
    told: dict[int, dict[Key, Seen]] = {}
    made: set[tuple[object, ...]] = set()
    for record in own:
        found = told.setdefault(record.doc_id, {})
        for role, kind, reply in calls.calls_in(record):
            # Whoever asked the same got the same reply, with the time at which it was asked for.
            call = (role, reply.run.started_at, reply.run.latency_s, reply.text)
            if reply.usage.calls and call not in made:
                made.add(call)
                _add(found.setdefault((role, kind), Seen()), reply.usage.input_tokens, reply.usage.output_tokens)
    untold = {doc for doc, seen in told.items() if any(one.untold for one in seen.values())}
    known = {doc: seen for doc, seen in told.items() if doc not in untold} if played.same else {}
    return Learned(records=tuple(own), told=told, known=known)


def _add(seen: Seen, asked: int | None, said: int | None) -> None:
    seen.calls += 1
    seen.input_tokens += asked or 0
    seen.output_tokens += said or 0
    seen.untold += asked is None or said is None


def _whole(record: EpisodeRecord) -> bool:
    """Whether nothing in it failed."""
    judged = [verdict for turn in record.turns for verdict in (*turn.verdicts, *turn.reasoning_verdicts)]
    failed = any(not turn.reply.usable for turn in record.turns) or any(one.status == "error" for one in judged)
    return record.status == "finished" and not failed and not record.ends
