"""A run that is killed again and again ends as one that never was; and the soak would see it if it did not."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests import soak
from tests.soak import Result, Soak, SoakError, committed, planted_server, write_task

pytestmark = pytest.mark.integration


def test_a_few_kills_lose_nothing_and_pay_for_nothing_twice(tmp_path):
    result = soak.soak(tmp_path, kills=3, seed=3)
    assert sum(result.kills.values()) == 3
    assert result.repeated == sum(result.lost) <= 3 * soak.MOST_OPEN
    assert result.distinct > 80
    assert result.torn == 0


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_pay_for_nothing_twice(tmp_path):
    result = soak.soak(tmp_path, kills=20, seed=20, harness_kills=1)
    assert sum(result.kills.values()) == 20
    assert result.kills["in the harness"] == 1
    assert result.repeated == sum(result.lost)
    assert max(result.lost) <= soak.MOST_OPEN


# --- the soak itself ---


def test_without_a_ledger_the_soak_fails(tmp_path):
    with pytest.raises(SoakError, match=r"calls of a killed run were not stored|makes calls"):
        soak.soak(tmp_path, kills=1, with_ledger=False)


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A run that was played to its end, with a ledger; its server still answers."""
    folder = tmp_path_factory.mktemp("once")
    write_task(folder, 4)
    with planted_server(4) as server:
        made = Soak(folder, server, seed=0)
        made.finish(folder / "out", made.ledger)
        yield made, len(server.log)


@pytest.fixture
def driver(once, tmp_path):
    """A copy of that run, as if the server had seen nothing else."""
    played, n_requests = once
    shutil.copytree(played.folder, tmp_path / "copy")
    del played.server.log[n_requests:]
    return Soak(tmp_path / "copy", played.server, seed=0)


def test_a_stored_call_that_is_made_again_is_found(driver):
    before = committed(driver.ledger)
    driver.check_calls(set())
    (driver.ledger / "ledger-rank0.sqlite3").rename(driver.folder / "kept")
    driver.finish(driver.folder / "out", driver.ledger)
    with pytest.raises(SoakError, match=f"{len(before)} calls were made again although their replies were stored"):
        driver.check_calls(before)


def test_a_stored_reply_that_is_gone_is_found(driver):
    before = committed(driver.ledger)
    driver._seen = len(driver.server.log)
    connection = sqlite3.connect(driver.ledger / "ledger-rank0.sqlite3")
    with connection:
        connection.execute("DELETE FROM reply WHERE rowid = 2")
    connection.close()
    with pytest.raises(SoakError, match="1 stored replies are gone"):
        driver.check_calls(before)


def test_more_calls_than_can_have_been_open_are_found(driver, monkeypatch):
    shutil.rmtree(driver.ledger)
    monkeypatch.setattr(soak, "MOST_OPEN", 3)
    with pytest.raises(SoakError, match="calls of a killed run were not stored; only 3 can have been open"):
        driver.check_calls(set())


@pytest.mark.parametrize("tail", [b'{"doc_id": 1', b"{}"], ids=["half a line", "a line without its end"])
def test_a_torn_line_is_found(driver, tail):
    (path,) = driver.folder.rglob("episodes.jsonl")
    with path.open("ab") as file:
        file.write(tail)
    with pytest.raises(SoakError, match="a line of episodes.jsonl is torn"):
        driver.check_lines(driver.folder / "out")


def test_a_changed_word_in_a_record_is_found(driver):
    first = driver.finish(driver.folder / "again", driver.ledger)
    (path,) = (driver.folder / "again").rglob("episodes.jsonl")
    path.write_text(path.read_text().replace("piece by piece", "piece for piece", 1))

    ended = driver.start(driver.folder / "elsewhere", driver.ledger)
    ended.wait(timeout=60)
    changed = driver.played(ended, driver.folder / "again")
    assert changed != first
    assert changed.metrics == first.metrics


def test_a_run_that_fails_is_told_with_what_it_said(driver):
    (driver.folder / "soak.yaml").write_text("task: soak\n")
    with pytest.raises(SoakError, match=r"(?s)a run failed with 1: .*Error"):
        driver.finish(driver.folder / "out", driver.ledger)


def test_the_text_tells_the_counts():
    result = Result(distinct=10, requests=13, lost=[1, 2])
    result.kills["while playing"] = 2
    assert "2 kills (2 while playing), 0 lives ended before" in result.text()
    assert "10, made in all 13, so 3 were made again; at most 2 were open at a kill" in result.text()


def test_the_command_says_it_all_and_ends_with_0(monkeypatch, capsys):
    seen = {}

    def fake(folder: Path, **options) -> Result:
        seen.update(options)
        return replace(Result(), wall_s=1.0)

    monkeypatch.setattr(soak, "soak", fake)
    monkeypatch.setattr(sys, "argv", ["soak", "--kills", "5", "--seed", "2", "--harness", "1"])
    assert soak.main() == 0
    assert (seen["kills"], seen["seed"], seen["harness_kills"]) == (5, 2, 1)
    assert "0 kills" in capsys.readouterr().out


def test_the_command_ends_with_1_where_something_is_different(monkeypatch, capsys):
    def fake(folder: Path, **options) -> Result:
        raise SoakError("one stored reply is gone")

    monkeypatch.setattr(soak, "soak", fake)
    monkeypatch.setattr(sys, "argv", ["soak", "--kills", "2"])
    assert soak.main() == 1
    assert capsys.readouterr().out == "FAILED: one stored reply is gone\n"


def test_the_command_refuses_more_kills_in_the_harness_than_kills(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["soak", "--kills", "2", "--harness", "3"])
    with pytest.raises(SystemExit):
        soak.main()
    assert "--harness must be between 0 and --kills" in capsys.readouterr().err
