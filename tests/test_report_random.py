"""Whatever stands in a run folder, a report is made of it: each episode is shown or named, and nothing is lost."""

from __future__ import annotations

import json
import random

import pytest

from interbench_tasks.record_json import record_to_json
from interbench_tasks.report.contents import report_from
from interbench_tasks.report.folders import content_from
from interbench_tasks.report.page import page_from
from interbench_tasks.report.thumbnails import Thumbnails
from interbench_tasks.report.transcripts import Transcripts, unpacked
from interbench_tasks.report.writing import FORMATS, report_text
from interbench_tasks.runs.score import score_folder
from tests.report_damage import ODD, damaged, places
from tests.report_runs import OFFERS, loops, run_of_loops, talk, write_run

RECORDS = [record_to_json(record) for record in (*loops(), talk())]
N = 60


def write_damaged(folder, seed, times):
    """Episodes of which each is damaged in some places. Returns: how many there are."""
    dice = random.Random(seed)
    objs = [damaged(dice.choice(RECORDS), dice, times) | {"episode_id": f"e{n}", "doc_id": n} for n in range(N)]
    lines = [json.dumps(obj, separators=(",", ":")) + "\n" for obj in objs]
    (folder / "episodes.jsonl").write_text("".join(lines), encoding="utf-8")
    return objs


@pytest.mark.parametrize("seed", range(8))
def test_each_damaged_episode_is_shown_or_named(tmp_path, seed):
    folder = run_of_loops(tmp_path / "run")
    write_damaged(folder, seed, times=1 + seed % 4)
    transcripts = Transcripts()
    content = content_from(folder, OFFERS, lambda obj: transcripts.add(0, obj))
    transcripts.close()
    named = sum(1 for problem in content.problems if problem.startswith("episodes.jsonl, line"))
    more = next((int(p.split()[0]) for p in content.problems if "more lines of" in p), 0)
    assert content.n_found + named + more == N
    assert len(transcripts) == content.n_found > N // 2
    rows = unpacked(transcripts.index())["rows"]
    blocks = [unpacked(block) for block in transcripts.blocks]
    assert [blocks[row[1]][row[2]]["episode_id"] for row in rows] == [row[3] for row in rows]
    assert len(content.summaries) <= content.n_found


@pytest.mark.parametrize("seed", range(3))
def test_a_page_and_every_table_can_be_made_of_damaged_episodes(tmp_path, seed):
    folder = run_of_loops(tmp_path / "run")
    write_damaged(folder, 100 + seed, times=2)
    for format in FORMATS:
        text, _ = report_text([folder], OFFERS, format)
        text.encode("utf-8", errors="backslashreplace")


@pytest.mark.parametrize("name", ["manifest.json", "metrics.json", "usage.json"])
def test_a_report_is_made_whatever_stands_in_the_other_files(tmp_path, name):
    folder = run_of_loops(tmp_path / "run")
    score_folder(folder, OFFERS)
    role = {"model": "m", "calls": 2, "failed_calls": 0, "failed_attempts": 0, "calls_without_usage": 0}
    tokens = {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 2, "reasoning_tokens": 0, "cost_usd": 0.0}
    used = {**role, **tokens, "price": None, "from_ledger": {"replies": 0, **tokens}}
    (folder / "usage.json").write_text(json.dumps({"roles": {"receiver": used}, "limits": {}, "stopped": None}))
    whole = json.loads((folder / name).read_text())
    dice = random.Random(len(name))
    for _ in range(60):
        (folder / name).write_text(json.dumps(damaged(whole, dice, times=dice.randint(1, 4))))
        transcripts = Transcripts()
        report = report_from([folder], OFFERS, transcripts.add)
        transcripts.close()
        assert len(transcripts) == 6
        page_from(report, transcripts, Thumbnails(files={}, note=""))


def test_the_damage_is_damage():
    dice = random.Random(0)
    before = json.dumps(RECORDS[1])
    assert sum(damaged(RECORDS[1], dice, 1) != RECORDS[1] for _ in range(50)) > 45
    assert json.dumps(RECORDS[1]) == before
    assert len(list(places(RECORDS[1]))) > 50
    assert len(ODD) > 10


def test_runs_of_all_kinds_stand_in_one_report(tmp_path):
    run_of_loops(tmp_path / "a")
    write_run(tmp_path / "b", [talk()], task="talks")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metrics.json").write_text('{"task": "old", "metrics": {}}')
    report = report_from([tmp_path], OFFERS)
    assert [run.task for run in report.runs] == ["loops", "talks"]
    assert "is left out" in report.problems[0]
