"""A wrong answer of the same kind as the target: what the leak guard's placebo is tried with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

_TRIES = 10
_SEED = "decoy"


def decoy_from(episode_id: str, target: str, options: Mapping[str, str], others: Sequence[str]) -> str | None:
    """Another option's letter, else another row's answer, drawn by a hash of the episode's id.

    Args: others = the answers of all rows of a free-form data set, the own one among them; not looked at where there
        are options.
    Returns: None where nothing else was found in a few draws.

    >>> decoy_from("q1", "B", {"A": "cat", "B": "dog"}, [])
    'A'
    """
    candidates = sorted(set(options) - {target}) if options else others
    for number in range(_TRIES if candidates else 0):
        drawn = candidates[_draw(episode_id, number) % len(candidates)]
        if drawn.strip() and drawn.strip() != target.strip():
            return drawn
    return None


def _draw(episode_id: str, number: int) -> int:
    digest = hashlib.sha256(f"{_SEED}|{number}|{episode_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")
