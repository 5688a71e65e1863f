"""The built wheel, in an environment of its own, with a stranger's plugin beside it, from another folder."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STRANGER = ROOT / "tests" / "stranger"
FOLDERS = {
    "interbench_tasks": "interbench_tasks",
    "plugins": "interbench_tasks/plugins",
    "task_yamls": "interbench_tasks/task_yamls",
}
"""Folder of the repository -> where its files lie in the wheel."""


def checked(command: list[str | Path], cwd: Path, **environment: str) -> str:
    """The output of a command that must not fail, run without what PYTHONPATH could add."""
    inherited = dict(os.environ)
    inherited.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout[-5000:]}"
    return done.stdout


def built(source: Path, target: Path) -> Path:
    """The wheel of a copy of `source`: building leaves `build/` and `*.egg-info` behind, which the next build reads."""
    copy = target / "source"
    parts = ["pyproject.toml", "README.md", "LICENSE", *FOLDERS, "interbench_socratic"]
    for part in (source / name for name in parts if (source / name).exists()):
        if part.is_dir():
            shutil.copytree(part, copy / part.name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            copy.mkdir(parents=True, exist_ok=True)
            shutil.copy(part, copy)
    checked([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, copy], target)
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment with our wheel and the stranger's installed; returns its python.

    Everything else comes from this environment's site-packages by one path line. The `.pth` files in there are not
    read that way, so an editable install of this repository is invisible, and the wheel's files are found first.
    """
    folder = tmp_path_factory.mktemp("environment")
    stranger = built(STRANGER, tmp_path_factory.mktemp("stranger"))
    checked([sys.executable, "-m", "venv", "--without-pip", folder], folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    checked([*pip, wheel, stranger], folder)
    site = Path(checked([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    (site / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return python


def test_the_wheel_holds_the_whole_source_and_nothing_else(wheel):
    expected = set()
    for folder, place in FOLDERS.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                expected.add(f"{place}/{path.relative_to(ROOT / folder).as_posix()}")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == expected
    assert {"interbench_tasks/py.typed", "interbench_tasks/hookspecs.py"} <= names
    assert [name for name in names if name.endswith(".yaml")]


def test_the_wheel_has_its_licence_and_its_doors(wheel):
    archive = zipfile.ZipFile(wheel)
    (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
    assert "MIT License" in archive.read(f"{info}/licenses/LICENSE").decode()
    doors = archive.read(f"{info}/entry_points.txt").decode()
    assert "[lmms_eval.models]\ninterbench = interbench_tasks.harness.registration:register" in doors
    assert "[console_scripts]\ninterbench = interbench_tasks.cli:main" in doors
    assert "[interbench]\n" in doors
    metadata = archive.read(f"{info}/METADATA").decode()
    assert "Requires-Dist: filelock<4" in metadata
    assert "Requires-Dist: math-verify<1,>=0.7" in metadata
    assert "License-Expression: MIT" in metadata


def test_the_installed_wheel_is_what_is_imported(environment, tmp_path):
    code = "import interbench_tasks as i, importlib.metadata as m; print(i.__file__, m.version('interbench-tasks'))"
    file, version = checked([environment, "-c", code], tmp_path).split()
    assert Path(file).is_relative_to(environment.parents[1])
    assert version == "0.1.0"


def test_a_strangers_plugin_comes_in_by_the_same_door_as_ours(environment, tmp_path):
    code = (
        "import importlib.metadata as m\n"
        "print(*sorted(e.name for e in m.entry_points(group='interbench')))\n"
        "from interbench_tasks.plugin_manager import build_plugin_manager, offers_from\n"
        "print(*sorted(offers_from(build_plugin_manager()).feedback_providers))\n"
    )
    entries, offered = checked([environment, "-c", code], tmp_path).splitlines()
    assert entries.split() == ["core", "feedback", "judges", "memory", "socratic"]
    assert {"detail", "simple", "socratic"} <= set(offered.split())


def test_the_installed_command_knows_the_shipped_tasks_and_the_strangers_plugin(environment, tmp_path):
    command = environment.with_name("interbench")
    folder = Path(checked([command, "tasks", "--path"], tmp_path).strip())
    assert folder.is_relative_to(environment.parents[1])
    assert (folder / "interfeedback" / "interfeedback_demo.yaml").is_file()
    checked([command, "check", STRANGER / "tasks" / "stranger_demo.yaml"], tmp_path)


@pytest.mark.integration
@pytest.mark.skipif(importlib.util.find_spec("interbench_tasks.harness.task") is None, reason="bridge not there yet")
def test_a_strangers_task_runs_from_another_folder(environment, tmp_path):
    shutil.copytree(STRANGER / "tasks", tmp_path / "their_tasks")
    command = [environment, "-m", "lmms_eval", "--model", "interbench_simulated", "--tasks", "stranger_demo"]
    # Nothing right at first, everything right after feedback: every episode needs the stranger's feedback.
    command += ["--model_args", "accuracy=0,invalid=0,correction=1"]
    command += ["--include_path", "their_tasks", "--output_path", "out", "--log_samples", "--batch_size", "2"]
    output = checked(command, tmp_path)
    metrics = list((tmp_path / "out").rglob("metrics.json"))
    assert len(metrics) == 1, output[-5000:]
    lines = (metrics[0].parent / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["episode_id"] for record in records] == ["sum", "legs", "next", "odd"]
    assert all("What in the question shows that?" in line for line in lines)
    values = json.loads(metrics[0].read_text(encoding="utf-8"))["metrics"]
    assert values["correction_rate.socratic"]["value"] == 1.0
    assert values["correction_rate.socratic"]["n"] == 4
    assert "correction_rate.socratic" in output
