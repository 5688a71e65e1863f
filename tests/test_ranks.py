"""Two ranks on one machine give what one rank gives: same ids, same numbers, nothing paid for padding."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli import lmms_eval, metrics, records, run
from tests.harness_fakes import question_rows, write_task

pytestmark = [pytest.mark.integration, pytest.mark.slow]
ARGUMENTS = ("--model", "interbench_simulated", "--model_args", "accuracy=0.3", "--tasks", "ranked_task")


@pytest.mark.parametrize("n_docs", [1, 7])
def test_two_ranks_equal_one(tmp_path, n_docs):
    write_task(tmp_path, question_rows(n_docs), name="ranked_task")
    one, two = tmp_path / "one", tmp_path / "two"
    lmms_eval(*ARGUMENTS, "--include_path", tmp_path, "--output_path", one).check()
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "lmms_eval")
    run(*launcher, *ARGUMENTS, "--include_path", tmp_path, "--output_path", two).check()
    left, right = records(one), records(two)
    for record in [*left, *right]:
        del record["run"]
    assert left == right
    assert [record["doc_id"] for record in right] == list(range(n_docs))
    assert metrics(one) == metrics(two)
    (manifest,) = two.rglob("manifest.json")
    assert json.loads(manifest.read_text())["data"]["n_episodes"] == n_docs
    (path,) = two.rglob("metrics.json")
    assert json.loads(path.read_text())["finished"] is True
    used = [json.loads(next(folder.rglob("usage.json")).read_text())["roles"] for folder in (one, two)]
    assert used[0] == used[1]
    assert not list(two.rglob("usage-rank*.json"))
