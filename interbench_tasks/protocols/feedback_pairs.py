"""What the second pass of a feedback loop plays: whose feedback an episode borrows, and which right answers are tried.

Pure functions of what all episodes of the first pass were, so one rank or three, in any order, plan the same. Every
draw is a hash of seed and episode: where a run that is continued has one episode more, only its neighbours change, and
what was paid for stays in use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interbench_tasks.records import Message

Key = tuple[int, int]
"""(doc_id, repeat) of an episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """The episodes of one category whose feedback can be borrowed, in a seeded circle."""

    keys: Sequence[Key]
    place: Mapping[Key, int]
    kin: Mapping[Key, frozenset[str]]
    """Episode -> what it shares with those that are no strangers to it (`kin_of`)."""
    seed: str

    def partners(self, key: Key, kin: frozenset[str], rounds: int) -> list[Key]:
        """The next ones of the circle, one a round and never the episode itself; [] where there is no other.

        Without kin every episode is the next one of exactly one other, so all are borrowed from equally often (a
        derangement). Kin are passed over: what was written about the same problem is no placebo.
        """
        own = self.place.get(key)
        start = own + 1 if own is not None else _draw(self.seed, key) % len(self.keys)
        around = [self.keys[(start + step) % len(self.keys)] for step in range(len(self.keys))]
        others = [k for k in around if k != key and self.kin[k].isdisjoint(kin)]
        return [others[step % len(others)] for step in range(rounds)] if others else []


def ring_from(kin: Mapping[Key, frozenset[str]], seed: str) -> Ring:
    """The circle of these episodes (each with its kin): the same for any order in which they are given."""
    keys = list(kin)
    ordered = sorted(keys, key=lambda key: (_draw(seed, key), key))
    return Ring(keys=ordered, place={key: index for index, key in enumerate(ordered)}, kin=kin, seed=seed)


def likenesses(question: Message, target: str, options: Mapping[str, str]) -> list[str]:
    """What a question shares with its twins, as digests: how it is shown, and its words with a free-form answer.

    The first is the same for two rows that show the same words and pictures, whatever their ids. The second is the
    same also where the pictures differ but words and answer do not; an option's letter says too little for that.
    """
    words = "\n".join(part for part in question.content if isinstance(part, str))
    shown = [part if isinstance(part, str) else [part.digest] for part in question.content]
    found = [_digest(["shown", shown])]
    return found if options else [*found, _digest(["said", words, target])]


def kin_of(fact: Mapping[str, Any]) -> frozenset[str]:
    """What an episode shares with another version of its problem (the cluster), and with its twins."""
    cluster = [] if fact["cluster"] is None else [f"cluster {fact['cluster']}"]
    return frozenset([*cluster, *fact["alike"]])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _draw(seed: str, key: Key) -> int:
    """A whole number that is as good as random, below 2^64."""
    return int.from_bytes(hashlib.sha256(f"{seed}|{key[0]}|{key[1]}".encode()).digest()[:8], "big")


def rings_from(facts: Sequence[Mapping[str, Any]], arm: str, label: str, seed: int) -> dict[tuple[object, int], Ring]:
    """(category, repeat) -> the circle of the episodes for which `label` wrote feedback of `arm`."""
    donors: dict[tuple[object, int], dict[Key, frozenset[str]]] = {}
    for fact in facts:
        if label in fact["given"].get(arm, {}):
            donors.setdefault((fact["category"], fact["repeat"]), {})[key_of(fact)] = kin_of(fact)
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
                partners = ring.partners(key, kin_of(fact), 1 if flip else max_rounds) if ring is not None else []
                told = [by_key[partner]["given"][lent][label] for partner in partners]
                borrowed.setdefault(arm, {})[label] = told
        planned[key] = {"flip": flip, "borrowed": borrowed}
    return planned
