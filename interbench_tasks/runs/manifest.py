"""What a run was made with: enough to make it again, and to score its folder without the task YAML."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import time
from collections.abc import Mapping
from typing import Any

from interbench_tasks.config import TaskOptions
from interbench_tasks.records import GenerationSettings
from interbench_tasks.redaction import redact
from interbench_tasks.task_roles import role_key

PACKAGES = (
    "interbench-tasks",
    "lmms-eval",
    "torch",
    "transformers",
    "datasets",
    "openai",
    "anthropic",
    "math-verify",
    "pillow",
    "numpy",
)
SCHEMA = 1
"""Of the run folder's files."""


def manifest_from(
    *,
    task: str,
    options: TaskOptions,
    models: Mapping[str, Mapping[str, str]],
    source: str,
    n_episodes: int,
    run_id: str,
) -> dict[str, Any]:
    """The manifest of one run and task, without any secret.

    Args: models = role -> {name, fingerprint}; source = file or hub id of the data set; n_episodes = of all
            ranks together.
    """
    content = {
        "schema": SCHEMA,
        "run_id": run_id,
        "task": task,
        "task_version": options.version,
        "yaml": options.where,
        "protocol": options.common.protocol,
        "metrics": options.metrics,
        "protocol_options": options.protocol_options.model_dump(mode="json"),
        "options": options.common.model_dump(mode="json", exclude={"roles"}),
        "prompt_digests": {name: _digest(text) for name, text in options.common.prompts.items()},
        "generation": {"receiver": settings_as_json(options.receiver_settings)}
        | {
            role_key(name, role.label): settings_as_json(role.settings)
            for name, own in options.roles.items()
            for role in own
        },
        "models": models,
        "simulated": sorted(role for role, model in models.items() if "simulated" in model["name"]),
        "data": {"source": source, "n_episodes": n_episodes},
        "packages": {name: _version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "run": {"started_at": time.time()},
    }
    plain: dict[str, Any] = json.loads(json.dumps(content, default=str))
    cleaned: dict[str, Any] = _redacted(plain)
    return cleaned


def _redacted(value: Any, name: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """The value without secrets; a text also where the name of its key says that it is one."""
    if isinstance(value, Mapping):
        return {key: _redacted(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_redacted(inner, name) for inner in value]
    return redact(f"{name}={value}").removeprefix(f"{name}=") if isinstance(value, str) else value


def settings_as_json(settings: GenerationSettings) -> dict[str, Any]:
    """Generation settings, JSON-able."""
    return {
        "max_new_tokens": settings.max_new_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "until": list(settings.until),
        "options": dict(settings.options),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
