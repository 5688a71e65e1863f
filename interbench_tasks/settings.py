"""The one file that reads the environment. Every function reads it when called, never at import."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

KNOWN_VARIABLES = {
    "INTERBENCH_PROVIDER": "backend of the role provider, e.g. openai:gpt-4o-2024-08-06; several: comma separated",
    "INTERBENCH_JUDGES": "comma separated backends of the role judge",
    "INTERBENCH_NOTETAKER": "backend of the role notetaker",
    "INTERBENCH_DATA": "JSONL or parquet file that the *_local tasks read",
    "INTERBENCH_RUNS": "folder for run folders where the harness got no --output_path",
    "INTERBENCH_LEDGER": "folder of the ledger, or 'off'",
    "INTERBENCH_PRICES": "file with prices of models, in USD per million tokens",
    "INTERBENCH_MAX_COST": "USD that a command may cost; no new episode starts after that",
    "INTERBENCH_MAX_TOKENS": "input and output tokens that a command may use",
    "INTERBENCH_MAX_CALLS": "requests that a command may make, failed attempts included",
    "INTERBENCH_PROGRESS": "'off' hides the progress bar",
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


def prices_file() -> str | None:
    """The user's own file of prices: INTERBENCH_PRICES."""
    return variable("INTERBENCH_PRICES")


def limit_variable(limit: str) -> str:
    """The environment variable of a limit, e.g. INTERBENCH_MAX_COST for `max_cost`."""
    return f"INTERBENCH_{limit.upper()}"


def progress_wanted() -> bool:
    """False where INTERBENCH_PROGRESS is `off`."""
    return (variable("INTERBENCH_PROGRESS") or "").lower() != "off"


def rank_and_world_size() -> tuple[int, int]:
    """This process's rank and the number of ranks, as torchrun and accelerate set them; (0, 1) without them."""
    return int(variable("RANK") or 0), int(variable("WORLD_SIZE") or 1)


def unknown_variables() -> list[str]:
    """INTERBENCH_ variables that are set but mean nothing to us: most likely misspelt."""
    return sorted(name for name in os.environ if name.startswith("INTERBENCH_") and name not in KNOWN_VARIABLES)


def secret_values() -> list[str]:
    """The values of all variables that look like keys or tokens, longest first, for redaction; never shown."""
    words = ("API_KEY", "TOKEN", "SECRET", "PASSWORD")
    found = {v for k, v in os.environ.items() if any(w in k.upper() for w in words) and len(v) >= 8}
    return sorted(found, key=len, reverse=True)


def environment_without_secrets() -> dict[str, str]:
    """The environment for a child process that needs no keys: all of it but what `secret_values` knows."""
    secrets = set(secret_values())
    return {name: value for name, value in os.environ.items() if value not in secrets}
