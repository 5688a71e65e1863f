"""What is wrong with this installation, each problem with its cure."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.specifiers import SpecifierSet

from interbench_tasks import settings
from interbench_tasks.errors import InterbenchError
from interbench_tasks.plugin_manager import Offers, build_plugin_manager, offers_from
from interbench_tasks.role_words import role_words_from
from interbench_tasks.task_files import check_task_file, own_tasks

KNOWN_TRAPS = {
    "lmms-eval": (">=0.7.3,<0.8", "the bridge was tested with 0.7.3; pip install 'lmms-eval>=0.7.3,<0.8'"),
    "filelock": ("<4", "filelock 4 breaks lmms-eval 0.7.3; pip install 'filelock<4'"),
    "math-verify": (">=0.7,<1", "math-verify 0.1.0 cannot be imported; pip install 'math-verify>=0.7,<1'"),
    "pluggy": (">=1.7", "older pluggy never fills hook arguments with a default; pip install 'pluggy>=1.7'"),
    "pydantic": (">=2.10", "pip install 'pydantic>=2.10'"),
    "openai": (">=2.0", "pip install 'openai>=2.0'"),
}
MIN_FREE_BYTES = 1_000_000_000
SERVER_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "note", "wrong"]
    text: str
    cure: str = ""


def examine(servers: tuple[str, ...] = ()) -> Iterator[Finding]:
    """All findings, the quick ones first.

    Args: servers = base URLs to ask beside those that the environment's roles name.
    """
    yield _python()
    yield from _packages()
    yield from _variables()
    offers = None
    try:
        offers = offers_from(build_plugin_manager())
        yield Finding(what="plugins", state="ok", text=f"feedback: {', '.join(sorted(offers.feedback_providers))}")
    except InterbenchError as error:
        yield Finding(what="plugins", state="wrong", text=str(error), cure="repair or uninstall the plugin it names")
    if offers is not None:
        yield from _tasks(offers)
    yield from _keys()
    yield from _servers(servers)
    yield from _disk()
    yield _bridge()


def _python() -> Finding:
    return Finding(what="python", state="ok", text=f"{platform.python_version()} ({sys.executable})")


def _packages() -> Iterator[Finding]:
    for name, (wanted, cure) in KNOWN_TRAPS.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(what=name, state="wrong", text="not installed", cure=cure)
            continue
        fits = SpecifierSet(wanted).contains(version, prereleases=True)
        text = version if fits else f"{version}, needed {wanted}"
        yield Finding(what=name, state="ok" if fits else "wrong", text=text, cure="" if fits else cure)


def _variables() -> Iterator[Finding]:
    for name in settings.unknown_variables():
        known = ", ".join(sorted(settings.KNOWN_VARIABLES))
        yield Finding(what=name, state="wrong", text="is set but means nothing to us", cure=f"allowed: {known}")
    if settings.variable("HF_TOKEN"):
        yield Finding(
            what="HF_TOKEN",
            state="note",
            text="is set; the harness prints it in its log at level INFO",
            cure="keep such logs private, or log in with `hf auth login` instead",
        )


def _tasks(offers: Offers) -> Iterator[Finding]:
    tasks = own_tasks()
    if not tasks:
        yield Finding(what="tasks", state="wrong", text="none found", cure="install Interbench again")
    else:
        yield Finding(what="tasks", state="ok", text=", ".join(tasks))
    for name, path in tasks.items():
        try:
            check_task_file(path, offers, with_data=False)
        except InterbenchError as error:
            yield Finding(what=name, state="wrong", text=str(error), cure="correct what it names")


def _keys() -> Iterator[Finding]:
    for name, who in (("OPENAI_API_KEY", "openai"), ("ANTHROPIC_API_KEY", "anthropic")):
        text = "is set" if settings.variable(name) else f"is not set: {who} models that need it cannot be asked"
        yield Finding(what=name, state="ok" if settings.variable(name) else "note", text=text)


def _servers(extra: tuple[str, ...]) -> Iterator[Finding]:
    urls = list(extra)
    for role in ("provider", "notetaker"):
        text = settings.role_override(role)
        if text:
            yield from _role_server(role, text, urls)
    for url in dict.fromkeys(urls):
        yield _server(url)


def _role_server(role: str, text: str, urls: list[str]) -> Iterator[Finding]:
    variable = settings.role_variable(role)
    try:
        words = role_words_from(text)
    except InterbenchError as error:
        yield Finding(what=variable, state="wrong", text=str(error), cure="correct it, or unset it")
        return
    if words.options.get("base_url"):
        urls.append(str(words.options["base_url"]))
    yield Finding(what=variable, state="ok", text=f"{words.backend}:{words.model}")


def _server(url: str) -> Finding:
    address = f"{url.rstrip('/')}/models"
    try:
        with urllib.request.urlopen(address, timeout=SERVER_TIMEOUT_S) as answer:
            return Finding(what=url, state="ok", text=f"answers with HTTP {answer.status}")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            cure = "the address usually ends with /v1, e.g. http://localhost:8000/v1"
            return Finding(what=url, state="wrong", text="answers with HTTP 404 for /models", cure=cure)
        return Finding(what=url, state="ok", text=f"answers with HTTP {error.code}")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Finding(
            what=url, state="wrong", text=f"does not answer: {reason}", cure="start the server, or correct the URL"
        )


def _disk() -> Iterator[Finding]:
    folders = [("runs", settings.runs_folder()), ("ledger", settings.ledger_folder())]
    for what, folder in folders:
        if folder is None:
            yield Finding(what=what, state="note", text="is switched off: a stopped run pays for its calls again")
            continue
        yield _writable(what, folder)


def _writable(what: str, folder: Path) -> Finding:
    there = next(parent for parent in [folder, *folder.parents] if parent.exists())
    variable = f"INTERBENCH_{what.upper()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        cure = f"set {variable} to a folder that can be written"
        return Finding(what=what, state="wrong", text=f"{folder}: {error.strerror}", cure=cure)
    free = shutil.disk_usage(there).free
    text = f"{folder}: {free / 1e9:.1f} GB free"
    if free < MIN_FREE_BYTES:
        return Finding(what=what, state="wrong", text=text, cure=f"free space, or set {variable} to another disk")
    return Finding(what=what, state="ok", text=text)


def _bridge() -> Finding:
    """Loads the harness (about ten seconds), as a run would."""
    try:
        importlib.import_module("lmms_eval.models")
        registration = importlib.import_module("interbench_tasks.harness.registration")
        importlib.import_module("interbench_tasks.harness.task")
    except Exception as error:  # noqa: BLE001 - whatever breaks the harness is what the user must see
        return Finding(
            what="harness", state="wrong", text=f"cannot be loaded: {error!r}", cure="pip install -c constraints.txt"
        )
    problems = registration.registration_problems()
    if problems:
        return Finding(what="harness", state="wrong", text="; ".join(problems), cure="see the text")
    return Finding(what="harness", state="ok", text="loads us: models, request type and tasks are registered")
