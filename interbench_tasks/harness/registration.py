"""What lmms-eval calls when it loads its plugins: our models, one request type, our task folder.

The harness swallows an entry point that raises, and then loads none of the later ones. So nothing here raises:
problems are kept, and our task class raises them when a task of ours is asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from interbench_tasks.task_files import task_folder

REQUEST_TYPE = "generate_until_interbench"
"""The evaluator calls `getattr(lm, request_type)(requests)`."""
OWNER = "_interbench_owner"
"""Marks what we set, so that a second call changes nothing and a stranger's name is told apart."""

_problems: list[str] = []  # filled once while the harness imports its models; there is no object to keep it in


def registration_problems() -> tuple[str, ...]:
    """What went wrong while the harness loaded us; empty where all is well."""
    return tuple(_problems)


def register() -> list[Any]:
    """The entry point of group `lmms_eval.models`: manifests of our models. Never raises."""
    _problems.clear()
    for step in (_add_request_type, _add_task_folder):
        try:
            step()
        except Exception as error:  # noqa: BLE001 - raising here would silently switch off all later plugins
            _problems.append(f"{step.__name__.strip('_')}: {error!r}")
    try:
        return _manifests()
    except Exception as error:  # noqa: BLE001 - as above
        _problems.append(f"manifests: {error!r}")
        return []


def _manifests() -> list[Any]:
    from lmms_eval.models.registry_v2 import ModelManifest

    module = "interbench_tasks.harness.models"
    return [
        ModelManifest(model_id="interbench_api", chat_class_path=f"{module}.InterbenchAPI"),
        ModelManifest(model_id="interbench_simulated", chat_class_path=f"{module}.InterbenchSimulated"),
    ]


def _add_request_type() -> None:
    from lmms_eval.api.model import lmms

    from interbench_tasks.harness.receiver import generate_until_interbench

    _add_method(lmms, REQUEST_TYPE, generate_until_interbench)


def _add_method(owner: type, name: str, function: Callable[..., Any]) -> None:
    existing = getattr(owner, name, None)
    if existing is not None and getattr(existing, OWNER, None) is None:
        module = getattr(existing, "__module__", "an unknown module")
        _problems.append(
            f"another plugin already gave {owner.__name__}.{name} (from {module}); uninstall it to use our tasks"
        )
        return
    setattr(function, OWNER, True)
    setattr(owner, name, function)


def _add_task_folder() -> None:
    from lmms_eval.tasks import TaskManager

    original = TaskManager.initialize_tasks
    if getattr(original, OWNER, None) is not None:
        return
    parameters = inspect.signature(original).parameters
    if "include_path" not in parameters or "include_defaults" not in parameters:
        _problems.append(f"TaskManager.initialize_tasks has an unknown shape: {', '.join(parameters)}")
        return

    def initialize_tasks(
        self: Any,  # noqa: ANN401 - the harness is untyped
        include_path: str | list[str] | None = None,
        include_defaults: bool = True,
    ) -> Any:  # noqa: ANN401 - the harness is untyped
        """The harness's index with our folder behind the user's own ones."""
        given = [include_path] if isinstance(include_path, str) else list(include_path or [])
        ours = str(task_folder())
        paths = [*given, ours] if include_defaults and ours not in given else given
        return original(self, include_path=paths, include_defaults=include_defaults)

    setattr(initialize_tasks, OWNER, True)
    TaskManager.initialize_tasks = initialize_tasks
