"""Many runs are read back in several processes, and nobody can tell."""

from __future__ import annotations

import shutil

import pytest

from interbench_tasks.errors import RunFolderError
from interbench_tasks.runs import reading
from interbench_tasks.runs.reading import runs_from_folders
from tests.judged_runs import OFFERS, Speaker, flawed, play, write_task


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three runs of a task."""
    base = tmp_path_factory.mktemp("runs")
    judges = {"protocol": "critique", "judges": ["simulated:a", "simulated:b"]}
    yaml = write_task(base, [flawed(i) for i in range(4)], judges)
    return [play(yaml, Speaker(lambda call: "Both numbers cannot hold."), run_id=name).folder for name in "xyz"]


@pytest.fixture
def large(monkeypatch):
    """Every run counts as large, and there are two cores."""
    monkeypatch.setattr(reading, "WORTH_IT_BYTES", 0)
    monkeypatch.setattr(reading, "MOST_PROCESSES", 2)


def test_runs_read_in_several_processes_are_the_same_in_the_same_order(folders, large):
    several = runs_from_folders(folders, OFFERS)
    alone = [reading.run_from_folder(folder, OFFERS) for folder in folders]
    assert [run.folder for run in several] == folders
    for one, other in zip(several, alone, strict=True):
        assert one.summaries == other.summaries
        assert one.manifest == other.manifest
        assert one.metrics() == other.metrics()


def test_a_damaged_run_is_told_as_it_is_in_one_process(folders, large, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(folders[0], damaged)
    (damaged / "episodes.jsonl").write_text('{"task": "cut o')
    with pytest.raises(RunFolderError, match=r"damaged.*line 1"):
        runs_from_folders([folders[1], damaged], OFFERS)


def test_small_runs_start_no_process(folders, monkeypatch):
    monkeypatch.setattr(reading, "ProcessPoolExecutor", None)
    assert len(runs_from_folders(folders, OFFERS)) == 3


def test_processes_that_break_leave_the_work_to_this_one(folders, large, monkeypatch):
    class Broken:
        def __init__(self, *args, **options) -> None:
            raise reading.BrokenProcessPool("killed")

    monkeypatch.setattr(reading, "ProcessPoolExecutor", Broken)
    assert [len(run.summaries) for run in runs_from_folders(folders, OFFERS)] == [4, 4, 4]
