"""Finds plugins and merges what they offer. There is no manager at module level: each run builds its own."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pluggy

from interbench_tasks import hookspecs
from interbench_tasks.errors import PluginError, PluginNameClash
from interbench_tasks.redaction import redact, shown_cause

ENTRY_POINT_GROUP = "interbench"


def build_plugin_manager(*, installed: bool = True) -> pluggy.PluginManager:
    """A fresh manager with our hooks and, by default, every installed plugin, ours included.

    Args: installed = whether the entry points of group `interbench` are loaded.
    Raises: PluginError where a plugin cannot be imported, or implements a hook that does not exist; PluginNameClash
        where two packages have a plugin of one name.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    if installed:
        for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
            _register(manager, entry)
    _check_pending(manager)
    return manager


def _register(manager: pluggy.PluginManager, entry: importlib.metadata.EntryPoint) -> None:
    source = entry.dist.name if entry.dist is not None else "an unknown package"
    if manager.has_plugin(entry.name):  # not one package found twice on the path: importlib.metadata gives it once
        raise PluginNameClash(f"two packages have a plugin named '{entry.name}'; uninstall one: pip uninstall {source}")
    try:
        plugin = entry.load()
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is raised again as ours
        told = redact(f"plugin '{entry.name}' of {source} cannot be imported ({entry.value}): {error!r}")
        raise PluginError(f"{told}\n  Repair it, or remove it with: pip uninstall {source}") from shown_cause(error)
    try:
        manager.register(plugin, name=entry.name)
    except (pluggy.PluginValidationError, ValueError) as error:
        raise PluginError(f"plugin '{entry.name}' of {source} cannot be registered: {error}") from error


def _check_pending(manager: pluggy.PluginManager) -> None:
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        known = sorted(name for name in vars(hookspecs) if name.startswith("interbench_"))
        raise PluginError(f"{error}\n  allowed: {', '.join(known)}") from error


@dataclass(frozen=True, slots=True)
class Offers:
    """What all plugins together offer, by hook: `offers.backends`, each a mapping of name to factory."""

    backends: Mapping[str, Callable[..., Any]]
    protocols: Mapping[str, hookspecs.ProtocolFactory]
    feedback_providers: Mapping[str, Callable[..., Any]]
    memories: Mapping[str, Callable[..., Any]]
    verifiers: Mapping[str, Callable[..., Any]]
    panel_rules: Mapping[str, Callable[..., Any]]
    metrics: Mapping[str, Callable[..., Any]]
    report_sections: Mapping[str, Callable[..., Any]]


def offers_from(manager: pluggy.PluginManager) -> Offers:
    """Everything that the registered plugins offer.

    Raises: PluginNameClash where two plugins offer one name; PluginError where a hook returns no mapping.
    """
    return Offers(**{hook.removeprefix("interbench_"): _merged(manager, hook) for hook in hookspecs.OFFERS})


def _merged(manager: pluggy.PluginManager, hook: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        owner = implementation.plugin_name
        try:
            offered = implementation.function()
        except Exception as error:  # noqa: BLE001 - as above
            raise PluginError(redact(f"plugin '{owner}': {hook} raised {error!r}")) from shown_cause(error)
        if not isinstance(offered, Mapping):
            raise PluginError(f"plugin '{owner}': {hook} must return a mapping of name to factory, got {offered!r}")
        for name, factory in offered.items():
            if name in merged:
                raise PluginNameClash(f"'{name}' is offered twice by {hook}: by '{owners[name]}' and by '{owner}'")
            merged[name], owners[name] = factory, owner
    return merged
