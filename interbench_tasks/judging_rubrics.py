"""Rubrics: what a judge is asked for, as data. A file of them ships for MMRC; a YAML may name a file of its own."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Self

import jinja2
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from interbench_tasks.errors import ConfigError, InterbenchError, Problem, near_miss
from interbench_tasks.judging_parse import NumberScale
from interbench_tasks.prompts import variables_in

FOLDER = "rubrics"
SHARED_KEYS = ("scale", "template")
"""Keys that may stand once above all rubrics of a file; a rubric's own value wins."""
NEEDED = ("reply_format", "response")
KNOWN = (*NEEDED, "task", "bands", "labels", "fields", "question", "reference", "extra")
TRUTHS = ("true", "false")
TAKEN = ("nonce", "score", "label", "reason")
"""Keys of a judge's reply that no field may be called."""


class Scale(BaseModel):
    """The numbers that a judge may give, ends included."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: float = 0
    high: float = Field(allow_inf_nan=False)
    integer: bool = True

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low:g} and {self.high:g}")
        return self

    @property
    def numbers(self) -> NumberScale:
        """The scale as the parser takes it."""
        return NumberScale(low=self.low, high=self.high, integer=self.integer)


class JudgeField(BaseModel):
    """One of several values that a judge gives: a number, a label, or true or false where it has neither."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    meaning: str
    """What it says, for the template to tell the judge."""
    scale: Scale | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Label -> what it means."""
    several: bool = False
    """Whether any number of labels may be given, none included; they are then joined with `+`, in this order."""
    bands: Mapping[str, str] = Field(default_factory=dict)
    """Score -> what deserves it."""

    @property
    def form(self) -> str:
        """What values it takes, in words."""
        if self.scale is not None:
            kind = "a whole number" if self.scale.integer else "a number"
            return f"{kind} from {self.scale.low:g} to {self.scale.high:g}"
        if self.labels:
            which = "a list of all that fit of" if self.several else "one of"
            return f"{which} {', '.join(self.labels)}" + (", or an empty list" if self.several else "")
        return "true or false"


class Rubric(BaseModel):
    """What a judge is asked for about one kind of question: a score, a label, or both; or several values by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """File and key, e.g. `mmrc.IE`."""
    scale: Scale | None = None
    """None where the judge gives a label only."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Label -> what it means; empty where the judge gives a score only."""
    label_needed: bool = True
    """Whether a verdict without a label is none; with False the label is a help beside the score."""
    several: bool = False
    """Whether more than one label may be given; a verdict's label then joins them with `+`, in the rubric's order."""
    task: str
    """What the response is judged for."""
    fields: Mapping[str, JudgeField] = Field(default_factory=dict)
    """Name -> value to give, instead of score and label; in the order in which a judge gives them."""
    bands: Mapping[str, str] = Field(default_factory=dict)
    """Score, or range of scores such as `3-4` -> what deserves it, the best first."""
    template: str
    """Jinja2; names `reply_format` and `response`, and may name the others of `judging_rubrics.KNOWN`."""
    source: str = "ours"

    @model_validator(mode="after")
    def _can_be_used(self) -> Self:
        problems = list(_rubric_problems(self))
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _rubric_problems(rubric: Rubric) -> Iterator[str]:
    if rubric.scale is None and not rubric.labels and not rubric.fields:
        yield "needs a scale or labels, or fields"
    if rubric.fields and (rubric.scale is not None or rubric.labels):
        yield "fields stand instead of scale and labels; keep one"
    if rubric.scale is None and not rubric.label_needed:
        yield "label_needed: false needs a scale"
    yield from _label_problems(rubric.labels)
    for name, each in rubric.fields.items():
        if name in TAKEN or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            yield f"fields.{name}: a name is of a-z, 0-9 and _, and none of {', '.join(TAKEN)}"
        if each.scale is not None and each.labels:
            yield f"fields.{name}: has a scale and labels; keep one"
        yield from (f"fields.{name}: {problem}" for problem in _label_problems(each.labels))
    try:
        used = variables_in(rubric.template)
    except jinja2.TemplateError as error:
        yield f"template is no Jinja2: {error}"
        return
    unknown, missing = sorted(used - set(KNOWN)), [name for name in NEEDED if name not in used]
    if unknown:
        yield f"template names {', '.join(unknown)}; there is: {', '.join(sorted(KNOWN))}"
    if missing:
        yield f"template does not name {', '.join(missing)}"


def _label_problems(labels: Mapping[str, str]) -> Iterator[str]:
    if any("+" in label or label != label.strip() or not label for label in labels):
        yield "a label must not be empty, hold a + or begin or end with a space"
    if len({label.casefold().replace("_", " ") for label in labels}) < len(labels):
        yield "two labels differ in case only"


def rubrics(name: str) -> Mapping[str, Rubric]:
    """The rubrics of a file, by what they are for (of `mmrc`: by ability).

    Args: name = a file that ships (`mmrc`, `mmrc_errors`), or the path of a YAML of your own.
    Raises: ConfigError for an unknown name, an unreadable file, and every mistake in it.

    >>> sorted(rubrics("mmrc"))
    ['AR', 'CR', 'IE', 'IM', 'IU', 'MR']
    """
    if name.endswith((".yaml", ".yml")):
        return _rubrics_from_text(_text_of(Path(name).expanduser()), name)
    known = shipped_rubrics()
    if name not in known:
        raise ConfigError(
            "rubric",
            [Problem(key=name, message=f" is not known{near_miss(name, known)}", allowed=(*known, "FILE.yaml"))],
        )
    return _shipped(name)


def shipped_rubrics() -> tuple[str, ...]:
    """Names of the files of rubrics that ship, sorted."""
    files = resources.files("interbench_tasks").joinpath(FOLDER).iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


@functools.cache
def _shipped(name: str) -> Mapping[str, Rubric]:
    file = resources.files("interbench_tasks").joinpath(FOLDER, f"{name}.yaml")
    return _rubrics_from_text(file.read_text(encoding="utf-8"), f"{name}.yaml")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(str(path), [Problem(key="rubric", message=f": cannot be read: {why}")]) from error


def _rubrics_from_text(text: str, where: str) -> Mapping[str, Rubric]:
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(where, [Problem(key="rubrics", message=f": no valid YAML: {error}")]) from error
    if not isinstance(loaded, Mapping) or not isinstance(loaded.get("rubrics"), Mapping) or not loaded["rubrics"]:
        raise ConfigError(where, [Problem(key="rubrics", message=" must be a mapping of names to rubrics")])
    unknown = [key for key in loaded if key not in ("rubrics", *SHARED_KEYS)]
    problems = [Problem(key=str(key), message=" is no known key", allowed=("rubrics", *SHARED_KEYS)) for key in unknown]
    shared = {key: loaded[key] for key in SHARED_KEYS if key in loaded}
    made: dict[str, Rubric] = {}
    for key, raw in loaded["rubrics"].items():
        try:
            made[str(key)] = _rubric_from(str(key), raw, shared, where)
        except ValidationError as error:
            problems += list(_problems(f"rubrics.{key}", error))
        except InterbenchError as error:
            problems.append(Problem(key=f"rubrics.{key}", message=f": {error}"))
    if problems:
        raise ConfigError(where, problems)
    return made


def _rubric_from(key: str, raw: object, shared: Mapping[str, Any], where: str) -> Rubric:
    if not isinstance(raw, Mapping):
        raise InterbenchError(f"must be a mapping, got {raw!r}")
    own = dict(raw)
    bands = own.get("bands")
    if isinstance(bands, Mapping):  # YAML reads a band of one score as a number
        own["bands"] = {str(band): text for band, text in bands.items()}
    if isinstance(own.get("fields"), Mapping):
        own["fields"] = {
            name: {**each, "bands": {str(band): text for band, text in each["bands"].items()}}
            if isinstance(each, Mapping) and isinstance(each.get("bands"), Mapping)
            else each
            for name, each in own["fields"].items()
        }
    return Rubric(**{**shared, **own, "name": f"{Path(where).stem}.{key}"})


def _problems(key: str, error: ValidationError) -> Iterator[Problem]:
    for each in error.errors():
        path = ".".join([key, *map(str, each["loc"])])
        yield Problem(key=path, message=f": {each['msg'].removeprefix('Value error, ')}")
