"""Damages JSON at random places: what a report must be able to look at."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (None, 5, -1.5, True, "", "odd", "\ud83d", [], {}, [[]], {"text": 7}, [None], "x" * 5000, 1e308)


def places(value: Any, into: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*into, key)
        yield from places(part, (*into, key))


def damaged(obj: dict[str, Any], dice: random.Random, times: int) -> dict[str, Any]:
    """A copy in which some values are others, or gone."""
    broken = copy.deepcopy(obj)
    for _ in range(times):
        ways = [way for way in places(broken) if way[0] not in ("episode_id", "doc_id", "repeat")]
        if not ways:
            break
        *path, last = dice.choice(ways)
        holder = broken
        for key in path:
            holder = holder[key]
        if dice.random() < 0.4:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(dice.choice(ODD))
    return broken
