"""Feedback in levels, one a round, and whom a feedback loop tests: what a task YAML may say of both, and what not.

An arm has levels where its plugin says how many (`levels`). Their texts come from the data set (`columns.levels`), from
a model of the role provider, or from a person behind the backend `human`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from interbench_tasks import settings
from interbench_tasks.errors import Problem
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.records import HUMAN
from interbench_tasks.task_roles import Role

ALL_WRONG = "all_wrong"
"""`test_on` of a loop that tests every wrong first answer; nobody has to solve the question first."""
DATA = "data"
"""`level_texts` of a task whose data set brings the texts."""


def tests_all_wrong(options: object) -> bool:
    """Whether a loop with these options tests every wrong first answer, unreadable ones too."""
    return getattr(options, "test_on", None) == ALL_WRONG


def is_unwritten(arm: str, plugin: object, options: object) -> bool:
    """Whether nobody is asked for the arm's feedback: a fixed sentence, or texts of the data set."""
    if not getattr(plugin, "uses_provider", True):
        return True
    return bool(getattr(plugin, "levels", 0)) and getattr(options, "level_texts", None) == DATA


def needs_provider(options: BaseModel, offers: Offers) -> bool:
    """Whether a loop asks its provider anything: to solve the question first, or for feedback."""
    if not tests_all_wrong(options):
        return True
    arms: Sequence[str] = getattr(options, "arms", ())
    return any(not is_unwritten(arm, offers.feedback_providers.get(arm), options) for arm in arms)


def with_texts_found(options: BaseModel, *, has_columns: bool, provider_named: bool, offers: Offers) -> BaseModel:
    """The options with `level_texts` said, where the YAML leaves it open.

    They come from the provider where one is named (in the YAML or the environment) or the data set brings none, else
    from the data set.
    """
    if "level_texts" not in type(options).model_fields or getattr(options, "level_texts", None) is not None:
        return options
    if not _level_arms(options, offers):
        return options
    found = DATA if has_columns and not provider_named else "provider"
    return options.model_copy(update={"level_texts": found})


def provider_is_named(
    roles: Mapping[str, object], several: Sequence[object], given: Mapping[str, str] | None = None
) -> bool:
    """Whether the YAML, the environment or a command line (`given`) says who provides feedback."""
    return (
        "provider" in roles
        or bool(several)
        or "provider" in (given or {})
        or settings.role_override("provider") is not None
    )


def is_person(role: Role, offers: Offers) -> bool:
    """Whether people answer behind the role."""
    return role.words.backend == HUMAN or bool(getattr(offers.backends.get(role.words.backend), "person", False))


def wrong_levels(
    own: BaseModel, columns: Sequence[str] | None, roles: Mapping[str, Sequence[Role]], offers: Offers, *, key: str
) -> Iterator[Problem]:
    """What does not fit together. Args: columns = `columns.levels`; key = the path of the block, for the problems."""
    if "test_on" not in type(own).model_fields:
        if columns:
            yield Problem(key=f"{key}.columns.levels", message=" has no effect: this protocol has no levels")
        return
    arms = _level_arms(own, offers)
    yield from _wrong_texts(own, columns, arms, key)
    max_rounds, guard = getattr(own, "max_rounds", 1), getattr(own, "leak_guard", "")
    for arm, n_levels in arms.items():
        if max_rounds > n_levels:
            message = f" = {max_rounds}: the arm '{arm}' has {n_levels} levels, one a round, so at most {n_levels}"
            yield Problem(key=f"{key}.max_rounds", message=message)
        if guard == "rewrite":
            message = f" = 'rewrite': the last level of '{arm}' gives the answer by design; use observe or off"
            yield Problem(key=f"{key}.leak_guard", message=message)
    people = [role for role in roles.get("provider", ()) if is_person(role, offers)]
    if people:
        yield from _wrong_with_people(own, people[0].named_in, key)


def _level_arms(options: object, offers: Offers) -> dict[str, int]:
    """Arm -> how many levels it has, for those that have any."""
    found = {arm: getattr(offers.feedback_providers.get(arm), "levels", 0) for arm in getattr(options, "arms", ())}
    return {arm: int(n_levels) for arm, n_levels in found.items() if n_levels}


def _wrong_texts(own: BaseModel, columns: Sequence[str] | None, arms: Mapping[str, int], key: str) -> Iterator[Problem]:
    texts, max_rounds = getattr(own, "level_texts", None), getattr(own, "max_rounds", 1)
    if not arms:
        for name in ("level_texts", "level3_without_answer"):
            if name in own.model_fields_set:
                yield Problem(key=f"{key}.{name}", message=" has no effect: no arm has levels (e.g. hierarchical)")
        if columns:
            yield Problem(key=f"{key}.columns.levels", message=" has no effect: no arm has levels (e.g. hierarchical)")
        return
    if texts != DATA:
        return
    if not columns:
        message = (
            " is missing: level_texts: data takes one column a round, e.g. [feedback_l1, feedback_l2, feedback_l3]"
        )
        yield Problem(key=f"{key}.columns.levels", message=message)
    elif len(columns) < max_rounds:
        message = f" names {len(columns)} columns, but max_rounds is {max_rounds}: one a round"
        yield Problem(key=f"{key}.columns.levels", message=message)
    if getattr(own, "level3_without_answer", False):
        message = ": the data set's texts are told as they are (level_texts: data); it would have no effect"
        yield Problem(key=f"{key}.level3_without_answer", message=message)
    if not tests_all_wrong(own):
        message = (
            " = 'provider_right': with level_texts: data nobody solves the question first; write test_on: all_wrong, "
            "and every wrong first answer is tested"
        )
        yield Problem(key=f"{key}.test_on", message=message)


def _wrong_with_people(own: BaseModel, named_in: str, key: str) -> Iterator[Problem]:
    if not tests_all_wrong(own):
        message = (
            f" = 'provider_right': a person ({named_in}) does not solve the question first; write test_on: all_wrong, "
            "and every wrong first answer is tested"
        )
        yield Problem(key=f"{key}.test_on", message=message)
    if getattr(own, "flip_sample", 0):
        message = f": a person ({named_in}) can only mark a right answer as right; use flip_sample: 0"
        yield Problem(key=f"{key}.flip_sample", message=message)
    if getattr(own, "leak_guard", "") == "rewrite":
        message = f" = 'rewrite': nobody asks a person ({named_in}) to write again; use observe or off"
        yield Problem(key=f"{key}.leak_guard", message=message)
