"""The test session itself: slow tests, isolation, golden files. Each test runs pytest on a small project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

TESTS = """
import os, pytest

def test_late(): pass

@pytest.mark.integration
def test_heavy(golden): golden("heavy.json", {"b": 1, "a": [2]})

def test_text(golden): golden("deep/text.txt", "one\\n")

def test_alone(tmp_path):
    assert "OPENAI_API_KEY" not in os.environ and "INTERBENCH_PROVIDER" not in os.environ
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["INTERBENCH_PROGRESS"] == "off"
    assert os.environ["INTERBENCH_LEDGER"].endswith("ledger")

def test_data(shared_data): assert (shared_data / "here").exists()
"""
LONG_TESTS = """
import pytest

def test_light(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.browser
def test_browser(): pass
"""
INI = "[pytest]\ntestpaths = tests\nmarkers =\n    slow: s\n    integration: i\n    browser: b\n"


@pytest.fixture
def project(tmp_path):
    """A project with our conftest.py, two golden files that its tests read, and public data."""
    tests = tmp_path / "project" / "tests"
    (tests / "golden" / "deep").mkdir(parents=True)
    shutil.copy(HERE / "conftest.py", tests)
    (tests / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tests / "test_long.py").write_text(LONG_TESTS, encoding="utf-8")
    (tests / "golden" / "heavy.json").write_text('{\n  "a": [\n    2\n  ],\n  "b": 1\n}\n', encoding="utf-8")
    (tests / "golden" / "deep" / "text.txt").write_text("one\n", encoding="utf-8")
    (tests.parent / "pytest.ini").write_text(INI, encoding="utf-8")
    data = tmp_path / "shared" / "data"
    data.mkdir(parents=True)
    (data / "here").touch()
    return tests.parent


def run_pytest(project: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and output."""
    outside = dict(os.environ)
    variables = {name: value for name, value in outside.items() if not name.startswith("PYTEST_")}
    variables |= {"PYTHONPATH": str(HERE.parent), "OPENAI_API_KEY": "x", "INTERBENCH_PROVIDER": "x", **environment}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def golden_file_that_no_test_reads(project: Path) -> None:
    (project / "tests" / "golden" / "forgotten.txt").write_text("?", encoding="utf-8")


def test_slow_tests_are_skipped_with_the_reason_and_files_with_long_ones_come_first(project):
    code, text = run_pytest(project, "-vv", "-rs")
    assert code == 0, text
    assert "slow: run with --slow" in text
    assert "6 passed, 2 skipped" in text
    assert text.index("::test_late") < text.index("::test_heavy") < text.index("::test_light")
    code, text = run_pytest(project, "-vv", "--slow")
    assert text.index("::test_light") < text.index("::test_slow") < text.index("::test_late")


def test_with_slow_all_tests_run(project):
    code, text = run_pytest(project, "--slow")
    assert code == 0, text
    assert "7 passed" in text


def test_tests_in_a_browser_run_where_there_is_one_and_are_missed_loudly_where_there_is_none(project, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    code, text = run_pytest(project, "-rs", "--browser", PATH=str(empty))
    assert code == 0, text
    assert "THE TESTS IN A BROWSER DID NOT RUN: no Chromium found" in text
    assert "browser: run with --browser" in run_pytest(project, "-rs")[1]
    (empty / "chromium").touch(mode=0o755)
    code, text = run_pytest(project, "--browser", PATH=str(empty))
    assert "7 passed, 1 skipped" in text
    assert "DID NOT RUN" not in text


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "worksteal")], ids=["alone", "workers"])
def test_a_golden_file_that_no_test_reads_fails_a_full_run(project, workers):
    code, text = run_pytest(project, *workers)
    assert code == 0, text
    golden_file_that_no_test_reads(project)
    code, text = run_pytest(project, *workers)
    assert code == 1, text
    assert "ERROR: no test reads tests/golden/forgotten.txt" in text


@pytest.mark.parametrize("narrowed", [("-k", "test_"), ("-m", "not nothing"), ("tests/test_it.py",)], ids=str)
def test_a_narrowed_run_does_not_look_for_unread_golden_files(project, narrowed):
    golden_file_that_no_test_reads(project)
    code, text = run_pytest(project, *narrowed)
    assert code == 0, text


def test_a_run_that_skips_a_test_with_a_golden_file_does_not_look_for_unread_ones(project):
    golden_file_that_no_test_reads(project)
    tests = project / "tests" / "test_it.py"
    tests.write_text(TESTS.replace("mark.integration", "mark.slow"), encoding="utf-8")
    assert run_pytest(project)[0] == 0
    assert run_pytest(project, "--slow")[0] == 1


def test_a_changed_value_differs_from_its_golden_file_until_it_is_updated(project):
    tests = project / "tests" / "test_it.py"
    tests.write_text(TESTS.replace('"a": [2]', '"a": [3]'), encoding="utf-8")
    code, text = run_pytest(project)
    assert code == 1
    assert "differs from tests/golden/heavy.json (--update-golden rewrites)" in text
    assert run_pytest(project, "--update-golden")[0] == 0
    assert run_pytest(project)[0] == 0
    assert '"a": [\n    3\n  ]' in (project / "tests" / "golden" / "heavy.json").read_text(encoding="utf-8")


def test_a_missing_golden_file_is_made_only_on_demand(project):
    path = project / "tests" / "golden" / "deep" / "text.txt"
    path.unlink()
    code, text = run_pytest(project)
    assert code == 1
    assert "tests/golden/deep/text.txt does not exist" in text
    assert run_pytest(project, "--update-golden")[0] == 0
    assert path.read_text(encoding="utf-8") == "one\n"


def test_public_data_can_lie_elsewhere_and_is_missed_with_a_reason(project, tmp_path):
    code, text = run_pytest(project, "-rs", INTERBENCH_TEST_DATA=str(tmp_path / "nowhere"))
    assert code == 0, text
    assert f"no public data at {tmp_path / 'nowhere'}: set INTERBENCH_TEST_DATA" in text
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "here").touch()
    assert "6 passed" in run_pytest(project, INTERBENCH_TEST_DATA=str(tmp_path / "elsewhere"))[1]


def test_each_test_has_its_own_ledger_and_run_folder():
    first = os.environ["INTERBENCH_LEDGER"], os.environ["INTERBENCH_RUNS"]
    assert "isolation" in first[0]
    assert "isolation" in first[1]
    assert not Path(first[0]).exists()
