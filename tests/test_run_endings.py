"""A run that ends badly gives back what it holds, keeps what it knows, and leaves a folder that can be read."""

from __future__ import annotations

import pytest

from interbench_tasks import hookimpl
from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import BudgetError, RunFolderError
from interbench_tasks.ledger import Ledger
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.runs.folder import EPISODES, new_run_id, read_json, read_records
from interbench_tasks.runs.play import play_run
from interbench_tasks.runs.usage_file import USAGE
from tests.test_budget import plan_of, play


@pytest.fixture
def ledger_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", str(tmp_path / "ledger"))
    return tmp_path / "ledger"


def first_file_is_free(folder) -> bool:
    ledger = Ledger.open(folder)
    ledger.close()
    return sorted(path.name for path in folder.glob("*.sqlite3")) == ["ledger-rank0.sqlite3"]


def test_a_run_that_is_refused_gives_its_ledger_back(tmp_path, ledger_folder):
    receiver = SimulatedBackend()
    receiver.name = "own:model"
    with pytest.raises(BudgetError, match="no price known"):
        play(plan_of(tmp_path, n=4, budget={"max_cost": 5}), receiver)
    assert first_file_is_free(ledger_folder)


def test_a_run_folder_that_cannot_be_put_in_order_costs_neither_ledger_nor_usage(tmp_path, ledger_folder):
    plan = plan_of(tmp_path, n=4)
    (plan.folder / "episodes.sorted").mkdir(parents=True)
    with pytest.raises(RunFolderError, match=r"episodes\.jsonl: cannot be written"):
        play(plan)
    assert read_json(plan.folder / USAGE)["roles"]["receiver"]["calls"] >= 4
    assert len(list(read_records(plan.folder))) == 4
    assert first_file_is_free(ledger_folder)


def test_what_the_ledger_has_to_tell_is_told_also_where_the_run_is_stopped(tmp_path, ledger_folder, caplog):
    ledger_folder.mkdir()
    (ledger_folder / "ledger-rank0.sqlite3").write_bytes(b"no database at all" * 500)
    plan = plan_of(tmp_path, n=4, budget={"max_cost": 5})
    receiver = SimulatedBackend()
    receiver.name = "own:model"
    with pytest.raises(BudgetError, match="no price known"):
        play(plan, receiver)
    (told,) = [record.getMessage() for record in caplog.records if "damaged" in record.getMessage()]
    assert "It was set aside as ledger-rank0.sqlite3.damaged-1 and a fresh ledger was begun, with the 0 replies" in told
    caplog.clear()
    (ledger_folder / "ledger-rank0.sqlite3").write_bytes(b"no database at all" * 500)
    played = play(plan_of(tmp_path, n=4))
    assert len(played.ledger_warnings) == 1
    assert not [record for record in caplog.records if "damaged" in record.getMessage()]  # the caller tells it


def test_a_watchers_error_is_told_without_the_key_in_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "a-key-of-words-only")

    class Watcher:
        @hookimpl
        def interbench_episode_finished(self, record) -> None:
            raise RuntimeError("cannot log in with a-key-of-words-only")

    manager = build_plugin_manager()
    manager.register(Watcher(), name="watcher")
    plan = plan_of(tmp_path, n=3)
    played = play_run(
        plan, receiver=SimulatedBackend(), manager=manager, offers=offers_from(manager), harness_model=lambda role: None
    )
    assert played.watcher_errors == ("plugin 'watcher': RuntimeError('cannot log in with [redacted]') (3 times)",)


def test_no_two_runs_have_one_id_though_they_begin_in_the_same_moment():
    ids = [new_run_id("model") for _ in range(2000)]
    assert len(set(ids)) == len(ids)


def test_a_torn_last_line_of_a_killed_run_is_told_with_its_place(tmp_path):
    plan = plan_of(tmp_path, n=4)
    play(plan)
    file = plan.folder / EPISODES
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(RunFolderError, match=r"episodes\.jsonl, line 4: "):
        list(read_records(plan.folder))
