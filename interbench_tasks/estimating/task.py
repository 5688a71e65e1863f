"""A task with the models that will play it, as far as an estimate needs them: none is loaded, no key is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interbench_tasks.backends.anthropic import ANTHROPIC_ADDRESS
from interbench_tasks.backends.openai import OPENAI_ADDRESS
from interbench_tasks.config import TaskOptions
from interbench_tasks.errors import BackendError, MissingKeyError, near_miss
from interbench_tasks.estimating.prompts import PicturedModel
from interbench_tasks.estimating.ranges import RoleModel
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.prices import PriceList, shown
from interbench_tasks.role_words import RoleWords, role_words_from
from interbench_tasks.rows import DataSet
from interbench_tasks.task_roles import HARNESS_BACKEND, Role, backend_from, role_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task with its models, ready to be estimated."""

    name: str
    options: TaskOptions
    data: DataSet
    rows: Sequence[int]
    """Those that the run will play."""
    receiver: Role
    offers: Offers

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return self.options.common.protocol

    @property
    def roles(self) -> dict[str, Role]:
        """The receiver, then the others, by the names under which they stand in manifests."""
        others = {role_key(name, role.label): role for name, own in self.options.roles.items() for role in own}
        return {"receiver": self.receiver, **others}

    @property
    def simulated(self) -> bool:
        """Whether no role asks a real model: trying episodes out costs nothing."""
        return all(role.words.backend == "simulated" for role in self.roles.values())

    def models(self, prices: PriceList) -> list[tuple[RoleModel, PicturedModel]]:
        """The receiver, then the others."""
        return [_model(key, role, self.offers, prices) for key, role in self.roles.items()]


UNNAMED = "unnamed"
"""Backend of a receiver that nobody named."""


def receiver_role(words: str | None, options: TaskOptions) -> Role:
    """The receiver, named by the words that `--model_args model=...` takes; None: not named.

    Raises: BackendError where the words cannot be read.
    """
    read = RoleWords(backend=UNNAMED) if words is None else role_words_from(words)
    return Role(words=read, settings=options.receiver_settings, named_in="--receiver")


def _model(key: str, role: Role, offers: Offers, prices: PriceList) -> tuple[RoleModel, PicturedModel]:
    name, address = name_and_address(role, offers)
    limit = role.words.options.get("max_new_tokens", role.settings.max_new_tokens)
    detail = role.words.options.get("image_detail")
    model = RoleModel(
        role=key,
        model=name,
        priced_as=shown(name, address),
        price=prices.price_of(name, address),
        max_new_tokens=limit if isinstance(limit, int) else role.settings.max_new_tokens,
    )
    return model, PicturedModel(name=name, detail=detail if isinstance(detail, str) else None)


def name_and_address(role: Role, offers: Offers) -> tuple[str, str | None]:
    """As the role's backend calls itself; without one (no key is set here, a model of the harness) as its words do."""
    words = role.words
    if words.backend == HARNESS_BACKEND:
        weights = words.options.get("pretrained") or words.options.get("model_version") or words.options.get("model")
        return f"{words.model}:{weights}" if weights else words.model, None
    if words.backend == UNNAMED:
        return "(not named: --receiver)", None
    if words.backend not in offers.backends:
        allowed = sorted([*offers.backends, HARNESS_BACKEND])
        hint = near_miss(words.backend, allowed)
        raise BackendError(f"{role.named_in}: {words.backend!r}{hint}; allowed backends: {', '.join(allowed)}")
    try:
        backend = backend_from(role, offers)
    except MissingKeyError:  # an estimate needs no key
        return f"{words.backend}:{words.model}", _usual_address(words)
    return backend.name, getattr(backend, "address", None)


def _usual_address(words: RoleWords) -> str | None:

    given = words.options.get("base_url")
    usual = {"openai": OPENAI_ADDRESS, "anthropic": ANTHROPIC_ADDRESS}
    return given if isinstance(given, str) else usual.get(words.backend)
