"""The variants of a sweep in a run: with which settings the receiver is asked, and whether it takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from interbench_tasks.config import TaskOptions
from interbench_tasks.engine import BatchedModel
from interbench_tasks.errors import BackendError
from interbench_tasks.hookspecs import Backend
from interbench_tasks.records import GenerationSettings
from interbench_tasks.sweeps import settings_of

KEY = "metadata.interbench.sweep"
HARNESS_OPTIONS = ("max_new_tokens",)
"""What every model of the harness takes; most ignore an option that they do not know, without a word."""


@runtime_checkable
class CheckedBackend(Backend, Protocol):
    """A backend that says before a run which options it takes: only such a one can play a task's sweep."""

    def check_options(self, settings: GenerationSettings, changes: Mapping[str, object]) -> None:
        """Refuse what would not reach the model: nothing is paid for then.

        Args: settings = those of one variant; changes = the options that tell it from the task's own settings.
        Raises: BackendError for an option that it does not take, or that its own words have fixed.
        """
        ...


def variant_settings(options: TaskOptions) -> dict[str, GenerationSettings]:
    """Label -> the receiver's settings, of the variants of the task's sweep."""
    return {label: settings_of(options.receiver_settings, changes) for label, changes in _variants(options).items()}


def _variants(options: TaskOptions) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = getattr(options.protocol_options, "variants", {})
    return found


def refuse_options_without_effect(receiver: Backend | BatchedModel, options: TaskOptions) -> None:
    """Refuse a sweep whose options the receiver does not take, before anything is paid.

    Raises: BackendError naming the variant, the option and what is allowed.
    """
    if getattr(receiver, "recorded", False):  # nobody is asked
        return
    settings = variant_settings(options)
    for label, changes in _variants(options).items():
        if settings[label] == options.receiver_settings:
            raise BackendError(f"{options.where}: {KEY}: '{label}' is what the task's own settings are; leave it out")
        if not isinstance(receiver, Backend):
            wrong = sorted(changes.keys() - set(HARNESS_OPTIONS))
            if wrong:
                raise BackendError(
                    f"{options.where}: {KEY}: '{label}': nobody knows whether {receiver.name} takes '{wrong[0]}'; of a "
                    f"model of the harness only {', '.join(HARNESS_OPTIONS)} can be swept. Serve it (vLLM, SGLang) and "
                    "use --model interbench_api"
                )
        elif not isinstance(receiver, CheckedBackend):
            raise BackendError(
                f"{options.where}: {KEY}: '{label}': {receiver.name} does not say which options it takes (its backend "
                "lacks `check_options`), so its variants could be one and the same"
            )
        else:
            try:
                receiver.check_options(settings[label], changes)
            except BackendError as error:
                raise BackendError(f"{options.where}: {KEY}: '{label}': {error}") from error
