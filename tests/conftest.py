"""What all tests share: options, isolation from the user's settings, and fixtures.

Options
    --slow            also runs the tests marked `slow`; without it they are skipped with that reason.
    --browser         also runs the tests marked `browser`, in an installed Chromium; where there is none they are
                      skipped, and the end of the output says so in red.
    --update-golden   writes what a test compares by `golden` to tests/golden instead of comparing.
Fixtures
    pm                a fresh plugin manager that knows our hooks and no plugin.
    shared_data       the folder of public data that nobody here wrote; skips where it is absent.
    golden            compares a text or a JSON value with a file in tests/golden.
Every test gets its own ledger and run folder, no network to the Hugging Face hub, no role or key from the
environment, and no progress bar. A session that ran everything fails where a golden file was read by no test.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pluggy
import pytest

from interbench_tasks.plugin_manager import build_plugin_manager

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
GOLDEN = HERE / "golden"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
FROM_OUTSIDE = ("API_KEY", "INTERBENCH_", "HF_TOKEN", "RANK", "WORLD_SIZE")
"""A variable with one of these in its name is hidden from the tests, but for those of `KEPT`."""
KEPT = ("INTERBENCH_TEST_DATA", "INTERBENCH_CASES")

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NO_CHROMIUM = f"no Chromium found ({', '.join(CHROMIUM)}): scripts/install --browser, or apt-get install chromium"

collect_ignore = ["stranger"]  # another package with its own name; tests/test_packaging.py installs it


# --- options and order ------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")
    parser.addoption("--browser", action="store_true", help="also run the tests marked browser")
    parser.addoption("--update-golden", action="store_true", help="write tests/golden instead of comparing with it")


def pytest_configure(config: pytest.Config) -> None:
    # Hugging Face's libraries read these once, when they are imported, so a fixture would come too late.
    os.environ.update(OFFLINE)
    config.stash[GOLDEN_STATE] = GoldenState()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips slow tests unless asked for, and puts files with long tests first: no worker then waits for one at the end.

    Files stay whole, so that what a file's tests share is made once.
    """
    skip = pytest.mark.skip(reason="slow: run with --slow")
    no_browser = _why_no_browser(config)
    weights: dict[Path, int] = {}
    for item in items:
        weight = 1 if item.get_closest_marker("integration") else 0
        if item.get_closest_marker("slow"):
            if config.getoption("--slow"):
                weight = 2
            else:
                item.add_marker(skip)
        if item.get_closest_marker("browser") and no_browser:
            item.add_marker(pytest.mark.skip(reason=no_browser))
        weights[item.path] = max(weights.get(item.path, 0), weight)
    items.sort(key=lambda item: -weights[item.path])


def chromium_path() -> str | None:
    """The installed browser; None where there is none."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def _why_no_browser(config: pytest.Config) -> str:
    """Why tests in a browser do not run; '' where they do."""
    if not config.getoption("--browser"):
        return "browser: run with --browser"
    return "" if chromium_path() else NO_CHROMIUM


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--browser") and not chromium_path():
        terminalreporter.write_line("")
        terminalreporter.write_line(f"THE TESTS IN A BROWSER DID NOT RUN: {NO_CHROMIUM}", red=True, bold=True)


# --- isolation --------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def isolation(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test's own ledger and run folder; nothing of the user's reaches it or a process that it starts."""
    for name in list(os.environ):
        if any(word in name for word in FROM_OUTSIDE) and name not in KEPT:
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("isolation")
    monkeypatch.setenv("INTERBENCH_LEDGER", str(folder / "ledger"))
    monkeypatch.setenv("INTERBENCH_RUNS", str(folder / "runs"))
    monkeypatch.setenv("INTERBENCH_PROGRESS", "off")
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)


# --- fixtures ---------------------------------------------------------------------------------------------------


@pytest.fixture
def pm() -> pluggy.PluginManager:
    """A fresh plugin manager that knows our hooks and no plugin."""
    return build_plugin_manager(installed=False)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data: INTERBENCH_TEST_DATA, else `shared/data` beside the repository."""
    chosen = os.environ.get("INTERBENCH_TEST_DATA")
    folder = Path(chosen) if chosen else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no public data at {folder}: set INTERBENCH_TEST_DATA to its folder")
    return folder


# --- golden files -----------------------------------------------------------------------------------------------


class GoldenState:
    """Which golden files this process's tests read, and whether each test that reads some got to its end."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.complete = True


GOLDEN_STATE = pytest.StashKey[GoldenState]()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Any], None]:
    """`golden("name.txt", text)` or `golden("name.json", value)`: equal to that file of tests/golden.

    A text is compared as it is; anything else as indented JSON with sorted keys. `--update-golden` writes the file.
    """
    state = request.config.stash[GOLDEN_STATE]
    update = request.config.getoption("--update-golden")

    def compare(name: str, value: Any) -> None:
        text = value if isinstance(value, str) else f"{json.dumps(value, indent=2, sort_keys=True)}\n"
        path = GOLDEN / name
        state.read.add(name)
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"tests/golden/{name} does not exist: look at what it would hold, then run --update-golden")
        assert text == path.read_text(encoding="utf-8"), f"differs from tests/golden/{name} (--update-golden rewrites)"

    return compare


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if "golden" in getattr(item, "fixturenames", ()) and not report.passed:
        item.config.stash[GOLDEN_STATE].complete = False
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fails a session that ran everything where a golden file was read by no test."""
    state = session.config.stash[GOLDEN_STATE]
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # a worker of pytest-xdist: the main process decides, from what all workers read
        output["golden"] = (sorted(state.read), state.complete)
        return
    if exitstatus != pytest.ExitCode.OK or not state.complete or not _everything_ran(session.config):
        return
    unread = sorted(_golden_files() - state.read)
    if unread:
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        reporter.write_line("")
        for name in unread:
            reporter.write_line(f"ERROR: no test reads tests/golden/{name}: remove it", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over what one worker of pytest-xdist read; a worker that crashed tells nothing."""
    output = getattr(node, "workeroutput", {})
    read, complete = output.get("golden", ((), False))
    state = node.config.stash[GOLDEN_STATE]
    state.read.update(read)
    state.complete = state.complete and complete


def _everything_ran(config: pytest.Config) -> bool:
    option = config.option
    narrowed = (
        option.keyword
        or option.markexpr
        or option.deselect
        or option.collectonly
        or getattr(option, "lf", False)
        or getattr(option, "ignore", None)
    )
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed


def _golden_files() -> set[str]:
    return {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*") if path.is_file()}
