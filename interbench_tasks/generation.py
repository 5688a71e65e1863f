"""Generation settings out of a YAML or a command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from interbench_tasks.errors import ConfigError, Problem
from interbench_tasks.records import GenerationSettings

GENERATION_KEYS = ("max_new_tokens", "temperature", "top_p", "until")


def generation_settings_from(raw: Mapping[str, Any]) -> GenerationSettings:
    """Generation settings out of the harness's `generation_kwargs`; unknown keys go to `options` as they are.

    Raises: ConfigError where a value has the wrong type.
    """
    try:
        checked = _Generation.model_validate(dict(raw))
    except ValidationError as error:
        problems = [
            Problem(key=str(d["loc"][0]), message=f" = {d['input']!r}: {d['msg'].removeprefix('Value error, ')}")
            for d in error.errors()
        ]
        raise ConfigError("generation settings", problems) from error
    return GenerationSettings(
        max_new_tokens=checked.max_new_tokens,
        temperature=checked.temperature,
        top_p=checked.top_p,
        until=tuple(checked.until),
        options={k: v for k, v in (checked.model_extra or {}).items() if k != "do_sample"},
    )


def _no_truth(value: object) -> object:
    """Refuse true and false, which Python takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004 - pydantic collects these only
    return value


_Number = BeforeValidator(_no_truth)


class _Generation(BaseModel):
    model_config = ConfigDict(extra="allow")
    max_new_tokens: Annotated[int, Field(ge=1), _Number]
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False), _Number]
    until: list[str]
    top_p: Annotated[float | None, Field(gt=0, le=1), _Number] = None
