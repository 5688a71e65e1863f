"""A whole run with people who have no browser: the harness's command line, and files out and in for three rounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interbench_tasks.people.desk import Desk
from tests.cli import interbench, metrics
from tests.people_runs import MARKED, N, beginning, command, student, until, write_people_task
from tests.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.integration


def test_a_run_without_a_browser_goes_through_files(tmp_path):
    write_people_task(tmp_path)
    place = tmp_path / "out" / "interbench" / "people.sqlite"
    waiting = tmp_path / "waiting.jsonl"
    with OpenAIServer(student) as server, beginning(tmp_path) as begin:
        run = begin(command(tmp_path, server), "run")
        until(place.exists, "the run opens its desk", run)
        with Desk(place) as desk:
            for wanted in (7, 5, 3):  # rounds 1, 2 and 3: those that are still wrong
                until(lambda n=wanted: len(desk.waiting()) == n, f"{wanted} wait", run)
                interbench("people", "export", tmp_path / "out", "-o", waiting).check()
                lines = [json.loads(line) for line in waiting.read_text(encoding="utf-8").splitlines()]
                assert Path(lines[0]["pictures"][0]).stat().st_size > 0
                filled = [
                    {"id": line["id"], "marked_right": True}
                    if f"number {MARKED}:" in line["question"]
                    else {"id": line["id"], "text": f"Level {line['level']}: look at the ears."}
                    for line in lines
                ]
                waiting.write_text("\n".join(map(json.dumps, filled)), encoding="utf-8")
                interbench("people", "import", tmp_path / "out", waiting, "--annotator", "simulated-1").check()
        assert run.end() == 0, run.said[-3000:]
    assert f"interbench serve {tmp_path / 'out'}" in run.said
    found = metrics(tmp_path)
    assert found["accuracy"]["value"] == pytest.approx(2 / N), "one was right, one is right by a person"
    (path,) = tmp_path.rglob("manifest.json")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert manifest["people"] == {"human:simulated-1": 7 + 5 + 3}
    assert manifest["simulated"] == ["provider"], "the person was a simulation, and says so in its name"
