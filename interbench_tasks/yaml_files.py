"""A task YAML as the harness reads it, without importing what it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from interbench_tasks.errors import ConfigError, Problem


class _SimpleLoader(yaml.SafeLoader):
    """Reads a task YAML without importing what `!function` names."""


_SimpleLoader.add_constructor("!function", lambda loader, node: f"!function {node.value}")


def config_from_file(path: Path) -> dict[str, Any]:
    """A task YAML as the harness reads it: includes resolved, the including file wins key by key at the top level.

    Raises: ConfigError for an unreadable file, broken YAML, a missing include or a circle of includes.
    """
    return _config_from_file(path, ())


def _config_from_file(path: Path, trail: tuple[Path, ...]) -> dict[str, Any]:
    if path in trail:
        raise ConfigError(str(path), [Problem(key="include", message=f" includes itself through {trail[-1]}")])
    try:
        loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_SimpleLoader)
    except OSError as error:
        raise ConfigError(str(path), [Problem(key="file", message=f" cannot be read: {error.strerror}")]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # also a number of 5,000 digits, or odd bytes
        raise ConfigError(str(path), [Problem(key="file", message=f" is no valid YAML: {error}")]) from error
    if not isinstance(loaded, dict):
        raise ConfigError(str(path), [Problem(key="file", message=f" holds no mapping, got {loaded!r}")])
    includes = loaded.pop("include", [])
    merged: dict[str, Any] = {}
    names = [includes] if isinstance(includes, str) else includes
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(
            str(path), [Problem(key="include", message=f" must be a file or a list of files, got {includes!r}")]
        )
    for include in reversed(names):
        merged.update(_config_from_file((path.parent / include), (*trail, path)))
    return {**merged, **loaded}
