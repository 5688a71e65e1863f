"""Who plays which role: the words of a task YAML, or of the environment, checked against what the plugins offer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interbench_tasks import settings
from interbench_tasks.errors import BackendError, InterbenchError, MissingKeyError, Problem, near_miss
from interbench_tasks.generation import GENERATION_KEYS, generation_settings_from
from interbench_tasks.hookspecs import Backend
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.records import GenerationSettings
from interbench_tasks.redaction import redact, shown_cause
from interbench_tasks.role_words import RoleWords, role_words_from, role_words_from_mapping, several_role_words

ROLE_NAMES = ("provider", "judge", "notetaker")
SEVERAL = ("provider", "judge")
"""Roles that several backends may play side by side."""
HARNESS_BACKEND = "harness"
"""A role may be a model of the harness: `harness:qwen2_5_vl,pretrained=...`; harness/ makes it, no plugin."""

Spec = str | Mapping[str, Any]
"""A role as it is written: words, or a mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role of the YAML (or the environment), ready to be made."""

    words: RoleWords
    settings: GenerationSettings
    named_in: str
    """Where it was named: `metadata.interbench.roles.provider` or `INTERBENCH_PROVIDER`."""
    label: str = ""
    """Tells several backends of one role apart, e.g. in `correction_rate.detail@gpt-4o`; empty where there is one."""


def role_key(role: str, label: str) -> str:
    """The name under which a role's model stands in manifests and records.

    >>> role_key("provider", ""), role_key("provider", "gpt-4o")
    ('provider', 'provider@gpt-4o')
    """
    return f"{role}@{label}" if label else role


def roles_from(
    raw: Mapping[str, Spec],
    several: Mapping[str, Sequence[Spec]],
    wanted: Sequence[str],
    *,
    key: str,
    offers: Offers,
    problems: list[Problem],
    given: Mapping[str, str] | None = None,
) -> dict[str, tuple[Role, ...]]:
    """The roles that a protocol wants, each with its backends; the environment wins over the YAML.

    Args: raw = the YAML's `roles`; several = role -> its backends, from the YAML's `providers` and `judges`; key = the
        path of the block they stand in; problems found are added to `problems`; given = role -> words of a command
        line, which win over both.
    """
    problems += [_unknown_role(f"{key}.roles.{name}", name) for name in raw if name not in ROLE_NAMES]
    for name, specs in several.items():
        if specs and name in raw:
            problems.append(Problem(key=f"{key}.{name}s", message=f" and roles.{name} are both there; keep one"))
    roles: dict[str, tuple[Role, ...]] = {}
    for name in wanted:
        if given is not None and name in given:
            named: list[tuple[Spec, str]] = [(words, f"--{name}s") for words in several_role_words(given[name])]
        else:
            named = list(_specs(name, raw, several.get(name, ()), key, problems))
        if len(named) > 1 and name not in SEVERAL:
            problems.append(Problem(key=named[1][1], message=f": there can be one {name} only, got {len(named)}"))
            continue
        if not named:
            continue
        made = [role for spec, where in named for role in _checked(name, spec, where, offers, problems)]
        if len(made) == len(named):
            roles[name] = _labelled(made, problems)
    return roles


def _specs(
    name: str, raw: Mapping[str, Spec], several: Sequence[Spec], key: str, problems: list[Problem]
) -> Iterator[tuple[Spec, str]]:
    """What is written for a role, and where; nothing, and a problem, where nothing is."""
    override = settings.role_override(name)
    variable = settings.role_variable(name)
    if override is not None:
        for words in several_role_words(override):
            yield words, variable
    elif several:
        for index, spec in enumerate(several):
            yield spec, f"{key}.{name}s.{index}"
    elif name in raw:
        yield raw[name], f"{key}.roles.{name}"
    else:
        hint = f" is missing: name it in the YAML or in the environment variable {variable}"
        problems.append(Problem(key=f"{key}.roles.{name}", message=hint))


def _unknown_role(path: str, name: str) -> Problem:
    return Problem(key=path, message=f" is no known key{near_miss(name, ROLE_NAMES)}", allowed=ROLE_NAMES)


def _checked(name: str, spec: Spec, where: str, offers: Offers, problems: list[Problem]) -> Iterator[Role]:
    """The role, unless a problem was found."""
    try:
        words = role_words_from(spec) if isinstance(spec, str) else role_words_from_mapping(spec)
        role = _role_from(words, where)
    except InterbenchError as error:
        problems.append(Problem(key=where, message=f": {error}"))
        return
    if words.backend != HARNESS_BACKEND:
        if words.backend not in offers.backends:
            names = tuple(sorted([*offers.backends, HARNESS_BACKEND]))
            message = f" = {words.backend!r}{near_miss(words.backend, names)}"
            problems.append(Problem(key=where, message=message, allowed=names))
            return
        try:
            plays = getattr(backend_from(role, offers), "plays", (name,))  # it does not connect: this only checks it
        except MissingKeyError:
            pass  # a matter of the machine that runs it; told when it does
        except InterbenchError as error:
            problems.append(Problem(key=where, message=f": {str(error).removeprefix(f'{where}: ')}"))
            return
        else:
            if name not in plays:
                message = f": {words.backend} cannot be the {name}; it can be: {', '.join(plays)}"
                problems.append(Problem(key=where, message=message))
                return
    yield role


def _role_from(words: RoleWords, named_in: str) -> Role:
    """Split a role's options into its label, generation settings and what the backend itself takes."""
    options = dict(words.options)
    label = str(options.pop("name", ""))
    generation = {key: options.pop(key) for key in GENERATION_KEYS if key in options}
    return Role(
        words=RoleWords(backend=words.backend, model=words.model, options=options),
        settings=generation_settings_from({"max_new_tokens": 1024, "temperature": 0.0, "until": (), **generation}),
        named_in=named_in,
        label=label,
    )


def _labelled(roles: Sequence[Role], problems: list[Problem]) -> tuple[Role, ...]:
    """Each role with its label: its `name`, else the last part of its model; none where it is alone."""
    if len(roles) == 1:
        return (replace(roles[0], label=""),)
    labelled = tuple(replace(role, label=role.label or _short(role.words)) for role in roles)
    for role in labelled:
        if not re.fullmatch(r"[\w.\-]+", role.label):
            message = f": name = {role.label!r} may hold letters, digits, _ . and - only"
            problems.append(Problem(key=role.named_in, message=message))
        elif re.search(r"\.(?:n|unscored|ci95_low|ci95_high|(?:round|within)\d*)(?:\.|$)", role.label):
            message = f": name = {role.label!r} reads like a part of a metric's name; choose another"
            problems.append(Problem(key=role.named_in, message=message))
    labels = [role.label for role in labelled]
    for label in sorted({label for label in labels if labels.count(label) > 1}):
        problems.append(
            Problem(key=labelled[labels.index(label)].named_in, message=f": two are called '{label}'; give each a name")
        )
    return labelled


def _short(words: RoleWords) -> str:
    return re.sub(r"[^\w.\-]+", "-", words.model.rpartition("/")[2]).strip("-") or words.backend


def backend_from(role: Role, offers: Offers) -> Backend:
    """The backend of a role; it does not connect yet.

    Raises: BackendError (MissingKeyError for a missing key) naming where the role was named.
    """
    try:
        made: Backend = offers.backends[role.words.backend](role.words.model, **role.words.options)
    except (InterbenchError, TypeError, ValueError) as error:
        kind = type(error) if isinstance(error, InterbenchError) else BackendError
        raise kind(redact(f"{role.named_in}: {error}{_way_out(role, error)}")) from shown_cause(error)
    return made


def _way_out(role: Role, error: Exception) -> str:
    """How to do without a key that a judge of a YAML needs: its task names several, and they are not the user's."""
    if not isinstance(error, MissingKeyError) or not role.named_in.startswith("metadata.interbench.judges"):
        return ""
    return "\n  Other judges for one run: INTERBENCH_JUDGES=BACKEND:MODEL,BACKEND:MODEL (interbench judge: --judges)"
