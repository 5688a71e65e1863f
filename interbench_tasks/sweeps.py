"""A sweep: the same items asked again with other generation options, e.g. every effort or token budget of one model.

sweep: {effort: [low, medium, high]}                         # every combination of several options
sweep: [{effort: low}, {max_new_tokens: 512}, {name: no-think, extra_body: {enable_thinking: false}}]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interbench_tasks.errors import ConfigError
from interbench_tasks.generation import GENERATION_KEYS, generation_settings_from
from interbench_tasks.records import GenerationSettings

Changes = Mapping[str, Any]
"""Option -> value, as the words of a backend have them; `name` is taken out."""
NAME = "name"
BODY = "extra_body"
"""Mapping of what goes into the request as it is."""
NOT_SWEPT: Mapping[str, str] = {
    "temperature": "a server that takes none is asked without it, so its variants would be one and the same",
    "top_p": "a server that takes none is asked without it, so its variants would be one and the same",
    "until": "it changes what is kept of a reply, not how the model thinks",
    "do_sample": "it is the harness's own",
    "seed": "use the harness's --repeats",
}
MOST_ALL_PAIRS = 4
"""Up to this many variants are compared each with each; of more, each with the first."""
_LABEL = re.compile(r"[\w.\-=,+]+")


def sweep_from(raw: object) -> tuple[dict[str, Any], ...]:
    """The variants as a list, one mapping each, from either form.

    Raises: ValueError for another form.
    """
    if isinstance(raw, Mapping):
        wrong = [key for key, values in raw.items() if not isinstance(values, list | tuple) or not values]
        if wrong:
            raise ValueError(f"'{wrong[0]}' must be a list of values, e.g. {{effort: [low, high]}}")
        chosen = itertools.product(*raw.values()) if raw else ()
        return tuple(dict(zip(raw, values, strict=True)) for values in chosen)
    if isinstance(raw, list | tuple) and all(isinstance(one, Mapping) for one in raw):
        return tuple(dict(one) for one in raw)
    raise ValueError("must be a mapping of lists, e.g. {effort: [low, high]}, or a list of mappings")


def variants_of(sweep: Sequence[Changes]) -> dict[str, dict[str, Any]]:
    """Label -> what is changed for this variant. A label is its `name`, else what it changes: `effort=low`.

    Raises: ValueError for options that cannot be swept, values out of range, labels that are no names or not unique.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in sweep:
        changes = {key: value for key, value in one.items() if key != NAME}
        if not changes:
            raise ValueError(f"{dict(one)} changes nothing; the task's own settings are played anyway")
        for key in changes:
            if key in NOT_SWEPT:
                raise ValueError(f"'{key}' cannot be swept: {NOT_SWEPT[key]}")
        if not isinstance(changes.get(BODY, {}), Mapping):
            raise ValueError(f"{BODY} must be a mapping of parameters, got {changes[BODY]!r}")  # noqa: TRY004 - pydantic's
        _refuse_wrong_values(changes)
        label = str(one.get(NAME) or _label(changes))
        if not _LABEL.fullmatch(label):
            raise ValueError(f"{label!r} cannot be part of a metric's name: give the variant a `name`")
        if label in found:
            raise ValueError(f"{label!r} is there twice")
        if changes in found.values():
            raise ValueError(f"{label!r} changes the same as another variant")
        found[label] = changes
    return found


def _label(changes: Changes) -> str:
    """E.g. `effort=low,max_new_tokens=512`."""
    return ",".join(f"{key}={value}" for key, value in changes.items())


def _refuse_wrong_values(changes: Changes) -> None:
    own = {key: value for key, value in changes.items() if key in GENERATION_KEYS}
    try:
        generation_settings_from({"max_new_tokens": 1, "temperature": 0.0, "until": [], **own})
    except ConfigError as error:
        raise ValueError("; ".join(f"{problem.key}{problem.message}" for problem in error.problems)) from error


def settings_of(settings: GenerationSettings, changes: Changes) -> GenerationSettings:
    """The settings of a variant."""
    own = {key: value for key, value in changes.items() if key not in (*GENERATION_KEYS, BODY)}
    return generation_settings_from(
        {
            "max_new_tokens": changes.get("max_new_tokens", settings.max_new_tokens),
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "until": list(settings.until),
            **settings.options,
            **own,
            **changes.get(BODY, {}),
        }
    )


def pairs_of(labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The variants that are compared with each other, the later one first: (`effort=high`, `effort=low`)."""
    if len(labels) <= MOST_ALL_PAIRS:
        yield from ((later, earlier) for earlier, later in itertools.combinations(labels, 2))
    else:
        yield from ((later, labels[0]) for later in labels[1:])
