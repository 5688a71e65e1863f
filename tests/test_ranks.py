"""Several ranks on one machine give what one rank gives: same ids, same numbers, nothing paid for padding."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli import lmms_eval, metrics, records, run
from tests.harness_fakes import question_rows, write_task
from tests.planted_controls import without_run
from tests.published_rows import change

pytestmark = [pytest.mark.integration, pytest.mark.slow]
ARGUMENTS = ("--model", "interbench_simulated", "--model_args", "accuracy=0.3,invalid=0", "--tasks", "ranked_task")
ABORTED = "terminate called without an active exception"
"""What torch's own threads say where they abort a rank that has already finished its work."""
HANGS_S = 300
"""A rank that waits for another for ever is stopped after so long."""


def on_ranks(n_ranks: int, folder: Path, output: Path) -> None:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(n_ranks), "-m", "lmms_eval")
    words = (*ARGUMENTS, "--include_path", folder, "--output_path", output)
    if n_ranks == 1:
        lmms_eval(*words, timeout_s=HANGS_S).check()
    else:
        done = run(*launcher, *words, timeout_s=HANGS_S)
        if done.exit_code and ABORTED in done.output:  # seen twice in about fifty starts, before ranks left cleanly
            shutil.rmtree(output)
            done = run(*launcher, *words, timeout_s=HANGS_S)
        done.check()


def assert_equal_runs(one: Path, several: Path, n_docs: int) -> None:
    assert without_run(records(several)) == without_run(records(one))
    assert [record["doc_id"] for record in records(several)] == list(range(n_docs))
    assert metrics(one) == metrics(several)
    (manifest,) = several.rglob("manifest.json")
    assert json.loads(manifest.read_text())["data"]["n_episodes"] == n_docs
    (path,) = several.rglob("metrics.json")
    assert json.loads(path.read_text())["finished"] is True


@pytest.mark.parametrize("n_docs", [1, 7])
def test_two_ranks_equal_one(tmp_path, n_docs):
    write_task(tmp_path, question_rows(n_docs), name="ranked_task")
    for n_ranks in (1, 2):
        on_ranks(n_ranks, tmp_path, tmp_path / str(n_ranks))
    assert_equal_runs(tmp_path / "1", tmp_path / "2", n_docs)
    used = [json.loads(next((tmp_path / n).rglob("usage.json")).read_text())["roles"] for n in ("1", "2")]
    assert used[0] == used[1]
    assert not list((tmp_path / "2").rglob("usage-rank*.json"))


def write_controlled_task(folder: Path, n_docs: int) -> None:
    """Two providers, all controls, two categories that lie across the ranks."""
    rows = [row | {"category": "first" if i < n_docs // 2 else "second"} for i, row in enumerate(question_rows(n_docs))]
    path = write_task(folder, rows, name="ranked_task")
    change(path, "arms: [detail, simple]", "arms: [detail, simple, reask, mismatched]\n    flip_sample: 3")
    one, two = "simulated:helper,solve=1,invalid=0", "simulated:second,solve=0.7,seed=5"
    change(path, f'roles: {{provider: "{one}"}}', f'providers: ["{one}", "{two}"]')


def played(folder: Path) -> dict[str, int]:
    """How often each arm was played, over all of a run's records."""
    found = [
        turn["branch"].partition("@")[0] for record in records(folder) for turn in record["turns"] if turn["round"]
    ]
    return {arm: found.count(arm) for arm in ("detail", "simple", "reask", "mismatched")}


def test_a_controlled_task_on_two_and_three_ranks_equals_one(tmp_path):
    write_controlled_task(tmp_path, 23)
    for n_ranks in (1, 2, 3):
        on_ranks(n_ranks, tmp_path, tmp_path / str(n_ranks))
    assert min(played(tmp_path / "1").values()) > 10
    assert metrics(tmp_path / "1")["n_flip@helper"]["value"] == 3
    for n_ranks in (2, 3):
        assert_equal_runs(tmp_path / "1", tmp_path / str(n_ranks), 23)


def test_ranks_without_any_episode_do_not_hold_up_a_controlled_task(tmp_path):
    write_controlled_task(tmp_path, 1)
    for n_ranks in (1, 3):
        on_ranks(n_ranks, tmp_path, tmp_path / str(n_ranks))
    assert_equal_runs(tmp_path / "1", tmp_path / "3", 1)
    (manifest,) = (tmp_path / "3").rglob("manifest.json")
    assert json.loads(manifest.read_text())["second_pass"] == {"n_episodes": 1}
