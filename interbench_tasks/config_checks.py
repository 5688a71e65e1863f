"""What a task YAML says of memories and judges, held against what the plugins offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.errors import ConfigError, Problem, near_miss
from interbench_tasks.judging_panel import DEFAULT_RULE, panel_problems
from interbench_tasks.judging_rubrics import Rubric, rubrics
from interbench_tasks.memories import arm_name, memory_arms
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.task_roles import Role

KEY = "metadata.interbench"


def unknown(key: str, value: object, allowed: Mapping[str, object] | Sequence[str]) -> Problem:
    """A value that is none of those that are allowed, with its near miss."""
    names = sorted(allowed)
    return Problem(key=key, message=f" = {value!r}{near_miss(value, names)}", allowed=tuple(names))


def wrong_panel(own: BaseModel, roles: Mapping[str, Sequence[Role]], offers: Offers) -> Iterator[Problem]:
    """What is wrong with judges, their rule and their rubrics; a judge that nobody named is told elsewhere."""
    rubric = getattr(own, "rubric", None)
    if rubric is None:
        return
    if roles.get("judge"):
        judges = [role.label or role.words.model for role in roles["judge"]]
        panel, quorum = getattr(own, "panel", DEFAULT_RULE), getattr(own, "quorum", None)
        yield from panel_problems(rule=panel, quorum=quorum, judges=judges, allowed=[*offers.panel_rules], key=KEY)
        yield from _the_same_twice(roles["judge"])
    try:
        found = rubrics(rubric)
    except ConfigError as error:
        yield from (replace(problem, key=f"{KEY}.rubric: {problem.key}") for problem in error.problems)
        return
    wanted: Mapping[str, Sequence[str]] = getattr(type(own), "rubric_keys", dict.fromkeys(ABILITIES, ()))
    missing = [key for key in wanted if key not in found]
    missing += [f"{key}.fields.{name}" for key in wanted for name in wanted[key] if name not in _fields_of(found, key)]
    if missing:
        yield Problem(key=f"{KEY}.rubric", message=f" = {rubric!r} has no entry for {', '.join(missing)}")


def _fields_of(found: Mapping[str, Rubric], key: str) -> Sequence[str]:
    """Names of the values that a rubric asks for; none where the rubric itself is missing."""
    return tuple(found[key].fields) if key in found else ()


def _the_same_twice(judges: Sequence[Role]) -> Iterator[Problem]:
    """Judges under two names that would answer alike: one model that votes twice is no panel."""
    for place, role in enumerate(judges):
        same = [other for other in judges[:place] if (other.words, other.settings) == (role.words, role.settings)]
        if same:
            message = f": is the same judge as '{same[0].label}'; name each model once"
            yield Problem(key=role.named_in, message=message)


def wrong_memories(own: BaseModel, offers: Offers) -> Iterator[Problem]:
    """Memories that nobody offers, and arms that are there twice."""
    key = f"{KEY}.{'memories' if 'memories' in type(own).model_fields else 'memory'}"
    arms = memory_arms(own)
    for name in sorted({name for arm in arms for name in arm if name not in offers.memories}):
        yield unknown(key, name, offers.memories)
    named = [arm_name(arm) for arm in arms]
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield Problem(key=key, message=f": '{name}' is named twice")
    for arm in arms:
        if len(set(arm)) < len(arm):
            yield Problem(key=key, message=f": '{arm_name(arm)}' has one memory twice")
