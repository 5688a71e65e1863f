"""Run folders: what is written, when, and what is read back."""

from __future__ import annotations

import json
import os
import stat

import pytest

from interbench_tasks.errors import RunFolderError
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.record_json import record_to_json
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.runs.folder import (
    RunFolder,
    merge_ranks,
    new_run_id,
    read_json,
    read_records,
    run_folders,
    write_json,
)
from interbench_tasks.runs.score import score_folder

OFFERS = offers_from(build_plugin_manager())


def record(doc_id: int, repeat: int = 0, **more) -> EpisodeRecord:
    values = {
        "task": "t",
        "protocol": "feedback_loop",
        "episode_id": f"q{doc_id}",
        "doc_id": doc_id,
        "repeat": repeat,
        "category": None,
        "cluster": None,
        "target": "B",
        "options": {"A": "x", "B": "y"},
        "status": "failed",
        "stop_reason": "reply_failed",
        "error": "HTTP 500",
    }
    return EpisodeRecord(**{**values, **more})


def keys(path) -> list[tuple[int, int]]:
    return [(found.doc_id, found.repeat) for found in read_records(path)]


def test_records_are_on_disk_as_they_end_and_sorted_at_the_end(tmp_path):
    folder = RunFolder(tmp_path / "run")
    for doc_id, repeat in [(3, 0), (1, 1), (1, 0), (2, 0)]:
        folder.append(record(doc_id, repeat))
        assert len((tmp_path / "run" / "episodes.jsonl").read_text().splitlines()) == len(keys(tmp_path / "run"))
    assert keys(tmp_path / "run") == [(3, 0), (1, 1), (1, 0), (2, 0)]
    folder.finish()
    assert keys(tmp_path / "run") == [(1, 0), (1, 1), (2, 0), (3, 0)]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["episodes.jsonl"]


def test_ranks_write_their_own_files_and_are_merged_in_order(tmp_path):
    for rank in range(3):
        folder = RunFolder(tmp_path, rank=rank, world_size=3)
        for doc_id in range(rank, 10, 3):
            folder.append(record(doc_id))
        folder.finish()
    assert len(keys(tmp_path)) == 10
    merge_ranks(tmp_path)
    assert keys(tmp_path) == [(doc_id, 0) for doc_id in range(10)]
    assert [path.name for path in tmp_path.iterdir()] == ["episodes.jsonl"]
    merge_ranks(tmp_path)
    assert len(keys(tmp_path)) == 10


def test_scoring_only_reads_the_episodes_of_a_run_that_goes_on(tmp_path):
    """It once merged and removed the files that ranks were still writing."""
    ranks = [RunFolder(tmp_path, rank=rank, world_size=2) for rank in range(2)]
    ranks[0].append(record(0))
    ranks[1].append(record(1))
    write_json(tmp_path / "manifest.json", MANIFEST | {"data": {"n_episodes": 4}})
    metrics = score_folder(tmp_path, OFFERS)
    assert (metrics["episodes"], metrics["finished"]) == ({"found": 2, "wanted": 4}, False)
    ranks[0].append(record(2))
    ranks[1].append(record(3))
    for rank in ranks:
        rank.finish()
    assert score_folder(tmp_path, OFFERS)["finished"] is True
    assert len(keys(tmp_path)) == 4


def test_a_folder_without_episodes_is_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"holds no episodes.jsonl"):
        list(read_records(tmp_path))
    with pytest.raises(RunFolderError, match=r"no run folder here"):
        run_folders(tmp_path)


def test_a_damaged_line_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append(record(0))
    folder.finish()
    with (tmp_path / "episodes.jsonl").open("a") as file:
        file.write('{"task": "t", "prot')
    with pytest.raises(RunFolderError, match=r"episodes.jsonl, line 2:"):
        list(read_records(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_says_what_to_do(tmp_path):
    tmp_path.chmod(stat.S_IREAD | stat.S_IEXEC)
    with pytest.raises(RunFolderError, match=r"cannot be written.*--output_path"):
        RunFolder(tmp_path / "run")


def test_a_file_in_the_way_says_what_to_do(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(RunFolderError, match=r"cannot be written.*free space or choose another folder"):
        RunFolder(tmp_path / "run")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_says_what_to_do(tmp_path):
    (tmp_path / "episodes.jsonl").symlink_to("/dev/full")
    with pytest.raises(RunFolderError, match=r"No space left on device; free space"):
        RunFolder(tmp_path).append(record(0))


def test_json_is_replaced_in_one_step_and_holds_no_nan(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert read_json(tmp_path / "x.json") == {"a": 1}
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(RunFolderError, match="holds no JSON object"):
        read_json(tmp_path / "x.json")


def test_json_that_cannot_be_written_leaves_no_draft(tmp_path):
    (tmp_path / "x.json").mkdir()
    with pytest.raises(RunFolderError, match=r"x\.json: cannot be written"):
        write_json(tmp_path / "x.json", {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_run_ids_sort_by_time_and_are_file_names():
    first, second = new_run_id("org/Model:7B"), new_run_id("org/Model:7B")
    assert first[:15] <= second[:15]
    assert not set(first) & set('<>:"/\\|?*')


MANIFEST = {
    "task": "t",
    "protocol": "feedback_loop",
    "metrics": "feedback_loop",
    "protocol_options": {"arms": ["simple"], "max_rounds": 1},
    "models": {},
}


def scored(tmp_path, manifest: dict):
    folder = RunFolder(tmp_path)
    folder.append(record(0))
    folder.finish()
    folder.write_json("manifest.json", manifest)
    return score_folder(tmp_path, OFFERS)


def test_a_folder_is_scored_from_its_episodes_alone(tmp_path):
    metrics = scored(tmp_path, MANIFEST)
    assert metrics["metrics"]["n_failed"]["value"] == 1
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics


@pytest.mark.parametrize("change", [{"protocol": "gone"}, {"metrics": "gone"}, {"protocol_options": {"arms": []}}])
def test_a_run_of_something_not_installed_here_is_named(tmp_path, change):
    with pytest.raises(RunFolderError, match="not installed here or has changed"):
        scored(tmp_path, MANIFEST | change)


def test_run_is_the_only_key_that_may_differ(tmp_path):
    one, two = record(0, run={"wall_s": 1.0}), record(0, run={"wall_s": 2.0})
    left, right = record_to_json(one), record_to_json(two)
    assert left != right
    del left["run"], right["run"]
    assert left == right
