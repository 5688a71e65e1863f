"""Real replies of three models to 175 real flawed questions, judged by three judges on a localhost server, compared."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from interbench_tasks.iseval import iseval_rows, write_items
from interbench_tasks.metrics.agreement import agreement_of, labels_from
from interbench_tasks.runs.folder import read_json, read_records
from tests.cli import interbench
from tests.servers.judge_brain import OBJECTIONS, JudgeBrain
from tests.servers.openai_server import OpenAIServer

MODELS = ("gpt-4o", "claude", "gemini")
JUDGES = {"judge-a": 0.0, "judge-b": 0.05, "judge-c": 0.1}
"""Judge -> share of its verdicts that are turned round."""

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def judged(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs, one a model, and `items.jsonl`."""
    folder = tmp_path_factory.mktemp("iseval")
    source = shared_data / "iseval"
    write_items(iseval_rows(source), source, folder / "items.jsonl")
    rows = [json.loads(line) for line in (source / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    with OpenAIServer(JudgeBrain(JUDGES), keep_requests=False) as server:
        words = ",".join(f"openai:{name}@{server.url}" for name in JUDGES)
        for model in MODELS:
            replies = [
                {"id": f"{row['pid']}/{row['conflict_type']}", "reply": row["responses"][model]["answer_to_ill"]}
                for row in rows
            ]
            file = folder / f"{model}.jsonl"
            file.write_text("".join(json.dumps(one) + "\n" for one in replies), encoding="utf-8")
            command = ["judge", "--replies", file, "--task", "mmpcbench_local", "--data", folder / "items.jsonl"]
            interbench(*command, "--judges", words, "-o", folder / "runs").check()
        assert server.violations == []
        assert server.counts.by_model == dict.fromkeys(JUDGES, 3 * 175)
        assert server.counts.pictures > 3 * 175, "judges see the pictures"
    return folder


def runs(folder: Path) -> dict[str, Path]:
    """Model -> run folder."""
    found = [manifest.parent for manifest in (folder / "runs").rglob("manifest.json")]
    return {read_json(run / "manifest.json")["models"]["receiver"]["name"]: run for run in found}


def test_every_reply_is_judged_and_the_majority_is_what_the_words_say(judged, shared_data):
    assert set(runs(judged)) == set(MODELS)
    for model, folder in runs(judged).items():
        metrics = read_json(folder / "metrics.json")
        assert metrics["finished"]
        assert metrics["metrics"]["n"]["value"] == 175
        assert metrics["metrics"]["eda"]["unscored"] == 0
        records = list(read_records(folder))
        objected = sum(bool(OBJECTIONS.search(record.turns[0].reply.text)) for record in records) / 175
        assert metrics["metrics"]["eda"]["value"] == pytest.approx(objected, abs=0.05), model
        assert metrics["metrics"]["eda"]["method"] == "cluster_bootstrap", "versions of one question share its picture"


def test_the_judges_agree_as_often_as_they_were_made_to(judged):
    """b errs in 5%, c in 10% of replies, a never: they disagree with a that often."""
    rows, clusters = [], []
    for folder in runs(judged).values():
        for record in read_records(folder):
            rows.append([verdict.fields["detected"] for verdict in record.turns[0].verdicts])
            clusters.append(str(record.cluster))
    labels = labels_from(rows, judges=tuple(JUDGES), clusters=clusters)
    found = agreement_of(labels, draws=500)
    errs_b, errs_c = ((labels.column("judge-a") != labels.column(name)).mean() for name in ("judge-b", "judge-c"))
    assert errs_b == pytest.approx(0.05, abs=0.03)
    assert errs_c == pytest.approx(0.1, abs=0.04)
    assert 0.6 < found["fleiss_kappa"].value < 0.95
    assert found["fleiss_kappa"].n == 525
    assert found["fleiss_kappa"].method == "cluster_bootstrap"


def test_the_models_are_ranked_with_intervals_and_p_values(judged):
    text = interbench("compare", judged / "runs").check().output
    assert "ranking by eda, the largest first" in text
    assert "175 episodes that all runs have" in text
    table = interbench("compare", judged / "runs", "--show", "ranking", "--format", "csv").check().output
    rows = [row for row in csv.DictReader(io.StringIO(table[table.index("task,") :])) if row["metric"] == "eda"]
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert {row["run"] for row in rows} == set(MODELS)
    values = {row["run"]: float(row["value"]) for row in rows}
    for model, folder in runs(judged).items():
        assert values[model] == pytest.approx(read_json(folder / "metrics.json")["metrics"]["eda"]["value"])
    assert all(0 < float(row["p_bootstrap"]) <= float(row["p_bootstrap_holm"]) <= 1 for row in rows[:2])
    assert [row["p_mcnemar"] for row in rows] == [""] * 3, "items share clusters"


def test_categories_stand_beside_each_other(judged):
    shown = interbench(
        "compare", judged / "runs", "--show", "categories", "--metric", "eda", "--format", "json"
    ).check()
    (one,) = json.loads(shown.output[shown.output.index("{") :])["comparisons"]
    assert "EE.ambiguity" in one["categories"]
    assert set(one["categories"]["BC"]) == set(MODELS)
