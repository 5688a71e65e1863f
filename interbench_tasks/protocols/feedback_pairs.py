"""What the second pass of a feedback loop plays: whose feedback an episode borrows, and which right answers are tried.

Pure functions of what all episodes of the first pass were, so one rank or three, in any order, plan the same. Every
draw is a hash of seed and episode: where a run that is continued has one episode more, only its neighbours change, and
what was paid for stays in use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[int, int]
"""(doc_id, repeat) of an episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """The episodes of one category whose feedback can be borrowed, in a seeded circle."""

    keys: Sequence[Key]
    place: Mapping[Key, int]
    clusters: Mapping[Key, str | None]
    seed: str

    def partners(self, key: Key, cluster: str | None, rounds: int) -> list[Key]:
        """The next ones of the circle, one a round and never the episode itself; [] where there is no other.

        Without clusters every episode is the next one of exactly one other, so all are borrowed from equally often (a
        derangement). One of the same cluster is passed over: what was written about another version of the same problem
        is no placebo.
        """
        own = self.place.get(key)
        start = own + 1 if own is not None else _draw(self.seed, key) % len(self.keys)
        around = [self.keys[(start + step) % len(self.keys)] for step in range(len(self.keys))]
        others = [k for k in around if k != key and (cluster is None or self.clusters[k] != cluster)]
        return [others[step % len(others)] for step in range(rounds)] if others else []


def ring_from(clusters: Mapping[Key, str | None], seed: str) -> Ring:
    """The circle of these episodes (each with its cluster): the same for any order in which they are given."""
    keys = list(clusters)
    ordered = sorted(keys, key=lambda key: (_draw(seed, key), key))
    return Ring(keys=ordered, place={key: index for index, key in enumerate(ordered)}, clusters=clusters, seed=seed)


def _draw(seed: str, key: Key) -> int:
    """A whole number that is as good as random, below 2^64."""
    return int.from_bytes(hashlib.sha256(f"{seed}|{key[0]}|{key[1]}".encode()).digest()[:8], "big")


def rings_from(facts: Sequence[Mapping[str, Any]], arm: str, label: str, seed: int) -> dict[tuple[object, int], Ring]:
    """(category, repeat) -> the circle of the episodes for which `label` wrote feedback of `arm`."""
    donors: dict[tuple[object, int], dict[Key, str | None]] = {}
    for fact in facts:
        if label in fact["given"].get(arm, {}):
            donors.setdefault((fact["category"], fact["repeat"]), {})[key_of(fact)] = fact["cluster"]
    return {group: ring_from(found, f"{seed} {group} {arm} {label}") for group, found in donors.items()}


def sampled(facts: Sequence[Mapping[str, Any]], n: int, seed: int) -> frozenset[Key]:
    """At most `n` of the episodes that were right at round 0, each set of them equally likely."""
    right = [key_of(fact) for fact in facts if fact["right"]]
    return frozenset(sorted(right, key=lambda key: (_draw(f"{seed} flip", key), key))[:n])


def key_of(fact: Mapping[str, Any]) -> Key:
    """The episode that a fact tells of."""
    return fact["doc_id"], fact["repeat"]


def plan_from(
    facts: Sequence[Mapping[str, Any]],
    *,
    borrowing: Mapping[str, str],
    labels: Sequence[str],
    max_rounds: int,
    flip_sample: int,
    seed: int,
) -> dict[Key, dict[str, Any]]:
    """(doc_id, repeat) -> `{"flip": bool, "borrowed": {arm: {label: [what another episode was told, a round each]}}}`.

    Args: borrowing = arm -> the arm whose feedback it borrows; labels = of the providers.
    """
    by_key = {key_of(fact): fact for fact in facts}
    flips = sampled(facts, flip_sample, seed)
    rings = {(arm, label): rings_from(facts, lent, label, seed) for arm, lent in borrowing.items() for label in labels}
    planned: dict[Key, dict[str, Any]] = {}
    for key, fact in sorted(by_key.items()):
        flip = key in flips
        if not flip and not (borrowing and fact["test"]):
            continue
        group = (fact["category"], fact["repeat"])
        borrowed: dict[str, dict[str, Any]] = {}
        for arm, lent in borrowing.items():
            for label in labels if flip else fact["test"]:
                ring = rings[(arm, label)].get(group)
                partners = ring.partners(key, fact["cluster"], 1 if flip else max_rounds) if ring is not None else []
                told = [by_key[partner]["given"][lent][label] for partner in partners]
                borrowed.setdefault(arm, {})[label] = told
        planned[key] = {"flip": flip, "borrowed": borrowed}
    return planned
