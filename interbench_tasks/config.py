"""`metadata.interbench` of a task YAML -> `TaskOptions`; every error of a file at once, with near misses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from interbench_tasks.budget import BudgetOptions, limits_from
from interbench_tasks.config_checks import KEY, unknown, wrong_memories, wrong_panel
from interbench_tasks.errors import ConfigError, Problem, near_miss
from interbench_tasks.generation import generation_settings_from
from interbench_tasks.hookspecs import ProtocolFactory
from interbench_tasks.levels import needs_provider, provider_is_named, with_texts_found, wrong_levels
from interbench_tasks.memories import memory_arms
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.prices import price_list
from interbench_tasks.prompts import variables_in
from interbench_tasks.records import GenerationSettings
from interbench_tasks.redaction import redact
from interbench_tasks.task_roles import SEVERAL, Role, roles_from

Model = TypeVar("Model", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Columns(_Strict):
    """Which column of the data set holds what. None: the data set has no such column."""

    id: str | None = "id"
    question: str = "question"
    pictures: str | tuple[str, ...] | None = "image"
    """One column (a picture or a list of them), or several columns in the order to show."""
    options: str | None = "options"
    options_in_text: str | tuple[str, ...] | None = None
    """Column whose text holds the options as lines `A:...` after a line `Choices:`; of several, the first with such a
    list. A row without one is free-form."""
    answer: str = "answer"
    category: str | None = "category"
    first_answer: str | None = None
    """Recorded first answers, which stand for round 0."""
    levels: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Columns of feedback that the data set brings, one a level, for an arm that has levels."""
    extra: tuple[str, ...] = ()
    """Further columns that a plugin wants to see."""


class PictureOptions(_Strict):
    """How pictures are sent."""

    max_side: Annotated[int, Field(ge=16)] | None = None
    """Longest side in pixels; larger pictures are made smaller. None: as they are."""
    root: str | None = None
    """Folder of relative picture paths; None: the folder of the data file."""
    required: bool = False
    """Whether a row without a picture is an error; it fails its own episode only."""
    tokens: bool = False
    """Whether `<image n>` in question and options stands for the n-th picture column."""
    multi_image: Literal["native", "first", "grid"] = "native"
    """What goes out where a question has several pictures: each in its place, only the first, or all in one picture."""


class EngineOptions(_Strict):
    """How many episodes run at once, when a batch leaves, and how long an episode may take."""

    max_live_episodes: Annotated[int, Field(ge=1)] | None = None
    max_wait_s: Annotated[float, Field(ge=0, le=60)] = 0.5
    max_episode_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = 3600.0
    """Most seconds in plugins and at backends; waiting for a batch, a slot or a person does not count. An episode above
    it fails alone. None: no limit."""


class CommonOptions(_Strict):
    """The keys of `metadata.interbench` that every protocol knows; a protocol adds its own."""

    protocol: str
    verifier: str = "choice_or_exact"
    metrics: str | None = None
    """None: the metric set that the protocol names."""
    columns: Columns = Columns()
    cluster: str | None = None
    """Column whose equal values mark rows that are not independent."""
    answer_is: Literal["auto", "letter", "text", "as_is"] = "auto"
    """Whether the answer column holds an option's letter or its text; `auto` refuses an answer that could be both.
    `as_is`: as `auto`, but an answer that is no option goes to the verifier as it stands."""
    pictures: PictureOptions = PictureOptions()
    prompts: dict[str, str] = {}
    system: str | None = None
    roles: dict[str, str | dict[str, Any]] = {}
    providers: tuple[str | dict[str, Any], ...] = ()
    """Several providers that share round 0, instead of `roles.provider`."""
    judges: tuple[str | dict[str, Any], ...] = ()
    """Several judges of one panel, instead of `roles.judge`."""
    engine: EngineOptions = EngineOptions()
    budget: BudgetOptions = BudgetOptions()
    """What a run may use, and what models cost."""
    max_failed_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Above this share of failed episodes the run says so loudly."""

    @field_validator("prompts")
    @classmethod
    def _templates_parse(cls, prompts: dict[str, str]) -> dict[str, str]:
        from jinja2 import Environment, TemplateSyntaxError

        for name, text in prompts.items():
            try:
                Environment(autoescape=False).parse(text)
            except TemplateSyntaxError as error:
                raise ValueError(f"prompt '{name}', line {error.lineno}: {error.message}") from error
        return prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """Everything that a task YAML says to us, checked."""

    where: str
    """File or task name, for errors."""
    common: CommonOptions
    protocol_options: BaseModel
    metrics: str
    roles: Mapping[str, tuple[Role, ...]]
    """Role -> its backends; several have labels, which the protocol's options repeat (`providers`, `judges`)."""
    receiver_settings: GenerationSettings
    version: str
    """`metadata.version`: raised by any change that can move a score."""
    reads: Literal["questions", "conversations", "flawed_items"] = "questions"
    """What a row of the data set is, as the protocol says."""


def task_options_from(
    config: Mapping[str, Any], *, where: str, offers: Offers, given: Mapping[str, str] | None = None
) -> TaskOptions:
    """The options of one task, checked against everything that the plugins offer.

    Args: config = the whole task YAML, includes resolved; where = its file or name, for errors; given = role -> words
        of a command line, which win over the environment and the YAML.
    Raises: ConfigError with all problems at once.
    """
    problems: list[Problem] = []
    metadata = config.get("metadata")
    raw = metadata.get("interbench") if isinstance(metadata, Mapping) else None
    receiver_settings = _receiver_settings(config, problems)
    problems += [*_forbidden_keys(config), *_unknown_keys(config), *_wrong_data_options(config)]
    if not isinstance(raw, Mapping):
        problems.append(Problem(key=KEY, message=f" is missing or no mapping, got {raw!r}"))
        raise _error(where, problems)
    protocol = raw.get("protocol")
    if not isinstance(protocol, str) or protocol not in offers.protocols:
        problems.append(unknown(f"{KEY}.protocol", protocol, offers.protocols))
        raise _error(where, problems)
    options_model = offers.protocols[protocol].Options
    common, own = _split(raw, options_model, problems)
    common_options = _validated(CommonOptions, common, problems)
    protocol_options = _validated(options_model, own, problems)
    metrics = ""
    roles: dict[str, tuple[Role, ...]] = {}
    if common_options is not None and protocol_options is not None:
        metrics = common_options.metrics or offers.protocols[protocol].metrics
        problems += _unknown_plugin_names(common_options, protocol_options, metrics, offers)
        problems += _budget_problems(common_options.budget)
        protocol_options = with_texts_found(
            protocol_options,
            has_columns=bool(common_options.columns.levels),
            provider_named=provider_is_named(common_options.roles, common_options.providers, given),
            offers=offers,
        )
        common_options = _with_columns_used(common_options, protocol_options)
        wanted = _wanted_roles(offers.protocols[protocol], protocol_options, offers)
        several = {"provider": common_options.providers, "judge": common_options.judges}
        roles = roles_from(
            common_options.roles, several, wanted, key=KEY, offers=offers, problems=problems, given=given
        )
        problems += wrong_panel(protocol_options, roles, offers)
        problems += wrong_levels(protocol_options, common_options.columns.levels, roles, offers, key=KEY)
        protocol_options = _with_labels(protocol_options, roles, problems)
    if problems or common_options is None or protocol_options is None or receiver_settings is None:
        raise _error(where, problems)
    return TaskOptions(
        where=where,
        common=common_options,
        protocol_options=protocol_options,
        metrics=metrics,
        roles=roles,
        receiver_settings=receiver_settings,
        version=str(metadata.get("version", "")) if isinstance(metadata, Mapping) else "",
        reads=getattr(offers.protocols[protocol], "reads", "questions"),
    )


def _error(where: str, problems: Sequence[Problem]) -> ConfigError:
    """All problems as one error; a key that somebody wrote into a YAML is not shown."""
    return ConfigError(where, [replace(problem, message=redact(problem.message)) for problem in problems])


def _split(
    raw: Mapping[str, Any], options_model: type[BaseModel], problems: list[Problem]
) -> tuple[dict[str, Any], dict[str, Any]]:
    known = sorted({*CommonOptions.model_fields, *options_model.model_fields})
    refused: Mapping[str, str] = getattr(options_model, "refused_keys", {})
    problems += [
        Problem(key=f"{KEY}.{key}", message=f": {refused[key]}")
        if key in refused
        else _unknown_key(f"{KEY}.{key}", key, known)
        for key in raw
        if key not in known
    ]
    common = {key: value for key, value in raw.items() if key in CommonOptions.model_fields}
    own = {key: value for key, value in raw.items() if key in options_model.model_fields and key not in common}
    return common, own


def _budget_problems(options: BudgetOptions) -> Iterator[Problem]:
    """What is wrong with the environment's limits or a file of prices: told before anything is paid."""
    try:
        limits_from(options)
    except ConfigError as error:
        yield from error.problems
    try:
        price_list(options.prices)
    except ConfigError as error:
        yield from (replace(problem, key=f"{error.where}: {problem.key}") for problem in error.problems)


def _with_labels(options: BaseModel, roles: Mapping[str, Sequence[Role]], problems: list[Problem]) -> BaseModel:
    """The protocol's options with the labels of several providers or judges; problems where it takes one only."""
    labels: dict[str, tuple[str, ...]] = {}
    for name in SEVERAL:
        found = tuple(role.label for role in roles.get(name, ()) if role.label)
        if found and f"{name}s" not in type(options).model_fields:
            problems.append(Problem(key=f"{KEY}.{name}s", message=f": this protocol takes one {name} only"))
        elif found:
            labels[f"{name}s"] = found
    return options.model_copy(update=labels) if labels else options


def _with_columns_used(common: CommonOptions, own: BaseModel) -> CommonOptions:
    """Without the columns of feedback where the provider writes it: the data set then need not have them."""
    if getattr(own, "level_texts", None) != "provider":
        return common
    return common.model_copy(update={"columns": common.columns.model_copy(update={"levels": None})})


def _wanted_roles(protocol: ProtocolFactory, options: BaseModel, offers: Offers) -> tuple[str, ...]:
    """The roles that the protocol needs with these options: a judge where a rubric is named, a notetaker for notes.

    No provider where nobody has to solve the question first and no feedback is written.
    """
    wanted = [role for role in protocol.roles if role != "judge" or getattr(options, "rubric", "") is not None]
    wanted = [role for role in wanted if role != "provider" or needs_provider(options, offers)]
    memories = [offers.memories.get(name) for arm in memory_arms(options) for name in arm]
    if any(getattr(memory, "takes_notes", False) for memory in memories):
        wanted.append("notetaker")
    return tuple(wanted)


def _unknown_key(path: str, key: str, known: Sequence[str]) -> Problem:
    return Problem(key=path, message=f" is no known key{near_miss(key, known)}", allowed=tuple(known))


def _validated(model: type[Model], raw: Mapping[str, Any], problems: list[Problem]) -> Model | None:
    untrue = list(_truths_for_numbers(model, raw, KEY))
    if untrue:
        problems += untrue
        return None
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems += [_problem_from(detail, model) for detail in error.errors()]
        return None


def _problem_from(detail: Mapping[str, Any], model: type[BaseModel]) -> Problem:
    steps = [str(step) for step in detail["loc"] if not _is_union_branch(step)]
    path = ".".join([KEY, *steps])
    if detail["type"] == "extra_forbidden":
        return _unknown_key(path, steps[-1], sorted(_model_at(model, steps[:-1]).model_fields))
    if detail["type"] == "literal_error":
        allowed = re.findall(r"'([^']*)'", str(detail["ctx"]["expected"]))
        return unknown(path, detail["input"], allowed)
    if detail["type"] == "missing":
        return Problem(key=path, message=" is missing")
    message = str(detail["msg"]).removeprefix("Value error, ")
    return Problem(key=path, message=f" = {detail['input']!r}: {message}")


def _truths_for_numbers(model: type[BaseModel], raw: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """True and false where a number belongs: Python would take them for 1 and 0."""
    for name, value in raw.items():
        known = model.model_fields.get(name)
        kinds = _kinds_in(known.annotation) if known is not None else set()
        if isinstance(value, bool) and kinds & {int, float} and bool not in kinds:
            yield Problem(key=f"{path}.{name}", message=f" = {value!r}: must be a number")
        elif isinstance(value, Mapping):
            for inner in kinds:
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    yield from _truths_for_numbers(inner, value, f"{path}.{name}")


def _kinds_in(annotation: object) -> set[object]:
    """The types that an annotation is made of: `Annotated[int, ...] | None` gives int and None's."""
    inner = [part for part in get_args(annotation) if get_origin(annotation) is not Literal]
    return set().union(*map(_kinds_in, inner)) if inner else {annotation} if isinstance(annotation, type) else set()


def _is_union_branch(step: object) -> bool:
    """Pydantic puts the branch of a union into the path, e.g. `str` or `tuple[str, ...]`; a user never wrote that."""
    return isinstance(step, str) and (step in ("str", "int", "float", "bool") or "[" in step)


def _model_at(model: type[BaseModel], steps: Sequence[str]) -> type[BaseModel]:
    for step in steps:
        inner = model.model_fields[step].annotation if step in model.model_fields else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return model


def _unknown_plugin_names(common: CommonOptions, own: BaseModel, metrics: str, offers: Offers) -> Iterator[Problem]:
    if common.verifier not in offers.verifiers:
        yield unknown(f"{KEY}.verifier", common.verifier, offers.verifiers)
    if metrics not in offers.metrics:
        yield unknown(f"{KEY}.metrics", metrics, offers.metrics)
    arms = getattr(own, "arms", ())
    for arm in arms:
        if arm not in offers.feedback_providers:
            yield unknown(f"{KEY}.arms", arm, offers.feedback_providers)
        lent = getattr(offers.feedback_providers.get(arm), "borrows", None)
        if lent is not None and lent not in arms:
            yield Problem(key=f"{KEY}.arms", message=f": '{arm}' borrows the feedback of '{lent}', which is not there")
        elif lent is not None and not getattr(offers.feedback_providers.get(lent), "uses_provider", True):
            yield Problem(key=f"{KEY}.arms", message=f": '{arm}' borrows from '{lent}', which no model writes")
    yield from wrong_memories(own, offers)
    protocol = offers.protocols[common.protocol]
    reads = getattr(protocol, "reads", "questions")
    if reads != "questions":
        for key in ("columns", "cluster"):
            if key in common.model_fields_set:
                message = (
                    f" has no effect on {reads.replace('_', ' ')}; name their columns under metadata.interbench.mapping"
                )
                yield Problem(key=f"{KEY}.{key}", message=message)
    variables = dict(
        getattr(protocol, "prompt_variables", {"question": getattr(protocol, "question_variables", QUESTION_VARIABLES)})
    )
    variables |= {"rewrite": REWRITE_VARIABLES} if getattr(own, "leak_guard", "") == "rewrite" else {}
    yield from _wrong_prompts(common.prompts, getattr(own, "arms", ()), memory_arms(own), offers, variables)


QUESTION_VARIABLES: Sequence[str] = ("question", "options", "row")


REWRITE_VARIABLES = ("question", "options", "feedback")
"""What `prompts.rewrite`, the leak guard's, may name."""


def _wrong_prompts(
    prompts: Mapping[str, str],
    arms: Sequence[str],
    memories: Sequence[Sequence[str]],
    offers: Offers,
    more: Mapping[str, Sequence[str]],
) -> Iterator[Problem]:
    """Prompts that nobody uses, and names in them that nobody fills; found before anything is paid for.

    A feedback provider or a memory says in `prompt_variables` which prompts it reads, and what each may name.
    """
    variables: dict[str, Sequence[str]] = dict(more)
    undeclared = False
    named = [offers.feedback_providers.get(arm) for arm in arms]
    for plugin in [*named, *[offers.memories.get(name) for arm in memories for name in arm]]:
        declared = getattr(plugin, "prompt_variables", None)
        undeclared |= declared is None
        variables |= declared or {}
    for name, text in prompts.items():
        if name not in variables:
            if not undeclared:
                yield _unknown_key(f"{KEY}.prompts.{name}", name, sorted(variables))
            continue
        for used in sorted(variables_in(text) - set(variables[name])):
            known = sorted(variables[name])
            message = f" uses '{used}', which does not exist there{near_miss(used, known)}"
            yield Problem(key=f"{KEY}.prompts.{name}", message=message, allowed=tuple(known))


def _receiver_settings(config: Mapping[str, Any], problems: list[Problem]) -> GenerationSettings | None:
    raw = config.get("generation_kwargs")
    given = raw if isinstance(raw, Mapping) else {}
    missing = [key for key in ("until", "max_new_tokens", "temperature") if key not in given]
    if missing:
        why = "the harness's defaults cut replies at the first blank line; write e.g. until: [], max_new_tokens: 1024"
        problems += [Problem(key=f"generation_kwargs.{key}", message=f" is missing ({why})") for key in missing]
        return None
    try:
        return generation_settings_from(given)
    except ConfigError as error:
        problems += [
            Problem(key=f"generation_kwargs.{problem.key}", message=problem.message) for problem in error.problems
        ]
        return None


FORBIDDEN_KEYS = {
    "filter_list": "filters would cut pieces out of our replies; remove it",
    "metric_list": "the metrics come from the protocol; remove it",
    "process_results": "the results come from the protocol; remove it",
    "repeats": "use the harness's --repeats; remove it",
    "num_fewshot": "few-shot examples are not supported; remove it",
}


def _forbidden_keys(config: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(key=key, message=f" cannot be used with an Interbench task: {why}")
        for key, why in FORBIDDEN_KEYS.items()
        if config.get(key) not in (None, 0, 1 if key == "repeats" else None)
    ]


TASK_KEYS = (
    "task", "task_alias", "class", "include", "dataset_path", "dataset_name", "dataset_kwargs", "test_split",
    "validation_split", "generation_kwargs", "metadata", "tag",
)  # fmt: skip
"""Top-level keys that a task of ours may have; the harness's others would be ignored."""


def _unknown_keys(config: Mapping[str, Any]) -> list[Problem]:
    return [_unknown_key(key, key, TASK_KEYS) for key in config if key not in TASK_KEYS and key not in FORBIDDEN_KEYS]


def _wrong_data_options(config: Mapping[str, Any]) -> list[Problem]:
    given = config.get("dataset_kwargs")
    if given is None or isinstance(given, Mapping):
        return []
    hint = "must be a mapping, e.g. {data_files: items.jsonl}"
    return [Problem(key="dataset_kwargs", message=f" = {given!r}: {hint}")]
