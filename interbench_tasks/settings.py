"""The one file that reads the environment. Every function reads it when called, never at import."""

from __future__ import annotations

import os
import re
from pathlib import Path

import platformdirs

KNOWN_VARIABLES = {
    "INTERBENCH_PROVIDER": "backend of the role provider, e.g. openai:gpt-4o-2024-08-06; several: comma separated",
    "INTERBENCH_JUDGES": "comma separated backends of the role judge",
    "INTERBENCH_NOTETAKER": "backend of the role notetaker",
    "INTERBENCH_DATA": "JSONL or parquet file that the *_local tasks read",
    "INTERBENCH_RUNS": "folder for run folders where the harness got no --output_path",
    "INTERBENCH_LEDGER": "folder of the ledger, or 'off'",
    "INTERBENCH_PEOPLE": "file (or folder) of the desk between a run and people, where not below the output path",
    "INTERBENCH_PRICES": "file with prices of models, in USD per million tokens",
    "INTERBENCH_MAX_COST": "USD that a command may cost; no new episode starts after that",
    "INTERBENCH_MAX_TOKENS": "input and output tokens that a command may use",
    "INTERBENCH_MAX_CALLS": "requests that a command may make, failed attempts included",
    "INTERBENCH_PROGRESS": "'off' hides the progress bar",
    "INTERBENCH_THUMBNAILS": "'off': no small pictures are kept in the run folder for reports",
    "INTERBENCH_REPORT": "'off': no report.html is written at the end of a run",
    "INTERBENCH_STATUS": "file in which a run notes what becomes of it; set by `interbench run`",
    "INTERBENCH_TEST_DATA": "for our tests: the folder of public data",
    "INTERBENCH_CASES": "for our tests: the file of cases that tests/test_cases.py runs",
}


def variable(name: str) -> str | None:
    """The value of an environment variable, None where it is unset or blank."""
    value = os.environ.get(name, "").strip()
    return value or None


def role_variable(role: str) -> str:
    """The environment variable that names the backend of `role`, e.g. INTERBENCH_PROVIDER."""
    return "INTERBENCH_JUDGES" if role == "judge" else f"INTERBENCH_{role.upper()}"


def role_override(role: str) -> str | None:
    """The backend that the environment names for `role`; None where it names none."""
    return variable(role_variable(role))


def local_data() -> str | None:
    """The user's own data file for the `*_local` tasks."""
    return variable("INTERBENCH_DATA")


def runs_folder() -> Path:
    """Where run folders go without `--output_path`: INTERBENCH_RUNS, else the platform's user data folder."""
    chosen = variable("INTERBENCH_RUNS")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_data_dir("interbench")) / "runs"


def ledger_folder() -> Path | None:
    """Where the ledger lies: INTERBENCH_LEDGER, else the platform's user data folder; None where it says `off`."""
    chosen = variable("INTERBENCH_LEDGER")
    if chosen is not None and chosen.lower() == "off":
        return None
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_data_dir("interbench")) / "ledger"


def people_desk() -> Path | None:
    """Where the desk between a run and people lies: INTERBENCH_PEOPLE; None where that is left to the run."""
    chosen = variable("INTERBENCH_PEOPLE")
    return Path(chosen).expanduser() if chosen else None


def prices_file() -> str | None:
    """The user's own file of prices: INTERBENCH_PRICES."""
    return variable("INTERBENCH_PRICES")


def limit_variable(limit: str) -> str:
    """The environment variable of a limit, e.g. INTERBENCH_MAX_COST for `max_cost`."""
    return f"INTERBENCH_{limit.upper()}"


def progress_wanted() -> bool:
    """False where INTERBENCH_PROGRESS is `off`."""
    return (variable("INTERBENCH_PROGRESS") or "").lower() != "off"


def thumbnails_wanted() -> bool:
    """False where INTERBENCH_THUMBNAILS is `off`."""
    return (variable("INTERBENCH_THUMBNAILS") or "").lower() != "off"


def report_wanted() -> bool:
    """False where INTERBENCH_REPORT is `off`."""
    return (variable("INTERBENCH_REPORT") or "").lower() != "off"


def rank_and_world_size() -> tuple[int, int]:
    """This process's rank and the number of ranks, as torchrun and accelerate set them; (0, 1) without them."""
    return int(variable("RANK") or 0), int(variable("WORLD_SIZE") or 1)


def unknown_variables() -> list[str]:
    """INTERBENCH_ variables that are set but mean nothing to us: most likely misspelt."""
    return sorted(name for name in os.environ if name.startswith("INTERBENCH_") and name not in KNOWN_VARIABLES)


_key_variables: set[str] = set()  # names, never values; a backend and a log line share no object to keep them in
_SECRET_NAME = re.compile(
    r"API_?KEY|ACCESS_?KEY|SECRET|PASSWORD|PASSWD|(?:_|^)(?:KEY|PASS|PAT)$|TOKEN(?!IZER|S$|_PATH$|_FILE$)",
    re.IGNORECASE,
)
_NO_KEYS = frozenset(("dummy", "empty", "local", "none", "null", "ollama", "test", "token", "unused"))
"""What people write where a server of their own wants some key."""
_LEAST_FOUND = 8
_LEAST_USED = 4


def key_variable(name: str) -> str | None:
    """As `variable`, for one that holds a key or a secret header: from now on redaction knows it, whatever its name."""
    _key_variables.add(name)
    return variable(name)


def secret_values() -> list[str]:
    """What must be shown nowhere, longest first: the values of variables that hold keys or tokens.

    A variable counts by its name (from 8 characters), or because a backend read its key from it (from 4 characters,
    unless the value is a word like `none`).
    """
    found = {value.strip() for name, value in os.environ.items() if _holds_a_secret(name, value.strip())}
    found |= {bare for value in found if len(bare := bare_secret(value)) >= _LEAST_FOUND}
    return sorted(found, key=lambda value: (-len(value), value))


def bare_secret(value: str) -> str:
    """The value of a header without its scheme.

    >>> bare_secret("Bearer abc"), bare_secret("abc")
    ('abc', 'abc')
    """
    scheme, _, rest = value.partition(" ")
    return rest.strip() if scheme in ("Basic", "Bearer", "Token") else value


def _holds_a_secret(name: str, value: str) -> bool:
    if name in _key_variables:
        return len(value) >= _LEAST_USED and value.lower() not in _NO_KEYS
    return len(value) >= _LEAST_FOUND and not name.startswith("INTERBENCH_") and bool(_SECRET_NAME.search(name))


def environment_without_secrets() -> dict[str, str]:
    """The environment for a child process that needs no keys: all of it but what `secret_values` knows."""
    secrets = set(secret_values())
    return {name: value for name, value in os.environ.items() if value.strip() not in secrets}


def status_file() -> Path | None:
    """Where a run notes what becomes of it; None where nobody asked for it."""
    chosen = variable("INTERBENCH_STATUS")
    return Path(chosen) if chosen else None


def environment_with_status(path: Path) -> dict[str, str]:
    """The environment for a run that notes what becomes of it in `path`."""
    return {**os.environ, "INTERBENCH_STATUS": str(path)}
