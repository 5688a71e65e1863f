"""The simulation in conversations: it knows what it is shown, and the planted rates are found by the metrics."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.errors import BackendError
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.metrics.mmrc_analyses import analysed, modality_difference, rows_from
from interbench_tasks.protocols.conversation import ConversationOptions
from tests.conversation_runs import played, row

ROLES = {"judge": "simulated:judge", "notetaker": "simulated:taker"}
DEMO = Path(str(resources.files("interbench_tasks.task_yamls"))) / "mmrc" / "demo"


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def demo_rows():
    rows = [json.loads(line) for line in (DEMO / "conversations.jsonl").read_text(encoding="utf-8").splitlines()]
    for one in rows:
        for turn in one["turns"]:
            turn["images"] = [str(DEMO / path) for path in turn["images"]]
    return rows


def run(tmp_path, rows, *, receiver, **block):
    """Records, and the table of the metrics."""
    records, _ = played(tmp_path, rows, receiver, **{"roles": ROLES, **block})
    metrics = ConversationMetrics(ConversationOptions(**{key: block[key] for key in ("memories",) if key in block}))
    return records, metrics.table([metrics.summary(record) for record in records])


def answers_by_distance(records, arm):
    """Turns between evidence and question -> whether the answers were right."""
    found = {}
    for record in records:
        n_turns = sum(t.role == "receiver" and t.question is None and t.branch == "" for t in record.turns)
        asked = {question.id: question for question in record.questions}
        for turn in record.turns:
            if turn.question is not None and turn.branch.startswith(f"{arm}/"):
                distance = n_turns - min(asked[turn.question].evidence)
                found.setdefault(distance, set()).add(turn.reply.text == asked[turn.question].target)
    return found


@pytest.mark.parametrize("forget_after", [1, 3, 6])
def test_what_is_older_than_it_remembers_is_forgotten_unless_the_notes_hold_it(tmp_path, forget_after):
    rows = [row(f"talk{number}", 8, 8) for number in range(3)]
    receiver = SimulatedBackend(accuracy=1, forget_after=forget_after)
    records, table = run(tmp_path, rows, receiver=receiver, memories=["none", "note_taking"])
    assert answers_by_distance(records, "none") == {d: {d <= forget_after} for d in range(1, 9)}
    assert answers_by_distance(records, "note_taking") == {d: {True} for d in range(1, 9)}
    assert table["score.MR.none"].value == pytest.approx(5 * forget_after / 8)
    assert table["score.MR.note_taking"].value == 5


def of_arm(records, arm, *names):
    """Analysis -> bin -> mean score, of one arm."""
    rows = [one for one in rows_from(records, [arm]) if one.arm == arm]
    tables = analysed(rows, names, draws=200)
    return {name: {told: found.value for told, found in table.items()} for name, table in tables.items()}


@pytest.mark.parametrize("forget_after", [2, 5])
def test_the_analysis_finds_the_planted_k(tmp_path, forget_after):
    """`none` falls where the model forgets, `note_taking` does not."""
    rows = [row(f"talk{number}", 9, 9) for number in range(3)]
    receiver = SimulatedBackend(accuracy=1, forget_after=forget_after)
    records, _ = run(tmp_path, rows, receiver=receiver, memories=["none", "note_taking"])
    by_distance = of_arm(records, "none", "exact_distance")["exact_distance"]
    assert [by_distance[str(number)] for number in range(9)] == [5 * (number < forget_after) for number in range(9)]
    with_notes = of_arm(records, "note_taking", "exact_distance")["exact_distance"]
    assert set(with_notes.values()) == {5}


def test_the_analysis_tells_where_the_evidence_stood(tmp_path):
    rows = [row(f"talk{number}", 6, 6) for number in range(3)]
    memories = ["none", "recent_turns", ["recent_turns", "note_taking"]]
    records, _ = run(tmp_path, rows, receiver=SimulatedBackend(accuracy=1), memories=memories, recent_turns=2)
    assert of_arm(records, "none", "place")["place"] == {"in_view": 5}
    assert of_arm(records, "recent_turns", "place")["place"] == {"in_view": 5, "cut": 0}
    assert of_arm(records, "recent_turns+note_taking", "place")["place"] == {"in_view": 5, "in_notes": 5}


def test_the_twins_of_the_demo_are_found(tmp_path):
    records, _ = run(tmp_path, demo_rows(), receiver=SimulatedBackend(accuracy=1))
    difference = modality_difference(rows_from(records, ["none"]), draws=200)
    n_open = {record.episode_id: sum(not q.options for q in record.questions) for record in records}
    assert difference.n == sum(n_open[name] for name in ("food_dinner", "shopping_flat", "history_mill"))
    assert difference.value == 0


def test_it_feels_that_turns_are_cut(tmp_path):
    """It remembers all that it is shown, so what a memory or a limit hides is gone."""
    rows = [row("talk", 6, 6)]
    memories = ["none", "recent_turns", ["recent_turns", "note_taking"]]
    _, table = run(tmp_path, rows, receiver=SimulatedBackend(accuracy=1), memories=memories, recent_turns=2)
    assert table["score.MR.none"].value == 5
    assert table["score.MR.recent_turns"].value == pytest.approx(5 * 2 / 6)
    assert table["score.MR.recent_turns+note_taking"].value == 5
    _, limited = run(tmp_path / "b", rows, receiver=SimulatedBackend(accuracy=1), max_history_tokens=40)
    assert limited["score.MR.none"].value < 5


def test_notes_that_miss_turns_help_as_far_as_they_go(tmp_path):
    rows = [row(f"talk{number}", 10, 10) for number in range(30)]
    receiver = SimulatedBackend(accuracy=1, forget_after=0)
    roles = {**ROLES, "notetaker": {"backend": "simulated", "model": "taker", "miss": 0.4}}
    _, table = run(tmp_path, rows, receiver=receiver, memories=["note_taking"], roles=roles)
    assert table["score.MR.note_taking"].value == pytest.approx(5 * 0.6, abs=0.45)


def test_notes_in_the_system_message_are_read_too(tmp_path):
    receiver = SimulatedBackend(accuracy=1, forget_after=0)
    _, table = run(tmp_path, [row("a", 4, 4)], receiver=receiver, memories=["note_taking"], notes={"place": "system"})
    assert table["score.MR.note_taking"].value == 5


def test_a_summary_is_plain_text_and_holds_what_was_said(tmp_path):
    receiver = SimulatedBackend(accuracy=1, forget_after=0)
    records, table = run(tmp_path, [row("a", 4, 4)], receiver=receiver, memories=["summary"])
    assert table["score.MR.summary"].value == 5
    notes = [turn.notes for turn in records[0].turns if turn.role == "notetaker"]
    assert notes[1].text == "turn 1: a: this is fact 0.\nturn 2: a: this is fact 1."


@pytest.mark.parametrize("accuracy", [0.3, 0.8])
def test_planted_rates_are_found_in_the_demo(tmp_path, accuracy):
    receiver = SimulatedBackend(accuracy=accuracy, refuse=0.5)
    records, table = run(tmp_path, demo_rows(), receiver=receiver, verifier="choice")
    assert len(records) == 16
    answerable = [table[f"score.{ability}.none"] for ability in ("IE", "CR", "IU", "IM", "MR")]
    mean = sum(one.value * one.n for one in answerable) / sum(one.n for one in answerable)
    assert mean / 5 == pytest.approx(accuracy, abs=0.13)
    assert table["rp.none"].value == pytest.approx(0.5, abs=0.3)
    assert table["rp.none"].value * 5 == pytest.approx(table["score.AR.none"].value)


def test_a_perfect_simulation_is_perfect_in_every_metric_of_the_demo(tmp_path):
    """Also by item lists, picture numbers and refusals: the demo's own answers are read as right."""
    _, table = run(tmp_path, demo_rows(), receiver=SimulatedBackend(accuracy=1))
    for name in ("overall.none", *[f"score.{ability}.none" for ability in ("IE", "CR", "IU", "IM", "MR", "AR")]):
        assert table[name].value == 5, name
    for name in ("ep.none", "ep_recall.none", "imp.none", "imp_precision.none", "rp.none", "accuracy.none"):
        assert table[name].value == 1, name


def test_every_simulated_number_says_so(tmp_path):
    records, _ = played(tmp_path, [row("a", 1, 1)], SimulatedBackend(), roles=ROLES, memories=["note_taking"])
    assert all("simulated" in name for name in records[0].models.values())


def test_replies_are_the_same_in_any_order_and_differ_by_seed(tmp_path):
    rows = [row(f"talk{number}", 3, 3) for number in range(8)]
    texts = []
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        records, _ = played(tmp_path / folder, rows, SimulatedBackend(seed=seed), roles=ROLES)
        texts.append({r.episode_id: [turn.reply.text for turn in r.turns] for r in records})
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    "options", [{"refuse": 2}, {"miss": -1}, {"forget_after": -1}, {"forget_after": 1.5}, {"forgets": 1}], ids=str
)
def test_a_rate_out_of_range_is_told(options):
    with pytest.raises(BackendError, match=next(iter(options))):
        SimulatedBackend(**options)


def test_options_of_conversations_leave_other_simulations_as_they_were():
    assert "refuse" not in SimulatedBackend(accuracy=0.4).fingerprint
    assert '"forget_after": 3' in SimulatedBackend(forget_after=3).fingerprint
