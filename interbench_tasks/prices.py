"""What tokens cost: USD per million, by model and server. A model that no line fits has no known price, never 0."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from interbench_tasks import settings
from interbench_tasks.errors import BudgetError, ConfigError, Problem, near_miss

PER = 1_000_000
SHIPPED = "prices.yaml"
KEYS = ("input", "cached_input", "output")
EXAMPLE = '"gpt-4o-mini": {input: 0.15, output: 0.60}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one model's tokens cost."""

    pattern: str
    """The line that says so, e.g. `gpt-4o-2024-08-06@api.openai.com`."""
    source: str
    """The file of that line."""
    input: float
    """USD per million input tokens, >= 0."""
    output: float
    """USD per million output tokens, reasoning included, >= 0."""
    cached_input: float | None = None
    """USD per million input tokens that the server read from its own cache; None: as any other input."""

    def cost(self, input_tokens: float, output_tokens: float, cached_input_tokens: float = 0) -> float:
        """USD for these tokens. Args: cached_input_tokens = those of `input_tokens` that came from a cache.

        >>> Price(pattern="m", source="f", input=2.5, output=10, cached_input=1.25).cost(1_000_000, 100_000, 400_000)
        3.0
        """
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = input_tokens - cached_input_tokens
        return (fresh * self.input + cached_input_tokens * cached + output_tokens * self.output) / PER

    def fits(self, names: Sequence[str]) -> bool:
        """Whether one of a model's names is meant."""
        return any(fnmatchcase(name, self.pattern) for name in names)

    @property
    def rank(self) -> tuple[bool, int]:
        """Greater for a line that says more exactly what is meant: no wildcard, else the longer one."""
        return not any(sign in self.pattern for sign in "*?["), len(self.pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The lines of the user's files, then ours."""

    files: tuple[tuple[Price, ...], ...]
    """A price of an earlier file hides those of later ones."""

    def price_of(self, model: str, address: str | None = None) -> Price | None:
        """The price of a model, None where nobody said one.

        Args: model = as shown in results, e.g. `openai:gpt-4o`; address = URL of its server, None where there is none.
        """
        names = names_of(model, address)
        for prices in self.files:
            found = [price for price in prices if price.fits(names)]
            if found:
                return max(found, key=lambda price: price.rank)
        return None


def names_of(model: str, address: str | None) -> tuple[str, ...]:
    """What a line may call a model: with or without its backend, with or without its server.

    >>> names_of("openai:qwen2.5-vl", "http://localhost:8000/v1")[-1]
    'openai:qwen2.5-vl@localhost:8000'
    """
    backend, colon, bare = model.partition(":")
    names = [bare, model] if colon and backend.isidentifier() else [model]
    parts = urlsplit(address) if address else None
    hosts = [host for host in dict.fromkeys((parts.hostname, parts.netloc)) if host] if parts else []
    return tuple(names + [f"{name}@{host}" for host in hosts for name in names])


def price_list(*files: str | None) -> PriceList:
    """The prices of these files (None is left out), then those of INTERBENCH_PRICES, then those that we ship.

    Raises: ConfigError for a file that cannot be used, with all its problems.
    """
    named = [file for file in dict.fromkeys((*files, settings.prices_file())) if file is not None]
    own = [prices_from(Path(file).expanduser()) for file in named]
    shipped = resources.files("interbench_tasks").joinpath(SHIPPED).read_text(encoding="utf-8")
    return PriceList(files=(*own, _prices_from_text(shipped, SHIPPED)))


def prices_from(path: Path) -> tuple[Price, ...]:
    """The lines of one file.

    Raises: ConfigError naming the file and every line that is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(str(path.absolute()), [Problem(key="prices", message=f": cannot be read: {why}")]) from error
    return _prices_from_text(text, str(path))


def _prices_from_text(text: str, where: str) -> tuple[Price, ...]:
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(where, [Problem(key="prices", message=f": no valid YAML: {error}")]) from error
    if not isinstance(loaded, Mapping) or not loaded:
        message = f": must hold lines as {EXAMPLE} (USD per million tokens), got {_short(loaded)}"
        raise ConfigError(where, [Problem(key="prices", message=message)])
    problems = [problem for pattern, line in loaded.items() for problem in _problems(pattern, line)]
    if problems:
        raise ConfigError(where, problems)
    return tuple(
        Price(pattern=pattern, source=where, **{key: float(value) for key, value in line.items()})
        for pattern, line in loaded.items()
    )


def _problems(pattern: object, line: object) -> Iterator[Problem]:
    if not isinstance(pattern, str) or not pattern:
        yield Problem(key="prices", message=f": {pattern!r} is no model's name; put it in quotes")
        return
    if not isinstance(line, Mapping):
        yield Problem(key=pattern, message=f" = {_short(line)}: write {{input: USD, output: USD}}, per million tokens")
        return
    for key in line:
        if key not in KEYS:
            yield Problem(key=f"{pattern}.{key}", message=f" is no known key{near_miss(key, KEYS)}", allowed=KEYS)
    for key in ("input", "output"):
        if key not in line:
            yield Problem(key=f"{pattern}.{key}", message=" is missing: USD per million tokens; 0 where it is free")
    for key in KEYS:
        if key in line and not _is_price(line[key]):
            told = f" = {_short(line[key])}: must be USD per million tokens, a number of at least 0"
            yield Problem(key=f"{pattern}.{key}", message=told)


def _is_price(value: Any) -> bool:  # noqa: ANN401 - a value of a YAML
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def no_price_known(models: Sequence[tuple[str, str, str | None]], why: str) -> BudgetError:
    """The error for models without a price, with the lines to write.

    Args: models = (role, model, address); why = what needs the price, e.g. `max_cost`.
    """
    told = "; ".join(f"{role} {shown(model, address)}" for role, model, address in models)
    lines = "\n".join(f'    "{shown(model, address)}": {{input: USD, output: USD}}' for _, model, address in models)
    return BudgetError(
        f"no price known for {told}, but {why} needs one. Write a file with\n{lines}\n"
        "  in USD per million tokens (0 for a model that costs nothing, e.g. one of your own), and name it in\n"
        "  INTERBENCH_PRICES=FILE or metadata.interbench.budget.prices; or leave the limit on money out"
    )


def shown(model: str, address: str | None) -> str:
    """The model with its server, as a line of a price file may name it."""
    return names_of(model, address)[-1]
