"""The second pass of a run: branches that need other episodes, and what becomes of them when something goes wrong."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from interbench_tasks import hookimpl
from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.cli import app
from interbench_tasks.config import task_options_from
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.record_json import line_from_record
from interbench_tasks.rows import load_rows
from interbench_tasks.runs.folder import MANIFEST, RunFolder, read_json, read_records, write_json
from interbench_tasks.runs.plan import RunPlan
from interbench_tasks.runs.play import play_run
from interbench_tasks.runs.score import score_folder
from tests.harness_fakes import question_rows

N = 40
MANAGER = build_plugin_manager()
OFFERS = offers_from(MANAGER)


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def config_of(**block):
    defaults = {
        "protocol": "feedback_loop",
        "verifier": "choice",
        "arms": ["detail", "simple", "reask", "mismatched"],
        "flip_sample": 5,
        "providers": ["simulated:a,solve=0.9", "simulated:b,solve=0.6,seed=2"],
    }
    return {
        "task": "t",
        "dataset_path": "json",
        "generation_kwargs": {"until": [], "max_new_tokens": 8, "temperature": 0},
        "metadata": {"interbench": defaults | block},
    }


def plan_of(folder, *, wanted=None, n=N, **block):
    data = folder / "rows.jsonl"
    if not data.exists():
        data.write_text("".join(json.dumps(row) + "\n" for row in question_rows(n)), encoding="utf-8")
    return RunPlan(
        task="t",
        options=task_options_from(config_of(**block), where="t.yaml", offers=OFFERS),
        data=load_rows("json", name=None, split="test", options={"data_files": str(data)}),
        wanted=[(doc, 0) for doc in range(n)] if wanted is None else wanted,
        n_total=n,
        run_id="r",
        folder=folder / "run",
    )


def play(plan, *, offers=OFFERS, receiver=None):
    def no_harness(role):
        raise AssertionError("no model of the harness is needed")

    receiver = receiver or SimulatedBackend(accuracy=0.4, invalid=0)
    played = play_run(plan, receiver=receiver, manager=MANAGER, offers=offers, harness_model=no_harness)
    return played, list(read_records(plan.folder)) if plan.wanted else []


def without_run(records):
    return [line_from_record(replace(record, run={})).partition(',"run":')[0] for record in records]


def test_every_episode_has_one_record_and_those_that_are_played_on_say_so(tmp_path):
    played, records = play(plan_of(tmp_path))
    assert [record.doc_id for record in records] == list(range(N))
    kinds = Counter((record.stop_reason, record.passes) for record in records)
    assert kinds[("flip_played", 2)] == 5
    assert kinds[("played", 1)] == 0
    assert kinds[("played", 2)] > 10
    assert played.n_second_pass == kinds[("flip_played", 2)] + kinds[("played", 2)]
    assert read_json(tmp_path / "run" / MANIFEST)["second_pass"] == {"n_episodes": played.n_second_pass}
    assert score_folder(tmp_path / "run", OFFERS)["finished"] is True


def test_what_the_second_pass_adds_stands_behind_what_the_first_had(tmp_path):
    _, both = play(plan_of(tmp_path))
    (tmp_path / "one").mkdir()
    _, first = play(plan_of(tmp_path / "one", arms=["detail", "simple", "reask"], flip_sample=0))
    for one, two in zip(first, both, strict=True):
        assert two.turns[: len(one.turns)] == tuple(replace(t, reply=two.turns[i].reply, feedback=two.turns[i].feedback)
                                                    for i, t in enumerate(one.turns))  # fmt: skip
        assert {turn.branch.partition("@")[0] for turn in two.turns[len(one.turns) :]} <= (
            {"mismatched"} if two.stop_reason == "played" else {"solve", "detail", "simple", "reask", "mismatched"}
        )


def test_the_borrowed_words_are_another_questions_and_the_sentence_is_its_own(tmp_path):
    _, records = play(plan_of(tmp_path))
    by_id = {record.episode_id: record for record in records}
    n_borrowed = 0
    for record in records:
        for turn in record.turns:
            if turn.branch.startswith("mismatched"):
                lender = by_id[turn.feedback.source]
                label = turn.branch.partition("@")[2]
                [lent] = [other for other in lender.turns if other.branch == f"detail@{label}" and other.round == 1]
                assert lender.episode_id != record.episode_id
                assert lender.category == record.category
                assert lender.stop_reason == "played"
                assert turn.feedback.text == lent.feedback.text
                assert turn.feedback.reply is None
                n_borrowed += 1
    assert n_borrowed > 20


def test_two_ranks_plan_what_one_plans(tmp_path):
    _, whole = play(plan_of(tmp_path))
    halves = []
    facts: dict[int, list] = {}
    for rank in (0, 1):  # one after the other: the first run only collects what each rank has to tell
        part = tmp_path / f"collect{rank}"
        part.mkdir()
        wanted = [(doc, 0) for doc in range(rank, N, 2)]
        tell = replace(
            plan_of(part, wanted=wanted), from_all_ranks=lambda own, rank=rank: facts.setdefault(rank, own) and []
        )
        play(tell)
    for rank in (0, 1):
        part = tmp_path / f"half{rank}"
        part.mkdir()
        wanted = [(doc, 0) for doc in range(rank, N, 2)]
        told = replace(plan_of(part, wanted=wanted), from_all_ranks=lambda own: [*facts[1], *facts[0]])
        halves += play(told)[1]
    assert without_run(sorted(halves, key=lambda record: record.doc_id)) == without_run(whole)


def test_a_rank_without_episodes_meets_the_others_too(tmp_path):
    met = []
    plan = replace(plan_of(tmp_path, wanted=[]), from_all_ranks=lambda own: met.append(own) or [])
    play(plan)
    assert met == [[]]


def test_a_run_that_was_killed_between_the_passes_is_unfinished_and_keeps_what_it_has(tmp_path):
    _, records = play(plan_of(tmp_path))
    folder = tmp_path / "run"
    first = [replace(record, passes=1) for record in records]
    (folder / "episodes.jsonl").write_text("".join(line_from_record(record) + "\n" for record in first))
    write_json(folder / MANIFEST, read_json(folder / MANIFEST) | {"second_pass": {"n_episodes": None}})
    scored = score_folder(folder, OFFERS)
    assert (scored["finished"], scored["episodes"]["found"]) == (False, N)


def test_of_two_lines_of_an_episode_the_later_one_counts(tmp_path):
    _, records = play(plan_of(tmp_path))
    folder = RunFolder(tmp_path / "again")
    folder.append(replace(records[0], stop_reason="first"))
    folder.append(records[1])
    folder.append(replace(records[0], stop_reason="second"))
    assert [record.stop_reason for record in read_records(tmp_path / "again")] == [records[1].stop_reason, "second"]
    assert folder.read((0, 0)).stop_reason == "second"
    folder.finish()
    assert [record.stop_reason for record in read_records(tmp_path / "again")] == ["second", records[1].stop_reason]


def test_an_episode_that_fails_in_the_second_pass_keeps_its_first(tmp_path):
    made = OFFERS.protocols["feedback_loop"]

    class Broken(made):
        async def play_on(self, episode, record, planned, roles):
            if record.doc_id % 2:
                raise RuntimeError("broken here")
            return await super().play_on(episode, record, planned, roles)

    offers = replace(OFFERS, protocols={"feedback_loop": Broken})
    played, records = play(plan_of(tmp_path), offers=offers)
    broken = [record for record in records if record.ends and record.ends[-1].error]
    assert len(broken) > 5
    assert all(record.status == "finished" and record.doc_id % 2 for record in broken)
    assert any(turn.branch == "detail@a" for record in broken for turn in record.turns)
    assert played.errors == {"RuntimeError('broken here')": len(broken)}


def drawn_of(records, folder):
    """What the metrics say of the flip set of provider a, and how many episodes were drawn."""
    metrics = score_folder(folder, OFFERS)["metrics"]
    drawn = [record for record in records if record.stop_reason in ("flip_played", "flip_drawn")]
    return metrics["n_flip@a"], metrics.get("flip_rate.simple@a"), drawn


def test_right_answers_whose_try_fails_are_unscored_and_not_left_out(tmp_path):
    made = OFFERS.protocols["feedback_loop"]

    class Broken(made):
        async def play_on(self, episode, record, planned, roles):
            if planned["flip"] and record.doc_id % 2:
                raise RuntimeError("broken here")
            return await super().play_on(episode, record, planned, roles)

    plan = plan_of(tmp_path, flip_sample=8)
    _, records = play(plan, offers=replace(OFFERS, protocols={"feedback_loop": Broken}))
    n_flip, flip_rate, drawn = drawn_of(records, plan.folder)
    failed = sum(record.stop_reason == "flip_drawn" for record in drawn)
    assert (len(drawn), failed > 0, failed < 8) == (8, True, True)
    assert n_flip["unscored"] == failed
    assert flip_rate["unscored"] == failed
    assert flip_rate["bounds"][0] <= flip_rate["value"] <= flip_rate["bounds"][1]


@pytest.mark.parametrize("how", ["hangs", "ends the program"])
def test_an_episode_that_hangs_or_exits_in_the_second_pass_keeps_its_first(tmp_path, how):
    made = OFFERS.protocols["feedback_loop"]

    class Broken(made):
        async def play_on(self, episode, record, planned, roles):
            if record.doc_id % 2:
                if how == "hangs":
                    await asyncio.sleep(1e9)
                raise SystemExit(1)
            return await super().play_on(episode, record, planned, roles)

    offers = replace(OFFERS, protocols={"feedback_loop": Broken})
    _, first = play(plan_of(tmp_path, arms=["detail", "simple", "reask"], flip_sample=0))
    (tmp_path / "two").mkdir()
    played, records = play(plan_of(tmp_path / "two", engine={"max_episode_s": 0.5}), offers=offers)
    broken = [record for record in records if record.ends and record.ends[-1].branch == "second pass"]
    assert len(broken) > 5
    for record in broken:
        assert (record.status, record.doc_id % 2, record.passes) == ("finished", 1, 2)
        assert len(record.turns) == len(first[record.doc_id].turns)
    words = "took longer than 0.5 s" if how == "hangs" else "tried to end the whole program (SystemExit: 1)"
    assert all(words in record.ends[-1].error for record in broken)
    assert sum(played.errors.values()) == len(broken)
    assert sum(record.passes == 2 for record in records) == played.n_second_pass


def test_a_budget_that_ends_before_the_second_pass_leaves_the_first_and_an_unfinished_run(tmp_path):
    class Counting(SimulatedBackend):
        asked = 0

        async def reply(self, call):
            type(self).asked += 1
            return await super().reply(call)

    receiver = Counting(accuracy=0.4, invalid=0)
    report = play(plan_of(tmp_path), receiver=receiver)[0].report
    assert (report.n_finished, report.n_failed, report.n_skipped) == (N, 0, 0), "who is played on is counted once"
    (tmp_path / "two").mkdir()
    plan = plan_of(tmp_path / "two")
    ended = []
    plan = replace(
        plan,
        from_all_ranks=lambda own: ended.append(True) or own,
        stop_reason=lambda: "the budget is used up" if ended else None,
    )
    played, records = play(plan)
    assert {record.passes for record in records} == {1}
    assert {record.status for record in records} == {"finished"}
    assert (played.report.n_finished, played.report.n_skipped) == (N, 0)
    assert played.errors["the budget is used up"] == played.n_second_pass
    n_flip, flip_rate, drawn = drawn_of(records, plan.folder)
    assert (n_flip["value"], n_flip["unscored"], flip_rate, len(drawn)) == (0, 5, None, 5)
    assert score_folder(plan.folder, OFFERS)["finished"] is False


def test_nobody_is_told_what_was_written_for_a_row_that_asks_the_same(tmp_path):
    rows = [row | {"question": f"Which of the {doc % 2}?"} for doc, row in enumerate(question_rows(N))]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _, records = play(plan_of(tmp_path))
    asked = {record.episode_id: record.turns[0].user.text for record in records}
    assert len(set(asked.values())) == 2
    borrowed = [
        (asked[record.episode_id], asked[turn.feedback.source])
        for record in records
        for turn in record.turns
        if turn.branch.startswith("mismatched")
    ]
    assert len(borrowed) > 20
    assert all(own != lent for own, lent in borrowed)


def killed(source, folder, *, keep):
    """The folder of a run that was killed: the records in `keep`, of the first pass where they say so; no plan."""
    own = RunFolder(folder)
    for record in read_records(source):
        if kept := keep(record):
            own.append(kept)
    own.finish()
    manifest = read_json(source / MANIFEST)
    own.write_json(MANIFEST, manifest | {"second_pass": {"n_episodes": None}})
    return folder


def first_pass_of(record):
    """The record as it was before the second pass."""
    if record.passes == 1:
        return record
    right = record.turns[0].judgement.correct
    own = [turn for turn in record.turns if (not right and not turn.branch.startswith("mismatched")) or turn.index == 0]
    ends = tuple(end for end in record.ends if not right and not end.branch.startswith("mismatched"))
    return replace(record, turns=tuple(own), ends=ends, passes=1, stop_reason="right" if right else record.stop_reason)


def test_a_run_killed_before_its_second_pass_says_which_metrics_are_missing_and_why(tmp_path):
    play(plan_of(tmp_path))
    folder = killed(tmp_path / "run", tmp_path / "killed", keep=first_pass_of)
    scored = score_folder(folder, OFFERS)
    why = "the run was stopped before its second pass, which plays what this needs"
    whole = score_folder(tmp_path / "run", OFFERS)
    assert "lacking" not in whole
    absent = {name for name, told in scored["lacking"].items() if told == f"absent: {why}"}
    assert absent >= whole["metrics"].keys() - scored["metrics"].keys()
    assert {
        "flip_rate.detail@a",
        "discrimination.simple@b",
        "net_content_effect@a",
        "repeat_rate.mismatched@b",
    } < absent
    assert scored["lacking"]["n_flip@a"] == f"incomplete: {why}"
    assert not [name for name in scored["lacking"] if name in ("accuracy", "net_bit_effect@a", "repeat_rate.reask@a")]
    done = CliRunner().invoke(app, ["score", str(folder)])
    told = " ".join(done.output.split())
    assert "UNFINISHED: not every episode was played to its end." in told
    assert f"absent, because {why}: correction_rate.mismatched@a, " in told
    assert f"incomplete, because {why}: accuracy_after.mismatched@a, " in told


def test_a_run_killed_in_its_second_pass_says_that_nobody_knows_how_much_is_missing(tmp_path):
    play(plan_of(tmp_path))
    folder = killed(tmp_path / "run", tmp_path / "killed", keep=lambda r: r if r.doc_id < N // 2 else first_pass_of(r))
    lacking = score_folder(folder, OFFERS)["lacking"]
    played_on = sum(record.passes == 2 for record in read_records(folder))
    told = f"the run was stopped in its second pass, when {played_on} of an unknown number of episodes were played on"
    assert {why.partition(": ")[2] for why in lacking.values()} == {told}
    manifest = read_json(folder / MANIFEST)
    write_json(folder / MANIFEST, manifest | {"second_pass": {"n_episodes": 30}})
    lacking = score_folder(folder, OFFERS)["lacking"]
    assert all(f"when {played_on} of 30 episodes were played on" in why for why in lacking.values())


def test_a_run_without_a_second_pass_lacks_only_episodes(tmp_path):
    play(plan_of(tmp_path, arms=["detail", "simple"], flip_sample=0))
    manifest = read_json(tmp_path / "run" / MANIFEST)
    write_json(tmp_path / "run" / MANIFEST, manifest | {"data": manifest["data"] | {"n_episodes": N + 1}})
    scored = score_folder(tmp_path / "run", OFFERS)
    assert (scored["finished"], "lacking" in scored) == (False, False)


def test_a_run_without_controls_has_one_pass(tmp_path):
    played, records = play(plan_of(tmp_path, arms=["detail", "simple"], flip_sample=0))
    assert played.n_second_pass is None
    assert {record.passes for record in records} == {1}
    assert "second_pass" not in read_json(tmp_path / "run" / MANIFEST)


def test_an_error_on_the_way_to_the_other_ranks_ends_the_run_and_is_told(tmp_path):
    def broken(own):
        raise ConnectionError("rank 1 is gone")

    with pytest.raises(ConnectionError, match="rank 1 is gone"):
        play(replace(plan_of(tmp_path), from_all_ranks=broken))
    assert len(list(read_records(tmp_path / "run"))) == N


def test_the_other_ranks_are_met_on_the_calling_thread(tmp_path):
    import threading

    threads = []
    play(replace(plan_of(tmp_path), from_all_ranks=lambda own: threads.append(threading.current_thread()) or own))
    assert threads == [threading.current_thread()]


def test_a_watcher_that_ends_the_program_is_reported_and_moves_nothing(tmp_path):
    class Watcher:
        @hookimpl
        def interbench_episode_finished(self, record):
            raise SystemExit(7)

    manager = build_plugin_manager()
    manager.register(Watcher(), name="watcher")
    plan = plan_of(tmp_path, arms=["detail", "simple"], flip_sample=0)
    receiver = SimulatedBackend(accuracy=0.4, invalid=0)
    played = play_run(plan, receiver=receiver, manager=manager, offers=OFFERS, harness_model=lambda role: None)
    assert played.report.n_finished == N
    assert played.watcher_errors == (f"plugin 'watcher': SystemExit(7) ({N} times)",)
